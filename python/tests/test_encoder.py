"""An `Encoder` makes of rows what a batch of a `Loader` is, of one row as of all of them."""

import _pydecimal
import array
import dataclasses
import datetime as dt
import io
import json
import math
import pickle
import re
import subprocess
import sys
import threading
from decimal import Decimal
from functools import reduce
from types import MappingProxyType
from unittest import mock
from uuid import UUID

import arrow_dlpack
import jax
import ml_dtypes
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
import torch
from arrow_dlpack import (
    AsArrow,
    ByLength,
    ByTokens,
    Cast,
    Categories,
    Dense,
    Encoder,
    Loader,
    Mix,
    Pad,
    UnsupportedError,
    to_tensor,
)
from hypothesis import given, settings
from hypothesis import strategies as st

NOON = dt.datetime(2020, 1, 1, 12)
COLUMNS = {
    "small": pa.array([1, None, 3, 4], "int16"),
    "long": pa.array([2**40, 5, 6, 7]),
    "float": pa.array([0.5, math.nan, -0.0, None]),
    "single": pa.array([0.5, 1.5, 2.5, 3.5], "float32"),
    "bool": pa.array([True, False, None, True]),
    "text": pa.array(["a", "b", None, "b"]),
    "words": pa.array(["x", "y", "x", None]).dictionary_encode(),
    "day": pa.array([dt.date(2020, 1, day) for day in range(1, 5)]),
    "lists": pa.array([[1, 2], [], None, [3]]),
    "pairs": pa.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]], pa.list_(pa.float64(), 2)),
    "even": pa.array([[1, 2, 3]] * 4),
    "m": pa.array([{"s": 1, "t": "a"}, None, {"s": None, "t": "b"}, {"s": 4, "t": "a"}]),
    "y": pa.array([0, 1, 0, 1]),
}
TABLE = pa.table(COLUMNS)
BYTES = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([2, 0], "int8"))
WISHES = {
    "small": [Cast("float32", nulls="nan"), Cast("int64", nulls=-1), Cast("int32", nulls="mask")],
    "long": [None, Cast("float64"), Categories([2**40, 5, 6, 7])],
    "float": [Cast("float32", nulls=0.5), Categories([math.nan, 0.0, 0.5], nulls=-1)],
    "single": [None, Cast("float64"), Categories([0.5, 1.5], unknown=9)],
    "bool": [Cast("bool", nulls="mask"), Cast("float32", nulls="nan"), Categories([False], 5, -1)],
    "text": [Categories.scan(nulls=-1), Categories(["b"], unknown=7, nulls="mask"), AsArrow()],
    "words": [Categories.scan(nulls=2, dtype="int64"), Categories(["y"], unknown=-2, nulls=0)],
    "day": [Categories.scan(), AsArrow()],
    "lists": [Pad(0, max_length=3, nulls=0), Pad(-1, nulls="mask"), AsArrow()],
    "pairs": [None, Cast("float32"), Dense(2, dtype="float32")],
    "even": [Dense(3), Dense(), Pad(0, dtype="int32"), None],
    "m.s": [Cast("float64", nulls="nan"), Categories.scan(nulls=-1)],
    "m.t": [Categories.scan(unknown=-1, nulls=-2)],
}


def same(one, other):
    """Whether two batches are equal, bit by bit."""
    assert type(one) is type(other)
    if isinstance(one, dict):
        assert list(one) == list(other)
        return [same(one[name], other[name]) for name in one]
    if isinstance(one, tuple):
        return [same(*pair) for pair in zip(one, other, strict=True)]
    if isinstance(one, arrow_dlpack.Array):
        own, its = pa.array(one), pa.array(other)
        assert own.type == its.type
        assert own.to_pylist() == its.to_pylist()
        return None
    own, its = np.asarray(one), np.asarray(other)
    assert (own.dtype, own.shape) == (its.dtype, its.shape)
    assert own.tobytes() == its.tobytes()
    return None


def rows_of(batch, rows):
    """Some rows of a batch, of which each column is a tensor or a pair of them."""
    if isinstance(batch, dict):
        return {name: rows_of(own, rows) for name, own in batch.items()}
    if hasattr(batch, "_make"):
        return batch._make(rows_of(own, rows) for own in batch)
    if isinstance(batch, tuple):
        return tuple(rows_of(own, rows) for own in batch)
    if isinstance(batch, arrow_dlpack.Array):
        return pa.array(batch).slice(rows.start, rows.stop - rows.start).to_pylist()
    return np.asarray(batch)[rows].tobytes()


@st.composite
def wishes(draw):
    names = draw(st.lists(st.sampled_from(sorted(WISHES)), min_size=1, unique=True))
    return {name: draw(st.sampled_from(WISHES[name])) for name in names}


@settings(max_examples=250)
@given(
    wishes=wishes(),
    label=st.sampled_from([None, "y", ["y", "single"], {"y": Cast("float32")}]),
    nulls=st.sampled_from(["error", "mask", "nan"]),
    dtype=st.sampled_from([None, "float64"]),
    framework=st.sampled_from([None, "numpy", "torch"]),
)
def test_an_encoder_gives_the_one_batch_of_a_loader(wishes, label, nulls, dtype, framework):
    """With the same wishes; whatever makes the rows, and read back from JSON too."""
    labels = [label] if isinstance(label, str) else list(label or ())
    wishes = {name: wish for name, wish in wishes.items() if name not in labels}
    options = {"columns": wishes, "label": label, "nulls": nulls, "dtype": dtype}
    options |= {"framework": framework}
    try:
        (batch,) = Loader(TABLE, batch_size=None, **options)
    except (BufferError, TypeError, ValueError) as error:
        with pytest.raises(type(error)):
            Loader(TABLE, **options).encoder()(TABLE, label=bool(labels))
        return
    loader = Loader(TABLE, batch_size=2, shuffle=3, seed=1, **options)
    encoder = loader.encoder()
    written = Encoder.from_json(encoder.to_json())
    assert written == encoder
    assert written.to_json() == encoder.to_json()
    for made in (
        encoder,
        written,
        Encoder(**options).fit(TABLE),
        pickle.loads(pickle.dumps(encoder)),
    ):
        same(made(TABLE, label=bool(labels)), batch)
    features = batch[0] if labels else batch
    same(encoder(TABLE), features)
    same(encoder(TABLE.combine_chunks().to_batches()[0]), features)
    same(written(TABLE.to_pylist()), features)
    same(written(TABLE.to_pydict()), features)
    same(encoder(pl.from_arrow(TABLE.drop(["day"]))) if "day" not in wishes else features, features)
    has_width = any(isinstance(w, Pad) and w.max_length is None for w in wishes.values())
    is_ragged = wishes.get("even", 0) is None
    if not has_width and not is_ragged and nulls != "mask" and framework != "torch":
        masks = any(getattr(wish, "nulls", None) == "mask" for wish in wishes.values())
        for start, stop in [] if masks else [(0, 1), (1, 3), (3, 4)]:
            one = encoder(TABLE.slice(start, stop - start))
            assert rows_of(one, slice(0, stop - start)) == rows_of(features, slice(start, stop))


@pytest.mark.parametrize("nulls", ["error", "nan", 0])
@pytest.mark.parametrize("dtype", [None, "float32"])
def test_a_matrix_is_that_of_a_loader(nulls, dtype):
    columns = {"small": None, "single": None, "pairs": None, "even": Dense(3)}
    columns |= {"text": Categories(["b", "a"], nulls=None)} if nulls == 0 else {}
    options = {"columns": columns, "format": "matrix", "nulls": nulls, "dtype": dtype, "label": "y"}
    table = TABLE if nulls != "error" else TABLE.slice(3)
    (batch,) = Loader(table, batch_size=None, **options)
    encoder = Loader(table, batch_size=2, **options).encoder()
    same(encoder(table, label=True), batch)
    same(Encoder.from_json(encoder.to_json())(table.to_pylist()), batch[0])


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_codes_decide_the_dtype_of_a_matrix_as_in_a_loader(dtype):
    table = pa.table({"x": pa.array([1, 2], "int16"), "c": ["a", "b"]})
    columns = {"x": None, "c": Categories(["a", "b"], dtype=dtype)}
    for options in {}, {"label": {"c": Categories(["b", "a"], dtype=dtype)}, "columns": ["x"]}:
        loader = Loader(table, batch_size=None, format="matrix", **{"columns": columns} | options)
        (batch,) = loader
        encoder = loader.encoder()
        same(encoder(table, label="label" in options), batch)
        same(Encoder.from_json(encoder.to_json())(table), batch[0] if "label" in options else batch)


def test_all_columns_but_labels_and_an_index_are_features():
    frame = pd.DataFrame({"x": [1.5, 2.5], "y": [0, 1]}, index=pd.Index([7, 8], name="id"))
    encoder = Loader(frame, batch_size=1, label="y").encoder()
    assert list(encoder([{"x": 1.5}])) == ["x"]
    assert pa.schema(encoder.schema).names == ["x", "y"]
    same(Encoder.from_json(encoder.to_json())(frame), encoder([{"x": 1.5}, {"x": 2.5}]))


@pytest.mark.parametrize(
    ("trained", "request_", "expected"),
    [
        (pa.float64(), pa.array([1, 2**53]), [1.0, 2.0**53]),
        (pa.float64(), pa.array([1.5], "float32"), [1.5]),
        (pa.float32(), pa.array([1.5], "float16"), [1.5]),
        (pa.int64(), pa.array([3.0, -4.0]), [3, -4]),
        (pa.int8(), pa.array([3, -4]), [3, -4]),
        (pa.uint64(), pa.array([3], "int8"), [3]),
        (pa.int32(), pa.array([1, 2]).dictionary_encode(), [1, 2]),
        (pa.int32(), pa.nulls(2), [-1, -1]),
        (pa.timestamp("ms"), pa.array([NOON], pa.timestamp("us")), [1577880000000]),
        (pa.timestamp("ns"), pa.array([NOON], pa.timestamp("s")), [1577880000 * 10**9]),
        (pa.duration("ms"), pa.array([5_000], pa.duration("us")), [5]),
        (pa.date32(), pa.array([dt.date(1970, 1, 3)], pa.date64()), [2]),
        (pa.list_(pa.int64(), 2), pa.array([[1, 2]], pa.large_list(pa.int8())), [[1, 2]]),
        (pa.list_(pa.float64(), 2), pa.array([[1, 2]], pa.list_(pa.int64(), 2)), [[1.0, 2.0]]),
        (
            pa.int64(),
            pa.RunEndEncodedArray.from_arrays([2, 3], pa.array([1, 2], "int8")),
            [1, 1, 2],
        ),
        (pa.bool8(), pa.array([True, False]), [True, False]),
        (pa.bool_(), BYTES, [True, False]),
    ],
    ids=str,
)
def test_another_type_of_the_same_values_is_taken(trained, request_, expected):
    table = pa.table({"x": pa.array([], trained)})
    x = Cast("int64", nulls=-1) if trained == pa.int32() else None
    loader = Loader(table, columns={"x": x}, physical=True, framework="numpy")
    made = loader.encoder()(pa.table({"x": request_}))["x"]
    assert made.tolist() == expected
    assert made.dtype == (np.dtype("int64") if x else loader.encoder()(table)["x"].dtype)


def structs(**fields):
    return pa.list_(pa.struct(fields))


@pytest.mark.parametrize(
    ("trained", "request_"),
    [
        (pa.dictionary(pa.int32(), pa.string()), pa.array(["a", "b", "a"])),
        (pa.dictionary(pa.int32(), pa.int64()), pa.array([1, None, 1], "int8")),
        (pa.list_view(pa.int64()), pa.array([[1], None, [2, 3]], pa.list_view(pa.int8()))),
        (pa.list_(pa.int64()), pa.array([[1], [], [2, 3]], pa.large_list_view(pa.int8()))),
        (
            structs(a=pa.int64(), b=pa.string()),
            pa.array(
                [[{"b": "x", "a": 1}, None], None],
                structs(b=pa.large_string(), a=pa.int8()),
            ),
        ),
    ],
    ids=str,
)
def test_what_is_handed_out_as_it_is_has_the_type_of_training(trained, request_):
    loader = Loader(pa.table({"x": pa.array([], trained)}), columns={"x": AsArrow()})
    made = pa.array(loader.encoder()(pa.table({"x": request_}))["x"])
    assert made.type == trained
    assert made.to_pylist() == request_.to_pylist()


@pytest.mark.parametrize(
    ("trained", "request_", "error", "words"),
    [
        (pa.binary(3), pa.array([b"ab"], pa.binary(2)), TypeError, "it is FixedSizeBinary.2."),
        (
            structs(a=pa.int64(), b=pa.string()),
            pa.array([[{"a": 1}]]),
            KeyError,
            'items: it has no field "b"',
        ),
        (
            structs(a=pa.int64()),
            pa.array([[{"a": 1.5}]]),
            ValueError,
            'items: field "a": value 1.5 in item 0',
        ),
        (
            pa.list_(pa.list_(pa.int64())),
            pa.array([], pa.fixed_shape_tensor(pa.int64(), [2**40, 0])),
            ValueError,
            "more values than",
        ),
        (
            pa.fixed_shape_tensor(pa.int64(), [2**20, 2**20, 0]),
            pa.array([], pa.list_(pa.list_(pa.list_(pa.int64())))),
            ValueError,
            "more values than",
        ),
        (
            pa.list_(pa.int64(), 2**31 - 1),
            pa.array([None] * 10**6, pa.list_(pa.int64())),
            MemoryError,
            "cannot allocate",
        ),
        (
            pa.list_(pa.list_(pa.int64(), 2**31 - 1)),
            pa.array([[None] * 10**6], pa.list_(pa.list_(pa.int64()))),
            MemoryError,
            "cannot allocate",
        ),
    ],
    ids=str,
)
def test_what_is_handed_out_as_it_is_has_the_values_of_training(trained, request_, error, words):
    loader = Loader(pa.table({"x": pa.array([], trained)}), columns={"x": AsArrow()})
    with pytest.raises(error, match=f'column "x": .*{words}'):
        loader.encoder()(pa.table({"x": request_}))


