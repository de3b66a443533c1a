"""``out=``: the values that a tensor would have, in memory that the caller has."""

import array
import mmap
import sys

import arrow_dlpack
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from arrow_dlpack import to_tensor
from dlpack_conformance.abi.dlpack import CUDA
from hostile import Producer

TABLE = pa.table({"x": [1, 2, 3], "y": [0.5, 1.5, 2.5], "z": [True, False, True]})
MATRIX = np.array([[1, 0.5, 1], [2, 1.5, 0], [3, 2.5, 1]])


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
@pytest.mark.parametrize(
    "source", [TABLE, pa.concat_tables([TABLE[:1], TABLE[1:]]), TABLE.to_batches()[0]]
)
def test_a_matrix_is_written_in_the_order_and_dtype_of_out(source, dtype, order):
    out = np.zeros((3, 3), dtype, order)
    assert to_tensor(source, out=out) is out
    np.testing.assert_array_equal(out, MATRIX.astype(dtype))
    assert out.flags.f_contiguous == (order == "F")


ROWS = [[1, 2, 3], [4, 5, 6]]
TENSORS = np.array(ROWS, "int64")
OF_ROWS = {
    "fixed size": pa.array(ROWS, pa.list_(pa.int64(), 3)),
    "lists": pa.array(ROWS),
    "views": pa.array(ROWS, pa.list_view(pa.int16())),
    "chunks": pa.chunked_array([ROWS[:1], ROWS[1:]], pa.list_(pa.float32(), 3)),
    "sliced": pa.array([[7, 8, 9], *ROWS], pa.list_(pa.int64(), 3))[1:],
    "tensors": pa.FixedShapeTensorArray.from_numpy_ndarray(TENSORS),
    "binaries": pa.array([bytes(row) for row in ROWS], pa.binary(3)),
    "polars": pl.Series(ROWS, dtype=pl.Array(pl.Int64, 3)),
    "one column": pa.table({"x": pa.array(ROWS, pa.list_(pa.int64(), 3))}),
}


@pytest.mark.parametrize("source", OF_ROWS.values(), ids=OF_ROWS)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("asked", ["C", "F"])
def test_rows_of_lists_and_tensors_are_written_in_the_order_of_out(source, order, asked):
    dtype = to_tensor(source).dtype
    for out in np.zeros((2, 3), dtype, order), np.zeros((2, 3), "float64", order):
        assert to_tensor(source, order=asked, dtype=out.dtype.name, out=out) is out
        assert out.tolist() == ROWS
    nulls = pa.array([ROWS[0], None], pa.list_(pa.int64(), 3))
    filled = np.zeros((2, 3), "int64", order)
    assert to_tensor(nulls, nulls=7, out=filled).tolist() == [ROWS[0], [7, 7, 7]]


def test_out_takes_what_each_option_makes():
    out = np.zeros((3, 2))
    to_tensor(TABLE, columns=["z", "x"], out=out)
    np.testing.assert_array_equal(out, MATRIX[:, [2, 0]])
    column = np.zeros(3, "int64")
    to_tensor(pa.array([1, None, 3]), nulls=-1, out=column)
    assert column.tolist() == [1, -1, 3]
    floats = np.zeros(3, "float32")
    to_tensor(pa.array([1, None, 3]), nulls="nan", out=floats)
    np.testing.assert_array_equal(floats, [1, np.nan, 3])
    times = np.zeros(2, "int64")
    to_tensor(pa.array([5, 7], pa.timestamp("us")), physical=True, out=times)
    assert times.tolist() == [5, 7]
    cube = np.zeros((2, 2, 3), "int32")
    rows = pa.FixedShapeTensorArray.from_numpy_ndarray(
        np.arange(12, dtype="int32").reshape(2, 2, 3)
    )
    to_tensor(rows, out=cube)
    assert cube.tolist() == np.arange(12).reshape(2, 2, 3).tolist()
    lists = np.zeros((2, 2), "int16")
    to_tensor(pa.array([[1, 2], [3, 4]]), out=lists, threads=2)
    assert lists.tolist() == [[1, 2], [3, 4]]
    empty = np.zeros((0, 3))
    assert to_tensor(TABLE[:0], out=empty) is empty


def test_rows_of_a_larger_matrix_are_written_alone():
    large = np.zeros((5, 3))
    part = large[1:4]
    assert to_tensor(TABLE, out=part) is part
    np.testing.assert_array_equal(large, np.vstack([np.zeros(3), MATRIX, np.zeros(3)]))


