"""A producer of arrays for devices, on the CPU, that say what they are told."""

import ctypes
from collections.abc import Sequence
from typing import Any

from dlpack_conformance.abi.arrow import ARROW_DEVICE_ARRAY, ArrowDeviceArray
from dlpack_conformance.abi.capsule import PyCapsule_New
from dlpack_conformance.abi.dlpack import CPU
from dlpack_conformance.kit.arrow_field import Field
from dlpack_conformance.kit.arrow_producer import ArrowProducer, Made


class DeviceProducer:
    """An object with `__arrow_c_device_array__` and no other method."""

    def __init__(
        self,
        field: Field,
        values: Sequence[Any],
        *,
        device_id: int = -1,
        sync_event: int | None = None,
        reserved: int = 0,
    ) -> None:
        self.of, self.values = ArrowProducer(field, values), list(values)
        self.device_id, self.sync_event, self.reserved = device_id, sync_event, reserved
        self.structures: list[Any] = []

    def __arrow_c_device_array__(self, requested_schema: Any = None, **_keywords: Any) -> Any:
        structure = ArrowDeviceArray()
        self.structures.append(structure)
        self.of.arrays.append(Made(self.of.array, structure.array, True))
        structure.device_type, structure.device_id = CPU, self.device_id
        structure.sync_event = self.sync_event
        structure.reserved[:] = [self.reserved] * 3
        capsule = PyCapsule_New(ctypes.addressof(structure), ARROW_DEVICE_ARRAY, None)
        self.of.capsules.append(capsule)
        return self.of.export_schema(), capsule


def dirty_heap(size: int = 128) -> None:
    """Writes to what malloc gives next for as many bytes."""
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    blocks = [libc.malloc(ctypes.c_size_t(size)) for _ in range(16)]
    for block in blocks:
        ctypes.memset(block, 0xAA, size)
    for block in blocks:
        libc.free(block)
