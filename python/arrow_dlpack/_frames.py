"""Frames of pandas: their numbers, their names, and columns that need not be convertible."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import islice
from numbers import Integral, Real
from typing import Any

from . import _core

#: pyarrow's conversion of more values than this costs less than what it saves.
_FEW_VALUES = 100_000


def class_of(module: str, name: str) -> Any:
    """A class of a module that is imported; else (), of which no object is, nor is one of a class
    that another thread is importing.
    """
    return getattr(sys.modules.get(module), name, ())


def check_objects(data: Any) -> None:
    """Fails for Python's objects, in what pandas or pyarrow makes Arrow data of, that pyarrow does
    not take as they are: lists that hold themselves, values of two kinds in one column.
    """
    for name, values, is_of_pandas in _objects(data):
        try:
            _core._check_objects(values, nan_is_null=is_of_pandas)
        except TypeError as error:
            if name is None:
                raise
            raise TypeError(f'column "{name}": {error}') from error


def listed(column: Any) -> Any:
    """A list of the items of what makes them when it is asked, so that pyarrow reads those that
    `check_objects` has seen; others as they are.
    """
    is_kept = isinstance(column, (bytes, dict, frozenset, list, set, str, tuple))
    if is_kept or any(hasattr(column, name) for name in ("__array__", "__arrow_array__")):
        return column
    if isinstance(column, Mapping):
        return [column[at] for at in range(len(column))]  # as pyarrow takes it
    is_several = isinstance(column, Iterable) or hasattr(column, "__getitem__")
    return list(column) if is_several and not isinstance(column, type) else column


def _objects(data: Any, name: Any = None) -> Iterator[tuple[Any, Any, bool]]:
    """The values that are Python's objects, and whether pandas has them; of a dict of columns those
    of each, after its name.
    """
    if name is None and _is_pandas_column(data):
        name = getattr(data, "name", None)
    if isinstance(data, dict):
        for own, column in data.items():
            yield from _objects(column, own)
    elif is_pandas_frame(data):
        for at, dtype in enumerate(data.dtypes):
            if _is_object(dtype) or hasattr(dtype, "categories"):
                yield from _objects(data.iloc[:, at])
        yield from _objects(data.index)
    elif not _is_pandas_column(data):
        yield name, data, False
    elif isinstance(data, class_of("pandas", "MultiIndex")):
        for level in data.levels:
            yield from _objects(level)
    elif hasattr(data.dtype, "categories"):
        yield from _objects(data.dtype.categories, name)
    elif _is_object(data.dtype):
        yield name, data.to_numpy(), True


def _is_object(dtype: Any) -> bool:
    """Whether it is that of Python's objects, of NumPy or of an array of pandas around NumPy's."""
    # Of some of these, such as string_view, pandas has no type and raises.
    if isinstance(dtype, class_of("pandas", "ArrowDtype")):
        return False
    return bool(dtype.kind == "O") and getattr(dtype.type, "__name__", "") == "object_"


def prepared(data: Any) -> Any:
    """The frame of pandas of which pyarrow makes Arrow data: no level of its index that has
    a name is a RangeIndex. pandas makes one of any integers at equal steps, and pyarrow writes it
    as metadata alone, so that its values would decide whether the column is there.

    Fails for what `check_objects` refuses; other data are returned as they are.
    """
    check_objects(data)
    if not is_pandas_frame(data):
        return data
    index, steps = data.index, class_of("pandas", "RangeIndex")
    if isinstance(index, class_of("pandas", "MultiIndex")):
        at = [
            level
            for level, name in enumerate(index.names)
            if isinstance(name, str) and isinstance(index.levels[level], steps)
        ]
        if at:
            index = index.set_levels([_as_index(index.levels[level]) for level in at], level=at)
    elif isinstance(index.name, str) and isinstance(index, steps):
        index = _as_index(index)
    if index is data.index:
        return data
    made = data.copy(deep=False)
    made.index = index
    return made


def _as_index(steps: Any) -> Any:
    """The values of a RangeIndex of pandas as another index, also where they are at equal steps."""
    return class_of("pandas", "Index")(steps.to_numpy(), name=steps.name)


def stream_of(frame: Any, requested_schema: Any = None) -> Any:
    """What ``__arrow_c_stream__`` of a frame or a series of pandas returns."""
    return prepared(frame).__arrow_c_stream__(requested_schema)


def has_objects(dtype: Any) -> bool:
    """Whether a dtype of polars is of Python's objects, or they are in it, at any depth."""
    inner = [own.dtype for own in getattr(dtype, "fields", ())]
    if getattr(dtype, "inner", None) is not None:
        inner.append(dtype.inner)
    if hasattr(dtype, "ext_storage"):
        inner.append(dtype.ext_storage())
    return dtype == class_of("polars", "Object") or any(map(has_objects, inner))