def test_tensors_and_buffers_of_each_kind_are_written():
    torch = pytest.importorskip("torch")
    tensor = torch.zeros((3, 3), dtype=torch.float32)
    assert to_tensor(TABLE, out=tensor) is tensor
    np.testing.assert_array_equal(tensor.numpy(), MATRIX)
    bfloats = torch.zeros(3, dtype=torch.bfloat16)
    to_tensor(pa.array([1, 2, 3]), out=bfloats)
    assert bfloats.tolist() == [1, 2, 3]
    columns = torch.zeros((3, 3)).T
    to_tensor(TABLE, out=columns)
    np.testing.assert_array_equal(columns.numpy(), MATRIX)

    ours = to_tensor(pa.array([7, 8, 9]), copy=True)
    assert to_tensor(pa.array([1, 2, 3]), out=ours) is ours
    assert memoryview(ours).tolist() == [1, 2, 3]
    numbers = array.array("q", [0, 0, 0])
    to_tensor(pa.array([1, 2, 3]), out=numbers)
    assert numbers.tolist() == [1, 2, 3]
    raw = bytearray(3)
    assert to_tensor(pl.Series([1, 2, 3]), out=raw) is raw
    assert raw == b"\1\2\3"
    with mmap.mmap(-1, 24) as memory, memoryview(memory).cast("d") as view:
        to_tensor(pa.array([0.5, 1.5, 2.5]), out=view)
        assert view.tolist() == [0.5, 1.5, 2.5]


def frozen(values):
    values.flags.writeable = False
    return values


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (np.zeros((3, 2)), r"its shape is \[3, 2\], and that of the result \[3, 3\]"),
        (np.zeros(9), r"its shape is \[9\]"),
        (np.zeros((3, 6))[:, ::2], "not in row-major order without gaps"),
        (np.zeros((3, 3))[::-1], "not in row-major order without gaps"),
        (np.zeros(18)[::2], "not in row-major order without gaps"),
        (np.zeros((3, 3, 2))[:, :, 0:1], "not in row-major order without gaps"),
        (np.broadcast_to(np.zeros(3), (3, 3)), "read-only"),
        (frozen(np.zeros((3, 3))), "read-only"),
        (b"123456789", "read-only"),
        (pa.array([0.0] * 9), "read-only"),
        (to_tensor(pa.array([0.0] * 9)), "read-only"),
    ],
    ids=lambda value: None if isinstance(value, str) else type(value).__name__,
)
def test_memory_that_does_not_fit_stays_as_it_was(out, message):
    before = bytes(memoryview(np.ascontiguousarray(out)).cast("B"))
    with pytest.raises(ValueError, match=message):
        to_tensor(TABLE, out=out)
    assert bytes(memoryview(np.ascontiguousarray(out)).cast("B")) == before


def test_memory_that_no_result_is_written_to_names_what_takes_one():
    torch = pytest.importorskip("torch")
    for out in (
        np.zeros((3, 3), object),
        np.zeros((3, 3), ">f8"),
        np.zeros((3, 3), "M8[s]"),
        np.zeros((3, 3), "g"),
        np.ma.masked_array(np.zeros((3, 3)), True),
        torch.zeros((3, 3)).to_sparse(),
        torch.zeros((3, 3), requires_grad=True),
        torch.zeros((3, 3), device="meta"),
    ):
        with pytest.raises(
            BufferError, match=r"^out is .* pass one like numpy.empty\(shape"
        ) as error:
            to_tensor(TABLE, out=out)
        assert not hasattr(error.value, "__notes__")
        assert error.value.__cause__ is not None
    shape, dtype = (3, 3), "float64"
    assert to_tensor(TABLE, out=np.empty(shape, dtype)).shape == shape


def test_memory_on_a_device_stays_as_it_was():
    producer = Producer(device_type=CUDA)
    with pytest.raises(ValueError, match="on cuda:0, where the CPU cannot write"):
        to_tensor(pa.array([4.0, 5.0, 6.0]), out=producer)
    assert list(producer.memory) == [1, 2, 3]
    assert (producer.given, producer.deleted) == (1, 1)


def test_the_error_of_out_itself_is_raised():
    class Broken:
        def __dlpack__(self, **_keywords):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        to_tensor(TABLE, out=Broken())


@pytest.mark.parametrize(
    ("make", "reason", "way"),
    [
        (
            lambda: pytest.importorskip("torch").zeros(2, requires_grad=True),
            "it requires a gradient",
            "out.detach()",
        ),
        (lambda: np.zeros(2, "M8[s]"), "DLPack has no times", 'out.view("int64")'),
        (lambda: np.zeros(2, "m8[ns]"), "DLPack has no times", 'out.view("int64")'),
    ],
)
def test_memory_that_is_lent_in_another_way_names_it(make, reason, way):
    out, values = make(), pa.array([1, 2])
    with pytest.raises(BufferError, match=f"because {reason}") as error:
        to_tensor(values, out=out)
    assert f"pass {way}," in str(error.value)
    to_tensor(values, out=eval(way, {"out": out}))
    assert [int(value) for value in eval(way, {"out": out})] == [1, 2]


def test_out_of_the_wrong_kind_is_refused_before_a_stream_is_read():
    jax = pytest.importorskip("jax.numpy")
    for out, error, message in [
        ([1, 2], TypeError, "out must be a tensor with __dlpack__ or a writable buffer, got list"),
        ("text", TypeError, "out must be a tensor"),
        (jax.zeros((3, 3)), ValueError, "read-only, or comes by the ABI before DLPack 1.0"),
    ]:
        reader = TABLE.to_reader()
        with pytest.raises(error, match=message):
            to_tensor(reader, out=out)
    reader = TABLE.to_reader()
    with pytest.raises(TypeError):
        to_tensor(reader, out=3)
    assert reader.read_all().num_rows == 3


