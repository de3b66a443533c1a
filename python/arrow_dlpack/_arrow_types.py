"""Which Arrow types are lists, texts and binaries, of pyarrow's several, and what is one type."""

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
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


def has_matrices(kind: Any) -> bool:
    """Whether lists of fixed size in lists of fixed size are in it, at any depth.

    Where such an array is a slice pyarrow 26 takes and filters other rows, of other memory too: it
    adds the offset of the inner lists twice. Only the engine takes rows of these.
    """
    pa = import_module("pyarrow")
    if isinstance(kind, pa.BaseExtensionType):
        return has_matrices(kind.storage_type)
    is_fixed = pa.types.is_fixed_size_list
    if is_fixed(kind) and is_fixed(kind.value_type):
        return True
    return any(has_matrices(kind.field(at).type) for at in range(kind.num_fields))


def extensions_of(kind: Any) -> list[Any]:
    """The extension types in a type, at any depth."""
    pa = import_module("pyarrow")
    if isinstance(kind, pa.BaseExtensionType):
        return [kind]
    if has_values(kind):
        return extensions_of(kind.value_type)
    inner = (kind.field(at).type for at in range(kind.num_fields))
    return [one for own in inner for one in extensions_of(own)]


def has_values(kind: Any) -> bool:
    """Whether it is an encoding of values of another type: a dictionary, or runs."""
    types = import_module("pyarrow").types
    return bool(types.is_dictionary(kind) or types.is_run_end_encoded(kind))


def items_of(array: Any) -> Any:
    """What is in the lists of an array.

    Of no rows pyarrow's own flatten ends the process if the offsets do not begin at 0: so they are
    in its IPC files, where the first chunk was such a slice.
    """
    if len(array):
        return array.flatten()
    return import_module("pyarrow").nulls(0, array.type.value_type)


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


def extension_of(field: Any) -> tuple[str, str] | None:
    """The name and the metadata of an extension type that Arrow has not, such as pandas's periods.

    A process that has not registered it finds both in the metadata of the field.
    """
    pa, kind = import_module("pyarrow"), field.type
    if isinstance(kind, pa.ExtensionType):
        name, text = kind.extension_name, kind.__arrow_ext_serialize__()
    else:
        metadata = {} if isinstance(kind, pa.BaseExtensionType) else field.metadata or {}
        name = metadata.get(b"ARROW:extension:name", b"").decode(errors="backslashreplace")
        text = metadata.get(b"ARROW:extension:metadata", b"")
    return (name, text.decode(errors="backslashreplace")) if name else None


def meaning_of(field: Any, *, has_storage: bool = True) -> Any:
    """The type of a field, to compare: opaque where an extension type says what its numbers are.

    The first month and the first day of pandas's periods are both stored as 0. Libraries write JSON
    with other blanks, and pyarrow calls dictionaries of two extension types one type.

    has_storage: False for the name and the metadata alone, which widths do not change.
    """
    pa, kind = import_module("pyarrow"), field.type
    if type(kind) is pa.DataType and field.metadata is None:
        return kind  # that of most columns
    if (extension := extension_of(field)) is not None:
        storage = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
        name, text = map(_canonical, extension)
        return pa.opaque(storage if has_storage else pa.null(), f"extension {name}", text)
    if has_values(kind):
        values = meaning_of(pa.field("", kind.value_type), has_storage=has_storage)
        return values if extensions_of(values) else kind
    if pa.types.is_map(kind):
        fields = [kind.key_field, kind.item_field]
    elif pa.types.is_struct(kind) or is_list(kind):
        fields = [kind.field(at) for at in range(kind.num_fields)]
    else:
        return kind
    meanings = [meaning_of(own, has_storage=has_storage) for own in fields]
    if all(one.equals(own.type) for one, own in zip(meanings, fields, strict=True)):
        return kind
    pairs = zip(fields, meanings, strict=True)
    return with_inner(kind, [own.with_type(meaning) for own, meaning in pairs])


def name_of(field: Any) -> str:
    """pyarrow's name of the type of a field, with what tells its extension types from others."""
    return name_of_type(meaning_of(field))


def name_of_type(kind: Any) -> str:
    """pyarrow's name of a type that `meaning_of` made."""
    return _OPAQUE.sub(_named, str(kind))


#: What `meaning_of` makes of an extension type, as pyarrow names it.
_OPAQUE = re.compile(
    r"extension<arrow\.opaque\[storage_type=(.*?), type_name=extension (.*?), vendor_name=(.*?)\]>"
)


def _named(opaque: "re.Match[str]") -> str:
    storage, name, metadata = opaque.groups()
    return f"extension<{name}> of {storage}" + (f" with {metadata}" if metadata else "")


def is_one_meaning(one: Any, other: Any) -> bool:
    """Whether fields have one type."""
    is_one = is_one_type(one.type, other.type)
    return bool(is_one and meaning_of(one).equals(meaning_of(other)))


def is_one_type(one: Any, other: Any) -> bool:
    """Whether types are equal, dictionaries and runs of extension types too: to pyarrow 26 all of
    these are, of codes of any widths, which would be read as those of another one.
    """
    return bool(one.equals(other) and _encodings(one) == _encodings(other))


def _encodings(kind: Any) -> list[Any]:
    """What each dictionary and each run in a type is of, in their order."""
    if has_values(kind):
        is_coded = import_module("pyarrow").types.is_dictionary(kind)
        width = kind.index_type if is_coded else kind.run_end_type
        return [width, kind.value_type, *_encodings(kind.value_type)]
    inner = (kind.field(at).type for at in range(kind.num_fields))
    return [one for own in inner for one in _encodings(own)]


def is_one_schema(one: Any, other: Any) -> bool:
    """Whether schemas have equal names and types, as `is_one_type` has it."""
    if not one.equals(other):
        return False
    plain, pairs = import_module("pyarrow").DataType, zip(one.types, other.types, strict=True)
    return all(type(kind) is plain or is_one_type(kind, theirs) for kind, theirs in pairs)


def comparison_with(schema: Any) -> Callable[[Any], bool]:
    """`is_one_schema` with this one, for many others."""
    if any(map(extensions_of, schema.types)):
        return partial(is_one_schema, schema)
    return partial(type(schema).equals, schema)


def is_one_storage(one: Any, other: Any) -> bool:
    """Whether schemas have equal names, and types that store equal values alike."""
    if one.names != other.names:
        return False
    return all(map(is_one_type, map(_stored, one.types), map(_stored, other.types)))


def _stored(kind: Any) -> Any:
    """The type without what does not change how values are stored: what may be null, names of
    items, the order of words, and where a zone is.
    """
    pa = import_module("pyarrow")
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return pa.timestamp(kind.unit, "UTC")
    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, _stored(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(_stored(kind.key_type), _stored(kind.item_type))
    if is_list(kind):
        return with_inner(kind, [pa.field("item", _stored(kind.value_type))])
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(own.name, _stored(own.type)) for own in kind])
    return kind


def _canonical(text: str) -> str:
    """A text of JSON in one form, which has no object without members; of a long one its start."""
    with suppress(RecursionError, ValueError):
        found = json.loads(text)
        text = "" if found == {} else json.dumps(found, sort_keys=True)
    if len(text) <= 100:
        return text
    digest = hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()
    return f"{text[:60]}... ({digest[:32]})"
