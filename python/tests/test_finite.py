"""A finite number stays finite: what a float dtype cannot hold is refused, with value and place."""

from decimal import Decimal

import duckdb
import ml_dtypes
import numpy as np
import pyarrow as pa
import pytest
from arrow_dlpack import (
    Array,
    Cast,
    Dense,
    Loader,
    Pad,
    explain,
    iter_batches,
    ragged,
    to_tensor,
    to_tensor_dict,
)
from arrow_dlpack.udf import Input, tensor_udf

HUGE = 1e300
SHOWN = "value 1e300 in row {} does not fit float32"


def floats(*rows, kind=None):
    return pa.array(rows, kind or pa.float64())


@pytest.mark.parametrize(
    ("column", "dtype", "shown"),
    [
        (floats(1, HUGE), "float32", SHOWN.format(1)),
        (floats(-HUGE), "float32", "value -1e300 in row 0"),
        (floats(70000), "float16", "value 70000.0 in row 0 does not fit float16"),
        (floats(65520), "float16", "value 65520.0 in row 0"),
        (floats(3.5e38), "bfloat16", "does not fit bfloat16"),
        (floats(2.0**63), "int64", r"value 9\.223372036854776e18 in row 0"),
        (floats(3.4e38, kind=pa.float32()), "bfloat16", "does not fit bfloat16"),
        (floats(70000, kind=pa.float32()), "float16", "value 70000.0 in row 0"),
        (pa.array([1, 70000]), "float16", "value 70000 in row 1"),
        (pa.array([-65520], pa.int32()), "float16", "value -65520 in row 0"),
        (pa.array([65520], pa.uint16()), "float16", "value 65520 in row 0"),
        (pa.array([Decimal(70000)]), "float16", "value 70000.0 in row 0"),
        (pa.array([Decimal("1e39")], pa.decimal256(50)), "float32", "value 1e39 in row 0"),
        (pa.array([Decimal("7e40")], pa.decimal256(76, -40)), "float32", "value 7e40 in row 0"),
        (pa.chunked_array([[1.0], [2.0, HUGE]]), "float32", SHOWN.format(2)),
        (floats(HUGE, 1, 2, HUGE).slice(1), "float32", SHOWN.format(2)),
        (floats([1, 2], [3, HUGE], kind=pa.list_(pa.float64(), 2)), "float32", SHOWN.format(1)),
        (floats([1, 2], [3, HUGE], kind=pa.list_(pa.float64())), "float32", SHOWN.format(1)),
    ],
)
def test_what_would_become_infinite_is_refused_with_its_row(column, dtype, shown):
    for options in {}, {"copy": True}, {"physical": True}, {"nulls": 0}, {"nulls": "mask"}:
        with pytest.raises(ValueError, match=shown):
            to_tensor(column, dtype=dtype, **options)
    # A plan does not look at the values.
    assert dtype in str(explain(column, dtype=dtype))


def test_what_rounds_to_a_finite_number_and_what_is_infinite_pass():
    for dtype, own, highest in [
        ("float16", np.float16, 65519.9),
        ("float32", np.float32, np.nextafter(2.0**128 - 2.0**103, 0)),
        ("bfloat16", ml_dtypes.bfloat16, 3.39e38),
    ]:
        values = [highest, -highest, np.inf, -np.inf, np.nan, 1e-300]
        made = np.asarray(to_tensor(floats(*values), dtype=dtype)).astype(float)
        np.testing.assert_array_equal(made, np.array(values).astype(own).astype(float))
        assert np.isfinite(made[:2]).all()


def test_values_that_are_not_read_do_not_count():
    whole = floats(HUGE, 1, 2, HUGE)
    assert np.asarray(to_tensor(whole.slice(1, 2), dtype="float32")).tolist() == [1, 2]
    data = pa.py_buffer(np.array([1, HUGE]))
    under_null = pa.Array.from_buffers(pa.float64(), 2, [pa.py_buffer(b"\x01"), data])
    assert np.asarray(to_tensor(under_null, dtype="float32", nulls=7)).tolist() == [1, 7]
    values, mask = to_tensor(under_null, dtype="float32", nulls="mask")
    assert np.asarray(mask).tolist() == [True, False]
    assert np.asarray(values)[0] == 1
    # The values of a null row are dropped.
    offsets = pa.py_buffer(np.array([0, 1, 2], np.int32))
    rows = pa.ListArray.from_buffers(
        pa.list_(pa.float64()), 2, [pa.py_buffer(b"\x01"), offsets], children=[floats(1, HUGE)]
    )
    made = ragged(rows, dtype="float32", nulls="mask")
    assert np.asarray(made.values).tolist() == [1]


