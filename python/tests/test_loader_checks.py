"""What a `Loader` refuses, and says of itself, when it is made: arguments, names, wishes."""

import gc
import pickle
import re
import sqlite3

import datasets
import duckdb
import fsspec
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest
from arrow_dlpack import (
    Array,
    AsArrow,
    ByLength,
    Cast,
    Categories,
    Dense,
    Loader,
    Mix,
    Pad,
    Ragged,
    UnsupportedError,
    iter_batches,
    to_tensor,
)

TABLE = pa.table({"x": [1.0, 2.0, 3.0], "y": [0, 1, 0], "s": ["a", "b", "c"]})


KINDS = ["table", "reader", "list", "dataset", "polars", "pandas", "path", "mix", "mix of files"]
KINDS += ["DuckDB", "mix of DuckDB", "structs", "chunks of structs", "our structs"]
KINDS += ["fragment", "fragments", "fragments in memory", "file in a buffer", "mix of fragments"]
STRUCTS = pa.array(TABLE.to_pylist(), pa.struct(list(TABLE.schema)))


@pytest.fixture(params=KINDS)
def source(request, tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(TABLE, path, row_group_size=2)
    (fragment,) = ds.dataset(path).get_fragments()
    in_memory = ds.dataset(TABLE).get_fragments
    buffer = pa.py_buffer(path.read_bytes())
    return {
        "table": TABLE,
        "reader": TABLE.to_reader(),
        "list": [TABLE, TABLE],
        "dataset": ds.dataset(path),
        "polars": pl.from_arrow(TABLE),
        "pandas": TABLE.to_pandas().astype({"s": "category"}),
        "path": path,
        "mix": Mix([(TABLE, 0.5), (TABLE, 0.5)]),
        "mix of files": Mix([(path, 0.5), (TABLE, 0.5)]),
        "DuckDB": duckdb.connect().read_parquet(str(path)),
        "mix of DuckDB": Mix([(duckdb.connect().from_arrow(TABLE), 0.5), (STRUCTS, 0.5)]),
        "structs": STRUCTS,
        "chunks of structs": pa.chunked_array([STRUCTS, STRUCTS]),
        "our structs": Array(STRUCTS),
        "fragment": fragment,
        "fragments": fragment.split_by_row_group(),
        "fragments in memory": [*in_memory(), *in_memory()],
        "file in a buffer": ds.ParquetFileFormat().make_fragment(buffer),
        "mix of fragments": Mix([(fragment.split_by_row_group(), 0.5), ([*in_memory()], 0.5)]),
    }[request.param]


WRONG = [
    ({"columns": ["z"]}, KeyError, '"z"'),
    ({"columns": ["x"], "label": "z"}, KeyError, '"z"'),
    ({"columns": {"s": Cast("float32")}}, UnsupportedError, 'column "s"'),
    ({"columns": {"x": Dense(3)}}, ValueError, "Dense is for columns of lists"),
    ({"columns": {"x": Pad(0)}}, UnsupportedError, "leave out Pad()"),
    ({"columns": ["x"], "dtype": "float99"}, ValueError, '"float99" is not the name of a dtype'),
    ({"columns": {"x": Categories(["a"])}}, ValueError, "cannot hold the word 'a'"),
    ({"columns": ["x"], "dtype": "complex64"}, ValueError, "float64 cannot become complex64"),
    ({"columns": ["y"], "nulls": 1.5}, ValueError, "nulls cannot be filled with 1.5"),
    ({"columns": ["x"], "batch_size": ByLength(2, "x")}, TypeError, "ByLength needs a column"),
    ({"columns": ["x"], "filter": pc.field("z") > 1}, KeyError, 'filter= names column "z"'),
    ({"columns": {"z": Categories.scan()}}, KeyError, 'no column "z"'),
]


@pytest.mark.parametrize(("options", "kind", "words"), WRONG)
def test_a_loader_refuses_what_its_source_has_not_when_it_is_made(source, options, kind, words):
    with pytest.raises(kind) as refused:
        Loader(source, **options)
    assert words in str(refused.value)


def test_a_check_takes_no_rows_and_leaves_no_tensor(source):
    for _ in range(2):
        assert sum(len(batch["x"]) for batch in Loader(source, columns=["x"])) % 3 == 0
        if isinstance(source, pa.RecordBatchReader):
            break


@pytest.mark.parametrize(
    "column",
    [
        pa.RunEndEncodedArray.from_arrays([1, 3], [1, 2]),
        pa.array([{"a": 1}] * 3),
        pa.array([[("k", 1)]] * 3, pa.map_(pa.string(), pa.int64())),
        pa.nulls(3),
        pa.array(["a", "b", "c"], pa.string_view()),
        pa.UnionArray.from_sparse(pa.array([0] * 3, pa.int8()), [pa.array([1, 2, 3])]),
    ],
)
def test_other_columns_may_be_of_any_type(column):
    table = pa.table({"x": [1, 2, 3], "other": column})
    assert len(list(Loader(table, columns=["x"], batch_size=1))) == 3
    assert len(list(Loader([table, table], columns=["x"], batch_size=1))) == 6


def test_columns_that_nobody_has_named_are_refused_by_the_epoch_alone():
    loader = Loader(TABLE, batch_size=2)
    assert (len(loader), "s: string" in repr(loader)) == (2, True)
    with pytest.raises(UnsupportedError, match='column "s"'):
        iter(loader)


OF_KNOWN = [
    *WRONG,
    ({"label": "z"}, KeyError, '"z"'),
    ({"columns": ["x", "x"]}, KeyError, '"x" twice'),
]


@pytest.fixture(params=["frame", "list", "mixed list", "Mix", "index", "complex"])
def with_objects(request):
    """Sources with columns whose types are known when they are read."""
    frame = pd.DataFrame({"x": [1.5, 2.5, 3.5], "s": ["a", "bb", ""], "y": [1, 2, 3]})
    frame["o"] = pd.Series([[1], [2], []], dtype=object)
    table = TABLE.append_column("o", pa.array([[1], [2], []]))
    return {
        "frame": frame,
        "list": [frame, frame],
        "mixed list": [table, frame],
        "Mix": Mix([(frame, 1), (table, 1)]),
        "index": frame.set_index(pd.Index(["a", 1, 2], dtype=object, name="k")),
        "complex": frame.assign(c=1j),
    }[request.param]


@pytest.mark.parametrize(("options", "kind", "words"), OF_KNOWN)
def test_objects_of_pandas_hide_no_mistake_in_other_columns(with_objects, options, kind, words):
    with pytest.raises(kind) as refused:
        Loader(with_objects, **options)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    "options",
    [
        {"columns": {"o": Pad(0)}},
        {"columns": ["o"], "label": "y"},
        {"columns": ["x"], "label": "o"},
        {"columns": ["o"], "batch_size": ByLength(2, "o")},
        {"columns": ["x", "y"], "format": "matrix", "dtype": "float64"},
        {"columns": ["x"], "filter": pc.list_value_length(pc.field("o")) > 0},
        {"columns": ["x"], "filter": (pc.field("x") > 2) & pc.field("o").is_valid()},
    ],
)
def test_objects_of_pandas_are_judged_when_they_are_read(with_objects, options):
    assert list(Loader(with_objects, **options))


