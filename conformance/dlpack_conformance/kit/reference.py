"""A small array library that keeps the rules. The kit judges itself by it; mutants change it."""

import ctypes
import math
from collections.abc import Sequence
from ctypes import POINTER, byref, c_int64, c_void_p, py_object
from typing import Any

from dlpack_conformance.abi.capsule import (
    CAPSULE_DESTRUCTOR,
    Py_IncRef,
    PyCapsule_GetPointer,
    PyCapsule_IsValid,
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
    ROCM,
    SUBBYTE_PADDED,
    VERSIONED,
    DLDataType,
    DLDevice,
    DLManagedTensor,
    DLManagedTensorVersioned,
    DLTensor,
)
from dlpack_conformance.abi.exchange import (
    ATTRIBUTE,
    CURRENT_WORK_STREAM,
    EXCHANGE_API,
    FROM_PY_OBJECT,
    DLPackExchangeAPI,
    DLPackExchangeAPIHeader,
)
from dlpack_conformance.kit.consumer import Imported, dtype_name
from dlpack_conformance.kit.memory import aligned
from dlpack_conformance.kit.streams import LEGACY_DEFAULT, ROCM_DEFAULT, Streams
from dlpack_conformance.kit.table import make_table, table_capsule
from dlpack_conformance.kit.values import nested, pack, pack_one, read_one, row_major

# The current stream of each device in use besides the CPU: host memory by another name.
STREAMS: dict[int, int] = {}
MOST_AXES = 64
ADDRESSES = 1 << 62  # more bytes than a program has
LARGEST = 1 << 32  # bytes that it allocates


class Array:
    """Elements at an address, which `owner` keeps there."""

    lasting = False
    __dlpack_c_exchange_api__: Any = None  # the capsule is made at the end of this file

    def __init__(
        self,
        address: int,
        dtype: str,
        shape: Sequence[int],
        strides: Sequence[int],
        *,
        readonly: bool = False,
        owner: Any = None,
        device: tuple[int, int] = (CPU, 0),
    ) -> None:
        self.address, self.dtype, self.readonly, self.owner = address, dtype, readonly, owner
        self.shape, self.strides, self.device = tuple(shape), tuple(strides), device
        self.c_shape, self.c_strides = c_extents(self.shape), c_extents(self.strides)

    def to_list(self) -> Any:
        return nested(lambda i: read_one(self.address, i, self.dtype), self.shape, self.strides)

    def write(self, value: Any) -> None:
        """Sets the first element."""
        if self.readonly:
            raise ValueError("the array is read-only")
        content = pack_one(value, *DTYPES[self.dtype])
        ctypes.memmove(self.address, content, len(content))

    def copied(self) -> "Array":
        _, elements = self.__reduce__()
        return make(*elements)

    def __reduce__(self) -> tuple[Any, ...]:
        """How copy and pickle make another."""
        check_size(self.shape, self.dtype)
        elements = self.to_list()
        for _ in self.shape[1:]:
            elements = [element for row in elements for element in row]
        return make, (elements if self.shape else [elements], self.dtype, self.shape)

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
        if dl_device is not None and read_device(dl_device) != (CPU, 0):
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


def read_device(dl_device: Any) -> tuple[int, int]:
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
        device = (streams.device_type, 0)
        super().__init__(address, "float32", shape, row_major(shape), device=device)
        self.streams, self.queue = streams, queue

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
        if dl_device is not None and read_device(dl_device) == (CPU, 0):
            if stream is not None:
                raise ValueError("the CPU has no streams: stream must be None")
            if copy is False:
                raise BufferError("the memory of the device is not the CPU's")
            self.streams.synchronize(self.queue)
            return export(self.copied(), versioned, IS_COPIED)
        if dl_device is not None and read_device(dl_device) != self.device:
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

    lasting = True


def check_size(shape: Sequence[int], dtype: str) -> None:
    if math.prod(shape) * DTYPES[dtype][1] >= 8 * LARGEST:
        raise MemoryError(f"shape {shape}")


def c_extents(extents: Sequence[int]) -> Any:
    return (c_int64 * len(extents))(*extents)


def describe(array: Array, tensor: DLTensor) -> None:
    """Fills a tensor, whose shape and strides are the array's."""
    if array.dtype not in DTYPES:
        raise BufferError(f"DLPack has no word for {array.dtype}")
    tensor.data = array.address if math.prod(array.shape) else None
    tensor.device = DLDevice(*array.device)
    tensor.ndim = len(array.shape)
    tensor.dtype = DLDataType(*DTYPES[array.dtype], 1)
    tensor.shape = ctypes.cast(array.c_shape, POINTER(c_int64))
    tensor.strides = ctypes.cast(array.c_strides, POINTER(c_int64))
    tensor.byte_offset = 0


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
        if not array.lasting:
            self.managed.deleter = ctypes.cast(self.deleter, c_void_p)
        describe(array, self.managed.dl_tensor)
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
        deleter = kind.from_address(managed).deleter
        if deleter:
            DELETER(deleter)(managed)


delete_untaken_legacy = CAPSULE_DESTRUCTOR(lambda capsule: delete_untaken(capsule, LEGACY))
delete_untaken_versioned = CAPSULE_DESTRUCTOR(lambda capsule: delete_untaken(capsule, VERSIONED))


class Owner:
    """Calls the deleter when the last array that shares the memory is gone."""

    def __init__(self, imported: Imported) -> None:
        self.imported = imported

    def __del__(self) -> None:
        self.imported.delete()


