"""AR5xx: devices.

A rule that needs a device with streams runs against the kit's own producer and consumer of arrays
on a simulated one (kit/accelerator.py); what of a library would need a real one is not run here.
AR530, that the interface is experimental, and AR531, the asynchronous stream, are no checks.
"""

import ctypes
import gc
from typing import Any

from dlpack_conformance.abi.arrow import ARROW_DEVICE_ARRAY, ArrowArray, ArrowDeviceArray
from dlpack_conformance.abi.capsule import PyCapsule_GetPointer
from dlpack_conformance.abi.dlpack import CPU, CUDA
from dlpack_conformance.kit.accelerator import Accelerator, handle_at
from dlpack_conformance.kit.arrow_consumer import ArrowExported, release
from dlpack_conformance.kit.arrow_device import DeviceProducer, dirty_heap
from dlpack_conformance.kit.arrow_far import FAR_VALUES, FarArray, not_run_here
from dlpack_conformance.kit.arrow_field import Field
from dlpack_conformance.kit.arrow_producer import ArrowProducer
from dlpack_conformance.kit.arrow_reader import moved, opened
from dlpack_conformance.kit.arrow_stream import ArrowStream, DeviceStream
from dlpack_conformance.kit.judge import either, equal, text
from dlpack_conformance.kit.memory import unreadable
from dlpack_conformance.kit.producer import Producer
from dlpack_conformance.library import Library
from dlpack_conformance.rule import Broken, NotApplicable, Report, rule
from dlpack_conformance.rules.stream import (
    BATCHES,
    CHUNKS,
    callbacks,
    chunks_outlive_stream,
    end_is_released,
    last_error_lifetime,
    last_error_may_be_null,
    last_error_only_after_error,
    last_error_said,
    moved_stream,
    not_on_released,
    one_schema,
    out_uninitialised,
    release_stream_once,
    serialised,
    zero_is_success,
)

INTEGERS, VALUES = Field("i"), [1, None, 3]
FAR_ROWS = [{"a": value} for value in FAR_VALUES]


def device_methods(lib: Any) -> list[Any]:
    """The bound methods of the library's objects, on the CPU."""
    array = lib.arrow_device_array(INTEGERS, VALUES)
    methods = [array.__arrow_c_device_array__]
    if hasattr(lib, "arrow_device_stream"):
        streams = lib.arrow_device_stream(BATCHES, CHUNKS)
        methods.append(streams.__arrow_c_device_stream__)
    return methods


def device_structure(capsules: Any) -> Any:
    """In the capsule, which goes on to own it."""
    address = PyCapsule_GetPointer(capsules[1], ARROW_DEVICE_ARRAY)
    structure = ArrowDeviceArray.from_address(address)
    structure.capsules = capsules  # which live as long
    return structure


def taken_device(lib: Any, x: DeviceProducer) -> Any:
    """What the library makes of an array on the CPU that has the device method only."""
    array = lib.arrow_take_device(x)
    equal("values", x.values, lib.arrow_to_list(array))
    return array


@rule("AR501", "should", "PyCapsule interface, Device Support", "p")
def device_method_kwargs(lib: Library) -> None:
    """The device methods take keywords that they do not know if their value is None."""
    for method in device_methods(lib):
        method(None, a_keyword_of_the_future=None)


@rule("AR502", "must", "PyCapsule interface, Device Support (is responsible for)", "p")
def device_method_notimplemented(lib: Library) -> None:
    """The device methods raise NotImplementedError for keywords that they do not know."""
    for method in device_methods(lib):
        try:
            method(a_keyword_of_the_future=1)
        except NotImplementedError:
            continue
        except Exception as error:
            raise Broken("NotImplementedError", text(error)) from None
        raise Broken("NotImplementedError", "a result as if there were no keyword")


@rule("AR503", "must", "PyCapsule interface, Device Support (implies CPU-only data)", "c")
def cpu_without_device(lib: Library) -> None:
    """What has no device method is data on the CPU."""
    x = ArrowProducer(INTEGERS, VALUES)
    equal("values", VALUES, lib.arrow_to_list(lib.arrow_take(x)))


@rule("AR504", "should", "PyCapsule interface, Device Support (encouraged)", "c")
def consumer_takes_both(lib: Library) -> None:
    """A consumer of data on the CPU takes it by the device method too."""
    x = DeviceProducer(INTEGERS, VALUES)
    equal("values", VALUES, lib.arrow_to_list(lib.arrow_take(x)))


