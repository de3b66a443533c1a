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


def explained(data: Any, error: BaseException) -> BaseException:
    """The error of a conversion, with the column of pandas that has too large an integer."""
    if not isinstance(error, OverflowError):
        return error
    frame = data.to_frame(name=data.name) if _is_pandas_series(data) else data
    if not is_pandas_frame(frame):
        return error
    columns = [(name, frame.iloc[:, at]) for at, name in enumerate(frame.columns)]
    index = frame.index
    levels = [(name, index.get_level_values(at)) for at, name in enumerate(index.names)]
    for name, column in columns + levels:
        try:
            column.to_frame(name="x").reset_index(drop=True).__arrow_c_stream__()
        except OverflowError:
            told = "a column without a name" if name is None else f'column "{name}"'
            return OverflowError(
                f"{told} has integers that 64 bits do not hold: make floats of them, as "
                'by astype("float64"), or leave it out'
            )
        except (ArithmeticError, NotImplementedError, TypeError, ValueError):
            continue
    return error


def _is_pandas_series(data: Any) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(data, pandas.Series)


def is_pandas_frame(data: Any) -> bool:
    """Of a class of pandas's, or of a user's own below it."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(data, pandas.DataFrame)
