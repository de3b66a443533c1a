"""Values of files that the schema of a dataset makes infinite, which pyarrow's casts do unasked."""

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

from .._arrow_types import items_of
from . import filters as _filters
from .readers import Made, field_of


def checked(
    scanner: Any, schema: Any, where: Any, look: Callable[[Any], None] | None = None
) -> Any:
    """The batches of a scan; an error for a finite value that the dataset's schema makes infinite.

    where: the filter of the scan. A file whose types are those of the schema costs nothing; of
    others a column that has an infinite value is read again, as the file has it.

    look: is called with the fragment of each batch.
    """
    known = set(schema.names)
    read = (own for own in scanner.projected_schema if own.name in known)
    narrow = [own.name for own in read if _is_narrow(own.type)]
    if not narrow and look is None:
        return scanned(scanner)

    def batches() -> Iterator[Any]:
        last, suspects = None, []
        for batch, fragment in _batches_of(scanner):
            if look is not None:
                look(fragment)
            if fragment is not last:
                last, suspects = fragment, _suspects(fragment, schema, narrow)
            for name in suspects[:]:
                if any(has_infinite(leaf) for leaf in _floats(batch.column(name)).values()):
                    _check(fragment, schema, name, where)
                    suspects.remove(name)
            yield batch

    return Made(scanner.projected_schema, batches())


def scanned(scanner: Any) -> Any:
    """The batches of a scan, which pyarrow reads without the GIL.

    Its ``to_reader()`` keeps the GIL, and in pyarrow 26 waits for ever where a file system that is
    Python code, as that of fsspec is, fails meanwhile.
    """

    def batches() -> Iterator[Any]:
        for batch, _ in _batches_of(scanner):
            yield batch

    return Made(scanner.projected_schema, batches())


def _batches_of(scanner: Any) -> Iterator[tuple[Any, Any]]:
    """The batches of a scan, each with its fragment."""
    scan = scanner.scan_batches()
    try:
        for found in scan:
            found.record_batch.validate()  # of IPC files the lengths of buffers are what they say
            yield found
    except GeneratorExit:
        # The scan is dropped once this is handled: of a file with types of Python's, such as
        # pandas's intervals, pyarrow 26 calls Python then, and may end the process.
        return
    finally:
        # It keeps an error of a file system that is Python code, which keeps this frame.
        del scan


def has_infinite(column: Any) -> bool:
    """Whether an array of floats has a value that is not null, and infinite."""
    numpy = import_module("numpy")
    return bool(numpy.isinf(column.to_numpy(zero_copy_only=False).astype("float64")).any())


def _suspects(fragment: Any, schema: Any, narrow: list[str]) -> list[str]:
    """The columns that are of another type in the file."""
    if not hasattr(fragment, "path"):
        return []
    own = fragment.physical_schema

    def is_suspect(name: str) -> bool:
        if any(len(of.get_all_field_indices(name)) != 1 for of in (own, schema)):
            return False
        return not own.field(name).type.equals(schema.field(name).type)

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
        theirs = dict(_leaves(rows.column(_OWN).combine_chunks()))
        for at, made_of in _floats(rows.column(name).combine_chunks()).items():
            if at not in theirs or not has_infinite(made_of):
                continue
            values, cast = (_as_float64(leaf) for leaf in (theirs[at], made_of))
            lost = values[numpy.isfinite(values) & numpy.isinf(cast)]
            if len(lost):
                raise ValueError(
                    f'{fragment.path}: column "{name}" is {own.field(name).type} there and {kind} '
                    f"in the schema of the dataset, which does not hold {lost[0]}: another "
                    "schema=, or the path in place of the dataset, does"
                )


#: The name of the file's own values, beside those of the schema.
_OWN = "of the file"


def _is_narrow(kind: Any) -> bool:
    """Whether it is a float of at most 32 bits, or has some."""
    pa = import_module("pyarrow")
    if isinstance(kind, pa.BaseExtensionType):
        return _is_narrow(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return _is_narrow(kind.value_type)
    if kind.num_fields:
        return any(_is_narrow(kind.field(at).type) for at in range(kind.num_fields))
    return bool(pa.types.is_float16(kind) or pa.types.is_float32(kind))


def _floats(column: Any) -> dict[tuple[str, ...], Any]:
    """The floats of an array, by the fields that they are in."""
    is_floating = import_module("pyarrow").types.is_floating
    return {at: leaf for at, leaf in _leaves(column) if is_floating(leaf.type)}


def _leaves(column: Any, at: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The arrays within one that are not nested: values under nulls are left out."""
    pa = import_module("pyarrow")
    kind, types = column.type, pa.types
    if isinstance(kind, pa.BaseExtensionType):
        yield from _leaves(column.storage, at)
    elif types.is_dictionary(kind):
        yield from _leaves(column.dictionary_decode(), at)
    elif types.is_map(kind):
        pair = pa.struct({"key": kind.key_type, "value": kind.item_type})
        yield from _leaves(column.cast(pa.list_(pair)), at)
    elif types.is_struct(kind):
        for number, field in enumerate(kind):
            yield from _leaves(field_of(column, number), (*at, field.name))
    elif hasattr(column, "flatten"):
        yield from _leaves(items_of(column), at)
    else:
        yield at, column


def _as_float64(leaf: Any) -> Any:
    return leaf.cast("float64").to_numpy(zero_copy_only=False)
