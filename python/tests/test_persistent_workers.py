"""Workers that persist do what `set_epoch` and `load_state_dict` say where the DataLoader is."""

import copy
import functools
import multiprocessing
import os
import pickle
import subprocess
import sys
import textwrap
import time

import numpy as np
import pyarrow as pa
import pytest
import torch
from arrow_dlpack import Loader
from arrow_dlpack.torch import BatchDataset, EpochLoader
from torch.utils.data import ChainDataset, DataLoader, IterableDataset, get_worker_info
from torchdata.stateful_dataloader import StatefulDataLoader

TABLE = pa.table({"y": np.arange(100)})
OPTIONS = {"batch_size": 10, "shuffle": 100, "seed": 1}
# Quicker than workers that are spawned, which get the dataset in the same way.
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["arrow_dlpack.torch", "pyarrow.dataset", "torch.utils.data"])
PERSISTENT = {"persistent_workers": True, "multiprocessing_context": CONTEXT}


def run(batches):
    return [tuple(batch["y"].tolist()) for batch in batches]


def persistent(dataset, workers=2, context=CONTEXT, of=DataLoader, **options):
    return of(
        dataset,
        batch_size=None,
        num_workers=workers,
        persistent_workers=True,
        multiprocessing_context=context,
        **options,
    )


def shut_down(batches):
    """Or PyTorch waits 5 seconds for each worker where an error has made a cycle of references."""
    batches._iterator._shutdown_workers()


@pytest.fixture(scope="module")
def epochs():
    """Those of two workers that are started for each."""
    dataset, found = BatchDataset(TABLE, **OPTIONS), []
    options = {"num_workers": 2, "multiprocessing_context": CONTEXT}
    for epoch in range(6):
        dataset.set_epoch(epoch)
        found.append(run(DataLoader(dataset, batch_size=None, **options)))
        assert sorted(sum(found[-1], ())) == list(range(100))
    assert len(set(map(str, found))) == 6
    return found


def within(epoch=0, count=3):
    """A state within an epoch, and the batches that follow."""
    loader = Loader(TABLE, **OPTIONS, framework="torch")
    loader.set_epoch(epoch)
    batches = iter(loader)
    for _ in range(count):
        next(batches)
    return loader.state_dict(), run(batches)


def test_spawned_workers_of_a_loader_follow_it(epochs):
    loader = Loader(TABLE, **OPTIONS)
    batches = loader.torch(num_workers=2, persistent_workers=True, prefetch_factor=3)
    assert [run(batches) for _ in range(2)] == epochs[:2]
    loader.set_epoch(0)
    assert [run(batches) for _ in range(2)] == epochs[:2]
    loader.load_state_dict({**loader.state_dict(), "epoch": 4})
    assert run(batches) == epochs[4]
    assert loader.state_dict()["epoch"] == 5
    batches.dataset.set_epoch(3)
    begun = iter(batches)
    next(begun)
    loader.set_epoch(2)
    assert run(begun) == epochs[3][1:]
    assert [run(batches) for _ in range(2)] == epochs[2:4]


@pytest.mark.parametrize("context", ["spawn", CONTEXT])
def test_workers_of_a_dataset_follow_it(epochs, context):
    dataset = BatchDataset(TABLE, **OPTIONS)
    batches, state = persistent(dataset, context=context), dataset.state_dict()
    for epoch in 2, 0, 0, 5:
        dataset.set_epoch(epoch)
        assert run(batches) == epochs[epoch]
    dataset.loader.set_epoch(1)  # a loader has workers of all its datasets
    assert [run(batches) for _ in range(3)] == epochs[1:4]
    dataset.load_state_dict({**state, "epoch": 3})
    assert [run(batches) for _ in range(2)] == epochs[3:5]


def test_forked_workers_follow_too():
    in_new_process(
        """
        def dataset_and_batches(**options):
            dataset = BatchDataset(table, **OPTIONS)
            options |= {"num_workers": 2, "multiprocessing_context": "fork"}
            return dataset, DataLoader(dataset, batch_size=None, **options)

        def epoch(dataset, batches, number):
            dataset.set_epoch(number)
            return run(batches)

        whole, ours = dataset_and_batches(), dataset_and_batches(persistent_workers=True)
        for number in 2, 0, 0, 1:
            assert epoch(*whole, number) == epoch(*ours, number)
        for dataset, batches in whole, ours:
            try:
                state = dataset.state_dict()
            except TypeError as error:
                assert "each has a state" in str(error)
                state = None
            assert state is None
            dataset.set_epoch(3)
            assert dataset.state_dict()["epoch"] == 3
        """
    )


