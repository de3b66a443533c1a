"""Each rule proves itself: a library with one planted fault fails it, and no rule but it and those
that the fault breaks too."""

import dataclasses
import faulthandler
import gc
import json
import os
import signal
import traceback

import pytest
from commands import HERE, REFERENCE, python
from dlpack_conformance.library import load
from dlpack_conformance.rule import all_rules
from dlpack_conformance.run import CRASHED, MARK, NOT_APPLICABLE, Result, judge, no_core_dump
from mutants import all_mutants
from mutants.across import ACROSS

LIB = load(REFERENCE)
RULES = [rule for rule in all_rules() if LIB.concerned_by(rule)]
MUTANTS = all_mutants()
LIMIT = 10  # seconds for a check

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="a fault is planted in a fork")


def in_one_fork(plant, rules):
    """The results of the rules until one ends the process."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            faulthandler.disable()
            no_core_dump()
            gc.freeze()  # each check collects, and what is here already is much
            plant()
            for rule in rules:
                signal.alarm(LIMIT)
                result = dataclasses.asdict(judge(rule, LIB))
                gc.freeze()  # so is what the kit keeps for the life of the process
                os.write(writer, json.dumps([rule.id, result]).encode() + b"\n")
                gc.freeze()  # what leaks is not looked through at each collection
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader) as pipe:
        results = [json.loads(line) for line in pipe]
    os.waitpid(child, 0)
    return {id: Result(**result) for id, result in results}


def rules_for(mutant, every):
    """Those of its group and beside it; with --every-rule all that there are."""
    group = f"dlpack_conformance.rules.{mutant.module}"
    named = {mutant.rule, *mutant.beside}
    if every or mutant.rule is None:
        return RULES
    return [rule for rule in RULES if rule.check.__module__ == group or rule.id in named]


def outcomes(plant, rules=RULES):
    """The results of the rules, in one fork as far as it goes: one for each would be slow."""
    results, left = {}, rules
    while left:
        got = in_one_fork(plant, left)
        left = left[len(got) :]
        if left:
            # The process has ended within this rule, perhaps by what one before it left behind.
            first, *left = left
            got |= in_one_fork(plant, [first]) or {first.id: Result(CRASHED)}
        results |= got
    return results


def at_the_end(mutant, rule):
    """The result of a rule on the end of the process, which a fork of pytest must not reach."""
    plant = f"[mutant.plant() for mutant in all_mutants() if str(mutant) == {str(mutant)!r}]"
    judges = f"fresh({rule!r}, {REFERENCE!r}, None)"
    code = "from mutants import all_mutants; from dlpack_conformance.run import fresh"
    ended = python("-c", f"{code}; {plant}; {judges}", path=[HERE])
    if ended.returncode:
        return Result(CRASHED, seen=f"status {ended.returncode} {ended.stderr}")
    return Result(**json.loads(ended.stdout.partition(MARK)[2]))


@needs_fork
def test_correct_library_fails_no_rule():
    assert [id for id, result in outcomes(lambda: None).items() if result.broken] == []


@needs_fork
@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_mutant_fails_its_rule_and_those_beside_it(mutant, request):
    every = request.config.getoption("--every-rule")
    results = outcomes(mutant.plant, rules_for(mutant, every))
    across = ACROSS.get(str(mutant), "").split() if every else []
    if "DL228" in results and results["DL228"].outcome != NOT_APPLICABLE:
        results["DL228"] = at_the_end(mutant, "DL228")
    broken = {id: result for id, result in results.items() if result.broken}
    expected = {*filter(None, [mutant.rule]), *mutant.beside, *across}
    assert sorted(broken) == sorted(expected), broken
    # A check that drops tensors while it fails hides from its reader why.
    assert not any("SystemError" in result.seen for result in broken.values()), broken


def test_each_judged_rule_has_a_mutant():
    proved = {mutant.rule for mutant in MUTANTS}
    modules = {f"dlpack_conformance.rules.{mutant.module}" for mutant in MUTANTS}
    judged = [rule.id for rule in RULES if rule.judged and rule.check.__module__ in modules]
    assert [id for id in judged if id not in proved] == []


def test_rules_across_are_of_mutants_that_there_are():
    assert ACROSS.keys() <= {str(mutant) for mutant in MUTANTS}
    assert {id for ids in ACROSS.values() for id in ids.split()} <= {rule.id for rule in RULES}
