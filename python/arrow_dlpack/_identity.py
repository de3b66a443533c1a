"""What a state holds of the data that it is of, so that other data is refused.

Each part is compared where both sides have it: a table has a digest of rows, files one of their
footers. Data that moved, that is in other chunks, or that another library holds is the same.
"""

import hashlib
import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Any

from . import _filters
from ._parallel import side_by_side
from ._paths import stamp_of
from ._pieces import are_parquet, rows_of
from ._readers import reached, schema_without_views
from ._schema import Query, alike, features_of, selected

#: Bytes of a file in its digest, four times.
_BYTES = 1 << 16
#: Rows of a table in its digest, at equal steps.
_ROWS = 16
#: In place of the digest of files that were replaced while an epoch read them.
_REPLACED = "replaced"


def read_by(schema: Any, query: Query) -> list[str]:
    """The columns that are read, for a filter too."""
    names = features_of(schema) if query.columns is None else list(query.columns)
    if query.where is not None:
        names += _filters.named(query.where, schema_without_views(schema))
    return list(dict.fromkeys(names))


def of_types(schema: Any, query: Query) -> dict[str, Any]:
    """Names and types of the columns that are read."""
    if schema is None:
        return {}
    own = selected(schema, read_by(schema, query))
    columns = {field.name: _type_name(field.type, query.physical) for field in own}
    # Not every writer of a state keeps the order of a mapping.
    return {"columns": columns, "order": digest_of(list(columns))}


