"""One schema for all parts of a source: what a column is where parts differ, and parts cast to it.

A part is a file, a table of a list, or a source of a `Mix`. Columns for which `merging` has no one
type are an error that names part and column, unless the wish of the column settles what it becomes.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from types import MappingProxyType
from typing import Any, NamedTuple

from .. import _core
from .._arrow_types import (
    extensions_of,
    has_offsets,
    is_binary,
    is_list,
    is_list_view,
    is_one_meaning,
    is_one_schema,
    is_text,
    items_of,
    meaning_of,
    name_of,
    with_inner,
)
from ..typing import Dtype
from .columns import AsArrow, Cast, Categories, Dense, Pad, Wish, fills_nulls
from .merging import (
    alike,
    are_codes,
    decoded_type,
    differing,
    first_of,
    has_numbers,
    is_a,
    is_bool,
    is_number,
    is_one_encoding,
    is_tensor,
    merged,
    merged_of,
    of_numbers,
    type_of_all,
)
from .readers import (
    NoStructError,
    cast,
    decoded,
    for_rows,
    has_list_views,
    has_nulls,
    has_runs,
    heads,
    made_anew,
    path_of,
    reader_of,
    stored,
)


@dataclass(frozen=True)
class Query:
    """What is read of a source, and what decides the type of each column."""

    #: Names and paths of columns, None for all.
    columns: Sequence[str] | None = None
    #: A filter of pyarrow's.
    where: Any = None
    #: Columns among them that are read for a filter alone, which need no type of all parts.
    beside: Collection[str] = ()
    wishes: Mapping[str, Wish] = field(default_factory=dict)
    #: Of all features but those whose wish says another one.
    dtype: Dtype | None = None
    labels: Sequence[str] = ()
    #: None for all columns but labels.
    features: Sequence[str] | None = None
    #: Whether other sources have rows too, whose columns may hold words that this one cannot.
    is_part: bool = False
    #: The schemas of an encoder's training and of the sources of a Mix: each that is read adds its
    #: own as it is opened.
    opened: list[Any] | None = None
    #: Whether batches have the numbers by which Arrow stores values, such as those of times.
    physical: bool = False
    #: Columns that are texts in other sources of a Mix, for files that tell no type of them.
    texts: Collection[str] = ()
    #: Whether only types are asked for, those of an encoder's requests.
    is_of_requests: bool = False
    #: Whether the features are one tensor, which no wish of a column changes.
    is_matrix: bool = False

    def dtype_of(self, name: str) -> Any:
        """The Arrow type that the column's numbers become, None if they stay what they are."""
        number = self.number_of(name)
        return None if number is None else _number_type(number)

    def number_of(self, name: str) -> str | None:
        """The name of the dtype that the column's numbers become, None if they stay."""
        wish = self.wishes.get(name)
        if isinstance(wish, (AsArrow, Categories)):
            return None
        own = wish.dtype if isinstance(wish, (Cast, Pad, Dense)) else None
        is_feature = name not in self.labels and (self.features is None or name in self.features)
        dtype = self.dtype if own is None and is_feature else own
        return None if dtype is None else _core._dtype_name(dtype)

    def fills(self, name: str) -> bool:
        """Whether the column's own wish says what becomes of nulls, and so of a part without it."""
        return fills_nulls(self.wishes.get(name))

    def takes_wish(self, name: str) -> bool:
        """Whether the column alone may have a dtype or nulls by a wish, or be Arrow data."""
        return not self.is_matrix or name in self.labels

    def may_lack(self, name: str) -> bool:
        """Whether this part may be without the column, since others may have it."""
        return self.is_part and self.fills(name)

    @property
    def categories(self) -> dict[str, Categories]:
        """Columns that are read as codes."""
        return {name: wish for name, wish in self.wishes.items() if isinstance(wish, Categories)}

    def uncoded(self, names: Collection[str]) -> "Query":
        """The same, but that these columns are read as they are, if they are categories."""
        wishes = self.wishes.items()
        kept = {of: wish for of, wish in wishes if of not in self.categories or of not in names}
        return replace(self, wishes=kept)

    def before_filter(self, seen: Collection[str]) -> "Query":
        """What is read of all rows, of which others leave some out by these columns."""
        own = self.columns
        beside = [] if own is None else [name for name in seen if name not in own]
        columns = None if own is None else [*own, *beside]
        return replace(self, columns=columns, where=None, beside=beside)

    @property
    def counted(self) -> "Query":
        """What is read to count the rows."""
        return replace(self.uncoded(self.categories), columns=[])


