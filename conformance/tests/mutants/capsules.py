"""AR4xx, capsules and methods."""

import ctypes
import dataclasses
from ctypes import addressof

from dlpack_conformance.abi.arrow import (
    ARROW_ARRAY,
    ARROW_ARRAY_STREAM,
    ARROW_DEVICE_ARRAY,
    ARROW_DEVICE_ARRAY_STREAM,
    ARROW_SCHEMA,
    RELEASE,
    ArrowArray,
    ArrowArrayStream,
    ArrowDeviceArray,
)
from dlpack_conformance.abi.capsule import (
    CAPSULE_DESTRUCTOR,
    PyCapsule_GetName,
    PyCapsule_GetPointer,
    python,
)
from dlpack_conformance.hooks import kit_reference as hooks
from dlpack_conformance.kit import reference_arrow
from dlpack_conformance.kit.arrow_field import Field
from dlpack_conformance.kit.native import address_of
from dlpack_conformance.kit.reference_arrow import Chunks, Data, DeviceChunks, Taken, capsule_of

from mutants import alike, crash, mutant
from mutants.planting import around, arrays, device_streams, readers, streams, taken

# Names


def named(right_name, name):
    """Capsules of one kind have another name."""
    make, kind = reference_arrow.capsule_of, reference_arrow.KINDS_IN[right_name]
    reference_arrow.KINDS_IN[name] = kind
    reference_arrow.DESTRUCTORS[name] = reference_arrow.destructor_of(name)
    reference_arrow.capsule_of = lambda structure, its: make(
        structure, name if its == right_name else its
    )


@mutant(
    "AR401",
    **alike(
        "AR204 AR220 AR221 AR222 AR223 AR224 AR225 AR234 AR236 AR403 AR404 AR409 "
        "AR415 AR418 AR422 BR02",
        "no array is found",
    ),
)
def array_is_named_array():
    named(ARROW_ARRAY, b"array")


@mutant(
    "AR401",
    **alike(
        "AR107 AR204 AR220 AR221 AR222 AR223 AR224 AR225 AR234 AR236 AR403 AR404 "
        "AR408 AR409 AR411 AR413 AR415 AR418 AR420 AR422 BR02",
        "no schema is found",
    ),
)
def schema_is_named_schema():
    named(ARROW_SCHEMA, b"schema")


@mutant(
    "AR401",
    **alike(
        "AR117 AR301 AR302 AR303 AR304 AR306 AR309 AR312 AR316 AR319 AR320 AR403 "
        "AR404 AR410 AR411 AR418 AR420 AR422",
        "no stream is found",
    ),
)
def stream_is_named_stream():
    named(ARROW_ARRAY_STREAM, b"arrow_stream")


@mutant("AR401", **alike("AR409 AR508 AR509 AR511 AR514 AR524", "no device array is found"))
def device_array_is_named_array():
    named(ARROW_DEVICE_ARRAY, ARROW_ARRAY)


@mutant(
    "AR401",
    **alike(
        "AR403 AR404 AR411 AR418 AR420 AR422 AR511 AR514 AR527 AR528", "no device stream is found"
    ),
)
def device_stream_is_named_stream():
    named(ARROW_DEVICE_ARRAY_STREAM, b"arrow_device_stream")


@around(reference_arrow, "live")("AR402")
def name_is_not_asked_for(right, kind, capsule, name):
    return right(kind, capsule, PyCapsule_GetName(capsule))


@around(reference_arrow, "Reader")("AR402")
def name_of_a_stream_is_not_asked_for(right, capsule):
    name = PyCapsule_GetName(capsule)
    if name not in (ARROW_ARRAY_STREAM, ARROW_DEVICE_ARRAY_STREAM):
        capsule = capsule_of(
            ArrowArrayStream.from_address(PyCapsule_GetPointer(capsule, name)), ARROW_ARRAY_STREAM
        )
    return right(capsule)


# Destructors


def without_destructor(name):
    reference_arrow.DESTRUCTORS[name] = CAPSULE_DESTRUCTOR()


