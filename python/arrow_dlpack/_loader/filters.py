"""What a filter of pyarrow's needs: the columns that it names, and data whose rows it drops."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date
from importlib import import_module
from typing import Any

from .. import _core
from .._arrow_types import has_matrices, is_text
from .readers import (
    Made,
    decoded,
    for_rows,
    has_runs,
    has_views,
    path_of,
    reader_of,
    schema_without_views,
    stored,
    without_views,
)
from .schema import fitted, readable, with_types


def check(where: Any, takes_texts: bool) -> None:
    """An error for what is no expression of pyarrow's.

    takes_texts: whether a library reads the source and has its own filters, as Lance has.
    """
    kind = type(where)
    if where is None or _is_expression(where) or (takes_texts and isinstance(where, str)):
        check_places(where)
        return
    raise TypeError(
        "filter must be an expression of pyarrow, such as pyarrow.compute.field('x') > 6, got "
        f"{kind.__name__}{_way_out(where)}"
    )


def text_of(where: Any) -> str:
    """A filter as pyarrow shows it: of long values the middle is left out, in letters too."""
    try:
        return str(where)
    except UnicodeDecodeError as error:
        return bytes(error.object).decode(errors="replace")


def check_places(where: Any) -> None:
    """An error for a column that is named by its place: others are read, and in another order.

    Only the text of an expression tells; what is in quotes there is a value.
    """
    text = re.sub(r'"(?:[^"\\]|\\.)*"', "", text_of(where)) if _is_expression(where) else ""
    if found := re.search(r"(?<!FieldRef\.)FieldPath\((\d+)", text):
        raise TypeError(
            f"filter= names column {found[1]} by its place, and which columns are read depends on "
            "columns=: name it, as pyarrow.compute.field('x')"
        )


def _is_expression(where: Any) -> bool:
    kind = type(where)
    return kind.__name__ == "Expression" and kind.__module__.startswith("pyarrow")


def _has(where: Any, tells: Callable[[Any], bool]) -> bool:
    """Whether it is one that this tells, or a list with one, at any depth."""
    if isinstance(where, (list, tuple)):
        return any(_has(one, tells) for one in where)
    return tells(where)


def _is_of_polars(where: Any) -> bool:
    return type(where).__module__.partition(".")[0] == "polars"


def _way_out(where: Any) -> str:
    if isinstance(where, str):
        value = r"-?\d+(?:\.\d+)?|'[^']*'|\"[^\"]*\"|True|False"
        found = re.fullmatch(rf"\s*([^\W\d]\w*)\s*([!=]=|[<>]=?)\s*({value})\s*", where)
        if found:
            return f": did you mean pyarrow.compute.field({found[1]!r}) {found[2]} {found[3]}?"
    is_mask = hasattr(where, "__array__") or hasattr(where, "__arrow_c_array__")
    is_list = isinstance(where, (list, tuple))
    are_bools = is_list and all(isinstance(one, bool) for one in where)
    are_lists = is_list and all(isinstance(one, (list, tuple)) for one in where)
    is_triple = isinstance(where, tuple) and not are_lists and not are_bools
    ways = [
        (
            _has(where, _is_of_polars),
            "; of a LazyFrame, call its own filter(...) and pass the result",
        ),
        (
            _has(where, _is_expression),
            ": pass the expression itself, and & puts several together, as x[0] & x[1]",
        ),
        (
            is_mask or are_bools,
            ": a mask is of a table, whose own filter(...) takes it, of a frame of pandas "
            "frame[mask]: pass the result",
        ),
        (are_lists, ": pyarrow.parquet.filters_to_expression(x) makes one of such lists"),
        (is_triple, ": pyarrow.parquet.filters_to_expression([x]) makes one of it"),
        (
            isinstance(where, (Mapping, str)),
            ": pyarrow.compute.field(name) == value is one, and & puts several together",
        ),
        (callable(where), ": pyarrow.compute.field(name) is a column in it"),
    ]
    return next((way for is_it, way in ways if is_it), "")


def seen_of(schema: Any) -> Any:
    """The schema that a filter sees: pyarrow has no kernels for all views, float16 and bool8."""
    plain = schema_without_views(schema)
    return with_types(plain, {own.name: _seen(own.type) for own in plain})


def _seen(kind: Any) -> Any:
    pa = import_module("pyarrow")
    if isinstance(kind, pa.Bool8Type):
        return pa.bool_()
    return pa.float32() if pa.types.is_float16(kind) else kind


def has_unseen(where: Any, schema: Any) -> bool:
    """Whether the filter names a column of float16 or bool8, which it sees as another type."""
    others = [own for own in schema if _seen(own.type) is own.type]
    return len(others) < len(schema) and not _binds(where, import_module("pyarrow").schema(others))


def own_of(dataset: Any) -> Any:
    """The filter that a dataset of pyarrow's has itself, which nothing public tells."""
    options = getattr(dataset, "_scan_options", None)
    return options.get("filter") if isinstance(options, dict) else None


