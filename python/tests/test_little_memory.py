"""What is as large as the data asks for memory, and where there is none that is an error."""

import subprocess
import sys
from pathlib import Path

import little_memory
import pytest

HERE = Path(__file__).parent


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_conversion_without_memory_is_an_error_and_no_abort():
    """Each under several limits (`ulimit -v`), in processes that end with it."""
    command = [sys.executable, "little_memory.py"]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-300:] + done.stderr[-2000:]
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    ends = {name: [int(end) for end in ends] for name, *ends in lines}
    known = {little_memory.MADE, little_memory.REFUSED}
    assert {name: found for name, found in ends.items() if not known.issuperset(found)} == {}
    assert all(found[-1] == little_memory.MADE for found in ends.values()), ends
    refused = [name for name, found in ends.items() if little_memory.REFUSED in found]
    assert len(refused) > len(ends) // 2, "the limits are too high to show anything"


#: What needs a second buffer as large as one of the data's, aligned, and where it may be freed.
TWICE = {
    "a dense union": "Array(union)",
    "chunks of a dense union": "Array(pa.chunked_array([union, union]))",
    "a shuffle": "next(iter(Loader(pa.table({'x': union}), batch_size=9, shuffle=N,"
    " columns={'x': AsArrow()})))",
    "misaligned decimals": "Array(decimals)",
}


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("name", TWICE)
@pytest.mark.parametrize("is_warm", [False, True])
def test_what_was_freed_before_is_no_more_than_it_is(name, is_warm):
    """The error is a MemoryError, also where earlier work has left memory that is nearly enough."""
    program = f"""
import resource
import numpy as np
import pyarrow as pa
from arrow_dlpack import Array, AsArrow, Loader

def work(N):
    ids, offsets = pa.array(np.zeros(N, "i1")), pa.array(np.arange(N, dtype="i4"))
    union = pa.UnionArray.from_dense(ids, offsets, [pa.array(np.arange(N))])
    memory = pa.py_buffer(np.zeros(16 * N + 8, "u1"))[8:]
    decimals = pa.Array.from_buffers(pa.decimal128(9), N, [None, memory])
    return lambda: {TWICE[name]}

work(3)()
convert = work(3_000_000)
if {is_warm}:
    convert()
with open("/proc/self/statm") as statm:
    had = int(statm.read().split()[0]) * resource.getpagesize()
for more in (1_000_000, 2_000_000, 4_000_000):
    resource.setrlimit(resource.RLIMIT_AS, (had + more, resource.RLIM_INFINITY))
    try:
        convert()
    except MemoryError:
        pass
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-500:]
