"""Libraries with one planted fault each: what the rules must find out, and nothing else.

There is one module of them for each module of rules, with the same name. A mutant is a function
below one of the decorators here, which names its rule and beside it the rules that the same fault
breaks, each with the reason: `@exports("DL101", DL102="no minor")`. It changes the kit's reference
library, in a process that ends with the test. In `correct` there are changes that break no rule.
"""

import copy
import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass

from dlpack_conformance.abi.dlpack import MAJOR
from dlpack_conformance.kit import reference

MUTANTS = []


@dataclass(frozen=True)
class Mutant:
    rule: str | None  # None keeps all of them
    beside: dict[str, str]  # other rules that fail, and why
    change: Callable
    how: Callable

    def plant(self):
        self.how(self.change)

    @property
    def module(self):
        return self.change.__module__.removeprefix("mutants.")

    def __str__(self):
        return f"{self.rule or 'correct'}-{self.change.__name__}"


def decorator(how):
    """Registers the function below it, which `how(function)` plants."""

    def with_rule(rule, **beside):
        def register(change):
            MUTANTS.append(Mutant(rule, beside, change, how))
            return change

        return register

    return with_rule


@decorator
def mutant(change):
    """The function plants the fault, in `kit.reference` or `hooks.kit_reference`."""
    change()


@decorator
def exports(change):
    """The function changes each reference.Export: its `managed` tensor, of its `array`."""
    fill = reference.Export.__init__

    def planted(self, array, versioned, flags):
        fill(self, array, versioned, flags)
        change(self)

    reference.Export.__init__ = planted


@decorator
def flags(change):
    """The function gives the flags to export, from those that are right and the array."""
    export = reference.export
    reference.export = lambda array, versioned, flags: export(
        array, versioned, change(flags, array)
    )


@decorator
def reads(change):
    """The function changes what the consumer is going to judge and read: a consumer.Imported, whose
    `managed` and `tensor` are copies. It gets none of another major version."""
    read = reference.read

    def planted(imported, owner):
        if imported.versioned and imported.managed.version.major != MAJOR:
            return read(imported, owner)
        seen = copy.copy(imported)
        seen.managed = type(imported.managed).from_buffer_copy(imported.managed)
        seen.tensor = seen.managed.dl_tensor
        change(seen)
        return read(seen, owner)

    reference.read = planted


@decorator
def takes(change):
    """The function changes the reference.Array that the consumer has made."""
    read = reference.read

    def planted(imported, owner):
        array = read(imported, owner)
        change(array)
        return array

    reference.read = planted


def all_mutants():
    """Those of all modules."""
    for module in pkgutil.iter_modules(__path__, "mutants."):
        importlib.import_module(module.name)
    return MUTANTS
