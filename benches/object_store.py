"""Epochs of many files, beside pyarrow's own scan of them in the same run.

First files in an object store whose every answer comes late, then 10,000 small ones on this
machine. The contenders take turns, each with a new Loader and a new dataset; the medians are
printed. The store is moto's, of the group `heavy`, in another process.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from arrow_dlpack import Loader

# The tests' own store, whose module is called as this one.
sys.path.insert(0, str(Path(__file__).parents[1] / "python" / "tests"))

FILES = 48
EACH = 4_000  # rows of a file, in two row groups
COLUMNS = 8
BATCH = 1_000
SHUFFLED = {"shuffle": 10_000, "seed": 1}
LOCAL_FILES = 10_000
LOCAL_EACH = 40

# Seconds until the first batch, and until the last.
Times = tuple[float, float]


def timed(batches: Callable[[], Iterable[Any]]) -> Times:
    start = perf_counter()
    first = None
    for _ in batches():
        first = first or perf_counter() - start
    total = perf_counter() - start
    return first or total, total


def in_turn(contenders: Mapping[str, Callable[[], Times]], rounds: int) -> dict[str, Times]:
    """The medians; a different one is first in each round."""
    order = list(contenders)
    found: dict[str, list[Times]] = {name: [] for name in order}
    for number in range(rounds):
        at = number % len(order)
        for name in order[at:] + order[:at]:
            found[name].append(contenders[name]())
    medians: dict[str, Times] = {}
    for name, times in found.items():
        first, total = (statistics.median(column) for column in zip(*times, strict=True))
        medians[name] = first, total
    return medians


def show(title: str, times: Mapping[str, Times]) -> None:
    """Each beside the scan, which is the first one."""
    print(f"\n{title}\n{'':32}{'first batch':>12}{'all':>9}{'of the scan':>13}")
    scan = next(iter(times.values()))[1]
    for name, (first, total) in times.items():
        print(f"{name:32}{first:10.2f} s{total:7.2f} s{total / scan:11.2f} x")


def table(rows: int) -> pa.Table:
    random = np.random.default_rng(1)
    return pa.table({f"x{at}": random.random(rows) for at in range(COLUMNS)})


def store(delay: float, rounds: int) -> None:
    of_tests = import_module("object_store")
    with of_tests.in_process_of_its_own(delay) as address:
        system = of_tests.filesystem(address)
        paths = of_tests.fill(system, table(FILES * EACH), FILES)

        def dataset() -> ds.Dataset:
            return ds.dataset(paths, filesystem=system)

        def loader(**options: Any) -> Callable[[], Times]:
            return lambda: timed(lambda: Loader(dataset(), batch_size=BATCH, **options))

        whole = Loader(dataset(), batch_size=BATCH, **SHUFFLED)
        epoch = iter(whole)
        for _ in range(len(whole) // 2):
            next(epoch)
        state = whole.state_dict()
        for _ in epoch:
            pass

        def resumed() -> Iterable[Any]:
            loader = Loader(dataset(), batch_size=BATCH, **SHUFFLED)
            loader.load_state_dict(state)
            return loader

        def two_epochs() -> Times:
            loader = Loader(dataset(), batch_size=BATCH, **SHUFFLED)
            timed(lambda: loader)
            return timed(lambda: loader)

        contenders = {
            "pyarrow's scan": lambda: timed(lambda: dataset().scanner().to_reader()),
            "Loader": loader(),
            "shuffled": loader(**SHUFFLED),
            "shuffled, second epoch": two_epochs,
            "rank 0 of 4": loader(rank=0, world_size=4),
            "shuffled, rank 0 of 4": loader(rank=0, world_size=4, **SHUFFLED),
            "shuffled, resumed in its middle": lambda: timed(resumed),
        }
        title = f"{FILES} files in a store that answers after {delay * 1000:.0f} ms"
        show(title, in_turn(contenders, rounds))


def local(against: str | None, rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        rows = table(LOCAL_FILES * LOCAL_EACH)
        for at in range(LOCAL_FILES):
            part = rows.slice(at * LOCAL_EACH, LOCAL_EACH)
            pq.write_table(part, f"{folder}/{at:05}.parquet")

        def process(what: str, path: str | None = None) -> Callable[[], Times]:
            paths = [path, os.environ.get("PYTHONPATH")]
            environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
            command = [sys.executable, __file__, "--only", what, folder]

            def run() -> Times:
                done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
                first, total = map(float, done.stdout.split())
                return first, total

            return run

        contenders = {
            "pyarrow's scan": process("scan"),
            "Loader": process("plain"),
            "shuffled": process("shuffled"),
        }
        if against is not None:
            contenders["Loader of the other package"] = process("plain", against)
            contenders["shuffled, the other package"] = process("shuffled", against)
        title = f"{LOCAL_FILES} local files of {LOCAL_EACH} rows, each time in a new process"
        show(title, in_turn(contenders, rounds))


def one(what: str, folder: str) -> None:
    if what == "scan":
        first, total = timed(lambda: ds.dataset(folder).scanner().to_reader())
    else:
        options = {} if what == "plain" else SHUFFLED
        first, total = timed(lambda: Loader(folder, batch_size=BATCH, **options))
    print(first, total)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--delay", type=float, default=0.05, help="seconds before each answer")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--part", choices=["store", "local"], help="without it, both")
    parser.add_argument("--against", help="a folder with another arrow_dlpack in it, built")
    parser.add_argument("--only", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.only:
        one(*arguments.only)
        return
    if arguments.part != "local":
        store(arguments.delay, arguments.rounds)
    if arguments.part != "store":
        local(arguments.against, arguments.rounds)


if __name__ == "__main__":
    main()
