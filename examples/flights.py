"""Real flights from Parquet through arrow_dlpack: what each column becomes, then a small model.

    python examples/flights.py [path]

The table of columns works for any Parquet file, the model needs those of data/flights.parquet.
"""

import sys
from pathlib import Path

import arrow_dlpack
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FLIGHTS = Path(__file__).parent.parent / "data" / "flights.parquet"
TARGET = "arr_delay"
FEATURES = ["dep_delay", "air_time", "distance", "hour"]
ROW = "{:<15} {:<25} {:<28} {:<20} {}"


def main(path: Path) -> None:
    table = pq.read_table(path)
    chunks = max(column.num_chunks for column in table.columns)
    print(f"{table.num_rows:,} rows, {table.num_columns} columns, up to {chunks} chunks a column")
    show_columns(table.combine_chunks())
    if {"carrier", TARGET, *FEATURES}.issubset(table.column_names):
        show_model(table)


def show_columns(table: pa.Table) -> None:
    """One row for each column: the tensor it becomes, with which argument, and what that copies."""
    print("\n" + ROW.format("column", "Arrow type", "call", "tensor", "memory"))
    for name, column in zip(table.column_names, table.columns, strict=True):
        call, options = answer(column)
        is_ragged = call == "ragged"
        if is_ragged:
            tensor = arrow_dlpack.ragged(column, **options).values
        else:
            tensor = arrow_dlpack.to_tensor(column, **options)
        plan = arrow_dlpack.explain(column, **options, ragged=is_ragged)
        arguments = ", ".join(f"{keyword}={value!r}" for keyword, value in options.items())
        kind = f"{tensor.dtype} {tensor.shape}"
        type_name = arrow_dlpack.Array(column).type
        print(ROW.format(name, type_name, f"{call}({arguments})", kind, plan))
        # What the plan says is what happened.
        shared = shares_memory(np.asarray(tensor), column)
        require(shared == plan.zero_copy or is_ragged, f"{name}: {plan}")


def answer(column: pa.ChunkedArray) -> tuple[str, dict[str, object]]:
    """How the column becomes a tensor: at most one argument says what there is to say about it."""
    if pa.types.is_string(column.type):
        return "ragged", {"nulls": "mask"} if column.null_count else {}
    if pa.types.is_temporal(column.type) or pa.types.is_dictionary(column.type):
        return "to_tensor", {"physical": True}
    return "to_tensor", {"nulls": "nan"} if column.null_count else {}


def show_model(table: pa.Table) -> None:
    """Fits the arrival delay by least squares, then looks for the carriers it is wrong about."""
    # All numeric columns as one matrix, in one pass over the chunks: numbers of five types become
    # float64, nulls 0. The mask tells which flights arrived, and so have a delay.
    numeric = [field.name for field in table.schema if is_number(field.type)]
    matrix = arrow_dlpack.to_tensor(table, columns=numeric, dtype="float64", nulls=0)
    print(f"\n{len(numeric)} numeric columns as one matrix: {matrix}")
    _, arrived = arrow_dlpack.to_tensor(table[TARGET], nulls="mask")
    matrix, arrived = np.from_dlpack(matrix), np.from_dlpack(arrived)

    flown = matrix[arrived]
    features = [numeric.index(name) for name in FEATURES]
    inputs = np.column_stack([np.ones(len(flown)), flown[:, features]])
    delay = flown[:, numeric.index(TARGET)]
    coefficients, *_ = np.linalg.lstsq(inputs, delay)
    predictions = inputs @ coefficients

    terms = [f"{value:+.3f} {name}" for name, value in zip(FEATURES, coefficients[1:], strict=True)]
    print(f"\n{TARGET} in minutes, by least squares over the {len(flown):,} flights that arrived:")
    print(f"  {coefficients[0]:.1f} {' '.join(terms)}")
    r_squared = 1 - np.var(delay - predictions) / np.var(delay)
    mean_error = np.mean(np.abs(delay - predictions))
    print(f"  R^2 {r_squared:.3f}, mean absolute error {mean_error:.1f} minutes")

    # And back: three tensors as columns beside one that never left Arrow.
    columns = {"actual": delay.copy(), "predicted": predictions, "error": delay - predictions}
    batch = pa.record_batch(arrow_dlpack.record_batch(columns))
    require(batch["error"].buffers()[1].address == columns["error"].ctypes.data, "it was copied")
    carrier = table["carrier"].combine_chunks().filter(pa.array(arrow_dlpack.from_dlpack(arrived)))
    print("\nActual minus predicted delay, in minutes (negative: better than the model thinks):")
    by_carrier = pa.table(batch).append_column("carrier", carrier).group_by("carrier")
    means = [("carrier", "count"), *((name, "mean") for name in columns)]
    print("  carrier  flights  actual  predicted  error")
    for row in by_carrier.aggregate(means).sort_by("error_mean").to_pylist():
        print(
            f"  {row['carrier']:<7}  {row['carrier_count']:>7,}  {row['actual_mean']:>6.1f}"
            f"  {row['predicted_mean']:>9.1f}  {row['error_mean']:>+5.1f}"
        )


def is_number(data_type: pa.DataType) -> bool:
    return pa.types.is_integer(data_type) or pa.types.is_floating(data_type)


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
