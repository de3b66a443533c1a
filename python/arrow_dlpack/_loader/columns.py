"""What a column, or the size of a batch, may be asked to become: arguments of ``Loader``."""

import math
import operator
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence, Sized
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from numbers import Number, Real
from typing import Any, Literal, TypeAlias

from .. import _core
from .._frames import class_of
from .._items import items_of
from ..typing import Dtype, Nulls


@dataclass(frozen=True)
class Pad:
    """Lists as (rows, width), with their lengths: ``Padded(values, lengths)``, or ``LeftPadded``.

    value: fills rows that are shorter than the width.
    max_length: the width; None for that of the longest row of the batch.
    side: where a shorter row is filled.
    longer: "cut" keeps the first max_length items of a longer row, "error" refuses it.
    nulls: as in Loader, of this column; None for that of all columns.
    dtype: as in Loader, of the values of this column; "int64" makes indices of tokens of any width.
    """

    value: float
    max_length: int | None = None
    side: Literal["right", "left"] = "right"
    longer: Literal["cut", "error"] = "cut"
    nulls: Nulls | Literal["mask"] | None = None
    dtype: Dtype | None = None

    def __post_init__(self) -> None:
        given: object = self.value
        if given is None or isinstance(given, str):
            raise TypeError(f"value must be a number, got {given!r}")
        if self.max_length is not None:
            integer("max_length", self.max_length, 0)
        _one_of("side", self.side, "right", "left")
        _one_of("longer", self.longer, "cut", "error")
        check_dtype(self.dtype)
        _check_nulls(self.nulls)

    def _form(self) -> "Form":
        return "pad", self.value, self.max_length, self.side, self.longer, self.dtype, self.nulls


@dataclass(frozen=True)
class Dense:
    """Lists whose rows all have one length, as (rows, length); another length is an error.

    length: of all rows; None for that of the first row. It is needed with nulls=, because null rows
    get it too.
    nulls, dtype: as in Loader, of this column; None for those of all columns.
    """

    length: int | None = None
    nulls: Nulls | Literal["mask"] | None = None
    dtype: Dtype | None = None

    def __post_init__(self) -> None:
        if self.length is not None:
            integer("length", self.length, 0)
        check_dtype(self.dtype)
        _check_nulls(self.nulls)

    def _form(self) -> "Form":
        return "dense", self.length, self.dtype, self.nulls


@dataclass(frozen=True)
class AsArrow:
    """The rows of the batch as an Arrow array, for what no tensor can hold: texts, images.

    Values of a dictionary that are of an extension type, as pandas.cut makes it, are as stored.
    """

    def _form(self) -> "Form":
        return ("arrow",)


@dataclass(frozen=True)
class Cast:
    """One column's dtype, and what becomes of its nulls, in place of those of all columns.

    nulls: as in Loader, whose own do not reach this column: without it nulls are refused.
    """

    dtype: Dtype
    nulls: Nulls | Literal["mask"] = "error"

    def __post_init__(self) -> None:
        _core._dtype_name(self.dtype)
        _check_nulls(self.nulls)

    def _form(self) -> "Form":
        return "tensor", self.dtype, self.nulls


