"""``Loader``: batches of tensors for training, epoch after epoch; ``iter_batches`` of one."""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, TypeAlias, TypeVar, Unpack, overload

from .._core import Tensor
from ..typing import Nulls, SupportsArrowArray, SupportsArrowStream, SupportsReader, SupportsScanner
from .base import LoaderBase
from .columns import Columns
from .epoch import Batches
from .mix import Mix
from .options import AnyLoaderKeywords, LoaderKeywords, LoaderOptions, takes_options

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

#: Values, and where they are valid.
Masked: TypeAlias = tuple[Tensor, Tensor]
Batch_co = TypeVar("Batch_co", covariant=True)
Other = TypeVar("Other")


class Loader(LoaderBase[Batch_co]):
    """Batches of tensors of a source: each ``for`` loop over it is an epoch.

    source: a path, a URL that fsspec knows, a pattern or a list of them (Parquet, Arrow IPC, CSV),
    with keys of the folders below, such as fold=3, as columns; names say the format, .parquet,
    .arrow, .arrows, .feather, .ipc, .csv and .csv.gz, and else how the first file begins; a folder
    of Hugging Face's save_to_disk;
    a dataset, scanner, ParquetFile, table or reader of pyarrow; a frame or LazyFrame of polars; a
    relation of DuckDB; a Dataset or IterableDataset of Hugging Face; a Lance dataset, a Delta Lake
    table, an Iceberg table or scan, an ADBC cursor; a list or iterator of batches; any object with
    __arrow_c_stream__; a `Mix` of several of them. Or a function that is called with (index, count)
    and opens part index of count; it returns None for a part without rows. A source that can be
    read only once, such as a reader, has one epoch. Parts of a source have one schema: numbers
    widen, texts may have any encoding, and other types are refused, unless the column's wish or
    dtype= settles what it becomes. A column that a part lacks is refused, unless its own wish has
    nulls=.
    batch_size: rows of a batch, of which the last may have fewer; None for the batches of the
    source. Rows within one chunk of the source are shared, those across an edge copied once.
    `ByLength` or `ByTokens` for batches of rows of similar lengths.
    columns: names, in the order of the result, or a dict from them to what each becomes: `Pad`,
    `Dense`, `AsArrow`, `Cast`, `Categories`, or None for the default: of numbers, booleans and
    fixed-size lists a tensor, of lists `Ragged`, and texts, binaries and other types are refused.
    None for all columns but an index of pandas's. Of files only these columns are read. "a.b" is
    field b of the structs of column a, if no column has that name; it is null where the struct is.
    label: the column to predict, or several, or a dict as for columns. Labels are none of the
    features, and each batch is a pair (features, label); of several labels the second is a dict.
    format: "dict" for a dict of tensors, "matrix" for one tensor (rows, columns). In a matrix a
    column of fixed-size lists, or of lists that are Dense(), is as many columns as a list has
    values.
    dtype: of all features, as in to_tensor. Labels keep their own, unless `Cast` says otherwise.
    nulls: as in to_tensor. With "mask" each tensor becomes a pair (values, mask). With "nan"
    integers become floats, except labels and codes, whose nulls are refused. `Cast` and
    `Categories` say it for one column.
    filter: an expression of pyarrow; rows for which it does not hold are left out, and row groups
    of Parquet without other rows are not read, unless it names a column of floats or of views.
    framework: "torch", "jax", "numpy", or a function that takes a `Tensor` and returns another
    library's. None for `Tensor`.
    writable: True copies, so that the tensors may be written to. False shares the source's memory
    where it can; do not write to such tensors. None copies for PyTorch, for JAX and for a function,
    and shares for NumPy and without framework.
    shuffle: rows are drawn at random from a buffer of at least so many; it needs batch_size. The
    buffer holds up to twice as many, and both its old and its new rows while it is filled up. Drawn
    rows are copies, which may be written to. The row groups of Parquet files are read in random
    order too.
    seed: the order of an epoch follows from the seed and the number of the epoch: epochs differ,
    and a second run has the same ones. With None the order is another one in each run; with
    framework="torch" PyTorch's generator decides, which torch.manual_seed sets.
    drop_last: True to leave out a last batch of fewer rows.
    prefetch: how many batches a thread makes ahead; it needs no GIL unless the source does. It
    pays where the loop takes longer for a batch than some 20 microseconds, as a model does; a
    loop that only takes the batches is 8% slower with it.
    rank, world_size: the share of process rank of world_size; rank="auto" asks torch.distributed,
    and torchrun's variables. The workers of PyTorch's DataLoader divide the share of their rank.
    Parquet files are divided by rows: a process reads only the row groups that have its rows. Of
    other sources every process reads all, and keeps every world_size-th batch.
    uneven: what to do where ranks would not have equally many batches: "drop" leaves out the last
    ones, "repeat" makes some a second time, "allow" lets ranks differ. None is an error.
    transform: a function that is called with each batch where it is made, in the thread of prefetch
    or in the worker; its result is the batch.
    progress: True for a bar of rows, by tqdm.
    physical: as in to_tensor. Codes of dictionaries are int32, and a code stands for one value in
    all batches: Tensor.dictionary only grows at its end, and `Batches.dictionaries` has it by the
    name of the column, for matrices too. Sources that are opened apart each have their own codes.
    copy: as in to_tensor, for each batch: None shares the source's memory where it can, True gives
    each tensor memory of its own, to write to, and False raises BufferError for a batch that would
    take a copy.

    >>> import arrow_dlpack, pyarrow as pa
    >>> table = pa.table({"x": [1.0, 2.0, 3.0], "y": [0, 1, 0]})
    >>> loader = arrow_dlpack.Loader(table, batch_size=2, label="y", framework="numpy")
    >>> len(loader)
    2
    >>> for features, label in loader:
    ...     print(features["x"], label)
    [1. 2.] [0 1]
    [3.] [0]
    """

    @overload
    def __init__(
        self: "Loader[dict[str, Tensor]]",
        source: Any,
        /,
        *,
        format: Literal["dict"] = ...,
        label: None = ...,
        nulls: Nulls = ...,
        **options: Unpack[LoaderKeywords],
    ) -> None: ...

    @overload
    def __init__(
        self: "Loader[tuple[dict[str, Tensor], Tensor]]",
        source: Any,
        /,
        *,
        format: Literal["dict"] = ...,
        label: str,
        nulls: Nulls = ...,
        **options: Unpack[LoaderKeywords],
    ) -> None: ...

    @overload
    def __init__(
        self: "Loader[Tensor]",
        source: Any,
        /,
        *,
        format: Literal["matrix"],
        label: None = ...,
        nulls: Nulls = ...,
        **options: Unpack[LoaderKeywords],
    ) -> None: ...

    @overload
    def __init__(
        self: "Loader[tuple[Tensor, Tensor]]",
        source: Any,
        /,
        *,
        format: Literal["matrix"],
        label: str,
        nulls: Nulls = ...,
        **options: Unpack[LoaderKeywords],
    ) -> None: ...

    @overload
    def __init__(
        self: "Loader[dict[str, Masked]]",
        source: Any,
        /,
        *,
        format: Literal["dict"] = ...,
        label: None = ...,
        nulls: Literal["mask"],
        **options: Unpack[LoaderKeywords],
    ) -> None: ...

    @overload
    def __init__(
        self: "Loader[tuple[dict[str, Masked], Masked]]",
        source: Any,
        /,
        *,
        format: Literal["dict"] = ...,
        label: str,
        nulls: Literal["mask"],
        **options: Unpack[LoaderKeywords],
    ) -> None: ...

    @overload
    def __init__(
        self: "Loader[Masked]",
        source: Any,
        /,
        *,
        format: Literal["matrix"],
        label: None = ...,
        nulls: Literal["mask"],
        **options: Unpack[LoaderKeywords],
    ) -> None: ...

    @overload
    def __init__(
        self: "Loader[tuple[Masked, Masked]]",
        source: Any,
        /,
        *,
        format: Literal["matrix"],
        label: str,
        nulls: Literal["mask"],
        **options: Unpack[LoaderKeywords],
    ) -> None: ...

    @overload
    def __init__(
        self: "Loader[Other]",
        source: Any,
        /,
        *,
        transform: Callable[[Any], Other],
        format: Literal["dict", "matrix"] = ...,
        label: str | Columns | None = ...,
        nulls: Nulls | Literal["mask"] = ...,
        **options: Unpack[AnyLoaderKeywords],
    ) -> None: ...

    @overload
    def __init__(
        self: "Loader[Any]",
        source: Any,
        /,
        *,
        transform: None = ...,
        format: Literal["dict", "matrix"] = ...,
        label: str | Columns | None = ...,
        nulls: Nulls | Literal["mask"] = ...,
        **options: Unpack[AnyLoaderKeywords],
    ) -> None: ...

    @takes_options()
    def __init__(self, source: Any, /, **options: Any) -> None:
        super().__init__(source, LoaderOptions(**options))


class OnePass(Loader[Any]):
    """The Loader of `iter_batches`, whose one epoch begins at once and checks the columns."""

    _is_checked = False


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
    return iter(OnePass(source, **options))
