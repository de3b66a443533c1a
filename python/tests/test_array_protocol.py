"""Array and Tensor where NumPy's arrays go: numpy.asarray, pandas, polars, PyTorch, JAX."""

import ctypes
import datetime
import decimal

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from arrow_dlpack import Array, Tensor, UnsupportedError, from_dlpack, to_tensor
from dlpack_conformance.abi.dlpack import CUDA
from hostile import Producer


@pytest.fixture
def column():
    return pa.array([1.5, 2.5])


@pytest.fixture
def brains():
    return torch.tensor([[1.5, 2.0], [3.0, 4.0]], dtype=torch.bfloat16)


def test_numpy_takes_an_array_as_it_is(column):
    found = np.asarray(Array(column))
    assert (found.dtype, found.tolist()) == (np.float64, [1.5, 2.5])
    assert np.shares_memory(found, column.to_numpy())
    assert not found.flags.writeable
    assert np.sum(Array(column)) == 4
    assert np.array([Array(column), Array(column)]).shape == (2, 2)


@pytest.mark.parametrize("name", ["int64", "uint64", "int32", "uint32"])
def test_numpys_own_class_of_numbers_is_what_comes(name):
    """Not another one of as many bits, such as numpy.longlong, which is no subclass of np.int64."""
    column = pa.array([1, 2], name)
    for found in (
        np.asarray(Array(column)),
        np.asarray(to_tensor(column)),
        pd.Series(to_tensor(column)),
    ):
        assert found.dtype.type is np.dtype(name).type


def test_numpy_takes_tensors_of_dtypes_that_it_lacks(brains):
    found = np.asarray(Tensor.from_dlpack(brains.T))
    assert found.dtype == ml_dtypes.bfloat16
    assert found.tolist() == brains.T.tolist()
    assert np.shares_memory(found, brains.view(torch.uint16).numpy())
    assert found.flags.writeable
    narrow = brains.to(torch.float8_e4m3fn)
    assert np.asarray(Tensor.from_dlpack(narrow)).dtype == ml_dtypes.float8_e4m3fn
    assert np.asarray(Tensor.from_dlpack(narrow)).tolist() == brains.tolist()


@pytest.mark.parametrize("flags", [0, 4], ids=["packed", "padded"])
@pytest.mark.parametrize(
    ("code", "bits", "name", "expected"),
    [
        (0, 4, "int4", [-7, 3]),
        (1, 4, "uint4", [9, 3]),
        (0, 2, "int2", [1, -2]),
        (17, 4, "float4_e2m1fn", [-0.5, 1.5]),
    ],
)
def test_elements_of_under_a_byte_get_a_byte_each(code, bits, name, expected, flags):
    data = {4: b"\x39", 2: b"\x09"}[bits] if flags == 0 else {4: b"\xf9\xf3", 2: b"\x09\x02"}[bits]
    given = Producer(data, ctypes.c_uint8, shape=(2,), code=code, bits=bits, flags=flags)
    tensor = Tensor.from_dlpack(given)
    found = np.asarray(tensor)
    assert found.dtype == np.dtype(getattr(ml_dtypes, name))
    assert found.astype("float32").tolist() == expected
    assert (found == np.array(expected, found.dtype)).all()
    with pytest.raises(ValueError, match="copy=False"):
        np.asarray(tensor, copy=False)


