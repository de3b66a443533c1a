"""Batches for PyTorch's ``DataLoader``: the one module of this package that needs PyTorch.

>>> import pyarrow as pa
>>> from arrow_dlpack.torch import BatchDataset
>>> from torch.utils.data import DataLoader
>>> table = pa.table({"x": [1.0, 2.0, 3.0], "y": [0, 1, 0]})
>>> dataset = BatchDataset(table, batch_size=2, format="matrix", label="y")
>>> for features, label in DataLoader(dataset, batch_size=None):
...     print(features.shape, label)
torch.Size([2, 1]) tensor([0, 1])
torch.Size([1, 1]) tensor([0])
"""

import inspect
import math
import os
import pickle
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from multiprocessing.context import get_spawning_popen
from types import FrameType
from typing import Any, Generic, Literal, TypeAlias, TypeVar, Unpack, overload
from weakref import WeakSet

import torch
from torch.utils.data import (
    DataLoader,
    IterableDataset,
    default_collate,
    default_convert,
    get_worker_info,
)

from . import Loader
from ._frameworks import Framework
from ._loader.columns import Columns
from ._loader.options import AnyDatasetKeywords, DatasetKeywords, takes_options
from ._loader.other_data import OtherDataError
from ._loader.sharding import share_of
from .typing import Nulls

__all__ = ["BatchDataset"]


#: Values, and where they are valid.
Masked: TypeAlias = tuple[torch.Tensor, torch.Tensor]
Batch_co = TypeVar("Batch_co", covariant=True)


