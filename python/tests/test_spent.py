"""What can be read only once, and has been read, is refused: its rows were taken before."""

import gc
import io
import pickle
import subprocess
import sys
import threading
import weakref

import adbc_driver_sqlite.dbapi as sqlite
import arro3.core
import duckdb
import nanoarrow as na
import numpy as np
import pandas
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset as ds
import pytest
from arrow_dlpack import (
    Array,
    ByLength,
    Categories,
    Encoder,
    Loader,
    Mix,
    Pad,
    iter_batches,
    ragged,
    to_tensor,
    to_tensor_dict,
)
from conftest import environment

TABLE = pa.table({"x": np.arange(10.0), "y": np.arange(10.0, 20.0)})
LISTS = pa.chunked_array([[[1, 2], [3]], [[4]]])
NONE = TABLE.slice(0, 0)
EMPTY = TABLE.to_batches()[0].slice(0, 0)
SPENT = "no rows left: it can be read only once, and an earlier call took them"


def refused():
    return pytest.raises(ValueError, match=SPENT)


def reader(table=TABLE, size=4):
    return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=size))


class Lists:
    """A stream of lists that is read once."""

    def __init__(self):
        self._chunks = iter(LISTS.chunks)

    def __iter__(self):
        return self

    def __next__(self):
        return next(self._chunks)

    def __arrow_c_stream__(self, requested_schema=None):
        return pa.chunked_array(list(self._chunks), LISTS.type).__arrow_c_stream__()


def read_all(source, **options):
    return sum(len(batch["x"]) for batch in iter_batches(source, framework="numpy", **options))


DOORS = {
    "tensor": to_tensor,
    "copy": lambda source: to_tensor(source, copy=True),
    "columns": lambda source: to_tensor(source, columns=["x"]),
    "dict": to_tensor_dict,
    "numpy": lambda source: to_tensor(source, framework="numpy"),
    "array": Array,
    "array copied": lambda source: Array(source, copy=True),
    "batches": read_all,
    "batches of some rows": lambda source: read_all(source, batch_size=3),
    "ahead": lambda source: read_all(source, batch_size=3, prefetch=2),
    "transformed ahead": lambda source: read_all(source, prefetch=2, transform=lambda batch: batch),
    "shuffled": lambda source: read_all(source, batch_size=3, shuffle=4, seed=1),
    "dropped": lambda source: read_all(source, batch_size=4, drop_last=True),
    "filtered": lambda source: read_all(source, filter=pc.field("x") >= 0),
    "filtered ahead": lambda source: read_all(source, filter=pc.field("x") >= 0, prefetch=2),
    "filtered out": lambda source: read_all(source, filter=pc.field("x") < 0),
    "categories": lambda source: read_all(source, columns={"x": Categories(list(range(10)))}),
    "mixed": lambda source: read_all(Mix([(source, 1)]), batch_size=3),
    "listed": lambda source: read_all([source]),
    "a rank": lambda source: read_all(source, rank=1, world_size=2, uneven="allow", batch_size=3),
    "loader": lambda source: list(Loader(source, batch_size=3)),
    "function": lambda source: list(Loader(lambda index, count: source, batch_size=3)),
}


@pytest.mark.parametrize("second", DOORS)
@pytest.mark.parametrize("first", ["tensor", "batches", "filtered", "mixed"])
def test_each_door_refuses_a_reader_that_any_door_has_read(first, second):
    source = reader()
    DOORS[first](source)
    for _ in range(2):
        with refused():
            DOORS[second](source)


@pytest.mark.parametrize("first", DOORS)
def test_each_door_tells_the_others_what_it_took(first):
    source = reader()
    DOORS[first](source)
    with refused():
        to_tensor(source)


@pytest.mark.parametrize("door", [ragged, lambda source: to_tensor(source, pad=0), Array])
def test_lists_are_refused_too(door):
    source = Lists()
    door(source)
    with refused():
        door(source)


