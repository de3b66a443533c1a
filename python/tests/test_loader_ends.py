"""How epochs of a `Loader` end: by an exception of Python code, early, by Ctrl-C."""

import gc
import pickle
import signal
import sys
import threading
import time

import duckdb
import numpy as np
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pytest
import system
from arrow_dlpack import (
    Array,
    AsArrow,
    ByLength,
    ByTokens,
    Categories,
    Loader,
    Mix,
    StreamError,
    iter_batches,
    to_tensor_dict,
)

BATCH = pa.record_batch({"x": [1, 2], "t": ["a", "b"]})


class MineError(Exception):
    pass


def failing(error):
    yield BATCH
    raise error


@pytest.mark.parametrize("prefetch", [0, 2])
@pytest.mark.parametrize(
    "options",
    [
        {"columns": ["x"]},
        {"columns": ["x"], "batch_size": 1, "shuffle": 1},
        {"columns": {"t": Categories(["a", "b"])}},
        {"columns": ["x"], "batch_size": ByLength(1, "t")},
        {"columns": ["x"], "transform": dict},
    ],
    ids=["plain", "shuffled", "encoded", "sorted", "transformed"],
)
def test_an_exception_of_a_python_source_reaches_the_caller_as_itself(prefetch, options):
    error = MineError("boom")
    with pytest.raises(MineError) as raised:
        list(Loader(failing(error), prefetch=prefetch, **options))
    assert raised.value is error
    assert [frame.name for frame in raised.traceback][-1] == "failing"


def test_so_does_that_of_an_encoded_value_and_of_iter_batches():
    with pytest.raises(ValueError, match='^column "t": "b", which is not among'):
        list(Loader([BATCH], columns={"t": Categories(["a"])}))
    error = MineError("boom")
    with pytest.raises(MineError) as raised:
        list(iter_batches(failing(error), columns=["x"]))
    assert raised.value is error


def test_of_a_reader_of_pyarrow_an_exception_keeps_its_type_and_message_as_words():
    source = pa.RecordBatchReader.from_batches(BATCH.schema, failing(KeyError("k")))
    with pytest.raises(StreamError, match="the Arrow stream failed") as raised:
        list(Loader(source, columns=["x"]))
    assert isinstance(raised.value, ValueError)
    assert pickle.loads(pickle.dumps(raised.value)).args == raised.value.args
    assert str(raised.value) == "the Arrow stream failed: KeyError: 'k'"
    assert "in failing" in raised.value.__notes__[0]


def test_what_is_read_without_a_stream_raises_an_error_of_its_own(tmp_path):
    """As the page of errors has it."""
    lazy = polars.LazyFrame({"x": ["a"]}).select(polars.col("x").cast(polars.Int64))
    with pytest.raises(polars.exceptions.InvalidOperationError, match="conversion from `str`"):
        list(Loader(lazy))
    (tmp_path / "x.csv").write_text("x\n" + "1\n" * 800000 + "a\n")
    with pytest.raises(ValueError, match="x.csv: ") as raised:
        list(Loader(tmp_path / "x.csv", batch_size=1000))
    assert not isinstance(raised.value, StreamError)
    late = "case when i = 3000000 then 'a' else '1' end"
    query = duckdb.sql(f"select cast({late} as int) x from range(4000000) t(i)")
    with pytest.raises(StreamError, match="Could not convert string 'a' to INT32"):
        list(Loader(query))


JAVA = """An error occurred while calling o45.getResult.
: org.apache.spark.SparkException: Job aborted due to stage failure
\tat org.apache.spark.api.python.Server.getResult(Server.scala:97)
\tat java.base/java.lang.Thread.run(Thread.java:840)
Caused by: java.io.FileNotFoundException: part-0.parquet
\t... 1 more"""


