"""Whose memory a batch is: the source's, or its own to write to."""

import itertools

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
import torch
from arrow_dlpack import Array, from_dlpack, iter_batches
from arrow_dlpack.torch import BatchDataset
from torch.utils.data import DataLoader

ROWS = 60
X = np.arange(ROWS, dtype="float64")


def chunked(column, rows=25):
    return pa.chunked_array([column[at : at + rows] for at in range(0, len(column), rows)])


def images():
    kind = pa.fixed_shape_tensor(pa.float32(), [2, 3], permutation=[1, 0])
    storage = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(6.0 * ROWS, dtype="f4")), 6)
    return pa.ExtensionArray.from_storage(kind, storage)


TABLE = pa.table(
    {
        "x": chunked(pa.array(X)),
        "i": chunked(pa.array(np.arange(ROWS))),
        "flag": chunked(pa.array([True, False] * (ROWS // 2))),
        "bool8": chunked(
            pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0] * (ROWS // 2), pa.int8()))
        ),
        "pair": chunked(pa.FixedSizeListArray.from_arrays(pa.array(np.arange(2 * ROWS)), 2)),
        "image": chunked(images()),
        "holes": chunked(pa.array([None, 1, 2] * (ROWS // 3), pa.int16())),
        "y": chunked(pa.array(np.arange(ROWS) * 3)),
    }
)
SHUFFLED = {"shuffle": 20, "seed": 1}
NUMBERS = TABLE.select(["x", "i", "holes", "y"])


def tensors(batch):
    if isinstance(batch, torch.Tensor):
        return [batch]
    parts = batch.values() if isinstance(batch, dict) else batch
    return [tensor for part in parts for tensor in tensors(part)]


def train(dataset):
    """What each batch held, which is then written all over."""
    found = []
    for batch in DataLoader(dataset, batch_size=None):
        found.append([tensor.tolist() for tensor in tensors(batch)])
        for tensor, before in zip(tensors(batch), found[-1], strict=True):
            assert (
                tensor.tolist() == before
            )  # whatever the others of this batch were overwritten with
            tensor.fill_(77)
    return found


@pytest.mark.parametrize(
    ("size", "prefetch", "label", "options"),
    [
        *itertools.product([None, 10, 7], [0, 2], [None, "y"], [{"nulls": "mask"}, {"nulls": 1}]),
        *itertools.product([7, 10], [0, 2], [None, "y"], [{"nulls": "mask"} | SHUFFLED]),
    ],
)
@pytest.mark.parametrize("matrix", [False, True])
def test_writing_to_batches_leaves_the_source_as_it_is(size, prefetch, label, options, matrix):
    table, form = (NUMBERS, "matrix") if matrix else (TABLE, "dict")
    before = pa.table({name: pa.concat_arrays(table[name].chunks) for name in table.column_names})
    dataset = BatchDataset(
        table, batch_size=size, prefetch=prefetch, label=label, format=form, **options
    )
    first = train(dataset)
    assert table.equals(before)
    dataset.set_epoch(0)
    assert train(dataset) == first


@pytest.mark.parametrize("columns", [["x"], ["x", "x"]])
def test_a_matrix_of_a_column_or_of_one_twice_is_not_the_columns_memory(columns):
    dataset = BatchDataset(TABLE, format="matrix", columns=columns)
    train(dataset)
    assert TABLE["x"].to_numpy().tolist() == X.tolist()


def sources(folder):
    """One column of X each, with what tells whether it is still that."""
    frame = pl.DataFrame({"x": X})
    yield frame, frame["x"].to_list
    clone = pl.DataFrame({"x": X})
    yield clone.clone(), clone["x"].to_list
    pandas = pd.DataFrame({"x": X.copy()})
    yield pandas, pandas["x"].tolist
    table = pa.table({"x": X.copy()})
    yield table.to_reader(), table["x"].to_pylist
    numpy = X.copy()
    yield pa.table({"x": pa.array(from_dlpack(numpy))}), numpy.tolist
    copied = pa.array(from_dlpack(X, copy=True))  # IS_COPIED once, and shared since
    yield pa.table({"x": copied}), copied.to_pylist
    constant = pa.array(X)
    yield pa.table({"x": pa.chunked_array([constant] * 3)}), constant.to_pylist
    array = pa.array(X)
    yield array, array.to_pylist
    ours = Array(pa.array(X))
    yield ours, lambda: np.from_dlpack(ours).tolist()
    pq.write_table(pa.table({"x": X}), folder / "x.parquet")
    yield ds.dataset(folder), pq.read_table(folder)["x"].to_pylist
    memory = pa.table({"x": X.copy()})
    yield ds.dataset(memory), memory["x"].to_pylist
    relation = duckdb.from_arrow(memory)
    yield relation, memory["x"].to_pylist
    part = pa.table({"x": X.copy()})
    yield lambda index, count: part, part["x"].to_pylist


def test_whatever_the_source(tmp_path):
    for source, now in sources(tmp_path):
        form = "matrix" if isinstance(source, (pa.Array, Array)) else "dict"
        dataset = BatchDataset(source, batch_size=20, format=form)
        for batch in DataLoader(dataset, batch_size=None):
            for tensor in tensors(batch):
                tensor.sub_(X.mean())
        assert now() == X.tolist(), source


@pytest.mark.parametrize("prefetch", [0, 2])
def test_shares_are_for_those_who_ask(prefetch):
    table = pa.table({"x": X.copy(), "flag": [True, False] * (ROWS // 2)})
    address = table["x"].chunk(0).buffers()[1].address
    shared = BatchDataset(table, columns=["x"], writable=False, copy=False, prefetch=prefetch)
    (batch,) = shared
    assert batch["x"].data_ptr() == address
    (batch,) = BatchDataset(table, columns=["x"], writable=False, copy=True)
    assert batch["x"].data_ptr() != address
    with pytest.raises(BufferError, match="copying was forbidden"):
        list(BatchDataset(table, writable=False, copy=False))


@pytest.mark.parametrize("prefetch", [0, 2])
def test_copy_true_gives_each_tensor_memory_of_its_own(prefetch):
    for batch in iter_batches(TABLE, batch_size=7, nulls="mask", copy=True, prefetch=prefetch):
        arrays = [np.from_dlpack(tensor) for pair in batch.values() for tensor in pair]
        assert all(array.flags.writeable for array in arrays)
        assert not any(map(np.may_share_memory, arrays, arrays[1:]))
    (batch,) = iter_batches(pa.table({"x": X}), copy=None, prefetch=prefetch)
    assert batch["x"].readonly


def test_drawn_rows_are_copies_to_write_to():
    table = TABLE.select(["x", "bool8", "image", "pair"])
    for batch in iter_batches(table, batch_size=7, **SHUFFLED):
        assert not any(tensor.readonly for tensor in batch.values())
    for batch in iter_batches(table.select(["x"]), batch_size=7, format="matrix", **SHUFFLED):
        assert not batch.readonly


@pytest.mark.parametrize("prefetch", [0, 2])
@pytest.mark.parametrize(
    ("options", "rows"),
    [
        ({"columns": ["x", "image", "bool8"]}, 25),  # whose chunks are 25 rows long
        ({"columns": ["x"], "batch_size": 20}, 20),
        ({"columns": ["x"], "batch_size": 20, "format": "matrix"}, 20),
        ({"columns": ["flag"]}, 0),
        ({"columns": ["x"], "dtype": "float32"}, 0),
        ({"columns": ["x"], "label": "flag"}, 0),
        ({"columns": ["x", "i"], "format": "matrix"}, 0),
        ({"columns": ["x"], "nulls": "mask"}, 0),
        ({"columns": ["holes"], "nulls": 0}, 0),
    ],
)
def test_copy_false_refuses_the_first_batch_that_takes_a_copy(options, rows, prefetch):
    batches = iter_batches(TABLE, copy=False, prefetch=prefetch, **options)
    if rows:
        assert len(memoryview_of(next(batches))) == rows
    if not rows or "batch_size" in options:
        with pytest.raises(BufferError, match="copying was forbidden") as caught:
            next(batches)
        assert not isinstance(caught.value, TypeError)  # which consumers take for an old producer
    else:
        assert len(list(batches)) == 2


def memoryview_of(batch):
    return memoryview(batch["x"] if isinstance(batch, dict) else batch)


def test_copy_false_counts_what_is_copied_before_there_are_batches():
    rows = {"batch_size": 10, "shuffle": 20}
    with pytest.raises(BufferError, match="copying was forbidden"):
        iter_batches(TABLE, copy=False, **rows)
    words = pa.table(
        {
            "word": pa.chunked_array(
                [pa.array(words).dictionary_encode() for words in (["cat"], ["dog"])]
            )
        }
    )
    with pytest.raises(BufferError, match="copying was forbidden"):
        list(iter_batches(words, batch_size=2, physical=True, copy=False))
    misaligned = pa.Array.from_buffers(
        pa.float64(), 2, [None, pa.py_buffer(bytes(17)).slice(1)], offset=0
    )
    for source in misaligned, pa.table({"x": misaligned}):
        with pytest.raises(BufferError, match="copying was forbidden"):
            list(iter_batches(source, format="matrix", copy=False))
        assert next(iter_batches(source, format="matrix")).shape[0] == 2
