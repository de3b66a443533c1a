"""DL4xx, `from_dlpack`."""

import contextlib
import ctypes
import math

from dlpack_conformance.abi.capsule import (
    PyCapsule_GetName,
    PyCapsule_SetName,
)
from dlpack_conformance.abi.dlpack import (
    CPU,
    CUDA,
    DTYPES,
    EXT_DEV,
    LEGACY,
    MAJOR,
    ONE_API,
    ROCM,
    VERSIONED,
    DLDevice,
)
from dlpack_conformance.hooks import kit_reference as hooks
from dlpack_conformance.kit import reference
from dlpack_conformance.kit.consumer import Imported
from dlpack_conformance.kit.memory import aligned
from dlpack_conformance.kit.producer import Producer
from dlpack_conformance.kit.values import row_major

from mutants import crash, decorator, mutant, reads, takes


@decorator
def asks(change):
    """The function is from_dlpack, of the correct one, the object and its keywords."""
    from_dlpack = hooks.from_dlpack
    hooks.from_dlpack = lambda x, **keywords: change(from_dlpack, x, **keywords)


class Between:
    """What from_dlpack sees of an object without a table."""

    def __init__(self, x, get, get_device):
        self.x, self.get, self.get_device = x, get, get_device

    def __dlpack__(self, **keywords):
        return self.get(self.x, **keywords)

    def __dlpack_device__(self):
        return self.get_device(self.x)


def put_between(get, get_device):
    from_dlpack = hooks.from_dlpack

    def planted(x, **keywords):
        with_table = reference.table_of(type(x)) is not None
        return from_dlpack(x if with_table else Between(x, get, get_device), **keywords)

    hooks.from_dlpack = planted


def capsule_of(x, **keywords):
    return x.__dlpack__(**keywords)


def device_of(x):
    return x.__dlpack_device__()


@decorator
def gets(change):
    """The function calls __dlpack__ of an object, with these keywords."""
    put_between(change, device_of)


@decorator
def gets_device(change):
    """The function calls __dlpack_device__ of an object."""
    put_between(capsule_of, change)


# What it is called with


@asks("DL401", DL403="TypeError first", DL545="a class of the check")
def classes_are_known(from_dlpack, x, **keywords):
    if not isinstance(x, reference.Array | Producer):
        raise TypeError(f"{type(x)} is not known")
    return from_dlpack(x, **keywords)


@asks("DL402", DL407="no device")
def there_are_no_keywords(from_dlpack, x):
    return from_dlpack(x)


@asks("DL402")
def there_is_no_copy(from_dlpack, x, *, device=None):
    return from_dlpack(x, device=device)


@asks("DL402", DL407="no device")
def there_is_no_device(from_dlpack, x, *, copy=None):
    return from_dlpack(x, copy=copy)


@asks("DL402")
def copy_of_none_is_refused(from_dlpack, x, **keywords):
    if keywords.get("copy", False) is None:
        raise TypeError("copy is a bool")
    return from_dlpack(x, **keywords)


@asks("DL402")
def device_of_none_is_refused(from_dlpack, x, **keywords):
    if keywords.get("device", "cpu") is None:
        raise ValueError("there is no such device")
    return from_dlpack(x, **keywords)


@asks("DL402")
def copy_of_none_copies(from_dlpack, x, **keywords):
    if keywords.get("copy", False) is None:
        keywords["copy"] = True
    return from_dlpack(x, **keywords)


# Exceptions


@asks("DL403")
def no_methods_are_a_typeerror(from_dlpack, x, **keywords):
    if not hasattr(x, "__dlpack__"):
        raise TypeError(f"{type(x)} has no __dlpack__")
    return from_dlpack(x, **keywords)


@asks("DL403")
def no_methods_are_a_valueerror(from_dlpack, x, **keywords):
    try:
        return from_dlpack(x, **keywords)
    except AttributeError as error:
        raise ValueError("it is no array") from error


@gets("DL404", DL408="of the wrapped type", DL410="of the wrapped type")
def buffererror_is_wrapped(x, **keywords):
    try:
        return x.__dlpack__(**keywords)
    except BufferError as error:
        raise RuntimeError("the producer failed") from error


