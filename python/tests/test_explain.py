"""What explain says is what happens: which conversions copy, how much, and why."""

import ctypes
import subprocess
import sys

import arro3.core
import duckdb
import ml_dtypes
import nanoarrow
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
import torch
from arrow_dlpack import Array, explain, from_dlpack, record_batch, to_tensor
from descriptions import described, leaf, leaf_address
from dlpack_conformance.abi.dlpack import FLOAT
from hostile import Producer
from plans import ASKED, BITS, MASK, all_buffers, assert_forbidden, assert_says, case


def numbers(dtype="int64", length=4):
    return pa.array(np.arange(length).astype(dtype))


def nulls(data_type=None):
    return pa.array([1, None, 3], data_type)


def lists():
    return pa.array([[1, None], None, [5, 6]], pa.list_(pa.int16(), 2))


def bool8(values):
    return pa.ExtensionArray.from_storage(pa.bool8(), pa.array(values, pa.int8()))


def dictionary(words):
    return pa.array(words).dictionary_encode()


def adjacent():
    return record_batch(np.asfortranarray(np.ones((3, 2))), ["a", "b"])


def table():
    return pa.table({"a": [1, 2], "b": [0.5, 1.5]})


APART = "2 columns are not slices of one buffer, one behind the other"
SIDE = "2 columns are put side by side"
TOGETHER = "2 chunks are put together"


def no_values():
    return pa.table({"a": [1, 2], "b": pa.array([[], []], pa.list_(pa.int64(), 0))})


EXPORTS = {
    "numbers": case(numbers),
    "a slice": case(lambda: numbers()[1:3]),
    "no numbers": case(lambda: numbers(length=0)),
    "no numbers, cast": case(lambda: numbers(length=0), dtype="float32"),
    "numbers, copied": case(numbers, ASKED, copy=True),
    "numbers, cast": case(numbers, "int64 becomes float32", dtype="float32"),
    "numbers, cast and copied": case(numbers, "int64 becomes int8", dtype="int8", copy=True),
    "numbers, cast to what they are": case(numbers, dtype="int64"),
    "no nulls, filled": case(numbers, nulls=0),
    "no nulls, NaN": case(lambda: numbers("float32"), nulls="nan"),
    "integers, NaN": case(numbers, "int64 becomes float64", nulls="nan"),
    "no nulls, masked": case(numbers, MASK, nulls="mask"),
    "nulls, filled": case(nulls, "1 null is replaced", nulls=-1),
    "nulls, NaN": case(nulls, ["1 null is replaced", "int64 becomes float64"], nulls="nan"),
    "nulls, masked": case(nulls, MASK, nulls="mask"),
    "nulls, masked and copied": case(nulls, ASKED, MASK, nulls="mask", copy=True),
    "nulls, filled and cast": case(
        nulls, ["1 null is replaced", "int64 becomes int8"], nulls=0, dtype="int8"
    ),
    "nulls before the slice": case(lambda: nulls()[2:], nulls=0),
    "nested nulls": case(lists, "3 nulls are replaced", nulls=0),
    "nested nulls, masked": case(lists, MASK, nulls="mask"),
    "nested, sliced": case(lambda: lists()[2:]),
    "booleans": case(lambda: pa.array([True, False]), BITS),
    "no booleans": case(lambda: pa.array([], pa.bool_())),
    "booleans, cast": case(lambda: pa.array([True]), [BITS, "bool becomes int8"], dtype="int8"),
    "booleans, null": case(lambda: pa.array([None, True]), ["1 null .*", BITS], nulls=False),
    "bool8": case(lambda: bool8([0, 1])),
    "bool8 of other bytes": case(
        lambda: bool8([0, 2]), "some booleans are bytes other than 0 and 1"
    ),
    "bool8 of other bytes outside": case(lambda: bool8([2, 1])[1:]),
    "days": case(lambda: pa.array([1], pa.date32()), physical=True),
    "codes": case(lambda: dictionary(["a", "b"]), physical=True),
    "codes of two dictionaries": case(
        lambda: pa.chunked_array([dictionary(["a"]), dictionary(["b"])]),
        ["the dictionaries of its chunks are unified", TOGETHER],
        physical=True,
    ),
    "bytes": case(lambda: pa.array([b"ab", b"cd"], pa.binary(2))),
    "one chunk": case(lambda: pa.chunked_array([numbers()])),
    "one chunk and empty ones": case(lambda: pa.chunked_array([numbers()[:0], numbers()])),
    "chunks": case(lambda: pa.chunked_array([numbers(), numbers()]), TOGETHER),
    "no chunks": case(lambda: pa.chunked_array([], pa.int8())),
    "polars": case(lambda: pl.Series([1, 2, 3])),
    "a table": case(table, ["int64 becomes float64", SIDE]),
    "a table, column-major": case(table, ["int64 becomes float64", APART], order="F"),
    "a table of one column": case(table, columns=["a"]),
    "a table of no rows": case(lambda: table()[:0]),
    "a table, masked": case(table, ["int64 becomes float64", SIDE], [MASK, SIDE], nulls="mask"),
    "adjacent columns": case(adjacent, order="F"),
    "adjacent columns, row-major": case(adjacent, SIDE),
    "adjacent columns, copied": case(adjacent, ASKED, order="F", copy=True),
    "adjacent columns of a slice": case(lambda: pa.record_batch(adjacent())[1:], APART, order="F"),
    # Arrow's C interface does not say that they are one allocation.
    "adjacent columns of another library": case(
        lambda: pa.record_batch(adjacent()), APART, order="F"
    ),
    "a column and one of no values": case(no_values, r"1 columns .*", order="F"),
    "chunks of a table": case(
        lambda: pa.concat_tables([table(), table()]), ["int64 becomes float64", TOGETHER, SIDE]
    ),
}


