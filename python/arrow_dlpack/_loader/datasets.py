"""Datasets of files, whose row groups are read alone."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from importlib import import_module
from itertools import chain, islice
from time import monotonic
from traceback import walk_tb
from typing import Any
from weakref import WeakKeyDictionary

from .. import _core
from .._arrow_types import extensions_of, has_matrices
from . import filters as _filters
from . import finite as _finite
from .identity import (
    REPLACED,
    are_replaced,
    compared,
    digest_of_head,
    of_files,
    of_filter,
    of_rows,
    of_types,
    stamps_of,
)
from .known import is_local_system, is_of_pyarrow, local_path
from .parallel import side_by_side
from .paths import (
    GZIP,
    Watch,
    beginning,
    is_told,
    naming,
    of_gzip,
    of_no_bytes,
    of_no_type,
    of_replaced,
    retold,
    stamp_of,
    unread,
)
from .readers import (
    Made,
    for_rows,
    has_views,
    heads,
    no_column,
    reached,
    reader_of,
    schema_without_views,
    without_views,
)
from .row_groups import Piece, are_parquet, cut, groups_of, len_of, pieces_of, rows_at, rows_of
from .schema import ALL, Part, Query, Run, readable, with_types
from .sharding import shuffled
from .source import Source, casting, joined

#: How long files are read again to find the one that fails.
_SECONDS = 60
#: Columns that pyarrow's scanners have beside those of a dataset's schema.
OF_FILES = ["__filename", "__fragment_index", "__batch_index", "__last_in_fragment"]


#: By dataset or fragment of pyarrow's, what told its local files when it was first read here.
STAMPS: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()


class Dataset(Source):
    """A dataset of pyarrow, or of another library that has its `scanner`: its schema counts."""

    way = casting("dataset.to_table().cast(schema)")
    #: What reads a file that was replaced, for errors.
    anew = "a dataset keeps the footers that it has read, and a new one reads it"

    def __init__(self, dataset: Any) -> None:
        super().__init__()
        self._dataset = dataset
        #: The filter of the dataset itself, and the dataset without it.
        self._own, self._unfiltered = _filters.own_of(dataset), _filters.without_own(dataset)
        _filters.check_places(self._own)
        self._pieces: list[Piece] | None = None
        #: Its files, once their footers have been read.
        self._fragments: list[Any] | None = None

    @cached_property
    def _stamped(self) -> dict[str, Any]:
        """What tells local files from others in their places, by their paths; it is taken before
        their footers are read: those that a dataset has read serve all Loaders of it.
        """
        stamps = self._stamps()
        return STAMPS.setdefault(self._dataset, stamps) if stamps else stamps

    def _stamps(self) -> dict[str, Any]:
        return {path: stamp_of(path) for path in self._local()}

    def _local(self) -> Iterable[str]:
        """The local files whose footers pyarrow keeps: those of other formats are read anew."""
        for one in _file_datasets(self._unfiltered):
            if one.format.default_extname == "parquet":
                yield from local_paths(one.files, one.filesystem)

    def _kept(self) -> Collection[str]:
        """The files among them by whose footers an epoch reads."""
        return self._stamped

    def refresh(self) -> None:
        self._check_kept(self._kept())

    def _check_kept(self, paths: Iterable[str]) -> None:
        """An error for a file that was replaced: by the footer of another one it has no values."""
        if path := next(filter(self._is_replaced, paths), None):
            raise self._replaced(path)

    def _is_replaced(self, path: str) -> bool:
        stamp = stamp_of(path)
        return stamp is not None and stamp != self._stamped.get(path, stamp)

    def _replaced(self, path: str) -> Exception:
        return OSError(of_replaced(path, self.anew))

    def rows(self, query: Query = ALL) -> int | None:
        if not hasattr(self._dataset, "count_rows"):
            return None
        dataset, where = self._part(None, None), self._where(query)
        if where is not None and self._is_unpruned(dataset.schema, where):
            names = _filters.named(where, _filters.seen_of(dataset.schema))
            kept = self._scan(None, None, Query(columns=names, where=query.where))
            return sum(map(len, reader_of(kept)))
        if where is None and (parts := self._parts()) and are_parquet(parts):
            return sum(map(rows_of, parts))
        filtered = {} if where is None else {"filter": where}
        count: int = _of_single_names(dataset).count_rows(**filtered)
        return count

    def _where(self, query: Query) -> Any:
        """The filter of the query and that of the dataset itself."""
        if self._own is None or query.where is None:
            return query.where if self._own is None else self._own
        return self._own & query.where

    def schema(self, query: Query = ALL) -> Any:
        return getattr(self._dataset, "schema", None)

    def names(self) -> Sequence[str] | None:
        names: Sequence[str] | None = getattr(getattr(self._dataset, "schema", None), "names", None)
        return names

    def has(self, name: str) -> bool:
        return name in OF_FILES or super().has(name)

    def runs(self, query: Query) -> list[Run]:
        return self._runs(query, None)

    def _runs(self, query: Query, fragments: Sequence[Any] | None) -> list[Run]:
        """Fragments that follow each other, None for all of them."""
        part = Part("the dataset", None, [])
        return [Run(part, lambda: self._scan(fragments, None, query))]

    def _whole(self, query: Query) -> Any:
        """The schema of all files, if some convert columns from types of their own."""

    def fragments(self) -> list[Any]:
        """Its files, whose footers or first rows have been read; none of another dataset."""
        if self._fragments is None:
            found = self._all_fragments() if self._own is None else []
            _ = self._stamped  # before the footers
            read_footers(found, getattr(self._dataset, "filesystem", None))
            self._fragments = found
        return self._fragments

    def _all_fragments(self) -> list[Any]:
        """Its files, before its own filter."""
        return list(self._unfiltered.get_fragments()) if _is_of_files(self._unfiltered) else []

    def _scan(
        self,
        fragments: Sequence[Any] | None,
        schema: Any,
        query: Query,
        seen: Mapping[str, Any] | None = None,
    ) -> Any:
        """A scan of these fragments, or all of them, with this schema, or that of the dataset.

        seen: types of columns that the filter names, if they are others than those of the schema.
        """
        dataset, where, columns = self._part(fragments, schema), self._where(query), query.columns
        if has_no_columns(dataset):
            raise ValueError("the dataset has no columns: was it made of no files?")
        wanted = _of_dataset(dataset, columns)
        options = _scan_options(dataset)
        read = _of_single_names(dataset)

        def named() -> list[str]:
            sees = _filters.seen_of(with_types(dataset.schema, seen or {}))
            return _filters.named(where, sees)

        if wanted == []:
            read, wanted = _for_rows(read, named if where is not None else list)
        is_pruned = where is not None and not (seen or self._is_unpruned(dataset.schema, where))
        if where is None or (is_pruned and not _is_misread(dataset, wanted)):
            options |= {} if where is None else {"filter": where}
            data = read.scanner(columns=wanted, **options)
            if hasattr(data, "to_reader"):
                data = without_views(self._reader(data, where, read, where))
        else:
            read = _pruned(read, where) if is_pruned else read
            names = None if wanted is None else list(dict.fromkeys([*wanted, *named()]))
            scan = read.scanner(columns=names, **options)
            data = self._reader(scan, where, read, None)
            data = _filters.filtered(data, where, wanted, seen)
        return reached(data, columns, query.may_lack)

    def _reader(self, scanner: Any, where: Any, read: Any, pruned_by: Any) -> Any:
        """read: the dataset of the scan.

        pruned_by: the filter of the scan itself, which leaves out files by the keys of folders.
        """
        if not is_of_pyarrow(self._dataset):
            return scanner.to_reader()
        kept, begun = self._kept(), self._begun(read.get_fragments(pruned_by))
        watch = Watch(begun)

        def look(fragment: Any) -> None:
            paths = [getattr(fragment, "path", "")]
            for place in local_paths(paths, getattr(fragment, "filesystem", None)):
                if place in kept:
                    self._check_kept([place])
                watch.look(place)

        def batches() -> Iterator[Any]:
            yield from data
            watch.end()

        # The types of files that were named hold all that is in them: their schema is empty here.
        data = _finite.checked(
            scanner, self._dataset.schema, where, look if kept or begun else None
        )
        return Made(data.schema, batches()) if begun else data

    def _begun(self, fragments: Iterable[Any]) -> dict[str, Any]:
        """What tells these files, if they are local, from others later, but for Parquet, of which
        the footers do.
        """
        form = getattr(self._unfiltered, "format", None)
        is_parquet = getattr(form, "default_extname", None) == "parquet"
        return {} if is_parquet else stamps_of(fragments)

    def _part(self, fragments: Sequence[Any] | None, schema: Any) -> Any:
        """The dataset of these fragments; texts are of types that pyarrow's kernels take."""
        whole = self._unfiltered
        schema = getattr(whole, "schema", None) if schema is None else schema
        if schema is None or not is_of_pyarrow(whole):
            return whole
        plain = schema_without_views(schema)
        if fragments:
            return _dataset_of(fragments, plain, fragments[0])
        is_plain = plain.equals(schema)
        # Tables keep their views until they are read.
        if is_plain or not any(hasattr(fragment, "path") for fragment in self._listed()):
            return whole
        return _dataset_of_plain(whole, plain)

    def _is_unpruned(self, schema: Any, where: Any) -> bool:
        """Whether statistics of Parquet would leave out rows that the filter keeps, or fail, or
        pyarrow cannot compare the values; and of Lance whether it is none of its own, which are
        texts: to Lance NaN is above all numbers, and `isin` knows no null.
        """
        dataset = self._dataset
        if not is_of_pyarrow(dataset):
            return not isinstance(where, str)
        _filters.bind(where, _filters.seen_of(schema))
        # Tables, and what views of files are in, keep them.
        if any(has_views(own.type) for own in schema) or _filters.has_unseen(where, schema):
            return True
        form = getattr(getattr(dataset, "format", None), "default_extname", "parquet")
        if form != "parquet":
            return False
        schema = _filters.seen_of(schema)
        if _filters.has_inexact(where, schema, [dataset.schema]):
            return True
        # Files may have views, or floats, that become the texts of the schema. What no file gives
        # other values is not worth the footers of all: the first one tells what fails.
        most = 1 if _filters.is_exact(where, schema) else None
        if _filters.has_inexact(where, schema, self._stored(where, most)):
            return True
        return not _filters.is_prunable(where, schema)

    def _stored(self, where: Any, most: int | None = None) -> list[Any]:
        """The schemas of the files of which the filter may keep rows, at most of some."""
        found = self._fragments or list(islice(self._unfiltered.get_fragments(where), most))
        read_footers(found, getattr(next(iter(found), None), "filesystem", None))
        return [fragment.physical_schema for fragment in found]

    def pieces(self) -> list[Piece] | None:
        if self._pieces is None:
            fragments = self.fragments()
            if fragments and are_parquet(fragments):
                self._pieces = [
                    Piece(fragment.subset(row_group_ids=[group.id]), 0, group.num_rows)
                    for fragment in fragments
                    for group in groups_of(fragment)
                ]
        return self._pieces

    def shuffled(self, pieces: Sequence[Piece], seed: int) -> list[Piece]:
        """The pieces in an order that is drawn."""
        return shuffled(pieces, seed)

    def read_pieces(self, query: Query, pieces: Sequence[Piece]) -> Any:
        """Arrow data of these pieces, in this order; a filter is for whole row groups."""
        runs = self._runs(query, [piece.group for piece in pieces])
        # Files that are not read now may hold words that these cannot.
        parts = [run.part for run in self._runs(query, None)] if query.categories else ()
        reader = joined(runs, query, self.way, self._whole(query), parts)
        if query.where is not None:
            return reader
        cuts = [(piece.start, piece.stop, rows_of(piece.group)) for piece in pieces]
        if all(start == 0 and stop == rows for start, stop, rows in cuts):
            return reader
        return Made(reader.schema, cut(reader, cuts))

    def read_resumed(self, query: Query, pieces: Sequence[Piece], positions: Any, read: int) -> Any:
        """The rows of the pieces at some positions, in their order, and then all from `read` on."""
        total = sum(map(len_of, pieces))
        left = list(pieces_of(pieces, read, total))
        rest = self.read_pieces(query, left) if left else None
        pool = rows_at(positions, pieces, partial(self.read_pieces, query))
        if rest is None:
            return pool
        return Made(rest.schema, chain([] if pool is None else reader_of(pool), rest))

    def identity(self, query: Query) -> Callable[[], dict[str, Any]]:
        begun = self._stamped | self._begun(self._listed())
        has_footers = self._fragments is not None

        def identity() -> dict[str, Any]:
            told = self._told_of(query, begun)
            # Footers with which the epoch did not begin may be those of other files.
            is_other = not has_footers and are_replaced(self._stamped)
            return told | {"files": REPLACED} if is_other else told

        return identity

    def _told_of(self, query: Query, begun: Mapping[str, Any]) -> dict[str, Any]:
        parts = self._parts()
        told = of_types(getattr(self._dataset, "schema", None), query)
        if (own := self._own) is not None:
            files = self._all_fragments()
            keys = list(map(keys_of, files))
            found = of_files(files, told, keys, begun) if files else told
            # Row groups, and rows, are those of the files, before the filter.
            of_whole = ("rows", "groups", "ends")
            told = {name: value for name, value in found.items() if name not in of_whole}
            told |= {"filter": of_filter(own)}
            names, schema = sorted(told["columns"]), self._dataset.schema
            told["ends"] = partial(digest_of_head, partial(self._scan, None, None), schema, names)
        if parts and all(hasattr(part, "path") for part in parts):
            keys = list(map(keys_of, parts))
            found = of_files(parts, told, keys, begun, schema=self._dataset.schema)
            if not self.fragments():
                found.pop("groups", None)  # a union is divided by rows
            return found
        rows = self.rows()
        if parts and rows is not None:
            return of_rows(rows, self._taken(compared(rows)), query)
        return told if rows is None else told | {"rows": rows}

    def _taken(self, positions: Sequence[int]) -> list[Any]:
        """The rows at some positions, of types that pyarrow's own `take` does not take too."""
        pa, dataset = import_module("pyarrow"), self._part(None, None)
        reader = _finite.scanned(dataset.scanner(columns=_of_dataset(dataset, None)))
        found, start = [], 0
        for batch in reader:
            stop = start + len(batch)
            own = [at - start for at in positions if start <= at < stop]
            found += [pa.record_batch(_core._take(batch, pa.array(own, "uint64")))] if own else []
            start = stop
        return [pa.Table.from_batches(found, reader.schema)]

    def _parts(self) -> list[Any]:
        """Its files, whose footers have been read, or the files and tables of a union."""
        fragments = self.fragments()
        if fragments or not is_of_pyarrow(self._dataset):
            return fragments
        if self._own is not None:
            return []
        fragments = self._listed()
        systems = (getattr(part, "filesystem", None) for part in fragments)
        read_footers(fragments, next(systems, None))
        return fragments

    def _listed(self) -> list[Any]:
        """Its files, and the tables of a union, of which nothing has been read for this."""
        whole = self._unfiltered
        return list(whole.get_fragments()) if is_of_pyarrow(whole) else []

    def explained(self, error: Exception, query: Query) -> Exception:
        """With the file that fails when it is read again, if the error names none.

        What is wrong is often at the beginning of a file; where it is not, files are read to their
        ends, as far as that goes in a minute.
        """
        if not is_of_reading(error) or not is_of_pyarrow(self._dataset):
            return error
        if path := next(filter(self._is_replaced, self._stamped), None):
            return self._replaced(path)
        where, told = self._where(query), error
        if where is not None:
            told = _filters.of_values(error, where, _filters.seen_of(self.schema(query)))
        fragments = self._fragments or self._listed()
        fragments = [fragment for fragment in fragments if hasattr(fragment, "path")]
        system = fragments[0].filesystem if fragments else None
        end = monotonic() + _SECONDS
        for fragment in fragments:
            if fragment.path in str(error):  # as where its first block does not parse
                column = self._unmade(query, end, fragment, error)
                return error if column is None else _naming(fragment, error, error, column)
        for is_whole in (False, True):
            look = partial(self._failure, query, end, is_whole)
            found = side_by_side(look, fragments, system)
            own: Exception
            for fragment, own in filter(None, found):
                if fragment.path in str(own):
                    return own
                # A store that fails says nothing of types.
                is_of_types = isinstance(own, (NotImplementedError, TypeError, ValueError))
                column = self._unmade(query, end, fragment, own) if is_of_types else None
                # pyarrow says the same of a value that the schema does not hold.
                is_of_filter = column is None and told is not error
                return told if is_of_filter else _naming(fragment, own, error, column)
        return told

    def _unmade(self, query: Query, end: float, fragment: Any, error: Exception) -> Any:
        """The column of the schema that is not made of the file's own, if the error is of one."""
        schema, theirs, where = self._dataset.schema, fragment.physical_schema, self._where(query)
        names = heads(query.columns, lambda: schema.names) or schema.names
        if where is not None and schema.names:
            names = [*names, *_filters.named(where, _filters.seen_of(schema))]
        whole = Dataset(self._unfiltered)
        for name in names:
            if any(of.get_field_index(name) < 0 for of in (schema, theirs)):
                continue
            is_other = not schema.field(name).type.equals(theirs.field(name).type)
            failed = is_other and whole._failure(Query(columns=[name]), end, True, fragment)
            if failed and _kind_of(failed[1]) == _kind_of(error):
                return schema.field(name)
        return None

    def _failure(
        self, query: Query, end: float, is_whole: bool, fragment: Any
    ) -> tuple[Any, Exception] | None:
        """The error of a file, of its first batch or its whole; none is looked for after `end`."""
        # Of CSV a value fails, of other formats the file.
        is_whole = is_whole or fragment.format.default_extname == "csv"
        try:
            _read_footer(fragment)
            for run in self._runs(query, [fragment]):
                for _ in reader_of(run.open()):
                    if not is_whole or monotonic() > end:
                        break
        except Exception as error:  # of a store too, which has classes of its own
            return fragment, error
        return None


