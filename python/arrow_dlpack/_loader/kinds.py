"""What batches are made of: one table says how each kind of source is opened.

A new kind is a row of ``TABLE``: what tells it, and what makes a `Source` of it. pyarrow is
imported where it is needed, so that sources with ``__arrow_c_stream__`` do without it.
"""

import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial, reduce
from importlib import import_module
from itertools import chain, islice, zip_longest
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

from .. import _core
from .._frames import class_of, has_objects
from .._items import items_of
from .datasets import Dataset, is_of_reading
from .files import Files, Fragments
from .finite import scanned
from .iceberg import Iceberg, portable
from .identity import compared, digest_of, ends_of, of_footers, of_groups, of_rows, of_types
from .ipc import IpcFiles
from .known import (
    columns_of_format,
    drawing_of,
    generators_of,
    is_hugging_face,
    is_in_memory,
    is_local_system,
    is_of_pyarrow,
    is_seeded,
    known_schema,
    library_of,
)
from .paths import are_ipc_files, arrow_system, format_of, found_files
from .readers import Made, heads, is_frame, reader_of, refuse_objects, table_of
from .schema import Query, Run, Told, conformed, told_by
from .sharding import Share
from .source import Loop, Opened, Several, Source, Stream, casting, rows_of_table


def _has(*names: str) -> Callable[[Any], bool]:
    return lambda source: all(hasattr(source, name) for name in names)


def is_path(source: Any) -> bool:
    """Whether it is a path, or several."""
    if isinstance(source, (list, tuple)) and source:
        return all(map(_is_one_path, source))
    return _is_one_path(source)


def _are_fragments(source: Any) -> bool:
    """Whether it is a fragment of a dataset of pyarrow's, or some of them."""
    several = source if isinstance(source, (list, tuple)) else [source]
    fragment = class_of("pyarrow.dataset", "Fragment")
    return bool(several) and all(isinstance(one, fragment) for one in several)


def _of_fragments(source: Any) -> Source:
    is_one = not isinstance(source, (list, tuple))
    fragments = [source] if is_one else items_of("the source", source)
    if not any(map(is_in_memory, fragments)):
        return Fragments(fragments)
    return Several([one.to_table() for one in fragments])


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
            if "file" in system.protocol:
                system = None
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
    identify = partial(_types_of, source) if is_once or rows is None else None
    known = partial(known_schema, source)
    return Opened(
        lambda columns: source,
        rows,
        is_once,
        identify=identify,
        count=count,
        known=known,
        readers=[source] if is_once else (),
    )


def _types_of(source: Any, query: Query) -> dict[str, Any]:
    """Of data whose rows are not known before they are read."""
    return of_types(known_schema(source), query)


def _of_cursor(cursor: Any) -> Source:
    way = casting("x.fetch_arrow_table().cast(schema)")
    return Opened(lambda columns: cursor.fetch_record_batch(), once=True, way=way)


def _of_duckdb(connection: Any) -> Source:
    """The result of a connection's last query."""

    def read(columns: Sequence[str] | None) -> Any:
        way = "pass the result of a query, as connection.sql(q)"
        try:
            reader = connection.to_arrow_reader()
        except import_module("duckdb").InvalidInputException as error:
            raise ValueError(f"{error}: {way}") from error
        if reader is None:  # where others have read it
            raise ValueError(f"the result of this connection's last query has been read: {way}")
        return reader

    return Opened(read, once=True, way=casting("x.to_arrow_table().cast(schema)"))


def _nameless(error: Exception, way: str) -> Exception:
    """The error, and how one of reading would name the file."""
    if is_of_reading(error):
        error.add_note(f"The file has no name here, as {way} in place of it, and errors name it.")
    return error


class Scan(Opened):
    """A scanner of pyarrow's, which does not tell whether it can be read again."""

    way = casting("x.to_table().cast(schema)")

    def __init__(self, scanner: Any) -> None:
        # Lance's are of a class below pyarrow's, and have no `scan_batches`.
        is_of_pyarrow = library_of(scanner) == "pyarrow"
        read = partial(scanned, scanner) if is_of_pyarrow else scanner.to_reader
        super().__init__(lambda columns: read(), identify=partial(_types_of, scanner))

    def explained(self, error: Exception, query: Query) -> Exception:
        if "already scanned" not in str(error):
            return _nameless(error, "a Scanner does not tell its files: pass its dataset")
        return TypeError(
            "a Scanner of batches is read once: pass a dataset or a table, or a function of "
            "(index, count) that opens a reader"
        )


