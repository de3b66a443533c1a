"""A filter reads what it names: of parts that differ, of views, and of any kind of source."""

import datetime
import decimal
import os
import re

import datasets
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from arrow_dlpack import AsArrow, Categories, Loader, Mix


def rows_of(source, **options):
    """The rows, in the order of "x"."""
    return sorted(
        row for batch in Loader(source, columns=["x"], **options) for row in batch["x"].tolist()
    )


def written(folder, tables):
    folder.mkdir()
    for at, table in enumerate(tables):
        pq.write_table(table, folder / f"{at}.parquet", row_group_size=2)
    return str(folder)


PARTS = {
    "list": lambda folder, tables: tables,
    "files": lambda folder, tables: written(folder / "all", tables),
    "mix": lambda folder, tables: Mix([(one, 1) for one in tables]),
    "mix of files": lambda folder, tables: Mix(
        [(written(folder / "first", tables), 1), (tables[0].slice(0, 0), 1)]
    ),
    "mix of lists": lambda folder, tables: Mix([(tables[:1], 1), (tables[1:], 1)]),
}

BY_NAME = pc.field("m", "a") > 1
AT_PLACE = pc.struct_field(pc.field("m"), [1]) > 1


def structs(start, kind, rows):
    return pa.table({"x": range(start, start + len(rows)), "m": pa.array(rows, kind)})


FIRST = structs(
    0,
    pa.struct({"b": pa.bool_(), "a": pa.int64(), "in": pa.struct({"a": pa.int8()})}),
    [{"b": True, "a": 1, "in": {"a": 1}}, None, {"b": None, "a": 5, "in": {"a": 9}}],
)
TEXTS = structs(
    3,
    pa.struct({"in": pa.struct({"a": pa.int64(), "b": pa.int8()}), "a": pa.int8(), "b": pa.utf8()}),
    [{"in": {"a": 9}, "a": 2, "b": "t"}, None, {"in": {"a": 0}, "a": 0, "b": None}],
)
LACKS = structs(
    6, pa.struct({"a": pa.int64(), "in": pa.struct({"a": pa.int64()})}), [{"a": 7}, None]
)


@pytest.mark.parametrize("form", PARTS)
@pytest.mark.parametrize(
    ("where", "later", "kept"),
    [
        (BY_NAME, [TEXTS, LACKS], [2, 3, 6]),
        (AT_PLACE, [TEXTS], [2, 3]),
        (pc.field("m", "in", "a") > 1, [TEXTS, LACKS], [2, 3]),
        (pc.field("m").is_null(), [LACKS, TEXTS], [1, 4, 7]),
        (pc.field("m", "b").is_null(), [TEXTS], [1, 2, 4, 5]),
    ],
)
def test_a_filter_of_a_field_reads_no_other_field(form, where, later, kept, tmp_path):
    source = PARTS[form](tmp_path, [FIRST, *later])
    assert rows_of(source, filter=where) == kept
    assert rows_of(source, filter=where, shuffle=4, seed=1, batch_size=2) == kept
    loader = Loader(source, columns=["x"], filter=where, batch_size=1)
    assert len(loader) == len(kept)
    first = next(iter(loader))
    assert first["x"].tolist()[0] in kept
    again = Loader(source, columns=["x"], filter=where, batch_size=1)
    again.load_state_dict(loader.state_dict())
    assert len(list(again)) == len(kept) - 1


@pytest.mark.parametrize("form", PARTS)
@pytest.mark.parametrize("later", [TEXTS, LACKS])
def test_a_filter_of_a_field_without_a_type_of_all_parts_is_refused_by_name(form, later, tmp_path):
    source = PARTS[form](tmp_path, [FIRST, later])
    with pytest.raises(TypeError, match='column "m" is struct<b.* and struct<'):
        rows_of(source, filter=pc.field("m", "b") == pc.scalar(True))


@pytest.mark.parametrize("form", ["list", "files"])
def test_a_filter_sees_floats_of_a_field_whose_wish_says_so(form, tmp_path):
    floats = structs(3, pa.struct({"a": pa.float64()}), [{"a": 2.5}, {"a": 0.5}])
    source = PARTS[form](tmp_path, [FIRST, floats])
    loader = Loader(source, columns=["m.a"], dtype="float32", filter=BY_NAME, nulls="nan")
    assert [batch["m.a"].tolist() for batch in loader] == [[5.0], [2.5]]


class Labelled(pa.ExtensionType):
    """An extension type of a user's, which a process registers or does not."""

    def __init__(self, storage):
        super().__init__(storage, "arrow_dlpack.tests.labelled")

    def __arrow_ext_serialize__(self):
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage, serialized):
        return cls(storage)


@pytest.fixture
def labelled():
    pa.register_extension_type(Labelled(pa.int8()))
    yield Labelled
    pa.unregister_extension_type("arrow_dlpack.tests.labelled")


TEXTS_IN_VIEWS = pa.array(["1", "22", None, "a text of more than twelve bytes"], pa.string_view())
STORED = {
    "texts": TEXTS_IN_VIEWS,
    "binaries": TEXTS_IN_VIEWS.cast(pa.binary_view()),
    "lists": pa.array([[1], [2, 3], None, []], pa.list_view(pa.int64())),
    "structs": pa.array([{"a": "1"}, {"a": "22"}, None, {}], pa.struct({"a": pa.string_view()})),
}
OF_STORAGE = {
    "of a user": lambda make, one: make(one.type).wrap_array(one),
    "opaque": lambda make, one: pa.opaque(one.type, "a", "b").wrap_array(one),
    "in a list": lambda make, one: pa.ListArray.from_arrays(
        range(5), make(one.type).wrap_array(one)
    ),
    "in a struct": lambda make, one: pa.StructArray.from_arrays(
        [make(one.type).wrap_array(one)], ["a"]
    ),
    "plain": lambda make, one: one,
}


