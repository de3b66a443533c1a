"""A source that fails in an epoch: what was handed out, and where a state goes on."""

import io
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from arrow_dlpack import AsArrow, ByLength, Categories, Loader, Mix, StreamError

ROWS = 100


def opener(fails_at, lists=False):
    """Batches of ten rows, and an error in place of those from this row on."""

    def open_(index, count):
        def batches():
            for first in range(0, ROWS, 10):
                if first == fails_at:
                    raise OSError("connection lost")
                rows = {"x": np.arange(first, first + 10)}
                if lists:
                    rows["l"] = [[0] * (1 + row % 4) for row in rows["x"]]
                yield pa.record_batch(rows)

        schema = pa.schema({"x": pa.int64()} | ({"l": pa.list_(pa.int64())} if lists else {}))
        return pa.RecordBatchReader.from_batches(schema, batches())

    return open_


OPTIONS = {
    "in order": {"batch_size": 8},
    "shuffled": {"batch_size": 4, "shuffle": 20, "seed": 0},
    "one shuffle": {"batch_size": 8, "shuffle": 1000, "seed": 0},
    "whole batches": {"batch_size": 8, "drop_last": True},
    "a rank": {"batch_size": 4, "rank": 1, "world_size": 2, "uneven": "allow"},
    "chunks": {"batch_size": None},
    "alike in length": {"batch_size": ByLength(4, "l"), "shuffle": 40, "seed": 0},
}


@pytest.mark.parametrize("prefetch", [0, 2])
@pytest.mark.parametrize("fails_at", [0, 20, 60])
@pytest.mark.parametrize("name", OPTIONS)
def test_every_state_goes_on_with_each_row_once(name, fails_at, prefetch):
    options = {"framework": "numpy", "prefetch": prefetch} | OPTIONS[name]
    lists = name == "alike in length"
    if lists:
        options["columns"] = {"x": None}
    expected = [batch["x"].tolist() for batch in Loader(opener(None, lists), **options)]
    loader, states = Loader(opener(fails_at, lists), **options), []
    with pytest.raises((ValueError, OSError), match="connection lost"):
        states.extend(loader.state_dict() for _ in loader)
    states.append(loader.state_dict())
    for state in states:
        again = Loader(opener(None, lists), **options)
        again.load_state_dict(state)
        rest = [batch["x"].tolist() for batch in again]
        done = state["batch"] if state["epoch"] == 0 else len(expected)
        assert rest == expected[done:]
    assert len(states) > 1 or not fails_at or options.get("shuffle", 0) > fails_at or lists


@pytest.mark.parametrize("prefetch", [0, 2])
def test_a_loader_whose_source_failed_goes_on_behind_whole_batches(prefetch):
    loader = Loader(opener(20), batch_size=8, framework="numpy", prefetch=prefetch)
    found = []
    with pytest.raises(ValueError, match="connection lost"):
        found.extend(row for batch in loader for row in batch["x"].tolist())
    assert found == list(range(20))
    assert loader.state_dict()["batch"] == 2


@pytest.mark.parametrize("prefetch", [0, 2])
@pytest.mark.parametrize("part", [(0, 1), (0, 2), (1, 2)])
@pytest.mark.parametrize("lost", [0, 2, 5, 9])
def test_a_chunk_of_a_mix_that_an_error_cut_is_in_no_state(lost, part, prefetch):
    def batches(first, lost=None):
        for at in range(10):
            if at == lost:
                raise OSError("connection lost")
            start = first + at * 1000
            yield pa.record_batch({"x": range(start, start + 1000)})

    def loader(lost=None):
        mix = Mix([(batches(0), 1), (batches(100_000, lost), 2)])
        share = {"rank": part[0], "world_size": part[1], "uneven": "allow"}
        return Loader(mix, framework="numpy", prefetch=prefetch, **share)

    expected = [batch["x"].tolist() for batch in loader()]
    failing, steps = loader(lost), []
    with pytest.raises(OSError, match="connection lost"):
        steps.extend((batch["x"].tolist(), failing.state_dict()) for batch in failing)
    found = [rows for rows, _ in steps]
    states = [state for _, state in steps] + [failing.state_dict()]
    done = states[-1]["batch"]
    assert found[:done] == expected[:done]
    assert [len(rows) < 4096 for rows in found[done:]] in ([], [True])
    for state in states:
        again = loader()
        again.load_state_dict(state)
        assert [batch["x"].tolist() for batch in again] == expected[state["batch"] :]


