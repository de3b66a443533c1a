"""DL5xx, the C exchange API."""

import ctypes
import gc
import math
import os
import weakref
from ctypes import POINTER, byref, c_int64, c_void_p, py_object

from dlpack_conformance.abi.capsule import (
    CAPSULE_DESTRUCTOR,
    Py_IncRef,
    PyCapsule_GetName,
    PyCapsule_GetPointer,
    PyCapsule_New,
    PyCapsule_SetDestructor,
    dying_capsule_pointer,
)
from dlpack_conformance.abi.dlpack import (
    BOOL,
    CPU,
    IS_COPIED,
    MAJOR,
    READ_ONLY,
    UINT,
    VERSIONED,
    DLDataType,
    DLDevice,
    DLManagedTensorVersioned,
    DLTensor,
)
from dlpack_conformance.abi.exchange import (
    ATTRIBUTE,
    CURRENT_WORK_STREAM,
    DLTENSOR_FROM_PY_OBJECT,
    EXCHANGE_API,
    FROM_PY_OBJECT,
    OLD_ATTRIBUTE,
    DLPackExchangeAPI,
    DLPackExchangeAPIHeader,
)
from dlpack_conformance.hooks import kit_reference as hooks
from dlpack_conformance.kit import reference
from dlpack_conformance.kit import table as kit_table
from dlpack_conformance.kit.consumer import dtype_name
from dlpack_conformance.kit.memory import MEMORY, unreadable
from dlpack_conformance.kit.table import make_table, table_capsule

from mutants import alike, crash, decorator, mutant

API, Array = reference.API, reference.Array
CAPSULE = Array.__dlpack_c_exchange_api__
ADDRESS = PyCapsule_GetPointer(CAPSULE, EXCHANGE_API)


def offer(table, name=EXCHANGE_API):
    Array.__dlpack_c_exchange_api__ = table_capsule(table, name)


@decorator
def tables(change):
    """The function gives what is another argument of make_table."""
    offer(make_table(**API | change()))


def instead(name):
    """A decorator below which a function stands for the table's of this name: it gets the correct
    one and its arguments."""

    @decorator
    def plant(change):
        correct = API[name]
        offer(make_table(**API | {name: lambda *arguments: change(correct, *arguments)}))

    return plant


allocates, gives, takes = instead("allocate"), instead("from_object"), instead("to_object")
lends, says_stream = instead("lend"), instead("work_stream")


@decorator
def allocated(change):
    """The function changes the DLManagedTensorVersioned that was allocated, of a prototype."""

    def planted(prototype, out, context, set_error):
        status = reference.api_allocate(prototype, out, context, set_error)
        if not status:
            change(DLManagedTensorVersioned.from_address(out[0]), prototype.contents)
        return status

    offer(make_table(**API | {"allocate": planted}))


# Where the table is


@mutant("DL501")
def attribute_is_a_property():
    Array.__dlpack_c_exchange_api__ = property(lambda self: CAPSULE)


@mutant("DL501")
def attribute_is_the_instances():
    fill = Array.__init__

    def planted(self, *arguments, **keywords):
        fill(self, *arguments, **keywords)
        self.__dlpack_c_exchange_api__ = CAPSULE

    del Array.__dlpack_c_exchange_api__
    Array.__init__ = planted


@mutant("DL502")
def attribute_is_an_int():
    Array.__dlpack_c_exchange_api__ = ADDRESS


@mutant("DL502")
def capsule_has_another_name():
    offer(make_table(**API), b"dlpack_c_exchange_api")


@mutant("DL502")
def capsule_has_no_name():
    offer(make_table(**API), None)


@mutant(None)
def only_the_old_name_is_there():
    del Array.__dlpack_c_exchange_api__
    setattr(Array, OLD_ATTRIBUTE, ADDRESS)


@mutant("DL504")
def table_is_collected_when_no_array_is_there():
    fill, content, alive = Array.__init__, ctypes.string_at(ADDRESS, 56), []

    def planted(self, *arguments, **keywords):
        fill(self, *arguments, **keywords)
        ctypes.memmove(ADDRESS, content, 56)
        alive.append(None)

    def collect(phase, info):
        if phase == "stop" and info["generation"] == 2 and not alive:
            ctypes.memset(ADDRESS, 0xDB, 56)

    Array.__init__, Array.__del__ = planted, lambda self: alive.pop()
    gc.callbacks.append(collect)


