"""What a plan has to say, and how it is held to it."""

from collections.abc import Callable
from typing import Any, NamedTuple

import polars as pl
import pyarrow as pa
import pytest
from arrow_dlpack import Array

BITS = "Arrow stores booleans as bits"
MASK = "the mask is made of validity bits"
ASKED = "a copy was asked for"


class Case(NamedTuple):
    make: Callable[[], Any]
    options: dict[str, Any]
    """Of the conversion."""
    reasons: list[list[str]]
    """Patterns of what each step must say; none if nothing is copied."""


def case(make, *reasons, **options):
    return Case(
        make, options, [[reason] if isinstance(reason, str) else reason for reason in reasons]
    )


def all_buffers(obj):
    """[start, end) of each of pyarrow's buffers."""
    if isinstance(obj, pl.Series):
        obj = obj.to_arrow()
    if isinstance(obj, Array):
        obj = pa.record_batch(obj)
    if isinstance(obj, (pa.Table, pa.RecordBatch)):
        return [span for column in obj.columns for span in all_buffers(column)]
    if isinstance(obj, pa.ChunkedArray):
        return [span for chunk in obj.chunks for span in all_buffers(chunk)]
    return [(b.address, b.address + b.size) for b in obj.buffers() if b is not None]


def assert_says(plan, reasons):
    """These steps and no others, in these words."""
    assert len(plan.steps) == len(reasons), plan
    for step, patterns in zip(plan.steps, reasons, strict=True):
        assert len(step.reasons) == len(patterns), plan
        for reason, pattern in zip(step.reasons, patterns, strict=True):
            assert reason == pattern or (".*" in pattern and reason.startswith(pattern[:-2]))
    assert plan.zero_copy == (not reasons)
    assert plan.bytes_copied == sum(step.nbytes for step in plan.steps)


def assert_forbidden(plan, convert):
    with pytest.raises(BufferError, match="copying was forbidden") as caught:
        convert()
    # With the plan's words, and so that consumers do not retry without copy=False.
    assert not isinstance(caught.value, TypeError)
    assert any(reason in str(caught.value) for step in plan.steps for reason in step.reasons)
    assert plan.steps[0].reasons[0] in str(caught.value)
