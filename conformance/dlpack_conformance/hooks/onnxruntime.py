"""ONNX Runtime: its OrtValue, which has no strides."""

from collections.abc import Sequence
from typing import Any

import numpy
import onnxruntime

from dlpack_conformance.kit.values import nested, read_one, row_major
from dlpack_conformance.rule import NotApplicable

NAMES = {"float": "float32", "double": "float64", "float4e2m1": "float4_e2m1fn"}
NAMES |= {f"float8{kind}": f"float8_{kind}" for kind in ("e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz")}
NAMES |= {"float8e8m0": "float8_e8m0fnu"}
BFLOAT16 = 16  # as ONNX numbers it


def dtypes() -> list[str]:
    names = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
    return [*names, "bool", "float16", "bfloat16", "float32", "float64"]


def make(
    values: Sequence[Any],
    dtype: str = "float32",
    shape: Sequence[int] | None = None,
    *,
    strides: Sequence[int] | None = None,
    offset: int = 0,
    readonly: bool = False,
) -> Any:
    if strides is not None:
        raise NotApplicable("no strides")
    shape = (len(values),) if shape is None else shape
    if dtype == "bfloat16":
        codes = (numpy.array(values, "float32").view("uint32") >> 16).astype("uint16")
        its = codes[offset:].reshape(shape)
        return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(its, BFLOAT16)
    array = numpy.array(values, dtype)[offset:].reshape(shape)
    if readonly:
        array.flags.writeable = False
    return onnxruntime.OrtValue.ortvalue_from_numpy(array)


def take(x: Any, **keywords: Any) -> Any:
    return onnxruntime.OrtValue.from_dlpack(x, **keywords)


def to_list(array: Any) -> Any:
    shape, dtype = shape_of(array), dtype_of(array)
    return nested(lambda i: read_one(array.data_ptr(), i, dtype), shape, row_major(shape))


def dtype_of(array: Any) -> str:
    name = str(array.data_type()).removeprefix("tensor(").removesuffix(")")
    return NAMES.get(name, name)


def shape_of(array: Any) -> tuple[int, ...]:
    return tuple(array.shape())


def address(array: Any) -> int:
    return int(array.data_ptr())


def write(array: Any, value: Any) -> None:
    changed = array.numpy()
    changed[(0,) * changed.ndim] = value
    array.update_inplace(changed)
