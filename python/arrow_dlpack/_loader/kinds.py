"""What batches are made of: one table says how each kind of source is opened.

A new kind is a row of ``TABLE``: what tells it, and what makes a `Source` of it. pyarrow is
imported where it is needed, so that sources with ``__arrow_c_stream__`` do without it.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from importlib import import_module
from itertools import chain, islice
from typing import Any

from .. import _core
from .datasets import Dataset, Files
from .iceberg import Iceberg, portable
from .identity import of_footers, of_rows, of_types
from .ipc import IpcFiles
from .paths import are_ipc_files, arrow_system, format_of, found_files
from .readers import is_frame, reader_of, with_wide_as_decimals
from .schema import Query, Told, conformed, told_by
from .source import Loop, Several, Source, Stream, rows_of_table
from .summary import is_mix

__all__ = ["Dataset", "Source", "check", "for_pickle", "source_of"]


def _has(*names: str) -> Callable[[Any], bool]:
    return lambda source: all(hasattr(source, name) for name in names)


def _is_path(source: Any) -> bool:
    if isinstance(source, (list, tuple)) and source:
        return all(isinstance(one, (str, os.PathLike)) for one in source)
    return isinstance(source, (str, os.PathLike))


def _of_paths(source: Any) -> Source:
    """Paths, URLs that fsspec knows, and patterns of both."""
    several = [source] if isinstance(source, (str, os.PathLike)) else source
    names = [os.fspath(name) for name in several]
    places: list[str] = []
    systems: list[Any] = []
    for name in names:
        system, place = None, os.path.expanduser(name)
        if "://" in name:
            system, place = import_module("fsspec.core").url_to_fs(name)
        places.append(place)
        systems.append(system)
    if any(system != systems[0] for system in systems):
        other = next(at for at, system in enumerate(systems) if system != systems[0])
        raise ValueError(
            f"one Loader reads from one file system: {names[0]} is in another one than "
            f"{names[other]}, and a Mix takes both"
        )
    files = found_files(names, places, systems[0])
    system = arrow_system(systems[0])
    paths = [path for path, _ in files]
    form = format_of(paths, system)
    if form.default_extname == "arrow" and not are_ipc_files(paths, system):
        return IpcFiles(files, system)
    return Files(files, form, system)


def _of_stream(source: Any) -> Source:
    rows, is_once = rows_of_table(source), _core._is_read_once(source)
    count = partial(rows_of_table, source) if is_frame(source) else None
    read = partial(with_wide_as_decimals, source)
    return Source(read, rows, is_once, count=count)


def _of_cursor(cursor: Any) -> Source:
    return Source(lambda columns: cursor.fetch_record_batch(), once=True)


def _of_duckdb(connection: Any) -> Source:
    """The result of a connection's last query."""

    def read(columns: Sequence[str] | None) -> Any:
        try:
            return connection.to_arrow_reader()
        except import_module("duckdb").InvalidInputException as error:
            raise ValueError(
                f"{error}: pass the result of a query, as connection.sql(q)"
            ) from error

    return Source(read, once=True)


def _of_parquet_file(file: Any) -> Source:
    def read(columns: Sequence[str] | None) -> Any:
        of = import_module("pyarrow").RecordBatchReader.from_batches
        schema = file.schema_arrow
        batches = file.iter_batches(columns=columns)
        if columns is None:
            return of(schema, batches)
        _core._check_names(schema.names, list(dict.fromkeys(columns)))
        schema = import_module("pyarrow").schema([schema.field(name) for name in columns])
        return of(schema, (batch.select(schema.names) for batch in batches))

    def identity(query: Query) -> dict[str, Any]:
        return of_types(file.schema_arrow, query) | of_footers([file.metadata])

    rows = file.metadata.num_rows
    return Source(read, rows, names=lambda: file.schema_arrow.names, identify=identity)


