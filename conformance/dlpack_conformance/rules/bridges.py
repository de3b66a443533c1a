"""BR: bridges, objects that have both protocols.

BR05 and BR06 need a device with streams: they run against the kit's own arrays and tensors on a
simulated one (kit/accelerator.py).
"""

import ctypes
import gc
import struct
from typing import Any

from dlpack_conformance.abi.arrow import ArrowArray
from dlpack_conformance.abi.dlpack import CPU, CUDA, IS_COPIED, READ_ONLY
from dlpack_conformance.kit.accelerator import Accelerator, handle_at
from dlpack_conformance.kit.arrow_consumer import ArrowExported, move, release
from dlpack_conformance.kit.arrow_far import FarArray, not_run_here
from dlpack_conformance.kit.arrow_field import Field
from dlpack_conformance.kit.arrow_producer import ArrowProducer
from dlpack_conformance.kit.consumer import Imported, exported
from dlpack_conformance.kit.far_tensor import FarTensor
from dlpack_conformance.kit.judge import either, equal, exported_versioned, text
from dlpack_conformance.kit.native import c_library
from dlpack_conformance.kit.producer import Producer
from dlpack_conformance.library import Library
from dlpack_conformance.rule import Broken, NotApplicable, rule
from dlpack_conformance.rules.device import device_structure

INTEGERS = Field("i")
FAR_COLUMN = [1, 2, 3]


def integers(offset: int = 0) -> ArrowProducer:
    return ArrowProducer(INTEGERS, [1, 2, 3], offset)


def shared_tensor(lib: Any, x: ArrowProducer) -> Imported:
    """The tensor of an array; not applicable for a library that says that it copies."""
    view = exported(lib.bridge_tensor(x))
    if view.flags & IS_COPIED:
        raise NotApplicable("copies arrays")
    return view


def shared_array(lib: Any, x: Producer) -> ArrowExported:
    """The array of a tensor; not applicable for a library that copies."""
    found = ArrowExported(lib.bridge_array(x))
    equal("values", x.to_list(), found.to_list())
    address = found.array.buffers[1] or 0
    if not x.address <= address < x.address + len(x.content):
        raise NotApplicable("copies tensors")
    return found


def tensor_in_place(lib: Any) -> None:
    x = integers(offset=2)
    view = shared_tensor(lib, x)
    equal("address", x.arrays[0].buffers[-1] + 2 * 4, view.address)


def array_in_place(lib: Any) -> None:
    x = Producer([0, 1, 2, 3], "int32", shape=[3], offset=1)
    found = shared_array(lib, x)
    equal("address", x.address + 4, found.array.buffers[1] + 4 * found.array.offset)


@rule("BR01", "derived", "C data interface, ArrowArray.buffers; dlpack.h, DLTensor.data", "pc")
def same_memory(lib: Library) -> None:
    """A tensor of an array is where its values are, and an array of a tensor too."""
    either(lib, tensor_in_place, array_in_place)


def counts_arrows_offset(lib: Any) -> None:
    for offset in (0, 1, 9):
        x = integers(offset)
        equal(f"elements at offset {offset}", [1, 2, 3], exported(lib.bridge_tensor(x)).to_list())


def counts_offset_of_slices(lib: Any) -> None:
    array = lib.arrow_array(INTEGERS, list(range(10)))
    array = lib.arrow_slice(lib.arrow_slice(array, 2, 7), 3, 3)
    equal("elements of a slice's slice", [5, 6, 7], exported(lib.bridge_tensor(array)).to_list())


def counts_byte_offset(lib: Any) -> None:
    x = Producer([0, 0, 1, 2], "int32", shape=[2], offset=2)
    x.tensor.data, x.tensor.byte_offset = x.address, 8
    try:
        array = lib.bridge_array(x)
    except BufferError as error:
        raise NotApplicable(text(error)) from None
    equal("values", [1, 2], ArrowExported(array).to_list())


@rule(
    "BR02", "derived", "C data interface, ArrowArray.offset; dlpack.h, DLTensor.byte_offset", "pc"
)
def offset_once(lib: Library) -> None:
    """An offset is counted once."""
    either(lib, counts_arrows_offset, counts_offset_of_slices, counts_byte_offset)


def tensor_or_refusal(lib: Any, x: ArrowProducer) -> Imported | None:
    """None if the library refuses the array, or its tensor."""
    try:
        return exported(lib.bridge_tensor(x))
    except (NotApplicable, SystemError):
        raise
    except Exception:
        return None


