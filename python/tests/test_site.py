"""What makes the pages of the site, without MkDocs, which `make docs` runs."""

import base64
import json
import re
import sys
from pathlib import Path

import arrow_dlpack
import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / ".ci/site"))

import drawings  # noqa: E402
import errors  # noqa: E402
import links  # noqa: E402
import notebooks  # noqa: E402


def test_drawings_are_those_of_their_sources():
    sources = drawings.sources()
    assert {path.stem for path in drawings.FOLDER.glob("*.svg")} == set(sources)
    for source in sources.values():
        assert "<svg" in drawings.inline(source)


def test_a_drawing_that_is_older_than_its_source_is_refused():
    (name, source), *_ = drawings.sources().items()
    with pytest.raises(ValueError, match=f"the drawing {name} has changed: run `make drawings`"):
        drawings.inline(source + "    A --> B\n")


def test_the_table_of_errors_has_every_variant():
    enum = errors.SOURCE.read_text("utf-8").split("pub enum Error {")[1].split("\n}\n")[0]
    variants = set(re.findall(r"^    ([A-Z]\w+)", enum, re.M)) - {"Worded"}
    rows = set(re.findall(r"^\| `(\w+)`", errors.table(), re.M))
    assert rows == variants
    assert "| `Nulls`<br>(UnsupportedError) |" in errors.table()


def test_everything_public_is_in_the_reference():
    pages = (ROOT / "docs/reference/python").glob("*.md")
    documented = re.findall(
        r"^::: ([\w.]+)", "".join(page.read_text("utf-8") for page in pages), re.M
    )
    names = {name.rpartition(".")[2] for name in documented}
    assert names >= set(arrow_dlpack.__all__) - {"__version__"}
    assert len(documented) == len(set(documented))


def test_a_notebook_is_a_page_with_its_outputs(tmp_path):
    png = base64.b64encode(b"pixels").decode()
    cells = [
        {"cell_type": "markdown", "source": ["# Flights\n", "Text."]},
        {
            "cell_type": "code",
            "source": "1 + 1",
            "outputs": [
                {"output_type": "execute_result", "data": {"text/plain": "2"}},
                {"output_type": "display_data", "data": {"image/png": png, "text/plain": "x"}},
                {"output_type": "display_data", "data": {"text/html": ["<b>\n", "\n", "</b>"]}},
                {"output_type": "stream", "text": ["\x1b[31mprinted\x1b[0m\n"]},
            ],
        },
    ]
    path = tmp_path / "flights.ipynb"
    path.write_text(json.dumps({"cells": cells}))
    files = notebooks.page(path)
    assert files["flights-1.png"] == b"pixels"
    assert files["flights.md"] == (
        "# Flights\nText.\n\n```python\n1 + 1\n```\n\n"
        '<div class="output" markdown="1">\n\n```text\n2\n```\n\n</div>\n\n'
        '![Output of the code above](flights-1.png)\n\n<div class="output">\n<b>\n</b>\n</div>\n\n'
        '<div class="output" markdown="1">\n\n```text\nprinted\n```\n\n</div>\n\n'
        '<a href="../flights.ipynb" download>Download the notebook</a>\n'
    )


def test_links_that_lead_nowhere_are_found(tmp_path):
    (tmp_path / "guide").mkdir()
    (tmp_path / "index.html").write_text(
        '<a href="guide/#there">1</a> <a href="guide/#away">2</a> <a href="https://arrow.apache.org">3</a>'
        '<img src="away.png"> <a href="#top" id="top">4</a> <script src="https://cdn.test/x.js"></script>'
    )
    (tmp_path / "guide/index.html").write_text('<h2 id="there"></h2> <a href="..">1</a>')
    assert links.problems(tmp_path) == [
        "index.html: away.png does not exist",
        "index.html: guide/#away has no such anchor",
        "index.html: loads https://cdn.test/x.js",
    ]
