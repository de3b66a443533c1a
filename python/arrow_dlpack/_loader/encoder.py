"""``Encoder``: rows of a service as what a model had in training."""

import json
from collections.abc import Mapping
from dataclasses import replace
from difflib import unified_diff
from importlib import import_module
from typing import Any, Literal
from uuid import UUID

from .. import _core, _frameworks
from .._arrow_types import meaning_of, name_of
from .._frameworks import Framework
from ..typing import Dtype, Nulls
from .categories import coder_of, is_uuid
from .columns import AsArrow, Cast, Categories, Columns, Form, Wish, fills_nulls, flag
from .merging import type_of_all
from .options import ENCODED, LoaderOptions, Settled
from .readers import Made, reached, reader_of, request_of, table_of
from .schema import Part, Query, check_lacking, differ, fitted, retyped
from .source import Opened, Source
from .written import read, written


class Encoder(Settled):
    """What a `Loader` makes of its columns, as an object: of one row as of an epoch.

    ``loader.encoder()`` has the types and the words of the loader's source, and
    ``Encoder(columns=...).fit(source)`` those of any source that a Loader takes. Called with rows,
    it returns the features that a batch of them would be: one dict of tensors, or a matrix.

    columns, label, format, dtype, nulls, framework, writable, physical, copy: as in `Loader`.

    Rows are a table, a record batch or a frame; a dict of columns, which are Arrow data, tensors or
    lists; or a list of dicts, as JSON has them. They are what they would have been in training, or
    an error that names row and column:

    - A column has its type of training, or one of the same values: integers of another width and
      integers as floats and decimals where each is exact, narrower floats, texts of another layout,
      times of another unit where exact, tensors whose axes lie in another order or are lists in
      lists, nulls. Floats that would be rounded are refused. Of bfloat16 and narrower floats, of
      which Arrow has the bits, a column is a tensor of that dtype, or what
      ``from_dlpack(tensor, type="opaque")`` makes of it.
    - A number of Python's is an integer where it is whole, and a float where it is exact; a float
      is rounded to a narrower one, and refused if it becomes infinite. No boolean is a number, and
      no text is a number or a time.
    - A column or key that is missing is an error, unless its own wish has ``nulls=``. Others than
      those of training are ignored.

    Threads may share an encoder. It takes no filter, and draws, sorts and transforms nothing.

    >>> import arrow_dlpack, pyarrow as pa
    >>> table = pa.table({"fare": [7.5, 20.0], "port": ["B", "A"], "paid": [0, 1]})
    >>> wishes = {"fare": None, "port": arrow_dlpack.Categories.scan(unknown=-1)}
    >>> loader = arrow_dlpack.Loader(
    ...     table, batch_size=2, columns=wishes, label="paid", framework="numpy"
    ... )
    >>> encoder = loader.encoder()
    >>> encoder([{"port": "B", "fare": 9}, {"port": "C", "fare": 1.5}])
    {'fare': array([9. , 1.5]), 'port': array([ 1, -1], dtype=int32)}
    >>> arrow_dlpack.Encoder.from_json(encoder.to_json()) == encoder
    True
    """

    def __init__(
        self,
        *,
        columns: Columns | None = None,
        label: str | Columns | None = None,
        format: Literal["dict", "matrix"] = "dict",
        dtype: Dtype | None = None,
        nulls: Nulls | Literal["mask"] = "error",
        framework: Framework | None = None,
        writable: bool | None = None,
        physical: bool = False,
        copy: bool | None = None,
    ) -> None:
        self._options = LoaderOptions(
            columns=columns,
            label=label,
            format=format,
            dtype=dtype,
            nulls=nulls,
            framework=framework,
            writable=writable,
            physical=physical,
            copy=copy,
        )
        self._engine: _core._Encoder | None = None

    def fit(self, source: Any, /) -> "Encoder":
        """Takes the types of a source's columns, and reads it once where `Categories` has no words.

        source: as in `Loader`; an iterator of batches loses its first one. Returns the encoder
        itself.
        """
        loader = import_module(f"{__package__}.loader").Loader
        learned = loader(source, **keywords_of(self._options)).encoder()
        self._options, self._engine = learned._options, learned._engine
        return self

    def __call__(self, rows: Any, /, *, label: bool = False) -> Any:
        """The features of these rows; with ``label=True`` the pair of features and label.

        Errors name row and column: a KeyError for what is missing, a TypeError for another kind of
        values, a ValueError for a value that would change, or that is no word.
        """
        engine, options = self._made, self._options
        labels, label = options.wanted.labels, flag("label", label)
        if label and not labels:
            raise TypeError("this encoder has no label: label=True is for one that has")
        try:
            batch = engine.encode(request_of(rows, self._names), label)
        except BufferError as error:
            if isinstance(error, TypeError):
                raise
            # What NumPy and PyTorch say of arrays that they cannot hand out.
            told = [str(error), *getattr(error, "__notes__", [])]
            raise _core.UnsupportedError("; ".join(told)) from error
        if options.framework is None:
            return batch
        take = _frameworks.taker(options.framework)
        return _frameworks.taken(batch, take, labels if label else ())

    @property
    def schema(self) -> _core.Field:
        """The columns that it reads, with their types in training, labels last.

        ``pyarrow.schema(encoder.schema)`` is pyarrow's.
        """
        return self._made.schema

    @property
    def categories(self) -> dict[str, tuple[Any, ...]]:
        """The words of each column of `Categories`, in the order of their codes."""
        known = self._options.wanted.categories
        return {name: tuple(wish.words or ()) for name, wish in known.items()}

    def to_json(self, *, framework: Framework | Literal["own"] | None = "own") -> str:
        """The encoder as strict JSON: the same encoder is the same text.

        framework: in place of the encoder's; None leaves out a function, which no text has, and
        which `from_json` takes.
        """
        options = self._options
        if framework != "own":
            options = replace(options, framework=framework)
        return written(options, self._made.schema)

    @classmethod
    def from_json(
        cls, text: str | bytes, /, *, framework: Framework | Literal["own"] | None = "own"
    ) -> "Encoder":
        """The encoder of `to_json`, which needs no training data, and for dicts no pyarrow.

        framework: in place of that of the text.
        """
        options, schema = read(text)
        if framework != "own":
            options = replace(options, framework=framework)
        made = cls.__new__(cls)
        made._options, made._engine = options, engine_of(options, schema)
        return made

    def diff(self, other: "Encoder") -> list[str]:
        """What differs in the other one, in lines: "-" as it is here, "+" as it is there."""
        if not isinstance(other, Encoder):
            raise TypeError(
                f"diff() compares with another Encoder, got {type(other).__name__}: "
                "Encoder.from_json(x) is one of a text, and loader.encoder() of a Loader"
            )
        told = list(unified_diff(self._lines(), other._lines(), lineterm="", n=0))[2:]
        told = [f"{line[0]}  {line[1:]}" for line in told if not line.startswith("@@")]
        if not told and (one := self._type()) != (its := other._type()):
            # What pyarrow does not show: that there are no nulls, extension types that it lacks.
            told = [f"-  schema: {one}", f"+  schema: {its}"]
        for name, words in self.categories.items():
            theirs = other.categories.get(name)
            if theirs is not None and theirs != words:
                here, there = set(words), set(theirs)
                told += [f'- "{name}" has the word {word!r}' for word in words if word not in there]
                told += [f'+ "{name}" has the word {word!r}' for word in theirs if word not in here]
                if here == there:
                    told.append(f'+ "{name}" has its words in another order')
        return told

    def _lines(self) -> list[str]:
        """What its repr says, in full; dtypes and words as a text has them, which has one form."""
        options, schema = self._options, None
        if self._engine is not None:
            options, schema = read(self.to_json(framework=None))
            options = replace(options, framework=self._options.framework)
        of_encoder = import_module(f"{__package__}.summary").lines_of_encoder
        return list(of_encoder(schema, options, is_whole=True))

    def _type(self) -> str:
        return "" if self._engine is None else json.dumps(_core._members(self._engine.schema))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Encoder):
            return NotImplemented
        if self._engine is None or other._engine is None:
            return self is other
        is_one = self._options.framework == other._options.framework
        return is_one and self.to_json(framework=None) == other.to_json(framework=None)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        schema = None if self._engine is None else self._engine.schema
        of_encoder = import_module(f"{__package__}.summary").of_encoder
        return str(of_encoder(schema, self._options))

    def __reduce__(self) -> tuple[Any, ...]:
        framework = self._options.framework
        if self._engine is None:
            return _unfitted, (keywords_of(self._options),)
        return _restored, (self.to_json(framework=None), framework)

    def _names(self) -> list[str]:
        columns = _core._members(self._made.schema).get("children", [])
        return [column["name"] for column in columns]

    @property
    def _made(self) -> _core._Encoder:
        if self._engine is None:
            raise ValueError(
                "this Encoder knows no types yet: fit(source) takes those of training, or "
                "loader.encoder() makes one that has them"
            )
        return self._engine