#: All columns of all rows, as they are.
ALL = Query()


def _number_type(name: str) -> Any:
    pa = import_module("pyarrow")
    if name == "bool" or name.rstrip("0123456789") in ("int", "uint", "float"):
        return pa.type_for_alias(name)
    # Floats that Arrow has not, such as bfloat16, are of this type, which has all of their values.
    return pa.float64() if "float" in name else None


class Part(NamedTuple):
    """A part of a source, as errors and `common` know it."""

    name: str
    #: Of the columns that are read.
    schema: Any
    #: All of its columns.
    names: Sequence[str]
    #: Why it has no field at a path, where the column that this begins with is no struct.
    no_structs: Mapping[str, str] = MappingProxyType({})


class Run(NamedTuple):
    """Parts that follow each other and have one schema."""

    #: The first of them; its schema is None where it is not known before it is read.
    part: Part
    open: Callable[[], Any]


def features_of(schema: Any) -> list[str]:
    """The columns that are read where none are named: all but an index of pandas's."""
    metadata = (schema.metadata or {}).get(b"pandas", b"")
    index = _core._index_columns(schema.names, metadata)
    return [name for at, name in enumerate(schema.names) if at not in index]


def steps_of(schema: Any) -> set[str]:
    """The names of an index of pandas's at equal steps, which is in the metadata alone."""
    metadata = (schema.metadata or {}).get(b"pandas", b"")
    return set(_core._index_steps(metadata)) - set(schema.names)


def check_steps(name: str, part: str, steps: Collection[str]) -> None:
    """Refuses to take such an index for a column that a part lacks."""
    if name in steps:
        raise KeyError(
            f'column "{name}" is an index at equal steps in {part}, of which pandas has written no '
            "values: write frame.reset_index(), or read it as a frame, by x.to_pandas() of a table "
            "or pandas.read_parquet(path)"
        )


def readable(schema: Any) -> list[str] | None:
    """What is read where no columns are named, None for all: less an index of pandas's of which
    levels have one name, which pyarrow does not scan.
    """
    if len(set(schema.names)) == len(schema.names):
        return None
    features = set(features_of(schema))
    return [name for name in schema.names if name in features or schema.names.count(name) == 1]


def is_same(one: Any, other: Any) -> bool:
    """Whether schemas have equal fields, of which the same ones are an index of pandas's."""
    if not _has_same_fields(one, other):
        return False
    return one.metadata == other.metadata or features_of(one) == features_of(other)


def _has_same_fields(one: Any, other: Any) -> bool:
    if not one.equals(other):
        return False
    # They have all that fields say, and are compared at once.
    messages = [schema.remove_metadata().serialize() for schema in (one, other)]
    return messages[0].equals(messages[1]) or all(map(is_one_meaning, one, other))


def selected(schema: Any, columns: Sequence[str] | None) -> Any:
    """The schema of these columns and paths, less those that it has not."""
    pa = import_module("pyarrow")
    if columns is None:
        return schema
    found = []
    for name in dict.fromkeys(columns):
        try:
            found.append(path_of(name, schema)[0])
        except KeyError:
            continue
    return pa.schema(found, schema.metadata)


def part_of(name: str, schema: Any, query: Query, names: Sequence[str] | None = None) -> Part:
    """names: all of its columns, None for those of the schema."""
    no_structs = {}
    for path in query.columns or ():
        try:
            _ = "." in path and path_of(path, schema)
        except NoStructError as error:
            no_structs[path] = str(error.args[0])
        except KeyError:
            continue
    own, known = selected(schema, query.columns), schema.names if names is None else names
    return Part(name, own, known, no_structs)


