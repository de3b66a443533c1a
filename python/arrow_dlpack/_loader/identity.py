"""What a state holds of the data that it is of: other_data.py refuses others by it.

A table has a digest of rows, files one of their footers, and all have one of the first and last
rows. Data that moved, that is in other chunks, or that another library holds has the same.
"""

import hashlib
import pickle
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from decimal import Context, Decimal
from functools import partial
from importlib import import_module
from itertools import chain
from typing import Any

from .._arrow_types import items_of, meaning_of, name_of_type
from . import filters as _filters
from .columns import AsArrow, Categories, Dense
from .known import is_local_system, local_path
from .merging import alike
from .parallel import side_by_side
from .paths import stamp_of
from .readers import heads, reached, reader_of
from .row_groups import are_parquet, counted_rows, rows_of
from .schema import Query, features_of, selected

#: Bytes of a file in its digest, four times.
_BYTES = 1 << 16
#: Rows of a table in its digest, at equal steps, and first and last rows of any data.
_ROWS = 16
#: Bytes of a row group that is read for its last rows.
_LAST_BYTES = 1 << 25
#: What a state says of the row groups of a file that has one.
ONE_GROUP = "one"
#: In place of the digest of files that were replaced while an epoch read them.
REPLACED = "replaced"


def read_by(schema: Any, query: Query) -> list[str]:
    """The columns that are read, for a filter too."""
    names = features_of(schema) if query.columns is None else list(query.columns)
    if query.where is not None:
        names += _filters.named(query.where, _filters.seen_of(schema))
    return list(dict.fromkeys(names))


def of_types(schema: Any, query: Query) -> dict[str, Any]:
    """Names and types of the columns that are read."""
    if schema is None:
        return {}
    own = selected(schema, read_by(schema, query))
    columns = {field.name: _type_name(field, query) for field in own}
    # Not every writer of a state keeps the order of a mapping.
    return {"columns": columns, "order": digest_of(list(columns))}


def of_rows(rows: int, taken: Iterable[Any], query: Query, schema: Any = None) -> dict[str, Any]:
    """Of a table or frame: its types, its rows, and a digest of some of them.

    taken: the `compared` ones, in tables that follow each other.
    schema: that of all rows, None for that of the first table.
    """
    pa = import_module("pyarrow")
    some = [pa.table(one).combine_chunks() for one in taken]
    told = of_types(some[0].schema if schema is None else schema, query)
    # Columns by their names: whether their order matters is for others to say.
    names = sorted(told["columns"])
    found = dict(
        zip(compared(rows), chain.from_iterable(_picked(one, names) for one in some), strict=True)
    )
    sample, head, tail = (
        _digest_of_rows([found[row] for row in own], names) for own in _positions(rows)
    )
    codes = _codes(some, query) if query.physical else {}
    return told | codes | {"rows": rows, "sample": sample, "ends": {"head": head, "tail": tail}}


def compared(rows: int) -> list[int]:
    """The positions of the rows that are compared."""
    return sorted(set(chain(*_positions(rows))))


