"""Writes where the fuzzer of Arrow IPC begins: each column of data/, as a stream and a file."""

import io
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet

HEAD = 16  # bytes that choose the reader and the options, see src/ipc.rs
ROWS = 9


def tables() -> list[pa.Table]:
    with pa.ipc.open_file("data/cases.arrow") as cases:
        return [cases.read_all(), pa.parquet.read_table("data/flights.parquet").slice(0, ROWS + 3)]


def batches(table: pa.Table, name: str) -> list[pa.RecordBatch]:
    column = table.select([name]).combine_chunks()
    return [*column[:ROWS].to_batches(), *column[ROWS : ROWS + 3].to_batches()]


def write(batches: list[pa.RecordBatch], new: callable) -> bytes:
    sink = io.BytesIO()
    with new(sink, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return sink.getvalue()


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for table in tables():
        groups = [batches(table, name) for name in table.schema.names]
        # Numbers together, which are a matrix.
        numbers = [field.name for field in table.schema if pa.types.is_integer(field.type)][:3]
        groups.append(table.select(numbers).combine_chunks()[:ROWS].to_batches())
        for index, group in enumerate(groups):
            name = group[0].schema.names[0] + f"-{index}"
            for reader, new in enumerate([pa.ipc.new_stream, pa.ipc.new_file]):
                head = bytes([reader, *range(index, index + HEAD - 1)])
                (folder / f"{name}-{reader}").write_bytes(head + write(group, new))


main(Path(sys.argv[1]))
