"""`Categories` of values of any type: a code means one thing, and Ctrl-C ends a scan."""

import datetime
import decimal
import math
import os
import pickle
import re
import subprocess
import sys
import uuid

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from arrow_dlpack import AsArrow, Categories, Encoder, Loader, Mix

OTHER_NAN = np.frombuffer(b"\x01\0\0\0\0\0\xf8\xff")[0]
DAY, NOON = datetime.date(2020, 5, 1), datetime.datetime(2020, 5, 1, 12)
UTC = datetime.UTC
ZONED = pa.timestamp("us", "Europe/Berlin")


def codes_of(column, words=None, **options):
    wish = Categories(words, **options)
    loader = Loader(pa.table({"w": column}), columns={"w": wish}, nulls=-9, batch_size=10**6)
    (batch,) = loader
    return np.asarray(batch["w"]).tolist()


def floats(kind):
    values = [0.0, -0.0, math.nan, -math.nan, OTHER_NAN, None, 1.5]
    if kind == "float16":
        values = [None if value is None else np.float16(value) for value in values]
    return pa.array(values, kind)


@pytest.mark.parametrize("kind", ["float16", "float32", "float64"])
@pytest.mark.parametrize("form", ["plain", "dictionary"])
def test_both_zeros_have_one_code_and_so_have_all_nans(kind, form):
    column = floats(kind)
    column = column if form == "plain" else pa.chunked_array([column]).dictionary_encode()
    assert codes_of(column) == [0, 0, 2, 2, 2, -9, 1]
    assert codes_of(column, [OTHER_NAN, -0.0, 1.5]) == [1, 1, 0, 0, 0, -9, 2]
    loader = Loader(pa.table({"w": column}), columns={"w": Categories()})
    assert loader.categories["w"][:2] == (0.0, 1.5)
    assert math.isnan(loader.categories["w"][2])
    for twice in [0.0, -0.0], [math.nan, OTHER_NAN]:
        with pytest.raises(ValueError, match="words must differ"):
            Categories(twice)


def test_one_nan_is_told_in_many_chunks():
    column = pa.chunked_array([floats("float64")] * 3)
    assert codes_of(column) == [0, 0, 2, 2, 2, -9, 1] * 3


