"""The errors for arguments of other types: each has a hint, and the hint works."""

import array
import io
import pathlib
import re
import sqlite3

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset
import pyarrow.ipc
import pyarrow.parquet
import pytest
import torch
from arrow_dlpack import (
    Array,
    Cast,
    Categories,
    Dense,
    Loader,
    Pad,
    Tensor,
    asdlpack,
    explain,
    from_dlpack,
    from_ragged,
    iter_batches,
    ragged,
    record_batch,
    to_tensor,
    to_tensor_dict,
)
from arrow_dlpack.torch import BatchDataset

TABLE = pa.table({"a": [1, 2, 3]})
FRAME = pd.DataFrame({"a": [1, 1, 2], "b": [1.0, 2.0, 3.0]})


def connected():
    connection = duckdb.connect()
    connection.execute("select 1 as a")
    return connection


def stream():
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, TABLE.schema) as writer:
        writer.write_table(TABLE)
    return sink.getvalue()


class Broken:
    def __getattr__(self, name):
        raise ZeroDivisionError(name)


class Iterable:
    def __iter__(self):
        return iter([1, 2])


# Objects, what is said, and what it comes to (None where there is nothing to try).
ARROW = {
    "a path": ("a.parquet", r"pyarrow\.dataset\.dataset\(x\)", None),
    "a Path": (pathlib.Path("a.parquet"), r"pyarrow\.dataset\.dataset\(x\)", None),
    "paths": (["a.parquet"], r"pyarrow\.dataset\.dataset\(x\)", None),
    "bytes": (b"a", r"asdlpack\(x\)", lambda x: asdlpack(x).to_arrow()),
    "Arrow IPC": (stream(), r"pyarrow\.ipc\.open_stream", pa.ipc.open_stream),
    "a list": ([1, 2], r"pyarrow\.array\(x\)", pa.array),
    "nothing in a list": ([], r"pyarrow\.array\(x, type\)", lambda x: pa.array(x, pa.int8())),
    "a tuple": ((1, 2), r"pyarrow\.array\(x\)", pa.array),
    "a range": (range(3), r"pyarrow\.array\(x\)", pa.array),
    "a set": ({1, 2}, r"pyarrow\.array\(list\(x\)\)", lambda x: pa.array(list(x))),
    "a generator": ((x for x in [1]), r"array\(list\(x\)\)", lambda x: pa.array(list(x))),
    "an iterable": (Iterable(), r"pyarrow\.array\(x\)", pa.array),
    "an iterable of batches": (dict(enumerate(TABLE.to_batches())).values(),
                               r"pyarrow\.Table\.from_batches\(list\(x\)\)",
                               lambda x: pa.Table.from_batches(list(x))),
    "batches": (iter(TABLE.to_batches()), r"RecordBatchReader\.from_batches\(schema, x\)",
                lambda x: pa.RecordBatchReader.from_batches(TABLE.schema, x)),
    "tables": ([TABLE, TABLE], r"pyarrow\.concat_tables\(x\)", pa.concat_tables),
    "record batches": (TABLE.to_batches(), r"pyarrow\.Table\.from_batches\(x\)",
                       pa.Table.from_batches),
    "arrays": ([pa.array([1])], r"pyarrow\.chunked_array\(x\)", pa.chunked_array),
    "frames": ([FRAME, FRAME], r"pandas\.concat\(x\)", pd.concat),
    "polars' frames": ([pl.from_arrow(TABLE)] * 2, r"polars\.concat\(x\)", pl.concat),
    "our arrays": ([Array(pa.array([1]))], r"concat_arrays\(map\(pyarrow\.array, x\)\)",
                   lambda x: pa.concat_arrays(map(pa.array, x))),
    "rows": ([{"a": 1}], r"pyarrow\.table\(pyarrow\.array\(x\)\)", lambda x: pa.table(pa.array(x))),
    "a dict": ({"a": [1]}, r"pyarrow\.table\(x\)", pa.table),
    "a dict by numbers": (
        {0: [1]}, r"table\(\{str\(name\): column for name, column in x.items\(\)\}\)",
        lambda x: pa.table({str(name): column for name, column in x.items()})),
    "a dict of large numbers by numbers": (
        {0: [1, 2**70], 1: [1, 2]},
        r"table\(\{\*\*\{str\(name\): .*\}, '0': pyarrow\.array\(numpy\.asarray\(x\[0\], ",
        lambda x: pa.table({
            **{str(name): column for name, column in x.items()},
            "0": pa.array(np.asarray(x[0], "float64"))})),
    "a dict of texts by numbers": (
        {0: np.array(["a"]), 1: np.ones(1)},
        r"record_batch\(\{\*\*\{str\(name\): .*\}, '0': pyarrow\.array\(x\[0\]\)\}\)",
        lambda x: to_tensor_dict(
            record_batch({
                **{str(name): column for name, column in x.items()}, "0": pa.array(x[0])}),
            columns=["1"])["1"].to_arrow()),
    "a dict of tensors": ({"a": np.ones(2)}, r"record_batch\(x\)", record_batch),
    "tensors": ([np.ones(2)], r"numpy\.stack\(x\)", lambda x: from_dlpack(np.stack(x))),
    "NumPy": (np.ones(2), r"asdlpack\(x\) and Tensor\.from_dlpack\(x\) make a Tensor of it, "
              r"from_dlpack\(x\) an Array", lambda x: asdlpack(x).to_arrow()),
    "PyTorch": (torch.ones(2), "from_dlpack", from_dlpack),
    "a memoryview": (memoryview(b"ab"), r"asdlpack\(x\)", lambda x: asdlpack(x).to_arrow()),
    "array.array": (array.array("f", [1]), r"asdlpack\(x\)", lambda x: asdlpack(x).to_arrow()),
    "a pyarrow buffer": (pa.py_buffer(b"a"), r"asdlpack\(x\)", lambda x: asdlpack(x).to_arrow()),
    "Arrow IPC in a buffer": (pa.py_buffer(stream()), r"pyarrow\.ipc\.open_stream\(x\) reads it",
                              pa.ipc.open_stream),
    "Arrow IPC in a memoryview": (memoryview(stream()),
                                  r"pyarrow\.ipc\.open_stream\(x\) reads it", pa.ipc.open_stream),
    "a number": (1.5, r"pyarrow\.array\(\[x\]\)", lambda x: pa.array([x])),
    "a pyarrow value": (pa.scalar(1), r"pyarrow\.array\(\[x\]\)", lambda x: pa.array([x])),
    "None": (None, "return missing", None),
    "a dataset": (pyarrow.dataset.dataset(TABLE), r"x\.to_table\(\)",
                  lambda x: x.to_table()),
    "a scanner": (pyarrow.dataset.dataset(TABLE).scanner(), r"x\.to_table\(\)",
                  lambda x: x.to_table()),
    "a lazy frame": (pl.from_arrow(TABLE).lazy(), r"x\.collect\(\)", lambda x: x.collect()),
    "polars' groups": (pl.from_arrow(TABLE).group_by("a"), r"x\.agg\(", lambda x: x.agg()),
    "pandas' groups": (FRAME.groupby("a"), r"x\.agg\(", lambda x: x.agg("sum")),
    "a pandas index": (FRAME.index, r"x\.to_frame\(\)", lambda x: x.to_frame()),
    "a pandas index of levels": (pd.MultiIndex.from_product([[1], [2, 3]]), r"x\.to_frame\(\)",
                                 lambda x: x.to_frame()),
    "a pandas index of periods": (pd.period_range("2020-01", periods=2, freq="M"),
                                  r"pyarrow\.array\(x\)", lambda x: pa.array(x).storage),
    "a pandas array of intervals": (pd.interval_range(0, 2).array, r"pyarrow\.array\(x\)",
                                    lambda x: pa.array(x).storage.field("left")),
    "a pandas array": (pd.array([1, 2]), r"pyarrow\.array\(x\)", pa.array),
    "a duckdb connection": (connected(), r"x\.to_arrow_table\(\)", lambda x: x.to_arrow_table()),
    "a sqlite3 connection": (sqlite3.connect(":memory:"), r"pandas\.read_sql\(query, x\)",
                             lambda x: pd.read_sql("select 1 as a", x)),
    "a cursor": (sqlite3.connect(":memory:").execute("select 1"),
                 r"read_sql\(query, connection\)", None),
    "a file": (io.StringIO("a\n1\n"), r"pyarrow\.csv\.read_csv\(x\)", None),
    "a file of bytes": (io.BytesIO(b"a\n1\n"), r"pyarrow\.csv\.read_csv\(x\)",
                        pyarrow.csv.read_csv),
    "anything": (object(), "got object$", None),
    "a schema": (TABLE.schema, "got Schema$", None),
    "what is broken": (Broken(), None, None),
}  # fmt: skip


