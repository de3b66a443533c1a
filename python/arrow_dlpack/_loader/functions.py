"""Functions of (index, count) as sources: each call opens one part of them."""

from collections.abc import Callable
from typing import Any

from .calls import refusing
from .datasets import has_no_columns


def is_function(data: Any) -> bool:
    """Whether a Loader calls it; classes may be called too, and connections of sqlite3."""
    is_other = isinstance(data, type) or hasattr(data, "cursor")
    return callable(data) and not is_other and not hasattr(type(data), "__arrow_c_stream__")


def check_function(source: Callable[..., Any]) -> None:
    """An error for a function that cannot be called with two arguments."""
    refused = refusing(source, 2)
    if refused is not None:
        raise TypeError(
            "a Loader calls a function with (index, count), to open part index of count, and "
            f"{refused} takes other arguments: take these two, or pass what it returns"
        )


def open_part(source: Callable[[int, int], Any], index: int, count: int) -> Any:
    """What the function returns, and None for a part that has no rows."""
    try:
        part = source(index, count)
    except Exception as error:
        error.add_note(f"in the function for part {index} of {count}; None is one without rows")
        raise
    if part is None and count == 1:
        raise ValueError(
            "the function returned None, a part without rows, for the only part: is there a return "
            "missing?"
        )
    # Of an empty first part the Loader says that the source is empty; a later one has no rows.
    return None if index > 0 and has_no_columns(part) else part
