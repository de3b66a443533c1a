"""Predicts on two ranks whether a flight will be late: DistributedDataParallel, by gloo.

    torchrun --standalone --nproc-per-node=2 examples/train_ranks.py

With rank="auto" the loader asks `torch.distributed` for its rank, and makes that rank's batches.
The ranks have equally many batches: DistributedDataParallel waits in each step for all of them, and
would wait forever for a rank that has no more.
"""

from pathlib import Path

import pyarrow.compute as pc
import torch
import torch.distributed as dist
from arrow_dlpack import Loader
from torch.nn.parallel import DistributedDataParallel

FLIGHTS = Path(__file__).parent.parent / "data" / "flights.parquet"
FEATURES = ["dep_delay", "distance", "sched_dep_time", "sched_arr_time", "month", "day"]
LATE, EPOCHS = 15, 3  # minutes


def loader(days: pc.Expression, **options) -> Loader:
    return Loader(
        FLIGHTS,
        batch_size=256,
        columns=FEATURES,
        label="arr_delay",
        format="matrix",
        dtype="float32",
        filter=days & pc.field("arr_delay").is_valid(),
        framework="torch",
        rank="auto",
        **options,
    )


def summed(*numbers: float) -> list[float]:
    """Over the ranks."""
    numbers = torch.tensor(numbers, dtype=torch.float64)
    dist.all_reduce(numbers)
    return numbers.tolist()


def main() -> None:
    dist.init_process_group("gloo")
    torch.set_num_threads(1)  # the processors are the other ranks'
    torch.manual_seed(0)
    # The test is on other days of the month.
    batches = loader(pc.field("day") <= 24, shuffle=20_000, seed=1, uneven="drop")
    scale = torch.nn.BatchNorm1d(len(FEATURES))
    layers = [torch.nn.Linear(len(FEATURES), 32), torch.nn.ReLU(), torch.nn.Linear(32, 1)]
    model = DistributedDataParallel(torch.nn.Sequential(scale, *layers))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(EPOCHS):
        flights = 0
        for features, delay in batches:
            late = (delay > LATE).float()
            loss = torch.nn.functional.binary_cross_entropy_with_logits(model(features)[:, 0], late)
            optimizer.zero_grad()
            loss.backward()  # waits for the other rank's
            optimizer.step()
            flights += len(delay)
        everyone = summed(flights)[0]
        print(f"rank {dist.get_rank()}, epoch {epoch}: {flights:,} of {everyone:,.0f} flights")

    right = flights = late = 0
    model.eval()
    # No rank waits for the other here, so one may have a batch more.
    for features, delay in loader(pc.field("day") > 24, uneven="allow"):
        with torch.no_grad():
            predicted = model.module(features)[:, 0] > 0
        right += ((delay > LATE) == predicted).sum().item()
        late += (delay > LATE).sum().item()
        flights += len(delay)
    right, late, flights = summed(right, late, flights)
    chance = 1 - late / flights
    if dist.get_rank() == 0:
        print(f"late or not: {right / flights:.1%} right, {chance:.1%} are not late")
    assert right / flights > chance + 0.08, right / flights
    # The ranks have one model.
    weights = torch.cat([weight.detach().flatten() for weight in model.parameters()])
    first = weights.clone()
    dist.broadcast(first, 0)
    assert torch.equal(weights, first)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
