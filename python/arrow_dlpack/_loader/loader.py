"""``Loader``: batches of tensors for training, epoch after epoch."""

from collections.abc import Callable
from typing import Any, Literal, TypeAlias, TypeVar, Unpack, overload

from .. import _frameworks
from .._core import Tensor
from .._frameworks import Framework
from ..typing import Dtype, Nulls
from .columns import ByLength, ByTokens, Columns
from .epochs import Epochs
from .options import AnyOptions, LoaderOptions
from .settings import checked
from .sharding import Uneven

#: Values, and where they are valid.
Masked: TypeAlias = tuple[Tensor, Tensor]
Batch_co = TypeVar("Batch_co", covariant=True)
Other = TypeVar("Other")


class Loader(Epochs[Batch_co]):
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
        **options: Unpack[LoaderOptions],
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
        **options: Unpack[LoaderOptions],
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
        **options: Unpack[LoaderOptions],
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
        **options: Unpack[LoaderOptions],
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
        **options: Unpack[LoaderOptions],
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
        **options: Unpack[LoaderOptions],
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
        **options: Unpack[LoaderOptions],
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
        **options: Unpack[LoaderOptions],
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
        **options: Unpack[AnyOptions],
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
        **options: Unpack[AnyOptions],
    ) -> None: ...

    def __init__(
        self,
        source: Any,
        /,
        *,
        batch_size: int | ByLength | ByTokens | None = None,
        columns: Columns | None = None,
        label: str | Columns | None = None,
        format: Literal["dict", "matrix"] = "dict",
        dtype: Dtype | None = None,
        nulls: Nulls | Literal["mask"] = "error",
        filter: Any = None,
        framework: Framework | None = None,
        writable: bool | None = None,
        shuffle: int | None = None,
        seed: int | None = None,
        drop_last: bool = False,
        prefetch: int = 0,
        rank: int | Literal["auto"] | None = None,
        world_size: int | None = None,
        uneven: Uneven = None,
        transform: Callable[[Any], Any] | None = None,
        progress: bool = False,
        physical: bool = False,
        copy: bool | None = None,
    ) -> None:
        _frameworks.check(framework)
        if uneven not in (None, "drop", "repeat", "allow"):
            raise ValueError(f'uneven must be "drop", "repeat" or "allow", got {uneven!r}')
        settings = checked(
            batch_size=batch_size,
            columns=columns,
            label=label,
            format=format,
            dtype=dtype,
            nulls=nulls,
            filter=filter,
            drop_last=drop_last,
            shuffle=shuffle,
            seed=seed,
            prefetch=prefetch,
            physical=physical,
            copy=copy,
        )
        settings.written(_frameworks.is_writable(framework, writable))
        super().__init__(
            source=source,
            settings=settings,
            framework=framework,
            writable=writable,
            transform=transform,
            rank=rank,
            world_size=world_size,
            uneven=uneven,
            progress=progress,
        )


class OnePass(Loader[Any]):
    """The Loader of `iter_batches`, whose one epoch begins at once and checks the columns."""

    _is_checked = False
