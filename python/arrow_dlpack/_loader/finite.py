"""Values of files that the schema of a dataset makes infinite, which pyarrow's casts do unasked."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any

from .readers import Made


def checked(scanner: Any, where: Any) -> Any:
    """The batches of a scan; an error for a finite value that the dataset's schema makes infinite.

    where: the filter of the scan. A file whose types are those of the schema costs nothing; of
    others a column that has an infinite value is read again, as the file has it.
    """
    schema = scanner.projected_schema
    narrow = {own.name: own.type for own in schema if _is_narrow(own.type)}
    if not narrow:
        return scanner.to_reader()

    def batches() -> Iterator[Any]:
        last, suspects = None, []
        for batch, fragment in scanner.scan_batches():
            if fragment is not last:
                last, suspects = fragment, _suspects(fragment, narrow)
            for name in suspects[:]:
                if _has_infinite(batch.column(name)):
                    _check(fragment, name, narrow[name], where)
                    suspects.remove(name)
            yield batch

    return Made(schema, batches())


def _suspects(fragment: Any, narrow: dict[str, Any]) -> list[str]:
    """The columns that are of another type in the file."""
    if not hasattr(fragment, "path"):
        return []
    own = fragment.physical_schema
    found = [name for name in narrow if own.get_field_index(name) >= 0]
    return [name for name in found if not own.field(name).type.equals(narrow[name])]


def _check(fragment: Any, name: str, kind: Any, where: Any) -> None:
    own = fragment.physical_schema
    for batch in _scanned(fragment, own, name, where):
        column = batch.column(0)
        pairs = zip(_floats(column), _floats(column.cast(kind)), strict=True)
        for values, made in pairs:
            lost = values[_numpy().isfinite(values) & _numpy().isinf(made)]
            if len(lost):
                raise ValueError(
                    f'{fragment.path}: column "{name}" is {own.field(name).type} there and '
                    f"{kind} in the schema of the dataset, which does not hold {lost[0]}: "
                    "another schema=, or the path in place of the dataset, does"
                )


def _scanned(fragment: Any, schema: Any, name: str, where: Any) -> Iterator[Any]:
    try:
        rows = fragment.scanner(schema=schema, columns=[name], filter=where)
    except (NotImplementedError, TypeError, ValueError):  # of a filter for the dataset's types
        rows = fragment.scanner(schema=schema, columns=[name])
    yield from rows.to_batches()


def _is_narrow(kind: Any) -> bool:
    types = import_module("pyarrow").types
    if types.is_float16(kind) or types.is_float32(kind):
        return True
    return any(_is_narrow(kind.field(at).type) for at in range(kind.num_fields))


def _has_infinite(column: Any) -> bool:
    return any(bool(_numpy().isinf(values).any()) for values in _floats(column))


def _floats(column: Any) -> list[Any]:
    """The numbers of a column, also within lists and structs; those under nulls are any."""
    types = import_module("pyarrow").types
    kind = column.type
    if types.is_struct(kind):
        return [part for at in range(kind.num_fields) for part in _floats(column.field(at))]
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return _floats(column.flatten())
    if not (types.is_floating(kind) or types.is_integer(kind)):
        return []
    return [column.to_numpy(zero_copy_only=False)]


def _numpy() -> Any:
    return import_module("numpy")
