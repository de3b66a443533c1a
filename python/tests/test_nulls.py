"""Nulls at every level of a column, by policy."""

import math

import numpy as np
import pyarrow as pa
import pytest
from arrow_dlpack import Array, explain, to_tensor, to_tensor_dict
from descriptions import described
from frameworks import DTYPES, arrow_type
from hypothesis import example, given, settings
from hypothesis import strategies as st

LEAVES = [*map(arrow_type, DTYPES), pa.bool_(), pa.bool8()]


@st.composite
def tensors_of(draw, values):
    shape = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    permutation = draw(st.none() | st.permutations(range(len(shape))))
    return pa.fixed_shape_tensor(draw(values), shape, permutation=permutation)


leaves = st.sampled_from(LEAVES)
types = leaves | st.builds(pa.list_, leaves, st.integers(0, 3))
types |= st.builds(pa.list_, types, st.integers(1, 3))
types |= tensors_of(leaves | st.builds(pa.list_, leaves, st.integers(1, 2)))


def array_of(data_type, length, random, nulls):
    """Nulls at each level, and something under each of them."""
    if isinstance(data_type, pa.BaseExtensionType):
        storage = array_of(data_type.storage_type, length, random, nulls)
        return pa.ExtensionArray.from_storage(data_type, storage)
    valid = random.random(length) >= nulls
    validity = pa.py_buffer(np.packbits(valid, bitorder="little").tobytes()) if nulls else None
    if isinstance(data_type, pa.FixedSizeListType):
        values = array_of(data_type.value_type, length * data_type.list_size, random, nulls)
        return pa.Array.from_buffers(data_type, length, [validity], children=[values])
    numbers = random.integers(0, 2, length).astype(bool)
    if not pa.types.is_boolean(data_type):
        numbers = random.integers(0, 100, length).astype(data_type.to_pandas_dtype())
    values = pa.array(numbers, data_type).buffers()[1]
    return pa.Array.from_buffers(data_type, length, [validity, values])


def row_shape(data_type):
    """As it lies in memory, and the order of its axes."""
    if isinstance(data_type, pa.FixedShapeTensorType):
        order = list(data_type.permutation or range(len(data_type.shape)))
        shape, inner, element = row_shape(data_type.value_type)
        return [*data_type.shape, *shape], [*order, *(a + len(order) for a in inner)], element
    if isinstance(data_type, pa.FixedSizeListType):
        shape, inner, element = row_shape(data_type.value_type)
        return [data_type.list_size, *shape], [0, *(a + 1 for a in inner)], element
    if isinstance(data_type, pa.Bool8Type):
        return [], [], "bool"
    return [], [], "bool" if pa.types.is_boolean(data_type) else data_type.to_pandas_dtype()


