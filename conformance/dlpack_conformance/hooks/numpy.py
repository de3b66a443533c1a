"""NumPy."""

from collections.abc import Sequence
from typing import Any

import numpy

from dlpack_conformance.rule import NotApplicable


def dtypes() -> list[str]:
    reals = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
    return ["bool", *reals, "float16", "float32", "float64", "complex64", "complex128"]


def make(
    values: Sequence[Any],
    dtype: str = "float32",
    shape: Sequence[int] | None = None,
    *,
    strides: Sequence[int] | None = None,
    offset: int = 0,
    readonly: bool = False,
) -> Any:
    array = numpy.array(values, dtype)
    shape = (len(values),) if shape is None else shape
    if strides is None:
        array = array[offset:].reshape(shape)
    else:
        steps = [stride * array.itemsize for stride in strides]
        array = numpy.lib.stride_tricks.as_strided(array[offset:], shape, steps)
    if readonly:
        array.flags.writeable = False
    return array


def take(x: Any, **keywords: Any) -> Any:
    return numpy.from_dlpack(x, **keywords)


def views(array: Any) -> list[Any]:
    return [array[:], array[::-1], array.reshape(1, -1)]


def to_list(array: Any) -> Any:
    return array.tolist()


def dtype_of(array: Any) -> str:
    return str(array.dtype)


def shape_of(array: Any) -> tuple[int, ...]:
    return tuple(array.shape)


def address(array: Any) -> int:
    return int(array.ctypes.data)


def write(array: Any, value: Any) -> None:
    array[(0,) * array.ndim] = value


def odd(what: str) -> Any:
    if what == "byte order":
        return numpy.array([1.0, 2.0], "f4").astype(numpy.dtype("f4").newbyteorder())
    if what == "text":
        return numpy.array(["a", "b"])
    if what == "datetime":
        return numpy.array(["2026-01-01"], "datetime64[D]")
    if what == "object":
        return numpy.array([object()])
    if what == "layout":
        return numpy.zeros(4, [("a", "i1"), ("b", "<i4")])["b"]
    raise NotApplicable(f"no {what} arrays")
