"""What a `Loader` tells the engine: its arguments, judged once."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Literal

from .. import _core, _frameworks
from ..typing import Dtype, Nulls
from .columns import ByLength, ByTokens, Columns, Wanted, check_dtype, integer, wanted
from .readers import Made, reached
from .schema import Query


@dataclass(frozen=True)
class Settings:
    """Arguments that have been checked."""

    wanted: Wanted
    batch_size: int | ByLength | ByTokens | None
    dtype: Dtype | None
    matrix: bool
    nulls: Nulls | Literal["mask"]
    filter: Any
    drop_last: bool
    shuffle: int | None
    seed: int | None
    prefetch: int
    physical: bool
    copy: bool | None
    #: Whether other parts of a function have rows too, of other types perhaps.
    is_part: bool = False

    @property
    def rows(self) -> int | None:
        """Of each batch but the last one, if that is said."""
        return self.batch_size if isinstance(self.batch_size, int) else None

    @property
    def read(self) -> list[str] | None:
        """The columns that are read of the source, None for all."""
        columns, of = self.wanted.columns, self.batch_size
        if columns is None:
            return None
        lengths = [of.column] if isinstance(of, (ByLength, ByTokens)) else []
        return list(dict.fromkeys([*columns, *self.wanted.labels, *lengths]))

    @property
    def query(self) -> Query:
        """What is read of the source."""
        what = self.wanted
        return Query(
            columns=self.read,
            where=self.filter,
            wishes=what.wishes,
            dtype=self.dtype,
            labels=what.labels,
            features=what.columns,
            is_part=self.is_part,
            physical=self.physical,
        )

    def batches_of(self, rows: int) -> int:
        """How many batches so many rows are."""
        size = self.rows or 1
        return rows // size if self.drop_last else -(-rows // size)

    def written(self, writable: bool) -> "Settings":
        """With memory of their own for all tensors, if they are to be writable."""
        copy = _frameworks.copying(writable, self.copy)
        return self if copy is self.copy else replace(self, copy=copy)

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
        names, labels = self.wanted.columns, self.wanted.labels
        forms = self.wanted.in_matrix() if self.matrix else self.wanted.forms
        # Codes have no "nan", and their nulls are for Categories to say.
        is_own = isinstance(self.nulls, str) and self.nulls in ("nan", "error")
        for name, wish in self.wanted.categories.items() if is_own else ():
            if name in forms and wish.nulls is None:
                forms[name] = "tensor", wish.dtype, "error"
        rows = self.rows
        return _core._open_batches(
            (stream.schema, stream) if isinstance(stream, Made) else stream,
            columns=names,
            labels=labels,
            as_matrix=self.matrix,
            dtype=self.dtype,
            nulls=self.nulls,
            copy=self.copy,
            physical=self.physical,
            batch_size=rows,
            drop_last=self.drop_last and rows is not None,
            shuffle=None if self.shuffle is None or rows is None else (self.shuffle, seed or 0),
            shard=shard,
            prefetch=self.prefetch if prefetch is None else prefetch,
            progress=progress,
            skip=skip,
            resume=resume,
            forms=forms or None,
        )


def checked(
    *,
    batch_size: int | ByLength | ByTokens | None,
    columns: Columns | None,
    label: str | Columns | None,
    format: str,
    dtype: Dtype | None,
    nulls: Nulls | Literal["mask"],
    filter: Any,
    drop_last: bool,
    shuffle: int | None,
    seed: int | None,
    prefetch: int,
    physical: bool,
    copy: bool | None,
) -> Settings:
    """The arguments, if they go together."""
    is_sized = isinstance(batch_size, (ByLength, ByTokens))
    if batch_size is not None and not is_sized:
        batch_size = integer("batch_size", batch_size, 1)
    if format not in ("dict", "matrix"):
        raise ValueError(f'format must be "dict" or "matrix", got {format!r}')
    check_dtype(dtype)
    if isinstance(nulls, Mapping):
        raise TypeError(
            f"nulls is one for all columns, got {nulls!r}: nulls= of a column's own wish, as "
            'columns={"x": Cast("float32", nulls=0)}, is of it alone'
        )
    what = wanted(columns, label)
    if format == "matrix":
        what.check_matrix()
    if batch_size is None and shuffle is not None:
        needs = "drop_last and shuffle need" if drop_last else "shuffle needs"
        raise TypeError(f"{needs} a batch_size")
    if batch_size is None and drop_last:
        raise TypeError("drop_last needs a batch_size")
    if isinstance(batch_size, ByTokens) and drop_last:
        raise TypeError("drop_last is for batches of so many rows, which ByTokens has not")
    if shuffle is not None:
        if copy is not None and not copy:
            raise BufferError("copying was forbidden, and shuffle copies each row")
        shuffle = integer("shuffle", shuffle, 1, _SHUFFLE)
    elif seed is not None:
        raise TypeError("seed is for shuffle")
    return Settings(
        wanted=what,
        batch_size=batch_size,
        dtype=dtype,
        matrix=format == "matrix",
        nulls=nulls,
        filter=filter,
        drop_last=bool(drop_last),
        shuffle=shuffle,
        seed=None if seed is None else integer("seed", seed, 0, end=None),
        prefetch=integer("prefetch", prefetch, 0, _PREFETCH),
        physical=physical,
        copy=copy,
    )


_SHUFFLE = (
    ": it is how many rows the buffer has that rows are drawn from, and the number of rows of the "
    "source shuffles all of them; leave it out for the order of the source"
)
_PREFETCH = ": it is how many batches are made ahead"


def seed_of(seed: int, index: int) -> int:
    """That of one of several readers, who are to draw differently."""
    return seed % 2**64 if index == 0 else random.Random(f"{seed}, {index}").getrandbits(53)


def bar_of(rows: int | None) -> Any:
    """A bar of progress."""
    try:
        tqdm = import_module("tqdm.auto").tqdm
    except ImportError as error:
        raise ImportError("progress=True needs tqdm: pip install tqdm") from error
    return tqdm(total=rows, unit="row", unit_scale=True)
