"""DL2xx, ownership: capsules, deleters and threads."""

import copy
import ctypes
import gc
import math
import threading
import time
import weakref
from ctypes import c_int64, c_void_p

from dlpack_conformance.abi.capsule import (
    PyCapsule_GetName,
    PyCapsule_GetPointer,
    PyCapsule_New,
    PyCapsule_SetName,
    dying_capsule_is_valid,
    dying_capsule_pointer,
    take_exception_away,
)
from dlpack_conformance.abi.dlpack import (
    DELETER,
    LEGACY,
    MAJOR,
    USED_LEGACY,
    USED_VERSIONED,
    VERSIONED,
)
from dlpack_conformance.hooks import kit_reference as hooks
from dlpack_conformance.kit import reference
from dlpack_conformance.kit.consumer import KINDS, USED, Imported
from dlpack_conformance.kit.producer import POISON

from mutants import alike, crash, decorator, exports, mutant
from mutants.descriptor import itemsize
from mutants.native import deletes_by, destroys_by

MOMENT = 1e-5  # seconds, in which other threads run
KEPT = []
OTHER = b"dltensor_other"  # under that of the other structure its reader may hang


@decorator
def imports(kind):
    """The class is the consumer's Imported."""
    reference.Imported = kind


@decorator
def makes_capsules(change):
    """The function gives the capsule, from the address, the name and the destructor."""
    reference.PyCapsule_New = change


@decorator
def destroys(change):
    """The function is what the destructor does with the capsule's address and its first name."""

    def planted(capsule, name):
        take_exception_away()
        change(capsule, name)

    reference.delete_untaken = planted


@decorator
def deletes(change):
    """The function is called with each Export when its deleter is, and deletes it."""

    def planted(self, _managed):
        take_exception_away()
        change(self)

    reference.Export.delete = planted


@decorator
def dies(change):
    """The function is called with the Imported when the last array of it is gone."""
    read, delete = reference.read, reference.Owner.__del__

    def planted(imported, owner):
        array = read(imported, owner)
        owner.accepted = True
        return array

    def planted_delete(self):
        change(self.imported) if hasattr(self, "accepted") else delete(self)

    reference.read, reference.Owner.__del__ = planted, planted_delete


@decorator
def refuses(change):
    """The function is called with each Imported, which is taken, that the consumer refuses."""
    read = reference.read

    def planted(imported, owner):
        try:
            return read(imported, owner)
        except Exception:
            change(imported)
            raise

    reference.read = planted


# Capsules


@makes_capsules(
    "DL201",
    **alike(
        "DL205 DL206 DL207 DL222 DL223 DL224 DL225 DL226 DL227 DL228 DL303 DL304 DL308",
        "no capsule",
    ),
)
def legacy_capsule_is_an_address(address, name, destructor):
    return address if name == LEGACY else PyCapsule_New(address, name, destructor)


@makes_capsules(
    "DL202",
    **alike(
        "DL205 DL206 DL207 DL222 DL223 DL224 DL225 DL226 DL227 DL228 DL303 DL308",
        "it cannot be read",
    ),
)
def legacy_tensor_has_another_name(address, name, destructor):
    return PyCapsule_New(address, OTHER if name == LEGACY else name, destructor)


@makes_capsules(
    "DL203",
    **alike(
        "DL101 DL109 DL111 DL112 DL117 DL128 DL130 DL131 DL137 DL144 DL147 DL150 DL154 DL158 "
        "DL159 DL165 DL166 DL167 DL204 DL205 DL206 DL207 DL208 DL222 DL223 DL224 DL225 DL226 "
        "DL227 DL228 DL229 DL230 DL232 DL305 DL306 DL307 DL309 DL311 DL312 DL313 DL315 DL316 "
        "DL318 DL319 DL322 DL326 DL327 DL329 DL330 DL331 DL332 DL334 DL342 DL343",
        "it cannot be read",
    ),
)
def versioned_tensor_has_another_name(address, name, destructor):
    return PyCapsule_New(address, OTHER if name == VERSIONED else name, destructor)


@mutant("DL204")
def name_is_freed_with_the_tensor():
    names, delete = {}, reference.Export.delete

    def new(address, name, destructor):
        names[address] = ctypes.create_string_buffer(name)
        return PyCapsule_New(address, names[address], destructor)

    def planted(self, managed):
        take_exception_away()
        names.pop(managed, None)
        delete(self, managed)

    reference.PyCapsule_New, reference.Export.delete = new, planted


