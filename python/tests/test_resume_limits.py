"""A state of a shuffle may claim any numbers: they end in a result or an error, and soon."""

import _thread
import subprocess
import sys
import threading
import time
from itertools import product

import pytest
from arrow_dlpack import _core
from conftest import environment

LARGE = [2**33, 2**40, 2**62, 2**63, 2**64 - 1]

PROGRAM = """
import resource, sys, time
from itertools import product

from arrow_dlpack import _core

resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
LARGE = [2**33, 2**40, 2**62, 2**63, 2**64 - 1]
counts = {"error": 0, "none": 0, "found": 0}
for rows, size, least, batches in product(
    [*LARGE, 0, 100], [1, 7, *LARGE], [1, 100, *LARGE], [0, 1, 2, *LARGE]
):
    # Many batches of a source that has as many are for who waits.
    if 2 < batches <= -(-rows // size) and min(rows, 2 * max(least, size)) < 2**33:
        continue
    start = time.monotonic()
    try:
        found = _core._resume_shuffle(rows, size, (least, 1), batches)
    except MemoryError:
        counts["error"] += 1
    else:
        counts["none" if found is None else "found"] += 1
    assert time.monotonic() - start < 5, (rows, size, least, batches)
assert all(counts.values()), counts
print("done")
"""


def test_hostile_numbers_end_soon():
    run = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(
        run, env=environment(), capture_output=True, text=True, check=False, timeout=300
    )
    assert done.stdout.strip() == "done", done.stderr


@pytest.mark.parametrize("batches", [*LARGE, 16])
def test_more_batches_than_there_are_rows_for_are_none(batches):
    for rows, size, least in product([0, 1, 100], [7, 2**40, 2**64 - 1], [1, 20, 2**63]):
        if batches > -(-rows // size):
            assert _core._resume_shuffle(rows, size, (least, 1), batches) is None


@pytest.mark.parametrize("at", range(4))
@pytest.mark.parametrize("number", [2**64, -1, 2**200])
def test_what_is_no_size_is_refused(at, number):
    rows, size, least, batches = (number if at == one else 5 for one in range(4))
    with pytest.raises(OverflowError):
        _core._resume_shuffle(rows, size, (least, 1), batches)


def test_batches_of_no_rows_are_of_one():
    assert _core._resume_shuffle(3, 0, (1, 1), 4) is None
    assert _core._resume_shuffle(3, 0, (1, 1), 3)[1] == 3


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_ends_a_long_run():
    timer = threading.Timer(0.5, _thread.interrupt_main)
    timer.start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        _core._resume_shuffle(2**50, 1, (1, 1), 2**49)
    timer.join()
    assert time.monotonic() - start < 10
