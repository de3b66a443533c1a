"""`ByLength` and `ByTokens`: batches of similar lengths, cut before the engine sees them."""

from collections.abc import Iterable, Iterator
from importlib import import_module
from itertools import islice
from typing import Any

from .. import _core
from .._arrow_types import is_binary, is_list, is_text
from .columns import ByLength, ByTokens, Pad
from .merging import decoded_type
from .readers import Made, reader_of, without_views
from .schema import Query, check_codes
from .sharding import Uneven, check_even, shuffled

#: Batches whose rows are sorted together where no buffer is said, and rows by tokens.
_BATCHES, _ROWS = 100, 8192


def width_of(by: Any, query: Query) -> int | None:
    """The one width of rows that are counted by their items, if a `Pad` says it."""
    wish = query.wishes.get(by.column) if isinstance(by, ByTokens) else None
    return wish.max_length if isinstance(wish, Pad) else None


class Bucketed:
    """Rows as batches of similar lengths, in an order that the seed decides.

    All ranks and workers that pass the same seed cut the same batches, and each takes its turns.
    """

    def __init__(
        self,
        by: ByLength | ByTokens,
        shuffle: int | None,
        seed: int,
        drop_last: bool,
        query: Query,
    ) -> None:
        """query: what is read, of which a `Pad` says what a row is padded or cut to."""
        self._by, self._shuffle, self._drop_last = by, shuffle, drop_last
        self._width, self._seed, self._query = width_of(by, query), seed, query

    def reader(self, stream: Any, world: int, uneven: Uneven) -> Any:
        """Each record batch is one batch; ranks have equally many, if that is asked for."""
        reader = reader_of(stream)
        if reader.schema.names.count(self._by.column) != 1:
            raise KeyError(f'no column "{self._by.column}" among {reader.schema.names}')
        kind = reader.schema.field(self._by.column).type
        if not _has_lengths(kind):
            name, words = self._by.column, decoded_type(kind)
            has_words = words != kind and _has_lengths(words)
            way = f': table["{name}"].cast("{words}") has its values' if has_words else ""
            raise TypeError(
                f"{type(self._by).__name__} needs a column of lists, texts or binaries, and "
                f'"{name}" is {kind}{way}'
            )
        batches = self._batches(reader)
        if world > 1 and uneven != "allow":
            batches = _rounds(batches, world, uneven)
        return Made(reader.schema, batches)

    def _batches(self, reader: Any) -> Iterator[Any]:
        size = self._by.batch_size if isinstance(self._by, ByLength) else 1
        rows = self._shuffle or (_BATCHES * size if isinstance(self._by, ByLength) else _ROWS)
        for number, window in enumerate(_windows(reader, max(rows // size, 1) * size)):
            of_rows, of_cuts = (
                _core._seed_of_part(self._seed, 2 * number + which) for which in (0, 1)
            )
            order, lengths = self._sorted(window, of_rows)
            cuts = list(self._cuts(lengths))
            if self._shuffle is not None:
                # A last batch of fewer rows stays the last one.
                whole = len(cuts) - bool(cuts and cuts[-1][1] - cuts[-1][0] < size)
                cuts[:whole] = shuffled(cuts[:whole], of_cuts)
            check_codes(window, self._query)
            # pyarrow has no kernel for all types.
            taken = import_module("pyarrow").record_batch(_core._take(window, order))
            for start, stop in cuts:
                if not (self._drop_last and stop - start < size):
                    yield taken.slice(start, stop - start)

    def _sorted(self, window: Any, seed: int) -> tuple[Any, list[int]]:
        """The rows by their lengths, and those."""
        pa, compute = import_module("pyarrow"), import_module("pyarrow.compute")
        column = without_views(window.select([self._by.column])).column(0)
        column = column.cast(pa.string()) if pa.types.is_null(column.type) else column
        kind = column.type
        of = compute.list_value_length if is_list(kind) else compute.binary_length
        lengths = compute.fill_null(of(column).cast(pa.int64()), 0)
        keys = pa.table({"length": lengths})
        sort = [("length", "ascending")]
        if self._shuffle is not None:
            drawn = pa.array(_core._order(len(keys), seed))
            keys, sort = keys.append_column("drawn", drawn), [*sort, ("drawn", "ascending")]
        order = compute.sort_indices(keys, sort_keys=sort)
        return order, compute.take(lengths, order).to_pylist()

    def _cuts(self, lengths: list[int]) -> Iterator[tuple[int, int]]:
        """Where each batch begins and ends among the sorted rows."""
        if isinstance(self._by, ByLength):
            for start in range(0, len(lengths), self._by.batch_size):
                yield start, min(start + self._by.batch_size, len(lengths))
            return
        start, budget = 0, self._by.budget
        if self._width is not None:
            lengths = [self._width] * len(lengths)
        for at, length in enumerate(lengths):
            if length > budget:
                raise ValueError(
                    f'a row of "{self._by.column}" has {length} items, and the budget of a batch '
                    f"is {budget}: raise it, cut longer rows with Pad(max_length=), or leave them "
                    "out with filter="
                )
            if (at + 1 - start) * max(length, 1) > budget:
                yield start, at
                start = at
        if start < len(lengths):
            yield start, len(lengths)


def _windows(reader: Any, rows: int) -> Iterator[Any]:
    """Tables of exactly this many rows, but for the last one."""
    table = import_module("pyarrow").Table.from_batches
    held, count = [], 0
    for batch in reader:
        held.append(batch)
        count += batch.num_rows
        while count >= rows:
            whole = table(held, reader.schema)
            yield whole.slice(0, rows)
            held, count = whole.slice(rows).to_batches(), count - rows
    if count:
        yield table(held, reader.schema)


def _has_lengths(kind: Any) -> bool:
    is_null = import_module("pyarrow").types.is_null
    return is_text(kind) or is_binary(kind) or is_list(kind) or bool(is_null(kind))


def _rounds(batches: Iterable[Any], world: int, uneven: Uneven) -> Iterator[Any]:
    """Whole rounds of all ranks; the rest of the last one is dropped, or filled from the first."""
    if uneven is None:
        raise ValueError(
            "how many batches there are is known at their end: say what happens where they are not "
            'the same number for each rank, uneven="drop", "repeat" or "allow"'
        )
    rest, first = iter(batches), None
    while batch_round := list(islice(rest, world)):
        check_even(len(batch_round) + (world if first else 0), world, uneven)
        first = first or batch_round
        if len(batch_round) == world:
            yield from batch_round
        elif uneven == "repeat":
            for number in range(world):
                yield (batch_round + first * world)[number]
