"""Arrow's C structures as pyarrow fills them, with one address in them changed or misread."""

from contextlib import contextmanager
from ctypes import c_int64, c_void_p

import pyarrow as pa
import pytest
from arrow_dlpack import Array
from dlpack_conformance.abi.capsule import PyCapsule_GetPointer, PyCapsule_New

# Words of ArrowSchema and ArrowArray before the pointer to what they have many of.
SCHEMA_CHILDREN, ARRAY_BUFFERS = 5, 5


class Source:
    def __init__(self, source):
        self.schema, self.array = source.__arrow_c_array__()

    def __arrow_c_array__(self, requested_schema=None):
        return self.schema, self.array


@contextmanager
def changed(structure, name, word, index, change):
    """One of the pointers that word of a structure points to, until it is released."""
    pointers = c_void_p.from_address(PyCapsule_GetPointer(structure, name) + 8 * word).value
    pointer = c_int64.from_address(pointers + 8 * index)
    before, pointer.value = pointer.value, change(pointer.value)
    yield
    pointer.value = before


def test_a_child_of_a_type_that_is_not_there_is_refused():
    source = Source(pa.array([{"x": 1}]))
    with (
        changed(source.schema, b"arrow_schema", SCHEMA_CHILDREN, 0, lambda _: 0),
        pytest.raises(ValueError, match="a child that is not there"),
    ):
        Array(source)


@pytest.mark.parametrize("change", [lambda _: 0, lambda address: address + 1])
def test_sizes_of_buffers_that_are_not_there_are_refused(change):
    source = Source(pa.array(["longer than twelve bytes"], pa.string_view()))
    with (
        changed(source.array, b"arrow_array", ARRAY_BUFFERS, 3, change),
        pytest.raises(ValueError, match="buffer sizes are missing or misaligned"),
    ):
        Array(source)


@pytest.mark.parametrize("which", ["schema", "array"])
def test_a_structure_at_no_address_of_one_is_refused(which):
    source, name = Source(pa.array([1])), f"arrow_{which}".encode()
    whole = getattr(source, which)
    setattr(source, which, PyCapsule_New(PyCapsule_GetPointer(whole, name) + 1, name, None))
    with pytest.raises(ValueError, match="structure is misaligned"):
        Array(source)
    setattr(source, which, whole)
    assert len(Array(source)) == 1


def requested(source, field):
    """What becomes of it where a field is asked for."""

    class Requested:
        def __arrow_c_array__(self, requested_schema=None):
            return Array(source).__arrow_c_array__(field.__arrow_c_schema__())

    return pa.array(Requested())


def test_an_extension_type_that_is_asked_for_keeps_its_own_parameters():
    matrix, vector = (pa.fixed_shape_tensor(pa.float32(), shape) for shape in ([2, 2], [4]))
    stored = pa.array([[1, 2, 3, 4]], matrix.storage_type)
    source = pa.ExtensionArray.from_storage(matrix, stored)
    assert requested(source, pa.field("", matrix)).type == matrix
    with pytest.raises(ValueError, match="its rows have another shape"):
        requested(source, pa.field("", vector))


def test_nulls_become_nulls_of_any_type():
    union = pa.sparse_union([pa.field("a", pa.int8()), pa.field("b", pa.string())])
    for kind in union, pa.struct([("a", pa.int8())]), pa.list_(pa.int8(), 3), pa.string():
        assert requested(pa.nulls(3), pa.field("", kind)).to_pylist() == [None] * 3
