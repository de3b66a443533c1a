"""Every Python case of the benchmark: ours, the peers', the limit, and the targets.

A case is a function that makes its data and returns what is to be timed, as Python statements over
its local names: "ours", "limit" and any number of peers. The targets are in the line above it: how
many times a contender's time ours may take. README.md tells where they come from.
"""

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal

import arrow_dlpack
import nanoarrow
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import torch
import tvm_ffi
from arro3 import core as arro3

Kind = Literal["call", "work"]
Made = tuple[Mapping[str, Any], Mapping[str, str]]

ROWS = 1_000_000
COLUMNS = 16
CORES = len(os.sched_getaffinity(0))
VALUES = 10_000_000
NAMES = [f"column {index}" for index in range(COLUMNS)]

# What every statement can use besides its case's own names.
LIBRARIES = {
    "arrow_dlpack": arrow_dlpack,
    "arro3": arro3,
    "nanoarrow": nanoarrow,
    "np": np,
    "pa": pa,
    "pc": pc,
    "pl": pl,
    "torch": torch,
    "tvm_ffi": tvm_ffi,
}


@dataclass(frozen=True)
class Case:
    name: str
    kind: Kind
    targets: Mapping[str, float]
    make: Callable[[], Made]
    #: For how long it is timed, where that is not what its kind has.
    seconds: float | None = None


CASES: list[Case] = []


def call(name: str, **targets: float) -> Callable[[Callable[[], Made]], None]:
    """A case of nanoseconds, mostly Python's own."""
    return lambda make: CASES.append(Case(name, "call", targets, make))


def work(name: str, **targets: float) -> Callable[[Callable[[], Made]], None]:
    """A case of milliseconds, mostly memory's own."""
    return lambda make: CASES.append(Case(name, "work", targets, make))


# The cheapest call of a method that there is.
EMPTY_CALL = "''.isascii()"


def same_values() -> dict[str, Any]:
    """A thousand float32 in every library's hands, over the same memory where that is possible."""
    numbers = np.arange(1000, dtype="float32")
    arrow = pa.array(numbers)
    return {
        "numbers": numbers,
        "arrow": arrow,
        "array": arrow_dlpack.Array(arrow),
        "tensor": arrow_dlpack.Tensor.from_dlpack(numbers),
        "torches": torch.from_numpy(numbers),
        "series": pl.Series(arrow),
    }


@call("Array.__dlpack__", numpy=0.85)
def _() -> Made:
    return same_values(), {
        "ours": "array.__dlpack__(max_version=(1, 3))",
        "numpy": "numbers.__dlpack__(max_version=(1, 3))",
        "pyarrow": "arrow.__dlpack__(max_version=(1, 3))",
        "limit": EMPTY_CALL,
    }


@call("Tensor.__dlpack__", numpy=0.85)
def _() -> Made:
    return same_values(), {
        "ours": "tensor.__dlpack__(max_version=(1, 3))",
        "numpy": "numbers.__dlpack__(max_version=(1, 3))",
        "pyarrow": "arrow.__dlpack__(max_version=(1, 3))",
        "limit": EMPTY_CALL,
    }


@call("np.from_dlpack(Array)", numpy=0.95, pyarrow=0.75)
def _() -> Made:
    return same_values(), {
        "ours": "np.from_dlpack(array)",
        "numpy": "np.from_dlpack(numbers)",
        "pyarrow": "np.from_dlpack(arrow)",
        "limit": EMPTY_CALL,
    }


@call("np.from_dlpack(Tensor)", numpy=0.95, pyarrow=0.75)
def _() -> Made:
    return same_values(), {
        "ours": "np.from_dlpack(tensor)",
        "numpy": "np.from_dlpack(numbers)",
        "pyarrow": "np.from_dlpack(arrow)",
        "limit": EMPTY_CALL,
    }


@call("torch.from_dlpack(Array)", numpy=1.0)
def _() -> Made:
    return same_values(), {
        "ours": "torch.from_dlpack(array)",
        "numpy": "torch.from_dlpack(numbers)",
        "pyarrow": "torch.from_dlpack(arrow)",
        "limit": EMPTY_CALL,
    }


