"""What a `Loader` and a `Mix` say of themselves: a line for each thing, and no data is read."""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import fields
from importlib import import_module
from typing import Any

from .. import _core
from .._arrow_types import has_offsets, is_list_view
from .columns import Categories, Wish
from .filters import text_of
from .options import LoaderOptions
from .readers import path_of
from .schema import features_of
from .source import rows_of_table

#: Columns and words that are shown.
_COLUMNS, _WORDS = 30, 3


def of_loader(
    source: Sequence[str], schema: Any, options: LoaderOptions, given: Sequence[str] | None = None
) -> str:
    """source: what is said of it.

    schema: that of the source, if it is known.
    given: the columns that the source gives where none are named, None for all.
    """
    shown = ", ".join(f"{name}={_shown_value(value)}" for name, value in _of_options(options))
    told = [f"source: {line}" if not at else line for at, line in enumerate(source)]
    told += [f"options: {shown}"] if shown else []
    return lines("Loader", [*told, *_of_columns(schema, options, given=given)])


def of_encoder(schema: Any, options: LoaderOptions) -> str:
    """schema: what has the columns, None of an encoder that knows none."""
    return lines("Encoder", lines_of_encoder(schema, options))


def lines_of_encoder(schema: Any, options: LoaderOptions, is_whole: bool = False) -> list[str]:
    """is_whole: of all columns, with all of their names and types, to be compared."""
    shown = ", ".join(f"{name}={_shown_value(value)}" for name, value in _of_options(options))
    if schema is not None:
        try:
            schema = import_module("pyarrow").schema(schema)
        except (ImportError, ValueError):  # without pyarrow, or of a type that it does not know
            schema = None
    told = [f"options: {shown}"] if shown else []
    return [*told, *_of_columns(schema, options, is_whole)]


def _of_options(options: LoaderOptions) -> Iterator[tuple[str, Any]]:
    for name, value in _said(options):
        if name not in ("columns", "label", "encoder"):
            yield name, text_of(value) if name == "filter" else value


def _said(thing: Any) -> Iterator[tuple[str, Any]]:
    """The arguments of a dataclass that differ from their defaults."""
    for field in fields(thing):
        value = getattr(thing, field.name)
        is_default = type(value) is type(field.default) and value == field.default
        if field.init and not is_default:
            # Each library's own word for it would be another one; Arrow's "float" is float32.
            yield field.name, _core._dtype_name(value) if field.name == "dtype" else value


def lines(name: str, shown: Sequence[str]) -> str:
    """Those of the repr of one of our classes."""
    return f"<arrow_dlpack.{name}" + "".join(f"\n  {line}" for line in shown) + ">"


def of_source(data: Any) -> str:
    """One that is no mix."""
    if isinstance(data, (str, os.PathLike)):
        return _cut(os.fspath(data))
    if isinstance(data, (list, tuple)) and data:
        more = f", and {len(data) - 1} more" if len(data) > 1 else ""
        return of_source(data[0]) + more
    kind = type(data)
    if hasattr(data, "__qualname__"):
        return f"{'function' if callable(data) else kind.__name__} {data.__qualname__}"
    rows = rows_of_table(data)
    name = f"{kind.__module__.partition('.')[0]}.{kind.__qualname__}"
    return name if rows is None else f"{name}, {rows} rows"


def of_columns(schema: Any) -> list[str]:
    """What a Loader without options makes of each column, if they are known."""
    return [] if schema is None else list(_of_columns(schema, LoaderOptions()))


def _of_columns(
    schema: Any,
    options: LoaderOptions,
    is_whole: bool = False,
    given: Sequence[str] | None = None,
) -> Iterator[str]:
    what, names = options.wanted, options.wanted.columns
    most = None if is_whole else _COLUMNS
    if names is None and given is not None:
        names = list(given)
    if names is None and schema is not None:
        names = [name for name in features_of(schema) if name not in what.labels]
    if names is None:
        yield "columns: all"
    for name in (names or ())[:most]:
        if name not in what.labels:
            yield f"{_cut(name, is_whole)}{_becomes(name, schema, options, is_whole)}"
    if most is not None and len(names or ()) > most:
        yield f"and {len(names or ()) - most} columns more"
    for name in what.labels:
        yield f"label {_cut(name, is_whole)}{_becomes(name, schema, options, is_whole)}"


def _becomes(name: str, schema: Any, options: LoaderOptions, is_whole: bool = False) -> str:
    """Its type, if that is known, and what it becomes, if that is something else."""
    wish = options.wanted.wishes.get(name)
    # What is read for an encoder has the types of its training.
    kind = _type_of(name, options.training) or _type_of(name, schema)
    of = "" if kind is None else f": {_cut(str(kind), is_whole)}"
    if wish is not None:
        return f"{of} -> {_of_wish(wish)}"
    if kind is None or _is_object(kind):
        return of
    if has_offsets(kind) or is_list_view(kind):
        return f"{of} -> Ragged"  # a matrix refuses such features
    if name in options.wanted.labels:
        return of
    made = _asked_dtype(kind, options)
    return of if made is None else f"{of} -> {made}"


def _asked_dtype(kind: Any, options: LoaderOptions) -> str | None:
    """That of the column's tensors by dtype=, or by nulls="nan" if it is another one."""
    if options.dtype is not None:
        return _dtype_of(kind, dtype=options.dtype, physical=options.physical)
    # A matrix has one dtype, which all of its columns decide.
    if options.nulls != "nan" or options.matrix:
        return None
    made = _dtype_of(kind, nulls="nan")
    return None if made == _dtype_of(kind) else made


def _type_of(name: str, schema: Any) -> Any:
    """None for a column that is not known."""
    if schema is None:
        return None
    try:
        return path_of(name, schema)[0].type
    except KeyError:
        return None


def _dtype_of(kind: Any, **how: Any) -> str | None:
    """That of its tensors; None for a type that has none."""
    try:
        return str(_core.to_tensor(import_module("pyarrow").chunked_array([], kind), **how).dtype)
    except (BufferError, TypeError, ValueError):
        return None


def _is_object(kind: Any) -> bool:
    """Whether it stands for Python's objects, which become no numbers."""
    pa = import_module("pyarrow")
    return isinstance(kind, pa.OpaqueType) and bool(pa.types.is_null(kind.storage_type))


def _of_wish(wish: Wish) -> str:
    """The call that makes it, without what is so by default."""
    told = []
    for name, value in _said(wish):
        shown = _words(value) if name == "words" else _shown_value(value)
        told.append(shown if name == fields(wish)[0].name else f"{name}={shown}")
    is_scan = isinstance(wish, Categories) and wish.words is None
    return f"{type(wish).__name__}{'.scan' * is_scan}({', '.join(told)})"


def _words(words: Sequence[Any]) -> str:
    shown = [_shown_value(word) for word in words[:_WORDS]]
    more = [f"... {len(words)} words"] if len(words) > _WORDS else []
    return f"[{', '.join(shown + more)}]"


def _shown_value(value: Any) -> str:
    if isinstance(value, str):
        return '"' + _cut(value) + '"'
    return _cut(getattr(value, "__name__", None) or repr(value))


def _cut(text: str, is_whole: bool = False) -> str:
    """In one line, of a width that one can read, without what a terminal would obey, or secrets."""
    text = " ".join(text.split()) if "\n" in text else text
    text = re.sub(r"(?<=://)[^/@]*@", "...@", text)
    text = "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)
    return text if is_whole or len(text) <= 80 else f"{text[:77]}..."
