"""Work on many files at once, most of which is waiting for answers."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from itertools import chain
from typing import Any

from .known import is_local_system


def side_by_side(work: Callable[[Any], Any], items: Sequence[Any], system: Any) -> list[Any]:
    """The results for all items; the first error ends it.

    Over a network all wait for answers. A local disk answers at once, and more threads only get
    into each other's way.
    """
    at_once = min(4, import_module("pyarrow").cpu_count()) if is_local_system(system) else 32
    most = min(len(items), at_once)
    if most < 2:
        return list(map(work, items))
    # A task costs as much as opening a small file.
    some = max(len(items) // (16 * most), 1)
    blocks = [items[start : start + some] for start in range(0, len(items), some)]
    with ThreadPoolExecutor(most) as pool:
        try:
            done = pool.map(lambda block: list(map(work, block)), blocks)
            return list(chain.from_iterable(done))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
