"""Paths, URLs and patterns as files, with the keys of the folders that count for each."""

import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from glob import escape, glob, has_magic
from importlib import import_module
from itertools import chain
from pathlib import PurePath
from typing import Any
from urllib.parse import unquote

from .known import is_local_system
from .parallel import side_by_side

#: Formats of pyarrow.dataset by the ends of names; Parquet where no name tells.
_FORMATS = {
    ".parquet": "parquet",
    ".arrow": "ipc",
    ".arrows": "ipc",
    ".feather": "ipc",
    ".ipc": "ipc",
    ".csv": "csv",
    ".csv.gz": "csv",
}
#: How files with a footer of Arrow IPC begin, and those of the first version of Feather.
IPC_FILE, FEATHER = b"ARROW1", b"FEA1"
_IPC_STREAM = b"\xff\xff\xff\xff"
#: How files of gzip begin.
GZIP = b"\x1f\x8b"
#: How files begin whose names do not tell.
_BEGINNINGS = {
    b"PAR1": "parquet",
    b"PARE": "parquet",
    IPC_FILE: "ipc",
    FEATHER: "ipc",
    _IPC_STREAM: "ipc",
}
#: What reads a file that was replaced, where each epoch looks for that, for errors.
NEXT = "the next one reads it anew"
#: What Hive calls a null, as the value of a key.
_NULL = "__HIVE_DEFAULT_PARTITION__"
#: Folders that table formats keep beside the files of a table, the formats, and what reads these.
_TABLES = {
    "_delta_log": ("Delta Lake", "deltalake.DeltaTable({!r}) is a source"),
    ".hoodie": ("Hudi", 'spark.read.format("hudi").load({!r}).toArrow() is a source'),
    "_spark_metadata": (
        "Spark's streaming sink",
        "spark.read.parquet({!r}).toArrow() is a source",
    ),
}
#: How the names of Iceberg's metadata end, in the folder "metadata" of a table.
_ICEBERG = (".metadata.json", ".metadata.json.gz")
_WAY_OF_ICEBERG = (
    "a table of pyiceberg is a source, as catalog.load_table(...), or "
    "pyiceberg.table.StaticTable.from_metadata(path) with the path of its newest .metadata.json"
)


def found_files(
    names: Sequence[str], places: Sequence[str], system: Any
) -> list[tuple[str, dict[str, Any]]]:
    """The files of each of the places, in their order, and the keys of their folders.

    names: what the caller calls the places, for errors. Folders count below the one that is passed,
    and in a pattern from its first part with a wildcard on.
    """
    found: list[tuple[str, dict[str, str]]] = []
    kinds = _kinds([place for place in places if not has_magic(place)], system)
    for name, place in zip(names, places, strict=True):
        # A file may be called like a pattern.
        is_pattern = has_magic(place) and not _exists(place, system)
        if not is_pattern and kinds.get(place) == "missing":
            plain = _decoded(place)
            is_url = plain != place and _exists(plain, system)
            way = f": {plain} is there, and paths are read as they are" if is_url else ""
            raise FileNotFoundError(f"no file is called {name or repr(name)}{way}")
        if not is_pattern:
            kind = kinds.get(place) or _kind(place, system)
            own = _files_of(place, name, system) if kind == "directory" else [place]
            found += [(path, _keys(path, place) if path != place else {}) for path in own]
            continue
        pattern = _plain(place) if system is None else place
        base = _before_wildcard(pattern)
        told = pattern.split("/")
        matches = sorted(
            match
            for match in (_glob(pattern) if system is None else system.glob(pattern))
            if not any(_is_hidden(part) and not _is_told(part, told) for part in match.split("/"))
            and not (system is None and _is_closed(match))
        )
        if not matches:
            raise FileNotFoundError(f"no file is called {name}")
        of_matches = _kinds(matches, system)
        # "**" matches a folder, and what is in it.
        below: dict[str, None] = {}
        for match in matches:
            is_folder = of_matches[match] == "directory"
            own = _files_of(match, match, system, is_pattern) if is_folder else [match]
            below |= dict.fromkeys(own)
        found += [(path, _keys(path, base)) for path in below]
    if not found:
        folders = " and ".join(dict.fromkeys(names))
        raise FileNotFoundError(
            f"no file is in {folders}, but for hidden ones, of which names begin with . or _: they "
            "are not read"
        )
    _check_utf8(found)
    return _typed([(path if system is not None else _no_uri(path), keys) for path, keys in found])


