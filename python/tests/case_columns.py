"""The columns of data/cases.arrow: at least one of each type that pyarrow can write.

A column whose name ends with `_nulls` has nulls in rows 1, 9 and 12: two in the first chunk, none
in its slice, one in its tail, one in the second chunk.
"""

import datetime
import decimal
import json
from collections.abc import Callable, Iterable

import ml_dtypes
import numpy as np
import pyarrow as pa
from cases import CELSIUS, PARQUET_VARIANT, ROWS, TIMESTAMP_WITH_OFFSET

COUNT = sum(ROWS)
NULLS = (1, 9, 12)

INTS = [f"{sign}int{bits}" for bits in (8, 16, 32, 64) for sign in ("", "u")]
FLOATS = {"halffloat": pa.float16(), "float": pa.float32(), "double": pa.float64()}

# What DLPack has and Arrow has not, by ml_dtypes' names.
EXOTIC = ["bfloat16", *(name for name in dir(ml_dtypes) if name.startswith("float"))]
EXOTIC += ["int2", "int4", "uint2", "uint4"]


def bits_of(name: str) -> int:
    dtype = getattr(ml_dtypes, name)
    return (ml_dtypes.finfo if "float" in name else ml_dtypes.iinfo)(dtype).bits


def with_nulls(values: Iterable) -> list:
    return [None if row in NULLS else value for row, value in enumerate(values)]


def spread(count: int = COUNT) -> list[int]:
    """Small numbers, none of them twice."""
    return [(row * 5) % count - row % 2 * count for row in range(count)]


# Of lists: 22 values in all, some of them in rows that become null.
LENGTHS = (2, 1, 0, 3, 0, 2, 1, 4, 1, 2, 0, 3, 1, 2)


def chopped(values: list, lengths: Iterable[int] = LENGTHS) -> list:
    """The first values as the first list, and so on."""
    values = iter(values)
    return [[next(values) for _ in range(length)] for length in lengths]


def hidden(array: pa.Array) -> pa.Array:
    """A list array whose null rows have values all the same."""
    mask = pa.array([row in NULLS for row in range(len(array))])
    return type(array).from_arrays(array.offsets, array.values, mask=mask)


def numbers() -> dict[str, pa.Array]:
    found = {}
    for name in INTS:
        limits = np.iinfo(name)
        values = [0, 1, 2, limits.max, limits.min, *range(3, COUNT - 2)]
        found[name] = pa.array(values, name)
        found[f"{name}_nulls"] = pa.array(with_nulls(values), name)
    for name, dtype in FLOATS.items():
        limits = np.finfo(dtype.to_pandas_dtype())
        special = [float("nan"), float(limits.smallest_subnormal), float("-inf"), -0.0]
        values = [0.0, 1.5, -2.25, *special, float(limits.max), 3.0, 4.5, *np.arange(4) / 8]
        found[name] = pa.array(values, dtype)
        found[f"{name}_nulls"] = pa.array(with_nulls(values), dtype)
    return found


def booleans() -> dict[str, pa.Array]:
    values = [
        True,
        False,
        False,
        True,
        True,
        False,
        True,
        False,
        True,
        True,
        False,
        True,
        True,
        False,
    ]
    bytes_ = [1, 0, 2, 1, -1, 0, 1, 0, 127, 1, 0, 1, 1, 0]
    return {
        "bool": pa.array(values),
        "bool_nulls": pa.array(with_nulls(values)),
        "bool8": pa.ExtensionArray.from_storage(pa.bool8(), pa.array(values).cast("int8")),
        "bool8_nulls": pa.array(with_nulls(values)).cast(pa.bool8()),
        # Any byte but 0 is true.
        "bool8_bytes": pa.ExtensionArray.from_storage(pa.bool8(), pa.array(bytes_, "int8")),
    }


def texts() -> dict[str, pa.Array]:
    # The views of those over 12 bytes lie elsewhere.
    words = ["", "a", "bc", "ünïcode", "longer than 12 bytes", "d", "", "again: over 12", "e", "fg"]
    words += ["h", "", "the last of the long ones", "i"]
    found = {}
    for kind in ("string", "large_string", "string_view", "binary", "large_binary", "binary_view"):
        text = "string" in kind
        values = words if text else [word.encode() for word in words]
        dtype = getattr(pa, kind)()
        found[kind] = pa.array(values, dtype)
        found[f"{kind}_nulls"] = pa.array(with_nulls(values), dtype)
    # Null rows that have bytes nevertheless.
    whole, valid = found["string"], found["string_nulls"].buffers()[0]
    found["string_hidden"] = pa.Array.from_buffers(
        pa.string(), COUNT, [valid, *whole.buffers()[1:]]
    )
    rows = [bytes([row, 255 - row, 7]) for row in range(COUNT)]
    found["fixed_size_binary"] = pa.array(rows, pa.binary(3))
    found["fixed_size_binary_nulls"] = pa.array(with_nulls(rows), pa.binary(3))
    return found


