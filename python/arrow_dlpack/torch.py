"""``iter_batches`` for PyTorch's ``DataLoader``: the one module of this package that needs PyTorch.

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
from torch.utils.data import IterableDataset, default_collate, get_worker_info

from ._batches import Options, has_no_columns, iter_batches, seed_of
from ._core import Tensor
from .typing import Dtype, Nulls

__all__ = ["BatchDataset"]


#: Values, and where they are valid.
Masked: TypeAlias = tuple[torch.Tensor, torch.Tensor]
Batch_co = TypeVar("Batch_co", covariant=True)


class DatasetOptions(Options, total=False):
    """Of BatchDataset alone."""

    writable: bool


class BatchDataset(IterableDataset[Batch_co], Generic[Batch_co]):  # type: ignore[misc]  # Any to mypy
    """Batches as PyTorch's tensors, for ``DataLoader(dataset, batch_size=None)``.

    source: as in iter_batches; it is opened anew in each epoch, by the process that reads it. Or a
    function of (index, count) that returns one of so many parts, some of the files say; it is
    called with (0, 1) where there are no workers. A part without rows, because there are fewer
    files than workers say, is None, or a dataset of no files if it is not the first.
    The options that are not below are those of iter_batches. For a bar of progress, wrap the
    DataLoader in tqdm.

    Without such a function each of several workers reads the whole source, and makes tensors of
    every count-th batch; together they have each row once. Spawned workers are handed the source
    by pickle. What can be read only once, or belongs to a connection, is for a function to open.

    Codes of dictionaries stand for the same values in all workers that read the same source. Who
    reads other files than the others, a part or a rank, has codes of their own: number the values
    before, with polars' Enum, DuckDB's ENUM or pyarrow.compute.index_in.

    With a seed all epochs have the same order. Without one shuffling goes by PyTorch's own: each
    epoch has another order, and torch.manual_seed makes it the same again, with
    persistent_workers=True before their first epoch. With shard=(rank, world_size) each process of
    a distributed training has its part, and its workers theirs of that.

    writable: tensors have memory of their own, so that to write to them leaves the source as it is:
    what would share the source's memory is copied, and nothing is copied twice. False shares, and
    is for those who write to no batch: PyTorch knows of no read-only memory.
    copy: as in iter_batches, with writable=False.
    """

    @overload
    def __init__(
        self: "BatchDataset[dict[str, torch.Tensor]]",
        source: Any | Callable[[int, int], Any],
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
        source: Any | Callable[[int, int], Any],
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
        source: Any | Callable[[int, int], Any],
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
        source: Any | Callable[[int, int], Any],
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
        source: Any | Callable[[int, int], Any],
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
        source: Any | Callable[[int, int], Any],
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
        source: Any | Callable[[int, int], Any],
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
        source: Any | Callable[[int, int], Any],
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
        source: Any | Callable[[int, int], Any],
        /,
        *,
        format: Literal["dict", "matrix"] = ...,
        label: str | None = ...,
        nulls: Nulls | Literal["mask"] = ...,
        **options: Unpack[DatasetOptions],
    ) -> None: ...

    def __init__(
        self,
        source: Any | Callable[[int, int], Any],
        /,
        *,
        batch_size: int | None = None,
        columns: Sequence[str] | None = None,
        dtype: Dtype | None = None,
        format: Literal["dict", "matrix"] = "dict",
        label: str | None = None,
        nulls: Nulls | Literal["mask"] = "error",
        drop_last: bool = False,
        local_shuffle_buffer_size: int | None = None,
        seed: int | None = None,
        prefetch: int = 0,
        physical: bool = False,
        shard: tuple[int, int] = (0, 1),
        copy: bool | None = None,
        writable: bool = True,
    ) -> None:
        super().__init__()
        if writable and copy is not None and not copy:
            raise TypeError("copy=False shares the source's memory: say writable=False as well")
        self.source = source
        self._was_read = False
        self.options: dict[str, Any] = {
            "batch_size": batch_size,
            "columns": columns,
            "dtype": dtype,
            "format": format,
            "label": label,
            "nulls": nulls,
            "drop_last": drop_last,
            "local_shuffle_buffer_size": local_shuffle_buffer_size,
            "seed": seed,
            "prefetch": prefetch,
            "physical": physical,
            "shard": shard,
            "copy": True if writable else copy,
        }

    def __iter__(self) -> Iterator[Batch_co]:
        if _is_collated(inspect.currentframe()):
            raise ValueError(
                "the batches are made already, and this DataLoader would make batches of batches, "
                "(1, 1024, 2) of (1024, 2): pass it batch_size=None, or a collate_fn of your own"
            )
        return self._batches()

    def _batches(self) -> Iterator[Any]:
        source: Any = self.source
        worker, options = get_worker_info(), dict(self.options)
        index, count = options.pop("shard")
        if worker is not None:
            index, count = index * worker.num_workers + worker.id, count * worker.num_workers
        if options["local_shuffle_buffer_size"] is not None and options["seed"] is None:
            # PyTorch seeds each worker when it starts, and one that persists draws on from there:
            # worker.seed is the same in all its epochs. The default device may be another one.
            options["seed"] = int(torch.randint(2**62, (), device="cpu"))
        if not callable(source):
            options["shard"] = index, count
        else:
            source = _part(source, index, count)
            if source is None:
                return
            if options["seed"] is not None:
                options["seed"] = seed_of(options["seed"], index)
        if source is self.source and _is_read_once(source):
            if worker is not None or self._was_read:
                raise TypeError(
                    "a reader is read once, by the process that opened it: give BatchDataset a "
                    "dataset or a table, or a function of (index, count) that opens a reader"
                )
            self._was_read = True
        # Dropping this generator drops the batches, and does not wait for ever.
        for batch in iter_batches(source, **options):
            yield as_torch(batch)


def _part(source: Callable[[int, int], Any], index: int, count: int) -> Any:
    """What the function returns, and None for a part that has no rows."""
    try:
        part = source(index, count)
    except Exception as error:
        error.add_note(f"in the function for part {index} of {count}; None is one without rows")
        raise
    # If the first part has no files, there are none at all, and this is no way to tell that.
    return None if index > 0 and has_no_columns(part) else part


def _is_read_once(source: Any) -> bool:
    return any(hasattr(type(source), name) for name in ("__next__", "read_next_batch", "get_next"))


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


def as_torch(batch: Any) -> Any:
    """The same structure of PyTorch's tensors."""
    if isinstance(batch, Tensor):
        return torch.from_dlpack(batch)
    if isinstance(batch, Mapping):
        return {name: as_torch(part) for name, part in batch.items()}
    return tuple(as_torch(part) for part in batch)
