"""`Mix`: rows of several sources in turns, each once, over ranks, workers and resuming."""

import json
import pickle
from unittest import mock

import duckdb
import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from arrow_dlpack import AsArrow, ByLength, Cast, Categories, Loader, Mix, iter_batches
from arrow_dlpack._loader import loader as _loader
from arrow_dlpack._loader import mix as _mix
from arrow_dlpack._loader.sharding import Share
from hypothesis import given, settings
from hypothesis import strategies as st

FIRST = pa.table({"y": range(90), "w": ["a", "b", "c"] * 30})
SECOND = pa.table({"w": pa.array(["d", "b"] * 15, pa.large_string()), "y": range(1000, 1030)})
WEIGHTS = (3, 1)
STRATEGIES = ["all_exhausted_without_replacement", "all_exhausted", "first_exhausted"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return tmp_path_factory.mktemp("mix")


def mix_of(files, form, strategy=STRATEGIES[0], tables=(FIRST, SECOND), weights=WEIGHTS):
    sources = []
    for number, table in enumerate(tables):
        file = files / f"{number}-{len(table)}.parquet"
        if form == "files" and not file.exists():
            pq.write_table(table, file, row_group_size=7)
        sources.append({"files": str(file), "tables": table, "batches": table.to_batches(9)}[form])
    return Mix(list(zip(sources, weights, strict=True)), strategy)


def y_of(batches):
    return [np.asarray(batch["y"]).tolist() for batch in batches]


@pytest.mark.parametrize("form", ["files", "tables", "batches"])
def test_each_batch_has_the_shares_of_the_weights(files, form):
    batches = y_of(Loader(mix_of(files, form), columns=["y"], batch_size=8))
    assert [sum(row < 1000 for row in batch) for batch in batches] == [6] * 15
    first = [row for batch in batches for row in batch if row < 1000]
    second = [row for batch in batches for row in batch if row >= 1000]
    assert (first, second) == (list(range(90)), list(range(1000, 1030)))


@pytest.mark.parametrize("form", ["files", "tables", "batches"])
def test_what_happens_at_the_end_of_a_source(files, form):
    """Weights of 1: the second source has a third of the rows of the first one."""
    rows = {}
    for strategy in STRATEGIES:
        mix = mix_of(files, form, strategy, weights=(1, 1))
        loader = Loader(mix, columns=["y"], batch_size=8)
        rows[strategy] = [row for batch in y_of(loader) for row in batch]
        if form != "batches":
            assert len(loader) == -(-len(rows[strategy]) // 8)
    once, again, short = (rows[strategy] for strategy in STRATEGIES)
    assert sorted(once) == [*range(90), *range(1000, 1030)]
    assert once[60:] == list(range(30, 90)), "the others go on"
    assert sorted(short) == [*range(30), *range(1000, 1030)]
    assert [again.count(row) for row in (0, 89, 1000)] == [1, 1, 3]
    assert again[-1] == 89


@settings(max_examples=60)
@given(
    lengths=st.lists(st.integers(0, 60), min_size=1, max_size=3),
    weights=st.lists(st.sampled_from([0.1, 0.3, 1, 2.5]), min_size=3, max_size=3),
    form=st.sampled_from(["files", "tables", "batches"]),
    size=st.integers(1, 20),
    shuffle=st.sampled_from([None, 15]),
    world=st.integers(1, 3),
    workers=st.integers(1, 2),
)
def test_each_row_is_there_once(files, *, lengths, weights, form, size, shuffle, world, workers):
    tables = [pa.table({"y": np.arange(n) + 1000 * of}) for of, n in enumerate(lengths)]
    folder = files / "-".join(map(str, lengths))
    folder.mkdir(exist_ok=True)
    # A list without batches has no schema.
    form = "tables" if form == "batches" and 0 in lengths else form
    source = mix_of(folder, form, STRATEGIES[0], tables, weights[: len(tables)])
    found = []
    for rank in range(world):
        for worker in range(workers):
            options = {"batch_size": size, "shuffle": shuffle, "uneven": "allow"}
            loader = Loader(source, rank=rank, world_size=world, **options)
            share = Share(rank, world, worker, workers)
            with mock.patch.object(_loader, "share_of", return_value=share):
                found += [row for batch in y_of(loader) for row in batch]
    assert sorted(found) == sorted(row for table in tables for row in table["y"].to_pylist())


@pytest.mark.parametrize("form", ["files", "tables"])
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("shuffle", [None, 20])
def test_after_any_batch_the_rest_is_the_same(files, form, strategy, shuffle):
    def loader():
        mix = mix_of(files, form, strategy, weights=(1, 1))
        seed = None if shuffle is None else 3
        share = {"rank": 1, "world_size": 2, "uneven": "repeat"}
        return Loader(mix, columns=["y"], batch_size=9, shuffle=shuffle, seed=seed, **share)

    whole = y_of(loader())
    stopped = loader()
    epoch = iter(stopped)
    for at in range(len(whole)):
        resumed = pickle.loads(pickle.dumps(loader()))
        resumed.load_state_dict(json.loads(json.dumps(stopped.state_dict())))
        assert y_of(resumed) == whole[at:]
        next(epoch)
    other = Loader(mix_of(files, form, strategy, weights=(2, 1)), batch_size=9)
    with pytest.raises(ValueError, match="the state is of a loader with mix="):
        other.load_state_dict(stopped.state_dict())


def test_a_state_is_that_of_weights_of_the_same_turns():
    tables = [FIRST.select(["y"]), SECOND.select(["y"])]
    loader = Loader(Mix(list(zip(tables, (3, 1), strict=True))), batch_size=8)
    epoch = iter(loader)
    next(epoch)
    resumed = Loader(Mix(list(zip(tables, (1.5, 0.5), strict=True))), batch_size=8)
    resumed.load_state_dict(json.loads(json.dumps(loader.state_dict())))
    assert y_of(resumed) == y_of(epoch)


@pytest.mark.parametrize("unit", [5e-324, 1e-9, 1e300])
def test_weights_of_any_magnitude_are_shares(unit):
    tables = [FIRST.select(["y"]), SECOND.select(["y"])]
    loader = Loader(Mix(list(zip(tables, (unit, unit), strict=True))), batch_size=8)
    assert [sum(row < 1000 for row in batch) for batch in y_of(loader)][:5] == [4] * 5
    rare = Loader(Mix([(tables[0], 1e9 * 1e-9), (tables[1], 1e-9)]), batch_size=120)
    assert y_of(rare) == [[*range(90), *range(1000, 1030)]]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_turns_of_a_thousand_sources_are_told_in_few_steps(strategy):
    """Of each source the due of few rows is asked for."""
    turns = _mix.Turns(Mix([(FIRST, 1 + of % 7) for of in range(1000)], strategy))
    asked = mock.Mock(side_effect=turns._due)
    with mock.patch.object(turns, "_due", asked):
        counts = turns.counts(50_000, turns.bounds([100] * 1000))
        turns.total([100] * 1000)
    assert sum(counts) == 50_000
    assert asked.call_count < 20_000


def test_a_state_is_that_of_one_strategy():
    loaders = {
        strategy: Loader(Mix([(FIRST, 1), (SECOND, 1)], strategy), columns=["y"], batch_size=8)
        for strategy in STRATEGIES
    }
    plain = Loader(FIRST, columns=["y"], batch_size=8)
    next(iter(loaders["first_exhausted"]))
    state = loaders["first_exhausted"].state_dict()
    for other in (loaders["all_exhausted"], plain):
        with pytest.raises(ValueError, match="stopping_strategy='first_exhausted'|mix="):
            other.load_state_dict(state)
    with pytest.raises(ValueError, match="with mix=None"):
        loaders["all_exhausted"].load_state_dict(plain.state_dict())


def test_row_groups_of_each_source_are_shuffled(files):
    loader = Loader(mix_of(files, "files"), columns=["y"], batch_size=8, shuffle=8, seed=1)
    epochs = [[row for batch in y_of(loader) for row in batch] for _ in range(2)]
    assert epochs[0] != epochs[1]
    for epoch in epochs:
        assert sorted(epoch) == [*range(90), *range(1000, 1030)]
        assert max(row for row in epoch[:40] if row < 1000) > 60


@pytest.mark.parametrize("form", ["files", "tables"])
def test_filters_codes_and_lengths_are_of_all_sources(files, form):
    mix = mix_of(files, form)
    loader = Loader(mix, columns=["y"], batch_size=8, filter=pc.field("y") < 20, shuffle=5)
    assert sorted(row for batch in y_of(loader) for row in batch) == list(range(20))
    loader = Loader(mix, batch_size=8, columns={"w": Categories.scan(), "y": None})
    assert loader.categories == {"w": ("a", "b", "c", "d")}
    codes = {}
    for batch in loader:
        codes |= zip(np.asarray(batch["y"]).tolist(), np.asarray(batch["w"]).tolist(), strict=True)
    assert [codes[row] for row in (0, 1, 2, 1000, 1001)] == [0, 1, 2, 3, 1]
    loader = Loader(mix, columns=["y"], batch_size=ByLength(8, "w"))
    assert sum(map(len, y_of(loader))) == 120
    assert sum(map(len, y_of(iter_batches(mix, columns=["y"], batch_size=50)))) == 120


def test_what_does_not_go_together_is_named():
    for sources, words in [
        (
            [(FIRST, 1), (SECOND.drop(["y"]), 1)],
            'column "y" is in source 0 of the Mix and not in source 1',
        ),
        (
            [(FIRST.drop(["y"]), 1), (SECOND, 1)],
            'column "y" is in source 1 of the Mix and not in source 0',
        ),
        ([(FIRST, 1), (FIRST.set_column(0, "y", [["a"] * 90]), 1)], 'column "y" is int64 in sour'),
    ]:
        with pytest.raises((KeyError, TypeError), match=words):
            iter(Loader(Mix(sources), batch_size=2))
    for wrong, words in [
        (lambda: Mix({}), "a dict of paths .*, or .* pairs, and at least one"),
        (lambda: Mix({"a": 0}), "a weight must be a number above 0 .*, got 0"),
        (lambda: Mix({"a": float("nan")}), "a weight must be"),
        (lambda: Mix({"a": 10**400}), "a weight must be a number above 0 that a float holds"),
        (lambda: Mix({"a": 1e20, "b": 2}), "1e.09 times the smallest, got 2.0 and 1e.20"),
        (lambda: Mix({"a": 1e308, "b": 5e-324}), "times the smallest, got 5e-324 and 1e.308"),
        (lambda: Mix([(1, FIRST)]), "a weight must be a number above 0"),
        (lambda: Mix([(FIRST, 1, 2)]), "pairs, got 3 values in place of a pair"),
        (lambda: Mix({"a": 1}, "first"), "stopping_strategy must be one of"),
    ]:
        with pytest.raises(ValueError, match=words):
            wrong()
    takes = r"^a Mix takes a dict of paths and their weights, or \(source, weight\) pairs, got "
    for wrong, words in [
        ([lambda: FIRST], f"{takes}.*<lambda> in place of a pair$"),
        ([FIRST, SECOND], f"{takes}a Table in place of a pair$"),
        (lambda: FIRST, takes),
        (Mix([(FIRST, 1)]), f"{takes}a Mix$"),
        ([(lambda: FIRST, 1)], "^a Mix takes no functions, got .*<lambda>: pass what it returns$"),
        ([(Mix([(FIRST, 1)]), 1)], "^a Mix takes no other Mix: put its sources into this one"),
        ([(Loader(FIRST), 1)], "^a Mix takes no Loader: pass what it reads"),
    ]:
        with pytest.raises(TypeError, match=words):
            Mix(wrong)
    with pytest.raises(TypeError, match="begins again with a source"):
        iter(Loader(Mix([(FIRST.to_reader(), 1)], "all_exhausted")))
    once = Loader(Mix([(FIRST.to_reader(), 1), (FIRST, 1)]), columns=["y"], batch_size=60)
    assert list(map(len, y_of(once))) == [60, 60, 60]
    with pytest.raises(TypeError, match="is read once"):
        iter(once)


def test_a_state_of_a_mix_whose_parts_a_filter_takes_together():
    """pyarrow compares no float16 with a small integer; of all parts it is a float64."""
    half = pa.table({"id": [0, 1], "x": pa.array(np.array([1, 5], "float16"))})
    whole = pa.table({"id": [2, 3], "x": pa.array([1, 5], pa.int32())})

    def loader():
        mix = Mix([(half, 1), (whole, 1)])
        return Loader(mix, batch_size=1, columns=["id"], filter=pc.field("x") <= 3)

    first = loader()
    epoch = iter(first)
    next(epoch)
    again = loader()
    again.load_state_dict(first.state_dict())
    assert [batch["id"].tolist() for batch in again] == [batch["id"].tolist() for batch in epoch]


#: Parts that differ from each other, and lack columns of `HAVING`.
LACKING = (
    pa.table({"id": [2, 3], "m": [{"z": 1}, None]}),
    pa.table({"id": pa.array([4, 5], pa.int32()), "m": [{"z": True}, None], "u": [0, 1]}),
)
HAVING = pa.table({"id": [0, 1], "v": [7.0, 8.0], "m": [{"a": 7, "z": 1}, {"a": 8, "z": 2}]})


def files_of(tables, folder, form):
    paths = [str(folder / f"{number}.{form}") for number in range(len(tables))]
    for path, table in zip(paths, tables, strict=True):
        if form == "parquet":
            pq.write_table(table, path)
        elif form == "csv":
            pa.csv.write_csv(table.drop(["m"]), path)
        else:
            make = pa.ipc.new_file if form == "arrow" else pa.ipc.new_stream
            with make(path, table.schema) as file:
                file.write_table(table)
    return paths


def check_lacking(source, columns, where):
    """Rows of the source that lacks the column are -1, and the rest after any state is the same."""

    def loader():
        mix = Mix([(HAVING, 1), (source, 1)])
        return Loader(mix, batch_size=2, columns=columns, filter=where)

    name, wish = list(columns.items())[-1]
    expected = [batch[name].tolist() for batch in loader()]
    one, two = (0, 1) if isinstance(wish, Categories) else (7, 8)
    rows = [one, -1, two, -1, -1] + [-1] * (where is None)
    assert [row for batch in expected for row in batch] == rows
    first = loader()
    epoch = iter(first)
    for done in range(len(expected)):
        again = loader()
        again.load_state_dict(first.state_dict())
        assert [batch[name].tolist() for batch in again] == expected[done:]
        next(epoch)


WHERE = pytest.mark.parametrize("where", [None, pc.field("id") < 5], ids=str)
WISH = pytest.mark.parametrize(
    "wish",
    [Cast("float32", nulls=-1), Categories([7.0, 8.0], nulls=-1), Categories.scan(nulls=-1)],
    ids=["cast", "words", "scan"],
)


@WHERE
@WISH
@pytest.mark.parametrize("form", ["parquet", "arrow", "csv"])
def test_a_state_is_of_files_that_lack_a_column_of_other_sources(tmp_path, form, wish, where):
    check_lacking(files_of(LACKING, tmp_path, form), {"id": None, "v": wish}, where)


#: What makes a source of tables, in a folder.
FORMS = {
    "tables": lambda tables, folder: list(tables),
    "polars": lambda tables, folder: list(map(polars.from_arrow, tables)),
    "pandas": lambda tables, folder: [table.to_pandas() for table in tables],
    "streams": lambda tables, folder: files_of(tables, folder, "arrows"),
    "files": lambda tables, folder: files_of(tables, folder, "parquet"),
    "fragments": lambda tables, folder: [
        next(ds.dataset(path).get_fragments()) for path in files_of(tables, folder, "parquet")
    ],
}


@WHERE
@WISH
@pytest.mark.parametrize("columns", [{"id": None}, {}], ids=["beside", "alone"])
@pytest.mark.parametrize("form", FORMS)
def test_all_parts_of_a_source_may_lack_a_column_of_others(tmp_path, form, columns, wish, where):
    source = FORMS[form](LACKING, tmp_path)
    check_lacking(source, {**columns, "v": wish}, where)
    check_lacking(source, {**columns, "m.a": Cast("float32", nulls=-1)}, where)
    with pytest.raises(KeyError, match="v"):
        iter(Loader(Mix([(source, 1), (source, 1)]), columns={"id": None, "v": wish}))


def failing(batches, rows=2):
    """Batches whose rows are 0, 1, 2, ..., and then an error."""
    for at in range(batches):
        yield pa.table({"y": range(at * rows, (at + 1) * rows)})
    raise RuntimeError("gone")


def until_error(loader):
    found = []
    with pytest.raises(RuntimeError, match="^gone\n.*source . of the Mix"):
        found.extend(row for batch in loader for row in batch["y"].tolist())
    return found


@pytest.mark.parametrize("options", [{}, {"filter": pc.field("y") >= 0}, {"prefetch": 2}])
def test_an_error_comes_after_the_last_row_of_its_source(options):
    other = pa.table({"y": range(100, 110)})
    whole = Mix([(pa.table({"y": range(10)}), 1), (other, 3)])
    expected = [row for batch in Loader(whole, batch_size=1) for row in batch["y"].tolist()]
    for batches in range(1, 5):
        mix = Mix([(failing(batches), 1), (other, 3)])
        at = expected.index(2 * batches - 1) + 1
        assert until_error(Loader(mix, batch_size=1, **options)) == expected[:at]
    # Over a block of rows that are put in order together, and of the source that fails first.
    long = until_error(Loader(Mix([(failing(3000), 1), (failing(2500), 1)]), batch_size=1))
    assert long[::2] == long[1::2] == list(range(5000))
    mix = Mix([(failing(9), 1), (other, 1)], "first_exhausted")
    assert len(list(Loader(mix, batch_size=1))) == 20


def test_a_mix_without_columns_has_its_rows():
    loader = Loader(Mix([(FIRST, 1)]), columns=[], batch_size=30)
    assert list(loader) == [{}, {}, {}]
    assert list(Loader(Mix([(pd.DataFrame(index=[1, 2]), 1)]))) == [{}]


def test_an_epoch_of_filtered_files_has_its_order_whatever_came_before(tmp_path):
    path = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"id": range(9), "k": [1] * 9}), path, row_group_size=3)
    options = {"batch_size": 2, "columns": ["id"], "shuffle": 2, "seed": 0}
    options |= {"filter": pc.field("k") > 0}

    def ids(batches):
        return [x for batch in batches for x in np.asarray(batch["id"]).tolist()]

    loader = Loader(Mix([(path, 1)]), **options)
    first = ids(loader)
    epoch = iter(loader)
    seen = np.asarray(next(epoch)["id"]).tolist()
    state, rest = loader.state_dict(), ids(epoch)
    other = Loader(Mix([(path, 1)]), **options)
    other.load_state_dict(state)
    assert ids(other) == rest
    assert sorted(seen + rest) == [*range(9)]
    loader.set_epoch(0)
    assert ids(loader) == first


