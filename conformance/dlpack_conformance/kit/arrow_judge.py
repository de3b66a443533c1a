"""What checks of Arrow rules say again and again."""

import gc
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dlpack_conformance.kit.arrow_cases import arrow_cases
from dlpack_conformance.kit.arrow_consumer import (
    ArrowExported,
    child,
    dictionary_of,
    read_field,
    schema_in,
)
from dlpack_conformance.kit.arrow_field import Field, Typed, struct_of
from dlpack_conformance.kit.arrow_producer import ArrowProducer, Made, Part
from dlpack_conformance.kit.judge import text
from dlpack_conformance.rule import Broken, NotApplicable, Report


def arrow_export(lib: Any, field: Field, values: list[Any]) -> ArrowExported:
    """The library's array of these values, as it exports it. A library that makes streams only is
    asked for one with one column."""
    try:
        array = lib.arrow_array(field, values)
    except NotApplicable:
        array = None
    if array is not None:
        return ArrowExported(array)
    if field.format == "+s":
        return first_chunk(lib.arrow_stream(field, [values]))
    its = field
    column = Field(its.format, "c", its.children, its.dictionary, its.flags, its.metadata)
    rows = [{"c": value} for value in values]
    exported = first_chunk(lib.arrow_stream(struct_of(column), [rows]))
    exported.base = exported.schema, exported.array
    exported.schema, exported.array = child(exported.schema, 0), child(exported.array, 0)
    return exported


def fatal_formats(lib: Any) -> Sequence[str]:
    """Those with which the library is known to end the process: the rule that is about them shows
    it, and the rules on all types go on without them."""
    return tuple(lib.arrow_fatal) if hasattr(lib, "arrow_fatal") else ()


def cases_of(lib: Any) -> list[tuple[Field, list[Any]]]:
    """The cases that rules on all types go through."""
    fatal = fatal_formats(lib)
    return [case for case in arrow_cases() if case[0].format not in fatal]


def first_chunk(x: Any) -> ArrowExported:
    exported = ArrowExported(x)
    if not exported.array.release:
        raise LookupError("the stream has no chunks")  # as those of no rows may
    return exported


def arrow_exports(
    lib: Any, cases: list[tuple[Field, list[Any]]] | None = None
) -> Iterator[tuple[Field, list[Any], ArrowExported]]:
    """What the library exports of each type that it makes."""
    made = 0
    for field, values in cases_of(lib) if cases is None else cases:
        try:
            exported = arrow_export(lib, field, values)
        except (NotApplicable, KeyboardInterrupt):
            raise
        except BaseException:  # a panic of Rust is no Exception
            continue  # it has no such type
        made += 1
        yield field, values, exported
    if not made:
        raise NotApplicable("makes none of the types")


def tree(structure: Any) -> Iterator[Any]:
    """The structure, its children and dictionary, of all levels."""
    yield structure
    for i in range(structure.n_children):
        yield from tree(child(structure, i))
    if structure.dictionary:
        yield from tree(dictionary_of(structure))


def arrays_in(field: Field, array: Any) -> Iterator[tuple[Field, Any]]:
    """Each array of the tree with its type."""
    yield field, array
    for i, its in enumerate(field.children):
        yield from arrays_in(its, child(array, i))
    if field.dictionary is not None:
        yield from arrays_in(field.dictionary, dictionary_of(array))


def exported_arrays(
    lib: Any, cases: list[tuple[Field, list[Any]]] | None = None
) -> Iterator[tuple[Field, Any]]:
    """Each array of all levels of what the library exports, with its type."""
    for _field, _values, exported in arrow_exports(lib, cases):
        yield from arrays_in(exported.field, exported.array)


def parts_of(part: Part) -> Iterator[Part]:
    """The part, its children and dictionary, of all levels."""
    yield part
    for each in part.children + ([part.dictionary] if part.dictionary else []):
        yield from parts_of(each)


