"""Makes data/cases.arrow and data/cases.json, and writes docs/reference/types.md from them.

    python python/tests/make_cases.py

Nothing here asks arrow_dlpack.
"""

import json

import case_columns
import case_table
import cases
import pyarrow as pa
from case_back import back_cases
from case_expect import COLUMNS, no_rows, null_cases, ragged, refusal, row, tensor

NUMBERS = [*case_columns.INTS, *case_columns.FLOATS]
DENSE = ["whole", "sliced", "empty", "chunked"]
EVERY = [*DENSE, "resliced"]


def number_cases() -> list[dict]:
    found = []
    for name in NUMBERS:
        found += [tensor(name, layout) for layout in DENSE]
        found += null_cases(f"{name}_nulls", 7)
        found += [tensor(f"{name}_nulls", layout, nulls="nan") for layout in ("whole", "sliced")]
    return [
        *found,
        tensor("int32", "one chunk"),
        tensor("int32", "resliced"),
        tensor("int32", "sliced", copy=True),
        tensor("int32", "sliced", copy=False),
        tensor("int32_nulls", "sliced", copy=False),
        tensor("int32_nulls", "whole", nulls="mask", copy=True),
        tensor("int32_nulls", "chunked", nulls="mask"),
        tensor("int16_nulls", "empty", nulls="nan"),
        tensor("float_nulls", "empty", nulls=7),
        tensor("int8_nulls", "whole", nulls=7),
        tensor("int8", "whole", nulls="nan"),
        tensor("float", "whole", nulls="nan"),
        tensor("float", "whole", nulls="mask"),
        refusal("int32", "buffer", "chunks", "chunked", copy=False),
        refusal("int32_nulls", "buffer", "null", copy=False, nulls=0),
        refusal("int32_nulls", "buffer", "mask", copy=False, nulls="mask"),
        refusal("int8_nulls", "value", "300", nulls=300),
        refusal("uint8_nulls", "value", "-1", nulls=-1),
        refusal("int64_nulls", "value", "1.5", nulls=1.5),
        tensor("int8", "whole", dtype="float32"),
        tensor("int8", "sliced", dtype="int64"),
        tensor("int8", "whole", dtype="int8"),
        tensor("uint8", "sliced", dtype="uint64"),
        tensor("halffloat", "whole", dtype="float32"),
        tensor("float", "sliced", dtype="float64"),
        tensor("int16_nulls", "whole", dtype="int32", nulls=-70000),
        tensor("int8_nulls", "tail", dtype="float64", nulls="nan"),
        tensor("uint8_nulls", "tail", dtype="float32", nulls="mask"),
        refusal("int32", "value", "int8", dtype="int8"),
        refusal("int8", "buffer", "float32", dtype="float32", copy=False),
    ]


def boolean_cases() -> list[dict]:
    found = [tensor(name, layout) for name in ("bool", "bool8", "bool8_bytes") for layout in EVERY]
    found += [*null_cases("bool_nulls", True), *null_cases("bool8_nulls", False)]
    found += [tensor(f"{name}_nulls", "tail", nulls="nan") for name in ("bool", "bool8")]
    return [
        *found,
        tensor("bool", "whole", nulls="nan"),
        tensor("bool", "sliced", dtype="float32"),
        tensor("bool", "sliced", dtype="uint8"),
        tensor("bool8", "sliced", copy=False),
        tensor("bool8", "sliced", copy=True),
        refusal("bool", "buffer", "bits", copy=False),
        refusal("bool8_bytes", "buffer", "0 and 1", copy=False),
        refusal("bool_nulls", "value", "2", nulls=2),
    ]


