"""One pass over a source: which rows this process reads, and the batches made of them."""

import atexit
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from itertools import chain, islice
from typing import Any, Generic, NamedTuple, NoReturn, TypeVar

from .. import _core, _frameworks
from .._core import Array
from .._frameworks import Framework
from .bucketing import Bucketed
from .categories import encoded, scanned
from .chunks import Behind, Noted, fewer_batches, in_turns, rows_of_chunks
from .columns import ByLength, ByTokens
from .datasets import Dataset
from .encoder import as_trained
from .mix import Mixed
from .options import LoaderOptions
from .prefetch import Ahead
from .readers import Made
from .resume import Position
from .row_groups import Piece, len_of, pieces_of
from .schema import Query
from .sharding import Share, worker_info
from .source import Source

Batch_co = TypeVar("Batch_co", covariant=True)

# A thread that reads ahead may need the interpreter for its source: it ends before that does.
atexit.register(_core._stop_batches)


@dataclass(frozen=True)
class EpochPlan:
    """What the engine reads for one share."""

    stream: Any
    shard: tuple[int, int] = (0, 1)
    #: Batches that are made, None for all.
    most: int | None = None
    #: Batches that were handed out before, by this plan.
    handed_out: int = 0
    #: Numbers of batches that are made again after the others.
    again: Sequence[int] = ()
    #: The state of a shuffle, if the stream begins with the rows of its pool.
    resume: tuple[int, int, int] | None = None

    def left_out(self, position: Position, of_chunks: bool) -> "LeftOut":
        """What was handed out before: an epoch that is resumed reads it, and goes on behind it.

        of_chunks: whether batches have the rows of the source's chunks.
        """
        if of_chunks and position.reads.count == 1:
            # No other share has chunks: their rows are counted, which takes the batches.
            return LeftOut(rows=rows_of_chunks(position.batch, position.chunks))
        if self.most is not None:
            # The rest was of those that are made again.
            skipped = min(self.handed_out, self.most)
            return LeftOut(skipped, again=self.handed_out - skipped)
        if of_chunks or self.handed_out == 0:
            return LeftOut(self.handed_out)
        # An unknown number of batches: the last one is made, or the state is refused.
        return LeftOut(self.handed_out - 1, made=1)


class LeftOut(NamedTuple):
    """What of an epoch was handed out before."""

    #: Batches that the engine skips without making them.
    skipped: int = 0
    #: Batches that it makes, and are left out here.
    made: int = 0
    #: The rows of those, where rows are counted in place of batches.
    rows: int = 0
    #: Batches of those that are made again.
    again: int = 0


def planned(source: Source, query: Query, options: LoaderOptions, position: Position) -> EpochPlan:
    """The rows of this share, by row groups where they can be read alone, else by turns."""
    share = position.reads
    by = options.batch_size
    if isinstance(by, (ByLength, ByTokens)):
        bucketed = Bucketed(by, options.shuffle, position.seed or 0, options.drop_last, query)
        # Rows are sorted by the lengths of the texts that may become codes.
        uncoded = query.uncoded([by.column])
        data = source.read(uncoded)
        if options.training is not None and by.column in options.training.names:
            data = as_trained(data, options.training, uncoded, source.way)
        stream = bucketed.reader(data, share.world, options.uneven)
        return EpochPlan(stream, (share.index, share.count), None, position.batch)
    # Codes of dictionaries are numbered from the first row on.
    is_wanted = share.count > 1 or options.shuffle is not None or position.batch > 0
    if is_wanted and options.reads_groups(share.count):
        pieces = source.pieces()
        if pieces and isinstance(source, (Dataset, Mixed)):
            return _by_groups(source, pieces, query, options, position)
    return _by_turns(source, query, options, position)


