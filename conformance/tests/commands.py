"""The package as its users run it, with no wheel installed."""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
REFERENCE = "dlpack_conformance.kit.reference"

# NumPy's, but for what a test breaks.
BROKEN_NUMPY = """
from dlpack_conformance.hooks.numpy import *
from dlpack_conformance.hooks import numpy as right

def make(values, dtype="float32", shape=None, *, strides=None, offset=0, readonly=False):
    return right.make(values, dtype, shape, strides=strides, offset=offset)
"""


def python(*arguments, cwd=None, path=()):
    """Runs Python with the package importable, and these folders too."""
    folders = [*map(str, path), str(HERE.parent), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(folders)}
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )


def kit(*arguments):
    return python("-m", "dlpack_conformance", *arguments)