#: Of each open file the lock under which it is read: pyarrow 26 ends the process where two threads
#: read one.
_LOCKS: WeakKeyDictionary[Any, Lock] = WeakKeyDictionary()
if hasattr(os, "register_at_fork"):
    # A thread of the parent's may hold one.
    os.register_at_fork(after_in_child=_LOCKS.clear)


def _lock_of(file: Any) -> Lock:
    return _LOCKS.setdefault(file, Lock())


class ParquetFile(Opened):
    """A ParquetFile of pyarrow's, which is open already."""

    way = casting("x.read().cast(schema)")

    def __init__(self, file: Any) -> None:
        super().__init__(
            self._opened, file.metadata.num_rows, names=lambda: file.schema_arrow.names
        )
        self._file = file
        #: Digests of the first and last rows, by the columns that are read.
        self._ends: dict[tuple[str, ...], dict[str, str]] = {}

    def _opened(self, columns: Sequence[str] | None) -> Any:
        pa, schema = import_module("pyarrow"), self._file.schema_arrow
        if columns is not None:
            _core._check_names(schema.names, list(dict.fromkeys(columns)))
            schema = pa.schema([schema.field(name) for name in columns])
        # No reader of pyarrow's, which makes an ArrowInvalid of Ctrl-C.
        return Made(schema, self._batches(columns))

    def _batches(self, columns: Sequence[str] | None) -> Iterator[Any]:
        """Each is read under the lock of the file, which other loops may read too."""
        lock = _lock_of(self._file)
        with lock:
            batches = self._file.iter_batches(columns=columns)
        while True:
            with lock:
                batch = next(batches, None)
            if batch is None:
                return
            yield batch if columns is None else batch.select(columns)

    def explained(self, error: Exception, query: Query) -> Exception:
        return _nameless(error, "a ParquetFile does not tell its path: pass the path")

    def identity(self, query: Query) -> Callable[[], dict[str, Any]]:
        told = of_types(self._file.schema_arrow, query) | of_footers([self._file.metadata])
        names = tuple(sorted(told["columns"]))
        if names not in self._ends:
            # Now, since a loop reads this file object: one that pre-buffers serves no other reader.
            groups = range(self._file.num_row_groups)
            rows = partial(of_groups, self._file, groups, names)
            with _lock_of(self._file):
                self._ends[names] = ends_of(rows, names)
        return lambda: told | {"ends": self._ends[names]}


def _of_lazy_frame(frame: Any) -> Source:
    def read(columns: Sequence[str] | None) -> Iterable[Any]:
        some = frame
        if columns is not None:
            _core._check_names(frame.collect_schema().names(), list(columns))
            # A name alone may be a pattern to polars, such as "^x$".
            by_name = import_module("polars").selectors.by_name
            some = frame.select(by_name(*dict.fromkeys(columns)))
        # In lists and structs polars itself collects none of them.
        objects, schema = class_of("polars", "Object"), some.collect_schema()
        refuse_objects(own for own in schema if has_objects(schema[own]) and schema[own] != objects)
        return chain([some.head(0).collect()], some.collect_batches())

    def known() -> Any:
        empty = import_module("polars").DataFrame(schema=frame.collect_schema())
        return reader_of(empty).schema

    way = casting("x.cast({name: type})")
    return Stream(read, names=lambda: frame.collect_schema().names(), known=known, way=way)


#: Of a dataset of Hugging Face's that are read at once.
_ROWS = 1000

_OF_OBJECTS = Told(
    "one row",
    "another row",
    "dataset.map(function) makes rows of the same columns",
    "dataset.map(function) makes values of one type",
    "",
)


