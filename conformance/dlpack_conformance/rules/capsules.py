"""AR4xx: capsules, and the methods that give them."""

import contextlib
import ctypes
import gc
from ctypes import addressof, c_void_p
from typing import Any

from dlpack_conformance.abi.arrow import (
    ARROW_ARRAY,
    ARROW_ARRAY_STREAM,
    ARROW_DEVICE_ARRAY,
    ARROW_DEVICE_ARRAY_STREAM,
    ARROW_SCHEMA,
    RELEASE,
    ArrowArray,
    ArrowArrayStream,
    ArrowDeviceArray,
    ArrowDeviceArrayStream,
    ArrowSchema,
)
from dlpack_conformance.abi.capsule import (
    PyCapsule_GetName,
    PyCapsule_GetPointer,
    PyCapsule_New,
    capsule_destructor,
    take_exception_away,
)
from dlpack_conformance.abi.dlpack import CPU
from dlpack_conformance.kit.arrow_consumer import move, read_field, release
from dlpack_conformance.kit.arrow_field import Field, schema_capsule, struct_of
from dlpack_conformance.kit.arrow_producer import ARROW_PRODUCERS, ArrowProducer
from dlpack_conformance.kit.arrow_reader import Reader, base, read_array
from dlpack_conformance.kit.arrow_stream import STREAMS, ArrowStream
from dlpack_conformance.kit.judge import either, equal, text
from dlpack_conformance.kit.memory import unreadable
from dlpack_conformance.kit.native import exception_left, in_shared_object
from dlpack_conformance.library import Library
from dlpack_conformance.rule import Broken, NotApplicable, Report, rule

INTEGERS, VALUES = Field("i"), [1, None, 3]
PAIRS = struct_of(Field("i", "a"), Field("u", "b"))
ROWS = [{"a": 1, "b": "one"}, {"a": None, "b": "two"}]

# What each method gives.
METHODS = {
    "__arrow_c_schema__": [ARROW_SCHEMA],
    "__arrow_c_array__": [ARROW_SCHEMA, ARROW_ARRAY],
    "__arrow_c_stream__": [ARROW_ARRAY_STREAM],
    "__arrow_c_device_array__": [ARROW_SCHEMA, ARROW_DEVICE_ARRAY],
    "__arrow_c_device_stream__": [ARROW_DEVICE_ARRAY_STREAM],
}
STRUCTURES: dict[bytes, Any] = {
    ARROW_SCHEMA: ArrowSchema,
    ARROW_ARRAY: ArrowArray,
    ARROW_ARRAY_STREAM: ArrowArrayStream,
    ARROW_DEVICE_ARRAY: ArrowDeviceArray,
    ARROW_DEVICE_ARRAY_STREAM: ArrowDeviceArrayStream,
}


def objects(lib: Any) -> list[Any]:
    """One of each kind that the library has."""
    found = []
    if hasattr(lib, "arrow_array"):
        found.append(lib.arrow_array(INTEGERS, VALUES))
    if hasattr(lib, "arrow_stream"):
        found.append(lib.arrow_stream(PAIRS, [ROWS]))
    if hasattr(lib, "arrow_device_array"):
        found.append(lib.arrow_device_array(INTEGERS, VALUES))
    if hasattr(lib, "arrow_device_stream"):
        found.append(lib.arrow_device_stream(PAIRS, [ROWS]))
    if not found:
        raise NotApplicable("exports nothing")
    return found


def exports(lib: Any, *methods: str) -> list[tuple[str, Any]]:
    """(name, result) of these methods of every object that has one, by default of all methods."""
    found = []
    for x in objects(lib):
        for method in methods or METHODS:
            if hasattr(x, method):
                found.append((method, getattr(x, method)()))
    if not found:
        raise NotApplicable(f"no object has {', '.join(methods)}")
    return found


def capsules_in(result: Any) -> list[Any]:
    return list(result) if isinstance(result, tuple) else [result]


def structure_in(capsule: Any) -> Any:
    """The structure in a capsule, which goes on to own it."""
    name = PyCapsule_GetName(capsule)
    structure = STRUCTURES[name].from_address(PyCapsule_GetPointer(capsule, name))
    structure.capsule = capsule  # which lives as long
    return structure


