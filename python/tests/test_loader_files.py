"""Files: keys of folders, footers, filters and NaN, views; and states of other data."""

import copy
import datetime
import functools
import glob
import gzip
import itertools
import json
import os
import pickle
import random
import re
import subprocess
import sys
from pathlib import Path

import fsspec
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
import system
from arrow_dlpack import (
    AsArrow,
    ByLength,
    Cast,
    Categories,
    Loader,
    Mix,
    Pad,
    from_dlpack,
    iter_batches,
)
from arrow_dlpack._loader import datasets as _datasets
from arrow_dlpack._loader import files as _files
from arrow_dlpack._loader.paths import found_files


def rows(source, *names, **options):
    """The values of the columns, row by row."""
    batches = Loader(source, columns=list(names), framework="numpy", batch_size=3, **options)
    return [
        row
        for batch in batches
        for row in zip(*(batch[name].tolist() for name in names), strict=True)
    ]


@pytest.fixture
def folder(tmp_path):
    for fold in 1, 2:
        (tmp_path / "data" / f"fold={fold}").mkdir(parents=True)
        table = pa.table({"x": np.arange(4) + 10 * fold})
        pq.write_table(table, tmp_path / "data" / f"fold={fold}" / "p.parquet", row_group_size=2)
    return tmp_path / "data"


def write(folder, tables):
    for at, table in enumerate(tables):
        pq.write_table(table, folder / f"{at}.parquet")


OF_BOTH = [(10 * fold + at, fold) for fold in (1, 2) for at in range(4)]


@pytest.mark.parametrize("options", [{}, {"shuffle": 9, "seed": 1}, {"filter": pc.field("x") > 0}])
def test_keys_count_below_the_folder_and_from_a_wildcard_on(folder, options):
    for source in (str(folder), f"{folder}/", f"{folder}/*/p.parquet", f"{folder}/fold=*", folder):
        assert sorted(rows(source, "x", "fold", **options)) == OF_BOTH
    (matrix,) = Loader(f"{folder}/fold=*", format="matrix", batch_size=9)
    assert matrix.shape == (8, 2)


def test_keys_of_folders_above_do_not_count(folder):
    for source in (
        f"{folder}/fold=1/p.parquet",
        [f"{folder}/fold=1/p.parquet"],
        f"{folder}/fold=1",
        f"{folder}/fold=1/*.parquet",
    ):
        (matrix,) = Loader(source, format="matrix", batch_size=9)
        assert matrix.shape == (4, 1)
    both = [f"{folder}/fold={fold}/p.parquet" for fold in (2, 1)]
    assert rows(both, "x") == [(20 + at,) for at in range(4)] + [(10 + at,) for at in range(4)]
    # One file with a key and one without it.
    with pytest.raises(KeyError, match='column "fold" is in .* and not in'):
        list(Loader([f"{folder}/fold=*", both[0]], columns=["x", "fold"]))
    wish = {"x": None, "fold": Cast("int64", nulls=-1)}
    (batch,) = Loader([f"{folder}/fold=*", both[0]], columns=wish, framework="numpy", batch_size=99)
    assert batch["fold"].tolist() == [1] * 4 + [2] * 4 + [-1] * 4


OF_A_KEY = [
    {"columns": ["x", "fold"]},
    {"columns": {"fold": Categories.scan()}},
    {"label": "fold"},
    {"label": {"fold": Categories.scan()}},
    {"filter": pc.field("fold") == 1},
    {"columns": ["x"], "filter": pc.field("fold") == 1},
    {"columns": ["x"], "label": "fold", "shuffle": 4, "seed": 1},
    {"columns": ["x"], "batch_size": ByLength(2, "fold")},
]


@pytest.mark.parametrize("options", OF_A_KEY, ids=str)
def test_an_error_for_a_key_that_does_not_count_says_so(folder, options):
    for fold in 1, 2:
        table = pq.read_table(folder / f"fold={fold}" / "p.parquet", partitioning=None)
        for name in "ab":
            with pa.ipc.new_stream(folder / f"fold={fold}" / f"{name}.arrows", table.schema) as to:
                to.write_table(table)
    files, streams = (
        [f"{folder}/fold={fold}/{name}" for fold in (2, 1)] for name in ("p.parquet", "a.arrows")
    )
    fragments = list(
        ds.dataset(folder, partitioning="hive", exclude_invalid_files=True).get_fragments()
    )
    of_files = [files[0], files, f"{folder}/fold=1/*.parquet", fragments[0], fragments]
    of_streams = [streams[0], streams, f"{folder}/fold=2/*.arrows"]
    options = {"batch_size": 2, **options}
    for source in of_files + of_streams:
        for whole in (
            source,
            Mix([(source, 1)]),
            Mix([(source, 1), (files, 2)]),
            lambda *_, of=source: of,
        ):
            for make in Loader, iter_batches:
                with pytest.raises(
                    KeyError, match='"fold": .* it is the key of a folder.* pass the folder'
                ):
                    list(make(whole, **options))


@pytest.mark.parametrize("options", OF_A_KEY[:-1], ids=str)
def test_the_key_of_a_fragment_is_one_of_its_dataset(folder, options):
    dataset = ds.dataset(folder, partitioning="hive")
    fragments, options = list(dataset.get_fragments()), {"batch_size": 2, **options}
    for source in fragments, fragments[0], Mix([(fragments, 1)]):
        with pytest.raises(KeyError, match="in it, or the dataset, whose fragments these are"):
            list(Loader(source, **options))
    assert list(Loader(dataset, **options))


def test_a_key_that_one_source_of_a_mix_has_and_a_filter_names_says_so(folder):
    """Of several files the types of all sources are asked for before the epoch begins."""
    pq.write_table(pa.table({"x": [1]}), folder / "fold=1" / "q.parquet")
    source = Mix([(folder, 1), (folder / "fold=1", 1)])
    with pytest.raises(KeyError, match='"fold": .* it is the key of a folder.* pass the folder'):
        list(Loader(source, columns=["x"], filter=pc.field("fold") == 1))


@pytest.mark.parametrize("form", ["parquet", "csv", "arrow"])
@pytest.mark.parametrize("count", [1, 2])
def test_the_way_to_one_type_keeps_the_keys_of_folders(tmp_path, count, form):
    """A dataset of pyarrow's is without them, and has nulls in their place without a word."""
    for source, fold in ("numbers", "2"), ("texts", "two"):
        path = tmp_path / source / f"fold={fold}"
        path.mkdir(parents=True)
        for at in range(count):
            ds.write_dataset(
                pa.table({"x": [at]}),
                path,
                format=form,
                basename_template=f"{at}{{i}}.{form}",
                existing_data_behavior="overwrite_or_ignore",
            )
    paths = [tmp_path / "numbers", tmp_path / "texts"]
    options = {"columns": {"x": None, "fold": AsArrow()}, "batch_size": 9}
    told = "" if form == "parquet" else f', format="{form}"'
    way = rf'dataset\(paths, schema=pyarrow.schema\(...\){told}, partitioning="hive"\) reads all'
    with pytest.raises(TypeError, match=f'"fold" is int32 .* and string .*: .*{way}'):
        list(Loader(Mix([(path, 1) for path in paths]), **options))
    kinds = pa.schema({"x": pa.int64(), "fold": pa.string()})
    opened = [ds.dataset(one, schema=kinds, format=form, partitioning="hive") for one in paths]
    (batch,) = Loader(Mix([(one, 1) for one in opened]), **options)
    assert sorted(pa.array(batch["fold"]).to_pylist()) == ["2"] * count + ["two"] * count


def test_the_files_own_column_wins(tmp_path):
    (tmp_path / "label=cat").mkdir()
    own = pa.table({"label": ["dog", "cat"], "x": [1, 2]})
    pq.write_table(own, tmp_path / "label=cat" / "p.parquet")
    words = {"label": Categories(["cat", "dog"])}
    for options in {}, {"shuffle": 5, "seed": 3}, {"filter": pc.field("label") == "dog"}:
        found = [
            code
            for batch in Loader(str(tmp_path), columns=words, batch_size=9, **options)
            for code in np.asarray(batch["label"]).tolist()
        ]
        assert sorted(found) == ([1] if "filter" in options else [0, 1])
    # Of another folder's file without it, the key counts.
    (tmp_path / "label=dog").mkdir()
    pq.write_table(own.drop(["label"]), tmp_path / "label=dog" / "p.parquet")
    loader = Loader(str(tmp_path), columns=words, framework="numpy", batch_size=9)
    assert [batch["label"].tolist() for batch in loader] == [[1, 0, 1, 1]]


def test_of_folders_with_one_key_the_outer_one_counts(tmp_path):
    inner = tmp_path / "k=1" / "j=5" / "k=2"
    inner.mkdir(parents=True)
    pq.write_table(pa.table({"x": [0]}), inner / "a.parquet")
    (batch,) = Loader(tmp_path, framework="numpy", batch_size=2)
    table = ds.dataset(tmp_path, partitioning="hive").to_table()
    assert {name: values.tolist() for name, values in batch.items()} == table.to_pydict()
    assert list(batch) == table.column_names == ["x", "k", "j"]


def test_keys_are_integers_texts_or_null(tmp_path):
    for name in "k=1", "k=__HIVE_DEFAULT_PARTITION__", "k=-5":
        (tmp_path / "a" / name).mkdir(parents=True)
        pq.write_table(pa.table({"x": [1]}), tmp_path / "a" / name / "p.parquet")
    table = ds.dataset(tmp_path / "a", partitioning="hive").to_table()
    (batch,) = Loader(str(tmp_path / "a"), columns={"k": AsArrow()}, batch_size=9)
    assert pa.array(batch["k"]).to_pylist() == table["k"].to_pylist() == [-5, 1, None]
    for name in "k=1", "k=a%2Fb":
        (tmp_path / "b" / name).mkdir(parents=True)
        pq.write_table(pa.table({"x": [1]}), tmp_path / "b" / name / "p.parquet")
    (batch,) = Loader(str(tmp_path / "b"), columns={"k": AsArrow()}, batch_size=9)
    assert pa.array(batch["k"]).to_pylist() == ["1", "a/b"]


@pytest.mark.parametrize("name", ["w=%ff", "%ff=w"])
def test_a_key_that_is_no_utf8_is_refused(tmp_path, name):
    parquet(pa.table({"x": [1]}), tmp_path / "all" / "w=%c3%a9")
    (batch,) = Loader(tmp_path / "all", columns={"w": AsArrow()})
    assert pa.array(batch["w"]).to_pylist() == ["é"]
    parquet(pa.table({"x": [2]}), tmp_path / "all" / name)
    for source in tmp_path / "all", str(tmp_path / "all" / "*"), f"file://{tmp_path}/all":
        with pytest.raises(
            ValueError, match=f"all/{name}/.*a key of its folders is not UTF-8 once"
        ):
            list(Loader(source))
    # Below the folder that is passed there is no key.
    assert rows(str(tmp_path / "all" / name), "x") == [(2,)]
    with pytest.raises(KeyError, match='no column "w"'):
        rows(str(tmp_path / "all" / name), "w")


@pytest.mark.parametrize("name", [b"b\xff.parquet", b"b\xff/a.parquet"])
def test_a_file_whose_name_is_no_utf8_is_named(tmp_path, name):
    path = tmp_path / os.fsdecode(name)
    path.parent.mkdir(exist_ok=True)
    path.touch()
    for source in path, tmp_path, str(tmp_path / "**"), str(tmp_path / "b*"):
        with pytest.raises(ValueError, match=r"b\\udcff.* is not UTF-8.*: rename it") as caught:
            list(Loader(source))
        assert str(caught.value).isprintable()


