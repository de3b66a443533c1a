"""A device that is not there: memory that the host cannot read, streams, events, and a log.

Its verbs are CUDA's in small, its streams those of kit/streams.py: their work is done as late as
can be. So what is read without waiting for it reads poison, always.
"""

import ctypes
from typing import Any

from dlpack_conformance.abi.dlpack import CUDA
from dlpack_conformance.kit.memory import unreadable
from dlpack_conformance.kit.streams import Streams

POISON_OF_DEVICE = 0xDB


class Accelerator(Streams):
    def __init__(self) -> None:
        super().__init__(CUDA)
        self.content: dict[int, bytearray] = {}  # of what was allocated and not freed, by address
        self.readers: dict[int, list[tuple[int, int]]] = {}  # of an address: stream, place in it
        self.events: dict[int, tuple[int, int] | None] = {}  # live ones: stream, place in it
        self.misuse: list[str] = []

    def check(self, stream: int) -> None:
        """A stream is any number."""
        self.work.setdefault(stream, [])
        self.done.setdefault(stream, 0)

    def count(self, verb: str) -> int:
        return sum(call[0] == verb for call in self.calls)

    def pending(self) -> bool:
        return any(self.done[stream] < len(work) for stream, work in self.work.items())

    # Memory

    def upload(self, content: bytes, stream: int) -> int:
        """The address of memory that has this content when the stream has come so far."""
        address = unreadable()
        self.content[address] = bytearray([POISON_OF_DEVICE]) * len(content)
        self.calls.append(("copy", stream))

        def task() -> None:
            if address in self.content:
                self.content[address][:] = content

        self.launch(stream, task)
        return address

    def read(self, address: int, stream: int) -> bytearray:
        """What will be the content when the stream has come so far."""
        found = bytearray()
        self.calls.append(("read", stream))

        def task() -> None:
            if address not in self.content:
                self.misuse.append("a read of memory that is not the device's, or was freed")
            found.extend(self.content.get(address, b"\xdb" * 64))

        place = self.launch(stream, task)
        self.readers.setdefault(address, []).append((stream, place))
        return found

    def free(self, address: int) -> None:
        readers = self.readers.pop(address, [])
        if any(self.done[stream] < place for stream, place in readers):
            self.misuse.append("memory is freed that work is still to read")
        if self.content.pop(address, None) is None:
            self.misuse.append("memory is freed that is not the device's, or was freed")
        self.calls.append(("free", 0))

    # Events, of which Arrow passes the address of a handle

    def create_event(self) -> int:
        self.calls.append(("create", 0))
        handle = self.count("create")
        self.events[handle] = None
        return handle

    def record(self, event: int, stream: int) -> None:
        self.check(stream)
        self.calls.append(("record", stream))
        self.events[event] = (stream, len(self.work[stream]))

    def wait_for(self, stream: int, event: int) -> None:
        """Lets the work that comes on the stream wait for the event."""
        self.calls.append(("wait", stream))
        if event not in self.events:
            self.misuse.append("a wait for what is no event, or was destroyed")
            return
        recorded = self.events[event]
        if recorded is not None:
            self.launch(stream, lambda: self.finish(*recorded))

    def destroy_event(self, event: int) -> None:
        self.calls.append(("destroy", 0))
        if event not in self.events:
            self.misuse.append("what is no event, or was destroyed, is destroyed")
        self.events.pop(event, None)


def handle_at(address: int | None) -> Any:
    """The event of a `sync_event`, None if that is NULL."""
    return None if not address else ctypes.c_void_p.from_address(address).value
