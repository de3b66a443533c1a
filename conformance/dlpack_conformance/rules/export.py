"""DL3xx: `__dlpack__` and `__dlpack_device__`, the methods of a producer."""

import contextlib
import enum
import functools
import gc
import operator
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from dlpack_conformance.abi.capsule import PyCapsule_GetName
from dlpack_conformance.abi.dlpack import (
    CPU,
    CUDA,
    DEVICE_TYPES,
    LEGACY,
    MAJOR,
    MINOR,
    ROCM,
)
from dlpack_conformance.kit.consumer import Imported, exported
from dlpack_conformance.kit.judge import either, equal, exported_versioned, text
from dlpack_conformance.kit.resident import ROUNDS, leaks
from dlpack_conformance.kit.streams import (
    LEGACY_DEFAULT,
    PER_THREAD_DEFAULT,
    ROCM_DEFAULT,
    Streams,
)
from dlpack_conformance.library import Library
from dlpack_conformance.rule import Broken, NotApplicable, Report, rule

LATEST = (MAJOR, MINOR)


def call(array: Any, **keywords: Any) -> tuple[Any, Exception | None]:
    """(capsule, None), or (None, exception) if `__dlpack__` raises it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a consumer should name a version
        try:
            return array.__dlpack__(**keywords), None
        except Exception as error:
            return None, error


def raises(kinds: Any, array: Any, **keywords: Any) -> None:
    """It raises one of these types, and nothing else happens."""
    capsule, error = call(array, **keywords)
    if not isinstance(error, kinds):
        names = " or ".join(k.__name__ for k in (kinds if isinstance(kinds, tuple) else (kinds,)))
        raise Broken(f"{names} of {said(keywords)}", outcome(capsule, error))


def said(keywords: dict[str, Any]) -> str:
    return f"__dlpack__({', '.join(f'{name}={value!r}' for name, value in keywords.items())})"


def outcome(capsule: Any, error: Exception | None) -> str:
    if error is not None:
        return text(error)
    return f"a capsule named {PyCapsule_GetName(capsule).decode()}"


# The signature


@rule("DL301", "must", "array API, __dlpack__", "p", since="2023.12")
def keywords(lib: Library) -> None:
    """`__dlpack__` takes stream, max_version, dl_device and copy, which are optional and None."""
    array, names = lib.make([1.0, 2.0]), ("stream", "max_version", "dl_device", "copy")
    for given in [*({name: None} for name in names), dict.fromkeys(names)]:
        capsule, error = call(array, **given)
        if error is not None and not isinstance(error, BufferError):
            raise Broken(f"a capsule of {said(given)}", outcome(capsule, error))


@rule("DL302", "must", "array API, __dlpack__", "p", since="2023.12")
def keyword_only(lib: Library) -> None:
    """Its arguments are keyword-only."""
    try:
        lib.make([1.0, 2.0]).__dlpack__(None)
    except TypeError:
        return
    raise Broken("TypeError of __dlpack__(None)", "a capsule")


@rule("DL303", "should", "array API, __dlpack__, Notes", "p", since="2023.12")
def no_arguments(lib: Library) -> None:
    """Called without arguments it gives a legacy capsule or raises BufferError."""
    legacy_or_buffer_error(lib)


def legacy_or_buffer_error(lib: Library, **given: Any) -> None:
    capsule, error = call(lib.make([1.0, 2.0]), **given)
    if not isinstance(error, BufferError) and outcome(capsule, error) != outcome_named(LEGACY):
        raise Broken(f"a legacy capsule or BufferError of {said(given)}", outcome(capsule, error))


def outcome_named(name: bytes) -> str:
    return f"a capsule named {name.decode()}"


@rule("DL304", "derived", "array API, __dlpack__ (default)", "p", since="2023.12")
def max_version_none(lib: Library) -> None:
    """max_version=None is the same as no max_version."""
    array = lib.make([1.0, 2.0])
    equal("outcome", outcome(*call(array)), outcome(*call(array, max_version=None)))


def version_for(lib: Library, asked: tuple[int, int]) -> Any:
    """Of the tensor that a consumer of this version gets; None for a legacy one."""
    capsule, error = call(lib.make([1.0, 2.0]), max_version=asked)
    if error is not None:
        raise Broken(f"a capsule of __dlpack__(max_version={asked})", text(error))
    return Imported(capsule).version


def own_version(lib: Library) -> tuple[int, int]:
    view = exported_versioned(lib.make([1.0, 2.0]))
    return view.managed.version.major, view.managed.version.minor


@rule("DL305", "should", "array API, __dlpack__, Notes", "p", since="2023.12")
def max_version_at_least_own(lib: Library) -> None:
    """A consumer that knows the producer's version, or more, gets the producer's."""
    own_version(lib)
    newest = version_for(lib, (MAJOR, 98))
    if newest is None:
        raise Broken(f"a versioned tensor for {(MAJOR, 98)}", "a legacy one")
    for asked in ((MAJOR, 99), newest):
        equal(f"version for {asked}", newest, version_for(lib, asked))


@rule("DL306", "should", "array API, __dlpack__, Notes", "p", since="2023.12")
def max_version_same_major(lib: Library) -> None:
    """A consumer of an older minor version gets a versioned tensor."""
    own_version(lib)
    version = version_for(lib, (MAJOR, 0))
    equal("major version for (1, 0)", MAJOR, version and version[0])


@rule("DL307", "should", "array API, __dlpack__, Notes", "p", since="2023.12")
def max_version_higher_major(lib: Library) -> None:
    """A consumer of a higher major version gets the producer's own version."""
    own = own_version(lib)
    for asked in ((2, 0), (99, 0)):
        version = version_for(lib, asked)
        equal(f"major version for {asked}", own[0], version and version[0])


