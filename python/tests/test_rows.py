"""One row as a tensor of its own; and extension types whose metadata says what cannot be."""

import json
import math

import numpy as np
import pyarrow as pa
import pytest
from arrow_dlpack import (
    Array,
    UnsupportedError,
    explain,
    from_dlpack,
    ragged,
    record_batch,
    to_tensor,
    to_tensor_dict,
)
from descriptions import described, leaf_address
from hypothesis import given
from hypothesis import strategies as st


class Annotated:
    """An array under an extension type that pyarrow does not know, or would refuse."""

    def __init__(self, storage, name, metadata):
        self.storage = storage
        metadata = {"ARROW:extension:name": name, "ARROW:extension:metadata": metadata}
        self.field = pa.field("", storage.type, metadata=metadata)

    def __arrow_c_array__(self, requested_schema=None):
        return self.field.__arrow_c_schema__(), self.storage.__arrow_c_array__()[1]

    def __arrow_c_schema__(self):
        return self.field.__arrow_c_schema__()

    def in_a_list(self):
        """As the items of lists of one row each."""
        field = self.field.with_name("item")
        lists = pa.FixedSizeListArray.from_arrays(self.storage, 1)
        both = Annotated(lists, "", "")
        both.field = pa.field("", pa.list_(field, 1))
        return both


def of_variable_shape(tensors, *, order=None, names=None, lists=pa.list_, ndim=None):
    """A tensor a row, its axes in memory in the order that `order` says."""
    ndim = tensors[0].ndim if ndim is None else ndim
    metadata = {
        key: list(value) for key, value in (("permutation", order), ("dim_names", names)) if value
    }
    axes = np.argsort(order or range(ndim))
    physical = [tensor.transpose(axes) for tensor in tensors]
    kind = pa.from_numpy_dtype(tensors[0].dtype)
    data = pa.array([tensor.ravel().tolist() for tensor in physical], lists(kind))
    shapes = pa.array([tensor.shape for tensor in physical], pa.list_(pa.int32(), ndim))
    storage = pa.StructArray.from_arrays([data, shapes], ["data", "shape"])
    return Annotated(storage, "arrow.variable_shape_tensor", json.dumps(metadata))


@given(
    shapes=st.lists(
        st.tuples(st.integers(0, 3), st.integers(1, 3), st.integers(1, 3)), min_size=1, max_size=4
    ),
    order=st.none() | st.permutations(range(3)),
    dtype=st.sampled_from(["int8", "float32", "uint64"]),
    lists=st.sampled_from([pa.list_, pa.large_list]),
)
def test_rows_of_variable_shape_are_the_tensors_that_were_stored(shapes, order, dtype, lists):
    tensors = [np.arange(np.prod(shape)).astype(dtype).reshape(shape) for shape in shapes]
    source = of_variable_shape(tensors, order=order, lists=lists)
    array = Array(source)
    data = source.storage.field("data")
    for row, expected in enumerate(tensors):
        tensor = array.row(row, copy=False)
        found = np.from_dlpack(tensor)
        np.testing.assert_array_equal(found, expected)
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_array_equal(np.from_dlpack(array.row(row - len(tensors))), expected)
        if expected.size:
            first = data.offsets[row].as_py() * expected.itemsize
            assert described(tensor).address == leaf_address(data.values) + first
    with pytest.raises(UnsupportedError, match="its rows differ in shape: .* with row"):
        to_tensor(array)
    with pytest.raises(UnsupportedError, match="its rows differ in shape"):
        ragged(array)


