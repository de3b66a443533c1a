"""Every test must give back every tensor it opened, and must not write outside of shared memory."""

import gc
import os
import signal
import sys
import time
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

# Before anyone imports them. 64-bit numbers are half of what we test; tensorflow is talkative;
# hypothesis keeps its notes where we build.
os.environ["JAX_ENABLE_X64"] = "1"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["USE_TF"] = "0"  # of datasets, which would look for it where it is left out
os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", "target/hypothesis")
# The kit, whose structures the tests use, also for the processes that they start.
sys.path.insert(0, str(Path(__file__).parents[2] / "conformance"))
os.environ["PYTHONPATH"] = os.pathsep.join(
    filter(None, [sys.path[0], os.environ.get("PYTHONPATH")])
)

import hostile
import pytest
import skips
from arrow_dlpack import _core
from hypothesis import settings

# The same examples in every run: a law that fails here fails everywhere.
settings.register_profile("laws", derandomize=True, deadline=None, database=None)
settings.load_profile("laws")


class LeftOut(ModuleType):
    """Stands for a library that is not there, and for all of it: tests that use it are skipped."""

    def __getattr__(self, name):
        if name.startswith("__") and not name.startswith(("__arrow_c_", "__dlpack_")):
            raise AttributeError(name)
        # Before there is anything that a skipped test would leave behind.
        if "PYTEST_CURRENT_TEST" in os.environ:
            pytest.skip(f"{self.__name__.partition('.')[0]} was left out")
        return LeftOut(f"{self.__name__}.{name}")

    def __call__(self, *_, **__):
        return self  # in a table at the head of a module

    __getitem__ = __or__ = __call__  # as in IterableDataset[Batch], and Tensor | None

    def __mro_entries__(self, _bases):
        return ()  # of a class that a module makes of one of the library's

    def __instancecheck__(self, _):
        return False  # nothing is of a library that is not there


class Submodules:
    """Finds every module of a library that was left out: ``import library.part``."""

    def find_spec(self, name, path=None, target=None):
        is_of_one = name.partition(".")[0] in LEFT_OUT
        return ModuleSpec(name, self, is_package=True) if is_of_one else None

    def create_module(self, spec):
        return LeftOut(spec.name)

    def exec_module(self, module):
        pass


# Libraries that are not installed, by commas; without this a test that needs one fails. Processes
# that tests start have it too, if they import this file.
LEFT_OUT = [name for name in os.environ.get("LEFT_OUT", "").split(",") if name]
sys.meta_path.insert(0, Submodules())


def environment(*folders):
    """For a process of its own: folders before what is on the path already, the package perhaps."""
    path = [*map(str, folders), os.environ.get("PYTHONPATH")]
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, path))}


def pytest_report_header():
    return [f"LEFT OUT: every test of {name}" for name in LEFT_OUT]


def pytest_collection_modifyitems(config, items):
    """Deselects what is of a library that was left out, by its parameters' names or its mark."""

    def is_of_one(item):
        callspec = getattr(item, "callspec", None)
        names = set(callspec.id.split("-")) if callspec else set()
        names |= {mark.args[0] for mark in item.iter_markers("library")}
        return not names.isdisjoint(LEFT_OUT)

    if out := [item for item in items if is_of_one(item)]:
        config.hook.pytest_deselected(items=out)
        items[:] = [item for item in items if not is_of_one(item)]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    """Fails what is skipped and is not in skipped.toml, and what is there and was not skipped."""
    report = yield
    reason = report.longrepr[2].removeprefix("Skipped: ") if report.skipped else None
    # Below are notes of what the exception passed through.
    reason = reason and reason.partition("\n")[0]
    is_left_out = LEFT_OUT and reason is not None and reason.endswith("was left out")
    if report.skipped or (report.when == "call" and report.passed):
        test = f"{item.path.name}::{item.nodeid.partition('::')[2]}"
        complaint = None if is_left_out else skips.complaint(test, reason, skips.PLACES)
        if complaint:
            report.outcome, report.longrepr = "failed", complaint
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report():
    """Fails a file that is skipped as a whole."""
    report = yield
    if report.skipped:
        report.outcome, report.longrepr = "failed", f"all of it is {report.longrepr[2]}"
    return report


def open_tensors(expected=None):
    """The counts of open tensors; waits a little for `expected`: JAX frees on another thread."""
    gc.collect()
    deadline = time.monotonic() + 2
    while expected is not None and _core._live() != expected and time.monotonic() < deadline:
        time.sleep(0.01)
    return _core._live()


@pytest.fixture(autouse=True)
def no_leaks():
    before = open_tensors()
    gc.freeze()  # what is here already need not be looked at: that was most of a test's time
    yield
    assert open_tensors(before) == before, "tensors are still open as (exported, imported)"
    hostile.Canaries.check_all()


@pytest.fixture
def live(no_leaks):
    """The counts of open tensors, as (exported, imported), since the test began."""
    exported, imported = open_tensors()

    def since():
        now = open_tensors()
        return now[0] - exported, now[1] - imported

    return since


@pytest.fixture
def ctrl_c():
    """Processes that a shell starts in the background ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def pytest_collection_finish():
    """The libraries' own million objects need not be looked at in each test's collections."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure():
    gc.unfreeze()
