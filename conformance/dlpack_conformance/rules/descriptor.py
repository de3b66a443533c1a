"""DL1xx: the descriptor, what a tensor says of itself."""

import contextlib
import ctypes
import struct
from typing import Any

from dlpack_conformance.abi.dlpack import (
    BFLOAT,
    BOOL,
    COMPLEX,
    CPU,
    CUDA_HOST,
    CUDA_MANAGED,
    DTYPES,
    FLOAT,
    INT,
    IS_COPIED,
    MAJOR,
    OPAQUE_HANDLE,
    READ_ONLY,
    ROCM_HOST,
    SUBBYTE_PADDED,
    TYPE_CODES,
    UINT,
    DLDataType,
    DLDevice,
    DLManagedTensorVersioned,
)
from dlpack_conformance.kit.consumer import Imported, exported
from dlpack_conformance.kit.judge import (
    accepted,
    attempt,
    either,
    elements_or_refusal,
    equal,
    exported_dtypes,
    exported_versioned,
    poke,
    refused,
    right_or_refused,
    takes,
    text,
    unread,
)
from dlpack_conformance.kit.memory import before_guard_page, unreadable
from dlpack_conformance.kit.producer import Producer
from dlpack_conformance.library import Library
from dlpack_conformance.rule import Broken, NotApplicable, Report, rule

# Version and flags


@rule("DL101", "must", "dlpack.h, DLManagedTensorVersioned.version", "p")
def version_filled(lib: Library) -> None:
    """A versioned tensor says in `version` which DLPack it was made by."""
    view = exported_versioned(lib.make([1.0, 2.0]))
    # A minor version that this kit does not know yet is no fault.
    equal("major version", MAJOR, view.managed.version.major)


@rule("DL102", "derived", "dlpack.h, DLPackVersion (minor versions add enumerators)", "p")
def version_covers_content(lib: Library) -> None:
    """Codes that came with a minor version appear only in tensors of that minor or a later one."""
    newer = {name for name in lib.dtypes() if TYPE_CODES[DTYPES[name][0]] > 0}
    views = {name: view for name, view in exported_dtypes(lib).items() if name in newer}
    views = {name: view for name, view in views.items() if view.versioned}
    if not views:
        raise NotApplicable("exports no dtype that is newer than 1.0, in versioned tensors")
    for name, view in views.items():
        # A code that the header has not got is for another rule.
        least = TYPE_CODES.get(view.dtype[0], 0)
        if view.managed.version.minor < least:
            raise Broken(f"{name} in 1.{least} or later", view.version)


@rule("DL103", "must", "dlpack.h, DLPackVersion", "c")
def major_mismatch_deletes(lib: Library) -> None:
    """A consumer that meets another major version calls the deleter."""
    x = Producer(legacy=False)
    x.version = (2, 0)
    attempt(lib, x)
    equal("calls of the deleter", 1, x.deletions())


class EndsAfterFlags(Producer):
    """Behind the flags of its managed tensor there is a page that cannot be read."""

    def place(self, managed: Any) -> int:
        return before_guard_page(bytes(managed)[: DLManagedTensorVersioned.dl_tensor.offset])


@rule("DL104", "must", "dlpack.h, DLPackVersion; DLManagedTensorVersioned.flags, note", "c")
def major_mismatch_reads_nothing_else(lib: Library) -> None:
    """Of a tensor of another major version a consumer reads nothing behind `flags`."""
    x = EndsAfterFlags(legacy=False)
    x.version = (2, 0)
    attempt(lib, x)


@rule("DL105", "derived", "dlpack.h, DLPackVersion; array API, __dlpack__, max_version", "c")
def major_mismatch_is_said(lib: Library) -> None:
    """A tensor of another major version is refused by an exception."""
    x = Producer(legacy=False)
    x.version = (2, 0)
    refused(lib, x)


@rule("DL106", "derived", "dlpack.h, DLPackVersion", "c")
def minor_newer_accepted(lib: Library) -> None:
    """A newer minor version with content that the consumer knows can be used: it is read right, or
    refused."""
    x = Producer(legacy=False)
    x.version = (MAJOR, 99)
    right_or_refused(lib, x)


@rule("DL107", "must", "dlpack.h, DLPackVersion (interpret all fields)", "c")
def unknown_code_refused(lib: Library) -> None:
    """A dtype code that the consumer does not know is refused, at once or when it is read."""
    x = Producer()
    x.tensor.dtype.code = 200
    unread(lib, x)


@rule("DL108", "must", "dlpack.h, DLPackVersion (interpret all fields)", "c")
def unknown_device_refused(lib: Library) -> None:
    """Memory of a device type that the consumer does not know is not read: it is refused, at once
    or when its elements are asked for."""
    x = Producer()
    x.tensor.device = DLDevice(99, 0)
    x.tensor.data = unreadable()
    unread(lib, x)