def test_rows_of_variable_shape_may_be_null_or_wrong():
    source = of_variable_shape([np.ones((2, 3)), np.ones((1, 1))], names=["h", "w"])
    storage = source.storage
    null = pa.StructArray.from_arrays(
        [storage.field("data"), storage.field("shape")],
        ["data", "shape"],
        mask=pa.array([True, False]),
    )
    array = Array(Annotated(null, "arrow.variable_shape_tensor", ""))
    with pytest.raises(UnsupportedError, match="1 null"):
        array.row(0, nulls=0)
    assert array.row(1).shape == (1, 1)
    for shape, words in [
        ([2, 2], r"a row of shape \[2, 2\] has 6 values"),
        ([-2, -3], "-2"),
        ([2**31 - 1] * 2, "shape"),
        ([None, 6], "null"),
        (None, "null"),
    ]:
        shapes = pa.array([shape, [1, 1]], pa.list_(pa.int32(), 2))
        wrong = pa.StructArray.from_arrays([storage.field("data"), shapes], ["data", "shape"])
        array = Array(Annotated(wrong, "arrow.variable_shape_tensor", "{}"))
        with pytest.raises(BufferError, match=words):
            array.row(0)
        assert array.row(1).shape == (1, 1)


def test_a_row_is_the_tensor_less_its_first_axis():
    images = np.arange(24, dtype="float32").reshape(4, 3, 2)
    batch = record_batch({"x": images, "n": images[:, 0, 0]})
    for source in (
        from_dlpack(images),
        from_dlpack(images, type="fixed_size_list"),
        from_dlpack(images.transpose(0, 2, 1)),
        Array(pa.array(from_dlpack(images))[1:]),
    ):
        whole = np.from_dlpack(to_tensor(source))
        for row in range(-len(source), len(source)):
            found = np.from_dlpack(source.row(row, copy=False))
            np.testing.assert_array_equal(found, whole[row])
            assert found.__array_interface__["data"] == whole[row].__array_interface__["data"]
            assert found.strides == whole[row].strides
    numbers = Array(pa.array([1.5, None, 3.5]))
    assert (numbers.row(2).shape, np.from_dlpack(numbers.row(2)).item()) == ((), 3.5)
    with pytest.raises(UnsupportedError, match="1 null"):
        numbers.row(1)
    assert np.from_dlpack(numbers.row(1, nulls=-1.0)).item() == -1
    value, mask = numbers.row(1, nulls="mask")
    assert (value.shape, np.from_dlpack(mask).item()) == ((), False)
    assert np.from_dlpack(Array(pa.array(["é", "x"])).row(0)).tobytes().decode() == "é"
    assert np.from_dlpack(Array(pa.array([b"", b"x"], pa.binary_view())).row(0)).shape == (0,)
    assert np.from_dlpack(Array(pa.array([b"ab"], pa.binary(2))).row(0)).tolist() == [97, 98]
    assert np.from_dlpack(Array(pa.array([True, False])).row(1)).item() is False
    days = Array(pa.array([5], pa.date32()))
    assert np.from_dlpack(days.row(0, physical=True)).item() == 5
    assert np.from_dlpack(days.row(0, physical=True, dtype="float64")).dtype == "float64"
    with pytest.raises(UnsupportedError, match="to_tensor_dict"):
        batch.row(0)


@pytest.mark.parametrize("row", [3, -4, 2**40, -(2**40)])
def test_a_row_that_is_not_there_is_an_index_error(row):
    for source in (pa.array([1, 2, 3]), pa.array(["a", "b", "c"]), pa.array([[1], [], None])):
        with pytest.raises(IndexError, match=f"no row {row} among 3"):
            Array(source).row(row)
    with pytest.raises(IndexError, match="among 0"):
        Array(pa.array([], pa.int8())).row(0)


FIXED, VARIABLE = "arrow.fixed_shape_tensor", "arrow.variable_shape_tensor"
OPAQUE, BOOL8 = "arrow.opaque", "arrow.bool8"
SIX = pa.array([[1, 2, 3, 4, 5, 6]], pa.list_(pa.int32(), 6))
SHAPED = of_variable_shape([np.ones((2, 3))]).storage

