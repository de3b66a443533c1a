"""`make bench`: every case against every peer, one table, `results.json` and `results.svg`.

With words as arguments, only the cases whose names contain one of them, and nothing is written.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

# One thread for everybody: said before the libraries are there.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS")
os.environ.update(dict.fromkeys(THREADS, "1"))

import batches  # noqa: E402, F401 (its cases)
import cases  # noqa: E402
import epochs  # noqa: E402, F401 (its cases)
import growth  # noqa: E402
import many  # noqa: E402, F401 (its cases)
import picture  # noqa: E402
import pyarrow as pa  # noqa: E402
import report  # noqa: E402
import rust  # noqa: E402
import service  # noqa: E402, F401 (its cases)
import timing  # noqa: E402
import torch  # noqa: E402

HERE = Path(__file__).parent
SECONDS = {"call": 1.0, "work": 2.5}
SECONDS_A_POINT = 0.3


def main(words: list[str]) -> None:
    pa.set_cpu_count(1)
    torch.set_num_threads(1)

    def wanted(name: str) -> bool:
        return not words or any(word in name for word in words)

    before = report.busy()
    results: dict[str, Any] = {
        "date": report.today(),
        "machine": report.machine(),
        "versions": report.versions(),
        "allocators": report.ALLOCATORS.format(pyarrow=pa.default_memory_pool().backend_name),
        "cases": [measured(case) for case in cases.CASES if wanted(case.name)],
        "growth": [grown(series) for series in growth.SERIES if wanted(series.name)],
    }
    results["cores_busy_with_other_work"] = report.others(before)
    if not words:
        results["cases"] += [
            report.case(case.name, "rust", case.targets, rust_times(case.measured), {})
            for case in rust.CASES
        ]
        results["growth"] += [rust_growth(*series) for series in rust.SERIES]
        (HERE / "results.json").write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
        (HERE / "results.svg").write_text(picture.draw(results))
    print(report.table(results))
    print()
    print(report.summary(results))


def measured(case: cases.Case) -> dict[str, Any]:
    tell(case.name)
    names, statements = case.make()
    run = {"call": timing.calls, "work": timing.work}[case.kind]
    seconds = case.seconds or SECONDS[case.kind]
    times = run(statements, {**cases.LIBRARIES, **names}, seconds)
    return report.case(case.name, case.kind, case.targets, times, statements)


def grown(series: growth.Series) -> dict[str, Any]:
    minima: dict[str, list[float]] = {}
    for size in series.sizes:
        tell(f"{series.name}, {size} {series.of}")
        names, statements = series.make(size)
        times = timing.calls(statements, {**cases.LIBRARIES, **names}, SECONDS_A_POINT)
        for contender, measured in times.items():
            minima.setdefault(contender, []).append(round(measured.minimum, 1))
    return {"series": series.name, "of": series.of, "sizes": series.sizes, "minimum_ns": minima}


def rust_times(measured: dict[str, str]) -> dict[str, timing.Time]:
    return {contender: rust.time(path) for contender, path in measured.items()}


def rust_growth(name: str, of: str, sizes: list[int], functions: dict[str, str]) -> dict[str, Any]:
    minima = {
        contender: [round(rust.time(f"{path}/{size}").minimum, 1) for size in sizes]
        for contender, path in functions.items()
    }
    return {"series": name, "of": of, "sizes": sizes, "minimum_ns": minima}


def tell(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