@call("tvm_ffi.from_dlpack(Array)", torch=1.0, pyarrow=0.25)
def _() -> Made:
    return same_values(), {
        "ours": "tvm_ffi.from_dlpack(array)",
        "torch": "tvm_ffi.from_dlpack(torches)",
        "numpy": "tvm_ffi.from_dlpack(numbers)",
        "pyarrow": "tvm_ffi.from_dlpack(arrow)",
        "limit": EMPTY_CALL,
    }


@call("from_dlpack(numpy)", pyarrow=0.4)
def _() -> Made:
    return same_values(), {
        "ours": "arrow_dlpack.from_dlpack(numbers)",
        "pyarrow": "pa.Array.from_dlpack(numbers)",
        # The producer's share.
        "limit": "numbers.__dlpack__(max_version=(1, 3))",
    }


@call("from_dlpack(torch)", pyarrow=0.15)
def _() -> Made:
    return same_values(), {
        "ours": "arrow_dlpack.from_dlpack(torches)",
        "pyarrow": "pa.Array.from_dlpack(torches)",
        # There and back, all in C, by the exchange API.
        "limit": "tvm_ffi.from_dlpack(torches)",
    }


@call("Array(pyarrow)")
def _() -> Made:
    return same_values(), {
        "ours": "arrow_dlpack.Array(arrow)",
        "arro3": "arro3.Array(arrow)",
        "nanoarrow": "nanoarrow.c_array(arrow)",
        "polars": "pl.Series(arrow)",
        # The producer's share.
        "limit": "arrow.__arrow_c_array__()",
    }


@call("Array(polars)")
def _() -> Made:
    return same_values(), {
        "ours": "arrow_dlpack.Array(series)",
        "arro3": "arro3.ChunkedArray(series)",
        "nanoarrow": "nanoarrow.Array(series)",
        "pyarrow": "pa.chunked_array(series)",
        # The producer's share.
        "limit": "series.__arrow_c_stream__()",
    }


@call("to_tensor_dict, 1000 columns", pyarrow=0.5)
def _() -> Made:
    names, statements = dict_of_columns(1000)
    return names, {
        **statements,
        "limit": "{name: name.isascii() for name in names}",
    }


def dict_of_columns(columns: int, rows: int = 100) -> Made:
    """Every column a tensor, beside that many calls of pyarrow's `__dlpack__`."""
    names = [f"column {index}" for index in range(columns)]
    arrays = [pa.array(np.arange(rows, dtype="float32")) for _ in names]
    batch = pa.record_batch(arrays, names)
    return {"names": names, "arrays": arrays, "batch": batch}, {
        "ours": "arrow_dlpack.to_tensor_dict(batch)",
        "pyarrow": "[array.__dlpack__(max_version=(1, 3)) for array in arrays]",
    }


def table(dtypes: list[str], rows: int = ROWS) -> dict[str, Any]:
    """A record batch of 16 columns that lie apart, and the same in the peers' hands."""
    columns = [np.arange(rows).astype(dtypes[i % len(dtypes)]) for i in range(COLUMNS)]
    batch = pa.record_batch([pa.array(column) for column in columns], NAMES)
    # Ones: memory full of zeros need not be memory at all.
    flat = np.ones(rows * COLUMNS, "float32")
    return {"columns": columns, "batch": batch, "frame": pl.from_arrow(batch), "flat": flat}


@work("matrix, row-major", pyarrow=0.25, polars=0.8, limit=1.2)
def _() -> Made:
    return table(["float32"]), {
        "ours": "arrow_dlpack.to_tensor(batch, threads=1)",
        "pyarrow": "batch.to_tensor(row_major=True)",
        "numpy": "np.column_stack(columns)",
        "polars": "frame.to_numpy(order='c')",
        "limit": "flat.copy()",
    }


