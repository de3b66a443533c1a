"""AR5xx, devices."""

import copy
import ctypes
import errno
from ctypes import addressof, c_void_p

from dlpack_conformance.abi.arrow import (
    ARROW_ARRAY,
    ARROW_DEVICE_ARRAY,
    RELEASE,
    ArrowArray,
    ArrowDeviceArray,
    ArrowSchema,
)
from dlpack_conformance.abi.capsule import PyCapsule_GetPointer, PyCapsule_New, take_exception_away
from dlpack_conformance.abi.dlpack import CPU, CUDA
from dlpack_conformance.hooks import kit_reference as hooks
from dlpack_conformance.kit import reference_arrow, reference_bridge
from dlpack_conformance.kit.accelerator import handle_at
from dlpack_conformance.kit.arrow_consumer import release
from dlpack_conformance.kit.arrow_far import CONSUMERS_STREAM, PRODUCERS_STREAM, FarArray, Fetched
from dlpack_conformance.kit.memory import aligned, unreadable
from dlpack_conformance.kit.reference_arrow import Data, DeviceChunks, Reader, Source, Taken

from mutants import alike, crash, decorator, mutant
from mutants.planting import (
    around,
    device_arrays,
    device_streams,
    instead_of,
    readers,
)

KEPT = []

far_arrays = instead_of(hooks, "FarArray")
fetches = instead_of(hooks, "Fetched")


@decorator
def far_exports(change):
    """The function changes each export of a library's array on the simulated device."""

    class Planted(FarArray):
        def __arrow_c_device_array__(self, requested_schema=None, **keywords):
            pair = super().__arrow_c_device_array__(requested_schema, **keywords)
            change(self.exports[-1])
            return pair

    hooks.FarArray = Planted


@decorator
def device_exports(change):
    """The function changes each ArrowDeviceArray of a library's array on the CPU."""

    class Planted(Data):
        def __arrow_c_device_array__(self, requested_schema=None, **keywords):
            pair = super().__arrow_c_device_array__(requested_schema, **keywords)
            address = PyCapsule_GetPointer(pair[1], ARROW_DEVICE_ARRAY)
            change(ArrowDeviceArray.from_address(address))
            return pair

    hooks.arrow_device_array = Planted


@decorator
def device_chunks(change):
    """The function changes each chunk of a library's device stream."""
    get = Source.get_next

    def planted(self, stream, out):
        code = get(self, stream, out)
        if not code and self.kind is not reference_arrow.ArrowArrayStream:
            array = ArrowDeviceArray.from_address(out)
            if array.array.release:
                change(array)
        return code

    Source.get_next = planted


@decorator
def device_seen(change):
    """The function judges or changes what the consumer is going to take from a device's capsule."""
    live = reference_arrow.live

    def planted(kind, capsule, name):
        structure = live(kind, capsule, name)
        if kind is ArrowDeviceArray:
            change(structure)
        return structure

    reference_arrow.live = planted


# Methods


@device_arrays("AR501")
class UnknownKeywordsAreNotTaken(Data):
    def __arrow_c_device_array__(self, requested_schema=None, **keywords):
        if keywords:
            raise NotImplementedError("keywords that are not known")
        return super().__arrow_c_device_array__(requested_schema)


@device_streams("AR501")
class UnknownKeywordsOfAStreamAreNotTaken(DeviceChunks):
    def __arrow_c_device_stream__(self, requested_schema=None, **keywords):
        if keywords:
            raise NotImplementedError("keywords that are not known")
        return super().__arrow_c_device_stream__(requested_schema)


@device_arrays("AR501", AR502="a TypeError too")
class DeviceMethodHasNoKeywords(Data):
    def __arrow_c_device_array__(self, requested_schema=None):
        return super().__arrow_c_device_array__(requested_schema)


@device_arrays("AR502")
class UnknownKeywordsAreIgnored(Data):
    def __arrow_c_device_array__(self, requested_schema=None, **_keywords):
        return super().__arrow_c_device_array__(requested_schema)


