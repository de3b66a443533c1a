"""`iter_batches` is one pass of a `Loader`, whose `Batches` it returns."""

import copy
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator

import duckdb
import jax
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
import torch
from arrow_dlpack import (
    AsArrow,
    Batches,
    ByLength,
    ByTokens,
    Cast,
    Categories,
    Loader,
    Mix,
    Pad,
    iter_batches,
)
from batch_sources import SCHEMA, Source, part
from torch.utils.data import DataLoader, IterableDataset

TABLE = pa.table(
    {
        "x": np.arange(20.0),
        "y": np.arange(20),
        "tokens": [[number] * (number % 4) for number in range(20)],
        "word": ["a", "b"] * 10,
    }
)
NUMBERS = TABLE.select(["x", "y"])


def plain(batch):
    """What is in a batch, to compare."""
    if isinstance(batch, dict):
        return {name: plain(part) for name, part in batch.items()}
    if isinstance(batch, (tuple, list)):
        return [plain(part) for part in batch]
    return pa.array(batch).to_pylist() if hasattr(batch, "__arrow_c_array__") else repr(batch)


def y_of(batches):
    return [np.asarray(batch["y"]).tolist() for batch in batches]


def rows_of(batches):
    return [row for batch in y_of(batches) for row in batch]


OPTIONS = [
    {"batch_size": 3, "columns": ["x"], "label": ["y", "word"], "nulls": "nan"},
    {"batch_size": 3, "columns": ["x"], "label": {"y": Cast("float32")}, "framework": "numpy"},
    {"batch_size": 3, "columns": ["y", "x"], "format": "matrix", "dtype": "float32", "copy": True},
    {"batch_size": 3, "columns": {"word": Categories.scan(), "tokens": Pad(-1, 3)}},
    {"batch_size": ByLength(4, "tokens"), "columns": {"y": None, "word": AsArrow()}},
    {"batch_size": ByTokens(9, "tokens"), "columns": ["tokens"], "shuffle": 9, "seed": 1},
    {"batch_size": 3, "columns": ["y"], "rank": 1, "world_size": 3, "uneven": "repeat"},
    {"batch_size": 3, "columns": ["y"], "rank": 2, "world_size": 3, "uneven": "drop"},
    {"batch_size": 3, "columns": ["y"], "transform": lambda batch: [batch], "prefetch": 2},
    {"batch_size": 3, "columns": ["y"], "shuffle": 5, "seed": 3, "drop_last": True},
    {"columns": ["y"], "writable": True, "framework": "torch"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=range(len(OPTIONS)))
def test_it_is_the_first_epoch_of_a_loader(options):
    if isinstance(options.get("label"), list):
        options = options | {"label": {"y": None, "word": Categories(["a", "b"])}}
    batches = iter_batches(TABLE, **options)
    assert type(batches) is Batches
    found = [plain(batch) for batch in batches]
    assert found == [plain(batch) for batch in Loader(TABLE, **options)]
    assert found


def test_the_batches_are_an_iterator_of_their_own_type():
    batches = iter_batches(NUMBERS, batch_size=7)
    assert iter(batches) is batches
    assert isinstance(batches, Iterator)
    assert Batches[int].__origin__ is Batches


def test_each_call_draws_another_order_and_torchs_generator_repeats_it():
    options = {"batch_size": 5, "shuffle": 20}
    orders = {str(y_of(iter_batches(NUMBERS, **options))) for _ in range(5)}
    assert len(orders) > 1
    found = []
    for _ in range(2):
        torch.manual_seed(4)
        found.append(y_of(iter_batches(NUMBERS, framework="torch", **options)))
    assert found[0] == found[1]
    seeded = [y_of(iter_batches(NUMBERS, seed=7, **options)) for _ in range(2)]
    assert seeded[0] == seeded[1]


@pytest.mark.parametrize("framework", ["torch", "jax", "numpy"])
def test_the_tensors_are_those_of_a_framework(framework):
    kinds = {"torch": torch.Tensor, "jax": jax.Array, "numpy": np.ndarray}
    for features, label in iter_batches(NUMBERS, batch_size=8, label="y", framework=framework):
        assert isinstance(features["x"], kinds[framework])
        assert isinstance(label, kinds[framework])


SOURCES = {
    "a frame of pandas": lambda: pd.DataFrame({"y": range(20)}),
    "a frame of polars": lambda: pl.DataFrame({"y": range(20)}),
    "a frame of polars that is not computed yet": lambda: pl.LazyFrame({"y": range(20)}),
    "a relation of DuckDB": lambda: duckdb.sql("SELECT range AS y FROM range(20)"),
    "a generator": lambda: (batch for batch in NUMBERS.to_batches(3)),
    "a list of batches": lambda: NUMBERS.to_batches(3),
    "a reader": NUMBERS.to_reader,
    "a dataset": lambda: ds.dataset(NUMBERS),
    "a scanner": lambda: ds.dataset(NUMBERS).scanner(),
    "a mix": lambda: Mix([(NUMBERS.select(["y"]), 1)]),
}


@pytest.mark.parametrize("source", SOURCES)
def test_any_source_of_a_loader_is_one(source):
    found = y_of(iter_batches(SOURCES[source](), batch_size=7, columns=["y"]))
    assert found == [list(range(7)), list(range(7, 14)), list(range(14, 20))]


def test_a_function_opens_the_part_of_a_rank():
    whole = rows_of(iter_batches(part, batch_size=100, columns=["y"]))
    options = {"batch_size": 100, "columns": ["y"], "world_size": 2, "uneven": "allow"}
    halves = [rows_of(iter_batches(part, rank=rank, **options)) for rank in range(2)]
    assert halves[0] + halves[1] == whole


def test_who_passes_a_reader_twice_is_told_by_its_emptiness_and_a_generator_too():
    """They are read where they stand, as any iterator."""
    generator = iter(NUMBERS.to_batches(3))
    assert len(list(iter_batches(generator, batch_size=20))) == 1
    with pytest.raises(ValueError, match="the source has no batches"):
        iter_batches(generator)


@pytest.mark.parametrize("options", [{}, {"transform": dict}, {"prefetch": 2, "transform": dict}])
def test_a_connection_takes_its_next_statement_once_the_batches_are_closed(options):
    connection = duckdb.connect()
    relation = connection.sql("SELECT range AS y FROM range(100000)")
    with iter_batches(relation, batch_size=10, **options) as batches:
        for batch in batches:
            assert len(np.asarray(batch["y"])) == 10
            break
    assert connection.sql("SELECT 42").fetchall() == [(42,)]
    for _ in iter_batches(relation, batch_size=10, **options):
        break
    assert connection.sql("SELECT 42").fetchall() == [(42,)]


@pytest.mark.parametrize("options", [{}, {"transform": dict}, {"prefetch": 2, "transform": dict}])
def test_after_the_end_and_after_closing_twice_there_is_nothing_more(options):
    batches = iter_batches(NUMBERS, batch_size=7, **options)
    assert len(list(batches)) == 3
    for _ in range(2):
        assert next(batches, "over") == "over"
        batches.close()
    with iter_batches(NUMBERS, batch_size=7, **options) as batches:
        next(batches)
        batches.close()
        assert list(batches) == []


def test_two_over_one_table_do_not_disturb_each_other():
    pairs = list(
        zip(
            iter_batches(NUMBERS, batch_size=7),
            iter_batches(NUMBERS, batch_size=7, prefetch=2),
            strict=True,
        )
    )
    assert [y_of([one]) for one, _ in pairs] == [y_of([other]) for _, other in pairs]


def test_a_list_of_batches_outlives_the_iterator():
    kept = list(iter_batches(NUMBERS.to_reader(max_chunksize=4), batch_size=7))
    assert rows_of(kept) == list(range(20))


def test_batches_are_neither_pickled_nor_copied():
    batches = iter_batches(NUMBERS, batch_size=7)
    for hand_over in pickle.dumps, copy.copy, copy.deepcopy:
        with pytest.raises(TypeError, match="batches are read once.*hand the Loader"):
            hand_over(batches)
    assert len(list(batches)) == 3


def test_a_loader_is_no_source():
    for opened in iter_batches, Loader:
        with pytest.raises(TypeError, match="loop over it, or pass its source"):
            opened(Loader(NUMBERS, batch_size=7))


def test_a_bar_of_progress_ends_with_the_rows(capsys):
    list(iter_batches(NUMBERS, batch_size=6, progress=True))
    assert "20.0/20.0" in capsys.readouterr().err
    # How many rows pass a filter is not known before, and a rank does not have all.
    for options in {"filter": ds.field("x") > 10}, {"rank": 0, "world_size": 2, "uneven": "allow"}:
        list(iter_batches(NUMBERS, batch_size=5, progress=True, **options))
        err = capsys.readouterr().err
        assert "row" in err
        assert "/20" not in err


def test_dictionaries_are_there_from_the_first_batch_to_after_the_end():
    chunks = [pa.array(words).dictionary_encode() for words in (["a", "b"], ["c", "a"])]
    table = pa.table({"w": pa.chunked_array(chunks), "v": pa.chunked_array(chunks)})
    options = {"physical": True, "batch_size": 2, "framework": "numpy"}
    batches = iter_batches(table, columns=["w"], label=["v"], format="matrix", **options)
    next(batches)
    assert pa.array(batches.dictionaries["w"]).to_pylist() == ["a", "b"]
    features, label = next(batches)
    assert list(batches) == []
    words = {name: pa.array(one).to_pylist() for name, one in batches.dictionaries.items()}
    assert [words["w"][code] for code in features[:, 0]] == ["c", "a"]
    assert [words["v"][code] for code in label] == ["c", "a"]


@pytest.mark.parametrize("options", [{}, {"prefetch": 2}, {"prefetch": 2, "transform": dict}])
def test_ctrl_c_in_the_loop_or_while_waiting_releases_the_source(options):
    signal.signal(signal.SIGINT, signal.default_int_handler)
    source = Source(chunks=None, before=lambda number: time.sleep(0.001))

    def loop():
        with iter_batches(source, batch_size=7, **options) as batches:
            for _ in batches:
                pass

    timer = threading.Timer(0.2, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        loop()
    timer.join()
    assert source.is_released()


@pytest.mark.parametrize("prefetch", [0, 2])
def test_a_refused_close_changes_nothing(prefetch):
    entered, go = threading.Event(), threading.Event()

    def before(number):
        if number == 3:
            entered.set()
            go.wait(10)

    batches = iter_batches(Source(chunks=5, before=before), batch_size=10, prefetch=prefetch)
    found = []
    thread = threading.Thread(target=lambda: found.extend(batches))
    thread.start()
    entered.wait(10)
    if prefetch == 0:
        with pytest.raises(ValueError, match="are being read already"):
            batches.close()
    go.set()
    thread.join()
    assert len(found) == 5


class Opened(IterableDataset):
    def __iter__(self):
        yield from iter_batches(NUMBERS, batch_size=4, framework="torch")


def test_workers_of_a_data_loader_have_each_row_once_together():
    loader = DataLoader(
        Opened(), batch_size=None, num_workers=2, multiprocessing_context="forkserver"
    )
    assert sorted(rows_of(loader)) == list(range(20))


def test_row_groups_of_a_file_are_divided_among_ranks(tmp_path):
    pq.write_table(NUMBERS, tmp_path / "x.parquet", row_group_size=5)
    options = {"batch_size": 5, "world_size": 2, "uneven": "allow"}
    file = tmp_path / "x.parquet"
    ranks = [rows_of(iter_batches(file, rank=rank, **options)) for rank in range(2)]
    assert ranks[0] + ranks[1] == list(range(20))


def test_importing_the_package_does_not_import_what_makes_batches():
    code = """
        import sys, arrow_dlpack
        later = {"loader", "epoch", "resume", "columns", "mix", "kinds"}
        print(sorted(name for name in later if f"arrow_dlpack._loader.{name}" in sys.modules))
        assert "Batches" in dir(arrow_dlpack)
        from arrow_dlpack import *
        assert Batches is arrow_dlpack.Batches
        """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_a_schema_without_rows_makes_no_batches():
    assert list(iter_batches(SCHEMA.empty_table(), batch_size=3)) == []