@pytest.mark.parametrize("name", ["file:a", "s3:a", "zip:a", "k=1:a", "a:b"])
@pytest.mark.parametrize("form", ["parquet", "arrow", "arrows", "csv"])
def test_a_relative_path_with_a_colon_is_read(tmp_path, monkeypatch, name, form):
    monkeypatch.chdir(tmp_path)
    os.mkdir(f"{name}d")
    table = pa.table({"x": [1]})
    for path in f"{name}.{form}", f"{name}d/a.{form}":
        with pa.OSFile(str(tmp_path / path), "wb") as file:
            if form == "parquet":
                pq.write_table(table, file)
            elif form == "csv":
                pyarrow.csv.write_csv(table, file)
            else:
                new = {"arrow": pa.ipc.new_file, "arrows": pa.ipc.new_stream}[form]
                with new(file, table.schema) as writer:
                    writer.write_table(table)
    for source in f"{name}.{form}", f"{name[:2]}*.{form}", [f"{name}d/a.{form}"], f"{name}d":
        assert rows(source, "x") == [(1,)]
    if name == "k=1:a":
        (batch,) = Loader("k=*d", columns={"k": AsArrow()})
        assert pa.array(batch["k"]).to_pylist() == ["1:ad"]


def test_the_root_of_a_file_system_is_a_folder(monkeypatch):
    memory = fsspec.filesystem("memory")
    monkeypatch.setattr(type(memory), "store", {})
    monkeypatch.setattr(type(memory), "pseudo_dirs", [""])
    for source in "memory://", "memory:///":
        with pytest.raises(FileNotFoundError, match=f"no file is in {source}, but for hidden ones"):
            list(Loader(source))
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"x": [1]}), sink)
    memory.pipe("/k=2/_hidden/a.parquet", b"")
    memory.pipe("/k=2/a.parquet", sink.getvalue().to_pybytes())
    for source in "memory://", "memory:///", "memory://*", "memory://k=*":
        assert rows(source, "x", "k") == [(1, 2)]
    memory.pipe("/dataset_dict.json", b'{"splits": ["train"]}')
    with pytest.raises(TypeError, match="is a DatasetDict .* as memory://train$"):
        list(Loader("memory://"))


def test_a_dataset_keeps_its_partitioning(folder):
    dataset = ds.dataset(folder)
    with pytest.raises(KeyError):
        list(Loader(dataset, columns=["fold"]))
    dataset = ds.dataset(folder, partitioning="hive")
    assert sorted(rows(dataset, "x", "fold", shuffle=5, seed=1)) == OF_BOTH


NAN = [float("nan"), 1.0, 3.0, None, 12.0]
FILTERS = [
    pc.field("x").is_nan(),
    pc.field("x") != 3,
    ~(pc.field("x") < 10),
    pc.field("x").isin([float("nan")]),
    (pc.field("x") != 1) & (pc.field("y") > 0),
    pc.field("y") > 1,
]


NOON = datetime.datetime(1970, 1, 1, 12, tzinfo=datetime.UTC)
IN_OTHER_TYPES = [
    (pa.timestamp("ns", "Europe/Berlin"), [NOON]),
    (pa.timestamp("ns", "Europe/Berlin"), pa.array([NOON], pa.timestamp("ms", "UTC"))),
    (pa.timestamp("us", "UTC"), [43_200_000_000]),
    (pa.int64(), pa.array([43_200_000_000], pa.duration("us"))),
    (pa.bool_(), [1]),
]


@pytest.mark.parametrize(("kind", "values"), IN_OTHER_TYPES, ids=str)
def test_isin_takes_values_of_other_types_than_statistics(kind, values, tmp_path):
    """pyarrow fails where statistics and values have types that it does not compare."""
    unit = {"ns": 10**9, "us": 10**6}.get(getattr(kind, "unit", "us")) * 3600 * 12
    column = pa.array([unit, 0, None, unit], pa.int64()).cast(kind)
    table = pa.table({"t": column, "x": range(4)})
    table = table.append_column(
        "s", pa.array([{"t": one} for one in column.to_pylist()], pa.struct({"t": kind}))
    )
    pq.write_table(table, tmp_path / "p.parquet", row_group_size=2)
    for name in "t", ("s", "t"):
        where = pc.field(name).isin(values)
        for source in table, str(tmp_path / "p.parquet"), ds.dataset(tmp_path):
            assert rows(source, "x", filter=where) == [(0,), (3,)]
            both = where & (pc.field("x") > 0)
            assert rows(source, "x", filter=both, shuffle=3, seed=1) == [(3,)]
            assert rows(source, "x", filter=~where & pc.field(name).is_valid()) == [(1,)]
            assert len(Loader(source, batch_size=1, filter=where)) == 2


def test_isin_leaves_out_row_groups_by_their_statistics(tmp_path):
    path = tmp_path / "p.parquet"
    pq.write_table(pa.table({"x": range(4)}), path, row_group_size=2)
    known = path.read_bytes()
    at = pq.read_metadata(path).row_group(0).column(0).dictionary_page_offset
    path.write_bytes(known[:at] + bytes(16) + known[at + 16 :])
    with pytest.raises(OSError, match="p.parquet"):
        rows(str(path), "x")
    assert rows(str(path), "x", filter=pc.field("x").isin([3])) == [(3,)]


@pytest.mark.parametrize("where", FILTERS, ids=str)
def test_a_filter_keeps_of_files_the_rows_that_it_keeps_of_a_table(where, tmp_path):
    table = pa.table({"x": NAN * 4, "y": range(20)})
    pq.write_table(table, tmp_path / "p.parquet", row_group_size=2)
    expected = table.filter(where)["y"].to_pylist()
    dataset = ds.dataset(tmp_path)
    for source in table, str(tmp_path), dataset, ds.dataset([dataset, dataset]):
        for options in {}, {"shuffle": 5, "seed": 1}, {"rank": 0, "world_size": 1}:
            wanted = expected * 2 if isinstance(source, ds.UnionDataset) else expected
            found = rows(source, "y", filter=where, **options)
            assert sorted(y for (y,) in found) == sorted(wanted)
            loader = Loader(source, columns=["y"], filter=where, batch_size=1)
            assert len(loader) == len(wanted)


def test_row_groups_are_left_out_by_columns_that_are_exact(tmp_path):
    """The other row groups are overwritten."""
    file = tmp_path / "p.parquet"
    pq.write_table(pa.table({"x": [1.0] * 20, "y": range(20)}), file, row_group_size=10)
    data = bytearray(file.read_bytes())
    second = pq.ParquetFile(file).metadata.row_group(1).column(0)
    end = second.dictionary_page_offset or second.data_page_offset
    data[4:end] = bytes(end - 4)
    file.write_bytes(data)
    assert rows(str(file), "y", filter=pc.field("y") >= 10) == [(at,) for at in range(10, 20)]


def test_views_in_files_are_filtered_coded_and_resumed(tmp_path):
    words = [["cat", "dog", "emu"][at % 3] for at in range(60)]
    structs = [{"t": word} for word in words]
    whole = {"w": words, "x": list(range(60)), "s": structs}
    # pyarrow's writer cuts no views into row groups.
    blocks = [
        pa.table(polars.DataFrame({name: own[at : at + 7] for name, own in whole.items()}))
        for at in range(0, 60, 7)
    ]
    with pq.ParquetWriter(tmp_path / "p.parquet", blocks[0].schema) as writer:
        for block in blocks:
            writer.write_table(block)
    assert pq.read_schema(tmp_path / "p.parquet").field("w").type == pa.string_view()
    for source in str(tmp_path / "p.parquet"), ds.dataset(tmp_path):
        kept = rows(source, "x", filter=pc.field("w") == "dog")
        assert kept == [(at,) for at in range(1, 60, 3)]
        options = {
            "columns": {"w": Categories.scan(), "x": None, "s.t": AsArrow()},
            "batch_size": 5,
            "shuffle": 10,
            "seed": 1,
            "framework": "numpy",
        }
        whole = Loader(source, **options)
        epoch = iter(whole)
        for _ in range(4):
            next(epoch)
        state = json.loads(json.dumps(whole.state_dict()))
        rest = [plain(batch) for batch in epoch]
        resumed = Loader(source, **options)
        resumed.load_state_dict(state)
        assert [plain(batch) for batch in resumed] == rest
        assert all(
            words[x] == word
            for batch in rest
            for x, word in zip(batch["x"], batch["s.t"], strict=True)
        )


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary()], ids=str)
def test_views_in_files_of_a_dataset_without_views_are_filtered(kind, tmp_path):
    views = pa.table({"x": [2, 3], "w": pa.array(["b", "c"]).cast(pa.string_view())})
    schema = pa.schema([("x", pa.int64()), ("w", kind)])
    write(tmp_path, [pa.table({"x": [0, 1], "w": ["a", "b"]}), views])

    def dataset():
        return ds.dataset(tmp_path, schema=schema)

    word = pa.scalar("b").cast(kind)
    for where in pc.field("w") == word, pc.field("w").isin([word]):
        for options in {}, {"shuffle": 9, "seed": 1}, {"rank": 0, "world_size": 1}:
            assert sorted(rows(dataset(), "x", filter=where, **options)) == [(1,), (2,)]
        assert len(Loader(dataset(), batch_size=1, columns=["x"], filter=where)) == 2
        assert rows(Mix([(dataset(), 1)]), "x", filter=where) == [(1,), (2,)]
        assert rows(ds.dataset([dataset()]), "x", filter=where) == [(1,), (2,)]
        coded = Loader(dataset(), columns={"w": Categories.scan()}, filter=where)
        assert coded.categories == {"w": (word.as_py(),)}


def test_floats_that_a_datasets_schema_makes_texts_are_filtered_with_nan(tmp_path):
    write(tmp_path, [pa.table({"x": [0, 1], "f": [float("nan"), 5.0]})])
    source = ds.dataset(tmp_path, schema=pa.schema([("x", pa.int64()), ("f", pa.string())]))
    assert rows(source, "x", filter=pc.field("f") != "5") == [(0,)]


def plain(batch):
    values = {name: getattr(part, "tolist", lambda: None)() for name, part in batch.items()}
    return {
        name: pa.array(batch[name]).to_pylist() if v is None else v for name, v in values.items()
    }


def test_footers_are_read_once(folder, monkeypatch):
    read = []
    original = _datasets._read_footer
    monkeypatch.setattr(
        _datasets, "_read_footer", lambda one: (read.append(one.path), original(one))[1]
    )
    loader = Loader(
        str(folder), columns=["x"], batch_size=2, shuffle=4, seed=1, rank=0, world_size=2
    )
    # The first one, by which a Loader of local files is checked when it is made.
    assert len(read) == 1
    read.clear()
    for _ in range(3):
        epoch = iter(loader)
        next(epoch)
        state = loader.state_dict()
        list(epoch)
        loader.load_state_dict(state)
        list(loader)
        len(loader)
    assert sorted(read) == sorted(f"{folder}/fold={fold}/p.parquet" for fold in (1, 2))


def parquet(table, folder, name="p", **options):
    os.makedirs(folder, exist_ok=True)
    pq.write_table(table, f"{folder}/{name}.parquet", **options)
    return str(folder)


TABLE = pa.table(
    {
        "x": np.arange(100.0),
        "w": [f"w{at}" for at in range(100)],
        "l": [[at, at + 1] for at in range(100)],
    }
)
SAME = {
    "table": lambda folder: TABLE,
    "chunks": lambda folder: pa.concat_tables([TABLE.slice(0, 7), TABLE.slice(7)]),
    "list": lambda folder: [TABLE.slice(0, 7), TABLE.slice(7)],
    "pandas": lambda folder: TABLE.to_pandas(),
    "polars": lambda folder: polars.from_arrow(TABLE),
    "reader": lambda folder: TABLE.to_reader(),
    "files": lambda folder: parquet(TABLE, folder / "a", row_group_size=100),
    "moved": lambda folder: parquet(TABLE, folder / "b", "other", row_group_size=100),
    "dataset": lambda folder: ds.dataset(parquet(TABLE, folder / "c", row_group_size=100)),
    "ParquetFile": lambda folder: pq.ParquetFile(
        parquet(TABLE, folder / "d", row_group_size=100) + "/p.parquet"
    ),
    "feather": lambda folder: feather(TABLE, folder),
}
OPTIONS = {"columns": ["x"], "batch_size": 10, "framework": "numpy"}


def feather(table, folder):
    pa.feather.write_feather(table, str(folder / "f.arrow"))
    return str(folder / "f.arrow")


