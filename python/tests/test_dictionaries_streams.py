"""A code of a dictionary stands for one value in all that one source hands out."""

import datetime
import decimal
import random
import subprocess
import sys

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
import torch
from arrow_dlpack import (
    Array,
    AsArrow,
    ByLength,
    ByTokens,
    Loader,
    Mix,
    Pad,
    UnsupportedError,
    iter_batches,
    ragged,
    to_tensor,
    to_tensor_dict,
)
from arrow_dlpack.torch import BatchDataset
from descriptions import described, leaf_address
from torch.utils.data import DataLoader

KEYS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
READ = {
    "in order": {},
    "all at once": {"batch_size": 10_000},
    "chunk by chunk": {"batch_size": None},
    "ahead": {"prefetch": 2},
    "shuffled": {"shuffle": 20, "seed": 3},
    "shuffled, ahead": {"shuffle": 20, "seed": 3, "prefetch": 2},
}


def coded(values, words, codes="int32"):
    """Values, as codes of a dictionary of these words."""
    of = {word: code for code, word in enumerate(words)}
    keys = pa.array([None if value is None else of[value] for value in values], codes)
    return pa.DictionaryArray.from_arrays(keys, pa.array(words))


def rows(source, **options):
    """Number and word of each row; each batch's dictionary only adds to the one before."""
    found, dictionary = [], []
    options = {"batch_size": 3, "physical": True} | options
    for batch in iter_batches(source, **options):
        assert batch["word"].dtype == "int32"
        before, dictionary = dictionary, pa.array(batch["word"].dictionary).to_pylist()
        assert dictionary[: len(before)] == before
        assert len(set(dictionary)) == len(dictionary)
        codes = np.asarray(batch["word"])
        words = [dictionary[code] for code in codes]
        found += zip(np.asarray(batch["row"]).tolist(), words, strict=True)
    return found


def table(chunks):
    words = pa.chunked_array(chunks)
    return pa.table({"word": words, "row": np.arange(len(words))})


def carriers(chunks=12, of=9, codes="int32"):
    """Each chunk has the same words in another order, and its dictionary is its own."""
    draw, words = random.Random(1), ["AA", "AS", "B6", "DL", "EV", "F9", "UA"]
    parts = []
    for _ in range(chunks):
        draw.shuffle(words)
        parts.append(coded([draw.choice(words) for _ in range(of)], words, codes))
    return table(parts)


@pytest.mark.parametrize("codes", KEYS)
@pytest.mark.parametrize("how", READ)
def test_a_code_stands_for_one_word_in_all_batches(how, codes):
    source = carriers(codes=codes)
    assert sorted(rows(source, **READ[how])) == list(enumerate(source["word"].to_pylist()))


def test_two_files_with_their_words_in_another_order(tmp_path):
    one, other = coded(["cat", "dog"], ["cat", "dog"]), coded(["dog", "cat"], ["dog", "cat"])
    matrices = iter_batches(table([one, other]), batch_size=2, physical=True, format="matrix")
    assert [np.asarray(batch)[:, 0].tolist() for batch in matrices] == [[0, 1], [1, 0]]
    # A matrix has no place for words: the iterator says what they are.
    assert pa.array(matrices.dictionaries["word"]).to_pylist() == ["cat", "dog"]
    assert list(matrices.dictionaries) == ["word"]


