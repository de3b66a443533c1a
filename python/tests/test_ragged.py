"""Rows of different lengths as values and offsets."""

import itertools
from functools import partial

import arro3.core
import jax
import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pytest
import torch
from arrow_dlpack import (
    Array,
    Loader,
    MaskedRagged,
    Ragged,
    explain,
    from_ragged,
    ragged,
    to_tensor,
)
from descriptions import described, leaf_address
from hypothesis import given, settings
from hypothesis import strategies as st
from plans import ASKED, BITS, all_buffers, assert_forbidden, assert_says, case
from ragged_rows import BYTES, TEXTS, ragged_arrays


def numpy_rows(array):
    """What pyarrow sees in each row; nothing in a null one."""
    if array.type in TEXTS or array.type in BYTES:
        rows = [value or "" for value in array.to_pylist()]
        rows = [row.encode() if isinstance(row, str) else row for row in rows]
        return [np.frombuffer(row, "uint8") for row in rows], np.uint8
    item = array.type.value_type
    shape = (-1, 2) if pa.types.is_fixed_size_list(item) else -1
    dtype = "int16" if pa.types.is_fixed_size_list(item) else np.dtype(item.to_pandas_dtype())
    dtype = bool if pa.types.is_boolean(item) else dtype
    return [np.array(row or [], dtype).reshape(shape) for row in array.to_pylist()], dtype


def offsets_type(data_type):
    large = (pa.LargeListType, pa.LargeListViewType)
    small = isinstance(data_type, (pa.ListType, pa.ListViewType))
    small |= data_type in (pa.string(), pa.binary())
    assert small or isinstance(data_type, large) or data_type in (*TEXTS, *BYTES)
    return "int32" if small else "int64"


@settings(max_examples=200)
@given(ragged_arrays(), st.sampled_from([None, "int32", "int64"]))
def test_values_and_offsets_are_those_of_pyarrows_rows(array, offset_type):
    rows, dtype = numpy_rows(array)
    width = (0, 2) if pa.types.is_nested(array.type) and rows and rows[0].ndim == 2 else (0,)
    expected = np.concatenate([np.zeros(width, dtype), *rows]) if rows else None
    ends = np.cumsum([0, *map(len, rows)])
    for source in (array, pa.chunked_array([array[:2], array[2:]], array.type), Array(array)):
        result = ragged(source, nulls="mask", offset_type=offset_type)
        assert isinstance(result, MaskedRagged)
        values, offsets, mask = map(np.from_dlpack, result)
        assert offsets.tolist() == ends.tolist()
        assert offsets.dtype == (offset_type or offsets_type(array.type))
        assert mask.tolist() == array.is_valid().to_pylist()
        assert values.dtype == dtype
        if expected is not None:
            np.testing.assert_array_equal(values, expected)
            assert values.shape == expected.shape
        for null in (0, "nan"):
            if null == "nan" and values.dtype.kind != "f":
                continue
            filled = ragged(source, nulls=null, offset_type=offset_type)
            np.testing.assert_array_equal(np.from_dlpack(filled.values), values)
            np.testing.assert_array_equal(np.from_dlpack(filled.offsets), offsets)
        if array.null_count:
            with pytest.raises(TypeError, match=f"has {array.null_count} null"):
                ragged(source)
        else:
            plain = ragged(source, offset_type=offset_type)
            assert isinstance(plain, Ragged)
            np.testing.assert_array_equal(np.from_dlpack(plain.values), values)
            np.testing.assert_array_equal(np.from_dlpack(plain.offsets), offsets)
    for row, values in enumerate(rows):
        if array[row].is_valid:
            np.testing.assert_array_equal(np.from_dlpack(Array(array).row(row)), values)
            np.testing.assert_array_equal(np.from_dlpack(Array(array).row(row - len(rows))), values)
        else:
            with pytest.raises(TypeError, match="1 null"):
                Array(array).row(row, nulls=0)


