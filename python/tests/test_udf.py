"""Functions of tensors, called by the engines themselves."""

import re
import subprocess
import sys
import threading
import time
from collections import UserDict, deque

import duckdb
import jax.numpy as jnp
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from arrow_dlpack import Loader, Tensor, UnsupportedError, tensor_udf, to_tensor
from arrow_dlpack.udf import Input, Output

import datafusion

DTYPES = ["bool", "float32", "float64"]
DTYPES += [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]


class DataFusion:
    name = "datafusion"

    def __init__(self, table, **options):
        config = datafusion.SessionConfig(options)
        self.connection = datafusion.SessionContext(config)
        batches = table.combine_chunks().to_batches() or [
            pa.RecordBatch.from_pylist([], table.schema)
        ]
        self.connection.register_record_batches("t", [batches])

    def rows(self, sql):
        return self.table(sql).column(0).to_pylist()

    def table(self, sql):
        return self.connection.sql(sql).to_arrow_table()


class DuckDB:
    name = "duckdb"

    def __init__(self, table):
        self.connection = duckdb.connect()
        self.connection.register("t", table)

    def rows(self, sql):
        return [row for (row,) in self.connection.sql(sql).fetchall()]


@pytest.fixture(params=[DataFusion, DuckDB])
def engine(request):
    made = []

    def make(udf, **columns):
        engine = request.param(pa.table(columns))
        made.append(engine.connection)
        udf.register(engine.connection)
        return engine

    yield make
    for connection in made:
        getattr(connection, "close", lambda: None)()


def lists(*rows, size=2, arrow="float32"):
    return pa.array(rows, pa.list_(pa.type_for_alias(arrow), size))


def summing(*inputs, **options):
    @tensor_udf(inputs, **options)
    def total(tensor, *_):
        """The sum of each row of the first input."""
        return np.asarray(tensor).reshape(len(tensor), -1).sum(axis=1, dtype=np.float32)

    return total


X = Input("x", shape=[2])


def test_numbers_side_by_side_are_a_matrix(engine):
    seen = []

    @tensor_udf([Input("m", columns=["a", "b"])])
    def head_of(matrix):
        seen.append((matrix.dtype, matrix.shape, matrix.flags.writeable))
        return matrix[:, 0]

    rows = engine(head_of, a=[1, 2, 3], b=pa.array([0.5, 1.5, 2.5], pa.float32()))
    assert rows.rows("SELECT head_of(a, b) FROM t") == [1.0, 2.0, 3.0]
    assert seen[0][:2] == (np.float32, (3, 2))
    with pytest.raises(Exception, match="No function matches"):
        rows.rows("SELECT head_of(a, 'x' || b) FROM t")


def test_an_input_for_each_argument(engine):
    @tensor_udf([X, Input("n", "int64")], Output("float64"))
    def scaled(x, n):
        return (x.sum(axis=1) ** n).astype(np.float64)

    rows = engine(scaled, x=lists([1, 2], [3, 4]), n=[2, 3])
    assert rows.rows("SELECT scaled(x, n) FROM t") == [9.0, 343.0]
    # Constants are as many equal rows.
    assert rows.rows("SELECT scaled(x, 1) FROM t") == [3.0, 7.0]


@pytest.mark.parametrize("sql", ["SELECT total(3, 4)", "SELECT total(3, 4) FROM t"])
def test_a_call_of_constants(engine, sql):
    rows = engine(summing(Input("m", columns=["a", "b"])), a=[1, 2])
    assert set(rows.rows(sql)) == {7.0}


def test_lists_are_not_copied():
    column = lists([1, 2], [3, 4], [5, 6])[1:]
    address = column.flatten().buffers()[1].address + 8
    seen = []

    @tensor_udf([X], Output(shape=[2]))
    def same(x):
        seen.append((x.__array_interface__["data"][0], x.flags.writeable))
        return x

    context = datafusion.SessionContext()
    context.register_record_batches("t", [[pa.record_batch({"x": column})]])
    same.register(context)
    table = context.sql("SELECT same(x) AS y FROM t").to_arrow_table()
    assert seen == [(address, False)]
    # Nor is the result, which is the input here.
    assert table["y"].type == pa.fixed_shape_tensor(pa.float32(), [2])
    (chunk,) = table["y"].chunks
    assert chunk.to_pylist() == [[3, 4], [5, 6]]
    values = chunk.storage.flatten()
    assert values.buffers()[1].address + 4 * values.offset == address


