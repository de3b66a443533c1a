"""A producer that can say anything: DLPack structures by ctypes, with a count of deleter calls and
canaries around all memory that it exports."""

import ctypes
import mmap
from ctypes import (
    CFUNCTYPE,
    POINTER,
    PYFUNCTYPE,
    c_char_p,
    c_int32,
    c_int64,
    c_uint8,
    c_uint16,
    c_uint32,
    c_uint64,
    c_void_p,
    py_object,
)

import system

LEGACY, VERSIONED = b"dltensor", b"dltensor_versioned"
CPU, CUDA, CUDA_HOST = 1, 2, 3
INT, UINT, FLOAT, OPAQUE, BFLOAT, COMPLEX, BOOL = range(7)
READ_ONLY, IS_COPIED, PADDED = 1, 2, 4

# Functions of these tests alone: dill sets other types on those of ctypes.pythonapi.
pythonapi = system.interpreter()
new_capsule = pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = py_object, [c_void_p, c_char_p, c_void_p]
capsule_pointer = pythonapi.PyCapsule_GetPointer
capsule_pointer.restype, capsule_pointer.argtypes = c_void_p, [py_object, c_char_p]
rename_capsule = pythonapi.PyCapsule_SetName
rename_capsule.argtypes = [py_object, c_char_p]
capsule_name = pythonapi.PyCapsule_GetName
capsule_name.restype, capsule_name.argtypes = c_char_p, [py_object]
# For destructors: a dying object must not be referred to once more.
is_dying_as = pythonapi.PyCapsule_IsValid
is_dying_as.argtypes = [c_void_p, c_char_p]
DESTRUCTOR = PYFUNCTYPE(None, c_void_p)

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


class DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", c_void_p),
        ("device_type", c_int32),
        ("device_id", c_int32),
        ("ndim", c_int32),
        ("code", c_uint8),
        ("bits", c_uint8),
        ("lanes", c_uint16),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    )


class Legacy(ctypes.Structure):
    _fields_ = (("tensor", DLTensor), ("manager_ctx", c_void_p), ("deleter", c_void_p))


class Versioned(ctypes.Structure):
    _fields_ = (
        ("major", c_uint32),
        ("minor", c_uint32),
        ("manager_ctx", c_void_p),
        ("deleter", c_void_p),
        ("flags", c_uint64),
        ("tensor", DLTensor),
    )


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
        self.managed = self.canaries.place(Legacy if legacy else Versioned)
        deleter = fields.pop("deleter", CFUNCTYPE(None, c_void_p)(self._delete))
        self._destructor = DESTRUCTOR(self._destroy) if fields.pop("destructor", False) else None
        self._keep = [deleter]
        self.managed.deleter = ctypes.cast(deleter, c_void_p) if deleter else None
        if not legacy:
            self.managed.major = fields.pop("major", 1)
            self.managed.minor = fields.pop("minor", 3)
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
        self.managed.tensor.ndim = fields.pop("ndim", len(fields["shape"] or ()))
        for name, value in fields.items():
            if isinstance(value, tuple):
                value = self.canaries.place(c_int64 * len(value), value)  # noqa: PLW2901
                self._keep.append(value)
            setattr(self.managed.tensor, name, value)

    def _delete(self, _pointer):
        self.deleted += 1

    def _destroy(self, capsule):
        if is_dying_as(capsule, self.name):
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
        return new_capsule(
            ctypes.addressof(self.managed), name, ctypes.cast(self._destructor, c_void_p)
        )

    def __dlpack__(self, **keywords):
        self.calls.append(keywords)
        return self.capsule()

    def __dlpack_device__(self):
        return self.managed.tensor.device_type, self.managed.tensor.device_id


def version_of(capsule):
    """Of a capsule's tensor, as text; None for a legacy one, which has no version."""
    if capsule_name(capsule) != VERSIONED:
        return None
    tensor = Versioned.from_address(capsule_pointer(capsule, VERSIONED))
    return f"{tensor.major}.{tensor.minor}"
