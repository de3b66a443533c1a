"""All shell of the repository through shellcheck: its scripts, and the steps of its workflows.

python .ci/shell.py
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from ruamel.yaml import YAML

ROOT = Path(__file__).parents[1]
SHELLCHECK = Path(sys.executable).with_name("shellcheck")


def scripts() -> list[str]:
    command = ["git", "grep", "-lE", "^#!.*[ /](ba)?sh$"]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()


def steps() -> Iterator[tuple[str, str]]:
    """The name and the text of each step that is shell, as GitHub runs it."""
    for file in sorted((ROOT / ".github/workflows").glob("*.yml")):
        for job, content in YAML(typ="safe").load(file)["jobs"].items():
            for number, step in enumerate(content.get("steps", []), 1):
                if "run" in step:
                    yield f"{file.name}, {job}, step {number}", f"set -e\n{step['run']}"


def main() -> None:
    failed = bool(subprocess.run([SHELLCHECK, *scripts()], cwd=ROOT, check=False).returncode)
    for name, text in steps():
        command = [SHELLCHECK, "--shell=bash", "--format=gcc", "-"]
        if subprocess.run(command, input=text, text=True, check=False).returncode:
            print(f"^ {name}", file=sys.stderr)
            failed = True
    sys.exit(failed)


if __name__ == "__main__":
    main()