@rule("DL109", "should", "dlpack.h, DLManagedTensorVersioned.flags", "p")
def flags_default_zero(lib: Library) -> None:
    """Flags that do not apply are 0, and bits that are not defined are not set."""
    flags = exported_versioned(lib.make([1.0, 2.0])).flags
    equal("undefined flags", 0, flags & ~(READ_ONLY | IS_COPIED | SUBBYTE_PADDED))


@rule("DL110", "silent", "dlpack.h, DLManagedTensorVersioned.flags", "c")
def unknown_flags(lib: Library) -> Report:
    """What a consumer does with flag bits that are not defined."""
    x = Producer(legacy=False)
    x.flags = 1 << 40
    return Report(right_or_refused(lib, x) or "accepted")


@rule("DL111", "must", "dlpack.h, DLPACK_FLAG_BITMASK_READ_ONLY", "p")
def readonly_set(lib: Library) -> None:
    """Memory that must not be written carries READ_ONLY."""
    flags = exported_versioned(lib.make([1.0, 2.0], readonly=True)).flags
    if flags & IS_COPIED:
        raise NotApplicable("exports a copy")
    equal("READ_ONLY", READ_ONLY, flags & READ_ONLY)


@rule("DL112", "derived", "dlpack.h, DLPACK_FLAG_BITMASK_READ_ONLY", "p")
def readonly_not_set_on_writable(lib: Library) -> None:
    """Memory that the producer lets others write does not carry READ_ONLY."""
    array = lib.make([1.0, 2.0])
    lib.write(array, 3.0)
    equal("READ_ONLY", 0, exported_versioned(array).flags & READ_ONLY)


@rule("DL113", "silent", "dlpack.h, DLManagedTensor", "p")
def readonly_legacy(lib: Library) -> Report:
    """What a producer does with memory that must not be written in a legacy tensor, which cannot
    say so."""
    array = lib.make([1.0, 2.0], readonly=True)
    try:
        view = Imported(array.__dlpack__())
    except Exception as error:
        return Report(text(error))
    if view.versioned:
        return Report("exports a versioned tensor")
    return Report("shares" if view.address == lib.address(array) else "copies")


@rule("DL114", "derived", "dlpack.h, DLPACK_FLAG_BITMASK_READ_ONLY", "c")
def readonly_honoured(lib: Library) -> None:
    """A consumer that has read-only arrays makes one of a tensor with READ_ONLY."""
    lib.make([1.0], readonly=True)
    x = Producer([1.0, 2.0], legacy=False)
    x.flags = READ_ONLY
    array, refusal = attempt(lib, x)
    if refusal is not None:
        raise NotApplicable(refusal)
    with contextlib.suppress(Exception):
        lib.write(array, 9.0)
    if x.deleted:
        raise NotApplicable("copies what is read-only")
    equal("the producer's memory", x.content, ctypes.string_at(x.address, len(x.content)))


@rule("DL115", "should", "array API, __dlpack__, Notes", "c")
def readonly_not_refused(lib: Library) -> None:
    """A consumer without read-only arrays ignores READ_ONLY instead of raising."""
    x = Producer(legacy=False)
    x.flags = READ_ONLY
    accepted(lib, x)


def copy_of(array: Any) -> Imported:
    """What the array exports with copy=True; that it must is for another rule."""
    try:
        return exported_versioned(array, copy=True)
    except NotApplicable:
        raise
    except Exception as error:
        raise NotApplicable(f"makes no copies: {text(error)}") from None


@rule("DL116", "must", "array API, __dlpack__, copy; Python specification, Semantics", "p")
def copied_set(lib: Library) -> None:
    """If the producer copied, IS_COPIED is set."""
    equal("IS_COPIED", IS_COPIED, copy_of(lib.make([1.0, 2.0])).flags & IS_COPIED)


@rule("DL117", "derived", "dlpack.h, DLPACK_FLAG_BITMASK_IS_COPIED", "p")
def copied_not_set_on_share(lib: Library) -> None:
    """A tensor that shares the producer's memory does not carry IS_COPIED."""
    array = lib.make([1.0, 2.0])
    view = exported_versioned(array)
    if view.address != lib.address(array):
        raise NotApplicable("does not share")
    equal("IS_COPIED", 0, view.flags & IS_COPIED)