def _no_uri(path: str) -> str:
    """The path, which pyarrow would take for a URI if it began like "s3:a"."""
    return os.path.join(os.curdir, path) if ":" in path.partition("/")[0] else path


def _plain(pattern: str) -> str:
    """The pattern with one slash between its parts, and "." at most as its first part: each file
    then has one name, whose beginning is that of the pattern.
    """
    told = pattern.split("/")
    parts = [part for part in told if part not in ("", ".")]
    # "**/" leaves out where it begins, and "./**/" does not.
    begin = "/" if pattern.startswith("/") else "./" if "." in told else ""
    return begin + "/".join(parts) + ("/" if told[-1] in ("", ".") else "")


def _glob(pattern: str) -> Iterator[str]:
    """The local files and folders of a pattern, which is plain.

    glob follows a link to a folder above forty times below "**", and two of them for ever.
    """
    parts = pattern.split("/")
    if "**" not in parts:
        yield from glob(pattern)
        return
    at = parts.index("**")
    first, rest = "/".join(parts[:at]), "/".join(parts[at + 1 :])
    first = first or ("/" if pattern.startswith("/") else "")
    for top in glob(first) if has_magic(first) else [first]:
        for folder, files in _walk(top) if os.path.isdir(top or os.curdir) else ():
            if rest:
                yield from _glob(os.path.join(escape(folder), rest))
            else:
                yield from [folder] if folder else []
                # With a slash at its end it is of folders.
                found = () if pattern.endswith("/") else files
                yield from (os.path.join(folder, file) for file in found)


def _walk(folder: str, above: Collection[str] = ()) -> Iterator[tuple[str, list[str]]]:
    """The folder, each below it, and the files of each, as "**" has them, but for what links to
    folders above lead to.

    above: the real folders that lead to this one.
    """
    real = os.path.realpath(folder or os.curdir)
    above = {*(above or map(str, PurePath(real).parents)), real}
    try:
        shown = [one for one in os.scandir(folder or os.curdir) if not one.name.startswith(".")]
    except OSError:  # of another user
        return
    # Not `is_dir` of an entry, which raises where a link may not be followed.
    paths = {one.name: os.path.join(folder, one.name) for one in shown}
    inner = {name: path for name, path in paths.items() if os.path.isdir(path)}
    yield folder, [name for name in paths if name not in inner]
    for path in inner.values():
        if os.path.realpath(path) not in above:
            yield from _walk(path, above)


def _is_closed(path: str) -> bool:
    """Whether it may not be looked at, as what a link leads to within a folder of another user:
    then it is no file, unless its name says so.
    """
    try:
        os.stat(path)
    except PermissionError:
        return not is_told(path)
    except OSError:  # reading it tells
        return False
    return False


def _kinds(places: Sequence[str], system: Any) -> dict[str, str]:
    """Which are files, directories or missing, asked for side by side over a network."""
    if system is None:
        return {place: _kind(place, None) for place in places}
    kinds = side_by_side(lambda place: _kind(place, system), places, system)
    return dict(zip(places, kinds, strict=True))


