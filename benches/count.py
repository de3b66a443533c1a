"""`make count`: how many instructions the small calls take, held against `instructions.json`.

Time on a shared machine is noise; the number of instructions is not. Anything above 5% more than
was recorded fails. `--update` records what there is now.

valgrind counts. A Rust process is run twice, with calls and without: the difference is theirs. A
Python process starts too unevenly for that: by `count.c` it says where to begin and where to end.
"""

import ctypes
import gc
import json
import platform
import re
import subprocess
import sys
import tempfile
from itertools import repeat
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
RECORD = HERE / "instructions.json"
TARGET = HERE.parent / "target/release"
BINARY, LIBRARY = TARGET / "count", TARGET / "count.so"
ALLOWED = 1.05
CALLS = 10_000

RUST = {
    "Rust: export and drop": "export",
    "Rust: export by type and drop": "export-by-type",
    "Rust: import and drop": "import",
    "Rust: import by type and drop": "import-by-type",
}
PYTHON = {
    "first": "pass",  # what is done once, such as finding begin and end
    "loop": "pass",
    "Array.__dlpack__": "array.__dlpack__(max_version=(1, 3))",
    "Tensor.__dlpack__": "tensor.__dlpack__(max_version=(1, 3))",
    "np.from_dlpack(Array)": "np.from_dlpack(array)",
    "from_dlpack(numpy)": "arrow_dlpack.from_dlpack(numbers)",
}
# Nothing of the caller's surroundings: they move the stack, and the stack moves the count.
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}


def main(arguments: list[str]) -> int:
    if arguments == ["--calls"]:
        make_calls()
        return 0
    versions = {
        "machine": platform.machine(),
        "libc": " ".join(platform.libc_ver()),
        "rustc": output(["rustc", "--version"]).split()[1],
        "python": platform.python_version(),
        "numpy": np.__version__,
    }
    counts = rust() | python()
    if arguments == ["--update"]:
        record = {"versions": versions, "instructions": counts}
        RECORD.write_text(json.dumps(record, indent=1) + "\n")
    return compare(counts, versions, json.loads(RECORD.read_text()))


def compare(counts: dict[str, int], versions: dict[str, str], record: dict[str, dict]) -> int:
    failed = False
    print(f"{'instructions a call':<26} {'now':>6} {'record':>6}")
    for name, count in counts.items():
        recorded = record["instructions"].get(name)
        if recorded is None:
            failed, note = True, "  not recorded"
        else:
            more = count / recorded
            failed |= more > ALLOWED
            note = f" {100 * (more - 1):+6.1f}%" + ("  TOO MANY" if more > ALLOWED else "")
        print(f"{name:<26} {count:>6} {recorded or '':>6}{note}")
    for key, old in record["versions"].items():
        if versions.get(key) != old:
            print(f"note: recorded with {key} {old}, and this is {versions.get(key)}")
    if failed:
        print(
            "The small path has grown by more than 5%. If that is meant, or if another version of "
            "the tools is all that has changed, record it: make count-update"
        )
    return int(failed)


def rust() -> dict[str, int]:
    """Instructions a call."""

    def total(what: str, count: int) -> int:
        return callgrind([str(BINARY), what, str(count)])[-1]

    return {
        name: round((total(what, CALLS) - total(what, 0)) / CALLS) for name, what in RUST.items()
    }


def python() -> dict[str, int]:
    """Instructions a call, the loop's own taken off."""
    output(["cc", "-O1", "-shared", "-fPIC", "-o", str(LIBRARY), str(HERE / "count.c")])
    command = [sys.executable, str(HERE / "count.py"), "--calls"]
    totals = dict(zip(PYTHON, callgrind(command), strict=False))
    _first, loop, *names = totals
    return {name: round((totals[name] - totals[loop]) / CALLS) for name in names}


def callgrind(command: list[str]) -> list[int]:
    """What it counts of a process: for each dump, or in all."""
    with tempfile.TemporaryDirectory() as folder:
        out = f"--callgrind-out-file={folder}/out"
        ran = subprocess.run(
            ["valgrind", "--tool=callgrind", out, *command],
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            check=False,
        )
        if ran.returncode != 0:
            sys.exit(f"{' '.join(command)} failed:\n{ran.stdout}{ran.stderr}")
        # out.1, out.2, ... for the dumps, and out for the rest.
        dumps = sorted(Path(folder).iterdir(), key=lambda dump: int(dump.suffix[1:] or 10**9))
        return [int(re.findall(r"^totals: (\d+)", d.read_text(), re.MULTILINE)[0]) for d in dumps]


def make_calls() -> None:
    """Each case is measured by itself, after some calls that are not."""
    import arrow_dlpack  # noqa: PLC0415 only the counted process needs it

    numbers = np.zeros(1000, "float32")
    array = arrow_dlpack.from_dlpack(numbers)
    tensor = arrow_dlpack.Tensor.from_dlpack(numbers)
    scope = {"arrow_dlpack": arrow_dlpack, "np": np, "repeat": repeat}
    scope |= {"numbers": numbers, "array": array, "tensor": tensor}
    gc.disable()
    valgrind = ctypes.CDLL(str(LIBRARY))
    for statement in PYTHON.values():
        exec(f"def run(count):\n for _ in repeat(None, count):\n  {statement}", scope)
        scope["run"](100)
        valgrind.begin()
        scope["run"](CALLS)
        valgrind.end()


def output(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