@device_arrays("AR502")
class UnknownKeywordsAreATypeError(Data):
    def __arrow_c_device_array__(self, requested_schema=None, **keywords):
        try:
            return super().__arrow_c_device_array__(requested_schema, **keywords)
        except NotImplementedError as error:
            raise TypeError(str(error)) from None


@device_streams("AR502")
class UnknownKeywordsOfAStreamAreIgnored(DeviceChunks):
    def __arrow_c_device_stream__(self, requested_schema=None, **_keywords):
        return super().__arrow_c_device_stream__(requested_schema)


@around(hooks, "take_array")(
    "AR503", **alike("AR104 AR233 AR405 AR406 AR424 AR425", "it takes none")
)
def array_without_the_device_method_is_refused(right, x):
    if not hasattr(x, "__arrow_c_device_array__"):
        raise TypeError("the device is not known")
    return right(x)


@around(hooks, "take_array")("AR504")
def array_without_the_cpu_method_is_refused(right, x):
    if not hasattr(x, "__arrow_c_array__"):
        raise TypeError("there is no __arrow_c_array__")
    return right(x)


@far_arrays("AR505")
class CpuMethodRaises(FarArray):
    def __arrow_c_array__(self, requested_schema=None):
        raise ValueError("the data are on a device")


@far_arrays("AR506", AR505="it has the method")
class CpuMethodGivesAddressesOfTheDevice(FarArray):
    def __arrow_c_array__(self, requested_schema=None):
        schema, capsule = self.__arrow_c_device_array__()
        address = PyCapsule_GetPointer(capsule, ARROW_DEVICE_ARRAY)
        KEPT.append(capsule)
        return schema, PyCapsule_New(address, ARROW_ARRAY, None)


@far_arrays("AR507")
class EachExportIsACopy(FarArray):
    def __arrow_c_device_array__(self, requested_schema=None, **keywords):
        copied = FarArray(self.device, self.values)
        pair = copied.__arrow_c_device_array__(requested_schema, **keywords)
        self.exports += copied.exports
        return pair


# What the structure says


@device_exports("AR508", AR422="the same fault")
def device_type_of_the_cpu_is_0(structure):
    structure.device_type = 0


@far_exports("AR508")
def device_type_is_that_of_pinned_memory(export):
    export.structure.device_type = 3


@far_exports("AR508")
def device_type_of_a_device_is_the_cpus(export):
    export.structure.device_type = CPU


@device_exports("AR509")
def device_id_of_the_cpu_is_0(structure):
    structure.device_id = 0


@device_exports("AR509")
def device_id_of_the_cpu_is_minus_1_of_32_bits(structure):
    structure.device_id = 0xFFFFFFFF


@device_seen("AR509")
def device_id_0_of_the_cpu_is_refused(structure):
    if structure.device_id != -1:
        raise ValueError(f"the CPU has no number {structure.device_id}")


@device_seen("AR509", **alike("AR504 AR524 AR525 AR526", "it takes none"))
def device_id_minus_1_is_refused(structure):
    if structure.device_id < 0:
        raise ValueError("device_id is negative")


@mutant("AR510", BR08="the same on bridges")
def tensor_of_the_host_has_device_id_minus_1():
    right = hooks.bridge_tensor

    def planted(x):
        tensor = right(x)
        tensor.device = (CPU, -1)
        return tensor

    hooks.bridge_tensor = planted


@mutant("AR510", BR08="the same on bridges")
def array_of_the_host_has_device_id_0():
    right = reference_bridge.capsule_of

    def planted(structure, name):
        if name == ARROW_DEVICE_ARRAY:
            structure.device_id = 0
        return right(structure, name)

    reference_bridge.capsule_of = planted


@device_exports("AR511")
def reserved_bytes_are_not_set(structure):
    structure.reserved[:] = [0x55555555] * 3


@device_exports("AR511")
def last_reserved_byte_is_not_zero(structure):
    structure.reserved[2] = 1 << 62


@device_chunks("AR511")
def reserved_bytes_of_chunks_are_not_set(structure):
    structure.reserved[:] = [0x55555555] * 3


@far_exports("AR511")
def reserved_bytes_on_a_device_are_not_set(export):
    export.structure.reserved[1] = 1