MALFORMED = {
    "no JSON": (FIXED, SIX, "not JSON"),
    "half a JSON": (FIXED, SIX, '{"shape":[2,3]'),
    "no metadata": (FIXED, SIX, ""),
    "a list": (FIXED, SIX, "[2,3]"),
    "no shape": (FIXED, SIX, "{}"),
    "a shape of null": (FIXED, SIX, '{"shape":null}'),
    "a shape that is a number": (FIXED, SIX, '{"shape":6}'),
    "a shape of texts": (FIXED, SIX, '{"shape":["2","3"]}'),
    "a shape of fractions": (FIXED, SIX, '{"shape":[1.5,4]}'),
    "a negative shape": (FIXED, SIX, '{"shape":[-2,-3]}'),
    "a shape of other rows": (FIXED, SIX, '{"shape":[2,2]}'),
    "a huge shape": (FIXED, SIX, '{"shape":[4294967296,4294967296,16]}'),
    "a shape beyond 64 bits": (FIXED, SIX, '{"shape":[1e30,6]}'),
    "a huge shape of nothing": (FIXED, SIX, f'{{"shape":[0,{2**63 - 1},{2**63 - 1}]}}'),
    "an endless shape": (FIXED, SIX, json.dumps({"shape": [1] * 10**5 + [7]})),
    "deep JSON": (FIXED, SIX, "[" * 10**5),
    "a permutation twice": (FIXED, SIX, '{"shape":[2,3],"permutation":[0,0]}'),
    "a permutation too far": (FIXED, SIX, '{"shape":[2,3],"permutation":[1,2]}'),
    "a short permutation": (FIXED, SIX, '{"shape":[2,3],"permutation":[0]}'),
    "a long permutation": (FIXED, SIX, '{"shape":[2,3],"permutation":[0,1,2]}'),
    "a negative permutation": (FIXED, SIX, '{"shape":[2,3],"permutation":[0,-1]}'),
    "a huge permutation": (FIXED, SIX, f'{{"shape":[2,3],"permutation":[0,{2**64}]}}'),
    "a permutation of texts": (FIXED, SIX, '{"shape":[2,3],"permutation":"01"}'),
    "too few names": (FIXED, SIX, '{"shape":[2,3],"dim_names":["x"]}'),
    "names that are none": (FIXED, SIX, '{"shape":[2,3],"dim_names":[1,2]}'),
    "stored as numbers": (FIXED, pa.array([1]), '{"shape":[1]}'),
    "stored as lists": (FIXED, pa.array([[1]]), '{"shape":[1]}'),
    "variable, no JSON": (VARIABLE, SHAPED, "not JSON"),
    "variable, a permutation twice": (VARIABLE, SHAPED, '{"permutation":[1,1]}'),
    "variable, stored as lists": (VARIABLE, pa.array([[1]]), ""),
    "variable, no data": (VARIABLE, pa.array([{"shape": [1]}]), ""),
    "bool8, stored as bytes": (BOOL8, pa.array([1], pa.uint8()), ""),
    "bool8, stored as bits": (BOOL8, pa.array([True]), ""),
    "opaque, no JSON": (OPAQUE, pa.array([1], pa.uint8()), ""),
    "opaque, no name": (OPAQUE, pa.array([1], pa.uint8()), '{"vendor_name":"dlpack"}'),
    "opaque, no vendor": (OPAQUE, pa.array([1], pa.uint8()), '{"type_name":"int4"}'),
}
OPAQUES = {
    "too wide": (pa.array([1], pa.uint16()), "float8_e5m2"),
    "too narrow": (pa.array([1], pa.uint8()), "bfloat16"),
    "no numbers": (pa.array(["x"]), "bfloat16"),
    "no pair": (pa.array([[1.0, 2.0, 3.0]], pa.list_(pa.float32(), 3)), "complex64"),
    "a pair of others": (pa.array([[1, 2]], pa.list_(pa.int32(), 2)), "complex64"),
    "half a pair": (pa.array([[1.0, None]], pa.list_(pa.float32(), 2)), "complex64"),
}
for kind, (stored, type_name) in OPAQUES.items():
    text = json.dumps({"type_name": type_name, "vendor_name": "dlpack"})
    MALFORMED[f"opaque, {kind}"] = (OPAQUE, stored, text)


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_extension_types_are_refused_by_name_and_still_carried(case):
    name, storage, metadata = MALFORMED[case]
    source = Annotated(storage, name, metadata)
    words = f'"{name}" is malformed'
    if case == "opaque, no numbers":
        words = f'"{name}"'
    array = Array(source)
    assert len(array) == 1
    attempts = [to_tensor, explain, lambda a: a.row(0), lambda a: a.to_tensor(physical=True)]
    if isinstance(storage, pa.FixedSizeListArray):
        attempts.append(lambda a: a.__dlpack__())
    for attempt in attempts:
        with pytest.raises(UnsupportedError, match=words):
            attempt(array)
    with pytest.raises(UnsupportedError, match=words):
        to_tensor(source.in_a_list())
    batch = pa.record_batch([storage], pa.schema([source.field.with_name("bad")]))
    for convert in (to_tensor, to_tensor_dict):
        with pytest.raises(UnsupportedError, match=f'column "bad": .*{words}'):
            convert(Unread(batch, source.field))