@pytest.mark.parametrize("name", EXPORTS)
def test_what_leaves_arrow_is_copied_as_explained(name):
    make, options, reasons = EXPORTS[name]
    source = make()
    plan = explain(source, **options)
    assert_says(plan, reasons)
    assert plan == explain(source, **options)
    assert plan == explain(make(), **options)

    result = to_tensor(source, **options)
    tensors = result if isinstance(result, tuple) else (result,)
    spans = all_buffers(source)
    for tensor in tensors:
        if tensor.size:
            address = described(tensor).address
            shared = any(start <= address < end for start, end in spans)
            assert tensor.readonly == shared
    own = [tensor.nbytes for tensor in tensors if not tensor.readonly]
    assert plan.bytes_copied == sum(own)

    if options.get("copy") is None:
        forbidden = options | {"copy": False}
        if plan.zero_copy:
            assert explain(source, **forbidden) == plan
            again = to_tensor(source, **forbidden)
            assert described(again).elements == described(tensors[0]).elements
        else:
            assert_forbidden(plan, lambda: to_tensor(source, **forbidden))
            assert_forbidden(plan, lambda: explain(source, **forbidden))


def strided():
    return np.arange(12.0).reshape(3, 4)[:, ::2]


def misaligned():
    return Producer(bytes(9), ctypes.c_char, code=FLOAT, bits=32, shape=(2,), byte_offset=1)


IMPORTS = {
    "numbers": case(lambda: np.arange(3)),
    "numbers, copied": case(lambda: np.arange(3), ASKED, copy=True),
    "no numbers": case(lambda: np.zeros((0, 3))),
    "a number": case(lambda: np.array(1.5)),
    "axes": case(lambda: np.zeros((3, 4, 5))),
    "axes as lists": case(lambda: np.zeros((3, 4, 5)), type="fixed_size_list"),
    "axes in another order": case(
        lambda: np.zeros((3, 4, 5)).transpose(0, 2, 1),
        "the axes of its rows lie in another order than row-major",
    ),
    "axes in another order that the type has": case(
        lambda: np.zeros((3, 4, 5)).transpose(0, 2, 1), type="permuted"
    ),
    "no axes to permute": case(lambda: np.arange(3), type="permuted"),
    "axes in another order as lists": case(
        lambda: np.zeros((3, 4, 5)).transpose(0, 2, 1),
        "stride of axis 2 is 5 elements where contiguous data has 1",
        type="fixed_size_list",
    ),
    "rows in another order": case(
        lambda: np.zeros((3, 4)).T, "stride of axis 1 is 4 elements where contiguous data has 1"
    ),
    "every other": case(strided, "stride of axis 1 is 2 elements where contiguous data has 1"),
    "backwards": case(
        lambda: np.arange(3)[::-1], "stride of axis 0 is -1 elements where contiguous data has 1"
    ),
    "broadcast": case(
        lambda: np.broadcast_to(np.float32(1), 3),
        "stride of axis 0 is 0 elements where contiguous data has 1",
    ),
    "booleans": case(lambda: np.array([True, False]), BITS),
    "booleans as bytes": case(lambda: np.array([True, False]), type="bool8"),
    "complex": case(lambda: np.array([1j])),
    "complex as opaque": case(lambda: np.array([1j]), type="opaque"),
    "bfloat16": case(lambda: torch.ones(3, dtype=torch.bfloat16), "bfloat16 becomes float32"),
    "bfloat16 as opaque": case(lambda: torch.ones(3, dtype=torch.bfloat16), type="opaque"),
    "misaligned": case(misaligned, "the data is not aligned to 4 bytes"),
    "days": case(lambda: np.arange(3, dtype="int32"), type=pa.date32()),
    "an array's tensor": case(lambda: to_tensor(numbers())),
    "an array's tensor, cast": case(lambda: to_tensor(numbers(), dtype="int8")),
}