@mutant("AR403")
def capsule_of_an_array_leaks():
    without_destructor(ARROW_ARRAY)


@mutant("AR403")
def capsule_of_a_schema_leaks():
    without_destructor(ARROW_SCHEMA)


@mutant("AR403")
def capsule_of_a_stream_leaks():
    without_destructor(ARROW_ARRAY_STREAM)


def destroyed_with(change):
    """`change(structure, release)` is the end of each capsule; `release` was the structure's."""
    make, dying, releases = reference_arrow.capsule_of, reference_arrow.release_dying, {}

    def planted_make(structure, name):
        base = structure.array if name == ARROW_DEVICE_ARRAY else structure
        releases[addressof(structure)] = base.release
        return make(structure, name)

    def planted_dying(capsule, name, kind):
        address = reference_arrow.dying_capsule_pointer(capsule, name)
        if kind in (ArrowArray, ArrowDeviceArray):
            change(ArrowArray.from_address(address), releases.get(address))
        else:
            dying(capsule, name, kind)

    reference_arrow.capsule_of, reference_arrow.release_dying = planted_make, planted_dying


@mutant("AR404", **alike("AR403 BR02", "released twice"))
def destructor_releases_what_was_moved_out():
    def end(array, release):
        callback = release or array.release
        if callback:
            RELEASE(callback)(addressof(array))

    destroyed_with(end)


@mutant(
    "AR404",
    **alike(
        "AR220 AR221 AR222 AR223 AR224 AR225 AR234 AR236 AR237 AR418 AR524 BR02 BR07 BR10",
        "what was released is dropped",
    ),
)
def destructor_calls_null():
    def end(array, _release):
        if not array.release:
            crash()
        RELEASE(array.release)(addressof(array))

    destroyed_with(end)


# Consumers


def copied(structure):
    return type(structure).from_buffer_copy(structure)


@around(reference_arrow, "move")(
    "AR405", **alike("AR104 AR229 AR232 AR407 AR524 AR525 BR02", "two owners")
)
def array_is_copied(right, structure):
    return copied(structure) if isinstance(structure, ArrowArray) else right(structure)


class Borrowed(Taken):
    """What is left in its capsule, which releases it."""

    def __del__(self):
        pass


@mutant("AR405")
def array_is_used_in_its_capsule():
    def take(x):
        if not hasattr(x, "__arrow_c_array__"):
            return reference_arrow.take_device_array(x)
        schema, capsule = x.__arrow_c_array__()
        source = reference_arrow.live(ArrowArray, capsule, ARROW_ARRAY)
        borrowed = Borrowed(reference_arrow.take_schema(schema), source)
        borrowed.capsule = capsule
        return borrowed

    hooks.take_array = take


@readers("AR405", **alike("AR313 AR407 AR528", "two owners"))
class StreamIsUsedInItsCapsule(reference_arrow.Reader):
    def __init__(self, capsule):
        super().__init__(capsule)
        kind, name = type(self.structure), PyCapsule_GetName(capsule)
        kind.from_address(PyCapsule_GetPointer(capsule, name)).release = self.structure.release


def not_live(kind, capsule, name):
    return kind.from_address(PyCapsule_GetPointer(capsule, name))


@mutant("AR406", AR228="released is not seen")
def released_structure_is_taken():
    reference_arrow.live = not_live


@around(reference_arrow, "live")("AR406", AR228="released is not seen")
def released_array_crashes(right, kind, capsule, name):
    structure = not_live(kind, capsule, name)
    if kind is ArrowArray and not structure.release:
        crash()
    return right(kind, capsule, name)


@readers("AR406")
class ReleasedStreamIsRead(reference_arrow.Reader):
    def __init__(self, capsule):
        name = PyCapsule_GetName(capsule)
        kind = reference_arrow.STREAM_KINDS[name]
        source = kind.from_address(PyCapsule_GetPointer(capsule, name))
        if not source.release:
            crash()
        super().__init__(capsule)


@taken("AR407", AR229="refusals")
class RefusedArrayLeaks(Taken):
    def __init__(self, field, array):
        release, array.release = array.release, None
        super().__init__(field, array)
        array.release = release


