"""`Categories`: values as codes, before the engine sees them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from importlib import import_module
from itertools import chain, count
from math import isinf, nan
from numbers import Integral
from typing import TYPE_CHECKING, Any
from uuid import UUID

from .. import _core
from .._arrow_types import is_binary, is_one_meaning, is_text
from .._frames import class_of
from .columns import Categories, canonical_word, fills_nulls, is_time_of_numpy
from .finite import has_infinite
from .merging import decoded_type, differing, is_one_encoding, merged, merged_of
from .readers import Made, cast, decoded, reader_of, without_view
from .schema import ALL, Query, check_coded, check_scanned, common, is_same, retyped, selected

if TYPE_CHECKING:
    from .source import Source

#: Rows of one call of pyarrow's, which Ctrl-C does not end: some milliseconds. A multiple of 8.
_ROWS = 1 << 16
_REFUSALS = (TypeError, ValueError, OverflowError, NotImplementedError)


def scanned(source: "Source", query: Query, is_opened_anew: bool = False) -> dict[str, Categories]:
    """The categories, with the words of those who have none, for which the source is read once."""
    categories = query.categories
    missing = [name for name, wish in categories.items() if wish.words is None]
    if not missing:
        return dict(categories)
    if source.once and not is_opened_anew:
        raise TypeError(
            "Categories without words reads the source before the first epoch, and this one can be "
            "read only once: pass the words, or, unless it is one of a Mix, a function of (index, "
            "count) that opens it"
        )
    source.check_whole()
    found = {name: _Distinct() for name in missing}
    #: The first part of each type that a column has.
    fields: dict[str, list[tuple[str, Any]]] = {name: [] for name in missing}
    wordless = {name: replace(categories[name], words=()) for name in missing}
    read = replace(query, columns=missing, wishes={**query.wishes, **wordless})
    for part, batch in _batches(source, read):
        for name in missing:
            if name not in batch.schema.names:
                continue
            own = batch.schema.field(name)
            if not any(is_one_meaning(own, known) for _, known in fields[name]):
                fields[name].append((part, own))
                check_coded(name, fields[name], query, source.way)
                check_scanned(name, fields[name], source.way)
            with _for_column(name, own.type):
                column = _column(batch, name)
                for values in _parts(column, _ROWS):
                    found[name].add(values, is_uuid(column.type))
    words = {}
    for name in missing:
        try:
            own = found[name].words()
        except (OverflowError, ValueError) as error:
            raise ValueError(
                f'column "{name}" has values that Python has no type for ({error}): words can be '
                "made of its cast to integers"
            ) from error
        except TypeError as error:
            one_of_each = {type(word): word for word in found[name].distinct()}
            own_fields, ways = [own for _, own in fields[name]], []
            # A word that is a text would stand for a binary too.
            if not {str, bytes} <= one_of_each.keys():
                shown = ", ".join(f"{word!r}, ..." for word in one_of_each.values())
                ways.append(f"Categories([{shown}]) says their order")
            one, other = (own_fields[at].type for at in differing(own_fields))
            if (told := retyped(name, one, other, source.way)) is not None:
                ways.append(told)
            raise TypeError(
                f'column "{name}" has values of types that have no order in different parts of the '
                f"source ({error}): {', or '.join(ways)}"
            ) from error
        words[name] = replace(categories[name], words=own)
    return {**categories, **words}


def _batches(source: "Source", query: Query) -> Iterator[tuple[str, Any]]:
    """Of all parts of the source, each with its own types, and with the name of the part."""
    with source.explaining(query):
        runs = source.runs(query)
        if len(runs) > 1 and all(run.part.schema is not None for run in runs):
            common([run.part for run in runs], query, source.way)  # refuses what a part lacks
        for run in runs:
            for batch in reader_of(run.open()):
                known = batch.schema.names
                # Parts of a source may lack a column whose wish says what becomes of nulls.
                for name in query.columns or ():
                    if name not in known and not query.fills(name):
                        raise KeyError(f'no column "{name}" in {run.part.name}, which has {known}')
                yield run.part.name, batch


class _Distinct:
    """The distinct values of a column that is read part by part."""

    def __init__(self) -> None:
        #: By type, since parts of a source may have several.
        self._parts: dict[Any, list[Any]] = {}
        self._known = self._rows = 0
        self._are_uuids = False

    def add(self, values: Any, are_uuids: bool) -> None:
        """Memory and time go by the distinct ones: they are put together when they have doubled."""
        self._are_uuids |= are_uuids
        distinct = values.unique()
        self._parts.setdefault(values.type, []).append(distinct)
        self._rows += len(distinct)
        if self._rows > 2 * max(self._known, _ROWS):
            concat = import_module("pyarrow").concat_arrays
            self._parts = {kind: [concat(own).unique()] for kind, own in self._parts.items()}
            self._known = self._rows = sum(len(own) for (own,) in self._parts.values())

    def distinct(self) -> set[Any]:
        parts = chain.from_iterable(self._parts.values())
        found = {canonical_word(word) for part in parts for word in _as_python(part)}
        return {self._word(word) for word in found if word is not None}

    def _word(self, word: Any) -> Any:
        is_uuid = self._are_uuids and isinstance(word, bytes) and len(word) == 16
        return UUID(bytes=word) if is_uuid else word

    def words(self) -> list[Any]:
        """In their order; NaN is the last one, as NumPy has it."""
        words = self.distinct()
        return sorted(words - {nan}) + [nan] * len(words & {nan})


def _as_python(values: Any) -> list[Any]:
    """Python's values, of which pyarrow makes others without a word: Python's times have neither
    nanoseconds nor the hour 24, which DuckDB has, and its dates no hours.
    """
    pa, kind = import_module("pyarrow"), values.type
    if kind == pa.time64("ns"):
        values, kind = values.cast(pa.time64("us")), pa.time64("us")
    made: list[Any] = values.to_pylist()
    if pa.types.is_time(kind) or pa.types.is_date64(kind):
        for own, other in zip(values, pa.array(made, kind), strict=True):
            if own != other:
                raise ValueError(f"{own.value} as {kind}")
    return made


def check_words(categories: Mapping[str, Categories], schemas: Sequence[Any]) -> None:
    """Refuses a word that no source with these schemas can hold."""
    for name, wish in categories.items():
        fields = [own for schema in schemas for own in selected(schema, [name])]
        kinds = _distinct_types(own.type for own in fields if not _is_of_nulls(own.type))
        if kinds:
            _check_held(name, wish, [(kind, _held(name, wish, kind)[1]) for kind in kinds])


def _check_held(name: str, wish: Categories, lost: Sequence[tuple[Any, Sequence[Any]]]) -> None:
    """Refuses a word that none of the types of a column can hold.

    lost: each type, which may have no hash, and the words that it cannot hold.
    """
    pa, words = import_module("pyarrow"), wish.words or ()
    none = set.intersection(*(set(own) for _, own in lost))
    has_widths = any(pa.types.is_fixed_size_binary(_plain_type(kind)) for kind, _ in lost)
    if has_widths and len(none) < len(words):
        # A binary of another width is a word that does not occur.
        none = {word for word in none if not _fits(word, pa.large_binary())}
    if none:
        raise _no_word(name, lost[0][0], words, next(word for word in words if word in none))


def encoded(stream: Any, categories: Mapping[str, Categories], query: Query = ALL) -> Any:
    """The stream with codes in place of these columns."""
    if not categories:
        return stream
    reader = reader_of(stream)
    coder = ColumnCoder(categories, [reader.schema], query)
    return Made(coder.schema(reader.schema), map(coder.batch, reader))


class ColumnCoder:
    """Codes in place of columns, whose types may differ from batch to batch."""

    def __init__(
        self, categories: Mapping[str, Categories], schemas: Sequence[Any], query: Query = ALL
    ) -> None:
        """schemas: those of all batches; a word that none of the types can hold is refused. Batches
        of a type that can hold no word have nulls alone there, or are refused by their values.

        query: that of a part says so, since other sources may have batches that hold the word. The
        types of all sources of a Mix are known at the first batch.
        """
        self._categories = categories
        #: By column, and the type that its values have as `_comparable` has them.
        self._coders: dict[tuple[str, Any], Coder] = {}
        #: The type of each column's values, None where parts have none in common.
        self._merged: dict[str, Any] = {}
        self._is_part, self._schemas = query.is_part and query.opened is None, schemas
        self._query = query
        if query.opened is None:
            for name in categories:
                self._decide(name)
        else:
            # A source that begins again has the same ones.
            for schema in schemas:
                if not any(is_same(schema, known) for known in query.opened):
                    query.opened.append(schema)
            self._schemas = query.opened

    def _decide(self, name: str) -> None:
        """The types of a column, and what its words are in each."""
        wish, is_part, schemas = self._categories[name], self._is_part, self._schemas
        self._merged[name] = None
        having = [schema for schema in schemas if name in schema.names]
        if not having and fills_nulls(wish):
            return
        fields = [_field(of, name) for of in having or schemas[:1]]
        kinds = _distinct_types(own.type for own in fields)
        if (whole := merged_of(fields)[0]) is not None:
            self._merged[name], kinds = whole, [whole]
        else:
            parts = ("another part" if at else "one part" for at in count())
            check_coded(name, list(zip(parts, fields, strict=False)), self._query)
        held = [(kind, _held(name, wish, kind)) for kind in kinds]
        lost = [(kind, none) for kind, (_, none) in held if not _is_of_nulls(kind)]
        if lost and not is_part:
            _check_held(name, wish, lost)
        for kind, own in held:
            self._coders[name, _plain_type(kind)] = Coder(name, wish, kind, own)

    def schema(self, schema: Any) -> Any:
        """The schema of batches of this one."""
        pa = import_module("pyarrow")
        for name, wish in self._categories.items():
            at = schema.get_field_index(name)
            if at >= 0:
                schema = schema.set(at, pa.field(name, pa.type_for_alias(wish.dtype), True))
        return schema

    def batch(self, batch: Any) -> Any:
        """The batch with codes; a column that it lacks is left out."""
        columns = batch.columns
        if not columns:
            return batch  # one that is made of no columns has no rows
        for name, wish in self._categories.items():
            at = batch.schema.get_field_index(name)
            if at >= 0:
                if name not in self._merged:
                    self._decide(name)
                kind = columns[at].type
                whole = self._merged[name] or kind
                if kind != whole and not is_one_encoding(kind, whole):
                    columns[at], kind = cast(columns[at], whole), whole
                of = name, _plain_type(kind)
                # A filter makes other texts of views.
                if of not in self._coders:
                    self._coders[of] = Coder(name, wish, kind, _held(name, wish, kind))
                columns[at] = self._coders[of].codes(columns[at])
        return import_module("pyarrow").record_batch(columns, schema=self.schema(batch.schema))


class Coder:
    """The codes of one column, by the words that a value may be."""

    def __init__(
        self, name: str, wish: Categories, kind: Any, held: tuple[Any, Sequence[Any]]
    ) -> None:
        """held: what `_held` tells of the words; those that the type cannot hold may be of another
        part.
        """
        pa = import_module("pyarrow")
        self._name, self._kind, self._type = name, kind, pa.type_for_alias(wish.dtype)
        words, (known, lost) = tuple(wish.words or ()), held
        self._words = words
        own = kind.value_type if pa.types.is_dictionary(kind) else kind
        #: The words that a value may be, in its type, by their codes.
        self.known = known.cast(own) if pa.types.is_decimal(own) else known
        #: Whether the type can hold none of them: any value is refused, unknown ones too.
        self._has_none = bool(words) and not len(known)
        if lost:
            at, none = iter(range(len(words))), set(lost)
            places = [None if word in none else next(at) for word in words]
            self.known = self.known.take(pa.array(places, pa.int64()))
        with _for_column(name, kind):
            made = _core._categories(self.known, unknown=wish.unknown)
        if isinstance(made, tuple):
            first, second = made
            raise ValueError(
                f'column "{name}" is {kind}, in which the words {words[first]!r} and '
                f"{words[second]!r} of its Categories are one value{_way_to_hold(kind, words)}"
            )
        self.categories = made

    def codes(self, column: Any) -> Any:
        """An array of them, null where the column is."""
        if self._has_none:
            values = _comparable(column).drop_null()
            if len(values):
                words = self._words
                raise _no_word(self._name, self._kind, words, words[0], values[0].as_py())
        codes = self.categories.codes(column, self._name)
        return import_module("pyarrow").array(codes).cast(self._type)


def _parts(column: Any, rows: int) -> Iterator[Any]:
    """The values of some rows after the others; of a dictionary each that they have once."""
    is_dictionary = import_module("pyarrow").types.is_dictionary(column.type)
    words = _comparable(column.dictionary) if is_dictionary else None
    for start in range(0, len(column), rows):
        part = column.slice(start, rows)
        yield _comparable(part) if words is None else words.take(part.indices.unique())


@contextmanager
def _for_column(name: str, kind: Any) -> Iterator[None]:
    """Tells which column has values that are no words."""
    try:
        yield
    except (NotImplementedError, _core.UnsupportedError) as error:
        raise _no_words(name, kind) from error
    except IndexError as error:
        raise IndexError(
            f'column "{name}" is {kind}, with a code that has no value: {error}'
        ) from error


def _no_words(name: str, kind: Any) -> TypeError:
    """The error for a column whose values are no words."""
    way = "AsArrow() has its rows as they are (not in a matrix)"
    if import_module("pyarrow").types.is_run_end_encoded(kind) and not kind.value_type.num_fields:
        way = f"{decoded(name, kind)} has values that it takes"
    elif getattr(decoded_type(kind), "extension_name", None) == "pandas.interval":
        way = f'frame.astype({{"{name}": str}}) has texts of them'
    return TypeError(
        f'column "{name}" is {kind}, and Categories takes texts, binaries, numbers, booleans, '
        f"decimals, dates, times, UUIDs, and dictionaries of them: {way}"
    )


def _held(name: str, wish: Categories, kind: Any) -> tuple[Any, list[Any]]:
    """The words that the column's type can hold, as its values, and those that it cannot."""
    pa, words = import_module("pyarrow"), wish.words or ()
    # pyarrow makes not even an empty array of a union.
    with _for_column(name, kind):
        plain = _plain_type(kind)
        if isinstance(plain, pa.BaseExtensionType):
            raise _no_words(name, kind)
        kind = plain
        held, lost = [pa.array([], kind)], []
    for start in range(0, len(words), _ROWS):
        some = words[start : start + _ROWS]
        try:
            values = _array(some, kind)
            is_held = _changed(some, values) is None
        except _REFUSALS:
            is_held = False
        if not is_held:
            fits = [_fits(word, kind) for word in some]
            lost += [word for word, has in zip(some, fits, strict=True) if not has]
            values = _array([word for word, has in zip(some, fits, strict=True) if has], kind)
        held.append(values)
    return pa.concat_arrays(held), lost


