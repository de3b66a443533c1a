"""Results of a model beside the columns that they belong to, as other libraries read them."""

import datetime

import arrow_dlpack as ad
import duckdb
import nanoarrow
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from arrow_dlpack import from_dlpack, from_ragged, ragged, record_batch, to_tensor
from descriptions import leaf_address
from hypothesis import given
from hypothesis import strategies as st

IDS = pa.array(["a", None, "c"])
SCORES = np.array([0.5, 0.25, 0.125])


def of(column, **keywords):
    batch = pa.record_batch(record_batch({"x": column}, **keywords))
    batch.validate(full=True)
    return batch["x"]


@pytest.mark.parametrize(
    "column",
    [
        IDS,
        IDS.dictionary_encode(),
        pa.array([1, None, 3], pa.uint16()),
        pa.array([datetime.date(2026, 1, 1), None, datetime.date(2026, 1, 3)]),
        pa.array([["x"], None, ["y", "z"]]),
        pa.array([{"a": 1}, None, {"a": 3}]),
        pa.array([b"12", None, b"34"], pa.binary(2)),
        pa.array(["1.5", None, "2.5"]).cast(pa.decimal128(5, 2)),
        pa.nulls(3),
        pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0" * 16] * 3, pa.binary(16))),
    ],
    ids=lambda column: str(column.type),
)
def test_arrow_columns_of_any_type_stand_beside_tensors_as_they_are(column):
    for given_as in (column, pa.chunked_array([column[:1], column[1:]]), ad.Array(column)):
        batch = pa.record_batch(record_batch({"id": given_as, "score": SCORES}))
        batch.validate(full=True)
        assert batch["id"].equals(column)
        assert batch["score"].to_pylist() == SCORES.tolist()
    assert leaf_address(pa.record_batch(record_batch({"s": SCORES}))["s"]) == SCORES.ctypes.data


def test_series_of_other_libraries_are_columns():
    texts = ["u", "v", None]
    when = pd.Series(pd.date_range("2026-01-01", periods=3, tz="UTC"))
    assert of(pl.Series(texts)).to_pylist() == texts
    assert of(when).to_pylist() == when.tolist()
    assert of(duckdb.sql("select 7 as x").to_arrow_table()["x"]).to_pylist() == [7]


def test_rows_of_different_lengths_are_columns_of_lists():
    lists = pa.array([[1, 2], [], [3]])
    assert of(ragged(lists)).equals(lists)
    assert of(to_tensor(lists, pad=0)).equals(lists)
    tensors = [torch.tensor(row, dtype=torch.int64) for row in lists.to_pylist()]
    assert of(tensors).equals(lists)
    holes = pa.array([[1, 2], None, [3]])
    assert of(ragged(holes, nulls="mask")).equals(holes)
    assert of(to_tensor(holes, pad=0, nulls="mask")).equals(holes)
    assert of([tensors[0], None, tensors[2]]).equals(holes)
    for large in (ragged(lists), tensors):
        kind = pa.large_list(pa.int64())
        assert of(large, type=kind).equals(lists.cast(kind))


@given(st.data())
def test_a_list_of_tensors_is_one_of_lists(data):
    dtype = data.draw(st.sampled_from(["int8", "int64", "float32", "bool", "complex64"]))
    item = data.draw(st.lists(st.integers(0, 2), max_size=2))
    lengths = data.draw(st.lists(st.integers(0, 3) | st.none(), min_size=1, max_size=5))
    if not any(length is not None for length in lengths):
        lengths.append(2)
    rows = [
        None if length is None else np.resize(np.arange(5), (2 * length, *item)).astype(dtype)[::2]
        for length in lengths
    ]
    made = pa.array(from_ragged(rows))
    made.validate(full=True)
    values = [row for row in rows if row is not None]
    whole = pa.array(from_dlpack(np.concatenate(values)))
    ends = np.cumsum([0, *(length or 0 for length in lengths)])
    for row, length, start in zip(made, lengths, ends, strict=False):
        found = None if not row.is_valid else row.values
        if length is None:
            assert found is None
        else:
            assert found.equals(whole[start : start + length])


