"""`framework=` and `writable=`: a framework's tensors, which may write to their memory or not."""

import functools
import subprocess
import sys

import jax
import mlx.core
import numpy as np
import pyarrow as pa
import pytest
import torch
from arrow_dlpack import Loader, Tensor, ragged, to_tensor, to_tensor_dict
from arrow_dlpack.udf import Input, tensor_udf

KINDS = {"torch": torch.Tensor, "jax": jax.Array, "numpy": np.ndarray}
TABLE = pa.table({"x": [1.5, None, 2.5], "y": [1, 2, 3]})
TOKENS = pa.array([[1, 2], None, [3]], pa.list_(pa.int32()))


class Partial(functools.partial):
    """One that keeps the partial which it is made of, where functools makes one of two."""


def address(array):
    return array.buffers()[1].address + array.offset * array.type.bit_width // 8


def leaves(made):
    if isinstance(made, dict):
        made = tuple(made.values())
    return [leaf for part in made for leaf in leaves(part)] if isinstance(made, tuple) else [made]


@pytest.mark.parametrize("framework", KINDS)
def test_every_tensor_of_a_result_is_the_frameworks(framework):
    results = [
        to_tensor(TABLE, nulls=0, framework=framework),
        to_tensor(TABLE, nulls="mask", framework=framework),
        to_tensor(TABLE["y"], framework=framework, writable=False),
        to_tensor(TOKENS, pad=-1, nulls="mask", framework=framework),
        to_tensor_dict(TABLE, nulls="mask", framework=framework),
        ragged(TOKENS, nulls="mask", framework=framework),
    ]
    for made in results:
        found = leaves(made)
        assert {isinstance(leaf, KINDS[framework]) for leaf in found} == {True}
    assert [len(leaves(made)) for made in results] == [1, 2, 1, 3, 4, 3]
    values, mask = results[1]
    assert np.asarray(mask).tolist() == [[True, True], [False, True], [True, True]]
    assert np.asarray(values)[np.asarray(mask)].tolist() == [1.5, 1.0, 2.0, 2.5, 3.0]
    assert type(results[3]).__name__ == "MaskedPadded"
    assert np.asarray(results[3].values).tolist() == [[1, 2], [-1, -1], [3, -1]]
    assert np.asarray(results[5].offsets).tolist() == [0, 2, 2, 3]


def test_what_a_framework_may_write_to_is_its_own():
    array = pa.array([1, 2, 3])
    rows = pa.array([[1, 2], [], [3]])
    tensors = [
        to_tensor(array, framework="torch"),
        to_tensor(pa.array([[1, 2], [3, 4]]), framework="torch"),
        to_tensor_dict(pa.table({"x": array}), framework="torch")["x"],
        *ragged(rows, framework="torch"),
        *to_tensor(rows, pad=0, framework="torch"),
    ]
    for tensor in tensors:
        tensor.fill_(9)
    assert array.to_pylist() == [1, 2, 3]
    assert rows.to_pylist() == [[1, 2], [], [3]]
    held = to_tensor(array, framework=lambda tensor: tensor)
    assert isinstance(held, Tensor)
    assert not held.readonly


def test_writable_false_shares_and_true_copies():
    array = pa.array([0, 1, 2, 3])[1:]
    shared = to_tensor(array, framework="torch", writable=False)
    assert shared.data_ptr() == address(array)
    strict = to_tensor(array, framework="torch", writable=False, copy=False)
    assert strict.data_ptr() == address(array)
    read_only = to_tensor(array, framework="numpy")
    assert (read_only.ctypes.data, read_only.flags.writeable) == (address(array), False)
    own = to_tensor(array, framework="numpy", writable=True)
    assert (own.ctypes.data == address(array), own.flags.writeable) == (False, True)
    assert not to_tensor(array, writable=True).readonly
    assert to_tensor(array, writable=False).readonly


