"""tvm-ffi. Its tensors are what it was given: NumPy's arrays, the kit's of dtypes NumPy has not."""

from collections.abc import Sequence
from typing import Any

import numpy
import tvm_ffi

from dlpack_conformance.abi.dlpack import DTYPES
from dlpack_conformance.kit.consumer import dtype_name, exported
from dlpack_conformance.kit.producer import Producer
from dlpack_conformance.kit.values import nested, read_one
from dlpack_conformance.rule import NotApplicable


def dtypes() -> list[str]:
    return [dtype for dtype in DTYPES if not dtype.startswith("complex")]


def make(
    values: Sequence[Any],
    dtype: str = "float32",
    shape: Sequence[int] | None = None,
    *,
    strides: Sequence[int] | None = None,
    offset: int = 0,
    readonly: bool = False,
) -> Any:
    if readonly:
        raise NotApplicable("takes no read-only arrays")
    if dtype.startswith(("float8_", "float6_", "float4_", "bfloat")):
        return tvm_ffi.from_dlpack(Producer(values, dtype, shape, strides, offset))
    array = numpy.array(values, dtype)
    shape = (len(values),) if shape is None else shape
    if strides is None:
        return tvm_ffi.from_dlpack(array[offset:].reshape(shape))
    steps = [stride * array.itemsize for stride in strides]
    return tvm_ffi.from_dlpack(
        numpy.lib.stride_tricks.as_strided(array[offset:], tuple(shape), steps)
    )


def take(x: Any, **keywords: Any) -> Any:
    return tvm_ffi.from_dlpack(x, **keywords)


def to_list(array: Any) -> Any:
    view = exported(array)  # it has no elements in Python
    code, bits, lanes = view.dtype
    shape, strides, dtype = view.shape, view.strides, dtype_name(code, bits, 1)
    if lanes != 1:  # as one more axis
        shape, strides = (*shape, lanes), (*(lanes * stride for stride in strides), 1)
    return nested(lambda i: read_one(view.address, i, dtype), shape, strides)


def dtype_of(array: Any) -> str:
    try:
        return str(array.dtype)
    except ValueError as error:
        return str(error)  # it takes what it has no name for


def shape_of(array: Any) -> tuple[int, ...]:
    return tuple(array.shape)


def address(array: Any) -> int:
    return int(array.data_ptr())


def write(array: Any, value: Any) -> None:
    view = numpy.from_dlpack(array)  # it has no other way to its elements
    view[(0,) * view.ndim] = value