def test_words_of_parquet_files_read_as_dictionaries(tmp_path):
    words = [f"word {index * index % 31}" for index in range(300)]
    for part in range(3):
        mine = words[part * 100 : part * 100 + 100]
        numbers = np.arange(part * 100, part * 100 + 100)
        pq.write_table(
            pa.table({"word": mine, "row": numbers}),
            tmp_path / f"{part}.parquet",
            row_group_size=17,
        )
    options = ds.ParquetReadOptions(dictionary_columns=["word"])
    files = sorted(str(path) for path in tmp_path.iterdir())
    source = ds.dataset(files, format=ds.ParquetFileFormat(read_options=options))
    assert pa.types.is_dictionary(source.schema.field("word").type)
    expected = list(enumerate(words))
    for how in READ.values():
        assert sorted(rows(source, **how)) == expected
    # Ranks of one source have one meaning, each of which reads all of it.
    every = [{"rank": rank, "world_size": 3, "uneven": "allow"} for rank in range(3)]
    ranks = [rows(source, **options) for options in every]
    assert sorted(row for rank in ranks for row in rank) == expected
    codes = {}
    for options in every:
        for batch in iter_batches(source, batch_size=5, physical=True, **options):
            dictionary = pa.array(batch["word"].dictionary).to_pylist()
            for code, word in enumerate(dictionary):
                assert codes.setdefault(code, word) == word
    # And so have the workers of a DataLoader, who share nothing.
    loader = DataLoader(
        BatchDataset(source, batch_size=9, physical=True), batch_size=None, num_workers=2
    )
    found = {}
    for batch in loader:
        assert batch["word"].dtype == torch.int32
        found |= zip(batch["row"].tolist(), batch["word"].tolist(), strict=True)
    assert [codes[found[row]] for row in range(300)] == words


def test_a_label_that_is_a_word():
    source = carriers()
    labels, dictionary = [], []
    for features, label in iter_batches(source, batch_size=10, label="word", physical=True):
        assert list(features) == ["row"]
        dictionary = pa.array(label.dictionary).to_pylist()
        labels += np.asarray(label).tolist()
    assert [dictionary[code] for code in labels] == source["word"].to_pylist()


def test_categories_of_polars_pandas_and_duckdb():
    words = ["low", "high", "low", "mid", "high"]
    numbers = list(range(5))
    frames = [pl.DataFrame({"word": words, "row": numbers})] * 3
    categories = [frame.with_columns(pl.col("word").cast(pl.Categorical)) for frame in frames]
    enums = [
        frame.with_columns(pl.col("word").cast(pl.Enum(["low", "mid", "high"]))) for frame in frames
    ]
    pandas = pd.DataFrame(
        {"word": pd.Categorical(words, ["low", "mid", "high"], ordered=True), "row": numbers}
    )
    connection = duckdb.connect()
    connection.execute("CREATE TYPE level AS ENUM ('low', 'mid', 'high')")
    connection.register("words", pa.table({"word": words, "row": numbers}))
    query = "SELECT word::level AS word, row FROM words"
    sources = {
        "polars": (lambda: pl.concat(categories, rechunk=False), 3),
        "polars, an enum": (lambda: pl.concat(enums, rechunk=False), 3),
        "pandas": (lambda: pa.Table.from_pandas(pandas), 1),
        "DuckDB": (lambda: connection.sql(query), 1),
    }
    expected = list(zip(numbers, words, strict=True))
    for name, (source, times) in sources.items():
        for how in READ.values():
            assert sorted(rows(source(), **how)) == sorted(expected * times), name
    # Categories that no row has are there, and in their order.
    batch = next(iter_batches(enums[0], batch_size=2, physical=True))
    assert pa.array(batch["word"].dictionary).to_pylist() == ["low", "mid", "high"]
    assert np.asarray(batch["word"]).tolist() == [0, 2]