def gives(lib: Any, method: str) -> list[list[Any]]:
    """The capsules of each result of the method: as many as are to be, with the right names."""
    found, results = [], exports(lib, method)
    for _, result in results:
        equal(
            f"capsules of {method}",
            METHODS[method],
            [PyCapsule_GetName(c) for c in capsules_in(result)],
        )
        if isinstance(result, tuple) != (len(METHODS[method]) > 1):
            raise Broken("a capsule, or a tuple of two", type(result).__name__)
        found.append(capsules_in(result))
    return found


def read_result(result: Any) -> list[Any]:
    """The values of what a method with data gave."""
    if isinstance(result, tuple):
        schema, array = (structure_in(capsule) for capsule in result)
        return read_array(schema, array)
    reader = Reader(result)
    schema = reader.schema()
    values = [value for chunk in reader.chunks() for value in read_array(schema, chunk)]
    reader.release()
    return values


@rule("AR401", "must", "PyCapsule interface, PyCapsule Standard", "p")
def names(lib: Library) -> None:
    """A capsule's name says what is in it."""
    found = exports(lib)  # by a name, so that no capsule dies with what is raised in flight
    for method, result in found:
        for capsule in capsules_in(result):
            name = PyCapsule_GetName(capsule)
            if name not in METHODS[method]:
                raise Broken(f"of {method} {METHODS[method]}", name)


class Given:
    """An object whose `__arrow_c_array__` gives these capsules each time, whatever they are."""

    def __init__(self, schema: Any, array: Any) -> None:
        self.capsules = schema, array

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return self.capsules


class GivenStream:
    """An object whose `__arrow_c_stream__` gives this capsule each time."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.capsule


class GivenSchema:
    """An object whose `__arrow_c_schema__` gives this capsule each time."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __arrow_c_schema__(self) -> Any:
        return self.capsule


def read_by(lib: Any, take: Any, x: Any) -> str | None:
    """The text of the exception if the library does not take it, or cannot read what it took."""
    try:
        lib.arrow_to_list(take(x))
    except (NotApplicable, SystemError, KeyboardInterrupt):
        raise
    except BaseException as error:
        return text(error)  # a panic of Rust's is no Exception
    return None


def refuses(lib: Any, take: Any, x: Any, what: str) -> None:
    if read_by(lib, take, x) is None:
        raise Broken(f"an exception for {what}", "no exception")


def poisoned_capsule() -> Any:
    """Of a name that is none of Arrow's; who looks into it ends the process."""
    return PyCapsule_New(unreadable(), b"arrow_something", None)


def checks_array_name(lib: Any) -> None:
    x = ArrowProducer(INTEGERS, VALUES)
    for schema, array in (
        (x.export_schema(), poisoned_capsule()),
        (poisoned_capsule(), x.export_array()),
    ):
        refuses(lib, lib.arrow_take, Given(schema, array), "a capsule of another name")


def checks_stream_name(lib: Any) -> None:
    x = GivenStream(poisoned_capsule())
    refuses(lib, lib.arrow_take_stream, x, "a capsule of another name")


def checks_schema_name(lib: Any) -> None:
    try:
        lib.arrow_take_schema(GivenSchema(poisoned_capsule()))
    except (NotApplicable, SystemError):
        raise
    except Exception:
        return
    raise Broken("an exception for a capsule of another name", "no exception")


@rule("AR402", "derived", "PyCapsule interface, PyCapsule Standard (to make sure)", "c")
def names_checked(lib: Library) -> None:
    """A consumer takes no capsule of another name, and does not look into it."""
    either(lib, checks_array_name, checks_stream_name, checks_schema_name)


def noted_release(structure: Any) -> list[int]:
    """The calls of a structure's release from now on."""
    calls, original = list[int](), RELEASE(base(structure).release)

    def note(address: int) -> None:
        take_exception_away()
        calls.append(address)
        original(address)

    callback = RELEASE(note)
    NOTES.append(callback)
    base(structure).release = ctypes.cast(callback, c_void_p)
    return calls


NOTES: list[Any] = []  # for the life of the process


@rule("AR403", "should", "PyCapsule interface, Lifetime Semantics", "p")
def destructor_releases(lib: Library) -> None:
    """A capsule that was not taken releases what is in it when it dies."""
    found = exports(lib)
    while found:
        method, result = found.pop()
        noted = [noted_release(structure_in(capsule)) for capsule in capsules_in(result)]
        del result
        gc.collect()
        equal(f"releases of what {method} gave", [1] * len(noted), [len(calls) for calls in noted])


