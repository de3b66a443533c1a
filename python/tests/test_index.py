"""tensor[...] and what goes with it: views, len, iteration, Python's numbers."""

import collections
import ctypes
import operator
import re

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from arrow_dlpack import Array, Tensor, asdlpack, to_tensor
from dlpack_conformance.abi.dlpack import CUDA, IS_COPIED
from hostile import Producer, header

SOURCES = {
    "row-major": np.arange(24).reshape(2, 3, 4),
    "column-major": np.asfortranarray(np.arange(24).reshape(2, 3, 4)),
    "backwards": np.arange(48).reshape(4, 3, 4)[::-2, :, ::-1],
    "broadcast": np.broadcast_to(np.arange(4), (2, 3, 4)),
    "empty": np.zeros((2, 0, 4)),
    "one": np.zeros((1, 1, 1)),
    "narrow": np.arange(24, dtype="int8").reshape(2, 3, 4),
}
INDICES = [
    0, -1, (0, -1), (0, 0, 0), (..., 0), (0, ...), ..., None, (None, 0, None), (), slice(None),
    slice(None, None, -1), slice(5, 1), slice(0, 0), (slice(None), slice(None, None, 2)),
    (..., slice(None, None, -3)), (slice(1, None), ..., None, 0), slice(2**62, None, -(2**62)),
    (slice(None), 0, slice(-100, 100, 2)), slice(None, None, 2**63 - 1), slice(-(2**70), 2**70),
    np.int64(0), (slice(None), np.uint8(0)), True,
]  # fmt: skip


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES.keys())
@pytest.mark.parametrize("index", INDICES, ids=repr)
def test_views_are_those_of_numpy(source, index):
    tensor = Tensor.from_dlpack(source)
    try:
        expected = source[index] if index is not True else source[[[]]]
    except IndexError:
        with pytest.raises(IndexError):
            tensor[index]
        return
    if index is True:
        with pytest.raises(IndexError, match="numpy.asarray"):
            tensor[index]
        return
    view = tensor[index]
    assert (view.shape, view.tolist()) == (expected.shape, expected.tolist())
    assert np.array_equal(np.from_dlpack(view), expected)
    assert view.readonly == tensor.readonly
    if expected.size and isinstance(expected, np.ndarray):
        assert np.from_dlpack(view).ctypes.data == np.asarray(expected).ctypes.data


@pytest.mark.parametrize(
    ("index", "words"),
    [
        (2, "index 2 is out of bounds .* axis of 2"),
        (-3, "index -3 is out of bounds"),
        (2**70, "out of bounds"),
        ((0, 0, 0, 0), "4 indices for a tensor of 3 axes"),
        ((..., 0, ...), "one '...' at most"),
        ([0, 1], r"numpy.asarray\(tensor\)\[...\]"),
        (np.array([True, False]), "select by lists and masks"),
        (1.0, "got 1.0"),
        ("x", "got 'x'"),
        ((0, [1]), r"got \[1\]"),
    ],
)
def test_what_is_no_view_says_so(index, words):
    with pytest.raises(IndexError, match=words):
        Tensor.from_dlpack(np.zeros((2, 3, 4)))[index]
    with pytest.raises(ValueError, match="step"):
        Tensor.from_dlpack(np.zeros(3))[::0]


def test_an_index_that_fails_is_heard():
    class Fails:
        def __index__(self):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Tensor.from_dlpack(np.ones(2))[Fails()]


def test_nothing_is_assigned():
    tensor = Tensor.from_dlpack(np.zeros(3))
    with pytest.raises(TypeError, match="item assignment"):
        tensor[0] = 1


def test_a_view_keeps_the_memory_and_nothing_more(live):
    given = Producer((1.0, 2.0, 3.0), flags=IS_COPIED)
    tensor = Tensor.from_dlpack(given)
    first, rest = tensor[0], tensor[1:]
    again = rest[1:]
    del tensor, rest
    assert given.deleted == 0
    assert (first.item(), again.tolist()) == (1.0, [3.0])
    shared = np.from_dlpack(again)
    shared[0] = 9  # as writable as the whole
    assert given.memory[2] == 9
    del first, again, shared
    assert given.deleted == 1
    assert live() == (0, 0)