@gets("DL404")
def buffererror_is_another_one(x, **keywords):
    try:
        return x.__dlpack__(**keywords)
    except BufferError:
        raise BufferError("cannot be taken") from None


@gets("DL405")
def memoryerror_is_a_buffererror(x, **keywords):
    try:
        return x.__dlpack__(**keywords)
    except MemoryError as error:
        raise BufferError("there is no memory") from error


@gets("DL405")
def keyboardinterrupt_is_swallowed(x, **keywords):
    try:
        return x.__dlpack__(**keywords)
    except KeyboardInterrupt:
        raise BufferError("interrupted") from None


@gets("DL405")
def all_but_buffererror_and_typeerror_is_runtimeerror(x, **keywords):
    try:
        return x.__dlpack__(**keywords)
    except (BufferError, TypeError):
        raise
    except BaseException as error:
        raise RuntimeError("the producer failed") from error


@asks("DL438")
def exception_of_device_is_swallowed(from_dlpack, x, **keywords):
    try:
        x.__dlpack_device__()
    except AttributeError:
        raise
    except Exception:
        x = Between(x, capsule_of, lambda x: (CPU, 0))
    return from_dlpack(x, **keywords)


@gets_device("DL438")
def exception_of_device_is_wrapped(x):
    try:
        return x.__dlpack_device__()
    except AttributeError:
        raise
    except Exception as error:
        raise BufferError("it has no device") from error


@asks("DL438", DL436="a ValueError too")
def exception_of_device_is_no_array(from_dlpack, x, **keywords):
    try:
        return from_dlpack(x, **keywords)
    except ValueError:
        return None


# device


@asks("DL406", DL422="none for a copy", DL424="none for a copy", DL523="no table for a copy")
def all_is_moved_to_the_cpu(from_dlpack, x, *, device=None, copy=None):
    if device is None and x.__dlpack_device__()[0] in reference.STREAMS:
        device = "cpu"
    return from_dlpack(x, device=device, copy=copy)


@takes("DL406", DL426="called the CPU", DL437="called the CPU", DL523="not a device with streams")
def device_is_called_the_cpu(array):
    array.device = (CPU, 0)


@takes("DL406", DL523="asks for the number")
def device_number_is_lost(array):
    array.device = (array.device[0], 0)


@asks("DL407")
def device_is_not_supported(from_dlpack, x, *, device=None, copy=None):
    if device is not None:
        raise ValueError("device is not supported")
    return from_dlpack(x, copy=copy)


@mutant("DL407", DL408="it need not copy")
def device_of_the_keyword_is_not_asked_for():
    def get(x, **keywords):
        keywords.pop("dl_device", None)
        return x.__dlpack__(**keywords)

    reference.STREAMS[ONE_API] = None  # a device that it knows
    put_between(get, device_of)


@gets("DL408")
def copy_to_the_cpu_is_not_refused(x, **keywords):
    if "dl_device" in keywords and keywords.get("copy") is False:
        del keywords["copy"]
    return x.__dlpack__(**keywords)


@asks("DL408")
def copy_to_the_cpu_is_made_after_a_refusal(from_dlpack, x, *, device=None, copy=None):
    try:
        return from_dlpack(x, device=device, copy=copy)
    except BufferError:
        if device is None or copy is not False:
            raise
        return from_dlpack(x, device=device)


# copy


@asks("DL409")
def copy_of_true_is_ignored(from_dlpack, x, *, device=None, copy=None):
    return from_dlpack(x, device=device, copy=None if copy else copy)


@asks("DL409")
def copy_of_true_is_only_asked_for(from_dlpack, x, *, device=None, copy=None):
    copied, reference.Array.copied = reference.Array.copied, lambda self: self
    try:
        return from_dlpack(x, device=device, copy=copy)
    finally:
        reference.Array.copied = copied


@gets("DL410", DL408="by a device too")
def copy_of_false_is_not_passed_on(x, **keywords):
    if keywords.get("copy") is False:
        del keywords["copy"]
    return x.__dlpack__(**keywords)


@asks("DL410")
def copy_of_false_copies(from_dlpack, x, *, device=None, copy=None):
    array = from_dlpack(x, device=device, copy=copy)
    return array.copied() if copy is False else array


