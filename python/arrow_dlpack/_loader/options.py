"""The keywords of `Loader`, ``iter_batches`` and ``BatchDataset``, written down here alone.

`LoaderOptions` has them with their defaults and checks them, once. Type checkers need each type a
second time, in a TypedDict, because the overloads tell what a batch is by some of the keywords.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from functools import wraps
from importlib import import_module
from inspect import Parameter, signature
from typing import Any, Literal, NamedTuple, TypedDict, TypeVar

from .. import _core, _frameworks
from .._frameworks import Framework
from .._items import items_of
from ..typing import Dtype, Nulls
from .calls import refusing
from .columns import (
    ByLength,
    ByTokens,
    Columns,
    Form,
    Wanted,
    check_dtype,
    check_twice,
    flag,
    integer,
    wanted,
)
from .readers import Made, reached
from .schema import Query
from .sharding import Uneven, resolved

_Function = TypeVar("_Function", bound=Callable[..., Any])

#: The keywords that decide what a column becomes, which are those of an `Encoder`.
ENCODED = (
    "columns",
    "label",
    "format",
    "dtype",
    "nulls",
    "framework",
    "writable",
    "physical",
    "copy",
)


class Training(NamedTuple):
    """What an `Encoder` was trained on, as one more part of each source that is read for it."""

    #: Of pyarrow's, labels last.
    schema: Any


class _Keywords(TypedDict, total=False):
    """What decides nothing about what is in a batch."""

    batch_size: int | ByLength | ByTokens | None
    dtype: Dtype | None
    filter: Any
    writable: bool | None
    shuffle: int | None
    seed: int | None
    drop_last: bool
    prefetch: int
    rank: int | Literal["auto"] | None
    world_size: int | None
    uneven: Uneven
    physical: bool
    copy: bool | None


class LoaderKeywords(_Keywords, total=False):
    """Columns without wishes; the batches are of our tensors."""

    columns: Sequence[str] | None
    encoder: None
    framework: None
    transform: None
    progress: bool


class AnyLoaderKeywords(_Keywords, total=False):
    """Whatever a batch may be; its overloads have ``transform=``."""

    columns: Columns | None
    encoder: Any
    framework: Framework | None
    progress: bool


class DatasetKeywords(_Keywords, total=False):
    """Columns without wishes; the batches are of PyTorch's tensors."""

    columns: Sequence[str] | None
    encoder: None
    transform: None


class AnyDatasetKeywords(_Keywords, total=False):
    """Whatever a batch of PyTorch's tensors may be."""

    columns: Columns | None
    encoder: Any
    transform: Callable[[Any], Any] | None