def test_a_view_is_never_exclusive():
    whole = Tensor.from_dlpack(np.zeros(4), copy=True)
    for view in (whole[:], whole[:3], whole[1:], whole):
        capsule = view.__dlpack__(max_version=(1, 0))
        assert header(capsule).flags & IS_COPIED == 0


def test_memory_of_a_device_is_not_looked_at():
    class Gpu(Producer):
        streams = ()

        def __dlpack__(self, *, stream=None, **keywords):
            self.streams = (*self.streams, stream)
            return super().__dlpack__(**keywords)

    given = Gpu(data=0xDEAD0000, device_type=CUDA, shape=(4, 6), byte_offset=8, destructor=True)
    tensor = Tensor.from_dlpack(given)
    view = tensor[1:3, ::2]
    assert (view.shape, view.strides, view.device) == ((2, 3), (6, 2), "cuda:0")
    given.given = 0
    capsule = view.__dlpack__(stream=7, max_version=(1, 3))
    assert given.streams[-1] == 7  # the producer has made that stream wait
    again = Tensor.from_dlpack(capsule)
    assert again.shape == (2, 3)
    with pytest.raises(BufferError, match="cuda:0"):
        view.__dlpack__(copy=True)
    with pytest.raises(BufferError, match="cuda:0"):
        view.tolist()


def test_elements_that_share_a_byte_have_no_views():
    given = Producer(b"\x21\x43", ctypes.c_uint8, shape=(4,), code=1, bits=4)
    tensor = Tensor.from_dlpack(given)
    with pytest.raises(BufferError, match="uint4"):
        tensor[1:]
    assert tensor.tolist() == [1, 2, 3, 4]
    signed = Producer(b"\x2f\x87", ctypes.c_uint8, shape=(4,), code=0, bits=4)
    assert Tensor.from_dlpack(signed).tolist() == [-1, 2, 7, -8]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"lanes": 2, "shape": (1,)}, "float32x2 .*its lanes are one more axis"),
        ({"code": 5, "bits": 32}, "complex32 .*convert it"),
    ],
)
def test_elements_that_python_has_no_number_for_are_refused(fields, words):
    tensor = Tensor.from_dlpack(Producer([1.0, 2.0], **fields))
    with pytest.raises(TypeError, match=words):
        tensor.tolist()


def test_rows_of_a_column_are_still_the_column():
    days = to_tensor(pa.array([0, 1, 2], pa.date32()), physical=True)
    assert pa.array(days[1:].to_arrow(type=days[1:].field)).type == pa.date32()
    words = to_tensor(pa.array(["a", "b", "a"]).dictionary_encode(), physical=True)
    assert pa.array(words[::-1].dictionary).to_pylist() == ["a", "b"]
    pairs = to_tensor(pa.array([[1, 2]], pa.list_(pa.int8(), 2)))
    assert pairs[:1].field is not None
    assert pairs[0].field is pairs[:, 0].field is None


def test_length_and_iteration_are_the_first_axis():
    tensor = Tensor.from_dlpack(np.arange(6).reshape(3, 2))
    assert len(tensor) == 3
    assert [row.tolist() for row in tensor] == [[0, 1], [2, 3], [4, 5]]
    assert [row.tolist() for row in tensor[::-1]] == [[4, 5], [2, 3], [0, 1]]
    assert len(Tensor.from_dlpack(np.zeros((0, 3)))) == 0
    assert isinstance(tensor, collections.abc.Iterable)
    one = Tensor.from_dlpack(np.array(1))
    for use in (len, iter, list):
        with pytest.raises(TypeError, match="without axes"):
            use(one)


NUMBERS = {
    "bool": (torch.tensor([True, False]), [True, False]),
    "uint8": (torch.tensor([1, 255], dtype=torch.uint8), [1, 255]),
    "int64": (torch.tensor([-(2**63), 2**63 - 1]), [-(2**63), 2**63 - 1]),
    "float16": (torch.tensor([0.5, -2], dtype=torch.float16), [0.5, -2]),
    "bfloat16": (torch.tensor([0.5, -2], dtype=torch.bfloat16), [0.5, -2]),
    "float8": (torch.tensor([0.5, -2]).to(torch.float8_e5m2), [0.5, -2]),
    "float64": (torch.tensor([0.1, 1e300], dtype=torch.float64), [0.1, 1e300]),
    "complex64": (torch.tensor([1 + 2j, -3j]), [1 + 2j, -3j]),
}


