"""Values and offsets as rows of different lengths: believed only where they can be."""

import ctypes
import itertools
import re

import numpy as np
import pyarrow as pa
import pytest
from arrow_dlpack import (
    Ragged,
    from_dlpack,
    from_padded,
    from_ragged,
    ragged,
    record_batch,
    to_tensor,
)
from descriptions import described, leaf_address
from dlpack_conformance.abi.dlpack import INT
from frameworks import DTYPES, arrow_type
from hostile import Producer
from hypothesis import example, given, settings
from hypothesis import strategies as st
from ragged_rows import LISTS, ragged_arrays

FROM = st.sampled_from(
    [
        *(make(item) for make in LISTS[:2] for item in map(arrow_type, DTYPES)),
        *(pa.list_(pa.bool_()), pa.large_list(pa.list_(pa.int16(), 2))),
        *(pa.string(), pa.large_string(), pa.binary(), pa.large_binary()),
    ]
)


@settings(max_examples=200)
@given(ragged_arrays(FROM))
def test_rows_return_as_they_were(array):
    array = array.drop_null()
    values, offsets = ragged(array)
    back = pa.array(from_ragged(values, offsets, type=array.type))
    back.validate(full=True)
    assert back.equals(array)
    assert back.type == array.type
    if pa.types.is_nested(array.type) and not pa.types.is_boolean(array.type.value_type):
        if values.size:
            assert leaf_address(back.values) == described(values).address
        # The offsets are checked, and must not change after that.
        with pytest.raises(BufferError, match="other code could still write to it"):
            from_ragged(values, offsets, type=array.type, copy=False)
    if pa.types.is_nested(array.type) and not pa.types.is_nested(array.type.value_type):
        natural = pa.array(from_ragged(values, offsets))
        assert natural.type == array.type
        assert natural.equals(array)


OFFSETS = st.sampled_from([*(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))])


@settings(max_examples=300)
@given(
    st.lists(st.integers(-2, 8), max_size=6),
    OFFSETS,
    st.sampled_from([None, pa.list_(pa.int64()), pa.large_list(pa.int64())]),
    st.booleans(),
    st.booleans(),
)
@example([2**31], "int64", pa.list_(pa.int64()), False, False)
@example([2**63 - 1, 2**63 - 1], "int64", None, False, False)
@example([0, 2**63], "uint64", None, False, False)
@example([0, 2**32], "uint64", pa.list_(pa.int64()), False, False)
def test_offsets_are_believed_only_if_they_are_offsets(numbers, dtype, data_type, rising, reverse):
    if rising:
        numbers = sorted(numbers)
    if dtype.startswith("u"):
        numbers = [abs(number) for number in numbers]
    values, offsets = np.arange(6) * 7, np.array(numbers, dtype)
    if reverse:
        # The same, from the end of the memory to its beginning.
        offsets = offsets[::-1].copy()[::-1]
    good = bool(numbers) and numbers == sorted(numbers) and numbers[0] >= 0 and numbers[-1] <= 6
    if good:
        array = pa.array(from_ragged(values, offsets, type=data_type))
        array.validate(full=True)
        expected = [values[a:b].tolist() for a, b in itertools.pairwise(numbers)]
        assert array.to_pylist() == expected
    else:
        with pytest.raises(BufferError, match="the offsets are not offsets of rows"):
            from_ragged(values, offsets, type=data_type)


@settings(max_examples=200)
@given(st.binary(max_size=8) | st.text("é→🏹", max_size=4).map(str.encode), st.data())
def test_texts_are_utf8_or_an_error(memory, data):
    cuts = st.lists(st.integers(0, len(memory)), min_size=1, max_size=4)
    offsets = sorted({0, *data.draw(cuts)})
    values = np.frombuffer(memory, "uint8")
    rows = [memory[a:b] for a, b in itertools.pairwise(offsets)]
    binary = from_ragged(values, np.array(offsets), type=pa.large_binary())
    assert pa.array(binary).to_pylist() == rows
    try:
        texts = [row.decode() for row in rows]
    except UnicodeDecodeError:
        with pytest.raises(BufferError, match="row . is not UTF-8: ask for a binary type"):
            from_ragged(values, np.array(offsets), type=pa.large_string())
        return
    found = pa.array(from_ragged(values, np.array(offsets), type=pa.large_string()))
    found.validate(full=True)
    assert found.to_pylist() == texts


def test_what_can_be_no_rows_is_refused():
    values = np.arange(4.0)
    with pytest.raises(BufferError, match="they are float64, not integers"):
        from_ragged(values, np.array([0.0, 4.0]))
    with pytest.raises(BufferError, match="they are bool, not integers"):
        from_ragged(values, np.array([False, True]))
    with pytest.raises(BufferError, match="offsets must have 1 dimension, not 2"):
        from_ragged(values, np.array([[0, 4]]))
    for data_type in (pa.float64(), pa.list_view(pa.float64())):
        with pytest.raises(BufferError, match=r"is no type of rows .* such as pa\.list_"):
            from_ragged(values, np.array([0, 4], "int32"), type=data_type)
    for data_type in (pa.string(), pa.list_(pa.int64())):
        with pytest.raises(BufferError, match="float64 elements .* cannot become"):
            from_ragged(values, np.array([0, 4], "int32"), type=data_type)


def test_offsets_beyond_what_the_type_holds_are_named_as_they_are():
    values, narrow = np.arange(4.0), pa.list_(pa.float64())
    with pytest.raises(BufferError, match=f"offset 0 is -{2**40}$"):
        from_ragged(values, np.array([-(2**40), 4]), type=narrow)
    with pytest.raises(BufferError, match=f"offset 1 is {2**40}, more than the largest int32"):
        from_ragged(values, np.array([0, 2**40]), type=narrow)