@rule("DL118", "must", "dlpack.h, DLPACK_FLAG_BITMASK_IS_COPIED", "p")
def copied_is_sole(lib: Library) -> None:
    """A tensor with IS_COPIED is the consumer's alone: no one else sees it or changes it."""
    array = lib.make([1.0, 2.0])
    one, other = copy_of(array), copy_of(array)
    if not one.flags & other.flags & IS_COPIED:
        raise NotApplicable("its copies carry no IS_COPIED")
    poke(one.address, struct.pack("f", 7.0))
    equal("the source, with a copy changed,", [1.0, 2.0], lib.to_list(array))
    equal("another copy, with one changed,", [1.0, 2.0], other.to_list())
    with contextlib.suppress(NotApplicable):  # of libraries whose arrays are never written
        lib.write(array, 5.0)
    equal("a copy, with the source changed,", [1.0, 2.0], other.to_list())


@rule("DL119", "derived", "array API, Copy keyword argument behavior", "p")
def copied_writable(lib: Library) -> None:
    """A copy that was asked for can be written: READ_ONLY is not set, whatever the source."""
    flags = copy_of(lib.make([1.0, 2.0], readonly=True)).flags
    equal("READ_ONLY", 0, flags & READ_ONLY)


# Dtypes

SUBBYTE = ["float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn"]


def exported_subbyte(lib: Library, codes: list[int]) -> dict[str, Imported]:
    """These codes in each dtype of less than a byte that the library exports; how it says the dtype
    is for another rule."""
    views = {}
    for dtype in [name for name in SUBBYTE if name in lib.dtypes()]:
        with contextlib.suppress(Exception):
            views[dtype] = exported(lib.make(codes, dtype))
    views = {name: view for name, view in views.items() if view.dtype == (*DTYPES[name], 1)}
    if not views:
        raise NotApplicable("exports no dtype of less than a byte")
    return views


def exports_packed(lib: Library) -> None:
    views = exported_subbyte(lib, [5] * 5)
    for dtype, view in views.items():
        if not view.flags & SUBBYTE_PADDED:
            equal(f"{dtype}, packed", [5] * 5, view.to_list())


def takes_packed(lib: Library) -> None:
    refusals = []
    for dtype in SUBBYTE:
        x = Producer([5] * 5, dtype)
        # Who reads a byte for each element reads beyond them.
        x.tensor.data = before_guard_page(x.content)
        refusals.append(right_or_refused(lib, x))
    if None not in refusals:
        raise NotApplicable(f"takes no dtype of less than a byte: {refusals[0]}")


@rule("DL120", "must", "dlpack.h, DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED", "pc", since="1.1")
def subbyte_packed_default(lib: Library) -> None:
    """Elements of less than a byte are packed, unless IS_SUBBYTE_TYPE_PADDED is set."""
    either(lib, exports_packed, takes_packed)


@rule("DL121", "must", "dlpack.h, DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED", "p", since="1.1")
def subbyte_padded_flag(lib: Library) -> None:
    """A tensor of less than a byte an element, with one element a byte, says so by the flag."""
    codes = [1, 2, 3, 4, 5]
    views = exported_subbyte(lib, codes)
    for dtype, view in views.items():
        # Packed, the second element lies in the first byte too.
        if ctypes.string_at(view.address, 2) == bytes(codes[:2]):
            equal(f"{dtype}, flag", SUBBYTE_PADDED, view.flags & SUBBYTE_PADDED)


def exports_lowest_bits_first(lib: Library) -> None:
    views = exported_subbyte(lib, [1, 2, 3, 4, 5])
    for dtype, view in views.items():
        if not view.flags & SUBBYTE_PADDED:
            equal(f"{dtype}, lowest bits first", [1, 2, 3, 4, 5], view.to_list())


def takes_lowest_bits_first(lib: Library) -> None:
    refusals = [right_or_refused(lib, Producer([1, 2, 3, 4, 5], dtype)) for dtype in SUBBYTE]
    if None not in refusals:
        raise NotApplicable(f"takes no dtype of less than a byte: {refusals[0]}")


@rule("DL122", "must", "dlpack.h, DLDataType", "pc", since="1.1")
def subbyte_bit_order(lib: Library) -> None:
    """Packed elements lie from the least significant bit up."""
    either(lib, exports_lowest_bits_first, takes_lowest_bits_first)


def exported_bits(lib: Library, kind: str) -> dict[str, int]:
    """Of the dtypes of that kind."""
    names = [name for name in exported_dtypes(lib) if name.startswith(kind)]
    if not names:
        raise NotApplicable(f"exports no {kind}")
    return {name: exported(lib.make([0, 1], name)).dtype[1] for name in names}


@rule("DL123", "must", "dlpack.h, kDLFloat6_e2m3fn", "p", since="1.1")
def fp6_bits_producer(lib: Library) -> None:
    """A producer of float6 sets bits to 6."""
    for name, bits in exported_bits(lib, "float6_").items():
        equal(f"bits of {name}", 6, bits)