def _of_lazy_frame(frame: Any) -> Source:
    def read(columns: Sequence[str] | None) -> Iterable[Any]:
        some = frame if columns is None else frame.select(list(dict.fromkeys(columns)))
        return chain([some.head(0).collect()], some.collect_batches())

    return Stream(read, names=lambda: frame.collect_schema().names())


#: Of a dataset of Hugging Face's that are read at once.
_ROWS = 1000

_OF_OBJECTS = Told(
    "one row",
    "another row",
    "dataset.map(function) makes rows of the same columns",
    "dataset.map(function) makes values of one type",
)


def _of_hugging_face(dataset: Any) -> Source:
    if isinstance(dataset, dict):
        splits = ", ".join(dataset)
        raise TypeError(
            f"a {type(dataset).__name__} has several sources ({splits}): pass one of them, as "
            f'dataset["{next(iter(dataset), "train")}"]'
        )

    form = getattr(dataset, "format", {})
    if form.get("type") == "custom":
        raise TypeError(
            "this Dataset has a transform, which makes Python's objects and no Arrow data: pass "
            "dataset.with_format(None), and transform= to the Loader"
        )
    own = form.get("columns", [])

    def read(columns: Sequence[str] | None) -> Iterable[Any]:
        if columns is None and 0 < len(own) < len(dataset.column_names):
            columns = own
        some = dataset if columns is None else dataset.select_columns(list(dict.fromkeys(columns)))
        return _batches_of_hugging_face(some)

    rows = getattr(dataset, "num_rows", None)

    def identity(query: Query) -> dict[str, Any]:
        if rows is None:
            return {}
        table = dataset.with_format("arrow")
        return of_rows(rows, lambda at: [table[at.to_pylist()]], query)

    def names() -> Any:
        return dataset.column_names

    return Stream(read, rows, names=names, identify=identity, told=_OF_OBJECTS)


def _batches_of_hugging_face(dataset: Any) -> Iterator[Any]:
    """Those of its rows, and one without rows where there are none."""
    has_rows = getattr(dataset, "num_rows", None) != 0
    batch = None
    # Of a stream, what makes its rows; without Arrow data they are Python's objects.
    makes = getattr(dataset, "_ex_iterable", None)
    is_of_objects = makes is not None and getattr(makes, "iter_arrow", True) is None
    found = _tables_of_objects if is_of_objects else _tables_of_arrow
    for batch in found(dataset.with_format("arrow")) if has_rows else ():
        yield batch
    if batch is None and dataset.features is not None:
        yield _table_of(dataset.features.arrow_schema)


def _tables_of_arrow(dataset: Any) -> Iterator[Any]:
    yield from dataset.iter(batch_size=_ROWS)


def _tables_of_objects(dataset: Any) -> Iterator[Any]:
    """Row by row: `datasets` puts rows together before they have the types of its features, and
    fails where one of them has no value.
    """
    pa, rows = import_module("pyarrow"), dataset.iter(batch_size=1)
    while some := list(islice(rows, _ROWS)):
        schema = reduce(told_by, (row.schema for row in some))
        batches = conformed(some, schema, None, _OF_OBJECTS)
        yield pa.Table.from_batches(batches, schema).combine_chunks()


def _of_batches(batches: Any) -> Source:
    """A list or an iterator of batches, which have one schema."""
    if isinstance(batches, (list, tuple)):
        return Several(batches)
    return Stream(lambda columns: batches, once=True)


def _is_batches(source: Any) -> bool:
    if isinstance(source, (list, tuple)):
        return all(map(_is_arrow, source))
    # Files and cursors are iterators too, and so is what pandas.read_csv(chunksize=) returns.
    is_file = hasattr(source, "read") and not hasattr(source, "get_chunk")
    is_other = _is_arrow(source) or is_file or hasattr(source, "fetchone")
    return isinstance(source, Iterator) and not is_other


def _is_arrow(source: Any) -> bool:
    return hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__")


_is_scan = _has("plan_files", "to_arrow_batch_reader")
_is_iceberg = _has("scan", "metadata_location")

