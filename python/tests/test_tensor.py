"""Tensor: what it says of itself, the buffer protocol, and the way to and from Arrow."""

import ctypes
import gc
import io
import threading
import time
import weakref

import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pytest
import torch
from arrow_dlpack import Array, Tensor
from dlpack_conformance.abi.dlpack import CUDA
from frameworks import DTYPES
from hostile import Producer


def test_properties_are_the_arrays():
    source = np.zeros((4, 1, 6), np.float32)[:, :, ::-2]
    tensor = Tensor.from_dlpack(source)
    assert tensor.shape == (4, 1, 3)
    assert tensor.strides == (6, 6, -2)
    assert (tensor.dtype, tensor.device, tensor.ndim) == ("float32", "cpu", 3)
    assert (tensor.size, tensor.nbytes) == (12, 48)
    assert not tensor.is_contiguous
    assert not tensor.readonly
    source.flags.writeable = False
    assert Tensor.from_dlpack(source).readonly
    assert Tensor.from_dlpack(np.zeros((2, 3))).is_contiguous
    assert repr(tensor) == (
        "<arrow_dlpack.Tensor float32, shape (4, 1, 3), strides (6, 6, -2), cpu>"
    )
    assert repr(Tensor.from_dlpack(source)).endswith("cpu, read-only>")


def test_values_without_axes():
    tensor = Tensor.from_dlpack(np.array(2.5))
    assert (tensor.shape, tensor.strides, tensor.ndim, tensor.size) == ((), (), 0, 1)
    assert np.asarray(tensor) == 2.5
    assert pa.array(tensor.to_arrow()).to_pylist() == [2.5]


def test_what_a_legacy_producer_shared_is_not_written_to(live):
    """It cannot say read-only, and JAX's arrays are."""
    source = jnp.arange(4.0)
    tensor = Tensor.from_dlpack(source.__dlpack__())
    assert tensor.readonly
    assert memoryview(tensor).readonly
    assert not np.from_dlpack(tensor).flags.writeable
    assert not np.asarray(tensor).flags.writeable
    copy = np.from_dlpack(tensor, copy=True)
    copy[0] = 99
    assert source.tolist() == [0, 1, 2, 3]


def test_copies_let_other_threads_run():
    source = np.broadcast_to(np.float64(1), 1 << 25)
    ticks = []
    stop = threading.Event()

    def tick():
        while not stop.wait(0.001):
            ticks.append(time.perf_counter())

    thread = threading.Thread(target=tick)
    thread.start()
    begin = time.perf_counter()
    Tensor.from_dlpack(source, copy=True)
    end = time.perf_counter()
    stop.set()
    thread.join()
    assert any(begin < at < end for at in ticks)


def get_buffer(tensor, view, flags):
    get = ctypes.pythonapi.PyObject_GetBuffer
    get.argtypes = [ctypes.py_object, ctypes.c_void_p, ctypes.c_int]
    return get(tensor, view, flags)


@pytest.mark.parametrize(
    ("flags", "refused"),
    {
        0x38: ("F", "strided"),  # PyBUF_C_CONTIGUOUS
        0x58: ("C", "strided"),  # PyBUF_F_CONTIGUOUS
        0x98: ("strided",),  # PyBUF_ANY_CONTIGUOUS
    }.items(),
)
def test_the_order_that_is_asked_for_is_kept_to(flags, refused):
    sources = {
        "C": np.ones((2, 3)),
        "F": np.ones((2, 3), order="F"),
        "strided": np.ones((4, 6))[::2],
    }
    for name, source in sources.items():
        view, tensor = ctypes.create_string_buffer(256), Tensor.from_dlpack(source)
        if name in refused:
            with pytest.raises(BufferError, match="the tensor is not"):
                get_buffer(tensor, view, flags)
        else:
            assert get_buffer(tensor, view, flags) == 0
            ctypes.pythonapi.PyBuffer_Release(view)


def test_a_buffer_into_nothing_is_refused():
    with pytest.raises(BufferError, match="view is NULL"):
        get_buffer(Tensor.from_dlpack(np.ones(2)), None, FULL_RO)


def test_extents_of_nothing_may_be_huge():
    """But a buffer has strides, and those of such a shape fit no number."""
    producers = Producer(shape=(2**61, 0)), Producer(shape=(0, 2**61))
    many, none = map(Tensor.from_dlpack, producers)
    view = memoryview(many)
    assert (view.shape, view.nbytes) == ((2**61, 0), 0)
    view.release()
    with pytest.raises(BufferError, match="span of strides overflows"):
        memoryview(none)
    del many, none
    assert [producer.deleted for producer in producers] == [1, 1]


def test_a_buffer_without_axes_has_neither_shape_nor_strides():
    view = ctypes.create_string_buffer(256)
    release = ctypes.pythonapi.PyBuffer_Release
    release.argtypes, release.restype = [ctypes.c_void_p], None
    assert get_buffer(Tensor.from_dlpack(np.array(1.0)), view, FULL_RO) == 0
    fields = (ctypes.c_void_p * 8).from_buffer(view)
    assert fields[SHAPE] is None
    assert fields[SHAPE + 1] is None
    release(view)


