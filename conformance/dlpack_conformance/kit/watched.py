"""A producer's tensor, whose deleter is counted."""

import ctypes
import gc
from typing import Any

from dlpack_conformance.abi.dlpack import DELETER
from dlpack_conformance.kit.consumer import Imported

WATCHED: list[Any] = []  # for the life of the process: deleters may be called at its end


class Watched(Imported):
    """Its deleter is replaced by one that counts and calls it."""

    def __init__(self, capsule: Any) -> None:
        super().__init__(capsule)
        self.deleter, self.deletions = self.managed.deleter, 0
        self.counting = DELETER(self.count)
        self.managed.deleter = ctypes.cast(self.counting, ctypes.c_void_p)
        WATCHED.append(self)

    def count(self, managed: int) -> None:
        self.deletions += 1
        if self.deleter:
            DELETER(self.deleter)(managed)

    def drop(self) -> None:
        """The capsule dies."""
        self.capsule = None
        gc.collect()
