"""Which Arrow types are lists, texts and binaries, of pyarrow's several."""

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
