"""The C exchange API of DLPack 1.3: our table as other libraries call it, and their tables."""

import ctypes
import gc
import pathlib
import subprocess
import sys
import threading
import weakref

import hostile
import numpy as np
import pyarrow as pa
import pytest
import system
from arrow_dlpack import Array, Tensor, UnsupportedError, asdlpack, from_dlpack, record_batch
from dlpack_conformance.abi.capsule import PyCapsule_GetName, PyCapsule_New
from dlpack_conformance.abi.dlpack import (
    BOOL,
    CPU,
    CUDA,
    CUDA_HOST,
    FLOAT,
    IS_COPIED,
    READ_ONLY,
    UINT,
    DLTensor,
)
from dlpack_conformance.abi.exchange import ATTRIBUTE, EXCHANGE_API, SET_ERROR, DLPackExchangeAPI
from exchange import (
    KEPT,
    Asked,
    Out,
    description,
    export,
    exporter,
    make_capsule,
    make_table,
    managed_address,
    producer_type,
    table_of,
)

OURS = table_of(Array)


class MyArray(Array):
    pass


def array(values=(1.0, 2.0, 3.0), dtype="float32", kind=Array):
    return kind(pa.array(values, dtype))


# The table.


@pytest.mark.parametrize("kind", [Array, Tensor, MyArray])
def test_every_class_has_the_one_table_of_version_1_3(kind):
    capsule = getattr(kind, ATTRIBUTE)
    assert PyCapsule_GetName(capsule) == EXCHANGE_API
    table = table_of(kind)
    assert ctypes.addressof(table) == ctypes.addressof(OURS)
    header = table.header
    assert (header.version.major, header.version.minor, header.prev_api) == (1, 3, None)
    assert all(getattr(table, name) for name, _ in DLPackExchangeAPI._fields_[1:])


def test_the_attribute_is_there_on_instances_too():
    assert getattr(array(), ATTRIBUTE) is getattr(Array, ATTRIBUTE)


# managed_tensor_from_py_object_no_sync


@pytest.mark.parametrize("kind", [Array, MyArray])
@pytest.mark.parametrize("found_on", [Array, Tensor])
def test_an_array_is_exported_read_only_without_a_copy(kind, found_on, live):
    column = pa.array([1.0, 2.0, 3.0], "float32")
    out = export(kind(column), found_on)
    tensor = out.tensor()
    address = column.buffers()[1].address
    assert description(tensor.dl_tensor) == ((3,), (1,), address)
    assert (tensor.version.major, tensor.version.minor, tensor.flags) == (1, 3, READ_ONLY)
    assert hostile.device_of(tensor.dl_tensor) == (CPU, 0)
    assert hostile.dtype_of(tensor.dl_tensor) == (FLOAT, 32, 1)
    assert live() == (1, 0)
    out.delete()
    assert live() == (0, 0)


def test_what_must_be_copied_is_copied_and_writable():
    out = export(array([True, False], "bool"))
    assert (out.tensor().flags, out.tensor().dl_tensor.dtype.code) == (IS_COPIED, BOOL)
    out.delete()


def test_a_tensor_is_exported_as_it_is():
    matrix = np.arange(12, dtype="int16").reshape(3, 4)[::-1, ::2]
    out = export(Tensor.from_dlpack(matrix))
    expected = ((3, 2), (-4, 2), matrix.__array_interface__["data"][0])
    assert description(out.tensor().dl_tensor) == expected
    assert out.tensor().flags == 0
    out.delete()
    matrix.flags.writeable = False
    out = export(Tensor.from_dlpack(matrix))
    assert out.tensor().flags == READ_ONLY
    out.delete()


def test_a_tensor_from_a_device_is_handed_out_without_a_word_to_its_producer(live):
    producer = hostile.Producer(device_type=CUDA, device_id=1)
    tensor = Tensor.from_dlpack(producer)
    calls = len(producer.calls)
    out = export(tensor)
    exported = out.tensor().dl_tensor
    assert hostile.device_of(exported) == (CUDA, 1)
    assert (exported.data, len(producer.calls)) == (producer.address, calls)
    del tensor
    assert producer.deleted == 0
    out.delete()
    assert producer.deleted == 1


