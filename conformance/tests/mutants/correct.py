"""Libraries that keep every rule in another way than the kit's own."""

import math

from dlpack_conformance.abi.dlpack import DTYPES, MINOR, SUBBYTE_PADDED
from dlpack_conformance.hooks import kit_reference as hooks
from dlpack_conformance.kit import reference
from dlpack_conformance.kit.memory import aligned
from dlpack_conformance.kit.values import row_major
from dlpack_conformance.rule import NotApplicable

from mutants import exports, mutant, reads


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

    def planted(self, *, stream=None):
        return export(self, stream=stream)

    reference.Array.__dlpack__ = planted


@mutant(None)
def consumer_asks_for_legacy_tensors_only():
    def planted(x):
        imported = reference.Imported(x.__dlpack__())
        imported.take()
        return reference.read(imported, reference.Owner(imported))

    hooks.from_dlpack = planted