@pytest.mark.parametrize(("wrong", "error", "words"), [
    ({"framework": "tensorflow"}, ValueError, "framework must be .* got 'tensorflow'"),
    ({"framework": []}, ValueError, r"framework must be .* got \[\]"),
    ({"framework": torch}, ValueError, 'did you mean "torch"'),
    ({"framework": torch.Tensor}, ValueError, 'makes other numbers: did you mean "torch"'),
    ({"framework": torch.LongTensor}, ValueError, 'makes other numbers: did you mean "torch"'),
    ({"framework": "pytorch"}, ValueError, 'got \'pytorch\': did you mean "torch"'),
    ({"framework": jax.numpy}, ValueError, 'did you mean "jax"'),
    ({"framework": "cupy"}, ValueError, "got 'cupy'$"),
    ({"framework": "torch", "copy": False}, TypeError, "say writable=False"),
    ({"writable": True, "copy": False}, TypeError, "say writable=False"),
    ({"framework": "jax", "writable": 1}, TypeError, "writable must be .* got 1"),
])  # fmt: skip
def test_what_does_not_go_together_is_refused(wrong, error, words):
    for convert, source in ((to_tensor, TABLE["y"]), (to_tensor_dict, TABLE), (ragged, TOKENS)):
        with pytest.raises(error, match=words):
            convert(source, **wrong)


def test_a_function_of_a_framework_loses_no_shape_and_no_values():
    table = pa.table({"x": [1, 2], "y": [3, 4]})
    for function in torch.asarray, jax.dlpack.from_dlpack, jax.numpy.from_dlpack:
        assert to_tensor(table, framework=function).tolist() == [[1, 3], [2, 4]]
        (batch,) = Loader(table, format="matrix", framework=function)
        assert batch.tolist() == [[1, 3], [2, 4]]
    wide = pa.table({"x": [2**40]})
    with jax.enable_x64(False):
        for function in jax.dlpack.from_dlpack, jax.numpy.from_dlpack:
            for make in to_tensor_dict, lambda *given, **options: list(Loader(*given, **options)):
                with pytest.raises(ValueError, match='column "x": value .* does not fit int32'):
                    make(wide, framework=function)


def test_nor_does_a_partial_of_such_a_function():
    table = pa.table({"x": [1, 2], "y": [3, 4]})
    device = jax.devices()[0]
    whole = functools.partial(torch.asarray, device="cpu")
    deep = Partial(Partial(torch.asarray, device="cpu"), dtype=torch.float32)
    for function in whole, deep:
        made = to_tensor(table, framework=function)
        assert made.tolist() == [[1, 3], [2, 4]]
        assert made.dtype == (torch.float32 if function is deep else torch.int64)
    wide = pa.table({"x": [2**40], "y": [1]})
    with jax.enable_x64(False):
        for inner in jax.dlpack.from_dlpack, jax.numpy.from_dlpack:
            function = Partial(functools.partial(inner, copy=True), device=device)
            with pytest.raises(ValueError, match='column "x": value .* does not fit int32.*x64'):
                to_tensor_dict(wide, framework=function)
            with pytest.raises(ValueError, match=r"in row 1( |, column 0, )does not fit"):
                ragged(pa.array([[1], [2**40]]), framework=function)
            with pytest.raises(ValueError, match="does not fit float32"):
                list(Loader(pa.table({"x": [1e300]}), framework=function))
            assert to_tensor_dict(wide, columns=["y"], framework=function)["y"].tolist() == [1]
    with jax.enable_x64(True):
        made = to_tensor(wide, framework=function)
        assert (made.tolist(), made.devices()) == ([[2**40, 1]], {device})