def test_a_set_of_pairs_is_refused():
    with pytest.raises(TypeError, match="got a set: its order"):
        Mix({("a.parquet", 1), ("b.parquet", 1)})


def of_floats(kind, form, path):
    """A source with 0.1 and 0.5 in floats of this type, in a struct, and its column."""
    u = pa.array(np.array([0.1, 0.5]).astype(kind))
    table = pa.table({"s": pa.StructArray.from_arrays([u], ["u"])})
    if form == "file":
        pq.write_table(table, path / f"{kind}.parquet")
        return str(path / f"{kind}.parquet")
    return iter([table]) if form == "generator" else table


def test_an_iterator_is_one_source():
    """One of two that share it would have the rows of the other."""
    table = pa.table({"x": range(12)})
    for one in iter(table.to_batches()), (batch for batch in [table]), table.to_reader():
        with pytest.raises(ValueError, match="two sources are one iterator.*make one for each"):
            Mix([(one, 1), (table, 1), (one, 3)])
    assert len(list(Loader(Mix([(table, 1), (table, 1)]), batch_size=4))) == 6


@pytest.mark.parametrize("kinds", [("f4", "f8"), ("f8", "f4"), ("f2", "f4"), ("f4", "f2")])
@pytest.mark.parametrize("form", ["table", "file", "generator"])
def test_codes_of_floats_are_those_of_a_list_of_the_same_parts(tmp_path, kinds, form):
    tables = [of_floats(kind, "table", tmp_path) for kind in kinds]
    words = [*(float(np.array(0.1, kind)) for kind in kinds), 0.5]
    for wish in (Categories(words, unknown=-1), Categories.scan()):
        if form == "generator" and wish.words is None:
            continue
        options = {"columns": {"s.u": wish}, "batch_size": 1}
        listed = [np.asarray(batch["s.u"]).item() for batch in Loader(tables, **options)]
        sources = [of_floats(kind, form, tmp_path) for kind in kinds]
        mixed = Loader(Mix([(source, 1) for source in sources]), **options)
        found = [np.asarray(batch["s.u"]).item() for batch in mixed]
        # Rows of the two sources take turns.
        assert found[::2] + found[1::2] == listed


