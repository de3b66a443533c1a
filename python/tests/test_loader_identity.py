"""What a state holds of its data: other data is refused, and the same data goes on."""

import datetime
import decimal
import itertools
import json
import os

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
from arrow_dlpack import AsArrow, Cast, Categories, Dense, Loader, Mix
from arrow_dlpack._loader import identity as _identity


def state_of(source, batches=1, **options):
    """The state behind some batches, as a file of JSON has it."""
    loader = Loader(source, **{"batch_size": 2, "framework": "numpy", **options})
    epoch = iter(loader)
    for _ in range(batches):
        next(epoch)
    state = json.loads(json.dumps(loader.state_dict()))
    epoch.close()
    return state


def rest_of(source, state, **options):
    """The batches after the state."""
    loader = Loader(source, **{"batch_size": 2, "framework": "numpy", **options})
    loader.load_state_dict(state)
    return list(loader)


DURATIONS = [datetime.timedelta(seconds=at - 2, microseconds=7 * at) for at in range(6)]


@pytest.mark.parametrize("unit", ["us", "ns"])
def test_durations_are_the_same_in_any_unit_and_library(unit):
    table = pa.table({"x": pa.array(DURATIONS, pa.duration(unit))})
    options = {"columns": {"x": AsArrow()}}
    state = state_of(table, **options)
    others = [
        pa.table({"x": pa.array(DURATIONS, pa.duration("us"))}),
        pa.table({"x": pa.array(DURATIONS, pa.duration("ns"))}),
        pandas.DataFrame({"x": np.array(DURATIONS, "timedelta64[ns]")}),
        polars.DataFrame({"x": DURATIONS}),
    ]
    for other in others:
        assert len(rest_of(other, state, **options)) == 2
    moved = pa.array([*DURATIONS[:5], datetime.timedelta(9)], pa.duration("ns"))
    with pytest.raises(ValueError, match="some rows had other values"):
        rest_of(pa.table({"x": moved}), state, **options)


