"""One source has one schema, of all its parts, or an error that names part and column."""

import datetime
import decimal
import itertools
import re

import datasets
import duckdb
import numpy as np
import pandas
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from arrow_dlpack import AsArrow, Cast, Categories, Dense, Loader, Mix, Pad
from arrow_dlpack._loader.merging import merged


def plain(value):
    """A batch as Python's own values."""
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    if hasattr(value, "__arrow_c_array__") and not hasattr(value, "__dlpack__"):
        return pa.array(value).to_pylist()
    return value.tolist() if hasattr(value, "tolist") else pa.array(value).to_pylist()


def write(folder, tables):
    for at, table in enumerate(tables):
        pq.write_table(table, folder / f"{at}.parquet", row_group_size=2)
    return str(folder)


KINDS = {
    "list": lambda folder, tables: tables,
    "files": write,
    "mix": lambda folder, tables: Mix([(table, 1) for table in tables]),
    "list of frames": lambda folder, tables: [polars.from_arrow(table) for table in tables],
}


@pytest.fixture(params=KINDS)
def source(request, tmp_path):
    if request.param == "list of frames":
        return lambda *columns: [
            polars.DataFrame({"x": pa.chunked_array([one])}) for one in columns
        ]
    return lambda *columns: KINDS[request.param](
        tmp_path, [pa.table({"x": one}) for one in columns]
    )


def values_of(source, **options):
    batches = list(Loader(source, framework="numpy", batch_size=100, **options))
    return [value for batch in batches for value in plain(batch["x"])]


WIDER = [
    (pa.array([0.5], pa.float32()), pa.array([1e300, 16777217]), "float64"),
    (pa.array([1], pa.int8()), pa.array([2**40], pa.int64()), "int64"),
    (pa.array([1], pa.uint8()), pa.array([2**30], pa.uint32()), "uint32"),
    (pa.array([-1], pa.int32()), pa.array([2**32 - 1], pa.uint32()), "int64"),
    (pa.array([-1], pa.int64()), pa.array([2**32 - 1], pa.uint32()), "int64"),
    (pa.array([-1], pa.int8()), pa.array([255], pa.uint8()), "int16"),
    (pa.array([2**31 - 1], pa.int32()), pa.array([0.5], pa.float32()), "float64"),
    (pa.array([7], pa.uint32()), pa.array([0.5]), "float64"),
]


@pytest.mark.parametrize(("one", "other", "dtype"), WIDER)
def test_numbers_widen_to_what_has_them_all(source, one, other, dtype):
    for first, second in ((one, other), (other, one)):
        loader = Loader(source(first, second), framework="numpy", batch_size=100)
        (batch,) = loader
        assert batch["x"].dtype == dtype
        assert sorted(batch["x"].tolist()) == sorted(first.to_pylist() + second.to_pylist())


DIFFER = {
    "bool, int": (pa.array([True]), pa.array([7])),
    "int64, float": (pa.array([2**60 + 1]), pa.array([0.5])),
    "uint64, int8": (pa.array([2**63], pa.uint64()), pa.array([-1], pa.int8())),
    "scales": (
        pa.array([decimal.Decimal("1.5")], pa.decimal128(5, 1)),
        pa.array([decimal.Decimal("1.234")], pa.decimal128(5, 3)),
    ),
    "date, time": (pa.array([0], pa.date32()), pa.array([43_200_000], pa.timestamp("ms"))),
    "units": (pa.array([1], pa.timestamp("us")), pa.array([1], pa.timestamp("ms"))),
    "zones": (pa.array([1], pa.timestamp("s", "UTC")), pa.array([1], pa.timestamp("s"))),
    "text, int": (pa.array(["1"]), pa.array([1])),
    "fixed sizes": (
        pa.array([[1.0, 2.0]], pa.list_(pa.float64(), 2)),
        pa.array([[1.0, 2.0, 3.0]], pa.list_(pa.float64(), 3)),
    ),
    "bool, int in lists": (pa.array([[True]]), pa.array([[7]])),
    "text, binary": (pa.array(["a"]), pa.array([b"a"])),
}


@pytest.mark.parametrize("name", DIFFER)
@pytest.mark.parametrize("kind", ["list", "files", "mix"])
def test_other_types_are_refused_by_part_and_column(name, kind, tmp_path):
    tables = [pa.table({"x": column, "y": [1]}) for column in DIFFER[name]]
    source = KINDS[kind](tmp_path, tables)
    parts = {"list": "part 1", "files": "1.parquet", "mix": "source 1"}[kind]
    if kind == "files":
        tables = [pq.read_table(tmp_path / f"{at}.parquet") for at in range(2)]
    one, other = (str(table["x"].type) for table in tables)
    for options in {}, {"shuffle": 10, "seed": 1}, {"rank": 0, "world_size": 2, "uneven": "allow"}:
        with pytest.raises(TypeError) as raised:
            list(Loader(source, batch_size=1, columns={"x": AsArrow()}, **options))
        for told in ('column "x"', parts, one, other):
            assert told in str(raised.value)
    # A column that is not read does not matter.
    assert len(list(Loader(source, columns=["y"], batch_size=1))) == 2


def test_the_ways_out_of_an_error_work(tmp_path):
    tables = [pa.table({"x": [1]}), pa.table({"x": [0.5]})]
    for kind in "list", "files", "mix":
        source = KINDS[kind](tmp_path, tables)
        with pytest.raises(TypeError, match=r'Cast\("float64"\)\} or dtype="float64"'):
            list(Loader(source))
        assert values_of(source, columns={"x": Cast("float64")}) == [1.0, 0.5]
        assert values_of(source, dtype="float64") == [1.0, 0.5]
    paths = [str(tmp_path / f"{at}.parquet") for at in range(2)]
    schema = pa.schema([("x", pa.float64())])
    assert values_of(ds.dataset(paths, schema=schema)) == [1.0, 0.5]
    assert values_of([pa.table(table).cast(schema) for table in tables]) == [1.0, 0.5]


@pytest.mark.parametrize("kind", ["list", "files", "mix"])
@pytest.mark.parametrize("options", [{}, {"shuffle": 8, "seed": 2}])
def test_a_wish_settles_the_type(kind, options, tmp_path):
    """Each part is converted by the wish: values are those of the part alone."""
    columns = [
        pa.array([True, None]),
        pa.array([2**60 + 1, 3]),
        pa.array([0.1, None]),
        pa.array([decimal.Decimal("1.234")], pa.decimal128(5, 3)),
    ]
    source = KINDS[kind](tmp_path, [pa.table({"x": column}) for column in columns])
    for dtype in "float32", "float64":
        wish = Cast(dtype, nulls=-1)
        expected = np.array([1, -1, 2**60 + 1, 3, 0.1, -1, 1.234], dtype).tolist()
        found = values_of(source, columns={"x": wish}, **options)
        assert sorted(found) == sorted(expected)
        assert sorted(values_of(source, dtype=dtype, nulls=-1, **options)) == sorted(expected)
    # A label has its own dtype.
    with pytest.raises(TypeError, match='column "x"'):
        list(Loader(source, columns=[], label="x", dtype="float32"))
    wish = {"x": Cast("int64", nulls=0)}
    with pytest.raises(TypeError, match='"x" is bool in .* and decimal128.* converts both'):
        values_of(source, columns=wish)
    (tmp_path / "numbers").mkdir()
    tables = [pa.table({"x": column}) for column in columns[:3]]
    with pytest.raises(ValueError, match=r"0\.1.*does not fit int64"):
        values_of(KINDS[kind](tmp_path / "numbers", tables), columns=wish)


def test_lists_are_converted_by_a_wish(source):
    one = pa.array([[1, 2**60], None, [3]])
    other = pa.array([[0.5], []], pa.large_list(pa.float64()))
    wish = {"x": Pad(0, dtype="float64", max_length=2)}
    (batch,) = Loader(source(one.drop_null(), other), columns=wish, framework="numpy", batch_size=9)
    assert sorted(batch["x"].values.tolist()) == [[0, 0], [0.5, 0], [1, 2**60], [3, 0]]
    pairs = (
        pa.array([[1, 2]], pa.list_(pa.int64(), 2)),
        pa.array([[0.5, 1]], pa.list_(pa.float64(), 2)),
    )
    (batch,) = Loader(source(*pairs), dtype="float32", framework="numpy", batch_size=9)
    assert batch["x"].tolist() == [[1, 2], [0.5, 1]]


ENCODINGS = [
    pa.array(["a", None]),
    pa.array(["b"], pa.large_string()),
    pa.array(["c"], pa.string_view()),
    pa.array(["d"]).dictionary_encode(),
    pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), pa.array(["e"], pa.large_string())),
    pa.nulls(1),
]


@pytest.mark.parametrize("first", range(len(ENCODINGS)))
def test_texts_in_any_encoding_are_one_type(first, source):
    columns = ENCODINGS[first:] + ENCODINGS[:first]
    expected = [text for column in columns for text in column.to_pylist()]
    sort = {"key": str}
    found = values_of(source(*columns), columns={"x": AsArrow()})
    assert sorted(found, **sort) == sorted(expected, **sort)
    codes = values_of(source(*columns), columns={"x": Categories.scan(nulls=-1)})
    assert sorted(codes) == [-1, -1, 0, 1, 2, 3, 4]
    where = pc.field("x") != "c"
    kept = values_of(source(*columns), columns={"x": AsArrow()}, filter=where)
    assert sorted(kept) == ["a", "b", "d", "e"]


def test_nested_fields_are_found_by_name(source):
    one = pa.array([{"a": 1, "b": "x"}, None], pa.struct([("a", pa.int32()), ("b", pa.string())]))
    other = pa.array(
        [{"b": "y", "a": 0.5}], pa.struct([("b", pa.large_string()), ("a", pa.float64())])
    )
    expected = [{"a": 1, "b": "x"}, None, {"a": 0.5, "b": "y"}]
    found = values_of(source(one, other), columns={"x": AsArrow()})
    assert sorted(found, key=str) == sorted(expected, key=str)
    found = list(Loader(source(one, other), columns=["x.a"], nulls="nan", batch_size=9))
    assert np.nansum(np.asarray(found[0]["x.a"])) == 1.5
    lacks = pa.array([{"b": "y"}])
    with pytest.raises(TypeError, match='column "x"'):
        values_of(source(one, lacks), columns={"x": AsArrow()})


def test_unread_fields_of_a_struct_do_not_matter(source):
    one, other = pa.array([{"a": 1, "b": "x"}]), pa.array([{"a": 2, "b": True}])
    if isinstance(source(one, one), Mix | list | str):
        (batch,) = Loader(source(one, other), columns=["x.a"], framework="numpy", batch_size=9)
        assert sorted(batch["x.a"].tolist()) == [1, 2]


@pytest.mark.parametrize("kind", ["list", "files", "mix"])
def test_a_missing_column_is_refused_unless_its_own_wish_fills_it(kind, tmp_path):
    tables = [pa.table({"x": [1.0], "Age": [3]}), pa.table({"x": [2.0], "age": [4]})]
    source = KINDS[kind](tmp_path, tables)
    for columns in None, ["x", "Age"], ["x", "age"]:
        with pytest.raises(KeyError, match=r'column "[Aa]ge" is in .* and not in .*which has "'):
            list(Loader(source, columns=columns, nulls="nan"))
    columns = {"x": None, "Age": Cast("float64", nulls="nan"), "age": Cast("int64", nulls=0)}
    batches = list(Loader(source, columns=columns, framework="numpy", batch_size=9))
    order = np.argsort(batches[0]["x"])
    assert np.array_equal(batches[0]["Age"][order], [3, np.nan], equal_nan=True)
    assert batches[0]["age"][order].tolist() == [0, 4]
    words = {"x": None, "Age": Categories([3], nulls=-1)}
    (batch,) = Loader(source, columns=words, framework="numpy", batch_size=9)
    assert sorted(batch["Age"].tolist()) == [-1, 0]
    scan = {"x": None, "Age": Categories.scan(nulls=-1)}
    (batch,) = Loader(source, columns=scan, framework="numpy", batch_size=9)
    assert sorted(batch["Age"].tolist()) == [-1, 0]
    with pytest.raises(KeyError, match="nothing"):
        list(Loader(source, columns={"nothing": Cast("float64", nulls=0)}))


LACKED = {
    "numbers": (pa.array([1, 2]), ['Cast("float64", nulls="nan")', "Categories(words, nulls=-1)"]),
    "decimals": (
        pa.array([decimal.Decimal("1.5")] * 2),
        ['Cast("float64", nulls="nan")', "Categories(words, nulls=-1)"],
    ),
    "texts": (pa.array(["a", "b"]), ["Categories(words, nulls=-1)"]),
    "codes": (pa.array(["a", "b"]).dictionary_encode(), ["Categories(words, nulls=-1)"]),
    "times": (pa.array([1, 2], pa.timestamp("us")), ["Categories(words, nulls=-1)"]),
    "lists": (pa.array([[1], [1, 2]]), ["Pad(0, nulls=0)"]),
    "list views": (pa.array([[1], [1, 2]], pa.list_view(pa.int64())), ["Pad(0, nulls=0)"]),
    "fixed lists": (
        pa.array([[1, 2]] * 2, pa.list_(pa.int64(), 2)),
        ['Cast("float64", nulls="nan")'],
    ),
    "tensors": (
        pa.FixedShapeTensorArray.from_numpy_ndarray(np.ones((2, 2, 2))),
        ['Cast("float64", nulls="nan")'],
    ),
    "lists of texts": (pa.array([["a"], ["b"]]), []),
    "lists of lists": (pa.array([[[1]], [[2], [3]]]), []),
    "structs": (pa.array([{"a": 1}] * 2), []),
    "codes of structs": (pa.DictionaryArray.from_arrays([0, 0], pa.array([{"a": 1}])), []),
}


@pytest.mark.parametrize("argument", ["columns", "label"])
@pytest.mark.parametrize("of", list(LACKED))
def test_a_missing_column_has_a_way_out_for_its_type(of, argument):
    column, wishes = LACKED[of]
    parts = [pa.table({"x": [1, 2], "c": column}), pa.table({"x": [3, 4]})]
    asked = {"columns": ["x", "c"]} if argument == "columns" else {"columns": ["x"], "label": "c"}
    with pytest.raises(KeyError) as raised:
        Loader(parts, **asked)
    told = re.split("not in [^:]+", raised.value.args[0])[1]
    leaves = "columns= leaves it out, or " if argument == "columns" else ""
    gives = "give each part the column, of nulls where there are no values"
    if not wishes:
        assert told == f": {leaves}{gives}"
        parts[1] = parts[1].append_column("c", pa.nulls(2, column.type))
        wishes = ["AsArrow()"]
    else:
        way = f'{argument}={{"c": {wishes[0]}}}'
        ways = " or ".join([way, *wishes[1:]])
        assert told == f": {leaves}its own wish says what stands for it, as {ways}, or {gives}"
    for text in wishes:
        words = sorted(set(column.to_pylist())) if "words" in text else ()
        wish = eval(text, globals(), {"words": words})
        asked = {"columns": {"x": None, "c": wish}}
        if argument == "label":
            asked = {"columns": ["x"], "label": {"c": wish}}
        assert len(list(Loader(parts, batch_size=2, **asked))) == 2
    with pytest.raises(KeyError, match=": columns= leaves it out, or give each part the column"):
        Loader([parts[0], parts[0].select(["x"])], columns={"x": None, "c": AsArrow()})
    if of == "numbers":
        given = [parts[0], parts[1].append_column("c", pa.nulls(2))]
        options = {"format": "matrix", "nulls": "nan", "framework": "numpy", "batch_size": 9}
        (matrix,) = Loader(given, columns=["x", "c"], **options)
        assert np.isnan(matrix[2:, 1]).all()


def test_columns_are_found_by_name_in_any_order(tmp_path):
    tables = [pa.table({"x": [1], "y": [2]}), pa.table({"y": [4], "x": [3]})]
    for kind in "list", "files", "mix":
        (matrix,) = Loader(
            KINDS[kind](tmp_path, tables), format="matrix", framework="numpy", batch_size=9
        )
        assert matrix.tolist() == [[1, 2], [3, 4]]


def test_an_index_of_pandas_is_no_column_of_a_part():
    frame = pandas.DataFrame({"x": [1.0, 2.0, 3.0]})
    parts = [frame, frame[frame.x > 1], frame.set_index(pandas.Index(list("abc"), name="k"))]
    for source in parts, iter(parts):
        (matrix,) = Loader(source, format="matrix", framework="numpy", batch_size=9)
        assert matrix.ravel().tolist() == [1, 2, 3, 2, 3, 1, 2, 3]


@pytest.mark.parametrize(
    ("first", "later", "kind"),
    [
        ([1], [0.5], TypeError),
        (pa.array([0.5], pa.float32()), [1e300], TypeError),
        ([True], [7], TypeError),
        (pa.array([1], pa.int32()), [2**40], TypeError),
    ],
)
def test_a_later_batch_of_a_stream_may_have_no_other_type(first, later, kind):
    parts = [pa.table({"x": first, "y": [1]}), pa.table({"x": later, "y": [1]})]
    for options in {"columns": ["x"]}, {"columns": ["y"], "filter": pc.field("x").is_valid()}, {}:
        with pytest.raises(kind, match='column "x" is .* in the first batch and .* in batch 1'):
            list(Loader(iter(parts), batch_size=1, nulls="nan", **options))
    assert len(list(Loader(iter(parts), columns=["y"], batch_size=1))) == 2
    with pytest.raises(KeyError, match='column "x" is in the first batch and not in batch 1'):
        list(Loader(iter([parts[0], parts[0].drop(["x"])]), batch_size=1))


@pytest.mark.parametrize(
    ("first", "later"), [([1], [0.5]), (pa.array([1], pa.int32()), [2**40]), (["a"], [1])]
)
def test_a_list_of_what_a_stream_refuses_is_a_way_where_it_is_read(first, later):
    parts = [pa.table({"x": first}), pa.table({"x": later})]
    wish = {"columns": {"x": AsArrow()}}
    with pytest.raises(TypeError, match="one schema: cast each batch to one type") as refused:
        list(Loader(iter(parts), **wish))
    if "a list of them" in str(refused.value):
        assert len(list(Loader(parts, **wish))) == 2
    else:
        with pytest.raises(TypeError, match='column "x" is .* in part 0 and .* in part 1'):
            list(Loader(parts, **wish))
    with pytest.raises(KeyError, match="one schema: give each batch the same columns'"):
        list(Loader(iter([parts[0].append_column("y", [[1]]), parts[1]]), columns=["y"]))