@makes_capsules("DL204")
def name_is_new_each_time(address, name, destructor):
    KEPT.append(ctypes.create_string_buffer(name))
    return PyCapsule_New(address, KEPT[-1], destructor)


@imports("DL204")
class UsedNameIsFreedWithTheArray(Imported):
    def take(self):
        super().take()
        self.used = ctypes.create_string_buffer(USED[self.name])
        PyCapsule_SetName(self.capsule, self.used)

    def delete(self):
        super().delete()
        if hasattr(self, "used"):
            ctypes.memset(self.used, POISON, len(self.used) - 1)


@destroys("DL205")
def destructor_leaks(capsule, name):
    pass


delete_untaken = reference.delete_untaken


@destroys("DL205")
def destructor_leaks_legacy_tensors(capsule, name):
    if name == VERSIONED:
        delete_untaken(capsule, name)


@destroys("DL205")
def destructor_leaks_versioned_tensors(capsule, name):
    if name == LEGACY:
        delete_untaken(capsule, name)


@destroys("DL206", **alike("DL222 DL223 DL230", "what was used is read"))
def destructor_deletes_what_was_used(capsule, name):
    delete_untaken(capsule, name)
    if dying_capsule_is_valid(capsule, USED[name]):
        managed = dying_capsule_pointer(capsule, USED[name])
        DELETER(KINDS[name].from_address(managed).deleter)(managed)


@destroys("DL207")
def destructor_calls_null(capsule, name):
    if dying_capsule_is_valid(capsule, name):
        managed = dying_capsule_pointer(capsule, name)
        DELETER(KINDS[name].from_address(managed).deleter or 0)(managed)


# Consumers


@imports(
    "DL209",
    **alike("DL211 DL214 DL215 DL220 DL233", "deleted twice"),
)
class LegacyNameIsLeft(Imported):
    def take(self):
        super().take()
        if not self.versioned:
            PyCapsule_SetName(self.capsule, LEGACY)


@imports(
    "DL209",
    **alike("DL103 DL211 DL214 DL215 DL220 DL230 DL233", "deleted twice"),
)
class VersionedNameIsLeft(Imported):
    def take(self):
        super().take()
        if self.versioned:
            PyCapsule_SetName(self.capsule, VERSIONED)


@imports("DL210")
class VersionedIsRenamedAsLegacy(Imported):
    def take(self):
        super().take()
        PyCapsule_SetName(self.capsule, USED_LEGACY)


@imports("DL210")
class LegacyIsRenamedAsVersioned(Imported):
    def take(self):
        super().take()
        PyCapsule_SetName(self.capsule, USED_VERSIONED)


class RenamedAfterDeleter(Imported):
    def take(self):
        self.taken = True

    def delete(self):
        taken = self.taken
        super().delete()
        if taken:
            PyCapsule_SetName(self.capsule, USED[self.name])


@mutant("DL211")
def renamed_at_the_end():
    from_dlpack = hooks.from_dlpack

    def take(x, **keywords):
        array = from_dlpack(x, **keywords)
        if array.owner:
            PyCapsule_SetName(array.owner.imported.capsule, USED[array.owner.imported.name])
        return array

    hooks.from_dlpack, reference.Imported = take, RenamedAfterDeleter


@mutant("DL211")
def refused_is_renamed_after_its_deleter():
    read = reference.read

    def planted(imported, owner):
        array = read(imported, owner)
        PyCapsule_SetName(imported.capsule, USED[imported.name])
        return array

    reference.read, reference.Imported = planted, RenamedAfterDeleter


@imports("DL212")
class UsedCapsuleIsTakenAgain(Imported):
    def __init__(self, capsule):
        name = PyCapsule_GetName(capsule) or b""
        if name in (USED_LEGACY, USED_VERSIONED):
            PyCapsule_SetName(capsule, LEGACY if name == USED_LEGACY else VERSIONED)
        super().__init__(capsule)


def taken_as_versioned(capsule):
    """A capsule of the same pointer with the name that is not its own."""
    return PyCapsule_New(PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule)), VERSIONED, None)


@imports("DL213")
class CapsuleOfAnyNameIsTaken(Imported):
    def __init__(self, capsule):
        known = PyCapsule_GetName(capsule) in (LEGACY, VERSIONED, USED_LEGACY, USED_VERSIONED)
        super().__init__(capsule if known else taken_as_versioned(capsule))