def common(
    parts: Iterable[Part], query: Query, way: str, ways: Mapping[str, str] = MappingProxyType({})
) -> Any:
    """The schema of all parts.

    way: how a part gets another type, for errors.
    ways: those of columns that have another one.

    A column has the type of its values in all parts, or else that of its wish, to which `fitted`
    converts each part. `Categories` may be of any types, of which this has one:
    `ColumnCoder` makes codes of each.
    """
    pa = import_module("pyarrow")
    distinct: list[Part] = []
    for part in parts:
        alike = (known for known in distinct if known.no_structs == part.no_structs)
        if not any(is_same(part.schema, known.schema) for known in alike):
            distinct.append(part)
    first = distinct[0].schema
    names = [name for name in query.columns or () if name not in query.beside]
    if len(distinct) == 1:
        for name in names:
            if name not in first.names:
                check_lacking(name, distinct[0], query)
        return first
    if query.columns is None:
        # The index of one part is no column, though another part has one of its name.
        distinct = [part._replace(schema=schema_of_heads(part.schema, None)) for part in distinct]
        names = [name for part in distinct for name in part.schema.names]
    counts = [Counter(part.names) for part in distinct]
    found = (
        _merged_field(name, distinct, counts, query, ways.get(name, way))
        for name in dict.fromkeys(names)
    )
    fields = [own for own in found if own is not None]
    return pa.schema(fields, first.metadata)


def _merged_field(
    name: str, parts: Sequence[Part], counts: Sequence[Counter[str]], query: Query, way: str
) -> Any:
    """None for a column that these parts may be without, and are.

    counts: how many columns of each part have a name.
    """
    have, lacks, is_field = [], None, False
    for part, named in zip(parts, counts, strict=True):
        count = len(part.schema.get_all_field_indices(name))
        if max(count, named[name]) > 1:
            raise KeyError(
                f'{named[name]} columns are called "{name}" in {part.name}: rename all but one, or '
                "name others in columns="
            )
        if count:
            have.append((part.name, part.schema.field(name)))
            is_field |= name not in part.names
        else:
            lacks = lacks or part
    if not have:
        check_lacking(name, parts[0], query)
        return None
    for part in parts if lacks is not None else ():
        check_steps(name, part.name, steps_of(part.schema))
    other = next((part for part in parts if name in part.no_structs), None)
    if is_field and other is not None:
        raise KeyError(f"{other.no_structs[name]} in {other.name}")
    if lacks is not None and not query.fills(name):
        if name in lacks.names:
            names = dict.fromkeys(own for part in parts for own in part.schema.names)
            features = ", ".join(f'"{own}"' for own in names if own not in query.labels)
            raise KeyError(
                f'column "{name}" is in {have[0][0]}, and an index in {lacks.name}, which is read '
                f"where columns are named: columns=[{features}] reads both"
            )
        raise KeyError(_missing(name, have[0], lacks, query))
    kind = settled_type(name, have, query, way)
    is_nullable = lacks is not None or any(own.nullable for _, own in have)
    return first_of([own for _, own in have]).with_type(kind).with_nullable(is_nullable)


def settled_type(name: str, parts: Sequence[tuple[str, Any]], query: Query, way: str) -> Any:
    """The type of a column of all parts: pairs of a name and a field."""
    fields = [own for _, own in parts]
    wish = query.wishes.get(name)
    kind = type_of_all(fields, query.dtype_of(name))
    if kind is not None:
        return kind
    if isinstance(wish, Categories):
        check_coded(name, parts, query, way)
        if not wish.words:
            check_scanned(name, parts, way)
        return fields[0].type
    raise _no_type(name, parts, query, way)


def _no_type(name: str, parts: Sequence[tuple[str, Any]], query: Query, way: str) -> TypeError:
    dtype, fields = query.dtype_of(name), [own for _, own in parts]
    pair = [fields[at] for at in differing(fields, dtype)]
    one, other = map(meaning_of, pair)
    if one.equals(other):
        one, other = (own.type for own in pair)
    ways = _way_out(name, one, other, way, query)
    return TypeError(f"{differ(name, parts, dtype)}: {ways}")


def check_coded(
    name: str, parts: Sequence[tuple[str, Any]], query: Query, way: str = "cast one of them"
) -> None:
    """Refuses extension types that differ where codes are made of their numbers."""
    extension, found = import_module("pyarrow").BaseExtensionType, []
    for part in parts:
        kind = decoded_type(meaning_of(part[1]))
        plain = decoded_type(stored(kind))
        is_in_words = is_text(plain) or is_binary(plain) or is_a("fixed_size_binary")(plain)
        if isinstance(kind, extension) and not is_in_words and not is_bool(kind):
            found.append(part)
    if found and merged_of([own for _, own in found])[0] is None:
        raise _no_type(name, found, query, way)


