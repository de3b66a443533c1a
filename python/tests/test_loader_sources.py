"""Sources of `Loader`, each from the real library."""

import io
import json
import math
import os
import re
import subprocess
import sys
import warnings
from collections import deque
from functools import partial

import adbc_driver_sqlite.dbapi
import datasets
import deltalake
import duckdb
import fsspec
import lance
import numpy as np
import pandas
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from arrow_dlpack import (
    AsArrow,
    ByLength,
    Cast,
    Categories,
    Encoder,
    Loader,
    Mix,
    Pad,
    iter_batches,
    to_tensor,
)
from arrow_dlpack.torch import BatchDataset
from datasets.distributed import split_dataset_by_node
from pyarrow import flight
from pyiceberg.catalog.sql import SqlCatalog
from test_loader import CONTEXT
from torch.utils.data import DataLoader

ROWS = 250
TABLE = pa.table({"x": np.arange(ROWS) / 2, "y": np.arange(ROWS), "word": ["a"] * ROWS})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two files of each format, in folders of their names."""
    folder = tmp_path_factory.mktemp("files")
    writers = {
        "parquet": lambda table, file: pq.write_table(table, file, row_group_size=40),
        "arrow": pa.feather.write_feather,
        "csv": pa.csv.write_csv,
    }
    for kind, write in writers.items():
        (folder / kind).mkdir()
        for number in range(2):
            write(TABLE.slice(number * 125, 125), str(folder / kind / f"{number}.{kind}"))
    return folder


def in_memory(folder):
    system = fsspec.filesystem("memory")
    for number in range(2):
        system.pipe(f"/rows/{number}.parquet", (folder / f"parquet/{number}.parquet").read_bytes())
    return "memory://rows/*.parquet"


def lance_dataset(folder):
    return lance.write_dataset(TABLE, str(folder / "lance"), mode="overwrite")


def delta_table(folder):
    deltalake.write_deltalake(str(folder / "delta"), TABLE, mode="overwrite")
    return deltalake.DeltaTable(str(folder / "delta"))


def iceberg_table(folder):
    (folder / "iceberg").mkdir(exist_ok=True)
    where = {"uri": "sqlite:///:memory:", "warehouse": f"file://{folder}/iceberg"}
    catalog = SqlCatalog("test", **where)
    catalog.create_namespace("db")
    table = catalog.create_table("db.rows", schema=TABLE.schema)
    table.append(TABLE)  # of several appends a scan has the last one first
    return table


def cursor(folder):
    connection = adbc_driver_sqlite.dbapi.connect()
    cursor = connection.cursor()
    cursor.adbc_ingest("numbers", TABLE)
    cursor.execute("select * from numbers order by y")
    return cursor


def streamed(folder):
    files = [str(folder / f"parquet/{number}.parquet") for number in range(2)]
    return datasets.IterableDataset.from_generator(generated, gen_kwargs={"files": files})


def generated(files):
    for file in files:
        yield from pq.read_table(file).to_pylist()


#: What opens each, and whether it knows its rows and can be read again.
SOURCES = {
    "path": (lambda folder: folder / "parquet" / "0.parquet", True, True),
    "folder": (lambda folder: str(folder / "parquet"), True, True),
    "pattern": (lambda folder: str(folder / "parquet" / "*.parquet"), True, True),
    "list of paths": (lambda folder: sorted((folder / "parquet").iterdir()), True, True),
    "Arrow files": (lambda folder: folder / "arrow", True, True),
    "CSV files": (lambda folder: str(folder / "csv" / "*.csv"), True, True),
    "URL": (in_memory, True, True),
    "ParquetFile": (lambda folder: pq.ParquetFile(folder / "parquet/0.parquet"), True, True),
    "pyarrow dataset": (lambda folder: ds.dataset(folder / "parquet"), True, True),
    "pyarrow scanner": (lambda folder: ds.dataset(folder / "parquet").scanner(), False, True),
    "pyarrow table": (lambda folder: TABLE, True, True),
    "pyarrow reader": (lambda folder: TABLE.to_reader(), False, False),
    "list of batches": (lambda folder: TABLE.to_batches(max_chunksize=60), True, True),
    "list of frames": (lambda folder: [pl.DataFrame(TABLE)] * 1, True, True),
    "generator": (lambda folder: (batch for batch in TABLE.to_batches()), False, False),
    "polars frame": (lambda folder: pl.DataFrame(TABLE), True, True),
    "polars LazyFrame": (lambda folder: pl.scan_parquet(folder / "parquet/*.parquet"), False, True),
    "duckdb": (
        lambda folder: duckdb.sql(f"from '{folder}/parquet/*.parquet' order by y"),
        False,
        True,
    ),
    "duckdb connection": (
        lambda folder: duckdb.connect().execute(f"from '{folder}/parquet/*.parquet' order by y"),
        False,
        False,
    ),
    "datasets": (lambda folder: datasets.Dataset(TABLE), True, True),
    "datasets, streamed": (streamed, False, True),
    "lance": (lance_dataset, True, True),
    "deltalake": (delta_table, True, True),
    "iceberg": (iceberg_table, True, True),
    "iceberg scan": (lambda folder: iceberg_table(folder).scan(), True, True),
    "adbc": (cursor, False, False),
}


def y_of(batches):
    return [np.asarray(batch["y"]).tolist() for batch in batches]


@pytest.mark.parametrize("name", SOURCES)
def test_their_rows_are_batches_in_each_epoch(name, folder):
    opens, knows, again = SOURCES[name]
    source = opens(folder)
    loader = Loader(source, batch_size=64, columns=["y"])
    rows = 125 if name in ("path", "ParquetFile") else ROWS
    expected = [list(range(at, min(at + 64, rows))) for at in range(0, rows, 64)]
    if knows:
        assert len(loader) == len(expected)
    else:
        with pytest.raises(TypeError, match="does not know how many rows"):
            len(loader)
    assert y_of(loader) == expected
    if again:
        assert y_of(loader) == expected
    else:
        with pytest.raises(TypeError, match="is read once"):
            iter(loader)
    if name == "adbc":
        source.close()


@pytest.mark.parametrize("name", SOURCES)
def test_their_rows_are_filtered_and_shuffled(name, folder):
    source = SOURCES[name][0](folder)
    options = {"batch_size": 10, "filter": pc.field("x") < 30, "shuffle": 20, "seed": 1}
    found = [row for batch in y_of(Loader(source, columns=["y"], **options)) for row in batch]
    assert sorted(found) == list(range(60))
    assert found != sorted(found)
    if name == "adbc":
        source.close()


@pytest.mark.filterwarnings("ignore:Arrow output on a DB-API result")
@pytest.mark.parametrize("name", SOURCES)
def test_the_call_that_errors_name_gives_a_source_another_type(name, folder):
    def opened():
        source = SOURCES[name][0](folder)
        return source[0] if name in ("list of batches", "list of frames") else source

    texts = pa.table({"y": ["a"]})
    x = opened()
    with pytest.raises(TypeError, match='"y" is int64 in source 0') as refused:
        list(Loader(Mix([(x, 1), (texts, 1)]), columns=["y"]))
    way = re.search(r"in source 1 of the Mix: (.+?) (?:casts|reads)", str(refused.value))[1]
    if way.startswith("pyarrow.dataset.dataset(paths, "):
        return  # test_loader_schema.py has those of files
    if name == "adbc":
        x.execute("select * from numbers order by y")
    else:
        x = opened()
    given = {
        "dataset": getattr(x, "to_pyarrow_dataset", lambda: x)(),
        "scan": getattr(x, "scan", lambda: x)(),
        "schema": TABLE.schema.set(1, pa.field("y", pa.string())),
        "name": "y",
        "type": pl.String,
    }
    cast = eval(way, {"x": x, "pyarrow": pa, "datasets": datasets, **given})
    (batch,) = Loader(Mix([(cast, 1), (texts, 1)]), columns={"y": AsArrow()})
    assert pa.array(batch["y"]).to_pylist()[:3] == ["0", "a", "1"]
    if name == "adbc":
        x.close()


def test_iter_batches_takes_them_too(folder):
    assert y_of(iter_batches(folder / "parquet", columns=["y"], batch_size=ROWS)) == [
        list(range(ROWS))
    ]


def test_a_filter_reaches_the_statistics_of_row_groups(folder, tmp_path):
    """The other row groups are overwritten, and not missed."""
    file = folder / "parquet" / "0.parquet"
    data = bytearray(file.read_bytes())
    end = pq.ParquetFile(file).metadata.row_group(1).column(0).dictionary_page_offset
    data[4:end] = bytes(end - 4)
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(data)
    loader = Loader(broken, columns=["y"], filter=pc.field("y") >= 50, batch_size=100)
    assert y_of(loader) == [list(range(50, 125))]


@pytest.mark.parametrize("is_mixed", [True, False])
@pytest.mark.parametrize(
    ("kind", "told", "named"),
    [
        (pq.ParquetFile, "a ParquetFile does not tell its path: pass the path", str),
        (lambda file: ds.dataset(file).scanner(), "pass its dataset", ds.dataset),
    ],
)
def test_sources_that_do_not_tell_their_files_say_what_does(tmp_path, kind, told, named, is_mixed):
    file = tmp_path / "broken.parquet"
    pq.write_table(
        pa.table({"y": range(1000)}), file, use_dictionary=False, column_encoding="PLAIN"
    )
    data = bytearray(file.read_bytes())
    data[100:1000] = bytes(900)
    file.write_bytes(data)

    def read(source):
        source = Mix([(source, 1), (TABLE, 1)]) if is_mixed else source
        list(Loader(source, columns=["y"], batch_size=100))

    with pytest.raises((OSError, ValueError)) as raised:
        read(kind(file))
    assert any(told in note for note in raised.value.__notes__)
    with pytest.raises((OSError, ValueError), match=r"broken\.parquet"):
        read(named(file))


def test_filters_and_splits_of_hugging_face_are_honoured():
    rows = datasets.Dataset(TABLE)
    some = rows.filter(lambda row: row["y"] % 2 == 0).shuffle(seed=1)
    found = [row for batch in y_of(Loader(some, columns=["y"], batch_size=40)) for row in batch]
    assert found == some["y"][:]
    assert len(Loader(some, batch_size=40)) == 4
    with pytest.raises(TypeError, match=r'several sources \(train, test\).*dataset\["train"\]'):
        iter(Loader(rows.train_test_split(test_size=50)))
    parts = rows.train_test_split(test_size=50, shuffle=False)
    assert y_of(Loader(parts["test"], columns=["y"])) == [list(range(200, 250))]


def test_row_groups_of_a_sorted_file_are_shuffled(folder):
    loader = Loader(folder / "parquet", columns=["y"], batch_size=10, shuffle=10, seed=3)
    epochs = [np.concatenate(y_of(loader)) for _ in range(2)]
    for epoch in epochs:
        assert sorted(epoch.tolist()) == list(range(ROWS))
        # A buffer alone would not bring rows forward by more than its size.
        assert (epoch - np.arange(ROWS)).max() > 60
    assert epochs[0].tolist() != epochs[1].tolist()


class Flights(flight.FlightServerBase):
    def do_get(self, context, ticket):
        return flight.RecordBatchStream(pa.table({"x": range(5), "s": list("abcde")}))


def test_what_arrow_flight_answers_is_read_once():
    with Flights("grpc://127.0.0.1:0") as server:
        client = flight.connect(f"grpc://127.0.0.1:{server.port}")

        def opened(*_):
            return client.do_get(flight.Ticket(b""))

        loader = Loader(opened(), columns=["x"], batch_size=2, filter=pc.field("x") > 0)
        assert [batch["x"].tolist() for batch in loader] == [[1, 2], [3, 4]]
        with pytest.raises(TypeError, match="a reader is read once"):
            list(loader)
        reader = opened()
        for source in reader, lambda index, count: reader:
            again = Loader(source, columns=["x"], batch_size=2)
            if source is reader:
                next(iter(again))
                state = again.state_dict()
                again = Loader(source, columns=["x"], batch_size=2)
            again.load_state_dict(state)
            with pytest.raises(ValueError, match="took rows of this .*: open it again"):
                list(again)
        whole = Loader(opened, batch_size=5, columns={"s": Categories.scan()})
        assert [batch["s"].tolist() for _ in range(2) for batch in whole] == [[0, 1, 2, 3, 4]] * 2
        for way in "to_reader", "read_all":
            with pytest.raises(TypeError, match=rf"x\.{way}\(\)"):
                to_tensor(opened())
            assert to_tensor(getattr(opened(), way)(), columns=["x"]).shape == (5, 1)
        client.close()


def test_an_expression_keeps_the_rows_of_lance_that_it_keeps_of_a_table(tmp_path):
    """To Lance itself NaN is above all numbers, and `IN` knows no null."""
    columns = {"x": [1.0, math.nan, 3.0, math.nan], "i": [12, None, 15, 67], "id": range(4)}
    table = pa.table(columns | {"s": [{"a": 1}, {"a": 2}, None, {"a": 4}]})
    dataset = lance.write_dataset(table, str(tmp_path / "lance"))
    field = pc.field
    for where in [
        field("x") > 1,
        pc.equal(field("x"), math.nan),
        ~field("i").isin([12]),
        field("i").isin([12, None]),
        field("s", "a") > 1,
        field("i").is_null(nan_is_null=True),
    ]:
        one, other = (
            Loader(source, columns=["id"], filter=where, batch_size=1)
            for source in (dataset, table)
        )
        found, expected = ([batch["id"].tolist() for batch in own] for own in (one, other))
        assert found == expected
        assert len(one) == len(other)
    text = Loader(dataset, columns=["id"], filter="x > 1")
    assert [batch["id"].tolist() for batch in text] == [[1, 2, 3]]  # Lance's own


@pytest.mark.parametrize(
    "name",
    [
        "folder",
        "pyarrow dataset",
        "datasets",
        "lance",
        "polars LazyFrame",
        "iceberg",
        "iceberg scan",
    ],
)
def test_spawned_workers_open_them(name, folder):
    dataset = BatchDataset(SOURCES[name][0](folder), columns=["y"], batch_size=64)
    batches = DataLoader(dataset, batch_size=None, num_workers=2, multiprocessing_context=CONTEXT)
    assert sorted(row for batch in y_of(batches) for row in batch) == list(range(ROWS))


def test_what_is_not_there_is_named(tmp_path):
    for missing in tmp_path / "none.parquet", str(tmp_path / "*.parquet"):
        with pytest.raises(FileNotFoundError, match="parquet"):
            iter(Loader(missing))
    with pytest.raises(ValueError, match="the source has no batches"):
        iter(Loader(iter([])))
    with pytest.raises(KeyError, match='no column "z"'):
        iter(Loader(TABLE, columns=["z"]))


@pytest.mark.parametrize("form", ["folder", "pattern", "URL"])
@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_what_jobs_leave_beside_their_files_is_not_read(form, kind, folder, tmp_path):
    place = tmp_path / "job"
    place.mkdir()
    rows = (folder / kind / f"0.{kind}").read_bytes()
    for name, data in ("_SUCCESS", b""), (".crc", b"?"), ("_log", b"?"), (f"p.{kind}", rows):
        (place / name).write_bytes(data)
    source = {"folder": place, "pattern": f"{place}/*", "URL": f"file://{place}"}[form]
    assert y_of(Loader(source, columns=["y"], batch_size=ROWS)) == [list(range(125))]


@pytest.mark.parametrize("hidden", [(), ("_SUCCESS", ".crc")])
def test_a_folder_without_files_is_named(hidden, folder, tmp_path):
    place = tmp_path / "empty"
    place.mkdir()
    for name in hidden:
        (place / name).write_bytes(b"")
    told = r"no file is in .*emp.*, but for hidden ones"
    sources = place, [place], f"{tmp_path}/emp*", f"file://{place}", Mix([(place, 1)])
    loaders = [Loader(source, columns=["y"], batch_size=ROWS) for source in sources]
    for read in (
        *(partial(iter, loader) for loader in loaders),
        partial(Encoder(columns=["y"]).fit, place),
    ):
        with pytest.raises(FileNotFoundError, match=told):
            read()
    one = folder / "parquet" / "0.parquet"
    assert y_of(Loader([place, one], columns=["y"], batch_size=ROWS)) == [list(range(125))]
    (place / one.name).write_bytes(one.read_bytes())
    for loader in loaders:
        assert y_of(loader) == [list(range(125))]


def test_a_file_may_be_called_like_a_pattern(folder, tmp_path):
    for name in "a[1].parquet", "b*.parquet":
        (tmp_path / name).write_bytes((folder / "parquet/0.parquet").read_bytes())
        for source in tmp_path / name, [str(tmp_path / name)], f"file://{tmp_path / name}":
            assert len(Loader(source, batch_size=125)) == 1


def test_paths_and_urls_of_this_machine_are_of_one_file_system(folder):
    paths = [folder / "parquet" / f"{number}.parquet" for number in range(2)]
    expected = y_of(Loader(paths, columns=["y"], batch_size=ROWS))
    for source in [paths[0], f"file://{paths[1]}"], [f"local://{paths[0]}", paths[1]]:
        assert y_of(Loader(source, columns=["y"], batch_size=ROWS)) == expected


def test_files_that_are_not_read_together_are_named(folder):
    parquet, arrow = folder / "parquet" / "0.parquet", folder / "arrow" / "0.arrow"
    for source in [parquet, arrow], [folder / "parquet", folder / "arrow"]:
        with pytest.raises(ValueError, match=r"files of one format .*\.(arrow|csv|parquet): a Mix"):
            iter(Loader(source))
    with pytest.raises(ValueError, match=r"from one file system: memory:.*/0.parquet.*a Mix takes"):
        iter(Loader([in_memory(folder), parquet]))
    mix = Mix([(parquet, 1), (arrow, 1)])
    assert sum(map(len, y_of(Loader(mix, columns=["y"], batch_size=50)))) == 250
    with pytest.raises(FileNotFoundError, match="no file is called ''"):
        iter(Loader(""))


def test_a_copy_beside_the_files_of_a_folder_is_no_part_of_it(tmp_path):
    pq.write_table(TABLE, tmp_path / "a.parquet")
    assert len(list(Loader(tmp_path, columns=["y"], batch_size=None))) > 0
    pq.write_table(TABLE, tmp_path / "a.parquet.bak")
    with pytest.raises(
        ValueError, match=r"a\.parquet\.bak is none of the files that a Loader reads"
    ):
        Loader(tmp_path, columns=["y"])


def test_a_mix_refuses_a_file_of_no_known_format_when_a_loader_does(tmp_path):
    (tmp_path / "notes.txt").write_text("hello")
    for source in tmp_path / "notes.txt", Mix([(tmp_path / "notes.txt", 1), (TABLE, 1)]):
        with pytest.raises(ValueError, match=r"notes\.txt is none of the files"):
            Loader(source, batch_size=1)


def test_a_dataset_without_rows_keeps_its_columns():
    rows = datasets.Dataset(TABLE)
    streamed = rows.to_iterable_dataset()
    for none in (
        rows.select([]),
        rows.filter(lambda row: False),
        streamed.filter(lambda row: False),
        datasets.Dataset(TABLE.slice(0, 0)),
    ):
        for where in None, pc.field("y") > 0:
            assert list(Loader(none, columns=["y"], filter=where)) == []
            mix = Mix([(none, 1), (rows, 1)])
            found = list(Loader(mix, columns=["y"], filter=where, batch_size=ROWS))
            expected = list(Loader(TABLE, columns=["y"], filter=where, batch_size=ROWS))
            assert [x["y"].tolist() for x in found] == [x["y"].tolist() for x in expected]
        with pytest.raises(KeyError, match='no column "z"'):
            list(Loader(none, columns=["z"]))


def test_the_ways_out_of_what_is_no_source():
    (batch,) = Loader(pa.table({"x": [[1, 2], [3, 4]]}))
    assert batch["x"].values.tolist() == [1, 2, 3, 4]
    with duckdb.connect() as connection:
        with pytest.raises(ValueError, match=r"pass the result of a query, as connection.sql\(q\)"):
            list(Loader(connection))
        (batch,) = Loader(connection.sql("SELECT 1 AS x"))
        assert batch["x"].tolist() == [1]


def test_files_beside_those_of_a_format_are_named_with_a_pattern(tmp_path):
    """As snapshots of a hub have them, and folders of save_to_disk."""
    pq.write_table(TABLE, tmp_path / "rows.parquet")
    for name in "README.md", "metadata.json", "plot.png":
        (tmp_path / name).write_text("{}")
        with pytest.raises(
            ValueError, match=f'{name} is none of .*"folder/.*parquet" leaves it out'
        ):
            list(Loader(tmp_path, columns=["y"]))
        (tmp_path / name).unlink()
    (tmp_path / "README.md").write_text("")
    assert len(Loader(f"{tmp_path}/**/*.parquet", columns=["y"], batch_size=ROWS)) == 1
    datasets.Dataset(TABLE).save_to_disk(tmp_path / "above" / "saved")
    assert len(Loader(f"{tmp_path}/above/*", columns=["y"], batch_size=ROWS)) == 1
    for path in tmp_path / "above", f"{tmp_path}/above/saved/*":
        with pytest.raises(ValueError, match="json is none of .* leaves it out"):
            list(Loader(path, columns=["y"]))
    assert len(Loader(f"{tmp_path}/above/**/*.arrow", columns=["y"], batch_size=ROWS)) == 1
    # Other files of these names are nobody's.
    other = tmp_path / "other"
    other.mkdir()
    for name in "state.json", "dataset_info.json":
        (other / name).write_text("{}")
    with pytest.raises(ValueError, match="dataset_info.json is none of"):
        list(Loader(other, columns=["y"]))


def test_names_of_columns_that_are_no_utf8(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("größe,b\n1,2\n".encode("latin-1"))
    with pytest.raises(ValueError, match="a.csv: the names of its columns are no UTF-8: .*latin-1"):
        list(Loader(path))
    options = pa.csv.ReadOptions(encoding="latin1")
    (batch,) = Loader(pa.csv.read_csv(path, read_options=options))
    assert sorted(batch) == ["b", "größe"]


def test_formats_of_hugging_face_are_honoured():
    rows = datasets.Dataset(TABLE)
    loader = Loader(rows.with_format("torch", columns=["y", "x"]), batch_size=ROWS)
    (batch,) = loader
    assert sorted(batch) == ["x", "y"]
    assert repr(loader).endswith("\n  y\n  x>")
    with pytest.raises(TypeError, match="has a transform.*with_format.None., and transform= to"):
        iter(Loader(rows.with_transform(lambda row: row), columns=["y"]))


@pytest.mark.parametrize("is_mixed", [False, True])
def test_a_format_of_hugging_face_with_all_columns_leaves_none_out(is_mixed):
    rows = datasets.Dataset.from_dict({"id": [1, 2], "y": [0, 1]})
    rows = rows.with_format("numpy", columns=["id"], output_all_columns=True)
    source = Mix([(rows, 1)]) if is_mixed else rows
    for options in ({}, {"filter": pc.field("y") >= 0}):
        loader = Loader(source, batch_size=2, **options)
        (batch,) = loader
        assert sorted(batch) == sorted(rows[0]) == ["id", "y"]
        assert len(loader) == 1
    assert Encoder().fit(source)(rows.with_format("arrow")[:]).keys() == {"id", "y"}


@pytest.mark.parametrize("is_mixed", [False, True])
@pytest.mark.parametrize("where", [pc.field("id") == 1, pc.field("t") == 5])
def test_a_filter_and_columns_name_others_than_a_format_of_hugging_face(is_mixed, where):
    rows = datasets.Dataset.from_dict({"id": [1, 2], "y": [0, 1], "t": [5, 6]})
    rows = rows.with_format("numpy", columns=["id"])
    source = Mix([(rows, 1)]) if is_mixed else rows
    for columns, expected in [(None, {"id": [1]}), (["y"], {"y": [0]}), (["t"], {"t": [5]})]:
        loader = Loader(source, batch_size=2, columns=columns, filter=where)
        (batch,) = loader
        assert {name: batch[name].tolist() for name in batch} == expected
        assert len(loader) == 1


@pytest.mark.parametrize("is_mixed", [False, True])
@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("y", [0, 1]),
        ("s.q", [5, 6]),
        ({"t": Categories.scan()}, [1, 0]),
        ({"t": Categories(["a", "b"])}, [1, 0]),
    ],
)
@pytest.mark.parametrize("where", [None, pc.field("y") >= 0])
def test_labels_may_be_others_than_a_format_of_hugging_face(is_mixed, label, expected, where):
    rows = {"id": [1, 2], "y": [0, 1], "t": ["b", "a"], "s": [{"q": 5}, {"q": 6}]}
    rows = datasets.Dataset.from_dict(rows)
    some = rows.with_format("numpy", columns=["id"])
    source = Mix([(some, 1)]) if is_mixed else some
    options = {"label": label, "batch_size": 2, "filter": where}
    loader = Loader(source, **options)
    ((features, labels),) = loader
    assert {name: features[name].tolist() for name in features} == {"id": [1, 2]}
    assert labels.tolist() == expected
    named = Loader(Mix([(rows, 1)]) if is_mixed else rows, columns=["id"], **options)
    next(iter(named))
    loader.load_state_dict(named.state_dict())
    assert list(loader) == []


def test_a_label_that_a_dataset_of_hugging_face_has_not_is_missing_or_filled():
    rows = datasets.Dataset.from_dict({"id": [1, 2]}).add_column("t", [5, 6])
    rows = rows.with_format("numpy", columns=["id"])
    with pytest.raises(KeyError, match='no column "y"'):
        iter(Loader(rows, label="y"))
    other = pa.table({"id": [3], "y": [1]})
    mix = Mix([(rows, 1), (other, 1)])
    ((features, labels),) = Loader(mix, label={"y": Cast("int64", nulls=-1)})
    assert features["id"].tolist() == [1, 3, 2]
    assert labels.tolist() == [-1, 1, -1]


def test_a_state_has_the_columns_of_a_format_of_hugging_face():
    rows = datasets.Dataset.from_dict({"id": [1, 2], "y": [0, 1]})
    some = rows.with_format("numpy", columns=["id"])

    def state(source, **options):
        loader = Loader(source, batch_size=1, **options)
        next(iter(loader))
        return loader.state_dict()

    assert state(some) == state(some, columns=["id"]) == state(rows, columns=["id"])
    where = pc.field("y") < 5
    assert state(some, filter=where) == state(rows, columns=["id"], filter=where)
    other = Loader(rows.with_format("numpy", columns=["y"]), batch_size=1)
    other.load_state_dict(state(some))
    with pytest.raises(ValueError, match="the state is of other data"):
        iter(other)


def with_empty_chunk(kind):
    """Seven rows whose column `s` has a chunk without rows that lies at an offset."""
    texts = pa.array(["a"] * 9, pa.string()).cast(kind)
    table = pa.table({"s": texts, "m": [{"a": 1}] * 9}).slice(2)
    table = pa.concat_tables([table[:2], table[:0], table[2:]])
    table.validate(full=True)
    return table


@pytest.mark.parametrize("kind", [pa.string_view(), pa.binary_view()], ids=str)
@pytest.mark.parametrize("wish", [AsArrow, Categories], ids=lambda wish: wish.__name__)
@pytest.mark.parametrize(
    "source",
    [
        lambda table: table,
        lambda table: [table],
        lambda table: [table[2:2], table],
        lambda table: iter([table]),
        lambda table: table.to_reader(),
        lambda table: Mix([(table, 1)]),
    ],
    ids=["table", "list", "list that begins with no rows", "iterator", "reader", "mix"],
)
def test_views_may_have_chunks_without_rows(source, wish, kind):
    word = b"a" if pa.types.is_binary_view(kind) else "a"
    s = AsArrow() if wish is AsArrow else Categories([word])
    for columns in ({"m.a": None, "s": s}, {"s": s}):
        batches = list(Loader(source(with_empty_chunk(kind)), columns=columns, batch_size=7))
        assert [len(batch["s"]) for batch in batches] == [7]


def test_views_of_no_rows_at_all_have_a_schema():
    table = with_empty_chunk(pa.string_view())[2:2]
    columns = {"m.a": None, "s": AsArrow()}
    for source in (table, [table], pa.concat_tables([table, table])):
        assert list(Loader(source, columns=columns)) == []
        encoder = Encoder(columns=columns).fit(source)
        expected = pa.schema({"m.a": pa.int64(), "s": pa.string_view()})
        assert pa.schema(encoder.schema).equals(expected)


def test_rows_that_hold_themselves_are_refused():
    """pyarrow follows them until the process ends."""
    own, deep = [], 1
    own.append(own)
    by_key = {}
    by_key["x"] = by_key
    for _ in range(100_000):
        deep = [deep]
    for value in (own, by_key, deep):
        with pytest.raises(ValueError, match="lists are nested more than 64 levels deep, or hold"):
            list(Loader(iter([{"x": [value]}])))
    shared = [1]
    for _ in range(60):
        shared = [shared, shared]
    with pytest.raises(ValueError, match="more than 64 levels deep"):
        list(Loader(iter([{"x": [shared, own]}])))


class PathOfBytes(os.PathLike):
    def __fspath__(self):
        return b"rows.parquet"


NO_SOURCES = {
    "5": (5, "int: "),
    "none": (None, "None: is there a return missing"),
    "a module": (pq, "module$"),
    "an array": (np.ones(3), r"ndarray: arrow_dlpack.record_batch\(\{.x.: x\}\) makes a table"),
    "a dict": ({"y": [1]}, r"dict: pyarrow.table\(x\) makes a table of it$"),
    "rows": ([{"y": 1}], r"list: pyarrow.table\(pyarrow.array\(x\)\) makes a table"),
    "bytes": (b"rows.parquet", "bytes: .*os.fsdecode"),
    "a path of bytes": (PathOfBytes(), r"PathOfBytes: .*os.fsdecode\(x\) is a path$"),
    "paths of bytes": ([PathOfBytes()], r"list, whose item 0 .*os.fsdecode\(x\) is a path$"),
    "a path and one of bytes": (["a", PathOfBytes()], r"whose item 1 is no path: .*os.fsdecode"),
    "a path and a number": (["a", 1], "list, whose item 1 is no path: 1; leave it out$"),
    "a number and a path": ([1, "a"], "list, whose item 0 is no path: 1; leave it out$"),
    "a table and a number": ([TABLE, 1], "item 1 is no table: 1; make a table of it, or leave it"),
    "a table and none": ([TABLE, None], "item 1 is no table: None; make a table of it, or leave"),
    "none and a frame": (
        [None, pandas.DataFrame()],
        "item 0 is no table: None; make a table of it",
    ),
    "a table and a path": ([TABLE, "a"], r"item 1 is no table: 'a'; Mix\(\[.*paths and tables"),
    "a path and a table": (["a", TABLE], r"item 1 is no path: Table; Mix\(\[.*paths and tables"),
    "texts of rows": (np.array([["a"]]), r"pyarrow.table\(\{.x.: x.ravel\(\)\}\) makes a table"),
    "days": (
        np.zeros(2, "m8[D]"),
        r"pyarrow.table\(\{.x.: x.astype\(.m8\[s\].\)\}\) makes",
    ),
    "a class": (pa.Table, "the class Table: pass an object of it"),
    "lists": ([[1, 2], [3, 4]], r"no table: \[1, 2\]; pyarrow.table\(\{.x.: x\}\) makes a table"),
    "loaders": ([Loader(TABLE)], "item 0 is no table: Loader; loop over it, or pass its source$"),
    "a set of paths": ({"b.parquet", "a.parquet"}, r"set: sorted\(x\) is a list of paths$"),
}


@pytest.mark.parametrize("name", NO_SOURCES)
def test_what_is_no_source_is_refused_at_once(name):
    source, words = NO_SOURCES[name]
    takes = (
        "takes a path, a table, a frame, a dataset, the result of a query, or a list or an itera"
    )
    for who, make in ("Loader", Loader), ("Mix", lambda source: Mix([(source, 1)])):
        with pytest.raises(TypeError, match=f"^a {who} {takes}.*, got .*{words}"):
            make(source)


@pytest.mark.parametrize(
    "source",
    [(x for x in [1]), [pa.array([1])], iter(["a"])],
    ids=["a generator", "arrays", "names"],
)
def test_what_is_no_batch_is_named(source):
    with pytest.raises((TypeError, FileNotFoundError), match="table or|expected an Arrow"):
        next(iter(Loader(source)))


def test_what_pyarrow_cannot_read_is_told_in_its_words():
    deep = pa.array([1])
    for _ in range(300):
        deep = pa.StructArray.from_arrays([deep], ["a"])
    table = pa.table({"s": deep, "y": [1]})
    with pytest.raises(TypeError, match="pyarrow.lib.Table: Recursion level in ArrowSchema"):
        iter(Loader(table, columns=["s.a"]))


class OwnFrame(pandas.DataFrame):
    """A frame of a user's class, such as those of geopandas."""


