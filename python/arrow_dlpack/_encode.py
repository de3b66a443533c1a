"""`Categories`: values as codes, before the engine sees them."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any

from ._datasets import Source
from ._readers import Made, reader_of
from ._wishes import Categories


def scanned(
    source: Source, categories: Mapping[str, Categories], where: Any, is_opened_anew: bool = False
) -> dict[str, Categories]:
    """The same with the words of those who have none, for which the source is read once."""
    missing = [name for name, wish in categories.items() if wish.words is None]
    if not missing:
        return dict(categories)
    if source.once and not is_opened_anew:
        raise TypeError(
            "Categories without words reads the source before the first epoch, and this one can be "
            "read only once: pass the words, or a function of (index, count) that opens it"
        )
    found: dict[str, set[Any]] = {name: set() for name in missing}
    for batch in reader_of(source.read(missing, where)):
        for name in missing:
            words = _plain(_column(batch, name)).unique().to_pylist()
            found[name].update(word for word in words if word is not None)
    words = {name: replace(categories[name], words=sorted(found[name])) for name in missing}
    return {**categories, **words}


def encoded(stream: Any, categories: Mapping[str, Categories]) -> Any:
    """The stream with codes in place of these columns."""
    if not categories:
        return stream
    pa = import_module("pyarrow")
    reader = reader_of(stream)
    schema = reader.schema
    known = {}
    for name, wish in categories.items():
        field = _field(schema, name)
        codes = pa.field(name, pa.type_for_alias(wish.dtype), True)
        schema = schema.set(schema.get_field_index(name), codes)
        known[name] = pa.array(wish.words, _plain_type(field.type))

    def batches() -> Iterator[Any]:
        for batch in reader:
            columns = batch.columns
            for name, wish in categories.items():
                at = schema.get_field_index(name)
                codes = _codes(name, columns[at], known[name], wish.unknown)
                columns[at] = codes.cast(schema.field(at).type)
            yield pa.record_batch(columns, schema=schema)

    return Made(schema, batches())


def _codes(name: str, column: Any, known: Any, unknown: int | None) -> Any:
    pa, compute = import_module("pyarrow"), import_module("pyarrow.compute")
    values = _plain(column)
    codes = compute.index_in(values, value_set=known)
    if codes.null_count == values.null_count:
        return codes
    is_unknown = compute.and_(codes.is_null(), values.is_valid())
    if unknown is None:
        words = values.filter(is_unknown).unique().to_pylist()
        more = f" and {len(words) - 1} more" if len(words) > 1 else ""
        raise ValueError(
            f'column "{name}" has {words[0]!r}{more}, which is not among its {len(known)} '
            "categories: Categories(words, unknown=-1) gives others a code"
        )
    return compute.if_else(is_unknown, pa.scalar(unknown, pa.int32()), codes)


def _field(schema: Any, name: str) -> Any:
    if schema.names.count(name) != 1:
        raise KeyError(f'{schema.names.count(name)} columns are called "{name}"')
    return schema.field(name)


def _column(batch: Any, name: str) -> Any:
    return batch.column(batch.schema.get_field_index(_field(batch.schema, name).name))


def _plain_type(kind: Any) -> Any:
    """What a dictionary is of, and texts whose kernels pyarrow has."""
    types = import_module("pyarrow").types
    if types.is_dictionary(kind):
        return _plain_type(kind.value_type)
    if types.is_string_view(kind):
        return import_module("pyarrow").large_string()
    if types.is_binary_view(kind):
        return import_module("pyarrow").large_binary()
    return kind


def _plain(column: Any) -> Any:
    pa = import_module("pyarrow")
    if pa.types.is_dictionary(column.type):
        # pyarrow has no kernel that takes views.
        words = _plain(column.dictionary)
        column = pa.DictionaryArray.from_arrays(column.indices, words).dictionary_decode()
    return column.cast(_plain_type(column.type))
