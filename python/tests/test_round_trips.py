"""There and back, Arrow to tensor to Arrow and the other way round, with the memory staying put."""

import itertools
import math

import numpy as np
import pyarrow as pa
import pytest
from arrow_dlpack import explain, from_dlpack, to_tensor
from descriptions import EXOTIC, described, leaf, leaf_address
from frameworks import DTYPES, arrow_type
from hypothesis import example, given, settings
from hypothesis import strategies as st

UNITS = ["s", "ms", "us", "ns"]
TIMES = [
    *(pa.date32(), pa.date64(), pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")),
    *(pa.timestamp(unit, zone) for unit in UNITS for zone in (None, "UTC", "Europe/Vienna")),
    *(pa.duration(unit) for unit in UNITS),
    *(pa.decimal32(9, 2), pa.decimal32(3, -1), pa.decimal64(18, 0), pa.decimal64(12, 5)),
]
PLAIN = [*map(arrow_type, DTYPES), pa.bool8(), *TIMES]
OPAQUE = [
    pa.opaque(pa.uint16() if bits == 16 else pa.uint8(), name, "dlpack")
    for name, (_, bits) in EXOTIC.items()
] + [
    pa.opaque(pa.list_(pa.float32(), 2), "complex64", "dlpack"),
    pa.opaque(pa.list_(pa.float64(), 2), "complex128", "dlpack"),
]
BINARIES = [pa.binary(n) for n in (0, 1, 3, 16)]


extents = st.sampled_from([1, 2, 3, 1, 2, 3, 0])


@st.composite
def tensor_types(draw, values):
    shape = draw(st.lists(extents, max_size=4))
    permutation = draw(st.none() | st.permutations(range(len(shape))))
    names = [f"axis {axis}" for axis in range(len(shape))] if draw(st.booleans()) else None
    return pa.fixed_shape_tensor(draw(values), shape, names, permutation)


elements = st.sampled_from([*PLAIN, *OPAQUE, *BINARIES])
types = elements | tensor_types(elements)
types |= st.builds(pa.list_, types, extents)
types |= st.builds(pa.list_, types, extents)


def array_of(data_type, length, random):
    """An array of a type, without nulls."""
    if isinstance(data_type, pa.BaseExtensionType):
        storage = array_of(data_type.storage_type, length, random)
        if isinstance(data_type, pa.Bool8Type):
            storage = pa.array(storage.to_numpy() % 2)
        return pa.ExtensionArray.from_storage(data_type, storage)
    if isinstance(data_type, pa.FixedSizeListType):
        values = array_of(data_type.value_type, length * data_type.list_size, random)
        return pa.Array.from_buffers(data_type, length, [None], children=[values])
    bits = data_type.bit_width
    if pa.types.is_floating(data_type):
        values = random.integers(-99, 99, length).astype(f"f{bits // 8}")
    else:
        # Of either sign, and small enough for every decimal and every time of the day.
        values = random.integers(0, 100, length * bits // 8, "uint8")
        if bits in (32, 64) and not pa.types.is_unsigned_integer(data_type):
            values = random.integers(0 if "time" in str(data_type) else -99, 99, length)
            values = values.astype(f"i{bits // 8}")
        if pa.types.is_date64(data_type):
            values *= 24 * 60 * 60 * 1000
    return pa.Array.from_buffers(data_type, length, [None, pa.py_buffer(values.tobytes())])


@settings(max_examples=300)
@given(types, st.integers(0, 5), st.integers(0, 5), st.integers(0, 5), st.integers(0, 99))
def test_what_is_zero_copy_returns_as_it_was_from_where_it_was(
    data_type, before, length, behind, seed
):
    whole = array_of(data_type, before + length + behind, np.random.default_rng(seed))
    array = whole.slice(before, length)
    assert explain(array, physical=True).zero_copy
    tensor = to_tensor(array, physical=True, copy=False)
    assert tensor.readonly
    assert tensor.shape[0] == length
    assert explain(tensor, type=tensor.field).zero_copy
    back = pa.array(from_dlpack(tensor, type=tensor.field, copy=False))
    back.validate(full=True)
    assert back.type == array.type
    assert back.equals(array)
    if tensor.size:
        address = leaf_address(array)
        assert described(tensor).address == address
        assert leaf_address(back) == address


numbers = st.sampled_from(list(map(arrow_type, DTYPES)))


@given(tensor_types(numbers), st.integers(0, 4), st.integers(0, 2))
def test_the_axes_of_a_fixed_shape_tensor_are_those_that_the_specification_says(
    data_type, length, before
):
    whole = array_of(data_type, before + length, np.random.default_rng(length))
    array = whole.slice(before)
    memory = leaf(array).to_numpy().reshape(length, *data_type.shape)
    # Logical axis i is the physical axis permutation[i].
    order = data_type.permutation or range(len(data_type.shape))
    expected = memory.transpose([0, *(1 + axis for axis in order)])
    found = np.from_dlpack(to_tensor(array, copy=False))
    np.testing.assert_array_equal(found, expected)
    assert found.shape == expected.shape
    # pyarrow 26 gets the strides of cyclic permutations wrong, and does not read its own back.
    if length and list(np.argsort(order)) == list(order) and 1 not in data_type.shape:
        np.testing.assert_array_equal(found, array.to_numpy_ndarray())


dtypes = st.sampled_from([*DTYPES, "bool", "complex64", "complex128"])


@st.composite
def numpy_arrays(draw):
    """Of any rank and any strides."""
    ndim = draw(st.integers(0, 8))
    most = 5 if ndim < 4 else 3
    shape = [draw(st.integers(0 if draw(st.integers(0, 9)) == 0 else 1, most)) for _ in range(ndim)]
    steps = [draw(st.sampled_from([1, 1, 1, 1, 2, 3, -1, -2, 0])) for _ in shape]
    if draw(st.booleans()):
        steps = [abs(step) and 1 for step in steps]
    if draw(st.booleans()):
        steps = [1] * ndim
    # What is broadcast along an axis has one element there.
    base = [1 if step == 0 else n * abs(step) for n, step in zip(shape, steps, strict=True)]
    order = draw(st.permutations(range(ndim)) | st.just(range(ndim)))
    dtype = np.dtype(draw(dtypes))
    values = np.random.default_rng(draw(st.integers(0, 9))).integers(0, 100, math.prod(base))
    if dtype.kind == "c":
        values = values + 1j
    memory = (values % 2 if dtype.kind == "b" else values).astype(dtype)
    array = memory.reshape([base[axis] for axis in order]).transpose(np.argsort(order))
    array = array[tuple(slice(None, None, step or None) for step in steps)]
    array = np.broadcast_to(array, shape)
    if draw(st.booleans()) and array.size:
        # Along an axis of one element, the stride is never used.
        nonsense = st.integers(-(10**6), 10**6).map(lambda step: step * dtype.itemsize)
        strides = [
            draw(nonsense) if n == 1 else stride
            for n, stride in zip(array.shape, array.strides, strict=True)
        ]
        array = np.lib.stride_tricks.as_strided(array, array.shape, strides)
    array.flags.writeable = False
    return array


def is_dense(array):
    """Whether one row lies behind the other, each without gaps, its axes in whatever order."""
    inner = sorted(range(1, array.ndim), key=lambda axis: -array.strides[axis])
    long = [axis for axis in inner if array.shape[axis] != 1]
    return (
        array.size == 0
        or array.transpose(
            [0, *long, *(axis for axis in inner if axis not in long)] if array.ndim else []
        ).flags.c_contiguous
    )


def expected_back(array):
    """A tensor without axes is one value, and a complex number a pair."""
    if array.ndim == 0:
        array = array.reshape(1)
    if array.dtype.kind == "c":
        part = np.dtype(f"f{array.itemsize // 2}")
        array = np.ascontiguousarray(array)
        array = array.view(part).reshape(*array.shape, 2)
    return array


@settings(max_examples=300)
@given(numpy_arrays())
@example(np.zeros((0, 3)))
@example(np.broadcast_to(np.float32(1), (3, 2)))
def test_tensors_return_with_their_shape_and_values(array):
    contiguous = array.flags.c_contiguous
    plan = explain(array)
    assert plan.zero_copy == (array.size == 0 or (contiguous and array.dtype.kind != "b"))
    nbytes = -(-array.size // 8) if array.dtype.kind == "b" else array.nbytes
    assert plan.bytes_copied == (0 if plan.zero_copy else nbytes)

    arrow = from_dlpack(array)
    assert not getattr(pa.array(arrow).type, "permutation", None)
    back = np.from_dlpack(to_tensor(arrow))
    expected = expected_back(array)
    assert (back.shape, back.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_array_equal(back, expected)

    address = array.__array_interface__["data"][0]
    if not plan.zero_copy:
        with pytest.raises(BufferError, match="copying was forbidden") as caught:
            from_dlpack(array, copy=False)
        assert plan.steps[0].reasons[0] in str(caught.value)
        # On a TypeError a consumer would ask again without copy=False.
        assert not isinstance(caught.value, TypeError)
    elif array.size:
        assert leaf_address(pa.array(from_dlpack(array, copy=False))) == address
        assert back.__array_interface__["data"][0] == address
    copy = pa.array(from_dlpack(array, copy=True))
    if array.size:
        assert leaf_address(copy) != address or array.dtype.kind == "b"
    np.testing.assert_array_equal(np.from_dlpack(to_tensor(copy)), expected)


@settings(max_examples=200)
@given(numpy_arrays(), st.sampled_from(["bool8", "opaque", "fixed_size_list", "permuted"]))
def test_tensors_return_from_whatever_represents_them(array, representation):
    kind = array.dtype.kind
    if (representation == "bool8" and kind != "b") or (representation == "opaque" and kind != "c"):
        with pytest.raises(BufferError, match="cannot be represented as"):
            from_dlpack(array, type=representation)
        return
    plan = explain(array, type=representation)
    arrow = from_dlpack(array, type=representation)
    pa.array(arrow).validate(full=True)
    # All other types have their axes in order.
    contiguous = is_dense(array) if representation == "permuted" else array.flags.c_contiguous
    keeps = contiguous and not (kind == "b" and representation != "bool8")
    assert plan.zero_copy == (array.size == 0 or keeps)
    assert plan.bytes_copied in ({0} if plan.zero_copy else {array.nbytes, -(-array.size // 8)})
    back = np.from_dlpack(to_tensor(arrow))
    expected = expected_back(array) if representation != "opaque" else np.atleast_1d(array)
    np.testing.assert_array_equal(back, expected)
    assert (back.shape, back.dtype) == (expected.shape, expected.dtype)
    if plan.zero_copy and array.size:
        assert back.__array_interface__["data"] == array.__array_interface__["data"]


@given(st.sampled_from(DTYPES), st.permutations(range(5)), st.integers(0, 119))
def test_axes_in_any_order_stay_where_they_are_if_rows_do(dtype, order, seed):
    """Which permutation that takes is found, and is the right one."""
    shape = tuple(np.random.default_rng(seed).permutation([2, 3, 1, 4, 2]))
    memory = np.arange(math.prod(shape)).astype(dtype).reshape([shape[axis] for axis in order])
    array = memory.transpose(np.argsort(order))
    first = next(axis for axis in order if shape[axis] > 1)
    assert explain(array, type="permuted").zero_copy == (shape[0] == 1 or first == 0)
    column = pa.array(from_dlpack(array, type="permuted"))
    back = np.from_dlpack(to_tensor(column))
    np.testing.assert_array_equal(back, array)
    # The type itself may be asked for too.
    again = pa.array(from_dlpack(back, type=column.type, copy=False))
    assert again.equals(column)


def test_every_dtype_takes_every_row_count_without_memory():
    for dtype, shape in itertools.product(DTYPES, [(0,), (3, 0), (0, 3), (2, 0, 3)]):
        array = np.zeros(shape, dtype)
        back = np.from_dlpack(to_tensor(from_dlpack(array, copy=False), copy=False))
        assert (back.shape, back.dtype) == (shape, array.dtype)


@pytest.mark.parametrize("lengths", [range(200), range(4090, 4100), [8191, 64 * 300 + 59]])
def test_booleans_of_every_number_return(lengths):
    """Bits are packed many at a time."""
    for length in lengths:
        both = np.random.default_rng(length).integers(0, 2, 2 * length).astype(bool)
        for array in (both[:length], both[::-2]):
            back = np.from_dlpack(to_tensor(from_dlpack(array)))
            np.testing.assert_array_equal(back, array)
            assert pa.array(from_dlpack(array)).to_pylist() == array.tolist()


def test_what_was_handed_back_and_forth_is_let_go_at_any_length(live):
    """Each holds the one before it: to let go of them all is not to go as deep."""
    before = live()
    for back_and_forth in [
        from_dlpack,
        lambda array: np.from_dlpack(from_dlpack(array)),
        lambda array: to_tensor(from_dlpack(array)),
    ]:
        array = np.arange(3.0)
        for _ in range(100_000):
            array = back_and_forth(array)
        assert np.from_dlpack(array).tolist() == [0, 1, 2]
        del array
        assert live() == before