VALUES = {
    "bools": ([True, False], pa.bool_()),
    "binaries": ([b"b", b"a"], pa.binary()),
    "fixed binaries": ([b"b", b"a"], pa.binary(1)),
    "decimals": ([decimal.Decimal("1.50"), decimal.Decimal(-1)], pa.decimal128(5, 2)),
    "dates": ([DAY, datetime.date(2019, 1, 1)], pa.date32()),
    "times": ([datetime.time(5), datetime.time(1)], pa.time64("us")),
    "durations": ([datetime.timedelta(2), datetime.timedelta(1)], pa.duration("s")),
    "timestamps": ([NOON, datetime.datetime(2019, 1, 1)], pa.timestamp("ms")),
    "zoned": ([NOON.replace(tzinfo=UTC), datetime.datetime(2019, 1, 1, tzinfo=UTC)], ZONED),
    "nanoseconds": (list(np.array(["2020-01-01T01", "2019-01-01"], "M8[ns]")), pa.timestamp("ns")),
    "NumPy's integers": (list(np.array([7, 3], "u1")), pa.int64()),
    "NumPy's floats": (list(np.array([0.7, 0.3], "f4")), pa.float32()),
    "NumPy's texts": (np.array(["b", "a"]), pa.string_view()),
    "pyarrow's scalars": (pa.array(["b", "a"], pa.large_string()), pa.large_string()),
    "dictionary": (["b", "a"], pa.dictionary(pa.int8(), pa.string())),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_of_any_type_have_the_codes_of_their_words(name):
    words, kind = VALUES[name]
    column = pa.array([*words, None, words[0]], kind)
    assert codes_of(column, words) == [0, 1, -9, 0]
    assert codes_of(column) == [1, 0, -9, 1]
    assert codes_of(column, words[1:], unknown=5) == [5, 0, -9, 5]


@pytest.mark.parametrize("unit", ["D", "h", "s", "ms", "us", "ns"])
@pytest.mark.parametrize(
    "kind",
    [
        *map(pa.timestamp, ["s", "ms", "us", "ns"]),
        *map(pa.duration, ["s", "ms", "us", "ns"]),
        pa.date32(),
        pa.date64(),
    ],
    ids=str,
)
def test_times_of_numpy_in_any_unit_are_words(unit, kind):
    own = "m8" if pa.types.is_duration(kind) else "M8"
    times = np.array([3, 1, 2], f"{own}[D]").astype(f"{own}[{unit}]")
    values = times.astype(f"{own}[us]").tolist()
    if pa.types.is_date(kind):
        values = [value.date() for value in values]
    column = pa.array([*values, None, values[0]]).cast(kind)
    for form in column, column.dictionary_encode():
        assert codes_of(form, times[:2], unknown=5) == [0, 1, 5, -9, 0]
    loader = Loader(pa.table({"w": column}), columns={"w": Categories(times)}, nulls=-9)
    assert list(loader.categories["w"]) == list(times)
    encoder = Encoder.from_json(loader.encoder().to_json())
    assert list(encoder.categories["w"]) == values
    for of in loader.encoder(), encoder, pickle.loads(pickle.dumps(loader)).encoder():
        assert of({"w": column})["w"].tolist() == [0, 1, 2, -9, 0]
    again = Loader(pa.table({"w": column}), columns={"w": Categories(loader.categories["w"])})
    assert again.categories == loader.categories


def test_nanoseconds_of_numpy_stay_what_they_are_in_an_encoder():
    """Also where a column of nulls has no type that would make them words of Python's."""
    words = [np.datetime64("2020-05-01", "ns"), np.timedelta64(5, "ns")]
    wishes = {"w": Categories(words, nulls=-1)}
    encoder = Encoder(columns=wishes).fit(pa.table({"w": pa.nulls(1)}))
    read = Encoder.from_json(encoder.to_json()).categories["w"]
    assert read == (datetime.datetime(2020, 5, 1), pd.Timedelta(nanoseconds=5))


@pytest.mark.parametrize("unit", ["D", "s", "ns"])
def test_times_of_numpy_that_are_none_are_no_words(unit):
    for none in np.datetime64("NaT", unit), np.timedelta64("NaT", unit):
        with pytest.raises(ValueError, match="a null is no word: nulls= says"):
            Categories([none])


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        (1.5, pa.int64()),
        ("1", pa.int64()),
        (True, pa.int64()),
        (300, pa.uint8()),
        (2**70, pa.int64()),
        (math.nan, pa.int64()),
        (1, pa.string()),
        (1, pa.bool_()),
        (b"long", pa.binary(2)),
        (decimal.Decimal("1.55"), pa.decimal128(5, 1)),
        (0.1, pa.decimal128(5, 1)),
        (math.nan, pa.decimal128(5, 1)),
        (decimal.Decimal("0.1"), pa.float64()),
        (decimal.Decimal("0.5") + 2**24, pa.float32()),
        (NOON, pa.date32()),
        (5, pa.timestamp("s")),
        (NOON.replace(microsecond=7), pa.timestamp("ms")),
        (NOON, ZONED),
        (NOON.replace(tzinfo=UTC), pa.timestamp("us")),
        (np.datetime64("2020-05-01T12", "h"), pa.date32()),
        (np.datetime64("2020-05-01T12:00:00.5", "ms"), pa.timestamp("s")),
        (np.datetime64("3000-01-01"), pa.timestamp("ns")),
        (np.datetime64("20000-01-01"), pa.date64()),
        (np.datetime64("2020-05-01T12", "us"), ZONED),
        (np.timedelta64(1500, "ms"), pa.duration("s")),
        (np.timedelta64(1, "M"), pa.duration("s")),
        (np.timedelta64(1, "s"), pa.timestamp("s")),
        (np.timedelta64(1, "ns"), pa.int64()),
    ],
    ids=str,
)
def test_a_word_that_the_column_cannot_hold_is_named(word, kind):
    """pyarrow would cut some of them, such as 1.5 to 1, and a moment to its date."""
    with pytest.raises(ValueError) as raised:  # noqa: PT011
        codes_of(pa.array([None], kind), [word])
    assert str(raised.value).startswith(
        f'column "w" is {kind}, which cannot hold the word {word!r} of its Categories'
    )