def _array(words: Sequence[Any], kind: Any) -> Any:
    return import_module("pyarrow").array([_of_kind(word, kind) for word in words], kind)


def _no_word(name: str, kind: Any, words: Sequence[Any], word: Any, value: Any = None) -> Exception:
    types = import_module("pyarrow").types
    if types.is_nested(kind) or types.is_interval(kind) or types.is_run_end_encoded(kind):
        return _no_words(name, kind)
    more, way = "" if value is None else f", in a part with the value {value!r}", None
    if types.is_timestamp(kind) and (isinstance(word, datetime) or is_time_of_numpy(word)):
        has_zone = getattr(word, "tzinfo", None) is not None
        if kind.tz is not None and not has_zone:
            way = ": its words have a zone, as datetime(2026, 1, 31, tzinfo=UTC)"
        elif kind.tz is None and has_zone:
            way = ": its words have no zone, as datetime(2026, 1, 31)"
    more += way or _way_to_hold(kind, words)
    return ValueError(
        f'column "{name}" is {kind}, which cannot hold the word {word!r} of its Categories{more}'
    )


def _way_to_hold(kind: Any, words: Sequence[Any]) -> str:
    """What gives a column the type of its words, for the end of an error, if no value changes."""
    whole = _type_of_words(words)
    # What the law of merging makes of both has each value of the column.
    if whole is not None and merged(_plain_type(kind), whole) == whole and _fit(words, whole):
        return f": cast the column to {whole}, which can hold all of them"
    return ": give it words of that type, or read the column in the type of its words"