def _kind(place: str, system: Any) -> str:
    if system is None:
        if not os.path.exists(place):
            return "missing"
        if os.path.isdir(place):
            return "directory"
        if not os.path.isfile(place):
            # Opening a pipe waits for who writes, and files are read more than once.
            raise ValueError(
                f"{place} is a pipe or a device, and no file: pass what reads it, as "
                "pyarrow.csv.open_csv(path) or pyarrow.ipc.open_stream(path)"
            )
        return "file"
    try:
        return str(system.info(place)["type"])
    except FileNotFoundError:
        return "missing"


def _exists(place: str, system: Any) -> bool:
    return os.path.exists(place) if system is None else bool(system.exists(place))


def _shown(names: Iterable[str]) -> list[str]:
    """In their order, but for those that jobs leave beside their files, such as _SUCCESS."""
    return sorted(name for name in names if not _is_hidden(name))


def _below(folder: str, system: Any, called: str | None) -> list[str]:
    """The files of a folder and of those in it, but for hidden ones.

    called: the folder's name for errors, if it may be no table and have none in it.
    """

    def check(inner: Iterable[str]) -> None:
        if called is not None:
            _check_no_table(inner, called)

    def local() -> Iterator[str]:
        top = os.path.realpath(folder)
        walked = {top}
        for at, folders, files in os.walk(folder, followlinks=True):
            beside = at.removeprefix(folder).replace(os.sep, "/").strip("/")
            own = chain((f"{one}/" for one in sorted(folders)), sorted(files))
            check(f"{beside}/{one}".removeprefix("/") for one in own)
            inner = []
            for name in _shown(folders):
                real = os.path.realpath(path := os.path.join(at, name))
                below = real.removeprefix(top + os.sep)
                # What a link leads to in this folder is found there, where its keys are.
                is_found = os.path.islink(path) and below != real and not _is_hidden(below)
                # A link may lead to a folder above.
                if not is_found and real not in walked:
                    walked.add(real)
                    inner.append(name)
            folders[:] = inner
            paths = (os.path.join(at, file) for file in _shown(files))
            yield from (path for path in paths if not _is_closed(path))

    if system is None:
        return sorted(local())
    found = sorted(system.find(folder))
    base = folder.rstrip("/") + "/"
    check(path.removeprefix(base) for path in found)
    shown = (path for path in found if not path.endswith("/"))
    return [path for path in shown if not _is_hidden(path.removeprefix(base))]


def _check_no_table(paths: Iterable[str], name: str) -> None:
    """An error for a folder of a table format: which of its files count, its log alone tells.

    paths: what is in the folder, with hidden names and a slash after each folder.
    """
    for path in paths:
        *folders, file = path.split("/")
        for at, part in enumerate(folders):
            is_iceberg = folders[at:] == ["metadata"] and file.endswith(_ICEBERG)
            if part in _TABLES or is_iceberg:
                form, way = _TABLES.get(part, ("Iceberg", _WAY_OF_ICEBERG))
                table = "/".join([name.removesuffix("/"), *folders[:at]]) if at else name
                raise ValueError(
                    f"{table} is a table of {form}, as {file if is_iceberg else part} in it tells, "
                    "and may have files that are deleted or not committed: "
                    f"{way.format(table)}; a list of its current files, or a pattern such as "
                    '"folder/**/*.parquet" for every file that is there, is read too'
                )
            if _is_hidden(part):  # what is in it is not read
                break


def _files_of(folder: str, name: str, system: Any, is_pattern: bool = False) -> list[str]:
    """The files of a folder; of one that save_to_disk of Hugging Face made, those with its rows.

    is_pattern: a pattern matched it, which is the caller's word for what is in it.
    """
    files = _below(folder, system, None if is_pattern else name)
    base = folder.rstrip("/")
    own = (file for file in files if os.path.dirname(file).rstrip("/") == base)
    at = {os.path.basename(file): file for file in own}
    if "dataset_dict.json" in at:
        splits = ", ".join(_json(at["dataset_dict.json"], system)["splits"])
        first = splits.partition(",")[0]
        raise TypeError(
            f"{name} is a DatasetDict of several sources ({splits}): pass the folder of one of "
            f"them, as {name.removesuffix('/')}/{first}"
        )
    if not {"state.json", "dataset_info.json"} <= set(at):
        # A copy beside the data, such as a.parquet.bak, has rows that are there already.
        formats = {file: told_by_name(file) for file in files}
        foreign = [file for file, told in formats.items() if not told and os.path.splitext(file)[1]]
        if foreign and len(set(filter(None, formats.values()))) == 1:
            raise ValueError(unread(foreign[0]))
        return files
    listed = _json(at["state.json"], system).get("_data_files")
    if listed is None:  # of somebody else
        return files
    return [at["state.json"].removesuffix("state.json") + file["filename"] for file in listed]


