"""The table of traps names tests that there are."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TABLE = (ROOT / "docs" / "development" / "traps.md").read_text("utf-8")
ROWS = re.findall(r"^\| (.+?) \| (.+?) \| (.+?) \|$", TABLE, re.MULTILINE)
ROWS = [row for row in ROWS if row[0] != "trap"]
NAME = re.compile(r"`([\w/]+\.(?:rs|py))::(\w+)`")


def is_there(file, name):
    folder = ROOT / "python" / "tests" if file.endswith(".py") else ROOT
    if file.endswith(".rs") and "/" not in file:
        folder = ROOT / "tests"
    declared = f"def {name}(" if file.endswith(".py") else f"fn {name}("
    return (folder / file).exists() and declared in (folder / file).read_text("utf-8")


def test_there_are_traps():
    assert len(ROWS) > 80
    assert TABLE.count("\n| ") == len(ROWS) + TABLE.count("\n| trap |"), "a row that is none"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_each_trap_has_a_test_and_each_test_is_there(row):
    trap, rust, python = row
    assert NAME.findall(rust + python), f"nothing tests: {trap}"
    for cell, suffix in (rust, ".rs"), (python, ".py"):
        for file, name in NAME.findall(cell):
            assert file.endswith(suffix), "in the other column"
            assert is_there(file, name), f"there is no {file}::{name}"
        # What looks like a name must have been read as one.
        assert cell.count("::") == len(NAME.findall(cell))