@dataclass(frozen=True)
class Categories:
    """Texts, dictionaries or other values as codes: the position of each in `words`.

    words: in the order of their codes; None to read the column once before the first epoch, and to
    number its values in sorted order, NaN last. The same words give the same codes in all
    processes, and ``loader.categories`` has those that were read, for another loader. Both zeros
    have one code, and so have all NaNs. Times with a zone are words of UTC, and those of NumPy may
    have another unit than the column. A word that the column cannot hold is an error, but for
    binaries of another length than all of the column's.
    unknown: the code of a value that is not among the words; None refuses it. It may be the code
    of a word that is there for them: ``Categories(["<unk>", "cat", "dog"], unknown=0)``.
    nulls: what becomes of nulls: a code, "mask", or "error" to refuse them. None: as in Loader,
    but "nan" refuses them, because codes are integers; in a matrix they are NaN.
    dtype: of the codes. PyTorch's losses take labels of "int64".
    """

    words: Sequence[Any] | None = None
    unknown: int | None = None
    nulls: int | Literal["error", "mask"] | None = None
    dtype: Literal["int32", "int64"] = "int32"

    def __init__(
        self,
        words: Sequence[Any] | None = None,
        unknown: int | None = None,
        nulls: int | Literal["error", "mask"] | None = None,
        dtype: Dtype = "int32",
    ) -> None:
        given: Any = words
        if hasattr(given, "columns"):
            kind = type(given).__name__
            raise TypeError(f"words must be a list of words, got a {kind}: pass a column of it")
        if words is not None and (isinstance(words, str) or not isinstance(words, Iterable)):
            # The dtypes of pandas and polars have them.
            way = ": pass x.categories" if hasattr(words, "categories") else ""
            raise TypeError(f"words must be a list of words, got {words!r}{way}")
        if isinstance(given, (set, frozenset, Mapping)):
            way = _way_of_codes(given) if isinstance(given, Mapping) else ": pass sorted(x)"
            raise TypeError(f"words must be a list, whose order says the codes, from 0 on{way}")
        most = 1 << 31  # as codes are int32, and as a list of them would have
        if isinstance(words, Sized) and len(words) > most:
            raise ValueError(f"words are {len(words)}, and at most {most} have codes")
        known = None if words is None else tuple(map(_word, words))
        if known is not None and None in known:
            raise ValueError("a null is no word: nulls= says what becomes of nulls")
        if known is not None and len(set(known)) < len(known):
            ((twice, _),) = Counter(known).most_common(1)
            raise ValueError(f"words must differ, and {twice!r} is there twice")
        object.__setattr__(self, "words", known)
        object.__setattr__(self, "unknown", None if unknown is None else _code("unknown", unknown))
        if isinstance(nulls, str) and nulls not in ("error", "mask"):
            raise TypeError(f'nulls must be a code, "error" or "mask", got {nulls!r}')
        if nulls is not None and not isinstance(nulls, str):
            nulls = _code("nulls", nulls)
        object.__setattr__(self, "nulls", nulls)
        name = _core._dtype_name(dtype)
        _one_of("dtype", name, "int32", "int64")
        object.__setattr__(self, "dtype", name)

    @classmethod
    def scan(
        cls,
        unknown: int | None = None,
        nulls: int | Literal["error", "mask"] | None = None,
        dtype: Dtype = "int32",
    ) -> "Categories":
        """Reads the column once, before the first epoch, for its words."""
        given: object = unknown
        if given is not None and not isinstance(given, Number):
            raise TypeError(
                f"scan() takes no data, got {type(given).__name__}: the Loader reads the words of "
                'its own source, as Loader(x, columns={"c": Categories.scan()}).categories'
            )
        return cls(None, unknown, nulls, dtype)

    def _form(self) -> "Form":
        return "tensor", self.dtype, self.nulls  # its codes are numbers before the engine sees them


@dataclass(frozen=True)
class ByLength:
    """Batches of `batch_size` rows of similar lengths: rows of each buffer are sorted by length.

    column: lists, texts or binaries. The buffer has ``shuffle=`` rows, or 100 batches; with
    ``shuffle=`` rows of one length are in any order, and so are the batches of a buffer.
    """

    batch_size: int
    column: str

    def __post_init__(self) -> None:
        integer("batch_size", self.batch_size, 1)
        _check_column(self.column)


@dataclass(frozen=True)
class ByTokens:
    """Batches of at most `budget` items, padding included: rows times the longest of them.

    Rows are sorted by length as `ByLength` does it. A row longer than the budget is an error.
    """

    budget: int
    column: str

    def __post_init__(self) -> None:
        integer("budget", self.budget, 1)
        _check_column(self.column)


def _check_column(column: Any) -> None:
    if not isinstance(column, str):
        raise TypeError(f"column must be the name of one column, got {column!r}")


def _word(word: Any) -> Any:
    """A word of pyarrow's as Python has it, as one that equals each that is the same value."""
    word = word.as_py() if hasattr(word, "as_py") else word
    if type(word).__name__ in ("NAType", "NaTType"):  # nulls of pandas's
        return None
    if is_time_of_numpy(word) and word != word:  # noqa: PLR0124
        return None  # NaT
    if not isinstance(word, Hashable):
        raise TypeError(f"words must be texts, numbers or other single values, got {word!r}")
    return canonical_word(word)


def canonical_word(word: Any) -> Any:
    """The word, or the one that equals all that are the same value: one NaN, and times of UTC.

    Two times of an hour that a zone has twice are equal in Python, and no time of another zone is.
    """
    has_zone = isinstance(word, datetime) and word.tzinfo is not None
    if has_zone and word.utcoffset() is not None:
        try:
            return word.astimezone(UTC)
        except OverflowError:
            raise ValueError(f"{word!r} is before or after the years of Python in UTC") from None
    return math.nan if is_nan(word) else word