@pytest.mark.parametrize("of", SAME)
@pytest.mark.parametrize("then", SAME)
def test_the_same_data_goes_on(of, then, tmp_path):
    loader = Loader(SAME[of](tmp_path), **OPTIONS)
    epoch = iter(loader)
    for _ in range(3):
        next(epoch)
    state = json.loads(json.dumps(loader.state_dict()))
    resumed = Loader(SAME[then](tmp_path), **OPTIONS)
    resumed.load_state_dict(state)
    assert next(iter(resumed))["x"].tolist() == list(range(30, 40))


OTHER = {
    "shorter": lambda folder: TABLE.slice(0, 50),
    "longer": lambda folder: pa.concat_tables([TABLE, TABLE]),
    "another": lambda folder: TABLE.set_column(0, "x", [np.arange(100.0) + 7]),
    "reversed": lambda folder: TABLE.take(list(range(99, -1, -1))),
    "another type": lambda folder: TABLE.set_column(0, "x", [np.arange(100, dtype="int32")]),
}


@pytest.mark.parametrize("name", OTHER)
@pytest.mark.parametrize(
    "kind", ["table", "list", "pandas", "polars", "files", "dataset", "mix", "ParquetFile"]
)
def test_other_data_is_refused_and_the_state_kept(name, kind, tmp_path):
    make = {
        "table": lambda table, at: table,
        "list": lambda table, at: [table.slice(0, 9), table.slice(9)],
        "pandas": lambda table, at: table.to_pandas(),
        "polars": lambda table, at: polars.from_arrow(table),
        "files": lambda table, at: parquet(table, tmp_path / at, row_group_size=20),
        "dataset": lambda table, at: ds.dataset(parquet(table, tmp_path / at)),
        "mix": lambda table, at: Mix([(table, 1), (TABLE, 1)]),
        "ParquetFile": lambda table, at: pq.ParquetFile(
            parquet(table, tmp_path / at, row_group_size=20) + "/p.parquet"
        ),
    }[kind]
    loader = Loader(make(TABLE, "same"), **OPTIONS)
    epoch = iter(loader)
    for _ in range(3):
        next(epoch)
    state = loader.state_dict()
    resumed = Loader(make(OTHER[name](tmp_path), "other"), **OPTIONS)
    resumed.load_state_dict(state)
    for _ in range(2):
        with pytest.raises(ValueError, match="the state is of other data"):
            list(resumed)
        assert resumed.state_dict() == state
    resumed.set_epoch(0)
    epoch.close()


@pytest.mark.parametrize("of", ["files", "tables", "both"])
def test_a_union_of_other_datasets_is_other_data(of, tmp_path):
    tables = {name: pa.table({"x": range(10 * at, 10 * at + 10)}) for at, name in enumerate("abc")}

    def one(name, at):
        is_file = of == "files" or (of == "both" and at == 0)
        return ds.dataset(parquet(tables[name], tmp_path / name) if is_file else tables[name])

    def union(names):
        return ds.dataset([one(name, at) for at, name in enumerate(names)])

    options = {"batch_size": 4, "framework": "numpy"}

    def resumed(source, state):
        loader = Loader(source, **options)
        loader.load_state_dict(state)
        return [row for batch in loader for row in batch["x"].tolist()]

    loader = Loader(union("ab"), **options)
    epoch = iter(loader)
    next(epoch)
    state = loader.state_dict()
    epoch.close()
    assert resumed(union("ab"), state) == list(range(4, 20))
    for other in "a", "abc", "ac", "ba":
        with pytest.raises(ValueError, match="the state is of other data"):
            resumed(union(other), state)
    with pytest.raises(ValueError, match="it had 20 rows, and there are 10"):
        resumed(one("c", 0), state)
    if of == "files":
        assert resumed([str(tmp_path / name) for name in "ab"], state) == list(range(4, 20))
        with pytest.raises(ValueError, match="other footers"):
            resumed([str(tmp_path / name) for name in "bc"], state)


def test_the_order_of_columns_counts_in_a_matrix_alone(tmp_path):
    table = pa.table({"a": range(4), "b": range(10, 14)})
    folder = parquet(table, tmp_path / "data")
    for source, turned in (folder, folder), (table, table.select(["b", "a"])), (folder, table):
        options = {"batch_size": 2, "framework": "numpy"}
        loader = Loader(source, columns=["a", "b"], **options)
        epoch = iter(loader)
        next(epoch)
        state = json.loads(json.dumps(loader.state_dict()))
        rest = [batch["b"].tolist() for batch in epoch]
        resumed = Loader(turned, columns=["b", "a"], **options)
        resumed.load_state_dict(state)
        assert [batch["b"].tolist() for batch in resumed] == rest
        for columns in ["b", "a"], None:
            matrix = Loader(table.select(["b", "a"]), columns=columns, format="matrix", **options)
            matrix.load_state_dict(state)
            with pytest.raises(ValueError, match="other data: columns were in another order"):
                list(matrix)
        more = Loader(turned, columns=["a"], **options)
        more.load_state_dict(state)
        with pytest.raises(ValueError, match='column "b" was int64, and is not read now'):
            list(more)


def test_a_state_of_a_list_is_of_its_rows_as_they_are():
    """A value that the wish cannot take is no matter until a batch has it."""
    parts = [
        pa.table({"x": [1.0, 1.5, 2.0], "k": [1, 0, 1]}),
        pa.table({"x": [1, 2, 3], "k": [1, 1, 1]}),
    ]
    options = {
        "columns": {"x": Cast("int64")}, "filter": pc.field("k") == 1, "batch_size": 1,
        "framework": "numpy",
    }  # fmt: skip
    loader = Loader(parts, **options)
    epoch = iter(loader)
    next(epoch)
    state = json.loads(json.dumps(loader.state_dict()))
    assert [batch["x"].item() for batch in epoch] == [2, 1, 2, 3]
    resumed = Loader(parts, **options)
    resumed.load_state_dict(state)
    assert [batch["x"].item() for batch in resumed] == [2, 1, 2, 3]
    for other in [parts[0], parts[1].set_column(0, "x", pa.array([1, 2, 4]))], parts[::-1]:
        resumed = Loader(other, **options)
        resumed.load_state_dict(state)
        with pytest.raises(ValueError, match="the state is of other data"):
            list(resumed)


def test_a_dataset_of_row_groups_has_their_rows(tmp_path):
    whole = ds.dataset(parquet(pa.table({"x": range(12)}), tmp_path / "a", row_group_size=3))
    (file,) = whole.get_fragments()
    for some in file.subset(row_group_ids=[2, 3]), file.subset(filter=pc.field("x") > 5):
        part = ds.FileSystemDataset([some], whole.schema, whole.format, whole.filesystem)
        for source, rows in (part, 6), (ds.dataset([part, part]), 12), (Mix([(part, 1)]), 6):
            loader = Loader(source, batch_size=1)
            assert len(loader) == rows
            assert len(list(loader)) == rows


