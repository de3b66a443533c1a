"""Capsules and descriptors from a hostile producer: a clear error, and its memory intact."""

import ctypes
import gc
import signal
import subprocess
import sys
import threading
from pathlib import Path

import hostile
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
import system
from arrow_dlpack import (
    Array,
    Tensor,
    UnsupportedError,
    asdlpack,
    explain,
    from_dlpack,
    from_ragged,
    record_batch,
    to_tensor,
)
from dlpack_conformance.abi.capsule import (
    PyCapsule_GetName,
    PyCapsule_GetPointer,
    PyCapsule_New,
    PyCapsule_SetName,
)
from dlpack_conformance.abi.dlpack import (
    BOOL,
    CUDA,
    CUDA_HOST,
    INT,
    IS_COPIED,
    LEGACY,
    OPAQUE_HANDLE,
    READ_ONLY,
    UINT,
    VERSIONED,
    DLManagedTensor,
    DLManagedTensorVersioned,
)
from hostile import Producer, header

VERSIONED_ONLY = {"major", "minor", "flags"}
BIG = 1 << 32
LOWEST, HIGHEST = -(1 << 63), (1 << 63) - 1

ACCEPTED = {
    "no deleter": ({"deleter": None}, [1, 2, 3]),
    "NULL strides": ({"strides": None}, [1, 2, 3]),
    "byte_offset": ({"byte_offset": 4, "shape": (2,)}, [2, 3]),
    "nonsense stride of one element": ({"shape": (1,), "strides": (LOWEST,)}, [1]),
    "nonsense stride of no element": ({"shape": (0,), "strides": (HIGHEST,)}, []),
    "NULL data of no element": ({"shape": (0,), "data": None}, []),
    "dangling data of no element": ({"shape": (0,), "data": 3}, []),
    "NULL shape of no axis": ({"shape": None, "ndim": 0}, [1]),
    "zero before overflow": ({"shape": (0,)}, []),
    "another CPU": ({"device_id": 7}, [1, 2, 3]),
    "Arrow's CPU": ({"device_id": -1}, [1, 2, 3]),
    "pinned memory": ({"device_type": CUDA_HOST}, [1, 2, 3]),
    "a stride of two": ({"shape": (2,), "strides": (2,)}, [1, 3]),
    "a stride of zero": ({"shape": (4,), "strides": (0,)}, [1, 1, 1, 1]),
    "a negative stride": ({"strides": (-1,), "byte_offset": 8}, [3, 2, 1]),
    "a minor version to come": ({"minor": 99}, [1, 2, 3]),
    "unknown flags": ({"flags": 1 << 40}, [1, 2, 3]),
}


def in_both_abis(cases):
    """Each case, and each that a legacy tensor (without version and flags) can say once more."""
    return [(name, False) for name in cases] + [
        (name, True) for name, (fields, _) in cases.items() if not fields.keys() & VERSIONED_ONLY
    ]


@pytest.mark.parametrize(("name", "legacy"), in_both_abis(ACCEPTED))
def test_unusual_descriptors_are_understood(name, legacy):
    fields, expected = ACCEPTED[name]
    producer = Producer(legacy=legacy, **fields)
    array = from_dlpack(producer.capsule())
    assert pa.array(array).to_pylist() == expected
    tensor = Tensor.from_dlpack(producer.capsule())
    assert np.from_dlpack(tensor).ravel().tolist() == expected
    del array, tensor
    gc.collect()
    assert producer.deleted == (0 if "deleter" in fields else 2)
    assert list(producer.memory) == [1, 2, 3]