@rule("DL308", "should", "array API, __dlpack__, Notes", "p", since="2023.12")
def max_version_lower_major(lib: Library) -> None:
    """A consumer of 0.x gets a legacy capsule or BufferError."""
    legacy_or_buffer_error(lib, max_version=(0, 8))


@rule("DL309", "derived", "array API, __dlpack__, max_version, Raises", "p", since="2023.12")
def max_version_form(lib: Library) -> None:
    """A max_version that cannot be read as a pair of ints is refused."""
    own_version(lib)
    for value in ("1.0", 1, ("1", "0"), object(), (None, None)):
        raises(Exception, lib.make([1.0, 2.0]), max_version=value)


@rule("DL310", "silent", "array API, __dlpack__, max_version", "p", since="2023.12")
def max_version_huge(lib: Library) -> Report:
    """What it does with a max_version of numbers that no C int holds, or of less than 0."""
    asked = {"(2**70, 0)": (2**70, 0), "(1, 2**70)": (1, 2**70), "(-1, 0)": (-1, 0)}
    array = lib.make([1.0, 2.0])
    results = {name: outcome(*call(array, max_version=value)) for name, value in asked.items()}
    return Report("; ".join(f"{name}: {result}" for name, result in results.items()))


# copy


def with_copy(lib: Library, array: Any, copy: bool | None) -> Imported:
    capsule, error = call(array, max_version=LATEST, copy=copy)
    if isinstance(error, TypeError):
        raise NotApplicable(f"knows no keyword copy: {text(error)}")
    if error is not None:
        raise Broken(f"a capsule with copy={copy}", text(error))
    return Imported(capsule)


@rule("DL311", "must", "array API, __dlpack__, copy", "p", since="2023.12")
def copy_true(lib: Library) -> None:
    """copy=True always copies."""
    array = lib.make([1.0, 2.0])
    view = with_copy(lib, array, True)
    if view.address == lib.address(array):
        raise Broken("memory that is not the array's", "the same address")
    with contextlib.suppress(NotApplicable):  # of libraries whose arrays are never written
        lib.write(array, 5.0)
    equal("elements", [1.0, 2.0], view.to_list())


@rule("DL312", "must", "array API, __dlpack__, copy", "p", since="2023.12")
def copy_false(lib: Library) -> None:
    """copy=False never copies, and raises BufferError where a copy is necessary."""
    array = lib.make([1.0, 2.0])
    equal("address", lib.address(array), with_copy(lib, array, False).address)
    with contextlib.suppress(NotApplicable):  # of libraries that have no such array
        raises(BufferError, lib.odd("unshared"), max_version=LATEST, copy=False)