def numbers(frame: Any, names: Sequence[str] | None, takes_nan: bool) -> Any:
    """The values of a small frame of pandas, if all its columns have one dtype of NumPy's numbers.

    In the order of `names`, or of its columns. None of other data, of values that are null in Arrow
    unless `takes_nan`, and of names and an index that pyarrow might refuse.
    """
    if type(frame) is not class_of("pandas", "DataFrame"):
        return None
    rows, width = frame.shape
    # One column is shared, and a frame without rows costs nothing to share.
    if not 0 < rows * width <= _FEW_VALUES or (width if names is None else len(names)) < 2:
        return None
    labels = frame.columns.to_numpy().tolist()
    if set(map(type, labels)) != {str} or len(set(labels)) < len(labels):
        return None
    numpy = sys.modules["numpy"]  # pandas imports it
    # Of integers beside floats, to_numpy() rounds the large ones.
    dtypes = set(frame.dtypes.tolist())
    if len(dtypes) > 1 or not all(map(_is_numpy_number, [*dtypes, frame.index.dtype])):
        return None
    values = frame.to_numpy()
    if names is not None:
        if len(set(names)) < len(names) or not set(names) <= set(labels):
            return None
        values = values[:, [labels.index(name) for name in names]]
    is_null = not takes_nan and values.dtype.kind == "f" and numpy.isnan(values).any()
    return None if is_null else values


def _is_numpy_number(dtype: Any) -> bool:
    is_numpy = isinstance(dtype, sys.modules["numpy"].dtype)
    return is_numpy and dtype.kind in "iuf" and dtype.isnative


def narrowed(frame: Any, names: Sequence[str]) -> Any:
    """A copy of a frame of pandas without columns and levels of other names that pyarrow does not
    convert.

    None of other data, and of frames that lack some of the names.
    """
    if not is_pandas_frame(frame):
        return None
    columns, levels = frame_names(frame)
    if not set(names) <= {*columns, *levels}:
        return None
    lost = [
        at
        for at, level in enumerate(levels)
        if level not in names and not converts(_as_frame(frame.index.get_level_values(at)))
    ]
    some = frame
    if lost:
        some = frame.reset_index(level=lost, drop=True)
        if len(lost) < len(levels):
            kept = [level for at, level in enumerate(levels) if at not in lost]
            some.index = some.index.set_names(kept)

    def is_kept(at: int, name: str) -> bool:
        return name in names or (columns.count(name) == 1 and converts(some.iloc[:, [at]]))

    return some.loc[:, [is_kept(at, name) for at, name in enumerate(columns)]]


def frame_names(frame: Any) -> tuple[list[str], list[str]]:
    """pyarrow's names of the columns of a frame of pandas, and of the levels of its index."""
    columns = [str(name) for name in frame.columns]
    levels = [
        f"__index_level_{at}__" if name is None or name in columns else str(name)
        for at, name in enumerate(frame.index.names)
    ]
    return columns, levels


def _as_frame(values: Any) -> Any:
    """One column, or level, without another index."""
    return values.to_frame(name="x").reset_index(drop=True)


def converts(frame: Any) -> bool:
    """Whether pyarrow converts all columns of the frame."""
    try:
        stream_of(frame)
    except (ArithmeticError, NotImplementedError, TypeError, ValueError):
        return False
    return True


class LargeIntegerError(OverflowError, ValueError):
    """What pyarrow says of an integer, with its column; a service's handler takes ValueErrors."""


def explained(data: Any, error: Exception) -> Exception:
    """The error of a conversion, with the column of pandas that has too large an integer.

    Of another column that does not convert a note says the way out.
    """
    is_series = _is_pandas_series(data)
    frame = data.to_frame(name=data.name) if is_series else data
    if not is_pandas_frame(frame):
        return error
    columns = [(name, frame.iloc[:, at]) for at, name in enumerate(frame.columns)]
    index = frame.index
    levels = [(name, index.get_level_values(at)) for at, name in enumerate(index.names)]
    ways = []
    for at, (name, column) in enumerate(columns + levels):
        try:
            stream_of(_as_frame(column))
        except OverflowError:
            pass
        except (ArithmeticError, NotImplementedError, TypeError, ValueError) as fails:
            if not any(map(_is_large, column)):
                made = _conversion_of(column, fails)
                way = _way_of_series(column, made) if is_series else _way_of(name, made)
                ways.append(way if at < len(columns) else _WAY_OF_LEVEL)
                continue
        else:
            continue
        told = "a column without a name" if name is None else f'column "{name}"'
        return LargeIntegerError(
            f"{told} has integers that int64 does not hold: {_way_out(column)}"
        )
    if not frame.columns.is_unique:
        ways.append(_WAY_OF_NAMES)
    # The name of an index may be what does not convert.
    if not ways and converts(frame.reset_index(drop=True)):
        ways.append(_WAY_OF_LEVEL)
    if ways and ways[0] and ways[0] not in getattr(error, "__notes__", ()):
        error.add_note(ways[0])
    return error


#: How columns of some dtypes are converted; all of Python's objects have texts.
_CONVERTED = {
    "Sparse": ".sparse.to_dense() has its values, and ",
    "float": '.astype("float64") has its values, and ',
    "object": '.astype("str") makes texts of its values, and ',
}
_WAY_OF_NAMES = "x.loc[:, ~x.columns.duplicated()] has the first column of each name"
_WAY_OF_LEVEL = "x.reset_index(drop=True) leaves the index out"


