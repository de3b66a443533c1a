"""What a release is made of, by the version in Cargo.toml: RELEASING.md, and the release workflow.

python .ci/release.py check [TAG]   fails unless all is written that a release of it has to have
python .ci/release.py notes         prints the CHANGELOG's section of it
python .ci/release.py version       prints it
python .ci/release.py line          prints the line of releases that it is of, such as 0.1
"""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]


def workspace(root: Path) -> dict[str, str]:
    """What the published crates have in common."""
    manifest = tomllib.loads((root / "Cargo.toml").read_text("utf-8"))
    return manifest["workspace"]["package"]


def section(root: Path) -> tuple[str, str]:
    """The heading of this version in the CHANGELOG, and what is below it."""
    version = re.escape(workspace(root)["version"])
    changelog = (root / "CHANGELOG.md").read_text("utf-8")
    heading = rf"^## ((?:.* )?{version}(?: .*)?)\n"
    found = re.search(rf"{heading}((?s:.*?))(?=^## |\Z)", changelog, re.M)
    if found is None:
        sys.exit(f"release: CHANGELOG.md has no section of {workspace(root)['version']}")
    return found[1], found[2].strip() + "\n"


def problems(root: Path, tag: str | None) -> Iterator[str]:
    package = workspace(root)
    version = package["version"]
    if tag is not None and tag != f"v{version}":
        yield f"the tag is {tag}, and the version in Cargo.toml {version}"
    heading, _ = section(root)
    if not re.fullmatch(rf"{re.escape(version)} \(\d{{4}}-\d\d-\d\d\)", heading):
        yield f"CHANGELOG.md says {heading!r}, where a release has '{version} (YYYY-MM-DD)'"
    if "repository" not in package:
        yield "Cargo.toml has no repository: python .ci/address.py https://HOST/OWNER/NAME"
    for page in [root / "README.md", *sorted((root / "docs").rglob("*.md"))]:
        if re.search(r"not on the registr(y|ies) yet", page.read_text("utf-8")):
            yield f"{page.relative_to(root)} says that it is not on the registries yet"
    engines = (root / "datafusion/Cargo.toml").read_text("utf-8")
    if f'arrow-dlpack = {{ version = "{version}"' not in engines:
        yield f"datafusion/Cargo.toml asks for another arrow-dlpack than {version}"


def main(verb: str, tag: str | None = None, root: Path = ROOT) -> None:
    if verb == "notes":
        print(section(root)[1], end="")
    elif verb == "version":
        print(workspace(root)["version"])
    elif verb == "line":
        print(workspace(root)["version"].rpartition(".")[0])
    elif verb == "check":
        if found := list(problems(root, tag)):
            sys.exit("\n".join(f"release: {problem}" for problem in found))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(*sys.argv[1:])
