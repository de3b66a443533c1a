"""Parts of Parquet files that are read alone: rows of row groups."""

import itertools
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from typing import Any, NamedTuple


class Piece(NamedTuple):
    """Rows of a row group of a Parquet file, from `start` to before `stop`."""

    group: Any
    start: int
    stop: int


def len_of(piece: Piece) -> int:
    """How many rows it has."""
    return piece.stop - piece.start


def rows_of(piece: Piece) -> int:
    """Rows of the whole row group."""
    return sum(group.num_rows for group in piece.group.row_groups)


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


def rows_at(positions: Any, pieces: Sequence[Piece], read: Callable[[Piece], Any]) -> Any:
    """A table of the rows at these positions of all pieces, in their order; None if there are none.

    Only pieces that have one of the rows are read.
    """
    pa, pc = import_module("pyarrow"), import_module("pyarrow.compute")
    positions = pa.array(positions)
    order = pc.sort_indices(positions)
    rising = positions.take(order)
    numbers = memoryview(rising.buffers()[1] or b"").cast("Q")[: len(rising)]
    at, tables = 0, []
    for piece in pieces:
        end = at + len_of(piece)
        first, last = bisect_left(numbers, at), bisect_left(numbers, end)
        if first < last:
            own = pc.subtract(rising[first:last], pa.scalar(at, pa.uint64()))
            tables.append(read(piece).take(own))
        at = end
    return pa.concat_tables(tables).take(pc.sort_indices(order)) if tables else None