REFUSED = {
    "major version": ({"major": 2}, "version 2.x"),
    "major version zero": ({"major": 0}, "version 0.x"),
    "negative ndim": ({"ndim": -1}, "ndim is -1"),
    "an axis more than anyone has": ({"ndim": 257}, "257 axes are more than the 256"),
    "more axes than anyone has": ({"ndim": (1 << 31) - 1}, "2147483647 axes are more"),
    "more bytes than there are addresses": ({"shape": (1 << 55,)}, "address range overflows"),
    "negative extent": ({"shape": (-3,)}, "extent of axis 0 is -3"),
    "negative extent beside zero": ({"shape": (0, -1)}, "extent of axis 1 is -1"),
    "NULL shape": ({"shape": None, "ndim": 1}, "shape is NULL although ndim is 1"),
    "NULL data": ({"data": None}, "data is NULL although the tensor has 12 bytes"),
    "too many elements": ({"shape": (BIG, BIG, 16)}, "number of elements overflows"),
    "too many bytes": ({"shape": (1 << 62,)}, "size in bytes overflows"),
    "too wide a stride": ({"shape": (3,), "strides": (HIGHEST,)}, "span of strides overflows"),
    "too low a stride": ({"shape": (3,), "strides": (LOWEST,)}, "span of strides overflows"),
    "addresses that wrap": ({"byte_offset": (1 << 64) - 8}, "address range overflows"),
    "addresses below zero": ({"strides": (-(1 << 58),), "shape": (3,)}, "overflows"),
    "no lanes": ({"lanes": 0}, "32 bits and 0 lanes"),
    "float of 7 bits": ({"bits": 7}, "no dtype has code 2, 7 bits"),
    "bool of 1 bit": ({"code": BOOL, "bits": 1}, "no dtype has code 6, 1 bits"),
    "int of 0 bits": ({"code": INT, "bits": 0}, "no dtype"),
    "fp4 of 8 bits": ({"code": 17, "bits": 8}, "no dtype has code 17, 8 bits"),
}


@pytest.mark.parametrize(("name", "legacy"), in_both_abis(REFUSED))
@pytest.mark.parametrize("take", [from_dlpack, Tensor.from_dlpack])
def test_impossible_descriptors_are_refused_and_deleted_once(name, legacy, take):
    fields, words = REFUSED[name]
    producer = Producer(legacy=legacy, **fields)
    capsule = producer.capsule()
    with pytest.raises(BufferError, match=words):
        take(capsule)
    assert producer.deleted == 1
    assert list(producer.memory) == [1, 2, 3]
    with pytest.raises(BufferError, match="used already"):
        take(capsule)
    assert producer.deleted == 1


class FromTheFuture(Producer):
    """Its version and its deleter can be read, and nothing behind them."""

    def __init__(self, major):
        super().__init__(major=major)
        head = DLManagedTensorVersioned.flags.offset
        self.at = hostile.before_guard_page(head)
        ctypes.memmove(self.at, ctypes.addressof(self.managed), head)

    def capsule(self, name=VERSIONED):
        self.given += 1
        return PyCapsule_New(self.at, name, None)


TAKERS = {
    "from_dlpack": from_dlpack,
    "Tensor": Tensor.from_dlpack,
    "asdlpack": asdlpack,
    "explain": explain,
    "record_batch": lambda x: record_batch({"x": x}),
    "record_batch with names": lambda x: record_batch(x, names=["x"]),
    "from_ragged": lambda x: from_ragged(x, np.array([0])),
    "from_ragged's offsets": lambda x: from_ragged(np.array([0]), x),
}


@pytest.mark.parametrize("major", [0, 2, (1 << 32) - 1])
@pytest.mark.parametrize("taker", TAKERS)
def test_of_a_future_major_version_only_the_deleter_is_touched(taker, major):
    producer = FromTheFuture(major)
    for source in (producer, producer.capsule()):
        with pytest.raises(BufferError, match=f"version {major}.x"):
            TAKERS[taker](source)
    with pytest.raises(BufferError, match=f"version {major}.x"):
        Tensor.from_pointer(producer.at)
    assert producer.deleted == 3


