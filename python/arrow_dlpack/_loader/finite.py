"""Values of files that the schema of a dataset makes infinite, which pyarrow's casts do unasked."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any

from . import filters as _filters
from .readers import Made


def checked(scanner: Any, schema: Any, where: Any) -> Any:
    """The batches of a scan; an error for a finite value that the dataset's schema makes infinite.

    where: the filter of the scan. A file whose types are those of the schema costs nothing; of
    others a column that has an infinite value is read again, as the file has it.
    """
    narrow = [own.name for own in scanner.projected_schema if _is_narrow(own.type)]
    if not narrow:
        return scanner.to_reader()

    def batches() -> Iterator[Any]:
        last, suspects = None, []
        for batch, fragment in scanner.scan_batches():
            if fragment is not last:
                last, suspects = fragment, _suspects(fragment, schema, narrow)
            for name in suspects[:]:
                if has_infinite(batch.column(name)):
                    _check(fragment, schema, name, where)
                    suspects.remove(name)
            yield batch

    return Made(scanner.projected_schema, batches())


def has_infinite(column: Any) -> bool:
    """Whether an array of floats has a value that is not null, and infinite."""
    numpy = import_module("numpy")
    return bool(numpy.isinf(column.to_numpy(zero_copy_only=False).astype("float64")).any())


def _suspects(fragment: Any, schema: Any, narrow: list[str]) -> list[str]:
    """The columns of numbers that are of another type in the file."""
    if not hasattr(fragment, "path"):
        return []
    own, types = fragment.physical_schema, import_module("pyarrow").types

    def is_suspect(name: str) -> bool:
        if any(len(of.get_all_field_indices(name)) != 1 for of in (own, schema)):
            return False
        kind = own.field(name).type
        is_number = types.is_floating(kind) or types.is_integer(kind)
        return is_number and not kind.equals(schema.field(name).type)

    return [name for name in narrow if is_suspect(name)]


def _check(fragment: Any, schema: Any, name: str, where: Any) -> None:
    """An error if a row that the filter keeps has such a value; one of a folder's key keeps all."""
    numpy, pa = import_module("numpy"), import_module("pyarrow")
    own, kind = fragment.physical_schema, schema.field(name).type
    named = [] if where is None else _filters.named(where, _filters.seen_of(schema))
    is_filtered = bool(named) and set(named) <= set(own.names)
    read = list(dict.fromkeys([name, *named])) if is_filtered else [name]
    for batch in fragment.scanner(schema=own, columns=read).to_batches():
        made = [batch.column(one).cast(schema.field(one).type) for one in read]
        rows = pa.table([*made, batch.column(name)], [*read, _OWN])
        if is_filtered:
            kept = _filters.filtered(rows, where, [name, _OWN])
            rows = pa.Table.from_batches(kept, kept.schema)
        values, cast = (rows.column(one).to_numpy() for one in (_OWN, name))
        lost = values[numpy.isfinite(values) & numpy.isinf(cast)]
        if len(lost):
            raise ValueError(
                f'{fragment.path}: column "{name}" is {own.field(name).type} there and {kind} in '
                f"the schema of the dataset, which does not hold {lost[0]}: another schema=, or "
                "the path in place of the dataset, does"
            )


#: The name of the file's own values, beside those of the schema.
_OWN = "of the file"


def _is_narrow(kind: Any) -> bool:
    types = import_module("pyarrow").types
    return bool(types.is_float16(kind) or types.is_float32(kind))
