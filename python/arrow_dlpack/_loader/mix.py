"""`Mix`: several sources as one, whose rows take turns by weight."""

import os
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from heapq import heapify, heappop, heapreplace
from importlib import import_module
from itertools import chain
from math import frexp, inf, isfinite, ldexp
from typing import Any, Literal

from .. import _core
from .._arrow_types import is_text
from .._items import items_of
from . import filters as _filters
from . import kinds as _kinds
from .datasets import Dataset
from .empty import emptied, shown_schema_of, unknown_names
from .functions import is_function
from .merging import decoded_type, merged_of
from .readers import Made, NoStructError, for_rows, no_column, present, reader_of
from .row_groups import Piece, len_of, pieces_of
from .schema import ALL, Part, Query, Run, check_codes, common, features_of, fitted
from .sharding import Share, shuffled
from .source import Loop, Source, count_of, joined, seen_by
from .summary import lines, of_columns, of_source

_STOPPING = ("all_exhausted_without_replacement", "all_exhausted", "first_exhausted")
#: Rows that are put in order together.
_BLOCK = 4096
#: Sources that `repr` shows.
_SHOWN = 10
#: How many times a weight may be another one: positions stay numbers that a float holds exactly.
_RATIO = 1e9


@dataclass(frozen=True)
class Mix:
    """Several sources of a `Loader` as one: of each stretch of rows each has its share, by weight.

    sources: a dict of paths and their weights, or (source, weight) pairs, of whatever a Loader
    takes but functions. They have one schema, as all parts of a source; codes of `Categories` are
    those of all of them.
    stopping_strategy: in the words of Hugging Face's interleave_datasets.
    "all_exhausted_without_replacement" has each row once: where a source ends, the others go on by
    their weights. "first_exhausted" ends with the source that ends first, and "all_exhausted" with
    the last one, while those that end earlier begin again.

    The turns are even, and the same in each epoch and process: of ten rows seven are of a source of
    weight 0.7. ``shuffle=`` draws the order within. The largest weight may be 1e9 times the
    smallest.
    """

    sources: tuple[tuple[Any, float], ...]
    stopping_strategy: Literal[
        "all_exhausted_without_replacement", "all_exhausted", "first_exhausted"
    ]
    #: Of each source that is files the first path.
    _paths: tuple[str | None, ...] = field(init=False, repr=False, compare=False)
    #: How sources get another type, for errors, if others stand for them.
    _ways: tuple[str | None, ...] = field(init=False, repr=False, compare=False)

    def __init__(
        self,
        sources: Mapping[Any, float] | Sequence[tuple[Any, float]],
        stopping_strategy: Literal[
            "all_exhausted_without_replacement", "all_exhausted", "first_exhausted"
        ] = "all_exhausted_without_replacement",
    ) -> None:
        pairs = _pairs(sources)
        _check_weights([weight for _, weight in pairs])
        for source, _ in pairs:
            _check_source(source)
        once = [source for source, _ in pairs if isinstance(source, Iterator)]
        if len(set(map(id, once))) < len(once):
            raise ValueError("two sources are one iterator, which is read once: make one for each")
        if stopping_strategy not in _STOPPING:
            known = ", ".join(map(repr, _STOPPING))
            raise ValueError(f"stopping_strategy must be one of {known}: {stopping_strategy!r}")
        paths = tuple(_path_of(source) for source, _ in pairs)
        self._set(pairs, stopping_strategy, paths, (None,) * len(pairs))

    def _set(self, *values: Any) -> None:
        for own, value in zip(fields(self), values, strict=True):
            object.__setattr__(self, own.name, value)

    def of(self, sources: Sequence[Any], ways: Sequence[str | None]) -> "Mix":
        """The same of other sources, which errors call by the names of these.

        ways: how these get another type, None if that is as those do.
        """
        pairs = [(one, weight) for one, (_, weight) in zip(sources, self.sources, strict=True)]
        mix = Mix(pairs, self.stopping_strategy)
        mix._set(mix.sources, mix.stopping_strategy, self._paths, tuple(ways))
        return mix

    def __repr__(self) -> str:
        """Its sources, their weights, and the columns if each source tells them unread."""
        try:
            told = [f"stopping_strategy: {self.stopping_strategy}", *_parts_of(self)]
            return lines("Mix", [*told, *of_columns(_schema_of(self))])
        except Exception:  # of data whose attributes raise
            return object.__repr__(self)

    def __getstate__(self) -> dict[str, Any]:
        sources = tuple((_kinds.for_pickle(one), weight) for one, weight in self.sources)
        return {**self.__dict__, "sources": sources}