@pytest.mark.parametrize(
    ("trained", "request_", "error", "words"),
    [
        (pa.float32(), pa.array([1.5]), TypeError, "it is Float64, and was Float32 in training"),
        (pa.float64(), pa.array([5, 2**53 + 1]), ValueError, "value 9007199254740993 in row 1"),
        (pa.int64(), pa.array([7.5]), ValueError, "value 7.5 in row 0 does not fit Int64"),
        (pa.int64(), pa.array([math.nan]), ValueError, "value NaN in row 0"),
        (pa.int8(), pa.array([3, 400]), ValueError, "value 400 in row 1 does not fit Int8"),
        (pa.int64(), pa.array([True]), TypeError, "it is Boolean"),
        (pa.bool_(), pa.array([1]), TypeError, "it is Int64, and was Boolean"),
        (pa.int64(), pa.array(["7"]), TypeError, "it is Utf8"),
        (pa.timestamp("ms"), pa.array(["2020-01-01"]), TypeError, "pass times"),
        (pa.timestamp("ms"), pa.array([1], pa.timestamp("us")), ValueError, "does not fit"),
        # A time of no year is shown as its number.
        (
            pa.timestamp("ms"),
            pa.array([2**62], pa.timestamp("s")),
            ValueError,
            "value 4611686018427387904 in row 0 does not fit",
        ),
        (pa.timestamp("ms"), pa.array([1], pa.timestamp("ms", "UTC")), TypeError, "zone"),
        (pa.date32(), pa.array([NOON]), TypeError, "was Date32"),
        (pa.list_(pa.int64(), 2), pa.array([[1, 2, 3]]), ValueError, "its rows are not"),
        (pa.list_(pa.int64(), 2), pa.array([[1, 2.5]]), ValueError, "items: value 2.5 in item 1"),
        (pa.list_(pa.int64(), 2), pa.array([["a", "b"]]), TypeError, "items: it is Utf8"),
        (
            pa.list_(pa.int64()),
            pa.array([[[1]]]),
            TypeError,
            "items: .* in lists of one level less",
        ),
        (pa.list_(pa.list_(pa.int64(), 2)), pa.array([[1]]), TypeError, "items: .*: pass lists"),
    ],
    ids=str,
)
def test_a_type_of_other_values_is_refused(trained, request_, error, words):
    loader = Loader(pa.table({"x": pa.array([], trained)}), physical=True)
    with pytest.raises(error, match=f'column "x": .*{words}'):
        loader.encoder()(pa.table({"x": request_}))


def of_column(column):
    """An encoder of a column that it hands on, so that any type is one of training."""
    return Encoder(columns={"x": AsArrow()}).fit(pa.table({"x": column}))


@pytest.mark.parametrize("unit", ["D", "h", "s", "ms", "us", "ns"])
@pytest.mark.parametrize("trained", [pa.date32(), pa.date64(), pa.timestamp("us")], ids=str)
def test_the_way_out_for_times_of_numpy_is_one(trained, unit):
    x = np.array(["2020-01-02"], f"M8[{unit}]")
    encoder = of_column(pa.array([NOON]).cast(trained, safe=False))
    with pytest.raises(UnsupportedError) as refused:
        encoder({"x": x})
    way_out = str(refused.value).partition("; ")[2]
    made = eval(way_out.removesuffix(" makes Arrow data of it"), {"pyarrow": pa, "x": x})
    if pa.types.is_date(made.type) != pa.types.is_date(trained):
        with pytest.raises(TypeError, match="cast it first"):
            encoder({"x": made})
        made = made.cast(trained)
    encoded = encoder({"x": made})["x"]
    assert pa.array(encoded).cast(pa.timestamp("s")).to_pylist() == [dt.datetime(2020, 1, 2)]


def test_times_of_numpy_for_other_columns():
    times, durations = np.array([1], "M8[s]"), np.array([1], "m8[D]")
    for column, x, words in [
        (pa.array([1]), times, 'x.view("int64") has its numbers as a tensor'),
        (pa.array([1], pa.time32("s")), durations, "pass times of a day"),
        (pa.array([1], pa.date32()), durations, "pass dates"),
        (pa.array([1], pa.duration("s")), times, "pass durations"),
        (
            pa.array([1], pa.duration("s")),
            durations.astype("m8[s]").view("m8[M]"),
            "years and months",
        ),
    ]:
        with pytest.raises(UnsupportedError) as refused:
            of_column(column)({"x": x})
        assert str(refused.value).partition("; ")[2].startswith(words)
    assert of_column(pa.array([1]))({"x": times.view("int64")})["x"]
    for column, request, words in [
        (pa.array([1], pa.duration("s")), pa.array([1], pa.timestamp("s")), "pass durations"),
        (pa.array([1], pa.timestamp("s")), pa.array([1], pa.duration("s")), "pass times$"),
        (pa.array([1], pa.time32("s")), pa.array([1], pa.date32()), "pass times of a day"),
        (pa.array([1], pa.date32()), pa.array([1]), "pass dates"),
    ]:
        with pytest.raises(TypeError, match=words):
            of_column(column)({"x": request})


def test_floats_of_python_are_rounded_once_to_float16():
    """Through float32, which rounds these to a tie of two halves, the other neighbour is taken."""
    ties = [1 + 2.0**-11, 1 + 3 * 2.0**-11, 2.0**-25, 65520 - 2.0**-6, 2049]
    values = [tie * near for tie in ties for near in (1 - 2.0**-40, 1.0, 1 + 2.0**-40)]
    values += [-value for value in values]
    for table, request in (
        (pa.table({"x": pa.array([1.5], "float16")}), [{"x": value} for value in values]),
        (pa.table({"x": pa.array([1.5], "float16")}), {"x": values}),
        (
            pa.table({"x": pa.array([[1.5]], pa.list_(pa.float16(), 1))}),
            [{"x": [of]} for of in values],
        ),
    ):
        found = np.asarray(Loader(table).encoder()(request)["x"])
        assert found.ravel().view("uint16").tolist() == np.float16(values).view("uint16").tolist()
    words = pa.table({"x": pa.array([1.0, values[2]], "float16")})
    coded = Loader(words, columns={"x": Categories.scan(unknown=-1)}).encoder()
    assert np.asarray(coded([{"x": 1.0}, {"x": values[2]}])["x"]).tolist() == [0, 1]
    with pytest.raises(ValueError, match="it would be infinite"):
        coded([{"x": 65520.0}])


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn"])
def test_the_way_out_for_numbers_of_ml_dtypes_is_one(dtype):
    x = np.array([1, 2], getattr(ml_dtypes, dtype))
    opaque = pa.array(arrow_dlpack.from_dlpack(jax.numpy.asarray(x), type="opaque"))
    encoder = Encoder(columns={"x": None}).fit(pa.table({"x": opaque}))
    with pytest.raises(UnsupportedError) as refused:
        encoder({"x": x})
    assert str(refused.value).endswith(f'; jax.numpy.asarray(x, "{dtype}") is a tensor of {dtype}')
    assert encoder({"x": jax.numpy.asarray(x, dtype)})["x"].dtype == dtype
    numbers = Encoder(columns={"x": None}).fit(pa.table({"x": pa.array([1.0], "float32")}))
    with pytest.raises(UnsupportedError) as refused:
        numbers({"x": x})
    assert str(refused.value).endswith('; x.astype("float32") is a tensor of its numbers')
    # pyarrow would cast the bits.
    with pytest.raises(TypeError, match=r'in training: to_tensor\(x, dtype="float32"\) has its'):
        numbers({"x": opaque})
    assert numbers({"x": to_tensor(opaque, dtype="float32")})["x"].tolist() == [1.0, 2.0]


def test_what_is_told_of_large_integers_of_a_column_of_training_works():
    wide = pl.Series("x", [2**127 - 1, 1], dtype=pl.Int128)
    objects = pd.DataFrame({"x": pd.Series([2**100, 1], dtype=object)})
    encoder = Encoder(columns={"x": None}).fit(pa.table({"x": [1.0]}))
    for request in (pl.DataFrame({"x": wide}), {"x": wide}, objects):
        with pytest.raises((TypeError, ValueError, OverflowError), match="Float64|float64"):
            encoder(request)
    for request in (pl.DataFrame({"x": wide.cast(pl.Float64)}), objects.astype("float64")):
        assert encoder(request)["x"].dtype == "float64"


def one(trained, value, **options):
    """The first value that an encoder makes of Python's one."""
    table = pa.table({"x": pa.array([], trained)})
    encoder = Encoder(columns={"x": options.pop("wish", None)}, framework="numpy", **options)
    made = Encoder.from_json(encoder.fit(table).to_json())([{"x": value}])["x"]
    return made.tolist()[0] if isinstance(made, np.ndarray) else made


@pytest.mark.parametrize(
    ("trained", "value", "expected"),
    [
        (pa.float64(), 3, 3.0),
        (pa.float64(), 2**53, 2.0**53),
        (pa.float32(), 0.1, float(np.float32(0.1))),
        (pa.float32(), np.float64(0.5), 0.5),
        (pa.float16(), 1.0, 1.0),
        (pa.float32(), math.inf, math.inf),
        (pa.int64(), 7.0, 7),
        (pa.int8(), np.int64(7), 7),
        (pa.uint16(), 2**16 - 1, 2**16 - 1),
        (pa.uint32(), 2**32 - 1, 2**32 - 1),
        (pa.uint64(), 2**64 - 1, 2**64 - 1),
        (pa.int64(), pa.scalar(5), 5),
        (pa.bool_(), True, True),
        (pa.bool_(), np.bool_(False), False),
        (pa.timestamp("ms"), NOON, 1577880000000),
        (pa.timestamp("ns"), pd.Timestamp("2020-01-01 00:00:00.000000001"), 1577836800000000001),
        (pa.timestamp("us", "UTC"), NOON.astimezone(dt.UTC), None),
        (pa.timestamp("s"), NOON, 1577880000),
        (pa.date32(), dt.date(1970, 1, 3), 2),
        (pa.date64(), dt.date(1970, 1, 3), 2 * 86_400_000),
        (pa.time32("s"), dt.time(0, 0, 1), 1),
        (pa.time64("us"), dt.time(0, 0, 1), 1_000_000),
        (pa.duration("ms"), dt.timedelta(seconds=1), 1000),
        (pa.decimal64(6, 2), Decimal("12.5"), 1250),
        (pa.decimal64(6, 2), Decimal("-1.500"), -150),
        (pa.decimal64(6, 2), Decimal("0.000"), 0),
        (pa.decimal32(6, 2), 3, 300),
        (pa.list_(pa.int64(), 2), [1, 2.0], [1, 2]),
        (pa.list_(pa.int64(), 2), (1, 2), [1, 2]),
        (pa.list_(pa.float32(), 2), np.array([1, 2]), [1.0, 2.0]),
        (pa.fixed_shape_tensor(pa.int32(), [2, 2]), [[1, 2], [3, 4]], [[1, 2], [3, 4]]),
        (pa.fixed_shape_tensor(pa.int32(), []), 5, 5),
        (pa.bool8(), True, True),
    ],
    ids=str,
)
def test_a_value_of_python_is_taken_where_it_is_the_same(trained, value, expected):
    made = one(trained, value, physical=not isinstance(trained, pa.BaseExtensionType))
    if expected is None:
        expected = int(value.timestamp()) * 10**6
    assert made == expected
    assert type(made) is type(expected)


@pytest.mark.parametrize(
    ("trained", "value", "expected"),
    [
        (pa.decimal256(60, 2), Decimal(f"{10**50}.5"), Decimal(f"{10**50}.50")),
        (pa.binary(3), b"abc", b"abc"),
        (pa.binary(), bytearray(b"ab"), b"ab"),
        (pa.large_binary(), memoryview(b"ab"), b"ab"),
        (pa.dictionary(pa.int32(), pa.string()), "a", "a"),
        (pa.list_(pa.int64(), 2), None, None),
        (pa.fixed_shape_tensor(pa.int32(), [2, 2]), [1, None, 3, 4], [1, None, 3, 4]),
    ],
    ids=lambda value: None if isinstance(value, memoryview) else str(value),
)
def test_a_value_of_python_is_handed_out_as_arrow_data(trained, value, expected):
    made = pa.array(one(trained, value, wish=AsArrow()))
    assert made.type == trained
    assert made.to_pylist() == [expected]


@pytest.mark.parametrize(
    "trained",
    [
        pa.month_day_nano_interval(),
        pa.map_(pa.string(), pa.int64()),
        pa.run_end_encoded(pa.int32(), pa.int64()),
    ],
    ids=str,
)
def test_types_without_values_of_python_take_arrow_data(trained):
    with pytest.raises(TypeError, match='row 0, column "x": .* become no .*: pass Arrow data'):
        one(trained, 5, wish=AsArrow())


def test_intervals_are_words_of_a_loop_and_as_texts_of_an_encoder_too():
    x = pa.array([(1, 2, 3), (0, 1, 0), (1, 2, 3)], pa.month_day_nano_interval())
    wish = {"x": Categories.scan()}
    loop = Loader(pa.table({"x": x}), columns=wish)
    assert next(iter(loop))["x"].tolist() in ([0, 1, 0], [1, 0, 1])
    made = "pyarrow.array([value and str(value) for value in x.to_pylist()])"
    for call in loop.encoder, lambda: Encoder(columns=wish).fit(pa.table({"x": x})):
        with pytest.raises(TypeError, match=rf'column "x": .* no intervals .*{re.escape(made)}'):
            call()
    texts = pa.array([value and str(value) for value in x.to_pylist()])
    loop = Loader(pa.table({"x": texts}), columns=wish)
    codes = loop.encoder()([{"x": str(value)} for value in x.to_pylist()])["x"].tolist()
    assert codes == next(iter(loop))["x"].tolist()


class NoZone(dt.tzinfo):
    def utcoffset(self, _when):
        raise ValueError("mine")


class NoList:
    def tolist(self):
        raise ValueError("mine")


