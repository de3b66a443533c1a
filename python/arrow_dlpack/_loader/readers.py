"""Arrow data of any kind as pyarrow's reader, and columns within structs as columns."""

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from importlib import import_module
from itertools import chain
from typing import Any

from .. import _core
from .._arrow_types import (
    comparison_with,
    extensions_of,
    has_offsets,
    is_list,
    is_list_view,
    is_one_storage,
    is_one_type,
    with_inner,
)
from .._frames import (
    check_objects,
    class_of,
    explained,
    frame_names,
    has_objects,
    is_pandas_frame,
    listed,
    narrowed,
    stream_of,
)
from .known import library_of


class Made:
    """Batches that Python code makes, whose exceptions the engine gets as it iterates over them.

    As a stream they are read once, and what remains of an exception are its words.
    """

    def __init__(self, schema: Any, batches: Iterable[Any], whole: Sequence[int] = ()) -> None:
        """whole: gets the number of batches before one that an error cuts, when that is made."""
        self.schema, self._batches, self.whole = schema, iter(batches), whole

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        try:
            return next(self._batches)
        except BaseException:
            # The traceback has this object: it is not to keep the source.
            self._batches = iter(())
            raise

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        of = import_module("pyarrow").RecordBatchReader.from_batches
        return of(self.schema, self._batches).__arrow_c_stream__(requested_schema)