def described(data: Any) -> list[str]:
    """What `repr` says of a source: a line, and of a mix one for each of its sources."""
    if not isinstance(data, Mix):
        return [of_source(data)]
    return [f"Mix, {data.stopping_strategy}", *(f"  {line}" for line in _parts_of(data))]


def _parts_of(mix: Mix) -> Iterator[str]:
    for source, weight in mix.sources[:_SHOWN]:
        yield f"{weight} of {of_source(source)}"
    if len(mix.sources) > _SHOWN:
        yield f"and {len(mix.sources) - _SHOWN} more"


def _schema_of(mix: Mix) -> Any:
    """That of the first source, if all of them tell theirs without being read."""
    sources = [source for source, _ in mix.sources]
    empty = emptied(sources)
    return None if empty is None or unknown_names(sources, empty) else shown_schema_of(empty)


def _pairs(sources: Any) -> tuple[tuple[Any, float], ...]:
    takes = "a Mix takes a dict of paths and their weights, or (source, weight) pairs"
    if not isinstance(sources, Iterable):
        raise TypeError(f"{takes}, got {_kind(sources)}")
    if isinstance(sources, (set, frozenset)):
        raise TypeError(f"{takes}, got a set: its order, which is that of turns, is none")
    pairs = items_of("sources", sources.items() if isinstance(sources, Mapping) else sources)
    for pair in pairs:
        if not isinstance(pair, (list, tuple)):
            raise TypeError(f"{takes}, got {_kind(pair)} in place of a pair")
        if len(pair) != 2:
            raise ValueError(f"{takes}, got {len(pair)} values in place of a pair")
    if not pairs:
        raise ValueError(f"{takes}, and at least one of them")
    return tuple((source, weight) for source, weight in pairs)


def _check_source(source: Any) -> None:
    if isinstance(source, Mix):
        raise TypeError("a Mix takes no other Mix: put its sources into this one, with weights")
    if isinstance(source, Loop):
        raise TypeError("a Mix takes no Loader: pass what it reads, and the Mix to one Loader")
    if is_function(source):
        raise TypeError(f"a Mix takes no functions, got {_kind(source)}: pass what it returns")
    _kinds.check(source, "a Mix")


def _path_of(source: Any) -> str | None:
    several = source if isinstance(source, (list, tuple)) else [source]
    return os.fspath(several[0]) if _kinds.is_path(source) else None


def _kind(value: Any) -> str:
    return getattr(value, "__qualname__", None) or f"a {type(value).__name__}"


def _check_weights(weights: Sequence[Any]) -> None:
    numbers = [_number(weight) for weight in weights]
    for weight, number in zip(weights, numbers, strict=True):
        if not 0 < number < inf:
            is_plain = isinstance(weight, (int, float, str)) or weight is None
            shown = repr(weight) if is_plain else f"a {type(weight).__name__}"
            raise ValueError(
                f"a weight must be a number above 0 that a float holds, got {shown}: a Mix takes "
                "pairs of a source and its weight"
            )
    least, most = min(numbers), max(numbers)
    # Not a product, which could overflow.
    if most / _RATIO > least:
        raise ValueError(
            f"the largest weight may be {_RATIO:.0e} times the smallest, got {least} and {most}"
        )


def _number(weight: Any) -> float:
    try:
        return float(weight) if isfinite(weight) else inf
    except (OverflowError, TypeError):
        return inf


def source_of(data: Any, found: Any = None) -> Source:
    """What reads it, a mix too.

    found: what `Source.found` returned of it in another process.
    """
    if isinstance(data, Mix):
        return Mixed(data, found)
    return _kinds.source_of_one(data) if found is None else found()


