"""Parts of Parquet files that are read alone: rows of row groups."""

import itertools
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from typing import Any, NamedTuple

from .. import _core
from .readers import reader_of


class Piece(NamedTuple):
    """Rows of a row group of a Parquet file, from `start` to before `stop`."""

    group: Any
    start: int
    stop: int


def len_of(piece: Piece) -> int:
    """How many rows it has."""
    return piece.stop - piece.start


def rows_of(fragment: Any) -> int:
    """Rows of the row groups of a fragment, which is what is read, whatever the file claims."""
    return sum(int(group.num_rows) for group in groups_of(fragment))


def groups_of(fragment: Any) -> list[Any]:
    """What is known of the row groups of a fragment."""
    groups: list[Any] = fragment.row_groups
    if wrong := next((group for group in groups if group.num_rows < 0), None):
        raise ValueError(f"{fragment.path}: row group {wrong.id} claims {wrong.num_rows} rows")
    return groups


def counted_rows(fragments: Sequence[Any]) -> int:
    """Rows of files without row groups, by a dataset without columns: a fragment counts none where
    columns have one name.
    """
    make = import_module("pyarrow.dataset").FileSystemDataset
    none, first = import_module("pyarrow").schema([]), fragments[0]
    return int(make(list(fragments), none, first.format, first.filesystem).count_rows())


def are_parquet(fragments: Iterable[Any]) -> bool:
    """Whether all of them have row groups."""
    return all(hasattr(fragment, "row_groups") for fragment in fragments)


def cut(batches: Iterable[Any], cuts: Sequence[tuple[int, int, int]]) -> Iterator[Any]:
    """Of row groups that follow each other, rows `start` to `stop` each."""
    ends = list(itertools.accumulate(rows for _, _, rows in cuts))
    keep = [(end - rows + a, end - rows + b) for end, (a, b, rows) in zip(ends, cuts, strict=True)]
    at = 0
    for batch in batches:
        end = at + batch.num_rows
        while keep and keep[0][1] <= at:
            keep.pop(0)
        for start, stop in keep:
            if start >= end:
                break
            first = max(start, at)
            yield batch.slice(first - at, min(stop, end) - first)
        at = end


def pieces_of(pieces: Sequence[Piece], start: int, stop: int) -> Iterator[Piece]:
    """Those with the rows `start` to `stop` of all of them."""
    at = 0
    for group, first, last in pieces:
        a, b = max(start - at, 0), min(stop - at, last - first)
        if a < b:
            yield Piece(group, first + a, first + b)
        at += last - first


def rows_at(positions: Any, pieces: Sequence[Piece], read: Callable[[list[Piece]], Any]) -> Any:
    """A table of the rows at these positions of all pieces, in their order; None if there are none.

    Only pieces that have one of the rows are read, one after the other by one reader, which reads
    ahead.
    """
    pa, pc = import_module("pyarrow"), import_module("pyarrow.compute")
    positions = pa.array(positions)
    order = pc.sort_indices(positions)
    rising = memoryview(positions.take(order).cast(pa.int64()).buffers()[1] or b"").cast("q")
    at, numbers, found, before = 0, rising[: len(positions)], [], 0
    some: list[Piece] = []
    for piece in pieces:
        end = at + len_of(piece)
        first, last = bisect_left(numbers, at), bisect_left(numbers, end)
        if first < last:
            found += [number - at + before for number in numbers[first:last]]
            some.append(piece)
            before += len_of(piece)
        at = end
    if not some:
        return None
    reader = reader_of(read(some))
    batches, at = [], 0
    for batch in reader:
        first, last = bisect_left(found, at), bisect_left(found, at + len(batch))
        if first < last:
            own = pa.array([number - at for number in found[first:last]], pa.uint64())
            batches.append(pa.record_batch(_core._take(batch, own)))
        at += len(batch)
    whole = pa.Table.from_batches(batches, reader.schema)
    return pa.record_batch(_core._take(whole, pc.sort_indices(order)))