@rule("DL124", "must", "dlpack.h, kDLFloat6_e2m3fn", "c", since="1.1")
def fp6_bits_consumer(lib: Library) -> None:
    """A consumer refuses float6 with bits other than 6."""
    for code in (15, 16):
        x = Producer([1, 2, 3, 4], "uint8")
        x.tensor.dtype = DLDataType(code, 8, 1)
        refused(lib, x)


@rule("DL125", "must", "dlpack.h, kDLFloat4_e2m1fn", "p", since="1.1")
def fp4_bits_producer(lib: Library) -> None:
    """A producer of float4 sets bits to 4."""
    for name, bits in exported_bits(lib, "float4_").items():
        equal(f"bits of {name}", 4, bits)


@rule("DL126", "must", "dlpack.h, kDLFloat4_e2m1fn", "c", since="1.1")
def fp4_bits_consumer(lib: Library) -> None:
    """A consumer refuses float4 with bits other than 4."""
    x = Producer([1, 2, 3, 4], "uint8")
    x.tensor.dtype = DLDataType(17, 8, 1)
    refused(lib, x)


@rule("DL127", "should", "dlpack.h, DLDataType.code", "p")
def code_is_an_enumerator(lib: Library) -> None:
    """`code` is one of the header's values."""
    views = exported_dtypes(lib)
    for name, view in views.items():
        if view.dtype[0] not in TYPE_CODES:
            raise Broken(f"{name} by a code of the header", view.dtype[0])


def exports(lib: Library, dtype: str, values: list[Any]) -> None:
    """Exports them with the header's code and width, one after the other."""
    if dtype not in lib.dtypes():
        raise NotApplicable(f"makes no {dtype}")
    view = exported(lib.make(values, dtype))
    equal(f"code, bits and lanes of {dtype}", (*DTYPES[dtype], 1), view.dtype)
    equal("elements", values, view.to_list())


def imports(lib: Library, dtype: str, values: list[Any]) -> None:
    """Takes the header's code and width as this dtype."""
    x = Producer(values, dtype)
    takes(lib, x)
    equal("dtype", dtype, lib.dtype_of(accepted(lib, Producer(values, dtype))))


def exports_bools(lib: Library) -> None:
    exports(lib, "bool", [True, False, True])


def imports_bools(lib: Library) -> None:
    imports(lib, "bool", [True, False, True])


@rule("DL128", "must", "dlpack.h, DLDataType (examples), kDLBool", "pc")
def bool_is_a_byte(lib: Library) -> None:
    """Booleans have code 6, 8 bits and 1 lane, and lie one in a byte."""
    either(lib, exports_bools, imports_bools)


@rule("DL129", "silent", "dlpack.h, kDLBool", "c")
def bool_other_bytes(lib: Library) -> Report:
    """What a consumer makes of boolean bytes other than 0 and 1."""
    x = Producer([True, False, True], "bool")
    poke(x.address, bytes([2, 0, 255]))
    array, refusal = attempt(lib, x)
    return Report(refusal or f"2, 0, 255 become {lib.to_list(array)}")


def exports_complex(lib: Library) -> None:
    exports(lib, "complex64", [1 + 2j, 3 - 4j])
    exports(lib, "complex128", [1 + 2j, 3 - 4j])


def imports_complex(lib: Library) -> None:
    imports(lib, "complex64", [1 + 2j, 3 - 4j])
    imports(lib, "complex128", [1 + 2j, 3 - 4j])


@rule("DL130", "must", "dlpack.h, kDLComplex, DLDataType (examples)", "pc")
def complex_bits(lib: Library) -> None:
    """Complex numbers have code 5 and the bits of both parts together, the real part first."""
    either(lib, exports_complex, imports_complex)


def exports_bfloat16(lib: Library) -> None:
    exports(lib, "bfloat16", [1.0, -2.5])


def imports_bfloat16(lib: Library) -> None:
    imports(lib, "bfloat16", [1.0, -2.5])


@rule("DL131", "must", "dlpack.h, kDLBfloat", "pc")
def bfloat16_code(lib: Library) -> None:
    """bfloat16 is code 4 with 16 bits, not a float of 16."""
    either(lib, exports_bfloat16, imports_bfloat16)


@rule("DL132", "must", "dlpack.h, DLDataType.lanes", "p")
def lanes_one(lib: Library) -> None:
    """Scalars have 1 lane."""
    views = exported_dtypes(lib)
    for name, view in views.items():
        equal(f"lanes of {name}", 1, view.dtype[2])