# Events


@far_exports("AR513", **alike("AR518 AR520", "nothing to wait for"))
def event_is_null_while_work_is_pending(export):
    export.structure.sync_event = None


@device_exports("AR514")
def cpu_has_an_event(structure):
    structure.sync_event = aligned(bytes(8))


@device_chunks("AR514")
def cpu_has_events_of_chunks(structure):
    structure.sync_event = aligned(bytes(8))


@far_exports("AR516", **alike("AR518 AR520", "nothing to wait for"))
def event_is_the_handle_itself(export):
    export.structure.sync_event = export.event


@far_exports("AR516", **alike("AR518 AR520", "nothing to wait for"))
def event_is_a_pointer_to_a_pointer(export):
    KEPT.append(c_void_p(addressof(export.handle)))
    export.structure.sync_event = addressof(KEPT[-1])


@fetches("AR517", **alike("AR519 AR523", "poison is read"))
class EventIsNotWaitedFor(Fetched):
    def read(self):
        self.structure.sync_event = None
        super().read()


@fetches("AR517", **alike("AR519 AR523", "poison is read"))
class EventIsWaitedForAfterTheRead(Fetched):
    def read(self):
        event, self.structure.sync_event = self.structure.sync_event, None
        super().read()
        self.device.wait_for(CONSUMERS_STREAM, handle_at(event))


@fetches("AR517", **alike("AR519 AR523", "poison is read"))
class EventIsWaitedForOnAnotherStream(Fetched):
    def read(self):
        event, self.structure.sync_event = self.structure.sync_event, None
        self.device.wait_for(CONSUMERS_STREAM + 1, handle_at(event))
        super().read()


@far_arrays("AR518", **alike("AR519 AR520", "poison is read"))
class EventIsRecordedBeforeTheData(FarArray):
    def __init__(self, device, values):
        self.early = device.create_event()
        device.record(self.early, PRODUCERS_STREAM)
        super().__init__(device, values)

    def __arrow_c_device_array__(self, requested_schema=None, **keywords):
        pair = super().__arrow_c_device_array__(requested_schema, **keywords)
        self.device.events[self.exports[-1].event] = self.device.events[self.early]
        return pair


@far_exports("AR518", AR520="poison is read")
def event_is_recorded_on_another_stream(export):
    export.array.device.record(export.event, PRODUCERS_STREAM + 100)


@far_exports("AR518", AR520="poison is read")
def event_is_not_recorded(export):
    export.array.device.events[export.event] = None


def releases_with(export, change):
    """`change()` goes before the export's release."""

    def released(address):
        take_exception_away()
        change()
        export.released(address)

    export.release = RELEASE(released)
    export.structure.array.release = ctypes.cast(export.release, c_void_p)


@far_exports("AR519")
def event_is_not_destroyed(export):
    device = copy.copy(export.array.device)
    device.destroy_event = lambda event: None
    array = copy.copy(export.array)
    array.device, export.array = device, array


@fetches("AR519", AR521="the event")
class ConsumerDestroysTheEvent(Fetched):
    def release(self):
        live = bool(self.structure.array.release)
        event = handle_at(self.structure.sync_event) if live else None
        super().release()
        if event is not None:
            self.device.destroy_event(event)


@fetches("AR519", AR521="the event")
class ConsumerDestroysTheEventBeforeTheRelease(Fetched):
    def read(self):
        super().read()
        event = handle_at(self.structure.sync_event)
        if event is not None:
            self.device.destroy_event(event)


@far_exports("AR519", AR520="the event")
def event_is_destroyed_twice(export):
    releases_with(export, lambda: export.array.device.destroy_event(export.event))


@far_arrays("AR520")
class EventDiesWithTheNextExport(FarArray):
    def __arrow_c_device_array__(self, requested_schema=None, **keywords):
        for export in self.exports:
            self.device.events.pop(export.event, None)
        return super().__arrow_c_device_array__(requested_schema, **keywords)


@far_exports("AR520")
def event_is_within_the_structure(export):
    """Its handle is a member: it is lost where the structure was."""
    export.structure.array.private_data = export.event
    export.structure.sync_event = addressof(export.structure) + ArrowArray.private_data.offset