def check_scanned(name: str, parts: Sequence[tuple[str, Any]], way: str) -> None:
    """Refuses booleans beside numbers where words are read: to Python True is the word 1."""
    plain = [(part, decoded_type(part[1].type)) for part in parts]
    bools = [part for part, kind in plain if is_bool(kind)]
    others = [(part, stored(kind)) for part, kind in plain if not is_bool(kind)]
    numbers = [part for part, kind in others if is_number(kind) or is_a("decimal")(kind)]
    if bools and numbers:
        pair = [bools[0], numbers[0]]
        one, other = (own.type for _, own in pair)
        is_extension = stored(decoded_type(other)) != decoded_type(other)
        told = None if is_extension else retyped(name, one, other, way)
        raise TypeError(f"{differ(name, pair)}, and to Python True is 1: {told or APART}")


def unseen() -> Any:
    """What a filter sees of a field of a struct that has no type of all parts: it is null or not,
    and no comparison takes it.
    """
    pa = import_module("pyarrow")
    return pa.struct([pa.field("several types", pa.null())])


def seen_of_all(name: str, fields: Sequence[Any], query: Query) -> Any:
    """What a filter sees of a column of all parts, None if these have no type.

    Of structs it may name some fields, and others need no type of all. They stay in their places,
    which a filter may name too; one that a part lacks has a name that no filter has.
    """
    pa = import_module("pyarrow")
    dtype = query.dtype_of(name)
    is_float = dtype is not None and pa.types.is_floating(dtype)
    whole = type_of_all(fields, pa.float64() if is_float else None)
    structs = [own.type for own in fields if not pa.types.is_null(own.type)]
    if whole is not None or not all(map(pa.types.is_struct, structs)):
        return whole
    seen = []
    for own in structs[0]:
        have = [kind.field(own.name) for kind in structs if kind.get_field_index(own.name) >= 0]
        has_all = len(have) == len(structs)
        kind = seen_of_all(f"{name}.{own.name}", have, query) if has_all else None
        told = own.name if has_all else f"{own.name}, which a part lacks"
        seen.append(pa.field(told, unseen() if kind is None else kind))
    return pa.struct(seen)


def differ(name: str, parts: Sequence[tuple[str, Any]], dtype: Any = None) -> str:
    """What parts make of a column that has no type of all: pairs of a name and a field."""
    one, other = (parts[at] for at in differing([own for _, own in parts], dtype))
    kind, theirs = name_of(one[1]), name_of(other[1])
    if kind == theirs and str(one[1].type) != str(other[1].type):  # in another encoding
        kind, theirs = map(str, (one[1].type, other[1].type))
    return f'column "{name}" is {kind} in {one[0]} and {theirs} in {other[0]}'


#: What reads columns that no cast makes one, for errors.
APART = "a Loader for each of them reads both"


def _way_out(name: str, one: Any, other: Any, way: str, query: Query) -> str:
    wish, ways = query.wishes.get(name), []
    is_arrow = isinstance(wish, AsArrow)  # no dtype reaches it
    is_wished = not is_arrow and not are_codes([one, other]) and anew(name, one, other) is None
    if is_wished and not _has_lists_within(one) and of_numbers(one, other) is not None:
        told = 'Cast("float64")'
        if isinstance(wish, (Dense, Pad)):
            own = f"{wish.value!r}, " if isinstance(wish, Pad) else ""
            told = f'{type(wish).__name__}({own}dtype="float64")'
        if name in query.labels:
            ways.append(f'label={{"{name}": {told}}} converts both')
        elif not query.takes_wish(name):
            ways.append('dtype="float64" converts both')
        else:
            ways.append(f'columns={{"{name}": {told}}} or dtype="float64" converts both')
    by_type = retyped(name, one, other, way)
    is_extension = bool(extensions_of(one) or extensions_of(other))
    # pyarrow casts extension types to what they are stored as, which is another thing.
    if not ways and (by_type is None or (is_extension and not is_arrow)):
        ways.append(APART)
        if name not in query.labels and query.where is None:
            ways.append("columns= leaves it out")
    return ", or ".join([*ways, *([] if by_type is None else [by_type])])


