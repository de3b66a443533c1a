"""Every link, picture and anchor of the built site leads somewhere; without a browser.

python .ci/site/links.py [target/site]
"""

import posixpath
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).parents[2]


class Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.targets: set[str] = set()
        self.loaded: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        named = {name: value for name, value in attributes if value}
        self.anchors |= {named[name] for name in ("id", "name") if name in named}
        self.targets |= {named[name] for name in ("href", "src") if name in named}
        loads = tag in ("script", "img", "iframe") or named.get("rel") == "stylesheet"
        if loads:
            self.loaded |= {named[name] for name in ("href", "src") if name in named}


def pages_of(site: Path) -> dict[str, Page]:
    """The pages by their path, without those of rustdoc, which checks its own links."""
    found = {path.relative_to(site).as_posix(): path for path in site.rglob("*.html")}
    return {
        name: Page(path.read_text()) for name, path in found.items() if not name.startswith("rust/")
    }


def problems(site: Path) -> list[str]:
    found = []
    pages = pages_of(site)
    for name, page in pages.items():
        found += [f"{name}: loads {target}" for target in page.loaded if urlsplit(target).netloc]
        for target in page.targets:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            # 404.html has absolute paths.
            path = posixpath.join("/", posixpath.dirname(name), unquote(parts.path))
            path = posixpath.normpath(path).lstrip("/") if parts.path else name
            if (site / path).is_dir():
                path = posixpath.join(path, "index.html")
            if not (site / path).is_file():
                found.append(f"{name}: {target} does not exist")
            elif path in pages and parts.fragment not in {"", *pages[path].anchors}:
                found.append(f"{name}: {target} has no such anchor")
    return sorted(found)


if __name__ == "__main__":
    site = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "target/site")
    found = problems(site)
    print(*found, sep="\n", end="\n" if found else "")
    sys.exit(1 if found else 0)