@pytest.mark.parametrize(
    ("column", "words", "way", "codes"),
    [
        (pa.array([1, 2], "int8"), [1, 2, 300], "int64", [0, 1]),
        (pa.array([1, 2], "int8"), [1, 2, 2.5], "double", [0, 1]),
        (pa.array([1]), [1, 2**64 - 1], None, None),
        (pa.array([0.5], "float32"), [0.1, 0.10000000149011612, 0.5], "double", [2]),
        (
            pa.array([decimal.Decimal("1.1")]),
            [decimal.Decimal("1.1"), decimal.Decimal("1.101")],
            None,
            None,
        ),
        (
            pa.array([NOON], "timestamp[ms]"),
            [NOON.replace(microsecond=7), NOON],
            None,
            None,
        ),
        (pa.array([True, False]), [0, 1], None, None),
        (pa.array([0, 7]), [False, True], None, None),
        (pa.array([0.25, 0.5]), [decimal.Decimal("0.3")], None, None),
        (pa.array([NOON], "timestamp[s]"), [DAY], None, None),
        (pa.array([7], "time32[s]"), [NOON], None, None),
        (pa.array([2**53 + 1]), [7, 2.5], None, None),
        (pa.array([1234]), ["01234"], None, None),
        (pa.array(["1"]), [1], None, None),
        (pa.array(["a"]), [np.datetime64("2026-01-31"), np.int64(1)], None, None),
        (pa.array(["12345678-1234-5678-1234-567812345678"]), [uuid.UUID(int=5)], None, None),
        (pa.array([1], "timestamp[s]"), [5], None, None),
        (pa.array([1]), [True, 7], None, None),
    ],
    ids=str,
)
def test_words_of_other_data_name_the_type_that_holds_them(column, words, way, codes):
    """Such as those of files of other years."""
    for x in column, column.dictionary_encode():
        with pytest.raises(ValueError, match="of its Categories") as raised:
            codes_of(x, words)
        told = str(raised.value)
        if way is None:
            assert told.endswith(
                ": give it words of that type, or read the column in the type of its words"
            )
            continue
        assert told.endswith(f": cast the column to {way}, which can hold all of them")
        assert codes_of(column.cast(pa.type_for_alias(way)), words) == codes


def test_an_encoder_of_parts_without_a_type_of_all_words_names_one():
    parts = [
        pa.table({"k": [decimal.Decimal("1.10")]}),
        pa.table({"k": [decimal.Decimal("1.101")]}),
    ]
    loader = Loader(parts, columns={"k": Categories.scan()})
    assert [batch["k"].tolist() for batch in loader] == [[0], [1]]
    with pytest.raises(ValueError, match="or read the column in the type of its words"):
        loader.encoder()
    parts = [part.cast(pa.schema({"k": pa.decimal128(38, 3)})) for part in parts]
    encoder = Loader(parts, columns={"k": Categories.scan()}).encoder()
    assert encoder([{"k": decimal.Decimal("1.10")}])["k"].tolist() == [0]


@pytest.mark.parametrize("word", [np.int64(7), np.float32(7), np.float64(7), np.uint8(7)], ids=repr)
def test_numpys_numbers_are_words_of_decimals_too(word):
    decimals = pa.table({"k": [decimal.Decimal(7), decimal.Decimal(0)]})
    for source in decimals, [pa.table({"k": [7, 0]}), decimals]:
        loader = Loader(source, columns={"k": Categories([0, word], unknown=-1)}, batch_size=2)
        assert [batch["k"].tolist() for batch in loader] == [[1, 0]] * (1 + (source != decimals))


def test_words_that_are_one_value_of_the_column_are_named():
    for words, kind in ([0.1, np.float32(0.1)], pa.float32()), (["a", b"a"], pa.string()):
        with pytest.raises(ValueError, match="in which the words .* and .* are one value"):
            codes_of(pa.array([None], kind), words)
    with pytest.raises(TypeError, match=r"words must be texts, .*, got \[1\]"):
        Categories([[1]])


@pytest.mark.parametrize("words", [None, ["a"]])
def test_a_column_without_single_values_is_named(words):
    column = pa.array([{"a": 1}])
    with pytest.raises(TypeError, match=r'column "w" is struct<a: int64>, and .*: AsArrow\(\) has'):
        codes_of(column, words)


INTERVALS = pd.arrays.IntervalArray.from_breaks([0, 1, 2])


