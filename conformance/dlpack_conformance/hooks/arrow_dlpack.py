"""arrow_dlpack. DLPack's rules judge its Tensor, Arrow's its Array.

It makes neither of Python's values: NumPy, the kit's producer and pyarrow do.
"""

from collections.abc import Sequence
from typing import Any

import arrow_dlpack
import ml_dtypes
import numpy
import pyarrow

from dlpack_conformance.abi.dlpack import DTYPES, READ_ONLY
from dlpack_conformance.kit.arrow_field import Field, schema_capsule
from dlpack_conformance.kit.producer import Producer

NARROW_FLOATS = ("float8_", "float6_", "float4_")


def dtypes() -> list[str]:
    return list(DTYPES)


def make(
    values: Sequence[Any],
    dtype: str = "float32",
    shape: Sequence[int] | None = None,
    *,
    strides: Sequence[int] | None = None,
    offset: int = 0,
    readonly: bool = False,
) -> Any:
    if dtype.startswith((*NARROW_FLOATS, "bfloat")):
        x = Producer(values, dtype, shape, strides, offset, legacy=False)
        x.flags = READ_ONLY if readonly else 0
        return arrow_dlpack.Tensor.from_dlpack(x)
    array = numpy.array(values, dtype)
    shape = (len(values),) if shape is None else shape
    if strides is None:
        array = array[offset:].reshape(shape)
    else:
        steps = [stride * array.itemsize for stride in strides]
        array = numpy.lib.stride_tricks.as_strided(array[offset:], shape, steps)
    if readonly:
        array.flags.writeable = False
    return arrow_dlpack.Tensor.from_dlpack(array)


def take(x: Any, **keywords: Any) -> Any:
    return arrow_dlpack.Tensor.from_dlpack(x, **keywords)


def to_list(array: Any) -> Any:
    if array.dtype.startswith(NARROW_FLOATS):
        codes = numpy.array(array.tolist(), getattr(ml_dtypes, array.dtype))
        return codes.view("uint8").tolist()
    if "x" in array.dtype:
        return numpy.asarray(array).tolist()  # the lanes are one more axis
    return array.tolist()


def dtype_of(array: Any) -> str:
    return str(array.dtype)


def shape_of(array: Any) -> tuple[int, ...]:
    return tuple(array.shape)


def address(array: Any) -> int:
    return int(numpy.asarray(array).ctypes.data)


def write(array: Any, value: Any) -> None:
    numpy.asarray(array)[(0,) * array.ndim] = value


def arrow_array(field: Field, values: Sequence[Any]) -> Any:
    # pyarrow.field takes structs only.
    kind = pyarrow.Field._import_from_c_capsule(schema_capsule(field)).type
    if isinstance(kind, pyarrow.ExtensionType):
        array = kind.wrap_array(pyarrow.array(values, kind.storage_type))
    else:
        array = pyarrow.array(values, kind)
    return arrow_dlpack.Array(array)


def arrow_to_list(array: Any) -> Any:
    return pyarrow.array(array).to_pylist()


def arrow_take(x: Any) -> Any:
    return arrow_dlpack.Array(x)


def arrow_take_stream(x: Any) -> Any:
    return arrow_dlpack.Array(x)


def bridge_tensor(x: Any) -> Any:
    return arrow_dlpack.Array(x)


def bridge_array(x: Any) -> Any:
    return arrow_dlpack.from_dlpack(x)