def test_pythons_objects_of_pandas_are_checked_by_name_alone():
    frame = pd.DataFrame({"x": [1.0], "lists": pd.Series([[1, 2]], dtype=object)})
    with pytest.raises(KeyError, match='there is no column "z"'):
        Loader(frame, columns=["z"])
    (batch,) = Loader(frame, columns=["lists"])
    assert batch["lists"].values.size == 2


def test_of_several_files_a_name_that_the_first_lacks_is_refused(tmp_path):
    pq.write_table(TABLE, tmp_path / "a.parquet")
    pq.write_table(TABLE.append_column("z", [[1, 2, 3]]), tmp_path / "b.parquet")
    with pytest.raises(KeyError, match=r'column "z" is in .*b\.parquet and not in .*a\.parquet'):
        Loader(tmp_path, columns=["z"])
    with pytest.raises(KeyError, match='there is no column "q"'):
        Loader(tmp_path, columns=["q"])
    loader = Loader(tmp_path, columns={"z": Cast("float32", nulls="nan")}, framework="numpy")
    assert np.isnan(np.concatenate([one["z"] for one in loader])).sum() == 3


@pytest.mark.parametrize("form", ["parquet", "ipc", "csv"])
def test_of_fragments_all_schemas_are_known(form, tmp_path):
    tables = [TABLE, TABLE.append_column("z", [["1"] * 3]).drop(["y"])]
    for at, table in enumerate(tables):
        ds.write_dataset(table, tmp_path / str(at), format=form)
    found = [
        one
        for at in range(2)
        for one in ds.dataset(tmp_path / str(at), format=form).get_fragments()
    ]
    with pytest.raises(KeyError, match=r'column "y" is in .*0.part-0.* and not in .*1.part-0'):
        Loader(found, columns=["y"])
    for wish in Cast("float32"), Categories([True]):
        with pytest.raises((UnsupportedError, ValueError), match=r'column "s"'):
            Loader(found, columns={"s": wish})
    assert repr(Loader(found, columns=["x"], dtype="float32")).endswith(" -> float32>")
    assert sum(len(one["x"]) for one in Loader(found, columns=["x"])) == 6