def _positions(rows: int) -> tuple[list[int], range, range]:
    """Those at equal steps, the first and the last ones."""
    last = max(rows - 1, 0)
    steps = sorted({last * step // (_ROWS - 1) for step in range(_ROWS)}) if rows else []
    return steps, range(min(rows, _ROWS)), range(max(rows - _ROWS, 0), rows)


def of_frames(
    read: Callable[[], tuple[int, Sequence[Any], Any]],
    query: Query,
    told: Callable[[], dict[str, Any]],
) -> Callable[[], dict[str, Any]]:
    """What a state holds of frames as they are now, though they may be changed in place before it
    is asked.

    read: returns what `of_rows` takes: how many rows there are, tables of the `compared` ones, and
    the schema of all.
    told: tells it of all rows, where they have not been changed: these say the types.
    """
    try:
        rows, begun, whole = read()
    except Exception:  # The epoch says what is no Arrow data; values of any class raise anything.
        return told

    def identity() -> dict[str, Any]:
        own = of_rows(rows, begun, query, whole)
        try:
            is_same = of_rows(*read()[:2], query, whole) == own
        except Exception:  # of what is no Arrow data any more
            is_same = False
        return told() if is_same else own | {"changed": True}

    return identity


def _codes(some: Sequence[Any], query: Query) -> dict[str, str]:
    """What tells codes of dictionaries from those of other words for the same values, where tables
    have one dictionary: a source of several may be in other parts elsewhere.
    """
    pa, found = import_module("pyarrow"), []
    names = features_of(some[0].schema) if query.columns is None else query.columns
    tables = [pa.table(reached(one, list(names), lambda name: True)) for one in some]
    for name in sorted({*names} - {*query.beside}):
        is_made = isinstance(query.wishes.get(name), (AsArrow, Categories))
        if is_made or any(one.schema.names.count(name) != 1 for one in tables):
            continue
        parts = [part for one in tables for part in one.column(name).chunks]
        coded = list(filter(None, map(_coded, parts)))
        if coded and all(part.dictionary.equals(coded[0].dictionary) for part in coded):
            found.append((name, [code for part in coded for code in _codes_of(part)]))
    return {"codes": digest_of(found)} if found else {}


def _coded(array: Any) -> Any:
    """The dictionary in an array, which may be of lists of one length; None without one."""
    types = import_module("pyarrow").types
    while types.is_fixed_size_list(array.type):
        array = items_of(array)
    return array if types.is_dictionary(array.type) else None


def _codes_of(array: Any) -> list[Any]:
    """None where the word is null too."""
    codes = array.indices
    if array.dictionary.null_count:
        pc = import_module("pyarrow.compute")
        codes = pc.if_else(array.dictionary.is_valid().take(codes), codes, None)
    values: list[Any] = codes.to_pylist()
    return values


def _picked(table: Any, names: Sequence[str]) -> list[dict[str, Any]]:
    """The rows, with those of these columns that the table has."""
    found = import_module("pyarrow").table(reached(table, names, lambda name: True))
    counts = Counter(found.schema.names)
    known = [name for name in names if counts[name] == 1]
    columns = [_values(found.column(name)) for name in known]
    rows = zip(*columns, strict=True) if known else ((),) * len(found)
    return [dict(zip(known, row, strict=True)) for row in rows]


def _values(column: Any) -> list[Any]:
    """Those of a column as Python's, and as numbers where Python has none of its dates or times."""
    pa, kind = import_module("pyarrow"), column.type
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        column = column.cast(pa.timestamp(kind.unit, "UTC"))
    with suppress(OverflowError, ValueError):
        if not _is_finer(kind):
            values: list[Any] = column.to_pylist()
            return values
    return list(map(_held, column))


def _is_finer(kind: Any) -> bool:
    """Whether there are times in it, at any depth, of which pyarrow makes Python's without parts:
    nanoseconds of a day's time, hours of a date.
    """
    types = import_module("pyarrow").types
    of_values = [getattr(kind, name, None) for name in ("storage_type", "value_type")]
    inner = [kind.field(at).type for at in range(kind.num_fields)] or list(filter(None, of_values))
    is_finer = types.is_date64(kind) or (types.is_time64(kind) and kind.unit == "ns")
    return is_finer or any(map(_is_finer, inner))


def _held(scalar: Any) -> Any:
    """A value of Arrow as Python's, or what is in it."""
    types, kind = import_module("pyarrow").types, scalar.type
    with suppress(OverflowError, ValueError):
        if not (scalar.is_valid and _is_finer(kind)):
            return scalar.as_py()
    if types.is_struct(kind):
        return {kind.field(at).name: _held(scalar[at]) for at in range(kind.num_fields)}
    if types.is_map(kind):
        return [tuple(map(_held, (pair[0], pair[1]))) for pair in scalar.values]
    if hasattr(scalar, "values"):
        return list(map(_held, scalar.values))
    value = scalar.value
    return _held(value) if hasattr(value, "as_py") else value * _NANOSECONDS[_unit_of(kind)]


#: In each unit of dates and times.
_NANOSECONDS = {"day": 86_400 * 10**9, "s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
#: The first day of Arrow's dates.
_EPOCH = date(1970, 1, 1)
#: For all digits of Arrow's decimals.
_EXACT = Context(prec=100)


def _unit_of(kind: Any) -> str:
    types = import_module("pyarrow").types
    of_dates = "day" if types.is_date32(kind) else "ms"
    return str(getattr(kind, "unit", of_dates))


def _digest_of_rows(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> str:
    return digest_of([[_value(row.get(name)) for row in rows] for name in names])


def digest_of(values: Any) -> str:
    """Of lists, texts and numbers."""
    return hashlib.blake2b(repr(values).encode(), digest_size=16).hexdigest()


def of_filter(where: Any) -> str:
    """A text that no other filter has."""
    # pyarrow leaves out the middle of long lists, and the types of values.
    return f"{_filters.text_of(where)} {digest_of(pickle.dumps(where, 4))}"


def _value(value: Any) -> Any:
    """The same for one value in any library: pandas has one null for NaN and null."""
    if value is None or value != value:  # noqa: PLR0124
        return None
    if isinstance(value, (list, tuple)):
        return [_value(item) for item in value]
    if isinstance(value, Mapping):
        return sorted((name, _value(item)) for name, item in value.items())
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(UTC)  # one moment in any zone
    if isinstance(value, timedelta):
        # In words pandas has more of it than Python.
        whole = (value.days * 86_400 + value.seconds) * 10**6 + value.microseconds
        value = whole * 1000 + getattr(value, "nanoseconds", 0)
    elif isinstance(value, date) and not isinstance(value, datetime):
        value = (value - _EPOCH).days * _NANOSECONDS["day"]
    elif isinstance(value, time):
        seconds = (value.hour * 60 + value.minute) * 60 + value.second
        value = seconds * _NANOSECONDS["s"] + value.microsecond * _NANOSECONDS["us"]
    elif isinstance(value, Decimal):
        value = format(value.normalize(_EXACT), "f")  # 1.5 for 1.50
    if isinstance(value, float) and value.is_integer():
        return int(value)  # parts of one source may have either
    return value if isinstance(value, (bool, int, float, bytes)) else str(value)


def of_keys(keys: Iterable[Mapping[str, Any]], told: Mapping[str, Any]) -> dict[str, Any]:
    """Of files: what is read of the keys of their folders.

    told: that of the types, which has the columns that are read.
    """
    columns = told.get("columns", ())
    found = [[(name, str(key)) for name, key in own.items() if name in columns] for own in keys]
    return {"keys": digest_of(found)} if any(found) else {}


def of_files(
    fragments: Sequence[Any],
    told: Mapping[str, Any],
    keys: Sequence[Mapping[str, Any]],
    begun: Mapping[str, Any],
    *,
    schema: Any = None,
    counted: dict[str, int] | None = None,
) -> dict[str, Any]:
    """Of files: types, keys, rows, and a digest of their footers in order; paths move.

    told: that of the types.
    keys: the constant columns of each file, in place of its own of those names.
    begun: what `stamps_of` told when they began to be read.
    schema: to which columns are cast, None for those of files as they are.
    counted: keeps the rows of Arrow files, of which each is opened to count them.
    """
    ends = partial(_ends_of_files, fragments, sorted(told.get("columns", ())), keys, begun, schema)
    found = _of_footers_or_bytes(fragments, begun, {} if counted is None else counted)
    # The same files may be read with these columns in place of keys.
    replaced = [
        {name: key for name, key in own.items() if name in _names_of(fragment)}
        for fragment, own in zip(fragments, keys, strict=True)
    ]
    if own := of_keys(replaced, told):
        for name in {"footers", "files"} & found.keys():
            if found[name] != REPLACED:
                found[name] = digest_of([found[name], own["keys"]])
    return {**told, **of_keys(keys, told), **found, "ends": ends}


def _names_of(fragment: Any) -> Sequence[str]:
    """The columns that a file has itself; none of a file whose keys replace none of them."""
    names: Sequence[str] = getattr(getattr(fragment, "physical_schema", None), "names", ())
    return names


def _of_footers_or_bytes(
    fragments: Sequence[Any], begun: Mapping[str, Any], counted: dict[str, int]
) -> dict[str, Any]:
    if not are_parquet(fragments):
        told = {"files": _digest_of_bytes(fragments, begun)}
        are_arrow = told["files"] != REPLACED and all(map(_is_local_arrow, fragments))
        if not are_arrow:
            return told
        if "rows" not in counted:
            counted["rows"] = counted_rows(fragments)
        return told | counted
    groups = [[group.id for group in fragment.row_groups] for fragment in fragments]
    told = of_footers(fragment.metadata for fragment in fragments)
    sizes = [group.num_rows for fragment in fragments for group in fragment.row_groups]
    # What a shuffle puts in order, and what ranks and workers divide by rows.
    told["groups"] = digest_of(sizes) if len(sizes) > 1 else ONE_GROUP
    if [one.metadata.num_row_groups for one in fragments] == list(map(len, groups)):
        return told
    # Some row groups of files.
    some = {"rows": sum(map(rows_of, fragments)), "footers": digest_of([told["footers"], groups])}
    return told | some


def _is_local_arrow(fragment: Any) -> bool:
    """Whether it is a file of which the batches, at any place, cost little."""
    form = getattr(getattr(fragment, "format", None), "default_extname", None)
    return form in ("arrow", "feather") and is_local_system(fragment.filesystem)


def _ends_of_files(
    fragments: Sequence[Any],
    names: Sequence[str],
    keys: Sequence[Mapping[str, Any]],
    begun: Mapping[str, Any],
    schema: Any,
) -> Any:
    pairs = list(zip(fragments, keys, strict=True))

    def rows(is_last: bool) -> Iterator[Any]:
        for fragment, own in reversed(pairs) if is_last else pairs:
            for batch in (_last if is_last else _first)(fragment, names):
                yield (
                    None if batch is None else _with_keys(_end(batch, is_last), names, own, schema)
                )

    found = _ends(rows, names)
    return REPLACED if are_replaced(begun) else found


def _ends(rows: Callable[[bool], Iterator[Any]], names: Sequence[str]) -> dict[str, str]:
    """Digests of the first rows and, where they cost little, of the last ones.

    rows: lists of rows from the first one on, or from the last list on; None for those that cost
    too much.
    """
    found: dict[str, str] = {}
    for name, is_last in ("head", False), ("tail", True):
        # What cannot be read is no matter until a batch has it.
        with suppress(NotImplementedError, OSError, OverflowError, ValueError):
            some = _rows_at_end(rows(is_last), is_last)
            found |= {} if some is None else {name: _digest_of_rows(some, names)}
    return found


def _rows_at_end(lists: Iterable[Any], is_last: bool) -> list[dict[str, Any]] | None:
    rows: list[dict[str, Any]] = []
    for own in lists:
        if own is None:
            return None
        rows = own + rows if is_last else rows + own
        if len(rows) >= _ROWS:
            return rows[-_ROWS:] if is_last else rows[:_ROWS]
    return rows


def ends_of(batches: Callable[[bool], Iterator[Any]], names: Sequence[str]) -> dict[str, str]:
    """The same of batches, or tables."""

    def rows(is_last: bool) -> Iterator[Any]:
        for batch in batches(is_last):
            yield None if batch is None else _with_keys(_end(batch, is_last), names, {}, None)

    return _ends(rows, names)


def digest_of_head(
    read: Callable[[Query], Any], schema: Any, names: Sequence[str]
) -> dict[str, str]:
    """The same of the first rows of a dataset with a filter: the last ones need a scan of all.

    read: opens the rows that the filter keeps.
    """
    columns = _known(names, schema)

    def batches(is_last: bool) -> Iterator[Any]:
        yield from [None] if is_last else reader_of(read(Query(columns=columns)))

    return ends_of(batches, names)


def _end(batch: Any, is_last: bool) -> Any:
    rows = min(len(batch), _ROWS)  # of no columns, pyarrow takes as many as are asked for
    return batch.slice(len(batch) - rows if is_last else 0, rows)


def _with_keys(
    batch: Any, names: Sequence[str], keys: Mapping[str, Any], schema: Any
) -> list[dict[str, Any]]:
    pa = import_module("pyarrow")
    table = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
    if schema is not None:
        table = table.cast(pa.schema([schema.field(name) for name in table.schema.names]))
    own = {name: getattr(key, "as_py", lambda key=key: key)() for name, key in keys.items()}
    return [{**row, **own} for row in _picked(table, names)]


def _first(fragment: Any, names: Sequence[str]) -> Iterator[Any]:
    """Batches from the first row on, of few rows where that is less to read."""
    if not hasattr(fragment, "scanner"):
        yield from fragment.open()
    elif are_parquet([fragment]):
        with _parquet_file(fragment) as file:
            groups = [group.id for group in fragment.row_groups]
            yield from of_groups(file, groups, names, False)
    else:
        columns = _known(names, fragment.physical_schema)
        options = {"use_threads": False, "batch_readahead": 1, "fragment_readahead": 1}
        yield from fragment.scanner(columns=columns, **options).to_batches()


def _last(fragment: Any, names: Sequence[str]) -> Iterator[Any]:
    """Batches from the last one on; None for those that cost too much."""
    is_parquet = hasattr(fragment, "scanner") and are_parquet([fragment])
    if is_parquet and is_local_system(fragment.filesystem):
        with _parquet_file(fragment) as file:
            groups = [group.id for group in fragment.row_groups]
            yield from of_groups(file, groups, names, True)
    elif _is_local_arrow(fragment):
        pa = import_module("pyarrow")
        with pa.memory_map(local_path(fragment.path, fragment.filesystem)) as source:
            file = pa.ipc.open_file(source)
            columns = _known(names, file.schema)
            for at in reversed(range(file.num_record_batches)):
                # Others may be in no schema of the dataset, or be of a type that is not cast.
                yield file.get_batch(at).select(columns)
    else:
        yield None


def of_groups(
    file: Any, groups: Sequence[int], names: Sequence[str], is_last: bool
) -> Iterator[Any]:
    """What row groups of a ParquetFile have, from the first row or from the last group on."""
    columns = _known(names, file.schema_arrow)
    if not is_last:
        yield from file.iter_batches(_ROWS, groups, columns)
        return
    for at in reversed(groups):
        is_small = is_cheap(file.metadata.row_group(at).total_byte_size)
        yield file.read_row_group(at, columns) if is_small else None


def is_cheap(size: int) -> bool:
    """Whether this many bytes are read for a few rows."""
    return size <= _LAST_BYTES


def _parquet_file(fragment: Any) -> Any:
    """Of which pages are read as they are needed, rather than columns of row groups."""
    of = import_module("pyarrow.parquet").ParquetFile
    file, metadata = fragment.open(), fragment.metadata
    return of(file, metadata=metadata, buffer_size=_BYTES, pre_buffer=False)


def _known(names: Sequence[str], schema: Any) -> list[str]:
    """The columns of the file that have these, which may be fields of structs."""
    known = schema.names
    return [name for name in heads(names, lambda: known) or () if known.count(name) == 1]


def settled(told: Any) -> Any:
    """What a state holds, with what has not been read until it was needed."""
    found = {name: value() if callable(value) else value for name, value in told.items()}
    return found | ({"sources": list(map(settled, told["sources"]))} if "sources" in told else {})


def is_known(told: Any) -> bool:
    """Whether types are told of all data: of a query or an iterator only once it is read."""
    if told is None:
        return False
    return all(map(is_known, told["sources"])) if "sources" in told else "columns" in told


def stamps_of(fragments: Iterable[Any]) -> dict[str, Any]:
    """What tells local files from others in their places, but for those that have footers."""
    return {
        path: stamp_of(path)
        for fragment in fragments
        # Not are_parquet(), which reads the footers.
        if getattr(getattr(fragment, "format", None), "default_extname", None) != "parquet"
        and (system := getattr(fragment, "filesystem", None)) is not None
        and (path := local_path(fragment.path, system)) is not None
    }


def are_replaced(begun: Mapping[str, Any]) -> bool:
    """Whether other files, or none, are in the places of those that these are of."""
    return any(stamp_of(path) != stamp for path, stamp in begun.items())


def _digest_of_bytes(fragments: Sequence[Any], begun: Mapping[str, Any]) -> str:
    found = None
    if not are_replaced(begun):
        found = digest_of(side_by_side(_bytes_of, fragments, fragments[0].filesystem))
    # The bytes that were read are gone, and no others are those of the state.
    return REPLACED if found is None or are_replaced(begun) else found


def _bytes_of(fragment: Any) -> tuple[int, str]:
    """Of a file without statistics: its size, and a digest of bytes at equal steps."""
    with fragment.filesystem.open_input_file(fragment.path) as file:
        size = file.size()
        steps = {max(size - _BYTES, 0) * step // 3 for step in range(4)}
        digest = hashlib.blake2b(digest_size=16)
        for start in sorted(steps):
            digest.update(file.read_at(_BYTES, start))
        return size, digest.hexdigest()


def of_footers(footers: Iterable[Any]) -> dict[str, Any]:
    """The rows of Parquet files, and a digest of their footers in order."""
    total, digest = 0, hashlib.blake2b(digest_size=16)
    for metadata in footers:
        total += metadata.num_rows
        sink = import_module("pyarrow").BufferOutputStream()
        metadata.write_metadata_file(sink)
        digest.update(sink.getvalue())
    return {"rows": total, "footers": digest.hexdigest()}


#: Families of types of which libraries have others for the same values.
_FAMILIES = ("timestamp", "time", "date", "duration", "decimal", "fixed_size_binary")


def _type_name(field: Any, query: Query) -> str:
    types, kind = import_module("pyarrow").types, alike(meaning_of(field))
    if types.is_fixed_size_list(kind) and isinstance(query.wishes.get(field.name), Dense):
        kind = import_module("pyarrow").large_list(kind.value_type)
    family = next((name for name in _FAMILIES if getattr(types, f"is_{name}")(kind)), None)
    if family is None or (query.physical and types.is_temporal(kind)):
        return name_of_type(kind)  # the numbers are of this unit
    if family == "timestamp" and kind.tz is not None:
        return "timestamp with a zone"
    return "large_binary" if family == "fixed_size_binary" else family
