"""Tensors as columns of a table, and matrices that are tables already."""

from collections import ChainMap, UserDict

import numpy as np
import pyarrow as pa
import pytest
import torch
from arrow_dlpack import record_batch, to_tensor, to_tensor_dict
from descriptions import described, leaf_address
from frameworks import DTYPES
from hypothesis import given
from hypothesis import strategies as st


@given(
    dtype=st.sampled_from(DTYPES),
    rows=st.integers(0, 5),
    width=st.integers(1, 4),
    at=st.integers(0, 2),
)
def test_adjacent_columns_are_shared_as_one_matrix(dtype, rows, width, at):
    names = [f"c{i}" for i in range(width)]
    matrix = np.arange(rows * width).astype(dtype).reshape(width, rows).T
    columns = record_batch(matrix, names)
    batch = pa.record_batch(columns)
    back = to_tensor(columns, order="F", copy=False)
    found = np.from_dlpack(back)
    np.testing.assert_array_equal(found, matrix)
    if matrix.size:
        assert described(back).address == matrix.ctypes.data
        assert [leaf_address(column) for column in batch.columns] == [
            matrix.ctypes.data + i * rows * matrix.itemsize for i in range(width)
        ]
    some = names[at:]
    if some:
        found = np.from_dlpack(to_tensor(columns, columns=some, order="F", copy=False))
        np.testing.assert_array_equal(found, matrix[:, at:])
    # pyarrow has them where they were, but says nothing of whose allocation that is.
    if matrix.size and width > 1:
        with pytest.raises(BufferError, match=f"{width} columns are not slices of one buffer"):
            to_tensor(batch, order="F", copy=False)
        np.testing.assert_array_equal(np.from_dlpack(to_tensor(batch, order="F")), matrix)
    # Rows that are left out lie between the columns.
    if rows > 1 and width > 1:
        with pytest.raises(BufferError, match=f"{width} columns are not slices of one buffer"):
            to_tensor(batch.slice(1), order="F", copy=False)
        np.testing.assert_array_equal(
            np.from_dlpack(to_tensor(batch.slice(1), order="F")), matrix[1:]
        )
        with pytest.raises(BufferError, match=f"{width} columns are put side by side"):
            to_tensor(batch, copy=False)


def test_a_shared_matrix_keeps_its_columns(live):
    batch = record_batch(np.asfortranarray([[1.0, 2.0], [3.0, 4.0]]), ["a", "b"])
    tensor = to_tensor(batch, order="F", copy=False)
    del batch
    assert np.from_dlpack(tensor).tolist() == [[1, 2], [3, 4]]
    assert live()[1] == 1
    del tensor
    assert live() == (0, 0)


@given(st.data())
def test_dicts_of_tensors_return_as_columns(data):
    rows = data.draw(st.integers(0, 4))
    shapes = data.draw(st.lists(st.lists(st.integers(1, 3), max_size=3), min_size=1, max_size=4))
    dtypes = st.sampled_from([*DTYPES, "bool"])
    columns = {
        f"c{i}": np.resize(np.arange(7), (rows, *shape)).astype(data.draw(dtypes))
        for i, shape in enumerate(shapes)
    }
    batch = pa.record_batch(record_batch(columns))
    batch.validate(full=True)
    back = to_tensor_dict(batch)
    assert list(back) == list(columns)
    for name, column in columns.items():
        found = np.from_dlpack(back[name])
        np.testing.assert_array_equal(found, column)
        assert found.dtype == column.dtype
        if column.size and column.dtype != bool:
            assert described(back[name]).address == column.ctypes.data