def _restored(text: str, framework: Framework | None) -> Encoder:
    return Encoder.from_json(text, framework=framework)


def _unfitted(keywords: Mapping[str, Any]) -> Encoder:
    return Encoder(**keywords)


def keywords_of(options: LoaderOptions) -> dict[str, Any]:
    """Those of a Loader that an encoder has."""
    return {name: getattr(options, name) for name in ENCODED}


def trained(source: Source, options: LoaderOptions) -> Encoder:
    """The encoder of what a Loader reads, whose categories have words.

    No row is read for the types.
    """
    schema = _read_schema(source, options)
    for field in schema:
        if isinstance(options.wanted.wishes.get(field.name), (AsArrow, Categories)):
            _check_values(field)
    own = LoaderOptions(**keywords_of(options))
    known = {}
    for name, wish in options.wanted.categories.items():
        words = _as_held(name, wish, schema)
        known[name] = replace(wish, words=words)
    own = own.with_words(known)
    made = Encoder.__new__(Encoder)
    made._options, made._engine = own, engine_of(own, schema)
    return made


def _read_schema(source: Source, options: LoaderOptions) -> Any:
    """That of the columns which a Loader reads, before they are codes."""
    what, query = options.wanted, source.asked(_of_requests(options.query))
    if isinstance(source, Opened) and source.once and (schema := source.schema(query)) is not None:
        # To open a reader of another library takes its rows from it.
        source = Opened(lambda columns: table_of(schema))
    with source.explaining(query):
        stream = source.read(query)
        if options.training is not None:
            return as_trained(stream, options.training, query, source.way).schema
        if what.columns is None:
            stream = reached(stream, what.labels, keeps_others=True)
        return reader_of(stream).schema