def without_own(dataset: Any) -> Any:
    """The dataset without its filter: pyarrow's scan would drop rows of columns that it takes not,
    and by statistics that do not tell.
    """
    if own_of(dataset) is None:
        return dataset
    made = dataset.replace_schema(dataset.schema)
    made._scan_options = {}
    return made


def filtered(
    data: Any, where: Any, columns: Sequence[str] | None, seen: Mapping[str, Any] | None = None
) -> Any:
    """The rows for which the filter holds, with these columns.

    seen: types of columns that the filter sees in place of those of the data, which stay: what the
    engine makes of a value must not be rounded twice.

    Batch by batch: a scan of pyarrow's reads ahead in threads, which keep the source
    open after the end, or the interpreter from ending.
    """
    pa, acero = import_module("pyarrow"), import_module("pyarrow.acero")
    # Views within extension types stay, and the engine takes rows of these: slower.
    batches = without_views(reader_of(data))
    schema = batches.schema
    sees = seen_of(with_types(schema, seen or {}))
    bind(where, sees)
    names = columns if columns is not None else readable(schema) or schema.names
    _core._check_names(schema.names, list(dict.fromkeys(names)))
    read = set(names) or set(for_rows(schema.names))
    at = [number for number, name in enumerate(schema.names) if name in read]
    kinds = [schema.field(number).type for number in at]
    has_kernel = not any(has_views(kind) or has_matrices(kind) for kind in kinds)
    holds = acero.Declaration("project", acero.ProjectNodeOptions([where], ["holds"]))

    def kept(batch: Any) -> Any:
        table = acero.TableSourceNodeOptions(pa.Table.from_batches([fitted(batch, sees)]))
        source = acero.Declaration("table_source", table)
        try:
            found = acero.Declaration.from_sequence([source, holds]).to_table(use_threads=False)
        except ValueError as error:
            told = of_values(error, where, sees)
            if told is error:
                raise
            raise told from error
        mask = found["holds"].combine_chunks()
        if not pa.types.is_boolean(mask.type):
            raise TypeError(
                f"filter must be true or false of each row, and {text_of(where)} is {mask.type}"
            )
        some = batch.select(at)
        if has_kernel:
            return some.filter(mask)
        rows = import_module("pyarrow.compute").indices_nonzero(mask)
        return pa.record_batch(_core._take(some, rows))

    return Made(pa.schema(map(schema.field, at), schema.metadata), map(kept, batches))


def named(where: Any, schema: Any) -> list[str]:
    """The columns of the schema that the filter names, found by leaving out some of them."""
    bind(where, schema)

    def among(names: list[str]) -> list[str]:
        if _binds(where, _less(schema, set(names))):
            return []
        half = len(names) // 2
        return among(names[:half]) + among(names[half:]) if half else names

    return among(list(dict.fromkeys(schema.names)))


def is_named(where: Any, schema: Any, name: str) -> bool:
    """Whether the filter names the column, though it may not take the types of others."""
    try:
        _apply(where, _less(schema, {name}))
    except (KeyError, NotImplementedError, TypeError):
        pass
    except ValueError as error:
        return _unmatched(error) == name
    return False


