"""DataFusion, which takes tables and streams, and gives streams."""

from collections.abc import Sequence
from typing import Any

import datafusion
from dlpack_conformance.kit.arrow_column import AsColumn
from dlpack_conformance.kit.arrow_field import Field
from dlpack_conformance.kit.arrow_stream import ArrowStream


def arrow_stream(field: Field, chunks: Sequence[Sequence[Any]], once: bool = False) -> Any:
    return arrow_take_stream(ArrowStream(field, chunks))


def arrow_to_list(frame: Any) -> Any:
    rows = frame.to_pylist()
    if frame.schema().names == [""]:
        return [row[""] for row in rows]
    return rows


def arrow_take(x: Any) -> Any:
    return datafusion.SessionContext().from_arrow(AsColumn(x))


def arrow_take_stream(x: Any) -> Any:
    return datafusion.SessionContext().from_arrow(x)
