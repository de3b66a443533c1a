"""A consumer of streams: it calls what a producer's capsule holds."""

import ctypes
from ctypes import addressof, sizeof
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
from dlpack_conformance.abi.capsule import PyCapsule_GetName, PyCapsule_GetPointer
from dlpack_conformance.kit.arrow_consumer import read_field, read_values, release

STREAM_KINDS: dict[bytes, Any] = {
    ARROW_ARRAY_STREAM: ArrowArrayStream,
    ARROW_DEVICE_ARRAY_STREAM: ArrowDeviceArrayStream,
}


class StreamError(Exception):
    """What a callback failed with."""

    def __init__(self, code: int, text: bytes | None) -> None:
        super().__init__((text or b"no text").decode(errors="replace"))
        self.code, self.text = code, text


class Reader:
    """A stream, moved out of its capsule: nothing but `release` releases it."""

    def __init__(self, capsule: Any) -> None:
        name = PyCapsule_GetName(capsule)
        if name not in STREAM_KINDS:
            raise ValueError(f"a capsule named {name!r} holds no stream")
        source = STREAM_KINDS[name].from_address(PyCapsule_GetPointer(capsule, name))
        if not source.release:
            raise ValueError("the stream was released")
        self.device = name == ARROW_DEVICE_ARRAY_STREAM
        self.structure = type(source).from_buffer_copy(source)
        source.release = None

    @property
    def address(self) -> int:
        return addressof(self.structure)

    def get_schema(self, out: ArrowSchema) -> int:
        return int(GET(self.structure.get_schema)(self.address, addressof(out)))

    def get_next(self, out: Any) -> int:
        return int(GET(self.structure.get_next)(self.address, addressof(out)))

    def last_error(self) -> bytes | None:
        text = GET_LAST_ERROR(self.structure.get_last_error)(self.address)
        return None if text is None else ctypes.string_at(text)

    def schema(self) -> ArrowSchema:
        out = ArrowSchema()
        code = self.get_schema(out)
        if code:
            raise StreamError(code, self.last_error())
        return out

    def empty_chunk(self) -> Any:
        """What `get_next` fills."""
        return ArrowDeviceArray() if self.device else ArrowArray()

    def next_chunk(self) -> Any:
        """None at the end."""
        out = self.empty_chunk()
        code = self.get_next(out)
        if code:
            raise StreamError(code, self.last_error())
        return out if base(out).release else None

    def chunks(self) -> list[Any]:
        """All that are left."""
        found = []
        while (chunk := self.next_chunk()) is not None:
            found.append(chunk)
        return found

    def release(self) -> None:
        if self.structure.release:
            RELEASE(self.structure.release)(self.address)


def base(structure: Any) -> Any:
    """The one that has the release: of a device array the array in it."""
    return structure.array if isinstance(structure, ArrowDeviceArray) else structure


def moved(source: Any) -> Any:
    """A structure at another place; the first one counts as released and is wiped."""
    target = type(source).from_buffer_copy(source)
    ctypes.memset(addressof(source), 0xAA, sizeof(source))
    base(source).release = None
    return target


def read_array(schema: ArrowSchema, structure: Any) -> list[Any]:
    """The values of an array, or of one for devices that is on the CPU."""
    return read_values(read_field(schema), base(structure))


def opened(x: Any) -> Reader:
    """The stream of an object."""
    method = getattr(x, "__arrow_c_stream__", None) or x.__arrow_c_device_stream__
    return Reader(method())


def values_of_stream(x: Any) -> list[Any]:
    """The values of all chunks of an object."""
    reader = opened(x)
    schema, values = reader.schema(), []
    for chunk in reader.chunks():
        values += read_array(schema, chunk)
        release(base(chunk))
    release(schema)
    reader.release()
    return values