def _type_of_words(words: Sequence[Any]) -> Any:
    """That of pyarrow's which they have together, None if there is none."""
    pa = import_module("pyarrow")
    with suppress(*_REFUSALS):
        _core._check_objects(list(words), nan_is_null=False)
        return pa.array(list(words)).type
    return None


def _of_kind(word: Any, kind: Any) -> Any:
    """The word as pyarrow takes it for this type: it makes no decimals of floats, nor back, and
    takes NumPy's times in the unit of the type alone.
    """
    types = import_module("pyarrow").types
    if isinstance(word, UUID):
        if is_text(kind):
            raise TypeError("pyarrow takes its bytes for a text")
        return word.bytes
    if is_time_of_numpy(word):
        return _in_unit(word, kind)
    if isinstance(word, (bool, class_of("numpy", "bool_"))) and not types.is_boolean(kind):
        raise TypeError("pyarrow takes True for 1 where the type is a float")
    if isinstance(word, (float, class_of("numpy", "floating"))) and types.is_decimal(kind):
        return Decimal(float(word))
    if isinstance(word, Integral) and types.is_decimal(kind):
        return int(word)  # pyarrow makes no decimals of NumPy's
    if isinstance(word, class_of("numpy", "floating")) and float(word) == word:
        word = float(word)  # pyarrow takes NumPy's of some widths alone
    if isinstance(word, (Decimal, Integral)) and types.is_floating(kind):
        if isinstance(word, Integral):
            word = int(word)  # NumPy compares its own with floats as floats
        # pyarrow takes no integers above 2**53, of which some are floats, and rounds to float16.
        number = float(import_module("pyarrow").scalar(float(word), kind).as_py())
        if number == word:
            return number
        if isinstance(word, int):
            raise ValueError(f"no {kind} is equal to {word}")
    return word


