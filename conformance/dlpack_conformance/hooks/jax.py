"""JAX, with 64-bit types. Its arrays have no strides and are never written."""

from collections.abc import Sequence
from typing import Any

import jax
import ml_dtypes
import numpy

from dlpack_conformance.rule import NotApplicable

jax.config.update("jax_enable_x64", True)


def dtypes() -> list[str]:
    names = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
    names += ["bool", "float16", "float32", "float64", "bfloat16", "complex64", "complex128"]
    names += ["float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn"]
    names += ["float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"]
    return [*names, "float4_e2m1fn"]


def make(
    values: Sequence[Any],
    dtype: str = "float32",
    shape: Sequence[int] | None = None,
    *,
    strides: Sequence[int] | None = None,
    offset: int = 0,
    readonly: bool = False,
) -> Any:
    if strides is not None or offset:
        raise NotApplicable("no strides")
    if dtype.startswith(("float8", "float4")):
        array = numpy.array(values, "uint8").view(getattr(ml_dtypes, dtype))
    elif dtype == "bfloat16":
        array = numpy.array(values, ml_dtypes.bfloat16)
    else:
        array = numpy.array(values, dtype)
    return jax.numpy.array(array.reshape((len(values),) if shape is None else tuple(shape)))


def take(x: Any, **keywords: Any) -> Any:
    return jax.numpy.from_dlpack(x, **keywords)


def to_list(array: Any) -> Any:
    array = numpy.asarray(array)
    return (
        array.view("uint8") if array.dtype.name.startswith(("float8", "float4")) else array
    ).tolist()


def dtype_of(array: Any) -> str:
    return str(array.dtype)


def shape_of(array: Any) -> tuple[int, ...]:
    return tuple(array.shape)


def address(array: Any) -> int:
    return int(array.unsafe_buffer_pointer())


def odd(what: str) -> Any:
    if what == "object":
        return jax.random.key(0)
    raise NotApplicable(f"no {what} arrays")