def parquet_file(path, table):
    pq.write_table(table, path)  # pyarrow 26 cuts no views within a struct into row groups
    return str(path)


def ipc_file(path, table):
    with pa.ipc.new_file(path, table.schema) as file:
        file.write_table(table, max_chunksize=2)
    return str(path)


@pytest.mark.parametrize("of", OF_STORAGE)
@pytest.mark.parametrize("stored", STORED)
@pytest.mark.parametrize("form", ["table", "list", "files", "dataset", "ipc", "mix", "stream"])
def test_extension_types_of_views_are_filtered_mixed_and_resumed(
    form, stored, of, labelled, tmp_path
):
    column = OF_STORAGE[of](labelled, STORED[stored])
    table = pa.table({"x": range(4), "c": column})
    if (stored, of) == ("structs", "in a list") and form in ("files", "dataset"):
        with pytest.raises(pa.ArrowNotImplementedError, match="Slicing .* StringView"):
            parquet_file(tmp_path / "x.parquet", table)  # pyarrow 26 writes no such file
        return
    source = {
        "table": lambda: table,
        "list": lambda: table.to_batches(max_chunksize=2),
        "files": lambda: parquet_file(tmp_path / "x.parquet", table),
        "dataset": lambda: ds.dataset(parquet_file(tmp_path / "x.parquet", table)),
        "ipc": lambda: ipc_file(tmp_path / "x.arrow", table),
        "mix": lambda: Mix([(table.slice(0, 2), 1), (table.slice(2), 1)]),
        "stream": lambda: iter(table.to_batches(max_chunksize=2)),
    }[form]()

    def rows(loader):
        return {
            row: value
            for batch in loader
            for row, value in zip(
                batch["x"].tolist(), pa.array(batch["c"]).to_pylist(), strict=True
            )
        }

    columns, values = {"x": None, "c": AsArrow()}, dict(enumerate(column.to_pylist()))
    if form == "stream":
        kept = rows(Loader(source, columns=columns, filter=pc.field("x") > 0))
        assert kept == {row: values[row] for row in (1, 2, 3)}
        return
    for where in pc.field("x") > 0, pc.field("c").is_valid() & (pc.field("x") > 0):
        kept = rows(Loader(source, columns=columns, filter=where))
        assert kept == {row: values[row] for row in kept}
        assert {1, 3} <= set(kept) <= {1, 2, 3}
    shuffled = Loader(source, columns=columns, shuffle=3, seed=1, batch_size=1)
    batches = iter(shuffled)
    first, state = rows([next(batches)]), shuffled.state_dict()
    again = Loader(source, columns=columns, shuffle=3, seed=1, batch_size=1)
    again.load_state_dict(state)
    assert first | rows(again) == values


@pytest.mark.parametrize("form", ["file", "row groups", "files", "ipc", "in memory", "hive"])
def test_fragments_are_filtered_divided_and_resumed(form, tmp_path):
    table = pa.table({"x": range(8), "y": [1] * 8})
    if form == "in memory":
        source = list(ds.dataset(table).get_fragments())
    elif form == "ipc":
        dataset = ds.dataset(ipc_file(tmp_path / "x.arrow", table), format="ipc")
        (source,) = dataset.get_fragments()
    elif form == "hive":
        ds.write_dataset(table, tmp_path, format="parquet", partitioning=["y"])
        (source,) = ds.dataset(tmp_path, partitioning=["y"]).get_fragments()
    else:
        tables = [table] if form != "files" else [table.slice(0, 5), table.slice(5)]
        found = list(ds.dataset(written(tmp_path / "all", tables)).get_fragments())
        source = {
            "file": lambda: found[0],
            "row groups": found[0].split_by_row_group,
            "files": lambda: found,
        }[form]()
    where = pc.field("x") > 2
    assert rows_of(source) == list(range(8))
    assert rows_of(source, filter=where) == list(range(3, 8))
    assert rows_of(source, filter=where, shuffle=4, batch_size=2) == list(range(3, 8))
    assert rows_of(Mix([(source, 1)]), filter=where) == list(range(3, 8))
    for options in {}, {"filter": where}:
        shares = [
            rows_of(source, rank=at, world_size=2, batch_size=1, uneven="allow", **options)
            for at in range(2)
        ]
        assert sorted(shares[0] + shares[1]) == rows_of(source, **options)
    even = [rows_of(source, rank=at, world_size=2, batch_size=1) for at in range(2)]
    assert sorted(even[0] + even[1]) == list(range(8))
    loader, again = (Loader(source, columns=["x"], batch_size=3, shuffle=4, seed=1) for _ in "ab")
    assert len(loader) == 3
    batches = iter(loader)
    next(batches)
    again.load_state_dict(loader.state_dict())
    assert [batch["x"].tolist() for batch in again] == [batch["x"].tolist() for batch in batches]


def test_fragments_have_one_schema_or_name_a_file(tmp_path):
    one, other = pa.table({"x": pa.array([1], pa.int8())}), pa.table({"x": [2]})
    found = list(ds.dataset(written(tmp_path / "all", [one, other])).get_fragments())
    assert rows_of(found) == [1, 2]
    texts = list(ds.dataset(written(tmp_path / "texts", [pa.table({"x": ["a"]})])).get_fragments())
    with pytest.raises(TypeError, match=r'column "x" is int8 in .*0.parquet and string in .*texts'):
        rows_of(found + texts)
    with pytest.raises(TypeError, match=r"list\(x\) of these fragments is a source"):
        rows_of(iter(found))


