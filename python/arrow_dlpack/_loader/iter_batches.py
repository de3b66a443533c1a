"""``iter_batches``: the batches of one pass."""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, TypeAlias, TypeVar, Unpack, overload

from .._core import Tensor
from ..typing import Nulls, SupportsArrowArray, SupportsArrowStream, SupportsReader, SupportsScanner
from .columns import Columns
from .epoch import Batches
from .loader import Loader, Masked
from .mix import Mix
from .options import AnyLoaderKeywords, LoaderKeywords, LoaderOptions, takes_options

Other = TypeVar("Other")
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


@overload
def iter_batches(
    source: Source | Mix,
    /,
    *,
    format: Literal["dict"] = ...,
    label: None = ...,
    nulls: Nulls = ...,
    **options: Unpack[LoaderKeywords],
) -> Batches[dict[str, Tensor]]: ...


@overload
def iter_batches(
    source: Source | Mix,
    /,
    *,
    format: Literal["dict"] = ...,
    label: str,
    nulls: Nulls = ...,
    **options: Unpack[LoaderKeywords],
) -> Batches[tuple[dict[str, Tensor], Tensor]]: ...


@overload
def iter_batches(
    source: Source | Mix,
    /,
    *,
    format: Literal["matrix"],
    label: None = ...,
    nulls: Nulls = ...,
    **options: Unpack[LoaderKeywords],
) -> Batches[Tensor]: ...


@overload
def iter_batches(
    source: Source | Mix,
    /,
    *,
    format: Literal["matrix"],
    label: str,
    nulls: Nulls = ...,
    **options: Unpack[LoaderKeywords],
) -> Batches[tuple[Tensor, Tensor]]: ...


@overload
def iter_batches(
    source: Source | Mix,
    /,
    *,
    format: Literal["dict"] = ...,
    label: None = ...,
    nulls: Literal["mask"],
    **options: Unpack[LoaderKeywords],
) -> Batches[dict[str, Masked]]: ...


@overload
def iter_batches(
    source: Source | Mix,
    /,
    *,
    format: Literal["dict"] = ...,
    label: str,
    nulls: Literal["mask"],
    **options: Unpack[LoaderKeywords],
) -> Batches[tuple[dict[str, Masked], Masked]]: ...


@overload
def iter_batches(
    source: Source | Mix,
    /,
    *,
    format: Literal["matrix"],
    label: None = ...,
    nulls: Literal["mask"],
    **options: Unpack[LoaderKeywords],
) -> Batches[Masked]: ...


@overload
def iter_batches(
    source: Source | Mix,
    /,
    *,
    format: Literal["matrix"],
    label: str,
    nulls: Literal["mask"],
    **options: Unpack[LoaderKeywords],
) -> Batches[tuple[Masked, Masked]]: ...


@overload
def iter_batches(
    source: Source | Mix,
    /,
    *,
    transform: Callable[[Any], Other],
    format: Literal["dict", "matrix"] = ...,
    label: str | Columns | None = ...,
    nulls: Nulls | Literal["mask"] = ...,
    **options: Unpack[AnyLoaderKeywords],
) -> Batches[Other]: ...


@overload
def iter_batches(
    source: Source | Mix,
    /,
    *,
    transform: None = ...,
    format: Literal["dict", "matrix"] = ...,
    label: str | Columns | None = ...,
    nulls: Nulls | Literal["mask"] = ...,
    **options: Unpack[AnyLoaderKeywords],
) -> Batches[Any]: ...


@takes_options()
def iter_batches(source: "Source | Mix", /, **options: Any) -> "Batches[Any]":
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
    loader: Loader[Any] = Loader.__new__(Loader)
    # The one epoch begins at once, and checks the columns.
    loader._set_up(source, LoaderOptions(**options))
    return loader._iterate(loader._options.framework)
