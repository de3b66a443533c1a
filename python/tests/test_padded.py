"""Rows of different lengths as one tensor, padded, and rows of one length as they are."""

import itertools
import pickle

import jax.numpy as jnp
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from arrow_dlpack import (
    Array,
    LeftPadded,
    Loader,
    MaskedLeftPadded,
    MaskedPadded,
    Pad,
    Padded,
    UnsupportedError,
    explain,
    from_padded,
    ragged,
    record_batch,
    to_tensor,
    to_tensor_dict,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from ragged_rows import ragged_arrays

TOKENS = pa.array([[1, 2], [], None, [3, 4, 5]], pa.list_(pa.int32()))


@settings(max_examples=200)
@given(ragged_arrays(), st.none() | st.integers(0, 6))
def test_a_padded_row_is_the_ragged_one_and_then_padding(array, max_length):
    values, offsets, mask = map(np.from_dlpack, ragged(array, nulls="mask"))
    rows = [values[start:end] for start, end in itertools.pairwise(offsets)]
    longest = max(map(len, rows), default=0) if max_length is None else max_length
    for source in (array, pa.chunked_array([array[:2], array[2:]], array.type), Array(array)):
        made = to_tensor(source, pad=1, max_length=max_length, nulls="mask")
        assert isinstance(made, MaskedPadded)
        padded, lengths, valid = map(np.from_dlpack, made)
        assert padded.shape == (len(rows), longest, *values.shape[1:])
        assert padded.dtype == values.dtype
        assert padded.flags.writeable
        assert lengths.dtype == np.int64
        np.testing.assert_array_equal(valid, mask)
        for row, own, length in zip(rows, padded, lengths, strict=True):
            assert length == min(len(row), longest)
            np.testing.assert_array_equal(own[:length], row[:longest])
            assert (own[length:] == 1).all()


@settings(max_examples=200)
@given(ragged_arrays(), st.integers(0, 20))
def test_what_was_padded_is_the_same_lists_again(array, max_length):
    if not pa.types.is_nested(array.type):
        return
    longest = max((len(row) for row in array.to_pylist() if row is not None), default=0)
    padded = to_tensor(array, pad=0, max_length=max(longest, max_length), nulls="mask")
    again = pa.array(from_padded(*padded[:2], mask=padded.mask))
    assert again.is_valid().equals(array.is_valid())
    assert again.to_pylist() == array.to_pylist()


def test_rows_padded_on_the_left_are_the_same_lists_again():
    for nulls, made in (("mask", MaskedLeftPadded), (0, LeftPadded)):
        pad = Pad(9, side="left", max_length=4, nulls=nulls)
        (batch,) = Loader(pa.table({"x": TOKENS}), batch_size=4, columns={"x": pad})
        padded = batch["x"]
        assert type(padded) is made
        assert padded.values.tolist()[3] == [9, 3, 4, 5]
        copied = pickle.loads(pickle.dumps(padded))
        assert type(copied) is made
        assert copied.values.tolist() == padded.values.tolist()
        wanted = [row if nulls == "mask" else row or [] for row in TOKENS.to_pylist()]
        assert pa.record_batch(record_batch(batch))["x"].to_pylist() == wanted
        mask = padded.mask if nulls == "mask" else None
        lists = from_padded(padded.values, padded.lengths, mask=mask, side="left")
        assert pa.array(lists).to_pylist() == wanted
        with pytest.raises(TypeError, match=r"from_padded\(x\) makes a column"):
            to_tensor(padded)
        assert pa.array(from_padded(padded)).to_pylist() == wanted
        kind = pa.large_list(pa.int32())
        assert pa.array(from_padded(padded, type=kind)).type == kind
    lengths = np.array([3, 1], "int16")
    values = np.arange(12).reshape(2, 3, 2)
    lists = pa.array(from_padded(values, lengths, side="left"))
    assert lists.to_pylist() == [values[0].tolist(), values[1, 2:].tolist()]
    with pytest.raises(ValueError, match='side must be "right" or "left", got "middle"'):
        from_padded(values, lengths, side="middle")


def test_padded_rows_of_a_framework_know_their_side():
    for side in "left", "right":
        loop = Loader(
            pa.table({"x": TOKENS}),
            columns={"x": Pad(9, side=side, nulls="mask")},
            framework="torch",
        )
        (batch,) = loop
        assert pa.array(from_padded(batch["x"])).to_pylist() == TOKENS.to_pylist()


def test_values_without_lengths_are_padded_rows():
    padded = to_tensor(TOKENS, pad=0, nulls=0)
    words = (
        "values without lengths must be the padded rows that .* make, a Padded or LeftPadded, got"
    )
    for values in padded.values, [np.ones(2)], None:
        with pytest.raises(TypeError, match=words):
            from_padded(values)
    for keyword in {"side": "left"}, {"mask": np.ones(4, bool)}:
        with pytest.raises(
            TypeError, match="is for values and lengths: padded rows have their own"
        ):
            from_padded(padded, **keyword)
    assert pa.array(from_padded(padded)).to_pylist() == pa.array(from_padded(*padded)).to_pylist()


def test_padding_is_on_demand_and_has_a_length_of_its_own():
    with pytest.raises(UnsupportedError, match="1 null"):
        to_tensor(TOKENS, pad=0)
    made = to_tensor(TOKENS, pad=-1, nulls=0, dtype="int64")
    assert isinstance(made, Padded)
    assert made._fields == ("values", "lengths")
    assert made.values.tolist() == [[1, 2, -1], [-1] * 3, [-1] * 3, [3, 4, 5]]
    assert made.lengths.tolist() == [2, 0, 0, 3]
    assert made.values.dtype == made.lengths.dtype == "int64"
    cut = to_tensor(TOKENS, pad=0, max_length=1, nulls=0)
    assert cut.values.tolist() == [[1], [0], [0], [3]]
    assert cut.lengths.tolist() == [1, 0, 0, 1]
    texts = to_tensor(pl.Series(["to", "b", ""]), pad=0)
    assert texts.values.dtype == "uint8"
    assert texts.lengths.tolist() == [2, 1, 0]
    assert jnp.from_dlpack(cut.values).shape == (4, 1)
    assert to_tensor(TOKENS[:0], pad=0).values.shape == (0, 0)
    assert to_tensor(TOKENS[:0], pad=0, max_length=7).values.shape == (0, 7)


@pytest.mark.parametrize(("bad", "error", "words"), [
    ({"pad": "x"}, TypeError, "pad must be a number"),
    ({"pad": 0.5, "nulls": 0}, ValueError, "padded with 0.5: int32"),
    ({"pad": 10**400}, ValueError, "pad must be a number .* no dtype holds"),
    ({"pad": True, "nulls": 0, "max_length": -1}, ValueError, "max_length must be .* got -1"),
    ({"pad": 0, "max_length": 2**64}, ValueError, r"max_length must be .* 2\*\*64 - 1"),
    ({"pad": 0, "max_length": True}, TypeError, "max_length must be .* got True"),
    ({"pad": 0, "max_length": 2.0}, TypeError, "max_length must be .* got 2.0"),
    ({"max_length": 4}, TypeError, "max_length is for pad="),
    ({"pad": 0, "nulls": 0, "copy": False}, BufferError, "rows are padded to 3 values"),
    ({"pad": 0, "order": "F"}, TypeError, "order is not for pad="),
    ({"pad": 0, "columns": ["x"]}, TypeError, "columns is for tables"),
    ({"pad": 0, "nulls": 0, "max_length": 2**60}, (BufferError, MemoryError), None),
    ({"pad": 0, "nulls": 0, "max_length": 2**63}, (BufferError, MemoryError), None),
])  # fmt: skip
def test_what_cannot_be_padded_is_refused_in_its_words(bad, error, words):
    with pytest.raises(error, match=words):
        to_tensor(TOKENS, **bad)


def test_a_table_and_numbers_are_not_padded():
    with pytest.raises(TypeError, match="pad= takes one column"):
        to_tensor(pa.table({"x": [1], "y": [2]}), pad=0)
    table = pa.table({"id": ["a", "b", "c", "d"], "x": TOKENS})
    for convert in (lambda: to_tensor(table, pad=0), lambda: ragged(table)):
        with pytest.raises(TypeError, match=r'this is a table: pass table\["x"\]'):
            convert()
    with pytest.raises(UnsupportedError, match="is not ragged, as lists, texts and binaries are"):
        to_tensor(pa.array([1]), pad=0)


def test_a_plan_of_padding_is_what_happens():
    plan = explain(TOKENS, pad=0, nulls="mask", dtype="int64")
    made = to_tensor(TOKENS, pad=0, nulls="mask", dtype="int64")
    assert plan.bytes_copied == 5 * 8 + sum(tensor.nbytes for tensor in made)
    assert plan.steps[1].reasons == ["rows are padded to 3 values"]
    with pytest.raises(TypeError, match="pad is not for ragged=True"):
        explain(TOKENS, pad=0, ragged=True)
    with pytest.raises(TypeError, match="are for Arrow data"):
        explain(np.ones(3), pad=0)


def address(tensor):
    return np.from_dlpack(tensor).__array_interface__["data"][0]


@pytest.mark.parametrize("make", [pa.list_, pa.large_list, pa.list_view, pa.large_list_view])
def test_lists_of_one_length_are_shared(make):
    array = pa.array([[9, 9], [1, 2], [3, 4]], make(pa.int64()))[1:]
    tensor = to_tensor(array, copy=False)
    assert tensor.tolist() == [[1, 2], [3, 4]]
    assert tensor.readonly
    if "view" not in str(array.type):
        assert address(tensor) == address(ragged(array).values)
        assert explain(array).zero_copy
    assert np.from_dlpack(Array(array)).tolist() == [[1, 2], [3, 4]]
    assert Array(array).to_tensor(dtype="float32").dtype == "float32"
    chunks = pa.chunked_array([array, array])
    assert to_tensor(chunks).shape == (4, 2)
    assert to_tensor(chunks[:0]).shape == (0, 0)


def test_lists_that_differ_say_where_and_what_to_do():
    uneven = pa.array([[1, 2], [3, 4], [5]])
    words = "row 2 has 1 value.*have 2: use ragged, or pass pad="
    with pytest.raises(UnsupportedError, match=words):
        to_tensor(uneven)
    with pytest.raises(UnsupportedError, match="row 2 has 1"):
        np.from_dlpack(Array(uneven))


def test_null_lists_are_filled_or_masked():
    array = pa.array([None, [1, 2], [3, None]])
    assert to_tensor(array, nulls=0).tolist() == [[0, 0], [1, 2], [3, 0]]
    values, mask = to_tensor(array, nulls="mask")
    assert mask.tolist() == [[False, False], [True, True], [True, False]]
    assert values.shape == (3, 2)
    assert np.isnan(np.from_dlpack(to_tensor(array, nulls="nan"))).sum() == 3
    with pytest.raises(UnsupportedError, match="1 null"):
        to_tensor(array)


def test_in_tables_lists_are_refused_whatever_their_lengths():
    table = pa.table({"x": pa.array([[1, 2], [3, 4]])})
    for convert in (to_tensor, to_tensor_dict):
        with pytest.raises(UnsupportedError, match='column "x".*alone to ragged'):
            convert(table)


def test_lengths_are_those_of_the_rows_or_refused():
    values = np.arange(6).reshape(2, 3)
    lists = pa.array(from_padded(values, np.array([3, 1], "uint8")))
    assert lists.to_pylist() == [[0, 1, 2], [3]]
    strided = np.arange(24).reshape(2, 3, 4)[:, :, ::2]
    pairs = pa.array(from_padded(strided, np.array([0, 2]), type=pa.list_(pa.list_(pa.int64(), 2))))
    assert pairs.to_pylist() == [[], [[12, 14], [16, 18]]]
    bits = from_padded(np.zeros((2, 3), "uint8"), np.array([1, 1]), type=pa.binary())
    assert pa.array(bits).to_pylist() == [b"\0", b"\0"]
    for lengths, words in [
        (np.array([3, 4]), "row 1 cannot have 4 of 3"),
        (np.array([-1, 1]), "row 0 cannot have -1"),
        (np.array([1, 2**63 + 1], "uint64"), f"row 1 cannot have {2**63 + 1} of 3"),
        (np.array([1]), "there are 1 for 2 rows"),
        (np.array([1.0, 1.0]), "float64, not integers"),
        (np.array([[1], [1]]), "1 dimension"),
    ]:
        with pytest.raises(BufferError, match=words):
            from_padded(values, lengths)
    with pytest.raises(BufferError, match="2 dimensions"):
        from_padded(np.arange(3), np.array([1, 1, 1]))


@pytest.mark.parametrize("bad", [[0, 3, 2], [-1, 0, 1], [0, 1, 9], [2, 1, 2]])
def test_offsets_that_somebody_changed_are_refused(bad):
    offsets = np.array([0, 1, 2], "int32")
    buffers = [None, pa.py_buffer(offsets)]
    lists = pa.Array.from_buffers(pa.list_(pa.int64()), 2, buffers, children=[pa.array(range(4))])
    array = Array(lists)
    offsets[:] = bad
    with pytest.raises(BufferError):
        array.to_tensor()
    for options in ({"pad": 0}, {"pad": 0, "max_length": 2}):
        with pytest.raises((BufferError, ValueError)):
            to_tensor(array, **options)