#: Sources of batches.
SOURCES = {
    "a path", "a Path", "paths", "nothing in a list", "a generator", "batches", "tables",
    "record batches", "arrays", "frames", "polars' frames", "our arrays", "a lazy frame",
    "a duckdb connection",
}  # fmt: skip


def refusal(convert, source):
    with pytest.raises(TypeError) as refused:
        convert(source)
    return str(refused.value)


def of_its_library(name):
    """Names begin with their library's, if they are of one, such as "polars' frames"."""
    return pytest.param(name, marks=pytest.mark.library(re.match(r"\w*", name)[0]))


@pytest.mark.filterwarnings("ignore:Arrow output on a DB-API result")
@pytest.mark.parametrize("name", [of_its_library(name) for name in ARROW])
def test_errors_for_other_objects_say_how_to_make_arrow_data(name):
    source, words, way_out = ARROW[name]
    if words is None:
        for convert in (Array, to_tensor, ragged, explain, asdlpack):
            with pytest.raises(ZeroDivisionError):
                convert(source)
        return
    pattern = re.compile(words)
    for convert in (Array, to_tensor, to_tensor_dict, ragged):
        message = refusal(convert, source)
        assert message.startswith("expected an Arrow array or table, ")
        assert pattern.search(message), message
        assert f"got {type(source).__name__}" in message
    if not hasattr(source, "__dlpack__"):
        assert pattern.search(refusal(explain, source))
        if (
            not hasattr(source, "to_reader")
            and not hasattr(source, "scanner")
            and name not in SOURCES
        ):
            # A loop takes tables alone.
            message = refusal(iter_batches, source)
            assert pattern.search(message) or 'pyarrow.table({"x": ' in message
    if way_out is not None:
        assert to_tensor(way_out(source)).size >= 0


