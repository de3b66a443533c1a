"""The dtypes that Arrow lacks: bfloat16, floats of 8, 6 and 4 bits, integers of under 8 bits."""

import ctypes
import math
import sys
from fractions import Fraction

import ml_dtypes
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from arrow_dlpack import Cast, Dense, Loader, Pad, Tensor, explain, from_dlpack, to_tensor
from descriptions import EXOTIC, described, leaf, leaf_address
from dlpack_conformance.abi.dlpack import SUBBYTE_PADDED
from hostile import Producer
from hypothesis import given, settings
from hypothesis import strategies as st

SUB_BYTE = {name: bits for name, (_, bits) in EXOTIC.items() if bits < 8}


def packed(codes, bits):
    """Codes without gaps between them, the first in the lowest bits of the first byte."""
    each = np.unpackbits(codes.astype("uint8")[:, None], axis=1, bitorder="little")[:, :bits]
    return np.packbits(each, bitorder="little")


def producer(name, codes, *, pack=False, **fields):
    """A tensor of these codes: 1-D, or what `shape` and `strides` say."""
    code, bits = EXOTIC[name]
    fields = {"shape": (len(codes),), "code": code, "bits": bits} | fields
    if pack:
        return Producer(packed(codes, bits).tolist(), ctypes.c_uint8, **fields)
    ctype = ctypes.c_uint16 if bits == 16 else ctypes.c_uint8
    flags = SUBBYTE_PADDED if bits < 8 else 0
    return Producer(codes.tolist(), ctype, flags=flags, **fields)


def all_codes(name):
    bits = EXOTIC[name][1]
    return np.arange(2**bits, dtype="uint16" if bits == 16 else "uint8")


def widened(name, codes):
    """As ml_dtypes has it."""
    wide = "float32" if "float" in name else "int8" if name.startswith("int") else "uint8"
    with np.errstate(invalid="ignore"):  # what quiets a signalling NaN
        return codes.view(getattr(ml_dtypes, name)).astype(wide)


def assert_same(found, expected):
    """Bit for bit, but for NaNs, of which one is as good as another."""
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    if expected.dtype.kind == "f":
        nans = np.isnan(expected)
        np.testing.assert_array_equal(np.isnan(found), nans)
        found, expected = found[~nans].view("uint32"), expected[~nans].view("uint32")
    np.testing.assert_array_equal(found, expected)


FORMS = [(name, False) for name in EXOTIC] + [(name, True) for name in SUB_BYTE]
forms = pytest.mark.parametrize(("name", "pack"), FORMS)


@forms
def test_every_code_widens_to_the_number_that_ml_dtypes_says(name, pack):
    codes = all_codes(name)
    source = producer(name, codes, pack=pack)
    found = pa.array(from_dlpack(source)).to_numpy()
    assert_same(found, widened(name, codes))
    assert source.deleted == 1


@pytest.mark.parametrize("name", SUB_BYTE)
def test_bits_above_those_of_a_padded_element_mean_nothing(name):
    codes = all_codes(name)
    noise = codes | (0xFF << SUB_BYTE[name] & 0xFF)
    found = pa.array(from_dlpack(producer(name, noise))).to_numpy()
    assert_same(found, widened(name, codes))


