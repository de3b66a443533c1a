"""What users of pandas do before they train: the index that comes of it is no feature."""

import datetime
import decimal
import itertools
import json
import re
import uuid
from collections import deque

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
import system
from arrow_dlpack import (
    Array,
    AsArrow,
    Cast,
    Categories,
    Encoder,
    Loader,
    Mix,
    Pad,
    UnsupportedError,
    _core,
    explain,
    iter_batches,
    ragged,
    record_batch,
    to_tensor,
    to_tensor_dict,
)
from arrow_dlpack.torch import BatchDataset

FRAME = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0, None], "b": [5.0, 6.0, 7.0, 8.0, 9.0]})
DAYS = pd.date_range("2026-01-01", periods=5, name="day")

# What makes an index of more than numbers at equal steps.
FRAMES = {
    "as it is": FRAME.fillna(0),
    "filtered": FRAME[FRAME.a != 2].fillna(0),
    "filtered evenly": FRAME[FRAME.a.isin([1, 3])],
    "dropna": FRAME.dropna(),
    "sample": FRAME.fillna(0).sample(frac=1, random_state=1),
    "sorted": FRAME.fillna(0).sort_values("b", ascending=False),
    "groupby": FRAME.assign(key=[2, 1, 1, 7, 7]).groupby("key").sum(),
    "two keys": FRAME.assign(k=[2, 1, 1, 7, 7], l=1).groupby(["k", "l"]).sum(),
    "texts": FRAME.fillna(0).set_index(pd.Index(list("vwxyz"))),
    "days": FRAME.fillna(0).set_index(DAYS),
    "a column's values": FRAME.dropna().set_index("b", drop=False).rename_axis("c"),
    "numbers as names": FRAME.dropna().set_index(pd.Index([3, 1, 4, 1], name=5)),
    "described": FRAME.describe(),
    "categories": FRAME.fillna(0).set_index(pd.CategoricalIndex(list("aabbc"))),
    "concatenated": pd.concat([FRAME.dropna(), FRAME.dropna()]),
}


def parquet(frame, folder):
    frame.to_parquet(folder / "part.parquet")
    return ds.dataset(folder)


# The ways of a frame to here.
WAYS = {
    "itself": lambda frame, folder: frame,
    "pa.Table.from_pandas": lambda frame, folder: pa.Table.from_pandas(frame),
    "with an index by all means": lambda frame, _: pa.Table.from_pandas(frame, preserve_index=True),
    "record batch": lambda frame, folder: pa.RecordBatch.from_pandas(frame),
    "Array": lambda frame, folder: Array(frame),
    "Parquet": lambda frame, folder: parquet(frame, folder).to_table(),
}


@pytest.mark.filterwarnings("ignore:The DataFrame has non-str index name")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", FRAMES)
def test_an_index_is_no_feature(name, way, tmp_path):
    frame = FRAMES[name]
    source = WAYS[way](frame, tmp_path)
    found = np.from_dlpack(to_tensor(source))
    np.testing.assert_array_equal(found, frame[["a", "b"]].to_numpy())
    assert list(to_tensor_dict(source)) == ["a", "b"]
    assert explain(source) == explain(source, columns=["a", "b"])
    for form, expected in (("matrix", found), ("dict", None)):
        (batch,) = iter_batches(source, batch_size=99, format=form)
        if expected is None:
            assert list(batch) == ["a", "b"]
        else:
            np.testing.assert_array_equal(np.from_dlpack(batch), expected)


@pytest.mark.filterwarnings("ignore:The DataFrame has non-str index name")
@pytest.mark.parametrize("name", FRAMES)
def test_a_dataset_that_pandas_wrote_is_read_without_its_index(name, tmp_path):
    frame = FRAMES[name]
    dataset = parquet(frame, tmp_path)
    expected = frame[["a", "b"]].to_numpy()
    for source in (dataset, dataset.scanner(), dataset.scanner().to_reader()):
        (batch,) = iter_batches(source, batch_size=99, format="matrix")
        np.testing.assert_array_equal(np.from_dlpack(batch), expected)
    (batch,) = BatchDataset(dataset, batch_size=99, format="matrix")
    np.testing.assert_array_equal(batch.numpy(), expected)


def test_an_index_that_is_asked_for_is_a_column(tmp_path):
    frame = FRAME.set_index("b").dropna()
    dataset = parquet(frame, tmp_path)
    expected = frame.reset_index()[["b", "a"]].to_numpy()
    for source in (frame, dataset.to_table(), Array(frame)):
        np.testing.assert_array_equal(
            np.from_dlpack(to_tensor(source, columns=["b", "a"])), expected
        )
        assert list(to_tensor_dict(source, columns=["b"])) == ["b"]
    for source in (frame, dataset, dataset.scanner()):
        (batch,) = iter_batches(source, columns=["b", "a"], format="matrix")
        np.testing.assert_array_equal(np.from_dlpack(batch), expected)


def test_an_index_can_be_the_label(tmp_path):
    frame = FRAME.dropna().set_index("b")
    for source in (frame, parquet(frame, tmp_path), pa.Table.from_pandas(frame)):
        ((features, label),) = iter_batches(source, label="b")
        assert list(features) == ["a"]
        np.testing.assert_array_equal(np.from_dlpack(label), frame.index)
    (features, label) = next(iter(BatchDataset(parquet(frame, tmp_path), label="b")))
    assert list(features) == ["a"]
    assert label.tolist() == frame.index.tolist()


def test_an_index_of_times_is_not_in_the_way():
    frame = FRAME.dropna().set_index(DAYS[:4])
    assert to_tensor(frame).shape == (4, 2)
    assert to_tensor(frame, columns=["day"], physical=True).dtype == "int64"


def test_a_frame_of_an_index_alone_has_no_features():
    frame = FRAME.dropna().set_index(["a", "b"])
    with pytest.raises(BufferError, match="without columns.*pandas.*columns="):
        to_tensor(frame)
    assert to_tensor_dict(frame) == {}
    assert to_tensor(frame, columns=["a", "b"]).shape == (4, 2)


def test_what_pyarrow_makes_of_a_frame_keeps_its_index():
    frame = FRAME.dropna()[["b"]].set_index(pd.Index([3, 1, 4, 1], name="x"))
    table = pa.Table.from_pandas(frame)
    assert to_tensor(table.rename_columns(["b", "y"])).shape == (4, 2)  # it has another name now
    assert to_tensor(table.select(["b"])).shape == (4, 1)
    assert to_tensor(table.filter(pa.array([True, False, True, False]))).shape == (2, 1)
    assert to_tensor(pa.concat_tables([table, table])).shape == (8, 1)
    assert to_tensor(table.replace_schema_metadata(None)).shape == (4, 2)  # without metadata
    assert pa.table(Array(table)).column_names == ["b", "x"]  # an Array keeps what it was given
    assert to_tensor(duckdb.sql("select * from frame")).shape == (4, 1)
    assert to_tensor(pl.from_pandas(frame)).shape == (4, 1)


