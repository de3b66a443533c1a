"""PyCapsule and the exception that is set, by Python's own C functions."""

import ctypes
from ctypes import PYFUNCTYPE, byref, c_char_p, c_int, c_void_p, cast, py_object, sizeof

# A library object with its prototypes: those of ctypes.pythonapi belong to everyone. Windows asks
# for a name also where it has the handle.
python = ctypes.PyDLL(ctypes.pythonapi._name, handle=ctypes.pythonapi._handle)

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

# Where the name is, and what is called when a capsule dies.
capsule_name_address = python["PyCapsule_GetName"]
capsule_name_address.restype = c_void_p
capsule_name_address.argtypes = [py_object]
capsule_destructor = python["PyCapsule_GetDestructor"]
capsule_destructor.restype = c_void_p
capsule_destructor.argtypes = [py_object]

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

# Without argtypes: ctypes would call their methods, and a call with an exception set is an error.
PyErr_Fetch = python.PyErr_Fetch
PyErr_Fetch.restype = None
in_flight = (c_void_p * 3)()
in_flight_parts = [byref(in_flight, part * sizeof(c_void_p)) for part in range(3)]


def take_exception_away() -> str | None:
    """The text of the exception that is set, and none is set any more: a callback calls this first.

    C code may run a deleter while an exception is set. ctypes can neither run Python then nor put
    the exception back, so that the caller fails without one, which is a SystemError.
    """
    PyErr_Fetch(*in_flight_parts)
    kind, value, _ = (cast(part, py_object) if part else None for part in in_flight)
    if kind is None:
        return None
    return f"{kind.value.__name__}: {'' if value is None else value.value}"
