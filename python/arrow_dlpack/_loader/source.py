"""What is read: a stream of Arrow data, an iterator of batches, or a list of tables."""

import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from itertools import count
from typing import Any

from .. import _core
from .._arrow_types import meaning_of
from .._frames import is_pandas_frame
from . import filters as _filters
from .categories import ColumnCoder, encoded
from .identity import compared, of_filter, of_frames, of_rows, of_types, read_by
from .known import is_of_duckdb, library_of
from .merging import differing, merged_of
from .readers import (
    Made,
    for_rows,
    has_nulls,
    heads,
    is_frame,
    is_polars_batches,
    present,
    reached,
    readable_for,
    reader_of,
    recorded,
    without_view,
)
from .row_groups import Piece
from .schema import (
    ALL,
    APART,
    TOLD,
    Part,
    Query,
    Run,
    Told,
    check_conforms,
    check_steps,
    common,
    conformed,
    differ,
    fitted,
    is_same,
    of_stream,
    part_of,
    retyped,
    schema_of_heads,
    seen_of_all,
    settled_type,
    steps_of,
    told_by,
    with_types,
)
from .sharding import Share

#: What is said of a source that gives nothing.
NO_BATCHES = (
    "the source has no batches, and so no columns: pass a table without rows, or an iterator that "
    "was not read before"
)
#: How far a stream is looked at for the type of what begins with nulls: in batches, as far as
#: a scan of pyarrow's reads ahead, or rows, if those have fewer.
_PARTS_AHEAD, _ROWS_AHEAD = 16, 1 << 16


class Loop:
    """What is looped over, epoch after epoch, and is no source itself: a Loader."""


def casting(call: str) -> str:
    """How one of several sources gets another type, for errors."""
    return f"{call} casts one of them"