@rule("AR404", "should", "PyCapsule interface, Lifetime Semantics (if it is not already null)", "p")
def destructor_null_release(lib: Library) -> None:
    """A capsule whose structure was moved out releases nothing when it dies."""
    found = exports(lib)
    while found:
        method, result = found.pop()
        sources = [structure_in(capsule) for capsule in capsules_in(result)]
        values = read_array(*sources) if len(sources) == 2 else None
        noted = [noted_release(source) for source in sources]
        moved_out = [type(source).from_buffer_copy(source) for source in sources]
        for source in sources:
            base(source).release = None
        del result, source, sources
        gc.collect()
        equal(
            f"releases of what was moved out of {method}'s", [0] * len(noted), list(map(len, noted))
        )
        if values is not None:
            equal("values of what was moved out", values, read_array(*moved_out))
        for structure in moved_out:
            release(base(structure))
        equal(f"releases of what {method} gave", [1] * len(noted), list(map(len, noted)))


def leaves_null_of_array(lib: Any) -> None:
    x = ArrowProducer(INTEGERS, VALUES)
    array = lib.arrow_take(x)
    lib.arrow_to_list(array)
    # One that was asked for to see the schema may be left.
    if all(made.target.release for made in x.arrays):
        raise Broken("release NULL in the array's capsule", "the producer's")
    del array


def leaves_null_of_stream(lib: Any) -> None:
    x = ArrowStream(PAIRS, [ROWS])
    table = lib.arrow_take_stream(x)
    lib.arrow_to_list(table)
    if all(opened.structure.release for opened in x.opened):
        raise Broken("release NULL in the stream's capsule", "the producer's")
    del table


@rule("AR405", "should", "PyCapsule interface, Lifetime Semantics", "c")
def consumer_moves(lib: Library) -> None:
    """A consumer moves the structure out of the capsule, and leaves its release NULL.

    That of an array or a stream: a schema may be read and left to its capsule.
    """
    either(lib, leaves_null_of_array, leaves_null_of_stream)


def refuses_used_array(lib: Any) -> None:
    x = ArrowProducer(INTEGERS, VALUES)
    equal("values", VALUES, lib.arrow_to_list(lib.arrow_take(x)))
    used = x.export_array()
    move(structure_in(used))
    refuses(lib, lib.arrow_take, Given(x.export_schema(), used), "an array that was used up")


def refuses_used_stream(lib: Any) -> None:
    x = ArrowStream(PAIRS, [ROWS])
    equal("values", ROWS, lib.arrow_to_list(lib.arrow_take_stream(x)))
    used = x.__arrow_c_stream__()
    move(structure_in(used))
    refuses(lib, lib.arrow_take_stream, GivenStream(used), "a stream that was used up")


@rule("AR406", "must", "PyCapsule interface, Lifetime Semantics (can only be consumed once)", "c")
def arrow_consumed_once(lib: Library) -> None:
    """A capsule is used once: its second use is an exception."""
    either(lib, refuses_used_array, refuses_used_stream)


UNKNOWN = Field("zz:unknown")


def unknown_child() -> ArrowProducer:
    x = ArrowProducer(PAIRS, ROWS)
    x.schema.children[0].fields["format"] = UNKNOWN.format.encode()
    return x


def of_format(form: bytes) -> ArrowProducer:
    x = ArrowProducer(INTEGERS, VALUES)
    x.schema.fields["format"] = form
    return x


def releases_refused_array(lib: Any) -> None:
    for x in (unknown_child(), of_format(b"Q!"), of_format(b"d:x"), of_format(b"+w:")):
        with contextlib.suppress(BaseException):
            lib.arrow_take(x)
        gc.collect()
        equal("releases of schema and array", [1] * len(x.releases()), x.releases())


def releases_refused_stream(lib: Any) -> None:
    x = ArrowStream(PAIRS, [ROWS])
    x.field = UNKNOWN
    with contextlib.suppress(BaseException):
        lib.arrow_take_stream(x)
    gc.collect()
    equal("releases of the stream", [1] * len(x.releases), x.releases)


@rule("AR407", "derived", "PyCapsule interface, Lifetime Semantics; C data interface", "c")
def refusal_keeps_or_releases(lib: Library) -> None:
    """What is refused is released once in all, by the consumer or by its capsule."""
    either(lib, releases_refused_array, releases_refused_stream)


