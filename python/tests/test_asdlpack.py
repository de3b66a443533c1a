"""asdlpack: a tensor of whatever says where its elements are."""

import array
import ctypes
import gc
import itertools
import mmap
import pickle
import subprocess
import sys
import threading
import weakref
from functools import partial

import hostile
import numpy as np
import pyarrow as pa
import pytest
import system
import torch
from arrow_dlpack import (
    Array,
    Tensor,
    UnsupportedError,
    asdlpack,
    explain,
    from_dlpack,
    to_tensor,
)
from dlpack_conformance.abi.capsule import PyCapsule_GetPointer, PyCapsule_SetName
from dlpack_conformance.abi.dlpack import CUDA, VERSIONED, DLManagedTensorVersioned
from PIL import Image

DTYPES = [
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "bool", "complex64", "complex128"),
]

LAYOUTS = {
    "C": lambda x: x.reshape(4, 6),
    "F": lambda x: x.reshape(6, 4).T,
    "strided": lambda x: x.reshape(4, 6)[::2, 1::3],
    "reversed": lambda x: x.reshape(4, 6)[::-1, ::-2],
    "broadcast": lambda x: np.broadcast_to(x[:3], (2, 3)),
    "3-D": lambda x: x.reshape(2, 3, 4).transpose(2, 0, 1),
    "0-D": lambda x: x[5:6].reshape(()),
    "one row": lambda x: x.reshape(4, 6)[1:2],
    "empty": lambda x: x.reshape(4, 6)[:, 3:3],
}


def values(dtype):
    numbers = np.arange(24) % 2 if dtype == "bool" else np.arange(24)
    return numbers.astype(dtype)


def address(x):
    """Of the first element of a NumPy array, or of something with a flat buffer."""
    return np.asarray(x).__array_interface__["data"][0]


class Described:
    """Has an array interface and nothing else."""

    def __init__(self, interface):
        self.__array_interface__ = interface


class Gpu:
    """The same of CUDA's; the memory is not there, and the test dies if anyone looks."""

    def __init__(self, **changes):
        self.__cuda_array_interface__ = {
            "shape": (2, 3),
            "typestr": "<f4",
            "data": (0xDEAD0000, False),
            "version": 3,
        } | changes


def assert_is(tensor, source):
    """The tensor is the NumPy array: values, address, shape, strides, dtype, read-only or not."""
    assert tensor.shape == source.shape
    assert tensor.dtype == source.dtype.name
    assert tensor.readonly != source.flags.writeable
    again = np.from_dlpack(tensor)
    np.testing.assert_array_equal(again, source)
    if source.size:
        assert address(again) == address(source)
        for extent, mine, theirs in zip(source.shape, tensor.strides, source.strides, strict=True):
            assert extent == 1 or mine * source.itemsize == theirs


# What there is in the real world.


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, pickle.PickleBuffer])
def test_bytes_are_bytes(kind):
    source = kind(b"abcdef")
    tensor = asdlpack(source)
    assert (tensor.dtype, tensor.shape, tensor.strides) == ("uint8", (6,), (1,))
    assert tensor.readonly == (kind is not bytearray)
    assert np.from_dlpack(tensor).tobytes() == b"abcdef"
    assert address(np.from_dlpack(tensor)) == address(np.frombuffer(source, "u1"))


@pytest.mark.parametrize("typecode", "bBhHiIlLqQfd")
def test_arrays_of_every_typecode(typecode):
    source = array.array(typecode, [1, 2, 3])
    assert_is(asdlpack(source), np.asarray(source))


@pytest.mark.parametrize("access", [mmap.ACCESS_READ, mmap.ACCESS_WRITE])
def test_a_mapped_file_is_shared_and_stays_open(tmp_path, access):
    path = tmp_path / "file"
    path.write_bytes(bytes(range(100)))
    with path.open("r+b") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=access)
    tensor = asdlpack(mapped)
    assert tensor.readonly == (access == mmap.ACCESS_READ)
    assert_is(tensor, np.frombuffer(mapped, "u1"))
    gc.collect()
    with pytest.raises(BufferError):
        mapped.close()
    if access == mmap.ACCESS_WRITE:
        np.from_dlpack(tensor)[7] = 99
        assert mapped[7] == 99
    del tensor
    mapped.close()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_memoryviews_of_every_dtype_and_layout(dtype, layout):
    source = LAYOUTS[layout](values(dtype))
    tensor = asdlpack(memoryview(source))
    assert_is(tensor, source)
    source.flags.writeable = False
    assert_is(asdlpack(memoryview(source)), source)


def test_memoryviews_that_were_cast_and_sliced():
    memory = bytearray(range(48))
    view = memoryview(memory).cast("h", (4, 6))
    assert_is(asdlpack(view), np.asarray(view))
    assert_is(asdlpack(view.toreadonly()), np.asarray(view.toreadonly()))
    flat = memoryview(memory)[7:40:3][::-2]
    assert_is(asdlpack(flat), np.asarray(flat))
    assert asdlpack(flat).strides == (-6,)
    for format, dtype in [("n", "int64"), ("N", "uint64"), ("?", "bool"), ("c", "uint8")]:
        assert asdlpack(memoryview(bytes(16)).cast(format)).dtype == dtype