def varint(number):
    """As Parquet's footers have it."""
    zigzag = (number << 1 ^ number >> 63) & 2**64 - 1
    groups = [zigzag >> 7 * at & 0x7F for at in range(max(-(-zigzag.bit_length() // 7), 1))]
    return bytes([*(group | 0x80 for group in groups[:-1]), groups[-1]])


def claiming(folder, number, at):
    """A file of 12,347 rows, of which the file (0) or its row group (2) claims another number."""
    table = pa.table({"x": pa.array(range(12_347), pa.int32())})
    options = {"compression": "none", "use_dictionary": False, "write_statistics": False}
    path = parquet(table, folder, store_schema=False, **options) + "/p.parquet"
    with open(path, "rb") as file:
        data = file.read()
    size = int.from_bytes(data[-8:-4], "little")
    start, footer = data[: -8 - size], data[-8 - size : -8]
    pieces = footer.split(b"\x16" + varint(12_347))
    pieces[at : at + 2] = [pieces[at] + b"\x16" + varint(number) + pieces[at + 1]]
    footer = (b"\x16" + varint(12_347)).join(pieces)
    with open(path, "wb") as file:
        file.write(start + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    return str(folder)


@pytest.mark.parametrize("options", [
    {}, {"shuffle": 1000, "seed": 1}, {"rank": 0, "world_size": 2, "uneven": "repeat"},
])  # fmt: skip
def test_row_groups_have_their_rows_whatever_the_file_claims(options, tmp_path):
    good = parquet(pa.table({"x": pa.array(range(12_347), pa.int32())}), tmp_path / "good")
    options = {"batch_size": 100, "framework": "numpy", **options}

    def rows_of(*sources):
        loader = Loader(Mix([(one, 1) for one in sources]), **options)
        return sum(len(batch["x"]) for batch in loader)

    whole = rows_of(good, good)
    assert rows_of(claiming(tmp_path / "file", 2**40, 0), good) == whole
    if options.keys() & {"rank", "shuffle"}:
        less = claiming(tmp_path / "none", -1, 2)
        for read in (lambda: rows_of(less, good)), (lambda: list(Loader(less, **options))):
            with pytest.raises(ValueError, match="p.parquet: row group 0 claims -1 rows"):
                read()
        more = claiming(tmp_path / "more", 20_000, 2)
        if "shuffle" in options:
            with pytest.raises(ValueError, match="source 0 of the Mix .*has .* rows fewer than"):
                rows_of(more, good)


def test_a_state_of_a_function_is_of_its_part(tmp_path):
    def source(index, count):
        return TABLE.slice(index * 50, 50)

    loader = Loader(source, **OPTIONS)
    epoch = iter(loader)
    next(epoch)
    state = loader.state_dict()
    epoch.close()
    other = Loader(lambda index, count: TABLE.slice(0, 40), **OPTIONS)
    other.load_state_dict(state)
    with pytest.raises(ValueError, match="it had 50 rows, and there are 40"):
        list(other)


def test_a_state_of_another_part_stays(tmp_path):
    loader = Loader(TABLE, **OPTIONS)
    epoch = iter(loader)
    next(epoch)
    state = loader.state_dict()
    epoch.close()
    resumed = Loader(TABLE, **OPTIONS, rank=1, world_size=2)
    resumed.load_state_dict(state)
    for _ in range(2):
        with pytest.raises(ValueError, match="each rank and worker has its own"):
            iter(resumed)
    assert resumed.state_dict() == state
    assert pandas.Series(state["source"]["columns"]).tolist() == ["double"]


def test_files_without_statistics_have_a_digest_too(tmp_path):
    def write(name, start, kind):
        table = pa.table({"x": range(start, start + 10)})
        path = str(tmp_path / f"{name}.{kind}")
        if kind == "csv":
            pa.csv.write_csv(table, path)
        else:
            pa.feather.write_feather(table, path, compression="uncompressed")
        return path

    for kind in "arrow", "csv":
        paths = [write(name, start, kind) for name, start in [("a", 10), ("b", 10), ("c", 50)]]
        form = "ipc" if kind == "arrow" else kind
        for make in str, lambda path, form=form: ds.dataset(path, format=form):
            loader = Loader(make(paths[0]), batch_size=2)
            epoch = iter(loader)
            next(epoch)
            state = loader.state_dict()
            epoch.close()
            moved, other = (Loader(make(path), batch_size=2) for path in paths[1:])
            moved.load_state_dict(state)
            assert len(list(moved)) == 4
            other.load_state_dict(state)
            with pytest.raises(ValueError, match="the state is of other data: the files"):
                list(other)


def test_a_pattern_matches_no_hidden_files_and_each_file_once(tmp_path):
    for folder in "a", "a/b", "_temporary", ".git":
        parquet(pa.table({"x": [len(folder)]}), tmp_path / folder)
    for pattern in "*/*.parquet", "**/*.parquet", "**", "*":
        found = rows(str(tmp_path / pattern), "x")
        assert sorted(found) == ([(1,)] if pattern == "*/*.parquet" else [(1,), (3,)])
    assert rows(str(tmp_path / "_temporary" / "*.parquet"), "x") == [(10,)]
    assert rows(str(tmp_path / "_tempo*" / "*.parquet"), "x") == [(10,)]


def test_a_resume_that_fails_while_reading_is_tried_again(tmp_path):
    folder = parquet(TABLE, tmp_path / "data", row_group_size=10)
    fails = []

    def fail_once(batch):
        if fails:
            raise OSError(fails.pop())
        return batch["x"].tolist()

    for options in {}, {"shuffle": 20, "seed": 1}:
        loader = Loader(folder, **OPTIONS, transform=fail_once, **options)
        epoch = iter(loader)
        for _ in range(3):
            next(epoch)
        state = loader.state_dict()
        rest = list(epoch)
        resumed = Loader(folder, **OPTIONS, transform=fail_once, **options)
        resumed.load_state_dict(state)
        fails.append("gone for a moment")
        with pytest.raises(OSError, match="gone"):
            list(resumed)
        assert resumed.state_dict() == state
        assert list(resumed) == rest
        assert resumed.state_dict()["epoch"] == state["epoch"] + 1


def test_keys_and_columns_of_a_filter_tell_data_apart(tmp_path):
    def state_of(source, **options):
        loader = Loader(source, batch_size=1, **options)
        epoch = iter(loader)
        next(epoch)
        state = loader.state_dict()
        epoch.close()
        return state

    for keys in [(1, 2), (8, 9)]:
        for key in keys:
            parquet(pa.table({"x": [1, 2]}), tmp_path / str(keys[0]) / f"k={key}")
    state = state_of(str(tmp_path / "1"), columns=["x", "k"])
    other = Loader(str(tmp_path / "8"), batch_size=1, columns=["x", "k"])
    other.load_state_dict(state)
    with pytest.raises(ValueError, match="other keys"):
        list(other)
    options = {"columns": ["x"], "filter": pc.field("z") == 1}
    tables = [pa.table({"x": [1, 2, 3], "z": z}) for z in ([1, 1, 1], [2, 1, 1])]
    for make in (lambda table: table), (lambda table: [table.slice(0, 1), table.slice(1)]):
        other = Loader(make(tables[1]), batch_size=1, **options)
        other.load_state_dict(state_of(make(tables[0]), **options))
        with pytest.raises(ValueError, match="other values"):
            list(other)


def test_a_file_that_was_replaced_is_read_anew(tmp_path):
    folder = parquet(pa.table({"x": [1, 2, 3]}), tmp_path / "data")
    for options in {}, {"shuffle": 5, "seed": 1}:
        loader = Loader(folder, columns=["x"], framework="numpy", batch_size=9, **options)
        for values in [1, 2, 3], [0.5, 1.5, 2.5], [7]:
            parquet(pa.table({"x": values}), folder)
            (batch,) = loader
            assert sorted(batch["x"].tolist()) == values
        parquet(pa.table({"x": [1, 2, 3]}), folder)


@pytest.mark.parametrize(
    ("of", "is_renamed"),
    [
        ("files", True),
        ("files", False),
        pytest.param("dataset", True, marks=system.replaces_open_files),
        ("dataset", False),
        pytest.param("mix", True, marks=system.replaces_open_files),
        ("mix", False),
    ],
)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"shuffle": 40, "seed": 1},
        {"rank": 0, "world_size": 2},
        {"filter": pc.field("x") >= 0},
        {"filter": pc.field("f") >= 0},
        {"columns": {"x": Categories.scan()}},
    ],
)
def test_a_file_that_is_replaced_while_an_epoch_reads_it_is_told(of, options, is_renamed, tmp_path):
    def put(values):
        table = pa.table({"x": values, "f": np.arange(500.0)})
        for at in range(40):
            path = tmp_path / f"{at:02}.parquet"
            pq.write_table(table, tmp_path / "_new" if is_renamed else path)
            if is_renamed:
                (tmp_path / "_new").replace(path)

    put(np.arange(500))
    kinds = {"files": str, "dataset": ds.dataset, "mix": lambda path: Mix({str(path): 1})}
    source = kinds[of](tmp_path)
    options = {"columns": ["x"], **options}
    loader = Loader(source, batch_size=10, framework="numpy", **options)
    epoch = iter(loader)
    found = [next(epoch)["x"]]
    put(np.arange(500) + 0.5)
    try:
        found.extend(batch["x"] for batch in epoch)
    except OSError as error:
        assert ".parquet was replaced or written to while an epoch read it" in str(error)  # noqa: PT017
    else:
        assert "filter" in options, "which read all of the old files ahead"
    assert np.concatenate(found).max() < 500
    if of == "dataset":
        with pytest.raises(OSError, match=r"\.parquet was replaced"):
            next(iter(loader))
    elif "columns" not in options:
        assert next(iter(loader))["x"].dtype == "float64"


IN_MEMORY = ds.dataset(pa.table({"x": [1], "y": [9]}))


def below(*folder):
    """The file system of a folder of this machine, or of another file system."""
    system, path = folder if len(folder) == 2 else (pa.fs.LocalFileSystem(), str(folder[0]))
    return pa.fs.SubTreeFileSystem(path, system)


@pytest.mark.parametrize(
    "of",
    [
        ds.dataset,
        lambda path: ds.dataset(path).filter(pc.field("y") == 9),
        lambda path: ds.dataset([ds.dataset(path), IN_MEMORY]),
        lambda path: Mix([(ds.dataset(path), 1)]),
        lambda path: list(ds.dataset(path).get_fragments()),
        lambda path: ds.dataset(path.name, filesystem=below(path.parent)),
        lambda path: list(
            ds.dataset(
                path.name, filesystem=below(below(path.parents[1]), path.parent.name)
            ).get_fragments()
        ),
    ],
    ids=["dataset", "filtered", "union", "mix", "fragments", "below", "fragments below"],
)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"shuffle": 4, "seed": 1},
        {"rank": 0, "world_size": 2, "uneven": "allow"},
        {"filter": pc.field("x") < 5},
        {"filter": pc.field("x") < 0},
        {"columns": {"x": Categories.scan()}},
    ],
)
def test_a_dataset_tells_of_a_file_that_was_replaced_between_epochs(of, options, tmp_path):
    path = tmp_path / "s.parquet"

    def write(**columns):
        how = {"use_dictionary": False, "compression": None, "row_group_size": 2}
        pq.write_table(pa.table(columns), path, **how)

    write(x=[0, 1, 70, 71], y=[9] * 4)
    loader = Loader(of(path), batch_size=4, **{"columns": ["x"], **options})
    list(loader)
    list(loader)
    write(y=[9] * 4, x=[-1, -2, 0, 1])
    for read in list, len:
        with pytest.raises(
            OSError, match=r"s\.parquet was replaced .*: .* (a new one|a new dataset)"
        ):
            read(loader)


@pytest.mark.parametrize("form", ["ipc", "csv"])
def test_a_dataset_reads_files_without_kept_footers_anew(form, tmp_path):
    for values in [0, 1], [2, 3]:
        replaced = "overwrite_or_ignore"
        table = pa.table({"x": values})
        ds.write_dataset(table, tmp_path, format=form, existing_data_behavior=replaced)
        if values == [0, 1]:
            loader = Loader(ds.dataset(tmp_path, format=form), framework="numpy", batch_size=2)
        assert [batch["x"].tolist() for batch in loader] == [values]


def test_a_file_of_a_mix_that_was_replaced_is_read_anew(tmp_path):
    folder = parquet(pa.table({"x": [1, 2, 3]}), tmp_path / "data")
    loader = Loader(Mix([(folder, 1)]), columns=["x"], framework="numpy", batch_size=9)
    for values in [1, 2, 3], [0.5, 1.5, 2.5], [7]:
        parquet(pa.table({"x": values}), folder)
        (batch,) = loader
        assert batch["x"].tolist() == values


def test_a_pipe_is_no_file(tmp_path):
    """Opening it would wait for ever."""
    os.mkfifo(path := str(tmp_path / "a.parquet"))
    for source in path, [path], str(tmp_path / "*.parquet"), "/dev/null":
        with pytest.raises(ValueError, match="is a pipe or a device, and no file: pass what reads"):
            list(Loader(source))


def test_links_to_folders_above_are_followed_once(tmp_path, monkeypatch):
    folder = parquet(pa.table({"x": [1]}), tmp_path / "data" / "inner")
    os.symlink(tmp_path / "data", f"{folder}/loop")
    for source in "data", "data/**", "data/**/*.parquet", "**/*.parquet":
        assert rows(str(tmp_path / source), "x") == [(1,)]
    os.symlink(tmp_path / "data", tmp_path / "data" / "up")
    monkeypatch.chdir(tmp_path / "data")
    for source in ".", "**", "**/*.parquet", "inner/**":
        assert rows(source, "x") == [(1,)]


def test_a_folder_is_read_where_it_is_and_not_by_links_within(tmp_path):
    folder = tmp_path / "data"
    for fold in 1, 2:
        parquet(pa.table({"x": [fold]}), folder / "all" / f"fold={fold}" / "deep")
    parquet(pa.table({"x": [3]}), folder / "_hidden")
    parquet(pa.table({"x": [4]}), tmp_path / "outside")
    for name, place in {
        "a": folder / "all" / "fold=1",
        "latest": folder / "all" / "fold=2",
        "deep": folder / "all" / "fold=2" / "deep",
        "shown": folder / "_hidden",
        "b": tmp_path / "outside",
        "c": tmp_path / "outside",
    }.items():
        os.symlink(place, folder / name)
    assert sorted(rows(str(folder), "x")) == [(1,), (2,), (3,), (4,)]
    assert sorted(rows(str(folder / "all"), "x", "fold")) == [(1, 1), (2, 2)]
    # A link that is passed is a folder like any other.
    assert rows(str(folder / "latest"), "x") == [(2,)]


def test_a_link_that_may_not_be_followed_is_left_out(tmp_path, monkeypatch):
    """Root may follow most links. This one leads to itself, and `os.stat` calls it closed."""
    parquet(pa.table({"x": [1]}), tmp_path / "a")
    closed = str(tmp_path / "closed")
    os.symlink(closed, closed)
    stat = os.stat

    def told(path, **options):
        if path in (closed, f"{closed}.parquet"):
            raise PermissionError(13, "Permission denied", path)
        return stat(path, **options)

    monkeypatch.setattr(os, "stat", told)
    for source in tmp_path, f"{tmp_path}/**", f"{tmp_path}/**/*.parquet", f"{tmp_path}/*":
        assert rows(str(source), "x") == [(1,)]
    # A file of data is not left out.
    os.rename(closed, f"{closed}.parquet")
    for source in tmp_path, f"{tmp_path}/**", f"{tmp_path}/*":
        with pytest.raises(OSError, match=r"closed\.parquet"):
            rows(str(source), "x")


def test_a_pattern_has_what_glob_has_whatever_lies_beside_it(tmp_path, monkeypatch):
    parquet(pa.table({"x": [1]}), tmp_path / "train" / "day1")
    parquet(pa.table({"x": [2]}), tmp_path / "train" / "day2")
    pq.write_table(pa.table({"x": [3]}), tmp_path / "summary.parquet")
    os.symlink(tmp_path / "train" / "day2", tmp_path / "latest")
    monkeypatch.chdir(tmp_path)
    for pattern in "tr*/**/*.parquet", "t*/day*/**", "tr*/**/./*.parquet", "train/**/":
        for source in pattern, str(tmp_path / pattern):
            assert sorted(rows(source, "x")) == [(1,), (2,)]
    for pattern in "*/day2/**", "latest/**/*.parquet", "train/**/day2":
        assert rows(pattern, "x") == [(2,)]
    assert sorted(rows("*/**/day*/*.parquet", "x")) == [(1,), (2,)]
    assert sorted(rows("**/*.parquet", "x")) == [(1,), (2,), (2,), (3,)]
    with pytest.raises(FileNotFoundError):
        rows("**/*.parquet/", "x")