def test_a_later_batch_of_a_stream_may_have_another_encoding():
    parts = (pa.table({"x": column}) for column in ENCODINGS)
    assert values_of(parts, columns={"x": AsArrow()}) == ["a", None, "b", "c", "d", "e", None]


EMPTY, NO_ITEM = pa.array([[]], pa.list_(pa.null())), pa.array([{"a": None}])
CODED = pa.array(["a"]).dictionary_encode()
LARGE = pa.array([[1.5]], pa.large_list(pa.float64()))


@pytest.mark.parametrize(
    ("name", "wish", "columns", "expected"),
    [
        ("x", Pad(0), ([[1.5]], EMPTY), [[1.5], [0]]),
        ("x", Pad(0, nulls=0), (EMPTY, pa.nulls(1), LARGE), None),
        ("x", Pad(0), ([[1]], EMPTY), [[1], [0]]),
        ("x.a", Cast("float32", nulls=-1), ([{"a": 1}], NO_ITEM), [1, -1]),
        ("x.a", Cast("float32", nulls=-1), (NO_ITEM, [{"a": 1}]), [-1, 1]),
        ("x", Cast("float32", nulls=-1), (pa.nulls(1), pa.nulls(1), [1]), [-1, -1, 1]),
        ("x", Cast("float32", nulls=-1), (pa.nulls(1), pa.nulls(1)), [-1, -1]),
        (
            "x",
            Categories(["a"], nulls=-1),
            (pa.nulls(1), pa.array(["a"]).dictionary_encode()),
            None,
        ),
        ("x", Categories.scan(nulls=-1), (pa.nulls(1), ["a"]), [-1, 0]),
    ],
)
@pytest.mark.parametrize("form", ["stream", "shuffled", "mix", "filter"])
def test_nulls_alone_are_of_the_type_that_other_batches_of_a_stream_have(
    name, wish, columns, expected, form
):
    def stream(index=0, count=1):
        return (pa.table({"y": [at], "x": own}) for at, own in enumerate(columns))

    source = Mix([(stream(), 1)]) if form == "mix" and not is_scan(wish) else stream
    options = {"filter": pc.field("y") >= 0} if form == "filter" else {}
    options |= {"shuffle": 2, "seed": 1} if form == "shuffled" else {}
    loader = Loader(source, columns={"y": None, name: wish}, batch_size=9, **options)
    (batch,) = loader
    values = plain(batch[name][0] if isinstance(wish, Pad) else batch[name])
    (of_list,) = Loader(list(stream()), columns={name: wish}, batch_size=9)
    whole = plain(of_list[name][0] if isinstance(wish, Pad) else of_list[name])
    assert expected in (None, whole)
    assert values == [whole[at] for at in plain(batch["y"])]


def is_scan(wish):
    return isinstance(wish, Categories) and wish.words is None


def test_a_filter_and_a_state_take_a_stream_that_begins_with_nulls():
    columns = pa.nulls(2), ["ab", "b"], ["aa"]

    def stream(index, count):
        return (pa.table({"x": own}) for own in columns)

    where = pc.starts_with(pc.field("x"), "a")
    assert values_of(stream, columns={"x": AsArrow()}, filter=where) == ["ab", "aa"]
    loader, other = (Loader(stream, columns={"x": AsArrow()}, batch_size=2) for _ in range(2))
    epoch = iter(loader)
    assert plain(next(epoch)["x"]) == [None, None]
    other.load_state_dict(loader.state_dict())
    assert [plain(batch["x"]) for batch in other] == [["ab", "b"], ["aa"]]


def test_a_stream_of_many_batches_of_nulls_is_cast():
    last = pa.table({"x": [1]})
    for count, rows in (20, 1), (20, 0), (300, 100), (15, 10**5):
        parts = [pa.table({"x": pa.nulls(rows)})] * count + [last]
        found = values_of(iter(parts), columns={"x": Cast("float32", nulls=-1)})
        assert found == [-1] * (count * rows) + [1]
    parts = [pa.table({"x": pa.nulls(10**4)})] * 20 + [last]
    with pytest.raises(TypeError, match="null in the first batch and int64 in .*cast each batch"):
        values_of(iter(parts), columns={"x": Cast("float32", nulls=-1)})
    cast = (part.cast(last.schema) for part in parts)
    assert values_of(cast, nulls=-1) == [-1] * (20 * 10**4) + [1]


VIEWS = pa.array([[9], [1, 2], None, []], pa.list_view(pa.int64())).slice(1)
RUNS = pa.RunEndEncodedArray.from_arrays([1, 2, 3], [5, None, 6])
UNION = pa.UnionArray.from_sparse(pa.array([0, 0, 0], pa.int8()), [pa.array([1, 2, None])])
#: A column, and one in another encoding, or of the same values where its nulls are alone.
BESIDE = {
    "maps": (
        pa.array([[("a", 1)], [], None], pa.map_(pa.string(), pa.int64())),
        pa.array([[("a", None)], None], pa.map_(pa.string(), pa.null())),
    ),
    "maps in lists": (
        pa.array([[[("a", 1)]], [], None], pa.list_(pa.map_(pa.string(), pa.int64()))),
        pa.array([[[("a", None)]], None], pa.list_(pa.map_(pa.string(), pa.null()))),
    ),
    "list views": (VIEWS, pa.array([[None], None, [None]], pa.list_view(pa.null())).slice(1)),
    "large list views": (
        pa.array([[1], None], pa.large_list_view(pa.int64())),
        pa.array([[None], None], pa.large_list_view(pa.null())),
    ),
    "list views of either width": (VIEWS, pa.array([None, [3]], pa.large_list_view(pa.int64()))),
    "list views of either width in maps": (
        pa.array([[("a", [1, 2])], None], pa.map_(pa.string(), pa.list_view(pa.int64()))),
        pa.array([[("b", [3])], None], pa.map_(pa.string(), pa.large_list_view(pa.int64()))),
    ),
    "list views in structs": (
        pa.StructArray.from_arrays([VIEWS], ["a"]),
        pa.array([{"a": [None]}, None], pa.struct({"a": pa.list_view(pa.null())})),
    ),
    "list views in maps": (
        pa.array([[("a", [1, 2])], None], pa.map_(pa.string(), pa.list_view(pa.int64()))),
        pa.array([[("b", [None])], [("c", None)]], pa.map_(pa.string(), pa.list_view(pa.null()))),
    ),
    "list views beside nulls": (VIEWS, pa.nulls(2)),
    "list views in structs beside nulls": (
        pa.StructArray.from_arrays([VIEWS], ["a"]),
        pa.array([{"a": None}, None]),
    ),
    "runs": (RUNS, pa.nulls(2)),
    "unions": (UNION, pa.nulls(2)),
}


@pytest.mark.parametrize("of", BESIDE)
@pytest.mark.parametrize("form", ["list", "ipc", "mix", "stream"])
@pytest.mark.parametrize("turn", [1, -1])
def test_types_that_pyarrow_does_not_cast_go_with_nulls_and_other_widths(of, form, turn, tmp_path):
    columns = BESIDE[of][::turn]
    parts = [pa.table({"x": one}) for one in columns]
    if form == "ipc":
        for at, part in enumerate(parts):
            with pa.ipc.new_file(tmp_path / f"{at}.arrow", part.schema) as file:
                file.write_table(part)
    source = {
        "list": parts,
        "ipc": str(tmp_path),
        "mix": Mix([(part, 1) for part in parts]),
        "stream": iter(parts),
    }[form]
    found = [
        value
        for batch in Loader(source, columns={"x": AsArrow()})
        for value in pa.array(batch["x"]).to_pylist()
    ]
    expected = [value for one in columns for value in one.to_pylist()]
    if form == "mix":
        found, expected = sorted(found, key=str), sorted(expected, key=str)
    assert found == expected


JSON_TEXTS = [
    pa.json_(kind).wrap_array(pa.array(['"a"', None], kind))
    for kind in (pa.string(), pa.large_string(), pa.string_view())
]
OPAQUE_TEXTS = [
    pa.opaque(kind, "name", "vendor").wrap_array(pa.array(["a", None], kind))
    for kind in (pa.string(), pa.large_string(), pa.string_view())
]


@pytest.mark.parametrize("columns", [JSON_TEXTS, OPAQUE_TEXTS], ids=["json", "opaque"])
@pytest.mark.parametrize("form", ["list", "files", "mix", "stream"])
def test_texts_of_extension_types_are_one_type_in_any_encoding(columns, form, tmp_path):
    for some in itertools.permutations(columns, 2):
        parts = [pa.table({"x": one}) for one in some]
        (tmp_path / "all").mkdir(exist_ok=True)
        source = iter(parts) if form == "stream" else KINDS[form](tmp_path / "all", parts)
        found = values_of(source, columns={"x": AsArrow()})
        assert sorted(found, key=str) == sorted(some[0].to_pylist() * 2, key=str)


@pytest.mark.parametrize("kind", ["list", "files of arrow", "mix"])
@pytest.mark.parametrize(
    "make",
    [
        lambda of: pa.array([[], []], pa.list_(of, 0)),
        lambda of: pa.array([[], []], pa.list_(pa.list_(of, 2), 0)),
        lambda of: pa.ExtensionArray.from_storage(
            pa.fixed_shape_tensor(of, [0, 2]), pa.array([[], []], pa.list_(of, 0))
        ),
    ],
)
def test_lists_of_no_numbers_of_two_types_are_converted(tmp_path, kind, make):
    tables = [pa.table({"x": make(of)}) for of in (pa.int64(), pa.float64())]
    if kind == "files of arrow":
        source = [str(tmp_path / f"{at}.arrow") for at in range(2)]
        for path, table in zip(source, tables, strict=True):
            with pa.ipc.new_file(path, table.schema) as writer:
                writer.write_table(table)
    else:
        source = tables if kind == "list" else Mix([(table, 1) for table in tables])
    wish = {"x": Cast("float64")}
    shape = next(iter(Loader(tables[0], columns=wish)))["x"].shape
    found = [batch["x"] for batch in Loader(source, columns=wish, batch_size=1)]
    assert [(own.dtype, own.shape) for own in found] == [("float64", (1, *shape[1:]))] * 4


@pytest.mark.parametrize("wish", [Pad(0, dtype="float64"), Cast("float64")], ids=str)
@pytest.mark.parametrize("values", [[7, 8, 9], [True, False, True]], ids=["int64", "bool"])
def test_a_first_chunk_of_no_rows_in_an_ipc_file_is_read(tmp_path, wish, values):
    """pyarrow writes its offsets, which begin at 1, without the items before: flatten() of that
    ends the process.
    """
    offsets = pa.array([1, 2, 3], "int32")
    rows = pa.ListArray.from_arrays(offsets, pa.array(values))
    chunks = pa.chunked_array([rows.slice(1, 0), rows])
    for name, column in ("a", chunks), ("b", pa.chunked_array([[[1.5]]])):
        with pa.ipc.new_file(tmp_path / f"{name}.arrow", pa.schema([("x", column.type)])) as file:
            file.write_table(pa.table({"x": column}))
    loader = Loader([tmp_path / "a.arrow", tmp_path / "b.arrow"], columns={"x": wish})
    batches = [getattr(batch["x"], "values", batch["x"]) for batch in loader]
    assert np.concatenate(batches).ravel().tolist() == [values[1], values[2], 1.5]


IN_STRUCTS = [
    (pa.list_(pa.null()), [None, None]),
    (pa.large_list(pa.null()), [None]),
    (pa.list_(pa.null(), 2), [None, None]),
    (pa.map_(pa.string(), pa.null()), [("a", None)]),
    (pa.struct([("q", pa.null())]), {"q": None}),
]


@pytest.mark.parametrize(
    ("kind", "inner", "value"),
    # pyarrow writes no lists of one length of nulls to Parquet.
    [
        (kind, *own)
        for kind in ("list", "files", "mix")
        for own in IN_STRUCTS
        if kind != "files" or not pa.types.is_fixed_size_list(own[0])
    ],
    ids=str,
)
def test_nulls_alone_in_structs_stay_where_another_field_widens(tmp_path, kind, inner, value):
    def table(of, start):
        rows = [{"n": start, "tags": value}, None, {"n": start + 1, "tags": value}]
        return pa.table({"m": pa.array(rows, pa.struct([("n", of), ("tags", inner)]))})

    tables = [table(pa.int32(), 0), table(pa.int64(), 2)]
    source = KINDS[kind](tmp_path, tables)
    read = Loader(source, columns={"m": AsArrow()})
    found = sorted(
        (row for batch in read for row in pa.array(batch["m"]).to_pylist() if row is not None),
        key=lambda row: row["n"],
    )
    assert found == [{"n": at, "tags": value} for at in range(4)]
    some = Loader(source, columns=["m.n"], filter=pc.field("m", "n") > 0)
    assert sorted(n for batch in some for n in batch["m.n"].tolist()) == [1, 2, 3]


@pytest.mark.parametrize("physical", [False, True])
@pytest.mark.parametrize(
    "wish", [{"columns": {"x": Cast("float32")}}, {"dtype": "float32"}], ids=str
)
def test_dictionaries_of_numbers_of_two_types_are_no_numbers(wish, physical):
    """Those of one type are not, and with physical=True all are codes."""
    values = pa.array([10, 20]), pa.array([10.5, 20.5], pa.float32())
    parts = [pa.table({"x": own.dictionary_encode()}) for own in values]
    with pytest.raises(TypeError, match=r"part 1: .*\(x\)\.cast\(schema\) casts one") as raised:
        list(Loader(parts, physical=physical, **wish))
    assert "float64" not in str(raised.value)
    lists = [
        pa.table({"x": pa.FixedSizeListArray.from_arrays(own.dictionary_encode(), 2)})
        for own in values
    ]
    with pytest.raises(TypeError, match="dictionary<"):
        list(Loader(lists, physical=physical, **wish))
    plain = [parts[0], pa.table({"x": values[1]})]
    (batch,) = Loader(plain, physical=physical, batch_size=9, **wish)
    assert batch["x"].tolist() == [10, 20, 10.5, 20.5]


def test_words_that_a_dictionary_lacks_are_told_with_their_column():
    """pyarrow makes index 0 of no words of what is null."""
    kinds = pa.dictionary(pa.int32(), pa.string()), pa.large_string()
    parts = [
        pa.table({"x": pa.array([{"a": None}, None], pa.struct([("a", own)]))}) for own in kinds
    ]
    with pytest.raises(IndexError, match='column "x": '):
        list(Loader(parts, columns={"x": AsArrow()}))


@pytest.mark.parametrize("form", ["list", "files", "mix", "mix of files"])
def test_a_filter_on_a_name_that_occurs_twice_is_refused_by_name(form, tmp_path):
    def twice(of):
        return pa.Table.from_arrays([pa.array([of])] * 3, ["a", "a", "x"])

    once = pa.table({"a": [1], "x": [1]})
    for at, parts in enumerate([[twice(1), twice(2)], [twice(1), once], [once, twice(1)]]):
        (tmp_path / f"{at}").mkdir()
        if form == "mix of files":
            source = Mix([(write(tmp_path / f"{at}", parts), 1), (once, 1)])
        else:
            source = KINDS[form](tmp_path / f"{at}", parts)
        with pytest.raises(KeyError, match='filter= names column "a", and 2 columns .*called so'):
            list(Loader(source, columns=["x"], filter=pc.field("a") > 0))


@pytest.mark.parametrize(
    "values",
    [
        pa.array([5, None, 6]),
        pa.array([0.5, None, 1.5]),
        pa.array([True, None, False]),
        pa.array([1, None, 2], pa.date32()),
        pa.array([1, None, 2], pa.decimal128(5, 1)),
        pa.array([b"ab", None, b"cd"], pa.binary(2)),
        pa.array(["ab", None, "cd"]),
    ],
    ids=lambda values: str(values.type),
)
@pytest.mark.parametrize("form", ["plain", "struct", "list", "fixed list"])
def test_a_stream_of_a_dictionary_and_then_plain_values_is_of_one_type(values, form):
    """pyarrow makes dictionaries of texts and binaries alone."""

    def column(array):
        if form == "struct":
            return pa.StructArray.from_arrays([array, array], ["a", "b"]).slice(1)
        if form == "list":
            return pa.ListArray.from_arrays([0, 1, 1, 3], array).slice(1)
        return pa.FixedSizeListArray.from_arrays(array, 3) if form == "fixed list" else array

    coded, plain_ones = column(values.dictionary_encode()), column(values[::-1])
    expected = coded.to_pylist() + plain_ones.to_pylist()
    tables = [pa.table({"x": coded}), pa.table({"x": plain_ones})]
    for where in None, pc.field("y") >= 0:
        parts = (one.append_column("y", [list(range(len(one)))]) for one in tables)
        (batch,) = Loader(parts, columns={"x": AsArrow()}, filter=where, batch_size=9)
        assert plain(batch["x"]) == expected
    if form == "plain":
        words = list(dict.fromkeys(values.drop_null().to_pylist()))
        (batch,) = Loader(iter(tables), columns={"x": Categories(words, nulls=-1)}, batch_size=9)
        assert batch["x"].tolist() == [0, -1, 1, 1, -1, 0]
        (batch,) = Loader(iter(tables), physical=True, nulls=-1, batch_size=9)
        assert batch["x"].tolist() == [0, -1, 1, 1, -1, 0]


def test_a_later_batch_of_a_stream_has_no_column_in_place_of_a_field():
    first = pa.table({"m": pa.array([{"a": 1}])})
    later = first.append_column("m.a", pa.array([20]))
    told = 'column "m.a" is in batch 1 and not in the first batch'
    with pytest.raises(KeyError, match=told):
        list(Loader(iter([first, later]), columns=["m.a"]))
    assert [batch["m.a"].tolist() for batch in Loader([first, later], columns=["m.a"])] == [
        [1],
        [20],
    ]