@pytest.mark.parametrize("count", [1, 2])
def test_sources_that_repeat_are_read_as_often_as_their_rows_need(count):
    class Counted:
        reads = 0

        def __arrow_c_stream__(self, requested_schema=None):
            self.reads += 1
            return pa.table({"x": [1, 2, 3]}).__arrow_c_stream__(requested_schema)

    sources = [Counted() for _ in range(count)]
    mix = Mix([(source, at + 1) for at, source in enumerate(sources)], "all_exhausted")
    found = [x for batch in Loader(mix, batch_size=4) for x in batch["x"].tolist()]
    assert sorted(set(found)) == [1, 2, 3]
    assert len(found) == {1: 3, 2: 8}[count]
    assert max(source.reads for source in sources) < 10


def test_relations_of_one_connection_are_mixed_by_cursors():
    """A connection of DuckDB has one open result, and a Mix reads all of its sources at once."""
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        queries = [f"select range + {start} as x from range(3)" for start in (0, 10)]
        with pytest.raises(duckdb.Error, match="open result"):
            list(Loader(Mix([(connection.sql(query), 1) for query in queries]), batch_size=2))
        relations = [connection.cursor().sql(query) for query in queries]
        options = {"batch_size": 2, "shuffle": 2, "seed": 1, "framework": "numpy"}
        loader = Loader(Mix([(relation, 1) for relation in relations]), **options)
        for _ in range(2):
            rows = [row for batch in loader for row in batch["x"].tolist()]
            assert sorted(rows) == [0, 1, 2, 10, 11, 12]