def other_encoding(path: str) -> str:
    """How a file of CSV that is not UTF-8 is read, for errors."""
    return (
        f"pyarrow.csv.read_csv({path!r}, read_options=pyarrow.csv.ReadOptions("
        'encoding="latin-1")) makes a table of one in Latin-1'
    )


def _dataset_of(fragments: Sequence[Any], schema: Any, like: Any) -> Any:
    """like: one of them, or their dataset, with the format and the file system of all."""
    make = import_module("pyarrow.dataset").FileSystemDataset
    return make(list(fragments), schema, like.format, like.filesystem)


def _dataset_of_plain(dataset: Any, schema: Any) -> Any:
    """The dataset with its schema without views: pyarrow makes texts of more types than views."""
    pa = import_module("pyarrow.dataset")
    if isinstance(dataset, pa.UnionDataset):
        return pa.UnionDataset(
            schema, [_dataset_of_plain(child, schema) for child in dataset.children]
        )
    files = list(dataset.get_fragments())
    if files and hasattr(files[0], "path"):
        return _dataset_of(files, schema, files[0])
    return pa.dataset(without_views(dataset.to_table()))


def _is_misread(dataset: Any, names: Sequence[str] | None) -> bool:
    """Whether pyarrow's scan filters some of these columns, None for all, wrongly: lists of fixed
    size, and arrays of IPC files that are shorter than they say, as those with extension types are.
    """
    if not is_of_pyarrow(dataset):
        return False
    kinds = [own.type for own in dataset.schema if names is None or own.name in names]
    if any(map(has_matrices, kinds)):
        return True
    return any(map(extensions_of, kinds)) and _has_ipc(_file_datasets(dataset))