def _by_groups(
    source: Dataset | Mixed,
    pieces: Sequence[Piece],
    query: Query,
    options: LoaderOptions,
    position: Position,
) -> EpochPlan:
    share, skipped, most = position.reads, position.batch, None
    if options.shuffle is not None and (seed_of_all := _seed_of_all(options, share)) is not None:
        # Before they are divided: each share has rows of all the source. The order is that of all
        # epochs, as a rank that begins a loop more than others is in another one than they are.
        pieces = source.shuffled(pieces, seed_of_all)
    chosen: list[Piece] = list(pieces)
    again = range(0)
    if options.filter is None:
        rows, size = sum(map(len_of, pieces)), options.rows or 1
        total = options.batches_of(rows)
        once, again = share.batch_ranges(total, options.uneven)
        if skipped > len(once) + len(again):
            raise fewer_batches()
        spans = [once, again]
        if options.shuffle is None:
            # Whole batches: the last one of the source may have fewer rows.
            spans, again = [once[skipped:]], again[max(skipped - len(once), 0) :]
            skipped = 0
        else:
            again = range(0)
        most, chosen = sum(map(len, spans)), []
        last = total - (total % share.world if options.uneven == "drop" else 0)
        for span in spans:
            # Of the rows behind the last batch the share that has it draws too, so that those which
            # are left out are others in each epoch.
            is_last = options.shuffle is not None and span is once and span.stop == last
            stop = rows if is_last else min(span.stop * size, rows)
            chosen += pieces_of(pieces, span.start * size, stop)
    seed = position.seed_of_part
    if options.shuffle is not None:
        chosen = source.shuffled(chosen, position.seed_of_groups)
    if not chosen:
        return EpochPlan(source.read(query), most=0, again=again)
    is_resumed = most is not None and 0 < skipped < most
    if options.shuffle is not None and isinstance(source, Dataset) and most and is_resumed:
        rows = sum(map(len_of, chosen))
        found = _core._resume_shuffle(rows, options.rows or 1, (options.shuffle, seed), skipped)
        if found is not None:
            positions, read, state = found
            stream = source.read_resumed(query, chosen, positions, read)
            return EpochPlan(stream, most=most - skipped, resume=state)
    stream = source.read_pieces(query, chosen)
    return EpochPlan(stream, most=most, handed_out=skipped, again=again)


def _seed_of_all(options: LoaderOptions, share: Share) -> int | None:
    """The seed that several shares know; None for one, and for ranks without seed=, which draw each
    its own.
    """
    if share.count == 1:
        return None
    worker = worker_info() if options.seed is None and share.world == 1 else None
    seed = options.seed if worker is None else int(worker.seed - worker.id)
    return None if seed is None else seed % 2**64


def _by_turns(
    source: Source, query: Query, options: LoaderOptions, position: Position
) -> EpochPlan:
    share, most, again = position.reads, None, range(0)
    if share.world > 1 and options.uneven != "allow":
        total = total_of(source, query, options)
        if total is None:
            raise TypeError(
                "how many rows the source has is not known before it has been read, and ranks that "
                'wait for each other would hang: say uneven="allow", or pass a table, a path or a '
                "dataset, and a batch_size"
            )
        once, again = share.batch_ranges(total, options.uneven, in_turns=True)
        most = len(once)
        if position.batch > most + len(again):
            raise fewer_batches()
    stream = source.read(query)
    return EpochPlan(stream, (share.index, share.count), most, position.batch, again)


def total_of(source: Source, query: Query, options: LoaderOptions) -> int | None:
    """How many batches all shares make together, if that is known."""
    with source.explaining(query.counted):
        rows = None if options.rows is None else source.rows(query)
    return None if rows is None else options.batches_of(rows)


def _opened(options: LoaderOptions, stream: Any, way: str, **how: Any) -> _core._Batches:
    """way: how the source gets another type, for errors."""
    by, categories = options.batch_size, options.wanted.categories
    if isinstance(by, (ByLength, ByTokens)) and by.column in categories:
        stream = encoded(stream, {by.column: categories[by.column]})
    if options.training is not None:
        stream = as_trained(stream, options.training, options.query, way)
    return options.open(stream, **how)


def bar_of(rows: int | None) -> Any:
    """A bar of progress."""
    try:
        tqdm = import_module("tqdm.auto").tqdm
    except ImportError as error:
        raise ImportError("progress=True needs tqdm: pip install tqdm") from error
    return tqdm(total=rows, unit="row", unit_scale=True)


