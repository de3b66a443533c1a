"""Paths, URLs and patterns as files, with the keys of the folders that count for each."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from glob import glob, has_magic
from importlib import import_module
from typing import Any
from urllib.parse import unquote

from ._parallel import side_by_side

#: Formats of pyarrow.dataset by the ends of names; Parquet where no name tells.
_FORMATS = {
    ".parquet": "parquet",
    ".arrow": "ipc",
    ".feather": "ipc",
    ".ipc": "ipc",
    ".csv": "csv",
    ".csv.gz": "csv",
}
#: What Hive calls a null, as the value of a key.
_NULL = "__HIVE_DEFAULT_PARTITION__"


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
        if not place or (not is_pattern and kinds.get(place) == "missing"):
            raise FileNotFoundError(f"no file is called {name or repr(name)}")
        if not is_pattern:
            kind = kinds.get(place) or _kind(place, system)
            own = _below(place, system) if kind == "directory" else [place]
            found += [(path, _keys(path, place) if path != place else {}) for path in own]
            continue
        base = _before_wildcard(place)
        told = place.split("/")
        matches = sorted(
            match
            for match in (glob(place, recursive=True) if system is None else system.glob(place))
            if not any(_is_hidden(part) and not _is_told(part, told) for part in match.split("/"))
        )
        if not matches:
            raise FileNotFoundError(f"no file is called {name}")
        of_matches = _kinds(matches, system)
        # "**" matches a folder, and what is in it.
        below: dict[str, None] = {}
        for match in matches:
            is_folder = of_matches[match] == "directory"
            below |= dict.fromkeys(_below(match, system) if is_folder else [match])
        found += [(path, _keys(path, base)) for path in below]
    return _typed(found)


def _kinds(places: Sequence[str], system: Any) -> dict[str, str]:
    """Which are files, directories or missing, asked for side by side over a network."""
    if system is None:
        return {place: _kind(place, None) for place in places}
    kinds = side_by_side(lambda place: _kind(place, system), places, system)
    return dict(zip(places, kinds, strict=True))


def _kind(place: str, system: Any) -> str:
    if system is None:
        is_there = os.path.exists(place)
        return "directory" if os.path.isdir(place) else "file" if is_there else "missing"
    try:
        return str(system.info(place)["type"])
    except FileNotFoundError:
        return "missing"


def _exists(place: str, system: Any) -> bool:
    return os.path.exists(place) if system is None else bool(system.exists(place))


def _shown(names: Iterable[str]) -> list[str]:
    """In their order, but for those that jobs leave beside their files, such as _SUCCESS."""
    return sorted(name for name in names if not _is_hidden(name))


def _below(folder: str, system: Any) -> list[str]:
    """The files of a folder and of those in it, but for hidden ones."""

    def local() -> Iterator[str]:
        walked = {os.path.realpath(folder)}
        for at, folders, files in os.walk(folder, followlinks=True):
            # A link may lead to a folder above.
            inner = {name: os.path.realpath(os.path.join(at, name)) for name in _shown(folders)}
            folders[:] = [name for name, real in inner.items() if real not in walked]
            walked.update(inner.values())
            yield from (os.path.join(at, file) for file in _shown(files))

    if system is None:
        return sorted(local())
    found = (name for name in system.find(folder) if not name.endswith("/"))
    base = folder.rstrip("/") + "/"
    inner = (name for name in found if not _is_hidden(name.removeprefix(base)))
    return sorted(inner)


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
    pairs = (part.partition("=") for part in below)
    return {unquote(name): unquote(value) for name, equals, value in pairs if equals}


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


def format_of(files: Sequence[str]) -> Any:
    """pyarrow's format of all of these files, by the ends of their names."""
    found: dict[str, str] = {}
    for file in files:
        end = next((end for end in _FORMATS if file.lower().endswith(end)), None)
        if end is not None:
            found.setdefault(_FORMATS[end], file)
    if len(found) > 1:
        raise ValueError(
            f"files of one format are read together, and there are {' and '.join(found.values())}: "
            "a Mix takes both"
        )
    dataset = import_module("pyarrow.dataset")
    formats = {
        "parquet": dataset.ParquetFileFormat,
        "ipc": dataset.IpcFileFormat,
        "csv": dataset.CsvFileFormat,
    }
    return formats[next(iter(found), "parquet")]()


def arrow_system(system: Any) -> Any:
    """pyarrow's file system for one of fsspec's, None for this machine's."""
    fs = import_module("pyarrow.fs")
    if system is None or "file" in getattr(system, "protocol", ()):
        return fs.LocalFileSystem()
    return fs.PyFileSystem(fs.FSSpecHandler(system))
