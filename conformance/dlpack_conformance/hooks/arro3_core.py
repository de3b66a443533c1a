"""arro3."""

from collections.abc import Sequence
from typing import Any

import arro3.core
from arro3.core import (
    Array,
    ArrayReader,
    Buffer,
    ChunkedArray,
    DataType,
    RecordBatch,
    RecordBatchReader,
    Schema,
    Table,
)

from dlpack_conformance.kit.arrow_field import Field, Typed
from dlpack_conformance.kit.arrow_producer import ArrowProducer
from dlpack_conformance.rule import NotApplicable


def arrow_array(field: Field, values: Sequence[Any]) -> Any:
    try:
        return Array(values, DataType.from_arrow(Typed(field)))
    except Exception:
        # It builds none of this type of Python's values, and hands on what it takes.
        return Array.from_arrow(ArrowProducer(field, values))


def arrow_stream(field: Field, chunks: Sequence[Sequence[Any]], once: bool = False) -> Any:
    arrays = [arrow_array(field, chunk) for chunk in chunks]
    if field.format != "+s":
        if once:
            raise NotApplicable("readers are of record batches")
        return ChunkedArray(arrays, DataType.from_arrow(Typed(field)))
    schema = Schema.from_arrow(Typed(field))
    batches = [RecordBatch.from_struct_array(array).with_schema(schema) for array in arrays]
    if once:
        return RecordBatchReader.from_batches(schema, batches)
    return Table.from_batches(batches, schema=schema)


def arrow_slice(array: Any, start: int, length: int) -> Any:
    return array.slice(start, length)


def arrow_to_list(array: Any) -> Any:
    if isinstance(array, Table):
        array = ChunkedArray(array.to_struct_array())
    return [plain(value) for value in array.to_pylist()]


def plain(value: Any) -> Any:
    """bytes for its buffers."""
    return bytes(value) if isinstance(value, Buffer) else value


def arrow_take(x: Any) -> Any:
    return Array.from_arrow(x)


def arrow_take_stream(x: Any) -> Any:
    return ChunkedArray.from_arrow(ArrayReader.from_arrow(x))


def arrow_take_schema(x: Any) -> Any:
    return arro3.core.Field.from_arrow(x)
