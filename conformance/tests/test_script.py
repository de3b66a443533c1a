import subprocess
import sys

import pytest
from commands import REFERENCE, kit
from dlpack_conformance.library import load
from dlpack_conformance.rule import RULES, all_rules
from dlpack_conformance.script import script


def run_alone(text):
    """Without the package: -I forgets PYTHONPATH and the current folder."""
    command = [sys.executable, "-I", "-W", "error", "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("rule", ["DL103", "DL104", "DL111", "DL118", "DL142", "DL158"])
def test_script_of_numpy_runs_without_us(rule):
    done = kit("numpy", "--rule", rule)
    assert (done.returncode, done.stderr) == (0, "")
    assert "dlpack_conformance" not in done.stdout
    assert len(done.stdout.splitlines()) < 450
    assert all(line.strip() or not line for line in done.stdout.splitlines())
    alone = run_alone(done.stdout)
    assert (alone.returncode, alone.stdout, alone.stderr) == (0, "the rule holds\n", "")


def test_script_of_a_broken_rule_ends_with_what_was_seen(tmp_path):
    hooks = tmp_path / "hooks.py"
    hooks.write_text(
        "import numpy\n"
        "from dlpack_conformance.hooks.numpy import dtypes\n"
        "def make(values, dtype='float32', shape=None, *, readonly=False):\n"
        "    return numpy.array(values, dtype)\n"
    )
    alone = run_alone(kit("numpy", "--hooks", hooks, "--rule", "DL111").stdout)
    assert alone.returncode == 1
    assert alone.stderr.endswith("Broken: expected READ_ONLY: 1, seen 0\n")


def test_script_has_what_the_library_leaves_out(tmp_path):
    hooks = tmp_path / "hooks.py"
    hooks.write_text("from dlpack_conformance.hooks.numpy import make, to_list, dtypes\n")
    alone = run_alone(kit("numpy", "--hooks", hooks, "--rule", "DL118").stdout)
    assert (alone.returncode, alone.stdout, alone.stderr) == (0, "the rule holds\n", "")


def test_script_reports_where_texts_are_silent():
    alone = run_alone(kit("numpy", "--rule", "DL110").stdout)
    assert (alone.returncode, alone.stdout) == (0, "accepted\n")


@pytest.mark.parametrize("library", [REFERENCE, "numpy"])
def test_every_rule_is_a_script(library):
    lib = load(library)
    for rule in all_rules():
        compile(script(rule, lib), rule.id, "exec")


def test_script_keeps_the_rules_sentence_and_no_other_docstring():
    text = script(RULES["DL103"], load("numpy"))
    assert "correct until a rule changes" not in text
    assert RULES["DL103"].sentence in text


def test_name_of_two_things_is_no_script(tmp_path):
    hooks = tmp_path / "hooks.py"
    hooks.write_text(
        "from decimal import Decimal as Producer\n"
        "from dlpack_conformance.hooks.numpy import *\n"
        "def take(x):\n"
        "    return Producer(0)\n"
    )
    lib = load("numpy", str(hooks))
    with pytest.raises(ValueError, match=r"Producer is of decimal.Decimal and of dlpack_conf"):
        script(RULES["DL107"], lib)
