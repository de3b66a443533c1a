"""`python -m arrow_dlpack` reports whatever it finds, and fails for none of it."""

import json
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import arrow_dlpack.__main__ as first_aid
import pytest
from arrow_dlpack._doctor.libraries import ARROW_LIBRARIES, TENSOR_LIBRARIES
from conftest import LEFT_OUT, environment


def run(*arguments, path=None, env=None, code=0):
    done = subprocess.run(
        [sys.executable, "-m", "arrow_dlpack", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=environment(path) if path else env,
    )
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


def outcomes(report):
    return {(x["way"], x["from"], x["to"]): x["outcome"] for x in report["exchanges"]}


@pytest.fixture(scope="module")
def everything():
    """Whatever it knows, or what was not left out of it."""
    names = [name for name in first_aid.NAMES if name not in LEFT_OUT] if LEFT_OUT else []
    return json.loads(run("--json", *names))


def test_everything_that_is_installed_is_tried(everything):
    names = [name for name in first_aid.NAMES if name not in LEFT_OUT]
    assert list(everything["libraries"]) == names
    libraries = [ARROW_LIBRARIES, TENSOR_LIBRARIES]
    arrow, tensor = (
        [name for name in kind if kind[name].module not in LEFT_OUT] for kind in libraries
    )
    arrays = [name for name in arrow if ARROW_LIBRARIES[name].array]
    states = everything["libraries"]
    there = {states[name.partition(" ")[0]]["state"] for name in (*arrow, *tensor)}
    assert there == {"installed"}
    assert set(outcomes(everything)) == {
        *(("Arrow to tensor", a, t) for a in arrow for t in tensor),
        *(("tensor to Arrow", t, a) for a in arrays for t in tensor),
    }
    assert set(outcomes(everything).values()) == {"zero-copy", "copy"}
    assert all(x["nanoseconds"] > 0 for x in everything["exchanges"])
    assert outcomes(everything)["Arrow to tensor", "pyarrow", "numpy"] == "zero-copy"
    assert outcomes(everything)["tensor to Arrow", "torch", "pandas"] == "copy"


def test_every_key_is_documented(everything):
    entries = [everything, everything["libraries"]["numpy"], everything["exchanges"][0]]
    for key in {key for entry in entries for key in entry}:
        assert f"``{key}``" in first_aid.__doc__, key


def test_only_what_is_named_is_tried():
    lines = run("numpy", "pyarrow").splitlines()
    assert lines[0].startswith("arrow_dlpack ")
    versions = [f"{name:15}{metadata.version(name)}" for name in ("numpy", "pyarrow")]
    assert lines[2:4] == versions
    for row in ("numpy", "pyarrow Array", "pyarrow Tensor"):
        assert sum(line.startswith(row) for line in lines) >= 2
    assert "torch" not in "".join(lines)
    unit = lines.index(first_aid.LEGEND)
    assert unit < lines.index("Arrow to tensor"), "and there is nothing below to see"


def test_a_library_without_a_partner_gets_one():
    report = json.loads(run("--json", "pandas"))
    assert outcomes(report)["Arrow to tensor", "pandas", "numpy"] == "zero-copy"


BROKEN = {
    "torch": ("raise RuntimeError('the wrong CPU\\nmore')", "broken, RuntimeError: the wrong CPU"),
    "jax": ("raise ModuleNotFoundError(\"No module named 'jax'\", name='jax')", "missing"),
    "paddle": ("import not_here", "broken, ModuleNotFoundError: No module named 'not_here'"),
    "polars": ("raise SystemExit(3)", "broken, SystemExit: 3"),
    "duckdb": ("import os; os.abort()", "crashes, exit code -6"),
}


def test_what_is_broken_is_reported_in_a_word_and_the_others_are_tried(tmp_path):
    for name, (code, _) in BROKEN.items():
        (tmp_path / f"{name}.py").write_text(code)
    lines = run("numpy", "pyarrow", *BROKEN, path=tmp_path).splitlines()
    for name, (_, words) in BROKEN.items():
        assert f"{name:15}{words}" in lines
    assert [line[:5] for line in lines].count("numpy") == 3, "its version, and both ways"


def test_a_library_that_hangs_is_reported(tmp_path, monkeypatch):
    (tmp_path / "duckdb.py").write_text("import time; time.sleep(600)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(first_aid, "PATIENCE", 15)
    libraries = first_aid.probed(["numpy", "duckdb"])["libraries"]
    assert libraries["numpy"]["state"] == "installed"
    assert libraries["duckdb"]["problem"] == "no answer in 15 s"


def test_a_library_that_does_not_work_is_reported(tmp_path):
    (tmp_path / "torch.py").write_text("__version__ = '0'")
    text = run("torch", "numpy", path=tmp_path)
    assert f"{first_aid.LEGEND} no, wrong: see below.\n\nArrow to tensor" in text
    assert "pyarrow to torch: AttributeError: module 'torch' has no attribute 'from_dlpack'" in text
    report = json.loads(run("--json", "torch", path=tmp_path))
    assert outcomes(report) == {("Arrow to tensor", "pyarrow", "torch"): "refused"}


def test_nothing_at_all_is_reported_too(tmp_path):
    for library in (*TENSOR_LIBRARIES.values(), *ARROW_LIBRARIES.values()):
        root = library.module.partition(".")[0]
        (tmp_path / f"{root}.py").write_text(f"raise ModuleNotFoundError(name={root!r})")
    text = run(path=tmp_path)
    assert text.count("missing") == len(first_aid.NAMES)
    assert text.endswith(f"{first_aid.NOTHING}\n")


def test_an_unknown_name_is_an_error_that_knows_them_all():
    words = run("numpyy", code=2)
    assert "numpyy" in words
    assert "numpy" in run("--help")


def test_a_library_is_checked_by_the_kit_if_it_is_there():
    path = os.environ["PYTHONPATH"].split(os.pathsep)
    without = os.pathsep.join(folder for folder in path if Path(folder).name != "conformance")
    env = os.environ | {"PYTHONPATH": without}
    assert "pip install dlpack-conformance" in run("check", "numpy", env=env, code=2)
    script = run("check", "numpy", "--rule", "DL101")
    assert "numpy" in script
    assert "dlpack_conformance" not in script
    assert "which library" in run("check", code=2)