def written(table, path):
    """A file of the format of its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    end = path.suffix
    if end == ".parquet":
        pq.write_table(table, path)
    elif end == ".csv":
        pyarrow.csv.write_csv(table, path)
    else:
        opened = pa.ipc.new_stream if end == ".arrows" else pa.ipc.new_file
        # As a writer does that readers may be at: the file that they read stays as it is.
        with opened(f"{path}.tmp", table.schema) as writer:
            writer.write_table(table)
        os.replace(f"{path}.tmp", path)
    return str(path)


OF_KEYS = [
    *itertools.product(["path"], ["parquet", "arrow", "arrows", "csv"]),
    *itertools.product(["dataset", "dataset with a filter"], ["parquet", "arrow", "csv"]),
]


@pytest.mark.parametrize(("of", "end"), OF_KEYS)
def test_other_keys_of_folders_are_other_data(end, of, tmp_path):
    for fold in 0, 1:
        written(pa.table({"x": range(4)}), tmp_path / f"fold={fold}" / f"p.{end}")

    def source():
        if of == "path":
            return str(tmp_path)
        form = "ipc" if end == "arrow" else end
        whole = ds.dataset(str(tmp_path), format=form, partitioning="hive")
        return whole if of == "dataset" else whole.filter(pc.field("x") < 9)

    state, unread = state_of(source()), state_of(source(), columns=["x"])
    assert len(rest_of(source(), state)) == 3
    if of == "dataset":
        assert len(rest_of(str(tmp_path), state)) == 3
    os.rename(tmp_path / "fold=1", tmp_path / "fold=7")
    with pytest.raises(ValueError, match="other data: folders had other keys"):
        rest_of(source(), state)
    assert len(rest_of(source(), unread, columns=["x"])) == 3


@pytest.mark.parametrize("end", ["parquet", "arrow", "arrows"])
def test_a_key_of_a_column_that_the_file_has_itself_is_none_of_the_state(end, tmp_path):
    path = written(pa.table({"fold": range(4)}), tmp_path / "fold=0" / f"p.{end}")
    state = state_of(str(tmp_path))
    os.rename(tmp_path / "fold=0", tmp_path / "fold=7")
    assert len(rest_of(str(tmp_path), state)) == 1
    assert len(rest_of(path.replace("fold=0", "fold=7"), state)) == 1


FORMS = {
    "parquet": lambda path: path,
    "arrow": lambda path: path,
    "arrows": lambda path: path,
    "csv": lambda path: path,
    "arrow, dataset": lambda path: ds.dataset(path, format="ipc"),
    "csv, dataset": lambda path: ds.dataset(path, format="csv"),
    "arrow, mix": lambda path: Mix([(path, 1)]),
    "parquet, mix": lambda path: Mix([(path, 1), (pa.table({"x": [1]}), 1)]),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_state_is_of_the_file_that_its_epoch_reads(form, tmp_path):
    """A state of the epoch before, or a file in its place, is another matter."""
    path = tmp_path / f"p.{form.partition(',')[0]}"
    old, new = pa.table({"x": range(10)}), pa.table({"x": range(100, 120)})
    written(old, path)
    loader = Loader(FORMS[form](str(path)), batch_size=2, framework="numpy")
    epoch = iter(loader)
    next(epoch)
    before = loader.state_dict()
    list(epoch)
    written(new, path)
    epoch = iter(loader)
    next(epoch)
    len(loader)
    state = loader.state_dict()
    epoch.close()
    assert len(rest_of(FORMS[form](str(path)), state)) > 8
    with pytest.raises(ValueError, match="the state is of other data"):
        rest_of(FORMS[form](str(path)), before)
    written(old, path)
    with pytest.raises(ValueError, match="the state is of other data"):
        rest_of(FORMS[form](str(path)), state)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("asked", [False, True])
def test_a_file_that_is_replaced_in_an_epoch_is_none_of_its_state(form, asked, tmp_path):
    path = tmp_path / f"p.{form.partition(',')[0]}"
    written(pa.table({"x": range(8)}), path)
    loader = Loader(FORMS[form](str(path)), batch_size=2, framework="numpy")
    epoch = iter(loader)
    next(epoch)
    if asked:
        loader.state_dict()
    os.rename(path, tmp_path / "old")
    written(pa.table({"x": range(100, 108)}), path)
    len(loader)
    state = loader.state_dict()
    with pytest.raises(ValueError, match="the state is of other data"):
        rest_of(FORMS[form](str(path)), state)
    os.replace(tmp_path / "old", path)
    if asked or "parquet" in form:
        rest_of(FORMS[form](str(path)), state)
    else:
        with pytest.raises(ValueError, match="a file was replaced while the epoch read it"):
            rest_of(FORMS[form](str(path)), state)


def test_a_frame_that_is_changed_between_epochs_has_another_state():
    frame = pandas.DataFrame({"x": np.arange(10)})
    for source in frame, [frame], Mix([(frame, 1)]):
        loader = Loader(source, batch_size=2, framework="numpy")
        next(iter(loader))
        before = loader.state_dict()
        frame.loc[0, "x"] += 50
        next(iter(loader))
        assert len(rest_of(source, loader.state_dict())) == 4
        with pytest.raises(ValueError, match="some rows had other values"):
            rest_of(source, before)


MOMENTS = [datetime.datetime(2020, 1, 1, 0, 0, at) for at in range(60)]
PLAIN = pa.table({
    "x": range(60),
    "f": [None if at % 7 == 0 else at / 2 for at in range(60)],
    "w": [f"word {at}" for at in range(60)],
})  # fmt: skip
NESTED = pa.table({
    "x": range(60),
    "t": pa.array(MOMENTS, pa.timestamp("us")),
    "u": pa.array([at - MOMENTS[7] for at in MOMENTS], pa.duration("us")),
    "l": [list(range(at % 3)) for at in range(60)],
    "s": [{"b": at, "a": str(at)} for at in range(60)],
    "d": pa.array(["cat", "dog", "emu"] * 20).dictionary_encode(),
    "b": [bytes([at]) for at in range(60)],
})  # fmt: skip
KINDS = {
    "table": lambda table, path: table,
    "chunks": lambda table, path: pa.concat_tables([table.slice(0, 3), table.slice(3)]),
    "list": lambda table, path: [table.slice(0, 7), table.slice(7)],
    "pandas": lambda table, path: table.to_pandas(),
    "polars": lambda table, path: polars.from_arrow(table),
    "parquet": lambda table, path: written(table, path.with_suffix(".parquet")),
    "parquets": lambda table, path: parts_of(table, path, "parquet"),
    "parquet, open": lambda table, path: pq.ParquetFile(
        written(table, path.with_suffix(".parquet"))
    ),
    "parquets, dataset": lambda table, path: ds.dataset(parts_of(table, path, "parquet")),
    "arrow": lambda table, path: written(table, path.with_suffix(".arrow")),
    "arrow, dataset": lambda table, path: ds.dataset(parts_of(table, path, "arrow"), format="ipc"),
    "arrows": lambda table, path: written(table, path.with_suffix(".arrows")),
    "csv": lambda table, path: parts_of(table, path, "csv"),
}
CHANGED = {
    "longer": lambda table: pa.concat_tables([table, table]),
    "shorter": lambda table: table.slice(0, 50),
    "without its first rows": lambda table: table.slice(5),
    "reversed": lambda table: table.take(list(range(59, -1, -1))),
    "another last row": lambda table: pa.concat_tables([table.slice(0, 59), table.slice(3, 1)]),
    "another tenth row": lambda table: pa.concat_tables([
        table.slice(0, 9), table.slice(3, 1), table.slice(10)
    ]),
}  # fmt: skip


def parts_of(table, path, end):
    """A folder of two files."""
    for at, part in enumerate((table.slice(0, 13), table.slice(13))):
        written(part, path / f"{at}.{end}")
    return str(path)


def are_alike(one, other):
    """Whether footers or bytes tell them apart, which are of one file and no other."""
    families = [kind.partition(",")[0].rstrip("s") for kind in (one, other)]
    return one == other or families[0] == families[1] or set(families) <= {"arrow", "csv"}


PAIRS = [pair for pair in itertools.product(KINDS, KINDS) if not are_alike(*pair)]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_the_same_rows_go_on_in_another_kind_of_source_and_others_do_not(one, other, tmp_path):
    is_csv = "csv" in (one, other)
    table = PLAIN if is_csv else NESTED
    options = {"batch_size": 10, "columns": {"x": None, **dict.fromkeys(
        table.column_names[1:], AsArrow())}}  # fmt: skip
    state = state_of(KINDS[one](table, tmp_path / "a"), 2, **options)
    rest = rest_of(KINDS[other](table, tmp_path / "b"), state, **options)
    assert [x for batch in rest for x in batch["x"].tolist()] == list(range(20, 60))
    few = {"csv", "arrows"} & {one, other}
    for name, change in CHANGED.items():
        if few and name in ("longer", "shorter", "another last row"):
            continue  # neither rows nor the last of them are known before these are read
        made = KINDS[other](change(table), tmp_path / name)
        with pytest.raises(ValueError, match="the state is of other data"):
            rest_of(made, state, **options)


def test_fields_keys_and_a_mix_are_told_across_kinds(tmp_path):
    table = pa.table({"m": [{"w": at, "v": 0} for at in range(40)]})
    other = pa.table({"m": [{"w": 39 - at, "v": 0} for at in range(40)]})
    path = written(table, tmp_path / "fold=3" / "p.parquet")
    state = state_of(path, columns=["m.w"])
    assert len(rest_of(table, state, columns=["m.w"])) == 19
    with pytest.raises(ValueError, match="the first rows had other values"):
        rest_of(other, state, columns=["m.w"])
    state = state_of(str(tmp_path), columns=["m.w", "fold"])
    folds = [pa.array([fold] * 40, pa.int32()) for fold in (3, 4)]
    same, moved = (table.append_column("fold", fold) for fold in folds)
    assert len(rest_of(same, state, columns=["m.w", "fold"])) == 19
    with pytest.raises(ValueError, match="the first rows had other values"):
        rest_of(moved, state, columns=["m.w", "fold"])
    state = state_of(Mix([(path, 1), (table, 1)]), columns=["m.w"])
    assert len(rest_of(Mix([(table, 1), (path, 1)]), state, columns=["m.w"])) == 39
    with pytest.raises(ValueError, match="the first rows had other values in source 0 of the Mix"):
        rest_of(Mix([(other, 1), (table, 1)]), state, columns=["m.w"])


def test_no_last_rows_are_read_of_large_row_groups(tmp_path, monkeypatch):
    monkeypatch.setattr(_identity, "_LAST_BYTES", 20)
    path, last = written(PLAIN, tmp_path / "p.parquet"), CHANGED["another last row"](PLAIN)
    state = state_of(path, columns=["x"])
    assert set(state["source"]["ends"]) == {"head"}
    assert len(rest_of(last, state, columns=["x"])) == 29
    monkeypatch.undo()
    with pytest.raises(ValueError, match="the last rows had other values"):
        rest_of(last, state_of(path, columns=["x"]), columns=["x"])


@pytest.mark.parametrize("ends", [None, 7, "x", [], {}, {"head": 7}, {"tail": None}])
def test_what_no_digests_are_is_nothing_or_other_data(ends, tmp_path):
    path = written(PLAIN, tmp_path / "p.parquet")
    state = state_of(PLAIN, columns=["x"])
    state["source"]["ends"] = ends
    for source in PLAIN, path:
        if isinstance(ends, dict) and ends:
            with pytest.raises(ValueError, match="the state is of other data"):
                rest_of(source, state, columns=["x"])
        else:
            assert len(rest_of(source, state, columns=["x"])) == 29


@pytest.mark.parametrize("swap", [False, True], ids=["file to table", "table to file"])
def test_one_row_group_is_divided_by_rows_and_a_table_by_turns(tmp_path, swap):
    """What ranks divide in other ways is refused; what one process shuffles is the same."""
    table, path = pa.table({"x": range(12)}), str(tmp_path / "a.parquet")
    pq.write_table(table, path)
    first, then = (table, path) if swap else (path, table)
    ranked = {"batch_size": 2, "rank": 0, "world_size": 2}
    loader = Loader(first, **ranked)
    epoch = iter(loader)
    next(epoch)
    other = Loader(then, **ranked)
    other.load_state_dict(loader.state_dict())
    with pytest.raises(ValueError, match="row groups, or in none"):
        list(other)
    shuffled = {"batch_size": 2, "shuffle": 12, "seed": 1}
    loader = Loader(first, **shuffled)
    epoch = iter(loader)
    seen = np.asarray(next(epoch)["x"]).tolist()
    other = Loader(then, **shuffled)
    other.load_state_dict(loader.state_dict())
    assert sorted(seen + [x for batch in other for x in np.asarray(batch["x"]).tolist()]) == [
        *range(12)
    ]


def test_a_file_in_its_place_of_equal_size_and_time_is_another(tmp_path):
    """As cp -p and rsync -t leave it; what differs is its place on the disk."""
    path, other = tmp_path / "a.arrow", tmp_path / "b.arrow"
    for file, first in ((path, 0), (other, 100)):
        table = pa.table({"x": range(first, first + 8)})
        with pa.ipc.new_file(file, table.schema) as sink:
            sink.write_table(table)
    times = path.stat()
    loader = Loader(str(path), batch_size=2)
    epoch = iter(loader)
    next(epoch)
    os.utime(other, ns=(times.st_atime_ns, times.st_mtime_ns))
    os.replace(other, path)
    state = loader.state_dict()
    fresh = Loader(str(path), batch_size=2)
    fresh.load_state_dict(state)
    with pytest.raises(ValueError, match="replaced"):
        list(fresh)


@pytest.mark.parametrize("form", ["parquet", "in memory"])
def test_a_state_of_a_dataset_with_a_filter_is_of_its_first_rows(tmp_path, form):
    def source(values):
        table = pa.table({"x": [0, 0, *values], "y": range(len(values) + 2)})
        if form == "in memory":
            return ds.dataset(table).filter(pc.field("x") > 0)
        pq.write_table(table, tmp_path / "x.parquet")
        return ds.dataset(tmp_path / "x.parquet").filter(pc.field("x") > 0)

    values = list(range(1, 61))
    others = [2, 1, *values[2:]]
    loader = Loader(source(values), columns=["x"], batch_size=9, framework="numpy")
    epoch = iter(loader)
    next(epoch)
    state = loader.state_dict()
    rest = [batch["x"].tolist() for batch in epoch]
    table = pa.table({"x": values})
    for same in source(values), table, table.to_batches():
        resumed = Loader(same, columns=["x"], batch_size=9, framework="numpy")
        resumed.load_state_dict(json.loads(json.dumps(state)))
        assert [batch["x"].tolist() for batch in resumed] == rest
    other = [pa.table({"x": others})]
    other += [source(others)] if form == "in memory" else []
    for data in other:
        resumed = Loader(data, columns=["x"], batch_size=9)
        resumed.load_state_dict(state)
        with pytest.raises(ValueError, match="the first rows had other values"):
            list(resumed)


STREAMS = {
    "reader": lambda table: table.to_reader(),
    "readers": lambda table: [table.slice(0, 20).to_reader(), table.slice(20).to_reader()],
    "relation": lambda table: duckdb.connect().from_arrow(table),
    "scanner": lambda table: ds.dataset(table).scanner(),
    "function": lambda table: lambda index, count: table.to_reader(),
    "mix": lambda table: Mix([(table.to_reader(), 1)]),
    "streamed dataset": lambda table: datasets.Dataset(table).to_iterable_dataset(),
    "generator": lambda table: (batch for batch in table.to_batches(max_chunksize=20)),
    "lazy frame": lambda table: polars.from_arrow(table).lazy(),
}
#: Those that tell their columns when they are read.
UNTOLD = {"generator", "lazy frame"}


#: A state of a Mix is of no other source.
TOLD_PAIRS = [
    *itertools.product(["table", "reader", "generator"], STREAMS.keys() - {"mix"}),
    *((one, "table") for one in STREAMS.keys() - {"mix"}),
    ("mix", "mix"),
]


@pytest.mark.parametrize(("one", "other"), sorted(TOLD_PAIRS))
def test_names_and_types_are_compared_where_both_sides_know_them(one, other):
    kinds = STREAMS | {"table": lambda table: table}
    table = PLAIN.select(["x", "w"])
    options = {"batch_size": 10, "columns": {"x": None, "w": AsArrow()}}
    state = state_of(kinds[one](table), 2, **options)
    rest = rest_of(kinds[other](table), state, **options)
    assert [x for batch in rest for x in batch["x"].tolist()] == list(range(20, 60))
    if other in UNTOLD:
        return
    floats = table.set_column(0, "x", table["x"].cast("float64"))
    with pytest.raises(ValueError, match='column "x" was int64, and is double'):
        rest_of(kinds[other](floats), state, **options)
    named = table.rename_columns(["z", "w"])
    with pytest.raises(ValueError, match='column "x" was int64, and is not read now'):
        rest_of(kinds[other](named), state, batch_size=10, columns={"z": None, "w": AsArrow()})


def test_a_stream_of_nulls_tells_no_types():
    nulls, table = pa.table({"x": pa.nulls(4)}), pa.table({"x": [1, 2, 3, 4]})
    options = {"nulls": 0, "batch_size": 2, "dtype": "int64"}
    state = state_of((batch for batch in nulls.to_batches()), **options)
    assert len(rest_of(table, state, **options)) == 1


@pytest.mark.parametrize("is_first", [True, False])
def test_a_part_without_the_columns_has_rows_of_none_in_all_forms(tmp_path, is_first):
    tables = [pa.table({"x": [1, 2]}), pa.table({"y": [1]})][:: -1 if is_first else 1]
    for at, table in enumerate(tables):
        pq.write_table(table, tmp_path / f"{at}.parquet")
        pyarrow.feather.write_feather(table, tmp_path / f"{at}.feather")
    forms = [[str(tmp_path / f"{at}.{form}") for at in (0, 1)] for form in ("parquet", "feather")]
    options = {"columns": {"x": Cast("float32", nulls=-1)}, "batch_size": 1}
    right = [-1, 1, 2] if is_first else [1, 2, -1]
    for one, other in itertools.product([tables, *forms], repeat=2):
        rest = rest_of(other, state_of(one, 1, **options), **options)
        assert [x for batch in rest for x in batch["x"].tolist()] == right[1:]


@pytest.mark.parametrize("own", [["x", "z"], ["z"]])
def test_a_state_is_of_the_columns_in_the_schema_of_a_dataset(tmp_path, own):
    table = pa.table({"x": [1, 2, 3], "z": ["a", "b", "c"]})
    paths = [str(tmp_path / name) for name in ("0.feather", "1.feather")]
    pyarrow.feather.write_feather(table, paths[0])
    pyarrow.feather.write_feather(table.select(own), paths[1])

    def source(kind):
        return ds.dataset(paths, schema=pa.schema([("x", kind)]), format="feather")

    options = {"batch_size": 1, "columns": {"x": Cast("float32", nulls=-1)}}
    state = state_of(source(pa.int64()), 2, **options)
    rest = [x for batch in rest_of(source(pa.int64()), state, **options) for x in batch["x"]]
    assert rest == ([3, 1, 2, 3] if "x" in own else [3, -1, -1, -1])
    with pytest.raises(ValueError, match='column "x" was int64, and is double'):
        rest_of(source(pa.float64()), state, **options)


UNREAD = {
    **{name: STREAMS[name] for name in sorted(UNTOLD)},
    "function": lambda table: lambda index, count: polars.from_arrow(table).lazy(),
    "mix": lambda table: Mix([(polars.from_arrow(table).lazy(), 1)]),
}


@pytest.mark.parametrize("kind", UNREAD)
@pytest.mark.parametrize("batches", [0, 1])
def test_a_resumed_loop_has_names_and_types_in_its_state(kind, batches):
    table = PLAIN.select(["x"])
    loader = Loader(UNREAD[kind](table), batch_size=10)
    loader.load_state_dict(state_of(UNREAD[kind](table), batches, batch_size=10, framework=None))
    epoch = iter(loader)
    next(epoch)
    state = loader.state_dict()
    assert state["source"] == state_of(UNREAD[kind](table), 2, batch_size=10)["source"]
    if kind != "mix":
        floats = table.set_column(0, "x", table["x"].cast("float64"))
        with pytest.raises(ValueError, match='column "x" was int64, and is double'):
            rest_of(floats, state, batch_size=10)


FAR = {
    "zoned": pa.array([253402300799000000] * 40, pa.timestamp("us", "Europe/Paris")),
    "infinite": pa.array([2**63 - 1] * 40, pa.timestamp("us")),
    "one": pa.array([None, -(2**62), *range(38)], pa.timestamp("ms")),
    "date": pa.array([10**8] * 40, pa.date32()),
    "date64": pa.array([86_400_000 * 10**8] * 40, pa.date64()),
    "duration": pa.array([2**62] * 40, pa.duration("s")),
    "list": pa.array([[10**8, None]] * 40, pa.list_(pa.date32())),
    "struct": pa.array([{"t": 10**8}] * 40, pa.struct({"t": pa.date32()})),
    "map": pa.array([[("a", 10**8)]] * 40, pa.map_(pa.string(), pa.date32())),
    "words": pa.array([10**8] * 40, pa.date32()).dictionary_encode(),
    "no zone": pa.array(range(40), pa.timestamp("us", "Mars/Base")),
    "one name twice": pa.StructArray.from_arrays([pa.array(range(40))] * 2, ["a", "a"]),
}


@pytest.mark.parametrize(
    ("form", "of"),
    [
        (form, of)
        for form in ("table", "list", "arrow")
        for of in FAR
        if (form, of) != ("list", "one name twice")  # of which parts have one
    ],
)
def test_a_state_is_of_its_rows_where_python_has_no_such_time(of, form, tmp_path):
    def source(first, at):
        table = pa.table({"x": range(first, first + 40), "t": FAR[of]})
        with pa.ipc.new_file(tmp_path / f"{at}.arrow", table.schema) as sink:
            sink.write_table(table)
        kinds = {"table": table, "list": table.to_batches(7), "arrow": tmp_path / f"{at}.arrow"}
        return kinds[form], table

    options = {"columns": ["x"], "filter": pc.field("t").is_valid() | pc.field("x").is_valid()}
    (one, table), (other, others) = source(0, 0), source(1000, 1)
    state = state_of(one, **options)
    for same in one, table, table.slice(0, 5).to_batches() + table.slice(5).to_batches():
        assert next(iter(rest_of(same, state, **options)))["x"].tolist() == [2, 3]
    for moved in other, others:
        with pytest.raises(ValueError, match="the state is of other data"):
            rest_of(moved, state, **options)


def test_far_times_are_the_same_in_any_unit_and_zone():
    options = {"columns": {"t": AsArrow()}}
    state = state_of(pa.table({"t": pa.array([2**52] * 9, pa.timestamp("s", "UTC"))}), **options)
    other = pa.table({"t": pa.array([2**52 * 1000] * 9, pa.timestamp("ms", "Asia/Tokyo"))})
    assert len(rest_of(other, state, **options)) == 4
    other = pa.table({"t": pa.array([2**52 * 1000 + 1] * 9, pa.timestamp("ms", "UTC"))})
    with pytest.raises(ValueError, match="the state is of other data"):
        rest_of(other, state, **options)


@pytest.mark.parametrize("of", ["column", "field", "lists"])
def test_other_codes_of_the_same_words_are_other_numbers(of):
    def coded(words, codes):
        column = pa.DictionaryArray.from_arrays(pa.array(codes * 20, pa.int8()), words)
        wrapped = {
            "column": lambda: column,
            "field": lambda: pa.StructArray.from_arrays([column], ["y"]),
            "lists": lambda: pa.FixedSizeListArray.from_arrays(column, 1),
        }
        return pa.table({"x": wrapped[of](), "z": range(40)})

    name = "x.y" if of == "field" else "x"
    one, other = coded(["a", "b"], [0, 1]), coded(["b", "a"], [1, 0])
    state = state_of(one, physical=True, columns=[name])
    for same in one, one.slice(0, 9).to_batches() + one.slice(9).to_batches():
        assert len(rest_of(same, state, physical=True, columns=[name])) == 19
    for others in other, other.to_batches(4):
        with pytest.raises(ValueError, match="other codes for the same words"):
            rest_of(others, state, physical=True, columns=[name])
    for physical in False, True:
        options = {"columns": {name: AsArrow()}, "physical": physical}
        assert len(rest_of(other, state_of(one, **options), **options)) == 19
    if of == "column":
        words = {"columns": {name: Categories(["a", "b"])}, "physical": True}
        read = {"columns": ["z"], "filter": pc.field("x") == "a", "physical": True}
        for options, rest in (words, 19), (read, 9):
            assert len(rest_of(other, state_of(one, **options), **options)) == rest
        null = {"columns": {name: Cast("int16", nulls=-1)}, "physical": True}
        state = state_of(coded(["a", "b", None], [2, 1]), **null)
        assert len(rest_of(coded(["a", "b"], [None, 1]), state, **null)) == 19


def test_the_same_times_in_lists_structs_and_physical_are_one_type():
    times = pa.array(range(0, 40_000, 1000), pa.timestamp("us", "UTC"))
    zoned = times.cast(pa.timestamp("us", "Europe/Paris"))
    for one, other in (times, zoned), (zoned, times.cast(pa.timestamp("us", "Etc/UTC"))):
        state = state_of(pa.table({"t": one}), physical=True)
        assert len(rest_of(pa.table({"t": other}), state, physical=True)) == 19
    moved = pa.table({"t": times.cast(pa.timestamp("ms", "UTC"))})
    with pytest.raises(ValueError, match=r'column "t" was timestamp\[us, tz=UTC\]'):
        rest_of(moved, state, physical=True)

    durations = pa.array(range(0, 40_000, 1000), pa.duration("us"))
    pairs = [(times, zoned.cast(pa.timestamp("ns", "Europe/Paris")))]
    pairs += [(durations, durations.cast(pa.duration("ms")))]
    for one, other in pairs:
        for own, others in zip(wrapped(one), wrapped(other), strict=True):
            state = state_of(pa.table({"c": own}), columns={"c": AsArrow()})
            assert len(rest_of(pa.table({"c": others}), state, columns={"c": AsArrow()})) == 19


def changes_of_frames():
    def pandas_frame():
        return pandas.DataFrame({"x": np.arange(40.0), "s": [f"t{at}" for at in range(40)]})

    def polars_frame():
        return polars.DataFrame({"x": np.arange(40.0)})

    yield pandas_frame, lambda frame: frame.sort_values("x", ascending=False, inplace=True)
    yield pandas_frame, lambda frame: frame.__setitem__("x", np.arange(40.0)[::-1])
    yield pandas_frame, lambda frame: frame.drop(index=range(10), inplace=True)
    yield pandas_frame, lambda frame: frame.__delitem__("x")
    yield polars_frame, lambda frame: frame.replace_column(0, frame["x"].reverse())
    yield polars_frame, lambda frame: frame.extend(frame.clone())


@pytest.mark.parametrize(("make", "change"), changes_of_frames())
@pytest.mark.parametrize("of", ["frame", "list", "mix"])
@pytest.mark.parametrize("options", [{}, {"shuffle": 8, "seed": 1}], ids=["in order", "shuffled"])
@pytest.mark.parametrize("asked", [False, True])
def test_a_state_is_of_a_frame_as_it_was_before_it_is_changed(make, change, of, options, asked):
    kinds = {
        "frame": lambda frame: frame,
        "list": lambda frame: [frame, make()],
        "mix": lambda frame: Mix([(frame, 1)]),
    }
    frame, options = make(), {"columns": ["x"], "batch_size": 5, **options}
    source = kinds[of](frame)
    loader = Loader(source, **options)
    epoch = iter(loader)
    next(epoch)
    if asked:
        loader.state_dict()
    change(frame)
    state = loader.state_dict()
    if "x" in frame.columns:
        with pytest.raises(ValueError, match="the state is of other data"):
            rest_of(source, state, **options)
    assert rest_of(kinds[of](make()), state, **options)


def test_a_frame_that_gets_another_column_in_an_epoch_is_the_same():
    frame = pandas.DataFrame({"x": np.arange(40.0), "o": [object()] * 40, "c": [["a"]] * 40})
    loader = Loader(frame, columns=["x"], batch_size=5)
    epoch = iter(loader)
    next(epoch)
    frame["new"] = 1
    state = loader.state_dict()
    assert len(rest_of(frame, state, columns=["x"], batch_size=5)) == 7


def test_a_frame_of_which_what_is_not_read_changes_is_the_same():
    """Labels, attributes, other columns, and what libraries keep of a look at it."""
    frame = pandas.DataFrame(
        {"x": pandas.array(range(1000), "int64[pyarrow]"), "pred": 0.0, "o": [object()] * 1000}
    )
    options = {"columns": ["x"], "filter": pc.field("x") >= 0, "batch_size": 100}
    loader = Loader(frame, **options)
    epoch = iter(loader)
    next(epoch)
    frame.loc[0, "pred"] = 0.5
    frame.attrs["epoch"], frame.columns.name = 1, "of"
    frame.index += 5
    frame["x"].describe()
    assert len(rest_of(frame, loader.state_dict(), **options)) == 9


def test_a_frame_that_is_changed_between_epochs_is_what_the_next_one_reads():
    frame = pandas.DataFrame({"x": np.arange(40.0)})
    loader = Loader(frame, batch_size=10)
    list(loader)
    frame.loc[3, "x"] = 7
    state = loader.state_dict()
    assert len(rest_of(frame, state, batch_size=10)) == 4
    with pytest.raises(ValueError, match='column "x" was double, and is int64'):
        rest_of(frame.astype("int64"), state, batch_size=10)


def large_or_unusual_frames():
    """Frames by the number in their first row."""
    words = [f"{at:09d}" for at in range(99_999)]
    views = pandas.ArrowDtype(pa.string_view())
    return {
        "words": lambda at: pandas.Categorical.from_codes([at] + [0] * 39, words),
        "tensors": lambda at: pandas.array([[at] * 200_000] * 40, pandas.ArrowDtype(PIXELS)),
        "texts": lambda at: [f"{at}" * 200_000] * 40,
        "views": lambda at: pandas.array([str(at)] * 40, views),
    }


PIXELS = pa.list_(pa.uint8(), 200_000)


@pytest.mark.parametrize("of", large_or_unusual_frames())
def test_a_change_counts_where_rows_are_large_or_pandas_takes_none_by_position(of):
    made = large_or_unusual_frames()[of]
    frame = pandas.DataFrame({"x": range(40), "c": made(1)})
    options = {"columns": {"x": None, "c": AsArrow()}, "batch_size": 5}
    for column, value in ("c", made(2)), ("x", 7):
        loader = Loader(frame, **options)
        next(iter(loader))
        frame[column] = value
        with pytest.raises(ValueError, match="some rows had other values"):
            rest_of(frame, loader.state_dict(), **options)


@pytest.mark.parametrize("of", ["frame", "list", "mix"])
def test_a_change_counts_beside_an_unread_column_of_other_byte_order(of):
    """Of which pandas takes no rows."""
    frame = pandas.DataFrame({"x": range(40), "b": np.arange(40, dtype=">i4")})
    source = {"frame": frame, "list": [frame, frame.copy()], "mix": Mix([(frame, 1)])}[of]
    options = {"columns": ["x"], "batch_size": 5}
    loader = Loader(source, **options)
    next(iter(loader))
    frame.loc[3, "x"] = 99
    with pytest.raises(ValueError, match="rows had other values"):
        rest_of(source, loader.state_dict(), **options)


@pytest.mark.parametrize("rows", [5, 20, 32, 33, 60])
@pytest.mark.parametrize("dtype", ["int64", "float64", "Int64", "int64[pyarrow]"])
def test_a_value_of_a_small_frame_that_is_set_in_place_counts(rows, dtype):
    def frame():
        return pandas.DataFrame({"x": pandas.array(range(rows), dtype)})

    source = frame()
    loader = Loader(source, batch_size=3)
    next(iter(loader))
    source.iloc[0, 0] = 1000
    state = loader.state_dict()
    assert rest_of(frame(), state, batch_size=3)
    with pytest.raises(ValueError, match="some rows had other values"):
        rest_of(source, state, batch_size=3)


@pytest.mark.parametrize("shuffle", [None, 4])
@pytest.mark.parametrize("library", ["pandas", "polars", "both"])
def test_a_filter_of_frames_is_of_the_type_of_all_of_them(library, shuffle):
    def frames():
        none, some = {"x": [1, 2], "s": [None, None]}, {"x": [3, 4], "s": ["a", "b"]}
        first = pandas.DataFrame if library == "pandas" else polars.DataFrame
        second = polars.DataFrame if library == "polars" else pandas.DataFrame
        return [first(none), second(some)]

    where = pc.field("s").isin(["a", "b"])
    options = {"columns": ["x"], "batch_size": 1, "filter": where}
    options |= {} if shuffle is None else {"shuffle": shuffle, "seed": 1}
    first, second = Loader(frames(), **options)
    assert sorted(batch["x"].tolist() for batch in (first, second)) == [[3], [4]]
    loader = Loader(frames(), **options)
    next(iter(loader))
    (rest,) = rest_of(frames(), loader.state_dict(), **options)
    assert rest["x"].tolist() == second["x"].tolist()


def test_a_change_of_one_of_several_frames_of_two_types_is_no_change_of_the_epoch():
    def frames():
        return [
            pandas.DataFrame({"x": [1, 2]}, dtype="int32"),
            pandas.DataFrame({"x": [3, 4]}, dtype="int64"),
        ]

    mine = frames()
    loader = Loader(mine, batch_size=1)
    next(iter(loader))
    mine[1].loc[1, "x"] = 9
    rest = rest_of(frames(), loader.state_dict(), batch_size=1)
    assert [batch["x"].tolist() for batch in rest] == [[2], [3], [4]]
    with pytest.raises(ValueError, match="had other values"):
        rest_of(mine, loader.state_dict(), batch_size=1)


def test_each_first_row_of_a_frame_that_is_changed_in_an_epoch_counts():
    for row in range(16):
        frame = pandas.DataFrame({"x": np.arange(400.0)})
        loader = Loader(frame, batch_size=50)
        next(iter(loader))
        frame.loc[row, "x"] = -1
        with pytest.raises(ValueError, match="the first rows had other values|some rows had other"):
            rest_of(frame, loader.state_dict(), batch_size=50)


@pytest.mark.parametrize(
    ("one", "other"),
    [("timestamp[s]", "timestamp[ms]"), ("decimal64(9, 2)", "decimal64(9, 4)")],
)
def test_what_an_extension_type_says_of_itself_counts(one, other):
    def source(of):
        kind = pa.opaque(pa.int64(), of, "db")
        return pa.table({"a": pa.ExtensionArray.from_storage(kind, pa.array(range(8)))})

    options = {"columns": {"a": AsArrow()}}
    state = state_of(source(one), **options)
    assert len(rest_of(source(one), state, **options)) == 3
    with pytest.raises(ValueError, match='column "a" was'):
        rest_of(source(other), state, **options)


def test_a_column_that_only_the_filter_reads_counts_in_a_frame():
    frame = pandas.DataFrame({"x": np.arange(40.0), "y": np.arange(40), "z": np.arange(40)})
    where = (pc.field("x") >= 0) & (pc.field("y") >= 0)
    options = {"columns": ["x"], "filter": where, "batch_size": 5}
    loader = Loader(frame, **options)
    next(iter(loader))
    frame["z"] = 0
    assert rest_of(frame, loader.state_dict(), **options)
    loader = Loader(frame, **options)
    next(iter(loader))
    frame["y"] = -1
    with pytest.raises(ValueError, match="some rows had other values"):
        rest_of(frame, loader.state_dict(), **options)


def test_names_types_codes_and_the_index_of_a_frame_count_in_an_epoch():
    def frame():
        made = pandas.DataFrame({"x": np.arange(40), "y": np.arange(40)[::-1]})
        made["c"] = pandas.Categorical(["a", "b"] * 20)
        made.index = pandas.Index(np.arange(40), name="k")
        return made

    where = (pc.utf8_length(pc.field("c").cast("string")) == 1) & (pc.field("x") < 90)
    changes = [
        ({"columns": ["x", "y"]}, lambda one: setattr(one, "columns", ["y", "x", "c"])),
        ({"columns": ["x"]}, lambda one: one.__setitem__("x", one["x"].astype("int32"))),
        ({"columns": ["x", "k"]}, lambda one: setattr(one, "index", one.index + 100)),
        ({"columns": ["y"], "filter": where}, lambda one: one.__setitem__("x", 99)),
        (
            {"columns": ["c"], "physical": True},
            lambda one: one.__setitem__("c", one["c"].cat.reorder_categories(["b", "a"])),
        ),
    ]
    for options, change in changes:
        source = frame()
        loader = Loader(source, batch_size=5, **options)
        next(iter(loader))
        change(source)
        with pytest.raises(ValueError, match="the state is of other data"):
            rest_of(source, loader.state_dict(), batch_size=5, **options)
        assert rest_of(frame(), loader.state_dict(), batch_size=5, **options)
        loader = Loader(source := frame(), batch_size=5, **options)
        next(iter(loader))
        assert rest_of(source, loader.state_dict(), batch_size=5, **options)


def test_lists_of_any_kind_that_become_one_tensor_are_the_same_data(tmp_path):
    items = pa.array([[float(at), 1.0] for at in range(40)], pa.list_(pa.float32(), 2))
    table = pa.table({"e": items})
    pq.write_table(table, tmp_path / "e.parquet", store_schema=False)
    lists = pa.table({"e": items.cast(pa.list_(pa.float32()))})
    state = state_of(table, columns={"e": Dense(2)})
    for other in lists, table.to_pandas(), tmp_path / "e.parquet":
        assert len(rest_of(other, state, columns={"e": Dense(2)})) == 19


def wrapped(array):
    """The array, and structs, lists, maps and a dictionary of its values."""
    offsets = pa.array(range(len(array) + 1), pa.int32())
    yield array
    yield pa.StructArray.from_arrays([array], ["t"])
    yield pa.ListArray.from_arrays(offsets, array)
    yield pa.FixedSizeListArray.from_arrays(array, 1)
    yield pa.MapArray.from_arrays(offsets, pa.array(["k"] * len(array)), array)
    yield pa.DictionaryArray.from_arrays(pa.array(range(len(array)), pa.int8()), array)


@pytest.mark.parametrize(
    ("kind", "whole", "others"),
    [(pa.time64("ns"), 1000, "time64[us]"), (pa.date64(), 86_400_000, "date32")],
    ids=str,
)
def test_times_that_python_has_not_in_full_count_in_full(kind, whole, others):
    """pyarrow makes Python's times without nanoseconds, and dates without hours."""
    options = {"columns": {"t": AsArrow()}}

    def of(start, step):
        return pa.array([start + at * step for at in range(20)], pa.int64()).cast(kind)

    pairs = zip(wrapped(of(1, 1)), wrapped(of(901, 1)), wrapped(of(1, 1)), strict=True)
    for one, other, same in pairs:
        state = state_of(pa.table({"t": one}), **options)
        assert len(rest_of(pa.table({"t": same}), state, **options)) == 9
        with pytest.raises(ValueError, match="rows had other values"):
            rest_of(pa.table({"t": other}), state, **options)
    # Of another unit, they are the same.
    for array in list(wrapped(of(whole, whole)))[:1]:
        coarse = array.cast(pa.type_for_alias(others))
        for states in (array, coarse), (coarse, array):
            one, other = (pa.table({"t": own}) for own in states)
            assert len(rest_of(other, state_of(one, **options), **options)) == 9
    nulls = pa.array([None, *range(19)], pa.int64()).cast(kind)
    for own in list(wrapped(nulls))[:4]:
        table = pa.table({"t": own})
        assert len(rest_of(table, state_of(table, **options), **options)) == 9


