"""DL5xx: the C exchange API, tables of functions that a type offers."""

import contextlib
import ctypes
import gc
import itertools
import mmap
from collections.abc import Iterator
from ctypes import CFUNCTYPE, c_int, c_int64, c_void_p
from typing import Any

from dlpack_conformance.abi.capsule import PyCapsule_IsValid
from dlpack_conformance.abi.dlpack import (
    CPU,
    CUDA,
    DTYPES,
    MAJOR,
    READ_ONLY,
    ROCM,
    DLDevice,
    DLManagedTensorVersioned,
    DLTensor,
)
from dlpack_conformance.abi.exchange import (
    ATTRIBUTE,
    EXCHANGE_API,
    OLD_ATTRIBUTE,
    SET_ERROR,
    DLPackExchangeAPI,
    DLPackExchangeAPIHeader,
)
from dlpack_conformance.kit.consumer import Imported
from dlpack_conformance.kit.exchange_user import (
    IMPOSSIBLE,
    Allocated,
    Called,
    attribute_of,
    exported_by,
    in_child,
    lent_by,
    object_from,
    offered,
    table_address,
    work_stream,
)
from dlpack_conformance.kit.judge import (
    accepted,
    either,
    equal,
    exported_versioned,
    poke,
    right_or_refused,
    takes,
    text,
)
from dlpack_conformance.kit.memory import before_guard_page, unreadable
from dlpack_conformance.kit.producer import Producer
from dlpack_conformance.kit.streams import current_stream
from dlpack_conformance.kit.table import (
    Log,
    logging_table,
    make_table,
    offering,
    table_capsule,
)
from dlpack_conformance.library import Library
from dlpack_conformance.rule import Broken, NotApplicable, Report, rule


def has_its_table(lib: Any, kind: Any) -> bool:
    """Whether a type offers the table that the library's arrays do."""
    capsule = getattr(kind, ATTRIBUTE, None)
    valid = PyCapsule_IsValid(capsule, EXCHANGE_API)
    return bool(valid) and table_address(capsule) == table_address(attribute_of(lib))


def odd_arrays(lib: Any) -> Iterator[tuple[str, Any]]:
    """Arrays of the very type, or of one that offers a table too, that DLPack cannot say."""
    for what in ("byte order", "text", "datetime", "object", "layout", "sparse", "meta"):
        with contextlib.suppress(NotApplicable):
            x = lib.odd(what)
            if has_its_table(lib, type(x)):
                yield what, x


def calls(lib: Any) -> Iterator[tuple[str, Called]]:
    """Calls of the functions that may set an exception, on good and on bad input."""
    table = offered(lib)
    lend = table.dltensor_from_py_object_no_sync
    for what, x in (("a good array", lib.make([1.0])), *odd_arrays(lib)):
        yield (
            f"from_py_object of {what}",
            Called(table.managed_tensor_from_py_object_no_sync, id(x)),
        )
        if lend:
            yield f"dltensor_from_py_object of {what}", Called(lend, id(x))
    good, bad = Producer(), Producer()
    bad.tensor.dtype.code = 200
    for what, x in (("a good tensor", good), ("a tensor with code 200", bad)):
        managed = x.place(x.manage(True))
        yield f"to_py_object of {what}", Called(table.managed_tensor_to_py_object_no_sync, managed)


def user(lib: Any, **changes: Any) -> tuple[Any, Log]:
    """(a new type that offers a table with these changes, its log), for libraries that use one."""
    log = Log()
    takes(lib, offering(log)())
    if not log:
        raise NotApplicable("does not use the exchange API")
    log = Log()
    return offering(log, **changes), log


def passed_over(lib: Any, attribute: Any) -> None:
    """A type with such an attribute is exchanged by `__dlpack__`, or refused."""
    user(lib)
    right_or_refused(lib, type("Odd", (Producer,), {ATTRIBUTE: attribute})())


def required(lib: Any, name: str) -> None:
    if not getattr(offered(lib), name):
        raise Broken(f"{name} is not NULL", "NULL")


def poisoned(**changes: Any) -> Any:
    """A table that cannot be called."""
    functions = ("allocate", "from_object", "to_object", "lend", "work_stream")
    return make_table(**dict.fromkeys(functions, unreadable()) | changes)