def test_a_dtype_that_ml_dtypes_would_have_is_refused_without_it(brains, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ml_dtypes", None)
    tensor = Tensor.from_dlpack(brains)
    with pytest.raises(UnsupportedError, match="NumPy has no bfloat16: install ml_dtypes"):
        np.asarray(tensor)
    assert np.asarray(Tensor.from_dlpack(np.ones(2))).tolist() == [1, 1]


@pytest.mark.parametrize("make", [Array, to_tensor], ids=["Array", "Tensor"])
def test_a_dtype_that_is_asked_for_is_converted_to(make, column):
    for of in (np.asarray(make(column), dtype="int32"), make(column).__array__("int32")):
        assert (of.dtype, of.tolist()) == (np.int32, [1, 2])
    with pytest.raises(ValueError, match="only by a copy"):
        make(column).__array__(np.float32, copy=False)
    assert make(column).__array__(float, copy=False).tolist() == [1.5, 2.5]


@pytest.mark.parametrize("make", [Array, to_tensor], ids=["Array", "Tensor"])
def test_a_copy_is_made_when_it_is_asked_for(make, column):
    copy = make(column).__array__(copy=True)
    copy[0] = 9
    np.array(make(column))[0] = 9
    assert column.to_pylist() == [1.5, 2.5]
    shared = make(column).__array__(copy=False)
    assert np.shares_memory(shared, column.to_numpy())


def test_a_copy_that_has_to_be_made_can_be_refused():
    flags = Array(pa.array([True, False]))
    assert np.asarray(flags).tolist() == [True, False]
    assert np.asarray(flags).flags.writeable
    with pytest.raises(ValueError, match="Arrow stores booleans as bits"):
        np.asarray(flags, copy=False)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (pa.array([1, None]), "1 null in 2 values"),
        (pa.array(["a"]), "use ragged"),
        (pa.array([0], pa.timestamp("s")), "physical=True"),
        (pa.array([{"x": 1}]), "to_tensor_dict"),
    ],
    ids=["nulls", "texts", "times", "structs"],
)
@pytest.mark.parametrize("take", [np.asarray, pd.Series, lambda x: np.asarray(x, dtype=object)])
def test_what_has_no_tensor_form_has_no_array_form(values, words, take):
    with pytest.raises(UnsupportedError, match=words):
        take(Array(values))


def test_memory_of_another_device_is_not_read():
    given = Producer(data=0xDEAD0000, device_type=CUDA)
    tensor = Tensor.from_dlpack(given)
    with pytest.raises(BufferError, match="cuda:0, which the CPU cannot read"):
        np.asarray(tensor)
    with pytest.raises(BufferError, match="cuda:0"):
        tensor.__array__()


def test_pandas_takes_columns(column):
    array = Array(column)
    assert pd.Series(array).tolist() == [1.5, 2.5]
    assert pd.Series(array).dtype == "float64"
    frame = pd.DataFrame({"x": array, "y": [1, 2]})
    frame["z"] = array
    assert frame.to_dict("list") == {"x": [1.5, 2.5], "y": [1, 2], "z": [1.5, 2.5]}


def test_polars_takes_columns(column):
    assert pl.Series(Array(column)).to_list() == [1.5, 2.5]
    assert pl.DataFrame({"x": Array(column)})["x"].to_list() == [1.5, 2.5]


@pytest.mark.parametrize("take", [torch.as_tensor, torch.tensor, torch.from_dlpack])
def test_pytorch_takes_shape_and_dtype(take, column, brains):
    matrix = Tensor.from_dlpack(np.arange(6, dtype="float32").reshape(2, 3))
    assert (take(matrix).dtype, take(matrix).shape) == (torch.float32, (2, 3))
    assert take(Array(column)).tolist() == [1.5, 2.5]
    assert take(Tensor.from_dlpack(brains)).equal(brains)
    if take is not torch.from_dlpack:
        assert take(matrix, dtype=torch.float64).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_jax_takes_shape_and_dtype(column, brains):
    matrix = Tensor.from_dlpack(np.arange(6, dtype="float32").reshape(2, 3))
    assert (jnp.asarray(matrix).dtype, jnp.asarray(matrix).shape) == (jnp.float32, (2, 3))
    assert jnp.asarray(Array(column)).tolist() == [1.5, 2.5]
    assert jnp.asarray(Tensor.from_dlpack(brains)).dtype == jnp.bfloat16
    assert jnp.asarray(matrix, dtype="int32").tolist() == [[0, 1, 2], [3, 4, 5]]
    # JAX itself takes what is elsewhere, or says why not.
    elsewhere = Tensor.from_dlpack(Producer(device_type=CUDA, data=0xDEAD0000, destructor=True))
    with pytest.raises(RuntimeError, match="cuda"):
        jnp.asarray(elsewhere)