class Unread:
    """A record batch with a field that pyarrow would make an extension type of."""

    def __init__(self, batch, field):
        self.batch, self.field = batch, field

    def __arrow_c_array__(self, requested_schema=None):
        schema = pa.field("", pa.struct([self.field.with_name("bad")]))
        return schema.__arrow_c_schema__(), self.batch.__arrow_c_array__()[1]


@pytest.mark.parametrize(
    "case", [case for case in MALFORMED if not case.startswith("opaque, half")]
)
def test_no_tensor_becomes_a_malformed_type(case):
    name, storage, metadata = MALFORMED[case]
    wanted = Annotated(storage, name, metadata)
    for tensor in (np.ones((1, 2, 3), "int32"), np.ones(1, "uint8"), np.ones(1, "complex64")):
        with pytest.raises((BufferError, ValueError)):
            from_dlpack(tensor, type=wanted)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-4, 4) | st.floats() | st.text(max_size=3),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["shape", "permutation", "dim_names", "type_name", "vendor_name"]),
                inner,
            )
        ),
    ),
    st.sampled_from([FIXED, VARIABLE, OPAQUE, BOOL8]),
    st.sampled_from([SIX, SHAPED, pa.array([1], pa.int8()), pa.array([1], pa.uint16())]),
)
def test_no_metadata_does_harm(metadata, name, storage):
    """A tensor of the right size, or an error in words."""
    array = Array(Annotated(storage, name, json.dumps(metadata)))
    try:
        tensor = to_tensor(array, physical=True)
    except UnsupportedError as error:
        refusal = str(error)
    else:
        refusal = None
        assert tensor.size in (6, 1)
        assert math.prod(described(tensor).shape) == tensor.size
    words = (f'"{name}" is malformed', "differ in shape", "has no tensor form")
    assert refusal is None or any(part in refusal for part in words)


def test_an_extension_type_that_nobody_knows_is_its_storage_when_asked():
    source = Annotated(pa.array([1, 2]), "somebody.money", "€")
    with pytest.raises(UnsupportedError, match='"somebody.money" .* physical=True'):
        to_tensor(source)
    tensor = to_tensor(source, physical=True, copy=False)
    assert np.from_dlpack(tensor).tolist() == [1, 2]
    assert tensor.field.metadata["ARROW:extension:name"] == "somebody.money"
    for metadata in (
        '{"type_name":"money","vendor_name":"somebody"}',
        '{"type_name":"float9000","vendor_name":"dlpack"}',
    ):
        other = Annotated(pa.array([1], pa.uint8()), OPAQUE, metadata)
        with pytest.raises(UnsupportedError, match='"arrow.opaque" .* physical=True'):
            to_tensor(other)
        assert to_tensor(other, physical=True).dtype == "uint8"
