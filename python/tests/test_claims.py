"""Lengths and numbers that an argument, a pickle or a file claims: none is believed unchecked."""

import struct
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from arrow_dlpack import (
    Array,
    Loader,
    Mix,
    Tensor,
    _core,
    asdlpack,
    from_dlpack,
    from_padded,
    from_ragged,
    record_batch,
    to_tensor,
)
from arrow_dlpack.udf import Input, tensor_udf

HUGE = 1 << 62
HERE = Path(__file__).parent
TABLE = pa.table({"x": [1, 2]})


class Claims(Sequence):
    """Items, and a length that is not theirs."""

    def __init__(self, items):
        self.items = items

    def __len__(self):
        return HUGE

    def __getitem__(self, index):
        return self.items[index]


class Endless(Claims):
    def __getitem__(self, index):
        return self.items[0]


COLUMNS = dict.fromkeys(["columns", "dtype", "copy", "forms"])
COLUMNS |= {"labels": [], "as_matrix": False, "physical": False, "nulls": "error"}
ROWS = {"batch_size": 1, "drop_last": False, "shuffle": None, "shard": (0, 1), "prefetch": 0}
ROWS |= {"progress": None}


def opened(labels=(), columns=None):
    of_columns = COLUMNS | {"columns": columns, "labels": labels}
    return _core._open_batches(TABLE, of_columns, **ROWS)


def array_of(children=(), buffers=(b"1234",), rows=()):
    schema = ("i", "x", 2, {}, children, None)
    return _core._unpickle_array(schema, (1, None, buffers, rows))


#: Every argument that is a sequence, and items that it takes.
TAKERS = {
    "shape of a tensor's pickle": (
        lambda given: _core._unpickle_tensor((0, 32, 1), False, given, b"1234"),
        [1],
    ),
    "children of a type's pickle": (array_of, []),
    "buffers of an array's pickle": (lambda given: array_of(buffers=given), [b"1234"]),
    "children of an array's pickle": (lambda given: array_of(rows=given), []),
    "labels": (opened, ["x"]),
    "columns of batches": (lambda given: opened(columns=given), ["x"]),
    "names of a schema": (lambda given: _core._check_names(given, ["x"]), ["x"]),
    "names that are looked for": (lambda given: _core._check_names(["x"], given), ["x"]),
    "names of an index": (lambda given: _core._index_columns(given, b"{}"), ["x"]),
    "columns": (lambda given: to_tensor(TABLE, columns=given), ["x"]),
    "names of a matrix": (lambda given: record_batch(np.zeros((2, 1)), given), ["x"]),
}
REFUSALS = (BufferError, KeyError, TypeError, ValueError)


@pytest.mark.parametrize("taker", TAKERS)
def test_a_sequence_has_the_items_that_it_gives_and_not_its_length(taker):
    take, items = TAKERS[taker]
    take(items)
    take(tuple(items))
    take(Claims(items))
    # Of numbers, of which each is its own item: the same, where numbers are no items.
    with pytest.raises(REFUSALS):
        take(range(HUGE))


@pytest.mark.parametrize("taker", TAKERS)
def test_a_sequence_that_never_ends_is_refused(taker):
    take, items = TAKERS[taker]
    with pytest.raises(ValueError, match="more than 1048576 items"):
        take(Endless(items or [None]))


@pytest.mark.parametrize("given", ["x", {"x": 1}, {"x"}, None, 5, iter(["x"])])
@pytest.mark.parametrize("taker", ["names of a schema", "labels", "columns"])
def test_what_is_no_sequence_is_refused(taker, given):
    if taker == "columns" and given is None:
        return
    with pytest.raises(TypeError):
        TAKERS[taker][0](given)


class EndlessList(list):
    def __iter__(self):
        while True:
            yield 1


class EndlessSet(set):
    __iter__ = EndlessList.__iter__


