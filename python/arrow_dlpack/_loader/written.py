"""An `Encoder` as JSON: what each column becomes, the words, and the schema of training.

The schema is written as the members of ArrowSchema, of Arrow's C data interface. A word is a text,
a number or a boolean of JSON, or an object that says what else it is: {"date": "2020-01-01"}.
"""

import base64
import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from importlib import import_module
from typing import Any, NoReturn
from uuid import UUID

from .. import _core
from .columns import AsArrow, Cast, Categories, Dense, Pad, Wish, is_time_of_numpy
from .options import LoaderOptions

#: The key that says what the text is, and the version of what follows.
_NAME, _VERSION = "arrow_dlpack.Encoder", 1
_WISHES: dict[str, type[Wish]] = {
    wish.__name__: wish for wish in (Pad, Dense, AsArrow, Cast, Categories)
}
#: Keywords that are written as they are.
_PLAIN = ("format", "framework", "writable", "physical", "copy")


def written(options: LoaderOptions, schema: _core.Field) -> str:
    """The text of an encoder with this schema."""
    framework = options.framework
    if framework is not None and not isinstance(framework, str):
        name = getattr(framework, "__qualname__", repr(framework))
        raise TypeError(
            f"the framework is the function {name}, which no text has: to_json(framework=None) "
            "leaves it out, and from_json(text, framework=...) takes it again"
        )
    what, members = options.wanted, _core._members(schema)
    names = [str(child["name"]) for child in members.get("children", [])]
    features = names[: len(names) - len(what.labels)]
    whole = {
        _NAME: _VERSION,
        "schema": members,
        "columns": [_column(name, what.wishes.get(name)) for name in features],
        "labels": [_column(name, what.wishes.get(name)) for name in what.labels],
        "dtype": _dtype(options.dtype),
        "nulls": _to_json(options.nulls),
        **{name: _to_json(getattr(options, name)) for name in _PLAIN},
    }
    return json.dumps(whole, allow_nan=False, sort_keys=True, ensure_ascii=False)


def read(text: str | bytes) -> tuple[LoaderOptions, _core.Field]:
    """The options and the schema of `written`; an error for any other text."""
    try:
        return _read(text)
    except RecursionError:
        raise ValueError("the text is nested too deep for an Encoder") from None


def _read(text: Any) -> tuple[LoaderOptions, _core.Field]:
    if not isinstance(text, (str, bytes, bytearray)):
        ways = (
            (isinstance(text, dict), "json.dumps(x)"),
            (isinstance(text, os.PathLike), "pathlib.Path(x).read_text()"),
            (hasattr(text, "read"), "x.read()"),
        )
        way = next((f": its text is {way}" for is_it, way in ways if is_it), "")
        raise TypeError(f"from_json takes the text of to_json(), got {type(text).__name__}{way}")
    try:
        whole = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_members)
    except ValueError as error:
        is_path = isinstance(text, str) and len(text) < 1000 and os.path.isfile(text)
        way = "; pathlib.Path(x).read_text() is the text of that file" if is_path else ""
        raise ValueError(f"the text is no Encoder in JSON: {error}{way}") from None
    if not isinstance(whole, dict) or _NAME not in whole:
        raise ValueError(f'the text is no Encoder: it has no "{_NAME}"')
    if whole[_NAME] != _VERSION or isinstance(whole[_NAME], bool):
        raise ValueError(
            f"the Encoder was written as version {whole[_NAME]!r}, and this package reads "
            f"{_VERSION}: a newer one may read it"
        )
    known = {_NAME, "schema", "columns", "labels", "dtype", "nulls", *_PLAIN}
    if wrong := set(whole) ^ known:
        raise ValueError(f"the Encoder has other members than it should: {sorted(wrong)}")
    framework = whole["framework"]
    if framework is not None and not isinstance(framework, str):
        raise TypeError(f"framework must be a name, got {framework!r}")
    try:
        options = LoaderOptions(
            columns=_columns(whole["columns"]),
            label=_columns(whole["labels"]) or None,
            dtype=whole["dtype"],
            nulls=_of_json(whole["nulls"]),
            **{name: whole[name] for name in _PLAIN},
        )
    except (AttributeError, KeyError, OverflowError) as error:
        raise ValueError(f"the Encoder has other members than it should: {error}") from error
    return options, _core._schema_of(whole["schema"])


def _column(name: str, wish: Wish | None) -> dict[str, Any]:
    if wish is None:
        return {"name": name}
    own = {field.name: getattr(wish, field.name) for field in fields(wish)}
    if "dtype" in own:
        own["dtype"] = _dtype(own["dtype"])
    if isinstance(wish, Categories):
        own["words"] = list(wish.words or ())
    return {"name": name, "becomes": type(wish).__name__, "with": _to_json(own)}


