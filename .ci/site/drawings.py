"""Drawings of mermaid: rendered once by a browser, committed, and inserted into the pages.

python .ci/site/drawings.py    renders those whose source has changed, with npm and Chromium
"""

import base64
import hashlib
import json
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs/drawings"
MERMAID = "mermaid@11.12.0"
NAME = re.compile(r"%% ([\w-]+)\n")

#: The colours of the site's theme, light or dark.
STYLE = """
.node rect, .cluster rect, rect.actor, rect.note {
  fill: var(--md-code-bg-color) !important; stroke: var(--md-accent-fg-color) !important }
.cluster rect { fill: none !important; stroke: var(--md-default-fg-color--lighter) !important }
text, tspan, .messageText, text.actor > tspan {
  fill: var(--md-default-fg-color) !important; stroke: none !important }
.edgeLabel rect { fill: var(--md-default-bg-color) !important; opacity: 1 !important }
path.flowchart-link, line, .messageLine0, .messageLine1 {
  stroke: var(--md-default-fg-color--light) !important }
marker path { fill: var(--md-default-fg-color--light) !important;
  stroke: var(--md-default-fg-color--light) !important }
"""

PAGE = """<!doctype html><meta charset="utf-8"><body><pre id="result"></pre>
<script src="mermaid.min.js"></script><script>
mermaid.initialize({startOnLoad: false, theme: "neutral", fontFamily: "system-ui, sans-serif",
  htmlLabels: false, flowchart: {htmlLabels: false}, themeCSS: %(style)s});
mermaid.render("drawing-%(name)s", %(source)s).then(({svg}) => {
  document.body.innerHTML = ""; document.body.append(btoa(unescape(encodeURIComponent(svg)))) });
</script>"""


def digest(source: str) -> str:
    return hashlib.sha256((STYLE + MERMAID + source.strip()).encode()).hexdigest()[:16]


def inline(source: str) -> str:
    """The drawing of a block as HTML; an error where it is missing or older than its source."""
    name = NAME.match(source)
    if not name:
        raise ValueError(f"the first line of a drawing is %% and its name: {source[:40]!r}")
    path = FOLDER / f"{name[1]}.svg"
    svg = path.read_text() if path.exists() else ""
    if digest(source) not in svg:
        raise ValueError(f"the drawing {name[1]} has changed: run `make drawings`")
    return f'<div class="drawing">{svg.strip()}</div>'


def sources() -> dict[str, str]:
    found: dict[str, str] = {}
    for page in sorted((ROOT / "docs").rglob("*.md")):
        for source in re.findall(r"^```mermaid\n(.*?)^```$", page.read_text(), re.M | re.S):
            name = NAME.match(source)
            if not name or name[1] in found:
                raise SystemExit(f"{page}: the first line of a drawing is %% and a new name")
            found[name[1]] = source
    return found


def mermaid(folder: Path) -> Path:
    """mermaid's script, by npm's own client."""
    script = folder / "package/dist/mermaid.min.js"
    if not script.exists():
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["npm", "pack", "--silent", MERMAID], cwd=folder, check=True)
        (archive,) = folder.glob("mermaid-*.tgz")
        unpack = ["tar", "-xzf", archive.name, "package/dist/mermaid.min.js"]
        subprocess.run(unpack, cwd=folder, check=True)
    return script


def rendered(name: str, source: str, script: Path) -> str:
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(script, folder)
        page = Path(folder) / "page.html"
        words = {"name": name, "source": json.dumps(source), "style": json.dumps(STYLE)}
        page.write_text(PAGE % words)
        command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
        dom = subprocess.run(
            [*command, "--virtual-time-budget=10000", page.as_uri()],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    body = re.search(r"<body>([A-Za-z0-9+/=]+)</body>", dom)
    if not body:
        raise SystemExit(f"{name}: {dom[-2000:]}")
    return base64.b64decode(body[1]).decode()


def main() -> None:
    found = sources()
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.glob("*.svg"):
        if path.stem not in found:
            path.unlink()
    for name, source in found.items():
        path = FOLDER / f"{name}.svg"
        if path.exists() and digest(source) in path.read_text():
            continue
        svg = rendered(name, source, mermaid(ROOT / "target/mermaid"))
        mark = f"<!-- {digest(source)} -->"
        path.write_text(re.sub(r"(<svg[^>]*>)", rf"\1{mark}", svg, count=1) + "\n")
        print(f"docs/drawings/{name}.svg")


if __name__ == "__main__":
    main()
