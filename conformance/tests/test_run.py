import os
import signal
import sys
import time
from dataclasses import replace

import pytest
from commands import REFERENCE
from dlpack_conformance.library import load
from dlpack_conformance.rule import Broken, Report, Rule, all_rules
from dlpack_conformance.run import CRASHED, FAIL, NOT_APPLICABLE, PASS, SILENT, run

LIB = load(REFERENCE)


def outcome(check, level="must", limit=30.0):
    rule = Rule("DL000", level, "a text", "c", check, None, None, False)
    return run(rule, LIB, limit=limit)


def crashes(lib):
    """The process lives."""
    os.kill(os.getpid(), signal.SIGSEGV)


def hangs(lib):
    """The call returns."""
    time.sleep(60)


def leaves(lib):
    """The process goes on."""
    print("goodbye", file=sys.stderr, flush=True)
    os._exit(3)


def exits(lib):
    """The process goes on."""
    sys.exit(3)


def crashes_at_the_end(lib):
    """What is made can be dropped."""

    class Trap:
        def __del__(self):
            os.kill(os.getpid(), signal.SIGABRT)

    trap = Trap()
    trap.cycle = trap


def breaks(lib):
    """One is two."""
    raise Broken(1, 2)


def raises(lib):
    """The library works."""
    raise ValueError("it\ndoes not")


def lacks(lib):
    """It has one."""
    lib.no_such_verb()


def reports(lib):
    """What it does."""
    return Report("something")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="these rules are in no module")
class TestFork:
    def test_crash_is_told_by_its_signal(self):
        assert outcome(crashes).outcome == CRASHED
        assert outcome(crashes).seen == "SIGSEGV"

    def test_hang_is_ended(self):
        start = time.monotonic()
        result = outcome(hangs, limit=0.5)
        assert (result.outcome, result.seen) == (CRASHED, "a hang: no end within 0.5 s")
        assert time.monotonic() - start < 30

    def test_exit_is_told_with_the_last_words(self):
        result = outcome(leaves)
        assert (result.outcome, result.seen) == (CRASHED, "an exit with status 3 (goodbye)")
        assert "SystemExit: 3" in outcome(exits).seen

    def test_crash_of_what_the_check_leaves_behind_is_the_rules(self):
        assert outcome(crashes_at_the_end).seen == "SIGABRT"

    def test_crash_leaves_the_next_rule_alone(self):
        outcome(crashes)
        assert outcome(lambda lib: None).outcome == PASS

    def test_broken_rule_says_what_was_expected_and_seen(self):
        result = outcome(breaks)
        assert (result.outcome, result.expected, result.seen) == (FAIL, "1", "2")

    def test_exception_of_the_library_breaks_the_rule(self):
        result = outcome(raises)
        assert result.outcome == FAIL
        assert result.expected == "The library works."
        assert result.seen.startswith("ValueError: it does not (at ")

    def test_missing_verb_is_not_applicable(self):
        result = outcome(lacks)
        assert (result.outcome, "no_such_verb" in result.seen) == (NOT_APPLICABLE, True)

    def test_silent_rule_reports_and_never_fails(self):
        assert outcome(reports).seen == "something"
        assert outcome(raises, level="silent").outcome == SILENT
        assert outcome(breaks, level="silent").outcome == SILENT

    def test_what_may_be_is_reported_and_never_fails(self):
        result = outcome(breaks, level="may")
        assert (result.outcome, result.seen) == (SILENT, "Broken: expected 1, seen 2")
        assert outcome(crashes, level="may").outcome == CRASHED


RULE = next(rule for rule in all_rules() if rule.id == "DL107")


def test_fresh_process_judges_alike():
    assert run(replace(RULE, fresh=True), LIB).outcome == PASS


@pytest.mark.parametrize(
    ("take", "seen"),
    [
        ("os.kill(os.getpid(), 11)", "SIGSEGV"),
        ("os._exit(3)", "an exit with status 3"),
        ("time.sleep(60)", "a hang: no end within 2 s"),
    ],
)
def test_fresh_process_tells_crash_exit_and_hang_apart(tmp_path, take, seen):
    hooks = tmp_path / "hooks.py"
    text = f"import os, time\nsurvives_fork = False\ndef take(x, **keywords):\n    {take}\n"
    hooks.write_text(text)
    result = run(RULE, load("math", str(hooks)), str(hooks), limit=2.0)
    assert (result.outcome, result.seen) == (CRASHED, seen)