def test_a_stream_tells_which_batch_said_a_type():
    def batch(kind, inner):
        struct = pa.struct([("a", kind), ("b", inner)])
        return pa.table({"m": pa.array([None], struct), "x": pa.nulls(1, kind)})

    null, text, whole = pa.null(), pa.string(), pa.int64()
    kinds = [(null, null), (whole, null), (whole, whole), (text, whole), (text, whole)]
    with pytest.raises(TypeError, match='"m" is .* in batch 2 and .* in batch 3, and a stream'):
        list(Loader((batch(*kind) for kind in kinds), columns={"m": AsArrow()}))
    with pytest.raises(TypeError, match='"x" is int64 in batch 1 and string in batch 3, and'):
        list(Loader((batch(*kind) for kind in kinds), columns={"x": AsArrow()}))
    with pytest.raises(TypeError, match='"x" is int64 in the first batch and string in batch 2'):
        list(Loader((batch(*kind) for kind in kinds[1:]), columns={"x": AsArrow()}))


def test_frames_of_read_csv_in_chunks_have_one_schema(tmp_path):
    file = tmp_path / "x.csv"
    file.write_text("x\n1\n2\n3\n0.5\n")
    with pytest.raises(TypeError, match='column "x" is int64 in the first batch and double in b'):
        list(Loader(pandas.read_csv(file, chunksize=2)))
    told = pandas.read_csv(file, chunksize=2, dtype={"x": "float64"})
    assert values_of(told) == [1, 2, 3, 0.5]