def test_the_page_behind_a_future_version_cannot_be_read():
    """Else the law above would show nothing."""
    program = f"""
import ctypes, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import hostile
at = hostile.before_guard_page(24)
assert ctypes.string_at(at, 24) == bytes(24)
print("before", flush=True)
ctypes.string_at(at, 25)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert done.stdout.split() == [b"before"], done.stderr
    # AddressSanitizer makes an abort of it, and ctypes an exception on Windows.
    crashed = done.returncode in (-signal.SIGSEGV, -signal.SIGABRT)
    assert crashed or b"access violation" in done.stderr, done.stderr


EMPTY = {"no rows": (0,), "no columns": (3, 0), "no planes": (0, 2, 5)}


@pytest.mark.parametrize("shape", EMPTY.values(), ids=EMPTY)
@pytest.mark.parametrize("legacy", [False, True], ids=["versioned", "legacy"])
def test_tensors_without_elements_are_deleted_too(shape, legacy, live):
    for data in (None, 3):
        producer = Producer(legacy=legacy, shape=shape, data=data)
        tensor = Tensor.from_dlpack(producer)
        held = [from_dlpack(producer), np.from_dlpack(tensor), tensor.__dlpack__(copy=True)]
        assert np.asarray(tensor).shape == held[1].shape == shape
        del tensor, held
        gc.collect()
        assert producer.deleted == producer.given == 2
        assert live() == (0, 0)


STRIDED = {"shape": (2,), "strides": (2,)}
LATE = {
    "a copy forbidden": (STRIDED, lambda x: from_dlpack(x, copy=False)),
    "a type without values": ({"code": OPAQUE_HANDLE}, from_dlpack),
    "a type that was not asked for": ({}, lambda x: from_dlpack(x, type="bool8")),
    "a field of another type": ({}, lambda x: from_dlpack(x, type=pa.string())),
    "memory elsewhere": ({"device_type": CUDA}, from_dlpack),
    "another device": ({}, lambda x: Tensor.from_dlpack(x, device=(CUDA, 0))),
    "no memory": ({"shape": (1 << 60,), "strides": (0,)}, from_dlpack),
    "no matrix": ({}, lambda x: record_batch(x, names=["a", "b"])),
    "columns of other lengths": ({}, lambda x: record_batch({"a": x, "b": np.zeros(2)})),
    "offsets that are no integers": ({}, lambda x: from_ragged(np.zeros(3), x)),
    "values of the wrong type": ({}, lambda x: from_ragged(x, np.array([0, 1]), type=pa.string())),
    "explained": (STRIDED, lambda x: explain(x, copy=False)),
}


@pytest.mark.parametrize("legacy", [False, True], ids=["versioned", "legacy"])
@pytest.mark.parametrize("name", LATE)
def test_what_is_refused_after_it_was_taken_is_deleted_once(name, legacy, live):
    fields, take = LATE[name]
    producer = Producer(legacy=legacy, **fields)
    with pytest.raises((BufferError, ValueError, MemoryError)):
        take(producer)
    gc.collect()
    assert producer.deleted == producer.given > 0
    assert live() == (0, 0)


@pytest.mark.parametrize("bytes_", [[0, 1, 2, 255], [0, 1, 1, 1]])
def test_booleans_are_true_or_false_whatever_their_bytes(bytes_):
    producer = Producer(bytes_, ctypes.c_uint8, code=BOOL)
    expected = [False, True, True, True]
    for representation in ("bool", "bool8"):
        arrow = pa.array(from_dlpack(producer, type=representation))
        assert arrow.to_pylist() == expected
        # The next consumer may treat 1 as the only true byte.
        assert np.asarray(to_tensor(arrow)).view("u1").tolist() == expected
    assert list(producer.memory) == bytes_


@pytest.mark.parametrize("device", [0, 99, -1, -(1 << 31)])
def test_memory_on_an_unknown_device_is_not_read(device):
    producer = Producer(device_type=device, data=0xDEAD0000)
    tensor = Tensor.from_dlpack(producer.capsule())
    assert tensor.__dlpack_device__() == (device, 0)
    for touch in (
        memoryview,
        Tensor.to_arrow,
        from_dlpack,
        lambda x: x.__dlpack__(copy=True),
    ):
        with pytest.raises(BufferError, match="which the CPU cannot read|on device"):
            touch(tensor)
    del tensor, touch
    gc.collect()
    assert producer.deleted == 1


@pytest.mark.parametrize(
    "answer", [None, (1,), ("cuda", 0), 7, (1 << 40, 0), RuntimeError("no idea")]
)
def test_nonsense_about_the_device_costs_no_tensor(answer):
    class Vague(Producer):
        def __dlpack_device__(self):
            if isinstance(answer, Exception):
                raise answer
            return answer

    vague = Vague(device_type=CUDA, data=0xDEAD0000)
    with pytest.raises((TypeError, RuntimeError), match="device must be|no idea"):
        Tensor.from_dlpack(vague, device=(CUDA, 0))
    assert vague.deleted == 1


HELD = {
    "lanes": ({"lanes": 2, "shape": (1,)}, "float32x2", "lanes"),
    "unknown code": ({"code": 99}, "dtype(99, 32 bits)", "numeric type"),
    "opaque": ({"code": OPAQUE_HANDLE}, "opaque_handle32", "numeric type"),
}


@pytest.mark.parametrize("name", HELD)
def test_a_tensor_holds_what_an_array_cannot(name):
    fields, dtype, words = HELD[name]
    producer = Producer(**fields)
    tensor = Tensor.from_dlpack(producer)
    assert tensor.dtype == dtype
    with pytest.raises(UnsupportedError, match=words):
        tensor.to_arrow()
    copy = Tensor.from_dlpack(tensor, copy=True)
    assert (copy.dtype, copy.shape, copy.nbytes) == (dtype, tensor.shape, tensor.nbytes)
    del tensor
    gc.collect()
    assert producer.deleted == 1


def test_a_huge_broadcast_costs_an_error_and_no_memory():
    producer = Producer([1.0], shape=(1 << 60,), strides=(0,))
    for take in (from_dlpack, lambda x: Tensor.from_dlpack(x, copy=True)):
        with pytest.raises(MemoryError, match="cannot allocate 4611686018427387904 bytes"):
            take(producer)
    assert producer.deleted == 2


def test_packed_elements_cannot_be_gathered():
    producer = Producer([1.0], code=UINT, bits=4, shape=(2, 2), strides=(1, 2))
    tensor = Tensor.from_dlpack(producer)
    with pytest.raises(BufferError, match="uint4.*no address of their own"):
        tensor.__dlpack__(copy=True)


@pytest.mark.parametrize("consumer", [from_dlpack, Tensor.from_dlpack])
def test_a_capsule_is_good_for_one_consumer(consumer):
    producer = Producer()
    capsule = producer.capsule()
    first = consumer(capsule)
    assert PyCapsule_GetName(capsule) == b"used_dltensor_versioned"
    with pytest.raises(BufferError, match="used already"):
        consumer(capsule)
    del first
    gc.collect()
    assert producer.deleted == 1


@pytest.mark.parametrize("name", [b"dltensor_v2", b"", b"used", b"arrow_array"])
def test_a_capsule_of_another_name_is_left_alone(name):
    producer = Producer()
    capsule = PyCapsule_New(ctypes.addressof(producer.managed), name, None)
    with pytest.raises(BufferError, match="not a DLPack capsule"):
        from_dlpack(capsule)
    assert PyCapsule_GetName(capsule) == name
    assert producer.deleted == 0


def test_a_capsule_without_a_name_is_left_alone():
    producer = Producer()
    capsule = PyCapsule_New(ctypes.addressof(producer.managed), None, None)
    with pytest.raises(BufferError, match="not a DLPack capsule"):
        from_dlpack(capsule)


@pytest.mark.parametrize("max_version", [None, (1, 0)])
def test_a_capsule_that_is_not_taken_frees_its_tensor(max_version, live):
    array = Array(pa.array([1, 2, 3]))
    capsule = array.__dlpack__(max_version=max_version)
    assert live() == (1, 0)
    del capsule
    assert live() == (0, 0)


@pytest.mark.parametrize("max_version", [None, (1, 0)])
def test_a_capsule_that_was_renamed_belongs_to_its_consumer(max_version, live):
    capsule = Array(pa.array([1])).__dlpack__(max_version=max_version)
    name = PyCapsule_GetName(capsule)
    used = {LEGACY: b"used_dltensor", VERSIONED: b"used_dltensor_versioned"}[name]
    pointer = PyCapsule_GetPointer(capsule, name)
    PyCapsule_SetName(capsule, used)
    del capsule
    assert live() == (1, 0)
    delete(pointer, legacy=name == LEGACY)
    assert live() == (0, 0)


def test_a_dying_capsule_does_not_swallow_the_exception_in_flight():
    """The deleter, Python code here, runs while int() has already raised."""
    producer = Producer()
    with pytest.raises(TypeError, match="int"):
        int(Tensor.from_dlpack(producer).__dlpack__(max_version=(1, 0)))
    gc.collect()
    assert producer.deleted == 1


def by_address(producer):
    address = ctypes.addressof(producer.managed)
    return Tensor.from_pointer(address, versioned=not producer.legacy)


HOLDERS = {
    "Tensor": Tensor.from_dlpack,
    "Tensor of an address": by_address,
    "Array": from_dlpack,
    "Arrow capsules": lambda x: from_dlpack(x).__arrow_c_array__(),
    "a memoryview": lambda x: memoryview(Tensor.from_dlpack(x)),
    "pyarrow": lambda x: [pa.array(from_dlpack(x))],
    "polars": lambda x: [pl.Series(from_dlpack(x))],
    "numpy": lambda x: [np.from_dlpack(Tensor.from_dlpack(x))],
    "numpy of an Array": lambda x: [np.from_dlpack(from_dlpack(x))],
}


@pytest.mark.parametrize("legacy", [False, True], ids=["versioned", "legacy"])
@pytest.mark.parametrize("holder", HOLDERS)
def test_an_exception_in_flight_survives_the_deleter_of_whatever_held_the_tensor(holder, legacy):
    """abs() has raised already when its argument goes, and with it the tensor."""
    producer = Producer(legacy=legacy)
    with pytest.raises(TypeError, match="bad operand type for abs"):
        abs(HOLDERS[holder](producer))
    gc.collect()
    assert producer.deleted == 1


def delete(pointer, *, legacy, library=ctypes.PyDLL):
    """Calls the deleter, by default with the GIL, with CDLL without it."""
    kind = DLManagedTensor if legacy else DLManagedTensorVersioned
    function = kind.from_address(pointer).deleter
    factory = ctypes.PYFUNCTYPE if library is ctypes.PyDLL else ctypes.CFUNCTYPE
    factory(None, ctypes.c_void_p)(function)(pointer)


def exported(source):
    """The pointer of an exported tensor that owns `source`, taken out of its capsule."""
    capsule = Tensor.from_dlpack(source).__dlpack__(max_version=(1, 0))
    pointer = PyCapsule_GetPointer(capsule, VERSIONED)
    PyCapsule_SetName(capsule, b"used_dltensor_versioned")
    return pointer


SOURCES = {
    "numpy": lambda: np.arange(1000.0),
    "pyarrow": lambda: Array(pa.array([1.0, 2.0])),
}


@pytest.mark.parametrize("source", SOURCES)
def test_a_deleter_may_run_with_and_without_the_gil_and_on_any_thread(source, live):
    delete(exported(SOURCES[source]()), legacy=False)
    delete(exported(SOURCES[source]()), legacy=False, library=ctypes.CDLL)
    pointer = exported(SOURCES[source]())
    thread = threading.Thread(target=delete, args=(pointer,), kwargs={"legacy": False})
    thread.start()
    thread.join()
    assert live() == (0, 0)


@pytest.mark.parametrize("source", SOURCES)
def test_a_deleter_may_run_on_a_thread_that_python_has_never_seen(source, live):
    pointer = exported(SOURCES[source]())
    deleter = DLManagedTensorVersioned.from_address(pointer).deleter
    system.call_on_a_thread_of_c(deleter, pointer)
    assert live() == (0, 0)


@system.needs_cxa_atexit
@pytest.mark.parametrize("source", SOURCES)
def test_a_deleter_may_run_after_the_interpreter_is_gone(source):
    """The C library calls it when the process exits, long after Python has been finalised."""
    program = f"""
