"""What a hint names exists where it is said, and works."""

import datetime
import decimal
import re
import sqlite3
import subprocess
import sys
import tracemalloc
import uuid
import warnings
from array import array as array_of
from collections import UserDict
from collections.abc import Set
from fractions import Fraction
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import duckdb
import ml_dtypes
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import pydantic
import pytest
import system
import torch
from arrow_dlpack import (
    Array,
    AsArrow,
    Cast,
    Categories,
    Dense,
    Encoder,
    Loader,
    Mix,
    Pad,
    asdlpack,
    from_dlpack,
    from_padded,
    from_ragged,
    iter_batches,
    ragged,
    record_batch,
    tensor_udf,
    to_tensor,
    to_tensor_dict,
)
from arrow_dlpack.udf import Input, Output
from PIL import Image

import datafusion

DECIMALS = pa.array([decimal.Decimal("1.5")])
NARROW = DECIMALS.cast(pa.decimal64(10, 1))
CODES = pa.array([7]).dictionary_encode()
LISTS = pa.array([[decimal.Decimal("1.5")]])
INT8 = pa.array([1], pa.int8())


def refusal(call, *args, **options):
    with pytest.raises((BufferError, TypeError, ValueError)) as refused:
        call(*args, **options)
    return str(refused.value)


def loaded(column, **options):
    (batch,) = Loader(pa.table({"x": column, "z": [1] * len(column)}), **options)
    return batch


def features(column, **options):
    return loaded(column, **options)["x"]


def label(column, wish=None, **options):
    return loaded(column, label="x" if wish is None else {"x": wish}, **options)[1]


def matrix(column, **options):
    return loaded(column, format="matrix", **options)


PROTOCOLS = {
    "NumPy": np.from_dlpack,
    "NumPy with a dtype": lambda x: np.asarray(x, dtype="float64"),
    "asdlpack": asdlpack,
    "from_dlpack": from_dlpack,
}
WISHES = {
    "decimals": (DECIMALS, 'pass dtype="float64" to ', {"dtype": "float64"}),
    "narrow decimals": (
        NARROW,
        'True to {} for its int64 values, or dtype="float64"',
        {"dtype": "float64"},
    ),
    "lists of decimals": (LISTS, 'pass dtype="float64" to ', {"dtype": "float64"}),
    "nulls": (pa.nulls(1), "pass dtype= and nulls= to ", {"dtype": "float32", "nulls": "nan"}),
    "codes": (CODES, "pass physical=True to ", {"physical": True}),
    "UUIDs": (pa.array([b"a" * 16], pa.uuid()), "pass physical=True to ", {"physical": True}),
    "rows": (pa.array([[1], [2, 3]]), "pass pad= to ", {"pad": 0}),
}  # fmt: skip


@pytest.mark.parametrize("name", WISHES)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_who_takes_no_keyword_is_told_who_does(protocol, name):
    column, words, options = WISHES[name]
    words = words.format("to_tensor") if "{}" in words else f"{words}to_tensor"
    assert words in refusal(PROTOCOLS[protocol], Array(column))
    to_tensor(column, **options)
    if name != "rows":
        assert words.replace("to_tensor", "row") in refusal(list, Array(column))
        Array(column).row(0, **options)


def test_codes_in_lists_have_one_way_out_of_a_loop():
    for kind in (pa.ListArray, pa.LargeListArray):
        lists = kind.from_arrays([0, 1], CODES)
        for wishes in ({}, {"physical": True}, {"columns": {"x": Pad(0)}}):
            words = refusal(features, lists, **wishes)
            assert (
                "cast its items to their values first, or hand it on as Arrow data with AsArrow()"
                in words
            )
            assert "Categories" not in words
        assert len(features(lists, columns={"x": AsArrow()})) == 1
        items = pa.list_ if kind is pa.ListArray else pa.large_list
        assert features(lists.cast(items(pa.int64()))).values.tolist() == [7]


def test_of_codes_in_rows_the_values_are_not_said_to_be_decoded():
    fixed = pa.FixedSizeListArray.from_arrays(CODES, 1)
    lists = pa.ListArray.from_arrays([0, 1], CODES)
    for call, column in ((to_tensor, fixed), (ragged, lists), (features, fixed)):
        words = refusal(call, column)
        assert "pass physical=True for its int32 values" in words
        assert "decode" not in words
        assert "Categories" not in words
        call(column, physical=True)
    assert "AsArrow()" in refusal(features, fixed)
    features(fixed, columns={"x": AsArrow()})


def test_a_column_of_codes_is_cast_alone():
    rows = pa.StructArray.from_arrays([CODES], ["a"])
    for table, column in ((pa.table({"a": CODES}), CODES), (rows, rows.field("a"))):
        words = refusal(to_tensor, table)
        assert "cast this column alone to the type of its values, as pyarrow.compute.cast" in words
        assert to_tensor(pc.cast(column, pa.int64())).tolist() == [7]


TENSORS = {
    "tensors": pa.ExtensionArray.from_storage(
        pa.fixed_shape_tensor(pa.int8(), [1]), pa.array([[1]], pa.list_(pa.int8(), 1))
    ),
    "booleans": pa.ExtensionArray.from_storage(pa.bool8(), INT8),
    "bfloat16": pa.ExtensionArray.from_storage(
        pa.opaque(pa.uint16(), "bfloat16", "dlpack"), pa.array([1], pa.uint16())
    ),
}


@pytest.mark.parametrize("name", TENSORS)
def test_what_is_a_tensor_is_not_padded(name):
    column = TENSORS[name]
    for call, options, words in (
        (to_tensor, {"pad": 0}, "leave out pad="),
        (features, {"columns": {"x": Pad(0)}}, "leave out Pad()"),
        (ragged, {}, "use to_tensor"),
    ):
        message = refusal(call, column, **options)
        assert message.endswith(f"is not ragged, as lists, texts and binaries are: {words}")
        extension = column.type.extension_name
        assert f'extension type "{extension}" (stored as' in message
    assert features(column).shape == to_tensor(column).shape


def test_what_is_a_tensor_by_its_storage_is_not_padded():
    column = pa.array([b"a" * 16], pa.uuid())
    words = refusal(features, column, columns={"x": Pad(0)})
    assert words.endswith("its storage is not ragged: leave out Pad(), with physical=True")
    assert features(column, physical=True).shape == (1, 16)


@pytest.mark.parametrize("column", [DECIMALS, NARROW, LISTS, LISTS.cast(pa.list_(NARROW.type))])
def test_a_label_has_its_dtype_by_its_own_wish(column):
    words = refusal(label, column)
    assert 'take it as Cast("float64") (dtype= is not of a label)' in words
    label(column, Cast("float64"))
    words = refusal(features, column)
    assert 'pass dtype="float64", or Cast("float64") for it alone' in words
    features(column, dtype="float64")
    features(column, columns={"x": Cast("float64")})


def test_a_fill_value_has_a_dtype_that_holds_it_wherever_it_is_said():
    out_of_range = {"nulls": -1000}
    words = refusal(label, INT8, columns={"z": Cast("int64")}, **out_of_range)
    assert words.endswith('say both for it, as Cast("int64", nulls=...), with a dtype that does')
    assert label(INT8, Cast("int64", nulls=-1000)).tolist() == [1]
    words = refusal(features, INT8, **out_of_range)
    assert "pass dtype= with one that does" in words
    assert words.endswith('or say both for it alone, as Cast("int64", nulls=...)')
    assert features(INT8, dtype="int16", **out_of_range).tolist() == [1]
    assert features(INT8, columns={"x": Cast("int16", nulls=-1000)}).tolist() == [1]
    words = refusal(features, INT8, columns={"x": Cast("int8", nulls=-1000)})
    assert words.endswith("; name another dtype in Cast, which does")
    words = refusal(matrix, INT8, columns=["x"], **out_of_range)
    assert "Cast" not in words
    assert matrix(INT8, columns=["x"], dtype="int16", **out_of_range).tolist() == [[1]]

    lists = pa.array([[1, None]], pa.list_(pa.int8()))
    for wish in (Pad(-1000, nulls=0), Pad(0, nulls=-1000), Dense(2, nulls=-1000)):
        kind = type(wish)
        words = refusal(features, lists, columns={"x": wish})
        assert words.endswith(f"; pass dtype= of {kind.__name__}() with one that does")
        held = vars(wish) if hasattr(wish, "__dict__") else wish._asdict()
        features(lists, columns={"x": kind(**(held | {"dtype": "int16"}))})
    words = refusal(to_tensor, lists, pad=-1000, nulls=0)
    assert words.endswith("int8 does not hold it; pass dtype= with one that does")
    assert to_tensor(lists, pad=-1000, nulls=0, dtype="int16").values.tolist() == [[1, 0]]


NULLS = {
    "a mask of padded rows": (Pad(0, nulls="mask"), "nulls= of Pad", Pad(0, nulls=0)),
    "refused ones of padded rows": (Pad(0, nulls="error"), "nulls= of Pad", Pad(0, nulls="nan")),
    "those of dense rows": (Dense(2, nulls="error"), "nulls= of Dense", Dense(2, nulls=0)),
    "those of ragged rows": (Cast("int64"), "nulls= of Cast", Cast("int64", nulls=0)),
}


@pytest.mark.parametrize("name", NULLS)
def test_nulls_in_rows_are_those_of_the_wish_that_says_so(name):
    wish, keyword, right = NULLS[name]
    lists = pa.array([[1, None]])
    words = refusal(features, lists, columns={"x": wish}, nulls=0)
    assert f"by {keyword}" in words
    features(lists, columns={"x": right}, nulls="error")


def test_nulls_in_rows_without_a_wish_are_those_of_the_loader():
    lists = pa.array([[1, None]])
    words = refusal(features, lists)
    assert 'or pass a fill value or "nan" as nulls=' in words
    assert features(lists, nulls=0).values.tolist() == [1, 0]


MATRICES = {
    "nulls": (pa.nulls(1), {"dtype": "float32", "nulls": "nan"}),
    "decimals": (DECIMALS, {"dtype": "float64"}),
    "narrow decimals": (NARROW, {"dtype": "float64"}),
    "codes": (CODES, {"columns": {"x": Categories([7])}}),
    "texts": (pa.array(["a"]), {"columns": {"x": Categories(["a"])}}),
    "binaries": (pa.array([b"a"]), {"columns": ["z"]}),
    "runs": (pa.RunEndEncodedArray.from_arrays([1], [1]), {"columns": ["z"]}),
}


def matrix_of_batches(column, **options):
    table = pa.table({"x": column, "z": [1]})
    return next(iter(iter_batches(table, format="matrix", **options)))


@pytest.mark.parametrize("convert", [matrix, matrix_of_batches])
@pytest.mark.parametrize("name", MATRICES)
def test_a_matrix_is_not_told_what_it_refuses(name, convert):
    column, right = MATRICES[name]
    words = refusal(convert, column)
    for of_a_dict in ("Cast", "AsArrow", "alone as"):
        assert of_a_dict not in words
    if "columns" not in right or name in ("codes", "texts"):
        convert(column, **right)
    for keyword in right:
        if keyword != "columns":
            assert f"{keyword}=" in words


@pytest.mark.parametrize("times", [np.array(["2020-01-01"], ">M8[D]"), np.array([90], ">m8[s]")])
def test_times_in_the_other_byte_order_are_swapped_first(times):
    with pytest.raises(TypeError, match=r'x\.astype\(x\.dtype\.newbyteorder\("="\)\)'):
        to_tensor(times)
    swapped = times.astype(times.dtype.newbyteorder("="))
    assert to_tensor(pa.array(swapped), physical=True).tolist() == times.astype("i8").tolist()
    holder = type("Holder", (), {"__array_interface__": times.__array_interface__})()
    with pytest.raises(
        TypeError, match=r'a\.astype\(a\.dtype\.newbyteorder\("="\)\)\.view\("int64"\)'
    ):
        asdlpack(holder)
    assert swapped.view("int64").tolist() == times.astype("i8").tolist()


def test_times_of_pandas_are_numbers_of_the_unit_that_they_have():
    pd = pytest.importorskip("pandas")
    for time in (pd.Timestamp("2020"), pd.Timedelta(3, "s")):
        with pytest.raises(TypeError, match=r'x\.to_numpy\(\)\.view\("int64"\)'):
            from_dlpack(time)
        assert isinstance(time.to_numpy().view("int64"), np.int64)
    for times in (pd.date_range("2020", periods=2), pd.to_timedelta([1, 2], "s")):
        with pytest.raises(TypeError, match=r"bare numbers, x\.asi8, or pyarrow\.array"):
            from_dlpack(times)
        assert pa.array(from_dlpack(times.asi8)).to_pylist() == times.asi8.tolist()


def test_rows_with_a_mask_are_named_tuples_and_no_masked_arrays():
    rows = ragged(pa.array([[1], None]), nulls="mask")
    with pytest.raises(TypeError, match=r"from_ragged\(x\) makes a column"):
        from_dlpack(rows)


def test_a_dict_of_tensors_with_masks_becomes_a_table():
    columns = to_tensor_dict(pa.table({"x": [1, None]}), nulls="mask")
    with pytest.raises(TypeError, match=r"record_batch\(x\) makes a table of it"):
        to_tensor(columns)
    assert pa.table(record_batch(columns)).to_pydict() == {"x": [1, None]}


