"""The items of an argument, whatever length it claims."""

from collections.abc import Iterable
from itertools import islice
from typing import TypeVar

T = TypeVar("T")

#: The most items of what makes them when asked, and may never end: as many as a schema has fields.
MOST = 1 << 20


def items_of(argument: str, several: Iterable[T]) -> list[T]:
    """A list of them; `list(several)` reserves as much as its length says before it reads one."""
    if type(several) in (list, tuple, dict):
        return list(several)
    found = list(islice(several, MOST + 1))
    if len(found) > MOST:
        raise ValueError(f"{argument} has more than {MOST} items, of a {type(several).__name__}")
    return found