@pytest.mark.parametrize(
    "ctype",
    [
        *(ctypes.c_int8, ctypes.c_uint16, ctypes.c_int, ctypes.c_long, ctypes.c_uint64),
        *(ctypes.c_float, ctypes.c_double, ctypes.c_bool),
    ],
)
def test_ctypes_arrays_which_leave_strides_out(ctype):
    source = (ctype * 3 * 2)((1, 0, 1), (0, 1, 1))
    tensor = asdlpack(source)
    assert_is(tensor, np.ctypeslib.as_array(source))
    assert tensor.strides == (3, 1)
    np.from_dlpack(tensor)[1, 0] = 1
    assert source[1][0]
    scalar = asdlpack(ctype(1))
    assert (scalar.shape, np.from_dlpack(scalar)) == ((), 1)


def test_characters_of_c_are_bytes():
    source = ctypes.create_string_buffer(b"abc")
    assert np.from_dlpack(asdlpack(source)).tobytes() == b"abc\0"


def test_a_numpy_memmap(tmp_path):
    np.save(tmp_path / "x.npy", values("float32").reshape(4, 6))
    for mode, readonly in [("r", True), ("r+", False), ("c", False)]:
        source = np.load(tmp_path / "x.npy", mmap_mode=mode)
        assert isinstance(source, np.memmap)
        tensor = asdlpack(source)
        assert tensor.readonly == readonly
        assert_is(tensor, source)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_array_interfaces_of_every_dtype_and_layout(dtype, layout):
    source = LAYOUTS[layout](values(dtype))
    assert_is(asdlpack(Described(source.__array_interface__)), source)
    source.flags.writeable = False
    assert_is(asdlpack(Described(source.__array_interface__)), source)


@pytest.mark.parametrize("scalar", [np.float32(2.5), np.int8(-1), np.bool_(True), np.complex64(1j)])
def test_numpys_scalars_which_keep_their_memory_by_the_dictionary(scalar):
    tensor = asdlpack(scalar)
    gc.collect()
    assert (tensor.shape, tensor.dtype) == ((), scalar.dtype.name)
    assert np.from_dlpack(tensor) == scalar


@pytest.mark.parametrize("mode", ["1", "L", "LA", "RGB", "RGBA", "CMYK", "YCbCr", "I", "F", "I;16"])
def test_images_of_every_mode(mode):
    image = Image.linear_gradient("L").resize((5, 3)).convert(mode)
    tensor = asdlpack(image)
    expected = np.asarray(image)
    assert (tensor.shape, tensor.dtype) == (expected.shape, expected.dtype.name)
    assert tensor.shape[:2] == (3, 5)
    np.testing.assert_array_equal(np.from_dlpack(tensor), expected)
    assert tensor.readonly


@pytest.mark.parametrize("mode", ["RGB", "L", "1"])
@pytest.mark.parametrize("read", [to_tensor, explain, partial(to_tensor, out=np.empty((6, 4)))])
def test_an_image_is_no_column_of_its_pixels(read, mode):
    image = Image.new(mode, (3, 2))
    with pytest.raises(
        TypeError, match=r"height and width: asdlpack\(x\) is a tensor of its shape"
    ):
        read(image)
    assert asdlpack(image).shape[:2] == (2, 3)
    assert len(Array(image)) == 6


def test_an_image_in_place_of_a_tensor_names_the_way():
    with pytest.raises(TypeError, match=r"asdlpack\(x\) takes its memory"):
        from_dlpack(Image.new("RGB", (3, 2)))


def test_what_speaks_dlpack_goes_by_it():
    for source in (
        np.arange(6.0).reshape(2, 3)[:, ::-1],
        torch.arange(6).reshape(2, 3).T,
        torch.zeros(3, dtype=torch.bfloat16),
        hostile.Producer([1.0, 2.0], shape=(2,)),
    ):
        tensor = asdlpack(source)
        expected = Tensor.from_dlpack(source)
        assert repr(tensor) == repr(expected)
        assert tensor.__dlpack_device__() == expected.__dlpack_device__()
    assert asdlpack(hostile.Producer(legacy=True).capsule()).readonly
    readonly = np.arange(3)
    readonly.flags.writeable = False
    assert_is(asdlpack(readonly), readonly)
    gpu = hostile.Producer(device_type=CUDA)
    tensor = asdlpack(gpu)
    tensor.__dlpack__(stream=7)
    assert gpu.calls[-1] == {"stream": 7}


def test_arrow_arrays_are_tensors():
    source = pa.array([1.5, 2.5, 3.5])[1:]
    for x in (source, Array(source), pa.chunked_array([source])):
        tensor = asdlpack(x)
        assert tensor.readonly
        again = np.from_dlpack(tensor)
        assert again.tolist() == [2.5, 3.5]
        assert address(again) == source.buffers()[1].address + 8
        copy = np.from_dlpack(asdlpack(x, copy=True))
        assert address(copy) != address(again)
    assert not asdlpack(pa.chunked_array([source]), copy=True).readonly
    with pytest.raises(UnsupportedError, match="1 null"):
        asdlpack(pa.chunked_array([[1, None]]))