@pytest.mark.parametrize("keyword", ["drop_last", "progress"])
def test_a_flag_is_true_or_false(keyword):
    with pytest.raises(TypeError, match=f"{keyword} must be True or False, got 'no'"):
        Loader(pa.table({"x": [1, 2, 3]}), batch_size=2, **{keyword: "no"})
    Loader(pa.table({"x": [1, 2, 3]}), batch_size=2, **{keyword: np.False_})


class Pairs(pa.ExtensionType):
    """Any storage under a name that has no meaning for tensors."""

    def __init__(self, storage):
        super().__init__(storage, "tests.pairs")

    def __arrow_ext_serialize__(self):
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage, serialized):
        return cls(storage)


def extended(storage):
    return pa.ExtensionArray.from_storage(Pairs(storage.type), storage)


STRUCTS = pa.array([{"a": 1, "b": 2}, {"a": 3, "b": 4}])


def test_an_extension_type_stored_as_structs_names_its_storage():
    column = extended(STRUCTS)
    for array in (column, pa.chunked_array([column, column])):
        for call in (to_tensor, ragged, lambda x: to_tensor(x, pad=0)):
            words = refusal(call, array)
            assert "x.cast(x.type.storage_type)" in words
            assert words.endswith("which is a table of its fields")
        assert to_tensor(array.cast(array.type.storage_type))[1].tolist() == [3, 4]
    assert "x.storage" in refusal(np.from_dlpack, Array(column))
    assert to_tensor_dict(column.storage)["a"].tolist() == [1, 3]

    table = pa.table({"x": column, "z": [1, 2]})
    for call in (to_tensor, to_tensor_dict):
        assert "x.cast(x.type.storage_type)" in refusal(call, table)
    storage = table["x"].cast(table["x"].type.storage_type)
    assert to_tensor(table.set_column(0, "x", storage).flatten()).shape == (2, 3)

    assert "name its fields in columns=" in refusal(features, column)
    assert "take a field of it as the label" in refusal(label, column)
    assert list(loaded(column, columns=["x.a"])) == ["x.a"]
    assert loaded(column, columns=["z"], label="x.a")[1].tolist() == [1, 3]
    assert len(features(column, columns={"x": AsArrow()})) == 2


STORED = {
    "maps": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
    "nulls": pa.nulls(2),
    "lists of texts": pa.array([["a"]]),
    "lists of structs": pa.array([[{"a": 1}]]),
    "fixed lists of structs": pa.array([[{"a": 1}]], pa.list_(STRUCTS.type, 1)),
    "runs": pa.RunEndEncodedArray.from_arrays([1], [1]),
    "unions": pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])]),
}


@pytest.mark.parametrize("name", STORED)
def test_physical_is_named_for_a_storage_that_it_helps(name):
    column = extended(STORED[name])
    for call in (to_tensor, ragged, features):
        words = refusal(call, column)
        assert "physical" not in words
        assert "take its storage first" in words
    if "x.cast(" in words:
        assert column.cast(column.type.storage_type).equals(column.storage)


FIXED = {
    "dates": (pa.array([[1], [2]], pa.list_(pa.date32(), 1)), {"physical": True}),
    "dates in lists in lists": (
        pa.array([[[1]]], pa.list_(pa.list_(pa.date32(), 1), 1)),
        {"physical": True},
    ),
    "codes": (pa.FixedSizeListArray.from_arrays(CODES, 1), {"physical": True}),
    "UUIDs": (
        pa.FixedSizeListArray.from_arrays(pa.array([b"a" * 16], pa.uuid()), 1),
        {"physical": True},
    ),
    "decimals": (pa.array([[1]], pa.list_(pa.decimal128(3, 1), 1)), {"dtype": "float64"}),
    "numbers": (pa.array([[1]], pa.list_(pa.int8(), 1)), {}),
}


@pytest.mark.parametrize("name", FIXED)
def test_rows_of_one_length_are_a_tensor_with_the_keyword_that_their_values_need(name):
    column, options = FIXED[name]
    for call, taken in (
        (ragged, {}),
        (to_tensor, {"pad": 0}),
        (features, {"columns": {"x": Pad(0)}}),
    ):
        words = refusal(call, column, **taken)
        for keyword in ("physical", "dtype"):
            assert (f"{keyword}=" in words) is (keyword in options)
    to_tensor(column, **options)
    features(column, **options)


def test_parts_of_a_matrix_are_told_what_a_matrix_takes(tmp_path):
    def read(parts, **options):
        (batch,) = Loader(parts, batch_size=9, format="matrix", **options)
        return batch.tolist()

    parts = [pa.table({"x": [True]}), pa.table({"x": [2]})]
    words = str(refusal(read, parts))
    assert "Cast" not in words
    assert 'dtype="float64" converts both' in words
    assert read(parts, dtype="float64") == [[1], [2]]
    wish = {"x": Cast("float64")}
    ((_, labels),) = Loader(
        [part.append_column("y", part["x"]) for part in parts],
        batch_size=2,
        columns=["y"],
        label=wish,
        format="matrix",
        dtype="float64",
    )
    assert labels.tolist() == [1, 2]

    lacking = [pa.table({"x": [1], "y": [2]}), pa.table({"x": [3]})]
    with pytest.raises(KeyError) as refused:
        read(lacking)
    words = str(refused.value)
    assert 'Categories(words, nulls=-1), with format="dict", or give each part the column' in words
    (batch,) = Loader(lacking, batch_size=2, columns={"x": None, "y": Cast("float64", nulls="nan")})
    assert list(batch) == ["x", "y"]
    whole = [lacking[0], lacking[1].append_column("y", pa.nulls(1))]
    assert read(whole, nulls=0) == [[1, 2], [3, 0]]

    path = tmp_path / "texts.csv"
    path.write_text("x\na\nb\n")
    words = str(refusal(read, str(path), columns=["x"], dtype="float32"))
    assert "AsArrow" not in words
    assert words.endswith("Categories([...]) makes codes of texts")
    assert read(str(path), columns={"x": Categories(["a", "b"])}, dtype="float32") == [[0], [1]]

    coded = [pa.DictionaryArray.from_arrays([0], pa.array([[value]])) for value in ("a", "b")]
    table = pa.table({"x": pa.chunked_array(coded)})
    mix = Mix([(table, 1)])
    words = str(refusal(read, mix, physical=True))
    assert "AsArrow" not in words
    assert "make one dictionary for all rows" in words


def test_lists_of_different_lengths_have_a_way_out_of_a_matrix():
    lists = pa.array([[1], [2, 3]])
    assert 'format="dict"' in refusal(matrix, lists)
    for wish in (Dense(), Dense(1)):
        words = refusal(matrix, lists, columns={"x": wish})
        assert "leave it out with columns=" in words
        assert 'format="dict", for Ragged rows or Pad()' in words
    assert features(lists, format="dict").values.tolist() == [1, 2, 3]
    assert features(lists, format="dict", columns={"x": Pad(0)}).values.tolist() == [[1, 0], [2, 3]]
    assert matrix(lists, columns=["z"]).shape == (2, 1)


class Own:
    pass


OBJECTS = {
    "a set": ({2, 1}, "numpy.asarray(sorted(x))", lambda x: from_dlpack(np.asarray(sorted(x)))),
    "a set of texts": ({"a"}, "pyarrow.array(x)", pa.array),
    "a set of tuples": ({(1, 2)}, "pyarrow.array(list(x))", lambda x: pa.array(list(x))),
    "None": ([None], "pyarrow.array(x)", lambda x: to_tensor(pa.array(x), dtype="int8", nulls=0)),
    "a missing number": ([1, None], "pyarrow.array(x)", lambda x: to_tensor(pa.array(x), nulls=0)),
    "decimals": (
        [decimal.Decimal(1)],
        'numpy.asarray(x, "float64")',
        lambda x: from_dlpack(np.asarray(x, "float64")),
    ),
    "sets": ([{1}], "pyarrow.array(x)", lambda x: pa.array(x, pa.list_(pa.int64()))),
    "numbers": ([1j], "numpy.asarray(x)", lambda x: from_dlpack(np.asarray(x))),
    "NumPy's numbers": ([np.float32(1)], "numpy.asarray(x)", lambda x: from_dlpack(np.asarray(x))),
    "a float": (1.5, "numpy.asarray(x)", lambda x: from_dlpack(np.asarray(x))),
    "objects": ([Own()], None, None),
    "an object": (Own(), None, None),
    "a class": (Own, "pass an object of it", lambda x: x()),
}


@pytest.mark.parametrize("name", OBJECTS)
def test_what_is_named_for_an_object_makes_a_tensor_or_arrow_data(name):
    given, way, convert = OBJECTS[name]
    for call in (from_dlpack, record_batch):
        words = refusal(call, given)
        if way is None:
            assert words.endswith(("Own", "numbers or texts of them", repr(given)))
        else:
            assert f": {way}" in words
    for call in (to_tensor, Array):
        assert ": numpy.asarray" not in refusal(call, given)
        assert way is not None or "pyarrow.array" not in refusal(call, given)
    if convert is not None:
        convert(given)