def _json(path: str, system: Any) -> Any:
    with open(path) if system is None else system.open(path, "r") as file:
        return json.load(file)


def _is_hidden(path: str) -> bool:
    return any(part.startswith(("_", ".")) for part in path.split("/"))


def _is_told(part: str, told: Sequence[str]) -> bool:
    """Whether a pattern asks for hidden names, and for this one."""
    return any(_is_hidden(own) and fnmatchcase(part, own) for own in told)


def _before_wildcard(pattern: str) -> str:
    parts = pattern.split("/")
    first = next(at for at, part in enumerate(parts) if has_magic(part))
    return "/".join(parts[:first])


def _keys(path: str, base: str) -> dict[str, str]:
    """The values of the keys of folders between the base and the file."""
    below = path.removeprefix(base).replace(os.sep, "/").split("/")[:-1]
    keys: dict[str, str] = {}
    for name, equals, value in (part.partition("=") for part in below):
        if equals:  # of several folders the outer one counts, as pyarrow and DuckDB have it
            keys.setdefault(_decoded(name), _decoded(value))
    return keys


def _decoded(text: str) -> str:
    """Bytes that are not UTF-8 stay apart, as they do in names of files."""
    return unquote(text, errors="surrogateescape")


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _check_utf8(files: Iterable[tuple[str, Mapping[str, str]]]) -> None:
    """An error for a name that is not UTF-8, which pyarrow does not take, and for such a key: two
    of them would be one text.
    """
    for path, keys in files:
        if not _is_utf8(path):
            raise ValueError(
                f"{path!r}: its name, or that of a folder above, is not UTF-8, and pyarrow does "
                "not open it: rename it"
            )
        if not all(map(_is_utf8, chain(keys, keys.values()))):
            raise ValueError(
                f"{path!r}: a key of its folders is not UTF-8 once % is decoded: rename the folder"
            )


def of_key(
    error: KeyError, paths: Iterable[str], known: Collection[str], or_else: str = ""
) -> KeyError:
    """A better error, if it names the key of a folder that does not count.

    known: the columns of these files, and the keys that count.
    or_else: what has the key too.
    """
    for path in paths:
        for name in _keys(path, ""):
            if name not in known and f'"{name}"' in str(error):
                return KeyError(
                    f'no column "{name}": of {path} it is the key of a folder, which counts only '
                    "below the folder that is passed, or from the first part of a pattern with a "
                    f'wildcard on: pass the folder that has "{name}=..." in it{or_else}'
                )
    return error


def _typed(
    files: Sequence[tuple[str, Mapping[str, str]]],
) -> list[tuple[str, dict[str, Any]]]:
    """With keys of 32-bit integers where all files have such, and of texts elsewhere."""
    if not any(keys for _, keys in files):
        return [(path, {}) for path, _ in files]
    pa = import_module("pyarrow")
    values: dict[str, set[str]] = {}
    for _, keys in files:
        for name, value in keys.items():
            values.setdefault(name, set()).add(value)
    kinds = {
        name: pa.int32() if _are_integers(own) else pa.string() for name, own in values.items()
    }

    def typed(name: str, value: str) -> Any:
        if value == _NULL:
            return pa.scalar(None, kinds[name])
        return pa.scalar(int(value) if pa.types.is_int32(kinds[name]) else value, kinds[name])

    return [
        (path, {name: typed(name, value) for name, value in keys.items()}) for path, keys in files
    ]


