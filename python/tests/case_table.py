"""docs/reference/types.md: what each Arrow type and each dtype becomes, from data/cases.json.

A row of a table names the columns, or the dtypes, that it is true of: it cannot be written unless
they all come to the same.
"""

import re

import cases
from case_columns import EXOTIC, FLOATS, INTS

PAGE = cases.ROOT / "docs" / "reference" / "types.md"

UNITS = ("s", "ms", "us", "ns")

DECIMALS = "decimal of any width: the values"
STORED = "arrow.uuid, unknown extension types: what they are stored as"
REFUSED = (
    "null, interval, map, union, run_end_encoded; "
    "arrow.parquet.variant, arrow.timestamp_with_offset; struct with a field that has no place "
    "in a matrix, such as texts"
)

ARROW = {
    "int8 to int64, uint8 to uint64, halffloat, float, double": [*INTS, *FLOATS],
    "bool": ["bool"],
    "arrow.bool8": ["bool8"],
    "arrow.bool8 with other bytes than 0 and 1": ["bool8_bytes"],
    "fixed_size_list of those, at any depth": [
        *("fixed_size_list", "fixed_size_list_twice", "fixed_size_list_of_0"),
        "fixed_size_list_of_bfloat16",
    ],
    "arrow.fixed_shape_tensor, permuted or not": [
        f"fixed_shape_tensor{rest}" for rest in ("", "_permuted", "_transposed")
    ],
    "the same of bool": ["fixed_size_list_of_bools", "fixed_shape_tensor_of_bools"],
    "fixed_size_binary": ["fixed_size_binary"],
    "arrow.opaque of a dtype: bfloat16, float8, float6, float4, int4, complex": [
        *(*EXOTIC, "complex64", "complex128"),
    ],
    "date, time, timestamp, duration, decimal32, decimal64": [
        *("date32", "date64", "time32_s", "time32_ms", "time64_us", "time64_ns"),
        *(f"{kind}_{unit}" for kind in ("timestamp", "duration") for unit in UNITS),
        *("timestamp_utc", "timestamp_zone", "decimal32", "decimal64"),
    ],
    DECIMALS: ["decimal32", "decimal64", "decimal128", "decimal256"],
    "dictionary: the codes": ["dictionary", "dictionary_of_numbers"],
    STORED: ["uuid", "unknown_extension"],
    "list, string, binary, large or not; arrow.json": [
        *(f"{large}{kind}" for kind in ("list", "string", "binary") for large in ("", "large_")),
        *("json", "list_of_pairs"),
    ],
    "list of bool": ["list_of_bools"],
    "list_view, large or not": ["list_view", "large_list_view"],
    "list_view with rows in another order, string_view, binary_view": [
        *("list_view_scattered", "string_view", "binary_view"),
    ],
    "arrow.variable_shape_tensor": ["variable_shape_tensor", "variable_shape_tensor_permuted"],
    REFUSED: [
        *("null", "month_day_nano_interval", "struct", "map", "dense_union", "sparse_union"),
        *("run_end_encoded", "parquet_variant", "timestamp_with_offset"),
    ],
}

# What depends on more than the type of one column; test_cases.py asks explain.
MORE = [
    ["list of numbers, all of one length; list_view too", "2-D, the same dtype", "", "zero-copy"],
    ["list, string, binary", "2-D values, 1-D lengths", "`pad=`", "copied"],
    ["table, record batch, struct: several columns", "2-D, one dtype for all", "", "copied"],
    ["the same with one column", "2-D, the same dtype", "", "as the column"],
    [
        "the same, column by column",
        "a tensor a column",
        "`to_tensor_dict`",
        "as the column; lists are refused",
    ],
]

NUMBERS = [*INTS, "float16", "float32", "float64"]
FLOATS_BELOW = [name for name in EXOTIC if "float" in name]
INTS_BELOW = [name for name in EXOTIC if "int" in name]

# What it is, which dtypes, how many axes, and whether one element lies behind the other.
TENSORS = [
    ("integers, float16, float32, float64", NUMBERS, 1, True),
    ("the same strided, reversed or broadcast", NUMBERS, 1, False),
    ("of more axes", NUMBERS, 2, True),
    ("of more axes in another order in memory", NUMBERS, 2, False),
    ("bool", ["bool"], 1, True),
    ("bfloat16, float8, float6, float4", FLOATS_BELOW, 1, True),
    ("int4, uint4, int2, uint2", INTS_BELOW, 1, True),
    ("complex64, complex128", ["complex64", "complex128"], 1, True),
]