MATRIX = np.zeros((2, 3))
TABULAR = pa.table({"a": [1]})
COLUMNS = {
    "a table": (TABULAR, "pyarrow.table(x) takes it", pa.table),
    "a reader": (TABULAR.to_reader, "pyarrow.table(x) takes it", pa.table),
    "an array": (INT8, 'pyarrow.table({"x": x})', lambda x: pa.table({"x": x})),
    "structs": (STRUCTS, 'pyarrow.table({"x": x})', lambda x: pa.table({"x": x})),
    "tables": ([TABULAR], "pyarrow.concat_tables(x)", pa.concat_tables),
    "arrays": ([MATRIX], '{"x": x[0]}', lambda x: record_batch({"x": x[0]})),
    "a vector": (np.zeros(2), 'name it, as {"x": x}', lambda x: record_batch({"x": x})),
    "images": (np.zeros((2, 3, 3)), 'name it, as {"x": x}', lambda x: record_batch({"x": x})),
    "a matrix": (MATRIX, "names=, or it as one", lambda x: record_batch(x, names=["a", "b", "c"])),
    "rows": ([[1, 2], [3, 4]], "numpy.stack(x)", lambda x: record_batch({"x": np.stack(x)})),
    "numbers": ([1, 2], "numpy.asarray(x)", lambda x: record_batch({"x": np.asarray(x)})),
    "dicts": ([{"a": 1}], "pyarrow.table(pyarrow.array(x))", lambda x: pa.table(pa.array(x))),
    "a table as a column": ({"a": TABULAR}, "to_tensor_dict(x)", lambda x: to_tensor_dict(x["a"])),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_what_is_no_dict_of_tensors_is_told_what_to_write(name):
    given, way, convert = COLUMNS[name]
    given = given() if callable(given) else given
    assert way in refusal(record_batch, given)
    convert(given)


def test_frames_are_tables_already():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    for frame in (pd.DataFrame({"a": [1]}), pl.DataFrame({"a": [1]})):
        assert "pyarrow.table(x) takes it" in refusal(record_batch, frame)
        assert pa.table(frame).num_columns == 1
        assert 'pyarrow.table({"x": x})' in refusal(record_batch, frame["a"])
        assert pa.table({"x": frame["a"]}).num_rows == 1


def noted(call, *args):
    with pytest.raises((BufferError, TypeError, ValueError)) as refused:
        call(*args)
    return getattr(refused.value, "__notes__", [])


def test_tensors_of_pytorch_in_another_layout_name_their_conversion():
    torch = pytest.importorskip("torch")
    dense = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    layouts = [dense.to_sparse(), dense.to_sparse_csr(), dense.to_sparse_csc()]
    layouts += [dense.to_sparse_bsr((1, 1)), dense.to_sparse_bsc((1, 1))]
    for tensor in layouts:
        assert noted(from_dlpack, tensor) == ["x.to_dense() is a tensor of all elements"]
        assert to_tensor(from_dlpack(tensor.to_dense())).tolist() == dense.tolist()
    view = torch.tensor([1 + 2j]).conj()
    assert noted(from_dlpack, view) == ["x.resolve_conj() is a tensor of its elements"]
    assert asdlpack(view.resolve_conj()).tolist() == [1 - 2j]
    assert "x.resolve_neg()" in refusal(from_dlpack, view.imag)
    assert refusal(to_tensor, view.imag).endswith(
        ": asdlpack(x.resolve_neg()) makes a Tensor of its elements"
    )
    weight = torch.nn.Linear(2, 1).weight
    assert refusal(to_tensor, weight).endswith(
        "asdlpack(x.detach()) makes a Tensor of its elements, without gradients"
    )
    assert asdlpack(weight.detach()).shape == (1, 2)


def test_arrays_of_numpy_that_its_dlpack_does_not_take_name_what_converts_them():
    field = np.zeros(3, [("a", "i1"), ("b", "i4")])["b"]
    ways = {"float32": np.ones(3, ml_dtypes.bfloat16), "int8": np.ones(3, ml_dtypes.int4)}
    for dtype, x in ways.items():
        assert refusal(to_tensor, x).endswith(f': x.astype("{dtype}") is a tensor of its numbers')
        assert asdlpack(x.astype(dtype)).tolist() == [1, 1, 1]
    assert refusal(to_tensor, field).endswith(
        ": x.copy() is a tensor of its elements, side by side"
    )
    assert asdlpack(field.copy()).tolist() == [0, 0, 0]


def test_a_data_loader_of_pytorch_is_looped_over():
    torch = pytest.importorskip("torch")
    loader = torch.utils.data.DataLoader([torch.zeros(2)], batch_size=1)
    for call in (to_tensor, from_dlpack, record_batch):
        assert "a DataLoader makes batches itself: loop over it" in refusal(call, loader)
    assert [len(record_batch({"x": batch})) for batch in loader] == [1]


def test_integers_of_128_bits_of_polars_are_cast_to_what_holds_them():
    pl = pytest.importorskip("polars")
    for kind in (pl.Int128, pl.UInt128):
        wide = pl.Series("x", [2**70], kind)
        words = refusal(to_tensor, wide)
        assert "polars.Int64, or polars.Float64 if that is too narrow" in words
        assert to_tensor(wide.cast(pl.Float64)).tolist() == [2.0**70]


@pytest.mark.parametrize("wrong", ["x", 5, []])
def test_a_wrong_type_is_named_as_python_names_it(wrong):
    array = np.zeros(2)
    for call in (
        lambda: from_dlpack(array, type=wrong),
        lambda: asdlpack(array).to_arrow(type=wrong),
        lambda: record_batch({"x": array}, type=wrong),
    ):
        with pytest.raises((TypeError, ValueError), match="^type must be") as refused:
            call()
        assert "r#" not in "".join(getattr(refused.value, "__notes__", []))


def test_intervals_are_a_matrix_of_their_numbers():
    intervals = pa.array([(1, 2, 3), (4, 5, 6)], pa.month_day_nano_interval())
    way = "pyarrow.array(x.to_pylist(), pyarrow.list_(pyarrow.int64(), 3))"
    for call in (to_tensor, features, lambda x: np.from_dlpack(Array(x))):
        assert way in refusal(call, intervals)
    assert to_tensor(eval(way, {"pyarrow": pa, "x": intervals})).tolist() == [[1, 2, 3], [4, 5, 6]]
    with_null = pa.chunked_array([intervals, pa.nulls(1, intervals.type)])
    assert way in refusal(to_tensor, with_null, nulls=0)
    numbers = eval(way, {"pyarrow": pa, "x": with_null})
    assert to_tensor(numbers, nulls=0).tolist() == [[1, 2, 3], [4, 5, 6], [0, 0, 0]]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_texts_that_are_numbers_are_cast_before_they_get_a_dtype(kind):
    table = pa.table({"x": pa.array(["1", "2.5"], kind), "y": [1, 2]})
    wish = {"x": Cast("float32")}
    calls = {
        "wish": {"columns": wish},
        "dtype": {"columns": ["x"], "dtype": "float32"},
        "matrix": {"columns": ["x"], "dtype": "float32", "format": "matrix"},
        "label": {"columns": ["y"], "label": wish},
    }
    for name, options in calls.items():
        words = refusal(Loader, table, batch_size=2, **options)
        assert ("columns=" in words) == (name != "label")
        made = eval(
            re.search(r"table\.set_column.*\)\)", words)[0], {"pyarrow": pa, "table": table}
        )
        (batch,) = Loader(made, batch_size=2, **options)
        found = batch[1] if name == "label" else batch if name == "matrix" else batch["x"]
        assert (found.dtype, np.asarray(found).ravel().tolist()) == ("float32", [1, 2.5])
    words = refusal(Loader, table, label="x", dtype="float32", batch_size=2)
    assert "set_column" not in words


def test_dictionaries_of_structs_are_decoded_because_nothing_unifies_them():
    parts = [pa.DictionaryArray.from_arrays([0], pa.array([{"a": a}])) for a in (1, 2)]
    words = refusal(to_tensor, pa.chunked_array(parts), physical=True)
    assert "decode each chunk to its values first" in words
    values = pa.chunked_array([part.dictionary_decode() for part in parts])
    assert to_tensor_dict(values)["a"].tolist() == [1, 2]


def test_codes_of_texts_in_lists_are_flattened():
    lists = pa.ListArray.from_arrays([0, 1], pa.array(["a"]).dictionary_encode())
    words = refusal(features, lists)
    assert "flatten the lists first" in words
    assert "cast" not in words
    assert features(pc.list_flatten(lists), columns={"x": Categories(["a"])}).tolist() == [0]
    assert len(features(lists, columns={"x": AsArrow()})) == 1


TAKERS = {
    "from_dlpack": from_dlpack,
    "values": lambda x: from_ragged(x, np.array([0, 1])),
    "offsets": lambda x: from_ragged(np.array([1, 2]), x),
    "lengths": lambda x: from_padded(np.array([[1], [2]]), x),
    "names": lambda x: record_batch(x, names=["x"]),
}


@pytest.mark.parametrize("name", TAKERS)
def test_arrow_data_whose_own_dlpack_refuses_it_tells_what_takes_it(name):
    convertible = [
        pa.array([True, False]),
        pa.array([[1, 2]], pa.list_(pa.int64(), 2)),
        TENSORS["booleans"],
        pa.array([{"a": 1}]),
    ]
    for x in convertible:
        words = noted(TAKERS[name], x)
        assert words == [
            "it is Arrow data: to_tensor(x) makes a tensor of it, and Array(x) an Array"
        ]
        assert len(Array(x)) == to_tensor(x).shape[0]
    for x, way_out, options in (
        (pa.array([1, None]), "pass nulls=", {"nulls": 0}),
        (pa.array([1], pa.timestamp("s")), "pass physical=True", {"physical": True}),
        (CODES, "pass physical=True", {"physical": True}),
        (DECIMALS, 'pass dtype="float64"', {"dtype": "float64"}),
        (pa.array([[1], [2, 3]]), "pass pad=", {"pad": 0}),
    ):
        (words,) = noted(TAKERS[name], x)
        assert words.startswith("it is Arrow data, and to_tensor(x) says: ")
        assert way_out in words
        to_tensor(x, **options)


def test_batches_of_a_data_loader_are_tables_by_record_batch():
    torch = pytest.importorskip("torch")
    data = torch.utils.data
    rows = [{"x": float(number)} for number in range(4)]
    dicts = data.DataLoader(rows, batch_size=2)
    lists = data.DataLoader(data.TensorDataset(torch.arange(4.0)), batch_size=2)
    with pytest.raises(TypeError, match=r"map\(arrow_dlpack.record_batch, x\) makes tables"):
        list(Loader(iter(dicts)))
    made = [batch["x"].tolist() for batch in Loader(map(record_batch, iter(dicts)))]
    assert made == [[0, 1], [2, 3]]
    with pytest.raises(TypeError, match=r'\(arrow_dlpack.record_batch\({"x": batch\[0\]}\) for'):
        list(Loader(iter(lists)))
    tables = (record_batch({"x": batch[0]}) for batch in iter(lists))
    assert [batch["x"].tolist() for batch in Loader(tables)] == made
    x = list(dicts)
    stacked = "record_batch({name: numpy.stack([row[name] for row in x]) for name in x[0]})"
    words = f"of samples {stacked} makes a table, of batches list(map(record_batch, x)) tables"
    for take in Loader, to_tensor, from_dlpack, record_batch:
        assert refusal(take, x).endswith(words)
    assert [batch["x"].tolist() for batch in Loader(list(map(record_batch, x)))] == made
    x = [{"image": np.full((2, 3), n), "label": n} for n in range(4)]
    for take in Loader, record_batch:
        assert refusal(take, x).endswith(words)
    table = eval(stacked, {"x": x, "numpy": np, "record_batch": record_batch})
    (batch,) = Loader(table, batch_size=4)
    assert (batch["image"].shape, batch["label"].tolist()) == ((4, 2, 3), [0, 1, 2, 3])
    for take in to_tensor, from_dlpack, record_batch:
        assert "loop over it, and record_batch makes a table of each" in refusal(take, iter(dicts))


def test_a_list_of_images_is_stacked():
    image = pytest.importorskip("PIL.Image")
    x = [image.new("RGB", (6, 5), (at, 0, 9)) for at in range(3)]
    way = "numpy.stack([numpy.asarray(item) for item in x])"
    for take in to_tensor, from_dlpack, Array:
        assert f"{way} has the pixels of images of one size" in refusal(take, x)
    stacked = asdlpack(eval(way, {"numpy": np, "x": x}))
    assert (stacked.shape, stacked[2, 4, 5].tolist()) == ((3, 5, 6, 3), [2, 0, 9])


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"columns": {"u": Cast("int64")}}, "int64"),
        ({"columns": ["u"], "dtype": "uint64"}, "uint64"),
        ({"columns": {"u": Cast("float32")}}, "float64"),
    ],
)
def test_texts_of_integers_are_cast_to_integers(options, kind):
    """Of floats neighbours above 2**53 are one number."""
    table = pa.table({"u": [str(2**60 + 1), str(2**60 + 3)]})
    way = 'pyarrow.compute.cast(table["u"], "' + kind + '")'
    assert way in refusal(lambda x: list(Loader(x, **options)), table)
    made = table.set_column(0, "u", eval(way, {"pyarrow": pa, "table": table}))
    (batch,) = Loader(made, **options, batch_size=2)
    if kind != "float64":
        assert np.asarray(batch["u"]).ravel().tolist() == [2**60 + 1, 2**60 + 3]


def test_lists_beside_tensors_are_made_arrays_of():
    x = {"image": np.zeros((2, 3)), "label": [0, 1], "word": ["a", None], "rows": [np.ones(2)] * 2}
    made = "{**x, 'label': pyarrow.array(x['label']), 'word': pyarrow.array(x['word'])}"
    for take in Loader, to_tensor:
        assert f"record_batch({made}) makes a table of it" in refusal(take, x)
    table = record_batch(eval(made, {"x": x, "pyarrow": pa}))
    assert pa.record_batch(table).num_columns == 4


NOON = datetime.datetime(2020, 1, 1, 12)
#: Cells of a column, and the values that the way out makes of them.
CELLS = {
    "torch": (lambda: [torch.ones(2), None], [[1, 1], None]),
    "jax": (lambda: [pytest.importorskip("jax").numpy.ones(2)], [[1, 1]]),
    "series": (lambda: [pd.Series([1, 2])], [[1, 2]]),
    "zones": (lambda: [pd.Series([pd.Timestamp(0, tz="UTC")])], [[pd.Timestamp(0, tz="UTC")]]),
    "standard library": (lambda: [array_of("d", [1, 2])], [[1, 2]]),
    "without axes": (lambda: [np.array(1.5), np.array(2.5)], [1.5, 2.5]),
    "dtypes": (lambda: [np.ones(2), np.ones(2, "f4")], [[1, 1], [1, 1]]),
    "units": (
        lambda: [np.datetime64(NOON, "s"), None, np.datetime64(NOON, "us")],
        [NOON, None, NOON],
    ),
}


@pytest.mark.parametrize(("make", "values"), CELLS.values(), ids=CELLS)
def test_cells_of_pandas_become_lists_or_times_of_one_unit(make, values):
    cells = make()
    x = pd.DataFrame({"e": [None] * len(cells)}, dtype=object)
    for at, cell in enumerate(cells):
        x.at[at, "e"] = cell
    (note,) = noted(to_tensor_dict, x)
    way, _, _ = note.partition(" has ")
    assert pa.Table.from_pandas(x.assign(e=eval(way, {"x": x})))["e"].to_pylist() == values


@pytest.mark.parametrize("unit", ["h", "10ms", "ps"])
@pytest.mark.parametrize("kind", ["M8", "m8"])
def test_times_of_numpy_in_other_units_are_made_of_each_value(kind, unit):
    for value in np.array([3, 4], f"{kind}[{unit}]"), np.array(3, f"{kind}[{unit}]")[()]:
        x = pd.DataFrame({"e": [None, None]}, dtype=object)
        x.at[1, "e"] = value
        (way,) = re.findall(r"value\.astype\(.*?\)", refusal(to_tensor_dict, x))
        made = x.map(lambda value, way=way: eval(way), na_action="ignore")
        assert pa.Table.from_pandas(made)["e"].null_count == 1


@pytest.mark.parametrize("call", [ragged, to_tensor])
def test_items_of_lists_that_are_an_extension_type_are_no_rows(call):
    options = {"pad": 0} if call is to_tensor else {}
    fixed = pa.array([b"a" * 16], pa.uuid())
    x = pa.ListArray.from_arrays([0, 1], fixed)
    assert refusal(call, x, **options).endswith(": pass physical=True for its storage")
    assert call(x, physical=True, **options).values.shape[-1] == 16
    for kind, value in (pa.binary(), b"ab"), (pa.list_(pa.int8()), [1, 2]):
        items = pa.array([value], kind).cast(pa.opaque(kind, "a", "b"))
        x = pa.ListArray.from_arrays([0, 1], items)
        for one in x, pa.chunked_array([x]):
            words = refusal(call, one, **options)
            assert "flatten the lists first, as pyarrow.compute.list_flatten does" in words
            flat = pc.list_flatten(one)
            assert "pass physical=True" in refusal(call, flat, **options)
            assert call(flat, physical=True, **options).values.size == 2


def test_integers_of_more_than_64_bits_are_rounded_by_numpy():
    x = [1, 2**70]
    assert 'numpy.asarray(x, "float64")' in refusal(from_dlpack, x)
    assert asdlpack(np.asarray(x, "float64")).tolist() == [1, 2.0**70]
    assert 'pyarrow.array(numpy.asarray(x, "float64"))' in refusal(to_tensor, x)
    assert to_tensor(pa.array(np.asarray(x, "float64"))).tolist() == [1, 2.0**70]


