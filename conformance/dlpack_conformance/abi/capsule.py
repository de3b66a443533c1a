"""PyCapsule and the exception in flight, by Python's own C functions."""

import ctypes
from ctypes import PYFUNCTYPE, byref, c_char_p, c_int, c_void_p, py_object, sizeof
from typing import Any

# A library object with prototypes of its own: those of ctypes.pythonapi belong to everyone.
python = ctypes.PyDLL(None, handle=ctypes.pythonapi._handle)

# A capsule keeps the name's address alone: names must live as long as it does.
PyCapsule_New = python.PyCapsule_New
PyCapsule_New.restype = py_object
PyCapsule_New.argtypes = [c_void_p, c_char_p, c_void_p]

PyCapsule_GetPointer = python.PyCapsule_GetPointer
PyCapsule_GetPointer.restype = c_void_p
PyCapsule_GetPointer.argtypes = [py_object, c_char_p]

PyCapsule_GetName = python.PyCapsule_GetName
PyCapsule_GetName.restype = c_char_p
PyCapsule_GetName.argtypes = [py_object]

PyCapsule_SetName = python.PyCapsule_SetName
PyCapsule_SetName.restype = c_int
PyCapsule_SetName.argtypes = [py_object, c_char_p]

PyCapsule_IsValid = python.PyCapsule_IsValid
PyCapsule_IsValid.restype = c_int
PyCapsule_IsValid.argtypes = [py_object, c_char_p]

PyCapsule_SetDestructor = python.PyCapsule_SetDestructor
PyCapsule_SetDestructor.restype = c_int
PyCapsule_SetDestructor.argtypes = [py_object, c_void_p]

# What a destructor gets is dying: an address, since a reference to it would let it die again.
CAPSULE_DESTRUCTOR = PYFUNCTYPE(None, c_void_p)
dying_capsule_is_valid = python["PyCapsule_IsValid"]
dying_capsule_is_valid.restype = c_int
dying_capsule_is_valid.argtypes = [c_void_p, c_char_p]
dying_capsule_pointer = python["PyCapsule_GetPointer"]
dying_capsule_pointer.restype = c_void_p
dying_capsule_pointer.argtypes = [c_void_p, c_char_p]

Py_IncRef = python.Py_IncRef
Py_IncRef.restype = None
Py_IncRef.argtypes = [py_object]

Py_DecRef = python.Py_DecRef
Py_DecRef.restype = None
Py_DecRef.argtypes = [py_object]

PyErr_Fetch = python.PyErr_Fetch
PyErr_Fetch.restype = None
PyErr_Fetch.argtypes = [c_void_p, c_void_p, c_void_p]

PyErr_Restore = python.PyErr_Restore
PyErr_Restore.restype = None
PyErr_Restore.argtypes = [c_void_p, c_void_p, c_void_p]

# Made before there is an exception: a call from Python with one in flight is a SystemError.
in_flight = (c_void_p * 3)()
in_flight_parts = [byref(in_flight, part * sizeof(c_void_p)) for part in range(3)]


def set_aside_exception() -> tuple[Any, ...]:
    """What a callback calls first: a consumer may run it with an exception set."""
    PyErr_Fetch(*in_flight_parts)
    return tuple(in_flight)


def put_back_exception(exception: tuple[Any, ...]) -> None:
    """What a callback calls last."""
    PyErr_Restore(*exception)
