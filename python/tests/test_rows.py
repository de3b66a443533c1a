"""One row as a tensor of its own."""

import numpy as np
import pyarrow as pa
import pytest
from annotated import Annotated, of_variable_shape
from arrow_dlpack import Array, UnsupportedError, from_dlpack, ragged, record_batch, to_tensor
from descriptions import described, leaf_address
from hypothesis import given
from hypothesis import strategies as st


@given(
    shapes=st.lists(
        st.tuples(st.integers(0, 3), st.integers(1, 3), st.integers(1, 3)), min_size=1, max_size=4
    ),
    order=st.none() | st.permutations(range(3)),
    dtype=st.sampled_from(["int8", "float32", "uint64"]),
    lists=st.sampled_from([pa.list_, pa.large_list]),
)
def test_rows_of_variable_shape_are_the_tensors_that_were_stored(shapes, order, dtype, lists):
    tensors = [np.arange(np.prod(shape)).astype(dtype).reshape(shape) for shape in shapes]
    source = of_variable_shape(tensors, order=order, lists=lists)
    array = Array(source)
    data = source.storage.field("data")
    for row, expected in enumerate(tensors):
        tensor = array.row(row, copy=False)
        found = np.from_dlpack(tensor)
        np.testing.assert_array_equal(found, expected)
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_array_equal(np.from_dlpack(array.row(row - len(tensors))), expected)
        if expected.size:
            first = data.offsets[row].as_py() * expected.itemsize
            assert described(tensor).address == leaf_address(data.values) + first
    with pytest.raises(UnsupportedError, match="its rows differ in shape: .* with row"):
        to_tensor(array)
    with pytest.raises(UnsupportedError, match="its rows differ in shape"):
        ragged(array)


def test_rows_of_variable_shape_may_be_null_or_wrong():
    source = of_variable_shape([np.ones((2, 3)), np.ones((1, 1))], names=["h", "w"])
    storage = source.storage
    null = pa.StructArray.from_arrays(
        [storage.field("data"), storage.field("shape")],
        ["data", "shape"],
        mask=pa.array([True, False]),
    )
    array = Array(Annotated(null, "arrow.variable_shape_tensor", ""))
    with pytest.raises(UnsupportedError, match="1 null"):
        array.row(0, nulls=0)
    assert array.row(1).shape == (1, 1)
    for shape, words in [
        ([2, 2], r"a row of shape \[2, 2\] has 6 values"),
        ([-2, -3], "-2"),
        ([2**31 - 1] * 2, "shape"),
        ([None, 6], "null"),
        (None, "null"),
    ]:
        shapes = pa.array([shape, [1, 1]], pa.list_(pa.int32(), 2))
        wrong = pa.StructArray.from_arrays([storage.field("data"), shapes], ["data", "shape"])
        array = Array(Annotated(wrong, "arrow.variable_shape_tensor", "{}"))
        with pytest.raises(BufferError, match=words):
            array.row(0)
        assert array.row(1).shape == (1, 1)


def test_a_row_is_the_tensor_less_its_first_axis():
    images = np.arange(24, dtype="float32").reshape(4, 3, 2)
    batch = record_batch({"x": images, "n": images[:, 0, 0]})
    for source in (
        from_dlpack(images),
        from_dlpack(images, type="fixed_size_list"),
        from_dlpack(images.transpose(0, 2, 1)),
        from_dlpack(images.transpose(0, 2, 1), type="permuted"),
        Array(pa.array(from_dlpack(images))[1:]),
    ):
        whole = np.from_dlpack(to_tensor(source))
        for row in range(-len(source), len(source)):
            found = np.from_dlpack(source.row(row, copy=False))
            np.testing.assert_array_equal(found, whole[row])
            assert found.__array_interface__["data"] == whole[row].__array_interface__["data"]
            assert found.strides == whole[row].strides
    numbers = Array(pa.array([1.5, None, 3.5]))
    assert (numbers.row(2).shape, np.from_dlpack(numbers.row(2)).item()) == ((), 3.5)
    with pytest.raises(UnsupportedError, match="1 null"):
        numbers.row(1)
    assert np.from_dlpack(numbers.row(1, nulls=-1.0)).item() == -1
    value, mask = numbers.row(1, nulls="mask")
    assert (value.shape, np.from_dlpack(mask).item()) == ((), False)
    assert np.from_dlpack(Array(pa.array(["é", "x"])).row(0)).tobytes().decode() == "é"
    assert np.from_dlpack(Array(pa.array([b"", b"x"], pa.binary_view())).row(0)).shape == (0,)
    assert np.from_dlpack(Array(pa.array([b"ab"], pa.binary(2))).row(0)).tolist() == [97, 98]
    assert np.from_dlpack(Array(pa.array([True, False])).row(1)).item() is False
    days = Array(pa.array([5], pa.date32()))
    assert np.from_dlpack(days.row(0, physical=True)).item() == 5
    assert np.from_dlpack(days.row(0, physical=True, dtype="float64")).dtype == "float64"
    with pytest.raises(UnsupportedError, match="to_tensor_dict"):
        batch.row(0)


@pytest.mark.parametrize("row", [3, -4, 2**40, -(2**40), 2**70, -(2**70)])
def test_a_row_that_is_not_there_is_an_index_error(row):
    for source in (pa.array([1, 2, 3]), pa.array(["a", "b", "c"]), pa.array([[1], [], None])):
        with pytest.raises(IndexError, match=f"no row {row} among 3"):
            Array(source).row(row)
    with pytest.raises(IndexError, match="among 0"):
        Array(pa.array([], pa.int8())).row(0)


def test_a_row_outlives_its_array(live):
    images = np.arange(24, dtype="float32").reshape(4, 3, 2)
    rows = [from_dlpack(images).row(3), Array(of_variable_shape(list(images))).row(3)]
    expected = images[3].tolist()
    del images
    assert [np.from_dlpack(row).tolist() for row in rows] == [expected] * 2
    views = [memoryview(row) for row in rows]
    del rows
    assert [view.tolist() for view in views] == [expected] * 2
    del views
    assert live() == (0, 0)