def test_maps_have_keys_and_items_of_chunked_ones_too():
    x = pa.array([[(1, 2)], [(3, 4)]], pa.map_(pa.int8(), pa.int8()))
    for call in to_tensor, ragged:
        words = refusal(call, x)
        assert "pyarrow.concat_arrays([x]), or of x.combine_chunks() of a chunked array" in words
    for some, keys in (x, [1, 3]), (x[1:], [3]):
        whole = pa.concat_arrays([some])
        assert (whole.keys.to_pylist(), to_tensor(whole.items).tolist()) == (
            keys,
            [key + 1 for key in keys],
        )
        chunked = pa.chunked_array([some, some]).combine_chunks()
        assert to_tensor(chunked.keys).tolist() == keys * 2


BATCH = TABULAR.to_batches()[0]
TWO_INTS = pa.array([1, 2])
SEVERAL = {
    "a table and an array": ([TABULAR, TWO_INTS], 'pyarrow.table({"x": x[1]})'),
    "an array and a table": ([TWO_INTS, TABULAR], 'pyarrow.table({"x": x[0]})'),
    "batches": ([BATCH, BATCH], "pyarrow.Table.from_batches(x)"),
    "tables": ([TABULAR, TABULAR], "pyarrow.concat_tables(x)"),
    "batches and tables": ([BATCH, TABULAR], "pyarrow.concat_tables(map(pyarrow.table, x))"),
    "readers": ([TABULAR.to_reader(), TABULAR], "pyarrow.concat_tables(map(pyarrow.table, x))"),
    "arrays": ([TWO_INTS, pa.chunked_array([TWO_INTS])], "pyarrow.chunked_array(x)"),
    "our arrays": (
        [Array(TWO_INTS), TWO_INTS],
        "pyarrow.concat_arrays(map(pyarrow.array, x))",
    ),
    "pairs": ([("a", np.zeros(2))], "dict(x)"),
    "a pair": (("a", np.zeros(2)), "{x[0]: x[1]}"),
}


def typed(way, x):
    given = {"numpy": np, "pandas": pd, "pyarrow": pa}
    return eval(way, {"x": x, **given, "from_dlpack": from_dlpack, "record_batch": record_batch})


@pytest.mark.parametrize("name", SEVERAL)
def test_lists_of_arrow_data_are_joined_by_what_takes_all_of_them(name):
    x, way = SEVERAL[name]
    # record_batch takes arrays of numbers as columns, by their names.
    calls = [to_tensor] if "our arrays" in (name, f"our {name}") else [to_tensor, record_batch]
    for call in calls if "pair" not in name else [record_batch]:
        words = refusal(call, x)
        assert way in words
        assert "\n" not in words
    made = typed(way, x)
    if "pair" in name:
        record_batch(made)
    else:
        to_tensor(made)


def test_tables_beside_other_objects_are_not_shown_whole():
    for x in [TABULAR, 1], (TABULAR, 1), TABULAR:
        assert "\n" not in refusal(record_batch, x)


def masked(values, **options):
    return np.ma.masked_array(values, [False, True], **options)


MASKED = {
    "floats": (masked([1.5, 2]), "from_dlpack(x.data, mask=~numpy.ma.getmaskarray(x))"),
    "complex": (masked([1j, 2]), "from_dlpack(x.data, mask=~numpy.ma.getmaskarray(x))"),
    "texts": (masked(["a", "b"]), "pyarrow.array(x)"),
    "bytes": (masked([b"a", b"b"]), "pyarrow.array(x)"),
    "objects": (masked(["a", "b"], dtype=object), "pyarrow.array(x)"),
    "large integers": (masked([1, 2**70], dtype=object), "pyarrow.array(x)"),
    "times": (masked(["2020", "2021"], dtype="M8[s]"), "pyarrow.array(x)"),
    "fields": (
        masked([(1,), (2,)], dtype=[("a", "i4")]),
        "pyarrow.table({name: x[name] for name in x.dtype.names})",
    ),
}


@pytest.mark.parametrize("name", MASKED)
def test_masked_arrays_become_arrow_data_with_nulls(name):
    x, way = MASKED[name]
    for call in (to_tensor, asdlpack, from_dlpack):
        words = refusal(call, x)
        assert way in words
        assert ".view(" not in words
    made = typed(way, x)
    column = made["a"] if name == "fields" else pa.array(made)
    assert column.null_count == 1
    table = refusal(Loader, x).partition("iterator of batches, got ")[2].partition(": ")[2]
    assert typed(table.partition(" makes ")[0], x).num_rows == 2


def test_a_mask_without_a_dtype_has_the_way_out_of_numbers():
    class Masked:
        mask = True

    with pytest.raises(TypeError, match="has a mask, .*getmaskarray.x.. does"):
        from_dlpack(Masked())


def test_a_list_or_a_set_of_nothing_is_a_tensor_of_nothing():
    for x, way in ([], "numpy.asarray(x)"), (set(), "numpy.asarray(sorted(x))"):
        assert f": {way} makes a tensor of it" in refusal(from_dlpack, x)
        assert from_dlpack(eval(way, {"numpy": np, "x": x})).type == "Float64"


OF_BYTES = 'numpy.ascontiguousarray(x).view("uint8").reshape(*x.shape, -1)'
UNUSUAL = {
    "complex long double": (np.ones(2, "G"), 'x.astype("complex128")'),
    "bytes of one length": (np.zeros((2, 3), "V8"), OF_BYTES),
    "strided bytes": (np.zeros((4, 3), "V3")[::2], OF_BYTES),
    "transposed bytes": (np.zeros((4, 3), "V3").T, OF_BYTES),
    "some bytes": (np.zeros(4, "V3")[::-2], OF_BYTES),
    "one such": (np.void(b"1234"), 'numpy.frombuffer(x, "uint8")'),
}


@pytest.mark.parametrize("name", system.marked(UNUSUAL))
def test_dtypes_that_no_tensor_has_name_what_has(name):
    x, way = UNUSUAL[name]
    assert way in refusal(to_tensor, x)
    assert asdlpack(typed(way, x)).nbytes == (32 if name.startswith("complex") else x.nbytes)


def test_layouts_of_pytorch_are_named_to_who_asks_for_arrow_data():
    torch = pytest.importorskip("torch")
    rows = [torch.ones(1), torch.ones(2)]
    for x, way in (
        (torch.eye(2).to_sparse(), "x.to_dense()"),
        (torch.nested.nested_tensor(rows), "x.to_padded_tensor(0)"),
        (torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8), "x.dequantize()"),
    ):
        for call in (to_tensor, Loader):
            assert f"{way} is a tensor" in refusal(call, x)
        asdlpack(typed(way, x))


TODAY = datetime.datetime(2026, 1, 1)
LARGE = 2**64 - 1
NAN = float("nan")
FLOATS = 'pyarrow.array(numpy.asarray(x, "float64"))'
TEXTS = "pyarrow.array(list(map(str, x)))"
OBJECTS_OF_PYTHON = {
    "large integers": ([2**70, 1], FLOATS),
    "large integers and floats": ([2**70, 1.5], FLOATS),
    "integers that floats round": ([2**53 + 1, 1.5], FLOATS),
    "of both signs": ([LARGE, -1], FLOATS),
    "unsigned": ([LARGE, 1], 'pyarrow.array(x, "uint64")'),
    "unsigned with nulls": ([LARGE, None], 'pyarrow.array(x, "uint64")'),
    "large with nulls": ([2**70, None], None),
    "a large integer": (2**70, FLOATS.replace("x,", "[x],")),
    "the least integers": ([-(2**63), 1], "pyarrow.array(x)"),
    "an unsigned one": (LARGE, 'pyarrow.array([x], "uint64")'),
    "a complex one": (1j, 'from_dlpack(numpy.asarray([x], "complex128"))'),
    "complex": ([1j, 1], 'from_dlpack(numpy.asarray(x, "complex128"))'),
    "fractions": ([Fraction(1, 2), 1.5], FLOATS),
    "decimals and floats": ([decimal.Decimal(1), 1.5], FLOATS),
    "decimals": ([decimal.Decimal(1), 1], "pyarrow.array(x)"),
    "booleans and integers": ([True, 1], FLOATS),
    "rows": ([[2**70], [1, 2]], None),
    "texts and numbers": (["a", 2**70], TEXTS),
    "numbers and texts": ([1, "a"], TEXTS),
    "lists and numbers": ([[1], 1], None),
    "a set of large integers": ({2**70, 1}, FLOATS.replace("x", "list(x)")),
    "a set of several kinds": ({1, "a"}, TEXTS.replace("x", "list(x)")),
    "arrays and lists": ([np.array([1]), [1]], "pyarrow.array(x)"),
    "an array of large integers": (np.array([2**70, 1], object), FLOATS),
    "an array of unsigned": (np.array([LARGE, 1], object), 'pyarrow.array(x, "uint64")'),
    "an array of several kinds": (np.array([1, "a"], object), TEXTS),
    "objects": ([object(), None], None),
    "nulls of pandas's": ([pd.NA, 1], "pyarrow.array(x, from_pandas=True)"),
    "times and nulls of pandas's": ([pd.NaT, TODAY], "pyarrow.array(x, from_pandas=True)"),
    "nulls of pandas's in lists": ([[pd.NA, 1]], "pyarrow.array(x, from_pandas=True)"),
    "times": ([TODAY, None], "pyarrow.array(x)"),
    "a dict of an array of several kinds": (
        {"a": np.array([1, "x"], object)},
        "record_batch({**x, 'a': pyarrow.array(list(map(str, x['a'])))})",
    ),
    "a dict": (
        {"a": [2**70], "b": [1]},
        "pyarrow.table({**x, 'a': pyarrow.array(numpy.asarray(x['a'], \"float64\"))})",
    ),
    "a dict of unsigned": (
        {"a": [LARGE]},
        "pyarrow.table({**x, 'a': pyarrow.array(x['a'], \"uint64\")})",
    ),
    "a dict of several kinds": (
        {"a": [1, "x"]},
        "pyarrow.table({**x, 'a': pyarrow.array(list(map(str, x['a'])))})",
    ),
    "a row": ({"a": 1, "b": "c", "d": [1]}, "pyarrow.Table.from_pylist([x])"),
    "nulls of pandas's alone": ([pd.NA, pd.NaT], "pyarrow.array(x, from_pandas=True)"),
    "unsigned and nulls of pandas's": ([LARGE, pd.NA], None),
    "a range": ({"a": range(3)}, "pyarrow.table(x)"),
    "one row of nulls of pandas's": ({"a": NAN, "b": pd.NA}, "pandas.DataFrame([x], dtype=object)"),
    "a tensor among others": ([1j, np.ones(2), "a"], None),
    "texts and NaN": (["a", NAN], "pyarrow.array(x, from_pandas=True)"),
    "NaN and lists": ([NAN, [1, 2]], "pyarrow.array(x, from_pandas=True)"),
    "objects and NaN": (np.array([TODAY, NAN], object), "pyarrow.array(x, from_pandas=True)"),
    "numbers and NaN": ([1, NAN], "pyarrow.array(x)"),
    "large integers and NaN": ([2**60, NAN], "pyarrow.array(x, from_pandas=True)"),
    "a dict of texts and NaN": (
        {"n": ["a", NAN], "y": [1, 2]},
        "pyarrow.table({**x, 'n': pyarrow.array(x['n'], from_pandas=True)})",
    ),
    "rows of texts and NaN": (
        [[1, "x"], [2, NAN]],
        "pyarrow.table({str(at): pyarrow.array(column, from_pandas=True) for at, column in "
        "enumerate(zip(*x, strict=True))})",
    ),
    "booleans, floats and nulls of pandas's": ([True, 1.5, pd.NA], None),
    "decimals of which NumPy hides one": ([np.ma.masked, decimal.Decimal("1.5")], None),
    "ranges": ([range(2)], None),
    "texts, numbers and nulls": ([1, "a", None], None),
    "paths": ([Path("a")], TEXTS),
    "a dict of paths": (
        {"path": [Path("a")], "label": [1]},
        "pyarrow.table({**x, 'path': pyarrow.array(list(map(str, x['path'])))})",
    ),
    "images and labels": (
        {"image": [np.zeros((2, 2)), np.ones((2, 2))], "label": [0, 1]},
        "record_batch({**x, 'label': pyarrow.array(x['label'])})",
    ),
    "rows of any length": ({"a": [torch.ones(2), torch.ones(3)]}, "record_batch(x)"),
    "arrays and texts of several kinds": (
        {"x": np.arange(2), "id": [1, "a"]},
        "record_batch({**x, 'id': pyarrow.array(list(map(str, x['id'])))})",
    ),
    "columns of pandas": ({"a": pd.Series([1]), "b": pd.Series([0.5])}, "record_batch(x)"),
    "columns of pandas's own types": (
        {"a": pd.Series([1, None], dtype="Int64"), "b": pd.Series([True, None], dtype="boolean")},
        "record_batch(x)",
    ),
    "columns and an index": (
        {"a": np.ones(2), "b": pd.Index(["x", "y"])},
        "record_batch({**x, 'b': pyarrow.array(x['b'])})",
    ),
    "columns of polars": ({"a": pl.Series([1])}, "record_batch(x)"),
    "arrays of pandas": ({"a": pd.array([1, None], "Int64"), "b": [1, 2]}, "pyarrow.table(x)"),
    "tensors without an axis": (
        {"loss": [torch.tensor(0.5), torch.tensor(0.25)], "step": [1, 2]},
        "pyarrow.table({**x, 'loss': pyarrow.array([item.tolist() for item in x['loss']])})",
    ),
    "texts of NumPy beside tensors": (
        [{"n": np.str_("a"), "e": np.ones(2)}],
        'pyarrow.table(pyarrow.array([{name: value.tolist() if hasattr(value, "tolist") else value '
        "for name, value in row.items()} for row in x]))",
    ),
    "dates and NaT": ([TODAY.date(), pd.NaT], "pyarrow.array(x, from_pandas=True)"),
    "a column of dates and NaT": (
        {"d": [TODAY.date(), pd.NaT], "v": [1, 2]},
        "pyarrow.table({**x, 'd': pyarrow.array(x['d'], from_pandas=True)})",
    ),
    "words of documents": ([np.array(["a", "b"]), np.array(["c"])], "pyarrow.array(x)"),
    "columns of words": (
        {"w": [np.array(["a"]), np.array(["b"])], "v": [1, 2]},
        "pyarrow.table(x)",
    ),
    "nulls of pyarrow": ([pa.scalar(1), pa.scalar(None)], None),
    "UUIDs of samples": ([{"f": np.ones(2), "id": uuid.UUID(int=1)}], None),
    "nanoseconds of samples": ([{"f": np.ones(2), "t": np.datetime64(1, "ns"), "s": "a"}], None),
    "a value of pyarrow's structs": (pa.scalar({"a": 1}), "pyarrow.array([x])"),
    "our tensors": ({"a": asdlpack(np.ones(2))}, "record_batch(x)"),
    "samples and labels": (
        [(torch.ones(2), 0), (torch.zeros(2), 1)],
        "record_batch({str(at): numpy.stack(column) for at, column in "
        "enumerate(zip(*x, strict=True))})",
    ),
    "a batch and its label": (
        ({"x": np.ones(2)}, np.arange(2)),
        'record_batch({**x[0], "y": x[1]})',
    ),
    "a batch of rows of any length and its label": (
        ({"x": ragged(pa.array([[1], [2, 3]]))}, np.arange(2)),
        'record_batch({**x[0], "y": x[1]})',
    ),
    "a mapping of arrays": (UserDict(a=np.arange(2)), "record_batch(x)"),
    "one row of NumPy's day": (
        {"d": np.datetime64("2020-01-01"), "v": 1.5},
        "pandas.DataFrame([x], dtype=object)",
    ),
    "one row with a path": ({"lr": 0.1, "path": Path("a")}, "pandas.DataFrame([x], dtype=object)"),
    "a row of large": ({"a": 2**70, "b": None}, "pandas.DataFrame([x], dtype=object)"),
}