STORE = """
import gc, sys, time, weakref, fsspec, pyarrow as pa, pyarrow.dataset, pyarrow.parquet as pq
from fsspec.implementations.memory import MemoryFileSystem
from arrow_dlpack import Loader

opened, is_down = MemoryFileSystem._open, []

class HttpError(Exception):
    pass

class Answered(OSError):
    def __init__(self, text, *, answer):
        super().__init__(text)

kinds = {"OSError": OSError, "KeyError": KeyError, "HttpError": HttpError, "Answered": Answered}
kind = kinds[sys.argv[2]]

def made():
    return kind("503", answer=None) if kind is Answered else kind("503")

def open_(self, path, mode="rb", **options):
    if is_down and "r" in mode:
        raise made()
    return opened(self, path, mode, **options)

class Held:
    pass

def read(loader):
    held = Held()
    kept.append(weakref.ref(held))
    return list(loader)

kept = []
MemoryFileSystem._open = open_
for at in range(4):
    with fsspec.open(f"memory://d/{at}.parquet", "wb") as file:
        pq.write_table(pa.table({"x": range(1000)}), file)
for _ in range(20):
    paths = [f"/d/{at}.parquet" for at in range(4)]
    # Of a type that the files have not: the error of a store says nothing of it.
    schema = pa.schema({"x": pa.float32()})
    dataset = pa.dataset.dataset(paths, schema, filesystem=fsspec.filesystem("memory"))
    sources = {"scanner": dataset.scanner, "dataset": lambda: dataset}
    source = sources.get(sys.argv[1], lambda: "memory://d/*.parquet")()
    loader = Loader(source, batch_size=100)
    assert len(list(loader)) == 40
    is_down.append(True)
    try:
        read(loader)
    except kind as error:
        if sys.argv[1] == "scanner":
            assert str(error) == str(made())
        elif kind is OSError:
            assert str(error) == "/d/0.parquet: 503"
        else:
            assert str(error) == str(made())
            note = "/d/0.parquet: 503" if kind is Answered else "The file is /d/0.parquet."
            assert error.__notes__ == [note]
    else:
        raise AssertionError("it was read")
    is_down.clear()
    gc.collect()
    end = time.monotonic() + 60  # until pyarrow's threads have ended the other files' reads
    while kept[-1]() is not None:
        assert time.monotonic() < end, "the error keeps what read has"
        time.sleep(0.01)
"""


@pytest.mark.parametrize("source", ["paths", "scanner", "dataset"])
@pytest.mark.parametrize("kind", ["OSError", "KeyError", "HttpError", "Answered"])
def test_a_file_system_of_python_that_fails_ends_the_epoch(source, kind):
    run = [sys.executable, "-c", STORE, source, kind]
    done = subprocess.run(run, capture_output=True, text=True, check=False, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")


class Ended(BaseException):
    """As KeyboardInterrupt, which would end pytest."""


@pytest.mark.parametrize("of", ["reader", "list", "mix", "generator", "file"])
@pytest.mark.parametrize("wish", ["codes", "filter", "field", "plain"])
def test_an_end_that_is_no_error_stays_what_it_is(of, wish, tmp_path):
    """As Arrow data in C the exception would be an ArrowInvalid, which handlers of errors take."""
    table = pa.table({"x": [1, 2], "s": ["a", "a"], "p": [{"q": 1}] * 2})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=1)

    def batches():
        yield table.to_batches()[0]
        raise Ended

    class File(io.FileIO):
        """Whose row groups are read later than its footer."""

        def read(self, *args):
            if self.tell() < 1000 and reads:
                raise Ended
            return super().read(*args)

    reads = []
    reader = pa.RecordBatchReader.from_batches(table.schema, batches())
    source = {
        "reader": lambda: reader,
        "list": lambda: [reader],
        "mix": lambda: Mix([(reader, 1)]),
        "generator": lambda: iter([reader]),
        "file": lambda: pq.ParquetFile(File(tmp_path / "a.parquet")),
    }[of]()
    options = {
        "codes": {"columns": {"x": None, "s": Categories(["a"])}},
        "filter": {"columns": ["x"], "filter": pc.field("x") > 0},
        "field": {"columns": ["p.q"]},
        "plain": {"columns": ["x"]},
    }[wish]
    loader = Loader(source, batch_size=1, **options)
    reads.append(True)
    told = StreamError if (of, wish) == ("reader", "plain") else Ended
    with pytest.raises(told, match="Ended" if told is StreamError else None):
        list(loader)