def test_a_row_by_numbers_is_one_by_texts():
    x = {0: 1.5, 1: 2}
    assert "from_pylist([{str(name): column for name, column in x.items()}])" in refusal(Array, x)
    row = {str(name): column for name, column in x.items()}
    assert to_tensor(pa.Table.from_pylist([row]), dtype="float64").tolist() == [[1.5, 2.0]]


class Batches:
    def __iter__(self):
        return iter(TABLE.to_batches())


def test_an_iterable_of_batches_is_a_list_or_an_iterator_of_them():
    for source in Batches(), dict(enumerate(TABLE.to_batches())).values():
        words = refusal(Loader, source)
        assert "list(x) is a list of its batches, and iter(x) goes through them once" in words
        for made in list(source), iter(source):
            (batch,) = Loader(made)
            assert batch["a"].tolist() == [1, 2, 3]


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("x", [
    np.zeros(2, [("a", "f4"), ("b", "i8")]),
    np.zeros(2, [("a", "f4", (2, 3)), ("b", "i8")]),
    np.zeros(2, [("a", "f4", 2), ("b", "U3")]),
    np.zeros((2, 3), [("a", "f4"), ("b", "i8")]),
])  # fmt: skip
def test_records_are_a_table_of_their_fields(x, order):
    """Of any byte order, with fields of a shape, at steps that are no multiple of their size."""
    x = x.astype(x.dtype.newbyteorder(order))
    words = refusal(Array, x)
    if order == ">":
        assert 'x.astype(x.dtype.newbyteorder("=")) has the machine\'s byte order, and of' in words
        x = x.astype(x.dtype.newbyteorder("="))
    if x.ndim == 1 and x["a"].ndim == 1:
        assert "pyarrow.table({name: x[name] for name in x.dtype.names}) makes a table" in words
        table = pa.table({name: x[name] for name in x.dtype.names})
    else:
        made = (
            "record_batch({name: pyarrow.array(x[name]) if x[name].ndim == 1 else "
            "numpy.ascontiguousarray(x[name]) for name in x.dtype.names}) makes a table"
        )
        assert made in words
        table = record_batch(
            {
                name: pa.array(x[name]) if x[name].ndim == 1 else np.ascontiguousarray(x[name])
                for name in x.dtype.names
            }
        )
    assert to_tensor_dict(table, columns=["a"])["a"].shape == x["a"].shape


