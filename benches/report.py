"""The results as a dict, as a table to read, and what the machine was."""

import datetime
import os
import platform
import subprocess
import time
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from timing import Time

LIBRARIES = [
    "numpy",
    "pyarrow",
    "polars",
    "torch",
    "apache-tvm-ffi",
    "nanoarrow",
    "arro3-core",
]
ALLOCATORS = (
    "each library's own, warm: a result is freed before the next run. Above 32 MB, glibc's (ours, "
    "NumPy's, PyTorch's) takes memory fresh from the system each time; pyarrow's {pyarrow} and "
    "polars' own may use theirs again"
)


def case(
    name: str,
    kind: str,
    targets: Mapping[str, float],
    times: Mapping[str, Time],
    statements: Mapping[str, str],
) -> dict[str, Any]:
    """One case: the times, ours as a multiple of each other, and whether the targets are met."""
    ours = times["ours"]
    contenders = []
    for contender, theirs in times.items():
        row: dict[str, Any] = {
            "contender": contender,
            "statement": statements.get(contender),
            "minimum_ns": round(theirs.minimum, 2),
            "median_ns": round(theirs.median, 2),
            "rounds": theirs.rounds,
        }
        if contender != "ours":
            # What costs nothing at all, to within the clock's own noise, has no multiple.
            row["ratio"] = round(ours.minimum / max(theirs.minimum, 0.1), 3)
            row["ratio_of_medians"] = round(ours.median / max(theirs.median, 0.1), 3)
        if contender in targets:
            row["target"] = targets[contender]
            row["verdict"] = verdict(row)
        contenders.append(row)
    return {"case": name, "kind": kind, "contenders": contenders}


def verdict(row: Mapping[str, Any]) -> str:
    met = {row[ratio] <= row["target"] for ratio in ("ratio", "ratio_of_medians")}
    if len(met) == 2:
        return "unsure"  # the minimum says one thing and the median another: a noisy machine
    return "met" if met.pop() else "missed"


def best_peer(case: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The fastest that is neither ours nor a limit."""
    others = ("ours", "limit", "Buffer and ArrayRef", "1 thread")
    peers = [row for row in case["contenders"] if not row["contender"].startswith(others)]
    return min(peers, key=lambda row: row["minimum_ns"], default=None)


def machine() -> dict[str, Any]:
    cpu = "unknown"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            cpu = line.split(":", 1)[1].strip()
            break
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "system": platform.platform(),
    }


def busy() -> tuple[float, float]:
    """Seconds of CPU that the other processes have had until now, and the time."""
    with open("/proc/stat") as stat:
        user, nice, system, _idle, _wait, irq, softirq, steal, *_ = map(
            int, stat.readline().split()[1:]
        )
    everybody = (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")
    own = os.times()
    return everybody - own.user - own.system, time.monotonic()


def others(before: tuple[float, float]) -> float:
    """How many cores the others have kept busy since."""
    cpu, now = busy()
    return round(max(cpu - before[0], 0) / (now - before[1]), 2)


def versions() -> dict[str, str]:
    rustc = subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=False)
    return {
        "arrow-dlpack": version("arrow-dlpack"),
        "commit": commit(),
        "python": platform.python_version(),
        "rustc": rustc.stdout.split()[1] if rustc.stdout else "unknown",
        **{library: version(library) for library in LIBRARIES},
    }


def commit() -> str:
    git = ["git", "describe", "--always", "--dirty", "--exclude", "*"]
    found = subprocess.run(git, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"


def today() -> str:
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def text(ns: float) -> str:
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.3g} ns"


MARKS = {"met": "met", "missed": "MISSED", "unsure": "unsure"}
ROW = "{:<34} {:<20} {:>9} {:>9} {:>8} {:>8} {:>7}  {}"


def table(results: Mapping[str, Any]) -> str:
    """Everything, to be read in a terminal."""
    lines = [ROW.format("", "", "minimum", "median", "ratio", "(median)", "target", "").rstrip()]
    for case in results["cases"]:
        name = case["case"]
        for row in case["contenders"]:
            ratios = [f"{row[key]:.3g}" if key in row else "" for key in ("ratio", "target")]
            medians = f"({row['ratio_of_medians']:.3g})" if "ratio" in row else ""
            times = text(row["minimum_ns"]), text(row["median_ns"])
            mark = MARKS.get(row.get("verdict", ""), "")
            line = ROW.format(name, row["contender"], *times, ratios[0], medians, ratios[1], mark)
            lines.append(line.rstrip())
            name = ""
    for series in results["growth"]:
        lines += ["", f"{series['series']}, by {series['of']}"]
        sizes = "".join(
            f"{size:>10.0e}" if size > 10 else f"{size:>10}" for size in series["sizes"]
        )
        lines.append(f"{'':<22}{sizes}")
        for contender, times in series["minimum_ns"].items():
            lines.append(f"  {contender:<20}" + "".join(f"{text(ns):>10}" for ns in times))
    return "\n".join(lines)


def is_busy(results: Mapping[str, Any]) -> bool:
    return results["cores_busy_with_other_work"] > 0.2


def summary(results: Mapping[str, Any]) -> str:
    machine, versions = results["machine"], results["versions"]
    verdicts = [row.get("verdict") for case in results["cases"] for row in case["contenders"]]
    counts = {mark: verdicts.count(mark) for mark in MARKS}
    lines = [
        f"{results['date']}, {machine['cores']} × {machine['cpu']}, {machine['memory_gb']} GB, "
        f"{results['cores_busy_with_other_work']} cores busy with other work",
        ", ".join(f"{name} {number}" for name, number in versions.items()),
        f"one thread each; allocators: {results['allocators']}",
        f"targets: {counts['met']} met, {counts['missed']} missed, {counts['unsure']} unsure",
    ]
    if is_busy(results):
        lines.append("The machine was busy: these numbers check the harness, and nothing else.")
    return "\n".join(lines)