@pytest.mark.parametrize(
    ("trained", "value"),
    [
        (pa.timestamp("us", "UTC"), NOON.replace(tzinfo=NoZone())),
        (pa.list_(pa.int64(), 2), NoList()),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_a_value_of_python_raises_says_where(trained, value):
    with pytest.raises(ValueError, match='row 0, column "x": mine'):
        one(trained, value, physical=True)


@pytest.mark.parametrize(
    ("trained", "value", "error"),
    [
        (pa.int64(), 7.5, ValueError),
        (pa.int64(), -0.0, ValueError),
        (pa.int64(), math.nan, ValueError),
        (pa.int64(), True, TypeError),
        (pa.int64(), "7", TypeError),
        (pa.int64(), 2**63, ValueError),
        (pa.int64(), 10**40, ValueError),
        (pa.uint8(), -1, ValueError),
        (pa.float64(), 2**53 + 1, ValueError),
        (pa.float32(), 2**24 + 1, ValueError),
        (pa.float32(), 1e300, ValueError),
        (pa.float16(), 70000.0, ValueError),
        (pa.float64(), 10**400, ValueError),
        (pa.float64(), "1.5", TypeError),
        (pa.float64(), False, TypeError),
        (pa.float64(), Decimal("1.5"), TypeError),
        (pa.bool_(), 1, TypeError),
        (pa.bool_(), "true", TypeError),
        (pa.timestamp("ms"), "2020-01-01", TypeError),
        (pa.timestamp("ms"), 5, TypeError),
        (pa.timestamp("ms"), NOON.replace(microsecond=1), ValueError),
        (pa.timestamp("ms"), NOON.replace(tzinfo=dt.UTC), ValueError),
        (pa.timestamp("ms", "UTC"), NOON, ValueError),
        (pa.timestamp("ms"), dt.date(2020, 1, 1), TypeError),
        (pa.date32(), NOON, TypeError),
        (pa.date64(), NOON, TypeError),
        (pa.time64("us"), "12:00", TypeError),
        (pa.time64("us"), dt.time(12, tzinfo=dt.UTC), TypeError),
        (pa.duration("s"), 5, TypeError),
        (pa.decimal64(6, 2), Decimal("1.234"), ValueError),
        (pa.decimal64(6, 2), Decimal(10**6), ValueError),
        (pa.decimal64(6, 2), Decimal("nan"), ValueError),
        (pa.decimal64(6, 2), 1.5, TypeError),
        (pa.list_(pa.int64(), 2), [1], ValueError),
        (pa.list_(pa.int64(), 2), 5, TypeError),
        (pa.list_(pa.int64(), 2), np.array(5), TypeError),
        (pa.list_(pa.int64(), 2), "ab", TypeError),
        (pa.list_(pa.int64(), 2), [1, 2.5], ValueError),
    ],
    ids=str,
)
def test_a_value_of_python_that_would_be_another_is_refused(trained, value, error):
    with pytest.raises(error, match='row 0, column "x": '):
        one(trained, value, physical=True)


def test_missing_keys_and_columns_are_named_unless_their_wish_fills_them():
    columns = {"x": None, "z": Cast("float32", nulls=-1), "c": Categories(["a"], nulls=5)}
    table = pa.table({"x": [1], "z": [2.5], "c": ["a"], "other": [object.__name__]})
    encoder = Loader(table, columns=columns, framework="numpy").encoder()
    for rows in [{"x": 1}], {"x": [1]}, pa.table({"x": [1]}), pd.DataFrame({"x": [1]}):
        assert {name: own.tolist() for name, own in encoder(rows).items()} == {
            "x": [1],
            "z": [-1.0],
            "c": [5],
        }
    with pytest.raises(KeyError, match='row 1 has no "x"'):
        encoder([{"x": 1}, {"z": 1.5}])
    for rows in {"z": [1.5]}, pa.table({"z": [1.5]}):
        with pytest.raises(KeyError, match='no column "x"'):
            encoder(rows)


def test_unknown_columns_are_ignored_whatever_they_are():
    encoder = Loader(pa.table({"x": [1]})).encoder()
    frame = pl.DataFrame({"x": [1], "objects": pl.Series([object()], dtype=pl.Object)})
    odd = pa.table(
        {
            "x": [1],
            "union": pa.UnionArray.from_dense(
                pa.array([0], "int8"), pa.array([0], "int32"), [pa.array(["a"])]
            ),
        }
    )
    for rows in frame, odd, [{"x": 1, "o": object()}], {"x": [1], "o": [object()]}:
        assert np.asarray(encoder(rows)["x"]).tolist() == [1]


def test_unknown_columns_are_ignored_where_others_may_lack():
    columns = {"x": None, "z": Cast("float32", nulls=-1), "m.s": Cast("int64", nulls=-1)}
    table = pa.table({"x": [1], "z": [1.5], "m": [{"s": 1}]})
    encoder = Loader(table, columns=columns, framework="numpy").encoder()
    odd = {"objects": pl.Series([object()], dtype=pl.Object)}
    for rows in pl.DataFrame({"x": [1]} | odd), pd.DataFrame({"x": [1], "o": [object()]}):
        made = encoder(rows)
        assert [own.tolist() for own in made.values()] == [[1], [-1.0], [-1]]


def test_rows_that_lack_every_column_are_as_many_as_there_are():
    encoder = Loader(
        pa.table({"x": [1.5], "m": [{"s": 1}]}),
        columns={"x": Cast("float32", nulls=-1), "m.s": Cast("int64", nulls=-2)},
        framework="numpy",
    ).encoder()
    for rows in {"z": [1, 2]}, [{"z": 1}, {"z": 2}], pa.table({"z": [1, 2]}):
        assert [own.tolist() for own in encoder(rows).values()] == [[-1, -1], [-2, -2]]
    for rows in {"m": [{}, {"s": 1}]}, {"m": pa.array([{"t": 1}, {"t": 2}])}, [{"m": {}}] * 2:
        assert encoder(rows)["m.s"].tolist()[0] == -2


def test_what_is_no_memory_for_is_an_error():
    """Rows of lists that would take gigabytes."""
    schema = pa.schema([("x", pa.list_(pa.int32(), 2**31 - 1))])
    encoder = Loader(pa.Table.from_batches([], schema)).encoder()
    with pytest.raises((MemoryError, ValueError)):
        encoder(pa.table({"x": [[1]]}))


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.decimal64(10, 2)], ids=str)
@pytest.mark.parametrize(
    "value",
    [
        np.datetime64("2020-01-01", "ns"),
        np.timedelta64(5, "ns"),
        np.array([1.5]),
        np.array([[1]]),
        torch.tensor([1.0]),
    ],
    ids=repr,
)
def test_times_and_arrays_of_numpy_are_no_numbers(kind, value):
    with pytest.raises(TypeError, match='row 0, column "x": '):
        one(kind, value, physical=True)
    with pytest.raises(TypeError, match='row 0, column "x": '):
        one(pa.list_(kind, 1), np.array([value]) if np.ndim(value) == 0 else [value], physical=True)


def test_rows_of_tensors_are_lists_and_arrays_of_their_shape():
    x = np.arange(12, dtype="float32").reshape(3, 4)
    encoder = Loader(pa.table({"x": pa.array(x.tolist(), pa.list_(pa.float32(), 4))})).encoder()
    assert np.asarray(encoder({"x": x})["x"]).tolist() == x.tolist()
    of = pa.fixed_shape_tensor(pa.float32(), [2, 2])
    column = pa.ExtensionArray.from_storage(of, pa.array(x.tolist(), pa.list_(pa.float32(), 4)))
    encoder = Loader(pa.table({"x": column})).encoder()
    expected = x.reshape(3, 2, 2).tolist()
    for rows in [{"x": row} for row in x.tolist()], [{"x": row} for row in expected]:
        assert np.asarray(encoder(rows)["x"]).tolist() == expected


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float8_e4m3fn], ids=str)
@pytest.mark.parametrize("wish", [None, Cast("float32")], ids=repr)
def test_a_number_is_no_value_of_what_arrow_has_the_bits_of(dtype, wish):
    """1.0 as bfloat16 is stored as 16256: neither number is the other."""
    tensor = torch.tensor([1.0, 2.0]).to(dtype)
    opaque = arrow_dlpack.from_dlpack(tensor, type="opaque")
    stored = pa.array(opaque).storage
    encoder = Encoder(columns={"x": wish}, framework="torch").fit(pa.table({"x": pa.array(opaque)}))
    numbers = [1, 2], [1.0, 2.0], stored, stored.to_numpy(), tensor.float(), [np.float32(1)]
    for values in numbers:
        with pytest.raises(TypeError, match=r'column "x": .*from_dlpack\(tensor, type="opaque"\)'):
            encoder({"x": values})
    with pytest.raises(TypeError, match="no value of (bfloat16|float8_e4m3fn), .*: a tensor of"):
        encoder([{"x": 1.0}])
    for values in tensor, opaque, pa.array(opaque):
        made = encoder({"x": values})["x"]
        assert (made.dtype, made.tolist()) == (torch.float32 if wish else dtype, [1, 2])


def test_a_number_in_lists_is_no_value_of_what_arrow_has_the_bits_of():
    tensor = torch.ones((2, 3), dtype=torch.bfloat16)
    rows = pa.array(arrow_dlpack.from_dlpack(tensor, type="opaque"))
    values = arrow_dlpack.from_dlpack(tensor.reshape(6), type="opaque")
    lists = pa.ListArray.from_arrays(pa.array([0, 3, 6], "int32"), pa.array(values))
    for column, wish in (rows, None), (lists, Pad(0)):
        encoder = Encoder(columns={"x": wish}, framework="torch").fit(pa.table({"x": column}))
        integers = pa.array([[1, 2, 3]], pa.list_(pa.uint16()))
        for refused in [[1.0, 2.0, 3.0]], integers, integers.cast(pa.list_(pa.uint16(), 3)):
            with pytest.raises(TypeError, match=r'from_dlpack\(tensor, type="opaque"\)'):
                encoder({"x": refused})
        for taken in tensor, column:
            made = encoder({"x": taken})["x"]
            assert torch.equal(made.values if wish else made, tensor)
    assert encoder({"x": [[], []]})["x"].lengths.tolist() == [0, 0]


def test_the_parts_of_a_complex_number_are_numbers():
    tensor = torch.tensor([1 + 2j])
    column = pa.array(arrow_dlpack.from_dlpack(tensor, type="opaque"))
    encoder = Encoder(columns={"x": None}, framework="torch").fit(pa.table({"x": column}))
    for values in tensor, column, [[1.0, 2.0]]:
        assert torch.equal(encoder({"x": values})["x"], tensor)


@pytest.mark.parametrize("trained", ["permuted", "fixed_shape_tensor"])
def test_tensors_are_taken_whatever_the_order_of_their_axes_in_memory(trained):
    x = np.arange(24, dtype="int32").reshape(2, 2, 3, 2).transpose(0, 3, 1, 2)
    own = {kind: pa.array(arrow_dlpack.from_dlpack(x, type=kind)) for kind in (trained, "permuted")}
    plain = pa.array(arrow_dlpack.from_dlpack(x.astype("int64")))
    moved = pa.array(arrow_dlpack.from_dlpack(x.astype("int64"), type="permuted"))
    table = pa.table({"x": own[trained]})
    encoder = Encoder(columns={"x": Cast("int32", nulls=-1)}, framework="numpy").fit(table)
    in_memory = own[trained].storage.to_pylist()
    for rows in x, x.tolist(), list(x), own["permuted"], plain, moved, in_memory:
        np.testing.assert_array_equal(encoder({"x": rows})["x"], x)
    np.testing.assert_array_equal(encoder({"x": own["permuted"].slice(1)})["x"], x[1:])
    assert encoder({"x": moved[:0]})["x"].shape == (0, 2, 2, 3)
    null = moved.type.wrap_array(pa.array([moved.storage[0].as_py(), None], moved.storage.type))
    expected = np.stack([x[0], np.full_like(x[0], -1)])
    np.testing.assert_array_equal(encoder({"x": null})["x"], expected)
    with pytest.raises(ValueError, match=r"rows have shape \[2, 2, 3\], and this one 3 items"):
        encoder({"x": x.transpose(0, 3, 1, 2).tolist()})


def test_tensors_of_another_shape_are_refused_with_both_shapes():
    x = np.arange(12, dtype="int32").reshape(2, 2, 3)
    for kind, known in {
        "permuted": '{"shape":[2,3],"permutation":[1,0]}',
        "fixed_shape_tensor": '{"shape":[3,2]}',
    }.items():
        column = pa.array(arrow_dlpack.from_dlpack(x.transpose(0, 2, 1), type=kind))
        encoder = Encoder(columns={"x": None}, framework="numpy").fit(pa.table({"x": column}))
        with pytest.raises(TypeError, match=": transpose or reshape it first") as caught:
            encoder({"x": x})
        assert re.findall(r"{.*?}", str(caught.value)) == ['{"shape":[2,3]}', known]
        assert encoder({"x": x.transpose(0, 2, 1)})["x"].shape == (2, 3, 2)


@pytest.mark.parametrize("size", [2, 4])
def test_rows_of_another_length_are_told_that_of_training(size):
    kind = pa.list_(pa.float32(), 3)
    encoder = Loader(pa.table({"x": pa.array([[1, 2, 3]], kind)}), framework="numpy").encoder()
    for rows in pa.array([[0] * size], pa.list_(pa.float32(), size)), np.zeros((1, size), "f4"):
        with pytest.raises(TypeError, match='"x": it is .*: pass rows of 3 items, as those of tra'):
            encoder({"x": rows})


@pytest.mark.parametrize("kind", ["list", "large_list", "list_view", "fixed_size_list"])
@pytest.mark.parametrize("items", ["int64", "float64"])
def test_a_tensor_with_more_axes_or_complex_numbers_is_no_column_of_lists(kind, items):
    made = {
        "list": pa.list_,
        "large_list": pa.large_list,
        "list_view": pa.list_view,
        "fixed_size_list": lambda item: pa.list_(item, 4),
    }[kind](pa.type_for_alias(items))
    source = pa.table({"x": pa.array([[1, 2, 3, 4]], made)})
    encoder = Encoder(columns={"x": Dense()}, framework="numpy").fit(source)
    assert encoder({"x": np.array([[1, 2, 3, 4]])})["x"].tolist() == [[1, 2, 3, 4]]
    for rows in np.array([[[1, 2], [3, 4]]]), np.array([[1 + 2j, 3 + 4j]]), np.array([1j]):
        with pytest.raises(TypeError, match='column "x": it is .*, and was .* in training'):
            encoder({"x": rows})


def test_a_float_for_a_decimal_is_refused_with_what_reads_decimals():
    table = pa.table({"x": pa.array([Decimal("1.5")])})
    encoder = Encoder(columns={"x": Cast("float64")}, framework="numpy").fit(table)
    text = '[{"x": 1.5}]'
    with pytest.raises(TypeError, match=r"json.loads\(text, parse_float=decimal.Decimal\)"):
        encoder(json.loads(text))
    assert encoder(json.loads(text, parse_float=Decimal))["x"].tolist() == [1.5]


def test_lists_in_lists_and_tensors_of_one_shape_are_the_same_rows():
    x = np.arange(24, dtype="int32").reshape(2, 2, 3, 2).transpose(0, 3, 1, 2)
    lists = lists_of = pa.int32()
    for size in reversed(x.shape[1:]):
        lists, lists_of = pa.list_(lists, size), pa.list_(lists_of)
    columns = {
        "permuted": pa.array(arrow_dlpack.from_dlpack(x, type="permuted")),
        "tensors": pa.array(arrow_dlpack.from_dlpack(x)),
        "lists of one length": pa.array(x.tolist(), lists),
        "lists": pa.array(x.tolist(), lists_of),
    }
    for trained in "permuted", "tensors", "lists of one length":
        source = pa.table({"x": columns[trained]})
        encoder = Encoder(columns={"x": Cast("int32", nulls=-1)}, framework="numpy").fit(source)
        for rows in (x, x.astype("int64"), x.tolist(), *columns.values()):
            np.testing.assert_array_equal(encoder({"x": rows})["x"], x)
        null = pa.array([None, x[1].tolist()], lists)
        expected = np.stack([np.full_like(x[0], -1), x[1]])
        np.testing.assert_array_equal(encoder({"x": null})["x"], expected)
        np.testing.assert_array_equal(encoder({"x": null.slice(1)})["x"], x[1:])
        assert encoder({"x": x[:0]})["x"].shape == (0, 2, 2, 3)
        with pytest.raises(TypeError, match='column "x": it is'):
            encoder({"x": x.transpose(0, 3, 1, 2)})
    within = pa.array([x[0].tolist(), [None, x[0, 1].tolist()]], lists)
    encoder = Encoder(columns={"x": None}).fit(pa.table({"x": columns["tensors"]}))
    with pytest.raises(TypeError, match='column "x": it is'):
        encoder({"x": within})


