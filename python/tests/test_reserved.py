"""A few bytes that would become more than there is: an error before anything is reserved, no abort.

What could end the process runs in one of its own, which may have 6 GB.
"""

import os
import random
import subprocess
import sys
from pathlib import Path

import arrow_dlpack as ad
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

HERE = Path(__file__).parent
PRELUDE = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
import arrow_dlpack as ad, numpy as np, pyarrow as pa
from expansions import of_nothing

lists = pa.array([[b"a"] * 100_000])
huge = pa.binary((1 << 31) - 1)
run = pa.RunEndEncodedArray.from_arrays(pa.array([1 << 40], "int64"), [1.5])

def refused(work):
    try:
        work()
    except (BufferError, ValueError, MemoryError) as error:
        print(type(error).__name__, error)
"""


def said_by(program):
    command = [sys.executable, "-c", PRELUDE + program]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-300:] + done.stderr[-2000:]
    return done.stdout


def test_a_cast_that_does_not_fit_memory_is_refused():
    said = said_by("""
column = pa.array([b"a"] * 3)
text = pa.array(["x" * 1_000_000])
codes = pa.DictionaryArray.from_arrays(pa.array(np.zeros(1_000_000, "int32")), text)
for source, wanted in [
    (column, huge),
    (pa.StructArray.from_arrays([column], ["x"]), pa.struct([("x", huge)])),
    (codes, pa.string()),
    (codes, pa.large_string()),
    (pa.array([None, None]), pa.list_(pa.list_(huge, 1 << 20), 1 << 20)),
]:
    refused(lambda: ad.Array(source).__arrow_c_array__(wanted.__arrow_c_schema__()))
""").splitlines()
    assert len(said) == 5
    assert all("do not fit memory" in line for line in said), said


def test_runs_of_any_length_are_put_together():
    said = said_by("""
array = ad.Array(pa.chunked_array([run, run]))
print(len(array), pa.array(array).run_ends, array)
refused(lambda: ad.ragged(pa.chunked_array([run, run])))
long = pa.RunEndEncodedArray.from_arrays(pa.array([30_000], "int16"), [1.5])
refused(lambda: ad.Array(pa.chunked_array([long, long])))
""")
    assert str(1 << 41) in said
    assert "UnsupportedError" in said
    assert "ValueError" in said, "the second end is no int16"


def test_rows_of_nothing_are_not_drawn_at_random():
    said = said_by("""
inner = of_nothing(3 << 20 << 10)
rows = pa.Array.from_buffers(pa.list_(inner.type, 1 << 20), 3 << 10, [None], children=[inner])
stream = lambda: pa.table({"x": rows})
refused(lambda: next(ad.iter_batches(stream(), batch_size=2, shuffle=2048)))
next(ad.iter_batches(stream(), batch_size=2))
""")
    assert said.startswith("MemoryError"), said


def test_structs_of_more_rows_than_there_is_memory_for_are_not_put_together():
    said = said_by("""
few = pa.Array.from_buffers(pa.struct([]), 1, [pa.py_buffer(bytes(1))])
many = pa.Array.from_buffers(few.type, 1 << 60, [None])
refused(lambda: ad.Array(pa.chunked_array([few, many])))
outer = pa.struct([("x", few.type)])
inside = lambda rows: pa.Array.from_buffers(outer, len(rows), [None], children=[rows])
refused(lambda: ad.Array(pa.chunked_array([inside(few), inside(many)])))
""").splitlines()
    assert [line.split()[0] for line in said] == ["MemoryError"] * 2


def test_rows_that_take_no_memory_are_too_many_for_a_shuffle():
    said = said_by("""
nothing = pa.Array.from_buffers(pa.binary(0), 1 << 60, [None, pa.py_buffer(b"")])
options = {"batch_size": 5, "shuffle": 1 << 50}
refused(lambda: next(ad.iter_batches(pa.table({"x": nothing}), **options)))
""")
    assert said.startswith("MemoryError"), said


def test_a_pickle_of_a_type_that_has_itself_in_it_twice_is_refused():
    said = said_by("""
from arrow_dlpack import _core
state = ("i", "x", 2, {}, [], None)
for _ in range(40):
    state = ("+s", "x", 2, {}, [state, state], None)
refused(lambda: _core._unpickle_array(state, (0, None, [], [])))
""")
    assert "more than 1048576 fields" in said


@pytest.mark.parametrize(("rank", "ranks"), [(0, 1), (1, 2)])
def test_a_shuffle_of_small_batches_takes_what_its_rows_take(rank, ranks):
    """Not a slice of fifty columns for each batch of one row."""
    said = said_by(f"""
