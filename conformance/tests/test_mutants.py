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
from commands import REFERENCE
from dlpack_conformance.library import load
from dlpack_conformance.rule import all_rules
from dlpack_conformance.run import CRASHED, Result, judge, no_core_dump
from mutants import all_mutants

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
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader) as pipe:
        results = [json.loads(line) for line in pipe]
    os.waitpid(child, 0)
    return {id: Result(**result) for id, result in results}


def outcomes(plant):
    """The result of every rule, in one fork as far as it goes: one for each would be slow."""
    results, left = {}, RULES
    while left:
        got = in_one_fork(plant, left)
        left = left[len(got) :]
        if left:
            # The process has ended within this rule, perhaps by what one before it left behind.
            first, *left = left
            got |= in_one_fork(plant, [first]) or {first.id: Result(CRASHED)}
        results |= got
    return results


@needs_fork
def test_correct_library_fails_no_rule():
    assert [id for id, result in outcomes(lambda: None).items() if result.broken] == []


@needs_fork
@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_mutant_fails_its_rule_and_those_beside_it(mutant):
    broken = {id: result for id, result in outcomes(mutant.plant).items() if result.broken}
    assert sorted(broken) == sorted({*filter(None, [mutant.rule]), *mutant.beside}), broken
    # A check that drops tensors while it fails hides from its reader why.
    assert not any("SystemError" in result.seen for result in broken.values()), broken


def test_each_judged_rule_has_a_mutant():
    proved = {mutant.rule for mutant in MUTANTS}
    modules = {f"dlpack_conformance.rules.{mutant.module}" for mutant in MUTANTS}
    judged = [rule.id for rule in RULES if rule.judged and rule.check.__module__ in modules]
    assert [id for id in judged if id not in proved] == []
