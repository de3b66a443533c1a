"""Calls of a library's exchange table, with what they return and what they set."""

import ctypes
import os
import signal
from collections.abc import Callable
from ctypes import CFUNCTYPE, POINTER, addressof, byref, c_int, c_int64, c_void_p, py_object
from typing import Any

from dlpack_conformance.abi.capsule import (
    Py_DecRef,
    PyCapsule_GetPointer,
    PyCapsule_IsValid,
    PyCapsule_New,
    python,
)
from dlpack_conformance.abi.dlpack import (
    CPU,
    DTYPES,
    VERSIONED,
    DLDataType,
    DLDevice,
    DLTensor,
)
from dlpack_conformance.abi.exchange import (
    ALLOCATOR,
    ATTRIBUTE,
    CURRENT_WORK_STREAM,
    EXCHANGE_API,
    SET_ERROR,
    DLPackExchangeAPI,
)
from dlpack_conformance.kit.consumer import Imported
from dlpack_conformance.kit.judge import text
from dlpack_conformance.kit.producer import Producer
from dlpack_conformance.kit.values import row_major
from dlpack_conformance.rule import Broken, NotApplicable


def attribute_of(lib: Any) -> Any:
    """What the type of the library's arrays has by the name of the exchange API."""
    attribute = getattr(type(lib.make([1.0, 2.0])), ATTRIBUTE, None)
    if attribute is None or hasattr(attribute, "__get__"):
        raise NotApplicable("offers no exchange API on the type, which is optional")
    return attribute


def table_address(capsule: Any) -> int:
    if not PyCapsule_IsValid(capsule, EXCHANGE_API):
        raise NotApplicable("the attribute is no capsule of that name")
    return int(PyCapsule_GetPointer(capsule, EXCHANGE_API))


def offered(lib: Any) -> Any:
    """The table of the library."""
    return DLPackExchangeAPI.from_address(table_address(attribute_of(lib)))


def there(function: int | None) -> int:
    if not function:
        raise NotApplicable("the function is NULL")
    return function


VISIT = CFUNCTYPE(None, POINTER(c_void_p), c_int, c_int)


def call(function: int, first: int, second: int) -> tuple[int, BaseException | None]:
    """(the sign of what a C function of two pointers returned, the exception that it set).

    ctypes raises an exception that a function set, and forgets what it returned. A tree of the C
    library, whose comparison the function is, keeps it: whether `first` went left or right.
    """
    if not hasattr(python, "tsearch"):
        raise NotApplicable("not run here: the C library has no tsearch")
    tree, error, order = c_void_p(), None, list[int]()
    python.tsearch(c_void_p(second), byref(tree), None)
    try:
        python.tsearch(c_void_p(first), byref(tree), c_void_p(function))
    except BaseException as raised:
        error = raised.with_traceback(None)  # which keeps what the function had
    postorder, leaf = 1, 3

    def visit(node: Any, when: int, _level: int) -> None:
        if when in (postorder, leaf):
            order.append(node[0])

    python.twalk(tree, VISIT(visit))
    return (0 if len(order) == 1 else -1 if order[0] == first else 1), error


class Called:
    """One call: what it returned, the exception that it set, and the pointer that it wrote."""

    def __init__(self, function: int | None, first: int) -> None:
        self.out = DLTensor()  # space for one, or for a pointer
        self.status, self.error = call(there(function), first, addressof(self.out))

    @property
    def said(self) -> str:
        return f"{self.status}, {'no exception' if self.error is None else text(self.error)}"

    def pointer(self) -> int:
        """Not for calls that may fail."""
        if self.status or self.error or not self.out.data:
            raise Broken("0 and a pointer", self.said)
        return int(self.out.data)


def view(managed: int) -> Imported:
    """A versioned tensor that belongs to the caller, who calls `delete`."""
    imported = Imported(PyCapsule_New(managed, VERSIONED, None))
    imported.take()
    return imported


def exported_by(table: Any, x: Any) -> Imported:
    return view(Called(table.managed_tensor_from_py_object_no_sync, id(x)).pointer())


def object_from(table: Any, x: Producer) -> Any:
    """The library's array of a managed tensor of the producer."""
    managed = x.place(x.manage(True))
    address = Called(table.managed_tensor_to_py_object_no_sync, managed).pointer()
    array = ctypes.cast(address, py_object).value
    Py_DecRef(array)  # the reference that the call gave away
    return array


def lent_by(table: Any, x: Any, fill: int = 0) -> Any:
    """A borrowed tensor, in memory that was filled with this byte."""
    lend, tensor = there(table.dltensor_from_py_object_no_sync), DLTensor()
    ctypes.memset(addressof(tensor), fill, ctypes.sizeof(tensor))
    status, error = call(lend, id(x), addressof(tensor))
    if status or error:
        raise Broken("0", f"{status}, {error and text(error)}")
    return tensor


def work_stream(table: Any, kind: int, number: int = 0) -> tuple[int | None, int | None, Any]:
    """(status, stream, exception): with an exception the status is not seen."""
    out, function = c_void_p(0xDEAD), there(table.current_work_stream)
    try:
        status = CURRENT_WORK_STREAM(function)(kind, number, byref(out))
    except BaseException as error:
        return None, out.value, error
    return status, out.value, None


class Allocated:
    """One call of the allocator; with `poison` for what it is not to use of the prototype."""

    def __init__(
        self,
        table: Any,
        shape: list[int],
        dtype: Any = DTYPES["float32"],
        poison: int | None = None,
    ) -> None:
        self.said: list[tuple[Any, Any, Any]] = []  # what SetError got
        prototype, self.out, context = DLTensor(), c_void_p(), 0xC0
        prototype.strides = (c_int64 * len(shape))(*row_major(shape))
        if poison is not None:
            prototype.data = prototype.byte_offset = poison
            prototype.strides = ctypes.cast(poison, POINTER(c_int64))
        prototype.shape, prototype.ndim = (c_int64 * len(shape))(*shape), len(shape)
        prototype.dtype, prototype.device = DLDataType(*dtype, 1), DLDevice(CPU, 0)
        set_error = SET_ERROR(lambda *said: self.said.append(said))
        allocator = ALLOCATOR(there(table.managed_tensor_allocator))
        self.status = allocator(byref(prototype), byref(self.out), context, set_error)

    def tensor(self) -> Imported:
        if self.status or not self.out.value:
            raise Broken("a tensor", f"{self.status}, {self.said}")
        return view(self.out.value)


IMPOSSIBLE: list[tuple[str, list[int], Any]] = [
    ("dtype with code 200", [2], (200, 32)),
    ("shape [-1]", [-1], DTYPES["float32"]),
    ("shape [2**60]", [1 << 60], DTYPES["float32"]),
]


def in_child(action: Callable[[], object]) -> str:
    """What the action returns, or how the process ended: for what may crash and is not judged."""
    if not hasattr(os, "fork"):
        raise NotApplicable("no fork")
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writer, str(action()).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader, encoding="utf-8") as pipe:
        said = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return signal.Signals(-status).name if status < 0 else said
