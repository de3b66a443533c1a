"""A producer of streams that does what it is told and notes what its consumer does."""

import ctypes
import errno
import time
from collections.abc import Sequence
from typing import Any

from dlpack_conformance.abi.arrow import (
    ARROW_ARRAY_STREAM,
    ARROW_DEVICE_ARRAY_STREAM,
    GET,
    GET_LAST_ERROR,
    RELEASE,
    ArrowArray,
    ArrowArrayStream,
    ArrowDeviceArray,
    ArrowDeviceArrayStream,
    ArrowSchema,
)
from dlpack_conformance.abi.capsule import (
    PyCapsule_New,
    take_exception_away,
)
from dlpack_conformance.abi.dlpack import CPU
from dlpack_conformance.kit.arrow_field import Field
from dlpack_conformance.kit.arrow_producer import ArrowProducer, Made, schema_part

STREAMS: list[Any] = []  # for the life of the process
GARBAGE = 0xAA
POISON_OF_TEXT = b"poison"


class ArrowStream:
    """An object with `__arrow_c_stream__`, correct until a rule changes it.

    Each call opens a stream of the same chunks. Their capsules have no destructor and are kept:
    `releases` counts what it would do too.
    """

    def __init__(
        self,
        field: Field,
        chunks: Sequence[Sequence[Any]],
        *,
        fails_at: str | int | None = None,
        code: int = errno.EIO,
        message: bytes | None = b"the disk is on fire",
    ) -> None:
        self.field, self.device = field, False
        self.chunks = [ArrowProducer(field, values) for values in chunks]
        # What fails: "get_schema", or the call of get_next with this number.
        self.fails_at, self.code, self.message = fails_at, code, message
        self.garbage = False  # whether a failure leaves some, with a release that is noted
        self.seconds = 0.0  # that get_next takes
        self.private_data: int | None = None
        self.opened: list[Opened] = []
        self.capsules: list[Any] = []
        STREAMS.append(self)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        opened = Opened(self)
        self.opened.append(opened)
        name = ARROW_DEVICE_ARRAY_STREAM if self.device else ARROW_ARRAY_STREAM
        self.capsules.append(PyCapsule_New(ctypes.addressof(opened.structure), name, None))
        return self.capsules[-1]

    @property
    def calls(self) -> list[str]:
        """Of the callbacks, of all streams that were opened."""
        return [call for opened in self.opened for call in opened.calls]

    @property
    def misuse(self) -> list[str]:
        """What the consumer did that it must not."""
        return [misuse for opened in self.opened for misuse in opened.misuse]

    @property
    def interrupted(self) -> str | None:
        """The exception that a consumer had set when it called, and that ctypes lost."""
        made = [made for opened in self.opened for made in opened.schemas]
        made += [made for chunk in self.chunks for made in chunk.arrays]
        found = [opened.interrupted for opened in self.opened]
        found += [text for each in made for text in each.interrupted]
        return next(filter(None, found), None)

    @property
    def releases(self) -> list[int]:
        """Of each stream, with that which a capsule's destructor makes if the stream was left."""
        return [opened.releases + bool(opened.structure.release) for opened in self.opened]


class DeviceStream:
    """An object with `__arrow_c_device_stream__` for such a stream; its chunks are on the CPU."""

    def __init__(self, x: ArrowStream) -> None:
        self.x, x.device = x, True

    def __arrow_c_device_stream__(self, requested_schema: Any = None, **_keywords: Any) -> Any:
        return self.x.__arrow_c_stream__(requested_schema)


class Opened:
    """One stream."""

    def __init__(self, of: ArrowStream) -> None:
        self.of, self.calls, self.misuse = of, list[str](), list[str]()
        self.position = self.releases = self.inside = 0
        self.failed = False  # the last operation
        self.schemas: list[Made] = []
        self.interrupted: str | None = None  # the exception that was set when it was called
        self.text: Any = None  # of the last error
        self.callbacks = (
            GET(self.get_schema),
            GET(self.get_next),
            GET_LAST_ERROR(self.get_last_error),
            RELEASE(self.release),
        )
        self.left: Any = None  # what kind a failed call left
        self.garbage_release = RELEASE(self.release_of_garbage)
        self.structure: Any = ArrowDeviceArrayStream() if of.device else ArrowArrayStream()
        if of.device:
            self.structure.device_type = CPU
        self.structure.private_data = of.private_data
        names = ("get_schema", "get_next", "get_last_error", "release")
        for name, callback in zip(names, self.callbacks, strict=True):
            setattr(self.structure, name, ctypes.cast(callback, ctypes.c_void_p))

    def begin(self, call: str) -> None:
        self.interrupted = take_exception_away() or self.interrupted
        if self.releases:
            self.misuse.append(f"{call} of a released stream")
        self.calls.append(call)
        # The text of an error is valid until the next call.
        if self.text is not None and call != "get_last_error":
            poison = (POISON_OF_TEXT * len(self.text))[: len(self.text) - 1]
            ctypes.memmove(self.text, poison, len(poison))

    def get_schema(self, _stream: int, out: int) -> int:
        self.begin("get_schema")
        code = self.fail(ArrowSchema, out) if self.of.fails_at == "get_schema" else 0
        if code == 0:
            part = schema_part(self.of.field)
            self.schemas.append(Made(part, ArrowSchema.from_address(out), True))
        self.failed = code != 0
        return code

    def get_next(self, _stream: int, out: int) -> int:
        self.begin("get_next")
        self.inside += 1
        if self.inside > 1:
            self.misuse.append("get_next within another get_next")
        if self.of.seconds:
            time.sleep(self.of.seconds)
        kind: Any = ArrowDeviceArray if self.of.device else ArrowArray
        code = self.fail(kind, out) if self.of.fails_at == self.position else 0
        if code == 0:
            ctypes.memset(out, 0, ctypes.sizeof(kind))
            if self.position < len(self.of.chunks):
                chunk = self.of.chunks[self.position]
                chunk.arrays.append(Made(chunk.array, ArrowArray.from_address(out), True))
                if self.of.device:
                    of_device = ArrowDeviceArray.from_address(out)
                    of_device.device_type, of_device.device_id = CPU, -1
            self.position += 1
        self.failed = code != 0
        self.inside -= 1
        return code

    def fail(self, kind: Any, out: int) -> int:
        if self.of.garbage:
            ctypes.memset(out, GARBAGE, ctypes.sizeof(kind))
            # The array is the first member of a device array.
            self.left = ArrowSchema if kind is ArrowSchema else ArrowArray
            self.left.from_address(out).release = ctypes.cast(self.garbage_release, ctypes.c_void_p)
        return self.of.code

    def release_of_garbage(self, out: int) -> None:
        take_exception_away()
        self.misuse.append("release of what a failed call left")
        self.left.from_address(out).release = None

    def get_last_error(self, _stream: int) -> int | None:
        self.begin("get_last_error")
        if not self.failed:
            self.misuse.append("get_last_error though the last operation was no failure")
        self.text = None
        if self.of.message is not None:
            self.text = ctypes.create_string_buffer(self.of.message)
            STREAMS.append(self.text)
        return None if self.text is None else ctypes.addressof(self.text)

    def release(self, stream: int) -> None:
        self.begin("release")
        self.releases += 1
        structure = type(self.structure).from_address(stream)
        if structure.private_data != self.of.private_data:
            self.misuse.append("change of private_data")
        structure.release = None