@imports("DL213")
class CapsuleWithoutNameIsTaken(Imported):
    def __init__(self, capsule):
        named = PyCapsule_GetName(capsule) is not None
        super().__init__(capsule if named else taken_as_versioned(capsule))


@imports("DL213")
class ForeignCapsuleIsRenamed(Imported):
    def __init__(self, capsule):
        name = PyCapsule_GetName(capsule)
        if name not in (LEGACY, VERSIONED, USED_LEGACY, USED_VERSIONED):
            PyCapsule_SetName(capsule, USED_LEGACY)
        super().__init__(capsule)


# Deletion by consumers


@refuses("DL214", DL103="a refusal")
def refused_is_not_deleted(imported):
    imported.taken = False


@refuses("DL214", DL103="a refusal", DL218="read again")
def refused_is_deleted_twice(imported):
    imported.delete()
    imported.taken = True


@refuses("DL214", DL103="a refusal", DL218="read again")
def refused_is_deleted_and_gets_its_name_back(imported):
    imported.delete()
    PyCapsule_SetName(imported.capsule, imported.name)


@mutant("DL214")
def refused_for_its_dtype_is_not_deleted():
    read, dtype_name = reference.read, reference.dtype_name

    def planted(imported, owner):
        if not imported.versioned or imported.managed.version.major == MAJOR:
            try:
                dtype_name(*imported.dtype)
            except BufferError:
                imported.taken = False
        return read(imported, owner)

    reference.read = planted


@dies("DL215", **alike("DL220 DL230 DL233", "deletions"))
def array_is_not_deleted(imported):
    pass


@dies("DL215", **alike("DL218 DL220 DL224 DL230 DL233", "deletions"))
def array_is_deleted_twice(imported):
    imported.delete()
    imported.taken = True
    imported.delete()


@mutant("DL215", DL216="the first of them is early")
def each_view_deletes():
    views = hooks.views

    def planted(array):
        made = views(array)
        for view in made:
            view.owner = reference.Owner(copy.copy(array.owner.imported))
        return made

    hooks.views = planted


@mutant("DL216")
def views_keep_nothing():
    views = hooks.views

    def planted(array):
        made = views(array)
        for view in made:
            view.owner = None
        return made

    hooks.views = planted


@mutant("DL216")
def first_dropped_view_deletes():
    views = hooks.views

    def planted(array):
        made = views(array)
        for view in made:
            weakref.finalize(view, array.owner.imported.delete)
        return made

    hooks.views = planted


@imports("DL217", DL104="the copy reads all")
class DeleterGetsCopy(Imported):
    def delete(self):
        self.copy = type(self.managed).from_buffer_copy(self.managed)
        self.managed_address = ctypes.addressof(self.copy)
        super().delete()


@imports("DL217")
class DeleterGetsTensor(Imported):
    def delete(self):
        self.managed_address = ctypes.addressof(self.managed.dl_tensor)
        super().delete()


@imports("DL218", DL104="the axes")
class StructIsReadAfterDeleter(Imported):
    def delete(self):
        super().delete()
        self.last = self.managed.dl_tensor.ndim


@refuses("DL218")
def refusal_is_said_after_deleter(imported):
    imported.delete()
    imported.last = imported.managed.manager_ctx


@imports("DL219")
class NullDeleterIsCalled(Imported):
    def delete(self):
        if self.taken and not self.managed.deleter:
            crash()
        super().delete()


@imports("DL219")
class NullDeleterIsRefused(Imported):
    def __init__(self, capsule):
        super().__init__(capsule)
        if not self.managed.deleter:
            raise BufferError("there is no deleter")


@imports("DL220", **alike("DL103 DL214 DL215 DL230 DL233", "not deleted"))
class NoContextIsNotDeleted(Imported):
    def delete(self):
        self.taken = self.taken and self.managed.manager_ctx is not None
        super().delete()


@imports("DL220", **alike("DL115 DL145 DL166", "refused"))
class NoContextIsRefused(Imported):
    def __init__(self, capsule):
        super().__init__(capsule)
        if self.managed.manager_ctx is None:
            raise BufferError("there is no context")


@imports("DL220")
class ContextIsRead(Imported):
    def __init__(self, capsule):
        super().__init__(capsule)
        if self.managed.manager_ctx:
            ctypes.string_at(self.managed.manager_ctx, 1)


