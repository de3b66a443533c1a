"""What the documentation shows is what happens."""

import doctest
import re
import subprocess
import sys
from pathlib import Path

import arrow_dlpack
import arrow_dlpack.torch
import pytest
from arrow_dlpack import _core, udf
from arrow_dlpack._loader import loader as _loader
from conftest import LEFT_OUT

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))


def python_of(page):
    return re.findall(r"^```python\n(.*?)^```$", page.read_text("utf-8"), re.M | re.S)


BLOCKS = python_of(ROOT / "README.md")


def test_the_documents_have_python():
    assert BLOCKS
    assert any(python_of(page) for page in PAGES)


@pytest.mark.parametrize("block", BLOCKS)
def test_the_readme_runs(block):
    if "import torch" in block:
        # PyTorch keeps the offsets of nested tensors for as long as it lives.
        subprocess.run([sys.executable, "-c", block], check=True)
    else:
        exec(compile(block, "README.md", "exec"), {})


@pytest.mark.parametrize(
    "page", [page for page in PAGES if python_of(page)], ids=lambda page: page.stem
)
def test_the_pages_run_from_top_to_bottom(page):
    code = "\n".join(python_of(page))
    if left_out := [name for name in LEFT_OUT if f"import {name}\n" in code]:
        pytest.skip(f"{', '.join(left_out)} was left out")
    # In a process of its own: one of them forks, and PyTorch keeps what it was given.
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("module", [arrow_dlpack, _core, _loader, arrow_dlpack.torch, udf])
def test_docstrings_run(module):
    finder = doctest.DocTestFinder()
    runner = doctest.DocTestRunner(
        optionflags=doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL, verbose=False
    )
    examples = 0
    for test in finder.find(module, module.__name__.split(".")[-1]):
        examples += len(test.examples)
        runner.run(test)
    assert runner.failures == 0
    assert examples > 0 or module is _core


def fields_of(thing):
    return getattr(thing, "__dataclass_fields__", ())


def test_everything_public_says_what_it_is():
    for name in arrow_dlpack.__all__:
        thing = getattr(arrow_dlpack, name)
        assert thing.__doc__, name
        if isinstance(thing, type) and thing is not arrow_dlpack.UnsupportedError:
            for attribute, value in vars(thing).items():
                # The defaults of a dataclass's fields have the docstrings of their types.
                if not attribute.startswith("_") and attribute not in fields_of(thing):
                    assert value.__doc__, f"{name}.{attribute}"


def run_example(name):
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / name], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_demo_runs():
    output = run_example("flights.py")
    assert output.count("zero-copy") == 13
    assert "R^2 0.890" in output


def test_a_c_function_produces_and_consumes():
    assert run_example("c_producer/read.py").splitlines() == [
        "<arrow_dlpack.Tensor float32, shape (5,), strides (1,), cpu>",
        "NumPy: [ 0.  1.  4.  9. 16.]",
        "Arrow: [0.0, 1.0, 4.0, 9.0, 16.0]",
        "C: 4.0",
    ]