def _pruned(dataset: Any, where: Any) -> Any:
    """The dataset, if it is of files, less those and row groups of which the filter has no row."""
    if not _is_of_files(dataset):
        return dataset
    found = list(dataset.get_fragments(where))
    if are_parquet(found):
        some = (fragment.subset(filter=where, schema=dataset.schema) for fragment in found)
        found = [fragment for fragment in some if fragment.row_groups]
    return _dataset_of(found, dataset.schema, dataset)


def local_paths(paths: Iterable[str], system: Any) -> list[str]:
    """Where these files lie on this machine; none if they are elsewhere."""
    return [place for path in paths if (place := local_path(path, system)) is not None]


def _is_of_files(dataset: Any) -> bool:
    return is_of_pyarrow(dataset) and hasattr(dataset, "filesystem")


def _of_single_names(dataset: Any) -> Any:
    """The dataset without columns that share a name, none of which is read: pyarrow looks for all
    columns of a file without rows by their names.
    """
    if not _is_of_files(dataset):
        return dataset
    schema, counts = dataset.schema, Counter(dataset.schema.names)
    if len(counts) == len(schema):
        return dataset
    fields = [field for field in schema if counts[field.name] == 1]
    return dataset.replace_schema(import_module("pyarrow").schema(fields, schema.metadata))


