"""AR3xx, streams."""

import contextlib
import ctypes
import dataclasses
import errno
import threading
import time
from ctypes import addressof

from dlpack_conformance.abi.arrow import RELEASE, ArrowArray, ArrowSchema
from dlpack_conformance.hooks import kit_reference as hooks
from dlpack_conformance.kit import reference_arrow
from dlpack_conformance.kit.arrow_consumer import read_field, release
from dlpack_conformance.kit.arrow_field import Field, struct_of
from dlpack_conformance.kit.arrow_reader import StreamError, base
from dlpack_conformance.kit.reference_arrow import Reader, Source, Taken

from mutants import alike, crash, decorator
from mutants.planting import around, readers

get_next = around(Source, "get_next")
get_schema = around(Source, "get_schema")
last_error = around(Source, "get_last_error")


@decorator
def opens(change):
    """The function changes each reference_arrow.Source, and the structure that calls it."""
    fill = Source.__init__

    def planted(self, of, field, structure):
        fill(self, of, field, structure)
        change(self, structure)

    Source.__init__ = planted


@decorator
def iterates(change):
    """The function gets the generator function that reads all streams, and what that gets."""
    right = reference_arrow.iterate
    reference_arrow.iterate = hooks.iterate = lambda x: change(right, x)


@decorator
def iterates_with(change):
    """The generator function stands for the one that reads all streams."""
    reference_arrow.iterate = hooks.iterate = change


def reader_of(x):
    if hasattr(x, "__arrow_c_stream__"):
        return reference_arrow.Reader(x.__arrow_c_stream__())
    return reference_arrow.Reader(x.__arrow_c_device_stream__())


def field_of(reader):
    schema = reader.schema()
    try:
        return read_field(schema)
    finally:
        release(schema)


def at_end(source):
    return not source.left and source.message is None


# Callbacks


@opens("AR301", AR528="device streams too", **alike("AR303 AR309 AR320", "no error has a text"))
def get_last_error_is_null(_source, structure):
    structure.get_last_error = None


@opens(
    "AR301",
    AR528="device streams too",
    **alike(
        "AR117 AR302 AR303 AR304 AR306 AR309 AR312 AR316 AR319 AR320 AR410 AR418 "
        "AR422 AR511 AR514 AR527",
        "it cannot be read",
    ),
)
def get_next_is_null(_source, structure):
    structure.get_next = None


@opens(
    "AR301",
    AR528="device streams too",
    **alike(
        "AR117 AR302 AR306 AR312 AR316 AR319 AR320 AR410 AR411 AR418 AR420 AR422",
        "it cannot be read",
    ),
)
def get_schema_is_null(_source, structure):
    structure.get_schema = None


@get_next(
    "AR302", AR528="device streams too", **alike("AR306 AR312 AR316", "chunks cannot be read")
)
def later_chunks_have_another_type(right, self, stream, out):
    field, first = self.field, not hasattr(self, "later")
    self.later = True
    if not first and self.left and field.format == "+s":
        self.field = struct_of(*(Field("g", child.name) for child in field.children))
        self.left = [[dict.fromkeys(row, 1.0) for row in rows] for rows in self.left]
        try:
            return right(self, stream, out)
        finally:
            self.field = field
    return right(self, stream, out)


@get_next("AR302", AR528="device streams too")
def later_chunks_lack_a_column(right, self, stream, out):
    first, code = not hasattr(self, "later"), right(self, stream, out)
    self.later = True
    array = ArrowArray.from_address(out)
    if not first and not code and array.release:
        array.n_children -= 1
    return code


@get_next("AR303", AR528="device streams too")
def failure_is_minus_1(right, self, stream, out):
    return -1 if right(self, stream, out) else 0


@get_next("AR303", AR528="device streams too", **alike("AR309 AR320", "the same fault"))
def failure_is_success(right, self, stream, out):
    if right(self, stream, out):
        ctypes.memset(out, 0, ctypes.sizeof(ArrowArray))
    return 0


@readers("AR303", AR528="device streams too")
class OnlyEIOIsAFailure(Reader):
    def get_next(self, out):
        code = super().get_next(out)
        return code if code == errno.EIO else 0


@readers(
    "AR303",
    AR528="device streams too",
    **alike("AR307 AR308 AR309 AR310 AR311 AR313 AR321", "no failure is said"),
)
class FailureIsTheEnd(Reader):
    def get_next(self, out):
        if super().get_next(out):
            base(out).release = None
        return 0


@get_next(
    "AR304",
    AR528="device streams too",
    **alike("AR302 AR306 AR312 AR316 AR319 AR410 AR418 AR422 AR511 AR514 AR527", "no stream ends"),
)
def end_is_a_failure(right, self, stream, out):
    return errno.ENODATA if at_end(self) else right(self, stream, out)


