"""DL2xx: ownership, capsules and threads."""

import contextlib
import ctypes
import functools
import gc
import importlib
import struct
import sys
import threading
import time
import warnings
from typing import Any

from dlpack_conformance.abi.capsule import (
    PyCapsule_GetName,
    PyCapsule_GetPointer,
    PyCapsule_New,
    capsule_destructor,
    capsule_name_address,
)
from dlpack_conformance.abi.dlpack import (
    FLOAT,
    LEGACY,
    MAJOR,
    MINOR,
    OPAQUE_HANDLE,
    USED_LEGACY,
    USED_VERSIONED,
    VERSIONED,
    DLDevice,
    DLManagedTensor,
    DLManagedTensorVersioned,
)
from dlpack_conformance.kit.consumer import Imported, exported
from dlpack_conformance.kit.judge import accepted, attempt, either, equal, refused, takes
from dlpack_conformance.kit.memory import before_guard_page, forbid, unreadable
from dlpack_conformance.kit.native import (
    c_library,
    exception_left,
    in_shared_object,
)
from dlpack_conformance.kit.producer import Producer
from dlpack_conformance.kit.resident import leaks
from dlpack_conformance.kit.watched import Watched
from dlpack_conformance.library import Library
from dlpack_conformance.rule import Broken, NotApplicable, Report, rule

# The capsule


def capsules_of(array: Any) -> list[Any]:
    """What it gives to a consumer that names no version, and to one of this version."""
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a consumer should name one
        for keywords in ({}, {"max_version": (MAJOR, MINOR)}):
            with contextlib.suppress(Exception):  # how it refuses is for another rule
                found.append(array.__dlpack__(**keywords))
    return found


@rule("DL201", "must", "Python specification, Implementation; array API, __dlpack__, Returns", "p")
def capsule_type(lib: Library) -> None:
    """`__dlpack__` returns a PyCapsule."""
    expected, capsules = type(PyCapsule_New(1, b"", None)), capsules_of(lib.make([1.0, 2.0]))
    for capsule in capsules:
        equal("type", expected, type(capsule))


def names_of(lib: Library, kind: Any) -> list[bytes]:
    """The names of those of its capsules that hold this structure, which is told by where the
    axes and the dtype lie: the other names are judged too."""
    names = []
    for capsule in capsules_of(lib.make([1.0, 2.0])):
        if type(capsule).__name__ != "PyCapsule":
            continue
        name = PyCapsule_GetName(capsule)
        # Both structures are long enough for this view of the other.
        tensor = kind.from_address(PyCapsule_GetPointer(capsule, name)).dl_tensor
        dtype = tensor.dtype
        if (tensor.ndim, dtype.code, dtype.bits, dtype.lanes) == (1, FLOAT, 32, 1):
            names.append(name)
    if not names:
        raise NotApplicable(f"exports no {kind.__name__}")
    return names


@rule("DL202", "must", "Python specification, Implementation", "p")
def name_legacy(lib: Library) -> None:
    """A DLManagedTensor is in a capsule named `dltensor`."""
    equal("names", {LEGACY}, set(names_of(lib, DLManagedTensor)))


@rule("DL203", "must", "Python specification, Implementation, note", "p", since="1.0")
def name_versioned(lib: Library) -> None:
    """A DLManagedTensorVersioned is in a capsule named `dltensor_versioned`."""
    equal("names", {VERSIONED}, set(names_of(lib, DLManagedTensorVersioned)))


def one_lasting_name(capsules: list[Any]) -> None:
    """They have one name in memory, which is there when they are not."""
    name = PyCapsule_GetName(capsules[0])
    addresses = {capsule_name_address(capsule) for capsule in capsules}
    if len(addresses) > 2:
        raise Broken("one name for all capsules", f"{len(addresses)} for {len(capsules)}")
    capsules.clear()
    gc.collect()
    kept = [b"?" * size for size in range(8, 64) for _ in range(100)]
    for address in addresses:
        equal("the name, after the capsules are gone,", name, ctypes.string_at(address))
    del kept