import ctypes, sys
sys.path.insert(0, {sys.path[0]!r})
sys.path.insert(0, {str(Path(__file__).parent)!r})
import conftest
from dlpack_conformance.abi.dlpack import DLManagedTensorVersioned
from test_capsules import SOURCES, exported
pointer = exported(SOURCES[{source!r}]())
deleter = ctypes.c_void_p(DLManagedTensorVersioned.from_address(pointer).deleter)
assert ctypes.CDLL(None).__cxa_atexit(deleter, ctypes.c_void_p(pointer), None) == 0
print("registered")
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, "registered"), done.stderr


def test_many_threads_export_and_drop_at_once(live):
    array = Array(pa.array(range(1000)))
    problems = []

    def work():
        try:
            for _ in range(200):
                assert np.from_dlpack(array)[-1] == 999
                assert len(from_dlpack(array.to_tensor())) == 1000
        except Exception as error:
            problems.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert live() == (0, 0)


class Gpu(Producer):
    """Memory that claims to be on a GPU; it must not be touched."""

    def __init__(self, **fields):
        super().__init__(device_type=CUDA, data=0xDEAD0000, **fields)

    def __dlpack__(self, **keywords):
        self.calls.append(keywords)
        if keywords.get("dl_device") == (1, 0):
            self.on_cpu = Producer([7.0, 8.0], flags=IS_COPIED)
            return self.on_cpu.capsule()
        return self.capsule()


