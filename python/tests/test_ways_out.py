"""What is said to somebody who passes something else: a way out for each, and it is one."""

import array
import io
import pathlib
import re
import sqlite3

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.ipc
import pyarrow.parquet
import pytest
import torch
from arrow_dlpack import (
    Array,
    Tensor,
    asdlpack,
    explain,
    from_dlpack,
    iter_batches,
    ragged,
    record_batch,
    to_tensor,
    to_tensor_dict,
)

TABLE = pa.table({"a": [1, 2, 3]})
FRAME = pd.DataFrame({"a": [1, 1, 2], "b": [1.0, 2.0, 3.0]})


def connected():
    connection = duckdb.connect()
    connection.execute("select 1 as a")
    return connection


def stream():
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, TABLE.schema) as writer:
        writer.write_table(TABLE)
    return sink.getvalue()


class Broken:
    def __getattr__(self, name):
        raise ZeroDivisionError(name)


# Objects, what is said, and what it comes to (None where there is nothing to try).
ARROW = {
    "a path": ("a.parquet", r"pyarrow\.dataset\.dataset\(x\)", None),
    "a Path": (pathlib.Path("a.parquet"), r"pyarrow\.dataset\.dataset\(x\)", None),
    "paths": (["a.parquet"], r"pyarrow\.dataset\.dataset\(x\)", None),
    "bytes": (b"a", r"asdlpack\(x\)", lambda x: asdlpack(x).to_arrow()),
    "Arrow IPC": (stream(), r"pyarrow\.ipc\.open_stream", pa.ipc.open_stream),
    "a list": ([1, 2], r"pyarrow\.array\(x\)", pa.array),
    "nothing in a list": ([], r"pyarrow\.array\(x, type\)", lambda x: pa.array(x, pa.int8())),
    "a tuple": ((1, 2), r"pyarrow\.array\(x\)", pa.array),
    "a range": (range(3), r"pyarrow\.array\(x\)", pa.array),
    "a set": ({1, 2}, r"pyarrow\.array\(x\)", pa.array),
    "a generator": ((x for x in [1]), r"array\(list\(x\)\)", lambda x: pa.array(list(x))),
    "batches": (iter(TABLE.to_batches()), r"RecordBatchReader\.from_batches\(schema, x\)",
                lambda x: pa.RecordBatchReader.from_batches(TABLE.schema, x)),
    "tables": ([TABLE, TABLE], r"pyarrow\.concat_tables\(x\)", pa.concat_tables),
    "rows": ([{"a": 1}], r"pyarrow\.Table\.from_pylist\(x\)", pa.Table.from_pylist),
    "a dict": ({"a": [1]}, r"pyarrow\.table\(x\)", pa.table),
    "a dict of tensors": ({"a": np.ones(2)}, r"record_batch\(x\)", record_batch),
    "tensors": ([np.ones(2)], r"numpy\.stack\(x\)", lambda x: from_dlpack(np.stack(x))),
    "NumPy": (np.ones(2), "from_dlpack", from_dlpack),
    "PyTorch": (torch.ones(2), "from_dlpack", from_dlpack),
    "a memoryview": (memoryview(b"ab"), r"asdlpack\(x\)", lambda x: asdlpack(x).to_arrow()),
    "array.array": (array.array("f", [1]), r"asdlpack\(x\)", lambda x: asdlpack(x).to_arrow()),
    "a pyarrow buffer": (pa.py_buffer(b"a"), r"asdlpack\(x\)", lambda x: asdlpack(x).to_arrow()),
    "a number": (1.5, r"pyarrow\.array\(\[x\]\)", lambda x: pa.array([x])),
    "a pyarrow value": (pa.scalar(1), r"pyarrow\.array\(\[x\]\)", lambda x: pa.array([x])),
    "None": (None, "return missing", None),
    "a dataset": (pyarrow.dataset.dataset(TABLE), r"x\.to_table\(\)",
                  lambda x: x.to_table()),
    "a scanner": (pyarrow.dataset.dataset(TABLE).scanner(), r"x\.to_table\(\)",
                  lambda x: x.to_table()),
    "a lazy frame": (pl.from_arrow(TABLE).lazy(), r"x\.collect\(\)", lambda x: x.collect()),
    "polars' groups": (pl.from_arrow(TABLE).group_by("a"), r"x\.agg\(", lambda x: x.agg()),
    "pandas' groups": (FRAME.groupby("a"), r"x\.agg\(", lambda x: x.agg("sum")),
    "a pandas index": (FRAME.index, r"x\.to_frame\(\)", lambda x: x.to_frame()),
    "a pandas array": (pd.array([1, 2]), r"pyarrow\.array\(x\)", pa.array),
    "a duckdb connection": (connected(), r"x\.to_arrow_table\(\)", lambda x: x.to_arrow_table()),
    "a sqlite3 connection": (sqlite3.connect(":memory:"), r"pandas\.read_sql\(query, x\)",
                             lambda x: pd.read_sql("select 1 as a", x)),
    "a cursor": (sqlite3.connect(":memory:").execute("select 1"),
                 r"read_sql\(query, connection\)", None),
    "a file": (io.StringIO("a\n1\n"), r"pyarrow\.csv\.read_csv\(x\)", None),
    "a file of bytes": (io.BytesIO(b"a\n1\n"), r"pyarrow\.csv\.read_csv\(x\)",
                        pyarrow.csv.read_csv),
    "anything": (object(), "got object$", None),
    "a schema": (TABLE.schema, "got Schema$", None),
    "what is broken": (Broken(), None, None),
}  # fmt: skip