def exports_static_names(lib: Library) -> None:
    one_lasting_name([view.capsule for view in exported_often(lib.make([1.0, 2.0]), [])])


def exported_often(array: Any, views: list[Imported]) -> list[Imported]:
    """1000 tensors, in the list: if an export fails, its caller has the others still."""
    for _ in range(1000):
        views.append(exported(array))
    return views


def renames_to_static_names(lib: Library) -> None:
    for legacy in (True, False):
        with contextlib.suppress(NotApplicable):
            producers = [Producer(legacy=legacy) for _ in range(100)]
            for x in producers:
                takes(lib, x)
            capsules = [capsule for x in producers for capsule in x.capsules]
            for x in producers:
                x.capsules = []
            one_lasting_name(capsules)


@rule("DL204", "must", "Python specification, Implementation, Note", "pc")
def name_static(lib: Library) -> None:
    """The names of capsules, the first and that of a used one, are statically allocated."""
    either(lib, exports_static_names, renames_to_static_names)


def watched(array: Any) -> list[Watched]:
    """A tensor of each kind that it exports."""
    return [Watched(capsule) for capsule in capsules_of(array)]


def lost_bytes(array: Any) -> int:
    """By the exports of each kind that no consumer takes."""
    return leaks(lambda: capsules_of(array))


@rule("DL205", "must", "Python specification, Implementation", "p")
def destructor_deletes_unused(lib: Library) -> None:
    """When a capsule dies that no consumer took, its destructor calls the deleter."""
    views = watched(lib.make([1.0, 2.0]))
    for view in views:
        view.drop()
        if view.deletions == 0:
            # Its destructor may do the deleter's work without the pointer.
            equal("bytes lost by each capsule", 0, lost_bytes(lib.make([1.0, 2.0])))
        elif view.deletions > 1:
            raise Broken("1 call of the deleter", view.deletions)


@rule("DL206", "must", "Python specification, Implementation", "p")
def destructor_leaves_used(lib: Library) -> None:
    """When a capsule dies that a consumer took, its destructor does nothing."""
    array = lib.make([1.0, 2.0])
    views = watched(array)
    for view in views:
        view.take()
        view.drop()
        equal("calls of the deleter", 0, view.deletions)
        equal("elements", [1.0, 2.0], view.to_list())
        view.delete()


@rule("DL207", "should", "Python specification, Implementation, example", "p")
def destructor_null_deleter(lib: Library) -> None:
    """The destructor of a capsule whose tensor has a NULL deleter calls nothing (run against those
    that can make one: the kit's own)."""
    capsules, errors = capsules_of(lib.static_array()), list[str]()
    sys.unraisablehook = lambda error: errors.append(repr(error.exc_value))
    for capsule in capsules:
        equal("deleter", None, Imported(capsule).managed.deleter)
    del capsule
    capsules.clear()
    equal("errors of the destructor", [], errors)


@rule("DL208", "should", "CPython, tp_dealloc; Python specification until dmlc/dlpack#141", "p")
def destructor_keeps_exception(lib: Library) -> None:
    """A capsule that dies while an exception is in flight neither loses nor replaces it."""
    array = lib.make([1.0, 2.0])
    if not in_shared_object(capsule_destructor(exported(array).capsule)):
        raise NotApplicable("its destructor is no compiled function: ctypes cannot keep it")
    mine = ValueError("mine")
    left = exception_left(mine, lambda: exported(array).capsule)
    equal("exception in flight", repr(mine), repr(left))


# Consumers


def taken(lib: Library, kind: Any = Producer, **attributes: Any) -> list[tuple[Any, Any]]:
    """A tensor of each of the two kinds that the library takes, with what it made of it."""
    pairs, refusals = [], []
    for legacy in (True, False):
        x = kind(legacy=legacy)
        for name, value in attributes.items():
            setattr(x, name, value)
        try:
            array, refusal = attempt(lib, x)
        except NotApplicable as reason:
            refusal = str(reason)
        if refusal is None:
            pairs.append((x, array))
        else:
            refusals.append(refusal)
    if not pairs:
        raise NotApplicable(f"takes none of the kind: {refusals[0]}")
    return pairs