@taken("AR407", AR229="refusals")
class RefusedArrayIsReleasedTwice(Taken):
    def __init__(self, field, array):
        release = array.release
        try:
            super().__init__(field, array)
        except ValueError:
            RELEASE(release)(addressof(array))
            array.release = release
            raise


@mutant("AR407", AR229="refusals")
def refused_schema_leaks():
    def take(capsule):
        schema = reference_arrow.move(
            reference_arrow.live(reference_arrow.ArrowSchema, capsule, ARROW_SCHEMA)
        )
        field = reference_arrow.read_field(schema)
        reference_arrow.check(field)
        reference_arrow.release(schema)
        return field

    reference_arrow.take_schema = hooks.take_schema = take


# Methods


@arrays("AR408", **alike("AR420 AR422", "no schema is found"))
class SchemaMethodGivesATuple(Data):
    def __arrow_c_schema__(self):
        return (super().__arrow_c_schema__(),)


@arrays(
    "AR409",
    **alike(
        "AR220 AR221 AR222 AR223 AR224 AR225 AR234 AR236 AR404 AR411 AR413 AR415 AR418 AR420 AR422",
        "no array is found",
    ),
)
class PairIsReversed(Data):
    def __arrow_c_array__(self, requested_schema=None):
        return super().__arrow_c_array__(requested_schema)[::-1]


@arrays(
    "AR409",
    **alike(
        "AR220 AR221 AR222 AR223 AR224 AR225 AR234 AR236 AR411 AR413 AR415 AR418 AR420 AR422",
        "no array is found",
    ),
)
class ArrayMethodGivesTheArrayAlone(Data):
    def __arrow_c_array__(self, requested_schema=None):
        return super().__arrow_c_array__(requested_schema)[1]


@arrays(
    "AR409", **alike("AR401 AR403 AR404 AR411 AR413 AR415 AR418 AR420 AR422", "no array is found")
)
class PairIsAList(Data):
    def __arrow_c_array__(self, requested_schema=None):
        return list(super().__arrow_c_array__(requested_schema))


@streams(
    "AR410",
    **alike(
        "AR117 AR301 AR302 AR303 AR304 AR306 AR309 AR312 AR316 AR319 AR320 AR411 AR418 AR420 AR422",
        "no stream is found",
    ),
)
class StreamMethodGivesATuple(Chunks):
    def __arrow_c_stream__(self, requested_schema=None):
        return (super().__arrow_c_stream__(requested_schema),)


@streams(
    "AR410",
    **alike(
        "AR117 AR301 AR302 AR303 AR304 AR306 AR309 AR312 AR316 AR319 AR320 AR401 AR404 AR418 AR422",
        "no stream is found",
    ),
)
class StreamMethodGivesASchemaToo(Chunks):
    def __arrow_c_stream__(self, requested_schema=None):
        return self.__arrow_c_schema__(), super().__arrow_c_stream__(requested_schema)


@arrays("AR411")
class RequestHasAnotherName(Data):
    def __arrow_c_array__(self, schema=None):
        return super().__arrow_c_array__(schema)


@arrays("AR411")
class RequestIsPositionalOnly(Data):
    def __arrow_c_array__(self, requested_schema=None, /):
        return super().__arrow_c_array__(requested_schema)


@arrays("AR411", AR413="it cannot be asked")
class RequestIsByKeywordOnly(Data):
    def __arrow_c_array__(self, *, requested_schema=None):
        return super().__arrow_c_array__(requested_schema)


@arrays("AR411", AR413="it cannot be asked")
class RequestIsLeftOut(Data):
    def __arrow_c_array__(self):
        return super().__arrow_c_array__()


@arrays(
    "AR411",
    **alike(
        "AR220 AR221 AR222 AR223 AR224 AR225 AR234 AR236 AR401 AR403 AR404 AR409 "
        "AR418 AR420 AR422 AR423",
        "it cannot be asked",
    ),
)
class RequestHasNoDefault(Data):
    def __arrow_c_array__(self, requested_schema):
        return super().__arrow_c_array__(requested_schema)