@dataclass(frozen=True, kw_only=True)
class LoaderOptions:
    """The keywords, checked as far as they can be without the source.

    `Loader` says what each means.
    """

    batch_size: int | ByLength | ByTokens | None = None
    columns: Columns | None = None
    label: str | Columns | None = None
    format: Literal["dict", "matrix"] = "dict"
    dtype: Dtype | None = None
    nulls: Nulls | Literal["mask"] = "error"
    filter: Any = None
    framework: Framework | None = None
    writable: bool | None = None
    shuffle: int | None = None
    seed: int | None = None
    drop_last: bool = False
    prefetch: int = 0
    rank: int | Literal["auto"] | None = None
    world_size: int | None = None
    uneven: Uneven = None
    transform: Callable[[Any], Any] | None = None
    progress: bool = False
    physical: bool = False
    copy: bool | None = None
    #: An `Encoder`, which says these; its `Training` once it has.
    encoder: Any = None
    #: What `columns` and `label` say.
    wanted: Wanted = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.encoder is not None and not isinstance(self.encoder, Training):
            self._take_from(self.encoder)
        _frameworks.check(self.framework)
        if self.uneven not in (None, "drop", "repeat", "allow"):
            raise ValueError(f'uneven must be "drop", "repeat" or "allow", got {self.uneven!r}')
        size, shuffle, seed = self.batch_size, self.shuffle, self.seed
        if size is not None and not isinstance(size, (ByLength, ByTokens)):
            size = integer("batch_size", size, 1)
        if not isinstance(self.format, str) or self.format not in ("dict", "matrix"):
            raise ValueError(f'format must be "dict" or "matrix", got {self.format!r}')
        check_dtype(self.dtype)
        if isinstance(self.nulls, Mapping):
            raise TypeError(
                f"nulls is one for all columns, got {self.nulls!r}: nulls= of a column's own wish, "
                'as columns={"x": Cast("float32", nulls=0)}, is of it alone (not in a matrix)'
            )
        _core._check_nulls(self.nulls)
        what = wanted(self.columns, self.label)
        if self.matrix:
            what.check_matrix(self.dtype)
        else:
            check_twice("columns", what.columns or ())  # a matrix may have a column twice
        self._check_together()
        own = {
            "batch_size": size,
            # The caller's lists and dicts may change later.
            "columns": _copied("columns", self.columns),
            "label": _copied("label", self.label),
            "wanted": what,
            "shuffle": None if shuffle is None else integer("shuffle", shuffle, 1, _SHUFFLE),
            "seed": None if seed is None else integer("seed", seed, 0, end=None),
            "drop_last": flag("drop_last", self.drop_last),
            "writable": None if self.writable is None else flag("writable", self.writable),
            "progress": flag("progress", self.progress),
            "prefetch": integer("prefetch", self.prefetch, 0, _PREFETCH),
        }
        _frameworks.copying(self.framework, self.writable, self.copy)
        resolved(self.rank, self.world_size)
        if self.transform is not None and not callable(self.transform):
            raise TypeError(f"transform must be a function of a batch, got {self.transform!r:.80}")
        self._check_calls(is_labelled=bool(what.labels))
        for name, value in own.items():
            object.__setattr__(self, name, value)

    def _take_from(self, encoder: Any) -> None:
        """What an encoder says, and no other keyword may; label=[] leaves its labels out."""
        own = getattr(encoder, "_options", None)
        if not isinstance(own, LoaderOptions) or not hasattr(encoder, "_engine"):
            one = "x.encoder()" if isinstance(own, LoaderOptions) else "Encoder.from_json(text)"
            raise TypeError(f"encoder must be an Encoder, as {one} is one, got {encoder!r:.80}")
        is_unlabelled = isinstance(self.label, (list, tuple)) and not self.label
        if is_unlabelled and encoder._engine is None:
            raise TypeError(
                "label=[] leaves out the label of a training, and this encoder has none yet: "
                "fit(source) gives it one"
            )
        for keyword in fields(self):
            if keyword.name in ENCODED and not (keyword.name == "label" and is_unlabelled):
                if getattr(self, keyword.name) != keyword.default:
                    raise TypeError(f"{keyword.name}= is the encoder's: leave it out")
                object.__setattr__(self, keyword.name, getattr(own, keyword.name))
        training = None
        if encoder._engine is not None:
            pa, labels = import_module("pyarrow"), own.wanted.labels if is_unlabelled else ()
            read = pa.schema(encoder.schema)
            training = Training(pa.schema([of for of in read if of.name not in labels]))
        object.__setattr__(self, "encoder", training)

    def _check_calls(self, *, is_labelled: bool) -> None:
        """An error for functions that do not take the one argument that they are called with."""
        batch = "one batch, a pair of features and label" if is_labelled else "one batch"
        for name, given in ("transform", batch), ("framework", "one tensor"):
            function = getattr(self, name)
            refused = refusing(function, 1) if callable(function) else None
            if refused is not None:
                raise TypeError(
                    f"{name} is called with {given}, and {refused} takes other arguments"
                )

    def _check_together(self) -> None:
        """An error for keywords of which one needs, or rules out, another."""
        size, shuffle = self.batch_size, self.shuffle
        if size is None and shuffle is not None:
            needs = "drop_last and shuffle need" if self.drop_last else "shuffle needs"
            raise TypeError(f"{needs} a batch_size")
        if size is None and self.drop_last:
            raise TypeError("drop_last needs a batch_size")
        if isinstance(size, ByTokens) and self.drop_last:
            raise TypeError("drop_last is for batches of a number of rows, which ByTokens has not")
        if shuffle is not None and self.copy is not None and not self.copy:
            raise BufferError("copying was forbidden, and shuffle copies each row")
        if shuffle is None and self.seed is not None:
            raise TypeError("seed is for shuffle")

    @property
    def matrix(self) -> bool:
        """Whether the features are one tensor."""
        return self.format == "matrix"

    @property
    def rows(self) -> int | None:
        """Of each batch but the last one, if that is said."""
        return self.batch_size if isinstance(self.batch_size, int) else None

    @property
    def training(self) -> Any:
        """The schema that an `Encoder` was trained on, None without one."""
        return None if self.encoder is None else self.encoder.schema

    @property
    def read(self) -> list[str] | None:
        """The columns that are read of the source, None for all."""
        columns, of = self.wanted.columns, self.batch_size
        if columns is None and self.training is not None:
            columns = self.training.names
        if columns is None:
            return None
        lengths = [of.column] if isinstance(of, (ByLength, ByTokens)) else []
        return list(dict.fromkeys([*columns, *self.wanted.labels, *lengths]))

    @property
    def query(self) -> Query:
        """What is read of the source."""
        what, training = self.wanted, self.training
        return Query(
            columns=self.read,
            where=self.filter,
            wishes=what.wishes,
            dtype=self.dtype,
            labels=what.labels,
            features=what.columns,
            physical=self.physical,
            is_part=training is not None,
            is_matrix=self.matrix,
            opened=None if training is None else [training],
        )

    def reads_groups(self, shares: int) -> bool:
        """Whether so many shares read row groups alone, of sources that have them."""
        is_whole = shares == 1 or self.filter is None
        return self.rows is not None and is_whole and not self.physical

    def batches_of(self, rows: int) -> int:
        """How many batches these rows are."""
        size = self.rows or 1
        return rows // size if self.drop_last else -(-rows // size)

    def with_copy_for(self, framework: Framework | None) -> "LoaderOptions":
        """With memory of their own for all tensors, if those of this framework are writable."""
        copy = _frameworks.copying(framework, self.writable, self.copy)
        return self if copy is self.copy else replace(self, copy=copy)

    def with_words(self, known: Mapping[str, Any]) -> "LoaderOptions":
        """With the wishes of these columns, whose words have been read."""

        def named(of: Any) -> Any:
            is_dict = isinstance(of, Mapping)
            return {name: known.get(name, wish) for name, wish in of.items()} if is_dict else of

        if not known:
            return self
        return replace(self, columns=named(self.columns), label=named(self.label))

    def open(
        self,
        stream: Any,
        *,
        seed: int | None = None,
        shard: tuple[int, int] = (0, 1),
        prefetch: int | None = None,
        progress: Any = None,
        skip: int = 0,
        resume: tuple[int, int, int] | None = None,
    ) -> _core._Batches:
        """The engine's batches of Arrow data whose categories are codes already."""
        if self.wanted.columns is None:
            stream = reached(stream, self.wanted.labels, keeps_others=True)
        rows = self.rows
        return _core._open_batches(
            (stream.schema, stream) if isinstance(stream, Made) else stream,
            self.for_engine(self.forms),
            batch_size=rows,
            drop_last=self.drop_last and rows is not None,
            shuffle=None if self.shuffle is None or rows is None else (self.shuffle, seed or 0),
            shard=shard,
            prefetch=self.prefetch if prefetch is None else prefetch,
            progress=progress,
            skip=skip,
            resume=resume,
        )

    def for_engine(self, forms: Mapping[str, Form]) -> dict[str, Any]:
        """What the engine is told of columns: of all, and by `forms` of each."""
        return {
            "columns": self.wanted.columns,
            "labels": self.wanted.labels,
            "as_matrix": self.matrix,
            "dtype": self.dtype,
            "nulls": self.nulls,
            "copy": self.copy,
            "physical": self.physical,
            "forms": forms,
        }

    @property
    def forms(self) -> dict[str, Form]:
        """What the engine is told of columns, of which categories are codes already."""
        forms = self.wanted.in_matrix() if self.matrix else self.wanted.forms
        # Codes are integers, which have no NaN: nulls= of Categories says what a null becomes.
        is_own = isinstance(self.nulls, str) and self.nulls in ("nan", "error")
        for name, wish in self.wanted.categories.items() if is_own else ():
            if name in forms and wish.nulls is None:
                forms[name] = "tensor", wish.dtype, "error"
        return forms