def test_forked_ranks_tell_their_own_workers_alone():
    """They have the memory of the process that they were forked off."""
    in_new_process(
        """
        dataset = BatchDataset(table, **OPTIONS)
        options = {"multiprocessing_context": "fork", "persistent_workers": True, "num_workers": 1}
        batches = DataLoader(dataset, batch_size=None, **options)
        first = run(batches)
        child = os.fork()
        if child == 0:
            theirs = DataLoader(dataset, batch_size=None, **options)
            second = run(theirs)
            dataset.set_epoch(4)
            fourth = run(theirs)
            dataset.set_epoch(0)
            os._exit(0 if run(theirs) == first == second != fourth else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert run(batches) != first, "it was told nothing"
        dataset.set_epoch(0)
        assert run(batches) == first
        """
    )


def rank(which, dataset, found):
    batches = persistent(dataset, workers=1)
    for epoch in (0, 1) if which else (0, 4):
        dataset.set_epoch(epoch)
        batch = run(batches)
        found.put((which, epoch, batch))


def test_spawned_ranks_tell_their_own_workers_alone():
    """They are handed one dataset."""
    dataset, found = BatchDataset(TABLE, **OPTIONS), CONTEXT.Queue()
    ranks = [CONTEXT.Process(target=rank, args=(which, dataset, found)) for which in range(2)]
    for process in ranks:
        process.start()
    dataset.set_epoch(5)
    for _ in range(4):
        _, epoch, batches = found.get(timeout=60)
        loader = Loader(TABLE, **OPTIONS, framework="torch")
        loader.set_epoch(epoch)
        assert batches == run(loader)
    for process in ranks:
        process.join()


@pytest.mark.parametrize("of", ["loader", "dataset"])
def test_one_worker_goes_on_within_an_epoch(of):
    loader = Loader(TABLE, **OPTIONS)
    dataset = BatchDataset(loader)
    batches = loader.torch(1, **PERSISTENT) if of == "loader" else persistent(dataset, 1)
    whole = Loader(TABLE, **OPTIONS, framework="torch")
    assert [run(batches) for _ in range(2)] == [run(whole) for _ in range(2)]
    state, rest = within(epoch=4)
    for told in (loader, dataset) * 2:
        told.load_state_dict(state)
        assert run(batches) == rest
        whole.set_epoch(5)
        assert run(batches) == run(whole)
    # The epoch of a state goes on, and any other begins at its start.
    dataset.load_state_dict(state)
    dataset.set_epoch(4)
    assert run(batches) == rest
    dataset.load_state_dict(state)
    dataset.set_epoch(5)
    whole.set_epoch(5)
    assert run(batches) == run(whole)
    # It has gone on: the epoch from its start.
    dataset.set_epoch(4)
    whole.set_epoch(4)
    assert run(batches) == run(whole)


@pytest.mark.parametrize("is_running", [True, False])
@pytest.mark.parametrize("of", ["loader", "dataset"])
def test_a_state_of_one_part_is_refused_by_others_until_another_is_told(epochs, of, is_running):
    loader = Loader(TABLE, **OPTIONS)
    batches = loader.torch(2, **PERSISTENT) if of == "loader" else persistent(BatchDataset(loader))
    if is_running:
        assert run(batches) == epochs[0]
    state, _ = within()
    loader.load_state_dict(state)
    for _ in range(2):
        with pytest.raises(ValueError, match="of part 0 of 1, and this is part . of 2"):
            run(batches)
        assert loader.state_dict() == state
    loader.set_epoch(2)
    assert [run(batches) for _ in range(2)] == epochs[2:4]
    shut_down(batches)


class Late(BatchDataset):
    """PyTorch's main process goes on before its workers have begun an epoch: some begin late."""

    def __init__(self, source, late, **options):
        super().__init__(source, **options)
        self.late = late

    def __iter__(self):
        if (worker := get_worker_info()) and worker.id in self.late:
            time.sleep(0.3)
        return super().__iter__()


