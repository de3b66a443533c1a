"""Frames of pandas of which some columns are read, and others need not be convertible."""

import sys
from collections.abc import Sequence
from typing import Any


def narrowed(frame: Any, names: Sequence[str]) -> Any:
    """A copy of a frame of pandas without columns of other names that pyarrow does not convert.

    None of other data, and of frames that lack some of the names.
    """
    if not is_pandas_frame(frame):
        return None
    # pyarrow's names of columns and levels are these.
    columns = [str(name) for name in frame.columns]
    levels = {str(name) for name in frame.index.names if name is not None}
    if not set(names) <= {*columns, *levels}:
        return None
    some = frame if levels & set(names) else frame.reset_index(drop=True)

    def is_kept(at: int, name: str) -> bool:
        return name in names or (columns.count(name) == 1 and converts(some.iloc[:, [at]]))

    return some.loc[:, [is_kept(at, name) for at, name in enumerate(columns)]]


def converts(frame: Any) -> bool:
    """Whether pyarrow converts all columns of the frame."""
    try:
        frame.__arrow_c_stream__()
    except (ArithmeticError, NotImplementedError, TypeError, ValueError):
        return False
    return True


def is_pandas_frame(data: Any) -> bool:
    """Of a class of pandas's, or of a user's own below it."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(data, pandas.DataFrame)
