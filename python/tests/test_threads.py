"""Threads that share arrays, tensors and capsules, let go at the same time by a barrier.

`make free-threaded-test` runs them, and most of the suite, on an interpreter without a GIL.
"""

import concurrent.futures
import ctypes
import gc
import os
import subprocess
import sys
import sysconfig
import threading

import exchange
import numpy as np
import pyarrow as pa
import pytest
from arrow_dlpack import Array, Tensor, asdlpack, explain, from_dlpack, to_tensor
from dlpack_conformance.abi.capsule import PyCapsule_GetName
from dlpack_conformance.abi.dlpack import DLTensor
from hostile import Producer

THREADS = 8
ROUNDS = 100


@pytest.fixture(autouse=True)
def many_turns():
    """With a GIL, threads that wait for each other would mostly wait for their turn."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


def at_once(work, threads=THREADS):
    """What `work(index)` returns in each of so many threads, which begin at the same time."""
    barrier = threading.Barrier(threads)

    def begin(index):
        barrier.wait()
        return work(index)

    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        return list(pool.map(begin, range(threads)))


def outcome(work):
    try:
        return work()
    except BufferError as error:
        return str(error)


def test_one_array_goes_to_and_fro_in_many_threads(live):
    source = pa.array([1.5, None, 2.5, 3.5])
    array, dense = Array(source), Array(source.slice(2))

    def work(index):
        for _ in range(ROUNDS):
            assert np.from_dlpack(dense).tolist() == [2.5, 3.5]
            assert memoryview(to_tensor(array, nulls=0)).tolist() == [1.5, 0, 2.5, 3.5]
            assert explain(array, nulls=0).bytes_copied == 32
            assert pa.array(from_dlpack(dense)).to_pylist() == [2.5, 3.5]
            assert pa.array(array).equals(source)
            if index % 2:
                dense.__dlpack__()
                assert "values" in repr(dense)

    at_once(work)
    gc.collect()
    assert live() == (0, 0)


def test_one_tensor_goes_to_and_fro_in_many_threads(live):
    producer = Producer()
    tensor = Tensor.from_dlpack(producer.capsule())

    def work(_index, tensor=tensor):
        for _ in range(ROUNDS):
            assert np.from_dlpack(tensor).tolist() == [1, 2, 3]
            assert Tensor.from_dlpack(tensor, copy=True).shape == (3,)
            assert pa.array(tensor.to_arrow()).to_pylist() == [1, 2, 3]
            assert memoryview(asdlpack(tensor)).tolist() == [1, 2, 3]
            tensor.__dlpack__(max_version=(1, 3), dl_device=(1, 0), copy=None)

    at_once(work)
    del tensor, work
    gc.collect()
    assert (producer.deleted, live()) == (1, (0, 0))


@pytest.mark.parametrize("legacy", [False, True], ids=["versioned", "legacy"])
@pytest.mark.parametrize("consume", [Tensor.from_dlpack, from_dlpack, asdlpack])
def test_a_capsule_that_many_threads_take_at_once_has_one_winner(consume, legacy):
    for _ in range(ROUNDS):
        producer = Producer(legacy=legacy)
        capsule = producer.capsule()
        taken = at_once(lambda _, capsule=capsule: outcome(lambda: consume(capsule)))
        won = [result for result in taken if not isinstance(result, str)]
        lost = [result for result in taken if isinstance(result, str)]
        assert len(won) == 1
        assert all("used already" in message for message in lost)
        del capsule
        gc.collect()
        assert producer.deleted == 0
        del won, taken
        gc.collect()
        assert producer.deleted == 1


def test_an_arrow_capsule_that_many_threads_take_at_once_has_one_winner():
    class Pair:
        def __init__(self, source):
            self.pair = source.__arrow_c_array__()

        def __arrow_c_array__(self, requested_schema=None):
            return self.pair

    class Stream:
        def __init__(self, source):
            self.stream = pa.chunked_array([source]).__arrow_c_stream__()

        def __arrow_c_stream__(self, requested_schema=None):
            return self.stream

    def take(shared):
        try:
            return pa.array(Array(shared)).to_pylist()
        except ValueError as error:
            return str(error)

    for kind in (Pair, Stream):
        for _ in range(ROUNDS):
            shared = kind(pa.array([1, 2, 3]))
            taken = at_once(lambda _, shared=shared: take(shared))
            assert taken.count([1, 2, 3]) == 1
            assert sum("released already" in result for result in taken) == THREADS - 1


def test_an_object_that_goes_while_others_export_it_stays_whole(live):
    for _ in range(ROUNDS):
        producer = Producer()
        holders = [Tensor.from_dlpack(producer.capsule())]
        views = []

        def work(index, holders=holders, views=views):
            if index == 0:
                holders.clear()
                return
            try:
                tensor = holders[0]
            except IndexError:
                return
            views.append(np.from_dlpack(tensor))

        at_once(work)
        assert all(view.tolist() == [1, 2, 3] for view in views)
        del holders, views, work
        gc.collect()
        assert producer.deleted == 1
    assert live() == (0, 0)


def test_views_of_one_buffer_come_and_go_in_many_threads():
    memory = bytearray(b"abcdef")

    def work(_index):
        for _ in range(ROUNDS):
            tensor = asdlpack(memory)
            view = memoryview(tensor)
            assert bytes(view) == b"abcdef"
            assert np.from_dlpack(tensor)[1] == ord("b")

    at_once(work)
    gc.collect()
    memory.extend(b"g")  # which an export would forbid


def borrowed_strides_of(tensor):
    """Their address in what the exchange API lends."""
    described = DLTensor()
    assert exchange.table_of(Tensor).lend(id(tensor), ctypes.addressof(described)) == 0
    return ctypes.cast(described.strides, ctypes.c_void_p).value


def test_a_borrowed_tensor_is_made_once_by_any_thread(live):
    """Of a tensor that came without strides, which keeps one that has some."""
    for _ in range(ROUNDS):
        producer = Producer(strides=None)
        tensor = Tensor.from_dlpack(producer.capsule())
        strides = at_once(lambda _, tensor=tensor: borrowed_strides_of(tensor))
        assert len(set(strides)) == 1
        assert strides[0]
        assert live() == (1, 1)
        del tensor
        gc.collect()
        assert producer.deleted == 1


def test_types_that_come_and_go_keep_their_own_tables(live):
    """Types with an exchange API and without one, made, asked and dropped in many threads."""
    table = Tensor.__dict__["__dlpack_c_exchange_api__"]
    source = np.arange(3)

    def make(with_table):
        def __dlpack__(self, **kwargs):
            return source.__dlpack__(**kwargs)

        names = {"__dlpack__": __dlpack__, "__dlpack_device__": lambda self: (1, 0)}
        # Its function refuses another type, and then __dlpack__ is called.
        return type(
            "Made", (), names | ({"__dlpack_c_exchange_api__": table} if with_table else {})
        )

    shared = make(True)

    def work(index):
        for turn in range(ROUNDS // 4):
            kind = make((index + turn) % 2 == 0)
            assert Tensor.from_dlpack(kind()).shape == (3,)
            assert Tensor.from_dlpack(shared()).shape == (3,)
            assert Tensor.from_dlpack(source).shape == (3,)

    at_once(work)
    gc.collect()
    assert live() == (0, 0)


def test_readers_of_one_source_see_the_whole_of_it_while_it_is_copied():
    """Over 256 KiB the copy runs without the GIL."""
    source = pa.array(np.arange(100_000) % 7 == 0)

    def work(_index):
        for _ in range(5):
            assert np.from_dlpack(to_tensor(source)).sum() == 14_286

    at_once(work)


FIRST = """
import sys, threading
import numpy as np, pyarrow as pa
threads = 8
barrier = threading.Barrier(threads)
failed = []
def begin(index):
    barrier.wait()
    try:
        import arrow_dlpack
        from arrow_dlpack import _core
        source = pa.array([1, 2, 3])
        array = arrow_dlpack.Array(source)
        assert np.from_dlpack(array).tolist() == [1, 2, 3]
        values, offsets = arrow_dlpack.ragged(pa.array([[1], [2, 3]]))
        masked = arrow_dlpack.ragged(pa.array([[1], None]), nulls="mask")
        assert type(masked).__name__ == "MaskedRagged"
        assert memoryview(offsets).tolist() == [0, 1, 3]
        assert arrow_dlpack.Tensor.from_dlpack(np.arange(3)).shape == (3,)
        array.__dlpack__(max_version=(1, index % 4), dl_device=(1, 0))
        try:
            arrow_dlpack.to_tensor(pa.array([None]))
        except arrow_dlpack.UnsupportedError:
            pass
        arrow_dlpack.to_tensor(source, nulls=0).__dlpack_c_exchange_api__
    except BaseException as error:
        failed.append(repr(error))