@rule("DL313", "must", "array API, __dlpack__, copy", "p", since="2023.12")
def copy_none(lib: Library) -> None:
    """copy=None shares the memory where that is possible, and copies where it is not."""
    array = lib.make([1.0, 2.0])
    equal("address", lib.address(array), with_copy(lib, array, None).address)
    equal("address without copy", lib.address(array), exported(array).address)
    with contextlib.suppress(NotApplicable):  # of libraries that have no such array
        scattered = lib.odd("unshared")
        if call(scattered, max_version=LATEST, copy=True)[1] is None:
            with_copy(lib, scattered, None)


@rule("DL314", "silent", "array API, __dlpack__, copy", "p", since="2023.12")
def copy_legacy(lib: Library) -> Report:
    """What copy=True gives to a consumer of legacy tensors, which cannot say what is a copy."""
    array = lib.make([1.0, 2.0])
    capsule, error = call(array, copy=True)
    if error is not None:
        return Report(text(error))
    shares = Imported(capsule).address == lib.address(array)
    return Report(f"{outcome(capsule, None)}, {'shared' if shares else 'a copy'}")


# The kit's simulated device: see kit/streams.py


def late(lib: Library, device_type: int = CUDA) -> tuple[Streams, Any]:
    """An array of [1, 2] on a simulated device, and its streams."""
    streams = Streams(device_type)
    try:
        return streams, lib.late_array(streams, [1.0, 2.0])
    except NotApplicable:
        raise NotApplicable("not run here: it needs CUDA or ROCm") from None


def read_on(streams: Streams, stream: int, view: Imported) -> Any:
    """The elements that work on this stream sees."""
    seen: list[Any] = []
    streams.launch(stream, lambda: seen.append(view.to_list()))
    streams.synchronize(stream)
    return seen[0]


def safe_on(lib: Library, device_type: int, given: Any, stream: int | None = None) -> None:
    """What the consumer puts on the stream sees finished elements, after __dlpack__(stream=given);
    without `stream` it is a new one."""
    streams, array = late(lib, device_type)
    made = streams.create() if stream is None else stream
    view = exported(array, stream=made if stream is None else given)
    equal(f"elements seen on stream {made}", [1.0, 2.0], read_on(streams, made, view))


def refuses_streams(lib: Library, device_type: int, values: Sequence[Any]) -> None:
    for value in values:
        _streams, array = late(lib, device_type)
        raises(Exception, array, max_version=LATEST, stream=value)


@rule("DL315", "must", "array API, __dlpack__, copy, note", "p", since="2023.12")
def copy_on_stream(lib: Library) -> None:
    """A copy is done on the consumer's stream (run against simulated CUDA)."""
    streams, array = late(lib)
    stream = streams.create()
    before = len(streams.calls)
    view = exported(array, copy=True, stream=stream, dl_device=array.__dlpack_device__())
    launched = [on for what, on in streams.calls[before:] if what == "launch"]
    equal("streams with new work", [stream], launched)
    equal("elements seen on that stream", [1.0, 2.0], read_on(streams, stream, view))


# dl_device


@rule("DL316", "must", "array API, __dlpack__, dl_device", "p", since="2023.12")
def dl_device_none(lib: Library) -> None:
    """Without dl_device the tensor is on the array's device."""
    arrays = [lib.make([1.0, 2.0])]
    with contextlib.suppress(NotApplicable):
        arrays.append(lib.device_array())
    for array in arrays:
        kind, number = array.__dlpack_device__()
        for given in ({}, {"dl_device": None}):
            equal("device", (int(kind), number), exported(array, **given).device)


class DeviceType(enum.IntEnum):
    """The producer's own may be another class, with the same numbers."""

    CPU = 1


@rule("DL317", "must", "array API, __dlpack__, dl_device", "p", since="2023.12")
def dl_device_form(lib: Library) -> None:
    """It takes what `__dlpack_device__` returns, and the same with an int or an enum member."""
    array = lib.make([1.0, 2.0])
    kind, number = array.__dlpack_device__()
    forms = [(kind, number), (int(kind), number)]
    forms += [(DeviceType(int(kind)), number)] if int(kind) == CPU else []
    for form in forms:
        capsule, error = call(array, max_version=LATEST, dl_device=form)
        if error is not None:
            raise Broken(f"a capsule of dl_device={form!r}", outcome(capsule, error))