@pytest.mark.parametrize("order", "<>")
def test_fields_of_records_in_records_are_taken_one_by_one(order):
    x = np.zeros(2, np.dtype([("a", [("b", "f4")]), ("c", "i8")]).newbyteorder(order))
    words = refusal(Array, x)
    assert "x['a'] has nested records: take the fields of all one by one, as x['a']['b']" in words
    if order == ">":
        assert 'x.astype(x.dtype.newbyteorder("=")) has the machine\'s byte order, and of' in words
        x = x.astype(x.dtype.newbyteorder("="))
    assert pa.table({"b": x["a"]["b"], "c": x["c"]})["b"].to_pylist() == [0, 0]


def test_a_parquet_file_is_read_or_gone_through(tmp_path):
    pa.parquet.write_table(TABLE, tmp_path / "a.parquet")
    source = pa.parquet.ParquetFile(tmp_path / "a.parquet")
    assert "x.read()" in refusal(to_tensor, source)
    assert to_tensor(source.read()).shape == (3, 1)


TENSORS = {
    "a list": ([1, 2], r"numpy.asarray(x)"),
    "a pandas index": (FRAME.index, r"numpy.asarray(x)"),
    "bytes": (b"ab", "asdlpack(x)"),
    "NumPy's number": (np.float32(1), "asdlpack(x)"),
    "Arrow": (TABLE, "it is Arrow data: use to_tensor"),
    "a path": ("a.npy", "numpy.load(x)"),
    "None": (None, "return missing"),
    "a lazy frame": (pl.from_arrow(TABLE).lazy(), "x.collect()"),
}


@pytest.mark.parametrize("name", TENSORS)
def test_errors_for_other_objects_say_how_to_make_a_tensor(name):
    source, words = TENSORS[name]
    for convert in (from_dlpack, Tensor.from_dlpack, Array.from_dlpack):
        message = refusal(convert, source)
        assert message.startswith("expected an object with __dlpack__ or a DLPack capsule, got ")
        assert words in message


@pytest.mark.parametrize(
    "convert", [Array, to_tensor, to_tensor_dict, ragged, explain, iter_batches, asdlpack]
)
def test_errors_for_classes_say_so(convert):
    for frame in (pd.DataFrame, pl.DataFrame, pa.RecordBatch):
        message = refusal(convert, frame)
        assert message.endswith(f"got the class {frame.__name__}: pass an object of it"), message
    for tensor in (from_dlpack, Tensor.from_dlpack, asdlpack):
        assert "got the class ndarray" in refusal(tensor, np.ndarray)


def batches_of(source, **options):
    return list(iter_batches(source, **options))


def torch_batches_of(source, **options):
    return list(BatchDataset(source, **options))


BATCHES = [batches_of, torch_batches_of]


