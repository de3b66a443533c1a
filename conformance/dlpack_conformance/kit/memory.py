"""Memory that faults where it must not be read."""

import ctypes
import mmap
import sys
from typing import Any

from dlpack_conformance.rule import NotApplicable

MEMORY: list[Any] = []  # for the life of the process: consumers keep addresses


def aligned(content: bytes, alignment: int = 64, past: int = 0) -> int:
    """The address of a copy of these bytes, `past` bytes beyond a multiple of the alignment."""
    memory = ctypes.create_string_buffer(len(content) + 2 * alignment + past)
    MEMORY.append(memory)
    address = -(-ctypes.addressof(memory) // alignment) * alignment + past
    ctypes.memmove(address, content, len(content))
    return address


def before_guard_page(content: bytes) -> int:
    """The address of a copy of these bytes, behind which nothing can be read."""
    if sys.platform in ("win32", "emscripten"):
        raise NotApplicable("not run here: it needs mprotect")
    pages = mmap.mmap(-1, 2 * mmap.PAGESIZE)
    MEMORY.append(pages)
    guard = ctypes.addressof(ctypes.c_char.from_buffer(pages)) + mmap.PAGESIZE
    forbid(guard)
    ctypes.memmove(guard - len(content), content, len(content))
    return guard - len(content)


def forbid(address: int) -> None:
    """Makes the page of this address one that cannot be read."""
    page = address - address % mmap.PAGESIZE
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(mmap.PAGESIZE), 0):
        raise OSError(ctypes.get_errno(), "mprotect")


def unreadable() -> int:
    """The address of a page that cannot be read: a read of it ends the process."""
    return before_guard_page(b"")