def test_names_of_axes_are_those_of_training_or_none():
    x = np.arange(6.0).reshape(1, 2, 3)
    kind = pa.fixed_shape_tensor(pa.float64(), [2, 3], dim_names=["h", "w"])
    column = kind.wrap_array(pa.array(arrow_dlpack.from_dlpack(x)).storage)
    encoder = Encoder(columns={"x": None}, framework="numpy").fit(pa.table({"x": column}))
    for rows in x, column:
        np.testing.assert_array_equal(encoder({"x": rows})["x"], x)
    other = pa.fixed_shape_tensor(pa.float64(), [2, 3], dim_names=["w", "h"])
    with pytest.raises(TypeError, match=r'"dim_names":\["w","h"\].*"dim_names":\["h","w"\]'):
        encoder({"x": other.wrap_array(column.storage)})


def test_booleans_in_bytes_and_columns_of_nulls_have_categories():
    bytes_ = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0, 5], pa.int8()))
    table = pa.table({"b": bytes_, "n": pa.nulls(3)})
    columns = {"b": Categories([True, False]), "n": Categories(["a"], nulls=-1)}
    options = {"columns": columns, "framework": "numpy"}
    (batch,) = Loader(table, batch_size=None, **options)
    encoder = Loader(table, **options).encoder()
    for made in encoder, Encoder.from_json(encoder.to_json()):
        same(made(table), batch)
        same(made([{"b": True, "n": None}, {"b": False, "n": None}, {"b": True, "n": None}]), batch)


def test_a_column_of_pandas_without_values_is_of_the_type_of_training():
    frame = pd.DataFrame({"fare": [1.5, 2.5], "port": ["A", "B"]})
    words = Categories(["A", "B"], unknown=-1, nulls=-2)
    encoder = Loader(frame, batch_size=2, columns={"port": words}, framework="numpy").encoder()
    rows = pd.DataFrame({"port": [np.nan, np.nan], "fare": [1.0, 2.0]})
    assert encoder(rows)["port"].tolist() == [-2, -2]
    for other in (pa.table({"port": [1.5, None]}), pa.table({"port": pa.array([], "float64")})):
        with pytest.raises(TypeError, match="was .* in training"):
            encoder(other)


def test_a_column_of_no_times_is_of_the_zone_of_training():
    when = pd.to_datetime(["2020-01-01", "2020-01-02"]).tz_localize("Europe/Paris")
    encoder = Loader(
        pd.DataFrame({"t": when}),
        columns={"t": Categories.scan(unknown=-1, nulls=-2)},
        framework="numpy",
    ).encoder()
    assert encoder(pd.DataFrame({"t": [pd.NaT, pd.NaT]}))["t"].tolist() == [-2, -2]
    with pytest.raises(TypeError, match="give them one first"):
        encoder(pd.DataFrame({"t": [pd.NaT, pd.Timestamp("2020-01-01")]}))


def test_times_of_a_request_have_a_zone_where_those_of_training_had_one():
    naive = pd.DataFrame({"t": pd.date_range("2024-03-31 01:30", periods=2, freq="h")})
    zoned = pd.DataFrame({"t": naive.t.dt.tz_localize("UTC").dt.tz_convert("Europe/Berlin")})
    encoders = [
        Encoder(columns={"t": None}, physical=True, framework="numpy").fit(frame)
        for frame in (naive, zoned)
    ]
    with pytest.raises(TypeError, match=r"no zone: .*in pandas by x\.dt\.tz_localize\(None\)"):
        encoders[0](zoned)
    hours = encoders[0]({"t": zoned.t.dt.tz_localize(None)})["t"] - encoders[0](naive)["t"]
    assert hours.tolist() == [7_200_000_000] * 2
    with pytest.raises(TypeError, match="give them one first"):
        encoders[1](naive)
    when = dt.datetime(2024, 3, 31, 1, 30)
    with pytest.raises(ValueError, match=r"it has a zone, which x\.replace\(tzinfo=None\) takes"):
        encoders[0]([{"t": when.replace(tzinfo=dt.UTC)}])
    with pytest.raises(
        ValueError, match=r"it has no zone, which x\.replace\(tzinfo=\.\.\.\) gives"
    ):
        encoders[1]([{"t": when}])
    same(encoders[1]([{"t": when.replace(tzinfo=dt.UTC)}]), encoders[0]([{"t": when}]))


@pytest.mark.parametrize(
    ("kind", "text", "way"),
    [
        (pa.timestamp("s"), "2024-01-02T03:04:05", "datetime.datetime.fromisoformat(x)"),
        (pa.timestamp("us", "UTC"), "2024-01-02T03:04:05Z", "datetime.datetime.fromisoformat(x)"),
        (pa.date32(), "2024-01-02", "datetime.date.fromisoformat(x)"),
        (pa.time64("us"), "03:04:05", "datetime.time.fromisoformat(x)"),
    ],
)
def test_a_text_for_a_time_is_refused_with_what_reads_it(kind, text, way):
    value = eval(way, {"datetime": dt, "x": text})
    table = pa.table({"t": pa.array([value], kind)})
    encoder = Encoder(columns={"t": None}, physical=True, framework="numpy").fit(table)
    with pytest.raises(TypeError, match=re.escape(f": {way} is one of ISO 8601")):
        encoder(json.loads(f'[{{"t": "{text}"}}]'))
    same(encoder([{"t": value}]), encoder(table))


@pytest.mark.parametrize(
    ("kind", "other", "way"),
    [
        (pa.timestamp("ns"), np.datetime64("2024-01-02T03:04"), "pandas.Timestamp(x) is one"),
        (
            pa.timestamp("s", "UTC"),
            np.datetime64("2024-01-02", "ns"),
            'pandas.Timestamp(x, tz="UTC")',
        ),
        (pa.timestamp("us"), dt.date(2024, 1, 2), "pandas.Timestamp(x) is one"),
        (pa.timestamp("us", "UTC"), dt.date(2024, 1, 2), 'pandas.Timestamp(x, tz="UTC")'),
        (pa.date32(), np.datetime64("2024-01-02"), "pandas.Timestamp(x).date() is its day"),
        (pa.date64(), dt.datetime(2024, 1, 2, 3), "x.date() is its day"),
        (pa.time32("s"), dt.datetime(2024, 1, 2, 3), "x.time() is its time of day"),
        (pa.duration("us"), np.timedelta64(5, "s"), "pandas.Timedelta(x) is one"),
        (pa.duration("ms"), 1.5, "datetime.timedelta(seconds=x) is one of seconds"),
        (
            pa.timestamp("us"),
            1_700_000_000,
            "datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=x) is one of Unix seconds",
        ),
        (
            pa.timestamp("us", "UTC"),
            1_700_000_000.5,
            "datetime.datetime.fromtimestamp(x, datetime.timezone.utc) is one of Unix seconds",
        ),
    ],
)
def test_another_kind_of_time_is_refused_with_what_makes_one_of_it(kind, other, way):
    value = eval(way.partition(" is ")[0], {"datetime": dt, "pandas": pd, "x": other})
    table = pa.table({"t": pa.array([value], kind)})
    encoder = Encoder(columns={"t": None}, physical=True, framework="numpy").fit(table)
    with pytest.raises(TypeError, match=re.escape(f", which training has: {way}")):
        encoder([{"t": other}])
    same(encoder([{"t": value}]), encoder(table))


@pytest.mark.parametrize("other", [True, np.timedelta64(1, "s"), dt.timedelta(1), [1]], ids=repr)
def test_what_makes_no_time_has_no_hint(other):
    table = pa.table({"t": pa.array([0], pa.timestamp("us"))})
    encoder = Encoder(columns={"t": None}, physical=True, framework="numpy").fit(table)
    with pytest.raises(TypeError, match="which training has$"):
        encoder([{"t": other}])


def test_a_time_that_its_unit_cannot_hold_is_out_of_range():
    table = pa.table({"t": pa.array([0], pa.timestamp("ns"))})
    encoder = Encoder(columns={"t": None}, physical=True, framework="numpy").fit(table)
    with pytest.raises(ValueError, match="row 1, .*which training has: it is out of range"):
        encoder([{"t": dt.datetime(2020, 1, 1)}, {"t": dt.datetime(1500, 1, 1)}])


def test_nulls_of_pandas_among_objects_are_nulls():
    when = [dt.datetime(2020, 1, 1), None]
    table = pa.table({"x": [1.5, 2.5], "port": ["A", "B"], "t": when})
    port = Categories(["A", "B"], nulls=-2)
    wishes = {"x": Cast("float32", nulls=30), "port": port, "t": Cast("int64", nulls=0)}
    loader = Loader(table, columns=wishes, framework="numpy", physical=True)
    encoder = loader.encoder()
    made = encoder([{"x": pd.NA, "port": pd.NA, "t": pd.NaT}])
    assert [made[name].tolist() for name in wishes] == [[30], [-2], [0]]
    with pytest.raises(TypeError, match=r"nan, of type float, .*: None is a null"):
        encoder([{"x": 1.5, "port": math.nan, "t": None}])


@pytest.mark.parametrize("null", [None, pd.NA, pd.NaT, np.ma.masked], ids=str)
def test_a_null_in_place_of_a_dict_is_null_in_its_fields(null):
    table = pa.table({"m": [{"s": 1}]})
    encoder = Encoder(columns={"m.s": Cast("int64", nulls=-1)}, framework="numpy").fit(table)
    for rows in [{"m": null}, {"m": {"s": 2}}], {"m": [null, {"s": 2}]}:
        assert encoder(rows)["m.s"].tolist() == [-1, 2]


def test_a_column_of_nulls_has_nulls_in_the_fields_of_any_struct():
    table = pa.table({"m": [{"s": {"t": 1}}]})
    encoder = Encoder(columns=["m.s.t"], nulls=-1, framework="numpy").fit(table)
    nulls = pa.table({"m": pa.nulls(2)})
    within = pa.table({"m": pa.StructArray.from_arrays([pa.nulls(2)], ["s"])})
    for rows in nulls, {"m": nulls["m"]}, pl.from_arrow(nulls), within, {"m": within["m"]}:
        assert encoder(rows)["m.s.t"].tolist() == [-1, -1]
    assert encoder(pd.DataFrame({"m": [None, None]}))["m.s.t"].tolist() == [-1, -1]


def test_none_is_what_stands_for_a_null_among_integers():
    encoder = Encoder(columns=["n"], nulls=-1, framework="numpy").fit(pa.table({"n": [1, None]}))
    with pytest.raises(ValueError, match='row 0, column "n": nan is no .*: None is a null'):
        encoder([{"n": float("nan")}])
    assert encoder([{"n": None}])["n"].tolist() == [-1]


def test_what_numpy_masks_is_null():
    table = pa.table({"x": [1.0, 2.0], "n": [1, 2], "l": [[1.0], [2.0]]})
    wishes = {"x": Cast("float32", nulls=-1), "n": Cast("int64", nulls=-1), "l": Pad(0, nulls=-1)}
    encoder = Loader(table, columns=wishes, framework="numpy").encoder()
    cells = np.ma.masked_array([5.0, 6.0], [False, True])
    for rows in (
        [{"x": cells[1], "n": cells[1], "l": [1.0, cells[1]]}],
        {"x": [np.ma.masked], "n": [np.ma.masked], "l": [np.ma.masked_array([1.0, 6.0], [0, 1])]},
    ):
        made = encoder(rows)
        assert [made["x"].tolist(), made["n"].tolist()] == [[-1], [-1]]
        assert made["l"].values.tolist() == [[1, -1]]
    with pytest.raises(TypeError, match="MaskedArray, is no value of Float64"):
        encoder({"x": [np.ma.masked_array(5.0, True)], "n": [1], "l": [[1.0]]})
    for wish in {"nulls": np.ma.masked}, {"pad": np.ma.masked}:
        with pytest.raises(TypeError, match="got masked"):
            to_tensor(pa.array([[1.0], None]), **wish)


def test_the_index_of_a_frame_is_read_as_in_training():
    index = pd.Index([5.0, 9.0, 7.0], name="fare")
    for frame, name in (
        (pd.DataFrame({"a": [1.5, 2.5, 3.5]}, index=index), "fare"),
        (pd.DataFrame({"a": [1.5, 2.5, 3.5]}, index=[5, 9, 7]), "__index_level_0__"),
    ):
        encoder = Encoder(columns=[name, "a"], framework="numpy").fit(frame)
        for rows in frame, pa.Table.from_pandas(frame):
            assert encoder(rows)[name].tolist() == [5, 9, 7]
        assert encoder(frame.iloc[[1]])[name].tolist() == [9]


@pytest.mark.parametrize("own", [pa.binary(3), pa.binary_view(), pa.binary(), pa.large_binary()])
def test_binaries_of_any_layout_are_those_of_training(own):
    for trained in pa.binary(3), pa.binary_view(), pa.binary(), pa.large_binary():
        table = pa.table({"x": pa.array([b"abc"], trained)})
        encoder = Loader(table, columns={"x": AsArrow()}).encoder()
        made = pa.array(encoder(pa.table({"x": pa.array([b"abc", None], own)}))["x"])
        assert made.type == trained
        assert made.to_pylist() == [b"abc", None]
    encoder = Loader(pa.table({"x": pa.array([b"abc"], pa.binary(3))}), columns={"x": AsArrow()})
    with pytest.raises(ValueError, match="in row 0 does not fit"):
        encoder.encoder()(pa.table({"x": pa.array([b"abcd"], pa.binary_view())}))


@pytest.mark.filterwarnings("ignore:The DataFrame has non-str index name")
@pytest.mark.parametrize("names", [[0], [0, 1]], ids=str)
def test_an_index_of_the_name_of_a_column_is_no_feature_of_a_request_either(names):
    """pandas' 0 of a level and 0 of a column are both "0"."""
    index = pd.MultiIndex.from_arrays([[5, 9]] * len(names), names=names)
    frame = pd.DataFrame({0: [1.0, 2.0], 1: [3, 4]}, index=index)
    encoder = Encoder(framework="numpy").fit(frame)
    for rows in frame, pa.table(frame), frame.reset_index(drop=True):
        made = encoder(rows)
        assert {name: values.tolist() for name, values in made.items()} == {
            "0": [1.0, 2.0],
            "1": [3, 4],
        }
    twice = pa.table([[1.5], [2.5], [3]], names=["0", "0", "1"])
    with pytest.raises(KeyError, match='several columns are called \\"0\\"'):
        encoder(twice)