@pytest.mark.parametrize("kind", ["frame", "list"])
@pytest.mark.parametrize("of", [pandas.DataFrame, OwnFrame])
def test_a_frame_that_grows_between_epochs_is_read_as_it_is(of, kind):
    frame = of({"x": range(4)})
    source = frame if kind == "frame" else [frame]
    loaders = [
        Loader(source, batch_size=2, rank=rank, world_size=2, uneven="drop") for rank in range(2)
    ]
    for loader in loaders:
        list(loader)
    for row in range(4, 12):
        frame.loc[row] = row
    assert len(loaders[0]) == 3
    rows = [x for loader in loaders for b in loader for x in np.asarray(b["x"]).tolist()]
    assert sorted(rows) == [*range(12)]
    loader = Loader(source, batch_size=2)
    list(loader)
    frame["x"] = frame["x"] / 2
    epoch = iter(loader)
    assert np.asarray(next(epoch)["x"]).tolist() == [0, 0.5]
    fresh = Loader(source, batch_size=2)
    fresh.load_state_dict(loader.state_dict())
    assert len(list(fresh)) == 5


@pytest.mark.parametrize("form", ["generator", "mix", "csv"])
@pytest.mark.parametrize(
    "options",
    [
        {"columns": ["X"]},
        {"filter": pc.field("X") > 1},
        {"columns": {"x": Pad(0)}},
    ],
)
def test_a_refusal_says_that_a_batch_is_gone_from_the_iterator(form, options):
    tables = (pa.table({"x": [at]}) for at in range(3))
    chunks = pandas.read_csv(io.StringIO("x\n0\n1\n2"), chunksize=1)
    source = {"mix": Mix([(tables, 1)]), "csv": chunks}.get(form, tables)
    with pytest.raises((KeyError, TypeError)) as refusal:
        list(Loader(source, **options))
    assert refusal.value.__notes__ == [
        "What was read of the iterator is gone from it: make it anew."
    ]
    assert len(list(chunks if form == "csv" else tables)) == 2