@rule("DL501", "must", "dlpack.h, DLPackExchangeAPI", "x", since="1.3")
def on_the_type(lib: Library) -> None:
    """The attribute `__dlpack_c_exchange_api__` is on the type, and no property of instances."""
    x = lib.make([1.0])
    if not hasattr(x, ATTRIBUTE):
        raise NotApplicable("offers no exchange API, which is optional")
    on_type = getattr(type(x), ATTRIBUTE, None)
    if on_type is None or hasattr(type(on_type), "__get__"):
        raise Broken(f"a capsule as {type(x).__name__}.{ATTRIBUTE}", on_type)


@rule("DL502", "must", "dlpack.h, DLPackExchangeAPI", "x", since="1.3")
def capsule_name(lib: Library) -> None:
    """It is a capsule named `dlpack_exchange_api`."""
    seen = attribute_of(lib)
    if not PyCapsule_IsValid(seen, EXCHANGE_API):
        raise Broken('a capsule named "dlpack_exchange_api"', repr(seen))


@rule("DL503", "silent", "dlpack.h, DLPackExchangeAPI; dmlc/dlpack#180", "x", since="1.3")
def old_name_gone(lib: Library) -> Report:
    """The attribute of 1.2, `__c_dlpack_exchange_api__` with an int, is not that of 1.3."""
    kind = type(lib.make([1.0]))
    if hasattr(kind, ATTRIBUTE):
        return Report(f"{ATTRIBUTE} is there, of 1.3")
    if not hasattr(kind, OLD_ATTRIBUTE):
        raise NotApplicable("offers no exchange API, which is optional")
    return Report(f"only {OLD_ATTRIBUTE} of 1.2: {getattr(kind, OLD_ATTRIBUTE)!r}")


@rule("DL504", "must", "dlpack.h, DLPackExchangeAPI (must stay alive)", "x", since="1.3")
def immortal(lib: Library) -> None:
    """The table lives as long as the process, whatever becomes of capsules and arrays."""
    x = lib.make([1.0])
    capsule = attribute_of(lib)
    address, size = table_address(capsule), ctypes.sizeof(DLPackExchangeAPI)
    before = ctypes.string_at(address, size)
    del capsule, x
    gc.collect()
    equal("content of the table", before, ctypes.string_at(address, size))
    attribute_of(lib)
    others = [bytearray(size - 2 + i % 3) for i in range(10000)]  # they take what is free
    equal("content of the table later", before, ctypes.string_at(address, size))
    del others


@rule("DL505", "must", "array API draft, array.__dlpack_c_exchange_api__", "x", since="1.3")
def one_table_a_type(lib: Library) -> None:
    """It is one static table for all arrays of a type."""
    first, second = lib.make([1.0]), lib.make([2.0, 3.0])
    attribute_of(lib)
    capsules = [getattr(type(x), ATTRIBUTE) for x in (first, second, first)]
    equal("addresses", 1, len({table_address(capsule) for capsule in capsules}))


@rule("DL506", "must", "dlpack.h, DLPackExchangeAPIHeader.version", "x", since="1.3")
def header_version(lib: Library) -> None:
    """`header.version` is filled: 1.3 or later, since 1.2 had another attribute."""
    version = offered(lib).header.version
    if version.major != MAJOR or not 3 <= version.minor < 100:
        raise Broken("1.3 or later", f"{version.major}.{version.minor}")


@rule("DL507", "must", "dlpack.h, DLPackExchangeAPIHeader.prev_api", "x", since="1.3")
def prev_null_or_older(lib: Library) -> None:
    """`prev_api` is NULL or leads to an older version, and the chain ends."""
    header, versions = offered(lib).header, []
    for _ in range(16):
        versions.append((header.version.major, header.version.minor))
        if not header.prev_api:
            break
        header = DLPackExchangeAPIHeader.from_address(header.prev_api)
    falling = all(newer > older for newer, older in itertools.pairwise(versions))
    if header.prev_api or not falling:
        raise Broken("versions that fall, and an end", versions)


@rule("DL508", "must", "dlpack.h, DLPackExchangeAPIHeader.version", "y", since="1.3")
def consumer_checks_major(lib: Library) -> None:
    """Who uses a table checks its major version before anything else."""
    passed_over(lib, table_capsule(poisoned(version=(9, 0))))


