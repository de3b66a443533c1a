"""Real flights from Parquet through arrow_dlpack: what each column becomes, then a small model.

    python examples/flights.py [path]

The table of columns works for any Parquet file, the model needs those of data/flights.parquet.
"""

import sys
import textwrap
from pathlib import Path

import arrow_dlpack
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

FLIGHTS = Path(__file__).parent.parent / "data" / "flights.parquet"
TARGET = "arr_delay"
FEATURES = ["dep_delay", "air_time", "distance", "hour"]
ROW = "{:<15} {:<24.24} {:<48} {}"


def main(path: Path) -> None:
    table = in_one_piece(pq.read_table(path))
    show_columns(table)
    if {"carrier", TARGET, *FEATURES}.issubset(table.column_names):
        show_model(table)


def in_one_piece(table: pa.Table) -> pa.Table:
    """The table with every column in one chunk, because a tensor is one piece of memory."""
    print(f"{table.num_rows:,} rows, {table.num_columns} columns")
    chunks = max(column.num_chunks for column in table.columns)
    if chunks > 1:
        # arrow_dlpack.Array would concatenate the chunks too, but once for every Array made.
        print(
            f"up to {chunks} chunks a column: combine_chunks() copies them together once, "
            f"about {table.nbytes / 1e6:.1f} MB"
        )
    return table.combine_chunks()


def show_columns(table: pa.Table) -> None:
    """One row for each column: the tensor it became, or why it did not and what to do instead."""
    print("\n" + ROW.format("column", "Arrow type", "NumPy", "memory"))
    for name, column in zip(table.column_names, table.columns, strict=True):
        array = arrow_dlpack.Array(column)
        try:
            tensor = np.from_dlpack(array)
        except arrow_dlpack.UnsupportedError as refusal:
            reason, *more = textwrap.wrap(f"no: {refusal}", 65)
            print(ROW.format(name, array.type, reason, "").rstrip())
            for line in more:
                print(ROW.format("", "", line, "").rstrip())
        else:
            shared = shares_memory(tensor, column)
            memory = "zero-copy" if shared else f"{tensor.nbytes:,} bytes copied"
            print(ROW.format(name, array.type, f"{tensor.dtype} {tensor.shape}", memory))
            # Numbers lie in memory the same way on both sides, so there is no excuse to copy them.
            is_number = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
            require(shared or not is_number or tensor.nbytes == 0, f"{name} was copied")


def show_model(table: pa.Table) -> None:
    """Fits the arrival delay by least squares, then looks for the carriers it is wrong about."""
    # The table above names the ways out of nulls; dropping leaves the flights that arrived.
    flown = table.select(["carrier", TARGET, *FEATURES]).drop_null().combine_chunks()
    # The columns are shared; the matrix is not, because lstsq wants float64 side by side.
    columns = [as_tensor(flown[name]) for name in FEATURES]
    matrix = np.column_stack([np.ones(flown.num_rows), *columns])
    delay = as_tensor(flown[TARGET])
    coefficients, *_ = np.linalg.lstsq(matrix, delay)
    predictions = matrix @ coefficients

    terms = [f"{value:+.3f} {name}" for name, value in zip(FEATURES, coefficients[1:], strict=True)]
    print(f"\n{TARGET} in minutes, by least squares over {flown.num_rows:,} flights without nulls:")
    print(f"  {coefficients[0]:.1f} {' '.join(terms)}")
    r_squared = 1 - np.var(delay - predictions) / np.var(delay)
    mean_error = np.mean(np.abs(delay - predictions))
    print(f"  R^2 {r_squared:.3f}, mean absolute error {mean_error:.1f} minutes")

    predicted = as_column(predictions)
    error = pc.subtract(flown[TARGET], predicted)
    flown = flown.append_column("predicted", predicted).append_column("error", error)
    print("\nActual minus predicted delay, in minutes (negative: better than the model thinks):")
    by_carrier = flown.group_by("carrier").aggregate(
        [("carrier", "count"), (TARGET, "mean"), ("predicted", "mean"), ("error", "mean")]
    )
    print("  carrier  flights  actual  predicted  error")
    for row in by_carrier.sort_by("error_mean").to_pylist():
        print(
            f"  {row['carrier']:<7}  {row['carrier_count']:>7,}  {row['arr_delay_mean']:>6.1f}"
            f"  {row['predicted_mean']:>9.1f}  {row['error_mean']:>+5.1f}"
        )


def as_tensor(column: pa.ChunkedArray) -> np.ndarray:
    """The column's own memory as a NumPy array, read-only because Arrow data is immutable."""
    tensor = np.from_dlpack(arrow_dlpack.Array(column))
    require(shares_memory(tensor, column), f"a column of {column.type} was copied")
    return tensor


def as_column(tensor: np.ndarray) -> pa.ChunkedArray:
    """The tensor's own memory as an Arrow column, which keeps it alive.

    NumPy could still write to it, and Arrow would see that: whoever shares does not write.
    """
    column = pa.chunked_array([pa.array(arrow_dlpack.from_dlpack(tensor))])
    require(shares_memory(tensor, column), f"a tensor of {tensor.dtype} was copied")
    return column


def shares_memory(tensor: np.ndarray, column: pa.ChunkedArray) -> bool:
    """Whether the tensor begins at the very address where the column has its first value."""
    if column.num_chunks != 1:
        return False
    chunk = column.chunk(0)
    # The last buffer holds the values; those of a slice begin `offset` rows into it.
    address = chunk.buffers()[-1].address + chunk.offset * tensor.strides[0]
    return tensor.ctypes.data == address


def require(condition: bool, message: str) -> None:
    """Ends the program if what it shows is not so."""
    if not condition:
        sys.exit(f"flights.py: {message}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FLIGHTS)
