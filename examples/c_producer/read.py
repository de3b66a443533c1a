"""A tensor made by a C function, in NumPy and in Arrow; and the way back.

python examples/c_producer/read.py [directory of dlpack/dlpack.h]

Without an argument, the header is the one in the wheel of apache-tvm-ffi.
"""

import ctypes
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from arrow_dlpack import Array, Tensor

SOURCE = Path(__file__).with_name("squares.c")


def main(include: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        library = compiled(include, Path(folder))

        # A new DLManagedTensorVersioned: from_pointer takes it over, and its deleter with it.
        tensor = Tensor.from_pointer(library.squares(5))
        print(tensor)
        print("NumPy:", np.from_dlpack(tensor))
        print("Arrow:", pa.array(tensor.to_arrow()).to_pylist())

        # The way back: the capsule holds the same kind of pointer, for as long as it lives.
        capsule = Array(pa.array([0.5, 1.5, 2.0], pa.float32())).__dlpack__(max_version=(1, 0))
        print("C:", library.total(pointer_in(capsule)))


def compiled(include: str, folder: Path) -> ctypes.CDLL:
    target = folder / "squares.so"
    compiler = os.environ.get("CC", "cc")
    subprocess.run([compiler, "-shared", "-fPIC", "-I", include, SOURCE, "-o", target], check=True)
    library = ctypes.CDLL(str(target))
    # Without these, ctypes would cut addresses to 32 bits.
    library.squares.restype, library.squares.argtypes = ctypes.c_void_p, [ctypes.c_int64]
    library.total.restype, library.total.argtypes = ctypes.c_double, [ctypes.c_void_p]
    return library


def pointer_in(capsule: object) -> int:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return get(capsule, b"dltensor_versioned")


def header_of_tvm_ffi() -> str:
    from tvm_ffi import libinfo  # noqa: PLC0415 (only needed where no header is named)

    return libinfo.find_dlpack_include_path()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else header_of_tvm_ffi())