def test_a_pattern_has_each_file_of_glob_once_whatever_slashes_and_dots_are_in_it(
    tmp_path, monkeypatch
):
    draw = random.Random(0)
    monkeypatch.chdir(tmp_path)
    for name in "x.parquet", "a/x.parquet", "a/b/x.parquet", "a/b/k=1/q", "b/b/a/y.parquet":
        (tmp_path / "a" / name).parent.mkdir(parents=True, exist_ok=True)
        for folder in "", "a":
            (tmp_path / folder / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / folder / name).touch()
    told = ["**", "*", "a", "?", "[ab]", "k=*", "*.parquet", "x.parquet", "q", ".", ""]
    for _ in range(1000):
        parts = "/".join(draw.choices(told, k=draw.randrange(1, 6))).lstrip("/")
        pattern = draw.choice(["", "./", ".//", f"{tmp_path}//"]) + parts
        if not glob.has_magic(pattern):
            continue
        wanted = set()
        for match in glob.glob(pattern, recursive=True):
            below = Path(match).rglob("*") if os.path.isdir(match) else [Path(match)]
            wanted |= {os.path.realpath(one) for one in below if os.path.isfile(one)}
            wanted -= set() if os.path.exists(match) else {os.path.realpath(match)}
        try:
            found = [path for path, _ in found_files([pattern], [pattern], None)]
        except FileNotFoundError:
            found = []
        assert sorted(map(os.path.realpath, found)) == sorted(wanted), pattern
    (tmp_path / "k=5").mkdir()
    parquet(pa.table({"x": [1]}), tmp_path / "k=5" / "k=6" / "c")
    assert rows("k=5//k=6/.//**/*.parquet", "x") == [(1,)]
    with pytest.raises(KeyError, match="the key of a folder, which counts only"):
        rows("k=5//k=6/.//**/*.parquet", "k")


@pytest.mark.parametrize(
    ("form", "own"),
    [
        ("arrow", None),
        ("arrow", pc.field("s") != "c"),
        ("arrow", pc.field("x") < 90),
        ("parquet", None),
        ("parquet", pc.field("x") < 90),
    ],
)
def test_a_dataset_with_views_is_filtered_wherever_rows_are_counted(form, own, tmp_path):
    texts = pa.array(["a", "b", "a", "c"] * 3)
    write_one = {"arrow": pyarrow.feather.write_feather, "parquet": pq.write_table}[form]
    for at, kind in enumerate([pa.string_view(), pa.string_view(), pa.string()]):
        table = pa.table({"x": range(12 * at, 12 * at + 12), "s": texts.cast(kind)})
        write_one(table, f"{tmp_path}/{at}.{form}")
    dataset = ds.dataset(tmp_path, format=form)
    dataset = dataset if own is None else dataset.filter(own)
    kept = [at for at in range(36) if at % 2 == 0]
    options = {"columns": ["x"], "batch_size": 1, "filter": pc.field("s") == "a"}
    options |= {"framework": "numpy"}

    def seen(**more):
        batches = Loader(dataset, **options, **more)
        return [row for batch in batches for row in batch["x"].tolist()]

    loader = Loader(dataset, **options)
    assert seen() == kept
    assert len(loader) == len(kept)
    assert sorted(seen(shuffle=5, seed=1)) == kept
    for uneven in "drop", "allow":
        ranks = [seen(rank=rank, world_size=2, uneven=uneven) for rank in (0, 1)]
        assert sorted(ranks[0] + ranks[1]) == kept
    epoch = iter(loader)
    next(epoch)
    resumed = Loader(dataset, **options)
    resumed.load_state_dict(loader.state_dict())
    assert [batch["x"].item() for batch in resumed] == kept[1:]


@pytest.mark.parametrize("shuffle", [{}, {"shuffle": 9, "seed": 1}])
def test_a_dataset_of_another_filter_is_other_data(shuffle, tmp_path):
    dataset, at = ds.dataset(parquet(TABLE, tmp_path / "same")), pc.field("x")
    long = [number * 1.0 for number in range(60)]
    pairs = [(at < 60, at >= 40), (at.isin(long), at.isin([*long[:30], 70.0, *long[31:]]))]
    for mine, other in pairs:
        loader = Loader(dataset.filter(mine), **OPTIONS, **shuffle)
        epoch = iter(loader)
        next(epoch)
        state = json.loads(json.dumps(loader.state_dict()))
        rest = [batch["x"].tolist() for batch in epoch]
        resumed = Loader(ds.dataset(str(tmp_path / "same")).filter(mine), **OPTIONS, **shuffle)
        resumed.load_state_dict(state)
        assert [batch["x"].tolist() for batch in resumed] == rest
        resumed = Loader(dataset.filter(other), **OPTIONS, **shuffle)
        resumed.load_state_dict(state)
        with pytest.raises(ValueError, match="other data: the dataset had another filter"):
            list(resumed)
        others = TABLE.set_column(0, "x", [np.arange(99.0, -1, -1)])
        elsewhere = ds.dataset(parquet(others, tmp_path / "other")).filter(mine)
        resumed = Loader(elsewhere, **OPTIONS, **shuffle)
        resumed.load_state_dict(state)
        with pytest.raises(ValueError, match="other data: the files had other footers"):
            list(resumed)


def test_the_state_of_a_filter_by_a_long_list_is_that_of_no_other():
    long = [number * 1.0 for number in range(60)]
    filters = [pc.field("x").isin([*long[:30], number, *long[31:]]) for number in (30.0, 70.0)]
    assert str(filters[0]) == str(filters[1])
    loader, other = (Loader(TABLE, **OPTIONS, filter=where) for where in filters)
    epoch = iter(loader)
    next(epoch)
    Loader(TABLE, **OPTIONS, filter=filters[0]).load_state_dict(loader.state_dict())
    with pytest.raises(ValueError, match="the state is of a loader with filter="):
        other.load_state_dict(loader.state_dict())


def test_the_state_of_a_filter_by_a_set_names_what_is_one_in_any_process():
    """The order of texts in a set is that of their hashes, which each process salts."""
    words = ["a", "b", "c"]
    filters = [pc.field("s").isin(of) for of in (words, words[::-1])]
    table = pa.table({"x": [1.0, 2.0, 3.0], "s": words})
    loader, other = (Loader(table, columns=["x"], filter=where) for where in filters)
    with pytest.raises(ValueError, match=r"isin\(sorted\(x\)\) of a set x is one filter"):
        other.load_state_dict(loader.state_dict())


SECONDS = [7200 * at for at in range(12)]
TIMES = {
    "UTC": pa.timestamp("s", "UTC"),
    "Berlin": pa.timestamp("s", "Europe/Berlin"),
    "an offset": pa.timestamp("ms", "+01:00"),
    "nanoseconds": pa.timestamp("ns", "America/New_York"),
    "naive": pa.timestamp("s"),
}


@pytest.mark.parametrize("mine", TIMES)
@pytest.mark.parametrize("other", TIMES)
@pytest.mark.parametrize("wish", [Categories.scan(), AsArrow()], ids=["codes", "values"])
def test_the_same_moments_in_another_zone_go_on_and_naive_times_do_not(mine, other, wish, tmp_path):
    def table(name):
        kind = TIMES[name]
        moments = pa.array(SECONDS, pa.timestamp("s", None if kind.tz is None else "UTC"))
        return pa.table({"t": moments.cast(kind)})

    options = {"columns": {"t": wish}, "batch_size": 5}
    loader = Loader(table(mine), **options)
    epoch = iter(loader)
    next(epoch)
    state = json.loads(json.dumps(loader.state_dict()))

    def values(batch):
        return pa.array(batch["t"]).to_pylist()

    rest = [values(batch) for batch in epoch]
    others = [table(other), table(other).to_pandas(), polars.from_arrow(table(other))]
    for source in [*others, parquet(table(other), tmp_path), [table(other)]]:
        resumed = Loader(source, **options)
        resumed.load_state_dict(state)
        if "naive" in (mine, other) and mine != other:
            with pytest.raises(ValueError, match='column "t" was timestamp'):
                list(resumed)
        else:
            assert [values(batch) for batch in resumed] == rest


def test_the_numbers_of_times_in_another_unit_are_other_data(tmp_path):
    table = pa.table({"t": pa.array(SECONDS, pa.timestamp("s"))})
    options = {"physical": True, "batch_size": 5, "framework": "numpy"}
    loader = Loader(table, **options)
    epoch = iter(loader)
    next(epoch)
    state = json.loads(json.dumps(loader.state_dict()))
    rest = [batch["t"].tolist() for batch in epoch]
    resumed = Loader(pa.concat_tables([table.slice(0, 3), table.slice(3)]), **options)
    resumed.load_state_dict(state)
    assert [batch["t"].tolist() for batch in resumed] == rest
    finer = table.cast(pa.schema({"t": pa.timestamp("ns")}))
    for source in finer, finer.to_pandas(), parquet(table, tmp_path):  # Parquet has no seconds
        resumed = Loader(source, **options)
        resumed.load_state_dict(state)
        with pytest.raises(ValueError, match=r'column "t" was timestamp\[s\], and is timestamp\['):
            list(resumed)


@pytest.mark.parametrize("form", ["arrow", "parquet"])
def test_a_type_that_pyarrow_cannot_make_of_a_file_names_it_and_the_path_is_the_way_out(
    form, tmp_path
):
    write_one = {"arrow": pyarrow.feather.write_feather, "parquet": pq.write_table}[form]
    texts = [pa.array(["a", "b"]).dictionary_encode(), pa.array(["b", "c"], pa.string_view())]
    for at, column in enumerate(texts):
        write_one(pa.table({"s": column}), f"{tmp_path}/{at}.{form}")
    options = {"columns": {"s": Categories(["a", "b", "c"])}, "framework": "numpy"}
    with pytest.raises(ValueError, match=rf'1\.{form}: column "s" is string_view there and dict'):
        list(Loader(ds.dataset(tmp_path, format=form), **options))
    batches = list(Loader(str(tmp_path), **options))
    assert [code for batch in batches for code in batch["s"].tolist()] == [0, 1, 1, 2]


@pytest.mark.parametrize("form", ["files", "union", "union with a table"])
def test_a_schema_of_views_reads_dictionaries_of_files(form, tmp_path):
    table = pa.table({"x": [1, 2], "s": pa.array(["a", "b"]).dictionary_encode()})
    schema = pa.schema({"x": pa.int64(), "s": pa.string_view()})
    parts = []
    for at in range(2):
        pq.write_table(table, tmp_path / f"{at}.parquet")
        parts.append(ds.dataset(tmp_path / f"{at}.parquet", schema=schema))
    source = ds.dataset(parts)
    if form == "files":
        source = ds.dataset(tmp_path, schema=schema)
    elif form == "union with a table":
        views = pa.table({"x": [1, 2], "s": pa.array(["a", "b"], pa.string_view())})
        source = ds.dataset([parts[0], ds.dataset(views)])
    for wish in Categories(["a", "b"]), Categories.scan():
        loader = Loader(source, columns={"x": None, "s": wish}, batch_size=2)
        assert [batch["s"].tolist() for batch in loader] == [[0, 1], [0, 1]]
        next(iter(loader))
        loader.load_state_dict(loader.state_dict())
        assert [batch["x"].tolist() for batch in loader] == [[1, 2]]
    where = pc.field("s") == "b"
    for options in {"filter": where}, {}:
        own = source if options else source.filter(where)
        loader = Loader(own, columns=["x"], **options)
        assert [x for batch in loader for x in batch["x"].tolist()] == [2, 2]


@pytest.mark.parametrize("is_union", [False, True])
@pytest.mark.parametrize("kind", [pa.int64(), pa.list_(pa.int64())])
def test_a_column_that_is_not_cast_to_the_schema_is_named_and_the_ways_out_read_it(
    kind, is_union, tmp_path
):
    table = pa.table({"x": [1, 2], "s": pa.array(["1", "b"]).dictionary_encode()})
    pq.write_table(table, tmp_path / "a.parquet")
    source = ds.dataset(tmp_path, schema=pa.schema({"x": pa.int8(), "s": kind}))
    source = ds.dataset([source, source]) if is_union else source
    where, told = pc.field("s").is_valid(), r'a\.parquet: column "s" is dict.* there and (int|list)'
    for read, options in (
        (source, {"columns": ["s"]}),
        (source, {"columns": ["x"], "filter": where}),
        (source.filter(where), {"columns": ["x"]}),
    ):
        with pytest.raises(ValueError, match=told):
            list(Loader(read, **options))
    for way in ds.dataset(tmp_path, schema=table.schema), tmp_path:
        loader = Loader(way, columns={"s": Categories(["1", "b"])})
        assert [batch["s"].tolist() for batch in loader] == [[0, 1]]


