"""For libraries of tables alone: an array as the only column of a table."""

import ctypes
from typing import Any

from dlpack_conformance.abi.arrow import (
    ARROW_ARRAY,
    ARROW_SCHEMA,
    RELEASE,
    ArrowArray,
    ArrowSchema,
)
from dlpack_conformance.abi.capsule import take_exception_away
from dlpack_conformance.kit.arrow_consumer import array_in, child, move, release, schema_in
from dlpack_conformance.kit.reference_arrow import capsule_of

COLUMNS: list[Any] = []  # for the life of the process


class AsColumn:
    """A table of the array of `x`, whose structures it moves; one of structs is a table already."""

    def __init__(self, x: Any) -> None:
        self.x = x

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
        schema_capsule, array_capsule = self.x.__arrow_c_array__()
        schema, array = schema_in(schema_capsule), array_in(array_capsule)
        if not schema.release or not array.release or schema.format == b"+s":
            return schema_capsule, array_capsule
        table = ArrowArray(length=array.length, n_buffers=1)
        table.buffers = (ctypes.c_void_p * 1)(None)
        return (
            parent_of(schema, ArrowSchema(format=b"+s", name=b""), ARROW_SCHEMA),
            parent_of(array, table, ARROW_ARRAY),
        )


def parent_of(part: Any, parent: Any, name: bytes) -> Any:
    """A capsule of the structure, with the part as its child."""
    moved = move(part)
    pointers = (ctypes.c_void_p * 1)(ctypes.addressof(moved))
    callback = RELEASE(lambda address: release_parent(type(parent).from_address(address)))
    parent.n_children, parent.children = 1, pointers
    parent.release = ctypes.cast(callback, ctypes.c_void_p)
    COLUMNS.append((moved, pointers, callback, parent))
    return capsule_of(parent, name)


def release_parent(parent: Any) -> None:
    take_exception_away()
    release(child(parent, 0))
    parent.release = None
