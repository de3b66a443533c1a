"""Iceberg tables as sources of `Loader`, by pyiceberg and a catalog in SQLite."""

import itertools
import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from arrow_dlpack import AsArrow, Loader, Mix
from conftest import environment
from pyiceberg.catalog.sql import SqlCatalog

ROWS, PARTS = 240, 4
STRUCTS = [{"n": row, "word": "w"} if row % 3 else None for row in range(ROWS)]
TABLE = pa.table({"y": range(ROWS), "s": STRUCTS, "text": ["t" * 50] * ROWS})
NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def catalog(tmp_path_factory):
    folder = tmp_path_factory.mktemp("iceberg")
    where = {"uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}"}
    catalog = SqlCatalog("test", **where)
    catalog.create_namespace("db")
    return catalog


def table_of(catalog, rows=TABLE, parts=PARTS):
    """Each part is a file, which an append of its own has made."""
    table = catalog.create_table(f"db.t{next(NUMBERS)}", schema=rows.schema)
    each = len(rows) // parts
    for at in range(parts):
        table.append(rows.slice(at * each, each))
    return table


@pytest.fixture(scope="module")
def table(catalog):
    return table_of(catalog)


def y_of(batches):
    return [row for batch in batches for row in np.asarray(batch["y"]).tolist()]


def files_of(table):
    return [task.file.file_path.removeprefix("file://") for task in table.scan().plan_files()]


@pytest.mark.parametrize("shuffle", [None, 30])
def test_each_row_is_there_once_over_ranks_and_epochs(table, shuffle):
    options = {"columns": ["y"], "batch_size": 16, "shuffle": shuffle}
    options |= {} if shuffle is None else {"seed": 1}
    for source in table, table.scan():
        ranks = [
            Loader(source, rank=rank, world_size=2, uneven="drop", **options) for rank in (0, 1)
        ]
        assert [len(rank) for rank in ranks] == [7, 7]
        ranks = [Loader(source, rank=rank, world_size=3, **options) for rank in range(3)]
        epochs = [[y_of(rank) for rank in ranks] for _ in range(2)]
        for epoch in epochs:
            assert [len(rows) for rows in epoch] == [80] * 3
            assert sorted(itertools.chain(*epoch)) == list(range(ROWS))
        assert (epochs[0] == epochs[1]) == (shuffle is None)


@pytest.mark.parametrize("shuffle", [None, 30])
def test_after_any_batch_the_rest_is_the_same(table, shuffle):
    def loader():
        seed = None if shuffle is None else 3
        return Loader(table, columns=["y"], batch_size=50, shuffle=shuffle, seed=seed)

    whole = y_of(loader())
    stopped = loader()
    epoch = iter(stopped)
    for at in range(len(stopped)):
        resumed = pickle.loads(pickle.dumps(loader()))
        resumed.load_state_dict(json.loads(json.dumps(stopped.state_dict())))
        assert y_of(resumed) == whole[at * 50 :]
        next(epoch)


@pytest.mark.parametrize("where", [pc.field("y") > 9, pc.field("s", "n") > 9])
def test_a_state_knows_the_columns_of_a_filter_alone(table, where):
    options = {"columns": {"text": AsArrow()}, "filter": where, "batch_size": 50}
    for source in table, table.scan(), table.scan(selected_fields=("text", "y", "s")):
        loader = Loader(source, **options)
        next(iter(loader))
        state = json.loads(json.dumps(loader.state_dict()))
        for other in table, table.scan().to_arrow():
            resumed = Loader(other, **options)
            resumed.load_state_dict(state)
            assert len(list(resumed)) == len(list(loader)) - 1


def test_a_state_goes_on_over_a_table_of_as_many_rows(table):
    loader = Loader(table, columns=["y"], batch_size=50)
    next(iter(loader))
    state = json.loads(json.dumps(loader.state_dict()))
    whole = table.scan().to_arrow()
    resumed = Loader(whole, columns=["y"], batch_size=50)
    resumed.load_state_dict(state)
    assert len(y_of(resumed)) == ROWS - 50
    resumed = Loader(whole.slice(1), columns=["y"], batch_size=50)
    resumed.load_state_dict(state)
    with pytest.raises(ValueError, match=f"it had {ROWS} rows, and there are {ROWS - 1}"):
        iter(resumed)


def with_y(rows, at, value):
    values = rows["y"].to_pylist()
    values[at] = value
    return rows.set_column(rows.column_names.index("y"), "y", pa.array(values))


@pytest.mark.parametrize("at", [0, ROWS - 1])
def test_other_first_or_last_rows_are_other_data_whatever_holds_them(table, at):
    def loader(source):
        return Loader(source, columns=["y"], batch_size=50)

    whole = table.scan().to_arrow()
    for one, other, theirs in (
        (table, whole, with_y(whole, at, -1)),
        (whole, table, None),
        (with_y(whole, at, -1), None, table),
    ):
        first = loader(one)
        next(iter(first))
        state = json.loads(json.dumps(first.state_dict()))
        if other is not None:
            resumed = loader(other)
            resumed.load_state_dict(state)
            assert len(y_of(resumed)) == ROWS - 50
        if theirs is not None:
            resumed = loader(theirs)
            resumed.load_state_dict(state)
            with pytest.raises(ValueError, match="rows had other values"):
                iter(resumed)