@asks("DL410")
def copy_of_false_copies_the_strided(from_dlpack, x, *, device=None, copy=None):
    array = from_dlpack(x, device=device, copy=copy)
    strided = array.strides != row_major(array.shape)
    return array.copied() if copy is False and strided else array


@asks("DL410")
def copy_of_false_is_made_after_a_refusal(from_dlpack, x, *, device=None, copy=None):
    try:
        return from_dlpack(x, device=device, copy=copy)
    except BufferError:
        if device is not None or copy is not False:
            raise
        return from_dlpack(x)


@asks("DL411")
def all_is_copied(from_dlpack, x, *, device=None, copy=None):
    array = from_dlpack(x, device=device, copy=copy)
    contiguous = math.prod(array.shape) and array.strides == row_major(array.shape)
    if copy is None and contiguous and array.device[0] == CPU:
        size = (math.prod(array.shape) * DTYPES[array.dtype][1] + 7) // 8
        array.address = aligned(ctypes.string_at(array.address, size))
    return array


@asks("DL411", DL406="on the CPU", DL167="copied as Python's floats")
def copy_is_asked_for_by_default(from_dlpack, x, *, device=None, copy=None):
    return from_dlpack(x, device=device, copy=True if copy is None else copy)


@asks("DL412")
def copy_is_copied(from_dlpack, x, *, device=None, copy=None):
    array = from_dlpack(x, device=device, copy=copy)
    return array.copied() if copy else array


# max_version


@gets("DL414")
def no_version_is_asked_for(x, **keywords):
    keywords.pop("max_version", None)
    return x.__dlpack__(**keywords)


@gets("DL414")
def version_is_a_list(x, **keywords):
    if "max_version" in keywords:
        keywords["max_version"] = list(keywords["max_version"])
    return x.__dlpack__(**keywords)


@gets("DL414")
def version_has_three_parts(x, **keywords):
    if "max_version" in keywords:
        keywords["max_version"] += (0,)
    return x.__dlpack__(**keywords)


@mutant("DL415", DL104="all is read", DL105="it is taken", DL534="it is taken")
def version_is_trusted():
    read = reference.read

    def planted(imported, owner):
        if imported.versioned:
            imported.managed.version.major = 1
        return read(imported, owner)

    reference.read = planted


@mutant("DL416")
def keywords_are_asked_for_once():
    reference.TypeError = type("NeverRaised", (TypeError,), {})


@gets("DL417")
def asks_again_and_again(x, **keywords):
    for _ in range(4):
        with contextlib.suppress(TypeError):
            return x.__dlpack__(**keywords)
    return x.__dlpack__(**keywords)


@gets("DL417")
def asks_again_after_a_buffererror(x, **keywords):
    try:
        return x.__dlpack__(**keywords)
    except BufferError:
        return x.__dlpack__(**keywords)


@mutant("DL417")
def asks_without_keywords_after_any_exception():
    reference.TypeError = (TypeError, ValueError, RuntimeError, MemoryError)


@asks("DL418")
def typeerror_is_hidden(from_dlpack, x, **keywords):
    try:
        return from_dlpack(x, **keywords)
    except TypeError:
        raise BufferError("cannot be taken") from None


@asks("DL418")
def typeerror_is_another_one(from_dlpack, x, **keywords):
    try:
        return from_dlpack(x, **keywords)
    except TypeError:
        raise TypeError(f"{type(x)} cannot be taken") from None


# Capsules


@reads("DL419", DL416="of a legacy producer")
def legacy_tensors_are_refused(seen):
    if not seen.versioned:
        raise BufferError("DLPack 1.0 or later is wanted")


@gets("DL420", DL414="asks for legacy ones")
def versioned_tensors_are_refused(x, **keywords):
    keywords.pop("max_version", None)
    capsule = x.__dlpack__(**keywords)
    if PyCapsule_GetName(capsule) == VERSIONED:
        raise BufferError("a capsule of another name")
    return capsule


@gets("DL436")
def capsule_is_not_looked_at(x, **keywords):
    capsule = x.__dlpack__(**keywords)
    if type(capsule).__name__ != "PyCapsule":
        crash()
    return capsule