def name_after(x: Producer) -> bytes:
    """Of the capsule that the consumer got."""
    return bytes(PyCapsule_GetName(x.capsules[-1]))


@rule("DL209", "must", "Python specification, Implementation", "c")
def consumer_renames(lib: Library) -> None:
    """A consumer that takes a tensor renames its capsule to `used_...`."""
    for x, _array in taken(lib):
        if name_after(x) not in (USED_LEGACY, USED_VERSIONED):
            raise Broken("a capsule named used_...", name_after(x))


@rule("DL210", "must", "Python specification, Implementation, note", "c", since="1.0")
def rename_suffix(lib: Library) -> None:
    """The name of a used capsule ends as that of the structure that it holds."""
    for x, _array in taken(lib):
        if name_after(x).startswith(b"used_"):
            equal("name", USED_LEGACY if x.legacy else USED_VERSIONED, name_after(x))


def note_name(x: Producer, names: list[bytes]) -> None:
    names.append(name_after(x))


@rule("DL211", "derived", "Python specification, Implementation", "c")
def rename_before_delete(lib: Library) -> None:
    """When a consumer calls the deleter, the capsule is renamed already: else its destructor would
    call it too."""
    for keywords, code in (({}, FLOAT), ({"copy": True}, FLOAT), ({}, 200)):
        for legacy in (True, False):
            x, names = Producer(legacy=legacy), list[bytes]()
            x.tensor.dtype.code = code  # an unknown one is refused
            x.on_delete = functools.partial(note_name, x, names)
            with contextlib.suppress(NotApplicable):
                attempt(lib, x, **keywords)
                gc.collect()
            for name in names:
                if not name.startswith(b"used_"):
                    raise Broken("a capsule named used_... when the deleter is called", name)


class SameCapsule(Producer):
    """It hands out one capsule again and again."""

    def __dlpack__(self, **keywords: Any) -> Any:
        return self.capsules[0] if self.capsules else super().__dlpack__(**keywords)


@rule("DL212", "derived", "Python specification, Implementation (consumed exactly once)", "c")
def consumed_once(lib: Library) -> None:
    """A used capsule is refused."""
    for x, _array in taken(lib, SameCapsule):
        if name_after(x) in (USED_LEGACY, USED_VERSIONED):
            refused(lib, x)


class Foreign(Producer):
    """Its capsules are of something else."""

    name: bytes | None = b"x"

    def __dlpack__(self, **keywords: Any) -> Any:
        self.capsules.append(PyCapsule_New(unreadable(), self.name, None))
        return self.capsules[-1]


@rule("DL213", "derived", "Python specification, Implementation (inspected by name)", "c")
def foreign_capsule_refused(lib: Library) -> None:
    """A capsule of another name, or of none, is refused and left as it is."""
    for name in (b"x", None, b"dltensor_", b"arrow_array"):
        x = Foreign()
        x.name = name
        try:
            refused(lib, x)
        except Broken as broken:
            raise Broken(f"a capsule named {name!r} refused", broken.seen) from None
        equal("name", name, PyCapsule_GetName(x.capsules[-1]))


REFUSALS: dict[str, Any] = {
    "of another major version": lambda x: setattr(x, "version", (2, 0)),
    "of an unknown dtype code": lambda x: setattr(x.tensor.dtype, "code", 200),
    "of opaque handles": lambda x: setattr(x.tensor.dtype, "code", OPAQUE_HANDLE),
    "of vectors": lambda x: setattr(x.tensor.dtype, "lanes", 4),
    "on an unknown device": lambda x: setattr(x.tensor, "device", DLDevice(99, 0)),
    "with a negative extent": lambda x: x.tensor.shape.__setitem__(0, -1),
}


@rule("DL214", "derived", "dlpack.h, deleter; Python specification, Implementation", "c")
def refusal_once(lib: Library) -> None:
    """A tensor that is refused is deleted once: by the consumer, or by the capsule if it was left
    with its name."""
    for what, change in REFUSALS.items():
        for legacy in (True, False):
            x = Producer(legacy=legacy)
            change(x)
            with contextlib.suppress(NotApplicable):
                if attempt(lib, x)[1] is not None and x.capsules:
                    gc.collect()
                    equal(f"deletions of a tensor {what}", len(x.capsules), x.deletions())


