"""Sources of rows, and datasets of files, whose row groups are read alone."""

import random
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from itertools import chain, groupby, islice
from typing import Any

from . import _core, _filters
from ._encode import Encoder, encoded
from ._identity import digest_of, of_files, of_rows, of_types, read_by
from ._parallel import side_by_side
from ._pieces import Piece, cut, len_of, pieces_of, rows_at, rows_of
from ._readers import Made, heads, reached, reader_of, schema_without_views, without_views
from ._schema import (
    Part,
    Query,
    Run,
    common,
    conformed,
    features_of,
    fitted,
    head_of,
    is_same,
    merged_of,
    selected,
)

#: Columns that pyarrow's scanners have beside those of a dataset's schema.
_OF_FILES = ["__filename", "__fragment_index", "__batch_index", "__last_in_fragment"]


class Source:
    """Something with rows, read from the first to the last one."""

    #: How one of its parts gets another type, for errors.
    way = "pyarrow.table(x).cast(schema) casts one of them"

    def __init__(
        self,
        open_columns: Callable[[Sequence[str] | None], Any],
        rows: int | None = None,
        once: bool = False,
        names: Callable[[], Sequence[str] | None] = lambda: None,
        identify: Callable[[Query], dict[str, Any]] | None = None,
    ) -> None:
        """identify: tells what a state holds of data of which rows are not to be read for it."""
        self._open, self._rows, self.once, self._names = open_columns, rows, once, names
        self._identify = identify
        self._counted: dict[str, int] = {}

    def rows(self, where: Any = None) -> int | None:
        """How many rows it has; those of a filter are counted once."""
        if where is None or self._rows is None or self.once:
            return self._rows if where is None else None
        if self._counted.get(str(where)) is None:
            runs = self.runs(Query(where=where))
            self._counted[str(where)] = sum(len(batch) for run in runs for batch in run.open())
        return self._counted[str(where)]

    def read(self, query: Query) -> Any:
        """Arrow data with at least these columns, and codes in place of categories."""
        return joined(self.runs(query), query, self.way)

    def runs(self, query: Query) -> list[Run]:
        """Its parts, each with the types that it has itself."""
        return [Run(Part("the source", None, []), lambda: self._read(query, query.columns))]

    def _read(self, query: Query, columns: Sequence[str] | None) -> Any:
        if query.where is None:
            return reached(self._data(query, heads(columns, self._names)), columns)
        data = reader_of(self._data(query, None))
        wanted = heads(columns, lambda: data.schema.names)
        return reached(_filters.filtered(data, query.where, wanted), columns)

    def _data(self, query: Query, columns: Sequence[str] | None) -> Any:
        return self._open(columns)

    def names(self) -> Sequence[str] | None:
        """All of its columns, if they are known before it is read."""
        return self._names()

    def pieces(self) -> list[Piece] | None:
        """Its row groups, if it can read each of them alone."""
        return None

    def identity(self, query: Query) -> dict[str, Any]:
        """What a state holds of the data: what is known without reading all of it."""
        if self._identify is not None:
            return self._identify(query)
        if self.once or self._rows is None:
            return {}
        return of_rows(self._rows, lambda at: _core._take(self._open(None), at), query)

    def explained(self, error: Exception, query: Query) -> Exception:
        """An error of reading, which tells where it is."""
        return error


def joined(runs: Sequence[Run], query: Query, way: str) -> Any:
    """The runs one after the other, with one schema, and codes in place of categories."""
    categories = query.categories
    if len(runs) == 1:
        return encoded(runs[0].open(), categories, query.is_part)
    parts = [run.part for run in runs]
    encoder = Encoder(categories, [part.schema for part in parts], query.is_part)
    target = encoder.schema(common(parts, query, way))

    def batches() -> Iterator[Any]:
        for run in runs:
            for batch in reader_of(run.open()):
                yield fitted(encoder.batch(batch), target)

    return Made(target, batches())


