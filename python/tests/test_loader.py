"""`Loader`: epochs, lengths, frameworks, transforms, pickling."""

import gc
import json
import multiprocessing
import os
import pickle
import subprocess
import sys
import textwrap
import threading
import time

import duckdb
import jax
import numpy as np
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
import torch
from arrow_dlpack import Loader, Mix, Tensor, iter_batches
from arrow_dlpack.torch import BatchDataset
from batch_sources import ROWS, TABLE, Source
from torch.utils.data import DataLoader

# In memory that is aligned as JAX wants it.
SMALL = pa.table({"x": pa.array(range(10), pa.float64()), "y": pa.array(range(10))})
CONTEXT = multiprocessing.get_context("forkserver")


def y_of(batch):
    features = batch[0] if isinstance(batch, tuple) else batch
    return np.asarray(features["y"] if isinstance(features, dict) else features).tolist()


def test_each_loop_is_an_epoch_over_all_rows():
    loader = Loader(SMALL, batch_size=4)
    for _ in range(3):
        assert [y_of(batch) for batch in loader] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert len(loader) == 3
    assert len(Loader(SMALL, batch_size=4, drop_last=True)) == 2
    assert [y_of(batch) for batch in Loader(SMALL)] == [list(range(10))]


def test_a_length_that_is_not_known_is_refused_with_a_way_out():
    for unknown in (
        Loader(SMALL),
        Loader(SMALL.to_reader(), batch_size=2),
        Loader(part, batch_size=2),
    ):
        with pytest.raises(TypeError, match="a batch_size in rows|how many rows it has"):
            len(unknown)
    # list() asks for a length, and goes on without.
    assert len(list(Loader(SMALL))) == 1


def part(index, count):
    return SMALL


def test_the_rows_of_a_filter_are_counted():
    options = {"batch_size": 3, "filter": pc.field("y") >= 5}
    assert len(Loader(SMALL, **options)) == 2
    ranks = [Loader(SMALL, rank=rank, world_size=2, uneven="drop", **options) for rank in range(2)]
    assert [rows(loader) for loader in ranks] == [[[5, 6, 7]], [[8, 9]]]


def test_the_length_is_that_of_a_whole_epoch():
    loader = Loader(SMALL, batch_size=4)
    next(iter(loader))
    loader.load_state_dict(loader.state_dict())
    assert (len(loader), loader.state_dict()["batch"], len(rows(loader))) == (3, 1, 2)


def test_frameworks_have_their_own_tensors():
    options = {"batch_size": 4, "label": "y", "nulls": "mask"}
    for framework, kind in [
        (None, Tensor),
        ("torch", torch.Tensor),
        ("jax", jax.Array),
        ("numpy", np.ndarray),
        (np.from_dlpack, np.ndarray),
    ]:
        features, label = next(iter(Loader(SMALL, framework=framework, **options)))
        assert list(features) == ["x"]
        assert all(isinstance(part, kind) for part in (*features["x"], *label))
        matrix = next(iter(Loader(SMALL, framework=framework, format="matrix", dtype="float32")))
        assert isinstance(matrix, kind)
        assert tuple(matrix.shape) == (10, 2)
    leaves = jax.tree.leaves(next(iter(Loader(SMALL, framework="jax", **options))))
    assert [leaf.shape for leaf in leaves] == [(4,)] * 4


def test_memory_is_writable_where_the_framework_would_write_to_it_anyway():
    """PyTorch writes to read-only memory, and JAX gives it away."""
    address = SMALL["x"].chunk(0).buffers()[1].address
    for framework in "torch", "jax", torch.from_dlpack:
        batch = next(iter(Loader(SMALL, framework=framework)))["x"]
        assert pointer(batch) != address
        shared = next(iter(Loader(SMALL, framework=framework, writable=False)))["x"]
        assert pointer(shared) == address
        del batch, shared
    shared = next(iter(Loader(SMALL, framework="numpy")))["x"]
    assert (shared.ctypes.data, shared.flags.writeable) == (address, False)
    assert next(iter(Loader(SMALL, framework="numpy", writable=True)))["x"].flags.writeable
    assert next(iter(Loader(SMALL)))["x"].readonly
    assert not next(iter(Loader(SMALL, writable=True)))["x"].readonly
    with pytest.raises(TypeError, match="say writable=False as well"):
        Loader(SMALL, framework="torch", copy=False)
    for batch in Loader(SMALL, framework="torch", batch_size=3):
        batch["x"].fill_(7)
    assert SMALL["x"].to_pylist() == list(range(10))


