"""How batches end: by an error, early, in another thread, with the interpreter, in a fork."""

import ctypes
import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import tracemalloc
import weakref
from contextlib import contextmanager
from pathlib import Path

import hostile_arrow
import numpy as np
import pyarrow as pa
import pytest
import system
from arrow_dlpack import Loader, _core, iter_batches
from batch_sources import SCHEMA, Source, until
from conftest import environment

PREFETCH = pytest.mark.parametrize("prefetch", [0, 1, 3])


def numbers(batch):
    return np.from_dlpack(batch["x"]).tolist()


def drained(batches):
    """The rows, and the exception that ended them."""
    found = []
    try:
        for batch in batches:
            found += numbers(batch)
    except Exception as error:
        return found, error.with_traceback(None)  # which holds the last batch
    return found, None


@PREFETCH
@pytest.mark.parametrize("size", [None, 1, 7, 30, 31, 100])
def test_an_error_in_the_source_comes_after_all_rows_before_it(prefetch, size):
    source = Source(chunks=10, rows=10, fails_at=3)
    batches = iter_batches(source, batch_size=size, prefetch=prefetch)
    found, error = drained(batches)
    assert found == list(range(30))
    assert isinstance(error, ValueError)
    assert "the disk is on fire" in str(error)
    assert source.is_released()
    assert drained(batches) == ([], None)


@PREFETCH
def test_of_a_shuffled_source_that_fails_no_row_is_lost_either(prefetch):
    options = {"batch_size": 4, "shuffle": 1000, "prefetch": prefetch}
    found, error = drained(iter_batches(Source(fails_at=3), **options))
    assert sorted(found) == list(range(30))
    assert "the disk is on fire" in str(error)


@PREFETCH
def test_dropping_the_last_batch_raises_the_error_instead(prefetch):
    found, error = drained(
        iter_batches(Source(fails_at=3), batch_size=7, drop_last=True, prefetch=prefetch)
    )
    assert found == list(range(28))
    assert "the disk is on fire" in str(error)


@PREFETCH
def test_closing_stops_the_reader_and_releases_the_source(prefetch):
    source = Source(chunks=None)
    batches = iter_batches(source, prefetch=prefetch)
    assert numbers(next(batches)) == list(range(10))
    batches.close()
    assert source.released.is_set()
    assert source.read <= 2 + prefetch
    assert drained(batches) == ([], None)
    batches.close()


@PREFETCH
def test_leaving_a_with_block_closes(prefetch):
    source = Source(chunks=None)

    def read():
        with iter_batches(source, prefetch=prefetch) as batches:
            for _ in batches:
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        read()
    assert source.released.is_set()


@PREFETCH
def test_breaking_and_letting_go_stops_the_reader(prefetch):
    source = Source(chunks=None)
    for batch in iter_batches(source, batch_size=3, prefetch=prefetch):
        if numbers(batch)[0] > 20:
            break
    assert source.is_released()
    assert source.read < 10 + prefetch


@PREFETCH
def test_the_end_releases_the_source(prefetch):
    source = Source()
    batches = iter_batches(source, prefetch=prefetch)
    assert drained(batches) == (list(range(100)), None)
    assert source.released.is_set()


@PREFETCH
def test_an_error_of_a_batch_releases_the_source(prefetch):
    released = threading.Event()

    def generate():
        try:
            while True:
                yield pa.record_batch({"x": pa.array([1, None])})
        finally:
            released.set()

    reader = pa.RecordBatchReader.from_batches(SCHEMA, generate())
    batches = iter_batches(reader, prefetch=prefetch)
    del reader
    with pytest.raises(TypeError, match="1 null"):
        next(batches)
    until(released.is_set)


@PREFETCH
def test_batches_in_a_cycle_are_collected(prefetch):
    source = Source(chunks=None)

    class Holder:
        pass

    holder = Holder()
    holder.itself, holder.batches = holder, iter_batches(source, prefetch=prefetch)
    next(holder.batches)
    del holder
    gc.collect()
    assert source.is_released()