@pytest.mark.parametrize(("context", "late"), [(CONTEXT, {1}), (CONTEXT, {0}), ("spawn", {1})])
def test_a_worker_that_begins_late_does_what_the_others_do(epochs, context, late):
    dataset = Late(TABLE, late, **OPTIONS)
    batches, state = persistent(dataset, context=context), dataset.state_dict()
    for tell in dataset.set_epoch, lambda epoch: dataset.load_state_dict({**state, "epoch": epoch}):
        assert next(iter(batches))["y"].tolist()
        tell(2)
        assert [run(batches) for _ in range(2)] == epochs[2:4]
        tell(1)
        begun = iter(batches)
        first = tuple(next(begun)["y"].tolist())
        tell(4)
        assert dataset.state_dict()["batch"] == 0
        assert [first, *run(begun)] == epochs[1]
        assert dataset.state_dict()["epoch"] == 4, "a late worker's mark is of the epoch before"
        assert run(batches) == epochs[4]
        next(iter(batches))
        next(iter(batches))
        tell(0)
        assert run(batches) == epochs[0]


@pytest.mark.parametrize("workers", [2, 3])
def test_a_worker_that_refuses_a_state_late_begins_no_later_epoch(workers):
    dataset = Late(TABLE, {workers - 1}, **OPTIONS)
    batches, whole = persistent(dataset, workers), BatchDataset(TABLE, **OPTIONS)
    run(batches)
    state, _ = within()
    for epoch in 2, 3:
        dataset.load_state_dict(state)
        for _ in range(2):
            with pytest.raises(ValueError, match="of part 0 of 1, and this is part 0 of"):
                run(batches)
        dataset.set_epoch(epoch)
        whole.set_epoch(epoch)
        options = {"num_workers": workers, "multiprocessing_context": CONTEXT}
        assert run(batches) == run(DataLoader(whole, batch_size=None, **options))
    shut_down(batches)


class Within(IterableDataset):
    """Its n-th iteration is one of the n-th dataset of a list."""

    def __init__(self, datasets):
        self.datasets = datasets

    def __iter__(self):
        self.datasets = [*self.datasets[1:], self.datasets[0]]
        yield from self.datasets[-1]


@pytest.mark.parametrize("tell", ["set_epoch", "load_state_dict"])
def test_datasets_within_another_follow_from_their_first_iteration_on(epochs, tell):
    first, second = (BatchDataset(TABLE, **OPTIONS) for _ in range(2))
    turns, chain = persistent(Within([first, second])), persistent(ChainDataset([first, second]))
    state = first.state_dict()
    for epoch in 3, 1, 1, 4:
        for dataset in first, second:
            getattr(dataset, tell)(epoch if tell == "set_epoch" else {**state, "epoch": epoch})
        assert run(turns) == epochs[epoch], "the second begins in the second epoch of the workers"
        assert sorted(run(chain)) == sorted(epochs[epoch] * 2)


def test_late_workers_of_a_loader_follow_it(epochs):
    loader = Loader(TABLE, **OPTIONS)
    options = {"batch_size": None, "num_workers": 2, **PERSISTENT}
    batches = EpochLoader(Late(loader, {0, 1}), **options)
    assert run(batches) == epochs[0]
    begun = iter(batches)
    loader.set_epoch(4)
    assert run(begun) == epochs[1]
    iter(batches)
    assert run(batches) == epochs[5], "the epoch that made no batch was the fourth"
    loader.set_epoch(2)
    next(iter(batches))
    assert run(batches) == epochs[3]


def test_late_workers_that_were_told_more_than_is_kept_say_so(epochs):
    dataset = Late(TABLE, {1}, **OPTIONS)
    batches = persistent(dataset)
    run(batches)
    dataset.set_epoch(1)
    begun = iter(batches)
    next(begun)
    for epoch in 3, 4, 2:
        dataset.set_epoch(epoch)
    with pytest.raises(RuntimeError, match="told twice or more while this worker began"):
        run(begun)
    assert [run(batches) for _ in range(2)] == epochs[2:4]
    shut_down(batches)


