"""Which Arrow types are lists, texts and binaries, of pyarrow's several."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any


def has_offsets(kind: Any) -> bool:
    """Whether it is a list with offsets, of 32 or 64 bits: no view, and not of fixed size."""
    types = import_module("pyarrow").types
    return bool(types.is_list(kind) or types.is_large_list(kind))


def is_list_view(kind: Any) -> bool:
    types = import_module("pyarrow").types
    return bool(types.is_list_view(kind) or types.is_large_list_view(kind))


def is_list(kind: Any) -> bool:
    """Whether it is a list of any kind, of fixed size too."""
    types = import_module("pyarrow").types
    return has_offsets(kind) or is_list_view(kind) or bool(types.is_fixed_size_list(kind))


def is_text(kind: Any) -> bool:
    """Whether it is of texts, of offsets of either width or views."""
    types = import_module("pyarrow").types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def is_binary(kind: Any) -> bool:
    """Whether it is of binaries of any length, of offsets of either width or views."""
    types = import_module("pyarrow").types
    return bool(types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind))


def with_inner(kind: Any, fields: Sequence[Any]) -> Any:
    """The struct, the map or the list, of its kind, with these fields in it."""
    pa = import_module("pyarrow")
    if pa.types.is_struct(kind):
        return pa.struct(fields)
    if pa.types.is_map(kind):
        return pa.map_(*fields)
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(fields[0], kind.list_size)
    makes = {
        "list": pa.list_,
        "large_list": pa.large_list,
        "list_view": pa.list_view,
        "large_list_view": pa.large_list_view,
    }
    make = next(make for name, make in makes.items() if getattr(pa.types, f"is_{name}")(kind))
    return make(fields[0])