@pytest.mark.parametrize("permutation", [None, [1, 0]])
def test_a_tensor_column_comes_in_its_shape(permutation):
    tensors = pa.fixed_shape_tensor(pa.float32(), [2, 3], permutation=permutation)
    column = pa.ExtensionArray.from_storage(tensors, lists(range(6), range(6, 12), size=6))
    shape = (2, 3) if permutation is None else (3, 2)

    @tensor_udf([Input("x", shape=shape)])
    def last(x):
        assert x.shape[1:] == shape
        return x[:, -1, 0]

    engine = DataFusion(pa.table({"x": column}))
    last.register(engine.connection)
    assert engine.rows("SELECT last(x) FROM t") == ([3.0, 9.0] if shape == (2, 3) else [2.0, 8.0])

    # As long, and of as many axes, is not enough.
    for other in ((6,), shape[::-1]):
        total = summing(Input("x", shape=other), name=f"total{len(other)}")
        total.register(engine.connection)
        with pytest.raises(Exception, match=r'"x": its rows have shape \(\d, \d\), not \('):
            engine.rows(f"SELECT {total.name}(x) FROM t")


def test_lists_within_lists_come_in_their_shape(engine):
    rows = [[[0, 1, 2], [3, 4, 5]], [[6, 7, 8], [9, 10, 11]]]
    column = pa.array(rows, pa.list_(pa.list_(pa.float32(), 3), 2))

    @tensor_udf(
        [Input("x", shape=[2, 3], kind="fixed_size_list")],
        Output(shape=[3, 2], kind="fixed_size_list"),
    )
    def turned(x):
        return x.transpose(0, 2, 1)

    (first, _) = engine(turned, x=column).rows("SELECT turned(x) FROM t")
    assert np.array(first).tolist() == [[0, 3], [1, 4], [2, 5]]


def test_the_result_of_one_is_taken_by_the_next(engine):
    @tensor_udf([X], Output(shape=[2]))
    def unit(x):
        return x / np.linalg.norm(x, axis=1, keepdims=True)

    @tensor_udf([X, X._replace(name="y")])
    def dot(x, y):
        return (x * y).sum(axis=1)

    rows = engine(unit, x=lists([3, 4], [0, 2]))
    dot.register(rows.connection)
    dots = rows.rows("SELECT dot(unit(a.x), unit(b.x)) FROM t a, t b ORDER BY 1")
    assert dots == pytest.approx([0.8, 0.8, 1, 1])


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_goes_there_and_back(engine, dtype):
    @tensor_udf([Input("x", dtype)], Output(dtype))
    def same(x):
        assert x.dtype == dtype
        return x

    column = pa.array([1, 0, 1], pa.uint8()).cast(pa.float32()).cast(pa.type_for_alias(dtype))
    assert engine(same, x=column).rows("SELECT same(x) FROM t") == column.to_pylist()


def test_duckdb_has_no_float16():
    @tensor_udf([Input("x", "float16")], Output("float16"))
    def same(x):
        return x

    with pytest.raises(ValueError, match='same: "x": DuckDB has no float16'):
        same.register(duckdb)
    context = DataFusion(pa.table({"x": pa.array([1.5], pa.float16())}))
    same.register(context.connection)
    assert context.rows("SELECT same(x) FROM t") == [1.5]


def test_dtypes_are_those_of_any_framework():
    for dtype in ("float32", np.float32, np.dtype("float32"), torch.float32, jnp.float32):
        assert summing(Input("x", dtype, [2])).inputs[0].dtype == "float32"


def test_doubles_become_floats_if_the_input_accepts_them(engine):
    columns = {"a": [1.5, 2.5], "b": [1, 2], "x": lists([0.5, 1], [2, 3], arrow="float64")}
    narrow = Input("m", columns=["a", "b"])
    rows = engine(summing(narrow._replace(accepts="float64")), **columns)
    assert rows.rows("SELECT total(a, b) FROM t") == [2.5, 4.5]
    rows = engine(summing(X._replace(accepts="float64")), **columns)
    assert rows.rows("SELECT total(x) FROM t") == [1.5, 5.0]
    rows = engine(summing(narrow), **columns)
    with pytest.raises(Exception, match="No function matches"):
        rows.rows("SELECT total(a, b) FROM t")


HOLES = lists(None, [1, None], [3, 4], None, [5, 6])


