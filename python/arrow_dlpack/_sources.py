"""What batches are made of: one table says how each kind of source is opened.

A new kind is a row of ``TABLE``: what tells it, and what makes a `Source` of it. pyarrow is
imported where it is needed, so that sources with ``__arrow_c_stream__`` do without it.
"""

import os
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from glob import glob, has_magic
from importlib import import_module
from itertools import chain
from typing import Any

from . import _core
from ._pieces import Piece, cut, len_of, pieces_of, rows_at, rows_of
from ._readers import Made, heads, reached, reader_of, without_views

#: Columns that pyarrow's scanners have beside those of a dataset's schema.
_OF_FILES = ["__filename", "__fragment_index", "__batch_index", "__last_in_fragment"]
#: Formats of pyarrow.dataset by the ends of names; Parquet for others.
_FORMATS = {".arrow": "ipc", ".feather": "ipc", ".ipc": "ipc", ".csv": "csv", ".csv.gz": "csv"}
_READ_ONCE = ("__next__", "read_next_batch", "get_next")


class Source:
    """Something with rows, read from the first to the last one."""

    def __init__(
        self,
        open_columns: Callable[[Sequence[str] | None], Any],
        rows: int | None = None,
        once: bool = False,
        names: Callable[[], Sequence[str] | None] = lambda: None,
    ) -> None:
        self._open, self._rows, self.once, self._names = open_columns, rows, once, names
        self._counted: dict[str, int] = {}

    def rows(self, where: Any = None) -> int | None:
        """How many rows it has; those of a filter are counted once."""
        if where is None or self._rows is None or self.once:
            return self._rows if where is None else None
        if self._counted.get(str(where)) is None:
            batches = without_views(reader_of(self._open(None)))
            scanner = import_module("pyarrow.dataset").Scanner
            rows = scanner.from_batches(batches, filter=where).count_rows()
            self._counted[str(where)] = rows
        return self._counted[str(where)]

    def read(self, columns: Sequence[str] | None, where: Any = None) -> Any:
        """Arrow data with at least these columns; `where` is a filter of pyarrow's."""
        if where is None:
            return reached(self._open(heads(columns, self._names)), columns)
        batches = without_views(reader_of(self._open(None)))
        names = heads(columns, lambda: batches.schema.names)
        scanner = import_module("pyarrow.dataset").Scanner
        some = scanner.from_batches(batches, filter=where, columns=names)
        return reached(some.to_reader(), columns)

    def pieces(self) -> list[Piece] | None:
        """Its row groups, if it can read each of them alone."""
        return None


class Dataset(Source):
    """A dataset of pyarrow, or of another library that has its `scanner`."""

    def __init__(self, dataset: Any) -> None:
        super().__init__(lambda columns: None)
        self._dataset = dataset
        self._pieces: list[Piece] | None = None

    def rows(self, where: Any = None) -> int | None:
        if not hasattr(self._dataset, "count_rows"):
            return None
        count: int = self._dataset.count_rows(**({} if where is None else {"filter": where}))
        return count

    def read(self, columns: Sequence[str] | None, where: Any = None) -> Any:
        if has_no_columns(self._dataset):
            raise ValueError("the dataset has no columns: was it made of no files?")
        options = {} if where is None else {"filter": where}
        wanted = _of_dataset(self._dataset, columns)
        scanner = self._dataset.scanner(columns=wanted, **options)
        return reached(scanner.to_reader() if hasattr(scanner, "to_reader") else scanner, columns)

    def pieces(self) -> list[Piece] | None:
        if self._pieces is None and type(self._dataset).__name__ == "FileSystemDataset":
            try:
                fragments = list(self._dataset.get_fragments())
            except ValueError:  # it has a filter of its own
                return None
            if all(hasattr(fragment, "row_groups") for fragment in fragments):
                self._pieces = [
                    Piece(fragment.subset(row_group_ids=[group.id]), 0, group.num_rows)
                    for fragment in fragments
                    for group in fragment.row_groups
                ]
        return self._pieces

    def shuffled(self, pieces: list[Piece], seed: int) -> list[Piece]:
        """The pieces in an order that is drawn."""
        shuffled = list(pieces)
        random.Random(seed).shuffle(shuffled)
        return shuffled

    def read_pieces(
        self, columns: Sequence[str] | None, pieces: Sequence[Piece], where: Any = None
    ) -> Any:
        """Arrow data of these pieces, in this order; a filter is for whole row groups."""
        pa, ours = import_module("pyarrow"), self._dataset
        groups = [piece.group for piece in pieces]
        make = import_module("pyarrow.dataset").FileSystemDataset
        some = make(groups, ours.schema, ours.format, getattr(ours, "filesystem", None))
        reader = Dataset(some).read(columns, where)
        if where is not None:
            return reader
        cuts = [(piece.start, piece.stop, rows_of(piece)) for piece in pieces]
        if all(start == 0 and stop == rows for start, stop, rows in cuts):
            return reader
        return pa.RecordBatchReader.from_batches(reader.schema, cut(reader, cuts))

    def read_resumed(
        self,
        columns: Sequence[str] | None,
        pieces: Sequence[Piece],
        positions: Any,
        read: int,
    ) -> Any:
        """The rows of the pieces at some positions, in their order, and then all from `read` on."""
        total = sum(map(len_of, pieces))
        rest = self.read_pieces(columns, list(pieces_of(pieces, read, total)))
        pool = rows_at(positions, pieces, lambda one: self.read_pieces(columns, [one]).read_all())
        batches = chain([] if pool is None else pool.to_batches(), rest)
        return import_module("pyarrow").RecordBatchReader.from_batches(rest.schema, batches)


