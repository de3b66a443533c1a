"""The reports of `upstream/`: each still shows what it claims, and quotes what the header says."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
from commands import HERE

UPSTREAM = HERE.parent / "upstream"
REPORTS = sorted(path for path in UPSTREAM.glob("*.md") if path.name != "README.md")
MENDED = "mended upstream: retire it"


def blocks(report, language):
    return re.findall(rf"```{language}\n(.*?)```", report.read_text("utf-8"), re.DOTALL)


SCRIPTS = [report for report in REPORTS if blocks(report, "python")]


def lacking(script):
    """The libraries that it imports and this machine has not got."""
    names = re.findall(r"^(?:import|from) (\w+)", script, re.MULTILINE)
    return [name for name in names if importlib.util.find_spec(name) is None]


@pytest.mark.parametrize("report", SCRIPTS, ids=lambda path: path.stem)
def test_script_shows_the_fault(report):
    (script,) = blocks(report, "python")
    said = blocks(report, "text")[0].splitlines()[-1]
    if missing := lacking(script):
        pytest.skip(f"not seen: {', '.join(missing)} is not installed")
    command = [sys.executable, "-W", "error", "-c", f"{NO_CORE_DUMP}\n{script}"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode, MENDED
    if said in ("Segmentation fault", "Aborted"):  # where memory is corrupted, any signal
        # JAX copies what is not aligned for it, and fails in the call then.
        assert ran.returncode < 0 or "bad_function_call" in ran.stderr, ran.stderr
    else:
        assert ran.stderr.splitlines()[-1] == said


NO_CORE_DUMP = """\
import resource
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))"""


def header():
    """dlpack.h as apache-tvm-ffi has it, without the signs of comments and of code."""
    spec = importlib.util.find_spec("tvm_ffi")
    if spec is None:
        pytest.skip("not seen: apache-tvm-ffi, which has dlpack.h, is not installed")
    text = (Path(spec.origin).parent / "include/dlpack/dlpack.h").read_text("utf-8")
    return plain(re.sub(r"^ *\*", "", text, flags=re.MULTILINE))


def plain(text):
    return " ".join(text.replace("`", "").replace(r"\note", "").split())


def quotes(report):
    """Those behind a mention of dlpack.h, each in one line."""
    parts = report.read_text("utf-8").split("dlpack.h)", 1)[1:]
    for part in parts:
        for quote in re.findall(r"(?:^ *> .*\n)+", part, re.MULTILINE):
            yield plain(re.sub(r"^ *> ", "", quote, flags=re.MULTILINE))


QUOTING = [report for report in REPORTS if list(quotes(report))]


@pytest.mark.parametrize("report", QUOTING, ids=lambda path: path.stem)
def test_header_still_says_what_is_quoted(report):
    text = header()
    assert [quote for quote in quotes(report) if quote not in text] == [], MENDED


def test_index_has_each_report_once():
    index = (UPSTREAM / "README.md").read_text("utf-8")
    assert sorted(re.findall(r"\]\(([\w-]+\.md)\)", index)) == [path.name for path in REPORTS]