@rule("AR408", "must", "PyCapsule interface, ArrowSchema Export", "p")
def schema_method(lib: Library) -> None:
    """`__arrow_c_schema__()` gives a capsule with a schema."""
    found = gives(lib, "__arrow_c_schema__")
    for (capsule,) in found:
        read_field(structure_in(capsule))


@rule("AR409", "must", "PyCapsule interface, ArrowArray Export", "p")
def array_method(lib: Library) -> None:
    """`__arrow_c_array__()` gives a pair of capsules: schema, array."""
    found = gives(lib, "__arrow_c_array__")
    for capsules in found:
        read_result(tuple(capsules))
    if hasattr(lib, "arrow_device_array"):
        gives(lib, "__arrow_c_device_array__")


@rule("AR410", "must", "PyCapsule interface, ArrowStream Export", "p")
def stream_method(lib: Library) -> None:
    """`__arrow_c_stream__()` gives a capsule with a stream."""
    found = gives(lib, "__arrow_c_stream__")
    for (capsule,) in found:
        read_result(capsule)


def methods_with_request(lib: Any) -> list[Any]:
    """Bound methods that take requested_schema, each with the schema of its data."""
    names = [name for name in METHODS if name != "__arrow_c_schema__"]
    found = [getattr(x, name) for x in objects(lib) for name in names if hasattr(x, name)]
    if not found:
        raise NotApplicable("no methods that take a schema")
    return found


def schema_of(result: Any) -> Field:
    """Of the data that a method gave."""
    if isinstance(result, tuple):
        return read_field(structure_in(result[0]))
    reader = Reader(result)
    field = read_field(reader.schema())
    reader.release()
    return field


@rule("AR411", "must", "PyCapsule interface, ArrowArray Export (signature)", "p")
def requested_positional(lib: Library) -> None:
    """requested_schema is a parameter of that name, by position or keyword, None by default."""
    for method in methods_with_request(lib):
        field = schema_of(method())
        # One after the other: a source may have one export at a time.
        for arguments, keywords in (
            ((None,), {}),
            ((), {"requested_schema": None}),
            ((schema_capsule(field),), {}),
            ((), {"requested_schema": schema_capsule(field)}),
        ):
            try:
                result = method(*arguments, **keywords)
            except TypeError as error:
                raise Broken(f"a result for {arguments} and {keywords}", text(error)) from None
            except Exception:
                continue  # it meets no requests
            seen = schema_of(result)
            equal(f"format of what {method.__name__} gives", field.format, seen.format)


def column(lib: Any, field: Field) -> Field:
    """The type; that of a table with one column for a library that has no arrays."""
    return field if hasattr(lib, "arrow_array") else struct_of(renamed(field))


def renamed(field: Field) -> Field:
    return Field(field.format, "c", field.children, field.dictionary, field.flags)


def by_a_method(lib: Any, field: Field, values: list[Any]) -> Any:
    """The bound method with data of an object with these values."""
    if hasattr(lib, "arrow_array"):
        return lib.arrow_array(field, values).__arrow_c_array__
    rows = [{"c": value} for value in values]
    return lib.arrow_stream(column(lib, field), [rows]).__arrow_c_stream__


def values_in(lib: Any, result: Any) -> list[Any]:
    found = read_result(result)
    return found if hasattr(lib, "arrow_array") else [row["c"] for row in found]


def format_of(lib: Any, result: Any) -> str:
    field = schema_of(result)
    return field.format if hasattr(lib, "arrow_array") else field.children[0].format


def answer(method: Any, request: Field) -> Any:
    """What the method gives for the request; a text if it is an exception."""
    try:
        return method(schema_capsule(request))
    except Exception as error:
        return text(error)


@rule("AR412", "may", "PyCapsule interface, Schema Requests", "p")
def requested_best_effort(lib: Library) -> Report:
    """A request that cannot be met may be answered as None is.

    Of int32 a list is asked for.
    """
    request = Field("+l", children=(Field("i", "item"),))
    result = answer(by_a_method(lib, INTEGERS, VALUES), column(lib, request))
    return Report(result if isinstance(result, str) else f"format {format_of(lib, result)}")


@rule("AR413", "should", "PyCapsule interface, Schema Requests (should attempt)", "p")
def requested_met(lib: Library) -> None:
    """A request for another representation of the same data is met.

    Those that the hooks name, of types that the library has.
    """
    for field, request, values in lib.arrow_requests():
        result = answer(by_a_method(lib, field, values), column(lib, request))
        seen = result if isinstance(result, str) else format_of(lib, result)
        equal(f"format for {request.format!r} of data of {field.format!r}", request.format, seen)