#: What takes a tensor, and looks at what it got for the way out.
TENSORS = {
    "from_dlpack": from_dlpack,
    "mask": lambda given: from_dlpack(np.ones(2), mask=given),
    "asdlpack": asdlpack,
    "Tensor.from_dlpack": Tensor.from_dlpack,
    "Array.from_dlpack": Array.from_dlpack,
    "from_ragged": lambda given: from_ragged(given, np.array([0, 1])),
    "from_padded": lambda given: from_padded(given, np.array([1])),
    "record_batch": record_batch,
    "record_batch of columns": lambda given: record_batch({"x": given}),
}


@pytest.mark.parametrize("given", [range(HUGE), EndlessList([1]), EndlessSet([1]), Endless([1])])
@pytest.mark.parametrize("takes", TENSORS.values(), ids=TENSORS)
def test_what_is_no_tensor_is_refused_however_long_it_claims_to_be(takes, given):
    with pytest.raises(TypeError):
        takes(given)


def test_an_index_may_be_long():
    tensor = to_tensor(pa.array([1, 2]))
    with pytest.raises(BufferError, match="axes"):
        tensor[(None,) * 100_000]


SCHEMA = SimpleNamespace(names=range(HUGE), metadata=None)
SOURCES = {
    "a dataset": SimpleNamespace(scanner=None, schema=SCHEMA),
    "a file": SimpleNamespace(
        iter_batches=None,
        schema_arrow=SCHEMA,
        metadata=SimpleNamespace(num_rows=HUGE, num_row_groups=0),
    ),
}


@pytest.mark.parametrize("source", SOURCES)
def test_a_schema_of_more_names_than_there_is_memory_for_is_refused(source):
    with pytest.raises((TypeError, AttributeError)):
        next(iter(Loader(SOURCES[source], batch_size=1, columns=["x"])))


SHUFFLES = [None, (1 << 63, 1), ((1 << 64) - 1, 1)]
NUMBERS = {"batch_size": [1 << 63], "prefetch": [1 << 63], "skip": [1 << 63, (1 << 64) - 1]}
NUMBERS |= {"shard": [(1 << 63, (1 << 64) - 1)], "shuffle": SHUFFLES}
NUMBERS |= {"resume": [(1, 1, 1), (1 << 63, 0, 0), ((1 << 64) - 1,) * 3]}


@pytest.mark.parametrize("shuffle", SHUFFLES)
@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_of_batches_may_be_any(name, shuffle):
    options = ROWS | {"shuffle": shuffle}
    for number in NUMBERS[name]:
        try:
            batches = _core._open_batches(TABLE, COLUMNS, **options | {name: number})
            next(batches, None)
            batches.close()
        except (MemoryError, ValueError):
            pass


def varint(number):
    number, out = 2 * number, b""
    while number >= 128:
        number, out = number >> 7, out + bytes([number & 127 | 128])
    return out + bytes([number])


def parquet_that_claims(path, rows, claimed):
    """A file whose footer has another number of rows, wherever it has one."""
    pq.write_table(pa.table({"x": np.arange(rows)}), path)
    data = path.read_bytes()
    (length,) = struct.unpack("<I", data[-8:-4])
    body, footer = data[: -8 - length], data[-8 - length : -8]
    number = b"\x16" + varint(rows)
    assert footer.count(number) >= 3
    footer = footer.replace(number, b"\x16" + varint(claimed))
    path.write_bytes(body + footer + struct.pack("<I", len(footer)) + b"PAR1")
    return path


