"""Streams that tell how far they have been read, and whether they were released."""

import threading
import time
import weakref

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds

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
        # Without a GIL it is this thread's to let go of what it has made, as it goes on.
        until(self.released.is_set)
        return True


ROWS = 1000
TABLE = pa.table(
    {
        "x": np.arange(ROWS, dtype="float32"),
        "pair": pa.FixedSizeListArray.from_arrays(pa.array(np.arange(2 * ROWS)), 2),
        "y": np.arange(ROWS) * 3,
    }
)


def part(index, count):
    """One of so many parts of a table."""
    share = ROWS // count
    return TABLE.slice(index * share, share if index < count - 1 else None)


def first_file(index, count):
    """As one writes it, of a single file."""
    return ds.dataset(pa.table({"x": [1, 2, 3]})) if index == 0 else ds.dataset([])


def first_table(index, count):
    return pa.table({"x": [1, 2, 3]}) if index == 0 else None


def until(condition):
    """Waits for what another thread is about to do."""
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)
