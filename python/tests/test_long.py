"""Conversions of many megabytes: by several threads, and ended by Ctrl-C."""

import multiprocessing
import os
import subprocess
import sys
import threading

import arrow_dlpack
import numpy as np
import pyarrow as pa
import pytest

MANY = 1_500_000
NUMBERS = np.arange(MANY)
COLUMN = pa.array(NUMBERS)
TABLE = pa.table({"x": COLUMN, "y": pa.array(NUMBERS % 2 == 0), "z": pa.array(NUMBERS, "float32")})
BATCH = TABLE.slice(0, 1).to_batches()[0]
MADE = {
    "cast": lambda **k: arrow_dlpack.to_tensor(COLUMN, dtype="float32", **k),
    "matrix": lambda **k: arrow_dlpack.to_tensor(TABLE, **k),
    "batch": lambda **k: arrow_dlpack.to_tensor(TABLE.select(["x", "x"]).to_batches()[0], **k),
    "columns": lambda **k: arrow_dlpack.to_tensor_dict(TABLE, dtype="float64", **k)["y"],
    "padded": lambda **k: arrow_dlpack.to_tensor(pa.array([[1], []]), pad=0, **k).values,
}


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
@pytest.mark.parametrize("threads", [None, 2, 7])
def test_several_threads_make_what_one_makes(make, threads):
    assert np.array_equal(np.asarray(make(threads=threads)), np.asarray(make(threads=1)))


@pytest.mark.parametrize("threads", [0, -1, 1.5, "2", 2**64])
def test_threads_are_a_number_from_1_on(threads):
    for function in (arrow_dlpack.to_tensor, arrow_dlpack.to_tensor_dict):
        with pytest.raises((TypeError, ValueError), match="must be None, or a number from 1"):
            function(TABLE, threads=threads)


def test_threads_are_how_and_not_what():
    array = pa.array([1, 2, 3])
    shared = np.asarray(arrow_dlpack.to_tensor(array, threads=2))
    assert shared.ctypes.data == array.buffers()[1].address


def test_a_thread_that_cannot_be_started_is_done_without():
    """As where a limit on memory, or on processes, leaves no room for its stack."""
    done = run(
        "import resource, sys\n"
        "import arrow_dlpack, numpy as np, pyarrow as pa\n"
        "array = pa.array(np.arange(4_000_000))\n"
        "arrow_dlpack.to_tensor(array, dtype='float32', threads=1)\n"
        "held = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (held + (40 << 20), -1))\n"
        "tensor = arrow_dlpack.to_tensor(array, dtype='float32', threads=64)\n"
        "print(float(np.asarray(tensor)[-1]))",
        RUST_MIN_STACK=str(1 << 30),
    )
    assert (done.stdout, done.returncode) == ("3999999.0\n", 0), done.stderr


def helpers(threads):
    """The most threads that are there during a conversion, beside those before it."""
    most, stop = 0, threading.Event()

    def look():
        nonlocal most
        while not stop.wait(0.001):
            most = max(most, len(os.listdir("/proc/self/task")))

    looker = threading.Thread(target=look)
    looker.start()
    before = len(os.listdir("/proc/self/task"))
    for _ in range(5 if threads is None else 200):
        arrow_dlpack.to_tensor(COLUMN, dtype="float64", threads=threads)
        if threads is not None and most - before == threads - 1:
            break
    stop.set()
    looker.join()
    return most - before


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="counts by /proc")
def test_a_worker_has_one_thread():
    with multiprocessing.get_context("fork").Pool(1) as pool:
        none, three = pool.map(helpers, [None, 3])
    # The system may list a thread for a moment after it was joined.
    assert none == 0
    assert three >= 2