NAN = float("nan")
VALUES = {
    "large_string": ["", "ä" * 30, "b"],
    "string_view": ["", "b" * 12, "b" * 13, "b" * 14],
    "binary": [b"", b"\xff", b"\0"],
    "large_binary": [b"a", b"b"],
    "binary_view": [b"a" * 20, b"a" * 21, b"\xff"],
    "int8": [1, -1, 0],
    "uint64": [2**64 - 1, 0],
    "float16": [0.0, 1.0],
    "float32": [0.0, -0.0, NAN, 1.5],
    "float64": [0.0, -0.0, NAN, 1.5],
    "bool": [True, False],
    "date32": [datetime.date(2020, 1, day) for day in (1, 2)],
    "timestamp": [datetime.datetime(2020, 1, 1, hour) for hour in (1, 2)],
    "decimal": [decimal.Decimal("1.50"), decimal.Decimal("-2.25")],
    "fixed": [b"abc", b"abd"],
    "interval": [pa.MonthDayNano([1, 2, days]) for days in (3, 4)],
}
TYPES = {
    "timestamp": pa.timestamp("us"),
    "decimal": pa.decimal256(50, 2),
    "fixed": pa.binary(3),
    "interval": pa.month_day_nano_interval(),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_of_any_type_are_compared(name):
    data_type, values = TYPES.get(name) or pa.type_for_alias(name), VALUES[name]
    chunks = [
        pa.DictionaryArray.from_arrays(
            pa.array(range(len(some)), "int8"), pa.array(some, data_type)
        )
        for some in (values, values[::-1], values[1:])
    ]
    expected = [*range(len(values)), *reversed(range(len(values))), *range(1, len(values))]
    source = pa.chunked_array(chunks)
    batches = list(iter_batches(source, batch_size=2, physical=True, format="matrix"))
    assert [code for batch in batches for code in np.asarray(batch).tolist()] == expected
    whole = to_tensor(source, physical=True)
    assert (np.asarray(whole).tolist(), whole.dtype) == (expected, "int8")
    for tensor in (whole, batches[-1]):
        dictionary = pa.array(tensor.dictionary)
        dictionary.validate(full=True)
        # Signs of zeros too.
        assert (dictionary.type, repr(dictionary.to_pylist())) == (data_type, repr(values))


def test_a_value_that_a_dictionary_has_twice_has_one_code():
    keys = pa.array([0, 1, 2, 3])
    twice = pa.DictionaryArray.from_arrays(keys, pa.array(["a", "b", "a", "c"]))
    (batch,) = iter_batches(twice, physical=True, format="matrix")
    assert np.asarray(batch).tolist() == [0, 1, 0, 2]
    assert pa.array(batch.dictionary).to_pylist() == ["a", "b", "c"]


def in_a_stream(source, **options):
    batches = iter_batches(source, batch_size=9, physical=True, format="matrix", **options)
    (batch,) = batches
    return batch


def at_once(source, **options):
    return to_tensor(source, physical=True, **options)


@pytest.mark.parametrize("convert", [in_a_stream, at_once])
def test_a_code_of_null_is_a_null(convert):
    one = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 2]), pa.array(["a", None, "b"]))
    other = pa.DictionaryArray.from_arrays(pa.array([1, 0]), pa.array([None, "b"]))
    words = ["a", None, None, "b", "b", None]
    for source in (one, pa.chunked_array([one, other]), pa.FixedSizeListArray.from_arrays(one, 2)):
        codes, mask = convert(source, nulls="mask")
        dictionary = pa.array(codes.dictionary).to_pylist()
        pairs = zip(np.asarray(codes).ravel(), np.asarray(mask).ravel(), strict=True)
        found = [dictionary[code] if is_valid else None for code, is_valid in pairs]
        assert found == words[: len(found)]
        filled = np.asarray(convert(source, nulls=-1)).ravel().tolist()
        assert [code == -1 for code in filled] == [word is None for word in found]
        with pytest.raises(UnsupportedError, match=f"{found.count(None)} nulls"):
            convert(source)


def test_what_lies_under_a_null_may_be_any_code():
    valid = pa.py_buffer(b"\x05")
    keys = pa.Array.from_buffers(
        pa.int8(), 3, [valid, pa.py_buffer(np.array([1, -77, 0], "int8"))], null_count=1
    )
    one = pa.DictionaryArray.from_arrays(keys, pa.array(["a", "b"]), safe=False)
    source = pa.chunked_array([one, coded(["b"], ["b"], "int8")])
    for convert in (at_once, in_a_stream):
        assert np.asarray(convert(source, nulls=-1)).tolist() == [1, -1, 0, 1]


