"""pydlpack: `asdlpack` of what has NumPy's array interface."""

from collections.abc import Sequence
from typing import Any

import dlpack
import numpy

from dlpack_conformance.rule import NotApplicable


def dtypes() -> list[str]:
    reals = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
    return ["bool", *reals, "float16", "float32", "float64", "complex64", "complex128"]


class Described:
    """Of an array the interface alone."""

    def __init__(self, array: Any) -> None:
        self.array, self.__array_interface__ = array, array.__array_interface__


def exposed(array: Any) -> Any:
    x = dlpack.asdlpack(Described(array))
    x.array = array  # to ask it for what a DLPackObject does not say
    return x


def make(
    values: Sequence[Any],
    dtype: str = "float32",
    shape: Sequence[int] | None = None,
    *,
    strides: Sequence[int] | None = None,
    offset: int = 0,
    readonly: bool = False,
) -> Any:
    array = numpy.array(values, dtype)[offset:]
    shape = (len(values),) if shape is None else shape
    if strides is None:
        array = array.reshape(shape)
    else:
        steps = [stride * array.itemsize for stride in strides]
        array = numpy.lib.stride_tricks.as_strided(array, tuple(shape), steps)
    if readonly:
        array.flags.writeable = False
    return exposed(array)


def to_list(array: Any) -> Any:
    return array.array.tolist()


def dtype_of(array: Any) -> str:
    return str(array.array.dtype)


def shape_of(array: Any) -> tuple[int, ...]:
    return tuple(array.array.shape)


def address(array: Any) -> int:
    return int(array.array.ctypes.data)


def write(array: Any, value: Any) -> None:
    array.array[(0,) * array.array.ndim] = value


def odd(what: str) -> Any:
    if what == "byte order":
        return exposed(numpy.array([1.0, 2.0], "f4").astype(numpy.dtype("f4").newbyteorder()))
    if what == "layout":
        return exposed(numpy.zeros(4, [("a", "i1"), ("b", "<i4")])["b"])
    raise NotApplicable(f"no {what} arrays")  # asdlpack refuses those of NumPy
