"""Scans of Iceberg tables, by pyiceberg."""

from collections.abc import Iterator, Sequence
from functools import partial
from importlib import import_module
from typing import Any

from .. import _core
from .identity import digest_of, ends_of, is_cheap, of_types
from .readers import Made, heads
from .schema import ALL, Query
from .source import Opened, casting


class Iceberg(Opened):
    """A scan of one snapshot, whose files are planned once and read one after the other.

    pyiceberg's own reader hands all files to its threads at once, and a loop that is slower than
    they are would have the whole table in memory.
    """

    way = casting("scan.to_arrow().cast(schema)")

    def __init__(self, scan: Any) -> None:
        names = [field.name for field in scan.projection().fields]
        super().__init__(
            lambda columns: self._scanned(self._selected(columns)), names=lambda: names
        )
        self._scan = scan
        self._planned: list[Any] | None = None

    @property
    def _tasks(self) -> list[Any]:
        if self._planned is None:
            self._planned = list(self._scan.plan_files())
            # Of several snapshots pyiceberg has a set, whose order is another one in each process.
            if not hasattr(self._scan, "snapshot_id"):
                self._planned.sort(key=lambda task: str(task.file.file_path))
        return self._planned

    def rows(self, query: Query = ALL) -> int | None:
        """From the manifests; files that have deleted rows, or others than its own, are read."""
        if self._rows is None:
            rows = sum(map(self._rows_of, self._tasks))
            limit = self._scan.limit
            self._rows = rows if limit is None else min(rows, limit)
        return super().rows(query)

    def _identity_of(self, query: Query) -> dict[str, Any]:
        sizes = [(task.file.record_count, task.file.file_size_in_bytes) for task in self._tasks]
        told = of_types(_schema_of(self._scan), query) | {"snapshot": digest_of(sizes)}
        # Others are known when their files have been read.
        is_known = self._scan.limit is None and all(map(_is_whole, self._tasks))
        told |= {"rows": self.rows()} if is_known else {}
        names = sorted(told["columns"])
        return told | {"ends": partial(ends_of, partial(self._ends, names), names)}

    def _ends(self, names: Sequence[str], is_last: bool) -> Iterator[Any]:
        """Batches of the first or last files; None for those that cost too much: pyiceberg reads
        whole files.
        """
        if self._scan.limit is not None:
            yield None
        scan = self._selected(heads(names, self._names))
        size = 0
        for task in reversed(self._tasks) if is_last else self._tasks:
            size += task.file.file_size_in_bytes
            if not is_cheap(size):
                yield None
            whole = import_module("pyarrow").Table.from_batches(_batches(scan, task))
            yield whole.cast(_schema_of(scan))

    def _selected(self, columns: Sequence[str] | None) -> Any:
        """The scan of these columns only, of those that it has been told."""
        if columns is None:
            return self._scan
        _core._check_names(list(self._names() or []), list(columns))
        own = self._scan.selected_fields
        if "*" in own:
            return self._scan.update(selected_fields=tuple(columns))
        within = tuple(name for name in own if any(_meet(name, other) for other in columns))
        is_told = within and self._scan.case_sensitive
        return self._scan.update(selected_fields=within) if is_told else self._scan

    def _rows_of(self, task: Any) -> int:
        if _is_whole(task):
            return int(task.file.record_count)
        first = self._selected((self._names() or [])[:1])
        return sum(batch.num_rows for batch in _batches(first, task))

    def _scanned(self, scan: Any) -> Any:
        schema = _schema_of(scan)
        of = import_module("pyarrow").RecordBatchReader.from_batches

        def batches() -> Iterator[Any]:
            left = scan.limit
            for task in self._tasks:
                if left == 0:
                    return
                for batch in of(schema, _batches(scan, task)).cast(schema):
                    yield batch if left is None else batch.slice(0, left)
                    left = None if left is None else max(left - batch.num_rows, 0)

        return Made(schema, batches())


def portable(source: Any) -> Any:
    """A scan that another process takes: one of a table has its catalog, which has connections."""
    scan = source if hasattr(source, "plan_files") else source.scan()
    return scan.update(catalog=None) if hasattr(scan, "catalog") else scan


def _meet(name: str, other: str) -> bool:
    """Whether one of the columns is the other one, or is within it."""
    return f"{name}.".startswith(f"{other}.") or f"{other}.".startswith(f"{name}.")


def _is_whole(task: Any) -> bool:
    """Whether all rows of its file are read."""
    return not task.delete_files and str(task.residual) == "AlwaysTrue()"


def _schema_of(scan: Any) -> Any:
    """The columns that it reads, in types of Arrow."""
    return import_module("pyiceberg.io.pyarrow").schema_to_pyarrow(scan.projection())


def _batches(scan: Any, task: Any) -> Iterator[Any]:
    scanner = import_module("pyiceberg.io.pyarrow").ArrowScan(
        scan.table_metadata, scan.io, scan.projection(), scan.row_filter, scan.case_sensitive
    )
    batches: Iterator[Any] = scanner.to_record_batches([task])
    return batches