def test_the_export_outlives_its_object_and_goes_on_any_thread(live):
    out = export(Array(pa.array(np.arange(1000.0))))
    gc.collect()
    data = out.tensor().dl_tensor.data
    assert list((ctypes.c_double * 3).from_address(data + 8 * 997)) == [997.0, 998.0, 999.0]
    thread = threading.Thread(target=out.delete)
    thread.start()
    thread.join()
    assert live() == (0, 0)


@pytest.mark.parametrize("other", [1, None, object(), [1.0], np.zeros(3), Array, Tensor])
@pytest.mark.parametrize("function", ["from_object", "lend"])
def test_other_objects_are_a_type_error(function, other):
    out = Out()
    with pytest.raises(TypeError, match="expected an Array or a Tensor, got "):
        getattr(OURS, function)(id(other), out.at)
    assert out.value is None or function == "lend"


@pytest.mark.parametrize("function", ["from_object", "lend"])
def test_null_for_an_object_is_a_type_error(function):
    out = Out()
    with pytest.raises(TypeError, match="got NULL"):
        getattr(OURS, function)(None, out.at)


@pytest.mark.parametrize("function", ["from_object", "lend"])
def test_null_for_the_result_is_an_error(function, live):
    exported = array()
    with pytest.raises(BufferError, match="the pointer for the result is NULL"):
        getattr(OURS, function)(id(exported), None)
    assert live() == (0, 0)


@pytest.mark.parametrize("kind", [Array, MyArray])
def test_refusals_are_those_of_dlpack_and_leave_null(kind, live):
    for values, dtype in ([1, None], "int32"), (["a"], "string"):
        refused, out = array(values, dtype, kind), Out()
        with pytest.raises(UnsupportedError) as by_table:
            OURS.from_object(id(refused), out.at)
        assert out.value is None
        with pytest.raises(UnsupportedError) as by_method:
            refused.__dlpack__()
        assert str(by_table.value) == str(by_method.value)
    assert live() == (0, 0)


# dltensor_from_py_object_no_sync


def lend(x):
    tensor = DLTensor()
    assert OURS.lend(id(x), ctypes.addressof(tensor)) == 0
    return tensor


@pytest.mark.parametrize("kind", [Array, MyArray])
def test_an_array_shares_its_own_memory_for_as_long_as_it_lives(kind, live):
    column = pa.array(np.arange(1000.0))[10:]
    owner = kind(column)
    tensor, again = lend(owner), lend(owner)
    assert live() == (1, 0), "kept by the array, for its extents"
    gc.collect()
    expected = ((990,), (1,), column.buffers()[1].address + 80)
    assert description(tensor) == description(again) == expected
    assert ctypes.addressof(tensor.shape.contents) == ctypes.addressof(again.shape.contents)
    del owner
    assert live() == (0, 0)


def test_a_tensor_shares_its_own_memory(live):
    matrix = np.zeros((3, 4))[:, ::-2]
    owner = Tensor.from_dlpack(matrix)
    tensor = lend(owner)
    assert description(tensor) == ((3, 2), (4, -2), matrix.__array_interface__["data"][0])
    assert live() == (0, 1), "there is nothing that it would have to keep"


def test_strides_are_given_where_the_producer_left_them_out():
    owner = Tensor.from_dlpack(hostile.Producer(shape=(3, 1), strides=None))
    assert description(lend(owner))[:2] == ((3, 1), (1, 1))
    assert description(lend(owner))[:2] == ((3, 1), (1, 1))


def test_without_axes_there_are_no_extents_to_lend():
    tensor = lend(Tensor.from_dlpack(np.array(1.5)))
    assert (tensor.ndim, bool(tensor.shape), bool(tensor.strides)) == (0, False, False)


def test_a_loan_from_a_device_is_what_the_tensor_holds():
    producer = hostile.Producer(device_type=CUDA, byte_offset=8)
    tensor = lend(Tensor.from_dlpack(producer))
    assert hostile.device_of(tensor) == (CUDA, 0)
    assert (tensor.data, tensor.byte_offset) == (producer.address, 8)


