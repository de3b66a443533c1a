"""AR3xx: streams."""

import ctypes
import errno
import gc
from typing import Any

from dlpack_conformance.abi.arrow import RELEASE, ArrowSchema
from dlpack_conformance.kit.arrow_consumer import read_field, release
from dlpack_conformance.kit.arrow_field import Field, struct_of
from dlpack_conformance.kit.arrow_reader import (
    Reader,
    StreamError,
    base,
    moved,
    opened,
    read_array,
)
from dlpack_conformance.kit.arrow_stream import POISON_OF_TEXT, ArrowStream
from dlpack_conformance.kit.judge import either, equal, text
from dlpack_conformance.kit.memory import unreadable
from dlpack_conformance.library import Library
from dlpack_conformance.rule import Broken, NotApplicable, Report, rule

# What most streams are of: record batches.
BATCHES = struct_of(Field("i", "a"), Field("u", "b"))
CHUNKS: list[list[Any]] = [[{"a": 1, "b": "one"}, {"a": None, "b": "two"}], [{"a": 3, "b": None}]]
ROWS = [row for chunk in CHUNKS for row in chunk]
MESSAGE = "the disk is on fire"


def stream_of(lib: Any) -> Reader:
    """Of the library, with CHUNKS."""
    return opened(lib.arrow_stream(BATCHES, CHUNKS))


def failing_stream_of(lib: Any) -> Reader:
    """Of the library: it fails after the first chunk."""
    return opened(lib.arrow_failing_stream(BATCHES, CHUNKS[:1], MESSAGE))


def first_error(reader: Reader) -> StreamError:
    """The error by which a failing stream ends."""
    try:
        reader.chunks()
    except StreamError as error:
        return error
    raise Broken("an error code of a stream whose source fails", "its end")


def taken(lib: Any, x: ArrowStream) -> None:
    """The library reads the stream, and what it read is gone afterwards."""
    equal(
        "rows",
        [row for c in x.chunks for row in c.values],
        lib.arrow_to_list(lib.arrow_take_stream(x)),
    )
    gc.collect()


def error_of(lib: Any, x: ArrowStream) -> str:
    """The text of the exception by which the library says that a stream failed."""
    try:
        values = lib.arrow_to_list(lib.arrow_take_stream(x))
    except NotApplicable:
        raise
    except SystemError:
        if x.interrupted is None:
            raise
        said = x.interrupted
    except Exception as error:
        # Its whole text: the library may say much around the stream's.
        said = f"{type(error).__name__}: {error}"
    else:
        raise Broken("an exception", f"{values} of a stream that failed with {x.code}")
    gc.collect()
    return said


def failing(**keywords: Any) -> ArrowStream:
    return ArrowStream(BATCHES, CHUNKS, fails_at=1, **keywords)


def misused(x: ArrowStream, what: str) -> None:
    found = [misuse for misuse in x.misuse if what in misuse]
    if found:
        raise Broken(f"no {what}", f"{found[0]}, in {x.calls}")


def rows_of(schema: ArrowSchema, chunks: list[Any]) -> list[Any]:
    """A library may put chunks together."""
    return [row for chunk in chunks for row in read_array(schema, chunk)]


def prefilled(out: Any, released: list[int]) -> Any:
    """Bytes that mean nothing in `out`, and a release that notes that it is called. To be kept."""
    note = RELEASE(released.append)
    ctypes.memset(ctypes.addressof(out), 0xAA, ctypes.sizeof(out))
    base(out).release = ctypes.cast(note, ctypes.c_void_p)
    return note


def written(out: Any, note: Any) -> None:
    """Not what `prefilled` left there."""
    if base(out).release == ctypes.cast(note, ctypes.c_void_p).value:
        raise Broken("a chunk, or a released array", "what was there before the call")


@rule("AR301", "must", "C stream interface, ArrowArrayStream (Mandatory)", "p")
def callbacks(lib: Library) -> None:
    """The four callbacks are set."""
    reader = stream_of(lib)
    names = ("get_schema", "get_next", "get_last_error", "release")
    equal("callbacks that are NULL", [], [n for n in names if not getattr(reader.structure, n)])
    reader.release()


@rule("AR302", "must", "C stream interface, Semantics; get_schema", "p")
def one_schema(lib: Library) -> None:
    """All chunks have the schema that get_schema gives."""
    reader = stream_of(lib)
    schema = reader.schema()
    equal("format", "+s", read_field(schema).format)
    chunks = reader.chunks()
    for chunk in chunks:
        equal("children of a chunk", schema.n_children, base(chunk).n_children)
    equal("rows", ROWS, rows_of(schema, chunks))


def fails_with_a_code(lib: Any) -> None:
    code = first_error(failing_stream_of(lib)).code
    if code <= 0:
        raise Broken("an error code as errno has them", code)


def takes_codes_as_failures(lib: Any) -> None:
    for code in (errno.EIO, errno.EINVAL, -1):
        error_of(lib, failing(code=code))
    error_of(lib, ArrowStream(BATCHES, CHUNKS, fails_at="get_schema"))