@pytest.mark.parametrize("column", [INTERVALS, pd.Categorical(INTERVALS)], ids=["plain", "cut"])
def test_texts_of_intervals_are_the_way_out(column):
    frame = pd.DataFrame({"w": column})
    with pytest.raises(TypeError, match="Categories takes texts") as refused:
        list(Loader(frame, columns={"w": Categories()}))
    way_out = str(refused.value).rpartition(": Categories")[2].partition("of them: ")[2]
    made = eval(way_out.removesuffix(" has texts of them"), {"frame": frame})
    loader = Loader(made, columns={"w": Categories()})
    assert loader.categories["w"] == ("(0, 1]", "(1, 2]")
    assert [batch["w"].tolist() for batch in loader] == [[0, 1]]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
        pa.array([[1, 2]]),
        pa.array([{"a": 1}]),
        pa.UnionArray.from_sparse(pa.array([0], "int8"), [pa.array([1])]),
    ],
    ids=lambda column: str(column.type),
)
def test_a_column_without_single_values_has_arrow_as_its_way_out(column):
    with pytest.raises(TypeError, match=r"of them: AsArrow\(\) has its rows as they are"):
        list(Loader(pa.table({"w": column}), columns={"w": Categories()}))
    (batch,) = Loader(pa.table({"w": column}), columns={"w": AsArrow()})
    assert pa.array(batch["w"]) == column


def test_words_of_a_dictionary_that_no_row_has_are_not_missed():
    column = pa.DictionaryArray.from_arrays(pa.array([1, None, 1]), pa.array(["x", "a"]))
    assert codes_of(column, ["a"]) == [0, -9, 0]
    assert codes_of(column) == [0, -9, 0]


@pytest.mark.parametrize("form", ["texts", "dictionary", "floats"])
def test_a_long_column_has_the_codes_of_its_rows(form):
    """Of a chunk of many rows some are encoded at a time."""
    numbers = np.random.default_rng(0).integers(0, 90_000, 300_001)
    column = pa.array(numbers, mask=numbers % 7 == 0)[3:]
    column = column.cast("float64" if form == "floats" else "string")
    column = column.dictionary_encode() if form == "dictionary" else column
    loader = Loader(pa.table({"w": column}), columns={"w": Categories()}, nulls=-9)
    words = loader.categories["w"]
    assert len(words) == len(set(words)) == len(set(numbers[3:][numbers[3:] % 7 != 0]))
    (batch,) = loader
    found = [None if code == -9 else words[code] for code in np.asarray(batch["w"]).tolist()]
    assert found == column.to_pylist()


LONG = {
    "a scan": "lambda: Loader(table, columns={'w': Categories()}).categories",
    "codes": "lambda: list(Loader(table, columns={'w': Categories(range(50))}))",
    "a scan of a dictionary": "lambda: Loader(table, columns={'d': Categories()}).categories",
    "codes of a dictionary": "lambda: list(Loader(table, columns={'d': Categories(range(50))}))",
}


