"""A small array library that keeps the rules. The kit judges itself by it; mutants change it."""

import ctypes
import math
from collections.abc import Sequence
from ctypes import c_int64, c_void_p
from typing import Any

from dlpack_conformance.abi.capsule import (
    CAPSULE_DESTRUCTOR,
    PyCapsule_New,
    dying_capsule_is_valid,
    dying_capsule_pointer,
    take_exception_away,
)
from dlpack_conformance.abi.dlpack import (
    CPU,
    CUDA,
    DELETER,
    DTYPES,
    IS_COPIED,
    LEGACY,
    MAJOR,
    MINOR,
    READ_ONLY,
    SUBBYTE_PADDED,
    VERSIONED,
    DLDataType,
    DLDevice,
    DLManagedTensor,
    DLManagedTensorVersioned,
)
from dlpack_conformance.kit.consumer import Imported, dtype_name
from dlpack_conformance.kit.memory import aligned
from dlpack_conformance.kit.streams import Streams
from dlpack_conformance.kit.values import nested, pack, pack_one, read_one, row_major

MOST_AXES = 64
MOST_COPIED = 1 << 32  # elements
ADDRESSES = 1 << 62  # more bytes than a program has


class Array:
    """Elements at an address, which `owner` keeps there."""

    def __init__(
        self,
        address: int,
        dtype: str,
        shape: Sequence[int],
        strides: Sequence[int],
        *,
        readonly: bool = False,
        owner: Any = None,
    ) -> None:
        self.address, self.dtype, self.readonly, self.owner = address, dtype, readonly, owner
        self.shape, self.strides = tuple(shape), tuple(strides)
        self.device = (CPU, 0)

    def to_list(self) -> Any:
        return nested(lambda i: read_one(self.address, i, self.dtype), self.shape, self.strides)

    def write(self, value: Any) -> None:
        """Sets the first element."""
        if self.readonly:
            raise ValueError("the array is read-only")
        content = pack_one(value, *DTYPES[self.dtype])
        ctypes.memmove(self.address, content, len(content))

    def copied(self) -> "Array":
        if math.prod(self.shape) > MOST_COPIED:
            raise MemoryError(f"shape {self.shape}")
        elements = self.to_list()
        for _ in self.shape[1:]:
            elements = [element for row in elements for element in row]
        content = pack(elements if self.shape else [elements], self.dtype)
        return Array(aligned(content), self.dtype, self.shape, row_major(self.shape))

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        if stream is not None:
            raise ValueError("the CPU has no streams: stream must be None")
        if dl_device is not None and device_pair(dl_device) != (CPU, 0):
            raise BufferError(f"device {dl_device} is not the CPU")
        if copy not in (None, True, False):
            raise TypeError("copy is None or a bool")
        if max_version is None:
            versioned = False
        else:
            major, _minor = max_version
            versioned = major >= MAJOR
        array, flags = (self.copied(), IS_COPIED) if copy else (self, 0)
        flags |= READ_ONLY if array.readonly else 0
        return export(array, versioned, flags)


def device_pair(dl_device: Any) -> tuple[int, int]:
    if not isinstance(dl_device, tuple) or len(dl_device) != 2:
        raise TypeError("dl_device is a tuple of two")
    return int(dl_device[0]), int(dl_device[1])


class Scattered(Array):
    """Elements with others between them: what it exports is always a copy."""

    def __dlpack__(self, *, copy: bool | None = None, **keywords: Any) -> Any:
        if copy is False:
            raise BufferError("the elements are scattered")
        return super().__dlpack__(copy=True, **keywords)


class DeviceArray(Array):
    """Elements on the kit's simulated device: `queue` is the stream of the last work on them."""

    def __init__(self, address: int, shape: Sequence[int], streams: Streams, queue: int) -> None:
        super().__init__(address, "float32", shape, row_major(shape))
        self.streams, self.queue = streams, queue
        self.device = (streams.device_type, 0)

    def to_list(self) -> Any:
        self.streams.synchronize(self.queue)
        return super().to_list()

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        versioned = max_version is not None and max_version[0] >= MAJOR
        if dl_device is not None and device_pair(dl_device) == (CPU, 0):
            if stream is not None:
                raise ValueError("the CPU has no streams: stream must be None")
            if copy is False:
                raise BufferError("the memory of the device is not the CPU's")
            self.streams.synchronize(self.queue)
            return export(self.copied(), versioned, IS_COPIED)
        if dl_device is not None and device_pair(dl_device) != self.device:
            raise BufferError(f"device {dl_device} is neither the array's nor the CPU")
        consumers = self.consumers_stream(stream)
        if consumers is not None and consumers != self.queue:
            self.streams.wait(consumers, self.queue)
        if not copy:
            return export(self, versioned, 0)
        on = self.queue if consumers is None else consumers
        source, size = self.address, 4 * math.prod(self.shape)
        result = DeviceArray(aligned(bytes(size)), self.shape, self.streams, on)
        self.streams.launch(on, lambda: ctypes.memmove(result.address, source, size))
        return export(result, versioned, IS_COPIED)

    def consumers_stream(self, stream: Any) -> int | None:
        """None for -1: no synchronisation."""
        if stream is None:
            return self.streams.default
        if not isinstance(stream, int) or isinstance(stream, bool):
            raise TypeError("stream is None or an int")
        refused = (0,) if self.streams.device_type == CUDA else (1, 2)
        if stream < -1 or stream in refused:
            raise ValueError(f"{stream} is no stream of this device")
        return None if stream == -1 else stream