def _are_integers(values: Iterable[str]) -> bool:
    told = [value for value in values if value != _NULL]
    digits = (value.removeprefix("-") for value in told)
    are_plain = all(value.isascii() and value.isdecimal() and len(value) < 11 for value in digits)
    return bool(told) and are_plain and all(-(2**31) <= int(value) < 2**31 for value in told)


def stamp_of(path: str) -> tuple[int, int, int] | None:
    """What tells a local file from another one in its place; None of a file that is gone."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    # A copy may keep the time of its contents, but not its place. That of its change is also that
    # of other rights, and of another link to it, as a backup makes one.
    return found.st_size, found.st_mtime_ns, found.st_ino


def is_rewritten(path: str, begun: tuple[int, int, int] | None) -> bool:
    """Whether a local file has other contents than when it was stamped so: one that another file
    took the place of is read to its end.
    """
    found = stamp_of(path)
    if begun is None or found is None:
        return False
    return found != begun and found[2] == begun[2]


class Watch:
    """Refuses local files that change while a scan reads them, one after the other: one whose place
    another file takes once it has given a batch is open, and read to its end.
    """

    def __init__(self, begun: Mapping[str, tuple[int, int, int] | None]) -> None:
        """begun: the stamps of the files as the scan began."""
        self._begun, self._unread, self._last = begun, set(begun), ""

    def look(self, path: str) -> None:
        """At the file of a batch."""
        if path != self._last:
            self._check_last()
            self._last = path
            self._unread.discard(path)
            self._check_place(path)  # which may be one that has had a turn
        self._check_last()

    def end(self) -> None:
        """The scan has no more batches: of a file that was cut it may have given none."""
        self._check_last()
        for path in self._unread:
            self._check_place(path)

    def _check_place(self, path: str) -> None:
        stamp = self._begun.get(path)
        if stamp is not None and stamp_of(path) not in (None, stamp):
            raise OSError(of_replaced(path, NEXT))

    def _check_last(self) -> None:
        if is_rewritten(self._last, self._begun.get(self._last)):
            raise OSError(of_replaced(self._last, NEXT))


def format_of(files: Sequence[str], system: Any) -> Any:
    """pyarrow's format of all of these files, by the ends of names, or how the first one begins."""
    found: dict[str, str] = {}
    for file in files:
        if (form := told_by_name(file)) is not None:
            found.setdefault(form, file)
    if not found:
        begin = beginning(files[0], system)
        if not begin:
            raise ValueError(of_no_bytes(files[0]))
        told = next((form for of, form in _BEGINNINGS.items() if begin.startswith(of)), None)
        if told is None:
            raise ValueError(unread(files[0]))
        found[told] = files[0]
    if len(found) > 1:
        raise ValueError(
            f"files of one format are read together, and there are {' and '.join(found.values())}: "
            "a Mix takes both"
        )
    dataset = import_module("pyarrow.dataset")
    formats = {
        "parquet": dataset.ParquetFileFormat,
        "ipc": dataset.IpcFileFormat,
        "csv": _csv_format,
    }
    return formats[next(iter(found))]()


def _csv_format() -> Any:
    """Without this pyarrow cuts blocks at line ends within quotes, into rows that there are not."""
    parse = import_module("pyarrow.csv").ParseOptions(newlines_in_values=True)
    return import_module("pyarrow.dataset").CsvFileFormat(parse_options=parse)


def told_by_name(file: str) -> str | None:
    """The format that the name says."""
    end = next((end for end in _FORMATS if file.lower().endswith(end)), None)
    return None if end is None else _FORMATS[end]


def is_told(file: str) -> bool:
    """Whether the name says the format."""
    return told_by_name(file) is not None


