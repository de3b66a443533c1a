"""Arrow's C data, C stream and C device structures."""

from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_int, c_int32, c_int64, c_void_p

ARROW_SCHEMA, ARROW_ARRAY = b"arrow_schema", b"arrow_array"
ARROW_ARRAY_STREAM = b"arrow_array_stream"
ARROW_DEVICE_ARRAY = b"arrow_device_array"
ARROW_DEVICE_ARRAY_STREAM = b"arrow_device_array_stream"

DICTIONARY_ORDERED, NULLABLE, MAP_KEYS_SORTED = 1, 2, 4


class ArrowSchema(Structure):
    # `metadata` holds NUL bytes: an address, not a text.
    _fields_ = (
        ("format", c_char_p),
        ("name", c_char_p),
        ("metadata", c_void_p),
        ("flags", c_int64),
        ("n_children", c_int64),
        ("children", POINTER(c_void_p)),
        ("dictionary", c_void_p),
        ("release", c_void_p),
        ("private_data", c_void_p),
    )


class ArrowArray(Structure):
    _fields_ = (
        ("length", c_int64),
        ("null_count", c_int64),
        ("offset", c_int64),
        ("n_buffers", c_int64),
        ("n_children", c_int64),
        ("buffers", POINTER(c_void_p)),
        ("children", POINTER(c_void_p)),
        ("dictionary", c_void_p),
        ("release", c_void_p),
        ("private_data", c_void_p),
    )


class ArrowArrayStream(Structure):
    _fields_ = (
        ("get_schema", c_void_p),
        ("get_next", c_void_p),
        ("get_last_error", c_void_p),
        ("release", c_void_p),
        ("private_data", c_void_p),
    )


class ArrowDeviceArray(Structure):
    _fields_ = (
        ("array", ArrowArray),
        ("device_id", c_int64),
        ("device_type", c_int32),
        ("sync_event", c_void_p),
        ("reserved", c_int64 * 3),
    )


class ArrowDeviceArrayStream(Structure):
    _fields_ = (
        ("device_type", c_int32),
        ("get_schema", c_void_p),
        ("get_next", c_void_p),
        ("get_last_error", c_void_p),
        ("release", c_void_p),
        ("private_data", c_void_p),
    )


# Of all five: each gets its structure's address. Consumers call it from any thread.
RELEASE = CFUNCTYPE(None, c_void_p)
# get_schema and get_next: of the stream, and of the structure to fill.
GET = CFUNCTYPE(c_int, c_void_p, c_void_p)
# A callback cannot return a c_char_p that outlives it: the address of a text.
GET_LAST_ERROR = CFUNCTYPE(c_void_p, c_void_p)
