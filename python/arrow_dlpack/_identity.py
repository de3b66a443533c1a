"""What a state holds of the data that it is of, so that other data is refused.

Each part is compared where both sides have it: a table has a digest of rows, files one of their
footers. Data that moved, that is in other chunks, or that another library holds is the same.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any

from . import _filters
from ._parallel import side_by_side
from ._pieces import are_parquet, rows_of
from ._readers import reached, schema_without_views
from ._schema import Query, alike, features_of, selected

#: Bytes of a file in its digest, four times.
_BYTES = 1 << 16
#: Rows of a table in its digest, at equal steps.
_ROWS = 16


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
    return {"columns": {field.name: _type_name(field.type) for field in own}}


def of_rows(rows: int, take: Callable[[Any], Any], query: Query) -> dict[str, Any]:
    """Of a table or frame: its types, its rows, and a digest of some of them.

    take: returns the rows at some positions.
    """
    try:
        pa = import_module("pyarrow")
    except ImportError:
        return {"rows": rows}
    last = max(rows - 1, 0)
    at = sorted({last * step // (_ROWS - 1) for step in range(_ROWS)}) if rows else []
    some = pa.table(take(pa.array(at, pa.uint64()))).combine_chunks()
    told = of_types(some.schema, query)
    names = list(told["columns"])
    picked = pa.table(reached(some, names))
    try:
        values = [[_value(value) for value in picked.column(name).to_pylist()] for name in names]
    except (OverflowError, ValueError):  # dates and times that Python has not
        return told | {"rows": rows}
    return told | {"rows": rows, "sample": digest_of(values)}


def digest_of(values: Any) -> str:
    """Of lists, texts and numbers."""
    return hashlib.blake2b(repr(values).encode(), digest_size=16).hexdigest()


def _value(value: Any) -> Any:
    """The same for one value in any library: pandas has one null for NaN and null."""
    if value is None or value != value:  # noqa: PLR0124
        return None
    if isinstance(value, (list, tuple)):
        return [_value(item) for item in value]
    if isinstance(value, Mapping):
        return sorted((name, _value(item)) for name, item in value.items())
    return value if isinstance(value, (bool, int, float, bytes)) else str(value)


def of_files(fragments: Sequence[Any]) -> dict[str, Any]:
    """Of files: the rows, and a digest of their footers in order; paths move."""
    if not are_parquet(fragments):
        return {"files": digest_of(side_by_side(_ends_of, fragments, fragments[0].filesystem))}
    groups = [[group.id for group in fragment.row_groups] for fragment in fragments]
    told = of_footers(fragment.metadata for fragment in fragments)
    if [one.metadata.num_row_groups for one in fragments] == list(map(len, groups)):
        return told
    # Some row groups of files.
    return {"rows": sum(map(rows_of, fragments)), "footers": digest_of([told["footers"], groups])}


def _ends_of(fragment: Any) -> tuple[int, list[bytes]]:
    """Of a file without statistics: its size, and bytes at equal steps."""
    with fragment.filesystem.open_input_file(fragment.path) as file:
        size = file.size()
        steps = {max(size - _BYTES, 0) * step // 3 for step in range(4)}
        return size, [file.read_at(_BYTES, start) for start in sorted(steps)]


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


def _type_name(kind: Any) -> str:
    types, kind = import_module("pyarrow").types, alike(kind)
    family = next((name for name in _FAMILIES if getattr(types, f"is_{name}")(kind)), None)
    if family is None:
        return str(kind)
    return "large_binary" if family == "fixed_size_binary" else family


def check(saved: Any, ours: Mapping[str, Any], where: str = "the source") -> None:
    """An error for a state of other data."""
    if not isinstance(saved, Mapping):
        return
    for name in ("columns", "rows", "keys", "footers", "files", "sample"):
        if name in saved and name in ours and saved[name] != ours[name]:
            raise ValueError(
                f"the state is of other data: {_difference(name, saved[name], ours[name])} in "
                f"{where}. Its batches would be others: load no state, or begin another epoch "
                "by set_epoch()"
            )
    parts, others = saved.get("sources"), ours.get("sources")
    if isinstance(parts, list) and isinstance(others, list):
        for at, (one, other) in enumerate(zip(parts, others, strict=False)):
            check(one, other, f"source {at} of the Mix")


def _difference(name: str, saved: Any, ours: Any) -> str:
    if name == "rows":
        return f"it had {saved} rows, and there are {ours}"
    if name == "columns" and isinstance(saved, Mapping):
        for column in {**saved, **ours}:
            if saved.get(column) != ours.get(column):
                one, other = (of.get(column, "missing") for of in (saved, ours))
                return f'column "{column}" was {one}, and is {other}'
    return {
        "keys": "folders had other keys",
        "footers": "the files had other footers (sizes and statistics of row groups, in order)",
        "files": "the files had other sizes or bytes",
        "sample": "some rows had other values",
    }.get(name, "columns were in another order")