@rule("DL318", "derived", "array API, __dlpack__, dl_device", "p", since="2023.12")
def dl_device_own(lib: Library) -> None:
    """The array's own device, given as dl_device, changes nothing, with copy=False too."""
    array = lib.make([1.0, 2.0])
    for given in ({}, {"copy": False}):
        view = exported(array, dl_device=array.__dlpack_device__(), **given)
        equal("address", lib.address(array), view.address)
        equal("elements", [1.0, 2.0], view.to_list())


@rule("DL319", "should", "array API, __dlpack__, dl_device", "p", since="2023.12")
def dl_device_cpu_offered(lib: Library) -> None:
    """An array of another device can be exported to the CPU by dl_device=(1, 0) (run against
    simulated CUDA, and libraries with a device)."""
    array = lib.device_array()
    view = exported(array, dl_device=(CPU, 0))
    equal("device", (CPU, 0), view.device)
    equal("elements", lib.to_list(array), view.to_list())


@rule("DL320", "must", "array API, __dlpack__, dl_device", "p", since="2023.12")
def dl_device_cpu_no_copy(lib: Library) -> None:
    """If the CPU can have it by a copy only, copy=False raises BufferError (run against simulated
    CUDA, and libraries with a device)."""
    array = lib.device_array()
    capsule, error = call(array, max_version=LATEST, dl_device=(CPU, 0), copy=False)
    shares = error is None and Imported(capsule).address == lib.address(array)
    if not shares and not isinstance(error, BufferError):
        raise Broken("BufferError, or memory that both share", outcome(capsule, error))


@rule("DL321", "must", "array API, __dlpack__, dl_device", "p", since="2023.12")
def dl_device_unsupported(lib: Library) -> None:
    """A type of device that it cannot handle raises BufferError."""
    array = lib.make([1.0, 2.0])
    for device in ((99, 0), (CUDA, 0), (ROCM, 0)):
        capsule, error = call(array, max_version=LATEST, dl_device=device)
        moved = error is None and Imported(capsule).device == device
        if not moved and not isinstance(error, BufferError):
            raise Broken(f"BufferError of dl_device={device}", outcome(capsule, error))


@rule("DL322", "must", "array API, __dlpack__, stream, note", "p", since="2023.12")
def dl_device_cpu_stream(lib: Library) -> None:
    """With dl_device=(1, 0) stream must be None, and the elements are there on return (run against
    simulated CUDA)."""
    streams, array = late(lib)
    if isinstance(call(array, max_version=LATEST, dl_device=(CPU, 0))[1], BufferError):
        raise NotApplicable("offers no CPU")
    streams, array = late(lib)
    for stream in (LEGACY_DEFAULT, streams.create()):
        raises(Exception, array, max_version=LATEST, dl_device=(CPU, 0), stream=stream)
    view = exported(array, dl_device=(CPU, 0))
    equal("elements, at once,", [1.0, 2.0], view.to_list())


# stream


def cpu_array(lib: Library) -> Any:
    array = lib.make([1.0, 2.0])
    if int(array.__dlpack_device__()[0]) != CPU:
        raise NotApplicable("its arrays are not on the CPU")
    return array


@rule("DL323", "must", "array API, __dlpack__, stream", "p")
def stream_cpu_none_only(lib: Library) -> None:
    """On the CPU only None is accepted as stream."""
    for stream in (1, 0, 2, 5, 1 << 40, object()):
        raises(Exception, cpu_array(lib), stream=stream)


@rule("DL324", "silent", "array API, __dlpack__, stream", "p")
def stream_cpu_minus_one(lib: Library) -> Report:
    """What stream=-1, no synchronisation, comes to on the CPU."""
    return Report(outcome(*call(cpu_array(lib), stream=-1)))


@rule("DL325", "must", "array API, __dlpack__, stream", "p")
def stream_int_range(lib: Library) -> None:
    """On CUDA and ROCm a stream of less than -1 is refused (run against simulated devices)."""
    for device_type in (CUDA, ROCM):
        refuses_streams(lib, device_type, [-2, -(1 << 40)])