def pointer(tensor):
    return tensor.data_ptr() if hasattr(tensor, "data_ptr") else tensor.unsafe_buffer_pointer()


@pytest.mark.parametrize("prefetch", [0, 2])
def test_a_transform_makes_the_batch_where_it_is_made(prefetch):
    threads = set()

    def transform(batch):
        threads.add(threading.get_ident())
        return y_of(batch)

    loader = Loader(SMALL, batch_size=4, transform=transform, prefetch=prefetch)
    for _ in range(2):
        assert list(loader) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert (threading.get_ident() in threads) == (prefetch == 0)


@pytest.mark.parametrize("prefetch", [0, 2])
def test_an_error_of_a_transform_comes_in_the_place_of_its_batch(prefetch):
    def transform(batch):
        found = y_of(batch)
        if 4 in found:
            raise OSError("no such image")
        return found

    batches = iter(Loader(SMALL, batch_size=4, transform=transform, prefetch=prefetch))
    assert next(batches) == [0, 1, 2, 3]
    with pytest.raises(OSError, match="no such image"):
        next(batches)
    assert list(batches) == []


def test_after_an_error_the_state_is_that_before_its_batch():
    broken = [True]

    def transform(batch):
        if broken[0] and 4 in y_of(batch):
            raise OSError("the disk is on fire")
        return y_of(batch)

    loader = Loader(SMALL, batch_size=4, transform=transform)
    epoch = iter(loader)
    next(epoch)
    with pytest.raises(OSError, match="the disk"):
        next(epoch)
    assert list(epoch) == []
    broken[0] = False
    loader.load_state_dict(loader.state_dict())
    assert list(loader) == [[4, 5, 6, 7], [8, 9]]


@pytest.mark.parametrize("prefetch", [0, 2])
@pytest.mark.parametrize("transform", [None, dict])
def test_leaving_early_releases_the_source(prefetch, transform):
    options = {"batch_size": 10, "prefetch": prefetch, "transform": transform}
    source = Source(chunks=None)
    with iter(Loader(source, **options)) as batches:
        next(batches)
    assert source.is_released()
    assert list(batches) == []
    source = Source(chunks=None)
    for _ in Loader(source, **options):
        break
    gc.collect()
    assert source.is_released()
    connection = duckdb.connect()
    for _ in range(5):
        rows = connection.sql("select range as y from range(1000000000)")
        with iter(Loader(rows, **options)) as batches:
            next(batches)
        assert connection.sql("select 42").fetchall() == [(42,)]


def test_so_many_transformed_batches_are_made_ahead_and_no_more():
    made = []
    batches = iter(Loader(SMALL, batch_size=1, transform=made.append, prefetch=2))
    next(batches)
    deadline = time.monotonic() + 10
    while len(made) < 4 and time.monotonic() < deadline:
        time.sleep(0.001)
    time.sleep(0.1)
    assert len(made) == 4  # handed out, queued, queued, and waiting for a place
    batches.close()


def test_the_interpreter_ends_with_a_transform_on_its_way():
    code = """
        import pyarrow as pa
        from arrow_dlpack import Loader
        loader = Loader(pa.table({"x": range(1000)}), batch_size=1, transform=dict, prefetch=2)
        held = iter(loader)
        next(held)
        """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, timeout=60)


