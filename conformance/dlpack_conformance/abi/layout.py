"""Where a structure's fields lie for pointers of 8 or of 4 bytes, whatever this machine has.

ctypes says it of this machine only. With 4 bytes these are the rules of wasm32 and of arm: 64-bit
integers are aligned to 8 bytes.
"""

import ctypes
from typing import Any


def size_and_alignment(kind: Any, pointer: int) -> tuple[int, int]:
    if issubclass(kind, ctypes.Structure):
        _, size = layout(kind, pointer)
        return size, max(size_and_alignment(field[1], pointer)[1] for field in kind._fields_)
    if issubclass(kind, ctypes.Array):
        size, alignment = size_and_alignment(kind._type_, pointer)
        return size * kind._length_, alignment
    if issubclass(kind, ctypes._Pointer) or kind in (ctypes.c_void_p, ctypes.c_char_p):
        return pointer, pointer
    return ctypes.sizeof(kind), ctypes.sizeof(kind)


def layout(kind: Any, pointer: int = ctypes.sizeof(ctypes.c_void_p)) -> tuple[dict[str, int], int]:
    """The offset of each field, and the size of all."""
    offsets, end, widest = {}, 0, 1
    for name, field, *_ in kind._fields_:
        size, alignment = size_and_alignment(field, pointer)
        offsets[name] = -(-end // alignment) * alignment
        end = offsets[name] + size
        widest = max(widest, alignment)
    return offsets, -(-end // widest) * widest
