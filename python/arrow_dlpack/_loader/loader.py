"""``Loader``: batches of tensors for training, epoch after epoch."""

import pickle
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from copy import copy
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any, Generic, Literal, NoReturn, TypeAlias, TypeVar, Unpack, overload
from weakref import WeakSet

from .._core import Tensor
from .._frameworks import Framework
from ..typing import Nulls
from . import filters as _filters
from .categories import scanned
from .checks import check_columns, check_filter, check_source
from .columns import Columns
from .encoder import Encoder, trained
from .epoch import Batches, drawn_seed, total_of, work_of
from .functions import is_function, open_part
from .kinds import for_pickle, is_path
from .known import columns_of_format
from .mix import Mix, described, source_of
from .options import AnyLoaderKeywords, LoaderKeywords, LoaderOptions, Settled, takes_options
from .resume import Progress, options_of
from .sharding import Share, resolved, share_of, worker_info
from .source import Loop, Source
from .summary import of_loader

#: Of sources that pickle takes by value, and that are not pickled a second time to find that out.
_BY_VALUE = {"Table", "RecordBatch", "DataFrame", "LazyFrame", "str"}

#: Values, and where they are valid.
Masked: TypeAlias = tuple[Tensor, Tensor]
Batch_co = TypeVar("Batch_co", covariant=True)
Other = TypeVar("Other")