def test_unread_columns_of_fragments_need_no_common_type(tmp_path):
    tables = [pa.table({"x": [at], "y": [y]}) for at, y in enumerate(["a", 1.5])]
    found = list(ds.dataset(written(tmp_path / "all", tables)).get_fragments())
    assert rows_of(found) == [0, 1]
    assert rows_of(found, filter=pc.field("x") > 0) == [1]
    with pytest.raises(TypeError, match='column "y" is string in'):
        list(Loader(found))


def test_a_replaced_file_of_a_fragment_is_an_error_with_its_name(tmp_path):
    folder = written(tmp_path / "all", [pa.table({"x": range(8)})])
    loader = Loader(list(ds.dataset(folder).get_fragments()), batch_size=4)
    assert len(list(loader)) == 2
    other = written(tmp_path / "other", [pa.table({"x": ["a", "b"]})])
    os.replace(f"{other}/0.parquet", f"{folder}/0.parquet")
    with pytest.raises((OSError, ValueError), match="all/0.parquet"):
        list(loader)


def sources_of(table, folder):
    paths = [str(folder / f"{at}.parquet") for at in range(2)]
    for path in paths:
        pq.write_table(table, path, row_group_size=2)
    return {
        "table": table,
        "tables": [table, table],
        "path": paths[0],
        "paths": paths,
        "dataset": ds.dataset(paths),
        "mix": Mix([(table, 1), (table, 1)]),
        "mix of paths": Mix(dict.fromkeys(paths, 1)),
        "fragments": list(ds.dataset(paths).get_fragments()),
    }


FORMS = ["table", "tables", "path", "paths", "dataset", "mix", "mix of paths", "fragments"]


@pytest.mark.parametrize("form", FORMS)
def test_a_filter_that_pyarrow_has_no_kernel_for_names_columns_and_types(form, tmp_path):
    digits = pa.array([decimal.Decimal(1)] * 4, pa.decimal128(38, 0))
    table = pa.table({"i": range(4), "t": ["a", "b", "c", "d"], "d": digits})
    source = sources_of(table.append_column("s", pa.array([{"t": "a"}] * 4)), tmp_path)[form]
    cases = [
        (pc.field("t") > 5, r'column "t" as string, .*\(string, int8\)'),
        ((pc.field("i") > 0) & (pc.field("t") == pc.field("d")), '"t" as string, "d" as decimal'),
        (pc.field("d") > 0, r'column "d" as decimal128\(38, 0\), '),
        (pc.field("t").isin([1]), r'column "t" as string, .*string vs int64'),
        (pc.field("s", "t") > 5, r'column "s" as struct<t: string>, .*\(string, int8\)'),
        (pc.field("d") * pc.field("d") > 1, r'column "d" as decimal128\(38, 0\), '),
        (pc.utf8_upper(pc.field("i")) == "A", r'column "i" as int64, .*utf8_upper'),
    ]
    for where, told in cases:
        for options in {"columns": ["i"]}, {"columns": {"t": Categories.scan()}}:
            # Of several files all footers are read by the loop.
            read = list if form in ("paths", "fragments") else lambda loader: loader
            with pytest.raises(TypeError, match=f"filter= has .*{told}"):
                read(Loader(source, filter=where, batch_size=2, **options))
    for where in (
        pc.field("i").cast("string") == "1",
        pc.field("t") == "b",
        pc.field("d") > pa.scalar(decimal.Decimal(0), digits.type),
    ):
        assert list(Loader(source, columns=["i"], filter=where, batch_size=9))


@pytest.mark.parametrize("form", FORMS)
def test_a_filter_sees_booleans_in_bytes_as_booleans(form, tmp_path):
    stored = pa.array([1, 0, None, 2, 0, 1], pa.int8())
    table = pa.table({"i": range(6), "b": pa.ExtensionArray.from_storage(pa.bool8(), stored)})
    times = 1 if form in ("table", "path") else 2
    for where, kept in [
        (pc.field("b"), [0, 3, 5]),
        (~pc.field("b"), [1, 4]),
        (pc.field("b") == False, [1, 4]),  # noqa: E712
        (pc.field("b").is_null(), [2]),
        (pc.field("b") & (pc.field("i") > 0), [3, 5]),
    ]:
        source = sources_of(table, tmp_path)[form]
        for options in {}, {"shuffle": 9, "seed": 1}:
            loader = Loader(source, columns=["i"], filter=where, batch_size=1, **options)
            found = sorted(np.asarray(batch["i"]).item() for batch in loader)
            assert found == sorted(kept * times)
            assert len(loader) == len(found)
    (batch,) = Loader(source, columns=["b"], filter=pc.field("b"), batch_size=9, framework="numpy")
    assert batch["b"].tolist() == [True] * 3 * times


IDS = [bytes([at]) * 16 for at in range(4)]
EXTENSIONS = {
    "uuid": (pa.array(IDS, pa.uuid()), pa.binary(16), IDS),
    "json": (pa.array(list("1234"), pa.json_()), pa.string(), list("1234")),
    "opaque": (
        pa.opaque(pa.int64(), "t", "v").wrap_array(pa.array([1, 2, 3, 4])),
        pa.int64(),
        [1, 2, 3, 4],
    ),
}


@pytest.mark.parametrize("kind", EXTENSIONS)
def test_extension_types_in_parquet_are_filtered_by_no_statistics(kind, tmp_path):
    column, stored, values = EXTENSIONS[kind]
    table = pa.table({"x": range(4), "e": column, "w": list("abcd")})
    folder = written(tmp_path / "files", [table, table.slice(1)])
    path = f"{folder}/0.parquet"
    field = pc.field("e")
    sources = folder, [path, path], path, ds.dataset(folder), Mix([(path, 1), (table, 1)])
    filters = [
        (field.is_valid(), [0, 1, 2, 3]),
        (field.cast(stored) == pa.scalar(values[1], stored), [1]),
        (field.cast(stored).isin(pa.array(values[2:], stored)), [2, 3]),
    ]
    for source in sources:
        for where, kept in filters:
            assert set(rows_of(source, filter=where)) == set(kept)
            assert set(rows_of(source, filter=where, shuffle=2, batch_size=1)) == set(kept)
            loader = Loader(source, columns={"w": Categories.scan()}, filter=where, batch_size=1)
            assert loader.categories["w"] == tuple("abcd"[at] for at in kept)
            assert len(loader) == len(list(loader))


