"""pandas, whose Arrow methods go through pyarrow."""

from collections.abc import Sequence
from typing import Any

import pandas

from dlpack_conformance.kit.arrow_field import Field
from dlpack_conformance.kit.arrow_producer import ArrowProducer
from dlpack_conformance.rule import NotApplicable


def arrow_stream(field: Field, chunks: Sequence[Sequence[Any]], once: bool = False) -> Any:
    if once:
        raise NotApplicable("no readers")
    values = [value for chunk in chunks for value in chunk]
    return arrow_take(ArrowProducer(field, values))


def arrow_to_list(array: Any) -> Any:
    if isinstance(array, pandas.DataFrame):
        return [
            dict(zip(array, map(plain, row), strict=True)) for row in array.itertuples(index=False)
        ]
    return [plain(value) for value in array.tolist()]


def plain(value: Any) -> Any:
    """None for what stands for nulls."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, list):
        return [plain(item) for item in value]
    return None if pandas.api.types.is_scalar(value) and pandas.isna(value) else value


def arrow_take(x: Any) -> Any:
    try:
        return pandas.DataFrame.from_arrow(x)
    except (TypeError, ValueError):
        return pandas.Series.from_arrow(x)


def arrow_take_stream(x: Any) -> Any:
    return pandas.DataFrame.from_arrow(x)