def test_a_refusal_of_what_can_be_read_again_has_no_note():
    tables = [pa.table({"x": [0]})]
    for source in tables, lambda index, count: iter(tables), Mix([(tables, 1)]):
        with pytest.raises(KeyError) as refusal:
            list(Loader(source, columns=["X"]))
        assert not getattr(refusal.value, "__notes__", [])


def streamed(rows=40, shards=4):
    return datasets.Dataset(pa.table({"x": np.arange(rows)})).to_iterable_dataset(num_shards=shards)


def rows_of(loader):
    return [row for batch in loader for row in batch["x"].tolist()]


@pytest.mark.parametrize("is_mixed", [False, True])
@pytest.mark.parametrize("columns", [None, ["x"]])
def test_a_streamed_dataset_has_the_order_of_its_epoch(is_mixed, columns):
    rows = streamed().shuffle(seed=3, buffer_size=20)
    loader = Loader(Mix([(rows, 1)]) if is_mixed else rows, columns=columns, batch_size=7)
    found = []
    for epoch in range(3):
        rows.set_epoch(epoch)
        found.append(rows_of(loader))
        assert found[-1] == [row["x"] for row in rows]
    assert found[0] != found[1] != found[2]


def test_a_state_of_a_streamed_dataset_has_its_seed_and_its_epoch():
    rows = streamed().shuffle(seed=3, buffer_size=20)
    rows.set_epoch(1)
    loader = Loader(rows, batch_size=7)
    epoch = iter(loader)
    next(epoch)
    state, rest = loader.state_dict(), rows_of(epoch)
    for other, number in [(3, 0), (4, 1), (None, 1)]:
        rows = streamed().shuffle(seed=other, buffer_size=20)
        rows.set_epoch(number)
        again = Loader(rows, batch_size=7)
        again.load_state_dict(state)
        with pytest.raises(ValueError, match="had another seed .* another epoch by its set_epoch"):
            iter(again)
    rows = streamed().shuffle(seed=3, buffer_size=20)
    rows.set_epoch(1)
    again = Loader(rows, batch_size=7)
    again.load_state_dict(state)
    assert rows_of(again) == rest