def drops_no_field_of_array(lib: Any) -> None:
    refuses_fewer_fields(lib.arrow_array(PAIRS, ROWS).__arrow_c_array__)


def drops_no_field_of_stream(lib: Any) -> None:
    refuses_fewer_fields(lib.arrow_stream(PAIRS, [ROWS]).__arrow_c_stream__)


def refuses_fewer_fields(method: Any) -> None:
    try:
        # A stream may say it when it is read.
        values = read_result(method(schema_capsule(struct_of(PAIRS.children[0]))))
    except Exception:
        return
    raise Broken("an exception for a request of one field of two", values)


@rule("AR414", "should", "PyCapsule interface, Schema Requests (should raise)", "p")
def requested_incompatible(lib: Library) -> None:
    """A request that is not compatible, as of another number of fields, is an exception."""
    either(lib, drops_no_field_of_array, drops_no_field_of_stream)


@rule("AR415", "derived", "PyCapsule interface, Schema Requests (the same data)", "p")
def requested_values(lib: Library) -> None:
    """Whatever a request gives, its values are equal, and its schema is that of its data."""
    cases = [(INTEGERS, Field(form), VALUES) for form in ("l", "s", "I", "f", "u")]
    if hasattr(lib, "arrow_requests"):
        cases += lib.arrow_requests()
    for field, request, values in cases:
        result = answer(by_a_method(lib, field, values), column(lib, request))
        if isinstance(result, str):
            continue
        # A conversion that someone may call the same data gives equal values, or their texts.
        seen = values_in(lib, result)
        if seen != values and seen != [None if v is None else str(v) for v in values]:
            raise Broken(f"{values} for {request.format!r} of {field.format!r}", seen)


@rule("AR416", "silent", "PyCapsule interface, Schema Requests", "p")
def requested_capsule_owner(lib: Library) -> Report:
    """Whether the method uses up the capsule that requests."""
    capsule = schema_capsule(column(lib, INTEGERS))
    by_a_method(lib, INTEGERS, VALUES)(capsule)
    if structure_in(capsule).release is None:
        return Report("used up")
    again = by_a_method(lib, INTEGERS, VALUES)(capsule)
    return Report(f"left, and taken again: {format_of(lib, again)}")


@rule("AR417", "derived", "PyCapsule interface, Export Protocol (PyCapsule or None)", "p")
def requested_hostile(lib: Library) -> None:
    """Nonsense as a request is an exception, or passed over; it is not looked into."""
    for nonsense in (42, "i", poisoned_capsule(), object()):
        method = by_a_method(lib, INTEGERS, VALUES)
        with contextlib.suppress(Exception):
            equal("values", VALUES, values_in(lib, method(nonsense)))


@rule("AR418", "derived", "PyCapsule interface, Export Protocol; Lifetime Semantics", "p")
def again(lib: Library) -> None:
    """A method can be called again, and what it gave each time is independent."""
    for method in methods_with_request(lib):
        expected = read_result(method())
        gc.collect()
        first = method()
        try:
            second = method()
        except Exception as error:
            del first
            raise NotApplicable(f"one export at a time: {text(error)}") from None
        places = [[addressof(structure_in(c)) for c in capsules_in(r)] for r in (first, second)]
        if set(places[0]) & set(places[1]):
            raise Broken(f"structures for each call of {method.__name__}", "the same one")
        for capsule in capsules_in(first):
            release(base(structure_in(capsule)))
        del first, capsule
        gc.collect()
        equal("values of the second export", expected, read_result(second))


@rule("AR419", "silent", "PyCapsule interface, ArrowStream Export", "p")
def one_shot_again(lib: Library) -> Report:
    """What a reader whose rows can be read once does when it is asked again."""
    x = lib.arrow_stream(PAIRS, [ROWS, ROWS], once=True)
    read_result(x.__arrow_c_stream__())
    try:
        rows = read_result(x.__arrow_c_stream__())
    except Exception as error:
        return Report(text(error))
    return Report(f"{len(rows)} rows of {2 * len(ROWS)}")