class Source:
    """Something with rows, read from the first to the last one."""

    #: How one of its parts gets another type, for errors.
    way = casting("pyarrow.table(x).cast(schema)")
    #: Whether an iterator is closed with the loop, as one that a function made for it alone.
    is_of_loop = False
    _readers: Sequence[Any] = ()

    def __init__(
        self,
        rows: int | None = None,
        once: bool = False,
        names: Callable[[], Sequence[str] | None] = lambda: None,
        *,
        count: Callable[[], int | None] | None = None,
        way: str | None = None,
    ) -> None:
        """count: the rows that data have now which may change between epochs."""
        self._rows, self.once, self._names, self._count = rows, once, names, count
        self._counted: dict[str, int] = {}
        self.way = way or self.way

    @property
    def is_begun(self) -> bool:
        """Whether an iterator that is read once has given a batch, which is gone from it."""
        return False

    def rows(self, query: Query = ALL) -> int | None:
        """How many rows it has; those of a filter are counted once."""
        where = query.where
        if where is None or self._rows is None or self.once:
            return self._rows if where is None else None
        kept = of_filter(where)
        if kept not in self._counted:
            self._counted[kept] = count_of(self.runs(query.counted))
        return self._counted[kept]

    def read(self, query: Query) -> Any:
        """Arrow data with at least these columns, and codes in place of categories."""
        return joined(self.runs(query), query, self.way)

    def runs(self, query: Query) -> list[Run]:
        """Its parts, each with the types that it has itself."""
        return [Run(Part("the source", None, []), lambda: self._read(query, query.columns))]

    def _read(
        self, query: Query, columns: Sequence[str] | None, seen: Mapping[str, Any] | None = None
    ) -> Any:
        if query.where is None:
            data = readable_for(self._data(query, self._wanted(columns)), columns)
            return data if columns is None else reached(data, columns, query.may_lack)
        data = reader_of(readable_for(self._data(query, None), columns, named_in(query)))
        columns = present(columns, data.schema, query.may_lack)
        wanted = heads(columns, lambda: data.schema.names)
        return reached(_filters.filtered(data, query.where, wanted, seen), columns)

    def _wanted(self, columns: Sequence[str] | None) -> list[str] | None:
        """The columns that are opened, None for all."""
        wanted = heads(columns, self._names)
        if wanted is None or wanted:
            return wanted
        return for_rows(self._names() or []) or None

    def _data(self, query: Query, columns: Sequence[str] | None) -> Any:
        """What is opened for `_read`, with these columns at least."""
        raise NotImplementedError

    def schema(self, query: Query = ALL) -> Any:
        """All of its columns as a filter sees them, None if that is not known before it is read."""
        raise NotImplementedError

    def untyped(self) -> Sequence[str]:
        """Columns of which another source may say that they are texts: this one has no value."""
        return ()

    def check_texts(self, query: Query) -> None:
        """Refuses files of texts, as far as they have been read, of which pyarrow makes others."""

    def head(self) -> tuple[list[Any], bool] | None:
        """The schemas of its first files, and whether there are no others."""
        return None

    def refresh(self) -> None:
        """Forgets what has been read of files and frames that are others by now."""
        if self._count is not None:
            self._rows = self._count()
            self._counted.clear()

    def names(self) -> Sequence[str] | None:
        """All of its columns, if they are known before it is read."""
        return self._names()

    def has(self, name: str) -> bool:
        """Whether it has the column, or what has the field at this path, as far as it tells."""
        known = self.names()
        return known is None or set(heads([name], lambda: known) or ()) <= set(known)

    def asked(self, query: Query) -> Query:
        """The query without columns that this may lack, and does."""
        if query.columns is None:
            return query
        filled = set(filter(query.may_lack, query.columns))
        steps = self.steps() if filled else set()
        for name in filled:
            check_steps(name, "the source", steps)
        columns = [name for name in query.columns if name not in filled or self.has(name)]
        return replace(query, columns=columns)

    def steps(self) -> set[str]:
        """The names of an index of pandas's at equal steps, of which it has no values."""
        return set()

    def pieces(self) -> list[Piece] | None:
        """Its row groups, if it can read each of them alone."""
        return None

    def found(self) -> Any:
        """What opens the files that were found, in a copy of the loader in another process: all
        workers of an epoch divide one list. None for what is opened there as here.
        """
        return None

    def readers(self) -> Sequence[Any]:
        """What is read of it once, and may have been read by others: readers and iterators."""
        return self._readers

    def check_unread(self) -> None:
        """Refuses readers of which rows are gone: a state goes on from the first row."""
        for reader in self.readers():
            if _core._Reading(reader).is_taken:
                raise ValueError(
                    f"the state goes on from the first row, and an earlier loop took rows of this "
                    f"{type(reader).__name__}, which is read once: open it again"
                )

    def check_whole(self) -> None:
        """Refuses data of which other processes read the rest, where all of it has to be known."""

    def check_share(self, share: Share) -> None:
        """Refuses ranks of which each has other data, or a part of them already."""

    def identity(self, query: Query) -> Callable[[], dict[str, Any]]:
        """Tells what a state holds of the data as it is now, whenever it is asked.

        An epoch takes it before it reads: of files that are replaced later, those of now count. It
        is what is known without reading all of the data.
        """
        told = partial(self._identity_of, query)
        if self._count is None or self._rows is None:
            return told
        return of_frames(partial(self._compared, query), query, told)

    def _compared(self, query: Query) -> tuple[int, list[Any], Any]:
        """How many rows frames have now, tables of those that are compared, and the schema of all
        rows, None for that of the first table.
        """
        raise NotImplementedError

    def _identity_of(self, query: Query) -> dict[str, Any]:
        raise NotImplementedError

    def explained(self, error: Exception, query: Query) -> Exception:
        """An error of reading, which tells where it is."""
        return error

    @contextmanager
    def explaining(self, query: Query) -> Iterator[None]:
        """Raises errors of reading as `explained` tells them."""
        try:
            yield
        except (KeyError, NotImplementedError, OSError, ValueError) as error:
            told = self.explained(error, query)
            if told is error:
                raise
            raise told from error


