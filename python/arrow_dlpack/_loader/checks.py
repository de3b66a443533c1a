"""What a `Loader` refuses when it is made, before its source is read."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import Any

from .. import _core
from . import filters as _filters
from .categories import check_words
from .columns import ByLength, ByTokens, Columns
from .empty import (
    emptied,
    emptied_files,
    schema_of,
    schemas_of,
    shown_schema_of,
    unknown_names,
)
from .epoch import check as check_epoch
from .functions import check_function, is_function
from .kinds import check, is_local, takes_texts
from .known import has_zone_of_session, names_of
from .mix import Mix, source_of
from .options import LoaderOptions
from .readers import heads, is_column
from .schema import Query, check_steps, features_of
from .source import Loop, Source


def check_source(data: Any, options: LoaderOptions) -> None:
    """Refuses what is no source, and filters that it does not take."""
    if isinstance(data, Loop):
        raise TypeError(
            "a Loader is no source of batches to make: loop over it, or pass its source"
        )
    if is_function(data):
        check_function(data)
    elif not isinstance(data, Mix):
        check(data, "a Loader")
    check_filter(data, options.filter)


def check_filter(data: Any, where: Any) -> None:
    """Refuses a filter that the source, or one of a Mix, does not take."""
    parts = [one for one, _ in data.sources] if isinstance(data, Mix) else [data]
    # What a function returns is checked when it is called.
    _filters.check(where, is_function(data) or all(map(takes_texts, parts)))


def check_columns(data: Any, options: LoaderOptions) -> Any:
    """Names, dtypes and wishes, as far as the source has a schema that costs nothing to ask.

    Returns the schema, None where it is not known. Of files of this machine the first footer is
    read, and of fragments all, which keep them; files of a network wait for the first epoch, which
    reads all of them side by side.
    """
    if is_function(data):
        return None
    try:
        return _checked(data, options)
    except KeyError as error:
        labels = () if options.training is None else options.wanted.labels
        if any(f'"{name}"' in str(error) for name in labels):
            error.add_note("label=[] leaves out the label of the encoder, of data that has none.")
        source = source_of(data)
        steps = source.steps()
        for name in options.query.columns or ():
            check_steps(name, "the source", steps)
        told = source.explained(error, options.query)
        if told is error:
            raise
        raise told from error


def _checked(data: Any, options: LoaderOptions) -> Any:
    query, parts = options.query, _listed(data)
    are_several = isinstance(parts, (list, tuple))
    is_alone = not are_several and options.training is None
    is_told = is_alone or not any(map(has_zone_of_session, parts if are_several else [parts]))
    empty = _emptied(data, query) if is_told else None
    if is_local(data):
        empty = _emptied_files(data, query)
    if empty is not None:
        return _check_epoch(data, empty, options)
    if names := names_of(data):
        _core._check_names(names, _read_of(names, query))
        _filters.check_names(query.where, names)
    known = list(map(names_of, parts)) if are_several else []
    if known and not is_told and all(known):
        names = list(dict.fromkeys(chain.from_iterable(own or () for own in known)))
        _core._check_names(names, _read_of(names, query))
    for names in (names or [] for names in known):
        # What a part lacks is for an epoch to say, which knows all of them.
        _core._check_names(names, [name for name in _read_of(names, query) if name in names])
    return None


def _emptied(data: Any, query: Query) -> Any:
    """`emptied`, of a Mix with each of its sources."""
    if not isinstance(data, Mix):
        return emptied(data)
    sources, ways = zip(*(_emptied_part(one, query) for one in _listed(data)), strict=True)
    return None if any(one is None for one in sources) else data.of(sources, ways)


def _listed(data: Any) -> Any:
    """The sources of a Mix; any other source as it is."""
    return [one for one, _ in data.sources] if isinstance(data, Mix) else data


def _emptied_part(data: Any, query: Query) -> tuple[Any, str | None]:
    """Of a Mix: `emptied`, and of this machine one file, or fragments, by the footers; how it gets
    another type.
    """
    if not is_local(data):
        empty = emptied(data)
        return empty, None if empty is None else source_of(data).way
    if (found := _headed(data)) is None:
        return None, None
    files, head = found
    files.check_texts(query)
    schemas, are_all = head or ([], False)
    return emptied_files(schemas) if are_all else None, files.way


def _headed(data: Any) -> tuple[Source, tuple[list[Any], bool] | None] | None:
    """The source of paths or fragments, and its head; None where a file is not there, or not
    written to its end: it may be where the Loader is handed to.
    """
    try:
        files = source_of(data)
    except FileNotFoundError:
        return None
    try:
        return files, files.head()
    except (OSError, ValueError):
        return None


def _read_of(names: Sequence[str], query: Query) -> list[str]:
    """The columns that are read of these."""
    return heads(names if query.columns is None else query.columns, lambda: names) or []


def _emptied_files(data: Any, query: Query) -> Any:
    """A source of no rows in place of one file, or of fragments; of several paths only the names
    are looked at.

    It looks for the files anew: there may be more when an epoch begins.
    """
    files, head = _headed(data) or (None, None)
    if files is None or head is None:
        return None
    schemas, are_all = head
    schema, names = schemas[0], schemas[0].names
    needed = [name for name in query.columns or () if not query.fills(name)]
    are_many = are_all and len(schemas) > 1
    files.check_texts(query)
    if are_many or not set(heads(needed, lambda: names) or ()) <= set(names):
        files.runs(query)  # has the error, for all files
    wanted = features_of(schema) if query.columns is None else query.columns
    read = heads(wanted, lambda: names) or ()
    _core._check_names(names, [name for name in read if name in names])
    return emptied_files(schemas) if are_all else None


def _check_epoch(data: Any, empty: Any, options: LoaderOptions) -> Any:
    """What an epoch of no rows refuses; returns the schema, None if it has types that are unknown.

    empty: a source like `data` without rows.
    """
    if is_column(empty):
        # Objects of pandas have the type of their values.
        with suppress(_core.UnsupportedError):
            check_epoch(source_of(empty), options.with_copy_for(options.framework))
        return None
    no_rows = _listed(empty)
    schema, are_named = schema_of(no_rows), options.columns is not None
    unknown = unknown_names(_listed(data), no_rows)
    if unknown:
        options = _of_known(schemas_of(no_rows), unknown, options)
    query = options.query
    is_one = not isinstance(data, (list, tuple, Mix))
    if is_one and query.where is not None and not isinstance(query.where, str):
        _filters.check_kind(query.where, schema)
    try:
        check_epoch(source_of(empty), options.with_copy_for(options.framework))
    except _core.UnsupportedError:
        # Without columns= every column is read: the loop refuses those without a form.
        if are_named:
            raise
        if options.wanted.labels:
            labels = replace(options, columns=[], format="dict")
            check_epoch(source_of(empty), labels.with_copy_for(options.framework))
    # Other sources have one `ColumnCoder`, which does it.
    schemas = [*schemas_of(no_rows), *(query.opened or ())] if isinstance(data, Mix) else []
    check_words(query.categories, schemas)
    return None if unknown else shown_schema_of(no_rows)


def _of_known(schemas: Sequence[Any], unknown: set[str], options: LoaderOptions) -> LoaderOptions:
    """The options without columns of unknown types.

    They are no matrix, whose dtype is that of all columns together.
    """
    names = list(dict.fromkeys(name for schema in schemas for name in schema.names))
    features, label, size = options.columns, options.label, options.batch_size
    if features is None:
        of_all = dict.fromkeys(name for schema in schemas for name in features_of(schema))
        features = [name for name in of_all if name not in options.wanted.labels]

    def is_known(name: str) -> bool:
        return not unknown & set(heads([name], lambda: names) or ())

    def known(some: Columns) -> Columns:
        kept = filter(is_known, some)
        return {name: some[name] for name in kept} if isinstance(some, Mapping) else list(kept)

    if isinstance(size, (ByLength, ByTokens)) and not is_known(size.column):
        size = 1
    return replace(
        options,
        columns=known(features),
        label=known([label] if isinstance(label, str) else label or []),
        batch_size=size,
        format="dict",
        encoder=None,  # whose training has the others too
        filter=_filters.of_known(options.filter, schemas, unknown),
    )