def test_files_of_fragments_may_be_gone_or_over_a_network(tmp_path):
    table = pa.table({"x": [1]})
    pq.write_table(table, tmp_path / "a.parquet")
    (gone,) = ds.dataset(tmp_path / "a.parquet").get_fragments()
    gone = pickle.loads(pickle.dumps(gone))
    (tmp_path / "a.parquet").unlink()
    memory = fsspec.filesystem("memory")
    memory.pipe("/checked/a.parquet", b"no footer")
    system = pafs.PyFileSystem(pafs.FSSpecHandler(memory))
    remote = ds.ParquetFileFormat().make_fragment("/checked/a.parquet", filesystem=system)
    for fragment in gone, remote:
        loader = Loader([fragment], columns=["z"])
        with pytest.raises((OSError, ValueError), match=r"a\.parquet"):
            iter(loader)


def test_files_may_come_later_and_change(tmp_path):
    path = tmp_path / "a.parquet"
    loader = Loader(path, columns=["x"], framework="numpy")
    with pytest.raises(FileNotFoundError, match=r"a\.parquet"):
        iter(loader)
    for rows in (TABLE, TABLE.slice(1)):
        pq.write_table(rows, path)
        assert sum(len(one["x"]) for one in loader) == len(rows)
    later = Loader(path, columns=["x"], framework="numpy")
    pq.write_table(TABLE.slice(2), path)
    assert sum(len(one["x"]) for one in later) == 1
    assert sum(len(one["x"]) for one in pickle.loads(pickle.dumps(later))) == 1


def test_to_check_a_relation_runs_no_query():
    connection = duckdb.connect()
    relation = connection.from_arrow(TABLE.to_reader())
    with pytest.raises(UnsupportedError, match='column "s"'):
        Loader(relation, columns=["s"])
    loader = Loader(relation, columns=["x"], framework="numpy")
    (batch,) = loader
    assert batch["x"].tolist() == [1.0, 2.0, 3.0]

    numbers = connection.sql("SELECT range AS x FROM range(1_000_000)")
    reader = numbers.to_arrow_reader(1000)
    first = reader.read_next_batch()
    Loader(numbers, columns=["x"])
    assert len(first) + len(reader.read_all()) == 1_000_000


@pytest.mark.parametrize("setting", ["false", "true"])
def test_types_of_duckdb_that_a_setting_decides_wait_for_the_epoch(setting):
    connection = duckdb.connect(config={"arrow_lossless_conversion": setting})
    relation = connection.sql("SELECT uuid() AS u, 1 AS x, {'h': 1::HUGEINT} AS s")
    with pytest.raises(KeyError, match='there is no column "z"'):
        Loader(relation, columns=["z"])
    loader = Loader(relation, columns=["u"], physical=True)
    if setting == "true":
        assert len(list(loader)) == 1
    assert len(list(Loader(relation, columns=["x"]))) == 1


@pytest.mark.parametrize(("kind", "unit"), [("TIMESTAMPTZ", "us"), ("TIMESTAMPTZ_NS", "ns")])
def test_times_of_duckdb_have_the_zone_of_their_connection(kind, unit):
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'Asia/Kathmandu'")
    relation = connection.sql(f"SELECT '2026-07-01 12:00:00+00'::{kind} AS t, [now()] AS l")
    table = relation.to_arrow_table()
    assert table.schema.field("t").type.tz == "Asia/Kathmandu"
    options = {"columns": {"t": None}, "physical": True, "batch_size": 1}
    for source in [relation, table], Mix([(relation, 1), (table, 1)]):
        found = [np.asarray(batch["t"]).tolist() for batch in Loader(source, **options)]
        assert found == [table["t"].cast("int64").to_pylist()] * 2
    other = table.cast(pa.schema([("t", pa.timestamp(unit, "UTC")), table.schema.field("l")]))
    with pytest.raises(TypeError, match="tz=Asia/Kathmandu. in part 0 and .*tz=UTC. in part 1"):
        list(Loader([relation, other], **options))
    with pytest.raises(KeyError, match='there is no column "z"'):
        Loader([relation, relation], columns=["z"])
    encoder = Loader(relation, **options).encoder()
    for source in relation, table:
        (batch,) = Loader(source, encoder=encoder, batch_size=1)
        assert np.asarray(batch["t"]).tolist() == table["t"].cast("int64").to_pylist()