def test_rows_with_a_null_anywhere_are_null_and_do_not_reach_the_function(engine):
    seen = []

    @tensor_udf([X, Input("n")], Output(shape=[2]))
    def times(x, n):
        seen.append(x.tolist())
        return x * n[:, None]

    rows = engine(times, x=HOLES, n=[1, 2, 3, 4, None])
    found = rows.rows("SELECT times(x, n) FROM t")
    assert [row and list(row) for row in found] == [None, None, [9.0, 12.0], None, None]
    assert seen == [[[3, 4]]]
    # In aggregates too.
    rows = engine(summing(Input("m", columns=["a", "b"])), a=[1, None, 3], b=[1, 2, 3])
    assert rows.rows("SELECT sum(total(a, b)) FROM t") == [8.0]
    assert rows.rows("SELECT count(total(a, b)) FROM t") == [2]
    assert rows.rows("SELECT total(a, NULL) FROM t") == [None] * 3


def test_rows_that_are_all_null_or_none_do_not_reach_the_function(engine):
    @tensor_udf([X], Output(shape=[2]))
    def never(x):
        raise AssertionError(x)

    rows = engine(never, x=lists(None, [None, 1]), n=[1, 2])
    assert rows.rows("SELECT never(x) FROM t") == [None, None]
    assert rows.rows("SELECT never(x) FROM t WHERE n > 5") == []
    assert never(lists()).type == pa.fixed_shape_tensor(pa.float32(), [2])
    assert len(never(pa.chunked_array([], HOLES.type))) == 0


@pytest.mark.parametrize(
    "kind", [pa.list_, pa.large_list, pa.list_view, pa.large_list_view, lambda of: pa.list_(of, 2)]
)
def test_a_null_within_a_list_of_any_type_is_one_of_the_row(kind):
    pair = Output("float64", (2,), "fixed_size_list")
    same = tensor_udf([Input("v", "float64", (2,))], pair, name="same")(lambda v: v)
    rows = [[1, 2], [3, None], None, [None, 4], [5, 6]]
    want = [[1, 2], None, None, None, [5, 6]]
    column = pa.array(rows, kind(pa.float64()))
    assert same(column).to_pylist() == want
    assert same(column[1:]).to_pylist() == want[1:]
    assert same(column[2:3]).to_pylist() == [None]
    assert same(pa.chunked_array([column[:1], column[1:]])).to_pylist() == want
    nested = pa.array([[row] for row in rows], pa.list_(pa.list_(pa.float64(), 2)))
    pairs = Output("float64", (1, 2), "fixed_size_list")
    found = tensor_udf([Input("v", "float64", (1, 2))], pairs, name="same")(lambda v: v)(nested)
    assert found.to_pylist() == [row and [row] for row in want]