def leaves_of(value, count):
    """The elements of a nested value as pyarrow sees it; of one that is null, so many nulls."""
    if value is None:
        return [None] * count
    if not isinstance(value, list):
        return [value]
    return [leaf for item in value for leaf in leaves_of(item, count // len(value))]


def storage_of(array):
    """Nested extension types are none of pyarrow's lists' business."""
    if isinstance(array, pa.ChunkedArray):
        return [row for chunk in array.chunks for row in storage_of(chunk)]
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if isinstance(array, pa.FixedSizeListArray) and array.type.list_size:
        size = array.type.list_size
        values = storage_of(array.values.slice(array.offset * size, len(array) * size))
        valid = array.is_valid().to_pylist()
        return [values[i * size : i * size + size] if ok else None for i, ok in enumerate(valid)]
    return array.to_pylist()


def expected(array):
    """(values, mask) with zeros for nulls."""
    shape, order, dtype = row_shape(array.type)
    count = math.prod(shape)
    rows = [leaves_of(row, count) if count else [] for row in storage_of(array)]
    valid = np.array([[leaf is not None for leaf in row] for row in rows], bool)
    values = np.array([[leaf or 0 for leaf in row] for row in rows]).astype(dtype)
    axes = [0, *(axis + 1 for axis in order)]
    return tuple(a.reshape(len(array), *shape).transpose(axes) for a in (values, valid))


def chunked(array, at):
    return pa.chunked_array([array[:at], array[at:]], array.type)


@settings(max_examples=300)
@given(
    data_type=types,
    length=st.sampled_from([0, 1, 3, 8, 63, 65, 130]),
    nulls=st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    before=st.integers(0, 9),
    seed=st.integers(0, 99),
)
def test_every_policy_gives_the_values_that_pyarrow_sees(data_type, length, nulls, before, seed):
    whole = array_of(data_type, before + length, np.random.default_rng(seed), nulls)
    array = whole[before:]
    values, valid = expected(array)
    for source in (array, chunked(array, length // 2), Array(array)):
        for fill in (0, 1):
            found = np.from_dlpack(to_tensor(source, nulls=fill))
            filled = np.where(valid, values, np.array(fill).astype(values.dtype))
            np.testing.assert_array_equal(found, filled)
            assert (found.shape, found.dtype) == (filled.shape, filled.dtype)

        pair = to_tensor(source, nulls="mask")
        found, mask = map(np.from_dlpack, pair)
        np.testing.assert_array_equal(mask, valid)
        assert (mask.dtype, mask.shape) == (bool, valid.shape)
        np.testing.assert_array_equal(found[valid], values[valid])

        found = np.from_dlpack(to_tensor(source, nulls="nan"))
        small = values.dtype.kind == "b" or values.dtype.itemsize < 4
        wide = values.dtype if values.dtype.kind == "f" else "f4" if small else "f8"
        np.testing.assert_array_equal(found, np.where(valid, values.astype(wide), np.nan))
        assert found.dtype == wide

        if valid.all() and valid.size:
            np.testing.assert_array_equal(np.from_dlpack(to_tensor(source)), values)
        elif valid.size:
            words = f"has {(~valid).sum()} nulls? in {valid.size} values"
            with pytest.raises(TypeError, match=words):
                to_tensor(source)


@pytest.mark.parametrize("length", [*range(70), 127, 128, 129, 4095, 4096, 8200])
def test_masks_of_every_length_and_offset(length):
    valid = np.random.default_rng(length).integers(0, 2, length + 9).astype(bool)
    whole = pa.array(np.arange(length + 9), mask=~valid)
    for before in (0, 1, 7, 8, 9):
        array = whole[before : before + length]
        _, mask = to_tensor(array, nulls="mask")
        np.testing.assert_array_equal(np.from_dlpack(mask), valid[before : before + length])
        filled = np.from_dlpack(to_tensor(array, nulls=-1))
        np.testing.assert_array_equal(filled, array.fill_null(-1).to_numpy())


NUMBERS = st.one_of(
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.sampled_from([s * 2**p + d for s in (1, -1) for p in (7, 8, 31, 63, 64) for d in (-1, 0)]),
    st.floats(),
    st.sampled_from([65504.0, 65520.0, 3.5e38, -0.0, 1e-50, 2.0**63, float(2**64)]),
)


def holds(dtype, value):
    """Whether the dtype has this value: fractions may be rounded, but nothing becomes infinite."""
    if dtype == "bool":
        return value in (0, 1)
    kind = np.dtype(dtype).kind
    if kind in "iu":
        whole = not isinstance(value, float) or (math.isfinite(value) and value.is_integer())
        limits = np.iinfo(dtype)
        return whole and limits.min <= int(value) <= limits.max
    if isinstance(value, float) and not math.isfinite(value):
        return True
    with np.errstate(over="ignore"):
        try:
            rounded = np.array(float(value), dtype).item()
        except OverflowError:
            return False
    whole = not isinstance(value, float) or value.is_integer()
    return rounded == value if whole else math.isfinite(rounded)


@settings(max_examples=500)
@given(st.sampled_from([*DTYPES, "bool"]), NUMBERS)
@example("float32", 2**24 + 1)
@example("uint64", float(2**64))
@example("int64", float(2**63))
@example("bool", 1.0)
def test_a_fill_value_that_does_not_fit_is_an_error(dtype, value):
    array = pa.array([None, True]) if dtype == "bool" else pa.array([None, 1], arrow_type(dtype))
    if holds(dtype, value):
        for given_as in (value, np.array(value)[()] if abs(value) < 2**63 else value):
            found = np.from_dlpack(to_tensor(array, nulls=given_as))
            with np.errstate(over="ignore"):
                np.testing.assert_array_equal(found[0], np.array(value).astype(dtype))
    else:
        # Whether or not there is a null: code that works must not depend on the data.
        for source in (array, array[1:], chunked(array, 1), pa.table({"x": array})):
            words = f"nulls cannot be filled with .*: {dtype} .* nulls or not; pass dtype="
            with pytest.raises(ValueError, match=words):
                to_tensor(source, nulls=value)
            with pytest.raises(ValueError, match=f'column "x": {words}'):
                to_tensor_dict(pa.table({"x": array[1:]}), nulls=value)
            with pytest.raises(ValueError, match="nulls cannot be filled with"):
                explain(source, nulls=value)


@pytest.mark.parametrize("value", [None, "0", [0], 1j, np.array([1, 2]), {}])
def test_what_is_no_policy_is_an_error(value):
    with pytest.raises((TypeError, ValueError), match="nulls"):
        to_tensor(pa.array([1]), nulls=value)


def test_nulls_outside_of_the_slice_do_not_count():
    array = pa.array([None, 1, 2, None])
    assert to_tensor(array[1:3], copy=False).shape == (2,)
    lists = pa.array([[None, 1], [2, 3], None], pa.list_(pa.int8(), 2))
    assert np.from_dlpack(to_tensor(lists[1:2], copy=False)).tolist() == [[2, 3]]
    deep = pa.array([[[1, None]], [[2, 3]], [None]], pa.list_(pa.list_(pa.int8(), 2), 1))
    assert np.from_dlpack(to_tensor(deep[1:2], copy=False)).tolist() == [[[2, 3]]]
    assert to_tensor(array[1:3], nulls=0, copy=False).readonly
    assert explain(array[1:3], nulls="mask").bytes_copied == 2


def test_meanings_stored_as_numbers_have_nulls_too():
    for data_type in (pa.date32(), pa.timestamp("ns", "UTC"), pa.duration("s"), pa.decimal64(9, 2)):
        bits = data_type.bit_width
        array = pa.array([1, None], f"int{bits}").view(data_type)
        found = np.from_dlpack(to_tensor(array, physical=True, nulls=-1))
        assert (found.tolist(), found.dtype) == ([1, -1], f"int{bits}")
        _, mask = to_tensor(array, physical=True, nulls="mask")
        assert np.from_dlpack(mask).tolist() == [True, False]
    binary = pa.array([b"ab", None], pa.binary(2))
    assert np.from_dlpack(to_tensor(binary, nulls=7)).tolist() == [[97, 98], [7, 7]]
    opaque = pa.opaque(pa.uint16(), "bfloat16", "dlpack")
    half = pa.ExtensionArray.from_storage(opaque, pa.array([0x3F80, None], pa.uint16()))
    assert described(to_tensor(half, nulls=-2.0)).elements == b"\x80\x3f\x00\xc0"


def test_bool8_becomes_zeros_and_ones_whatever_its_bytes():
    every = pa.array(range(-128, 128), pa.int8())
    array = pa.ExtensionArray.from_storage(pa.bool8(), every)
    found = np.from_dlpack(to_tensor(array))
    assert found.view("uint8").tolist() == [int(byte != 0) for byte in range(-128, 128)]
    assert explain(array).steps[0].reasons == ["some booleans are bytes other than 0 and 1"]
    assert explain(array[128:130]).zero_copy
    with pytest.raises(BufferError, match="bytes other than 0 and 1"):
        to_tensor(array, copy=False)


@pytest.mark.parametrize(("dtype", "part"), [("complex64", "float32"), ("complex128", "float64")])
@pytest.mark.parametrize("length", [1, 3, 70, 5000])
def test_complex_numbers_are_filled_whole(dtype, part, length):
    random = np.random.default_rng(length)
    values, valid = random.integers(0, 9, 2 * length).astype(part), random.random(length) < 0.5
    pairs = pa.FixedSizeListArray.from_arrays(pa.array(values), 2, mask=pa.array(~valid))
    data_type = pa.opaque(pairs.type, dtype, "dlpack")
    array = pa.ExtensionArray.from_storage(data_type, pairs)
    expected = np.where(valid, values.view(dtype), 2)
    np.testing.assert_array_equal(np.from_dlpack(to_tensor(array, nulls=2)), expected)
    both = np.from_dlpack(to_tensor(pa.chunked_array([array, array]), nulls=2))
    np.testing.assert_array_equal(both, [*expected, *expected])
    matrix = np.from_dlpack(to_tensor(pa.table({"a": array, "b": array}), nulls=2))
    np.testing.assert_array_equal(matrix, np.stack([expected, expected], axis=1))
    found = np.from_dlpack(to_tensor(array, nulls="nan"))
    np.testing.assert_array_equal(found[valid], expected[valid])
    assert np.isnan(found[~valid]).all()