def test_decimals_of_another_scale_are_the_same_values():
    values = pa.array([decimal.Decimal(at) / 2 for at in range(20)], pa.decimal128(10, 1))
    options = {"columns": {"d": Cast("float64")}}
    state = state_of(pa.table({"d": values}), **options)
    for kind in pa.decimal128(10, 2), pa.decimal256(40, 5):
        other = pa.table({"d": values.cast(kind)})
        assert len(rest_of(other, state, **options)) == 9
        assert len(rest_of(other.to_pandas(), state, **options)) == 9
    hundreds = pa.array([decimal.Decimal(at * 100) for at in range(20)], pa.decimal128(10, -2))
    state = state_of(pa.table({"d": hundreds}), **options)
    other = pa.table({"d": hundreds.cast(pa.decimal128(10, 0))})
    assert len(rest_of(other, state, **options)) == 9
    with pytest.raises(ValueError, match="rows had other values"):
        rest_of(pa.table({"d": values}), state, **options)


def test_a_state_that_is_changed_changes_no_loader():
    table = pa.table({"x": range(40)})
    loader = Loader(table, batch_size=4)
    next(iter(loader))
    state = loader.state_dict()
    resumed = Loader(table, batch_size=4)
    resumed.load_state_dict(state)
    for one in state, resumed.state_dict(), loader.state_dict():
        one["batch"] = 3
        one["source"]["rows"] = one["options"]["batch_size"] = 7
    for own in resumed, loader:
        assert own.state_dict()["source"]["rows"] == 40
    assert next(iter(resumed))["x"].tolist() == [4, 5, 6, 7]


