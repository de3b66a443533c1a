"""DL3xx, what producers do: `__dlpack__` and `__dlpack_device__`."""

import ctypes
import enum
import functools
import math

from dlpack_conformance.abi.dlpack import CPU, DTYPES, IS_COPIED, MAJOR, MINOR
from dlpack_conformance.hooks import kit_reference as hooks
from dlpack_conformance.kit import reference
from dlpack_conformance.kit.memory import aligned
from dlpack_conformance.kit.reference import Array, DeviceArray, Export, Scattered
from dlpack_conformance.kit.streams import LEGACY_DEFAULT, PER_THREAD_DEFAULT, Streams

from mutants import alike, crash, decorator, exports, mutant

KEPT = []


def around(kind, change):
    original = kind.__dlpack__

    def planted(self, **keywords):
        return change(self, functools.partial(original, self), **keywords)

    kind.__dlpack__ = planted


@decorator
def calls(change):
    """The function is `__dlpack__` of arrays on the CPU. It gets the correct one as the second
    argument, and the keywords."""
    around(Array, change)


@decorator
def device_calls(change):
    """The same for arrays on the device."""
    around(DeviceArray, change)


@decorator
def both_call(change):
    """The same for both."""
    around(Array, change)
    around(DeviceArray, change)


@decorator
def odd_call(change):
    """The same for arrays that DLPack cannot say."""
    around(hooks.Odd, change)


@decorator
def devices(change):
    """The function gives what `__dlpack_device__` returns, from what is right."""
    original = Array.__dlpack_device__
    Array.__dlpack_device__ = lambda self: change(*original(self))


@decorator
def streams(change):
    """The function gives the stream that is waited on, from the array, the correct function and
    what the consumer passes."""
    original = DeviceArray.consumers_stream

    def planted(self, stream):
        return change(self, functools.partial(original, self), stream)

    DeviceArray.consumers_stream = planted


def raises(call, kind, instead, keywords):
    """The correct call, but for the kind of its exception."""
    try:
        return call(**keywords)
    except kind as error:
        raise instead(str(error)) from None


# Keywords


@calls("DL301")
def stream_is_no_keyword(array, call, **keywords):
    if "stream" in keywords:
        raise TypeError("stream is no keyword")
    return call(**keywords)


@calls("DL301", **alike("DL316 DL317 DL318 DL321", "given"))
def dl_device_is_no_keyword(array, call, **keywords):
    if "dl_device" in keywords:
        raise TypeError("dl_device is no keyword")
    return call(**keywords)


@calls("DL301")
def copy_cannot_be_none(array, call, **keywords):
    if keywords.get("copy", False) is None:
        raise TypeError("copy is a bool")
    return call(**keywords)


@calls("DL301")
def keywords_cannot_be_all_there(array, call, **keywords):
    if len(keywords) == 4:
        raise ValueError("dl_device and copy exclude each other")
    return call(**keywords)


@mutant("DL302")
def stream_is_positional():
    original = Array.__dlpack__

    def planted(self, stream=None, **keywords):
        return original(self, stream=stream, **keywords)

    Array.__dlpack__ = planted


@mutant("DL302")
def positional_is_ignored():
    original = Array.__dlpack__
    Array.__dlpack__ = lambda self, *_, **keywords: original(self, **keywords)


# Versions


@calls("DL303")
def no_arguments_give_a_versioned_tensor(array, call, **keywords):
    return call(**keywords | {"max_version": keywords.get("max_version") or (MAJOR, MINOR)})


@calls("DL303", DL301="not named")
def no_arguments_are_refused_by_another_error(array, call, **keywords):
    capsule = call(**keywords)
    if keywords.get("max_version") is None:
        raise ValueError("max_version is missing")
    return capsule


@calls("DL304")
def version_of_none_is_the_own(array, call, **keywords):
    if keywords.get("max_version", ()) is None:
        keywords["max_version"] = (MAJOR, MINOR)
    return call(**keywords)


@calls("DL304", DL301="of None")
def version_of_none_is_refused(array, call, **keywords):
    if keywords.get("max_version", ()) is None:
        raise TypeError("max_version is a tuple")
    return call(**keywords)


ASKED = [None]