@pytest.mark.skipif(not hasattr(os, "kill"), reason="sends a signal")
@pytest.mark.parametrize("work", LONG.values(), ids=LONG)
def test_ctrl_c_ends_a_long_chunk(work):
    """Within 0.2 s; here in a second, because the machine may have other work."""
    code = (
        "import os, signal, sys, threading, time\n"
        "import numpy as np, pyarrow as pa\n"
        "from arrow_dlpack import Categories, Loader\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "numbers = np.tile(np.arange(50, dtype='int32'), 2_000_000)\n"
        "plain = pa.array(numbers)\n"
        "coded = pa.DictionaryArray.from_arrays(plain, pa.array(range(50)))\n"
        "table = pa.table({'w': plain, 'd': coded})\n"
        f"work = {work}\n"
        "def interrupt():\n"
        "    time.sleep(0.05)\n"
        "    sent.append(time.perf_counter())\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "sent = []\n"
        "threading.Thread(target=interrupt).start()\n"
        "try:\n"
        "    work()\n"
        "except KeyboardInterrupt:\n"
        "    print(time.perf_counter() - sent[0])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    assert float(done.stdout) < 1


def test_nulls_of_categories_lead_to_their_own_nulls():
    table = pa.table({"w": ["a", None]})
    for options in {}, {"nulls": "nan"}:
        with pytest.raises(BufferError, match="say what they become by nulls= of Cast or Categ"):
            list(Loader(table, columns={"w": Categories(["a"])}, **options))
    (batch,) = Loader(table, columns={"w": Categories(["a"], nulls=-1)})
    assert batch["w"].tolist() == [0, -1]
    # A matrix has one dtype, which is that of its floats.
    beside = table.append_column("x", pa.array([1.5, None]))
    for wishes in {"w": Categories(["a"])}, {"w": Categories(["a"]), "x": None}:
        loader = Loader(beside, columns=wishes, format="matrix", nulls="nan", framework="numpy")
        (batch,) = loader
        expected = [[0.0, 1.5], [math.nan, math.nan]]
        np.testing.assert_array_equal(batch, [row[: len(wishes)] for row in expected])
        np.testing.assert_array_equal(loader.encoder()(beside), batch)


@pytest.mark.parametrize("words", [{"a", "b"}, frozenset("ab"), {"a": 1, "b": 0}])
def test_words_without_an_order_are_refused(words):
    """A set's is another one in each process, and a mapping says another one than it has."""
    with pytest.raises(TypeError, match=r"whose order says the codes, from 0 on: pass sorted\(x"):
        Categories(words)
    assert Categories({"b": 0, "a": 1}.keys()).words == ("b", "a")


@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize("words", [None, [decimal.Decimal("1.5"), decimal.Decimal("2.5")]])
@pytest.mark.parametrize("form", ["plain", "dictionary"])
def test_narrow_decimals_have_codes(width, words, form):
    kind = getattr(pa, f"decimal{width}")(5, 1)
    column = pa.array([decimal.Decimal("2.5"), None, decimal.Decimal("1.5")], kind)
    if form == "dictionary":
        codes = pa.array([0, None, 1], pa.int8())
        column = pa.DictionaryArray.from_arrays(codes, column.take(pa.array([0, 2])))
    assert codes_of(column, words) == [1, -9, 0]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1000, 1001], pa.time64("ns")),
        pa.array([0, 2**62], pa.timestamp("s")),
        pa.array([0, 2**30], pa.date32()),
        pa.array([86_400, 0, 43_200], pa.int32()).view(pa.time32("s")),
        pa.array([86_400_000_000, 0, None]).view(pa.time64("us")),
        pa.array([0, 86_400_001]).view(pa.date64()),
    ],
    ids=lambda column: str(column.type),
)
def test_a_scan_of_values_that_python_has_not_is_refused_by_name(column):
    with pytest.raises(ValueError, match='column "w" has values .*cast to integers'):
        codes_of(column)
    integers = column.view(pa.int32() if column.type.bit_width == 32 else pa.int64()).drop_null()
    words = sorted(integers.to_pylist())
    assert codes_of(integers) == [words.index(value) for value in integers.to_pylist()]


IDS = [uuid.UUID(int=7), uuid.UUID(int=3), None, uuid.UUID(int=7)]
OF_EXTENSIONS = {
    "json": (pa.array(['"b"', '"a"', None, '"b"'], pa.json_()), ['"a"', '"b"']),
    "json of views": (
        pa.json_(pa.string_view()).wrap_array(pa.array(["2", "1", None, "2"], pa.string_view())),
        ["1", "2"],
    ),
    "opaque texts": (
        pa.opaque(pa.string(), "t", "v").wrap_array(pa.array(["b", "a", None, "b"])),
        ["a", "b"],
    ),
    "opaque binaries": (
        pa.opaque(pa.binary(), "t", "v").wrap_array(pa.array([b"b", b"a", None, b"b"])),
        [b"a", b"b"],
    ),
    "bool8": (pa.bool8().wrap_array(pa.array([7, 0, None, 1], pa.int8())), [False, True]),
    "uuid": (pa.array([one and one.bytes for one in IDS], pa.uuid()), [IDS[1], IDS[0]]),
}


@pytest.mark.parametrize("of", OF_EXTENSIONS)
@pytest.mark.parametrize("form", ["table", "list", "files", "mix"])
def test_extension_types_of_single_values_have_codes(of, form, tmp_path):
    column, words = OF_EXTENSIONS[of]
    halves = [pa.table({"w": column.slice(0, 2)}), pa.table({"w": column.slice(2)})]
    if form == "files":
        for at, half in enumerate(halves):
            pq.write_table(half, tmp_path / f"{at}.parquet")
    source = {
        "table": pa.table({"w": column}),
        "list": halves,
        "files": str(tmp_path),
        "mix": Mix([(half, 1) for half in halves]),
    }[form]
    found = [1, -1, 0, 1] if form == "mix" else [1, 0, -1, 1]
    for wish in Categories.scan(nulls=-1), Categories(words, nulls=-1):
        loader = Loader(source, columns={"w": wish})
        assert loader.categories["w"] == tuple(words)
        assert [code for batch in loader for code in batch["w"].tolist()] == found


