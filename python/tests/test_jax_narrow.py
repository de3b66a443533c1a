"""JAX has 32 bits unless `jax_enable_x64` is set: what it would wrap is refused."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pyarrow as pa
import pytest
from arrow_dlpack import (
    Array,
    Cast,
    Categories,
    Loader,
    Pad,
    Tensor,
    iter_batches,
    ragged,
    to_tensor,
    to_tensor_dict,
)
from arrow_dlpack.udf import Input, Output, TensorUdf, tensor_udf

BIG = 2**40 + 5
TABLE = pa.table({"id": [1, BIG], "x": [0.5, 1.5], "t": [[1], [2, BIG]]})
REFUSED = (
    rf"value {BIG} in row \d(, column \d,)? does not fit int32, which JAX makes of int64: "
    ".*jax_enable_x64"
)


@pytest.fixture(autouse=True)
def of_32_bits():
    with jax.enable_x64(False):
        yield


def loop(**options):
    return list(Loader(TABLE, batch_size=2, framework="jax", **options))


@pytest.mark.parametrize(
    ("make", "column"),
    [
        (lambda: to_tensor(TABLE["id"], framework="jax"), None),
        (lambda: to_tensor(pa.array([BIG]), framework="jax", writable=False), None),
        (lambda: to_tensor(TABLE.select(["id"]), framework="jax"), None),
        (lambda: to_tensor(TABLE["t"], pad=0, framework="jax"), None),
        (lambda: ragged(TABLE["t"], framework="jax"), None),
        (
            lambda: to_tensor(TABLE["id"].cast(pa.duration("s")), physical=True, framework="jax"),
            None,
        ),
        (lambda: to_tensor_dict(TABLE, columns=["id", "x"], framework="jax"), "id"),
        (lambda: loop(columns=["x", "id"]), "id"),
        (lambda: loop(columns=["id"], format="matrix"), None),
        (lambda: loop(columns=["x"], label="id"), "id"),
        (lambda: loop(columns=["x"], format="matrix", label="id"), "id"),
        (lambda: loop(columns={"t": Pad(0, max_length=2)}), "t"),
        (lambda: list(iter_batches(TABLE, columns=["id"], batch_size=1, framework="jax")), "id"),
        (lambda: jnp.asarray(to_tensor(TABLE["id"])), None),
        (lambda: jnp.asarray(Array(TABLE["id"])), None),
        (lambda: jnp.array(Array(TABLE["id"])), None),
    ],
)
def test_an_integer_that_jax_would_wrap_is_refused(make, column):
    named = "" if column is None else f'column "{column}": '
    with pytest.raises(ValueError, match=named + REFUSED):
        make()
    with jax.enable_x64(True):
        make()


@pytest.mark.parametrize(
    ("values", "kind", "narrow"),
    [
        ([-(2**31) - 1], pa.int64(), "int32"),
        ([2**31], pa.int64(), "int32"),
        ([2**32], pa.uint64(), "uint32"),
        ([2**63], pa.uint64(), "uint32"),
        ([1e39], pa.float64(), "float32"),
        ([-1e300], pa.float64(), "float32"),
    ],
)
def test_ends_of_the_dtypes(values, kind, narrow):
    with pytest.raises(ValueError, match=f"does not fit {narrow}"):
        to_tensor(pa.array(values, kind), framework="jax")


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([-(2**31), 2**31 - 1], pa.int64()),
        ([0, 2**32 - 1], pa.uint64()),
        ([0.1, float("inf"), float("nan"), 3.4e38], pa.float64()),
        ([], pa.int64()),
        ([BIG], pa.float64()),
    ],
)
def test_what_fits_and_what_is_rounded_pass(values, kind):
    made = to_tensor(pa.array(values, kind), framework="jax")
    expected = np.array(values, made.dtype)
    np.testing.assert_array_equal(np.asarray(made), expected)


def test_the_row_of_a_list_is_named():
    rows = pa.array([[1], [], [2, 2**40]])
    for convert in ragged, lambda rows, **options: to_tensor(rows, pad=0, **options):
        with pytest.raises(ValueError, match="in row 2(, column 1,)? does not fit"):
            convert(rows, framework="jax")
    rows = pa.array([[1, 2, 3], None, [4, 2**40]])
    with pytest.raises(ValueError, match="in row 2 does not fit"):
        ragged(rows, nulls="mask", framework="jax")


def test_codes_and_complex_numbers():
    words = pa.array(["a", "b", "a"])
    codes = Loader(
        pa.table({"w": words}), columns={"w": Categories(["a", "b"])}, batch_size=3, framework="jax"
    )
    assert next(iter(codes))["w"].tolist() == [0, 1, 0]
    assert jnp.asarray(Tensor.from_dlpack(np.array([1 + 2j]))).dtype == jnp.complex64
    with pytest.raises(ValueError, match="does not fit complex64"):
        jnp.asarray(Tensor.from_dlpack(np.array([1e300 + 1j])))
    parts = np.array([complex(np.inf, 1), complex(-2, -np.inf)])
    assert jnp.asarray(Tensor.from_dlpack(parts)).tolist() == parts.tolist()
    for lost in complex(np.inf, 1e300), complex(-1e300, np.inf):
        with pytest.raises(ValueError, match="does not fit complex64"):
            jnp.asarray(Tensor.from_dlpack(np.array([1, lost])))


def under_a_null():
    data = pa.py_buffer(np.array([1, BIG]))
    return pa.Array.from_buffers(pa.int64(), 2, [pa.py_buffer(b"\x01"), data])


def test_what_lies_under_a_null_does_not_count_and_a_label_is_no_mask():
    column = under_a_null()
    assert to_tensor(column, nulls=7, framework="jax").tolist() == [1, 7]
    values, mask = to_tensor(column, nulls="mask", framework="jax")
    assert (int(values[0]), mask.tolist()) == (1, [True, False])
    table = pa.table({"v": column})
    for options in {}, {"format": "matrix"}:
        batch = next(iter(Loader(table, batch_size=2, nulls="mask", framework="jax", **options)))
        values, mask = batch if options else batch["v"]
        assert mask.ravel().tolist() == [True, False]
    label = pa.table({"v": [1, BIG], "y": [True, False]})
    with pytest.raises(ValueError, match=REFUSED):
        list(Loader(label, label="y", format="matrix", batch_size=2, framework="jax"))
    with pytest.raises(ValueError, match=REFUSED):
        list(
            Loader(
                pa.table({"v": column}),
                label={"v": Cast("int64", nulls=BIG)},
                columns=[],
                batch_size=2,
                framework="jax",
            )
        )


def test_inputs_of_functions():
    inputs = [Input("n", "int64")]
    seen = []

    def count(n, *_):
        seen.append(n)
        return np.zeros(len(n if not isinstance(n, tuple) else n[0]), np.float32)

    made = tensor_udf(inputs, framework="jax")(count)
    assert isinstance(made, TensorUdf)
    with pytest.raises(ValueError, match='count: column "n": ' + REFUSED):
        made(pa.array([1, BIG]))
    masked = tensor_udf(inputs, framework="jax", nulls="mask")(count)
    masked(under_a_null())
    assert isinstance(seen[-1][0], jax.Array)


def test_values_below_the_least_normal_number_are_kept():
    """XLA makes 0 of them, and NumPy, by which jnp.asarray goes, does not."""
    small = np.array([9.2e-41, 1e-38, 1.2e-38])
    tensor = to_tensor(pa.array(small), framework="jax")
    assert np.array_equal(np.asarray(tensor), small.astype("float32"))


@pytest.mark.parametrize("make", [to_tensor, Array])
@pytest.mark.parametrize("call", [jnp.array, jnp.asarray])
@pytest.mark.parametrize("value", [BIG, 1e300])
def test_another_dtype_is_made_before_jax_has_the_values(make, call, value):
    """JAX calls ``__jax_array__`` without the dtype, so what is asked for is not known there."""
    data = make(pa.array([value]))
    with pytest.raises(
        ValueError, match=r"jax\.numpy\.asarray\(numpy\.asarray\(x, dtype\)\) makes"
    ):
        call(data, dtype="complex64")
    dtype = "float32" if value == BIG else "int8"
    with np.errstate(invalid="ignore"):
        made = jnp.asarray(np.asarray(data, dtype))
        assert made.dtype == dtype
        np.testing.assert_array_equal(made, np.asarray([value]).astype(dtype))
        np.testing.assert_array_equal(np.array(data, dtype=dtype), np.asarray(data, dtype))


def test_of_a_matrix_the_column_is_named_too():
    table = TABLE.select(["x", "id"]).set_column(0, "x", [[0, 1]])
    for make in (
        lambda: to_tensor(table, framework="jax"),
        lambda: jnp.asarray(to_tensor(table)),
        lambda: list(Loader(table, format="matrix", framework="jax")),
    ):
        with pytest.raises(ValueError, match=f"value {BIG} in row 1, column 1, does not fit"):
            make()


@pytest.mark.parametrize("kind", ["int4", "uint4", "int2", "uint2", "float4_e2m1fn"])
def test_parts_of_bytes_are_those_of_jax(kind):
    """Which takes them by no DLPack."""
    values = np.array([0, 1, 1, 0], getattr(ml_dtypes, kind))
    padded = pa.opaque(pa.int8() if kind.startswith("i") else pa.uint8(), kind, "dlpack")
    storage = pa.array(values.view("int8" if kind.startswith("i") else "uint8"))
    column = pa.ExtensionArray.from_storage(padded, storage)
    (batch,) = Loader(pa.table({"x": column}), framework="jax", batch_size=4)
    for made in to_tensor(column, framework="jax"), batch["x"]:
        assert (made.dtype, made.tolist()) == (values.dtype, values.tolist())


def test_a_result_that_jax_narrows_names_the_option():
    @tensor_udf([Input("b", dtype="int64")], Output("int64"), framework="jax")
    def plus(b):
        return b + 1

    with pytest.raises(ValueError, match=r"not int64 \(1,\), of which JAX makes it unless .*x64"):
        plus(pa.array([1]))
    with jax.enable_x64(True):
        assert plus(pa.array([1])).to_pylist() == [2]


@pytest.mark.parametrize("transform", [None, lambda batch: {"x": batch["x"] * 1.0}])
def test_the_setting_of_the_thread_that_loops_counts(transform):
    """JAX's is of a thread, and `prefetch=` has another one."""
    with jax.enable_x64(True):
        for prefetch in 0, 2:
            loader = Loader(
                pa.table({"x": [0.1, 0.2]}), framework="jax", prefetch=prefetch, transform=transform
            )
            (batch,) = loader
            assert batch["x"].dtype == jnp.float64
    (batch,) = loader
    assert batch["x"].dtype == jnp.float32
