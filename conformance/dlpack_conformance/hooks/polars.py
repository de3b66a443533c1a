"""Polars, whose series and frames are streams."""

from collections.abc import Sequence
from typing import Any

import polars

from dlpack_conformance.kit.arrow_field import Field
from dlpack_conformance.kit.arrow_producer import ArrowProducer


def arrow_series(field: Field, values: Sequence[Any]) -> Any:
    return polars.Series(field.name, values, polars.Series(ArrowProducer(field, [])).dtype)


def arrow_stream(field: Field, chunks: Sequence[Sequence[Any]], once: bool = False) -> Any:
    series = [arrow_series(field, chunk) for chunk in chunks or [[]]]
    rows = polars.concat(series, rechunk=False)
    # A frame has no row that is null.
    return rows if field.format != "+s" or rows.null_count() else rows.struct.unnest()


def arrow_slice(array: Any, start: int, length: int) -> Any:
    return array.slice(start, length)


def arrow_to_list(array: Any) -> Any:
    return array.to_dicts() if isinstance(array, polars.DataFrame) else array.to_list()


def arrow_take(x: Any) -> Any:
    return polars.Series(x)


def arrow_take_stream(x: Any) -> Any:
    return polars.DataFrame(x)


def arrow_take_schema(x: Any) -> Any:
    return polars.Schema(x)
