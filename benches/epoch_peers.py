"""An epoch of one Parquet file by other loaders, beside ours: the table of docs/guides/training.md.

    python benches/epoch_peers.py [word ...]    # only the contenders with one of these words

Not a part of `make bench`: it takes minutes, and needs the groups test, heavy and engines. Every
contender makes dicts of PyTorch's tensors, 1,024 rows at a time, of the file of `epochs.py`. Lance
reads a copy of it in its format. The quick ones run three times, of which the least counts.
"""

import os

os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled", "USE_TF": "0"}

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import epochs
import pyarrow.dataset as ds
import torch
from arrow_dlpack import Loader
from torch.utils.data import DataLoader, IterableDataset

BATCH, TIMES, QUICK = 1024, 3, 5.0  # seconds
Batches = Iterable[dict[str, torch.Tensor]]


class ByHand(IterableDataset):
    """Pyarrow's batches of a scan, column by column."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __iter__(self) -> Iterator[dict[str, torch.Tensor]]:
        for batch in ds.dataset(self.file).to_batches(batch_size=BATCH):
            yield {name: torch.tensor(batch[name].to_numpy()) for name in batch.schema.names}


def ours(file: Path) -> Batches:
    return Loader(file, batch_size=BATCH, framework="torch")


def ours_shared(file: Path) -> Batches:
    return Loader(file, batch_size=BATCH, framework="torch", writable=False)


def data_loader(file: Path) -> Batches:
    return DataLoader(ByHand(file), batch_size=None)


def stateful(file: Path) -> Batches:
    from torchdata.stateful_dataloader import StatefulDataLoader  # noqa: PLC0415

    return StatefulDataLoader(ByHand(file), batch_size=None)


def hugging_face(file: Path) -> Batches:
    import datasets  # noqa: PLC0415

    rows = datasets.IterableDataset.from_parquet(str(file))
    return rows.with_format("torch").iter(batch_size=BATCH)


def of_lance(file: Path) -> Batches:
    from lance.torch.data import LanceDataset  # noqa: PLC0415

    return LanceDataset(str(file.with_suffix(".lance")), batch_size=BATCH)


def of_ray(file: Path) -> Batches:
    import ray.data  # noqa: PLC0415

    return ray.data.read_parquet(str(file)).iter_torch_batches(batch_size=BATCH)


def prepared(names: Iterable[str], file: Path) -> None:
    """What a user does once, which is not timed."""
    if "Lance" in names:
        import lance  # noqa: PLC0415

        reader = ds.dataset(file).scanner().to_reader()
        lance.write_dataset(reader, str(file.with_suffix(".lance")))
    if "Ray Data" in names:
        import ray.data  # noqa: PLC0415

        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
        ray.data.DataContext.get_current().enable_progress_bars = False
        ray.data.read_parquet(str(file)).take(1)  # starts its workers


def rows_of(batches: Batches) -> int:
    return sum(len(next(iter(batch.values()))) for batch in batches)


CONTENDERS: dict[str, Callable[[Path], Any]] = {
    "pyarrow's scan": epochs.scan,
    "Loader": ours,
    "Loader, writable=False": ours_shared,
    "DataLoader, by hand": data_loader,
    "StatefulDataLoader, by hand": stateful,
    "Lance": of_lance,
    "HF datasets": hugging_face,
    "Ray Data": of_ray,
}


def seconds(contenders: dict[str, Callable[[Path], Any]], file: Path) -> dict[str, float]:
    """The least of some rounds, in which they take turns; a slow one runs once."""
    least: dict[str, float] = {}
    for _ in range(TIMES):
        for name, contender in contenders.items():
            if least.get(name, 0) > QUICK:
                continue
            start = time.perf_counter()
            batches = contender(file)
            rows = batches if isinstance(batches, int) else rows_of(batches)
            taken = time.perf_counter() - start
            assert rows == epochs.ROWS, (name, rows)
            least[name] = min(taken, least.get(name, taken))
    return least


def main(words: list[str]) -> None:
    torch.set_num_threads(1)
    made = epochs.numbers()
    file = made["file"]
    chosen = {
        name: contender
        for name, contender in CONTENDERS.items()
        if not words or name == "Loader" or any(word in name for word in words)
    }
    prepared(chosen, file)
    print("| loader | an epoch | beside Loader |\n| --- | --- | --- |")
    times = seconds(chosen, file)
    for name, taken in times.items():
        print(f"| {name} | {taken:.2f} s | {taken / times['Loader']:.1f} × |")


if __name__ == "__main__":
    main(sys.argv[1:])