def test_an_array_goes_row_by_row():
    rows = list(Array(pa.array([[1, 2], [], [3]])))
    assert [np.asarray(row).tolist() for row in rows] == [[1, 2], [], [3]]
    assert list(from_dlpack(np.empty((0, 3)))) == []
    with pytest.raises(UnsupportedError, match="null"):
        list(Array(pa.array([[1], None])))


def test_what_an_extension_type_means_is_none_of_a_cast():
    """Its storage is handed out as it is, and as no other type or extension."""
    halves = pa.array(from_dlpack(torch.tensor([1.0, 2.0]).bfloat16(), type="opaque"))
    images = pa.array(from_dlpack(np.zeros((2, 2, 3))))
    for array, wanted, why in [
        (halves, pa.float32(), "cast to no other type"),
        (halves, pa.opaque(pa.uint16(), "float16", "dlpack"), "another extension type"),
        (pa.array([1.0, 2.0], pa.float32()), halves.type, "cast to no other type"),
        (images, pa.fixed_shape_tensor(pa.float64(), [3, 2]), "another shape"),
        (images, pa.list_(pa.float32(), 6), "cast to no other type"),
    ]:
        with pytest.raises(ValueError, match=why):
            pa.table(Array(pa.table({"f": array})), schema=pa.schema([("f", wanted)]))
    assert pa.array(Array(halves), type=pa.uint16()).to_pylist() == [16256, 16384]
    assert pa.array(Array(images), type=images.type.storage_type).type == images.type.storage_type
    flags = pa.array([True, None, False]).cast(pa.int8())
    flags = pa.ExtensionArray.from_storage(pa.bool8(), flags)
    assert pa.array(Array(flags), type=pa.bool_()).to_pylist() == [True, None, False]


def test_floats_have_no_more_digits_as_decimals_than_they_are_exact_to():
    """arrow's cast multiplies, and 0.1 becomes 0.1000000000000000117440512."""
    for kind in pa.decimal128(38, 25), pa.decimal256(76, 25), pa.decimal64(18, 17):
        with pytest.raises(ValueError, match="no more exact digits than 15"):
            pa.array(Array(pa.array([0.1])), type=kind)
    for kind in pa.decimal128(38, 2), pa.decimal256(76, 15), pa.decimal32(9, 3):
        assert pa.array(Array(pa.array([0.1, None])), type=kind).to_pylist() == [
            decimal.Decimal("0.1"),
            None,
        ]
    # Of these it divides what a float does not hold.
    for kind in pa.decimal128(38, 37), pa.decimal128(38, 30), pa.decimal256(76, 25):
        small = pa.array([decimal.Decimal("1e-15")], kind)
        with pytest.raises(ValueError, match="no more exact digits than 15"):
            pa.array(Array(small), type=pa.float64())
    small = pa.array([decimal.Decimal("1e-15")], pa.decimal128(38, 22))
    assert pa.array(Array(small), type=pa.float64()).to_pylist() == [1e-15]


@pytest.mark.parametrize(
    ("array", "kind"),
    [
        (pa.array([70000]), pa.float16()),
        (pa.array([decimal.Decimal(10) ** 40], pa.decimal256(50, 5)), pa.float32()),
        (pa.array([decimal.Decimal(100)], pa.decimal128(10, -2)), pa.string()),
        (pa.array([10**15], pa.timestamp("ms")), pa.string()),
    ],
    ids=str,
)
def test_values_that_do_not_come_back_name_a_way(array, kind):
    told = "not all values come back the same: take it as it is, and cast it in pyarrow"
    with pytest.raises(ValueError, match=told):
        pa.array(Array(array), type=kind)
    assert pa.array(Array(array)).equals(array)


def test_dates_are_no_instants_of_a_zone_and_instants_no_whole_days():
    day = pa.array([datetime.date(2020, 1, 1)])
    noon = pa.array([datetime.datetime(2020, 1, 1, 12)], pa.timestamp("ms"))
    for array, wanted in [(day, pa.timestamp("us", "+02:00")), (noon, pa.date64())]:
        with pytest.raises(ValueError, match="cannot be handed out"):
            pa.array(Array(array), type=wanted)
