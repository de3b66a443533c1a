"""dtype= and device= in whatever way the libraries at hand spell them."""

import arro3.core
import jax
import jax.numpy as jnp
import ml_dtypes
import nanoarrow
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from arrow_dlpack import (
    Tensor,
    explain,
    from_dlpack,
    iter_batches,
    ragged,
    tensor_udf,
    to_tensor,
    to_tensor_dict,
    udf,
)

TABLE = pa.table({"x": [1, 0, 1]})

DTYPES = {
    "float32": [
        "float32", "f4", "<f4", "=f4", "f", np.float32, np.dtype("f4"), np.single, pa.float32(),
        torch.float32, torch.float, jnp.float32, pl.Float32, pl.Float32(), pd.Float32Dtype(),
        pd.ArrowDtype(pa.float32()), pa.field("x", pa.float32()), nanoarrow.float32(),
        arro3.core.DataType.float32(), jnp.dtype("float32"),
    ],
    "float64": [float, "f8", "d", np.float64, np.double, pa.float64(), torch.double, pl.Float64],
    "float16": ["f2", "e", np.half, pa.float16(), torch.half],
    "int64": [int, "i8", "q", np.int64, np.longlong, pa.int64(), torch.long, pl.Int64,
              pd.Int64Dtype()],
    "int8": ["i1", "|i1", ">i1", "b", np.byte, pa.int8(), torch.int8, pl.Int8],
    "uint16": ["u2", "H", np.uint16, pa.uint16(), torch.uint16, pl.UInt16, pd.UInt16Dtype()],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "dtype"), [(name, dtype) for name in DTYPES for dtype in DTYPES[name]], ids=repr
)
def test_a_dtype_is_spelled_as_any_library_does(name, dtype):
    assert to_tensor(TABLE, dtype=dtype).dtype == name


BOOLEANS = ["bool", "b1", "?", bool, np.bool_, pa.bool_(), pa.bool8(), torch.bool]


@pytest.mark.parametrize("dtype", [*BOOLEANS, pl.Boolean, pl.Boolean(), pd.BooleanDtype()])
def test_booleans_have_as_many_names(dtype):
    assert to_tensor(pa.array([True]), dtype=dtype).dtype == "bool"


@pytest.mark.parametrize("dtype", ["bfloat16", ml_dtypes.bfloat16, np.dtype(ml_dtypes.bfloat16),
                                   torch.bfloat16, jnp.bfloat16,
                                   pa.opaque(pa.uint16(), "bfloat16", "dlpack")])  # fmt: skip
def test_so_do_the_dtypes_that_arrow_has_not(dtype):
    assert to_tensor(pa.array([1.0]), dtype=dtype).dtype == "bfloat16"


def test_every_dtype_argument_takes_them():
    lists = pa.array([[1], [2, 3]])
    assert ragged(lists, dtype=pa.float32(), offset_type=pa.int64()).offsets.dtype == "int64"
    assert ragged(lists, offset_type=int).offsets.dtype == "int64"
    assert to_tensor_dict(TABLE, dtype="f4")["x"].dtype == "float32"
    assert explain(TABLE, dtype=pl.Float32).bytes_copied == 12
    ((batch,),) = (iter_batches(TABLE, dtype=pl.Float32, format="matrix"),)
    assert batch.dtype == "float32"


@pytest.mark.parametrize(
    ("dtype", "words"),
    [
        (">f4", "the machine's byte order"),
        (np.dtype(">f4"), "the machine's byte order"),
        ("float", '64 bits in NumPy and 32 in Arrow.*"float64"'),
        ("int", '"int64" or "int32"'),
        (pa.string(), "Utf8 is no dtype"),
        (pa.timestamp("ms"), "is no dtype.*physical=True"),
        (pa.list_(pa.int8()), "is no dtype"),
        (pl.String, "not the name of a dtype"),
        (str, "not the name of a dtype"),
        (object, "not the name of a dtype"),
        (np.dtype("M8[s]"), "not the name of a dtype"),
        ("f3", "not the name of a dtype"),
        ("<", "not the name of a dtype"),
        ("é8", "not the name of a dtype"),
        ("S4", "not the name of a dtype"),
        ("f99999999999999999999999", "not the name of a dtype"),
        ("x" * 10_000_000, "not the name of a dtype"),
        (b"f4", "not the name of a dtype"),
        (7, "not the name of a dtype"),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_what_is_no_dtype_is_refused_with_its_name(dtype, words):
    with pytest.raises((TypeError, ValueError), match=words) as refused:
        to_tensor(TABLE, dtype=dtype)
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize(
    ("values", "dtype", "words"),
    [
        (pa.array([1]), "bfloat16", r"int64 .* bfloat16: ask for float32 .*torch\.bfloat16"),
        (pa.array([1]), "float8_e4m3fn", "ask for float32"),
        (pa.array([1]), bool, "compare"),
        (pa.array([1]), complex, "in the framework"),
        (pa.array([1]), "int4", "8 to 64 bits"),
        (from_dlpack(torch.ones(1).bfloat16(), type="opaque"), int, "float32 or float64"),
    ],
)
def test_what_cannot_become_it_has_a_way_out(values, dtype, words):
    with pytest.raises(ValueError, match=words):
        to_tensor(values, dtype=dtype)


@pytest.mark.parametrize(
    "device",
    ["cpu", "cpu:0", (1, 0), torch.device("cpu"), torch.ones(1).device, jax.devices()[0],
     np.ones(1).device, jnp.ones(1).device],
    ids=repr,
)  # fmt: skip
def test_a_device_is_spelled_as_any_library_does(device):
    assert Tensor.from_dlpack(np.ones(2), device=device).device == "cpu"
    assert len(from_dlpack(np.ones(2), device=device)) == 2
    assert explain(np.ones(2), device=device).zero_copy


@pytest.mark.parametrize("device", ["cuda:0", "cuda", torch.device("cuda:0"), (2, 0)], ids=repr)
def test_another_device_is_asked_of_the_producer(device):
    for convert in (Tensor.from_dlpack, from_dlpack, explain):
        with pytest.raises((BufferError, ValueError), match=r"cuda|[Dd]evice|unsupported"):
            convert(np.ones(2), device=device)


NO_DEVICES = ["there", "cuda:", "cuda:-1", "cuda:99999999999", "", 0, [], b"cpu", object()]


@pytest.mark.parametrize("device", NO_DEVICES, ids=range(len(NO_DEVICES)))
def test_what_is_no_device_is_refused(device):
    with pytest.raises(TypeError, match="^device must be "):
        from_dlpack(np.ones(2), device=device)


@pytest.mark.parametrize("dtype", [pa.float32(), "f4", pl.Float32, torch.float32, np.float32])
def test_functions_in_queries_take_them_too(dtype):
    made = tensor_udf([udf.Input("x", dtype=dtype)], udf.Output(dtype))(lambda x: x)
    assert (made.inputs[0].dtype, made.output.dtype) == ("float32", "float32")
    with pytest.raises(ValueError, match="not bfloat16"):
        tensor_udf([udf.Input("x", dtype=torch.bfloat16)])(lambda x: x)