table = pa.table({{f"c{{index}}": np.zeros(100_000, "int8") for index in range(50)}})
def peak():
    # getrusage has the peak of the process that this one was forked from.
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
before = peak()
options = {{"rank": {rank}, "world_size": {ranks}, "uneven": "allow"}}
batches = ad.iter_batches(table, batch_size=1, shuffle=100_000, **options)
assert next(batches)["c0"].shape == (1,)
print(peak() - before)
""")
    assert int(said) < 100_000, "KiB, where the table has 5,000"


def test_a_few_bytes_end_no_process():
    """Types and arrays at random: more of them with EXAMPLES=100000."""
    seed, count = random.randrange(1 << 32), int(os.environ.get("EXAMPLES", "300")) // 10
    command = [sys.executable, "expansions.py", str(seed), str(count)]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout[-300:]} {done.stderr[-2000:]}"
    assert "done" in done.stdout


MAP = pa.map_("string", "int8")
CHOICES = pa.UnionArray.from_dense(
    pa.array([0, 1, 0], "int8"), pa.array([0, 0, 1], "int32"), [pa.array([1, 2]), pa.array(["a"])]
)
RUNS = pa.RunEndEncodedArray.from_arrays(pa.array([1, 3], "int16"), [1.5, 2.5])


@pytest.mark.parametrize(
    ("array", "wanted"),
    [
        (pa.array([b"ab", None]), pa.binary(2)),
        (pa.array([b"ab", None], pa.binary(2)), pa.large_binary()),
        (pa.array(["a", None, "\u00e9"]), pa.large_string()),
        (pa.array(["a", None, "longer than a view"], pa.string_view()), pa.string()),
        (pa.array(["a", None, "a"]).dictionary_encode(), pa.string_view()),
        (pa.array([1, None, 1]).dictionary_encode(), pa.float32()),
        (pa.array([1, 2, None], "int8"), pa.int64()),
        (pa.array([True, None]), pa.bool_()),
        (
            pa.array([{"a": {"b": 1}, "c": "x"}, None]),
            pa.struct([("a", pa.struct([("b", pa.int8())])), ("c", pa.large_string())]),
        ),
        (pa.nulls(3), pa.list_(pa.binary(4), 2)),
        (pa.nulls(3), pa.large_list_view(pa.int8())),
    ],
)
def test_values_without_children_are_cast(array, wanted):
    given = pa.array(ad.Array(array), type=wanted)
    given.validate(full=True)
    assert given.type == wanted
    assert given.to_pylist() == array.to_pylist()


@pytest.mark.parametrize(
    ("array", "wanted"),
    [
        (
            pa.array([[1], None]),
            pa.list_(pa.field("element", pa.int64(), metadata={"unit": "m"})),
        ),
        (
            pa.array([[1, 2], None], pa.list_(pa.field("x", pa.int8(), nullable=False), 2)),
            pa.list_(pa.int8(), 2),
        ),
        (
            pa.array([[{"a": 1}], []], pa.list_view(pa.struct([("a", pa.int8())]))),
            pa.list_view(
                pa.field("x", pa.struct([pa.field("a", pa.int8(), metadata={"unit": "m"})]))
            ),
        ),
        (
            pa.array([[("a", 1)], None], MAP),
            pa.map_("string", pa.field("value", pa.int8(), nullable=False)),
        ),
    ],
)
def test_items_of_lists_may_have_another_name(array, wanted):
    """Which Arrow libraries do not agree on."""
    given = pa.array(ad.Array(array), type=wanted)
    given.validate(full=True)
    assert given.type.equals(wanted, check_metadata=True)
    assert given.to_pylist() == array.to_pylist()


@pytest.mark.parametrize(
    ("array", "wanted"),
    [
        (pa.array([[1], None, [2, 3]]), pa.large_list(pa.int64())),
        (pa.array([[1], None, [2, 3]]), pa.list_(pa.int16())),
        (pa.array([[1, 2], [3, 4]], pa.list_(pa.int8(), 2)), pa.list_(pa.int8())),
        (pa.array([[1, 2], [3, 4]]), pa.list_(pa.int64(), 2)),
        (pa.array([[("a", 1)], []], MAP), pa.map_("string", "int64")),
        (pa.array(["a"]).dictionary_encode(), pa.dictionary("int8", pa.string())),
    ],
)
def test_what_is_nested_is_handed_out_as_it_is_and_cast_afterwards(array, wanted):
    x = ad.Array(array)
    with pytest.raises(ValueError, match="cannot be handed out as") as error:
        pa.array(x, type=wanted)
    assert "pyarrow.array(x).cast(type)" in str(error.value)
    cast = pa.array(x).cast(wanted)
    assert cast.type == wanted
    assert cast.to_pylist() == array.to_pylist()


@pytest.mark.parametrize(
    ("array", "wanted", "way"),
    [
        (
            pa.array([1, 1]),
            pa.dictionary("int32", pa.int64()),
            "pyarrow.array(x).dictionary_encode()",
        ),
        (
            pa.array(["a"]),
            pa.run_end_encoded(pa.int32(), pa.string()),
            "pyarrow.compute.run_end_encode(pyarrow.array(x))",
        ),
        (RUNS, pa.float64(), "pyarrow.compute.run_end_decode(pyarrow.array(x))"),
    ],
)
def test_what_pyarrow_has_another_function_for_leads_there(array, wanted, way):
    x = ad.Array(array)
    with pytest.raises(ValueError, match="cannot be handed out as") as error:
        pa.array(x, type=wanted)
    assert str(error.value).endswith(way)
    made = eval(way, {"pyarrow": pa, "x": x})
    assert made.type == wanted


@pytest.mark.parametrize(
    ("array", "wanted"),
    [
        (pa.array([[1], [2]], pa.list_view(pa.int8())), pa.list_(pa.int8())),
        (pa.array([["a"], ["b"]]), pa.list_view(pa.large_string())),
        (pa.array([[1], [2]], pa.list_(pa.int8(), 1)), pa.int8()),
        (pa.array([[1], [2]], pa.list_(pa.int8(), 1)), pa.list_(pa.int8(), 2)),
        (pa.array([1, 2]), pa.list_(pa.int64(), 1)),
        (RUNS, pa.run_end_encoded(pa.int32(), pa.float64())),
        (CHOICES, pa.string()),
        (pa.DictionaryArray.from_arrays([0], pa.array([[1, 2]])), pa.list_(pa.int64())),
    ],
)
def test_no_cast_of_nested_values_is_tried(array, wanted):
    with pytest.raises(ValueError, match="cannot be handed out as .*: no cast of one to the other"):
        pa.array(ad.Array(array), type=wanted)


def test_texts_with_an_offset_are_times_of_a_zone_in_pyarrow_alone():
    texts, wanted = pa.array(["2020-01-01T00:00:00+00:00"]), pa.timestamp("s", "UTC")
    with pytest.raises(ValueError, match="pyarrow's cast reads texts that have an offset"):
        pa.array(ad.Array(texts), type=wanted)
    assert texts.cast(wanted).type == wanted


WAYS = {
    "pyarrow.array(x).cast(type)": lambda array, wanted: array.cast(wanted),
    "pyarrow.array(x).dictionary_encode()": lambda array, wanted: array.dictionary_encode(),
    "run_end_decode(pyarrow.array(x))": lambda array, wanted: pc.run_end_decode(array),
    "run_end_encode(pyarrow.array(x))": lambda array, wanted: pc.run_end_encode(array),
}
NESTED = [
    pa.array([1, 0], pa.int8()),
    pa.array(["1", "2"]),
    pa.array(["1", "2"], pa.string_view()),
    pa.array([[1], [2]], pa.list_(pa.int8())),
    pa.array([[1], [2]], pa.large_list(pa.float64())),
    pa.array([[1], [2]], pa.list_view(pa.int8())),
    pa.array([[1], [2]], pa.list_(pa.int8(), 1)),
    pa.array([["1"], ["2"]]),
    pa.array([["1"], ["2"]], pa.list_(pa.dictionary(pa.int32(), pa.string()))),
    pa.array([{"a": 1}]),
    pa.array([{"a": [1]}]),
    pa.array([{"b": 1}]),
    pa.array([[("a", 1)]], MAP),
    pa.array([1, 2]).dictionary_encode(),
    pa.array(["1", "2"], pa.dictionary(pa.int8(), pa.large_string())),
    RUNS,
]


@pytest.mark.parametrize("array", NESTED, ids=lambda array: str(array.type))
@pytest.mark.parametrize("wanted", NESTED, ids=lambda array: str(array.type))
def test_a_way_out_leads_to_the_type_that_was_asked_for(array, wanted):
    words = ""
    try:
        pa.array(ad.Array(array), type=wanted.type)
    except ValueError as error:
        words = str(error)
    ways = [make for way, make in WAYS.items() if words.endswith(way)]
    assert ways or "pyarrow" not in words
    for make in ways:
        assert make(array, wanted.type).type == wanted.type


def test_the_way_out_of_a_column_is_that_of_its_table():
    table = pa.table({"x": [[1]]})
    schema = pa.schema([("x", pa.list_(pa.float64()))])
    with pytest.raises(ValueError, match=r'in field "x", .*pyarrow\.table\(x\)\.cast\(schema\)$'):
        pa.table(ad.Array(table), schema=schema)
    assert pa.table(ad.Array(table)).cast(schema).schema == schema
    tensors = pa.table({"x": pa.array(ad.from_dlpack(np.zeros((1, 2), "float32")))})
    schema = pa.schema([("x", pa.fixed_shape_tensor(pa.float64(), [2]))])
    with pytest.raises(ValueError, match=r"to_tensor\(x, dtype=\.\.\.\)"):
        pa.table(ad.Array(tensors), schema=schema)
    with pytest.raises(ValueError, match=r"to_tensor\(x, dtype=\.\.\.\)"):
        pa.array(ad.Array(tensors["x"]), type=schema.field("x").type)
    made = ad.from_dlpack(ad.to_tensor(tensors["x"], dtype="float64"))
    assert pa.array(made).type == schema.field("x").type


ZONED = pa.array([1_600_000_000_000_000], pa.timestamp("us", "Europe/Berlin"))
NAIVE = pa.array([1_600_000_000_000_000], pa.timestamp("us"))


@pytest.mark.parametrize("coded", [False, True])
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "+02:00"])
def test_times_of_a_zone_and_of_none_are_told_apart_in_words(coded, zone):
    naive = NAIVE.dictionary_encode() if coded else NAIVE
    with pytest.raises(ValueError, match=r"UTC or of the zone.*pyarrow\.compute\.assume_timezone"):
        pa.array(ad.Array(naive), type=pa.timestamp("us", zone))
    assert naive.cast(pa.timestamp("us", zone)).cast(pa.int64()) == NAIVE.cast(pa.int64())
    zoned = NAIVE.cast(pa.timestamp("us", zone))
    with pytest.raises(ValueError, match=r"UTC or of the zone.*pyarrow\.compute\.local_timestamp"):
        pa.array(ad.Array(zoned), type=pa.timestamp("us"))
    assert zoned.cast(pa.timestamp("us")) == NAIVE
    assert pc.local_timestamp(zoned).type == pa.timestamp("us")
    assert pc.assume_timezone(NAIVE, zone).type == pa.timestamp("us", zone)


@pytest.mark.parametrize("wanted", [pa.date32(), pa.string(), pa.time64("us"), pa.string_view()])
def test_what_a_time_is_in_its_zone_is_for_pyarrow(wanted):
    with pytest.raises(ValueError, match="cast it in pyarrow, which knows the zone"):
        pa.array(ad.Array(ZONED), type=wanted)
    assert ZONED.cast(wanted).type == wanted


def test_a_column_that_is_refused_is_named():
    rows = ad.Array(pa.table({"x": [1], "y": [[1]]}))
    schema = pa.schema([("x", pa.int8()), ("y", pa.large_list(pa.int64()))])
    with pytest.raises(ValueError, match=r'in field "y", List\(Int64\).* as LargeList\(Int64\)'):
        pa.table(rows, schema=schema)
    assert pa.table(rows).cast(schema).schema == schema
    schema = pa.schema([("x", pa.int8()), ("y", pa.list_(pa.int64()))])
    assert pa.table(rows, schema=schema).schema == schema


@pytest.mark.parametrize(
    "kept",
    [
        pa.array([[1], None, [2, 3]], pa.large_list(pa.int8())),
        pa.array([["a"], None, ["b", None]], pa.list_view(pa.string())),
        pa.array([["a"], None, ["b", None]], pa.large_list_view(pa.string())),
        pa.array([[("a", 1)], None, []], MAP),
        pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int8(), 2)),
        pa.array([["a", "b"], None, ["c", None]], pa.list_(pa.string(), 2)),
        pa.array([{"a": 1, "b": 2.5}, None, {"a": 3, "b": None}]),
        pa.array([{"a": 1, "b": "x"}, None, {"a": 3, "b": None}]),
        pa.array([1, None, 1]).dictionary_encode(),
        pa.RunEndEncodedArray.from_arrays(pa.array([1, 3], "int16"), ["a", "b"]),
        CHOICES,
        RUNS,
    ],
    ids=lambda kept: str(kept.type)[:30],
)
def test_a_column_stays_where_another_is_cast(kept):
    rows = pa.StructArray.from_arrays([kept, pa.array([1, 2, None], "int8")], ["kept", "cast"])
    wanted = pa.struct([("kept", kept.type), ("cast", pa.int64())])
    given = pa.array(ad.Array(rows), type=wanted)
    given.validate(full=True)
    assert given.type == wanted
    assert given.to_pylist() == rows.to_pylist()
