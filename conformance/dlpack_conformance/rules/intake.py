"""DL4xx: `from_dlpack`, what a consumer does with the two methods."""

import contextlib
import copy as copying
import ctypes
import gc
import operator
import pickle
from collections.abc import Callable
from typing import Any

from dlpack_conformance.abi.capsule import PyCapsule_New
from dlpack_conformance.abi.dlpack import (
    CPU,
    CUDA,
    CUDA_HOST,
    CUDA_MANAGED,
    DTYPES,
    EXT_DEV,
    ROCM,
    ROCM_HOST,
    DLDevice,
)
from dlpack_conformance.kit.judge import attempt, equal, refused, right_or_refused, takes, text
from dlpack_conformance.kit.memory import unreadable
from dlpack_conformance.kit.odd_producers import (
    Copying,
    Duck,
    Old,
    Raising,
    RaisingDevice,
    Recording,
    Remote,
    Returning,
)
from dlpack_conformance.kit.producer import Producer
from dlpack_conformance.kit.streams import current_stream
from dlpack_conformance.library import Library
from dlpack_conformance.rule import Broken, NotApplicable, Report, rule


def outcome(lib: Any, x: Any, **keywords: Any) -> tuple[Any, BaseException | None]:
    """(array, None), or (None, exception), whatever exception it is."""
    try:
        return lib.take(x, **keywords), None
    except NotApplicable:
        raise  # of the hooks
    except BaseException as error:
        return None, error


def taken(lib: Any, x: Any, **keywords: Any) -> Any:
    """The array of a library that has these keywords and takes this producer without them."""
    takes(lib, type(x)())
    array, error = outcome(lib, x, **keywords)
    if isinstance(error, TypeError) and not x.calls:
        raise NotApplicable(f"no keyword {', '.join(keywords)}: {text(error)}")
    if error is not None:
        raise Broken("an array", text(error))
    return array


def comes_through(lib: Any, x: Any, error: BaseException) -> None:
    """The exception that the producer raises is the one that the library raises."""
    array, seen = outcome(lib, x)
    if seen is None:
        raise Broken(text(error), f"an array {array!r}")
    if type(seen) is not type(error) or str(error) not in str(seen):
        raise Broken(text(error), text(seen))


def device_of(array: Any) -> tuple[int, int]:
    try:
        kind, number = array.__dlpack_device__()
    except AttributeError:
        raise NotApplicable("its arrays do not say their device") from None
    return int(kind), int(number)


def on_device(kind: int, address: int | None = None) -> Recording:
    x = Recording()
    x.tensor.device = DLDevice(kind, 0)
    if address is not None:
        x.tensor.data = address
    return x


def stream_passed(lib: Any, kind: int, default: bool) -> tuple[int, Any]:
    """(the current stream, the one passed) for a tensor of the kit's own on such a device."""
    current, x = current_stream(lib, kind, default), on_device(kind)
    takes(lib, x)
    return current, x.calls[-1].get("stream")


@rule("DL401", "must", "python_spec, Syntax 1; array API 2025.12, from_dlpack", "c")
def any_object(lib: Library) -> None:
    """It takes any object with the two methods, whatever its class."""
    x = Producer()
    array, error = outcome(lib, Duck(x))
    if error is not None:
        raise Broken("an array of an object with the two methods", text(error))
    equal("elements", x.to_list(), lib.to_list(array))


@rule("DL402", "must", "array API 2025.12, from_dlpack (signature)", "c", since="2023.12")
def positional_and_keywords(lib: Library) -> None:
    """It has keywords `device` and `copy`, of which None means what leaving them out means.

    That `x` is positional-only is not seen: `take` is of the hooks.
    """
    takes(lib, Producer())
    x = Producer()
    shared = lib.address(lib.take(x)) == x.address
    for keywords in ({"device": None}, {"copy": None}, {"device": None, "copy": None}):
        x = Producer()
        array, error = outcome(lib, x, **keywords)
        if error is not None:
            raise Broken(f"an array with {keywords}", text(error))
        equal("elements", x.to_list(), lib.to_list(array))
        equal(f"shared with {keywords}", shared, lib.address(array) == x.address)


