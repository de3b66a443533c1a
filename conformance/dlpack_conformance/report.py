"""Results for a person, as JSON, and the rules as a document."""

import json
import platform
from collections import Counter
from collections.abc import Iterable

from dlpack_conformance.library import Library
from dlpack_conformance.rule import Rule
from dlpack_conformance.run import PASS, Result

JSON_VERSION = 1


def line(rule: Rule, result: Result) -> str:
    """What one rule came to; below it, where it matters, what was expected and seen."""
    first = f"{rule.id} {result.outcome:14} {rule.level:7} {rule.slug}"
    if result.broken:
        details = [("rule", rule.sentence), ("expected", result.expected), ("seen", result.seen)]
        details.append(("source", rule.source))
        if result.expected == rule.sentence:
            del details[1]
        return "\n".join([first, *(f"      {name + ':':10}{text}" for name, text in details)])
    return first if result.outcome == PASS else f"{first}: {result.seen}"


def summary(lib: Library, results: Iterable[tuple[Rule, Result]]) -> str:
    results = list(results)
    counts = Counter(result.outcome for _, result in results)
    said = ", ".join(f"{count} {outcome}" for outcome, count in counts.items()) or "no rules"
    broken = [rule.id for rule, result in results if fatal(rule, result)]
    text = f"{lib.name} {lib.version}, Python {platform.python_version()}: {said}"
    return f"{text}\nbroken, must or derived: {' '.join(broken)}" if broken else text


def fatal(rule: Rule, result: Result) -> bool:
    """Whether it is an error: a should that is not kept is shown and forgiven."""
    return result.broken and rule.level in ("must", "derived")


def as_json(lib: Library, results: Iterable[tuple[Rule, Result, float]]) -> str:
    rules = [
        {
            "id": rule.id,
            "slug": rule.slug,
            "level": rule.level,
            "outcome": result.outcome,
            "expected": result.expected,
            "seen": result.seen,
            "source": rule.source,
            "seconds": round(seconds, 3),
        }
        for rule, result, seconds in results
    ]
    head = {"version": JSON_VERSION, "library": lib.name, "library_version": lib.version}
    return json.dumps({**head, "python": platform.python_version(), "rules": rules}, indent=1)


GROUPS = {
    "DL1": "DLPack, what a tensor says",
    "DL2": "DLPack, capsules, deleters and who owns what",
    "DL3": "DLPack, producers: `__dlpack__` and `__dlpack_device__`",
    "DL4": "DLPack, consumers: `from_dlpack`",
    "DL5": "DLPack, the C exchange API",
    "AR1": "Arrow, ArrowSchema",
    "AR2": "Arrow, ArrowArray",
    "AR3": "Arrow, ArrowArrayStream",
    "AR4": "Arrow, the PyCapsule interface",
    "AR5": "Arrow, the C device data interface",
    "BR": "objects with both protocols",
}
DOCUMENT = """# The rules

`python -m dlpack_conformance --document` prints this file from the code.

Level: *must* and *derived* (it follows from the texts) are errors where they are broken; *should*
is shown and is none; *may* and *silent* (the texts say nothing) are never judged. Who: *p*
producer, *c* consumer, *x* who offers the exchange table, *y* who uses one. Since and until:
versions of the source, the first and the last that has the rule.
"""


def document(rules: Iterable[Rule]) -> str:
    """All rules in Markdown, a table for each group."""
    rules, parts = list(rules), [DOCUMENT]
    for prefix, title in GROUPS.items():
        members = [rule for rule in rules if rule.id.startswith(prefix)]
        parts.append(f"## {prefix}: {title}\n\n{table(members)}")
    return "\n".join(parts)


def table(rules: Iterable[Rule]) -> str:
    rows = ["| id | slug | level | who | source | rule | since | until |"]
    rows.append("| --- " * 8 + "|")
    for rule in rules:
        cells = [rule.id, rule.slug, rule.level, rule.who, rule.source, rule.sentence]
        cells += [rule.since or "", rule.until or ""]
        rows.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(rows) + "\n"