@pytest.mark.parametrize(
    ("of", "plain"),
    [
        ("json", pa.array(['"a"', None])),
        ("bool8", pa.array([False, None])),
        ("uuid", pa.array([IDS[1].bytes, None], pa.binary(16))),
    ],
)
def test_extension_types_beside_plain_ones_have_the_same_codes(of, plain):
    parts = [pa.table({"w": OF_EXTENSIONS[of][0]}), pa.table({"w": plain})]
    for source in parts, parts[::-1]:
        batches = list(Loader(source, columns={"w": Categories.scan(nulls=-1)}))
        found = [batch["w"].tolist() for batch in batches]
        assert sorted(found) == [[0, -1], [1, 0, -1, 1]]


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_integer_words_are_those_of_equal_floats(dtype):
    """pyarrow takes no integers for floats above those that are all exact."""
    words = [1, 2**15] if dtype == "float16" else [1, 2**60, -(2**100)]
    table = pa.table({"x": pa.array([float(word) for word in words[::-1]], dtype)})
    loader = Loader(table, columns={"x": Categories(words)}, batch_size=9)
    (batch,) = loader
    assert np.asarray(batch["x"]).tolist() == list(range(len(words)))[::-1]
    encoder = loader.encoder()
    assert np.asarray(encoder([{"x": word} for word in words])["x"]).tolist() == [
        *range(len(words))
    ]
    exact = {"float64": 2**53, "float32": 2**24, "float16": 2**11}[dtype]
    for word in exact + 1, 10**400:
        with pytest.raises(ValueError, match="cannot hold the word"):
            Loader(table, columns={"x": Categories([1, word])})


@pytest.mark.parametrize("kind", ["float16", "float32", "float64"])
def test_floats_of_numpy_are_words_of_floats_of_any_width(kind):
    column = pa.array([0.5, 1.0], kind)
    for word in np.float16(0.5), np.float32(0.5), np.float64(0.5), np.longdouble(0.5):
        assert codes_of(column, [1, word]) == [1, 0]


def test_numbers_of_an_opaque_type_are_no_words():
    column = pa.opaque(pa.uint16(), "bfloat16", "dlpack").wrap_array(pa.array([16256], pa.uint16()))
    for words in None, [0.0, 1.0]:
        with pytest.raises(
            TypeError, match=r'column "w" is .*opaque.*, and Categories takes texts'
        ):
            codes_of(column, words)


class Labelled(pa.ExtensionType):
    """An extension type of a user's; pyarrow has no hash for it."""

    def __init__(self, storage):
        super().__init__(storage, "arrow_dlpack.tests.labelled")

    def __arrow_ext_serialize__(self):
        return b""


CODES, NUMBERS, TEXTS = pa.array([0, 1], "int8"), pa.array([7, 8]), pa.array(["a", "b"])
UNIONS = [
    pa.UnionArray.from_sparse(CODES, [NUMBERS, TEXTS]),
    pa.UnionArray.from_dense(CODES, pa.array([0, 0], "int32"), [NUMBERS, TEXTS]),
]
#: Types that pyarrow has no kernels for, or no arrays of.
NO_WORDS = {
    **{str(union.type)[:6]: union for union in UNIONS},
    "dictionary of a union": pa.DictionaryArray.from_arrays(pa.array([0, 1]), UNIONS[0]),
    "opaque union": pa.opaque(UNIONS[1].type, "u", "v").wrap_array(UNIONS[1]),
    "union of a user": pa.ExtensionArray.from_storage(Labelled(UNIONS[0].type), UNIONS[0]),
    "struct": pa.array([{"a": 1}, {"a": 2}]),
    "list view": pa.array([[1], [2]], pa.list_view(pa.int64())),
    "map": pa.array([[(1, 2)], []], pa.map_(pa.int64(), pa.int64())),
    "runs": pa.RunEndEncodedArray.from_arrays(pa.array([2], "int32"), pa.array(["a"])),
}


@pytest.mark.parametrize("of", NO_WORDS)
@pytest.mark.parametrize("words", [None, []], ids=["scan", "words"])
@pytest.mark.parametrize("argument", ["columns", "label"])
@pytest.mark.parametrize("kind", ["table", "list", "empty", "mix"])
def test_values_that_are_no_words_are_refused_by_name(of, words, argument, kind):
    table = pa.table({"c": NO_WORDS[of], "x": [1, 2]})
    source = {"table": table, "list": [table] * 2, "empty": table[:0], "mix": Mix([(table, 1)])}
    with pytest.raises(TypeError, match='column "c" is .*, and Categories takes texts'):
        list(Loader(source[kind], **{argument: {"c": Categories(words)}}))