@work("matrix of mixed types, row-major", pyarrow=0.2, polars=0.4)
def _() -> Made:
    names = table(["int8", "int16", "int32", "float32"])
    names["float32s"] = pa.schema([(name, pa.float32()) for name in NAMES])
    return names, {
        "ours": "arrow_dlpack.to_tensor(batch, dtype='float32', threads=1)",
        # Alone it makes float64 of them, twice the memory; whichever way is the faster counts.
        "pyarrow": "batch.to_tensor(row_major=True)",
        "pyarrow, cast first": "batch.cast(float32s, safe=False).to_tensor(row_major=True)",
        "polars": "frame.cast(pl.Float32).to_numpy(order='c')",
        "limit": "flat.copy()",
    }


@work("matrix, column-major", pyarrow=1.05)
def _() -> Made:
    return table(["float32"]), {
        "ours": "arrow_dlpack.to_tensor(batch, order='F', threads=1)",
        "pyarrow": "batch.to_tensor(row_major=False)",
        "polars": "frame.to_numpy(order='fortran')",
        "limit": "flat.copy()",
    }


def of_a_polars_frame(order: str) -> Made:
    return table(["float64"]), {
        "ours": f"arrow_dlpack.to_tensor(frame, framework='torch', order='{order}', threads=1)",
        "polars": "frame.to_torch()",
    }


@work("polars frame, row-major", polars=1.0)
def _() -> Made:
    return of_a_polars_frame("C")


@work("polars frame, column-major", polars=1.0)
def _() -> Made:
    return of_a_polars_frame("F")


@work("tensor to 16 columns", numpy=0.5)
def _() -> Made:
    matrix = np.arange(ROWS * COLUMNS, dtype="float32").reshape(ROWS, COLUMNS)
    return {"matrix": matrix, "names": NAMES}, {
        "ours": "arrow_dlpack.record_batch(matrix, names=names)",
        "numpy": "np.ascontiguousarray(matrix.T)",
        "limit": "matrix.copy()",
    }


def booleans(offset: int, values: int = VALUES) -> dict[str, Any]:
    """Booleans, as bytes and as bits, that begin so many values into their memory."""
    numbers = np.random.default_rng(1).integers(0, 2, values + offset, dtype="uint8")
    bits = np.packbits(numbers, bitorder="little")
    return {
        "bytes": numbers[offset:],
        "bools": numbers.view(bool)[offset:],
        "bits": bits,
        "arrow": pa.Array.from_buffers(pa.bool_(), values, [None, pa.py_buffer(bits)], 0, offset),
        "offset": offset,
    }


def from_bits(offset: int) -> Made:
    return booleans(offset), {
        "ours": "arrow_dlpack.to_tensor(arrow, threads=1)",
        "pyarrow": "arrow.to_numpy(zero_copy_only=False)",
        "numpy": "np.unpackbits(bits, bitorder='little')[offset:].view(bool)",
        "limit": "bools.copy()",
    }


def to_bits(offset: int) -> Made:
    return booleans(offset), {
        "ours": "arrow_dlpack.from_dlpack(bools)",
        "pyarrow": "pa.array(bools)",
        "numpy": "np.packbits(bools, bitorder='little')",
        # Reads what has to be read.
        "limit": "bytes.max()",
    }


@work("Boolean to bool", pyarrow=0.1, numpy=1.3)
def _() -> Made:
    return from_bits(0)


@work("Boolean to bool, from bit 3", pyarrow=0.1, numpy=1.3)
def _() -> Made:
    return from_bits(3)


@work("bool to Boolean", pyarrow=0.1, numpy=1.5)
def _() -> Made:
    return to_bits(0)


@work("bool to Boolean, from byte 3", pyarrow=0.1, numpy=1.5)
def _() -> Made:
    return to_bits(3)


def with_nulls(values: int = VALUES) -> dict[str, Any]:
    """Floats, one in ten of them null."""
    random = np.random.default_rng(1)
    numbers = random.random(values, dtype="float32")
    arrow = pa.array(numbers, mask=random.random(values, dtype="float32") < 0.1)
    return {"numbers": numbers, "arrow": arrow, "series": pl.Series(arrow)}