@PREFETCH
def test_releasing_leaves_the_exception_in_flight_alone(prefetch):
    """Python lets go of a call's arguments after the call has raised."""

    class Stream(hostile_arrow.EmptyStream):
        def release(self, pointer):
            try:
                int("none")
            except ValueError:
                super().release(pointer)

    stream = Stream()
    with pytest.raises(TypeError, match="int()"):
        int(iter_batches(stream, format="matrix", prefetch=prefetch))
    until(lambda: stream.released == 1)


@pytest.mark.parametrize("most", [1, 2, 5])
def test_so_many_batches_are_made_ahead_and_no_more(most):
    source = Source(chunks=None)
    with iter_batches(source, prefetch=most) as batches:
        for taken in range(4):
            until(lambda taken=taken: source.read == taken + most)
            time.sleep(0.02)
            assert source.read == taken + most
            next(batches)


def test_the_thread_works_while_the_consumer_does():
    """The second chunk is read before the consumer asks for it."""
    second = threading.Event()
    source = Source(before=lambda number: second.set() if number == 1 else None)
    with iter_batches(source, prefetch=2) as batches:
        next(batches)
        assert second.wait(10)
    assert threading.get_ident() not in source.threads


def test_reading_ahead_needs_no_gil():
    """All are ready while this thread, which holds the GIL, does not release it."""
    table = pa.table({"x": np.arange(1000)})
    interval = sys.getswitchinterval()
    before = _core._live()[0]
    sys.setswitchinterval(1000)
    try:
        batches = iter_batches(table, batch_size=10, prefetch=7)
        deadline = time.perf_counter() + 10
        while _core._live()[0] != before + 7:
            assert time.perf_counter() < deadline
    finally:
        sys.setswitchinterval(interval)
    assert len(list(batches)) == 100


def test_waiting_for_a_batch_lets_other_threads_run():
    go = threading.Event()
    source = Source(chunks=1, before=lambda number: go.wait(10))
    for prefetch in 0, 1:
        go.clear()
        timer = threading.Timer(0.05, go.set)
        timer.start()
        assert len(list(iter_batches(source, prefetch=prefetch))) == 1
        timer.join()


def of_itself(act, prefetch):
    """Batches to which their source does something; what it was refused, and when it is through."""
    opened, done, refusals = threading.Event(), threading.Event(), []

    def before(number):
        if number == 2:
            # Who reads ahead may get there before the batches have their name.
            opened.wait(10)
            try:
                act(batches)
            except ValueError as error:
                refusals.append(str(error))
            done.set()

    batches = iter_batches(Source(before=before), prefetch=prefetch)
    opened.set()
    return batches, refusals, done


@PREFETCH
def test_a_source_that_reads_its_own_batches_has_an_error(prefetch):
    batches, errors, _done = of_itself(next, prefetch)
    assert len(list(batches)) == 10
    assert len(errors) == 1


def test_reading_ahead_does_not_wait_for_itself():
    batches, errors, done = of_itself(next, prefetch=20)
    assert done.wait(10)
    assert errors == ["a source cannot wait for its own batches"]
    assert len(list(batches)) == 10


@PREFETCH
def test_a_source_that_closes_its_own_batches_does_not_wait_for_itself(prefetch):
    batches, refusals, done = of_itself(lambda batches: batches.close(), prefetch)
    drained(batches)
    assert done.wait(10)
    assert refusals in ([], ["these batches are being read already"])


def test_two_readers_at_once_are_an_error():
    entered, go = threading.Event(), threading.Event()

    def before(number):
        entered.set()
        go.wait(10)

    batches = iter_batches(Source(chunks=1, before=before))
    thread = threading.Thread(target=lambda: list(batches))
    thread.start()
    entered.wait(10)
    with pytest.raises(ValueError, match="are being read already"):
        next(batches)
    with pytest.raises(ValueError, match="are being read already"):
        batches.close()
    go.set()
    thread.join()


def test_threads_that_share_batches_get_each_row_once_or_an_error():
    batches = iter_batches(Source(chunks=50), batch_size=7, prefetch=3)
    found = []

    def work():
        while True:
            try:
                found.extend(numbers(next(batches)))
            except ValueError:
                continue
            except StopIteration:
                return

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == list(range(500))