def test_a_list_of_tables_has_types_of_a_user():
    texts = pa.ExtensionArray.from_storage(Labelled(pa.string()), TEXTS)
    for wish in Categories.scan(), Categories(["a", "b"]):
        batches = Loader([pa.table({"c": texts})] * 2, columns={"c": wish}, framework="numpy")
        assert [batch["c"].tolist() for batch in batches] == [[0, 1]] * 2


@pytest.mark.parametrize("kind", ["table", "list", "file", "files", "mix"])
@pytest.mark.parametrize("encode", [False, True])
def test_a_binary_of_another_length_is_a_word_that_does_not_occur(tmp_path, kind, encode):
    column = pa.array([b"aa", b"bb", None], pa.binary(2))
    table = pa.table({"c": column.dictionary_encode() if encode else column})
    path = tmp_path / "0.parquet"
    pq.write_table(table, path)
    sources = {
        "table": table,
        "list": [table, table],
        "file": path,
        "files": [path, path],
        "mix": Mix([(path, 1), (table, 1)]),
    }
    wish = {"c": Categories([b"bb", b"ccc", b"aa"], nulls=-1)}
    found = [v for b in Loader(sources[kind], columns=wish) for v in b["c"].tolist()]
    assert set(found) == {2, 0, -1}
    with pytest.raises(ValueError, match='b"bb".* not among'):
        list(Loader(sources[kind], columns={"c": Categories([b"ccc", b"aa"], nulls=-1)}))


def test_a_function_that_returns_none_has_no_words():
    parts = [None]
    loader = Loader(
        lambda index, count: parts[0], columns={"w": Categories.scan()}, framework="numpy"
    )
    with pytest.raises(ValueError, match="is there a return missing"):
        list(loader)
    parts[0] = pa.table({"w": ["b", "a"]})
    (batch,) = loader
    assert (batch["w"].tolist(), loader.categories) == ([1, 0], {"w": ("a", "b")})


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ([1, 2], ["1", 2]),
        ([1, 2], [1.5, 2]),
        ([1, 2], [2**70, 2]),
        ([True], [7, True]),
        (["a"], [b"\xff", "a"]),
    ],
)
def test_a_word_that_no_part_can_hold_is_refused_beside_others(tmp_path, column, words):
    table = pa.table({"x": column})
    pq.write_table(table, path := tmp_path / "0.parquet")
    wish = {"x": Categories(words, unknown=0)}
    readers = Mix([(table.to_reader(), 1), (table.to_reader(), 1)])
    for source in table, [table, table], path, Mix([(table, 1), (path, 1)]), readers:
        with pytest.raises(ValueError, match=r'column "x" .* cannot hold the word'):
            list(Loader(source, columns=wish))


def test_a_word_that_another_source_of_a_mix_can_hold_is_taken():
    tables = [pa.table({"x": [1, 2]}), pa.table({"x": ["a", "1"]}), pa.table({"x": pa.nulls(1)})]
    wish = {"x": Categories(["a", "1", 2, 1], nulls=-1)}
    for sources in tables, [table.to_reader() for table in tables]:
        mix = Mix([(source, 1) for source in sources])
        found = [code for batch in Loader(mix, columns=wish) for code in batch["x"].tolist()]
        assert sorted(found) == [-1, 0, 1, 2, 3]


@pytest.mark.parametrize("words", [("a", "b"), None], ids=["words", "scan"])
@pytest.mark.parametrize("where", [None, pc.field("x") == "a"], ids=["all", "filtered"])
@pytest.mark.parametrize("beside", ["nothing", "before", "after", "mix"])
def test_how_runs_get_codes_is_told_and_works(words, where, beside):
    plain = pa.table({"x": ["a", "b"]})

    def source(runs):
        makes = {
            "nothing": lambda: [runs],
            "before": lambda: [plain, runs],
            "after": lambda: [runs, plain],
            "mix": lambda: Mix([(runs, 1), (plain, 1)]),
        }
        return makes[beside]()

    table = pa.table({"x": pc.run_end_encode(pa.array(["a", "a", "b"]))})
    options = {"columns": {"x": Categories(words)}, "filter": where, "batch_size": 9}
    with pytest.raises(TypeError, match='column "x"') as raised:
        list(Loader(source(table), **options))
    (way,) = re.findall(r"pyarrow\.compute\.run_end_decode\(.*?\)", str(raised.value))
    assert "cast(schema)" not in str(raised.value)
    decoded = pa.table({"x": eval(way, {"pyarrow": pa, "table": table})})
    (batch,) = Loader(source(decoded), **options)
    kept = 2 + (beside != "nothing")
    assert np.asarray(batch["x"]).tolist().count(0) == kept


