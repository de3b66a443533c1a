"""Arrow to tensor: every framework, dtype and layout; values, sharing, lifetime."""

import gc

import jax
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
import torch
from arrow_dlpack import Array, Tensor
from dlpack_conformance.abi.dlpack import CUDA_HOST
from frameworks import ARROW_LIBRARIES, DTYPES, FRAMEWORKS, arrow_address, arrow_type
from hostile import Producer

LAYOUTS = {
    "whole": lambda a: a,
    "sliced": lambda a: a.slice(3, 5),
    "sliced by 16": lambda a: a.slice(16, 7),
    "one value": lambda a: a.slice(9, 1),
    "nulls outside the slice": lambda a: with_validity(a, [1, 30]).slice(2, 20),
    "validity without nulls": lambda a: with_validity(a, []),
}


def with_validity(array: pa.Array, nulls: list[int]) -> pa.Array:
    """The same values behind a validity buffer, with nulls at these places."""
    bits = np.ones(len(array), dtype=bool)
    bits[nulls] = False
    validity = pa.py_buffer(np.packbits(bits, bitorder="little").tobytes())
    return pa.Array.from_buffers(array.type, len(array), [validity, array.buffers()[1]])


def numbers(dtype: str, count: int = 32) -> pa.Array:
    """An array in Arrow's own memory, aligned to 64 bytes; pa.array would share NumPy's."""
    values = np.arange(count) * (1 if dtype.startswith("u") else -1)
    buffer = pa.allocate_buffer(count * np.dtype(dtype).itemsize)
    np.frombuffer(buffer, dtype)[:] = values.astype(dtype)
    return pa.Array.from_buffers(arrow_type(dtype), count, [None, buffer])


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=repr)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_values_and_memory_are_the_arrays(framework, dtype, layout):
    source = LAYOUTS[layout](numbers(dtype))
    tensor = framework.consume(Array(source))
    values = framework.to_numpy(tensor)
    assert values.dtype == dtype
    assert values.tolist() == source.to_pylist()
    shared = framework.address(tensor) == arrow_address(source)
    assert shared == (arrow_address(source) % framework.needs_alignment == 0)


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=repr)
@pytest.mark.parametrize("dtype", DTYPES)
def test_empty_arrays_are_empty_tensors(framework, dtype):
    for source in (pa.array([], arrow_type(dtype)), numbers(dtype).slice(7, 0)):
        values = framework.to_numpy(framework.consume(Array(source)))
        assert values.shape == (0,)
        assert values.dtype == dtype


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=repr)
def test_a_tensor_outlives_everything_it_came_from(framework, live):
    source = numbers("float32", 4096)
    expected = source.to_pylist()
    allocated = pa.total_allocated_bytes()
    array = Array(source)
    tensor = framework.consume(array)
    assert live() == (1, 0)
    del source, array
    assert live() == (1, 0), "freed too early"
    assert pa.total_allocated_bytes() >= allocated, "freed too early"
    assert framework.to_numpy(tensor).tolist() == expected
    del tensor
    assert live() == (0, 0), "not freed with the last holder"
    assert pa.total_allocated_bytes() < allocated, "not freed with the last holder"


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=repr)
def test_two_consumers_share_one_array_and_the_last_frees_it(framework, live):
    array = Array(numbers("int32"))
    first, second = framework.consume(array), framework.consume(array)
    assert framework.address(first) == framework.address(second)
    del array, first
    assert live() == (1, 0)
    assert framework.to_numpy(second)[5] == -5
    del second
    assert live() == (0, 0)