def wait_until_deleted(x: Producer) -> None:
    """Consumers may do it on a thread."""
    end = time.monotonic() + 1
    while not x.deletions() and time.monotonic() < end:
        time.sleep(0.01)


def views_of(lib: Library, array: Any) -> list[Any]:
    """Arrays that share its memory, it at first."""
    with contextlib.suppress(NotApplicable):
        return [array, *lib.views(array)]
    return [array]


@rule("DL215", "should", "dlpack.h, DLManagedTensorVersioned", "c")
def deleter_once(lib: Library) -> None:
    """When the consumer's last array on the memory is gone, the deleter was called once."""
    for last in (0, -1):
        pairs = taken(lib)
        while pairs:
            x, array = pairs.pop()
            arrays = views_of(lib, array)
            del array
            kept = arrays.pop(last)
            arrays.clear()
            gc.collect()
            del kept
            wait_until_deleted(x)
            equal("calls of the deleter", 1, x.deletions())


@rule("DL216", "derived", "dlpack.h, DLManagedTensorVersioned", "c")
def deleter_not_early(lib: Library) -> None:
    """The deleter is not called while an array reads the memory."""
    # The kit's deleter overwrites the elements.
    for x, array in taken(lib):
        equal("elements", x.to_list(), lib.to_list(array))
        x.capsules.clear()
        gc.collect()
        equal("elements, without the capsule,", x.to_list(), lib.to_list(array))
    pairs = taken(lib)
    while pairs:
        x, array = pairs.pop()
        arrays = views_of(lib, array)
        del array
        contents = [lib.to_list(view) for view in arrays]
        while arrays:
            del arrays[0], contents[0]
            gc.collect()
            left = [lib.to_list(view) for view in arrays]
            equal("views, after an array is gone,", contents, left)


@rule("DL217", "derived", "dlpack.h, DLManagedTensorVersioned.deleter (deletes self)", "c")
def deleter_gets_self(lib: Library) -> None:
    """The deleter gets the pointer that was in the capsule, not that of a copy."""
    pairs = taken(lib)
    while pairs:
        x, array = pairs.pop()
        address = ctypes.addressof(x.managed[-1])
        del array
        wait_until_deleted(x)
        if not x.deleted:
            raise NotApplicable("calls no deleter")
        equal("argument", {address}, set(x.deleted))


class OnePage(Producer):
    """Its managed tensor lies on a page that cannot be read after the deleter was called."""

    def place(self, managed: Any) -> int:
        address = before_guard_page(bytes(managed))
        self.on_delete = lambda: forbid(address)
        return address


@rule("DL218", "derived", "dlpack.h, DLManagedTensorVersioned.deleter (deletes self)", "c")
def struct_untouched_after_delete(lib: Library) -> None:
    """Nothing of the managed tensor is read after the deleter was called."""
    pairs = taken(lib, OnePage)
    while pairs:
        x, array = pairs.pop()
        del array
        wait_until_deleted(x)
    for legacy in (True, False):
        with contextlib.suppress(NotApplicable):
            x = OnePage(legacy=legacy)
            x.tensor.dtype.code = 200
            attempt(lib, x)
            gc.collect()


@rule("DL219", "must", "dlpack.h, DLManagedTensorVersioned.deleter (can be NULL)", "c")
def deleter_null_not_called(lib: Library) -> None:
    """A tensor whose deleter is NULL can be used, and nothing is called."""
    for x, _array in taken(lib):
        again = Producer(legacy=x.legacy)
        again.deleter = None
        accepted(lib, again)
        gc.collect()