@decorator
def versions(change):
    """The function gives the version of the tensor, from what the consumer asked for."""
    call, fill = Array.__dlpack__, Export.__init__

    def planted(self, **keywords):
        ASKED[0] = keywords.get("max_version")
        try:
            return call(self, **keywords)
        finally:
            ASKED[0] = None

    def export(self, array, versioned, flags):
        fill(self, array, versioned, flags)
        if versioned and ASKED[0]:
            self.managed.version.major, self.managed.version.minor = change(*ASKED[0])

    Array.__dlpack__, Export.__init__ = planted, export


@versions("DL305")
def minor_is_the_consumers(major, minor):
    return (MAJOR, minor if major == MAJOR and minor > MINOR else MINOR)


@versions(None)
def minor_is_the_lower_of_both(major, minor):
    return (MAJOR, min(minor, MINOR) if major == MAJOR else MINOR)


@calls("DL305")
def newer_minor_gives_a_legacy_tensor(array, call, **keywords):
    major, minor = keywords.get("max_version") or (MAJOR, MINOR)
    if major == MAJOR and minor > MINOR:
        del keywords["max_version"]
    return call(**keywords)


@calls("DL306")
def lower_minor_is_refused(array, call, **keywords):
    major, minor = keywords.get("max_version") or (MAJOR, MINOR)
    if major == MAJOR and minor < MINOR:
        raise BufferError(f"1.{minor} is too old")
    return call(**keywords)


@calls("DL306")
def lower_minor_gives_a_legacy_tensor(array, call, **keywords):
    major, minor = keywords.get("max_version") or (MAJOR, MINOR)
    if major == MAJOR and minor < MINOR:
        del keywords["max_version"]
    return call(**keywords)


@calls("DL307")
def higher_major_is_refused(array, call, **keywords):
    if (keywords.get("max_version") or (0, 0))[0] > MAJOR:
        raise BufferError("another major version")
    return call(**keywords)


@calls("DL307")
def higher_major_gives_a_legacy_tensor(array, call, **keywords):
    if (keywords.get("max_version") or (0, 0))[0] > MAJOR:
        del keywords["max_version"]
    return call(**keywords)


@versions("DL307")
def major_is_the_consumers(major, minor):
    return (major, MINOR)


@calls("DL308")
def lower_major_gives_a_versioned_tensor(array, call, **keywords):
    if keywords.get("max_version") and keywords["max_version"][0] < MAJOR:
        keywords["max_version"] = (MAJOR, MINOR)
    return call(**keywords)


@calls("DL308")
def lower_major_is_a_wrong_value(array, call, **keywords):
    if keywords.get("max_version") and keywords["max_version"][0] < MAJOR:
        raise ValueError("too old")
    return call(**keywords)


@calls("DL309")
def text_is_a_version(array, call, **keywords):
    if isinstance(keywords.get("max_version"), str):
        keywords["max_version"] = tuple(map(int, keywords["max_version"].split(".")))
    return call(**keywords)


@calls("DL309")
def int_is_a_version(array, call, **keywords):
    if isinstance(keywords.get("max_version"), int):
        keywords["max_version"] = (keywords["max_version"], 0)
    return call(**keywords)


@calls("DL309", DL338="another form", DL339="another form")
def version_is_unpacked_without_a_look(array, call, **keywords):
    version = keywords.get("max_version")
    if version is not None and not (isinstance(version, tuple) and len(version) == 2):
        crash()
    return call(**keywords)


# Copies


@calls("DL311", DL116="no copy", DL119="no copy")
def copy_is_ignored(array, call, **keywords):
    return call(**keywords | {"copy": None})


@calls("DL311")
def copy_is_refused(array, call, **keywords):
    if keywords.get("copy") is True:
        raise BufferError("it makes no copies")
    return call(**keywords)


@calls("DL312", DL318="copy=False")
def what_must_not_be_copied_is(array, call, **keywords):
    if keywords.get("copy") is False:
        keywords["copy"] = True
    return call(**keywords)


def scattered(change):
    """The function gives `copy` for arrays that can be exported in a copy only."""
    original = Scattered.__dlpack__

    def planted(self, *, copy=None, **keywords):
        return original(self, copy=change(copy), **keywords)

    Scattered.__dlpack__ = planted