def test_a_tensor_elsewhere_is_described_and_not_touched():
    gpu = Gpu(byte_offset=16)
    tensor = Tensor.from_dlpack(gpu)
    assert (tensor.device, tensor.__dlpack_device__()) == ("cuda:0", (CUDA, 0))
    assert (tensor.shape, tensor.strides, tensor.nbytes) == ((3,), (1,), 12)
    for touch in (memoryview, Tensor.to_arrow):
        with pytest.raises(BufferError, match="on cuda:0, which the CPU cannot read"):
            touch(tensor)
    del tensor, touch
    gc.collect()
    assert gpu.deleted == 1


def test_an_error_that_is_no_refusal_of_a_device_is_the_producers_own():
    class Lost(Gpu):
        def __dlpack__(self, **keywords):
            raise LookupError("the memory is gone")

    with pytest.raises(LookupError, match="^the memory is gone$"):
        Tensor.from_dlpack(Lost(), device=(CUDA, 1))


def test_a_tensor_elsewhere_has_its_producer_answer():
    gpu = Gpu()
    tensor = Tensor.from_dlpack(gpu)
    asked = {"stream": 2, "max_version": (1, 1), "dl_device": (CUDA, 0), "copy": False}
    tensor.__dlpack__(**asked)
    tensor.__dlpack__(stream=None)
    assert gpu.calls == [{"max_version": (1, 3)}, asked, {}]