@pytest.mark.parametrize("name", OBJECTS_OF_PYTHON)
def test_objects_of_python_are_told_what_makes_arrow_data_of_them(name):
    x, way = OBJECTS_OF_PYTHON[name]
    if way is None:
        assert refusal(to_tensor, x).endswith(": make numbers or texts of them")
        return
    assert re.search(rf": (of samples )?{re.escape(way)} makes ", refusal(to_tensor, x))
    made = typed(way, x)
    made = pa.table(made) if way.startswith("record_batch(") else made
    assert isinstance(made, (pa.Array, pa.Table, pd.DataFrame, Array))
    if name == "paths":
        return  # which a Loader reads
    words = refusal(Loader, x)
    table = words.partition(" makes a table")[0].rpartition("pyarrow.table(")
    if table[1] and isinstance(x, (list, np.ndarray)):
        assert typed(table[1] + table[2], x).num_rows == len(x)


@pytest.mark.parametrize("nulls", ["NaN", "NAN", " nan ", "Mask"])
def test_a_policy_for_nulls_in_other_letters_is_asked_for(nulls):
    meant = nulls.strip().lower()
    for call in (to_tensor, to_tensor_dict, Loader, lambda x, nulls: Cast("float32", nulls=nulls)):
        with pytest.raises(ValueError, match=f'got "{nulls}": did you mean "{meant}"'):
            call(pa.table({"x": [1.5, None]}), nulls=nulls)


def test_a_storage_of_fields_has_the_way_out_of_its_type_by_physical_too():
    frame = pd.DataFrame({"x": pd.interval_range(0, 2)})
    for call in (to_tensor, lambda x, **options: list(Loader(x, **options))):
        assert refusal(call, frame, physical=True) == refusal(call, frame)


@pytest.mark.parametrize("x", [np.array([object(), None]), np.array([len])], ids=["two", "one"])
def test_arrays_of_objects_without_a_type_are_not_said_to_be_converted(x):
    with pytest.raises(pa.ArrowInvalid):
        pa.array(x)
    for call in (to_tensor, Array, Loader):
        assert refusal(call, x).endswith(": make numbers or texts of them")


def test_lists_of_several_kinds_are_no_tensor_of_numpy():
    for x in ([1, "a"], [2**70, "a"]):
        for call in (from_dlpack, record_batch):
            assert TEXTS in refusal(call, x)
    rows = [[2**70], [1]]
    assert 'numpy.stack(x).astype("float64")' in refusal(from_dlpack, rows)
    assert to_tensor(from_dlpack(np.stack(rows).astype("float64"))).tolist() == [[2.0**70], [1]]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([2**70, 1], "float64"),
        ([2**70, None], "float64"),
        ([2**70, 1.5], "float64"),
        ([LARGE, -1], "float64"),
        ([LARGE, 1], "uint64"),
        ([2**70, "a"], "str"),
        ([[2**70], [1]], "str"),
        ([{"b": 2**70}, {"b": 1}], "str"),
    ],
)
def test_a_column_of_pandas_of_large_integers_is_cast_to_what_holds_it(values, kind):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": pd.Series(values, dtype=object), "b": [1, 2]})
    for call in (
        to_tensor,
        lambda x: list(Loader(x)),
        lambda x: list(Loader(x, columns=["a"])),
        lambda x: list(Loader([x])),
        lambda x: list(Loader(x, columns=["a"], filter=pc.field("b") > 1)),
    ):
        with pytest.raises(OverflowError, match=rf'column "a" has integers .* astype\("{kind}"\)'):
            call(frame)
    with pytest.raises(OverflowError, match=rf'astype\("{kind}"\)'):
        to_tensor(frame["a"])
    assert pa.table(frame.astype({"a": kind})).num_rows == 2


TIMES, WORDS = np.array(["2020-01-01"], "M8[s]"), np.array(["x"])


@pytest.mark.parametrize(
    "column", [TIMES, WORDS, WORDS.astype(object)], ids=["times", "texts", "objects"]
)
def test_a_dict_of_tensors_and_of_what_pyarrow_converts_becomes_a_table(column):
    x = {"a": np.zeros(1), "t": column}
    way = "record_batch({**x, 't': pyarrow.array(x['t'])})"
    for call in (Loader, to_tensor, from_dlpack):
        assert f"{way} makes a table of it" in refusal(call, x)
    made = pa.record_batch(eval(way, {"record_batch": record_batch, "pyarrow": pa, "x": x}))
    assert made.schema.names == ["a", "t"]
    numbered = {1: np.zeros(2)}
    assert "record_batch({str(name): column for name" in refusal(Loader, numbered)


@pytest.mark.parametrize("dtype", ["M8[25s]", "M8[25ms]", "m8[7us]", "M8[2D]", "m8[3h]", "M8[ps]"])
def test_times_of_other_units_become_those_that_hold_them(dtype):
    times = np.arange(1000, 4000, 1000).astype(dtype)
    expected = times.astype(dtype[:3] + "ns]")
    x = {"t": times}
    for call, values in (to_tensor, times), (to_tensor, x), (Loader, x):
        way = re.search(r": ((?:pyarrow|record_batch).*?\)) makes ", refusal(call, values))[1]
        found = eval(way, {"pyarrow": pa, "x": values, "record_batch": record_batch})
        found = pa.record_batch(found)["t"] if values is x else found
        assert found.cast(pa.array(expected).type).equals(pa.array(expected))


@pytest.mark.parametrize("dtype", ["int4", "uint4", "int2"])
def test_integers_of_jax_of_fewer_bits_become_those_of_eight(dtype):
    x = pytest.importorskip("jax.numpy").ones(2, dtype)
    with pytest.raises(RuntimeError) as raised:
        from_dlpack(x)
    assert raised.value.__notes__ == ['x.astype("int8") is a tensor of its numbers']
    assert pa.array(from_dlpack(x.astype("int8"))).to_pylist() == [1, 1]


def test_the_method_of_an_array_names_the_function_that_pads():
    lists = pa.array([[1], [2, 3]])
    words = refusal(Array(lists).to_tensor)
    assert "pass pad= to arrow_dlpack.to_tensor for padded rows" in words
    assert to_tensor(lists, pad=0).values.tolist() == [[1, 0], [2, 3]]


def test_an_index_of_pandas_whose_name_is_no_text_is_left_out_by_the_way_out():
    x = pd.DataFrame({"x": [1.0]}, index=pd.Index([5], name=float("nan")))
    for call in to_tensor, lambda frame: list(Loader(frame)):
        with pytest.raises(TypeError) as raised:
            call(x)
        assert "x.reset_index(drop=True) leaves the index out" in raised.value.__notes__
    assert to_tensor(x.reset_index(drop=True)).tolist() == [[1.0]]