def _in_unit(word: Any, kind: Any) -> Any:
    """A time of NumPy's in the unit of this type, in which it is the same time.

    An error for a type of other values: pyarrow would take nanoseconds for integers.
    """
    types = import_module("pyarrow").types
    if types.is_duration(kind):
        dtype = f"m8[{kind.unit}]"
    elif types.is_timestamp(kind) and kind.tz is None:
        dtype = f"M8[{kind.unit}]"
    elif types.is_date(kind):
        dtype = "M8[D]"
    else:
        raise TypeError(f"NumPy's times are no values of {kind}")
    # By this rule months are no days, and a number without a unit is no time.
    own = word.astype(dtype, casting="same_kind")
    # NumPy compares in the finer unit, in which both might overflow.
    if own.astype(word.dtype, casting="same_kind") != word:
        raise ValueError(f"the word is no whole number of {dtype}")
    # Beyond the years that Python has, the item is a number, which a date of 64 bits has in ms.
    if types.is_date(kind) and isinstance(own := own.item(), int):
        raise OverflowError(f"Python has no date {word}")
    return own


def _fits(word: Any, kind: Any) -> bool:
    return _fit([word], kind)


def _fit(words: Sequence[Any], kind: Any) -> bool:
    try:
        return _changed(words, _array(words, kind)) is None
    except _REFUSALS:
        return False