@imports("DL221")
class FlagsAreWritten(Imported):
    def take(self):
        super().take()
        if self.versioned:
            self.managed.flags |= 1 << 40


@imports("DL221")
class ContextIsWritten(Imported):
    def take(self):
        super().take()
        self.managed.manager_ctx = id(self)


@imports("DL221")
class DeleterIsWritten(Imported):
    def delete(self):
        deleter, self.managed.deleter = self.managed.deleter, None
        if self.taken and deleter:
            DELETER(deleter)(self.managed_address)
        self.taken = False


@imports("DL221")
class StridesAreFilledIn(Imported):
    def take(self):
        super().take()
        known = not self.versioned or self.managed.version.major == MAJOR
        if known and self.tensor.ndim == 1 and not self.tensor.strides:
            self.filled = (c_int64 * self.tensor.ndim)(*self.strides)
            self.tensor.strides = self.filled


@imports("DL221")
class OffsetIsAddedInPlace(Imported):
    def take(self):
        super().take()
        known = not self.versioned or self.managed.version.major == MAJOR
        if known and self.tensor.data:
            self.tensor.data += self.tensor.byte_offset
            self.tensor.byte_offset = 0


# Producers while they share

DEAD = []  # (address, size) of memory that was freed


def reuse(*_):
    while DEAD:
        ctypes.memset(DEAD[-1][0], POISON, DEAD.pop()[1])


@decorator
def frees(change):
    """Memory that the function gives as (address, size), of an Export, dies with the source. It is
    used again at the next `make` or collection."""
    fill, make = reference.Export.__init__, hooks.make

    def export(self, array, versioned, flags):
        same = object.__new__(type(array))  # copy.copy would copy the elements
        vars(same).update(vars(array))
        fill(self, same, versioned, flags)
        address, size = change(self)
        if address and size:
            weakref.finalize(array, DEAD.append, (address, size)).atexit = False

    def planted(*values, **keywords):
        reuse()
        return make(*values, **keywords)

    reference.Export.__init__, hooks.make = export, planted
    gc.callbacks.append(lambda phase, info: reuse() if info["generation"] == 2 else None)


@frees("DL222", **alike("DL120 DL122 DL166", "the source is gone"))
def shape_dies_with_the_source(export):
    tensor = export.managed.dl_tensor
    return ctypes.cast(tensor.shape, c_void_p).value, 8 * tensor.ndim


@frees("DL222", **alike("DL120 DL122 DL166", "the source is gone"))
def strides_die_with_the_source(export):
    tensor = export.managed.dl_tensor
    return ctypes.cast(tensor.strides, c_void_p).value, 8 * tensor.ndim


@exports("DL222")
def all_shapes_are_in_one_place(export):
    tensor = export.managed.dl_tensor
    for axis, extent in enumerate(export.array.shape):
        ONE_PLACE[axis] = extent
    tensor.shape = ONE_PLACE


ONE_PLACE = (c_int64 * 10_000)()


@frees("DL223", DL120="the source is gone", DL122="the source is gone")
def elements_die_with_the_source(export):
    contiguous = export.array.strides == reference.row_major(export.array.shape)
    size = math.prod(export.array.shape) * itemsize(export.array)
    return export.array.address, size if contiguous else 0


@mutant("DL224", DL349="the source is read")
def source_cannot_be_read_while_shared():
    to_list = hooks.to_list

    def planted(array):
        if any(export.array is array for export in reference.Export.alive):
            raise ValueError("the array is shared")
        return to_list(array)

    hooks.to_list = planted


@mutant("DL224")
def source_cannot_be_written_while_shared():
    write = hooks.write

    def planted(array, value):
        if any(export.array is array for export in reference.Export.alive):
            raise ValueError("the array is shared")
        write(array, value)

    hooks.write = planted


@deletes("DL224", **alike("DL206 DL229 DL230 DL318 DL349", "the source is read"))
def source_dies_with_its_consumer(export):
    reference.Export.alive.discard(export)
    if math.prod(export.array.shape):
        ctypes.memset(export.array.address, POISON, itemsize(export.array))