class Stream(Source):
    """An iterator of batches, tables or frames, of which the first one decides the types."""

    def __init__(
        self,
        parts: Callable[[Sequence[str] | None], Iterable[Any]],
        rows: int | None = None,
        once: bool = False,
        names: Callable[[], Sequence[str] | None] = lambda: None,
        identify: Callable[[Query], dict[str, Any]] = lambda query: {},
    ) -> None:
        super().__init__(lambda columns: None, rows, once, names, identify)
        self._parts = parts

    def _data(self, query: Query, columns: Sequence[str] | None) -> Any:
        parts = iter(self._parts(columns))
        first = next(parts, None)
        if first is None:
            raise ValueError(
                "the source has no batches, and so no columns: pass a table without rows"
            )
        first = reader_of(first)
        names = heads(query.columns, lambda: first.schema.names)
        if names is not None and query.where is not None:
            names = list(
                dict.fromkeys(
                    [*names, *_filters.named(query.where, schema_without_views(first.schema))]
                )
            )
        schema = head_of(first.schema, names)
        return Made(schema, conformed(chain([first], parts), schema, names))


class Several(Source):
    """A list of batches, tables or frames, whose types are known before they are read."""

    def __init__(self, parts: Sequence[Any]) -> None:
        super().__init__(lambda columns: None, _rows_of_all(parts))
        self._parts = list(parts)
        self._schemas: list[Any] | None = None

    def runs(self, query: Query) -> list[Run]:
        if not self._parts:
            raise ValueError(
                "the source has no batches, and so no columns: pass a table without rows"
            )
        if self._schemas is None:
            self._schemas = [self._schema(at) for at in range(len(self._parts))]
        if query.where is not None:
            self._check_filter(query, [(f"part {at}", of) for at, of in enumerate(self._schemas)])
        runs: list[list[int]] = []
        for at, schema in enumerate(self._schemas):
            if runs and is_same(schema, self._schemas[runs[-1][0]]):
                runs[-1].append(at)
            else:
                runs.append([at])
        is_one = len(runs) == 1
        return [self._run(query, numbers, is_one) for numbers in runs]

    def _check_filter(self, query: Query, parts: Sequence[tuple[str, Any]]) -> None:
        """All parts have the columns that the filter names."""
        pa = import_module("pyarrow")
        if all(schema.equals(parts[0][1]) for _, schema in parts):
            return
        fields = {field.name: field for _, schema in parts[::-1] for field in schema}
        whole = schema_without_views(pa.schema(fields.values()))
        check_filter(parts, query, _filters.named(query.where, whole), self.way)

    def _run(self, query: Query, numbers: Sequence[int], is_one: bool) -> Run:
        """Parts of one schema; what they lack of the columns is for others to say."""
        schema = (self._schemas or [])[numbers[0]]
        own = selected(schema, query.columns)
        columns = query.columns if is_one or query.columns is None else own.names

        def data(_: Sequence[str] | None) -> Any:
            return Made(schema, (batch for at in numbers for batch in reader_of(self._parts[at])))

        some = Source(data, names=lambda: schema.names)
        part = Part(f"part {numbers[0]}", own, schema.names)
        return Run(part, lambda: some._read(query, columns))

    def _schema(self, at: int) -> Any:
        pa, part = import_module("pyarrow"), self._parts[at]
        known = getattr(part, "schema", None)
        if isinstance(known, pa.Schema):
            return known
        reader = reader_of(part)
        if is_read_once(part):
            self._parts[at] = reader
        return reader.schema

    def identity(self, query: Query) -> dict[str, Any]:
        if self._rows is None:
            return {}
        self.runs(query)
        named = read_by((self._schemas or [])[0], query)
        columns = None if query.columns is None else named
        plain = replace(query.uncoded(named), columns=columns, where=None)
        return of_rows(self._rows, lambda at: _core._take(reader_of(self.read(plain)), at), query)


def check_filter(
    parts: Sequence[tuple[str, Any]], query: Query, named: Sequence[str], way: str
) -> None:
    """An error for columns of a filter that a part lacks, or has with other values.

    A column whose wish settles its type is filtered with the types of each part.
    """
    for name in named:
        own = replace(query, columns=[name], where=None)
        settled = own.dtype_of(name) is not None or name in own.categories
        asked = own if settled and name in (query.columns or [name]) else Query(columns=[name])
        parts_of = [Part(part, selected(schema, [name]), schema.names) for part, schema in parts]
        if lacks := next((part for part in parts_of if name not in part.names), None):
            raise KeyError(f'filter= names column "{name}", which {lacks.name} has not')
        common(parts_of, asked, way)


_READ_ONCE = ("__next__", "read_next_batch", "get_next")


