from state import Judged, alike, judged, page

BROKEN = {
    "id": "DL144",
    "slug": "a-slug",
    "level": "should",
    "outcome": "fail",
    "expected": "None",
    "seen": "94629740171520",
    "source": "dlpack.h",
}


def test_what_two_versions_do_alike_is_said_once():
    old = Judged("numpy", "2.4", "3.11.7", [BROKEN])
    new = Judged("numpy", "2.5", "3.13.0", [BROKEN | {"seen": "140420210030016"}])
    said = page([old, new], [], "2026-11-27")
    assert "- numpy 2.4 (Python 3.11), numpy 2.5 (Python 3.13): 94629740171520\n" in said
    assert "| numpy 2.5 (Python 3.13) | 0 | 0 | 1 | 0 | 0 |" in said


def test_what_differs_is_not():
    pairs = [("a", "at 0x1f"), ("b", "at 0x2e"), ("c", "5 bytes"), ("d", "6 bytes")]
    names = [names for names, _ in alike(pairs)]
    assert names == [["a", "b"], ["c"], ["d"]]


def test_what_cannot_be_judged_is_said(tmp_path):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho ModuleNotFoundError: no lib >&2\nexit 2\n")
    python.chmod(0o755)
    reason = judged(str(python), "lib")
    assert reason == "lib: ModuleNotFoundError: no lib"
    assert f"- {reason}\n" in page([], [reason], "2026-11-27")
