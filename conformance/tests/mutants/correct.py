"""Libraries that keep every rule in another way than the kit's own."""

import ctypes
import math
import weakref

from dlpack_conformance.abi.capsule import Py_DecRef, Py_IncRef
from dlpack_conformance.abi.dlpack import DTYPES, MINOR, SUBBYTE_PADDED, DLManagedTensorVersioned
from dlpack_conformance.hooks import kit_reference as hooks
from dlpack_conformance.kit import reference
from dlpack_conformance.kit.memory import aligned
from dlpack_conformance.kit.table import make_table
from dlpack_conformance.kit.values import row_major
from dlpack_conformance.rule import NotApplicable

from mutants import exports, mutant, reads
from mutants.exchange import finds, gives, says_stream, tables, takes
from mutants.intake import asks, gets


@exports(None)
def subbyte_is_padded_and_says_so(export):
    array = export.array
    if DTYPES[array.dtype][1] < 8 and hasattr(export.managed, "flags"):
        codes = [reference.read_one(array.address, i, array.dtype) for i in range(array.shape[0])]
        export.managed.dl_tensor.data = aligned(bytes(codes))
        export.managed.flags |= SUBBYTE_PADDED


@exports(None)
def byte_offset_leads_to_the_first_element(export):
    if math.prod(export.array.shape):
        export.managed.dl_tensor.data -= 16
        export.managed.dl_tensor.byte_offset = 16


@reads(None)
def all_that_is_not_row_major_is_refused(seen):
    axes = seen.tensor.ndim > 0 and seen.tensor.shape and 1 not in seen.shape
    if axes and seen.strides != row_major(seen.shape):
        raise BufferError("it is strided")


@reads(None)
def newer_minor_is_refused(seen):
    if seen.versioned and seen.managed.version.minor > MINOR:
        raise BufferError("another minor version")


@reads(None)
def strides_of_null_are_refused_since_1_2(seen):
    new = seen.versioned and seen.managed.version.minor >= 2
    if new and seen.tensor.ndim > 0 and not seen.tensor.strides:
        raise BufferError("there are no strides")


@reads(None)
def host_with_a_number_is_refused(seen):
    if seen.tensor.device.device_id:
        raise BufferError("the CPU has no number")


@mutant(None)
def arrays_have_one_axis_without_gaps():
    make = hooks.make

    def planted(values, dtype="float32", shape=None, *, strides=None, offset=0, readonly=False):
        if strides is not None or offset or readonly or len(shape or [0]) != 1:
            raise NotApplicable("one axis, without gaps, which can be written")
        return make(values, dtype, shape)

    hooks.make = planted


@mutant(None)
def producer_has_legacy_tensors_only():
    export = reference.Array.__dlpack__

    def planted(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        return export(self, stream=stream, dl_device=dl_device, copy=copy)

    reference.Array.__dlpack__ = planted


# Consumers


@asks(None)
def copies_are_the_consumers(from_dlpack, x, *, device=None, copy=None):
    if device is not None or copy is not True:
        return from_dlpack(x, device=device, copy=copy)
    return from_dlpack(x).copied()


@asks(None)
def there_is_no_other_device(from_dlpack, x, *, device=None, copy=None):
    if device is not None:
        raise BufferError("device must be None")
    return from_dlpack(x, copy=copy)


@gets(None)
def keywords_are_left_out_one_by_one(x, **keywords):
    try:
        return x.__dlpack__(**keywords)
    except TypeError:
        if "max_version" not in keywords or keywords.get("copy") is False:
            raise
        del keywords["max_version"]
        return x.__dlpack__(**keywords)


@gets(None)
def stream_is_said_to_be_none(x, **keywords):
    return x.__dlpack__(**{"stream": None} | keywords)


@asks(None)
def copies_that_were_ruled_out_are_a_valueerror(from_dlpack, x, *, device=None, copy=None):
    try:
        return from_dlpack(x, device=device, copy=copy)
    except BufferError as error:
        if device is None or copy is not False:
            raise
        raise ValueError(str(error)) from error


@finds(None)
def tables_are_not_used(table_of, kind):
    return None


KNOWN = weakref.WeakKeyDictionary()


@finds(None)
def table_is_remembered_as_long_as_its_type(table_of, kind):
    if kind not in KNOWN:
        KNOWN[kind] = table_of(kind)
    return KNOWN[kind]


# Tables


@mutant(None)
def there_is_no_table():
    del reference.Array.__dlpack_c_exchange_api__


@tables(None)
def nothing_is_lent():
    return {"lend": None}


@tables(None)
def an_older_table_is_there_too():
    return {"prev_api": ctypes.addressof(make_table(**reference.API, version=(1, 2)))}


@says_stream(None)
def work_stream_is_null_where_there_is_none(correct, kind, number, out):
    out[0] = reference.STREAMS.get(kind)


@gives(None)
def byte_offset_of_the_table_leads_to_the_first_element(correct, x, out):
    correct(x, out)
    tensor = DLManagedTensorVersioned.from_address(out[0]).dl_tensor
    if tensor.data:
        tensor.data, tensor.byte_offset = tensor.data - 16, 16


@takes(None)
def object_is_a_copy(correct, managed, out):
    correct(managed, out)
    array = ctypes.cast(out[0], ctypes.py_object).value
    copy = array.copied()
    copy.readonly = array.readonly
    Py_IncRef(copy)
    Py_DecRef(array)
    out[0] = id(copy)