@rule("DL509", "may", "dlpack.h, DLPackExchangeAPIHeader.prev_api", "y", since="1.3")
def consumer_walks_chain(lib: Library) -> Report:
    """From a major version that it does not know it may walk to an older table."""
    user(lib)
    log = Log()
    older = ctypes.addressof(logging_table(log))
    capsule = table_capsule(poisoned(version=(9, 0), prev_api=older))
    x = type("Chained", (Producer,), {ATTRIBUTE: capsule})()

    def use() -> str:
        return right_or_refused(lib, x) or ("uses the older" if log else "uses __dlpack__")

    return Report(in_child(use))


@rule("DL510", "must", "dlpack.h, DLPackExchangeAPI.managed_tensor_allocator", "x", since="1.3")
def allocator_nonnull(lib: Library) -> None:
    """`managed_tensor_allocator` is not NULL."""
    required(lib, "managed_tensor_allocator")


@rule("DL511", "must", "dlpack.h, DLPackExchangeAPI", "x", since="1.3")
def from_nonnull(lib: Library) -> None:
    """`managed_tensor_from_py_object_no_sync` is not NULL."""
    required(lib, "managed_tensor_from_py_object_no_sync")


@rule("DL512", "must", "dlpack.h, DLPackExchangeAPI", "x", since="1.3")
def to_nonnull(lib: Library) -> None:
    """`managed_tensor_to_py_object_no_sync` is not NULL."""
    required(lib, "managed_tensor_to_py_object_no_sync")


@rule("DL513", "must", "dlpack.h, DLPackExchangeAPI.current_work_stream", "x", since="1.3")
def work_stream_nonnull(lib: Library) -> None:
    """`current_work_stream` is not NULL."""
    required(lib, "current_work_stream")


@rule(
    "DL514",
    "derived",
    "dlpack.h, DLPackExchangeAPI.dltensor_from_py_object_no_sync",
    "y",
    since="1.3",
)
def dltensor_may_be_null(lib: Library) -> None:
    """`dltensor_from_py_object_no_sync` may be NULL: who uses a table takes another way then."""
    kind, _ = user(lib, lend=None)
    accepted(lib, kind())


@rule("DL515", "must", "dlpack.h, the typedefs of the exchange API", "x", since="1.3")
def status_codes(lib: Library) -> None:
    """The functions return 0 for success and -1 for failure, and nothing else."""
    table = offered(lib)
    for name, called in calls(lib):
        if called.status not in (0, -1):
            raise Broken(f"0 or -1 from {name}", called.said)
    for what, shape, dtype in (("[2]", [2], (2, 32)), *IMPOSSIBLE):
        status = Allocated(table, shape, dtype).status
        if status not in (0, -1):
            raise Broken(f"0 or -1 from the allocator for {what}", status)
    for kind in (CPU, 99):
        # None: it is not seen beside an exception.
        status = work_stream(table, kind)[0]
        if status not in (0, -1, None):
            raise Broken(f"0 or -1 from current_work_stream for device type {kind}", status)


@rule("DL516", "must", "dlpack.h, the typedefs of the exchange API", "x", since="1.3")
def error_set(lib: Library) -> None:
    """A failure comes with a Python exception, a success with none."""
    for name, called in calls(lib):
        if bool(called.status) != bool(called.error):
            raise Broken(f"an exception with a failure only, from {name}", called.said)
    status, _, error = work_stream(offered(lib), 99)
    if status and error is None:
        raise Broken("an exception with a failure of current_work_stream", f"{status} without")


@rule("DL517", "should", "dlpack.h, DLPackManagedTensorFromPyObjectNoSync", "x", since="1.3")
def from_buffererror(lib: Library) -> None:
    """What DLPack cannot say is a BufferError if possible."""
    table, tried = offered(lib), 0
    for tried, (what, x) in enumerate(odd_arrays(lib), 1):  # noqa: B007
        called = Called(table.managed_tensor_from_py_object_no_sync, id(x))
        if not isinstance(called.error, BufferError):
            raise Broken(f"BufferError for {what}", called.said)
    if not tried:
        raise NotApplicable("has no arrays that DLPack cannot say")