class Turns:
    """Row r of a source of weight w is due at (r + 0.5) / w; ties go to the first source."""

    def __init__(self, mix: Mix) -> None:
        weights = [float(weight) for _, weight in mix.sources]
        # A power of two, which rounds none of them, keeps quotients in range.
        power = frexp(max(weights))[1]
        self.weights = [ldexp(weight, -power) for weight in weights]
        self._stopping = mix.stopping_strategy

    def bounds(self, lengths: Sequence[int | None]) -> list[int | None]:
        """How many rows of each source there may be, None for any number."""
        repeats = self._stopping != "all_exhausted_without_replacement"
        return [None if repeats and length else length for length in lengths]

    def total(self, lengths: Sequence[int | None]) -> int | None:
        """How many rows there are in all, if that is known already."""
        if self._stopping != "first_exhausted" and None in lengths:
            return None
        if self._stopping == "all_exhausted_without_replacement":
            return sum(length for length in lengths if length is not None)
        last = [
            (self._due(of, length - 1), of, length)
            for of, length in enumerate(lengths)
            if length is not None
        ]
        if not last:
            return None
        due, of, length = min(last) if self._stopping == "first_exhausted" else max(last)
        bounds = self.bounds(lengths)
        others = (other for other in range(len(bounds)) if other != of)
        return length + sum(self._before(other, (due, of), bounds[other]) for other in others)

    def counts(self, position: int, bounds: Sequence[int | None]) -> list[int]:
        """Rows of each source among the first `position` rows."""
        most = [position if bound is None else min(position, bound) for bound in bounds]
        if sum(most) <= position:
            return most
        rows = self._at_least(position, most)
        following = [(self._due(of, row), of) for of, row in enumerate(rows) if row < most[of]]
        heapify(following)
        for _ in range(position - sum(rows)):
            _, of = following[0]
            rows[of] += 1
            if rows[of] < most[of]:
                heapreplace(following, (self._due(of, rows[of]), of))
            else:
                heappop(following)
        return rows

    def _at_least(self, position: int, most: Sequence[int]) -> list[int]:
        """Rows that are surely among the first `position`: all but a few of each source."""
        pairs = list(zip(self.weights, most, strict=True))
        low, high = 0.0, max(bound / weight for weight, bound in pairs)
        rows = [0] * len(pairs)
        while position - sum(rows) > 4 * len(pairs):
            due = (low + high) / 2
            if due in (low, high):
                break
            # Rounding is off by less than one row.
            if sum(min(int(due * weight) + 2, bound) for weight, bound in pairs) > position:
                high = due
            else:
                low = due
                rows = [max(min(int(due * weight) - 1, bound), 0) for weight, bound in pairs]
        return rows

    def _due(self, of: int, row: int) -> float:
        return (row + 0.5) / self.weights[of]

    def _before(self, other: int, turn: tuple[float, int], bound: int | None) -> int:
        """How many rows of another source come before this turn: (due, source)."""
        about = max(int(turn[0] * self.weights[other]), 1)
        near = range(about - 1, about + 2)
        count = near[0] + bisect_left(near, turn, key=lambda row: (self._due(other, row), other))
        return count if bound is None else min(count, bound)


