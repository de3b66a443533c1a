"""Streams that tell how far they have been read, and whether they were released."""

import threading
import time
import weakref

import numpy as np
import pyarrow as pa

SCHEMA = pa.schema([("x", pa.int64())])


class Source:
    """Chunks of int64, counting up, by a Python generator."""

    def __init__(self, chunks=10, rows=10, fails_at=None, before=lambda number: None):
        self.read = 0
        self.released = threading.Event()
        self.threads = set()
        self.chunks, self.rows, self.fails_at, self.before = chunks, rows, fails_at, before

    def __arrow_c_stream__(self, requested_schema=None):
        generator = self.generate()
        weakref.finalize(generator, self.released.set)
        return pa.RecordBatchReader.from_batches(SCHEMA, generator).__arrow_c_stream__()

    def generate(self):
        number = 0
        while self.chunks is None or number < self.chunks:
            self.before(number)
            self.threads.add(threading.get_ident())
            if number == self.fails_at:
                raise OSError("the disk is on fire")
            self.read += 1
            start = number * self.rows
            yield pa.record_batch({"x": np.arange(start, start + self.rows)})
            number += 1

    def is_released(self):
        return self.released.wait(10)


def until(condition):
    """Waits for what another thread is about to do."""
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)
