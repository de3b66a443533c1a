"""Judges a library, a line a rule. Status 1: a must or derived is broken; 2: misuse; else 0."""

import argparse
import sys

from dlpack_conformance import report
from dlpack_conformance.library import load
from dlpack_conformance.rule import all_rules
from dlpack_conformance.run import TIME_LIMIT, one_line, run_all
from dlpack_conformance.script import script


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m dlpack_conformance", description=__doc__)
    parser.add_argument("library", nargs="?", help="the name of its module: numpy, torch, ...")
    parser.add_argument("--hooks", metavar="FILE", help="how to ask the library, as a Python file")
    parser.add_argument("--json", action="store_true", help="results as JSON")
    parser.add_argument("--rule", metavar="ID", help="print this rule as a script and run nothing")
    parser.add_argument("--list", action="store_true", help="print all rules as a table")
    parser.add_argument("--document", action="store_true", help="the same by groups: RULES.md")
    parser.add_argument("--time-limit", type=float, default=TIME_LIMIT, metavar="SECONDS")
    options = parser.parse_args(arguments)
    rules = all_rules()
    if options.list:
        print(report.table(rules), end="")
        return 0
    if options.document:
        print(report.document(rules), end="")
        return 0
    if options.library is None:
        parser.error("which library?")
    chosen = next((rule for rule in rules if rule.id == options.rule), None)
    if options.rule is not None and chosen is None:
        parser.error(f"there is no rule {options.rule}: --list has them")
    try:
        lib = load(options.library, options.hooks)
    except Exception as error:  # the library's own, or of the file of hooks
        parser.error(one_line(error))
    if chosen is not None:
        print(script(chosen, lib), end="")
        return 0
    results = []
    for rule, result, seconds in run_all(
        [rule for rule in rules if lib.concerned_by(rule)], lib, options.hooks, options.time_limit
    ):
        results.append((rule, result, seconds))
        if not options.json:
            print(report.line(rule, result), flush=True)
    pairs = [(rule, result) for rule, result, _ in results]
    print(report.as_json(lib, results) if options.json else report.summary(lib, pairs))
    return int(any(report.fatal(rule, result) for rule, result in pairs))


if __name__ == "__main__":
    sys.exit(main())