@pytest.mark.parametrize("door", DOORS)
def test_what_has_no_rows_has_none_as_often_as_one_likes(door):
    def outcome(source):
        try:
            return str(DOORS[door](source))
        except (ValueError, TypeError) as error:
            return str(error)

    def plain(text):
        return text.partition(" at 0x")[0]

    for source in [NONE, pl.from_arrow(NONE), NONE.to_pandas(), reader(NONE)]:
        first, second = outcome(source), outcome(source)
        assert plain(first) == plain(second)
        assert "an earlier call" not in first


def test_a_reader_that_others_have_read_has_no_rows():
    source = reader()
    source.read_all()
    assert to_tensor(source).shape == (0, 2)
    assert list(iter_batches(source)) == []


@pytest.mark.parametrize("options", [{}, {"prefetch": 2}, {"filter": pc.field("x") >= 0}])
def test_rows_that_a_loop_read_ahead_are_missed(options):
    source = reader(size=10)
    with iter_batches(source, batch_size=1, **options) as batches:
        next(batches)
    with refused():
        to_tensor(source)


def test_the_rest_of_a_reader_is_its_rest():
    source = reader()
    with iter_batches(source) as batches:
        next(batches)
    assert to_tensor(source).shape == (6, 2)
    with refused():
        to_tensor(source)


def test_opening_takes_nothing():
    source = reader()
    for _ in range(3):
        iter_batches(source).close()
        iter_batches(source, batch_size=3, shuffle=5).close()
    assert to_tensor(source).shape == (10, 2)


def test_a_conversion_that_fails_takes_rows_too():
    source = reader(pa.table({"x": [1, None]}))
    with pytest.raises(TypeError, match="null"):
        to_tensor(source)
    with refused():
        to_tensor(source, nulls="nan")


@pytest.mark.parametrize("read", [to_tensor, read_all])
def test_chunks_without_rows_are_none(read):
    parts = [EMPTY, *TABLE.to_batches(), EMPTY, EMPTY]
    source = pa.RecordBatchReader.from_batches(TABLE.schema, parts)
    with iter_batches(source) as batches:
        assert len(next(batches)["x"]) == 10
    with refused():
        read(source)


PARTS = {
    "batches": lambda: TABLE.to_batches(max_chunksize=4),
    "tables": lambda: [TABLE, TABLE],
    "readers": lambda: [reader(), reader()],
    "polars": lambda: [pl.from_arrow(TABLE)],
    "pandas": lambda: [TABLE.to_pandas(), TABLE.to_pandas()],
}


@pytest.mark.parametrize("of", PARTS)
@pytest.mark.parametrize("door", ["batches", "shuffled", "filtered", "mixed", "ahead", "loader"])
def test_generators_are_refused(of, door):
    source = (part for part in PARTS[of]())
    DOORS[door](source)
    with refused():
        DOORS[door](source)
    with refused():
        read_all(source)


def test_batches_of_a_generator_that_were_dropped_are_missed():
    source = (batch for batch in [*TABLE.to_batches(), EMPTY])
    iter_batches(source).close()
    with refused():
        read_all(source)


def test_a_generator_without_rows_says_that_it_has_no_batches():
    source = (batch for batch in [EMPTY])
    assert read_all(source) == 0
    with pytest.raises(ValueError, match="the source has no batches"):
        read_all(source)


def test_a_list_of_readers_has_one_epoch():
    loader = Loader([reader(), reader()], batch_size=4)
    assert len(list(loader)) == 5
    with pytest.raises(TypeError, match="a reader is read once"):
        list(loader)


@pytest.mark.parametrize("make", [reader, lambda: iter([TABLE]), lambda: Mix([(reader(), 1)])])
def test_the_encoder_of_what_was_read_is_made_before(make):
    encoder = Loader(make()).encoder()
    loader = Loader(make())
    assert loader.encoder() == encoder
    list(loader)
    with pytest.raises(
        TypeError, match=r"call encoder\(\) before the first loop, or fit an Encoder"
    ):
        loader.encoder()
    assert Encoder().fit(TABLE) == encoder