def use_stream(kind: int, default: bool) -> int:
    """Uses devices of this type from now on, by the default stream or by another."""
    STREAMS[kind] = {CUDA: LEGACY_DEFAULT, ROCM: ROCM_DEFAULT}[kind] if default else 7
    return STREAMS[kind]


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Array:
    table = table_of(type(x))
    if table is not None and device is None and copy is None:
        return from_table(table, x)
    kind, _number = x.__dlpack_device__()
    if kind != CPU and kind not in STREAMS and device is None:
        raise BufferError(f"device {x.__dlpack_device__()} is neither the CPU nor in use")
    if device not in (None, "cpu"):
        raise ValueError('device is None or "cpu"')
    stream = {"stream": STREAMS[kind]} if kind in STREAMS and device is None else {}
    asked: dict[str, Any] = {"max_version": (MAJOR, MINOR), **stream}
    asked |= {} if copy is None else {"copy": copy}
    asked |= {} if device is None else {"dl_device": (CPU, 0)}
    try:
        capsule = x.__dlpack__(**asked)
    except TypeError:
        # A producer of before 2023.12. It may copy, so that copy=False cannot be kept.
        if copy is False or device is not None:
            raise
        capsule = x.__dlpack__(**stream)
    array, flags = adopt(capsule)
    return array.copied() if copy and not flags & IS_COPIED else array


def adopt(capsule: Any) -> tuple[Array, int]:
    """The array of a capsule's tensor, which is deleted if it cannot be one, and its flags."""
    imported = Imported(capsule)
    imported.take()
    owner = Owner(imported)
    array = read(imported, owner)
    return array, imported.flags


def read(imported: Imported, owner: Any) -> Array:
    """The tensor as an array; what it cannot be is refused before its memory is read."""
    if imported.versioned and imported.managed.version.major != MAJOR:
        raise BufferError(f"DLPack {imported.version} has another layout")
    if imported.device[0] not in (CPU, *STREAMS):
        raise BufferError(f"device {imported.device} is neither the CPU nor in use")
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
    layout = (imported.address, dtype, shape, strides)
    return Array(*layout, readonly=readonly, owner=owner, device=imported.device)


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


def table_of(kind: Any) -> DLPackExchangeAPI | None:
    """Of a type, if it has one of this major version."""
    capsule = getattr(kind, ATTRIBUTE, None)
    if not PyCapsule_IsValid(capsule, EXCHANGE_API):
        return None
    address = PyCapsule_GetPointer(capsule, EXCHANGE_API)
    while address:
        header = DLPackExchangeAPIHeader.from_address(address)
        if header.version.major == MAJOR:
            return DLPackExchangeAPI.from_address(address)
        address = header.prev_api
    return None


def from_table(table: DLPackExchangeAPI, x: Any) -> Array:
    managed, stream = c_void_p(), c_void_p()
    FROM_PY_OBJECT(table.managed_tensor_from_py_object_no_sync)(id(x), byref(managed))
    array, _flags = adopt(PyCapsule_New(managed.value, VERSIONED, None))
    kind, number = array.device
    if kind != CPU:
        CURRENT_WORK_STREAM(table.current_work_stream)(kind, number, byref(stream))
        STREAMS[kind] = stream.value or 0
    return array


def checked(address: int) -> Array:
    """The object at this address."""
    x = ctypes.cast(address, py_object).value
    if not isinstance(x, Array):
        raise TypeError(f"{type(x)} is no Array")
    return x


def api_allocate(prototype: Any, out: Any, context: Any, set_error: Any) -> int:
    wanted = prototype.contents
    try:
        dtype = dtype_name(wanted.dtype.code, wanted.dtype.bits, wanted.dtype.lanes)
        shape = wanted.shape[: wanted.ndim] if wanted.ndim else []
        if min(shape, default=0) < 0:
            raise ValueError(f"shape {shape}")
        if wanted.device.device_type not in (CPU, *STREAMS):
            raise BufferError(f"device type {wanted.device.device_type}")
        check_size(shape, dtype)
        address = aligned(bytes((math.prod(shape) * DTYPES[dtype][1] + 7) // 8))
        device = wanted.device.device_type, wanted.device.device_id
        array = Array(address, dtype, shape, row_major(shape), device=device)
        out[0] = ctypes.addressof(Export(array, True, 0).managed)
        return 0
    except Exception as error:
        set_error(context, type(error).__name__.encode(), str(error).encode())
        return -1


def api_from_object(x: int, out: Any) -> None:
    array = checked(x)
    flags = READ_ONLY if array.readonly else 0
    out[0] = ctypes.addressof(Export(array, True, flags).managed)


def api_to_object(managed: int, out: Any) -> None:
    array, _flags = adopt(PyCapsule_New(managed, VERSIONED, None))
    Py_IncRef(array)
    out[0] = id(array)


def api_lend(x: int, out: Any) -> None:
    describe(checked(x), out.contents)


def api_work_stream(kind: int, number: int, out: Any) -> None:
    if kind != CPU and kind not in STREAMS:
        raise BufferError(f"device ({kind}, {number}) is neither the CPU nor in use")
    out[0] = STREAMS.get(kind)


API: dict[str, Any] = {"allocate": api_allocate, "from_object": api_from_object}
API |= {"to_object": api_to_object, "lend": api_lend, "work_stream": api_work_stream}
Array.__dlpack_c_exchange_api__ = table_capsule(make_table(**API))