def reader_of(data: Any) -> Any:
    """Arrow data of any kind as pyarrow's reader, or one like it."""
    if isinstance(data, Made):
        return data
    if is_polars_batches(data):
        return _of_frames(data, lambda frame: frame)
    pa = import_module("pyarrow")
    if isinstance(data, pa.RecordBatch):
        return Made(data.schema, iter((data,)))
    if _is_polars_frame(data):
        data = _for_pyarrow(data)
    if isinstance(data, dict):
        data = {name: listed(column) for name, column in data.items()}
    if isinstance(data, pa.RecordBatchReader):
        # As a stream it would make an ArrowInvalid of Ctrl-C.
        return Made(data.schema, recorded(_core._Reading(data), _as_told(data)))
    # Of frames of pandas `_Recorded` does it; pyarrow makes no batch of a list.
    if not is_pandas_frame(data) and not isinstance(data, (list, tuple)):
        check_objects(data)
    try:
        if hasattr(data, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(_Recorded(data))
        is_checked = library_of(data) == "pyarrow" or not hasattr(data, "__arrow_c_array__")
        batch = pa.record_batch(data if is_checked else _core.Array(data))
    except (NotImplementedError, OverflowError, TypeError, ValueError) as error:
        told = explained(data, error)
        if isinstance(told, OverflowError):
            raise told from error
        is_of_pandas = isinstance(data, _Narrowed) or is_pandas_frame(data)
        if is_of_pandas or isinstance(error, NotImplementedError):
            raise  # it names the column
        of = type(data)
        has_protocol = any(map(hasattr, [data] * 2, ("__arrow_c_stream__", "__arrow_c_array__")))
        why = f": {error}" * has_protocol
        if is_column(data):
            why = ', which is one column: pyarrow.table({"x": x}) makes a table of it'
        raise TypeError(
            "each batch must be a table or a record batch that pyarrow reads, got "
            f"{of.__module__}.{of.__qualname__}{why}{_way_out(data)}"
        ) from error
    return pa.RecordBatchReader.from_batches(batch.schema, [batch])


def _as_told(reader: Any) -> Iterator[Any]:
    """The batches of a reader, which pyarrow does not compare with the schema that it tells."""
    schema, alike = reader.schema, None
    has_one = comparison_with(schema)
    try:
        for number, batch in enumerate(reader):
            if has_one(batch.schema):
                yield batch
            elif batch.schema == alike or is_one_storage(batch.schema, schema):
                alike = batch.schema
                yield _with_schema(batch, schema)
            else:
                raise ValueError(
                    f"batch {number} of the reader has {_told(batch.schema)}, and its schema has "
                    f"{_told(schema)}: {_way_to(batch.schema, schema)}"
                )
    finally:
        del reader  # an error that is kept does not keep it


def _with_schema(batch: Any, schema: Any) -> Any:
    """The same values as a schema of one storage, as a stream has them."""
    of = import_module("pyarrow").RecordBatchReader
    return of.from_stream(of.from_batches(schema, [batch])).read_next_batch()


def _way_to(schema: Any, told: Any) -> str:
    if schema.names != told.names:
        return "give each batch the columns of the schema, in its order"
    return "batch.cast(schema) makes one of it where its values fit, or give the reader its schema"


def _told(schema: Any) -> str:
    """Its first columns."""
    some = ", ".join(f"{own.name}: {own.type}" for own in list(schema)[:8])
    return f"({some}{', ...' * (len(schema) > 8)})"


def is_column(data: Any) -> bool:
    """Whether it is an array, or a series of pandas or polars."""
    pa = import_module("pyarrow")
    series = [class_of(name, "Series") for name in ("pandas", "polars")]
    return isinstance(data, (pa.Array, pa.ChunkedArray, _core.Array, *series))


def _way_out(batch: Any) -> str:
    """How to make a table of what is none."""
    is_row = isinstance(batch, dict)
    items = list(batch.values()) if is_row else []
    if isinstance(batch, (list, tuple)):
        items = list(batch)
    has_tensors = any(hasattr(one, "__dlpack__") for one in items)
    are_rows = isinstance(batch, list) and items and all(isinstance(one, dict) for one in items)
    ways = [
        (
            is_row and has_tensors,
            "map(arrow_dlpack.record_batch, x) makes tables of batches of tensors",
        ),
        (is_row, "pyarrow.Table.from_pylist([x, ...]) makes one of rows"),
        (has_tensors, '(arrow_dlpack.record_batch({"x": batch[0]}) for batch in x) makes tables'),
        (are_rows, "map(pyarrow.Table.from_pylist, x) makes tables of lists of rows"),
        (
            hasattr(batch, "__dlpack__"),
            '(arrow_dlpack.record_batch({"x": batch}) for batch in x) makes tables of tensors',
        ),
        (
            hasattr(batch, "_asdict"),
            "pyarrow.Table.from_pylist([row._asdict() for row in x]) makes one of rows",
        ),
        (
            isinstance(batch, tuple) and any(hasattr(one, "to_frame") for one in items),
            "pass the frame that it goes through",
        ),
        (
            isinstance(batch, tuple),
            "pyarrow.Table.from_pylist([dict(zip(names, row)) for row in x]) makes one of rows",
        ),
        (
            isinstance(batch, (str, os.PathLike)),
            "sorted(x) is a list of them, which is a source if they are paths",
        ),
        (hasattr(batch, "physical_schema"), "list(x) of these fragments is a source"),
    ]
    return next((f": {way}" for is_it, way in ways if is_it), "")


def is_polars_batches(data: Any) -> bool:
    """Whether it is an iterator of the frames that a query of polars makes."""
    return type(data).__module__.partition(".")[0] == "polars" and isinstance(data, Iterator)


def _of_frames(batches: Any, readable: Callable[[Any], Any]) -> Any:
    """The batches of a query of polars as a reader: frames tell the dtypes that a stream hides.

    readable: makes of a frame what is read of it.
    """
    reading, frames = _core._Reading(batches), iter(batches)
    readers: Iterator[Any] = (reader_of(readable(frame)) for frame in frames)
    # No frame is taken for the schema of the stream: an `Encoder` would lose it.
    schema = _schema_of_frames(batches)
    if schema is None and (head := next(readers, None)) is not None:
        schema, readers = head.schema, chain([head], readers)
    elif schema is None:
        schema = _stream_of_frames(batches).schema
    return Made(schema, recorded(reading, chain.from_iterable(readers)))


def _stream_of_frames(batches: Any) -> Any:
    return import_module("pyarrow").RecordBatchReader.from_stream(batches)


def _schema_of_frames(batches: Any) -> Any:
    """The schema of their stream, None if it has types that only frames tell."""
    try:
        schema = _stream_of_frames(batches).schema
    except ValueError:  # of a type that pyarrow does not know
        return None
    return None if any(map(_may_be_objects, schema.types)) else schema


def _may_be_objects(kind: Any) -> bool:
    """Whether it is the type that polars exports of Python's objects, at any depth."""
    may_be = bool(import_module("pyarrow").types.is_fixed_size_binary(kind))
    return may_be or any(_may_be_objects(kind.field(at).type) for at in range(kind.num_fields))


def table_of(schema: Any) -> Any:
    """A table without rows."""
    # Not Schema.empty_table, which knows not all types.
    return import_module("pyarrow").Table.from_batches([], schema)


def _for_pyarrow(frame: Any) -> Any:
    """A frame of polars with types that pyarrow reads."""
    if len(frame) > 0:
        refuse_objects(objects_of(frame))
    return _with_wide_as_decimals(frame, frame.columns)


def objects_of(frame: Any) -> list[str]:
    """The columns of a frame of polars that have Python's objects, and no type in Arrow."""
    if not _is_polars_frame(frame):
        return []
    return [name for name, kind in frame.schema.items() if has_objects(kind)]


def refuse_objects(names: Iterable[str]) -> None:
    """An error for the first of these columns, of which polars would export addresses."""
    for name in names:
        raise _core.UnsupportedError(
            f"column \"{name}\" has Python's objects (polars' Object), of which Arrow data "
            f'would have the addresses: leave it out, as by frame.drop("{name}")'
        )


def _with_wide_as_decimals(data: Any, names: Collection[str]) -> Any:
    """A frame of polars with decimals for integers of 128 bits, in columns of these names."""
    for name, kind in data.schema.items():
        if not _is_wide(kind) or name not in names:
            continue
        try:
            data = data.cast({name: _of_decimals(kind)})
        except import_module("polars").exceptions.PolarsError as error:
            raise TypeError(
                f'column "{name}" has integers of 128 bits that are no decimal of 38 digits: cast '
                "it to polars.Float64 (lists of it to polars.List of that), or "
                f'frame.drop("{name}") leaves it out'
            ) from error
    return data


def _is_wide(kind: Any) -> bool:
    return bool(_of_decimals(kind) != kind)


def _of_decimals(kind: Any) -> Any:
    pl = import_module("polars")
    if str(kind) in ("Int128", "UInt128"):
        return pl.Decimal(38, 0)
    if isinstance(kind, pl.List):
        return pl.List(_of_decimals(kind.inner))
    if isinstance(kind, pl.Array):
        return pl.Array(_of_decimals(kind.inner), kind.size)
    if isinstance(kind, pl.Struct):
        return pl.Struct([pl.Field(own.name, _of_decimals(own.dtype)) for own in kind.fields])
    return kind


class _Narrowed:
    """A frame of pandas of which some columns are read, and which need not convert as a whole."""

    def __init__(
        self,
        frame: Any,
        columns: Sequence[str],
        is_named: Callable[[Any, str], bool] | None,
    ) -> None:
        self._frame, self._columns, self.num_rows = frame, columns, len(frame)
        self._is_named = is_named

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        try:
            return stream_of(self._frame, requested_schema)
        except (ArithmeticError, NotImplementedError, TypeError, ValueError):
            pa, known = import_module("pyarrow"), list(chain(*frame_names(self._frame)))
            needed = heads(self._columns, lambda: known) or []
            if self._is_named is not None:
                schema = pa.schema([pa.field(name, pa.null()) for name in known])
                needed += [name for name in known if self._is_named(schema, name)]
            some = narrowed(self._frame, needed)
            if some is None:
                raise
            try:
                return stream_of(some, requested_schema)
            except (NotImplementedError, OverflowError, TypeError, ValueError) as error:
                raise explained(some, error) from error


def is_frame(data: Any) -> bool:
    """Whether it is a frame of pandas or polars, which may be changed in place."""
    return is_pandas_frame(data) or _is_polars_frame(data)


def _is_polars_frame(data: Any) -> bool:
    return isinstance(data, class_of("polars", "DataFrame"))


def readable_for(
    data: Any,
    columns: Sequence[str] | None,
    is_named: Callable[[Any, str], bool] | None = None,
) -> Any:
    """The data; of frames what pyarrow reads if these columns, None for all, are needed.

    is_named: whether the filter, if there is one, names a column of a schema, which is needed too.
    """
    if is_polars_batches(data):
        return _of_frames(data, partial(readable_for, columns=columns, is_named=is_named))
    if is_pandas_frame(data):
        return data if columns is None else _Narrowed(data, columns, is_named)
    if not _is_polars_frame(data):
        return data
    needed = heads(columns, lambda: data.columns)
    needed = data.columns if needed is None else needed
    hard = objects_of(data) + [name for name, kind in data.schema.items() if _is_wide(kind)]
    unread = [name for name in hard if name not in needed]
    if unread and is_named is not None:
        schema = reader_of(data.clear()).schema
        unread = [name for name in unread if not is_named(schema, name)]
    # The error for a name that is missing lists all that there are.
    if unread and set(needed) <= set(data.columns):
        data = data.drop(unread)
    refuse_objects(name for name in objects_of(data) if name in needed)
    return _with_wide_as_decimals(data, data.columns)


def request_of(rows: Any, columns: Callable[[], Sequence[str]]) -> Any:
    """Rows of a request; a frame of polars with the types that a source of it has."""
    if not _is_polars_frame(rows):
        return rows
    return _with_wide_as_decimals(rows, heads(columns(), lambda: rows.columns) or ())


class _Recorded:
    """Data whose rows count as taken when they are read; what has been read already is refused."""

    def __init__(self, data: Any) -> None:
        self._data = data

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return _core._recorded_stream(self._data)


def recorded(reading: _core._Reading, batches: Iterable[Any]) -> Iterator[Any]:
    """The batches of a source, whose rows count as taken when they are read."""
    try:
        for batch in batches:
            reading.took(batch.num_rows)
            yield batch
    finally:
        del batches  # an error that is kept does not keep them
    reading.end()


def without_views(data: Any) -> Any:
    """A reader, or a table, with texts and binaries of types that all of pyarrow's kernels take."""
    pa = import_module("pyarrow")
    schema = schema_without_views(data.schema)
    if schema.equals(data.schema):
        return data

    def plain(batch: Any) -> Any:
        columns = [cast(batch.column(at), field.type) for at, field in enumerate(schema)]
        return type(batch).from_arrays(columns, schema=schema)

    if isinstance(data, pa.Table):
        return plain(data)
    make = Made if isinstance(data, Made) else pa.RecordBatchReader.from_batches
    return make(schema, map(plain, data))


def has_nulls(kind: Any) -> bool:
    """Whether it is of nulls alone, at any depth, so that others say what it is."""
    is_null = bool(import_module("pyarrow").types.is_null(kind))
    return is_null or any(has_nulls(kind.field(at).type) for at in range(kind.num_fields))


def cast(column: Any, kind: Any) -> Any:
    """The column as another type that has all of its values."""
    pa = import_module("pyarrow")
    if is_one_type(column.type, kind):
        return column
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([cast(chunk, kind) for chunk in column.chunks], kind)
    if pa.types.is_null(column.type):  # which pyarrow casts to some types
        if not has_runs(kind):
            return pa.nulls(len(column), kind)
        column = pa.nulls(len(column), _of_nulls(kind))
    if isinstance(kind, pa.BaseExtensionType):
        return kind.wrap_array(cast(getattr(column, "storage", column), kind.storage_type))
    is_within = has_list_views(kind) or has_runs(kind) or has_nulls(column.type)
    if is_within or _is_encoded(column.type, kind):
        return _cast_within(column, kind)
    return (_array_without_views(column) if has_coded_views(column.type) else column).cast(kind)


def _cast_within(column: Any, kind: Any) -> Any:
    """Structs, lists and maps of this type, of which what is in them is cast: pyarrow 26 makes
    wrong values of list views, too few nulls of lists of them, no runs of nulls, and of texts and
    binaries alone dictionaries.
    """
    pa = import_module("pyarrow")
    if pa.types.is_dictionary(kind):
        if pa.types.is_dictionary(column.type) and not extensions_of(kind.value_type):
            return column.cast(kind)
        codes = column
        if not pa.types.is_dictionary(column.type):
            codes = cast(column, kind.value_type).dictionary_encode()
        words = cast(codes.dictionary, kind.value_type)
        indices = codes.indices.cast(kind.index_type)
        return pa.DictionaryArray.from_arrays(indices, words, ordered=kind.ordered)
    if pa.types.is_run_end_encoded(kind):
        values = cast(column, kind.value_type)
        return import_module("pyarrow.compute").run_end_encode(values, kind.run_end_type)
    if pa.types.is_struct(kind):
        fields = [cast(column.field(own.name), own.type) for own in kind]
        return pa.StructArray.from_arrays(fields, fields=list(kind), mask=column.is_null())
    is_map = pa.types.is_map(kind)
    items = pa.struct([kind.key_field, kind.item_field]) if is_map else kind.value_type
    return _with_items(column, kind, cast(column.values, items))


def _with_items(column: Any, kind: Any, items: Any) -> Any:
    """Lists that stay where they are in their items, and so do their nulls."""
    pa = import_module("pyarrow")
    if column.type.id != kind.id:
        wide = {"large_list": pa.LargeListArray, "large_list_view": pa.LargeListViewArray}
        narrow = {"list": pa.ListArray, "list_view": pa.ListViewArray}
        name = str(kind).partition("<")[0]
        width = pa.int64() if name in wide else pa.int32()
        own = (column.offsets, column.sizes) if is_list_view(kind) else (column.offsets,)
        counts = [of.cast(width) for of in own]
        return (wide | narrow)[name].from_arrays(*counts, items, type=kind, mask=column.is_null())
    count = 1 if pa.types.is_fixed_size_list(kind) else 3 if is_list_view(kind) else 2
    own = column.buffers()[:count]
    return pa.Array.from_buffers(kind, len(column), own, column.null_count, column.offset, [items])


def has_list_views(kind: Any) -> bool:
    """Whether there are list views in it, at any depth, which pyarrow 26 casts to wrong values."""
    inner = (kind.field(at).type for at in range(kind.num_fields))
    return is_list_view(kind) or any(map(has_list_views, inner))


def has_runs(kind: Any) -> bool:
    """Whether there are runs in it, at any depth."""
    inner = (kind.field(at).type for at in range(kind.num_fields))
    return import_module("pyarrow").types.is_run_end_encoded(kind) or any(map(has_runs, inner))


def decoded(name: str, kind: Any) -> str:
    """How a column that has runs gets its values, for errors: pyarrow casts no runs, and decodes
    none of views and codes.
    """
    types = import_module("pyarrow").types
    values = kind.value_type if types.is_run_end_encoded(kind) else None
    if values and not types.is_dictionary(values) and without_view(values) == values:
        return f'pyarrow.compute.run_end_decode(table["{name}"])'
    return made_anew(name)


def made_anew(name: str) -> str:
    """How a column that pyarrow does not cast gets another type, for errors."""
    return f'pyarrow.array(table["{name}"].to_pylist(), type)'


def _is_encoded(kind: Any, other: Any) -> bool:
    """Whether values become a dictionary that pyarrow does not make of them, in structs and lists
    of one kind too.
    """
    pa = import_module("pyarrow")
    types = pa.types
    if types.is_dictionary(other) and types.is_dictionary(kind):
        # Of extension types pyarrow casts no codes.
        return bool(extensions_of(other.value_type))
    if types.is_dictionary(other):
        # pyarrow encodes no views.
        return bool(without_view(other.value_type) == other.value_type)
    if kind.id != other.id:
        return False
    if types.is_struct(kind):
        return any(_is_encoded(kind.field(own.name).type, own.type) for own in other)
    inner = range(other.num_fields)
    return any(_is_encoded(kind.field(at).type, other.field(at).type) for at in inner)


def _of_nulls(kind: Any) -> Any:
    """The type with nulls alone in its structs or lists."""
    pa = import_module("pyarrow")
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, pa.null())
    if not (pa.types.is_struct(kind) or is_list(kind)):
        return pa.null()
    inner = map(kind.field, range(kind.num_fields))
    return with_inner(kind, [own.with_type(pa.null()) for own in inner])