def is_time_of_numpy(word: Any) -> bool:
    return isinstance(word, (class_of("numpy", "datetime64"), class_of("numpy", "timedelta64")))


def is_nan(word: Any) -> bool:
    """Whether it is a number, and not even itself."""
    return isinstance(word, Real) and bool(word != word)  # noqa: PLR0124


Wish: TypeAlias = Pad | Dense | AsArrow | Cast | Categories
#: Names in their order, or what each becomes.
Columns: TypeAlias = Sequence[str] | Mapping[str, Wish | None]
#: What the engine is told of a column.
Form: TypeAlias = tuple[Any, ...]


def fills_nulls(wish: Wish | None) -> bool:
    """Whether a column's wish says itself what becomes of nulls."""
    return getattr(wish, "nulls", None) not in (None, "error")


def _way_of_codes(words: Mapping[Any, Any]) -> str:
    """What makes the list of words of a dict that has their codes, or has them by their codes."""
    codes = list(range(len(words)))
    with suppress(TypeError):  # of what has no order
        if sorted(words.values()) == codes:
            return ": pass sorted(x, key=x.get)"
    with suppress(TypeError):
        if sorted(words) == codes:
            return ": pass [x[code] for code in range(len(x))]"
    return ""


#: Up to which integer a float of this dtype has each one.
_EXACT = {"bfloat16": 2**8, "float16": 2**11, "float32": 2**24, "float64": 2**53}


@dataclass(frozen=True)
class Wanted:
    """The columns and labels of a batch, and what each becomes."""

    columns: list[str] | None
    labels: list[str]
    wishes: dict[str, Wish]

    @property
    def forms(self) -> dict[str, Form]:
        """What the engine is told of these columns."""
        return {name: wish._form() for name, wish in self.wishes.items()}

    def in_matrix(self) -> dict[str, Form]:
        """Those of labels, and of columns whose wish a matrix has to refuse."""
        no_form = {
            name
            for name, wish in self.categories.items()
            if name not in self.labels and wish.nulls is None
        }
        return {name: form for name, form in self.forms.items() if name not in no_form}

    def check_matrix(self, dtype: Dtype | None) -> None:
        """An error for a feature whose wish a matrix of this dtype cannot meet."""
        kind = None if dtype is None else _core._dtype_name(dtype)
        most = _EXACT.get(kind or "", math.inf)
        for name, wish in self.wishes.items():
            if name in self.labels:
                continue
            if isinstance(wish, (AsArrow, Pad)):
                raise ValueError(
                    f'column "{name}" cannot be {type(wish).__name__}() in a matrix: leave it out '
                    'with columns=, or use format="dict"'
                )
            own = None if isinstance(wish, Categories) else wish.dtype
            if isinstance(wish, Cast) or own is not None or wish.nulls is not None:
                raise ValueError(
                    f'column "{name}": a matrix has one dtype= and one nulls= for all of its '
                    'columns: pass them to Loader, or use format="dict"'
                )
            if isinstance(wish, Categories):
                code = max(len(wish.words or ()) - 1, abs(wish.unknown or 0))
                if code > most:  # which would be rounded to that of another word
                    raise ValueError(
                        f'column "{name}" has codes up to {code}, and {kind} has each integer up '
                        f'to {most} alone: pass a wider dtype=, or use format="dict"'
                    )

    @property
    def categories(self) -> dict[str, Categories]:
        """Columns that are encoded."""
        of = self.wishes.items()
        return {name: wish for name, wish in of if isinstance(wish, Categories)}


def wanted(columns: Columns | None, label: str | Columns | None) -> Wanted:
    """What these arguments say; a name may not have two wishes."""
    names, wishes = _names("columns", columns) if columns is not None else (None, {})
    several = [label] if isinstance(label, str) else [] if label is None else label
    labels, of_labels = _names("label", several)
    check_twice("label", labels)
    return Wanted(names, labels, wishes | of_labels)


def check_twice(argument: str, names: Sequence[str]) -> None:
    """Refuses a name that is there twice."""
    twice = next((name for name, times in Counter(names).items() if times > 1), None)
    if twice is not None:
        raise KeyError(f'{argument}= names "{twice}" twice')