def test_nobody_looks_ahead_into_readers_of_a_list():
    where = pc.field("x") > 3
    for make in (lambda: [reader(), TABLE]), (lambda: Mix([([reader()], 1), (TABLE, 1)])):
        with pytest.raises(TypeError, match="Categories without words reads the source before"):
            list(Loader(make(), columns={"x": Categories.scan()}))
        loader = Loader(make(), batch_size=1, filter=where)
        with pytest.raises(TypeError, match="does not know how many rows"):
            len(loader)
        assert len(list(loader)) == 12
    with pytest.raises(TypeError, match="begins again with a source"):
        iter(Loader(Mix([([reader()], 1)], "all_exhausted"), batch_size=1))


def test_what_can_be_opened_again_is_read_again():
    relation = duckdb.connect().sql("select 1.0::double as x, 2.0::double as y from range(3)")
    dataset = ds.dataset(TABLE)
    for source in [relation, TABLE, pl.from_arrow(TABLE), TABLE.to_pandas(), TABLE["x"]]:
        for _ in range(2):
            assert len(to_tensor(source)) > 0
    for source in [relation, dataset, dataset.scanner(), pl.from_arrow(TABLE).lazy()]:
        for _ in range(2):
            assert read_all(source) > 0


@pytest.mark.filterwarnings("ignore:Arrow output on a DB-API result")
@pytest.mark.parametrize("read", [read_all, lambda connection: connection.fetchall()])
def test_a_connection_of_duckdb_whose_result_was_read_says_so(read):
    connection, query = duckdb.connect(), "select 1.0::double as x"
    read(connection.execute(query))
    for source in connection, Mix([(connection, 1)]):
        with pytest.raises(ValueError, match=r"query has been read: .* as connection\.sql\(q\)"):
            read_all(source)
    assert read_all(connection.sql(query)) == 1


def test_a_table_that_was_emptied_is_no_reader():
    connection = duckdb.connect()
    connection.execute("create table t as select 1.0::double as x from range(3)")
    relation = connection.table("t")
    assert len(to_tensor(relation)) == 3
    connection.execute("delete from t")
    assert len(to_tensor(relation)) == 0


def test_a_cursor_is_refused_until_it_executes():
    with sqlite.connect() as connection, connection.cursor() as cursor:
        cursor.execute("select 1.0 as x union select 2.0")
        assert read_all(cursor) == 2
        with refused():
            read_all(cursor)
        cursor.execute("select 1.0 as x where 1 = 2")
        assert read_all(cursor) == 0
        cursor.execute("select 3.0 as x")
        assert read_all(cursor) == 1


@pytest.mark.parametrize("make", [na.ArrayStream, na.c_array_stream])
def test_streams_that_refuse_by_themselves_do(make):
    source = make(TABLE)
    to_tensor(source)
    with pytest.raises(RuntimeError, match="released"):
        to_tensor(source)


class Slotted:
    """A reader that cannot be weakly referenced."""

    __slots__ = ("_reader",)

    def __init__(self):
        self._reader = reader()

    def __next__(self):
        return next(self._reader)

    def __arrow_c_stream__(self, requested_schema=None):
        return self._reader.__arrow_c_stream__()


def test_without_weak_references_nothing_is_known():
    source = Slotted()
    with pytest.raises(TypeError):
        weakref.ref(source)
    assert to_tensor(source).shape == (10, 2)
    assert to_tensor(source).shape == (0, 2)


class Equal:
    """Readers that are all equal, and not hashable."""

    __hash__ = None

    def __init__(self, table=TABLE):
        self._reader = reader(table)

    def __eq__(self, other):
        return True

    def __next__(self):
        return next(self._reader)

    def __arrow_c_stream__(self, requested_schema=None):
        return self._reader.__arrow_c_stream__()


def test_what_counts_is_which_object_it_is():
    first, second = Equal(), Equal(NONE)
    to_tensor(first)
    assert to_tensor(second).shape == (0, 2)
    assert to_tensor(second).shape == (0, 2)
    with refused():
        to_tensor(first)


