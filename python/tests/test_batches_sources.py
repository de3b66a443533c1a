"""Batches of what the libraries have: datasets, frames, results of queries."""

import sys
from types import SimpleNamespace

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from arrow_dlpack import Array, Cast, Categories, Loader, Mix, _core, iter_batches
from arrow_dlpack.torch import BatchDataset
from torch.utils.data import DataLoader

import datafusion

ROWS = 25_000
NUMBERS = pa.table(
    {
        "x": np.arange(ROWS, dtype="float32"),
        "y": np.arange(ROWS) * 2,
        "word": [str(i) for i in range(ROWS)],
        "z": np.arange(ROWS, dtype="int32") % 7,
    }
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Three files of row groups of 3000."""
    folder = tmp_path_factory.mktemp("parquet")
    for part in range(3):
        start, end = (part * ROWS // 3, (part + 1) * ROWS // 3)
        table = NUMBERS.slice(start, end - start)
        pq.write_table(table, folder / f"{part}.parquet", row_group_size=3000)
    return folder


def data_set(folder):
    return ds.dataset(folder)


def datafusion_rows(folder):
    context = datafusion.SessionContext()
    context.register_parquet("numbers", str(folder))
    return context.sql("select * from numbers order by y")


SOURCES = {
    "pyarrow dataset": data_set,
    "pyarrow scanner": lambda folder: data_set(folder).scanner(batch_size=1000),
    "pyarrow reader": lambda folder: data_set(folder).scanner().to_reader(),
    "pyarrow table": pq.read_table,
    "pyarrow record batch": lambda folder: pq.read_table(folder).combine_chunks().to_batches()[0],
    "polars frame": pl.read_parquet,
    "polars frame, chunked": lambda folder: pl.concat(
        [pl.read_parquet(file) for file in sorted(folder.iterdir())], rechunk=False
    ),
    "duckdb": lambda folder: duckdb.sql(f"select * from '{folder}/*.parquet' order by y"),
    "datafusion": datafusion_rows,
    "ours": lambda folder: Array(pq.read_table(folder)),
}


@pytest.mark.parametrize("prefetch", [0, 2])
@pytest.mark.parametrize("name", SOURCES)
def test_their_rows_are_batches_of_exactly_so_many(name, folder, prefetch):
    size = 1024
    options = {"label": "y", "format": "matrix", "dtype": "float32", "prefetch": prefetch}
    source = SOURCES[name](folder)
    found = list(iter_batches(source, batch_size=size, columns=["x", "z"], **options))
    x = NUMBERS["x"].to_numpy()
    expected = np.stack([x, NUMBERS["z"].to_numpy()], axis=1).astype("float32")
    assert len(found) == -(-ROWS // size)
    for number, (features, label) in enumerate(found):
        rows = slice(number * size, (number + 1) * size)
        np.testing.assert_array_equal(np.from_dlpack(features), expected[rows])
        np.testing.assert_array_equal(np.from_dlpack(label), 2 * x[rows])


@pytest.mark.parametrize("name", SOURCES)
def test_their_rows_are_shuffled_alike(name, folder):
    options = {"batch_size": 100, "shuffle": 2000, "seed": 5}
    batches = list(iter_batches(SOURCES[name](folder), columns=["x", "y"], **options))
    x = np.concatenate([np.from_dlpack(batch["x"]) for batch in batches])
    y = np.concatenate([np.from_dlpack(batch["y"]) for batch in batches])
    np.testing.assert_array_equal(y, 2 * x)
    np.testing.assert_array_equal(np.sort(x), NUMBERS["x"].to_numpy())
    assert (x != NUMBERS["x"].to_numpy()).mean() > 0.99
    # In the same order, of whatever library and in whatever chunks, unless the order of row groups
    # is drawn too. It is the same in each run.
    source = SOURCES[name](folder) if name == "pyarrow dataset" else NUMBERS
    again = iter_batches(source, columns=["x", "y"], **options)
    np.testing.assert_array_equal(
        x, np.concatenate([np.from_dlpack(batch["x"]) for batch in again])
    )


def test_of_a_dataset_only_the_columns_that_are_wanted_are_read(folder):
    dataset = data_set(folder)
    seen = []

    class Spy:
        def scanner(self, **options):
            seen.append(options)
            return dataset.scanner(**options)

    next(iter_batches(Spy(), columns=["x", "z"], label="y"))
    next(iter_batches(Spy(), columns=["x", "y"], label="y"))
    assert seen == [{"columns": ["x", "z", "y"]}, {"columns": ["x", "y"]}]
    # All of them are too many: one is of texts.
    with pytest.raises(TypeError, match='column "word"'):
        iter_batches(dataset)


def test_a_dataset_is_read_anew_each_time_and_a_reader_once(folder):
    dataset = data_set(folder)
    for _ in range(2):
        assert len(list(iter_batches(dataset, columns=["x"], batch_size=5000))) == 5
    reader = dataset.scanner(columns=["x"]).to_reader()
    assert len(list(iter_batches(reader, batch_size=5000))) == 5
    with pytest.raises(ValueError, match="no rows left"):
        list(iter_batches(reader, batch_size=5000))


def test_a_method_of_the_object_itself_is_one_of_arrow():
    batch = pa.record_batch({"x": [1, 2]})
    (own,) = iter_batches(SimpleNamespace(__arrow_c_array__=batch.__arrow_c_array__))
    assert own["x"].tolist() == [1, 2]


def test_rows_are_taken_at_the_positions_that_are_there():
    table = pa.table({"x": ["a", "b", "c"]})
    positions = pa.array([2, 0, 1] * 400_000, "uint64")
    taken = pa.record_batch(_core._take(table, positions))
    assert taken["x"].equals(table["x"].combine_chunks().take(positions))
    assert pa.record_batch(_core._take(table, positions[:0])).num_rows == 0
    for wrong, words in [
        (pa.array([1]), "positions are of uint64"),
        (pa.array([1, None], "uint64"), "a position is null"),
        (pa.array([1, 3], "uint64"), "a position is behind the last row"),
    ]:
        with pytest.raises(ValueError, match=words):
            _core._take(table, wrong)


def test_batches_of_one_chunk_are_the_memory_of_polars():
    frame = pl.DataFrame({"x": np.arange(10.0)})
    first = next(iter_batches(frame, batch_size=4))["x"]
    assert np.from_dlpack(first).ctypes.data == frame["x"].to_numpy().ctypes.data


@pytest.mark.parametrize(
    "options",
    [
        {"columns": {"w": Categories(["w0", "w1"])}},
        {"columns": ["i"], "filter": pc.field("w") > 0},
        {"columns": ["i"], "transform": lambda batch: batch["none"]},
        {"columns": {"i": Cast("int8")}},
    ],
    ids=["words", "filter", "transform", "cast"],
)
def test_an_error_that_is_kept_gives_duckdb_its_connection_back(options):
    connection = duckdb.connect()
    query = "select i, 'w' || (i % 3) as w from range(100000) as t(i)"
    with pytest.raises(Exception, match=r"w2|no kernel|none|128") as kept:
        list(Loader(connection.sql(query), batch_size=2, **options))
    assert kept.value.__traceback__ is not None
    assert connection.sql("select 1").fetchall() == [(1,)]


def test_closing_gives_duckdb_its_connection_back():
    connection = duckdb.connect()
    rows = connection.sql("select range as x from range(1000000000)")
    with iter_batches(rows, batch_size=1000, prefetch=2) as batches:
        assert np.from_dlpack(next(batches)["x"])[-1] == 999
    assert connection.sql("select 42").fetchall() == [(42,)]


@pytest.mark.parametrize("prefetch", [0, 2])
@pytest.mark.parametrize(
    "opened",
    [
        iter_batches,
        BatchDataset,
        lambda *args, **options: DataLoader(BatchDataset(*args, **options), batch_size=None),
    ],
)
def test_breaking_gives_duckdb_its_connection_back(opened, prefetch):
    """In time for the next statement."""
    connection = duckdb.connect()
    for _ in range(20):
        rows = connection.sql("select range as x from range(1000000000)")
        for _ in opened(rows, batch_size=1000, prefetch=prefetch):
            break
        assert connection.sql("select 42").fetchall() == [(42,)]


@pytest.mark.parametrize(
    "of", [lambda rows: rows, lambda rows: [rows], lambda rows: Mix([(rows, 1)])]
)
@pytest.mark.parametrize("prefetch", [0, 2])
def test_so_does_a_loop_with_a_filter(of, prefetch):
    """Though a scan reads ahead."""
    connection = duckdb.connect()
    options = {"batch_size": 10, "filter": pc.field("x") >= 1, "prefetch": prefetch}
    for end in ["close", "break", "error"] * 7:
        rows = connection.sql("select range as x from range(500000)")
        if end == "error":
            with pytest.raises(ZeroDivisionError):
                next(iter_batches(of(rows), transform=lambda batch: 1 // 0, **options))
        else:
            batches = iter_batches(of(rows), **options)
            next(batches)
            if end == "close":
                batches.close()
            else:
                del batches
        assert connection.sql("select 42").fetchall() == [(42,)]


def test_an_error_while_a_query_runs_comes_after_the_rows_before_it():
    rows = duckdb.sql(
        "select case when range = 900000 then error('boom') else range::varchar end::bigint as x "
        "from range(1000000)"
    )
    found = until_the_error(iter_batches(rows, batch_size=1000, prefetch=2), "boom")
    assert found == list(range(len(found)))


def until_the_error(batches, words):
    """The rows before it."""
    found = []
    while True:
        try:
            found += np.from_dlpack(next(batches)["x"]).tolist()
        except ValueError as error:
            assert words in str(error)  # noqa: PT017
            return found


@pytest.mark.parametrize("prefetch", [0, 2])
def test_a_file_that_ends_too_early_gives_the_rows_that_it_has(tmp_path, prefetch):
    """An IPC stream, cut off in its fourth batch."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, pa.schema([("x", pa.int64())])) as writer:
        for number in range(5):
            writer.write(pa.record_batch({"x": np.arange(number * 100, number * 100 + 100)}))
    whole = sink.getvalue().to_pybytes()
    file = tmp_path / "cut.arrows"
    file.write_bytes(whole[: len(whole) - 1300])
    reader = pa.ipc.open_stream(pa.OSFile(str(file)))
    batches = iter_batches(reader, batch_size=64, prefetch=prefetch)
    assert until_the_error(batches, "Arrow stream failed") == list(range(300))


PROGRESS = {"batch_size": 64, "progress": True}


def test_progress_counts_rows(capsys):
    table = pa.table({"x": np.arange(200)})
    for prefetch in 0, 2:
        assert len(list(iter_batches(table, prefetch=prefetch, **PROGRESS))) == 4
        shown = capsys.readouterr().err
        assert "200/200" in shown
        assert shown.endswith("\n")
        # It ends where the reading does.
        with iter_batches(table.to_reader(64), prefetch=prefetch, **PROGRESS) as batches:
            next(batches)
        shown = capsys.readouterr().err
        assert "64.0row" in shown.replace(" ", "").replace("rows", "row")
        assert shown.endswith("\n")


def test_progress_needs_tqdm(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "tqdm"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "tqdm", None)
    with pytest.raises(ImportError, match="progress=True needs tqdm: pip install tqdm"):
        iter_batches(pa.table({"x": [1]}), progress=True)
    assert len(list(iter_batches(pa.table({"x": [1]})))) == 1