def test_late_workers_of_several_loaders_of_a_dataset(epochs):
    """Each DataLoader counts its own epochs."""
    dataset = Late(TABLE, {1}, **OPTIONS)
    first, second = persistent(dataset), persistent(dataset)
    assert [run(first) for _ in range(2)] == epochs[:2]
    for epoch in 3, 0:
        for one, other in (first, second), (second, first):
            next(iter(one))
            dataset.set_epoch(epoch)
            assert run(one) == epochs[epoch]
            assert run(other) == epochs[epoch]


@pytest.mark.parametrize("persists", [True, False])
@pytest.mark.parametrize("start", ["spawn", "forkserver"])
def test_a_dataset_whose_workers_make_batches_has_no_state_until_it_is_told_an_epoch(
    start, persists
):
    loader = Loader(TABLE, **OPTIONS)
    dataset = BatchDataset(loader)
    context = CONTEXT if start == "forkserver" else multiprocessing.get_context(start)
    batches = persistent(dataset, context=context)
    if not persists:
        batches = DataLoader(
            dataset, batch_size=None, num_workers=2, multiprocessing_context=context
        )
    assert dataset.state_dict()["epoch"] == 0
    for _ in range(2):
        epoch = iter(batches)
        next(epoch)
        for of in dataset, loader:
            with pytest.raises(TypeError, match=r"each has a state, .*after set_epoch\(n\)"):
                of.state_dict()
        for _ in epoch:
            pass
        with pytest.raises(TypeError, match="each has a state"):
            dataset.state_dict()
    # The way out: a state of an epoch's start, which any worker takes.
    dataset.set_epoch(3)
    state = dataset.state_dict()
    assert (state["epoch"], state["batch"]) == (3, 0)
    expected = run(batches)
    dataset.load_state_dict(state)
    assert dataset.state_dict() == state
    assert run(batches) == expected
    # An epoch of this process, or one that is counted here, has a state again.
    next(iter(dataset))
    assert dataset.state_dict()["batch"] == 1
    run(batches)
    run(loader.torch(1, multiprocessing_context=CONTEXT))
    assert loader.state_dict() == dataset.state_dict()
    assert loader.state_dict()["batch"] == 0


def test_a_rank_and_several_loaders_of_one_dataset():
    def of(workers, **options):
        dataset = BatchDataset(TABLE, **OPTIONS, rank=1, world_size=2)
        return dataset, DataLoader(dataset, batch_size=None, num_workers=workers, **options)

    theirs, whole = of(1, multiprocessing_context=CONTEXT)
    dataset, first = of(1, **PERSISTENT)
    second = persistent(dataset, 1, prefetch_factor=1)
    for epoch in 1, 0, 0:
        theirs.set_epoch(epoch)
        dataset.set_epoch(epoch)
        expected = run(whole)
        assert len(expected) == 5
        # At once.
        pairs = list(zip(first, second, strict=True))
        assert [run(batches) for batches in zip(*pairs, strict=True)] == [expected] * 2


def test_loaders_of_a_loader_count_its_epochs(epochs):
    loader = Loader(TABLE, **OPTIONS)
    first, second = (loader.torch(2, **PERSISTENT) for _ in range(2))
    pairs = [list(zip(first, second, strict=True)) for _ in range(2)]
    found = [run(batches) for pair in pairs for batches in zip(*pair, strict=True)]
    assert found == epochs[:4]
    assert run(first) == epochs[4]
    assert loader.state_dict()["epoch"] == 5


def some(failing, index, count):
    """The rows, unless a file says that they cannot be opened by this worker."""
    if failing.exists() and index == 1:
        raise OSError("the disk is on fire")
    return TABLE


def test_an_epoch_that_one_worker_cannot_open_ends_no_worker(tmp_path):
    failing = tmp_path / "failing"
    source = functools.partial(some, failing)
    batches = persistent(BatchDataset(source, **OPTIONS))
    expected = [run(batches) for _ in range(3)]
    batches = persistent(BatchDataset(source, **OPTIONS))
    assert run(batches) == expected[0]
    failing.touch()
    with pytest.raises(OSError, match="the disk is on fire"):
        run(batches)
    failing.unlink()
    assert run(batches) == expected[2]
    shut_down(batches)


def read_later(failing, index, count):
    """The error of a file comes where it is read, not where it is opened."""

    def batches():
        if failing.exists() and index == count - 1:
            raise OSError("the disk is on fire")
        yield TABLE.to_batches()[0]

    return pa.RecordBatchReader.from_batches(TABLE.schema, batches())