def arrow_attempt(lib: Any, x: ArrowProducer) -> tuple[Any, str | None]:
    """(values, None), or (None, text of the exception) if the library refuses the array, at once
    or when it is read."""
    try:
        return lib.arrow_to_list(lib.arrow_take(x)), None
    except (NotApplicable, KeyboardInterrupt):
        raise
    except SystemError:
        # Of C code that returned neither a result nor an exception, or both: unless the exception
        # was lost by our release.
        if not x.interrupted:
            raise
        return None, x.interrupted[-1]
    except BaseException as error:  # a panic of Rust is no Exception
        return None, text(error)


def arrow_refused(lib: Any, x: Any) -> str:
    """The text of the exception, of any type, by which the library refuses the array."""
    values, refusal = arrow_attempt(lib, x)
    if refusal is None:
        raise Broken("an exception", f"values {values}")
    return refusal


def reported_of_consumer(lib: Any, check: Callable[[Any], None], *odd: ArrowProducer) -> Report:
    """For rules that bind producers, whom the check judges: no sentence says what a consumer makes
    of structures that break them. Its library has not been used when this is called."""
    said = [arrow_said(lib, x) for x in odd]
    report = f"a consumer of such: {'; '.join(dict.fromkeys(said))}"
    try:
        check(lib)
    except NotApplicable as reason:
        raise NotApplicable(f"{reason}; {report}") from None
    return Report(report)


def arrow_said(lib: Any, x: ArrowProducer) -> str:
    """What becomes of the array, in words, in a process that may crash or hang."""
    if not hasattr(os, "fork"):
        return "not run here"
    reader, writer = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            signal.alarm(5)
            values, refusal = arrow_attempt(lib, x)
            said = f"values {values}" if refusal is None else f"refused ({refusal})"
            os.write(writer, said[:200].encode(errors="replace"))
        except BaseException as error:
            os.write(writer, text(error).encode(errors="replace"))
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader, "rb") as pipe:
        said = pipe.read().decode(errors="replace")
    os.waitpid(process, 0)
    return said or "crashed"


def arrow_right_or_refused(lib: Any, x: ArrowProducer) -> str | None:
    """The text of the refusal; what is taken has the values that the library reads where nothing
    is odd."""
    expected, refusal = arrow_attempt(lib, ArrowProducer(x.field, x.values))
    if refusal is not None:
        return refusal
    values, refusal = arrow_attempt(lib, x)
    if refusal is None and values != expected:
        raise Broken(f"of format {x.field.format}: {expected}", values)
    return refusal


def arrow_accepted(lib: Any, x: ArrowProducer) -> None:
    """The values are right, unless the library refuses the type altogether."""
    refusal = arrow_right_or_refused(lib, x)
    if refusal is not None and arrow_attempt(lib, ArrowProducer(x.field, x.values))[1] is None:
        raise Broken(f"an array of format {x.field.format}", refusal)


def arrow_taken(lib: Any, x: ArrowProducer) -> None:
    """The library takes it, reads it, and lets it go."""
    refusal = arrow_attempt(lib, x)[1]
    gc.collect()
    if refusal is not None:
        raise NotApplicable(f"takes none of the kind: {refusal}")


def field_again(lib: Any, field: Field, values: list[Any]) -> Field:
    """The type as the library exports what it took."""
    try:
        taken = lib.arrow_take_schema(Typed(field))
    except NotApplicable:
        taken = lib.arrow_take(ArrowProducer(field, values))
    if hasattr(taken, "__arrow_c_schema__"):
        capsule = taken.__arrow_c_schema__()
        return read_field(schema_in(capsule))
    if hasattr(taken, "__arrow_c_array__") or hasattr(taken, "__arrow_c_stream__"):
        return ArrowExported(taken).field
    raise NotApplicable("exports nothing that it took")


def made_of(x: ArrowProducer) -> list[Made]:
    """Every structure that was exported, and its children and dictionaries."""
    return [each for made in x.schemas + x.arrays for each in [made, *made.all_parts()]]