@dies("DL224")
def consumer_clears_the_memory(imported):
    if imported.tensor.data:
        ctypes.memset(imported.address, 0, math.prod(imported.shape) and imported.dtype[1] // 8)
    imported.delete()


# Deleters


@deletes("DL225")
def deleter_needs_a_thread_of_python(export):
    if isinstance(threading.current_thread(), threading._DummyThread):
        crash()
    reference.Export.alive.discard(export)


@deletes("DL225", DL230="other threads")
def deleter_needs_the_main_thread(export):
    if threading.current_thread() is not threading.main_thread():
        crash()
    reference.Export.alive.discard(export)


@deletes_by("DL226", DL227="with the GIL")
def fails_with_gil():
    """It waits for the GIL, which it has."""


@destroys_by("DL208")
@deletes_by("DL227")
def clears():
    """The exception in flight."""


@destroys_by("DL208")
@deletes_by("DL227")
def replaces():
    """The exception in flight by another one."""


@deletes_by("DL227", DL226="it arrives there too")
def leaves_one():
    """An exception, if the caller has the GIL."""


@deletes_by("DL228")
def fails_after_the_end():
    """Of the interpreter."""


@destroys_by(None)
@deletes_by(None)
def keeps():
    """The exception in flight, and leaks after the interpreter's end."""


# Many exports


@mutant("DL229", **alike("DL147 DL230 DL318", "several exports"))
def exports_share_one_struct():
    delete = reference.Export.delete
    destructors = {True: "delete_untaken_versioned", False: "delete_untaken_legacy"}

    def export(array, versioned, flags):
        shared = vars(array).setdefault("shared", {})
        if (versioned, flags) not in shared:
            shared[versioned, flags] = reference.Export(array, versioned, flags)
            KEPT.append(shared[versioned, flags])
        address = ctypes.addressof(shared[versioned, flags].managed)
        destructor = ctypes.cast(getattr(reference, destructors[versioned]), c_void_p)
        return PyCapsule_New(address, VERSIONED if versioned else LEGACY, destructor)

    def planted(self, managed):
        delete(self, managed)
        self.array.shared.clear()
        ctypes.memset(managed, 0, ctypes.sizeof(self.managed))

    reference.export, reference.Export.delete = export, planted


@deletes("DL229", **alike("DL206 DL230 DL318", "several exports"))
def deleter_frees_all_exports_of_the_array(export):
    for other in [other for other in reference.Export.alive if other.array is export.array]:
        reference.Export.alive.discard(other)
        other.managed.dl_tensor.data = None
        KEPT.append(other)


@mutant("DL229", DL204="many exports")
def only_100_exports_at_once():
    export = reference.export

    def planted(array, versioned, flags):
        alive = [1 for other in list(reference.Export.alive) if other.array is array]
        if len(alive) >= 100:
            raise MemoryError("too many exports")
        return export(array, versioned, flags)

    reference.export = planted


@mutant("DL230")
def exports_of_two_threads_are_mixed():
    export, current = reference.export, []

    def planted(array, versioned, flags):
        current[:] = [array]
        time.sleep(MOMENT)
        return export(current[0], versioned, flags)

    reference.export = planted


@deletes("DL230")
def deletions_of_two_threads_are_mixed(export):
    alive = reference.Export.alive.copy()
    time.sleep(MOMENT)
    alive.discard(export)
    reference.Export.alive = alive
    KEPT.append(export)


@imports("DL230")
class ImportsOfTwoThreadsAreMixed(Imported):
    last = None

    def delete(self):
        ImportsOfTwoThreadsAreMixed.last = self
        time.sleep(MOMENT)
        Imported.delete(ImportsOfTwoThreadsAreMixed.last)


# Views and failures


@mutant("DL232", DL167="by way of Python's floats")
def consumer_always_copies():
    read = reference.read
    reference.read = lambda imported, owner: read(imported, owner).copied()


@mutant("DL232")
def consumer_copies_legacy_tensors():
    read = reference.read

    def planted(imported, owner):
        array = read(imported, owner)
        return array if imported.versioned else array.copied()

    reference.read = planted


def on_failed_copy(do):
    copied = reference.Array.copied

    def planted(self):
        try:
            return copied(self)
        except MemoryError:
            if self.owner:
                do(self.owner.imported)
            raise

    reference.Array.copied = planted


@mutant("DL233")
def tensor_is_not_deleted_if_the_copy_fails():
    def leak(imported):
        imported.taken = False

    on_failed_copy(leak)


@mutant("DL233")
def tensor_is_deleted_twice_if_the_copy_fails():
    def twice(imported):
        imported.delete()
        imported.taken = True

    on_failed_copy(twice)