@pytest.mark.parametrize("of", [DataLoader, StatefulDataLoader])
def test_an_epoch_that_one_of_several_workers_cannot_read_is_over_for_all(tmp_path, of):
    failing = tmp_path / "failing"
    source = functools.partial(read_later, failing)
    dataset = BatchDataset(source, **OPTIONS)
    state, found = dataset.state_dict(), []
    for is_failing in False, True:
        batches = persistent(dataset, of=of)
        dataset.set_epoch(0)
        run(batches)
        dataset.load_state_dict({**state, "epoch": 3})
        if is_failing:
            failing.touch()
            with pytest.raises(ValueError, match="the disk is on fire"):
                run(batches)
            failing.unlink()
        else:
            run(batches)
        found.append(run(batches))
        shut_down(batches)
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("of", "is_running"),
    [("loader", False), ("persistent loader", True), ("dataset", False), ("dataset", True)],
)
def test_workers_refuse_a_state_of_other_data_each_time(of, is_running):
    other = Loader(pa.table({"y": np.arange(101)}), **OPTIONS, framework="torch")
    other.set_epoch(4)
    epoch = iter(other)
    next(epoch)
    state = other.state_dict()
    loader = Loader(TABLE, **OPTIONS)
    options = PERSISTENT if of == "persistent loader" else {"multiprocessing_context": CONTEXT}
    batches = persistent(BatchDataset(loader), 1) if of == "dataset" else loader.torch(1, **options)
    whole = Loader(TABLE, **OPTIONS, framework="torch")
    if is_running:
        assert run(batches) == run(whole)
    loader.load_state_dict(state)
    for _ in range(2):
        with pytest.raises(ValueError, match="it had 101 rows, and there are 100"):
            run(batches)
        assert loader.state_dict() == state
    loader.set_epoch(2)
    whole.set_epoch(2)
    assert [run(batches) for _ in range(2)] == [run(whole) for _ in range(2)]
    if of != "loader":
        shut_down(batches)


def test_torchdatas_loader_saves_and_loads_the_states_of_workers_that_persist(epochs):
    def stateful():
        dataset = BatchDataset(TABLE, **OPTIONS)
        return dataset, persistent(dataset, of=StatefulDataLoader)

    dataset, batches = stateful()
    assert [run(batches) for _ in range(2)] == epochs[:2]
    dataset.set_epoch(4)
    begun = iter(batches)
    assert run(next(begun) for _ in range(3)) == epochs[4][:3]
    state = batches.state_dict()
    assert run(begun) == epochs[4][3:]
    dataset, resumed = stateful()
    resumed.load_state_dict(state)
    assert run(resumed) == epochs[4][3:]
    assert run(resumed) == epochs[5]
    dataset.set_epoch(0)
    assert run(resumed) == epochs[0]


def new_workers(dataset, workers=1, context=CONTEXT, of=DataLoader):
    """A DataLoader whose workers are started for each epoch."""
    return of(dataset, batch_size=None, num_workers=workers, multiprocessing_context=context)


@pytest.mark.parametrize("context", ["spawn", CONTEXT])
def test_one_epoch_of_new_workers_goes_on_from_a_state(context):
    dataset, whole = BatchDataset(TABLE, **OPTIONS), Loader(TABLE, **OPTIONS, framework="torch")
    batches = new_workers(dataset, context=context)
    state, rest = within(epoch=4)
    whole.set_epoch(4)
    fourth, fifth = run(whole), run(whole)
    dataset.load_state_dict(state)
    torch.manual_seed(0)
    assert run(batches) == rest
    torch.manual_seed(0)  # which gives the workers the same seeds
    assert run(batches) == fourth
    assert run(batches) == fourth, "new workers do not count epochs"
    dataset.set_epoch(5)
    assert run(batches) == fifth
    for told in dataset, dataset.loader:
        told.load_state_dict(state)
        dataset.set_epoch(4)
        assert run(batches) == rest, "the epoch of a state goes on"
        dataset.set_epoch(4)
        assert dataset.state_dict()["batch"] == 0
        assert run(batches) == fourth, "and it went on"