def has_coded_views(kind: Any) -> bool:
    """Whether there is a dictionary of views in it, at any depth: pyarrow casts none of these."""
    if import_module("pyarrow").types.is_dictionary(kind):
        return str(kind.value_type) in _WITHOUT_VIEW
    return any(has_coded_views(kind.field(at).type) for at in range(kind.num_fields))


def _array_without_views(column: Any) -> Any:
    """The array without views, which are cast alone where a dictionary has them."""
    pa, kind = import_module("pyarrow"), column.type
    plain = _without_views(kind)
    if not has_coded_views(kind):
        return column.cast(plain)
    if pa.types.is_dictionary(kind):
        words = column.dictionary.cast(plain.value_type)
        return pa.DictionaryArray.from_arrays(column.indices, words, ordered=kind.ordered)
    if pa.types.is_struct(kind):
        fields = [_array_without_views(column.field(at)) for at in range(kind.num_fields)]
        return pa.StructArray.from_arrays(fields, fields=list(plain), mask=column.is_null())
    return _with_items(column, plain, _array_without_views(column.values))


def has_views(kind: Any) -> bool:
    """Whether there are views of texts or binaries in it, or runs, at any depth: not all of
    pyarrow's kernels take them.
    """
    pa = import_module("pyarrow")
    if isinstance(kind, pa.BaseExtensionType):
        return has_views(kind.storage_type)
    if pa.types.is_run_end_encoded(kind):
        return True
    if pa.types.is_dictionary(kind):
        return has_views(kind.value_type)
    inner = (kind.field(at).type for at in range(kind.num_fields))
    return str(kind) in _WITHOUT_VIEW or any(map(has_views, inner))


