"""Ranks and workers: each has its share, and ranks have equally many batches where that is said."""

import subprocess
import sys
import textwrap

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from arrow_dlpack import ByLength, Loader, Mix
from test_loader import CONTEXT

ROWS = 103
TABLE = pa.table({"y": range(ROWS), "text": ["t" * (row % 7) for row in range(ROWS)]})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parquet")
    pq.write_table(TABLE.slice(0, 60), folder / "a.parquet", row_group_size=9)
    pq.write_table(TABLE.slice(60), folder / "b.parquet", row_group_size=20)
    return folder


def shares(source, world, **options):
    options = {"batch_size": 10, "columns": ["y"], "framework": "numpy", **options}
    loaders = [Loader(source, rank=rank, world_size=world, **options) for rank in range(world)]
    found = [[batch["y"].tolist() for batch in loader] for loader in loaders]
    if isinstance(options["batch_size"], int) and not callable(source):
        assert [len(loader) for loader in loaders] == [len(batches) for batches in found]
    return found


def rows_of(found):
    return [row for batches in found for batch in batches for row in batch]


@pytest.mark.parametrize("shuffle", [{}, {"shuffle": 30, "seed": 1}])
@pytest.mark.parametrize("of", ["table", "folder", "dataset"])
def test_ranks_have_what_uneven_says(folder, of, shuffle):
    source = {"table": TABLE, "folder": str(folder), "dataset": ds.dataset(folder)}[of]
    allowed = shares(source, 4, uneven="allow", **shuffle)
    assert sorted(rows_of(allowed)) == list(range(ROWS))
    assert sum(map(len, allowed)) == 11
    dropped = shares(source, 4, uneven="drop", **shuffle)
    assert list(map(len, dropped)) == [2] * 4
    assert len(set(rows_of(dropped))) == len(rows_of(dropped)) == 80
    repeated = shares(source, 4, uneven="repeat", **shuffle)
    assert list(map(len, repeated)) == [3] * 4
    assert set(rows_of(repeated)) == set(range(ROWS))
    for unsaid in (
        shares,
        lambda *args, **options: len(Loader(source, rank=0, world_size=4, **options)),
    ):
        with pytest.raises(ValueError, match="11 batches are not the same number for each of 4"):
            unsaid(source, 4, **{"batch_size": 10} | shuffle)
    assert list(map(len, shares(source, 5, drop_last=True, **shuffle))) == [2] * 5


def test_more_ranks_than_batches():
    assert list(map(len, shares(TABLE, 3, batch_size=200, uneven="repeat"))) == [1, 1, 1]
    with pytest.warns(UserWarning, match='uneven="drop" leaves no batch at all: there are 1 for 3'):
        assert list(map(len, shares(TABLE, 3, batch_size=200, uneven="drop"))) == [0, 0, 0]
    assert list(map(len, shares(TABLE.slice(0, 0), 3))) == [0, 0, 0]


def test_a_rank_reads_the_row_groups_that_have_its_rows_alone(folder, tmp_path):
    """The others are overwritten."""
    file = folder / "a.parquet"
    groups = pq.ParquetFile(file).metadata
    data = bytearray(file.read_bytes())
    end = groups.row_group(3).column(0).dictionary_page_offset
    data[4:end] = bytes(end - 4)
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(data)
    options = {"batch_size": 10, "columns": ["y"], "framework": "numpy", "world_size": 2}
    found = [batch["y"].tolist() for batch in Loader(str(broken), rank=1, **options)]
    assert rows_of([found]) == list(range(30, 60))
    with pytest.raises(OSError, match=r"broken\.parquet"):
        list(Loader(str(broken), rank=0, **options))


@pytest.mark.parametrize("options", [{}, {"shuffle": 40, "seed": 3}])
def test_workers_divide_the_share_of_a_rank(folder, options):
    found = []
    for rank in range(2):
        loader = Loader(
            str(folder),
            batch_size=10,
            columns=["y"],
            rank=rank,
            world_size=2,
            uneven="repeat",
            **options,
        )
        batches = loader.torch(num_workers=2, multiprocessing_context=CONTEXT)
        found.append([batch["y"].tolist() for batch in batches])
        assert len(found[-1]) == len(batches) == 6
    assert set(rows_of(found)) == set(range(ROWS))