def _copied(argument: str, names: Any) -> Any:
    if names is None or isinstance(names, str):
        return names
    return dict(names) if isinstance(names, Mapping) else items_of(argument, names)


_SHUFFLE = (
    ": it is how many rows the buffer has that rows are drawn from, and the number of rows of the "
    "source shuffles all of them; leave it out for the order of the source"
)
_PREFETCH = ": it is how many batches are made ahead"


#: The keywords of a Loader, in their order.
_KEYWORDS = signature(LoaderOptions).parameters


class Settled:
    """What takes the keywords of `LoaderOptions` when it is made, and at no other time."""

    def __setattr__(self, name: str, value: Any) -> None:
        # A class below may have attributes of its own.
        if name in _KEYWORDS and type(self).__module__.startswith(f"{__package__}."):
            kind = type(self).__name__
            raise AttributeError(f"{name}= is said when a {kind} is made: make another one")
        super().__setattr__(name, value)


#: Of PyTorch's DataLoader, which Loader.torch makes.
_OF_WORKERS = ("num_workers", "persistent_workers", "pin_memory", "prefetch_factor")


def takes_options(*without: str) -> Callable[[_Function], _Function]:
    """Gives a function the keywords of `LoaderOptions`, for help(), editors and errors.

    It passes them on by ``**options``. without: keywords that it does not take.
    """
    known = {name: keyword for name, keyword in _KEYWORDS.items() if name not in without}

    def taking(function: _Function) -> _Function:
        own = signature(function)
        plain = [one for one in own.parameters.values() if one.kind is not Parameter.VAR_KEYWORD]

        @wraps(function)
        def checked(*args: Any, **options: Any) -> Any:
            if len(args) > len(plain):
                given = f"such as batch_size=, and got {args[len(plain)]!r:.60} without one"
                raise TypeError(f"{function.__qualname__}() takes options by keywords, {given}")
            for name in options:
                if name not in known:
                    meant = "".join(
                        f". Did you mean {one!r}?" for one in get_close_matches(name, known, 1)
                    )
                    if name in _OF_WORKERS:
                        meant = ": Loader(...).torch(num_workers=...) takes what a DataLoader does"
                    wrong = f"got an unexpected keyword argument {name!r}{meant}"
                    raise TypeError(f"{function.__qualname__}() {wrong}")
            return function(*args, **options)

        checked.__signature__ = own.replace(parameters=[*plain, *known.values()])  # type: ignore[attr-defined]
        return checked  # type: ignore[return-value]

    return taking