def is_of_reading(error: Exception) -> bool:
    """Whether it comes from the data, rather than from what is made of it."""
    if type(error).__module__.startswith("pyarrow"):
        return True
    if isinstance(error, (OSError, _core.StreamError)):
        return True
    # A file system of Python's may raise anything, within a call of pyarrow's.
    modules = (frame.f_globals.get("__name__", "") for frame, _ in walk_tb(error.__traceback__))
    return any(module.startswith("pyarrow._dataset") for module in modules)


def _way_of_width(text: str) -> str:
    """The end of an error of CSV where a row has fewer or more columns than the first one; where
    that has one column, commas are not between columns.
    """
    if re.search(r"CSV parse error: .*Expected (?!1 )\d+ columns, got", text) is None:
        return ""
    return (
        "; pyarrow.dataset.dataset(paths, format=pyarrow.dataset.CsvFileFormat(parse_options="
        'pyarrow.csv.ParseOptions(invalid_row_handler=lambda row: "skip"))) leaves such rows out'
    )


def _kind_of(error: Exception) -> str:
    """What an error of pyarrow's says but for the value, which may be that of another batch."""
    return re.sub(r"'.*'|-?\d\S*", "", str(error), flags=re.DOTALL)


def _noted(fragment: Any, error: Exception) -> Exception:
    """An error of a class of its own, whose note names the file."""
    note = f"The file is {fragment.path}."
    if note not in getattr(error, "__notes__", []):
        error.add_note(note)
    return error