MISTAKES = {
    "batch_rows='a'": (TypeError, "batch_rows must be a number of rows", {"batch_rows": "a"}, {}),
    "batch_rows=1.5": (TypeError, "batch_rows must be a number of rows", {"batch_rows": 1.5}, {}),
    "shape=3": (TypeError, r"shape must be .*, such as \(3,\), got 3", {}, {"shape": 3}),
    "shape=range": (ValueError, "shape has more than 1048576 items", {}, {"shape": range(2**62)}),
    "shape='a'": (TypeError, "shape must be the extents of one row", {}, {"shape": "a"}),
    "a name": (TypeError, "the name of an input is a text, got 3", {}, {"name": 3}),
    "columns='ab'": (
        TypeError,
        r"columns must .* mean \['ab'\]",
        {},
        {"columns": "ab"},
    ),
    "columns of a set": (TypeError, "columns must be a list of names", {}, {"columns": {"a", "b"}}),
    "columns=3": (TypeError, "columns must be a list of names, got 3", {}, {"columns": 3}),
    "columns=[0]": (TypeError, r"columns must be a list of names, got \[0\]", {}, {"columns": [0]}),
    "a huge shape": (ValueError, "has more than 2147483647 values", {}, {"shape": (2**62,) * 2}),
    "a kind": (ValueError, "kind must be 'fixed_shape_tensor' or", {}, {"kind": "foo"}),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_found_where_it_is_made(name):
    error, words, options, own = MISTAKES[name]
    with pytest.raises(error, match=words):
        tensor_udf([Input(**{"name": "v"} | own)], name="f", **options)(abs)
    if own.keys() <= {"shape", "kind"} and own:
        with pytest.raises(error, match=f"f: its output: .*{words}"):
            tensor_udf([X], Output(**own), name="f")(abs)


def test_nulls_in_tensor_columns_too():
    tensors = pa.fixed_shape_tensor(pa.float32(), [1, 2], permutation=[1, 0])
    column = pa.ExtensionArray.from_storage(tensors, HOLES)
    total = summing(Input("x", shape=[2, 1]))
    assert total(column).to_pylist() == [None, None, 7.0, None, 11.0]
    assert total(column[1:4]).to_pylist() == [None, 7.0, None]
    nested = pa.array([[[1, 2], None], [[3, 4], [5, None]], [[1, 1], [1, 1]]])
    nested = nested.cast(pa.list_(pa.list_(pa.float32(), 2), 2))
    assert summing(Input("x", shape=[2, 2]))(nested).to_pylist() == [None, None, 4.0]


@pytest.mark.parametrize(
    ("nulls", "totals"), [("nan", [None, None, 7, None, 11]), (10, [20, 11, 7, 20, 11])]
)
def test_nulls_are_filled_if_asked_for(engine, nulls, totals):
    rows = engine(summing(X, nulls=nulls), x=HOLES)
    found = [None if np.isnan(total) else total for total in rows.rows("SELECT total(x) FROM t")]
    assert found == totals


def test_nulls_are_refused_by_the_name_of_their_column(engine):
    rows = engine(summing(X, nulls="error"), x=HOLES)
    with pytest.raises(Exception, match=r'total: "x": .* has \d+ nulls in 10 values'):
        rows.rows("SELECT total(x) FROM t")
    rows = engine(summing(Input("m", columns=["a", "b"]), nulls="error"), a=[1], b=[None])
    with pytest.raises(Exception, match=r'total: "m": column .*b.* has 1 null in 1 value'):
        rows.rows("SELECT total(1, b::INT) FROM t")


def test_masks_tell_which_values_are_valid(engine):
    @tensor_udf([X], nulls="mask", framework="torch")
    def valid(x):
        values, mask = x
        assert (values.dtype, mask.dtype) == (torch.float32, torch.bool)
        return torch.where(mask, values, 0).sum(dim=1)

    assert engine(valid, x=HOLES).rows("SELECT valid(x) FROM t") == [0, 1, 7, 0, 11]


@pytest.mark.parametrize("chunks", [1, 3])
def test_columns_of_other_libraries_and_in_chunks(chunks):
    total = summing(Input("m", columns=["a", "b"]))
    column = pa.chunked_array([[1.0, 2.0]] * chunks, pa.float32())
    assert total(column, column).to_pylist() == [2.0, 4.0] * chunks
    series = pl.Series([1.0, 2.0] * chunks, dtype=pl.Float32)
    assert total(series, column).to_pylist() == [2.0, 4.0] * chunks


def test_what_polars_exports_without_a_type_is_refused_by_name():
    """Of Python's objects it exports addresses."""
    identity = tensor_udf([Input("x", "uint8", (8,))], Output("uint8", (8,)))(lambda x: x)
    with pytest.raises(TypeError, match=r"\"x\" must be a column: .* objects \(polars' Object\)"):
        identity(pl.Series([object()], dtype=pl.Object))
    with pytest.raises(ValueError, match='"x" must be a column: .*cast it to polars.Int64'):
        identity(pl.Series([1], dtype=pl.Int128))


@pytest.mark.parametrize("nulls", ["propagate", "error", "mask", 0])
@pytest.mark.parametrize("batch_rows", [None, 2])
def test_an_error_of_a_value_has_its_row_among_all(nulls, batch_rows):
    options = {"nulls": nulls, "batch_rows": batch_rows}
    values = tensor_udf([Input("x", "float32")], Output("float32"), **options)(
        lambda x: x[0] if nulls == "mask" else x
    )
    first = 1.5 if nulls == "error" else None
    with pytest.raises(ValueError, match="value 1e300 in row 3 does not fit float32"):
        values(pa.array([first, 1.0, first, 1e300]))


def test_an_input_with_a_null_row_is_refused_by_name():
    lists = pa.array([[[1.0]], None])
    with pytest.raises(BufferError, match='"x": .* the rows. items are lists themselves'):
        tensor_udf([X], Output(shape=[2]), nulls="propagate")(lambda x: x)(lists)


def test_several_batches_of_a_table(engine):
    column = pa.chunked_array([pa.array([1.0] * 3000, pa.float32())] * 3)
    rows = engine(summing(Input("n")), n=column)
    assert rows.rows("SELECT sum(total(n)) FROM t") == [9000.0]


def test_batch_rows_cuts_and_puts_together(engine):
    seen = []

    @tensor_udf([X], Output(shape=[2]), batch_rows=2)
    def same(x):
        seen.append(len(x))
        return x

    column = lists([1, 2], [3, 4], None, [5, 6], [7, 8], [9, 9])
    found = engine(same, x=column).rows("SELECT same(x) FROM t")
    assert [row and list(row) for row in found] == column.to_pylist()
    assert seen == [2, 2, 1]
    assert summing(Input("n"), batch_rows=2**70)([1.0, 2.0]).to_pylist() == [1.0, 2.0]


def test_the_state_is_made_once_for_all_threads():
    made, called = [], set()

    @tensor_udf([Input("n", "int64")], Output("int64"), state=lambda: made.append(1) or made)
    def plus(state, n):
        assert state is made
        called.add(threading.get_ident())
        return n + 1

    with duckdb.connect(config={"threads": 4}) as connection:
        plus.register(connection)
        connection.execute("CREATE TABLE t AS SELECT range AS n FROM range(1000000)")
        ((total,),) = connection.sql("SELECT sum(plus(n)) FROM t").fetchall()
        assert total == 1000000 * 1000001 // 2
        assert len(called) > 1
    engine = DataFusion(pa.table({"n": [1]}), **{"datafusion.execution.target_partitions": "4"})
    plus.register(engine.connection)
    parts = [[pa.record_batch({"n": pa.array(range(1000))})] for _ in range(4)]
    engine.connection.register_record_batches("parts", parts)
    assert engine.rows("SELECT sum(plus(n)) FROM parts") == [4 * 500500]
    assert made == [1]


def test_threads_that_come_at_once_wait_for_the_state():
    made, results, barrier = [], [], threading.Barrier(8)

    def state():
        time.sleep(0.1)
        made.append(1)
        return 5

    @tensor_udf([Input("n")], state=state)
    def constant(state, n):
        return np.full(len(n), state, np.float32)

    def run():
        barrier.wait(10)
        results.append(constant(pa.array([1.0], pa.float32())).to_pylist())

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (made, results) == ([1], [[5.0]] * 8)


def test_a_state_that_cannot_be_made_is_tried_again(engine):
    tries = []

    def state():
        tries.append(1)
        if len(tries) == 1:
            raise OSError("no such model")
        return 1

    @tensor_udf([Input("n")], state=state)
    def plus(state, n):
        return n + np.float32(state)

    rows = engine(plus, n=[1])
    with pytest.raises(Exception, match="no such model"):
        rows.rows("SELECT plus(n) FROM t")
    assert rows.rows("SELECT plus(n) FROM t") == [2.0]
    assert len(tries) == 2


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (lambda x: x.sum(axis=1)[:1], r"made returned float32 \(1,\), not float32 \(2,\)"),
        (lambda x: x, r"made returned float32 \(2, 2\), not float32 \(2,\)"),
        (lambda x: x.sum(axis=1).astype(int), r"made returned int64 \(2,\), not float32 \(2,\)"),
        (
            lambda x: x.sum(axis=1).tolist(),
            "made: its result must be one tensor, without nulls: .* got list",
        ),
        (
            lambda x: torch.ones(2, requires_grad=True),
            "made: its result must be one tensor, without nulls: .*gradient",
        ),
        (lambda x: 1 / 0, "division by zero"),
    ],
)
def test_a_wrong_result_is_an_error_of_the_query(engine, result, message):
    made = tensor_udf([X], name="made")(result)
    rows = engine(made, x=lists([1, 2], [3, 4]))
    with pytest.raises(Exception, match=message):
        rows.rows("SELECT made(x) FROM t")