@pytest.mark.parametrize("is_mixed", [False, True])
def test_a_state_within_an_epoch_of_a_stream_is_of_the_order_that_it_began_with(is_mixed):
    """`datasets` orders the shards of each stream by its epoch."""

    def made(epoch):
        rows = streamed(8)
        rows.set_epoch(epoch)
        return rows, Loader(Mix([(rows, 1)]) if is_mixed else rows, batch_size=3)

    rows, loader = made(2)
    epoch = iter(loader)
    head = next(epoch)["x"].tolist()
    rows.set_epoch(5)
    state = loader.state_dict()
    _, again = made(2)
    again.load_state_dict(state)
    assert sorted(head + rows_of(again)) == list(range(8))
    for other in 0, 5:
        _, again = made(other)
        again.load_state_dict(state)
        with pytest.raises(ValueError, match="another epoch by its set_epoch"):
            iter(again)


def test_a_state_at_the_end_of_an_epoch_of_a_stream_takes_the_next():
    def made():
        rows = streamed().shuffle(seed=3, buffer_size=20)
        return rows, Loader(rows, batch_size=7)

    rows, loader = made()
    assert rows_of(loader)
    state = loader.state_dict()
    rows.set_epoch(1)
    expected = rows_of(loader)
    rows, again = made()
    again.load_state_dict(state)
    rows.set_epoch(1)
    assert rows_of(again) == expected


