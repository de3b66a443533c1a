"""Tables as matrices, against pyarrow's own and NumPy's, and matrices as tables."""

import functools
import itertools
import pickle

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
import torch
from arrow_dlpack import Array, explain, from_dlpack, record_batch, to_tensor, to_tensor_dict
from frameworks import DTYPES
from hypothesis import given, settings
from hypothesis import strategies as st

# Around the numbers of rows that are worked on at once.
LENGTHS = [0, 1, 2, 7, 63, 64, 65, 129, 1000, 4097]


def as_numpy(obj, **options):
    return np.from_dlpack(to_tensor(obj, **options))


def column_of(dtype, length, random, nulls=0.0):
    """Small numbers of either sign where there are signs, some of them null."""
    low = 0 if dtype == "bool" or dtype.startswith("u") else -99
    values = random.integers(low, 2 if dtype == "bool" else 100, length).astype(dtype)
    mask = random.random(length) < nulls
    return pa.array(values, mask=mask if nulls else None)


def split(array, random):
    """The array in chunks."""
    ends = np.sort(random.integers(0, len(array) + 1, random.integers(0, 4)))
    starts = [0, *ends.tolist(), len(array)]
    chunks = [array[start:end] for start, end in itertools.pairwise(starts)]
    return pa.chunked_array(chunks, array.type)


def numpy_type(data_type):
    return "bool" if pa.types.is_boolean(data_type) else str(np.dtype(data_type.to_pandas_dtype()))


def widest(*dtypes):
    """What NumPy makes of two, and then of that and the third."""
    return str(functools.reduce(np.promote_types, dtypes))


def pyarrows_dtype(batch, **options):
    """None where pyarrow does not work."""
    try:
        tensor = batch.to_tensor(**options)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid, TypeError):
        return None
    return str(np.dtype(tensor.type.to_pandas_dtype()))


def is_ours_alone(dtypes):
    """Where pyarrow has int64, into which not every uint64 goes."""
    signed = any(dtype.startswith("int") for dtype in dtypes)
    return signed and "uint64" in dtypes


@pytest.mark.parametrize("one", DTYPES)
def test_two_columns_have_the_dtype_that_pyarrow_gives_them(one):
    for other in DTYPES:
        batch = pa.record_batch({"a": np.ones(2, one), "b": np.ones(2, other)})
        found = to_tensor(batch).dtype
        expected = pyarrows_dtype(batch)
        if expected is None:
            assert "float16" in (one, other)
        elif not is_ours_alone([one, other]):
            assert found == expected
        assert found == widest(one, other)


@given(st.lists(st.sampled_from(DTYPES), min_size=3, max_size=5))
def test_more_columns_have_the_dtype_that_pyarrow_gives_them(dtypes):
    batch = pa.record_batch({str(i): np.ones(2, dtype) for i, dtype in enumerate(dtypes)})
    found = to_tensor(batch).dtype
    expected = pyarrows_dtype(batch)
    if expected is not None and not is_ours_alone(dtypes):
        assert found == expected
    assert found == widest(*dtypes)


NO_HALF = [dtype for dtype in DTYPES if dtype != "float16"]