DAYS = pa.array([0, 2_932_896], pa.int32())
SETS = {
    "uint64": (pa.array([1, 2**64 - 1], pa.uint64()), pa.array([1])),
    "int64": (pa.array([1, 2**63 - 1]), pa.array([1.0])),
    "negative": (pa.array([1, -(2**63)]), pa.array([1], pa.uint64())),
    "int32": (pa.array([1, 2**31 - 1], pa.int32()), pa.array([1.0], pa.float32())),
    "date": (DAYS.cast(pa.date32()), pa.array([0], pa.timestamp("ns"))),
    "timestamp": (
        DAYS.cast(pa.date32()).cast(pa.timestamp("ms")),
        pa.array([0], pa.timestamp("ns")),
    ),
}


@pytest.mark.parametrize("kind", SETS)
def test_a_set_of_another_type_is_not_compared_with_statistics_that_it_cannot_hold(kind, tmp_path):
    """The engine makes the set one of the column's type, and pyarrow's pruning the bounds."""
    values, words = SETS[kind]
    table = pa.table({"x": [0, 1], "c": values, "m": pa.StructArray.from_arrays([values], ["c"])})
    folder = written(tmp_path / "files", [table, table])
    path = f"{folder}/0.parquet"
    for field in pc.field("c"), pc.field("m", "c"):
        for where, kept in (field.isin(words), [0]), (~field.isin(words) & field.is_valid(), [1]):
            filtered = ds.dataset(path).filter(where)
            sources = table, path, [path], ds.dataset(path), filtered, Mix([(path, 1)])
            for source in sources:
                assert rows_of(source, filter=where) == kept
                assert rows_of(source, filter=where, batch_size=1, shuffle=2) == kept
            assert rows_of(folder, filter=where) == kept * 2
            assert rows_of(filtered) == kept


VIEWS = {
    "text": pa.array(list("abcdabcd"), pa.string_view()),
    "binary": pa.array([one.encode() for one in "abcdabcd"], pa.binary_view()),
    "list": pa.array([["a"], None] * 4, pa.list_(pa.string_view())),
    "struct": pa.array([{"t": "a"}, None] * 4, pa.struct({"t": pa.string_view()})),
    "map": pa.array([[("a", "b")], None] * 4, pa.map_(pa.string_view(), pa.string_view())),
    "runs": pc.run_end_encode(pa.array([1, 1, 2, 2, 2, 3, 3, 4])),
}
OF_TABLES = {
    "dataset": ds.dataset,
    "batches": lambda table: ds.dataset(table.to_batches(max_chunksize=3)),
    "fragments": lambda table: list(ds.dataset(table).get_fragments()),
    "union": lambda table: ds.dataset([ds.dataset(table.slice(0, 5)), ds.dataset(table.slice(5))]),
    "filtered": lambda table: ds.dataset(table).filter(pc.field("x") >= 0),
    "filtered union": lambda table: ds.dataset([ds.dataset(table)]).filter(pc.field("x") < 8),
    "mix": lambda table: Mix([(ds.dataset(table), 1)]),
}


@pytest.mark.parametrize("form", OF_TABLES)
@pytest.mark.parametrize("kind", VIEWS)
def test_datasets_of_tables_of_views_are_filtered_and_resumed_as_tables(form, kind):
    table = pa.table({"x": range(8), "c": VIEWS[kind]})
    source = OF_TABLES[form](table)
    assert rows_of(source) == list(range(8))
    assert rows_of(source, filter=pc.field("x") > 3) == [4, 5, 6, 7]
    assert rows_of(source, filter=pc.field("c").is_null()) == rows_of(
        table, filter=pc.field("c").is_null()
    )
    assert len(Loader(source, columns=["x"], filter=pc.field("x") > 3, batch_size=1)) == 4
    columns = {"x": None, "c": AsArrow()}
    for options in {}, {"filter": pc.field("x") > 1}, {"shuffle": 3, "seed": 1}:
        wanted, found = [
            [(pa.array(batch["c"]).to_pylist(), batch["x"].tolist()) for batch in loader]
            for loader in (
                Loader(one, columns=columns, batch_size=2, **options) for one in (table, source)
            )
        ]
        assert found == wanted
        loader = Loader(source, columns=columns, batch_size=2, **options)
        next(iter(loader))
        state = loader.state_dict()
        loader = Loader(OF_TABLES[form](table), columns=columns, batch_size=2, **options)
        loader.load_state_dict(state)
        assert [batch["x"].tolist() for batch in loader] == [x for _, x in wanted[1:]]
        other = OF_TABLES[form](pa.table({"x": range(1, 9), "c": VIEWS[kind]}))
        if form in ("dataset", "union", "mix", "batches"):
            loader = Loader(other, columns=columns, batch_size=2, **options)
            loader.load_state_dict(state)
            with pytest.raises(ValueError, match="other data"):
                list(loader)


@pytest.mark.parametrize("form", OF_TABLES)
def test_views_in_datasets_of_tables_have_codes(form):
    table = pa.table({"x": range(8), "c": VIEWS["text"]})
    for wish in Categories(list("abcd")), Categories.scan():
        loader = Loader(OF_TABLES[form](table), columns={"c": wish}, filter=pc.field("x") > 2)
        assert [code for batch in loader for code in batch["c"].tolist()] == [3, 0, 1, 2, 3]


