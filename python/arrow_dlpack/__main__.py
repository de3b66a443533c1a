"""First aid: which libraries are here, what works between them, and how long an exchange takes.

    python -m arrow_dlpack [--json] [library ...]
    python -m arrow_dlpack check LIBRARY

Without names it imports whatever it knows, which takes some seconds; tensorflow the most of them.
What is missing or broken is reported, and the exit code is 0 all the same.

`check` judges one library by the rules of DLPack and Arrow. The package dlpack-conformance does it,
and takes whatever other arguments there are.

The keys of the JSON: ``arrow_dlpack``, ``python`` and ``platform`` are texts. ``libraries`` has for
each name its ``state`` ("installed", "missing", "broken" or "crashes"), ``version`` and
``problem``. ``exchanges`` is a list with ``way`` ("Arrow to tensor" or "tensor to Arrow"),
``from``, ``to``, ``outcome`` ("zero-copy", "copy", "refused" or "wrong"), ``problem``, and
``nanoseconds``, the best of five. What there is not, is null.
"""

import argparse
import json
import platform
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

from . import __version__
from ._doctor.libraries import ARROW_LIBRARIES, TENSOR_LIBRARIES

TABLES = (TENSOR_LIBRARIES, ARROW_LIBRARIES)
NAMES = list(dict.fromkeys(library.short for table in TABLES for library in table.values()))
CELLS = {"zero-copy": "{:.1f}", "copy": "{:.1f} c", "refused": "no", "wrong": "wrong"}
WAYS = (("Arrow to tensor", "to", "from"), ("tensor to Arrow", "from", "to"))
PATIENCE = 120  # seconds for all libraries together
NOTHING = "Nothing to exchange: that takes an Arrow library and a tensor library."
LEGEND = "Microseconds for 64 numbers, best of five. c: copied."


def probed(names: list[str]) -> dict[str, Any]:
    """What the probe finds; again without a library that crashes it, until none does."""
    crashed: dict[str, Any] = {}
    while True:
        command = [sys.executable, "-m", "arrow_dlpack._doctor.probe", json.dumps(crashed), *names]
        problem, output = answer(command)
        last: dict[str, Any] = json.loads((output.splitlines() or ["{}"])[-1])
        if "at" not in last:
            return {"libraries": {}, "exchanges": []} | last
        crashed[last["at"]] = {"state": "crashes", "version": None, "problem": problem}


def answer(command: list[str]) -> tuple[str, str]:
    """What became of the probe, and what it printed until then."""
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as probe:
        try:
            output, _ = probe.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            probe.kill()
            return f"no answer in {PATIENCE} s", probe.communicate()[0]
        return f"exit code {probe.returncode}", output


def matrix(exchanges: list[dict[str, Any]], down: str, across: str) -> Iterator[str]:
    """A line for each tensor library, a column for each Arrow library."""
    cells = {}
    for exchange in exchanges:
        text = CELLS[exchange["outcome"]].format((exchange["nanoseconds"] or 0) / 1000)
        cells[exchange[down], exchange[across]] = text
    columns = {column: max(len(column), 7) + 2 for _, column in cells}
    yield " " * 15 + "".join(f"{column:>{width}}" for column, width in columns.items())
    for row in dict.fromkeys(row for row, _ in cells):
        line = (f"{cells.get((row, column), '-'):>{width}}" for column, width in columns.items())
        yield f"{row:15}" + "".join(line)


def lines(report: dict[str, Any]) -> Iterator[str]:
    """The report as text."""
    yield f"arrow_dlpack {report['arrow_dlpack']}, Python {report['python']}, {report['platform']}"
    yield ""
    for name, library in report["libraries"].items():
        words = library["version"], library["state"], library["problem"]
        yield f"{name:15}" + ", ".join(word for word in words if word and word != "installed")
    problems = dict.fromkeys(
        f"{x['from']} to {x['to']}: {x['problem']}" for x in report["exchanges"] if x["problem"]
    )
    if not report["exchanges"]:
        yield f"\n{NOTHING}"
        return
    yield f"\n{LEGEND}{' no, wrong: see below.' if problems else ''}"
    for way, down, across in WAYS:
        if exchanges := [x for x in report["exchanges"] if x["way"] == way]:
            yield f"\n{way}"
            yield from matrix(exchanges, down, across)
    if problems:
        yield ""
    yield from problems


def check(arguments: Sequence[str]) -> int:
    """The exit status of dlpack-conformance."""
    try:
        kit = import_module("dlpack_conformance.__main__")
    except ModuleNotFoundError as missing:
        if missing.name != "dlpack_conformance":
            raise
        print("check takes another package: pip install dlpack-conformance", file=sys.stderr)
        return 2
    return int(kit.main(list(arguments)))


def main() -> None:
    if sys.argv[1:2] == ["check"]:
        sys.exit(check(sys.argv[2:]))
    parser = argparse.ArgumentParser(
        "python -m arrow_dlpack",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="the same as JSON")
    parser.add_argument("library", nargs="*", help=f"only these, of {', '.join(NAMES)}")
    arguments = parser.parse_args()
    if unknown := set(arguments.library) - set(NAMES):
        parser.error(f"not known here: {', '.join(unknown)}")
    report = {
        "arrow_dlpack": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        **probed(arguments.library or NAMES),
    }
    print(json.dumps(report, indent=2) if arguments.json else "\n".join(lines(report)))


if __name__ == "__main__":
    main()