def test_a_row_group_is_read_without_a_look_at_all_files_unless_words_need_it(
    tmp_path, monkeypatch
):
    for at in range(8):
        kind = pa.bool_() if at % 2 else pa.int64()
        column = pa.array([at % 2, 0], pa.int64()).cast(kind)
        pq.write_table(pa.table({"x": column}), tmp_path / f"{at}.parquet")
    made = []
    run = _files.Files._run
    monkeypatch.setattr(
        _files.Files, "_run", lambda self, *args: made.append(args[1]) or run(self, *args)
    )
    loader = Loader(str(tmp_path), dtype="float32", batch_size=2, rank=1, world_size=4)
    assert [batch["x"].tolist() for batch in loader] == [[0, 0], [1, 0]]
    assert sum(map(len, made)) == 2


@pytest.mark.parametrize("options", [{}, {"prefetch": 2}, {"rank": 0, "world_size": 1}])
@pytest.mark.parametrize("form", ["files", "dataset", "mix"])
def test_an_error_is_raised_where_rows_before_it_are_the_last_batch(form, options, tmp_path):
    for name in "ab":
        pq.write_table(pa.table({"x": [name] * 10}), tmp_path / f"{name}.parquet")
    paths = [str(tmp_path / f"{name}.parquet") for name in "ab"]
    wish = {"x": Categories(["a"])}
    for batch_size, seed in itertools.product([1, 7, 10, 20, 32], range(4)):
        source = {
            "files": lambda: paths,
            "dataset": lambda: ds.dataset(paths),
            "mix": lambda: Mix(dict.fromkeys(paths, 1)),
        }[form]()
        keywords = {"batch_size": batch_size, "columns": wish, **options}
        with pytest.raises(ValueError, match='"b", which is not among'):
            list(Loader(source, shuffle=5, seed=seed, **keywords))


def test_an_error_of_a_rank_is_raised_where_rows_before_it_are_its_last_batch():
    parts = [pa.table({"x": ["a"] * 10}), pa.table({"x": ["b"] * 10})]
    wish = {"x": Categories(["a"])}
    for rank, batch_size in itertools.product(range(2), [7, 9, 12, 20]):
        share = {"rank": rank, "world_size": 2, "uneven": "repeat"}
        loader = Loader(parts, batch_size=batch_size, columns=wish, **share)
        with pytest.raises(ValueError, match='"b", which is not among'):
            list(loader)


@pytest.mark.parametrize("how", ["header", "body"])
@pytest.mark.parametrize(
    "kind", ["paths", "dataset", "filtered", "union", "fragments", "mix", "mix of datasets"]
)
def test_a_damaged_file_is_named_however_it_is_read(tmp_path, kind, how):
    """Its first row groups are whole, and so is its footer."""
    paths = [str(tmp_path / f"{at}.parquet") for at in range(3)]
    for path in paths:
        table = pa.table({"x": [str(row) * 3 for row in range(2000)], "y": range(2000)})
        pq.write_table(table, path, row_group_size=250)
    footer = pq.read_metadata(paths[1])
    with open(paths[1], "r+b") as file:
        for group in range(5, 8):
            column = footer.row_group(group).column(0)
            start = column.dictionary_page_offset
            file.seek(start if how == "header" else start + 40)
            file.write(b"\xff" * 600)
    whole = ds.dataset(paths)
    source = {
        "paths": paths,
        "dataset": whole,
        "filtered": whole.filter(pc.field("y") >= 0),
        "union": ds.dataset([ds.dataset(paths[:1]), ds.dataset(paths[1:])]),
        "fragments": list(whole.get_fragments()),
        "mix": Mix(dict.fromkeys(paths, 1)),
        "mix of datasets": Mix([(ds.dataset(path), 1) for path in paths]),
    }[kind]
    for options in (
        {},
        {"shuffle": 100, "seed": 1},
        {"shuffle": 2000, "seed": 2, "prefetch": 2},
        {"rank": 1, "world_size": 2, "uneven": "drop", "shuffle": 300, "seed": 3},
        {"filter": pc.field("y") >= 1, "shuffle": 100, "seed": 4},
        {"columns": {"x": Categories.scan()}},
    ):
        loader = Loader(source, **{"columns": {"x": AsArrow()}, "batch_size": 50, **options})
        with pytest.raises((OSError, ValueError), match=re.escape(paths[1])):
            list(loader)


@pytest.mark.parametrize("lines", [1, 40])
def test_line_ends_within_quotes_of_csv_are_in_the_values(lines, tmp_path):
    """However pyarrow cuts the file to blocks."""
    text = "hello, world\n" * lines
    path = tmp_path / "x.csv"
    path.write_text("s,u\n" + "".join(f't{row},"{text}{row}"\n' for row in range(2300)))
    columns = {"s": AsArrow(), "u": AsArrow()}
    batches = list(Loader(path, batch_size=500, columns=columns))
    assert [row for batch in batches for row in pa.array(batch["u"]).to_pylist()] == [
        f"{text}{row}" for row in range(2300)
    ]


LATIN = "x,t\n1,café\n2,b\n".encode("latin-1")


@pytest.mark.parametrize("kind", ["file", "files", "folder", "pattern", "mix"])
def test_texts_of_csv_that_are_no_utf8_are_refused(kind, tmp_path):
    """pyarrow makes binaries of them."""
    (tmp_path / "k=1").mkdir()
    (tmp_path / "k=1" / "a.csv").write_bytes(b"x,t\n1,cafe\n2,b\n")
    # All paths of Windows have backslashes, which may not be escapes in what is told to run.
    bad = str(tmp_path / "k=1" / ("b.csv" if system.WINDOWS else r"\users.csv"))
    Path(bad).write_bytes(LATIN)
    names = [str(tmp_path / "k=1" / "a.csv"), bad]
    kinds = {"file": bad, "files": names, "folder": tmp_path, "pattern": f"{tmp_path}/**/*.csv"}
    source = Mix(dict.fromkeys(names, 1)) if kind == "mix" else kinds[kind]
    columns, told = {"t": AsArrow()}, rf'{re.escape(bad)}: column "t" is no UTF-8: .*latin-1'
    for options in (
        {"columns": columns},
        {"columns": {"t": Categories(["b"], unknown=-1)}},
        {"columns": ["t"]},
        {"columns": ["x"], "label": {"t": AsArrow()}},
        {"columns": ["x"], "filter": pc.field("t") == "b"},
        {},
    ):
        with pytest.raises(ValueError, match=told) as raised:
            list(Loader(source, batch_size=9, **options))
    (batch,) = Loader(source, batch_size=9, columns=["x"], filter=pc.field("x") > 1)
    assert set(batch["x"].tolist()) == {2}
    made = re.search(r"pyarrow\.csv\.read_csv\(.*\)\)", str(raised.value))[0]
    (batch,) = Loader(eval(made, {"pyarrow": pa}), columns=columns)
    assert pa.array(batch["t"]).to_pylist() == ["café", "b"]


def test_binaries_of_csv_stay_where_a_schema_says_so(tmp_path):
    (tmp_path / "a.csv").write_bytes(LATIN)
    schema = pa.schema({"x": pa.int64(), "t": pa.binary()})
    dataset = ds.dataset(str(tmp_path / "a.csv"), schema=schema, format="csv")
    for source in dataset, list(dataset.get_fragments()), dataset.to_table():
        (batch,) = Loader(source, columns={"t": AsArrow()}, batch_size=9)
        assert pa.array(batch["t"]).to_pylist() == ["café".encode("latin-1"), b"b"]
    latin = ds.CsvFileFormat(read_options=pa.csv.ReadOptions(encoding="latin-1"))
    dataset = ds.dataset(str(tmp_path / "a.csv"), format=latin)
    (batch,) = Loader(dataset, columns={"t": AsArrow()}, batch_size=9)
    assert pa.array(batch["t"]).to_pylist() == ["café", "b"]


def test_a_late_text_of_csv_that_is_no_utf8_says_how_it_is_read(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"x,t\n" + b"1,abc\n" * 300_000 + LATIN.splitlines()[1])
    with pytest.raises(ValueError, match=r'a\.csv.*"t".*row 300002 .*encoding="latin-1"') as raised:
        list(Loader(path, columns={"t": AsArrow()}, batch_size=100_000))
    assert "null_values" not in str(raised.value)


@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_csv_whose_columns_do_not_end_at_commas_says_how_it_is_read(mark, tmp_path):
    (tmp_path / "k=1").mkdir()
    path, whole = str(tmp_path / "k=1" / "a.csv"), mark.join("abc")
    Path(path).write_text(f"{whole}\n{mark.join('123')}\n{mark.join('456')}\n")
    for source in path, [path, path], str(tmp_path), Mix({path: 1}):
        for options in {"columns": ["a"]}, {"label": "c"}, {"filter": pc.field("a") > 1}, {}:
            with pytest.raises(ValueError, match=r"a\.csv has one column, .*delimiter=") as raised:
                list(Loader(source, batch_size=9, **options))
        for where in None, pc.field(whole).is_valid():
            wish = {whole: AsArrow()}
            loader = Loader(source, columns=wish, filter=where, batch_size=1, rank=0, world_size=1)
            assert len(list(loader)) == 2 + 2 * isinstance(source, list)
    made = re.search(r"pyarrow\.csv\.read_csv\(.*\)\)", str(raised.value))[0]
    (batch,) = Loader(eval(made, {"pyarrow": pa}), columns=["a"])
    assert batch["a"].tolist() == [1, 4]


@pytest.mark.parametrize("end", ["csv", "parquet", "arrow", "arrows", "feather", "other"])
def test_a_file_of_no_bytes_is_told(end, tmp_path):
    (tmp_path / f"b.{end}").write_bytes(b"")
    with pytest.raises(ValueError, match=rf"b\.{end} has no bytes, and so no columns"):
        list(Loader(str(tmp_path), batch_size=9))
    if end in ("csv", "parquet", "arrow"):
        write = {"csv": pa.csv.write_csv, "parquet": pq.write_table}.get(
            end, pa.feather.write_feather
        )
        write(pa.table({"x": [1]}), f"{tmp_path}/a.{end}")
        with pytest.raises(ValueError, match=rf"b\.{end} has no bytes, and so no columns"):
            list(Loader(str(tmp_path), batch_size=9))


def test_csv_that_does_not_parse_names_what_reads_it(tmp_path):
    path = tmp_path / "a.csv"
    given = {
        "x;y\n1,5;2\n": 'parse_options=pa.csv.ParseOptions(delimiter=";"), '
        'convert_options=pa.csv.ConvertOptions(decimal_point=",")',
        "x,y\n1.5,2\n": 'read_options=pa.csv.ReadOptions(encoding="utf-16")',
    }
    for (text, options), encoding in zip(given.items(), ("utf-8", "utf-16"), strict=True):
        path.write_text(text, encoding)
        with pytest.raises(pa.ArrowInvalid) as raised:
            list(Loader(path))
        (note,) = raised.value.__notes__
        assert f"pyarrow.csv.read_csv({str(path)!r}, read_options=..., parse_options=..." in note
        table = eval(f"pa.csv.read_csv(path, {options})", {"pa": pa, "path": path})
        assert next(iter(Loader(table)))["x"].tolist() == [1.5]