@pytest.mark.parametrize("where", [pc.field("c") != "a", ~pc.field("x").isin([0, 4])])
def test_a_dataset_of_files_of_views_keeps_its_own_filter(where, tmp_path):
    table = pa.table({"x": range(8), "c": VIEWS["text"]})
    folder = written(tmp_path / "files", [table])
    for source in ds.dataset(folder), ds.dataset([ds.dataset(folder), ds.dataset(table)]):
        times = 1 if hasattr(source, "files") else 2
        found = Loader(source.filter(where), columns=["x"], batch_size=4)
        assert len(found) == -(-6 * times // 4)
        kept = [value for batch in found for value in batch["x"].tolist()]
        assert kept == [1, 2, 3, 5, 6, 7] * times
        more = rows_of(source.filter(where), filter=pc.field("c") > "b")
        assert more == sorted([2, 3, 6, 7] * times)
        loader = Loader(source.filter(where), columns=["x"], batch_size=4)
        next(iter(loader))
        loader.load_state_dict(loader.state_dict())
        assert [value for batch in loader for value in batch["x"].tolist()] == kept[4:]


RUNS = {
    "runs": (VIEWS["runs"], 'pyarrow.compute.run_end_decode(table["c"])'),
    "struct": (
        pa.StructArray.from_arrays([VIEWS["runs"]], ["v"]),
        'pyarrow.array(table["c"].to_pylist(), type)',
    ),
}


@pytest.mark.parametrize("kind", RUNS)
def test_errors_for_runs_name_what_decodes_them(kind):
    column, way = RUNS[kind]
    plain = pa.array(column.to_pylist())
    table, other = pa.table({"x": range(8), "c": column}), pa.table({"x": [9], "c": plain[:1]})
    field = pc.field("c") if kind == "runs" else pc.field("c", "v")
    for where in field > 2, field.cast("float64") > 2:
        with pytest.raises(TypeError) as raised:
            Loader(table, columns=["x"], filter=where)
        assert way in str(raised.value)
        assert "field.cast" not in str(raised.value).partition(", in ")[0]
    for source in [table, other], iter([table, other]), Mix([(table, 1), (other, 1)]):
        with pytest.raises(TypeError) as raised:
            list(Loader(source, columns={"c": AsArrow()}))
        assert way in str(raised.value)
        assert "cast(schema)" not in str(raised.value)
    found = eval(way, {"pyarrow": pa, "table": table, "type": plain.type})
    decoded = table.set_column(1, "c", found)
    assert rows_of(decoded, filter=field > 2) == [5, 6, 7]
    assert len(list(Loader([decoded, other], columns={"c": AsArrow()}))) == 2


def test_a_filter_names_no_column_by_its_place(tmp_path):
    table = pa.table({"x": [1, 1, 2], "i": [1, 2, 3], "m": [{"a": 1, "b": 2}] * 3})
    pq.write_table(table, tmp_path / "a.parquet")
    for where in (pc.field(0) != 1, (pc.field("x") > 1) & (pc.field(1) > 0), pc.field(2, 1) == 2):
        for source in (table, str(tmp_path), ds.dataset(tmp_path), iter([table])):
            with pytest.raises(TypeError, match="filter= names column . by its place"):
                Loader(source, columns=["i"], filter=where)
        with pytest.raises(TypeError, match="by its place"):
            list(Loader(ds.dataset(tmp_path).filter(where), columns=["i"]))
    # Within a struct a place is that of its type, and a value may have any text.
    texts = table.append_column("text", pa.array(["a", "b", "c"]))
    for where in (pc.field("m", 1) == 2, pc.field("text") != 'a "FieldPath(0)"'):
        loader = Loader(texts, columns=["i"], filter=where)
        assert [n for batch in loader for n in batch["i"].tolist()] == [1, 2, 3]


def test_a_filter_of_a_field_by_its_path_in_columns_says_how_it_is_named():
    table = pa.table({"x": [1, 2], "m": [{"s": {"t": 1}}, {"s": {"t": 2}}]})
    told = r"a field in a struct is (pyarrow\.compute\.field\('m', 's', 't'\))"
    with pytest.raises(KeyError) as raised:
        Loader(table, columns=["x"], filter=pc.field("m.s.t") > 1)
    (way,) = re.findall(told, raised.value.args[0])
    (batch,) = Loader(table, columns=["x"], filter=eval(way, {"pyarrow": pa}) > 1)
    assert batch["x"].tolist() == [2]
    with pytest.raises(KeyError) as raised:
        Loader(table, columns=["x"], filter=pc.field("x.s") > 1)
    assert raised.value.args[0].endswith("there is none among ['x', 'm']")
    dotted = pa.table([table["x"], table["m"]], ["x", "a.m"])
    with pytest.raises(KeyError, match=r"field\(\\'a\.m\\', \\'s\\', \\'t\\'\)"):
        Loader(dotted, columns=["x"], filter=pc.field("a.m.s.t") > 1)
    others = {"li": [[1]], "mp": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64()))}
    nested = pa.table(others | {"x": [1], "m": [{"a.b": {"c": 1}}]})
    for name in "li.item", "li.element", "mp.key", "m.zz", "m.", "m.a":
        with pytest.raises(KeyError, match=f'"{name}", and there is none among [^:]*$'):
            Loader(nested, columns=["x"], filter=pc.field(name) > 1)
    with pytest.raises(KeyError, match=r"field\(\\'m\\', \\'a\.b\\', \\'c\\'\)"):
        Loader(nested, columns=["x"], filter=pc.field("m.a.b.c") > 1)
    twice = pa.table([table["x"], table["m"], table["m"]], ["x", "m", "m"])
    with pytest.raises(KeyError, match='filter= names column "m.s", and there is none among'):
        Loader(twice, columns=["x"], filter=pc.field("m.s") > 1)

    frame = table.to_pandas()  # of which the names alone are known
    with pytest.raises(KeyError, match=r"field\(\\'m\\', \\'s\\', \\'t\\'\)"):
        Loader(frame, columns=["x"], filter=pc.field("m.s.t") > 1)


