"""minarrow: NdArray for DLPack, Array and ChunkedArray for Arrow."""

from collections.abc import Sequence
from typing import Any

import minarrow
import numpy

from dlpack_conformance.kit.arrow_field import Field
from dlpack_conformance.kit.arrow_producer import ArrowProducer
from dlpack_conformance.kit.arrow_stream import ArrowStream
from dlpack_conformance.rule import NotApplicable


def dtypes() -> list[str]:
    return ["float32", "float64"]


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
    if strides is not None:
        raise NotApplicable("makes no strides")
    shape = (len(values),) if shape is None else tuple(shape)
    # It is column-major.
    columns = numpy.array(values, dtype)[offset:].reshape(shape).ravel("F")
    return minarrow.NdArray(columns, shape=shape, dtype=dtype)


def take(x: Any, **keywords: Any) -> Any:
    return minarrow.NdArray.from_dlpack(x, **keywords)


def to_list(array: Any) -> Any:
    return array.to_numpy().tolist()


def dtype_of(array: Any) -> str:
    return str(array.dtype)


def shape_of(array: Any) -> tuple[int, ...]:
    return tuple(array.shape)


def address(array: Any) -> int:
    return int(array.to_numpy().ctypes.data)


def made(take: Any, x: Any, field: Field) -> Any:
    """It hands on what it takes."""
    try:
        return take(x)
    except ValueError as refusal:
        raise NotApplicable(f"no arrays of {field.format}: {refusal}") from None


def arrow_array(field: Field, values: Sequence[Any]) -> Any:
    return made(arrow_take, ArrowProducer(field, values), field)


def arrow_stream(field: Field, chunks: Sequence[Sequence[Any]], once: bool = False) -> Any:
    if once:
        raise NotApplicable("no readers")
    return made(arrow_take_stream, ArrowStream(field, chunks), field)


def arrow_slice(array: Any, start: int, length: int) -> Any:
    return array[start : start + length]


def arrow_to_list(array: Any) -> Any:
    return array.to_arrow().to_pylist()


def arrow_take(x: Any) -> Any:
    return minarrow.Array.from_arrow(x)


def arrow_take_stream(x: Any) -> Any:
    return minarrow.ChunkedTable.from_arrow(x)
