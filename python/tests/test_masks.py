"""mask=: the way back from nulls="mask"."""

import numpy as np
import pyarrow as pa
import pytest
import torch
from arrow_dlpack import (
    Array,
    explain,
    from_dlpack,
    from_ragged,
    ragged,
    record_batch,
    to_tensor,
    to_tensor_dict,
)
from dlpack_conformance.abi.dlpack import CUDA
from hostile import Producer

COLUMNS = [
    pa.array([1, None, 3]),
    pa.array([1.5, 2.5]),
    pa.array([None, True, False]),
    pa.array([None, None], pa.float16()),
    pa.array([], pa.int8()),
    pa.array(range(100)).filter(pa.array([True] * 100)).slice(7, 64),
    pa.array([[1, None], [3, 4], [None, None]], pa.list_(pa.int64(), 2)),
]


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: str(column.type))
def test_what_mask_took_apart_is_put_together(column):
    values, mask = to_tensor(column, nulls="mask")
    back = from_dlpack(values, mask=mask, type="fixed_size_list" if values.ndim > 1 else None)
    assert pa.array(back).to_pylist() == column.to_pylist()
    assert back.null_count == column.null_count


REQUIRED = pa.field("item", pa.int64(), nullable=False)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([b"ab", None, b"cd"], pa.binary(2)),
        pa.array([b"z", b"y", None], pa.binary(1))[1:],
        pa.array([[b"ab", None], [b"cd", b"ef"]], pa.list_(pa.binary(2), 2)),
        pa.array([[1, 2], None, [3, 4]], pa.list_(REQUIRED, 2)),
        pa.array([[[1], [2]], [[3], None]], pa.list_(pa.list_(REQUIRED, 1), 2)),
    ],
    ids=lambda column: str(column.type),
)
def test_what_can_be_null_as_a_whole_alone_is_put_together(column):
    """The mask that is handed out is one of elements: bytes, and items that are not nullable."""
    values, mask = to_tensor(column, nulls="mask")
    assert mask.shape == values.shape
    back = pa.array(from_dlpack(values, mask=mask, type=column.type))
    back.validate(full=True)
    assert back.equals(column)


def test_some_bytes_of_a_binary_are_not_null():
    values, mask = np.zeros((2, 2), "uint8"), np.array([[True, False], [True, True]])
    with pytest.raises(BufferError, match="pass a mask of one value for each row"):
        from_dlpack(values, mask=mask, type=pa.binary(2))
    rows = from_dlpack(values, mask=mask.all(axis=1), type=pa.binary(2))
    assert pa.array(rows).to_pylist() == [None, b"\0\0"]
    with pytest.raises(BufferError, match='"item" is not nullable, and the mask hides 1 of 4'):
        from_dlpack(values.astype("int64"), mask=mask, type=pa.list_(REQUIRED, 2))
    # A mask without elements does not tell which rows are null.
    empty = np.zeros((2, 0), "uint8")
    with pytest.raises(BufferError, match="pass a mask of one value for each row"):
        from_dlpack(empty, mask=empty > 0, type=pa.binary(0))


def test_any_frameworks_mask_will_do():
    values, mask = np.arange(3), np.array([True, False, True])
    for given in (mask, torch.from_numpy(mask), np.repeat(mask, 2)[::2], Array(pa.array(mask))):
        assert pa.array(from_dlpack(values, mask=given)).to_pylist() == [0, None, 2]
    hidden = np.ma.masked_array(values, mask=[True, False, False])
    array = Array.from_dlpack(hidden.data, mask=~np.ma.getmaskarray(hidden))
    assert pa.array(array).to_pylist() == pa.array(hidden).to_pylist() == [None, 1, 2]


def test_rows_of_more_axes_are_null_or_their_items():
    values = np.arange(6).reshape(3, 2)
    rows = from_dlpack(values, mask=np.array([True, False, True]))
    assert pa.array(rows).storage.to_pylist() == [[0, 1], None, [4, 5]]
    mask = np.array([[True, False], [True, True], [False, False]])
    for source, hidden in (
        (values, mask),
        (np.asfortranarray(values), mask),
        (values, mask * 1 > 0),
    ):
        items = from_dlpack(source, mask=hidden)
        assert pa.array(items).storage.to_pylist() == [[0, None], [2, 3], [None, None]]


def test_a_mask_goes_the_way_of_a_permutation():
    """Its axes follow those of the rows, which stay where they are. A copy's are in order."""
    values = np.arange(12).reshape(2, 2, 3).transpose(0, 2, 1)
    mask = values % 5 != 0
    plain = pa.array(from_dlpack(values, mask=mask))
    assert plain.type == pa.fixed_shape_tensor(pa.int64(), [3, 2])
    rows = [[None, 3, 1, 4, 2, None], [6, 9, 7, None, 8, 11]]
    assert plain.storage.to_pylist() == rows
    array = pa.array(from_dlpack(values, mask=mask, type="permuted"))
    assert array.type.permutation == [1, 0]
    assert array.storage.to_pylist() == [
        [None, 1, 2, 3, 4, None],
        [6, 7, 8, 9, None, 11],
    ]


