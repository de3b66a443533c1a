"""Notebooks as pages: their Markdown, their code, and what they printed and drew."""

import base64
import json
import re
from pathlib import Path
from typing import Any


def page(path: Path) -> dict[str, str | bytes]:
    """The page of a notebook and its pictures, by file name."""
    cells = json.loads(path.read_text())["cells"]
    pictures: dict[str, str | bytes] = {}
    parts = []
    for cell in cells:
        source = joined(cell["source"]).strip()
        if cell["cell_type"] == "markdown":
            parts.append(source)
        elif cell["cell_type"] == "code" and source:
            parts.append(f"```python\n{source}\n```")
            for output in cell["outputs"]:
                parts.append(shown(output, path.stem, pictures))
    parts.append(f'<a href="../{path.name}" download>Download the notebook</a>')
    return {f"{path.stem}.md": "\n\n".join(parts) + "\n", **pictures}


def joined(text: str | list[str]) -> str:
    return text if isinstance(text, str) else "".join(text)


def shown(output: dict[str, Any], stem: str, pictures: dict[str, str | bytes]) -> str:
    """One output, in the richest form that it has."""
    data = output.get("data", {})
    if "image/png" in data:
        name = f"{stem}-{len(pictures) + 1}.png"
        pictures[name] = base64.b64decode(joined(data["image/png"]))
        return f"![Output of the code above]({name})"
    if "image/svg+xml" in data:
        name = f"{stem}-{len(pictures) + 1}.svg"
        pictures[name] = joined(data["image/svg+xml"])
        return f"![Output of the code above]({name})"
    if "text/html" in data:
        # An empty line would end the block of HTML.
        html = re.sub(r"\n\s*\n", "\n", joined(data["text/html"]).strip())
        # A table of pandas, in the style of the page.
        html = html.replace('<table border="1" class="dataframe">', "<table>")
        return f'<div class="output">\n{html}\n</div>'
    text = joined(data.get("text/plain", output.get("text", output.get("traceback", ""))))
    text = re.sub(r"\x1b\[[\d;]*m", "", text)  # colours of a terminal
    block = f"```text\n{text.rstrip()}\n```"
    return f'<div class="output" markdown="1">\n\n{block}\n\n</div>' if text.strip() else ""