def test_what_cannot_be_shared_evenly_is_refused_or_allowed():
    def part(index, count):
        return TABLE.slice(index * 50, 50)

    for unknown in TABLE.to_reader(), part, iter(TABLE.to_batches()):
        with pytest.raises(TypeError, match='say uneven="allow"'):
            iter(Loader(unknown, batch_size=10, rank=0, world_size=2, uneven="drop"))
    assert list(map(len, shares(part, 3, uneven="allow"))) == [5, 5, 1]


def test_a_filter_is_counted(folder):
    where = {"filter": pc.field("y") >= 50}
    assert sorted(rows_of(shares(str(folder), 3, uneven="repeat", **where)))[0] == 50
    assert list(map(len, shares(str(folder), 3, **where))) == [2, 2, 2]
    assert len(Loader(ds.dataset(folder), batch_size=10, **where)) == 6


@pytest.mark.parametrize("shuffle", [{}, {"shuffle": 50, "seed": 1}])
def test_buckets_are_shared_in_rounds(shuffle):
    by = {"batch_size": ByLength(10, "text")}
    with pytest.raises(ValueError, match="known at their end"):
        shares(TABLE, 4, **by, **shuffle)
    allowed = shares(TABLE, 4, uneven="allow", **by, **shuffle)
    assert sorted(rows_of(allowed)) == list(range(ROWS))
    assert list(map(len, shares(TABLE, 4, uneven="drop", **by, **shuffle))) == [2] * 4
    repeated = shares(TABLE, 4, uneven="repeat", **by, **shuffle)
    assert list(map(len, repeated)) == [3] * 4
    assert set(rows_of(repeated)) == set(range(ROWS))
    if shuffle:
        with pytest.raises(TypeError, match="need one seed"):
            shares(TABLE, 2, uneven="drop", shuffle=50, **by)


def test_auto_is_what_torchrun_says(monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    loader = Loader(TABLE, batch_size=10, columns=["y"], rank="auto", uneven="drop")
    assert len(loader) == 5
    assert np.asarray(next(iter(loader))["y"]).tolist() == list(range(10, 20))


TRAINING = """
    import os
    import sys
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel
    from arrow_dlpack import Loader

    path, rank, uneven = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    dist.init_process_group("gloo", init_method=f"file://{path}.init", rank=rank, world_size=2)
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(1, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    loader = Loader(
        path, batch_size=10, columns=["y"], dtype="float32", framework="torch", rank="auto",
        uneven=uneven, shuffle=20,
    )
    steps = 0
    for _ in range(2):
        for batch in loader:
            loss = model(batch["y"][:, None]).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
    weights = [torch.zeros(1, 1) for _ in range(2)]
    dist.all_gather(weights, model.module.weight.data)
    assert torch.equal(*weights)
    print(steps, flush=True)
    os._exit(0)  # see gloo_rank.py
"""


@pytest.mark.parametrize(("uneven", "steps"), [("drop", 10), ("repeat", 12)])
def test_two_ranks_train_without_waiting_for_ever(folder, tmp_path, uneven, steps):
    """11 batches, by DistributedDataParallel, which waits in each step for the other rank."""
    path = tmp_path / "rows.parquet"
    pq.write_table(TABLE, path, row_group_size=9)
    code = textwrap.dedent(TRAINING)
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(path), str(rank), uneven],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    for process in ranks:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        assert int(out) == steps


@pytest.mark.parametrize("size", [2, 3, 10])
@pytest.mark.parametrize("world", [2, 3, 5])
def test_a_batch_that_is_repeated_is_whole(tmp_path, size, world):
    """The last batch of the source may have fewer rows, and the repeated ones are the first."""
    pq.write_table(TABLE, tmp_path / "a.parquet", row_group_size=9)
    of_file = shares(str(tmp_path / "a.parquet"), world, batch_size=size, uneven="repeat")
    whole = [list(range(at, min(at + size, ROWS))) for at in range(0, ROWS, size)]
    found = [batch for batches in of_file for batch in batches]
    assert found[: len(whole)] == whole
    assert found[len(whole) :] == whole[: len(found) - len(whole)]
    for rank in range(world):
        options = {"batch_size": size, "columns": ["y"], "framework": "numpy", "uneven": "repeat"}
        loader = Loader(str(tmp_path / "a.parquet"), rank=rank, world_size=world, **options)
        epoch = iter(loader)
        next(epoch)
        state = loader.state_dict()
        loader.load_state_dict(state)
        assert [batch["y"].tolist() for batch in loader] == of_file[rank][1:]