class Holder:
    """A table that is opened anew each time."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


def test_a_proxy_is_what_it_stands_for():
    holder = Holder(TABLE)
    proxy = weakref.proxy(holder)
    assert to_tensor(proxy).shape == (10, 2)
    holder.table = NONE
    assert to_tensor(proxy).shape == (0, 2)


def test_a_new_object_at_the_place_of_an_old_one_is_new():
    places = set()
    for _ in range(1000):
        source = Equal()
        to_tensor(source)
        places.add(id(source))
        del source
        source = Equal(NONE)
        places.add(id(source))
        assert to_tensor(source).shape == (0, 2)
        del source
    assert len(places) < 2000, "places are used again"


def test_it_keeps_nothing_alive():
    source = Equal()
    to_tensor(source)
    died = weakref.ref(source)
    del source
    gc.collect()
    assert died() is None


def test_many_readers_at_once_are_known():
    sources = [reader(TABLE.slice(0, 1)) for _ in range(500)]
    for source in sources:
        to_tensor(source)
    del sources[::2]
    gc.collect()
    more = [reader(TABLE.slice(0, 1)) for _ in range(500)]
    for source in more:
        to_tensor(source)
    for source in sources + more:
        with refused():
            to_tensor(source)


def test_threads_tell_each_other():
    for _ in range(20):
        source, outcomes = reader(), []

        def read(source=source, outcomes=outcomes):
            try:
                outcomes.append(len(to_tensor(source)))
            except ValueError as error:
                outcomes.append(0 if SPENT in str(error) else error)

        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(outcomes) == 10
        with refused():
            to_tensor(source)


def test_a_pickled_loader_reads_again():
    loader = Loader([TABLE], batch_size=3)
    for one in loader, pickle.loads(pickle.dumps(loader)):
        for _ in range(2):
            assert len(list(one)) == 4
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(Loader(reader()))


def test_closing_early_with_a_filter_neither_hangs_nor_loses_the_rest():
    many = pa.table({"x": np.arange(100_000.0)})
    for prefetch in 0, 2:
        for _ in range(20):
            source = reader(many, 100)
            with iter_batches(source, filter=pc.field("x") >= 0, prefetch=prefetch) as batches:
                next(batches)
            del batches


@pytest.mark.parametrize("form", ["stream", "csv", "field", "lengths"])
def test_readers_of_every_kind_are_refused(form):
    options = {}
    if form == "csv":
        source = pyarrow.csv.open_csv(io.BytesIO(b"x,y\n1.5,2.5\n3.5,4.5\n"))
    elif form == "stream":
        with pa.ipc.new_stream(sink := pa.BufferOutputStream(), TABLE.schema) as writer:
            writer.write_table(TABLE)
        source = pa.ipc.open_stream(sink.getvalue())
    elif form == "field":
        source = reader(pa.table({"s": TABLE.to_struct_array()}))
        options = {"columns": ["s.x"]}
    else:
        source = reader(pa.table({"x": LISTS}))
        options = {"columns": {"x": Pad(0)}, "batch_size": ByLength(2, "x")}
    assert list(iter_batches(source, **options))
    with refused():
        list(iter_batches(source, **options))
    with refused():
        Array(source)


def test_a_process_ends_with_readers_that_were_read():
    program = """
import pyarrow as pa
from arrow_dlpack import iter_batches, to_tensor
readers = [pa.table({"x": [1.0]}).to_reader() for _ in range(200)]
for reader in readers:
    to_tensor(reader)