def test_any_other_type_of_duckdb_is_known():
    relation = duckdb.connect().sql(
        """SELECT 1::TINYINT AS a, 1.5::DECIMAL(20, 2) AS "select", DATE '2020-01-01' AS "q""q",
        [1, 2]::INT[2] AS f, [[1]] AS l, {'a b': 1} AS s, 'x'::ENUM('x', 'it''s') AS e, now() AS t,
        MAP {'a': 1} AS m, union_value(n := 2) AS u, NULL AS n, 'a'::BLOB AS b, INTERVAL 1 DAY AS i
        """
    )
    loader = Loader(relation, columns=["a"])
    assert loader._schema.equals(relation.to_arrow_table().schema)


class Silent:
    """A source whose attributes raise."""

    def __arrow_c_stream__(self, requested_schema=None):
        raise AssertionError("it was read")

    def __getattr__(self, name):
        if name in ("num_rows", "height"):
            raise OSError(name)
        raise AttributeError(name)


def test_a_loader_says_what_its_columns_become():
    words = [str(at) for at in range(1000)]
    loader = Loader(
        TABLE.append_column("l", pa.array([[1], [], [2, 3]])),
        columns={"x": None, "s": Categories([*"abc", *words], nulls=-1), "l": Pad(0, 8)},
        label="y",
        batch_size=2,
        shuffle=10,
        seed=0,
        dtype="float32",
        framework="numpy",
    )
    assert repr(loader).splitlines() == [
        "<arrow_dlpack.Loader",
        "  source: pyarrow.Table, 3 rows",
        '  options: batch_size=2, dtype="float32", framework="numpy", shuffle=10, seed=0',
        "  x: double -> float32",
        '  s: string -> Categories(["a", "b", "c", ... 1003 words], nulls=-1)',
        "  l: list<item: int64> -> Pad(0, max_length=8)",
        "  label y: int64>",
    ]
    assert "s: string -> Categories.scan()" in repr(Loader(TABLE, columns={"s": Categories.scan()}))
    assert '\n  x: double -> Cast("float16")>' in repr(
        Loader(TABLE, columns={"x": Cast("float16")})
    )