def test_codes_in_lists_of_one_size():
    lists = [
        pa.FixedSizeListArray.from_arrays(coded(values, words, "int8"), 2)
        for values, words in (("abac", "abc"), ("cb", "cb"), ("bb", "b"))
    ]
    source = pa.chunked_array(lists)
    expected = [["a", "b"], ["a", "c"], ["c", "b"], ["b", "b"]]
    batches = list(iter_batches(pa.table({"x": source}), batch_size=3, physical=True))
    tensors = [batch["x"] for batch in batches]
    for given in (tensors, [to_tensor(source, physical=True)]):
        words = pa.array(given[-1].dictionary).to_pylist()
        rows = np.concatenate([np.asarray(tensor) for tensor in given])
        assert [[words[code] for code in row] for row in rows] == expected


def test_codes_of_one_dictionary_are_shared_where_they_are_int32():
    words = pa.array(["x", "y", "z"])
    chunks = [
        pa.DictionaryArray.from_arrays(pa.array(codes, "int32"), words) for codes in ([2, 0], [1])
    ]
    found = [
        described(batch).address
        for batch in iter_batches(pa.chunked_array(chunks), format="matrix", physical=True)
    ]
    assert found == [leaf_address(chunk.indices) for chunk in chunks]


def test_codes_that_could_only_be_copied_are_refused_where_copies_are():
    one, other = coded("ab", "ab"), coded("ba", "ba")
    options = {"physical": True, "format": "matrix", "copy": False}
    batches = iter_batches(pa.chunked_array([one, other]), **options)
    assert described(next(batches)).address == leaf_address(one.indices)
    with pytest.raises(BufferError, match="the dictionaries of its chunks are unified"):
        next(batches)
    with pytest.raises(BufferError, match="int8 becomes int32"):
        next(iter_batches(coded("ab", "ab", "int8"), **options))


def test_what_becomes_of_a_column_of_codes_is_in_its_field():
    field = pa.field("word", pa.dictionary("int8", pa.string()), metadata={"unit": "none"})
    source = pa.table([coded(["a"], ["a"], "int8")], pa.schema([field]))
    batch = next(iter_batches(source, batch_size=1, physical=True))
    field = pa.field(batch["word"].field)
    assert field.type == pa.dictionary("int32", pa.string())
    assert (field.name, field.metadata) == ("word", {b"unit": b"none"})
    with pytest.raises(UnsupportedError, match="physical=True"):
        iter_batches(source, batch_size=1)


def test_lists_in_dictionaries_are_not_compared():
    lists = pa.array([[1], [2, 3]])
    chunk = pa.DictionaryArray.from_arrays(pa.array([1, 0]), lists)
    empty = pa.DictionaryArray.from_arrays(pa.array([], "int64"), lists[:0])
    same = pa.table({"word": pa.chunked_array([empty, chunk, chunk])})
    batches = [batch["word"] for batch in iter_batches(same, batch_size=2, physical=True)]
    assert [np.asarray(batch).tolist() for batch in batches] == [[1, 0], [1, 0]]
    assert pa.array(batches[0].dictionary).equals(lists)
    other = pa.DictionaryArray.from_arrays(pa.array([0]), pa.array([[9]]))
    batches = iter_batches(pa.chunked_array([chunk, other]), format="matrix", physical=True)
    assert np.asarray(next(batches)).tolist() == [1, 0]
    with pytest.raises(BufferError, match="different dictionaries"):
        next(batches)


def test_more_words_than_codes_have_wider_codes_in_a_stream():
    chunks = [
        coded(
            [f"{part} {word}" for word in range(100)],
            [f"{part} {word}" for word in range(100)],
            "int8",
        )
        for part in range(3)
    ]
    source = table(chunks)
    assert rows(source, batch_size=70) == list(enumerate(source["word"].to_pylist()))
    for convert in (
        lambda: to_tensor_dict(source, physical=True),
        lambda: to_tensor(source["word"], physical=True),
    ):
        with pytest.raises(ValueError, match="300 distinct values, too many for keys of Int8"):
            convert()
    # The way out that it names.
    wider = source["word"].cast(pa.dictionary("int32", pa.string()))
    assert np.asarray(to_tensor(wider, physical=True)).tolist() == list(range(300))