@mutant("DL312")
def what_cannot_be_shared_is_copied_all_the_same():
    scattered(lambda copy: None)


@mutant("DL312")
def what_cannot_be_shared_is_a_wrong_value():
    original = Scattered.__dlpack__
    Scattered.__dlpack__ = lambda self, **keywords: raises(
        functools.partial(original, self), BufferError, ValueError, keywords
    )


@calls("DL313", **alike("DL167 DL207 DL232 DL318", "copies"))
def all_is_copied(array, call, **keywords):
    if keywords.get("copy") is None:
        keywords["copy"] = True
    return call(**keywords)


@mutant("DL313")
def what_cannot_be_shared_is_copied_only_if_asked_for():
    scattered(lambda copy: copy or False)


def copies_on(stream_of):
    """Work of an export is done on the stream that the function chooses, of streams and array."""
    launch, call = Streams.launch, DeviceArray.__dlpack__
    exporting = []

    def planted(self, **keywords):
        exporting.append(self)
        try:
            return call(self, **keywords)
        finally:
            exporting.pop()

    def on_another(self, stream, work):
        launch(self, stream_of(self, exporting[-1]) if exporting else stream, work)

    DeviceArray.__dlpack__, Streams.launch = planted, on_another


@mutant("DL315")
def copy_is_made_on_the_default_stream():
    copies_on(lambda streams, _: streams.default)


@mutant("DL315")
def copy_is_made_on_the_producers_stream():
    copies_on(lambda _, array: array.queue)


# Devices


@device_calls("DL316", DL326="synchronizes")
def device_is_left_without_being_asked(array, call, **keywords):
    capsule = call(**keywords)
    if keywords.get("dl_device") is None and not keywords.get("copy"):
        return call(max_version=keywords["max_version"], dl_device=(CPU, 0))
    return capsule


@both_call("DL317")
def dl_device_is_ints_only(array, call, **keywords):
    if any(type(part) is not int for part in keywords.get("dl_device") or ()):
        raise TypeError("dl_device is two ints")
    return call(**keywords)


@both_call("DL317", **alike("DL315 DL318 DL319 DL320 DL321 DL322", "ints"))
def dl_device_is_an_enum_only(array, call, **keywords):
    if keywords.get("dl_device") and not isinstance(keywords["dl_device"][0], enum.Enum):
        raise TypeError("the device's type is an enum")
    return call(**keywords)


@calls("DL318")
def own_device_is_copied_to(array, call, **keywords):
    if keywords.get("dl_device") and keywords.get("copy") is None:
        keywords["copy"] = True
    return call(**keywords)


@calls("DL318")
def own_device_excludes_sharing(array, call, **keywords):
    if keywords.get("dl_device") and keywords.get("copy") is False:
        raise BufferError("to move is to copy")
    return call(**keywords)


def on_the_cpu(keywords):
    return tuple(map(int, keywords.get("dl_device") or ())) == (CPU, 0)


@device_calls("DL319")
def cpu_is_not_offered(array, call, **keywords):
    if on_the_cpu(keywords):
        raise BufferError("it cannot be moved")
    return call(**keywords)


@device_calls("DL319", DL322="elements")
def cpu_gets_other_elements(array, call, **keywords):
    if not on_the_cpu(keywords):
        return call(**keywords)
    zeros = Array(aligned(bytes(4 * array.shape[0])), "float32", array.shape, (1,))
    call(**keywords)
    return reference.export(zeros, True, IS_COPIED)


@device_calls("DL320")
def cpu_without_a_copy_is_a_wrong_value(array, call, **keywords):
    return raises(call, BufferError, ValueError, keywords)


@device_calls("DL320")
def cpu_without_a_copy_is_a_copy(array, call, **keywords):
    if on_the_cpu(keywords) and keywords.get("copy") is False:
        keywords["copy"] = None
    return call(**keywords)


@calls("DL321")
def other_device_is_ignored(array, call, **keywords):
    if keywords.get("dl_device") and not on_the_cpu(keywords):
        del keywords["dl_device"]
    return call(**keywords)


@calls("DL321")
def other_device_is_a_wrong_value(array, call, **keywords):
    return raises(call, BufferError, ValueError, keywords)


