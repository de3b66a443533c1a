"""Deleters and destructors that are compiled: those of ctypes lose an exception in flight."""

import contextlib
import ctypes
from typing import Any

from dlpack_conformance.abi.capsule import CAPSULE_DESTRUCTOR, PyCapsule_New, python


def c_library() -> Any:
    return ctypes.CDLL(None)


def in_shared_object(function: int | None) -> bool:
    """Whether it is compiled: callbacks of ctypes are made at run time."""
    found = (ctypes.c_void_p * 4)()
    return bool(c_library().dladdr(ctypes.c_void_p(function), found))


def after_call_in_flight(function: int, argument: int, exception: Exception) -> Any:
    """The exception that is in flight after a C function was called with this one, or None."""
    call = python._FuncPtr(function)  # without argtypes: to convert them loses the exception
    call.restype = None
    pointer, seen = ctypes.c_void_p(argument), []

    def during(_capsule: int) -> None:
        try:
            call(pointer)
        except BaseException as error:
            seen.append(error)

    destructor = CAPSULE_DESTRUCTOR(during)
    with contextlib.suppress(MemoryError):
        # A list that fails half-way drops its elements, the last first, with the exception set.
        # The first sets another one, since our callback ends without.
        [no_memory(), new_capsule(destructor), throw(exception)]
    return seen[0] if seen else None


def no_memory() -> Any:
    """An object that sets a MemoryError when it dies."""
    return new_capsule(python.PyErr_NoMemory)


def new_capsule(destructor: Any) -> Any:
    return PyCapsule_New(1, b"", ctypes.cast(destructor, ctypes.c_void_p))


def throw(exception: Exception) -> Any:
    raise exception
