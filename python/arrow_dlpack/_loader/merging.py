"""The one type for the values of several types, and types that are encodings of one.

Values in another encoding are of one type; numbers widen where no value changes; everything else
has no type of all. `_RULES` has what each family of types does, `_ALIKE` its encodings.
"""

from collections.abc import Callable, Sequence
from importlib import import_module
from operator import itemgetter
from typing import Any

from .._arrow_types import (
    has_offsets,
    is_binary,
    is_list_view,
    is_one_type,
    is_text,
    meaning_of,
    with_inner,
)
from .readers import without_view


def type_of_all(fields: Sequence[Any], dtype: Any, *, is_stored: bool = False) -> Any:
    """The type of all values, or else that with this one in place of all numbers; or None.

    dtype: None for numbers that stay what they are.
    is_stored: whether an unregistered type goes with what it is stored as.
    """
    types = [own.type for own in fields]
    kind, _ = _merged_types(types) if is_stored else merged_of(fields)
    if kind is not None or dtype is None or are_codes(types):
        return kind
    wished = [_with_numbers(own, dtype) for own in types]
    if None in wished:
        return None
    is_one = is_stored or _merged_types(_identities(fields, dtype))[0] is not None
    return _merged_types(wished)[0] if is_one else None


def are_codes(kinds: Sequence[Any]) -> bool:
    """Whether all are dictionaries, or lists of them, whose values no wish for numbers takes."""
    types = import_module("pyarrow").types

    def is_code(kind: Any) -> bool:
        while has_offsets(kind) or types.is_fixed_size_list(kind):
            kind = kind.value_type
        return bool(types.is_dictionary(kind))

    return all(map(is_code, kinds))


def _identities(fields: Sequence[Any], dtype: Any = None) -> list[Any]:
    """What extension types are beside their storage, and numbers as this dtype."""
    kinds = [meaning_of(own, has_storage=False) for own in fields]
    if dtype is None:
        return kinds
    return [_with_numbers(kind, dtype) or kind for kind in kinds]


def differing(fields: Sequence[Any], dtype: Any = None) -> tuple[int, int]:
    """The first two fields, by their numbers, that have no type for the values of both.

    dtype: what numbers become, None for those that stay.
    """
    types = [own.type for own in fields]
    dtype = None if are_codes(types) else dtype
    if dtype is not None:
        types = [_with_numbers(kind, dtype) or kind for kind in types]
    kinds = types if _merged_types(types)[0] is None else _identities(fields, dtype)
    _, at = _merged_types(kinds)
    return next((one for one in range(at) if merged(kinds[one], kinds[at]) is None), 0), at


def merged_of(fields: Sequence[Any]) -> tuple[Any, int]:
    """The type of all values; None, and the first field that does not go with one before."""
    kinds, identities = [own.type for own in fields], _identities(fields)
    whole, at = _merged_types(kinds)
    if whole is None or identities == kinds:
        return whole, at
    told, at = _merged_types(identities)
    return (whole, 0) if told is not None else (None, at)


def _merged_types(kinds: Sequence[Any]) -> tuple[Any, int]:
    kinds = _of_one_inner(kinds)
    # Floats first: small integers go with them, and the integers that hold some of these do not.
    order = sorted(range(len(kinds)), key=lambda at: not is_a("floating")(kinds[at]))
    whole = kinds[order[0]]
    for at in order:
        whole = merged(whole, kinds[at])
        if whole is None:
            pairs = ((one, two) for two in range(len(kinds)) for one in range(two))
            wrong = (two for one, two in pairs if merged(kinds[one], kinds[two]) is None)
            return None, next(wrong, at)
    return whole, 0


