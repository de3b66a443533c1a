"""Reads what criterion measured in `handover.rs` and `threads.rs`, and holds the Rust targets."""

import json
import statistics
from dataclasses import dataclass
from pathlib import Path

from timing import Time

CRITERION = Path(__file__).parents[1] / "target/criterion"


@dataclass(frozen=True)
class Case:
    name: str
    targets: dict[str, float]
    # Contender to criterion's group, function and parameter.
    measured: dict[str, str]


CASES = [
    Case(
        "Rust: export and drop",
        {"limit": 2.0, "dlpark": 1.0},
        {
            "ours": "export/ours/1000",
            "ours, no field": "export/ours without a field/1000",
            "dlpark": "export/dlpark/1000",
            "limit": "export/limit/1000",
        },
    ),
    Case(
        "Rust: export by type and drop",
        {"limit": 2.0, "dlpark": 1.0},
        {
            "ours": "export/ours by type/1000",
            "dlpark": "export/dlpark/1000",
            "limit": "export/limit/1000",
        },
    ),
    Case(
        "Rust: import and drop",
        {"limit": 2.0, "dlpark": 1.0},
        {
            "ours": "import/ours/1",
            "ours, no field": "import/ours without a field/1",
            "dlpark": "import/dlpark/1",
            "limit": "import/limit/1",
            "Buffer and ArrayRef": "import/buffer and array only/1",
        },
    ),
    Case(
        "Rust: import by type and drop",
        {"limit": 2.0, "dlpark": 1.0},
        {
            "ours": "import/ours by type/1",
            "dlpark": "import/dlpark/1",
            "limit": "import/limit/1",
        },
    ),
    # Two threads in 1.11 times the time of one do 1.8 times as much.
    Case(
        "Rust: export by 2 threads",
        {"1 thread": 1.11},
        {"ours": "threads/own array/2", "1 thread": "threads/own array/1"},
    ),
    Case(
        "Rust: one array by 2 threads",
        {},
        {"ours": "threads/one array/2", "1 thread": "threads/one array/1"},
    ),
]

# Name, what grows, sizes, contender to criterion's group and function.
SERIES = [
    ("Rust: export", "rows", [1, 10**3, 10**6, 10**8], {"ours": "export/ours"}),
    ("Rust: import", "rows", [1, 10**8], {"ours": "import/ours"}),
    (
        "Rust: export",
        "threads",
        [1, 2, 4],
        {"ours": "threads/own array", "one array": "threads/one array"},
    ),
]


def time(measured: str) -> Time:
    """The samples of one of criterion's benchmarks, each the mean of many runs."""
    folder = "/".join(part.replace(",", "_") for part in measured.split("/"))
    sample = json.loads((CRITERION / folder / "new/sample.json").read_text())
    runs = [ns / count for ns, count in zip(sample["times"], sample["iters"], strict=True)]
    return Time(min(runs), statistics.median(runs), len(runs))