class BatchDataset(IterableDataset[Batch_co], Generic[Batch_co]):  # type: ignore[misc]  # Any to mypy
    """Batches as PyTorch's tensors, for ``DataLoader(dataset, batch_size=None)``.

    source: as in `Loader`, whose options these are, less ``framework=``; or a Loader, alone.
    It is opened anew in each epoch, by the process that reads it. For a bar of progress, wrap the
    DataLoader in tqdm.

    Workers divide the batches: together they have each row once. Spawned workers get the source by
    pickle. A reader, which can be read only once, and a source that belongs to a connection cannot
    be pickled: pass a function of (index, count) that opens part index of count. Without workers it
    is called with (0, 1). Where there are fewer files than workers, it returns None for the parts
    without rows; a dataset of no files is taken for that too, except from part 0.

    With physical=True a code of a dictionary stands for the same value in all workers that read the
    same source. Workers or ranks that read different files have different codes; `Categories` gives
    the same codes everywhere.

    Without a seed PyTorch's generator decides the order: each epoch has another one, and
    torch.manual_seed makes a run repeat it; call it before the first epoch if the workers are
    persistent. With a seed the order follows from the number of the epoch too. Workers that are
    started again for each epoch learn the number from set_epoch, or from ``Loader.torch``; a state
    that was loaded is gone on from once, and later epochs have its number, and all rows.
    Persistent ones count epochs themselves, and learn from set_epoch and load_state_dict, called
    between epochs in the process that has the DataLoader, what the next one is.

    Where workers made batches, each has a state, which StatefulDataLoader asks for. In the process
    that has the DataLoader `state_dict` refuses, until set_epoch says which epoch is the next.
    """

    @overload
    def __init__(
        self: "BatchDataset[dict[str, torch.Tensor]]",
        source: Any,
        /,
        *,
        format: Literal["dict"] = ...,
        label: None = ...,
        nulls: Nulls = ...,
        **options: Unpack[DatasetKeywords],
    ) -> None: ...

    @overload
    def __init__(
        self: "BatchDataset[tuple[dict[str, torch.Tensor], torch.Tensor]]",
        source: Any,
        /,
        *,
        format: Literal["dict"] = ...,
        label: str,
        nulls: Nulls = ...,
        **options: Unpack[DatasetKeywords],
    ) -> None: ...

    @overload
    def __init__(
        self: "BatchDataset[torch.Tensor]",
        source: Any,
        /,
        *,
        format: Literal["matrix"],
        label: None = ...,
        nulls: Nulls = ...,
        **options: Unpack[DatasetKeywords],
    ) -> None: ...

    @overload
    def __init__(
        self: "BatchDataset[tuple[torch.Tensor, torch.Tensor]]",
        source: Any,
        /,
        *,
        format: Literal["matrix"],
        label: str,
        nulls: Nulls = ...,
        **options: Unpack[DatasetKeywords],
    ) -> None: ...

    @overload
    def __init__(
        self: "BatchDataset[dict[str, Masked]]",
        source: Any,
        /,
        *,
        format: Literal["dict"] = ...,
        label: None = ...,
        nulls: Literal["mask"],
        **options: Unpack[DatasetKeywords],
    ) -> None: ...

    @overload
    def __init__(
        self: "BatchDataset[tuple[dict[str, Masked], Masked]]",
        source: Any,
        /,
        *,
        format: Literal["dict"] = ...,
        label: str,
        nulls: Literal["mask"],
        **options: Unpack[DatasetKeywords],
    ) -> None: ...

    @overload
    def __init__(
        self: "BatchDataset[Masked]",
        source: Any,
        /,
        *,
        format: Literal["matrix"],
        label: None = ...,
        nulls: Literal["mask"],
        **options: Unpack[DatasetKeywords],
    ) -> None: ...

    @overload
    def __init__(
        self: "BatchDataset[tuple[Masked, Masked]]",
        source: Any,
        /,
        *,
        format: Literal["matrix"],
        label: str,
        nulls: Literal["mask"],
        **options: Unpack[DatasetKeywords],
    ) -> None: ...

    @overload
    def __init__(
        self: "BatchDataset[Any]",
        source: Any,
        /,
        *,
        format: Literal["dict", "matrix"] = ...,
        label: str | Columns | None = ...,
        nulls: Nulls | Literal["mask"] = ...,
        **options: Unpack[AnyDatasetKeywords],
    ) -> None: ...

    @takes_options("framework", "progress")
    def __init__(self, source: Any, /, **options: Any) -> None:
        super().__init__()
        if isinstance(source, Loader) and options:
            raise TypeError("a Loader has its options: pass it alone")
        is_loader = isinstance(source, Loader)
        self.loader: Loader[Any] = source if is_loader else Loader(source, **options)
        self.loader._options.with_copy_for(self._framework)  # for its error
        self._notice = self._given_notice()
        self.loader._listen(self._notice)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state
        self.loader._listen(self._notice)

    @property
    def _framework(self) -> Framework:
        return self.loader._options.framework or "torch"

    def _given_notice(self) -> "_Notice":
        """That of all datasets of the loader: the workers of one of them go on from its state."""
        if self.loader._notice is None:
            self.loader._notice = _Notice()
        notice: _Notice = self.loader._notice
        return notice

    def __iter__(self) -> Iterator[Batch_co]:
        if _is_collated(inspect.currentframe()):
            raise ValueError(
                "the dataset yields batches already, and this DataLoader would put them together "
                "once more: pass batch_size=None to DataLoader, or use Loader.torch(); on purpose, "
                "pass a collate_fn of your own"
            )
        loader, worker, framework = self.loader, get_worker_info(), self._framework
        if worker is None:
            return _Epoch(loader, framework)
        try:
            # Inside of another dataset, it may be iterated more or less often than the DataLoader.
            number = worker.id if worker.dataset is self else None
            self._notice.heed(loader, worker.num_workers, number)
            epoch = loader._progress.upcoming()
            try:
                batches = loader._iterate(framework)
            except OtherDataError:
                self._notice.give_up()
                raise  # by all workers, which keep the state
            except BaseException:
                if worker.num_workers == 1:
                    self._notice.give_up()
                # Or the workers would count differently, and draw other orders from there on.
                loader._advance(epoch)
                self._notice.mark()
                raise
            self._notice.mark()
            return _tried(batches, self._notice.give_up) if worker.num_workers == 1 else batches
        except Exception as error:
            # Here it would end a worker that persists, without a word to the main process.
            return _failing(error)

    def __len__(self) -> int:
        return len(self.loader)

    def set_epoch(self, epoch: int) -> None:
        """The number of the next epoch, as `Loader.set_epoch`; for workers that persist too."""
        self.loader.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """Where this process stands, as `Loader.state_dict`; for torchdata's StatefulDataLoader."""
        return self.loader._state(of_part=get_worker_info() is not None)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """The next epoch goes on there, as `Loader.load_state_dict`; in persistent workers too."""
        self.loader.load_state_dict(state)


#: Bytes of what may be told, after compression: a state with the names of some 10,000 columns.
_LIMIT = 2**17
#: DataLoaders of one loader, at most, whose workers agree on what they were told.
_GROUPS = 64
#: Bytes before that: five integers, and of each DataLoader four more.
_HEADER = 8 * (5 + 4 * _GROUPS)