@pytest.mark.parametrize(
    "read",
    [
        lambda source: to_tensor_dict(source, columns=["x"]),
        Array,
        lambda source: list(Loader(source, columns=["x"])),
        lambda source: list(Loader(source, batch_size=1, columns=["x"], prefetch=1)),
        lambda source: to_tensor_dict(pa.RecordBatchReader.from_stream(source)),
    ],
)
@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("bad row\n  file 1\n  file 2"), "ValueError: bad row\n  file 1\n  file 2"),
        (MineError("a: b\n\nc: d\n"), "MineError: a: b\n\nc: d"),
        (ValueError(), "ValueError"),
        (
            RuntimeError(JAVA),
            "RuntimeError: An error occurred while calling o45.getResult.\n: org.apache.spark."
            "SparkException: Job aborted due to stage failure\nCaused by: java.io."
            "FileNotFoundException: part-0.parquet",
        ),
        (ValueError("x\n" * 500), "ValueError: " + "x\n" * 20 + "..."),
        (ExceptionGroup("several\nfailed", [KeyError("k")]), "several\nfailed (1 sub-exception)"),
    ],
    ids=["lines", "colons", "none", "java", "long", "group"],
)
def test_of_a_stream_that_fails_all_lines_of_the_message_are_told(read, error, said):
    source = pa.RecordBatchReader.from_batches(BATCH.schema, failing(error))
    with pytest.raises(ValueError, match="the Arrow stream failed") as raised:
        read(source)
    assert str(raised.value).split("failed: ", 1)[1].endswith(said)
    assert "in failing" in raised.value.__notes__[0]


def test_of_a_filtered_generator_an_exception_stays_what_it_is():
    with pytest.raises(KeyError, match="'k'"):
        list(Loader(failing(KeyError("k")), columns=["x"], filter=pc.field("x") > 0))


def test_of_several_parts_an_error_tells_which_one():
    error = MineError("gone")
    reader = pa.RecordBatchReader.from_batches(BATCH.schema, failing(KeyError("k")))
    with pytest.raises(KeyError, match="k") as raised:
        list(Loader([pa.table(BATCH), reader], columns=["x"]))
    assert "as part 1 was read" in raised.value.__notes__[-1]
    mix = Mix([(pa.table(BATCH), 1), (failing(error), 1)])
    with pytest.raises(MineError) as raised:
        list(Loader(mix, columns=["x"], filter=pc.field("x") > -1))
    assert raised.value is error
    assert "as source 1 of the Mix was read" in error.__notes__[-1]


def slow(asked, seconds=0.05):
    for number in range(400):
        asked.append(number)
        time.sleep(seconds)
        yield pa.record_batch({"x": [number] * 10})


@pytest.mark.parametrize("prefetch", [0, 2])
@pytest.mark.parametrize("transform", [None, dict])
@pytest.mark.parametrize("end", ["close", "drop"])
def test_the_end_waits_for_no_buffer_of_a_shuffle(prefetch, transform, end):
    asked = []
    options = {"prefetch": prefetch, "transform": transform}
    epoch = iter(Loader(slow(asked), batch_size=5, shuffle=2000, **options))
    deadline = time.monotonic() + 30
    while prefetch and len(asked) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    if end == "close":
        epoch.close()
    del epoch
    gc.collect()
    # Those of other libraries, such as tqdm's monitor, stay.
    while "arrow_dlpack.Loader" in {thread.name for thread in threading.enumerate()}:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert len(asked) < 100  # of the 200 that fill the buffer


@pytest.mark.parametrize("prefetch", [0, 2])
@pytest.mark.parametrize("transform", [None, dict])
def test_ctrl_c_waits_for_no_buffer_of_a_shuffle(prefetch, transform):
    # A shell's background jobs ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    asked = []
    options = {"prefetch": prefetch, "transform": transform}
    epoch = iter(Loader(slow(asked), batch_size=5, shuffle=2000, **options))
    timer = threading.Timer(0.3, system.interrupt)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        next(epoch)
    assert len(asked) < 100
    assert list(epoch) == []
    timer.join()


def texts_of(view):
    words = pa.array([str(number) for number in range(30)], view)
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([10, 30], pa.int32()), pa.array([1, 2]))
    offsets = pa.array(range(31), pa.int32())
    return {
        "views": words,
        "lists of views": pa.ListArray.from_arrays(offsets, words),
        "structs of views": pa.StructArray.from_arrays([words], ["a"]),
        "runs": runs,
        "lists of runs": pa.ListArray.from_arrays(offsets, runs),
    }