def test_what_would_have_to_be_copied_is_not_borrowed(live):
    with pytest.raises(UnsupportedError, match="1 null"):
        lend(array([1, None], "int32"))
    with pytest.raises(BufferError, match="copying was forbidden"):
        lend(array([True], "bool"))
    assert live() == (0, 0)


def test_threads_borrow_the_same_extents():
    for _ in range(20):
        owner, addresses = array(), []
        barrier = threading.Barrier(4)

        def borrow(owner=owner, addresses=addresses, barrier=barrier):
            barrier.wait()
            addresses.append(ctypes.addressof(lend(owner).shape.contents))

        threads = [threading.Thread(target=borrow) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(addresses)) == 1


# managed_tensor_to_py_object_no_sync


def test_a_new_tensor_takes_over_the_managed_tensor(live):
    producer, out = hostile.Producer(flags=READ_ONLY), Out()
    assert OURS.to_object(managed_address(producer), out.at) == 0
    tensor = out.object()
    assert type(tensor) is Tensor
    assert (tensor.readonly, np.from_dlpack(tensor).tolist()) == (True, [1.0, 2.0, 3.0])
    assert (live()[1], producer.deleted) == (1, 0)
    del tensor
    gc.collect()
    assert (live(), producer.deleted) == ((0, 0), 1)


def test_a_tensor_without_a_deleter_is_taken_too():
    producer, out = hostile.Producer(deleter=None), Out()
    assert OURS.to_object(managed_address(producer), out.at) == 0
    assert out.object().shape == (3,)


def test_a_tensor_on_a_device_is_taken_unseen():
    producer, out = hostile.Producer(device_type=CUDA, data=0xF00D), Out()
    assert OURS.to_object(managed_address(producer), out.at) == 0
    tensor = out.object()
    assert tensor.device == "cuda:0"
    with pytest.raises(BufferError, match="stream must be None for memory on cuda:0"):
        tensor.__dlpack__(stream=1)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"major": 2}, "version 2.x is not supported"),
        ({"major": 0}, "version 0.x is not supported"),
        ({"ndim": -1}, "ndim is -1"),
        ({"ndim": 1, "shape": None}, "shape is NULL"),
        ({"shape": (-1,)}, "extent of axis 0 is -1"),
        ({"shape": (2**32, 2**32, 16), "strides": (0, 0, 0)}, "overflows"),
        ({"data": None}, "data is NULL"),
        ({"bits": 0}, "no dtype has"),
        ({"lanes": 0}, "no dtype has"),
        ({"byte_offset": 2**64 - 1}, "overflows"),
    ],
)
def test_a_refused_tensor_stays_the_callers(fields, message, live):
    producer, out = hostile.Producer(**fields), Out()
    with pytest.raises(BufferError, match=message):
        OURS.to_object(managed_address(producer), out.at)
    assert (out.value, producer.deleted, live()) == (None, 0, (0, 0))


def test_null_and_misaligned_tensors_are_refused(live):
    producer = hostile.Producer()
    for address, message in (None, "NULL"), (managed_address(producer) + 1, "misaligned"):
        out = Out()
        with pytest.raises(BufferError, match=message):
            OURS.to_object(address, out.at)
        assert out.value is None


def test_nothing_is_taken_without_memory_for_the_object(live):
    producer = hostile.Producer()
    with pytest.raises(BufferError, match="the pointer for the result is NULL"):
        OURS.to_object(managed_address(producer), None)
    assert (producer.deleted, live()) == (0, (0, 0))


def test_nothing_is_taken_where_there_is_no_memory_for_the_object(live):
    testcapi = pytest.importorskip("_testcapi")  # of CPython's own tests, which not everyone has
    kind = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    call = kind(OURS.managed_tensor_to_py_object_no_sync)
    refused = 0
    for start in range(30):  # the first allocation fails, or the second, and so on
        producer, out = hostile.Producer(), Out()
        arguments = ctypes.c_void_p(managed_address(producer)), ctypes.c_void_p(out.at)
        testcapi.set_nomemory(start, start + 1)
        try:
            call(*arguments)
        except (MemoryError, ctypes.ArgumentError):
            pass
        finally:
            testcapi.remove_mem_hooks()
        if out.value in (None, 0xDEAD):
            refused += out.value is None
            assert producer.deleted == 0
        else:
            out.object()
            gc.collect()
            assert producer.deleted == 1
    assert refused > 0