#: By the names of views, what pyarrow calls the types that have their values.
_WITHOUT_VIEW = {"string_view": "large_string", "binary_view": "large_binary"}


def without_view(kind: Any) -> Any:
    """Large texts or binaries in place of views."""
    name = _WITHOUT_VIEW.get(str(kind))
    return kind if name is None else import_module("pyarrow").type_for_alias(name)


def schema_without_views(schema: Any) -> Any:
    """The schema with large texts and binaries in place of views."""
    fields = [own.with_type(_without_views(own.type)) for own in schema]
    return import_module("pyarrow").schema(fields, schema.metadata)


def _without_views(kind: Any) -> Any:
    pa = import_module("pyarrow")

    def plain(field: Any) -> Any:
        return field.with_type(_without_views(field.type))

    if pa.types.is_struct(kind):
        return pa.struct([plain(kind.field(at)) for at in range(kind.num_fields)])
    if has_offsets(kind):
        return (pa.list_ if pa.types.is_list(kind) else pa.large_list)(plain(kind.value_field))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(plain(kind.value_field), kind.list_size)
    if pa.types.is_map(kind):
        return pa.map_(plain(kind.key_field), plain(kind.item_field), kind.keys_sorted)
    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, without_view(kind.value_type), kind.ordered)
    return without_view(kind)