def _has_lists_within(kind: Any) -> bool:
    """Whether its items are lists of any length, which no dtype makes a tensor of."""
    items = getattr(kind, "value_type", None)
    return items is not None and (has_offsets(items) or _has_lists_within(items))


def retyped(name: str, one: Any, other: Any, way: str) -> str | None:
    """How columns of these types get one; None if pyarrow casts neither to a type of both.

    way: how one of them gets the type of the other.
    """
    if extensions_of(one) and extensions_of(other):
        return None  # pyarrow casts no extension type to another one, and few encodings of them
    if (told := anew(name, one, other)) is not None:
        return told
    if _is_cast(one, other) or _is_cast(other, one):
        return f"{way}, {_of_utc(one, other)}" if _is_one_zoned(one, other) else way
    kind = _without_sizes(one, other) or of_numbers(one, other)
    is_of_both = kind is not None and _is_cast(one, kind) and _is_cast(other, kind)
    return f"{way}, here both as {kind}" if is_of_both else None


def _of_utc(one: Any, other: Any) -> str:
    """What is said beside a cast of times or dates to times of a zone."""
    is_date = any(map(import_module("pyarrow").types.is_date, (one, other)))
    x, told = ('x.cast("timestamp[s]")', "dates") if is_date else ("x", "times without a zone")
    return (
        f"where a cast takes {told} for those of UTC, and "
        f"pyarrow.compute.assume_timezone({x}, zone) for those of a zone"
    )


def _is_one_zoned(one: Any, other: Any) -> bool:
    """Whether both are times or dates, of which one type has a zone."""
    types = import_module("pyarrow").types
    are_times = all(types.is_timestamp(kind) or types.is_date(kind) for kind in (one, other))
    return are_times and (getattr(one, "tz", None) is None) != (getattr(other, "tz", None) is None)


def _without_sizes(one: Any, other: Any) -> Any:
    """The type of lists of any length in place of these lists of two lengths; None of others."""
    pa = import_module("pyarrow")
    if not all(map(pa.types.is_fixed_size_list, (one, other))):
        return None
    lists = [pa.list_(kind.value_field) for kind in (one, other)]
    return merged(*lists) or of_numbers(*lists)


def _is_cast(one: Any, other: Any) -> bool:
    """Whether pyarrow casts values of a type to another type, if they fit: an array without rows
    does not tell, and a null does.
    """
    pa = import_module("pyarrow")
    if has_offsets(one) and has_offsets(other):
        return _is_cast(one.value_type, other.value_type)
    try:
        pa.nulls(1, one).cast(other)
    except (NotImplementedError, TypeError, ValueError):
        return False
    return True


def anew(name: str, one: Any, other: Any) -> str | None:
    """How columns of these types get one, if pyarrow casts one of them to nothing."""
    if has_list_views(one) or has_list_views(other):
        return f"{made_anew(name)} makes values of one type"
    coded = next((kind for kind in (one, other) if has_runs(kind)), None)
    return coded and f"{decoded(name, coded)} has values that are cast"


def check_lacking(name: str, part: Part, query: Query) -> None:
    """Refuses a column that no part has, unless other sources may have it."""
    if query.may_lack(name):
        return
    for head in heads([name], lambda: part.names) or []:
        if head != name and head in part.names:
            raise KeyError(f'no column "{name}": "{head}" of {part.name} has no such field')
    raise KeyError(f'no column "{name}": {part.name} has {list(part.names)}')


def _missing(name: str, has: tuple[str, Any], lacks: Part, query: Query) -> str:
    near = [own for own in lacks.names if own.casefold() == name.casefold()]
    near_by = f', which has "{near[0]}"' if near else ""
    ways = [] if name in query.labels else ["columns= leaves it out"]
    if fills := _fills(has[1].type, query.wishes.get(name)):
        argument = "label" if name in query.labels else "columns"
        fills[0] = f'{argument}={{"{name}": {fills[0]}}}'
        form = "" if query.takes_wish(name) else ', with format="dict"'
        ways.append(f"its own wish says what stands for it, as {' or '.join(fills)}{form}")
    ways.append("give each part the column, of nulls where there are no values")
    return f'column "{name}" is in {has[0]} and not in {lacks.name}{near_by}: {", or ".join(ways)}'