class _Notice:
    """What `set_epoch` and `load_state_dict` tell workers that run already.

    Persistent workers keep the dataset that they were started with, and PyTorch tells them no more
    than that an epoch begins. So a notice lies in shared memory, which forked and spawned workers
    have from their start. They look at it where an epoch begins, except for their first one: they
    started with all that was to be known, and what came since is meant for the next. Each of them
    leaves a mark there of the notice after which it has begun an epoch, which the main process
    cannot know otherwise.

    PyTorch does not wait until all workers have begun. When the main process has a batch or an
    error of one of them, and tells the next epoch, others may be about to begin the last one. So
    the first worker of a DataLoader to begin an epoch writes down which notice that was, and the
    others heed no later one.

    One epoch goes on from a state. The dataset that later workers are started with has it too, as
    the main process does not see when they take it. So the first worker to do so writes down of
    which DataLoader it is, and those of others begin the epoch of the state at its start.

    Each process writes to its own memory, or ranks that are started with one dataset would
    overwrite each other's notices. So what a process is started with has both: the memory of who
    started it, to read if it is a worker, and its own, for workers that it may have.
    """

    def __init__(
        self, theirs: torch.Tensor | None = None, number: int = 0, started: int = 0
    ) -> None:
        self._theirs = theirs
        #: Of the last notice: that was written here, or that this worker has heeded.
        self._number = number
        #: Workers that have been started with this: a DataLoader starts its own one by one.
        self._started = started
        self._told: dict[str, tuple[float, Any]] = {}
        #: Epochs that this worker was asked for.
        self._asked = 0
        #: Whether the last state was loaded by this worker, for itself alone.
        self._has_own_state = False
        #: Whether the DataLoader counts the epochs of workers.
        self.is_counted = False
        self._allocate()
        _NOTICES.add(self)

    def __reduce__(self) -> tuple[Any, ...]:
        self.start()
        is_started_with = get_spawning_popen() is not None
        return _Notice, (self._ours if is_started_with else None, self._number, self._started)

    def tell(self, **news: Any) -> None:
        """``state=`` for `load_state_dict`, or None for no state any more; ``epoch=`` after it."""
        # StatefulDataLoader loads a state in each worker, for itself.
        self._has_own_state |= "state" in news and get_worker_info() is not None
        if get_worker_info() is None and not self.is_counted:
            if "state" in news:
                self._offer()
            told = {} if "state" in news else self._told  # it says which epoch is next
            self._write(told | {name: (self._number + 1, what) for name, what in news.items()})

    def count(self, **news: Any) -> None:
        """Tells what the next epoch is. Each is told so, and workers repeat none that was not."""
        self.is_counted = True
        self._offer()
        self._write({name: (math.inf, what) for name, what in news.items()})

    def _write(self, told: dict[str, tuple[float, Any]]) -> None:
        self.own()
        self._number += 1
        self._told = told
        text = zlib.compress(pickle.dumps((self._number, told)))
        if len(text) > _LIMIT:
            too_long = {"state": (told["state"][0], len(text))}
            text = zlib.compress(pickle.dumps((self._number, told | too_long)))
        # Two places by turns, and the number last: a worker that reads meanwhile gets the old one.
        header, place = self._header(self._ours), self._number % 2
        start = _HEADER + place * _LIMIT
        self._ours[start : start + len(text)] = torch.frombuffer(bytearray(text), dtype=torch.uint8)
        header[1 + place] = len(text)
        header[0] = self._number

    def mark(self) -> None:
        """This worker has begun an epoch."""
        if (memory := self._of_starter()) is not None:
            header = self._header(memory)
            header[3] = max(int(header[3]), self._number + 1)

    def forget(self) -> None:
        """This process has begun an epoch, or counts those of its workers."""
        if get_worker_info() is None and self._pid == os.getpid():
            self._header(self._ours)[3] = 0

    @property
    def is_elsewhere(self) -> bool:
        """Whether workers of this process have begun an epoch since it last told them one."""
        if self.is_counted or get_worker_info() is not None or self._pid != os.getpid():
            return False
        return int(self._header(self._ours)[3]) == self._number + 1

    @property
    def is_resumed(self) -> bool:
        """Whether workers of this process have gone on from the state that it loaded last."""
        if self.is_counted or get_worker_info() is not None or self._pid != os.getpid():
            return False
        return bool(self._header(self._ours)[4])

    def heed(self, loader: Loader[Any], workers: int, worker: int | None) -> None:
        """Does in this worker what it was told since its last epoch; what cannot be done, again.

        worker: its number, if it is iterated where the epochs of the DataLoader begin.
        """
        self._asked += 1
        is_start = self._asked == 1 and worker is not None
        number, told = (self._number, {}) if is_start else self._read(worker)
        for name, (since, what) in told.items():
            if since <= self._number:
                continue
            if name == "epoch":
                loader.set_epoch(what)
            elif isinstance(what, int):
                raise ValueError(
                    f"the state has {what} bytes after compression, and persistent workers that "
                    f"run can be told {_LIMIT}: load it before the first epoch of a new DataLoader"
                )
            else:
                loader._progress.drop()
                if what is not None:
                    loader.load_state_dict(what)
                self._has_own_state = False
        is_handed = loader._progress.loaded is not None and not self._has_own_state
        if is_handed and self._is_taken():
            loader._progress.restart()
        if is_handed or number > self._number:
            # All of them refuse a state of one of them, or the others would go on without it.
            loader._progress.check_workers(*loader._ranks(), workers)
        self._number = number
        loader._progress.check_part(share_of(*loader._ranks()))
        if is_handed:
            self._take()

    def _offer(self) -> None:
        """The state that is loaded now is one from which no workers have gone on."""
        self.own()
        self._header(self._ours)[4] = 0

    def _is_taken(self) -> bool:
        """Whether workers of another DataLoader go on from the state, or of another epoch's."""
        memory = self._of_starter()
        return memory is not None and self._header(memory)[4] not in (0, self._first())

    def _take(self) -> None:
        """The workers of this DataLoader go on from the state, if no others do."""
        if (memory := self._of_starter()) is not None and not self._is_taken():
            self._header(memory)[4] = self._first()

    def give_up(self) -> None:
        """They do not, after all: the next epoch tries again."""
        if (memory := self._of_starter()) is not None and not self._is_taken():
            self._header(memory)[4] = 0

    def start(self) -> None:
        """Before this process starts another one, which may be a worker."""
        self.own()
        self._started += 1

    def own(self) -> None:
        """Before this process writes, or has workers: memory that it was forked with is another's.

        Not in a worker, which reads it.
        """
        if self._pid != os.getpid() and get_worker_info() is None:
            self._allocate()

    def _allocate(self) -> None:
        self._pid = os.getpid()
        self._ours = torch.zeros(_HEADER + 2 * _LIMIT, dtype=torch.uint8, device="cpu")
        with suppress(RuntimeError):
            self._ours.share_memory_()  # without shared memory there are no workers either

    def _of_starter(self) -> torch.Tensor | None:
        """In a worker, the memory of the process that started it."""
        return self._theirs if self._pid == os.getpid() else self._ours

    @staticmethod
    def _header(memory: torch.Tensor) -> torch.Tensor:
        """The number of the last notice, the sizes of both, the mark of the workers, the DataLoader
        whose workers took the state, and cells.
        """
        return memory[:_HEADER].view(torch.int64)

    def _read(self, worker: int | None) -> tuple[int, dict[str, tuple[float, Any]]]:
        memory = self._of_starter()
        if memory is None:
            return self._number, {}
        header = self._header(memory)
        number = int(header[0]) if worker is None else self._agreed(header)
        if number < max(self._number, 1):
            return self._number, {}
        start = _HEADER + number % 2 * _LIMIT
        text = bytes(memory[start : start + int(header[1 + number % 2])].tolist())
        try:
            found, told = pickle.loads(zlib.decompress(text))
        except zlib.error:  # it is being overwritten
            found = None
        if found == number:
            return number, told
        if number == self._number:
            return number, {}
        raise RuntimeError(
            "persistent workers were told twice or more while this worker began an epoch: call "
            "set_epoch and load_state_dict between epochs"
        )

    def _first(self) -> int:
        """Tells the DataLoader of this worker: the number of its first one, of all started ones."""
        return self._started - int(get_worker_info().id)

    def _agreed(self, header: torch.Tensor) -> int:
        """The last notice when the first worker of the DataLoader began this epoch."""
        first = self._first()
        # By turns: one worker may begin the next epoch while another has yet to begin this one.
        at = 5 + first % _GROUPS * 4 + self._asked % 2 * 2
        epoch = (first << 32) + self._asked
        if int(header[at]) != epoch:
            header[at + 1] = header[0]
            header[at] = epoch  # last: a worker that reads it finds the number
        return int(header[at + 1])