@rule("AR303", "must", "C stream interface, Error codes", "pc")
def zero_is_success(lib: Library) -> None:
    """A callback gives 0 for success and an errno for a failure; what is not 0 is a failure."""
    either(lib, fails_with_a_code, takes_codes_as_failures)


def ends_with_released(lib: Any) -> None:
    reader = stream_of(lib)
    codes, notes = [], []
    while True:
        chunk = reader.empty_chunk()
        notes.append(prefilled(chunk, []))
        codes.append(reader.get_next(chunk))
        written(chunk, notes[-1])
        if codes[-1] or not base(chunk).release:
            break
    equal("codes of get_next to the end", [0] * len(codes), codes)


def stops_at_released(lib: Any) -> None:
    x = ArrowStream(BATCHES, CHUNKS)
    taken(lib, x)


@rule("AR304", "must", "C stream interface, get_next", "pc")
def end_is_released(lib: Library) -> None:
    """The end of a stream is success with a released array."""
    either(lib, ends_with_released, stops_at_released)


@rule("AR305", "silent", "C stream interface, get_next", "p")
def end_again(lib: Library) -> Report:
    """What get_next does after the end."""
    reader = stream_of(lib)
    reader.chunks()
    chunk = reader.empty_chunk()
    code = reader.get_next(chunk)
    return Report(f"code {code}" if code else "a chunk" if base(chunk).release else "the end again")


@rule("AR306", "derived", "C stream interface, get_next (out is the consumer's)", "p")
def out_uninitialised(lib: Library) -> None:
    """The structures that get_schema and get_next write to need not be initialised."""
    reader, released = stream_of(lib), list[int]()
    schema, chunks = ArrowSchema(), []
    notes = [prefilled(schema, released)]
    equal("code of get_schema", 0, reader.get_schema(schema))
    while True:
        chunk = reader.empty_chunk()
        notes.append(prefilled(chunk, released))
        equal("code of get_next", 0, reader.get_next(chunk))
        written(chunk, notes[-1])
        if not base(chunk).release or released:
            break
        chunks.append(chunk)
    equal("the schema", read_field(reader.schema()), read_field(schema))
    equal(f"of {len(notes)} structures, those released while they meant nothing", [], released)
    equal("rows", ROWS, rows_of(schema, chunks))


@rule("AR307", "must", "C stream interface, get_last_error", "c")
def last_error_only_after_error(lib: Library) -> None:
    """get_last_error is called only if the last operation failed."""
    whole, broken = ArrowStream(BATCHES, CHUNKS), failing()
    taken(lib, whole)
    error_of(lib, broken)
    for x in (whole, broken):
        misused(x, "get_last_error")


@rule("AR308", "derived", "C stream interface, get_last_error (NULL can also be returned)", "c")
def last_error_may_be_null(lib: Library) -> None:
    """A failure without a text is an exception too."""
    error_of(lib, failing(message=None))


def keeps_text(lib: Any) -> None:
    reader = failing_stream_of(lib)
    first_error(reader)
    first = reader.last_error()
    if first is not None and MESSAGE.encode() not in first:
        raise Broken(f"a text that says {MESSAGE!r}", first)
    # What was freed is written over.
    kept = [bytes(range(size)) for size in range(256)] * 16
    gc.collect()
    equal(f"the text, {len(kept)} allocations later", first, reader.last_error())


def copies_text(lib: Any) -> None:
    said = error_of(lib, failing())
    if POISON_OF_TEXT.decode() in said:
        raise Broken("the text as it was until the next call", said)


@rule("AR309", "must", "C stream interface, get_last_error", "pc")
def last_error_lifetime(lib: Library) -> None:
    """The text of an error is valid until the next call, and copied to be used after it."""
    either(lib, keeps_text, copies_text)


@rule("AR310", "derived", "C stream interface, get_last_error (textual description)", "c")
def last_error_said(lib: Library) -> None:
    """The text of an error reaches the user."""
    said = error_of(lib, failing())
    if MESSAGE not in said and POISON_OF_TEXT.decode() not in said:
        raise Broken(f"an exception that says {MESSAGE!r}", said)


def left_early(lib: Any, x: ArrowStream) -> None:
    """Not beyond the first chunk, if the library can read one by one."""
    if hasattr(lib, "arrow_iterate"):
        next(iter(lib.arrow_iterate(x)))
    gc.collect()


@rule("AR311", "must", "C stream interface (must NOT be called on a released stream)", "c")
def not_on_released(lib: Library) -> None:
    """No callback of a released stream is called."""
    whole, broken, left = ArrowStream(BATCHES, CHUNKS), failing(), ArrowStream(BATCHES, CHUNKS)
    taken(lib, whole)
    error_of(lib, broken)
    left_early(lib, left)
    for x in (whole, broken, left):
        misused(x, "released stream")


@rule("AR312", "must", "C stream interface, Result lifetimes", "p")
def chunks_outlive_stream(lib: Library) -> None:
    """Schema and chunks are released on their own, and outlive the stream."""
    reader = stream_of(lib)
    schema, chunks = reader.schema(), reader.chunks()
    reader.release()
    gc.collect()
    equal("rows after the stream's release", ROWS, rows_of(schema, chunks))
    for structure in (schema, *chunks):
        release(base(structure))