@pytest.mark.parametrize(
    ("keyword", "value"),
    [
        ("framework", "torch"), ("framework", "numpy"), ("writable", True), ("writable", False),
        ("pad", 0), ("copy", False), ("nulls", "mask"),
    ],
)  # fmt: skip
def test_what_says_how_a_result_is_made_does_not_go_with_out(keyword, value):
    with pytest.raises(TypeError, match="does not go with out=, which is the result itself"):
        to_tensor(TABLE, out=np.zeros((3, 3)), **{keyword: value})


def test_another_dtype_beside_out_is_refused():
    out = np.zeros((3, 3))
    with pytest.raises(ValueError, match="it is of float64, and the result of float32"):
        to_tensor(TABLE, dtype="float32", out=out)
    assert to_tensor(TABLE, dtype="float64", out=out) is out
    with pytest.raises(ValueError, match="does not fit|becomes|2.5"):
        to_tensor(pa.array([2.5]), out=np.zeros(1, "int64"))


@pytest.mark.parametrize(
    ("source", "options", "dtype", "message"),
    [
        (pa.array([1, None]), {"nulls": "nan"}, "i4", "make out of a dtype that does$"),
        (pa.array([1, None]), {}, "i4", 'pass a fill value or "nan" as nulls=$'),
        (pa.array([1, 2**40]), {}, "i4", "make out of a dtype that holds every value"),
        (pa.array([1.5, 2.0]), {}, "?", "make out of another dtype$"),
        (pa.array([1, 2], pa.decimal128(5, 1)), {}, "i4", "make out of a dtype of floats"),
        (pa.array([1, 2], pa.decimal64(5, 1)), {}, "i4", "physical=True .* make out of a dtype"),
        (pa.array([[1], [2, 3]]), {}, "i4", "leave out out= and pass pad="),
    ],
)  # fmt: skip
def test_a_refusal_names_what_goes_with_out(source, options, dtype, message):
    with pytest.raises((ValueError, BufferError), match=message):
        to_tensor(source, out=np.zeros(2, dtype), **options)
    with pytest.raises(TypeError, match="^max_length does not go with out="):
        to_tensor(pa.array([[1, 2]]), max_length=3, out=np.zeros((1, 2)))


def test_memory_of_the_source_is_refused():
    values = np.arange(6.0)
    table = pa.table({"x": values[:3], "y": values[3:]})
    for out in [values.reshape(3, 2), values.reshape(2, 3).T]:
        with pytest.raises(ValueError, match="some of the same memory"):
            to_tensor(table, out=out)
    with pytest.raises(ValueError, match="some of the same memory"):
        to_tensor(pa.array(values[1:4]), out=values[:3])
    assert values.tolist() == [0, 1, 2, 3, 4, 5]
    to_tensor(pa.array(values[3:]), out=values[:3])
    assert values.tolist() == [3, 4, 5, 3, 4, 5]
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 4], pa.int32()), pa.array(values[:4]))
    with pytest.raises(ValueError, match="some of the same memory"):
        to_tensor(lists, out=values[2:].reshape(2, 2))


def test_an_error_says_where_some_was_written():
    column = pa.chunked_array([[1] * 3, [2**40]])
    out = np.zeros(4, "int32")
    with pytest.raises(ValueError, match="1099511627776") as refused:
        to_tensor(column, out=out)
    assert refused.value.__notes__ == ["some of out may have been written before"]
    # Nulls are found before.
    out = np.zeros(2, "int64")
    with pytest.raises(arrow_dlpack.UnsupportedError, match="null") as refused:
        to_tensor(pa.array([1, None]), out=out)
    assert not hasattr(refused.value, "__notes__")
    assert out.tolist() == [0, 0]


def test_out_is_let_go_of():
    out = np.zeros((3, 3))
    count = sys.getrefcount(out)
    for _ in range(100):
        to_tensor(TABLE, out=out)
        with pytest.raises(ValueError, match="shape"):
            to_tensor(TABLE[:2], out=out)
    assert sys.getrefcount(out) == count
    out.resize((4, 3))  # refused while a buffer is exported
    raw = bytearray(3)
    to_tensor(pa.array([1, 2, 3], pa.uint8()), out=raw)
    raw.append(4)


def test_large_results_are_written_by_several_threads():
    count = 2_000_000
    table = pa.table({"x": np.arange(count), "y": np.arange(count) * 0.5})
    for order in "CF":
        out = np.zeros((count, 2), "float32", order)
        to_tensor(table, out=out, threads=2)
        np.testing.assert_array_equal(out[:, 0], np.arange(count, dtype="float32"))
        np.testing.assert_array_equal(out[:, 1], np.arange(count) * np.float32(0.5))