def test_arrow_data_of_all_kinds_goes_the_way_of_to_tensor():
    chunks = pa.chunked_array([[1, 2], [3]])
    assert np.from_dlpack(asdlpack(chunks)).tolist() == [1, 2, 3]
    with pytest.raises(BufferError, match="2 chunks"):
        asdlpack(chunks, copy=False)
    assert asdlpack(Array(pa.array([True, False]))).dtype == "bool"
    with pytest.raises(BufferError, match="bits"):
        asdlpack(Array(pa.array([True, False])), copy=False)
    rows = pa.array([[1, 2], [3, 4]], pa.list_(pa.int8(), 2))
    for tensor in (asdlpack(Array(rows)), asdlpack(asdlpack(Array(rows)))):
        assert np.from_dlpack(tensor).tolist() == [[1, 2], [3, 4]]
        assert tensor.field is not None


def test_a_tensor_is_shared_with_what_it_says():
    source = hostile.Producer(device_type=CUDA, strides=(1,))
    tensor = Tensor.from_dlpack(source)
    again = asdlpack(tensor)
    assert repr(again) == repr(tensor)
    again.__dlpack__(stream=7)
    assert source.calls[-1] == {"stream": 7}
    del tensor, again
    memory = bytearray(b"abc")
    tensor = asdlpack(asdlpack(memory), copy=False)
    assert address(np.from_dlpack(tensor)) == address(np.frombuffer(memory, "u1"))
    copy = asdlpack(tensor, copy=True)
    assert not copy.readonly
    assert address(np.from_dlpack(copy)) != address(np.frombuffer(memory, "u1"))


def test_the_error_for_other_objects_names_all_interfaces():
    for x in ([1, 2], 1.5, "text", None, object(), range(3)):
        with pytest.raises(TypeError) as refusal:
            asdlpack(x)
        for name in ("__dlpack__", "__arrow_c_array__", "__cuda_array_interface__"):
            assert name in str(refusal.value)
        assert "the buffer protocol" in str(refusal.value)
        assert f"got {type(x).__name__}" in str(refusal.value)
    with pytest.raises(TypeError, match="copy must be"):
        asdlpack(b"", copy=1)


def test_an_interface_that_is_none_is_none():
    class Undecided(bytearray):
        __dlpack__ = None
        __array_interface__ = None
        __cuda_array_interface__ = None

    assert asdlpack(Undecided(b"ab")).shape == (2,)


def test_errors_of_the_object_itself_come_through():
    class Broken:
        @property
        def __array_interface__(self):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asdlpack(Broken())
    closed = memoryview(b"abc")
    closed.release()
    with pytest.raises(ValueError, match="released"):
        asdlpack(closed)


@pytest.mark.parametrize(
    "source",
    [
        np.zeros(2, ">f4"),
        np.zeros(2, "f4,i4"),
        np.array([None]),
        np.zeros(2, "M8[s]"),
        np.zeros(2, "S3"),
        pytest.param(np.zeros(2, "longdouble"), marks=system.needs_long_double),
    ],
)
def test_what_numpys_dlpack_refuses_stays_refused(source):
    with pytest.raises(BufferError):
        asdlpack(source)


# Copies.


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("wrap", [memoryview, lambda x: Described(x.__array_interface__)])
def test_a_copy_is_its_own_and_writable(wrap, layout):
    source = LAYOUTS[layout](values("int16"))
    source.flags.writeable = False
    copy = asdlpack(wrap(source), copy=True)
    assert not copy.readonly
    assert copy.is_contiguous
    np.testing.assert_array_equal(np.from_dlpack(copy), source)
    if source.size:
        assert not np.shares_memory(np.from_dlpack(copy), source)
    assert_is(asdlpack(wrap(source), copy=False), source)


def test_a_copy_lets_go_of_the_source():
    source = bytearray(b"abc")
    copy = asdlpack(source, copy=True)
    source.append(1)
    assert copy.shape == (3,)


# Who keeps what, and for how long.


def test_a_bytearray_cannot_be_resized_meanwhile(live):
    source = bytearray(b"abc")
    tensor = asdlpack(source)
    consumer = np.from_dlpack(tensor)
    assert live()[0] > 0
    with pytest.raises(BufferError, match="re-?size"):
        source.append(1)
    del tensor
    with pytest.raises(BufferError, match="re-?size"):
        source.append(1)
    source[0] = ord("x")
    assert consumer.tobytes() == b"xbc"
    del consumer
    source.append(1)
    assert live() == (0, 0)


class Numbers(array.array):
    """An array that can be watched."""


class Pointers(ctypes.c_void_p * 2):
    """A buffer that is refused, and can be watched."""


def watched_array():
    source = Numbers("i", [1, 2, 3])
    return source, weakref.ref(source)


def watched_interface():
    memory = np.array([1, 2, 3], "i4")
    source = Described(memory.__array_interface__)
    source.memory = memory
    return source, weakref.ref(source)


def watched_interface_of_a_buffer():
    memory = Numbers("i", [1, 2, 3])
    interface = {"shape": (3,), "typestr": "<i4", "version": 3, "data": memory}
    return Described(interface), weakref.ref(memory)


WATCHED = [watched_array, watched_interface, watched_interface_of_a_buffer]