def test_a_producer_elsewhere_is_believed_that_it_copied_and_where_it_is():
    """Not every one says IS_COPIED, or has __dlpack_device__; and this library cannot copy."""

    class Silent:
        def __init__(self):
            self.gpu = Gpu()

        def __dlpack__(self, **keywords):
            return self.gpu.__dlpack__(**keywords)

    silent = Silent()
    for keywords in {"copy": True}, {"device": (CUDA, 0)}:
        assert Tensor.from_dlpack(silent, **keywords).device == "cuda:0"
        assert keywords.items() <= {"device": (CUDA, 0), **silent.gpu.calls[-1]}.items()


def test_a_producer_elsewhere_that_takes_no_copy_keyword_has_not_copied():
    gpu = Gpu()

    class Old:
        def __dlpack__(self):
            return gpu.__dlpack__()

    with pytest.raises(BufferError, match="cuda:0, which the CPU cannot read"):
        Tensor.from_dlpack(Old(), copy=True)
    assert gpu.deleted == 1


def test_a_bare_capsule_from_elsewhere_takes_no_stream():
    gpu = Gpu(byte_offset=16, flags=READ_ONLY)
    tensor = Tensor.from_dlpack(gpu.capsule())
    with pytest.raises(BufferError, match="stream must be None"):
        tensor.__dlpack__(stream=1)
    with pytest.raises(BufferError, match="cuda:0, which the CPU cannot read"):
        tensor.__dlpack__(copy=True)
    capsule = tensor.__dlpack__(max_version=(1, 3))
    inside = header(capsule)
    assert (inside.dl_tensor.data, inside.dl_tensor.byte_offset) == (0xDEAD0000, 16)
    assert (inside.dl_tensor.device.device_type, inside.flags) == (CUDA, READ_ONLY)
    with pytest.raises(BufferError, match="cuda:0, which the CPU cannot read"):
        from_dlpack(capsule)
    del tensor, capsule
    gc.collect()
    assert gpu.deleted == 1


def test_an_array_has_the_producer_copy_to_the_cpu():
    gpu = Gpu()
    arrow = pa.array(from_dlpack(gpu))
    assert arrow.to_pylist() == [7, 8]
    assert arrow.buffers()[1].address == gpu.on_cpu.address, "copied once, not twice"
    assert gpu.calls == [{"max_version": (1, 3)}, {"max_version": (1, 3), "dl_device": (1, 0)}]
    with pytest.raises(BufferError, match="cuda:0, which the CPU cannot read"):
        from_dlpack(gpu, copy=False)
    assert Tensor.from_dlpack(gpu, device="cpu").shape == (2,)
    assert gpu.deleted == 2


