"""``iter_batches``: what needs no speed of it."""

import atexit
import os
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Unpack, overload

from . import _core
from ._core import Batches, Tensor
from ._options import Options
from .typing import (
    Dtype,
    Nulls,
    SupportsArrowArray,
    SupportsArrowStream,
    SupportsReader,
    SupportsScanner,
)

if TYPE_CHECKING:
    from ._wishes import Columns

# A thread that reads ahead may need the interpreter for its source: it ends before that does.
atexit.register(_core._stop_batches)

Arrow: TypeAlias = SupportsArrowStream | SupportsArrowArray
Path: TypeAlias = str | os.PathLike[str]
Source: TypeAlias = (
    Arrow
    | SupportsScanner
    | SupportsReader
    | Path
    | Sequence[Path]
    | Sequence[Arrow]
    | Iterator[Arrow]
)

#: Values, and where they are valid.
Masked: TypeAlias = tuple[Tensor, Tensor]


class BatchOptions(Options, total=False):
    """What decides nothing about what is in a batch."""

    batch_size: int | None
    shard: tuple[int, int]
    progress: bool


class IterOptions(BatchOptions, total=False):
    """Columns without wishes."""

    columns: Sequence[str] | None


class WishOptions(BatchOptions, total=False):
    """Columns that may have wishes."""

    columns: "Columns | None"


@overload
def iter_batches(
    source: Source,
    /,
    *,
    format: Literal["dict"] = ...,
    label: None = ...,
    nulls: Nulls = ...,
    **options: Unpack[IterOptions],
) -> Batches[dict[str, Tensor]]: ...


@overload
def iter_batches(
    source: Source,
    /,
    *,
    format: Literal["dict"] = ...,
    label: str,
    nulls: Nulls = ...,
    **options: Unpack[IterOptions],
) -> Batches[tuple[dict[str, Tensor], Tensor]]: ...


@overload
def iter_batches(
    source: Source,
    /,
    *,
    format: Literal["matrix"],
    label: None = ...,
    nulls: Nulls = ...,
    **options: Unpack[IterOptions],
) -> Batches[Tensor]: ...


@overload
def iter_batches(
    source: Source,
    /,
    *,
    format: Literal["matrix"],
    label: str,
    nulls: Nulls = ...,
    **options: Unpack[IterOptions],
) -> Batches[tuple[Tensor, Tensor]]: ...


@overload
def iter_batches(
    source: Source,
    /,
    *,
    format: Literal["dict"] = ...,
    label: None = ...,
    nulls: Literal["mask"],
    **options: Unpack[IterOptions],
) -> Batches[dict[str, Masked]]: ...


@overload
def iter_batches(
    source: Source,
    /,
    *,
    format: Literal["dict"] = ...,
    label: str,
    nulls: Literal["mask"],
    **options: Unpack[IterOptions],
) -> Batches[tuple[dict[str, Masked], Masked]]: ...


@overload
def iter_batches(
    source: Source,
    /,
    *,
    format: Literal["matrix"],
    label: None = ...,
    nulls: Literal["mask"],
    **options: Unpack[IterOptions],
) -> Batches[Masked]: ...


@overload
def iter_batches(
    source: Source,
    /,
    *,
    format: Literal["matrix"],
    label: str,
    nulls: Literal["mask"],
    **options: Unpack[IterOptions],
) -> Batches[tuple[Masked, Masked]]: ...


@overload
def iter_batches(
    source: Source,
    /,
    *,
    format: Literal["dict", "matrix"] = ...,
    label: str | None = ...,
    nulls: Nulls | Literal["mask"] = ...,
    **options: Unpack[WishOptions],
) -> Batches[Any]: ...