@calls("DL321")
def unknown_device_is_a_wrong_type(array, call, **keywords):
    if keywords.get("dl_device") and keywords["dl_device"][0] == 99:
        raise TypeError("there is no such device")
    return call(**keywords)


@device_calls("DL322")
def stream_for_the_cpu_is_ignored(array, call, **keywords):
    if on_the_cpu(keywords):
        keywords["stream"] = None
    return call(**keywords)


@device_calls("DL322", DL319="elements")
def cpu_gets_the_elements_too_early(array, call, **keywords):
    if not on_the_cpu(keywords):
        return call(**keywords)
    queue, array.queue = array.queue, array.streams.default
    try:
        return call(**keywords)
    finally:
        array.queue = queue


# Streams


@calls("DL323")
def stream_on_the_cpu_is_ignored(array, call, **keywords):
    return call(**keywords | {"stream": None})


@calls("DL323")
def int_on_the_cpu_is_ignored(array, call, **keywords):
    if isinstance(keywords.get("stream"), int):
        keywords["stream"] = None
    return call(**keywords)


@calls("DL323")
def zero_on_the_cpu_is_no_stream(array, call, **keywords):
    return call(**keywords | {"stream": keywords.get("stream") or None})


@calls("DL323")
def object_on_the_cpu_is_ignored(array, call, **keywords):
    stream = keywords.get("stream")
    return call(**keywords | {"stream": stream if isinstance(stream, int) else None})


@streams("DL325")
def negative_is_no_synchronization(array, right, stream):
    return None if isinstance(stream, int) and stream < -1 else right(stream)


@streams("DL325")
def negative_is_the_default(array, right, stream):
    return array.streams.default if isinstance(stream, int) and stream < -1 else right(stream)


@streams("DL326")
def minus_one_is_the_default(array, right, stream):
    return array.streams.default if stream == -1 else right(stream)


@streams("DL326")
def minus_one_blocks(array, right, stream):
    if stream == -1:
        array.streams.synchronize(array.queue)
    return right(stream)


@streams("DL327")
def none_is_no_synchronization(array, right, stream):
    return right(-1 if stream is None and cuda(array) else stream)


@streams("DL327")
def none_is_per_thread(array, right, stream):
    return right(PER_THREAD_DEFAULT if stream is None and cuda(array) else stream)


def is_zero(stream):
    return type(stream) is int and stream == 0


@streams("DL328")
def zero_is_one(array, right, stream):
    return right(LEGACY_DEFAULT if is_zero(stream) and cuda(array) else stream)


@streams("DL328")
def zero_is_no_synchronization(array, right, stream):
    return right(-1 if is_zero(stream) and cuda(array) else stream)


def cuda(array):
    return array.streams.device_type == reference.CUDA


@streams("DL329")
def one_and_two_are_swapped(array, right, stream):
    swapped = {1: 2, 2: 1}
    return right(swapped.get(stream, stream) if cuda(array) else stream)


@streams("DL329")
def two_is_one(array, right, stream):
    return right(1 if stream == 2 and cuda(array) else stream)


@streams("DL329")
def two_is_refused(array, right, stream):
    if stream == 2:
        raise BufferError("there are no streams of a thread")
    return right(stream)


@streams("DL330", **alike("DL315 DL332 DL334", "a handle"))
def handle_has_32_bits(array, right, stream):
    return right(stream & 0xFFFFFFFF if stream and stream > 2 else stream)


@streams("DL330", DL315="a handle", DL332="a handle")
def handle_is_the_default(array, right, stream):
    return right(None if stream and stream > 2 else stream)


@streams("DL331")
def rocm_has_the_streams_of_cuda(array, right, stream):
    if cuda(array) or stream not in (0, 1, 2):
        return right(stream)
    if stream == 0:
        raise ValueError("0 is no stream of this device")
    return array.streams.default


@streams("DL331")
def rocm_has_one_and_two_besides(array, right, stream):
    return right(stream if cuda(array) or stream not in (1, 2) else 0)


@streams("DL331")
def rocm_zero_is_refused(array, right, stream):
    if is_zero(stream) and not cuda(array):
        raise ValueError("0 is no stream of this device")
    return right(stream)


@streams("DL331")
def rocm_none_is_no_synchronization(array, right, stream):
    return right(-1 if stream is None and not cuda(array) else stream)