@pytest.mark.parametrize("kind", [pl.Int128, pl.UInt128], ids=str)
def test_integers_of_polars_that_are_decimals_in_training_are_taken(kind):
    frame = pl.DataFrame({"i": pl.Series([1, 2**70], dtype=kind), "n": [1, 2]})
    wishes = {"i": Cast("float64"), "n": None}
    encoder = Encoder(columns=wishes, label="n", framework="numpy").fit(frame)
    other = pl.Series("other", [object()] * 2, dtype=pl.Object)
    beyond = pl.Series("beyond", [2**127 - 1] * 2, dtype=pl.Int128)
    for rows in frame, frame.drop("n"), frame.with_columns(other), frame.with_columns(beyond):
        assert encoder(rows)["i"].tolist() == [1.0, 2.0**70]
    for narrow in frame.head(1).cast(pl.Int64), {"i": np.array([1], "uint64")}, {"i": [1]}:
        assert encoder(narrow)["i"].tolist() == [1.0]
    with pytest.raises(TypeError, match='column "i" has integers of 128 bits that are no decimal'):
        encoder(beyond.to_frame("i"))


def test_an_integer_is_taken_for_a_decimal_that_holds_it():
    cents = pa.table({"x": pa.array([Decimal("1.50")], pa.decimal64(5, 2))})
    encoder = Encoder(columns={"x": Cast("float64")}, framework="numpy").fit(cents)
    assert encoder(pa.table({"x": [7, 999]}))["x"].tolist() == [7.0, 999.0]
    with pytest.raises(ValueError, match='column "x": value 1000 in row 1 does not fit Decimal64'):
        encoder(pa.table({"x": [7, 1000]}))


def test_a_loop_hands_out_no_codes_where_training_had_values():
    table = pa.table({"x": [7, 9], "y": [0, 1]})
    encoder = Encoder(columns=["x"], label="y", framework="numpy", physical=True).fit(table)
    more = pd.DataFrame({"x": [7, 9], "y": pd.Categorical([1, 0], categories=[1, 0])})
    ((_, label),) = Loader(more, encoder=encoder)
    assert label.tolist() == encoder(more, label=True)[1].tolist() == [1, 0]


def test_numbers_are_no_booleans_of_bytes():
    flags = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0], pa.int8()))
    encoder = Encoder(columns={"b": Cast("float32")}, framework="numpy").fit(pa.table({"b": flags}))
    numbers = np.array([5, -3], "int8")
    for column in numbers, pa.array(numbers), pl.Series(numbers), pd.Series(numbers):
        with pytest.raises(TypeError, match='column "b"'):
            encoder({"b": column})
    for column in flags, pa.array([True, False]), numbers > 0:
        assert encoder({"b": column})["b"].tolist() == [1, 0]


def test_what_a_column_refuses_names_it():
    encoder = Loader(pa.table({"x": [1.0]}), framework="numpy").encoder()
    for column in np.ma.masked_array([1.0], [True]), torch.ones(1, requires_grad=True):
        with pytest.raises(BufferError, match='column "x": '):
            encoder({"x": column})
    frame = pd.DataFrame({"x": [1.0]})
    with pytest.raises(TypeError, match="got DataFrame: pass the frame itself"):
        encoder([frame])
    assert encoder(frame)["x"].tolist() == [1.0]


def test_views_under_nulls_are_not_looked_at():
    """polars leaves what they were in the fields of null structs."""
    frame = pl.DataFrame({"m": [{"t": "a text of more than 12 bytes"}, {"t": "b"}]})
    frame = frame.with_columns(m=pl.when(pl.Series([False, True])).then("m"))
    encoder = Loader(
        frame, columns={"m.t": Categories(["b"], unknown=5, nulls=-1)}, framework="numpy"
    ).encoder()
    assert encoder(frame)["m.t"].tolist() == [-1, 0]
    assert (
        pa.array(arrow_dlpack.Array(frame["m"].struct.field("t")), pa.string()).to_pylist()[1]
        == "b"
    )


@pytest.mark.parametrize(
    ("value", "error"),
    [("abc", TypeError), (5, TypeError), (b"abcd", ValueError)],
    ids=str,
)
def test_a_binary_of_another_kind_or_length_is_refused(value, error):
    with pytest.raises(error, match='row 0, column "x": '):
        one(pa.binary(3), value, wish=AsArrow())


def test_a_path_that_leads_nowhere_is_named():
    table = pa.table({"m": [{"s": 1, "t": 2}]})
    encoder = Loader(table, columns={"m.s": None}, framework="numpy").encoder()
    for rows in [{"m": {"t": 1}}], {"m": [{"t": 1}]}:
        with pytest.raises(KeyError, match='row 0 has no "m.s"'):
            encoder(rows)
    told = {'.* has no "s"': pa.array([{"t": 1}]), '"m" is no struct, but Int64': pa.array([1])}
    for words, column in told.items():
        with pytest.raises(KeyError, match=f'no column "m.s": {words}'):
            encoder({"m": column})


def test_what_is_wrong_within_structs_is_named():
    table = pa.table({"m": [{"s": 1, "t": [2]}]})
    encoder = Loader(table, columns={"m": AsArrow()}).encoder()
    with pytest.raises(KeyError, match="row 0, column .*m.*: there is no .*t"):
        encoder([{"m": {"s": 1}}])
    with pytest.raises(TypeError, match='row 0, column "m": 5, of type int'):
        encoder([{"m": 5}])
    with pytest.raises(ValueError, match='row 0, column "m": key "t": item 0: 2.5'):
        encoder([{"m": {"s": 1, "t": [2.5]}}])


def test_columns_of_a_dict_are_arrow_data_tensors_or_lists():
    encoder = Loader(
        pa.table({"x": [1.5], "text": ["a"]}), columns={"x": None, "text": Categories(["a", "b"])}
    ).encoder()
    for x in [1.5, 2], np.array([1.5, 2]), torch.tensor([1.5, 2.0]).double(), pa.array([1.5, 2]):
        for text in ["b", "a"], np.array(["b", "a"]), pd.Series(["b", "a"]), pl.Series(["b", "a"]):
            made = encoder({"x": x, "text": text})
            assert np.asarray(made["x"]).tolist() == [1.5, 2.0]
            assert np.asarray(made["text"]).tolist() == [1, 0]
    with pytest.raises(ValueError, match='column "text" has 1 rows, and column "x" has 2'):
        encoder({"x": [1.5, 2], "text": ["a"]})
    with pytest.raises(TypeError, match=r"one row is \[row\], a list of one dict"):
        encoder({"x": 1.5, "text": "a"})


@pytest.mark.parametrize(
    "column",
    [
        pd.Index([1.0, 2.0]),
        pd.RangeIndex(1, 3),
        pd.array([1, 2], "Int64"),
        pd.Categorical([1, 2]),
        array.array("d", [1, 2]),
        memoryview(array.array("q", [1, 2])),
        np.array([1, 2], object),
    ],
    ids=lambda column: type(column).__name__,
)
def test_a_column_of_what_lists_its_values_is_that_list(column):
    table = pa.table({"x": [0.5, 1.5]})
    encoder = Loader(table, columns=["x"], framework="numpy").encoder()
    assert encoder({"x": column})["x"].tolist() == [1.0, 2.0]
    with pytest.raises(TypeError, match="DLPack only supports"):
        encoder({"x": np.array(1, object)})


@pytest.mark.parametrize("rows", [5, "x", None, [1], [[1]], pa.array([1]), object()], ids=type)
def test_what_are_no_rows_is_refused(rows):
    encoder = Loader(pa.table({"x": [1]})).encoder()
    with pytest.raises(TypeError):
        encoder(rows)


def test_rows_of_an_iterator_and_of_null_say_what_rows_are():
    encoder = Loader(pa.table({"x": [1]}), framework="numpy").encoder()
    with pytest.raises(TypeError, match="rows must be a table, .*, got None$"):
        encoder(json.loads("null"))
    rows = [{"x": 2}]
    for once in iter(rows), (row for row in rows):
        with pytest.raises(
            TypeError, match=r"rows must be .*: list\(x\) is one, if these are dicts"
        ):
            encoder(once)
    assert encoder(list(iter(rows)))["x"].tolist() == [2]


def test_what_is_read_or_named_first_says_so():
    frame = pl.DataFrame({"a": [1.0, 2.0], "b": [3, 4]})
    encoder = Loader(frame, framework="numpy").encoder()
    text = json.dumps([{"a": 1.0, "b": 3}])
    for request in text, text.encode():
        with pytest.raises(TypeError, match=r"a list of dicts, got .*: json.loads\(x\) reads JSON"):
            encoder(request)
    assert encoder(json.loads(text))["a"].tolist() == [1.0]
    with pytest.raises(TypeError, match=r"must be a dict, got '.*: json.loads\(x\) is one"):
        encoder([text])
    for rows in frame.row(0), [frame.row(0)]:
        with pytest.raises(TypeError, match=r"by their names, as polars' x.row\(i, named=True\)"):
            encoder(rows)
    assert encoder([frame.row(1, named=True)])["b"].tolist() == [4]
    with pytest.raises(TypeError, match="a list of dicts, got 3"):
        encoder(3)


def test_a_row_of_a_frame_is_a_column_and_says_what_is_one_row():
    frame = pd.DataFrame({"a": [1.0, 2.0], "word": ["b", "c"]})
    wishes = {"a": None, "word": Categories.scan()}
    encoder = Loader(frame, columns=wishes, framework="numpy").encoder()
    for df, row in (frame, frame.iloc[1]), (frame[["a"]], frame["a"]):
        with pytest.raises(TypeError, match="list of dicts, got Series: df.iloc") as refused:
            encoder(row)
        (way,) = re.findall(r"Series: (.*) is a frame of one row", str(refused.value))
        if df is frame:
            made = encoder(eval(way.replace("3", "1"), {"df": df}))
            assert (made["a"].tolist(), made["word"].tolist()) == ([2.0], [1])
    with pytest.raises(TypeError, match=r"must be a dict, got Series: x\.to_dict\(\) is one"):
        encoder([frame.iloc[1]])
    assert encoder([frame.iloc[1].to_dict()])["a"].tolist() == [2.0]
    (named,) = frame.iloc[[1]].itertuples()
    for row in named, Row(2.0, "b"), MappingProxyType({"a": 2.0, "word": "b"}):
        with pytest.raises(TypeError, match="must be a dict, got .* is one") as refused:
            encoder([row])
        (way,) = re.findall(r".*: (.*) is one", str(refused.value))
        made = encoder([eval(way, {"x": row, "dataclasses": dataclasses})])
        assert made["a"].tolist() == [2.0]


@dataclasses.dataclass
class Row:
    a: float
    word: str


class Claims(Decimal):
    """A decimal that tells other digits than it has, or how many it likes."""

    def as_tuple(self):
        return 0, range(2**62), 0


def test_the_digits_of_a_decimal_are_its_own():
    table = pa.table({"x": pa.array([Decimal("1.5")], pa.decimal128(10, 2))})
    encoder = Loader(table, columns={"x": AsArrow()}).encoder()
    for request in [{"x": Claims("2.5")}], {"x": [Claims("2.5")]}:
        assert pa.array(encoder(request)["x"]).to_pylist() == [Decimal("2.50")]


@pytest.mark.parametrize("layout", ["dicts", "columns", "table", "large", "pandas", "polars"])
@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"x": None}, 'row 2, column "x": Float64 array has 1 null in 4 values'),
        ({"word": None}, 'row 2, column "word": Int32 array has 1 null in 4 values'),
        ({"word": "c"}, 'row 2, column "word": "c", which is not among the 2 categories'),
        ({"list": None}, 'row 2, column "list": .* array has 1 null in 4 values'),
        ({"list": [1, None]}, 'row 2, column "list": the rows hold 1 null in 5 values'),
        ({"x": None, "word": None}, '(?s)row 2, column "x": .*row 2, column "word": '),
    ],
    ids=str,
)
def test_nulls_and_unknown_words_of_a_request_have_their_rows(layout, wrong, words):
    rows = [{"x": 1.5, "word": "b", "list": [1]}] * 4
    wishes = {"x": None, "word": Categories(["a", "b"]), "list": Pad(0)}
    encoder = Loader(pa.Table.from_pylist(rows), columns=wishes).encoder()
    rows[2] = rows[2] | wrong
    table = pa.Table.from_pylist(rows)
    request = {
        "dicts": rows,
        "columns": table.to_pydict(),
        "table": table,
        "large": table.set_column(2, "list", table["list"].cast(pa.large_list(pa.int64()))),
        "pandas": table.to_pandas(),
        "polars": pl.from_arrow(table),
    }[layout]
    with pytest.raises((BufferError, ValueError), match=f"^{words}" if len(wrong) == 1 else words):
        encoder(request)


@pytest.mark.parametrize(
    "make", [pa.list_, pa.large_list, pa.list_view, pa.large_list_view, lambda of: pa.list_(of, 2)]
)
def test_a_null_in_lists_of_any_layout_has_its_row(make):
    kind = make(pa.int64())
    table = pa.table({"list": pa.array([[1, 1], [2, 3]], kind)})
    encoder = Encoder(columns={"list": None}).fit(table)
    with pytest.raises(BufferError, match='^row 1, column "list": .* 1 null'):
        encoder(pa.table({"list": pa.array([[1, 1], [2, None]], kind)}))


def test_a_number_of_a_request_that_does_not_fit_has_its_row_once():
    encoder = Encoder(columns={"x": Cast("int8")}).fit(pa.table({"x": [1]}))
    with pytest.raises(ValueError, match='^column "x": value 300 in row 1 does not fit int8'):
        encoder([{"x": 5}, {"x": 300}])


def test_a_tensor_or_an_array_that_is_no_column_names_what_is():
    encoder = Encoder(columns={"x": None}).fit(pa.table({"x": [1.0]}))
    for matrix in np.ones((2, 1)), torch.ones((2, 1)), arrow_dlpack.from_dlpack(np.ones((2, 1))):
        with pytest.raises(TypeError, match=r"got .*: record_batch\(x, names\) makes columns"):
            encoder(matrix)
        assert encoder(arrow_dlpack.record_batch(matrix, ["x"]))["x"].tolist() == [1.0, 1.0]
    for values in np.array([1], "M8[s]"), np.ones(1, ">f4"), torch.ones(1, requires_grad=True):
        with pytest.raises(TypeError, match=r'column "x": .*(x\.|tensor\.)'):
            encoder({"x": values})