def heads(
    columns: Sequence[str] | None, names: Callable[[], Sequence[str] | None]
) -> list[str] | None:
    """The columns of a source, which has these `names`, that are read for `columns`.

    "a.b" is field b of column a, if no column is called "a.b". None for all columns, where the
    source does not tell its names.
    """
    if columns is None or not any("." in name for name in columns):
        return None if columns is None else list(columns)
    known = names()
    return None if known is None else list(dict.fromkeys(_head(name, known) for name in columns))


def for_rows(names: Sequence[str]) -> list[str]:
    """The column that is read where none is asked for, if there is one: of batches without columns
    nothing tells how many rows they have.
    """
    counts = Counter(names)
    return next(([name] for name in names if counts[name] == 1), list(names[:1]))


def no_column(names: Sequence[str]) -> Any:
    """Nulls by a name that is none of these: where no column is read they tell how many rows there
    are, of parts that may differ in all of their columns.
    """
    pa = import_module("pyarrow")
    return pa.field(f"none of {list(names)}", pa.null())


def reached(
    data: Any,
    columns: Sequence[str] | None,
    may_lack: Callable[[str], bool] = lambda name: False,
    keeps_others: bool = False,
) -> Any:
    """The data with fields of structs as columns, where `columns` has their paths.

    A field is null where its struct is. Other columns than these are left out.
    """
    if not any("." in name for name in columns or ()):
        return data
    try:
        pa = import_module("pyarrow")
    except ImportError:
        return data
    reader = reader_of(data)
    names = list(dict.fromkeys(present(columns, reader.schema, may_lack) or ()))
    if keeps_others:
        names = list(dict.fromkeys([*reader.schema.names, *names]))
    if set(names) <= set(reader.schema.names):
        return reader
    found = [path_of(name, reader.schema) for name in names]
    schema = pa.schema([field for field, _ in found], reader.schema.metadata)

    def batches() -> Iterator[Any]:
        for batch in reader:
            columns = [_values(batch, path) for _, path in found]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    return Made(schema, batches())