@given(
    dtype=st.sampled_from([*DTYPES, "bool"]),
    shape=st.tuples(st.integers(0, 70), st.integers(0, 4)),
    steps=st.tuples(st.sampled_from([1, 2, -1]), st.sampled_from([1, 2, -1])),
    fortran=st.booleans(),
)
def test_matrices_of_any_layout_become_columns(dtype, shape, steps, fortran):
    whole = np.resize(np.arange(11), [n * abs(s) for n, s in zip(shape, steps, strict=True)])
    whole = whole.astype(dtype, order="F" if fortran else "C")
    matrix = whole[:: steps[0], :: steps[1]]
    names = [f"c{i}" for i in range(shape[1])]
    batch = pa.record_batch(record_batch(matrix, names))
    batch.validate(full=True)
    assert (batch.schema.names, batch.num_rows) == (names, shape[0])
    for i, column in enumerate(batch.columns):
        np.testing.assert_array_equal(column.to_numpy(zero_copy_only=False), matrix[:, i])
    stays = dtype != "bool" and (matrix.size == 0 or (fortran and steps[0] == 1) or shape[0] == 1)
    if stays:
        record_batch(matrix, names, copy=False)
        if matrix.size:
            assert leaf_address(batch.column(0)) == matrix.ctypes.data


def test_columns_are_of_the_type_that_is_asked_for():
    matrix = np.asfortranarray(np.arange(4, dtype="int32").reshape(2, 2))
    batch = pa.record_batch(record_batch(matrix, ["a", "b"], type=pa.date32(), copy=False))
    assert batch.schema.types == [pa.date32()] * 2
    booleans = np.asfortranarray([[True, False], [False, False]])
    batch = pa.record_batch(record_batch(booleans, ["a", "b"], type="bool8", copy=False))
    assert batch.schema.types == [pa.bool8()] * 2
    assert batch["a"].to_pylist() == [True, False]
    bfloats = torch.ones(2, dtype=torch.bfloat16)
    batch = pa.record_batch(record_batch({"x": bfloats}, type="opaque", copy=False))
    assert batch.schema.types == [pa.opaque(pa.uint16(), "bfloat16", "dlpack")]


def test_any_mapping_is_a_dict_of_columns():
    for columns in UserDict(x=np.arange(2.0)), ChainMap({"x": np.arange(2.0)}):
        assert pa.record_batch(record_batch(columns)).to_pydict() == {"x": [0, 1]}


@pytest.mark.parametrize(("field", "schema"), [({b"k": b"\xff"}, None), (None, {b"k": b"\xff"})])
def test_metadata_that_is_no_text_is_named(field, schema):
    field = pa.field("x", pa.int64(), metadata=field)
    table = pa.table([pa.array([1])], pa.schema([field], metadata=schema))
    with pytest.raises(ValueError, match=r"the metadata of .* is no text: leave it out"):
        to_tensor(table)


def test_what_can_be_no_table_is_refused():
    square, row = np.ones((2, 2)), np.ones(2)
    for error, words, arguments in [
        (
            BufferError,
            'column "b" has 3 rows, but the first column has 2',
            [{"a": row, "b": np.ones(3)}],
        ),
        (BufferError, 'column "b": float64 cannot be', [{"a": row.astype("c8"), "b": row}]),
        (BufferError, "must have 2 dimensions, not 1", [row, ["a"]]),
        (ValueError, "1 names for 2 columns", [square, ["a"]]),
        (BufferError, 'several columns are named "a"', [square, ["a", "a"]]),
        (TypeError, "expected a dict of tensors", [square]),
        (TypeError, "names are texts, got 1", [{1: row}]),
        (TypeError, "a dict has its own", [{"a": row}, ["a"]]),
        (TypeError, "names must be a list of names", [square, "ab"]),
    ]:
        keywords = {"type": "opaque"} if "cannot be" in words else {}
        with pytest.raises(error, match=words):
            record_batch(*arguments, **keywords)
    assert pa.record_batch(record_batch(np.ones((2, 0)), [])).num_rows == 2
    assert pa.record_batch(record_batch({"a": np.array(1.5)})).to_pydict() == {"a": [1.5]}