def test_a_mask_goes_with_a_type():
    days, mask = np.array([0, 1], "int32"), np.array([False, True])
    assert str(pa.array(from_dlpack(days, mask=mask, type=pa.date32()))[0]) == "None"
    assert pa.array(from_dlpack(mask, mask=mask, type="bool8")).null_count == 1
    required = pa.field("day", pa.int32(), nullable=False)
    with pytest.raises(BufferError, match='"day" is not nullable, and the mask hides 1 of 2'):
        from_dlpack(days, mask=mask, type=required)
    assert from_dlpack(days, mask=mask | True, type=required).null_count == 0


def test_a_complex_number_is_null_as_a_whole():
    values, mask = np.array([1 + 2j, 3j]), np.array([True, False])
    assert pa.array(from_dlpack(values, mask=mask)).to_pylist() == [[1, 2], None]
    with pytest.raises(BufferError, match="a mask of one value for each row"):
        from_dlpack(values.reshape(2, 1), mask=mask.reshape(2, 1))
    pair = from_dlpack(values.reshape(2, 1), mask=mask.reshape(2, 1), type="fixed_size_list")
    assert pa.array(pair).to_pylist() == [[[1, 2]], [None]]


def test_a_single_value_can_be_null():
    one, hidden = np.array(7), np.array(False)
    assert pa.array(from_dlpack(one, mask=hidden)).to_pylist() == [None]
    assert pa.array(from_dlpack(one, mask=hidden.reshape(1))).to_pylist() == [None]


@pytest.mark.parametrize(
    ("mask", "error", "words"),
    [
        (
            np.array([1, 0, 1]),
            BufferError,
            "a mask is bool, true where a value is valid, not int64",
        ),
        (np.array([1, 0, 1], "uint8"), BufferError, "not uint8"),
        (np.array([True]), BufferError, r"shape \[1\] fits neither the rows .* shape \[3\]"),
        (np.ones((3, 1), bool), BufferError, r"shape \[3, 1\]"),
        (np.array(True), BufferError, r"shape \[\]"),
        ([True, False, True], TypeError, "__dlpack__"),
        (Producer(shape=(3,), device_type=CUDA, code=6, bits=8), BufferError, "cuda:0"),
    ],
)
def test_what_is_no_mask_is_refused(mask, error, words, live):
    for door in (from_dlpack, explain, lambda x, mask: record_batch({"x": (x, mask)})):
        with pytest.raises(error, match=words):
            door(np.arange(3), mask=mask)
    assert live() == (0, 0)


def test_the_mask_is_copied_and_says_so():
    values, mask = np.arange(16.0), np.arange(16) % 3 > 0
    plan = explain(values, mask=mask)
    assert str(plan) == "copies 2 bytes: Arrow stores booleans as bits"
    with pytest.raises(BufferError, match="copying was forbidden"):
        from_dlpack(values, mask=mask, copy=False)
    array = pa.array(from_dlpack(values, mask=mask))
    assert np.shares_memory(values, np.frombuffer(array.buffers()[1]))
    mask[:] = True
    assert array.null_count == 6
    with pytest.raises(TypeError, match="mask are for tensors"):
        explain(pa.array([1]), mask=mask)


def test_tables_come_back():
    table = pa.table(
        {"x": [1, None], "y": pa.array([[1.0, 2.0], [3.0, None]], pa.list_(pa.float64(), 2))}
    )
    tensors = to_tensor_dict(table, nulls="mask")
    back = pa.table(record_batch(tensors, type="fixed_size_list"))
    assert back.to_pydict() == table.to_pydict()
    mixed = pa.table(
        record_batch({"a": np.arange(2), "b": (np.arange(2), np.array([False, True]))})
    )
    assert mixed.to_pydict() == {"a": [0, 1], "b": [None, 1]}
    with pytest.raises(TypeError, match=r"a tensor or a pair \(values, mask\)"):
        record_batch({"x": (np.arange(2),)})


@pytest.mark.parametrize(
    "column",
    [pa.array([[1, 2], None, [], [3]]), pa.array(["a", None, "bc"])],
    ids=["lists", "texts"],
)
def test_rows_of_different_lengths_come_back(column):
    values, offsets, mask = ragged(column, nulls="mask")
    back = pa.array(from_ragged(values, offsets, mask=mask, type=column.type))
    assert back.to_pylist() == column.to_pylist()
    with pytest.raises(BufferError, match=r"fits neither the rows"):
        from_ragged(values, offsets, mask=np.array([True]))


def test_a_matrix_has_no_mask():
    """Each of its columns would have one."""
    with pytest.raises(TypeError):
        record_batch((np.ones((2, 2)), np.ones(2, bool)), names=["a", "b"])