def _naming(fragment: Any, found: Exception, error: Exception, column: Any) -> Exception:
    """An error of a file's that names it, and the column, if it is one of CSV or of a cast."""
    if not isinstance(found, (NotImplementedError, OSError, TypeError, ValueError)):
        return _noted(fragment, error)
    text = str(found).splitlines()[0] if str(found) else type(found).__name__
    number = re.search(r"In CSV column #(\d+): Row #(\d+)", text)
    if column is not None:
        own = fragment.physical_schema.field(column.name).type
        text = re.sub(r"^Could not open \w+ input source '.*?': \w+: ", "", text)
        is_read_by_path = fragment.format.default_extname not in ("json", "orc")
        by_path = ", or the path in place of the dataset if its files have a common type,"
        text = (
            f'column "{column.name}" is {own} there and {column.type} in the schema of the '
            f"dataset, and pyarrow does not cast it: {text}; another schema="
            f"{by_path if is_read_by_path else ''} reads it"
        )
    elif number is not None:
        name = fragment.physical_schema.names[int(number[1])]
        wide = '"float64" there numbers with fractions'
        if "timestamp[s]" in text:
            wide = 'pyarrow.timestamp("ns") there times with fractions of seconds'
        elif "date32" in text:
            wide = (
                'pyarrow.timestamp("s") there with timestamp_parsers=[pyarrow.csv.ISO8601, '
                '"%d/%m/%Y"] dates of both formats'
            )
        way = (
            "a file's first block decides its types: pyarrow.dataset.dataset(paths, format="
            "pyarrow.dataset.CsvFileFormat(convert_options=pyarrow.csv.ConvertOptions("
            f'column_types={{"{name}": "string"}}))) reads texts, {wide}, and null_values=[...] '
            'takes some texts for nulls, in place of "", "NA" and such'
        )
        if "invalid UTF8" in text:
            way = other_encoding(fragment.path)
        text = text.replace(number[0], f'column "{name}": Row #{number[2]}') + f"; {way}"
    text += _way_of_width(text)
    # pyarrow counts rows: texts may have ends of lines.
    text = re.sub(r"Row #(\d+)", r"row \1 (the header counts, empty lines do not)", text, count=1)
    text = f"{fragment.path}: {text}"
    return retold(error, text) if isinstance(error, OSError) else ValueError(text)