def test_of_csv_the_first_blocks_decide_and_a_later_value_is_told(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,1\n")
    (tmp_path / "b.csv").write_text("x,y\n0.5,1\n")
    with pytest.raises(TypeError, match=r'column "x" is int64 in .*a\.csv and double in .*b\.csv'):
        list(Loader(str(tmp_path)))
    assert values_of(str(tmp_path), columns=["x"], dtype="float64") == [1, 0.5]
    rows = 200_000
    lines = "".join(f"{at},{'abc' if at == rows - 10 else at}\n" for at in range(rows))
    (tmp_path / "b.csv").write_text("x,y\n" + lines)
    for options in {}, {"shuffle": 10}, {"columns": ["y"]}, {"prefetch": 2}:
        with pytest.raises(ValueError, match=r'b\.csv.*"y".*row 1999\d\d .*abc') as raised:
            list(Loader(str(tmp_path), batch_size=1000, **options))
        assert "a.csv" not in str(raised.value)


def test_the_schema_of_a_dataset_is_the_users_word(tmp_path):
    write(tmp_path, [pa.table({"x": [1]}), pa.table({"x": [0.5], "y": [1]})])
    dataset = ds.dataset(tmp_path, schema=pa.schema([("x", pa.float32()), ("z", pa.int8())]))
    (batch,) = Loader(dataset, nulls="nan", framework="numpy", batch_size=9)
    assert batch["x"].dtype == "float32"
    assert batch["x"].tolist() == [1, 0.5]
    assert np.isnan(batch["z"]).all()


def test_the_schema_of_a_dataset_changes_values_as_its_table_does(tmp_path):
    write(tmp_path, [pa.table({"day": [NOON], "flag": [7]})])
    schema = pa.schema([("day", pa.date32()), ("flag", pa.bool_())])
    dataset = ds.dataset(tmp_path, schema=schema)
    assert dataset.to_table().to_pylist() == [{"day": DAY, "flag": True}]
    (batch,) = Loader(dataset, columns={"day": AsArrow(), "flag": None})
    assert pa.array(batch["day"]).to_pylist() == [DAY]
    assert batch["flag"].tolist() == [True]


def test_types_merge_in_either_order():
    kinds = [pa.int8(), pa.int64(), pa.uint16(), pa.float32(), pa.string(), pa.large_string()]
    kinds += [pa.list_(pa.int8()), pa.large_list(pa.float16()), pa.null(), pa.bool_()]
    for one in kinds:
        for other in kinds:
            assert merged(one, other) == merged(other, one)
            assert merged(one, one) == one


def test_tensors_of_one_shape_widen(source):
    def tensors(kind):
        of = pa.fixed_shape_tensor(kind, [2, 1])
        return pa.ExtensionArray.from_storage(of, pa.array([[1, 2]], of.storage_type))

    (batch,) = Loader(
        [pa.table({"x": tensors(pa.int8())}), pa.table({"x": tensors(pa.float32())})],
        framework="numpy",
        batch_size=9,
    )
    assert batch["x"].tolist() == [[[1], [2]], [[1], [2]]]


def test_parts_of_a_dense_column_are_converted():
    lists = [pa.table({"x": [[1, 2]]}), pa.table({"x": [[0.5, 1.0]]})]
    assert values_of(lists, columns={"x": Dense(dtype="float32")}) == [[1, 2], [0.5, 1]]


VIEWS = [
    pa.table({"x": pa.array([1, 2], pa.int8()), "s": pa.array(["a", "b"], pa.string_view())}),
    pa.table({"x": [3, 4], "s": pa.array(["a", "c"], pa.string_view())}),
    pa.table({"x": [5], "s": pa.array(["c"])}),
]


@pytest.mark.parametrize("kind", ["list", "files", "mix", "stream"])
def test_views_of_parts_are_filtered_and_coded(kind, tmp_path):
    tables = VIEWS[1:] if kind == "stream" else VIEWS
    make = KINDS.get(kind, lambda folder, tables: iter(tables))
    columns = {"x": None, "s": Categories(["a", "b", "c"])}
    for where, kept in (pc.field("x") > 3, [4, 5]), (pc.field("s") == "c", [4, 5]):
        source = make(tmp_path, tables)
        batches = list(
            Loader(source, columns=columns, filter=where, framework="numpy", batch_size=9)
        )
        assert sorted(x for batch in batches for x in batch["x"].tolist()) == kept
        assert {code for batch in batches for code in batch["s"].tolist()} == {2}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("kinds", [(pa.int32(), pa.int64()), (pa.int32(), pa.int32())])
def test_a_filter_that_names_no_column_is_counted_where_parts_differ(kind, kinds, tmp_path):
    source = KINDS[kind](tmp_path, [pa.table({"x": pa.array([1, 2, 3], own)}) for own in kinds])
    for where, count in (pc.scalar(True), 6), (pc.scalar(False), 0):
        options = {"batch_size": 2, "filter": where, "framework": "numpy"}
        assert len(Loader(source, **options)) == count / 2
        options |= {"world_size": 2, "uneven": "drop"}
        ranks = [list(Loader(source, rank=rank, **options)) for rank in (0, 1)]
        assert sum(len(batch["x"]) for rank in ranks for batch in rank) == count // 4 * 4


@pytest.mark.parametrize("kind", ["list", "files", "stream", "mix"])
def test_a_filter_names_no_column_that_a_part_lacks(kind, tmp_path):
    tables = [pa.table({"x": [1, 2], "y": [1, 1]}), pa.table({"x": [3, 4]})]
    source = KINDS.get(kind, lambda folder, tables: iter(tables))(tmp_path, tables)
    with pytest.raises(KeyError, match='column "y"'):
        list(Loader(source, columns=["x"], filter=pc.field("y") == 1))
    unmerged = [tables[0], pa.table({"x": [3], "y": ["a"]})]
    source = KINDS.get(kind, lambda folder, tables: iter(tables))(tmp_path, unmerged)
    with pytest.raises(TypeError, match='column "y" is int64'):
        list(Loader(source, columns=["x"], filter=pc.field("y") == 1))


@pytest.mark.parametrize("kind", ["list", "files"])
def test_a_field_that_a_part_lacks_is_filled_by_its_own_wish(kind, tmp_path):
    tables = [pa.table({"m": [{"s": 1, "u": "a"}]}), pa.table({"m": [{"u": "b"}]})]
    source = KINDS[kind](tmp_path, tables)
    with pytest.raises(KeyError, match=r'"m\.s"'):
        list(Loader(source, columns=["m.s"], nulls=0))
    wish = {"m.s": Cast("float64", nulls=-1)}
    (batch,) = Loader(source, columns=wish, framework="numpy", batch_size=9)
    assert batch["m.s"].tolist() == [1, -1]
    options = {"columns": wish, "framework": "numpy", "batch_size": 1}
    for rank in range(2):
        (batch,) = Loader(source, rank=rank, world_size=2, **options)
        assert batch["m.s"].tolist() == [[1], [-1]][rank]


def test_columns_of_one_name_that_nobody_reads_do_not_matter(tmp_path):
    def table(kind):
        columns = [pa.array([1]), pa.array([1], kind), pa.array([7])]
        return pa.Table.from_arrays(columns, names=["x", "x", "y"])

    for kind in "list", "files", "mix":
        source = KINDS[kind](tmp_path, [table(pa.int64()), table(pa.int8())])
        batches = list(Loader(source, columns=["y"], framework="numpy", batch_size=9))
        assert [batch["y"].tolist() for batch in batches] == [[7, 7]]
        with pytest.raises(KeyError, match='"x"'):
            list(Loader(source, columns=["x"], batch_size=9))


@pytest.mark.parametrize("of", ["fractions", "fractions of seconds"])
def test_a_csv_value_of_a_finer_type_says_what_reads_it(tmp_path, of):
    path, is_time = tmp_path / "x.csv", of != "fractions"
    row, last = ("2024-01-01 00:00:01", "2024-01-01 00:00:01.5") if is_time else ("1", "1.5")
    path.write_text("\n".join(["x,y", *[f"{row},1"] * 300_000, f"{last},2"]) + "\n")
    with pytest.raises(ValueError, match=r'x\.csv: column "x": row 300002 ') as raised:
        list(Loader(path, columns={"x": AsArrow(), "y": None}))
    told = r'pyarrow\.timestamp\("ns"\)(?= there times)' if is_time else '"float64"(?= there num)'
    (kind,) = re.findall(told, str(raised.value))
    options = pa.csv.ConvertOptions(column_types={"x": eval(kind, {"pyarrow": pa})})
    source = ds.dataset(path, format=ds.CsvFileFormat(convert_options=options))
    *_, batch = Loader(source, columns={"x": AsArrow(), "y": None})
    value = pa.array(batch["x"])[-1]
    assert (value.value == 1_704_067_201_500_000_000) if is_time else value.as_py() == 1.5


@pytest.mark.parametrize("wrong", ["bad,1", "1,2,3"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n"])
def test_the_error_of_a_csv_value_says_what_its_row_counts(tmp_path, wrong, end):
    """pyarrow counts rows, and a file has other numbers of lines."""
    rows = [f"{at},{at}" for at in range(200_000)] + [wrong]
    for before in "", end * 3:
        (tmp_path / "a.csv").write_text(before + end.join(["x,y", *rows]) + end)
        told = r"a\.csv: .* row 200002 \(the header counts, empty lines do not\): "
        with pytest.raises(ValueError, match=told) as raised:
            list(Loader(tmp_path, batch_size=10_000))
        is_value = 'column "x": row' in str(raised.value)
        assert is_value == wrong.startswith("bad")
        if is_value:
            way = re.search(r"types: (pyarrow\.dataset\.dataset.*\)\)\)) ", str(raised.value))[1]
            dataset = eval(way, {"pyarrow": pa, "paths": str(tmp_path)})
            wish = {"x": Categories(["bad"], unknown=-1)}
            assert values_of(dataset, columns=wish)[-2:] == [-1, 0]


@pytest.mark.parametrize("other", ["csv", "table", "two files"])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_csv_without_a_value_has_the_texts_of_the_mix(tmp_path, other, is_first):
    """As parts of a list do: "NA" and "" are nulls where nothing says that they are texts."""
    (tmp_path / "a.csv").write_text("x,t\n1,NA\n2,\n")
    (tmp_path / "b.csv").write_text("x,t\n3,NA\n4,w\n")
    (tmp_path / "c.csv").write_text("x,t\n")
    a, b, c = (str(tmp_path / f"{name}.csv") for name in "abc")
    last = {"csv": b, "table": pa.table({"x": [3, 4], "t": ["NA", "w"]}), "two files": [b, c]}[
        other
    ]
    sources = [[a, c], last] if is_first else [last, [a, c]]
    mix, rows = Mix([(source, 1) for source in sources]), {1: "NA", 2: "", 3: "NA", 4: "w"}
    options = {"framework": "numpy", "batch_size": 9}
    for name in "t", "x":
        columns = {"x": None, "t": AsArrow()}
        (batch,) = Loader(mix, columns=columns, filter=pc.field(name).is_valid(), **options)
        assert dict(zip(plain(batch["x"]), plain(batch["t"]), strict=True)) == rows
    (batch,) = Loader(mix, columns=["x"], filter=pc.field("t") == "NA", **options)
    assert sorted(batch["x"].tolist()) == [1, 3]
    for words in Categories(["NA", "w", ""]), Categories.scan():
        (batch,) = Loader(mix, columns={"x": None, "t": words}, **options)
        assert len(set(batch["t"].tolist())) == 3
    part = {"rank": 0, "world_size": 2, "filter": pc.field("t") == "NA"}
    assert len(list(Loader(mix, columns=["x"], **{**options, "batch_size": 1}, **part))) == 1


def test_a_csv_without_a_value_has_nulls_where_a_mix_has_no_texts(tmp_path):
    (tmp_path / "a.csv").write_text("x,t\n1,NA\n2,\n")
    for other in pa.array([1.5, None]), pa.nulls(2), pa.array([b"NA", b"w"]):
        mix = Mix([(str(tmp_path / "a.csv"), 1), (pa.table({"x": [3, 4], "t": other}), 1)])
        (batch,) = Loader(mix, columns={"x": None, "t": AsArrow()}, batch_size=9)
        found = dict(zip(plain(batch["x"]), plain(batch["t"]), strict=True))
        assert found == {1: None, 2: None, 3: other[0].as_py(), 4: other[1].as_py()}


def test_csv_in_a_mix_names_the_file(tmp_path):
    lines = "".join(f"{at}\n" for at in range(300_000))
    (tmp_path / "late.csv").write_text("x\n" + lines + "bad\n")
    mix = Mix([(str(tmp_path / "late.csv"), 1), (pa.table({"x": [1]}), 1)])
    with pytest.raises(ValueError, match=r'late\.csv.*"x".*row 300002 .*bad'):
        list(Loader(mix, batch_size=10_000))


def test_an_index_of_one_part_is_no_column_of_another():
    indexed = pandas.DataFrame({"x": [1, 2]}, index=pandas.Index([5, 6], name="id"))
    parts = [indexed, indexed.reset_index()[["x", "id"]]]
    for source in parts, parts[::-1]:
        with pytest.raises(KeyError, match='column "id" is in part ., and an index in part'):
            list(Loader(source, batch_size=9))


def test_codes_of_later_batches_may_be_wider():
    def frame(values, index):
        words = pa.array(values).dictionary_encode()
        return pa.table({"x": words.cast(pa.dictionary(index, pa.string()))})

    parts = [frame(["a", "b"], pa.int8()), frame([str(at) for at in range(200)], pa.uint8())]
    (codes,) = Loader(iter(parts), physical=True, framework="numpy", batch_size=999)
    assert codes["x"].tolist() == list(range(202))


def test_words_of_parts_of_other_types(tmp_path):
    parts = [pa.table({"x": pa.array([0.1], pa.float32())}), pa.table({"x": [0.1]})]
    for kind in "list", "files":
        source = KINDS[kind](tmp_path, parts)
        assert values_of(source, columns={"x": Categories.scan()}) == [1, 0]
    for kind in "list", "files", "mix":
        (tmp_path / kind).mkdir()
        lacks = KINDS[kind](tmp_path / kind, [parts[0], pa.table({"y": [1]})])
        with pytest.raises(KeyError, match='column "x" (is in .* and not )?in'):
            list(Loader(lacks, columns={"x": Categories.scan()}))
    texts = [pa.table({"x": [1]}), pa.table({"x": ["1"]})]
    with pytest.raises(TypeError, match='column "x" has values of types that have no order'):
        list(Loader(texts, columns={"x": Categories.scan()}))
    assert values_of(texts, columns={"x": Categories(["1", 1])}) == [1, 0]


@pytest.mark.parametrize("kind", ["list", "files", "list of frames", "mix", "mix of files"])
def test_a_filter_sees_the_type_of_all_parts(kind, tmp_path):
    one = pa.table(
        {"i": [0, 1], "x": pa.array([0.1, 0.2], pa.float32()), "a": pa.array([100, 1], pa.int8())}
    )
    other = pa.table({"i": [4, 5], "x": [0.1, 0.2], "a": [100, -1]})
    if kind == "mix of files":
        for at, table in enumerate([one, other]):
            pq.write_table(table, tmp_path / f"{at}.parquet")
        source = Mix({str(tmp_path / f"{at}.parquet"): 1 for at in range(2)})
    else:
        source = KINDS[kind](tmp_path, [one, other])
    for where, kept in [
        (pc.field("x").isin([0.1]), [4]),
        (pc.add(pc.field("a"), pc.field("a")) > 100, [0, 4]),
    ]:
        found = [
            row
            for batch in Loader(source, columns=["i"], filter=where, batch_size=9)
            for row in np.asarray(batch["i"]).tolist()
        ]
        assert sorted(found) == kept
        assert len(Loader(source, columns=["i"], filter=where, batch_size=1)) == len(kept)


@pytest.mark.parametrize("kind", ["list", "files", "csv", "mix", "mix of files"])
def test_a_filter_sees_floats_where_the_wish_says_so(kind, tmp_path):
    """Whether a row is kept does not depend on the types of the part that it is in."""
    parts = [pa.table({"i": [0, 1], "x": [1, 5]}), pa.table({"i": [2, 3], "x": [0.1, 3.0]})]

    def source():
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        if kind == "csv":
            for at, part in enumerate(parts):
                pa.csv.write_csv(part, folder / f"{at}.csv")
            return str(folder)
        if kind == "mix of files":
            return Mix([(write(folder, parts), 1), (parts[1], 1)])
        return KINDS[kind](folder, parts)

    again = [2, 3] if kind == "mix of files" else []
    more = [{}, {"shuffle": 9, "seed": 1}, {"rank": 0, "world_size": 1, "uneven": "drop"}]
    for where, kept in [
        (pc.divide(pc.field("x"), 2) > 0, sorted([0, 1, 2, 3, *again])),
        (pc.field("x").isin([0.1]), [2, *again[:1]]),
    ]:
        for wish in {"columns": {"i": None, "x": Cast("float32")}}, {"dtype": "float32"}:
            for options in more:
                loader = Loader(source(), filter=where, batch_size=1, **wish, **options)
                assert sorted(batch["i"].item() for batch in loader) == kept
                assert len(loader) == len(kept)
    for where in pc.field("x") > 0, pc.field("x").is_valid():
        for wish in {"i": None, "x": Cast("int64")}, {"i": None}, {"x": Categories.scan()}:
            with pytest.raises(TypeError, match='column "x"'):
                list(Loader(source(), columns=wish, filter=where))


@pytest.mark.parametrize("kind", ["list", "files", "mix", "mix of files"])
def test_words_are_read_of_the_rows_that_a_filter_keeps_of_all_parts(kind, tmp_path):
    parts = [pa.table({"x": [1, 5], "c": ["a", "b"]}), pa.table({"x": [1.5, 0.1], "c": ["c", "d"]})]
    if kind == "mix of files":
        source = Mix([(write(tmp_path, parts), 1), (parts[1], 1)])
    else:
        source = KINDS[kind](tmp_path, parts)
    where = pc.divide(pc.field("x"), 2) > 0.3
    for options in (
        {"columns": {"x": Cast("float32"), "c": Categories.scan()}},
        {"columns": ["x"], "label": {"c": Categories.scan()}, "dtype": "float32"},
        {"label": {"c": Categories.scan()}, "dtype": "float32"},
    ):
        loader = Loader(source, filter=where, batch_size=1, **options)
        assert loader.categories == {"c": ("a", "b", "c")}
        assert len(list(loader)) == len(loader)


def test_types_merge_in_any_order_of_parts():
    kinds = [pa.int8(), pa.float32(), pa.uint32()]
    for at in range(3):
        parts = [pa.table({"x": pa.array([1], kind)}) for kind in kinds[at:] + kinds[:at]]
        (batch,) = Loader(parts, framework="numpy", batch_size=9)
        assert batch["x"].dtype == "float64"


def file_of(table, folder):
    path = folder / f"{len(list(folder.iterdir()))}.parquet"
    pq.write_table(table, path)
    return str(path)


SOURCES = {
    "table": lambda table, folder: table,
    "list": lambda table, folder: [table],
    "reader": lambda table, folder: table.to_reader(),
    "generator": lambda table, folder: iter([table]),
    "relation": lambda table, folder: duckdb.connect().from_arrow(table),
    "scanner": lambda table, folder: ds.dataset(table).scanner(),
    "lazy frame": lambda table, folder: polars.from_arrow(table).lazy(),
    "Hugging Face": lambda table, folder: datasets.Dataset(table),
    "streamed": lambda table, folder: datasets.Dataset(table).to_iterable_dataset(),
    "dataset": lambda table, folder: ds.dataset(table),
    "files": file_of,
    "dataset of files": lambda table, folder: ds.dataset(file_of(table, folder)),
    "ParquetFile": lambda table, folder: pq.ParquetFile(file_of(table, folder)),
}


@pytest.mark.parametrize("of", SOURCES)
def test_a_source_of_a_mix_may_lack_what_its_wish_fills(of, tmp_path):
    def mixed(*tables):
        return Mix([(SOURCES[of](table, tmp_path), 1) for table in tables])

    options = {"framework": "numpy", "batch_size": 9}
    lacks = pa.table({"y": [1.0, 2.0], "m": [{"u": 1}] * 2})
    has = pa.table({"x": [5.0] * 2, "y": [1.0, 2.0], "m": [{"u": 1, "s": 7.0}] * 2})
    for wish, fields, value in ("x", ["y"], 5), ("m.s", ["y"], 7), ("m.s", ["y", "m"], 7):
        columns = {wish: Cast("float64", nulls=-1)}
        (batch,) = Loader(mixed(lacks.select(fields), has), columns=columns, **options)
        assert batch[wish].tolist() == [-1, value, -1, value]
        kept = mixed(lacks.select(fields), has)
        (batch,) = Loader(kept, columns=columns, filter=pc.field("y") > 1, **options)
        assert batch[wish].tolist() == [-1, value]
    words = {"x": Categories.scan(nulls=-1)}
    if of not in ("reader", "generator"):
        for where in None, pc.field("y") > 1:
            loader = Loader(mixed(lacks, has), columns=words, filter=where)
            assert loader.categories == {"x": (5.0,)}


def test_a_column_that_a_part_has_twice_is_not_one_that_it_lacks():
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["x", "x"])
    wish = {"x": Cast("float64", nulls=-1)}
    for source in [twice, pa.table({"x": [3]})], Mix([(twice, 1), (pa.table({"x": [3]}), 1)]):
        with pytest.raises(KeyError, match='2 columns are called "x" in'):
            list(Loader(source, columns=wish))


def test_files_whose_categories_differ_in_type_are_divided_and_resumed(tmp_path):
    one = pa.table({"i": [0, 1, 2], "x": [0, 1, 2]})
    other = pa.table({"i": [3, 4, 5], "x": ["a", "b", "c"]})
    wish = {"i": None, "x": Categories([0, 1, 2, "a", "b", "c"])}
    options = {"columns": wish, "batch_size": 1, "framework": "numpy"}
    for source in write(tmp_path, [one, other]), [one, other]:
        found = []
        for rank in range(2):
            loader = Loader(source, rank=rank, world_size=2, uneven="allow", **options)
            epoch = iter(loader)
            batches = [next(epoch)]
            resumed = Loader(source, rank=rank, world_size=2, uneven="allow", **options)
            resumed.load_state_dict(loader.state_dict())
            epoch.close()
            found += [(b["i"].item(), b["x"].item()) for b in [*batches, *resumed]]
        assert sorted(found) == [(at, at) for at in range(6)]


def test_words_that_a_part_cannot_hold_at_all_are_refused():
    parts = [pa.table({"x": ["1", "2"]}), pa.table({"x": [1, 2]})]
    words = "column \"x\" is int64, which cannot hold the word '1' .*, in a part with the value 1"
    with pytest.raises(ValueError, match=words):
        list(Loader(parts, columns={"x": Categories(["1", "2"], unknown=9)}))
    assert values_of(parts, columns={"x": Categories(["1", "2", 1, 2])}) == [0, 1, 2, 3]


def files_of_frames(folder, frames):
    for at, frame in enumerate(frames):
        frame.to_parquet(folder / f"{at}.parquet")
    return str(folder)


@pytest.mark.parametrize("kind", ["float64", "Int64", "boolean", "datetime64[ns]"])
@pytest.mark.parametrize("wish", [Categories(["a", "b"], nulls=-1), Categories.scan(nulls=-1)])
@pytest.mark.parametrize("form", ["files", "list", "mix", "function"])
def test_a_part_of_nulls_has_no_words_of_another_type(tmp_path, form, wish, kind):
    texts = pandas.DataFrame({"i": [0, 1], "x": ["a", "b"]})
    nulls = pandas.DataFrame({"i": [2, 3], "x": pandas.Series([None, None], dtype=kind)})
    make = {
        "files": lambda frames: files_of_frames(tmp_path, frames),
        "list": lambda frames: frames,
        "mix": lambda frames: Mix([(frame, 1) for frame in frames]),
        "function": lambda frames: lambda index, count: frames[index::count],
    }[form]

    def rows(**options):
        loader = Loader(source, columns={"i": None, "x": wish}, framework="numpy", **options)
        return sorted(pair for batch in loader for pair in zip(*plain(batch).values(), strict=True))

    for frames in [texts, nulls], [nulls, texts]:
        source = make(frames)
        expected = [(0, 0), (1, 1), (2, -1), (3, -1)]
        assert rows(batch_size=3) == expected
        assert rows(batch_size=3, shuffle=4, seed=1) == expected
        several = [rows(batch_size=1, rank=at, world_size=2, uneven="allow") for at in range(2)]
        assert sorted(itertools.chain(*several)) == expected
        if form != "function":
            assert rows(batch_size=3, filter=pc.field("i") < 3) == expected[:3]


def test_a_filter_does_not_see_names_that_occur_twice_and_are_not_read(tmp_path):
    twice = pa.Table.from_arrays(list(map(pa.array, ([1, 1], [2, 2], [5, 6]))), ["z", "z", "x"])
    pq.write_table(twice, tmp_path / "p.parquet")
    for source in (
        twice, [twice, pa.table({"x": [3]})], Mix([(twice, 1)]), iter([twice]), twice.to_reader(),
        str(tmp_path), pq.ParquetFile(tmp_path / "p.parquet"),
    ):  # fmt: skip
        assert values_of(source, columns=["x"], filter=pc.field("x") > 5) == [6]


def test_files_may_have_dictionaries_of_views(tmp_path):
    words = pa.DictionaryArray.from_arrays(
        pa.array([0, 0], pa.int8()), pa.array(["v"], pa.string_view())
    )
    for at, column in enumerate([words, ["a"]]):
        pa.feather.write_feather(
            pa.table({"x": column}), str(tmp_path / f"{at}.arrow"), compression="uncompressed"
        )
    for options in {}, {"shuffle": 9, "seed": 1}:
        found = values_of(str(tmp_path), columns={"x": AsArrow()}, **options)
        assert sorted(found) == ["a", "v", "v"]
        for where, kept in (pc.field("x") == "v", ["v", "v"]), (pc.field("x") < "b", ["a"]):
            loader = Loader(
                str(tmp_path), columns={"x": AsArrow()}, filter=where, batch_size=1, **options
            )
            assert len(loader) == len(kept)
            assert [word for batch in loader for word in plain(batch["x"])] == kept
    assert values_of(str(tmp_path), columns={"x": Categories.scan()}) == [1, 1, 0]


@pytest.mark.parametrize("where", [None, pc.field("x").is_null() | (pc.field("x") > 0)])
def test_later_batches_of_a_stream_may_have_nulls(where):
    parts = [
        pa.table({"x": [1]}, schema=pa.schema([pa.field("x", pa.int64(), nullable=False)])),
        pa.table({"x": [2, None]}),
    ]
    for source in iter(parts), parts, Mix([(iter(parts), 1)]):
        assert values_of(source, nulls=-1, filter=where) == [1, 2, -1]
    with pytest.raises(TypeError, match='column "x": Int64 array has 1 null in'):
        values_of(iter(parts))


def test_a_wish_settles_dictionaries_of_numbers_too(source):
    coded = pa.array([5, 6]).dictionary_encode()
    for wish in {"columns": {"x": Cast("float64")}}, {"dtype": "float32"}:
        assert sorted(values_of(source(coded, pa.array([0.5])), **wish)) == [0.5, 5, 6]
    with pytest.raises(TypeError, match='column "x" is .* and double in'):
        values_of(source(coded, pa.array([0.5])))


def test_the_way_out_for_a_label_is_that_of_labels():
    parts = [pa.table({"x": [1], "y": [1.5]}), pa.table({"x": [1], "y": [1]})]
    with pytest.raises(TypeError, match=r'label=\{"y": Cast\("float64"\)\} converts both'):
        list(Loader(parts, label="y"))
    assert len(list(Loader(parts, label={"y": Cast("float64")}))) == 2
    with pytest.raises(
        KeyError, match=r'own wish .* label=\{"y": Cast\("float64", nulls="nan"\)\}'
    ):
        list(Loader([parts[0], parts[1].drop(["y"])], label="y"))


def test_words_of_all_parts_of_a_function_are_known_to_each():
    parts = [pa.table({"x": [1, 1]}), pa.table({"x": [1.5, 1.5]})]
    found = []
    for rank in range(2):
        loader = Loader(
            lambda index, count: parts[index::count],
            columns={"x": Categories.scan()},
            rank=rank,
            world_size=2,
            uneven="allow",
            framework="numpy",
            batch_size=9,
        )
        found += [batch["x"].tolist() for batch in loader]
    assert found == [[0, 0], [1, 1]]


@pytest.mark.parametrize("kind", ["list", "files", "mix"])
@pytest.mark.parametrize(
    ("parts", "dtype", "found"),
    [
        ([[-70000.0], [1]], "float16", None),
        ([[1e300], [1]], "float32", None),
        ([[1.5], [2**53 + 1]], "float16", None),
        ([[[1.0, 1e300]], [[1]]], "float32", None),
        ([pa.array([2**31 - 1], pa.int32()), [True]], "float32", [2.0**31, 1]),
        ([pa.array([2**31 - 1], pa.uint32()), [decimal.Decimal("0.5")]], "float32", [2.0**31, 0.5]),
        ([[0.1], [1]], "float16", [float(np.float16(0.1)), 1]),
    ],
)
def test_a_wish_converts_a_part_as_it_would_alone(parts, dtype, found, kind, tmp_path):
    """Whatever the other parts are: pyarrow's casts make inf, and refuse integers above 2**24."""
    tables = [pa.table({"x": part}) for part in parts]
    is_list = pa.types.is_list(tables[0]["x"].type)
    columns = {"x": Pad(0, dtype=dtype, max_length=2) if is_list else Cast(dtype)}
    for at, table in enumerate(tables):
        pq.write_table(table, tmp_path / f"{at}.parquet")
    sources = {
        "list": lambda: tables,
        "files": lambda: tmp_path,
        "mix": lambda: Mix([(table, 1) for table in tables]),
    }
    loader = Loader(sources[kind](), columns=columns, batch_size=1)
    if found is None:
        with pytest.raises(ValueError, match="does not fit"):
            list(loader)
    else:
        values = sorted(batch["x"].tolist()[0] for batch in loader)
        assert values == sorted(found)


@pytest.mark.parametrize(
    ("form", "told"),
    [("parquet", ""), ("csv", ', format="csv"'), ("arrow", ', format="arrow"')],
)
def test_the_way_out_of_files_has_their_format(form, told, tmp_path):
    write = {"parquet": pq.write_table, "csv": pyarrow.csv.write_csv}
    for at, value in enumerate([True, "a"]):
        table = pa.table({"x": [value]})
        write.get(form, pyarrow.feather.write_feather)(table, f"{tmp_path}/{at}.{form}")
    with pytest.raises(TypeError) as refused:
        list(Loader(tmp_path, columns={"x": AsArrow()}))
    way = f"pyarrow.dataset.dataset(paths, schema=pyarrow.schema(...){told}) reads all as that"
    assert way in str(refused.value)
    if form == "csv":  # whose values become any type
        paths = [f"{tmp_path}/{at}.csv" for at in (0, 1)]
        schema = pa.schema([("x", pa.string())])
        (batch,) = Loader(
            ds.dataset(paths, schema=schema, format="csv"), columns={"x": AsArrow()}, batch_size=2
        )
        assert pa.array(batch["x"]).to_pylist() == ["true", "a"]


@pytest.mark.parametrize("form", ["parquet", "arrow"])
@pytest.mark.parametrize("options", [{}, {"filter": pc.field("id") >= 0}, {"shuffle": 9}])
def test_words_of_a_field_of_structs_that_differ_are_read_of_all_files(form, options, tmp_path):
    write_file = {"parquet": pq.write_table, "arrow": pyarrow.feather.write_feather}[form]
    fields = [("s", pa.int16()), ("t", pa.string())]
    others = [("t", pa.large_string()), ("s", pa.float64())]
    for at, kind in enumerate([fields, others]):
        structs = pa.array([{"s": 1, "t": "u"}, {"s": 2, "t": "vw"[at]}], pa.struct(kind))
        write_file(pa.table({"id": [0, 1], "m": structs}), tmp_path / f"{at}.{form}")
    mix = Mix([(str(tmp_path / f"{at}.{form}"), 1) for at in (0, 1)])
    loader = Loader(mix, columns={"m.t": Categories.scan()}, batch_size=4, **options)
    (batch,) = loader
    assert sorted(plain(batch["m.t"])) == [0, 0, 1, 2]
    assert loader.categories == {"m.t": ("u", "v", "w")}


TEXTS_OF_STREAMS = {
    "views": lambda words: pa.table({"x": pa.array(words, pa.string_view())}),
    "texts": lambda words: pa.table({"x": words}),
    "dictionary": lambda words: pa.table({"x": pa.array(words).dictionary_encode()}),
    "dictionary of views": lambda words: pa.table({
        "x": pa.DictionaryArray.from_arrays(
            range(len(words)), pa.array(words, pa.string_view())
        )
    }),
    "polars": lambda words: polars.DataFrame({"x": words}),
    "categorical": lambda words: polars.DataFrame(
        {"x": words}, schema={"x": polars.Categorical}
    ),
    "enum": lambda words: polars.DataFrame(
        {"x": words}, schema={"x": polars.Enum(["z", *words])}
    ),
    "pandas": lambda words: pandas.DataFrame({"x": pandas.Categorical(words)}),
}  # fmt: skip


@pytest.mark.parametrize("first", TEXTS_OF_STREAMS)
@pytest.mark.parametrize("later", TEXTS_OF_STREAMS)
@pytest.mark.parametrize("options", [{}, {"filter": pc.field("x") != "b"}])
def test_batches_of_a_stream_may_have_texts_in_any_encoding(first, later, options):
    make, other = TEXTS_OF_STREAMS[first], TEXTS_OF_STREAMS[later]
    columns = {"x": Categories(["a", "b", "c", "d"])}
    stream = iter([make(["a", "b"]), other(["b", "c"]), other(["d", "a"])])
    batches = list(Loader(stream, columns=columns, framework="numpy", **options))
    codes = [0, 2, 3, 0] if options else [0, 1, 1, 2, 3, 0]
    assert [code for batch in batches for code in batch["x"].tolist()] == codes


@pytest.mark.parametrize("turn", [1, -1])
def test_batches_of_a_stream_may_have_nested_texts_in_any_encoding(turn):
    words = pa.DictionaryArray.from_arrays([0, 1, 0], ["a", "b"])
    lists = [pa.ListArray.from_arrays([0, 2, 3], words), None]
    lists[1] = lists[0].cast(pa.list_(pa.large_string())).cast(pa.list_(pa.string_view()))
    tables = [pa.table({"x": one, "s": [{"t": one} for one in "pq"]}) for one in lists]
    structs = pa.StructArray.from_arrays([pa.array(["p", "q"]).dictionary_encode()], ["t"])
    tables[0] = tables[0].set_column(1, "s", structs)
    for kind in pa.large_string(), pa.string_view():
        structs = structs.cast(pa.struct({"t": kind}))
    tables[1] = tables[1].set_column(1, "s", structs)
    columns = {"x": AsArrow(), "s.t": AsArrow()}
    for batch in Loader(iter(tables[::turn]), columns=columns):
        assert pa.array(batch["x"]).to_pylist() == [["a", "b"], ["a"]]
        assert pa.array(batch["s.t"]).to_pylist() == ["p", "q"]


@pytest.mark.parametrize("kind", ["list", "files", "mix", "mix of files"])
@pytest.mark.parametrize("turn", [1, -1])
@pytest.mark.parametrize("floats", [pa.float32(), pa.float64()])
def test_decimals_and_floats_have_one_code_where_they_are_one_number(kind, turn, floats, tmp_path):
    decimals = pa.decimal128(5, 1)
    columns = [
        pa.array([decimal.Decimal("1.5"), decimal.Decimal("0.1"), decimal.Decimal(2)], decimals),
        pa.array([1.5, 3.25, 0.1, None], floats),
    ]
    tables = [pa.table({"x": column}) for column in columns[::turn]]
    if kind == "mix of files":
        write(tmp_path, tables)
        source = Mix([(str(tmp_path / f"{at}.parquet"), 1) for at in (0, 1)])
    else:
        source = KINDS[kind](tmp_path, tables)
    for words in None, [decimal.Decimal("0.1"), columns[1][2].as_py(), 1.5, 2, 3.25]:
        wish = Categories(words, nulls=-1)
        loader = Loader(source, columns={"x": wish}, batch_size=9, framework="numpy")
        known = loader.categories["x"]
        assert sorted(known) == sorted(
            [decimal.Decimal("0.1"), columns[1][2].as_py(), 1.5, 2, 3.25]
        )
        values = [known[code] for batch in loader for code in batch["x"].tolist() if code >= 0]
        assert sorted(values) == sorted(
            filter(None, columns[0].to_pylist() + columns[1].to_pylist())
        )


@pytest.mark.parametrize("form", ["tables", "parquet", "arrow", "mix"])
@pytest.mark.parametrize("more", [{}, {"shuffle": 9, "seed": 1}, {"filter": pc.field("k") < 9}])
def test_a_field_of_a_struct_is_null_where_the_whole_column_is(form, more, tmp_path):
    parts = [
        pa.table({"k": [1], "m": [{"w": "a", "i": {"n": 1}}]}),
        pa.table({"k": [2, 3], "m": pa.nulls(2)}),
        pa.table({"k": [4], "m": [{"w": "b", "i": None}]}),  # "m.i" is of no type
    ]
    wanted = {1: ("a", 1), 2: (None, None), 3: (None, None), 4: ("b", None)}
    for some in parts, parts[::-1], parts[1:2]:
        source = some
        if form in ("parquet", "arrow"):
            source = []
            for at, table in enumerate(some):
                source.append(str(tmp_path / f"{len(some)}{at}.{form}"))
                if form == "parquet":
                    pq.write_table(table, source[-1])
                else:
                    pyarrow.feather.write_feather(table, source[-1], compression="uncompressed")
        elif form == "mix":
            source = Mix([(table, 1) for table in some])
        columns = {"k": None, "m.w": AsArrow(), "m.i.n": AsArrow()}
        (batch,) = Loader(source, columns=columns, batch_size=9, framework="numpy", **more)
        found = zip(*(pa.array(batch[of]).to_pylist() for of in ("m.w", "m.i.n")), strict=True)
        assert dict(zip(batch["k"].tolist(), found, strict=True)) == {
            key: wanted[key] for key in batch["k"].tolist()
        }
        assert len(batch["k"]) == sum(map(len, some))


@pytest.mark.parametrize("form", ["tables", "files", "mix", "mix of lists"])
def test_a_filter_changes_no_value_of_a_column_that_it_names(form, tmp_path):
    """As a float64 first it would be rounded twice, to the float32 below."""
    value = 2**60 + 2**36 + 1
    parts = [pa.table({"x": [value]}), pa.table({"x": [0.5]})]
    source = {
        "tables": lambda: parts,
        "files": lambda: write(tmp_path, parts),
        "mix": lambda: Mix([(part, 1) for part in parts]),
        "mix of lists": lambda: Mix([(parts, 1), (parts[0], 1)]),
    }[form]()
    options = {"columns": {"x": Cast("float32")}, "batch_size": 9, "framework": "numpy"}
    for more in {}, {"filter": pc.field("x") > 0}, {"filter": pc.field("x") > 0, "shuffle": 9}:
        (batch,) = Loader(source, **options, **more)
        assert set(batch["x"].tolist()) == {float(np.int64(value).astype("float32")), 0.5}


OF_FLOATS = {
    "bool": pa.array([True, False]),
    "int64": pa.array([7, 1]),
    "float": pa.array([0.5, 2.5]),
    "float16": pa.array(np.array([1, 7], "float16")),
    "decimal": pa.array([decimal.Decimal("1.5"), decimal.Decimal("3.5")]),
    "another scale": pa.array([decimal.Decimal("2.25")]),
    "dictionary": pa.array([9, 2], pa.int64()).dictionary_encode(),
}
UNLIKE = [
    ("bool", "int64"), ("bool", "float"), ("decimal", "another scale"), ("decimal", "int64"),
    ("decimal", "float"), ("float16", "int64"), ("dictionary", "float"), ("bool", "dictionary"),
]  # fmt: skip


@pytest.mark.parametrize("pair", [*UNLIKE, *(pair[::-1] for pair in UNLIKE)])
@pytest.mark.parametrize("form", ["tables", "files", "arrow", "mix", "mix of lists"])
def test_a_filter_sees_floats_of_parts_in_any_order(pair, form, tmp_path):
    parts = [pa.table({"x": OF_FLOATS[name]}) for name in pair]
    paths = [str(tmp_path / f"{at}.arrow") for at in range(2)]
    source = {
        "tables": lambda: parts,
        "files": lambda: write(tmp_path, parts),
        "arrow": lambda: [
            pyarrow.feather.write_feather(part, path, compression="uncompressed") or path
            for part, path in zip(parts, paths, strict=True)
        ],
        "mix": lambda: Mix([(part, 1) for part in parts]),
        "mix of lists": lambda: Mix([(parts, 1), (parts[0].slice(0, 0), 1)]),
    }[form]()
    values = [float(value) for part in parts for value in part["x"].to_pylist()]
    wishes = [{"columns": {"x": Cast("float64")}}, {"dtype": "float32"}]
    for wish in wishes:
        for where in pc.field("x") > 2, ~pc.is_nan(pc.field("x")) & (pc.field("x") > 2.0):
            options = {**wish, "batch_size": 1, "framework": "numpy", "filter": where}
            loader = Loader(source, **options)
            found = [batch["x"].item() for batch in loader]
            assert sorted(found) == sorted(value for value in values if value > 2)
            assert len(loader) == len(found)
            epoch = iter(loader)
            next(epoch)
            resumed = Loader(source, **options)
            resumed.load_state_dict(loader.state_dict())
            assert [batch["x"].item() for batch in resumed] == found[1:]
            epoch.close()


@pytest.mark.parametrize("form", ["tables", "files", "mix"])
def test_a_filter_that_parts_do_not_go_with_names_column_and_types(form, tmp_path):
    for parts in [[True], [7]], [[7], [True]]:
        tables = [pa.table({"x": part, "k": [1]}) for part in parts]
        source = {
            "tables": lambda tables=tables: tables,
            "files": lambda tables=tables: write(tmp_path, tables),
            "mix": lambda tables=tables: Mix([(table, 1) for table in tables]),
        }[form]()
        names = r'column "x" is (bool|int64) in .* and (bool|int64) in .*'
        with pytest.raises(TypeError, match=names + ": .*converts both"):
            list(Loader(source, columns=["k"], filter=(pc.field("k") > 0) & (pc.field("x") > 2)))
        with pytest.raises(TypeError, match=names + ", of which a filter sees double: .*equal"):
            list(Loader(source, columns={"x": Cast("float64")}, filter=pc.field("x") == True))  # noqa: E712


@pytest.mark.parametrize(
    "kind",
    [pa.list_(pa.int64()), pa.large_list(pa.int64()), pa.list_(pa.int64(), 2)],
    ids=["list", "large list", "fixed"],
)
@pytest.mark.parametrize("source", ["list", "swapped", "generator", "mix"])
def test_lists_whose_items_have_other_names_are_one_type(tmp_path, kind, source):
    """Parquet calls them "element", and pyarrow and polars "item"."""
    table, path = pa.table({"e": pa.array([[1, 2], [3, 4]], kind)}), tmp_path / "a.parquet"
    pq.write_table(table, path)
    parts = [table, pq.read_table(path)]
    if source == "swapped":
        parts.reverse()
    data = {"generator": (part for part in parts), "mix": Mix([(part, 1) for part in parts])}
    batches = Loader(data.get(source, parts), batch_size=3, columns={"e": AsArrow()})
    rows = [row for batch in batches for row in pa.array(batch["e"]).to_pylist()]
    assert sorted(rows) == [[1, 2], [1, 2], [3, 4], [3, 4]]


@pytest.mark.parametrize("is_generator", [False, True])
def test_maps_to_lists_whose_items_have_other_names_are_one_type(is_generator):
    def part(name):
        kind = pa.map_(pa.string(), pa.list_(pa.field(name, pa.int64())))
        return pa.table({"m": pa.array([[(name, [1])]], kind)})

    parts = map(part, ["item", "element"])
    source = parts if is_generator else list(parts)
    (batch,) = Loader(source, batch_size=3, columns={"m": AsArrow()})
    assert pa.array(batch["m"]).to_pylist() == [[("item", [1])], [("element", [1])]]


@pytest.mark.parametrize("order", list(itertools.permutations(["int8", "float64", "uint32"])))
@pytest.mark.parametrize("within", ["list", "fixed", "struct", "both"])
def test_numbers_within_have_one_type_in_any_order(order, within):
    def part(kind):
        numbers = pa.array(np.array([1, 2], kind))
        if within in ("struct", "both"):
            numbers = pa.StructArray.from_arrays([numbers], ["a"])
        if within == "fixed":
            numbers = pa.FixedSizeListArray.from_arrays(numbers, 1)
        elif within != "struct":
            numbers = pa.ListArray.from_arrays([0, 1, 2], numbers)
        return pa.table({"x": numbers})

    (batch,) = Loader([part(kind) for kind in order], columns={"x": AsArrow()}, batch_size=9)
    assert "double" in str(pa.array(batch["x"]).type)


def test_a_filter_sees_words_beside_nulls():
    nulls = polars.DataFrame({"t": [None, None]})
    words = polars.DataFrame({"t": polars.Series(["a", "b"], dtype=polars.Categorical)})
    for parts in ([nulls, words], [words, nulls]):
        where = pc.field("t") == "a"
        (batch,) = Loader(parts, columns={"t": AsArrow()}, filter=where, batch_size=9)
        assert pa.array(batch["t"]).to_pylist() == ["a"]


NESTED_WORDS = [
    (polars.List, [["a", "b"], None, []], [["b"]]),
    (lambda word: polars.Array(word, 1), [["a"], None], [["b"]]),
    (lambda word: polars.Struct({"u": word, "v": polars.String}), [{"u": "a", "v": "z"}], [None]),
    (lambda word: polars.List(polars.Struct({"u": word})), [[{"u": "a"}], None], [[{"u": "b"}]]),
]


@pytest.mark.parametrize("nested", NESTED_WORDS)
@pytest.mark.parametrize("word", [polars.Categorical, polars.Enum(["a", "b"])])
@pytest.mark.parametrize("form", ["list", "generator", "mix", "parquet", "arrow"])
@pytest.mark.parametrize("turn", [1, -1])
def test_nested_words_are_of_one_type_with_texts(tmp_path, nested, word, form, turn):
    make, coded, texts = nested
    dtype, of_texts = make(word), make(polars.String)
    frames = [
        polars.DataFrame({"x": polars.Series(coded, dtype=dtype)}),
        polars.DataFrame({"x": polars.Series(texts, dtype=of_texts)}),
    ][::turn]
    source = {
        "list": frames,
        "generator": iter(frames),
        "mix": Mix([(frames[0], len(frames[0])), (frames[1], len(frames[1]))]),
    }.get(form, str(tmp_path))
    for at, frame in enumerate(frames):
        if form == "parquet":
            pq.write_table(frame.to_arrow(), tmp_path / f"{at}.parquet")
        if form == "arrow":
            frame.write_ipc(tmp_path / f"{at}.arrow")
    found = [row for batch in Loader(source, columns={"x": AsArrow()}) for row in plain(batch)["x"]]
    assert sorted(map(repr, found)) == sorted(map(repr, coded + texts))
    if form != "mix":
        assert found == (coded + texts if turn == 1 else texts + coded)


#: Lies between two of bfloat16's, and above their middle; as float64 it is the middle.
ABOVE_THE_MIDDLE = 2**60 + 2**52 + 1


@pytest.mark.parametrize("form", ["list", "files", "mix", "mix of lists"])
@pytest.mark.parametrize("within", ["column", "list", "fixed", "tensor"])
@pytest.mark.parametrize("turn", [1, -1])
def test_a_wish_rounds_each_part_once(tmp_path, form, within, turn):
    kinds = {
        "column": (lambda kind: kind, lambda value: value, Cast),
        "list": (pa.list_, lambda value: [value], lambda dtype: Dense(dtype=dtype)),
        "fixed": (lambda kind: pa.list_(kind, 1), lambda value: [value], Cast),
        "tensor": (lambda kind: pa.fixed_shape_tensor(kind, [1]), lambda value: [value], Cast),
    }
    make, row, wish = kinds[within]

    def table(value, kind):
        kind = make(kind)
        storage = getattr(kind, "storage_type", kind)
        column = pa.array([row(value)], storage)
        return pa.table({"x": kind.wrap_array(column) if storage != kind else column})

    tables = [table(ABOVE_THE_MIDDLE, pa.int64()), table(0.5, pa.float64())][::turn]
    options = {"columns": {"x": wish("bfloat16")}, "batch_size": 1}
    alone = [plain(batch["x"]) for one in tables for batch in Loader(one, **options)]
    if form == "files":
        source = write(tmp_path, tables)
    elif form == "list":
        source = tables
    else:
        source = Mix([([one] if form == "mix of lists" else one, 1) for one in tables])
    assert [plain(batch["x"]) for batch in Loader(source, **options)] == alone


@pytest.mark.parametrize("later", [pa.array([5, 6, 7, 8], pa.int16()), pa.array(list("abcd"))])
@pytest.mark.parametrize("form", ["files", "one kind", "dataset", "list", "swapped"])
@pytest.mark.parametrize("where", [None, pc.field("i") > 0])
def test_words_are_refused_for_any_rank_and_shuffle_or_for_none(tmp_path, later, form, where):
    tables = [
        pa.table({"i": range(4), "x": pa.array([1, 2, 3, 4], pa.int8())}),
        pa.table({"i": range(4), "x": later}),
    ]
    if form in ("one kind", "dataset"):
        tables[1] = tables[0]
    if form == "swapped":
        tables.reverse()
    source = tables if form == "list" else write(tmp_path, tables)
    source = ds.dataset(source) if form == "dataset" else source
    orders = [
        {},
        {"shuffle": 3, "seed": 1},
        {"rank": 0, "world_size": 2, "uneven": "allow"},
        {"rank": 1, "world_size": 2, "uneven": "allow"},
        {"rank": 3, "world_size": 4, "uneven": "allow", "shuffle": 3, "seed": 1},
    ]

    def refusal(word, options):
        words = [1, 2, 3, 4, *later.to_pylist(), word]
        wish = Categories(list(dict.fromkeys(words)), unknown=-1)
        try:
            list(Loader(source, columns={"x": wish}, batch_size=2, filter=where, **options))
        except ValueError as error:
            return str(error)
        return None

    for word in (1000, 10**30, "word"):
        assert len({refusal(word, options) for options in orders}) == 1


HALVES = pa.table({"i": [0, 1, 2, 3], "x": pa.array([1, 5, None, float("nan")], pa.float16())})


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        (pc.field("x") > 2, [1]),
        (pc.field("x") != 5, [0, 3]),
        (~(pc.field("x") <= 2), [1, 3]),
        (pc.field("x").isin([5]), [1]),
        (pc.field("x").is_nan(), [3]),
        (pc.field("x").is_null() | (pc.field("x") == 1), [0, 2]),
        (pc.field("x") < pc.field("i") + 1, []),
    ],
)
@pytest.mark.parametrize("form", ["table", "list", "files", "arrow", "dataset", "mix", "generator"])
def test_a_filter_compares_float16(tmp_path, where, kept, form):
    if form in ("files", "dataset"):
        pq.write_table(HALVES, tmp_path / "0.parquet", row_group_size=1)
    if form == "arrow":
        pa.feather.write_feather(HALVES, tmp_path / "0.arrow")

    def source():
        return {
            "table": lambda: HALVES,
            "list": lambda: [HALVES],
            "dataset": lambda: ds.dataset(tmp_path),
            "mix": lambda: Mix([(HALVES, 1)]),
            "generator": lambda: iter([HALVES]),
        }.get(form, lambda: str(tmp_path))()

    def ids(**options):
        loader = Loader(source(), columns=["i", "x"], nulls="nan", filter=where, **options)
        batches = [plain(batch) for batch in loader]
        for batch in batches:
            values = [[1.0, 5.0, np.nan, np.nan][int(at)] for at in batch["i"]]
            np.testing.assert_array_equal(batch["x"], values)
        return [at for batch in batches for at in batch["i"]]

    assert ids() == kept
    assert sorted(ids(batch_size=1, shuffle=9, seed=1)) == kept
    shares = [ids(batch_size=1, rank=rank, world_size=2, uneven="allow") for rank in (0, 1)]
    assert sorted(shares[0] + shares[1]) == kept
    if form != "generator":
        assert len(Loader(source(), columns=["i"], batch_size=1, filter=where)) == len(kept)