def test_one_epoch_of_new_forked_workers_goes_on_from_a_state():
    in_new_process(
        """
        dataset = BatchDataset(table, **OPTIONS)
        options = {"num_workers": 1, "multiprocessing_context": "fork"}
        batches = DataLoader(dataset, batch_size=None, **options)
        whole = [batch["y"].tolist() for batch in dataset]
        dataset.set_epoch(0)
        epoch = iter(dataset)
        for _ in range(3):
            next(epoch)
        dataset.load_state_dict(dataset.state_dict())
        assert [run(batches) for _ in range(3)] == [whole[3:], whole, whole]
        """
    )


def test_a_state_behind_the_last_batch_gives_no_batch_once():
    dataset = BatchDataset(TABLE, **OPTIONS)
    epoch = iter(dataset)
    first = [tuple(next(epoch)["y"].tolist()) for _ in range(10)]
    state = dataset.state_dict()
    assert state["batch"] == 10
    dataset.load_state_dict(state)
    batches = new_workers(dataset)
    assert [run(batches) for _ in range(2)] == [[], first]


@pytest.mark.parametrize("is_one", [True, False])
@pytest.mark.parametrize("kinds", ["new new", "persistent new", "new persistent", "new none"])
def test_of_several_loaders_of_a_dataset_the_first_goes_on_from_a_state(kinds, is_one):
    """And of several datasets of a loader."""
    dataset = BatchDataset(TABLE, **OPTIONS)
    datasets = [dataset, dataset if is_one else BatchDataset(dataset.loader)]
    made = {
        "new": new_workers,
        "persistent": functools.partial(persistent, workers=1),
        "none": lambda dataset: DataLoader(dataset, batch_size=None),
    }
    first, second = (made[kind](one) for kind, one in zip(kinds.split(), datasets, strict=True))
    for batches in first, second:
        run(batches)
    state, rest = within(epoch=4)
    for one, other in (first, second), (second, first):
        dataset.load_state_dict(state)
        assert run(one) == rest
        assert sorted(sum(run(other), ())) == list(range(100))


def test_datasets_that_are_made_for_each_epoch_go_on_from_a_state_once():
    loader, (state, rest) = Loader(TABLE, **OPTIONS), within(epoch=4)
    loader.load_state_dict(state)
    assert run(new_workers(BatchDataset(loader))) == rest
    assert sorted(sum(run(new_workers(BatchDataset(loader))), ())) == list(range(100))


@pytest.mark.parametrize("kind", ["new", "persistent"])
def test_a_state_whose_first_batch_cannot_be_read_is_kept(tmp_path, kind):
    failing = tmp_path / "failing"
    source = functools.partial(read_later, failing)
    dataset, loader = BatchDataset(source, **OPTIONS), Loader(source, **OPTIONS, framework="torch")
    whole = run(loader)
    loader.set_epoch(0)
    epoch = iter(loader)
    for _ in range(3):
        next(epoch)
    dataset.load_state_dict(loader.state_dict())
    batches = new_workers(dataset) if kind == "new" else persistent(dataset, 1)
    failing.touch()
    with pytest.raises(ValueError, match="the disk is on fire"):
        run(batches)
    failing.unlink()
    assert run(batches) == whole[3:]
    if kind == "new":
        assert run(batches) == whole
    else:
        shut_down(batches)


def test_new_workers_that_refuse_a_state_do_so_each_time(tmp_path):
    path = tmp_path / "rows.arrow"

    def write(rows):
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, rows.schema) as writer:
            writer.write_table(rows)

    write(TABLE)
    dataset = BatchDataset(path, **OPTIONS)
    whole = run(dataset)
    dataset.set_epoch(0)
    epoch = iter(dataset)
    for _ in range(3):
        next(epoch)
    state = dataset.state_dict()
    dataset = BatchDataset(path, **OPTIONS)
    batches = new_workers(dataset)
    dataset.load_state_dict(state)
    write(pa.table({"y": np.arange(1, 101)}))
    for _ in range(2):
        with pytest.raises(ValueError, match="other data"):
            run(batches)
    write(TABLE)
    assert [run(batches) for _ in range(2)] == [whole[3:], whole]


@pytest.mark.parametrize("is_first", [True, False])
def test_new_workers_refuse_a_state_of_one_of_them(is_first):
    """Or the others would go on without it."""
    dataset = BatchDataset(TABLE, **OPTIONS)
    state, _ = within()
    dataset.load_state_dict({**state, "part": [0 if is_first else 1, 2]})
    batches = new_workers(dataset, 2)
    for _ in range(2):
        with pytest.raises(ValueError, match="of part . of 2, and this is part . of 2"):
            next(iter(batches))