@pytest.mark.parametrize("watched", WATCHED)
def test_the_source_goes_when_the_last_consumer_lets_go(watched):
    source, alive = watched()
    tensor = asdlpack(source)
    first, second = np.from_dlpack(tensor), torch.from_dlpack(tensor)
    view = memoryview(tensor)
    del source, tensor, first
    assert alive() is not None
    assert second.tolist() == view.tolist() == [1, 2, 3]
    view.release()
    assert alive() is not None
    del view, second
    assert alive() is None


@pytest.mark.parametrize("watched", WATCHED)
def test_a_refused_source_is_let_go_of(watched, live):
    source, alive = watched()
    if isinstance(source, Described):
        source.__array_interface__ |= {"shape": (1 << 40,), "strides": (1 << 40,)}
        with pytest.raises(BufferError):
            asdlpack(source)
    else:
        source = Pointers()
        alive = weakref.ref(source)
        with pytest.raises(UnsupportedError):
            asdlpack(source)
    del source
    assert alive() is None
    assert live() == (0, 0)


def test_no_references_are_lost_or_made_up():
    memory = np.arange(3)
    source, interface = Described(memory.__array_interface__), memory.__array_interface__
    for x in (bytearray(3), source, Described(interface), memory):
        before = sys.getrefcount(x)
        for copy in (None, False, True):
            asdlpack(x, copy=copy)
        assert sys.getrefcount(x) == before
    before = sys.getrefcount(interface)
    tensor = asdlpack(Described(interface))
    assert sys.getrefcount(interface) > before
    del tensor
    assert sys.getrefcount(interface) == before


def test_a_thread_can_let_go():
    source, alive = watched_array()
    box = [np.from_dlpack(asdlpack(source))]
    del source
    thread = threading.Thread(target=box.clear)
    thread.start()
    thread.join()
    assert alive() is None


def managed(tensor):
    """The tensor's C structure, and its deleter, which is now ours to call."""
    capsule = tensor.__dlpack__(max_version=(1, 3))
    pointer = PyCapsule_GetPointer(capsule, VERSIONED)
    PyCapsule_SetName(capsule, b"used_dltensor_versioned")
    return pointer, DLManagedTensorVersioned.from_address(pointer).deleter


@pytest.mark.parametrize("watched", WATCHED)
@pytest.mark.parametrize(
    "call",
    [
        lambda deleter, pointer: ctypes.CFUNCTYPE(None, ctypes.c_void_p)(deleter)(pointer),
        lambda deleter, pointer: ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(deleter)(pointer),
        system.call_on_a_thread_of_c,
    ],
    ids=["without the GIL", "with the GIL", "on a thread that Python has never seen"],
)
def test_the_deleter_releases_at_once_wherever_it_is_called(call, watched):
    source, alive = watched()
    pointer, deleter = managed(asdlpack(source))
    del source
    assert alive() is not None
    call(deleter, pointer)
    assert alive() is None


def test_an_exception_in_flight_survives_what_the_release_runs():
    """The finaliser, which has one of its own, runs while abs() has already raised."""
    caught = []

    def finalised():
        try:
            raise KeyError
        except KeyError as error:
            caught.append(error)

    def taken(watched):
        source, alive = watched()
        weakref.finalize(alive(), finalised)
        return asdlpack(source)

    for watched in WATCHED:
        with pytest.raises(TypeError, match="bad operand"):
            abs(taken(watched))
    assert len(caught) == len(WATCHED)


AT_EXIT = """
import ctypes, array, sys
import numpy as np
from arrow_dlpack import asdlpack

class Source(array.array):
    def __del__(self):
        print("released")

class Described:
    def __init__(self):
        self.memory = np.zeros(3)
        self.__array_interface__ = self.memory.__array_interface__

def managed(tensor):
    capsule = tensor.__dlpack__(max_version=(1, 3))
    get, name = ctypes.pythonapi.PyCapsule_GetPointer, b"dltensor_versioned"
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    rename = ctypes.pythonapi.PyCapsule_SetName
    rename.argtypes = [ctypes.py_object, ctypes.c_char_p]
    pointer = get(capsule, name)
    global used
    used = b"used_dltensor_versioned"
    rename(capsule, used)
    return ctypes.c_void_p.from_address(pointer + 16), ctypes.c_void_p(pointer)

c = ctypes.CDLL(None)
for source in (Source("i", [1, 2]), Described()):
    tensors = [asdlpack(source), np.from_dlpack(asdlpack(source))]
    deleter, pointer = managed(asdlpack(source))
    # Called by exit(), when the interpreter is gone.
    assert c.__cxa_atexit(deleter, pointer, None) == 0
    sys.modules["held by a module that is not cleared " + str(id(source))] = tensors
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(memoryview(asdlpack(source))))
print("done")
"""


@system.needs_cxa_atexit
def test_tensors_may_outlive_the_interpreter():
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", AT_EXIT], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("done")


def test_threads_that_let_go_while_the_interpreter_ends_do_no_harm():
    code = """
import threading, time
import numpy as np
from arrow_dlpack import asdlpack

def churn():
    while True:
        np.from_dlpack(asdlpack(bytearray(100))).sum()

for _ in range(4):
    threading.Thread(target=churn, daemon=True).start()
time.sleep(0.1)
"""
    for _ in range(5):
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")


def test_many_threads_take_and_let_go_of_one_source():
    source = bytearray(range(100))

    def work():
        for _ in range(300):
            assert np.from_dlpack(asdlpack(source)).sum() == 4950

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    source.append(1)


