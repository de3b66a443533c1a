"""Files that are named, of which the types of columns are those of all footers; fragments too."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property, partial
from importlib import import_module
from itertools import groupby
from typing import Any

from .. import _core
from .columns import Dense, Pad
from .datasets import (
    STAMPS,
    Dataset,
    is_of_reading,
    keys_of,
    local_paths,
    other_encoding,
    read_footers,
)
from .identity import are_replaced, of_files, of_types
from .merging import first_of, merged_of
from .paths import NEXT, of_key, stamp_of
from .readers import has_coded_views, has_list_views, has_nulls, heads, no_column
from .row_groups import are_parquet, counted_rows, rows_of
from .schema import (
    ALL,
    Query,
    Run,
    common,
    features_of,
    is_same,
    part_of,
    seen_of_all,
    steps_of,
    with_keys,
    with_types,
)
from .source import count_of, named_by, named_in, seen_type, whole_of


class Files(Dataset):
    """Files that were named, whose columns have the type that all of their footers allow."""

    anew = NEXT
    #: What else than a folder has the keys of folders, for errors.
    keyed = ""

    def __init__(self, files: Sequence[tuple[str, Any]], form: Any, system: Any) -> None:
        """files: paths, and the values of the keys of the folders that count, by their names."""
        pa = import_module("pyarrow")
        make = import_module("pyarrow.dataset").FileSystemDataset
        super().__init__(make([], pa.schema([]), form, system))
        self._named, self._format, self._system = list(files), form, system
        self.way = way_of_files(form.default_extname, any(keys for _, keys in files))
        #: The same, without keys of columns that a file has itself.
        self._files = list(files)
        #: For each file which of the schemas it has, and those with the first file of each.
        self._kinds: list[int] = []
        self._schemas: list[tuple[str, Any]] = []
        #: Of Arrow files, once they have been counted for a state.
        self._arrow_rows: dict[str, int] = {}

    def found(self) -> Any:
        return partial(Files, self._named, self._format, self._system)

    def fragments(self) -> list[Any]:
        if self._fragments is None:
            _ = self._stamped  # before the footers
            found = self._opened()
            self._kinds = [self._kind(at, fragment) for at, fragment in enumerate(found)]
            self._fragments = found
        return self._fragments

    def _opened(self) -> list[Any]:
        """The files, with keys of folders as columns, but for those that a file has itself."""
        self._files = list(self._named)
        make = partial(self._format.make_fragment, filesystem=self._system)
        found = [make(path, partition_expression=_partition_of(keys)) for path, keys in self._files]
        read_footers(found, self._system)
        again = []
        for at, (path, keys) in enumerate(self._files):
            schema = found[at].physical_schema
            if keys and any(name in schema.names for name in keys):
                rest = {name: key for name, key in keys.items() if name not in schema.names}
                self._files[at] = path, rest
                found[at] = make(path, partition_expression=_partition_of(rest))
                again.append(found[at])
        read_footers(again, self._system)
        return found

    def _kind(self, at: int, fragment: Any) -> int:
        path, keys = self._files[at]
        schema = with_keys(fragment.physical_schema, keys)
        for number, (_, known) in enumerate(self._schemas):
            if is_same(schema, known):
                return number
        self._schemas.append((path, schema))
        return len(self._schemas) - 1

    def steps(self) -> set[str]:
        self.fragments()
        return set[str]().union(*(steps_of(schema) for _, schema in self._schemas))

    def schema(self, query: Query = ALL) -> Any:
        self.fragments()
        return whole_of([schema for _, schema in self._schemas], query)

    def untyped(self) -> Sequence[str]:
        """Columns of CSV without a value: "NA" and "" are none, and words where texts are read."""
        if self._format.default_extname != "csv":
            return ()
        is_null = import_module("pyarrow").types.is_null
        return [own.name for own in self.schema() if is_null(own.type)]

    def head(self) -> tuple[list[Any], bool] | None:
        if len(self._named) == 1:
            self.fragments()
            return [self._schemas[0][1]], True
        path, keys = self._named[0]
        fragment = self._format.make_fragment(
            path, filesystem=self._system, partition_expression=_partition_of(keys)
        )
        read_footers([fragment], self._system)
        return [with_keys(fragment.physical_schema, keys)], False

    def refresh(self) -> None:
        if are_replaced(self._stamped):
            del self._stamped
            self._fragments = self._pieces = None
            self._schemas, self._kinds, self._arrow_rows = [], [], {}

    @cached_property
    def _stamped(self) -> dict[str, Any]:
        return self._stamps()

    def _local(self) -> Iterable[str]:
        # Over a network it would take as long as to read them again.
        return local_paths([path for path, _ in self._named], self._system)

    def _kept(self) -> Collection[str]:
        return self._stamped if self._format.default_extname == "parquet" else ()

    def explained(self, error: Exception, query: Query) -> Exception:
        if isinstance(error, KeyError) and not is_of_reading(error):
            paths = [path for path, _ in self._files]
            return of_key(error, paths, self.names() or [], self.keyed)
        return super().explained(error, query)

    def names(self) -> Sequence[str] | None:
        self.fragments()
        return list(dict.fromkeys(name for _, schema in self._schemas for name in schema.names))

    def identity(self, query: Query) -> Callable[[], dict[str, Any]]:
        self.fragments()
        # What is read anew later is no matter of this copy's.
        return partial(copy(self)._told_of, query, self._stamped)

    def _told_of(self, query: Query, begun: Mapping[str, Any]) -> dict[str, Any]:
        told = of_types(self._schema(query)[0], query)
        keys = list(map(keys_of, self.fragments()))
        return of_files(self.fragments(), told, keys, begun, counted=self._arrow_rows)

    def _stored(self, where: Any, most: int | None = None) -> list[Any]:
        return [schema for _, schema in self._schemas]

    def rows(self, query: Query = ALL) -> int | None:
        fragments = self.fragments()
        if query.where is not None:
            return count_of(self.runs(query.counted))
        if are_parquet(fragments):
            return sum(map(rows_of, fragments))
        return counted_rows(fragments)

    def runs(self, query: Query) -> list[Run]:
        return self._runs(query, self.fragments())

    def _runs(self, query: Query, fragments: Sequence[Any] | None) -> list[Run]:
        fragments = self.fragments() if fragments is None else fragments
        schema, own, _ = self._schema(query)
        epoch = copy(self)  # what is read anew later is no matter of it
        if not own:
            part = part_of(fragments[0].path, schema, query)
            return [Run(part, lambda: epoch._scan(fragments, schema, query))]
        kinds = {path: kind for (path, _), kind in zip(self._files, self._kinds, strict=True)}
        runs = []
        for kind, some in groupby(fragments, lambda fragment: kinds[fragment.path]):
            runs.append(epoch._run(query, list(some), schema, own, self._schemas[kind][1]))
        return runs

    def _run(
        self, query: Query, fragments: list[Any], schema: Any, own: Mapping[str, Any], theirs: Any
    ) -> Run:
        """Fragments of one schema, whose own types some columns keep."""
        pa = import_module("pyarrow")
        # A column that they lack would stand before the struct's field of that path. Of files
        # without columns nothing tells how many rows they have, and nulls are of any type.
        fields = [
            theirs.field(field.name) if field.name in own else field
            for field in schema
            if field.name in theirs.names
        ] or [schema.field(0).with_type(pa.null())]
        mine = pa.schema(fields, schema.metadata)
        part = part_of(fragments[0].path, mine, query, theirs.names)
        if query.columns is not None:
            query = replace(query, columns=part.schema.names)
        seen = {name: kind for name, kind in own.items() if kind is not None}
        return Run(part, lambda: self._scan(fragments, mine, query, seen))

    def _whole(self, query: Query) -> Any:
        return self._schema(query)[2]

    def _schema(self, query: Query) -> tuple[Any, dict[str, Any], Any]:
        """The columns that are read, those that each file converts from its own type, with what a
        filter sees of them, and what they become; None where there are none of these.
        """
        self.check_texts(query)
        schema, own, whole = self._schema_of_all(query)
        texts = set(query.texts).intersection(self.untyped() if query.texts else ())
        kinds = dict.fromkeys(texts, import_module("pyarrow").string())
        whole = None if whole is None else with_types(whole, kinds)
        return with_types(schema, kinds), own, whole

    def check_texts(self, query: Query) -> None:
        if self._format.default_extname == "csv":
            keys = dict(self._files)
            for path, schema in self._schemas:
                _check_csv(path, schema, keys[path], query)

    def _schema_of_all(self, query: Query) -> tuple[Any, dict[str, Any], Any]:
        """The same, by the files alone."""
        pa = import_module("pyarrow")
        known = list(self.names() or ())
        if len(self._schemas) == 1:
            return self._schemas[0][1], {}, None
        of_each = self._own_heads(query.columns)
        names = _heads_of_all(query.columns, known, of_each)
        for path, schema in self._schemas:
            counts = Counter(schema.names)
            if twice := next((name for name in names or () if counts[name] > 1), None):
                raise KeyError(
                    f'{counts[twice]} columns of {path} are called "{twice}": rename all but one, '
                    "or name others in columns="
                )
        _core._check_names(known, names or [])
        parts = [part_of(path, schema, query) for path, schema in self._schemas]
        renamed = self._renamed()
        ways = {
            key: f"{'' if key in query.labels else 'columns= leaves it out, '}"
            f"Categories([...]) takes the values of both, and {way}"
            for key, way in renamed.items()
        }
        whole = common(parts, query, self.way, ways)
        named: list[str] = []
        if query.where is not None:
            named = named_by(self._schemas, query, self.way)
        read = features_of_all(self._schemas) if names is None else names
        wanted = [name for name in dict.fromkeys([*read, *named]) if name in known]
        seen = {
            name: seen_type(
                name,
                self._schemas,
                query,
                renamed.get(name, self.way),
                ', partitioning="hive"' if renamed else "",
            )
            for name in named
        }
        found = {name: self._field(name, query) for name in wanted}
        # A path is found in the struct, or the column, that each file has itself.
        ways_in = set(names or ()) - set(query.columns or ())
        own = {
            name: seen.get(name)
            for name, (_, is_merged) in found.items()
            if not is_merged or (name in ways_in and not self._is_one(name, of_each))
        }
        fields = [field for field, _ in found.values()] or [no_column(known)]
        schema = pa.schema(fields, self._schemas[0][1].metadata)
        return schema, own, whole if own else None

    def _own_heads(self, columns: Sequence[str] | None) -> list[list[str]]:
        """The columns that are read for these in each schema: "a.b" may be one, or a field of a."""
        of = (partial(getattr, schema, "names") for _, schema in self._schemas)
        return [heads(columns, names) or [] for names in of]

    def _is_one(self, name: str, of_each: Sequence[Sequence[str]]) -> bool:
        """Whether all files are read by this column, of one type."""
        if not all(name in own for own in of_each):
            return False
        fields = [schema.field(name) for _, schema in self._schemas]
        return all(field.type == fields[0].type for field in fields)

    def _renamed(self) -> dict[str, str]:
        """How keys of folders get on with a file's own column: a dataset of paths has no keys."""
        keys = dict.fromkeys(key for _, keys in self._files for key in keys)
        return {key: f'folders of another name keep the key and "{key}" apart' for key in keys}

    def _field(self, name: str, query: Query) -> tuple[Any, bool]:
        """The column as all files have it, and whether there is a type for all of them."""
        having = [
            schema.field(name) for _, schema in self._schemas if schema.get_field_index(name) >= 0
        ]
        kinds = [field.type for field in having]
        kind, _ = merged_of(having)
        is_nullable = len(having) < len(self._schemas) or any(field.nullable for field in having)
        others = [own for own in kinds if kind is not None and own != kind]
        if any(_is_never_cast(own, kind) for own in others):
            kind = None
        told = seen_of_all(name, having, query) if kind is None else kind
        told = kinds[0] if told is None else told
        return first_of(having).with_type(told).with_nullable(is_nullable), kind is not None