def test_a_reader_of_chunks_of_pandas_has_a_repr(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,2\n3,4\n")
    loader = Loader(pd.read_csv(tmp_path / "a.csv", chunksize=1), columns=["x"])
    assert repr(loader) == "<arrow_dlpack.Loader\n  source: pandas.TextFileReader\n  x>"
    assert [batch["x"].tolist() for batch in loader] == [[1], [3]]


def test_a_label_of_lists_beside_a_matrix_is_ragged():
    lists = pa.table({"x": [1.0, 2.0], "l": [[1, 2], [3]]})
    loader = Loader(lists, batch_size=2, format="matrix", label="l")
    assert repr(loader).endswith("label l: list<item: int64> -> Ragged>")
    ((_, label),) = loader
    assert isinstance(label, Ragged)


@pytest.mark.parametrize("dtype", [float, "double", np.dtype("f8"), pa.float64(), pl.Float64])
def test_dtypes_are_named_alike_whatever_library_they_are_of(dtype):
    """Arrow's word "float" is float32, which Python's is not."""
    *_, options, shown = repr(Loader(TABLE, columns=["y"], dtype=dtype)).splitlines()
    assert (options, shown) == ('  options: dtype="float64"', "  y: int64 -> float64>")
    wishes = {"y": Cast(dtype), "l": Pad(0, dtype=dtype)}
    loader = Loader(TABLE.append_column("l", pa.array([[1]] * 3)), columns=wishes)
    assert repr(loader).splitlines()[-2:] == [
        '  y: int64 -> Cast("float64")',
        '  l: list<item: int64> -> Pad(0, dtype="float64")>',
    ]


def test_nulls_that_are_nan_make_floats_of_integers_as_shown():
    small, pairs = pa.array([1, 2, 3], "int8"), pa.array([[1], [2], [3]], pa.list_(pa.int16(), 1))
    flags = pa.array([True, False, True])
    table = TABLE.append_column("i", small).append_column("p", pairs).append_column("b", flags)
    loader = Loader(table, columns=["x", "y", "i", "p", "b"], nulls="nan")
    made = dict(line.strip(" >").split(": ", 1) for line in repr(loader).splitlines()[3:])
    assert made["x"] == "double"
    (batch,) = loader
    for name in "y", "i", "p", "b":
        assert made[name].endswith(f" -> {batch[name].dtype}")
    codes = pa.table({"c": pa.array([b"ab", None], pa.binary(2)), "x": [1.5, None]})
    loader = Loader(codes, nulls="nan", framework="numpy")
    assert "  c: fixed_size_binary[2] -> float32" in repr(loader)
    assert {name: str(batch[name].dtype) for batch in loader for name in batch} == {
        "c": "float32",
        "x": "float64",
    }
    assert "int8\n" in repr(Loader(table, columns=["i", "x"], nulls="nan", format="matrix"))
    assert repr(Loader(table, columns=["x"], label="i", nulls="nan")).endswith("label i: int8>")


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([pa.array([1], "int8"), pa.array([0.5])], "double"),
        ([pa.nulls(1), pa.array([1])], "int64"),
        ([pa.array([1]).dictionary_encode(), pa.array([2])], "int64"),
        ([pa.array([[]], pa.list_(pa.null())), pa.array([[1]])], "list<item: int64> -> Ragged"),
    ],
    ids=["numbers", "nulls", "dictionaries", "lists"],
)
def test_a_column_of_several_sources_has_the_type_of_all(values, shown):
    parts = [pa.table({"x": column}) for column in values]
    mix = Mix([(part, 1) for part in parts])
    for said in repr(mix), *(repr(Loader(source, columns=["x"])) for source in (parts, mix)):
        assert said.endswith(f"\n  x: {shown}>")


def test_a_mix_says_its_columns_where_no_file_is_read_for_it(tmp_path):
    tables = [TABLE, pl.from_arrow(TABLE), TABLE.to_pandas(), [TABLE, TABLE], ds.dataset(TABLE)]
    tables += [TABLE.to_reader(), *ds.dataset(TABLE).get_fragments()]
    for table in tables:
        mix = Mix([(TABLE, 1), (table, 1)])
        assert repr(mix).endswith("\n  x: double\n  y: int64\n  s: string>")
    lists = pa.table({"l": [[1, 2]]})
    assert repr(Mix([(lists, 1)])).splitlines()[2:] == [
        "  1 of pyarrow.Table, 1 rows",
        "  l: list<item: int64> -> Ragged>",
    ]
    pq.write_table(TABLE, tmp_path / "a.parquet")
    objects = pd.DataFrame({"x": pd.Series([1.0], dtype=object)})
    for unknown in tmp_path / "a.parquet", ds.dataset(tmp_path).get_fragments(), objects:
        assert "1 of " in repr(Mix([(unknown, 1)])).splitlines()[-1]
        assert "double" not in repr(Mix([(TABLE.drop(["x"]), 1), (unknown, 1)]))


def test_so_does_a_mix_and_what_is_not_known_is_left_out():
    mix = Mix([(TABLE, 0.7), ("data/a.parquet", 0.3)])
    assert repr(mix).splitlines() == [
        "<arrow_dlpack.Mix",
        "  stopping_strategy: all_exhausted_without_replacement",
        "  0.7 of pyarrow.Table, 3 rows",
        "  0.3 of data/a.parquet>",
    ]
    assert "  source: Mix, all_exhausted" in repr(Loader(mix, columns=["x"]))
    assert repr(Loader(iter([TABLE]))).endswith("list_iterator\n  columns: all>")
    encoder = Loader(TABLE, columns=["y"], batch_size=1).encoder()
    narrow = TABLE.select(["y"]).cast(pa.schema({"y": pa.int8()}))
    assert repr(Loader(narrow, encoder=encoder, batch_size=1)).endswith("\n  y: int64>")
    assert repr(Loader(TABLE.select(["y", "s"]), dtype="float32")).endswith(
        "\n  y: int64 -> float32\n  s: string>"
    )
    assert "source: generator " in repr(Loader(one for one in [TABLE]))
    assert repr(Loader(lambda index, count: TABLE, columns=["x"])).endswith("<lambda>\n  x>")
    wide = pa.table({f"c{at}": [1] for at in range(100)})
    assert repr(Loader(wide)).endswith("  and 70 columns more>")


