"""The crate's tests with the next major version of arrow: `make arrow-next`.

    LEFT_OUT=... python .ci/arrow_next.py

One line of releases has one arrow major, which the root Cargo.toml names. This copies the sources
to target/arrow-60, asks for arrow 60 there, runs the Rust tests, the doc tests and those Python
tests that hand Arrow's C structures to arrow-rs, and compiles the fuzz targets. The same sources
pass with both majors, so that the next line of releases changes versions, and no code.

The copy's lockfile is made of the repository's each time: it has the newest arrow of that major,
and everything else as it is here. What depends on arrow 59 through another crate is left out:

- the feature pyo3-arrow, and examples/extension with it: pyo3-arrow 0.20 is the newest;
- datafusion, its benchmarks and examples/ballista: DataFusion 55 and Ballista 55.

The benchmarks, the models, and the other libraries in tests/neighbours and examples/candle would
test nothing of arrow that the crate's own tests do not, so they are left out too.
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
THIS, NEXT = 59, 60
COPY = ROOT / "target" / f"arrow-{NEXT}"
BUILD = COPY / "target"

# Pattern, replacement and how often it has to be found: a manifest that has changed is an error.
REQUIREMENT = (rf'^((?:arrow-\w+|parquet) = .*?)"{THIS}"', rf'\1"{NEXT}"')
EDITS = {
    "Cargo.toml": [
        (*REQUIREMENT, 8),
        (r"^members = \[[^]]*\]", 'members = ["python"]', 1),
        (r"^pyo3-arrow = \{.*\}\n", "", 2),
        (r', "dep:pyo3-arrow"', "", 1),
    ],
    "fuzz/Cargo.toml": [(*REQUIREMENT, 5)],
}
COMMANDS = [
    "test --package arrow-dlpack --features ndarray --all-targets --no-fail-fast",
    "test --package arrow-dlpack --features ndarray --doc",
    "check --manifest-path fuzz/Cargo.toml --all-features",
    "build --package arrow-dlpack-python",
]
PYTHON_TESTS = """array_protocol cases columns from_ragged hostile_arrow malformed many_chunks
    pickle ragged record_batches reserved sources structures tables unasked_columns"""


def copy() -> None:
    """What git tracks, as it is on disk. Cargo builds again what has another time than before."""
    COPY.mkdir(parents=True, exist_ok=True)
    for old in COPY.iterdir():
        if old == BUILD:
            continue
        if old.is_dir() and not old.is_symlink():
            shutil.rmtree(old)
        else:
            old.unlink()
    # dlpack.h, which tests/abi.rs looks for, and what the Python tests need.
    (COPY / ".venv").symlink_to(ROOT / ".venv")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).exists():
            (COPY / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, COPY / name)


def edit() -> None:
    for name, edits in EDITS.items():
        text = (COPY / name).read_text("utf-8")
        for pattern, replacement, expected in edits:
            text, found = re.subn(pattern, replacement, text, flags=re.M)
            if found != expected:
                sys.exit(f"arrow-next: {name} has {found} of {pattern}, not {expected}")
        (COPY / name).write_text(text, "utf-8")


def run(*command: str, **variables: str) -> None:
    print("arrow-next:", *command, flush=True)
    environment = os.environ | variables
    if subprocess.run(command, cwd=COPY, env=environment, check=False).returncode:
        sys.exit(f"arrow-next: with arrow {NEXT} this failed: {' '.join(command)}")


def cargo(*arguments: str) -> None:
    run(
        "cargo",
        *arguments,
        CARGO_TARGET_DIR=str(BUILD),
        PYO3_BUILD_EXTENSION_MODULE="1",
        PYO3_PYTHON=str(ROOT / ".venv/bin/python"),
    )


def python_tests() -> None:
    package = COPY / "python" / "arrow_dlpack"
    shutil.copy2(BUILD / "debug" / "lib_core.so", package / "_core.abi3.so")
    run(
        ".venv/bin/python",
        *("-m", "pytest", "--config-file", "python/pyproject.toml", "-p", "no:cacheprovider"),
        *(f"python/tests/test_{name}.py" for name in PYTHON_TESTS.split()),
        PYTHONPATH=str(package.parent),
    )


def check_lockfile(name: str) -> None:
    """With both majors in it, part of the tests could use the old one."""
    packages = tomllib.loads((COPY / name).read_text("utf-8"))["package"]
    arrow = {
        package["name"]: package["version"]
        for package in packages
        if "source" in package and re.fullmatch(r"arrow|arrow-.*|parquet", package["name"])
    }
    print(f"arrow-next: {name} has", ", ".join(map(" ".join, sorted(arrow.items()))), flush=True)
    if others := [name for name, version in arrow.items() if not version.startswith(f"{NEXT}.")]:
        sys.exit(f"arrow-next: not of arrow {NEXT}: {', '.join(others)}")


if __name__ == "__main__":
    copy()
    edit()
    for folder in ("", "fuzz/"):
        cargo("fetch", "--manifest-path", f"{folder}Cargo.toml")
        check_lockfile(f"{folder}Cargo.lock")
    for command in COMMANDS:
        cargo(*command.split())
    python_tests()