# managed_tensor_allocator


class Errors:
    """A SET_ERROR that remembers."""

    def __init__(self):
        self.seen = []
        self.function = SET_ERROR(lambda ctx, kind, text: self.seen.append((ctx, kind, text)))

    @property
    def at(self):
        return ctypes.cast(self.function, ctypes.c_void_p).value


def prototype(shape=(2, 3), *, code=FLOAT, bits=32, lanes=1, device=(CPU, 0), ndim=None):
    """Of nothing but what may be looked at: the rest leads nowhere."""
    extents = (ctypes.c_int64 * len(shape))(*shape) if shape is not None else None
    tensor = DLTensor(
        data=8,
        device=device,
        ndim=len(shape) if ndim is None else ndim,
        dtype=(code, bits, lanes),
        strides=ctypes.cast(8, ctypes.POINTER(ctypes.c_int64)),
        byte_offset=12345,
    )
    if extents is not None:
        tensor.shape = extents
    tensor.keep = extents
    return tensor


def allocate(wanted, errors=None):
    out, errors = Out(), errors or Errors()
    code = OURS.allocate(ctypes.addressof(wanted), out.at, 42, errors.at)
    return code, out, errors.seen


@pytest.mark.parametrize(
    ("shape", "strides"), [((2, 3), (3, 1)), ((5,), (1,)), ((), ()), ((2, 1, 4), (4, 4, 1))]
)
@pytest.mark.parametrize("dtype", [(FLOAT, 32, 1), (BOOL, 8, 1), (FLOAT, 32, 4)])
def test_memory_is_fresh_aligned_row_major_and_writable(shape, strides, dtype, live):
    code, bits, lanes = dtype
    wanted = prototype(shape, code=code, bits=bits, lanes=lanes)
    status, out, errors = allocate(wanted)
    assert (status, errors) == (0, [])
    managed = out.tensor()
    assert (managed.version.major, managed.flags & READ_ONLY) == (1, 0)
    tensor = managed.dl_tensor
    assert hostile.device_of(tensor) == (CPU, 0)
    assert hostile.dtype_of(tensor) == (code, bits, lanes)
    assert description(tensor)[:2] == (shape, strides)
    assert (tensor.data % 64, tensor.byte_offset) == (0, 0)
    nbytes = int(np.prod(shape)) * bits * lanes // 8
    ctypes.memset(tensor.data, 0xFF, nbytes)
    assert live() == (1, 0)
    out.delete()
    assert live() == (0, 0)


def test_memory_for_no_elements_is_null():
    status, out, _ = allocate(prototype((0, 3)))
    assert (status, out.tensor().dl_tensor.data) == (0, None)
    assert description(out.tensor().dl_tensor)[0] == (0, 3)
    out.delete()


def test_what_was_allocated_can_become_an_object(live):
    _, out, _ = allocate(prototype((2, 2)))
    taken = Out()
    assert OURS.to_object(out.value, taken.at) == 0
    tensor = taken.object()
    assert not np.asarray(tensor).any()
    np.asarray(tensor)[:] = 7
    assert np.asarray(tensor).tolist() == [[7, 7], [7, 7]]


IMPOSSIBLE = [
    (prototype(device=(CUDA, 0)), b"cannot allocate on cuda:0"),
    (prototype(device=(CUDA_HOST, 0)), b"cannot allocate on cuda_host:0"),
    (prototype(device=(99, 3)), b"cannot allocate on device(99):3"),
    (prototype((2, -3)), b"extent of axis 1 is -3"),
    (prototype((2**62, 4)), b"overflows"),
    (prototype((2**32, 2**32, 16)), b"overflows"),
    (prototype(bits=0), b"no dtype has"),
    (prototype(lanes=0), b"no dtype has"),
    (prototype((1,), ndim=-1), b"ndim is -1"),
    (prototype(None, ndim=2), b"shape is NULL"),
]