class Opened(Source):
    """Arrow data that a function opens, for each epoch."""

    def __init__(
        self,
        open_columns: Callable[[Sequence[str] | None], Any],
        rows: int | None = None,
        once: bool = False,
        names: Callable[[], Sequence[str] | None] = lambda: None,
        identify: Callable[[Query], dict[str, Any]] | None = None,
        *,
        count: Callable[[], int | None] | None = None,
        known: Callable[[], Any] = lambda: None,
        readers: Sequence[Any] = (),
        way: str | None = None,
    ) -> None:
        """identify: tells what a state holds of data of which rows are not to be read for it.

        known: the schema of data that are read once, None if they do not tell it unread.
        """
        super().__init__(rows, once, names, count=count, way=way)
        self._open, self._identify, self._known_schema = open_columns, identify, known
        self._readers = readers

    def _data(self, query: Query, columns: Sequence[str] | None) -> Any:
        return self._open(columns)

    def steps(self) -> set[str]:
        schema = self._known_schema()
        return set() if schema is None else steps_of(schema)

    def schema(self, query: Query = ALL) -> Any:
        if self.once:
            return self._known_schema()
        return reader_of(readable_for(self._open(None), query.columns, named_in(query))).schema

    def _compared(self, query: Query) -> tuple[int, list[Any], Any]:
        frame = self._open(None)
        rows = rows_of_table(frame) or 0
        return rows, [_rows_alone(frame, compared(rows), query)], None

    def _identity_of(self, query: Query) -> dict[str, Any]:
        if self._identify is not None:
            return self._identify(query)
        if self.once or self._rows is None:
            return {}
        data = readable_for(self._open(None), query.columns)
        try:
            # What Rust gives back has no extension types within dictionaries.
            data = reader_of(data)
        except ImportError:
            return {"rows": self._rows}
        taken = _core._take(data, _as_positions(compared(self._rows)))
        return of_rows(self._rows, [taken], query, data.schema)


def named_in(query: Query) -> Callable[[Any, str], bool] | None:
    """Tells whether the query's filter names a column of a schema; None without a filter."""
    where = query.where
    if where is None:
        return None
    return lambda schema, name: _filters.is_named(where, _filters.seen_of(schema), name)


def count_of(runs: Iterable[Run]) -> int:
    """How many rows these have."""
    return sum(len(batch) for run in runs for batch in reader_of(run.open()))


def joined(
    runs: Sequence[Run], query: Query, way: str, whole: Any = None, parts: Sequence[Part] = ()
) -> Any:
    """The runs one after the other, with one schema, and codes in place of categories.

    whole: the schema, where runs that are not read decide it too.
    parts: those of all runs, where some are not read.
    """
    categories = query.categories
    if len(runs) == 1 and whole is None:
        return encoded(runs[0].open(), categories, query)
    parts = parts or [run.part for run in runs]
    coder = ColumnCoder(categories, [part.schema for part in parts], query)
    target = coder.schema(common(parts, query, way) if whole is None else whole)

    def batches() -> Iterator[Any]:
        for run in runs:
            for batch in reader_of(run.open()):
                yield fitted(coder.batch(batch), target, query)

    return Made(target, batches())


def _columns_of(query: Query) -> tuple[str, ...] | None:
    return None if query.columns is None else tuple(query.columns)