def test_rows_of_different_lengths_are_a_column_as_a_batch_has_them():
    """A named tuple is no list of two rows: its values and its offsets."""
    table = pa.table({"x": pa.array([[7, 8, 9], [4]], pa.list_(pa.int32()))})
    padded = Encoder(columns={"x": Pad(0)}, framework="numpy").fit(table)
    plain = Encoder(columns={"x": None}, framework="numpy").fit(table)
    for column in arrow_dlpack.ragged(table["x"]), to_tensor(table["x"], pad=0), plain(table)["x"]:
        assert padded({"x": column})["x"].values.tolist() == [[7, 8, 9], [4, 0, 0]]
        assert plain({"x": column})["x"].offsets.tolist() == [0, 3, 4]


def test_a_value_that_lacks_fields_has_its_row_and_column():
    encoder = Encoder(columns={"m.s": None}).fit(pa.table({"m": [{"s": 1}]}))
    with pytest.raises(TypeError, match=r'row 1: "m" must be a dict, got \[3\]: column "m\.s" is'):
        encoder([{"m": {"s": 1}}, {"m": [3]}])
    with pytest.raises(TypeError, match=r'row 1, column "m\.s": each row must be a dict, got 5'):
        encoder({"m": [{"s": 1}, 5]})


@pytest.mark.parametrize(
    ("row", "of"),
    [
        ({"x": None}, "nulls= of the Loader"),
        ({"word": None}, "nulls= of Cast or Categories"),
        ({"list": [None]}, "nulls= of the Loader"),
    ],
)
def test_a_null_of_a_request_is_filled_as_training_says(row, of):
    rows = [{"x": 1.5, "word": "b", "list": [1]}]
    wishes = {"x": None, "word": Categories(["a", "b"]), "list": Pad(0, nulls=None)}
    with pytest.raises(BufferError, match=f"without them, or say in training .*, by {of}"):
        Loader(pa.Table.from_pylist(rows), columns=wishes).encoder()([rows[0] | row])
    filled = {"x": None, "word": Categories(["a", "b"], nulls=7), "list": Pad(0, nulls=7)}
    made = Loader(pa.Table.from_pylist(rows), columns=filled, nulls=7).encoder()([rows[0] | row])
    values = made["list"].values if "list" in row else made[next(iter(row))]
    assert values.tolist() in ([7], [[7]])


def test_no_rows_are_a_batch_of_none():
    encoder = Loader(pa.table({"x": [1]})).encoder()
    for rows in [], {"x": []}, pa.table({"x": pa.array([], "int64")}):
        made = encoder(rows)["x"]
        assert (made.dtype, made.shape) == ("int64", (0,))


def test_a_dictionary_without_categories_is_refused():
    table = pa.table({"x": pa.array(["a", "b"]).dictionary_encode()})
    loader = Loader(table, physical=True)
    with pytest.raises(ValueError, match='column "x": codes of a dictionary.*Categories'):
        loader.encoder()


def test_an_encoder_without_types_says_how_it_gets_them():
    encoder = Encoder(columns={"c": Categories.scan()}, label="y")
    with pytest.raises(ValueError, match=r"fit\(source\)"):
        encoder([{"c": "a"}])
    assert "Categories.scan()" in repr(encoder)
    assert pickle.loads(pickle.dumps(encoder)).fit(
        pa.table({"c": ["b", "a"], "y": [0, 1]})
    ).categories == {"c": ("a", "b")}


def test_numbers_of_other_libraries_are_written_as_those_of_python():
    columns = {
        "x": Cast("float32", nulls=np.float32(0.5)),
        "l": Pad(np.int64(7), max_length=np.int8(3)),
        "m": Pad(torch.tensor(7)),
    }
    flags = {"writable": np.True_, "physical": np.False_, "copy": np.True_}
    table = pa.table({"x": [1.5], "l": [[1]], "m": [[1]]})
    encoder = Encoder(columns=columns, nulls=np.int32(3), **flags).fit(table)
    plain = {
        "x": Cast("float32", nulls=0.5),
        "l": Pad(7, max_length=3),
        "m": Pad(7),
    }
    flags = {"writable": True, "physical": False, "copy": True}
    assert encoder == Encoder(columns=plain, nulls=3, **flags).fit(table)
    assert pickle.loads(pickle.dumps(encoder)) == encoder


def test_flags_are_true_or_false():
    with pytest.raises(TypeError, match="writable must be True or False, got 'x'"):
        Encoder(writable="x")
    encoder = Loader(pa.table({"x": [1], "y": [0]}), label="y").encoder()
    with pytest.raises(TypeError, match="label must be True or False, got 'y'"):
        encoder([{"x": 1}], label="y")


def test_label_is_for_an_encoder_that_has_one():
    encoder = Loader(pa.table({"x": [1]})).encoder()
    with pytest.raises(TypeError, match="has no label"):
        encoder([{"x": 1}], label=True)


SOURCES = {
    "list": lambda table: [table.slice(0, 2), table.slice(2)],
    "mix": lambda table: Mix([(table.slice(0, 2), 1), (table.slice(2), 1)]),
    "function": lambda table: lambda index, count: table,
    "reader": lambda table: lambda index, count: table.to_reader(),
    "frame": lambda table: table.to_pandas(),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_every_kind_of_source_has_an_encoder(kind):
    table = pa.table({"x": [1.5, 2.5, 3.5], "c": ["b", "a", "c"], "y": [0, 1, 2]})
    columns = {"x": None, "c": Categories.scan()}
    encoder = Loader(SOURCES[kind](table), columns=columns, label="y", batch_size=2).encoder()
    assert encoder.categories == {"c": ("a", "b", "c")}
    assert np.asarray(encoder([{"x": 1, "c": "c"}])["c"]).tolist() == [2]


def tables(nulls=0):
    for at in range(4):
        x = pa.array([None if at < nulls else at], pa.null() if at < nulls else None)
        yield pa.table({"x": x, "c": ["a"]})


@pytest.mark.parametrize(
    "source",
    [
        tables,
        lambda: tables(nulls=2),
        lambda: (table.to_reader() for table in tables()),
        lambda: pd.read_csv(io.StringIO("x,c\n0,a\n1,a\n2,a\n3,a"), chunksize=1),
        lambda: Mix([(tables(), 1)]),
        lambda: pa.concat_tables(tables()).to_reader(),
    ],
    ids=["tables", "nulls", "readers", "csv", "mix", "reader"],
)
def test_an_encoder_takes_no_rows_from_an_epoch(source):
    """Not of a source that is read once either, which has to be looked at for its types."""
    columns = {"x": Cast("float64", nulls=-1), "c": Categories(["a"])}
    loader = Loader(source(), columns=columns, framework="numpy")
    for _ in range(2):
        assert loader.encoder()([{"x": 5, "c": "a"}])["x"].tolist() == [5]
    rows = [x for batch in loader for x in batch["x"].tolist()]
    assert [abs(x) for x in rows] in ([0, 1, 2, 3], [1, 1, 2, 3])


def test_a_loader_and_its_encoder_have_one_rule_of_a_wish():
    """Both fail if it is taken away."""
    table, columns = pa.table({"x": [[1], [2, 3]]}), {"x": Pad(0)}
    with mock.patch.object(Pad, "_form", return_value=("no form",)):
        with pytest.raises(TypeError, match="a form must be"):
            next(iter(Loader(table, columns=columns, batch_size=None)))
        with pytest.raises(TypeError, match="a form must be"):
            Encoder(columns=columns).fit(table)


WORDS = {
    "nan": ([math.nan, -0.0, 1.5], pa.float64()),
    "single": ([0.1, 2.5], pa.float32()),
    "bytes": ([b"\x00\xff", b""], pa.binary()),
    "width": ([b"ab", b"c"], pa.binary(2)),
    "days": ([dt.date(2020, 1, 2), dt.date(1, 1, 1)], pa.date32()),
    "times": ([NOON, dt.datetime(1969, 12, 31)], pa.timestamp("ms")),
    "zoned": ([NOON.replace(tzinfo=dt.UTC)], pa.timestamp("us", "Europe/Berlin")),
    "ns": ([pd.Timestamp("2020-01-01 00:00:00.000000001")], pa.timestamp("ns")),
    "clock": ([dt.time(1, 2, 3, 4)], pa.time64("us")),
    "spans": ([dt.timedelta(days=-1, microseconds=5)], pa.duration("us")),
    "decimals": ([Decimal("1.50"), Decimal("-0.25")], pa.decimal128(38, 2)),
    "few bits": ([Decimal("1.5"), Decimal(2)], pa.decimal32(5, 1)),
    "large": ([2**63, 2**64 - 1], pa.uint64()),
    "uuid": ([UUID(int=5), UUID(int=2**127)], pa.uuid()),
    "bools": ([True, False], pa.bool_()),
    "texts": (["", "é\u2028", '"\\'], pa.string_view()),
    "codes": (["b", "a"], pa.dictionary(pa.int8(), pa.string())),
}


@pytest.mark.parametrize("kind", WORDS)
def test_words_of_every_type_come_back_equal(kind):
    words, of = WORDS[kind]
    if kind == "codes":
        column = pa.array(words).dictionary_encode().cast(of)
    elif kind == "uuid":
        column = pa.array([word.bytes for word in words], of)
    else:
        column = pa.array([word for word in words if kind != "width" or len(word) == 2], of)
    encoder = Encoder(columns={"x": Categories(words, unknown=-1)}, framework="numpy")
    encoder.fit(pa.table({"x": column}))
    text = encoder.to_json()
    json.loads(text, parse_constant=pytest.fail)
    back = Encoder.from_json(text)
    assert back == encoder
    assert back.to_json() == text
    own, its = encoder.categories["x"], back.categories["x"]
    assert [repr(word) for word in own if word != word] == [  # noqa: PLR0124
        repr(word)
        for word in its
        if word != word  # noqa: PLR0124
    ]
    assert [word for word in own if word == word] == [word for word in its if word == word]  # noqa: PLR0124
    expected = list(range(len(column)))
    for rows in pa.table({"x": column}), [{"x": word} for word in words[: len(column)]]:
        assert encoder(rows)["x"].tolist() == expected
        assert back(rows)["x"].tolist() == expected


def test_an_hour_that_a_zone_has_twice_is_two_words():
    """Python's times of that zone are equal there, and those of another zone equal neither."""
    hours = [dt.datetime(2020, 10, 25, hour, 30, tzinfo=dt.UTC) for hour in (0, 1)]
    table = pa.table({"x": pa.array(hours, pa.timestamp("us", "Europe/Berlin"))})
    columns = {"x": Categories.scan(unknown=-1)}
    encoder = Loader(table, columns=columns, framework="numpy").encoder()
    back = Encoder.from_json(encoder.to_json())
    assert back.categories == encoder.categories == {"x": tuple(hours)}
    assert repr(back) == repr(encoder)
    assert encoder(table)["x"].tolist() == back(table.to_pylist())["x"].tolist() == [0, 1]
    for words in hours, table["x"].to_pylist(), encoder.categories["x"]:
        (batch,) = Loader(table, columns={"x": Categories(words)}, framework="numpy")
        assert batch["x"].tolist() == [0, 1]
    (batch,) = Loader(table, encoder=back)
    assert batch["x"].tolist() == [0, 1]


def whole():
    return json.loads(
        Loader(TABLE, columns={"text": Categories(["a"]), "long": Cast("f4")}).encoder().to_json()
    )


def changed(**members):
    return json.dumps(whole() | members)


def of_words(words):
    """A column of these words as a text has them."""
    options = {"words": words, "unknown": None, "nulls": None, "dtype": "int32"}
    return {"name": "text", "becomes": "Categories", "with": options}


def of_runs():
    """Words of a column that has none."""
    empty = pa.table({"text": pa.array([], pa.run_end_encoded(pa.int32(), pa.string()))})
    runs = Loader(empty, columns={"text": AsArrow()}).encoder()
    return changed(columns=[of_words(["a"])], schema=json.loads(runs.to_json())["schema"])


def nested(levels):
    """A list within lists."""
    return reduce(lambda inner, _: [inner], range(levels), [])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no Encoder in JSON"),
        ("{", "no Encoder in JSON"),
        ("[]", "no Encoder"),
        ("{}", "no Encoder"),
        ("NaN", "NaN is no JSON"),
        ('{"a": 1, "a": 2}', "a member twice"),
        ("[" * 100_000, "nested too deep|no Encoder"),
        (b"\xff", "no Encoder"),
        (changed(**{"arrow_dlpack.Encoder": 2}), "version 2"),
        (changed(**{"arrow_dlpack.Encoder": True}), "version True"),
        (changed(more=1), "other members"),
        (changed(columns={}), "lists of columns"),
        (changed(columns=[5]), "has a name"),
        (changed(columns=[{"name": "x"}]), 'column[s]? "x"'),
        (changed(columns=[{"name": "long"}] * 2), '"long" is there twice'),
        (changed(columns=[], labels=[{"name": "long"}] * 2), '"long" is there twice'),
        (changed(columns=[of_words([5, 5])]), 'column "text": words must differ'),
        (changed(columns=[of_words([{"uuid": "x"}])]), 'column "text": badly formed'),
        (changed(columns=[of_words([{"time": None}])]), 'column "text": fromisoformat'),
        (changed(columns=[of_words([{"date": "2020-01-32"}])]), 'column "text": day'),
        # Until CPython 3.11 the parser of JSON counts its levels as calls, which may be 1000.
        (
            changed(columns=[of_words(nested(600))]),
            "nested too deep" if sys.version_info < (3, 12) else "single values",
        ),
        (changed(columns=[{"name": "text", "becomes": "Cast"}]), "other members"),
        (changed(columns=[{"name": "text", "becomes": "Eval", "with": {}}]), "unknown"),
        (changed(columns=[{"name": "text", "becomes": "Pad", "with": {}}]), "other members"),
        (changed(columns=[{"name": "text", "becomes": "Cast", "with": 5}]), "other members"),
        (changed(nulls={"float": "1"}), "no value"),
        (changed(dtype="float33"), "dtype"),
        (changed(format="list"), "format must be"),
        (changed(framework="tf"), "framework must be"),
        (changed(framework=5), "framework must be"),
        (changed(copy="yes"), "copy"),
        (changed(schema=5), "no members"),
        (changed(schema={}), "no members"),
        (changed(schema={"name": "", "format": "i", "flags": 0}), "one of a table"),
        (
            changed(columns=[], schema={"name": "", "format": "i", "flags": 0}),
            "one of a table",
        ),
        (of_runs(), "become no RunEndEncoded"),
        (changed(schema={"name": "", "format": "+s\0", "flags": 0}), "no members"),
        (changed(schema={"name": "", "format": "zz", "flags": 0}), "zz"),
        (changed(schema=whole()["schema"] | {"children": [5]}), "no members"),
        (changed(schema=whole()["schema"] | {"release": 5}), "no member"),
    ],
    ids=lambda value: repr(value)[:60],
)
def test_a_text_that_is_no_encoder_is_refused(text, words):
    with pytest.raises((TypeError, ValueError, KeyError), match=words):
        Encoder.from_json(text)