def test_a_row_knows_what_its_codes_stand_for():
    codes = coded("cab", "abc")
    row = Array(codes).row(0, physical=True)
    assert pa.array(row.dictionary)[int(np.asarray(row))].as_py() == "c"
    lists = Array(pa.ListArray.from_arrays([0, 2, 3], codes))
    row = lists.row(0, physical=True)
    assert pa.array(row.dictionary).take(pa.array(np.asarray(row))).to_pylist() == ["c", "a"]
    values = ragged(lists, physical=True).values
    assert pa.array(values.dictionary).take(pa.array(np.asarray(values))).to_pylist() == [
        "c",
        "a",
        "b",
    ]


MEMORY = """
import random, resource, numpy as np, pyarrow as pa
from arrow_dlpack import iter_batches

words = [f"{number:4000}" for number in range(500)]
codes = pa.array(np.arange(100), "int32")
schema = pa.schema({"word": pa.dictionary("int32", pa.string())})

def batches():
    for _ in range(16):
        random.shuffle(words)
        column = pa.DictionaryArray.from_arrays(codes, pa.array(words))
        yield pa.record_batch([column], schema=schema)

def read():
    reader = pa.RecordBatchReader.from_batches(schema, batches())
    options = {"shuffle": 10_000, "physical": True}
    return sum(batch["word"].shape[0] for batch in iter_batches(reader, batch_size=100, **options))

before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert read() == 1600
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in KiB on Linux")
def test_sixteen_dictionaries_of_the_same_words_take_the_memory_of_a_few():
    """They are 2 MB each, 32 MB together."""
    peak = subprocess.run(
        [sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True
    )
    assert int(peak.stdout) < 20e6


def nested(*values):
    words = pa.array([{"a": value} for value in values])
    codes = pa.DictionaryArray.from_arrays(pa.array([0, 1], "int8"), words)
    return pa.table({"l": [[0, 0], [0]], "b": codes})


@pytest.mark.parametrize(
    "together",
    [
        lambda tables: (tables, ByLength(4, "l")),
        lambda tables: (tables, ByTokens(8, "l")),
        lambda tables: (Mix([(table, 1) for table in tables]), 4),
    ],
    ids=["ByLength", "ByTokens", "Mix"],
)
def test_rows_that_are_put_together_have_no_codes_of_two_nested_dictionaries(together):
    """One value would have several codes."""
    columns, options = {"l": Pad(0), "b": None}, {"physical": True, "framework": "numpy"}
    source, size = together([nested(1, 2), nested(1, 2)])
    (batch,) = Loader(source, columns=columns, batch_size=size, **options)
    assert sorted(batch["b"].tolist()) == [0, 0, 1, 1]
    source, size = together([nested(1, 2), nested(2, 3)])
    with pytest.raises(BufferError, match='column "b" has different dictionaries of struct'):
        list(Loader(source, columns=columns, batch_size=size, **options))
    columns["b"] = AsArrow()
    (batch,) = Loader(source, columns=columns, batch_size=size, **options)
    assert sorted(row["a"] for row in pa.array(batch["b"]).to_pylist()) == [1, 2, 2, 3]


def test_a_column_of_different_nested_dictionaries_is_named():
    with pytest.raises(BufferError, match='column "b": the chunks of .* have different dictionar'):
        list(Loader([nested(1, 2), nested(2, 3)], columns=["b"], physical=True, batch_size=4))


def test_one_dictionary_is_one_though_it_has_a_nan():
    words = pa.array([[1.0], [float("nan")]])
    codes = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0], "int8"), words)
    table = pa.table({"x": codes, "t": ["a", "bb", "c"]})
    twice = pa.concat_tables([table, table])
    for source, size in (
        (table, ByLength(6, "t")),
        (Mix([(table, 1)]), 6),
        (twice, ByTokens(99, "t")),
    ):
        batches = Loader(source, columns=["x"], physical=True, batch_size=size)
        found = [code for batch in batches for code in batch["x"].tolist()]
        assert sorted(found) == [0, 0, 1] if source is not twice else [0, 0, 0, 0, 1, 1]