@pytest.mark.parametrize("options", [{}, {"dtype": "float32"}, {"format": "matrix"}])
def test_it_tells_pythons_objects_of_polars_from_numbers(options):
    objects = pl.Series([object()], dtype=pl.Object)
    frame = pl.DataFrame({"a": [1.0], "o": objects})
    for source in frame, frame.clear(), [frame, frame], Mix([(frame, 1)]):
        loader = Loader(source, **options)
        *_, shown = repr(loader).splitlines()
        assert re.fullmatch(r"  o: .*type_name=object, vendor_name=polars\]>>", shown)
        with pytest.raises(UnsupportedError, match='"o" has Python\'s objects'):
            list(loader)
        with pytest.raises(UnsupportedError, match='"o" has Python\'s objects'):
            Loader(source, columns=["a", "o"], **options)
        assert repr(Loader(source, columns=["a"])).endswith("\n  a: double>")


def test_it_neither_reads_nor_raises():
    for source in (Silent(), Mix([(Silent(), 1.0)])):
        assert repr(Loader(source, columns=["x"])).startswith("<arrow_dlpack.")
        assert repr(source if isinstance(source, Mix) else 0)
    reader = TABLE.to_reader()
    loader = Loader(reader, columns=["x"])
    assert "x: double" in repr(loader)
    assert sum(len(batch["x"]) for batch in loader) == 3
    assert "x: double" in repr(loader)
    frame = pd.DataFrame({"stopping_strategy": [1], "x": [1.0]})
    assert "pandas.DataFrame, 1 rows" in repr(Loader(frame))
    gc.collect()


def test_files_are_looked_for_when_they_are_read(tmp_path):
    """A check reads what is there; the loop reads what is there by then."""
    loader = Loader(tmp_path, batch_size=1)
    pq.write_table(pa.table({"x": [1, 2]}), tmp_path / "0.parquet")
    assert [batch["x"].tolist() for batch in loader] == [[1], [2]]
    loader = Loader(tmp_path, columns=["x"], batch_size=1)
    pq.write_table(pa.table({"x": [3]}), tmp_path / "1.parquet")
    assert len(loader) == 3
    assert len(list(loader)) == 3
    pq.write_table(pa.table({"x": [3, 4, 5]}), tmp_path / "1.parquet")
    assert len(loader) == 5
    (tmp_path / "2.parquet").touch()  # not written yet
    pq.write_table(pa.table({"x": [6]}), tmp_path / "3.parquet")
    half = Loader(tmp_path / "2.parquet", columns=["x"])
    pq.write_table(pa.table({"x": [7]}), tmp_path / "2.parquet")
    assert [batch["x"].tolist() for batch in half] == [[7]]


def test_what_is_shown_is_in_no_way_of_a_terminal_or_a_secret():
    odd = Loader(pa.table({"\x1b[31m\u202e": [1]}))
    assert repr(odd).endswith("\\x1b[31m\\u202e: int64>")
    assert "SECRET" not in repr(Loader("s3://KEY:SECRET@bucket/x"))
    assert "Loader object" in repr(Loader.__new__(Loader))
    with pytest.raises(ValueError, match="got a Table: a Mix takes pairs"):
        Mix([(1, TABLE)])


@pytest.mark.parametrize("text", ["y == 1 and x > 2", "1 < y", "y != 2026-01-01", "y == x"])
def test_a_text_is_no_filter_and_a_hint_is_one(text):
    with pytest.raises(TypeError, match="got str: pyarrow.compute.field"):
        Loader(TABLE, filter=text)
    with pytest.raises(TypeError, match="did you mean .*field.'y'. == 'a'"):
        Loader(TABLE, filter="y == 'a'")


def test_a_dataset_of_hugging_face_without_rows_has_no_batches():
    rows = datasets.Dataset(pa.table({"x": [1.0, 2.0]}))
    none = rows.select([])
    assert list(Loader(none)) == list(Loader(none, columns=["x"], filter=pc.field("x") > 1)) == []
    (batch,) = Loader(Mix([(none, 1), (rows, 1)]))
    assert batch["x"].tolist() == [1, 2]