@rule("AR505", "should", "PyCapsule interface, Device Support (recommended)", "p")
def device_only_producer(lib: Library) -> None:
    """Data that can only be elsewhere have the device methods only."""
    not_run_here(lib, "arrow_far_array")
    x = lib.arrow_far_array(Accelerator(), FAR_VALUES)
    found = [name for name in ("__arrow_c_array__", "__arrow_c_stream__") if hasattr(x, name)]
    equal("methods for the CPU", [], found)


@rule("AR506", "should", "PyCapsule interface, Device Support (guaranteed)", "p")
def cpu_method_is_cpu(lib: Library) -> None:
    """The methods for the CPU give addresses that the CPU can read, or raise."""
    not_run_here(lib, "arrow_far_array")
    x = lib.arrow_far_array(Accelerator(), FAR_VALUES)
    if not hasattr(x, "__arrow_c_array__"):
        raise NotApplicable("no method for the CPU")
    try:
        found = ArrowExported(x)
    except Exception:
        return
    equal("values", FAR_ROWS, found.to_list())


@rule("AR507", "should", "PyCapsule interface, Device Support (expected)", "p")
def no_cross_copy(lib: Library) -> None:
    """A device structure is made without a copy from one device to another."""
    device, x = far(lib)
    before = device.count("copy"), device.count("read")
    x.__arrow_c_device_array__()
    equal("copies", before, (device.count("copy"), device.count("read")))


def far(lib: Any) -> tuple[Accelerator, Any]:
    """A device, and the library's array on it, which is not ready yet."""
    not_run_here(lib, "arrow_far_array")
    device = Accelerator()
    return device, lib.arrow_far_array(device, FAR_VALUES)


@rule("AR508", "must", "C device data interface, ArrowDeviceType; device_type", "p")
def device_type(lib: Library) -> None:
    """device_type is the number that DLPack has for the device."""
    either(lib, has_type_of_cpu, has_type_of_far)


def has_type_of_cpu(lib: Any) -> None:
    array = lib.arrow_device_array(INTEGERS, VALUES)
    found = device_structure(array.__arrow_c_device_array__())
    equal("device_type of an array on the CPU", CPU, found.device_type)
    if hasattr(array, "__dlpack_device__"):
        equal("device_type", array.__dlpack_device__()[0], found.device_type)


def has_type_of_far(lib: Any) -> None:
    _device, x = far(lib)
    found = device_structure(x.__arrow_c_device_array__())
    equal("device_type of an array on the device", CUDA, found.device_type)


def gives_minus_one(lib: Any) -> None:
    array = lib.arrow_device_array(INTEGERS, VALUES)
    found = device_structure(array.__arrow_c_device_array__())
    equal("device_id of an array on the CPU", -1, found.device_id)


def takes_ids_of_cpu(lib: Any) -> None:
    for number in (-1, 0):
        taken_device(lib, DeviceProducer(INTEGERS, VALUES, device_id=number))


@rule("AR509", "should", "C device data interface, device_id (recommended)", "pc")
def device_id(lib: Library) -> None:
    """device_id is -1 where devices have no numbers, as the CPU; a consumer takes 0 too."""
    either(lib, gives_minus_one, takes_ids_of_cpu)


@rule("AR510", "derived", "C device data interface, device_id; dlpack.h, DLDevice.device_id", "p")
def device_id_to_dlpack(lib: Library) -> None:
    """An object on the CPU with both protocols has device_id -1 in Arrow's and 0 in DLPack's."""
    either(lib, array_says_both, tensor_of_array_says_zero, array_of_tensor_says_minus_one)


def array_says_both(lib: Any) -> None:
    says_both(lib.arrow_device_array(INTEGERS, VALUES))


def says_both(x: Any) -> None:
    if not hasattr(x, "__dlpack_device__") or not hasattr(x, "__arrow_c_device_array__"):
        raise NotApplicable("no object has both protocols")
    equal("device of DLPack", (CPU, 0), tuple(x.__dlpack_device__()))
    equal("device_id", -1, device_structure(x.__arrow_c_device_array__()).device_id)