def rows_in(batches):
    return [batch["id"].tolist() for batch in batches]


@pytest.mark.parametrize(
    "options",
    [{}, {"shuffle": 4, "seed": 1}, {"rank": 0, "world_size": 2, "uneven": "allow"}],
    ids=["in order", "shuffled", "a rank"],
)
def test_a_state_goes_to_no_source_of_the_same_rows_that_makes_other_batches(tmp_path, options):
    """Row groups are drawn and divided of files alone, not of a union of datasets of them."""
    paths = [f"{tmp_path}/{number}.parquet" for number in range(4)]
    tables = [pa.table({"id": range(number * 8, number * 8 + 8)}) for number in range(4)]
    for path, table in zip(paths, tables, strict=True):
        pq.write_table(table, path, row_group_size=4)
    union = ds.dataset([ds.dataset(path) for path in paths])
    alone = [ds.dataset([ds.dataset(path)]) for path in paths]
    sources = [paths, ds.dataset(paths), union, tables, pa.concat_tables(tables)]
    sources += [Mix([(part, 1) for part in parts]) for parts in (paths, alone, tables)]
    batches = [rows_in(Loader(source, batch_size=4, **options)) for source in sources]
    for at, other in itertools.product(range(len(sources)), repeat=2):
        state = state_of(sources[at], batches=2, **{**options, "batch_size": 4})
        is_same = batches[at] == batches[other]
        if is_same and isinstance(sources[at], Mix) == isinstance(sources[other], Mix):
            rest = rest_of(sources[other], state, **{**options, "batch_size": 4})
            assert rows_in(rest) == batches[at][2:]
        else:
            with pytest.raises(ValueError, match="the state is of"):
                rest_of(sources[other], state, **{**options, "batch_size": 4})