def test_a_filter_leaves_rows_out():
    options = {"batch_size": 3, "columns": ["x"], "filter": pc.field("y") >= 7}
    for source in SMALL, SMALL.to_reader(), pa.record_batch(SMALL.to_batches()[0]):
        found = [np.asarray(batch["x"]).tolist() for batch in Loader(source, **options)]
        assert found == [[7, 8, 9]]


def test_several_labels_are_a_dict():
    table = SMALL.append_column("z", SMALL["y"])
    for columns in None, ["x"], {"x": None}:
        for label in ["y", "z"], {"y": None, "z": None}:
            loader = Loader(table, batch_size=4, columns=columns, label=label, framework="numpy")
            features, labels = next(iter(loader))
            assert (list(features), list(labels)) == (["x"], ["y", "z"])
            assert labels["z"].tolist() == [0, 1, 2, 3]
    features, label = next(iter(Loader(table, columns=["x"], label=["y"])))
    assert isinstance(label, Tensor)


def test_dictionaries_are_those_of_the_epoch():
    words = pa.table({"w": pa.array(["a", "b", "a"]).dictionary_encode()})
    batches = iter(Loader(words, batch_size=2, physical=True))
    assert [np.asarray(batch["w"]).tolist() for batch in batches] == [[0, 1], [0]]
    assert pa.array(batches.dictionaries["w"]).to_pylist() == ["a", "b"]


def test_loaders_are_pickled_with_where_they_stand():
    options = {"batch_size": 3, "shuffle": 5, "seed": 1, "framework": "numpy"}
    loader = Loader(SMALL, **options)
    list(loader)
    copy = pickle.loads(pickle.dumps(loader))
    assert rows(copy) == rows(loader)
    fragments = list(ds.dataset(SMALL).get_fragments())
    alone = [SMALL.to_reader(), duckdb.sql("select 1 as x"), (x for x in [SMALL])]
    for source in *alone, [SMALL, SMALL.to_reader()], [duckdb.sql("select 1 as x")], fragments:
        with pytest.raises(TypeError, match="cannot be pickled.*pass a path"):
            pickle.dumps(Loader(source))


def test_the_filter_of_a_dataset_that_is_handed_on_is_the_loaders(tmp_path):
    pq.write_table(SMALL, tmp_path / "p.parquet")
    dataset, where = ds.dataset(tmp_path), pc.field("y") > 1
    filtered = dataset.filter(where)
    with pytest.raises(TypeError, match="pass the dataset without its filter, and that as filter="):
        pickle.dumps(Loader(filtered))
    loader = Loader(dataset, filter=where, framework="numpy", batch_size=3)
    expected = rows(Loader(filtered, framework="numpy", batch_size=3))
    assert rows(pickle.loads(pickle.dumps(loader))) == expected


def test_the_filter_of_one_dataset_of_a_mix_is_that_of_a_query(tmp_path):
    """A filter of the Loader would be of all sources."""
    pq.write_table(SMALL, tmp_path / "p.parquet")

    def loader(filtered):
        source = Mix([(filtered, 1), (SMALL, 1)])
        return Loader(source, columns=["y"], framework="numpy", batch_size=3)

    mixed = loader(ds.dataset(tmp_path).filter(pc.field("y") > 1))
    told = r"or polars.scan_parquet\(paths\).filter\(...\), in its place$"
    with pytest.raises(TypeError, match=told) as error:
        pickle.dumps(mixed)
    assert "filter= of the Loader" not in str(error.value)
    query = loader(polars.scan_parquet(tmp_path / "p.parquet").filter(polars.col("y") > 1))
    assert rows(pickle.loads(pickle.dumps(query))) == rows(mixed)


def rows(loader):
    return [np.asarray(batch["y"]).tolist() for batch in loader]


