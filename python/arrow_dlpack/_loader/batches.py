"""``iter_batches``: one pass of a `Loader`."""

import atexit
import os
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, Unpack, overload

from .. import _core
from .._core import Tensor
from ..typing import (
    Dtype,
    Nulls,
    SupportsArrowArray,
    SupportsArrowStream,
    SupportsReader,
    SupportsScanner,
)

if TYPE_CHECKING:
    from .._frameworks import Framework
    from .columns import ByLength, ByTokens, Columns
    from .epoch import Batches
    from .mix import Mix
    from .options import AnyOptions, LoaderOptions
    from .sharding import Uneven

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
    | Callable[[int, int], Any]
)
Other = TypeVar("Other")

#: Values, and where they are valid.
Masked: TypeAlias = tuple[Tensor, Tensor]


@overload
def iter_batches(
    source: "Source | Mix",
    /,
    *,
    format: Literal["dict"] = ...,
    label: None = ...,
    nulls: Nulls = ...,
    **options: Unpack["LoaderOptions"],
) -> "Batches[dict[str, Tensor]]": ...


@overload
def iter_batches(
    source: "Source | Mix",
    /,
    *,
    format: Literal["dict"] = ...,
    label: str,
    nulls: Nulls = ...,
    **options: Unpack["LoaderOptions"],
) -> "Batches[tuple[dict[str, Tensor], Tensor]]": ...


@overload
def iter_batches(
    source: "Source | Mix",
    /,
    *,
    format: Literal["matrix"],
    label: None = ...,
    nulls: Nulls = ...,
    **options: Unpack["LoaderOptions"],
) -> "Batches[Tensor]": ...


@overload
def iter_batches(
    source: "Source | Mix",
    /,
    *,
    format: Literal["matrix"],
    label: str,
    nulls: Nulls = ...,
    **options: Unpack["LoaderOptions"],
) -> "Batches[tuple[Tensor, Tensor]]": ...


@overload
def iter_batches(
    source: "Source | Mix",
    /,
    *,
    format: Literal["dict"] = ...,
    label: None = ...,
    nulls: Literal["mask"],
    **options: Unpack["LoaderOptions"],
) -> "Batches[dict[str, Masked]]": ...


@overload
def iter_batches(
    source: "Source | Mix",
    /,
    *,
    format: Literal["dict"] = ...,
    label: str,
    nulls: Literal["mask"],
    **options: Unpack["LoaderOptions"],
) -> "Batches[tuple[dict[str, Masked], Masked]]": ...


@overload
def iter_batches(
    source: "Source | Mix",
    /,
    *,
    format: Literal["matrix"],
    label: None = ...,
    nulls: Literal["mask"],
    **options: Unpack["LoaderOptions"],
) -> "Batches[Masked]": ...


@overload
def iter_batches(
    source: "Source | Mix",
    /,
    *,
    format: Literal["matrix"],
    label: str,
    nulls: Literal["mask"],
    **options: Unpack["LoaderOptions"],
) -> "Batches[tuple[Masked, Masked]]": ...


@overload
def iter_batches(
    source: "Source | Mix",
    /,
    *,
    transform: Callable[[Any], Other],
    format: Literal["dict", "matrix"] = ...,
    label: "str | Columns | None" = ...,
    nulls: Nulls | Literal["mask"] = ...,
    **options: Unpack["AnyOptions"],
) -> "Batches[Other]": ...


@overload
def iter_batches(
    source: "Source | Mix",
    /,
    *,
    transform: None = ...,
    format: Literal["dict", "matrix"] = ...,
    label: "str | Columns | None" = ...,
    nulls: Nulls | Literal["mask"] = ...,
    **options: Unpack["AnyOptions"],
) -> "Batches[Any]": ...


def iter_batches(
    source: "Source | Mix",
    /,
    *,
    batch_size: "int | ByLength | ByTokens | None" = None,
    columns: "Columns | None" = None,
    label: "str | Columns | None" = None,
    format: Literal["dict", "matrix"] = "dict",
    dtype: Dtype | None = None,
    nulls: Nulls | Literal["mask"] = "error",
    filter: Any = None,
    framework: "Framework | None" = None,
    writable: bool | None = None,
    shuffle: int | None = None,
    seed: int | None = None,
    drop_last: bool = False,
    prefetch: int = 0,
    rank: int | Literal["auto"] | None = None,
    world_size: int | None = None,
    uneven: "Uneven" = None,
    transform: Callable[[Any], Any] | None = None,
    progress: bool = False,
    physical: bool = False,
    copy: bool | None = None,
) -> "Batches[Any]":
    """Batches of tensors of a source, in one pass: ``iter(Loader(source, ...))``.

    The sources and keywords are those of `Loader`, which describes them. Memory does not grow with
    the source. Without a seed each call shuffles in another order. For epochs, for the number of
    batches, and to go on after an interruption, keep the `Loader` itself.

    rank=index, world_size=count and uneven="allow" give one of several readers its part. In a
    worker of PyTorch's DataLoader the batches are the worker's part, as with `Loader`.

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
    loader = import_module(".loader", __package__).OnePass(
        source,
        batch_size=batch_size,
        columns=columns,
        label=label,
        format=format,
        dtype=dtype,
        nulls=nulls,
        filter=filter,
        framework=framework,
        writable=writable,
        shuffle=shuffle,
        seed=seed,
        drop_last=drop_last,
        prefetch=prefetch,
        rank=rank,
        world_size=world_size,
        uneven=uneven,
        transform=transform,
        progress=progress,
        physical=physical,
        copy=copy,
    )
    return iter(loader)  # type: ignore[no-any-return]