def test_a_loop_over_a_dataset_that_is_left_is_silent_at_the_end_of_the_process():
    code = (
        "import pyarrow as pa, datasets; from arrow_dlpack import Loader\n"
        "rows = datasets.Dataset(pa.table({'x': range(10_000)}))\n"
        "loops = [iter(Loader(of, batch_size=3)) for of in (rows, rows.to_iterable_dataset())]\n"
        "for loop in loops: next(loop)\n"
    )
    run = [sys.executable, "-c", code]
    done = subprocess.run(run, capture_output=True, text=True, check=False, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_streamed_dataset_that_goes_on_from_its_own_state_is_refused():
    rows = streamed()
    epoch = iter(rows)
    next(epoch)
    state = rows.state_dict()
    rows = streamed()
    rows.load_state_dict(state)
    with pytest.raises(ValueError, match="a state of its own.* state_dict.. of the Loader"):
        rows_of(Loader(rows))
    rows.set_epoch(1)
    assert rows_of(Loader(rows)) == list(range(40))


@pytest.mark.parametrize("is_mixed", [False, True])
@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: split_dataset_by_node(streamed(), 0, 2), "divided this dataset for ranks already"),
        (lambda: streamed().shuffle(), "each rank would have other rows of it: pass seed="),
        (
            lambda: datasets.interleave_datasets([streamed()] * 2, probabilities=[0.5, 0.5]),
            "each rank would have other rows of it: pass seed=",
        ),
    ],
    ids=["split", "shuffled", "interleaved"],
)
def test_ranks_of_a_streamed_dataset_need_the_same_rows(is_mixed, make, words):
    rows = make()
    source = Mix([(rows, 1)]) if is_mixed else rows
    loader = Loader(source, batch_size=7, rank=0, world_size=2, uneven="allow")
    with pytest.raises(ValueError, match=words):
        iter(loader)
    assert rows_of(Loader(source, batch_size=7))