@pytest.mark.parametrize("name", IMPORTS)
def test_what_enters_arrow_is_copied_as_explained(name):
    make, options, reasons = IMPORTS[name]
    source = make()
    plan = explain(source, **options)
    assert_says(plan, reasons)
    array = pa.array(from_dlpack(source, **options))
    before = described(source)
    if before.elements:
        assert plan.zero_copy == (leaf_address(array) == before.address)
    if options.get("copy") is None:
        forbidden = options | {"copy": False}
        if plan.zero_copy:
            assert pa.array(from_dlpack(source, **forbidden)).equals(array)
        else:
            assert_forbidden(plan, lambda: from_dlpack(source, **forbidden))
            assert_forbidden(plan, lambda: explain(source, **forbidden))
    if plan.bytes_copied:
        elements = leaf(array)
        assert plan.bytes_copied == -(-len(elements) * elements.type.bit_width // 8)


def test_what_would_be_refused_is_refused_by_explain():
    for source, options, error in [
        (nulls(), {}, TypeError),
        (pa.array([{"x": [1]}]), {}, TypeError),
        (pa.array([1], pa.date32()), {}, TypeError),
        (nulls(), {"nulls": 0.5}, ValueError),
        (numbers(), {"dtype": "bool"}, ValueError),
        (table(), {"columns": ["c"]}, KeyError),
        (numbers(), {"type": "opaque"}, TypeError),
        (np.ones(3), {"dtype": "float32"}, TypeError),
        (np.ones(3), {"type": "opaque"}, BufferError),
        (np.ones(3), {"type": pa.int64()}, BufferError),
        (object(), {}, TypeError),
    ]:
        with pytest.raises(error):
            explain(source, **options)


def test_nothing_is_done_by_explaining(live):
    array = Array(numbers())
    explain(array, dtype="float32")
    explain(np.zeros(3))
    assert live() == (0, 0)
    wide = np.broadcast_to(np.float64(0), 2**40)
    assert explain(wide).bytes_copied == 2**43
    bfloats = np.zeros(3, ml_dtypes.bfloat16)
    with pytest.raises(BufferError):
        explain(bfloats)  # NumPy does not hand out what it does not know


def test_what_arrow_rs_moves_on_import_is_explained_and_can_be_forbidden():
    odd = pa.py_buffer(bytes(13)).slice(1)
    source = pa.Array.from_buffers(pa.int32(), 3, [None, odd])
    plan = explain(source)
    assert plan.bytes_copied == 12
    [reason] = plan.steps[0].reasons
    assert reason == "buffers of the Arrow structure are not aligned to their values"
    assert_forbidden(plan, lambda: to_tensor(source, copy=False))


READ_ONCE = {
    "pyarrow": lambda: table().to_reader(),
    "pyarrow, of a dataset": lambda: ds.dataset(table()).scanner().to_reader(),
    "duckdb": lambda: duckdb.sql("select 1 as a, 0.5::double as b").arrow(),
    "nanoarrow": lambda: nanoarrow.ArrayStream(table()),
    "nanoarrow, in C": lambda: nanoarrow.c_array_stream(table()),
    "arro3": lambda: arro3.core.RecordBatchReader.from_arrow(table()),
    "arro3, of a column": lambda: arro3.core.ArrayReader.from_arrow(pa.chunked_array([[1, 2]])),
}


@pytest.mark.parametrize("name", READ_ONCE)
@pytest.mark.parametrize("options", [{}, {"ragged": True}, {"columns": ["a"]}])
def test_what_is_read_once_is_not_read_to_be_explained(name, options):
    reader = READ_ONCE[name]()
    with pytest.raises(TypeError, match=r"read only once.*pyarrow\.table"):
        explain(reader, **options)
    assert to_tensor(reader).size > 0


@pytest.mark.parametrize(
    "source",
    [
        table(),
        table().to_batches()[0],
        pl.from_arrow(table()),
        duckdb.sql("select 1 as a"),
        arro3.core.Table.from_arrow(table()),
        nanoarrow.Array(numbers()),
        Array(table()),
    ],
    ids=lambda source: type(source).__module__,
)
def test_a_table_is_explained_as_often_as_one_likes(source):
    assert explain(source) == explain(source)
    assert to_tensor(source).shape[0] > 0


LISTS = {
    "lists": pa.array([[1, 2], [3]]),
    "texts": pa.array(["to", "be"]),
    "views": pa.array([b"a"], pa.binary_view()),
    "chunks": pa.chunked_array([[["a"]], [["b"]]]),
}


@pytest.mark.parametrize("name", LISTS)
def test_lists_are_explained_as_they_are_converted(name):
    source = LISTS[name]
    for convert in (explain, to_tensor):
        with pytest.raises(TypeError, match="use ragged"):
            convert(source)
        # ragged takes no lists of texts.
        way_out = "flatten the lists first" if name == "chunks" else "alone to ragged"
        with pytest.raises(TypeError, match=f'column "x": .*{way_out}'):
            convert(pa.table({"x": source}))


def test_of_ragged_the_offsets_are_explained_too():
    source = pa.array([[1, 2], [3]])
    assert explain(source, ragged=True).zero_copy
    assert_says(
        explain(source, ragged=True, offset_type="int64", dtype="int8"),
        [["int64 becomes int8"], ["int32 becomes int64"]],
    )
    for source, options in [
        (numbers(), {"ragged": True}),
        (table(), {"ragged": True}),
        (LISTS["lists"], {"ragged": True, "order": "F"}),
        (LISTS["lists"], {"ragged": True, "columns": ["a"]}),
        (numbers(), {"offset_type": "int64"}),
        (np.ones(3), {"ragged": True}),
        (np.ones(3), {"offset_type": "int64"}),
    ]:
        with pytest.raises(TypeError):
            explain(source, **options)


GROWTH = """
import resource

import numpy as np
import pyarrow as pa
from arrow_dlpack import explain, ragged, to_tensor

# 256 MB of zeros, of which the system has given none yet.
rows = 1 << 25
zeros = pa.py_buffer(np.zeros(rows))
numbers = pa.Array.from_buffers(pa.float64(), rows, [None, zeros])
lists = pa.Array.from_buffers(pa.list_(pa.float64(), 2), rows // 2, [None], children=[numbers])
validity = pa.py_buffer(np.zeros(rows // 8, "uint8"))
nulls = pa.Array.from_buffers(pa.float64(), rows, [validity, zeros])
rows_of_4 = pa.LargeListArray.from_arrays(pa.array([0, 4, rows]), numbers)
none = pa.array([], pa.int8())
empty = pa.Array.from_buffers(pa.list_(pa.int8()), rows, [None, zeros], children=[none])
texts = pa.Array.from_buffers(pa.string_view(), rows // 2, [None, zeros])
table = pa.table({"x": numbers, "y": nulls})
cases = [
    (numbers, {"dtype": "float32"}),
    (lists, {"nulls": "mask"}),
    (nulls, {"nulls": 0}),
    (nulls, {"nulls": "mask"}),
    (pa.chunked_array([numbers, nulls]), {"nulls": "nan"}),
    (table, {"nulls": 0}),
    (table, {"nulls": "mask", "order": "F"}),
]

def refused(convert, *arguments, **options):
    try:
        convert(*arguments, **options, copy=False)
    except BufferError:
        return True

before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for source, options in cases:
    assert explain(source, **options).bytes_copied >= rows
    assert refused(to_tensor, source, **options)
cases = [
    (pa.chunked_array([rows_of_4, rows_of_4]), {}),
    (rows_of_4[1:], {}),
    (empty, {"offset_type": "int64"}),
    (texts, {}),
]
for source, options in cases:
    assert explain(source, **options, ragged=True).bytes_copied >= 16
    assert refused(ragged, source, **options)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in KiB on Linux")
def test_what_is_explained_or_refused_takes_no_memory_that_grows_with_the_data():
    grown = subprocess.run(
        [sys.executable, "-c", GROWTH], capture_output=True, text=True, check=True
    )
    assert int(grown.stdout) < 20e6, "of the 32 MB and more that each copy would take"