@rule("DL220", "must", "dlpack.h, DLManagedTensorVersioned.manager_ctx", "c")
def ctx_null(lib: Library) -> None:
    """manager_ctx may be NULL or anything: it is not read, and the deleter called as ever."""
    try:
        pairs = taken(lib)
    except NotApplicable:
        pairs = taken(lib, manager_ctx=1)
    for x, _array in pairs:
        for ctx in (None, unreadable(), 1):
            again = Producer(legacy=x.legacy)
            again.manager_ctx = ctx
            refusal = attempt(lib, again)[1]
            equal(f"refusal with manager_ctx {ctx}", None, refusal)
            wait_until_deleted(again)
            equal(f"calls of the deleter with manager_ctx {ctx}", 1, again.deletions())


class Compared(Producer):
    """It remembers its managed tensor, shape and strides, and what they were."""

    def place(self, managed: Any) -> int:
        self.given, self.changed = self.bytes_of(managed), False
        self.on_delete = lambda: self.compare(managed)
        return super().place(managed)

    def bytes_of(self, managed: Any) -> bytes:
        size = 8 * len(self.shape)
        arrays = [array for array in (self.tensor.shape, self.tensor.strides) if array]
        return bytes(managed) + b"".join(ctypes.string_at(array, size) for array in arrays)

    def compare(self, managed: Any) -> None:
        self.changed = self.changed or self.bytes_of(managed) != self.given


class ComparedWithoutStrides(Compared):
    """A consumer may want to fill them in."""

    def __init__(self, *, legacy: bool) -> None:
        super().__init__(legacy=legacy)
        self.version, self.tensor.strides = (1, 1), None


class ComparedWithOffset(Compared):
    """A consumer may want to add it to the address."""

    def __init__(self, *, legacy: bool) -> None:
        super().__init__([1.0, 2.0, 3.0], shape=[2], offset=1, legacy=legacy)
        self.tensor.data, self.tensor.byte_offset = self.address, 4


@rule("DL221", "derived", "dlpack.h, DLManagedTensorVersioned (borrowing)", "c")
def struct_not_modified(lib: Library) -> None:
    """A consumer does not write to the managed tensor, nor to its shape and strides."""
    pairs = taken(lib, Compared)
    for kind in (ComparedWithoutStrides, ComparedWithOffset):
        with contextlib.suppress(NotApplicable):
            pairs += taken(lib, kind)
    while pairs:
        x, array = pairs.pop()
        x.compare(x.managed[-1])
        del array
        gc.collect()
        equal("a change of the managed tensor, shape or strides", False, x.changed)


# Producers


def overwrite_freed(lib: Library) -> Any:
    """Others that take the place of what is freed."""
    gc.collect()
    arrays = [lib.make([9.0, 9.0, 9.0, 9.0], shape=[4]) for _ in range(100)]
    capsules = [capsules_of(array) for array in arrays]
    content = [bytes([size]) * size for size in range(8, 200) for _ in range(10)]
    return arrays, capsules, content


def orphans(lib: Library) -> list[Imported]:
    """Tensors that were taken, the source and the capsule of which are gone."""
    views = [Imported(capsule) for capsule in capsules_of(lib.make([1.0, 2.0, 3.0]))]
    for view in views:
        view.take()
        view.capsule = None
    return views


@rule("DL222", "derived", "dlpack.h, DLManagedTensorVersioned (borrowing)", "p")
def shape_alive(lib: Library) -> None:
    """shape and strides are there until the deleter is called, whatever becomes of the source."""
    for view in orphans(lib):
        others = overwrite_freed(lib)
        equal("shape", (3,), view.shape)
        equal("strides", (1,), view.strides)
        del others


@rule("DL223", "must", "Python specification, Semantics (keeps owning)", "p")
def data_alive(lib: Library) -> None:
    """The elements are there until the deleter is called, whatever becomes of the source."""
    for view in orphans(lib):
        others = overwrite_freed(lib)
        content = ctypes.string_at(view.address, 12)
        equal("elements", (1.0, 2.0, 3.0), struct.unpack("3f", content))
        del others


def write_first(lib: Library, array: Any) -> bool:
    """Whether the library writes arrays."""
    try:
        lib.write(array, 5.0)
    except NotApplicable:
        return False
    return True


