"""A producer and a consumer of Arrow arrays on the accelerator that is not there."""

import ctypes
import struct
from collections.abc import Sequence
from ctypes import addressof, c_void_p
from typing import Any

from dlpack_conformance.abi.arrow import (
    ARROW_DEVICE_ARRAY,
    RELEASE,
    ArrowArray,
    ArrowDeviceArray,
)
from dlpack_conformance.abi.capsule import (
    PyCapsule_GetPointer,
    PyCapsule_New,
    take_exception_away,
)
from dlpack_conformance.abi.dlpack import CUDA
from dlpack_conformance.kit.accelerator import Accelerator, handle_at
from dlpack_conformance.kit.arrow_field import Field, schema_capsule, struct_of
from dlpack_conformance.rule import NotApplicable

FAR: list[Any] = []  # for the life of the process
FAR_TYPE = struct_of(Field("i", "a"))
FAR_VALUES = [1, None, 3]
PRODUCERS_STREAM, CONSUMERS_STREAM = 11, 12


class FarArray:
    """A batch with a column of int32, whose bitmap and values are still under way."""

    def __init__(self, device: Accelerator, values: Sequence[int | None] = FAR_VALUES) -> None:
        self.device, self.values = device, values
        bits = sum((value is not None) << i for i, value in enumerate(values))
        integers = struct.pack(f"{len(values)}i", *(value or 0 for value in values))
        self.bitmap = device.upload(
            bits.to_bytes((len(values) + 7) // 8, "little"), PRODUCERS_STREAM
        )
        self.data = device.upload(integers, PRODUCERS_STREAM)
        self.exports: list[FarExport] = []
        FAR.append(self)

    def __arrow_c_device_array__(self, requested_schema: Any = None, **keywords: Any) -> Any:
        unknown = [name for name, value in keywords.items() if value is not None]
        if unknown:
            raise NotImplementedError(f"unknown keywords: {unknown}")
        self.exports.append(FarExport(self))
        address = addressof(self.exports[-1].structure)
        return schema_capsule(FAR_TYPE), PyCapsule_New(address, ARROW_DEVICE_ARRAY, None)


class FarExport:
    """One structure, with its event; the first release of all frees the memory."""

    def __init__(self, array: FarArray) -> None:
        self.array, self.releases = array, 0
        self.event = array.device.create_event()
        array.device.record(self.event, PRODUCERS_STREAM)
        self.handle = c_void_p(self.event)
        self.release, self.release_child = RELEASE(self.released), RELEASE(self.child_released)
        self.child = ArrowArray()
        self.buffers = (c_void_p * 1)(None)
        self.child_buffers = (c_void_p * 2)(array.bitmap, array.data)
        self.children = (c_void_p * 1)(addressof(self.child))
        self.structure = ArrowDeviceArray()
        base, count = self.structure.array, len(array.values)
        base.length = self.child.length = count
        self.child.null_count = list(array.values).count(None)
        base.n_buffers, base.buffers = 1, self.buffers
        base.n_children, base.children = 1, self.children
        self.child.n_buffers, self.child.buffers = 2, self.child_buffers
        base.release = ctypes.cast(self.release, c_void_p)
        self.child.release = ctypes.cast(self.release_child, c_void_p)
        self.structure.device_type, self.structure.device_id = CUDA, 0
        self.structure.sync_event = addressof(self.handle)

    def released(self, address: int) -> None:
        take_exception_away()
        self.releases += 1
        self.array.device.destroy_event(self.event)
        if all(export.releases for export in self.array.exports):
            self.array.device.free(self.array.bitmap)
            self.array.device.free(self.array.data)
        ArrowArray.from_address(address).release = self.child.release = None

    def child_released(self, address: int) -> None:
        take_exception_away()
        ArrowArray.from_address(address).release = None


class Fetched:
    """The values of such an array, on their way to the host by a stream of the consumer's."""

    def __init__(self, x: Any, device: Accelerator, *, read: bool = True) -> None:
        self.device = device
        self.schema, capsule = x.__arrow_c_device_array__()
        source = ArrowDeviceArray.from_address(PyCapsule_GetPointer(capsule, ARROW_DEVICE_ARRAY))
        self.structure = ArrowDeviceArray.from_buffer_copy(source)
        source.array.release = None
        self.child = ArrowArray.from_address(self.structure.array.children[0])
        if read:
            self.read()

    def read(self) -> None:
        event = handle_at(self.structure.sync_event)
        if event is not None:
            self.device.wait_for(CONSUMERS_STREAM, event)
        bitmap, data = self.child.buffers[:2]
        self.bitmap = self.device.read(bitmap, CONSUMERS_STREAM) if bitmap else None
        self.data = self.device.read(data, CONSUMERS_STREAM)

    def to_list(self) -> list[dict[str, int | None]]:
        self.device.synchronize(CONSUMERS_STREAM)
        values = [value for (value,) in struct.iter_unpack("i", bytes(self.data))]
        bits = -1 if self.bitmap is None else int.from_bytes(self.bitmap, "little")
        return [{"a": value if bits >> i & 1 else None} for i, value in enumerate(values)]

    def release(self) -> None:
        """Not before the work that reads the memory is done."""
        if self.structure.array.release:
            self.device.synchronize(CONSUMERS_STREAM)
            RELEASE(self.structure.array.release)(addressof(self.structure.array))

    def __del__(self) -> None:
        self.release()


def not_run_here(lib: Any, verb: str) -> None:
    """Of libraries none has the simulated device."""
    if not hasattr(lib, verb):
        raise NotApplicable("not run here: it needs a device with streams")
