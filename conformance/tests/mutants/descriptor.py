"""DL1xx, the descriptor."""

import ctypes
import math
import struct
from ctypes import c_int64

from dlpack_conformance.abi.dlpack import (
    BFLOAT,
    BOOL,
    COMPLEX,
    CPU,
    DEVICE_TYPES,
    DTYPES,
    FLOAT,
    INT,
    IS_COPIED,
    LEGACY,
    MAJOR,
    MINOR,
    OPAQUE_HANDLE,
    READ_ONLY,
    TYPE_CODES,
    UINT,
)
from dlpack_conformance.hooks import kit_reference as hooks
from dlpack_conformance.kit import reference
from dlpack_conformance.kit.memory import aligned
from dlpack_conformance.kit.values import pack, row_major

from mutants import alike, crash, exports, flags, mutant, reads, takes

FLOAT8, FLOAT6, FLOAT4 = range(7, 15), (15, 16), 17


def swap_nibbles(content):
    return bytes((byte & 15) << 4 | byte >> 4 for byte in content)


def packed_bytes(array):
    """The memory of an array, of less than a byte an element."""
    count = math.prod(array.shape) * DTYPES[array.dtype][1]
    return ctypes.string_at(array.address, (count + 7) // 8)


def codes(array):
    """The elements of a row-major array, of less than a byte each."""
    return [
        reference.read_one(array.address, i, array.dtype) for i in range(math.prod(array.shape))
    ]


# Version


@exports(
    "DL101",
    DL102="no version has the content",
    **alike("DL305 DL306", "major"),
    **alike("DL537 DL546", "its version"),
)
def version_is_left_zero(export):
    if hasattr(export.managed, "version"):
        export.managed.version.major = export.managed.version.minor = 0


@exports("DL102")
def float8_comes_with_1_0(export):
    if hasattr(export.managed, "version") and export.managed.dl_tensor.dtype.code in FLOAT8:
        export.managed.version.minor = 0


def on_major_mismatch(do):
    read = reference.read

    def planted(imported, owner):
        if imported.versioned and imported.managed.version.major != MAJOR:
            return do(imported, owner)
        return read(imported, owner)

    reference.read = planted


@mutant("DL103", DL214="a refusal")
def other_major_is_not_deleted():
    def refuse(imported, owner):
        imported.taken = False
        raise BufferError("another major version")

    on_major_mismatch(refuse)


@mutant("DL104", DL534="by the table too")
def axes_of_another_major_are_read():
    def refuse(imported, owner):
        raise BufferError(f"another major version, {imported.tensor.ndim} axes")

    on_major_mismatch(refuse)


@mutant("DL105", DL104="all is read", DL415="it is taken", DL534="by the table too")
def other_major_is_read():
    def read(imported, owner):
        dtype = reference.dtype_name(*imported.dtype)
        return reference.Array(
            imported.address, dtype, imported.shape, imported.strides, owner=owner
        )

    on_major_mismatch(read)


@reads("DL106")
def newer_minor_is_misread(seen):
    if seen.versioned and seen.managed.version.minor > MINOR:
        seen.tensor.data += 4


# Codes and devices


@reads("DL107")
def unknown_code_is_an_int(seen):
    if seen.tensor.dtype.code not in TYPE_CODES:
        seen.tensor.dtype.code = INT


@mutant("DL108", DL426="called the CPU")
def unknown_device_is_the_cpu():
    from_dlpack, read = hooks.from_dlpack, reference.read

    class Believed:
        def __init__(self, x):
            self.__dlpack__ = x.__dlpack__

        def __dlpack_device__(self):
            return (CPU, 0)

    def take(x, **keywords):
        known = x.__dlpack_device__()[0] in DEVICE_TYPES
        return from_dlpack(x if known else Believed(x), **keywords)

    def planted(imported, owner):
        other = imported.versioned and imported.managed.version.major != MAJOR
        if not other and imported.device[0] not in DEVICE_TYPES:
            imported.tensor.device.device_type = CPU
        return read(imported, owner)

    hooks.from_dlpack, reference.read = take, planted


# Flags


@flags("DL109", DL519="not by the table")
def flag_17_is_set(flags, array):
    return flags | 1 << 17


@flags("DL111", DL519="not by the table")
def readonly_is_not_said(flags, array):
    return flags & ~READ_ONLY


@flags("DL112", DL519="not by the table")
def readonly_is_said_of_all_that_is_shared(flags, array):
    return flags if flags & IS_COPIED else flags | READ_ONLY


@reads("DL114", DL535="by the table too")
def readonly_is_written(seen):
    if seen.versioned:
        seen.managed.flags &= ~READ_ONLY


@reads("DL115", DL535="by the table too")
def readonly_is_refused(seen):
    if seen.flags & READ_ONLY:
        raise BufferError("it is read-only")


@flags("DL116")
def copied_is_not_said(flags, array):
    return flags & ~IS_COPIED


@flags("DL117", DL519="not by the table")
def copied_is_said_of_all(flags, array):
    return flags | IS_COPIED


@mutant("DL118")
def copy_is_given_twice():
    copied = reference.Array.copied

    def planted(self):
        if not hasattr(self, "copy"):
            self.copy = copied(self)
        return self.copy

    reference.Array.copied = planted


@mutant("DL118", DL119="the flag of the source", **alike("DL311 DL319 DL409", "shared"))
def copy_shares():
    reference.Array.copied = lambda self: self


@mutant("DL119")
def copy_is_readonly():
    copied = reference.Array.copied

    def planted(self):
        array = copied(self)
        array.readonly = self.readonly
        return array

    reference.Array.copied = planted


# Elements of less than a byte


@exports("DL120", DL121="the flag is missing", DL122="values")
@exports("DL121", DL120="the same said from the other side", DL122="values")
def subbyte_is_a_byte_each(export):
    if DTYPES[export.array.dtype][1] < 8:
        export.managed.dl_tensor.data = aligned(bytes(codes(export.array)))


@takes("DL120", DL122="values", DL429="values")
def subbyte_is_read_as_a_byte_each(array):
    if DTYPES[array.dtype][1] < 8:
        content = ctypes.string_at(array.address, math.prod(array.shape))
        array.address = aligned(pack([byte & 15 for byte in content], array.dtype))


@exports("DL122", DL120="values")
def high_nibble_is_first(export):
    if export.array.dtype == "float4_e2m1fn":
        export.managed.dl_tensor.data = aligned(swap_nibbles(packed_bytes(export.array)))


@takes("DL122", DL120="values", DL429="values")
def high_nibble_is_read_first(array):
    if array.dtype == "float4_e2m1fn":
        array.address = aligned(swap_nibbles(packed_bytes(array)))


@exports("DL123")
def float6_has_8_bits(export):
    if export.managed.dl_tensor.dtype.code in FLOAT6:
        export.managed.dl_tensor.dtype.bits = 8


@reads("DL124")
def float6_of_8_bits_is_taken(seen):
    if seen.tensor.dtype.code in FLOAT6:
        seen.tensor.dtype.bits = 6


@exports("DL125")
def float4_has_8_bits(export):
    if export.managed.dl_tensor.dtype.code == FLOAT4:
        export.managed.dl_tensor.dtype.bits = 8


@reads("DL126")
def float4_of_8_bits_is_taken(seen):
    if seen.tensor.dtype.code == FLOAT4:
        seen.tensor.dtype.bits = 4


# dtypes


@exports("DL127")
def float8_has_code_42(export):
    if export.array.dtype == "float8_e3m4":
        export.managed.dl_tensor.dtype.code = 42


@exports("DL128", DL166="bools are no bools")
def bool_is_uint8(export):
    if export.managed.dl_tensor.dtype.code == BOOL:
        export.managed.dl_tensor.dtype.code = UINT


@exports("DL128", DL166="bools are no bools")
def bool_has_1_bit(export):
    if export.managed.dl_tensor.dtype.code == BOOL:
        export.managed.dl_tensor.dtype.bits = 1


@reads("DL128", DL166="bools are no bools", DL429="dtype")
def bool_is_taken_as_uint8(seen):
    if seen.dtype == (BOOL, 8, 1):
        seen.tensor.dtype.code = UINT


@exports("DL130", DL166="complex")
def complex_has_the_bits_of_a_part(export):
    if export.managed.dl_tensor.dtype.code == COMPLEX:
        export.managed.dl_tensor.dtype.bits //= 2


def imaginary_first(array):
    """The memory of a row-major array with its parts swapped."""
    part = DTYPES[array.dtype][1] // 16
    content = ctypes.string_at(array.address, 2 * part * math.prod(array.shape))
    parts = [content[i : i + part] for i in range(0, len(content), part)]
    return b"".join(parts[i ^ 1] for i in range(len(parts)))


@exports("DL130", DL166="complex", DL519="a copy each")
def imaginary_part_is_first(export):
    if export.array.dtype.startswith("complex") and math.prod(export.array.shape):
        export.managed.dl_tensor.data = aligned(imaginary_first(export.array))


@takes("DL130", DL166="complex", DL429="values")
def imaginary_part_is_read_first(array):
    if array.dtype.startswith("complex") and math.prod(array.shape):
        array.address = aligned(imaginary_first(array))


@reads("DL130", DL166="complex", DL429="dtype")
def complex_bits_are_those_of_a_part(seen):
    if seen.tensor.dtype.code == COMPLEX and seen.tensor.dtype.bits == 64:
        seen.tensor.dtype.bits = 128


@exports("DL131")
def bfloat16_is_a_float(export):
    if export.managed.dl_tensor.dtype.code == BFLOAT:
        export.managed.dl_tensor.dtype.code = FLOAT


@reads("DL131", DL429="dtype")
def bfloat16_is_taken_as_a_float(seen):
    if seen.dtype == (BFLOAT, 16, 1):
        seen.tensor.dtype.code = FLOAT


@exports("DL132")
def float8_has_no_lanes(export):
    if export.array.dtype == "float8_e5m2":
        export.managed.dl_tensor.dtype.lanes = 0


@reads("DL133")
def lanes_are_ignored(seen):
    seen.tensor.dtype.lanes = 1


@reads("DL133")
def no_lanes_are_one(seen):
    seen.tensor.dtype.lanes = seen.tensor.dtype.lanes or 1


@reads("DL134")
def bits_are_rounded_up(seen):
    if seen.tensor.dtype.code in (INT, UINT, FLOAT):
        seen.tensor.dtype.bits = max(8, 1 << (seen.tensor.dtype.bits - 1).bit_length())


@mutant("DL135", DL517="by the table too")
def swapped_bytes_are_shared():
    odd = hooks.odd
    swapped = struct.unpack("<2f", struct.pack(">2f", 1.0, 2.0))
    hooks.odd = lambda what: hooks.make(swapped) if what == "byte order" else odd(what)


@reads("DL136")
def opaque_handle_is_an_int(seen):
    if seen.tensor.dtype.code == OPAQUE_HANDLE:
        seen.tensor.dtype.code = INT


# Device


@mutant(
    "DL137",
    **alike("DL315 DL316 DL317 DL318 DL319 DL406 DL529 DL537", "another device"),
)
def device_id_is_minus_1():
    def device(self):
        return (CPU, -1)

    fill = reference.Export.__init__

    def planted(self, array, versioned, flags):
        fill(self, array, versioned, flags)
        self.managed.dl_tensor.device.device_id = -1

    reference.Array.__dlpack_device__, reference.Export.__init__ = device, planted


# Address


@reads("DL140", DL120="elements that end at a page")
def address_is_rounded_down(seen):
    if seen.tensor.data and seen.strides == row_major(seen.shape):
        seen.tensor.data &= ~63


@reads("DL142")
def byte_offset_is_ignored(seen):
    seen.tensor.byte_offset = 0


@reads("DL143")
def memory_of_no_elements_is_read(seen):
    if not math.prod(seen.shape) and seen.tensor.byte_offset:
        ctypes.string_at(seen.address, 1)


@reads("DL143")
def byte_offset_of_no_elements_is_refused(seen):
    if not math.prod(seen.shape) and seen.tensor.byte_offset:
        raise BufferError("byte_offset leads out of the memory")


@exports("DL144")
def address_of_no_elements_dangles(export):
    export.managed.dl_tensor.data = export.array.address


@reads("DL145")
def no_elements_without_memory_are_refused(seen):
    if not seen.tensor.data:
        raise BufferError("there is no memory")


@reads("DL146")
def null_is_memory(seen):
    if math.prod(seen.shape) and not seen.tensor.data:
        crash()


# Shape


@reads("DL147")
def negative_ndim_is_none(seen):
    seen.tensor.ndim = max(seen.tensor.ndim, 0)


@exports("DL147")
def no_axes_are_minus_1(export):
    export.managed.dl_tensor.ndim = export.managed.dl_tensor.ndim or -1


@reads("DL148")
def shape_of_no_axes_is_asked_for(seen):
    if not seen.tensor.shape:
        raise BufferError("there is no shape")


@reads("DL148")
def shape_of_no_axes_is_read(seen):
    if not seen.tensor.shape:
        crash()


@reads("DL149")
def strides_of_no_axes_are_read(seen):
    if not seen.tensor.ndim and not seen.tensor.strides:
        crash()


@exports(
    "DL150",
    **alike(
        "DL206 DL222 DL229 DL230 DL311 DL315 DL318 DL319 DL322 DL327 DL329 DL330 DL331 DL332",
        "elements",
    ),
    **alike("DL518 DL529 DL536 DL537 DL546", "its shape"),
    **alike("DL118 DL130 DL131 DL158 DL162 DL166", "its elements"),
)
def shape_counts_bytes(export):
    bits = DTYPES[export.array.dtype][1]
    for axis in range(export.managed.dl_tensor.ndim):
        export.managed.dl_tensor.shape[axis] *= max(bits // 8, 1)


def reshape(seen, shape):
    seen.tensor.shape = (c_int64 * len(shape))(*shape)


@reads("DL151")
def negative_extent_is_none(seen):
    if seen.tensor.ndim > 0 and seen.tensor.shape:
        reshape(seen, [max(extent, 0) for extent in seen.shape])


@reads("DL151")
def negative_extent_beside_0_is_none(seen):
    if seen.tensor.ndim > 0 and seen.tensor.shape and 0 in seen.shape:
        reshape(seen, [max(extent, 0) for extent in seen.shape])


@reads("DL152")
def number_of_elements_wraps(seen):
    if seen.tensor.ndim > 0 and seen.tensor.shape and math.prod(seen.shape) > 1 << 60:
        reshape(seen, [0] * len(seen.shape))


@reads("DL153")
def many_axes_overflow_the_stack(seen):
    if seen.tensor.ndim > 1000:
        crash()


@reads("DL153")
def axes_beyond_64_are_forgotten(seen):
    seen.tensor.ndim = min(seen.tensor.ndim, 64)


# Strides


def contiguous(array):
    return tuple(array.strides) == row_major(array.shape)


def itemsize(array):
    return max(DTYPES[array.dtype][1] // 8, 1)


@exports("DL154")
def strides_of_contiguous_are_null(export):
    if hasattr(export.managed, "version") and contiguous(export.array):
        export.managed.dl_tensor.strides = None


def without_strides(seen):
    return seen.tensor.ndim > 0 and seen.tensor.shape and not seen.tensor.strides


def column_major(seen):
    strides = row_major(seen.shape[::-1])[::-1]
    seen.tensor.strides = (c_int64 * len(strides))(*strides)


@reads("DL155")
def legacy_without_strides_is_refused(seen):
    if seen.name == LEGACY and without_strides(seen):
        raise BufferError("there are no strides")


@reads("DL155")
def legacy_without_strides_is_column_major(seen):
    if seen.name == LEGACY and without_strides(seen):
        column_major(seen)


@reads("DL156")
def old_minor_without_strides_crashes(seen):
    if seen.versioned and seen.managed.version.minor < 2 and without_strides(seen):
        crash()


@reads("DL156")
def old_minor_without_strides_is_column_major(seen):
    if seen.versioned and seen.managed.version.minor < 2 and without_strides(seen):
        column_major(seen)


@reads("DL157")
def new_minor_without_strides_crashes(seen):
    if seen.versioned and seen.managed.version.minor >= 2 and without_strides(seen):
        crash()


@reads("DL157")
def new_minor_without_strides_is_column_major(seen):
    if seen.versioned and seen.managed.version.minor >= 2 and without_strides(seen):
        column_major(seen)


@exports("DL158", DL162="strided too")
def strides_count_bytes(export):
    if not contiguous(export.array):
        for axis, stride in enumerate(export.array.strides):
            export.managed.dl_tensor.strides[axis] = stride * itemsize(export.array)


@takes("DL158", DL160="strided too", DL161="strided too", DL162="strided too", DL429="strided too")
def strides_are_read_as_bytes(array):
    if not contiguous(array):
        array.strides = [int(stride / itemsize(array)) for stride in array.strides]


@exports("DL159")
def stride_of_extent_one_is_not_set(export):
    for axis, extent in enumerate(export.array.shape):
        if extent == 1:
            export.managed.dl_tensor.strides[axis] = 0x7EDBDBDBDBDBDBDB


@exports("DL159")
def stride_of_no_elements_is_not_set(export):
    if 0 in export.array.shape:
        for axis in range(len(export.array.shape)):
            export.managed.dl_tensor.strides[axis] = 0x7EDBDBDBDBDBDBDB


@reads("DL160")
def stride_of_extent_one_is_asked_for(seen):
    if 1 in seen.shape and seen.strides != row_major(seen.shape):
        raise BufferError("it is strided")


@takes("DL161", DL158="strided too", DL429="strided too")
def strides_are_forgotten(array):
    if min(array.strides, default=0) >= 0:
        array.strides = row_major(array.shape)


@exports("DL162")
def negative_strides_start_at_the_lowest_address(export):
    if min(export.array.strides, default=0) < 0:
        axes = zip(export.array.shape, export.array.strides, strict=True)
        lowest = sum((extent - 1) * min(stride, 0) for extent, stride in axes)
        export.managed.dl_tensor.data += lowest * itemsize(export.array)


@takes("DL162")
def negative_strides_are_positive(array):
    array.strides = tuple(map(abs, array.strides))


@reads("DL163")
def reach_of_strides_wraps(seen):
    if seen.tensor.ndim > 0 and seen.tensor.strides:
        wrapped = [(stride + (1 << 61)) % (1 << 62) - (1 << 61) for stride in seen.strides]
        seen.tensor.strides = (c_int64 * len(wrapped))(*wrapped)


# Exchange


@mutant("DL165", **alike("DL316 DL317 DL318 DL342 DL406", "another device"))
def device_is_announced_as_another():
    reference.Array.__dlpack_device__ = lambda self: (2, 0)


@exports("DL166")
def int8_is_uint8(export):
    if export.array.dtype == "int8":
        export.managed.dl_tensor.dtype.code = UINT


@reads("DL166", DL429="dtype")
def int8_is_taken_as_uint8(seen):
    if seen.dtype == (INT, 8, 1):
        seen.tensor.dtype.code = UINT


@reads("DL166")
def no_axes_are_refused(seen):
    if not seen.tensor.ndim:
        raise BufferError("there are no axes")


def changed(array, change):
    """The address of a row-major float array's elements, each 4 or 8 bytes changed."""
    size = itemsize(array)
    content = ctypes.string_at(array.address, size * math.prod(array.shape))
    items = [int.from_bytes(content[i : i + size], "little") for i in range(0, len(content), size)]
    return b"".join(change(item, size).to_bytes(size, "little") for item in items)


def canonical(bits, size):
    sign, infinite = (1 << 31, 0x7F800000) if size == 4 else (1 << 63, 0x7FF << 52)
    quiet = infinite | (infinite & -infinite) >> 1
    return quiet if bits & ~sign > infinite else bits


def unsigned_zero(bits, size):
    return 0 if bits == 1 << (8 * size - 1) else bits


def flushed(bits, size):
    smallest = 1 << 23 if size == 4 else 1 << 52
    sign = 1 << (8 * size - 1)
    return bits & sign if bits & ~sign < smallest else bits


def on_floats(array, change):
    """Where the elements are after this change; where they were if it changes none."""
    if array.dtype not in ("float32", "float64") or not contiguous(array):
        return array.address
    before, after = changed(array, lambda bits, _: bits), changed(array, change)
    return array.address if before == after else aligned(after)


@takes("DL167")
def nans_are_read_as_one(array):
    array.address = on_floats(array, canonical)


@takes("DL167")
def zeros_are_read_without_sign(array):
    array.address = on_floats(array, unsigned_zero)


@takes("DL167")
def denormals_are_read_as_zero(array):
    array.address = on_floats(array, flushed)


@exports("DL167")
def nans_are_one(export):
    if math.prod(export.array.shape):
        export.managed.dl_tensor.data = on_floats(export.array, canonical)