@rule("DL403", "must", "array API 2025.12, from_dlpack, Raises", "c")
def attributeerror(lib: Library) -> None:
    """An object without the two methods is an AttributeError."""
    array, error = outcome(lib, object())
    if not isinstance(error, AttributeError):
        raise Broken("AttributeError", array if error is None else text(error))


@rule("DL404", "must", "array API 2025.12, from_dlpack, Raises", "c")
def propagates_buffererror(lib: Library) -> None:
    """A BufferError of the producer comes through."""
    error = BufferError("not to be exported: 404")
    comes_through(lib, Raising(error), error)


@rule("DL405", "must", "array API 2025.12, from_dlpack, Raises", "c")
def propagates_others(lib: Library) -> None:
    """So do all other exceptions of the producer."""
    for error in (MemoryError("405"), KeyboardInterrupt("405"), ZeroDivisionError("405")):
        comes_through(lib, Raising(error), error)


@rule("DL406", "must", "array API 2025.12, from_dlpack, device", "c")
def device_none(lib: Library) -> None:
    """Without `device` the result is on the device of x.

    On the CPU, and on the kit's own producer where the hooks have `use_stream`.
    """
    takes(lib, Producer())
    equal("device", (CPU, 0), device_of(lib.take(Producer())))
    with contextlib.suppress(NotApplicable):
        current_stream(lib, CUDA, False)
        array, refusal = attempt(lib, Remote(CUDA, 1))
        if refusal is None:
            equal("device", (CUDA, 1), device_of(array))


@rule("DL407", "should", "array API 2025.12, from_dlpack, device", "c", since="2023.12")
def device_cpu(lib: Library) -> None:
    """There is a `device` with which the result is in memory that the interpreter can read.

    A library should offer it; one that does not at all must raise BufferError.
    """
    x = Remote()
    array, error = outcome(lib, x, device=lib.cpu())
    if error is None:
        equal("elements", x.to_list(), lib.to_list(array))
    elif not isinstance(error, BufferError):
        raise Broken("an array on the CPU, or BufferError", text(error))


@rule("DL408", "must", "array API 2025.12, from_dlpack, device and copy", "c", since="2023.12")
def device_cpu_no_copy(lib: Library) -> None:
    """If that needs a copy and `copy=False`, it is an exception: ValueError by the description of
    `device`, BufferError by that of `copy`; either passes."""
    if isinstance(outcome(lib, Producer(), copy=False)[1], TypeError):
        raise NotApplicable("no keyword copy")
    array, error = outcome(lib, Remote(), device=lib.cpu(), copy=False)
    if isinstance(error, ValueError | BufferError):
        return
    offered = outcome(lib, Remote(), device=lib.cpu())[1] is None
    if error is not None and not offered:  # which is DL407's to judge
        raise NotApplicable(f"refuses this device with a copy too: {text(error)}")
    raise Broken("ValueError or BufferError", array if error is None else text(error))


@rule("DL409", "must", "array API 2025.12, from_dlpack, copy", "c", since="2023.12")
def from_copy_true(lib: Library) -> None:
    """`copy=True` always copies, whether the producer can or not."""
    for kind in (Copying, Old):
        if kind is Old and attempt(lib, Old(), copy=True)[1] is not None:
            continue  # it need not copy itself
        x = kind()
        array, expected = taken(lib, x, copy=True), x.to_list()
        equal("elements", expected, lib.to_list(array))
        ctypes.memset(x.address, 0, len(x.content))
        equal(f"elements after those of {kind.__name__} changed", expected, lib.to_list(array))


class CopyingOnly(Producer):
    """It can be exported by a copy only."""

    def __dlpack__(self, **keywords: Any) -> Any:
        if keywords.get("copy") is False:
            self.calls.append(keywords)
            raise BufferError("a copy is necessary")
        return super().__dlpack__(**keywords)