def _conversion_of(column: Any, error: Exception) -> str:
    """What converts a column that fails with this error, empty if nothing does."""
    if isinstance(error, UnicodeEncodeError):
        return '.str.encode("utf-8", "replace").str.decode("utf-8") has "?" in its place, and '
    dtype = column.dtype
    if any(map(_is_deep, column)):
        of_torch = "lambda cell: cell.detach().to_dense().flatten().tolist()"
        is_of_torch = any(hasattr(value, "detach") for value in column)
        made = f'.map({of_torch if is_of_torch else "numpy.ravel"}, na_action="ignore")'
        return f"{made} has the items of each of its arrays as a list, and "
    cells = column.dropna() if str(dtype) == "object" else ()
    if any(" at 0x" in str(cell) for cell in islice(cells, 100)):
        return ""  # such texts are no values
    if len(cells) and all(hasattr(cell, "tolist") for cell in cells):
        return _conversion_of_cells(cells, "under its mask" in str(error))
    if len(cells) and all(isinstance(cell, (Real, Decimal)) for cell in cells):
        return '.astype("float64") has floats, which round what they do not hold, and '
    # pyarrow takes numbers in the machine's byte order only.
    is_swapped = not getattr(dtype, "isnative", True) and dtype.kind in "iuf"
    kind = str(dtype.newbyteorder("=") if is_swapped else dtype)
    swapped = f'.astype("{kind}") has its values, and ' if is_swapped else ""
    return next((made for known, made in _CONVERTED.items() if kind.startswith(known)), swapped)


def _conversion_of_cells(cells: Any, is_masked: bool) -> str:
    """What converts cells that are arrays, tensors or numbers of NumPy's."""
    numpy = sys.modules["numpy"]  # pandas imports it
    dtypes = (getattr(cell, "dtype", None) for cell in cells)
    times = [own for own in dtypes if isinstance(own, numpy.dtype) and own.kind in "mM"]
    if not times:
        told = "None in their place" if is_masked else "lists of its values"
        return f'.map(lambda cell: cell.tolist(), na_action="ignore") has {told}, and '
    # Python has no nanoseconds, and NumPy wraps what is out of range.
    units = {numpy.datetime_data(dtype)[0] for dtype in times}
    kind = f"{times[0].kind}8[us]"
    if (
        len(times) < len(cells)
        or any(numpy.isnat(cell).any() for cell in cells)  # beside which pandas makes nanoseconds
        or units & {"ns", "ps", "fs", "as"}
        or any(_wraps(cell, kind) for cell in cells)
    ):
        return _CONVERTED["object"]
    made = f'cell.astype("{kind}")'
    return f'.map(lambda cell: {made}, na_action="ignore") has them in us, and '


def _is_deep(cell: Any) -> bool:
    """Whether it has more dimensions than one; Pillow's images do not tell theirs."""
    is_image = hasattr(cell, "__array_interface__")
    return bool(getattr(cell, "ndim", 2 if is_image else 0) > 1)


def _wraps(times: Any, kind: str) -> bool:
    """Whether a time of NumPy's is another one in this unit."""
    numpy = sys.modules["numpy"]
    back = times.astype(kind).astype(times.dtype)
    return bool(numpy.any((back != times) & ~numpy.isnat(times)))


def _way_of(name: Any, made: str) -> str:
    """What converts a column, if anything does, and what leaves it out."""
    return f"{made and f'x[{name!r}]'}{made}x.drop(columns=[{name!r}]) leaves it out"


def _way_of_series(column: Any, made: str) -> str:
    """What converts a series, if anything does."""
    if column.dtype.kind == "c":
        return "asdlpack(x.to_numpy()) is a tensor of it"
    return made and f"x{made.removesuffix(', and ')}"


def _is_large(value: Any) -> bool:
    # NumPy's durations are integers too.
    is_integer = isinstance(value, Integral) and hasattr(value, "__index__")
    return is_integer and not -(2**63) <= int(value) < 2**63


def _way_out(column: Any) -> str:
    """What converts a column of too large integers; beside texts or lists it is no float."""
    try:
        known = column.dropna()
        if all(isinstance(value, Integral) and 0 <= int(value) < 2**64 for value in known):
            kind = "uint64" if len(known) == len(column) else "UInt64"  # which has nulls
            return f'make them unsigned, by astype("{kind}"), or leave it out'
        column.astype("float64")
    except (OverflowError, TypeError, ValueError):
        return 'make texts of all values, by astype("str"), or leave it out'
    return 'make floats of them, by astype("float64"), or leave it out'


def _is_pandas_series(data: Any) -> bool:
    return isinstance(data, class_of("pandas", "Series"))


def _is_pandas_column(data: Any) -> bool:
    arrays = class_of("pandas.api.extensions", "ExtensionArray")
    index = class_of("pandas", "Index")
    return _is_pandas_series(data) or isinstance(data, (index, arrays))


def is_pandas_frame(data: Any) -> bool:
    """Of a class of pandas's, or of a user's own below it."""
    return isinstance(data, class_of("pandas", "DataFrame"))
