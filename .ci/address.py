"""Writes the repository's address where registries and the site want it, before a first release.

    python .ci/address.py https://HOST/OWNER/NAME [FOLDER]

PyPI shows the README alone, where relative links lead nowhere, and crates.io resolves them by
`repository`. This sets `repository` in the manifests of what is published, from which maturin makes
the links beside PyPI's page; makes the README's links absolute; and has a link at the foot of the
site's pages. FOLDER is the checkout, else the one that this file is in.
"""

import re
import sys
from pathlib import Path

LICENSE = re.compile(r"^license(?:\.workspace)? = .*\n", re.M)
LINK = re.compile(r"\]\((?!https?:|#)([^)\s]+)\)")


def of(link: str, repository: str) -> str:
    """Where the file of a relative link is shown; of a picture, where it is."""
    view = "raw" if link.endswith(".svg") else "blob"
    return f"{repository}/{view}/HEAD/{link}"


def put(repository: str, root: Path) -> None:
    for manifest, line in {
        "Cargo.toml": f'repository = "{repository}"\n',
        "python/Cargo.toml": "repository.workspace = true\n",
        "datafusion/Cargo.toml": "repository.workspace = true\n",
    }.items():
        text = (root / manifest).read_text("utf-8")
        if "\nrepository" in text:
            raise SystemExit(f"{manifest} has a repository already")
        text = LICENSE.sub(rf"\g<0>{line}", text, count=1)
        if manifest == "Cargo.toml":  # the workspace's, and its first crate's
            crate = "license.workspace = true\n"
            text = text.replace(crate, crate + "repository.workspace = true\n", 1)
        (root / manifest).write_text(text, "utf-8")

    readme = root / "README.md"
    absolute = LINK.sub(lambda link: f"]({of(link[1], repository)})", readme.read_text("utf-8"))
    readme.write_text(absolute, "utf-8")

    site = root / "mkdocs.yml"  # a link at the foot: the theme's own `repo_url` asks another server
    foot = f"extra:\n  social:\n    - {{icon: material/source-repository, link: {repository}}}\n"
    site.write_text(site.read_text("utf-8").replace("extra:\n", foot, 1), "utf-8")


if __name__ == "__main__":
    repository, *folder = sys.argv[1:]
    put(repository.rstrip("/"), Path(*folder) if folder else Path(__file__).parents[1])