@pytest.mark.parametrize("is_mixed", [False, True])
def test_words_of_a_node_are_not_those_of_all(is_mixed):
    """Each node would number its own ones, and one word would have two codes."""
    rows = datasets.Dataset.from_dict({"c": ["a", "b", "b", "c"]}).to_iterable_dataset(num_shards=2)
    wish = {"columns": {"c": Categories.scan()}, "batch_size": 2}
    for rank in range(2):
        node = split_dataset_by_node(rows, rank, 2)
        loader = Loader(Mix([(node, 1)]) if is_mixed else node, **wish)
        for call in list, lambda loader: loader.categories, lambda loader: loader.encoder():
            with pytest.raises(
                ValueError, match="each node would number the words of the rows that it reads"
            ):
                call(loader)
        whole = Loader(rows, rank=rank, world_size=2, uneven="allow", **wish)
        given = Loader(node, columns={"c": Categories(whole.categories["c"])}, batch_size=2)
        expected = [[0, 1], [1, 2]][rank]
        assert [batch["c"].tolist() for batch in whole] == [expected]
        assert [batch["c"].tolist() for batch in given] == [expected]


@pytest.mark.parametrize("is_mixed", [False, True])
def test_a_state_of_one_node_is_not_that_of_another(is_mixed):
    rows = datasets.Dataset.from_dict({"x": list(range(24))}).to_iterable_dataset(num_shards=4)

    def loop(rank, world):
        node = split_dataset_by_node(rows, rank, world)
        return Loader(Mix([(node, 1)]) if is_mixed else node, batch_size=3)

    loader = loop(0, 2)
    _, *rest = loader
    loader = loop(0, 2)
    next(iter(loader))
    state = loader.state_dict()
    for rank, world in (1, 2), (0, 4), (0, 1):
        other = loop(rank, world)
        other.load_state_dict(state)
        with pytest.raises(ValueError, match="had divided the dataset for another node"):
            list(other)
    same = loop(0, 2)
    same.load_state_dict(state)
    assert [batch["x"].tolist() for batch in same] == [batch["x"].tolist() for batch in rest]


def test_ranks_of_a_shuffled_stream_have_each_row_once():
    found = []
    for rank in range(2):
        rows = streamed().map(lambda row: row).shuffle(seed=5, buffer_size=9)
        found += rows_of(Loader(rows, batch_size=7, rank=rank, world_size=2, uneven="allow"))
    assert sorted(found) == list(range(40))


def test_files_of_a_streamed_dataset_that_differ_name_what_makes_them_one(tmp_path):
    (tmp_path / "a.csv").write_text("y,x\n0,1\n0,2\n")
    (tmp_path / "b.csv").write_text("y,x\n0,1.5\n0,2\n")
    files = sorted(map(str, tmp_path.glob("*.csv")))
    options = {"split": "train", "streaming": True, "cache_dir": str(tmp_path / "cache")}
    rows = datasets.load_dataset("csv", data_files=files, **options)
    floats = datasets.Features({"y": datasets.Value("int64"), "x": datasets.Value("float64")})
    for one in rows, rows.cast(floats):
        with pytest.raises(TypeError, match=r"x: int64 and x: double.*load_dataset.features=") as e:
            rows_of(Loader(one))
        assert "dataset.map(lambda row: row, features=...)" in str(e.value)
    loaded = datasets.load_dataset("csv", data_files=files, features=floats, **options)
    for one in loaded, rows.map(lambda row: row, features=floats):
        assert rows_of(Loader(one)) == [1, 2, 1.5, 2]


def test_what_is_no_source_of_rows_is_refused_when_a_loader_is_made(tmp_path):
    rows = datasets.DatasetDict(train=datasets.Dataset(pa.table({"x": [1]})))
    for make in Loader, lambda source: Mix([(source, 1)]):
        with pytest.raises(TypeError, match=r"several sources .train.: .* dataset.\"train\"."):
            make(rows)
    pq.write_table(pa.table({"x": [1]}), tmp_path / "a.parquet")
    files = pq.ParquetDataset(tmp_path / "a.parquet")
    with pytest.raises(TypeError, match="got ParquetDataset: the path of its files"):
        Loader(files)


def test_a_list_of_a_loader_runs_a_query_once(tmp_path):
    """`list` asks for the length while the epoch reads; a source that has no value needs texts."""
    (tmp_path / "e.csv").write_text("id,s\n1,\n2,\n")
    rows = duckdb.connect().sql("select i as id, 'w' as s from range(500) t(i)")
    columns = {"id": None, "s": Categories(["w"], nulls=-1, unknown=-2)}
    loader = Loader(Mix([(rows, 1), (str(tmp_path / "e.csv"), 1)]), columns=columns, batch_size=8)
    assert len(list(loader)) == 63