def test_a_loader_stays_with_its_snapshot(catalog):
    table = table_of(catalog)
    loader = Loader(table, columns=["y"], batch_size=16)
    before = y_of(loader)
    table.append(TABLE.slice(0, 10))
    assert (len(loader), y_of(loader)) == (15, before)
    assert len(y_of(Loader(table, columns=["y"], batch_size=16))) == ROWS + 10


def test_rows_are_counted_from_manifests(catalog):
    """The files are away while they are counted."""
    table = table_of(catalog)
    files = files_of(table)
    for file in files:
        os.rename(file, file + ".away")
    assert len(Loader(table, batch_size=1)) == ROWS
    assert len(Loader(table.scan(limit=100), batch_size=1)) == 100
    for file in files:
        os.rename(file + ".away", file)
    some = table.scan(row_filter="y < 100")
    assert len(Loader(some, batch_size=1)) == len(y_of(Loader(some, columns=["y"]))) == 100
    assert len(y_of(Loader(table.scan(limit=100), columns=["y"]))) == 100
    loader = Loader(table, columns=["y"], filter=pc.field("y") < 100, batch_size=1)
    assert len(loader) == len(y_of(loader)) == 100
    table.delete("y >= 50")
    assert len(Loader(table, batch_size=1)) == 50


def test_only_the_columns_that_are_asked_for_are_read(catalog):
    """The pages of the others are overwritten, and not missed."""
    table = table_of(catalog, parts=1)
    (file,) = files_of(table)
    with open(file, "rb") as opened:
        data = bytearray(opened.read())
    for chunk in pq.ParquetFile(file).metadata.row_group(0).to_dict()["columns"]:
        if chunk["path_in_schema"] == "text":
            start = chunk["dictionary_page_offset"] or chunk["data_page_offset"]
            data[start : start + chunk["total_compressed_size"]] = (
                b"\xff" * chunk["total_compressed_size"]
            )
    with open(file, "wb") as opened:
        opened.write(data)
    expected = [row["n"] if row else -1 for row in STRUCTS]
    for source in table, table.scan(selected_fields=("y", "s.n", "text")):
        (batch,) = Loader(source, columns=["s.n", "y"], nulls=-1, batch_size=ROWS)
        assert np.asarray(batch["s.n"]).tolist() == expected
        assert np.asarray(batch["y"]).tolist() == list(range(ROWS))


def test_fields_that_were_selected_stay_selected(table):
    scan = table.scan(selected_fields=("y", "s.n"))
    (batch,) = Loader(scan, columns=["y"], batch_size=ROWS)
    assert set(batch) == {"y"}
    for source, missing in (scan, "text"), (scan, "s.word"), (table, "z"), (table, "y.n"):
        with pytest.raises(KeyError, match=f'no column "{missing}"'):
            iter(Loader(source, columns=[missing]))


def test_files_are_read_one_after_the_other(catalog):
    """pyiceberg's own reader reads all of them at once."""
    table = table_of(catalog)
    epoch = iter(Loader(table, columns=["y"], batch_size=10))
    first = y_of([next(epoch)])
    for file in files_of(table)[1:]:
        os.rename(file, file + ".away")
    assert len(first + y_of(itertools.islice(epoch, 5))) == ROWS // PARTS
    with pytest.raises(FileNotFoundError):
        next(epoch)


def test_columns_that_came_later_are_null_before(catalog):
    table = table_of(catalog, TABLE.select(["y"]), 1)
    with table.update_schema() as update:
        update.union_by_name(pa.schema([("y", pa.int64()), ("z", pa.float64())]))
    table.append(pa.table({"y": [1000], "z": [0.5]}))
    (batch,) = Loader(table, columns=["y", "z"], nulls=-1, batch_size=ROWS + 1)
    found = dict(zip(*(np.asarray(batch[name]).tolist() for name in ("y", "z")), strict=True))
    assert (found[0], found[1000]) == (-1, 0.5)


def test_a_table_without_rows_has_no_batches(catalog):
    table = catalog.create_table("db.empty", schema=TABLE.schema)
    loader = Loader(table, columns=["y"], batch_size=4)
    assert (len(loader), list(loader)) == (0, [])


def test_what_was_appended_is_in_one_order_in_each_process(table):
    """pyiceberg has these files in a set, which a process orders as it likes."""
    scan = table.incremental_append_scan()
    loader = Loader(scan, columns=["y"], batch_size=16)
    assert len(loader) == 15
    code = (
        "import pickle, sys, numpy\n"
        "batches = pickle.load(sys.stdin.buffer)\n"
        "print([int(y) for batch in batches for y in numpy.asarray(batch['y'])])"
    )
    rows = {
        subprocess.run(
            [sys.executable, "-c", code],
            input=pickle.dumps(loader),
            stdout=subprocess.PIPE,
            env=environment() | {"PYTHONHASHSEED": str(seed)},
            check=True,
        ).stdout
        for seed in range(3)
    }
    assert rows == {f"{y_of(loader)}\n".encode()}


def test_a_mix_takes_tables(table):
    mix = Mix([(table, 1), (TABLE, 1)])
    loader = pickle.loads(pickle.dumps(Loader(mix, columns=["y"], batch_size=16)))
    assert len(loader) == 30
    assert sorted(y_of(loader)) == sorted([*range(ROWS)] * 2)