@pytest.mark.parametrize(
    "where", [pc.field("x") == pa.scalar(5, pa.float16()), pc.field("m", "a") > 2]
)
def test_what_a_filter_cannot_compare_of_float16_has_a_way_out(where):
    struct = pa.array([{"a": 1}, {"a": 4}], pa.struct({"a": pa.float16()}))
    table = pa.table({"i": [0, 1], "x": pa.array([5, 1], pa.float16()), "m": struct})
    with pytest.raises(TypeError, match=r'field\.cast\("float32"\) and float\(value\)'):
        Loader(table, columns=["i"], filter=where)
    ways = {"x": pc.field("x") == float(np.float16(5)), "m": pc.field("m", "a").cast("float32") < 2}
    for way in ways.values():
        assert [plain(one) for one in Loader(table, columns=["i"], filter=way)] == [{"i": [0]}]


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([{"x": 1}, {"x": "a"}], "int64 in one row and string"),
        ([{"x": 1}] * 1000 + [{"x": 0.5}], "int64 in one row and double"),
        ([{"x": 1}] * 1500 + [{"x": 0.5}], "int64 in one row and double"),
        ([{"x": {"a": 1}}, {"x": {"a": "s"}}], "struct<a: int64> in one row and struct<a: string>"),
    ],
)
def test_a_streamed_dataset_of_rows_that_differ_is_refused_by_name(rows, told):
    streamed = datasets.IterableDataset.from_generator(lambda: iter(rows))
    with pytest.raises(TypeError, match=f'column "x" is {told} in another row.*dataset.map'):
        list(Loader(streamed, columns={"x": AsArrow()}))
    mapped = streamed.map(lambda row: {"x": str(row["x"])})
    batches = list(Loader(mapped, columns={"x": AsArrow()}, batch_size=len(rows)))
    assert plain(batches[0]["x"]) == [str(row["x"]) for row in rows]