def _fills(kind: Any, wish: Wish | None) -> list[str]:
    """The wishes that say what stands for a column of this type where a part lacks it."""
    types = import_module("pyarrow").types
    if isinstance(wish, AsArrow):
        return []
    is_ragged = has_offsets(kind) or is_list_view(kind)
    items = kind.value_type if is_ragged else kind
    while types.is_fixed_size_list(items):
        items = items.value_type
    is_numbers = has_numbers(items)
    if is_ragged and is_numbers:
        is_decimal = is_a("decimal")(items)
        return ['Pad(0, nulls=0, dtype="float64")' if is_decimal else "Pad(0, nulls=0)"]
    if is_ragged:
        return []
    cast = 'Cast("float64", nulls="nan")'
    if is_tensor(kind) or (is_numbers and items is not kind):
        return [cast]
    codes = "Categories(words, nulls=-1)"
    if is_numbers or types.is_null(kind):
        return [cast, codes]
    return [] if stored(decoded_type(kind)).num_fields else [codes]


def told_by(schema: Any, later: Any) -> Any:
    """The schema of the first batches of a stream; a later one says what is null in these."""
    fields = list(schema)
    for at, own in enumerate(fields):
        if has_nulls(own.type) and later.get_field_index(own.name) >= 0:
            pair = own, later.field(own.name)
            whole, _ = merged_of(pair)
            if whole is not None and is_one_encoding(whole, own.type):
                fields[at] = first_of(pair).with_type(whole).with_nullable(own.nullable)
    return import_module("pyarrow").schema(fields, schema.metadata)


def fitted(batch: Any, schema: Any, query: Query = ALL) -> Any:
    """A batch, or a table, with the columns of the schema, cast to it; nulls for those it lacks.

    query: of which the schema is, and whose wishes convert what has no type of all parts.
    """
    if is_one_schema(batch.schema, schema):
        return batch
    if not schema.names:
        return batch.select([])  # which has its rows
    pa = import_module("pyarrow")
    columns = []
    for own in schema:
        at = batch.schema.get_field_index(own.name)
        if at < 0:
            columns.append(cast(pa.nulls(len(batch)), own.type))
            continue
        try:
            columns.append(_cast(batch.column(at), own.type, query.number_of(own.name)))
        except (IndexError, NotImplementedError, ValueError, _core.UnsupportedError) as error:
            kinds = IndexError, ValueError, _core.UnsupportedError, NotImplementedError
            kind = next(kind for kind in kinds if isinstance(error, kind))
            raise kind(f'column "{own.name}": {error}') from error
    return type(batch).from_arrays(columns, schema=schema)


def check_codes(rows: Any, query: Query) -> None:
    """Refuses codes of different dictionaries of nested values: these are not compared, and one
    value would have several codes where the rows of a table are put together.
    """
    types = import_module("pyarrow").types
    for at, own in enumerate(rows.schema) if query.physical else ():
        kind = own.type
        while types.is_fixed_size_list(kind):
            kind = kind.value_type
        is_other = isinstance(query.wishes.get(own.name), (AsArrow, Categories))
        if is_other or not types.is_dictionary(kind) or not stored(kind.value_type).num_fields:
            continue
        chunks = list(filter(len, rows.column(at).chunks))
        while chunks and types.is_fixed_size_list(chunks[0].type):
            chunks = [chunk.values for chunk in chunks]
        words = [chunk.dictionary for chunk in chunks]
        if any(not _is_one_array(words[0], one) for one in words):
            arrow = "hand it on as Arrow data with AsArrow(), or "
            raise BufferError(
                f'column "{own.name}" has different dictionaries of {kind.value_type}, which are '
                f"not compared: {arrow if query.takes_wish(own.name) else ''}make one dictionary "
                "for all rows"
            )


def _is_one_array(one: Any, other: Any) -> bool:
    """Whether the values are equal; those in the same memory are, though NaN equals nothing."""

    def memory(array: Any) -> list[Any]:
        places = [buffer and buffer.address for buffer in array.buffers()]
        return [array.offset, len(array), *places]

    return bool(one.equals(other)) or memory(one) == memory(other)