def test_a_column_of_the_file_is_other_data_than_the_key_of_its_folder(tmp_path):
    for number in range(2):
        (tmp_path / f"label={number + 5}").mkdir()
        rows = {"id": range(number * 4, number * 4 + 4), "label": range(4)}
        pq.write_table(pa.table(rows), tmp_path / f"label={number + 5}" / "p.parquet")
    schema = pa.schema({"id": pa.int64(), "label": pa.int64()})
    keyed = ds.dataset(tmp_path, partitioning="hive", schema=schema)
    plain = ds.dataset(tmp_path, partitioning=None, schema=schema)
    sources = {
        "keys": [keyed, list(keyed.get_fragments()), keyed.to_table()],
        "own": [tmp_path, plain, plain.to_table()],
    }
    labels = {"keys": [5] * 4 + [6] * 4, "own": [0, 1, 2, 3] * 2}
    for one, other in itertools.product(sources, repeat=2):
        for source, another in itertools.product(sources[one], sources[other]):
            state = state_of(source)
            if one != other:
                with pytest.raises(ValueError, match="the state is of other data"):
                    rest_of(another, state)
                continue
            rest = rest_of(another, state)
            assert [label for batch in rest for label in batch["label"]] == labels[one][2:]


def test_other_options_of_a_format_are_other_data(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("id,day\n" + "".join(f"{at},0{at % 9 + 1}/02/2020\n" for at in range(12)))

    def read(skipped=0, **options):
        form = ds.CsvFileFormat(
            read_options=pyarrow.csv.ReadOptions(skip_rows_after_names=skipped),
            convert_options=pyarrow.csv.ConvertOptions(**options),
        )
        return ds.dataset(path, format=form)

    state = state_of(path, columns=["id"])
    assert rows_in(rest_of(read(), state, columns=["id"]))[0] == [2, 3]
    with pytest.raises(ValueError, match="the first rows had other values"):
        rest_of(read(3), state, columns=["id"])
    days = {"columns": ["day"], "physical": True}
    state = state_of(read(timestamp_parsers=["%d/%m/%Y"]), **days)
    with pytest.raises(ValueError, match="the first rows had other values"):
        rest_of(read(timestamp_parsers=["%m/%d/%Y"]), state, **days)


@pytest.mark.parametrize("of", ["dataset", "paths"])
def test_a_state_is_not_of_a_file_that_was_replaced_before_its_footer_was_read(of, tmp_path):
    paths = [tmp_path / "a.parquet", tmp_path / "b.parquet"]

    def put(path, rows):
        pq.write_table(pa.table({"x": rows}), tmp_path / "new")
        (tmp_path / "new").replace(path)

    def loader():
        return Loader(ds.dataset(paths) if of == "dataset" else paths, batch_size=5)

    put(paths[0], range(10))
    put(paths[1], range(100, 110))
    first = loader()
    epoch = iter(first)
    put(paths[1], range(200, 205))
    next(epoch)
    other = loader()
    other.load_state_dict(json.loads(json.dumps(first.state_dict())))
    with pytest.raises(ValueError, match="the state is of other data"):
        next(iter(other))
