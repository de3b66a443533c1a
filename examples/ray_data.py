"""A model over flights in several processes: Ray Data has the batches, arrow_dlpack the tensors.

    python examples/ray_data.py

Each worker makes the model once, and reads its batches where Ray keeps them. Afterwards the delays
are compared with those of the same model in this process.
"""

import json
import os
import time
from pathlib import Path

import arrow_dlpack
import pyarrow as pa
import pyarrow.parquet as pq
import ray
import torch

DATA = Path(__file__).parent.parent / "data"
FEATURES = ["distance", "hour", "month"]
WORKERS, BATCH = 2, 8192


class Model:
    """The layers of data/delay.json."""

    def __init__(self) -> None:
        layers = json.loads((DATA / "delay.json").read_text())
        self.layers = [(torch.tensor(weights), torch.tensor(bias)) for weights, bias in layers]

    def __call__(self, features: torch.Tensor) -> torch.Tensor:
        *hidden, (weights, bias) = self.layers
        for inner, shift in hidden:
            features = torch.relu(features @ inner + shift)
        return (features @ weights + bias)[:, 0]


class Predict:
    """What a worker has: made once, called with each of its batches."""

    def __init__(self) -> None:
        torch.set_num_threads(1)  # the processors are the workers'
        self.model = Model()

    def __call__(self, batch: pa.Table) -> pa.Table:
        # Columns side by side are one pass; a column of lists or tensors is no copy at all.
        features = arrow_dlpack.to_tensor(batch, columns=FEATURES, dtype="float32")
        delays = self.model(torch.from_dlpack(features))
        # Nor is the way back.
        batch = batch.append_column("delay", pa.array(arrow_dlpack.from_dlpack(delays)))
        return batch.append_column("worker", pa.array([os.getpid()] * len(batch)))


def main() -> None:
    # A worker holds a processor for as long as it lives; one more is to read.
    ray.init(num_cpus=WORKERS + 1, include_dashboard=False, log_to_driver=False)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    # Or the first worker might be done before the second is there.
    context.wait_for_min_actors_s = 120
    # One small file would be one block, and a block goes to one worker.
    flights = ray.data.read_parquet(str(DATA / "flights.parquet")).repartition(2 * WORKERS)
    predicted = flights.select_columns(["carrier", *FEATURES]).map_batches(
        Predict,
        batch_format="pyarrow",
        batch_size=BATCH,
        compute=ray.data.ActorPoolStrategy(size=WORKERS),
    )
    start = time.monotonic()
    table = pa.concat_tables(ray.get(predicted.to_arrow_refs()))
    print(f"{WORKERS} workers, from their start: {time.monotonic() - start:.1f} s")
    ray.shutdown()

    workers = set(table["worker"].to_pylist())
    assert len(workers) == WORKERS, workers
    assert os.getpid() not in workers
    by_carrier = averages(table)
    alone = pq.read_table(DATA / "flights.parquet", columns=["carrier", *FEATURES])
    matrix = torch.tensor([alone[name].to_pylist() for name in FEATURES], dtype=torch.float32)
    model = Model()
    start = time.monotonic()
    delays = model(matrix.T)
    print(f"this process, the model alone: {time.monotonic() - start:.3f} s")
    expected = averages(alone.append_column("delay", pa.array(delays.tolist())))
    assert by_carrier.keys() == expected.keys()
    for carrier, delay in by_carrier.items():
        assert abs(delay - expected[carrier]) < 0.01, carrier
        print(f"{carrier}  {delay:6.2f}")
    print(f"{len(table):,} flights, {len(workers)} workers")


def averages(table: pa.Table) -> dict[str, float]:
    table = table.set_column(0, "carrier", table["carrier"].cast(pa.string()))
    grouped = table.select(["carrier", "delay"]).group_by("carrier").aggregate([("delay", "mean")])
    return dict(zip(grouped["carrier"].to_pylist(), grouped["delay_mean"].to_pylist(), strict=True))


if __name__ == "__main__":
    main()
