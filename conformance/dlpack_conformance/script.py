"""A rule as a script that needs the library judged and nothing of ours.

The definitions that the check uses are copied from their sources, each after those that it uses.
So what checks use is plain: functions, classes and constants at the top of a module, without state,
and no two of one name.
"""

import ast
import builtins
import functools
import importlib
import inspect
import itertools
import re
from collections.abc import Iterator
from types import ModuleType

from dlpack_conformance.library import Library
from dlpack_conformance.rule import Rule, lacking

OURS = f"{__package__}."


def script(rule: Rule, lib: Library) -> str:
    """Its text: it ends with a traceback if the library breaks the rule."""
    unused: set[str] = set()
    while True:
        made, check = collected(rule, lib, unused)
        # Without these methods others may be unused too.
        more = made.methods_defined - made.attributes - unused
        if not more:
            break
        unused |= more
    head = f"# {rule.id} {rule.slug} ({rule.level}; {rule.source}), {lib.name} {lib.version}"
    verbs = [
        f"    {verb} = {verb if hasattr(lib.hooks, verb) else lacking.__name__}"
        for verb in sorted(made.verbs)
        if hasattr(lib.hooks, verb) or verb not in made.optional
    ]
    asked = "\n".join(["class lib:", *(verbs or ["    pass"])])
    call = f"print({rule.check.__name__}(lib) or 'the rule holds')"
    return joined([head + "\n" + import_lines(made.imports), *made.parts, check, asked, call])


def collected(rule: Rule, lib: Library, unused: set[str]) -> tuple["Script", str]:
    """What the check needs, and its own text."""
    made = Script(unused)
    module = importlib.import_module(rule.check.__module__)
    made.add(module, rule.check.__name__, docstring=True)
    check = made.parts.pop()
    for verb in sorted(made.verbs):
        if hasattr(lib.hooks, verb):
            made.add(lib.hooks, verb)
        elif verb not in made.optional:
            made.add(importlib.import_module(lacking.__module__), lacking.__name__)
    return made, check


def joined(parts: list[str]) -> str:
    """Constants stay together; an empty line is around a function or class."""
    text = parts[0]
    for before, part in itertools.pairwise(parts):
        small = not any(re.search(r"^(def|class|@)", each, re.M) for each in (before, part))
        text += ("\n" if small else "\n\n") + part
    return text + "\n"


class Script:
    """Definitions in an order in which they can run."""

    def __init__(self, unused: set[str]) -> None:
        self.unused = unused  # methods to leave out
        self.origins: dict[str, str] = {}  # of each name, the module that has it
        self.copied: set[ast.stmt] = set()
        self.imports: set[tuple[str, str | None, str]] = set()
        self.parts: list[str] = []
        self.verbs: set[str] = set()  # what is asked of `lib`
        self.optional: set[str] = set()  # of these, those that `hasattr` is asked for
        self.methods_defined: set[str] = set()
        self.attributes: set[str] = set()  # and methods, that something uses

    def add(self, module: ModuleType, name: str, docstring: bool = False) -> None:
        """The definition of a name, after those that it uses."""
        source = source_of(module)
        if name in source.imports:
            where, original = source.imports[name]
            if where.startswith(OURS) and original is not None:
                self.add(importlib.import_module(where), original)
                return
            origin = f"{where}.{original}"
            self.imports.add((where, original, name))
        elif name in source.definitions:
            origin = source.name
        else:
            return
        if name in self.origins:
            if self.origins[name] != origin:
                raise ValueError(f"{name} is of {origin} and of {self.origins[name]}")
            return
        self.origins[name] = origin
        statements = [s for s in source.definitions.get(name, []) if s not in self.copied]
        self.copied.update(statements)
        texts = []
        for statement in statements:
            dropped = methods(statement, self.unused)
            nodes = kept_nodes(statement, dropped)
            for used in names_used(nodes):
                self.add(module, used)
            attributes = [node for node in nodes if isinstance(node, ast.Attribute)]
            self.attributes |= {node.attr for node in attributes}
            self.verbs |= {node.attr for node in attributes if root(node.value) == "lib"}
            self.optional |= {verb for node in nodes if (verb := optional_verb(node)) is not None}
            self.methods_defined |= {method.name for method in methods(statement)}
            texts.append(source.copy(statement, dropped, docstring))
        if texts:
            self.parts.append("\n".join(texts))


