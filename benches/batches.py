"""The cases of `iter_batches`: a table, and a Parquet file, as a training loop wants them.

Every contender makes the same of it: float32 tensors of PyTorch, features and label. What is timed
is a loop over all batches that looks at nothing but their shapes.
"""

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import arrow_dlpack
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import torch
from arrow_dlpack.torch import BatchDataset
from cases import CASES, Case, Made
from torch.utils.data import DataLoader, Dataset

ROWS = 200_000
COLUMNS = 16
CHUNK = 30_000
FEATURES = [f"x{index}" for index in range(COLUMNS)]
BATCH = 1024

Batches = Iterable[tuple[Any, torch.Tensor]]


def rows_of(batches: Batches) -> int:
    return sum(len(label) for _, label in batches)


def ours(source: Any, **options: Any) -> Batches:
    options = {"batch_size": BATCH, "columns": FEATURES, "label": "y"} | options
    for features, label in arrow_dlpack.iter_batches(source, **options):
        yield torches(features), torch.from_dlpack(label)


def torches(features: Any) -> Any:
    if isinstance(features, dict):
        return {name: torch.from_dlpack(column) for name, column in features.items()}
    return torch.from_dlpack(features)


def loader(source: Any, **options: Any) -> Batches:
    options = {"batch_size": BATCH, "columns": FEATURES, "label": "y"} | options
    return DataLoader(BatchDataset(source, **options), batch_size=None)


# By hand, as one does. At the edge of a chunk these give a batch of fewer rows, which spares them
# a copy.


def stacked(batches: Iterable[pa.RecordBatch]) -> Batches:
    for batch in batches:
        columns = [batch[name].to_numpy() for name in FEATURES]
        yield torch.from_numpy(np.column_stack(columns)), torch.from_numpy(batch["y"].to_numpy())


def tensors(batches: Iterable[pa.RecordBatch]) -> Batches:
    for batch in batches:
        features = batch.select(FEATURES).to_tensor(row_major=True).to_numpy()
        yield torch.from_numpy(features), torch.from_numpy(batch["y"].to_numpy())


def columns(batches: Iterable[pa.RecordBatch]) -> Batches:
    for batch in batches:
        features = {name: torch.from_numpy(batch[name].to_numpy()) for name in FEATURES}
        yield features, torch.from_numpy(batch["y"].to_numpy())


def shared(batches: Iterable[pa.RecordBatch]) -> Batches:
    for batch in batches:
        yield (
            {name: torch.from_dlpack(batch[name]) for name in FEATURES},
            torch.from_dlpack(batch["y"]),
        )


def frames(frame: pl.DataFrame) -> Iterator[pl.DataFrame]:
    return frame.iter_slices(BATCH)


def polars(frames: Iterable[pl.DataFrame]) -> Batches:
    for frame in frames:
        yield frame.select(FEATURES).to_torch(), frame["y"].to_torch()


def polars_dict(frames: Iterable[pl.DataFrame]) -> Batches:
    for frame in frames:
        features = frame.to_torch("dict")
        yield features, features.pop("y")


class Rows(Dataset):
    """A row at a time, as the first page of every tutorial has it."""

    def __init__(self, table: pa.Table) -> None:
        self.columns = [table[name].to_numpy() for name in FEATURES]
        self.labels = table["y"].to_numpy()

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, row: int) -> tuple[torch.Tensor, int]:
        return torch.tensor([column[row] for column in self.columns]), self.labels[row]


def row_loop(rows: Rows) -> Batches:
    return DataLoader(rows, batch_size=BATCH)


def table() -> pa.Table:
    random = np.random.default_rng(1)
    chunks = [
        pa.table(
            {name: random.random(rows, dtype="float32") for name in FEATURES}
            | {"y": random.integers(0, 2, rows)}
        )
        for rows in [CHUNK] * (ROWS // CHUNK) + [ROWS % CHUNK]
    ]
    return pa.concat_tables(chunks)


NAMES = {
    name: value
    for name, value in globals().items()
    if callable(value) and getattr(value, "__module__", None) == __name__
}


def in_memory() -> dict[str, Any]:
    whole = table()
    return {
        **NAMES,
        "table": whole,
        "frame": pl.from_arrow(whole),
        "rows": Rows(whole),
        "BATCH": BATCH,
    }


def of_a_table_as_matrices() -> Made:
    return in_memory(), {
        "ours": "rows_of(ours(table, format='matrix'))",
        "ours, read ahead": "rows_of(ours(table, format='matrix', prefetch=4))",
        "ours, DataLoader": "rows_of(loader(table, format='matrix'))",
        "ours, DataLoader, shares": "rows_of(loader(table, format='matrix', writable=False))",
        "ours, shuffled": "rows_of(ours(table, format='matrix', shuffle=20_000))",
        "pyarrow, column_stack": "rows_of(stacked(table.to_batches(BATCH)))",
        "pyarrow, to_tensor": "rows_of(tensors(table.to_batches(BATCH)))",
        "polars, to_torch": "rows_of(polars(frames(frame)))",
        "row loop": "rows_of(row_loop(rows))",
    }


def of_a_table_as_dicts() -> Made:
    return in_memory(), {
        "ours": "rows_of(ours(table))",
        "ours, read ahead": "rows_of(ours(table, prefetch=4))",
        "ours, DataLoader": "rows_of(loader(table))",
        "ours, DataLoader, shares": "rows_of(loader(table, writable=False))",
        "pyarrow, to_numpy": "rows_of(columns(table.to_batches(BATCH)))",
        "pyarrow, from_dlpack": "rows_of(shared(table.to_batches(BATCH)))",
        "polars, to_torch": "rows_of(polars_dict(frames(frame)))",
        "row loop": "rows_of(row_loop(rows))",
    }


def of_a_file() -> Made:
    folder = tempfile.TemporaryDirectory()
    file = Path(folder.name) / "numbers.parquet"
    pq.write_table(table(), file, row_group_size=CHUNK)
    return {**NAMES, "folder": folder, "file": file, "ds": ds, "pl": pl, "BATCH": BATCH}, {
        "ours": "rows_of(ours(ds.dataset(file), format='matrix'))",
        "ours, read ahead": "rows_of(ours(ds.dataset(file), format='matrix', prefetch=4))",
        "pyarrow, column_stack": "rows_of(stacked(ds.dataset(file).to_batches(batch_size=BATCH)))",
        "pyarrow, to_tensor": "rows_of(tensors(ds.dataset(file).to_batches(batch_size=BATCH)))",
        "polars, to_torch": "rows_of(polars(frames(pl.read_parquet(file))))",
    }


HAND = {"pyarrow, column_stack": 1.0, "pyarrow, to_tensor": 1.0, "polars, to_torch": 1.0}
DICTS = {"pyarrow, to_numpy": 1.0, "pyarrow, from_dlpack": 1.0, "polars, to_torch": 1.0}

CASES += [
    Case("batches: matrices", "work", HAND | {"row loop": 0.05}, of_a_table_as_matrices),
    Case("batches: dicts", "work", DICTS | {"row loop": 0.05}, of_a_table_as_dicts),
    Case("batches: a file", "work", HAND, of_a_file),
]