def run(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


LONG = {
    "cast": "lambda: arrow_dlpack.to_tensor(column, dtype='float16', threads=1)",
    "cast by threads": "lambda: arrow_dlpack.to_tensor(column, dtype='float16', threads=2)",
    "matrix": "lambda: arrow_dlpack.to_tensor(table, threads=1)",
    "dict": "lambda: arrow_dlpack.to_tensor_dict(table, dtype='float16')",
    "copy of a tensor": "lambda: arrow_dlpack.from_dlpack(strided)",
    "transposed": "lambda: arrow_dlpack.from_dlpack(strided.T, type='fixed_size_list')",
    "padding": "lambda: arrow_dlpack.to_tensor(lists, pad=0, max_length=300)",
    "one padded row": "lambda: arrow_dlpack.to_tensor(lists[:1], pad=0, max_length=1 << 28)",
    "dense lists": "lambda: arrow_dlpack.to_tensor(pa.chunked_array([lists] * 40))",
    "ragged lists": "lambda: arrow_dlpack.ragged(pa.chunked_array([lists] * 40))",
    "ragged texts": "lambda: arrow_dlpack.ragged(pa.chunked_array([texts] * 40))",
    "many small texts": "lambda: arrow_dlpack.ragged(views)",
    "booleans that are scanned": "lambda: arrow_dlpack.to_tensor(bool8)",
    "packed booleans": "lambda: arrow_dlpack.from_dlpack(np.broadcast_to(True, (2000, 10**6)))",
    "a batch": "lambda: next(arrow_dlpack.iter_batches(table, dtype='float16', batch_size=10**9))",
    "a shuffle": "lambda: next(arrow_dlpack.iter_batches(table, batch_size=9, shuffle=10**7))",
    "shuffled lists": "lambda: next(arrow_dlpack.iter_batches(rows, batch_size=9, shuffle=9**7))",
}


@pytest.mark.parametrize("work", LONG.values(), ids=LONG)
def test_ctrl_c_ends_a_long_conversion(work):
    """Before it would have ended, and the source is as it was."""
    done = run(
        "import os, signal, sys, threading, time\n"
        "import arrow_dlpack, numpy as np, pyarrow as pa\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "row = np.arange(1_000_000) % 1000 * 1.0\n"
        # The same memory many times, so that the source is small and the result large.
        "chunk, many = pa.array(row), 100\n"
        "column = pa.chunked_array([chunk] * many)\n"
        "other = pa.chunked_array([pa.array(row, 'float32')] * many)\n"
        "table = pa.table({'x': column, 'y': other})\n"
        "strided = np.lib.stride_tricks.as_strided(row, (1000, 200_000), (0, 16))\n"
        "offsets = pa.array(range(0, 4_000_001, 4), 'i4')\n"
        "lists = pa.ListArray.from_arrays(offsets, np.arange(4_000_000))\n"
        "rows = pa.table({'x': pa.chunked_array([lists] * 20)})\n"
        "texts = pa.array(['a text'] * 1_000_000).cast('large_string')\n"
        "views = pa.chunked_array([texts.cast('string_view')] * 40)\n"
        "bools = pa.ExtensionArray.from_storage(pa.bool8(), pa.array(np.ones(10**7, 'i1')))\n"
        "bool8 = pa.chunked_array([bools] * 200)\n"
        f"work = {work}\n"
        "def interrupt():\n"
        # On a fast machine all of it takes little more than 50 ms.
        "    time.sleep(min(0.05, wall / 4))\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    sent.append(time.perf_counter())\n"
        "sent = []\n"
        # Memory that was used before takes a third of the time.
        "work()\n"
        "start, begin = time.process_time(), time.perf_counter()\n"
        "work()\n"
        "whole, wall = time.process_time() - start, time.perf_counter() - begin\n"
        "def spent():\n"
        "    threading.Thread(target=interrupt).start()\n"
        "    start = time.process_time()\n"
        "    try:\n"
        "        work()\n"
        "    except KeyboardInterrupt:\n"
        "        took = time.process_time() - start\n"
        "        print(f'{time.perf_counter() - sent[-1]:.3f} s', file=sys.stderr)\n"
        "        print(f'{took:.3f} of {whole:.3f} s of the processor', file=sys.stderr)\n"
        "        return took\n"
        # The thread that interrupts may be late where others keep the processors busy.
        "print(any(spent() < 0.9 * whole for _ in range(4)))\n"
        "print(arrow_dlpack._core._live(), arrow_dlpack.to_tensor(chunk).shape)\n"
    )
    assert done.stdout == "True\n(0, 0) (1000000,)\n", done.stderr


READ = {
    "to_tensor": arrow_dlpack.to_tensor,
    "iter_batches": lambda reader: list(arrow_dlpack.iter_batches(reader, batch_size=1)),
    "Loader": lambda reader: list(arrow_dlpack.Loader(reader, batch_size=1)),
}


@pytest.mark.parametrize("read", READ.values(), ids=READ)
@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError("no KeyboardInterrupt")])
def test_ctrl_c_that_meets_the_source_stays_what_it_is(read, error):
    def batches():
        yield BATCH
        raise error

    expected = KeyboardInterrupt if error is KeyboardInterrupt else ValueError
    with pytest.raises(expected, match="the Arrow stream failed: .*KeyboardInterrupt"):
        read(pa.RecordBatchReader.from_batches(BATCH.schema, batches()))


