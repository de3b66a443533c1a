import json

import pytest
from commands import BROKEN_NUMPY, REFERENCE, kit
from dlpack_conformance.rule import all_rules


def test_status_0_if_all_is_kept():
    done = kit(REFERENCE)
    assert (done.returncode, done.stderr) == (0, "")
    assert "DL101 pass           must    version-filled" in done.stdout


def test_status_1_for_a_broken_must(tmp_path):
    hooks = tmp_path / "hooks.py"
    hooks.write_text(BROKEN_NUMPY)
    done = kit("numpy", "--hooks", hooks)
    assert done.returncode == 1
    assert "DL111 fail           must    readonly-set\n" in done.stdout
    assert "      expected: READ_ONLY: 1\n      seen:     0\n" in done.stdout
    assert "broken, must or derived: DL111" in done.stdout


def test_status_0_for_a_broken_should(tmp_path):
    hooks = tmp_path / "hooks.py"
    hooks.write_text(
        "from dlpack_conformance.hooks.numpy import make, to_list, address, dtypes, shape_of\n"
    )
    done = kit("numpy", "--hooks", hooks)
    assert "DL144 fail           should" in done.stdout
    assert done.returncode == 0, done.stdout


def test_status_2_for_hooks_that_do_not_load(tmp_path):
    hooks = tmp_path / "hooks.py"
    hooks.write_text("1 / 0\n")
    done = kit("math", "--hooks", hooks)
    assert (done.returncode, done.stdout) == (2, "")
    assert "ZeroDivisionError: division by zero" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "which library?"),
        (["no_such_library"], "No module named 'no_such_library'"),
        (["math"], "there are no hooks for math"),
        (["math", "--hooks", "no_such_file.py"], "no_such_file.py is no Python file"),
        ([REFERENCE, "--rule", "DL999"], "there is no rule DL999"),
        ([REFERENCE, "--no-such-option"], "unrecognized arguments"),
    ],
)
def test_status_2_for_misuse(arguments, said):
    done = kit(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_json_has_every_rule():
    done = kit(REFERENCE, "--json")
    result = json.loads(done.stdout)
    assert (result["version"], result["library"]) == (1, REFERENCE)
    first = result["rules"][0]
    assert {key: first[key] for key in ("id", "slug", "level", "outcome")} == {
        "id": "DL101",
        "slug": "version-filled",
        "level": "must",
        "outcome": "pass",
    }
    assert done.returncode == 0


def test_list_is_the_rules_document():
    done = kit("--list")
    assert done.returncode == 0
    rows = done.stdout.splitlines()[2:]
    assert [row.split(" | ")[0].strip("| ") for row in rows] == [rule.id for rule in all_rules()]