@streams("AR411")
class RequestOfAStreamIsByKeywordOnly(Chunks):
    def __arrow_c_stream__(self, *, requested_schema=None):
        return super().__arrow_c_stream__(requested_schema)


@streams("AR411")
class RequestOfAStreamHasAnotherName(Chunks):
    def __arrow_c_stream__(self, schema=None):
        return super().__arrow_c_stream__(schema)


# Requests


def asked_for(request):
    schema = reference_arrow.ArrowSchema
    address = PyCapsule_GetPointer(request, ARROW_SCHEMA)
    return reference_arrow.read_field(schema.from_address(address))


@around(reference_arrow, "requested")("AR415")
def request_that_cannot_be_met_gives_nulls(right, field, request):
    found = right(field, request)
    return (
        Field("n") if request is not None and asked_for(request).format != found.format else found
    )


@around(reference_arrow, "requested")("AR413")
def request_is_not_met(right, field, request):
    right(field, request)
    return field


@around(reference_arrow, "requested")("AR413")
def request_for_another_width_is_not_met(right, field, request):
    found = right(field, request)
    return found if found.format in ("u", "U", "vu", "z", "Z", "vz") else field


@around(reference_arrow, "requested")("AR414")
def request_for_other_columns_is_forgotten(right, field, request):
    if request is not None and len(asked_for(request).children) != len(field.children):
        return field
    return right(field, request)


@around(reference_arrow, "requested")("AR414")
def request_for_fewer_columns_is_met(right, field, request):
    if request is not None and field.format == "+s":
        return dataclasses.replace(field, children=asked_for(request).children)
    return right(field, request)


@arrays("AR415")
class RequestedTypeIsSaidOnly(Data):
    """The array keeps the data's own layout."""

    def __arrow_c_array__(self, requested_schema=None):
        schema = super().__arrow_c_array__(requested_schema)[0]
        return schema, super().__arrow_c_array__()[1]


@arrays("AR415", AR413="wrong values")
class RequestedTypeIsNotSaid(Data):
    """The schema is that of the data as it was."""

    def __arrow_c_array__(self, requested_schema=None):
        return super().__arrow_c_schema__(), super().__arrow_c_array__(requested_schema)[1]


@arrays("AR415")
class RequestedTypeReinterpretsTheBytes(Data):
    def __arrow_c_array__(self, requested_schema=None):
        schema, array = super().__arrow_c_array__(requested_schema)
        if requested_schema is not None and self.field.format in "iI":
            asked = asked_for(requested_schema)
            if asked.format in ("f", "l", "tdD", "g"):
                schema = Data(Field(asked.format), []).__arrow_c_schema__()
        return schema, array


@around(reference_arrow, "requested")("AR417")
def request_is_not_asked_for_its_name(right, field, request):
    if request is not None and PyCapsule_GetName(request) != ARROW_SCHEMA:
        crash()
    return right(field, request)


# Again


@arrays(
    "AR418",
    **alike("AR234 AR401 AR403 AR404 AR411 AR420 AR422 AR423", "exports are not independent"),
)
class ArrayIsExportedOnce(Data):
    def __arrow_c_array__(self, requested_schema=None):
        if self.offset is None:
            raise ValueError("exported already")
        pair = super().__arrow_c_array__(requested_schema)
        self.offset = None
        return pair


@arrays("AR418", AR234="exports are not independent")
class StructureIsShared(Data):
    def __arrow_c_array__(self, requested_schema=None):
        if requested_schema is not None:
            return super().__arrow_c_array__(requested_schema)
        if not hasattr(self, "array"):
            self.array = ArrowArray()
            reference_arrow.make_array(self.field, self.values, self.offset, self.array)
        return super().__arrow_c_schema__(), capsule_of(self.array, ARROW_ARRAY)


@arrays("AR418", AR234="exports are not independent")
class MemoryIsFreedByTheFirstRelease(Data):
    def __arrow_c_array__(self, requested_schema=None):
        if requested_schema is not None:
            return super().__arrow_c_array__(requested_schema)
        if not hasattr(self, "array"):
            self.array = ArrowArray()
            reference_arrow.make_array(self.field, self.values, self.offset, self.array)
        return super().__arrow_c_schema__(), capsule_of(copied(self.array), ARROW_ARRAY)


