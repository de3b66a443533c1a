"""Functions that a caller passes, and the arguments that they are called with."""

import inspect
from collections.abc import Callable
from typing import Any


def refusing(function: Callable[..., Any], arguments: int) -> str | None:
    """The function's name and parameters, if it refuses this number of arguments."""
    try:
        # Of a decorated function the decorator's own parameters count.
        signature = inspect.signature(function, follow_wrapped=False)
    except (TypeError, ValueError):  # of some functions that are written in C
        return None
    try:
        signature.bind(*range(arguments))
    except TypeError:
        return f"{getattr(function, '__qualname__', type(function).__name__)}{signature}"
    return None
