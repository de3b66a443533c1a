"""``Loader``: batches of tensors for training, epoch after epoch."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, TypeVar, Unpack, overload

from . import _frameworks
from ._core import Tensor
from ._epochs import Epochs
from ._frameworks import Framework
from ._options import Options
from ._settings import checked
from ._shares import Uneven
from ._wishes import ByLength, ByTokens, Columns
from .typing import Dtype, Nulls

#: Values, and where they are valid.
Masked: TypeAlias = tuple[Tensor, Tensor]
Batch_co = TypeVar("Batch_co", covariant=True)
Other = TypeVar("Other")


class SharedOptions(Options, total=False):
    """What decides nothing about what is in a batch."""

    batch_size: int | ByLength | ByTokens | None
    rank: int | Literal["auto"] | None
    world_size: int | None
    uneven: Uneven
    writable: bool | None


class LoaderOptions(SharedOptions, total=False):
    """Columns without wishes; the batches are of our tensors."""

    columns: Sequence[str] | None
    framework: None
    transform: None
    progress: bool


class AnyOptions(SharedOptions, total=False):
    """Whatever a batch may be."""

    columns: Columns | None
    framework: Framework | None
    progress: bool


class Loader(Epochs[Batch_co]):
    """Batches of tensors of a source: each ``for`` loop over it is an epoch.

    source: a path, a URL that fsspec knows, a pattern or a list of them (Parquet, Arrow IPC, CSV);
    a dataset, scanner, ParquetFile, table or reader of pyarrow; a frame or LazyFrame of polars; a
    relation of DuckDB; a Dataset or IterableDataset of Hugging Face; a Lance dataset, a Delta Lake
    table, an Iceberg scan, an ADBC cursor; a list or an iterator of batches; whatever has
    __arrow_c_stream__; a `Mix` of several of them. Or a function of (index, count) that opens one
    of so many parts, and returns None for a part without rows. What is read only once has one
    epoch.
    batch_size, columns, dtype, format, label, nulls, drop_last, physical, copy: as in iter_batches.
    batch_size may be `ByLength` or `ByTokens`, for batches of rows of similar lengths.
    columns: names, or a dict of names and what becomes of each: `Pad`, `Dense`, `AsArrow`, `Cast`,
    `Categories`, or None. "a.b" is field b of the structs of column a, null where they are, if no
    column has that name. label may be such a dict too, or several names: of two and more the label
    is a dict. With nulls="nan" integers become floats, but neither one label nor codes: Cast keeps
    others.
    filter: an expression of pyarrow; row groups of Parquet without such rows are not read.
    framework: "torch", "jax", "numpy", or a function that makes a tensor of ours.
    writable: whether tensors get memory that is not the source's. None: where the framework would
    write to read-only memory, which is any but NumPy. False shares the source's memory.
    shuffle: rows are drawn from a buffer of at least so many; row groups of Parquet are read in an
    order that is drawn too.
    seed: each epoch's order is drawn from it and from the number of the epoch, so that epochs
    differ and a second run repeats them. None: of torch.manual_seed with framework="torch", or any.
    prefetch: so many batches are made ahead, by a thread.
    rank, world_size: the share of one of so many processes; rank="auto" asks torch.distributed, and
    torchrun's variables. In a worker of PyTorch's DataLoader the rank's share is divided again.
    Parquet files are divided by rows, and a process reads the row groups that have its own; other
    sources are read by every process, which takes every so many-th batch.
    uneven: where ranks would not have equally many batches: "drop" leaves the last ones out,
    "repeat" makes some a second time, "allow" lets ranks differ. None refuses it.
    transform: a function that is called with each batch where it is made, in the thread of prefetch
    or in the worker; its result is the batch.
    progress: True for a bar of rows, by tqdm.

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
