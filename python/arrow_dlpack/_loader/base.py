"""Epoch after epoch of a source: where a `Loader` stands, and how it resumes and is pickled."""

import inspect
import os
import pickle
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any, Generic, NoReturn, TypeVar
from weakref import WeakSet

from .. import _core, _frameworks
from .._frameworks import Framework
from . import filters as _filters
from . import identity as _identity
from .categories import check_words, scanned
from .columns import integer
from .datasets import has_no_columns
from .epoch import Batches, Position, total_of
from .epoch import check as check_epoch
from .kinds import (
    check,
    dataset_of,
    for_pickle,
    is_local,
    names_of,
    schema_of,
    schemas_of,
    takes_texts,
)
from .mix import Mix, Turns, emptied, source_of
from .options import LoaderOptions
from .readers import heads
from .schema import Query
from .sharding import Share, resolved, share_of
from .source import Loop, Source
from .summary import of_loader

Batch_co = TypeVar("Batch_co", covariant=True)

#: Of sources that pickle takes by value, and that are not pickled a second time to find that out.
_BY_VALUE = {"Table", "RecordBatch", "DataFrame", "LazyFrame", "str", "list", "tuple"}


class LoaderBase(Loop, Generic[Batch_co]):
    """What a `Loader` does with its arguments; the types of its overloads are in the subclass."""

    #: Whether columns are checked when it is made.
    _is_checked = True

    def __init__(self, source: Any, options: LoaderOptions) -> None:
        if isinstance(source, LoaderBase):
            raise TypeError(
                "a Loader is no source of batches to make: loop over it, or pass its source"
            )
        if isinstance(source, type) or not (callable(source) or isinstance(source, Mix)):
            check(source, "a Loader")
        self._data, self._options = source, options
        self._source: Source | None = None
        self._was_read = False
        self._next_epoch = 0
        self._position: Position | None = None
        self._resume: dict[str, Any] | None = None
        #: Epochs that workers of Loader.torch make now.
        self._elsewhere = 0
        #: What tells the data of the current epoch, and what it told, once it has been asked.
        self._identify: Callable[[], dict[str, Any]] | None = None
        self._identity: dict[str, Any] | None = None
        #: What tells workers that persist, of each BatchDataset of this loader.
        self._listeners: Iterable[Any] = ()
        #: Of the source, if it costs nothing to ask.
        self._schema: Any = None
        self._check()

    def _check(self) -> None:
        """What can be told before the source is read, by an epoch of no rows where it can."""
        is_function, data = self._is_function(), self._data
        if is_function:
            _check_function(data)
        parts = [one for one, _ in data.sources] if isinstance(data, Mix) else [data]
        _filters.check(self._options.filter, is_function or any(map(takes_texts, parts)))
        if self._is_checked and not is_function:
            self._check_columns()

    def _check_columns(self) -> None:
        """Names, dtypes and wishes, as far as the source has a schema that costs nothing to ask.

        Of files of this machine the first footer is read; those of a network wait for the first
        epoch, which reads all of them side by side. It looks for the files anew: there may be more.
        """
        data, options, query = self._data, self._options, self._options.query
        empty, names = emptied(data), names_of(data)
        if is_local(data):
            try:
                files = source_of(data)
            except FileNotFoundError:  # it may be there where the Loader is handed to
                return
            try:
                head = files.head()
            except (OSError, ValueError):  # or it is not written to its end yet
                return
            if head is not None and head[1]:
                empty = dataset_of(head[0])
            if head is not None:
                known = head[0].names
                needed = [name for name in query.columns or () if not query.fills(name)]
                if not set(heads(needed, lambda: known) or ()) <= set(known):
                    files.runs(query)  # has the error, for all files
                read = known if query.columns is None else heads(query.columns, lambda: known) or ()
                _core._check_names(known, [name for name in read if name in known])
        if empty is not None:
            self._schema = schema_of(empty)
            # Other sources have one encoder, which does it.
            check_words(query.categories, schemas_of(empty) if isinstance(data, Mix) else [])
            is_one = not isinstance(data, (list, tuple, Mix))
            if is_one and query.where is not None and not isinstance(query.where, str):
                _filters.check_kind(query.where, self._schema)
            try:
                check_epoch(source_of(empty), options.with_copy_for(options.framework))
            except _core.UnsupportedError:
                # Without columns= every column is read: the loop refuses those without a form.
                if query.columns is not None:
                    raise
                if options.wanted.labels:
                    labels = replace(options, columns=[], format="dict")
                    check_epoch(source_of(empty), labels.with_copy_for(options.framework))
        elif names is not None:
            _core._check_names(names, heads(query.columns, lambda: names) or [])

    def __repr__(self) -> str:
        """Its source, its options, and what each column becomes; it reads no data for it."""
        try:
            return of_loader(self._data, self._schema, self._options)
        except Exception:  # of data whose attributes raise, or before there is any
            return object.__repr__(self)

    def __iter__(self) -> Batches[Batch_co]:
        return self._iterate(self._options.framework)

    def _iterate(self, framework: Framework | None) -> Batches[Any]:
        """The next epoch, with tensors of this framework."""
        share = share_of(*self._ranks())
        options = self._with_words().with_copy_for(framework)
        query = replace(options.query, is_part=self._is_function() and share.count > 1)
        source = self._opened(share)
        self._try_again()
        identify = ours = None
        if source is not None:
            source.refresh()
            identify = source.identity(options.query)
        if self._resume is not None and identify is not None:
            ours = identify()
            _identity.check(
                self._resume.get("source"),
                ours,
                is_ordered=options.matrix,
                is_shuffled=options.shuffle is not None,
                is_shared=share.count > 1,
            )
        before = self._resume, self._next_epoch
        try:
            batches = self._batches(source, query, options, share, framework)
        except BaseException as error:
            # What failed to go on can be tried again.
            self._resume, self._next_epoch = before
            if source is not None and source.is_begun and not self._is_function():
                error.add_note("The first batch was taken from the iterator: make it anew.")
            raise
        self._identify, self._identity = identify, ours
        return batches

    def _try_again(self) -> None:
        """Takes the state again from which the last epoch failed to go on."""
        at = self._position
        if self._resume is not None or at is None or at.resumed is None or not at.has_failed:
            return
        if at.batch == at.resumed["batch"]:
            self._resume = dict(at.resumed)

    def _batches(
        self,
        source: Source | None,
        query: Query,
        options: LoaderOptions,
        share: Share,
        framework: Framework | None,
    ) -> Batches[Any]:
        position = self._start(share, framework)
        batches: Batches[Any] = Batches(
            source=source,
            query=query,
            options=options,
            position=position,
            work=self._work(framework),
        )
        if source is not None and source.once:
            self._was_read = True
        self._position = position
        return batches

    def __len__(self) -> int:
        """How many batches a whole epoch of this rank has, with all its workers.

        After `load_state_dict` too: ``state_dict()["batch"]`` of them have been handed out.
        """
        if self._options.rows is None:
            raise TypeError(
                "how many batches there are is known with a batch_size of so many rows (a "
                "DataLoader of PyTorch's is loader.torch(), which does not ask)"
            )
        source = None if self._is_function() else self._of_data()
        if source is not None:
            source.refresh()
        total = None if source is None else total_of(source, self._options.query, self._options)
        if total is None:
            raise TypeError(
                "the source does not know how many rows it has: count the batches of an epoch, or "
                "pass a table, a path or a dataset"
            )
        return Share(*self._ranks()).of_rank(total, self._options.uneven)

    def __getitem__(self, index: Any) -> NoReturn:
        """Refuses, so that PyTorch's own DataLoader, which would ask for rows, names the way."""
        raise TypeError(
            "a Loader makes batches itself: loop over it, or use loader.torch(num_workers=...) in "
            "place of a DataLoader"
        )

    def set_epoch(self, epoch: int) -> None:
        """The number of the next epoch, from which the order of a seed is drawn.

        After `load_state_dict`, the epoch of the state goes on where it stood, and any other begins
        at its start. Workers that persist learn it too; batches that they make already stay as they
        are.
        """
        self._next_epoch, self._position = integer("epoch", epoch, 0), None
        if self._resume is not None and self._resume["epoch"] != self._next_epoch:
            self._resume = None
        for listener in self._listeners:
            listener.tell(epoch=self._next_epoch)

    @property
    def categories(self) -> dict[str, tuple[Any, ...]]:
        """The words of each column of `Categories`, in the order of their codes.

        Words that are to be read are read now, unless an epoch has done so.
        """
        known = self._with_words().wanted.categories
        return {name: tuple(wish.words or ()) for name, wish in known.items()}

    def state_dict(self) -> dict[str, Any]:
        """Where the current epoch stands, for JSON. Each process has its own.

        It has the number of the batch, without a batch_size what tells the chunks until then, what
        orders the rows, and what tells the data from other data: the types of the columns that are
        read, the rows where they are known, digests of the footers of files, or of some rows of a
        table, and of the first and last rows, which are read once in an epoch for it.
        """
        if self._elsewhere:
            raise TypeError(
                "workers make these batches, and each has a state: wrap this Loader in a "
                "BatchDataset for torchdata's StatefulDataLoader, which asks them"
            )
        if any(listener.is_elsewhere for listener in self._listeners):
            raise TypeError(
                "workers make these batches, and each has a state, which torchdata's "
                "StatefulDataLoader asks for; after set_epoch(n), state_dict() is where epoch n "
                "begins"
            )
        self._try_again()
        if self._resume is not None:
            return self._resume
        at = self._position
        if at is None or at.is_over:
            at = Position(self._next_epoch)
        return {
            "version": 1,
            "epoch": at.epoch,
            "batch": at.batch,
            "seed": at.seed,
            "part": list(at.part) if at.batch else None,
            "chunks": at.chunks if at.batch else None,
            "options": self._fingerprint(),
            "source": self._of_source(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """The next epoch goes on behind the batch at which `state_dict` was called.

        Its batches are those that would have come. The loop refuses other data, and keeps the
        state; the same data may be elsewhere, in other chunks, or a frame of another library.
        Without a batch_size each chunk is a batch, and one has to begin where the state stands. Of
        Parquet files only row groups are read again that have rows in the buffer of a shuffle;
        other sources, and those with a filter or physical=True, are read from the start, without
        conversions if there is a batch_size.
        """
        if not _is_state(state):
            raise ValueError(f"this is no state of a Loader: {state!r}")
        saved, ours = state["options"], self._fingerprint()
        for name in {**ours, **saved}:
            if saved.get(name) != ours.get(name):
                raise ValueError(
                    f"the state is of a loader with {name}={saved.get(name)!r}, and this one has "
                    f"{name}={ours.get(name)!r}: its batches would be others"
                )
        self._resume = dict(state)
        for listener in self._listeners:
            listener.tell(state=self._resume)

    def torch(self, num_workers: int = 0, **options: Any) -> Any:
        """PyTorch's DataLoader of these batches, by ``batch_size=None``.

        They have PyTorch's tensors, unless ``framework=`` says otherwise: what it made, and what a
        transform made of it, stays as it is. Each epoch of the DataLoader has the number of this
        loader, also where workers start anew. The options are those of DataLoader. Workers are
        spawned unless multiprocessing_context says otherwise: the libraries that read files have
        threads, and do not survive a fork.
        """
        return import_module("arrow_dlpack.torch").data_loader(self, num_workers, options)

    def __getstate__(self) -> dict[str, Any]:
        data = for_pickle(self._data)
        if type(data).__name__ not in _BY_VALUE:
            try:
                pickle.dumps(data)
            except Exception as error:
                parts = [one for one, _ in data.sources] if isinstance(data, Mix) else [data]
                is_filtered = any(_filters.own_of(part) is not None for part in parts)
                way = "a path, a dataset"
                if is_filtered:
                    way = "the dataset without its filter, and that as filter= of the Loader"
                raise TypeError(
                    f"the source of this Loader, a {type(self._data).__name__}, cannot be pickled, "
                    f"and so not be handed to another process: pass {way}, or a "
                    "function of (index, count), at the top of a module, that opens it there"
                ) from error
        options = self._options
        for name in ("transform", "framework"):
            try:
                pickle.dumps(getattr(options, name))
            except Exception as error:
                raise TypeError(
                    f"the {name} of this Loader cannot be pickled, and so not be handed to another "
                    "process: define it with def, at the top of a module"
                ) from error
        if options.rank == "auto":
            rank, world_size = self._ranks()
            options = replace(options, rank=rank, world_size=world_size)
        own = {"_data": data, "_options": options, "_source": None, "_identify": None}
        state = {"_position": None, "_elsewhere": 0, "_listeners": ()}
        return {**self.__dict__, **own, **state}

    def _listen(self, listener: Any) -> None:
        """Calls its ``tell`` as long as it lives, which copies of this loader do not."""
        self._listeners = WeakSet([*self._listeners, listener])

    def _upcoming(self) -> int:
        """The number of the next epoch."""
        return self._next_epoch if self._resume is None else int(self._resume["epoch"])

    def _advance(self, epoch: int) -> None:
        """Counts an epoch that copies of this loader make in other processes, or that failed."""
        self._forget()
        self._next_epoch, self._resume, self._position = epoch + 1, None, None

    def _forget(self) -> None:
        """Epochs that workers of a `BatchDataset` have begun are not the last ones any more."""
        for listener in self._listeners:
            listener.forget()

    def _check_part(self, share: Share) -> None:
        """A state within an epoch is that of one rank and worker."""
        resume, part = self._resume, (share.index, share.count)
        if resume is not None and resume["batch"] and tuple(resume["part"]) != part:
            raise ValueError(
                f"the state is that of part {resume['part'][0]} of {resume['part'][1]}, and "
                f"this is part {part[0]} of {part[1]}: each rank and worker has its own"
            )

    def _ranks(self) -> tuple[int, int]:
        return resolved(self._options.rank, self._options.world_size)

    def _is_function(self) -> bool:
        data = self._data
        # Classes may be called too, and connections of sqlite3.
        is_other = isinstance(data, type) or hasattr(data, "cursor")
        return callable(data) and not is_other and not hasattr(type(data), "__arrow_c_stream__")

    def _of_data(self) -> Source:
        if self._source is None:
            self._source = source_of(self._data)
        return self._source

    def _opened(self, share: Share) -> Source | None:
        """The source, or the part of it that a function returns; None for one without rows."""
        if self._is_function():
            if share.world > 1 and self._options.uneven != "allow":
                raise TypeError(
                    "a function opens parts of any size, and ranks that wait for each other would "
                    'hang where one has fewer batches: say uneven="allow", or pass the files'
                )
            part = _part(self._data, share.index, share.count)
            return None if part is None else source_of(part)
        source = self._of_data()
        if source.once and (_in_worker() or self._was_read):
            raise TypeError(
                "a reader is read once, by the process that opened it: pass a dataset or a table, "
                "or a function of (index, count) that opens a reader"
            )
        return source

    def _with_words(self) -> LoaderOptions:
        """The options, whose categories have words: those of the whole source."""
        options, is_function = self._options, self._is_function()
        categories = options.wanted.categories
        if any(wish.words is None for wish in categories.values()):
            source = source_of(_part(self._data, 0, 1)) if is_function else self._of_data()
            known = scanned(source, options.query, is_function)
            options = self._options = options.with_words(known)
        return options

    def _start(self, share: Share, framework: Framework | None) -> Position:
        """Where the next epoch starts: behind what has been handed out, if it is resumed."""
        self._check_part(share)
        self._forget()
        resume, self._resume = self._resume, None
        part = share.index, share.count
        reads = Share() if self._is_function() else share
        if resume is None:
            epoch, batch, seed = self._next_epoch, 0, None
        else:
            epoch, batch, seed = resume["epoch"], resume["batch"], resume["seed"]
        self._next_epoch = epoch + 1
        if seed is None and self._options.shuffle is not None:
            seed = self._drawn(epoch, share, framework)
        chunks = None if resume is None else resume["chunks"]
        return Position(epoch, batch, seed, reads, part, chunks, resumed=resume)

    def _drawn(self, epoch: int, share: Share, framework: Framework | None) -> int:
        """The seed of an epoch, the same for all shares where one is given."""
        seed = self._options.seed
        if seed is None and self._options.rows is None and share.count > 1:
            if share.world > 1:
                raise TypeError("ranks that sort and shuffle the same rows need one seed=")
            worker = import_module("torch.utils.data").get_worker_info()
            seed = int(worker.seed - worker.id)
        if seed is not None:
            return _core._seed_of_epoch(seed % 2**64, epoch % 2**64)
        if framework == "torch":
            # The default device may be another one.
            torch = import_module("torch")
            return int(torch.randint(2**53, (), device="cpu"))
        # Numbers that any reader of JSON holds.
        return int.from_bytes(os.urandom(8), "big") >> 11

    def _work(self, framework: Framework | None) -> Callable[[Any], Any] | None:
        """What Python does with each of the engine's batches, if anything."""
        take = None if framework is None else _frameworks.taker(framework)
        transform, labels = self._options.transform, self._options.wanted.labels
        if take is None and transform is None:
            return None

        def work(batch: Any) -> Any:
            who = "framework"
            try:
                if take is not None:
                    batch = _frameworks.taken(batch, take, labels)
                who = "transform"
                return batch if transform is None else transform(batch)
            except StopIteration as error:
                # Or it would end the epoch.
                raise RuntimeError(f"{who} raised StopIteration") from error

        return work

    def _of_source(self) -> dict[str, Any] | None:
        """What is known of the data of the current epoch; None before the first one."""
        if self._identify is not None and self._identity is None:
            self._identity = self._identify()
        if self._identity is not None:
            self._identity = _identity.settled(self._identity)
        return self._identity

    def _fingerprint(self) -> dict[str, Any]:
        """What decides which rows are in a batch."""
        options, data = self._options, self._data
        mix = {}
        if isinstance(data, Mix):
            mix["mix"] = repr(Turns(data).weights)
            mix["stopping_strategy"] = data.stopping_strategy
        return mix | {
            "batch_size": options.rows or repr(options.batch_size),
            "shuffle": options.shuffle,
            "seed": options.seed,
            "drop_last": options.drop_last,
            "filter": None if options.filter is None else _identity.of_filter(options.filter),
            "uneven": options.uneven,
        }


def _is_state(state: Any) -> bool:
    if not isinstance(state, Mapping):
        return False

    def is_number(value: Any, below: int) -> bool:
        return type(value) is int and 0 <= value < below

    try:
        version, batch, seed, part = (state[of] for of in ("version", "batch", "seed", "part"))
        epoch, chunks, options = state["epoch"], state["chunks"], state["options"]
        source = state["source"]
    except KeyError:
        return False
    if not (is_number(version, 2) and version == 1 and isinstance(options, Mapping)):
        return False
    has_part = isinstance(part, (list, tuple)) and [type(of) for of in part] == [int, int]
    is_begun = is_number(batch, 2**63) and batch > 0
    return (
        is_number(epoch, 2**63)
        and is_number(batch, 2**63)
        and (is_number(seed, 2**64) or (seed is None and not (is_begun and options.get("shuffle"))))
        and (has_part or not is_begun)
        and (chunks is None or isinstance(chunks, str) or is_number(chunks, 2**63))
        and (isinstance(source, Mapping) or (source is None and not is_begun))
    )


def _in_worker() -> bool:
    data: Any = sys.modules.get("torch.utils.data")
    return data is not None and data.get_worker_info() is not None


def _check_function(source: Callable[..., Any]) -> None:
    """An error for a function that cannot be called with two arguments."""
    name = getattr(source, "__qualname__", type(source).__name__)
    try:
        signature = inspect.signature(source)
    except (TypeError, ValueError):  # of some functions that are written in C
        return
    try:
        signature.bind(0, 1)
    except TypeError:
        raise TypeError(
            f"a Loader calls a function with (index, count), to open part index of count, and "
            f"{name}{signature} takes other arguments: take these two, or pass what it returns"
        ) from None


def _part(source: Callable[[int, int], Any], index: int, count: int) -> Any:
    """What the function returns, and None for a part that has no rows."""
    try:
        part = source(index, count)
    except Exception as error:
        error.add_note(f"in the function for part {index} of {count}; None is one without rows")
        raise
    # Of an empty first part the Loader says that the source is empty; a later one has no rows.
    return None if index > 0 and has_no_columns(part) else part