@streams("DL332", **alike("DL315 DL327 DL329 DL330 DL331", "each stream"))
def no_stream_waits(array, right, stream):
    right(stream)


@mutant("DL332", **alike("DL315 DL327 DL329 DL330 DL331", "each stream"))
def producer_waits_for_the_consumer():
    wait = Streams.wait
    Streams.wait = lambda self, stream, other: wait(self, other, stream)


@mutant("DL332", **alike("DL315 DL327 DL329 DL330 DL331", "each stream"))
def stream_waits_for_the_default():
    wait = Streams.wait
    Streams.wait = lambda self, stream, other: wait(self, stream, self.default)


@decorator
def after_export(change):
    """The function is called when the tensor of an array of the device is deleted, with the
    streams and the consumer's stream."""
    call, delete = DeviceArray.__dlpack__, Export.delete

    def planted(self, *, stream=None, **keywords):
        capsule = call(self, stream=stream, **keywords)
        self.last = self.consumers_stream(stream)
        return capsule

    def planted_delete(self, managed):
        delete(self, managed)
        if getattr(self.array, "last", None) is not None:
            change(self.array.streams, self.array.last)

    DeviceArray.__dlpack__, Export.delete = planted, planted_delete


@after_export("DL334")
def deleter_frees_on_the_stream(streams, stream):
    streams.launch(stream, object)


@after_export("DL334")
def deleter_destroys_the_stream(streams, stream):
    if stream > PER_THREAD_DEFAULT:
        streams.destroy(stream)


@device_calls("DL334")
def next_export_waits_for_the_last_stream(array, call, **keywords):
    stream = keywords.get("stream")
    capsule = call(**keywords)
    if getattr(array, "last", None):
        array.streams.launch(array.last, object)
    array.last = stream if stream and stream > PER_THREAD_DEFAULT else None
    return capsule


@device_calls("DL335")
def what_is_no_stream_is_ignored(array, call, **keywords):
    if not isinstance(keywords.get("stream"), int):
        keywords["stream"] = None
    return call(**keywords)


@device_calls(
    "DL335",
    **alike("DL315 DL322 DL325 DL326 DL328 DL329 DL330 DL331 DL332", "each stream"),
)
def all_streams_are_ignored(array, call, **keywords):
    return call(**keywords | {"stream": None})


# Errors


@decorator
def odd_raises(change):
    """The function gives the exception for an array that DLPack cannot say."""

    def planted(self, **keywords):
        raise change(self.dtype) or BufferError(f"no word for {self.dtype}")

    hooks.Odd.__dlpack__ = planted


@odd_raises("DL336")
def text_is_a_wrong_type(what):
    return TypeError("no text") if what == "text" else None


@odd_raises("DL336")
def datetime_is_a_wrong_value(what):
    return ValueError("no datetime") if what == "datetime" else None


@odd_raises("DL336")
def object_is_a_wrong_type(what):
    return TypeError("no object") if what == "object" else None


@odd_raises("DL337")
def layout_is_a_wrong_value(what):
    return ValueError("no such layout") if what == "layout" else None


@calls("DL338", DL340="TypeError")
def wrong_types_are_buffer_errors(array, call, **keywords):
    return raises(call, TypeError, BufferError, keywords)


@calls("DL338")
def wrong_copy_is_a_buffer_error(array, call, **keywords):
    if keywords.get("copy") not in (None, True, False):
        raise BufferError("no such copy")
    return call(**keywords)


@calls("DL339")
def refusal_keeps_its_tensor(array, call, **keywords):
    try:
        return call(**keywords)
    except Exception:
        Export(array, True, 0)
        raise


@calls("DL339")
def refusal_keeps_the_array(array, call, **keywords):
    try:
        return call(**keywords)
    except Exception:
        KEPT.append(array)
        raise


@mutant("DL339")
def refusal_of_a_copy_keeps_the_copy():
    original = Scattered.__dlpack__

    def planted(self, *, copy=None, **keywords):
        if copy is False:
            KEPT.append(self.copied())
        return original(self, copy=copy, **keywords)

    Scattered.__dlpack__ = planted


@mutant("DL340")
def unknown_keywords_are_swallowed():
    original = Array.__dlpack__
    known = ("stream", "max_version", "dl_device", "copy")

    def planted(self, **keywords):
        return original(self, **{name: keywords[name] for name in known if name in keywords})

    Array.__dlpack__ = planted


