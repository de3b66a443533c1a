"""dpnp, on the SYCL device that has the host's memory: for DLPack its arrays are on kDLOneAPI.

What it takes from the CPU becomes an array of NumPy's.
"""

import os
import sys
from collections.abc import Sequence
from typing import Any

# The driver in the wheel of intel-opencl-rt is not found otherwise.
os.environ.setdefault("OCL_ICD_FILENAMES", f"{sys.prefix}/lib/libintelocl.so")

import dpnp
import numpy


def dtypes() -> list[str]:
    names = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
    return [*names, "bool", "float16", "float32", "float64", "complex64", "complex128"]


def make(
    values: Sequence[Any],
    dtype: str = "float32",
    shape: Sequence[int] | None = None,
    *,
    strides: Sequence[int] | None = None,
    offset: int = 0,
    readonly: bool = False,
) -> Any:
    array = dpnp.array(values, dtype)
    shape = (len(values),) if shape is None else tuple(shape)
    if strides is None:
        array = array[offset:].reshape(shape)
    else:
        steps = tuple(stride * array.itemsize for stride in strides)
        array = dpnp.ndarray(shape, dtype, array, offset, steps)
    if readonly:
        array.flags.writable = False
    return array


def take(x: Any, **keywords: Any) -> Any:
    return dpnp.from_dlpack(x, **keywords)


def cpu() -> Any:
    return (1, 0)


def device_array() -> Any:
    return dpnp.array([1.0, 2.0], "float32")


def to_list(array: Any) -> Any:
    return array.tolist()


def dtype_of(array: Any) -> str:
    return str(array.dtype)


def shape_of(array: Any) -> tuple[int, ...]:
    return tuple(array.shape)


def address(array: Any) -> int:
    if isinstance(array, numpy.ndarray):
        return int(array.ctypes.data)
    return int(array.get_array()._pointer)


def write(array: Any, value: Any) -> None:
    array[(0,) * array.ndim] = value
