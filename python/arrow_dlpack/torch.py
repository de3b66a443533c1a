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
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType
from typing import Any, Generic, Literal, TypeAlias, TypeVar, Unpack, overload

import torch
from torch.utils.data import DataLoader, IterableDataset, default_collate, default_convert

from ._epochs import Epochs
from ._loader import Loader, SharedOptions
from ._wishes import Columns
from .typing import Nulls

__all__ = ["BatchDataset"]


#: Values, and where they are valid.
Masked: TypeAlias = tuple[torch.Tensor, torch.Tensor]
Batch_co = TypeVar("Batch_co", covariant=True)


class DatasetOptions(SharedOptions, total=False):
    """Columns without wishes."""

    columns: Sequence[str] | None
    transform: None


class AnyDatasetOptions(SharedOptions, total=False):
    """Whatever a batch may be."""

    columns: Columns | None
    transform: Callable[[Any], Any] | None


class BatchDataset(IterableDataset[Batch_co], Generic[Batch_co]):  # type: ignore[misc]  # Any to mypy
    """Batches as PyTorch's tensors, for ``DataLoader(dataset, batch_size=None)``.

    source: as in `Loader`, whose options these are, with ``framework="torch"``; or a Loader, alone.
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
    started again for each epoch learn the number from set_epoch, or from ``Loader.torch``.
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
        **options: Unpack[DatasetOptions],
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
        **options: Unpack[DatasetOptions],
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
        **options: Unpack[DatasetOptions],
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
        **options: Unpack[DatasetOptions],
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
        **options: Unpack[DatasetOptions],
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
        **options: Unpack[DatasetOptions],
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
        **options: Unpack[DatasetOptions],
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
        **options: Unpack[DatasetOptions],
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
        **options: Unpack[AnyDatasetOptions],
    ) -> None: ...

    def __init__(self, source: Any, /, **options: Any) -> None:
        super().__init__()
        if "progress" in options or "framework" in options:
            wrong = "progress" if "progress" in options else "framework"
            raise TypeError(f"BatchDataset got an unexpected keyword argument {wrong!r}")
        if isinstance(source, Loader) and options:
            raise TypeError("a Loader has its options: pass it alone")
        is_loader = isinstance(source, Loader)
        self.loader: Loader[Any] = source if is_loader else Loader(source, **options)
        self.loader._check_writable("torch")

    def __iter__(self) -> Iterator[Batch_co]:
        if _is_collated(inspect.currentframe()):
            raise ValueError(
                "the dataset yields batches already, and this DataLoader would put them together "
                "once more: pass batch_size=None to DataLoader, or use Loader.torch(); on purpose, "
                "pass a collate_fn of your own"
            )
        return self.loader._iterate(self.loader._framework or "torch")

    def __len__(self) -> int:
        return len(self.loader)

    def set_epoch(self, epoch: int) -> None:
        """The number of the next epoch, as `Loader.set_epoch`."""
        self.loader.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """Where this process stands, as `Loader.state_dict`; for torchdata's StatefulDataLoader."""
        return self.loader.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """The next epoch goes on there, as `Loader.load_state_dict`."""
        self.loader.load_state_dict(state)


class EpochLoader(DataLoader[Any]):  # type: ignore[misc]  # Any to mypy
    """A DataLoader that counts epochs for workers that start anew."""

    def __iter__(self) -> Iterator[Any]:
        batches: Iterator[Any] = super().__iter__()
        if self.num_workers == 0:
            return batches
        loader = self.dataset.loader
        loader._advance()
        return _counted(loader, batches)


def _counted(loader: Epochs[Any], batches: Iterator[Any]) -> Iterator[Any]:
    """The batches, while the loader knows that workers make them."""
    loader._elsewhere += 1
    try:
        yield from batches
    finally:
        loader._elsewhere -= 1


def data_loader(loader: Epochs[Any], num_workers: int, options: dict[str, Any]) -> EpochLoader:
    """The DataLoader of ``Loader.torch``."""
    if "batch_size" in options or "collate_fn" in options:
        raise TypeError("the Loader makes the batches: give it the batch_size, and a transform")
    if wrong := {"shuffle", "sampler", "batch_sampler", "drop_last"} & set(options):
        raise TypeError(f"the Loader orders the rows: give it shuffle= and drop_last=, not {wrong}")
    if num_workers > 0:
        loader._numbered()  # or each worker would read the words again
        options = {"multiprocessing_context": "spawn"} | options
    dataset = BatchDataset(loader)
    is_torchs = loader._framework is None or loader._framework == "torch"
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