def iter_batches(
    source: Source,
    /,
    *,
    batch_size: int | None = None,
    columns: "Columns | None" = None,
    dtype: Dtype | None = None,
    format: Literal["dict", "matrix"] = "dict",
    label: str | None = None,
    nulls: Nulls | Literal["mask"] = "error",
    filter: Any = None,
    drop_last: bool = False,
    shuffle: int | None = None,
    seed: int | None = None,
    prefetch: int = 0,
    progress: bool = False,
    physical: bool = False,
    shard: tuple[int, int] = (0, 1),
    copy: bool | None = None,
) -> Batches[Any]:
    """A stream of Arrow data as tensors, batch by batch; memory does not grow with the stream.

    One pass over the rows of a source; `Loader` makes epochs, ranks and PyTorch's tensors of them.

    source: any object with __arrow_c_stream__ (tables, readers, query results), a dataset or
    scanner of pyarrow, a path, or any other source of `Loader` except a function. Of files only the
    columns that are asked for are read.
    batch_size: rows of a batch, of which the last may have fewer; None for the batches of the
    source. Rows within one chunk of the source are shared, those across an edge copied once.
    columns: names, in the order of the result, or a dict of names and what becomes of each, as in
    `Loader`; None for all but an index of pandas's. Other columns may have any type.
    dtype: of all features, as in to_tensor. The label keeps its own.
    format: "dict" for a dict of Tensors, "matrix" for one Tensor (rows, columns). In a matrix a
    column of fixed-size lists, or of lists that are Dense(), is as many columns as a list has
    values.
    label: the column to predict. It is none of the features, and each batch is a pair
    (features, label).
    nulls: as in to_tensor. With "mask" each tensor becomes a pair (values, mask).
    filter: an expression of pyarrow; rows for which it does not hold are left out.
    drop_last: True to leave out a last batch of fewer rows.
    shuffle: rows are drawn at random from a buffer of at least so many; it needs batch_size. The
    buffer holds up to twice as many, and both its old and its new rows while it is filled up. Drawn
    rows are copies, which may be written to.
    seed: the same seed gives the same order, whatever the chunks of the source; with None each
    call has another order. For epochs that differ and can be repeated there is `Loader`.
    prefetch: how many batches a thread makes ahead; it needs no GIL unless the source does. It
    starts when the loop is seen to take time between batches.
    progress: True for a bar of rows, by tqdm.
    physical: as in to_tensor. Codes of dictionaries are int32, and a code stands for one value in
    all batches: Tensor.dictionary only grows at its end, and Batches.dictionaries has it by the
    name of the column, for matrices too. Sources that are opened apart each have their own codes.
    shard: (index, count) for every count-th batch from that index on: of several readers of the
    same source, each has its part.
    copy: as in to_tensor, for each batch: None shares the source's memory where it can, True gives
    each tensor memory of its own, to write to, and False raises BufferError for a batch that would
    take a copy.

    An error in the source comes when all rows before it have been handed out; one in a batch comes
    in its place. Either is the end. close() or a with block stops the reader early, and waits
    until the source is released, so that a connection takes its next statement; letting go of the
    iterator does so too, but waits a second at most.

    >>> import arrow_dlpack, pyarrow as pa
    >>> table = pa.table({"x": [1, 2, 3, 4, 5], "y": [0.5, 1.5, 2.5, 3.5, 4.5], "z": range(5)})
    >>> for features, label in arrow_dlpack.iter_batches(
    ...     table, batch_size=2, format="matrix", dtype="float32", label="z", drop_last=True
    ... ):
    ...     print(features, memoryview(label).tolist())
    <arrow_dlpack.Tensor float32, shape (2, 2), strides (2, 1), cpu> [0, 1]
    <arrow_dlpack.Tensor float32, shape (2, 2), strides (2, 1), cpu> [2, 3]
    """
    # Imported when it is needed: with its imports it takes as long as the package.
    one_pass = import_module("._one_pass", __package__)
    batches: Batches[Any] = one_pass.opened(
        source,
        batch_size=batch_size,
        columns=columns,
        dtype=dtype,
        format=format,
        label=label,
        nulls=nulls,
        filter=filter,
        drop_last=drop_last,
        shuffle=shuffle,
        seed=seed,
        prefetch=prefetch,
        progress=progress,
        physical=physical,
        shard=shard,
        copy=copy,
    )
    return batches