def _check_values(field: Any) -> None:
    """Refuses dictionaries of an extension type that Arrow has not: of a request arrow-rs has no
    place for what tells its type from others of one storage.
    """
    name, kind = field.name, field.type
    if not _has_coded_extensions(kind):
        return
    told = (
        f'column "{name}" is {kind}, and in a request dictionaries of one extension type are not '
        "told from those of another: "
    )
    if not import_module("pyarrow").types.is_dictionary(kind):
        raise TypeError(f"{told}columns= leaves it out")
    of_pandas = f'frame.astype({{"{name}": frame["{name}"].cat.categories.dtype}})'
    raise TypeError(
        f"{told}{of_pandas} has its values, and so has pyarrow.chunked_array("
        f'[chunk.dictionary_decode() for chunk in table["{name}"].chunks])'
    )


def _has_coded_extensions(kind: Any) -> bool:
    """Whether there is a dictionary of such a type in it, at any depth."""
    pa = import_module("pyarrow")
    if pa.types.is_dictionary(kind):
        values = pa.field("", kind.value_type)
        return not meaning_of(values).equals(values.type)
    return any(_has_coded_extensions(kind.field(at).type) for at in range(kind.num_fields))


def _of_requests(query: Query) -> Query:
    """What is read for the types of an encoder, which are those of all parts.

    Numbers of parts that have no type in common are float64, whatever float or code the column's
    wish makes of them: a request may be of the type of any part.
    """

    def wide(dtype: Any) -> Any:
        is_float = dtype is not None and "float" in _core._dtype_name(dtype)
        return "float64" if is_float else dtype

    wishes: dict[str, Wish] = {}
    for name, wish in query.wishes.items():
        if isinstance(wish, Categories):
            wishes[name] = Cast("float64", 0 if fills_nulls(wish) else "error")
        elif isinstance(wish, AsArrow):
            wishes[name] = wish
        else:
            wishes[name] = replace(wish, dtype=wide(wish.dtype))
    dtype = wide(query.dtype)
    return replace(query, wishes=wishes, dtype=dtype, where=None, is_of_requests=True)


