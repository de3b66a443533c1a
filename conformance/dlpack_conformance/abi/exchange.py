"""The C exchange API of dlpack.h 1.3."""

from ctypes import CFUNCTYPE, POINTER, PYFUNCTYPE, Structure, c_char_p, c_int, c_int32, c_void_p

from dlpack_conformance.abi.dlpack import DLPackVersion, DLTensor

ATTRIBUTE, OLD_ATTRIBUTE = "__dlpack_c_exchange_api__", "__c_dlpack_exchange_api__"
EXCHANGE_API = b"dlpack_exchange_api"

SET_ERROR = CFUNCTYPE(None, c_void_p, c_char_p, c_char_p)
# Those that may set a Python exception are called with the GIL.
ALLOCATOR = PYFUNCTYPE(c_int, POINTER(DLTensor), POINTER(c_void_p), c_void_p, SET_ERROR)
FROM_PY_OBJECT = PYFUNCTYPE(c_int, c_void_p, POINTER(c_void_p))
TO_PY_OBJECT = PYFUNCTYPE(c_int, c_void_p, POINTER(c_void_p))
DLTENSOR_FROM_PY_OBJECT = PYFUNCTYPE(c_int, c_void_p, POINTER(DLTensor))
CURRENT_WORK_STREAM = PYFUNCTYPE(c_int, c_int32, c_int32, POINTER(c_void_p))


class DLPackExchangeAPIHeader(Structure):
    _fields_ = (("version", DLPackVersion), ("prev_api", c_void_p))


class DLPackExchangeAPI(Structure):
    _fields_ = (
        ("header", DLPackExchangeAPIHeader),
        ("managed_tensor_allocator", c_void_p),
        ("managed_tensor_from_py_object_no_sync", c_void_p),
        ("managed_tensor_to_py_object_no_sync", c_void_p),
        ("dltensor_from_py_object_no_sync", c_void_p),
        ("current_work_stream", c_void_p),
    )
