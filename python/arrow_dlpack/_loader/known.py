"""What a source tells of its columns, and of where its files lie, without being read."""

from contextlib import suppress
from importlib import import_module
from typing import Any

from .. import _core
from .._frames import class_of, frame_names, is_pandas_frame

#: What DuckDB's classes are from, by its version.
_DUCKDB = ("duckdb", "_duckdb")

#: Types of DuckDB's whose Arrow type depends on `arrow_lossless_conversion`.
_DUCKDB_SETTINGS = ("HUGEINT", "UUID", "BIT", "TIME WITH TIME ZONE", "JSON", "BIGNUM", "VARINT")


def library_of(data: Any) -> str:
    """What it is from, also where a user has a class of it."""
    names = [kind.__module__.partition(".")[0] for kind in type(data).__mro__]
    known = (name for name in names if name in ("pandas", "polars", *_DUCKDB))
    return next(known, names[0])


def is_of_duckdb(data: Any) -> bool:
    """Whether it is a relation, or a connection, which has one open result."""
    return library_of(data) in _DUCKDB


def names_of(data: Any) -> list[str] | None:
    """The columns of a source whose types are not known before it is read, if it tells them."""
    if is_pandas_frame(data):
        columns, levels = frame_names(data)
        return columns + levels
    if is_of_duckdb(data) and hasattr(data, "columns"):
        return list(data.columns)
    return None


def known_schema(data: Any) -> Any:
    """pyarrow's schema of a source that tells it without being read, else None."""
    try:
        pa = import_module("pyarrow")
    except ImportError:
        return None
    if is_hugging_face(data):
        return _schema_of_hugging_face(data)
    if is_of_duckdb(data) and hasattr(data, "types"):
        return _schema_of_duckdb(data)
    # Structs are a table.
    kind = pa.field(data.field).type if isinstance(data, _core.Array) else None
    kind = kind or getattr(data, "type", None)
    if isinstance(kind, pa.StructType):
        return pa.schema(list(kind))
    # What other libraries call a schema may take a query.
    is_known = type(data).__module__.startswith("pyarrow.") or hasattr(data, "scanner")
    names = ["schema", "projected_schema", "schema_arrow"] if is_known else []
    names += ["physical_schema"] if is_in_memory(data) else []
    found = (getattr(data, name, None) for name in names)
    schema = next((schema for schema in found if isinstance(schema, pa.Schema)), None)
    return _schema_of_reader(data) if schema is None else schema


def _schema_of_reader(data: Any) -> Any:
    """That of a reader of another library, which knows it until it has been read."""
    with suppress(Exception):
        if _core._is_read_once(data) and hasattr(data.schema, "__arrow_c_schema__"):
            return import_module("pyarrow").schema(data.schema)
    return None


def is_of_pyarrow(data: Any) -> bool:
    """Whether it is a dataset of pyarrow's, or of a user's class below: Lance's is below the
    abstract class, and reads its files itself.
    """
    names = "FileSystemDataset", "InMemoryDataset", "UnionDataset"
    return isinstance(data, tuple(class_of("pyarrow.dataset", name) for name in names))


def is_in_memory(data: Any) -> bool:
    """Whether it is a fragment of a dataset of pyarrow's that is a table, or a file in a buffer."""
    is_fragment = isinstance(data, class_of("pyarrow.dataset", "Fragment"))
    return is_fragment and getattr(data, "filesystem", None) is None


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


def has_zone_of_session(data: Any) -> bool:
    """Whether it is a relation of DuckDB's with times whose zone is a setting of its connection:
    the schema tells the machine's.
    """
    kinds = data.types if is_of_duckdb(data) and hasattr(data, "types") else ()
    # Of nanoseconds it is TIMESTAMPTZ_NS.
    names = "TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ"
    return any(name in str(kind) for kind in kinds for name in names)


def is_hugging_face(data: Any) -> bool:
    """Whether it is a dataset of Hugging Face's."""
    return hasattr(data, "with_format") and hasattr(data, "select_columns")


def columns_of_format(data: Any) -> list[str] | None:
    """The columns that a dataset of Hugging Face's gives where none are named, None for all; of
    other data None.
    """
    form = getattr(data, "format", {}) if is_hugging_face(data) else {}
    own: list[str] = form.get("columns") or []
    is_of_all = form.get("output_all_columns", False) or not own
    return None if is_of_all or len(own) >= len(data.column_names) else own


def generators_of(dataset: Any) -> list[Any]:
    """NumPy's bit generators that shuffle a streamed dataset of Hugging Face's, or choose among its
    sources.
    """
    of = (
        getattr(getattr(one, "generator", None), "bit_generator", None) for one in _makes(dataset)
    )
    return [generator for generator in of if generator is not None]


def drawing_of(dataset: Any) -> list[Any]:
    """How a streamed dataset of Hugging Face's draws, besides the states of its generators."""
    names = "buffer_size", "probabilities", "stopping_strategy"
    found = [[getattr(one, name, None) for name in names] for one in _makes(dataset)]
    return [getattr(dataset, "num_shards", 1), [one for one in found if any(one)]]


def _makes(dataset: Any) -> list[Any]:
    """What makes the rows of a streamed dataset, from the last step on."""
    found, makes = [], [getattr(dataset, "_ex_iterable", None)]
    while makes:
        made = makes.pop()
        found.append(made)
        inner = [getattr(made, "ex_iterable", None), *getattr(made, "ex_iterables", ())]
        makes += [one for one in inner if one is not None]
    return found


def is_seeded(generator: Any) -> bool:
    """Whether a bit generator of NumPy's had a seed; without one NumPy draws 128 bits."""
    entropy = getattr(getattr(generator, "seed_seq", None), "entropy", None)
    return not isinstance(entropy, int) or entropy < 1 << 96


def _schema_of_hugging_face(dataset: Any) -> Any:
    # Others than those of the format may be named.
    if columns_of_format(dataset) is not None:
        return None
    return getattr(getattr(dataset, "features", None), "arrow_schema", None)


def local_path(path: str, system: Any) -> str | None:
    """Where a file lies on this machine; None if it is elsewhere, or in no file system."""
    kind = getattr(system, "type_name", None)
    if kind == "subtree":
        return local_path(system.base_path + path, system.base_fs)
    return path if kind == "local" else None


def is_local_system(system: Any) -> bool:
    """Whether the files of a file system of pyarrow's lie on this machine."""
    return local_path("", system) is not None
