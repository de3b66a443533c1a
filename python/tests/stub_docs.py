"""Writes the docstrings of the compiled module into its stub, where editors look for them.

Run it after `make build`, and `ruff format` after it; test_stub_docs.py compares.
"""

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

from arrow_dlpack import _core

STUB = Path(__file__).parents[1] / "arrow_dlpack" / "_core.pyi"


Documented: TypeAlias = ast.FunctionDef | ast.ClassDef


def documented(stub: str) -> str:
    """The stub with the docstrings of today, each at the first of its overloads."""
    lines = stub.splitlines(keepends=True)
    for node, doc in reversed(list(of_the_module(ast.parse(stub).body, _core))):
        first, last = node.body[0], node.body[-1]
        indent = " " * (node.col_offset + 4)
        text = inspect.cleandoc(doc).replace("\n", f"\n{indent}").replace(f"\n{indent}\n", "\n\n")
        text = f'{indent}{"r" if chr(92) in doc else ""}"""{text}"""\n'
        was = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
        if isinstance(node, ast.FunctionDef) or (was and first is last):
            head = lines[first.lineno - 1][: first.col_offset].rstrip()
            head = f"{head}\n" if head else ""
            lines[first.lineno - 1 : last.end_lineno] = [head, text]
        else:
            decorators = getattr(first, "decorator_list", [])
            start = min([first.lineno, *(decorator.lineno for decorator in decorators)]) - 1
            lines[start : first.end_lineno if was else start] = [text]
    return "".join(lines)


def of_the_module(nodes: list[ast.stmt], owner: Any) -> Iterator[tuple[Documented, str]]:
    """What is public and has a docstring, with that."""
    done = set()
    for node in nodes:
        if not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            continue
        if node.name.startswith("_") or node.name in done:
            continue
        done.add(node.name)
        thing = getattr(owner, node.name)
        if thing.__doc__:
            yield node, thing.__doc__
        if isinstance(node, ast.ClassDef):
            yield from of_the_module(node.body, thing)


if __name__ == "__main__":
    STUB.write_text(documented(STUB.read_text("utf-8")), "utf-8")