# Buffers that say anything.


class PyBuffer(ctypes.Structure):
    _fields_ = (
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.py_object),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
        ("strides", ctypes.POINTER(ctypes.c_ssize_t)),
        ("suboffsets", ctypes.POINTER(ctypes.c_ssize_t)),
        ("internal", ctypes.c_void_p),
    )


view_of = ctypes.pythonapi.PyMemoryView_FromBuffer
view_of.restype, view_of.argtypes = ctypes.py_object, [ctypes.c_void_p]
MEMORY = np.arange(64, dtype="u1")
KEPT = []  # what memoryviews of made-up buffers point to


def fake(format, itemsize=4, shape=(2,), strides=None, suboffsets=None, **fields):
    """A memoryview that says all this of MEMORY."""

    def values(numbers):
        return (ctypes.c_ssize_t * len(numbers))(*numbers) if numbers is not None else None

    buffer = PyBuffer(
        buf=MEMORY.ctypes.data,
        len=int(np.prod(shape)) * itemsize,
        itemsize=itemsize,
        ndim=len(shape),
        format=format,
        shape=values(shape),
        strides=values(strides),
        suboffsets=values(suboffsets),
    )
    for name, value in fields.items():
        setattr(buffer, name, value)
    KEPT.append(buffer)
    return view_of(ctypes.addressof(buffer))


NATIVE = "<" if sys.byteorder == "little" else ">"
OTHER = ">" if sys.byteorder == "little" else "<"