def _of_one_inner(kinds: Sequence[Any]) -> Sequence[Any]:
    """The types, lists or structs of one kind with the type of all that is in them."""
    types = import_module("pyarrow").types
    nested = [kind for kind in kinds if not types.is_null(kind)]
    if len(nested) < 3:
        return kinds
    if all(map(types.is_struct, nested)):
        inner = [{field.name: field for field in kind} for kind in nested]
        if any(own.keys() != inner[0].keys() for own in inner):
            return kinds
    elif all(map(has_offsets, nested)) or all(map(types.is_fixed_size_list, nested)):
        inner = [{"": kind.value_field} for kind in nested]
    else:
        return kinds
    whole = {name: _merged_types([own[name].type for own in inner])[0] for name in inner[0]}
    if None in whole.values():
        return kinds
    # The metadata of what is null in one of them does not say what its values are.
    says = {name: first_of([own[name] for own in inner]).metadata for name in inner[0]}
    filled = (
        with_inner(
            kind,
            [of.with_type(whole[name]).with_metadata(says[name]) for name, of in own.items()],
        )
        for kind, own in zip(nested, inner, strict=True)
    )
    return [kind if types.is_null(kind) else next(filled) for kind in kinds]


def of_numbers(one: Any, other: Any) -> Any:
    """The type of both with floats in place of their numbers, None if there is none."""
    float64 = import_module("pyarrow").float64()
    kinds = [_with_numbers(kind, float64) for kind in (one, other)]
    return None if None in kinds else merged(*kinds)


def merged(one: Any, other: Any) -> Any:
    """The type of the values of both, None if there is none that has them all unchanged."""
    types = import_module("pyarrow").types
    if is_one_type(one, other) or types.is_null(other):
        return one
    if types.is_null(one):
        return other
    if types.is_dictionary(one) != types.is_dictionary(other):
        return without_view(merged(decoded_type(one), decoded_type(other)))
    rules = (rule for tells, rule in _RULES if tells(one) and tells(other))
    return next(rules, lambda *_: None)(one, other)


def decoded_type(kind: Any) -> Any:
    return kind.value_type if import_module("pyarrow").types.is_dictionary(kind) else kind


def _merged_dictionaries(one: Any, other: Any) -> Any:
    pa = import_module("pyarrow")
    values = without_view(merged(one.value_type, other.value_type))
    index = merged(one.index_type, other.index_type) or pa.int64()
    return values and pa.dictionary(index, values, one.ordered and other.ordered)


def _merged_decimals(one: Any, other: Any) -> Any:
    if one.scale != other.scale:
        return None
    widest = max(one, other, key=lambda kind: kind.bit_width)
    make = getattr(import_module("pyarrow"), f"decimal{widest.bit_width}")
    return make(max(one.precision, other.precision), one.scale)


def _merged_numbers(one: Any, other: Any) -> Any:
    pa = import_module("pyarrow")
    types = pa.types
    wide = max(one, other, key=lambda kind: kind.bit_width)
    floats = [kind for kind in (one, other) if types.is_floating(kind)]
    if len(floats) == 1:
        integer = other if floats[0] is one else one
        return pa.float64() if integer.bit_width <= 32 else None
    if floats or types.is_signed_integer(one) == types.is_signed_integer(other):
        return wide
    unsigned, signed = (one, other) if types.is_unsigned_integer(one) else (other, one)
    if unsigned.bit_width == 64:
        return None
    return pa.type_for_alias(f"int{max(signed.bit_width, 2 * unsigned.bit_width)}")


def _merged_tensors(one: Any, other: Any) -> Any:
    values = merged(one.value_type, other.value_type)
    if values is None:
        return None
    if one.permutation == other.permutation:
        of = import_module("pyarrow").fixed_shape_tensor
        is_one = (one.shape, one.dim_names) == (other.shape, other.dim_names)
        return of(values, one.shape, one.dim_names, one.permutation) if is_one else None
    kind, theirs = (_row_major(own, values) for own in (one, other))
    return kind if kind.equals(theirs) else None


def _merged_json_or_opaque(one: Any, other: Any) -> Any:
    """JSON, or opaque values of one type, which are texts or binaries in any encoding."""
    plain, theirs = alike(one), alike(other)
    return plain if plain.equals(theirs) else None


def _is_json_or_opaque(kind: Any) -> bool:
    pa = import_module("pyarrow")
    return isinstance(kind, (pa.JsonType, pa.OpaqueType))