@pytest.mark.parametrize(("wanted", "message"), IMPOSSIBLE, ids=lambda value: str(value)[:30])
def test_impossible_prototypes_are_refused_through_set_error(wanted, message, live):
    status, out, [(ctx, kind, text)] = allocate(wanted)
    assert (status, out.value, ctx, kind) == (-1, None, 42, b"BufferError")
    assert message in text
    assert live() == (0, 0)


@pytest.mark.parametrize("shape", [(2**60,), (2**50,), (2**61 - 1,)])
def test_memory_that_is_not_there_is_a_memory_error(shape, live):
    status, out, [(_, kind, text)] = allocate(prototype(shape, bits=8, code=UINT))
    assert (status, out.value, kind) == (-1, None, b"MemoryError")
    assert b"cannot allocate" in text


def test_null_pointers_are_errors_and_set_error_may_be_null(live):
    errors, out = Errors(), Out()
    assert OURS.allocate(None, out.at, None, errors.at) == -1
    wanted = prototype()
    assert OURS.allocate(ctypes.addressof(wanted), None, None, errors.at) == -1
    assert [(kind, text) for _, kind, text in errors.seen] == [
        (b"BufferError", b"the prototype is NULL"),
        (b"BufferError", b"the pointer for the result is NULL or misaligned"),
    ]
    assert OURS.allocate(None, out.at, None, None) == -1
    assert OURS.allocate(None, None, None, None) == -1
    impossible = prototype((-1,))
    assert OURS.allocate(ctypes.addressof(impossible), out.at, None, None) == -1
    assert (out.value, live()) == (None, (0, 0))


def test_many_threads_allocate_at_once(live):
    def work():
        for _ in range(200):
            _, out, _ = allocate(prototype((100,)))
            out.delete()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert live() == (0, 0)


# current_work_stream


@pytest.mark.parametrize("device", [(CPU, 0), (CPU, -1), (CUDA_HOST, 0), (11, 0), (13, 0)])
def test_there_is_no_stream_to_wait_for_where_the_cpu_reads(device):
    out = Out()
    assert OURS.stream(*device, out.at) == 0
    assert out.value is None


@pytest.mark.parametrize("device", [(CUDA, 0), (10, 1), (99, 0), (-1, 0)])
def test_streams_of_devices_are_not_ours_to_know(device):
    out = Out()
    with pytest.raises(BufferError, match="queues no work on"):
        OURS.stream(*device, out.at)


def test_null_for_the_stream_is_an_error():
    with pytest.raises(BufferError, match="the pointer for the result is NULL"):
        OURS.stream(CPU, 0, None)


# Tables of other types.


def good():
    """A type whose table works."""
    return producer_type(make_table(exporter(managed_address)))


def test_a_producers_table_is_used_instead_of_dlpack(live):
    kind = good()
    for take in Tensor.from_dlpack, from_dlpack, Array.from_dlpack, asdlpack:
        producer = kind()
        taken = take(producer)
        assert (producer.asked, producer.deleted) == (0, 0)
        assert np.from_dlpack(taken).tolist() == [1.0, 2.0, 3.0]
        del taken
        gc.collect()
        assert producer.deleted == 1
    producer = kind()
    record_batch({"x": producer})
    assert producer.asked == 0


def test_flags_come_with_the_tensor():
    kind = good()
    assert Tensor.from_dlpack(kind(flags=READ_ONLY)).readonly
    assert not Tensor.from_dlpack(kind()).readonly


def test_the_cpu_may_be_asked_for():
    kind = good()
    for device in "cpu", (1, 0):
        producer = kind()
        Tensor.from_dlpack(producer, device=device)
        assert producer.asked == 0