@pytest.mark.parametrize("order", ["", "@", "^", "=", NATIVE])
@pytest.mark.parametrize(
    ("format", "dtype"),
    [
        *(("b", "int8"), ("h", "int16"), ("i", "int32"), ("l", None), ("q", "int64")),
        *(("B", "uint8"), ("H", "uint16"), ("I", "uint32"), ("L", None), ("Q", "uint64")),
        *(("e", "float16"), ("f", "float32"), ("d", "float64"), ("?", "bool"), ("c", "uint8")),
        *(("Zf", "complex64"), ("Zd", "complex128"), ("Ze", "complex32")),
        *(("F", "complex64"), ("D", "complex128")),
    ],
)
def test_every_format_in_every_spelling_of_this_machines_order(order, format, dtype):
    if dtype is None:
        bits = ctypes.sizeof(ctypes.c_long) * 8 if order in ("", "@", "^") else 32
        dtype = ("int" if format == "l" else "uint") + str(bits)
    bits = 8 if dtype == "bool" else int("".join(filter(str.isdigit, dtype)))
    tensor = asdlpack(fake((order + format).encode(), bits // 8, (2,)))
    assert tensor.dtype == dtype
    if dtype != "complex32":
        assert np.from_dlpack(tensor).tobytes() == MEMORY[: bits // 4].tobytes()


def test_no_format_is_bytes():
    assert asdlpack(fake(None, 1)).dtype == "uint8"


def test_one_byte_has_no_order():
    for format in "bBc?":
        assert asdlpack(fake((OTHER + format).encode(), 1)).nbytes == 2


@pytest.mark.parametrize(
    ("format", "itemsize", "words"),
    [
        (f"{OTHER}f", 4, f'astype\\("{NATIVE}f4"\\)'),
        (f"{OTHER}H", 2, f'astype\\("{NATIVE}u2"\\)'),
        (f"{OTHER}Zd", 16, f'astype\\("{NATIVE}c16"\\)'),
        ("!i", 4, f'astype\\("{NATIVE}i4"\\)') if OTHER == ">" else ("<i", 4, "astype"),
        ("T{i:a:f:b:}", 8, "take a field"),
        ("ii", 8, "take a field"),
        ("3i", 12, "take a field"),
        ("(2,3)i", 24, "take a field"),
        ("O", 8, "Python objects"),
        ("5s", 5, "text"),
        ("s", 1, "text"),
        ("7p", 7, "text"),
        ("3w", 12, "text"),
        ("u", 2, "text"),
        ("P", 8, "pointers"),
        ("&i", 8, "pointers"),
        ("X{}", 8, "pointers"),
        ("g", 16, 'astype\\("float64"\\)'),
        ("Zg", 32, 'astype\\("complex128"\\)'),
        ("4x", 4, "padding"),
        ("=n", 8, "no size"),
        ("Z", 8, "not a format"),
        ("", 4, "not a format"),
        ("@", 4, "not a format"),
        ("\xff", 4, "not a format"),
        ("k", 4, "not a format"),
    ],
)
def test_formats_that_are_not_one_number_are_refused_with_a_way_out(format, itemsize, words):
    with pytest.raises(UnsupportedError, match=words) as refusal:
        asdlpack(fake(format.encode(), itemsize))
    assert "buffer format" in str(refusal.value)
    if format.isascii():
        assert f'"{format}"' in str(refusal.value)


def test_the_ways_out_are_ways_out():
    swapped = np.arange(3).astype(f"{OTHER}f4")
    assert asdlpack(np.asarray(memoryview(swapped)).astype(f"{NATIVE}f4")).dtype == "float32"
    fields = np.zeros(3, [("a", "f4"), ("b", "i4")])
    assert asdlpack(np.asarray(memoryview(fields))["b"]).strides == (2,)
    assert asdlpack(fields.view("uint8")).shape == (24,)
    text = np.array([b"ab"])
    assert asdlpack(np.frombuffer(memoryview(text), "uint8")).shape == (2,)
    pointers = (ctypes.c_void_p * 3)()
    assert asdlpack(np.frombuffer(pointers, "uintp")).shape == (3,)
    for source in (np.zeros(3, "M8[s]"), fields, np.zeros(3, "S3")):
        with pytest.raises(UnsupportedError, match="numpy.asarray"):
            asdlpack(Described(source.__array_interface__))
    times = Described(np.zeros(3, "M8[s]").__array_interface__)
    assert asdlpack(np.asarray(times).view("int64")).dtype == "int64"
    with pytest.raises(UnsupportedError, match="pointers"):
        asdlpack(pointers)


@system.needs_long_double
def test_the_way_out_of_a_long_double_is_numpys():
    described = Described(np.ones(3, "longdouble").__array_interface__)
    with pytest.raises(UnsupportedError, match="numpy.asarray"):
        asdlpack(described)


@pytest.mark.parametrize(
    ("buffer", "words"),
    [
        ({"itemsize": 3}, "is 4 bytes, but the buffer's items have 3"),
        ({"len": 9}, "says that it has 9 bytes"),
        ({"shape": (2, 2), "suboffsets": (0, -1)}, "suboffsets"),
        ({"strides": (5,)}, "stride of axis 0 is 5 bytes"),
        ({"shape": (-1,), "len": -4}, "extent of axis 0 is -1"),
        ({"shape": (1 << 31, 1 << 31), "len": 0}, "overflows|says that it has"),
        ({"strides": (-(1 << 62),)}, "overflows"),
    ],
)
def test_buffers_that_cannot_be_true_are_refused(buffer, words):
    with pytest.raises(BufferError, match=words):
        asdlpack(fake(b"i", **buffer))


def test_buffers_that_are_odd_but_true():
    assert asdlpack(fake(b"i", shape=(2, 1), suboffsets=(-1, -1))).shape == (2, 1)
    assert asdlpack(fake(b"i", shape=(2, 1), strides=(4, 3))).strides == (1, 1)
    assert asdlpack(fake(b"i", shape=(0, 2), strides=(7, 3))).shape == (0, 2)
    assert asdlpack(fake(b"i", shape=(0,), itemsize=0)).shape == (0,)
    assert asdlpack(fake(b"i", shape=(1,) * 64)).ndim == 64


@pytest.mark.parametrize(
    "source", [b"", bytearray(), array.array("d"), (ctypes.c_int * 0)(), memoryview(b"")[1:]]
)
def test_nothing_is_a_tensor_of_nothing(source):
    for copy in (None, True):
        tensor = asdlpack(source, copy=copy)
        assert (tensor.shape, tensor.nbytes) == ((0,), 0)
        assert np.from_dlpack(tensor).shape == (0,)


# Array interfaces that say anything.


def interface_of(**changes):
    """An interface of two rows of three float32 numbers; `...` takes an entry away."""
    memory = MEMORY
    interface = {
        "shape": (2, 3),
        "typestr": f"{NATIVE}f4",
        "data": (memory.ctypes.data, True),
        "version": 3,
    } | changes
    return Described({key: value for key, value in interface.items() if value is not ...})


def test_the_interface_that_the_hostile_ones_differ_from_is_fine():
    tensor = asdlpack(interface_of())
    assert repr(tensor) == (
        "<arrow_dlpack.Tensor float32, shape (2, 3), strides (3, 1), cpu, read-only>"
    )
    for harmless in ({"strides": None}, {"descr": []}, {"mask": None}, {"offset": 0}, {"x": 1}):
        assert repr(asdlpack(interface_of(**harmless))) == repr(tensor)
    assert asdlpack(interface_of(typestr="=f4")).dtype == "float32"
    assert asdlpack(interface_of(typestr="|u1")).dtype == "uint8"
    assert asdlpack(interface_of(typestr=f"{OTHER}u1")).dtype == "uint8"
    assert asdlpack(interface_of(shape=(np.int64(2), np.uint8(3)))).shape == (2, 3)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"typestr": f"{OTHER}f4"}, f'astype\\("{NATIVE}f4"\\)'),
        ({"typestr": "|V8"}, "take a field"),
        ({"typestr": "<M8[s]"}, "time.*int64"),
        ({"typestr": "<M8"}, "time"),
        ({"typestr": "|O8"}, "Python objects"),
        ({"typestr": "<U4"}, "text"),
        ({"typestr": "|S4"}, "text"),
        ({"typestr": "|t1"}, "unpackbits"),
        ({"typestr": "<f16"}, "float64"),
        ({"typestr": "<c32"}, "complex128"),
        ({"typestr": "<i3"}, "no dtype"),
        ({"typestr": "|b4"}, "no dtype"),
        ({"typestr": "<f0"}, "float64"),
        ({"typestr": "<q8"}, "kind"),
        ({"typestr": "<i" + "9" * 30}, "not a typestr"),
        ({"typestr": ""}, "not a typestr"),
        ({"typestr": "f4"}, "not a typestr"),
        ({"typestr": "<f"}, "not a typestr"),
        ({"typestr": "<f4x"}, "not a typestr"),
        ({"typestr": "<f-4"}, "not a typestr"),
        ({"typestr": "\ud800"}, "not a typestr"),
        ({"typestr": ...}, 'no "typestr"'),
        ({"shape": ...}, 'no "shape"'),
        ({"shape": (2, -3)}, "extent of axis 1 is -3"),
        ({"shape": (0, -3)}, "extent of axis 1 is -3"),
        ({"shape": (1 << 32, 1 << 32, 16)}, "overflows"),
        ({"shape": (1 << 64,)}, "does not fit"),
        ({"shape": (-(1 << 64),)}, "does not fit"),
        ({"shape": (1 << 62,)}, "overflows"),
        ({"shape": (1,) * 65}, "65 axes"),
        ({"strides": (12,)}, "1 strides for 2 axes"),
        ({"strides": (12, 4, 4)}, "3 strides for 2 axes"),
        ({"strides": (13, 4)}, "stride of axis 0 is 13 bytes"),
        ({"strides": ((1 << 63) - 4, 4)}, "overflows"),
        ({"strides": (-(1 << 62), 4)}, "overflows"),
        ({"strides": (1 << 64, 4)}, "does not fit"),
        ({"data": (0, False)}, "data is NULL"),
        ({"data": (-1, False)}, "does not fit"),
        ({"data": (1 << 64, False)}, "does not fit"),
        ({"data": ((1 << 64) - 4, False)}, "overflows"),
        ({"data": (8, False), "strides": (-12, 4)}, "overflows"),
        ({"version": ...}, 'no "version"'),
        ({"version": 2}, "version is 2"),
        ({"version": 4}, "version is 4"),
        ({"version": -3}, "version is -3"),
        ({"version": 1 << 70}, "does not fit"),
        ({"mask": np.zeros(3, bool)}, "mask"),
        ({"mask": False}, "mask"),
        ({"offset": 4}, "offset is 4"),
        ({"offset": -4}, "offset is -4"),
        ({"data": MEMORY, "offset": -4}, "offset is -4"),
        ({"data": MEMORY, "offset": 41}, "reach beyond the 64 bytes"),
        ({"data": MEMORY, "offset": (1 << 63) - 1}, "reach beyond|overflows"),
        ({"data": MEMORY, "strides": (-12, 4)}, "reach beyond"),
        ({"data": MEMORY, "strides": (56, 4)}, "reach beyond"),
        ({"data": MEMORY[::2]}, "contiguous"),
        ({"data": b""}, "reach beyond|NULL"),
    ],
)
def test_interfaces_that_cannot_be_true_are_refused(changes, words):
    with pytest.raises((BufferError, ValueError), match=words) as refusal:
        asdlpack(interface_of(**changes))
    assert isinstance(refusal.value, BufferError) or "data" in changes