class OfCapsules(type):
    """Gives a capsule at each look."""

    make = None

    @property
    def __dlpack_c_exchange_api__(cls):
        return OfCapsules.make()


def plant_of_capsules(make):
    OfCapsules.make, reference.Array = make, OfCapsules("Array", (Array,), {})


@mutant("DL504", **alike("DL505 DL515 DL516 DL541", "the freed table"))
def table_ends_with_the_capsule():
    freed = []
    destructor = CAPSULE_DESTRUCTOR(
        lambda capsule: freed.append(dying_capsule_pointer(capsule, EXCHANGE_API))
    )
    MEMORY.append(destructor)

    def make():
        while freed:  # the memory is used again
            ctypes.memset(freed.pop(), 0xDB, 56)
        capsule = table_capsule(make_table(**API))
        PyCapsule_SetDestructor(capsule, ctypes.cast(destructor, c_void_p))
        return capsule

    plant_of_capsules(make)


@mutant("DL505")
def table_is_a_new_one_each_time():
    plant_of_capsules(lambda: table_capsule(make_table(**API)))


# The header


@tables("DL506")
def version_is_zero():
    return {"version": (0, 0)}


@tables("DL506")
def version_is_that_of_the_old_attribute():
    return {"version": (1, 2)}


@mutant("DL507")
def prev_api_is_the_table():
    DLPackExchangeAPIHeader.from_address(ADDRESS).prev_api = ADDRESS


@tables("DL507")
def prev_api_is_no_older():
    return {"prev_api": ADDRESS}


@tables("DL507")
def prev_api_is_newer():
    newer = make_table(**API, version=(MAJOR + 1, 0))
    return {"prev_api": ctypes.addressof(newer)}


@mutant("DL507")
def prev_api_goes_round():
    old = make_table(**API, version=(1, 2), prev_api=ADDRESS)
    DLPackExchangeAPIHeader.from_address(ADDRESS).prev_api = ctypes.addressof(old)


@tables("DL507")
def prev_api_leads_nowhere():
    return {"prev_api": unreadable()}


@mutant(
    "DL546",
    DL510="a gap",
    **alike("DL515 DL516 DL517 DL518 DL519 DL524 DL525 DL526 DL527", "the function before"),
    **alike("DL528 DL529 DL531 DL533 DL534 DL535 DL541", "the function before"),
)
def functions_begin_8_bytes_later():
    table = make_table(**API)
    shifted = (c_void_p * 8)(*(c_void_p * 7).from_address(ctypes.addressof(table)))
    ctypes.memmove(ctypes.addressof(shifted) + 24, ctypes.addressof(table) + 16, 40)
    shifted[2] = None
    MEMORY.append(shifted)
    Array.__dlpack_c_exchange_api__ = PyCapsule_New(ctypes.addressof(shifted), EXCHANGE_API, None)


# NULL


@tables("DL510")
def allocator_is_null():
    return {"allocate": None}


@tables("DL511")
def from_object_is_null():
    return {"from_object": None}


@tables("DL512")
def to_object_is_null():
    return {"to_object": None}


@tables("DL513")
def work_stream_is_null():
    return {"work_stream": None}


# Status


@gives(
    "DL515",
    **alike("DL516 DL518 DL519 DL546", "1 is no success"),
)
def from_object_returns_1(correct, x, out):
    correct(x, out)
    return 1


@takes(
    "DL515",
    **alike("DL516 DL531 DL533 DL535", "1 is no success"),
)
def to_object_returns_1(correct, managed, out):
    correct(managed, out)
    return 1


@lends(
    "DL515",
    **alike("DL516 DL527 DL528 DL529 DL546", "1 is no success"),
)
def lend_returns_1(correct, x, out):
    correct(x, out)
    return 1


@says_stream("DL515", DL525="1 is no success")
def work_stream_returns_1(correct, kind, number, out):
    correct(kind, number, out)
    return 1


@allocates("DL515", DL536="1 is no success", DL537="1 is no success", DL538="1 is no success")
def allocator_returns_1(correct, prototype, out, context, set_error):
    return correct(prototype, out, context, set_error) + 1