def _row_major(kind: Any, values: Any) -> Any:
    """The type of the same tensors whose axes lie in their order, with values of another type."""
    order = kind.permutation or range(len(kind.shape))
    names = kind.dim_names and [kind.dim_names[axis] for axis in order]
    shape = [kind.shape[axis] for axis in order]
    return import_module("pyarrow").fixed_shape_tensor(values, shape, names)


def is_tensor(kind: Any) -> bool:
    return isinstance(kind, import_module("pyarrow").FixedShapeTensorType)


def _merged_structs(one: Any, other: Any) -> Any:
    names, others = (
        [kind.field(at).name for at in range(kind.num_fields)] for kind in (one, other)
    )
    if sorted(names) != sorted(others) or len(set(names)) < len(names):
        return None
    fields = [_merged_items(one.field(name), other.field(name)) for name in names]
    is_one = all(field is not None for field in fields)
    return import_module("pyarrow").struct(fields) if is_one else None


def _merged_maps(one: Any, other: Any) -> Any:
    key = _merged_items(one.key_field, other.key_field)
    item = _merged_items(one.item_field, other.item_field)
    return key and item and import_module("pyarrow").map_(key, item)


def _merged_fixed_lists(one: Any, other: Any) -> Any:
    items = _merged_items(one.value_field, other.value_field)
    is_one_size = one.list_size == other.list_size
    return import_module("pyarrow").list_(items, one.list_size) if items and is_one_size else None


def _merged_lists(one: Any, other: Any) -> Any:
    pa = import_module("pyarrow")
    items = _merged_items(one.value_field, other.value_field)
    is_large = pa.types.is_large_list(one) or pa.types.is_large_list(other)
    return items and (pa.large_list(items) if is_large else pa.list_(items))


def _merged_list_views(one: Any, other: Any) -> Any:
    """Where what is in one is what is in the other, but for nulls."""
    pa = import_module("pyarrow")
    items = _merged_items(one.value_field, other.value_field)
    if items is None or not all(_has_all(items.type, kind.value_type) for kind in (one, other)):
        return None
    is_large = pa.types.is_large_list_view(one) or pa.types.is_large_list_view(other)
    return pa.large_list_view(items) if is_large else pa.list_view(items)


def _merged_items(one: Any, other: Any) -> Any:
    kind, is_nullable = merged(one.type, other.type), one.nullable or other.nullable
    own = first_of([one, other]).with_name(one.name)
    return kind and own.with_type(kind).with_nullable(is_nullable)


def first_of(fields: Sequence[Any]) -> Any:
    """The first field that has a type, whose metadata says what its values are."""
    is_null = import_module("pyarrow").types.is_null
    return next((own for own in fields if not is_null(own.type)), fields[0])


def is_number(kind: Any) -> bool:
    types = import_module("pyarrow").types
    return bool(types.is_integer(kind) or types.is_floating(kind))


def has_numbers(kind: Any) -> bool:
    """Whether a dtype makes numbers of its values: of numbers, booleans and decimals."""
    return is_number(kind) or is_bool(kind) or is_a("decimal")(kind)


def is_bool(kind: Any) -> bool:
    """Whether it is of booleans, in bits or in bytes."""
    pa = import_module("pyarrow")
    return bool(pa.types.is_boolean(kind) or isinstance(kind, pa.Bool8Type))


def is_a(name: str) -> Callable[[Any], bool]:
    return lambda kind: bool(getattr(import_module("pyarrow").types, f"is_{name}")(kind))


#: What tells two types of one family, and what merges them.
_RULES: list[tuple[Callable[[Any], bool], Callable[[Any, Any], Any]]] = [
    (is_a("dictionary"), _merged_dictionaries),
    (is_text, lambda *_: import_module("pyarrow").large_string()),
    (is_binary, lambda *_: import_module("pyarrow").large_binary()),
    (is_bool, lambda *_: import_module("pyarrow").bool_()),
    (is_number, _merged_numbers),
    (is_a("decimal"), _merged_decimals),
    (is_a("struct"), _merged_structs),
    (is_a("map"), _merged_maps),
    (is_a("fixed_size_list"), _merged_fixed_lists),
    (has_offsets, _merged_lists),
    (is_list_view, _merged_list_views),
    (is_tensor, _merged_tensors),
    (_is_json_or_opaque, _merged_json_or_opaque),
]


