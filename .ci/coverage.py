"""Judges what the tests did not run, and writes it down: `make coverage`.

    python .ci/coverage.py LCOV

Reads an lcov report and uncovered.toml, the reasons; writes coverage.md. Fails if a file with
unsafe code of its own has a line that was never run and has no reason, or too little of the rest
was.
"""

import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).parents[1]
REASONS = tomllib.loads(Path(__file__).with_name("uncovered.toml").read_text())
PAGE = ROOT / "docs" / "development" / "coverage.md"
ENOUGH = 0.95


@dataclass
class Gap:
    """Lines that did not run, without one between them that did."""

    file: str
    number: int
    lines: list[str]

    def reason(self) -> tuple[str, str, str] | None:
        """The table that it is in, its key, and the reason itself."""
        first = self.lines[0]
        for words, reason in REASONS.get(self.file, {}).items():
            if first.startswith(words):
                return self.file, words, reason
        for words, reason in REASONS["everywhere"].items():
            if words in first:
                return "everywhere", words, reason
        return None


class File:
    def __init__(self, name: str):
        self.name = name
        self.text = (ROOT / name).read_text()
        self.counts: dict[int, int] = {}

    @property
    def is_unsafe(self) -> bool:
        return bool(re.search(r"^#!\[.*expect\(unsafe_code", self.text, re.M))

    @property
    def missed(self) -> int:
        return sum(count == 0 for count in self.counts.values())

    def gaps(self) -> list[Gap]:
        text = self.text.splitlines()
        runs = groupby(sorted(self.counts), key=lambda number: self.counts[number] > 0)
        missed = [list(numbers) for has_run, numbers in runs if not has_run]
        return [
            Gap(self.name, numbers[0], [text[number - 1].strip() for number in numbers])
            for numbers in missed
        ]


def files_of(report: Path) -> list[File]:
    files: dict[str, File] = {}
    for line in report.read_text().splitlines():
        kind, _, value = line.partition(":")
        if kind == "SF":
            name = Path(value).relative_to(ROOT).as_posix()
            file = files.setdefault(name, File(name))
        elif kind == "DA":
            number, count = map(int, value.split(",")[:2])
            file.counts[number] = file.counts.get(number, 0) + count
    for file in files.values():
        if max(file.counts) > len(file.text.splitlines()):
            sys.exit(f"{file.name} has changed since the tests were built")
    return [files[name] for name in sorted(files)]


def share(files: list[File]) -> float:
    lines = sum(len(file.counts) for file in files)
    return 1 - sum(file.missed for file in files) / max(lines, 1)


def summary(files: list[File]) -> str:
    lines, missed = sum(len(file.counts) for file in files), sum(file.missed for file in files)
    gaps = [gap for file in files for gap in file.gaps()]
    unexplained = sum(gap.reason() is None for gap in gaps)
    why = f"{unexplained} gaps without a reason" if unexplained else "the rest for a reason"
    return f"{lines - missed:,} of {lines:,} lines run ({share(files):.1%}), {why}"


def measured_at() -> str:
    """The commit whose tests ran, and when it was made."""
    command = ["git", "log", "-1", "--format=`%H`, of %cs"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "an unknown commit"


def page(unsafe: list[File], rest: list[File]) -> str:
    files = sorted(unsafe + rest, key=lambda file: file.name)
    out = [
        "# What the tests run",
        "",
        "Made by `make coverage` from the Rust tests and the Python suite, on Linux x86-64. Of",
        "files with unsafe code (**bold**) all lines have to be run, unless a reason",
        f"is given below; of the others {ENOUGH:.0%}.",
        "",
        f"Measured at commit {measured_at()}.",
        "",
        f"- files with unsafe code: {summary(unsafe)}",
        f"- the others: {summary(rest)}",
        "",
        "| file | lines | not run | run |",
        "|---|--:|--:|--:|",
    ]
    for file in files:
        name = f"**{file.name}**" if file in unsafe else file.name
        out.append(f"| {name} | {len(file.counts)} | {file.missed or ''} | {share([file]):.1%} |")
    out += ["", "## What is not run, and why", ""]
    out += ["A line below is the first of a gap; its reason holds for all lines of the gap."]
    for file in files:
        reasons = [(gap.lines[0], found[2]) for gap in file.gaps() if (found := gap.reason())]
        if reasons:
            out += ["", f"{file.name}", ""]
            out += [f"- `{line}`: {reason}" for line, reason in reasons]
    gaps = [gap for file in files for gap in file.gaps() if gap.reason() is None]
    if gaps:
        out += ["", "## Without a reason", ""]
        out += [f"- {gap.file}:{gap.number}: `{gap.lines[0]}`" for gap in gaps]
    return "\n".join(out) + "\n"


def main(report: Path) -> None:
    files = files_of(report)
    unsafe = [file for file in files if file.is_unsafe]
    rest = [file for file in files if not file.is_unsafe]
    PAGE.write_text(page(unsafe, rest))

    gaps = [gap for file in files for gap in file.gaps()]
    used = {found[:2] for gap in gaps if (found := gap.reason())}
    for section, reasons in REASONS.items():
        for words in reasons:
            if (section, words) not in used:
                print(f"not needed any more: {section}: {words}")
    for gap in gaps:
        if gap.reason() is None:
            print(f"not run: {gap.file}:{gap.number}: {gap.lines[0]}")
    holes = sum(gap.reason() is None for file in unsafe for gap in file.gaps())
    print("files with unsafe code:", summary(unsafe))
    print("the others:", summary(rest))
    if holes or share(rest) < ENOUGH:
        sys.exit("Too little: write a test, or the reason into .ci/uncovered.toml.")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