def test_streams_that_say_anything_are_released_once():
    for answers in {}, {"get_next": hostile_arrow.GET(lambda *_: 7)}:
        for prefetch in 0, 1:
            stream = hostile_arrow.FailingStream(**answers)
            with pytest.raises(ValueError, match="the Arrow stream failed"):
                list(iter_batches(stream, prefetch=prefetch))
            assert stream.released == 1


@PREFETCH
def test_a_chunk_of_another_type_is_an_error_after_those_before_it(prefetch):
    """The schema says structs of one int32; the third chunk is something else."""
    for wrong in [
        {"n_children": 2},
        {"length": -5},
        {"length": 1 << 62, "n_buffers": 1},
        {"n_buffers": 0},
    ]:
        stream = ChangingStream(wrong)
        found, error = drained(iter_batches(stream, prefetch=prefetch))
        assert found == [0] * 16
        assert "malformed" in str(error)
        assert stream.released == 1
        assert [source.released for source in stream.sources[:3]] == [1, 1, 1]


class ChangingStream(hostile_arrow.FailingStream):
    """Two good chunks, then one that is none of the schema."""

    def __init__(self, wrong):
        self.schema = self.chunk()
        self.sources = [self.chunk(), self.chunk(), self.chunk(**wrong), self.chunk()]
        self.next = 0
        super().__init__(
            get_schema=hostile_arrow.GET(self.fill_schema),
            get_next=hostile_arrow.GET(self.fill_next),
        )

    def chunk(self, **wrong):
        column = hostile_arrow.Source({"name": b"x"})
        fields = {"format": b"+s"}
        chunk = hostile_arrow.Source(
            fields, [column.schema], [column.array], **{"buffers": [None], "length": 8} | wrong
        )
        chunk.column = column
        return chunk

    def fill_schema(self, _stream, out):
        schema = self.schema.schema
        ctypes.memmove(out, ctypes.addressof(schema), ctypes.sizeof(schema))
        return 0

    def fill_next(self, _stream, out):
        array = self.sources[self.next].array
        ctypes.memmove(out, ctypes.addressof(array), ctypes.sizeof(array))
        self.next += 1
        return 0


@PREFETCH
def test_memory_does_not_grow_with_the_stream(prefetch):
    """Of 400 chunks of 1 MB never more than a few are there."""
    alive, most = 0, 0

    def generate():
        nonlocal alive, most
        for _ in range(400):
            values = np.zeros(1 << 17)
            alive += 1
            most = max(most, alive)
            weakref.finalize(values, gone)
            yield pa.record_batch({"x": pa.array(values)})

    def gone():
        nonlocal alive
        alive -= 1

    schema = pa.schema([("x", pa.float64())])
    reader = pa.RecordBatchReader.from_batches(schema, generate())
    rows = sum(
        batch["x"].shape[0] for batch in iter_batches(reader, batch_size=1000, prefetch=prefetch)
    )
    assert rows == 400 << 17
    assert most <= 5 + prefetch


def threads():
    """Those that are ours, or may be: one that has just begun still bears the name of this one."""
    names = {"arrow_dlpack\n", name_of("self")}
    # No Path: it interns all names, and those stay where there is no GIL.
    return {task for task in os.listdir("/proc/self/task") if name_of(f"self/task/{task}") in names}


def name_of(task):
    try:
        with open(f"/proc/{task}/comm") as name:
            return name.read()
    except OSError:  # it has ended just now
        return None


def test_nothing_is_left_behind():
    others = threads()

    def once():
        for prefetch in 0, 2:
            list(iter_batches(Source(), batch_size=3, prefetch=prefetch))
            with iter_batches(Source(), batch_size=3, prefetch=prefetch) as batches:
                next(batches)
            # Not a source that fails: pyarrow keeps a few hundred bytes of each such error.
            drained(iter_batches(pa.table({"x": [1, None]}), prefetch=prefetch))
            iter_batches(Source(), shuffle=9, batch_size=2, prefetch=prefetch)
        # CPython 3.11 crashes if tracing stops while a thread asks for the GIL.
        until(lambda: threads() <= others)
        gc.collect()

    # Bytes for each; without a GIL the interpreter keeps more for later, 25 in the long run.
    has_gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    most = 50 * 8 * (100 if has_gil else 300)

    def grown():
        tracemalloc.start()
        try:
            once()
            before = tracemalloc.take_snapshot()
            for _ in range(50):
                once()
            after = tracemalloc.take_snapshot()
        finally:
            tracemalloc.stop()
        found = after.compare_to(before, "lineno")
        return sum(stat.size_diff for stat in found), found[:5]

    for _ in range(3):
        once()
    # What is left behind grows each time, and a table of another library's once.
    rounds = [grown()]
    while rounds[-1][0] >= most and len(rounds) < 3:
        rounds.append(grown())
    assert rounds[-1][0] < most, rounds