def test_the_error_of_a_producer_stays_where_an_extension_has_no_package_beside_it():
    """An extension of another package may be alone, without the functions for frames."""
    program = """
import sys
import arrow_dlpack
sys.modules["arrow_dlpack._frames"] = None
class Producer:
    def __arrow_c_stream__(self, requested_schema=None):
        raise ValueError("of the producer")
try:
    arrow_dlpack.to_tensor(Producer(), columns=["x"])
except ValueError as error:
    assert str(error) == "of the producer", error
else:
    raise AssertionError
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_numbers_of_a_series_of_times_are_taken_as_pandas_has_them():
    times = pd.Series(pd.date_range("2020-01-01", periods=2))
    assert 'numpy.asarray(x.astype("int64")) has its numbers' in refusal(from_dlpack, times)
    assert to_tensor(from_dlpack(np.asarray(times.astype("int64")))).shape == (2,)


def test_a_table_with_a_ragged_column_says_what_takes_the_others():
    table = pa.table({"a": ["x"], "b": [1]})
    for source in (table, pl.from_arrow(table)):
        assert "to_tensor(x, columns=[...]) leaves it out, and ragged" in refusal(asdlpack, source)
        assert to_tensor(source, columns=["b"]).tolist() == [[1]]


def test_a_pair_of_texts_or_numbers_is_no_column_with_a_mask():
    assert "texts are no tensor: pyarrow.array(x)" in refusal(record_batch, {"a": ("x", "y")})
    assert "numpy.asarray(x) makes a tensor of it" in refusal(record_batch, {"a": (1.0, 2.0)})


@pytest.mark.parametrize("rows", [[["a"]], [[[1]]], [[{"a": 1}]], [[None]]])
def test_lists_without_a_form_of_rows_name_none_that_fails(rows):
    table = pa.table({"c": rows})
    for call in (
        lambda x: Loader(x, format="matrix", columns=["c"]),
        lambda x: Loader(x, format="matrix", columns={"c": Dense()}),
        to_tensor,
    ):
        words = refusal(call, table)
        assert "ragged, or cast" not in words
        assert "Dense()" not in words
        assert "flatten" in words or "cast it to lists of the type you mean" in words


def test_a_scalar_of_pyarrow_is_a_tensor_by_its_value():
    for call in (from_dlpack, asdlpack):
        assert "numpy.asarray(x.as_py())" in refusal(call, pa.scalar(1))
    assert pa.array(from_dlpack(np.asarray(pa.scalar(1).as_py()))).to_pylist() == [1]


@pytest.mark.parametrize("dtype", ["int32", "uint8", "bool"])
def test_decimals_with_a_dtype_of_integers_are_floats_or_cast_first(dtype):
    whole = pa.array([decimal.Decimal("2.00"), decimal.Decimal("-1.00")])
    column = [whole, pa.array([whole.to_pylist()])]
    for call in (
        partial(to_tensor, whole, dtype=dtype),
        partial(to_tensor, pa.table({"x": whole}), dtype=dtype),
        partial(ragged, column[1], dtype=dtype),
        partial(features, whole, dtype=dtype),
        partial(features, whole, columns={"x": Cast(dtype)}),
        partial(label, whole, Cast(dtype)),
    ):
        words = refusal(call)
        assert "decimals become floats: " in words
        assert "cast it to integers first, which pyarrow.compute.cast does" in words
    assert to_tensor(pc.cast(whole, "int32")).tolist() == [2, -1]
    with pytest.raises(pa.ArrowInvalid):
        pc.cast(DECIMALS, "int32")
    assert "of floats, such as float64" in refusal(to_tensor, whole, out=np.empty(2, "int32"))


def test_a_dtype_that_nothing_becomes_is_rounded_to_by_what_has_it():
    torch = pytest.importorskip("torch")
    for dtype in "float8_e5m2", "float4_e2m1fn":
        words = refusal(to_tensor, pa.array([1.0]), dtype=dtype)
        assert "x.to(torch.float8_e5m2) and NumPy's x.astype(ml_dtypes.float4_e2m1fn) do" in words
    single = to_tensor(pa.array([1.0]), dtype="float32")
    assert np.asarray(single).astype(ml_dtypes.float4_e2m1fn).tolist() == [1]
    assert to_tensor(pa.array([1.0]), dtype="float32", framework="torch").to(
        torch.float8_e5m2
    ).tolist() == [1]


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float6_e2m3fn", "float4_e2m1fn"])
@pytest.mark.parametrize(
    ("other", "common"),
    [("float64", "float64"), ("float16", "float32"), ("int8", "float32"), ("bool", "float32"),
     ("int64", "float64")],
)  # fmt: skip
def test_small_floats_beside_other_numbers_are_floats_that_hold_them(name, other, common):
    stored = pa.array([0, 2], "uint8")
    small = pa.ExtensionArray.from_storage(pa.opaque(pa.uint8(), name, "dlpack"), stored)
    values = stored.to_numpy().view(getattr(ml_dtypes, name)).astype("float64")
    table = pa.table({"x": small, "y": pa.array([0, 1]).cast(other)})
    tensor = to_tensor(table)
    assert str(tensor.dtype) == common
    assert tensor.tolist() == [[values[0], 0], [values[1], 1]]


def test_intervals_of_pandas_become_tables_of_their_ends():
    series = pd.Series(pd.interval_range(0, 2))
    frame = pd.DataFrame({"a": series, "b": [1, 2]})
    (way,) = re.findall("in pandas (.*) has their ends", refusal(to_tensor, series))
    made = eval(way, {"pandas": pd, "x": series})
    assert to_tensor(made).tolist() == [[0, 1], [1, 2]]
    (way,) = re.findall("in pandas (.*) has their ends", refusal(to_tensor, frame))
    assert to_tensor(eval(way, {"x": frame})).tolist() == [[1, 0, 1], [2, 1, 2]]
    (way,) = re.findall("in pyarrow (.*), or x itself", refusal(to_tensor, pa.array(series)))
    assert to_tensor(eval(way, {"x": pa.array(series)})).tolist() == [[0, 1], [1, 2]]
    (batch,) = Loader(frame, columns=["a.left", "b"])
    assert batch["a.left"].tolist() == [0, 1]


def test_codes_of_structs_are_no_categories():
    frame = pd.DataFrame({"a": pd.cut([1, 2, 3], 2), "b": [1, 2, 3]})
    words = refusal(list, Loader(frame))
    assert "physical=True" in words
    assert "Categories" not in words
    (batch,) = Loader(frame, physical=True)
    assert batch["a"].tolist() == [0, 0, 1]


def test_a_table_that_has_no_columns_by_name_says_what_has_them():
    relation = duckdb.sql("select [1, 2] as x, 1 as y")
    reader = pa.table({"x": [[1, 2]]}).to_reader()
    for call, what in ((ragged, "ragged"), (partial(to_tensor, pad=0), "pad=")):
        way = f'{what} takes one column, and this is a table: pass x.to_arrow_table()["x"] for one'
        assert refusal(call, relation) == way
        assert call(relation.to_arrow_table()["x"])[0].tolist() in ([1, 2], [[1, 2]])
    assert 'pass x.read_all()["x"]' in refusal(ragged, reader)
    assert 'pass table["x"]' in refusal(ragged, pl.DataFrame({"x": [[1, 2]]}))


def test_memory_of_bfloat16_that_takes_a_result_is_that_of_torch():
    torch = pytest.importorskip("torch")
    words = refusal(to_tensor, pa.array([1.5]), out=np.zeros(1, ml_dtypes.bfloat16))
    assert "pass one like torch.empty(shape, dtype=torch.bfloat16)" in words
    out = torch.empty(1, dtype=torch.bfloat16)
    assert to_tensor(pa.array([1.5]), out=out) is out
    assert out.tolist() == [1.5]


@pytest.mark.parametrize("values", [[1, None], [1.5, None], [True, None], [1, 2]])
def test_arrays_of_pandas_become_tensors_by_arrow(values):
    array = pd.array(values)
    for call in (from_dlpack, asdlpack):
        assert "pyarrow.array(x) makes Arrow data of it, with nulls" in refusal(call, array)
    assert to_tensor(pa.array(array), nulls=0).tolist() == [value or 0 for value in values]


def test_sparse_arrays_of_pandas_have_all_their_values():
    array = pd.arrays.SparseArray([0, 1])
    assert "pyarrow.array(x.to_dense()) makes an array" in refusal(to_tensor, array)
    assert to_tensor(pa.array(array.to_dense())).tolist() == [0, 1]


@pytest.mark.parametrize("kind", ["csr_matrix", "coo_array"])
def test_sparse_arrays_of_scipy_have_all_their_values(kind):
    values = [[1.0, 0.0], [0.0, 2.0]]
    sparse = getattr(pytest.importorskip("scipy.sparse"), kind)(values)
    for call in to_tensor, from_dlpack, asdlpack:
        assert "x.toarray() is an array of all its values" in refusal(call, sparse)
    assert to_tensor(from_dlpack(sparse.toarray())).tolist() == values


class WithMask:
    """As awkward's arrays, whose mask is what makes one."""

    mask = object()

    def __array__(self, dtype=None, copy=None):
        return np.array([1, 2])


def test_an_attribute_that_is_called_mask_is_no_mask_of_values():
    assert refusal(from_dlpack, WithMask()).endswith("numpy.asarray(x) makes a tensor of it")


def test_runs_are_decoded_by_what_is_named():
    runs = pc.run_end_encode(pa.array([1.5, 1.5, None]))
    for column in (runs, pa.chunked_array([runs, runs])):
        assert "pyarrow.compute.run_end_decode(x) has its values" in refusal(to_tensor, column)
        table = pa.table({"a": column})
        way = 'pyarrow.compute.run_end_decode(table["a"])'
        for call in (to_tensor, to_tensor_dict, lambda x: list(Loader(x))):
            assert f"decode it first: {way} has its values" in refusal(call, table)
        decoded = eval(way, {"pyarrow": pa, "table": table})
        assert to_tensor(decoded, nulls=0).tolist()[:3] == [1.5, 1.5, 0]
    lists = pa.FixedSizeListArray.from_arrays(pc.run_end_encode(pa.array([1.5, 1.5])), 2)
    way = "of views, codes, and inside lists pyarrow.array(x.to_pylist(), type) with the type of"
    assert way in refusal(to_tensor, lists)
    decoded = pa.array(lists.to_pylist(), pa.list_(pa.float64(), 2))
    assert to_tensor(decoded).tolist() == [[1.5, 1.5]]


def test_what_pyarrow_does_not_decode_or_cast_is_made_of_its_values():
    words = pa.array(["a", "b"], pa.string_view())
    coded = partial(Loader, columns={"a": Categories(["a", "b"])})
    codes = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), words)
    assert "pyarrow.array(x.to_pylist(), type) of views" in refusal(ragged, codes)
    assert ragged(pa.array(codes.to_pylist(), pa.string())).offsets.tolist() == [0, 1, 2]
    for values in words, words.cast(pa.string()).dictionary_encode():
        runs = pa.RunEndEncodedArray.from_arrays(pa.array([1, 2], pa.int32()), values)
        table = pa.table({"a": runs})
        way = 'pyarrow.array(table["a"].to_pylist(), type)'
        assert f"{way} has values that it takes" in refusal(coded, table)
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([1], pa.int32()), pa.array([[1]]))
    assert "AsArrow() has its rows" in refusal(coded, pa.table({"a": runs}))
    for kind in pa.list_view(pa.int64()), pa.large_list_view(pa.int64()):
        table = pa.table({"a": pa.array([[1, 2], [3, 4]], kind), "b": [1, 2]})
        of_rows = pa.array([[[1, 2]]], pa.list_(kind))
        for source in table, of_rows:
            assert "pyarrow.array(x.to_pylist(), type) makes lists" in refusal(to_tensor, source)
        shaped = pa.list_(pa.list_(pa.int64(), 2), 1)
        assert to_tensor(pa.array(of_rows.to_pylist(), shaped)).tolist() == [[[1, 2]]]


@pytest.mark.parametrize("depth", range(2, 6))
def test_lists_of_lists_of_any_depth_are_told_as_such(depth):
    row, kind = 1.0, pa.float32()
    for _ in range(depth):
        row, kind = [row, row], pa.list_(kind)
    table = pa.table({"x": pa.array([row], kind)})
    assert "the rows' items are lists themselves" in refusal(to_tensor, table)
    assert "the rows' items are lists themselves" in refusal(to_tensor_dict, table)


@pytest.mark.parametrize(
    "kind",
    [pa.list_(pa.list_(pa.string())), pa.list_(pa.list_(pa.string(), 1)), pa.list_(pa.binary(), 1)],
    ids=str,
)
def test_texts_in_lists_are_told_to_be_flattened(kind):
    value = [["a"]] if pa.types.is_list(kind) else ["a"]
    table = pa.table({"x": pa.array([value], kind)})
    for source in table, table["x"]:
        assert "flatten the lists first" in refusal(to_tensor, source)
    words = pc.list_flatten(table["x"], recursive=True)
    assert ragged(words).offsets.tolist() == [0, 1]


def objects(*values):
    made = np.empty(len(values), object)
    made[:] = values
    return made


@pytest.mark.parametrize(
    "x",
    [
        [np.datetime64("2020-01-01T05", "h")],
        [np.timedelta64(5, "M")],
        [np.timedelta64(5, "ps")],
        [datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1, 5)],
        [pd.Timestamp("2020", tz="UTC"), pd.Timestamp("2020")],
        [datetime.time(1), datetime.date(2020, 1, 1)],
        objects(np.ones((2, 2)), np.ones((3, 2))),
        objects(torch.ones(2), torch.ones(3)),
        objects(pd.Series([1]), pd.Series([1, 2])),
        objects(np.array(1), np.array(2)),
        objects(np.array([1j]), np.array([1j, 2])),
        objects(np.timedelta64(5, "h")),
        objects(1 + 2j, 3),
        objects(datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1, 5)),
    ],
    ids=lambda x: repr(x)[:40],
)
def test_values_of_which_pyarrow_makes_no_array_name_what_was_tried(x):
    call = to_tensor if isinstance(x, list) else from_dlpack
    words = [refusal(call, x), *noted(call, x)][-1]
    (way,) = re.findall(r"((?:pyarrow\.array|from_ragged|from_dlpack)\(.*\)) makes", words)
    names = {"x": x, "numpy": np, "pyarrow": pa, "from_ragged": from_ragged}
    made = eval(way, names | {"from_dlpack": from_dlpack})
    assert len(made) == len(x)
    if "str" in way:
        assert len(set(pa.array(made).to_pylist()[0])) > 0
    else:
        assert not str(made.type).startswith("int") or np.ndim(x[0]) == 0


@pytest.mark.parametrize("x", [[(1, "a"), (2, "b")], [[1, datetime.date(2020, 1, 1)]]], ids=str)
def test_rows_of_several_types_are_a_table(x):
    for call in to_tensor, Array, Loader:
        words = refusal(call, x)
        (way,) = re.findall(r"(pyarrow\.table\(.*\)) makes a table of rows", words)
        assert eval(way, {"x": x, "pyarrow": pa}).to_pylist() == [
            {"0": row[0], "1": row[1]} for row in x
        ]


LARGE_ID = 2**60 + 1
NA_ROWS = list(pd.DataFrame({"n": pd.array([1, None]), "s": ["x", "y"]}).itertuples(index=False))
SAMPLES = {
    "texts": [{"id": "a", "e": torch.ones(2)}, {"id": "b", "e": torch.zeros(2)}],
    "lengths": [{"id": 1, "e": np.array([1, 2])}, {"id": 2, "e": np.array([3])}],
}


@pytest.mark.parametrize(
    ("x", "rows"),
    [
        ([{"a": 1}, {"a": 2, "b": 0.5}], [(1, None), (2, 0.5)]),
        ([{"a": pd.Timestamp("2020")}, {"a": pd.NaT}], [(pd.Timestamp("2020"),), (None,)]),
        ([(1, True), (2, None)], [(1, True), (2, None)]),
        ([(2**53 + 1, 0.5)], [(2**53 + 1, 0.5)]),
        (NA_ROWS, [(1, "x"), (None, "y")]),
        ({"n": {0: 1, 1: 2}}, [(1,), (2,)]),
        ({"n": {0: LARGE_ID, 1: None}}, [(LARGE_ID,), (None,)]),
        ([{"n": LARGE_ID, "s": "a"}, {"s": 7}], [(LARGE_ID,), (None,)]),
        (np.array([[1, "a"], [2, "b"]], object), [(1, "a"), (2, "b")]),
        (SAMPLES["texts"], [("a", [1, 1]), ("b", [0, 0])]),
        (SAMPLES["lengths"], [(1, [1, 2]), (2, [3])]),
    ],
    ids=lambda x: type(x).__name__,
)
def test_rows_of_python_name_a_table_of_all_their_columns(x, rows):
    words = refusal(to_tensor, x)
    pattern = r"((?:pyarrow\.table|pandas\.DataFrame)\(.*\)) makes a (?:table|frame)"
    (way,) = re.findall(pattern, words)
    made = eval(way, {"x": x, "pyarrow": pa, "pandas": pd})
    if isinstance(made, pd.DataFrame):
        made = pa.Table.from_pandas(made[["n"]] if "n" in made else made, preserve_index=False)
    assert [tuple(row.values()) for row in made.to_pylist()] == rows