OF_NULLS = pa.table({"x": pa.nulls(2), "y": [1, 2]})
OF_TEXTS = pa.table({"x": ["a", "b"], "y": [3, 4]})


@pytest.mark.parametrize("are_readers", [(True, False), (False, True), (True, True)])
@pytest.mark.parametrize("tables", [(OF_NULLS, OF_TEXTS), (OF_TEXTS, OF_NULLS)])
@pytest.mark.parametrize("where", [pc.starts_with(pc.field("x"), "a"), pc.field("x").isin(["a"])])
def test_a_filter_sees_nulls_of_a_reader_as_the_texts_of_others(where, tables, are_readers):
    pairs = zip(tables, are_readers, strict=True)
    mix = Mix([(table.to_reader() if is_reader else table, 1) for table, is_reader in pairs])
    (batch,) = Loader(mix, columns=["y"], filter=where, framework="numpy")
    assert batch["y"].tolist() == [3]


@pytest.mark.parametrize("of", [pa.string(), pa.large_string(), pa.int64()], ids=str)
@pytest.mark.parametrize(
    "make",
    [
        lambda table: table,
        lambda table: table.to_batches(2),
        lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    ],
    ids=["tables", "batches", "frames"],
)
def test_words_of_a_dictionary_may_be_null_in_a_mix_too(of, make):
    codes = pa.array([0, 1, 1], pa.int8())
    words = [pa.array(one).cast(of) for one in (["1", None], ["2", "3"])]
    tables = [pa.table({"x": pa.DictionaryArray.from_arrays(codes, own)}) for own in words]
    mix = Mix([(make(table), 1) for table in tables])
    right = pa.array(["1", "2", None, "3", None, "3"]).cast(of)
    for size in 1, 4, 6:
        loader = Loader(mix, batch_size=size, columns={"x": AsArrow()})
        found = [value for batch in loader for value in pa.array(batch["x"]).to_pylist()]
        assert found == right.to_pylist()
    (codes,) = Loader(mix, batch_size=6, physical=True, nulls=-1, framework="numpy")
    assert (codes["x"] == -1).tolist() == right.is_null().to_pylist()