@allocates("DL515")
def allocator_fails_with_1(correct, *arguments):
    return -correct(*arguments)


@allocates("DL515")
def allocator_returns_minus_2(correct, *arguments):
    return 2 * correct(*arguments)


@mutant("DL515")
def failures_are_1():
    kit_table.Failure.__index__ = lambda failure: 1
    offer(make_table(**API))


@mutant("DL516", DL534="0 is no failure")
def failures_are_0():
    kit_table.Failure.__index__ = lambda failure: 0


def silently(correct, *arguments):
    try:
        return correct(*arguments)
    except Exception:
        return -1


@gives("DL516", DL517="no exception")
def from_object_sets_no_exception(correct, x, out):
    return silently(correct, x, out)


@takes("DL516")
def to_object_sets_no_exception(correct, managed, out):
    return silently(correct, managed, out)


@lends("DL516")
def lend_sets_no_exception(correct, x, out):
    return silently(correct, x, out)


@says_stream("DL516", DL526="no exception")
def work_stream_sets_no_exception(correct, kind, number, out):
    return silently(correct, kind, number, out)


class LeftError(Exception):
    """Set beside a 0."""


def although_all_is_well(correct, *arguments):
    """Returns 0 with an exception set."""
    correct(*arguments)
    left = lambda: isinstance(kit_table.errors[-1], LeftError)  # noqa: E731
    kit_table.Failure.__index__ = lambda failure: 0 if left() else -1
    raise LeftError("from before")


@gives("DL516", **alike("DL518 DL519 DL546", "the exception"))
def from_object_succeeds_with_an_exception(correct, x, out):
    although_all_is_well(correct, x, out)


@says_stream("DL525")
def work_stream_succeeds_with_an_exception(correct, kind, number, out):
    although_all_is_well(correct, kind, number, out)


@lends("DL516", **alike("DL527 DL528 DL529 DL546", "the exception"))
def lend_succeeds_with_an_exception(correct, x, out):
    although_all_is_well(correct, x, out)


# The tensor of an object


@gives("DL517")
def what_cannot_be_said_is_a_typeerror(correct, x, out):
    try:
        correct(x, out)
    except BufferError as error:
        raise TypeError(str(error)) from error


@gives("DL517")
def what_cannot_be_said_is_a_runtimeerror(correct, x, out):
    try:
        correct(x, out)
    except BufferError as error:
        raise RuntimeError(str(error)) from error


def given(out):
    """The DLManagedTensorVersioned that from_object gave."""
    return DLManagedTensorVersioned.from_address(out[0])


def export_at(address):
    return next(e for e in reference.Export.alive if ctypes.addressof(e.managed) == address)


@gives("DL518")
def tensor_borrows(correct, x, out):
    correct(x, out)
    export = export_at(out[0])
    array, export.array = export.array, None
    MEMORY.extend([array.c_shape, array.c_strides])
    if math.prod(array.shape):
        weakref.finalize(array, ctypes.memset, array.address, 0xDB, 1)


@gives("DL518")
def tensor_is_made_once(correct, x, out):
    array = reference.checked(x)
    if not hasattr(array, "tensor_made"):
        correct(x, out)
        array.tensor_made = out[0]
    out[0] = array.tensor_made


@gives("DL519")
def readonly_is_not_said_by_the_table(correct, x, out):
    correct(x, out)
    given(out).flags &= ~READ_ONLY


@gives("DL519")
def copied_is_said_by_the_table(correct, x, out):
    correct(x, out)
    given(out).flags |= IS_COPIED


@gives("DL519")
def table_copies(correct, x, out):
    correct(x, out)
    array = reference.checked(x).copied()
    array.readonly = reference.checked(x).readonly
    out[0] = ctypes.addressof(reference.Export(array, True, READ_ONLY * array.readonly).managed)


@gives("DL519")
def table_says_uint8_for_bool(correct, x, out):
    correct(x, out)
    if given(out).dl_tensor.dtype.code == BOOL:
        given(out).dl_tensor.dtype.code = UINT


