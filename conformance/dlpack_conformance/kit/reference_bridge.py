"""The bridge of the kit's reference library: Arrow's columns as DLPack's tensors, and back."""

import ctypes
from ctypes import addressof, c_void_p
from typing import Any

from dlpack_conformance.abi.arrow import (
    ARROW_ARRAY,
    ARROW_DEVICE_ARRAY,
    RELEASE,
    ArrowArray,
    ArrowDeviceArray,
)
from dlpack_conformance.abi.capsule import take_exception_away
from dlpack_conformance.abi.dlpack import CPU, CUDA, MAJOR
from dlpack_conformance.kit.accelerator import Accelerator, handle_at
from dlpack_conformance.kit.arrow_far import Fetched
from dlpack_conformance.kit.arrow_field import Field, schema_capsule
from dlpack_conformance.kit.arrow_producer import Made, Part
from dlpack_conformance.kit.consumer import Imported
from dlpack_conformance.kit.reference import Array, Owner, export, from_dlpack
from dlpack_conformance.kit.reference_arrow import (
    KEPT,
    capsule_of,
    refuse_unknown,
    take_array,
)

COLUMN_FORMATS = {
    "c": "int8",
    "C": "uint8",
    "s": "int16",
    "S": "uint16",
    "i": "int32",
    "I": "uint32",
}
COLUMN_FORMATS |= {"l": "int64", "L": "uint64", "e": "float16", "f": "float32", "g": "float64"}
ARROWS_FORMAT = {dtype: form for form, dtype in COLUMN_FORMATS.items()}
COLUMN_WIDTHS = {
    form: int("".join(filter(str.isdigit, dtype))) // 8 for form, dtype in COLUMN_FORMATS.items()
}
BRIDGES_STREAM = 13


def bridge_tensor(x: Any) -> Array:
    """A column without nulls, read-only, in its own memory."""
    taken = take_array(x)
    form, array = taken.field.format, taken.array
    if form not in COLUMN_FORMATS or taken.field.dictionary is not None:
        raise BufferError(f"a column of format {form} is no tensor")
    if None in taken.to_list():
        raise BufferError("a tensor has no nulls")
    address = (array.buffers[1] or 0) + array.offset * COLUMN_WIDTHS[form]
    return Array(address, COLUMN_FORMATS[form], (array.length,), (1,), readonly=True, owner=taken)


class Column:
    """A tensor as an Arrow array, in its own memory."""

    def __init__(self, tensor: Array) -> None:
        if len(tensor.shape) != 1 or tensor.dtype not in ARROWS_FORMAT:
            raise ValueError(f"{tensor.dtype} of {len(tensor.shape)} axes is no column")
        self.tensor = tensor if tensor.strides == (1,) else tensor.copied()

    @property
    def field(self) -> Field:
        return Field(ARROWS_FORMAT[self.tensor.dtype])

    def fill(self, out: ArrowArray) -> None:
        """The array keeps the tensor until its release."""
        lent = [self.tensor]
        part = Part(
            ArrowArray,
            buffers=[None, self.tensor.address],
            length=self.tensor.shape[0],
            null_count=0,
        )
        made = Made(part, out, True)
        made.on_release = lent.clear
        KEPT.append(made)

    def __arrow_c_schema__(self) -> Any:
        return schema_capsule(self.field)

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        array = ArrowArray()
        self.fill(array)
        return self.__arrow_c_schema__(), capsule_of(array, ARROW_ARRAY)

    def __arrow_c_device_array__(self, requested_schema: Any = None, **keywords: Any) -> Any:
        refuse_unknown(keywords)
        array = ArrowDeviceArray()
        self.fill(array.array)
        array.device_type, array.device_id = CPU, -1
        return self.__arrow_c_schema__(), capsule_of(array, ARROW_DEVICE_ARRAY)

    def __dlpack__(self, **keywords: Any) -> Any:
        return self.tensor.__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.tensor.__dlpack_device__()


def bridge_array(x: Any) -> Column:
    return Column(from_dlpack(x))


class FarColumn(Array):
    """The column of a batch on the device as a tensor: `stream` waits for the batch's event."""

    def __init__(self, device: Accelerator, fetched: Fetched) -> None:
        self.accelerator, self.event = device, handle_at(fetched.structure.sync_event)
        address = fetched.child.buffers[1]
        super().__init__(address, "int32", (fetched.child.length,), (1,), owner=fetched)
        self.device = (CUDA, 0)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        if copy or dl_device not in (None, (CUDA, 0)):
            raise BufferError("no copies")
        if stream != -1 and self.event is not None:
            self.accelerator.wait_for(1 if stream is None else stream, self.event)
        return export(self, max_version is not None and max_version[0] >= MAJOR, 0)


def bridge_far_tensor(device: Accelerator, x: Any) -> FarColumn:
    return FarColumn(device, Fetched(x, device, read=False))


class FarBatch:
    """A tensor on the device as an array: its event is on the stream that waited for the tensor."""

    def __init__(self, device: Accelerator, x: Any) -> None:
        self.device = device
        self.imported = Imported(x.__dlpack__(stream=BRIDGES_STREAM, max_version=(MAJOR, 3)))
        self.imported.take()
        self.owner = Owner(self.imported)

    def __arrow_c_device_array__(self, requested_schema: Any = None, **keywords: Any) -> Any:
        refuse_unknown(keywords)
        device, structure, owner = self.device, ArrowDeviceArray(), [self.owner]
        event = device.create_event()
        device.record(event, BRIDGES_STREAM)
        handle, buffers = c_void_p(event), (c_void_p * 2)(None, self.imported.address)

        def released(address: int) -> None:
            take_exception_away()
            device.destroy_event(event)
            owner.clear()
            ArrowArray.from_address(address).release = None

        callback = RELEASE(released)
        KEPT.append((handle, buffers, callback))
        array = structure.array
        array.length, array.n_buffers, array.buffers = self.imported.shape[0], 2, buffers
        array.release = ctypes.cast(callback, c_void_p)
        structure.device_type, structure.device_id = self.imported.device
        structure.sync_event = addressof(handle)
        return schema_capsule(Field("i")), capsule_of(structure, ARROW_DEVICE_ARRAY)


def bridge_far_array(device: Accelerator, x: Any) -> FarBatch:
    return FarBatch(device, x)
