"""Which tests may be skipped, and where: skipped.toml. Any other skip is a failure."""

import importlib.util
import os
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import numpy as np
import system
from arrow_dlpack import _core

# Whether each of its tests is skipped here. None: each may be, or not.
PLACES = {
    "another CPython is missing": None,
    "a build for one interpreter": "abi3" not in _core.__file__,
    "no GIL": not getattr(sys, "_is_gil_enabled", lambda: True)(),
    "no _testcapi": importlib.util.find_spec("_testcapi") is None,
    "not Linux": sys.platform != "linux",
    "Windows": system.WINDOWS,
    "no long double": np.dtype("longdouble").itemsize == 8,
    "no fork": not hasattr(os, "fork"),
    "no os.kill": not hasattr(os, "kill"),
}


class Skip(NamedTuple):
    place: str
    test: str
    """With its file; all cases of the test, where it names none."""
    reason: str

    def is_of(self, test: str) -> bool:
        return self.test in (test, test.partition("[")[0])


LIST = Path(__file__).with_name("skipped.toml")
SKIPS = [
    Skip(place, test, reason)
    for place, tests in tomllib.loads(LIST.read_text("utf-8")).items()
    for test, reason in tests.items()
]


def complaint(test: str, reason: str | None, places: dict[str, bool | None]) -> str | None:
    """What is wrong with a test that was skipped for this reason, or with None ran."""
    listed = [skip for skip in SKIPS if skip.is_of(test) and places[skip.place] is not False]
    if reason is not None and reason not in [skip.reason for skip in listed]:
        return f"skipped, which {LIST.name} does not have: {reason}"
    if reason is None and any(places[skip.place] for skip in listed):
        return f"{LIST.name} has it, and it is not skipped: {listed}"
    return None