@get_next("AR304", AR528="device streams too", AR306="no stream ends")
def end_leaves_the_structure_alone(right, self, stream, out):
    return 0 if at_end(self) else right(self, stream, out)


@readers(
    "AR304",
    AR528="device streams too",
    **alike("AR307 AR311 AR313 AR315 AR319 AR321 AR405 AR406 AR425", "nothing is read"),
)
class EndIsAnError(Reader):
    def next_chunk(self):
        chunk = super().next_chunk()
        if chunk is None:
            raise StreamError(0, b"there is no chunk")
        return chunk


@get_next("AR306", AR528="device streams too")
def what_the_structure_held_is_released(right, self, stream, out):
    array = ArrowArray.from_address(out)
    if array.release:
        if array.release == 0xAAAAAAAAAAAAAAAA:
            crash()
        RELEASE(array.release)(out)
    return right(self, stream, out)


@get_next("AR306", AR528="device streams too")
def offset_is_not_written(right, self, stream, out):
    before = ArrowArray.from_address(out).offset
    code = right(self, stream, out)
    ArrowArray.from_address(out).offset = before
    return code


@get_schema("AR306", AR528="device streams too")
def flags_are_or_ed(right, self, stream, out):
    before = ArrowSchema.from_address(out).flags
    code = right(self, stream, out)
    ArrowSchema.from_address(out).flags |= before
    return code


@get_schema("AR306", AR528="device streams too", AR117="the same fault")
def metadata_is_not_written(right, self, stream, out):
    before = ArrowSchema.from_address(out).metadata
    code = right(self, stream, out)
    ArrowSchema.from_address(out).metadata = before
    return code


# Errors


@readers("AR307", AR528="device streams too")
class LastErrorIsAlwaysAskedFor(Reader):
    def next_chunk(self):
        chunk = super().next_chunk()
        self.last_error()
        return chunk


@readers("AR307", AR528="device streams too")
class LastErrorIsAskedForAtTheEnd(Reader):
    def release(self):
        if self.structure.release:
            self.last_error()
        super().release()


@readers("AR308", AR528="device streams too")
class NoTextCrashes(Reader):
    def last_error(self):
        text = super().last_error()
        if text is None:
            crash()
        return text


@readers("AR308", AR528="device streams too")
class NoTextIsNoError(Reader):
    def next_chunk(self):
        try:
            return super().next_chunk()
        except StreamError as error:
            if error.text is None:
                return None
            raise


@last_error("AR309", AR528="device streams too")
def text_is_freed_at_once(right, self, stream):
    address = right(self, stream)
    text = ctypes.string_at(address)
    ctypes.memset(address, 0xDB, len(text))
    return address


@iterates_with("AR309", AR528="device streams too")
def text_is_read_after_the_release(x):
    reader = reader_of(x)
    try:
        field = field_of(reader)
        while (chunk := reader.next_chunk()) is not None:
            yield Taken(field, base(chunk))
    except StreamError as error:
        address = reference_arrow.GET_LAST_ERROR(reader.structure.get_last_error)(reader.address)
        reader.release()
        text = ctypes.string_at(address) if address else b""
        raise OSError(error.code, text.decode(errors="replace")) from None
    finally:
        reader.release()


@iterates("AR310", AR528="device streams too")
def text_is_not_told(right, x):
    try:
        yield from right(x)
    except OSError as error:
        raise OSError(error.errno, "the stream failed") from None


# The end of a stream


@iterates_with("AR311", AR528="device streams too", AR307="the same fault")
def stream_is_asked_after_its_release(x):
    reader = reader_of(x)
    try:
        field = field_of(reader)
        while (chunk := reader.next_chunk()) is not None:
            yield Taken(field, base(chunk))
    except StreamError as error:
        raise OSError(error.code, str(error)) from None
    finally:
        reader.release()
        with contextlib.suppress(StreamError):
            reader.next_chunk()


@readers("AR311", AR528="device streams too", AR307="the same fault")
class LastErrorIsAskedForAfterTheRelease(Reader):
    def next_chunk(self):
        out = self.empty_chunk()
        code = self.get_next(out)
        if code:
            self.release()
            raise StreamError(code, self.last_error())
        return out if base(out).release else None


def freed_with_the_stream(source, structure, member, kind):
    """What this callback makes is released a second time, with the stream."""
    made, right = [], getattr(source, member)

    def get(stream, out):
        code = right(stream, out)
        made.append(kind.from_buffer_copy(kind.from_address(out)))
        return code

    def end(stream):
        for one in made:
            # What was released does not show in the copy; its memory can be freed again.
            release(one)
        source.release(stream)

    source.planted = reference_arrow.GET(get), RELEASE(end)
    setattr(structure, member, ctypes.cast(source.planted[0], ctypes.c_void_p))
    structure.release = ctypes.cast(source.planted[1], ctypes.c_void_p)