all_threads = [threading.Thread(target=begin, args=(index,)) for index in range(threads)]
for thread in all_threads: thread.start()
for thread in all_threads: thread.join()
assert not failed, failed
import gc; gc.collect()
from arrow_dlpack import _core
assert _core._live() == (0, 0), _core._live()
"""


def test_everything_that_is_made_on_first_use_may_be_made_by_many_at_once():
    """Module, classes, interned names, versions that are kept: in a new process each time."""
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", FIRST], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")


def test_versions_are_cached_whichever_thread_is_first():
    array = Array(pa.array([1, 2, 3]))

    def work(index):
        for turn in range(ROUNDS):
            # A new tuple each time, of few values.
            version = ((index + turn) % 2, turn % 4)
            name = PyCapsule_GetName(array.__dlpack__(max_version=version))
            assert name == (b"dltensor_versioned" if version[0] else b"dltensor")

    at_once(work)


def test_an_interpreter_without_a_gil_does_not_get_one_for_this_module():
    """Others have one in any case."""
    code = "import sys, arrow_dlpack; print(getattr(sys, '_is_gil_enabled', lambda: True)())"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHON_GIL"}
    found = subprocess.check_output(
        [sys.executable, "-W", "error", "-c", code], env=environment, text=True
    )
    assert found.strip() == str(not sysconfig.get_config_var("Py_GIL_DISABLED"))