@work("nulls to a value", pyarrow=0.35, polars=1.0)
def _() -> Made:
    return with_nulls(), {
        "ours": "arrow_dlpack.to_tensor(arrow, nulls=0.0, threads=1)",
        "pyarrow": "pc.fill_null(arrow, 0.0)",
        "polars": "series.fill_null(0.0)",
        "limit": "numbers.copy()",
    }


@work("nulls to NaN", pyarrow=0.35, polars=1.0)
def _() -> Made:
    return {"nan": float("nan"), **with_nulls()}, {
        "ours": "arrow_dlpack.to_tensor(arrow, nulls='nan', threads=1)",
        "pyarrow": "pc.fill_null(arrow, nan)",
        "pyarrow, to_numpy": "arrow.to_numpy(zero_copy_only=False)",
        "polars": "series.fill_null(nan)",
        "limit": "numbers.copy()",
    }


@work("bfloat16 to float32", torch=0.5)
def _() -> Made:
    numbers = np.random.default_rng(1).random(VALUES, dtype="float32")
    return {"numbers": numbers, "brains": torch.from_numpy(numbers).to(torch.bfloat16)}, {
        "ours": "arrow_dlpack.from_dlpack(brains)",
        "torch": "brains.to(torch.float32)",
        "limit": "numbers.copy()",
    }


@work("one column of a matrix", numpy=1.0)
def _() -> Made:
    matrix = np.arange(ROWS * COLUMNS, dtype="float32").reshape(ROWS, COLUMNS)
    column = matrix[:, 3]
    return {"column": column, "integers": column.view("int32")}, {
        "ours": "arrow_dlpack.from_dlpack(column)",
        "numpy": "np.ascontiguousarray(column)",
        # Reads what has to be read.
        "limit": "integers.max()",
    }


@work("100 chunks to one", pyarrow=1.05)
def _() -> Made:
    numbers = np.arange(VALUES, dtype="float32")
    # Each chunk in memory of its own.
    chunked = pa.chunked_array([pa.array(chunk.copy()) for chunk in np.split(numbers, 100)])
    return {"numbers": numbers, "chunked": chunked}, {
        "ours": "arrow_dlpack.to_tensor(chunked, threads=1)",
        "pyarrow": "chunked.combine_chunks()",
        "limit": "numbers.copy()",
    }


def in_parts(source: np.ndarray, out: np.ndarray, pool: ThreadPoolExecutor) -> np.ndarray:
    """A copy by as many threads as there are cores, into memory that is there."""
    parts = zip(np.array_split(out, CORES), np.array_split(source, CORES), strict=True)
    list(pool.map(lambda part: np.copyto(*part), parts))
    return out


def with_pool(flat: np.ndarray) -> dict[str, Any]:
    pool = ThreadPoolExecutor(CORES)
    return {"in_parts": in_parts, "flat": flat, "out": np.ones_like(flat), "pool": pool}


@work("threads: matrix", **{"one thread": 1 / 1.6, "limit, all threads": 1.0})
def _() -> Made:
    names = table(["float32"])
    return names | with_pool(names["flat"]), {
        "ours": f"arrow_dlpack.to_tensor(batch, threads={CORES})",
        "one thread": "arrow_dlpack.to_tensor(batch, threads=1)",
        "limit": "flat.copy()",
        "limit, all threads": "in_parts(flat, out, pool)",
    }


@work("threads: cast", **{"one thread": 1 / 1.6})
def _() -> Made:
    # A result of 64 MB.
    numbers = np.arange(ROWS * COLUMNS)
    return {"arrow": pa.array(numbers)} | with_pool(numbers.astype("float32")), {
        "ours": f"arrow_dlpack.to_tensor(arrow, dtype='float32', threads={CORES})",
        "one thread": "arrow_dlpack.to_tensor(arrow, dtype='float32', threads=1)",
        "limit": "flat.copy()",
        "limit, all threads": "in_parts(flat, out, pool)",
    }