class Fragments(Files):
    """Fragments of pyarrow's datasets: files, or row groups of them, with the columns that they
    have themselves, as their ``to_table``.
    """

    anew = "fragments keep the footer that they had, and those of a new dataset read it"
    keyed = ", or the dataset, whose fragments these are"

    def __init__(self, fragments: Sequence[Any]) -> None:
        first = fragments[0]
        super().__init__([(one.path, {}) for one in fragments], first.format, first.filesystem)
        self._given = list(fragments)
        _ = self._stamped  # before the footers

    @cached_property
    def _stamped(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for path, fragment in zip(self._local(), self._given, strict=False):
            found |= STAMPS.setdefault(fragment, {path: stamp_of(path)})
        return found

    refresh = Dataset.refresh  # they keep their footers
    found = Dataset.found

    def head(self) -> tuple[list[Any], bool]:
        """Of all files: an epoch does not read the footers again."""
        self.fragments()
        return [self._schemas[kind][1] for kind in self._kinds], True

    def _opened(self) -> list[Any]:
        read_footers(self._given, self._system)
        return self._given

    def check_texts(self, query: Query) -> None:
        """Nothing: they are as the format of their dataset has them."""


def _check_csv(path: str, schema: Any, keys: Collection[str], query: Query) -> None:
    """Refuses what pyarrow reads as binaries, or as one column, and the caller does not.

    keys: columns that are keys of folders.
    """
    types, is_named, names = import_module("pyarrow").types, named_in(query), schema.names
    read = heads(query.columns, lambda: names)
    read = features_of(schema) if read is None else read
    for field in schema:
        is_read = field.name in read or (is_named is not None and is_named(schema, field.name))
        if is_read and types.is_binary(field.type):
            raise ValueError(f'{path}: column "{field.name}" is no UTF-8: {other_encoding(path)}')
        is_asked = query.columns is not None and query.number_of(field.name) is not None
        # Of texts `Pad` makes the numbers of their bytes.
        is_padded = isinstance(query.wishes.get(field.name), (Dense, Pad))
        is_taken = is_padded or query.is_of_requests or field.name in keys
        if is_asked and is_read and not is_taken and types.is_string(field.type):
            arrow = ", and AsArrow() hands them on" if query.takes_wish(field.name) else ""
            raise _core.UnsupportedError(
                f'{path}: column "{field.name}" has texts in its first block, and so no numbers: '
                "pyarrow.dataset.dataset(paths, format=pyarrow.dataset.CsvFileFormat("
                'convert_options=pyarrow.csv.ConvertOptions(null_values=["?", "", "NA"]))) takes '
                'some of them for nulls, decimal_point="," there reads numbers such as 1,5, '
                'pandas.read_csv(path, thousands=",") such as 1,234, '
                'timestamp_parsers=["%d/%m/%Y"] there such dates, as timestamps, and '
                f"Categories([...]) makes codes of texts{arrow}"
            )
    is_meant = query.columns is not None and set(read) <= set(names)
    own = [name for name in names if name not in keys]
    between = next((mark for mark in ";\t|" if len(own) == 1 and mark in own[0]), None)
    if between is not None and types.is_string(schema.field(own[0]).type) and not is_meant:
        raise ValueError(
            f"{path} has one column, {own[0]!r}, since commas are between columns: "
            f"pyarrow.csv.read_csv({path!r}, parse_options=pyarrow.csv.ParseOptions("
            f"delimiter={between!r})) makes a table of more"
        )


def way_of_files(form: str, has_keys: bool) -> str:
    """How files of a format get other types, for errors: without the word a dataset of pyarrow's
    has nulls for keys of folders.
    """
    told = "" if form == "parquet" else f', format="{form}"'
    told += ', partitioning="hive"' if has_keys else ""
    before = ", and keys of folders before columns of their names" if has_keys else ""
    # Its reader takes texts of the schema's types alone.
    casts = ", and pyarrow.csv.read_csv(path).cast(schema) one as another" * (form == "csv")
    return (
        f"pyarrow.dataset.dataset(paths, schema=pyarrow.schema(...){told}) reads all as that schema"
        f"{before}{casts}"
    )


def _is_never_cast(one: Any, other: Any) -> bool:
    """Whether scans of pyarrow cannot make one type of the other, though `fitted` can."""
    pa = import_module("pyarrow")
    if any(isinstance(kind, pa.BaseExtensionType) for kind in (one, other)):
        return True
    if has_nulls(one) and not pa.types.is_null(one):
        return True
    no_casts = pa.types.is_run_end_encoded, pa.types.is_union, has_list_views
    return has_coded_views(one) or any(tells(other) for tells in no_casts)


def _heads_of_all(
    columns: Sequence[str] | None, known: Sequence[str], of_each: Sequence[Sequence[str]]
) -> list[str] | None:
    """The columns that are read for these in any file."""
    if columns is None:
        return None
    found = heads(columns, lambda: known) or []
    found += [name for own in of_each for name in own if name in known]
    return list(dict.fromkeys(found))


def features_of_all(schemas: Sequence[tuple[str, Any]]) -> list[str]:
    """The columns of all files that are read where none are named."""
    return list(dict.fromkeys(name for _, schema in schemas for name in features_of(schema)))


def _partition_of(keys: dict[str, Any]) -> Any:
    """What pyarrow takes for the constant columns of a file."""
    whole = None
    for name, key in keys.items():
        column = import_module("pyarrow.compute").field(name)
        one = column == key if key.is_valid else column.is_null()
        whole = one if whole is None else whole & one
    return whole
