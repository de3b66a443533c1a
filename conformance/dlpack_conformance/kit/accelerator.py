"""A device that is not there: memory that the host cannot read, streams, events, and a log.

Its verbs are CUDA's in small. A stream is a number. The work on it is done in order and as late as
can be: when the host waits for the stream, or when other work waits for an event on it. So what is
read without waiting for it reads poison, always.
"""

import ctypes
from collections.abc import Callable
from typing import Any

from dlpack_conformance.kit.memory import unreadable

POISON_OF_DEVICE = 0xDB


class Accelerator:
    def __init__(self) -> None:
        self.content: dict[int, bytearray] = {}  # of what was allocated and not freed, by address
        self.work: dict[int, list[Callable[[], object]]] = {}  # of each stream
        self.done: dict[int, int] = {}  # how much of it
        self.readers: dict[int, list[tuple[int, int]]] = {}  # of an address: stream, place in it
        self.events: dict[int, tuple[int, int] | None] = {}  # live ones: stream, place in it
        self.log: list[tuple[str, int]] = []
        self.misuse: list[str] = []

    def count(self, verb: str) -> int:
        return sum(entry[0] == verb for entry in self.log)

    def enqueue(self, stream: int, task: Callable[[], object]) -> int:
        """The place of the task in the stream."""
        self.work.setdefault(stream, []).append(task)
        self.done.setdefault(stream, 0)
        return len(self.work[stream])

    def run(self, stream: int, end: int) -> None:
        while self.done.get(stream, 0) < end:
            self.done[stream] += 1
            self.work[stream][self.done[stream] - 1]()

    def pending(self) -> bool:
        return any(self.done[stream] < len(work) for stream, work in self.work.items())

    # Memory

    def upload(self, content: bytes, stream: int) -> int:
        """The address of memory that has this content when the stream has come so far."""
        address = unreadable()
        self.content[address] = bytearray([POISON_OF_DEVICE]) * len(content)
        self.log.append(("copy", stream))

        def task() -> None:
            if address in self.content:
                self.content[address][:] = content

        self.enqueue(stream, task)
        return address

    def read(self, address: int, stream: int) -> bytearray:
        """What will be the content when the stream has come so far."""
        found = bytearray()
        self.log.append(("read", stream))

        def task() -> None:
            if address not in self.content:
                self.misuse.append("a read of memory that is not the device's, or was freed")
            found.extend(self.content.get(address, b"\xdb" * 64))

        place = self.enqueue(stream, task)
        self.readers.setdefault(address, []).append((stream, place))
        return found

    def free(self, address: int) -> None:
        readers = self.readers.pop(address, [])
        if any(self.done[stream] < place for stream, place in readers):
            self.misuse.append("memory is freed that work is still to read")
        if self.content.pop(address, None) is None:
            self.misuse.append("memory is freed that is not the device's, or was freed")
        self.log.append(("free", 0))

    # Events, of which Arrow passes the address of a handle

    def create(self) -> int:
        self.log.append(("create", 0))
        handle = 1 + sum(verb == "create" for verb, _ in self.log)
        self.events[handle] = None
        return handle

    def record(self, event: int, stream: int) -> None:
        self.log.append(("record", stream))
        self.events[event] = (stream, len(self.work.get(stream, [])))

    def wait(self, stream: int, event: int) -> None:
        """Lets the work that comes on the stream wait for the event."""
        self.log.append(("wait", stream))
        if event not in self.events:
            self.misuse.append("a wait for what is no event, or was destroyed")
            return
        recorded = self.events[event]
        if recorded is not None:
            self.enqueue(stream, lambda: self.run(*recorded))

    def destroy(self, event: int) -> None:
        self.log.append(("destroy", 0))
        if event not in self.events:
            self.misuse.append("what is no event, or was destroyed, is destroyed")
        self.events.pop(event, None)

    # The host

    def synchronize(self, stream: int) -> None:
        """The host waits for all work on the stream."""
        self.log.append(("host wait", stream))
        self.run(stream, len(self.work.get(stream, [])))


def handle_at(address: int | None) -> Any:
    """The event of a `sync_event`, None if that is NULL."""
    return None if not address else ctypes.c_void_p.from_address(address).value
