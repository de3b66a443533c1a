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
import pyarrow.dataset
import pytest
import torch
from arrow_dlpack import (
    Array,
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
from hostile import Producer

TABLE = pa.table({"x": [1, 0, 1]})

DTYPES = {
    "float32": [
        "float32", "f4", "<f4", "=f4", "f", np.float32, np.dtype("f4"), np.single, pa.float32(),
        torch.float32, torch.float, jnp.float32, pl.Float32, pl.Float32(), pd.Float32Dtype(),
        pd.ArrowDtype(pa.float32()), pa.field("x", pa.float32()), nanoarrow.float32(),
        arro3.core.DataType.float32(), jnp.dtype("float32"), "single",
    ],
    "float64": [float, "f8", "d", np.float64, np.double, pa.float64(), torch.double, pl.Float64,
                "double"],
    "float16": ["half", "f2", "e", np.half, pa.float16(), torch.half],
    "int32": ["intc"],
    "int64": ["longlong", int, "i8", "q", np.int64, np.longlong, pa.int64(), torch.long, pl.Int64,
              pd.Int64Dtype()],
    "int8": ["i1", "|i1", ">i1", "b", np.byte, pa.int8(), torch.int8, pl.Int8],
    "uint16": ["u2", "H", np.uint16, pa.uint16(), torch.uint16, pl.UInt16, pd.UInt16Dtype()],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "dtype"), [(name, dtype) for name in DTYPES for dtype in DTYPES[name]], ids=repr
)
def test_a_dtype_is_spelled_as_any_library_does(name, dtype):
    assert to_tensor(TABLE, dtype=dtype).dtype == name


BOOLEANS = ["bool_", "bool", "b1", "?", bool, np.bool_, pa.bool_(), pa.bool8(), torch.bool]


@pytest.mark.parametrize("dtype", [*BOOLEANS, pl.Boolean, pl.Boolean(), pd.BooleanDtype()])
def test_booleans_have_as_many_names(dtype):
    assert to_tensor(pa.array([True]), dtype=dtype).dtype == "bool"


@pytest.mark.parametrize("dtype", ["bfloat16", ml_dtypes.bfloat16, np.dtype(ml_dtypes.bfloat16),
                                   torch.bfloat16, jnp.bfloat16,
                                   pa.opaque(pa.uint16(), "bfloat16", "dlpack")])  # fmt: skip
def test_so_do_the_dtypes_that_arrow_has_not(dtype):
    assert to_tensor(pa.array([1.0]), dtype=dtype).dtype == "bfloat16"


@pytest.mark.parametrize(("name", "bits"), [("c8", 64), ("c16", 128), ("<c8", 64)])
def test_so_do_complex_numbers(name, bits):
    column = from_dlpack(np.array([1 + 2j], name), type="opaque")
    assert to_tensor(column, dtype=name).dtype == f"complex{bits}"


def test_a_class_of_types_goes_by_its_name():
    class Float32:
        def __arrow_c_schema__(self):
            raise AssertionError("it is a method of the types")

    assert to_tensor(TABLE, dtype=Float32).dtype == "float32"


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
        ("c", "not the name of a dtype"),
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
    ("dtype", "meant"),
    [
        ("Float32", "float32"),
        ("float23", "float32"),
        ("floaat32", "float32"),
        ("torch.float32", "float32"),
        ("np.int8", "int8"),
        ("uint_16", "uint16"),
        ("boolean", "bool"),
        ("bfloat61", "bfloat16"),
    ],
)
def test_what_is_nearly_a_dtype_is_recognised(dtype, meant):
    with pytest.raises(ValueError, match=rf"name of a dtype: did you mean \"{meant}\"\?"):
        to_tensor(TABLE, dtype=dtype)


@pytest.mark.parametrize(
    ("values", "dtype", "words"),
    [
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


@pytest.mark.parametrize(
    ("alias", "device"),
    [("gpu", "cuda:0"), ("hip:1", "rocm:1"), ("mps", "metal:0"), ("xpu:2", "oneapi:2")],
)
def test_libraries_have_names_of_their_own_for_devices(alias, device):
    with pytest.raises(BufferError, match=f"asked for on {device}, and is on cpu"):
        Tensor.from_dlpack(Producer(), device=alias)


@pytest.mark.parametrize("tensor", [np.ones(2), jnp.ones(2), Tensor.from_dlpack(np.ones(2))],
                         ids=lambda tensor: type(tensor).__name__)  # fmt: skip
def test_it_is_said_who_does_not_copy_where(tensor):
    name = type(tensor).__name__
    with pytest.raises(BufferError, match=rf"^{name} does not copy to cuda:0, and says ") as error:
        Tensor.from_dlpack(tensor, device="cuda:0")
    assert isinstance(error.value.__cause__, (BufferError, ValueError, RuntimeError))
    assert str(error.value.__cause__) in str(error.value)


@pytest.mark.parametrize("convert", [from_dlpack, Array.from_dlpack, explain])
def test_an_arrow_array_is_on_the_cpu(convert):
    with pytest.raises(BufferError, match="^an Arrow array is on the CPU, so .*cannot be cuda:0"):
        convert(np.ones(2), device="cuda:0")


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


def test_a_flag_is_named():
    array = Array(pa.array([1]))
    for convert in (to_tensor, to_tensor_dict, explain, iter_batches):
        with pytest.raises(TypeError, match="^physical must be True or False, got 1\n"):
            convert(TABLE, physical=1)
    for convert in (array.to_tensor, lambda **options: array.row(0, **options)):
        with pytest.raises(TypeError, match="^physical must be True or False, got 1\n"):
            convert(physical=1)
    with pytest.raises(TypeError, match="^physical must be True or False, got 'x'\n"):
        ragged(pa.array([[1]]), physical="x")
    with pytest.raises(TypeError, match="^ragged must be True or False, got 1\n"):
        explain(TABLE, ragged=1)
    assert to_tensor(TABLE, physical=np.True_).shape == (3, 1)


def test_names_are_texts():
    frame = pd.DataFrame({0: [1], 2: [3]})
    words = (
        r"^columns must be .*names are texts \(pandas' 0 is called \"0\" in Arrow\), got \[0, 2\]"
    )
    for convert in (to_tensor, to_tensor_dict, explain, iter_batches):
        with pytest.raises(TypeError, match=words):
            convert(frame, columns=[0, 2])
    with pytest.raises(TypeError, match=words):
        iter_batches(pyarrow.dataset.dataset(TABLE), columns=[0, 2])
    with pytest.raises(
        TypeError, match="^label must be .*, got 0: .*pandas' 0 is called .0. in Arrow"
    ):
        iter_batches(frame, label=0)
    assert to_tensor(frame, columns=["0", "2"]).tolist() == [[1, 3]]


def test_a_name_is_said_once_where_it_tells_columns_apart():
    for convert in (to_tensor_dict, iter_batches):
        with pytest.raises(KeyError, match='columns= names "x" twice'):
            convert(TABLE, columns=["x", "x"])
    assert to_tensor(TABLE, columns=["x", "x"]).shape == (3, 2)


def test_a_label_alone_leaves_no_matrix():
    with pytest.raises(BufferError, match="^no features are left beside the label$"):
        iter_batches(TABLE, label="x", format="matrix")
    with pytest.raises(KeyError, match='no column "y"'):
        iter_batches(pa.table({"x": [1]}).drop_columns(["x"]), label="y", format="matrix")