SOURCES = {
    "table": lambda table, path: table,
    "frame": lambda table, path: table.to_pandas(),
    "file": lambda table, path: path,
    "dataset": lambda table, path: ds.dataset(path),
    "mix": lambda table, path: Mix([(table, 1), (path, 1)]),
    "batches": lambda table, path: iter(table.to_batches()),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_a_filter_of_a_field_that_a_struct_has_not_tells_its_fields(kind, tmp_path):
    table = pa.table({"x": [1, 2], "m": [{"s": {"t": 1}}, {"s": {"t": 2}}]})
    pq.write_table(table, tmp_path / "a.parquet")
    source = SOURCES[kind](table, tmp_path / "a.parquet")
    told = 'filter=: no column "m.s.u": struct "m.s" has [\'t\']'
    with pytest.raises(KeyError) as raised:
        list(Loader(source, columns=["x"], filter=pc.field("m", "s", "u") > 1))
    assert raised.value.args[0] == told


@pytest.mark.parametrize("kind", SOURCES)
def test_a_filter_of_times_with_and_without_a_zone_is_refused(kind, tmp_path):
    naive = [datetime.datetime(2026, 1, day) for day in (1, 2, 3)]
    zoned = [day.replace(tzinfo=datetime.UTC) for day in naive]
    table = pa.table({"x": [1, 2, 3], "t": zoned, "n": naive, "m": [{"t": day} for day in zoned]})
    # The types of others are known as the Loader is made.
    read = list if kind in ("frame", "mix", "batches") else pytest.fail
    pq.write_table(table, tmp_path / "a.parquet")
    for where in (
        pc.field("t") > naive[1],
        pc.field("n") > zoned[1],
        pc.field("n") < pc.field("t"),
        (pc.field("x") > 1) & (pc.field("m", "t") > naive[1]),
    ):
        source = SOURCES[kind](table, tmp_path / "a.parquet")
        with pytest.raises(TypeError, match="filter= compares times with a zone and times without"):
            read(Loader(source, columns=["x"], filter=where))
    for where in (
        pc.field("t") > zoned[1],
        pc.field("n") > naive[1],
        pc.field("m", "t") > zoned[1],
    ):
        source = SOURCES[kind](table, tmp_path / "a.parquet")
        assert set(rows_of(source, filter=where)) == {3}


def test_a_filter_that_fails_names_no_column_of_another_error(tmp_path):
    table = pa.table({"a": pa.array([1, 300], "int32"), "w": ["1", "z"]})
    pq.write_table(table, tmp_path / "a.parquet")
    dataset = ds.dataset(tmp_path, schema=pa.schema({"a": pa.int8(), "w": pa.large_string()}))
    for columns in ["a"], ["w", "a"]:
        wishes = {name: AsArrow() for name in columns}
        with pytest.raises(
            ValueError, match="'z' as a scalar of type int64|column \"a\" is"
        ) as raised:
            list(Loader(dataset, columns=wishes, filter=pc.field("w").cast("int64") > 0))
        told = str(raised.value)
        assert ("scalar" in told) != ('column "a" is int32 there' in told)


@pytest.mark.parametrize("kind", ["table", "parts", "file", "csv", "dataset", "mix"])
def test_integers_that_pyarrow_compares_as_a_narrower_type_are_told(kind, tmp_path):
    """It makes int64 of uint64 beside Python's integers, and floats beside floats."""
    table = pa.table({"u": pa.array([1, 2**63 + 5], pa.uint64()), "i": [2**60, 2], "x": [1, 2]})
    pq.write_table(table, tmp_path / "a.parquet")
    pa.csv.write_csv(table, tmp_path / "a.csv")
    source = {
        "table": table,
        "parts": [table, table.slice(0, 0)],
        "file": tmp_path / "a.parquet",
        "csv": ds.dataset(tmp_path / "a.csv", schema=table.schema, format="csv"),
        "dataset": ds.dataset(tmp_path / "a.parquet"),
        "mix": Mix([(tmp_path / "a.parquet", 1), (table.slice(0, 0), 1)]),
    }[kind]
    options = {"columns": ["x"], "batch_size": 9}
    for wrong, right, name, kept in (
        (1, pa.scalar(1, "uint64"), "u", [2]),
        (1.0, pa.scalar(1, "uint64"), "u", [2]),
        (2.0, pa.scalar(2, "int64"), "i", [1]),
    ):
        where = pc.field(name) > wrong
        told = rf'filter= has column "{name}" as u?int64, .* not in range: .*pyarrow\.scalar\(1, "'
        with pytest.raises(ValueError, match=told):
            list(Loader(source, filter=where, **options))
        with pytest.raises(ValueError, match=told):
            list(Loader(source, filter=where, rank=0, world_size=2, **options))
        (batch,) = Loader(source, filter=pc.field(name) > right, **options)
        assert batch["x"].tolist() == kept


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (pa.array([1, 2**40]), pa.int32()),
        (pa.array([1, 2**63], pa.uint64()), pa.int64()),
        (pa.array([[1], [2**40]]), pa.list_(pa.int32())),
    ],
    ids=["narrower", "signed", "lists"],
)
@pytest.mark.parametrize("form", ["parquet", "ipc"])
@pytest.mark.parametrize("names", [["id"], ["x"], ["x", "id"]], ids=str)
def test_a_value_that_the_schema_does_not_hold_is_no_matter_of_a_filter(
    column, kind, form, names, tmp_path
):
    table = pa.table({"id": [0, 1], "x": column})
    is_of_lists = pa.types.is_list(kind)
    ds.write_dataset(table, tmp_path, format=form)
    schema = pa.schema({"id": pa.int64(), "x": kind})
    dataset = ds.dataset(tmp_path, schema=schema, format=form)
    where = pc.scalar(True)
    for name in names:
        where &= pc.field(name).is_valid() if is_of_lists else pc.field(name) >= 0
    told = r'part-0\.\w+: column "x" is .* there and .* in the schema of the dataset'
    for source in dataset, dataset.filter(where), Mix([(dataset, 1)]):
        for options in {}, {"shuffle": 2, "batch_size": 1}, {"columns": ["x"]}:
            with pytest.raises(ValueError, match=told):
                list(Loader(source, filter=where, **options))
    (batch,) = Loader(dataset, filter=pc.field("id") >= 0, columns=["id"], batch_size=2)
    assert batch["id"].tolist() == [0, 1]