def is_read_once(source: Any) -> bool:
    """Whether its rows can be read but once."""
    return any(hasattr(type(source), name) for name in _READ_ONCE)


def rows_of_table(source: Any) -> int | None:
    """How many rows a table or a frame has, if it tells."""
    rows = getattr(source, "num_rows", getattr(source, "height", None))
    if type(source).__module__.partition(".")[0] == "pandas":
        rows = len(source)
    return rows if isinstance(rows, int) else None


def _rows_of_all(parts: Sequence[Any]) -> int | None:
    rows = [None if is_read_once(part) else rows_of_table(part) for part in parts]
    return None if None in rows else sum(number for number in rows if number is not None)


class Dataset(Source):
    """A dataset of pyarrow, or of another library that has its `scanner`: its schema counts."""

    def __init__(self, dataset: Any) -> None:
        super().__init__(lambda columns: None)
        self._dataset = dataset
        self._pieces: list[Piece] | None = None
        self._read_footers: list[Any] | None = None

    def rows(self, where: Any = None) -> int | None:
        if not hasattr(self._dataset, "count_rows"):
            return None
        plain = schema_without_views(self._dataset.schema) if where is not None else None
        if where is not None and self._is_unpruned(plain, where):
            names = _filters.named(where, plain)
            return _filters.count(self._scan(None, None, Query(columns=names)), where)
        count: int = self._dataset.count_rows(**({} if where is None else {"filter": where}))
        return count

    def names(self) -> Sequence[str] | None:
        names: Sequence[str] | None = getattr(getattr(self._dataset, "schema", None), "names", None)
        return names

    def runs(self, query: Query) -> list[Run]:
        return self._runs(query, None)

    def _runs(self, query: Query, fragments: Sequence[Any] | None) -> list[Run]:
        """Fragments that follow each other, None for all of them."""
        part = Part("the dataset", None, [])
        return [Run(part, lambda: self._scan(fragments, None, query))]

    def fragments(self) -> list[Any]:
        """Its files, whose footers or first rows have been read; none of another dataset."""
        if self._read_footers is None:
            found = self._own_fragments()
            read_footers(found, getattr(self._dataset, "filesystem", None))
            self._read_footers = found
        return self._read_footers

    def _own_fragments(self) -> list[Any]:
        try:
            of_files = type(self._dataset).__name__ == "FileSystemDataset"
            return list(self._dataset.get_fragments()) if of_files else []
        except ValueError:  # it has a filter of its own
            return []

    def _scan(self, fragments: Sequence[Any] | None, schema: Any, query: Query) -> Any:
        """A scan of these fragments, or all of them, with this schema, or that of the dataset."""
        dataset, where, columns = self._part(fragments, schema), query.where, query.columns
        if has_no_columns(dataset):
            raise ValueError("the dataset has no columns: was it made of no files?")
        wanted, options = _of_dataset(dataset, columns), _ahead_of(dataset)
        plain = schema_without_views(dataset.schema) if where is not None else None
        if where is None or not self._is_unpruned(plain, where):
            options |= {} if where is None else {"filter": where}
            data = dataset.scanner(columns=wanted, **options)
            data = without_views(data.to_reader()) if hasattr(data, "to_reader") else data
        else:
            more = _filters.named(where, plain)
            read = None if wanted is None else list(dict.fromkeys([*wanted, *more]))
            data = dataset.scanner(columns=read, **options).to_reader()
            data = _filters.filtered(data, where, wanted)
        return reached(data, columns)

    def _part(self, fragments: Sequence[Any] | None, schema: Any) -> Any:
        """The dataset of these fragments; texts are of types that pyarrow's kernels take."""
        whole = self._dataset
        schema = getattr(whole, "schema", None) if schema is None else schema
        if schema is None or not type(whole).__module__.startswith("pyarrow"):
            return whole
        plain = schema_without_views(schema)
        if fragments is None:
            fragments = [] if plain.equals(whole.schema) else self._own_fragments()
        if not fragments:
            return whole
        make = import_module("pyarrow.dataset").FileSystemDataset
        return make(list(fragments), plain, whole.format, getattr(whole, "filesystem", None))

    def _is_unpruned(self, schema: Any, where: Any) -> bool:
        """Whether statistics of Parquet would leave out rows that the filter keeps, or fail."""
        dataset = self._dataset
        is_pyarrow = type(dataset).__module__.startswith("pyarrow")
        form = getattr(getattr(dataset, "format", None), "default_extname", "parquet")
        known = [dataset.schema, *self._stored()] if is_pyarrow else []
        return is_pyarrow and form == "parquet" and _filters.has_inexact(where, schema, known)

    def _stored(self) -> list[Any]:
        """The schemas of its files, as far as they have been read."""
        return [fragment.physical_schema for fragment in self._read_footers or ()]

    def pieces(self) -> list[Piece] | None:
        if self._pieces is None:
            fragments = self.fragments()
            if fragments and all(hasattr(fragment, "row_groups") for fragment in fragments):
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

    def read_pieces(self, query: Query, pieces: Sequence[Piece]) -> Any:
        """Arrow data of these pieces, in this order; a filter is for whole row groups."""
        reader = joined(self._runs(query, [piece.group for piece in pieces]), query, self.way)
        if query.where is not None:
            return reader
        cuts = [(piece.start, piece.stop, rows_of(piece)) for piece in pieces]
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

    def identity(self, query: Query) -> dict[str, Any]:
        if children := getattr(self._dataset, "children", None):
            return {"sources": [Dataset(child).identity(query) for child in children]}
        schema = getattr(self._dataset, "schema", None)
        rows = None if self.fragments() else self.rows()
        if type(self._dataset).__name__ == "InMemoryDataset" and rows is not None:
            take = self._dataset.take
            return of_rows(rows, lambda at: take(at.cast("int64")), query)
        system = getattr(self._dataset, "filesystem", None)
        return of_types(schema, query) | of_files(self.fragments(), system, rows)

    def explained(self, error: Exception, query: Query) -> Exception:
        """With the file that fails when it is read again, if the error names none."""
        if not _is_of_reading(error) or type(self._dataset).__name__ != "FileSystemDataset":
            return error
        fragments = self._read_footers or self._own_fragments()
        if any(fragment.path in str(error) for fragment in fragments):
            return error
        system = getattr(self._dataset, "filesystem", None)
        found = side_by_side(partial(self._failure, query), fragments, system)
        failures = (pair for pair in found if pair is not None)
        return next((_naming(fragment, own, error) for fragment, own in failures), error)

    def _failure(self, query: Query, fragment: Any) -> tuple[Any, Exception] | None:
        is_csv = self._dataset.format.default_extname == "csv"
        try:
            for run in self._runs(query, [fragment]):
                batches = iter(reader_of(run.open()))
                # Of CSV a value fails, of other formats the file.
                for _ in batches if is_csv else islice(batches, 1):
                    pass
        except (OSError, ValueError) as error:
            return fragment, error
        return None