@pytest.mark.parametrize(("source", "expected"), NUMBERS.values(), ids=NUMBERS.keys())
def test_elements_are_pythons_own_numbers(source, expected):
    tensor = Tensor.from_dlpack(source)
    found = tensor.tolist()
    assert found == expected
    assert [type(value) for value in found] == [type(expected[0])] * 2
    assert [x.item() for x in tensor] == expected
    assert tensor[None, ::-1, None].tolist() == [[[expected[1]], [expected[0]]]]


@pytest.mark.parametrize("shape", [(), (1,), (2, 3), (0,), (0, 3), (3, 0), (2, 0, 3), (1, 1, 1)])
def test_lists_are_those_of_numpy(shape):
    source = np.zeros(shape)
    assert Tensor.from_dlpack(source).tolist() == source.tolist()


def test_more_lists_than_memory_are_an_error():
    with pytest.raises((MemoryError, BufferError)):
        Tensor.from_dlpack(Producer(shape=(2**58, 0))).tolist()
    with pytest.raises((MemoryError, BufferError)):
        Tensor.from_dlpack(np.broadcast_to(np.int8(1), 2**58)).tolist()


def test_one_element_is_a_number():
    one = Tensor.from_dlpack(np.array([2.5]))
    assert (one.item(), float(one), int(one), complex(one), bool(one)) == (2.5, 2.5, 2, 2.5, True)
    assert not Tensor.from_dlpack(np.zeros((1, 1)))
    three = Tensor.from_dlpack(np.array(3))
    assert "abcd"[three] == "d"
    assert operator.index(three) == 3
    for source in (np.array(2.5), np.array([3]), np.array(True)):
        with pytest.raises(TypeError, match="only an integer tensor"):
            operator.index(Tensor.from_dlpack(source))


@pytest.mark.parametrize("shape", [(2,), (0,)])
def test_several_elements_are_no_number(shape):
    tensor = Tensor.from_dlpack(np.ones(shape))
    for use in (float, int, complex, Tensor.item):
        with pytest.raises(ValueError, match=f"this one has {shape[0]}"):
            use(tensor)
    with pytest.raises(ValueError, match=r"ambiguous.*\.any\(\)"):
        bool(tensor)


def test_values_are_not_looked_for():
    """Python would compare them with the Tensors of the rows, by identity, and never find one."""
    source = np.array([3, 4, 5])
    tensor, array = Tensor.from_dlpack(source), Array.from_dlpack(source)
    with pytest.raises(TypeError, match=re.escape("use `value in numpy.asarray(tensor)`")):
        assert 4 in tensor
    with pytest.raises(TypeError, match=re.escape("`value in pyarrow.array(array).to_pylist()`")):
        assert 4 in array
    assert 4 in np.asarray(tensor)
    assert 4 in pa.array(array).to_pylist()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_sequence_is_still_taken_as_a_tensor(dtype, monkeypatch):
    """It is not read element by element."""
    source = torch.arange(6).reshape(2, 3).to(dtype)
    tensor = Tensor.from_dlpack(source)
    for take in (torch.tensor, torch.as_tensor):
        assert take(tensor).equal(source)
    assert np.asarray(tensor).shape == np.array([tensor, tensor]).shape[1:] == (2, 3)
    assert jnp.asarray(tensor).shape == (2, 3)
    assert pd.DataFrame(tensor).to_numpy().tolist() == source.tolist()
    row = tensor[1]
    assert pa.array(row).to_pylist() == [3, 4, 5]
    assert pa.array(row).type == pa.float32()
    assert pa.array(row, pa.float64()).to_pylist() == [3, 4, 5]
    assert pd.Series(row).tolist() == [3, 4, 5]
    assert pd.DataFrame({"x": row})["x"].tolist() == [3, 4, 5]
    assert pl.Series(Array.from_dlpack(row)).to_list() == [3, 4, 5]


def test_elements_that_share_a_byte_are_no_views_but_values():
    values = np.array([0, 0.5, 1, 1]).astype(ml_dtypes.float4_e2m1fn)
    x = asdlpack(jnp.asarray(values))
    for index in 0, slice(None), None:
        with pytest.raises(
            BufferError, match=r"numpy\.asarray\(x\) is an array .* x\.tolist\(\) has"
        ):
            x[index]
    assert (x.tolist(), np.asarray(x)[::-2].tolist()) == ([0, 0.5, 1, 1], [1, 0.5])
