"""What a release is made of: `.ci/release.py` on a checkout that is ready, and on others."""

import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / ".ci"))

import release  # noqa: E402

READY = {
    "Cargo.toml": '[workspace.package]\nversion = "0.2.0"\nrepository = "https://example.org/a/b"\n',
    "CHANGELOG.md": "## 0.2.0 (2027-01-02)\n\n- New.\n\n### More\n\n## 0.1.0 (2026-12-01)\n",
    "README.md": "Install it.\n",
    "datafusion/Cargo.toml": 'arrow-dlpack = { version = "0.2.0", path = ".." }\n',
}


@pytest.fixture
def checkout(tmp_path):
    for name, text in READY.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path


def test_a_checkout_that_is_ready_has_no_problem(checkout):
    assert list(release.problems(checkout, "v0.2.0")) == []
    assert list(release.problems(checkout, None)) == []


@pytest.mark.parametrize(
    ("file", "old", "new", "problem"),
    [
        ("Cargo.toml", "0.2.0", "0.1.0", "the tag is v0.2.0, and the version in Cargo.toml 0.1.0"),
        ("Cargo.toml", "repository", "homepage", "Cargo.toml has no repository"),
        ("CHANGELOG.md", "0.2.0 (2027-01-02)", "Unreleased: 0.2.0", "'Unreleased: 0.2.0'"),
        ("README.md", "Install it", "It is not on the registries yet", "not on the registries yet"),
        ("datafusion/Cargo.toml", "0.2.0", "0.1.0", "asks for another arrow-dlpack than 0.2.0"),
    ],
)
def test_what_is_missing_is_named(checkout, file, old, new, problem):
    path = checkout / file
    path.write_text(path.read_text("utf-8").replace(old, new), "utf-8")
    assert any(problem in found for found in release.problems(checkout, "v0.2.0"))


def test_notes_are_the_section_of_the_version(checkout):
    assert release.section(checkout) == ("0.2.0 (2027-01-02)", "- New.\n\n### More\n")


def test_a_version_without_a_section_is_refused(checkout):
    (checkout / "CHANGELOG.md").write_text("## 0.1.0 (2026-12-01)\n", "utf-8")
    with pytest.raises(SystemExit, match=r"no section of 0\.2\.0"):
        release.section(checkout)


def test_the_python_package_links_to_the_repository():
    """By maturin, from `repository` in Cargo.toml, and only where `urls` is said to be dynamic."""
    project = tomllib.loads((ROOT / "python/pyproject.toml").read_text("utf-8"))["project"]
    assert set(project["dynamic"]) == {"version", "urls"}


def test_this_checkout_has_notes(capsys):
    release.main("notes")
    assert len(capsys.readouterr().out) > 1000