WRONG = [True, 1, 1.5, "2", b"2", [2, 3], (2, 1.5), ("a",), (None, 3), {}, {"a": 1}, object(), int]


def test_wrong_types_in_an_interface_are_type_errors():
    right = {
        "shape": (),
        "typestr": (),
        "strides": (),
        "data": (b"2",),
        "version": (),
        "offset": (True, 1),
        "mask": (),
    }
    for key, value in itertools.product(right, WRONG):
        if value in right[key] or key == "mask":
            continue
        with pytest.raises((TypeError, BufferError)) as refusal:
            asdlpack(interface_of(**{key: value}))
        assert key in str(refusal.value) or "version is 1" in str(refusal.value), (key, value)
        if key != "version" and not (key == "typestr" and isinstance(value, str)):
            assert type(refusal.value) is TypeError, (key, value)
    for pair in [
        (),
        (1,),
        (1, 2),
        (1, False, 3),
        (1.5, False),
        ("8", False),
        (None, True),
        (1, None),
    ]:
        with pytest.raises(TypeError, match="a tuple \\(address, readonly\\)"):
            asdlpack(interface_of(data=pair))
    for interface in (1, [], (), "dict", object()):
        with pytest.raises(TypeError, match="Described.__array_interface__ must be a dict"):
            asdlpack(Described(interface))


def test_integers_that_raise_come_through():
    class Odd:
        def __index__(self):
            raise ZeroDivisionError

    for changes in ({"shape": (Odd(),)}, {"data": (Odd(), True)}, {"version": Odd()}):
        with pytest.raises(ZeroDivisionError):
            asdlpack(interface_of(**changes))


def test_data_may_be_a_buffer_with_an_offset():
    memory = bytearray(MEMORY.tobytes())
    tensor = asdlpack(interface_of(data=memory, offset=4, strides=(-0, 4), shape=(1, 3)))
    assert not tensor.readonly
    expected = np.frombuffer(memory, f"{NATIVE}f4", 3, 4)
    assert np.from_dlpack(tensor)[0].tobytes() == expected.tobytes()
    assert address(np.from_dlpack(tensor)) == address(expected)
    del expected
    with pytest.raises(BufferError, match="re-?size"):
        memory.append(1)
    del tensor
    memory.append(1)
    backwards = asdlpack(interface_of(data=MEMORY, offset=20, strides=(-12, -4)))
    assert backwards.strides == (-3, -1)
    assert address(np.from_dlpack(backwards)) == address(MEMORY) + 20
    assert asdlpack(interface_of(data=b"abcd", shape=(1,))).readonly