@rule("DL326", "must", "array API, __dlpack__, stream", "p")
def stream_minus_one_no_sync(lib: Library) -> None:
    """With stream=-1 it does not synchronise at all (run against simulated devices)."""
    for device_type in (CUDA, ROCM):
        streams, array = late(lib, device_type)
        before = len(streams.calls)
        exported(array, stream=-1)
        equal("calls on streams", [], streams.calls[before:])


@rule("DL327", "must", "array API, __dlpack__, stream, CUDA", "p")
def stream_cuda_none(lib: Library) -> None:
    """On CUDA None is the legacy default stream (run against simulated CUDA)."""
    safe_on(lib, CUDA, None, LEGACY_DEFAULT)
    streams, array = late(lib)
    view = exported(array)
    equal("elements seen on it", [1.0, 2.0], read_on(streams, LEGACY_DEFAULT, view))


@rule("DL328", "must", "array API, __dlpack__, stream, CUDA", "p")
def stream_cuda_zero(lib: Library) -> None:
    """On CUDA 0 is refused (run against simulated CUDA)."""
    refuses_streams(lib, CUDA, [0])


@rule("DL329", "must", "array API, __dlpack__, stream, CUDA", "p")
def stream_cuda_one_two(lib: Library) -> None:
    """On CUDA 1 is the legacy default stream and 2 the per-thread default one (run against
    simulated CUDA)."""
    safe_on(lib, CUDA, 1, LEGACY_DEFAULT)
    safe_on(lib, CUDA, 2, PER_THREAD_DEFAULT)


@rule("DL330", "must", "array API, __dlpack__, stream, CUDA", "p")
def stream_cuda_handle(lib: Library) -> None:
    """On CUDA a number above 2 is a stream's handle (run against simulated CUDA)."""
    safe_on(lib, CUDA, None)


@rule("DL331", "must", "array API, __dlpack__, stream, ROCm", "p")
def stream_rocm_zero(lib: Library) -> None:
    """On ROCm 0 and None are the default stream, and 1 and 2 are refused (run against simulated
    ROCm)."""
    safe_on(lib, ROCM, 0, ROCM_DEFAULT)
    safe_on(lib, ROCM, None, ROCM_DEFAULT)
    refuses_streams(lib, ROCM, [1, 2])


@rule("DL332", "must", "Python specification, Semantics; array API, __dlpack__, stream", "p")
def stream_safe_to_use(lib: Library) -> None:
    """What the consumer puts on its stream sees the producer's finished elements (run against
    simulated devices)."""
    for device_type in (CUDA, ROCM):
        safe_on(lib, device_type, None)


@rule("DL333", "silent", "Python specification, Semantics", "p")
def stream_no_host_block(lib: Library) -> Report:
    """Whether the host waits for the producer's work (run against simulated CUDA)."""
    streams, array = late(lib)
    stream = streams.create()
    before = len(streams.calls)
    exported(array, stream=stream)
    blocks = "synchronize" in [what for what, _ in streams.calls[before:]]
    return Report("the host waits" if blocks else "the consumer's stream waits, the host goes on")


@rule("DL334", "must", "array API, __dlpack__, stream (ownership)", "p")
def stream_owner(lib: Library) -> None:
    """The stream stays the consumer's: it is neither destroyed nor used after the exchange (run
    against simulated CUDA)."""
    streams, array = late(lib)
    stream = streams.create()
    view = exported(array, stream=stream)
    view.take()
    if stream not in streams.work:
        raise Broken("the consumer's stream", "it is destroyed")
    streams.destroy(stream)
    view.delete()
    exported(array)
    del array, view
    gc.collect()
    equal("uses of the destroyed stream", [], streams.used_after_destroy)


@rule("DL335", "derived", "array API, __dlpack__, stream, note", "p")
def stream_unsupported(lib: Library) -> None:
    """A stream that it does not support is refused, not ignored (run against simulated devices)."""
    for device_type in (CUDA, ROCM):
        refuses_streams(lib, device_type, [object(), "1", 1.5])


# Errors