@given(ragged_arrays())
def test_the_plan_of_rows_is_what_happens(array):
    """By the rules of the format, rather than by what the library says of itself."""
    if array.null_count:
        with pytest.raises(TypeError, match="null"):
            explain(array, ragged=True)
        return
    plan = explain(array, ragged=True)
    values, offsets = ragged(array)
    assert plan.bytes_copied == sum(t.nbytes for t in (values, offsets) if not t.readonly)
    if "view" not in str(array.type):
        booleans = pa.types.is_nested(array.type) and pa.types.is_boolean(array.type.value_type)
        assert values.readonly == (values.size == 0 or not booleans)
        if len(array):
            buffers = array.buffers()
            own = np.frombuffer(buffers[1], offsets_type(array.type))[array.offset :]
            assert offsets.readonly == (own[0] == 0)
            if offsets.readonly:
                assert described(offsets).address == own.ctypes.data
        if values.size and not booleans:
            is_list = pa.types.is_nested(array.type)
            start = leaf_address(array.values) if is_list else buffers[2].address
            width = values.nbytes // values.shape[0]
            assert described(values).address == start + int(own[0]) * width
    if plan.zero_copy:
        for shared, tensor in zip(ragged(array, copy=False), (values, offsets), strict=True):
            # Of no rows there is no memory to speak of.
            assert described(shared).address == described(tensor).address or len(array) == 0
    else:
        with pytest.raises(BufferError, match="copying was forbidden") as caught:
            ragged(array, copy=False)
        assert plan.steps[0].reasons[0] in str(caught.value)
        assert not isinstance(caught.value, TypeError)
    for tensor in ragged(array, copy=True):
        assert not tensor.readonly


def test_what_lies_as_it_should_is_shared():
    for array in (
        pa.array([[1, 2], [], [3]]),
        pa.array([[1.5], [2.5]], pa.large_list(pa.float32())),
        pa.array(["to", "be"]),
        pa.array([b"or", b"not"], pa.large_binary()),
    ):
        assert explain(array, ragged=True).zero_copy
        assert all(tensor.readonly for tensor in ragged(array, copy=False))
    sliced = pa.array([[1, 2], [3], [4]])[1:]
    plan = explain(sliced, ragged=True)
    assert [step.reasons for step in plan.steps] == [["the offsets begin at 2, not at 0"]]
    assert plan.bytes_copied == 12
    values = ragged(sliced).values
    assert described(values).address == leaf_address(sliced.values) + 16
    # Views in order need offsets, but not values.
    views = pa.ListViewArray.from_arrays([1, 2, 4], [1, 2, 1], pa.array([0, 1, 2, 3, 4]))
    assert ragged(views).values.readonly
    assert np.from_dlpack(ragged(views).offsets).tolist() == [0, 1, 3, 4]


EMPTY = {
    "texts": pa.array(["a"]),
    "large texts": pa.array(["a"], pa.large_string()),
    "binaries": pa.array([b"a"], pa.large_binary()),
    "lists": pa.array([[1]]),
    "lists of texts": pa.array([["a"]]),
    "lists of no texts": pa.ListArray.from_arrays([0, 0], pa.array(["a"])[1:]),
    "views": pa.array(["a"], pa.string_view()),
    "list views": pa.array([[1]], pa.list_view(pa.int8())),
}


@pytest.mark.parametrize("kind", EMPTY)
def test_slices_without_rows_are_empty_wherever_they_begin(kind):
    """What their first offset counts is not theirs."""
    array = EMPTY[kind][1:]
    assert len(Array(array)) == 0
    assert pa.array(Array(array)).to_pylist() == []
    batch = pa.record_batch({"rows": array, "x": pa.array([7])[1:]})
    assert np.from_dlpack(to_tensor(batch, columns=["x"])).shape == (0, 1)
    whole = pa.record_batch({"rows": EMPTY[kind], "x": [7] * len(EMPTY[kind])})
    assert pa.record_batch(Array(whole[1:])).equals(whole[1:])
    if "view" not in kind:
        # Of arrow-rs, whose slices have no offset but buffers that begin elsewhere.
        assert len(Array(arro3.core.Array(EMPTY[kind]).slice(1, 0))) == 0
    if "of" not in kind:
        values, offsets = ragged(array)
        assert (values.size, np.from_dlpack(offsets).tolist()) == (0, [0])