def has_inexact(where: Any, schema: Any, stored: Iterable[Any]) -> bool:
    """Whether the filter names a column whose statistics in Parquet do not tell all of its values.

    stored: the schemas that the column has. Statistics hide NaN, and pyarrow compares those of
    views with no other text, those of extension types with nothing, and those of a file's own type
    with values of the schema's: times with the midnight of a date.
    """
    types = {field.name: field.type for field in schema}
    inexact = {
        field.name
        for own in stored
        for field in own
        if _is_inexact(field.type) or _is_uncompared(field.type, types.get(field.name, field.type))
    }
    exact = [field for field in schema if field.name not in inexact]
    return len(exact) < len(schema) and not _binds(where, import_module("pyarrow").schema(exact))


def is_prunable(where: Any, schema: Any) -> bool:
    """Whether pyarrow compares the values of the filter with statistics of these columns.

    It does so for `isin` without making them of one type, or as values of the set's type, which may
    not have those of the column. It is asked with made up statistics, which need no file.
    """
    pa = import_module("pyarrow")
    schema = pa.schema([schema.field(name) for name in named(where, schema)])
    zeros = [one for own in schema for one in _statistics((own.name,), own.type)]
    return _is_pruned(where, schema, zeros) and all(
        # Where the engine fails too, no way of reading takes such values.
        _is_pruned(where, schema, _bounds_of(path, value)) or not _is_taken(where, schema, row)
        for path, value, row in _ends(pa.struct(schema))
    )


def _is_pruned(where: Any, schema: Any, told: Sequence[Any]) -> bool:
    """Whether pyarrow compares the filter with these statistics."""
    ds = import_module("pyarrow.dataset")
    paths, system = [""] * len(told), import_module("pyarrow.fs").LocalFileSystem()
    make = ds.FileSystemDataset.from_paths
    try:
        none = make(paths, schema, ds.ParquetFileFormat(), system, partitions=told)
        list(none.get_fragments(where))
    except (NotImplementedError, TypeError, ValueError):
        return False
    return True


def _is_taken(where: Any, schema: Any, row: Any) -> bool:
    """Whether pyarrow compares the filter with the values of a row: a struct of all columns."""
    table = import_module("pyarrow").Table.from_arrays(row.flatten(), schema=schema)
    try:
        list(reader_of(filtered(table, where, [])))
    except (NotImplementedError, TypeError, ValueError):
        return False
    return True


def _statistics(path: tuple[str, ...], kind: Any) -> list[Any]:
    """What those of Parquet may tell of a column, or of a field in it: two bounds, or one value."""
    pa = import_module("pyarrow")
    if pa.types.is_struct(kind):
        return [one for own in kind for one in _statistics((*path, own.name), own.type)]
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if kind.num_fields or pa.types.is_null(kind):
        return []
    return _bounds_of(
        path, pa.Array.from_buffers(kind, 1, [None, *pa.nulls(1, kind).buffers()[1:]])[0]
    )


def _bounds_of(path: tuple[str, ...], value: Any) -> list[Any]:
    column = import_module("pyarrow.compute").field(*path)
    return [(column >= value) & (column <= value), column == value]


def _ends(kind: Any) -> Iterator[tuple[tuple[str, ...], Any, Any]]:
    """The least and the greatest value, in each field of structs: its path, and a row of nulls
    else. Of times these are those of Python.
    """
    pa = import_module("pyarrow")
    if pa.types.is_struct(kind):
        for at, own in enumerate(kind):
            for path, value, inner in _ends(own.type):
                row = [pa.nulls(1, one.type) for one in kind]
                row[at] = inner
                yield (own.name, *path), value, pa.StructArray.from_arrays(row, fields=list(kind))
        return
    if pa.types.is_integer(kind):
        stored, least = kind, -(2 ** (kind.bit_width - 1))
        ends = [least, -least - 1] if pa.types.is_signed_integer(kind) else [0, -2 * least - 1]
    elif pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        stored = pa.int32() if pa.types.is_date32(kind) else pa.int64()
        units = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
        unit = units[kind.unit if pa.types.is_timestamp(kind) else "ms"]
        of_day = 1 if pa.types.is_date32(kind) else 86_400 * unit
        days = [(day - date(1970, 1, 1)).days for day in (date.min, date.max)]
        ends = [min(max(day * of_day, -(2**63)), 2**63 - 1) for day in days]
    else:
        return
    for end in ends:
        row = pa.array([end], stored).view(kind)
        yield (), row[0], row


