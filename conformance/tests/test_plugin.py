import re
import xml.etree.ElementTree

import pytest
from commands import BROKEN_NUMPY, HERE, REFERENCE, python
from dlpack_conformance.rule import all_rules

COUNT = sum(rule.id.startswith("DL") for rule in all_rules())


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder that says what the wheel says: pytest finds the plugin by its entry point."""
    folder = tmp_path_factory.mktemp("site")
    about = folder / "dlpack_conformance-2026.1.1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Name: dlpack-conformance\nVersion: 2026.1.1\n")
    project = (HERE.parent / "pyproject.toml").read_text()
    entry = 'pytest11]\ndlpack_conformance = "dlpack_conformance.plugin"'
    assert entry in project
    (about / "entry_points.txt").write_text("[" + entry.replace('"', "") + "\n")
    return folder


@pytest.fixture
def pytest_run(installed, tmp_path):
    def run(*arguments):
        command = ["-m", "pytest", "-p", "no:cacheprovider", "-rA", *arguments]
        return python(*command, cwd=tmp_path, path=[installed])

    return run


def test_library_is_judged(pytest_run, tmp_path):
    report = tmp_path / "report.xml"
    kept = tmp_path / "xfails.txt"
    kept.write_text("# https://github.com/numpy/numpy/issues/0\nDL146\nDL163 # the same\n")
    few = ["DL101", "DL110", "DL111", "DL144", "DL146", "DL163"]
    done = pytest_run(
        "--pyargs", "dlpack_conformance", "--dlpack-module", "numpy",
        "--dlpack-xfails-file", kept, "--junitxml", report, "-k", " or ".join(few),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert f"collected {COUNT} items / {COUNT - len(few)} deselected" in done.stdout
    assert "PASSED" in done.stdout
    assert "descriptor.py::DL101[numpy]" in done.stdout
    # A should that is not kept does not end the run.
    assert "XFAIL" in done.stdout
    cases = xml.etree.ElementTree.parse(report).iter("testcase")
    names = {case.get("name"): case for case in cases}
    assert len(names) == len(few)
    properties = {p.get("name"): p.get("value") for p in names["DL110[numpy]"].iter("property")}
    assert properties == {"level": "silent", "seen": "accepted"}


def test_broken_must_fails_and_says_why(pytest_run, tmp_path):
    hooks = tmp_path / "hooks.py"
    hooks.write_text(BROKEN_NUMPY)
    done = pytest_run(
        "--pyargs", "dlpack_conformance", "--dlpack-module", "numpy", "--dlpack-hooks", hooks,
        "-k", "DL111",
    )  # fmt: skip
    assert done.returncode == 1
    assert "expected: READ_ONLY: 1" in done.stdout
    assert "1 failed" in done.stdout


def test_rules_of_the_skips_file_do_not_run(pytest_run, tmp_path):
    skips = tmp_path / "skips.txt"
    skips.write_text("\n".join(rule.id for rule in all_rules() if rule.id != "DL101"))
    done = pytest_run(
        "--pyargs", "dlpack_conformance", "--dlpack-module", REFERENCE,
        "--dlpack-skips-file", skips,
    )  # fmt: skip
    assert done.returncode == 0
    assert f"1 passed, {COUNT - 1} skipped" in done.stdout


def test_library_without_hooks_is_misuse(pytest_run):
    done = pytest_run("--pyargs", "dlpack_conformance", "--dlpack-module", "math")
    assert done.returncode == 4
    assert "there are no hooks for math" in done.stdout + done.stderr


def test_plugin_does_nothing_unless_asked(pytest_run, tmp_path):
    (tmp_path / "test_mine.py").write_text("def test_mine(): pass\n")
    done = pytest_run()
    assert done.returncode == 0
    assert "collected 1 item" in done.stdout
    assert pytest_run("--pyargs", "dlpack_conformance").returncode == 5  # nothing collected


def test_plugin_lives_beside_array_api_tests(pytest_run, tmp_path):
    """Two plugins with one option's name end pytest: these are its conftest's options."""
    names = ["xfails-file", "skips-file", "max-examples", "disable-extension", "disable-deadline"]
    lines = [f"    parser.addoption('--{name}')\n" for name in names]
    (tmp_path / "conftest.py").write_text("def pytest_addoption(parser):\n" + "".join(lines))
    done = pytest_run(
        "--pyargs", "dlpack_conformance", "--dlpack-module", REFERENCE, "-k", "DL101",
        "--max-examples", "1",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_option_has_the_prefix():
    text = (HERE.parent / "dlpack_conformance" / "plugin.py").read_text()
    options = re.findall(r'addoption\(\s*f?"([^"]*)"', text)
    assert len(options) == text.count("addoption(") - 1  # that is the hook
    assert all(option.startswith("--dlpack-") for option in options)