def keys_of(fragment: Any) -> dict[str, Any]:
    """The constant columns of a file, which pyarrow reads in place of the file's own."""
    keys: dict[str, Any] = import_module("pyarrow.dataset").get_partition_keys(
        fragment.partition_expression
    )
    return keys


def read_footers(fragments: Sequence[Any], system: Any) -> None:
    """Reads the footers, or the types, of files; pyarrow keeps them in the fragments."""
    side_by_side(_read_footer, fragments, system)


def _read_footer(fragment: Any) -> None:
    try:
        if hasattr(fragment, "ensure_complete_metadata"):
            fragment.ensure_complete_metadata()
        else:
            _ = fragment.physical_schema.names
    except NotImplementedError as error:
        call = "scan_parquet" if fragment.format.default_extname == "parquet" else "scan_ipc"
        raise type(error)(of_no_type(fragment.path, error, call)) from error
    except OSError as error:
        # Errors of fsspec's file systems may tell no file.
        if (told := naming(error, fragment.path)) is error:
            raise
        raise told from error
    except UnicodeDecodeError as error:
        _check_no_gzip(fragment, error)
        raise ValueError(
            f"{fragment.path}: the names of its columns are no UTF-8: "
            f"{other_encoding(fragment.path)}"
        ) from error
    except ValueError as error:
        if fragment.filesystem.get_file_info(fragment.path).size == 0:
            raise ValueError(of_no_bytes(fragment.path)) from error
        _check_no_gzip(fragment, error)
        if "Empty CSV file or block" in str(error):
            raise ValueError(
                f"{fragment.path}: its one line has no end, and pyarrow takes no names from such a "
                "line: end it, or leave the file out"
            ) from error
        _note_of_csv(error, fragment.path)
        if is_told(fragment.path):
            raise
        raise ValueError(unread(fragment.path)) from error
    except Exception as error:
        _noted(fragment, error)
        raise