#: What tells a kind of source, and what opens it; the first row that fits counts.
TABLE: list[tuple[Callable[[Any], bool], Callable[[Any], Source]]] = [
    (_is_path, _of_paths),
    (_has("with_format", "select_columns"), _of_hugging_face),  # datasets, of both kinds
    (_has("to_pyarrow_dataset"), lambda table: Dataset(table.to_pyarrow_dataset())),  # Delta Lake
    (_is_arrow, _of_stream),  # tables, readers, frames, results of queries
    (_has("fetch_record_batch"), _of_cursor),  # ADBC
    (_has("to_arrow_reader", "execute"), _of_duckdb),  # its connections; relations are above
    (_has("scanner"), Dataset),  # pyarrow, Lance
    (
        _has("to_reader"),
        lambda scanner: Source(lambda _: scanner.to_reader()),
    ),  # pyarrow's scanners
    (_is_scan, Iceberg),
    (_is_iceberg, lambda table: Iceberg(table.scan())),
    (_has("to_arrow_batch_reader"), lambda scan: Source(lambda _: scan.to_arrow_batch_reader())),
    (_has("iter_batches", "schema_arrow"), _of_parquet_file),
    (_has("collect_batches", "collect_schema"), _of_lazy_frame),
    (_is_batches, _of_batches),
]


def source_of(data: Any) -> Source:
    """What reads it; the engine refuses what is no source."""
    for tells, opens in TABLE:
        if tells(data):
            return opens(data)
    return _of_stream(data)


def check(data: Any, who: str) -> None:
    """Refuses what is no source, before anyone reads it."""
    is_class = isinstance(data, type)
    if any(tells(data) for tells, _ in TABLE) != is_class:
        return
    got = "None" if data is None else type(data).__name__
    got = f"the class {data.__name__}: pass an object of it" if is_class else got + _way_out(data)
    raise TypeError(
        f"{who} takes a path, a table, a frame, a dataset, the result of a query, or a list or an "
        f"iterator of batches, got {got}"
    )


def _way_out(data: Any) -> str:
    """How to make a source of it: what is known of batches, and of Arrow data in general."""
    try:
        _core.Array(data)
        general = ""
    except TypeError as error:
        general = str(error).partition(f", got {type(data).__name__}: ")[2]
    pairs = [data] if isinstance(data, tuple) else data if isinstance(data, list) else []
    if pairs and all(map(_is_weighed, pairs)):
        return ": Mix(x) reads several sources, of (source, weight) pairs"
    if isinstance(data, (list, tuple)) and not all(isinstance(row, Mapping) for row in data):
        is_path = isinstance(data[0], (str, os.PathLike))
        one_tells = _is_path if is_path else _is_arrow
        at, other = next((at, one) for at, one in enumerate(data) if not one_tells(one))
        shown = type(other).__name__ if isinstance(other, Loop) else f"{other!r:.50}"
        item = f", whose item {at} is no {'path' if is_path else 'table'}: {shown}"
        way = "loop over it, or pass its source" if isinstance(other, Loop) else _of_values(general)
        return f"{item}; {way}" if way else item
    if isinstance(data, Mapping) and data:
        if all(map(_is_weight, data.values())):
            return ": Mix(x) reads several sources by their weights"
        if any(hasattr(one, "__arrow_c_stream__") and _has_columns(one) for one in data.values()):
            return f": pass one of these tables, as x[{next(iter(data))!r}], or a Mix of several"
    is_tensor = general.startswith("it is a tensor already")
    are_paths = isinstance(data, (set, frozenset)) and _is_path(list(data))
    ways = [
        (are_paths, "sorted(x) is a list of paths"),
        (is_tensor, 'arrow_dlpack.record_batch({"x": x}) makes a table of it'),
        (bool(general), _of_values(general)),
        (isinstance(data, Mapping), "pyarrow.table(x) makes a table of columns by their names"),
    ]
    found = next((way for is_it, way in ways if is_it), "")
    return f": {found}" if found else ""