def present(
    columns: Sequence[str] | None, schema: Any, may_lack: Callable[[str], bool]
) -> list[str] | None:
    """The columns and paths, less those that the data may lack, and does."""
    if columns is None:
        return None
    return [name for name in columns if not may_lack(name) or not _lacks(schema, name)]


def _lacks(level: Any, name: str) -> bool:
    """Whether there is nothing at this path."""
    known = [level.field(at).name for at in range(_width(level))]
    head = _head(name, known)
    if head == name or head not in known:
        return head not in known
    inner = stored(level.field(known.index(head)).type)
    # What is no struct is another column, and no missing one.
    is_struct = import_module("pyarrow").types.is_struct(inner)
    return is_struct and _lacks(inner, name.removeprefix(head + "."))


def _head(name: str, known: Sequence[str]) -> str:
    """The longest part of a path that is one of the names; the whole one, if there is none."""
    parts = name.split(".")
    ends = range(len(parts), 0, -1)
    return next((part for end in ends if (part := ".".join(parts[:end])) in known), name)


class NoStructError(KeyError):
    """A path within a column that is no struct."""


def path_of(name: str, schema: Any) -> tuple[Any, list[int]]:
    """The field at this path, with its name, and its indices from level to level."""
    pa = import_module("pyarrow")
    path: list[int] = []
    rest, is_nullable = name, False
    level: Any = schema
    while True:
        head = rest
        if level.get_field_index(head) < 0:
            known = [level.field(at).name for at in range(_width(level))]
            head = _head(rest, known)
            if known.count(head) != 1:
                where = "the table" if not path else f'struct "{name.removesuffix("." + rest)}"'
                raise KeyError(f'no column "{name}": {where} has {known}')
        path.append(level.get_field_index(head))
        field = level.field(path[-1])
        is_nullable |= field.nullable
        if head == rest:
            return field.with_name(name).with_nullable(is_nullable), path
        level, rest = stored(field.type), rest.removeprefix(head + ".")
        if pa.types.is_null(level):
            # Of one type with any struct: all of its fields are nulls.
            return field.with_name(name), path
        if not pa.types.is_struct(level):
            raise NoStructError(f'no column "{name}": "{head}" is no struct, but {field.type}')