@rule("DL133", "derived", "dlpack.h, DLTensor.data (GetDataSize)", "c")
def lanes_refused_or_right(lib: Library) -> None:
    """Lanes other than 1 are understood as vectors or refused, not read as scalars."""
    x = Producer([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], shape=[2])
    x.tensor.dtype.lanes = 4
    elements, refusal = elements_or_refusal(lib, x)
    if refusal is None:
        equal("elements", [[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0]], elements)
    x = Producer()
    x.tensor.dtype.lanes = 0
    unread(lib, x)


@rule("DL134", "derived", "dlpack.h, DLPackVersion (interpret all fields)", "c")
def bits_code_known(lib: Library) -> None:
    """A width that the code does not have is refused."""
    for code, bits in ((FLOAT, 24), (INT, 12), (UINT, 0), (BFLOAT, 32), (COMPLEX, 24), (BOOL, 32)):
        x = Producer([0] * 8, "uint64", [2])
        x.tensor.dtype = DLDataType(code, bits, 1)
        try:
            refused(lib, x)
        except Broken as broken:
            raise Broken(f"code {code} with {bits} bits refused", broken.seen) from None


@rule("DL135", "should", "dlpack.h, DLDataType", "p")
def native_endian(lib: Library) -> None:
    """An array that is not in the machine's byte order is refused by a message that says so."""
    array = lib.odd("byte order")
    try:
        view = exported(array)
    except Exception as error:
        if not any(word in str(error).lower() for word in ("endian", "byte order", "byteorder")):
            raise Broken("a message on the byte order", text(error)) from None
    else:
        raise Broken("an exception", f"a tensor of {view.dtype}")


@rule("DL136", "must", "dlpack.h, kDLOpaqueHandle", "c")
def opaque_handle(lib: Library) -> None:
    """A consumer reads no opaque handles that it has not agreed on with the producer."""
    x = Producer([1, 2, 3], "int64")
    x.tensor.dtype.code = OPAQUE_HANDLE
    unread(lib, x)


# Device and memory


@rule("DL137", "must", "dlpack.h, DLDevice.device_id", "p")
def device_id_zero_on_host(lib: Library) -> None:
    """CPU, pinned and managed memory have device_id 0."""
    array = lib.make([1.0, 2.0])
    for kind, number in (exported(array).device, array.__dlpack_device__()):
        if int(kind) in (CPU, CUDA_HOST, ROCM_HOST, CUDA_MANAGED):
            equal("device_id", 0, number)


@rule("DL138", "silent", "dlpack.h, DLDevice.device_id", "c")
def device_id_odd_on_host(lib: Library) -> Report:
    """What a consumer does with a CPU tensor whose device_id is not 0."""
    said = []
    for number in (3, -1):
        x = Producer()
        x.tensor.device.device_id = number
        said.append(f"{number}: {right_or_refused(lib, x) or 'accepted'}")
    return Report("; ".join(said))


@rule("DL139", "silent", "dlpack.h, DLTensor.data", "p")
def data_aligned_256(lib: Library) -> Report:
    """`data` is aligned to 256 bytes (the header adds that most do not, and not to rely on it: it
    is reported, not judged)."""
    view = exported(lib.make([1.0, 2.0, 3.0]))
    data = view.tensor.data or 0
    return Report(
        f"aligned to {min(data & -data, 256)} bytes, byte_offset {view.tensor.byte_offset}"
    )


@rule("DL140", "should", "dlpack.h, DLTensor.data, note", "c")
def alignment_not_relied_on(lib: Library) -> None:
    """A consumer makes the same of elements at any address that is a multiple of their size, or
    refuses them."""
    for dtype, values in (("float32", [1.0, 2.0, 3.0]), ("complex128", [1j, 2j, 3j])):
        aligned, refusal = attempt(lib, Producer(values, dtype))
        for past in (1, 2, 3):
            x = Producer([values[0]] * past + values, dtype, [3], offset=past)
            array, refusal_here = attempt(lib, x)
            if refusal is None and refusal_here is None:
                equal("elements", lib.to_list(aligned), lib.to_list(array))


@rule("DL141", "silent", "dlpack.h, DLTensor.data, note", "c")
def misaligned_to_element(lib: Library) -> Report:
    """What a consumer does with an address that is no multiple of the element's size."""
    x = Producer([1.0, 2.0, 3.0], "float64")
    poke(x.address + 1, x.content)
    x.tensor.data = x.address + 1
    return Report(right_or_refused(lib, x) or "accepted")


@rule("DL142", "must", "dlpack.h, DLTensor.byte_offset", "c")
def byte_offset_added(lib: Library) -> None:
    """The first element is at `data + byte_offset`."""
    x = Producer([8.0, 9.0, 1.0, 2.0], shape=[2], offset=2)
    x.tensor.data, x.tensor.byte_offset = x.address, 8
    right_or_refused(lib, x)


