"""Sources of rows, and datasets of files, whose row groups are read alone."""

import random
from collections.abc import Callable, Sequence
from importlib import import_module
from itertools import chain
from typing import Any

from . import _core
from ._pieces import Piece, cut, len_of, pieces_of, rows_at, rows_of
from ._readers import heads, reached, reader_of, without_views

#: Columns that pyarrow's scanners have beside those of a dataset's schema.
_OF_FILES = ["__filename", "__fragment_index", "__batch_index", "__last_in_fragment"]


class Source:
    """Something with rows, read from the first to the last one."""

    def __init__(
        self,
        open_columns: Callable[[Sequence[str] | None], Any],
        rows: int | None = None,
        once: bool = False,
        names: Callable[[], Sequence[str] | None] = lambda: None,
    ) -> None:
        self._open, self._rows, self.once, self._names = open_columns, rows, once, names
        self._counted: dict[str, int] = {}

    def rows(self, where: Any = None) -> int | None:
        """How many rows it has; those of a filter are counted once."""
        if where is None or self._rows is None or self.once:
            return self._rows if where is None else None
        if self._counted.get(str(where)) is None:
            batches = without_views(reader_of(self._open(None)))
            scanner = import_module("pyarrow.dataset").Scanner
            rows = scanner.from_batches(batches, filter=where).count_rows()
            self._counted[str(where)] = rows
        return self._counted[str(where)]

    def read(self, columns: Sequence[str] | None, where: Any = None) -> Any:
        """Arrow data with at least these columns; `where` is a filter of pyarrow's."""
        if where is None:
            return reached(self._open(heads(columns, self._names)), columns)
        batches = without_views(reader_of(self._open(None)))
        names = heads(columns, lambda: batches.schema.names)
        scanner = import_module("pyarrow.dataset").Scanner
        some = scanner.from_batches(batches, filter=where, columns=names)
        return reached(some.to_reader(), columns)

    def pieces(self) -> list[Piece] | None:
        """Its row groups, if it can read each of them alone."""
        return None


class Dataset(Source):
    """A dataset of pyarrow, or of another library that has its `scanner`."""

    def __init__(self, dataset: Any) -> None:
        super().__init__(lambda columns: None)
        self._dataset = dataset
        self._pieces: list[Piece] | None = None

    def rows(self, where: Any = None) -> int | None:
        if not hasattr(self._dataset, "count_rows"):
            return None
        count: int = self._dataset.count_rows(**({} if where is None else {"filter": where}))
        return count

    def read(self, columns: Sequence[str] | None, where: Any = None) -> Any:
        if has_no_columns(self._dataset):
            raise ValueError("the dataset has no columns: was it made of no files?")
        options: dict[str, Any] = {} if where is None else {"filter": where}
        wanted = _of_dataset(self._dataset, columns)
        options |= _ahead_of(self._dataset)
        scanner = self._dataset.scanner(columns=wanted, **options)
        return reached(scanner.to_reader() if hasattr(scanner, "to_reader") else scanner, columns)

    def pieces(self) -> list[Piece] | None:
        if self._pieces is None and type(self._dataset).__name__ == "FileSystemDataset":
            try:
                fragments = list(self._dataset.get_fragments())
            except ValueError:  # it has a filter of its own
                return None
            if all(hasattr(fragment, "row_groups") for fragment in fragments):
                self._pieces = [
                    Piece(fragment.subset(row_group_ids=[group.id]), 0, group.num_rows)
                    for fragment in fragments
                    for group in fragment.row_groups
                ]
        return self._pieces

    def shuffled(self, pieces: list[Piece], seed: int) -> list[Piece]:
        """The pieces in an order that is drawn."""
        shuffled = list(pieces)
        random.Random(seed).shuffle(shuffled)
        return shuffled

    def read_pieces(
        self, columns: Sequence[str] | None, pieces: Sequence[Piece], where: Any = None
    ) -> Any:
        """Arrow data of these pieces, in this order; a filter is for whole row groups."""
        pa, ours = import_module("pyarrow"), self._dataset
        groups = [piece.group for piece in pieces]
        make = import_module("pyarrow.dataset").FileSystemDataset
        some = make(groups, ours.schema, ours.format, getattr(ours, "filesystem", None))
        reader = Dataset(some).read(columns, where)
        if where is not None:
            return reader
        cuts = [(piece.start, piece.stop, rows_of(piece)) for piece in pieces]
        if all(start == 0 and stop == rows for start, stop, rows in cuts):
            return reader
        return pa.RecordBatchReader.from_batches(reader.schema, cut(reader, cuts))

    def read_resumed(
        self,
        columns: Sequence[str] | None,
        pieces: Sequence[Piece],
        positions: Any,
        read: int,
    ) -> Any:
        """The rows of the pieces at some positions, in their order, and then all from `read` on."""
        total = sum(map(len_of, pieces))
        rest = self.read_pieces(columns, list(pieces_of(pieces, read, total)))
        pool = rows_at(positions, pieces, lambda one: self.read_pieces(columns, [one]).read_all())
        batches = chain([] if pool is None else pool.to_batches(), rest)
        return import_module("pyarrow").RecordBatchReader.from_batches(rest.schema, batches)


def _of_dataset(dataset: Any, columns: Sequence[str] | None) -> list[str] | None:
    """The columns that are to be read, None for all."""
    if columns is None:
        return None
    names: Any = getattr(getattr(dataset, "schema", None), "names", None)
    wanted = heads(list(dict.fromkeys(columns)), lambda: names)
    if names is not None and wanted is not None:
        _core._check_names(names, [name for name in wanted if name not in _OF_FILES])
    return wanted


def _ahead_of(dataset: Any) -> dict[str, int]:
    """How far a scan of local files reads ahead: enough for all cores.

    As far as pyarrow reads by itself, 16 batches, two cores decode most of a file before its first
    batch is whole, and are idle while batches are made of it.
    """
    if getattr(getattr(dataset, "filesystem", None), "type_name", None) != "local":
        return {}
    return {"batch_readahead": min(16, 2 * import_module("pyarrow").cpu_count())}


def has_no_columns(source: Any) -> bool:
    """Whether it is a dataset of pyarrow's that was made of nothing."""
    has_scanner = hasattr(source, "scanner")
    return has_scanner and getattr(getattr(source, "schema", None), "names", None) == []
