"""Files of Arrow IPC that pyarrow's datasets do not read: streams, and Feather's first version."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from functools import partial
from importlib import import_module
from typing import Any

from .identity import of_files, of_types, stamps_of
from .known import is_local_system, local_path
from .paths import (
    FEATHER,
    IPC_FILE,
    NEXT,
    Watch,
    is_ipc,
    named,
    of_key,
    of_no_bytes,
    of_no_type,
    of_replaced,
    stamp_of,
    unread,
)
from .readers import Made
from .schema import ALL, Query, Run, with_keys
from .source import Several, casting


class IpcFile:
    """A file of record batches, whose schema is at its beginning."""

    def __init__(self, path: str, keys: Mapping[str, Any], system: Any) -> None:
        """keys: the values of the keys of folders, by their names."""
        self.path, self._keys, self.filesystem = path, keys, system
        #: Those of columns that the file has not itself, once it has been opened.
        self.keys: Mapping[str, Any] = {}
        #: Whether another file was there when an epoch read it.
        self.is_other = False
        self._schema: Any = None

    @property
    def schema(self) -> Any:
        """Read once."""
        if self._schema is None:
            self._schema = self.open().schema
        return self._schema

    def open(self, begun: Any = None) -> Made:
        """All of its batches.

        begun: the stamp of a local file as the epoch began, None for that of now.
        """
        place = local_path(self.path, self.filesystem)
        watch = Watch({} if place is None else {place: begun or stamp_of(place)})
        look = partial(watch.look, place or "")
        look()
        with named(self.path):
            reader = self._reader(self.filesystem.open_input_file(self.path))
        known = reader.schema.names
        self.keys = {name: key for name, key in self._keys.items() if name not in known}
        schema = with_keys(reader.schema, self.keys)
        return Made(schema, self._batches(reader, schema, look))

    def rows(self) -> int:
        """Of a file of this machine, whose values are read for it only if they are compressed."""
        with named(self.path):
            reader = self._reader(import_module("pyarrow").memory_map(self.path))
            return sum(batch.num_rows for batch in reader)

    def _reader(self, file: Any) -> Any:
        pa = import_module("pyarrow")
        begin = bytes(file.read(8))
        file.seek(0)
        if not begin:
            raise ValueError(of_no_bytes(self.path))
        if begin.startswith(FEATHER):
            return import_module("pyarrow.feather").read_table(file).to_reader()
        if not is_ipc(self.path, begin):
            raise ValueError(unread(self.path))
        if not begin.startswith(IPC_FILE):
            try:
                stream = pa.ipc.open_stream(file)
            except NotImplementedError as error:
                told = of_no_type(self.path, error, "read_ipc_stream")
                raise type(error)(told) from error
            return Made(stream.schema, self._to_end(stream, file))
        whole = pa.ipc.open_file(file)
        batches = (whole.get_batch(at) for at in range(whole.num_record_batches))
        return pa.RecordBatchReader.from_batches(whole.schema, batches)

    def _to_end(self, stream: Any, file: Any) -> Iterator[Any]:
        """The batches of a stream, which pyarrow reads up to a mark, whatever is behind it."""
        yield from stream
        # Another mark of the end, and padding, have no rows.
        if file.read(1 << 16).strip(b"\0\xff"):
            raise ValueError(
                f"{self.path} has more behind the end of its stream, such as a second stream: with "
                "file = pyarrow.OSFile(path) each call of pyarrow.ipc.open_stream(file).read_all() "
                "reads the next one, and a list of these tables is a source"
            )

    def _batches(self, reader: Any, schema: Any, look: Callable[[], None]) -> Iterator[Any]:
        """look: fails where a local file has changed."""
        pa = import_module("pyarrow")
        with named(self.path):
            try:
                for batch in reader:
                    look()
                    columns = batch.columns
                    keys = [self.keys[name] for name in schema.names[len(columns) :]]
                    columns += [pa.repeat(key, len(batch)) for key in keys]
                    yield pa.RecordBatch.from_arrays(columns, schema=schema)
            except Exception:
                look()  # a file that was rewritten has other bytes
                raise
            look()  # of a file that was cut there are no more batches


class IpcFiles(Several):
    """Files in any format of Arrow IPC, read one after the other."""

    way = casting("pyarrow.ipc.open_stream(path).read_all().cast(schema)")

    def __init__(self, files: Sequence[tuple[str, Mapping[str, Any]]], system: Any) -> None:
        self._files = [IpcFile(path, keys, system) for path, keys in files]
        super().__init__(self._files)
        self._found = partial(IpcFiles, files, system)
        self._is_local = is_local_system(system)
        #: What told local files from others when their schemas were read.
        self._stamped = self._stamps()

    def found(self) -> Any:
        return self._found

    def _name(self, at: int) -> str:
        return self._files[at].path

    def _reader(self, at: int, query: Query) -> Any:
        file = self._files[at]
        told, opened = file.schema, file.open(self._stamped[at] if self._stamped else None)
        if not opened.schema.equals(told):
            file.is_other = True  # the next epoch reads the schemas of files elsewhere too
            raise OSError(of_replaced(file.path, NEXT))
        return opened

    def _schema(self, at: int, query: Query) -> Any:
        return self._files[at].schema

    def rows(self, query: Query = ALL) -> int | None:
        # Over a network this would take as long as to read them.
        if self._rows is None and self._is_local:
            self._rows = sum(file.rows() for file in self._files)
        return super().rows(query)

    def head(self) -> tuple[list[Any], bool]:
        return [self._files[0].schema], len(self._files) == 1

    def explained(self, error: Exception, query: Query) -> Exception:
        if not isinstance(error, KeyError):
            return error
        known = [name for file in self._files for name in file.schema.names]
        return of_key(error, [file.path for file in self._files], known)

    def runs(self, query: Query) -> list[Run]:
        # What is read anew later is no matter of this epoch.
        return Several.runs(copy(self), query)

    def refresh(self) -> None:
        stamped = self._stamps()
        if stamped != self._stamped or any(file.is_other for file in self._files):
            self._stamped, self._schemas, self._rows, self._counted = stamped, {}, None, {}
            for file in self._files:
                file._schema, file.is_other = None, False

    def _stamps(self) -> list[Any]:
        if not self._is_local:
            return []
        return [stamp_of(file.path) for file in self._files]

    def identity(self, query: Query) -> Callable[[], dict[str, Any]]:
        begun = stamps_of(self._files)

        def told() -> dict[str, Any]:
            found = of_types(self.schema(query), query)
            found |= {} if self._rows is None else {"rows": self._rows}
            return of_files(self._files, found, [file.keys for file in self._files], begun)

        return told
