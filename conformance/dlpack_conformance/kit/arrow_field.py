"""An Arrow type and name, as the C data interface says them."""

import ctypes
import struct
from dataclasses import dataclass
from typing import Any

from dlpack_conformance.abi.arrow import ARROW_SCHEMA, NULLABLE, RELEASE, ArrowSchema
from dlpack_conformance.abi.capsule import (
    PyCapsule_New,
    take_exception_away,
)

SCHEMAS: list[Any] = []  # for the life of the process


@dataclass(frozen=True)
class Field:
    """`format` is that of the index for a dictionary-encoded type."""

    format: str
    name: str = ""
    children: tuple["Field", ...] = ()
    dictionary: "Field | None" = None
    flags: int = NULLABLE
    metadata: tuple[tuple[bytes, bytes], ...] = ()


def struct_of(*children: Field) -> Field:
    """The type of record batches and tables."""
    return Field("+s", children=children, flags=0)


def encode_metadata(pairs: tuple[tuple[bytes, bytes], ...]) -> bytes | None:
    if not pairs:
        return None
    texts = [text for pair in pairs for text in pair]
    return struct.pack("i", len(pairs)) + b"".join(struct.pack("i", len(t)) + t for t in texts)


def fill_schema(schema: ArrowSchema, field: Field) -> None:
    """Writes the field and its children; its release counts nothing and frees nothing: all memory
    is the kit's."""
    children = [ArrowSchema() for _ in field.children]
    for child, its in zip(children, field.children, strict=True):
        fill_schema(child, its)
    dictionary = None if field.dictionary is None else ArrowSchema()
    if dictionary is not None and field.dictionary is not None:
        fill_schema(dictionary, field.dictionary)
    pointers = (ctypes.c_void_p * len(children))(*map(ctypes.addressof, children))
    metadata = encode_metadata(field.metadata)
    memory = None if metadata is None else ctypes.create_string_buffer(metadata, len(metadata))
    release = RELEASE(release_schema)
    SCHEMAS.append((schema, children, dictionary, pointers, memory, release))
    schema.format, schema.name = field.format.encode(), field.name.encode()
    schema.metadata = None if memory is None else ctypes.addressof(memory)
    schema.flags, schema.n_children = field.flags, len(children)
    schema.children = pointers if children else None
    schema.dictionary = None if dictionary is None else ctypes.addressof(dictionary)
    schema.release = ctypes.cast(release, ctypes.c_void_p).value


def release_schema(address: int) -> None:
    take_exception_away()
    schema = ArrowSchema.from_address(address)
    schema.release = None


def schema_capsule(field: Field) -> Any:
    """A capsule without a destructor, of memory that is never freed."""
    schema = ArrowSchema()
    fill_schema(schema, field)
    return PyCapsule_New(ctypes.addressof(schema), ARROW_SCHEMA, None)


class Typed:
    """An object with `__arrow_c_schema__`."""

    def __init__(self, field: Field) -> None:
        self.field = field

    def __arrow_c_schema__(self) -> Any:
        return schema_capsule(self.field)