@pytest.mark.parametrize("kind", [pa.int32(), pa.int64()], ids=str)
@pytest.mark.parametrize(
    ("of", "is_known"),
    [
        (lambda: duckdb.sql("select range as id from range(10)"), False),
        (lambda: polars.LazyFrame({"id": range(10)}), False),
        (lambda: polars.DataFrame({"id": range(10)}), True),
        (lambda: [pa.table({"id": range(10)})], True),
    ],
    ids=["relation", "lazy frame", "frame", "list"],
)
def test_whether_a_mix_counts_its_rows_does_not_depend_on_their_types(of, is_known, kind):
    mix = Mix([(of(), 1), (pa.table({"id": pa.array([100], kind)}), 1)])
    options = {"batch_size": 3, "filter": pc.field("id") >= 2, "framework": "numpy"}
    ranks = [Loader(mix, **options, rank=rank, world_size=3, uneven="repeat") for rank in range(3)]
    for rank in ranks:
        if is_known:
            assert len(rank) == len(list(rank)) == 1
            continue
        for read in len, list:
            with pytest.raises(TypeError, match="how many rows"):
                read(rank)
    assert sum(len(batch["id"]) for batch in Loader(mix, **options)) == 9


def test_a_mix_is_not_counted_where_a_source_does_not_know_its_rows():
    """DuckDB ends what is being read of a relation where the connection has another statement."""
    relation = duckdb.connect().sql("select range as i from range(5)")
    loader = Loader(Mix([(relation, 1)]), batch_size=3, filter=pc.field("i") >= 3)
    assert [batch["i"].tolist() for batch in list(loader)] == [[3, 4]]
    with pytest.raises(TypeError):
        len(loader)


