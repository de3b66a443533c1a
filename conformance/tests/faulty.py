"""A library made for the purpose: the kit's own with five faults, each of another group and each
seen in a real library. Importing it plants them; `test_faulty.py` says which they are."""

import ctypes

from dlpack_conformance.abi.dlpack import IS_COPIED
from dlpack_conformance.hooks import kit_reference as right
from dlpack_conformance.kit import reference, reference_arrow
from dlpack_conformance.kit.arrow_consumer import array_in
from dlpack_conformance.kit.arrow_reader import Reader

globals().update({name: verb for name, verb in vars(right).items() if not name.startswith("_")})
export, requested = reference.export, reference_arrow.requested


def export_without_word(array, versioned, flags):
    return export(array, versioned, flags & ~IS_COPIED)


reference.export = export_without_word


def take(x, **keywords):
    if not hasattr(x, "__dlpack__"):
        raise TypeError("an object with __dlpack__ is expected")
    return right.take(x, **keywords)


class Slice(reference_arrow.Data):
    def __init__(self, whole, start, length):
        super().__init__(whole.field, whole.values[start : start + length], whole.offset + start)
        self.nulls = whole.values.count(None)

    def __arrow_c_array__(self, requested_schema=None):
        schema, array = super().__arrow_c_array__(requested_schema)
        array_in(array).null_count = self.nulls
        return schema, array


arrow_slice = Slice


class Trusting(Reader):
    def last_error(self):
        text = super().last_error()
        return ctypes.string_at(0) if text is None and not self.device else text


reference_arrow.Reader = Trusting


def requested_somehow(field, request):
    try:
        return requested(field, request)
    except ValueError:
        return field


reference_arrow.requested = requested_somehow