@rule("DL518", "must", "dlpack.h, DLPackManagedTensorFromPyObjectNoSync", "x", since="1.3")
def from_owning(lib: Library) -> None:
    """The tensor owns what it describes: it outlives the object, and two have two deleters."""
    table = offered(lib)
    x = lib.make([1.0, 2.0, 3.0, 4.0], shape=(2, 2))
    first, second = exported_by(table, x), exported_by(table, x)
    first.delete()
    del x
    gc.collect()
    others = [lib.make([9.0] * 4, shape=(2, 2)) for _ in range(100)]
    equal("shape", (2, 2), second.shape)
    equal("elements", [[1.0, 2.0], [3.0, 4.0]], second.to_list())
    second.delete()
    del others


def fields(view: Imported) -> dict[str, Any]:
    names = ("address", "shape", "strides", "dtype", "device", "flags")
    return {name: getattr(view, name) for name in names}


def described(lib: Any) -> Iterator[Any]:
    """Arrays of several layouts."""
    yield lib.make([1.0, 2.0, 3.0, 4.0])
    yield lib.make([1.0, 2.0, 3.0, 4.0], shape=(2, 2))
    yield lib.make([1, 2], "int64")
    for keywords in ({"strides": (1, 2), "shape": (2, 2)}, {"shape": (2,), "offset": 2}):
        with contextlib.suppress(NotApplicable):
            yield lib.make([1.0, 2.0, 3.0, 4.0], **keywords)
    with contextlib.suppress(NotApplicable):
        yield lib.make([1.0, 2.0], readonly=True)
    # Elements of less than a byte may be packed anew at each export.
    for dtype in (dtype for dtype in lib.dtypes() if DTYPES[dtype][1] >= 8):
        with contextlib.suppress(Exception):
            x = lib.make([0, 1], dtype)
            exported_versioned(x)
            yield x


@rule("DL519", "derived", "dlpack.h, DLPackManagedTensorFromPyObjectNoSync", "x", since="1.3")
def from_agrees(lib: Library) -> None:
    """The tensor says the same of an array as that of `__dlpack__`."""
    table = offered(lib)
    for x in described(lib):
        by_table, by_method = exported_by(table, x), exported_versioned(x)
        equal("description", fields(by_method), fields(by_table))
        by_table.delete()


@rule(
    "DL520", "must", "dlpack.h, DLPackManagedTensorFromPyObjectNoSync, py_object", "y", since="1.3"
)
def from_same_type_only(lib: Library) -> None:
    """A table is used for objects of the type on which it was found, not for their like."""
    kind, log = user(lib)
    accepted(lib, kind())
    other = Log()
    for like in (offering(other, kind), offering(other)):
        x = like()
        accepted(lib, x)
        if any(each is x for _, each in log) or not any(each is x for _, each in other):
            raise Broken("the table of the object's own type", "that of another")
    seen = len(log)
    accepted(lib, Producer())
    equal("calls of the table of another type", seen, len(log))


@rule(
    "DL521",
    "silent",
    "dlpack.h, DLPackManagedTensorFromPyObjectNoSync, py_object",
    "x",
    since="1.3",
)
def from_wrong_type(lib: Library) -> Report:
    """What it does with an object of another type."""
    function = offered(lib).managed_tensor_from_py_object_no_sync
    return Report(in_child(lambda: Called(function, id(521)).said))


@rule("DL522", "silent", "dlpack.h, the typedefs of the exchange API", "x", since="1.3")
def no_sync(lib: Library) -> Report:
    """None of the functions synchronises a stream."""
    offered(lib)
    raise NotApplicable("not run here: it needs a device whose synchronizations are counted")


@rule("DL523", "should", "dlpack.h, DLPackExchangeAPI, guideline N0", "y", since="1.3")
def queries_work_stream(lib: Library) -> None:
    """Who launches work on a tensor asks for the current work stream and uses it.

    On the kit's own producer, for libraries whose hooks have `use_stream`.
    """
    current_stream(lib, CUDA, True)
    kind, log = user(lib)
    log.stream = 0x523
    for number in (0, 1):
        x = kind()
        x.tensor.device = DLDevice(CUDA, number)
        takes(lib, x)
        if ("stream", (CUDA, number)) not in log:
            raise Broken(f"a call of current_work_stream for (2, {number})", log)


@rule("DL524", "may", "dlpack.h, DLPackCurrentWorkStream", "x", since="1.3")
def work_stream_cpu(lib: Library) -> Report:
    """For the CPU the current work stream is NULL."""
    status, stream, error = work_stream(offered(lib), CPU)
    return Report(text(error) if error else f"status {status}, stream {stream or 'NULL'}")