def drawn_seed(
    options: LoaderOptions,
    share: Share,
    framework: Framework | None,
    epoch: int,
    has_loaded: bool,
) -> int | None:
    """The seed that orders the rows of an epoch, the same for all shares where seed= is given.

    has_loaded: whether the loader has taken a state, from which it may have gone on.
    """
    if options.shuffle is None:
        return None
    # Workers divide what is in one order.
    seed = _seed_of_all(options, share) if options.seed is None else options.seed
    if seed is None and options.rows is None and share.count > 1:
        raise TypeError("ranks that sort and shuffle the same rows need one seed=")
    if seed is not None:
        return _core._seed_of_epoch(seed % 2**64, epoch % 2**64)
    if framework == "torch":
        # The default device may be another one.
        torch = import_module("torch")
        drawn = int(torch.randint(2**53, (), device="cpu"))
        # After a resume PyTorch may draw what it drew for an earlier epoch, by a seed of the script
        # or of torchdata: the order is another one all the same.
        return _core._seed_of_epoch(drawn, epoch % 2**64) if has_loaded else drawn
    # Numbers that any reader of JSON holds.
    return int.from_bytes(os.urandom(8), "big") >> 11


def work_of(options: LoaderOptions, framework: Framework | None) -> Callable[[Any], Any] | None:
    """What Python does with each of the engine's batches, if anything."""
    take = None if framework is None else _frameworks.taker(framework)
    transform, labels = options.transform, options.wanted.labels
    if take is None and transform is None:
        return None

    def work(batch: Any) -> Any:
        if take is not None:
            batch = _frameworks.taken(batch, take, labels)
        try:
            return batch if transform is None else transform(batch)
        except StopIteration as error:
            # Or it would end the epoch.
            raise RuntimeError("transform raised StopIteration") from error

    return work


def check(source: Source, options: LoaderOptions) -> None:
    """The error that an epoch would begin with: for names, dtypes and wishes that do not fit.

    source: one without rows.
    """
    # A text is a filter of another library's than the one that reads no rows.
    where = None if isinstance(options.filter, str) else options.filter
    options = replace(options, filter=where, uneven="allow")
    options = options.with_words(scanned(source, options.query))
    read = planned(source, source.asked(options.query), options, Position(0))
    _opened(options, read.stream, source.way, prefetch=0).close()


class First(Iterator[Any]):
    """The first batches, and the error that came in place of rows of the last one.

    The engine hands out the rows before an error as a batch, which has fewer then.
    """

    def __init__(self, batches: Iterator[Any], most: int) -> None:
        self._batches, self._left, self._is_over = batches, most, most == 0

    def __next__(self) -> Any:
        if self._left > 0:
            batch = next(self._batches)
            self._left -= 1
            return batch
        if not self._is_over:
            next(self._batches, None)  # of other rows than these, if it is a batch
            self._is_over = True
        raise StopIteration


