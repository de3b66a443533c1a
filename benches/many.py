"""Many small things: 100,000 chunks, 5,000 columns. What counts is what each of them costs."""

import ctypes
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from cases import Made, work

CHUNKS = 100_000
COLUMNS = 5_000


def walker() -> Any:
    """A loop in C that walks a stream and releases it: the limit of every reader of one."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "walk.so"
        source = Path(__file__).parent / "walk.c"
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", source, "-o", library], check=True)
        loop = ctypes.CDLL(str(library)).walk
    loop.argtypes, loop.restype = [ctypes.c_void_p], ctypes.c_int64
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.argtypes, pointer.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p

    def walk(source: Any) -> int:
        capsule = source.__arrow_c_stream__()
        return loop(pointer(capsule, b"arrow_array_stream"))

    return walk


def chunked(rows: int = 10) -> pa.ChunkedArray:
    numbers = np.arange(CHUNKS * rows, dtype="float32")
    return pa.chunked_array([pa.array(part) for part in np.split(numbers, CHUNKS)])


def wide(rows: int = 1000) -> pa.RecordBatch:
    numbers = np.arange(rows, dtype="float32")
    names = [f"column {index}" for index in range(COLUMNS)]
    return pa.record_batch([pa.array(numbers + index) for index in range(COLUMNS)], names)


@work("100,000 chunks to one", limit=2)
def _() -> Made:
    return {"chunked": chunked(), "walk": walker()}, {
        "ours": "arrow_dlpack.to_tensor(chunked, threads=1)",
        "pyarrow": "chunked.to_numpy()",
        "limit": "walk(chunked)",
    }


@work("100,000 chunks of 2 columns, as a matrix", limit=2)
def _() -> Made:
    column = chunked()
    return {"table": pa.table({"x": column, "y": column}), "walk": walker()}, {
        "ours": "arrow_dlpack.to_tensor(table, threads=1)",
        "limit": "walk(table)",
    }


@work("matrix of 5,000 columns", pyarrow=1.0)
def _() -> Made:
    return {"batch": wide(), "walk": walker()}, {
        "ours": "arrow_dlpack.to_tensor(batch, threads=1)",
        "pyarrow": "batch.to_tensor(row_major=True)",
        "limit": "walk(batch)",
    }


@work("half of 5,000 columns by their names")
def _() -> Made:
    batch = wide(10)
    return {"batch": batch, "names": batch.schema.names[::2]}, {
        "ours": "arrow_dlpack.to_tensor(batch, columns=names, threads=1)",
        "pyarrow": "batch.select(names).to_tensor(row_major=True)",
    }


@work("to_tensor_dict of 5,000 columns")
def _() -> Made:
    return {"batch": wide(10)}, {
        "ours": "arrow_dlpack.to_tensor_dict(batch)",
        "pyarrow": "[column.__dlpack__() for column in batch.columns]",
    }


@work("batches of 5,000 columns")
def _() -> Made:
    return {"table": pa.Table.from_batches([wide(10)] * 50)}, {
        "ours": "[0 for _ in arrow_dlpack.iter_batches(table, batch_size=10)]",
        "pyarrow": "[batch.to_tensor() for batch in table.to_batches()]",
    }
