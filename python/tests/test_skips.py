"""The list of skipped tests is that of this suite."""

import re
from pathlib import Path

import pytest
from skips import PLACES, SKIPS, complaint

GIL = "test_gil.py::test_this_would_be_noticed"
NO_GIL = "without a GIL every thread runs"
SUB = "test_interpreters.py::test_a_sub_interpreter_is_refused_and_leaves_the_main_one_as_it_was"


@pytest.mark.parametrize("skip", SKIPS, ids=lambda skip: skip.test)
def test_a_skip_is_of_a_test_and_a_place(skip):
    file, test = skip.test.split("::")
    source = Path(__file__).with_name(file).read_text("utf-8")
    assert re.search(rf"^def {test.partition('[')[0]}\(", source, re.M)
    assert skip.place in PLACES


def test_a_test_is_skipped_where_and_why_the_list_says():
    there, here = PLACES | {"no GIL": True}, PLACES | {"no GIL": False}
    assert complaint(GIL, NO_GIL, there) is None
    assert complaint(GIL, None, here) is None
    assert "does not have: without a GIL" in complaint(GIL, NO_GIL, here)
    assert "does not have: it is late" in complaint(GIL, "it is late", there)
    assert "not skipped" in complaint(GIL, None, there)
    assert "does not have" in complaint("test_gil.py::test_another", NO_GIL, there)


def test_an_interpreter_may_be_missing():
    reason = "NOT TRIED: there is no CPython 3.12 here"
    assert complaint(f"{SUB}[version1]", reason, PLACES) is None
    assert (
        complaint(f"{SUB}[version1]", None, PLACES | {"a build for one interpreter": False}) is None
    )
    assert "does not have" in complaint(f"{SUB}[version2]", reason, PLACES)