class Batches(Iterator[Batch_co], Generic[Batch_co]):
    """The batches of one pass, from `iter_batches` or ``iter(loader)``. They are read once.

    An error in the source comes when all rows that it gave before have been handed out, in batches
    that a state of a `Loader` leaves out where an unbroken epoch has none of them; one in a batch
    comes in its place. Either is the end. close(), or leaving a with block, stops the reader, and
    returns when the source has been released, so that a connection takes its next statement.
    Dropping the iterator does so too, but waits at most a second.
    """

    def __init__(
        self,
        *,
        source: Source | None,
        query: Query,
        options: LoaderOptions,
        position: Position,
        work: Callable[[Any], Any] | None,
    ) -> None:
        self._position = position
        self._is_read = False
        self._engine: _core._Batches | None = None
        #: Batches of the epoch before the first one that the engine makes.
        self._before = 0
        #: What makes batches again, which reads the source from its first row.
        self._again: _core._Batches | None = None
        self._ahead: Ahead | None = None
        self._work: Callable[[Any], Any] | None = None
        self._batches: Iterator[Any] = iter(())
        #: Of each batch without a batch_size what a state tells of it.
        self._chunks: deque[Any] | None = deque() if options.batch_size is None else None
        #: How many chunks come before one that an error of the source cuts, once that is made.
        self._whole_chunks: Sequence[int] = ()
        self._explained: Callable[[Exception], Exception] | None = None
        if source is None:
            return
        self._explained = partial(source.explained, query=query)
        with source.explaining(query):
            read = planned(source, query, options, position)
        seed = position.seed_of_part
        is_whole = position.reads.count == 1 and options.filter is None

        def opened(stream: Any, shard: tuple[int, int], **how: Any) -> _core._Batches:
            return _opened(options, stream, source.way, seed=seed, shard=shard, **how)

        def again() -> Iterator[Any]:
            for number in read.again:
                stream = source.read(query)
                with closing(opened(stream, (number, position.reads.count), prefetch=0)) as more:
                    self._again = more
                    yield from First(more, 1)

        ahead = options.prefetch if options.transform is not None else 0
        bar = bar_of(source.rows() if is_whole else None) if options.progress else None
        stream, left_out = read.stream, read.left_out(position, self._chunks is not None)
        if self._chunks is not None and isinstance(stream, Made):
            self._whole_chunks = stream.whole
        if self._chunks is not None and position.reads.count == 1:
            bar = Noted(bar, self._chunks)
        elif self._chunks is not None:
            # Chunks by turns: a digest of the lengths is compared at the share's last one.
            told = position.batch, position.chunks
            stream = in_turns(stream, options.read, position.reads, told, self._chunks)
        with source.explaining(query):
            self._engine = opened(
                stream,
                read.shard,
                prefetch=0 if ahead else options.prefetch,
                progress=bar,
                skip=left_out.skipped,
                resume=read.resume,
            )
        self._before = position.batch - left_out.made
        made = left_out.rows or left_out.made
        self._batches = Behind(self._engine, made, self._chunks) if made else self._engine
        if read.most is not None:
            some = First(self._engine, read.most - left_out.skipped)
            self._batches = chain(some, islice(again(), left_out.again, None))
        if ahead and work is not None:
            self._batches = self._ahead = Ahead(self._batches, work, ahead, self._engine._stop)
        else:
            self._work = work

    def __next__(self) -> Batch_co:
        if self._is_read:
            raise ValueError("these batches are being read already")
        # No call in between, after which another thread might run.
        self._is_read = True
        try:
            batch: Batch_co = next(self._batches)
            if self._work is not None:
                batch = self._work(batch)
            self._count()
            return batch
        except _core._BusyError as refusal:
            # This thread may not wait for the batch; the batches stay open for others.
            raise ValueError(*refusal.args) from None
        except BaseException as error:
            position = self._position
            position.is_over = isinstance(error, StopIteration)
            position.has_failed = not position.is_over
            # No local keeps the error, whose traceback has this frame: both would keep the source.
            self._close_and_raise(error)
            raise
        finally:
            self._is_read = False

    def _count(self) -> None:
        """Counts a batch, unless an unbroken epoch has no such batch, which a state leaves out."""
        position, whole = self._position, None if self._engine is None else self._engine._whole
        if whole is not None:
            whole += self._before
        elif self._whole_chunks:
            whole = len(range(position.reads.index, self._whole_chunks[0], position.reads.count))
        if whole is not None and position.batch >= whole:
            return
        position.batch += 1
        if self._chunks is not None:
            position.chunks = self._chunks.popleft() if self._chunks else None

    def _close_and_raise(self, error: BaseException) -> None:
        """Raises another error, if one tells more than this."""
        explained, self._explained = self._explained, None
        # Of the batches themselves no error comes before their end.
        is_of_signal = self._ahead is not None and not self._ahead.has_ended
        if is_of_signal or not isinstance(error, Exception):
            self._leave()
            return
        if explained is None or not self._position.has_failed:
            self.close()
            return
        told = explained(error)
        del explained
        self.close()
        try:
            if told is not error:
                raise told from error
        finally:
            del told

    @property
    def dictionaries(self) -> dict[str, Array]:
        """The dictionary of each dictionary column, by the column's name: all values read so far.

        Later values are appended.
        """
        found: dict[str, Array] = {}
        # Each numbers values from the first row on, so that the longer one has those of the other.
        for engine in (self._engine, self._again):
            for name, values in ({} if engine is None else engine.dictionaries).items():
                found[name] = max(found.get(name, values), values, key=len)
        return found

    def close(self) -> None:
        """Stops the reader and releases the source; there are no more batches."""
        is_refused = False
        try:
            if self._ahead is not None:
                self._ahead.close()
            if self._engine is not None:
                self._engine.close()
        except _core._BusyError as refusal:
            is_refused = True
            raise ValueError(*refusal.args) from None
        finally:
            if not is_refused:
                self._detach()

    def _leave(self) -> None:
        """Closes without waiting for a source that may hang, as signals ask for."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            ahead.leave()
        with suppress(ValueError):  # of a thread that is still in the source
            self.close()
        # That thread releases it.
        self._engine = None
        self._detach()

    def _detach(self) -> None:
        """There are no more batches, and the loader stays where it is."""
        self._position, self._batches, self._explained = Position(0), iter(()), None

    def __enter__(self) -> "Batches[Batch_co]":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "batches are read once, where they were opened: hand the Loader to the other process"
        )
