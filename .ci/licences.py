"""Writes python/LICENSE-THIRD-PARTY, which each wheel has: of all that is linked into it.

    python .ci/licences.py          writes it: `make licences`
    python .ci/licences.py check    fails if it is not of Cargo.lock: `make supply`

cargo-about would do it too, but has to be built from source first, for minutes, and asks the
network for what a package lacks. Cargo has all of it: the crates that a target links, and the
texts in their packages.
"""

import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "python" / "LICENSE-THIRD-PARTY"
#: What wheels are released for, by the names that Rust has for these machines.
TARGETS = [
    "x86_64-unknown-linux-gnu",
    "aarch64-unknown-linux-gnu",
    "i686-unknown-linux-gnu",
    "x86_64-unknown-linux-musl",
    "aarch64-unknown-linux-musl",
    "aarch64-apple-darwin",
    "x86_64-apple-darwin",
    "x86_64-pc-windows-msvc",
    "aarch64-pc-windows-msvc",
    "x86_64-pc-windows-gnullvm",
    "aarch64-pc-windows-gnullvm",
]
HEAD = """\
The wheels of arrow-dlpack have code of these packages in them, each under the licence that is named
here; where MIT is one of a choice, it is taken under MIT. Not every wheel has every package.
The texts are below.

Rust's standard library, with what it is made of, is under MIT or Apache-2.0 too (Copyright (c) The
Rust Project contributors); its parts from LLVM are under Apache-2.0 WITH LLVM-exception.

"""
Crate = tuple[str, str]  # name and version


def cargo(*words: str) -> str:
    command = ["cargo", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


@cache
def linked(target: str) -> frozenset[Crate]:
    """The crates whose code is in the wheel for a target, ours among them."""
    tree = cargo(
        *("tree", "--locked", "--package", "arrow-dlpack-python", "--target", target),
        *("--edges", "normal,no-proc-macro", "--prefix", "none", "--format", "{p}"),
    )
    words = (line.split() for line in tree.splitlines() if line)
    return frozenset((name, version.removeprefix("v")) for name, version, *_ in words)


def packages() -> dict[Crate, dict]:
    found = json.loads(cargo("metadata", "--locked", "--format-version", "1"))["packages"]
    return {(package["name"], package["version"]): package for package in found}


def texts(package: dict) -> list[str]:
    """That of the licence by which it is taken, and the notices that go with it."""
    folder = Path(package["manifest_path"]).parent
    files = sorted(path for path in folder.iterdir() if path.is_file())
    notices = [path for path in files if re.match(r"NOTICE", path.name, re.I)]
    licences = [path for path in files if re.match(r"LICEN[CS]E|COPYING", path.name, re.I)]
    mit = [path for path in licences if re.search(r"MIT", path.name, re.I)]
    chosen = licences if " AND " in package["license"] else (mit or licences)[:1]
    if not chosen:
        print(f"licences: {package['name']} has no text of {package['license']}", file=sys.stderr)
    # Trailing spaces, and one form of line ends: the same text is to be there once.
    return [
        "\n".join(line.rstrip() for line in path.read_text("utf-8").splitlines()).strip("\n")
        for path in [*chosen, *notices]
    ]


def page() -> str:
    every = packages()
    crates = sorted(set().union(*map(linked, TARGETS)))
    foreign = [crate for crate in crates if every[crate]["source"] is not None]
    rows = [f"  {name} {version}: {every[name, version]['license']}\n" for name, version in foreign]
    holders: dict[str, list[str]] = {}
    for crate in foreign:
        for text in texts(every[crate]):
            holders.setdefault(text, []).append(crate[0])
    parts = [f"\n{'-' * 80}\n{', '.join(of)}\n\n{text}\n" for text, of in holders.items()]
    return HEAD + "".join(rows + parts)


def main(verb: str = "write") -> None:
    made = page()
    if verb == "write":
        PAGE.write_text(made, "utf-8")
    elif PAGE.read_text("utf-8") != made:
        sys.exit(f"{PAGE.relative_to(ROOT)} is not of Cargo.lock: make licences")


if __name__ == "__main__":
    main(*sys.argv[1:])