_NOTICES: WeakSet[_Notice] = WeakSet()


def _before_fork() -> None:
    for notice in list(_NOTICES):
        notice.start()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork)


def _failing(error: Exception) -> Iterator[Any]:
    yield from ()
    raise error


class _Epoch(Iterator[Any]):
    """An epoch that begins, and is counted, where its first batch is asked for: where it is handed
    a state of an epoch's end, a StatefulDataLoader makes one for nothing.
    """

    def __init__(self, loader: Loader[Any], framework: Framework) -> None:
        self._loader, self._framework = loader, framework
        self._batches: Iterator[Any] | None = None

    def __next__(self) -> Any:
        if self._batches is None:
            self._batches = self._loader._iterate(self._framework)
        return next(self._batches)

    def close(self) -> None:
        """Ends it: there are no more batches."""
        close = getattr(self._batches, "close", None)
        self._batches = iter(())
        if close is not None:
            close()


def _tried(batches: Iterator[Any], undo: Callable[[], None]) -> Iterator[Any]:
    """The batches; undo: what is done if an error comes in place of the first of them."""
    has_begun = False
    try:
        for batch in batches:
            has_begun = True
            yield batch
    except Exception:
        if not has_begun:
            undo()
        raise


class _EpochDataset(BatchDataset[Any]):
    """What an `EpochLoader` reads, which tells its workers each epoch."""

    def _given_notice(self) -> _Notice:
        notice = _Notice()
        notice.is_counted = True
        return notice


