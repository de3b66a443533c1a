"""Times Python statements against each other, in turn, within one process.

The contenders of a case take turns, a different one first in each round, so that whatever else the
machine does hits all of them. Two kinds of statement:

- a *call* of nanoseconds is repeated in a loop for about two milliseconds; what the loop itself
  costs is timed in the same rounds and taken off. The result is freed in the loop;
- a piece of *work* of milliseconds is timed alone, its result freed after the clock has stopped.

Both report the minimum, which is what the code costs when nothing disturbs it, and the median.
"""

import gc
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

CHUNK_NS = 2_000_000
MAX_ROUNDS = 300
MIN_ROUNDS = 5

LOOP = """
def timed(count):
    start = perf_counter_ns()
    for _ in repeat(None, count):
        {statement}
    return perf_counter_ns() - start
"""

ONCE = """
def timed(count):
    start = perf_counter_ns()
    result = {statement}
    return perf_counter_ns() - start
"""

Timed = Callable[[int], int]


@dataclass(frozen=True)
class Time:
    """Nanoseconds."""

    minimum: float
    median: float
    rounds: int


def compiled(template: str, statement: str, names: Mapping[str, Any]) -> Timed:
    # itertools.repeat, as timeit does: the cheapest loop there is.
    scope = dict(names)
    exec("from itertools import repeat\nfrom time import perf_counter_ns", scope)
    exec(template.format(statement=statement), scope)
    return scope["timed"]


def calibrated(timed: Timed) -> int:
    """How often to repeat a call so that the clock's own cost does not show."""
    count = 1
    while timed(count) < CHUNK_NS // 4:
        count *= 2
    return max(1, count * CHUNK_NS // timed(count))


def rounds(contenders: Mapping[str, tuple[Timed, int]], seconds: float) -> dict[str, list[float]]:
    """Nanoseconds a run, for each contender and round."""
    order = list(contenders)
    times: dict[str, list[float]] = {name: [] for name in order}
    for timed, count in contenders.values():  # warm-up
        timed(count)
    gc.collect()
    gc.disable()
    end = perf_counter() + seconds
    try:
        for number in range(MAX_ROUNDS):
            if number >= MIN_ROUNDS and perf_counter() > end:
                break
            first = number % len(order)
            for name in order[first:] + order[:first]:
                timed, count = contenders[name]
                times[name].append(timed(count) / count)
    finally:
        gc.enable()
    return times


def calls(
    statements: Mapping[str, str], names: Mapping[str, Any], seconds: float
) -> dict[str, Time]:
    """What one run of each statement costs, without the loop around it."""
    timed = {name: compiled(LOOP, statement, names) for name, statement in statements.items()}
    contenders = {name: (loop, calibrated(loop)) for name, loop in timed.items()}
    empty = compiled(LOOP, "pass", {})
    times = rounds(contenders | {"": (empty, calibrated(empty))}, seconds)
    loop = min(times.pop(""))
    return {name: summary([t - loop for t in measured]) for name, measured in times.items()}


def work(
    statements: Mapping[str, str], names: Mapping[str, Any], seconds: float
) -> dict[str, Time]:
    """What one run of each statement costs, its result freed afterwards."""
    timed = {name: compiled(ONCE, statement, names) for name, statement in statements.items()}
    times = rounds({name: (once, 1) for name, once in timed.items()}, seconds)
    return {name: summary(measured) for name, measured in times.items()}


def summary(times: list[float]) -> Time:
    return Time(min(times), statistics.median(times), len(times))