@rule("DL525", "should", "dlpack.h, DLPackCurrentWorkStream", "x", since="1.3")
def work_stream_value(lib: Library) -> None:
    """For devices with streams it is the library's current stream.

    For libraries whose hooks have `use_stream`.
    """
    table = offered(lib)
    for kind, default in ((CUDA, False), (CUDA, True), (ROCM, False)):
        stream = current_stream(lib, kind, default)
        # The C API's NULL and 1 are the array API's 1 on CUDA.
        expected = (None, 1) if kind == CUDA and default else (stream or None,)
        status, seen, _ = work_stream(table, kind)
        if status != 0 or seen not in expected:
            raise Broken(f"stream {stream} of device type {kind}", f"status {status}, {seen}")


@rule("DL526", "derived", "dlpack.h, DLPackCurrentWorkStream", "x", since="1.3")
def work_stream_unknown_device(lib: Library) -> None:
    """For a device that there is not it fails with an exception, or sets NULL, as a library without
    streams may always do."""
    status, stream, error = work_stream(offered(lib), 99)
    if error is None and (status, stream) != (0, None):
        raise Broken("-1 with an exception, or 0 and NULL", f"status {status}, stream {stream}")


@rule("DL527", "must", "dlpack.h, DLPackDLTensorFromPyObjectNoSync", "xy", since="1.3")
def dltensor_borrowed(lib: Library) -> None:
    """Shape, strides and data of a borrowed tensor stay the producer's, which keeps them as long
    as it has control; who borrows frees nothing and keeps no pointer."""
    either(lib, lends, borrows)


def lends(lib: Any) -> None:
    table = offered(lib)
    first, second = lib.make([1.0, 2.0, 3.0]), lib.make([1.0, 2.0, 3.0, 4.0], shape=(2, 2))
    lent, others = lent_by(table, first), lent_by(table, second)
    equal("address", lib.address(first), (lent.data or 0) + lent.byte_offset)
    equal("shape after the next call", [3], lent.shape[:1])
    equal("shape", [2, 2], others.shape[:2])
    equal("elements", [1.0, 2.0, 3.0], list((ctypes.c_float * 3).from_address(lib.address(first))))


def borrows(lib: Any) -> None:
    shape, strides = (c_int64 * 1)(3), (c_int64 * 1)(1)

    def lend(address: int, out: Any) -> None:
        x = ctypes.cast(address, ctypes.py_object).value
        log.append(("lend", x))
        out[0] = x.tensor
        out[0].shape, out[0].strides = shape, strides

    kind, log = user(lib, lend=lend)
    x = kind()
    array = accepted(lib, x)
    if "lend" not in [name for name, _ in log]:
        raise NotApplicable("does not borrow tensors")
    equal("shape and strides that were lent", [3, 1], [*shape, *strides])
    if not x.calls and "from" not in [name for name, _ in log]:
        poke(x.address, bytes(len(x.content)))  # it is not the array's
    shape[0], strides[0] = 1 << 40, 1 << 20
    equal("shape afterwards", (3,), lib.shape_of(array))
    equal("elements afterwards", x.to_list(), lib.to_list(array))


def resident() -> int:
    """The memory that the process has, in bytes: what it has now where the system says it, else the
    most that it had."""
    with contextlib.suppress(OSError), open("/proc/self/statm", encoding="ascii") as sizes:
        return int(sizes.read().split()[1]) * mmap.PAGESIZE
    try:
        import resource  # noqa: PLC0415 (not on Windows)
    except ImportError:
        raise NotApplicable("the memory of the process is not known") from None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@rule("DL528", "should", "dlpack.h, DLPackDLTensorFromPyObjectNoSync", "x", since="1.3")
def dltensor_no_temporaries(lib: Library) -> None:
    """Lending needs no memory for shape and strides."""
    table, x, tensor = offered(lib), lib.make([1.0], shape=(1,) * 8), DLTensor()
    lent_by(table, x)
    # The exception cannot be set: the call has just worked.
    lend = ctypes.PYFUNCTYPE(c_int, c_void_p, c_void_p)(table.dltensor_from_py_object_no_sync)
    address, count, before = ctypes.addressof(tensor), 20_000, 0
    for calls_made in range(2 * count):
        if calls_made == count:
            before = resident()  # what the first calls need once is there
        lend(id(x), address)
    grown = resident() - before
    if grown > count * 32:
        raise Broken(f"no more memory after {count} calls", f"{grown} bytes more")


