"""Buffers of types in C that say what no honest exporter would, or leave out what they may."""

import ctypes
from ctypes import POINTER, PYFUNCTYPE, c_char_p, c_int, c_ssize_t, c_uint, c_void_p, py_object

import numpy as np
import pytest
from arrow_dlpack import asdlpack


class Buffer(ctypes.Structure):
    _fields_ = (
        ("buf", c_void_p),
        ("obj", c_void_p),
        ("len", c_ssize_t),
        ("itemsize", c_ssize_t),
        ("readonly", c_int),
        ("ndim", c_int),
        ("format", c_char_p),
        ("shape", POINTER(c_ssize_t)),
        ("strides", POINTER(c_ssize_t)),
        ("suboffsets", POINTER(c_ssize_t)),
        ("internal", c_void_p),
    )


class Slot(ctypes.Structure):
    _fields_ = (("slot", c_int), ("function", c_void_p))


class Spec(ctypes.Structure):
    _fields_ = (
        ("name", c_char_p),
        ("basicsize", c_int),
        ("itemsize", c_int),
        ("flags", c_uint),
        ("slots", POINTER(Slot)),
    )


GET, RELEASE = 1, 2  # Py_bf_getbuffer and Py_bf_releasebuffer of typeslots.h
MEMORY = (ctypes.c_float * 4)(1, 2, 3, 4)
ASTRAY = ctypes.cast(ctypes.addressof(MEMORY) + 1, POINTER(c_ssize_t))
KEPT = []


class Exporter:
    """Has an object whose buffer says what is wanted; `released` counts how often it came back."""

    def __init__(self, **fields):
        self.released = 0
        self.fields = {
            "buf": ctypes.addressof(MEMORY),
            "len": 16,
            "itemsize": 4,
            "ndim": 1,
            "format": b"f",
            "shape": (4,),
        } | fields
        self.get = PYFUNCTYPE(c_int, c_void_p, POINTER(Buffer), c_int)(self._get)
        self.release = PYFUNCTYPE(None, c_void_p, POINTER(Buffer))(self._release)
        functions = {GET: self.get, RELEASE: self.release}
        slots = [Slot(slot, ctypes.cast(call, c_void_p)) for slot, call in functions.items()]
        slots = (Slot * 3)(*slots)
        spec = Spec(b"tests.Exporter", object.__basicsize__, 0, 0, slots)
        make = ctypes.pythonapi.PyType_FromSpec
        make.restype, make.argtypes = py_object, [POINTER(Spec)]
        self.object = make(spec)()
        KEPT.append((self, slots, spec))  # types look at theirs for as long as they live

    def _get(self, exporter, view, _flags):
        ctypes.memset(view, 0, ctypes.sizeof(Buffer))
        for name, value in self.fields.items():
            if isinstance(value, tuple):
                value = (c_ssize_t * len(value))(*value)  # noqa: PLW2901
                KEPT.append(value)
            setattr(view.contents, name, value)
        view.contents.obj = exporter
        ctypes.pythonapi.Py_IncRef(c_void_p(exporter))
        return 0

    def _release(self, _exporter, _view):
        self.released += 1


def test_an_honest_buffer_is_shared_until_the_last_view_of_it_goes():
    exporter = Exporter()
    tensor = asdlpack(exporter.object)
    assert (tensor.dtype, tensor.shape, tensor.readonly) == ("float32", (4,), False)
    view = np.from_dlpack(tensor)
    assert view.ctypes.data == ctypes.addressof(MEMORY)
    del tensor
    assert exporter.released == 0
    del view
    assert exporter.released == 1


def test_without_a_format_it_is_bytes():
    exporter = Exporter(format=None, itemsize=1, shape=(16,))
    assert (asdlpack(exporter.object).dtype, exporter.released) == ("uint8", 1)


def test_without_a_shape_there_is_one_axis_of_all_that_is_there():
    exporter = Exporter(shape=None)
    assert (asdlpack(exporter.object).shape, exporter.released) == ((4,), 1)


@pytest.mark.parametrize(
    ("fields", "words"),
    {
        "axes": ({"ndim": -1}, "ndim is -1"),
        "many axes": ({"ndim": 65}, "65 axes"),
        "no shape": ({"ndim": 2, "shape": None}, "shape is NULL"),
        "item size": ({"itemsize": -4}, "size in bytes"),
        "extent": ({"shape": (-4,)}, "extent of axis 0 is -4"),
        "length": ({"len": 15}, "15 bytes"),
        "negative length": ({"len": -16}, "-16"),
        "extent of more": ({"shape": (2**62,)}, "16 bytes"),
        "stride": ({"strides": (6,)}, "stride"),
        "address of the shape": ({"shape": ASTRAY}, "shape of the buffer .* misaligned"),
        "address of the strides": ({"strides": ASTRAY}, "strides of the buffer .* misaligned"),
    }.values(),
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_true_is_refused_and_given_back(fields, words):
    exporter = Exporter(**fields)
    with pytest.raises(BufferError, match=words):
        asdlpack(exporter.object)
    assert exporter.released == 1