@rule("DL143", "derived", "dlpack.h, DLTensor.byte_offset", "c")
def byte_offset_and_zero_size(lib: Library) -> None:
    """byte_offset has no effect on an empty tensor."""
    x = Producer([])
    x.tensor.data = None
    takes(lib, x)
    x = Producer([])
    x.tensor.data, x.tensor.byte_offset = None, 64
    accepted(lib, x)


@rule("DL144", "should", "dlpack.h, DLTensor.data; Python specification, Implementation", "p")
def empty_data_null_producer(lib: Library) -> None:
    """The data of an empty tensor is NULL."""
    for shape in ((0,), (3, 0)):
        equal(f"data of shape {shape}", None, exported(lib.make([], shape=shape)).tensor.data)


@rule("DL145", "derived", "dlpack.h, DLTensor.data; Python specification, Implementation", "c")
def empty_data_null_consumer(lib: Library) -> None:
    """A consumer takes an empty tensor whose data is NULL."""
    x = Producer([])
    x.tensor.data = None
    accepted(lib, x)


@rule("DL146", "derived", "dlpack.h, DLTensor.data", "c")
def nonempty_data_null(lib: Library) -> None:
    """A CPU tensor with elements and without memory is refused."""
    x = Producer()
    x.tensor.data = None
    refused(lib, x)


# Shape and strides


def exports_its_axes(lib: Library) -> None:
    equal("ndim", 1, exported(lib.make([1.0, 2.0])).tensor.ndim)
    with contextlib.suppress(NotApplicable):  # of libraries of one axis
        equal("ndim of a 0-D tensor", 0, exported(lib.make([7.0], shape=())).tensor.ndim)


def refuses_negative_ndim(lib: Library) -> None:
    x = Producer()
    x.tensor.ndim = -1
    refused(lib, x)


@rule("DL147", "derived", "dlpack.h, DLTensor.ndim", "pc")
def ndim_nonnegative(lib: Library) -> None:
    """ndim is 0 or more."""
    either(lib, exports_its_axes, refuses_negative_ndim)


@rule("DL148", "derived", "dlpack.h, DLTensor.shape", "c")
def ndim_zero_shape_null(lib: Library) -> None:
    """A consumer takes a 0-D tensor whose shape is NULL."""
    takes(lib, Producer([7.0], shape=[]))
    x = Producer([7.0], shape=[])
    x.tensor.shape = None
    accepted(lib, x)


@rule("DL149", "derived", "dlpack.h, DLTensor.strides", "c")
def ndim_zero_strides_null(lib: Library) -> None:
    """A consumer takes a 0-D tensor whose strides is NULL."""
    takes(lib, Producer([7.0], shape=[]))
    x = Producer([7.0], shape=[])
    x.tensor.strides = None
    accepted(lib, x)


@rule("DL150", "must", "dlpack.h, DLTensor.shape", "p")
def shape_counts(lib: Library) -> None:
    """shape has ndim extents, whose product is the number of elements."""
    values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    for shape in ((6,), (2, 3), (3, 1, 2)):
        equal("shape", shape, exported(lib.make(values, shape=shape)).shape)


@rule("DL151", "derived", "dlpack.h, DLTensor.shape", "c")
def negative_extent_refused(lib: Library) -> None:
    """A negative extent is refused, beside an extent of 0 too."""
    for shape in ((-1,), (0, -1), (-1, -3)):
        refused(lib, Producer(shape=shape, strides=[1] * len(shape)))


@rule("DL152", "derived", "dlpack.h, DLTensor.data (GetDataSize)", "c")
def extents_overflow_refused(lib: Library) -> None:
    """Extents whose product is beyond the address space are refused."""
    for shape in ((1 << 40, 1 << 40), ((1 << 63) - 1,)):
        refused(lib, Producer(shape=shape))


@rule("DL153", "derived", "dlpack.h, DLTensor.ndim (int32)", "c")
def many_axes(lib: Library) -> None:
    """More axes than the consumer has are refused; what is taken has them all."""
    for axes in (65, 10_000):
        array, refusal = attempt(lib, Producer([7.0], shape=[1] * axes))
        if refusal is None:
            equal("axes", axes, len(lib.shape_of(array)))


@rule("DL154", "must", "dlpack.h, DLTensor.strides", "p", since="1.2")
def strides_nonnull(lib: Library) -> None:
    """With axes, strides is never NULL."""
    for values, shape in (([1.0, 2.0], (2,)), ([1.0, 2.0], (1, 2)), ([], (0,))):
        view = exported_versioned(lib.make(values, shape=shape))
        if not view.tensor.strides:
            if view.managed.version.minor < 2:
                raise NotApplicable(f"DLPack {view.version} lets it be NULL")
            raise Broken(f"strides of shape {shape}", "NULL")


