"""Batches that Python code transforms, made ahead of time by a thread.

Those that no Python code touches are made ahead by a thread of Rust, which needs no GIL.
"""

import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from queue import Empty, Full, Queue
from typing import Any

from .._core import _BusyError

#: Whether it is a batch, and that, or the error that ends them, None for their end.
_Item = tuple[bool, Any]
#: Seconds between looks at whether the other side is still there.
_A_WHILE = 0.05


class Ahead(Iterator[Any]):
    """The results of a function for each of the batches, some of them ahead."""

    def __init__(
        self,
        batches: Iterator[Any],
        work: Callable[[Any], Any],
        most: int,
        stop: Callable[[], None],
    ) -> None:
        """`stop` ends the batch that is being made, once the source's current one is there."""
        self._queue: Queue[_Item] = Queue(most)
        self._stop, self._stop_source = threading.Event(), stop
        # The thread borrows it for each batch: it may refer to what holds these batches.
        self._work = work
        self._make = partial(_next, batches, weakref.ref(work))
        #: What the thread made last and could not hand over.
        self._left: list[_Item] = []
        arguments = self._make, self._queue, self._stop, self._left
        self._process = os.getpid()
        # No daemon: the interpreter waits for it, and it looks whether the interpreter is ending.
        self._thread = threading.Thread(
            target=_make_all, args=arguments, name="arrow_dlpack.Loader"
        )
        self._thread.start()

    def __next__(self) -> Any:
        if self._process != os.getpid():
            raise RuntimeError(
                "these batches were opened before the fork: open them in the process that reads "
                "them"
            )
        if threading.current_thread() is self._thread:
            raise _BusyError("a function cannot wait for its own batches")
        while not self._stop.is_set():
            is_alive = self._thread.is_alive()
            try:
                is_batch, made = self._queue.get(timeout=_A_WHILE if is_alive else 0)
            except Empty:
                if is_alive:
                    continue
                # The main thread has ended, and the interpreter waits for this one.
                is_batch, made = self._left.pop() if self._left else self._make()
            if is_batch:
                return made
            self._stop.set()
            if made is not None:
                raise made
        raise StopIteration

    def close(self) -> None:
        """Stops the thread and waits until it has stopped."""
        self._end(None)

    def leave(self) -> None:
        """Stops the thread, and waits a second at most."""
        self._end(1)

    def __del__(self) -> None:
        # The thread that drops it may hold a lock that the thread waits for. Ctrl-C, or a system
        # without more threads, may have ended `__init__`.
        if getattr(self, "_thread", None) is not None and self._thread.ident is not None:
            self.leave()

    def _end(self, seconds: float | None) -> None:
        self._stop.set()
        self._stop_source()
        # A forked process has the thread's object, but not the thread.
        if self._process != os.getpid() or threading.current_thread() is self._thread:
            return
        with suppress(Empty):  # makes place for a batch that waits
            while True:
                self._queue.get_nowait()
        self._thread.join(seconds)


def _next(batches: Iterator[Any], held: "weakref.ref[Callable[[Any], Any]]") -> _Item:
    """The next batch; the end where there are no more, or they are let go of."""
    try:
        batch, work = next(batches, None), held()
        if batch is None or work is None:
            return False, None
        return True, work(batch)
    except BaseException as error:
        return False, error


def _make_all(
    make: Callable[[], _Item], queue: "Queue[_Item]", stop: threading.Event, left: list[_Item]
) -> None:
    """Makes batches until there are no more, or they are closed, or the main thread ends: others
    may still read them, or none.
    """
    is_batch = True
    while is_batch:
        item = make()
        is_batch = item[0]
        if not _put(queue, stop, item):
            left.append(item)
            return
        del item


def _put(queue: "Queue[_Item]", stop: threading.Event, item: _Item) -> bool:
    while not stop.is_set() and threading.main_thread().is_alive():
        try:
            queue.put(item, timeout=_A_WHILE)
        except Full:
            continue
        return True
    return False