@pytest.mark.parametrize("workers", [0, 2])
def test_loader_torch_is_the_data_loader(workers):
    loader = Loader(TABLE, batch_size=64, label="y", shuffle=200, seed=3)
    context = {"multiprocessing_context": CONTEXT} if workers else {}
    batches = loader.torch(num_workers=workers, **context)
    assert isinstance(batches, DataLoader)
    epochs = []
    for _ in range(2):
        epochs.append([label.tolist() for _, label in batches])
        assert sorted(row for batch in epochs[-1] for row in batch) == list(range(0, 3 * ROWS, 3))
    assert epochs[0] != epochs[1]
    again = Loader(TABLE, batch_size=64, label="y", shuffle=200, seed=3)
    batches = again.torch(num_workers=workers, **context)
    assert [[label.tolist() for _, label in batches] for _ in range(2)] == epochs
    assert len(batches) == 16


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize(
    ("framework", "kind"),
    [("numpy", np.ndarray), (np.asarray, np.ndarray), ("torch", torch.Tensor)],
)
def test_loader_torch_leaves_what_the_framework_made(workers, framework, kind):
    loader = Loader(TABLE, batch_size=500, label="y", framework=framework, writable=False)
    context = {"multiprocessing_context": CONTEXT} if workers else {}
    for features, label in loader.torch(num_workers=workers, **context):
        assert {type(part) for part in [*features.values(), label]} == {kind}


def test_loader_torch_leaves_jaxs_arrays_and_what_a_transform_made_of_them():
    jaxs = Loader(SMALL, batch_size=4, framework="jax")
    assert isinstance(next(iter(jaxs.torch()))["y"], jax.Array)
    named = Loader(SMALL, batch_size=4, framework="numpy", transform=lambda batch: [batch["y"], 1])
    first = next(iter(named.torch()))
    assert (type(first), type(first[0]), first[1]) == (list, np.ndarray, 1)


def test_pairs_stay_tuples():
    options = {"batch_size": 4, "label": "y", "nulls": "mask"}
    (features, label) = pair = next(iter(Loader(SMALL, **options).torch()))
    assert (type(pair), type(features["x"]), type(label)) == (tuple, tuple, tuple)
    made = next(iter(Loader(SMALL, batch_size=4, transform=lambda _: (np.ones(2), "a")).torch()))
    assert isinstance(made[0], torch.Tensor)
    assert made[1] == "a"


def test_a_dataset_wraps_a_loader():
    loader = Loader(SMALL, batch_size=4)
    assert isinstance(next(iter(BatchDataset(loader)))["x"], torch.Tensor)
    assert BatchDataset(loader).loader is loader
    with pytest.raises(TypeError, match="pass it alone"):
        BatchDataset(loader, batch_size=3)
    with pytest.raises(TypeError, match="say writable=False as well"):
        BatchDataset(Loader(SMALL, copy=False))
    (batch, *_) = Loader(SMALL, framework="numpy", copy=False).torch()
    assert isinstance(batch["x"], np.ndarray)
    assert not batch["x"].flags.writeable


def test_unseeded_epochs_differ_and_seeded_runs_repeat():
    options = {"batch_size": 10, "shuffle": 10}
    for framework in None, "torch":
        loader = Loader(SMALL, framework=framework, **options)
        assert len({str(rows(loader)) for _ in range(5)}) > 1
    first, second = (Loader(SMALL, seed=4, **options) for _ in range(2))
    epochs = [rows(first) for _ in range(4)]
    assert len({str(epoch) for epoch in epochs}) == 4
    assert [rows(second) for _ in range(4)] == epochs
    second.set_epoch(2)
    assert rows(second) == epochs[2]
    assert rows(second) == epochs[3]


def test_what_is_read_once_has_one_epoch():
    for source in SMALL.to_reader(), iter(SMALL.to_batches()):
        loader = Loader(source, batch_size=5)
        assert len(list(loader)) == 2
        with pytest.raises(TypeError, match="is read once"):
            iter(loader)


