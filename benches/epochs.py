"""The cases of `Loader`: an epoch of a Parquet file beside pyarrow's scan of it, and padded rows.

The scan is what no loader can do without: it reads and decodes all rows, and makes no batches.
"""

import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from arrow_dlpack import Loader, Pad
from cases import CASES, Case, Made

ROWS = 2_000_000
COLUMNS = 16
GROUP = 100_000
LISTS = 50_000
# Seconds: in five rounds two that take as long, a tenth of a second each, differ by a tenth.
LONG = 10.0


def epoch(file: Path, **options: Any) -> int:
    loader = Loader(str(file), batch_size=1024, label="y", **options)
    return sum(label.shape[0] for _, label in loader)


def trained(file: Path, **options: Any) -> int:
    """An epoch whose loop takes 0.1 ms a batch, 0.2 s in all, as a small model's does."""
    rows = 0
    for _, label in Loader(str(file), batch_size=1024, label="y", format="matrix", **options):
        rows += label.shape[0]
        end = time.perf_counter_ns() + 100_000
        while time.perf_counter_ns() < end:
            pass
    return rows


def scan(file: Path) -> int:
    return sum(batch.num_rows for batch in ds.dataset(file).scanner().to_reader())


def numbers() -> dict[str, Any]:
    folder = tempfile.TemporaryDirectory()
    file = Path(folder.name) / "numbers.parquet"
    random = np.random.default_rng(1)
    features = {f"x{index}": random.random(ROWS, dtype="float32") for index in range(COLUMNS)}
    table = pa.table(features | {"y": random.integers(0, 10, ROWS).astype("int32")})
    pq.write_table(table, file, row_group_size=GROUP)
    return {"folder": folder, "file": file, "epoch": epoch, "trained": trained, "scan": scan}


def of(statement: str, **others: str) -> Any:
    """Beside the scan of the file, or beside others."""

    def made() -> Made:
        return numbers(), {"ours": statement} | (others or {"scan": "scan(file)"})

    return made


def padded(lists: pa.Table) -> int:
    batches = Loader(lists, batch_size=32, columns={"tokens": Pad(0)})
    return sum(batch["tokens"].values.shape[0] for batch in batches)


def padded_by_hand(batches: Iterable[pa.RecordBatch]) -> int:
    rows = 0
    for batch in batches:
        column = batch["tokens"]
        offsets, values = column.offsets.to_numpy(), column.values.to_numpy()
        lengths = np.diff(offsets)
        result = np.zeros((len(lengths), lengths.max()), values.dtype)
        is_value = np.arange(result.shape[1]) < lengths[:, None]
        result[is_value] = values[offsets[0] : offsets[-1]]
        rows += len(result)
    return rows


def of_lists() -> Made:
    random = np.random.default_rng(1)
    offsets = np.concatenate([[0], np.cumsum(random.integers(0, 65, LISTS))]).astype("int32")
    values = random.integers(0, 30_000, offsets[-1]).astype("int32")
    lists = pa.table({"tokens": pa.ListArray.from_arrays(pa.array(offsets), pa.array(values))})
    return {"lists": lists, "padded": padded, "padded_by_hand": padded_by_hand}, {
        "ours": "padded(lists)",
        "numpy, by hand": "padded_by_hand(lists.to_batches(32))",
    }


MATRIX = "epoch(file, format='matrix')"
SHUFFLED = "epoch(file, format='matrix', shuffle=100_000, seed=1)"

CASES += [
    Case("epoch: matrices", "work", {"scan": 1.25}, of(MATRIX)),
    Case("epoch: dicts", "work", {"scan": 1.25}, of("epoch(file)")),
    Case("epoch: shuffled matrices", "work", {"scan": 3.0}, of(SHUFFLED)),
    Case(
        "epoch: read ahead",
        "work",
        {"none": 1.0},
        of("epoch(file, format='matrix', prefetch=4)", none=MATRIX),
        LONG,
    ),
    Case(
        "epoch: read ahead of a model",
        "work",
        {"none": 1.0},
        of("trained(file, prefetch=4)", none="trained(file)"),
        LONG,
    ),
    Case("padded rows", "work", {"numpy, by hand": 1.0}, of_lists),
]