def test_rows_of_tensors_without_numbers_alone_are_a_table():
    for x in [(1, "a")], [(True, 0.5), (False, None)], [(TODAY, decimal.Decimal("1.5"))]:
        for call in from_dlpack, record_batch:
            assert "(zip(*x, strict=True))}) makes a table of rows" in refusal(call, x)


def test_rows_of_sqlite_are_structs():
    connection = sqlite3.connect(":memory:")
    connection.row_factory = sqlite3.Row
    x = connection.execute("select 1 a, 'x' b").fetchall()
    for call in to_tensor, from_dlpack:
        assert "pyarrow.array(list(map(dict, x))) makes an array of structs" in refusal(call, x)
    assert pa.array(list(map(dict, x))).to_pylist() == [{"a": 1, "b": "x"}]


def test_what_holds_several_tables_names_one():
    frame = pd.DataFrame({"a": [1]})
    for x in {"train": frame, "test": frame}, {"train": pa.table(frame), "test": pa.table(frame)}:
        assert refusal(to_tensor, x).endswith(": pass one of these tables, as x['train']")


def test_a_pair_of_values_and_their_mask_is_one_array():
    x = to_tensor(pa.array([1, None, 3]), nulls="mask")
    assert "from_dlpack(x[0], mask=x[1]) makes" in refusal(from_dlpack, x)
    assert pa.array(from_dlpack(x[0], mask=x[1])).to_pylist() == [1, None, 3]
    assert "record_batch(dict(zip(names, x)))" in refusal(from_dlpack, torch.ones(3, 2).topk(1))


def test_values_that_are_missing_are_nulls_in_what_a_hint_makes():
    """Their texts would be "nan" and "<NA>"."""
    for missing in None, NAN, pd.NA, pd.NaT:
        for value in "a", TODAY, b"a", decimal.Decimal("1.5"), [1, 2]:
            for x in [value, missing], [missing, value]:
                (way,) = re.findall(
                    r": (pyarrow\.array\(.*\)) makes an array", refusal(to_tensor, x)
                )
                made = typed(way, x).to_pylist()
                assert [one is None for one in made] == [one is missing for one in x]


@pytest.mark.parametrize(
    ("x", "way"),
    [
        ({"x": np.ones(2), "rate": 0.1}, "x['rate'] is float, and no column: leave it out"),
        ({"x": [object()], "y": [1]}, "pyarrow makes no array of x['x']: leave it out, or make"),
        (
            {"x": np.ones(2), "y": [torch.ones(2), 5]},
            "pyarrow makes no array of x['y']: leave it out, or make",
        ),
        ([{"id": LARGE, "e": np.ones(2)}, {"id": 5, "e": np.ones(2)}], ": make numbers or texts"),
        ([(np.ones(2), LARGE), (np.ones(2), 5)], ": make numbers or texts"),
    ],
    ids=["number", "objects", "tensor and number", "unsigned of samples", "unsigned in rows"],
)
def test_what_is_no_column_of_a_dict_is_named(x, way):
    for call in to_tensor, from_dlpack, Loader:
        assert way in refusal(call, x)


def test_floats_that_round_are_told_in_tensors_too():
    for x in [2**53 + 1, 0.5], [2**63 + 1, -1], [np.int64(2**53 + 1), 0.5]:
        words = refusal(from_dlpack, x)
        assert 'numpy.asarray(x, "float64") makes a tensor of it, which rounds' in words
    assert "numpy.asarray(x) makes a tensor of it" in refusal(from_dlpack, [2**53, 0.5])


def test_unsigned_integers_are_told_the_dtype_that_holds_them():
    """NumPy makes floats of them beside others, which round."""
    for x in [2**63 + 5, 1, 2**62 + 1], [[2**63 + 5], [1]]:
        (way,) = re.findall(
            r"(numpy\.asarray\(.*?\)) (?:makes|is) a tensor", refusal(from_dlpack, x)
        )
        assert asdlpack(typed(way, x)).tolist() == x


def test_rows_of_which_numpy_hides_values_keep_them_hidden():
    x = [np.ma.masked_array([1, -999], [0, 1]), np.ma.masked_array([3, 4])]
    for call in to_tensor, from_dlpack:
        (way,) = re.findall(r"(numpy\.ma\.stack\(x\)) has rows", refusal(call, x))
    rows = typed(way, x)
    (way,) = re.findall(r"(from_dlpack\(x\.data, .*\)) makes", refusal(from_dlpack, rows))
    assert pa.array(typed(way, rows)).to_pylist() == [[1, None], [3, 4]]


@pytest.mark.parametrize("at", [0, 1])
def test_rows_of_tensors_of_which_one_is_missing_are_ragged(at):
    x = [torch.ones(2)]
    x.insert(at, None)
    assert "from_ragged(x) makes lists of rows of any length, with nulls" in refusal(from_dlpack, x)
    assert "those of from_ragged(x)" in refusal(to_tensor, x)
    assert pa.array(from_ragged(x)).is_null().to_pylist()[at]


def test_a_path_is_told_what_reads_its_format(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table, frame = pa.table({"a": [1]}), pd.DataFrame({"a": [1]})
    pq.write_table(table, "a.parquet")
    frame.to_csv("a.CSV", index=False)
    frame.to_json("a.jsonl", orient="records", lines=True)
    frame.to_feather("a.feather")
    np.save("a.npy", np.ones(1))
    Image.new("L", (2, 2)).save("a.png")
    for name in "a.parquet", "a.CSV", "a.jsonl", "a.feather", Path("a.feather"):
        words = refusal(to_tensor, name)
        (way,) = re.findall(r"if it is a path, (pyarrow\.dataset\.dataset\(.*?\)) opens it", words)
        assert typed(way, name).to_table().column("a").to_pylist() == [1]
    for call in to_tensor, from_dlpack:
        assert "numpy.load(x) reads" in refusal(call, "a.npy")
        assert "numpy.asarray(PIL.Image.open(x)) has the pixels" in refusal(call, "a.png")


def test_a_hint_looks_at_what_is_large_by_its_memory():
    """Of arrays of Python's `array`, which tells no `nbytes`, it copied all numbers as objects."""
    x = [array_of("d", bytes(800_000))] * 3
    tracemalloc.start()
    try:
        refusal(to_tensor, x)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_no_hint_follows_what_holds_itself_or_copies_what_is_large():
    x = []
    x.append(x)
    mixed = [np.datetime64(1, "D"), np.int32(1)]
    for value in x, [x], {"a": x}, mixed, [np.array([1], "M8[D]"), np.array([1])]:
        for call in to_tensor, from_dlpack, Array, Loader, ragged:
            refusal(call, value)
    large = [torch.zeros(1_000_000), torch.zeros(1_000_001)]
    assert "those of from_ragged(x)" in refusal(to_tensor, large)


@pytest.mark.parametrize(
    "dtype", ["c8", "M8[h]", "m8[h]", "g", "V3", ("M8[s]", (2,)), ("U2", (2,))], ids=str
)
def test_fields_of_records_that_pyarrow_does_not_take_are_taken_one_by_one(dtype):
    own = (dtype,) if isinstance(dtype, str) else dtype
    x = np.zeros(2, [("id", "i8"), ("z", *own)])
    (note,) = noted(from_dlpack, x)
    assert note.startswith("take its fields one by one, as from_dlpack(x['z'])")
    assert from_dlpack(x["id"].copy()).to_tensor().tolist() == [0, 0]
    if dtype != "c8":
        assert noted(from_dlpack, x["z"])


def test_codes_of_a_loop_are_of_one_type():
    table = pa.table(
        {"x": pa.array(["a"]).dictionary_encode().cast(pa.dictionary("int8", "string"))}
    )
    assert "physical=True for its int32 values" in refusal(lambda x: list(Loader(x)), table)
    (batch,) = Loader(table, physical=True)
    assert batch["x"].dtype == "int32"
    assert "physical=True for its int8 values" in refusal(to_tensor, table["x"])


def test_paths_by_name_are_passed_one_by_one(tmp_path):
    for path in "data/a.parquet", "a.csv", tmp_path:
        words = refusal(Loader, {"train": path})
        assert "pass one of these paths, as x['train'], or list(x.values()) for all" in words
    assert "from_pylist([x]) makes a table of one row" in refusal(Loader, {"name": "Bob"})


def test_a_type_of_polars_in_a_column_without_a_name_is_told_so():
    series = pl.Series([1, 2], dtype=pl.Int128)
    for data in series, series.to_frame(), series.implode():
        assert refusal(to_tensor, data).startswith("a column without a name is of a type of polars")
    assert to_tensor(series.cast(pl.Int64)).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("values", "note"),
    [([1 + 2j], "asdlpack(x.to_numpy()) is a tensor of it"),
     (pd.arrays.SparseArray([0]), "x.sparse.to_dense() has its values"),
     pytest.param(np.array([1.5], "longdouble"), 'x.astype("float64") has its values',
                  marks=system.needs_long_double),
     (np.array([1], ">i4"), 'x.astype("int32") has its values'),
     ([np.ones((2, 3))],
      'x.map(numpy.ravel, na_action="ignore") has the items of each of its arrays as a list')],
)  # fmt: skip
def test_a_series_that_arrow_has_no_type_for_says_what_converts_it(values, note):
    series = pd.Series(values)
    frame = pd.DataFrame({"a": series})
    with pytest.raises((NotImplementedError, TypeError, ValueError)) as refused:
        to_tensor(series)
    assert note in refused.value.__notes__
    made = re.match(r"(.*\)) (has|is|makes)", note)[1]
    assert len(eval(made, {"asdlpack": asdlpack, "numpy": np, "x": series})) == 1
    for call in (to_tensor, lambda x: list(Loader(x))):
        with pytest.raises((NotImplementedError, TypeError, ValueError)) as refused:
            call(frame)
        assert "x.drop(columns=['a']) leaves it out" in "".join(refused.value.__notes__)


def test_columns_of_one_name_say_how_others_are_read():
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2]), pa.array([3])], ["x", "x", "y"])
    for call in (
        partial(to_tensor, columns=["x"]),
        to_tensor_dict,
        Loader,
        lambda x: Loader([x, x], columns=["x"]),
    ):
        with pytest.raises(KeyError, match="rename all but one, or name others in columns="):
            list(call(table))
    for call in (
        lambda x: Loader(Mix([(x, 1), (x, 1)]), columns=["x"]),
        lambda x: Loader(x, columns=["y"], filter=pc.field("x") > 1),
        lambda x: Loader(x, columns={"x": Categories.scan()}),
    ):
        with pytest.raises(KeyError, match="rename all but one"):
            list(call(table))
    assert to_tensor(table.rename_columns(["x", "z", "y"]), columns=["x"]).tolist() == [[1]]
    assert to_tensor(table, columns=["y"]).tolist() == [[3]]
    frame = table.to_pandas()
    with pytest.raises(ValueError, match="Duplicate column names") as refused:
        to_tensor(frame)
    (note,) = refused.value.__notes__
    way = note.removesuffix(" has the first column of each name")
    assert to_tensor(eval(way, {"x": frame})).tolist() == [[1, 3]]


@pytest.mark.parametrize("column", [["x", "y"], [b"x", b"yy"]])
def test_a_label_is_not_left_out_with_columns(column):
    words = refusal(label, pa.array(column))
    assert "make codes of it with Categories([...])" in words
    assert "columns=" not in words
    assert label(pa.array(column), Categories(column)).tolist() == [0, 1]


def test_of_a_label_that_is_a_struct_a_field_is_taken():
    table = pa.table({"s": [{"q": 1}, {"q": 2}], "z": [1, 2]})
    words = refusal(Loader, table, columns=["z"], label="s")
    assert words.endswith('take a field of it as the label, as "a.b" is field b of column a')
    ((_, labels),) = Loader(table, columns=["z"], label="s.q")
    assert labels.tolist() == [1, 2]


def test_a_dictionary_of_texts_is_cast_to_them_as_its_library_does():
    words = ["a", "bc"]
    coded = pa.array(words).dictionary_encode()
    for x in coded, pa.chunked_array([coded]), pd.Series(words, dtype="category"):
        assert "in pyarrow pyarrow.array(x).dictionary_decode()" in refusal(ragged, x)
        assert ragged(pa.array(x).dictionary_decode()).offsets.tolist() == [0, 1, 3]
    x = pl.Series(words, dtype=pl.Categorical)
    assert "in polars x.cast(polars.String)" in refusal(ragged, x)
    assert ragged(x.cast(pl.String)).offsets.tolist() == [0, 1, 3]