def _of_dataset(dataset: Any, columns: Sequence[str] | None) -> list[str] | None:
    """The columns that are to be read, None for all."""
    if columns is None:
        return None
    names: Any = getattr(getattr(dataset, "schema", None), "names", None)
    wanted = heads(list(dict.fromkeys(columns)), lambda: names)
    if names is not None and wanted is not None:
        _core._check_names(names, [name for name in wanted if name not in _OF_FILES])
    return wanted


def has_no_columns(source: Any) -> bool:
    """Whether it is a dataset of pyarrow's that was made of nothing."""
    has_scanner = hasattr(source, "scanner")
    return has_scanner and getattr(getattr(source, "schema", None), "names", None) == []


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
    system: Any = None
    for name in names:
        find: Callable[[str], Sequence[str]] = glob
        place = name
        if "://" in name:
            system, place = import_module("fsspec.core").url_to_fs(name)
            find = system.glob
        found = sorted(find(place)) if has_magic(place) else [place]
        if not found:
            raise FileNotFoundError(f"no file is called {name}")
        files += found
    one = files[0] if len(files) == 1 else None
    dataset = import_module("pyarrow.dataset").dataset
    options = {"format": _format(files[0], system), "partitioning": "hive", "filesystem": system}
    return Dataset(dataset(files if one is None else one, **options))


def _format(name: str, system: Any) -> str:
    """By the end of the name; that of the first file, if it is a folder."""
    if system is None and os.path.isdir(name):
        name = next((file for _, _, files in sorted(os.walk(name)) for file in sorted(files)), "")
    elif system is not None and system.isdir(name):
        name = next(iter(sorted(system.find(name))), "")
    return next((form for end, form in _FORMATS.items() if name.endswith(end)), "parquet")


def _of_stream(source: Any) -> Source:
    rows = getattr(source, "num_rows", getattr(source, "height", None))
    if type(source).__module__.partition(".")[0] == "pandas":
        rows = len(source)
    known = rows if isinstance(rows, int) else None
    return Source(lambda columns: source, known, is_read_once(source))


def _of_cursor(cursor: Any) -> Source:
    return Source(lambda columns: cursor.fetch_record_batch(), once=True)


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

    def read(columns: Sequence[str] | None) -> Any:
        some = dataset if columns is None else dataset.select_columns(list(dict.fromkeys(columns)))
        return _together(some.with_format("arrow").iter(batch_size=1000))

    rows = getattr(dataset, "num_rows", None)
    return Source(read, rows, names=lambda: dataset.column_names)


def _of_batches(batches: Any) -> Source:
    """A list or an iterator of batches, which have one schema."""
    return Source(lambda columns: _together(batches), once=isinstance(batches, Iterator))


def _together(batches: Iterable[Any]) -> Any:
    """Batches, tables or frames as one stream."""
    parts = iter(batches)
    first = next(parts, None)
    if first is None:
        raise ValueError("the source has no batches, and so no columns: pass a table without rows")
    head = reader_of(first)

    def every() -> Iterator[Any]:
        yield from head
        for part in parts:
            yield from reader_of(part).cast(head.schema)

    return Made(head.schema, every())


def _is_batches(source: Any) -> bool:
    if isinstance(source, (list, tuple)):
        return all(map(_is_arrow, source))
    # Files and cursors are iterators too.
    is_other = _is_arrow(source) or hasattr(source, "read") or hasattr(source, "fetchone")
    return isinstance(source, Iterator) and not is_other


def _is_arrow(source: Any) -> bool:
    return hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__")


#: What tells a kind of source, and what opens it; the first row that fits counts.
TABLE: list[tuple[Callable[[Any], bool], Callable[[Any], Source]]] = [
    (_is_path, _of_paths),
    (_has("with_format", "select_columns"), _of_hugging_face),  # datasets, of both kinds
    (_has("to_pyarrow_dataset"), lambda table: Dataset(table.to_pyarrow_dataset())),  # Delta Lake
    (_is_arrow, _of_stream),  # tables, readers, frames, results of queries
    (_has("fetch_record_batch"), _of_cursor),  # ADBC, connections of DuckDB
    (_has("scanner"), Dataset),  # pyarrow, Lance
    (
        _has("to_reader"),
        lambda scanner: Source(lambda _: scanner.to_reader()),
    ),  # pyarrow's scanners
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


def is_read_once(source: Any) -> bool:
    """Whether its rows can be read but once."""
    return any(hasattr(type(source), name) for name in _READ_ONCE)