def tensor_of_array_says_zero(lib: Any) -> None:
    tensor = lib.bridge_tensor(ArrowProducer(INTEGERS, [1, 2, 3]))
    equal("device of DLPack", (CPU, 0), tuple(tensor.__dlpack_device__()))


def array_of_tensor_says_minus_one(lib: Any) -> None:
    says_both(lib.bridge_array(Producer([1, 2, 3], "int32")))


@rule("AR511", "must", "C device data interface, reserved (MUST be zero'd out)", "p")
def reserved_zero(lib: Library) -> None:
    """The reserved bytes are zero."""
    for length in range(1, 9):
        # What malloc gives next was written to.
        dirty_heap()
        array = lib.arrow_device_array(INTEGERS, list(range(length)))
        dirty_heap()
        found = device_structure(array.__arrow_c_device_array__())
        equal("reserved", [0, 0, 0], list(found.reserved))
    for found in chunks_of(lib):
        equal("reserved of a chunk", [0, 0, 0], list(found.reserved))
    if hasattr(lib, "arrow_far_array"):
        found = device_structure(far(lib)[1].__arrow_c_device_array__())
        equal("reserved of an array on the device", [0, 0, 0], list(found.reserved))


def chunks_of(lib: Any) -> list[Any]:
    """Those of a device stream of the library, if it has such."""
    if not hasattr(lib, "arrow_device_stream"):
        return []
    return opened(DeviceMethod(lib.arrow_device_stream(BATCHES, CHUNKS))).chunks()


@rule("AR512", "silent", "C device data interface, reserved", "c")
def reserved_nonzero_read(lib: Library) -> Report:
    """What a consumer does if the reserved bytes are not zero."""
    return outcome(lib, DeviceProducer(INTEGERS, VALUES, reserved=1))


def outcome(lib: Any, x: DeviceProducer) -> Report:
    try:
        array = lib.arrow_take_device(x)
    except NotApplicable:
        raise
    except Exception as error:
        return Report(f"refused: {text(error)}")
    equal("values", x.values, lib.arrow_to_list(array))
    return Report("taken")


@rule("AR513", "must", "C device data interface, Synchronization", "p")
def event_null_is_ready(lib: Library) -> None:
    """Without an event the data can be read at once."""
    device, x = far(lib)
    if device_structure(x.__arrow_c_device_array__()).sync_event is None and device.pending():
        raise Broken("an event, since work is pending", "NULL")


@rule("AR514", "should", "C device data interface, Synchronization event types", "p")
def event_null_on_host_types(lib: Library) -> None:
    """The CPU has no events: sync_event is NULL."""
    array = lib.arrow_device_array(INTEGERS, VALUES)
    equal("sync_event", None, device_structure(array.__arrow_c_device_array__()).sync_event)
    equal("events of chunks", [], [c.sync_event for c in chunks_of(lib) if c.sync_event])


@rule("AR515", "silent", "C device data interface, Synchronization event types", "c")
def event_on_cpu_received(lib: Library) -> Report:
    """What a consumer does with an event of an array on the CPU."""
    return outcome(lib, DeviceProducer(INTEGERS, VALUES, sync_event=unreadable()))


@rule("AR516", "must", "C device data interface, Synchronization event types", "p")
def event_is_pointer_to_event(lib: Library) -> None:
    """sync_event is the address of an event."""
    device, x = far(lib)
    address = device_structure(x.__arrow_c_device_array__()).sync_event
    if address in device.events:
        raise Broken("the address of an event", "the event")
    if address is not None and handle_at(address) not in device.events:
        raise Broken(f"the address of an event: {list(device.events)}", handle_at(address))


def fetched(lib: Any) -> tuple[Accelerator, FarArray, Any]:
    """A device, the kit's array on it, which is not ready yet, and what the library makes of it."""
    not_run_here(lib, "arrow_take_far")
    device = Accelerator()
    x = FarArray(device)
    return device, x, lib.arrow_take_far(device, x)


def misused(device: Accelerator) -> None:
    equal("faults in the use of the device", [], device.misuse)


@rule("AR517", "must", "C device data interface, sync_event", "c")
def event_waited(lib: Library) -> None:
    """A consumer waits for the event before it reads."""
    device, _x, array = fetched(lib)
    equal("values", FAR_ROWS, lib.arrow_to_list(array))
    misused(device)