def test_a_filter_by_the_key_of_folders_that_a_file_lacks_says_how_it_is_null(tmp_path):
    for at in 1, 2:
        (tmp_path / "f" / f"k={at}").mkdir(parents=True)
        pq.write_table(pa.table({"x": [at]}), tmp_path / "f" / f"k={at}" / "a.parquet")
    pq.write_table(pa.table({"x": [3]}), tmp_path / "b.parquet")
    source = [str(tmp_path / "f"), str(tmp_path / "b.parquet")]
    where, made = pc.field("k") == 1, "pyarrow.dataset.dataset(paths, schema=..., format=..., part"
    told = rf'column "k", which .*b\.parquet has not: .*{re.escape(made)}itioning="hive"\)'
    with pytest.raises(KeyError, match=told):
        list(Loader(source, columns=["x"], filter=where))
    (batch,) = Loader(source, filter=pc.field("x") > 1, columns=["x"], batch_size=9)
    assert batch["x"].tolist() == [2, 3]
    paths = sorted(map(str, tmp_path.rglob("*.parquet")))
    schema = pa.schema([("x", pa.int64()), ("k", pa.int32())])
    dataset = ds.dataset(paths, schema=schema, format="parquet", partitioning="hive")
    for told, kept in (where, [1]), (pc.field("k").is_null(), [3]):
        (batch,) = Loader(dataset, filter=told, columns=["x"], batch_size=9)
        assert batch["x"].tolist() == kept


SCHEMAS = {
    "table": lambda table: table,
    "Hugging Face": datasets.Dataset,
    "Hugging Face, streamed": lambda table: datasets.Dataset(table).to_iterable_dataset(),
    "lazy": lambda table: pl.from_arrow(table).lazy(),
}


@pytest.mark.parametrize("first", SCHEMAS)
@pytest.mark.parametrize("second", SCHEMAS)
def test_a_filter_sees_the_types_of_all_sources_of_a_mix(first, second):
    nulls = pa.table({"x": [0, 1], "text": pa.nulls(2)})
    texts = pa.table({"x": [2, 3], "text": ["a", "b"]})
    for one, other in [(nulls, texts), (texts, nulls)]:
        mix = Mix([(SCHEMAS[first](one), 1), (SCHEMAS[second](other), 1)])
        assert rows_of(mix, filter=pc.field("text").isin(["a"])) == [2]
        assert rows_of(mix, filter=pc.field("text").is_null()) == [0, 1]


def matrices(rows, *extents):
    """Each row has its number in all places."""
    found = pa.array(np.repeat(np.arange(rows, dtype="int32"), np.prod(extents)))
    for extent in reversed(extents):
        found = pa.FixedSizeListArray.from_arrays(found, extent)
    return found


@pytest.mark.parametrize(
    "kind", ["table", "parts", "batches", "mix", "path", "dataset", "ipc", "own", "union", "tables"]
)
@pytest.mark.parametrize("form", ["matrix", "cube", "in a struct", "extension"])
def test_rows_of_lists_of_fixed_size_within_such_are_those_of_the_filter(kind, form, tmp_path):
    """pyarrow 26 takes other rows of a slice, as its scans of large row groups make them."""
    rows = 140_000  # more than a batch of its scans has
    column = matrices(rows, *([1, 2, 1] if form == "cube" else [2, 1]))
    if form == "extension":
        column = pa.ExtensionArray.from_storage(pa.opaque(column.type, "m", "test"), column)
    if form == "in a struct":
        column = pa.StructArray.from_arrays([column], ["a"])
    table = pa.table({"id": np.arange(rows), "m": column})
    later = table.slice(139_000)
    pq.write_table(table.slice(0, 0) if kind == "mix" else table, tmp_path / "a.parquet")
    pa.feather.write_feather(table, tmp_path / "a.arrow", "uncompressed", chunksize=rows)
    dataset = ds.dataset(tmp_path / "a.parquet")
    source = {
        "table": lambda: later,
        "parts": lambda: [table.slice(0, 10), later],
        "batches": lambda: iter(later.to_batches()),
        "mix": lambda: Mix([(later, 1), (tmp_path / "a.parquet", 1)]),
        "path": lambda: tmp_path / "a.parquet",
        "dataset": lambda: dataset,
        "ipc": lambda: tmp_path / "a.arrow",
        "own": lambda: dataset.filter(pc.field("id") > 5),
        "union": lambda: ds.dataset([dataset, ds.dataset(later)]),
        "tables": lambda: ds.dataset(later),
    }[kind]
    name = "m.a" if form == "in a struct" else "m"
    wishes = {"id": None, name: AsArrow() if form == "extension" else None}
    always = {"batch_size": 4, "framework": "numpy"}
    for least, some in (139_990, {}), (139_990, {"shuffle": 7, "seed": 1}), (10**6, {}):
        options = always | some
        where = (pc.field("id") >= least) & (pc.field("id") != 139_995)
        found = []
        for batch in Loader(source(), columns=wishes, filter=where, **options):
            values = batch[name]
            if form == "extension":
                values = np.array(pa.array(values).storage.to_pylist())
            assert (values.reshape(len(values), -1) == batch["id"][:, None]).all()
            found += batch["id"].tolist()
        kept = [at for at in range(least, rows) if at != 139_995]
        assert sorted(set(found)) == kept
        assert len(found) == len(kept) * (2 if kind == "union" else 1)


