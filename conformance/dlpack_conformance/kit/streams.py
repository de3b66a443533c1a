"""Streams: a simulated device for producers, and the streams that a consumer names.

The device is in this process and its memory is the host's. Work that is put on a stream is done
when that stream is synchronised, not before: who does not wait for it sees memory that is not
written yet.
"""

from collections.abc import Callable
from typing import Any

from dlpack_conformance.abi.dlpack import CUDA
from dlpack_conformance.rule import NotApplicable

LEGACY_DEFAULT, PER_THREAD_DEFAULT = 1, 2  # CUDA's own numbers
ROCM_DEFAULT = 0


class Streams:
    """The streams of one device."""

    def __init__(self, device_type: int) -> None:
        self.device_type = device_type
        self.default = LEGACY_DEFAULT if device_type == CUDA else ROCM_DEFAULT
        special = [LEGACY_DEFAULT, PER_THREAD_DEFAULT] if device_type == CUDA else [ROCM_DEFAULT]
        self.work: dict[int, list[Callable[[], object]]] = {stream: [] for stream in special}
        self.done = dict.fromkeys(special, 0)
        self.calls: list[tuple[str, int]] = []  # ("launch", "wait" or "synchronize", stream)
        self.used_after_destroy: list[int] = []

    def create(self) -> int:
        """The handle of a new stream: an address of more than 32 bits."""
        stream = (1 << 40) + (len(self.work) << 8)
        self.work[stream], self.done[stream] = [], 0
        return stream

    def destroy(self, stream: int) -> None:
        self.synchronize(stream)
        del self.work[stream]

    def check(self, stream: int) -> None:
        if stream not in self.work:
            if stream in self.done:
                self.used_after_destroy.append(stream)
            raise ValueError(f"there is no stream {stream}")

    def launch(self, stream: int, work: Callable[[], object]) -> int:
        """The work is done after all that is on the stream; its place there."""
        self.check(stream)
        self.calls.append(("launch", stream))
        self.work[stream].append(work)
        return len(self.work[stream])

    def wait(self, stream: int, other: int) -> None:
        """What comes on `stream` is done after what is on `other` now. The host goes on."""
        self.check(stream)
        self.check(other)
        self.calls.append(("wait", stream))
        end = len(self.work[other])
        self.work[stream].append(lambda: self.finish(other, end))

    def synchronize(self, stream: int) -> None:
        """The host waits for all that is on the stream."""
        self.check(stream)
        self.calls.append(("synchronize", stream))
        self.finish(stream, len(self.work[stream]))

    def finish(self, stream: int, end: int) -> None:
        while self.done[stream] < end:
            place = self.done[stream]
            # What is done keeps nothing alive.
            work, self.work[stream][place] = self.work[stream][place], object
            self.done[stream] += 1
            work()


def current_stream(lib: Any, kind: int, default: bool) -> int:
    """The number of the stream that the library uses from now on, as `use_stream` of its hooks."""
    try:
        return int(lib.use_stream(kind, default))
    except NotApplicable as reason:
        raise NotApplicable(f"not run here: {reason}") from None