class Files(Dataset):
    """Files that were named, whose columns have the type that all of their footers allow."""

    way = "pyarrow.dataset.dataset(paths, schema=pyarrow.schema(...)) reads all as that schema"

    def __init__(self, files: Sequence[tuple[str, Any]], form: Any, system: Any) -> None:
        """files: paths, and the values of the keys of the folders that count, by their names."""
        pa = import_module("pyarrow")
        make = import_module("pyarrow.dataset").FileSystemDataset
        super().__init__(make([], pa.schema([]), form, system))
        self._files, self._format, self._system = list(files), form, system
        #: For each file which of the schemas it has, and those with the first file of each.
        self._kinds: list[int] = []
        self._schemas: list[tuple[str, Any]] = []

    def fragments(self) -> list[Any]:
        if self._read_footers is None:
            self._read_footers = self._opened()
        return self._read_footers

    def _opened(self) -> list[Any]:
        """The files, with keys of folders as columns, but for those that a file has itself."""
        if not self._files:
            raise ValueError("the dataset has no columns: was it made of no files?")
        make = partial(self._format.make_fragment, filesystem=self._system)
        found = [make(path, partition_expression=_told(keys)) for path, keys in self._files]
        read_footers(found, self._system)
        again = []
        for at, (path, keys) in enumerate(self._files):
            schema = found[at].physical_schema
            if keys and any(name in schema.names for name in keys):
                rest = {name: key for name, key in keys.items() if name not in schema.names}
                self._files[at] = path, rest
                found[at] = make(path, partition_expression=_told(rest))
                again.append(found[at])
        read_footers(again, self._system)
        self._kinds = [self._kind(at, fragment) for at, fragment in enumerate(found)]
        return found

    def _kind(self, at: int, fragment: Any) -> int:
        path, keys = self._files[at]
        schema = fragment.physical_schema
        for name, key in keys.items():
            schema = schema.append(import_module("pyarrow").field(name, key.type))
        for number, (_, known) in enumerate(self._schemas):
            if is_same(schema, known):
                return number
        self._schemas.append((path, schema))
        return len(self._schemas) - 1

    def names(self) -> Sequence[str] | None:
        self.fragments()
        return list(dict.fromkeys(name for _, schema in self._schemas for name in schema.names))

    def identity(self, query: Query) -> dict[str, Any]:
        fragments = self.fragments()
        told = of_types(self._schema(query)[0], query)
        keys = [
            [(name, str(key)) for name, key in own.items() if name in told["columns"]]
            for _, own in self._files
        ]
        of_keys = {"keys": digest_of(keys)} if any(keys) else {}
        return told | of_keys | of_files(fragments, self._system, None)

    def _stored(self) -> list[Any]:
        return [schema for _, schema in self._schemas]

    def rows(self, where: Any = None) -> int | None:
        fragments = self.fragments()
        if where is not None:
            query = Query(columns=[], where=where)
            return sum(len(batch) for run in self.runs(query) for batch in reader_of(run.open()))
        if all(hasattr(fragment, "row_groups") for fragment in fragments):
            return sum(int(fragment.metadata.num_rows) for fragment in fragments)
        return sum(int(fragment.count_rows()) for fragment in fragments)

    def runs(self, query: Query) -> list[Run]:
        return self._runs(query, self.fragments())

    def _runs(self, query: Query, fragments: Sequence[Any] | None) -> list[Run]:
        fragments = self.fragments() if fragments is None else fragments
        schema, own = self._schema(query)
        if not own:
            part = Part(fragments[0].path, schema, schema.names)
            return [Run(part, lambda: self._scan(fragments, schema, query))]
        kinds = {path: kind for (path, _), kind in zip(self._files, self._kinds, strict=True)}
        runs = []
        for kind, some in groupby(fragments, lambda fragment: kinds[fragment.path]):
            runs.append(self._run(query, list(some), schema, own, self._schemas[kind][1]))
        return runs

    def _run(
        self, query: Query, fragments: list[Any], schema: Any, own: Sequence[str], theirs: Any
    ) -> Run:
        """Fragments of one schema, whose own types some columns keep."""
        pa = import_module("pyarrow")
        fields = [
            theirs.field(field.name) if field.name in own and field.name in theirs.names else field
            for field in schema
        ]
        mine = pa.schema(fields, schema.metadata)
        part = Part(fragments[0].path, selected(mine, query.columns), theirs.names)
        if query.columns is not None:
            query = replace(query, columns=part.schema.names)
        return Run(part, lambda: self._scan(fragments, mine, query))

    def _schema(self, query: Query) -> tuple[Any, list[str]]:
        """The columns that are read, and those that each file converts from its own type."""
        pa = import_module("pyarrow")
        known = list(self.names() or ())
        for name in query.columns or ():
            self._check_key(name, known)
        if len(self._schemas) == 1:
            return self._schemas[0][1], []
        names = heads(query.columns, lambda: known)
        for path, schema in self._schemas:
            if twice := next((name for name in names or () if schema.names.count(name) > 1), None):
                raise KeyError(
                    f'{schema.names.count(twice)} columns of {path} are called "{twice}"'
                )
        _core._check_names(known, names or [])
        parts = [
            Part(path, selected(schema, query.columns), schema.names)
            for path, schema in self._schemas
        ]
        common(parts, query, self.way)
        plain = [name for name in known if all(of.names.count(name) < 2 for _, of in self._schemas)]
        whole = pa.schema([self._field(name)[0] for name in plain], self._schemas[0][1].metadata)
        named = [] if query.where is None else _filters.named(query.where, whole)
        read = features_of_all(self._schemas) if names is None else names
        wanted = [name for name in dict.fromkeys([*read, *named]) if name in known]
        own = [name for name in wanted if not self._field(name)[1]]
        check_filter(self._schemas, query, named, self.way)
        fields = [self._field(name)[0] for name in wanted]
        return pa.schema(fields, self._schemas[0][1].metadata), own

    def _field(self, name: str) -> tuple[Any, bool]:
        """The column as all files have it, and whether there is a type for all of them."""
        having = [
            schema.field(name) for _, schema in self._schemas if schema.names.count(name) == 1
        ]
        kind, _ = merged_of([field.type for field in having])
        is_nullable = len(having) < len(self._schemas) or any(field.nullable for field in having)
        field = having[0] if kind is None else having[0].with_type(kind)
        return field.with_nullable(is_nullable), kind is not None

    def _check_key(self, name: str, known: Sequence[str]) -> None:
        """A better error for the key of a folder that does not count."""
        path = self._files[0][0]
        if name not in known and f"/{name}=" in f"/{path}":
            raise KeyError(
                f'no column "{name}": of {path} it is the key of a folder, which counts only below '
                "the folder that is passed, or from the first part of a pattern with a wildcard "
                f'on: pass the folder that has "{name}=..." in it'
            )


