import pytest
from commands import REFERENCE
from dlpack_conformance.library import load
from dlpack_conformance.rule import LEVELS, Report, all_rules
from dlpack_conformance.run import PASS, SILENT, run

LIB = load(REFERENCE)


@pytest.mark.parametrize(
    "rule", [r for r in all_rules() if LIB.concerned_by(r)], ids=lambda r: r.id
)
def test_correct_library_keeps_the_rule(rule):
    result = run(rule, LIB)
    assert not result.broken, result
    if rule.id.startswith("DL1"):
        assert result.outcome in (PASS, SILENT), result


@pytest.mark.parametrize("rule", all_rules(), ids=lambda r: r.id)
def test_rule_says_what_it_is(rule):
    assert rule.level in LEVELS
    assert rule.sentence.endswith((".", ")"))
    assert rule.source
    assert set(rule.who) <= set("pcxy")
    if rule.level == "silent":
        assert rule.check.__annotations__["return"] is Report