FULL_RO = 0x011C
SHAPE = 6  # words before Py_buffer.shape: buf, obj, len, itemsize, readonly and ndim, format

FORMATS = [*DTYPES, "bool", "complex64", "complex128"]


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("layout", ["C", "F", "strided", "empty", "one row"])
def test_the_buffer_is_the_one_that_numpy_gives(dtype, layout):
    source = {
        "C": lambda: np.ones((3, 4), dtype),
        "F": lambda: np.ones((3, 4), dtype, order="F"),
        "strided": lambda: np.ones((6, 8), dtype)[::2, ::-2],
        "empty": lambda: np.ones((3, 0), dtype),
        "one row": lambda: np.ones((1, 4), dtype),
    }[layout]()
    mine, numpys = memoryview(Tensor.from_dlpack(source)), memoryview(source)
    for name in ("shape", "itemsize", "nbytes", "ndim", "readonly", "c_contiguous", "f_contiguous"):
        assert getattr(mine, name) == getattr(numpys, name), name
    again = np.asarray(mine)
    assert again.dtype == source.dtype
    assert again.tolist() == source.tolist()
    if source.size:
        assert again.__array_interface__["data"] == source.__array_interface__["data"]
        assert [s for n, s in zip(mine.shape, mine.strides, strict=True) if n > 1] == [
            s for n, s in zip(numpys.shape, numpys.strides, strict=True) if n > 1
        ]


def test_buffers_refuse_what_they_cannot_say():
    with pytest.raises(BufferError, match="bfloat16 has no buffer format"):
        memoryview(Tensor.from_dlpack(torch.zeros(2, dtype=torch.bfloat16)))
    readonly = Array(pa.array([1, 2])).to_tensor()
    assert memoryview(readonly).readonly
    with pytest.raises(TypeError, match="read-write"):
        io.BytesIO(b"x").readinto(readonly)
    with pytest.raises(BufferError, match="not row-major"):
        bytes_of(Tensor.from_dlpack(np.zeros((2, 2)).T))
    deep = Tensor.from_dlpack(Producer([1.0], shape=(1,) * 65))
    with pytest.raises(BufferError, match="65 axes"):
        memoryview(deep)


def bytes_of(tensor):
    """Asks for contiguous bytes without strides, as sockets and files do."""
    return io.BytesIO().write(tensor)


def test_simple_buffers_are_bytes():
    source = np.arange(6, dtype=np.int16).reshape(2, 3)
    assert bytes_of(Tensor.from_dlpack(source)) == 12
    assert bytes(Tensor.from_dlpack(source)) == source.tobytes()


def test_a_view_keeps_the_tensor_and_writes_through(live):
    source = np.zeros(3)
    view = memoryview(Tensor.from_dlpack(source))
    assert live() == (0, 1)
    view[1] = 5.0
    assert source.tolist() == [0, 5, 0]
    view.release()
    assert live() == (0, 0)


def test_a_list_has_all_elements_of_a_large_tensor():
    values = np.arange(100_000)
    assert Tensor.from_dlpack(values).tolist() == values.tolist()


def test_to_tensor_and_to_arrow_are_inverse_and_share():
    source = pa.array(np.arange(8, dtype="f4"))
    tensor = Array(source).to_tensor()
    assert tensor.readonly
    back = pa.array(tensor.to_arrow())
    assert back.equals(source)
    assert back.buffers()[1].address == source.buffers()[1].address
    copied = pa.array(tensor.to_arrow(copy=True))
    assert copied.equals(source)
    assert copied.buffers()[1].address != source.buffers()[1].address
    writable = Array(source).to_tensor(copy=True)
    assert not writable.readonly
    np.asarray(writable)[0] = 9
    assert source[0].as_py() == 0


def test_tensors_pass_through_with_rank_strides_and_dtype():
    for source in (
        torch.arange(24, dtype=torch.bfloat16).reshape(2, 3, 4).permute(2, 0, 1),
        torch.zeros(3, 4, dtype=torch.complex64)[:, 1],
        torch.tensor([True, False]),
    ):
        tensor = Tensor.from_dlpack(source)
        assert tensor.shape == tuple(source.shape)
        assert tensor.strides == source.stride()
        again = torch.from_dlpack(tensor)
        assert again.data_ptr() == source.data_ptr()
        assert again.stride() == source.stride()
        assert torch.equal(again, source)
        copy = torch.from_dlpack(Tensor.from_dlpack(source, copy=True))
        assert torch.equal(copy, source)
        assert copy.is_contiguous()
        assert copy.data_ptr() != source.data_ptr()


def test_a_cycle_through_a_producer_is_collected():
    class Gpu:
        def __init__(self, producer):
            self.producer = producer
            self.tensor = Tensor.from_dlpack(self)

        def __dlpack__(self, **_):
            return self.producer.capsule()

    producer = Producer(device_type=CUDA)
    gpu = Gpu(producer)
    died = weakref.ref(gpu)
    del gpu
    gc.collect()
    assert died() is None
    assert producer.deleted == 1
