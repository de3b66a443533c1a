"""What makes a wheel the same wherever it is built: `.ci/wheels.py`; and new skips elsewhere."""

import base64
import hashlib
import json
import sys
import zipfile
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / ".ci"))

import licences  # noqa: E402
import platforms  # noqa: E402
import wheels  # noqa: E402

OWN, PART, OTHER = ("own", "0.1.0"), ("part", "1.2.3"), ("not-linked", "1.0.0")
INFO = "own-0.1.0.dist-info"


@pytest.fixture
def linked(monkeypatch):
    monkeypatch.setattr(licences, "linked", lambda _: {OWN, PART})
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")


def wheel(path, folder, serial):
    """As maturin makes it in that folder."""
    here = f"path+file://{folder}/python#own@0.1.0"
    refs = {part: f"registry+index#{part[0]}" for part in (PART, OTHER)}
    sbom = {
        "serialNumber": serial,
        "metadata": {
            "timestamp": serial,
            "component": {"bom-ref": here, "name": "own", "version": "0.1.0"},
        },
        "components": [
            {"bom-ref": ref, "name": name, "version": version}
            for (name, version), ref in refs.items()
        ],
        "dependencies": [{"ref": here, "dependsOn": list(refs.values())}, {"ref": refs[OTHER]}],
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in {
            f"{INFO}/sboms/own.json": json.dumps(sbom),
            f"{INFO}/RECORD": "to be made anew",
            "own/__init__.py": "pass\n",
        }.items():
            archive.writestr(zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), text)
    return path


def test_two_builds_are_one_wheel(tmp_path, linked):
    one = wheel(tmp_path / "one.whl", "/home/one/checkout", "1")
    two = wheel(tmp_path / "two.whl", "/build/two", "2")
    for path in one, two:
        wheels.tidy(path, "a target")
    assert one.read_bytes() == two.read_bytes()


def test_an_sbom_has_what_is_linked_and_nothing_of_the_machine(tmp_path, linked):
    path = wheel(tmp_path / "one.whl", "/home/one/checkout", "1")
    wheels.tidy(path, "a target")
    with zipfile.ZipFile(path) as archive:
        text = archive.read(f"{INFO}/sboms/own.json")
        record = archive.read(f"{INFO}/RECORD").decode()
    sbom = json.loads(text)
    assert [part["name"] for part in sbom["components"]] == ["part"]
    assert sbom["dependencies"] == [
        {"ref": "path+file:///arrow-dlpack/python#own@0.1.0", "dependsOn": ["registry+index#part"]}
    ]
    assert sbom["metadata"]["timestamp"] == "1970-01-02T00:00:00Z"
    assert b"/home/one" not in text
    digest = base64.urlsafe_b64encode(hashlib.sha256(text).digest()).decode().rstrip("=")
    assert f"{INFO}/sboms/own.json,sha256={digest},{len(text)}" in record.splitlines()


def test_a_crate_that_the_sbom_lacks_is_named(tmp_path, linked, monkeypatch):
    monkeypatch.setattr(licences, "linked", lambda _: {OWN, PART, ("forgotten", "2.0.0")})
    path = wheel(tmp_path / "one.whl", "/home/one/checkout", "1")
    with pytest.raises(SystemExit, match="forgotten"):
        wheels.tidy(path, "a target")


def test_a_path_of_this_machine_is_found(tmp_path):
    path = tmp_path / "one.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("clean", "crates/serde/src/lib.rs")
        archive.writestr("module", f"\0{ROOT}/src/lib.rs\0")
    assert wheels.paths_of_this_machine(path) == {f"{ROOT}/src/lib.rs"}


@pytest.mark.parametrize(
    ("skipped", "is_new"),
    [({"a": 2}, False), ({"a": 1}, False), ({"a": 3}, True), ({"b": 1}, True)],
)
def test_a_new_skip_is_an_error(tmp_path, monkeypatch, skipped, is_new):
    monkeypatch.setattr(platforms, "ROOT", tmp_path)
    monkeypatch.delenv("SKIPS", raising=False)
    (tmp_path / "known.txt").write_text("2 a\n", "utf-8")
    assert platforms.compare(tmp_path / "known.txt", Counter(skipped)) is is_new