@rule("DL410", "must", "array API 2025.12, from_dlpack, copy", "c", since="2023.12")
def from_copy_false(lib: Library) -> None:
    """`copy=False` never copies; it is a BufferError where a copy would be necessary."""
    takes(lib, Producer())
    for shape, strides, offset in (([3], [1], 0), ([2, 2], [1, 2], 0), ([2], [2], 1)):
        x = Producer([1.0, 2.0, 3.0, 4.0], shape=shape, strides=strides, offset=offset)
        array, error = outcome(lib, x, copy=False)
        if isinstance(error, TypeError) and not x.calls:
            raise NotApplicable(f"no keyword copy: {text(error)}")
        if error is None:
            equal("address", x.tensor.data, lib.address(array))
        elif not isinstance(error, BufferError):
            raise Broken(f"a shared array or BufferError for strides {strides}", text(error))
    error = outcome(lib, CopyingOnly(), copy=False)[1]
    if not isinstance(error, BufferError):
        raise Broken("BufferError where a copy is necessary", error and text(error))


@rule("DL411", "must", "array API 2025.12, from_dlpack, copy", "c")
def from_copy_none(lib: Library) -> None:
    """Without `copy` the memory is shared if possible."""
    takes(lib, Producer())
    x = Producer()
    equal("address", x.address, lib.address(lib.take(x)))


@rule("DL412", "derived", "python_spec, Semantics; array API 2025.12, __dlpack__, copy", "c")
def copy_passed_on(lib: Library) -> None:
    """A producer that was asked to copy has copied: the consumer does not copy again."""
    x = Copying()
    array = taken(lib, x, copy=True)
    if not x.copies or not x.calls[-1].get("max_version"):
        raise NotApplicable("does not ask for a copy, or not for one that says it")
    equal("address", x.copies[-1], lib.address(array))


class OldCopying(Old):
    """It copies and cannot say so: an array shows the fives of the copy."""

    def __dlpack__(self, **keywords: Any) -> Any:
        capsule = super().__dlpack__(**keywords)
        fives = (ctypes.c_float * 3)(5.0, 5.0, 5.0)
        ctypes.memmove(self.address, fives, ctypes.sizeof(fives))
        return capsule


@rule(
    "DL413",
    "silent",
    "array API 2025.12, from_dlpack, copy; __dlpack__, Notes",
    "c",
    since="2023.12",
)
def copy_false_never_retried_as_none(lib: Library) -> Report:
    """Whether `copy=False` is dropped in a retry without keywords: that producer may copy, which
    the description of `copy` forbids and the notes on `__dlpack__` recommend."""
    takes(lib, OldCopying())
    x = OldCopying()
    error = outcome(lib, x, copy=False)[1]
    if isinstance(error, TypeError) and not x.calls:
        raise NotApplicable(f"no keyword copy: {text(error)}")
    return Report("it is dropped" if error is None else text(error))


@rule("DL414", "should", "array API 2025.12, __dlpack__, Notes", "c", since="2023.12")
def asks_with_version(lib: Library) -> None:
    """It passes `max_version`, a tuple of major and minor."""
    x = Producer()
    outcome(lib, x)
    if not x.calls:
        raise NotApplicable("does not call __dlpack__")
    version = x.calls[0].get("max_version")
    if not (isinstance(version, tuple) and len(version) == 2 and version >= (1, 0)):
        raise Broken("max_version=(1, 0) or later", x.calls[0])


@rule("DL415", "must", "array API 2025.12, __dlpack__, max_version", "c", since="2023.12")
def verifies_version(lib: Library) -> None:
    """It looks at the version of the tensor even though it passed `max_version`."""
    x = Producer(legacy=False)
    x.version = (2, 0)
    refused(lib, x)