@opens("AR312", AR528="device streams too", AR320="memory is gone")
def chunks_are_freed_with_the_stream(source, structure):
    freed_with_the_stream(source, structure, "get_next", ArrowArray)


@opens("AR312", AR528="device streams too", AR320="memory is gone")
def schema_is_freed_with_the_stream(source, structure):
    freed_with_the_stream(source, structure, "get_schema", ArrowSchema)


KEPT = []


@readers("AR313", AR528="device streams too", AR407="releases")
class StreamIsNotReleased(Reader):
    def release(self):
        KEPT.append(self)


@readers("AR313", AR528="device streams too")
class FailedStreamIsNotReleased(Reader):
    def next_chunk(self):
        try:
            return super().next_chunk()
        except StreamError:
            self.structure.release = None
            raise


@readers("AR313", AR528="device streams too")
class StreamWithoutASchemaIsNotReleased(Reader):
    def schema(self):
        try:
            return super().schema()
        except StreamError:
            self.structure.release = None
            raise


@iterates_with("AR313", AR407="releases")
def stream_that_is_left_is_not_released(x):
    reader = reader_of(x)
    KEPT.append(reader)
    try:
        field = field_of(reader)
        while (chunk := reader.next_chunk()) is not None:
            yield Taken(field, base(chunk))
        reader.release()
    except StreamError as error:
        reader.release()
        raise OSError(error.code, str(error)) from None


@readers("AR313", AR528="device streams too", **alike("AR311 AR407", "releases"))
class StreamIsReleasedTwice(Reader):
    def release(self):
        callback = self.structure.release
        if callback:
            RELEASE(callback)(self.address)
            RELEASE(callback)(self.address)


# Threads and places


def read_ahead(get, seconds):
    """Two calls at once, of which the second waits a little to keep the order."""
    results = []

    def second():
        time.sleep(seconds)
        results.append(get())

    other = threading.Thread(target=second)
    other.start()
    first = get()
    other.join()
    return [first, *results]


@iterates_with("AR315", AR528="device streams too")
def two_threads_read(x):
    reader = reader_of(x)
    try:
        field = field_of(reader)
        more = True
        for _ in range(4):  # more than there are in streams but those on threads
            if more and (chunk := reader.next_chunk()) is not None:
                yield Taken(field, base(chunk))
            else:
                more = False
        while more:
            got = read_ahead(lambda: result_of(reader.next_chunk), 0.002)
            for chunk in got:
                if isinstance(chunk, StreamError):
                    raise chunk
                more = more and chunk is not None
                if chunk is not None:
                    yield Taken(field, base(chunk))
    except StreamError as error:
        raise OSError(error.code, str(error)) from None
    finally:
        reader.release()


def result_of(call):
    try:
        return call()
    except StreamError as error:
        return error


@opens(
    "AR316",
    AR528="device streams too",
    **alike(
        "AR302 AR304 AR306 AR312 AR319 AR320 AR410 AR418 AR422 AR511 AR514 AR527", "moved streams"
    ),
)
def stream_knows_its_address(source, structure):
    home, right = addressof(structure), source.get_next

    def get(stream, out):
        return right(stream, out) if stream == home else errno.EINVAL

    source.planted = reference_arrow.GET(get)
    structure.get_next = ctypes.cast(source.planted, ctypes.c_void_p)


@get_next("AR319")
def no_chunks_are_a_failure(right, self, stream, out):
    if at_end(self) and not hasattr(self, "began"):
        return errno.EINVAL
    self.began = True
    return right(self, stream, out)


@get_schema("AR319", **alike("AR306", "the schema is another one after the last chunk"))
def no_chunks_have_no_columns(right, self, stream, out):
    if not self.left and self.message is None:
        self.field = dataclasses.replace(self.field, children=())
    return right(self, stream, out)


@around(hooks, "take_stream")("AR319")
def no_chunks_are_refused(right, x):
    found = right(x)
    if not found.chunks:
        raise ValueError("there are no chunks")
    return found


@get_next("AR320")
def failure_frees_the_chunks_before(right, self, stream, out):
    code = right(self, stream, out)
    self.given = (
        [*getattr(self, "given", []), ArrowArray.from_buffer_copy(ArrowArray.from_address(out))]
        if not code
        else getattr(self, "given", [])
    )
    if code:
        for array in self.given:
            release(array)
    return code


@iterates("AR320")
def failure_loses_the_chunks_before(right, x):
    found = []
    for chunk in right(x):
        found.append(chunk)
    yield from found


@readers("AR321")
class PrivateDataIsRead(Reader):
    def __init__(self, capsule):
        super().__init__(capsule)
        if self.structure.private_data:
            ctypes.string_at(self.structure.private_data, 1)


@readers("AR321")
class PrivateDataIsReplaced(Reader):
    def __init__(self, capsule):
        super().__init__(capsule)
        self.structure.private_data = addressof(self.structure)