class Stream(Source):
    """An iterator of batches, tables or frames, of which the first one decides the types."""

    way = casting("(pyarrow.table(batch).cast(schema) for batch in x)")

    def __init__(
        self,
        parts: Callable[[Sequence[str] | None], Iterable[Any]],
        rows: int | None = None,
        once: bool = False,
        names: Callable[[], Sequence[str] | None] = lambda: None,
        identify: Callable[[Query], dict[str, Any]] = lambda query: {},
        *,
        told: Told = TOLD,
        known: Callable[[], Any] = lambda: None,
        way: str | None = None,
    ) -> None:
        super().__init__(rows, once, names, way=way)
        self._identify, self._known_schema = identify, known
        self._parts, self._told_parts, self._is_begun = parts, told, False
        #: Those of an iterator that is read once, from its first reading on.
        self._left: _Parts | None = None
        #: The schema that its first batches had, by the columns that were read.
        self._begun_as: dict[tuple[str, ...] | None, Any] = {}

    @property
    def is_begun(self) -> bool:
        return self._is_begun

    def readers(self) -> Sequence[Any]:
        # Its first batches may have been looked at, and are there.
        is_whole = self._left is not None and self._left.is_whole
        return [self._parts(None)] if self.once and not is_whole else ()

    def schema(self, query: Query = ALL) -> Any:
        return self._known_schema()

    def _identity_of(self, query: Query) -> dict[str, Any]:
        begun = self._begun_as.get(_columns_of(query))
        return self._identify(query) or of_types(begun, query)

    def _data(self, query: Query, columns: Sequence[str] | None) -> Any:
        source = self._parts(columns)
        left = self._left or _Parts(source, self.is_of_loop)
        if self.once:
            self._left = left
        reading, parts = _core._Reading(source), left.looked_at()
        first = next(parts, None)
        if first is None:
            reading.end()
            raise ValueError(NO_BATCHES)
        # It is gone from the iterator, even if its rows are not read.
        self._is_begun = self.once
        rows = rows_of_table(first)
        reading.took(1 if rows is None else rows)
        is_named = named_in(query)
        first = reader_of(readable_for(first, query.columns, is_named))
        ahead = (readable_for(part, query.columns, is_named) for part in parts)
        needed = present(query.columns, first.schema, query.may_lack)
        _core._check_names(first.schema.names, heads(needed, lambda: first.schema.names) or [])
        names = heads(query.columns, lambda: first.schema.names)
        # A filter may name others.
        schema = schema_of_heads(first.schema, names) if query.where is None else first.schema
        schema, begun, told_by_later = _begun(schema, first, ahead)
        if names is not None and query.where is not None:
            named = _filters.named(query.where, _filters.seen_of(schema))
            names = list(dict.fromkeys([*names, *named]))
        schema = of_stream(schema_of_heads(schema, names))
        # Later batches may say what nulls are.
        has_null_types = any(has_nulls(own.type) for own in schema)
        self._begun_as[_columns_of(query)] = None if has_null_types else schema

        def read() -> Iterator[Any]:
            left.take(len(begun))
            try:
                yield from begun
                for part in left.rest():
                    yield readable_for(part, query.columns, is_named)
            except GeneratorExit:
                left.end()
                raise

        if names is not None:
            names = list(dict.fromkeys([*names, *(query.columns or ())]))
        batches = conformed(read(), schema, names, self._told_parts, told_by_later)
        return Made(schema, recorded(reading, batches))


class _Parts:
    """The parts of a stream. Those that are looked at for the types are there until rows are read:
    an `Encoder` that asks for the types before an epoch takes no rows from it.
    """

    def __init__(self, parts: Iterable[Any], is_of_loop: bool) -> None:
        self._parts, self._known, self._is_of_loop = iter(parts), deque[Any](), is_of_loop
        #: Whether all that was taken of them is here.
        self.is_whole = True

    def looked_at(self) -> Iterator[Any]:
        """All parts, which stay."""
        for at in count():
            if at == len(self._known):
                try:
                    part = next(self._parts)
                except StopIteration:
                    return
                # Readers of some libraries give their stream once.
                gives_once = _core._is_read_once(part) and not is_polars_batches(part)
                self._known.append(reader_of(part) if gives_once else part)
            yield self._known[at]

    def take(self, number: int) -> None:
        """Leaves out the first ones, which do not come again."""
        self.is_whole = False
        for _ in range(number):
            self._known.popleft()

    def rest(self) -> Iterator[Any]:
        """The others, of which none comes again."""
        while self._known:
            yield self._known.popleft()
        # Not "yield from", which closes a generator of the user's with this one, nor "for", which
        # calls `__iter__` again, where some iterators begin anew.
        while True:
            try:
                part = next(self._parts)
            except StopIteration:
                return
            yield part

    def end(self) -> None:
        """The loop was left, and with it a generator that is for this loop alone."""
        close = getattr(self._parts, "close", None)
        if self._is_of_loop and callable(close):
            close()