class GivenBackError(Exception):
    """Of what __dlpack__ returned."""


@mutant("DL436")
def what_is_no_capsule_is_given_back():
    def get(x, **keywords):
        capsule = x.__dlpack__(**keywords)
        if type(capsule).__name__ != "PyCapsule":
            raise GivenBackError(capsule)
        return capsule

    def planted(x, **keywords):
        try:
            return from_dlpack(x, **keywords)
        except GivenBackError as given:
            return given.args[0]

    put_between(get, device_of)
    from_dlpack, hooks.from_dlpack = hooks.from_dlpack, planted


@gets("DL436")
def capsule_of_another_name_is_taken(x, **keywords):
    capsule = x.__dlpack__(**keywords)
    named = type(capsule).__name__ == "PyCapsule"
    if named and PyCapsule_GetName(capsule) not in (LEGACY, VERSIONED):
        PyCapsule_SetName(capsule, VERSIONED)
    return capsule


# Streams


@gets_device("DL421", DL423="on the CPU too", DL424="that of the last")
def stream_is_passed_without_asking(x):
    return (max(reference.STREAMS, default=CPU), 0)


@gets_device("DL422", DL424="none at all")
def device_is_the_cpu_unasked(x):
    return (CPU, 0)


@asks("DL421", DL416="asks once", DL423="on the CPU too", DL424="that of the last")
def device_is_asked_for_afterwards(from_dlpack, x, **keywords):
    kind = max(reference.STREAMS, default=CPU)
    if keywords or kind == CPU or not hasattr(x, "__dlpack__") or reference.table_of(type(x)):
        return from_dlpack(x, **keywords)
    capsule = x.__dlpack__(max_version=(1, 3), stream=reference.STREAMS[kind])
    x.__dlpack_device__()
    return reference.adopt(capsule)[0]


@gets("DL422", DL424="none at all")
def stream_is_never_passed(x, **keywords):
    keywords.pop("stream", None)
    return x.__dlpack__(**keywords)


@gets("DL422")
def stream_is_always_the_default(x, **keywords):
    if "stream" in keywords:
        keywords["stream"] = {CUDA: 1, ROCM: 0}[x.__dlpack_device__()[0]]
    return x.__dlpack__(**keywords)


@gets("DL423")
def stream_is_1_on_the_cpu(x, **keywords):
    return x.__dlpack__(**{"stream": 1} | keywords)


@gets("DL423")
def stream_is_minus_1_on_the_cpu(x, **keywords):
    return x.__dlpack__(**{"stream": -1} | keywords)


@gets("DL424")
def default_stream_is_none(x, **keywords):
    if keywords.get("stream") in (0, 1):
        keywords["stream"] = None
    return x.__dlpack__(**keywords)


@gets("DL424")
def default_stream_is_0_on_cuda(x, **keywords):
    if keywords.get("stream") == 1:
        keywords["stream"] = 0
    return x.__dlpack__(**keywords)


# Devices


def usable(x):
    return device_of(x)[0] in (CPU, *reference.STREAMS)


@asks("DL425")
def device_is_a_runtimeerror(from_dlpack, x, *, device=None, copy=None):
    if device is None and not usable(x):
        raise RuntimeError("Unsupported device in DLTensor.")
    return from_dlpack(x, device=device, copy=copy)


@asks("DL425")
def device_is_a_valueerror(from_dlpack, x, *, device=None, copy=None):
    if device is None and not usable(x):
        raise ValueError("there is no such device")
    return from_dlpack(x, device=device, copy=copy)


@asks("DL426", DL108="that address", DL425="that address")
def memory_of_any_device_is_read(from_dlpack, x, *, device=None, copy=None):
    if device is None and not usable(x):
        ctypes.string_at(Imported(x.__dlpack__()).address, 1)
    return from_dlpack(x, device=device, copy=copy)


def readable(address):
    with open("/proc/self/mem", "rb", buffering=0) as memory:
        try:
            memory.seek(address)
            return len(memory.read(1)) == 1
        except (OSError, ValueError, OverflowError):
            return False


