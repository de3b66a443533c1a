"""DuckDB, which takes tables and streams, and gives streams."""

from collections.abc import Sequence
from typing import Any

import duckdb

from dlpack_conformance.kit.arrow_column import AsColumn
from dlpack_conformance.kit.arrow_field import Field
from dlpack_conformance.kit.arrow_stream import ArrowStream


def arrow_stream(field: Field, chunks: Sequence[Sequence[Any]], once: bool = False) -> Any:
    return arrow_take_stream(ArrowStream(field, chunks))


def arrow_to_list(relation: Any) -> Any:
    rows = relation.fetchall()
    if relation.columns == ["v0"]:  # its word for a column without a name
        return [list(value) if isinstance(value, tuple) else value for (value,) in rows]
    return [dict(zip(relation.columns, row, strict=True)) for row in rows]


def arrow_take(x: Any) -> Any:
    return duckdb.connect().from_arrow(AsColumn(x))


def arrow_take_stream(x: Any) -> Any:
    return duckdb.connect().from_arrow(x)
