"""Deleters and destructors that are compiled: those of ctypes lose an exception in flight."""

import contextlib
import ctypes
from collections.abc import Callable
from typing import Any

from dlpack_conformance.abi.capsule import CAPSULE_DESTRUCTOR, PyCapsule_New, python


def c_library() -> Any:
    return ctypes.CDLL(None)


def in_shared_object(function: int | None) -> bool:
    """Whether it is compiled: callbacks of ctypes are made at run time."""
    found = (ctypes.c_void_p * 4)()
    return bool(c_library().dladdr(ctypes.c_void_p(function), found))


def exception_left(
    exception: Exception,
    dying: Callable[[], Any] = object,
    function: int | None = None,
    argument: int = 0,
) -> BaseException | None:
    """The exception that is in flight after an object died with this one in flight, and a C
    function was called so."""
    call = python._FuncPtr(function or address_of(python.PyErr_Occurred))
    call.restype = None  # and no argtypes: to convert arguments loses the exception
    pointer, seen = ctypes.c_void_p(argument), []

    def look(_capsule: int) -> None:
        try:
            call(pointer)
        except BaseException as error:
            seen.append(error)

    destructor = CAPSULE_DESTRUCTOR(look)
    with contextlib.suppress(MemoryError):
        # A list that fails half-way drops its elements, the last first, with the exception set.
        # The first sets another one, since our callback ends without.
        [new_capsule(python.PyErr_NoMemory), new_capsule(destructor), dying(), throw(exception)]
    return seen[0] if seen else None


def address_of(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def new_capsule(destructor: Any) -> Any:
    return PyCapsule_New(1, b"", ctypes.cast(destructor, ctypes.c_void_p))


def throw(exception: Exception) -> Any:
    raise exception
