"""What editors show is what help() does."""

import ast
import inspect

import arrow_dlpack
from arrow_dlpack import _core
from stub_docs import STUB, of_the_module


def test_the_stub_has_the_docstrings_of_today():
    """If not: python python/tests/stub_docs.py."""
    found = list(of_the_module(ast.parse(STUB.read_text("utf-8")).body, _core))
    assert [
        node.name for node, doc in found if ast.get_docstring(node) != inspect.cleandoc(doc)
    ] == []
    names = {name for name in arrow_dlpack.__all__ if hasattr(_core, name)} - {"__version__"}
    assert names <= {node.name for node, _ in found}