@rule("DL155", "must", "dlpack.h, DLTensor.strides, note; Python specification", "c")
def strides_nonnull_legacy(lib: Library) -> None:
    """In a legacy tensor, strides of NULL mean row-major."""
    values, shape = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], (2, 3)
    takes(lib, Producer(values, shape=shape, legacy=True))
    x = Producer(values, shape=shape, legacy=True)
    x.tensor.strides = None
    accepted(lib, x)


@rule("DL156", "must", "dlpack.h, DLTensor.strides, note", "c")
def strides_null_old_minor(lib: Library) -> None:
    """In a versioned tensor of 1.0 or 1.1 strides of NULL mean row-major."""
    values, shape = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], (2, 3)
    takes(lib, Producer(values, shape=shape, legacy=False))
    for minor in (0, 1):
        x = Producer(values, shape=shape, legacy=False)
        x.version = (MAJOR, minor)
        x.tensor.strides = None
        accepted(lib, x)


@rule("DL157", "derived", "dlpack.h, DLTensor.strides", "c", since="1.2")
def strides_null_new_minor(lib: Library) -> None:
    """Strides of NULL in 1.2 or later break the rule: they are row-major or refused."""
    x = Producer([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], shape=(2, 3), legacy=False)
    x.tensor.strides = None
    right_or_refused(lib, x)


def exports_strides_in_elements(lib: Library) -> None:
    array = lib.make([0, 1, 2, 3, 4, 5], "int64", [3], strides=[2])
    view = exported(array)
    equal("elements", [0, 2, 4], view.to_list())
    if view.address == lib.address(array):
        equal("strides", (2,), view.strides)


def takes_strides_in_elements(lib: Library) -> None:
    refusal = right_or_refused(lib, Producer([0, 1, 2, 3, 4, 5], "int64", [3], [2]))
    if refusal is not None:
        raise NotApplicable(f"takes no strides: {refusal}")


@rule("DL158", "must", "dlpack.h, DLTensor.strides", "pc")
def strides_in_elements(lib: Library) -> None:
    """Strides count elements, not bytes."""
    either(lib, exports_strides_in_elements, takes_strides_in_elements)


@rule("DL159", "must", "dlpack.h, DLTensor.strides", "p")
def strides_valid_for_every_axis(lib: Library) -> None:
    """Each of the ndim strides can be read, those of extents 1 and 0 too."""
    for length, shape in ((4, (1, 4)), (4, (4, 1)), (1, (1, 1)), (0, (0, 3))):
        view = exported(lib.make([1.0] * length, shape=shape))
        for stride in view.strides:
            # The value does not matter for these axes, but it has one.
            if abs(stride) > 1 << 20:
                raise Broken(f"strides of shape {shape}", view.strides)


@rule("DL160", "derived", "dlpack.h, DLTensor.strides", "c")
def strides_of_extent_one_ignored(lib: Library) -> None:
    """What a consumer makes does not depend on the stride of an axis of extent 1."""
    values = [1.0, 2.0, 3.0, 4.0]
    takes(lib, Producer(values, shape=(1, 4)))
    accepted(lib, Producer(values, shape=(1, 4), strides=(12345, 1)))


@rule("DL161", "must", "dlpack.h, DLTensor.strides; array API, Data interchange", "c")
def strided_right_or_refused(lib: Library) -> None:
    """Strided, transposed and broadcast tensors have the right elements, or are refused."""
    values = [float(i) for i in range(12)]
    for shape, strides in (((3, 2), (4, 1)), ((4, 3), (1, 4)), ((6,), (2,)), ((2, 3), (0, 1))):
        right_or_refused(lib, Producer(values, shape=shape, strides=strides))


def exports_negative_strides(lib: Library) -> None:
    array = lib.make([1.0, 2.0, 3.0], shape=[3], strides=[-1], offset=2)
    with contextlib.suppress(BufferError):
        equal("elements", [3.0, 2.0, 1.0], exported(array).to_list())


def takes_negative_strides(lib: Library) -> None:
    right_or_refused(lib, Producer([1.0, 2.0, 3.0], strides=[-1], offset=2))


@rule("DL162", "derived", "dlpack.h, DLTensor.strides (int64)", "pc")
def negative_strides(lib: Library) -> None:
    """Negative strides are understood or refused."""
    either(lib, exports_negative_strides, takes_negative_strides)