def test_each_column_has_the_type_that_is_asked_for_it():
    columns = {"id": IDS, "score": SCORES, "probabilities": np.ones((3, 4), "float32")}
    kinds = {"probabilities": pa.list_(pa.float32())}
    batch = pa.record_batch(record_batch(columns, type=kinds))
    assert batch.schema.types == [pa.string(), pa.float64(), pa.list_(pa.float32())]
    assert batch["probabilities"].values.to_pylist() == [1.0] * 12
    with pytest.raises(KeyError, match='no column "y" among'):
        record_batch(columns, type={"y": pa.int8()})
    with pytest.raises(
        BufferError, match='column "score": float64 elements .* cast and reshape the'
    ):
        record_batch(columns, type={"score": pa.int8()})
    with pytest.raises(TypeError, match='^column "score": type must be'):
        record_batch(columns, type={"score": 5})
    with pytest.raises(TypeError, match='"id": it is Arrow data of type Utf8, which stays: cast'):
        record_batch(columns, type={"id": pa.large_string()})
    same = pa.record_batch(record_batch(columns, type={"id": pa.string()}))
    assert same["id"].equals(IDS)
    with pytest.raises(TypeError, match="^type must be"):
        record_batch(SCORES.reshape(3, 1), ["x"], type={"x": pa.float64()})


def test_a_matrix_becomes_lists_of_any_length_in_the_same_memory():
    matrix = np.arange(6, dtype="float32").reshape(3, 2)
    for kind in (pa.list_(pa.float32()), pa.large_list(pa.float32())):
        made = pa.array(from_dlpack(matrix, type=kind, copy=False))
        assert made.type == kind
        assert made.to_pylist() == matrix.tolist()
        assert made.values.buffers()[1].address == matrix.ctypes.data
        assert ad.explain(matrix, type=kind).zero_copy
    cube = np.arange(24).reshape(2, 3, 4)
    made = pa.array(from_dlpack(cube, type=pa.list_(pa.list_(pa.int64()))))
    assert made.to_pylist() == cube.tolist()
    rows, items = np.array([True, False, True]), np.array([[True, False]] * 3)
    lists = pa.list_(pa.float32())
    assert pa.array(from_dlpack(matrix, type=lists, mask=rows)).to_pylist() == [
        [0, 1],
        None,
        [4, 5],
    ]
    assert pa.array(from_dlpack(matrix, type=lists, mask=items)).to_pylist()[1] == [2, None]
    for wrong in (pa.list_(pa.float64()), pa.list_view(pa.float32()), pa.list_(lists)):
        with pytest.raises(BufferError, match="cannot become"):
            from_dlpack(matrix, type=wrong)


def test_pandas_polars_and_duckdb_take_the_table():
    batch = record_batch(
        {"id": IDS, "score": SCORES, "lists": np.ones((3, 2))},
        type={"lists": pa.list_(pa.float64())},
    )
    rows = [
        {"id": id, "score": s, "lists": [1.0, 1.0]} for id, s in zip("a c", SCORES, strict=True)
    ]
    rows[1]["id"] = None
    assert pa.record_batch(batch).to_pylist() == rows
    assert pl.DataFrame(batch).to_dicts() == rows
    assert duckdb.sql("select * from batch").to_arrow_table().to_pylist() == rows
    frame = pd.DataFrame.from_arrow(batch)
    assert frame["score"].tolist() == SCORES.tolist()
    assert frame["lists"].map(list).tolist() == [[1.0, 1.0]] * 3


