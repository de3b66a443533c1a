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


def document(rules: Iterable[Rule]) -> str:
    """A table of all rules, in Markdown."""
    rows = ["| id | slug | rule | level | who | source | since | until |"]
    rows.append("| --- " * 8 + "|")
    for rule in rules:
        cells = [rule.id, rule.slug, rule.sentence, rule.level, rule.who, rule.source]
        cells += [rule.since or "", rule.until or ""]
        rows.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(rows) + "\n"