@rule("DL163", "derived", "dlpack.h, DLTensor.strides", "c")
def stride_reach_overflow(lib: Library) -> None:
    """Strides that reach beyond the address space are refused."""
    for stride in (1 << 62, -(1 << 62)):
        refused(lib, Producer(strides=[stride]))


@rule("DL164", "silent", "dlpack.h, DLTensor.strides; DLPACK_FLAG_BITMASK_READ_ONLY", "pc")
def overlapping_write(lib: Library) -> Report:
    """Whether tensors with a stride of 0, whose elements overlap, can be written."""
    said = []
    with contextlib.suppress(NotApplicable):
        view = exported_versioned(lib.make([1.0], shape=[3], strides=[0]))
        said.append(f"exported {'with' if view.flags & READ_ONLY else 'without'} READ_ONLY")
    array, refusal = attempt(lib, Producer([1.0], shape=[3], strides=[0]))
    if refusal is not None:
        return Report("; ".join([*said, f"not taken: {refusal}"]))
    try:
        lib.write(array, 2.0)
    except Exception as error:
        return Report("; ".join([*said, f"taken, not writable: {text(error)}"]))
    return Report("; ".join([*said, f"taken, [1, 1, 1] written at 0 becomes {lib.to_list(array)}"]))


# The whole


@rule("DL165", "must", "array API, __dlpack__, dl_device; __dlpack_device__", "p")
def same_device_as_announced(lib: Library) -> None:
    """The device in the tensor is that of `__dlpack_device__`."""
    array = lib.make([1.0, 2.0])
    kind, number = array.__dlpack_device__()
    equal("device", (int(kind), number), exported(array).device)


STANDARD = ["bool", *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64))]
STANDARD += ["float32", "float64", "complex64", "complex128"]
SHAPES = [(), (0,), (4,), (2, 2), (1, 4, 1)]


def elements_of(dtype: str) -> list[Any]:
    """Four, with the ends of the dtype's range."""
    code, bits = DTYPES[dtype]
    if code == BOOL:
        return [True, False, False, True]
    if code in (INT, UINT):
        low = -(1 << (bits - 1)) if code == INT else 0
        return [low, low + (1 << bits) - 1, 1, 2]
    return [1.5 - 2.5j, 2j, -1j, 0j] if code == COMPLEX else [1.5, -2.5, float("inf"), 0.0]


def exports_every_dtype(lib: Library) -> None:
    for dtype in [name for name in STANDARD if name in lib.dtypes()]:
        exports(lib, dtype, elements_of(dtype))
        for x in [Producer(elements_of(dtype)[: size_of(shape)], dtype, shape) for shape in SHAPES]:
            with contextlib.suppress(NotApplicable):  # of libraries of one axis
                view = exported(lib.make(x.values, dtype, x.shape))
                equal(f"elements of {dtype}, {x.shape}", x.to_list(), view.to_list())


def imports_every_dtype(lib: Library) -> None:
    for dtype in [name for name in STANDARD if name in lib.dtypes()]:
        for shape in SHAPES:
            x = Producer(elements_of(dtype)[: size_of(shape)], dtype, shape)
            array, refusal = attempt(lib, x)
            if refusal is not None:
                raise Broken(f"{dtype}, {shape} taken", refusal)
            equal(f"dtype of {dtype}, {shape}", dtype, lib.dtype_of(array))
            equal(f"elements of {dtype}, {shape}", x.to_list(), lib.to_list(array))


def size_of(shape: tuple[int, ...]) -> int:
    return 0 if 0 in shape else 4 if shape else 1


@rule("DL166", "must", "array API, Data interchange mechanisms, 2", "pc")
def dtype_round_trip(lib: Library) -> None:
    """Every dtype of the standard that the library has is exchanged with its elements, in all
    ranks, 0-D and empty too."""
    either(lib, exports_every_dtype, imports_every_dtype)


@rule("DL167", "derived", "array API, Data interchange mechanisms, 4", "pc")
def nan_bits_survive(lib: Library) -> None:
    """Sharing keeps all bits: of NaNs with a payload, of -0.0, of denormal numbers."""
    for dtype, size, patterns in (
        ("float32", 4, [0x7FC12345, 0x7F800001, 0xFFC00000, 0x80000000, 0x00000001]),
        ("float64", 8, [0x7FF8000000012345, 0x7FF0000000000001, 0x8000000000000000, 1]),
    ):
        content = b"".join(pattern.to_bytes(size, "little") for pattern in patterns)
        x = Producer([0.0] * len(patterns), dtype)
        poke(x.address, content)
        array, refusal = attempt(lib, x)
        if refusal is not None:
            raise NotApplicable(refusal)
        view = exported(array)
        equal(
            f"bytes of {dtype}", content.hex(), ctypes.string_at(view.address, len(content)).hex()
        )
