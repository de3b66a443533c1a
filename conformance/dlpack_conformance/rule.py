"""A rule, and what a check of it can end with."""

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

LEVELS = ("must", "derived", "should", "may", "silent")
# Ids of rules that are gone: none of them is given again.
RETIRED: frozenset[str] = frozenset()


class Broken(Exception):
    """The library breaks the rule."""

    def __init__(self, expected: object, seen: object) -> None:
        super().__init__(f"expected {expected}, seen {seen}")
        self.expected, self.seen = str(expected), str(seen)


class NotApplicable(Exception):
    """The library has not got what the rule is about."""


def lacking(*_: object, **__: object) -> NoReturn:
    """Stands in a script for what the library's hooks leave out."""
    raise NotApplicable("the library's hooks have no such function")


class Report(str):
    """What the library does where the texts say nothing, beside what the rule judges."""

    __slots__ = ()


@dataclass(frozen=True)
class Rule:
    """One sentence of the texts, and the function that checks it.

    `who` keeps it: p producer, c consumer, x who offers the exchange table, y who uses one.
    `since` and `until` are versions of the document of `source` (DLPack's for DLxxx): the first
    that has the rule and the last.
    """

    id: str
    level: str
    source: str
    who: str
    check: Callable[..., Any]
    since: str | None
    until: str | None
    fresh: bool  # whether it needs a process that is no fork

    @property
    def slug(self) -> str:
        return self.check.__name__.strip("_").replace("_", "-")

    @property
    def sentence(self) -> str:
        return " ".join((self.check.__doc__ or "").split("\n\n")[0].split())

    @property
    def judged(self) -> bool:
        """Whether a library can fail it."""
        return self.level in ("must", "derived", "should")


RULES: dict[str, Rule] = {}


def rule(
    id: str,
    level: str,
    source: str,
    who: str,
    *,
    since: str | None = None,
    until: str | None = None,
    fresh: bool = False,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers the check below it, and leaves the function as it is."""

    def register(check: Callable[..., Any]) -> Callable[..., Any]:
        if id in RULES or id in RETIRED or level not in LEVELS:
            raise ValueError(f"{id}, {level}: an id is given once, a level is one of {LEVELS}")
        RULES[id] = Rule(id, level, source, who, check, since, until, fresh)
        return check

    return register


def all_rules() -> list[Rule]:
    """Every rule by its id."""
    package = importlib.import_module("dlpack_conformance.rules")
    for module in pkgutil.iter_modules(package.__path__, "dlpack_conformance.rules."):
        importlib.import_module(module.name)
    return sorted(RULES.values(), key=lambda rule: rule.id)