def test_torchdatas_loader_of_new_workers_goes_on_once(epochs):
    dataset = BatchDataset(TABLE, **OPTIONS)
    batches = new_workers(dataset, 2, of=StatefulDataLoader)
    begun = iter(batches)
    first = run(next(begun) for _ in range(3))
    state = batches.state_dict()
    other = BatchDataset(TABLE, **OPTIONS)
    other.load_state_dict({**other.state_dict(), "epoch": 4})
    resumed = new_workers(other, 2, of=StatefulDataLoader)
    assert run(resumed) == epochs[4]
    resumed.load_state_dict(state)
    assert first + run(resumed) == epochs[0]
    assert run(resumed) == epochs[4]


def test_loaders_of_one_loader_go_on_from_a_state_once():
    loader, whole = Loader(TABLE, **OPTIONS), Loader(TABLE, **OPTIONS, framework="torch")
    ours, theirs = new_workers(BatchDataset(loader)), loader.torch(1, **PERSISTENT)
    state, rest = within(epoch=4)
    whole.set_epoch(4)
    fourth = run(whole)
    loader.load_state_dict(state)
    assert run(ours) == rest
    assert run(theirs) == fourth
    loader.load_state_dict(state)
    assert run(theirs) == rest
    assert loader.state_dict()["epoch"] == 5
    loader.set_epoch(4)
    assert run(ours) == fourth
    shut_down(theirs)


def test_a_state_that_has_no_room_is_refused_and_new_workers_take_it():
    dataset = BatchDataset(TABLE, **OPTIONS)
    batches = persistent(dataset, 1)
    assert len(run(batches)) == 10
    state, rest = within()
    dataset.load_state_dict({**state, "more": os.urandom(2**18)})
    for _ in range(2):
        with pytest.raises(ValueError, match=r"persistent workers that run can be told \d+: load"):
            run(batches)
    assert run(persistent(dataset, 1)) == rest
    dataset.load_state_dict({**state, "more": ["names of columns"] * 10_000})
    assert run(batches) == rest
    shut_down(batches)


def test_copies_are_told_alone():
    loader = Loader(TABLE, **OPTIONS, framework="torch")
    dataset = BatchDataset(loader)
    epochs = [run(loader) for _ in range(2)]
    copies = [copy.deepcopy(dataset), pickle.loads(pickle.dumps(dataset))]
    workers = [persistent(one, 1) for one in copies]
    for one, batches in zip(copies, workers, strict=True):
        run(batches)
        one.set_epoch(1)
        dataset.set_epoch(0)
        assert run(batches) == epochs[1]
    assert len(pickle.dumps(dataset)) < 5000
    assert copy.copy(dataset).loader is loader


def test_a_pickled_loader_needs_no_torch():
    loader = Loader(TABLE, **OPTIONS)
    dataset = BatchDataset(loader)
    loader.set_epoch(3)
    code = f"""
        import sys
        sys.modules["torch"] = None
        import pickle
        loader = pickle.loads({pickle.dumps(loader)!r})
        loader.set_epoch(loader.state_dict()["epoch"] - 3)
        assert len(list(loader)) == 10
        """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)
    assert dataset.state_dict()["epoch"] == 3


def test_without_shared_memory_there_are_batches_all_the_same(monkeypatch):
    def refused(self):
        raise RuntimeError("unable to allocate shared memory(shm)")

    monkeypatch.setattr(torch.Tensor, "share_memory_", refused)
    dataset = BatchDataset(TABLE, **OPTIONS)
    first = run(dataset)
    dataset.set_epoch(0)
    assert run(dataset) == first


def in_new_process(code):
    """It has no other library's threads, and may be forked."""
    head = """
        import os
        import numpy as np, pyarrow as pa, torch
        from arrow_dlpack.torch import BatchDataset
        from torch.utils.data import DataLoader
        torch.set_num_threads(1)
        table = pa.table({"y": np.arange(100)})
        OPTIONS = {"batch_size": 10, "shuffle": 100, "seed": 1}

        def run(batches):
            return [batch["y"].tolist() for batch in batches]
        """
    code = textwrap.dedent(head) + textwrap.dedent(code)
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