def test_ways_out_of_what_is_nearly_a_source_work(tmp_path):
    folder = tmp_path / "a b"
    folder.mkdir()
    pq.write_table(TABLE, folder / "x.parquet")
    url = (folder / "x.parquet").as_uri()
    with pytest.raises(
        FileNotFoundError, match=r"a%20b.*: (.*a b.*) is there, and paths"
    ) as caught:
        iter(Loader(url))
    told = re.search(r": (\S+ \S+) is there", str(caught.value))[1]
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, TABLE.schema) as file:
        file.write_table(TABLE)
    reader, batches = pa.ipc.open_file(sink.getvalue()), deque(TABLE.to_batches())
    with pytest.raises(TypeError, match=r"got RecordBatchFileReader: x.read_all\(\) is a table"):
        Loader(reader)
    with pytest.raises(TypeError, match=r"got deque: list\(x\) is a list of tables"):
        Loader(batches)
    for source in told, reader.read_all(), list(batches):
        assert sum(len(batch["x"]) for batch in Loader(source, columns=["x"])) == ROWS
    words = TABLE.set_column(2, "word", TABLE["word"].dictionary_encode())
    by = ByLength(50, "word")
    with pytest.raises(TypeError, match=r'table."word"..cast."string"\) has its values'):
        next(iter(Loader(words, columns=["x", "word"], batch_size=by)))
    plain = words.set_column(2, "word", words["word"].cast("string"))
    columns = {"x": None, "word": Categories(["a"])}
    assert len(list(Loader(plain, columns=columns, batch_size=by))) == 5


def test_a_text_of_a_streamed_file_beside_booleans_is_told(tmp_path):
    (tmp_path / "a.json").write_text('{"x": true}\n')
    (tmp_path / "b.json").write_text('{"x": "7"}\n')
    files = [str(tmp_path / "a.json"), str(tmp_path / "b.json")]
    where = {"data_files": files, "split": "train", "streaming": True, "cache_dir": str(tmp_path)}
    told = r"streamed dataset differ in types, .* load_dataset\(features=\.\.\.\) gives"
    rows = datasets.load_dataset("json", **where)
    with pytest.raises(ValueError, match=told):
        list(Loader(rows, batch_size=2, columns={"x": AsArrow()}))


@pytest.mark.parametrize("form", ["parquet", "json"])
@pytest.mark.parametrize("shuffle", [None, 4])
def test_a_value_of_a_streamed_file_that_its_features_lack_is_told(form, shuffle, tmp_path):
    for name, value in ("a", 1), ("b", 2.5):
        if form == "parquet":
            pq.write_table(pa.table({"x": [value]}), tmp_path / f"{name}.parquet")
        else:
            (tmp_path / f"{name}.json").write_text(f'{{"x": {value}}}\n')
    files = [str(tmp_path / f"{name}.{form}") for name in "ab"]
    where = {"data_files": files, "split": "train", "streaming": True, "cache_dir": str(tmp_path)}
    told = r"streamed dataset differ in types, .* 2\.5.*; load_dataset\(features=\.\.\.\) gives"
    with pytest.raises(ValueError, match=told):
        list(Loader(datasets.load_dataset(form, **where), batch_size=2, shuffle=shuffle))
    where["features"] = datasets.Features({"x": datasets.Value("float64")})
    (batch,) = Loader(datasets.load_dataset(form, **where), batch_size=2)
    assert batch["x"].tolist() == [1, 2.5]


@pytest.mark.parametrize(
    "lines",
    [['{"x": 1, "s": null}', '{"x": 2, "s": "a"}'], ['{"x": 1}', '{"x": 2, "s": "a"}']],
    ids=["null", "none"],
)
@pytest.mark.parametrize("columns", [None, ["x"]])
def test_a_column_that_the_first_streamed_file_lacks_is_told(columns, lines, tmp_path):
    for name, line in zip("ab", lines, strict=True):
        (tmp_path / f"{name}.json").write_text(line + "\n")
    files = [str(tmp_path / f"{name}.json") for name in "ab"]
    where = {"data_files": files, "split": "train", "streaming": True, "cache_dir": str(tmp_path)}
    told = r"streamed dataset differ in types, (.|\n)*; load_dataset\(features=\.\.\.\) gives"
    for dataset in (
        datasets.load_dataset("json", **where),
        datasets.load_dataset("json", **where).map(lambda row: row),
    ):
        with pytest.raises(ValueError, match=told):
            list(Loader(dataset, batch_size=2, columns=columns))
    kinds = {"x": datasets.Value("int64"), "s": datasets.Value("string")}
    given = datasets.load_dataset("json", features=datasets.Features(kinds), **where)
    (batch,) = Loader(given, batch_size=2, columns={"x": None, "s": AsArrow()})
    assert pa.array(batch["s"]).to_pylist() == [None, "a"]


def test_rows_of_a_stream_that_lack_a_column_name_a_way():
    rows = datasets.IterableDataset.from_generator(lambda: iter([{"x": 1}, {"y": 4}]))
    with pytest.raises(KeyError) as raised:
        list(Loader(rows, batch_size=2, columns=["x"]))
    assert raised.value.__notes__ == [
        "a row has no such column: dataset.map(function) makes rows that all have it"
    ]
    one = datasets.Dataset.from_dict({"x": [1, 2], "z": [5, 6]}).to_iterable_dataset()
    two = datasets.Dataset.from_dict({"z": [7]}).to_iterable_dataset()
    dataset = datasets.concatenate_datasets([one, two])
    with pytest.raises(KeyError) as raised:
        list(Loader(dataset, columns=["x"], nulls=-1))
    (note,) = raised.value.__notes__
    (way,) = re.findall(r"(dataset\.map\(lambda .*\)) nulls", note)
    (batch,) = Loader(eval(way, {"dataset": dataset}), columns=["x"], nulls=-1)
    assert batch["x"].tolist() == [1, 2, -1]
    names = datasets.Dataset.from_dict({"x": ["Zoë"]}).to_iterable_dataset()
    with pytest.raises(UnicodeEncodeError):
        list(Loader(names.map(lambda row: {"n": len(row["x"].encode("ascii"))}), columns=["n"]))
    (batch,) = Loader(rows.map(lambda row: {"x": row.get("x", 0)}), batch_size=2, columns=["x"])
    assert batch["x"].tolist() == [1, 0]


class RestartingBatches:
    """An iterator that begins anew where it is asked for one, as tutorials have it."""

    def __iter__(self):
        self.number = 0
        return self

    def __next__(self):
        self.number += 1
        if self.number > 3:
            raise StopIteration
        return pa.record_batch({"x": [self.number]})


@pytest.mark.parametrize("options", [{}, {"batch_size": 1}, {"batch_size": 2, "shuffle": 2}])
@pytest.mark.parametrize("of", ["itself", "mix", "function"])
def test_an_iterator_that_begins_anew_has_each_batch_once(of, options):
    source = {
        "itself": RestartingBatches,
        "mix": lambda: Mix([(RestartingBatches(), 1)]),
        "function": lambda: lambda index, count: RestartingBatches(),
    }[of]()
    found = [x for batch in Loader(source, **options) for x in batch["x"].tolist()]
    assert sorted(found) == [1, 2, 3]