def _changed(words: Sequence[Any], held: Any) -> tuple[Any, Any] | None:
    """The first word of which the column would hold another value; floats are rounded."""
    types, kind = import_module("pyarrow").types, held.type
    if types.is_floating(kind):
        pairs = zip(words, held.to_pylist(), strict=True) if has_infinite(held) else iter(())
        return next((pair for pair in pairs if isinf(pair[1] or 0) and not isinf(pair[0])), None)
    if _is_bytes(kind) and held.null_count == 0:
        return None
    try:
        pairs = zip(words, map(canonical_word, held.to_pylist()), strict=True)
        # `_in_unit` has compared NumPy's times, which equal Python's in some units alone.
        others = (pair for pair in pairs if not is_time_of_numpy(pair[0]))
        return next((pair for pair in others if pair[1] is None or pair[0] != pair[1]), None)
    except ValueError:  # nanoseconds, for which Python has no type
        return None


def _is_bytes(kind: Any) -> bool:
    """Whether its values are texts or binaries, those of one length too."""
    is_fixed = import_module("pyarrow").types.is_fixed_size_binary
    return is_text(kind) or is_binary(kind) or bool(is_fixed(kind))


def coder_of(name: str, wish: Categories, kind: Any) -> Coder:
    """Of a column of one type, which has to hold the words."""
    held = _held(name, wish, kind)
    if not _is_of_nulls(kind):
        _check_held(name, wish, [(kind, held[1])])
    return Coder(name, wish, kind, held)


