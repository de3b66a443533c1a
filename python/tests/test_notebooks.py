"""The notebooks run from top to bottom, and show what their files have."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import LEFT_OUT

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))

MOST = 300_000


def test_there_are_notebooks():
    assert len(NOTEBOOKS) == 4


@pytest.mark.skipif("matplotlib" in LEFT_OUT or "torch" in LEFT_OUT, reason="was left out")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_shows_what_happens(path):
    runner = ROOT / ".ci" / "notebooks.py"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", runner, "--check", path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_says_what_was_copied_and_is_small(path):
    cells = json.loads(path.read_text("utf-8"))["cells"]
    headings = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    assert any(text.startswith("## What was copied") for text in headings)
    assert path.stat().st_size < MOST