class Failing:
    """A source of rows, each a chunk, that raises before one of them."""

    def __init__(self, rows):
        self.rows, self.at = rows, None

    def __arrow_c_stream__(self, requested=None):
        def chunks():
            for row in range(self.rows):
                if row == self.at:
                    raise OSError("connection lost")
                yield pa.record_batch({"x": pa.array([row])})

        reader = pa.RecordBatchReader.from_batches(pa.schema({"x": pa.int64()}), chunks())
        return reader.__arrow_c_stream__(requested)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("options", [{}, {"shuffle": 3, "seed": 4}], ids=["in order", "shuffled"])
@pytest.mark.parametrize("weights", [(1, 0.5), (0.5, 1), (1, 3)], ids=str)
def test_a_source_that_fails_behind_its_last_row_ends_no_epoch_otherwise(
    strategy, options, weights
):
    """The epoch may end there, as it does where the filter leaves out all that would follow."""
    source = Failing(6)
    others = pa.table({"x": range(1000, 1020)})
    mix = Mix([(others, weights[0]), (source, weights[1])], stopping_strategy=strategy)

    def loader():
        return Loader(mix, batch_size=1, filter=pc.field("x") != 5, **options)

    source.at = None
    whole = [batch["x"].tolist() for batch in loader()]
    failing, handed, source.at = loader(), [], 5
    with pytest.raises((OSError, ValueError), match="connection lost"):
        handed.extend(batch["x"].tolist() for batch in failing)
    source.at, state = None, failing.state_dict()
    counted = state["batch"]
    assert handed[:counted] == whole[:counted]
    failing.load_state_dict(state)
    assert [batch["x"].tolist() for batch in failing] == whole[counted:]
