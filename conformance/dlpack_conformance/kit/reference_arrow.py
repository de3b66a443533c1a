"""Arrow in the kit's reference library: arrays and streams of any type that keep the rules.

Buffers and texts are freed when they are released; structures live as long as the process.
"""

import ctypes
import errno
import struct
from collections.abc import Iterator, Sequence
from ctypes import addressof, c_void_p
from typing import Any

from dlpack_conformance.abi.arrow import (
    ARROW_ARRAY,
    ARROW_ARRAY_STREAM,
    ARROW_DEVICE_ARRAY,
    ARROW_DEVICE_ARRAY_STREAM,
    ARROW_SCHEMA,
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
    CAPSULE_DESTRUCTOR,
    PyCapsule_GetPointer,
    PyCapsule_New,
    dying_capsule_pointer,
    take_exception_away,
)
from dlpack_conformance.abi.dlpack import CPU
from dlpack_conformance.kit.arrow_buffers import check_array
from dlpack_conformance.kit.arrow_consumer import move, read_field, read_values, release
from dlpack_conformance.kit.arrow_field import Field
from dlpack_conformance.kit.arrow_producer import Made, array_part, schema_part
from dlpack_conformance.kit.arrow_reader import STREAM_KINDS, Reader, StreamError

KEPT: list[Any] = []  # for the life of the process
# What a request may ask for: formats of the same values.
FAMILIES = [set("cCsSiIlL"), {"u", "U", "vu"}, {"z", "Z", "vz"}]


def release_dying(capsule: int, name: bytes, kind: Any) -> None:
    take_exception_away()
    structure = kind.from_address(dying_capsule_pointer(capsule, name))
    release(structure.array if kind is ArrowDeviceArray else structure)


KINDS_IN: dict[bytes, Any] = {
    ARROW_SCHEMA: ArrowSchema,
    ARROW_ARRAY: ArrowArray,
    ARROW_DEVICE_ARRAY: ArrowDeviceArray,
    **STREAM_KINDS,
}


def destructor_of(name: bytes) -> Any:
    return CAPSULE_DESTRUCTOR(lambda capsule: release_dying(capsule, name, KINDS_IN[name]))


DESTRUCTORS = {name: destructor_of(name) for name in KINDS_IN}


def capsule_of(structure: Any, name: bytes) -> Any:
    """A capsule that releases its structure if no consumer moved it."""
    KEPT.append(structure)
    return PyCapsule_New(addressof(structure), name, ctypes.cast(DESTRUCTORS[name], c_void_p))


def make_schema(field: Field, out: ArrowSchema) -> None:
    KEPT.append(Made(schema_part(field), out, True, frees=True))


def make_array(field: Field, values: Sequence[Any], offset: int, out: ArrowArray) -> None:
    KEPT.append(Made(array_part(field, values, offset), out, True, frees=True))


def requested(field: Field, request: Any) -> Field:
    """The type to export: that which is asked for if it says the same values, else the data's."""
    if request is None:
        return field
    asked = read_field(ArrowSchema.from_address(PyCapsule_GetPointer(request, ARROW_SCHEMA)))
    if len(asked.children) != len(field.children):
        raise ValueError(f"{len(asked.children)} fields are not {len(field.children)}")
    same = any({asked.format, field.format} <= family for family in FAMILIES)
    return Field(asked.format, field.name, flags=field.flags) if same else field


def narrows(field: Field, values: Sequence[Any]) -> bool:
    """Whether values do not fit into the type."""
    try:
        array_part(field, values)
    except struct.error:
        return True
    return False


class Data:
    """Values of a type: an array, in memory from `offset` items on."""

    def __init__(self, field: Field, values: Sequence[Any], offset: int = 0) -> None:
        self.field, self.values, self.offset = field, list(values), offset

    def to_list(self) -> list[Any]:
        return self.values

    def sliced(self, start: int, length: int) -> "Data":
        return Data(self.field, self.values[start : start + length], self.offset + start)

    def answer(self, request: Any) -> Field:
        field = requested(self.field, request)
        return self.field if narrows(field, self.values) else field

    def __arrow_c_schema__(self) -> Any:
        schema = ArrowSchema()
        make_schema(self.field, schema)
        return capsule_of(schema, ARROW_SCHEMA)

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
        field, array = self.answer(requested_schema), ArrowArray()
        make_array(field, self.values, self.offset, array)
        return Data(field, []).__arrow_c_schema__(), capsule_of(array, ARROW_ARRAY)

    def __arrow_c_device_array__(
        self, requested_schema: Any = None, **keywords: Any
    ) -> tuple[Any, Any]:
        refuse_unknown(keywords)
        field, array = self.answer(requested_schema), ArrowDeviceArray()
        make_array(field, self.values, self.offset, array.array)
        array.device_type, array.device_id = CPU, -1
        return Data(field, []).__arrow_c_schema__(), capsule_of(array, ARROW_DEVICE_ARRAY)


def refuse_unknown(keywords: dict[str, Any]) -> None:
    unknown = [name for name, value in keywords.items() if value is not None]
    if unknown:
        raise NotImplementedError(f"keywords that are not known: {', '.join(unknown)}")