def _note_of_csv(error: Exception, path: str) -> None:
    """Adds what reads a file of CSV that pyarrow does not read as it is."""
    if "CSV parse error" in str(error):
        error.add_note(
            f"pyarrow.csv.read_csv({path!r}, read_options=..., parse_options=..., "
            "convert_options=...) makes a table of it: ReadOptions has encoding=, ParseOptions "
            f"delimiter=, ConvertOptions decimal_point={_way_of_width(str(error))}"
        )
    if "multiple columns named" in str(error):
        error.add_note(
            f"pyarrow.csv.read_csv({path!r}) makes a table of it, whose other columns columns= "
            "names, and pandas.read_csv a frame with other names"
        )


def _check_no_gzip(fragment: Any, error: Exception) -> None:
    """A better error for a CSV file of gzip whose name does not say so: pyarrow reads it as text.

    error: that of reading it.
    """
    is_named = fragment.path.lower().endswith(".csv")
    if is_named and beginning(fragment.path, fragment.filesystem).startswith(GZIP):
        raise ValueError(of_gzip(fragment.path)) from error


def _of_dataset(dataset: Any, columns: Sequence[str] | None) -> list[str] | None:
    """The columns that are to be read, None for all."""
    if columns is None:
        if not hasattr(dataset, "schema"):
            return None
        found = readable(dataset.schema)
        _core._check_names(found or [], found or [])
        return found
    names: Any = getattr(getattr(dataset, "schema", None), "names", None)
    wanted = heads(list(dict.fromkeys(columns)), lambda: names)
    if names is not None and wanted is not None:
        _core._check_names(names, [name for name in wanted if name not in OF_FILES])
    return wanted