@pytest.mark.parametrize("keywords", [{"copy": False}, {"copy": True}, {"device": (2, 0)}])
def test_what_a_table_cannot_be_asked_goes_to_dlpack(keywords):
    class Device(Asked):
        def __dlpack__(self, **keywords):
            self.calls.append(keywords)
            if "dl_device" in keywords:
                raise BufferError("asked by keyword")
            return self.capsule()

    producer = producer_type(make_table(exporter(managed_address)), Device)()
    if "device" in keywords:
        with pytest.raises(BufferError, match="asked by keyword"):
            Tensor.from_dlpack(producer, **keywords)
    else:
        assert Tensor.from_dlpack(producer, **keywords).shape == (3,)
    assert producer.asked == 1


def test_what_is_elsewhere_is_asked_for_again_so_that_its_producer_synchronises(live):
    for device in CUDA, CUDA_HOST, 99:
        producer = good()(device_type=device)
        tensor = Tensor.from_dlpack(producer)
        assert (producer.asked, producer.deleted) == (1, 1)
        del tensor
        gc.collect()
        assert producer.deleted == 2


BROKEN = {
    "another name": lambda: producer_type(make_table(exporter(managed_address)), name=b"dltensor"),
    "no name": lambda: producer_type(make_table(exporter(managed_address)), name=None),
    "no function": lambda: producer_type(make_table()),
    "version 2": lambda: producer_type(make_table(exporter(managed_address), major=2)),
    "version 0": lambda: producer_type(make_table(exporter(managed_address), major=0)),
    "no capsule": lambda: type("Producer", (Asked,), {ATTRIBUTE: 3}),
    "None": lambda: type("Producer", (Asked,), {ATTRIBUTE: None}),
    "raises": lambda: type("Producer", (Asked,), {ATTRIBUTE: Raises()}),
    "NULL": lambda: producer_type(make_table(exporter(lambda x: None))),
    "misaligned": lambda: producer_type(make_table(exporter(lambda x: managed_address(x) + 1))),
    "fails": lambda: producer_type(make_table(function_returning(-1))),
    "fails otherwise": lambda: producer_type(make_table(function_returning(7))),
}


class Raises:
    def __get__(self, instance, owner):
        raise ValueError("not for you")


def function_returning(code):
    """A function of a table that fails, without an exception, having written something."""

    @ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(ctypes.c_void_p))
    def function(x, out):
        out[0] = managed_address(x)
        return code

    return function


@pytest.mark.parametrize("broken", BROKEN)
def test_dlpack_is_asked_where_the_table_is_none(broken, live):
    kind = BROKEN[broken]()
    for _ in range(2):  # the second time it is known
        producer = kind()
        assert from_dlpack(producer).type == "Float32"
        gc.collect()
        assert (producer.asked, producer.deleted) == (1, 1)
    assert live() == (0, 0)


def test_an_exception_of_the_table_is_that_of_dlpack(live):
    # C calls __len__, and gives -1 and the exception, or the length.
    kind = producer_type(make_table("PyObject_Size"), __len__=lambda x: raise_(x.error))
    producer = kind()
    producer.error = RuntimeError("by table")
    assert from_dlpack(producer).type == "Float32"
    assert producer.asked == 1
    producer = kind()
    producer.error, producer.capsule = (
        RuntimeError("by table"),
        lambda: raise_(OSError("by method")),
    )
    with pytest.raises(OSError, match="by method") as caught:
        from_dlpack(producer)
    assert caught.value.__context__ is None


def test_an_interrupt_is_an_interrupt(live):
    kind = producer_type(make_table("PyObject_Size"), __len__=lambda x: raise_(KeyboardInterrupt()))
    producer = kind()
    with pytest.raises(KeyboardInterrupt):
        from_dlpack(producer)
    assert producer.asked == 0


TWO_MINDS = """
extern void *PyExc_ValueError;
void PyErr_SetString(void *, const char *);
void *tensor;
int from_object(void *object, void **out) {
    *out = tensor;
    PyErr_SetString(PyExc_ValueError, "by table");
    return 0;
}
"""