def _is_of_reading(error: Exception) -> bool:
    """Whether it comes from the data, rather than from what is made of it."""
    of_pyarrow = type(error).__module__.startswith("pyarrow")
    return of_pyarrow or isinstance(error, OSError) or str(error).startswith("the Arrow stream")


def _naming(fragment: Any, found: Exception, error: Exception) -> Exception:
    """An error of a file's that names it, and of CSV the column by its name."""
    text = str(found).splitlines()[0] if str(found) else type(found).__name__
    number = re.search(r"In CSV column #(\d+): Row #(\d+)", text)
    if number is not None:
        name = fragment.physical_schema.names[int(number[1])]
        text = text.replace(number[0], f'column "{name}", line {number[2]}') + (
            "; a file's first block decides its types: pyarrow.dataset.dataset(paths, "
            'format="csv", schema=...) says others'
        )
    kind = type(error) if isinstance(error, OSError) else ValueError
    return kind(f"{fragment.path}: {text}")


def features_of_all(schemas: Sequence[tuple[str, Any]]) -> list[str]:
    """The columns of all files that are read where none are named."""
    return list(dict.fromkeys(name for _, schema in schemas for name in features_of(schema)))


def _told(keys: dict[str, Any]) -> Any:
    """What pyarrow takes for the constant columns of a file."""
    whole = None
    for name, key in keys.items():
        column = import_module("pyarrow.compute").field(name)
        one = column == key if key.is_valid else column.is_null()
        whole = one if whole is None else whole & one
    return whole


