"""The rules as tests: pytest --pyargs dlpack_conformance --dlpack-module numpy

Every rule is a test of the module that has it. A should that is not kept is an expected failure.
Without --dlpack-module and --dlpack-arrow-module the plugin collects nothing and changes nothing.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

RULES = Path(__file__).parent / "rules"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("dlpack", "conformance with DLPack and Arrow's C interfaces")
    group.addoption("--dlpack-module", metavar="LIB", help="the library that DLPack's rules judge")
    group.addoption("--dlpack-arrow-module", metavar="LIB", help="that which Arrow's rules judge")
    group.addoption("--dlpack-hooks", metavar="FILE", help="how to ask them, as a Python file")
    for what, then in (("xfails", "may fail"), ("skips", "are left out")):
        group.addoption(
            f"--dlpack-{what}-file",
            metavar="FILE",
            help=f"the ids of rules that {then}, one a line; # begins a comment",
        )


def pytest_sessionstart(session: pytest.Session) -> None:
    # A library that cannot be asked ends the session before a test runs.
    library(session.config, "--dlpack-module")
    library(session.config, "--dlpack-arrow-module")


def library(config: pytest.Config, option: str) -> Any:
    """The library of that option; None if it is not given."""
    # Nothing of ours is imported where there is nothing to judge.
    from dlpack_conformance.library import load  # noqa: PLC0415

    name = config.getoption(option)
    try:
        return None if name is None else load(name, config.getoption("--dlpack-hooks"))
    except ImportError as error:
        raise pytest.UsageError(str(error)) from None


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> Any:
    option = parent.config.getoption
    if file_path.parent != RULES or file_path.name.startswith("_"):
        return None
    if option("--dlpack-module") is None and option("--dlpack-arrow-module") is None:
        return None
    return RuleFile.from_parent(parent, path=file_path)


class RuleFile(pytest.File):
    def collect(self) -> Iterator[pytest.Item]:
        from dlpack_conformance.rule import all_rules  # noqa: PLC0415

        option = self.config.getoption
        xfails = ids(option("--dlpack-xfails-file"))
        skips = ids(option("--dlpack-skips-file"))
        dlpack = library(self.config, "--dlpack-module")
        arrow = library(self.config, "--dlpack-arrow-module")
        module = f"dlpack_conformance.rules.{self.path.stem}"
        for rule in [rule for rule in all_rules() if rule.check.__module__ == module]:
            lib = dlpack if rule.id.startswith("DL") else arrow
            if lib is not None and lib.concerned_by(rule):
                name = f"{rule.id}[{lib.name}]"
                item = RuleItem.from_parent(self, name=name, rule=rule, lib=lib)
                if rule.id in skips:
                    item.add_marker(pytest.mark.skip(reason=f"{rule.id} is in the skips file"))
                if rule.id in xfails:
                    item.add_marker(pytest.mark.xfail(reason=f"{rule.id} is in the xfails file"))
                yield item


def ids(path: str | None) -> set[str]:
    """Of a file: comments are left out, and so are empty lines."""
    if path is None:
        return set()
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    return {line.partition("#")[0].strip() for line in lines} - {""}


class BrokenRule(Exception):
    """Its text is the report of the test."""


class RuleItem(pytest.Item):
    def __init__(self, *, rule: Any, lib: Any, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.rule, self.lib = rule, lib

    def runtest(self) -> None:
        from dlpack_conformance import report, run  # noqa: PLC0415

        result = run.run(self.rule, self.lib, self.config.getoption("--dlpack-hooks"))
        self.user_properties.append(("level", self.rule.level))
        if result.outcome == run.NOT_APPLICABLE:
            pytest.skip(f"not applicable: {result.seen}")
        if result.outcome == run.SILENT:
            self.user_properties.append(("seen", result.seen))
            self.add_report_section("call", "silent", result.seen)
        if report.fatal(self.rule, result):
            raise BrokenRule(report.line(self.rule, result))
        if result.broken:
            pytest.xfail(report.line(self.rule, result))

    def repr_failure(self, excinfo: Any, style: Any = None) -> Any:
        if isinstance(excinfo.value, BrokenRule):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, self.rule.check.__code__.co_firstlineno - 1, self.name