@rule(
    "AR313",
    "must",
    "C stream interface, Stream lifetime",
    "c",
)
def release_stream_once(lib: Library) -> None:
    """The stream is released exactly once, also when it is left early or fails."""
    whole, left, unknown = (ArrowStream(BATCHES, CHUNKS) for _ in range(3))
    unknown.fails_at = "get_schema"
    broken = failing()
    taken(lib, whole)
    left_early(lib, left)
    error_of(lib, broken)
    error_of(lib, unknown)
    for x, case in (
        (whole, "is read"),
        (left, "is left after a chunk"),
        (broken, "fails"),
        (unknown, "has no schema"),
    ):
        equal(f"releases of a stream that {case}", [1] * len(x.releases), x.releases)


@rule("AR314", "silent", "C stream interface, get_next (On success)", "c")
def chunk_of_failure(lib: Library) -> Report:
    """What a consumer does with what a failed call leaves in `out`.

    The text says what `out` is on success alone. Consumers that mark it as released before the call
    and release what is live after it, as Arrow C++ and arrow-rs, break no sentence.
    """
    x = failing()
    x.garbage = True
    error_of(lib, x)
    return Report("releases it" if any("left" in misuse for misuse in x.misuse) else "leaves it")


@rule("AR315", "should", "C stream interface, Thread safety", "c")
def serialised(lib: Library) -> None:
    """get_next is not called from several threads at once."""
    x = ArrowStream(BATCHES, CHUNKS * 8)
    x.seconds = 0.01
    taken(lib, x)
    misused(x, "within another get_next")


@rule("AR316", "derived", "C data interface, Moving an array (pointers); C stream interface", "p")
def moved_stream(lib: Library) -> None:
    """A moved stream works from its new address."""
    reader = stream_of(lib)
    first = reader.structure
    reader.structure = moved(first)
    schema = reader.schema()
    equal("rows", ROWS, rows_of(schema, reader.chunks()))
    reader.release()


@rule("AR317", "silent", "C stream interface, get_schema", "p")
def schema_again(lib: Library) -> Report:
    """What get_schema does when it is called again."""
    reader = stream_of(lib)
    return said_of_schema(reader.schema(), reader)


@rule("AR318", "silent", "C stream interface, get_schema", "p")
def schema_after_data(lib: Library) -> Report:
    """What get_schema does after get_next, and at the end."""
    reader, schema = stream_of(lib), opened(lib.arrow_stream(BATCHES, CHUNKS)).schema()
    reader.next_chunk()
    within = said_of_schema(schema, reader)
    reader.chunks()
    return Report(f"after a chunk {within}, at the end {said_of_schema(schema, reader)}")


def said_of_schema(expected: ArrowSchema, reader: Reader) -> Report:
    try:
        again = reader.schema()
    except StreamError as error:
        return Report(f"code {error.code}: {text(error)}")
    return Report("the same" if read_field(again) == read_field(expected) else "another")


def gives_no_chunks(lib: Any) -> None:
    reader = opened(lib.arrow_stream(BATCHES, []))
    equal("children of the schema", len(BATCHES.children), reader.schema().n_children)
    # A chunk without rows is as good as none.
    equal("rows of an empty stream", 0, sum(base(chunk).length for chunk in reader.chunks()))


def takes_no_chunks(lib: Any) -> None:
    taken(lib, ArrowStream(BATCHES, []))


@rule("AR319", "derived", "C stream interface, get_next (the end)", "pc")
def empty_stream(lib: Library) -> None:
    """A stream without chunks is a table without rows, with its schema."""
    either(lib, gives_no_chunks, takes_no_chunks)


def chunks_outlive_error(lib: Any) -> None:
    reader = failing_stream_of(lib)
    schema, chunk = reader.schema(), reader.next_chunk()
    first_error(reader)
    reader.release()
    equal("values of the chunk before the error", CHUNKS[0], read_array(schema, chunk))


def keeps_chunks_before_error(lib: Any) -> None:
    chunks = iter(lib.arrow_iterate(failing()))
    first = next(chunks)
    try:
        next(chunks)
    except (NotApplicable, SystemError):
        raise
    except Exception:
        equal("values of the chunk before the error", CHUNKS[0], lib.arrow_to_list(first))
    else:
        raise Broken("an exception", "a chunk of a call that failed")


@rule("AR320", "derived", "C stream interface, Result lifetimes", "pc")
def rows_before_error(lib: Library) -> None:
    """Chunks from before an error stay valid."""
    either(lib, chunks_outlive_error, keeps_chunks_before_error)


@rule("AR321", "must", "C stream interface, private_data", "c")
def private_data(lib: Library) -> None:
    """A consumer does not look at private_data, and leaves it as it is."""
    x = ArrowStream(BATCHES, CHUNKS)
    x.private_data = unreadable()
    taken(lib, x)
    broken = failing()
    broken.private_data = unreadable()
    error_of(lib, broken)
    for each in (x, broken):
        misused(each, "change of private_data")
