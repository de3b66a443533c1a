"""The reference library of the kit."""

from collections.abc import Iterator, Sequence
from typing import Any

from dlpack_conformance.abi.dlpack import CUDA, DTYPES
from dlpack_conformance.kit.accelerator import Accelerator
from dlpack_conformance.kit.arrow_far import FarArray, Fetched
from dlpack_conformance.kit.arrow_field import Field
from dlpack_conformance.kit.memory import aligned
from dlpack_conformance.kit.reference import (
    Array,
    Scattered,
    Static,
    from_dlpack,
    late_array,
    make,
    use_stream,
)
from dlpack_conformance.kit.reference_arrow import (
    Chunks,
    Data,
    DeviceChunks,
    iterate,
    take_array,
    take_device_array,
    take_schema,
    take_stream,
)
from dlpack_conformance.kit.reference_bridge import (
    bridge_array,
    bridge_far_array,
    bridge_far_tensor,
    bridge_tensor,
)
from dlpack_conformance.kit.streams import Streams
from dlpack_conformance.kit.values import pack
from dlpack_conformance.rule import NotApplicable

__all__ = ["bridge_array", "bridge_far_array", "bridge_far_tensor", "bridge_tensor"]
__all__ += ["late_array", "make", "use_stream"]


def dtypes() -> list[str]:
    return list(DTYPES)


def take(x: Any, **keywords: Any) -> Array:
    return from_dlpack(x, **keywords)


def cpu() -> str:
    return "cpu"


def to_list(array: Array) -> Any:
    return array.to_list()


def dtype_of(array: Array) -> str:
    return array.dtype


def shape_of(array: Array) -> tuple[int, ...]:
    return array.shape


def address(array: Array) -> int:
    return array.address


def write(array: Array, value: Any) -> None:
    array.write(value)


def views(array: Array) -> list[Array]:
    """The same elements, and the last axis backwards."""
    last = (array.shape[-1] - 1) * array.strides[-1] * DTYPES[array.dtype][1] // 8
    backwards = (*array.strides[:-1], -array.strides[-1])
    return [
        Array(array.address, array.dtype, array.shape, array.strides, owner=array.owner),
        Array(array.address + last, array.dtype, array.shape, backwards, owner=array.owner),
    ]


def device_array() -> Array:
    return late_array(Streams(CUDA), [1.0, 2.0])


def static_array() -> Array:
    return Static(aligned(pack([1.0, 2.0], "float32")), "float32", (2,), (1,))


class Odd(Array):
    """An array that DLPack cannot say."""

    def __init__(self, what: str) -> None:
        super().__init__(0, what, (1,), (1,))

    def __dlpack__(self, **keywords: Any) -> Any:
        raise BufferError(f"DLPack has no word for {self.dtype}")


def odd(what: str) -> Array:
    if what == "unshared":
        return Scattered(aligned(pack([1.0, 0.0, 2.0], "float32")), "float32", (2,), (2,))
    if what in ("sparse", "meta"):
        raise NotApplicable(f"no {what} arrays")
    return Odd(what)


# Arrow


def arrow_array(field: Field, values: Sequence[Any]) -> Any:
    return Data(field, values)


def arrow_device_array(field: Field, values: Sequence[Any]) -> Any:
    return Data(field, values)


def arrow_slice(array: Any, start: int, length: int) -> Any:
    return array.sliced(start, length)


def arrow_stream(field: Field, chunks: Sequence[Sequence[Any]], once: bool = False) -> Any:
    return Chunks(field, chunks, once=once)


def arrow_failing_stream(field: Field, chunks: Sequence[Sequence[Any]], message: str) -> Any:
    return Chunks(field, chunks, message=message)


def arrow_device_stream(field: Field, chunks: Sequence[Sequence[Any]]) -> Any:
    return DeviceChunks(field, chunks)


def arrow_failing_device_stream(field: Field, chunks: Sequence[Sequence[Any]], message: str) -> Any:
    return DeviceChunks(field, chunks, message=message)


def arrow_requests() -> list[tuple[Field, Field, list[Any]]]:
    texts = ["a", None, "c"]
    return [(Field("i"), Field("l"), [1, None, 3]), (Field("u"), Field("vu"), texts)]


def arrow_to_list(array: Any) -> Any:
    return array.to_list()


def arrow_take(x: Any) -> Any:
    return take_array(x)


def arrow_take_device(x: Any) -> Any:
    return take_device_array(x)


def arrow_take_schema(x: Any) -> Any:
    return Data(take_schema(x.__arrow_c_schema__()), [])


def arrow_take_stream(x: Any) -> Any:
    return take_stream(x)


def arrow_take_device_stream(x: Any) -> Any:
    return take_stream(x)


def arrow_iterate(x: Any) -> Iterator[Any]:
    return iterate(x)


def arrow_far_array(device: Accelerator, values: Sequence[int | None]) -> Any:
    return FarArray(device, values)


def arrow_take_far(device: Accelerator, x: Any) -> Any:
    return Fetched(x, device)
