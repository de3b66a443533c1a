"""What comes of `Array` taking what an Arrow library has, and of that library taking an `Array`."""

import pyarrow as pa
from arrow_dlpack import Array
from arrow_dlpack._doctor.libraries import ArrowLibrary, arrow_address
from frameworks import DTYPES
from outcomes import judged, numbers, reason

FORMS = ("array", "chunked", "table", "column")


def source(library: ArrowLibrary, form: str, array: pa.Array) -> object:
    """These values in one form of the library; `chunked` in two chunks."""
    if form == "array":
        return library.array(array)
    if form == "chunked":
        return library.chunked(pa.chunked_array([array.slice(0, 1), array.slice(1)]))
    table = library.table(pa.table({"x": array}))
    return table if form == "table" else library.column(table)


def first_column(arrow: pa.Array | pa.ChunkedArray | pa.Table) -> pa.Array:
    """The only column, in its only chunk."""
    if isinstance(arrow, pa.Table):
        arrow = arrow.column(0)
    if isinstance(arrow, pa.ChunkedArray):
        [arrow] = arrow.chunks or [pa.nulls(0).cast(arrow.type)]
    return arrow.field(0) if pa.types.is_struct(arrow.type) else arrow


def begins(column: pa.Array) -> int:
    return arrow_address(column) if len(column) else 0


def into_array(library: ArrowLibrary, form: str, array: pa.Array) -> str:
    """What comes of `Array` taking it; shared is what has the same address every time."""
    try:
        given = source(library, form, array)
    except Exception as error:
        return f"none: {reason(error)}"
    try:
        both = [pa.array(Array(given)) for _ in range(2)]
    except Exception as error:
        return f"refused: {reason(error)}"
    try:
        first, second = map(first_column, both)
    except Exception as error:
        return f"wrong: {reason(error)}"
    return judged(first.to_numpy(), array.to_numpy(), begins(first) == begins(second))


def out_of_array(library: ArrowLibrary, form: str, array: pa.Array) -> str:
    """What comes of the library taking an `Array`."""
    try:
        given = pa.table({"x": array}) if form == "table" else array
        taken = getattr(library, form)(Array(given))
    except Exception as error:
        return f"refused: {reason(error)}"
    streams = hasattr(taken, "__arrow_c_stream__")
    back = (pa.table if form == "table" else pa.chunked_array if streams else pa.array)(taken)
    column = first_column(back)
    return judged(column.to_numpy(), array.to_numpy(), begins(column) == begins(array))


def of_arrow_library(library: ArrowLibrary) -> dict[str, dict[str, str]]:
    """What comes of each form and dtype, both ways."""
    ways = {"from": into_array, "to": out_of_array}
    cases = {dtype: numbers(dtype) for dtype in DTYPES}
    cases["empty"] = numbers("float32").slice(3, 0)
    return {
        f"{way} {form}": {name: exchange(library, form, case) for name, case in cases.items()}
        for way, exchange in ways.items()
        for form in FORMS
        if getattr(library, form) and (way, form) != ("to", "column")
    }
