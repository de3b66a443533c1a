"""Elements of every dtype, to bytes and back.

An element narrower than 16 bits and not an integer or a bool is given by its code, an int: float8,
float6 and float4 differ in what a code means, which is not DLPack's concern.
"""

import ctypes
import struct
from collections.abc import Sequence
from typing import Any

from dlpack_conformance.abi.dlpack import BFLOAT, BOOL, COMPLEX, DTYPES, FLOAT, INT, UINT

FORMATS = {(INT, 8): "b", (INT, 16): "h", (INT, 32): "i", (INT, 64): "q", (BOOL, 8): "?"}
FORMATS |= {(UINT, 8): "B", (UINT, 16): "H", (UINT, 32): "I", (UINT, 64): "Q"}
FORMATS |= {(FLOAT, 16): "e", (FLOAT, 32): "f", (FLOAT, 64): "d"}
FORMATS |= {(COMPLEX, 64): "2f", (COMPLEX, 128): "2d", (BFLOAT, 16): "H"}


def pack(values: Sequence[Any], dtype: str) -> bytes:
    """The elements one after the other; those of less than a byte from the lowest bit up."""
    code, bits = DTYPES[dtype]
    if bits < 8:
        joined = sum(int(value) << (bits * i) for i, value in enumerate(values))
        return joined.to_bytes((bits * len(values) + 7) // 8, "little")
    return b"".join(pack_one(value, code, bits) for value in values)


def pack_one(value: Any, code: int, bits: int) -> bytes:
    if code == COMPLEX:
        return struct.pack(FORMATS[code, bits], value.real, value.imag)
    if code == BFLOAT:
        return struct.pack("H", struct.unpack("I", struct.pack("f", value))[0] >> 16)
    return struct.pack(FORMATS.get((code, bits), "B"), value)


def unpack_one(content: bytes, code: int, bits: int) -> Any:
    parts = struct.unpack(FORMATS.get((code, bits), "B"), content)
    if code == BFLOAT:
        return struct.unpack("f", struct.pack("I", parts[0] << 16))[0]
    return complex(*parts) if code == COMPLEX else parts[0]


def read_one(address: int, index: int, dtype: str) -> Any:
    """The element `index` elements from this address."""
    code, bits = DTYPES[dtype]
    if bits < 8:
        first, last = bits * index // 8, (bits * index + bits - 1) // 8
        joined = int.from_bytes(ctypes.string_at(address + first, last + 1 - first), "little")
        return joined >> (bits * index - 8 * first) & ((1 << bits) - 1)
    return unpack_one(ctypes.string_at(address + bits // 8 * index, bits // 8), code, bits)


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a tensor without gaps, its last axis the fastest."""
    strides = [1] * len(shape)
    for axis in range(len(shape) - 1, 0, -1):
        strides[axis - 1] = strides[axis] * max(shape[axis], 1)
    return tuple(strides)


def nested(get: Any, shape: Sequence[int], strides: Sequence[int], start: int = 0) -> Any:
    """The elements as nested lists; `get` gives the one at a distance from the first."""
    if not shape:
        return get(start)
    steps = range(shape[0])
    return [nested(get, shape[1:], strides[1:], start + i * strides[0]) for i in steps]