@pytest.mark.parametrize("make", [int, np.int64, np.uint64])
def test_whole_words_of_floats_are_compared_exactly(make):
    """NumPy compares its integers with floats as floats."""
    table = pa.table({"x": [2.0**60, 2.0**53]})
    (batch,) = Loader(table, columns={"x": Categories([make(2**60)], unknown=-1)}, batch_size=2)
    assert batch["x"].tolist() == [0, -1]
    with pytest.raises(ValueError, match="9007199254740993"):
        list(Loader(table, columns={"x": Categories([make(2**53 + 1)], unknown=-1)}))


@pytest.mark.parametrize("data", [pa.table({"c": ["a"]}), "rows.parquet", ["c"], np.array([1, 2])])
def test_a_scan_of_data_names_the_loader_that_reads_them(data):
    with pytest.raises(
        TypeError, match=r"takes no data, got .*Loader\(x, columns=\{\"c\": Cat.*scan"
    ):
        Categories.scan(data)
    with pytest.raises(TypeError, match="unknown must be an integer"):
        Categories.scan(1.5)
    assert Categories.scan(np.int64(1)).unknown == 1


@pytest.mark.parametrize(("dtype", "most"), [("bfloat16", 256), ("float16", 2048)])
def test_no_code_is_rounded_to_that_of_another_word(dtype, most):
    words = [f"w{at:05}" for at in range(most + 2)]
    options = {"format": "matrix", "dtype": dtype, "framework": "numpy"}
    last = {"c": Categories(words[:-1])}
    (batch,) = Loader(pa.table({"c": words[-3:-1]}), columns=last, **options)
    assert batch.tolist() == [[most - 1], [most]]
    told = f'"c" has codes up to {most + 1}, and {dtype} has each integer up to {most} alone'
    for wish in Categories(words), Categories(words[:1], unknown=most + 1), Categories.scan():
        with pytest.raises(ValueError, match=told):
            list(Loader(pa.table({"c": words}), columns={"c": wish}, **options))
        with pytest.raises(ValueError, match=told):
            Encoder(columns={"c": wish}, **options).fit(pa.table({"c": words}))
    labels = {"columns": ["x"], "label": {"c": Categories(words)}}
    ((_, label),) = Loader(pa.table({"x": [0.5], "c": words[-1:]}), **labels, **options)
    assert label.tolist() == [most + 1]


@pytest.mark.parametrize(
    ("words", "way", "made"),
    [
        ({0: "dog", 1: "cat"}, "[x[code] for code in range(len(x))]", ["dog", "cat"]),
        ({1: "dog", 0: "cat"}, "[x[code] for code in range(len(x))]", ["cat", "dog"]),
        ({"dog": 1, "cat": 0}, "sorted(x, key=x.get)", ["cat", "dog"]),
        ({"cat": 1, "dog": 2}, None, None),
        ({"cat": "a", 1: 0}, None, None),
        ({2: "cat", 3: "dog"}, None, None),
    ],
)
def test_a_dict_of_codes_names_the_list_that_has_them(words, way, made):
    """Hugging Face's id2label has words by their codes, and label2id codes by their words."""
    with pytest.raises(TypeError, match="whose order says the codes, from 0 on") as raised:
        Categories(words)
    assert str(raised.value).partition(": pass ")[2] == (way or "")
    if way is not None:
        assert eval(way, {"x": words, "sorted": sorted}) == made


def test_a_word_before_the_years_of_python_is_named():
    zone = datetime.timezone(datetime.timedelta(hours=14))
    with pytest.raises(ValueError, match=r"datetime\(1, 1, 1.* years of Python in UTC"):
        Categories([datetime.datetime(1, 1, 1, tzinfo=zone)])


def test_a_frame_is_no_list_of_words():
    """pandas iterates over the names of its columns."""
    frame = pd.DataFrame({"word": ["b", "a"]})
    for words in frame, pa.table(frame), pl.DataFrame({"word": ["b", "a"]}):
        with pytest.raises(
            TypeError, match=r"words must be a list of words, got a .*: pass a column"
        ):
            Categories(words)
    assert Categories(frame["word"]).words == ("b", "a")
