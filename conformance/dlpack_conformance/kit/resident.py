"""How much memory the process has."""

import gc
from collections.abc import Callable
from pathlib import Path

from dlpack_conformance.rule import NotApplicable

ROUNDS = 20_000
SMALLEST_LEAK = 40  # bytes in a round: no managed tensor is as small


def leaks(call: Callable[[], object]) -> int:
    """The bytes that each call leaves behind; 0 if they are too few to be a tensor or an array."""
    for _ in range(ROUNDS // 4):
        call()  # what is kept once, is kept now
    before = resident()
    for _ in range(ROUNDS):
        call()
    each = (resident() - before) // ROUNDS
    return each if each >= SMALLEST_LEAK else 0


def resident() -> int:
    """Bytes."""
    gc.collect()
    try:
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    except OSError:
        raise NotApplicable("no /proc to measure memory by") from None
    return int(pages) * 4096