@gives("DL519")
def table_gives_row_major_strides(correct, x, out):
    correct(x, out)
    array = reference.checked(x)
    strides = reference.c_extents(reference.row_major(array.shape))
    MEMORY.append(strides)
    given(out).dl_tensor.strides = ctypes.cast(strides, POINTER(c_int64))


# Work streams


@says_stream(None)
def work_stream_of_the_cpu_is_1(correct, kind, number, out):
    correct(kind, number, out)
    if kind == CPU:
        out[0] = 1


@says_stream(None)
def work_stream_of_the_cpu_fails(correct, kind, number, out):
    if kind == CPU:
        raise BufferError("the CPU has no streams")
    correct(kind, number, out)


@says_stream("DL525")
def work_stream_is_the_default(correct, kind, number, out):
    correct(kind, number, out)
    if kind != CPU:
        out[0] = 1


@says_stream("DL525")
def work_stream_is_null_for_all(correct, kind, number, out):
    correct(kind, number, out)
    out[0] = None


@says_stream("DL526")
def work_stream_of_an_unknown_device_is_7(correct, kind, number, out):
    try:
        correct(kind, number, out)
    except BufferError:
        out[0] = 7


@says_stream("DL526")
def work_stream_of_an_unknown_device_is_not_set(correct, kind, number, out):
    if kind == CPU or kind in reference.STREAMS:
        correct(kind, number, out)


# Lending


@lends("DL527")
def shape_is_overwritten_by_the_next(correct, x, out):
    correct(x, out)
    shape = reference.checked(x).shape
    reference.lent = getattr(reference, "lent", (c_int64 * 64)())
    reference.lent[: len(shape)] = shape
    out.contents.shape = ctypes.cast(reference.lent, POINTER(c_int64))


@lends("DL527", DL528="it leaks", DL529="its address", DL546="its address")
def copy_is_lent(correct, x, out):
    correct(x, out)
    array = reference.checked(x)
    if math.prod(array.shape):
        out.contents.data = array.copied().address


@lends("DL527", DL528="it leaks", DL529="its shape")
def shape_is_gone_at_once(correct, x, out):
    correct(x, out)
    shape = reference.c_extents(reference.checked(x).shape)
    MEMORY.append(shape)
    out.contents.shape = ctypes.cast(shape, POINTER(c_int64))
    ctypes.memset(shape, 0xDB, ctypes.sizeof(shape))


@lends("DL528")
def shape_leaks(correct, x, out):
    correct(x, out)
    shape = reference.c_extents(reference.checked(x).shape)
    MEMORY.append(shape)
    out.contents.shape = ctypes.cast(shape, POINTER(c_int64))


def field_is_left(name):
    def planted(correct, x, out):
        before = type(out.contents).from_buffer_copy(out.contents)
        correct(x, out)
        setattr(out.contents, name, getattr(before, name))

    planted.__name__, planted.__module__ = f"{name}_is_left", __name__
    return planted


lends("DL529", DL527="its address", DL546="its address")(field_is_left("data"))
lends("DL529", DL527="its shape")(field_is_left("shape"))
for field in ("device", "ndim", "dtype", "strides", "byte_offset"):
    lends("DL529")(field_is_left(field))


@lends("DL529")
def device_id_is_left(correct, x, out):
    before = out.contents.device.device_id
    correct(x, out)
    out.contents.device.device_id = before


@lends("DL529")
def lanes_are_left(correct, x, out):
    before = out.contents.dtype.lanes
    correct(x, out)
    out.contents.dtype.lanes = before


# The object of a tensor


def taken(out):
    return ctypes.cast(out[0], py_object).value


@takes("DL531")
def tensor_is_never_deleted(correct, managed, out):
    correct(managed, out)
    taken(out).owner.imported.taken = False


class DeletingTwice(reference.Owner):
    def __del__(self):
        self.imported.delete()
        self.imported.taken = True
        self.imported.delete()


@takes("DL531")
def tensor_is_deleted_twice(correct, managed, out):
    correct(managed, out)
    taken(out).owner.__class__ = DeletingTwice


@takes("DL531")
def tensor_is_deleted_at_once(correct, managed, out):
    correct(managed, out)
    taken(out).owner.imported.delete()


@takes("DL531")
def object_has_a_reference_too_many(correct, managed, out):
    correct(managed, out)
    Py_IncRef(taken(out))


