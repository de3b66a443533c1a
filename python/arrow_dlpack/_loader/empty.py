"""Sources without rows in place of those with rows: a `Loader` is checked with them, and the
columns that it and a `Mix` have are those of these.
"""

from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from .. import _core
from .._frames import converts, is_pandas_frame
from .kinds import is_path
from .known import is_in_memory, known_schema, library_of
from .merging import alike, merged_of
from .readers import is_column, objects_of, reader_of, table_of
from .schema import with_types


def emptied(data: Any) -> Any:
    """The same kind of source with these columns and no rows; None where they cost something.

    data: no Mix. No row is read for it, and no query is run.
    """
    if isinstance(data, (list, tuple)):
        parts = [] if is_path(data) else list(map(emptied, data))
        return None if not parts or any(part is None for part in parts) else parts
    return _emptied_column(data) if is_column(data) else _emptied_table(data)


def _emptied_table(data: Any) -> Any:
    library = library_of(data)
    if library == "polars" and hasattr(data, "clear") and hasattr(data, "height"):
        return data.clear()
    if library == "pandas":
        return _emptied_frame(data)
    schema = known_schema(data)
    if schema is None:
        return None
    is_dataset = hasattr(data, "scanner") and not is_in_memory(data)
    return dataset_of(schema) if is_dataset else table_of(schema)


def _emptied_column(column: Any) -> Any:
    """One without rows, of structs a table."""
    pa = import_module("pyarrow")
    try:
        if isinstance(column, _core.Array):
            kind = pa.field(column.field).type
            empty = _core.Array(pa.chunked_array([], kind))
        else:
            empty = column[:0]
            kind = pa.chunked_array(empty).type
    except (NotImplementedError, TypeError, ValueError):  # of types that pyarrow does not know
        return None
    return table_of(pa.schema(list(kind))) if pa.types.is_struct(kind) else empty


def emptied_files(schemas: Sequence[Any]) -> Any:
    """Those that have these schemas."""
    return dataset_of(schemas[0]) if len(schemas) == 1 else list(map(table_of, schemas))


def _emptied_frame(frame: Any) -> Any:
    """A table in which columns of Python's objects, and those that do not convert, are nulls."""
    if not is_pandas_frame(frame):
        return None
    empty = frame.iloc[:0].copy()
    for at in () if converts(empty) else range(empty.shape[1]):
        if not converts(empty.iloc[:, [at]]):
            empty.isetitem(at, empty.iloc[:, at].astype(object))
    try:
        return reader_of(empty).read_all()
    except (NotImplementedError, TypeError, ValueError):  # of an index that does not convert
        return None


def unknown_names(data: Any, empty: Any) -> set[str]:
    """The columns whose types are known when they are read: Python's objects of pandas.

    empty: `emptied` data. What has a type in another part is not among them.
    """
    if isinstance(empty, list):
        found = set().union(*map(unknown_names, data, empty))
        schemas = schemas_of(empty)
        return found - {own.name for schema in schemas for own in schema if not _is_null(own)}
    if not is_pandas_frame(data):
        return set()
    return {own.name for own in empty.schema if _is_null(own)}


def _is_null(field: Any) -> bool:
    return bool(import_module("pyarrow").types.is_null(field.type))


def schema_of(empty: Any) -> Any:
    """That of a source without rows, of several sources the first one's."""
    empty = _parts_of(empty)[0]
    known = getattr(empty, "schema", None)
    return known if isinstance(known, import_module("pyarrow").Schema) else reader_of(empty).schema


def shown_schema_of(empty: Any) -> Any:
    """The same, with the type of all sources where a column has one, but that Python's objects of
    polars are none of the types that Arrow has.
    """
    schemas = list(map(_shown_schema_of, _parts_of(empty)))
    counts, kinds = [Counter(of.names) for of in schemas], {}
    for own in schemas[0]:
        pairs = zip(schemas, counts, strict=True)
        known = [of.field(own.name) for of, named in pairs if named[own.name] == 1]
        kind = merged_of(known)[0] if known else None
        # Widths of texts and lists say nothing of the tensors.
        is_coded = import_module("pyarrow").types.is_dictionary(own.type)
        if kind is not None and (is_coded or not alike(own.type).equals(alike(kind))):
            kinds[own.name] = kind
    return with_types(schemas[0], kinds)


def _shown_schema_of(empty: Any) -> Any:
    pa = import_module("pyarrow")
    objects = dict.fromkeys(objects_of(empty), pa.opaque(pa.null(), "object", "polars"))
    return with_types(schema_of(empty), objects)


def _parts_of(empty: Any) -> list[Any]:
    if not isinstance(empty, list):
        return [empty]
    return [part for one in empty for part in _parts_of(one)]


def schemas_of(empty: Any) -> list[Any]:
    """Those of sources without rows."""
    return list(map(schema_of, _parts_of(empty)))


def dataset_of(schema: Any) -> Any:
    """One without rows."""
    return import_module("pyarrow.dataset").dataset(table_of(schema))