@fetches("AR521")
class ReleasedWhileReadIsPending(Fetched):
    def release(self):
        if self.structure.array.release:
            RELEASE(self.structure.array.release)(addressof(self.structure.array))


@fetches("AR521", **alike("AR517 AR519 AR523", "freed too early"))
class ReleasedAsSoonAsRead(Fetched):
    def read(self):
        super().read()
        RELEASE(self.structure.array.release)(addressof(self.structure.array))


# What is on the device


@far_exports("AR522", **alike("AR518 AR520 AR523", "fields are read"))
def children_are_on_the_device(export):
    KEPT.append(unreadable())
    export.structure.array.children = ctypes.cast(KEPT[-1], ctypes.POINTER(c_void_p))


@far_exports("AR522", **alike("AR518 AR520 AR523", "fields are read"))
def list_of_buffers_is_on_the_device(export):
    export.child.buffers = ctypes.cast(unreadable(), ctypes.POINTER(c_void_p))


@far_exports("AR522", **alike("AR518 AR520 AR523", "fields are read"))
def child_is_on_the_device(export):
    export.children[0] = unreadable()


@far_exports("AR523", **alike("AR518 AR520", "buffers are read"))
def bitmap_is_on_the_host(export):
    export.child_buffers[0] = aligned(b"\x05")


@far_exports("AR523", **alike("AR518 AR520", "buffers are read"))
def data_are_on_the_host(export):
    export.child_buffers[1] = aligned(bytes(4 * len(export.array.values)))


@fetches("AR523", **alike("AR517 AR519 AR521 AR525", "buffers are read"))
class BitmapIsReadByTheHost(Fetched):
    def read(self):
        if self.child.buffers[0]:
            ctypes.string_at(self.child.buffers[0], 1)
        super().read()


@fetches("AR523", **alike("AR517 AR519", "buffers are read"))
class DataAreReadByTheHost(Fetched):
    def to_list(self):
        ctypes.string_at(self.child.buffers[1], 4)
        return super().to_list()


# Release and move


@device_exports("AR524")
def release_takes_a_whole_device_structure(structure):
    right = structure.array.release

    def released(address):
        take_exception_away()
        # What is behind the array is not there where the array alone was moved.
        if ArrowDeviceArray.from_address(address).device_type == CPU:
            RELEASE(right)(address)

    KEPT.append(RELEASE(released))
    structure.array.release = ctypes.cast(KEPT[-1], c_void_p)


@device_exports("AR524", AR511="the release")
def release_is_in_the_reserved_bytes(structure):
    structure.reserved[0] = structure.array.release
    KEPT.append(RELEASE(lambda _address: take_exception_away() and None))
    structure.array.release = ctypes.cast(KEPT[-1], c_void_p)


@mutant("AR524")
def consumer_releases_the_children_alone():
    def take(x):
        schema, capsule = x.__arrow_c_device_array__()
        source = reference_arrow.live(ArrowDeviceArray, capsule, ARROW_DEVICE_ARRAY)
        taken = Taken(reference_arrow.take_schema(schema), reference_arrow.move(source.array))
        values = taken.to_list()
        for i in range(taken.array.n_children):
            release(ArrowArray.from_address(taken.array.children[i]))
        taken.array.release = None
        taken.to_list = lambda: values
        return taken

    hooks.take_device_array = take


@mutant("AR525", AR524="two owners")
def device_array_is_copied():
    def take(x):
        schema, capsule = x.__arrow_c_device_array__()
        source = reference_arrow.live(ArrowDeviceArray, capsule, ARROW_DEVICE_ARRAY)
        field = reference_arrow.take_schema(schema)
        return Taken(field, ArrowArray.from_buffer_copy(source.array))

    hooks.take_device_array = take


@fetches("AR525")
class StructureIsCopied(Fetched):
    def __init__(self, x, device, *, read=True):
        pairs = []

        class Noted:
            def __arrow_c_device_array__(self):
                pairs.append(x.__arrow_c_device_array__())
                return pairs[-1]

        super().__init__(Noted(), device, read=read)
        address = PyCapsule_GetPointer(pairs[0][1], ARROW_DEVICE_ARRAY)
        source = ArrowDeviceArray.from_address(address)
        source.array.release = self.structure.array.release


