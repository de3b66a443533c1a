"""``iter_batches``: what needs no speed of it."""

import atexit
import operator
import random
import secrets
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Literal, TypeAlias, TypedDict, Unpack, overload

from . import _core
from ._core import Batches, Tensor
from .typing import (
    Dtype,
    Nulls,
    SupportsArrowArray,
    SupportsArrowStream,
    SupportsReader,
    SupportsScanner,
)

# A thread that reads ahead may need the interpreter for its source: it ends before that does.
atexit.register(_core._stop_batches)


#: Columns that pyarrow's scanners have beside those of a dataset's schema.
_OF_FILES = ["__filename", "__fragment_index", "__batch_index", "__last_in_fragment"]


Source: TypeAlias = SupportsArrowStream | SupportsArrowArray | SupportsScanner | SupportsReader


#: Values, and where they are valid.
Masked: TypeAlias = tuple[Tensor, Tensor]


class Options(TypedDict, total=False):
    """What decides nothing about what is in a batch."""

    batch_size: int | None
    columns: Sequence[str] | None
    dtype: Dtype | None
    drop_last: bool
    local_shuffle_buffer_size: int | None
    seed: int | None
    prefetch: int
    physical: bool
    shard: tuple[int, int]
    copy: bool | None


class IterOptions(Options, total=False):
    """Of iter_batches alone."""

    progress: bool


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
    **options: Unpack[IterOptions],
) -> Batches[Any]: ...


def iter_batches(
    source: Source,
    /,
    *,
    batch_size: int | None = None,
    columns: Sequence[str] | None = None,
    dtype: Dtype | None = None,
    format: Literal["dict", "matrix"] = "dict",
    label: str | None = None,
    nulls: Nulls | Literal["mask"] = "error",
    drop_last: bool = False,
    local_shuffle_buffer_size: int | None = None,
    seed: int | None = None,
    prefetch: int = 0,
    progress: bool = False,
    physical: bool = False,
    shard: tuple[int, int] = (0, 1),
    copy: bool | None = None,
) -> Batches[Any]:
    """A stream of Arrow data as tensors, batch by batch; memory does not grow with the stream.

    source: any object with __arrow_c_stream__ (tables, readers, query results), or a dataset or
    scanner of pyarrow; of a dataset only the columns that are wanted are read.
    batch_size: rows of a batch, of which the last may have fewer; None for the batches of the
    source. Rows within one chunk of the source are shared, those across an edge copied once.
    columns: names, in the order of the result; None for all but an index of pandas's. Nothing about
    the others matters but the label, not even their types.
    dtype: of all features, as in to_tensor. The label keeps its own.
    format: "dict" for a dict of Tensors, "matrix" for one Tensor (rows, columns).
    label: the column to predict. It is none of the features, and each batch is a pair
    (features, label).
    nulls: as in to_tensor. With "mask" each tensor becomes a pair (values, mask).
    drop_last: True to leave out a last batch of fewer rows.
    local_shuffle_buffer_size: rows are drawn at random from a buffer of at least so many. It holds
    up to twice as many, and both its old and its new rows while it is filled up. Drawn rows are
    copies, so that their tensors have memory of their own, to write to.
    seed: for the same order again, in every epoch, whatever the chunks of the source; None for any.
    For epochs that differ and can be repeated, BatchDataset goes by torch.manual_seed without one.
    prefetch: so many batches are made ahead, by a thread that needs no GIL unless the source does.
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
    batch_size = None if batch_size is None else _integer("batch_size", batch_size, 1)
    prefetch = _integer("prefetch", prefetch, 0)
    index, count = (_integer("each of shard", number, 0) for number in shard)
    if index >= count:
        raise ValueError(f"shard must be (index, count) with index < count, got {shard!r}")
    if format not in ("dict", "matrix"):
        raise ValueError(f'format must be "dict" or "matrix", got {format!r}')
    if label is not None and not isinstance(label, str):
        raise TypeError(
            f"label must be the name of a column, got {label!r}: names are texts, and pandas' 0 is "
            'called "0" in Arrow'
        )
    if batch_size is None and (drop_last or local_shuffle_buffer_size is not None):
        raise TypeError("drop_last and local_shuffle_buffer_size need a batch_size")
    shuffle = None
    if local_shuffle_buffer_size is not None:
        if copy is not None and not copy:
            raise BufferError(
                "copying was forbidden, and local_shuffle_buffer_size copies each row"
            )
        rows = _integer("local_shuffle_buffer_size", local_shuffle_buffer_size, 1)
        seed = secrets.randbits(64) if seed is None else _integer("seed", seed, 0)
        shuffle = rows, seed_of(seed, index)
    elif seed is not None:
        raise TypeError("seed is for local_shuffle_buffer_size")
    bar = _bar(source) if progress else None
    return _core._open_batches(
        _stream(source, columns, label),
        columns=columns,
        label=label,
        as_matrix=format == "matrix",
        dtype=dtype,
        nulls=nulls,
        copy=copy,
        physical=physical,
        batch_size=batch_size,
        drop_last=bool(drop_last),
        shuffle=shuffle,
        shard=(index, count),
        prefetch=prefetch,
        progress=bar,
    )


def seed_of(seed: int, index: int) -> int:
    """That of one of several readers, who are to draw differently."""
    return seed % 2**64 if index == 0 else random.Random(f"{seed}, {index}").getrandbits(64)


def _integer(name: str, value: Any, least: int) -> int:
    wrong = f"{name} must be an integer of at least {least}, got {value!r}"
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(wrong)
    number = operator.index(value)
    if number < least:
        raise ValueError(wrong)
    return number


def _stream(source: Any, columns: Sequence[str] | None, label: str | None) -> Any:
    """What has the stream: of pyarrow's datasets and scanners a reader."""
    if hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__"):
        return source
    if has_no_columns(source):
        raise ValueError("the dataset has no columns: was it made of no files?")
    if hasattr(source, "scanner"):
        source = source.scanner(columns=_wanted(source, columns, label))
    return source.to_reader() if hasattr(source, "to_reader") else source


def _wanted(source: Any, columns: Sequence[str] | None, label: str | None) -> list[str] | None:
    """The columns of a dataset that are to be read, None for all."""
    schema: Any = getattr(source, "schema", None)
    names: Any = getattr(schema, "names", None)
    if columns is None:
        metadata = getattr(schema, "metadata", None) or {}
        index = _core._index_columns(names, metadata[b"pandas"]) if b"pandas" in metadata else ()
        if not index:
            return None
        columns = [name for name in names if name not in index]
    wanted = list(dict.fromkeys([*columns, *filter(None, [label])]))
    if names is not None:
        _core._check_names(names, [name for name in wanted if name not in _OF_FILES])
    return wanted


def has_no_columns(source: Any) -> bool:
    """Whether it is a dataset of pyarrow's that was made of nothing."""
    has_scanner = hasattr(source, "scanner")
    return has_scanner and getattr(getattr(source, "schema", None), "names", None) == []


def _bar(source: Any) -> Any:
    try:
        tqdm = import_module("tqdm.auto").tqdm
    except ImportError as error:
        raise ImportError("progress=True needs tqdm: pip install tqdm") from error
    rows = getattr(source, "num_rows", None)
    return tqdm(total=rows if isinstance(rows, int) else None, unit="row", unit_scale=True)