@given(
    st.sampled_from([pa.ListViewArray, pa.LargeListViewArray]),
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=8),
    st.integers(0, 3),
)
def test_views_may_lie_anywhere_and_overlap(views, ranges, start):
    memory = np.arange(10, dtype="int16") * 3
    offsets, sizes = [a for a, _ in ranges], [min(n, 10 - a) for a, n in ranges]
    kind = pa.int32() if views is pa.ListViewArray else pa.int64()
    array = views.from_arrays(pa.array(offsets, kind), pa.array(sizes, kind), pa.array(memory))
    array = array[start:]
    values, ends = map(np.from_dlpack, ragged(array))
    rows = [memory[a : a + n] for a, n in zip(offsets, sizes, strict=True)][start:]
    np.testing.assert_array_equal(values, np.concatenate([memory[:0], *rows]))
    assert ends.tolist() == [0, *itertools.accumulate(map(len, rows))]


def test_nulls_among_the_values_go_by_policy():
    array = pa.array([[1, None], None, [], [3]])
    with pytest.raises(TypeError, match="null"):
        ragged(array)
    found = ragged(array, nulls=-1)
    assert np.from_dlpack(found.values).tolist() == [1, -1, 3]
    assert np.from_dlpack(found.offsets).tolist() == [0, 2, 2, 2, 3]
    found = np.from_dlpack(ragged(array, nulls="nan").values)
    np.testing.assert_array_equal(found, [1, np.nan, 3])
    # A mask is of rows, and says nothing of what is in them.
    with pytest.raises(TypeError, match="1 null"):
        ragged(array, nulls="mask")
    with pytest.raises(ValueError, match="cannot be filled"):
        ragged(array, nulls=0.5)
    # Those that no row has do not count.
    assert np.from_dlpack(ragged(array[2:]).values).tolist() == [3]
    assert np.from_dlpack(ragged(array[2:], dtype="float32").values).dtype == "float32"


def test_offsets_that_do_not_fit_are_an_error_and_never_another_number():
    size = 2**31 + 10
    huge = pa.Array.from_buffers(pa.binary(0), size, [None, pa.py_buffer(b"")])
    array = pa.Array.from_buffers(
        pa.large_list(pa.binary(0)),
        2,
        [None, pa.py_buffer(np.array([0, 5, size], "int64").tobytes())],
        children=[huge],
    )
    assert np.from_dlpack(ragged(array).offsets).tolist() == [0, 5, size]
    with pytest.raises((ValueError, BufferError), match=f'{size} does not fit int32.*"int64"'):
        ragged(array, offset_type="int32")
    assert np.from_dlpack(ragged(array[:1], offset_type="int32").offsets).tolist() == [0, 5]
    for wrong in ("int16", "uint32", "float64"):
        with pytest.raises((ValueError, BufferError), match="int32 or int64"):
            ragged(array, offset_type=wrong)


@pytest.mark.parametrize("kind", [pa.list_(pa.timestamp("ms")), pa.large_list(pa.int8())])
def test_values_know_the_column_that_they_were_made_of(kind):
    column = pa.array([[1, 2], [], [3]], pa.large_list(pa.int64())).cast(kind)
    values, offsets = ragged(column, physical=True)
    padded = to_tensor(column, pad=0, physical=True)
    (batch,) = Loader(pa.table({"x": column}), physical=True)
    for made in values, padded.values, batch["x"].values:
        assert pa.field(made.field).type == kind
    assert (offsets.field, padded.lengths.field) == (None, None)
    assert pa.array(from_ragged(values, offsets, type=values.field)).equals(column)


@settings(max_examples=20)
@given(ragged_arrays(st.sampled_from([pa.list_(pa.float32()), pa.large_list(pa.int64())])))
def test_pytorch_takes_them_as_nested_tensors(array):
    array = array.drop_null()
    rows, _ = numpy_rows(array)
    values, offsets = map(torch.from_dlpack, ragged(array, offset_type="int64"))
    if not rows:
        return
    nested = torch.nested.nested_tensor_from_jagged(values.clone(), offsets=offsets.clone())
    for found, expected in zip(nested.unbind(), rows, strict=True):
        assert found.tolist() == expected.tolist()


def test_jax_sums_their_segments():
    array = pa.array([[1, 2, 3], [], [4], [5, 6]])[1:]
    values, offsets = map(jnp.from_dlpack, ragged(array, copy=True))
    segments = jnp.repeat(jnp.arange(len(array)), jnp.diff(offsets))
    sums = jax.ops.segment_sum(values, segments, num_segments=len(array))
    assert sums.tolist() == [0, 4, 11]