class Mixed(Source):
    """The sources of a `Mix`, read together."""

    def __init__(self, mix: Mix, found: Sequence[Any] | None = None) -> None:
        pairs = zip(mix.sources, found or [None] * len(mix.sources), strict=True)
        self._parts = [source_of(one, own) for (one, _), own in pairs]
        super().__init__(once=any(part.once for part in self._parts))
        told = ((f"source {at} of the Mix", path) for at, path in enumerate(mix._paths))
        #: What errors call each source.
        self._called = [name if path is None else f"{name} ({path})" for name, path in told]
        ways = zip(mix._ways, self._parts, strict=True)
        self.way = ", or ".join(dict.fromkeys(way or part.way for way, part in ways))
        self._turns, self._repeats = Turns(mix), mix.stopping_strategy == "all_exhausted"
        if self.once and self._repeats:
            raise TypeError('"all_exhausted" begins again with a source, and one is read only once')

    def check_whole(self) -> None:
        for part in self._parts:
            part.check_whole()

    def check_share(self, share: Share) -> None:
        for part in self._parts:
            part.check_share(share)

    @property
    def is_begun(self) -> bool:
        return any(part.is_begun for part in self._parts)

    def found(self) -> Any:
        return [part.found() for part in self._parts]

    def readers(self) -> Sequence[Any]:
        return [reader for part in self._parts for reader in part.readers()]

    def rows(self, query: Query = ALL) -> int | None:
        if query.where is not None and self.once:
            return None
        # Rows are counted in sources that know theirs, whatever their types.
        if any(part.rows() is None for part in self._parts):
            return None
        query = self._with_texts(query)
        if seen := self._seen(query):
            opens = [_Opens(part, query.counted, seen=seen) for part in self._parts]
            return self._turns.total([count_of(one.runs()) for one in opens])
        lengths = [part.rows(query) for part in self._parts]
        return None if None in lengths else self._turns.total(lengths)

    def read(self, query: Query) -> Any:
        query, seen = self._with_texts(query), self._seen(query)
        opened = list(query.opened or ())
        opens = [_Opens(part, _of(part, query, opened), seen=seen) for part in self._parts]
        return self._turned(opens, query, None)

    def _seen(self, query: Query) -> dict[str, Any]:
        """What a filter sees of sources that differ: the types of all of them."""
        schemas: list[Any] = [None]
        if query.where is not None:
            schemas = [part.schema(query) for part in self._parts]
        if any(schema is None for schema in schemas):
            return {}
        return seen_by(list(zip(self._called, schemas, strict=True)), query, self.way)

    def _with_texts(self, query: Query) -> Query:
        """The query, for which a source reads texts where it has no value and others have texts."""
        untyped = {name for part in self._parts for name in part.untyped()}
        if not untyped:
            return query
        schemas = [schema for part in self._parts if (schema := part.schema(query)) is not None]
        texts = []
        for name in untyped:
            having = [schema for schema in schemas if schema.names.count(name) == 1]
            kind, _ = merged_of([schema.field(name) for schema in having])
            if kind is not None and is_text(decoded_type(kind)):
                texts.append(name)
        return replace(query, texts=texts)

    def runs(self, query: Query) -> list[Run]:
        query, seen = self._with_texts(query), self._seen(query)
        opens = [_Opens(part, _of(part, query, []), seen=seen) for part in self._parts]
        told = zip(self._called, opens, strict=True)
        return [_named_run(run, name) for name, one in told for run in one.runs()]

    def identity(self, query: Query) -> Callable[[], dict[str, Any]]:
        query = self._with_texts(query)
        seen, asked = self._seen(query), [_of(part, query, []) for part in self._parts]
        if seen:
            # Types of one source alone need not be those of which the filter is.
            asked = [own.before_filter(seen) for own in asked]
        told = [part.identity(own) for part, own in zip(self._parts, asked, strict=True)]
        return lambda: {"sources": [one() for one in told]}

    def refresh(self) -> None:
        for part in self._parts:
            part.refresh()

    def explained(self, error: Exception, query: Query) -> Exception:
        told = (part.explained(error, query) for part in self._parts)
        return next((one for one in told if one is not error), error)

    def pieces(self) -> list[Piece] | None:
        """One, of all rows, if each source has row groups."""
        rows = self.rows() if all(part.pieces() for part in self._parts) else None
        return None if rows is None else [Piece(None, 0, rows)]

    def shuffled(self, pieces: Sequence[Piece], seed: int) -> list[Piece]:
        """The same rows; the row groups of each source are read in an order that is drawn.

        A piece keeps the rows among which the order is drawn, of which it may become a part, and
        those among which orders were drawn before.
        """
        return [
            Piece((*(draws or ()), (seed, start, stop)), start, stop)
            for draws, start, stop in pieces
        ]

    def read_pieces(self, query: Query, pieces: Sequence[Piece]) -> Any:
        """Of each source the row groups that have rows of these; all of them with a filter."""
        readers = [self._read_piece(query, piece) for piece in pieces]
        return Made(readers[0].schema, chain.from_iterable(readers))

    def _read_piece(self, query: Query, piece: Piece) -> Any:
        groups = [part.pieces() or [] for part in self._parts]
        bounds = self._turns.bounds([sum(map(len_of, own)) for own in groups])
        draws = [*(piece.group or ()), (None, piece.start, piece.stop)]
        counts = [
            (seed, self._turns.counts(start, bounds), self._turns.counts(stop, bounds))
            for seed, start, stop in draws
        ]
        opens, seen, is_whole = [], self._seen(query), query.where is not None
        opened = list(query.opened or ())
        for at, part in enumerate(self._parts):
            spans = [(seed, lows[at], highs[at]) for seed, lows, highs in counts]
            _, begin, end = spans[0]
            # A copy: the source's list stays in its order.
            some = list(groups[at] if is_whole else _round(groups[at], begin, end))
            for seed, low, high in spans:
                if not is_whole:
                    some, begin = list(pieces_of(some, low - begin, high - begin)), low
                if seed is not None:
                    some = shuffled(some, _core._seed_of_part(seed, at))
            opens.append(_Opens(part, _of(part, query, opened), some, seen))
        return self._turned(opens, query, None if is_whole else (piece, bounds))

    def _turned(
        self,
        opens: "Sequence[_Opens]",
        query: Query,
        span: tuple[Piece, list[int | None]] | None,
    ) -> Any:
        """The rows of some readers, by turns: all of them, or a span of known length."""
        held = []
        for name, one in zip(self._called, opens, strict=True):
            try:
                held.append(_Held(one, self._repeats and span is None))
            except NoStructError as error:
                raise NoStructError(f"{error.args[0]} in {name}") from error
        parts = [
            Part(name, one.reader.schema, own.part.names() or one.reader.schema.names)
            for name, own, one in zip(self._called, opens, held, strict=True)
        ]
        schema = _common(parts, query, self.way)
        if span is not None:
            return Made(schema, self._span(held, schema, *span))
        whole: list[int] = []
        return Made(schema, self._blocks(held, schema, whole), whole)

    def _span(
        self, held: "list[_Held]", schema: Any, piece: Piece, bounds: list[int | None]
    ) -> Iterator[Any]:
        done = self._turns.counts(piece.start, bounds)
        for start in range(piece.start, piece.stop, _BLOCK):
            end = min(start + _BLOCK, piece.stop)
            for one, first, last in zip(held, done, self._turns.counts(end, bounds), strict=True):
                one.fill(last - first)
            yield from self._until_error(held, schema, bounds, done, range(start, end))
            done = self._turns.counts(end, bounds)

    def _blocks(self, held: "list[_Held]", schema: Any, whole: list[int]) -> Iterator[Any]:
        """whole: gets the number of blocks before the one that an error cuts."""
        done, at = [0] * len(held), 0
        while True:
            before: list[int | None] | None = None
            lengths = [one.length for one in held]
            # A source that ends leaves its turns to the others, whose rows are read then.
            while lengths != before:
                before, bounds = lengths, self._turns.bounds(lengths)
                total = self._turns.total(lengths)
                end = at + _BLOCK if total is None else min(at + _BLOCK, total)
                upto = self._turns.counts(end, bounds)
                for one, start, stop in zip(held, done, upto, strict=True):
                    one.fill(stop - start + 1, to_end=True)
                lengths = [one.length for one in held]
            if end <= at:
                return
            for block in self._until_error(held, schema, bounds, done, range(at, end)):
                if len(block) < end - at:
                    whole.append(at // _BLOCK)
                yield block
            done, at = self._turns.counts(end, bounds), end

    def _until_error(
        self,
        held: "list[_Held]",
        schema: Any,
        bounds: Sequence[int | None],
        done: Sequence[int],
        span: range,
    ) -> Iterator[Any]:
        """The rows of a span, up to the last one of a source that has failed, and the error."""
        end, failed = span.stop, None
        for of, one in enumerate(held):
            read, counts = done[of] + one.rows, partial(self._counts_of, of, bounds)
            if one.error is None or end == span.start or counts(end - 1) < read:
                continue
            # Behind its last row the epoch may end, if none would have followed.
            last = bisect_left(range(span.start, end), read, key=counts) + 1 if one.rows else 0
            end, failed = span.start + last, (of, one.error)
        if end > span.start:
            yield self._merged(held, schema, done, self._turns.counts(end, bounds))
        if failed is not None:
            of, error = failed
            error.add_note(f"This was raised as {self._called[of]} was read.")
            raise error

    def _counts_of(self, of: int, bounds: Sequence[int | None], position: int) -> int:
        """Rows of one source up to a position and with it."""
        return self._turns.counts(position + 1, bounds)[of]

    def _merged(
        self, held: "list[_Held]", schema: Any, done: Sequence[int], upto: Sequence[int]
    ) -> Any:
        pa, pc = import_module("pyarrow"), import_module("pyarrow.compute")
        tables, due = [], []
        for of, (one, start, stop) in enumerate(zip(held, done, upto, strict=True)):
            tables.append(fitted(one.take(stop - start), schema, one.query))
            if (lacking := stop - start - len(tables[-1])) > 0:
                raise ValueError(
                    f"{self._called[of]} has {lacking} rows fewer than its row groups claim"
                )
            turns = pa.array(range(start, stop), pa.float64())
            due.append(pc.divide(pc.add(turns, 0.5), self._turns.weights[of]))
        rows = pa.concat_tables(tables)
        check_codes(rows, held[0].query)
        # The sort is stable, and so rows that are due at once stay in the order of the sources.
        order = pc.sort_indices(pa.concat_arrays(due))
        # Which takes all types, and dictionaries of other words.
        return pa.record_batch(_core._take(rows, order))


@dataclass(frozen=True)
class _Opens:
    """Opens a source, or some of its pieces."""

    part: Source
    query: Query
    pieces: list[Piece] | None = None
    #: Types of columns that the filter names, where sources differ in them.
    seen: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self) -> Any:
        if self.seen:
            data = joined(self.runs(), self.query, self.part.way)
        elif self.pieces and isinstance(self.part, Dataset):
            data = self.part.read_pieces(self.query, self.pieces)
        else:
            data = self.part.read(self.query)
        return reader_of(data)

    def runs(self) -> list[Run]:
        """The parts of the source, or of its pieces, less the rows that a filter leaves out."""
        query, part = self.query, self.part
        if self.seen:
            query = query.before_filter(self.seen)
        if self.pieces and isinstance(part, Dataset):
            runs = part._runs(query, [piece.group for piece in self.pieces])
        else:
            runs = part.runs(query)
        return list(map(self._kept, runs)) if self.seen else runs

    def _kept(self, run: Run) -> Run:
        """The rows that the filter keeps, which sees columns with the types of all sources."""

        def opened() -> Any:
            data = reader_of(run.open())
            wanted = present(self.query.columns, data.schema, self.query.may_lack)
            return _filters.filtered(data, self.query.where, wanted, self.seen)

        return Run(run.part, opened)


