"""A producer that can say anything, with a count of deleter calls and canaries around all memory
that it exports. The structures are those of the conformance kit.
"""

import ctypes
import mmap
from ctypes import c_int64, c_void_p

import system
from dlpack_conformance.abi.capsule import (
    CAPSULE_DESTRUCTOR,
    PyCapsule_GetName,
    PyCapsule_GetPointer,
    PyCapsule_New,
    dying_capsule_is_valid,
)
from dlpack_conformance.abi.dlpack import (
    CPU,
    DELETER,
    FLOAT,
    LEGACY,
    VERSIONED,
    DLManagedTensor,
    DLManagedTensorVersioned,
)

CANARY = bytes(range(0x80, 0xC0))


class Canaries:
    """Memory between canaries: who writes outside of it, kills one."""

    unseen = set()  # noqa: RUF012 (all that have not been checked)

    def __init__(self):
        self.cages = []
        Canaries.unseen.add(self)

    def place(self, kind, values=()):
        """A new ctypes object of this type."""
        content = values if isinstance(values, bytes) else bytes(ctypes.sizeof(kind))
        cage = bytearray(CANARY + content + CANARY)
        self.cages.append(cage)
        placed = kind.from_buffer(cage, len(CANARY))
        if values and values is not content:
            placed[:] = values
        return placed

    def check(self):
        """Asserts that they live; who has asked need not be asked at the end of the test."""
        Canaries.unseen.discard(self)
        for cage in self.cages:
            assert cage.startswith(CANARY), "a write before the memory"
            assert cage.endswith(CANARY), "a write behind the memory"

    @staticmethod
    def check_all():
        for canaries in list(Canaries.unseen):
            canaries.check()


PAGES = []  # for the life of the process


def before_guard_page(size):
    """The address of `size` bytes, behind which nothing can be read."""
    page = mmap.PAGESIZE
    pages = mmap.mmap(-1, 2 * page)
    PAGES.append(pages)
    guard = ctypes.addressof(ctypes.c_char.from_buffer(pages)) + page
    system.forbid_access(guard, page)
    return guard - size


#: Where the fields of a producer's tensor are that lie in a structure within it.
WITHIN = dict.fromkeys(["device_type", "device_id"], "device")
WITHIN |= dict.fromkeys(["code", "bits", "lanes"], "dtype")


class Producer:
    """Makes one capsule; `deleted` counts how often its deleter ran.

    The object must outlive the capsule: it owns the memory that the capsule describes, so that a
    use after the deleter would be visible as wrong values rather than as a crash.

    Capsules that are not taken are left alone, or deleted with `destructor=True`, as those of real
    producers are.
    """

    def __init__(self, values=(1.0, 2.0, 3.0), ctype=ctypes.c_float, *, legacy=False, **fields):
        self.canaries = Canaries()
        self.memory = self.canaries.place(ctype * len(values), values)
        self.given = self.deleted = 0
        self.calls = []
        self.legacy = legacy
        self.managed = self.canaries.place(DLManagedTensor if legacy else DLManagedTensorVersioned)
        deleter = fields.pop("deleter", DELETER(self._delete))
        has_destructor = fields.pop("destructor", False)
        self._destructor = CAPSULE_DESTRUCTOR(self._destroy) if has_destructor else None
        self._keep = [deleter]
        self.managed.deleter = ctypes.cast(deleter, c_void_p) if deleter else None
        if not legacy:
            self.managed.version.major = fields.pop("major", 1)
            self.managed.version.minor = fields.pop("minor", 3)
            self.managed.flags = fields.pop("flags", 0)
        size = ctypes.sizeof(ctype)
        defaults = {
            "data": ctypes.addressof(self.memory),
            "device_type": CPU,
            "device_id": 0,
            "code": FLOAT,
            "bits": 8 * size,
            "lanes": 1,
            "shape": (len(values),),
            "strides": None,
            "byte_offset": 0,
        }
        fields = defaults | fields
        tensor = self.managed.dl_tensor
        tensor.ndim = fields.pop("ndim", len(fields["shape"] or ()))
        for name, value in fields.items():
            if isinstance(value, tuple):
                value = self.canaries.place(c_int64 * len(value), value)  # noqa: PLW2901
                self._keep.append(value)
            setattr(getattr(tensor, WITHIN[name]) if name in WITHIN else tensor, name, value)

    def _delete(self, _pointer):
        self.deleted += 1

    def _destroy(self, capsule):
        if dying_capsule_is_valid(capsule, self.name):
            self._delete(None)

    @property
    def name(self):
        return LEGACY if self.legacy else VERSIONED

    @property
    def address(self):
        return ctypes.addressof(self.memory)

    def capsule(self, name=None):
        name = name or self.name
        self._keep.append(name)
        self.given += 1
        return PyCapsule_New(
            ctypes.addressof(self.managed), name, ctypes.cast(self._destructor, c_void_p)
        )

    def __dlpack__(self, **keywords):
        self.calls.append(keywords)
        return self.capsule()

    def __dlpack_device__(self):
        return device_of(self.managed.dl_tensor)


def header(capsule):
    """The structure inside, as a C consumer reads it."""
    name = PyCapsule_GetName(capsule)
    kind = {VERSIONED: DLManagedTensorVersioned, LEGACY: DLManagedTensor}[name]
    return kind.from_address(PyCapsule_GetPointer(capsule, name))


def device_of(tensor):
    return tensor.device.device_type, tensor.device.device_id


def dtype_of(tensor):
    return tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes


def version_of(capsule):
    """Of a capsule's tensor, as text; None for a legacy one, which has no version."""
    if PyCapsule_GetName(capsule) != VERSIONED:
        return None
    version = header(capsule).version
    return f"{version.major}.{version.minor}"