def test_no_signal_is_lost_in_a_long_conversion():
    # It waits in a function: CPython 3.13 leaves the last jump of a loop out of a `try` around it.
    # It sleeps there, because CPython 3.11 does not look for a signal that the system gave another
    # thread before it takes the GIL again. The first conversion imports a module, and CPython's
    # compiler loses the exception of a signal that comes meanwhile.
    done = run(
        "import random, signal, time\n"
        "import arrow_dlpack, numpy as np, pyarrow as pa\n"
        "table = pa.table({'a': np.arange(600_000), 'b': np.arange(600_000.0)})\n"
        "arrow_dlpack.to_tensor(table, dtype='float32')\n"
        "rung = raised = 0\n"
        "def ring(*_):\n"
        "    global rung\n"
        "    rung += 1\n"
        "    raise RuntimeError\n"
        "def wait(before):\n"
        "    while rung == before:\n"
        "        time.sleep(0)\n"
        "signal.signal(signal.SIGALRM, ring)\n"
        "for _ in range(800):\n"
        "    before = rung\n"
        "    try:\n"
        "        signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-5, 6e-3))\n"
        "        arrow_dlpack.to_tensor(table, dtype='float32')\n"
        "        wait(before)\n"
        "    except RuntimeError:\n"
        "        raised += 1\n"
        "assert rung == raised == 800, (rung, raised)\n"
    )
    assert done.returncode == 0, done.stderr


def test_an_interrupt_of_an_import_is_no_lack_of_the_module():
    """The first conversion of a table imports a module of ours."""
    done = run(
        "import sys\n"
        "import arrow_dlpack, pyarrow as pa\n"
        "class Interrupted:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        raise KeyboardInterrupt(name)\n"
        "table = pa.table({'a': [1]})\n"
        "sys.meta_path.insert(0, Interrupted())\n"
        "try:\n"
        "    arrow_dlpack.to_tensor(table)\n"
        "except KeyboardInterrupt as error:\n"
        "    print(error)\n"
        "sys.meta_path.pop(0)\n"
        "print(arrow_dlpack.to_tensor(table).shape)\n"
    )
    assert done.stdout == "arrow_dlpack._frames\n(1, 1)\n", done.stderr


@pytest.mark.parametrize("threads", [1, 8])
@pytest.mark.parametrize("mebibytes", [60, 90, 140, 300])
def test_rows_that_are_longer_than_memory_are_an_error_or_a_result(threads, mebibytes):
    done = run(
        "import resource\n"
        "import arrow_dlpack, numpy as np, pyarrow as pa\n"
        "rows, width = 4, 8 << 20\n"
        "values = pa.array(np.ones(rows * width, 'i2'))\n"
        "wide = pa.FixedSizeListArray.from_arrays(values, width)\n"
        "table = pa.table({'a': wide, 'b': np.arange(rows, dtype='f4')})\n"
        "arrow_dlpack.to_tensor(pa.table({'a': [1, 2], 'b': [1.0, 2.0]}), dtype='float32')\n"
        "held = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        f"limit = held + 4 * rows * (width + 1) + ({mebibytes} << 20)\n"
        "resource.setrlimit(resource.RLIMIT_AS, (limit, -1))\n"
        "try:\n"
        f"    made = arrow_dlpack.to_tensor(table, dtype='float32', threads={threads})\n"
        "except MemoryError:\n"
        "    pass\n"
        "else:\n"
        "    ends = np.asarray(made)[:, [0, -2, -1]]\n"
        "    assert ends.tolist() == [[1, 1, row] for row in range(rows)]\n"
    )
    assert done.returncode == 0, done.stderr
