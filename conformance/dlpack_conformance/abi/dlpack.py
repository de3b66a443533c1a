"""dlpack.h 1.3: enumerators and structures."""

from ctypes import (
    CFUNCTYPE,
    POINTER,
    Structure,
    c_int32,
    c_int64,
    c_uint8,
    c_uint16,
    c_uint32,
    c_uint64,
    c_void_p,
)

MAJOR, MINOR = 1, 3

LEGACY, VERSIONED = b"dltensor", b"dltensor_versioned"
USED_LEGACY, USED_VERSIONED = b"used_dltensor", b"used_dltensor_versioned"

CPU, CUDA, CUDA_HOST, ROCM, ROCM_HOST, EXT_DEV, CUDA_MANAGED, ONE_API = 1, 2, 3, 10, 11, 12, 13, 14
# Each with the first minor version that has it, counted from 1.0.
DEVICE_TYPES = dict.fromkeys([1, 2, 3, 4, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16], 0)
DEVICE_TYPES |= {17: 1, 18: 2}

INT, UINT, FLOAT, OPAQUE_HANDLE, BFLOAT, COMPLEX, BOOL = range(7)
# Codes 7 to 14 are of 8 bits, 15 and 16 of 6, 17 of 4: all since 1.1.
TYPE_CODES = dict.fromkeys(range(7), 0) | dict.fromkeys(range(7, 18), 1)

DTYPES = {"bool": (BOOL, 8), "bfloat16": (BFLOAT, 16)}
DTYPES |= {f"int{bits}": (INT, bits) for bits in (8, 16, 32, 64)}
DTYPES |= {f"uint{bits}": (UINT, bits) for bits in (8, 16, 32, 64)}
DTYPES |= {f"float{bits}": (FLOAT, bits) for bits in (16, 32, 64)}
DTYPES |= {f"complex{bits}": (COMPLEX, bits) for bits in (64, 128)}
FLOAT8 = ["e3m4", "e4m3", "e4m3b11fnuz", "e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz", "e8m0fnu"]
DTYPES |= {f"float8_{kind}": (7 + i, 8) for i, kind in enumerate(FLOAT8)}
DTYPES |= {"float6_e2m3fn": (15, 6), "float6_e3m2fn": (16, 6), "float4_e2m1fn": (17, 4)}

READ_ONLY, IS_COPIED, SUBBYTE_PADDED = 1, 2, 4


class DLPackVersion(Structure):
    _fields_ = (("major", c_uint32), ("minor", c_uint32))


class DLDevice(Structure):
    _fields_ = (("device_type", c_int32), ("device_id", c_int32))


class DLDataType(Structure):
    _fields_ = (("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16))


class DLTensor(Structure):
    _fields_ = (
        ("data", c_void_p),
        ("device", DLDevice),
        ("ndim", c_int32),
        ("dtype", DLDataType),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    )


class DLManagedTensor(Structure):
    _fields_ = (("dl_tensor", DLTensor), ("manager_ctx", c_void_p), ("deleter", c_void_p))


class DLManagedTensorVersioned(Structure):
    _fields_ = (
        ("version", DLPackVersion),
        ("manager_ctx", c_void_p),
        ("deleter", c_void_p),
        ("flags", c_uint64),
        ("dl_tensor", DLTensor),
    )


# It runs without the GIL and takes it: consumers call it from any thread.
DELETER = CFUNCTYPE(None, c_void_p)