def _cast(column: Any, kind: Any, wished: str | None) -> Any:
    """The column as this type, which `common` found for it.

    wished: the dtype that numbers become, of which the type has all values.
    """
    whole = merged(column.type, kind)
    is_moved = is_tensor(column.type) and column.type.permutation != kind.permutation
    if whole is not None and alike(whole).equals(alike(kind)) and not is_moved:
        try:
            return cast(column, kind)
        except NotImplementedError:
            # pyarrow casts no views to dictionaries and back, but both to and from plain texts.
            return cast(cast(column, alike(kind)), kind)
    # pyarrow makes inf of what a narrower float cannot hold.
    pa = import_module("pyarrow")
    if not isinstance(column, pa.ChunkedArray):
        return _converted(column, kind, wished)
    return pa.chunked_array([_converted(chunk, kind, wished) for chunk in column.chunks], kind)


def _converted(column: Any, kind: Any, wished: str | None) -> Any:
    """Numbers as those of a wish, in lists too: what the engine would make of the column alone."""
    pa, pc = import_module("pyarrow"), import_module("pyarrow.compute")
    types = pa.types
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if has_offsets(kind):
        lengths = pc.fill_null(pc.list_value_length(column).cast(pa.int64()), 0)
        ends = pc.cumulative_sum(lengths)
        offsets = pa.concat_arrays([pa.array([0], pa.int64()), ends])
        values = _cast(items_of(column), kind.value_type, wished)
        whole = pa.LargeListArray.from_arrays(offsets, values, mask=column.is_null())
        return whole.cast(kind)
    size = getattr(kind.storage_type if is_tensor(kind) else kind, "list_size", -1)
    if size == 0:
        return cast(column, kind)  # the number of rows is none that pyarrow finds in the items
    if types.is_fixed_size_list(kind):
        values = column.values.slice(column.offset * size, len(column) * size)
        if column.null_count:  # which may hide any values
            rows = column.is_valid().to_numpy(zero_copy_only=False)
            values = pc.if_else(pa.array(rows.repeat(size)), values, None)
        items = _cast(values, kind.value_type, wished)
        return pa.FixedSizeListArray.from_arrays(items, type=kind, mask=column.is_null())
    if is_tensor(kind):
        items = column.storage.values.slice(column.storage.offset * size, len(column) * size)
        rows = pa.FixedSizeListArray.from_arrays(
            items, type=column.type.storage_type, mask=column.is_null()
        )
        tensor, valid = _core.to_tensor(
            column.type.wrap_array(rows), dtype=wished or kind.value_type, nulls="mask"
        )
        items = pa.array(_core.from_dlpack(tensor, mask=valid)).storage.values
        items = items.cast(kind.value_type)
        rows = pa.FixedSizeListArray.from_arrays(
            items, type=kind.storage_type, mask=column.is_null()
        )
        return kind.wrap_array(rows)
    if types.is_struct(kind):
        return _seen_struct(column, kind, wished)
    if not (is_number(kind) or types.is_boolean(kind)):
        raise ValueError(f"{column.type} is no {kind}")
    values, valid = _core.to_tensor(column, dtype=wished or kind, nulls="mask")
    return pa.array(_core.from_dlpack(values, mask=valid)).cast(kind)


def _seen_struct(column: Any, kind: Any, wished: str | None) -> Any:
    """The struct of `seen_of_all`, or what it has in place of a field."""
    pa, fields = import_module("pyarrow"), []
    for own in kind:
        at = -1 if kind.equals(unseen()) else column.type.get_field_index(own.name)
        inner = pa.nulls(len(column), own.type)
        fields.append(inner if at < 0 else _cast(column.field(at), own.type, wished))
    return pa.StructArray.from_arrays(fields, fields=list(kind), mask=column.is_null())


class Told(NamedTuple):
    """What errors say of the parts of a stream."""

    first: str = "the first batch"
    later: str = "batch {}"
    #: How they get the same columns, and the same types.
    names: str = "give each batch the same columns"
    types: str = "cast each batch to one type"
    #: How types that a list of them would merge are read as they are; empty where no list can be.
    merged: str = "pass a list of them"


#: Of batches that a user makes.
TOLD = Told()