def late_array(streams: Streams, values: Sequence[float]) -> DeviceArray:
    """Its elements are 0 until the work on a stream of its library is done."""
    queue = streams.create()
    content = pack(values, "float32")
    address = aligned(bytes(len(content)))
    streams.launch(queue, lambda: ctypes.memmove(address, content, len(content)))
    return DeviceArray(address, (len(values),), streams, queue)


class Static(Array):
    """Elements that are never freed: its tensors have no deleter."""


class Export:
    """A managed tensor, which keeps itself until its deleter is called."""

    alive: set["Export"] = set()  # noqa: RUF012 (of all)

    def __init__(self, array: Array, versioned: bool, flags: int) -> None:
        self.array = array
        self.managed: Any = DLManagedTensorVersioned() if versioned else DLManagedTensor()
        if versioned:
            self.managed.version.major, self.managed.version.minor = MAJOR, MINOR
            self.managed.flags = flags
        self.deleter = DELETER(self.delete)
        if not isinstance(array, Static):
            self.managed.deleter = ctypes.cast(self.deleter, c_void_p)
        extents = c_int64 * len(array.shape)
        tensor = self.managed.dl_tensor
        tensor.data = array.address if math.prod(array.shape) else None
        tensor.device = DLDevice(*array.device)
        tensor.ndim = len(array.shape)
        tensor.dtype = DLDataType(*DTYPES[array.dtype], 1)
        tensor.shape = extents(*array.shape)
        tensor.strides = extents(*array.strides)
        Export.alive.add(self)

    def delete(self, _managed: int) -> None:
        take_exception_away()
        Export.alive.discard(self)


def export(array: Array, versioned: bool, flags: int) -> Any:
    """A capsule that deletes its tensor if no consumer takes it."""
    address = ctypes.addressof(Export(array, versioned, flags).managed)
    destructor = delete_untaken_versioned if versioned else delete_untaken_legacy
    name = VERSIONED if versioned else LEGACY
    return PyCapsule_New(address, name, ctypes.cast(destructor, c_void_p))


def delete_untaken(capsule: int, name: bytes) -> None:
    take_exception_away()
    if dying_capsule_is_valid(capsule, name):
        managed = dying_capsule_pointer(capsule, name)
        kind: Any = DLManagedTensorVersioned if name == VERSIONED else DLManagedTensor
        DELETER(kind.from_address(managed).deleter)(managed)


delete_untaken_legacy = CAPSULE_DESTRUCTOR(lambda capsule: delete_untaken(capsule, LEGACY))
delete_untaken_versioned = CAPSULE_DESTRUCTOR(lambda capsule: delete_untaken(capsule, VERSIONED))


class Owner:
    """Calls the deleter when the last array that shares the memory is gone."""

    def __init__(self, imported: Imported) -> None:
        self.imported = imported

    def __del__(self) -> None:
        self.imported.delete()


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Array:
    if x.__dlpack_device__()[0] != CPU and device is None:
        raise BufferError(f"device {x.__dlpack_device__()} is not the CPU")
    if device not in (None, "cpu"):
        raise ValueError('device is None or "cpu"')
    asked: dict[str, Any] = {"max_version": (MAJOR, MINOR)}
    asked |= {} if copy is None else {"copy": copy}
    asked |= {} if device is None else {"dl_device": (CPU, 0)}
    try:
        capsule = x.__dlpack__(**asked)
    except TypeError:
        # A producer of before 2023.12. It may copy, so that copy=False cannot be kept.
        if copy is False or device is not None:
            raise
        capsule = x.__dlpack__()
    imported = Imported(capsule)
    imported.take()
    owner = Owner(imported)
    array = read(imported, owner)
    return array.copied() if copy and not imported.flags & IS_COPIED else array


def read(imported: Imported, owner: Any) -> Array:
    """The tensor as an array; what it cannot be is refused before its memory is read."""
    if imported.versioned and imported.managed.version.major != MAJOR:
        raise BufferError(f"DLPack {imported.version} has another layout")
    if imported.device[0] != CPU:
        raise BufferError(f"device {imported.device} is not the CPU")
    dtype = dtype_name(*imported.dtype)
    bits = imported.dtype[1]
    if bits < 8 and imported.flags & SUBBYTE_PADDED:
        raise BufferError("padded elements of less than a byte")
    if not 0 <= imported.tensor.ndim <= MOST_AXES:
        raise BufferError(f"{imported.tensor.ndim} axes")
    if imported.tensor.ndim and not imported.tensor.shape:
        raise BufferError("axes without a shape")
    shape, strides = imported.shape, imported.strides
    if min(shape, default=0) < 0:
        raise BufferError(f"shape {shape}")
    reach = sum((extent - 1) * abs(stride) for extent, stride in zip(shape, strides, strict=True))
    if max(math.prod(shape), reach) * bits >= 8 * ADDRESSES:
        raise BufferError(f"shape {shape} with strides {strides} does not fit into memory")
    if math.prod(shape) and not imported.tensor.data:
        raise BufferError("elements without memory")
    readonly = bool(imported.flags & READ_ONLY)
    return Array(imported.address, dtype, shape, strides, readonly=readonly, owner=owner)


def make(
    values: Sequence[Any],
    dtype: str = "float32",
    shape: Sequence[int] | None = None,
    *,
    strides: Sequence[int] | None = None,
    offset: int = 0,
    readonly: bool = False,
) -> Array:
    shape = (len(values),) if shape is None else shape
    strides = row_major(shape) if strides is None else strides
    address = aligned(pack(values, dtype)) + DTYPES[dtype][1] * offset // 8
    return Array(address, dtype, shape, strides, readonly=readonly)
