"""The slow tier: runs its parts, and keeps the record of when each last ran.

    python .ci/slow.py run PART...     makes each that has not passed yet: `make test-all`
    python .ci/slow.py warn PART...    says what is missing, failed or old: `make lint`
    python .ci/slow.py check PART...   fails unless all passed, as the code is: `make release-check`
    python .ci/slow.py commit PART     the commit that this part last passed at, if there is one

A part is a target of the Makefile, and passes if make does. The record is
docs/development/slow-tier.md, written after each part, so that a run that was cut short goes on
where it was.
"""

import re
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "development" / "slow-tier.md"
OLD = 7  # days
# What no part of it depends on: words, and the records that the parts write themselves.
WORDS = [":!*.md", ":!docs/development/slow-tier.md"]

HEAD = """\
# The slow tier

When each part of `make test-all` last ran, and its outcome. The run writes this page; what the
parts are is in [CONTRIBUTING.md](../../CONTRIBUTING.md). `make lint` warns of what is missing here,
failed or older than a week; `make release-check` fails unless each part has passed with the code as
it is.

| part | outcome | commit | ended (UTC) | minutes |
|---|---|---|---|---|
"""
NEVER = "| {} | not run | | | |\n"
ROW = re.compile(r"\| ([\w-]+) \| (passed|failed) \| `(\w{40})` \| ([\d-]+ [\d:]+) \| ([\d.]+) \|")


@dataclass
class Row:
    part: str
    outcome: str
    commit: str
    ended: str
    minutes: str

    def __str__(self) -> str:
        return (
            f"| {self.part} | {self.outcome} | `{self.commit}` | {self.ended} | {self.minutes} |\n"
        )

    def is_of_this_code(self) -> bool:
        """Whether what has changed since are words; not so where git does not know the commit."""
        return git("diff", "--quiet", self.commit, "HEAD", "--", ".", *WORDS).returncode == 0

    def is_old(self) -> bool:
        ended = datetime.strptime(self.ended, "%Y-%m-%d %H:%M").replace(tzinfo=UTC)
        return (datetime.now(UTC) - ended).days >= OLD


def git(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["git", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def record() -> dict[str, Row]:
    lines = PAGE.read_text("utf-8").splitlines() if PAGE.exists() else []
    rows = (Row(*found.groups()) for found in map(ROW.fullmatch, lines) if found)
    return {row.part: row for row in rows}


def write(rows: dict[str, Row], parts: list[str]) -> None:
    page = PAGE.read_text("utf-8") if PAGE.exists() else ""
    known = re.findall(r"^\| ([\w-]+) \| not run", page, re.M)
    never = [NEVER.format(part) for part in dict.fromkeys([*known, *parts]) if part not in rows]
    PAGE.write_text("".join([HEAD, *map(str, rows.values()), *never]), "utf-8")


def run(parts: list[str]) -> None:
    """All of them, whatever fails on the way."""
    for part in parts:
        rows = record()
        if part in rows and rows[part].outcome == "passed" and rows[part].is_of_this_code():
            print(f"slow tier: {part} has passed at {rows[part].commit[:12]}", flush=True)
            continue
        # What is written down is what was tried: nothing but commits.
        if changed := git("status", "--porcelain", "--", ".", *WORDS).stdout:
            sys.exit(f"slow tier: commit these first, or the record would not be true:\n{changed}")
        print(f"slow tier: make {part}", flush=True)
        commit, began = git("rev-parse", "HEAD").stdout.strip(), time.monotonic()
        code = subprocess.run(["make", part], cwd=ROOT, check=False).returncode
        minutes = f"{(time.monotonic() - began) / 60:.1f}"
        outcome = "passed" if code == 0 else "failed"
        print(f"slow tier: {part} {outcome} after {minutes} minutes", flush=True)
        ended = datetime.now(UTC).strftime("%Y-%m-%d %H:%M")
        rows = record() | {part: Row(part, outcome, commit, ended, minutes)}
        write(rows, parts)
    failed = [part for part in parts if record()[part].outcome != "passed"]
    if failed:
        sys.exit(f"slow tier: {', '.join(failed)} failed; the same command goes on from there")


def problems(parts: list[str]) -> list[str]:
    rows = record()
    missing = [f"{part} has never run" for part in parts if part not in rows]
    found = [rows[part] for part in parts if part in rows]
    failed = [f"{row.part} failed on {row.ended}" for row in found if row.outcome != "passed"]
    return missing + failed


def rows_of(parts: list[str]) -> list[Row]:
    return [row for row in record().values() if row.part in parts]


def warn(parts: list[str]) -> None:
    rows = rows_of(parts)
    old = [f"{row.part} ran on {row.ended}, over {OLD} days ago" for row in rows if row.is_old()]
    for problem in problems(parts) + old:
        print(f"warning: slow tier: {problem} (docs/development/slow-tier.md)", file=sys.stderr)


def check(parts: list[str]) -> None:
    rows = rows_of(parts)
    other = [f"{row.part} passed with other code" for row in rows if not row.is_of_this_code()]
    old = [f"{row.part} ran on {row.ended}, over {OLD} days ago" for row in rows if row.is_old()]
    if found := problems(parts) + other + old:
        sys.exit("\n".join(f"slow tier: {problem}" for problem in found))


def commit(parts: list[str]) -> None:
    for part in parts:
        row = record().get(part)
        if row and row.outcome == "passed" and git("cat-file", "-e", row.commit).returncode == 0:
            print(row.commit)


if __name__ == "__main__":
    {"run": run, "warn": warn, "check": check, "commit": commit}[sys.argv[1]](sys.argv[2:])