def meanings() -> dict[str, pa.Array]:
    """Numbers that are not just numbers."""
    kinds = {
        "date32": pa.date32(),
        "date64": pa.date64(),
        **{f"time32_{unit}": pa.time32(unit) for unit in ("s", "ms")},
        **{f"time64_{unit}": pa.time64(unit) for unit in ("us", "ns")},
        **{f"timestamp_{unit}": pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")},
        "timestamp_utc": pa.timestamp("us", "UTC"),
        "timestamp_zone": pa.timestamp("ns", "Europe/Berlin"),
        **{f"duration_{unit}": pa.duration(unit) for unit in ("s", "ms", "us", "ns")},
    }
    nullable = ("date32", "date64", "time32_s", "time64_us", "timestamp_utc", "duration_ns")
    found = {}
    for name, dtype in kinds.items():
        day = 86_400_000 if name == "date64" else 1
        values = [abs(value) * day for value in spread()]
        storage = pa.int32() if dtype.bit_width == 32 else pa.int64()
        found[name] = pa.array(values, storage).view(dtype)
        if name in nullable:
            found[f"{name}_nulls"] = pa.array(with_nulls(values), storage).view(dtype)
    for bits, digits in ((32, 9), (64, 18), (128, 38), (256, 76)):
        dtype = getattr(pa, f"decimal{bits}")(digits, 2)
        values = [decimal.Decimal(value * 25).scaleb(-2) for value in spread()]
        found[f"decimal{bits}"] = pa.array(values, dtype)
        found[f"decimal{bits}_nulls"] = pa.array(with_nulls(values), dtype)
    return found


def lists() -> dict[str, pa.Array]:
    rows = chopped(spread(22))
    inner = [[None if value in (4, 8) else value for value in row] for row in rows]
    found = {}
    for kind in ("list_", "large_list", "list_view", "large_list_view"):
        dtype, name = getattr(pa, kind)(pa.int32()), kind.rstrip("_")
        found[name] = pa.array(rows, dtype)
        found[f"{name}_nulls"] = pa.array(with_nulls(rows), dtype)
    found["list_inner_nulls"] = pa.array(inner, pa.list_(pa.int32()))
    found["list_hidden"] = hidden(found["list"])
    found["large_list_hidden"] = hidden(found["large_list"])
    # Rows in reverse order, and one that overlaps another.
    backwards = pa.array(range(20, 20 - COUNT, -1), "int32")
    sizes = pa.array([1, 2, *[1] * (COUNT - 2)], "int32")
    found["list_view_scattered"] = pa.ListViewArray.from_arrays(
        backwards, sizes, pa.array(spread(22))
    )
    found["list_of_bools"] = pa.array(chopped([value % 3 == 0 for value in spread(22)]))
    pairs = chopped([[value / 2, value / 4] for value in spread(22)])
    found["list_of_pairs"] = pa.array(pairs, pa.list_(pa.list_(pa.float32(), 2)))
    found["list_of_lists"] = pa.array(
        chopped(chopped(spread(22), [1] * 22)), pa.list_(pa.list_(pa.int16()))
    )
    found["list_of_strings"] = pa.array(chopped([str(value) for value in spread(22)]))
    return found


def fixed_size_lists() -> dict[str, pa.Array]:
    rows = [[row / 2, -row, row + 0.25] for row in range(COUNT)]
    inner = [[None, *row[1:]] if index in NULLS else row for index, row in enumerate(rows)]
    bools = [[row % 2 == 0, row % 3 == 0, row % 5 == 0] for row in range(COUNT)]
    grids = [[[row, -row], [row + 1, 7], [row * row, 0]] for row in range(COUNT)]
    broken = [[None, *row[1:]] if index in NULLS else row for index, row in enumerate(grids)]
    triple, grid = pa.list_(pa.float32(), 3), pa.list_(pa.list_(pa.int16(), 2), 3)
    words = [[str(row), "x"] for row in range(COUNT)]
    brain = pa.opaque(pa.uint16(), "bfloat16", "dlpack")
    return {
        "fixed_size_list": pa.array(rows, triple),
        "fixed_size_list_nulls": pa.array(with_nulls(rows), triple),
        "fixed_size_list_inner_nulls": pa.array(inner, triple),
        "fixed_size_list_of_ints_nulls": pa.array(with_nulls(grids), grid),
        "fixed_size_list_of_bools": pa.array(bools, pa.list_(pa.bool_(), 3)),
        "fixed_size_list_of_bools_nulls": pa.array(with_nulls(bools), pa.list_(pa.bool_(), 3)),
        "fixed_size_list_twice": pa.array(grids, grid),
        "fixed_size_list_twice_inner_nulls": pa.array(broken, grid),
        "fixed_size_list_of_0": pa.array([[]] * COUNT, pa.list_(pa.int32(), 0)),
        "fixed_size_list_of_binary": pa.array([[b"ab", b"cd"]] * COUNT, pa.list_(pa.binary(2), 2)),
        "fixed_size_list_of_timestamps": pa.array(
            [[row, row * 3] for row in range(COUNT)], pa.list_(pa.timestamp("us"), 2)
        ),
        "fixed_size_list_of_bfloat16": pa.FixedSizeListArray.from_arrays(
            pa.array(np.arange(2 * COUNT, dtype=np.uint16) << 4).cast(brain), 2
        ),
        "fixed_size_list_of_strings": pa.array(words, pa.list_(pa.string(), 2)),
    }


def refused() -> dict[str, pa.Array]:
    """What has no tensor, nulls or not."""
    ints, words = pa.array(range(COUNT), "int32"), pa.array([str(row) for row in range(COUNT)])
    kinds = pa.array([row % 2 for row in range(COUNT)], "int8")
    places = pa.array([row // 2 for row in range(COUNT)], "int32")
    intervals = [pa.MonthDayNano((row, 2, 3)) for row in range(COUNT)]
    entries = [[(str(row), row)] for row in range(COUNT)]
    return {
        "null": pa.nulls(COUNT),
        "month_day_nano_interval": pa.array(with_nulls(intervals)),
        "struct": pa.array(with_nulls({"a": row, "b": "x"} for row in range(COUNT))),
        "map": pa.array(with_nulls(entries), pa.map_(pa.string(), pa.int32())),
        "dense_union": pa.UnionArray.from_dense(kinds, places, [ints, words]),
        "sparse_union": pa.UnionArray.from_sparse(kinds, [ints, words]),
        "run_end_encoded": pa.array(
            [1, 1, None, *[2] * (COUNT - 3)], pa.run_end_encoded(pa.int16(), pa.int32())
        ),
    }


def dictionaries() -> dict[str, pa.Array]:
    words, halves = pa.array(["x", "y", "z"]), pa.array([0.5, 1.5])
    codes = [row % 3 for row in range(COUNT)]
    return {
        name: pa.DictionaryArray.from_arrays(pa.array(indices, index), values)
        for name, indices, index, values in (
            ("dictionary", codes, "int8", words),
            ("dictionary_nulls", with_nulls(codes), "int8", words),
            ("dictionary_of_numbers", [code % 2 for code in codes], "uint16", halves),
        )
    }


def opaque() -> dict[str, pa.Array]:
    found = {}
    for name in EXOTIC:
        # Patterns from all over the range, the first and the last one among them.
        last, storage = (1 << bits_of(name)) - 1, pa.uint16() if name == "bfloat16" else pa.uint8()
        patterns = pa.array([row * last // (COUNT - 1) for row in range(COUNT)], storage)
        found[name] = pa.ExtensionArray.from_storage(pa.opaque(storage, name, "dlpack"), patterns)
    brain = found["bfloat16"].storage.to_pylist()
    found["bfloat16_nulls"] = pa.ExtensionArray.from_storage(
        found["bfloat16"].type, pa.array(with_nulls(brain), pa.uint16())
    )
    for name, part in (("complex64", pa.float32()), ("complex128", pa.float64())):
        parts = pa.array([[row / 2, -row] for row in range(COUNT)], pa.list_(part, 2))
        found[name] = pa.ExtensionArray.from_storage(pa.opaque(parts.type, name, "dlpack"), parts)
    other = pa.opaque(pa.int32(), "polygon", "postgis")
    found["opaque_other"] = pa.array(with_nulls(range(COUNT)), pa.int32()).cast(other)
    return found


def tensors() -> dict[str, pa.Array]:
    found = {}
    rows = [[float(row * 6 + place) for place in range(6)] for row in range(COUNT)]
    for name, options in (
        ("fixed_shape_tensor", {}),
        ("fixed_shape_tensor_permuted", {"permutation": [2, 0, 1]}),
        ("fixed_shape_tensor_transposed", {"permutation": [1, 0], "dim_names": ["H", "W"]}),
    ):
        shape = [1, 2, 3] if name.endswith("permuted") else [2, 3]
        dtype = pa.fixed_shape_tensor(pa.float32(), shape, **options)
        found[name] = pa.ExtensionArray.from_storage(dtype, pa.array(rows, dtype.storage_type))
        nulls = pa.array(with_nulls(rows), dtype.storage_type)
        if "transposed" not in name:
            found[f"{name}_nulls"] = pa.ExtensionArray.from_storage(dtype, nulls)
    bools = pa.fixed_shape_tensor(pa.bool_(), [2, 3], permutation=[1, 0])
    bits = [[value % 4 == 0 for value in row] for row in rows]
    found["fixed_shape_tensor_of_bools"] = pa.ExtensionArray.from_storage(
        bools, pa.array(bits, bools.storage_type)
    )
    shapes = [[row % 3, row % 4 + 1] for row in range(COUNT)]
    storage = pa.struct({"data": pa.list_(pa.float32()), "shape": pa.list_(pa.int32(), 2)})
    values = [
        {"data": np.arange(h * w) + row, "shape": [h, w]} for row, (h, w) in enumerate(shapes)
    ]
    for name, metadata, rows in (
        ("variable_shape_tensor", {}, values),
        (
            "variable_shape_tensor_permuted",
            {"permutation": [1, 0], "dim_names": ["H", "W"]},
            values,
        ),
        ("variable_shape_tensor_nulls", {}, with_nulls(values)),
    ):
        found[name] = annotated(
            pa.array(rows, storage), "arrow.variable_shape_tensor", json.dumps(metadata)
        )
    return found


class Annotated:
    """pyarrow reads this extension type, but has nothing to make one with."""

    def __init__(self, array: pa.Array, name: str, text: str) -> None:
        metadata = {"ARROW:extension:name": name, "ARROW:extension:metadata": text}
        self.array, self.field = array, pa.field("x", array.type, metadata=metadata)

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        return self.field.__arrow_c_schema__(), self.array.__arrow_c_array__()[1]


def annotated(array: pa.Array, name: str, text: str) -> pa.Array:
    return pa.array(Annotated(array, name, text))


def extensions() -> dict[str, pa.Array]:
    """Those that are texts, and unknown ones."""
    documents = ['{"a": 1}', "[]", "null", *(str(row) for row in range(COUNT - 3))]
    variant = pa.struct({"metadata": pa.binary(), "value": pa.binary()})
    variants = pa.array(with_nulls([{"metadata": b"\x01\0\0", "value": b"\0"}] * COUNT), variant)
    moment = datetime.datetime(2013, 1, 1, tzinfo=datetime.UTC)
    stamped = pa.struct({"timestamp": pa.timestamp("us", "UTC"), "offset_minutes": pa.int16()})
    pairs = [{"timestamp": moment, "offset_minutes": row} for row in range(COUNT)]
    stamps = pa.array(with_nulls(pairs), stamped)
    degrees = [row / 2 for row in range(COUNT)]
    celsius = CELSIUS(pa.float32(), b"degrees")
    ids = [bytes([row] * 16) for row in range(COUNT)]
    wrap = pa.ExtensionArray.from_storage
    return {
        "uuid": wrap(pa.uuid(), pa.array(ids, pa.binary(16))),
        "uuid_nulls": wrap(pa.uuid(), pa.array(with_nulls(ids), pa.binary(16))),
        "json": wrap(pa.json_(), pa.array(documents)),
        "json_nulls": wrap(pa.json_(), pa.array(with_nulls(documents))),
        "parquet_variant": wrap(PARQUET_VARIANT(variant), variants),
        "timestamp_with_offset": wrap(TIMESTAMP_WITH_OFFSET(stamped), stamps),
        "unknown_extension": wrap(celsius, pa.array(degrees, pa.float32())),
        "unknown_extension_nulls": wrap(celsius, pa.array(with_nulls(degrees), pa.float32())),
    }


FAMILIES: list[Callable[[], dict[str, pa.Array]]] = [
    *(numbers, booleans, fixed_size_lists, tensors, texts, lists, meanings, dictionaries),
    *(opaque, extensions, refused),
]


def make() -> list[pa.RecordBatch]:
    columns = {name: array for family in FAMILIES for name, array in family().items()}
    whole = pa.record_batch(columns)
    return [whole.slice(0, ROWS[0]), whole.slice(ROWS[0])]