def test_what_mlx_would_make_infinite_is_refused():
    """It makes float32 of float64 unless it is asked for a dtype."""
    table = pa.table({"x": [0.5, 1e300], "n": [2**40, 1]})
    keeping = functools.partial(mlx.core.array, dtype=mlx.core.float64)
    x = table["x"]
    under_a_null = pa.Array.from_buffers(
        pa.float64(), 2, [pa.py_buffer(b"\x01"), x.chunk(0).buffers()[1]]
    )
    told = "value 1e.300 in row 1(, column 0,)? does not fit float32, which MLX makes of float64"
    for function in (
        mlx.core.array,
        mlx.core.asarray,
        mlx.core.from_dlpack,
        functools.partial(mlx.core.array),
    ):
        for make, source in (
            (to_tensor, x),
            (to_tensor, table),
            (to_tensor_dict, table),
            (ragged, pa.array([[0.5], [1e300]])),
            (lambda *given, **options: list(Loader(*given, **options)), table),
        ):
            with pytest.raises(ValueError, match=f"{told}: framework=functools.partial"):
                make(source, framework=function)
            make(source, framework=keeping)
        made = to_tensor_dict(table.slice(0, 1), framework=function)
        assert (made["x"].tolist(), made["n"].tolist()) == ([0.5], [2**40])
        assert to_tensor(pa.array([0.1, float("inf")]), framework=function)[1].item() == np.inf
        values, mask = to_tensor(under_a_null, nulls="mask", framework=function)
        assert (values[0].item(), mask.tolist()) == (0.5, [True, False])
    assert to_tensor(x, framework=keeping).tolist() == [0.5, 1e300]


def test_what_a_function_raises_is_raised():
    def refuse(tensor):
        raise RuntimeError(f"no room for {tensor.shape}")

    with pytest.raises(RuntimeError, match=r"no room for \(3,\)"):
        to_tensor_dict(TABLE, nulls=0, framework=refuse)


@pytest.mark.parametrize(
    "make",
    [
        lambda f: to_tensor(TABLE["y"], framework=f),
        lambda f: to_tensor(TABLE, nulls="mask", framework=f),
        lambda f: to_tensor(TOKENS, pad=0, nulls="mask", framework=f),
        lambda f: to_tensor_dict(TABLE, nulls=0, framework=f),
        lambda f: ragged(TOKENS, nulls="mask", framework=f),
        lambda f: list(Loader(TABLE, columns=["y"], framework=f)),
        lambda f: Loader(TABLE, columns=["y"], framework=f).encoder()([{"y": 1}]),
        lambda f: tensor_udf([Input("y")], framework=f)(np.asarray)(pa.array([1.5], "float32")),
    ],
)
def test_stop_iteration_of_a_function_ends_no_loop(make):
    """`map` would end at it, and leave out the rest without a word."""
    with pytest.raises(RuntimeError, match="framework raised StopIteration"):
        list(map(make, [lambda tensor: next(iter(()))] * 2))
    assert len(list(map(make, [lambda tensor: tensor] * 2))) == 2


WITHOUT_ML_DTYPES = """
import sys
sys.modules["ml_dtypes"] = None
import pyarrow as pa
from arrow_dlpack import Loader, UnsupportedError, ragged, to_tensor
for call in (
    lambda: to_tensor(pa.array([1.0]), dtype="bfloat16", framework="numpy"),
    lambda: ragged(pa.array([[1.0]]), dtype="bfloat16", framework="numpy"),
    lambda: next(iter(Loader(pa.table({"x": [1.0]}), dtype="bfloat16", framework="numpy"))),
):
    try:
        call()
    except UnsupportedError as error:
        print("install ml_dtypes" in str(error))
"""


def test_numpy_has_the_dtypes_of_ml_dtypes_if_it_is_there():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    numbers = pa.array([1.5, 2.0])
    tensor = to_tensor(numbers, dtype="bfloat16", framework="numpy")
    assert (tensor.dtype, tensor.tolist()) == (ml_dtypes.bfloat16, [1.5, 2.0])
    values, mask = to_tensor(numbers, dtype="bfloat16", framework="numpy", nulls="mask")
    assert (values.dtype, mask.tolist()) == (ml_dtypes.bfloat16, [True, True])
    (batch,) = Loader(pa.table({"x": numbers}), dtype="bfloat16", framework="numpy")
    assert batch["x"].dtype == ml_dtypes.bfloat16

    out = subprocess.run(
        [sys.executable, "-c", WITHOUT_ML_DTYPES], capture_output=True, text=True, check=True
    )
    assert out.stdout.split() == ["True"] * 3