class Wrapper:
    """Not of the library's type."""

    def __init__(self, array):
        self.array = array

    def __getattr__(self, name):
        return getattr(self.array, name)


@takes("DL533")
def object_is_a_wrapper(correct, managed, out):
    array, _ = reference.adopt(PyCapsule_New(managed, VERSIONED, None))
    wrapper = Wrapper(array)
    Py_IncRef(wrapper)
    out[0] = id(wrapper)


@takes("DL534")
def table_reads_axes_of_another_major(correct, managed, out):
    tensor = DLManagedTensorVersioned.from_address(managed)
    if tensor.version.major != MAJOR:
        raise BufferError(f"another major version, {tensor.dl_tensor.ndim} axes")
    correct(managed, out)


@takes("DL534")
def table_takes_another_major(correct, managed, out):
    DLManagedTensorVersioned.from_address(managed).version.major = MAJOR
    correct(managed, out)


@takes(None)
def table_does_not_delete_another_major(correct, managed, out):
    if DLManagedTensorVersioned.from_address(managed).version.major != MAJOR:
        raise BufferError("another major version")
    correct(managed, out)


@takes("DL535")
def readonly_is_forgotten_by_the_table(correct, managed, out):
    correct(managed, out)
    taken(out).readonly = False


# The allocator


@allocated("DL536")
def strides_of_the_prototype_are_used(managed, prototype):
    ndim = managed.dl_tensor.ndim
    managed.dl_tensor.strides = (c_int64 * ndim)(*prototype.strides[:ndim])


@allocated("DL536")
def byte_offset_of_the_prototype_is_used(managed, prototype):
    managed.dl_tensor.byte_offset = prototype.byte_offset


@allocated("DL536")
def content_of_the_prototype_is_copied(managed, prototype):
    if prototype.data and managed.dl_tensor.data:
        ctypes.memmove(managed.dl_tensor.data, prototype.data, 1)


@allocates("DL536")
def prototype_with_data_is_refused(correct, prototype, out, context, set_error):
    if prototype.contents.data:
        set_error(context, b"ValueError", b"the prototype has memory")
        return -1
    return correct(prototype, out, context, set_error)


@allocated("DL537")
def new_tensor_is_readonly(managed, prototype):
    managed.flags |= READ_ONLY


@allocated("DL537", DL536="its strides")
def new_tensor_has_gaps(managed, prototype):
    for axis in range(managed.dl_tensor.ndim - 1):
        managed.dl_tensor.strides[axis] *= 4


@allocated("DL537")
def new_tensor_is_float64(managed, prototype):
    managed.dl_tensor.dtype.bits = 64


@allocated("DL537", DL536="its shape")
def new_tensor_has_axes_reversed(managed, prototype):
    ndim = managed.dl_tensor.ndim
    managed.dl_tensor.shape = (c_int64 * ndim)(*managed.dl_tensor.shape[:ndim][::-1])


@allocated("DL537")
def new_tensor_is_on_another_device(managed, prototype):
    managed.dl_tensor.device = DLDevice(CPU, 1)


@allocated("DL537")
def new_tensor_has_no_memory(managed, prototype):
    managed.dl_tensor.data = None


@allocates("DL538")
def set_error_is_not_called(correct, prototype, out, context, set_error):
    return correct(prototype, out, context, lambda *said: None)


@allocates("DL538")
def set_error_is_called_twice(correct, prototype, out, context, set_error):
    def twice(*said):
        set_error(*said)
        set_error(*said)

    return correct(prototype, out, context, twice)


@allocates("DL538")
def set_error_is_called_on_success(correct, prototype, out, context, set_error):
    status = correct(prototype, out, context, set_error)
    if not status:
        set_error(context, b"Success", b"no error")
    return status


@allocates("DL538")
def set_error_gets_no_context(correct, prototype, out, context, set_error):
    return correct(prototype, out, None, set_error)


@allocates("DL538")
def huge_shapes_are_said_by_the_status_alone(correct, prototype, out, context, set_error):
    def refuse(*said):
        if said[1] != b"MemoryError":
            set_error(*said)

    return correct(prototype, out, context, refuse)