@pytest.mark.parametrize("library", ARROW_LIBRARIES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_arrow_libraries_share_their_memory(library, dtype):
    make, _, back = ARROW_LIBRARIES[library]
    source = make(numbers(dtype))
    address = arrow_address(back(source))
    values = np.from_dlpack(Array(source))
    assert values.__array_interface__["data"][0] == address
    assert values.tolist() == numbers(dtype).to_pylist()


def test_shares_are_read_only_and_copies_are_writable():
    source = numbers("float64")
    array = Array(source)
    shared = np.from_dlpack(array)
    assert not shared.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        shared[0] = 1.0
    copy = np.from_dlpack(array, copy=True)
    copy[0] = 99.0
    assert source[0].as_py() == 0.0
    assert not np.shares_memory(shared, copy)


def test_torch_never_turns_copy_false_into_a_copy():
    source = numbers("float32")
    shared = torch.from_dlpack(Array(source), copy=False)
    assert shared.data_ptr() == arrow_address(source)
    # torch asks again without keywords on a TypeError, so there must be none.
    strided = Tensor.from_dlpack(np.arange(6.0)[::2])
    assert torch.from_dlpack(strided, copy=False).data_ptr() == memoryview_address(strided)
    host = Tensor.from_dlpack(np.arange(3.0))
    assert torch.from_dlpack(host, copy=False).data_ptr() == memoryview_address(host)


PINNED = Producer(device_type=CUDA_HOST)
MUST_COPY = {
    "booleans of an Array": lambda: Array(pa.array([True, False])),
    "pinned memory": lambda: Tensor.from_dlpack(PINNED.capsule()),
}


@pytest.mark.parametrize("name", MUST_COPY)
@pytest.mark.parametrize("module", [np, torch], ids=["numpy", "torch"])
def test_no_retry_turns_copy_false_into_a_copy(module, name):
    """They ask again without keywords on a TypeError, so it must be none."""
    with pytest.raises((BufferError, ValueError), match="copy") as refusal:
        module.from_dlpack(MUST_COPY[name](), device="cpu", copy=False)
    assert not isinstance(refusal.value, TypeError)


@pytest.mark.parametrize("layout", [np.s_[::-1], np.s_[::-2], np.s_[:, ::-1]], ids=str)
def test_who_takes_no_negative_strides_says_so_and_loses_nothing(layout, live):
    """PyTorch and JAX raise; an abort of the process, as there have been, would end the tests."""
    source = np.arange(12.0).reshape(4, 3)[layout]
    tensor = Tensor.from_dlpack(source)
    for consume in (torch.from_dlpack, jax.numpy.from_dlpack):
        with pytest.raises(Exception, match="(?i)stride|compact"):
            consume(tensor)
    assert np.from_dlpack(tensor).tolist() == source.tolist()
    assert Array.from_dlpack(tensor).to_tensor().shape == source.shape
    del tensor
    assert live() == (0, 0)


def memoryview_address(tensor: Tensor) -> int:
    return np.asarray(tensor).__array_interface__["data"][0]


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=repr)
def test_copies_are_aligned_for_everyone(framework):
    """A copy that JAX would copy once more is a poor copy."""
    source = numbers("int8", 1000).slice(3)
    copy = Array(source).to_tensor(copy=True)
    tensor = framework.consume(copy)
    assert framework.address(tensor) == memoryview_address(copy)
    assert framework.to_numpy(tensor).tolist() == source.to_pylist()


def test_chunks_are_concatenated_and_one_chunk_is_not_copied():
    one = pa.chunked_array([numbers("int16")])
    values = np.from_dlpack(Array(one))
    assert values.__array_interface__["data"][0] == arrow_address(one.chunk(0))
    several = pa.chunked_array([numbers("int16"), numbers("int16", 3)])
    assert np.from_dlpack(Array(several)).tolist() == several.to_pylist()
    none = pa.chunked_array([], type=pa.int16())
    assert np.from_dlpack(Array(none)).shape == (0,)
    series = pl.concat([pl.Series([1, 2]), pl.Series([3])], rechunk=False)
    assert series.n_chunks() == 2
    assert np.from_dlpack(Array(series)).tolist() == [1, 2, 3]


def test_many_holders_in_many_orders_free_everything(live):
    arrays = [Array(numbers(dtype)) for dtype in DTYPES]
    tensors = [framework.consume(array) for array in arrays for framework in FRAMEWORKS]
    del arrays
    gc.collect()
    del tensors[::2]
    del tensors
    assert live() == (0, 0)
