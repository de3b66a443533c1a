"""The library under test, and the verbs that a rule may ask of it.

A verb is a plain function of a hooks module: `hooks/numpy.py`, or the file of `--hooks`. It stands
alone (it uses the module's imports and other functions, no state), since `--rule ID` prints it.
What a library has not got, its hooks leave out: then the rule is not applicable. A verb that
cannot do one thing (`make` without strides) raises NotApplicable for it. Any object with verbs as
attributes can stand for the module: the tests of the kit make libraries with a planted fault so.

dtypes are named as in the array API and ml_dtypes (abi/dlpack.py has the table). Elements are
Python's bool, int, float and complex; those of float8, float6 and float4 their codes, ints.

DLPack, both ways:
    to_list(array)            the elements as nested lists, a bare element for 0-D
    dtype_of(array)           its dtype's name
    shape_of(array)           its shape, a tuple of ints
    address(array)            of the first element
    write(array, value)       sets the first element, or raises what the library raises for a
                              read-only one; left out where no array is ever written

DLPack, producers:
    make(values, dtype="float32", shape=None, *, strides=None, offset=0, readonly=False)
                              an array on the CPU. `values` are the elements in the order of memory;
                              strides and offset count elements; by default one row-major axis
    dtypes()                  the names of those that `make` takes
    odd(what)                 an array that DLPack cannot say: "byte order" (not the machine's),
                              "text", "datetime", "object", "layout" (strides that are no
                              multiple of the item), "sparse", "meta"; "unshared": one that it
                              can say in a copy only
    device_array()            an array on a device that is not the CPU
    late_array(streams, values)
                              an array of float32 on the kit's simulated device (kit/streams.py),
                              whose elements are 0 until work on another stream is done: the
                              kit's own library has it, for the rules on streams
    static_array()            an array of two elements whose tensors have a NULL deleter, likewise
    methods                   `array.__dlpack__(...)` and `array.__dlpack_device__()` are called as
                              they are, no verb

DLPack, consumers:
    take(x, **keywords)       the library's from_dlpack: `device` and `copy`, if given, as they are
    views(array)              arrays that share its memory; left out where there are none
    cpu()                     what `device` is for memory that the interpreter reads
    use_stream(kind, default) makes a stream of such a device (kDLCUDA, kDLROCM) the current one,
                              the default or another, and returns the number by which the array
                              API names it; left out where there is no such device

The C exchange API is looked up on `type(make([1.0]))`.

Arrow. A type is a kit.arrow_field.Field: a tree of format strings.
    arrow_array(field, values)            an object with `__arrow_c_array__`; values as Python's own
                                          None, bool, int, float, str, bytes, list, dict
    arrow_stream(field, chunks, once=False)
                                          an object with `__arrow_c_stream__`: each chunk is a list
                                          of values; with `once` one whose rows are read only once
    arrow_device_array(field, values)     an object with `__arrow_c_device_array__`
    arrow_slice(array, start, length)     a part of it, by offset where the library can
    arrow_to_list(array)                  the values, whatever of these it is or was taken from
    arrow_take(x)                         takes an object with `__arrow_c_array__`
    arrow_take_stream(x)                  takes an object with `__arrow_c_stream__`, and reads it
    arrow_take_schema(x)                  takes an object with `__arrow_c_schema__`
    arrow_take_device(x)                  takes one with `__arrow_c_device_array__` only
    arrow_iterate(x)                      an iterator of a stream's chunks, each read when asked for
    arrow_failing_stream(field, chunks, message)
                                          one whose source fails after these chunks, with an error
                                          that says the message
    arrow_device_stream(field, chunks), arrow_failing_device_stream(field, chunks, message)
                                          objects with `__arrow_c_device_stream__`
    arrow_take_device_stream(x)           takes one with `__arrow_c_device_stream__` only
    arrow_fatal                           formats with which the library ends the process at any
                                          use: only the rules that are about them use them
    arrow_requests()                      (field, other field, values): types of the same values, of
                                          which `requested_schema` may ask for the second

Not a verb:
    not_asked                             ids of rules on what the hooks do in the library's place

Bridges, which have both protocols on one object:
    bridge_tensor(x)                      one with `__dlpack__` for one with `__arrow_c_array__`
    bridge_array(x)                       one with `__arrow_c_array__` for one with `__dlpack__`

On the kit's simulated device (kit/accelerator.py), which no library but the kit's own has:
    arrow_far_array(device, values)       an object with `__arrow_c_device_array__`
    arrow_take_far(device, x)             takes one
    bridge_far_tensor(device, x), bridge_far_array(device, x)
                                          the bridges, there
"""

import contextlib
import importlib
import importlib.metadata
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from dlpack_conformance.rule import NotApplicable, Rule


class NoVerb(NotApplicable, AttributeError):
    """So that `hasattr` says whether the hooks have a verb."""


class Library:
    """Verbs by attribute: `lib.make` is the hook of that name."""

    def __init__(self, name: str, hooks: Any) -> None:
        self.name, self.hooks = name, hooks

    def __getattr__(self, verb: str) -> Any:
        try:
            return getattr(self.hooks, verb)
        except AttributeError:
            raise NoVerb(f"the hooks of {self.name} have no {verb}") from None

    def concerned_by(self, rule: Rule) -> bool:
        """Whether the library speaks the rule's protocol at all."""
        verbs = dir(self.hooks)
        dlpack = "take" in verbs or "make" in verbs
        arrow = any(verb.startswith("arrow_") for verb in verbs)
        return {"DL": dlpack, "AR": arrow, "BR": dlpack and arrow}[rule.id[:2]]

    @property
    def version(self) -> str:
        """As the module says it, or its distribution."""
        package = self.name.partition(".")[0]
        said = getattr(sys.modules.get(package), "__version__", None)
        if said:
            return str(said)
        # A distribution may have another name, as arro3-core.
        for name in (package, *importlib.metadata.packages_distributions().get(package, ())):
            with contextlib.suppress(importlib.metadata.PackageNotFoundError):
                return importlib.metadata.version(name)
        return "of no version"


def load(name: str, hooks: str | None = None) -> Library:
    """The library of that module name, with hooks of ours or of a file."""
    importlib.import_module(name)
    if hooks is not None:
        return Library(name, load_file(hooks))
    # The kit's own: dlpack_conformance.kit.reference has its hooks in kit_reference.
    ours = name.removeprefix("dlpack_conformance.").replace(".", "_")
    try:
        return Library(name, importlib.import_module(f"dlpack_conformance.hooks.{ours}"))
    except ModuleNotFoundError as missing:
        if missing.name != f"dlpack_conformance.hooks.{ours}":
            raise
        known = importlib.import_module("dlpack_conformance.hooks").__path__
        names = sorted(path.stem for path in Path(known[0]).glob("[a-z]*.py"))
        raise ImportError(
            f"there are no hooks for {name}: write a file of them and name it by --hooks (they are "
            f"described in dlpack_conformance/library.py; those of {', '.join(names)} are examples)"
        ) from None


def load_file(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location("dlpack_conformance_hooks", path)
    if spec is None or spec.loader is None or not Path(path).is_file():
        raise ImportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