FEATURES = datasets.Features(
    {
        "i": datasets.Value("int64"),
        "n": datasets.Value("int32"),
        "t": datasets.Value("string"),
        "l": datasets.List(datasets.Value("int64")),
    }
)
ROWS = [
    {"i": at, "n": at if at % 2 else None, "t": "a" if at > 1 else None, "l": [at] * (at % 3)}
    for at in range(5)
]
STREAMED = {
    "generator": lambda features: datasets.IterableDataset.from_generator(
        lambda: iter(ROWS), features=features
    ),
    "filter": lambda _: (
        datasets.Dataset.from_list(ROWS, FEATURES).to_iterable_dataset().filter(lambda row: True)
    ),
    "map": lambda features: (
        datasets.Dataset.from_list(ROWS, FEATURES)
        .to_iterable_dataset()
        .map(lambda row: {"n": row["n"]}, features=features)
    ),
}


@pytest.mark.parametrize("features", [FEATURES, None], ids=["told", "untold"])
@pytest.mark.parametrize("of", STREAMED)
def test_rows_of_a_streamed_dataset_may_have_no_values(of, features):
    wishes = {
        "i": None,
        "n": Cast("float32", nulls=-1),
        "t": Categories.scan(nulls=-1),
        "l": Pad(0, max_length=2),
    }
    expected = {
        row["i"]: (
            -1 if row["n"] is None else row["n"],
            -1 if row["t"] is None else 0,
            (row["l"] + [0, 0])[:2],
        )
        for row in ROWS
    }

    def rows(loader):
        for batch in loader:
            columns = plain({**batch, "l": batch["l"][0]})
            yield from zip(*columns.values(), strict=True)

    def loader(**options):
        return Loader(STREAMED[of](features), columns=wishes, batch_size=2, **options)

    loaders = [[loader()], [loader(shuffle=3, seed=1)]]
    loaders.append([loader(rank=rank, world_size=2, uneven="allow") for rank in range(2)])
    for several in loaders:
        found = {at: tuple(rest) for one in several for at, *rest in rows(one)}
        assert found == expected
    kept = [at for at, *_ in rows(loader(filter=pc.field("n").is_valid()))]
    assert kept == [row["i"] for row in ROWS if row["n"] is not None]
    begun, resumed = loader(), loader()
    epoch = iter(begun)
    next(epoch)
    resumed.load_state_dict(begun.state_dict())
    assert list(rows(resumed)) == list(rows(epoch))
    (batch,) = Loader(STREAMED[of](features), columns=["i"])  # as many rows as `datasets` reads
    assert len(plain(batch["i"])) == len(ROWS)


def test_the_types_of_a_streamed_dataset_are_those_of_its_features():
    streamed = STREAMED["generator"](FEATURES)
    batches = list(Loader(streamed.take(1), columns=["n"], nulls=0))
    assert batches[0]["n"].dtype == "int32"


def test_rows_of_a_streamed_dataset_have_the_same_columns():
    streamed = datasets.IterableDataset.from_generator(lambda: iter([{"x": 1}, {"x": 2, "y": 1}]))
    with pytest.raises(KeyError, match='"y" is in another row and not in one row.*dataset.map'):
        list(Loader(streamed))
    mapped = streamed.map(lambda row: {"y": row.get("y")})
    assert plain(next(iter(Loader(mapped, nulls=0)))) == {"x": [1, 2], "y": [0, 1]}


@pytest.mark.parametrize("form", ["parquet", "ipc"])
@pytest.mark.parametrize("wish", [Categories(["a", "b"]), Categories.scan(), AsArrow()])
def test_files_that_the_schema_of_a_dataset_does_not_fit_are_named(tmp_path, form, wish):
    words = pa.array(["a", "b"])
    for at, column in enumerate([words.dictionary_encode(), words.cast(pa.string_view())]):
        options = {"format": form, "existing_data_behavior": "overwrite_or_ignore"}
        name = f"{at}-{{i}}.{'arrow' if form == 'ipc' else form}"
        ds.write_dataset(pa.table({"x": column}), tmp_path, basename_template=name, **options)
    options = {"columns": {"x": wish}, "framework": "numpy"}
    told = r'1-0\.\w+: column "x" is string_view there .*; another schema=, or the path'
    with pytest.raises(ValueError, match=told):
        list(Loader(ds.dataset(tmp_path, format=form), **options))
    assert (
        len([row for batch in Loader(str(tmp_path), **options) for row in plain(batch)["x"]]) == 4
    )


NOON = datetime.datetime(2020, 1, 1, 12)
DAY = NOON.date()


def way_of(error, argument):
    """The first value of an argument that an error tells."""
    found = re.search(rf"{argument}=(\[.*?\]|\{{.*?\}}|\".*?\")", error.args[0])
    names = {"Cast": Cast, "Dense": Dense, "Pad": Pad}
    return {argument: eval(found[1], names)}


@pytest.mark.parametrize("form", ["list", "mix", "files"])
@pytest.mark.parametrize("label", [None, "q"])
def test_a_column_that_is_the_index_of_another_part_is_read_by_name(tmp_path, form, label):
    column = pandas.DataFrame({"a": [5, 3], "q": [7, 8]})
    index = pandas.DataFrame({"a": [1, 2]}, index=pandas.Index([6, 9], name="q"))
    make = {
        "files": lambda frames: files_of_frames(tmp_path, frames),
        "list": lambda frames: frames,
        "mix": lambda frames: Mix([(frame, 1) for frame in frames]),
    }[form]
    for frames in [column, index], [index, column]:
        source = make(frames)
        with pytest.raises(KeyError, match='column "q" is in .*, and an index in ') as raised:
            list(Loader(source, label=label))
        way = way_of(raised.value, "columns")
        (batch,) = Loader(source, label=label, batch_size=9, framework="numpy", **way)
        values = batch["q"] if label is None else batch[1]
        assert sorted(values.tolist()) == [6, 7, 8, 9]


@pytest.mark.parametrize("wish", [None, Pad(0), Dense(1)])
@pytest.mark.parametrize("argument", ["columns", "label", "dtype"])
def test_lists_of_numbers_that_do_not_merge_are_converted_by_the_wish_that_they_have(
    source, wish, argument
):
    data = source([[1]], [[0.5], [1.5]])
    label = {"x": wish} if argument == "label" else None
    columns = {"x": wish} if argument != "label" else []
    with pytest.raises(TypeError, match='"x" is .*list.* converts both') as raised:
        list(Loader(data, columns=columns, label=label))
    options = {"columns": columns, "label": label} | way_of(raised.value, argument)
    (batch,) = Loader(data, batch_size=9, framework="numpy", **options)
    found = batch[1] if argument == "label" else batch["x"]
    found = found if isinstance(wish, Dense) else found[0]
    assert sorted(found.ravel().tolist()) == [0.5, 1, 1.5]


@pytest.mark.parametrize("options", [{"dtype": "int64"}, {"columns": {"x": Cast("int64")}}])
@pytest.mark.parametrize("physical", [False, True])
def test_integers_of_decimals_of_other_scales_are_no_numbers(options, physical):
    texts, kinds = ["1.5", "1.25"], [pa.decimal64(9, 1), pa.decimal64(9, 2)]
    columns = [
        pa.array([decimal.Decimal(text)], kind) for text, kind in zip(texts, kinds, strict=True)
    ]
    tables = [pa.table({"x": column}) for column in columns]
    with pytest.raises(TypeError, match="in part 1: .* converts both") as raised:
        list(Loader(tables, physical=physical, **options))
    assert "physical" not in str(raised.value)
    options = way_of(raised.value, "columns")
    batches = Loader(tables, physical=physical, framework="numpy", **options)
    assert [batch["x"].tolist() for batch in batches] == [[1.5], [1.25]]


def test_lists_that_stay_arrows_are_cast_by_part(tmp_path):
    tables = [pa.table({"x": [[1], [2, 3]]}), pa.table({"x": [[0.5]]})]
    wish, expected = {"x": AsArrow()}, [[1], [2, 3], [0.5]]
    with pytest.raises(TypeError, match="in part 1: pyarrow.table"):
        list(Loader(tables, columns=wish))
    cast = [table.cast(tables[1].schema) for table in tables]
    assert values_of(cast, columns=wish) == expected
    folder = write(tmp_path, tables)
    with pytest.raises(TypeError, match=r"1\.parquet: pyarrow.dataset.dataset\(paths, schema="):
        list(Loader(folder, columns=wish))
    assert values_of(ds.dataset(folder, schema=tables[1].schema), columns=wish) == expected


def test_a_key_beside_a_column_of_another_type_has_ways_out(tmp_path):
    for key, table in {"1": {"x": [1]}, "2": {"x": [2], "k": ["a"]}}.items():
        (tmp_path / f"k={key}").mkdir()
        pq.write_table(pa.table(table), tmp_path / f"k={key}" / "p.parquet")
    folder = str(tmp_path)
    told = 'column "k" is int32 in .*k=1.* and string in .*k=2.*: '
    ways = r"Categories\(\[...\]\) takes the values of both, and folders of another name keep"
    with pytest.raises(TypeError, match=f"{told}columns= leaves it out, {ways}"):
        list(Loader(folder))
    with pytest.raises(TypeError, match=f"{told}{ways}"):
        list(Loader(folder, label="k"))
    with pytest.raises(TypeError, match=f"{told}folders of another name keep"):
        list(Loader(folder, columns=["x"], filter=pc.field("k") == 1))
    assert values_of(folder, columns=["x"]) == [1, 2]
    wish = {"k": Categories(["a", 1])}
    for options in {}, {"shuffle": 4, "seed": 1}:
        (batch,) = Loader(folder, label=wish, batch_size=9, framework="numpy", **options)
        assert sorted(zip(*map(plain, (batch[0]["x"], batch[1])), strict=True)) == [(1, 1), (2, 0)]
    for key in "12":
        (tmp_path / f"k={key}").rename(tmp_path / f"kk={key}")
    assert values_of(folder, columns=["x"], filter=pc.field("kk") == 1) == [1]
    wish = {"x": None, "kk": None, "k": Categories(["a"], nulls=-1)}
    (batch,) = Loader(folder, columns=wish, batch_size=9, framework="numpy")
    assert plain(batch) == {"x": [1, 2], "kk": [1, 2], "k": [-1, 0]}


@pytest.mark.parametrize(
    ("one", "other"), [("a", 1.5), ("a", 1), (DAY, NOON), (True, "a"), ("a", b"a")]
)
def test_values_without_an_order_are_numbered_by_words_or_cast(source, one, other):
    data = source([one], [other])
    is_text = isinstance(other, bytes)
    way = "casts one of them|reads all" if is_text else r"Categories\(\[.*\]\) says"
    with pytest.raises(TypeError, match=f"no order in different parts of the source .*: .*({way})"):
        list(Loader(data, columns={"x": Categories.scan()}))
    if is_text:
        cast = source([one], pa.array([other]).cast(pa.string()))
        assert values_of(cast, columns={"x": Categories.scan()}) == [0, 0]
    else:
        assert sorted(values_of(data, columns={"x": Categories([one, other])})) == [0, 1]


@pytest.mark.parametrize("form", ["file", "files", "tables", "tables by name", "mix", "stream"])
def test_thousands_of_columns_are_each_read(tmp_path, form):
    count = 4000
    tables = [
        pa.table({f"c{at}": pa.array([1], kind) for at in range(count)})
        for kind in ("int64", "int32")
    ]
    if form in ("file", "files"):
        for at, table in enumerate(tables):
            pq.write_table(table, tmp_path / f"{at}.parquet")
    source = {"file": tmp_path / "0.parquet", "files": tmp_path}.get(form, tables)
    source = Mix([(table, 1) for table in tables]) if form == "mix" else source
    source = iter([tables[0]] * 2) if form == "stream" else source
    names = tables[0].column_names if form in ("file", "tables by name", "stream") else None
    (batch,) = Loader(source, columns=names, batch_size=2)
    assert list(batch) == tables[0].column_names
    assert {int(column[0]) for column in map(np.asarray, batch.values())} == {1}


@pytest.mark.parametrize("form", ["tables", "mix", "stream"])
@pytest.mark.parametrize("turn", [1, -1])
@pytest.mark.parametrize("is_in_struct", [False, True])
def test_the_way_out_of_list_views_beside_lists_keeps_their_values(form, turn, is_in_struct):
    kind = pa.list_(pa.int64())
    # Views in another order than the lists that they are.
    column = pa.ListViewArray.from_arrays([2, 0], [1, 2], pa.array([1, 2, 3], pa.int64()))
    listed = pa.array([[4], [5, 6]], kind)
    if is_in_struct:
        column, listed = (pa.StructArray.from_arrays([own], ["s"]) for own in (column, listed))
        kind = pa.struct([("s", kind)])
    tables = [pa.table({"x": column}), pa.table({"x": listed})][::turn]
    options = {"columns": {"x": AsArrow()}, "batch_size": 4}

    def source():
        return {"tables": tables, "mix": Mix([(table, 1) for table in tables])}.get(
            form, iter(tables)
        )

    with pytest.raises(
        TypeError, match=r'pyarrow.array\(table\["x"\].to_pylist\(\), type\)'
    ) as told:
        list(Loader(source(), **options))
    assert "cast" not in str(told.value)
    rows = [row for table in tables for row in table["x"].to_pylist()]
    tables = [pa.table({"x": pa.array(table["x"].to_pylist(), kind)}) for table in tables]
    (batch,) = Loader(source(), **options)
    found = pa.array(batch["x"]).to_pylist()
    assert sorted(found, key=str) == sorted(rows, key=str)


@pytest.mark.parametrize("form", ["tables", "mix", "files"])
def test_a_filter_on_a_column_that_a_part_lacks_has_a_way_out(tmp_path, form):
    tables = [pa.table({"y": [1, 2]}), pa.table({"y": [3, 4], "z": [1, 2]})]
    options = {"filter": pc.field("z") > 1, "columns": ["y"], "batch_size": 4}

    def source():
        mix = Mix([(table, 1) for table in tables])
        return {"tables": tables, "mix": mix, "files": tmp_path}[form]

    write(tmp_path, tables)
    way = {"files": "pyarrow.dataset.dataset(paths, schema=..., format=...)"}.get(
        form, 'table.append_column("z", pyarrow.nulls(len(table), type))'
    )
    with pytest.raises(KeyError, match=re.escape(way)):
        list(Loader(source(), **options))
    tables[0] = tables[0].append_column("z", pa.nulls(len(tables[0]), pa.int64()))
    read = ds.dataset(tmp_path, schema=tables[1].schema) if form == "files" else source()
    (batch,) = Loader(read, **options)
    assert plain(batch) == {"y": [4]}


BYTES = pa.bool8().wrap_array(pa.array([7, 0, None], pa.int8()))
BOOLEANS = {
    "alone": (lambda one: one, None),
    "in lists": (lambda one: pa.ListArray.from_arrays([0, 1, 2, 3], one), Dense(1, nulls=False)),
    "in lists of one length": (lambda one: pa.FixedSizeListArray.from_arrays(one, 1), None),
    "in structs": (lambda one: pa.StructArray.from_arrays([one], ["a"]), AsArrow()),
}


@pytest.mark.parametrize("within", BOOLEANS)
@pytest.mark.parametrize("form", ["list", "files", "mix", "stream"])
@pytest.mark.parametrize("turn", [1, -1])
def test_booleans_in_bytes_and_in_bits_are_one_type(within, form, turn, tmp_path):
    make, wish = BOOLEANS[within]
    parts = [pa.table({"x": make(one)}) for one in (BYTES, pa.array([True, False, None]))]
    parts = parts[::turn]
    wishes = [wish, AsArrow()]
    if within == "alone":
        wishes += [Cast("float32", nulls=0), Categories([False, True], nulls=0)]
    for wish in wishes:
        source = iter(parts) if form == "stream" else KINDS[form](tmp_path, parts)
        found = [
            value
            for batch in Loader(source, columns={"x": wish}, nulls=False)
            for value in plain(batch["x"])
        ]
        trues = [value in (True, [True], {"a": True}) for value in found]
        assert trues == ([True] * 2 + [False] * 4 if form == "mix" else [True, False, False] * 2)


def test_a_wish_takes_booleans_in_bytes_beside_numbers(source):
    found = values_of(source(BYTES[:2], pa.array([5])), dtype="float32")
    assert sorted(found) == [0, 1, 5]
    with pytest.raises(TypeError, match="is extension<arrow.bool8> in .* and int64 in"):
        values_of(source(BYTES[:2], pa.array([5])))