class ReadOnce:
    """A stream of another library, which has its rows once and does not say so."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        table, self.table = self.table, self.table.slice(0, 0)
        return table.__arrow_c_stream__(requested_schema)


def test_a_list_of_streams_that_are_read_once_says_so():
    table = pa.table({"x": [1, 2]})
    loader = Loader([table, ReadOnce(table)])
    with pytest.warns(UserWarning, match=r"part 1 has no rows: .* Loader\(iter\(parts\)\) opens"):
        assert rows_of(loader) == [1, 2]
    with warnings.catch_warnings(action="error"):  # it is said once
        assert rows_of(loader) == [1, 2]
    assert rows_of(Loader(iter([ReadOnce(table)]))) == [1, 2]


class Result:
    """The result of a query, whose stream goes on where the last one was left."""

    def __init__(self, table):
        self.reader = table.to_reader(1)

    def __arrow_c_stream__(self, requested_schema=None):
        return self.reader.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("of", ["itself", "list", "two", "mix", "iterator", "function", "encoder"])
@pytest.mark.parametrize("options", [{}, {"columns": {"x": Cast("float32")}}])
def test_a_stream_that_goes_on_where_it_was_left_has_all_its_rows(of, options):
    table = pa.table({"x": [1, 2, 3]})
    source = {
        "itself": Result(table),
        "list": [Result(table)],
        "two": [Result(table), table],
        "mix": Mix([([Result(table)], 1)]),
        "iterator": iter([Result(table)]),
        "function": lambda index, count: [Result(table)],
        "encoder": [Result(table)],
    }[of]
    loader = Loader(source, **options)
    if of == "encoder":
        loader.encoder()
    found = [x for batch in loader for x in batch["x"].tolist()]
    assert found == [1, 2, 3] * (1 + (of == "two"))


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("of", ["itself", "list", "mix", "fit"])
def test_an_encoder_takes_no_frame_of_a_query_of_polars(rows, of):
    frames = pl.DataFrame({"x": [1, 2, 3]}).lazy().collect_batches(chunk_size=rows)
    loader = Loader({"list": [frames], "mix": Mix([(frames, 1)])}.get(of, frames))
    if of == "fit":
        Encoder(columns=["x"]).fit(frames)
    else:
        loader.encoder()
    assert [x for batch in loader for x in batch["x"].tolist()] == [1, 2, 3]


@pytest.mark.parametrize("columns", [["^x$"], ["*", "x"], ["x", "^x$", "*"], None])
def test_names_are_no_patterns_of_polars(columns):
    frame = pl.DataFrame({"x": [1], "^x$": [2], "*": [3]})
    (batch,) = Loader(frame.lazy(), columns=columns)
    names = frame.columns if columns is None else columns
    assert {name: of.tolist() for name, of in batch.items()} == frame[names].to_dict(
        as_series=False
    )


@pytest.mark.parametrize("change", ["buffer", "probabilities", "shards"])
def test_a_state_of_a_stream_that_draws_in_another_way_is_of_other_data(change):
    rows = datasets.Dataset.from_dict({"x": list(range(40))})

    def loader(is_other):
        shards = 2 if is_other and change == "shards" else 4
        size = 10 if is_other and change == "buffer" else 5
        some = rows.to_iterable_dataset(num_shards=shards).shuffle(seed=3, buffer_size=size)
        if change == "probabilities":
            weights = [0.1, 0.9] if is_other else [0.5, 0.5]
            some = datasets.interleave_datasets([some, some], probabilities=weights, seed=1)
        return Loader(some, batch_size=5, framework="numpy")

    first = loader(False)
    next(iter(first))
    state = json.loads(json.dumps(first.state_dict()))
    same, other = loader(False), loader(True)
    same.load_state_dict(state)
    whole = [batch["x"].tolist() for batch in loader(False)]
    assert [batch["x"].tolist() for batch in same] == whole[1:]
    other.load_state_dict(state)
    with pytest.raises(
        ValueError, match="another buffer_size=, probabilities= or number of shards"
    ):
        list(other)


def test_chunks_of_json_that_pandas_reads_are_batches(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text("".join(f'{{"x": {at}}}\n' for at in range(5)))
    with pandas.read_json(path, lines=True, chunksize=2) as reader:
        assert rows_of(Loader(reader, batch_size=2)) == [0, 1, 2, 3, 4]


def test_forked_workers_read_frames_of_polars():
    """A fork has no threads of polars, by which it takes rows and collects."""
    program = """
import polars
from arrow_dlpack.torch import BatchDataset
from torch.utils.data import DataLoader
frame = polars.DataFrame({"x": range(60)}).filter(polars.col("x") >= 0)
for source in frame, [frame, frame]:
    options = {"num_workers": 2, "multiprocessing_context": "fork", "batch_size": None}
    loader = DataLoader(BatchDataset(source, batch_size=4), **options)
    print(sorted(x for batch in loader for x in batch["x"].tolist()) == sorted([*frame["x"]] * (
        2 if isinstance(source, list) else 1)))
"""
    made = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=True
    )
    assert made.stdout.split() == ["True", "True"]


def batches_of_list(loader):
    return [{name: column.tolist() for name, column in batch.items()} for batch in loader]


class Turning:
    """A query whose columns change places each time that it runs."""

    def __init__(self):
        self.names = ["a", "b"]

    def __arrow_c_stream__(self, requested=None):
        self.names = self.names[::-1]
        table = pa.table({"a": [1, 2], "b": [10, 20]}).select(self.names)
        return table.__arrow_c_stream__(requested)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"rank": 0, "world_size": 1},
        {"prefetch": 2},
        {"columns": {"a": Cast("float32"), "b": None}},
        {"filter": pc.field("a") < 5},
    ],
    ids=str,
)
def test_the_columns_of_a_list_have_their_names_whatever_place_they_have(options):
    """The types of a part are read by one call, and its rows by another."""
    beside = pa.table({"b": [10, 20], "a": [1, 2]})
    for parts in [Turning()], [beside, Turning()], [Turning(), beside]:
        loader = Loader(parts, batch_size=2, framework="numpy", **options)
        for batch in (*loader, *loader):
            assert sorted(batch["a"].tolist()) == [1, 2]
            assert (10 * batch["a"]).tolist() == batch["b"].tolist()


def test_a_part_of_a_list_that_has_other_columns_now_is_refused_by_name():
    connection = duckdb.connect()
    connection.sql("create table t as select 1 as a, 10 as b")
    loader = Loader([connection.sql("select * from t")])
    assert batches_of_list(loader) == [{"a": [1], "b": [10]}]
    connection.sql("create or replace table t as select 100 as b, 7 as a")
    assert batches_of_list(loader) == [{"a": [7], "b": [100]}]
    connection.sql("create or replace table t as select 5 as y, 6 as x")
    with pytest.raises(
        KeyError, match='"a" is in part 0 when its types were read and not in part 0'
    ):
        list(loader)
    connection.sql("create or replace table t as select 5.5::float as a, 6 as b")
    with pytest.raises(TypeError, match='"a" is int32 in part 0 when .* and float in part 0 now'):
        list(loader)
    frames = [pandas.DataFrame({"a": [at], "b": [10 * at]}) for at in (1, 2)]
    epoch = iter(Loader(frames))
    assert batches_of_list([next(epoch)]) == [{"a": [1], "b": [10]}]
    frames[1].drop(columns="a", inplace=True)
    frames[1]["z"] = 7
    with pytest.raises(KeyError, match='"a" is in part 1 when its types were read'):
        next(epoch)


@pytest.mark.parametrize("plain", [False, True])
def test_an_extension_type_of_a_part_is_no_other_type_of_its_storage(plain):
    bools = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0], pa.int8()))
    columns = [pa.array([5, 6], pa.int8()), bools]

    class Stream:
        def __arrow_c_stream__(self, requested=None):
            columns.reverse()
            return pa.table({"x": columns[plain]}).__arrow_c_stream__(requested)

    with pytest.raises(
        TypeError, match=r'"x" is .*int8.* in part 0 now|"x" is .*bool8.* part 0 now'
    ):
        list(Loader([Stream()]))