@pytest.mark.parametrize(
    ("framework", "kind"),
    [("numpy", np.ndarray), ("torch", torch.Tensor), ("jax", jnp.ndarray), (lambda x: x, Tensor)],
)
def test_tensors_are_those_of_the_framework(engine, framework, kind):
    @tensor_udf([X], Output(shape=[2]), framework=framework)
    def twice(x):
        assert isinstance(x, kind)
        return x if kind is Tensor else x + x

    factor = 1 if kind is Tensor else 2
    found = engine(twice, x=lists([1, 2], [3, 4])).rows("SELECT twice(x) FROM t")
    assert np.array(found).tolist() == [[factor, 2 * factor], [3 * factor, 4 * factor]]


@pytest.mark.parametrize("framework", ["torch", torch.from_dlpack], ids=["name", "function"])
@pytest.mark.parametrize("shape", [(), (2,)])
@pytest.mark.parametrize("nulls", ["propagate", "mask", 0])
def test_a_function_that_writes_to_its_tensors_changes_no_table(framework, shape, nulls):
    values = [[-1.0, 2.0], [3.0, -4.0]] if shape else [-1.0, 2.0]
    kind = pa.list_(pa.float32(), 2) if shape else pa.float32()
    table = pa.table({"v": pa.array(values, kind)})

    @tensor_udf([Input("v", shape=shape)], Output(shape=shape), framework=framework, nulls=nulls)
    def relu(given):
        return torch.relu_(given[0] if nulls == "mask" else given)

    positive = np.maximum(np.array(values), 0).tolist()
    assert relu(table["v"]).to_pylist() == positive
    context = datafusion.SessionContext()
    relu.register(context)
    context.register_record_batches("t", [table.to_batches()])
    argument = "arrow_cast(v, 'FixedSizeList(2, Float32)')" if shape else "v"
    made = context.sql(f"select relu({argument}) as r from t").to_pydict()["r"]
    assert made == positive
    assert table["v"].to_pylist() == values