@rule("DL529", "derived", "dlpack.h, DLPackDLTensorFromPyObjectNoSync", "x", since="1.3")
def dltensor_all_fields(lib: Library) -> None:
    """All seven fields are written, whatever was in the memory."""
    table = offered(lib)
    for x in described(lib):
        expected = exported_versioned(x)
        seen = lent_by(table, x, fill=0xAA)
        shape = lib.shape_of(x)
        equal("ndim", len(shape), seen.ndim)
        equal("device", expected.device, (seen.device.device_type, seen.device.device_id))
        equal(
            "dtype",
            (*DTYPES[lib.dtype_of(x)], 1),
            (seen.dtype.code, seen.dtype.bits, seen.dtype.lanes),
        )
        equal("address", lib.address(x), ((seen.data or 0) + seen.byte_offset) % (1 << 64))
        equal("shape", list(shape), seen.shape[: seen.ndim])
        if seen.strides or expected.tensor.strides:
            equal("strides", list(expected.strides), seen.strides[: seen.ndim])


@rule("DL530", "silent", "no sentence", "x", since="1.3")
def dltensor_no_flags(lib: Library) -> Report:
    """What is done with a read-only array, which a borrowed tensor cannot say."""
    table, x = offered(lib), lib.make([1.0, 2.0], readonly=True)
    try:
        lent_by(table, x)
    except Broken as refusal:
        return Report(refusal.seen)
    return Report("lent like any other")


@rule("DL531", "must", "dlpack.h, DLPackManagedTensorToPyObjectNoSync", "x", since="1.3")
def to_steals(lib: Library) -> None:
    """The object owns the tensor: the deleter is called once, when it dies at the latest."""
    table, x = offered(lib), Producer()
    array = object_from(table, x)
    equal("elements", x.to_list(), lib.to_list(array))
    del array
    gc.collect()
    equal("calls of the deleter", 1, len(x.deleted))


@rule("DL532", "silent", "dlpack.h, DLPackManagedTensorToPyObjectNoSync", "x", since="1.3")
def to_steals_on_failure(lib: Library) -> Report:
    """Who deletes the tensor if it cannot become an object."""
    x = Producer()
    x.tensor.dtype.code = 200
    managed = x.place(x.manage(True))
    function = offered(lib).managed_tensor_to_py_object_no_sync

    def count() -> str:
        if Called(function, managed).status == 0:
            return "code 200 is no failure"
        times = len(x.deleted)
        return {0: "the caller", 1: "the function"}.get(times, f"deleted {times} times")

    return Report(in_child(count))


@rule("DL533", "must", "dlpack.h, DLPackManagedTensorToPyObjectNoSync", "x", since="1.3")
def to_type(lib: Library) -> None:
    """The object is of the library's own type."""
    kind = type(object_from(offered(lib), Producer()))
    # A library has more types than one that offer its table.
    if kind is not type(lib.make([1.0])) and not has_its_table(lib, kind):
        raise Broken(f"{type(lib.make([1.0]))}, or a type with its table", kind)


class OtherMajor(Producer):
    """A versioned tensor of 2.0, of which nothing behind the flags can be read."""

    def place(self, managed: Any) -> int:
        managed.version.major, managed.version.minor = 2, 0
        return before_guard_page(bytes(managed)[: DLManagedTensorVersioned.dl_tensor.offset])


@rule("DL534", "must", "dlpack.h, DLPackVersion", "x", since="1.3")
def to_major(lib: Library) -> None:
    """A tensor of another major version is refused, nothing behind `flags` is read.

    Whether the function deletes it or its caller is not judged, since the text says of neither that
    it owns a tensor that was refused (DL532); deleted twice it is not.
    """
    x = OtherMajor()
    managed = x.place(x.manage(True))
    called = Called(offered(lib).managed_tensor_to_py_object_no_sync, managed)
    if called.status == 0:
        raise Broken("a failure", "an object")
    if len(x.deleted) > 1:
        raise Broken("at most one call of the deleter", len(x.deleted))


