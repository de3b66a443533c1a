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
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch.utils.data import IterableDataset, get_worker_info

from ._batches import iter_batches, seed_of
from ._core import Tensor

__all__ = ["BatchDataset"]


class BatchDataset(IterableDataset[Any]):  # type: ignore[misc]  # it is Any to mypy
    """Batches as PyTorch's tensors, for ``DataLoader(dataset, batch_size=None)``.

    source: as in iter_batches; it is opened anew in each epoch, by the process that reads it. Or a
    function of (index, count) that returns one of so many parts, some of the files say; it is
    called with (0, 1) where there are no workers.
    options: those of iter_batches, but for progress.

    Without such a function each of several workers reads the whole source, and makes tensors of
    every count-th batch; together they have each row once. Spawned workers are handed the source
    by pickle. What can be read only once, or belongs to a connection, is for a function to open.

    Shuffling without a seed goes by PyTorch's own: each epoch has another order, and
    torch.manual_seed makes it the same again, with persistent_workers=True before their first
    epoch. With shard=(rank, world_size) each process of a distributed training has its part, and
    its workers theirs of that.

    Tensors share Arrow's memory where those of iter_batches do, and PyTorch knows of no read-only
    memory: do not write to them. Those from a worker are copies.
    """

    def __init__(self, source: Any | Callable[[int, int], Any], /, **options: Any) -> None:
        super().__init__()
        inspect.signature(iter_batches).bind(source, **options)
        if "progress" in options:
            raise TypeError("progress is for iter_batches: wrap the DataLoader in tqdm")
        self.source = source
        self.options = options

    def __iter__(self) -> Iterator[Any]:
        worker, source, options = get_worker_info(), self.source, dict(self.options)
        index, count = options.pop("shard", (0, 1))
        if worker is not None:
            index, count = index * worker.num_workers + worker.id, count * worker.num_workers
        if options.get("local_shuffle_buffer_size") is not None and options.get("seed") is None:
            # PyTorch seeds each worker when it starts, and one that persists draws on from there:
            # worker.seed is the same in all its epochs. The default device may be another one.
            options["seed"] = int(torch.randint(2**62, (), device="cpu"))
        if not callable(source):
            options["shard"] = index, count
        else:
            source = source(index, count)
            if options.get("seed") is not None:
                options["seed"] = seed_of(options["seed"], index)
        if worker is not None and hasattr(source, "read_next_batch") and source is self.source:
            raise TypeError(
                "a reader is read once, by the process that opened it: give BatchDataset a "
                "dataset, or a function of (index, count) that opens a reader"
            )
        with iter_batches(source, **options) as batches:
            for batch in batches:
                yield as_torch(batch)


def as_torch(batch: Any) -> Any:
    """The same structure of PyTorch's tensors."""
    if isinstance(batch, Tensor):
        return torch.from_dlpack(batch)
    if isinstance(batch, Mapping):
        return {name: as_torch(part) for name, part in batch.items()}
    return tuple(as_torch(part) for part in batch)