def far_content(device: Accelerator, structure: Any, stream: int = 7) -> list[bytes]:
    """Of the column's buffers, after a wait for the event alone."""
    event = handle_at(structure.sync_event)
    if event is not None:
        device.wait_for(stream, event)
    child = ArrowArray.from_address(structure.array.children[0])
    found = [device.read(address, stream) for address in child.buffers[:2]]
    device.synchronize(stream)
    return [bytes(content) for content in found]


def far_expected() -> list[bytes]:
    return [b"\x05", b"".join((v or 0).to_bytes(4, "little") for v in FAR_VALUES)]


@rule("AR518", "must", "C device data interface, sync_event", "p")
def event_after_data(lib: Library) -> None:
    """The data are there when the event is triggered."""
    device, x = far(lib)
    found = device_structure(x.__arrow_c_device_array__())
    equal("buffers", far_expected(), far_content(device, found))


def release_destroys_event(lib: Any) -> None:
    device, x = far(lib)
    found = moved(device_structure(x.__arrow_c_device_array__()))
    equal("events destroyed before the release", 0, device.count("destroy"))
    release(found.array)
    equal("events destroyed by the release", device.count("create"), device.count("destroy"))
    misused(device)


def consumer_leaves_event(lib: Any) -> None:
    device, x, array = fetched(lib)
    equal("values", FAR_ROWS, lib.arrow_to_list(array))
    del array
    gc.collect()
    equal("releases", [1], [export.releases for export in x.exports])
    equal("events destroyed", 1, device.count("destroy"))
    misused(device)


@rule("AR519", "must", "C device data interface, Memory management", "pc")
def event_owner(lib: Library) -> None:
    """The event is the producer's: its release destroys it, not the consumer."""
    either(lib, release_destroys_event, consumer_leaves_event)


@rule("AR520", "derived", "C device data interface, Memory management; Moving an array", "p")
def event_valid_until_release(lib: Library) -> None:
    """The event is valid until the release, of a moved structure too."""
    device, x = far(lib)
    found = moved(device_structure(x.__arrow_c_device_array__()))
    x.__arrow_c_device_array__()  # which has an event too
    gc.collect()
    equal("buffers", far_expected(), far_content(device, found))
    release(found.array)
    misused(device)


@rule("AR521", "must", "C device data interface, Memory management (data lifetime)", "c")
def wait_before_release(lib: Library) -> None:
    """Nothing is released that the consumer's work is still to read."""
    device, _x, array = fetched(lib)
    del array
    gc.collect()
    for stream in list(device.work):
        device.synchronize(stream)
    misused(device)


@rule("AR522", "should", "C device data interface, ArrowDeviceArray.array", "p")
def host_fields(lib: Library) -> None:
    """Everything but the buffers can be read by the CPU."""
    _device, x = far(lib)
    array = device_structure(x.__arrow_c_device_array__()).array
    child = ArrowArray.from_address(array.children[0])
    equal("length, children", (len(FAR_VALUES), 1), (array.length, array.n_children))
    equal("length, buffers of the child", (len(FAR_VALUES), 2), (child.length, child.n_buffers))
    equal("addresses in the list of buffers", 2, len(child.buffers[:2]))


def has_device_buffers(lib: Any) -> None:
    device, x = far(lib)
    child = ArrowArray.from_address(
        device_structure(x.__arrow_c_device_array__()).array.children[0]
    )
    elsewhere = [address for address in child.buffers[:2] if address not in device.content]
    equal("buffers that are not on the device", [], elsewhere)


def touches_no_buffer(lib: Any) -> None:
    # The host that reads one ends the process.
    device, _x, array = fetched(lib)
    equal("values", FAR_ROWS, lib.arrow_to_list(array))
    misused(device)


@rule("AR523", "must", "C device data interface, ArrowDeviceArray.array; Memory management", "pc")
def buffers_on_device(lib: Library) -> None:
    """The buffers are on the device, those of children and bitmaps too."""
    either(lib, has_device_buffers, touches_no_buffer)


def releases_by_array(lib: Any) -> None:
    array = lib.arrow_device_array(INTEGERS, VALUES)
    found = device_structure(array.__arrow_c_device_array__())
    if not found.array.release:
        raise Broken("a release in the array within", "NULL")
    alone = ArrowDeviceArray()
    ctypes.memset(ctypes.addressof(alone), 0xAA, ctypes.sizeof(alone))
    alone.array = moved(found.array)  # and nothing else
    release(alone.array)
    equal("release afterwards", None, alone.array.release)