@rule("DL535", "derived", "dlpack.h, DLPACK_FLAG_BITMASK_READ_ONLY", "x", since="1.3")
def to_readonly(lib: Library) -> None:
    """A tensor with READ_ONLY becomes an array that is not written."""
    table = offered(lib)
    lib.make([1.0], readonly=True)
    x = Producer()
    x.flags = READ_ONLY
    array = object_from(table, x)
    with contextlib.suppress(Exception):
        lib.write(array, 9.0)
    if x.deleted:
        raise NotApplicable("copies what is read-only")
    equal("the producer's memory", x.content, ctypes.string_at(x.address, len(x.content)))


@rule("DL536", "must", "dlpack.h, DLPackManagedTensorAllocator, prototype", "x", since="1.3")
def alloc_fields(lib: Library) -> None:
    """Of the prototype only dtype, ndim, shape and device are used: the others may be anything."""
    poison = unreadable()
    tensor = Allocated(offered(lib), [2, 3], poison=poison).tensor()
    equal("shape", (2, 3), tensor.shape)
    equal("strides", (3, 1), tensor.strides)
    if poison in (tensor.tensor.data, tensor.tensor.byte_offset):
        raise Broken("new memory", "data or byte_offset of the prototype")


@rule("DL537", "must", "dlpack.h, DLPackManagedTensorAllocator", "x", since="1.3")
def alloc_result(lib: Library) -> None:
    """The new tensor has that dtype, shape and device, is compact and can be written."""
    for shape, dtype in (([2, 3], (2, 32)), ([], (2, 32)), ([5], (0, 64)), ([0, 2], (2, 32))):
        tensor = Allocated(offered(lib), shape, dtype).tensor()
        equal("version", MAJOR, tensor.managed.version.major)
        equal("dtype", (*dtype, 1), tensor.dtype)
        equal("shape", tuple(shape), tensor.shape)
        equal("device", (CPU, 0), tensor.device)
        equal("flag READ_ONLY", 0, tensor.flags & READ_ONLY)
        if shape == [2, 3]:
            equal("strides", (3, 1), tensor.strides)
            ctypes.memset(tensor.address, 0, 24)
        tensor.delete()
    for _, shape, dtype in IMPOSSIBLE:
        allocated = Allocated(offered(lib), shape, dtype)
        if not allocated.status:
            tensor = allocated.tensor()
            equal("dtype", (*dtype, 1), tensor.dtype)
            equal("shape", tuple(shape), tensor.shape)


@rule("DL538", "must", "dlpack.h, DLPackManagedTensorAllocator, SetError", "x", since="1.3")
def alloc_seterror_exactly(lib: Library) -> None:
    """SetError is called exactly when the allocator fails, once, with the context given."""
    table = offered(lib)
    for what, shape, dtype in (("[2]", [2], (2, 32)), *IMPOSSIBLE):
        allocated = Allocated(table, shape, dtype)
        contexts = [context for context, _, _ in allocated.said]
        expected = [] if allocated.status == 0 else [0xC0]
        equal(f"contexts given to SetError for {what}", expected, contexts)


@rule("DL539", "derived", "dlpack.h, DLPackManagedTensorAllocator, SetError", "x", since="1.3")
def alloc_seterror_text(lib: Library) -> None:
    """The kind and the message of an error are texts that can be read during the call."""
    table, seen = offered(lib), []
    for what, shape, dtype in IMPOSSIBLE:
        for _, kind, message in Allocated(table, shape, dtype).said:
            seen.append(kind)
            if not kind or message is None:
                raise Broken(f"kind and message for {what}", (kind, message))
            kind.decode(), message.decode()
    if not seen:
        raise NotApplicable("the allocator did not fail")


@rule("DL540", "silent", "dlpack.h, DLPackManagedTensorAllocator, note", "x", since="1.3")
def alloc_gil(lib: Library) -> Report:
    """Whether the allocator can be called without the GIL."""
    table, prototype, out = offered(lib), DLTensor(), c_void_p()
    prototype.shape, prototype.ndim = (c_int64 * 1)(2), 1
    prototype.dtype.code, prototype.dtype.bits, prototype.dtype.lanes = 2, 32, 1
    prototype.device = DLDevice(CPU, 0)
    # CFUNCTYPE, unlike PYFUNCTYPE, calls without the GIL.
    without_gil = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, SET_ERROR)
    allocate = without_gil(table.managed_tensor_allocator)
    ignore = SET_ERROR(lambda *_: None)
    arguments = ctypes.addressof(prototype), ctypes.addressof(out), None, ignore
    return Report(in_child(lambda: f"it can: status {allocate(*arguments)}"))