def _names(argument: str, columns: Columns) -> tuple[list[str], dict[str, Wish]]:
    what = "a list of names" if argument == "columns" else "the name of a column, or several"
    if isinstance(columns, str):
        raise TypeError(f"{argument} must be {what}, got {columns!r}: did you mean [{columns!r}]?")
    given: Any = columns
    is_class = isinstance(given, type)
    if isinstance(given, Wish) or (is_class and issubclass(given, Wish)):
        raise TypeError(
            f"{argument} must be {what}, got {_shown(given)}: a dict says what each becomes, as "
            '{"x": Cast("float32")}'
        )
    if isinstance(given, (set, frozenset)):
        raise TypeError(
            f"{argument} must be {what}, got a set, which has no order: sorted(x) is a list of them"
        )
    if isinstance(given, Iterable) and not hasattr(given, "__getitem__"):
        raise TypeError(f"{argument} must be {what}, got {_shown(given)}: list(x) is one")
    if is_class or isinstance(given, bytes) or not hasattr(given, "__getitem__"):
        raise TypeError(
            f"{argument} must be {what}, got {columns!r}: names are texts, and pandas' 0 is called "
            '"0" in Arrow'
        )
    names = items_of(argument, columns)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(
                f"{argument} must be {what}, and names are texts (pandas' 0 is called "
                f'"0" in Arrow), got {columns!r}'
            )
    wishes = dict(columns) if isinstance(columns, Mapping) else {}
    for name, wish in wishes.items():
        if wish is not None and not isinstance(wish, Wish):
            raise TypeError(
                f'column "{name}" may become Pad, Dense, AsArrow, Cast, Categories or None, '
                f"got {_shown(wish)}{_meant(wish)}"
            )
    return names, {name: wish for name, wish in wishes.items() if wish is not None}


def _shown(wish: Any) -> str:
    return wish.__name__ if isinstance(wish, type) and issubclass(wish, Wish) else repr(wish)


def _meant(wish: Any) -> str:
    """The wish that was probably meant, as a question."""
    if isinstance(wish, type) and issubclass(wish, Wish):
        return f": did you mean {wish.__name__}(...)?"
    if getattr(wish, "__self__", None) is Categories:
        return ": did you mean Categories.scan()?"
    if isinstance(wish, (list, tuple, set, frozenset)):
        return ": did you mean Categories([...]), of these words?"
    if isinstance(wish, str) and wish.startswith("categor"):
        return ": did you mean Categories([...]), or Categories.scan()?"
    try:
        return f': did you mean Cast("{_core._dtype_name(wish)}")?'
    except (TypeError, ValueError):
        return ""


def check_dtype(dtype: Any) -> None:
    """An error for what is neither None nor a dtype."""
    if isinstance(dtype, Mapping):
        name, own = next(iter(dtype.items()), ("x", "float32"))
        raise TypeError(
            f"dtype is one for all columns, got {dtype!r}: did you mean "
            f'columns={{"{name}": Cast("{own}")}}? (a matrix has one dtype)'
        )
    if dtype is not None:
        _core._dtype_name(dtype)


def _check_nulls(nulls: Any) -> None:
    """An error for what is neither None, as of all columns, nor what nulls become."""
    if nulls is not None:
        _core._check_nulls(nulls)


def integer(name: str, value: Any, least: int, meaning: str = "", end: int | None = 2**64) -> int:
    """The number; an error that names the argument, and what it means, if it is none."""
    wrong = f"{name} must be an integer of at least {least}, got {value!r}{meaning}"
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(wrong)
    try:
        number = operator.index(value)
    except TypeError as error:  # of an array of several
        raise TypeError(wrong) from error
    if number < least:
        raise ValueError(wrong)
    if end is not None and number >= end:
        raise ValueError(f"{name} must be an integer below {end}, got {value!r}{meaning}")
    return number


def flag(name: str, value: Any) -> bool:
    """The boolean, of NumPy too; an error that names the argument, if it is none."""
    if type(value).__name__ not in ("bool", "bool_"):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def _code(name: str, value: Any) -> int:
    code = integer(name, value, -(2**31))
    if code >= 2**31:
        raise ValueError(f"{name} must be a code of 32 bits, got {value!r}")
    return code


def _one_of(name: str, value: object, *known: str) -> None:
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"{name} must be {' or '.join(map(repr, known))}, got {value!r}")
