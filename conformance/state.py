"""The state of the protocols: every library at hand, judged by every rule, as one page.

    python conformance/state.py PAGE PYTHON...

PYTHON: the interpreters to ask, one for each set of versions, as `.venv/bin/python`. A library that
one of them has not got is left out there. The page is Markdown.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
HOOKS = HERE / "dlpack_conformance" / "hooks"
#: The modules whose hooks have another name.
MODULES = {"arro3_core": "arro3.core"}
#: How many libraries are judged at once.
TOGETHER = 2
#: A run of all rules takes seconds; a library that hangs in many of them, minutes.
PATIENCE = 600

#: What hurts users most comes first: ends of the process, then by how plainly the texts say it.
HEADINGS = {
    ("crashed", "must"): "The process ends, or hangs, where the texts say *must*",
    ("crashed", "derived"): "The process ends, or hangs, where a *must* follows",
    ("crashed", "should"): "The process ends, or hangs, where the texts say *should*",
    ("fail", "must"): "A *must* is not kept",
    ("fail", "derived"): "What follows from a *must* is not kept",
    ("fail", "should"): "A *should* is not kept",
}

HEAD = """\
# The state of the protocols

What each library makes of the rules of DLPack and of Arrow's C interfaces, found by
`dlpack-conformance`. Made by `make conformance-state`, on {date}.
A rule that a library is said to break is printed as a script, which needs nothing but the library:
`python -m dlpack_conformance LIBRARY --rule ID`. Run it before you report anything: not
each finding below has been looked at by hand, and the hooks that ask a library can be wrong too.

"""


@dataclass(frozen=True)
class Judged:
    """One library under one interpreter."""

    library: str
    version: str
    python: str
    rules: list[dict[str, Any]]

    @property
    def name(self) -> str:
        return f"{self.library} {self.version} (Python {self.python.rpartition('.')[0]})"


def judged(interpreter: str, library: str) -> Judged | None:
    """None if the interpreter has not got it."""
    command = [interpreter, "-m", "dlpack_conformance", library, "--json"]
    environment = os.environ | {"PYTHONPATH": str(HERE)}
    ran = subprocess.run(
        command, capture_output=True, text=True, env=environment, timeout=PATIENCE, check=False
    )
    if ran.returncode == 2:
        print(f"{library}: {ran.stderr.strip().splitlines()[-1]}", file=sys.stderr)
        return None
    found = json.loads(ran.stdout)
    return Judged(library, found["library_version"], found["python"], found["rules"])


def overview(results: Iterable[Judged]) -> Iterator[str]:
    yield "| library | pass | must, derived broken | should broken | silent | not applicable |"
    yield "| --- " * 6 + "|"
    for one in results:
        counts = Counter(rule["outcome"] for rule in one.rules)
        broken = Counter(
            rule["level"] == "should"
            for rule in one.rules
            if (rule["outcome"], rule["level"]) in HEADINGS
        )
        cells = [one.name, counts["pass"], broken[False], broken[True]]
        cells += [counts["silent"], counts["not applicable"]]
        yield f"| {' | '.join(map(str, cells))} |"


def findings(results: Iterable[Judged], kind: tuple[str, str]) -> Iterator[str]:
    """The rules that are broken in this way, and by whom."""
    broken: dict[str, list[tuple[Judged, dict[str, Any]]]] = {}
    for one in results:
        for rule in one.rules:
            if (rule["outcome"], rule["level"]) == kind:
                broken.setdefault(rule["id"], []).append((one, rule))
    for identity, by in sorted(broken.items(), key=lambda item: (-len(item[1]), item[0])):
        rule = by[0][1]
        yield f"### {identity} {rule['slug']}"
        yield f"\n{rule['source']}. Expected: {rule['expected']}\n"
        for one, seen in by:
            yield f"- {one.name}: {seen['seen']}"
        yield ""


def page(results: list[Judged], date: str) -> str:
    lines = [HEAD.format(date=date), *overview(results), ""]
    for kind, heading in HEADINGS.items():
        found = list(findings(results, kind))
        if found:
            lines += [f"## {heading}\n", *found]
    return "\n".join(lines)


def main(target: str, *interpreters: str) -> None:
    hooks = sorted(path.stem for path in HOOKS.glob("[a-z]*.py"))
    names = [MODULES.get(name, name) for name in hooks if not name.startswith("kit_")]
    asked = [(interpreter, name) for name in names for interpreter in interpreters]
    with ThreadPoolExecutor(TOGETHER) as pool:
        found = [one for one in pool.map(lambda pair: judged(*pair), asked) if one is not None]
    Path(target).write_text(page(found, f"{datetime.now(UTC):%Y-%m-%d}"), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