def test_what_is_not_ragged_is_refused():
    for array in (pa.array([1]), pa.array([[1]], pa.list_(pa.int8(), 1)), pa.array([{"x": 1}])):
        with pytest.raises(TypeError, match="ragged"):
            ragged(array)


RAGGED = {
    "lists": case(lambda: pa.array([[1, 2], [3]])),
    "texts": case(lambda: pa.array(["to", "be"])),
    "a slice": case(lambda: pa.array([[1, 2], [3]])[1:], "the offsets begin at 2, not at 0"),
    "booleans": case(lambda: pa.array([[True], [False]]), BITS),
    "null rows": case(
        lambda: pa.array([[1], None, [2]]), "the mask is made of validity bits", nulls="mask"
    ),
    "views in order": case(
        lambda: pa.ListViewArray.from_arrays([0, 1], [1, 2], pa.array([1, 2, 3])),
        "views have no offset behind the last row",
    ),
    "views anywhere": case(
        lambda: pa.ListViewArray.from_arrays([1, 0], [2, 1], pa.array([1, 2, 3])),
        "the rows do not lie one behind the other",
        "views have no offset behind the last row",
    ),
    "cast": case(lambda: pa.array([[1]]), "int64 becomes float32", dtype="float32"),
    "copied": case(lambda: pa.array([[1]]), ASKED, ASKED, copy=True),
}


@pytest.mark.parametrize("data_type", [pa.string_view(), pa.binary_view()])
@pytest.mark.parametrize("long", ["abc", "abcdefghijklmnopqrstuvwxyz" * 4])
def test_values_of_byte_views_are_copied_only_as_explained(data_type, long):
    rows = [[long], ["", long], ["", long, ""], [None, long, None], [long, long], ["x", "", long]]
    arrays = [pa.array(row, data_type) for row in [*rows, [], [""], [None]]]
    arrays += [array[start:][:length] for array in arrays for start in (0, 1) for length in (1, 2)]
    for array in arrays:
        for source in (array, pa.chunked_array([array]), pa.chunked_array([array[:0], array])):
            filled = [row for row in array.to_pylist() if row]
            values, offsets, mask = ragged(source, nulls="mask")
            plan = explain(source, nulls="mask", ragged=True)
            address = described(values).address
            is_shared = any(start <= address < end for start, end in all_buffers(source))
            assert is_shared == (len(filled) == 1)
            assert values.readonly == (len(filled) <= 1)
            copied = [tensor for tensor in (values, offsets, mask) if not tensor.readonly]
            assert plan.bytes_copied == sum(tensor.nbytes for tensor in copied)
            assert [step.nbytes for step in plan.steps] == [
                tensor.nbytes for tensor in copied if tensor.nbytes
            ]
            joined = b"".join(row.encode() if isinstance(row, str) else row for row in filled)
            assert described(values).elements == joined


@pytest.mark.parametrize("name", RAGGED)
def test_rows_of_any_length_are_copied_as_explained(name):
    make, options, reasons = RAGGED[name]
    source = make()
    plan = explain(source, **options, ragged=True)
    assert_says(plan, reasons)
    tensors = ragged(source, **options)
    spans = [*all_buffers(source)]
    for tensor in tensors:
        address = described(tensor).address
        assert tensor.readonly == any(start <= address < end for start, end in spans)
    assert plan.bytes_copied == sum(tensor.nbytes for tensor in tensors if not tensor.readonly)
    if options.get("copy") is None and reasons:
        assert_forbidden(plan, lambda: ragged(source, **options, copy=False))
        assert_forbidden(plan, lambda: explain(source, **options, ragged=True, copy=False))
    chunks = pa.chunked_array([source, source])
    joined = explain(chunks, **options, ragged=True)
    tensors = ragged(chunks, **options)
    assert joined.bytes_copied == sum(tensor.nbytes for tensor in tensors if not tensor.readonly)
    if joined.steps:
        assert any("2 chunks are put together" in step.reasons for step in joined.steps)
        if "copy" not in options:
            for convert in (ragged, partial(explain, ragged=True)):
                forbidden = partial(convert, chunks, **options, copy=False)
                assert_forbidden(joined, forbidden)