def test_an_iterator_of_arrays_or_of_rows_says_what_makes_tables():
    arrays, rows = [np.arange(2.0), np.arange(3.0)], [(TODAY, 2), (TODAY, 4)]
    frame = pd.DataFrame({"a": [TODAY], "b": [2]}, index=[7])
    words = refusal(list, Loader(frame.itertuples()))
    way = "pyarrow.Table.from_pylist([row._asdict() for row in x])"
    assert words.endswith(f": {way} makes one of rows")
    made = eval(way, {"pyarrow": pa, "x": frame.itertuples()})
    assert made.to_pylist() == [{"Index": 7, "a": TODAY, "b": 2}]
    for x in frame.iterrows(), frame.items():
        assert refusal(list, Loader(x)).endswith(": pass the frame that it goes through")
    words = refusal(list, Loader(iter(arrays)))
    way = '(arrow_dlpack.record_batch({"x": batch}) for batch in x)'
    assert words.endswith(f": {way} makes tables of tensors")
    made = eval(way, {"arrow_dlpack": SimpleNamespace(record_batch=record_batch), "x": arrays})
    assert [batch["x"].tolist() for batch in Loader(made)] == [[0, 1], [0, 1, 2]]
    words = refusal(list, Loader(iter(rows)))
    way = "pyarrow.Table.from_pylist([dict(zip(names, row)) for row in x])"
    assert words.endswith(f": {way} makes one of rows")
    (batch,) = Loader(eval(way, {"pyarrow": pa, "names": ["a", "b"], "x": rows}), columns=["b"])
    assert batch["b"].tolist() == [2, 4]


def test_arrays_of_which_numpy_makes_no_tensor_name_their_conversion():
    for name in "bfloat16", "float8_e5m2", "int4", "uint2":
        array = np.array([1, 0], getattr(ml_dtypes, name))
        kind = "int8" if "int" in name else "float32"
        if noted(from_dlpack, array):
            assert noted(from_dlpack, array) == [f'x.astype("{kind}") is a tensor of its numbers']
            assert noted(record_batch, {"x": array}) == noted(from_dlpack, array)
        assert pa.array(from_dlpack(array.astype(kind))).to_pylist() == [1, 0]
    packed = np.array([(1, 0.5), (2, 1.5)], [("a", "i1"), ("b", "f8")])
    way = "x.copy() is a tensor of its elements, side by side"
    assert noted(record_batch, {"b": packed["b"]}) == noted(asdlpack, packed["b"]) == [way]
    assert pa.array(from_dlpack(packed["b"].copy())).to_pylist() == [0.5, 1.5]


@pytest.mark.parametrize("make", [np.array, pd.Series, pd.Index, pl.Series, dict.fromkeys])
@pytest.mark.parametrize("are_texts", [True, False])
def test_arrays_and_series_of_paths_are_lists_of_them(make, are_texts, tmp_path):
    paths = [tmp_path / f"{at}.parquet" for at in range(2)]
    for at, path in enumerate(paths):
        pq.write_table(pa.table({"x": [at]}), path)
    x = make(list(map(str, paths)) if are_texts else paths)
    x = x.keys() if isinstance(x, dict) else x
    way = "sorted(x)" if isinstance(x, Set) else "list(x)"
    for read in (Loader, lambda x: Loader(Mix([(x, 1)]))):
        assert refusal(read, x).endswith(f": {way} is a list of paths")
    made = {"sorted(x)": sorted, "list(x)": list}[way](x)
    assert [batch["x"].tolist() for batch in Loader(made, batch_size=2)] == [[0, 1]]


def test_an_iterator_of_paths_is_a_list_of_them_first(tmp_path):
    for at in range(2):
        pq.write_table(pa.table({"x": [at]}), tmp_path / f"{at}.parquet")
    iterators = tmp_path.glob("*.parquet"), tmp_path.iterdir(), map(str, tmp_path.iterdir())
    for x in iterators:
        assert "sorted(x) is a list of them" in refusal(lambda x=x: list(Loader(x)))
    (batch,) = Loader(sorted(tmp_path.glob("*.parquet")), batch_size=2)
    assert batch["x"].tolist() == [0, 1]


def test_a_series_that_has_no_paths_is_a_column():
    for x in (pd.Series([1.5, 2]), pd.Series([], dtype=object), np.zeros((2, 2)), np.array(1.5)):
        with pytest.raises(TypeError) as refused:
            Loader(x)
        assert "paths" not in str(refused.value)
    (batch,) = Loader(pd.Series([1.5, 2]), format="matrix")
    assert batch.tolist() == [1.5, 2]


def test_streams_of_datafusion_name_what_makes_batches_of_them():
    frame = datafusion.SessionContext().from_pydict({"x": [1, 2, 3]})
    way = "(batch.to_pyarrow() for batch in x)"
    words = refusal(to_tensor, frame.execute_stream())
    assert f": {way} makes batches of it" in words
    made = re.search(r"pyarrow\.Table\.from_batches\(.*\]\)", words)[0]
    table = eval(made, {"pyarrow": pa, "x": frame.execute_stream()})
    assert to_tensor(table).tolist() == [[1], [2], [3]]
    (batch,) = Loader(eval(way, {"x": frame.execute_stream()}))
    assert batch["x"].tolist() == [1, 2, 3]
    batch = next(iter(frame.execute_stream()))
    for read in (lambda x: to_tensor(next(x)), lambda x: list(Loader(x))):
        assert "x.to_pyarrow() is one of pyarrow's" in refusal(read, frame.execute_stream())
    assert to_tensor(batch.to_pyarrow()).tolist() == [[1], [2], [3]]


def test_keys_of_jax_are_told_as_what_they_are():
    jax = pytest.importorskip("jax")
    keys = jax.random.split(jax.random.key(0), 3)
    for call in to_tensor, from_dlpack, record_batch:
        assert "jax.random.key_data(x)" in refusal(call, keys)
    assert asdlpack(jax.random.key_data(keys)).shape == (3, 2)


def test_what_a_loader_does_not_read_names_what_it_does():
    torch = pytest.importorskip("torch")
    data = torch.utils.data.TensorDataset(torch.zeros(3, 2), torch.ones(3))
    assert "record_batch(dict(zip(names, x.tensors)))" in refusal(Loader, data)
    batch = record_batch(dict(zip(["x", "y"], data.tensors, strict=True)))
    assert next(iter(Loader(batch, columns=["y"], batch_size=3)))["y"].tolist() == [1, 1, 1]
    assert refusal(Loader, {"train": ["a.parquet"]}).endswith(
        "pass one of these paths, as x['train']"
    )
    datasets = pytest.importorskip("datasets")
    several = [datasets.Dataset.from_dict({"x": [1.0]})] * 2
    assert refusal(Loader, several).endswith("datasets.concatenate_datasets(x) is one dataset")
    assert len(next(iter(Loader(datasets.concatenate_datasets(several), batch_size=9)))["x"]) == 2


def test_arrays_of_hugging_face_name_the_cast_that_makes_rows_of_one_shape():
    datasets = pytest.importorskip("datasets")
    rows = {"m": [[[0, 1], [1, 0], [1, 1]]] * 4}
    for kind in ("float32", "int8"):
        features = datasets.Features({"m": datasets.Array2D((3, 2), kind)})
        x = datasets.Dataset.from_dict(rows, features)
        for refused in refusal(list, Loader(x)), refusal(to_tensor_dict, x.data.table):
            way = re.search(r"x\.cast_column\(.*\)\)", refused).group()
            (batch,) = Loader(eval(way, {"datasets": datasets, "x": x}), batch_size=4)
            assert batch["m"].shape == (4, 3, 2)
            assert refused.partition(way)[2].startswith(" does for rows of shape (3, 2)")


def test_a_list_of_sources_that_are_no_tables_names_what_reads_them(tmp_path):
    """Lazy queries are not asked for their columns, of which polars warns."""
    table, frame = pa.table({"x": [1]}), pl.DataFrame({"x": [2]})
    pq.write_table(table, tmp_path / "a.parquet")
    dataset = pytest.importorskip("datasets").Dataset.from_dict({"x": [3]})
    others = [
        [dataset, table],
        [table, dataset],
        [dataset, dataset.to_iterable_dataset()],
        [frame.lazy(), table],
        [pq.ParquetFile(tmp_path / "a.parquet"), pq.ParquetFile(tmp_path / "a.parquet")],
    ]
    for several in others:
        assert refusal(Loader, several).endswith(
            "Mix([(source, weight), ...]) reads sources of any kinds"
        )
        (batch,) = Loader(Mix([(source, 1) for source in several]), batch_size=9)
        assert len(batch["x"]) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        told = refusal(Loader, [frame.lazy()] * 2)
    assert told.endswith("polars.concat(x) is one query")
    (batch,) = Loader(pl.concat([frame.lazy()] * 2), batch_size=9)
    assert len(batch["x"]) == 2


def test_a_filter_of_times_with_and_without_a_zone_names_both_ways():
    zoned = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    naive = zoned.replace(tzinfo=None)
    for kind, wrong, right in (("UTC", naive, zoned), (None, zoned, naive)):
        times = pa.array([naive, naive.replace(year=2027)], pa.timestamp("us", kind))
        table = pa.table({"x": [1, 2], "t": times})
        told = refusal(Loader, table, columns=["x"], filter=pc.field("t") > wrong)
        assert "tzinfo=datetime.UTC) has a zone, and x.replace(tzinfo=None)" in told
        (batch,) = Loader(table, columns=["x"], filter=pc.field("t") > right)
        assert batch["x"].tolist() == [2]


def test_a_date_beside_times_of_a_zone_is_that_of_the_zone():
    zone, day = "America/New_York", datetime.date(2024, 1, 2)
    parts = [pa.table({"t": [day]}), pa.table({"t": pa.array([0], pa.timestamp("s", zone))})]
    words = refusal(lambda: list(Loader(parts, physical=True)))
    (way,) = re.findall(r"(pyarrow\.compute\.assume_timezone\(.*?, zone\)) for", words)
    assert "a cast takes dates for those of UTC" in words
    names = {"x": parts[0]["t"], "zone": zone}
    made = eval(way.replace("pyarrow.compute", "compute"), names | {"compute": pc})
    parts[0] = pa.table({"t": made})
    batches = [batch["t"].tolist() for batch in Loader(parts, physical=True)]
    assert batches == [[1704171600], [0]]


def test_csv_files_of_times_of_one_of_which_has_a_zone_are_read_and_cast(tmp_path):
    paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
    paths[0].write_text("t\n2024-10-27T02:30:00+02:00\n")
    paths[1].write_text("t\n2024-10-27T00:30:00\n")
    words = refusal(lambda: list(Loader(paths, physical=True)))
    assert "pyarrow.csv.read_csv(path).cast(schema) one as another" in words
    first, other = map(pa.csv.read_csv, paths)
    parts = [first, other.cast(first.schema)]
    assert len({batch["t"].item() for batch in Loader(parts, physical=True)}) == 1


def test_pandas_is_told_what_takes_arrow_data():
    texts = Array(pa.array(["a"]))
    with pytest.raises(BufferError) as refused:
        pd.Series(texts)
    assert "pandas.Series.from_arrow(x)" in refused.value.__notes__[0]
    assert pd.Series.from_arrow(texts).tolist() == ["a"]
    both = record_batch({"id": pa.array(["a"]), "s": np.ones(1)})
    with pytest.raises(BufferError) as refused:
        pd.DataFrame(both)
    assert "DataFrame.from_arrow(x) of structs" in refused.value.__notes__[0]
    assert pd.DataFrame.from_arrow(both).columns.tolist() == ["id", "s"]


def test_a_tensor_is_made_a_column_for_a_function():
    double = tensor_udf([Input("x", shape=[2])], Output(shape=[2]))(lambda x: x * 2)
    for x in np.ones((3, 2), "float32"), torch.ones(3, 2):
        assert "arrow_dlpack.from_dlpack(x) makes one of a tensor" in refusal(double, x)
        assert len(double(from_dlpack(x))) == 3


def test_what_is_no_encoder_names_what_is():
    loader = Loader(pa.table({"x": [1.5]}))
    encoder = loader.encoder()
    assert "as x.encoder() is one" in refusal(
        lambda: Loader(pa.table({"x": [2.5]}), encoder=loader)
    )
    for other in encoder.to_json(), loader, None:
        told = refusal(lambda other=other: encoder.diff(other))
        assert "Encoder.from_json(x) is one of a text, and loader.encoder() of a Loader" in told
    assert encoder.diff(Encoder.from_json(encoder.to_json())) == []


def test_codes_have_the_dtype_of_any_library():
    table = pa.table({"x": ["a", "b"]})
    for dtype in "int64", np.int64, np.dtype("int64"), pa.int64(), pl.Int64, torch.int64:
        for wish in Categories(["a", "b"], dtype=dtype), Categories.scan(dtype=dtype):
            (batch,) = Loader(table, columns={"x": wish}, framework="numpy")
            assert batch["x"].dtype == np.int64
    with pytest.raises(ValueError, match="dtype must be 'int32' or 'int64', got 'int8'"):
        Categories(["a"], dtype=np.int8)


def test_rows_of_pydantic_are_dicts_by_model_dump():
    row = pydantic.create_model("Row", x=float)(x=2.5)
    encoder = Loader(pa.table({"x": [1.5]}), framework="numpy").encoder()
    assert "x.model_dump() is one" in refusal(lambda: encoder([row]))
    assert encoder([row.model_dump()])["x"].tolist() == [2.5]


def test_an_iterator_of_lists_of_rows_names_what_makes_tables_of_them():
    def chunks():
        return ([{"x": 2 * number}, {"x": 2 * number + 1}] for number in range(2))

    way = "map(pyarrow.Table.from_pylist, x)"
    with pytest.raises(TypeError, match=re.escape(f"{way} makes tables of lists of rows")):
        list(Loader(chunks()))
    batches = eval(way, {"map": map, "pyarrow": pa, "x": chunks()})
    assert [batch["x"].tolist() for batch in Loader(batches)] == [[0, 1], [2, 3]]