def test_progress_counts_rows(capsys):
    assert len(list(Loader(SMALL, batch_size=4, progress=True))) == 3
    assert "10.0/10.0" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"framework": "keras"}, ValueError, 'framework must be "torch", "jax", "numpy" or'),
        ({"uneven": "pad"}, ValueError, 'uneven must be "drop", "repeat" or "allow"'),
        ({"rank": 1}, TypeError, "rank and world_size belong together"),
        ({"rank": 2, "world_size": 2}, ValueError, "rank must be below world_size"),
        ({"rank": "auto", "world_size": 2}, TypeError, "leave world_size out"),
        ({"columns": {"x": "pad"}}, TypeError, 'column "x" may become Pad'),
        ({"columns": [1]}, TypeError, "columns must be a list of names, and names are texts"),
        ({"label": 3}, TypeError, "label must be the name of a column, or several, got 3"),
        ({"shuffle": 3}, TypeError, "shuffle needs a batch_size"),
        ({"size": 3}, TypeError, "unexpected keyword argument 'size'"),
        ({"num_workers": 2}, TypeError, "argument 'num_workers': Loader(...).torch(num_workers="),
        ({"columns": {"x"}}, TypeError, "got a set, which has no order: sorted(x) is a list"),
        ({"label": frozenset("x")}, TypeError, "got a set, which has no order: sorted(x)"),
        ({"columns": {"x": 1}.keys()}, TypeError, "list of names, got dict_keys(['x']): list(x)"),
        ({"label": iter(["x"])}, TypeError, "or several, got <list_iterator"),
    ],
)
def test_wrong_arguments_are_named(options, kind, words):
    with pytest.raises(kind) as caught:
        Loader(SMALL, **options)
    assert words in str(caught.value)


@pytest.mark.parametrize("call", [Loader, iter_batches, BatchDataset])
def test_options_without_a_keyword_are_refused(call):
    with pytest.raises(TypeError, match=r"by keywords, such as batch_size=, and got 32 without"):
        call(SMALL, 32)


def test_states_are_json():
    loader = Loader(SMALL, batch_size=2, shuffle=4)
    next(iter(loader))
    assert len(json.dumps(loader.state_dict())) < 1000


@pytest.mark.parametrize("prefetch", [0, 2])
def test_a_transform_cannot_end_an_epoch_or_wait_for_it(prefetch):
    options = {"batch_size": 3, "prefetch": prefetch}
    ends = Loader(TABLE, transform=lambda batch: next(iter([])), **options)
    with pytest.raises(RuntimeError, match="transform raised StopIteration"):
        list(ends)
    ends = Loader(TABLE, framework=lambda tensor: next(iter([])), **options)
    with pytest.raises(RuntimeError, match="framework raised StopIteration"):
        list(ends)
    epochs, is_there = [], threading.Event()
    waits = Loader(TABLE, transform=lambda _: is_there.wait() and next(epochs[0]), **options)
    epochs.append(iter(waits))
    is_there.set()
    with pytest.raises(ValueError, match="own batches|being read already"):
        next(epochs[0])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.filterwarnings("ignore:.*fork")
def test_a_forked_process_does_not_go_on_with_an_epoch():
    epoch = iter(Loader(TABLE, batch_size=2, prefetch=2, transform=lambda batch: batch))
    next(epoch)
    child = os.fork()
    if child == 0:
        try:
            next(epoch)
        except RuntimeError as error:
            os._exit(0 if "before the fork" in str(error) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    epoch.close()


def test_a_shuffle_draws_rows_without_values():
    table = pa.table(
        {
            "a": pa.array([[]] * 5, pa.list_(pa.int16(), 0)),
            "b": pa.array([b""] * 5, pa.binary(0)),
            "y": range(5),
        }
    )
    batches = list(Loader(table, batch_size=2, shuffle=3, seed=1, framework="numpy"))
    assert [batch["a"].shape for batch in batches] == [(2, 0), (2, 0), (1, 0)]
    assert sorted(y for batch in batches for y in batch["y"].tolist()) == list(range(5))
    assert len(Loader(table.to_pandas(), batch_size=2)) == 3