@rule("DL416", "should", "array API 2025.12, __dlpack__, Notes", "c", since="2023.12")
def retry_on_typeerror(lib: Library) -> None:
    """After a TypeError it asks again without the keywords that the producer may not know."""
    x = Old()
    array, error = outcome(lib, x)
    if error is not None:
        raise Broken("an array", text(error))
    equal("elements", x.to_list(), lib.to_list(array))


@rule("DL417", "derived", "array API 2025.12, __dlpack__, Notes", "c", since="2023.12")
def retry_only_once(lib: Library) -> None:
    """It asks again once for each of `max_version`, `dl_device` and `copy` at the most, and only
    after a TypeError."""
    for error, most in ((TypeError("417"), 4), (ValueError("417"), 1), (BufferError("417"), 1)):
        x = Raising(error)
        outcome(lib, x)
        if not 1 <= len(x.calls) <= most:
            raise Broken(f"1 to {most} calls of a producer that raises {text(error)}", x.calls[:8])


@rule("DL418", "derived", "array API 2025.12, from_dlpack, Raises", "c")
def typeerror_not_hidden(lib: Library) -> None:
    """A TypeError from inside the producer is not lost: it comes through, or as the cause."""
    array, error = outcome(lib, Raising(TypeError("from inside: 418")))
    link, seen = error, list[str]()
    while link is not None and len(seen) < 8:
        seen.append(text(link))
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
    if not any("from inside: 418" in each for each in seen):
        raise Broken("TypeError: from inside: 418", seen or array)


@rule("DL419", "should", "python_spec, Implementation", "c")
def legacy_capsule(lib: Library) -> None:
    """It takes `dltensor` capsules while producers still make them."""
    x = Producer(legacy=True)
    refusal = right_or_refused(lib, x)
    if refusal is not None:
        raise Broken("an array of a legacy tensor", refusal)


@rule("DL420", "should", "python_spec, Implementation", "c", since="2023.12")
def versioned_capsule(lib: Library) -> None:
    """It takes `dltensor_versioned` capsules."""
    x = Producer(legacy=False)
    array, error = outcome(lib, x)
    if error is not None and not any(call.get("max_version") for call in x.calls):
        # It has asked for a legacy tensor; it may take capsules of both kinds as they are.
        array, error = outcome(lib, x.__dlpack__())
    if error is not None:
        raise Broken("an array of a versioned tensor", text(error))
    equal("elements", x.to_list(), lib.to_list(array))


@rule("DL421", "must", "python_spec, Syntax 2", "c")
def asks_device_first(lib: Library) -> None:
    """It learns the device before it passes a stream.

    On the CPU, and on the kit's own producer where the hooks have `use_stream`.
    """
    x = on_device(CPU)
    outcome(lib, x)
    asked = [x]
    with contextlib.suppress(NotApplicable):
        current_stream(lib, CUDA, False)
        asked.append(on_device(CUDA))
        outcome(lib, asked[-1])
    passed = [x for x in asked if any(call.get("stream") is not None for call in x.calls)]
    if not passed:
        raise NotApplicable("passes no stream on the CPU; devices with streams are not run here")
    for x in passed:
        equal("first call", "__dlpack_device__", x.order[0])


@rule("DL422", "must", "python_spec, Semantics", "c")
def passes_its_stream(lib: Library) -> None:
    """On CUDA and ROCm it passes the stream that it will use.

    On the kit's own producer, for libraries whose hooks have `use_stream`.
    """
    for kind in (CUDA, ROCM):
        equal(f"stream on device type {kind}", *stream_passed(lib, kind, False))


@rule("DL423", "must", "array API 2025.12, __dlpack__, stream", "c")
def no_stream_on_cpu(lib: Library) -> None:
    """For arrays on the CPU it passes None or nothing as stream."""
    x = Producer()
    outcome(lib, x)
    for call in x.calls:
        equal("stream", None, call.get("stream"))


@rule("DL424", "should", "array API 2025.12, __dlpack__, Tip on streams", "c")
def stream_special_values(lib: Library) -> None:
    """It names the default stream: 1 on CUDA, 0 on ROCm, rather than None.

    On the kit's own producer, for libraries whose hooks have `use_stream`.
    """
    for kind, default in ((CUDA, 1), (ROCM, 0)):
        equal(f"stream on device type {kind}", default, stream_passed(lib, kind, True)[1])


