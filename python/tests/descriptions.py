"""What a tensor says of itself in the DLPack structure that it hands out, and what is under it."""

import ctypes
import math
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from dlpack_conformance.abi.dlpack import BFLOAT, INT, UINT
from hostile import dtype_of, header

# Every dtype that Arrow has no type for, by ml_dtypes' name: its code and its bits.
EXOTIC = {
    "bfloat16": (BFLOAT, 16),
    "float8_e3m4": (7, 8),
    "float8_e4m3": (8, 8),
    "float8_e4m3b11fnuz": (9, 8),
    "float8_e4m3fn": (10, 8),
    "float8_e4m3fnuz": (11, 8),
    "float8_e5m2": (12, 8),
    "float8_e5m2fnuz": (13, 8),
    "float8_e8m0fnu": (14, 8),
    "float6_e2m3fn": (15, 6),
    "float6_e3m2fn": (16, 6),
    "float4_e2m1fn": (17, 4),
    "int4": (INT, 4),
    "uint4": (UINT, 4),
    "int2": (INT, 2),
    "uint2": (UINT, 2),
    "int1": (INT, 1),
    "uint1": (UINT, 1),
}


class Description(NamedTuple):
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    code: int
    bits: int
    flags: int
    elements: bytes
    """Of one byte or more each, row-major."""


def described(tensor: object) -> Description:
    """What `__dlpack__` gives."""
    capsule = tensor.__dlpack__(max_version=(1, 3))
    managed = header(capsule)
    it = managed.dl_tensor
    shape = tuple(it.shape[: it.ndim])
    row_major = (math.prod(shape[axis + 1 :]) for axis in range(it.ndim))
    strides = tuple(it.strides[: it.ndim] if it.strides else row_major)
    size = max(it.dtype.bits // 8, 1)
    elements = b""
    if math.prod(shape):
        low = sum(min(0, s * (n - 1)) for n, s in zip(shape, strides, strict=True))
        high = sum(max(0, s * (n - 1)) for n, s in zip(shape, strides, strict=True))
        address = (it.data or 0) + it.byte_offset
        memory = (ctypes.c_char * ((high - low + 1) * size)).from_address(address + low * size)
        view = np.frombuffer(memory, f"V{size}")[-low:]
        steps = [size * stride for stride in strides]
        elements = np.lib.stride_tricks.as_strided(view, shape, steps).tobytes()
    address = (it.data or 0) + it.byte_offset
    return Description(address, shape, strides, *dtype_of(it)[:2], managed.flags, elements)


def leaf(array: pa.Array) -> pa.Array:
    """The array of the elements, without those outside of the slice."""
    while True:
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        elif isinstance(array, pa.FixedSizeListArray):
            size = array.type.list_size
            array = array.values.slice(array.offset * size, len(array) * size)
        else:
            return array


def leaf_address(array: pa.Array) -> int:
    """Where the first element is."""
    elements = leaf(array)
    buffer = elements.buffers()[1]
    return buffer.address + elements.offset * elements.type.bit_width // 8