@given(
    dtypes=st.lists(st.sampled_from(NO_HALF), min_size=1, max_size=4),
    length=st.sampled_from(LENGTHS),
    nulls=st.sampled_from([0.0, 0.3, 1.0]),
    row_major=st.booleans(),
    seed=st.integers(0, 99),
)
def test_matrices_are_those_of_pyarrow(dtypes, length, nulls, row_major, seed):
    random = np.random.default_rng(seed)
    columns = [column_of(dtype, length, random, nulls) for dtype in dtypes]
    batch = pa.record_batch(columns, [str(i) for i in range(len(columns))])
    batch = batch.slice(min(1, length))
    order = "C" if row_major else "F"
    if not is_ours_alone(dtypes):
        expected = batch.to_tensor(null_to_nan=True, row_major=row_major)
        tensor = to_tensor(batch, nulls="nan", order=order)
        found = np.from_dlpack(tensor)
        np.testing.assert_array_equal(found, expected.to_numpy())
        assert found.dtype == expected.to_numpy().dtype
        if found.size:
            assert tensor.strides == tuple(s // found.itemsize for s in expected.strides)
        if not nulls:
            expected = batch.to_tensor(row_major=row_major).to_numpy()
            found = as_numpy(batch, order=order)
            np.testing.assert_array_equal(found, expected)
            assert found.dtype == expected.dtype
    if batch.num_rows and nulls == 1:
        with pytest.raises(BufferError, match='column "0": .* nulls?'):
            to_tensor(batch)


@settings(max_examples=200)
@given(
    dtypes=st.lists(st.sampled_from([*DTYPES, "bool"]), min_size=1, max_size=12),
    length=st.sampled_from(LENGTHS),
    nulls=st.sampled_from([0.0, 0.1, 0.9]),
    fill=st.sampled_from([0, 1, True, 1.0]),
    order=st.sampled_from("CF"),
    seed=st.integers(0, 99),
)
def test_chunked_tables_are_filled_as_arrow_fills_them(*, dtypes, length, nulls, fill, order, seed):
    """Of whatever chunks: those of one column need not be those of another."""
    random = np.random.default_rng(seed)
    columns = [column_of(dtype, length, random, nulls) for dtype in dtypes]
    names = [str(i) for i in range(len(columns))]
    table = pa.table([split(column, random) for column in columns], names)
    dtype = widest(*dtypes)
    filled = [
        pc.fill_null(column, pa.array(np.array([int(fill)]).astype(numpy_type(column.type)))[0])
        for column in columns
    ]
    expected = np.stack([c.to_numpy(zero_copy_only=False).astype(dtype) for c in filled], axis=1)
    tensor = to_tensor(table, nulls=fill, order=order)
    found = np.from_dlpack(tensor)
    assert (tensor.dtype, tensor.shape) == (dtype, expected.shape)
    np.testing.assert_array_equal(found, expected)
    assert found.flags.c_contiguous if order == "C" else found.flags.f_contiguous
    np.testing.assert_array_equal(as_numpy(table.combine_chunks(), nulls=fill), expected)
    np.testing.assert_array_equal(as_numpy(table.to_reader(64), nulls=fill), expected)

    values, mask = to_tensor(table, nulls="mask", order=order)
    valid = np.stack([c.is_valid().to_numpy(zero_copy_only=False) for c in columns], axis=1)
    np.testing.assert_array_equal(np.from_dlpack(mask), valid)
    assert (mask.dtype, values.dtype) == ("bool", dtype)
    np.testing.assert_array_equal(np.from_dlpack(values)[valid], expected[valid])

    tensors = to_tensor_dict(table, nulls=fill)
    assert list(tensors) == names
    for name, column in zip(names, filled, strict=True):
        one = np.from_dlpack(tensors[name])
        np.testing.assert_array_equal(one, column.to_numpy(zero_copy_only=False))
        assert tensors[name].dtype == numpy_type(column.type)


def test_other_libraries_tables_are_tables():
    source = pa.table({"a": pa.array([1, None, 3], pa.int16()), "b": [0.5, 1.5, 2.5]})
    expected = [[1, 0.5], [-1, 1.5], [3, 2.5]]
    relation = duckdb.sql("select * from source")
    for table in (source, pl.DataFrame(source), relation, Array(source), source.to_reader()):
        assert as_numpy(table, nulls=-1).tolist() == expected
    wide = duckdb.sql("select i, i * 0.5::double as half from range(5000) r(i)")
    found = as_numpy(wide)
    np.testing.assert_array_equal(found, np.arange(5000.0)[:, None] * [1, 0.5])


def test_columns_are_chosen_and_ordered_by_name():
    table = pa.table({"a": [1], "b": ["text"], "c": [3.5]})
    assert as_numpy(table, columns=["c", "a"]).tolist() == [[3.5, 1]]
    assert as_numpy(table, columns=["a", "a"]).tolist() == [[1, 1]]
    assert to_tensor(table, columns=["a"]).dtype == "int64"
    assert list(to_tensor_dict(table, columns=["c", "a"])) == ["c", "a"]
    for function in (to_tensor, to_tensor_dict, explain):
        with pytest.raises(KeyError, match='no column "d" among'):
            function(table, columns=["a", "d"])
    twice = pa.table([[1], [2], [3]], ["a", "a", "b"])
    for function in (to_tensor, to_tensor_dict, explain):
        with pytest.raises(KeyError, match='2 columns are called "a"'):
            function(twice, columns=["b", "a"])
        assert function(twice, columns=["b"])
    assert as_numpy(twice).tolist() == [[1, 2, 3]]
    with pytest.raises(KeyError, match='2 columns are called "a"'):
        to_tensor_dict(twice)
    with pytest.raises(TypeError, match="columns is for tables"):
        to_tensor(pa.array([1]), columns=["a"])


def test_a_column_that_cannot_be_is_named():
    for column, words in [
        (pa.array(["x"]), "ragged"),
        (pa.array([{"x": 1}]), "flatten it first"),
        (pa.array([0], pa.date32()), "physical=True"),
    ]:
        with pytest.raises(BufferError, match=f'column "bad": .*{words}'):
            to_tensor(pa.table({"good": [1], "bad": column}))
    with pytest.raises(BufferError, match="without columns"):
        to_tensor(pa.table({}))


def test_no_names_are_a_wrong_argument_of_one_tensor():
    table = pa.table({"x": [1]})
    for convert in (to_tensor, explain, lambda x, **columns: Array(x).to_tensor(**columns)):
        with pytest.raises(ValueError, match="^columns= is empty: name at least one column$"):
            convert(table, columns=[])
    assert to_tensor_dict(table, columns=[]) == {}


INTEGERS = [dtype for dtype in DTYPES if "int" in dtype]


@given(
    source=st.sampled_from([*DTYPES, "bool"]),
    target=st.sampled_from(DTYPES),
    length=st.sampled_from([1, 65, 4097]),
    order=st.sampled_from("CF"),
    seed=st.integers(0, 99),
)
def test_numbers_that_fit_are_cast_as_numpy_casts_them(source, target, length, order, seed):
    random = np.random.default_rng(seed)
    values = column_of(source, length, random).to_numpy(zero_copy_only=False)
    if target.startswith("u") and source != "bool":
        values = abs(values)
    if "float" in source and "float" in target:
        values = values * np.array(1.1, source)
    table = pa.table({"x": split(pa.array(values), random), "y": values})
    found = as_numpy(table, dtype=target, order=order)
    expected = np.stack([values, values], axis=1).astype(target)
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == expected.dtype
    one = to_tensor_dict(table, dtype=target)["x"]
    np.testing.assert_array_equal(np.from_dlpack(one), expected[:, 0])


EDGES = [0.0, -1.0, 0.5, -0.5, 1e300, np.nan, np.inf, 2.0**63, -(2.0**63), 2.0**64, 2.0**31, 127.0]


@given(
    source=st.sampled_from(DTYPES),
    target=st.sampled_from(INTEGERS),
    seed=st.integers(0, 99),
    order=st.sampled_from("CF"),
)
def test_a_number_that_does_not_fit_is_named_with_its_column_and_row(source, target, seed, order):
    random = np.random.default_rng(seed)
    if "int" in source:
        limits = np.iinfo(source)
        values = random.choice(
            np.array([0, 1, limits.min, limits.max, limits.max // 2 + 1], source), 5
        )
    else:
        with np.errstate(over="ignore"):
            values = random.choice(np.array(EDGES).astype(source), 5)
    limits = np.iinfo(target)

    def fits(value):
        value = value.item()
        return np.isfinite(value) and value == int(value) and limits.min <= value <= limits.max

    bad = next((row for row, value in enumerate(values) if not fits(value)), None)
    zeros = np.zeros(5, target)
    table = pa.table({"zeros": zeros, "edges": split(pa.array(values), random), "more": zeros})
    if bad is None:
        found = as_numpy(table, dtype=target, order=order)
        assert found[:, 1].tolist() == [int(value) for value in values]
        return
    for convert in (to_tensor, to_tensor_dict):
        keywords = {"order": order} if convert is to_tensor else {}
        with pytest.raises(ValueError, match="does not fit") as caught:
            convert(table, dtype=target, **keywords)
        assert 'column "edges": ' in str(caught.value)
        assert f"in row {bad} does not fit {target}" in str(caught.value)
    # But what is null need not fit.
    mask = np.array([not fits(value) for value in values])
    nulls = pa.table({"edges": pa.array(values, mask=mask)})
    found = as_numpy(nulls, dtype=target, nulls=7)
    assert found[:, 0].tolist() == [int(v) if fits(v) else 7 for v in values]


def test_half_floats_and_booleans_go_with_all_others():
    half = pa.array(np.array([0.5, 65504], "float16"))
    for dtype in [*DTYPES, "bool"]:
        other = pa.array(np.array([1, 0]).astype(dtype))
        found = as_numpy(pa.table({"half": half, "other": other}))
        assert str(found.dtype) == widest("float16", dtype)
        assert found.tolist() == [[0.5, 1], [65504, 0]]
    booleans = pa.table({"x": [True, False, None], "y": [False, None, True]})
    assert as_numpy(booleans, nulls=True).tolist() == [[True, False], [False, True], [True, True]]
    assert to_tensor(booleans, nulls=False).dtype == "bool"
    with pytest.raises(ValueError, match="int64 cannot become bool"):
        to_tensor(pa.table({"x": [1]}), dtype="bool")


def test_nulls_of_rows_are_nulls_of_all_columns():
    rows = pa.StructArray.from_arrays(
        [pa.array([1, 2, None, 4]), pa.array([0.5, 1.5, 2.5, 3.5])],
        ["a", "b"],
        mask=pa.array([False, True, False, False]),
    )
    for source in (rows, pa.chunked_array([rows[:2], rows[2:]]), Array(rows)):
        assert as_numpy(source, nulls=0).tolist() == [[1, 0.5], [0, 0], [0, 2.5], [4, 3.5]]
        _, mask = to_tensor(source, nulls="mask")
        assert np.from_dlpack(mask).tolist() == [[1, 1], [0, 0], [0, 1], [1, 1]]
        _, mask = to_tensor_dict(source, nulls="mask")["b"]
        assert np.from_dlpack(mask).tolist() == [1, 0, 1, 1]
        with pytest.raises(BufferError, match='column "a".* 2 nulls'):
            to_tensor(source)
        with pytest.raises(BufferError, match='column "b".* 1 null'):
            to_tensor(source, columns=["b"])
    # A null outside of the slice does not count.
    assert as_numpy(rows[3:]).tolist() == [[4, 3.5]]


def test_a_null_row_leaves_alone_what_has_no_nulls_of_its_own():
    mask = pa.array([False, True, False])
    rows = pa.StructArray.from_arrays([pa.array([1, 2, 3]), pa.nulls(3)], ["x", "none"], mask=mask)
    assert np.from_dlpack(to_tensor_dict(rows, columns=["x"], nulls=0)["x"]).tolist() == [1, 0, 3]
    with pytest.raises(TypeError, match='column "none": Null has no tensor form'):
        to_tensor_dict(rows, nulls=0)


def test_without_chunks_there_are_no_values_but_a_type():
    assert to_tensor(pa.chunked_array([], pa.float32())).dtype == "float32"
    words = pa.chunked_array([], pa.dictionary(pa.int8(), pa.string()))
    codes = to_tensor(words, physical=True)
    assert (codes.shape, codes.dtype, len(codes.dictionary)) == ((0,), "int8", 0)


def test_a_name_that_c_cannot_end_is_refused_where_it_meets_c():
    batch = record_batch({"a\0b": np.zeros(1)})
    assert batch.type == 'Struct("a\\0b": Float64)'
    for export in batch.__arrow_c_schema__, batch.__arrow_c_array__:
        with pytest.raises(ValueError, match="Null byte"):
            export()
    with pytest.raises(ValueError, match="Null byte"):
        pickle.dumps(batch)


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize(
    ("other", "dtype"),
    [("int8", "bfloat16"), ("bool", "bfloat16"), ("int16", "float32"), ("float16", "float32"),
     ("float32", "float32"), ("int64", "float64"), ("float64", "float64")],
)  # fmt: skip
def test_bfloat16_beside_other_numbers_is_the_smallest_float_that_holds_both(
    other, dtype, is_first
):
    half = pa.array(from_dlpack(torch.tensor([1.5, -2.0]).bfloat16(), type="opaque"))
    columns = [half, pa.array(np.array([1, 0], other))]
    table = pa.table(columns if is_first else columns[::-1], names=["x", "y"])
    tensor = to_tensor(table)
    assert (tensor.dtype, tensor.shape) == (dtype, (2, 2))
    rows = [[1.5, 1], [-2.0, 0]]
    assert tensor.tolist() == (rows if is_first else [row[::-1] for row in rows])


def outcome(obj, options):
    """What to_tensor makes of it, or the error."""
    try:
        made = to_tensor(obj, **options)
    except (BufferError, KeyError, MemoryError, TypeError, ValueError) as error:
        return type(error), str(error)
    parts = made if isinstance(made, tuple) else (made,)
    return [(part.dtype, part.shape, part.strides, np.asarray(part).tobytes()) for part in parts]


@settings(max_examples=400)
@given(
    dtypes=st.lists(st.sampled_from(DTYPES), min_size=1, max_size=4),
    length=st.sampled_from([0, 1, 3, 70]),
    start=st.integers(0, 3),
    null=st.sampled_from([0, 0, 0, 0.3]),
    options=st.fixed_dictionaries(
        {},
        optional={
            "dtype": st.sampled_from(["float32", "int8", "uint64", "bool", "float16", "bfloat16"]),
            "nulls": st.sampled_from(["nan", "mask", 0, -1, 0.5, 1e300]),
            "columns": st.lists(st.sampled_from(["x0", "x1", "x2", "x9"]), max_size=3, unique=True),
            "copy": st.booleans(),
            "order": st.sampled_from("CF"),
        },
    ),
    large=st.booleans(),
    seed=st.integers(0, 99),
)
def test_a_batch_of_plain_numbers_is_what_the_same_table_is(
    *, dtypes, length, start, null, options, large, seed
):
    """It goes by a way without fields and arrays, with the same result or error."""
    random = np.random.default_rng(seed)
    columns = [column_of(dtype, length, random, null) for dtype in dtypes]
    if large and length:
        columns[-1] = pa.array(random.choice([1.5, 1e300, 70000.0, 300.0], length))
    batch = pa.record_batch({f"x{at}": own for at, own in enumerate(columns)}).slice(start)
    # Metadata, which a plain batch has not.
    other = batch.replace_schema_metadata({"a": "b"})
    assert outcome(batch, options) == outcome(other, options)