def source_outlives(lib: Library) -> None:
    array = lib.make([1.0, 2.0])
    first = 5.0 if write_first(lib, lib.make([1.0, 2.0])) else 1.0
    capsules = capsules_of(array)
    for capsule in capsules:
        view = Imported(capsule)
        view.take()
        write_first(lib, array)
        equal("the source, while it is shared,", [first, 2.0], lib.to_list(array))
        view.delete()
        equal("the source, when the result is gone,", [first, 2.0], lib.to_list(array))
        write_first(lib, array)
        equal("the source, when the result is gone,", [first, 2.0], lib.to_list(array))


def result_outlives(lib: Library) -> None:
    pairs = taken(lib)
    while pairs:
        x, array = pairs.pop()
        expected, before = x.to_list(), x.content
        after: list[bytes] = []
        x.on_delete = lambda x=x, after=after: after.append(
            ctypes.string_at(x.address, len(x.content))
        )
        x.capsules.clear()
        equal("the result, without the source,", expected, lib.to_list(array))
        del array
        wait_until_deleted(x)
        equal("the source's memory, when the result is gone,", [before] * len(after), after)


@rule("DL224", "must", "Python specification, Semantics", "pc")
def source_usable(lib: Library) -> None:
    """Both arrays can be used like others, while they share and after one is gone."""
    either(lib, source_outlives, result_outlives)


def deleters(lib: Library) -> list[tuple[int, int]]:
    """Deleters that are to be called once, each with its argument."""
    return [(view.managed.deleter, view.managed_address) for view in orphans(lib)]


@rule("DL225", "must", "Python specification, Implementation (GIL)", "p", fresh=True)
def deleter_any_thread(lib: Library) -> None:
    """The deleter can be called on a thread that Python does not know, without the GIL."""
    for deleter, managed in deleters(lib):
        # The thread's function is the deleter itself: its result is not looked at.
        thread = ctypes.c_void_p()
        function, argument = ctypes.c_void_p(deleter), ctypes.c_void_p(managed)
        started = c_library().pthread_create(ctypes.byref(thread), None, function, argument)
        equal("result of pthread_create", 0, started)
        c_library().pthread_join(thread, None)
    gc.collect()


@rule("DL226", "derived", "Python specification, Implementation", "p")
def deleter_with_gil(lib: Library) -> None:
    """The deleter can be called with the GIL held."""
    for deleter, managed in deleters(lib):
        ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(deleter)(managed)


@rule("DL227", "derived", "CPython, tp_dealloc; Python specification, Implementation", "p")
def deleter_exception_free(lib: Library) -> None:
    """The deleter sets no Python exception, and keeps one that is in flight."""
    for deleter, managed in deleters(lib):
        if not in_shared_object(deleter):
            raise NotApplicable("its deleter is no compiled function: ctypes cannot keep it")
        mine = ValueError("mine")
        equal(
            "exception in flight", repr(mine), repr(exception_left(mine, object, deleter, managed))
        )
    for deleter, managed in deleters(lib):
        ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(deleter)(managed)  # raises what it sets


@rule("DL228", "should", "Python specification, Implementation, example", "p", fresh=True)
def deleter_after_finalize(lib: Library) -> None:
    """A deleter that is called after the end of the interpreter does not crash."""
    for deleter, managed in deleters(lib):
        if not in_shared_object(deleter):
            raise NotApplicable("its deleter is no compiled function: ctypes cannot be called then")
        # At the end of the process, which is after the interpreter's.
        at_exit = c_library().__cxa_atexit
        equal("at exit", 0, at_exit(ctypes.c_void_p(deleter), ctypes.c_void_p(managed), None))