def test_csv_with_two_columns_of_one_name_names_what_reads_it(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("id,x,x\n1,2,3\n")
    with pytest.raises(pa.ArrowInvalid, match="multiple columns named x") as raised:
        list(Loader(path, columns=["id"]))
    (note,) = raised.value.__notes__
    assert f"pyarrow.csv.read_csv({str(path)!r}) makes a table" in note
    for source in pa.csv.read_csv(path), pandas.read_csv(path):
        (batch,) = Loader(source, columns=["id"])
        assert batch["id"].tolist() == [1]


@pytest.mark.parametrize("row", ["3", "3,4,5"])
@pytest.mark.parametrize("rows", [1, 200000], ids=["first block", "later"])
def test_rows_of_csv_of_another_width_are_left_out_by_what_is_named(row, rows, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,y\n" + "1,2\n" * rows + f"{row}\n5,6\n")
    with pytest.raises(ValueError, match="Expected 2 columns, got [13]") as raised:
        list(Loader(path, batch_size=rows + 2))
    words = "; ".join([str(raised.value), *getattr(raised.value, "__notes__", [])])
    made = re.search(r"; (pyarrow\.dataset\.dataset\(paths, .*\)) leaves such rows out", words)[1]
    dataset = eval(made, {"pyarrow": pa, "paths": [str(path)]})
    (batch,) = Loader(dataset, batch_size=rows + 2)
    assert batch["x"].tolist() == [1] * rows + [5]


def test_dates_of_csv_in_another_format_are_read_by_what_is_named(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("t\n31/12/2020\n01/02/2021\n")
    days = [datetime.datetime(2020, 12, 31), datetime.datetime(2021, 2, 1)]
    refused = pytest.raises(TypeError, match='timestamp_parsers=\\["%d/%m/%Y"\\] there such dates')
    options = {"columns": ["t"], "dtype": "float64", "physical": True, "batch_size": 300000}
    with refused:
        list(Loader(path, **options))
    form = ds.CsvFileFormat(convert_options=pa.csv.ConvertOptions(timestamp_parsers=["%d/%m/%Y"]))
    (batch,) = Loader(ds.dataset(path, format=form), **options)
    epoch = datetime.datetime(1970, 1, 1)
    assert batch["t"].tolist() == [(day - epoch).total_seconds() for day in days]

    path.write_text("t\n" + "2020-12-31\n" * 200000 + "01/02/2021\n")
    words = 'pyarrow.timestamp("s") there with timestamp_parsers=[pyarrow.csv.ISO8601, "%d/%m/%Y"]'
    with pytest.raises(ValueError, match=re.escape(words)):
        list(Loader(path, **options))
    parsers = [pa.csv.ISO8601, "%d/%m/%Y"]
    convert = pa.csv.ConvertOptions(
        column_types={"t": pa.timestamp("s")}, timestamp_parsers=parsers
    )
    (batch,) = Loader(ds.dataset(path, format=ds.CsvFileFormat(convert_options=convert)), **options)
    assert [batch["t"].tolist()[at] for at in (0, -1)] == [
        (day - epoch).total_seconds() for day in days
    ]


def test_fragments_of_a_file_that_was_replaced_name_a_new_dataset(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": range(1000)}), path, row_group_size=100)
    loader = Loader(list(ds.dataset(path).get_fragments()), batch_size=10)
    assert len(list(loader)) == 100
    path.unlink()
    pq.write_table(pa.table({"x": range(1500)}), path, row_group_size=70)
    for _ in range(2):
        with pytest.raises(OSError, match="a new dataset read it"):
            list(loader)
    assert len(list(Loader(list(ds.dataset(path).get_fragments()), batch_size=10))) == 150


@pytest.mark.parametrize("kind", ["dataset", "function", "fragments"])
@pytest.mark.parametrize("where", [None, pc.field("x") > 50])
def test_another_loader_of_a_dataset_knows_which_footers_it_keeps(tmp_path, kind, where):
    """pyarrow would give bits of other columns, or leave rows out by statistics of the old file."""
    path = tmp_path / "a.parquet"
    options = {"compression": None, "use_dictionary": False}
    pq.write_table(pa.table({"x": [1, 2, 3], "y": [0.5, 1.5, 2.5]}), path, **options)
    dataset = ds.dataset(path)
    source = {
        "dataset": dataset,
        "function": lambda index, count: dataset,
        "fragments": list(dataset.get_fragments()),
    }[kind]
    before = Loader(source)
    if kind != "fragments":
        list(before)
    path.unlink()
    pq.write_table(pa.table({"y": [70.5, 71.5, 72.5], "x": [70, 71, 72]}), path, **options)
    for loader in before, Loader(source, filter=where):
        with pytest.raises(OSError, match="was replaced or written to while an epoch read it"):
            list(loader)
    (batch,) = Loader(ds.dataset(path), filter=where)
    assert batch["x"].tolist() == [70, 71, 72]


@pytest.mark.parametrize("kind", ["Int128", "UInt128"])
@pytest.mark.parametrize("form", ["parquet", "arrow", "arrows", "dataset", "mix"])
def test_a_file_with_a_type_that_pyarrow_has_not_is_named(tmp_path, form, kind):
    end = form if form.startswith("arrow") else "parquet"
    writes = {"parquet": "write_parquet", "arrow": "write_ipc", "arrows": "write_ipc_stream"}
    paths = [tmp_path / f"{name}.{end}" for name in ("has", "lacks")]
    for path, values in zip(paths, [1, polars.lit(2, getattr(polars, kind))], strict=True):
        getattr(polars.select(x=values, y=0.5), writes[end])(path)
    source = {"dataset": lambda: ds.dataset(paths), "mix": lambda: Mix([(paths[1], 1)])}
    match = rf"lacks\.{end}: pyarrow does not .*64 bits.*, and (polars.*\(path\)) is a source$"
    for names in ["y"], ["x", "y"]:
        with pytest.raises(NotImplementedError, match=match) as told:
            rows(source.get(form, lambda: paths)(), *names, dtype="float64")
        made = eval(re.search(match, str(told.value))[1], {"polars": polars, "path": paths[1]})
        found = rows(Mix([(paths[0], 1), (made, 1)]), *names, dtype="float64")
        assert sorted(found) == ([(0.5,), (0.5,)] if names == ["y"] else [(1, 0.5), (2, 0.5)])


def test_a_csv_file_of_one_line_without_an_end_is_told(tmp_path):
    """pandas reads it; pyarrow infers no columns of it."""
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    (tmp_path / "b.csv").write_text("x,y")
    with pytest.raises(ValueError, match=r"b\.csv: its one line has no end.*: end it, or leave"):
        list(Loader(str(tmp_path)))
    (tmp_path / "b.csv").write_text("x,y\n")
    assert [batch["x"].tolist() for batch in Loader(str(tmp_path))] == [[1]]


@pytest.mark.parametrize("end", ["\n1,2\n", ""])
def test_a_csv_file_of_gzip_by_another_name_is_told(end, tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(gzip.compress(f"x,y{end}".encode()))
    with pytest.raises(ValueError, match=r"a\.csv is a file of gzip.* ends in \.csv\.gz"):
        list(Loader(path))
    if end:
        assert rows(path.rename(f"{path}.gz"), "x", "y") == [(1, 2)]


TABLES = {
    "_delta_log/0.json": r"Delta Lake, as _delta_log in it .*deltalake\.DeltaTable\('{}'\) is a",
    ".hoodie/hoodie.properties": r"Hudi, as \.hoodie in .*load\('{}'\)\.toArrow\(\) is a",
    "_spark_metadata/0": r"Spark's streaming sink, .*parquet\('{}'\)\.toArrow\(\) is a",
    "metadata/v1.metadata.json": r"Iceberg, as v1\.metadata\.json in .*StaticTable\.from_metadata",
}


@pytest.mark.parametrize("log", TABLES)
@pytest.mark.parametrize("inner", ["", "b/c/"])
@pytest.mark.parametrize("where", ["local", "memory"])
def test_the_folder_of_a_table_format_is_refused(log, inner, where, tmp_path, monkeypatch):
    """It has files that the table has no more."""
    memory = fsspec.filesystem("memory")
    monkeypatch.setattr(type(memory), "store", {})
    monkeypatch.setattr(type(memory), "pseudo_dirs", [""])
    fs = memory if where == "memory" else fsspec.filesystem("local", auto_mkdir=True)
    folder = "memory://t" if where == "memory" else tmp_path.as_posix()
    fs.pipe(f"{folder}/{inner}{log}", b"{}")
    for file in "z.parquet", f"{inner}k=1/a.parquet":
        with fs.open(f"{folder}/{file}", "wb") as sink:
            pq.write_table(pa.table({"x": [1]}), sink)
    table = re.escape(f"{folder}/{inner}".removesuffix("/")) + "/?"
    match = rf"^{table} is a table of {TABLES[log].format(table)}.*a pattern such as"
    for source in folder, f"{folder}/", Mix({folder: 1}):
        with pytest.raises(ValueError, match=match):
            list(Loader(source))
    # A pattern and names of files are the caller's word.
    for source in f"{folder}/**/*.parquet", [f"{folder}/z.parquet"], f"{folder}/{inner}k=1":
        assert set(rows(source, "x")) == {(1,)}


def test_names_of_table_formats_elsewhere_are_no_table(tmp_path):
    """In a hidden folder, as that of a tool, and "metadata" without those of Iceberg."""
    for name in ".cache/_delta_log", "_old/metadata", "metadata":
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "_old/metadata/v1.metadata.json").write_text("{}")
    write(tmp_path / "metadata", [pa.table({"x": [1]})])
    assert rows(tmp_path, "x") == [(1,)]
    # A file that a user of Iceberg names elsewhere.
    with pytest.raises(ValueError, match="is the metadata of a table of Iceberg.*load_table"):
        Loader(tmp_path / "_old/metadata/v1.metadata.json", columns=["x"])


def write_as(form, values, path, rows=10_000):
    """A file of one column; of Arrow's in batches of so many rows."""
    table = pa.table({"x": values})
    if form == "csv":
        pa.csv.write_csv(table, path)
        return
    make = pa.ipc.new_file if form == "arrow" else pa.ipc.new_stream
    with make(str(path), table.schema) as file:
        file.write_table(table, max_chunksize=rows)


@pytest.mark.parametrize(
    ("form", "of"),
    [
        (form, of)
        for form in ("arrow", "arrows", "csv")
        for of in ("path", "folder", "dataset", "mix")
        if (form, of) != ("arrows", "dataset")  # of which pyarrow has none
    ],
)
@pytest.mark.parametrize("is_renamed", [False, True])
def test_a_file_that_is_written_anew_while_an_epoch_reads_it_is_told(
    form, of, is_renamed, tmp_path
):
    path, new = tmp_path / f"x.{form}", tmp_path.parent / f"{tmp_path.name}.new"
    rows = np.arange(2_000_000) + 10**7

    def values(batches):
        return np.concatenate([batch["x"] for batch in batches])

    kinds = {
        "path": lambda: path,
        "folder": lambda: tmp_path,
        "dataset": lambda: ds.dataset(path, format="csv" if form == "csv" else "ipc"),
        "mix": lambda: Mix([(path, 1)]),
    }
    write_as(form, rows, path)
    loader = Loader(kinds[of](), batch_size=1000, framework="numpy")
    epoch = iter(loader)
    next(epoch)
    write_as(form, rows[::-1], new if is_renamed else path)
    if is_renamed:  # what is open is the old file
        new.replace(path)
        np.testing.assert_array_equal(values(epoch), rows[1000:])
    else:
        with pytest.raises(
            OSError, match=rf"x\.{form} was replaced .*: the next one reads it anew"
        ):
            list(epoch)
    np.testing.assert_array_equal(values(loader), rows[::-1])


@pytest.mark.parametrize("form", ["arrow", "arrows", "csv"])
@pytest.mark.parametrize("of", ["paths", "folder", "mix"])
@pytest.mark.parametrize("change", ["written anew", "renamed", "cut", "emptied"])
def test_a_file_that_changes_before_its_turn_is_told(form, of, change, tmp_path):
    (folder := tmp_path / "all").mkdir()
    paths = [folder / f"{name}.{form}" for name in "abc"]

    for path in paths:
        write_as(form, range(100_000, 300_000), path)
    source = {"paths": paths, "folder": folder, "mix": Mix([(paths, 1)])}[of]
    loader = Loader(source, batch_size=10_000, prefetch=0)
    epoch = iter(loader)
    next(epoch)
    if change == "written anew":
        write_as(form, range(300_000, 340_000), paths[2])
    elif change == "renamed":
        write_as(form, range(300_000, 500_000), tmp_path / "new")
        (tmp_path / "new").replace(paths[2])
    else:
        os.truncate(paths[2], 0 if change == "emptied" else paths[2].stat().st_size // 2)
    with pytest.raises(OSError, match=rf"c\.{form} was replaced or written to while an epoch"):
        list(epoch)


@pytest.mark.parametrize("rows", [7, 8, 12])
def test_a_stream_that_is_written_anew_by_a_shorter_one_is_told_so(rows, tmp_path):
    path = tmp_path / "a.arrows"

    def write(count):
        table = pa.table({"x": range(count)})
        with pa.ipc.new_stream(path, table.schema) as stream:
            stream.write_table(table, max_chunksize=5)

    write(20)
    epoch = iter(Loader(path, batch_size=3))
    next(epoch)
    write(rows)
    with pytest.raises(OSError, match="was replaced or written to while an epoch read it"):
        list(epoch)


@pytest.mark.parametrize("form", ["arrow", "csv"])
def test_a_file_that_the_filter_leaves_out_by_its_folder_may_change(form, tmp_path):
    table = pa.table({"x": range(100), "day": [0] * 50 + [1] * 50})
    folder, part = tmp_path / "all", ds.partitioning(pa.schema({"day": pa.int64()}), flavor="hive")
    ds.write_dataset(table, folder, format=form, partitioning=part)
    (other,) = (path for path in folder.rglob("*") if "day=1" in str(path) and path.is_file())
    dataset = ds.dataset(folder, format=form, partitioning=part)
    for where, is_read in (pc.field("day") == 0, False), (pc.field("x") < 50, True):
        epoch = iter(Loader(dataset, columns=["x"], filter=where, batch_size=10, prefetch=0))
        found = next(epoch)["x"].tolist()
        os.utime(other)  # as its writer does
        if is_read:
            with pytest.raises(OSError, match="was replaced or written to"):
                list(epoch)
        else:
            found += [x for batch in epoch for x in batch["x"].tolist()]
            assert sorted(found) == list(range(50))


def test_a_stream_in_a_file_that_is_cut_while_it_is_read_is_told(tmp_path):
    path = tmp_path / "x.arrows"
    for source in path, [path], tmp_path, Mix([(path, 1)]):
        write_as("arrows", range(100_000), path, rows=1000)
        epoch = iter(Loader(source, batch_size=100, prefetch=0))
        next(epoch)
        os.truncate(path, 0)  # as a writer does that opens it
        with pytest.raises(OSError, match=r"x\.arrows was replaced"):
            list(epoch)


def test_a_loop_over_types_of_python_is_left(tmp_path):
    """pyarrow 26 ends the process where such a scan is dropped as its generator is closed."""
    script = """
import sys
import pandas as pd, pyarrow as pa
from arrow_dlpack import AsArrow, Loader

table = pa.table({"x": pa.array(pd.interval_range(0, 12))})
with pa.ipc.new_file(sys.argv[1], table.schema) as file:
    file.write_table(table, max_chunksize=4)
for options in {}, {"filter": pa.compute.field("x").is_valid()}:
    for _ in range(200):
        for batch in Loader(sys.argv[1], columns={"x": AsArrow()}, batch_size=2, **options):
            break
"""
    run = [sys.executable, "-c", script, str(tmp_path / "x.arrow")]
    done = subprocess.run(run, capture_output=True, text=True, check=False, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("words", "way"),
    [("?", '["?", "", "NA"]'), ("1;5", 'decimal_point=","')],
    ids=["null", "decimal"],
)
def test_texts_in_the_first_block_of_a_csv_file_tell_how_they_are_numbers(words, way, tmp_path):
    path = tmp_path / "a.csv"
    words = f'"{words.replace(";", ",")}"'
    path.write_text(f"age,y\n31,0\n{words},1\n", "utf-8")
    for source in path, [path], tmp_path, Mix([(path, 1)]):
        for options in (
            {"columns": {"age": Cast("float32", nulls="nan")}},
            {"columns": ["age"], "dtype": "float32"},
        ):
            with pytest.raises(TypeError, match='a.csv: column "age" has texts in its') as refused:
                list(Loader(source, **options))
            assert way in str(refused.value)
            assert 'pandas.read_csv(path, thousands=",")' in str(refused.value)
    convert = {"null_values": ["?", "", "NA"]} if "?" in words else {"decimal_point": ","}
    form = ds.CsvFileFormat(convert_options=pa.csv.ConvertOptions(**convert))
    wish = Cast("float32", nulls="nan")
    (batch,) = Loader(ds.dataset(path, format=form), columns={"age": wish}, batch_size=2)
    assert str(batch["age"].tolist()) == ("[31.0, nan]" if "?" in words else "[31.0, 1.5]")
    (batch,) = Loader(path, columns={"age": AsArrow(), "y": None}, batch_size=2)
    assert batch["y"].tolist() == [0, 1]
    (batch,) = Loader(path, columns={"age": Pad(0, dtype="int64")}, batch_size=2)
    assert batch["age"].lengths.tolist() == [2, len(words) - 2]


@pytest.mark.parametrize("form", ["arrow", "arrows", "csv", "parquet"])
def test_a_file_that_gets_a_link_or_other_rights_is_the_same(form, tmp_path):
    """A backup links to all files."""
    (folder := tmp_path / "all").mkdir()
    for number in range(3):
        path, rows = folder / f"{number}.{form}", np.arange(number * 1000, number * 1000 + 1000)
        if form == "parquet":
            pq.write_table(pa.table({"x": rows}), path)
        else:
            write_as(form, rows, path)
    loader = Loader(folder, batch_size=100, prefetch=0, framework="numpy")
    for epoch_number in range(2):
        epoch = iter(loader)
        found = [next(epoch)]
        backup = tmp_path / f"backup {epoch_number}"
        backup.mkdir()
        for path in folder.iterdir():
            os.link(path, backup / path.name)
            path.chmod(0o640 - epoch_number)
        found += epoch
        assert np.concatenate([batch["x"] for batch in found]).tolist() == list(range(3000))


@pytest.mark.parametrize("form", ["arrow", "csv"])
def test_a_file_that_is_read_twice_is_one_file(form, tmp_path):
    paths = [tmp_path / f"{name}.{form}" for name in "abc"]
    for path in paths:
        write_as(form, range(100_000, 300_000), path)
    epoch = iter(Loader([*paths, paths[0]], batch_size=10_000, prefetch=0))
    next(epoch)
    write_as(form, range(300_000, 500_000), tmp_path / "new")
    (tmp_path / "new").replace(paths[0])
    with pytest.raises(OSError, match=rf"a\.{form} was replaced or written to while an epoch"):
        list(epoch)


def test_texts_of_the_key_of_a_folder_are_no_texts_of_its_files(tmp_path):
    for key in "ab":
        (tmp_path / f"g={key}").mkdir()
        (tmp_path / f"g={key}" / "x.csv").write_text("x\n1\n2\n")
    with pytest.raises(TypeError, match='^column "g": Utf8 has no tensor form: make codes of it'):
        list(Loader(tmp_path, columns=["x", "g"], dtype="float32"))


@pytest.mark.parametrize("form", ["csv", "json"])
@pytest.mark.parametrize("shuffle", [None, 4])
def test_a_file_of_a_dataset_whose_first_block_has_another_type_is_told(form, shuffle, tmp_path):
    for name, value in ("a", "1"), ("b", "2.5"):
        text = f"y,x\n1,{value}\n" if form == "csv" else f'{{"y": 1, "x": {value}}}\n'
        (tmp_path / f"{name}.{form}").write_text(text)
    # A path of JSON is none that a Loader reads.
    way = "another schema= reads it" if form == "json" else "another schema=, or the path"
    told = rf'b\.{form}: column "x" is double there and int64 in the schema .*{way}'
    with pytest.raises(ValueError, match=told):
        list(Loader(ds.dataset(tmp_path, format=form), batch_size=2, shuffle=shuffle))
    schema = pa.schema({"y": pa.int64(), "x": pa.float64()})
    dataset = ds.dataset(tmp_path, format=form, schema=schema)
    found = [batch["x"].tolist() for batch in Loader(dataset, batch_size=1)]
    assert found == [[1], [2.5]]


def test_files_of_a_dataset_with_axes_in_another_order_are_told(tmp_path):
    x = np.arange(120.0).reshape(2, 4, 5, 3).transpose(0, 3, 1, 2)
    for name, kind in ("a", "permuted"), ("b", None):
        table = pa.table({"p": pa.array(from_dlpack(x, type=kind))})
        pq.write_table(table, tmp_path / f"{name}.parquet")
    with pytest.raises(
        ValueError, match=r'b\.parquet: column "p" is .* there and .*or the path in'
    ):
        list(Loader(ds.dataset(tmp_path)))
    for batch in Loader(tmp_path, batch_size=2):
        np.testing.assert_array_equal(batch["p"], x)


@pytest.mark.parametrize("ending", ["parquet", "arrow", "arrows"])
@pytest.mark.parametrize("form", ["folder", "pattern", "mix"])
def test_copies_in_other_processes_have_the_files_that_were_found(tmp_path, ending, form):
    """Workers that list a folder while files come would divide other rows."""

    def write(name, start):
        table = pa.table({"x": range(start, start + 10)})
        if ending == "parquet":
            pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=5)
            return
        make = pa.ipc.new_file if ending == "arrow" else pa.ipc.new_stream
        with make(tmp_path / f"{name}.{ending}", table.schema) as file:
            file.write_table(table, 5)

    write("0", 0)
    write("1", 10)
    folder = tmp_path if form == "folder" else str(tmp_path / "*")
    source = Mix([(folder, 1), (pa.table({"x": range(100, 103)}), 1)]) if form == "mix" else folder
    loader = Loader(source, batch_size=4, framework="numpy")
    epoch = [batch["x"].tolist() for batch in loader]
    copies = [pickle.loads(pickle.dumps(loader)), copy.deepcopy(loader)]
    unread = pickle.dumps(Loader(source, batch_size=4, framework="numpy"))
    write("00", 20)
    for one in loader, *copies, pickle.loads(pickle.dumps(copies[0])), pickle.loads(unread):
        assert [batch["x"].tolist() for batch in one] == epoch
    assert len(copies[0]) == len(loader) == len(epoch)
    whole = [x for batch in Loader(source, batch_size=4) for x in batch["x"].tolist()]
    assert 29 in whole


def add_a_file(worker, folder):
    if worker == 1:
        pq.write_table(pa.table({"x": range(20, 30)}), f"{folder}/00.parquet", row_group_size=5)


def test_workers_divide_one_list_of_files(tmp_path):
    for at in range(2):
        table = pa.table({"x": range(at * 10, at * 10 + 10)})
        pq.write_table(table, tmp_path / f"{at}.parquet", row_group_size=5)
    loader = Loader(tmp_path, batch_size=4)
    init = functools.partial(add_a_file, folder=str(tmp_path))
    batches = loader.torch(num_workers=2, worker_init_fn=init)
    assert sorted(x for batch in batches for x in batch["x"].tolist()) == list(range(20))


@pytest.mark.parametrize("call", [len, iter, Loader.encoder], ids=["len", "iter", "encoder"])
@pytest.mark.parametrize("form", ["parquet", "arrows"])
def test_an_epoch_keeps_the_stamps_that_it_began_with(tmp_path, call, form):
    """Others look at the files meanwhile, and read those that were replaced anew."""

    def write(start):
        for at in range(20):
            table = pa.table({"x": range(start + 1000 * at, start + 1000 * at + 1000)})
            path = tmp_path / f"{at:02}.{form}"
            if form == "parquet":
                options = {"row_group_size": 100, "compression": "none", "use_dictionary": False}
                pq.write_table(table, f"{path}.new", **options)
            else:
                with pa.ipc.new_stream(f"{path}.new", table.schema) as file:
                    file.write_table(table)
            os.replace(f"{path}.new", path)

    write(100_000)
    options = {"shuffle": 200, "seed": 1} if form == "parquet" else {}
    loader = Loader(sorted(tmp_path.iterdir()), batch_size=50, framework="numpy", **options)
    epoch = iter(loader)
    next(epoch)
    write(500_000)
    call(loader)
    with pytest.raises(OSError, match="was replaced or written to while an epoch read it"):
        list(epoch)
    found = [x for batch in loader for x in batch["x"].tolist()]
    assert sorted(found) == list(range(500_000, 520_000))