@pytest.mark.parametrize("convert", [to_tensor, to_tensor_dict, explain, *BATCHES])
def test_structs_in_tables_are_flattened(convert):
    table = pa.table({"s": [{"a": 1}]})
    message = refusal(convert, table)
    assert message.endswith("flatten it first, as pyarrow's table.flatten() and polars' unnest do")
    convert(table.flatten())
    convert(pl.from_arrow(table).unnest("s"))


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([[[1], [2]]], "the rows' items are lists themselves: flatten one level first"),
        ([["a"]], "as items of lists such values have none: flatten the lists first"),
        ([[b"a"]], "as items of lists such values have none: flatten the lists first"),
    ],
)
def test_lists_of_what_is_ragged_itself_are_flattened(rows, words):
    lists = pa.array(rows)
    for convert in (ragged, lambda lists: explain(lists, ragged=True), lambda x: Array(x).row(0)):
        message = refusal(convert, lists)
        assert words in message
        assert "pyarrow.compute.list_flatten" in message
        assert "use ragged, " not in message
    assert ragged(pc.list_flatten(lists)).values.size > 0


def test_lists_of_structs_are_flattened():
    lists = pa.array([[{"a": 1}, {"a": 2}]])
    assert "items are structs: flatten one level first" in refusal(ragged, lists)
    assert to_tensor_dict(pc.list_flatten(lists))["a"].tolist() == [1, 2]


def test_lists_of_maps_are_flattened():
    lists = pa.array([[[("a", 1)]], []], pa.list_(pa.map_(pa.string(), pa.int8())))

    def loop(x):
        return list(Loader(pa.table({"x": x})))

    of_one = pa.list_(lists.type.value_type, 1)
    for call in ragged, lambda x: to_tensor(x, pad=0), loop, lambda x: ragged(x.cast(of_one)):
        words = refusal(call, lists[:1])
        assert "flatten the lists first, as pyarrow.compute.list_flatten does" in words
        assert ("AsArrow()" in words) == (call is loop)
    maps = pc.list_flatten(lists)
    assert "keys and items of pyarrow.concat_arrays([x])" in refusal(ragged, maps)
    assert to_tensor(pa.concat_arrays([maps]).items).tolist() == [1]


@pytest.mark.parametrize("nulls", ["error", "mask"])
def test_a_mask_of_rows_is_nothing_for_nulls_in_them(nulls):
    lists = pa.array([[1, None], None])
    options = {} if nulls == "error" else {"nulls": nulls}
    rows = lists if nulls == "mask" else lists[:1]
    message = refusal(lambda rows: ragged(rows, **options), rows)
    assert message.startswith("the rows hold 1 null in 2 values of Int64, ")
    assert message.endswith('a fill value or "nan" as nulls= ("mask" is of the rows)')
    assert ragged(rows, nulls=0).values.tolist() == [1, 0]
    assert np.isnan(ragged(rows, nulls="nan").values.tolist()[1])
    # Of rows it is what the words say.
    assert refusal(ragged, pa.array([[1], None])).endswith(
        'pass nulls= (a fill value, "nan" or "mask")'
    )


COLUMNS = {
    "nulls": (pa.array([1, None]), 'pass nulls= (a fill value, "nan" or "mask")'),
    "categories": (pa.array(["a"]).dictionary_encode(), "pass physical=True for its int32 values"),
    "times": (pa.array([1], pa.timestamp("s")), "pass physical=True for its int64 values"),
    "UUIDs": (pa.array([b"a" * 16], pa.uuid()), "pass physical=True for its storage"),
}


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("convert", [to_tensor, to_tensor_dict, explain, *BATCHES])
def test_who_takes_a_keyword_says_nothing_but_it(convert, name):
    column, words = COLUMNS[name]
    assert refusal(convert, pa.table({"x": column})).endswith(words)
    if convert not in BATCHES[1:] and convert is not to_tensor_dict:
        whole = refusal(
            lambda x: convert(x, format="matrix") if convert in BATCHES else convert(x), column
        )
        assert whole.endswith(words)
    # NumPy takes none of them, and the error names libraries that do.
    assert "to_tensor" in refusal(np.from_dlpack, Array(column))