def conformed(
    parts: Iterable[Any],
    head: Any,
    names: Sequence[str] | None,
    told: Told = TOLD,
    later: Mapping[str, int] = MappingProxyType({}),
) -> Iterator[Any]:
    """The batches of a stream, of which `head` is the first part's schema.

    names: the columns and paths that matter, None for all columns. A later part of other types is
    an error.
    later: the numbers of parts that have said the types of columns in place of the first one.
    """
    target = schema_of_heads(head, names)
    said = {name: told.later.format(at) for name, at in later.items()}
    for number, part in enumerate(parts):
        reader = reader_of(part)
        if number and not _has_same_fields(reader.schema, target):
            one = told._replace(later=told.later.format(number))
            check_conforms(reader.schema, target, names, one, said)
        for batch in reader:
            yield fitted(batch, target)


def schema_of_heads(schema: Any, names: Sequence[str] | None) -> Any:
    """The schema of a stream of which these columns are read."""
    counts = Counter(schema.names)
    known = features_of(schema) if names is None else [of for of in names if of in counts]
    if known == schema.names or any(counts[of] > 1 for of in known):
        return schema
    known = known or for_rows(schema.names)
    return import_module("pyarrow").schema([schema.field(name) for name in known], schema.metadata)


def with_keys(schema: Any, keys: Mapping[str, Any]) -> Any:
    """The schema of a file with keys of its folders, less those of columns that it has itself."""
    for name, key in keys.items():
        if name not in schema.names:
            schema = schema.append(import_module("pyarrow").field(name, key.type))
    return schema


def with_types(schema: Any, kinds: Mapping[str, Any]) -> Any:
    """The schema with other types of some columns."""
    fields = [own.with_type(kinds.get(own.name, own.type)) for own in schema]
    return import_module("pyarrow").schema(fields, schema.metadata)


def of_stream(schema: Any) -> Any:
    """The schema of a stream, by that of its first batch: later ones may have nulls, more words
    than the codes of a dictionary can tell, and maps whose keys are not sorted.
    """
    pa = import_module("pyarrow")
    wide = []
    for own in schema:
        kind = _unsorted(own.type)
        if pa.types.is_dictionary(kind) and kind.index_type.bit_width < 32:
            kind = pa.dictionary(pa.int32(), kind.value_type, kind.ordered)
        wide.append(own.with_type(kind).with_nullable(True))
    return pa.schema(wide, schema.metadata)


def _unsorted(kind: Any) -> Any:
    """The type with maps, at any depth, of which nothing says that their keys are sorted."""
    types = import_module("pyarrow").types
    if types.is_struct(kind) or types.is_map(kind) or is_list(kind):
        inner = [kind.field(at) for at in range(kind.num_fields)]
        if types.is_map(kind):  # of which pyarrow counts one field, of both
            inner = [kind.key_field, kind.item_field]
        return with_inner(kind, [own.with_type(_unsorted(own.type)) for own in inner])
    return kind


def check_conforms(
    schema: Any,
    head: Any,
    names: Sequence[str] | None,
    told: Told,
    said: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Refuses a part of a stream with other columns than the first one, or with others of a type.

    names: the columns and paths that matter, None for all columns.
    said: the parts that have said the types of columns in place of the first one.
    """
    # A column is read before a field at a path of that name.
    read = features_of(schema) if names is None else set(names).intersection(schema.names)
    for name in [*head.names, *sorted(set(read) - set(head.names))]:
        counts = [len(of.get_all_field_indices(name)) for of in (head, schema)]
        if counts[0] != counts[1]:
            ours, theirs = told[:2] if counts[0] else (told.later, told.first)
            raise KeyError(
                f'column "{name}" is in {ours} and not in {theirs}, and a stream has one schema: '
                f"{told.names}"
            )
        fields = head.field(name), schema.field(name)
        one, other = map(meaning_of, fields)
        if not (one.equals(other) or is_one_encoding(one, other)):
            kind, theirs = map(name_of, fields)
            ways = [retyped(name, one, other, told.types) or f'leave "{name}" out']
            if told.merged and merged(one, other) is not None:
                ways.append(told.merged)
            raise TypeError(
                f'column "{name}" is {kind} in {said.get(name, told.first)} and {theirs} in '
                f"{told.later}, and a stream has one schema: {', or '.join(ways)}"
            )