def read_footers(fragments: Sequence[Any], system: Any) -> None:
    """Reads the footers, or the types, of files; pyarrow keeps them in the fragments."""
    side_by_side(_read_footer, fragments, system)


def _read_footer(fragment: Any) -> None:
    try:
        if hasattr(fragment, "ensure_complete_metadata"):
            fragment.ensure_complete_metadata()
        else:
            _ = fragment.physical_schema
    except OSError as error:
        if fragment.path in str(error):
            raise
        # Errors of fsspec's file systems may tell no file.
        raise type(error)(f"{fragment.path}: {error}") from error


def _of_dataset(dataset: Any, columns: Sequence[str] | None) -> list[str] | None:
    """The columns that are to be read, None for all."""
    if columns is None:
        return None
    names: Any = getattr(getattr(dataset, "schema", None), "names", None)
    wanted = heads(list(dict.fromkeys(columns)), lambda: names)
    if names is not None and wanted is not None:
        _core._check_names(names, [name for name in wanted if name not in _OF_FILES])
        # Of batches without columns nothing tells how many rows they have.
        return wanted or names[:1]
    return wanted


def _ahead_of(dataset: Any) -> dict[str, int]:
    """How far a scan of files reads ahead: enough for all cores, or for all of a network.

    As far as pyarrow reads a local file by itself, 16 batches, two cores decode most of it before
    its first batch is whole, and are idle while batches are made of it. Of files over a network it
    opens 4 at once, and most of the time waits for answers.
    """
    system = getattr(dataset, "filesystem", None)
    if system is None:
        return {}
    if getattr(system, "type_name", None) == "local":
        return {"batch_readahead": min(16, 2 * import_module("pyarrow").cpu_count())}
    return {"fragment_readahead": 16}


def has_no_columns(source: Any) -> bool:
    """Whether it is a dataset of pyarrow's that was made of nothing."""
    has_scanner = hasattr(source, "scanner")
    return has_scanner and getattr(getattr(source, "schema", None), "names", None) == []
