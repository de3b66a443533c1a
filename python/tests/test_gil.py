"""What takes long lets other threads run, and so does preparing that looks at all the values."""

import sys
import threading
import time

import arrow_dlpack
import numpy as np
import pyarrow as pa
import pytest

MANY = 8 << 20
NUMBERS = pa.array(np.zeros(MANY, "int8"))
BOOLS = pa.ExtensionArray.from_storage(pa.bool8(), NUMBERS)
ENDS = np.arange(MANY // 4, dtype="int32")
VIEWS = pa.ListViewArray.from_arrays(pa.array(ENDS), pa.array(np.ones_like(ENDS)), NUMBERS)
TEXTS = pa.chunked_array([pa.array(["text"] * (MANY // 16))] * 2)
CODES = TEXTS.chunk(0).dictionary_encode()
DICTIONARIES = pa.chunked_array([CODES, pa.array(["other"]).dictionary_encode()])

LONG = {
    "a scan of bool8": lambda: arrow_dlpack.to_tensor(BOOLS),
    "its plan": lambda: arrow_dlpack.explain(BOOLS),
    "bits": lambda: arrow_dlpack.to_tensor(pa.array(np.zeros(MANY, bool))),
    "an array's capsule": lambda: arrow_dlpack.Array(BOOLS).__dlpack__(),
    "consecutive views": lambda: arrow_dlpack.ragged(VIEWS),
    "a column of chunks": lambda: arrow_dlpack.ragged(TEXTS),
    "an array of chunks": lambda: arrow_dlpack.Array(TEXTS),
    "dictionaries": lambda: arrow_dlpack.to_tensor(DICTIONARIES, physical=True),
    "a tensor's copy": lambda: arrow_dlpack.from_dlpack(np.zeros(MANY, "int8")[::-1]),
}


HAS_GIL = getattr(sys, "_is_gil_enabled", lambda: True)()


@pytest.fixture
def no_turns():
    """A thread that has the GIL keeps it until it gives it away."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.parametrize("work", LONG.values(), ids=LONG)
def test_what_takes_long_lets_other_threads_run(work, no_turns):
    assert runs_during(work, patience=60)


@pytest.mark.skipif(not HAS_GIL, reason="without a GIL every thread runs")
def test_this_would_be_noticed(no_turns):
    assert not runs_during(lambda: sum(range(100_000)), patience=0.1)


def runs_during(work, patience):
    """Whether another thread gets to run while this one does nothing but work, for so many seconds.

    One call may be over before a busy machine has woken the thread, so there are many.
    """
    ran = []
    gate = threading.Lock()
    gate.acquire()
    thread = threading.Thread(target=lambda: (gate.acquire(), ran.append(True)))
    thread.start()
    gate.release()
    deadline = time.monotonic() + patience
    while not ran and time.monotonic() < deadline:
        work()
    seen = bool(ran)
    thread.join()
    return seen