def refusal(convert, source):
    with pytest.raises(TypeError) as refused:
        convert(source)
    return str(refused.value)


@pytest.mark.filterwarnings("ignore:Arrow output on a DB-API result")
@pytest.mark.parametrize("name", ARROW)
def test_who_passes_no_arrow_data_is_told_how_to_make_some(name):
    source, words, way_out = ARROW[name]
    if words is None:
        for convert in (Array, to_tensor, ragged, explain, asdlpack):
            with pytest.raises(ZeroDivisionError):
                convert(source)
        return
    pattern = re.compile(words)
    for convert in (Array, to_tensor, to_tensor_dict, ragged):
        message = refusal(convert, source)
        assert message.startswith("expected an Arrow array or table, ")
        assert pattern.search(message), message
        assert f"got {type(source).__name__}" in message
    if not hasattr(source, "__dlpack__"):
        assert pattern.search(refusal(explain, source))
        if not hasattr(source, "to_reader") and not hasattr(source, "scanner"):
            assert pattern.search(refusal(iter_batches, source))
    if way_out is not None:
        assert to_tensor(way_out(source)).size >= 0


def test_a_parquet_file_is_read_or_gone_through(tmp_path):
    pa.parquet.write_table(TABLE, tmp_path / "a.parquet")
    source = pa.parquet.ParquetFile(tmp_path / "a.parquet")
    assert "x.read()" in refusal(to_tensor, source)
    assert to_tensor(source.read()).shape == (3, 1)


TENSORS = {
    "a list": ([1, 2], r"numpy.asarray(x)"),
    "a pandas index": (FRAME.index, r"numpy.asarray(x)"),
    "bytes": (b"ab", "asdlpack(x)"),
    "NumPy's number": (np.float32(1), "asdlpack(x)"),
    "Arrow": (TABLE, "it is Arrow data: use to_tensor"),
    "a path": ("a.npy", "numpy.load(x)"),
    "None": (None, "return missing"),
    "a lazy frame": (pl.from_arrow(TABLE).lazy(), "x.collect()"),
}


@pytest.mark.parametrize("name", TENSORS)
def test_who_passes_no_tensor_is_told_how_to_make_one(name):
    source, words = TENSORS[name]
    for convert in (from_dlpack, Tensor.from_dlpack, Array.from_dlpack):
        message = refusal(convert, source)
        assert message.startswith("expected an object with __dlpack__ or a DLPack capsule, got ")
        assert words in message