def _begun(schema: Any, first: Any, parts: Iterator[Any]) -> tuple[Any, list[Any], dict[str, int]]:
    """The schema of a stream, the parts that were looked at for it, and the columns of which
    another part than the first one says the type, with its number.

    Nulls alone are of no type: parts that follow say which.
    """
    begun, rows = [first], 0
    later: dict[str, int] = {}
    while any(has_nulls(own.type) for own in schema):
        if len(begun) >= _PARTS_AHEAD and rows >= _ROWS_AHEAD:
            break
        if (part := next(parts, None)) is None:
            break
        own = rows_of_table(part)
        rows += _ROWS_AHEAD if own is None else max(own, 1)
        reader, before = reader_of(part), schema
        schema = told_by(schema, reader.schema)
        pairs = zip(before, schema, strict=True)
        later |= {own.name: len(begun) for was, own in pairs if was.type != own.type}
        begun.append(reader)
    return schema, begun, later


class Several(Source):
    """A list of batches, tables or frames, whose types are known before they are read."""

    def __init__(self, parts: Sequence[Any]) -> None:
        self._readers = list(filter(_core._is_read_once, parts))
        count = partial(_rows_of_all, parts) if any(map(is_frame, parts)) else None
        super().__init__(_rows_of_all(parts), bool(self._readers), count=count)
        self._parts = list(parts)
        #: By the columns that are read.
        self._schemas: dict[tuple[str, ...] | None, list[Any]] = {}
        #: Streams of other libraries, which may hand out their rows once and not say so.
        self._unknown: set[int] = set()

    def refresh(self) -> None:
        super().refresh()
        if self._count is not None:
            self._schemas.clear()

    def schema(self, query: Query = ALL) -> Any:
        return whole_of(self._known(query), query)

    def _known(self, query: Query) -> list[Any]:
        """The schemas of its parts."""
        if not self._parts:
            raise ValueError(NO_BATCHES)
        of = _columns_of(query)
        if of not in self._schemas:
            self._schemas[of] = [self._schema(at, query) for at in range(len(self._parts))]
        return self._schemas[of]

    def runs(self, query: Query) -> list[Run]:
        schemas = self._known(query)
        parts = [(self._name(at), schema) for at, schema in enumerate(schemas)]
        seen = seen_by(parts, query, self.way)
        runs: list[list[int]] = []
        for at, schema in enumerate(schemas):
            if runs and is_same(schema, schemas[runs[-1][0]]):
                runs[-1].append(at)
            else:
                runs.append([at])
        is_one = len(runs) == 1
        return [self._run(query, numbers, is_one, seen) for numbers in runs]

    def _run(self, query: Query, numbers: Sequence[int], is_one: bool, seen: Any) -> Run:
        """Parts of one schema; what they lack of the columns is for others to say.

        seen: types of columns that a filter names.
        """
        schema = self._known(query)[numbers[0]]
        part = part_of(self._name(numbers[0]), schema, query)
        columns = query.columns if is_one or query.columns is None else part.schema.names

        def data(_: Sequence[str] | None) -> Any:
            return Made(schema, (batch for at in numbers for batch in self._batches(at, query)))

        some = Opened(data, names=lambda: schema.names)
        return Run(part, lambda: some._read(query, columns, seen))

    def _batches(self, at: int, query: Query) -> Iterator[Any]:
        rows = 0
        try:
            for batch in self._as_known(at, query):
                rows += len(batch)
                yield batch
        except Exception as error:
            error.add_note(f"This was raised as {self._name(at)} was read.")
            raise
        if not rows and at in self._unknown:
            self._unknown.discard(at)  # it is said once
            warnings.warn(
                f"{self._name(at)} has no rows: if it hands them out once, they went as its types "
                "were read, and Loader(iter(parts)) opens each part once",
                stacklevel=2,
            )

    def _as_known(self, at: int, query: Query) -> Any:
        """The rows of a part, by the schema that it had when its types were read: a query, or a
        frame, may have other columns now.
        """
        known, reader = self._known(query)[at], self._reader(at, query)
        schema = reader.schema
        if schema.equals(known, check_metadata=True) or is_same(schema, known):
            return reader
        name, way = self._name(at), "a new Loader reads its types anew"
        told = Told(f"{name} when its types were read", f"{name} now", way, way, merged="")
        names = heads(read_by(known, query), lambda: known.names)
        check_conforms(schema, schema_of_heads(known, names), names, told)
        if schema.names == known.names:  # extension types may be read as they are stored
            return reader
        target = with_types(known, {own.name: own.type for own in schema})
        return (fitted(batch, target) for batch in reader)

    def _name(self, at: int) -> str:
        """What errors call a part."""
        return f"part {at}"

    def _reader(self, at: int, query: Query) -> Any:
        return reader_of(readable_for(self._parts[at], query.columns, named_in(query)))

    def _schema(self, at: int, query: Query) -> Any:
        pa, part = import_module("pyarrow"), self._parts[at]
        known = getattr(part, "schema", None)
        if isinstance(known, pa.Schema):
            return known
        reader = self._reader(at, query)
        if _core._is_read_once(part):
            self._parts[at] = reader
        elif rows_of_table(part) is None and not is_of_duckdb(part):
            self._unknown.add(at)
        return reader.schema

    def _compared(self, query: Query) -> tuple[int, list[Any], Any]:
        rows = _rows_of_all(self._parts) or 0
        return rows, self._taken(rows, partial(_rows_alone, query=query)), self._whole(query)

    def _whole(self, query: Query) -> Any:
        schemas = self._known(query)
        return whole_of(schemas, query).with_metadata(schemas[0].metadata)

    def _identity_of(self, query: Query) -> dict[str, Any]:
        whole = self._whole(query)
        if self._rows is None:
            return of_types(whole, query)
        taken = self._taken(self._rows, partial(_rows_of_whole, query=query))
        return of_rows(self._rows, taken, query, whole)

    def _taken(self, rows: int, take: Callable[[Any, Sequence[int]], Any]) -> list[Any]:
        """The rows that are compared: a table of each part that has some, and of the first part,
        which tells the types where no part has rows.

        rows: of all parts.
        take: returns the rows of a part at some positions.
        """
        positions, found, start = compared(rows), [], 0
        for part in self._parts:
            stop = start + (rows_of_table(part) or 0)
            own = [at - start for at in positions if start <= at < stop]
            if own or part is self._parts[0]:
                found.append(take(part, own))
            start = stop
        return found