def refusals_of_odd(lib: Library, whats: Sequence[str]) -> None:
    """Those of these arrays that are refused are by BufferError. To export one is no fault here."""
    seen = False
    for what in whats:
        with contextlib.suppress(NotApplicable):
            array = lib.odd(what)
            if not hasattr(array, "__dlpack__"):
                continue
            error = call(array, max_version=LATEST)[1]
            seen = seen or error is not None
            if error is not None and not isinstance(error, BufferError):
                raise Broken(f"BufferError for {what}", text(error))
    if not seen:
        raise NotApplicable("refuses no such array")


@rule("DL336", "should", "array API, __dlpack__, Raises", "p", since="2022.12")
def buffererror_dtype(lib: Library) -> None:
    """An array of a dtype that DLPack cannot say raises BufferError."""
    refusals_of_odd(lib, ["text", "datetime", "object", "byte order"])


@rule("DL337", "should", "array API, __dlpack__, Raises", "p", since="2022.12")
def buffererror_layout(lib: Library) -> None:
    """An array of a layout that DLPack cannot say raises BufferError."""
    refusals_of_odd(lib, ["layout"])


@rule("DL338", "must", "array API, __dlpack__, Raises", "p", since="2022.12")
def other_errors(lib: Library) -> None:
    """A wrong argument raises another error than BufferError."""
    wrong: list[dict[str, Any]] = [{"copy": "yes"}, {"max_version": "1.0"}]
    for given in wrong:
        error = call(lib.make([1.0, 2.0]), **({"max_version": LATEST} | given))[1]
        if isinstance(error, BufferError):
            raise Broken(f"another error for {given}", text(error))


@rule("DL339", "derived", "dlpack.h, DLManagedTensorVersioned.deleter", "p")
def error_leaves_no_trace(lib: Library) -> None:
    """An export that is refused leaves nothing behind: no reference, no memory."""
    array, given = lib.make([1.0, 2.0]), list[tuple[Any, Any]]()
    for each in ({"dl_device": (99, 0)}, {"stream": 5}, {"max_version": "1.0"}, {"copy": "yes"}):
        given.append((array, each))
    with contextlib.suppress(NotApplicable):  # of libraries that have no such array
        given.append((lib.odd("unshared"), {"copy": False}))
    for array, each in [(array, each) for array, each in given if call(array, **each)[1]]:
        before = sys.getrefcount(array)
        lost = leaks(functools.partial(call, array, **each))
        kept = max(sys.getrefcount(array) - before, 0) // ROUNDS
        equal(f"references kept by {said(each)}", 0, kept)
        equal(f"bytes lost by {said(each)}", 0, lost)


@rule("DL340", "derived", "array API, __dlpack__, Notes", "p", since="2023.12")
def unknown_keyword(lib: Library) -> None:
    """A keyword that it does not know raises TypeError, by which consumers tell older producers."""
    raises(TypeError, lib.make([1.0, 2.0]), nonsense=None)


# __dlpack_device__


def device_of(array: Any) -> tuple[int, Any]:
    """The number of its type, and its second."""
    kind, number = array.__dlpack_device__()
    try:
        return operator.index(getattr(kind, "value", kind)), number
    except TypeError:
        raise Broken("a device type that is an int or an enum member", repr(kind)) from None


@rule("DL341", "must", "array API, __dlpack_device__", "p")
def device_pair(lib: Library) -> None:
    """`__dlpack_device__` returns a tuple of two."""
    device = lib.make([1.0, 2.0]).__dlpack_device__()
    if not isinstance(device, tuple) or len(device) != 2:
        raise Broken("a tuple of two", repr(device))


@rule("DL342", "must", "array API, __dlpack_device__", "p")
def device_type_enum(lib: Library) -> None:
    """Its first is a member of an enum with the header's numbers (an int is as good: most give
    that)."""
    array = lib.make([1.0, 2.0])
    equal("device type", exported(array).device[0], device_of(array)[0])


@rule("DL343", "must", "array API, __dlpack_device__; dlpack.h, DLDeviceType", "p")
def device_type_valid(lib: Library) -> None:
    """Its first is one of the header's device types."""
    array = lib.make([1.0, 2.0])
    kind, version = device_of(array)[0], exported(array).version or LATEST
    # A version that this kit does not know yet may have more.
    if DEVICE_TYPES.get(kind, MINOR + 1) > version[1]:
        raise Broken(f"a device type of DLPack {version}", kind)