def list_cases() -> list[dict]:
    """Rows that all have the same shape."""
    found = []
    for name in ("", "_of_bools", "_twice", "_of_0", "_of_binary", "_of_bfloat16"):
        found += [tensor(f"fixed_size_list{name}", layout) for layout in EVERY]
    for name in ("", "_permuted", "_transposed", "_of_bools"):
        found += [tensor(f"fixed_shape_tensor{name}", layout) for layout in EVERY]
        found += [row(f"fixed_shape_tensor{name}", "sliced", 2)]
    found += null_cases("fixed_size_list_nulls", -1.5)
    found += null_cases("fixed_size_list_inner_nulls", 0)
    found += null_cases("fixed_size_list_twice_inner_nulls", 9)
    found += null_cases("fixed_size_list_of_bools_nulls", True)
    found += null_cases("fixed_shape_tensor_nulls", 0)
    found += null_cases("fixed_shape_tensor_permuted_nulls", 0.5)
    found += null_cases("fixed_size_binary_nulls", 32)
    found += [tensor("fixed_size_binary", layout) for layout in EVERY]
    stamps = "fixed_size_list_of_timestamps"
    found += [refusal(stamps, "type", "physical=True", EVERY)]
    found += [tensor(stamps, layout, physical=True) for layout in ("whole", "resliced")]
    return [
        *found,
        tensor("fixed_size_list_inner_nulls", "tail", nulls="nan"),
        tensor("fixed_size_list_of_ints_nulls", "tail", nulls="nan"),
        tensor("fixed_size_list_of_ints_nulls", "whole", nulls=0),
        tensor("fixed_size_list", "sliced", copy=True),
        tensor("fixed_shape_tensor_permuted", "sliced", copy=True),
        tensor("fixed_size_list_twice", "sliced", dtype="float32"),
        row("fixed_size_list", "whole", 9),
        row("fixed_size_list_twice", "sliced", 1),
        row("fixed_size_list_of_bools", "whole", 4),
        refusal("fixed_shape_tensor_nulls", "type", "null", door="row", row=1),
        refusal("fixed_size_list_inner_nulls", "type", "null", door="row", row=1),
        refusal("fixed_size_list_of_strings", "type", "ragged", EVERY),
    ]


def variable_cases() -> list[dict]:
    found = []
    for name in ("variable_shape_tensor", "variable_shape_tensor_permuted"):
        found += [row(name, "whole", index) for index in (0, 5)]
        found += [row(name, layout, 2) for layout in ("sliced", "resliced")]
        found += [refusal(name, "type", "with row", [*EVERY, "one chunk"])]
    return [
        *found,
        row("variable_shape_tensor_nulls", "tail", 0),
        refusal("variable_shape_tensor_nulls", "type", "null", door="row", row=1),
    ]


def ragged_cases() -> list[dict]:
    found = []
    lists = [f"{large}list{view}" for view in ("", "_view") for large in ("", "large_")]
    texts = ["string", "large_string", "string_view", "binary", "large_binary", "binary_view"]
    for name in (*lists, *texts, "json"):
        # Lists of one length are a tensor, and no rows have one.
        uneven = [layout for layout in EVERY if layout != "empty" or name not in lists]
        found += [refusal(name, "type", "ragged", uneven)]
        found += [ragged(name, layout) for layout in EVERY]
        found += [refusal(f"{name}_nulls", "type", "2 nulls", door="ragged")]
        found += [ragged(f"{name}_nulls", layout, nulls="mask") for layout in ("whole", "tail")]
        found += [ragged(f"{name}_nulls", "sliced")]
    found += [no_rows(name) for name in lists]
    for name in ("list_hidden", "large_list_hidden", "string_hidden"):
        found += [ragged(name, layout, nulls="mask") for layout in ("whole", "tail", "sliced")]
    for name in ("list_view_scattered", "list_of_bools", "list_of_pairs"):
        found += [ragged(name, layout) for layout in ("whole", "sliced", "empty")]
    for name in (
        "list",
        "list_view",
        "large_list",
        "large_list_view",
        "list_of_pairs",
        "list_of_bools",
    ):
        found += [row(name, "sliced", 2)]
    found += [row(name, "whole", 4) for name in ("string", "string_view", "binary_view")]
    return [
        *found,
        row("list", "whole", 2),
        ragged("list", "whole", offset_type="int64"),
        ragged("list", "sliced", offset_type="int64"),
        ragged("large_list", "whole", offset_type="int32"),
        ragged("list_inner_nulls", "whole", nulls=0),
        ragged("list_inner_nulls", "whole", nulls="nan"),
        refusal("list_inner_nulls", "type", "2 nulls", door="ragged"),
        ragged("list_inner_nulls", "sliced", nulls=-1),
        refusal("list_nulls", "type", "null", door="row", row=1),
        refusal("int32", "type", "to_tensor", door="ragged"),
        refusal("list_of_lists", "type", "List", ["whole", "sliced"], "ragged"),
        refusal("list_of_strings", "type", "Utf8", ["whole", "sliced"], "ragged"),
    ]