def write_to(array):
    """Changes the first byte of the last buffer that there is."""
    for i in range(array.n_children):
        write_to(ArrowArray.from_address(array.children[i]))
    if array.n_buffers and array.length and array.buffers[array.n_buffers - 1]:
        place = ctypes.c_uint8.from_address(array.buffers[array.n_buffers - 1])
        place.value ^= 0xFF


@around(hooks, "take_device_array")("AR526")
def data_are_changed(right, x):
    taken = right(x)
    values = taken.to_list()
    write_to(taken.array)
    taken.to_list = lambda: values
    return taken


# Streams


@device_streams("AR527")
class StreamIsOfAnotherDeviceThanItsChunks(DeviceChunks):
    def __arrow_c_device_stream__(self, requested_schema=None, **keywords):
        capsule = super().__arrow_c_device_stream__(requested_schema, **keywords)
        address = PyCapsule_GetPointer(capsule, b"arrow_device_array_stream")
        reference_arrow.ArrowDeviceArrayStream.from_address(address).device_type = CUDA
        return capsule


@device_streams("AR527", AR422="the same fault")
class StreamSaysNoDevice(DeviceChunks):
    def __arrow_c_device_stream__(self, requested_schema=None, **keywords):
        capsule = super().__arrow_c_device_stream__(requested_schema, **keywords)
        address = PyCapsule_GetPointer(capsule, b"arrow_device_array_stream")
        reference_arrow.ArrowDeviceArrayStream.from_address(address).device_type = 0
        return capsule


@device_chunks("AR527")
def chunks_are_of_another_device(structure):
    structure.device_type = 3


class OfDevices(Source):
    """Its device streams have the fault."""

    @property
    def faulty(self):
        return self.kind is not reference_arrow.ArrowArrayStream


sources = instead_of(reference_arrow, "Source")


@sources("AR528", **alike("AR418 AR422 AR511 AR514 AR527", "the same fault"))
class EndOfADeviceStreamIsAFailure(OfDevices):
    def get_next(self, stream, out):
        if self.faulty and not self.left and self.message is None:
            return errno.ENODATA
        return super().get_next(stream, out)


@sources("AR528", **alike("AR303 AR309 AR320", "the same fault"))
class FailureOfADeviceStreamIsMinus1(OfDevices):
    def get_next(self, stream, out):
        return -1 if super().get_next(stream, out) and self.faulty else 0


@sources("AR528")
class DeviceStreamHasNoLastError(OfDevices):
    def __init__(self, of, field, structure):
        super().__init__(of, field, structure)
        if self.faulty:
            structure.get_last_error = None


@sources("AR528", **alike("AR418 AR422 AR511 AR514 AR527", "the same fault"))
class DeviceStreamKnowsItsAddress(OfDevices):
    def __init__(self, of, field, structure):
        self.home = addressof(structure)
        super().__init__(of, field, structure)

    def get_next(self, stream, out):
        moved = self.faulty and stream != self.home
        return errno.EINVAL if moved else super().get_next(stream, out)


@sources("AR528")
class DeviceStreamReadsWhatItFills(OfDevices):
    def get_schema(self, stream, out):
        if self.faulty and ArrowSchema.from_address(out).release:
            crash()
        return super().get_schema(stream, out)


@readers("AR528")
class DeviceStreamIsNotReleased(Reader):
    def release(self):
        if self.device:
            KEPT.append(self)
        else:
            super().release()


@readers("AR528")
class LastErrorOfADeviceStreamIsAlwaysAskedFor(Reader):
    def next_chunk(self):
        chunk = super().next_chunk()
        if self.device:
            self.last_error()
        return chunk


@readers("AR528")
class FailureOfADeviceStreamIsItsEnd(Reader):
    def get_next(self, out):
        code = super().get_next(out)
        if code and self.device:
            out.array.release, code = None, 0
        return code
