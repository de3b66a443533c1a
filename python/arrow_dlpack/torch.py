"""``iter_batches`` for PyTorch's ``DataLoader``. This module needs PyTorch, the rest of the package does not.

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

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import torch
from torch.utils.data import IterableDataset, get_worker_info

from ._batches import open_batches
from ._core import Tensor
from .typing import Dtype, Nulls

__all__ = ["BatchDataset"]


class BatchDataset(IterableDataset[Any]):
    """Batches of ``iter_batches`` as PyTorch's tensors, for ``DataLoader(dataset, batch_size=None)``.

    source: as in iter_batches, opened anew in each epoch, in the process that reads it. Or a function that
    takes (worker, workers) and returns that worker's part, such as some of the files: it is told (0, 1) where
    there are no workers.

    Without such a function each of several workers reads the whole source, and converts every so manieth
    batch of it; together they have each row once. With workers that are spawned, the source is pickled; what
    can be read only once, or belongs to a connection, is to be opened by a function.

    The other options are those of iter_batches. Shuffling without a seed goes by PyTorch's: torch.manual_seed
    makes it the same again, and each epoch has another order.

    Tensors share Arrow's memory where iter_batches does, and PyTorch knows nothing of read-only memory: do not
    write to them, unless they came from a worker, which sends a copy.
    """

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
    ) -> None:
        super().__init__()
        self.source = source
        self.seed = seed
        self.options = {
            "batch_size": batch_size,
            "columns": columns,
            "dtype": dtype,
            "format": format,
            "label": label,
            "nulls": nulls,
            "drop_last": drop_last,
            "local_shuffle_buffer_size": local_shuffle_buffer_size,
            "prefetch": prefetch,
            "physical": physical,
        }

    def __iter__(self) -> Iterator[Any]:
        worker = get_worker_info()
        shard = (0, 1) if worker is None else (worker.id, worker.num_workers)
        source, seed = self.source, self.seed
        if self.options["local_shuffle_buffer_size"] is None:
            pass
        elif seed is None:
            # A worker's seed is that of the epoch and its number.
            seed = int(torch.empty((), dtype=torch.int64).random_()) if worker is None else worker.seed
        elif worker is not None:
            seed = random.Random(f"{seed}, worker {worker.id}").getrandbits(64)
        if callable(source):
            source, shard = source(*shard), (0, 1)
        elif worker is not None and hasattr(source, "read_next_batch"):
            raise TypeError(
                "a reader is read once, in the process that opened it: give BatchDataset a dataset, or a "
                "function of (worker, workers) that opens one"
            )
        with open_batches(source, seed=seed, shard=shard, progress=False, **self.options) as batches:
            for batch in batches:
                yield as_torch(batch)


def as_torch(batch: Any) -> Any:
    """The same structure of PyTorch's tensors."""
    if isinstance(batch, Tensor):
        return torch.from_dlpack(batch)
    if isinstance(batch, Mapping):
        return {name: as_torch(part) for name, part in batch.items()}
    return tuple(as_torch(part) for part in batch)