@rule("DL425", "should", "python_spec, Semantics", "c")
def unsupported_device(lib: Library) -> None:
    """A device that it cannot use is a BufferError if no copy is asked for."""
    refusals = []
    for kind in (99, EXT_DEV, CUDA):
        _, error = outcome(lib, on_device(kind, unreadable()))
        if error is not None:
            refusals.append(error)
            if not isinstance(error, BufferError):
                raise Broken(f"BufferError for device ({kind}, 0)", text(error))
    if not refusals:
        raise NotApplicable("takes every device")


@rule("DL426", "derived", "python_spec, Semantics", "c")
def unsupported_device_untouched(lib: Library) -> None:
    """Memory of a device that it cannot use is not read: this has an address that cannot be."""
    for kind in (99, EXT_DEV, CUDA):
        array, error = outcome(lib, on_device(kind, unreadable()))
        if error is None and device_of(array)[0] == CPU:
            raise Broken(f"a refusal, or an array on device type {kind}", "an array on the CPU")


@rule("DL427", "derived", "dlpack.h, DLDevice", "c")
def kdlcpu_only_by_type(lib: Library) -> None:
    """What is on the CPU is known by the device's type, not by an address that can be read."""
    array, error = outcome(lib, on_device(EXT_DEV))
    if error is None and device_of(array)[0] == CPU:
        raise Broken("a refusal, or an array on device type 12", "an array on the CPU")


@rule("DL428", "silent", "dlpack.h, DLDeviceType", "c")
def pinned_as_host(lib: Library) -> Report:
    """What it does with host memory of CUDA and ROCm, and with managed memory."""
    said = []
    for name, kind in (("kDLCUDAHost", CUDA_HOST), ("kDLROCMHost", ROCM_HOST)):
        said.append(f"{name}: {attempt(lib, on_device(kind))[1] or 'accepted'}")
    said.append(f"kDLCUDAManaged: {attempt(lib, on_device(CUDA_MANAGED))[1] or 'accepted'}")
    return Report("; ".join(said))


@rule("DL429", "must", "python_spec, Syntax 1", "c")
def values(lib: Library) -> None:
    """Values, shape and dtype of the result are the producer's."""
    layouts = [([], [], 0), ([4], [1], 0), ([2, 2], [2, 1], 0), ([2], [2], 1), ([1, 4], [4, 1], 0)]
    count, refusals = 0, []
    for dtype in lib.dtypes():
        for shape, strides, offset in layouts:
            if offset and DTYPES[dtype][1] < 8:
                continue
            x = Producer([0, 1, 0, 1], dtype, shape, strides, offset)
            array, refusal = attempt(lib, x)
            if refusal is not None:
                refusals.append(refusal)
                continue
            count += 1
            what = f"of {dtype} with shape {shape} and strides {strides}"
            equal(f"dtype {what}", dtype, lib.dtype_of(array))
            equal(f"shape {what}", tuple(shape), lib.shape_of(array))
            equal(f"elements {what}", x.to_list(), lib.to_list(array))
    if not count:
        raise Broken("an array of one of its dtypes", refusals[0])


def usable(array: Any) -> dict[str, Callable[[], Any]]:
    return {
        "repr": lambda: repr(array),
        "+": lambda: operator.add(array, array),
        "[0]": lambda: array[0],
        "copy": lambda: copying.deepcopy(array),
        "pickle": lambda: pickle.loads(pickle.dumps(array)),
        "__dlpack__": array.__dlpack__,
    }