@streams("AR418")
class StreamIsExportedOnce(Chunks):
    def __arrow_c_stream__(self, requested_schema=None):
        if self.chunks is None:
            raise ValueError("exported already")
        capsule = super().__arrow_c_stream__(requested_schema)
        self.chunks = [] if self.once else None
        return capsule


@arrays("AR420")
class SchemaMethodSaysAnotherType(Data):
    def __arrow_c_schema__(self):
        wider = {"i": "l", "u": "U", "f": "g", "b": "C"}
        form = wider.get(self.field.format, self.field.format)
        return Data(dataclasses.replace(self.field, format=form), []).__arrow_c_schema__()


@streams("AR420")
class SchemaMethodOfAStreamForgetsTheLastColumn(Chunks):
    def __arrow_c_schema__(self):
        shorter = dataclasses.replace(self.field, children=self.field.children[:-1])
        return Data(shorter, []).__arrow_c_schema__()


class ShortDeviceArray(ctypes.Structure):
    _fields_ = (
        ("array", ArrowArray),
        ("device_id", ctypes.c_int32),
        ("device_type", ctypes.c_int32),
        ("sync_event", ctypes.c_void_p),
        ("reserved", ctypes.c_int64 * 3),
    )


@around(reference_arrow, "capsule_of")("AR422", **alike("AR508 AR509", "members are elsewhere"))
def device_id_has_32_bits(right, structure, name):
    if name != ARROW_DEVICE_ARRAY:
        return right(structure, name)
    short = ShortDeviceArray(structure.array, structure.device_id, structure.device_type)
    KEPT.append((structure, short))
    return right(short, name)


KEPT = []


@device_streams(
    "AR422",
    **alike("AR403 AR404 AR411 AR418 AR420 AR511 AR514 AR527 AR528", "members are elsewhere"),
)
class DeviceTypeOfAStreamIsItsLastMember(DeviceChunks):
    def __arrow_c_device_stream__(self, requested_schema=None, **keywords):
        capsule = super().__arrow_c_device_stream__(requested_schema, **keywords)
        address = PyCapsule_GetPointer(capsule, ARROW_DEVICE_ARRAY_STREAM)
        content = ctypes.string_at(address, 48)
        ctypes.memmove(address, content[8:] + content[:8], 48)
        return capsule


@mutant("AR423", AR403="it does nothing else")
def destructor_clears_the_exception():
    """It is compiled, as ours in ctypes lose it anyhow."""
    clear = CAPSULE_DESTRUCTOR(address_of(python.PyErr_Clear))
    reference_arrow.DESTRUCTORS.update(dict.fromkeys(reference_arrow.DESTRUCTORS, clear))


# Consumers and objects


@around(hooks, "take_array")("AR424")
def export_to_c_goes_first(right, x):
    if hasattr(x, "_export_to_c"):
        schema, array = reference_arrow.ArrowSchema(), ArrowArray()
        x._export_to_c(addressof(array), addressof(schema))
    return right(x)


def of_the_kit(x):
    return type(x).__module__.startswith("dlpack_conformance.kit.")


@around(hooks, "take_array")("AR425", AR424="it takes none")
def arrays_of_unknown_classes_are_refused(right, x):
    if not of_the_kit(x):
        raise TypeError(f"{type(x).__name__} is no array")
    return right(x)


@around(hooks, "take_stream")("AR425")
def streams_of_unknown_classes_are_refused(right, x):
    if not of_the_kit(x):
        raise TypeError(f"{type(x).__name__} is no stream")
    return right(x)


@around(hooks, "take_array")("AR425", AR424="it takes none")
def arrays_without_the_schema_method_are_refused(right, x):
    if hasattr(x, "__arrow_c_array__") and not hasattr(x, "__arrow_c_schema__"):
        raise TypeError("there is no schema")
    return right(x)
