"""The reference library of the kit."""

from typing import Any

from dlpack_conformance.abi.dlpack import DTYPES
from dlpack_conformance.kit.reference import Array, from_dlpack, make, use_stream
from dlpack_conformance.rule import NotApplicable

__all__ = ["make", "use_stream"]


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


def odd(what: str) -> Array:
    """An array that DLPack cannot say."""
    if what in ("sparse", "meta"):
        raise NotApplicable(f"no {what} arrays")
    return Array(0, what, (1,), (1,))