def is_exact(where: Any, schema: Any) -> bool:
    """Whether all columns that the filter names are exact in files too: a scan makes no NaN one of
    them, as it makes times of a day, and dates, of times with both.
    """
    types = import_module("pyarrow").types
    tells = types.is_integer, types.is_decimal, types.is_timestamp, types.is_duration
    exact = [field for field in schema if any(one(field.type) for one in tells)]
    return _binds(where, import_module("pyarrow").schema(exact))


def _less(schema: Any, names: Collection[str]) -> Any:
    kept = [field for field in schema if field.name not in names]
    return import_module("pyarrow").schema(kept, schema.metadata)


def _is_inexact(kind: Any) -> bool:
    pa = import_module("pyarrow")
    types = pa.types
    is_view = types.is_string_view(kind) or types.is_binary_view(kind)
    if is_view or isinstance(kind, pa.BaseExtensionType):
        return True
    inner = (kind.field(at).type for at in range(kind.num_fields))
    return types.is_floating(kind) or any(map(_is_inexact, inner))


def _is_uncompared(stored: Any, kind: Any) -> bool:
    """Whether pyarrow does not compare values of the type with statistics of a file's."""
    types = import_module("pyarrow").types
    if types.is_timestamp(stored) and types.is_timestamp(kind):
        return (stored.tz is None) != (kind.tz is None)
    alike = is_text, types.is_integer, types.is_decimal, types.is_duration
    return bool(stored != kind) and not any(one(stored) and one(kind) for one in alike)


def _binds(where: Any, schema: Any) -> bool:
    try:
        _bind(where, schema)
    except (KeyError, NotImplementedError, TypeError, ValueError):
        return False
    return True


def bind(where: Any, schema: Any) -> None:
    """Fails as a scan would, in words that tell what fails: columns, and the types of them."""
    try:
        _bind(where, schema)
    except (NotImplementedError, TypeError, ValueError) as error:
        if not type(error).__module__.startswith("pyarrow"):
            raise
        columns = [name for name in dict.fromkeys(schema.names) if is_named(where, schema, name)]
        if not columns:
            raise
        # In place of a type that stands in the way nulls do not.
        null = import_module("pyarrow").null()
        wrong = [name for name in columns if _binds(where, with_types(schema, {name: null}))]
        told = ", ".join(f'"{name}" as {schema.field(name).type}' for name in wrong or columns)
        runs = [name for name in wrong or columns if has_runs(schema.field(name).type)]
        way = "field.cast(type) and values of the column's type are taken"
        if runs:  # which pyarrow casts to nothing
            way = f"{decoded(runs[0], schema.field(runs[0]).type)} has values that are taken"
        raise TypeError(
            f"filter= has column {told}, which pyarrow does not take so: {error}; {way}, in "
            f"{text_of(where)}"
        ) from error


def of_values(error: Exception, where: Any, schema: Any) -> Exception:
    """A better error for what pyarrow tells of values only as it compares them: integers as a type
    that has not all of them, and times with a zone beside times without one.
    """
    if "with timezone to timestamp without" in str(error):
        return TypeError(
            "filter= compares times with a zone and times without one, in "
            f"{text_of(where)}: {error}; datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC) has a "
            "zone, and x.replace(tzinfo=None) of a datetime has none"
        )
    found = re.search(r"Integer value -?\d+ not in range: -?\d+ to \d+", str(error))
    if found is None:
        return error
    is_number = import_module("pyarrow").types.is_integer
    columns = [own for own in schema if is_number(own.type) and is_named(where, schema, own.name)]
    if not columns:
        return error
    told = ", ".join(f'"{own.name}" as {own.type}' for own in columns)
    return ValueError(
        f"filter= has column {told}, and pyarrow compares it as a type that has not all of its "
        f"values: {found[0]}; values of the column's type, as "
        f'pyarrow.scalar(1, "{columns[0].type}"), are compared as they are, in {text_of(where)}'
    )


def _apply(where: Any, schema: Any) -> None:
    """Raises pyarrow's own error for a filter that it cannot apply to these columns."""
    of = import_module("pyarrow.dataset").Scanner.from_batches
    of(iter(()), schema=schema, columns=[], filter=where)