@pytest.mark.parametrize(
    "second",
    [{"x": [3, 4], "z": [5, 6]}, {"x": [3, 4]}, {"y": [5, 6], "x": [3, 4]}, {"x": [0.5], "y": [1]}],
    ids=str,
)
def test_a_batch_that_is_other_than_its_reader_says_is_no_other_columns(second):
    """pyarrow compares neither names nor types of what `from_batches` gets."""
    first = pa.record_batch({"x": [1, 2], "y": [10, 20]})
    for options in {"filter": pc.field("y") > 5}, {"columns": {"x": Categories([1, 2, 3, 4])}}:
        batches = iter([first, pa.record_batch(second)])
        reader = pa.RecordBatchReader.from_batches(first.schema, batches)
        with pytest.raises(
            ValueError, match=r"batch 1 of the reader has \(.*\), and its schema has"
        ):
            list(Loader(reader, **options))


def test_a_batch_of_a_reader_may_be_nullable_where_its_schema_is_not():
    told = pa.schema([pa.field("x", pa.int64(), nullable=False)], {"of": "the reader"})
    reader = pa.RecordBatchReader.from_batches(told, iter([pa.record_batch({"x": [1, 2, 3]})]))
    (batch,) = Loader(reader, filter=pc.field("x") > 1, batch_size=3)
    assert batch["x"].tolist() == [2, 3]


@pytest.mark.parametrize(
    ("told", "of"),
    [
        (pa.list_(pa.field("item", pa.int64(), nullable=False)), pa.list_(pa.int64())),
        (pa.list_(pa.int64()), pa.list_(pa.field("item", pa.int64(), nullable=False))),
        (pa.struct({"a": pa.int64()}), pa.struct([pa.field("a", pa.int64(), nullable=False)])),
        (pa.timestamp("us", "UTC"), pa.timestamp("us", "+00:00")),
        (
            pa.dictionary(pa.int8(), pa.string()),
            pa.dictionary(pa.int8(), pa.string(), ordered=True),
        ),
        (
            pa.map_(pa.string(), pa.int64()),
            pa.map_(pa.field("k", pa.string(), nullable=False), pa.field("v", pa.int64())),
        ),
    ],
    ids=str,
)
def test_a_batch_of_a_reader_may_have_names_within_and_zones_of_its_own(told, of):
    value = {"list": [1], "struct": {"a": 1}, "timestamp": 1, "dictionary": "a", "map": [("a", 1)]}
    value = value[str(told).partition("<")[0].partition("[")[0]]
    kind = of.value_type if pa.types.is_dictionary(of) else of
    array = pa.array([value, value], kind)
    if kind is not of:
        array = array.dictionary_encode().cast(of)
    batch = pa.record_batch({"x": pa.array([1, 2]), "v": array})
    schema = pa.schema({"x": pa.int64(), "v": told})
    for where in None, pc.field("x") > 0:
        for wrap in (lambda reader: reader), (lambda reader: [reader]):
            reader = pa.RecordBatchReader.from_batches(schema, iter([batch]))
            (made,) = Loader(wrap(reader), columns={"v": AsArrow()}, filter=where, batch_size=2)
            made = pa.array(made["v"])
            assert made.to_pylist() == array.cast(made.type).to_pylist()