COLUMNS = texts_of(pa.string_view())


@pytest.mark.parametrize("of", COLUMNS)
@pytest.mark.parametrize("by", [ByLength(4, "tokens"), ByTokens(12, "tokens")])
@pytest.mark.parametrize("shuffle", [None, 13])
def test_rows_are_sorted_by_length_beside_columns_of_any_type(of, by, shuffle):
    tokens = pa.array([[number] * (number % 5) for number in range(30)])
    table = pa.table({"x": range(30), "tokens": tokens, "other": COLUMNS[of]})
    found = {}
    for batch in Loader(
        table, batch_size=by, columns={"x": None, "other": AsArrow()}, shuffle=shuffle
    ):
        numbers, others = np.asarray(batch["x"]).tolist(), pa.array(batch["other"]).to_pylist()
        found |= dict(zip(numbers, others, strict=True))
    assert [found[number] for number in range(30)] == table["other"].to_pylist()


def test_rows_are_sorted_by_the_length_of_views():
    words = pa.array(["a" * (number % 7) for number in range(30)], pa.string_view())
    table = pa.table({"x": range(30), "words": words})
    lengths = []
    for batch in Loader(table, batch_size=ByLength(5, "words"), columns={"words": AsArrow()}):
        lengths += [len(word) for word in pa.array(batch["words"]).to_pylist()]
    assert lengths == sorted(lengths)


def test_an_interruption_in_the_source_comes_once():
    def batches():
        yield pa.record_batch({"x": [1]})
        raise KeyboardInterrupt("once")

    came = []
    before = signal.signal(signal.SIGINT, lambda *_: came.append("a signal"))
    try:
        with pytest.raises(KeyboardInterrupt, match="once"):
            list(Loader(batches(), batch_size=1))
        for _ in range(100):
            pass
    finally:
        signal.signal(signal.SIGINT, before)
    assert not came


@pytest.mark.parametrize(
    "options", [{"batch_size": ByLength(2, "x")}, {"batch_size": 2, "shuffle": 2}]
)
def test_lists_without_values_are_drawn(options):
    empty = pa.array([[], None, []], pa.list_(pa.int8(), 0))
    within = pa.StructArray.from_arrays([empty], ["e"])
    table = pa.table({"x": [[1], [2, 3], []], "empty": empty, "within": within})
    columns = {"x": None, "empty": AsArrow(), "within": AsArrow()}
    drawn = list(Loader(table, columns=columns, **options))
    rows = [row for batch in drawn for row in pa.array(batch["within"]).to_pylist()]
    assert sorted(map(str, rows)) == sorted(map(str, within.to_pylist()))
    assert sum(len(pa.array(batch["empty"])) for batch in drawn) == 3


def test_a_function_whose_only_part_is_none_lacks_a_return():
    loader = Loader(lambda index, count: None)
    for _ in range(2):
        with pytest.raises(ValueError, match=r"returned None.*is there a return missing"):
            list(loader)
    with pytest.raises(ValueError, match="was not read before"):
        list(Loader(map(str, ())))


def test_batches_whose_thread_does_not_start_say_so_alone(monkeypatch):
    """What they left would be an exception of their __del__ beside it."""
    seen, start = [], threading.Thread.start

    def refuses(thread):
        if thread.name == "arrow_dlpack.Loader":
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuses)
    monkeypatch.setattr(sys, "unraisablehook", seen.append)
    loader = Loader(pa.table({"x": [1.0]}), batch_size=1, prefetch=1, transform=lambda batch: batch)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        next(iter(loader))
    gc.collect()
    assert not seen


def test_ctrl_c_finds_no_lock_of_python_to_leave_closed(monkeypatch):
    """Behind one that it interrupts, the end of the loop would wait for ever."""
    batches = iter(Loader([BATCH] * 9, batch_size=1, columns=["x"], transform=dict, prefetch=2))
    entered, enter = [], threading.Condition.__enter__
    next(batches)

    def entering(self):
        if threading.current_thread() is threading.main_thread():
            entered.append(self)
        return enter(self)

    monkeypatch.setattr(threading.Condition, "__enter__", entering)
    next(batches)
    batches.close()
    assert entered == []
