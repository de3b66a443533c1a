"""`make profile CASE=...`: where the time of a case goes, by perf.

Runs the statements of every Python case whose name has the words, one contender after the other,
for a few seconds each, and prints the share of each library and of the functions that take the
most. Samples are taken of what is timed and of freeing the result, and of nothing else.
"""

import argparse
import gc
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from cases import CASES, LIBRARIES, Case
from timing import LOOP, calibrated, compiled

SECONDS = 4
FUNCTIONS = 16


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("words", help="part of the case's name")
    parser.add_argument("--contender", action="append", help="ours, unless given; may be repeated")
    parser.add_argument("--loop", type=int, nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    contenders = arguments.contender or ["ours"]
    cases = [case for case in CASES if arguments.words in case.name]
    if not cases:
        parser.error(f"no case has {arguments.words!r} in its name")
    if arguments.loop:
        loop(cases[0], contenders[0], *arguments.loop)
        return 0
    for case in cases:
        for contender in contenders:
            profile(case, contender)
    return 0


def profile(case: Case, contender: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        data = str(Path(folder) / "perf.data")
        (control, begin), (answered, answer) = os.pipe(), os.pipe()
        # perf waits for a command to begin, and confirms it.
        record = ["perf", "record", "--quiet", "--output", data, "--freq", "9973"]
        record += ["--event", "cpu-clock", "--delay", "-1", "--control", f"fd:{control},{answer}"]
        again = [sys.executable, __file__, case.name, "--contender", contender]
        again += ["--loop", str(begin), str(answered)]
        subprocess.run(
            [*record, "--", *again], check=True, pass_fds=[control, answer, begin, answered]
        )
        print(f"\n{case.name}: {contender}")
        for keys, most in (("dso", 6), ("dso,symbol", FUNCTIONS)):
            report = ["perf", "report", "--input", data, "--stdio", "--no-children", "--sort", keys]
            lines = subprocess.run(report, check=True, capture_output=True, text=True).stdout
            shown = [line for line in lines.splitlines() if line and not line.startswith("#")]
            print(*(line.rstrip()[:110] for line in shown[:most]), "", sep="\n")


def loop(case: Case, contender: str, begin: int, answered: int) -> None:
    names, statements = case.make()
    timed = compiled(LOOP, statements[contender], LIBRARIES | names)
    count = calibrated(timed)
    os.write(begin, b"enable\n")
    os.read(answered, 16)
    gc.disable()  # as in the benchmark
    end = perf_counter() + SECONDS
    nanoseconds = []
    while perf_counter() < end:
        nanoseconds.append(timed(count) / count)
    os.write(begin, b"disable\n")
    os.read(answered, 16)
    print(f"{statements[contender]}: {min(nanoseconds):,.0f} ns at best")


if __name__ == "__main__":
    sys.exit(main())