COLUMNS = {
    "array": pa.array([1]),
    "chunks": pa.chunked_array([[1]]),
    "extension": pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1], pa.int8())),
    "Array": Array(pa.array([1])),
    "pandas": pd.Series([1], name="x"),
    "objects of pandas": pd.Series([1], name="x", dtype=object),
    "polars": pl.Series("x", [1]),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_one_column_is_no_table(name):
    x = COLUMNS[name]
    with pytest.raises(TypeError, match=r'one column: pass pyarrow.table\({"x": x}\)'):
        Loader(x)
    with pytest.raises(TypeError, match="columns and label are for tables"):
        Loader(x, columns=["x"])
    for source in [x], [TABLE, x], [x, TABLE], Mix([(x, 1)]):
        with pytest.raises(TypeError, match=r'one column: pyarrow.table\({"x": x}\) makes a table'):
            list(Loader(source))
    for source in pa.table({"x": x}), [pa.table({"x": x})]:
        (batch,) = Loader(source)
        assert batch["x"].tolist() == [1]
    (batch,) = Loader(x, format="matrix")
    assert batch.tolist() == [1]


def test_a_column_of_pandas_that_occurs_twice_is_told_when_it_is_made():
    for values in [1.0, 2.0], [object(), object()]:
        frame = pd.DataFrame([[values[0], 5, values[1]]], columns=["x", "y", "x"])
        for source in frame, [frame], Mix([(frame, 1)]):
            for options in {}, {"label": "y"}, {"columns": ["x"]}, {"columns": {"x": AsArrow()}}:
                with pytest.raises(KeyError, match='2 columns are called "x"'):
                    Loader(source, **options)
            (batch,) = Loader(source, columns=["y"])
            assert batch["y"].tolist() == [5]
        with pytest.raises(KeyError, match='filter= names column "x", and 2 columns are called so'):
            Loader(frame, columns=["y"], filter=pc.field("x") > 1)
        with pytest.raises(KeyError, match='filter= names column "none", and there is none'):
            Loader(frame, columns=["y"], filter=pc.field("none") > 1)
        assert len(list(Loader(frame, columns=["y"], filter=pc.field("y") > 1))) == 1


@pytest.mark.parametrize("index", [[True, False], ["a", "b"], [1, "a"]])
def test_an_index_of_objects_is_known_when_it_is_read(index):
    frame = pd.DataFrame({"x": [1.0, 2.0]}, index=pd.Index(index, name="k", dtype=object))
    (batch,) = Loader(frame, columns=["x"])
    assert batch["x"].tolist() == [1, 2]
    if index != [1, "a"]:
        wishes = {"x": None, "k": AsArrow()}
        assert len(list(Loader(frame, columns=wishes, filter=pc.field("k") == index[0]))) == 1


def test_a_filter_is_true_or_false():
    for source in TABLE, [TABLE, TABLE], iter([TABLE]):
        with pytest.raises(TypeError, match=r"true or false of each row, and .* is (double|int64)"):
            list(Loader(source, columns=["x"], filter=pc.field("x") + 1))


@pytest.mark.parametrize("ending", ["table", "parquet", "arrow"])
@pytest.mark.parametrize(
    "options",
    [{}, {"columns": ["x"]}, {"columns": {"x": Cast("float32")}}, {"label": "x", "columns": ["y"]},
     {"filter": pc.field("x") > 0, "columns": ["y"]}],
    ids=["all", "named", "cast", "label", "filter"],
)  # fmt: skip
def test_two_columns_of_one_name_are_told_when_it_is_made(tmp_path, ending, options):
    table = pa.Table.from_arrays([pa.array([1]), pa.array([3]), pa.array([5])], ["x", "x", "y"])
    source = table if ending == "table" else str(tmp_path / f"a.{ending}")
    if ending == "parquet":
        pq.write_table(table, source)
    elif ending == "arrow":
        with pa.ipc.new_file(source, table.schema) as file:
            file.write_table(table)
    with pytest.raises(KeyError, match="2 columns are called"):
        Loader(source, **options)
    (batch,) = Loader(source, columns=["y"])
    assert np.asarray(batch["y"]).tolist() == [5]


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
@pytest.mark.parametrize("rows", [0, 2])
def test_columns_of_one_name_that_are_not_read_do_no_harm(tmp_path, ending, rows):
    some = pa.array([1, 2][:rows], "int64")
    table = pa.Table.from_arrays([some, some, some], ["x", "x", "y"])
    path = str(tmp_path / f"a.{ending}")
    if ending == "parquet":
        pq.write_table(table, path)
    else:
        with pa.ipc.new_file(path, table.schema) as file:
            file.write_table(table)
    form = ds.ParquetFileFormat() if ending == "parquet" else ds.IpcFileFormat()
    system = pafs.LocalFileSystem()
    made = ds.FileSystemDataset([form.make_fragment(path, system)], table.schema, form, system)
    for source in path, [path, path], made:
        for options in {}, {"filter": pc.field("y") > 0}:
            batches = list(Loader(source, columns=["y"], **options))
            read = [number for batch in batches for number in np.asarray(batch["y"]).tolist()]
            assert read == some.to_pylist() * (1 + isinstance(source, list))
    with pytest.raises(KeyError, match='2 columns are called "x"'):
        list(Loader(made))