def _field(schema: Any, name: str) -> Any:
    if schema.names.count(name) != 1:
        count = schema.names.count(name)
        none = f'no column "{name}" in {schema.names}'
        several = f'{count} columns are called "{name}": rename all but one'
        raise KeyError(several if count else none)
    return schema.field(name)


def _column(batch: Any, name: str) -> Any:
    return batch.column(batch.schema.get_field_index(_field(batch.schema, name).name))


def _distinct_types(kinds: Iterable[Any]) -> list[Any]:
    """In their order. Not all extension types can be hashed."""
    found: list[Any] = []
    for kind in kinds:
        if kind not in found:
            found.append(kind)
    return found


def is_uuid(kind: Any) -> bool:
    return isinstance(kind, import_module("pyarrow").UuidType)


def _is_stored(kind: Any) -> bool:
    """Whether it is an extension type, and its values are those of its storage: not numbers of
    another library's.
    """
    pa = import_module("pyarrow")
    if isinstance(kind, pa.OpaqueType):
        return _is_bytes(_plain_type(kind.storage_type))
    return isinstance(kind, pa.BaseExtensionType)


def _is_of_nulls(kind: Any) -> bool:
    """Whether it has no values, and so holds no word; dictionaries of none too."""
    return bool(import_module("pyarrow").types.is_null(_plain_type(kind)))


def _plain_type(kind: Any) -> Any:
    """What a dictionary is of, or an extension type, and texts and decimals whose kernels pyarrow
    has.
    """
    pa = import_module("pyarrow")
    types = pa.types
    if isinstance(kind, pa.Bool8Type):
        return pa.bool_()
    if _is_stored(kind):
        return _plain_type(kind.storage_type)
    if types.is_dictionary(kind):
        return _plain_type(kind.value_type)
    if types.is_decimal(kind) and kind.bit_width < 128:
        return pa.decimal128(kind.precision, kind.scale)
    return without_view(kind)


def _comparable(column: Any) -> Any:
    """Values that equal each other where Python's do: one zero, and one NaN."""
    pa, compute = import_module("pyarrow"), import_module("pyarrow.compute")
    if isinstance(column.type, pa.Bool8Type):
        return compute.not_equal(column.storage, 0)  # any other number is true
    column = column.storage if _is_stored(column.type) else column
    if pa.types.is_dictionary(column.type):
        # pyarrow has no kernel that takes views.
        words = _comparable(column.dictionary)
        column = pa.DictionaryArray.from_arrays(column.indices, words).dictionary_decode()
    column = column.cast(_plain_type(column.type))
    if not pa.types.is_floating(column.type):
        return column
    column = column.cast(pa.float32()) if pa.types.is_float16(column.type) else column
    return compute.if_else(compute.is_nan(column), nan, compute.add(column, 0.0)).cast(column.type)
