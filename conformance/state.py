"""The state of the protocols: every library at hand, judged by every rule, as one page.

    python conformance/state.py PAGE PYTHON...

PYTHON: the interpreters to ask, one for each set of versions, as `.venv/bin/python`. What one of
them cannot be asked is said on the page, with the reason. The page is Markdown.
"""

import json
import os
import re
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
MODULES = {"arro3_core": "arro3.core", "mlx_core": "mlx.core"}
#: How many libraries are judged at once.
TOGETHER = 2
#: Seconds for one rule: TensorFlow's import alone takes some, and the machine may have other work.
TIME_LIMIT = 60
#: A run of all rules takes a minute or two; a library that hangs in many of them, more.
PATIENCE = 900

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


def judged(interpreter: str, library: str) -> Judged | str:
    """Or the reason why it cannot be."""
    command = [interpreter, "-m", "dlpack_conformance", library, "--json"]
    command += ["--time-limit", str(TIME_LIMIT)]
    # Ours is where it was built. Bytecode, since some rules import the library again.
    paths = os.pathsep.join([str(HERE), str(HERE.parent / "python")])
    environment = os.environ | {"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": ""}
    try:
        ran = subprocess.run(
            command, capture_output=True, text=True, env=environment, timeout=PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        return f"{library}: no end within {PATIENCE} s"
    if ran.returncode not in (0, 1) or not ran.stdout:
        said = ran.stderr.strip() or f"status {ran.returncode}"
        return f"{library}: {said.splitlines()[-1]}"
    found = json.loads(ran.stdout)
    seconds = sum(rule["seconds"] for rule in found["rules"])
    print(f"{interpreter}: {library}, {seconds:.0f} s", file=sys.stderr)
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
        for names, seen in alike((one.name, rule["seen"]) for one, rule in by):
            yield f"- {', '.join(names)}: {seen}"
        yield ""


def alike(pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[list[str], str]]:
    """The names of those that did the same, whatever the addresses in the text."""
    found: dict[str, tuple[list[str], str]] = {}
    for name, seen in pairs:
        key = re.sub(r"0x[0-9a-f]+|\d{9,}", "", seen)
        found.setdefault(key, ([], seen))[0].append(name)
    yield from found.values()


def page(results: list[Judged], missing: list[str], date: str) -> str:
    lines = [HEAD.format(date=date), *overview(results), ""]
    if missing:
        lines += ["Not judged:\n", *(f"- {reason}" for reason in missing), ""]
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
        found = list(pool.map(lambda pair: judged(*pair), asked))
    results = [one for one in found if isinstance(one, Judged)]
    missing = [
        f"{reason} (`{interpreter}`)"
        for (interpreter, _), reason in zip(asked, found, strict=True)
        if isinstance(reason, str)
    ]
    Path(target).write_text(page(results, missing, f"{datetime.now(UTC):%Y-%m-%d}"), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