class Loader(Loop, Settled, Generic[Batch_co]):
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
    read only once, such as a reader, has one epoch. For ranks, workers and a resume, which count
    rows, a query needs an order, as by ORDER BY or sort. Parts of a source have one schema: numbers
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
    integers become floats, except labels, and codes outside a matrix, whose nulls are refused.
    `Cast` and `Categories` say it for one column.
    filter: an expression of pyarrow; rows for which it does not hold are left out, and row groups
    of Parquet without other rows are not read, unless it names a column of floats, of views or of
    an extension type.
    framework: "torch", "jax", "numpy", or a function that takes a `Tensor` and returns another
    library's. None for `Tensor`.
    writable: True copies, so that the tensors may be written to. False shares the source's memory
    where it can; do not write to such tensors. None copies for PyTorch, for JAX and for a function,
    and shares for NumPy and without framework.
    shuffle: rows are drawn at random from a buffer of at least this many; it needs batch_size. The
    buffer holds up to twice as many, and both its old and its new rows while it is filled up. Drawn
    rows are copies, which may be written to. The row groups of Parquet files are read in random
    order too, but for those of physical=True, and of a filter where ranks or several workers divide
    the batches: they are read in the order of the files, and the buffer alone mixes rows.
    seed: the order of an epoch follows from the seed and the number of the epoch: epochs differ,
    and a second run has the same ones. With None the order is another one in each run; with
    framework="torch" PyTorch's generator decides, which torch.manual_seed sets.
    drop_last: True to leave out a last batch of fewer rows.
    prefetch: how many batches a thread makes ahead; it needs no GIL unless the source does. It
    pays where the loop takes longer for a batch than some 20 microseconds, as a model does; a
    loop that only takes the batches is 8% slower with it.
    rank, world_size: the share of process rank of world_size; rank="auto" asks torch.distributed,
    and torchrun's variables. The workers of PyTorch's DataLoader divide the share of their rank.
    Parquet files are divided by rows: a process reads only the row groups that have its rows, which
    are the same ones in each epoch. With shuffle and seed row groups are put in the order of the
    seed before. Of other sources every process reads all, and keeps every world_size-th batch.
    Batches by length are cut anew in each epoch and then divided: call set_epoch before each loop.
    uneven: what to do where ranks would not have equally many batches: "drop" leaves out the last
    ones, "repeat" makes some a second time, "allow" lets ranks differ. None is an error.
    transform: a function that is called with each batch where it is made, in the thread of prefetch
    or in the worker; its result is the batch.
    progress: True for a bar of rows, by tqdm.
    physical: as in to_tensor. Codes of dictionaries are int32, and a code stands for one value in
    all batches: Tensor.dictionary only grows at its end, and `Batches.dictionaries` has it by the
    name of the column, for matrices too. Sources that are opened apart each have their own codes.
    encoder: an `Encoder`, which says columns, label, format, dtype, nulls, framework, writable,
    physical and copy, to train again with the same words. ``label=[]`` beside it is for data
    without a label.
    copy: as in to_tensor, for each batch: None shares the source's memory where it can, True gives
    each tensor a writable copy, and False raises BufferError for a batch that would take a copy.

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

    #: That of the source, if it costs nothing to ask.
    _schema: Any = None

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
        self._set_up(source, LoaderOptions(**options))
        self._schema = check_columns(self._data, self._options)

    def _set_up(self, source: Any, options: LoaderOptions) -> None:
        """All of it but the check of columns, which an epoch repeats."""
        check_source(source, options)
        self._data, self._options = source, options
        self._source: Source | None = None
        #: The files that the loader found of which this is a copy in another process.
        self._found: Any = None
        self._was_read = False
        self._progress = Progress()
        #: Epochs that workers of Loader.torch make now.
        self._elsewhere = 0
        #: What tells workers that persist: of BatchDatasets of this loader, and of Loader.torch.
        self._listeners: Iterable[Any] = ()
        #: That of its BatchDatasets, once there is one. It is kept when they go: it knows whether
        #: workers have gone on from a state.
        self._notice: Any = None

    def __repr__(self) -> str:
        """Its source, its options, and what each column becomes; it reads no data for it."""
        try:
            data, given = self._data, columns_of_format(self._data)
            return of_loader(described(data), self._schema, self._options, given)
        except Exception:  # of data whose attributes raise, or before there is any
            return object.__repr__(self)

    def __iter__(self) -> Batches[Batch_co]:
        return self._iterate(self._options.framework)

    def _iterate(self, framework: Framework | None) -> Batches[Any]:
        """The next epoch, with tensors of this framework."""
        share = share_of(*self._ranks())
        options = self._with_words().with_copy_for(framework)
        query, is_part = options.query, is_function(self._data) and share.count > 1
        query = replace(query, is_part=is_part or query.is_part)
        source = self._opened(share)
        progress = self._progress
        self._settle()
        progress.reload()
        identify = None
        if source is not None:
            source.refresh()
            query = source.asked(query)
            with source.explaining(options.query):
                identify = source.identity(options.query)
        reads = Share() if is_function(self._data) else share
        draw = partial(drawn_seed, options, share, framework)
        start = progress.next_start(options, share, reads, identify, draw)
        if source is not None and start.position.batch > 0:
            source.check_unread()
        self._forget()
        try:
            batches: Batches[Any] = Batches(
                source=source,
                query=query,
                options=options,
                position=start.position,
                work=work_of(options, framework),
            )
        except BaseException as error:
            if source is not None and source.is_begun and not is_function(self._data):
                error.add_note("What was read of the iterator is gone from it: make it anew.")
            raise
        if source is not None and source.once:
            self._was_read = True
        progress.begin(start)
        return batches

    def __len__(self) -> int:
        """How many batches a whole epoch of this rank has, with all its workers.

        After `load_state_dict` too: ``state_dict()["batch"]`` of them have been handed out.
        """
        if self._options.rows is None:
            raise TypeError(
                "how many batches there are is known with a batch_size in rows (a "
                "DataLoader of PyTorch's is loader.torch(), which does not ask)"
            )
        source = None if is_function(self._data) else self._of_data()
        if source is not None:
            source.refresh()
        total = None if source is None else total_of(source, self._options.query, self._options)
        if total is None:
            raise TypeError(
                "the source does not know how many rows it has: count the batches of an epoch, or "
                "pass a table, a path or a dataset"
            )
        return Share(*self._ranks()).of_rank(total, self._options.uneven)

    def __getitem__(self, index: Any) -> NoReturn:
        """Refuses, so that PyTorch's own DataLoader, which would ask for rows, names the way."""
        raise TypeError(
            "a Loader makes batches itself: loop over it, or use loader.torch(num_workers=...) in "
            "place of a DataLoader"
        )

    def set_epoch(self, epoch: int) -> None:
        """The number of the next epoch, from which the order of a seed is drawn.

        After `load_state_dict`, the epoch of the state goes on where it stood, and any other begins
        at its start. Workers that persist learn it too; batches that they make already stay as they
        are.
        """
        self._settle()
        self._progress.set_epoch(epoch)
        for listener in self._listeners:
            listener.tell(epoch=self._progress.upcoming())

    @property
    def categories(self) -> dict[str, tuple[Any, ...]]:
        """The words of each column of `Categories`, in the order of their codes.

        Words that are to be read are read now, unless an epoch has done so.
        """
        known = self._with_words().wanted.categories
        return {name: tuple(wish.words or ()) for name, wish in known.items()}

    def encoder(self) -> Encoder:
        """What this loader makes of a column, for rows of a service: an `Encoder`.

        It has the types of the source's columns, and the words of `Categories`, which are read now
        unless an epoch has done so. Filter, order and transform are no part of it. Of a source that
        is read once, ask for it before the first loop.
        """
        options = self._with_words()
        if self._was_read and not is_function(self._data) and self._of_data().once:
            raise TypeError(
                "its source is read once, and has been: call encoder() before the first loop, or "
                "fit an Encoder to a table of these types"
            )
        source = self._opened(Share())
        if source is None:
            raise ValueError("the source has no rows now, and so no types")
        source.refresh()  # a file may have been replaced, or a frame changed, since an epoch
        return trained(source, options)

    def state_dict(self) -> dict[str, Any]:
        """Where the current epoch stands, for JSON. Each process has its own.

        It has the number of the batch, without a batch_size what tells the chunks until then, what
        orders the rows, and what tells the data from other data: the types of the columns that are
        read, the rows where they are known, digests of the footers of files, or of some rows of a
        table, and of the first and last rows, which are read once in an epoch for it.
        """
        return self._state()

    def _state(self, *, of_part: bool = False) -> dict[str, Any]:
        if self._elsewhere:
            raise TypeError(
                "workers make these batches, and each has a state: wrap this Loader in a "
                "BatchDataset for torchdata's StatefulDataLoader, which asks them"
            )
        if any(listener.is_elsewhere for listener in self._listeners):
            raise TypeError(
                "workers make these batches, and each has a state, which torchdata's "
                "StatefulDataLoader asks for; after set_epoch(n), state_dict() is where epoch n "
                "begins"
            )
        options = options_of(self._data, self._options)
        return self._progress.state(options, of_part=of_part)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """The next epoch goes on behind the batch at which `state_dict` was called.

        Its batches are those that would have come. The loop refuses other data, and keeps the
        state; the same data may be elsewhere, in other chunks, or a frame of another library.
        Without a batch_size each chunk is a batch, and one has to begin where the state stands. Of
        Parquet files only row groups are read again that have rows in the buffer of a shuffle;
        other sources, and those with a filter or physical=True, are read from the start, without
        conversions if there is a batch_size.
        """
        self._progress.load(state, options_of(self._data, self._options))
        for listener in self._listeners:
            listener.tell(state=self._progress.loaded)

    def torch(self, num_workers: int = 0, **options: Any) -> Any:
        """PyTorch's DataLoader of these batches, by ``batch_size=None``.

        They have PyTorch's tensors, unless ``framework=`` says otherwise: what it made, and what a
        transform made of it, stays as it is. Each epoch of the DataLoader has the number of this
        loader, also where workers start anew. The options are those of DataLoader. Workers are
        spawned unless multiprocessing_context says otherwise: the libraries that read files have
        threads, and do not survive a fork.
        """
        return import_module("arrow_dlpack.torch").data_loader(self, num_workers, options)

    def __getstate__(self) -> dict[str, Any]:
        data = for_pickle(self._data)
        if not _is_by_value(data):
            try:
                pickle.dumps(data)
            except Exception as error:
                parts = [one for one, _ in data.sources] if isinstance(data, Mix) else [data]
                is_filtered = any(_filters.own_of(part) is not None for part in parts)
                way = "a path, a dataset of files, a table"
                function = (
                    "a function of (index, count), at the top of a module, that opens it there"
                )
                if isinstance(data, Mix):  # which takes no functions, and has one filter for all
                    function = "polars.scan_parquet(paths).filter(...), in its place"
                elif is_filtered:
                    way = "the dataset without its filter, and that as filter= of the Loader"
                raise TypeError(
                    f"the source of this Loader, a {type(self._data).__name__}, cannot be pickled, "
                    f"and so not be handed to another process: pass {way}, or {function}"
                ) from error
        options = self._options
        for name in ("transform", "framework"):
            try:
                pickle.dumps(getattr(options, name))
            except Exception as error:
                raise TypeError(
                    f"the {name} of this Loader cannot be pickled, and so not be handed to another "
                    "process: define it with def, at the top of a module"
                ) from error
        if options.rank == "auto":
            rank, world_size = self._ranks()
            options = replace(options, rank=rank, world_size=world_size)
        own = {"_data": data, "_options": options, "_source": None, "_found": self._files()}
        own |= {
            "_progress": copy(self._progress),
            "_elsewhere": 0,
            "_listeners": (),
            "_notice": None,
        }
        return {**self.__dict__, **own}

    def _listen(self, listener: Any) -> None:
        """Calls its ``tell`` as long as it lives, which copies of this loader do not."""
        self._listeners = WeakSet([*self._listeners, listener])

    def _advance(self, epoch: int) -> None:
        """Counts an epoch that copies of this loader make in other processes, or that failed."""
        self._forget()
        self._progress.advance(epoch)

    def _forget(self) -> None:
        """Epochs that workers of a `BatchDataset` have begun are not the last ones any more."""
        for listener in self._listeners:
            listener.forget()

    def _settle(self) -> None:
        """Drops the state from which workers of a `BatchDataset` have gone on."""
        if self._progress.loaded and any(listener.is_resumed for listener in self._listeners):
            self._progress.restart()

    def _ranks(self) -> tuple[int, int]:
        return resolved(self._options.rank, self._options.world_size)

    def _of_data(self) -> Source:
        if self._source is None:
            self._source = source_of(self._data, self._found)
        return self._source

    def _files(self) -> Any:
        """The files of its paths, which copies in other processes read too."""
        if is_path(self._data) or isinstance(self._data, Mix):
            # They may be in the other process alone, or of a file system that no pickle holds.
            with suppress(Exception):
                found = self._of_data().found()
                pickle.dumps(found)
                return found
        return self._found

    def _opened(self, share: Share) -> Source | None:
        """The source, or the part of it that a function returns; None for one without rows."""
        if is_function(self._data):
            if share.world > 1 and self._options.uneven != "allow":
                raise TypeError(
                    "a function opens parts of any size, and ranks that wait for each other would "
                    'hang where one has fewer batches: say uneven="allow", or pass the files'
                )
            source = self._of_part(share.index, share.count)
            if source is not None:
                source.is_of_loop = True
            return source
        source = self._of_data()
        if source.once and (worker_info() is not None or self._was_read):
            raise TypeError(
                "a reader is read once, by the process that opened it: pass a dataset or a table, "
                "or a function of (index, count) that opens a reader"
            )
        source.check_share(share)
        return source

    def _of_part(self, index: int, count: int) -> Source | None:
        """What the function returns for a part; None for one without rows."""
        part = open_part(self._data, index, count)
        if part is None:
            return None
        check_filter(part, self._options.filter)
        return source_of(part)

    def _with_words(self) -> LoaderOptions:
        """The options, whose categories have words: those of the whole source."""
        options, of_parts = self._options, is_function(self._data)
        categories = options.wanted.categories
        if any(wish.words is None for wish in categories.values()):
            source = self._of_part(0, 1) if of_parts else self._of_data()
            if source is None:  # no rows now, and no words; a later epoch may have some
                own = categories.items()
                none = {name: replace(wish, words=wish.words or ()) for name, wish in own}
                return options.with_words(none)
            if not of_parts:
                source.refresh()
            known = scanned(source, options.query, of_parts)
            options = self._options = options.with_words(known)
        return options


def _is_by_value(data: Any) -> bool:
    if isinstance(data, (list, tuple)):
        return all(map(_is_by_value, data))
    return type(data).__name__ in _BY_VALUE
