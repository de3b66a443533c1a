"""What batches are made of: one table says how each kind of source is opened.

A new kind is a row of ``TABLE``: what tells it, and what makes a `Source` of it. pyarrow is
imported where it is needed, so that sources with ``__arrow_c_stream__`` do without it.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from glob import glob, has_magic
from importlib import import_module
from itertools import chain
from typing import Any

from . import _core
from ._datasets import Dataset, Source
from ._iceberg import Iceberg, portable
from ._readers import Made, reader_of, recorded

__all__ = ["Dataset", "Source", "check", "for_pickle", "source_of"]

#: Formats of pyarrow.dataset by the ends of names; Parquet where no name tells.
_FORMATS = {
    ".parquet": "parquet",
    ".arrow": "ipc",
    ".feather": "ipc",
    ".ipc": "ipc",
    ".csv": "csv",
    ".csv.gz": "csv",
}


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
    files: list[str] = []
    systems: list[Any] = []
    for name in names:
        find: Callable[[str], Sequence[str]] = glob
        place, system, exists = name, None, os.path.exists
        if "://" in name:
            system, place = import_module("fsspec.core").url_to_fs(name)
            find, exists = system.glob, system.exists
        # A file may be called like a pattern.
        found = [place] if not has_magic(place) or exists(place) else _shown(find(place))
        if not (found and name):
            raise FileNotFoundError(f"no file is called {name or repr(name)}")
        files += found
        systems.append(system)
    if any(system != systems[0] for system in systems):
        other = next(at for at, system in enumerate(systems) if system != systems[0])
        raise ValueError(
            f"one Loader reads from one file system: {names[0]} is in another one than "
            f"{names[other]}, and a Mix takes both"
        )
    one = files[0] if len(files) == 1 else None
    dataset = import_module("pyarrow.dataset").dataset
    options = {"format": _format(files, systems[0]), "partitioning": "hive"}
    return Dataset(dataset(files if one is None else one, filesystem=systems[0], **options))


def _shown(names: Iterable[str]) -> list[str]:
    """In their order, but for those that jobs leave beside their files, such as _SUCCESS."""
    return sorted(name for name in names if not os.path.basename(name).startswith(("_", ".")))


def _format(names: Sequence[str], system: Any) -> str:
    """By the ends of the names of all files, those in folders too."""
    files: list[str] = []
    for name in names:
        if system is None and os.path.isdir(name):
            files += _shown(os.path.join(at, file) for at, _, own in os.walk(name) for file in own)
        elif system is not None and system.isdir(name):
            files += _shown(system.find(name))
        else:
            files.append(name)
    found: dict[str, str] = {}
    for file in files:
        end = next((end for end in _FORMATS if file.lower().endswith(end)), None)
        if end is not None:
            found.setdefault(_FORMATS[end], file)
    if len(found) > 1:
        raise ValueError(
            f"files of one format are read together, and there are {' and '.join(found.values())}: "
            "a Mix takes both"
        )
    return next(iter(found), "parquet")


def _of_stream(source: Any) -> Source:
    return Source(lambda columns: source, _rows_of(source), _core._is_read_once(source))


def _rows_of(source: Any) -> int | None:
    """How many rows a table or a frame has; None for what does not tell."""
    rows = getattr(source, "num_rows", getattr(source, "height", None))
    if type(source).__module__.partition(".")[0] == "pandas":
        rows = len(source)
    return rows if isinstance(rows, int) else None


def _of_cursor(cursor: Any) -> Source:
    return Source(lambda columns: cursor.fetch_record_batch(), once=True)


def _of_duckdb(connection: Any) -> Source:
    """The result of a connection's last query."""
    return Source(lambda columns: connection.to_arrow_reader(), once=True)


def _of_parquet_file(file: Any) -> Source:
    def read(columns: Sequence[str] | None) -> Any:
        of = import_module("pyarrow").RecordBatchReader.from_batches
        schema = file.schema_arrow
        if columns is not None:
            _core._check_names(schema.names, list(dict.fromkeys(columns)))
            schema = import_module("pyarrow").schema([schema.field(name) for name in columns])
        batches = file.iter_batches(columns=columns)
        return of(schema, (batch.select(schema.names) for batch in batches))

    return Source(read, file.metadata.num_rows, names=lambda: file.schema_arrow.names)


def _of_lazy_frame(frame: Any) -> Source:
    def read(columns: Sequence[str] | None) -> Any:
        some = frame if columns is None else frame.select(list(dict.fromkeys(columns)))
        return _together(chain([some.head(0).collect()], some.collect_batches()))

    return Source(read, names=lambda: frame.collect_schema().names())


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

    def read(columns: Sequence[str] | None) -> Any:
        if columns is None and 0 < len(own) < len(dataset.column_names):
            columns = own
        some = dataset if columns is None else dataset.select_columns(list(dict.fromkeys(columns)))
        return _together(some.with_format("arrow").iter(batch_size=1000))

    rows = getattr(dataset, "num_rows", None)
    return Source(read, rows, names=lambda: dataset.column_names)


def _of_batches(batches: Any) -> Source:
    """A list or an iterator of batches, which have one schema."""
    return Source(lambda columns: _together(batches), once=isinstance(batches, Iterator))


def _together(batches: Iterable[Any]) -> Any:
    """Batches, tables or frames as one stream."""
    reading = _core._Reading(batches)
    parts = iter(batches)
    first = next(parts, None)
    if first is None:
        reading.end()
        raise ValueError("the source has no batches, and so no columns: pass a table without rows")
    # It is gone, also if nobody reads on.
    rows = _rows_of(first)
    reading.took(1 if rows is None else rows)
    head = reader_of(first)

    def every() -> Iterator[Any]:
        yield from head
        for part in parts:
            yield from reader_of(part).cast(head.schema)

    return Made(head.schema, recorded(reading, every()))


def _is_batches(source: Any) -> bool:
    if isinstance(source, (list, tuple)):
        return all(map(_is_arrow, source))
    # Files and cursors are iterators too.
    is_other = _is_arrow(source) or hasattr(source, "read") or hasattr(source, "fetchone")
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
    if isinstance(data, (list, tuple)) and not all(isinstance(row, Mapping) for row in data):
        is_path = isinstance(data[0], (str, os.PathLike))
        one_tells = _is_path if is_path else _is_arrow
        at, other = next((at, one) for at, one in enumerate(data) if not one_tells(one))
        item = f", whose item {at} is no {'path' if is_path else 'table'}: {other!r:.50}"
        return f"{item}; {general}" if general else item
    ways = [
        (isinstance(data, list), "pyarrow.Table.from_pylist(x) makes a table of rows"),
        (isinstance(data, Mapping), "pyarrow.table(x) makes a table of columns by their names"),
        (
            hasattr(data, "__dlpack__") or hasattr(data, "__array__"),
            'arrow_dlpack.record_batch({"x": x}) makes a table of it',
        ),
    ]
    found = [way for is_it, way in ways if is_it] + [general] * bool(general)
    return f": {'; '.join(found)}" if found else ""


def for_pickle(data: Any) -> Any:
    """What stands for a source in another process."""
    return portable(data) if _is_scan(data) or _is_iceberg(data) else data
