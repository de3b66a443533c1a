import json

import pytest
from commands import BROKEN_NUMPY, HERE, REFERENCE, kit
from dlpack_conformance import __main__
from dlpack_conformance.rule import RULES, all_rules

all_rules()


@pytest.fixture
def main(monkeypatch):
    """The command, of a package that has only these rules."""

    def main(rules, *arguments):
        few = [RULES[id] for id in rules.split()]
        monkeypatch.setattr(__main__, "all_rules", lambda: few)
        return __main__.main([*map(str, arguments)])

    return main


def test_status_0_if_all_is_kept():
    done = kit(REFERENCE)
    assert (done.returncode, done.stderr) == (0, "")
    assert "DL101 pass           must    version-filled" in done.stdout


def test_status_1_for_a_broken_must(main, tmp_path, capsys):
    hooks = tmp_path / "hooks.py"
    hooks.write_text(BROKEN_NUMPY)
    assert main("DL101 DL111 DL144", "numpy", "--hooks", hooks) == 1
    said = capsys.readouterr().out
    assert "DL111 fail           must    readonly-set\n" in said
    assert "      expected: READ_ONLY: 1\n      seen:     0\n" in said
    assert "broken, must or derived: DL111" in said


def test_status_0_for_a_broken_should(main, capsys):
    assert main("DL101 DL144", "numpy") == 0
    assert "DL144 fail           should" in capsys.readouterr().out


def test_library_is_not_accused_of_what_its_hooks_leave_out(tmp_path):
    """Of no rule: the whole of them runs."""
    hooks = tmp_path / "hooks.py"
    hooks.write_text(
        "from dlpack_conformance.hooks.numpy import make, to_list, address, dtypes, shape_of\n"
    )
    done = kit("numpy", "--hooks", hooks)
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


def test_json_has_every_rule(main, capsys):
    assert main("DL101 DL110", REFERENCE, "--json") == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["version"], result["library"]) == (1, REFERENCE)
    first = result["rules"][0]
    assert {key: first[key] for key in ("id", "slug", "level", "outcome")} == {
        "id": "DL101",
        "slug": "version-filled",
        "level": "must",
        "outcome": "pass",
    }
    assert result["rules"][1]["outcome"] == "silent"


def test_list_has_every_rule():
    done = kit("--list")
    assert done.returncode == 0
    rows = done.stdout.splitlines()[2:]
    assert [row.split(" | ")[0].strip("| ") for row in rows] == [rule.id for rule in all_rules()]


def test_document_is_up_to_date():
    """python -m dlpack_conformance --document > RULES.md"""
    done = kit("--document")
    assert done.returncode == 0
    assert done.stdout == (HERE.parent / "RULES.md").read_text()
