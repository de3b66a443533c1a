"""Dictionaries, whose codes are nothing alone."""

import copy
import pickle
import re

import numpy as np
import pyarrow as pa
import pytest
from arrow_dlpack import (
    Array,
    AsArrow,
    explain,
    from_dlpack,
    iter_batches,
    record_batch,
    to_tensor,
    to_tensor_dict,
)
from descriptions import described, leaf_address
from hypothesis import given
from hypothesis import strategies as st


def decoded(tensor):
    codes = np.from_dlpack(tensor)
    return pa.array(tensor.dictionary).take(pa.array(codes)).to_pylist()


words = st.lists(st.sampled_from(["a", "b", "c", "d", "e"]), max_size=6)


@given(st.lists(words, max_size=4), st.sampled_from(["int8", "int32", "uint16", "int64"]))
def test_codes_of_all_chunks_mean_what_they_meant(chunks, codes):
    data_type = pa.dictionary(codes, pa.string())
    arrays = [pa.array(chunk, pa.string()).dictionary_encode().cast(data_type) for chunk in chunks]
    source = pa.chunked_array(arrays, data_type)
    expected = [word for chunk in chunks for word in chunk]
    tensor = to_tensor(source, physical=True)
    assert (tensor.dtype, tensor.shape) == (codes, (len(expected),))
    assert decoded(tensor) == expected
    # And in tables, of each column its own.
    table = pa.table({"x": source, "y": source})
    for column in to_tensor_dict(table, physical=True).values():
        assert decoded(column) == expected


def test_codes_of_one_dictionary_are_shared():
    dictionary = pa.array(["x", "y", "z"])
    first = pa.DictionaryArray.from_arrays(pa.array([0, 2, 1], "int32"), dictionary)
    second = pa.DictionaryArray.from_arrays(pa.array([1, 1], "int32"), dictionary)
    tensor = to_tensor(first[1:], physical=True, copy=False)
    assert described(tensor).address == first.indices.buffers()[1].address + 4
    assert decoded(tensor) == ["z", "y"]
    plan = explain(pa.chunked_array([first, second]), physical=True)
    assert [step.reasons for step in plan.steps] == [["2 chunks are put together"]]
    assert plan.bytes_copied == 20
    other = pa.DictionaryArray.from_arrays(pa.array([0], "int32"), pa.array(["w"]))
    plan = explain(pa.chunked_array([first, other]), physical=True)
    unified = ["the dictionaries of its chunks are unified", "2 chunks are put together"]
    assert [step.reasons for step in plan.steps] == [unified]
    assert plan.bytes_copied == 16
    with pytest.raises(BufferError, match="the dictionaries of its chunks are unified"):
        to_tensor(pa.chunked_array([first, other]), physical=True, copy=False)
    with pytest.raises(TypeError, match="physical=True"):
        to_tensor(first)


def test_the_error_of_codes_alone_names_what_makes_a_dictionary_of_them():
    words = pa.array(["a", "b", "a"]).dictionary_encode()
    x = to_tensor(words, physical=True)
    for refused in (
        lambda: from_dlpack(x, type=x.field),
        lambda: record_batch({"x": x}, type={"x": words.type}),
    ):
        with pytest.raises(BufferError, match="cannot become Dictionary") as error:
            refused()
        way = re.search(
            r"pyarrow\.DictionaryArray\.from_arrays\(.*dictionary\)\)", str(error.value)
        )
        made = eval(way[0], {"pyarrow": pa, "from_dlpack": from_dlpack, "x": x})
        assert made.equals(words)
    with pytest.raises(BufferError, match="ask by type= for one of the same elements"):
        from_dlpack(x, type=pa.int64())


def test_codes_in_lists_have_their_dictionary_too():
    codes = pa.array(["x", "y", "x", "z"]).dictionary_encode()
    lists = pa.FixedSizeListArray.from_arrays(codes, 2)
    tensor = to_tensor(lists, physical=True, copy=False)
    assert np.from_dlpack(tensor).tolist() == [[0, 1], [0, 2]]
    assert pa.array(tensor.dictionary).to_pylist() == ["x", "y", "z"]


def test_null_codes_are_nulls():
    codes = pa.array(["a", None, "b"]).dictionary_encode()
    with pytest.raises(TypeError, match="1 null"):
        to_tensor(codes, physical=True)
    tensor = to_tensor(codes, physical=True, nulls=-1)
    assert np.from_dlpack(tensor).tolist() == [0, -1, 1]
    assert pa.array(tensor.dictionary).to_pylist() == ["a", "b"]
    values, mask = to_tensor(codes, physical=True, nulls="mask")
    assert np.from_dlpack(mask).tolist() == [True, False, True]
    assert np.from_dlpack(values)[[0, 2]].tolist() == [0, 1]


def test_more_words_than_codes_are_an_error_and_no_other_words():
    data_type = pa.dictionary(pa.int8(), pa.int32())
    chunks = [
        pa.DictionaryArray.from_arrays(
            pa.array(range(100), pa.int8()), pa.array(range(start, start + 100), pa.int32())
        )
        for start in (0, 100)
    ]
    with pytest.raises(
        ValueError, match="200 distinct values, too many for keys of Int8: cast .* int32"
    ):
        to_tensor(pa.chunked_array(chunks, data_type), physical=True)
    tensors = [to_tensor(chunk, physical=True, copy=False) for chunk in chunks]
    assert decoded(tensors[1]) == list(range(100, 200))
    assert described(tensors[0]).address == leaf_address(chunks[0].indices)


def test_values_that_no_key_numbers_do_not_matter():
    own = pa.DictionaryArray.from_arrays(
        pa.array([0, 127], pa.int8()), pa.array([str(at) for at in range(129)])
    )
    chunks = pa.chunked_array([own, own])
    values = ["0", "127"] * 2
    assert pa.array(Array(chunks)).to_pylist() == values
    for copied in pickle.loads(pickle.dumps(Array(own))), copy.deepcopy(Array(own)):
        assert pa.array(copied).to_pylist() == values[:2]
    table = pa.table({"x": chunks})
    wishes = {"batch_size": 3, "columns": {"x": AsArrow()}}
    batches = [pa.array(batch["x"]).to_pylist() for batch in iter_batches(table, **wishes)]
    assert batches == [values[:3], values[3:]]


def test_the_order_of_a_dictionary_is_that_which_was_asked_for():
    own = pa.DictionaryArray.from_arrays(
        pa.array([0, 1], pa.int8()), pa.array(["a", "b"]), ordered=True
    )
    assert pa.array(Array(own), type=own.type).equals(own)
