"""A case of data/cases.json: a column, how it is asked for, and what must come of it.

Which conversion copies is DESIGN.md's word, what comes of it that of pyarrow, NumPy and ml_dtypes.
"""

import functools

import case_columns
import cases
import numpy as np
import pyarrow as pa
from case_values import cells, dtype_of, plain, rows, with_nan
from cases import laid_out

COLUMNS = functools.cache(cases.columns)


def column(name: str, layout: str) -> pa.Array:
    array = laid_out(COLUMNS()[name], layout)
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def values_of(array: np.ndarray) -> list:
    if array.dtype.kind == "V" or array.dtype.name in case_columns.EXOTIC:
        array = array.astype(np.float32 if "float" in array.dtype.name else np.int8)
    return plain(array.tolist())


def bits_of(array: np.ndarray) -> list:
    return array.view(f"u{array.dtype.itemsize}").tolist()


def described(array: np.ndarray, copied: int, **more: object) -> dict:
    """What is expected of a tensor."""
    found = {"dtype": array.dtype.name, "shape": list(array.shape)}
    if array.size:
        # Strides of nothing mean nothing, and whether it may be written to.
        found["strides"] = [stride // array.itemsize for stride in array.strides]
        found["read_only"] = copied == 0
    found["copied_bytes"] = copied
    found |= more
    found["values"] = values_of(array)
    if array.dtype.name in case_columns.EXOTIC:
        found["bits"] = bits_of(array)
    return found


def case(name: str, layout: str | list[str], door: str, options: dict, **rest: object) -> dict:
    found = {"column": name, "layout": layout}
    if door != "tensor":
        found["door"] = door
    if options:
        found["options"] = options
    return found | rest


def in_memory_order(array: np.ndarray, like: np.ndarray) -> np.ndarray:
    """With the axes in memory as those of `like`, as a copy of each cell has them."""
    order = sorted(range(like.ndim), key=lambda axis: -like.strides[axis])
    return np.ascontiguousarray(array.transpose(order)).transpose(np.argsort(order))


def is_float(options: dict) -> bool:
    return options.get("dtype", "").startswith("float")


def tensor(name: str, layout: str, **options: object) -> dict:
    """A column as one tensor."""
    found = cells(column(name, layout), as_floats=is_float(options))
    values, policy = found.values, options.get("nulls", "error")
    if policy == "nan":
        values = with_nan(found)
    if "dtype" in options:
        values = values.astype(dtype_of(options["dtype"]))
    if policy not in ("error", "mask", "nan"):
        values = np.where(found.valid, values, np.array(policy).astype(values.dtype))
    values = in_memory_order(values, found.values)
    copies = (
        not found.stored
        or options.get("copy")
        or values.dtype != found.values.dtype
        or (found.nulls and policy != "mask")
        or layout == "chunked"
    )
    copied, more = values.nbytes if copies else 0, {}
    if policy == "mask":
        copied += found.valid.size
        more["mask"] = found.valid.tolist()
    found = described(values, copied, **more)
    if values.size:
        # A mask is a copy, but not of the values.
        found["read_only"] = not copies
    return case(name, layout, "tensor", options, expect=found)


def no_rows(name: str) -> dict:
    """A column of lists without rows, as one tensor."""
    values = rows(column(name, "empty")).values.values
    return case(name, "empty", "tensor", {}, expect=described(values.reshape(0, 0), 0))


def ragged(name: str, layout: str, **options: object) -> dict:
    """A column as values and offsets."""
    found = rows(column(name, layout))
    values, offsets = found.values.values, found.offsets
    policy = options.get("nulls", "error")
    if policy == "nan":
        values = with_nan(found.values)
    elif policy not in ("error", "mask"):
        values = np.where(found.values.valid, values, np.array(policy).astype(values.dtype))
    offsets = offsets.astype(options.get("offset_type", offsets.dtype))
    chunked = layout == "chunked"
    copies = not found.values_stored or values.dtype != found.values.values.dtype or chunked
    copies = copies or found.values.nulls > 0
    moves = not found.offsets_stored or offsets.dtype != found.offsets.dtype or chunked
    expect = described(values, values.nbytes if copies else 0)
    expect["copied_bytes"] += offsets.nbytes if moves else 0
    expect["offsets"] = {"dtype": offsets.dtype.name, "values": offsets.tolist()}
    if chunked:
        # What was put together may be shared then.
        del expect["read_only"]
    elif len(offsets) > 1:
        expect["offsets"]["read_only"] = not moves
    if policy == "mask":
        expect["copied_bytes"] += len(found.valid)
        expect["mask"] = found.valid.tolist()
    return case(name, layout, "ragged", options, expect=expect)


def row(name: str, layout: str, index: int, **options: object) -> dict:
    """The tensor of one row."""
    array = column(name, layout)
    dtype = array.type
    if "variable_shape_tensor" in name:
        parts = array.storage[index]
        values = np.array(parts["data"].as_py(), np.float32)
        values = values.reshape(parts["shape"].as_py())
        values = values.T if "permuted" in name else values
    elif isinstance(dtype, pa.BaseExtensionType) or pa.types.is_fixed_size_list(dtype):
        values = cells(array.slice(index, 1)).values[0]
    else:
        values = rows(array.slice(index, 1)).values.values
    stored = values.dtype != bool
    expect = described(values, 0 if stored else values.nbytes)
    return case(name, layout, "row", {"row": index, **options}, expect=expect)


def refusal(
    name: str,
    kind: str,
    phrase: str,
    layout: str | list = "whole",
    door: str = "tensor",
    **options: object,
) -> dict:
    """An error: a TypeError ("type"), a ValueError ("value"), a mere BufferError ("buffer")."""
    return case(name, layout, door, options, error={"kind": kind, "phrase": phrase})


def nulls_refused(name: str, layout: str, **options: object) -> dict:
    found = cells(column(name, layout), as_floats=is_float(options))
    nulls = f"{found.nulls} null{'s' * (found.nulls > 1)} in {found.valid.size} values"
    return refusal(name, "type", nulls, layout, **options)


def null_cases(name: str, fill: object, **options: object) -> list[dict]:
    """Of a column with `_nulls`."""
    return [
        *(nulls_refused(name, layout, **options) for layout in ("whole", "tail", "chunked")),
        tensor(name, "sliced", **options),
        tensor(name, "empty", **options),
        tensor(name, "chunked", nulls=fill, **options),
        tensor(name, "sliced", nulls=fill, **options),
        tensor(name, "tail", nulls="mask", **options),
    ]
