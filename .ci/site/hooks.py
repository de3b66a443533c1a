"""What MkDocs does not do with the pages of this repository: pages from outside of docs/, Rust's
and GitHub's Markdown, notebooks, drawings, and rustdoc beside the site."""

import posixpath
import re
import shutil
import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))

import drawings  # noqa: E402 (beside this file, which MkDocs does not import as a package)
import errors  # noqa: E402
import notebooks  # noqa: E402

#: Files of the repository that are pages or pictures of the site.
PAGES = {
    "CONTRIBUTING.md": "development/contributing.md",
    "RELEASING.md": "development/releasing.md",
    "SECURITY.md": "development/security.md",
    "CHANGELOG.md": "development/changelog.md",
    "benches/README.md": "development/benchmarks.md",
    "benches/results.svg": "assets/results.svg",
    "datafusion/README.md": "reference/datafusion.md",
    "fuzz/README.md": "development/fuzzing.md",
}
ORIGINS = {page: origin for origin, page in PAGES.items()}
LINK = re.compile(r"(!?)\[((?:[^\]\[]|\[[^\]]*\])*)\]\(([^)\s]+)\)")


def on_config(config: MkDocsConfig) -> None:
    """Adds the notebooks to the navigation, which cannot name them by a pattern."""
    found = sorted((ROOT / "docs/notebooks").glob("*.ipynb"))
    for number, entry in enumerate(config.nav or []):
        if "Notebooks" in entry:
            if found:
                entry["Notebooks"] = [f"notebooks/{path.stem}.md" for path in found]
            else:
                del config.nav[number]
            break


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for origin, page in PAGES.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / origin)))
    for file in list(files):
        if file.src_uri.startswith("drawings/"):
            files.remove(file)
        elif file.src_uri.endswith(".ipynb"):
            for name, content in notebooks.page(ROOT / "docs" / file.src_uri).items():
                files.append(File.generated(config, f"notebooks/{name}", content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    here = page.file.src_uri
    origin = ORIGINS.get(here, f"docs/{here}")
    parts = re.split(r"^(```.*?^```$)", markdown, flags=re.M | re.S)
    for number, part in enumerate(parts):
        if number % 2:
            parts[number] = block(part)
        else:
            linked = LINK.sub(lambda link: relinked(link, origin, here), part)
            parts[number] = linked.replace("<details>", '<details markdown="1">')
    return "".join(parts).replace(errors.PLACE, errors.table())


def block(text: str) -> str:
    """A block as readers of the site want it: drawn, or without the lines that rustdoc hides."""
    language, _, rest = text[3:].partition("\n")
    language, _, _ = language.partition(",")
    if language == "mermaid":
        return drawings.inline(rest.removesuffix("```"))
    if language in ("rust", "compile_fail"):
        rest = re.sub(r"^# .*\n", "", rest, flags=re.M)
        language = "rust"
    return f"```{language}\n{rest}"


def relinked(link: re.Match[str], origin: str, here: str) -> str:
    """A link as it leads from the page on the site; as text, where its file is no page."""
    picture, text, target = link.groups()
    path, hash_sign, anchor = target.partition("#")
    if ":" in target or not path:
        return link[0]
    path = posixpath.normpath(posixpath.join(posixpath.dirname(origin), path))
    page = PAGES.get(path, path.removeprefix("docs/") if path.startswith("docs/") else None)
    if page is None:
        return text if (ROOT / path).exists() else link[0]
    if page.endswith(".ipynb"):
        page = page.removesuffix(".ipynb") + ".md"
    page = posixpath.relpath(page, posixpath.dirname(here))
    return f"{picture}[{text}]({page}{hash_sign}{anchor})"


def on_post_build(config: MkDocsConfig) -> None:
    rustdoc = ROOT / "target/doc"
    if (rustdoc / "arrow_dlpack").exists():
        shutil.copytree(rustdoc, Path(config.site_dir) / "rust", dirs_exist_ok=True)
