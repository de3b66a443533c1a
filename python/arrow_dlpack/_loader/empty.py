"""Sources without rows in place of those with rows: a `Loader` is checked with them."""

from importlib import import_module
from typing import Any

from .. import _core
from .kinds import is_local, is_path
from .mix import Mix, source_of
from .readers import reader_of, table_of

#: What DuckDB's classes are from, by its version.
_DUCKDB = ("duckdb", "_duckdb")

#: Types of DuckDB's whose Arrow type depends on `arrow_lossless_conversion`.
_DUCKDB_SETTINGS = ("HUGEINT", "UUID", "BIT", "TIME WITH TIME ZONE", "JSON", "BIGNUM", "VARINT")


def emptied(data: Any) -> Any:
    """The same kind of source with these columns and no rows; None where they cost something.

    No row is read for it, and no query is run: a Loader is checked with it when it is made.
    """
    if isinstance(data, Mix):
        parts = [_emptied_part(one) for one, _ in data.sources]
        return None if any(part is None for part in parts) else data.of(parts)
    if isinstance(data, (list, tuple)):
        parts = [] if is_path(data) else list(map(emptied, data))
        return None if not parts or any(part is None for part in parts) else parts
    library = _library_of(data)
    if library == "polars" and hasattr(data, "clear") and hasattr(data, "height"):
        return data.clear()
    if library == "pandas":
        return _emptied_frame(data)
    schema = known_schema(data)
    if schema is None:
        return None
    return dataset_of(schema) if hasattr(data, "scanner") else table_of(schema)


def _emptied_part(data: Any) -> Any:
    """Of a Mix: `emptied`, and one file of this machine by its footer."""
    if not is_local(data):
        return emptied(data)
    try:
        head = source_of(data).head()
    except (OSError, ValueError):  # of a file that is not there yet, or not whole
        return None
    schema, is_only = head or (None, False)
    return dataset_of(schema) if is_only else None


def _emptied_frame(frame: Any) -> Any:
    if not hasattr(frame, "dtypes") or not hasattr(frame, "columns"):
        return None
    kinds = [*frame.dtypes, *getattr(frame.index, "dtypes", [frame.index.dtype])]
    # The types of Python's objects are known when they are read.
    if any(kind == object for kind in kinds):  # noqa: E721
        return None
    try:
        return reader_of(frame.iloc[:0]).read_all()
    except (NotImplementedError, TypeError, ValueError):  # of a column that nobody may read
        return None


def _library_of(data: Any) -> str:
    """What it is from, also where a user has a class of it."""
    names = [kind.__module__.partition(".")[0] for kind in type(data).__mro__]
    known = (name for name in names if name in ("pandas", "polars", *_DUCKDB))
    return next(known, names[0])


def schema_of(empty: Any) -> Any:
    """That of a source without rows, of several sources the first one's."""
    while isinstance(empty, (list, Mix)):
        empty = empty[0] if isinstance(empty, list) else empty.sources[0][0]
    pa = import_module("pyarrow")
    known = getattr(empty, "schema", None)
    return known if isinstance(known, pa.Schema) else reader_of(empty).schema


def schemas_of(empty: Any) -> list[Any]:
    """Those of sources without rows."""
    if not isinstance(empty, (list, Mix)):
        return [schema_of(empty)]
    several = empty if isinstance(empty, list) else [one for one, _ in empty.sources]
    return [schema for one in several for schema in schemas_of(one)]


def dataset_of(schema: Any) -> Any:
    """One without rows."""
    return import_module("pyarrow.dataset").dataset(table_of(schema))


def names_of(data: Any) -> list[str] | None:
    """The columns of a source whose types are not known before it is read, if it tells them."""
    library = _library_of(data)
    if library == "pandas" and hasattr(data, "dtypes") and hasattr(data, "columns"):
        levels = [name for name in data.index.names if name is not None]
        return [str(name) for name in [*data.columns, *levels]]
    if library in _DUCKDB and hasattr(data, "columns"):
        return list(data.columns)
    return None


def known_schema(data: Any) -> Any:
    """pyarrow's schema of a source that tells it without being read, else None."""
    try:
        pa = import_module("pyarrow")
    except ImportError:
        return None
    if hasattr(data, "with_format") and hasattr(data, "select_columns"):
        return _schema_of_hugging_face(data)
    if _library_of(data) in _DUCKDB and hasattr(data, "types"):
        return _schema_of_duckdb(data)
    # Structs are a table.
    kind = pa.field(data.field).type if isinstance(data, _core.Array) else None
    kind = kind or getattr(data, "type", None)
    if isinstance(kind, pa.StructType):
        return pa.schema(list(kind))
    # What other libraries call a schema may take a query.
    is_known = type(data).__module__.startswith("pyarrow.") or hasattr(data, "scanner")
    names = ("schema", "projected_schema", "schema_arrow") if is_known else ()
    found = (getattr(data, name, None) for name in names)
    return next((schema for schema in found if isinstance(schema, pa.Schema)), None)


def _schema_of_duckdb(relation: Any) -> Any:
    """Of the types that it names, by another connection.

    A query on the connection of the relation would end what is being read of it.
    """
    kinds = list(map(str, relation.types))
    # What Arrow has for these is a setting of the relation's connection.
    if any(word in kind for kind in kinds for word in _DUCKDB_SETTINGS):
        return None
    names = [name.replace('"', '""') for name in relation.columns]
    columns = ", ".join(
        f'CAST(NULL AS {kind}) AS "{name}"' for name, kind in zip(names, kinds, strict=True)
    )
    duckdb = import_module("duckdb")
    try:
        with duckdb.connect() as connection:
            return connection.sql(f"SELECT {columns} LIMIT 0").to_arrow_table().schema
    except duckdb.Error:  # of types that an extension or the relation's database has
        return None


def _schema_of_hugging_face(dataset: Any) -> Any:
    schema = getattr(getattr(dataset, "features", None), "arrow_schema", None)
    own = getattr(dataset, "format", {}).get("columns") or []
    if schema is None or not 0 < len(own) < len(schema):
        return schema
    # Others may be named.
    return None