def physical_cases() -> list[dict]:
    """Numbers that are not just numbers."""
    found = []
    names = [*case_columns.meanings(), *case_columns.dictionaries(), "unknown_extension"]
    names += ["uuid", "uuid_nulls", "unknown_extension_nulls"]
    for name in names:
        if name.startswith(("decimal128", "decimal256")):
            continue  # they have no integers of a dtype
        if name.endswith("_nulls"):
            fill = -1 if name == "dictionary_nulls" else 0
            found += null_cases(name, fill, physical=True)
        else:
            found += [refusal(name, "type", "physical=True", EVERY)]
            unit = name.startswith(("timestamp", "duration")) and f"{name}_nulls" not in names
            layouts = ("sliced",) if unit else DENSE
            found += [tensor(name, layout, physical=True) for layout in layouts]
    times = [name for name in case_columns.meanings() if not name.startswith("decimal")]
    plain = [name for name in times if not name.endswith("_nulls")]
    found += [tensor(name, "sliced", physical=True, dtype="float64") for name in plain]
    return [*found, refusal("opaque_other", "type", "physical=True", EVERY)]


def decimal_cases() -> list[dict]:
    """Decimals as the numbers that they are."""
    found = []
    for name in ("decimal32", "decimal64", "decimal128", "decimal256"):
        found += [refusal(name, "type", "float64", EVERY)]
        found += [refusal(f"{name}_nulls", "type", "float64", EVERY)]
        found += [tensor(name, layout, dtype="float64") for layout in EVERY]
        found += null_cases(f"{name}_nulls", 0.5, dtype="float64")
        found += [tensor(f"{name}_nulls", "tail", dtype="float32", nulls="nan")]
        found += [tensor(name, "whole", dtype="float16", physical=True)]
        found += [refusal(name, "buffer", "decimals", dtype="float64", copy=False)]
    return [*found, refusal("decimal128", "type", "float64", physical=True)]


def opaque_cases() -> list[dict]:
    found = []
    for name in (*case_columns.EXOTIC, "complex64", "complex128"):
        found += [tensor(name, layout) for layout in ("whole", "sliced")]
    found += [
        tensor(name, layout)
        for name in ("bfloat16", "complex64")
        for layout in ("empty", "chunked")
    ]
    found += [tensor(name, "chunked") for name in ("float8_e4m3fn", "float4_e2m1fn")]
    found += [tensor(name, "sliced", copy=True) for name in ("bfloat16", "int4", "complex64")]
    return [
        *found,
        *null_cases("bfloat16_nulls", 0.5),
        tensor("bfloat16_nulls", "tail", nulls="nan"),
    ]


def refused_cases() -> list[dict]:
    """What no keyword makes a tensor of."""
    phrases = {
        "null": "cast",
        "month_day_nano_interval": "split",
        "map": "its keys and its items",
        "dense_union": "children",
        "sparse_union": "children",
        "run_end_encoded": "decode",
        "parquet_variant": "arrow.parquet.variant",
        "timestamp_with_offset": "arrow.timestamp_with_offset",
    }
    found = [refusal(name, "type", phrase, EVERY) for name, phrase in phrases.items()]
    return [
        *found,
        refusal("null", "type", phrases["null"], physical=True),
        # In Python a struct is a table, and it is a column of it that is refused.
        refusal("struct", "type", 'column "b"', EVERY),
    ]


def make() -> dict:
    """The whole of cases.json, from the columns as they are read back from the file."""
    found = [
        *(number_cases(), boolean_cases(), list_cases(), variable_cases(), ragged_cases()),
        *(physical_cases(), decimal_cases(), opaque_cases(), refused_cases()),
    ]
    return {
        "columns": {name: str(chunks[0].type) for name, chunks in COLUMNS().items()},
        "to_tensor": [case for family in found for case in family],
        "to_arrow": back_cases(),
    }


def written(record: dict) -> str:
    """A case a line."""
    columns = json.dumps(record["columns"], indent=2).replace("\n", "\n  ")
    sections = [f'  "columns": {columns}']
    for section in ("to_tensor", "to_arrow"):
        lines = ",\n".join(f"    {json.dumps(case)}" for case in record[section])
        sections.append(f'  "{section}": [\n{lines}\n  ]')
    return "{\n" + ",\n".join(sections) + "\n}\n"


def file_of_columns() -> bytes:
    return file_of(case_columns.make())


def file_of(batches: list[pa.RecordBatch]) -> bytes:
    file = pa.BufferOutputStream()
    with pa.ipc.new_file(file, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return file.getvalue().to_pybytes()


def main() -> None:
    cases.COLUMNS.write_bytes(file_of_columns())
    cases.CASES.write_text(written(make()), "utf-8")
    case_table.write(cases.read())


if __name__ == "__main__":
    main()
