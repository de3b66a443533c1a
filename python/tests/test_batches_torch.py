"""Batches in PyTorch's DataLoader, with workers of both kinds."""

import inspect
import itertools
import multiprocessing
import subprocess
import sys
import textwrap
from typing import get_origin, get_type_hints

import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
import torch
from arrow_dlpack import Batches, Loader, Tensor, iter_batches
from arrow_dlpack._loader.options import (
    AnyDatasetKeywords,
    AnyLoaderKeywords,
    DatasetKeywords,
    LoaderKeywords,
    LoaderOptions,
)
from arrow_dlpack.torch import BatchDataset
from batch_sources import ROWS, TABLE, first_file, first_table, part
from torch.utils.data import DataLoader

# This process has had every library in it, with their threads, and must not be forked: its workers
# are forked off another one, which has imported what they need, once.
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["arrow_dlpack.torch", "pyarrow.dataset", "torch.utils.data"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parquet")
    for at in range(0, ROWS, 250):
        pq.write_table(TABLE.slice(at, 250), folder / f"{at:03}.parquet", row_group_size=100)
    return folder


def loaded(dataset, workers=0, context=CONTEXT):
    """All batches, as lists of x, with the other columns checked."""
    found = []
    options = {"multiprocessing_context": context} if workers else {}
    for features, label in DataLoader(dataset, batch_size=None, num_workers=workers, **options):
        assert torch.equal(
            features["pair"], torch.stack([2 * label / 3, 2 * label / 3 + 1], 1).long()
        )
        assert torch.equal(features["x"] * 3, label)
        found.append(features["x"].int().tolist())
    return found


def test_the_loader_gets_torchs_tensors_over_arrows_memory():
    chunk = TABLE["x"].chunk(0)
    dataset = BatchDataset(TABLE, batch_size=64, label="y", writable=False)
    first, label = next(iter(DataLoader(dataset, batch_size=None)))
    assert first["x"].data_ptr() == chunk.buffers()[1].address
    assert (first["pair"].shape, label.dtype) == ((64, 2), torch.int64)
    matrix = BatchDataset(TABLE.drop("pair"), format="matrix", batch_size=64, nulls="mask")
    values, mask = next(iter(DataLoader(matrix, batch_size=None)))
    assert (values.shape, mask.dtype) == ((64, 2), torch.bool)


@pytest.mark.parametrize("prefetch", [0, 2])
@pytest.mark.parametrize("workers", [0, 1, 2])
def test_together_workers_have_each_row_once_in_batches_of_exactly_so_many(
    folder, workers, prefetch
):
    dataset = BatchDataset(ds.dataset(folder), batch_size=64, label="y", prefetch=prefetch)
    expected = [list(range(start, min(start + 64, ROWS))) for start in range(0, ROWS, 64)]
    for _ in range(2):
        assert sorted(loaded(dataset, workers)) == expected


@pytest.mark.parametrize("workers", [0, 2])
def test_shuffling_workers_have_each_row_once_and_each_epoch_another_order(folder, workers):
    dataset = BatchDataset(ds.dataset(folder), batch_size=64, label="y", shuffle=200)
    orders = []
    for seed in 1, 1, 2:
        torch.manual_seed(seed)
        for _ in range(2):
            batches = loaded(dataset, workers)
            assert sorted(map(len, batches)) == sorted([64] * 15 + [40])
            orders.append([row for batch in batches for row in batch])
            assert sorted(orders[-1]) == list(range(ROWS))
    assert orders[0] == orders[2]
    assert orders[1] == orders[3]
    assert len({tuple(order) for order in orders}) == 4


def test_epochs_of_persistent_workers_differ_and_repeat_with_torchs_seed():
    """They keep their seed, and their copy of the dataset."""

    def epochs(count, workers=2, **options):
        dataset = BatchDataset(TABLE, batch_size=64, shuffle=200, **options)
        loader = DataLoader(
            dataset,
            batch_size=None,
            num_workers=workers,
            persistent_workers=True,
            multiprocessing_context=CONTEXT,
        )
        return [tuple(torch.cat([batch["x"] for batch in loader]).tolist()) for _ in range(count)]

    found = []
    for _ in range(2):
        torch.manual_seed(1)
        found.append(epochs(3))
    assert all(sorted(epoch) == list(range(ROWS)) for epoch in found[0])
    assert len(set(found[0])) == 3
    assert found[0] == found[1]
    # With a seed the order goes by the number of the epoch.
    seeded = epochs(2, workers=1, seed=7)
    assert len(set(seeded)) == 2
    assert epochs(2, workers=1, seed=7) == seeded


def test_ranks_of_one_seed_have_each_row_once_and_draw_differently():
    """In each of their epochs."""
    ranks = []
    for rank in range(2):
        torch.manual_seed(3)  # as distributed programs do
        dataset = BatchDataset(
            TABLE, batch_size=50, shuffle=500, rank=rank, world_size=2, label="y"
        )
        ranks.append([loaded(dataset) for _ in range(2)])
    places = []
    for epoch in zip(*ranks, strict=True):
        assert sorted(row for rank in epoch for batch in rank for row in batch) == list(range(ROWS))
        places += [
            tuple(row // 100 * 50 + row % 50 for batch in rank for row in batch) for rank in epoch
        ]
    assert len(set(places)) == 4


def test_the_order_is_drawn_on_the_cpu_whatever_the_default_device():
    dataset = BatchDataset(TABLE, batch_size=64, shuffle=200)
    with torch.device("meta"):
        assert len(list(dataset)) == 16


def test_a_seed_is_the_same_order_in_each_run_and_another_in_each_worker(folder):
    dataset = BatchDataset(ds.dataset(folder), batch_size=100, label="y", shuffle=500, seed=7)
    first, second = loaded(dataset, 2), loaded(dataset, 2)
    assert first == second
    # Which places in its part each worker drew first.
    places = [[row // 200 * 100 + row % 100 for row in batch] for batch in first[:2]]
    assert places[0] != places[1]


def test_spawned_workers_are_handed_the_source(folder):
    dataset = BatchDataset(ds.dataset(folder), batch_size=250, label="y", prefetch=1)
    assert loaded(dataset, workers=1, context="spawn")[-1] == list(range(750, 1000))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_function_gives_each_worker_its_part(workers):
    found = loaded(BatchDataset(part, batch_size=100, label="y"), workers)
    assert sorted(itertools.chain(*found)) == list(range(ROWS))


@pytest.mark.parametrize(("source", "columns"), [(first_file, ["x"]), (first_table, None)])
def test_more_workers_than_files_are_idle(source, columns):
    dataset = BatchDataset(source, columns=columns)
    loader = DataLoader(dataset, batch_size=None, num_workers=2, multiprocessing_context=CONTEXT)
    assert [batch["x"].tolist() for batch in loader] == [[1, 2, 3]]


def test_no_files_at_all_are_an_error():
    for source in ds.dataset([]), lambda index, count: ds.dataset([]):
        with pytest.raises(ValueError, match="the dataset has no columns: was it made of no files"):
            list(BatchDataset(source, columns=["x"]))

    def nothing(index, count):
        raise OSError("nothing to read")

    with pytest.raises(OSError, match="nothing to read") as caught:
        list(BatchDataset(nothing))
    assert caught.value.__notes__ == ["in the function for part 0 of 1; None is one without rows"]


@pytest.mark.parametrize("workers", [0, 1])
def test_batches_of_batches_are_refused(workers):
    """They come of a DataLoader whose batch_size was forgotten."""
    dataset = BatchDataset(TABLE, batch_size=100)
    options = {"multiprocessing_context": CONTEXT} if workers else {}
    loader = DataLoader(dataset, num_workers=workers, **options)
    words = r"yields batches already, .*: pass batch_size=None to DataLoader, or use Loader\.torch"
    with pytest.raises(ValueError, match=words):
        next(iter(loader))


def test_batches_can_be_collated_on_purpose():
    dataset = BatchDataset(TABLE, batch_size=100)
    (whole,) = DataLoader(dataset, batch_size=10, collate_fn=together)
    assert whole.tolist() == TABLE["x"].to_pylist()

    class Rows(torch.utils.data.IterableDataset):
        def __iter__(self):
            for batch in dataset:
                yield from batch["x"]

    assert next(iter(DataLoader(Rows(), batch_size=7))).tolist() == list(range(7))


def together(batches):
    return torch.cat([batch["x"] for batch in batches])


def test_frames_of_polars_are_sources_too():
    dataset = BatchDataset(pl.DataFrame(TABLE.drop("pair")), batch_size=100, label="y")
    found = [label for _, label in DataLoader(dataset, batch_size=None)]
    assert torch.cat(found).tolist() == TABLE["y"].to_pylist()


def test_what_can_be_read_only_once_is_refused_in_a_worker():
    """In a fork: spawned workers cannot even be handed one."""
    run(
        """
        dataset = BatchDataset(table.to_reader(), batch_size=10)
        assert len(list(DataLoader(dataset, batch_size=None))) == 10
        dataset = BatchDataset(table.to_reader(), batch_size=10)
        loader = DataLoader(dataset, batch_size=None, num_workers=2, multiprocessing_context="fork")
        try:
            list(loader)
        except TypeError as error:
            assert "a reader is read once" in str(error)
        else:
            raise AssertionError
        """
    )


def test_what_can_be_read_only_once_has_no_second_epoch():
    dataset = BatchDataset(TABLE.select(["x"]).to_reader(), batch_size=100)
    assert len(together(DataLoader(dataset, batch_size=None))) == len(TABLE)
    with pytest.raises(TypeError, match="a reader is read once"):
        next(iter(DataLoader(dataset, batch_size=None)))


def test_workers_may_be_forked_while_batches_are_read_ahead():
    run(
        """
        from arrow_dlpack import iter_batches
        ours = iter_batches(table, batch_size=10, prefetch=2)
        next(ours)
        dataset = BatchDataset(table, batch_size=10, prefetch=2)
        loader = DataLoader(dataset, batch_size=None, num_workers=2, multiprocessing_context="fork")
        for _ in range(3):
            found = torch.cat([batch["x"] for batch in loader])
            assert sorted(found.tolist()) == list(range(100))
        # And leaving early.
        for _ in loader:
            break
        del loader
        assert len(list(ours)) == 9
        """
    )


def test_an_error_in_a_worker_is_raised():
    table = pa.table({"x": [1.0] * 50 + [None] + [1.0] * 50})
    loader = DataLoader(
        BatchDataset(table, batch_size=10),
        batch_size=None,
        num_workers=1,  # PyTorch waits seconds for each that has failed
        multiprocessing_context=CONTEXT,
    )
    with pytest.raises(Exception, match="1 null in 10 values"):
        list(loader)


def test_editors_see_the_keywords():
    """In the overloads, which take those of the signatures."""
    loader = inspect.signature(Loader).parameters.keys() - {"source", "format", "label", "nulls"}
    assert set(get_type_hints(LoaderKeywords)) == loader
    assert set(get_type_hints(AnyLoaderKeywords)) == loader - {"transform"}  # of the overloads
    dataset = loader - {"framework", "progress"}
    assert set(get_type_hints(DatasetKeywords)) == dataset
    assert set(get_type_hints(AnyDatasetKeywords)) == dataset
    assert len(loader) + 3 == 21
    assert get_origin(Batches[Tensor]) is Batches


@pytest.mark.parametrize("keywords", [AnyLoaderKeywords, AnyDatasetKeywords])
def test_editors_see_the_types_of_the_keywords(keywords):
    options = get_type_hints(LoaderOptions)
    for name, kind in get_type_hints(keywords).items():
        assert kind == options[name], name


@pytest.mark.parametrize(
    ("function", "without"), [(iter_batches, set()), (BatchDataset, {"framework", "progress"})]
)
def test_signatures_have_the_keywords_of_a_loader(function, without):
    loader, other = (
        {name: (one.kind, one.default) for name, one in inspect.signature(of).parameters.items()}
        for of in (Loader, function)
    )
    assert other == {name: one for name, one in loader.items() if name not in without}


def test_a_keyword_that_is_meant_is_named():
    with pytest.raises(TypeError, match=r"argument 'bath_size'. Did you mean 'batch_size'\?$"):
        iter_batches(TABLE, bath_size=3)


def test_wrong_arguments_are_named():
    with pytest.raises(TypeError, match="unexpected keyword argument 'progress'"):
        BatchDataset(TABLE, progress=True)
    with pytest.raises(TypeError, match="unexpected keyword argument 'size'"):
        BatchDataset(TABLE, size=3)
    with pytest.raises(TypeError, match="say writable=False as well"):
        BatchDataset(TABLE, copy=False)
    with pytest.raises(TypeError, match="^drop_last needs a batch_size$"):
        list(BatchDataset(TABLE, drop_last=True))


@pytest.mark.parametrize("workers", [0, 2])
def test_of_several_ranks_each_has_its_part(workers):
    options = {"batch_size": 30, "label": "y"}
    parts = [
        BatchDataset(TABLE, rank=rank, world_size=3, uneven="allow", **options) for rank in range(3)
    ]
    found = [row for part in parts for batch in loaded(part, workers) for row in batch]
    assert sorted(found) == list(range(ROWS))


def test_the_package_does_without_torch():
    code = """
        import sys
        sys.modules["torch"] = None
        import arrow_dlpack, pyarrow as pa
        assert len(list(arrow_dlpack.iter_batches(pa.table({"x": [1, 2, 3]}), batch_size=2))) == 2
        """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)


def run(code):
    """In a process that has no other library's threads."""
    head = """
        import numpy as np, pyarrow as pa, torch
        from arrow_dlpack.torch import BatchDataset
        from torch.utils.data import DataLoader
        torch.set_num_threads(1)
        table = pa.table({"x": np.arange(100.0)})
        """
    code = textwrap.dedent(head) + textwrap.dedent(code)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr


def test_a_loader_whose_workers_were_left_early_has_no_state(tmp_path):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"x": range(160)}), path, row_group_size=20)
    loader = Loader(path, batch_size=8)
    workers = loader.torch(num_workers=1)
    for is_begun in False, True:
        batches = iter(workers)
        if is_begun:
            next(batches)
        for _ in "an epoch in progress", "one that is left":
            with pytest.raises(TypeError, match="workers make the"):
                loader.state_dict()
            batches = None
        loader.set_epoch(1)
        assert loader.state_dict()["epoch"] == 1
    assert len(list(workers)) == 20
    assert (loader.state_dict()["epoch"], loader.state_dict()["batch"]) == (2, 0)