class _Held:
    """A reader, and rows of it that have been read ahead of their turn."""

    def __init__(self, opens: _Opens, repeats: bool) -> None:
        self._opens, self._repeats, self.reader = opens, repeats, opens()
        self.query = opens.query
        self._batches: list[Any] = []
        #: Rows that are held.
        self.rows = self._read = 0
        #: What its reader has raised.
        self.error: Exception | None = None
        #: Of the whole source, once it has been read to its end.
        self.length: int | None = None

    def fill(self, rows: int, to_end: bool = False) -> None:
        """Reads until there are this many rows, or no more.

        to_end: at most to the end of the source, if that is not known yet: it may be that of all.
        """
        known = self.length
        try:
            while self.rows < rows and self.error is None and self._reads():
                if to_end and self.length != known:
                    break
        except Exception as error:  # raised after the rows that come before it
            self.error = error

    def _reads(self) -> bool:
        """Reads a batch, or begins again; false at the end."""
        batch = next(self.reader, None)
        if batch is not None:
            self._batches.append(batch)
            self.rows, self._read = self.rows + len(batch), self._read + len(batch)
            return True
        self.length = self._read if self.length is None else self.length
        if not self._repeats or self.length == 0:
            return False
        self.reader = self._opens()
        return True

    def take(self, rows: int) -> Any:
        self.fill(rows)
        held = import_module("pyarrow").Table.from_batches(self._batches, self.reader.schema)
        self._batches, self.rows = held.slice(rows).to_batches(), max(self.rows - rows, 0)
        return held.slice(0, rows)