@rule("BR03", "derived", "C data interface, ArrowArray.null_count; dlpack.h has no nulls", "p")
def nulls_never_lost(lib: Library) -> None:
    """An array with nulls is no tensor unless it is said what becomes of them."""
    for null_count, offset in ((1, 0), (-1, 0), (-1, 2)):
        x = ArrowProducer(INTEGERS, [1, None, 3], offset)
        x.array.fields["null_count"] = null_count
        view = tensor_or_refusal(lib, x)
        if view is not None:
            raise Broken(f"a refusal of [1, None, 3] with null_count {null_count}", view.to_list())
    rows = Field("+w:2", children=(Field("i", "item"),))
    for values in ([[1, 2], None], [[1, 2], [None, 4]]):
        view = tensor_or_refusal(lib, ArrowProducer(rows, values))
        if view is not None:
            raise Broken(f"a refusal of {values}", view.to_list())
    whole = integers(offset=1)
    whole.array.fields["null_count"] = -1
    view = tensor_or_refusal(lib, whole)
    if view is not None:
        equal("elements with null_count -1 and no nulls", [1, 2, 3], view.to_list())


@rule("BR04", "should", "C data interface, Mutability; dlpack.h, READ_ONLY", "p")
def readonly(lib: Library) -> None:
    """The tensor of an array, which is immutable, says READ_ONLY, unless it is a copy."""
    view = exported_versioned(lib.bridge_tensor(integers()))
    if not view.flags & (READ_ONLY | IS_COPIED):
        raise Broken("READ_ONLY", f"flags {view.flags}")


def far_bytes() -> bytes:
    return struct.pack("3i", *FAR_COLUMN)


@rule("BR05", "must", "C device data interface, sync_event; array API, __dlpack__, stream", "p")
def event_to_stream(lib: Library) -> None:
    """An array's event becomes a wait of the consumer's stream, not of the host."""
    not_run_here(lib, "bridge_far_tensor")
    device, stream = Accelerator(), 7
    tensor = lib.bridge_far_tensor(device, FarArray(device, FAR_COLUMN))
    view = exported(tensor, stream=stream)
    equal("waits of the host", 0, device.count("synchronize"))
    found = device.read(view.address, stream)
    device.synchronize(stream)
    equal("what the stream reads", far_bytes(), bytes(found))
    equal("faults in the use of the device", [], device.misuse)


@rule("BR06", "must", "C device data interface, Synchronization", "p")
def stream_to_event(lib: Library) -> None:
    """The array of a tensor has an event, or none if no work on it is pending."""
    not_run_here(lib, "bridge_far_array")
    device, stream = Accelerator(), 7
    array = lib.bridge_far_array(device, FarTensor(device, FAR_COLUMN))
    found = device_structure(array.__arrow_c_device_array__())
    event = handle_at(found.sync_event)
    if event is None and device.pending():
        raise Broken("an event, since work is pending", "NULL")
    if event is not None:
        device.wait_for(stream, event)
    content = device.read(found.array.buffers[1], stream)
    device.synchronize(stream)
    equal("what a stream reads after the event", far_bytes(), bytes(content))
    equal("faults in the use of the device", [], device.misuse)


def release_waits_for_deleter(lib: Any) -> None:
    x = integers()
    tensor = lib.bridge_tensor(x)
    first, second = shared_tensor_of(tensor), shared_tensor_of(tensor)
    del tensor
    if first.address != x.arrays[0].buffers[-1]:
        raise NotApplicable("copies arrays")
    first.delete()
    gc.collect()
    equal("releases with a tensor left", [], x.arrays[0].calls)
    equal("its elements", [1, 2, 3], second.to_list())
    second.delete()
    gc.collect()
    equal("releases after the last deleter", 1, len(x.arrays[0].calls))


def shared_tensor_of(tensor: Any) -> Imported:
    view = exported(tensor)
    if view.flags & IS_COPIED:
        raise NotApplicable("copies arrays")
    view.take()
    return view


def deleter_waits_for_release(lib: Any) -> None:
    x = Producer([1, 2, 3], "int32")
    first, second = two_arrays(lib, x)
    gc.collect()
    release(first)
    gc.collect()
    equal("deletions with an array left", [], x.deleted)
    release(second)
    gc.collect()
    equal("deletions after the last release", 1, len(x.deleted))


