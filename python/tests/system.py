"""What the tests ask of the system, which Windows has otherwise, or not at all."""

import ctypes
import importlib.util
import os
import signal
import time

import numpy as np
import pytest

WINDOWS = os.name == "nt"

needs_resource = pytest.mark.skipif(
    importlib.util.find_spec("resource") is None,
    reason="the system has no limits and counts of a process (module resource)",
)
#: The C library calls a function with an argument when the process ends, after the interpreter.
needs_cxa_atexit = pytest.mark.skipif(
    WINDOWS, reason="the C library calls nothing that has an argument when the process ends"
)


#: A library that refers to functions of the interpreter, which its loader has.
needs_undefined_symbols = pytest.mark.skipif(
    WINDOWS, reason="a library is linked with all that it calls, by a compiler that is not there"
)
#: NumPy's longdouble is C's, which the compilers for Windows make a double.
needs_long_double = pytest.mark.skipif(
    np.dtype("longdouble").itemsize == 8, reason="a long double is a double"
)
replaces_open_files = pytest.mark.skipif(
    WINDOWS, reason="the system replaces no file that a program has open"
)
#: Seconds that this process computed. Windows counts them by ticks of 16 ms: those that went by.
cpu_seconds = time.perf_counter if WINDOWS else time.process_time


def marked(names):
    """Parameters by their names, of which those of long doubles need them."""
    return [
        pytest.param(name, marks=needs_long_double) if "long double" in name else name
        for name in names
    ]


def forbid_access(address, length):
    """Whatever reads these pages from now on ends the process."""
    address, length = ctypes.c_void_p(address), ctypes.c_size_t(length)
    if WINDOWS:
        no_access, before = 1, ctypes.c_uint32()
        protect = ctypes.windll.kernel32.VirtualProtect
        assert protect(address, length, no_access, ctypes.byref(before))
    else:
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.mprotect(address, length, 0) == 0, ctypes.get_errno()


def interrupt():
    """As Ctrl-C, from any thread. On Windows os.kill would end the process."""
    if WINDOWS:
        signal.raise_signal(signal.SIGINT)
    else:
        os.kill(os.getpid(), signal.SIGINT)


def call_on_a_thread_of_c(function, argument, stack=None):
    """Calls ``void function(void *argument)`` on a thread that Python does not know, and waits."""
    function, argument = ctypes.c_void_p(function), ctypes.c_void_p(argument)
    (call_by_windows if WINDOWS else call_by_pthread)(function, argument, stack)


def call_by_pthread(function, argument, stack):
    libc = ctypes.CDLL(None)
    attributes, thread = ctypes.create_string_buffer(64), ctypes.c_ulong()
    assert libc.pthread_attr_init(attributes) == 0
    if stack is not None:
        assert libc.pthread_attr_setstacksize(attributes, ctypes.c_size_t(stack)) == 0
    assert libc.pthread_create(ctypes.byref(thread), attributes, function, argument) == 0
    assert libc.pthread_join(thread, None) == 0


def call_by_windows(function, argument, stack):
    reserved = 0x10000  # STACK_SIZE_PARAM_IS_A_RESERVATION
    create = ctypes.windll.kernel32.CreateThread
    create.restype = ctypes.c_void_p
    size = ctypes.c_size_t(stack or 0)
    thread = ctypes.c_void_p(create(None, size, function, argument, reserved, None))
    assert thread
    assert ctypes.windll.kernel32.WaitForSingleObject(thread, -1) == 0
    ctypes.windll.kernel32.CloseHandle(thread)