def as_trained(stream: Any, schema: Any, query: Query, way: str) -> Any:
    """The columns of a training, each of the type that has the values of both.

    stream: what is read by the query, of which `Categories` are codes already.
    schema: that of the training.
    way: how the source gets another type, for errors.
    """
    pa, reader = import_module("pyarrow"), reader_of(stream)
    read, fields = reader.schema, []
    for own in schema:
        name, code = own.name, query.categories.get(own.name)
        at = read.get_field_index(name)
        if at < 0:
            check_lacking(name, Part("the source", read, read.names), query)
            fields.append(pa.field(name, pa.type_for_alias(code.dtype) if code else own.type))
        elif code:
            fields.append(read.field(at))
        else:
            parts = ("the encoder", own), ("the source", read.field(at))
            dtype, pair = query.dtype_of(name), [part for _, part in parts]
            kind = type_of_all(pair, dtype)
            if kind is None and meaning_of(pair[1]).equals(pair[1].type):
                # As the encoder does, for what an unregistered type is stored as.
                kind = type_of_all(pair, dtype, is_stored=True)
            if kind is None:
                one, other = map(meaning_of, pair)
                cast = retyped(name, one, other, way)
                none = f"make it {name_of(pair[0])} first, to which pyarrow has no cast"
                raise TypeError(f"{differ(name, parts, dtype)}: {cast or none}")
            fields.append(read.field(at).with_type(kind))
    whole = pa.schema(fields, read.metadata)
    return Made(whole, (fitted(batch, whole, query) for batch in reader))


def _as_held(name: str, wish: Categories, schema: Any) -> list[Any]:
    """The words as the column's type has them; those that it cannot hold as they are."""
    kind = schema.field(name).type
    own = coder_of(name, wish, kind).known.to_pylist()
    words = [
        word if held is None else held for word, held in zip(wish.words or (), own, strict=True)
    ]
    return [UUID(bytes=word) for word in words] if is_uuid(kind) else words


def engine_of(options: LoaderOptions, schema: Any) -> _core._Encoder:
    """The engine of an encoder, whose categories have words."""
    what = options.wanted
    forms: dict[str, Form] = dict(options.forms)
    alone = _alone(schema) if what.categories else {}
    for name, wish in what.categories.items():
        words = _core._words(list(wish.words or ()), alone.get(name, schema), name)
        made = _core._categories(words, unknown=wish.unknown)
        if isinstance(made, tuple):
            one, other = (wish.words or ())[made[0]], (wish.words or ())[made[1]]
            raise ValueError(f'the words {one!r} and {other!r} of column "{name}" are one value')
        *_, nulls = forms.get(name, (None,))
        forms[name] = "categories", made, wish.dtype, nulls
    return _core._Encoder(
        schema,
        options.with_copy_for(options.framework).for_engine(forms),
        may_lack=[name for name, wish in what.wishes.items() if fills_nulls(wish)],
    )


def _alone(schema: Any) -> dict[str, _core.Field]:
    """The schema of each column alone, so that of thousands not all are read for each."""
    whole = _core._members(schema)
    columns = whole.get("children", [])
    return {one["name"]: _core._schema_of(whole | {"children": [one]}) for one in columns}