def two_arrays(lib: Any, x: Producer) -> list[ArrowArray]:
    """Moved out of their capsules; only they are left."""
    array = lib.bridge_array(x)
    found = [ArrowExported(array) for _ in range(2)]
    for one in found:
        if not x.address <= (one.array.buffers[1] or 0) < x.address + len(x.content):
            raise NotApplicable("copies tensors")
    return [move(one.array) for one in found]


@rule("BR07", "derived", "C data interface, Memory management; dlpack.h, deleter", "pc")
def release_after_deleter(lib: Library) -> None:
    """An array is released after the last tensor of it is deleted, and the other way round."""
    either(lib, release_waits_for_deleter, deleter_waits_for_release)


def tensor_has_zero(lib: Any) -> None:
    device = tuple(lib.bridge_tensor(integers()).__dlpack_device__())
    equal("device of the tensor of an array on the CPU", (CPU, 0), device)


def array_has_minus_one(lib: Any) -> None:
    array = lib.bridge_array(Producer([1, 2, 3], "int32"))
    if not hasattr(array, "__arrow_c_device_array__"):
        raise NotApplicable("no device method")
    found = device_structure(array.__arrow_c_device_array__())
    equal(
        "device of the array of a tensor on the CPU",
        (CPU, -1),
        (found.device_type, found.device_id),
    )


def far_tensor_has_the_same(lib: Any) -> None:
    device = Accelerator()
    tensor = lib.bridge_far_tensor(device, FarArray(device, FAR_COLUMN))
    view = exported(tensor, stream=-1)
    for found in (tuple(tensor.__dlpack_device__()), view.device):
        equal("device of the tensor of an array on device 0", (CUDA, 0), found)


def far_array_has_the_same(lib: Any) -> None:
    device = Accelerator()
    array = lib.bridge_far_array(device, FarTensor(device, FAR_COLUMN))
    found = device_structure(array.__arrow_c_device_array__())
    equal(
        "device of the array of a tensor on device 0",
        (CUDA, 0),
        (found.device_type, found.device_id),
    )


@rule("BR08", "derived", "C device data interface, device_id; dlpack.h, DLDevice.device_id", "pc")
def device_ids(lib: Library) -> None:
    """The CPU is number 0 for DLPack and -1 for Arrow, on the objects of a bridge; other devices
    have one number.
    """
    either(
        lib,
        tensor_has_zero,
        array_has_minus_one,
        far_tensor_has_the_same,
        far_array_has_the_same,
    )


@rule("BR09", "derived", "Columnar format, Boolean; dlpack.h, kDLBool, IS_COPIED", "p")
def bool_(lib: Library) -> None:
    """Arrow's bits become bytes by a copy, which the tensor says."""
    values = [True, False, True, True]
    view = tensor_or_refusal(lib, ArrowProducer(Field("b"), values))
    if view is None:
        return
    equal("elements", values, view.to_list())
    if view.versioned and not view.flags & IS_COPIED:
        raise Broken("IS_COPIED", f"flags {view.flags}")


def on_c_thread(function: int, argument: int) -> None:
    """Calls it on a thread that Python does not know, without the GIL."""
    thread = ctypes.c_void_p()
    address = ctypes.c_void_p(function), ctypes.c_void_p(argument)
    equal(
        "result of pthread_create",
        0,
        c_library().pthread_create(ctypes.byref(thread), None, *address),
    )
    c_library().pthread_join(thread, None)


def deletes_on_c_thread(lib: Any) -> None:
    x = integers()
    view = shared_tensor_of(lib.bridge_tensor(x))
    gc.collect()
    on_c_thread(view.managed.deleter, view.managed_address)
    gc.collect()
    equal("releases", 1, len(x.arrays[0].calls))


def releases_on_c_thread(lib: Any) -> None:
    x = Producer([1, 2, 3], "int32")
    for array in two_arrays(lib, x):
        on_c_thread(array.release, ctypes.addressof(array))
    gc.collect()
    equal("deletions", 1, len(x.deleted))


@rule(
    "BR10",
    "derived",
    "Python specification, Implementation (GIL); C data interface",
    "pc",
    fresh=True,
)
def gil(lib: Library) -> None:
    """A deleter and a release can be called on any thread, without the GIL.

    Those of the kit, which they call, take it.
    """
    either(lib, deletes_on_c_thread, releases_on_c_thread)