@mutant("DL427", DL108="an unknown one too", DL426="called the CPU")
def memory_that_can_be_read_is_the_cpu():
    def planted(imported, owner):
        other = imported.versioned and imported.managed.version.major != MAJOR
        unknown = not other and imported.device[0] not in (CPU, *reference.STREAMS)
        if unknown and readable(imported.address):
            imported.tensor.device = DLDevice(CPU, 0)
        return read(imported, owner)

    read, reference.read = reference.read, planted
    put_between(capsule_of, lambda x: device_of(x) if usable(x) else (CPU, 0))


@mutant("DL427", DL426="called the CPU")
def ext_dev_is_the_cpu():
    def planted(imported, owner):
        array = read(imported, owner)
        if array.device[0] == EXT_DEV:
            array.device = (CPU, 0)
        return array

    read, reference.read = reference.read, planted
    reference.STREAMS[EXT_DEV] = None


@mutant("DL437")
def device_of_the_capsule_is_ignored():
    said = []

    def get_device(x):
        said[:] = x.__dlpack_device__()
        return tuple(said)

    def planted(imported, owner):
        if said and not (imported.versioned and imported.managed.version.major != MAJOR):
            imported.tensor.device = DLDevice(*said)
        said.clear()
        return read(imported, owner)

    read, reference.read = reference.read, planted
    put_between(capsule_of, get_device)


# The result


@takes("DL429", DL160="its axes", DL166="its axes")
def axes_of_extent_one_are_gone(array):
    axes = zip(array.shape, array.strides, strict=True)
    kept = [(extent, stride) for extent, stride in axes if extent != 1]
    array.shape, array.strides = tuple(e for e, _ in kept), tuple(s for _, s in kept)


@takes("DL429", **dict.fromkeys(["DL155", "DL156", "DL157", "DL160", "DL161", "DL166"], "its axes"))
def axes_are_transposed(array):
    array.shape, array.strides = array.shape[::-1], array.strides[::-1]


@takes("DL429", **dict.fromkeys(["DL155", "DL156", "DL157", "DL166"], "its strides"))
def elements_are_read_column_major(array):
    if array.strides == row_major(array.shape):
        array.strides = row_major(array.shape[::-1])[::-1]


@takes("DL429", DL158="of int64", DL166="of int64")
def int64_is_called_int32(array):
    if array.dtype == "int64":
        numbers = ctypes.string_at(array.address, 8 * math.prod(array.shape))
        low = [numbers[i : i + 4] for i in range(0, len(numbers), 8)]
        array.dtype, array.address = "int32", aligned(b"".join(low))


@takes("DL429", DL166="of int16")
def last_element_is_missed(array):
    if array.dtype == "int16" and array.shape:
        array.shape = (*array.shape[:-1], array.shape[-1] - 1)


class Taken(reference.Array):
    """A result that is not like other arrays."""


def of_class(from_dlpack, x, keywords):
    array = from_dlpack(x, **keywords)
    array.__class__ = Taken
    return array


@asks("DL430")
def result_is_not_pickled(from_dlpack, x, **keywords):
    def fail(self):
        raise TypeError("cannot be pickled")

    Taken.__reduce__ = fail
    return of_class(from_dlpack, x, keywords)


@asks("DL430")
def result_is_not_printed(from_dlpack, x, **keywords):
    def fail(self):
        raise RuntimeError("cannot be printed")

    Taken.__repr__ = fail
    return of_class(from_dlpack, x, keywords)


@asks("DL430", DL167="exports what it took")
def result_is_not_exported(from_dlpack, x, **keywords):
    def fail(self, **keywords):
        raise BufferError("the memory is another library's")

    Taken.__dlpack__ = fail
    return of_class(from_dlpack, x, keywords)


@asks("DL430")
def result_crashes_when_copied(from_dlpack, x, **keywords):
    Taken.__reduce__ = lambda self: crash()
    return of_class(from_dlpack, x, keywords)


class Overwriting:
    def __init__(self, array):
        self.address, self.owner = array.address, array.owner

    def __del__(self):
        ctypes.memset(self.address, 0xDB, 1)
        self.owner = None


@takes("DL433")
def memory_is_written_at_the_end(array):
    if math.prod(array.shape) and array.device[0] == CPU and not array.readonly:
        array.owner = Overwriting(array)
