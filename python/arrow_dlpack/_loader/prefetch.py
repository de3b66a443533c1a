"""Batches that Python code transforms, made ahead of time by a thread.

Those that no Python code touches are made ahead by a thread of Rust, which needs no GIL.
"""

import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

from .._core import _BusyError
from .._frameworks import with_setting

#: Whether it is a batch, and that, or the error that ends them, None for their end.
_Item = tuple[bool, Any]
#: Seconds between looks at whether the other side is still there.
_A_WHILE = 0.05


class _Results(map):  # type: ignore[type-arg]  # it takes none when it runs
    """A map to which there are weak references."""


class Ahead(Iterator[Any]):
    """The results of a function for each of the batches, some of them ahead.

    What the two threads share is a queue of C, or changed by one call of C: Ctrl-C may come between
    any two steps of Python, and would leave a lock of Python's closed, for which its own handling
    then waits.
    """

    def __init__(
        self,
        batches: Iterator[Any],
        work: Callable[[Any], Any],
        most: int,
        stop: Callable[[], None],
    ) -> None:
        """`stop` ends the batch that is being made, once the source's current one is there."""
        self._queue: SimpleQueue[_Item] = SimpleQueue()
        #: One for each batch that may be made ahead; the thread takes them, and others give them.
        self._places: SimpleQueue[None] = SimpleQueue()
        for _ in range(most):
            self._places.put(None)
        #: Not empty once no more batches are wanted.
        self._stopped: list[None] = []
        self._stop_source = stop
        # The thread borrows them for each batch: they may refer to what holds these batches.
        self._results = _Results(work, batches)
        self._make = partial(_next, weakref.ref(self._results))
        #: What the thread made last and could not hand over.
        self._left: list[_Item] = []
        arguments = self._make, self._queue, self._places, self._stopped, self._left
        self._process = os.getpid()
        # No daemon: the interpreter waits for it, and it looks whether the interpreter is ending.
        self._thread = threading.Thread(
            target=with_setting(_make_all), args=arguments, name="arrow_dlpack.Loader"
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
        while not self._stopped:
            is_alive = self._thread.is_alive()
            try:
                is_batch, made = self._queue.get(timeout=_A_WHILE if is_alive else 0)
            except Empty:
                if is_alive:
                    continue
                # The main thread has ended, and the interpreter waits for this one.
                is_batch, made = self._left.pop() if self._left else self._make()
            self._places.put(None)
            if is_batch:
                return made
            self._stopped.append(None)
            if made is not None:
                raise made
        raise StopIteration

    @property
    def has_ended(self) -> bool:
        """Whether there are no more batches: all were handed out, their error was raised, or they
        are closed.
        """
        return bool(self._stopped)

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
        self._stopped.append(None)
        self._places.put(None)  # wakes the thread
        self._stop_source()
        # A forked process has the thread's object, but not the thread.
        if self._process != os.getpid() or threading.current_thread() is self._thread:
            return
        with suppress(Empty):  # lets go of batches that wait
            while True:
                self._queue.get_nowait()
        self._thread.join(seconds)


def _next(held: "weakref.ref[_Results]") -> _Item:
    """The next batch; the end where there are no more, or they are let go of."""
    results = held()
    if results is None:
        return False, None
    try:
        return True, next(results)
    except StopIteration:  # the function raises none
        return False, None
    except BaseException as error:
        return False, error


def _make_all(
    make: Callable[[], _Item],
    queue: "SimpleQueue[_Item]",
    places: "SimpleQueue[None]",
    stopped: list[None],
    left: list[_Item],
) -> None:
    """Makes batches until there are no more, or they are closed, or the main thread ends: others
    may still read them, or none.
    """
    is_batch = True
    while is_batch:
        item = make()
        is_batch = item[0]
        if not _has_place(places, stopped):
            left.append(item)
            return
        queue.put(item)
        del item


def _has_place(places: "SimpleQueue[None]", stopped: list[None]) -> bool:
    """Waits for a place; False if no more batches are wanted."""
    while not stopped and threading.main_thread().is_alive():
        with suppress(Empty):
            places.get(timeout=_A_WHILE)
            return not stopped
    return False