@rule("DL430", "must", "python_spec, Semantics", "c")
def result_usable(lib: Library) -> None:
    """The result can do what an array made by the library can do."""
    takes(lib, Producer())
    own, array = lib.make([1.0, 2.0, 3.0]), lib.take(Producer())
    for name, use in usable(own).items():
        try:
            use()
        except Exception:
            continue  # this library cannot
        try:
            usable(array)[name]()
        except Exception as error:
            raise Broken(f"{name} works as on its own arrays", text(error)) from None
    equal("elements afterwards", lib.to_list(own), lib.to_list(array))


@rule("DL431", "may", "array API 2025.12, Data interchange, note", "c")
def result_free_class(lib: Library) -> Report:
    """The result need not be an array of the array API."""
    takes(lib, Producer())
    kind = type(lib.take(Producer()))
    return Report(f"{kind.__module__}.{kind.__qualname__}")


@rule("DL432", "silent", "python_spec, Warning", "c")
def device_attribute_documented(lib: Library) -> Report:
    """The order of the device numbers of results is documented."""
    raise NotApplicable("not run: read its documentation")


@rule("DL433", "must", "python_spec, Semantics", "c")
def producer_keeps_owning(lib: Library) -> None:
    """The end of the result frees or changes the producer's memory by nothing but the deleter."""
    takes(lib, Producer())
    x = Producer()
    seen: list[bytes] = []
    x.on_delete = lambda: seen.append(ctypes.string_at(x.address, len(x.content)))
    array = lib.take(x)
    del array
    gc.collect()
    if not x.deleted:
        seen.append(ctypes.string_at(x.address, len(x.content)))
    equal("memory at the deleter", [x.content], seen)


@rule("DL434", "silent", "no sentence", "c")
def methods_on_type_or_instance(lib: Library) -> Report:
    """Whether methods that are attributes of an instance count."""

    class Bare:
        pass

    x, bare = Producer(), Bare()
    bare.__dict__.update(__dlpack__=x.__dlpack__, __dlpack_device__=x.__dlpack_device__)
    error = outcome(lib, bare)[1]
    return Report("they count" if error is None else text(error))


@rule("DL435", "silent", "no sentence", "c")
def raw_capsule(lib: Library) -> Report:
    """Whether a capsule is taken without an object around it."""
    said = []
    for version in (None, (1, 0)):
        error = outcome(lib, Producer().__dlpack__(max_version=version))[1]
        kind = "versioned" if version else "legacy"
        said.append(f"{kind}: {'taken' if error is None else text(error)}")
    return Report("; ".join(said))


OTHER_NAME = b"not_a_tensor"


@rule("DL436", "derived", "python_spec, Implementation", "c")
def return_not_capsule(lib: Library) -> None:
    """A producer that returns no capsule, or one of another name, is refused by an exception."""
    for result in (42, None, "dltensor", PyCapsule_New(unreadable(), OTHER_NAME, None)):
        array, error = outcome(lib, Returning(result))
        if error is None or isinstance(error, SystemError):
            raise Broken(f"an exception for {result!r}", array if error is None else text(error))


class Lying(Recording):
    """It says that it is on the CPU."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return (CPU, 0)


@rule("DL437", "derived", "dlpack.h, DLTensor.device", "c")
def device_lies(lib: Library) -> None:
    """The device in the capsule decides, whatever `__dlpack_device__` said, or it is refused."""
    x = Lying()
    x.tensor.device, x.tensor.data = DLDevice(CUDA, 0), unreadable()
    array, error = outcome(lib, x)
    if error is None and device_of(array)[0] == CPU:
        raise Broken("a refusal, or an array on CUDA", "an array on the CPU")


@rule("DL438", "must", "array API 2025.12, from_dlpack, Raises", "c")
def exception_in_device(lib: Library) -> None:
    """An exception of `__dlpack_device__` comes through."""
    for error in (BufferError("438"), ValueError("438"), KeyboardInterrupt("438")):
        x = RaisingDevice(error)
        _, seen = outcome(lib, x)
        if not x.asked:
            raise NotApplicable("does not call __dlpack_device__")
        if type(seen) is not type(error) or str(error) not in str(seen):
            raise Broken(text(error), "an array" if seen is None else text(seen))
