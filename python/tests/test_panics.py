"""A panic in Rust ends where it meets C, and is an exception from there on.

We know of none of our own. But PyO3 turns the exception that a panic has become back into a panic
wherever Rust fetches it, and Python code can raise it: so panics can be planted.
"""

import subprocess
import sys
from pathlib import Path

import pytest

# In a process without any other module of PyO3's: each has a type of its own for this exception.
PLANT = """
import arrow_dlpack
import hostile
from arrow_dlpack import Array, Tensor, from_dlpack
from exchange import Out, table_of

class Refuses:
    def __dlpack__(self, **keywords):
        raise LookupError

try:
    from_dlpack(Refuses())
except LookupError:
    pass
[Panic] = [kind for kind in BaseException.__subclasses__() if kind.__name__ == "PanicException"]

class Panics(hostile.Producer):
    armed = True

    def __dlpack__(self, **keywords):
        if self.armed:
            raise Panic("planted")
        return super().__dlpack__(**keywords)

    def __repr__(self):
        raise Panic("planted")

def caught(call):
    try:
        call()
    except BaseException as error:
        print(type(error).__name__, error)

producer = Panics(device_type=2, data=0xDEAD0000)
"""

BORDERS = {
    # What PyO3 fences: it makes the exception of a panic again.
    "function": ("caught(lambda: from_dlpack(producer))", "PanicException planted"),
    "method": ("caught(lambda: Array.from_dlpack(producer))", "PanicException planted"),
    # What we fence.
    "__dlpack__": (
        "producer.armed = False; tensor = Tensor.from_dlpack(producer); producer.armed = True\n"
        "caught(tensor.__dlpack__)\n"
        "del tensor",  # while its deleter, which is Python code, is there
        "RuntimeError __dlpack__ panicked: this is a bug",
    ),
    "batches": (
        "import pyarrow, signal, threading\n"
        "def handler(*_): raise Panic('planted')\n"
        "signal.signal(signal.SIGINT, handler)\n"
        "chunks = [pyarrow.array([1.0])] * 1_000_000\n"
        "table = pyarrow.table({'x': pyarrow.chunked_array(chunks)})\n"
        "batches = arrow_dlpack.iter_batches(table, batch_size=2_000_000, format='matrix')\n"
        "timer = threading.Timer(0.05, signal.raise_signal, [signal.SIGINT])\n"
        "caught(lambda: (timer.start(), next(batches)))\n"
        "assert list(batches) == []",
        "RuntimeError planted",
    ),
    "exchange API": (
        "out = Out(); caught(lambda: table_of(Tensor).from_object(id(producer), out.at))\n"
        "assert out.value is None",
        "PanicException planted",
    ),
}


@pytest.mark.parametrize("border", BORDERS)
def test_a_panic_does_not_cross_into_c(border):
    code, expected = BORDERS[border]
    done = subprocess.run(
        [sys.executable, "-c", PLANT + code + "\nprint(arrow_dlpack._core._live()[0])"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.splitlines()) == (0, [expected, "0"]), done.stderr
    assert "resuming a panic" in done.stderr