@calls("DL340")
def unknown_keyword_is_a_wrong_value(array, call, **keywords):
    if keywords.keys() - {"stream", "max_version", "dl_device", "copy"}:
        raise ValueError("unknown keyword")
    return call(**keywords)


# __dlpack_device__


def move(array):
    """Its elements, if there are no gaps, to another address."""
    if array.strides == reference.row_major(array.shape):
        bits = math.prod(array.shape) * DTYPES[array.dtype][1]
        array.address = aligned(ctypes.string_at(array.address, (bits + 7) // 8))


@devices("DL341", DL315="given as dl_device", DL318="given as dl_device")
def device_is_a_list(kind, number):
    return [kind, number]


@devices(
    "DL341",
    **alike("DL137 DL165 DL315 DL316 DL317 DL318 DL323 DL342 DL343 DL344", "no pair"),
)
def device_is_an_int(kind, number):
    return kind


@devices(
    "DL341",
    **alike("DL137 DL165 DL315 DL316 DL317 DL318 DL342 DL343", "no pair"),
)
def device_is_of_three(kind, number):
    return (kind, number, 0)


@devices(
    "DL342",
    **alike("DL137 DL165 DL315 DL316 DL317 DL318 DL323 DL343", "no number"),
)
def device_type_is_a_text(kind, number):
    return ("cpu" if kind == CPU else "cuda", number)


@devices(None)
def device_type_is_an_enum(kind, number):
    return (enum.IntEnum("Device", {"CPU": kind}).CPU, number)


@devices(
    "DL343",
    **alike("DL165 DL315 DL316 DL317 DL318 DL342", "another device"),
)
def device_type_is_zero(kind, number):
    return (0, number)


@devices(
    "DL344",
    **alike("DL137 DL165 DL315 DL316 DL317 DL318", "another device"),
)
def device_number_is_none(kind, number):
    return (kind, None)


@devices("DL344", **alike("DL137 DL165 DL316", "another device"))
def device_number_is_a_text(kind, number):
    return (kind, f"{number}")


@mutant("DL345")
def asking_for_the_device_synchronizes():
    original = DeviceArray.__dlpack_device__

    def planted(self):
        self.streams.synchronize(self.queue)
        return original(self)

    DeviceArray.__dlpack_device__ = planted


@mutant("DL345", DL349="moved")
def asking_for_the_device_moves_the_elements():
    original = Array.__dlpack_device__

    def planted(self):
        if type(self) is Array:
            move(self)
        return original(self)

    Array.__dlpack_device__ = planted


@mutant(
    "DL347",
    **alike(
        "DL137 DL165 DL315 DL316 DL317 DL318 DL323 DL341 DL342 DL343 DL344 DL345 DL349", "gone"
    ),
)
def device_cannot_be_asked_for():
    del Array.__dlpack_device__


@mutant("DL347", DL135="no method")
def type_that_cannot_export_says_its_device():
    class Odd:
        __dlpack_device__ = Array.__dlpack_device__
        device = (CPU, 0)

    odd = hooks.odd
    hooks.odd = lambda what: odd(what) if what == "unshared" else Odd()


@calls("DL349", **alike("DL118 DL224 DL311", "written"))
def what_is_shared_is_readonly(array, call, **keywords):
    capsule = call(**keywords)
    array.readonly = True
    return capsule


@calls("DL349", **alike("DL232 DL312 DL313", "address"))
def what_is_shared_is_moved(array, call, **keywords):
    if not hasattr(array, "moved"):
        move(array)
    array.moved = True
    return call(**keywords)


@calls("DL349", DL118="written", DL311="written")
def copy_makes_the_source_readonly(array, call, **keywords):
    capsule = call(**keywords)
    array.readonly = array.readonly or bool(keywords.get("copy"))
    return capsule


@exports(
    "DL349",
    **alike("DL118 DL162 DL166 DL167 DL206 DL223 DL229 DL230 DL311 DL318 DL319 DL322", "elements"),
)
def first_element_is_cleared(export):
    if math.prod(export.array.shape) and export.array.dtype == "float32":
        ctypes.memset(export.array.address, 0, 4)