def test_of_each_column_of_words_its_own_type_is_read_alone():
    """A text may have thousands of them, and reading the types of all for each would not end."""
    table = pa.table({f"c{at}": ["a"] for at in range(3)})
    encoder = Encoder(columns=dict.fromkeys(table.column_names, Categories(["a"]))).fit(table)
    text, core = encoder.to_json(), arrow_dlpack._core
    with mock.patch.object(core, "_words", wraps=core._words) as words:
        assert Encoder.from_json(text) == encoder
    read = [core._members(call.args[1])["children"] for call in words.call_args_list]
    assert [[column["name"] for column in columns] for columns in read] == [["c0"], ["c1"], ["c2"]]


def test_a_schema_that_is_nested_without_end_is_refused():
    level = '{"name": "x", "format": "+l", "flags": 2, "children": ['
    text = changed(schema=0, columns=[{"name": "x"}])
    for levels in 100, 900, 100_000:
        schema = '{"name": "", "format": "+s", "flags": 0, "children": [' + level * levels
        schema += '{"name": "x", "format": "i", "flags": 2}' + "]}" * (levels + 1)
        with pytest.raises(ValueError, match="too deep"):
            Encoder.from_json(text.replace('"schema": 0', f'"schema": {schema}'))


@settings(max_examples=300)
@given(data=st.data())
def test_a_text_with_other_values_is_an_encoder_or_refused(data):
    """Whatever stands where in it."""
    text = whole()
    places = []

    def walk(value, path):
        places.append(path)
        if isinstance(value, (dict, list)):
            for key, own in value.items() if isinstance(value, dict) else enumerate(value):
                walk(own, [*path, key])

    walk(text, [])
    path = data.draw(st.sampled_from(places))
    value = data.draw(
        st.sampled_from(
            [None, 5, -1, 2**70, 1.5, "x", "", "+s", "+w:9", "d:99,1", [], {}, [None], {"a": 1}]
        )
    )
    if not path:
        text = value
    else:
        within = text
        for key in path[:-1]:
            within = within[key]
        within[path[-1]] = value
    try:
        made = Encoder.from_json(json.dumps(text))
    except (BufferError, KeyError, TypeError, ValueError):
        return
    assert Encoder.from_json(made.to_json()) == made


def negated(tensor):
    return -np.from_dlpack(tensor)


def test_a_function_as_framework_is_named_and_given_again():
    encoder = Loader(pa.table({"x": [1]}), framework=negated).encoder()
    assert encoder([{"x": 1}])["x"].tolist() == [-1]
    with pytest.raises(TypeError, match="the function negated"):
        encoder.to_json()
    text = encoder.to_json(framework=None)
    assert Encoder.from_json(text, framework=negated) == encoder
    assert Encoder.from_json(text) != encoder
    assert pickle.loads(pickle.dumps(encoder)) == encoder
    assert isinstance(Encoder.from_json(text, framework="torch")([{"x": 1}])["x"], torch.Tensor)


def test_what_a_new_training_changed_is_told_in_lines():
    one = Loader(
        pa.table({"x": [1.5], "c": ["a"]}), columns={"x": None, "c": Categories(["a", "b"])}
    ).encoder()
    other = Loader(
        pa.table({"x": [1], "c": ["a"]}), columns={"x": None, "c": Categories(["a", "c"])}
    ).encoder()
    assert one.diff(one) == []
    told = "\n".join(one.diff(other))
    assert "-  x: double" in told
    assert "+  x: int64" in told
    assert "- \"c\" has the word 'b'" in told
    assert "+ \"c\" has the word 'c'" in told
    assert one != other
    assert one != 5


def of_type(kind, **options):
    return pa.schema([pa.field("x", kind, **options)])


MANY = {f"c{at}": pa.float64() for at in range(50)}
LONG = pa.struct([("name" * 30, pa.int64()), ("y", pa.int64())])
OTHER = pa.struct([("name" * 30, pa.int64()), ("y", pa.float64())])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pa.schema(MANY), pa.schema(MANY | {"c49": pa.int64()})),
        (pa.schema({"x" * 99 + "1": pa.int64()}), pa.schema({"x" * 99 + "2": pa.int64()})),
        (of_type(LONG), of_type(OTHER)),
        (of_type(pa.int64()), of_type(pa.int64(), nullable=False)),
        (of_type(pa.int64()), of_type(pa.int64(), metadata={"ARROW:extension:name": "odd"})),
    ],
    ids=["columns", "names", "types", "nulls", "metadata"],
)
def test_a_diff_of_encoders_that_differ_is_not_empty(one, other):
    encoders = [
        Encoder(columns=dict.fromkeys(schema.names, AsArrow())).fit(schema.empty_table())
        for schema in (one, other)
    ]
    assert encoders[0] != encoders[1]
    told = encoders[0].diff(encoders[1])
    assert [line[0] for line in told] == ["-", "+"]
    assert told[0][1:] != told[1][1:]


def test_a_diff_of_equal_encoders_is_empty_however_they_were_told():
    """Their reprs may differ: a dtype has many forms, and so has a time."""
    times = pa.array([pd.Timestamp("2020-01-01"), NOON], pa.timestamp("ns"))
    zoned = pa.array([NOON], pa.timestamp("us", "Europe/Berlin"))
    table = pa.table({"x": [1.5, 2.5], "t": times, "z": pa.concat_arrays([zoned, zoned])})
    words = {"t": Categories.scan(), "z": Categories.scan()}
    one = Encoder(columns={"x": Cast(np.dtype("float32")), **words}, dtype=torch.float64).fit(table)
    other = Encoder.from_json(one.to_json())
    assert one == other
    assert one.diff(other) == other.diff(one) == []


def test_a_loader_trains_again_by_an_encoder():
    table = pa.table({"x": [1.5, 2.5], "c": ["a", "b"], "y": [0, 1]})
    columns = {"x": Cast("float32"), "c": Categories(["b", "a", "z"])}
    encoder = Loader(table, columns=columns, label="y", framework="numpy").encoder()
    again = Loader(table, encoder=encoder, batch_size=2, shuffle=2, seed=0)
    features, label = next(iter(again))
    assert sorted(features["c"].tolist()) == [0, 1]
    assert (features["x"].dtype, label.dtype) == (np.dtype("float32"), np.dtype("int64"))
    assert again.encoder() == encoder
    with pytest.raises(TypeError, match="dtype= is the encoder's"):
        Loader(table, encoder=encoder, dtype="float32")
    with pytest.raises(TypeError, match="encoder must be an Encoder"):
        Loader(table, encoder=5)


@pytest.mark.parametrize(
    ("trained", "other"),
    [
        (pa.timestamp("us"), pa.timestamp("ms")),
        (pa.timestamp("us"), pa.date32()),
        (pa.int64(), pa.date32()),
    ],
    ids=str,
)
def test_a_loader_holds_its_source_to_the_types_of_an_encoder(trained, other):
    table = pa.table({"t": pa.array([], trained)})
    encoder = Encoder(columns={"t": Cast("float64")}, physical=True).fit(table)
    source = pa.table({"t": pa.array([], other)})
    with pytest.raises(
        TypeError, match='column "t" is .* in the encoder and .* in the source'
    ) as told:
        iter(Loader(source, encoder=encoder))
    way = "pyarrow has no cast" if trained == pa.int64() else "casts one of them"
    assert way in str(told.value)
    assert "columns=" not in str(told.value)
    iter(Loader(table, encoder=encoder)).close()


def test_a_loader_takes_the_same_values_in_other_types_by_an_encoder():
    table = pa.table({"c": ["a", "b"], "n": pa.array([1, 2], "int32")})
    encoder = Encoder(columns={"c": Categories.scan(), "n": None}, framework="numpy").fit(table)
    other = pa.table({"c": pa.array(["b"]).dictionary_encode(), "n": pa.array([2**40])})
    (batch,) = Loader(other, batch_size=None, encoder=encoder)
    assert [own.tolist() for own in batch.values()] == [[1], [2**40]]


TRAINED = pa.table(
    {
        "n": pa.array([1, 300], "int64"),
        "x": pa.array([1.5, 2.5], "float32"),
        "c": ["a", "b"],
        "l": [[1], [2, 3]],
        "y": pa.array([0, 1], "int32"),
    }
)
FILLED = {
    "n": Categories.scan(unknown=-1, nulls=-2),
    "x": Cast("float32", nulls=-1.0),
    "c": Categories.scan(unknown=-1, nulls=-2),
    "l": Pad(0, max_length=2, nulls=0),
}


@pytest.mark.parametrize(
    "more",
    [
        TRAINED,
        pa.table({name: pa.nulls(2) for name in FILLED}).append_column("y", TRAINED["y"]),
        pa.table(
            {"n": pa.array([1, 7], "int8").dictionary_encode(), "y": pa.array([1, 0], "int8")}
        ),
        pa.table({"c": pa.array(["b", "q"]).dictionary_encode(), "y": pa.array([1, 0], "uint8")}),
        pa.table({"y": pa.array([1, 0], "int32"), "x": [None, 3], "other": ["p", "q"]}).cast(
            pa.schema({"y": "int32", "x": "float16", "other": "string"})
        ),
    ],
    ids=["same", "nulls", "narrow", "words", "lacking"],
)
@pytest.mark.parametrize(
    "kind", ["table", "list", "files", "dataset", "batches", "mix", "function"]
)
def test_a_loop_makes_what_its_encoder_makes(tmp_path, kind, more):
    """Whatever the source has in place of the columns of the training."""
    (path := tmp_path / "more").mkdir()
    pq.write_table(more, path / "0.parquet")
    source = {
        "table": more,
        "list": [more.slice(0, 1), more.slice(1)],
        "files": path,
        "dataset": ds.dataset(path),
        "batches": iter(more.to_batches()),
        "mix": Mix([(more.slice(0, 1), 1), (more.slice(1), 1)]),
        "function": lambda index, count: more,
    }[kind]
    encoder = Loader(TRAINED, columns=FILLED, label="y", framework="numpy").encoder()
    loader = Loader(source, encoder=encoder, batch_size=2)
    ((features, label),) = loader
    expected, of_rows = encoder(more, label=True)
    assert list(features) == list(expected)
    for one, other in zip([*features.values(), label], [*expected.values(), of_rows], strict=True):
        ours, theirs = (getattr(own, "values", own) for own in (one, other))
        assert ours.dtype == theirs.dtype
        assert ours.tolist() == theirs.tolist()
    if kind not in ("batches", "function"):
        assert loader.encoder() == encoder