def test_a_column_of_nanoarrow_has_a_schema_and_is_no_table():
    column = nanoarrow.Array(pa.array([1, 2]))
    batch = record_batch({"x": column, "y": np.arange(2)})
    assert pa.record_batch(batch).to_pylist() == [{"x": 1, "y": 0}, {"x": 2, "y": 1}]
    with pytest.raises(TypeError, match=r"concat_arrays\(map\(pyarrow.array, x\)\)"):
        to_tensor([column, column])
    with pytest.raises(TypeError, match="it is a table, and no column"):
        record_batch({"x": nanoarrow.ArrayStream(pa.table({"a": [1]}))})


def test_what_is_no_column_says_what_to_do():
    for column, error, words in [
        (pa.table({"a": [1]}), TypeError, "it is a table, and no column"),
        (
            [np.ones(2), np.ones(2, "float32")],
            BufferError,
            r"item 1 is float32 of shape \[2\], and item 0 f",
        ),
        ([np.ones((2, 3)), np.ones((2, 4))], BufferError, r"item 1 is float64 of shape \[2, 4\]"),
        (
            [None, np.ones(2), np.array(1.0)],
            BufferError,
            "item 2: a row must have 1 dimension, not 0: .*torch.stack.x. makes one tensor",
        ),
        ([np.ones(2), "x"], TypeError, "item 1: expected an object with __dlpack__"),
        ([1, 2], TypeError, r"numpy.asarray\(x\)"),
        ([None], TypeError, r"pyarrow.array\(x\)"),
    ]:
        with pytest.raises(error, match=f'column "x": .*{words}'):
            record_batch({"x": column})
    for arguments, error, words in [
        ((np.ones(3),), TypeError, "must be a list of tensors, one for each row"),
        (([],), ValueError, "does not tell the type of its rows"),
    ]:
        with pytest.raises(error, match=words):
            from_ragged(*arguments)
    pair = np.array([7, 8, 9]), np.array([0, 1, 3])
    with pytest.raises(
        TypeError, match=r"from_ragged\(\*x\) takes the one, from_ragged\(list\(x\)\)"
    ):
        from_ragged(pair)
    assert pa.array(from_ragged(*pair)).to_pylist() == [[7], [8, 9]]
    assert pa.array(from_ragged(list(pair))).to_pylist() == [[7, 8, 9], [0, 1, 3]]
    with pytest.raises(TypeError, match="None in a list is a null row"):
        from_ragged([np.ones(2)], mask=np.array([True]))
    with pytest.raises(BufferError, match="2 chunks are put together"):
        from_ragged([np.ones(2), np.ones(1)], copy=False)


class Growing:
    """A tensor whose producer changes the list that it is in."""

    def __init__(self, rows):
        self.rows = rows

    def __dlpack__(self, **keywords):
        self.rows.append(self)
        return np.ones(1).__dlpack__(**keywords)

    def __dlpack_device__(self):
        return 1, 0


def test_tensors_are_let_go_of_whatever_becomes_of_the_table(live):
    rows = [np.ones(2)]
    rows.append(Growing(rows))
    assert pa.array(from_ragged(rows)).to_pylist() == [[1, 1], [1]]
    tensors = {"x": np.ones(3), "lists": [np.ones(1), None, np.ones(2)], "id": IDS}
    for other in ({}, {"y": np.ones(2)}, {"y": "x"}, {"y": [np.ones(1), "x"]}):
        try:
            record_batch(tensors | other)
        except (BufferError, TypeError):
            assert other
    assert live() == (0, 0)


@pytest.mark.parametrize("columns", [[np.arange(2), np.arange(2) * 10], [np.ones(3), np.ones(3)]])
def test_a_list_of_columns_and_their_names_are_a_dict(columns):
    names = ["a", "b"]
    with pytest.raises(TypeError, match=r"dict\(zip\(names, x\)\) has them by their names"):
        record_batch(columns, names)
    table = pa.record_batch(record_batch(dict(zip(names, columns, strict=True))))
    assert table["b"].to_pylist() == columns[1].tolist()