@pytest.mark.parametrize("value", ["0", None])
def test_what_pads_is_a_number(value):
    with pytest.raises(TypeError, match="value must be a number, got"):
        Pad(value)


STREAMS = {
    "generator": lambda table: (part for part in table.to_batches(max_chunksize=1)),
    "function": lambda table: lambda index, count: iter([table]),
    "frames": lambda table: iter([table.to_pandas()]),
    "lazy frame": lambda table: pl.from_arrow(table).lazy(),
    "mix": lambda table: Mix([(iter([table]), 1)]),
}


@pytest.mark.parametrize("form", STREAMS)
@pytest.mark.parametrize(
    "options",
    [
        {"columns": ["none"]},
        {"columns": ["x", "none"]},
        {"columns": ["x", "none.a"]},
        {"columns": ["x"], "label": "none"},
        {"columns": ["x", "none"], "filter": pc.field("y") > 0},
        {"columns": {"x": None, "none": Categories([1])}},
    ],
)
def test_a_column_that_a_stream_lacks_is_told_with_all_that_it_has(form, options):
    source = STREAMS[form](pa.table({"x": [1], "y": [2], "z": [3]}))
    with pytest.raises(KeyError, match=r'no column "none.*x.*y.*z'):
        list(Loader(source, **options))


UNREADABLE = pd.Series([object(), 1], dtype=object)


@pytest.mark.parametrize("name", ["idx", None])
@pytest.mark.parametrize("form", ["frame", "list", "iterator", "mix"])
def test_a_level_of_pandas_is_read_beside_a_column_that_does_not_convert(name, form):
    frame = pd.DataFrame({"x": [1.0, 2.0], "o": UNREADABLE.to_numpy()})
    frame.index = pd.Index([7, 0], name=name)
    forms = {
        "frame": lambda: frame,
        "list": lambda: [frame],
        "iterator": lambda: iter([frame]),
        "mix": lambda: Mix([(frame, 1)]),
    }
    level = name or "__index_level_0__"
    (batch,) = Loader(forms[form](), columns=["x"], filter=pc.field(level) > 1)
    assert batch["x"].tolist() == [1]
    ((features, labels),) = Loader(forms[form](), columns=["x"], label=level, batch_size=2)
    assert (features["x"].tolist(), labels.tolist()) == ([1, 2], [7, 0])
    assert to_tensor(frame, columns=["x", level]).tolist() == [[1, 7], [2, 0]]
    with pytest.raises(pa.ArrowInvalid, match="Conversion failed for column o"):
        list(Loader(forms[form](), columns=["x"], filter=pc.field("o") == "a"))
    for options in {}, {"columns": {"o": Categories(["a"])}}:
        with pytest.raises(pa.ArrowInvalid, match="Conversion failed for column o"):
            list(Loader(forms[form](), **options))


def test_levels_of_pandas_that_do_not_convert_are_left_out():
    frame = pd.DataFrame({"x": [1.0, 2.0]})
    frame.index = pd.MultiIndex.from_tuples([(object(), 5), (1, 4)])
    assert to_tensor(frame, columns=["x", "__index_level_1__"]).tolist() == [[1, 5], [2, 4]]
    (batch,) = Loader(frame, columns=["x"], filter=pc.field("__index_level_1__") > 4)
    assert batch["x"].tolist() == [1]


@pytest.mark.parametrize("make", [Loader, iter_batches, lambda source: Mix([(source, 1)])])
def test_a_connection_that_may_be_called_is_no_function(make):
    connection = sqlite3.connect(":memory:")
    assert callable(connection)
    with pytest.raises(TypeError, match=r"got Connection: .* pandas\.read_sql\(query, x\)"):
        make(connection)