def test_a_producer_that_changes_its_mind_about_the_device_is_not_believed():
    class Fickle(Producer):
        def __dlpack_device__(self):
            return (1, 0)

    fickle = Fickle(device_type=CUDA, data=0xDEAD0000)
    with pytest.raises(BufferError, match="asked for on cpu, and is on cuda:0"):
        from_dlpack(fickle, device="cpu")
    with pytest.raises(BufferError, match="cuda:0"):
        from_dlpack(fickle)
    assert fickle.deleted == 3


def test_pinned_memory_moves_to_the_cpu_by_a_copy():
    producer = Producer(device_type=CUDA_HOST)
    tensor = Tensor.from_dlpack(producer.capsule())
    assert np.asarray(tensor).tolist() == [1, 2, 3]
    with pytest.raises(BufferError, match="copy=False, but moving from cuda_host:0"):
        tensor.__dlpack__(dl_device=(1, 0), copy=False)
    with pytest.raises(BufferError, match="copy=False, but moving from cuda_host:0"):
        Tensor.from_dlpack(producer, device="cpu", copy=False)
    assert np.from_dlpack(tensor, device="cpu").tolist() == [1, 2, 3]
    moved = Tensor.from_dlpack(producer, device="cpu")
    assert (moved.device, np.asarray(moved).tolist()) == ("cpu", [1, 2, 3])


@pytest.mark.parametrize("device", [None, "cpu", (1, 0)])
@pytest.mark.parametrize("fields", [{"device_type": CUDA_HOST}, {"device_id": -1}], ids=str)
def test_an_array_takes_any_memory_that_the_cpu_can_read(device, fields):
    producer = Producer(**fields)
    arrow = pa.array(from_dlpack(producer, device=device, copy=False))
    assert arrow.buffers()[1].address == producer.address


def test_pinned_memory_has_its_producer_answer_too():
    producer = Producer(device_type=CUDA_HOST)
    tensor = Tensor.from_dlpack(producer)
    tensor.__dlpack__(stream=3)
    assert producer.calls[1] == {"stream": 3}
    kept = Tensor.from_dlpack(producer, device=(CUDA_HOST, 0))
    kept.__dlpack__(stream=4)
    assert producer.calls[-1] == {"stream": 4}


def test_a_producer_elsewhere_without_keywords_cannot_promise():
    class Legacy(Gpu):
        def __dlpack__(self):
            return self.capsule()

    legacy = Legacy()
    tensor = Tensor.from_dlpack(legacy)
    tensor.__dlpack__(max_version=(1, 0))
    for keywords, words in [({"copy": False}, "takes no copy=False"), ({"stream": 1}, "no stream")]:
        with pytest.raises(BufferError, match=words) as error:
            tensor.__dlpack__(max_version=(1, 0), **keywords)
        assert not isinstance(error.value, TypeError)
    del tensor
    assert legacy.deleted == 1


@pytest.mark.parametrize("legacy", [False, True], ids=["versioned", "legacy"])
def test_a_tensor_at_an_address_is_taken_over(legacy):
    producer = Producer(legacy=legacy)
    tensor = Tensor.from_pointer(ctypes.addressof(producer.managed), versioned=not legacy)
    assert np.from_dlpack(tensor).tolist() == [1, 2, 3]
    assert producer.deleted == 0
    del tensor
    gc.collect()
    assert producer.deleted == 1


@pytest.mark.parametrize("take", [from_dlpack, Tensor.from_dlpack])
@pytest.mark.parametrize("name", [LEGACY, VERSIONED])
def test_a_tensor_at_a_misaligned_address_is_not_read_and_stays_the_capsules(name, take):
    """Not even its deleter can be read: what is there is its producer's to free."""
    for address in (4, 7, 0xFFF1):
        capsule = PyCapsule_New(address, name, None)
        with pytest.raises(BufferError, match=f"cannot be at the misaligned address {address:#x}"):
            take(capsule)
        assert PyCapsule_GetName(capsule) == name


def test_addresses_that_cannot_be_are_refused():
    with pytest.raises(BufferError, match="NULL"):
        Tensor.from_pointer(0)
    with pytest.raises(BufferError, match="misaligned address 0x7"):
        Tensor.from_pointer(7)
    for address in (None, "1", 1.5, -1, 1 << 64):
        with pytest.raises(TypeError, match="^address must be an integer"):
            Tensor.from_pointer(address)
    producer = Producer(ndim=-1)
    with pytest.raises(BufferError, match="ndim is -1"):
        Tensor.from_pointer(ctypes.addressof(producer.managed))
    assert producer.deleted == 1
