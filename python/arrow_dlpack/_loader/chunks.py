"""The batches that a state says have been handed out: they are left out, if the source has them.

With a `batch_size` their number says which rows they had. Without one batches are the chunks of the
source, which may be others by now. So a state has the rows that came, and that of a rank or worker,
which takes chunks by turns, a digest of the lengths of all chunks up to its last one.
"""

import hashlib
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from .._frames import narrowed
from .other_data import OtherDataError, refusal
from .readers import Made, reader_of
from .sharding import Share


class Noted:
    """A bar of progress, or none, that notes how many rows there are up to each batch's end."""

    def __init__(self, bar: Any, ends: "deque[Any]") -> None:
        self._bar, self._ends, self._rows = bar, ends, 0

    def update(self, rows: int) -> None:
        self._rows += rows
        self._ends.append(self._rows)
        if self._bar is not None:
            self._bar.update(rows)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


class Behind(Iterator[Any]):
    """Batches behind some that are made and left out, which has to be possible.

    A generator would end with the first error. That of a thread that may not wait ends nothing.
    """

    def __init__(self, batches: Iterator[Any], left_out: int, ends: "deque[Any] | None") -> None:
        """left_out: batches, or rows, if it is noted how many there are up to each batch's end."""
        self._batches, self._left_out, self._ends, self._made = batches, left_out, ends, 0

    def __next__(self) -> Any:
        while self._made < self._left_out:
            if next(self._batches, None) is None:
                raise fewer_batches()
            self._made = self._made + 1 if self._ends is None else self._ends.popleft()
        if self._made > self._left_out:
            raise other_chunks()
        return next(self._batches)


def rows_of_chunks(batch: int, told: Any) -> int:
    """How many rows the chunks had that one process was handed out, by what its state tells."""
    if batch > 0 and not isinstance(told, int):
        raise other_chunks()
    # Each has a row, or more.
    if isinstance(told, int) and batch > told:
        raise fewer_batches()
    return told if batch > 0 else 0


def in_turns(
    stream: Any,
    names: Sequence[str] | None,
    share: Share,
    told: tuple[int, Any],
    digests: "deque[Any]",
) -> Any:
    """The stream, of which the digest at each chunk of this share is noted.

    names: the columns that are read, None for all.
    told: chunks of this share that have been handed out, and the digest at the last one.
    """
    some = None if names is None else narrowed(stream, names)
    try:
        reader = reader_of(stream if some is None else some)
    except (ImportError, TypeError):
        if told[0] > 0:
            raise
        # Of what pyarrow does not read, or without pyarrow, no digest is known.
        return stream

    def chunks() -> Iterator[Any]:
        digest, at, own = hashlib.blake2b(digest_size=16), 0, 0
        for chunk in reader:
            if chunk.num_rows > 0:  # others are no batches
                digest.update(b"%d," % chunk.num_rows)
                if at % share.count == share.index:
                    own += 1
                    if own == told[0] and digest.hexdigest() != told[1]:
                        raise other_chunks()
                    if own > told[0]:
                        digests.append(digest.hexdigest())
                at += 1
            yield chunk
        if own < told[0]:
            raise fewer_batches()

    return Made(reader.schema, chunks())


def fewer_batches() -> OtherDataError:
    return refusal("there are fewer batches than it has handed out")


def other_chunks() -> OtherDataError:
    return OtherDataError(
        "the state is of other chunks than the source has, and without a batch_size each chunk is "
        "a batch: load the state where the data is as it was, begin another epoch by set_epoch(), "
        "or say batch_size= from the first epoch on"
    )
