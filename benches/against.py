"""This checkout's package against that of another commit: what did the changes in between cost?

    make build && .venv/bin/python benches/against.py COMMIT [WORD ...]

It builds the commit in `target/against`, and runs the cases whose names have one of the words, or
all, in processes that take turns. Both packages know every statement.
"""

import json
import os
import shutil
import subprocess
import sys
import timeit
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "target/against"
ROUNDS = 5
REPEATS = 30
#: Seconds that a repeat takes at least.
LONG = 0.005

SETUP = """
import numpy as np, pyarrow as pa, torch
from arrow_dlpack import (
    Array, Tensor, explain, from_dlpack, iter_batches, ragged, to_tensor, to_tensor_dict
)
torch.set_num_threads(1)
random = np.random.default_rng(1)
numbers, torches = np.zeros(1000, "float32"), torch.zeros(1000)
array, tensor = from_dlpack(numbers), Tensor.from_dlpack(numbers)
column = pa.array(np.arange(1000.0))
many = pa.table({f"x{i}": np.arange(10.0) for i in range(1000)})
table = pa.table({f"x{i}": random.random(200_000, "float32") for i in range(16)})
batch, (small, *_) = table.to_batches()[0], table.to_batches(1000)
wide = pa.record_batch({f"x{i}": np.zeros(1000, "float32") for i in range(5000)})
labelled = table.append_column("y", pa.array(np.arange(200_000)))
nulls = pa.array(random.random(1_000_000), mask=random.random(1_000_000) < 0.1)
bits = pa.array(random.random(4_000_000) < 0.5)
chunks = pa.chunked_array([random.random(10_000) for _ in range(100)])
words = pa.chunked_array([pa.array(["ab", "cde"] * 5000)] * 10)
lists = pa.array([[1, 2, 3]] * 100_000)
"""
CASES = {
    "Array.__dlpack__": "array.__dlpack__(max_version=(1, 3))",
    "Tensor.__dlpack__": "tensor.__dlpack__(max_version=(1, 3))",
    "np.from_dlpack(Array)": "np.from_dlpack(array)",
    "np.from_dlpack(Tensor)": "np.from_dlpack(tensor)",
    "torch.from_dlpack(Array)": "torch.from_dlpack(array)",
    "from_dlpack(numpy)": "from_dlpack(numbers)",
    "from_dlpack(torch)": "from_dlpack(torches)",
    "Array(pyarrow)": "Array(column)",
    "to_tensor(pyarrow)": "to_tensor(column)",
    "to_tensor_dict, 1000 columns": "to_tensor_dict(many)",
    "matrix": "to_tensor(batch)",
    "matrix, 1000 rows": "to_tensor(small)",
    "matrix, 5000 columns": "to_tensor(wide)",
    "nulls to a value": "to_tensor(nulls, nulls=0)",
    "nulls to NaN": "to_tensor(nulls, nulls='nan')",
    "nulls as a mask": "to_tensor(nulls, nulls='mask')",
    "Boolean to bool": "to_tensor(bits)",
    "100 chunks to one": "to_tensor(chunks)",
    "ragged: texts": "ragged(words)",
    "ragged: lists": "ragged(lists)",
    "batches: dicts": "for _ in iter_batches(labelled, batch_size=1024, label='y'): pass",
    "batches: matrices": (
        "for _ in iter_batches(labelled, batch_size=1024, label='y', format='matrix'): pass"
    ),
    "explain": "explain(nulls, nulls=0)",
}


def main(commit: str, *words: str) -> None:
    folders = {"theirs": built(commit), "ours": ROOT / "python"}
    found: dict[str, dict[str, list[float]]] = {}
    for turn in range(ROUNDS):
        for who in sorted(folders, reverse=turn % 2 == 1):
            for case, seconds in measured(folders[who], words).items():
                found.setdefault(case, {"ours": [], "theirs": []})[who].append(seconds)
    print(f"{'µs':<30} {'ours':>10} {commit[:10]:>10}  ratio (of medians)")
    for case, times in found.items():
        ours, theirs = (min(times[who]) * 1e6 for who in ("ours", "theirs"))
        ratio = median(times["ours"]) / median(times["theirs"])
        print(f"{case:<30} {ours:>10.3f} {theirs:>10.3f}  {ours / theirs:.2f} ({ratio:.2f})")


def built(commit: str) -> Path:
    """The folder of the commit's package, for PYTHONPATH."""
    source, build = FOLDER / "source", FOLDER / "build"
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir(parents=True)
    tree = subprocess.run(["git", "archive", commit], cwd=ROOT, stdout=subprocess.PIPE, check=True)
    subprocess.run(["tar", "-x", "-C", source], input=tree.stdout, check=True)
    environment = os.environ | {"CARGO_TARGET_DIR": str(build), "PYO3_PYTHON": sys.executable}
    command = ["cargo", "build", "--quiet", "--release", "--package", "arrow-dlpack-python"]
    subprocess.run(command, cwd=source, env=environment, check=True)
    package = source / "python/arrow_dlpack"
    shutil.copy(build / "release/lib_core.so", package / "_core.abi3.so")
    return package.parent


def measured(folder: Path, words: tuple[str, ...]) -> dict[str, float]:
    """Seconds of each case."""
    environment = os.environ | {"PYTHONPATH": str(folder)}
    command = [sys.executable, __file__, "--times", *words]
    ran = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    times: dict[str, float] = json.loads(ran.stdout)
    return times


def times(words: list[str]) -> dict[str, float]:
    scope: dict[str, object] = {}
    exec(SETUP, scope)
    found = {}
    for name, statement in CASES.items():
        if not words or any(word in name for word in words):
            timer, calls = timeit.Timer(statement, globals=scope), 1
            while timer.timeit(calls) < LONG:
                calls *= 2
            found[name] = min(timer.repeat(REPEATS, calls)) / calls
    return found


if __name__ == "__main__":
    if sys.argv[1] == "--times":
        # One core: some commits use it alone, and have no `threads=` to ask for that.
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        print(json.dumps(times(sys.argv[2:])))
    else:
        main(*sys.argv[1:])
