"""What more rows, columns and threads cost: handing over nothing, copying in proportion."""

from collections.abc import Callable
from dataclasses import dataclass

import cases
import numpy as np
import pyarrow as pa
from cases import Made


@dataclass(frozen=True)
class Series:
    name: str
    # What grows.
    of: str
    sizes: list[int]
    make: Callable[[int], Made]


def powers(last: int) -> list[int]:
    return [10**power for power in range(last + 1)]


def export(rows: int) -> Made:
    arrow = pa.array(np.zeros(rows, "float32"))
    return {"arrow": arrow, "array": cases.arrow_dlpack.Array(arrow)}, {
        "ours": "array.__dlpack__(max_version=(1, 3))",
        "pyarrow": "arrow.__dlpack__(max_version=(1, 3))",
    }


def taken(rows: int) -> Made:
    return {"numbers": np.zeros(rows, "float32")}, {
        "ours": "arrow_dlpack.from_dlpack(numbers)",
        "pyarrow": "pa.Array.from_dlpack(numbers)",
    }


def from_bits(rows: int) -> Made:
    return cases.booleans(0, rows), {
        "ours": "arrow_dlpack.to_tensor(arrow, threads=1)",
        "pyarrow": "arrow.to_numpy(zero_copy_only=False)",
        "numpy": "np.unpackbits(bits, bitorder='little')",
    }


def filled(rows: int) -> Made:
    return cases.with_nulls(rows), {
        "ours": "arrow_dlpack.to_tensor(arrow, nulls=0.0, threads=1)",
        "pyarrow": "pc.fill_null(arrow, 0.0)",
        "polars": "series.fill_null(0.0)",
    }


def matrix(rows: int) -> Made:
    return cases.table(["float32"], rows), {
        "ours": "arrow_dlpack.to_tensor(batch, threads=1)",
        "pyarrow": "batch.to_tensor(row_major=True)",
        "polars": "frame.to_numpy(order='c')",
        "copy": "flat.copy()",
    }


def wide_matrix(columns: int) -> Made:
    names, _ = cases.dict_of_columns(columns, rows=1000)
    return names, {
        "ours": "arrow_dlpack.to_tensor(batch, threads=1)",
        "pyarrow": "batch.to_tensor(row_major=True)",
    }


SERIES = [
    Series("Array.__dlpack__", "rows", powers(8), export),
    Series("from_dlpack(numpy)", "rows", powers(8), taken),
    Series("Boolean to bool", "rows", powers(8), from_bits),
    Series("nulls to a value", "rows", powers(8), filled),
    # Two more powers would be 6 GB of columns and as much for each result.
    Series("matrix of 16 columns", "rows", powers(7), matrix),
    Series("to_tensor_dict", "columns", powers(4), cases.dict_of_columns),
    Series("matrix of 1000 rows", "columns", powers(4), wide_matrix),
]