def test_rows_of_several_values_are_named_by_their_index():
    rows = pa.array([[1.0], [], None, [2.0, HUGE]])
    for convert, options in [
        (ragged, {"nulls": "mask"}),
        (to_tensor, {"pad": 0, "nulls": "mask"}),
        (ragged, {"nulls": "mask", "copy": True}),
    ]:
        with pytest.raises(ValueError, match=SHOWN.format(3)):
            convert(rows, dtype="float32", **options)
    even = pa.array([[1.0, 2], None, [2.0, HUGE]])
    with pytest.raises(ValueError, match=SHOWN.format(2)):
        to_tensor(even, dtype="float32", nulls=0)
    with pytest.raises(ValueError, match="value 300 in row 1 does not fit int8"):
        to_tensor(pa.array([[1, 2], [3, 300]], pa.list_(pa.int64(), 2)), dtype="int8")


TABLE = pa.table(
    {"a": [1.0, 2], "b": [1, HUGE], "c": floats([1], [2], kind=pa.list_(pa.float64()))}
)


@pytest.mark.parametrize(
    "make",
    [
        lambda: to_tensor(TABLE, columns=["a", "b"], dtype="float32"),
        lambda: to_tensor(TABLE, columns=["a", "b"], dtype="float32", order="F"),
        lambda: to_tensor_dict(TABLE, columns=["a", "b"], dtype="float32"),
        lambda: list(iter_batches(TABLE, columns=["a", "b"], dtype="float32", batch_size=2)),
        lambda: list(Loader(TABLE, columns={"b": Cast("float32")}, batch_size=2)),
        lambda: list(Loader(TABLE, columns=["a"], label={"b": Cast("float32")}, batch_size=2)),
        lambda: list(
            Loader(TABLE, columns=["b"], dtype="float32", batch_size=2, shuffle=2, seed=1)
        ),
        lambda: list(
            Loader(TABLE, columns=["a", "b"], dtype="float32", batch_size=2, format="matrix")
        ),
    ],
)
def test_columns_of_tables_and_batches_are_named(make):
    with pytest.raises(ValueError, match=r'column "b".*value 1e300 in row [01] does not fit'):
        make()


@pytest.mark.parametrize("wish", [Pad(0, max_length=2), Dense()])
def test_lists_in_batches(wish):
    rows = pa.table({"v": [[1.0, 2], [3, HUGE]]})
    loader = Loader(rows, columns={"v": wish}, dtype="float32", batch_size=2)
    with pytest.raises(ValueError, match='column "v".*' + SHOWN.format(1)):
        list(loader)


def test_an_input_of_a_function():
    @tensor_udf([Input("x", "float32", accepts="float64", columns=["a"])])
    def narrow(x):
        return x[:, 0]

    connection = duckdb.connect()
    narrow.register(connection)
    with pytest.raises(Exception, match="1e300"):
        connection.sql("SELECT narrow(1e300::DOUBLE)").fetchall()


def test_numpys_own_casts_keep_numpys_rule():
    with np.errstate(over="ignore"):
        for column in Array(floats(HUGE)), to_tensor(floats(HUGE)):
            assert np.isinf(np.asarray(column, dtype=np.float32)).all()


def test_a_value_that_is_cut_away_need_not_fit():
    rows = pa.array([[1.0, HUGE], [2.0]])
    made = to_tensor(rows, pad=0, max_length=1, dtype="float32")
    assert made.values.tolist() == [[1], [2]]
    wish = {"l": Pad(0, max_length=1, dtype="float32")}
    (batch,) = Loader(pa.table({"l": rows}), columns=wish, batch_size=2)
    assert batch["l"].values.tolist() == [[1], [2]]
    short = to_tensor(pa.array([[1, 300], [2]]), pad=0, max_length=1, dtype="int8")
    assert short.values.tolist() == [[1], [2]]
