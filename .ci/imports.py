"""Imports point down: `make lint`.

    python .ci/imports.py

No two files of the crate import each other, directly or by way of others; and no module imports one
that stands above it in CONTRIBUTING's table of modules, which has every one of them. And the files
with unsafe code are those of the table in docs/development/internals.md.
"""

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src"
# A module's place below the crate, such as ("memory", "view"); the crate itself is ().
Module = tuple[str, ...]


def module_of(file: Path) -> Module:
    *folders, name = file.relative_to(SRC).with_suffix("").parts
    return (*folders, *([] if name in ("mod", "lib") else [name]))


FILES = {module_of(file): file for file in SRC.rglob("*.rs") if file.name != "tests.rs"}


@cache
def code(module: Module) -> str:
    """A file without comments and without its tests."""
    text = re.sub(r"//[^\n]*", "", FILES[module].read_text("utf-8"))
    return re.sub(r"^#\[cfg\((all\()?test\b.*", "", text, flags=re.M | re.S)


def leaves(tree: str, prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths of a use tree, such as `a::{b, c::d}`."""
    for part in re.findall(r"(?:[^,{}]|\{(?:[^{}]|\{[^{}]*\})*\})+", tree):
        if found := re.fullmatch(r"\s*((?:\w+::)*)\{(.*)\}\s*", part, re.S):
            yield from leaves(found[2], prefix + tuple(filter(None, found[1].split("::"))))
        elif name := re.sub(r"\s+as\s+\w+", "", part).strip():
            yield prefix + tuple(name.split("::"))


def absolute(path: tuple[str, ...], module: Module) -> Module | None:
    """Where a path leads to below the crate; `None` for other crates."""
    head, *rest = path
    match head:
        case "crate":
            return tuple(rest)
        case "self":
            return (*module, *rest)
        case "super" if rest[:1] == ["super"]:
            return absolute(tuple(rest), module[:-1])
        case "super":
            return (*module[:-1], *rest)
    return (*module, *path) if (*module, head) in FILES else None


@cache
def uses(module: Module) -> list[tuple[Module, bool]]:
    """All that a file names of the crate, and whether it does so to hand it on."""
    text = code(module)
    trees = re.findall(r"^\s*(pub(?:\([\w ]+\))? )?use ([^;]+);", text, re.M)
    paths = [(path, bool(public)) for public, tree in trees for path in leaves(tree)]
    inline = re.findall(r"(?<![\w:])(?:crate|super|self)(?:::\w+)+", text)
    paths += [(tuple(path.split("::")), False) for path in inline]
    found = ((absolute(path, module), public) for path, public in paths)
    return [(path, public) for path, public in found if path is not None]


def defined_in(path: Module) -> Module:
    """The file that has what a path leads to, through those that only hand it on."""
    for length in range(len(path), -1, -1):
        module, rest = path[:length], path[length:]
        if module in FILES:
            for target, public in uses(module) if rest else []:
                if public and target[-1:] == rest[:1] and target != path:
                    return defined_in(target + rest[1:])
            return module
    return ()


def imports(module: Module) -> set[Module]:
    """The files that a file imports; what it hands on of those below it does not count."""
    handed_on = {path for path, public in uses(module) if public and path[: len(module)] == module}
    found = {defined_in(path) for path, _ in uses(module) if path not in handed_on}
    return found - {module, ()}


def rows() -> list[list[str]]:
    """The modules in each row of the table, from the top."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    table = re.search(r"^\| module .*?(?=\n\n)", text, re.M | re.S)
    if not table:
        sys.exit("imports: CONTRIBUTING.md has no table of modules")
    cells = (row.split("|")[1] for row in table[0].splitlines() if "`src/" in row)
    return [re.findall(r"`(?:src/)?(\w+)(?:\.rs|/)`", cell) for cell in cells]


PACKAGE = ROOT / "python/arrow_dlpack"


def python_imports() -> dict[str, set[str]]:
    """The modules of the package that each of them imports, late ones too, but for annotations."""
    names = {}
    for file in PACKAGE.rglob("*.py"):
        *folders, name = file.relative_to(PACKAGE.parent).with_suffix("").parts
        names[".".join([*folders, *([] if name == "__init__" else [name])])] = file
    found = {}
    for name, file in names.items():
        package = name if file.name == "__init__.py" else name.rpartition(".")[0]
        found[name] = {
            target
            for said in imported(ast.parse(file.read_text("utf-8")))
            if (target := resolved(said, package, names)) not in (None, name)
        }
    # The package and its folders hand names on.
    return {name: targets & names.keys() for name, targets in found.items()}


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        yield from imported(node)
        match node:
            case ast.ImportFrom(module, aliases, level):
                for alias in aliases:
                    yield "." * level + ".".join(filter(None, [module, alias.name]))
            case ast.Call(ast.Name("import_module"), [ast.Constant(str(name)), *_]):
                yield name


def resolved(said: str, package: str, names: Mapping[str, Path]) -> str | None:
    """The module that a path leads to; `None` for what is not the package's."""
    above = len(said) - len(said.lstrip("."))
    if above:
        folders = package.split(".")[: 1 - above or None]
        said = ".".join([*folders, said.lstrip(".")])
    while said and said not in names:
        said = said.rpartition(".")[0]
    # A name of a package's own, such as the extension module, is no file.
    return said if said and names[said].name != "__init__.py" else None


def unsafe_files() -> set[str]:
    """Those that say so."""
    says = re.compile(r"expect\(\s*unsafe_code")
    return {
        file.relative_to(SRC).with_suffix("").as_posix()
        for file in FILES.values()
        if says.search(file.read_text("utf-8"))
    }


def listed_files() -> set[str]:
    """Those of the table: `a/b` and `a/{b,c}` in the first column."""
    text = (ROOT / "docs/development/internals.md").read_text("utf-8")
    table = text.partition("\n## Unsafe\n")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (`.*?) \|", table, re.M)
    found = set()
    for name in re.findall(r"`([^`]+)`", " ".join(cells)):
        folder, brace, names = name.partition("{")
        some = names.rstrip("}").split(",") if brace else [""]
        found |= {folder + one for one in some}
    return found


def circle_of(graph: Mapping[Any, set[Any]]) -> list[Any]:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []


def problems() -> Iterator[str]:
    graph = {module: imports(module) for module in FILES if module}
    for circle in (list(map("/".join, circle_of(graph))), circle_of(python_imports())):
        if circle:
            yield f"these import each other: {' -> '.join(circle)}"
    for file in sorted(unsafe_files() ^ listed_files()):
        yield f"{file} has unsafe code, or is in the table of internals.md, and not both"
    level = {name: number for number, row in enumerate(rows()) for name in row}
    for name in sorted({module[0] for module in graph} - level.keys()):
        yield f"CONTRIBUTING's table of modules does not have src/{name}"
    for module, others in sorted(graph.items()):
        for other in sorted(others):
            if level.get(module[0], 0) > level.get(other[0], 0):
                yield f"{'/'.join(module)} imports {'/'.join(other)}, which stands above it"


if __name__ == "__main__":
    if found := list(problems()):
        sys.exit("\n".join(f"imports: {problem}" for problem in found))