def _for_rows(dataset: Any, named: Callable[[], list[str]]) -> tuple[Any, list[str]]:
    """The dataset to read where no column is asked for, and the column that is read then.

    Its schema is that column and those of a filter, which `named` tells: of Arrow files pyarrow
    reads and casts all columns of the schema if it is asked for none.
    """
    schema = getattr(dataset, "schema", None)
    if schema is None or not is_of_pyarrow(dataset):
        return dataset, for_rows(getattr(schema, "names", []))
    nulls = no_column(schema.names)
    made = import_module("pyarrow").schema([nulls, *map(schema.field, named())])
    return dataset.replace_schema(made), [nulls.name]


def _scan_options(dataset: Any) -> dict[str, Any]:
    """How a scan reads files: ahead enough for all cores, or for all of a network.

    As far as pyarrow reads a local file by itself, 16 batches, two cores decode most of it before
    its first batch is whole, and are idle while batches are made of it. Of files over a network it
    opens 4 at once, and most of the time waits for answers. A scan of Arrow files by several
    threads, which have columns that are not read, ends the process in pyarrow 26 if it is dropped
    early; one thread is as fast.
    """
    files = list(_file_datasets(dataset))
    systems = [one.filesystem for one in files if one.filesystem is not None]
    ahead: dict[str, Any] = {}
    if _has_ipc(files):
        ahead["use_threads"] = False
    if not systems:
        return ahead
    if all(map(is_local_system, systems)):
        return ahead | {"batch_readahead": min(16, 2 * import_module("pyarrow").cpu_count())}
    return ahead | {"fragment_readahead": 16}


def _has_ipc(datasets: Iterable[Any]) -> bool:
    """Whether some of these datasets are of Arrow files, which Feather's are too."""
    return any(one.format.default_extname in ("arrow", "feather") for one in datasets)


def _file_datasets(dataset: Any) -> Iterator[Any]:
    """The datasets of files that a dataset of pyarrow's is made of: itself, or its children."""
    if _is_of_files(dataset):
        yield dataset
    elif is_of_pyarrow(dataset):
        for child in getattr(dataset, "children", ()):
            yield from _file_datasets(child)


def has_no_columns(source: Any) -> bool:
    """Whether it is a dataset of pyarrow's that was made of nothing."""
    has_scanner = hasattr(source, "scanner")
    return has_scanner and getattr(getattr(source, "schema", None), "names", None) == []
