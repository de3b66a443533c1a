"""The C exchange API by ctypes: tables read, and tables that can say anything."""

import ctypes
from ctypes import CFUNCTYPE, POINTER, PYFUNCTYPE, c_int, c_int32, c_void_p

import hostile
from dlpack_conformance.abi.capsule import PyCapsule_GetPointer, PyCapsule_New
from dlpack_conformance.abi.dlpack import DELETER, DLManagedTensorVersioned
from dlpack_conformance.abi.exchange import (
    ATTRIBUTE,
    EXCHANGE_API,
    DLPackExchangeAPI,
)


class Table(DLPackExchangeAPI):
    """All functions are addresses: who calls one says how."""

    # Those of PYFUNCTYPE keep the GIL, and raise the exception that was set; objects are addresses,
    # so that they can be NULL.
    def allocate(self, *arguments):
        kind = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_void_p)
        return kind(self.managed_tensor_allocator)(*arguments)

    def from_object(self, *arguments):
        kind = PYFUNCTYPE(c_int, c_void_p, c_void_p)
        return kind(self.managed_tensor_from_py_object_no_sync)(*arguments)

    def to_object(self, *arguments):
        kind = PYFUNCTYPE(c_int, c_void_p, c_void_p)
        return kind(self.managed_tensor_to_py_object_no_sync)(*arguments)

    def lend(self, *arguments):
        kind = PYFUNCTYPE(c_int, c_void_p, c_void_p)
        return kind(self.dltensor_from_py_object_no_sync)(*arguments)

    def stream(self, *arguments):
        kind = PYFUNCTYPE(c_int, c_int32, c_int32, c_void_p)
        return kind(self.current_work_stream)(*arguments)


def table_of(kind):
    return Table.from_address(PyCapsule_GetPointer(getattr(kind, ATTRIBUTE), EXCHANGE_API))


class Out:
    """Space for a pointer, with something in it that is not NULL."""

    def __init__(self):
        self.pointer = c_void_p(0xDEAD)

    @property
    def at(self):
        return ctypes.addressof(self.pointer)

    @property
    def value(self):
        return self.pointer.value

    def tensor(self):
        return DLManagedTensorVersioned.from_address(self.value)

    def object(self):
        """The object, of which there is one reference more; this takes that one over."""
        taken = ctypes.cast(self.value, ctypes.py_object).value
        ctypes.pythonapi.Py_DecRef(ctypes.py_object(taken))
        return taken

    def delete(self):
        """As another library would: without the GIL."""
        DELETER(self.tensor().deleter)(self.value)


def export(x, kind=None):
    """The tensor of an object by the table of its type, or of another one."""
    out = Out()
    assert table_of(kind or type(x)).from_object(id(x), out.at) == 0
    return out


def description(tensor):
    """Shape, strides and address of the first element."""
    axes = range(tensor.ndim)
    strides = tuple(tensor.strides[i] for i in axes) if tensor.strides else None
    shape = tuple(tensor.shape[i] for i in axes)
    return shape, strides, (tensor.data or 0) + tensor.byte_offset


KEPT = []  # a table is for the life of the process


def address_of(function):
    """Of a C function: one of CPython's by name, or of one made of a Python one."""
    if isinstance(function, str):
        function = getattr(ctypes.pythonapi, function)
    KEPT.append(function)
    return ctypes.cast(function, c_void_p).value


def exporter(get):
    """A function of a table that hands over the tensor at the address `get(object)`."""

    @PYFUNCTYPE(c_int, ctypes.py_object, POINTER(c_void_p))
    def function(x, out):
        out[0] = get(x)
        return 0

    return function


def make_table(function=None, major=1, prev_api=None, **fields):
    table = Table(header=((major, 3), prev_api))
    if function is not None:
        table.managed_tensor_from_py_object_no_sync = address_of(function)
    for name, value in fields.items():
        setattr(table, name, value)
    KEPT.append(table)
    return table


def make_capsule(table, name=EXCHANGE_API):
    KEPT.append(name)
    return PyCapsule_New(ctypes.addressof(table), name, None)


class Asked(hostile.Producer):
    """Counts how often it was asked by `__dlpack__`, for float32 values 1, 2, 3."""

    @property
    def asked(self):
        return len(self.calls)


def producer_type(table, base=Asked, name=EXCHANGE_API, **namespace):
    """A type whose table that is."""
    return type("Producer", (base,), {ATTRIBUTE: make_capsule(table, name), **namespace})


def managed_address(x):
    """Of the tensor of a hostile.Producer."""
    return ctypes.addressof(x.managed)