def _unmatched(error: Exception) -> str | None:
    """The name in pyarrow's error that is not that of one column."""
    name = r"(?:Nested\(FieldRef\.)?Name\((.*?)\)(?: FieldRef.*)?"
    found = re.match(rf"(?:No|Multiple) match(?:es)? for FieldRef\.{name} in ", str(error))
    return None if found is None else found[1]


def _bind(where: Any, schema: Any) -> None:
    try:
        _apply(where, schema)
    except NotImplementedError as error:
        if "halffloat" not in str(error):
            raise
        raise TypeError(
            f"filter= has float16 in a struct, or as a value, which pyarrow does not compare: "
            f'field.cast("float32") and float(value) are compared, in {text_of(where)}'
        ) from error
    except ValueError as error:
        name = _unmatched(error)
        if name is None:
            raise
        count = schema.names.count(name)
        if count == 1:  # of a field within the column
            reference = str(error).partition(") in ")[0] + ")"
            try:
                path_of(".".join(re.findall(r"FieldRef\.Name\((.*?)\)", reference)), schema)
            except KeyError as lacking:
                raise KeyError(f"filter=: {lacking.args[0]}") from error
            raise
        several = f"{count} columns are called so: rename all but one"
        none = f"there is none among {schema.names}"
        so = several if count else none + _way_to_field(name, schema)
        raise KeyError(f'filter= names column "{name}", and {so}') from error


def _way_to_field(name: str, schema: Any) -> str:
    """How a filter names what columns= calls "m.s", a field in a struct."""
    try:
        _, path = path_of(name, schema)
    except KeyError:
        return ""
    names, level, rest = list[str](), schema, name
    for at in path:
        names.append(level.field(at).name)
        rest = rest.removeprefix(names[-1]).removeprefix(".")
        level = stored(level.field(at).type)
    names += filter(None, rest.split("."))  # where the names of columns alone are known
    return f": a field in a struct is pyarrow.compute.field{tuple(names)}"


def of_known(where: Any, schemas: Iterable[Any], unknown: Iterable[str]) -> Any:
    """The filter, None if it names columns of types that are not known: nulls in the schemas.

    A column that is in no schema is an error.
    """
    if where is None or isinstance(where, str):
        return where
    fields = {own.name: own for schema in schemas for own in schema}
    schema = seen_of(import_module("pyarrow").schema(list(fields.values())))
    if not any(is_named(where, schema, name) for name in unknown):
        return where
    # Nulls may be none of the types that it takes.
    with suppress(NotImplementedError, TypeError, ValueError):
        _bind(where, schema)
    return None


def check_names(where: Any, names: Sequence[str]) -> None:
    """An error for a filter of a column that is none of these, or two."""
    pa = import_module("pyarrow")
    schema = pa.schema([pa.field(name, pa.null()) for name in names])
    # Nulls may be none of the types that it takes.
    with suppress(NotImplementedError, TypeError, ValueError):
        if _is_expression(where):
            _bind(where, schema)


def check_kind(where: Any, schema: Any) -> None:
    """An error for an expression that is neither true nor false, or compares no values."""
    pa, plain = import_module("pyarrow"), seen_of(schema)
    bind(where, plain)
    make = import_module("pyarrow.dataset").dataset
    none = make(pa.Table.from_batches([], plain))
    kind = none.scanner(columns={"holds": where}).projected_schema.field("holds").type
    if not pa.types.is_boolean(kind):
        raise TypeError(f"filter must be true or false of each row, and {text_of(where)} is {kind}")
    if not any(pa.types.is_timestamp(kind) or kind.num_fields for kind in plain.types):
        return
    own = pa.schema([plain.field(name) for name in named(where, plain)])
    try:
        nulls = pa.Table.from_arrays([pa.nulls(1, kind) for kind in own.types], schema=own)
        make(nulls).scanner(columns=[], filter=where).to_table()
    except (NotImplementedError, TypeError, ValueError) as error:
        # It may take no nulls, and pyarrow makes none of some types.
        if (told := of_values(error, where, own)) is not error:
            raise told from error