def test_data_may_be_the_objects_own_buffer():
    class Matrix(bytearray):
        __array_interface__ = {"shape": (2, 3), "typestr": "|i1", "version": 3}  # noqa: RUF012

    source = Matrix(b"abcdef")
    for data in ({}, {"data": None}):
        source.__array_interface__ = Matrix.__array_interface__ | data
        tensor = asdlpack(source)
        assert (tensor.shape, tensor.dtype, tensor.readonly) == ((2, 3), "int8", False)
        assert np.from_dlpack(tensor).tobytes() == b"abcdef"
    with pytest.raises(BufferError, match="re-?size"):
        source.append(1)
    del tensor
    source.append(1)
    with pytest.raises(TypeError, match='"data" of Described.__array_interface__ must be'):
        asdlpack(interface_of(data=...))


def test_nothing_may_be_anywhere():
    for changes in (
        {"data": (0, False)},
        {"data": (0xDEAD0001, True)},
        {"data": b""},
        {"strides": (7, -(1 << 63))},
    ):
        tensor = asdlpack(interface_of(shape=(0, 1 << 62), **changes))
        assert tensor.size == 0
        assert np.from_dlpack(asdlpack(interface_of(shape=(3, 0), **changes))).shape == (3, 0)


# CUDA.


def test_cuda_memory_is_described_and_not_looked_at(live):
    tensor = asdlpack(Gpu())
    assert repr(tensor) == "<arrow_dlpack.Tensor float32, shape (2, 3), strides (3, 1), cuda:0>"
    assert tensor.__dlpack_device__() == (2, 0)
    assert asdlpack(Gpu(data=(0xDEAD0000, True))).readonly
    assert asdlpack(Gpu(strides=(4, -8))).strides == (1, -2)
    assert asdlpack(Gpu(strides=None, version=2, mask=None, stream=None)).strides == (3, 1)
    assert asdlpack(Gpu(typestr="|b1")).dtype == "bool"
    assert asdlpack(Gpu(shape=(0, 3), data=(0, False))).size == 0
    with pytest.raises(BufferError, match="the CPU cannot read"):
        asdlpack(Gpu(), copy=True)
    with pytest.raises(BufferError, match="the CPU cannot read"):
        memoryview(tensor)
    with pytest.raises(BufferError, match="the CPU cannot read"):
        asdlpack(Gpu(shape=(3,))).to_arrow()
    assert asdlpack(Gpu(), copy=False).shape == (2, 3)
    del tensor
    assert live() == (0, 0)


def test_cuda_tensors_carry_the_address_to_the_consumer():
    source = Gpu()
    alive = weakref.ref(source)
    pointer, deleter = managed(asdlpack(source))
    del source
    dl = DLManagedTensorVersioned.from_address(pointer).dl_tensor
    assert (dl.data, dl.byte_offset, hostile.device_of(dl)) == (0xDEAD0000, 0, (2, 0))
    gc.collect()
    assert alive() is not None
    system.call_on_a_thread_of_c(deleter, pointer)
    assert alive() is None


def test_any_stream_may_have_what_needs_no_waiting_for():
    tensor = asdlpack(Gpu())
    for x in (tensor, asdlpack(tensor), Tensor.from_dlpack(tensor)):
        for stream in (None, -1, 1, 2, 12345):
            x.__dlpack__(stream=stream)
        for stream in (0, -2, "1", 1.5):
            with pytest.raises(BufferError, match="there is no stream"):
                x.__dlpack__(stream=stream)
    with pytest.raises(BufferError, match="stream must be None"):
        asdlpack(b"abc").__dlpack__(stream=1)


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        (
            {"stream": 1},
            BufferError,
            "stream 1 must end first.*synchronise, and present stream None",
        ),
        ({"stream": 2, "version": 2}, BufferError, "stream 2"),
        ({"stream": 1 << 70}, BufferError, "does not fit"),
        ({"stream": 0}, BufferError, "rules out"),
        ({"stream": "1"}, TypeError, "stream"),
        ({"mask": Gpu()}, BufferError, "mask"),
        ({"version": 1}, BufferError, "version is 1"),
        ({"version": 4}, BufferError, "version is 4"),
        ({"data": (0, False)}, BufferError, "data is NULL"),
        ({"data": None}, BufferError, 'no "data"'),
        ({"data": b"abc"}, TypeError, "a tuple"),
        ({"data": (1, False, 0)}, TypeError, "a tuple"),
        ({"shape": [2, 3]}, TypeError, "shape"),
        ({"shape": (-1,)}, BufferError, "extent of axis 0"),
        ({"shape": (1 << 62, 1 << 62)}, BufferError, "overflows"),
        ({"strides": (13, 4)}, BufferError, "stride of axis 0"),
        ({"strides": (4,)}, BufferError, "1 strides for 2 axes"),
        ({"typestr": f"{OTHER}f4"}, UnsupportedError, "astype"),
        ({"typestr": "|V4"}, UnsupportedError, "field"),
    ],
)
def test_cuda_interfaces_that_cannot_be_true_are_refused(changes, error, words):
    with pytest.raises(error, match=words) as refusal:
        asdlpack(Gpu(**changes))
    assert type(refusal.value) is error