def _as_positions(rows: Sequence[int]) -> Any:
    return import_module("pyarrow").array(rows, "uint64")


def _rows_of_whole(part: Any, positions: Sequence[int], query: Query) -> Any:
    """Rows of a table or frame, with the types that all of its rows say."""
    return _core._take(readable_for(part, query.columns), _as_positions(positions))


def _rows_alone(part: Any, positions: Sequence[int], query: Query) -> Any:
    """Rows of a table or frame; of one of pandas the others are not converted."""
    # A frame of polars converts at once, and takes rows by threads, which a forked process lacks.
    if not is_pandas_frame(part):
        return _rows_of_whole(part, positions, query)
    try:
        some = part.iloc[positions].copy()  # of rows next to each other iloc makes a view
    except (NotImplementedError, ValueError):  # of pandas's columns of views, runs, swapped bytes
        return _rows_of_whole(part, positions, query)
    data = reader_of(readable_for(some, query.columns, named_in(query)))
    return import_module("pyarrow").table(data)


def whole_of(schemas: Sequence[Any], query: Query) -> Any:
    """All columns of all parts, with the types that a filter sees where there is one of all."""
    pa = import_module("pyarrow")
    found: dict[str, list[Any]] = {}
    for schema in schemas:
        for field in schema:
            found.setdefault(field.name, []).append(field)
    fields = []
    for name, own in found.items():
        kind = seen_of_all(name, own, query)
        fields.append(own[0] if kind is None else own[0].with_type(kind))
    return pa.schema(fields)