@allocates("DL537")
def negative_extents_are_none(correct, prototype, out, context, set_error):
    tensor = DLTensor.from_buffer_copy(prototype.contents)
    shape = [max(extent, 0) for extent in tensor.shape[: tensor.ndim]]
    tensor.shape = (c_int64 * len(shape))(*shape)
    return correct(ctypes.pointer(tensor), out, context, set_error)


@allocates("DL537")
def unknown_dtypes_are_bytes(correct, prototype, out, context, set_error):
    tensor = DLTensor.from_buffer_copy(prototype.contents)
    try:
        dtype_name(tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes)
    except BufferError:
        tensor.dtype = DLDataType(UINT, 8, 1)
    return correct(ctypes.pointer(tensor), out, context, set_error)


@allocates("DL539")
def kind_of_error_is_null(correct, prototype, out, context, set_error):
    return correct(prototype, out, context, lambda c, kind, text: set_error(c, None, text))


@allocates("DL539")
def text_of_error_is_null(correct, prototype, out, context, set_error):
    return correct(prototype, out, context, lambda c, kind, text: set_error(c, kind, None))


def or_abort(correct, *arguments):
    try:
        return correct(*arguments)
    except Exception:
        os.abort()


@allocates("DL541", **alike("DL515 DL538 DL539 DL537", "it ends the process"))
def allocator_throws(correct, prototype, out, context, set_error):
    return correct(prototype, out, context, lambda *said: os.abort())


@gives("DL541", **alike("DL515 DL516 DL517", "it ends the process"))
def from_object_throws(correct, x, out):
    return or_abort(correct, x, out)


@takes("DL541", **alike("DL515 DL516 DL534", "it ends the process"))
def to_object_throws(correct, managed, out):
    return or_abort(correct, managed, out)


@lends("DL541", **alike("DL515 DL516", "it ends the process"))
def lend_throws(correct, x, out):
    return or_abort(correct, x, out)


@says_stream("DL541", **alike("DL515 DL516 DL526", "it ends the process"))
def work_stream_throws(correct, kind, number, out):
    return or_abort(correct, kind, number, out)


# Who uses a table


@decorator
def finds(change):
    """The function gives the table of a type, by the correct function and the type."""
    table_of = reference.table_of
    reference.table_of = lambda kind: change(table_of, kind)


@decorator
def uses(change):
    """The function makes an array by a table, by the correct function, the table and the object."""
    from_table = reference.from_table
    reference.from_table = lambda table, x: change(from_table, table, x)


def first_table(kind):
    capsule = getattr(kind, ATTRIBUTE, None)
    if reference.PyCapsule_IsValid(capsule, EXCHANGE_API):
        return DLPackExchangeAPI.from_address(PyCapsule_GetPointer(capsule, EXCHANGE_API))
    return None


@finds("DL508")
def major_is_not_looked_at(table_of, kind):
    return first_table(kind)


@finds("DL508")
def major_may_be_newer(table_of, kind):
    table = first_table(kind)
    return table if table and table.header.version.major >= MAJOR else None


@finds("DL508")
def stream_is_asked_for_before_the_major(table_of, kind):
    table = first_table(kind)
    if table:
        CURRENT_WORK_STREAM(table.current_work_stream)(CPU, 0, byref(c_void_p()))
    return table_of(kind)


def borrowed(table, x):
    tensor = DLTensor()
    DLTENSOR_FROM_PY_OBJECT(table.dltensor_from_py_object_no_sync)(id(x), byref(tensor))
    return tensor


@uses("DL514", DL545="a table without it")
def lending_is_taken_for_granted(from_table, table, x):
    if not table.dltensor_from_py_object_no_sync:
        crash()
    return from_table(table, x)


@uses("DL514", DL545="a table without it")
def who_does_not_lend_is_refused(from_table, table, x):
    if not table.dltensor_from_py_object_no_sync:
        raise BufferError("it does not lend")
    return from_table(table, x)


CACHE = {}


@finds("DL520")
def table_is_remembered_for_subclasses(table_of, kind):
    for base in kind.__mro__:
        if base in CACHE:
            return CACHE[base]
    table = table_of(kind)
    return CACHE.setdefault(kind, table) if table else None