def stored(kind: Any) -> Any:
    """What a type is stored as, whose fields are those of pandas's intervals, for one."""
    is_extension = isinstance(kind, import_module("pyarrow").BaseExtensionType)
    return stored(kind.storage_type) if is_extension else kind


def _width(level: Any) -> int:
    return level.num_fields if hasattr(level, "num_fields") else len(level)


def _values(batch: Any, path: Sequence[int]) -> Any:
    column = batch.column(path[0])
    for at in path[1:]:
        while hasattr(column, "storage"):
            column = column.storage
        column = field_of(column, at)
    return column


def field_of(structs: Any, at: int) -> Any:
    """A field of structs, which is null where its struct is."""
    pa, pc = import_module("pyarrow"), import_module("pyarrow.compute")
    kind = stored(structs.type.field(at).type)
    has_validity = not (pa.types.is_union(kind) or pa.types.is_run_end_encoded(kind))
    if has_validity:
        return pc.struct_field(structs, [at])
    # pyarrow 26 ends the process, or fails. One row that is null stands for all.
    own = structs.field(at)
    if structs.null_count == 0:
        return own
    rows = pa.chunked_array([own, pa.nulls(1, own.type)])
    places = pc.if_else(structs.is_null(), len(own), pa.array(range(len(own))))
    return pa.array(_core._take(rows, places.cast("uint64")))