def seen_by(parts: Sequence[tuple[str, Any]], query: Query, way: str) -> dict[str, Any]:
    """The columns that a filter names, with the types of all parts, if the parts differ."""
    if query.where is None or all(is_same(schema, parts[0][1]) for _, schema in parts):
        return {}
    return {name: seen_type(name, parts, query, way) for name in named_by(parts, query, way)}


def named_by(parts: Sequence[tuple[str, Any]], query: Query, way: str) -> list[str]:
    """The columns that a filter names, of parts that differ: pairs of a name and a schema."""
    pa = import_module("pyarrow")
    whole = _filters.seen_of(whole_of([schema for _, schema in parts], query))
    try:
        return _filters.named(query.where, whole)
    except (KeyError, NotImplementedError, TypeError, ValueError) as error:
        for name in whole.names:
            fields = [(part, own.field(name)) for part, own in parts if own.names.count(name) == 1]
            is_one = merged_of([field for _, field in fields])[0] is not None
            if not is_one and _filters.is_named(query.where, whole, name):
                if pa.types.is_struct(whole.field(name).type):
                    settled_type(name, fields, query, way)  # a field of it that has none of all
                kind = seen_type(name, parts, query, way)
                raise TypeError(
                    f"{differ(name, fields)}, of which a filter sees {kind}: {error}"
                ) from error
        raise


def seen_type(
    name: str, parts: Sequence[tuple[str, Any]], query: Query, way: str, keys: str = ""
) -> Any:
    """What a filter sees of a column: the type of all parts, or float64 if its wish says a float.

    Of structs that differ it sees the fields that have one.

    With the type of each part, whether a row is kept would depend on the part that it is in.

    keys: what a dataset is told where folders have keys, for errors.
    """
    if lacks := next((part for part, schema in parts if name not in schema.names), None):
        raise KeyError(
            f'filter= names column "{name}", which {lacks} has not: '
            f'table.append_column("{name}", pyarrow.nulls(len(table), type)) has nulls there, and '
            "so has a dataset of files, "
            f"pyarrow.dataset.dataset(paths, schema=..., format=...{keys})"
        )
    for part, schema in parts:
        if (count := schema.names.count(name)) > 1:
            raise KeyError(
                f'filter= names column "{name}", and {count} columns of {part} are called so'
            )
    own = [schema.field(name) for _, schema in parts]
    if name in query.categories and merged_of(own)[0] is None:
        one, other = (meaning_of(own[at]) for at in differing(own))
        raise TypeError(
            f'filter= names column "{name}", of which Categories makes codes of any types, and a '
            f"filter needs one: {retyped(name, one, other, way) or APART}"
        )
    kind = seen_of_all(name, own, query)
    if kind is None:
        fields = [(part, field) for (part, _), field in zip(parts, own, strict=True)]
        settled_type(name, fields, Query(labels=query.labels, where=query.where), way)
    return without_view(kind)


def rows_of_table(source: Any) -> int | None:
    """How many rows a table or a frame has, if it tells."""
    rows = getattr(source, "num_rows", getattr(source, "height", None))
    if library_of(source) == "pandas" and hasattr(source, "__len__"):  # no reader of chunks
        rows = len(source)
    return rows if isinstance(rows, int) else None


def _rows_of_all(parts: Sequence[Any]) -> int | None:
    rows = [None if _core._is_read_once(part) else rows_of_table(part) for part in parts]
    return None if None in rows else sum(number for number in rows if number is not None)