def _with_numbers(kind: Any, dtype: Any) -> Any:
    """The type with this one in place of its numbers, which may be in lists and tensors; None of
    others.
    """
    pa = import_module("pyarrow")
    types, kind = pa.types, decoded_type(kind)
    if is_tensor(kind):
        return _row_major(kind, dtype) if _becomes(kind.value_type, dtype) else None
    if has_numbers(kind):
        return dtype if _becomes(kind, dtype) else None
    if not (has_offsets(kind) or types.is_fixed_size_list(kind)):
        return kind if types.is_null(kind) else None
    items = _with_numbers(kind.value_type, dtype)
    if items is None:
        return None
    return with_inner(kind, [kind.value_field.with_type(items)])


def _becomes(kind: Any, dtype: Any) -> bool:
    """Whether numbers of the type become such ones: integers of a decimal are those of its scale,
    and no number becomes a boolean.
    """
    types = import_module("pyarrow").types
    if types.is_decimal(kind):
        return bool(types.is_floating(dtype))
    return is_bool(kind) or not types.is_boolean(dtype)


def is_one_encoding(one: Any, other: Any) -> bool:
    """Whether types have the same values in another encoding: no number is another one.

    Where the other one has nulls alone, at any depth, it goes with all types.
    """
    return _has_all(alike(one), alike(other)) and merged(one, other) is not None


def _has_all(one: Any, other: Any) -> bool:
    """Whether the type is the other one, but for nulls in that."""
    types = import_module("pyarrow").types
    if types.is_null(other) or one.equals(other):
        return True
    tells = types.is_struct, types.is_fixed_size_list, types.is_large_list, types.is_map
    if not any(tell(one) and tell(other) for tell in tells):
        return False
    if types.is_fixed_size_list(one) and one.list_size != other.list_size:
        return False
    inner, others = ([of.field(at) for at in range(of.num_fields)] for of in (one, other))
    if types.is_struct(one) and [own.name for own in inner] != [own.name for own in others]:
        return False
    pairs = zip(inner, others, strict=True)
    return all(_has_all(own.type, theirs.type) for own, theirs in pairs)


def alike(kind: Any) -> Any:
    """One type for all encodings of the same values: large texts and lists, and no dictionaries."""
    kind = decoded_type(kind)
    makes = (make for tells, make in _ALIKE if tells(kind))
    return next(makes, lambda own: own)(kind)


def _alike_structs(kind: Any) -> Any:
    fields = ((own.name, alike(own.type)) for own in kind)
    return import_module("pyarrow").struct(sorted(fields, key=itemgetter(0)))


def _alike_json_or_opaque(kind: Any) -> Any:
    pa, stored = import_module("pyarrow"), alike(kind.storage_type)
    is_json = isinstance(kind, pa.JsonType)
    return pa.json_(stored) if is_json else pa.opaque(stored, kind.type_name, kind.vendor_name)


#: What tells a type of one family, and what makes the type of all encodings of it.
_ALIKE: list[tuple[Callable[[Any], bool], Callable[[Any], Any]]] = [
    (is_text, lambda _: import_module("pyarrow").large_string()),
    (is_binary, lambda _: import_module("pyarrow").large_binary()),
    (is_bool, lambda _: import_module("pyarrow").bool_()),
    (has_offsets, lambda kind: import_module("pyarrow").large_list(alike(kind.value_type))),
    (is_list_view, lambda kind: import_module("pyarrow").large_list(alike(kind.value_type))),
    (
        is_a("fixed_size_list"),
        lambda kind: import_module("pyarrow").list_(alike(kind.value_type), kind.list_size),
    ),
    (
        is_a("map"),
        lambda kind: import_module("pyarrow").map_(alike(kind.key_type), alike(kind.item_type)),
    ),
    (is_a("struct"), _alike_structs),
    (_is_json_or_opaque, _alike_json_or_opaque),
]
