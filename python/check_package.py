"""Checks a built wheel as a user meets it: python check_package.py WHEEL [README | --alone]

Looks at what is in it; with `--alone` installs the wheel, and nothing else, into an empty
environment and imports it there; with a README adds what its examples need too, and runs them.
"""

import os
import re
import subprocess
import sys
import tempfile
import venv
import zipfile
from email import message_from_bytes
from pathlib import Path

LIMIT = 6_000_000  # bytes; a wheel above it has something that does not belong there
PACKAGE = Path(__file__).parent / "arrow_dlpack"
EXPECTED = [file.relative_to(PACKAGE).as_posix() for file in PACKAGE.rglob("*.py")]
EXPECTED += ["_core.pyi", "py.typed"]
#: What is released: one wheel for each platform, and one for an interpreter without a GIL.
TAGS = re.compile(r"-cp311-abi3-(manylinux|musllinux|macosx|win)|-cp314-cp314t-manylinux")


def main(wheel: Path, readme: str | None) -> None:
    check_contents(wheel)
    outcome = [f"{wheel.stat().st_size:,} bytes"]
    if readme is not None:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            venv.create(folder, with_pip=True)
            python = Path(folder) / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
            run(python, "-m", "pip", "install", "--quiet", "--no-index", wheel)
            run(python, "-c", "import arrow_dlpack")
            run(python, "-m", "arrow_dlpack")
            outcome.append("installs alone")
            if readme != "--alone":
                outcome.append(run_examples(python, Path(readme)))
    print(f"{wheel.name}: {', '.join(outcome)}")


def run_examples(python: Path, readme: Path) -> str:
    run(python, "-m", "pip", "install", "--quiet", "numpy", "pandas", "pyarrow")
    blocks = re.findall(r"^```python\n(.*?)^```$", readme.read_text("utf-8"), re.M | re.S)
    require(blocks, "the README has no Python")
    # PyTorch is too much to install for this: the tests run those examples.
    alone = [block for block in blocks if "import torch" not in block]
    for block in alone:
        run(python, "-c", block)
    return f"{len(alone)} of {len(blocks)} README examples run (the others need torch)"


def check_contents(wheel: Path) -> None:
    size = wheel.stat().st_size
    require(size < LIMIT, f"{size:,} bytes are more than {LIMIT:,}")
    require(TAGS.search(wheel.name), f"tags of {wheel.name}")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        for name in EXPECTED:
            require(f"arrow_dlpack/{name}" in names, f"{name} is missing")
        module = [name for name in names if re.fullmatch(r"arrow_dlpack/_core\..*(so|pyd)", name)]
        require(len(module) == 1, f"one extension module, not {module}")
        for licence in ("LICENSE-MIT", "LICENSE-APACHE", "LICENSE-THIRD-PARTY"):
            require(any(name.endswith(licence) for name in names), f"{licence} is missing")
        require(any("/sboms/" in name for name in names), "the SBOM is missing")
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        fields = message_from_bytes(archive.read(metadata))
    require(fields["Requires-Dist"] is None, "it depends on something")
    require(fields["Requires-Python"] == ">=3.11", "Requires-Python")
    require(fields["License-Expression"] == "MIT OR Apache-2.0", "License-Expression")


def run(*command: object) -> None:
    subprocess.run([str(word) for word in command], check=True)


def require(condition: object, problem: str) -> None:
    if not condition:
        sys.exit(f"check_package.py: {problem}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None)