@rule("DL344", "must", "array API, __dlpack_device__", "p")
def device_id_int(lib: Library) -> None:
    """Its second is an int, for devices without numbers too."""
    arrays = [lib.make([1.0, 2.0])]
    with contextlib.suppress(NotApplicable):
        arrays.append(lib.device_array())
    for array in arrays:
        number = array.__dlpack_device__()[1]
        if not isinstance(number, int):
            raise Broken("an int", repr(number))


def device_moves_nothing(lib: Library) -> None:
    array = lib.make([1.0, 2.0])
    before = lib.address(array)
    for _ in range(3):
        array.__dlpack_device__()
    equal("address", before, lib.address(array))


def device_does_not_synchronize(lib: Library) -> None:
    for device_type in (CUDA, ROCM):
        streams, array = late(lib, device_type)
        before = len(streams.calls)
        array.__dlpack_device__()
        equal("calls on streams", [], streams.calls[before:])


@rule("DL345", "derived", "Python specification, Syntax (to query)", "p")
def device_cheap(lib: Library) -> None:
    """It neither moves elements nor synchronises (that is run against simulated devices)."""
    either(lib, device_moves_nothing, device_does_not_synchronize)


def odd_methods(lib: Library, whats: Sequence[str]) -> dict[str, Any]:
    """Those of these arrays that it has."""
    arrays = {}
    for what in whats:
        with contextlib.suppress(NotApplicable):
            arrays[what] = lib.odd(what)
    if not arrays:
        raise NotApplicable(f"has none of {', '.join(whats)}")
    return arrays


@rule("DL346", "may", "array API, Data interchange, Non-supported use cases", "p", since="2024.12")
def device_refusal(lib: Library) -> Report:
    """Where an export is impossible, either method may raise BufferError."""
    said = []
    for what, array in odd_methods(lib, ["sparse", "meta"]).items():
        try:
            array.__dlpack_device__()
            said.append(f"{what}: {outcome(*call(array, max_version=LATEST))}")
        except Exception as error:
            said.append(f"{what}: {text(error)} of __dlpack_device__")
    return Report("; ".join(said))


@rule("DL347", "derived", "Python specification, Syntax", "p")
def both_or_none(lib: Library) -> None:
    """A type that has one of the two methods has both."""
    arrays = {"an array": lib.make([1.0, 2.0])}
    with contextlib.suppress(NotApplicable):
        arrays |= odd_methods(lib, ["text", "datetime", "object", "layout", "sparse", "meta"])
    for what, array in arrays.items():
        has = [name for name in ("__dlpack__", "__dlpack_device__") if hasattr(type(array), name)]
        if len(has) == 1:
            raise Broken(f"both methods or none for {what}", has[0])


@rule("DL348", "may", "array API, Data interchange, Non-supported use cases", "p", since="2024.12")
def never_exportable(lib: Library) -> Report:
    """A type that can never be exported may leave both methods out."""
    odd = odd_methods(lib, ["text", "datetime", "object", "sparse", "meta"])
    has = {what: hasattr(type(array), "__dlpack__") for what, array in odd.items()}
    return Report("; ".join(f"{what}: {'has' if it else 'has not'}" for what, it in has.items()))


def state(lib: Library, array: Any) -> tuple[Any, ...]:
    return lib.address(array), lib.shape_of(array), lib.dtype_of(array), lib.to_list(array)


@rule("DL349", "derived", "Python specification, Semantics", "p")
def pure(lib: Library) -> None:
    """Neither method changes the array: its elements, its address, whether it is written."""
    array = lib.make([1.0, 2.0, 3.0, 4.0], shape=(2, 2))
    before, device = state(lib, array), array.__dlpack_device__()
    for given in ({}, {"max_version": LATEST}, {"max_version": LATEST, "copy": True}):
        capsule = call(array, **given)[0]
        equal(f"the array during {said(given)}", before, state(lib, array))
        del capsule
        equal(f"the array after {said(given)}", before, state(lib, array))
    equal("device", device, array.__dlpack_device__())
    with contextlib.suppress(NotApplicable):
        lib.write(array, 5.0)
        equal("first element, written,", 5.0, lib.to_list(array)[0][0])
