"""Tensor to Arrow: every framework and dtype; values, sharing, lifetime."""

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
import torch
from arrow_dlpack import Array, Tensor, UnsupportedError, from_dlpack
from frameworks import DTYPES, FRAMEWORKS, arrow_address, arrow_type


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=repr)
@pytest.mark.parametrize("dtype", DTYPES)
def test_tensors_become_arrays_over_the_same_memory(framework, dtype, live):
    tensor = framework.produce(np.arange(100).astype(dtype))
    address = framework.address(tensor)
    array = from_dlpack(tensor)
    arrow = pa.array(array)
    assert arrow.type == arrow_type(dtype)
    assert arrow.to_pylist() == list(range(100))
    assert arrow_address(arrow) == address
    assert live()[1] == 1
    del tensor, array
    assert live()[1] == 1, "freed too early"
    last = arrow.slice(98)
    del arrow
    assert last.to_pylist() == [98, 99], "freed too early"
    del last
    assert live() == (0, 0), "not freed with the last slice"


@pytest.mark.parametrize("dtype", DTYPES)
def test_polars_shares_what_it_is_given(dtype):
    values = np.arange(50).astype(dtype)
    series = pl.Series(from_dlpack(values))
    assert series.to_list() == values.tolist()
    assert arrow_address(series.to_arrow()) == values.__array_interface__["data"][0]


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=repr)
def test_empty_and_zero_dimensional_tensors(framework):
    assert pa.array(from_dlpack(framework.produce(np.zeros(0, np.int32)))).to_pylist() == []
    assert pa.array(from_dlpack(framework.produce(np.array(7.5)))).to_pylist() == [7.5]


STRIDED = {
    "every other": np.arange(20.0)[::2],
    "backwards": np.arange(20.0)[::-1],
    "backwards by three": np.arange(20.0)[19:2:-3],
    "broadcast": np.broadcast_to(np.float64(2.5), 9),
    "a column": np.arange(12.0).reshape(4, 3)[:, 1],
    "misaligned": np.frombuffer(b"\0" + np.arange(5.0).tobytes(), dtype=np.uint8)[1:].view("f8"),
}


@pytest.mark.parametrize("name", STRIDED)
def test_strided_and_misaligned_tensors_are_gathered(name, live):
    source = STRIDED[name]
    array = pa.array(from_dlpack(source))
    assert array.to_pylist() == source.tolist()
    assert live() == (0, 0), "a gathered tensor is released at once"
    with pytest.raises(
        BufferError, match="copying was forbidden, but .*bytes would have to be"
    ) as e:
        from_dlpack(source, copy=False)
    assert not isinstance(e.value, TypeError)
    assert Tensor.from_dlpack(source).to_arrow().__len__() == source.size
    with pytest.raises(BufferError, match="copying was forbidden"):
        Tensor.from_dlpack(source).to_arrow(copy=False)


def test_copy_true_is_safe_from_the_producer_and_copy_none_is_not():
    source = np.arange(4)
    shared, copied = pa.array(from_dlpack(source)), pa.array(from_dlpack(source, copy=True))
    tensor = Tensor.from_dlpack(source, copy=True)
    source[0] = 99
    assert (shared[0].as_py(), copied[0].as_py(), np.asarray(tensor)[0]) == (99, 0, 0)


def test_requires_grad_and_other_refusals_of_the_producer_pass_through():
    with pytest.raises(BufferError, match="require"):
        from_dlpack(torch.zeros(3, requires_grad=True))
    with pytest.raises(UnsupportedError, match="1 null in 2 values"):
        from_dlpack(Array(pa.array([1, None])))
