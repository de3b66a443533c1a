"""Columns of several values a row, side by side in a matrix: of tables, and of batches."""

import numpy as np
import pyarrow as pa
import pytest
from arrow_dlpack import (
    Cast,
    Dense,
    Loader,
    Pad,
    UnsupportedError,
    explain,
    from_dlpack,
    iter_batches,
    to_tensor,
)
from hypothesis import given
from hypothesis import strategies as st

RANDOM = np.random.default_rng(3)


def of_width(rows, width, dtype):
    """A column, and its cells."""
    cells = RANDOM.integers(0, 100, (rows, width)).astype(dtype)
    flat = pa.array(cells.ravel())
    if width == 1:
        return flat, cells
    return pa.FixedSizeListArray.from_arrays(flat, width), cells


DTYPES = st.sampled_from(["int8", "uint16", "int32", "float32", "float64"])


@given(
    rows=st.sampled_from([0, 1, 2, 17, 200, 1500]),
    columns=st.lists(st.tuples(st.integers(1, 40), DTYPES), min_size=1, max_size=7),
    order=st.sampled_from("CF"),
    dtype=st.sampled_from([None, "float64", "float32"]),
    cut=st.integers(0, 1500),
)
def test_columns_of_any_width_lie_side_by_side(rows, columns, order, dtype, cut):
    made = [of_width(rows, width, kind) for width, kind in columns]
    table = pa.table({f"c{index}": column for index, (column, _) in enumerate(made)})
    cut = min(cut, rows)
    table = pa.concat_tables([table.slice(0, cut), table.slice(cut)])
    expected = np.hstack([cells for _, cells in made])
    found = np.asarray(to_tensor(table, order=order, dtype=dtype))
    assert found.shape == expected.shape
    assert found.dtype == (dtype or np.result_type(*(cells.dtype for _, cells in made)))
    np.testing.assert_array_equal(found, expected)
    if rows:
        assert found.flags[f"{order}_CONTIGUOUS"]


@pytest.mark.parametrize("order", ["C", "F"])
def test_null_rows_and_values_are_filled_and_masked(order):
    lists = pa.array([[1.0, None], None, [5.0, 6.0]], pa.list_(pa.float32(), 2))
    table = pa.table({"a": [0.5, None, 2.5], "x": lists, "z": [7, 8, None]})
    nan = np.array([[0.5, 1, np.nan, 7], [np.nan, np.nan, np.nan, 8], [2.5, 5, 6, np.nan]])
    np.testing.assert_array_equal(np.asarray(to_tensor(table, nulls="nan", order=order)), nan)
    filled = np.nan_to_num(nan, nan=-1)
    np.testing.assert_array_equal(np.asarray(to_tensor(table, nulls=-1, order=order)), filled)
    values, mask = to_tensor(table, nulls="mask", order=order)
    np.testing.assert_array_equal(np.asarray(mask), ~np.isnan(nan))
    np.testing.assert_array_equal(np.asarray(values)[~np.isnan(nan)], nan[~np.isnan(nan)])
    with pytest.raises(UnsupportedError, match='column "x": .*3 null'):
        to_tensor(table.select(["x"]))


def test_the_plan_names_the_bytes_and_the_columns_that_there_will_be():
    table = pa.table({"x": of_width(10, 384, "float32")[0], "y": of_width(10, 1, "float32")[0]})
    assert "copies 15400 bytes: 385 columns are put side by side" in repr(explain(table))
    assert to_tensor(table).shape == (10, 385)
    one = table.select(["x"]).combine_chunks()
    assert explain(one).bytes_copied == 0
    assert to_tensor(one, copy=False).shape == (10, 384)
    in_order = "384 columns are not slices of one buffer, one behind the other"
    assert f"copies 15360 bytes: {in_order}" in repr(explain(one, order="F"))
    with pytest.raises(BufferError, match="384 columns"):
        to_tensor(one, order="F", copy=False)


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_value_that_does_not_fit_is_named_by_its_column_and_row(order):
    wide = pa.FixedSizeListArray.from_arrays(pa.array([1.0, 2.0, 3.0, 4.5, 5.0, 6.0]), 2)
    table = pa.table({"a": [1, 2, 3], "wide": wide})
    with pytest.raises(ValueError, match='column "wide": value 4.5 in row 1 does not fit'):
        to_tensor(table, dtype="int32", order=order)


def test_in_long_rows_values_are_named_and_booleans_are_numbers():
    bits = np.arange(20_000) % 3 == 0
    row = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(20_000.0)), 10_000)
    with pytest.raises(ValueError, match='column "a": value 128.0 in row 0 does not fit int8'):
        to_tensor(pa.table({"a": row, "b": [1, 2]}), dtype="int8")
    flags = pa.FixedSizeListArray.from_arrays(pa.array(bits), 10_000)
    for beside in [True, False], [1, 0]:
        found = np.from_dlpack(to_tensor(pa.table({"a": flags, "b": beside}), dtype="int8"))
        assert np.array_equal(found, np.c_[bits.reshape(2, -1), beside])