def run(code):
    """A process of its own, which must end by itself, without a word."""
    code = (
        "import conftest, numpy as np, pyarrow as pa\nfrom arrow_dlpack import iter_batches\n"
        + textwrap.dedent(code)
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=environment(Path(__file__).parent),
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("prefetch", [0, 2])
@pytest.mark.parametrize("held", [True, False], ids=["held", "let go"])
def test_the_interpreter_ends_with_batches_on_their_way(prefetch, held):
    run(
        f"""
        from batch_sources import Source
        import time
        source = Source(chunks=None, before=lambda number: time.sleep(0.001))
        batches = iter_batches(source, prefetch={prefetch}, batch_size=25)
        next(batches)
        {"" if held else "del batches"}
        """
    )


def test_the_interpreter_ends_while_another_thread_reads():
    run(
        """
        import contextlib, threading, time
        from batch_sources import Source
        batches = iter_batches(Source(chunks=None), prefetch=2)
        def read():
            with contextlib.suppress(RuntimeError):  # the interpreter is ending
                for _ in batches:
                    pass
        threading.Thread(target=read, daemon=True).start()
        time.sleep(0.2)
        """
    )


@system.needs_resource
def test_without_memory_for_a_thread_there_is_an_error():
    out = run(
        """
        import resource
        from batch_sources import Source
        source = Source()
        pages = int(open("/proc/self/statm").read().split()[0])
        limit = pages * resource.getpagesize() + (4 << 20)  # its stack alone takes 8
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
        try:
            next(iter_batches(source, prefetch=2))
        except RuntimeError as error:
            print(error)
        """
    )
    assert out.startswith("no thread to read ahead: ")


def test_once_the_interpreter_is_ending_nothing_is_read_ahead():
    out = run(
        """
        from arrow_dlpack import _core
        from batch_sources import Source
        batches, source = iter_batches(Source(), prefetch=2), Source()
        next(batches)
        _core._stop_batches()  # what atexit calls
        for read in lambda: next(batches), lambda: iter_batches(source, prefetch=2):
            try:
                read()
            except RuntimeError as error:
                print(error)
        print(list(batches), source.released.is_set(), len(list(iter_batches(Source()))))
        """
    )
    refused = "nothing is read ahead: the interpreter is ending"
    assert out.splitlines() == [refused, refused, "[] True 10"]


@pytest.mark.parametrize("prefetch", [0, 2])
def test_a_fork_has_no_part_in_its_parents_batches(prefetch):
    out = run(
        f"""
        import os, sys
        from batch_sources import Source
        batches = iter_batches(Source(), prefetch={prefetch})
        first = np.from_dlpack(next(batches)["x"]).tolist()
        child = os.fork()
        if child == 0:
            try:
                next(batches)
            except RuntimeError as error:
                print(error, flush=True)
            batches.close()
            own = iter_batches(Source(), prefetch={prefetch})
            print(len(list(own)), flush=True)
            own = iter_batches(Source(chunks=None), prefetch={prefetch})
            next(own)
            del batches
            sys.exit(0)  # and not os._exit: the interpreter ends
        assert os.waitpid(child, 0)[1] == 0
        print(len(list(batches)))
        """
    )
    assert out.splitlines() == [
        "these batches were opened before the fork: open them in the process that reads them",
        "10",
        "9",
    ]


def too_slow(*_):
    """The handler of a signal such as `signal.alarm` sends: an error as a source might raise."""
    raise TimeoutError("too slow")


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize(
    ("handler", "error"),
    [(signal.default_int_handler, KeyboardInterrupt), (too_slow, TimeoutError)],
    ids=["Ctrl-C", "an alarm"],
)
@pytest.mark.parametrize("options", [{}, {"transform": dict}], ids=str)
def test_a_signal_does_not_wait_for_a_source_that_hangs(options, handler, error):
    go, waited = threading.Event(), []

    def before(number):
        if number == 2:
            waited.append(go.wait(60))

    signal.signal(signal.SIGINT, handler)
    source = Source(chunks=None, before=before)
    batches = iter_batches(source, prefetch=2, **options)
    next(batches)
    timer = threading.Timer(0.2, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(error, match="too slow" if error is TimeoutError else None):
        list(batches)
    timer.join()
    assert list(batches) == []
    assert waited == []
    go.set()
    assert source.is_released()


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("options", [{}, {"transform": dict}], ids=str)
def test_an_epoch_that_ctrl_c_left_at_a_source_that_hangs_stands_there(options):
    go = threading.Event()

    def part(_index, _count):
        for number in range(10):
            if number == 3:
                go.wait(60)
            yield pa.table({"x": [number]})

    loader = Loader(part, batch_size=1, prefetch=2, **options)
    batches = iter(loader)
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        list(batches)
    timer.join()
    assert next(batches, None) is None
    state = loader.state_dict()
    assert (state["epoch"], state["batch"]) == (0, 3)
    go.set()
    loader.load_state_dict(state)
    assert [batch["x"].tolist() for batch in loader] == [[number] for number in range(3, 10)]


def test_the_process_ends_where_a_source_hangs():
    found = run("""
        import threading
        def batches():
            yield pa.table({"x": [1]})
            threading.Event().wait()

        read = iter_batches(batches(), batch_size=1, prefetch=2)
        print(len(next(read)["x"]))
    """)
    assert found == "1\n"


@PREFETCH
@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_ends_the_waiting(prefetch):
    """Of a source without an end, and without a row."""

    def empty():
        while True:
            yield pa.record_batch({"x": pa.array([], pa.int64())})

    reader = pa.RecordBatchReader.from_batches(SCHEMA, empty())
    batches = iter_batches(reader, prefetch=prefetch)
    timer = threading.Timer(0.2, lambda: signal.raise_signal(signal.SIGINT))
    timer.start()
    # Without a thread it may meet the source's own Python code.
    with pytest.raises(KeyboardInterrupt):
        next(batches)
    timer.join()
    batches.close()


@pytest.mark.parametrize("prefetch", [0, 2])
def test_ctrl_c_that_a_source_meets_is_raised_in_the_main_thread(prefetch):
    found = run(f"""
        import signal, threading, time
        # A shell starts what runs in the background without a handler.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        def batches():
            yield pa.table({{"x": [1]}})
            is_ahead = threading.current_thread() is not threading.main_thread()
            assert is_ahead == {bool(prefetch)}
            raise KeyboardInterrupt

        try:
            # A thread that reads ahead may raise it from here on.
            read = iter_batches(batches(), batch_size=1, prefetch={prefetch})
            next(read)
            while {bool(prefetch)}:
                time.sleep(0.01)
            next(read)
        except KeyboardInterrupt:
            print("interrupted")
    """)
    assert found == "interrupted\n"


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_ends_a_long_batch():
    """Of chunks that are there, so that no other Python code meets it."""
    table = pa.table({"x": pa.chunked_array([pa.array([1.0])] * 1_000_000)})
    batches = iter_batches(table, batch_size=2_000_000, format="matrix")
    timer = threading.Timer(0.05, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        next(batches)
    timer.join()
    assert list(batches) == []


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_ends_the_waiting_of_close():
    entered, go = threading.Event(), threading.Event()

    def before(number):
        if number == 2:
            entered.set()
            go.wait(10)

    source = Source(chunks=None, before=before)
    batches = iter_batches(source, prefetch=2)
    next(batches)
    assert entered.wait(10)
    timer = threading.Timer(0.2, lambda: signal.raise_signal(signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        batches.close()
    timer.join()
    assert list(batches) == []
    go.set()
    assert source.is_released()


@PREFETCH
def test_who_lets_go_finds_the_source_released(prefetch):
    """However it goes: by its name, by an exception, by the garbage collector on another thread."""

    def opened():
        source = Source(chunks=None, before=lambda number: time.sleep(0.01))
        return source, iter_batches(source, prefetch=prefetch)

    source, batches = opened()
    next(batches)
    del batches
    assert source.released.is_set()

    def fail():
        source, batches = opened()
        sources.append(source)
        for _ in batches:
            del batches
            raise ZeroDivisionError

    sources = []
    with pytest.raises(ZeroDivisionError):
        fail()
    assert sources[0].released.is_set()

    source, batches = opened()
    circle = [batches]
    circle.append(circle)
    next(batches)
    del batches, circle
    thread = threading.Thread(target=gc.collect)
    thread.start()
    thread.join()
    assert source.released.is_set()


def test_letting_go_waits_only_so_long_for_a_source_that_waits_for_the_same_lock():
    lock, entered = threading.Lock(), threading.Event()

    def before(number):
        entered.set()
        with lock:
            pass

    source = Source(chunks=None, before=before)
    with lock:
        batches = iter_batches(source, prefetch=2)
        assert entered.wait(10)
        del batches
        assert not source.released.is_set()
    assert source.is_released()


def test_rows_that_cannot_be_counted_are_an_error():
    """Of no memory at all."""
    empty = pa.array([], pa.int8())
    rows = pa.Array.from_buffers(pa.list_(pa.int8(), 0), 1 << 62, [None], children=[empty])
    column = pa.record_batch({"x": rows})
    found = iter_batches(
        pa.RecordBatchReader.from_batches(column.schema, [column] * 5), batch_size=(1 << 64) - 1
    )
    with pytest.raises((ValueError, BufferError), match="overflow"):
        list(found)
    buffer = {"batch_size": 1 << 61, "shuffle": 1 << 61}
    with pytest.raises(MemoryError):
        list(iter_batches(pa.table({"x": rows}), **buffer))


def test_no_thread_starts_once_the_interpreter_is_ending():
    out = run(
        """
        from arrow_dlpack import _core
        from batch_sources import Source
        source = Source()
        _core._stop_batches()  # what atexit calls
        try:
            next(iter(iter_batches(source, prefetch=2)))
        except RuntimeError as error:
            print(error)
        print(source.released.wait(5))
        """
    )
    assert out == "nothing is read ahead: the interpreter is ending\nTrue\n"


def test_a_daemon_thread_that_reads_ends_without_a_word():
    out = run(
        """
        import io, sys, threading
        import pyarrow as pa
        from arrow_dlpack import Loader, _core
        loader = Loader(pa.table({"x": range(10_000)}), batch_size=10, prefetch=2)
        started, over = threading.Event(), []
        def read():
            try:
                while True:
                    for _ in loader:
                        started.set()
            finally:
                over.append(sys.exc_info()[0])
        sys.stderr = io.StringIO()
        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        started.wait()
        _core._stop_batches()  # what atexit calls
        thread.join(30)
        print(over, thread.is_alive(), repr(sys.stderr.getvalue()))
        """
    )
    assert out == "[<class 'SystemExit'>] False ''\n"


@pytest.mark.parametrize("read", ["loader", "loader.torch()"])
@pytest.mark.parametrize("last", [1000, 900])
def test_a_thread_that_reads_on_when_the_main_thread_has_ended_gets_all_rows(read, last):
    """A script whose last line starts the training: Python waits for that thread."""
    out = run(
        f"""
        import threading
        import pyarrow as pa
        from arrow_dlpack import Loader
        started, ended = threading.Event(), threading.main_thread()
        def check(batch):
            if batch["x"][0] == {last}:
                raise ValueError("this one fails")
            return batch
        def train():
            loader = Loader(
                pa.table({{"x": range(1000)}}),
                batch_size=10,
                transform=check,
                prefetch=2,
                framework="numpy",
            )
            for _ in range(2):
                rows = 0
                try:
                    for batch in {read}:
                        rows += len(batch["x"])
                        started.set()
                        while rows > 100 and ended.is_alive():
                            pass
                except ValueError as error:
                    print(error, end=" ")
                print(rows)
        threading.Thread(target=train).start()
        started.wait()
        """
    )
    assert out == ("1000\n" * 2 if last == 1000 else "this one fails 900\n" * 2)


@pytest.mark.parametrize("end", ["break", "close", "error", "end"])
@pytest.mark.parametrize("options", [{}, {"prefetch": 0}, {"shuffle": 9, "seed": 1}], ids=str)
def test_the_generator_of_a_function_is_closed_with_its_loop(end, options):
    """A user's own is not: others may read its rest."""
    events = []

    def made():
        events.append("open")
        try:
            for at in range(10):
                yield pa.table({"x": [at] * 2})
        finally:
            events.append("closed")

    loader = Loader(lambda index, count: made(), batch_size=3, **options)
    for epoch in range(1, 3):
        batches = iter(loader)
        next(batches)
        if end == "close":
            batches.close()
        elif end == "end":
            list(batches)
        elif end == "error":
            with pytest.raises(ZeroDivisionError):
                [1 / 0 for _ in batches]
        del batches
        gc.collect()
        assert events == ["open", "closed"] * epoch
    events.clear()
    own = made()
    with iter(Loader(own, batch_size=3, prefetch=0)) as batches:
        next(batches)
    assert (events, next(own)["x"].to_pylist()) == (["open"], [2, 2])


def test_what_a_function_returns_may_have_no_way_to_close():
    class Cursor:
        close = None

        def __init__(self):
            self.left = 3

        def __iter__(self):
            return self

        def __next__(self):
            self.left -= 1
            if self.left < 0:
                raise StopIteration
            return pa.table({"x": [self.left]})

    loader = Loader(lambda index, count: Cursor(), batch_size=1, prefetch=0)
    assert [batch["x"].tolist() for batch in loader] == [[2], [1], [0]]
    with iter(loader) as batches:
        next(batches)


@PREFETCH
@pytest.mark.parametrize("transform", [None, lambda batch: batch], ids=["plain", "transformed"])
@pytest.mark.parametrize("of_function", [False, True])
def test_a_source_that_holds_its_own_batches_is_collected(prefetch, transform, of_function):
    class Holder:
        def rows(self):
            for _ in range(100):
                yield pa.record_batch({"x": [1, 2]})

    def opened(holder):
        options = {"batch_size": 2, "prefetch": prefetch, "transform": transform}
        if of_function:
            return iter(Loader(lambda index, count: holder.rows(), **options))
        return iter_batches(holder.rows(), **options)

    threads, holder = threading.active_count(), Holder()
    holder.batches = opened(holder)
    next(holder.batches)
    gone = weakref.ref(holder)
    del holder

    def is_collected():
        gc.collect()  # a thread may have the source for one batch
        return gone() is None

    until(is_collected)
    until(lambda: threading.active_count() == threads)


def test_what_a_thread_reads_is_no_garbage_while_it_reads():
    """A finalizer in the cycle lets the thread go on, which would read what is collected."""
    table = pa.table({"x": np.arange(10_000_000)})  # of which a conversion takes a while
    ended = []

    class Held:
        def __del__(self):
            time.sleep(0.2)

    def begun():
        held, is_read = Held(), threading.Event()

        def rows():
            try:
                for number in range(5):
                    if number == 1:
                        is_read.set()
                    if number == 2:
                        time.sleep(0.4)  # after the finalizer
                    _ = held
                    yield table
            finally:
                ended.append(True)

        options = {"batch_size": len(table), "dtype": "float32", "prefetch": 4}
        held.batches = iter_batches(rows(), **options)
        next(held.batches)
        return is_read

    with unraisable() as raised:
        for _ in range(4):
            begun().wait()
            time.sleep(0.004)
            gc.collect()

        def are_ended():
            gc.collect()
            return len(ended) == 4

        until(are_ended)
    assert not raised


@contextmanager
def unraisable():
    """The exceptions that Python ignores."""
    found, before = [], sys.unraisablehook
    sys.unraisablehook = lambda told: found.append(repr(told.exc_value))
    try:
        yield found
    finally:
        sys.unraisablehook = before