@pytest.mark.parametrize("form", ["list", "files", "mix"])
@pytest.mark.parametrize("turn", [1, -1])
@pytest.mark.parametrize("within", ["alone", "list", "tensor"])
def test_no_wish_makes_booleans_of_one_part_of_numbers(tmp_path, form, turn, within):
    make = {
        "alone": lambda kind: kind,
        "list": pa.list_,
        "tensor": lambda kind: pa.fixed_shape_tensor(kind, [1]),
    }[within]
    parts = []
    for kind in (pa.bool_(), pa.int8()):
        own, value = make(kind), pa.array([1, 0], "int8").cast(kind)
        column = value
        if within == "list":
            column = pa.ListArray.from_arrays([0, 1, 2], value)
        elif within == "tensor":
            column = own.wrap_array(pa.FixedSizeListArray.from_arrays(value, 1))
        parts.append(pa.table({"x": column}))
    source = KINDS[form](tmp_path, parts[::turn])
    wishes = {
        "alone": Cast,
        "list": lambda dtype: Pad(0, dtype=dtype),
        "tensor": Cast,
    }
    told = 'column "x" is .* in (part|source|/).* and .* in (part|source|/)'
    for options in {"columns": {"x": wishes[within]("bool")}}, {"dtype": "bool"}:
        with pytest.raises(TypeError, match=told):
            next(iter(Loader(source, batch_size=9, **options)))
    batches = list(Loader(source, batch_size=9, columns={"x": wishes[within]("int8")}))
    assert [len(plain(batch["x"])[0] if within == "list" else batch["x"]) for batch in batches] == [
        4
    ]


ZONES = pa.timestamp("us"), pa.timestamp("us", "Europe/Berlin")


@pytest.mark.parametrize("kinds", [ZONES, ZONES[::-1]], ids=["naive", "zoned"])
def test_the_way_to_one_type_of_times_says_what_a_cast_makes_of_them(kinds):
    parts = [pa.table({"x": pa.array([0], kind)}) for kind in kinds]
    told = "takes times without a zone for those of UTC, and pyarrow.compute.assume_timezone"
    for source in parts, iter(parts):
        with pytest.raises(TypeError, match=told):
            list(Loader(source, physical=True))
    given = [
        part.set_column(0, "x", pc.assume_timezone(part["x"], "Europe/Berlin"))
        if part.schema.field("x").type == ZONES[0]
        else part
        for part in parts
    ]
    hours = [row for batch in Loader(given, physical=True) for row in batch["x"].tolist()]
    assert sorted(hours) == [-3_600_000_000, 0]


@pytest.mark.parametrize("turn", [1, -1])
@pytest.mark.parametrize(
    "numbers", [[1, 0, 2], [1.0, 0.5], [decimal.Decimal("1.0")]], ids=["ints", "floats", "decimals"]
)
@pytest.mark.parametrize("form", ["bits", "bytes", "dictionary"])
def test_booleans_and_numbers_are_no_words_of_one_scan(source, numbers, turn, form):
    """To Python True is the word 1, and would stand for it."""
    bools = pa.array([True, False])
    if form == "bytes":
        bools = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0], pa.int8()))
    elif form == "dictionary":
        bools = pa.DictionaryArray.from_arrays(pa.array([0, 1]), bools)
    data = source(*[bools, pa.array(numbers)][::turn])
    told = r'column "x" is .*bool.* in (part|source|/).* and .* in (part|source|/).* True is 1: .*'
    way = "(casts one of them|reads all as that schema)"
    with pytest.raises(TypeError, match=told + way):
        list(Loader(data, columns={"x": Categories.scan()}, batch_size=9))
    with pytest.raises(ValueError, match="cannot hold the word True"):
        list(Loader(source([1.0, 0.0]), columns={"x": Categories([True, False])}))


@pytest.mark.parametrize("values", [[1, 0], [1.0, 0.0], [decimal.Decimal(1)]], ids=str)
def test_a_boolean_is_no_word_of_numbers(values):
    for word in True, np.True_:
        with pytest.raises(ValueError, match="cannot hold the word .*True"):
            list(Loader(pa.table({"x": values}), columns={"x": Categories([word, 5])}))


def test_texts_and_numbers_of_csv_are_words_of_one_type_by_the_way_out(tmp_path):
    for name, text in {"a": "x\n1\n2\n", "b": "x\nc\n"}.items():
        (tmp_path / f"{name}.csv").write_text(text)
    with pytest.raises(TypeError, match="no order in different parts") as raised:
        list(Loader(str(tmp_path), columns={"x": Categories.scan()}))
    way = re.search(r"says their order, or (.*) reads all as that schema", str(raised.value))[1]
    given = {"pyarrow": pa, "paths": str(tmp_path)}
    dataset = eval(way.replace("...", '{"x": pyarrow.string()}'), given)
    assert Loader(dataset, columns={"x": Categories.scan()}).categories == {"x": ("1", "2", "c")}
    assert values_of(str(tmp_path), columns={"x": Categories([1, 2, "c"])}) == [0, 1, 2]


def test_many_words_of_parts_of_other_types_are_read():
    whole, halves = np.arange(70_000), np.arange(70_000) + 0.5
    tables = [pa.table({"x": one}) for one in (whole, halves, [7])]
    words = Loader(tables, columns={"x": Categories.scan()}).categories["x"]
    assert words == tuple(sorted([*whole.tolist(), *halves.tolist()]))


@pytest.mark.parametrize("files", [1, 2])
@pytest.mark.parametrize("turn", [1, -1])
@pytest.mark.parametrize("form", ["path", "dataset", "lazy frame"])
def test_a_source_of_a_mix_that_lacks_a_column_is_named(tmp_path, form, turn, files):
    paths = []
    for name, columns in ("has", {"x": [1, 2], "y": [1, 2]}), ("lacks", {"y": [3, 4]}):
        (tmp_path / name).mkdir()
        for at in range(files):
            pq.write_table(pa.table(columns), tmp_path / name / f"{at}.parquet")
        paths.append(str(tmp_path / name / ("0.parquet" if files == 1 else "")))
    opened = {"path": str, "dataset": ds.dataset, "lazy frame": polars.scan_parquet}[form]
    source = Mix([(opened(path), 1) for path in paths[::turn]])
    names = [f" ({path})" if form == "path" else "" for path in paths]
    at = [0, 1][::turn]
    told = [f"source {at[of]} of the Mix{names[of]}" for of in range(2)]
    match = re.escape(f'column "x" is in {told[0]} and not in {told[1]}: columns= leaves it out')
    for options in {}, {"shuffle": 3, "seed": 1}:
        with pytest.raises(KeyError, match=match):
            list(Loader(source, columns=["x"], batch_size=9, **options))
    with pytest.raises(KeyError, match='column "x" .*' + re.escape(told[1])):
        list(Loader(source, columns={"x": Categories.scan()}, batch_size=9))
    wish = {"x": Cast("float64", nulls="nan")}
    (batch,) = Loader(source, columns=wish, batch_size=99, framework="numpy")
    assert np.isnan(batch["x"]).sum() == 2 * files


@pytest.mark.parametrize(
    ("form", "of"),
    [(form, of) for form in ("parquet", "csv", "arrow") for of in ("files", "folders")]
    + [(form, "names that do not tell the format") for form in ("parquet", "arrow")],
)
def test_the_way_out_of_a_mix_is_one_for_its_sources(tmp_path, form, of):
    paths = []
    write = {"parquet": pq.write_table, "csv": pyarrow.csv.write_csv}
    for at, value in enumerate([1, "a"]):
        folder = tmp_path / f"folder{at}"
        folder.mkdir()
        file = folder / ("rows" if of.startswith("names") else f"rows.{form}")
        write.get(form, pyarrow.feather.write_feather)(pa.table({"x": [value]}), str(file))
        paths.append(str(folder if of == "folders" else file))
    with pytest.raises(TypeError, match="source 0 of the Mix") as raised:
        list(Loader(Mix(dict.fromkeys(paths, 1)), columns={"x": AsArrow()}))
    told = "..." if form == "parquet" else f'..., format="{form}"'
    way = told.replace("...", "schema=pyarrow.schema(...)")
    assert f": pyarrow.dataset.dataset(paths, {way}) reads all" in str(raised.value)
    schema = pa.schema({"x": pa.string()})
    cast = [ds.dataset(path, schema=schema, format=form) for path in paths]
    (batch,) = Loader(Mix([(one, 1) for one in cast]), columns={"x": AsArrow()}, batch_size=9)
    assert plain(batch["x"]) == ["1", "a"]


@pytest.mark.parametrize("turn", [1, -1])
@pytest.mark.parametrize("start", [0, 3])
@pytest.mark.parametrize("kind", ["list", "mix", "stream"])
def test_lists_of_either_width_may_have_list_views_in_them(kind, start, turn, tmp_path):
    values = [[[row, 1]] * (row % 3) for row in range(300)]
    values[4] = None
    parts = []
    for of in (pa.list_, pa.large_list)[::turn]:
        column = pa.array(values, of(pa.list_view(pa.int64())))
        parts.append(pa.table({"x": column.slice(start, 9)}))
    source = iter(parts) if kind == "stream" else KINDS[kind](tmp_path, parts)
    (batch,) = Loader(source, columns={"x": AsArrow()}, batch_size=99)
    found = [*values[start : start + 9]] * 2
    if kind == "mix":
        found = [row for row in values[start : start + 9] for _ in range(2)]
    assert plain(batch["x"]) == found


RUNS = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3, 4], pa.int32()), pa.array([1, 2, None]))
WITHIN_RUNS = {
    "plain": (RUNS, []),
    "list": (
        pa.ListArray.from_arrays(pa.array([0, 2, 3], pa.int32()), RUNS),
        [pa.array([[None], []], pa.list_(pa.null())), pa.array([[]], pa.large_list(pa.null()))],
    ),
    "list view": (
        pa.ListViewArray.from_arrays(
            pa.array([0, 2], pa.int32()), pa.array([2, 1], pa.int32()), RUNS
        ),
        [],
    ),
    "fixed": (
        pa.FixedSizeListArray.from_arrays(RUNS, 2),
        [pa.FixedSizeListArray.from_arrays(pa.nulls(4), 2)],
    ),
    "struct": (
        pa.StructArray.from_arrays([RUNS, pa.array([1, 2, 3, 4])], ["a", "b"]),
        [pa.array([{"a": None, "b": 5}, None], pa.struct({"a": pa.null(), "b": pa.int64()}))],
    ),
    "structs in lists": (
        pa.ListArray.from_arrays(
            pa.array([0, 2, 3], pa.int32()), pa.StructArray.from_arrays([RUNS], ["a"])
        ),
        [pa.array([[{"a": None}], []], pa.list_(pa.struct({"a": pa.null()})))],
    ),
}


@pytest.mark.parametrize("where", [None, pc.field("x").is_valid()], ids=["all", "valid"])
@pytest.mark.parametrize("turn", [1, -1])
@pytest.mark.parametrize("kind", ["list", "mix", "stream"])
@pytest.mark.parametrize("within", WITHIN_RUNS)
def test_runs_go_with_nulls_in_lists_and_structs(within, kind, turn, where):
    runs, others = WITHIN_RUNS[within]
    for other in [pa.nulls(2), *others]:
        # Slices, so that offsets do not begin at 0.
        pair = [pa.table({"x": one}).slice(1) for one in (runs, other)][::turn]
        source = Mix([(one, 1) for one in pair]) if kind == "mix" else pair
        source = iter(pair) if kind == "stream" else source
        (batch,) = Loader(source, columns={"x": AsArrow()}, filter=where, batch_size=99)
        found = [row for one in pair for row in one["x"].to_pylist()]
        # Of runs nulls are values, which are no nulls of the array.
        wanted = [row for row in found if where is None or row is not None]
        assert sorted(map(str, plain(batch["x"]))) == sorted(map(str, wanted))


FORMATS = {"parquet": pq.write_table, "feather": pyarrow.feather.write_feather}


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("has_both", [True, False])
def test_a_path_is_found_in_each_file_by_the_columns_that_it_has(
    tmp_path, form, is_first, has_both
):
    more = {"m": [{"s": 9}]} if has_both else {}
    tables = [pa.table({"m": [{"s": 1}, {"s": 2}]}), pa.table({"m.s": [7], **more})]
    right = [1, 2, 7] if is_first else [7, 1, 2]
    tables = tables if is_first else tables[::-1]
    for at, table in enumerate(tables):
        FORMATS[form](table, tmp_path / f"{at}.{form}")
    wishes = [
        ({"columns": ["m.s"], "nulls": 0}, right),
        ({"columns": {"m.s": Cast("float32", nulls=-1)}}, right),
        ({"columns": {"m.s": Categories.scan()}}, [sorted(right).index(v) for v in right]),
    ]
    for source in str(tmp_path), tables, Mix([(str(tmp_path), 1)]):
        for options, values in wishes:
            for more in {}, {"shuffle": 4, "seed": 1}:
                batches = list(Loader(source, batch_size=2, **options, **more))
                found = [value for batch in batches for value in batch["m.s"].tolist()]
                assert (sorted(found) if more else found) == (sorted(values) if more else values)
        (batch,) = Loader(source, columns=["m.s"], nulls="mask", batch_size=9)
        assert [part.tolist() for part in batch["m.s"]] == [right, [True] * 3]


@pytest.mark.parametrize("kind", ["list", "files", "mix"])
@pytest.mark.parametrize(
    ("columns", "right"),
    [
        (([{"s": 1}], [5]), None),
        (([5], [{"s": 1}]), None),
        (([{"s": 1}], [{"t": 1}], [5]), None),
        (([{"s": 1}], [{"t": 1}]), [1, -1]),
        (([{"t": 1}], [None]), [-1, -1]),
        (([5], [None]), None),
        (([None], [{"s": 1}]), [-1, 1]),
        (([{"t": 1}], [{"t": 1}]), None),
        (([5], [5]), None),
    ],
)
def test_what_a_part_lacks_at_a_path_is_null_in_all_kinds_of_sources(
    tmp_path, kind, columns, right
):
    source = KINDS[kind](tmp_path, [pa.table({"m": column}) for column in columns])
    wish = {"m.s": Cast("float32", nulls=-1)}
    if right is None:
        with pytest.raises(KeyError, match='no column "m.s"'):
            list(Loader(source, columns=wish))
        return
    (batch,) = Loader(source, columns=wish, batch_size=9)
    assert batch["m.s"].tolist() == right


@pytest.mark.parametrize("kind", ["list", "files", "mix"])
@pytest.mark.parametrize("turn", [0, 1, 2])
@pytest.mark.parametrize(
    "case",
    [
        (([{"x": True}], [{"x": 5}]), Cast("int64", nulls=-1), [1, 5, -1]),
        (([{"x": 1}], [{"x": 0.5}]), Categories.scan(nulls=-1), [1, 0, -1]),
        (([{"x": 1}], [{"x": 0.5}]), Categories([0.5, 1], nulls=-1), [1, 0, -1]),
        (([{"x": True}], [{"x": 5}]), Cast("float32", nulls=-1), [1, 5, -1]),
    ],
)
def test_a_part_without_the_struct_of_a_path_takes_the_type_of_its_wish(tmp_path, kind, turn, case):
    columns, wish, right = case
    tables = [*(pa.table({"m": column}) for column in columns), pa.table({"z": [1]})]
    tables, right = tables[turn:] + tables[:turn], right[turn:] + right[:turn]
    source = KINDS[kind](tmp_path, tables)
    for options in {}, {"shuffle": 4, "batch_size": 1}:
        batches = Loader(source, columns={"m.x": wish}, **options)
        found = [value for batch in batches for value in batch["m.x"].tolist()]
        is_ordered = not options and kind != "mix"
        assert found == right if is_ordered else sorted(found) == sorted(right)


def test_a_decimal_that_a_wish_does_not_convert_beside_numbers_is_named(source):
    parts = source(pa.array([decimal.Decimal("12")]), pa.array([1]))
    for options in {"dtype": "int64"}, {"columns": {"x": Cast("int16")}}:
        with pytest.raises(TypeError, match='^column "x" is decimal128.* or dtype="float64" conv'):
            list(Loader(parts, **options))
    found = [x for batch in Loader(parts, dtype="float64") for x in batch["x"].tolist()]
    assert found == [12, 1]


@pytest.mark.parametrize("form", ["parquet", "ipc"])
@pytest.mark.parametrize("narrow", [pa.float32(), pa.float16()])
def test_a_value_that_the_schema_of_a_dataset_makes_infinite_is_refused(tmp_path, form, narrow):
    def written(name, values, **columns):
        table = pa.table({"x": values, "row": pa.array(range(len(values))), **columns})
        ds.write_dataset(table, tmp_path / name, format=form)
        return next((tmp_path / name).iterdir())

    small = written("small", pa.array([0.5, np.inf], pa.float32()).cast(narrow))
    large = written("large", pa.array([-np.inf, 1e300, 2.0]))
    files = ds.dataset([str(small), str(large)], format=form)
    assert files.schema.field("x").type == narrow
    told = r'large.*: column "x" is double there and .* which does not hold 1e\+300'
    for options in (
        {},
        {"columns": {"x": Cast("float64")}},
        {"batch_size": 2, "shuffle": 4, "seed": 0},
        {"filter": pc.field("row") < 2},
        {"filter": pc.field("x") > 1},
        {"batch_size": 1, "rank": 0, "world_size": 2, "uneven": "allow"},
    ):
        with pytest.raises(ValueError, match=told):
            list(Loader(files, **options))
    with pytest.raises(ValueError, match=told):
        list(Loader(Mix([(files, 1)]), columns=["x"]))
    # Infinite values stay, and rows that are left out do not count.
    kept = Loader(files, columns=["x"], filter=pc.field("row") != 1, framework="numpy")
    assert [row for batch in kept for row in batch["x"].tolist()] == [0.5, -np.inf, 2.0]
    wider = ds.dataset([str(small), str(large)], format=form, schema=pa.schema({"x": pa.float64()}))
    for way in (wider, [str(small), str(large)]):
        assert 1e300 in [row for batch in Loader(way, columns=["x"]) for row in batch["x"].tolist()]


