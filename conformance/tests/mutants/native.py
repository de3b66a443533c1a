"""Deleters and destructors that are compiled, from native.c: a C compiler makes them."""

import ctypes
import subprocess
import tempfile
from pathlib import Path

from dlpack_conformance.abi.capsule import CAPSULE_DESTRUCTOR
from dlpack_conformance.abi.dlpack import DELETER
from dlpack_conformance.kit import reference

from mutants import decorator

KEPT = []
EXPORTS = {}  # by the address of the managed tensor


def compiled(function, following):
    """The address of this function of native.c, which calls `following`, one of ctypes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "native.so")
        source = Path(__file__).with_suffix(".c")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", path, source], check=True)
        library = ctypes.PyDLL(str(path))
    ctypes.c_void_p.in_dll(library, "next").value = address(following)
    KEPT.extend([library, following])
    return address(library[function])


def address(function):
    return ctypes.cast(function, ctypes.c_void_p).value


@decorator
def deletes_by(change):
    """The function's name is the deleter in native.c of all that the library exports."""
    fill = reference.Export.__init__
    following = DELETER(lambda managed: EXPORTS.pop(managed).delete(managed))
    deleter = compiled(change.__name__, following)

    def planted(self, array, versioned, flags):
        fill(self, array, versioned, flags)
        if not array.lasting:
            EXPORTS[ctypes.addressof(self.managed)] = self
            self.managed.deleter = deleter

    reference.Export.__init__ = planted


@decorator
def destroys_by(change):
    """The function's name is the destructor in native.c of all capsules."""
    for name in ("delete_untaken_legacy", "delete_untaken_versioned"):
        destructor = compiled(change.__name__, getattr(reference, name))
        setattr(reference, name, CAPSULE_DESTRUCTOR(destructor))