class EpochLoader(DataLoader[Any]):  # type: ignore[misc]  # Any to mypy
    """A DataLoader that counts epochs for its workers."""

    def __iter__(self) -> Iterator[Any]:
        if self.num_workers == 0:
            return super().__iter__()  # type: ignore[no-any-return]
        loader = self.dataset.loader
        loader._settle()
        loader._progress.check_workers(*loader._ranks(), self.num_workers)
        epoch = loader._progress.upcoming()
        # Each time: other DataLoaders of this loader count its epochs too.
        self.dataset._notice.count(state=loader._progress.loaded, epoch=epoch)
        batches: Iterator[Any] = super().__iter__()
        state = loader._progress.loaded
        loader._advance(epoch)
        loader._progress.leave(epoch)  # also where no batch is asked for
        return _counted(loader, batches, state, epoch)


def _counted(loader: Loader[Any], batches: Iterator[Any], state: Any, epoch: int) -> Iterator[Any]:
    """The batches, while the loader knows that workers make them.

    state: from which they go on. The loader takes it again if none of them comes.
    """
    loader._elsewhere += 1
    try:
        yield from _tried(batches, lambda: loader._progress.take_back(state))
    except Exception:
        loader._progress.end(epoch)
        raise
    else:
        loader._progress.end(epoch)
    finally:
        loader._elsewhere -= 1


def data_loader(loader: Loader[Any], num_workers: int, options: dict[str, Any]) -> EpochLoader:
    """The DataLoader of ``Loader.torch``."""
    if not hasattr(num_workers, "__index__"):
        raise TypeError(f"num_workers must be a number of processes, got {num_workers!r}")
    if "batch_size" in options or "collate_fn" in options:
        raise TypeError("the Loader makes the batches: give it the batch_size, and a transform")
    if wrong := {"shuffle", "sampler", "batch_sampler", "drop_last"} & set(options):
        raise TypeError(f"the Loader orders the rows: give it shuffle= and drop_last=, not {wrong}")
    if num_workers > 0:
        loader._with_words()  # or each worker would read the words again
        options = {"multiprocessing_context": "spawn"} | options
    dataset = _EpochDataset(loader)
    is_torchs = loader._options.framework is None or loader._options.framework == "torch"
    options |= {"batch_size": None, "collate_fn": _converted if is_torchs else _as_made}
    return EpochLoader(dataset, num_workers=num_workers, **options)


def _converted(batch: Any) -> Any:
    """What DataLoader makes of a batch by default, whose pairs stay tuples and become no lists."""
    if type(batch) is tuple:
        return tuple(map(_converted, batch))
    if type(batch) is dict:
        return {name: _converted(part) for name, part in batch.items()}
    return default_convert(batch)


def _as_made(batch: Any) -> Any:
    return batch


def _is_collated(frame: FrameType | None) -> bool:
    """Whether the iterator is for a DataLoader that puts batches together, in its own way.

    PyTorch does not pass it to the dataset, so this reads local variables of PyTorch's calling
    function. If their names differ, nothing is found, and nothing is refused.
    """
    caller = frame and frame.f_back
    if caller is None or not caller.f_globals.get("__name__", "").startswith("torch.utils.data."):
        return False
    names = caller.f_locals
    return names.get("auto_collation") is True and names.get("collate_fn") is default_collate
