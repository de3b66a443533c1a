"""Arrow C structures that say anything, by ctypes, with counts of their releases and canaries
around all memory that they tell of."""

import ctypes
from ctypes import CFUNCTYPE, POINTER, c_char_p, c_int, c_int64, c_void_p

import hostile
from dlpack_conformance.abi.capsule import PyCapsule_New


class Schema(ctypes.Structure):
    pass


Schema._fields_ = (
    ("format", c_char_p),
    ("name", c_char_p),
    ("metadata", c_char_p),
    ("flags", c_int64),
    ("n_children", c_int64),
    ("children", POINTER(POINTER(Schema))),
    ("dictionary", POINTER(Schema)),
    ("release", CFUNCTYPE(None, POINTER(Schema))),
    ("private_data", c_void_p),
)


class ArrayStruct(ctypes.Structure):
    pass


ArrayStruct._fields_ = (
    ("length", c_int64),
    ("null_count", c_int64),
    ("offset", c_int64),
    ("n_buffers", c_int64),
    ("n_children", c_int64),
    ("buffers", POINTER(c_void_p)),
    ("children", POINTER(POINTER(ArrayStruct))),
    ("dictionary", POINTER(ArrayStruct)),
    ("release", CFUNCTYPE(None, POINTER(ArrayStruct))),
    ("private_data", c_void_p),
)

NULL_RELEASE = object()


class Source:
    """An Arrow array by hand: 8 int32 zeros by default; counts its releases."""

    def __init__(self, schema=None, children=(), child_arrays=(), **array):
        self.released = 0
        self.memory = hostile.Canaries().place(ctypes.c_int64 * 32)
        buffers = array.pop("buffers", [None, ctypes.addressof(self.memory)])
        self.schema = self.schema_struct({"format": b"i"} | (schema or {}), children)
        self.array = self.array_struct(
            {"length": 8, "n_buffers": len(buffers or [])} | array, buffers, child_arrays
        )

    def schema_struct(self, fields, children):
        release = fields.pop("release", self.release_schema)
        struct = Schema(**fields)
        if release is not NULL_RELEASE:
            struct.release = type(struct.release)(release)
        self.adopt(struct, children, POINTER(Schema))
        return struct

    def array_struct(self, fields, buffers, children):
        release = fields.pop("release", self.release_array)
        struct = ArrayStruct(**fields)
        if release is not NULL_RELEASE:
            struct.release = type(struct.release)(release)
        if buffers is not None:
            struct.buffers = (c_void_p * len(buffers))(*buffers)
        self.adopt(struct, children, POINTER(ArrayStruct))
        return struct

    @staticmethod
    def adopt(struct, children, pointer):
        if children:
            struct.n_children = struct.n_children or len(children)
            struct.children = (pointer * len(children))(*map(ctypes.pointer, children))

    def release_schema(self, pointer):
        pointer[0].release = type(pointer[0].release)()

    def release_array(self, pointer):
        self.released += 1
        pointer[0].release = type(pointer[0].release)()

    def __arrow_c_array__(self, requested_schema=None):
        return (
            PyCapsule_New(ctypes.addressof(self.schema), b"arrow_schema", None),
            PyCapsule_New(ctypes.addressof(self.array), b"arrow_array", None),
        )


class Stream(ctypes.Structure):
    pass


GET = CFUNCTYPE(c_int, POINTER(Stream), c_void_p)
Stream._fields_ = (
    ("get_schema", GET),
    ("get_next", GET),
    ("get_last_error", CFUNCTYPE(c_void_p, POINTER(Stream))),
    ("release", CFUNCTYPE(None, POINTER(Stream))),
    ("private_data", c_void_p),
)


class FailingStream:
    """A stream whose callbacks answer 5, without a word; counts its releases."""

    def __init__(self, **callbacks):
        self.released = 0
        answers = {"get_schema": GET(lambda *_: 5), "get_next": GET(lambda *_: 5)} | callbacks
        release = CFUNCTYPE(None, POINTER(Stream))(self.release)
        self.stream = Stream(release=release, **answers)

    def release(self, _pointer):
        self.released += 1

    def __arrow_c_stream__(self, requested_schema=None):
        return PyCapsule_New(ctypes.addressof(self.stream), b"arrow_array_stream", None)


class EmptyStream(FailingStream):
    """One without arrays, of whatever type."""

    def __init__(self, **schema):
        self.source = Source(**schema)
        super().__init__(get_schema=GET(self.fill_schema), get_next=GET(self.fill_nothing))

    def fill_schema(self, _stream, out):
        ctypes.memmove(out, ctypes.addressof(self.source.schema), ctypes.sizeof(Schema))
        return 0

    def fill_nothing(self, _stream, out):
        ctypes.memset(out, 0, ctypes.sizeof(ArrayStruct))
        return 0
