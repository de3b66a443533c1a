"""Batches that Python code transforms, made ahead of time by a thread.

Those that no Python code touches are made ahead by a thread of Rust, which needs no GIL.
"""

import os
import threading
from collections.abc import Callable, Iterator
from queue import Empty, Full, Queue
from typing import Any

#: Seconds between looks at whether the other side is still there.
_A_WHILE = 0.05


class Ahead(Iterator[Any]):
    """The results of a function for each of the batches, so many ahead."""

    def __init__(
        self,
        batches: Iterator[Any],
        work: Callable[[Any], Any],
        most: int,
        stop: Callable[[], None],
    ) -> None:
        """`stop` ends the batch that is being made, once the source's current one is there."""
        self._queue: Queue[tuple[bool, Any]] = Queue(most)
        self._stop, self._stop_source = threading.Event(), stop
        arguments = batches, work, self._queue, self._stop
        # No daemon: the interpreter waits for it, and it looks whether the interpreter is ending.
        self._thread = threading.Thread(target=_make, args=arguments, name="arrow_dlpack.Loader")
        self._thread.start()
        self._process = os.getpid()

    def __next__(self) -> Any:
        if self._process != os.getpid():
            raise RuntimeError(
                "these batches were opened before the fork: open them in the process that reads "
                "them"
            )
        if threading.current_thread() is self._thread:
            raise ValueError("a function cannot wait for its own batches")
        while not self._stop.is_set():
            try:
                is_batch, made = self._queue.get(timeout=_A_WHILE)
            except Empty:
                if self._thread.is_alive() or not self._queue.empty():
                    continue
                break
            if is_batch:
                return made
            self._stop.set()
            if made is not None:
                raise made
        raise StopIteration

    def close(self) -> None:
        """Stops the thread and waits until it has stopped."""
        self._ask_to_stop()
        # A forked process has the thread's object, but not the thread.
        is_here = self._process == os.getpid()
        if is_here and threading.current_thread() is not self._thread:
            self._thread.join()

    def __del__(self) -> None:
        self._ask_to_stop()

    def _ask_to_stop(self) -> None:
        self._stop.set()
        self._stop_source()


def _make(
    batches: Iterator[Any],
    work: Callable[[Any], Any],
    queue: "Queue[tuple[bool, Any]]",
    stop: threading.Event,
) -> None:
    """Makes batches until there are no more, or they are closed."""
    end: BaseException | None = None
    try:
        for batch in batches:
            if not _put(queue, stop, (True, work(batch))):
                return
    except BaseException as error:
        end = error
    _put(queue, stop, (False, end))


def _put(queue: "Queue[tuple[bool, Any]]", stop: threading.Event, item: tuple[bool, Any]) -> bool:
    while not stop.is_set() and threading.main_thread().is_alive():
        try:
            queue.put(item, timeout=_A_WHILE)
        except Full:
            continue
        return True
    return False