@pytest.mark.parametrize(
    ("dtype", "columns"), [("int8", 64), ("int16", 32), ("int32", 16), ("complex128", 3)]
)
def test_matrices_larger_than_caches_have_the_values_of_the_columns(dtype, columns):
    rows = 400_000
    cells = np.arange(rows * columns).reshape(columns, rows).astype(dtype)
    values = [pa.array(from_dlpack(column)) for column in cells]
    if dtype == "complex128":
        kind = pa.opaque(pa.list_(pa.float64(), 2), "complex128", "dlpack")
        values = [pa.ExtensionArray.from_storage(kind, column) for column in values]
    table = pa.table(values, [str(index) for index in range(columns)])
    assert np.array_equal(np.from_dlpack(to_tensor(table)), cells.T)


def test_tensors_of_a_column_lie_as_in_memory_and_permuted_ones_are_refused():
    cells = np.arange(24.0).reshape(2, 3, 4)
    tensors = pa.FixedShapeTensorArray.from_numpy_ndarray(cells)
    found = np.asarray(to_tensor(pa.table({"t": tensors, "y": [1.0, 2.0]})))
    np.testing.assert_array_equal(found, np.hstack([cells.reshape(2, 12), [[1], [2]]]))
    permuted = pa.fixed_shape_tensor(pa.float64(), [3, 4], permutation=[1, 0])
    column = pa.ExtensionArray.from_storage(permuted, tensors.storage)
    with pytest.raises(BufferError, match='column "t": .*permuted'):
        to_tensor(pa.table({"t": column, "y": [1.0, 2.0]}))


ROWS = 50
CELLS = RANDOM.random((ROWS, 384), dtype="float32")
NUMBERS = {name: RANDOM.random(ROWS, dtype="float32") for name in "abc"}
EXPECTED = np.column_stack([CELLS, *NUMBERS.values()])
FLAT = pa.array(CELLS.ravel())
OFFSETS = range(0, ROWS * 384 + 1, 384)
EMBEDDINGS = {
    "fixed": pa.FixedSizeListArray.from_arrays(FLAT, 384),
    "list": pa.ListArray.from_arrays(pa.array(OFFSETS, pa.int32()), FLAT),
    "large list": pa.LargeListArray.from_arrays(pa.array(OFFSETS, pa.int64()), FLAT),
    "list view": pa.ListViewArray.from_arrays(
        pa.array(OFFSETS[:-1], pa.int32()), pa.array([384] * ROWS, pa.int32()), FLAT
    ),
    "tensor": pa.FixedShapeTensorArray.from_numpy_ndarray(CELLS),
}


@pytest.mark.parametrize("of", EMBEDDINGS)
@pytest.mark.parametrize("shuffle", [None, 20])
@pytest.mark.parametrize("label", [None, "y"])
def test_embeddings_and_numbers_are_one_matrix(of, shuffle, label):
    table = pa.table({"e": EMBEDDINGS[of], **NUMBERS, "y": range(ROWS)})
    table = pa.concat_tables([table.slice(0, 13), table.slice(13)])
    wish = Dense() if "list" in of else None
    columns = {"e": wish, "a": None, "b": None, "c": None, **({} if label else {"y": None})}
    options = {"format": "matrix", "columns": columns, "batch_size": 7, "shuffle": shuffle}
    found = [np.zeros((0, 387))]
    order = [np.zeros(0, int)]
    for batch in Loader(table, seed=1 if shuffle else None, label=label, **options):
        features, labels = batch if label else (batch, np.asarray(batch)[:, -1])
        found.append(np.asarray(features)[:, :387])
        order.append(np.asarray(labels).astype(int))
    order = np.concatenate(order)
    assert sorted(order.tolist()) == list(range(ROWS))
    assert (order.tolist() == list(range(ROWS))) == (shuffle is None)
    np.testing.assert_array_equal(np.concatenate(found), EXPECTED[order])


def test_dense_lists_of_a_matrix_may_be_null_and_have_one_length_in_all_batches():
    lists = pa.array([None, [1.0, 2.0], [3.0, None], None], pa.list_(pa.float64()))
    table = pa.table({"e": lists, "x": [0.5, 1.5, 2.5, 3.5]})
    options = {"format": "matrix", "columns": {"e": Dense(2), "x": None}}
    expected = [[-1, -1, 0.5], [1, 2, 1.5], [3, -1, 2.5], [-1, -1, 3.5]]
    pieces = pa.concat_tables([table.slice(0, 1), table.slice(1)])
    (batch,) = iter_batches(pieces, batch_size=4, nulls=-1, **options)
    assert np.asarray(batch).tolist() == expected
    with pytest.raises(UnsupportedError, match='column "e": .*null'):
        list(iter_batches(table, **options))
    with pytest.raises(BufferError, match='column "e": .*copying was forbidden|copy'):
        list(iter_batches(table, nulls=-1, copy=False, **options))
    uneven = pa.table({"e": [[1.0, 2.0], [3.0, 4.0], [5.0]], "x": [1.0, 2.0, 3.0]})
    for size in 1, 3:
        with pytest.raises(BufferError, match='column "e": .*has 1 values where 2 are'):
            list(iter_batches(uneven, batch_size=size, **options))


def test_other_wishes_of_the_columns_of_a_matrix_are_refused_and_lists_without_one():
    table = pa.table({"e": [[1.0, 2.0]], "x": [0.5]})
    for wish in Pad(0), Cast("float32"):
        with pytest.raises(ValueError, match='column "e".*matrix'):
            iter_batches(table, format="matrix", columns={"e": wish, "x": None})
    with pytest.raises(UnsupportedError, match=r'column "e": .*take it as Dense\(\)'):
        iter_batches(table, format="matrix")
