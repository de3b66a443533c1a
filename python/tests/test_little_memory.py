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
