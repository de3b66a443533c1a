"""Extension types whose metadata says what cannot be."""

import json
import math

import numpy as np
import pyarrow as pa
import pytest
from annotated import Annotated, of_variable_shape
from arrow_dlpack import Array, UnsupportedError, explain, from_dlpack, to_tensor, to_tensor_dict
from descriptions import described
from hypothesis import given
from hypothesis import strategies as st

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


def test_an_unknown_extension_type_is_its_storage_when_asked():
    source = Annotated(pa.array([1, 2]), "example.money", "€")
    with pytest.raises(UnsupportedError, match='"example.money" .* physical=True'):
        to_tensor(source)
    tensor = to_tensor(source, physical=True, copy=False)
    assert np.from_dlpack(tensor).tolist() == [1, 2]
    assert tensor.field.metadata["ARROW:extension:name"] == "example.money"
    for metadata in (
        '{"type_name":"money","vendor_name":"example"}',
        '{"type_name":"float9000","vendor_name":"dlpack"}',
    ):
        other = Annotated(pa.array([1], pa.uint8()), OPAQUE, metadata)
        with pytest.raises(UnsupportedError, match='"arrow.opaque" .* physical=True'):
            to_tensor(other)
        tensor = to_tensor(other, physical=True)
        assert tensor.dtype == "uint8"
        # And goes back to it.
        again = tensor.to_arrow(type=tensor.field, copy=False)
        assert again.field.metadata == tensor.field.metadata