@pytest.mark.parametrize("options", [{}, {"prefetch": 2}, {"shuffle": 2, "seed": 1}])
def test_words_of_a_batch_that_is_repeated_after_a_resume(options):
    """A matrix has no dictionary: the words of its codes are those of the batches."""
    words = pa.chunked_array([pa.array(list(part)).dictionary_encode() for part in ("ab", "cade")])
    ranks = {"rank": 1, "world_size": 2, "uneven": "repeat", "physical": True, "batch_size": 2}
    loader = Loader(pa.table({"w": words}), format="matrix", framework="numpy", **ranks, **options)

    def read(batches):
        for matrix in batches:
            known = pa.array(batches.dictionaries["w"]).to_pylist()
            yield [known[code] for code in matrix[:, 0]]

    whole = list(read(iter(loader)))
    assert len(whole) == 2
    loader.set_epoch(0)
    epoch = iter(loader)
    next(epoch)
    loader.load_state_dict(loader.state_dict())
    batches = iter(loader)
    assert list(read(batches)) == whole[1:]
    assert len(batches.dictionaries["w"]) == 5


def test_loops_over_one_open_file_take_turns(tmp_path):
    """pyarrow lets one thread read it; `prefetch=` and batches that are repeated have others."""
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"y": range(40)}), path, row_group_size=3)
    options = {"batch_size": 64, "shuffle": 30, "seed": 0, "uneven": "repeat", "framework": "numpy"}
    for _ in range(100):
        file = pq.ParquetFile(path)
        (batch,) = Loader(file, rank=2, world_size=3, prefetch=2, **options)
        assert sorted(batch["y"].tolist()) == list(range(40))
    program = f"""
import pyarrow.parquet as pq
from arrow_dlpack import Loader
file = pq.ParquetFile({str(path)!r}, pre_buffer=True)
for _ in range(200):
    loops = [iter(Loader(file, batch_size=1, columns=["y"], prefetch=4)) for _ in range(3)]
    for at, batches in enumerate(zip(*loops)):
        assert [batch["y"].tolist() for batch in batches] == [[at]] * 3
    assert at == 39
    [next(loop) for loop in [iter(Loader(file, batch_size=1, prefetch=4)) for _ in range(3)]]
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("kind", ["file", "files", "dataset", "mix"])
@pytest.mark.parametrize("seed", [1, None])
def test_ranks_have_row_groups_of_the_whole_source(kind, seed, tmp_path):
    """Rows that are sorted by a label are divided in the order that a seed gives the row groups,
    which is one for all epochs: each rank has its rows whatever epoch the others are in.
    """
    for at in range(2):
        table = pa.table({"id": range(500 * at, 500 * (at + 1))})
        pq.write_table(table, tmp_path / f"{at}.parquet", row_group_size=50)
    whole = pa.table({"id": range(1000)})
    pq.write_table(whole, tmp_path / "whole.parquet", row_group_size=50)
    paths = [str(tmp_path / f"{at}.parquet") for at in range(2)]
    source = {
        "file": str(tmp_path / "whole.parquet"),
        "files": paths,
        "dataset": ds.dataset(paths),
        "mix": Mix([(path, 1) for path in paths]),
    }[kind]
    options = {"batch_size": 7, "shuffle": 100, "seed": seed, "uneven": "allow"}
    ranks = [Loader(source, rank=rank, world_size=3, **options) for rank in range(3)]
    seen, orders = [], []
    for _ in range(3):
        next(iter(ranks[0]))  # a look at a batch, which is an epoch of this rank alone
        rows = [[id for batch in rank for id in batch["id"].tolist()] for rank in ranks]
        assert sorted(id for own in rows for id in own) == list(range(1000))
        seen.append(frozenset(rows[0]))
        orders.append(tuple(rows[1]))
        if seed is not None:
            assert all(min(own) < 500 <= max(own) for own in rows)
    assert len(set(seen)) == 1
    assert len(set(orders)) == 3
    for rank in ranks:
        begun = iter(rank)
        next(begun)
        state, left = rank.state_dict(), [batch["id"].tolist() for batch in begun]
        rank.load_state_dict(state)
        assert [batch["id"].tolist() for batch in rank] == left


@pytest.mark.parametrize("seed", [1, None])
def test_workers_mix_the_row_groups_of_a_shuffle(seed, tmp_path):
    path = tmp_path / "a.parquet"
    rows = {"y": np.repeat([0, 1], 500), "id": range(1000)}
    pq.write_table(pa.table(rows), path, row_group_size=50)
    loader = Loader(str(path), batch_size=50, shuffle=1000, seed=seed)
    for _ in range(2):
        batches = list(loader.torch(num_workers=2))
        assert sorted(id for batch in batches for id in batch["id"].tolist()) == list(range(1000))
        assert all(0 < int(batch["y"].sum()) < 50 for batch in batches)


def test_the_order_of_row_groups_tells_nothing_of_the_rows(tmp_path):
    for at in range(2):
        pq.write_table(pa.table({"y": [at] * 100}), tmp_path / f"{at}.parquet")
    loader = Loader(str(tmp_path), batch_size=1, shuffle=200, seed=5)
    first = [next(iter(loader))["y"].item() for _ in range(200)]
    assert 50 < sum(first) < 150


@pytest.mark.parametrize("kind", ["table", "file", "files"])
def test_the_rows_that_drop_last_leaves_out_are_drawn(kind, tmp_path):
    table, path = pa.table({"id": range(60)}), str(tmp_path / "a.parquet")
    pq.write_table(table, path, row_group_size=60 if kind == "file" else 15)
    source = table if kind == "table" else path
    loader = Loader(source, batch_size=7, shuffle=60, seed=1, drop_last=True)
    epochs = [[id for batch in loader for id in batch["id"].tolist()] for _ in range(20)]
    assert all(len(set(epoch)) == len(epoch) == 56 for epoch in epochs)
    assert set().union(*epochs) == set(range(60))
    for at in 1, 5, 8:
        begun = iter(loader)
        for _ in range(at):
            next(begun)
        state, left = loader.state_dict(), [batch["id"].tolist() for batch in begun]
        loader.load_state_dict(state)
        assert [batch["id"].tolist() for batch in loader] == left


@pytest.mark.parametrize("kind", ["file", "mix"])
@pytest.mark.parametrize(
    "more", [{"drop_last": True, "uneven": "allow"}, {"uneven": "drop"}], ids=str
)
def test_the_rows_that_ranks_leave_out_are_drawn(kind, more, tmp_path):
    path = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"id": range(41)}), path, row_group_size=10)
    other = str(tmp_path / "b.parquet")
    pq.write_table(pa.table({"id": range(100, 141)}), other, row_group_size=10)
    source = path if kind == "file" else Mix([(path, 1), (other, 1)])
    whole = {*range(41)} if kind == "file" else {*range(41), *range(100, 141)}
    options = {"batch_size": 4, "shuffle": 100, "seed": 0, "world_size": 2, **more}
    ranks = [Loader(source, rank=rank, **options) for rank in range(2)]
    left = []
    for _ in range(12):
        rows = [id for rank in ranks for batch in rank for id in batch["id"].tolist()]
        assert len(set(rows)) == len(rows)
        left.append(whole - set(rows))
    assert left[0]
    assert not set.intersection(*left)
    for rank in ranks:
        begun = iter(rank)
        next(begun)
        state, rest = rank.state_dict(), [batch["id"].tolist() for batch in begun]
        rank.load_state_dict(state)
        assert [batch["id"].tolist() for batch in rank] == rest


def test_a_table_goes_on_as_a_file_of_one_row_group_where_the_last_rows_are_dropped(tmp_path):
    table, path = pa.table({"id": range(60)}), str(tmp_path / "a.parquet")
    pq.write_table(table, path)
    options = {"batch_size": 7, "shuffle": 20, "seed": 1, "drop_last": True}
    for one, other in (table, path), (path, table):
        saved, loader = Loader(one, **options), Loader(other, **options)
        begun = iter(saved)
        next(begun)
        loader.load_state_dict(saved.state_dict())
        found, expected = ([batch["id"].tolist() for batch in rest] for rest in (loader, begun))
        assert found == expected


@pytest.mark.parametrize(
    ("rank", "world"), [("1", None), ("x", "2"), ("2", "2"), (None, "2"), ("0", "-1")], ids=str
)
def test_half_of_the_variables_of_ranks_are_named(rank, world, monkeypatch):
    for name, value in ("RANK", rank), ("WORLD_SIZE", world):
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=f"RANK and WORLD_SIZE.* are '?{rank}'? and '?{world}'?$"):
        list(Loader(pa.table({"x": [1]}), rank="auto"))
    monkeypatch.setenv("RANK", "0")
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    assert len(list(Loader(pa.table({"x": [1]}), rank="auto"))) == 1