class Chunks:
    """A stream of chunks; with a message it fails after the last of them. `once` ones are read by
    the first stream that is asked for."""

    def __init__(
        self,
        field: Field,
        chunks: Sequence[Sequence[Any]],
        *,
        once: bool = False,
        message: str | None = None,
    ) -> None:
        self.field, self.chunks = field, list(chunks)
        self.once, self.message = once, message

    def __arrow_c_schema__(self) -> Any:
        return Data(self.field, []).__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return capsule_of(self.export(ArrowArrayStream(), requested_schema), ARROW_ARRAY_STREAM)

    def export(self, structure: Any, request: Any) -> Any:
        field = requested(self.field, request)
        if any(narrows(field, chunk) for chunk in self.chunks):
            field = self.field
        Source(self, field, structure)
        if self.once:
            self.chunks = []
        return structure


class DeviceChunks(Chunks):
    """The same for devices, of the CPU."""

    def __arrow_c_device_stream__(self, requested_schema: Any = None, **keywords: Any) -> Any:
        refuse_unknown(keywords)
        structure = self.export(ArrowDeviceArrayStream(), requested_schema)
        structure.device_type = CPU
        return capsule_of(structure, ARROW_DEVICE_ARRAY_STREAM)


class Source:
    """What a stream's structure calls."""

    def __init__(self, of: Chunks, field: Field, structure: Any) -> None:
        self.field, self.left, self.message = field, list(of.chunks), of.message
        self.kind: Any = type(structure)
        self.text = ctypes.create_string_buffer((of.message or "").encode())
        self.callbacks = {
            "get_schema": GET(self.get_schema),
            "get_next": GET(self.get_next),
            "get_last_error": GET_LAST_ERROR(self.get_last_error),
            "release": RELEASE(self.release),
        }
        for name, callback in self.callbacks.items():
            setattr(structure, name, ctypes.cast(callback, c_void_p))
        KEPT.append(self)

    def get_schema(self, _stream: int, out: int) -> int:
        take_exception_away()
        make_schema(self.field, ArrowSchema.from_address(out))
        return 0

    def get_next(self, _stream: int, out: int) -> int:
        take_exception_away()
        if not self.left and self.message is not None:
            return errno.EIO
        kind: Any = ArrowArray if self.kind is ArrowArrayStream else ArrowDeviceArray
        ctypes.memset(out, 0, ctypes.sizeof(kind))
        if self.left:
            # The array is the first member of one for devices.
            make_array(self.field, self.left.pop(0), 0, ArrowArray.from_address(out))
            if kind is ArrowDeviceArray:
                array = ArrowDeviceArray.from_address(out)
                array.device_type, array.device_id = CPU, -1
        return 0

    def get_last_error(self, _stream: int) -> int:
        take_exception_away()
        return addressof(self.text)

    def release(self, stream: int) -> None:
        take_exception_away()
        self.left = []
        self.kind.from_address(stream).release = None


class Taken:
    """What was moved out of a producer's capsules, until it is dropped."""

    def __init__(self, field: Field, array: Any) -> None:
        self.field, self.array = field, array
        check_array(field, array)

    def to_list(self) -> list[Any]:
        return read_values(self.field, self.array)

    def __del__(self) -> None:
        release(self.array)


def take_schema(capsule: Any) -> Field:
    """The type, released."""
    schema = move(live(ArrowSchema, capsule, ARROW_SCHEMA))
    try:
        field = read_field(schema)
        check(field)
        return field
    finally:
        release(schema)


CHILDREN = {"+r": 2, "+l": 1, "+L": 1, "+vl": 1, "+vL": 1, "+w": 1, "+m": 1}


def check(field: Field) -> None:
    """Refuses a type with another number of children than it has."""
    kind = field.format.split(":")[0]
    if len(field.children) != CHILDREN.get(kind, len(field.children)):
        raise ValueError(f"{len(field.children)} children of {field.format}")
    if kind == "+m" and len(field.children[0].children) != 2:
        raise ValueError("the entries of a map are no pairs")
    for child in field.children:
        check(child)


def live(kind: Any, capsule: Any, name: bytes) -> Any:
    """The structure in a capsule of this name."""
    structure = kind.from_address(PyCapsule_GetPointer(capsule, name))
    base = structure.array if kind is ArrowDeviceArray else structure
    if not base.release:
        raise ValueError(f"the {name.decode()} was released, or taken by another")
    return structure


def take_array(x: Any) -> Taken:
    if not hasattr(x, "__arrow_c_array__"):
        return take_device_array(x)
    schema, array = x.__arrow_c_array__()
    source = live(ArrowArray, array, ARROW_ARRAY)
    return Taken(take_schema(schema), move(source))


def take_device_array(x: Any) -> Taken:
    schema, capsule = x.__arrow_c_device_array__()
    source = live(ArrowDeviceArray, capsule, ARROW_DEVICE_ARRAY)
    if source.device_type != CPU:
        raise ValueError(f"device {source.device_type} is not the CPU")
    field = take_schema(schema)
    # The structure of the CPU is the first member, and all that is needed.
    return Taken(field, move(source.array))


class TakenChunks:
    """All that was read of a stream."""

    def __init__(self, chunks: list[Taken]) -> None:
        self.chunks = chunks

    def to_list(self) -> list[Any]:
        return [value for chunk in self.chunks for value in chunk.to_list()]


def take_stream(x: Any) -> TakenChunks:
    return TakenChunks(list(iterate(x)))


def iterate(x: Any) -> Iterator[Taken]:
    device = not hasattr(x, "__arrow_c_stream__")
    reader = Reader(x.__arrow_c_device_stream__() if device else x.__arrow_c_stream__())
    try:
        schema = reader.schema()
        field = read_field(schema)
        release(schema)
        while (chunk := reader.next_chunk()) is not None:
            yield Taken(field, chunk.array if device else chunk)
    except StreamError as error:
        raise OSError(error.code, str(error)) from None
    finally:
        reader.release()