kept = iter_batches(pa.table({"x": [1.0]}).to_reader(), prefetch=1)
print(next(kept)["x"].shape)
"""
    run = [sys.executable, "-c", program]
    done = subprocess.run(
        run, env=environment(), capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "(1,)", "")


def test_a_scanner_of_batches_is_read_once_and_others_again():
    table = pa.table({"x": [1.0, 2.0]})
    once = ds.Scanner.from_batches(table.to_batches(), schema=table.schema)
    loader = Loader(once)
    assert len(list(loader)) == 1
    for again in loader, Loader(once), Mix([(once, 1)]):
        loader = Loader(again) if isinstance(again, Mix) else again
        with pytest.raises(TypeError, match="a Scanner of batches is read once: pass a dataset"):
            list(loader)
    loader = Loader(ds.dataset(table).scanner())
    assert [len(list(loader)) for _ in range(2)] == [1, 1]


class Handing:
    """A stream that hands out the one of a reader, and does not say how many rows it has."""

    def __init__(self, source):
        self._source = source

    def __arrow_c_stream__(self, requested_schema=None):
        return self._source.__arrow_c_stream__(requested_schema)


def test_what_hands_out_the_stream_of_a_reader_is_spent_after_it():
    for door in DOORS.values():
        source = Handing(reader())
        door(source)
        with refused():
            door(source)
    loader = Loader(Handing(reader()))
    assert sum(len(batch["x"]) for batch in loader) == 10
    with refused():
        list(loader)
    # Of a table each stream has all rows, and one without rows is not spent.
    for source in Handing(TABLE), Handing(NONE):
        assert [to_tensor(source).shape[0] for _ in range(2)] == [len(source._source)] * 2


def chunks():
    for at in range(0, 12, 2):
        yield pa.table({"x": [at, at + 1]})


@pytest.mark.parametrize("taken", [1, 2, 3])
@pytest.mark.parametrize(
    "make",
    [
        chunks,
        lambda: map(pa.Table.combine_chunks, chunks()),
        lambda: pandas.read_csv(io.StringIO("\n".join(["x", *map(str, range(12))])), chunksize=2),
    ],
    ids=["generator", "map", "pandas"],
)
def test_a_loop_that_is_closed_leaves_the_rest_of_an_iterator(make, taken):
    source = make()
    with iter_batches(source, batch_size=2) as batches:
        for _ in range(taken):
            next(batches)
    rest = [batch["x"].tolist() for batch in Loader(source, batch_size=2)]
    assert rest == [[at, at + 1] for at in range(2 * taken, 12, 2)]


def batches_of(table):
    yield from table.to_batches(max_chunksize=4)


def of_function(source):
    return lambda index, count: source


#: What is read once, of which each loop has the rest.
ONCE = {
    "reader": reader,
    "generator": lambda: batches_of(TABLE),
    "list": lambda: [TABLE.slice(0, 3), reader(TABLE.slice(3))],
    "mix": lambda: Mix([(reader(), 1), (TABLE, 1)]),
    "function": lambda: of_function(reader()),
    "nanoarrow": lambda: na.ArrayStream(TABLE),
    "polars": lambda: pl.from_arrow(TABLE).lazy().collect_batches(chunk_size=4),
    "duckdb": lambda: duckdb.connect().sql("select 1::double x from range(10)").to_arrow_reader(4),
}


@pytest.mark.parametrize("make", ONCE.values(), ids=ONCE)
def test_no_state_goes_on_from_the_rest_of_what_is_read_once(make):
    """Its rows would be left out of those that are left."""

    def loader(source):
        return Loader(source, columns=["x"], batch_size=2, framework="numpy")

    source = make()
    first = loader(source)
    begun = iter(first)
    for _ in range(2):
        next(begun)
    state = first.state_dict()
    begun.close()
    again = loader(source)
    again.load_state_dict(state)
    with pytest.raises(ValueError, match="rows of this .*, which is read once: open it again"):
        list(again)
    whole, fresh = loader(make()), loader(make())
    fresh.load_state_dict(again.state_dict())  # the refusal keeps it
    rest = [batch["x"].tolist() for batch in fresh]
    assert rest == [batch["x"].tolist() for batch in whole][2:]


OF_TYPES = {
    "reader": reader,
    "generator": lambda: batches_of(TABLE),
    "nanoarrow": lambda: na.ArrayStream(TABLE),
    "arro3": lambda: arro3.core.RecordBatchReader.from_stream(TABLE),
    "list of nanoarrow": lambda: [na.ArrayStream(TABLE)],
    "iterator of nanoarrow": lambda: iter([na.ArrayStream(TABLE)]),
    "iterator of arro3": lambda: iter([arro3.core.RecordBatchReader.from_stream(TABLE)]),
}


@pytest.mark.parametrize("make", OF_TYPES.values(), ids=OF_TYPES)
def test_types_that_were_asked_for_take_no_rows_from_a_state(make):
    first = Loader(make(), batch_size=2, framework="numpy")
    next(iter(first))
    loader = Loader(make(), batch_size=2, framework="numpy")
    assert loader.encoder().schema
    loader.load_state_dict(first.state_dict())
    assert [batch["x"].tolist() for batch in loader] == TABLE["x"].to_numpy()[2:].reshape(
        4, 2
    ).tolist()