def test_offsets_of_64_bits_are_those_of_large_texts():
    texts, offsets = np.frombuffer(b"abc", "uint8"), np.array([0, 2**31])
    with pytest.raises(
        BufferError, match=r"int32: .* LargeUtf8 of texts \(in pyarrow large_string\)"
    ):
        from_ragged(texts, offsets, type=pa.string())
    offsets = np.array([0, 1, 3])
    made = pa.array(from_ragged(texts, offsets, type=pa.large_string()))
    assert made.equals(pa.array(["a", "bc"], pa.large_string()))


def test_tensors_whose_elements_share_bytes_are_no_rows():
    rows = [Producer([1, 2], ctypes.c_int8, code=INT, bits=4) for _ in range(2)]
    with pytest.raises(BufferError, match="packed elements of under 8 bits"):
        from_ragged(rows)


def test_rows_of_more_items_than_32_bits_number_are_large_lists():
    rows = pa.array(from_ragged([np.empty((2**32, 0), "int8"), np.empty((1, 0), "int8")]))
    assert pa.types.is_large_list(rows.type)
    assert rows.offsets.to_pylist() == [0, 2**32, 2**32 + 1]
    lengths = np.array([2**31 - 1, 2])
    padded = pa.array(from_padded(np.empty((2, 2**31, 0), "int8"), lengths))
    assert pa.types.is_large_list(padded.type)
    assert padded.offsets.to_pylist() == [0, 2**31 - 1, 2**31 + 1]


def test_rows_that_are_all_null_have_the_type_that_was_given():
    for data_type in (pa.list_(pa.float32()), pa.large_list(pa.int64()), pa.string()):
        made = pa.array(from_ragged([None, None], type=data_type))
        assert made.equals(pa.nulls(2, data_type))
        assert pa.record_batch(record_batch({"x": []}, type={"x": data_type})).num_rows == 0
        table = pa.record_batch(record_batch({"x": [None, None]}, type={"x": data_type}))
        assert table["x"].equals(pa.nulls(2, data_type))
    for wish in {}, {"type": pa.int64()}:
        with pytest.raises(ValueError, match=r"pyarrow\.array\(x, type\) makes a column of it"):
            from_ragged([None, None], **wish)
    with pytest.raises(
        TypeError, match=r'column "x": .*pyarrow\.array\(x\) makes an array of values'
    ):
        record_batch({"x": [None, None]})


def test_a_matrix_of_values_is_rows_of_vectors():
    embeddings = np.arange(12, dtype="float32").reshape(6, 2)
    ends = np.array([0, 1, 6], "int32")
    array = from_ragged(embeddings, ends, type="fixed_size_list")
    assert pa.array(array).type == pa.list_(pa.list_(pa.float32(), 2))
    values, offsets = ragged(array, copy=False)
    assert described(values).address == embeddings.ctypes.data
    np.testing.assert_array_equal(np.from_dlpack(array.row(1)), embeddings[1:])
    assert np.from_dlpack(offsets).tolist() == [0, 1, 6]
    assert from_dlpack(values).type.startswith("arrow.fixed_shape_tensor")


def test_what_was_checked_stays_what_it_was():
    """A view that is read-only says nothing of the array that it is a view of."""
    text, ends = np.frombuffer(b"abcdef", "u1").copy(), np.array([0, 3, 6], "int32")
    read_only = ends.view()
    read_only.flags.writeable = False
    array = from_ragged(text, read_only, type=pa.string())
    ends[1:], text[:] = 10**9, 0xFF
    assert pa.array(array).to_pylist() == ["abc", "def"]


def test_a_type_that_does_not_come_of_it_is_refused():
    with pytest.raises(ValueError, match="int64.*does not become .float32."):
        from_ragged(np.arange(2), np.array([0, 2]), type="float32")
    with pytest.raises(ValueError, match="int64.*does not become .float32."):
        record_batch({"a": np.arange(2)}, type="float32")


def test_what_ragged_and_pad_return_comes_back_without_a_star():
    lists = pa.array([[7, 8, 9], [4], [5]], pa.list_(pa.int32()))
    for rows in ragged(lists), to_tensor(lists, pad=0):
        assert pa.array(from_ragged(rows)).to_pylist() == lists.to_pylist()


def test_rows_with_a_name_take_no_mask_and_are_not_read_for_that():
    rows = Ragged(Unread(), Unread())
    with pytest.raises(TypeError, match="mask is for values and offsets"):
        from_ragged(rows, mask=np.array([True]))


class Unread:
    def __dlpack__(self, **options):
        raise AssertionError("it was read")

    def __dlpack_device__(self):
        raise AssertionError("it was read")


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_a_mask_of_values_is_none_of_rows(dtype):
    values, offsets = np.array([1, 2, 3]), np.array([0, 2, 3], dtype)
    mask = np.array([True, False, True])
    made = (
        "mask= is of the rows; pyarrow.ListArray.from_arrays(pyarrow.array(from_dlpack(offsets)), "
        "pyarrow.array(from_dlpack(values, mask=mask))) makes lists"
    )
    with pytest.raises(BufferError, match=re.escape(made)):
        from_ragged(values, offsets, mask=mask)
    lists = pa.ListArray.from_arrays(
        pa.array(from_dlpack(offsets)), pa.array(from_dlpack(values, mask=mask))
    )
    assert lists.to_pylist() == [[1, None], [3]]
    with pytest.raises(BufferError, match=r"a mask of shape \[1\] fits neither .* shape \[2\]$"):
        from_ragged(values, offsets, mask=mask[:1])