@rule("AR420", "derived", "PyCapsule interface, ArrowSchema Export", "p")
def schema_agrees(lib: Library) -> None:
    """`__arrow_c_schema__`, where data have it, is the schema of the data."""
    compared = False
    for x in objects(lib):
        for method in METHODS:
            if (
                method != "__arrow_c_schema__"
                and hasattr(x, method)
                and hasattr(x, "__arrow_c_schema__")
            ):
                seen = read_field(structure_in(x.__arrow_c_schema__()))
                equal(f"schema, as {method} has it", schema_of(getattr(x, method)()), seen)
                compared = True
    if not compared:
        raise NotApplicable("no data have __arrow_c_schema__")


@rule("AR421", "may", "PyCapsule interface, Export Protocol (can implement)", "p")
def kind_of_object(lib: Library) -> Report:
    """Arrays and batches have the array method, tables and streams the stream method."""
    said = [
        f"{type(x).__name__}: {', '.join(method for method in METHODS if hasattr(x, method))}"
        for x in objects(lib)
    ]
    return Report("; ".join(dict.fromkeys(said)))


@rule("AR422", "must", "C data, stream and device interfaces, Structure definitions", "p")
def static_size(lib: Library) -> None:
    """What is in a capsule is laid out as the C structure."""
    found = exports(lib)
    for method, result in found:
        for capsule in capsules_in(result):
            found_in = structure_in(capsule)
            structure = base(found_in)
            # The mandatory members that no value of another member is like.
            wanted = [
                "release",
                *(n for n in ("format", "get_schema", "get_next") if hasattr(structure, n)),
            ]
            missing = [name for name in wanted if not getattr(structure, name)]
            if not getattr(found_in, "device_type", CPU):
                missing.append("device_type")
            equal(f"members without a value of what {method} gave", [], missing)
        if method == "__arrow_c_schema__":
            read_field(structure_in(result))
        else:
            read_result(result)


@rule("AR423", "derived", "PyCapsule interface, Lifetime Semantics; Python's C API", "p")
def exception_in_flight(lib: Library) -> None:
    """A capsule that dies while an exception is in flight keeps it."""
    found = exports(lib)
    if not in_shared_object(capsule_destructor(capsules_in(found[0][1])[0])):
        raise NotApplicable("its destructors are no compiled functions: ctypes cannot keep it")
    while found:
        method, mine = found[-1][0], ValueError("mine")
        left = exception_left(mine, lambda: found.pop()[1])
        if any(getattr(x, "interrupted", None) for x in [*ARROW_PRODUCERS, *STREAMS]):
            raise NotApplicable("its data are the kit's, and ctypes cannot keep it")
        equal(f"exception in which what {method} gave died", repr(mine), repr(left))


class Both:
    """An array with the method of before, which only pyarrow's own objects have."""

    def __init__(self, x: ArrowProducer) -> None:
        self.x, self.calls = x, list[str]()

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        self.calls.append("__arrow_c_array__")
        return self.x.__arrow_c_array__(requested_schema)

    def _export_to_c(self, *_arguments: Any) -> None:
        self.calls.append("_export_to_c")


@rule("AR424", "should", "PyCapsule interface, Backwards Compatibility with PyArrow", "c")
def prefers_capsules(lib: Library) -> None:
    """A consumer prefers the methods with capsules to `_export_to_c`."""
    x = Both(ArrowProducer(INTEGERS, VALUES))
    equal("values", VALUES, lib.arrow_to_list(lib.arrow_take(x)))
    equal("calls of _export_to_c", 0, x.calls.count("_export_to_c"))


class ArrayAlone:
    __slots__ = ("x",)

    def __init__(self, x: ArrowProducer) -> None:
        self.x = x

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return self.x.__arrow_c_array__(requested_schema)


def takes_any_array(lib: Any) -> None:
    x = ArrayAlone(ArrowProducer(INTEGERS, VALUES))
    equal("values", VALUES, lib.arrow_to_list(lib.arrow_take(x)))


def takes_any_stream(lib: Any) -> None:
    x = GivenStream(ArrowStream(PAIRS, [ROWS]).__arrow_c_stream__())
    equal("values", ROWS, lib.arrow_to_list(lib.arrow_take_stream(x)))


def takes_any_schema(lib: Any) -> None:
    lib.arrow_take_schema(GivenSchema(schema_capsule(PAIRS)))


@rule("AR425", "must", "PyCapsule interface, Goals; Export Protocol", "c")
def duck(lib: Library) -> None:
    """A consumer takes any object with the method."""
    either(lib, takes_any_array, takes_any_stream, takes_any_schema)