def of_rows(
    rows: int, take: Callable[[Any], Sequence[Any]], query: Query, schema: Any = None
) -> dict[str, Any]:
    """Of a table or frame: its types, its rows, and a digest of some of them.

    take: returns the rows at some positions, in tables that follow each other.
    schema: that of all of them, None for that of the first one.
    """
    try:
        pa = import_module("pyarrow")
    except ImportError:
        return {"rows": rows}
    last = max(rows - 1, 0)
    at = sorted({last * step // (_ROWS - 1) for step in range(_ROWS)}) if rows else []
    some = [pa.table(one).combine_chunks() for one in take(pa.array(at, pa.uint64()))]
    told = of_types(some[0].schema if schema is None else schema, query)
    # Columns by their names: whether their order matters is for others to say.
    names = sorted(told["columns"])
    try:
        found = [row for one in some for row in _picked(one, names)]
        values = [[_value(row.get(name)) for row in found] for name in names]
    except (OverflowError, ValueError):  # dates and times that Python has not
        return told | {"rows": rows}
    return told | {"rows": rows, "sample": digest_of(values)}


def _picked(table: Any, names: Sequence[str]) -> list[dict[str, Any]]:
    """The rows, with those of these columns that the table has."""
    found = import_module("pyarrow").table(reached(table, names, lambda name: True))
    known = [name for name in names if found.schema.names.count(name) == 1]
    rows: list[dict[str, Any]] = found.select(known).to_pylist()
    return rows


def digest_of(values: Any) -> str:
    """Of lists, texts and numbers."""
    return hashlib.blake2b(repr(values).encode(), digest_size=16).hexdigest()


def of_filter(where: Any) -> str:
    """A text that no other filter has."""
    text = str(where)
    # pyarrow leaves out the middle of long lists.
    return f"{text} {digest_of(pickle.dumps(where, 4))}" if "..." in text else text


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


def of_files(fragments: Sequence[Any], begun: Mapping[str, Any]) -> dict[str, Any]:
    """Of files: the rows, and a digest of their footers in order; paths move.

    begun: what `stamps_of` told when they began to be read.
    """
    if not are_parquet(fragments):
        return {"files": _digest_of_bytes(fragments, begun)}
    groups = [[group.id for group in fragment.row_groups] for fragment in fragments]
    told = of_footers(fragment.metadata for fragment in fragments)
    sizes = [group.num_rows for fragment in fragments for group in fragment.row_groups]
    if len(sizes) > 1:
        # What a shuffle puts in order, and what ranks and workers divide.
        told["groups"] = digest_of(sizes)
    if [one.metadata.num_row_groups for one in fragments] == list(map(len, groups)):
        return told
    # Some row groups of files.
    some = {"rows": sum(map(rows_of, fragments)), "footers": digest_of([told["footers"], groups])}
    return told | some


def stamps_of(fragments: Iterable[Any]) -> dict[str, Any]:
    """What tells local files from others in their places, but for those that have footers."""
    return {
        fragment.path: stamp_of(fragment.path)
        for fragment in fragments
        if getattr(getattr(fragment, "filesystem", None), "type_name", None) == "local"
        # Not are_parquet(), which reads the footers.
        and getattr(getattr(fragment, "format", None), "default_extname", None) != "parquet"
    }


def _digest_of_bytes(fragments: Sequence[Any], begun: Mapping[str, Any]) -> str:
    def is_replaced() -> bool:
        return any(stamp_of(path) != stamp for path, stamp in begun.items())

    found = None
    if not is_replaced():
        found = digest_of(side_by_side(_ends_of, fragments, fragments[0].filesystem))
    # The bytes that were read are gone, and no others are those of the state.
    return _REPLACED if found is None or is_replaced() else found


def _ends_of(fragment: Any) -> tuple[int, str]:
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
_FAMILIES = ("timestamp", "time", "date", "duration", "decimal", "map", "fixed_size_binary")


def _type_name(kind: Any, is_physical: bool) -> str:
    types, kind = import_module("pyarrow").types, alike(kind)
    family = next((name for name in _FAMILIES if getattr(types, f"is_{name}")(kind)), None)
    if family is None or (is_physical and types.is_temporal(kind)):
        return str(kind)  # the numbers are of this unit
    if family == "timestamp" and kind.tz is not None:
        return "timestamp with a zone"
    return "large_binary" if family == "fixed_size_binary" else family


class OtherDataError(ValueError):
    """A state is of other data than the source."""


def refusal(difference: str) -> OtherDataError:
    """The error for a state of data that differs from the source's."""
    return OtherDataError(
        f"the state is of other data: {difference}. Its batches would be others: load no state, or "
        "begin another epoch by set_epoch()"
    )


def check(
    saved: Any,
    ours: Mapping[str, Any],
    *,
    is_ordered: bool,
    is_divided: bool,
    where: str = "the source",
) -> None:
    """An error for a state of other data.

    is_ordered: whether batches with columns in another order are others.
    is_divided: whether row groups are put in order, or divided.
    """
    if not isinstance(saved, Mapping):
        return
    order = ["order"] if is_ordered else []
    for name in ("columns", *order, "filter", "rows", "keys", "footers", "files", "sample"):
        if name not in saved or name not in ours:
            continue
        if saved[name] != ours[name] or saved[name] == _REPLACED:
            raise refusal(f"{_difference(name, saved[name], ours[name])} in {where}")
    if is_divided and saved.get("groups") != ours.get("groups"):
        raise OtherDataError(
            f"the state is of the same rows in other row groups, or in none, than {where} has: a "
            "shuffle, ranks and workers would make other batches of them. Load the state where "
            "the data is as it was, or begin another epoch by set_epoch()"
        )
    parts, others = saved.get("sources"), ours.get("sources")
    if isinstance(parts, list) and isinstance(others, list):
        for at, (one, other) in enumerate(zip(parts, others, strict=False)):
            name = f"source {at} of the Mix"
            check(one, other, is_ordered=is_ordered, is_divided=is_divided, where=name)


def _difference(name: str, saved: Any, ours: Any) -> str:
    if saved == _REPLACED:
        return "a file was replaced while the epoch read it, and no others are those"
    if name == "rows":
        return f"it had {saved} rows, and there are {ours}"
    if name == "columns" and isinstance(saved, Mapping):
        for column in {**saved, **ours}:
            if saved.get(column) != ours.get(column):
                one, other = saved.get(column, "not read"), ours.get(column, "not read now")
                return f'column "{column}" was {one}, and is {other}'
    return {
        "filter": "the dataset had another filter of its own",
        "keys": "folders had other keys",
        "footers": "the files had other footers (sizes and statistics of row groups, in order)",
        "files": "the files had other sizes or bytes",
        "sample": "some rows had other values",
        "order": "columns were in another order",
    }.get(name, "columns were others")