def _round(pieces: Sequence[Piece], start: int, stop: int) -> Iterator[Piece]:
    """Rows of pieces that begin again at their end."""
    rows = sum(map(len_of, pieces))
    while start < stop:
        first = start % rows
        last = min(rows, first + stop - start)
        yield from pieces_of(pieces, first, last)
        start += last - first


def _of(part: Source, query: Query, opened: list[Any]) -> Query:
    """What is read of one source: what it lacks is left out, which is refused if no wish fills it.

    opened: the schemas of all sources that are read with it.
    """
    columns = None if query.columns is None else list(filter(part.has, query.columns))
    return replace(query, columns=columns, is_part=True, opened=opened)


def _named_run(run: Run, source: str) -> Run:
    """The run, whose part says of which source it is."""
    name = source if run.part.schema is None else f"{run.part.name} of {source}"
    return run._replace(part=run.part._replace(name=name))


def _common(parts: Sequence[Part], query: Query, way: str) -> Any:
    """The schema of all sources, whose categories are codes already."""
    pa = import_module("pyarrow")
    whole = common(parts, query, way)
    names = features_of(whole) if query.columns is None else list(dict.fromkeys(query.columns))
    names = [name for name in names if not query.may_lack(name) or name in whole.names]
    if twice := next((name for name in names if whole.get_field_index(name) < 0), None):
        count = whole.names.count(twice)
        none = f'no column "{twice}": the Mix has {whole.names}'
        several = f'{count} columns of the Mix are called "{twice}": rename all but one'
        raise KeyError(several if count else none)
    fields = [whole.field(name) for name in names or for_rows(whole.names)]
    fields = fields or [no_column([name for part in parts for name in part.names])]
    return pa.schema(fields, whole.metadata)