@pytest.mark.parametrize("convert", BATCHES)
@pytest.mark.parametrize(
    ("column", "words"),
    [
        (
            pa.array(["a", "b"]),
            "make codes of it with Categories([...]), or leave it out with columns=, or hand it on "
            "as Arrow data with AsArrow()",
        ),
        (pa.array([b"a", b"b"]), "leave it out with columns=, or hand it on as Arrow data"),
    ],
)
def test_batches_have_no_tensor_for_texts(convert, column, words):
    table = pa.table({"x": [1, 2], "y": column})
    message = refusal(convert, table)
    assert words in message
    assert "ragged" not in message
    convert(table, columns=["x"])
    if "Categories" in words:
        convert(table, columns={"y": Categories(["a", "b"])})
        encoded = table.set_column(1, "y", table["y"].dictionary_encode())
        assert "Categories([...])" in refusal(convert, encoded)
        convert(encoded, physical=True)


def test_lists_of_one_length_in_a_table_may_be_cast():
    column = pa.array([[1.0, 2.0], [3.0, 4.0]])
    message = refusal(to_tensor, pa.table({"x": column}))
    assert "cast it to a fixed-size list or take it as Dense() in Loader" in message
    fixed = column.cast(pa.list_(pa.float64(), 2))
    assert to_tensor(pa.table({"x": fixed})).shape == (2, 2)
    assert next(iter(Loader(pa.table({"x": column}), columns={"x": Dense()})))["x"].shape == (2, 2)


@pytest.mark.parametrize("convert", [to_tensor, to_tensor_dict, explain])
@pytest.mark.parametrize("column", [pa.array(["a", "bc"]), pa.array([[1], [2, 3]])])
def test_in_tables_ragged_columns_are_left_out_or_passed_alone(convert, column):
    table = pa.table({"x": [1, 2], "y": column})
    message = refusal(convert, table)
    assert "leave it out with columns=, " in message
    assert "pass this column alone to ragged" in message
    assert "use ragged" not in message  # which takes no table
    convert(table, columns=["x"])
    assert ragged(table["y"]).values.size == 3


def test_lists_that_are_not_dense_lose_the_wish_or_are_padded():
    table = pa.table({"x": [[1], [2, 3]]})
    for convert in BATCHES:
        message = refusal(lambda x, to=convert: to(x, columns={"x": Dense()}), table)
        assert "leave out Dense(), which keeps lists Ragged" in message
        assert len(convert(table, columns={"x": None})) == 1
        assert len(convert(table, columns={"x": Pad(0)})) == 1


OWN_NULLS = {
    "a label": ({"columns": ["y"], "label": "x"}, {"label": {"x": Cast("int64", nulls=-1)}}),
    "a label's codes": (
        {"columns": ["y"], "label": {"x": Categories([1])}},
        {"label": {"x": Categories([1], nulls=-1)}},
    ),
    "codes": ({"columns": {"x": Categories([1])}}, {"columns": {"x": Categories([1], nulls=-1)}}),
    "a dtype": ({"columns": {"x": Cast("int64")}}, {"columns": {"x": Cast("int64", nulls=-1)}}),
}


@pytest.mark.parametrize("prefetch", [0, 2])
@pytest.mark.parametrize("name", OWN_NULLS)
def test_nulls_that_no_nulls_reach_have_a_way_out_of_their_own(name, prefetch):
    table = pa.table({"x": [1, None], "y": [1, 2]})
    wrong, right = OWN_NULLS[name]
    options = {"nulls": "nan", "prefetch": prefetch}
    for convert in (torch_batches_of, lambda x, **options: list(Loader(x, **options))):
        message = refusal(lambda x, to=convert: to(x, **options, **wrong), table)
        assert message.startswith('column "x": ')
        assert "drop them with filter=, or " in message
        assert message.endswith("by nulls= of Cast or Categories for this column")
        assert len(convert(table, **options, **(wrong | right))) == 1
        assert len(convert(table, **options, **wrong, filter=pc.field("x").is_valid())) == 1


