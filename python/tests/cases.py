"""data/cases.arrow and data/cases.json: what each Arrow type is as a tensor, each dtype in Arrow.

The file of columns has two record batches, so that there are chunks. `make cases` makes both
files; nothing in here, nor in what makes them, imports arrow_dlpack.
"""

import json
from pathlib import Path

import pyarrow as pa

ROOT = Path(__file__).parents[2]
COLUMNS = ROOT / "data" / "cases.arrow"
CASES = ROOT / "data" / "cases.json"

# Rows of the two batches. A slice of 6 rows from the third on ends in another byte of a bitmap.
ROWS = (10, 4)

# What is made of the two chunks of a column.
LAYOUTS = {
    "whole": lambda first, _: first,
    "sliced": lambda first, _: first.slice(3, 6),
    "resliced": lambda first, _: first.slice(1, 8).slice(2, 5),
    "tail": lambda first, _: first.slice(5),
    "empty": lambda first, _: first.slice(4, 0),
    "chunked": lambda first, second: pa.chunked_array([first, second]),
    "one chunk": lambda first, second: pa.chunked_array(
        [second.slice(4), first, first.slice(2, 0)]
    ),
}


def extension_type(name: str) -> type[pa.ExtensionType]:
    """A type of this name, which pyarrow then reads and writes as it does its own."""

    class Named(pa.ExtensionType):
        def __init__(self, storage: pa.DataType, text: bytes = b"") -> None:
            self.text = text
            super().__init__(storage, name)

        def __arrow_ext_serialize__(self) -> bytes:
            return self.text

        @classmethod
        def __arrow_ext_deserialize__(cls, storage: pa.DataType, text: bytes) -> pa.ExtensionType:
            return cls(storage, text)

        def __str__(self) -> str:
            return f"extension<{name}[{self.storage_type}]>"

    pa.register_extension_type(Named(pa.null()))
    return Named


# Two canonical ones that pyarrow has no class for, and an unknown one.
PARQUET_VARIANT = extension_type("arrow.parquet.variant")
TIMESTAMP_WITH_OFFSET = extension_type("arrow.timestamp_with_offset")
CELSIUS = extension_type("example.celsius")


def columns() -> dict[str, list[pa.Array]]:
    """Both chunks of every column."""
    aligned = pa.ipc.IpcReadOptions(ensure_alignment=pa.ipc.Alignment.At64Byte)
    with pa.ipc.open_file(pa.py_buffer(COLUMNS.read_bytes()), options=aligned) as file:
        batches = [file.get_batch(index) for index in range(file.num_record_batches)]
    names = batches[0].schema.names
    return {name: [batch.column(name) for batch in batches] for name in names}


def laid_out(chunks: list[pa.Array], layout: str) -> pa.Array | pa.ChunkedArray:
    return LAYOUTS[layout](*chunks)


def read() -> dict:
    return json.loads(CASES.read_text("utf-8"))


def each(cases: list[dict]) -> list[dict]:
    """A case of several layouts is a case of each."""
    return [
        {**case, "layout": layout}
        for case in cases
        for layout in ([case["layout"]] if isinstance(case["layout"], str) else case["layout"])
    ]