@system.needs_undefined_symbols
def test_a_tensor_that_comes_with_an_exception_is_deleted_and_asked_for_again(live, tmp_path):
    """Python code cannot do it: an exception of its own ends in ctypes."""
    source, library = tmp_path / "two_minds.c", tmp_path / "two_minds.so"
    source.write_text(TWO_MINDS, "utf-8")
    subprocess.run(["cc", "-shared", "-fPIC", source, "-o", library], check=True)
    c, given = ctypes.CDLL(library), hostile.Producer()
    ctypes.c_void_p.in_dll(c, "tensor").value = managed_address(given)
    producer = producer_type(make_table(c.from_object))()
    assert from_dlpack(producer).type == "Float32"
    assert (given.deleted, producer.asked) == (1, 1)


def test_success_without_a_tensor_is_none(live):
    kind = producer_type(make_table("PyObject_Size"), __len__=lambda x: 0)
    producer = kind()
    assert from_dlpack(producer).type == "Float32"
    assert producer.asked == 1


def raise_(error):
    raise error


def test_a_refused_tensor_is_deleted_and_asked_for_again(live):
    bad = hostile.Producer(major=2)
    kind = producer_type(make_table(exporter(lambda x: managed_address(bad))))
    producer = kind()
    assert from_dlpack(producer).type == "Float32"
    assert (bad.deleted, producer.asked) == (1, 1)


def test_an_older_table_is_found_behind_a_newer_one():
    old = make_table(exporter(managed_address))
    other = make_table(major=3, prev_api=ctypes.addressof(old))
    new = make_table(function_returning(-1), major=2, prev_api=ctypes.addressof(other))
    producer = producer_type(new)()
    Tensor.from_dlpack(producer)
    assert producer.asked == 0


@pytest.mark.parametrize("length", [1, 2])
def test_tables_that_lead_back_to_themselves_are_none(length):
    tables = [make_table(exporter(managed_address), major=2) for _ in range(length)]
    for this, that in zip(tables, tables[1:] + tables[:1], strict=True):
        this.header.prev_api = ctypes.addressof(that)
    producer = producer_type(tables[0])()
    Tensor.from_dlpack(producer)
    assert producer.asked == 1


def test_misaligned_tables_are_none():
    table = make_table(exporter(managed_address))
    shifted = (ctypes.c_char * 64)()
    ctypes.memmove(ctypes.addressof(shifted) + 1, ctypes.addressof(table), 56)
    KEPT.append(shifted)
    capsule = PyCapsule_New(ctypes.addressof(shifted) + 1, EXCHANGE_API, None)
    producer = type("Producer", (Asked,), {ATTRIBUTE: capsule})()
    Tensor.from_dlpack(producer)
    assert producer.asked == 1


def test_an_attribute_of_the_instance_is_none():
    producer = Asked()
    setattr(producer, ATTRIBUTE, make_capsule(make_table(exporter(managed_address))))
    Tensor.from_dlpack(producer)
    assert producer.asked == 1


def test_what_a_subclass_overrides_is_respected():
    kind = good()

    class Sub(kind):
        def __dlpack__(self, **keywords):
            raise BufferError("not mine")

    Tensor.from_dlpack(kind())
    for _ in range(2):
        with pytest.raises(BufferError, match="not mine"):
            Tensor.from_dlpack(Sub())


def test_a_type_that_only_inherits_a_table_is_asked_by_dlpack():
    producer = type("Sub", (good(),), {})()
    Tensor.from_dlpack(producer)
    assert producer.asked == 1


def test_an_object_that_changes_its_class_meanwhile_is_asked_by_dlpack():
    other = type("Other", (Asked,), {})

    def changes(x):
        x.__class__ = other
        return False

    table = make_table(exporter(managed_address))
    producer = producer_type(table, requires_grad=property(changes))()
    Tensor.from_dlpack(producer)
    assert type(producer) is other
    assert producer.asked == 1


def test_a_table_alone_will_do():
    class Bare:
        def __init__(self):
            self.inner = hostile.Producer()

    table = make_table(exporter(lambda x: managed_address(x.inner)))
    assert Tensor.from_dlpack(producer_type(table, Bare)()).shape == (3,)


def test_a_type_that_is_known_dies(live):
    kind = good()
    Tensor.from_dlpack(kind())
    died = weakref.ref(kind)
    del kind
    gc.collect()
    assert died() is None