def test_nothing_is_imported_before_it_is_used():
    program = """
import sys
from arrow_dlpack.udf import Input, tensor_udf

@tensor_udf([Input("x", "float32", [2])], framework="torch")
def same(x):
    return x

heavy = {"numpy", "pyarrow", "torch", "jax", "datafusion", "duckdb", "inspect"} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_volatile_function_is_called_for_each_row(engine):
    seen = []

    @tensor_udf([Input("n")], volatile=True)
    def draw(n):
        seen.append(len(n))
        return n + np.arange(len(n), dtype=np.float32)

    rows = engine(draw, n=[1, 2, 3])
    assert rows.rows("SELECT draw(1) FROM t") == [1.0, 2.0, 3.0]
    assert seen == [3]


def test_a_function_in_expressions_of_datafusion():
    engine = DataFusion(pa.table({"x": lists([1, 2], [3, 4])}))
    total = summing(X).datafusion()
    frame = engine.connection.table("t").select(total(datafusion.col("x")).alias("y"))
    assert frame.to_pydict() == {"y": [3.0, 7.0]}


@pytest.mark.parametrize(
    ("describe", "message"),
    [
        (summing, "total: a function of tensors needs an input"),
        (lambda: summing(X, X), "total: two arguments of one name: x, x"),
        (lambda: summing(X, batch_rows=0), "total: batch_rows must be at least 1, not 0"),
        (
            lambda: summing(Input("x", "str")),
            'total: "x": columns have elements of bool, .* not str',
        ),
        (
            lambda: summing(Input("x", shape=[0])),
            r'total: "x": rows of shape \(0,\) have nothing in',
        ),
        (
            lambda: summing(Input("x", shape=[3], columns=["a", "b"])),
            r'total: "x": 2 columns have shape \(2,\), not \(3,\)',
        ),
        (lambda: summing(X, output=Output("int3")), "total: its output: columns have elements of"),
        (
            lambda: summing(X, framework="pandas"),
            "total: no framework 'pandas', but torch, jax, numpy",
        ),
    ],
)
def test_a_description_that_contradicts_itself_is_an_error(describe, message):
    with pytest.raises(ValueError, match=message):
        describe()


@pytest.mark.parametrize(
    "inputs", ["v", abs, Input("v"), ["v"], [("v", "float32")], None], ids=repr
)
def test_inputs_are_a_list_of_them_when_the_function_is_described(inputs):
    with pytest.raises(TypeError, match="^inputs must be a list of Input, got "):
        tensor_udf(inputs)


def test_what_no_row_could_be_right_for_is_refused_when_it_is_registered():
    total = summing(Input("n", "int32"), nulls="nan")
    for engine in (datafusion.SessionContext(), duckdb.connect()):
        with pytest.raises(ValueError, match='total: "n": .*int32 does not hold it'):
            total.register(engine)
    with pytest.raises(TypeError, match="total is for .* datafusion or .* duckdb, not for dict"):
        total.register({})


def test_other_columns_than_those_declared_are_refused():
    total = summing(Input("m", columns=["a", "b"]))
    with pytest.raises(TypeError, match=r"total takes 2 arguments \(a, b\), not 1"):
        total([1.0])
    with pytest.raises(UnsupportedError, match='total: "x": Utf8 has no tensor form'):
        summing(Input("x"))(pa.array(["a"]))
    with pytest.raises(TypeError, match='total: "b" must be a column: .*float'):
        total([1.0], 2.0)
    with pytest.raises(ValueError, match='total: .* differ in their rows: "a" has 1, "b" has 2'):
        total([1.0], [1.0, 2.0])


def test_it_says_what_it_is():
    @tensor_udf([X, Input("m", columns=["a", "b"])])
    def score(x, m):
        """How good it is."""

    assert repr(score) == "<arrow_dlpack.TensorUdf score(x, a, b)>"
    assert score.__doc__ == "How good it is."
    assert score.function(1, 2) is None


def test_columns_that_hold_themselves_are_refused():
    """pyarrow follows them until the process ends."""
    udf = tensor_udf([Input("x", "float64")], Output("float64"))(lambda x: x)
    own, objects = [], np.empty(1, object)
    own.append(own)
    objects[0] = objects
    others = iter([own]), map(list, [[own]]), deque([own]), {"a": own}.values(), pd.Series([own])
    for column in (
        own,
        (own,),
        [{"a": own}],
        objects,
        *others,
        pd.Index([own], object),
        pd.Series([own]).array,
    ):
        with pytest.raises(ValueError, match='"x" must be a column: .* or hold themselves'):
            udf(column)
    assert udf([1.5, 2.5]).to_pylist() == udf(np.array([1.5, 2.5], object)).to_pylist()
    assert udf(UserDict({0: 5.0, 1: 6.0})).to_pylist() == [5.0, 6.0]  # as pyarrow takes it


def test_datafusion_takes_tensor_columns_of_parquet_files_by_a_cast(tmp_path):
    x = np.arange(1, 9, dtype="float32").reshape(4, 2)
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"x": pa.FixedShapeTensorArray.from_numpy_ndarray(x)}), path)

    @tensor_udf([Input("x", shape=[2])])
    def total(x):
        return x.sum(axis=1)

    context = datafusion.SessionContext()
    total.register(context)
    context.register_parquet("t", str(path))
    with pytest.raises(Exception, match="coercion from FixedSizeList.*'element'"):
        context.sql("SELECT total(x) FROM t").collect()
    found = context.sql("SELECT total(arrow_cast(x, 'FixedSizeList(2, Float32)')) AS y FROM t")
    assert found.to_pydict()["y"] == x.sum(axis=1).tolist()


def test_lists_that_are_cast_before_datafusion_slices_them_keep_their_rows():
    """Its own cast takes rows from the start of what it has sliced."""

    @tensor_udf([Input("x", shape=[2])])
    def first(x):
        return x[:, 0].copy()

    lists = pa.array([[float(at), 1.0] for at in range(20_000)])
    table = pa.table({"id": range(20_000), "x": lists.cast(pa.list_(pa.float32(), 2))})
    context = datafusion.SessionContext()
    first.register(context)
    context.from_arrow(table, "t")
    for clause, start in ("", 0), ("ORDER BY id LIMIT 3 OFFSET 100", 100):
        made = context.sql(f"SELECT id, first(x) AS r FROM t {clause}").to_pydict()
        assert made["r"] == made["id"]
        assert min(made["id"]) == start


def test_a_join_of_datafusion_is_read_by_what_the_guide_names(tmp_path):
    pq.write_table(pa.table({"id": range(20_000)}), tmp_path / "t.parquet")
    context = datafusion.SessionContext()
    context.register_parquet("t", str(tmp_path / "t.parquet"))
    join = context.sql("SELECT a.id FROM t a JOIN t b ON a.id = b.id")
    assert to_tensor(join.to_arrow_table()).shape == (20_000, 1)
    batches = (batch.to_pyarrow() for batch in join.execute_stream())
    assert sum(len(batch["id"]) for batch in Loader(batches)) == 20_000


@pytest.mark.parametrize("kind", ["fixed_shape_tensor", "fixed_size_list"])
def test_complete_rows_of_a_slice_of_matrices_are_those_that_were_given(kind):
    """pyarrow 26 filters and takes other rows of such a slice."""

    @tensor_udf([Input("x", shape=[2, 1]), Input("n")], Output(shape=[2, 1], kind=kind))
    def same(x, n):
        return x

    rows = pa.array(np.repeat(np.arange(30, dtype="float32"), 2))
    inner = pa.FixedSizeListArray.from_arrays(rows, 1)
    numbers = pa.array([None if at % 7 == 3 else 1.0 for at in range(30)], pa.float32())
    for matrices, start in (
        (pa.FixedSizeListArray.from_arrays(inner, 2), 9),
        (pa.FixedSizeListArray.from_arrays(inner.slice(8), 2), 0),
        (pa.FixedSizeListArray.from_arrays(inner.slice(8), 2), 3),
    ):
        given = matrices.slice(start)
        own = numbers.slice(0, len(given))
        found = same(given, own)
        pairs = zip(given.to_pylist(), own, strict=True)
        wanted = [row if number.is_valid else None for row, number in pairs]
        storage = getattr(found, "storage", found).to_pylist()
        assert [row and np.reshape(row, (2, 1)).tolist() for row in storage] == wanted


@pytest.mark.parametrize(
    ("column", "words", "way_out"),
    [
        (pa.array([1], pa.timestamp("s")), 'x.cast("int64")', lambda x: x.cast("int64")),
        (pa.array([1], pa.date32()), 'x.cast("int32")', lambda x: x.cast("int32")),
        (pa.array([1], pa.decimal64(5, 2)), 'x.cast("float64")', lambda x: x.cast("float64")),
        (
            pa.chunked_array([pa.array(["a"]).dictionary_encode()]),
            "pyarrow.array(x).indices",
            lambda x: pa.array(x).indices,
        ),
        (
            pa.array([1]).dictionary_encode(),
            "or its values, pyarrow.array(x).dictionary_decode()",
            lambda x: pa.array(x).dictionary_decode(),
        ),
        (
            np.ones(1, ">f4"),
            'x.astype(x.dtype.newbyteorder("="))',
            lambda x: x.astype(x.dtype.newbyteorder("=")),
        ),
    ],
)
def test_columns_that_are_no_numbers_are_made_numbers_before_the_call(column, words, way_out):
    """A function has not the keywords of to_tensor."""

    @tensor_udf([Input("n"), Input("x", "int64")], Output("int64"))
    def same(n, x):
        return x

    n = pa.array([1], pa.float32())
    with pytest.raises(TypeError, match=re.escape(words)) as refused:
        same(n, column)
    assert str(refused.value).startswith('same: "x"')
    assert "physical" not in str(refused.value)
    assert len(same(n, way_out(column))) == 1
    of_several = tensor_udf([Input("m", "int64", columns=["n", "x"])], Output("int64"))
    several = of_several(lambda m: m[:, 1].copy())
    with pytest.raises(TypeError, match=re.escape(words)):
        several(n, column)
    assert len(several(n, way_out(column))) == 1


def test_what_is_no_output_and_no_state_is_refused_when_it_is_said():
    with pytest.raises(TypeError, match=r'output must be an Output, as Output\("float32"\) is one'):
        tensor_udf([X], "float32")
    with pytest.raises(TypeError, match="state must be a function that makes the first argument"):
        tensor_udf([X], state=5)


def test_a_name_of_a_function_in_duckdb_is_refused():
    """DuckDB would call its own for the types that it takes, such as lists for `len`."""
    connection = duckdb.connect()
    connection.execute("CREATE MACRO mine(x) AS x + 1")
    for name in "log", "MEAN", "fill", "len", "list_sum", "coalesce", "mine":
        for row in Input("x"), Input("x", shape=(3,)):
            with pytest.raises(ValueError, match=f"{name}: DuckDB has a function of that name"):
                tensor_udf([row], name=name)(lambda x: x).register(connection)
    tensor_udf([Input("x")], name="own_log")(lambda x: x).register(connection)
    assert connection.sql("SELECT own_log(2)").fetchall() == [(2.0,)]


def test_a_name_that_sql_reads_as_a_function_of_datafusion_is_refused():
    """Names that are not quoted are those in lower case."""
    context = datafusion.SessionContext()
    for name in "Log", "SIN", "Abs":
        with pytest.raises(ValueError, match=f"{name}: SQL calls DataFusion's own {name.lower()}"):
            tensor_udf([Input("x")], name=name)(lambda x: x).register(context)
    for name in "log", "Own_log":  # in place of the built-in one, and in quotes
        tensor_udf([Input("x")], name=name)(lambda x: x * 2).register(context)
        sql = f'SELECT "{name}"(CAST(2 AS FLOAT)) AS y'
        assert context.sql(sql).to_pydict() == {"y": [4.0]}