def _of_values(general: str) -> str:
    """How to make a table where Arrow data in general would be an array."""
    is_array = general.startswith("pyarrow.array(x")
    return 'pyarrow.table({"x": x}) makes a table of values' if is_array else general


def _is_weighed(pair: Any) -> bool:
    is_pair = isinstance(pair, tuple) and len(pair) == 2 and _is_weight(pair[1])
    return is_pair and any(tells(pair[0]) for tells, _ in TABLE)


def _is_weight(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _has_columns(data: Any) -> bool:
    """Whether it is a table, and no column of one."""
    return any(hasattr(data, name) for name in ("column_names", "columns", "num_columns"))


def takes_texts(data: Any) -> bool:
    """Whether the library that reads it has filters of texts, as Lance has."""
    own = hasattr(data, "scanner") and not type(data).__module__.startswith("pyarrow")
    return own and not hasattr(data, "to_pyarrow_dataset")


#: What DuckDB's classes are from, by its version.
_DUCKDB = ("duckdb", "_duckdb")

#: Types of DuckDB's whose Arrow type depends on `arrow_lossless_conversion`.
_DUCKDB_SETTINGS = ("HUGEINT", "UUID", "BIT", "TIME WITH TIME ZONE", "JSON", "BIGNUM", "VARINT")


def emptied(data: Any) -> Any:
    """The same kind of source with these columns and no rows; None where they cost something.

    Nothing is read for it, and no query is run: a Loader is checked with it when it is made.
    """
    if isinstance(data, (list, tuple)):
        parts = [] if _is_path(data) else list(map(emptied, data))
        return None if not parts or any(part is None for part in parts) else parts
    library = _library_of(data)
    if library == "polars" and hasattr(data, "clear") and hasattr(data, "height"):
        return data.clear()
    if library == "pandas":
        return _emptied_frame(data)
    schema = known_schema(data)
    if schema is None:
        return None
    return dataset_of(schema) if hasattr(data, "scanner") else _table_of(schema)


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
    known = (name for name in names if name in ("pandas", "polars", "duckdb", "_duckdb"))
    return next(known, names[0])


def schema_of(empty: Any) -> Any:
    """That of a source without rows, of several sources the first one's."""
    while isinstance(empty, list) or is_mix(empty):
        empty = empty[0] if isinstance(empty, list) else empty.sources[0][0]
    pa = import_module("pyarrow")
    known = getattr(empty, "schema", None)
    return known if isinstance(known, pa.Schema) else reader_of(empty).schema


def schemas_of(empty: Any) -> list[Any]:
    """Those of sources without rows."""
    if not isinstance(empty, list) and not is_mix(empty):
        return [schema_of(empty)]
    several = empty if isinstance(empty, list) else [one for one, _ in empty.sources]
    return [schema for one in several for schema in schemas_of(one)]


def dataset_of(schema: Any) -> Any:
    """One without rows."""
    return import_module("pyarrow.dataset").dataset(_table_of(schema))


def _table_of(schema: Any) -> Any:
    # Not Schema.empty_table, which knows not all types.
    return import_module("pyarrow").Table.from_batches([], schema)


def names_of(data: Any) -> list[str] | None:
    """The columns of a source whose types are not known before it is read, if it tells them."""
    library = _library_of(data)
    if library == "pandas" and hasattr(data, "dtypes") and hasattr(data, "columns"):
        levels = [name for name in data.index.names if name is not None]
        return [str(name) for name in [*data.columns, *levels]]
    if library in _DUCKDB and hasattr(data, "columns"):
        return list(data.columns)
    return None


def is_local(data: Any) -> bool:
    """Whether it is one path, or several, of this machine."""
    paths = data if isinstance(data, (list, tuple)) else [data]
    return _is_path(data) and not any("://" in os.fspath(path) for path in paths)


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


def for_pickle(data: Any) -> Any:
    """What stands for a source in another process."""
    return portable(data) if _is_scan(data) or _is_iceberg(data) else data