def test_a_filter_of_such_lists_reads_no_row_group_that_it_leaves_out(tmp_path):
    table = pa.table({"id": range(40), "key": [0] * 20 + [1] * 20, "m": matrices(40, 2, 3)})
    pq.write_to_dataset(table, tmp_path, partition_cols=["key"], row_group_size=10)
    dataset = ds.dataset(tmp_path, partitioning="hive")
    (path,) = (path for path in dataset.files if "key=0" in path)
    # Its footer is read, and no row.
    with open(path, "r+b") as file:
        file.write(b"\xff" * (pq.ParquetFile(path).metadata.row_group(1).total_byte_size + 100))
    for where in pc.field("key") == 1, pc.field("id") >= 20:
        options = {"columns": ["id", "m"], "batch_size": 20, "framework": "numpy"}
        (batch,) = Loader(dataset, filter=where, **options)
        assert (batch["m"].reshape(20, 6) == batch["id"][:, None]).all()
    with pytest.raises((OSError, ValueError), match="key=0"):
        list(Loader(dataset, columns=["id", "m"], filter=pc.field("id") >= 19))


@pytest.mark.parametrize("long", ["\u6570" * 40, "x" + "\u00e9" * 60, "\U0001f600" * 30], ids=len)
def test_a_filter_of_long_texts_in_any_letters_is_shown(long, tmp_path):
    """pyarrow 26 leaves the middle out, and a part of a letter with it."""
    table = pa.table({"x": [1, 2], "s": [long, "b"]})
    pq.write_table(table, tmp_path / "a.parquet")
    for where in pc.field("s") == long, pc.field("s").isin([long]):
        for source in table, tmp_path / "a.parquet", Mix([(table, 1), (table.slice(0, 0), 1)]):
            loader = Loader(source, columns=["x"], filter=where, batch_size=1)
            assert "filter" in repr(loader)
            epoch = iter(loader)
            assert next(epoch)["x"].tolist() == [1]
            resumed = Loader(source, columns=["x"], filter=where, batch_size=1)
            resumed.load_state_dict(loader.state_dict())
            assert not list(resumed)
            wrong = pc.field("x") == long
            with pytest.raises(TypeError, match="x. as int64, which pyarrow does not take so"):
                list(Loader(source, columns=["x"], filter=wrong))


NOON = [datetime.datetime(2020, 1, day, hour) for day, hour in ((1, 13), (1, 14), (2, 9))]


@pytest.mark.parametrize("zone", [None, "America/New_York"])
@pytest.mark.parametrize("kind", [pa.date32(), pa.time64("us"), pa.string()], ids=str)
def test_statistics_of_times_are_none_of_their_days(tmp_path, kind, zone):
    """The schema of a dataset may make dates, times of a day, or texts of times."""
    table = pa.table({"x": [0, 1, 2], "day": pa.array(NOON, pa.timestamp("us", zone))})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=2)
    schema = pa.schema({"x": pa.int64(), "day": kind})
    dataset = ds.dataset(tmp_path / "a.parquet", schema=schema)
    day = dataset.to_table()["day"][0]
    field = pc.field("day")
    for where in (
        *(field == day, field <= day, ~(field > day), field > day, field != day),
        field.isin(pa.array([day.as_py()], kind)),
    ):
        expected = dataset.to_table().filter(where)["x"].to_pylist()
        sources = [dataset, ds.dataset([dataset]), Mix([(dataset, 1)])]
        for source in sources:
            assert rows_of(source, filter=where) == expected
            shuffled = {"shuffle": 3, "seed": 1, "batch_size": 9}
            assert rows_of(source, filter=where, **shuffled) == expected
        assert rows_of(dataset.filter(where)) == expected
        assert len(Loader(dataset, columns=["x"], filter=where, batch_size=1)) == len(expected)


@pytest.mark.parametrize(
    ("stored", "kind"),
    [
        (pa.array(["9", "10", "11"]), pa.int64()),
        (pa.array([9, 10, 11]), pa.string()),
        (pa.array([9, 10, 11]), pa.timestamp("s")),
        (pa.array(["9", "10", "11"]), pa.decimal128(9, 0)),
        (pa.array(NOON, pa.timestamp("us")), pa.timestamp("us", "UTC")),
        (pa.array(NOON, pa.timestamp("us", "UTC")), pa.timestamp("us")),
        (pa.array([9, 10, 11], pa.int16()), pa.int64()),
        (pa.array([9, 10, 11], pa.decimal128(5, 1)), pa.decimal128(12, 3)),
    ],
    ids=str,
)
def test_a_filter_sees_the_type_of_the_schema_whatever_a_file_has(tmp_path, stored, kind):
    table = pa.table({"x": [0, 1, 2], "c": stored})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=1)
    dataset = ds.dataset(tmp_path / "a.parquet", schema=pa.schema({"x": pa.int64(), "c": kind}))
    value = dataset.to_table()["c"][1]
    for where in pc.field("c") == value, pc.field("c") < value, ~(pc.field("c") < value):
        expected = dataset.to_table().filter(where)["x"].to_pylist()
        assert rows_of(dataset, filter=where) == expected
        assert rows_of(dataset, filter=where, shuffle=3, seed=1, batch_size=2) == expected
