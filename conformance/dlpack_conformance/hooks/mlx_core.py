"""MLX, on the CPU."""

from collections.abc import Sequence
from typing import Any

import mlx.core
import numpy

from dlpack_conformance.rule import NotApplicable

mlx.core.set_default_device(mlx.core.cpu)


def dtypes() -> list[str]:
    names = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
    return [*names, "bool", "float16", "bfloat16", "float32", "float64", "complex64"]


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
        raise NotApplicable("no read-only arrays")
    if dtype == "bfloat16":
        array = mlx.core.array(numpy.array(values, "float32"), mlx.core.bfloat16)
    else:
        kind = mlx.core.bool_ if dtype == "bool" else getattr(mlx.core, dtype)
        array = mlx.core.array(numpy.array(values, dtype), kind)
    shape = (len(values),) if shape is None else tuple(shape)
    if strides is None:
        return array[offset:].reshape(shape)
    return mlx.core.as_strided(array, shape, tuple(strides), offset)


def take(x: Any, **keywords: Any) -> Any:
    return mlx.core.from_dlpack(x, **keywords)


def to_list(array: Any) -> Any:
    return array.tolist()


def dtype_of(array: Any) -> str:
    return str(array.dtype).removeprefix("mlx.core.").rstrip("_")


def shape_of(array: Any) -> tuple[int, ...]:
    return tuple(array.shape)


def address(array: Any) -> int:
    return int(numpy.asarray(memoryview(array)).ctypes.data)


def write(array: Any, value: Any) -> None:
    array[(0,) * array.ndim] = value
    mlx.core.eval(array)
