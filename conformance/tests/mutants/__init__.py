"""Libraries with one planted fault each: what the rules must find out, and nothing else.

There is one module of them for each module of rules, with the same name. A mutant is a function
below one of the decorators here, which names its rule and beside it the rules that the same fault
breaks, each with the reason: `@exports("DL101", DL102="no minor")`. It changes the kit's reference
library, in a process that ends with the test. In `correct` there are changes that break no rule.
"""

import copy
import importlib
import importlib.util
import os
import pkgutil
import signal
from collections.abc import Callable
from dataclasses import dataclass, replace

from dlpack_conformance.abi.dlpack import MAJOR
from dlpack_conformance.hooks import kit_reference as hooks
from dlpack_conformance.kit import (
    arrow_buffers,
    arrow_consumer,
    arrow_producer,
    reference,
    reference_arrow,
)

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


def crash():
    os.kill(os.getpid(), signal.SIGSEGV)


def alike(rules, why):
    """Rules beside a mutant's, which fail for one reason: `@exports("DL101", **alike(...))`."""
    return dict.fromkeys(rules.split(), why)


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


# Arrow


def parts_with_fields(part, field):
    """The part and those in it, of all levels, each with its type."""
    yield part, field
    for its, of in zip(part.children, field.children, strict=True):
        yield from parts_with_fields(its, of)
    if field.dictionary is not None:
        yield from parts_with_fields(part.dictionary, field.dictionary)


def on_parts(maker):
    """Plants a change of what the library's `array_part` or `schema_part` makes."""

    def plant(change):
        make = getattr(reference_arrow, maker)

        def planted(field, *rest):
            part = make(field, *rest)
            for its, of in list(parts_with_fields(part, field)):
                change(its, of)
            return part

        setattr(reference_arrow, maker, planted)

    return plant


# The function changes each producer.Part to export, of all levels, which is of a Field.
schemas = decorator(on_parts("schema_part"))
arrays = decorator(on_parts("array_part"))


def in_a_copy_of(module):
    """Plants a change of a module of the kit that the library alone gets: rules use it as it is."""

    def plant(change):
        spec = importlib.util.find_spec(module.__name__)
        theirs = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(theirs)
        change(theirs)
        for name, value in list(vars(reference_arrow).items()):
            if value is getattr(module, name, None):
                setattr(reference_arrow, name, getattr(theirs, name))

    return plant


# The function changes how the library makes structures, reads them, and what it checks before.
arrow_makes = decorator(in_a_copy_of(arrow_producer))
arrow_reads = decorator(in_a_copy_of(arrow_consumer))
arrow_checks = decorator(in_a_copy_of(arrow_buffers))


@decorator
def types(change):
    """The function gives the Field that the consumer has of each that it took, of all levels."""
    take_schema = reference_arrow.take_schema

    def changed(field):
        dictionary = field.dictionary and changed(field.dictionary)
        children = tuple(map(changed, field.children))
        return change(replace(field, children=children, dictionary=dictionary))

    def planted(capsule):
        return changed(take_schema(capsule))

    reference_arrow.take_schema = hooks.take_schema = planted


@decorator
def columns(change):
    """The function changes the reference_arrow.Taken that the consumer has made, of a private
    copy of the base structure."""
    fill = reference_arrow.Taken.__init__

    def planted(self, field, array):
        fill(self, field, array)
        change(self)

    reference_arrow.Taken.__init__ = planted


@decorator
def drops(change):
    """The function is called with the reference_arrow.Taken before it releases what it took."""
    drop = reference_arrow.Taken.__del__

    def planted(self):
        change(self)
        drop(self)

    reference_arrow.Taken.__del__ = planted


def all_mutants():
    """Those of all modules."""
    for module in pkgutil.iter_modules(__path__, "mutants."):
        importlib.import_module(module.name)
    return MUTANTS
