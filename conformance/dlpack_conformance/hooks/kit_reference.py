"""The reference library of the kit."""

from typing import Any

from dlpack_conformance.abi.dlpack import CUDA, DTYPES
from dlpack_conformance.kit.memory import aligned
from dlpack_conformance.kit.reference import (
    Array,
    Scattered,
    Static,
    from_dlpack,
    late_array,
    make,
    use_stream,
)
from dlpack_conformance.kit.streams import Streams
from dlpack_conformance.kit.values import pack
from dlpack_conformance.rule import NotApplicable

__all__ = ["late_array", "make", "use_stream"]


def dtypes() -> list[str]:
    return list(DTYPES)


def take(x: Any, **keywords: Any) -> Array:
    return from_dlpack(x, **keywords)


def cpu() -> str:
    return "cpu"


def to_list(array: Array) -> Any:
    return array.to_list()


def dtype_of(array: Array) -> str:
    return array.dtype


def shape_of(array: Array) -> tuple[int, ...]:
    return array.shape


def address(array: Array) -> int:
    return array.address


def write(array: Array, value: Any) -> None:
    array.write(value)


def views(array: Array) -> list[Array]:
    """The same elements, and the last axis backwards."""
    last = (array.shape[-1] - 1) * array.strides[-1] * DTYPES[array.dtype][1] // 8
    backwards = (*array.strides[:-1], -array.strides[-1])
    return [
        Array(array.address, array.dtype, array.shape, array.strides, owner=array.owner),
        Array(array.address + last, array.dtype, array.shape, backwards, owner=array.owner),
    ]


def device_array() -> Array:
    return late_array(Streams(CUDA), [1.0, 2.0])


def static_array() -> Array:
    return Static(aligned(pack([1.0, 2.0], "float32")), "float32", (2,), (1,))


def odd(what: str) -> Array:
    """An array that DLPack cannot say."""
    if what == "unshared":
        return Scattered(aligned(pack([1.0, 0.0, 2.0], "float32")), "float32", (2,), (2,))
    if what in ("sparse", "meta"):
        raise NotApplicable(f"no {what} arrays")
    return Array(0, what, (1,), (1,))