@finds("DL520")
def table_is_that_of_a_base(table_of, kind):
    found = [table for table in map(table_of, kind.__mro__[::-1]) if table]
    return found[0] if found else None


@uses("DL523")
def work_stream_is_not_asked_for(from_table, table, x):
    managed = c_void_p()
    FROM_PY_OBJECT(table.managed_tensor_from_py_object_no_sync)(id(x), byref(managed))
    array, _ = reference.adopt(PyCapsule_New(managed.value, VERSIONED, None))
    return array


@uses("DL523")
def work_stream_of_the_cpu_is_asked_for(from_table, table, x):
    array = work_stream_is_not_asked_for(from_table, table, x)
    CURRENT_WORK_STREAM(table.current_work_stream)(CPU, 0, byref(c_void_p()))
    return array


@uses("DL523")
def work_stream_of_device_0_is_asked_for(from_table, table, x):
    array = work_stream_is_not_asked_for(from_table, table, x)
    if array.device[0] != CPU:
        stream = c_void_p()
        CURRENT_WORK_STREAM(table.current_work_stream)(array.device[0], 0, byref(stream))
        reference.STREAMS[array.device[0]] = stream.value or 0
    return array


@uses("DL527", DL520="its shape", DL546="its shape")
def shape_that_was_lent_is_written(from_table, table, x):
    if table.dltensor_from_py_object_no_sync:
        tensor = borrowed(table, x)
        for axis in range(tensor.ndim):
            tensor.shape[axis] = 0
    return from_table(table, x)


@uses("DL527", DL523="does not ask for it")
def memory_that_was_lent_is_kept(from_table, table, x):
    if not table.dltensor_from_py_object_no_sync:
        return from_table(table, x)
    tensor = borrowed(table, x)
    ndim = tensor.ndim
    dtype = dtype_name(tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes)
    layout = tensor.data, dtype, tensor.shape[:ndim], tensor.strides[:ndim]
    return Array(*layout, device=(tensor.device.device_type, tensor.device.device_id))


@uses("DL527", DL520="its elements", DL546="its elements")
def memory_that_was_lent_is_freed(from_table, table, x):
    array = from_table(table, x)
    if table.dltensor_from_py_object_no_sync and math.prod(array.shape) and array.device[0] == CPU:
        tensor = borrowed(table, x)
        ctypes.memset(tensor.data, 0xDB, 1)
    return array


@mutant("DL542")
def attribute_of_an_instance_is_used():
    from_dlpack = hooks.from_dlpack

    def planted(x, **keywords):
        if keywords or reference.table_of(x) is None:
            return from_dlpack(x, **keywords)
        return reference.from_table(reference.table_of(x), x)

    hooks.from_dlpack = planted


@mutant(
    "DL543",
    **alike("DL145 DL166 DL401 DL403 DL404 DL405 DL407 DL416 DL417 DL418 DL419 DL420", "refused"),
    **alike("DL425 DL429 DL520 DL542 DL545", "refused"),
)
def without_a_table_it_is_refused():
    from_dlpack = hooks.from_dlpack

    def planted(x, **keywords):
        if reference.table_of(type(x)) is None:
            raise TypeError(f"{type(x)} offers no table")
        return from_dlpack(x, **keywords)

    hooks.from_dlpack = planted


@finds("DL544")
def int_is_an_address(table_of, kind):
    attribute = getattr(kind, ATTRIBUTE, None)
    if isinstance(attribute, int):
        return DLPackExchangeAPI.from_address(attribute)
    return table_of(kind)


@finds("DL544")
def name_of_the_capsule_is_not_looked_at(table_of, kind):
    capsule = getattr(kind, ATTRIBUTE, None)
    if type(capsule).__name__ != "PyCapsule":
        return table_of(kind)
    address = PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule))
    table = DLPackExchangeAPI.from_address(address)
    return table if table.header.version.major == MAJOR else None


@finds("DL545")
def table_is_remembered_by_address(table_of, kind):
    if id(kind) not in CACHE:
        CACHE[id(kind)] = table_of(kind)
    return CACHE[id(kind)]


@finds("DL545")
def only_types_with_a_table_are_remembered_by_address(table_of, kind):
    table = CACHE.get(id(kind)) or table_of(kind)
    if table:
        CACHE[id(kind)] = table
    return table