@pytest.mark.parametrize(
    ("columns", "label"),
    [
        (None, "y"),
        (["x"], {"y": Cast("float32")}),
        (["x"], ["m.y"]),
        (["x"], ["y", "m.y"]),
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", ["table", "tables", "file", "generator", "mix"])
def test_a_loop_of_an_encoder_leaves_out_its_label(columns, label, kind, tmp_path):
    train = pa.table({"x": [1.0, 2.0], "y": [0, 1]})
    if columns is not None:
        train = train.append_column("m", pa.array([{"y": 5}, {"y": 6}]))
    test = train.select(["x"])
    pq.write_table(test, tmp_path / "a.parquet")
    source = {
        "table": test,
        "tables": [test],
        "file": str(tmp_path / "a.parquet"),
        "generator": (test for _ in range(1)),
        "mix": Mix([(test, 1)]),
    }[kind]
    trained = Loader(train, columns=columns, label=label, framework="numpy")
    encoder = trained.encoder()
    if kind != "generator":
        with pytest.raises(KeyError, match='no columns? "') as refused:
            list(Loader(source, encoder=encoder))
        assert refused.value.__notes__ == [
            "label=[] leaves out the label of the encoder, of data that has none."
        ]
    loader = Loader(source, encoder=encoder, label=[])
    (batch,) = loader
    assert {name: own.tolist() for name, own in batch.items()} == {"x": [1.0, 2.0]}
    if kind == "file":
        (batch,) = pickle.loads(pickle.dumps(loader))
        assert batch["x"].tolist() == [1.0, 2.0]
    with pytest.raises(TypeError, match="label= is the encoder's"):
        Loader(source, encoder=encoder, label="x")
    with pytest.raises(TypeError, match="label=.. leaves out the label of a training"):
        Loader(train, encoder=Encoder(columns=columns, label=label), label=[])


def test_a_loop_of_an_encoder_reads_the_columns_of_its_training():
    table = pa.table({"x": [1.5], "y": [1]})
    encoder = Loader(table, label="y", framework="numpy").encoder()
    ((features, label),) = Loader(table.append_column("m", [[{"a": 1}]]), encoder=encoder)
    assert (list(features), label.tolist()) == (["x"], [1])
    for source in table.select(["y"]), [table.select(["y"])], ds.dataset(table.select(["y"])):
        with pytest.raises(KeyError, match='no column "?x"?'):
            list(Loader(source, encoder=encoder))


@pytest.mark.parametrize("kind", [lambda f: f, lambda f: [f, f], lambda f: Mix([(f, 1)])])
def test_a_loop_of_an_encoder_reads_fields_of_objects_of_pandas(kind):
    table = pa.table({"m": [{"s": 1}], "y": [1]})
    encoder = Loader(table, columns=["m.s"], framework="numpy").encoder()
    for batch in Loader(kind(table.to_pandas()), encoder=encoder, batch_size=1):
        assert batch["m.s"].tolist() == [1]


@pytest.mark.parametrize("size", [ByLength(2, "c"), ByLength(2, "l"), ByTokens(9, "l")], ids=repr)
def test_batches_by_length_are_of_the_columns_of_a_training(size):
    table = pa.table({"c": ["a", "bb"], "l": [[1], [2, 3]]})
    columns = {"c": Categories(["a", "bb"], unknown=-1), "l": Pad(0, nulls=0)}
    encoder = Loader(table, columns=columns, framework="numpy").encoder()
    coded = table.set_column(0, "c", table["c"].dictionary_encode())
    sources = [coded, table.select(["c"]), coded.set_column(1, "l", pa.nulls(2))]
    for source in sources:
        (batch,) = Loader(source, encoder=encoder, batch_size=size)
        assert sorted(batch["c"].tolist()) == [0, 1]
        (other,) = Loader([table[:0], source], columns=columns, framework="numpy", batch_size=size)
        assert [batch["c"].tolist(), batch["l"].values.tolist()] == [
            other["c"].tolist(),
            other["l"].values.tolist(),
        ]
    beside = table.select(["c"]).append_column("n", pa.array([[1], [1, 2]]))
    encoder = Loader(beside, columns=["n"], framework="numpy").encoder()
    for source in beside, beside.append_column("l", pa.array([[1], [2]])):
        assert len(list(Loader(source, encoder=encoder, batch_size=ByLength(2, "c")))) == 1


def test_a_loader_with_an_encoder_is_pickled():
    encoder = Loader(TRAINED, columns=FILLED, label="y", framework="numpy").encoder()
    loader = pickle.loads(pickle.dumps(Loader(TRAINED.drop(["c"]), encoder=encoder)))
    ((features, _),) = loader
    assert features["c"].tolist() == [-2, -2]
    assert "encoder" not in repr(loader)


def test_a_time_is_one_instant_in_every_zone():
    of = pa.timestamp("us", "UTC")
    encoder = Loader(pa.table({"x": pa.array([], of)}), physical=True, framework="numpy").encoder()
    for zone in "Etc/UTC", "Europe/Berlin", "+02:00":
        column = pa.array([1_577_880_000_000], pa.timestamp("ms", zone))
        assert encoder(pa.table({"x": column}))["x"].tolist() == [1_577_880_000_000_000]


def test_threads_share_an_encoder():
    table = pa.table({"x": np.arange(1000.0), "c": ["a", "b"] * 500, "l": [[1, 2]] * 1000})
    columns = {"x": Cast("float32"), "c": Categories.scan(), "l": Dense()}
    encoder = Loader(table, columns=columns, framework="numpy").encoder()
    wrong = []

    def work(number):
        for _ in range(50):
            rows = [{"x": number, "c": "b", "l": [number] * number}]
            made = encoder(rows)
            if [own.tolist() for own in made.values()] != [[number], [1], [[number] * number]]:
                wrong.append(made)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


SERVICE = """
import sys
sys.modules["pyarrow"] = sys.modules["numpy"] = None  # an import of either is an error
from arrow_dlpack import Encoder
encoder = Encoder.from_json(sys.stdin.read())
made = encoder([{"x": 2, "c": "b", "d": __import__("datetime").date(2020, 1, 2), "l": [1]}])
print([bytes(memoryview(own)).hex() for own in (made["x"], made["c"], made["d"], made["l"].values)])
"""


def test_a_service_needs_no_pyarrow_for_dicts():
    table = pa.table({"x": [1.5], "c": ["a"], "d": [dt.date(2020, 1, 2)], "l": [[1, 2]], "y": [0]})
    columns = {
        "x": Cast("float32"),
        "c": Categories(["a", "b"]),
        "d": Categories.scan(),
        "l": Pad(0, max_length=2, dtype="int32"),
    }
    encoder = Loader(table, columns=columns, label="y").encoder()
    run = subprocess.run(
        [sys.executable, "-c", SERVICE],
        input=encoder.to_json(),
        capture_output=True,
        text=True,
        check=True,
    )
    made = encoder([{"x": 2, "c": "b", "d": dt.date(2020, 1, 2), "l": [1]}])
    parts = made["x"], made["c"], made["d"], made["l"].values
    assert run.stdout.strip() == str([np.asarray(own).tobytes().hex() for own in parts])


def test_parts_without_a_common_type_have_an_encoder_that_takes_each():
    """Integers of 64 bits beside floats have no type in common, and a wish that converts both."""
    ints, floats = pa.table({"n": pa.array([1, None])}), pa.table({"n": [7.0, 3.0]})
    for wish in Cast("float32", nulls=-1), Categories.scan(nulls=-1):
        loader = Loader([ints, floats], columns={"n": wish}, batch_size=9)
        (batch,) = loader
        encoder = loader.encoder()
        assert Encoder.from_json(encoder.to_json()) == encoder
        assert pa.schema(encoder.schema).field("n").type == pa.float64()
        for rows, of in (ints, slice(2)), (floats, slice(2, 4)):
            expected = batch["n"].tolist()[of]
            (again,) = Loader(rows, encoder=encoder, batch_size=9)
            taken = [encoder(form)["n"].tolist() for form in (rows, rows.to_pylist())]
            assert [*taken, again["n"].tolist()] == [expected] * 3
    lists = [pa.table({"n": [[1]]}), pa.table({"n": [[0.5, 1.5]]})]
    loader = Loader(lists, columns={"n": Pad(0, dtype="float32")}, batch_size=9)
    assert loader.encoder()(lists[1])["n"].values.tolist() == [[0.5, 1.5]]
    # Texts beside numbers have no type for a request.
    mixed = [pa.table({"n": [1]}), pa.table({"n": ["a"]})]
    with pytest.raises(TypeError, match='column "n" is int64 in part 0 and string in part 1'):
        Loader(mixed, columns={"n": Categories([1, "a"])}).encoder()


def test_what_is_no_text_of_an_encoder_says_what_is(tmp_path):
    encoder = Loader(pa.table({"x": [1]})).encoder()
    (tmp_path / "e.json").write_text(encoder.to_json())
    with pytest.raises(TypeError, match=r"got dict: its text is json.dumps\(x\)"):
        Encoder.from_json(json.loads(encoder.to_json()))
    with pytest.raises(TypeError, match=r"its text is pathlib.Path\(x\).read_text\(\)"):
        Encoder.from_json(tmp_path / "e.json")
    with (tmp_path / "e.json").open() as file, pytest.raises(TypeError, match=r"is x.read\(\)"):
        Encoder.from_json(file)
    with pytest.raises(
        ValueError, match=r"pathlib.Path\(x\).read_text\(\) is the text of that file"
    ):
        Encoder.from_json(str(tmp_path / "e.json"))
    with pytest.raises(ValueError, match="no Encoder in JSON: [^;]*$"):
        Encoder.from_json(str(tmp_path / "other.json"))
    with pytest.raises(TypeError, match=r"as Encoder.from_json\(text\) is one, got '"):
        Loader(pa.table({"x": [1]}), encoder=str(tmp_path / "e.json"))
    with pytest.raises(TypeError, match="num_workers must be a number of processes, got '2'"):
        Loader(pa.table({"x": [1]})).torch("2")


@pytest.mark.parametrize(
    "error", [OSError("network is down"), KeyboardInterrupt(), MemoryError("full")], ids=type
)
def test_an_error_of_a_reader_is_told_as_it_is(error):
    table = pa.table({"x": [1, 2]})
    encoder = Encoder(columns=["x"]).fit(table)

    def batches():
        yield table.to_batches()[0]
        raise error

    reader = pa.RecordBatchReader.from_batches(table.schema, batches())
    told = (type(error), arrow_dlpack.StreamError)
    with pytest.raises(told, match=str(error)):
        encoder(reader)
    reader = table.to_reader()
    assert encoder(reader)["x"].tolist() == [1, 2]
    with pytest.raises(ValueError, match="this RecordBatchReader has no rows left"):
        encoder(reader)
    with pytest.raises(TypeError, match="rows must be .*, got generator: list"):
        encoder(row for row in table.to_pylist())
    with pytest.raises(TypeError, match=r"got RecordBatch: (pyarrow.Table.from_batches\(x\)) is"):
        encoder(table.to_batches())
    assert encoder(pa.Table.from_batches(table.to_batches()))["x"].tolist() == [1, 2]


def test_maps_are_taken_in_any_encoding():
    rows, options = [[("a", 1)], None, [("b", None), ("a", 3)], []], {"columns": {"m": AsArrow()}}
    table = pa.table({"m": pa.array(rows, pa.map_(pa.string(), pa.int64()))})
    encoder = Loader(table, **options).encoder()
    named = pa.map_(pa.field("k", pa.large_string(), nullable=False), pa.field("v", pa.int32()))
    coded = pa.map_(pa.dictionary(pa.int8(), pa.string()), pa.int64())
    keys = pa.array(["a", "b", "a"]).dictionary_encode().cast(coded.key_type)
    offsets = pa.array([0, None, 1, 3, 3], pa.int32())
    coded = pa.MapArray.from_arrays(offsets, keys, pa.array([1, None, 3]), type=coded)
    others = [pa.table({"m": column}) for column in (pa.array(rows, named), coded)]
    for other in (table, *others, pl.from_arrow(table)):
        for first, count in (0, 4), (2, 1):
            made = pa.array(encoder(other[first : first + count])["m"])
            assert made.type == table.schema.field("m").type
            assert made.to_pylist() == rows[first : first + count]
    with pytest.raises(ValueError, match='column "m": value: .* in item 0 does not fit'):
        encoder(pa.table({"m": pa.array([[("a", 2**63)]], pa.map_(pa.string(), pa.uint64()))}))
    with pytest.raises(TypeError, match=r'column "m": key: it is Int64, and was Utf8'):
        encoder(pa.table({"m": pa.array([[(1, 2)]], pa.map_(pa.int64(), pa.int64()))}))


def test_files_of_csv_have_an_encoder(tmp_path):
    """Whose categories stand for numbers as its types are read."""
    (tmp_path / "a.csv").write_text("i,s\n1,x\n2,y\n")
    for source in (tmp_path / "a.csv", [tmp_path / "a.csv"], tmp_path, Mix([(tmp_path, 1)])):
        for words in Categories(["x", "y"]), Categories.scan():
            loader = Loader(source, columns={"s": words, "i": Cast("float32")}, batch_size=2)
            (batch,) = loader
            assert [batch["s"].tolist(), batch["i"].tolist()] == [[0, 1], [1, 2]]
            encoder = loader.encoder()
            assert encoder([{"i": 3, "s": "y"}])["s"].tolist() == [1]
            (batch,) = Loader(source, encoder=encoder, batch_size=2)
            assert batch["s"].tolist() == [0, 1]


def test_a_column_that_is_no_struct_is_no_struct_without_the_field():
    train = pa.table({"m": [{"a": 1}, None]})
    encoder = Loader(train, columns={"m.a": Cast("int64", nulls=-1)}).encoder()
    text = '{"a": 7}'
    others = [pa.array([text]), pa.array([7]), pa.array([[{"a": 7}]])]
    for column in *others, pa.array([[("a", 7)]], pa.map_(pa.string(), pa.int64())):
        for rows in pa.table({"m": column}), {"m": column}, pl.DataFrame({"m": [text]}):
            with pytest.raises(KeyError, match='no column "m.a": "m" is no struct, but '):
                encoder(rows)
    for rows in pd.DataFrame({"m": [text]}), {"m": pd.Series([text])}:
        with pytest.raises(KeyError, match='no column "m.a": .*: json.loads reads texts of JSON'):
            encoder(rows)
    for lacking in pa.table({"z": [1]}), pa.table({"m": [{"b": 1}]}), pa.table({"m": pa.nulls(1)}):
        assert encoder(lacking)["m.a"].tolist() == [-1]
    for none in [np.nan, None], pd.array([None] * 2, "Int64"), [pd.NaT] * 2:
        assert encoder(pd.DataFrame({"m": none}))["m.a"].tolist() == [-1, -1]


def test_an_encoder_has_the_types_that_the_next_epoch_has(tmp_path):
    """Of a file that another one has replaced, and of frames that were changed in place."""
    files = [tmp_path / f"x.{end}" for end in ("parquet", "arrow", "csv")]

    def write(numbers):
        table = pa.table({"x": numbers})
        for file in files:
            file.unlink(missing_ok=True)
        pq.write_table(table, files[0])
        with pa.ipc.new_file(files[1], table.schema) as writer:
            writer.write(table)
        pa.csv.write_csv(table, files[2])

    write([1, 2])
    frame, listed = pd.DataFrame({"x": [1, 2]}), pd.DataFrame({"x": [1, 2]})
    loaders = [Loader(source) for source in [*files, frame, [listed], Mix([(frame, 1)])]]
    for loader in loaders:
        (batch,) = loader
        assert (loader.encoder()([{"x": 3}])["x"].dtype, batch["x"].dtype) == ("int64", "int64")
    write([0.5, 1.5, 2.5])
    frame["x"] = listed["x"] = [0.5, 1.5]
    for loader in loaders:
        assert loader.encoder()([{"x": 3}])["x"].dtype == "float64"
        assert {batch["x"].dtype for batch in loader} == {"float64"}


def test_rows_that_are_classes_or_the_dict_of_a_frame_say_what_rows_are():
    @dataclasses.dataclass
    class Row:
        x: float = 1.5

    encoder = Loader(pa.table({"x": [0.5]})).encoder()
    for wrong in Row, type("Plain", (), {}), dict:
        with pytest.raises(TypeError, match="which is a class: pass an object of it") as refused:
            encoder([wrong])
        assert "asdict" not in str(refused.value)
    with pytest.raises(TypeError, match=r"dataclasses\.asdict\(x\) is one"):
        encoder([Row()])
    assert encoder([dataclasses.asdict(Row())])["x"].tolist() == [1.5]
    frame = pd.DataFrame({"x": [1.5, 2.5]})
    with pytest.raises(TypeError, match=r'frame\.to_dict\("records"\)$'):
        encoder(frame.to_dict())
    assert encoder(frame.to_dict("records"))["x"].tolist() == [1.5, 2.5]


def test_decimals_of_the_module_in_python_are_those_of_the_one_in_c_first():
    slow = _pydecimal.Decimal("1.5")
    floats = Loader(pa.table({"x": [0.5]})).encoder()
    with pytest.raises(TypeError, match=r": float\(x\) is one$"):
        floats([{"x": slow}])
    assert floats([{"x": float(slow)}])["x"].tolist() == [1.5]
    column = pa.table({"x": [Decimal("10.5")]})
    decimals = Loader(column, columns={"x": Cast("float64")}).encoder()
    with pytest.raises(
        TypeError, match=r"it is no decimal\.Decimal, and decimal\.Decimal\(str\(x\)\)"
    ):
        decimals([{"x": slow}])
    assert decimals([{"x": Decimal(str(slow))}])["x"].tolist() == [1.5]
    with pytest.raises(TypeError, match=r'pyarrow\.array\(numpy\.asarray\(x, "float64"\)\)'):
        to_tensor([slow])
    assert to_tensor(pa.array(np.asarray([slow], "float64"))).tolist() == [1.5]


HIDING = {
    "list": lambda values: pa.ListArray.from_arrays(
        [0, 1, 2], values, mask=pa.array([False, True])
    ),
    "large list": lambda values: pa.LargeListArray.from_arrays(
        pa.array([0, 1, 2], pa.int64()), values, mask=pa.array([False, True])
    ),
    "fixed-size list": lambda values: pa.FixedSizeListArray.from_arrays(
        values, 1, mask=pa.array([False, True])
    ),
    "struct": lambda values: pa.StructArray.from_arrays(
        [values], ["a"], mask=pa.array([False, True])
    ),
}


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("make", HIDING.values(), ids=HIDING)
def test_what_null_rows_hide_may_be_any_values(make, depth):
    """As polars's when().then() leaves them."""

    def column(values):
        column = make(values)
        return column if depth == 1 else pa.StructArray.from_arrays([column], ["s"])

    loader = Loader(pa.table({"x": column(pa.array([1, 2], pa.int32()))}), columns={"x": AsArrow()})
    encode = loader.encoder()
    rows = column(pa.array([1, 2**40]))
    (found,) = encode(pa.table({"x": rows})).values()
    assert pa.array(found).to_pylist() == rows.to_pylist()
    with pytest.raises(ValueError, match=str(2**40)):
        encode(pa.table({"x": column(pa.array([2**40, 1]))}))