def beginning(path: str, system: Any) -> bytes:
    """The first bytes of a file."""
    with named(path), system.open_input_stream(path, compression=None) as file:
        return bytes(file.read(8))


def are_ipc_files(paths: Sequence[str], system: Any) -> bool:
    """Whether these have footers, which pyarrow's datasets need, and are no streams.

    Of files over a network the first one tells for all.
    """
    asked = paths if is_local_system(system) else paths[:1]
    return all(beginning(path, system).startswith(IPC_FILE) for path in asked)


def is_ipc(path: str, begin: bytes) -> bool:
    """Whether it may be one of Arrow IPC, by its name or how it begins."""
    return is_told(path) or begin.startswith((IPC_FILE, FEATHER, _IPC_STREAM))


def unread(path: str) -> str:
    """The error for a file that is of no format that is read."""
    if path.endswith(_ICEBERG):
        return f"{path} is the metadata of a table of Iceberg, and has no rows: {_WAY_OF_ICEBERG}"
    end = os.path.splitext(path.lower().removesuffix(".gz"))[1]
    way = _ELSEWHERE.get(
        end, "what opens it as a table, or as a dataset of pyarrow, makes a source"
    )
    return (
        f"{path} is none of the files that a Loader reads: Parquet (.parquet), Arrow IPC (.arrow, "
        f".arrows, .feather, .ipc) and CSV (.csv, .csv.gz); {way}, and a pattern such as "
        '"folder/**/*.parquet" leaves it out'
    )


def of_no_bytes(path: str) -> str:
    """The error for a file of no bytes, which a program that ended early may leave."""
    return (
        f"{path} has no bytes, and so no columns: write it again, or pass a list of paths or a "
        "pattern without it"
    )


def of_gzip(path: str) -> str:
    """The error for a file of gzip whose name does not say so."""
    return f"{path} is a file of gzip, which is read if its name ends in .csv.gz: rename it"


def of_replaced(path: str, anew: str) -> str:
    """The error for a file that is another one than its schema, or its footer, was read of."""
    return f"{path} was replaced or written to while an epoch read it: {anew}"


def of_no_type(path: str, error: Exception, call: str) -> str:
    """The error for a file with a type that pyarrow has not, as polars's integers of 128 bits are.

    call: the function of polars that reads the file.
    """
    return (
        f"{path}: pyarrow does not read it ({error}); polars may, and polars.{call}(path) is a "
        "source"
    )


#: Ends of names that pyarrow's datasets have formats for.
_ELSEWHERE = {
    end: f'pyarrow.dataset.dataset(path, format="{form}") is a source'
    for end, form in {".json": "json", ".jsonl": "json", ".ndjson": "json", ".orc": "orc"}.items()
} | dict.fromkeys(
    (".tsv", ".txt", ".tab"),
    "pyarrow.dataset.dataset(path, format=pyarrow.dataset.CsvFileFormat(...)) is a source",
)


def retold(error: Exception, text: str) -> Exception:
    """An error of the same class with this text; of a class that is made of more, as those of HTTP,
    the same error with a note.
    """
    try:
        return type(error)(text)
    except Exception:  # of a class that takes something else
        if text not in getattr(error, "__notes__", []):
            error.add_note(text)
        return error


def naming(error: Exception, path: str) -> Exception:
    """The error, or one in its place, that names the file."""
    return error if path in str(error) else retold(error, f"{path}: {error}")


@contextmanager
def named(path: str) -> Iterator[None]:
    """Names the file in errors of reading that do not."""
    try:
        yield
    except (OSError, ValueError) as error:
        if (told := naming(error, path)) is error:
            raise
        raise told from error


def arrow_system(system: Any) -> Any:
    """pyarrow's file system for one of fsspec's, None for this machine's."""
    fs = import_module("pyarrow.fs")
    if system is None:
        return fs.LocalFileSystem()
    return fs.PyFileSystem(fs.FSSpecHandler(system))
