"""Tables of the C exchange API, the functions of which are Python's."""

import ctypes
from collections.abc import Callable
from ctypes import POINTER, Structure, byref, c_char_p, c_int, c_uint, c_void_p, py_object
from typing import Any

from dlpack_conformance.abi.capsule import PyCapsule_New, python
from dlpack_conformance.abi.dlpack import CPU, MAJOR, MINOR, DLPackVersion
from dlpack_conformance.abi.exchange import (
    ALLOCATOR,
    ATTRIBUTE,
    CURRENT_WORK_STREAM,
    DLTENSOR_FROM_PY_OBJECT,
    EXCHANGE_API,
    FROM_PY_OBJECT,
    TO_PY_OBJECT,
    DLPackExchangeAPI,
    DLPackExchangeAPIHeader,
)
from dlpack_conformance.kit.producer import Producer

TABLES: list[Any] = []  # for the life of the process, with all that they point to


class PyType_Slot(Structure):
    _fields_ = (("slot", c_int), ("function", c_void_p))


class PyType_Spec(Structure):
    _fields_ = (
        ("name", c_char_p),
        ("basicsize", c_int),
        ("itemsize", c_int),
        ("flags", c_uint),
        ("slots", POINTER(PyType_Slot)),
    )


PyType_FromSpec = python.PyType_FromSpec
PyType_FromSpec.restype = py_object
PyType_FromSpec.argtypes = [c_void_p]

# ctypes prints the exception of a callback and clears it. The last that it does is to drop what
# the callback returned: of this type, which calls the object when it dies, and so raises then.
call_it = PyType_Slot(52, ctypes.cast(python.PyObject_CallNoArgs, c_void_p))  # Py_tp_dealloc
slots = (PyType_Slot * 2)(call_it, PyType_Slot(0, None))
Failure = PyType_FromSpec(byref(PyType_Spec(b"kit.Failure", object.__basicsize__, 0, 0, slots)))
errors: list[BaseException] = []
dead: list[Any] = []


def raise_error(failure: Any) -> None:
    dead.append(failure)  # else it would die again
    raise errors.pop()


Failure.__index__ = lambda failure: -1
Failure.__call__ = raise_error


def failed(error: BaseException) -> Any:
    """What a callback returns to return -1 with this exception set."""
    errors.append(error)
    return Failure()


def c_function(kind: Any, function: Callable[..., Any] | int | None) -> int | None:
    """The address of a C function that returns 0, or -1 with the exception that was raised."""
    if function is None or isinstance(function, int):
        return function

    def call(*arguments: Any) -> Any:
        try:
            return function(*arguments) or 0
        except BaseException as error:
            return failed(error)

    TABLES.append(kind(call))
    return ctypes.cast(TABLES[-1], c_void_p).value


def make_table(
    *,
    allocate: Any,
    from_object: Any,
    to_object: Any,
    lend: Any,
    work_stream: Any,
    version: tuple[int, int] = (MAJOR, MINOR),
    prev_api: int | None = None,
) -> DLPackExchangeAPI:
    """Of Python functions, of addresses or of None."""
    table = DLPackExchangeAPI(
        DLPackExchangeAPIHeader(DLPackVersion(*version), prev_api),
        c_function(ALLOCATOR, allocate),
        c_function(FROM_PY_OBJECT, from_object),
        c_function(TO_PY_OBJECT, to_object),
        c_function(DLTENSOR_FROM_PY_OBJECT, lend),
        c_function(CURRENT_WORK_STREAM, work_stream),
    )
    TABLES.append(table)
    return table


def table_capsule(table: DLPackExchangeAPI, name: bytes | None = EXCHANGE_API) -> Any:
    TABLES.append(name)
    return PyCapsule_New(ctypes.addressof(table), name, None)


class Log(list[Any]):
    """Calls of a table's functions: (name, object or device). `stream` is the one that it gives."""

    stream: int | None = None


def logging_table(log: Log, **changes: Any) -> DLPackExchangeAPI:
    """A correct table for objects of Producer, whose calls are in `log`."""

    def allocate(prototype: Any, out: Any, context: Any, set_error: Any) -> int:
        log.append(("allocate", None))
        set_error(context, b"MemoryError", b"nothing is allocated here")
        return -1

    def from_object(address: int, out: Any) -> None:
        x = ctypes.cast(address, py_object).value
        log.append(("from", x))
        out[0] = x.place(x.manage(True))

    def to_object(managed: int, out: Any) -> None:
        log.append(("to", None))
        raise BufferError("nothing is taken here")

    def lend(address: int, out: Any) -> None:
        x = ctypes.cast(address, py_object).value
        log.append(("lend", x))
        out[0] = x.tensor

    def work_stream(kind: int, number: int, out: Any) -> None:
        log.append(("stream", (kind, number)))
        out[0] = None if kind == CPU else log.stream

    functions: dict[str, Any] = {"allocate": allocate, "from_object": from_object}
    functions |= {"to_object": to_object, "lend": lend, "work_stream": work_stream}
    return make_table(**functions | changes)


def offering(log: Log, base: Any = Producer, **changes: Any) -> Any:
    """A new type of producers that offers such a table."""
    capsule = table_capsule(logging_table(log, **changes))
    return type("Offering", (base,), {ATTRIBUTE: capsule})
