"""The items of an argument, whatever length it claims, and how deep they are nested."""

import sys
from collections.abc import Iterable
from itertools import islice
from typing import Any, TypeVar

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


#: As many levels as a type of ours may have.
_LEVELS = 64


def refuse_deep(values: Any) -> None:
    """Fails for lists and dicts of Python's that are nested too deep, as those that hold themselves
    are: pyarrow follows them until the process ends.
    """
    kinds = (list, tuple, dict, set, frozenset, getattr(sys.modules.get("numpy"), "ndarray", ()))

    def nested(items: Iterable[Any]) -> dict[int, Any]:
        """Those that have items, each once: a list may hold another one many times."""
        return {id(item): item for item in items if isinstance(item, kinds)}

    level = nested([values])
    for _ in range(_LEVELS + 1):
        level = nested(item for one in level.values() for item in _within(one))
        if not level:
            return
    raise ValueError(f"lists are nested more than {_LEVELS} levels deep, or hold themselves")


def _within(several: Any) -> Iterable[Any]:
    if isinstance(several, dict):
        return several.values()
    if isinstance(several, (list, tuple, set, frozenset)):
        return several
    return several.flat if several.dtype == object else ()
