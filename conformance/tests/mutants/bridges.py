"""BR, the bridges."""

import ctypes
import threading
from ctypes import c_void_p

from dlpack_conformance.abi.arrow import (
    ARROW_ARRAY,
    ARROW_DEVICE_ARRAY,
    RELEASE,
    ArrowArray,
    ArrowDeviceArray,
)
from dlpack_conformance.abi.capsule import PyCapsule_GetPointer, take_exception_away
from dlpack_conformance.abi.dlpack import CPU, DELETER
from dlpack_conformance.hooks import kit_reference as hooks
from dlpack_conformance.kit import reference, reference_bridge
from dlpack_conformance.kit.arrow_consumer import read_field, read_values, release, schema_in
from dlpack_conformance.kit.memory import aligned
from dlpack_conformance.kit.reference import Array
from dlpack_conformance.kit.reference_bridge import (
    BRIDGES_STREAM,
    COLUMN_FORMATS,
    COLUMN_WIDTHS,
    Column,
    FarBatch,
    FarColumn,
)

from mutants import crash, decorator
from mutants.planting import around, instead_of

KEPT = []

to_tensor = around(hooks, "bridge_tensor")
far_columns = instead_of(reference_bridge, "FarColumn")
far_batches = instead_of(reference_bridge, "FarBatch")


@decorator
def tensors(change):
    """The function changes each tensor that the bridge makes."""
    right = hooks.bridge_tensor

    def planted(x):
        tensor = right(x)
        change(tensor)
        return tensor

    hooks.bridge_tensor = planted


@decorator
def fills(change):
    """The function changes each array that the bridge makes, of its column."""
    fill = Column.fill

    def planted(self, out):
        fill(self, out)
        change(self, out)

    Column.fill = planted


@decorator
def judges(change):
    """The function says whether a column that was taken has nulls; the right one reads it."""

    def planted(x):
        taken = reference_bridge.take_array(x)
        form, array = taken.field.format, taken.array
        if form not in COLUMN_FORMATS or taken.field.dictionary is not None:
            raise BufferError(f"a column of format {form} is no tensor")
        if change(taken):
            raise BufferError("a tensor has no nulls")
        address = (array.buffers[1] or 0) + array.offset * COLUMN_WIDTHS[form]
        shape, dtype = (array.length,), COLUMN_FORMATS[form]
        return Array(address, dtype, shape, (1,), readonly=True, owner=taken)

    hooks.bridge_tensor = planted


# Memory


@to_tensor("BR01")
def tensor_is_a_copy(right, x):
    return frozen(right(x).copied())


def frozen(tensor):
    tensor.readonly = True
    return tensor


@fills("BR01", BR02="the values")
def array_starts_an_element_late(_column, out):
    out.buffers[1] = out.buffers[1] + 4


def offset_of(tensor):
    return tensor.owner.array.offset * COLUMN_WIDTHS[tensor.owner.field.format]


@tensors("BR02", BR01="the address", BR03="its elements")
def offset_is_counted_twice(tensor):
    tensor.address += offset_of(tensor)


@tensors("BR02", BR01="the address", BR03="its elements")
def offset_is_forgotten(tensor):
    tensor.address -= offset_of(tensor)


@tensors("BR02", BR01="the address", BR03="its elements")
def offset_counts_bytes(tensor):
    tensor.address += tensor.owner.array.offset - offset_of(tensor)


@to_tensor("BR02", BR01="the address", BR03="its elements")
def offset_is_in_byte_offset_too(right, x):
    tensor = right(x)

    class Both(Array):
        def __dlpack__(self, **keywords):
            capsule = super().__dlpack__(**keywords)
            reference.Imported(capsule).tensor.byte_offset = offset_of(tensor)
            return capsule

    tensor.__class__ = Both
    return tensor


@fills("BR02")
def byte_offset_of_a_tensor_is_counted_twice(column, out):
    imported = column.tensor.owner.imported
    out.buffers[1] = out.buffers[1] + imported.tensor.byte_offset


@fills("BR02")
def byte_offset_of_a_tensor_is_forgotten(column, out):
    imported = column.tensor.owner.imported
    out.buffers[1] = out.buffers[1] - imported.tensor.byte_offset


# Nulls, mutability, bits


@judges("BR03")
def nulls_are_lost(_taken):
    return False


@judges("BR03")
def null_count_is_believed_where_it_is_not_known(taken):
    return taken.array.null_count > 0


@judges("BR03")
def bitmap_is_read_without_the_offset(taken):
    array = ArrowArray.from_buffer_copy(taken.array)
    array.offset = 0
    return None in read_values(taken.field, array)


@tensors("BR04")
def tensor_can_be_written(tensor):
    tensor.readonly = False


@to_tensor("BR09")
def bits_become_bytes(right, x):
    schema, capsule = x.__arrow_c_array__()
    field = read_field(schema_in(schema))
    if field.format != "b":
        return right(Again(schema, capsule))
    values = reference_bridge.take_array(Again(schema, capsule)).to_list()
    content = aligned(bytes(bool(value) for value in values))
    return Array(content, "bool", (len(values),), (1,), readonly=True)


@to_tensor("BR09")
def bits_are_taken_as_bytes(right, x):
    schema, capsule = x.__arrow_c_array__()
    field = read_field(schema_in(schema))
    if field.format != "b":
        return right(Again(schema, capsule))
    taken = reference_bridge.take_array(Again(schema, capsule))
    address, length = taken.array.buffers[1], taken.array.length
    return Array(address, "bool", (length,), (1,), readonly=True, owner=taken)