def test_another_type_at_a_dead_ones_address_is_another_type(live):
    addresses, table = set(), make_table(exporter(managed_address))
    met = 0
    for round_ in range(40):
        kind = producer_type(table) if round_ % 2 == 0 else type("Producer", (Asked,), {})
        met += id(kind) in addresses
        addresses.add(id(kind))
        producer = kind()
        Tensor.from_dlpack(producer)
        assert producer.asked == round_ % 2, "the other kind's answer"
        del kind, producer
        gc.collect()
    assert met, "no address was used twice: the test shows nothing"


MANY_TYPES = """
from arrow_dlpack import Tensor
from exchange import exporter, make_table, managed_address, producer_type

table, kinds, by_table = make_table(exporter(managed_address)), [], 0
for _ in range(600):
    kinds.append(producer_type(table))
    producer = kinds[-1]()
    assert Tensor.from_dlpack(producer).shape == (3,)
    by_table += not producer.asked
assert 100 < by_table < 600, by_table
again = [kind() for kind in kinds]
assert all(Tensor.from_dlpack(producer).shape == (3,) for producer in again)
assert sum(not producer.asked for producer in again) == by_table
"""


def test_types_without_a_free_slot_are_asked_by_dlpack():
    # Not in this process: the slots would be taken for the other tests.
    tests = pathlib.Path(__file__).parent
    subprocess.run([sys.executable, "-c", MANY_TYPES], cwd=tests, check=True)


def test_levels_of_producers_that_ask_producers_are_counted(monkeypatch):
    # At the bottom ctypes has no stack left for a call, and says so.
    monkeypatch.setattr("sys.unraisablehook", lambda *_: None)
    depths = [0]

    @ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(ctypes.c_void_p))
    def function(x, out):
        depths.append(depths[-1] + 1)
        Tensor.from_dlpack(x)
        return -1

    class Refuses(Asked):
        def __dlpack__(self, **keywords):
            raise BufferError("enough")

    with pytest.raises((BufferError, RecursionError)):
        Tensor.from_dlpack(producer_type(make_table(function), Refuses)())
    assert 10 < len(depths) < 1000


def test_threads_find_a_new_table_together():
    for _ in range(5):
        kind, barrier, taken = good(), threading.Barrier(4), []

        def take(kind=kind, barrier=barrier, taken=taken):
            producer = kind()
            barrier.wait()
            taken.append(Tensor.from_dlpack(producer).shape)

        threads = [threading.Thread(target=take) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert taken == [(3,)] * 4


# What a method would have refused.


@pytest.mark.parametrize(
    ("namespace", "by_table"),
    [
        ({"requires_grad": False}, True),
        ({"requires_grad": True}, False),
        ({"requires_grad": 0}, False),
        ({"requires_grad": property(lambda x: raise_(ValueError()))}, False),
        ({"is_dense": lambda x: True}, True),
        ({"is_dense": lambda x: False}, False),
        ({"is_dense": True}, False),
        ({"is_conj": lambda x: True}, True),  # of no meaning for real numbers
    ],
)
def test_conditions_of_dlpack_are_conditions_of_the_table(namespace, by_table):
    producer = producer_type(make_table(exporter(managed_address)), **namespace)()
    Tensor.from_dlpack(producer)
    assert (producer.asked == 0) is by_table


@pytest.mark.parametrize("make", [array, lambda: Tensor.from_dlpack(np.ones(3, "f4"))])
def test_our_own_objects_go_by_the_table_too(make, live):
    x = make()
    address = np.from_dlpack(x).__array_interface__["data"][0]
    assert np.from_dlpack(from_dlpack(x)).__array_interface__["data"][0] == address
    assert Tensor.from_dlpack(x).readonly == np.from_dlpack(x).flags.writeable ^ True


def test_a_subclass_of_ours_may_have_its_own_way():
    class Own(Array):
        def __dlpack__(self, **keywords):
            raise BufferError("mine")

    with pytest.raises(BufferError, match="mine"):
        from_dlpack(array(kind=Own))
    assert export(array(kind=Own)).delete() is None
