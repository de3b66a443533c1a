"""``iter_batches``: what needs no speed of it."""

import atexit
import operator
import secrets
from collections.abc import Sequence
from typing import Any, Literal

from . import _core
from ._core import Batches
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


def iter_batches(
    source: SupportsArrowStream | SupportsArrowArray | SupportsScanner | SupportsReader,
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
) -> Batches:
    """A stream of Arrow data as tensors, batch by batch, in memory that does not grow with the stream.

    source: any object with __arrow_c_stream__ (tables, readers, query results), or a dataset or scanner
    of pyarrow, which then reads the columns that are wanted, and no others.
    batch_size: rows of a batch, the last of which may have fewer; None for the batches of the source. Rows
    that lie in one chunk of the source are shared, those across an edge copied once.
    columns: names, in the order of the result; None for all.
    dtype: of all features, as in to_tensor. The label keeps its own.
    format: "dict" for a dict of Tensors, or "matrix" for one Tensor (rows, columns).
    label: the column to predict. It is none of the features, and each batch a pair (features, label).
    nulls: as in to_tensor. With "mask" each tensor becomes a pair (values, mask).
    drop_last: True to leave out a last batch of fewer rows.
    local_shuffle_buffer_size: draw rows at random from a buffer of at least so many. It holds up to twice
    as many, and for a moment both its old and its new rows.
    seed: for the same order again, whatever the chunks of the source; None for another one each time.
    prefetch: so many batches are made ahead by a thread of its own, which does not need the GIL unless the
    source does.
    progress: True for a bar of rows, by tqdm.
    physical: as in to_tensor.

    An error in the source is raised when all rows before it have been handed out, one in a batch instead of
    that batch, and either is the end. ``close()`` or a ``with`` block stops the reader early and waits for the
    source to be released; so does letting go of the iterator, without waiting.

    >>> import arrow_dlpack, pyarrow as pa
    >>> table = pa.table({"x": [1, 2, 3, 4, 5], "y": [0.5, 1.5, 2.5, 3.5, 4.5], "z": [0, 1, 0, 1, 0]})
    >>> for features, label in arrow_dlpack.iter_batches(
    ...     table, batch_size=2, format="matrix", dtype="float32", label="z", drop_last=True
    ... ):
    ...     print(features, memoryview(label).tolist())
    <arrow_dlpack.Tensor float32, shape (2, 2), strides (2, 1), cpu> [0, 1]
    <arrow_dlpack.Tensor float32, shape (2, 2), strides (2, 1), cpu> [0, 1]
    """
    return open_batches(
        source,
        batch_size=batch_size,
        columns=columns,
        dtype=dtype,
        format=format,
        label=label,
        nulls=nulls,
        drop_last=drop_last,
        local_shuffle_buffer_size=local_shuffle_buffer_size,
        seed=seed,
        prefetch=prefetch,
        progress=progress,
        physical=physical,
    )


def open_batches(
    source: Any,
    *,
    batch_size: int | None,
    columns: Sequence[str] | None,
    dtype: Dtype | None,
    format: str,
    label: str | None,
    nulls: Any,
    drop_last: bool,
    local_shuffle_buffer_size: int | None,
    seed: int | None,
    prefetch: int,
    progress: bool,
    physical: bool,
    shard: tuple[int, int] = (0, 1),
) -> Batches:
    """The same for one of several workers, who take every so manieth batch each."""
    batch_size = _count("batch_size", batch_size, 1)
    buffer_size = _count("local_shuffle_buffer_size", local_shuffle_buffer_size, 1)
    seed = _count("seed", seed, 0)
    if format not in ("dict", "matrix"):
        raise ValueError(f'format must be "dict" or "matrix", got {format!r}')
    if label is not None and not isinstance(label, str):
        raise TypeError(f"label must be the name of a column, got {type(label).__name__}")
    if batch_size is None and (drop_last or buffer_size is not None):
        raise TypeError("drop_last and local_shuffle_buffer_size need a batch_size")
    if seed is not None and buffer_size is None:
        raise TypeError("seed is for local_shuffle_buffer_size")
    shuffle = None
    if buffer_size is not None:
        shuffle = buffer_size, (secrets.randbits(64) if seed is None else seed) % 2**64
    if prefetch is None:
        raise TypeError("prefetch must be an integer of at least 0, got None")
    prefetch = _count("prefetch", prefetch, 0) or 0
    # Asked for before anything is opened.
    bar = _bar(source) if progress else None
    return _core._open_batches(
        _stream(source, columns, label),
        columns=columns,
        label=label,
        as_matrix=format == "matrix",
        dtype=dtype,
        nulls=nulls,
        physical=physical,
        batch_size=batch_size,
        drop_last=bool(drop_last),
        shuffle=shuffle,
        shard=shard,
        prefetch=prefetch,
        progress=bar,
    )


def _count(name: str, value: Any, least: int) -> int | None:
    if value is None:
        return None
    wrong = f"{name} must be an integer of at least {least}, got {value!r}"
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(wrong)
    count = operator.index(value)
    if count < least:
        raise ValueError(wrong)
    return count


def _stream(source: Any, columns: Sequence[str] | None, label: str | None) -> Any:
    """What has the stream: of pyarrow's datasets and scanners a reader."""
    if hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__"):
        return source
    if hasattr(source, "scanner"):
        wanted = None if columns is None else list(dict.fromkeys([*columns, *filter(None, [label])]))
        source = source.scanner(columns=wanted)
    if hasattr(source, "to_reader"):
        return source.to_reader()
    return source  # to be refused


def _bar(source: Any) -> Any:
    try:
        from tqdm.auto import tqdm
    except ImportError as error:
        raise ImportError("progress=True needs tqdm: pip install tqdm") from error
    rows = getattr(source, "num_rows", None)
    return tqdm(total=rows if isinstance(rows, int) else None, unit="row", unit_scale=True)