@rule("DL541", "must", "dlpack.h, the typedefs of the exchange API", "x", since="1.3")
def no_cxx_exceptions(lib: Library) -> None:
    """No C++ exception leaves a function: one that does ends this process."""
    table = offered(lib)
    for _ in calls(lib):
        pass
    for _, shape, dtype in IMPOSSIBLE:
        Allocated(table, shape, dtype)
    for kind, number in ((99, 0), (CUDA, 1 << 20), (CPU, -1)):
        work_stream(table, kind, number)


@rule(
    "DL542",
    "derived",
    "dlpack.h, DLPackExchangeAPI (must be defined on the type)",
    "y",
    since="1.3",
)
def owner_of_own_type_instance_attr(lib: Library) -> None:
    """An attribute of that name of an instance is not used."""
    user(lib)
    x = Producer()
    x.__dict__[ATTRIBUTE] = table_capsule(poisoned())
    accepted(lib, x)


@rule("DL543", "should", "array API draft, Data interchange", "y", since="1.3")
def fallback(lib: Library) -> None:
    """For types without the attribute its users take `__dlpack__`."""
    user(lib)
    accepted(lib, Producer())


@rule("DL544", "derived", "dlpack.h, DLPackExchangeAPI (example)", "y", since="1.3")
def attribute_not_capsule(lib: Library) -> None:
    """An attribute that is no capsule of that name is passed over or refused."""
    names = (b"dlpack_exchange", b"dltensor_versioned", None)
    for attribute in (42, None, "table", *(table_capsule(poisoned(), name) for name in names)):
        passed_over(lib, attribute)


class Dropped:
    """A producer that is not kept, as its type must not be."""

    x: Any = None

    def __dlpack__(self, **keywords: Any) -> Any:
        return self.x.__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (CPU, 0)


@rule("DL545", "derived", "dlpack.h, DLPackExchangeAPI (may cache for each type)", "y", since="1.3")
def cache_by_type(lib: Library) -> None:
    """What is remembered of a type ends with it: another may come to lie at its address."""
    user(lib)
    x, used, reused = Producer(), list[str](), 0

    def from_object(address: int, out: Any) -> None:
        used.append(type(ctypes.cast(address, ctypes.py_object).value).__name__)
        out[0] = x.place(x.manage(True))

    capsule = table_capsule(logging_table(Log(), from_object=from_object, lend=None))
    for _ in range(20):
        kind = type("Offering", (Dropped,), {"x": x, ATTRIBUTE: capsule})
        lib.take(kind())
        address = id(kind)
        del kind
        gc.collect()
        kind = type("Plain", (Dropped,), {"x": x})
        reused += id(kind) == address
        lib.take(kind())
        del kind
        gc.collect()
    if not used or not reused:
        raise NotApplicable("no type came to lie at the address of another")
    equal("types for which the table was used", {"Offering"}, set(used))


@rule("DL546", "must", "dlpack.h, DLPackExchangeAPI", "xy", since="1.3")
def layout(lib: Library) -> None:
    """A table is the header, of 16 bytes with pointers of 8, and five functions: 56 bytes."""
    either(lib, offers_layout, uses_layout)


def offers_layout(lib: Any) -> None:
    table, x = offered(lib), lib.make([1.0])
    view = exported_by(table, x)
    equal("major version of the tensor", MAJOR, view.managed.version.major)
    equal("elements", [1.0], view.to_list())
    view.delete()
    if table.dltensor_from_py_object_no_sync:
        lent = lent_by(table, x)
        equal("address", lib.address(x), (lent.data or 0) + lent.byte_offset)
    if table.current_work_stream:
        work_stream(table, CPU)  # the last function


def uses_layout(lib: Any) -> None:
    kind, log = user(lib)
    accepted(lib, kind())
    if not {"from", "lend"} & {name for name, _ in log}:
        raise Broken("a call of the second or fourth function", [name for name, _ in log])


@rule("DL547", "may", "array API draft, array.__dlpack_c_exchange_api__", "x", since="1.3")
def optional(lib: Library) -> Report:
    """The attribute is optional."""
    return Report(f"offered: {attribute_of(lib)!r}")
