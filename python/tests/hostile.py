"""A producer that can say anything: DLPack structures by ctypes, with a count of deleter calls."""

import ctypes
from ctypes import (
    CFUNCTYPE,
    POINTER,
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

LEGACY, VERSIONED = b"dltensor", b"dltensor_versioned"
CPU, CUDA, CUDA_HOST = 1, 2, 3
INT, UINT, FLOAT, OPAQUE, BFLOAT, COMPLEX, BOOL = range(7)
READ_ONLY, IS_COPIED, PADDED = 1, 2, 4

new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = py_object, [c_void_p, c_char_p, c_void_p]
capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
capsule_pointer.restype, capsule_pointer.argtypes = c_void_p, [py_object, c_char_p]
rename_capsule = ctypes.pythonapi.PyCapsule_SetName
rename_capsule.argtypes = [py_object, c_char_p]
capsule_name = ctypes.pythonapi.PyCapsule_GetName
capsule_name.restype, capsule_name.argtypes = c_char_p, [py_object]


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
    """

    def __init__(self, values=(1.0, 2.0, 3.0), ctype=ctypes.c_float, *, legacy=False, **fields):
        self.memory = (ctype * len(values))(*values)
        self.deleted = 0
        self.calls = []
        self.legacy = legacy
        self.managed = (Legacy if legacy else Versioned)()
        deleter = fields.pop("deleter", CFUNCTYPE(None, c_void_p)(self._delete))
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
                value = (c_int64 * len(value))(*value)  # noqa: PLW2901
                self._keep.append(value)
            setattr(self.managed.tensor, name, value)

    def _delete(self, _pointer):
        self.deleted += 1

    @property
    def address(self):
        return ctypes.addressof(self.memory)

    def capsule(self, name=None):
        """Owned by nobody in particular: there is no destructor that would delete the tensor."""
        name = name or (LEGACY if self.legacy else VERSIONED)
        self._keep.append(name)
        return new_capsule(ctypes.addressof(self.managed), name, None)

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