def test_of_a_null_row_it_is_said_which():
    array = Array(pa.array([1, None, 3]))
    for rows in (list, lambda array: array.row(1), lambda array: array.row(-2)):
        message = refusal(rows, array)
        assert message.startswith("row 1 has 1 null, ")
        assert "call row(1, nulls=...) with a fill value" in message
    assert array.row(1, nulls=0).tolist() == 0
    for column in (pa.array([[1], None]), pa.array(["a", None])):
        message = refusal(list, Array(column))
        assert message == "row 1 has 1 null where its shape would be: leave it out"


def test_columns_of_a_record_batch_are_named():
    with pytest.raises(TypeError, match=r'^column "b": expected an object with __dlpack__ .*numpy'):
        record_batch({"a": np.ones(2), "b": [1, 2]})
    with pytest.raises(TypeError, match=r'^column "a": a column is a tensor or a pair'):
        record_batch({"a": (np.ones(2),)})
    with pytest.raises(BufferError, match=r'^column "a": DLPack only supports'):
        record_batch({"a": np.ones(2, "M8[s]")})
    with pytest.raises(TypeError, match=r'^column "a": mask: expected'):
        record_batch({"a": (np.ones(2), [True, False])})


@pytest.mark.parametrize("take", [from_dlpack, lambda x: record_batch({"a": x})])
def test_what_numpy_alone_has_gets_a_note(take):
    days, texts = np.array(["2020-01-01"], "M8[D]"), np.array(["a"])
    for values in (days, texts):
        with pytest.raises(BufferError, match="DLPack only supports") as refused:
            take(values)
        (note,) = refused.value.__notes__
        assert note.startswith(f"pyarrow.array(x) makes Arrow data of {values.dtype}")
        assert ('x.view("int64")' in note) == (values is days)
        assert len(pa.array(values)) == 1
    assert from_dlpack(days.view("int64")).type == "Int64"


class Failing:
    def __dlpack__(self, **options):
        raise LookupError("no such tensor")


def test_what_a_producer_raises_stays_as_it_is():
    with pytest.raises(LookupError, match="^'no such tensor'$|^no such tensor$"):
        record_batch({"a": Failing()})


MASKS = [
    pa.array([True, False]),
    pa.chunked_array([[True], [False]]),
    pl.Series([True, False]),
    Array(pa.array([True, False])),
    to_tensor(pa.array([True, False])),
    np.array([True, False]),
]


@pytest.mark.parametrize("mask", MASKS, ids=lambda mask: type(mask).__module__)
def test_a_mask_may_be_arrows_booleans(mask):
    assert pa.array(from_dlpack(np.array([1, 2]), mask=mask)).to_pylist() == [1, None]
    assert explain(np.array([1, 2]), mask=mask).bytes_copied == 1
    made = record_batch({"x": (np.array([1, 2]), mask)})
    assert pa.record_batch(made).to_pydict() == {"x": [1, None]}
    made = from_ragged(np.array([1, 2]), np.array([0, 1, 2]), mask=mask)
    assert pa.array(made).to_pylist() == [[1], None]


def test_what_is_no_mask_is_said_to_be_none():
    with pytest.raises(TypeError, match=r"^mask: expected .*got list: numpy\.asarray"):
        from_dlpack(np.ones(2), mask=[True, False])
    with pytest.raises(TypeError, match="^mask: Boolean array has 1 null"):
        from_dlpack(np.ones(2), mask=pa.array([True, None]))


def test_one_byte_is_one_byte():
    with pytest.raises(BufferError, match=": 1 byte would have to be copied$"):
        to_tensor(pa.array([True]), copy=False)
    with pytest.raises(BufferError, match=": 2 bytes would have to be copied$"):
        to_tensor(pa.array([True, False]), copy=False)