class HuggingFace(Stream):
    """A dataset of Hugging Face's, whose format may say which columns it gives."""

    def __init__(self, dataset: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._dataset = dataset
        #: The columns that are read where none are named, None for all.
        self._own = columns_of_format(dataset)

    def runs(self, query: Query) -> list[Run]:
        return super().runs(self._named(query))

    def _identity_of(self, query: Query) -> dict[str, Any]:
        return super()._identity_of(self._named(query))

    def identity(self, query: Query) -> Callable[[], dict[str, Any]]:
        told, drawn = super().identity(query), self._drawn()
        return lambda: told() | drawn

    def _node(self) -> list[int]:
        """The number of the node that a stream is divided for, and how many there are."""
        divided = getattr(self._dataset, "_distributed", None)
        return [0, 1] if divided is None else [divided.rank, divided.world_size]

    def _drawn(self) -> dict[str, Any]:
        """What orders a stream that begins now: each of its epochs has another order of files."""
        generators, node = generators_of(self._dataset), {"node": self._node()}
        if not generators and getattr(self._dataset, "num_shards", 1) < 2:
            return node
        states = [generator.state for generator in generators]
        epoch, drawing = getattr(self._dataset, "epoch", 0), drawing_of(self._dataset)
        return node | {"drawn": digest_of([states, epoch, drawing])}

    def check_whole(self) -> None:
        if self._node()[1] > 1:
            raise ValueError(
                "split_dataset_by_node has divided this dataset, and each node would number the "
                "words of the rows that it reads: pass the words, or the dataset as it was before, "
                "with rank= and world_size="
            )

    def check_share(self, share: Share) -> None:
        if share.world == 1:
            return
        if self._node()[1] > 1:
            raise ValueError(
                "split_dataset_by_node has divided this dataset for ranks already: leave rank= and "
                "world_size= out, or pass the dataset as it was before"
            )
        if not all(map(is_seeded, generators_of(self._dataset))):
            raise ValueError(
                "this dataset is shuffled or interleaved without a seed, and each rank would have "
                "other rows of it: pass seed= to its shuffle() or interleave_datasets()"
            )

    def _named(self, query: Query) -> Query:
        """The query with the columns of the format by name, and labels, which may be others: so may
        those of a filter, which is of all columns.
        """
        if self._own is None or query.columns is not None:
            return query
        known = self.names() or []
        has = (name for name in query.labels if set(heads([name], lambda: known) or ()) <= {*known})
        return replace(query, columns=list(dict.fromkeys([*self._own, *has])))


def _check_hugging_face(dataset: Any) -> None:
    """Refuses what has no rows as Arrow data."""
    if isinstance(dataset, dict):
        splits = ", ".join(dataset)
        raise TypeError(
            f"a {type(dataset).__name__} has several sources ({splits}): pass one of them, as "
            f'dataset["{next(iter(dataset), "train")}"]'
        )
    if getattr(dataset, "format", {}).get("type") == "custom":
        raise TypeError(
            "this Dataset has a transform, which makes Python's objects and no Arrow data: pass "
            "dataset.with_format(None), and transform= to the Loader"
        )


def _of_hugging_face(dataset: Any) -> Source:
    _check_hugging_face(dataset)

    def read(columns: Sequence[str] | None) -> Iterable[Any]:
        resumed = getattr(dataset, "_starting_state_dict", None)
        if resumed is not None and resumed["epoch"] == dataset.epoch:
            raise ValueError(
                "this dataset goes on from a state of its own, and a Loader reads all rows: pass "
                "one without load_state_dict(), and state_dict() of the Loader is where that stands"
            )
        some = dataset if columns is None else dataset.select_columns(list(dict.fromkeys(columns)))
        some = some.with_format("arrow")
        if hasattr(some, "set_epoch"):  # what is made of a stream begins with its first epoch
            some.set_epoch(dataset.epoch)
        return _batches_of_hugging_face(some, columns or ())

    rows = getattr(dataset, "num_rows", None)

    def identity(query: Query) -> dict[str, Any]:
        if rows is None:
            return _types_of(dataset, query)
        table = dataset.with_format("arrow")
        return of_rows(rows, [table[compared(rows)]], query)

    def names() -> Any:
        return dataset.column_names

    way = casting("x.cast(datasets.Features.from_arrow_schema(schema))")
    known = partial(known_schema, dataset)
    return HuggingFace(
        dataset,
        read,
        rows,
        names=names,
        identify=identity,
        told=_OF_OBJECTS,
        known=known,
        way=way,
    )


def _batches_of_hugging_face(dataset: Any, columns: Sequence[str]) -> Iterator[Any]:
    """Those of its rows, and one without rows where there are none.

    dataset: has Arrow's format.
    columns: those that are selected, none where all are.
    """
    has_rows = getattr(dataset, "num_rows", None) != 0
    batch = None
    # Of a stream, what makes its rows; without Arrow data they are Python's objects.
    makes = getattr(dataset, "_ex_iterable", None)
    is_of_objects = makes is not None and getattr(makes, "iter_arrow", True) is None
    found = _tables_of_objects(dataset) if is_of_objects else dataset.iter(batch_size=_ROWS)
    # At the end of the process nothing is imported any more.
    invalid = import_module("pyarrow").ArrowInvalid
    try:
        for batch in found if has_rows else ():
            yield batch
    except (invalid, TypeError, ValueError, KeyError) as error:
        told = _of_files(error, invalid)
        if told is None:
            said = str(error.args[0]) if len(error.args) == 1 else ""
            of_tables = [f'Field "{name}" does not exist in schema' for name in columns]
            if said in [*columns, *of_tables]:
                note = "a row has no such column: dataset.map(function) makes rows that all have it"
                if dataset.features is not None:
                    note += ", and dataset.map(lambda row: row, features=dataset.features) nulls"
                error.add_note(note)
            raise
        raise told from error
    if batch is None and dataset.features is not None:
        yield table_of(dataset.features.arrow_schema)


#: What pyarrow says of a value that a cast would change.
_OF_CASTS = re.compile("not in range|was truncated|would lose data|Failed to parse")
#: What `datasets` says of one, or of a column, that the features of the first file do not have.
_OF_FEATURES = re.compile("^Couldn't cast( array of type|\\n)")


def _of_files(error: Exception, invalid: type[Exception]) -> Exception | None:
    """What to say in place of an error of `datasets` in a stream of files that differ: it puts
    their rows together before they have the types of its features.
    """
    way, text = "load_dataset(features=...)", str(error)
    pattern = _OF_CASTS if isinstance(error, invalid) else _OF_FEATURES
    if pattern.search(text):
        return ValueError(
            "files of this streamed dataset differ in types, and a value or a column has none of "
            f"its features: {text}; {way} gives types that have all values"
        )
    if isinstance(error, invalid) and "BatchSize must be greater than 0" in text:
        error.add_note("a Parquet file of data_files has no rows, which datasets does not read")
    said, _, kinds = text.partition(": \n")
    lines = (own.splitlines() for own in kinds.split("\nvs\n"))
    pairs = zip_longest(*lines, fillvalue="nothing")
    pair = next((pair for pair in pairs if len(set(pair)) > 1), None)
    if not said.startswith("Schema at index") or pair is None:
        return None
    return TypeError(
        f"files of this streamed dataset differ in types ({' and '.join(pair)}), and datasets puts "
        f"them together before cast(): {way} or "
        "dataset.map(lambda row: row, features=...), before a shuffle(), makes values of one type"
    )


def _tables_of_objects(dataset: Any) -> Iterator[Any]:
    """Row by row: `datasets` puts rows together before they have the types of its features, and
    fails where one of them has no value.
    """
    pa, rows = import_module("pyarrow"), dataset.iter(batch_size=1)
    while some := list(islice(rows, _ROWS)):
        schema = reduce(told_by, (row.schema for row in some))
        batches = conformed(some, schema, None, _OF_OBJECTS)
        yield pa.Table.from_batches(batches, schema).combine_chunks()


#: Of each answer of Arrow Flight the reader that is read of it: that of each call would go on with
#: its rows, and no one knows of the others.
_OF_FLIGHT: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def _of_flight(reader: Any) -> Source:
    """Arrow Flight's answer, which is read once."""
    if reader not in _OF_FLIGHT:
        _OF_FLIGHT[reader] = reader.to_reader()
    return Stream(lambda columns: _OF_FLIGHT[reader], once=True)


def _of_batches(batches: Any) -> Source:
    """A list or an iterator of batches, which have one schema."""
    if isinstance(batches, (list, tuple)):
        return Several(items_of("the source", batches))
    return Stream(lambda columns: batches, once=True)


def _is_batches(source: Any) -> bool:
    if isinstance(source, (list, tuple)):
        return all(map(_is_arrow, source))
    # Files and cursors are iterators too, and so is what pandas.read_csv(chunksize=) returns.
    is_file = hasattr(source, "read") and library_of(source) != "pandas"
    is_other = _is_arrow(source) or is_file or hasattr(source, "fetchone")
    return isinstance(source, Iterator) and not is_other


def _is_arrow(source: Any) -> bool:
    return hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__")


_is_scan = _has("plan_files", "to_arrow_batch_reader")
_is_iceberg = _has("scan", "metadata_location")

#: What tells a kind of source, and what opens it; the first row that fits counts.
TABLE: list[tuple[Callable[[Any], bool], Callable[[Any], Source]]] = [
    (is_path, _of_paths),
    (_are_fragments, _of_fragments),
    (is_hugging_face, _of_hugging_face),  # datasets, of both kinds
    (_has("to_pyarrow_dataset"), lambda table: Dataset(table.to_pyarrow_dataset())),  # Delta Lake
    (_is_arrow, _of_stream),  # tables, readers, frames, results of queries
    (_has("fetch_record_batch"), _of_cursor),  # ADBC
    (_has("to_arrow_reader", "execute"), _of_duckdb),  # its connections; relations are above
    (_has("scanner"), Dataset),  # pyarrow, Lance
    (_has("to_reader", "projected_schema"), Scan),  # pyarrow's scanners
    (_has("to_reader", "read_chunk"), _of_flight),
    (_is_scan, Iceberg),
    (_is_iceberg, lambda table: Iceberg(table.scan())),
    (_has("to_arrow_batch_reader"), lambda scan: Opened(lambda _: scan.to_arrow_batch_reader())),
    (_has("iter_batches", "schema_arrow"), ParquetFile),
    (_has("collect_batches", "collect_schema"), _of_lazy_frame),
    (_is_batches, _of_batches),
]


def source_of_one(data: Any) -> Source:
    """What reads it, unless it is a `Mix`; the engine refuses what is no source."""
    for tells, opens in TABLE:
        if tells(data):
            return opens(data)
    return _of_stream(data)


def check(data: Any, who: str) -> None:
    """Refuses what is no source, before anyone reads it."""
    is_class = isinstance(data, type)
    # A series of texts is Arrow data, and no table.
    if _is_source(data) != is_class and _way_to_paths(data) is None:
        if is_hugging_face(data):
            _check_hugging_face(data)
        return
    got = "None" if data is None else type(data).__name__
    got = f"the class {data.__name__}: pass an object of it" if is_class else got + _way_out(data)
    raise TypeError(
        f"{who} takes a path, a table, a frame, a dataset, the result of a query, or a list or an "
        f"iterator of batches, got {got}"
    )


#: Of a path whose `__fspath__` gives bytes.
_OF_BYTES = "its path is bytes, and os.fsdecode(x) is a path"


def _way_out(data: Any) -> str:
    """How to make a source of it: what is known of batches, and of Arrow data in general."""
    are_sources = isinstance(data, (list, tuple)) and data and all(map(_is_source, data))
    # The columns of a lazy query, which are asked for a table, cost something.
    of_arrow = "" if _is_arrow(data) or are_sources else _core._way_to_table(data) or ""
    pairs = [data] if isinstance(data, tuple) else data if isinstance(data, list) else []
    if pairs and all(map(_is_weighed, pairs)):
        return ": Mix(x) reads several sources, of (source, weight) pairs"
    if isinstance(data, (list, tuple)) and not all(isinstance(row, Mapping) for row in data):
        return _way_out_of_list(data, of_arrow)
    if isinstance(data, Mapping) and data:
        if all(map(_is_weight, data.values())):
            return ": Mix(x) reads several sources by their weights"
        if any(hasattr(one, "__arrow_c_stream__") and _has_columns(one) for one in data.values()):
            return f": pass one of these tables, as x[{next(iter(data))!r}], or a Mix of several"
        if all(
            (isinstance(one, list) and is_path(one)) or _is_told_path(one) for one in data.values()
        ):
            one = f"x[{next(iter(data))!r}]"
            each = ", or list(x.values()) for all as one source"
            return f": pass one of these paths, as {one}" + each * all(
                map(_is_told_path, data.values())
            )
    to_paths = _way_to_paths(data)
    ways = [
        (to_paths is not None, f"{to_paths} is a list of paths"),
        (isinstance(data, os.PathLike), _OF_BYTES),
        (isinstance(data, deque) and all(map(_is_arrow, data)), "list(x) is a list of tables"),
        (bool(of_arrow), of_arrow),
        (
            isinstance(data, class_of("pyarrow.parquet", "ParquetDataset")),
            "the path of its files, or pyarrow.dataset.dataset(path), reads them",
        ),
    ]
    found = next((way for is_it, way in ways if is_it), "")
    return f": {found}" if found else ""


#: Arrays and series, which a list of paths may be taken for.
_ARRAYS = ("numpy", "ndarray"), ("pandas", "Series"), ("pandas", "Index"), ("polars", "Series")


def _way_to_paths(data: Any) -> str | None:
    """What makes a list of a set, an array or a series of paths; None of other data."""
    if isinstance(data, Set):
        return "sorted(x)" if data and is_path(list(data)) else None
    are_values = isinstance(data, tuple(class_of(*one) for one in _ARRAYS))
    if not are_values or getattr(data, "ndim", 1) != 1:
        return None
    return "list(x)" if _is_told_path(next(iter(data), None)) else None


def _way_out_of_list(data: Sequence[Any], of_arrow: str) -> str:
    """The item that is no source beside others, or what makes a table of all.

    of_arrow: how to make a table of the list.
    """
    have_paths, have_tables = any(map(_is_one_path, data)), any(map(_is_arrow, data))
    is_of_paths = _is_one_path(data[0]) if have_tables else have_paths
    one_tells = _is_one_path if is_of_paths else _is_arrow
    at, other = next((at, one) for at, one in enumerate(data) if not one_tells(one))
    is_named = isinstance(other, Loop) or _is_arrow(other)
    shown = type(other).__name__ if is_named else f"{other!r:.50}"
    ways = [
        (isinstance(other, Loop), "loop over it, or pass its source"),
        (
            _is_one_path(other) or _is_arrow(other),
            "Mix([(source, weight), ...]) reads paths and tables together",
        ),
        (isinstance(other, os.PathLike), _OF_BYTES),
        (
            hasattr(other, "with_format") and all(type(one) is type(other) for one in data),
            "datasets.concatenate_datasets(x) is one dataset",
        ),
        (
            all(isinstance(one, class_of("polars", "LazyFrame")) for one in data),
            "polars.concat(x) is one query",
        ),
        (all(map(_is_source, data)), "Mix([(source, weight), ...]) reads sources of any kinds"),
        (have_tables, "make a table of it, or leave it out"),
        (have_paths, "leave it out"),
        (bool(of_arrow), of_arrow),
    ]
    way = next((f"; {way}" for is_it, way in ways if is_it), "")
    return f", whose item {at} is no {'path' if is_of_paths else 'table'}: {shown}{way}"


def _is_one_path(source: Any) -> bool:
    # `__fspath__` may give bytes, which are no text of ours.
    return isinstance(os.fspath(source) if isinstance(source, os.PathLike) else source, str)


def _is_told_path(value: Any) -> bool:
    """Whether a value of a dict is no text of a row."""
    is_text = isinstance(value, str)
    return _is_one_path(value) and (not is_text or bool(os.path.splitext(value)[1]) or "/" in value)


def _is_weighed(pair: Any) -> bool:
    is_pair = isinstance(pair, tuple) and len(pair) == 2 and _is_weight(pair[1])
    return is_pair and _is_source(pair[0])


def _is_source(data: Any) -> bool:
    return any(tells(data) for tells, _ in TABLE)


def _is_weight(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _has_columns(data: Any) -> bool:
    """Whether it is a table, and no column of one."""
    return any(hasattr(data, name) for name in ("column_names", "columns", "num_columns"))


def takes_texts(data: Any) -> bool:
    """Whether the library that reads it has filters of texts, as Lance has."""
    own = hasattr(data, "scanner") and not is_of_pyarrow(data)
    return own and not hasattr(data, "to_pyarrow_dataset")


def is_local(data: Any) -> bool:
    """Whether it is one path, or several, of this machine, or fragments that are such files."""
    several = data if isinstance(data, (list, tuple)) else [data]
    if _are_fragments(data):
        return all(is_local_system(getattr(one, "filesystem", None)) for one in several)
    return is_path(data) and not any("://" in os.fspath(path) for path in several)


def for_pickle(data: Any) -> Any:
    """What stands for a source in another process."""
    return portable(data) if _is_scan(data) or _is_iceberg(data) else data