def test_a_file_that_claims_rows_takes_neither_time_nor_memory(tmp_path):
    """A second process, which has two minutes: ranks counted their batches one by one."""
    claims = [1 << 34, HUGE]
    paths = [
        parquet_that_claims(tmp_path / f"{claimed}.parquet", 12_345, claimed) for claimed in claims
    ]
    program = f"""
import resource
resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
import arrow_dlpack as ad
rank = {{"rank": 1, "world_size": 2}}
each = [{{}}, {{"shuffle": 10}}, rank | {{"uneven": "drop"}}, rank | {{"uneven": "repeat"}}]
for path, claimed in zip({list(map(str, paths))!r}, {claims!r}):
    for options in each:
        loader = ad.Loader(path, batch_size=10, **options)
        assert len(loader) >= claimed // 20
        try:
            for batch in loader:
                pass
        except (OSError, ValueError, MemoryError) as error:
            print(type(error).__name__)
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(
        command, cwd=HERE, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert len(done.stdout.split()) == 8, "the rows are not there"


def test_bytes_that_a_pickle_names_many_times_are_copied_once():
    """Views may have any number of buffers, and children one and the same."""
    block, views = bytes(10**6), bytes(16)
    text = ("vu", "x", 2, {}, [], None)
    many = _core._unpickle_array(text, (1, None, [views, *[block] * 50_000], []))
    assert pa.array(many).to_pylist() == [""]
    numbers, rows = ("l", "x", 2, {}, [], None), (125_000, None, [block], [])
    columns = ("+s", "x", 2, {}, [numbers] * 50_000, None)
    array = _core._unpickle_array(columns, (125_000, None, [], [rows] * 50_000))
    assert len(array) == 125_000


@pytest.mark.parametrize("shape", [(HUGE,), (HUGE, HUGE), (1 << 40,), (-1,), (1,) * 300])
def test_a_shape_that_a_pickle_claims_is_refused(shape):
    with pytest.raises(BufferError):
        _core._unpickle_tensor((0, 32, 1), False, shape, b"1234")


@pytest.mark.parametrize("rows", [1 << 31, 1 << 40, HUGE, (1 << 64) - 1])
@pytest.mark.parametrize("format", ["b", "i", "u", "U", "vu", "w:9", "n", "w:0"])
def test_rows_that_a_pickle_claims_are_there_or_refused(format, rows):
    buffers = {"n": [], "u": [b"1234", b""], "U": [b"12345678", b""]}.get(format, [b""])
    unpickle = partial(_core._unpickle_array, (format, "x", 2, {}, [], None))
    if format in ("n", "w:0") and rows <= HUGE:
        assert len(unpickle((rows, None, buffers, []))) == rows  # they take no memory
        return
    with pytest.raises(ValueError):  # noqa: PT011
        unpickle((rows, None, buffers, []))


def test_a_large_array_is_what_it_was():
    array = Array(pa.array(["a", None, "b"] * 1000))
    make, (schema, data) = array.__reduce_ex__(5)
    assert pa.array(make(schema, data)).equals(pa.array(array))


SEQUENCES = {
    "columns": (lambda x: Loader(TABLE, columns=x), "x"),
    "label": (lambda x: Loader(TABLE, label=x, columns=[]), "x"),
    "sources": (Mix, (TABLE, 1)),
    "inputs": (tensor_udf, Input("x")),
}


@pytest.mark.parametrize("name", SEQUENCES)
def test_a_sequence_of_python_s_has_the_items_that_it_gives(name):
    take, item = SEQUENCES[name]
    take(Claims([item]))
    with pytest.raises(ValueError, match=f"{name} has more than 1048576 items"):
        take(Endless([item]))


class ClaimedList(list):
    def __len__(self):
        return HUGE


def test_a_list_of_sources_has_the_items_that_it_gives(tmp_path):
    pq.write_table(TABLE, tmp_path / "a.parquet")
    of = ds.dataset(tmp_path / "a.parquet"), ds.dataset(TABLE)
    sources = [TABLE], [tmp_path / "a.parquet"], *(dataset.get_fragments() for dataset in of)
    for source in map(ClaimedList, sources):
        for data in source, Mix([(source, 1)]):
            assert [batch["x"].tolist() for batch in Loader(data)] == [[1, 2]]