class OfAUser(ds.FileSystemDataset):
    """A dataset of files whose class is not pyarrow's own."""


def test_a_dataset_of_a_class_of_a_user_is_guarded_as_those_of_pyarrow(tmp_path):
    write(tmp_path, [pa.table({"x": [0.5, 1e300, np.nan], "s": ["a", "b", "c"]})])
    whole = ds.dataset(tmp_path)

    def own(kind):
        schema = pa.schema({"x": kind, "s": pa.string_view()})
        return OfAUser(list(whole.get_fragments()), schema, whole.format, whole.filesystem)

    with pytest.raises(ValueError, match=r"0\.parquet: .* which does not hold 1e\+300"):
        list(Loader(own(pa.float32()), columns=["x"]))
    for where, kept in (pc.field("x") != 0.5, 2), (pc.field("s") == "a", 1):
        assert len(Loader(own(pa.float64()), columns=["x"], filter=where, batch_size=1)) == kept
    with pytest.raises(TypeError, match="must be an expression of pyarrow"):
        Loader(own(pa.float64()), filter="x > 1")


def in_structs(values):
    return pa.StructArray.from_arrays([pa.array(range(len(values))), values], ["row", "a"])


def in_maps(values):
    offsets = pa.array(range(len(values) + 1), pa.int32())
    return pa.MapArray.from_arrays(offsets, pa.array(["k"] * len(values)), values)


NESTED = {
    "in lists": (
        lambda one: pa.ListArray.from_arrays(pa.array(range(len(one) + 1), pa.int32()), one),
        pa.large_list(pa.float32()),
    ),
    "in lists of one length": (
        lambda one: pa.FixedSizeListArray.from_arrays(one, 1),
        pa.list_(pa.float32(), 1),
    ),
    "in structs": (in_structs, pa.struct({"a": pa.float32(), "row": pa.int64()})),
    "in lists of structs": (
        lambda one: pa.FixedSizeListArray.from_arrays(in_structs(one), 1),
        pa.list_(pa.struct({"row": pa.int64(), "a": pa.float32()}), 1),
    ),
    "in maps": (in_maps, pa.map_(pa.string(), pa.float32())),
    "in dictionaries": (pa.Array.dictionary_encode, pa.float32()),
    "in texts": (lambda one: pa.array(map(str, one.to_pylist())), pa.float32()),
    "in decimals": (lambda one: pa.array(map(int, one.to_pylist()), pa.decimal256(70)), None),
}


@pytest.mark.parametrize("name", NESTED)
def test_a_value_within_another_that_the_schema_makes_infinite_is_refused(tmp_path, name):
    make, kind = NESTED[name]
    schema = pa.schema({"x": kind or pa.float32(), "row": pa.int64()})
    values = [1.0, 1e39, -2.0]
    table = pa.table({"x": make(pa.array(values)), "row": [0, 1, 2]})
    ds.write_dataset(table, tmp_path / "a", format="ipc")
    files = ds.dataset(tmp_path / "a", format="ipc", schema=schema)
    told = r"a.part-0.arrow: column \"x\" is .* there and .*, which does not hold 1e\+39: another"
    for options in {}, {"filter": pc.field("row") > 0}, {"shuffle": 2, "batch_size": 1}:
        with pytest.raises(ValueError, match=told):
            list(Loader(files, columns={"x": AsArrow()}, **options))
    # Rows that are left out do not count, and infinite values stay.
    expected = files.filter(pc.field("row") != 1).to_table()["x"].to_pylist()
    kept = Loader(files, columns={"x": AsArrow()}, filter=pc.field("row") != 1)
    assert [row for batch in kept for row in pa.array(batch["x"]).to_pylist()] == expected
    if name != "in decimals":
        table = pa.table({"x": make(pa.array([np.inf, 1.0])), "row": [0, 1]})
        ds.write_dataset(table, tmp_path / "b", format="ipc")
        files = ds.dataset(tmp_path / "b", format="ipc", schema=schema)
        (batch,) = Loader(files, columns={"x": AsArrow()}, batch_size=9)
        assert pa.array(batch["x"]).to_pylist() == files.to_table()["x"].to_pylist()


@pytest.mark.parametrize(
    "where",
    [
        pc.field("x") > 1e300,
        pc.is_inf(pc.field("x")),
        ~pc.is_finite(pc.field("x")),
        pc.is_finite(pc.field("x")),
    ],
)
def test_a_filter_sees_what_the_schema_makes_of_a_value(tmp_path, where):
    values = [1e300, 1.0, np.inf, 2.0]
    pq.write_table(pa.table({"x": values, "y": [1, 2, 3, 4]}), tmp_path / "a.parquet")
    schema = pa.schema({"x": pa.float32(), "y": pa.int64()})
    loader = Loader(ds.dataset(tmp_path, schema=schema), filter=where, framework="numpy")
    if where.equals(pc.is_finite(pc.field("x"))):
        assert [batch["y"].tolist() for batch in loader] == [[2, 4]]
    else:
        with pytest.raises(ValueError, match=r"does not hold 1e\+300"):
            list(loader)


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["inf"]),
        pa.array([np.inf]).dictionary_encode(),
        pa.array([np.inf, 1]),
        pa.array([None, np.inf]),
        pa.array([7], pa.int16()),
    ],
)
def test_what_is_infinite_in_a_file_stays(tmp_path, column):
    pyarrow.feather.write_feather(pa.table({"x": column}), tmp_path / "a.arrow", "uncompressed")
    files = ds.dataset(tmp_path, format="ipc", schema=pa.schema({"x": pa.float32()}))
    (batch,) = Loader(files, framework="numpy", nulls=0)
    assert batch["x"].tolist() == column.cast(pa.float32()).fill_null(0).to_pylist()


@pytest.mark.parametrize(
    ("kind", "word"), [(pa.float32(), 1e300), (pa.float16(), 70000), (pa.float32(), -1e39)]
)
def test_a_word_that_would_be_infinite_is_one_that_the_column_cannot_hold(kind, word):
    table = pa.table({"x": pa.array([np.inf, 1.0], kind)})
    with pytest.raises(ValueError, match=f"cannot hold the word {re.escape(repr(word))}"):
        Loader(table, columns={"x": Categories([word, 1.0])})
    (batch,) = Loader(table, columns={"x": Categories([np.inf, 1.0])})
    assert batch["x"].tolist() == [0, 1]


def test_parts_of_other_types_keep_their_rows_where_no_column_is_read():
    parts = [pa.table({"x": [1, 2]}), pa.table({"x": ["a"]})]
    assert len(list(Loader(parts, columns=[], batch_size=1))) == 3


@pytest.mark.parametrize(
    "made",
    [
        lambda: pa.table({"y": [1, 2, 3]}).select([]),
        lambda: pa.record_batch({"y": [1, 2, 3]}).select([]),
        lambda: pandas.DataFrame(index=range(3)),
        lambda: pa.table({"y": [1, 2, 3]}).select([]).to_reader(),
    ],
    ids=["table", "batch", "pandas", "reader"],
)
@pytest.mark.parametrize("wish", [Cast("int32", nulls=-1), Categories([1], nulls=-1)], ids=str)
def test_a_part_without_columns_has_its_rows(made, wish):
    one = pa.table({"x": [1]})
    code = 0 if isinstance(wish, Categories) else 1
    options = {"columns": {"x": wish}, "batch_size": 9, "framework": "numpy"}
    for of, expected in [
        (lambda: [one, made()], [code, -1, -1, -1]),
        (lambda: [made(), one], [-1, -1, -1, code]),
        (lambda: Mix([(one, 1), (made(), 1)]), [code, -1, -1, -1]),
    ]:
        (batch,) = Loader(of(), **options)
        assert batch["x"].tolist() == expected
        (batch,) = Loader(of(), shuffle=4, seed=1, **options)
        assert sorted(batch["x"].tolist()) == sorted(expected)


def _dataset(folder, tables):
    return ds.dataset(write(folder, tables))


UNREAD = {
    "list": lambda folder, tables: tables,
    "files": write,
    "dataset": _dataset,
    "dataset of Arrow files": lambda folder, tables: ds.dataset(
        [_feather(folder / f"{at}.arrow", table) for at, table in enumerate(tables)], format="ipc"
    ),
    "union": lambda folder, tables: ds.dataset([_dataset(folder, tables)]),
    "fragments": lambda folder, tables: list(_dataset(folder, tables).get_fragments()),
    "mix": lambda folder, tables: Mix([(table, 1) for table in tables]),
    "mix of readers": lambda folder, tables: Mix([(iter([table]), 1) for table in tables]),
    "mix of a dataset": lambda folder, tables: Mix([(_dataset(folder, tables), 1)]),
    "mix of datasets": lambda folder, tables: Mix(
        [(ds.dataset(f"{write(folder, tables)}/{at}.parquet"), 1) for at in range(len(tables))]
    ),
}


def _feather(path, table):
    pyarrow.feather.write_feather(table, path)
    return str(path)


@pytest.mark.parametrize("form", UNREAD)
@pytest.mark.parametrize("other", [[1.5, 2.5, 3.5], ["a", "b", "c"], [[1], [2], [3]]])
def test_columns_that_are_not_read_have_any_types(tmp_path, form, other):
    tables = [pa.table({"x": [1, 2], "k": [1, 2]}), pa.table({"x": other, "k": [3, 4, 5]})]

    source = UNREAD[form](tmp_path, tables)

    def loader(**options):
        # Readers are read once.
        own = UNREAD[form](tmp_path, tables) if form == "mix of readers" else source
        return Loader(own, columns=[], batch_size=1, **options)

    for options in ({}, {"shuffle": 4, "seed": 0}, {"prefetch": 2}):
        assert list(loader(**options)) == [{}] * 5
        assert sorted(y.item() for _, y in loader(label="k", **options)) == [1, 2, 3, 4, 5]
    assert len(list(loader(filter=pc.field("k") > 1))) == 4
    shares = [loader(rank=rank, world_size=2, uneven="allow") for rank in range(2)]
    assert sorted(len(list(share)) for share in shares) == [2, 3]
    begun = loader()
    next(iter(begun))
    again = loader()
    again.load_state_dict(begun.state_dict())
    assert list(again) == [{}] * 4


def test_columns_that_are_not_read_have_any_names():
    tables = [pa.table({"x": [1, 2]}), pa.table({"none of ['x']": [3]}), pa.table({"z": ["a"]})]
    assert list(Loader(tables, columns=[], batch_size=1)) == [{}] * 4
    for mix in Mix([(table, 1) for table in tables]), Mix([(ds.dataset(one), 1) for one in tables]):
        assert list(Loader(mix, columns=[], batch_size=1)) == [{}] * 4


def fixed(size, kind):
    return pa.array([[1] * size], pa.list_(kind, size))


def union(kind):
    column = pa.array([1, 2]).cast(kind)
    return pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [column[:1], column[1:]])


DAYS, TIMES = pa.array([DAY]), pa.array([datetime.time(12)])
#: Columns of which pyarrow casts neither to the type of the other, and what it casts both to.
NEITHER = {
    "sizes": (fixed(2, pa.float32()), fixed(3, pa.float32()), pa.list_(pa.float32())),
    "sizes and items": (fixed(2, pa.int64()), fixed(3, pa.float32()), pa.list_(pa.float64())),
    "bool, decimal": (pa.array([True]), pa.array([decimal.Decimal("1.5")]), pa.float64()),
    "unions": (union(pa.int64()), union(pa.string()), None),
    "day, time": (DAYS, TIMES, None),
    "days, times": (*(pa.ListArray.from_arrays([0, 1], one) for one in (DAYS, TIMES)), None),
}


@pytest.mark.parametrize("form", ["list", "files", "arrow files", "mix", "stream"])
@pytest.mark.parametrize("name", NEITHER)
def test_the_way_out_of_types_that_pyarrow_casts_to_no_other_works(tmp_path, name, form):
    if (form, name) == ("files", "unions"):
        return  # Parquet has none
    *columns, kind = NEITHER[name]
    tables = [pa.table({"x": column, "y": [1]}) for column in columns]

    def source(tables):
        if form == "stream":
            return iter(tables)
        if form != "arrow files":
            return KINDS[form](tmp_path, tables)
        for at, table in enumerate(tables):
            pyarrow.feather.write_feather(table, str(tmp_path / f"{at}.arrow"))
        return str(tmp_path)

    def rows(source):
        (batch,) = Loader(source, columns={"x": AsArrow()}, batch_size=9)
        return plain(batch["x"])

    with pytest.raises(TypeError, match='column "x" is .*: ') as told:
        rows(source(tables))
    way = re.search(": ((pyarrow|cast |leave |a Loader ).*)", str(told.value))[1]
    if kind is None:
        each = "a Loader for each of them reads both, or columns= leaves it out"
        assert way == ('leave "x" out' if form == "stream" else each)
        assert sum(len(batch["y"]) for batch in Loader(source(tables), columns=["y"])) == 2
        assert [rows(table) for table in tables] == [table["x"].to_pylist() for table in tables]
        return
    assert way.replace("<element:", "<item:").endswith(f", here both as {kind}")
    schema = pa.schema({"x": kind, "y": pa.int64()})
    cast = [table.cast(schema) for table in tables]
    expected = [value for table in cast for value in table["x"].to_pylist()]
    assert rows(source(cast)) == expected
    if form.endswith("files"):
        told = ', format="arrow"' if form.startswith("arrow") else ""
        given = {"pyarrow": pa, "paths": source(tables)}
        made = way.partition(" reads all")[0].replace("schema(...)", "schema(schema)")
        assert rows(eval(made, given | {"schema": schema})) == expected


def test_what_is_needed_of_types_that_pyarrow_casts_to_no_other_is_not_left_out():
    tables = [pa.table({"x": column, "y": [1]}) for column in (DAYS, TIMES)]
    told = "part 1: a Loader for each of them reads both$"
    for options in {"label": "x"}, {"filter": pc.field("x").is_valid(), "columns": ["y"]}:
        with pytest.raises(TypeError, match=told):
            list(Loader(tables, **options))
    wish = {"x": Categories([DAY, datetime.time(12)])}
    with pytest.raises(
        TypeError, match="a filter needs one: a Loader for each of them reads both$"
    ):
        list(Loader(tables, columns=wish, filter=pc.field("x").is_valid()))
    with pytest.raises(TypeError, match=r"Categories\(\[.*\]\) says their order$"):
        list(Loader(tables, columns={"x": Categories.scan()}))


STRUCTS = pa.table({"m": [{"a": 1}, None, {"a": 3}]})
TEXTS = pa.table({"m": ["x", "y"]})


@pytest.mark.parametrize(
    "of", ["list", "reversed", "mix", "mix of frames", "mix of iterators", "files", "function"]
)
@pytest.mark.parametrize("shuffle", [None, 4])
def test_a_column_that_is_no_struct_is_not_one_without_the_field(of, shuffle, tmp_path):
    """Of which the wish would make its null."""
    for number, table in enumerate((STRUCTS, TEXTS)):
        pq.write_table(table, tmp_path / f"{number}.parquet")
    source = {
        "list": [STRUCTS, TEXTS],
        "reversed": [TEXTS, STRUCTS],
        "mix": Mix([(STRUCTS, 1), (TEXTS, 1)]),
        "mix of frames": Mix([(polars.from_arrow(TEXTS), 1), (STRUCTS, 1)]),
        "mix of iterators": Mix([(iter([TEXTS]), 1), (STRUCTS, 1)]),
        "files": tmp_path,
        "function": lambda index, count: [STRUCTS, TEXTS],
    }[of]
    with pytest.raises(KeyError, match='no column "m.a": "m" is no struct, but string'):
        list(
            Loader(source, columns={"m.a": Cast("int64", nulls=-1)}, batch_size=2, shuffle=shuffle)
        )


def test_a_part_may_lack_a_field_or_a_column_with_a_dot():
    wish = {"m.a": Cast("int64", nulls=-1)}
    flat = pa.table({"m": ["x"], "m.a": [5]})
    for others in (
        pa.table({"m": pa.nulls(2)}),
        pa.table({"z": [1, 2]}),
        pa.table({"m": [{"b": 1}] * 2}),
    ):
        (batch,) = Loader([STRUCTS, others], columns=wish, batch_size=9)
        assert batch["m.a"].tolist() == [1, -1, 3, -1, -1]
    (batch,) = Loader([flat, TEXTS], columns=wish, batch_size=9)
    assert batch["m.a"].tolist() == [5, -1, -1]
    (batch,) = Loader([flat, STRUCTS], columns=wish, batch_size=9)
    assert batch["m.a"].tolist() == [5, 1, -1, 3]


@pytest.mark.parametrize("zone", ["UTC", None])
def test_words_without_the_zone_of_their_column_name_words_that_it_takes(zone):
    at = pa.array([0, 1_769_817_600], pa.timestamp("s", zone))
    naive = datetime.datetime(2026, 1, 31)
    zoned = naive.replace(tzinfo=datetime.UTC)
    taken, others = (zoned, [naive, np.datetime64(naive)]) if zone else (naive, [zoned])
    for word in others:
        wish = Categories([word])
        said = re.escape(f": its words have {'a' if zone else 'no'} zone, as datetime(2026, 1, 31")
        with pytest.raises(ValueError, match=said):
            Loader(pa.table({"at": at}), columns={"at": wish})
    loader = Loader(pa.table({"at": at}), columns={"at": Categories([taken], unknown=-1)})
    assert [batch["at"].tolist() for batch in loader] == [[-1, 0]]


def test_lists_of_lists_are_not_told_a_dtype_that_makes_no_tensor_of_them():
    rows, one = [[[1, 2]]], [[1, 2]]
    parts = [
        pa.table({"x": rows}),
        pa.table({"x": pa.array(rows, pa.list_(pa.list_(pa.float32())))}),
    ]
    with pytest.raises(TypeError, match="casts one of them") as raised:
        list(Loader(parts, batch_size=2))
    assert "float64" not in str(raised.value)
    parts = [pa.table({"x": one}), pa.table({"x": pa.array(one, pa.list_(pa.float32()))})]
    with pytest.raises(TypeError, match='Cast\\("float64"\\)'):
        list(Loader(parts, batch_size=2))