class Source:
    """A module's text, and what the statements at its top define."""

    def __init__(self, module: ModuleType) -> None:
        self.name = module.__name__
        self.text = inspect.getsource(module)
        self.lines = self.text.splitlines(keepends=True)
        self.starts = [0, *itertools.accumulate(map(len, self.lines))]  # where each line begins
        self.definitions: dict[str, list[ast.stmt]] = {}
        self.imports: dict[str, tuple[str, str | None]] = {}  # (module, name there)
        for statement in ast.parse(self.text).body:
            if isinstance(statement, ast.Import):
                for alias in statement.names:
                    name = alias.asname or alias.name.split(".")[0]
                    self.imports[name] = (alias.name, None)
            elif isinstance(statement, ast.ImportFrom):
                for alias in statement.names:
                    self.imports[alias.asname or alias.name] = (statement.module or "", alias.name)
            else:
                for name in names_defined(statement):
                    self.definitions.setdefault(name, []).append(statement)

    @functools.cache  # noqa: B019 (a source is kept anyway)
    def copy(
        self, statement: ast.stmt, dropped: tuple[ast.FunctionDef, ...], docstring: bool
    ) -> str:
        """Its text with the comments above it, without these methods, annotations, `@rule`, notes
        to linters and docstrings; that of the statement itself stays if `docstring` says so."""
        # With the empty line above each.
        cuts = [(self.start(method) - 1, self.end(method)) for method in dropped]
        for node in kept_nodes(statement, dropped):
            if not (isinstance(node, ast.AnnAssign) and is_dataclass(statement)):
                cuts += self.annotations(node)
            if not (docstring and node is statement):
                cuts += self.docstring(node)
        begin = self.start(statement)
        text = self.text[begin : self.end(statement)]
        for start, end in sorted(cuts, reverse=True):
            text = text[: start - begin] + text[end - begin :]
        text = re.sub(r"  # (noqa|type:).*", "", text)
        return re.sub(r"\n{3,}", "\n\n", text).strip("\n")

    def start(self, statement: ast.stmt) -> int:
        decorators = [d for d in getattr(statement, "decorator_list", []) if root(d) != "rule"]
        line = decorators[0].lineno if decorators else statement.lineno
        while line > 1 and self.lines[line - 2].lstrip().startswith("#"):
            line -= 1
        return self.place(line, 0)

    def annotations(self, node: ast.AST) -> Iterator[tuple[int, int]]:
        """Where the annotations of a function or a variable lie."""
        if isinstance(node, ast.arg) and node.annotation is not None:
            start = self.place(node.lineno, node.col_offset) + len(node.arg)
            end = self.end(node.annotation)
            yield start, end
            if self.text.startswith(" = ", end):
                yield from [(end, end + 1), (end + 2, end + 3)]
        if isinstance(node, ast.AnnAssign):
            yield self.end(node.target), self.end(node.annotation)
        if isinstance(node, ast.FunctionDef) and node.returns is not None:
            start = self.place(node.returns.lineno, node.returns.col_offset)
            yield self.text.rindex(" ->", 0, start), self.end(node.returns)

    def docstring(self, node: ast.AST) -> Iterator[tuple[int, int]]:
        """Where it lies, with the empty line behind it; it stays where it is all that there is."""
        if not isinstance(node, ast.FunctionDef | ast.ClassDef) or len(node.body) == 1:
            return
        first, second = node.body[:2]
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
            above = self.place(first.end_lineno, 0) + len(self.lines[first.end_lineno - 1])  # type: ignore[operator]
            decorators = getattr(second, "decorator_list", [])
            below = self.place(min(n.lineno for n in [second, *decorators]), 0)
            skipped = self.text[above:below]
            yield self.place(first.lineno, 0), below - len(skipped.lstrip("\n"))

    def place(self, line: int | None, column: int | None) -> int:
        """Where it lies in the text; ast counts columns in bytes."""
        assert line is not None
        before = self.lines[line - 1].encode()[:column].decode()
        return self.starts[line - 1] + len(before)

    def end(self, node: ast.expr | ast.stmt) -> int:
        return self.place(node.end_lineno, node.end_col_offset)


source_of = functools.cache(Source)  # each is read once for all rules


def is_dataclass(statement: ast.stmt) -> bool:
    """Its fields are its annotations."""
    return any(root(d) == "dataclass" for d in getattr(statement, "decorator_list", []))


def optional_verb(node: ast.AST) -> str | None:
    """Of `hasattr(lib, "verb")`."""
    match node:
        case ast.Call(ast.Name("hasattr"), [ast.Name("lib"), ast.Constant(str() as verb)]):
            return verb
    return None


def names_defined(statement: ast.stmt) -> list[str]:
    """What a statement defines or completes: `f.restype = ...`, `lib.config.update(...)`."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return [statement.name]
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AugAssign | ast.AnnAssign):
        targets = [statement.target]
    elif isinstance(statement, ast.Expr):
        targets = [statement.value]
    elements = [e for t in targets for e in (t.elts if isinstance(t, ast.Tuple) else [t])]
    return [name for element in elements if (name := root(element)) is not None]


def root(node: ast.expr) -> str | None:
    """`a` of `a`, `a.b`, `a[0]`, `a.b()`."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None


def methods(statement: ast.stmt, names: set[str] | None = None) -> tuple[ast.FunctionDef, ...]:
    """Of a class, those of these names; by default all that Python does not call by itself."""
    body = statement.body if isinstance(statement, ast.ClassDef) else []
    found = [node for node in body if isinstance(node, ast.FunctionDef)]
    if names is None:
        return tuple(method for method in found if not method.name.startswith("__"))
    return tuple(method for method in found if method.name in names)


# Scripts of many rules have many statements in common.
@functools.cache
def kept_nodes(statement: ast.stmt, dropped: tuple[ast.FunctionDef, ...]) -> tuple[ast.AST, ...]:
    left_out = {node for method in dropped for node in ast.walk(method)}
    return tuple(node for node in ast.walk(statement) if node not in left_out)


@functools.cache
def names_used(nodes: tuple[ast.AST, ...]) -> list[str]:
    """Without those of annotations and of `@rule`, which are not copied."""
    left_out: set[ast.AST] = set()
    for node in nodes:
        parts = [getattr(node, "annotation", None), getattr(node, "returns", None)]
        parts += [d for d in getattr(node, "decorator_list", []) if root(d) == "rule"]
        left_out.update(n for part in parts if part is not None for n in ast.walk(part))
    names = [n.id for n in nodes if isinstance(n, ast.Name) and n not in left_out]
    return [name for name in dict.fromkeys(names) if not hasattr(builtins, name)]


def import_lines(imports: set[tuple[str, str | None, str]]) -> str:
    lines: list[str] = []
    names: dict[str, list[str]] = {}
    for where, original, name in sorted(imports, key=str):
        renamed = "" if name == (original or where.split(".")[0]) else f" as {name}"
        if original is None:
            lines.append(f"import {where}{renamed}")
        else:
            names.setdefault(where, []).append(original + renamed)
    return "\n".join(lines + [f"from {where} import {', '.join(n)}" for where, n in names.items()])