def _columns(columns: Any) -> dict[str, Wish | None]:
    """By their names, in their order."""
    if not isinstance(columns, list):
        raise TypeError(f"an Encoder has lists of columns, got {columns!r:.80}")
    made: dict[str, Wish | None] = {}
    for column in columns:
        name, wish = _wish(column)
        if name in made:
            raise ValueError(f'an Encoder has each column once, and "{name}" is there twice')
        made[name] = wish
    return made


def _wish(column: Any) -> tuple[str, Wish | None]:
    if not isinstance(column, dict) or not isinstance(column.get("name"), str):
        raise TypeError(f"a column of an Encoder has a name, got {column!r:.80}")
    name = column["name"]
    if "becomes" not in column:
        return name, None
    kind = _WISHES.get(column["becomes"]) if isinstance(column["becomes"], str) else None
    if kind is None:
        raise ValueError(f'column "{name}" becomes {column["becomes"]!r:.80}, which is unknown')
    own = column.get("with")
    if not isinstance(own, dict) or set(own) != {field.name for field in fields(kind)}:
        raise ValueError(f'column "{name}" has other members than {kind.__name__} has')
    if kind is Categories and not isinstance(own["words"], list):
        raise TypeError(f'column "{name}" of Categories has no list of words')
    try:
        return name, kind(**{member: _of_json(value) for member, value in own.items()})
    except TypeError as error:
        raise TypeError(f'column "{name}": {error}') from error
    except (ValueError, OverflowError) as error:
        raise ValueError(f'column "{name}": {error}') from error


def _dtype(dtype: Any) -> str | None:
    return None if dtype is None else _core._dtype_name(dtype)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("an object has a member twice")
    return members


def _to_json(value: Any) -> Any:
    """A value as JSON, exactly: of Python's own types, pandas' times, and numbers that other
    libraries have.
    """
    if isinstance(value, dict):
        return {name: _to_json(own) for name, own in value.items()}
    if isinstance(value, (list, tuple)):
        return [_to_json(own) for own in value]
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": str(value)}
    for kind, (name, to_json, _) in _KINDS.items():
        if isinstance(value, kind):
            return {name: to_json(value)}
    own = value.item() if hasattr(value, "item") else value
    if is_time_of_numpy(value) and isinstance(own, int):  # nanoseconds, which pandas has
        pandas = import_module("pandas")
        own = (pandas.Timedelta if value.dtype.kind == "m" else pandas.Timestamp)(value)
    if type(own) is not type(value):
        return _to_json(own)
    raise TypeError(f"{value!r} has no form in JSON")


def _of_json(value: Any) -> Any:
    """The value of `_to_json`."""
    if isinstance(value, list):
        return [_of_json(own) for own in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((name, own),) = value.items()
        if name == "float" and own in ("nan", "inf", "-inf"):
            return float(own)
        for known, _, of_json in _KINDS.values():
            if known == name:
                try:
                    return of_json(own)
                except (ArithmeticError, AttributeError) as error:
                    raise ValueError(f"{own!r:.80} is no {name}") from error
    raise ValueError(f"{value!r:.80} is no value of an Encoder")


def _time_to_json(value: Any) -> Any:
    # pandas' have nanoseconds.
    nanoseconds = getattr(value, "nanosecond", 0)
    plain = value.to_pydatetime(warn=False) if hasattr(value, "to_pydatetime") else value
    return [plain.isoformat(), nanoseconds]


def _time_of_json(own: Any) -> Any:
    text, nanoseconds = own
    value = datetime.fromisoformat(text)
    if not nanoseconds:
        return value
    pandas = import_module("pandas")
    return pandas.Timestamp(value) + pandas.Timedelta(nanoseconds=nanoseconds)


def _span_to_json(value: Any) -> list[int]:
    return [value.days, value.seconds, value.microseconds, getattr(value, "nanoseconds", 0)]


def _span_of_json(own: Any) -> Any:
    days, seconds, microseconds, nanoseconds = own
    value = timedelta(days=days, seconds=seconds, microseconds=microseconds)
    if not nanoseconds:
        return value
    pandas = import_module("pandas")
    return pandas.Timedelta(value) + pandas.Timedelta(nanoseconds=nanoseconds)


def _bytes_of_json(own: Any) -> bytes:
    return base64.b64decode(own, validate=True)


#: What JSON has no form for, datetime before date, of which it is one.
_KINDS: Mapping[type, tuple[str, Callable[[Any], Any], Callable[[Any], Any]]] = {
    bytes: ("bytes", lambda value: base64.b64encode(value).decode(), _bytes_of_json),
    Decimal: ("decimal", str, Decimal),
    datetime: ("datetime", _time_to_json, _time_of_json),
    date: ("date", date.isoformat, date.fromisoformat),
    time: ("time", time.isoformat, time.fromisoformat),
    timedelta: ("timedelta", _span_to_json, _span_of_json),
    UUID: ("uuid", str, UUID),
}