NOT_PANDAS = [
    b"",
    b"null",
    b"[]",
    b"{",
    b'{"index_columns": 1}',
    b'{"index_columns": "a"}',
    b'{"index_columns": {"a": "a"}}',
    b'{"index_columns": [["a"], null, 1, {"name": "a"}, "gone"]}',
    b'{"index_columns": ["a"]',
    b'{"index_columns": ' + b"[" * 100_000,
    b'{"index_columns": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    b'{"index_columns": ' + json.dumps(["x"] * 500_000).encode() + b"}",
    json.dumps({"x" * 4_000_000: ["a"]}).encode(),
]


@pytest.mark.parametrize("metadata", NOT_PANDAS, ids=range(len(NOT_PANDAS)))
def test_metadata_that_pandas_does_not_write_says_nothing(metadata, tmp_path):
    table = pa.table({"a": [1, 2], "b": [3, 4]}).replace_schema_metadata({b"pandas": metadata})
    assert to_tensor(table).shape == (2, 2)
    (batch,) = iter_batches(table)
    assert list(batch) == ["a", "b"]
    (batch,) = iter_batches(ds.dataset(table))
    assert list(batch) == ["a", "b"]


def test_of_two_columns_of_one_name_the_index_is_the_last():
    metadata = {b"pandas": b'{"index_columns": ["a"]}'}
    schema = pa.schema([("a", pa.int8()), ("b", pa.int8()), ("a", pa.int8())], metadata)
    table = pa.Table.from_arrays(
        [pa.array([value], pa.int8()) for value in (1, 2, 3)], schema=schema
    )
    assert np.from_dlpack(to_tensor(table)).tolist() == [[1, 2]]
    assert list(to_tensor_dict(table)) == ["a", "b"]


@pytest.mark.filterwarnings("ignore:The DataFrame has non-str index name")
def test_levels_of_one_name_are_all_an_index():
    """pandas' 1 and 2 are both "1" in pyarrow's metadata."""
    made = FRAME.assign(k=[2, 1, 1, 7, 7], l=1).groupby(["k", "l"]).sum().rename_axis([1, 2])
    pivoted = pd.DataFrame({1: [1, 1], 2: [1, 2], "x": [3.0, 4]}).pivot_table(index=[1, 2])
    for frame, names in (made, ["a", "b"]), (pivoted, ["x"]):
        assert list(to_tensor_dict(frame)) == names
        assert to_tensor(frame).shape == (len(frame), len(names))
        for source in frame, [frame, frame], iter([frame]):
            assert list(next(iter(iter_batches(source, batch_size=2)))) == names
        # Asked for, they would be ambiguous.
        with pytest.raises(KeyError, match='2 columns are called "1"'):
            to_tensor(frame, columns=["1"])


@pytest.mark.filterwarnings("ignore:The DataFrame has non-str index name")
@pytest.mark.parametrize("form", ["frame", "table", "list", "mix"])
def test_a_level_of_the_name_of_a_column_is_ambiguous(form):
    """pandas' 0 of a level and 0 of a column are both "0"; of texts pyarrow renames the level."""
    frame = pd.DataFrame({0: [1.0, 2], 1: [3.0, 4]}, index=pd.Index([7, 8], name=0))
    table = pa.table(frame)
    assert table.schema.names == ["0", "1", "0"]
    sources = {
        "frame": frame,
        "table": table,
        "list": [frame, frame],
        "mix": Mix([(frame, 1), (frame, 1)]),
    }
    source = sources[form]
    for options in (
        {"columns": ["0"]},
        {"label": "0"},
        {"columns": {"0": Categories([1])}},
        {"columns": ["1"], "filter": pc.field("0") > 1},
        {"filter": pc.field("0") > 1},
    ):
        with pytest.raises(KeyError, match="2 columns (of .* )?are called"):
            list(Loader(source, **options))
    for options in {}, {"filter": pc.field("1") > 3}:
        (batch,) = Loader(source, columns=["1"], batch_size=9, **options)
        assert set(batch["1"].tolist()) == ({4} if options else {3, 4})
    named = Loader(frame.rename_axis("key"), columns=["0"], filter=pc.field("0") > 1)
    assert [batch["0"].tolist() for batch in named] == [[2]]


@pytest.mark.parametrize("ending", ["parquet", "arrow", "feather", "arrows"])
@pytest.mark.filterwarnings("ignore:The DataFrame has non-str index name")
def test_levels_of_one_name_are_an_index_in_files_too(tmp_path, ending):
    table = pa.Table.from_pandas(
        pd.DataFrame({1: [1, 1], 2: [1, 2], "x": [3.0, 4]}).pivot_table(index=[1, 2])
    )
    assert table.schema.names == ["x", "1", "1"]
    path = str(tmp_path / f"a.{ending}")
    if ending == "parquet":
        pq.write_table(table, path)
    else:
        make = pa.ipc.new_stream if ending == "arrows" else pa.ipc.new_file
        with make(path, table.schema) as file:
            file.write_table(table)
    for source in path, [path], Mix([(path, 1)]):
        options = [{}, {"shuffle": 5, "seed": 1}, {"filter": pc.field("x") > 0}]
        for one in options:
            loader = Loader(source, batch_size=1, **one)
            batches = list(loader)
            assert [list(batch) for batch in batches] == [["x"]] * 2
            assert {value for batch in batches for value in batch["x"].tolist()} == {3, 4}
            assert len(loader) == 2
    assert len(list(Loader([path, path], batch_size=1))) == 4
    begun = Loader(path, batch_size=1)
    iterator = iter(begun)
    next(iterator)
    other = Loader(path, batch_size=1)
    other.load_state_dict(begun.state_dict())
    (batch,) = other
    assert batch["x"].tolist() == [4]
    with pytest.raises(KeyError, match='2 columns are called "1"'):
        Loader(path, columns=["1"])


def test_columns_that_nobody_reads_may_have_any_type():
    """pandas converts all columns that it is asked for, and the index."""
    mixed = pd.DataFrame({"n": [1, 2], "note": [1, "a"], "c": [1j, 2j]})
    sums = pd.DataFrame({"y": [1, 2], "s": ["a", "b"], "v": [1.0, 2.0]}).pivot_table(
        index="y", columns="s", values="v", margins=True
    )
    twice = pd.DataFrame([[1, 2, 3]], columns=["x", "x", "y"])
    for frame, name in (mixed, "n"), (sums, "a"), (twice, "y"):
        values = frame[name].to_numpy()
        for made in (
            to_tensor(frame, columns=[name], nulls="nan"),
            to_tensor_dict(frame, columns=[name], nulls="nan")[name],
            next(iter(iter_batches(frame, columns=[name], batch_size=9, nulls="nan")))[name],
        ):
            np.testing.assert_array_equal(np.asarray(made).ravel(), values)
    named = pd.DataFrame({0: [1, 2]}, index=pd.Index([5, 6], name="k"))
    assert to_tensor(named, columns=["k", "0"]).tolist() == [[5, 1], [6, 2]]
    with pytest.raises(KeyError, match='no column "z"'):
        to_tensor(named, columns=["z"])


def test_columns_are_shared_as_without_columns():
    """Not even a frame that is one block is copied to leave some of its columns out."""
    frame = pd.DataFrame(np.arange(20.0).reshape(5, 4), columns=list("abcd"))
    for name, tensor in to_tensor_dict(frame, columns=["a", "b", "d"], copy=False).items():
        assert np.shares_memory(np.asarray(tensor), frame[name].to_numpy())


@pytest.mark.parametrize(
    "other", [pd.Index([1]), pd.array([1]), pd.MultiIndex.from_tuples([(1, 2)]), pd.Series([1.0])]
)
def test_what_is_no_frame_has_no_columns(other):
    for options in {"columns": ["x"]}, {"columns": ["None"]}:
        with pytest.raises(TypeError, match="expected an Arrow array or table|this is one column"):
            to_tensor(other, **options)


@pytest.mark.parametrize("other", [[1j], [object()], [2]])
def test_a_loop_over_some_columns_of_a_frame(other):
    class Sub(pd.DataFrame):
        pass

    for make in pd.DataFrame, Sub:
        frame = make({"x": [1.0]})
        frame["v"] = other
        (batch,) = Loader(frame, columns=["x"])
        assert batch["x"].tolist() == [1]
    with pytest.raises(KeyError, match='"z"'):
        list(Loader(frame, columns=["z"]))


def unread_columns():
    """Frames of which pyarrow converts column n alone."""

    class Sub(pd.DataFrame):
        pass

    yield pd.DataFrame({"n": [1.0, 2.0], "v": [1j, 2j]})
    yield pd.DataFrame({"n": [1.0, 2.0], "v": [1, "a"]})
    yield Sub({"n": [1.0, 2.0], "v": [1, "a"]})
    yield pd.DataFrame({"n": [1.0, 2.0], "v": pd.arrays.SparseArray([0, 1])})
    yield pd.DataFrame({"n": [1.0, 2.0]}, index=pd.Index([1, "All"], name="k"))
    yield pd.DataFrame([[1.0, 5, 6], [2.0, 7, 8]], columns=["n", "v", "v"])


@pytest.mark.parametrize("frame", list(unread_columns()))
def test_a_loop_of_any_kind_leaves_columns_of_frames_alone(frame):
    made = {
        "frame": lambda: frame,
        "list": lambda: [frame, frame],
        "generator": lambda: iter([frame, frame]),
        "Mix": lambda: Mix([(frame, 1), (frame, 1)]),
        "list with another type": lambda: [frame, pa.table({"n": [3]})],
    }
    for name, source in made.items():
        for where in None, pc.field("n") > 1:
            loader = Loader(source(), columns={"n": Cast("float64")}, filter=where)
            found = [number for batch in loader for number in batch["n"].tolist()]
            expected = [2.0] if where is not None else [1.0, 2.0]
            if name != "frame":
                expected += [3.0] if "other" in name else expected
            assert sorted(found) == sorted(expected), (name, where)
    (batch,) = Loader([frame], columns={"n": Categories.scan()})
    assert batch["n"].tolist() == [0, 1]
    loader = Loader([frame, frame], columns=[], label="n", batch_size=1, shuffle=4, seed=0)
    steps = iter(loader)
    next(steps)
    again = Loader([frame, frame], columns=[], label="n", batch_size=1, shuffle=4, seed=0)
    again.load_state_dict(loader.state_dict())
    assert [x[1].tolist() for x in again] == [x[1].tolist() for x in steps]


def test_a_column_of_no_type_is_refused_where_it_is_read():
    frame = pd.DataFrame({"n": [1.0, 2.0], "v": [1, "a"]})
    for source in frame, [frame], iter([frame]), Mix([(frame, 1)]):
        with pytest.raises(pa.ArrowInvalid, match="failed for column v with type object"):
            list(Loader(source, columns=["n", "v"]))


def test_an_index_is_none_of_the_features_whatever_json_pandas_writes(tmp_path):
    frame = pd.DataFrame({"a": [10, 20], "b": [1.0, np.nan], "y": [7.0, 8.0]})
    pivoted = frame.pivot(index="a", columns="b", values="y").fillna(0)
    assert "a" not in to_tensor_dict(pivoted)
    for scale in (float("nan"), float("inf"), -float("inf")):
        named = pd.DataFrame({"x": [1, 2]}, index=pd.Index([5, 6], name="id"))
        named.attrs["scale"] = scale
        assert list(to_tensor_dict(named)) == ["x"]
        named.to_parquet(tmp_path / "x.parquet")
        for source in (named, tmp_path / "x.parquet"):
            assert [list(batch) for batch in Loader(source, batch_size=9)] == [["x"]]


@pytest.mark.parametrize("value", [2**70, -(2**63) - 1, {"a": 2**64}])
@pytest.mark.parametrize("place", ["column", "level", "series"])
def test_too_large_an_integer_is_told_with_its_column(value, place):
    wide = pd.Series([value, value], dtype=object, name="o")
    frame = pd.DataFrame({"x": [1.0, 2.0], "o": wide})
    index = pd.Index(wide, dtype=object)
    source = {"column": frame, "level": frame[["x"]].set_index(index), "series": wide}[place]
    calls = [to_tensor]
    if place != "series":
        calls += [to_tensor_dict]
        calls += [lambda data: list(Loader(data)), lambda data: list(Loader([data, data]))]
        calls += [lambda data: to_tensor(data, columns=["o"])]
        calls += [lambda data: list(Loader(data, columns=["o"]))]
    for call in calls:
        with pytest.raises(OverflowError, match='^column "o" has integers that int64 does not'):
            call(source)


def test_the_ends_of_an_interval_are_columns(tmp_path):
    own = [*pd.interval_range(0, 2), None, pd.Interval(3, 5)]
    frame = pd.DataFrame({"i": pd.array(own, dtype="interval[float64]"), "x": [1.0, 2, 3, 4]})
    frame.to_parquet(tmp_path / "i.parquet")
    with pytest.raises(UnsupportedError, match=r'name its fields in columns=, as "a\.b"'):
        Loader(frame, columns=["i"])
    table = pa.table(frame)
    nested = pa.table({"s": pa.StructArray.from_arrays(table["i"].chunks, ["i"])})
    sources = frame, table, [table, table.slice(1)], Mix([(frame, 1)]), tmp_path / "i.parquet"
    for source in *sources, nested:
        prefix = "s." if source is nested else ""
        names = [f"{prefix}i.left", f"{prefix}i.right"]
        loader = Loader(source, columns=dict.fromkeys(names, Cast("int8", nulls=-1)))
        first, *rest = ([batch[name].tolist() for name in names] for batch in loader)
        assert first == [[0, 1, -1, 3], [1, 2, -1, 5]]
        assert rest in ([], [[[1, -1, 3], [2, -1, 5]]])
    with pytest.raises(KeyError, match='struct "i" has .*left.*right'):
        Loader(frame, columns=["i.middle"])


UNCONVERTED = {
    "objects": ([1, "a"], 'x["o"].astype("str")'),
    "functions": ([len, len], 'x["o"].astype("str")'),
    "half a pair": (
        np.array(["\ud800", "b"], object),
        'x["o"].str.encode("utf-8", "replace").str.decode("utf-8")',
    ),
    "complex": ([1j, 2j], None),
    "sparse": (pd.arrays.SparseArray([0, 1]), 'x["o"].sparse.to_dense()'),
    "long double": (np.array([1, 2], np.longdouble), 'x["o"].astype("float64")'),
    "swapped": (np.array([1, 2], ">i4"), 'x["o"].astype("int32")'),
    "swapped unsigned": (np.array([1, 2], ">u8"), 'x["o"].astype("uint64")'),
    "swapped floats": (np.array([1, 2], ">f4"), 'x["o"].astype("float64")'),
    "swapped long": (
        np.array([1, 2], np.dtype("longdouble").newbyteorder()),
        'x["o"].astype("float64")',
    ),
    "swapped complex": (np.array([1, 2], ">c8"), None),
}


@pytest.mark.parametrize("name", system.marked(UNCONVERTED))
def test_a_column_that_pyarrow_does_not_convert_has_a_way_out_that_runs(name):
    values, way = UNCONVERTED[name]
    # pandas itself fails for some texts of which it makes no objects.
    are_objects = name in ("objects", "functions", "half a pair")
    column = pd.Series(values, dtype=object) if are_objects else values
    x = pd.DataFrame({"n": [1.0, 2.0], "o": column})
    calls = [lambda x: list(Loader([x])), lambda x: list(Loader([x], columns=["n", "o"]))]
    calls += [lambda x: list(Loader(x)), to_tensor, Array]
    calls += [lambda x: to_tensor(x, columns=["n", "o"])]
    for call in calls:
        with pytest.raises((NotImplementedError, TypeError, ValueError)) as refused:
            call(x)
        (note,) = (one for one in refused.value.__notes__ if "leaves it out" in one)
        assert "x.drop(columns=['o'])" in note
        assert way is None or way.replace('"o"', "'o'") in note
    assert list(Loader(x.drop(columns=["o"])))
    if way is not None:
        x["o"] = eval(way)
        wish = {"columns": {"o": Categories.scan()}} if are_objects else {}
        assert list(Loader(x, **wish))


def test_an_index_that_pyarrow_does_not_convert_is_left_out_as_a_note_says():
    x = pd.DataFrame({"n": [1.0, 2.0]}, index=pd.Index([1, "All"], name="k"))
    for call in to_tensor, lambda x: list(Loader(x)):
        with pytest.raises(pa.ArrowInvalid) as refused:
            call(x)
        (note,) = refused.value.__notes__
        assert note == "x.reset_index(drop=True) leaves the index out"
        assert len(call(x.reset_index(drop=True)))


class ByPyarrow(pd.DataFrame):
    """A frame of a user's own class, which pyarrow always converts."""


def drawn_frame(random):
    """A small frame of numbers, of odd layouts and names now and then."""
    kinds = [
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "float16",
        "float32",
        "float64",
    ]
    rows, width = int(random.integers(0, 5)), int(random.integers(1, 5))
    kind = np.dtype(random.choice(kinds))
    others = [str(random.choice(kinds)) if random.random() < 0.05 else kind for _ in range(width)]
    ends = np.iinfo(kind) if kind.kind in "iu" else np.finfo("float16")
    pool = [0, 1, 2, 100, ends.min, ends.max]
    frame = pd.DataFrame(
        {f"x{at}": np.array(random.choice(pool, rows)).astype(kind) for at in range(width)}
    )
    frame = frame.astype({f"x{at}": other for at, other in enumerate(others)}, errors="ignore")
    if kind.kind == "f" and rows and random.random() < 0.3:
        frame.iloc[0, 0] = random.choice([np.nan, np.inf, -0.0])
    odd = int(random.integers(0, 20))
    if odd == 0:
        frame.columns = ["x0"] * width
    elif odd == 1:
        frame.columns = range(width)
    elif odd == 2:
        frame = frame.astype({"x0": "Int64" if kind.kind in "iu" else "Float64"})
    elif odd == 3:
        frame = frame.iloc[::-1]
    elif odd == 4 and kind != "float16" and others[0] != "float16":
        frame = frame.set_index("x0")
    elif odd == 5:
        frame = frame.astype({"x0": kind.newbyteorder(">")}) if kind.itemsize > 1 else frame
    elif odd == 6:
        frame = pd.DataFrame(np.asfortranarray(frame.to_numpy()), columns=frame.columns)
    return frame


def outcome(source, options):
    """The matrix, or the kind of error."""
    try:
        made = to_tensor(source, **options)
    except Exception as error:
        return type(error).__name__, str(error)
    return made.dtype, made.shape, made.strides, made.readonly, np.from_dlpack(made).tobytes()


@pytest.mark.filterwarnings("ignore:.*non-str")
@pytest.mark.parametrize("seed", range(8))
def test_a_small_frame_becomes_what_pyarrow_makes_of_it(seed):
    random = np.random.default_rng(seed)
    for _ in range(150):
        frame = drawn_frame(random)
        options = {}
        if random.random() < 0.3:
            options["dtype"] = str(random.choice(["float32", "float64", "int32", "uint8", "bool"]))
        if random.random() < 0.3:
            options["nulls"] = random.choice([0, -1, "nan"]) if seed % 2 else "nan"
        if random.random() < 0.3:
            names = ["x0", "x1", "x3", "none"]
            options["columns"] = [str(name) for name in random.choice(names, 2)]
        expected = outcome(ByPyarrow(frame), options)
        assert outcome(frame, options) == expected, (frame, options)


def test_the_matrix_of_a_frame_is_never_its_memory():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    np.from_dlpack(to_tensor(frame))[:] = 0
    assert frame.to_numpy().tolist() == [[1, 3], [2, 4]]


def test_large_integers_beside_floats_are_not_rounded_first():
    frame = pd.DataFrame({"a": [2**53 + 1], "b": [1.0]})
    assert memoryview(to_tensor(frame, dtype="int64")).tolist() == [[2**53 + 1, 1]]


def held():
    own = []
    own.append(own)
    return own


def deep():
    own = []
    for _ in range(200_000):
        own = [own]
    return own


@pytest.mark.parametrize("made", [held, deep])
@pytest.mark.parametrize(
    "form",
    [
        lambda own: own,
        lambda own: (own,),
        lambda own: {"a": own},
        lambda own: np.array([[own, 1], 2], object),
    ],
    ids=["list", "tuple", "dict", "array"],
)
def test_objects_that_are_nested_without_an_end_are_refused(form, made):
    """pyarrow, to which pandas hands them, follows them until the process ends."""
    frame = pd.DataFrame({"x": [1], "y": pd.Series([form(made())])})
    column, of_index = frame["y"], frame.set_index("y")
    refused = [
        lambda: Array(frame),
        lambda: Array(column),
        lambda: ragged(column),
        lambda: explain(frame),
        lambda: to_tensor(of_index, columns=["x", "y"]),
        lambda: list(Loader(frame)),
        lambda: list(Loader(iter([{"y": column}]))),
        lambda: list(Loader(iter([{"y": deque([column[0]])}]))),
        lambda: record_batch({"y": column}),
    ]
    for call in refused:
        with pytest.raises(ValueError, match="levels deep, or hold themselves"):
            call()
    for source in frame, of_index:
        assert to_tensor_dict(source, columns=["x"])["x"].tolist() == [1]
        for some in source, [source], iter([source]), Mix([(source, 1)]):
            (batch,) = Loader(some, columns=["x"], filter=pc.field("x") == 1)
            assert batch["x"].tolist() == [1]


def test_a_list_that_many_lists_hold_is_followed_once():
    one = [1, 2]
    for _ in range(60):  # two to the power of sixty lists, if each were followed
        one = [one, one]
    _core._check_objects(one, nan_is_null=True)
    with pytest.raises(ValueError, match="more than 64 levels deep"):
        _core._check_objects([[[[[[one]]]]]], nan_is_null=True)


class Claimed(tuple):
    """More items than it has, for whom asks; pyarrow reads them until the process ends."""

    def __len__(self):
        return 2**60


class Endless(tuple):
    def __iter__(self):
        return itertools.count()


class EndlessSet(set):
    def __iter__(self):
        return itertools.count()


def test_a_tuple_of_a_class_has_the_items_that_it_has():
    frame = pd.DataFrame({"a": pd.Series([Claimed((1,))], dtype=object)})
    with pytest.raises(TypeError, match=r"len\(\) of a Claimed is not the number of its items"):
        to_tensor_dict(frame)
    for x in [Claimed((1,))], [Endless((1,))], [EndlessSet({1})]:
        with pytest.raises(TypeError, match="make numbers or texts of them"):
            to_tensor(x)


def test_what_a_mask_hides_in_a_cell_is_no_value():
    """DuckDB makes such cells of lists that have nulls."""
    relation = duckdb.sql(
        "select [1.5, null]::double[] f union all select [2.5] union all select null"
    )
    cells = relation.df()
    told = "hides values under its mask, and pyarrow would take them: x.tolist"
    wish = {"f": Pad(-1, nulls=-1)}
    encoder = Loader(relation, columns=wish).encoder()
    for read in (
        lambda: list(Loader(cells, columns=wish)),
        lambda: encoder(cells),
        lambda: to_tensor(cells["f"], pad=-1),
        lambda: ragged(cells["f"], nulls=-1),
        lambda: Array(pd.Series([[np.ma.masked], [1.0]])),
    ):
        with pytest.raises(TypeError, match=told):
            read()
    with pytest.raises(TypeError) as error:
        list(Loader(cells, columns=wish))
    way = error.value.__notes__[0].partition(" has None")[0]
    cells["f"] = eval(way, {"x": cells})
    assert pa.table(Array(cells)).to_pylist() == relation.to_arrow_table().to_pylist()
    # Lists have no tolist().
    mixed = pd.DataFrame({"f": pd.Series([np.ma.array([1.0, 2.0], mask=[True, False]), [1.0]])})
    with pytest.raises(TypeError, match=told) as error:
        list(Loader(mixed, columns=wish))
    assert "tolist" not in error.value.__notes__[0]
    shown = pd.Series([np.ma.array([1.0, 2.0], mask=[False, False])])
    assert to_tensor(shown, pad=0)[0].tolist() == [[1.0, 2.0]]


def test_durations_of_arrays_are_of_one_unit():
    """pyarrow takes numbers of one array for those of the unit of another one."""
    second, micro = np.array([1], "m8[s]"), np.array([1], "m8[us]")
    of_python, of_numpy = datetime.timedelta(seconds=1), np.timedelta64(1, "s")
    for cells in (
        [second, micro],
        [micro, second],
        [second, [of_python]],
        [micro, [of_numpy]],
        [{"a": second}, {"a": micro}],
    ):
        with pytest.raises(TypeError, match=r"types timedelta.* are in one column, and pyarrow"):
            Array(pd.Series(cells))
    for cells in [second, [of_numpy]], [micro, [of_python]], [second, None, second]:
        own = [None if one is None else pa.array(one).to_pylist() for one in cells]
        assert pa.array(Array(pd.Series(cells))).to_pylist() == own
    both = pd.Series([of_numpy, np.timedelta64(1, "ms")], dtype=object)
    with pytest.raises(pa.ArrowNotImplementedError, match="Expected np.timedelta64"):
        Array(both.to_frame("x"))


def test_texts_of_arrays_are_not_beside_times():
    times, texts = np.array(["2020-01-02"], "M8[D]"), np.array(["a", "bb"])
    for cells in [times, texts], [texts, times], [{"a": times}, {"a": texts}]:
        with pytest.raises(TypeError, match="are in one column, and pyarrow would"):
            Array(pd.Series(cells))
    both = Array(pd.Series([texts, ["c"], None, np.array(["d"])]))
    assert pa.array(both).to_pylist() == [["a", "bb"], ["c"], None, ["d"]]


def test_an_index_whose_labels_are_names_of_pandas_own_is_data():
    labels = ["levels", "categories", "dtype"]
    series = pd.Series([1, 2, 3], index=labels)
    assert to_tensor(series).tolist() == [1, 2, 3]
    frame = pd.DataFrame({"a": pd.Series(["x", None, "x"], index=labels, dtype=object)})
    (batch,) = Loader(frame, columns={"a": Categories(["x"], nulls=-1)})
    assert batch["a"].tolist() == [0, -1, 0]
    frame = pd.DataFrame({"a": pd.Series([held(), 1, 2], index=labels, dtype=object)})
    with pytest.raises(ValueError, match="hold themselves"):
        Array(frame)


def of_ids(ids):
    """pandas makes a RangeIndex of ids at equal steps, as any two are."""
    return pd.DataFrame({"id": ids, "x": [1.0] * len(ids)}).set_index("id")


UNEVEN, EVEN = [5, 9, 7], [1, 2]


@pytest.mark.parametrize("ids", [UNEVEN, EVEN, [3], []], ids=str)
def test_an_index_is_a_column_by_its_name_whatever_its_values(ids):
    frame, count = of_ids(ids), len(ids)
    assert to_tensor(frame).shape == (count, 1)
    assert list(to_tensor_dict(frame)) == ["x"]
    assert to_tensor(frame, columns=["id", "x"]).tolist() == [[id, 1] for id in ids]
    assert to_tensor_dict(frame, columns=["id"])["id"].tolist() == ids
    assert explain(frame, columns=["id"]).zero_copy
    assert [y.tolist() for _, y in Loader(frame, label="id")] == ([ids] if ids else [])
    kept = Loader(frame, columns=["id"], filter=pc.field("id") > 1)
    assert [id for batch in kept for id in batch["id"].tolist()] == [id for id in ids if id > 1]
    encoder = Encoder(columns=["id", "x"], framework="numpy").fit(of_ids(UNEVEN))
    assert encoder(frame)["id"].tolist() == ids


def test_a_level_of_equal_steps_is_a_column_by_its_name():
    for levels, names in [([range(2), ["a"]], ["k", None]), ([["a"], range(2)], [None, "k"])]:
        index = pd.MultiIndex.from_product(levels, names=names)
        frame = pd.DataFrame({"x": [5, 6]}, index=index)
        assert to_tensor(frame, columns=["k", "x"]).tolist() == [[0, 5], [1, 6]]
        assert to_tensor(frame).tolist() == [[5], [6]]
        assert frame.index is index


@pytest.mark.parametrize("name", [7, float("nan"), ("a", 1), None], ids=str)
def test_an_index_at_equal_steps_whose_name_is_no_text_is_no_matter(name):
    frame = pd.DataFrame({"x": [5, 6]}, index=pd.RangeIndex(2, name=name))
    assert to_tensor(frame).tolist() == [[5], [6]]


@pytest.mark.parametrize("wish", [None, Cast("float64", nulls=-1)], ids=["plain", "filled"])
@pytest.mark.parametrize("parts", [(UNEVEN, EVEN), (EVEN, UNEVEN)], ids=str)
def test_frames_with_ids_at_equal_steps_and_others_are_one_source(parts, wish):
    frames = [of_ids(ids) for ids in parts]
    columns = {"id": wish, "x": None}
    for source in frames, iter(frames), Mix([(frame, 1) for frame in frames]):
        rows = [id for batch in Loader(source, columns=columns) for id in batch["id"].tolist()]
        assert sorted(rows) == [1, 2, 5, 7, 9]
    loader = Loader(frames, columns={"id": Categories.scan(nulls=-1)})
    assert loader.categories == {"id": (1, 2, 5, 7, 9)}


def test_an_index_of_which_a_table_or_file_has_the_steps_is_not_filled(tmp_path):
    for at, ids in enumerate([UNEVEN, EVEN]):
        of_ids(ids).to_parquet(tmp_path / f"{at}.parquet")
    paths = [str(tmp_path / f"{at}.parquet") for at in range(2)]
    tables = [pa.Table.from_pandas(of_ids(ids)) for ids in (UNEVEN, EVEN)]
    columns = {"id": Cast("float64", nulls=-1), "x": None}
    words = 'column "id" is an index at equal steps in .*write frame.reset_index'
    encoder = Encoder(columns=columns).fit(of_ids(UNEVEN))
    for one, other in (paths, tables):
        for source in [one, other], [other, one], Mix([(one, 1), (other, 1)]):
            with pytest.raises(KeyError, match=words):
                list(Loader(source, columns=columns))
        with pytest.raises(KeyError, match=words):
            list(Loader(other, encoder=encoder))
        with pytest.raises(KeyError, match=words):
            Loader(other, columns=["id"])
    with pytest.raises(KeyError, match="id"):
        encoder(tables[1])
    for read in [pd.read_parquet(path) for path in paths], [one.to_pandas() for one in tables]:
        (batch,) = Loader(read, columns=columns, batch_size=9)
        assert batch["id"].tolist() == [*UNEVEN, *EVEN]


def test_arrow_types_that_pandas_has_no_type_for_are_read_from_frames():
    views = pa.array(["a", "b"], pa.string_view()), pa.array([[1], [2, 3]], pa.list_view(pa.int8()))
    table = pa.table({"x": views[0], "l": views[1], "y": [1.0, 2.0]})
    frame = table.to_pandas(types_mapper=pd.ArrowDtype)
    for source in frame, [frame], Mix([(frame, 1)]):
        (batch,) = Loader(source, columns=["y"])
        assert batch["y"].tolist() == [1, 2]
    wishes = {"x": Categories.scan(), "l": Pad(0)}
    (batch,) = Loader(frame, columns=wishes)
    assert batch["x"].tolist() == [0, 1]
    assert batch["l"].values.tolist() == [[1, 0], [2, 3]]
    assert ragged(frame["x"]).values.tolist() == list(b"ab")


ZONE = datetime.timezone(datetime.timedelta(hours=5))
NOON = datetime.datetime(2024, 5, 1, 12)
#: Of which pyarrow 26 changes one; with NumPy's times and numbers it ends the process.
MIXED = {
    "bool and float": [0.5, True],
    "NumPy's bool and integer": [3, np.bool_(True)],
    "half and integer": [256, np.float16(1.5)],
    "long double and integer": [np.longdouble(1.5), 256],
    "date and time": [NOON.date(), NOON],
    "date and integer": [NOON.date(), 3],
    "zoned and naive": [NOON.replace(tzinfo=ZONE), NOON],
    "naive and zoned": [pd.Timestamp(NOON), pd.Timestamp(NOON, tz="Asia/Tokyo")],
    "time and float": [NOON.time(), 3.7],
    "zoned time of a day": [NOON.time().replace(tzinfo=ZONE)],
    "duration and integer": [datetime.timedelta(1), 3],
    "UUID and integer": [3, uuid.UUID(int=5)],
    "nanoseconds": [NOON, pd.Timestamp("2024-05-01 00:00:00.000000001")],
    "nanoseconds of a duration": [pd.Timedelta(1, "ns")],
    "NumPy's time and float": [np.datetime64("2024-05-01"), np.float32(0.5)],
    "NumPy's NaT and integer": [np.datetime64("NaT"), np.int64(3)],
    "NumPy's time and complex number": [np.datetime64("2024-05-01"), np.complex64(1)],
    "NumPy's time and bytes": [np.datetime64("2024-05-01"), np.void(b"a")],
}


@pytest.mark.parametrize("kind", MIXED)
@pytest.mark.parametrize("nesting", ["values", "lists", "dicts"])
def test_objects_of_which_pyarrow_would_change_one_are_refused(kind, nesting):
    def nested(one):
        return {"values": one, "lists": [one], "dicts": {"f": one}}[nesting]

    series = pd.Series([None, *map(nested, MIXED[kind])], dtype=object, name="a")
    frame = series.to_frame()
    for call in (
        lambda: Array(series),
        lambda: to_tensor(frame, physical=True),
        lambda: record_batch({"a": series}),
        lambda: list(Loader(frame, columns={"a": AsArrow()})),
        lambda: list(Loader(iter([{"a": series}]), columns={"a": AsArrow()})),
    ):
        with pytest.raises(TypeError, match="of the types .* in one column|has .* leaves out"):
            call()
    with pytest.raises(TypeError, match='column "a": '):
        Array(frame)
    # A column that is not read does not matter.
    assert to_tensor(frame.assign(b=1.5), columns=["b"]).tolist() == [[1.5]] * len(series)


def objects(values):
    """pandas would make a matrix of arrays of one length."""
    array = np.empty(len(values), object)
    for at, value in enumerate(values):
        array[at] = value
    return pd.Series(array, name="a")


TIMES = np.array(["2026-01-01"], "M8[s]")


class Indexed:
    def __index__(self):
        return 7


def test_objects_within_objects_are_compared_with_those_of_their_column():
    shared, day = [1.5], NOON.date()
    for values in (
        [{"a": shared, "b": shared}, {"a": [2.5], "b": [True]}],
        [np.array([1.5]), [True]],
        [[True], np.array([1.5])],
        [np.array([1], "float16"), [256]],
        [np.array(["2026-01-01"], "M8[s]"), np.array([])],
        [{"x": np.array(["2026-01-01"], "M8[D]")}, {"x": np.array([1.5])}],
        [[datetime.timedelta(1)], [3]],
        [day, np.array(5)],
        [day, Indexed()],
        [[[0.5]], [[], [False]]],
        [{f"k{at}": 1 for at in range(70_000)}, {"z": 0.5}, {"z": True}],
        [dict.fromkeys("abcdefg", shared), {"g": [True]}],
        [[1], np.array([1 + 2j])],
        [np.array([1 + 2j]), [1]],
        [TIMES, np.array([1j])],
        [TIMES, np.array([(1, 2)], "i4, i4")],
        [TIMES, np.array(["x"], np.dtypes.StringDType())],
        [TIMES, np.array(1)],
        [TIMES, np.array([[1]])],
        [TIMES.reshape(()), np.array([1])],
        [[np.uint64(2**64 - 1)], [1.5]],
        [np.array([1.5]), np.array([5, 2**64 - 1], "u8")],
        [np.array([1.5]), np.array([2**63], "u8")],
    ):
        with pytest.raises(TypeError, match='column "a": .* of the types .* are in one column'):
            Array(objects(values))
    for values in (
        [np.array([1.5]), [2], np.array([3], "int8")],
        [{"a": shared, "b": True}, {"a": [2.5], "b": False}],
        [{"a": 1}, {"b": True}],
        [1.5, pa.scalar(2.5)],
        [np.array([2**53, 5], "u8"), np.array([1.5]), np.array([], "u8")],
        [np.array([2**64 - 1], "u8"), np.array([5], "u8")],
        [dict.fromkeys("abcdefg", shared), {"g": [2.5]}],
    ):
        series = objects(values)
        assert pa.array(Array(series)).equals(pa.array(series))


def test_nan_is_a_null_of_pandas_and_a_float_elsewhere():
    nan, large = float("nan"), np.uint64(2**64 - 1)
    for values, own in ([nan, True], [None, True]), ([large, nan], [2**64 - 1, None]):
        assert pa.array(Array(objects(values))).to_pylist() == own
        for batch in {"a": values}, {"a": [values]}:
            with pytest.raises(TypeError, match='column "a": .* are in one column'):
                list(Loader(iter([batch]), columns={"a": AsArrow()}))


@pytest.mark.parametrize(
    "times",
    [
        np.array([5], dtype)
        for dtype in ("M8[25s]", "m8[15ms]", "m8[10ns]", "M8[6h]", "m8[h]", "M8[7D]", "M8[M]")
    ],
    ids=str,
)
def test_times_in_several_units_are_refused_with_what_has_them_in_one(times):
    """pyarrow takes 5 of 25 seconds for 5 seconds."""
    told = r"units of \d*\w+, which pyarrow does not take as they are: (value.astype\(.*\)) of"
    for column in times, [times], [{"f": times}], [times[0]], [[times[0]]]:
        with pytest.raises(TypeError, match=told) as error:
            list(Loader(iter([{"a": column}]), columns={"a": AsArrow()}))
    made = eval(re.search(told, str(error.value))[1], {"value": times})
    assert (made == times).all()
    assert pa.array(Array(objects([made]))).to_pylist() == [pa.array(made).to_pylist()]


def test_dicts_that_hold_one_another_have_no_more_fields_than_are_compared():
    one = {"a": 1}
    for _ in range(24):  # two to the power of 24 fields
        one = {"a": one, "b": one}
    with pytest.raises(ValueError, match="dicts have more than 1048576 fields"):
        Array(objects([one]))


def test_a_class_that_raises_when_it_is_looked_at_is_in_no_other_column():
    class Hostile(type):
        def __getattr__(cls, name):
            raise RuntimeError(name)

    class Value(metaclass=Hostile):
        pass

    frame = pd.DataFrame({"b": [1.5, 2.5], "a": objects([Value(), Value()]).to_numpy()})
    assert to_tensor(frame, columns=["b"]).tolist() == [[1.5], [2.5]]


@pytest.mark.parametrize(
    "values",
    [
        ["a", b"a"],
        [b"a", "a"],
        ["a", bytearray(b"a")],
        ["a", memoryview(b"a")],
        [np.bytes_(b"a"), "a"],
        [["a"], [b"a"]],
        [{"k": "a"}, {"k": b"a"}],
        [np.array(["a"]), ["b", b"c"]],
        [np.array(["a"]), np.array([b"a"])],
        [{"a": 1}, {b"a": 2}],
    ],
)
def test_texts_beside_bytes_are_refused(values):
    """pyarrow makes one value of both, and one field of both keys."""
    frame = pd.DataFrame({"x": pd.Series([None, *values], dtype=object)})
    for convert in (
        lambda: list(Loader(frame, columns={"x": AsArrow()})),
        lambda: list(Loader(frame, columns={"x": Categories.scan(nulls=-1)})),
        lambda: Array(frame["x"]),
    ):
        with pytest.raises(TypeError, match="pyarrow (would make another|takes the text)"):
            convert()


def test_an_offset_of_a_fraction_of_a_second_is_refused():
    zone = datetime.timezone(datetime.timedelta(hours=1, microseconds=5))
    times = pd.Series([datetime.datetime(2020, 1, 1, tzinfo=zone)] * 2, dtype=object)
    with pytest.raises(TypeError, match="zone at a fraction of a second"):
        Array(times)
    utc = times.map(lambda x: x.astimezone(datetime.UTC))
    assert to_tensor(utc, physical=True)[0].item() == 1577833199999995


def test_a_text_of_16_bytes_is_no_uuid():
    ids = pd.Series([uuid.UUID(int=5), "order-0000001234"], dtype=object)
    for values in ids, ids[::-1]:
        with pytest.raises((TypeError, ValueError)):
            Array(values)
    assert pa.array(Array(ids[:1])).to_pylist() == [uuid.UUID(int=5)]


def test_decimals_beside_floats_are_made_floats():
    x = pd.Series([decimal.Decimal("1.5"), 0.25])
    with pytest.raises(pa.ArrowTypeError) as refused:
        to_tensor(x)
    assert refused.value.__notes__ == [
        'x.astype("float64") has floats, which round what they do not hold'
    ]
    assert to_tensor(x.astype("float64")).tolist() == [1.5, 0.25]


def test_ways_out_of_cells_are_followed():
    torch = pytest.importorskip("torch")
    weights = torch.ones((2, 2), dtype=torch.bfloat16, requires_grad=True)
    for cell in np.ones((2, 2)), weights, torch.ones((2, 2)).to_sparse():
        x = pd.DataFrame({"x": pd.Series([cell, None], dtype=object)})
        with pytest.raises(pa.ArrowInvalid, match="1-dimensional|Could not convert") as refused:
            Array(x["x"])
        (note,) = refused.value.__notes__
        made, _, _ = note.partition(" has the items")
        x["x"] = eval(made, {"x": x["x"], "numpy": np})
        (batch,) = Loader(x, columns={"x": Pad(0, nulls="nan")}, batch_size=2)
        assert batch["x"].values.tolist() == [[1] * 4, [0] * 4]
        assert batch["x"].lengths.tolist() == [4, 0]
    addresses = pd.DataFrame({"x": [object()], "y": [1.0]})
    with pytest.raises(pa.ArrowInvalid, match="Could not convert") as refused:
        to_tensor(addresses)
    assert refused.value.__notes__ == ["x.drop(columns=['x']) leaves it out"]
    far = [np.datetime64("2020-01-01", "D"), np.datetime64("300000-01-01", "D")]
    with pytest.raises(TypeError) as refused:
        to_tensor(pd.Series(far, dtype=object), physical=True)
    assert "M8[us]" not in refused.value.__notes__[0]


@pytest.mark.parametrize(
    "values",
    [
        [1, 2.5, np.float32(0.5), np.int8(3)],
        [decimal.Decimal("1.25"), 3, decimal.Decimal("NaN")],
        [np.float16(1.5), 0.5],
        [True, np.bool_(False)],
        [NOON.date(), float("nan"), pd.NaT, pd.NA],
        [NOON, pd.NaT, pd.Timestamp(NOON)],
        [NOON.replace(tzinfo=ZONE), pd.Timestamp(NOON, tz="UTC")],
        [datetime.timedelta(1), pd.Timedelta(2, "s")],
        [[1, None], [2.5]],
        [{"a": 1, "b": True}, {"b": False, "c": NOON}],
        ["a", np.str_("b")],
    ],
    ids=str,
)
def test_objects_of_one_kind_are_those_of_pyarrow(values):
    series = pd.Series([None, *values], dtype=object)
    assert pa.array(Array(series)).equals(pa.array(series))


def test_a_request_with_an_integer_that_int64_does_not_hold_is_a_value_error():
    encoder = Loader(pa.table({"a": [1]})).encoder()
    for rows in pd.DataFrame({"a": [2**64]}), [{"a": 2**64}]:
        with pytest.raises(ValueError, match='column "a"'):
            encoder(rows)


def test_an_encoder_takes_no_frame_that_mixes_times_with_and_without_a_zone():
    naive = pd.DataFrame({"t": pd.to_datetime(["2024-05-01"])})
    zoned = pd.DataFrame({"t": naive["t"].dt.tz_localize("Asia/Tokyo")})
    mixed = pd.concat([naive, zoned], ignore_index=True)
    for frame in naive, zoned:
        encoder = Loader(frame, physical=True).encoder()
        for rows in mixed, mixed.to_dict("records"):
            with pytest.raises((TypeError, ValueError), match="zone"):
                encoder(rows)
    with pytest.raises(TypeError, match=r"(pandas\.to_datetime\(x, utc=True\)) takes") as refused:
        list(Loader(mixed, physical=True))
    assert str(refused.value).startswith('column "t": ')
    made = mixed.assign(t=pd.to_datetime(mixed["t"], utc=True))
    (batch,) = Loader(made, physical=True, batch_size=2)
    seconds = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[made["t"].dt.unit]
    assert np.diff(batch["t"].tolist()).tolist() == [-9 * 3600 * seconds]


def test_integers_of_numpy_beyond_int64_are_told_as_those_of_python():
    for value in 2**63 + 1, np.uint64(2**63 + 1):
        series = pd.Series([value, 1], dtype=object, name="x")
        with pytest.raises(OverflowError, match=r'column "x" .*astype\("uint64"\)'):
            to_tensor(series)
        assert to_tensor(series.astype("uint64")).tolist() == [2**63 + 1, 1]


@pytest.mark.parametrize("null", [None, float("nan"), pd.NA], ids=str)
def test_large_integers_beside_nulls_are_made_unsigned(null):
    """Floats would be other values."""
    series = pd.Series([2**64 - 1, null, 5], dtype=object, name="x")
    with pytest.raises(OverflowError, match=r'by astype\("UInt64"\), or leave it out'):
        to_tensor(series, nulls=0)
    assert to_tensor(series.astype("UInt64"), nulls=0).tolist() == [2**64 - 1, 0, 5]