@rule("DL229", "derived", "Python specification, Implementation", "p")
def many_exports(lib: Library) -> None:
    """Many exports of one array live side by side, each with its own managed tensor."""
    views: list[Imported] = []
    array = lib.make([1.0, 2.0, 3.0])
    count = len(exported_often(array, views))
    equal("managed tensors", count, len({view.managed_address for view in views}))
    for view in views:
        view.take()
    order = [i * 7 % count for i in range(count)]
    for i in order[: count // 2]:
        views[i].delete()
    for i in order[count // 2 :]:
        equal("shape", (3,), views[i].shape)
        equal("elements", [1.0, 2.0, 3.0], views[i].to_list())
        views[i].delete()
    equal("the source", [1.0, 2.0, 3.0], lib.to_list(array))


THREADS, TURNS = 16, 250
ENOUGH = 3.0  # seconds


def in_threads(work: Any) -> None:
    """Runs it on all threads at once, with their numbers, and raises the first that fails."""
    failures: list[BaseException] = []

    def run(number: int) -> None:
        try:
            work(number)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=run, args=[number]) for number in range(THREADS)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(interval)
    for failure in failures:
        raise failure


def exports_on_threads(lib: Library) -> None:
    shared = lib.make([1.0, 2.0])

    end = time.monotonic() + ENOUGH

    def work(number: int) -> None:
        mine = lib.make([float(number), 2.0])
        for turn in range(TURNS):
            if time.monotonic() > end:
                break
            for array, first in ((mine, float(number)), (shared, 1.0)):
                view = exported(array)
                equal("elements", [first, 2.0], view.to_list())
                if turn % 2:
                    view.take()
                    view.delete()

    in_threads(work)


def imports_on_threads(lib: Library) -> None:
    takes(lib, Producer())
    end = time.monotonic() + ENOUGH

    def work(number: int) -> None:
        for _ in range(TURNS // 4):
            if time.monotonic() > end:
                break
            x = Producer([float(number), 2.0])
            accepted(lib, x)
            producers.append(x)

    producers: list[Producer] = []
    in_threads(work)
    gc.collect()
    for x in producers:
        end = time.monotonic() + 1
        while not x.deleted and not x.untaken() and time.monotonic() < end:
            time.sleep(0.01)  # consumers may do it on a thread
        equal("calls of each deleter", len(x.capsules), len(x.deleted) + x.untaken())


@rule("DL230", "derived", "Python specification, Semantics", "pc", fresh=True)
def threads(lib: Library) -> None:
    """Arrays are exported, taken and dropped on many threads at once."""
    either(lib, exports_on_threads, imports_on_threads)


class Held:
    """What the deleter of a tensor is called for."""

    def __init__(self, view: Imported, gone: list[bool]) -> None:
        self.view, self.gone = view, gone

    def __del__(self) -> None:
        self.gone.append(True)
        self.view.delete()


@rule("DL231", "silent", "-", "p")
def gc_cycle(lib: Library) -> Report:
    """Whether an array that holds the consumer of its tensor is collected."""
    array, gone = lib.make([1.0, 2.0]), list[bool]()
    view = exported(array)
    view.take()
    view.capsule = None
    try:
        array.held = Held(view, gone)
    except (AttributeError, TypeError):
        return Report("its arrays hold no others: there is no cycle")
    del array, view
    gc.collect()
    return Report("collected" if gone else "not collected")


def exports_views(lib: Library) -> None:
    array = lib.make([1.0, 2.0])
    equal("address", lib.address(array), exported(array).address)


def takes_views(lib: Library) -> None:
    for x, array in taken(lib):
        equal("address", x.address, lib.address(array))


@rule("DL232", "must", "Python specification, Semantics; array API, Data interchange, 4", "pc")
def zero_copy_if_possible(lib: Library) -> None:
    """Where it is possible, the result is a view."""
    either(lib, exports_views, takes_views)


@rule("DL233", "derived", "dlpack.h, deleter; Python specification, Implementation", "c")
def consumer_fails_clean(lib: Library) -> None:
    """A tensor is deleted once, too, if the consumer fails after it took it, as for lack of memory
    for a copy."""
    if sys.platform != "linux":
        raise NotApplicable("not run here: it needs a limit on memory")
    resource = importlib.import_module("resource")
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    for legacy in (True, False):
        x = Producer([1], "uint8", [1 << 45], [1], legacy=legacy)
        resource.setrlimit(resource.RLIMIT_AS, (1 << 45, most))
        with contextlib.suppress(NotApplicable):
            attempt(lib, x, copy=True)
            wait_until_deleted(x)
            equal("deletions", len(x.capsules), x.deletions())