def calls_release_of_array(lib: Any) -> None:
    x = DeviceProducer(INTEGERS, VALUES)
    taken_device(lib, x)
    gc.collect()
    # A capsule that was left to its destructor is released by it.
    equal("releases", [1], [made.releases() for made in x.of.arrays])


@rule("AR524", "must", "C device data interface, ArrowDeviceArray.array", "pc")
def release_embedded(lib: Library) -> None:
    """The release is that of the array within."""
    either(lib, releases_by_array, calls_release_of_array)


@rule("AR525", "must", "C device data interface, Moving an array", "c")
def move_device(lib: Library) -> None:
    """What moves a device array sets the release of the array within to NULL."""
    either(lib, leaves_null_of_cpu, leaves_null_of_far)


def leaves_null_of_far(lib: Any) -> None:
    _device, x, array = fetched(lib)
    del array
    gc.collect()
    for export in x.exports:
        if export.releases and export.structure.array.release:
            raise Broken("release NULL in the capsule of an array that was released", "not NULL")


def leaves_null_of_cpu(lib: Any) -> None:
    x = DeviceProducer(INTEGERS, VALUES)
    taken_device(lib, x)
    gc.collect()
    for made, structure in zip(x.of.arrays, x.structures, strict=True):
        # What was not moved is left to its capsule.
        if made.calls and structure.array.release:
            raise Broken("release NULL in the capsule of an array that was released", "not NULL")


@rule("AR526", "should", "C device data interface, Mutability", "c")
def immutable_device(lib: Library) -> None:
    """The data are not changed."""
    x = DeviceProducer(INTEGERS, VALUES)
    taken_device(lib, x)
    gc.collect()
    for made in x.of.arrays:
        equal("what was changed before its release", [], made.changes)


class DeviceMethod:
    """The one method of an object that may have another too."""

    def __init__(self, x: Any) -> None:
        self.x = x

    def __arrow_c_device_stream__(self) -> Any:
        return self.x.__arrow_c_device_stream__()


class DeviceStreams:
    """The library with device streams in the place of those of the CPU."""

    def __init__(self, lib: Any) -> None:
        self.lib = lib

    def arrow_stream(self, field: Field, chunks: Any) -> Any:
        lib = self.lib
        return DeviceMethod(lib.arrow_device_stream(field, chunks))

    def arrow_failing_stream(self, field: Field, chunks: Any, message: str) -> Any:
        lib = self.lib
        return DeviceMethod(lib.arrow_failing_device_stream(field, chunks, message))

    def arrow_take_stream(self, x: ArrowStream) -> Any:
        lib = self.lib
        return lib.arrow_take_device_stream(DeviceStream(x))

    def arrow_to_list(self, array: Any) -> Any:
        lib = self.lib
        return lib.arrow_to_list(array)


@rule("AR527", "should", "C device data interface, Device Stream Interface (expected)", "p")
def stream_device_type(lib: Library) -> None:
    """A device stream says its device type, and all its chunks have it."""
    reader = opened(DeviceStreams(lib).arrow_stream(BATCHES, CHUNKS))
    equal("device_type of the stream", CPU, reader.structure.device_type)
    found = [chunk.device_type for chunk in reader.chunks()]
    equal("device types of the chunks", [CPU] * len(CHUNKS), found)


@rule("AR528", "must", "C device data interface, Device Stream Interface", "pc")
def stream_device_errors(lib: Library) -> None:
    """What AR301 to AR316 say of streams holds for device streams."""
    either(
        DeviceStreams(lib),
        callbacks,
        one_schema,
        zero_is_success,
        end_is_released,
        out_uninitialised,
        last_error_only_after_error,
        last_error_may_be_null,
        last_error_lifetime,
        last_error_said,
        not_on_released,
        chunks_outlive_stream,
        release_stream_once,
        serialised,
        moved_stream,
    )


@rule("AR529", "silent", "C device data interface, Synchronization event types, note 2", "p")
def ext_dev_documented(lib: Library) -> Report:
    """The type of the events of an extension device is documented."""
    raise NotApplicable("not run here: to be read in the documentation")