def table(header: list[str], rows: list[list[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in (header, ["---"] * len(header), *rows)]


def one(label: str, found: list[str]) -> str:
    assert len(set(found)) == 1, f"{label}: {sorted(set(found))}"
    return found[0]


def code(text: str) -> str:
    return f"`{text}`" if text else ""


# --- Arrow to tensors -----------------------------------------------------------------------------


def arrow_row(record: dict, label: str, columns: list[str]) -> list[str]:
    asked = {"dtype"} if label == DECIMALS else {"physical", "row"}
    found = [plain_cases(record, column, asked) for column in columns]
    if not any(found):
        return [label, "refused", "", ""]
    first = [case_of[min(case_of, key=["whole", "sliced"].index)] for case_of in found]
    how = one(label, [asked_for(case) for case in first])
    made = "n-D, the dtype of the storage" if label == STORED else what(record, columns, first)
    return [label, made, code(how), one(label, list(map(copies, found)))]


def plain_cases(record: dict, column: str, asked: set[str]) -> dict[str, dict]:
    """What becomes of a column if no more is asked for than it takes, whole and sliced."""
    return {
        case["layout"]: case
        for case in reversed(record["to_tensor"])
        if case["column"] == column
        and case["layout"] in ("whole", "sliced")
        and set(case.get("options", {})) <= asked
        and "expect" in case
        and (case.get("door") != "row" or "variable_shape" in column)
    }


def asked_for(case: dict) -> str:
    if "physical" in case.get("options", {}):
        return "physical=True"
    if "dtype" in case.get("options", {}):
        return f'dtype="{case["options"]["dtype"]}"'
    return {"ragged": "ragged", "row": "Array.row"}.get(case.get("door", ""), "")


def what(record: dict, columns: list[str], first: list[dict]) -> str:
    door = first[0].get("door")
    if door == "ragged":
        return "1-D values, 1-D offsets"
    if door == "row":
        return "a tensor a row"
    ranks = {len(case["expect"]["shape"]) for case in first}
    dtypes = list(dict.fromkeys(case["expect"]["dtype"] for case in first))
    same = all(
        own_dtype(record["columns"][column]) == case["expect"]["dtype"]
        for column, case in zip(columns, first, strict=True)
    )
    # Types with a parameter have other dtypes than those of the cases.
    any_dtype = len(dtypes) > 1 or "value_type=" in record["columns"][columns[0]]
    dtype = "the same dtype" if same and any_dtype else " or ".join(dtypes)
    return f"{ranks.pop() if len(ranks) == 1 else 'n'}-D, {dtype}"


def own_dtype(type_name: str) -> str:
    """Of the numbers in a type, as NumPy calls them."""
    inner = re.search(r"(?:type_name|value_type|indices)=(\w+)", type_name)
    inner = inner or re.search(r"<item: (\w+)>", type_name)
    name = inner[1] if inner else type_name
    return {"halffloat": "float16", "float": "float32", "double": "float64"}.get(name, name)


def copies(case_of: dict[str, dict]) -> str:
    """Which parts of the result are copied: of the whole column, and of a slice."""
    parts = {}
    for layout, case in case_of.items():
        expect = case["expect"]
        found = [("values", expect)] if expect["shape"].count(0) == 0 else []
        found += [("offsets", expect["offsets"])] if "offsets" in expect else []
        parts[layout] = {name for name, part in found if not part["read_only"]}
    if len(set(map(frozenset, parts.values()))) == 1:
        copied = next(iter(parts.values()))
        if copied == {"offsets"}:
            return "zero-copy, offsets copied"
        return "copied" if copied else "zero-copy"
    assert parts["sliced"] - parts["whole"] == {"offsets"}, parts
    values = "copied" if "values" in parts["whole"] else "zero-copy"
    return f"{values}, offsets copied if sliced"


# --- nulls ----------------------------------------------------------------------------------------


def null_rows(record: dict) -> list[list[str]]:
    found = {}
    for case in record["to_tensor"]:
        if case["column"].removesuffix("_nulls") in INTS and case["layout"] in ("whole", "tail"):
            options = case.get("options", {})
            if set(options) <= {"nulls"} and case["column"].endswith("_nulls"):
                found.setdefault(options.get("nulls", "error"), []).append(case)
    assert all("error" in case for case in found["error"])
    wide = {}
    for case in found["nan"]:
        wide.setdefault(case["expect"]["dtype"], []).append(case["column"].removesuffix("_nulls"))
    floats = "; ".join(f"{', '.join(names)} become {dtype}" for dtype, names in wide.items())
    values = one("mask", [str(case["expect"]["read_only"]) for case in found["mask"]])
    assert values == "True"
    assert not any(case["expect"]["read_only"] for case in [*found[7], *found["nan"]])
    return [
        ['`"error"`, the default', "they are refused", ""],
        ["a value", "they become that value", "copied, if there are nulls"],
        ['`"nan"`', f"they become NaN; {floats}", "copied, unless floats without nulls"],
        ['`"mask"`', "`(values, mask)`, the mask True where valid", "mask copied"],
    ]


# --- tensors to Arrow -----------------------------------------------------------------------------


def tensor_rows(record: dict) -> list[list[str]]:
    rows = []
    for label, dtypes, ndim, contiguous in TENSORS:
        found = {}
        for case in record["to_arrow"]:
            options = case.get("options", {})
            if (
                "expect" in case
                and not case.get("packed")
                and case["dtype"] in dtypes
                and (len(case["shape"]) == 1) == (ndim == 1)
                and case["shape"].count(0) == 0
                and case["shape"] != []
                and is_contiguous(case) == contiguous
                and set(options) <= {"type"}
            ):
                found.setdefault(options.get("type", ""), []).append(case)
        for option, those in found.items():
            names = list(dict.fromkeys(short(case["expect"]["type"]) for case in those))
            copied = one(label, [copied_cell(case) for case in those])
            how = code(f'type="{option}"' if option else "")
            become = " or ".join(names) if len(names) < 3 else "the same type"
            rows.append([label, become, how, copied])
            label = ""  # noqa: PLW2901
    return rows


def is_contiguous(case: dict) -> bool:
    place = 1
    for extent, stride in zip(reversed(case["shape"]), reversed(case["strides"]), strict=True):
        if extent > 1 and stride != place:
            return False
        place *= extent
    return True


def copied_cell(case: dict) -> str:
    return "copied" if case["expect"]["copied_bytes"] else "zero-copy"


def short(type_name: str) -> str:
    """A type without what is of no interest here."""
    name = re.sub(r"^extension<(arrow\.\w+).*", r"\1", type_name)
    return re.sub(r"<item: \w+>\[2\]", " of pairs", name).split("<")[0]


TEXT = """\
<!-- made by `make cases` from data/cases.json -->

# Types

What each Arrow type becomes as a tensor, and each dtype as an Arrow array. The tests run every case
that these tables sum up. `explain` says the same of one array or tensor, and `copy=False` forbids
every copy below, with an error that tells what it would have been.

## Arrow to tensors

The tables hold for slices too. What is zero-copy is read-only, and `copy=True` makes a writable
copy of anything. If more than one chunk has rows they are put together, which is a copy.

{arrow}

## Nulls

By `nulls=`. Those outside of a slice do not count, those within nested types do.

{nulls}

## Tensors to Arrow

In memory that the CPU can read; a tensor on another device is copied by its producer first.

{tensors}
"""


def page(record: dict) -> str:
    header = ["Arrow", "tensor", "asked for with", ""]
    arrow = {label: arrow_row(record, label, columns) for label, columns in ARROW.items()}
    refused = arrow.pop(REFUSED)
    tables = {
        "arrow": table(header, [*arrow.values(), *MORE, refused]),
        "nulls": table(["", "nulls", ""], null_rows(record)),
        "tensors": table(["tensor", "Arrow", "asked for with", ""], tensor_rows(record)),
    }
    return TEXT.format_map({key: "\n".join(lines) for key, lines in tables.items()})


def write(record: dict) -> None:
    PAGE.write_text(page(record), "utf-8")
