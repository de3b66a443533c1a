"""Readers of pyarrow, whose batches may be other than the schema that they tell."""

from collections.abc import Iterable, Iterator
from importlib import import_module
from traceback import format_exception
from typing import Any

from . import _core
from ._arrow_types import comparison_with, is_one_storage


def whole(reader: Any) -> Any:
    """A table of all batches of a reader, of which an error is that of a stream."""
    batches = list(stream_of_reader(reader))
    return import_module("pyarrow").Table.from_batches(batches, reader.schema)


def stream_of_reader(reader: Any) -> Iterator[Any]:
    """The batches of a reader, of which an error is that of a stream in C.

    Such a stream itself would make an error of Ctrl-C, and of a batch that is other than the schema
    values that are none.
    """
    return _streamed(batches_of(reader))


def batches_of(reader: Any) -> Iterator[Any]:
    """The batches of a reader, which have its schema, and whose rows count as taken."""
    return recorded(_core._Reading(reader), _as_told(reader))


def recorded(reading: _core._Reading, batches: Iterable[Any]) -> Iterator[Any]:
    """The batches of a source, whose rows count as taken when they are read."""
    try:
        for batch in batches:
            reading.took(batch.num_rows)
            yield batch
    finally:
        del batches  # an error that is kept does not keep them
    reading.end()


def _as_told(reader: Any) -> Iterator[Any]:
    """The batches of a reader, which pyarrow does not compare with the schema that it tells."""
    schema = reader.schema
    has_one = comparison_with(schema)
    try:
        for number, batch in enumerate(reader):
            if has_one(batch.schema):
                yield batch
            elif is_one_storage(batch.schema, schema):
                yield _with_schema(batch, schema)
            else:
                raise ValueError(
                    f"batch {number} of the reader has {_told(batch.schema)}, and its schema has "
                    f"{_told(schema)}: {_way_out(batch.schema, schema)}"
                )
    finally:
        del reader  # an error that is kept does not keep it


def _with_schema(batch: Any, schema: Any) -> Any:
    """The same values as a schema of one storage, as a stream has them."""
    of = import_module("pyarrow").RecordBatchReader
    return of.from_stream(of.from_batches(schema, [batch])).read_next_batch()


def _way_out(schema: Any, told: Any) -> str:
    if schema.names != told.names:
        return "give each batch the columns of the schema, in its order"
    return "batch.cast(schema) makes one of it where its values fit, or give the reader its schema"


def _told(schema: Any) -> str:
    """Its first columns."""
    some = ", ".join(f"{own.name}: {own.type}" for own in list(schema)[:8])
    return f"({some}{', ...' * (len(schema) > 8)})"


def _streamed(batches: Iterable[Any]) -> Iterator[Any]:
    try:
        yield from batches
        return
    except Exception as error:
        # As pyarrow has it in a stream.
        told = f"{error}. Detail: Python exception: {''.join(format_exception(error))}"
    finally:
        del batches  # an error that is kept does not keep them
    raise _core._stream_error(told)