class Again:
    """What was exported already."""

    def __init__(self, *pair):
        self.pair = pair

    def __arrow_c_array__(self, requested_schema=None):
        return self.pair


# Events and streams


@far_columns("BR05")
class TensorDoesNotWait(FarColumn):
    def __init__(self, device, fetched):
        super().__init__(device, fetched)
        self.event = None


@far_columns("BR05")
class HostWaitsForTheEvent(FarColumn):
    def __dlpack__(self, *, stream=None, **keywords):
        self.accelerator.finish(*self.accelerator.events[self.event])
        self.accelerator.calls.append(("synchronize", stream))
        return super().__dlpack__(stream=-1, **keywords)


@far_columns("BR05")
class DefaultStreamWaitsForTheEvent(FarColumn):
    def __dlpack__(self, *, stream=None, **keywords):
        return super().__dlpack__(stream=None if stream != -1 else -1, **keywords)


def device_array_in(capsule):
    return ArrowDeviceArray.from_address(PyCapsule_GetPointer(capsule, ARROW_DEVICE_ARRAY))


@far_batches("BR06")
class ArrayHasNoEvent(FarBatch):
    def __arrow_c_device_array__(self, requested_schema=None, **keywords):
        pair = super().__arrow_c_device_array__(requested_schema, **keywords)
        device_array_in(pair[1]).sync_event = None
        return pair


@far_batches("BR06")
class EventIsOnAStreamThatDidNotWait(FarBatch):
    def __arrow_c_device_array__(self, requested_schema=None, **keywords):
        pair = super().__arrow_c_device_array__(requested_schema, **keywords)
        event = c_void_p.from_address(device_array_in(pair[1]).sync_event).value
        self.device.record(event, BRIDGES_STREAM + 100)
        return pair


@far_batches("BR06")
class TensorIsAskedNotToWait(FarBatch):
    def __init__(self, device, x):
        class Hurried:
            def __dlpack__(self, *, stream=None, **keywords):
                return x.__dlpack__(stream=-1, **keywords)

        super().__init__(device, Hurried())


# Owners


@tensors("BR07", BR02="its elements", BR03="its elements")
def array_is_released_at_once(tensor):
    KEPT.append(tensor.owner)
    release(tensor.owner.array)


@tensors("BR07", BR10="releases")
def array_is_not_released(tensor):
    KEPT.append(tensor.owner)


@to_tensor("BR07", BR02="its elements", BR03="its elements")
def array_is_released_with_the_bridge_object(right, x):
    tensor = right(x)

    class Hasty(Array):
        def __dlpack__(self, **keywords):
            lent = Array(self.address, self.dtype, self.shape, self.strides, readonly=True)
            return lent.__dlpack__(**keywords)

    tensor.__class__ = Hasty
    return tensor


@tensors("BR07")
def array_is_released_by_the_first_deleter(tensor):
    class First(Array):
        def __dlpack__(self, **keywords):
            capsule = super().__dlpack__(**keywords)
            managed = reference.Imported(capsule).managed
            right, owner = managed.deleter, self.owner

            def delete(address):
                release(owner.array)
                DELETER(right)(address)

            KEPT.append(DELETER(delete))
            managed.deleter = ctypes.cast(KEPT[-1], c_void_p)
            return capsule

    tensor.__class__ = First


@fills("BR07", BR01="its elements", BR02="its elements")
def tensor_is_deleted_at_once(column, _out):
    column.tensor.owner.imported.delete()


@fills("BR07", BR10="deletions")
def tensor_is_not_deleted(column, _out):
    KEPT.append(column.tensor)


# Devices


@tensors("BR08", AR510="of the host")
def tensor_of_the_host_has_id_minus_1(tensor):
    tensor.device = (CPU, -1)


@around(reference_bridge, "capsule_of")("BR08", AR510="of the host")
def array_of_the_host_has_id_0(right, structure, name):
    if name != ARROW_ARRAY and structure.device_type == CPU:
        structure.device_id = 0
    return right(structure, name)


@far_batches("BR08")
class ArrayOnADeviceHasIdMinus1(FarBatch):
    def __arrow_c_device_array__(self, requested_schema=None, **keywords):
        pair = super().__arrow_c_device_array__(requested_schema, **keywords)
        device_array_in(pair[1]).device_id -= 1
        return pair


@far_columns("BR08")
class TensorOnADeviceHasIdMinus1(FarColumn):
    def __init__(self, device, fetched):
        super().__init__(device, fetched)
        self.device = (self.device[0], -1)


# Threads


def in_main_thread():
    return threading.current_thread() is threading.main_thread()


@tensors("BR10")
def deleter_needs_the_main_thread(tensor):
    class Bound(Array):
        def __dlpack__(self, **keywords):
            capsule = super().__dlpack__(**keywords)
            managed = reference.Imported(capsule).managed
            right = managed.deleter

            def delete(address):
                if not in_main_thread():
                    crash()
                DELETER(right)(address)

            KEPT.append(DELETER(delete))
            managed.deleter = ctypes.cast(KEPT[-1], c_void_p)
            return capsule

    tensor.__class__ = Bound


@fills("BR10")
def release_needs_the_main_thread(_column, out):
    right = out.release

    def released(address):
        take_exception_away()
        if not in_main_thread():
            crash()
        RELEASE(right)(address)

    KEPT.append(RELEASE(released))
    out.release = ctypes.cast(KEPT[-1], c_void_p)