@st.composite
def layouts(draw):
    """Of tensors: (shape, strides, the first element's index)."""
    shape = draw(st.lists(st.integers(0, 5), min_size=1, max_size=3))
    strides = draw(st.lists(st.integers(-9, 9), min_size=len(shape), max_size=len(shape)))
    if draw(st.booleans()):
        strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    reach = [(n - 1) * s for n, s in zip(shape, strides, strict=True) if n > 0]
    # Three bytes are a whole number of elements of any size.
    first = -(-sum(-min(0, r) for r in reach) // 24) * 24 + 24 * draw(st.integers(0, 1))
    return tuple(shape), tuple(strides), first


def laid_out(codes, layout):
    shape, strides, first = layout
    size = codes.itemsize
    return np.lib.stride_tricks.as_strided(codes[first:], shape, [s * size for s in strides])


@forms
@settings(max_examples=25)
@given(layout=layouts(), seed=st.integers(0, 1000))
def test_any_layout_widens_as_contiguous_codes_do(name, pack, layout, seed):
    shape, strides, first = layout
    bits = EXOTIC[name][1]
    size = first + 1 + sum(max(0, (n - 1) * s) for n, s in zip(shape, strides, strict=True))
    codes = np.random.default_rng(seed).choice(all_codes(name), size)
    width = bits if pack else 16 if bits == 16 else 8
    fields = {"shape": shape, "strides": strides, "byte_offset": first * width // 8}
    source = producer(name, codes, pack=pack, **fields)
    found = np.from_dlpack(to_tensor(from_dlpack(source)))
    expected = np.ascontiguousarray(laid_out(codes, layout))
    assert_same(found, widened(name, expected))

    # And as opaque, without a change.
    source = producer(name, codes, pack=pack, **fields)
    plan = explain(source, type="opaque")
    array = pa.array(from_dlpack(source, type="opaque"))
    assert leaf(array).to_numpy().tobytes() == expected.tobytes()
    if math.prod(shape):
        same = leaf_address(array) == source.address + first * width // 8
        assert plan.zero_copy == same
    else:
        assert plan.zero_copy


@forms
def test_opaque_keeps_every_code_and_returns_in_its_own_dtype(name, pack):
    codes = all_codes(name)
    source = producer(name, codes, pack=pack)
    plan = explain(source, type="opaque")
    assert plan.zero_copy == (not pack)
    assert plan.bytes_copied == (codes.nbytes if pack else 0)
    array = pa.array(from_dlpack(source, type="opaque"))
    assert isinstance(array.type, pa.OpaqueType)
    assert (array.type.type_name, array.type.vendor_name) == (name, "dlpack")
    assert array.storage.to_numpy().tobytes() == codes.tobytes()
    if not pack:
        assert leaf_address(array) == source.address
    tensor = to_tensor(array, copy=False)
    assert (tensor.dtype, tensor.shape) == (name, codes.shape)
    back = described(tensor)
    assert (back.code, back.bits) == EXOTIC[name]
    assert bool(back.flags & SUBBYTE_PADDED) == (name in SUB_BYTE)
    assert back.elements == codes.tobytes()
    assert back.address == leaf_address(array)


@pytest.mark.parametrize("name", EXOTIC)
def test_opaque_matrices_keep_their_axes_and_their_memory(name):
    codes = np.resize(all_codes(name), (4, 3, 2))
    source = producer(name, codes.ravel(), shape=(4, 3, 2), strides=(6, 2, 1))
    array = pa.array(from_dlpack(source, type="opaque", copy=False))
    back = described(to_tensor(array, copy=False))
    assert (back.address, back.shape, back.strides) == (source.address, (4, 3, 2), (6, 2, 1))
    # Rows whose axes lie in another order become row-major, as those of other dtypes do.
    source = producer(name, codes.ravel(), shape=(4, 2, 3), strides=(6, 1, 2))
    with pytest.raises(BufferError, match="another order than row-major"):
        from_dlpack(source, type="opaque", copy=False)
    back = described(to_tensor(pa.array(from_dlpack(source, type="opaque")), copy=False))
    assert (back.shape, back.strides) == ((4, 2, 3), (6, 3, 1))
    assert back.elements == codes.transpose(0, 2, 1).tobytes()


@pytest.mark.parametrize("name", EXOTIC)
def test_parquet_keeps_opaque_elements_bit_for_bit(name, tmp_path):
    codes = np.resize(all_codes(name), (len(all_codes(name)) // 2, 2))
    source = producer(name, codes.ravel(), shape=codes.shape)
    embedding = pa.array(from_dlpack(source, type="opaque"))
    pq.write_table(pa.table({"embedding": embedding}), tmp_path / "codes.parquet")
    column = pq.read_table(tmp_path / "codes.parquet")["embedding"]
    assert column.type == embedding.type
    back = described(to_tensor(column))
    assert (back.code, back.bits, back.shape) == (*EXOTIC[name], codes.shape)
    assert back.elements == codes.tobytes()


def test_a_bfloat16_embedding_survives_parquet(tmp_path):
    codes = np.random.default_rng(0).integers(0, 2**16, (100, 8), "uint16")
    embedding = torch.from_numpy(codes.view("int16")).view(torch.bfloat16)
    array = from_dlpack(embedding, type="opaque", copy=False)
    pq.write_table(pa.table({"embedding": pa.array(array)}), tmp_path / "embedding.parquet")
    column = pq.read_table(tmp_path / "embedding.parquet")["embedding"]
    back = torch.from_dlpack(to_tensor(column))
    assert back.dtype == torch.bfloat16
    assert torch.equal(back.view(torch.int16), embedding.view(torch.int16))


TORCH = ["bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"]


@pytest.mark.parametrize("name", [*TORCH, "float8_e8m0fnu"])
def test_pytorchs_own_tensors_go_through_arrow_and_back(name):
    codes = torch.from_numpy(all_codes(name).view("int16" if name == "bfloat16" else "int8"))
    source = codes.view(getattr(torch, name))
    array = pa.array(from_dlpack(source, type="opaque", copy=False))
    back = torch.from_dlpack(to_tensor(array, copy=False))
    assert back.dtype == source.dtype
    assert back.data_ptr() == source.data_ptr()
    wide = pa.array(from_dlpack(source)).to_numpy()
    assert_same(wide, source.float().numpy())


@pytest.mark.parametrize("name", [name for name in EXOTIC if "float" in name])
@pytest.mark.parametrize("wide", ["float32", "float64"])
def test_opaque_floats_convert_when_asked(name, wide):
    array = from_dlpack(producer(name, all_codes(name)), type="opaque")
    found = np.from_dlpack(to_tensor(array, dtype=wide)).astype("float32")
    assert_same(found, widened(name, all_codes(name)))


@given(st.lists(st.floats(width=32), min_size=1, max_size=20), st.sampled_from(["f4", "f8"]))
def test_floats_round_to_bfloat16_as_in_ml_dtypes(values, dtype):
    source = np.array(values, dtype)
    with np.errstate(over="ignore"):
        expected = source.astype(ml_dtypes.bfloat16)
    back = described(to_tensor(pa.array(source), dtype="bfloat16"))
    assert_same(
        np.frombuffer(back.elements, ml_dtypes.bfloat16).astype("float32"),
        expected.astype("float32"),
    )


INTEGERS = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]


def as_bfloat16(tensor):
    return torch.from_dlpack(tensor).to(torch.float64).tolist()


def nearest_bfloat16(number):
    """To eight bits, ties to even: `round` of fractions is exact."""
    unit = 2 ** max(abs(number).bit_length() - 8, 0)
    return float(round(Fraction(number, unit)) * unit)


#: Halfway between two of them, and beside that.
HALFWAY = st.builds(
    lambda half, bits, step, sign: sign * ((half << bits) + step),
    st.integers(257, 511),
    st.integers(0, 55),
    st.integers(-1, 1),
    st.sampled_from([1, -1]),
)


@given(st.lists(HALFWAY | st.integers(-(2**63), 2**64 - 1), min_size=1), st.sampled_from(INTEGERS))
def test_integers_round_to_bfloat16_once(numbers, name):
    info = np.iinfo(name)
    numbers = [number for number in numbers if info.min <= number <= info.max]
    found = as_bfloat16(to_tensor(pa.array(numbers, name), dtype="bfloat16"))
    assert found == [nearest_bfloat16(number) for number in numbers]


@pytest.mark.parametrize("name", [*INTEGERS, "halffloat", "bool"])
def test_all_numbers_become_bfloat16_wherever_a_dtype_is_said(name):
    column = pa.array([1, 0, 1], pa.int8()).cast(name)
    table = pa.table({"x": column})
    lists = pa.table({"x": pa.array([column.to_pylist()], pa.list_(column.type))})
    expected = [1.0, 0.0, 1.0]
    assert as_bfloat16(to_tensor(column, dtype="bfloat16")) == expected
    (batch,) = Loader(table, dtype="bfloat16")
    assert as_bfloat16(batch["x"]) == expected
    (_, label), *_ = Loader(table, columns=["x"], label={"x": Cast("bfloat16")}, dtype="float32")
    assert as_bfloat16(label) == expected
    (batch,) = Loader(lists, columns={"x": Pad(0, dtype="bfloat16")})
    assert as_bfloat16(batch["x"].values) == [expected]
    (batch,) = Loader(lists, columns={"x": Dense(dtype="bfloat16")})
    assert as_bfloat16(batch["x"]) == [expected]
    (batch,) = Loader(table, format="matrix", dtype=torch.bfloat16, framework="torch")
    assert (batch.dtype, batch.shape) == (torch.bfloat16, (3, 1))


def test_packed_elements_copy_on_their_own_terms():
    """A padded copy of a packed tensor is said to be one."""
    codes = all_codes("float6_e3m2fn")
    tensor = Tensor.from_dlpack(producer("float6_e3m2fn", codes, pack=True))
    assert tensor.nbytes == 48
    array = from_dlpack(tensor, type="opaque")
    assert to_tensor(array).nbytes == 64
    with pytest.raises(BufferError, match="float6_e3m2fn elements share bytes"):
        from_dlpack(tensor, type="opaque", copy=False)


def test_fixed_size_binary_stores_a_dtype_too():
    ones = pa.array([b"\x80\x3f"] * 2, pa.binary(2))
    opaque = pa.opaque(ones.type, "bfloat16", "dlpack")
    column = pa.ExtensionArray.from_storage(opaque, ones)
    assert torch.from_dlpack(to_tensor(column)).tolist() == [1, 1]
    table = to_tensor(pa.table({"a": [1, 2], "b": column}))
    assert (table.dtype, table.tolist()) == ("float64", [[1, 1], [2, 1]])


def test_an_ml_dtypes_that_is_broken_is_heard(monkeypatch):
    class Finder:
        def find_spec(self, name, *_):
            if name == "ml_dtypes":
                raise OSError("its library is not there")

    tensor = Tensor.from_dlpack(torch.ones(1).bfloat16())
    monkeypatch.delitem(sys.modules, "ml_dtypes")
    monkeypatch.setattr(sys, "meta_path", [Finder(), *sys.meta_path])
    with pytest.raises(OSError, match="its library is not there"):
        tensor.__array__()
