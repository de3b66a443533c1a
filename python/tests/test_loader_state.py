"""Resuming: the batches after a state are those that would have come."""

import json
from contextlib import suppress
from itertools import islice, pairwise

import numpy as np
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import torch
from arrow_dlpack import ByLength, ByTokens, Loader, Mix, Pad
from arrow_dlpack._loader.datasets import Dataset
from arrow_dlpack._loader.other_data import OtherDataError
from arrow_dlpack.torch import BatchDataset
from batch_sources import ROWS, TABLE
from test_loader import CONTEXT
from torch.distributed import checkpoint
from torchdata.stateful_dataloader import StatefulDataLoader


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    file = tmp_path_factory.mktemp("parquet") / "rows.parquet"
    words = pa.array([["cat", "dog", "emu"][row * 7 % 3] for row in range(200)])
    table = pa.table({"y": np.arange(200), "w": words.dictionary_encode()})
    table = table.append_column("list", pa.array([[1] * (row % 5) for row in range(200)]))
    pq.write_table(table, file, row_group_size=23)
    return file


OPTIONS = {
    "in order": {},
    "shuffled": {"shuffle": 40, "seed": 2},
    "unseeded": {"shuffle": 40},
    "ahead": {"prefetch": 2},
    "codes": {"columns": ["y", "w"], "physical": True},
    "a rank": {"rank": 1, "world_size": 3, "uneven": "repeat"},
    "a rank, shuffled": {"rank": 2, "world_size": 3, "uneven": "drop", "shuffle": 30, "seed": 1},
    "filtered": {"filter": pc.field("y") > 50},
    "lengths": {"batch_size": ByLength(16, "list"), "shuffle": 50, "seed": 3},
}


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("of", ["path", "table"])
def test_after_any_batch_the_rest_is_the_same(file, name, of):
    source = str(file) if of == "path" else pq.read_table(file)
    options = {"batch_size": 16, "columns": ["y"], "framework": "numpy", **OPTIONS[name]}

    def values(batch):
        return {name: part.tolist() for name, part in batch.items()}

    loader = Loader(source, **options)
    list(loader)
    epoch = iter(loader)
    states, batches = [loader.state_dict()], []
    for batch in epoch:
        batches.append(values(batch))
        states.append(loader.state_dict())
    for at, state in enumerate(states):
        resumed = Loader(source, **options)
        resumed.load_state_dict(json.loads(json.dumps(state)))
        assert resumed.state_dict() == state
        assert [values(batch) for batch in resumed] == batches[at:]
    if "seed" in options or "shuffle" not in options:
        following = [values(batch) for batch in loader]
        assert [values(batch) for batch in resumed] == following


def test_a_file_in_order_is_not_read_again(file):
    """From its beginning: row groups before the batch have been overwritten since."""
    loader = Loader(str(file), batch_size=23, columns=["y"], framework="numpy")
    batches = [batch["y"].tolist() for batch in loader]
    epoch = iter(loader)
    for _ in range(5):
        next(epoch)
    state = loader.state_dict()
    broken = file.with_name("broken.parquet")
    data = bytearray(file.read_bytes())
    end = pq.ParquetFile(file).metadata.row_group(4).column(0).data_page_offset
    data[4:end] = bytes(end - 4)
    broken.write_bytes(data)
    resumed = Loader(str(broken), batch_size=23, columns=["y"], framework="numpy")
    resumed.load_state_dict(state)
    assert [batch["y"].tolist() for batch in resumed] == batches[5:]


def test_of_a_shuffled_file_only_the_row_groups_of_the_buffer_are_read_again(file, monkeypatch):
    options = {"batch_size": 10, "columns": ["y"], "shuffle": 20, "seed": 4, "framework": "numpy"}
    loader = Loader(str(file), **options)
    epoch = iter(loader)
    for _ in range(12):
        next(epoch)
    state = loader.state_dict()
    rest = [batch["y"].tolist() for batch in epoch]
    read = []
    original = Dataset.read_pieces

    def noting(self, query, pieces):
        read.extend(piece.group.row_groups[0].id for piece in pieces)
        return original(self, query, pieces)

    monkeypatch.setattr(Dataset, "read_pieces", noting)
    resumed = Loader(str(file), **options)
    resumed.load_state_dict(state)
    assert [batch["y"].tolist() for batch in resumed] == rest
    assert len(rest) == 8
    assert len(set(read)) < 9, "of nine row groups"


def test_the_state_of_another_loader_is_refused():
    loader = Loader(TABLE, batch_size=10)
    next(iter(loader))
    state = loader.state_dict()
    for other in {"batch_size": 20}, {"batch_size": 10, "shuffle": 5}:
        with pytest.raises(ValueError, match="the state is of a loader with"):
            Loader(TABLE, **other).load_state_dict(state)
    resumed = Loader(TABLE, batch_size=10, rank=0, world_size=2)
    resumed.load_state_dict(state)
    with pytest.raises(ValueError, match="part 0 of 1, and this is part 0 of 2"):
        iter(resumed)
    with pytest.raises(ValueError, match="no state of a Loader"):
        loader.load_state_dict({"epoch": 1})


@pytest.mark.parametrize("shuffle", [None, 200])
@pytest.mark.parametrize("workers", [0, 2])
def test_torchdatas_loader_resumes(workers, shuffle):
    def stateful():
        seed = {"shuffle": shuffle, "seed": 5} if shuffle else {}
        dataset = BatchDataset(TABLE, batch_size=64, columns=["y"], **seed)
        context = {"multiprocessing_context": CONTEXT} if workers else {}
        return StatefulDataLoader(dataset, batch_size=None, num_workers=workers, **context)

    loader = stateful()
    epoch = iter(loader)
    first = [next(epoch)["y"].tolist() for _ in range(5)]
    state = loader.state_dict()
    rest = [batch["y"].tolist() for batch in epoch]
    assert sorted(row for batch in first + rest for row in batch) == list(range(0, 3 * ROWS, 3))
    resumed = stateful()
    resumed.load_state_dict(state)
    assert [batch["y"].tolist() for batch in resumed] == rest


@pytest.mark.parametrize("set_epochs", [False, True])
def test_torchdatas_loader_goes_on_behind_an_epoch_with_the_next(set_epochs):
    def stateful():
        dataset = BatchDataset(TABLE, batch_size=64, columns=["y"], shuffle=200, seed=5)
        return dataset, StatefulDataLoader(dataset, batch_size=None)

    def epoch(loader):
        return [batch["y"].tolist() for batch in loader]

    _, loader = stateful()
    expected = [epoch(loader)]
    state = loader.state_dict()
    expected += [epoch(loader) for _ in range(2)]
    dataset, resumed = stateful()
    batches = iter(dataset)
    next(batches)
    batches.close()
    assert list(batches) == []
    resumed.load_state_dict(state)
    for number in 1, 2:
        if set_epochs:
            dataset.set_epoch(number)
        assert epoch(resumed) == expected[number]


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("order", [{}, {"shuffle": 100, "seed": 1}], ids=["plain", "shuffled"])
def test_workers_that_had_ended_before_the_state_make_no_batch_again(tmp_path, order, persistent):
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"id": range(17)}), path, row_group_size=3)

    def stateful():
        dataset = BatchDataset(str(path), batch_size=4, **order)
        context = {"multiprocessing_context": CONTEXT, "persistent_workers": persistent}
        return StatefulDataLoader(dataset, batch_size=None, num_workers=3, **context)

    def ids(batches):
        return [batch["id"].tolist() for batch in batches]

    for handed_out in 4, 5:
        loader = stateful()
        epoch = iter(loader)
        for _ in range(handed_out):
            next(epoch)
        state, rest = loader.state_dict(), ids(epoch)
        resumed = stateful()
        resumed.load_state_dict(state)
        assert ids(resumed) == rest
        assert len(rest) == 5 - handed_out
        assert ids(resumed) == ids(loader)
    # At the end of an epoch, the next one comes.
    state, upcoming = loader.state_dict(), ids(loader)
    resumed = stateful()
    resumed.load_state_dict(state)
    assert ids(resumed) == upcoming


def test_the_epoch_after_a_resume_has_another_order():
    """PyTorch's numbers begin again where a script or torchdata restores its seed."""

    def begun():
        torch.manual_seed(0)
        return Loader(TABLE, batch_size=64, shuffle=ROWS, columns=["y"], framework="torch")

    def order(batches):
        return [batch["y"].tolist() for batch in batches]

    unbroken = begun()
    epoch = iter(unbroken)
    first = order(islice(epoch, 2))
    state = unbroken.state_dict()
    rest, upcoming = order(epoch), order(unbroken)
    resumed = begun()
    resumed.load_state_dict(state)
    assert order(resumed) == rest
    assert first + rest not in (upcoming, order(resumed))


@pytest.mark.parametrize("changed", [
    {"batch": -1}, {"batch": 1.5}, {"batch": "3"}, {"batch": None}, {"batch": 2**70},
    {"epoch": -1}, {"epoch": "x"}, {"seed": -1}, {"seed": 2**70}, {"options": None}, {"part": None},
    {"version": True}, {"version": "1"}, {"version": 2}, {"batch": True}, {"epoch": 2**63},
    {"seed": "1"}, {"seed": []}, {"part": [0]}, {"part": [0, 1.0]}, {"part": {}}, {"source": None},
    {"source": []}, {"source": 7}, {"chunks": -1}, {"chunks": 2**63}, {"chunks": 1.5},
    {"chunks": []}, {"reads": 5}, {"reads": [0]}, {"reads": [0, "1"]},
])  # fmt: skip
def test_what_is_no_state_is_refused(changed):
    loader = Loader(TABLE, batch_size=10)
    next(iter(loader))
    with pytest.raises(ValueError, match="no state of a Loader"):
        loader.load_state_dict({**loader.state_dict(), "batch": 1, "part": [0, 1], **changed})


@pytest.mark.parametrize("shuffle", [{}, {"shuffle": 9}])
def test_a_state_has_all_of_its_keys(shuffle):
    loader = Loader(TABLE, batch_size=10, **shuffle)
    next(iter(loader))
    state = loader.state_dict() | {"batch": 1, "part": [0, 1], "seed": 3, "source": {}}
    loader.load_state_dict(state)
    for name in state:
        with pytest.raises(ValueError, match="no state of a Loader"):
            loader.load_state_dict({key: value for key, value in state.items() if key != name})
    if shuffle:
        # Another order would be drawn.
        with pytest.raises(ValueError, match="no state of a Loader"):
            loader.load_state_dict(state | {"seed": None})


MANY = {
    "in order": {},
    "shuffled": {"shuffle": 40, "seed": 2},
    "filtered": {"filter": pc.field("y") > 50},
    "filtered, shuffled": {"filter": pc.field("y") > 50, "shuffle": 40, "seed": 2},
    "a rank": {"rank": 1, "world_size": 2, "uneven": "repeat"},
    "a free rank": {"rank": 1, "world_size": 2, "uneven": "allow"},
    "a rank, filtered": {
        "rank": 1, "world_size": 2, "uneven": "repeat", "filter": pc.field("y") > 50
    },
    "codes": {"physical": True},
    "lengths": {"batch_size": ByLength(16, "list")},
    "chunks": {"batch_size": None},
    "chunks of a rank": {"batch_size": None, "rank": 0, "world_size": 2, "uneven": "allow"},
}  # fmt: skip


@pytest.mark.parametrize("name", MANY)
@pytest.mark.parametrize("of", ["path", "table", "list", "lazy frame", "mix"])
def test_more_batches_than_there_are_is_other_data(file, name, of):
    table = pq.read_table(file)
    source = {
        "path": str(file),
        "table": table,
        "list": [table.slice(0, 90), table.slice(90)],
        "lazy frame": polars.from_arrow(table).lazy(),
        "mix": Mix([(str(file), 1), (table, 2)]),
    }[of]
    options = {"batch_size": 16, "columns": ["y"], "framework": "numpy", **MANY[name]}
    if of == "lazy frame" and options.get("uneven") == "repeat":
        options["uneven"] = "allow"
    loader = Loader(source, **options)
    states = [loader.state_dict() for _ in loader]
    state, count = states[-1], len(states)
    resumed = Loader(source, **options)
    resumed.load_state_dict(state)
    assert list(resumed) == []
    for batch in count + 1, 2**40:
        more = {**state, "batch": batch}
        if state["chunks"] is not None and "rank" not in options:
            more["chunks"] += batch
        resumed.load_state_dict(more)
        for _ in range(2):
            with pytest.raises(
                ValueError, match="other data: there are fewer batches|other chunks"
            ):
                list(resumed)
            assert resumed.state_dict() == more


@pytest.mark.parametrize("state", [None, 5, [], "x", [("version", 1)]])
def test_what_is_no_mapping_is_no_state(state):
    with pytest.raises(ValueError, match="this is no state of a Loader, got "):
        Loader(TABLE, batch_size=10).load_state_dict(state)


def test_the_text_of_a_state_names_what_reads_it():
    loader = Loader(TABLE, batch_size=10)
    text = json.dumps(loader.state_dict())
    for own in text, text.encode():
        with pytest.raises(ValueError, match=r"json.loads\(x\) makes one"):
            loader.load_state_dict(own)
        loader.load_state_dict(json.loads(own))


def test_workers_have_states_of_their_own(file):
    loader = Loader(str(file), batch_size=10, columns=["y"], framework="torch")
    batches = iter(loader.torch(num_workers=1))
    next(batches)
    with pytest.raises(TypeError, match="StatefulDataLoader"):
        loader.state_dict()
    assert sum(len(batch["y"]) for batch in batches) == 190
    assert loader.state_dict()["epoch"] == 1
    with pytest.raises(TypeError, match="the Loader makes the batches"):
        loader.torch(batch_size=4)


@pytest.mark.parametrize("options", [{"shuffle": 6, "seed": 4}, {"rank": 0, "world_size": 2}, {}])
def test_row_groups_are_of_a_state_where_they_are_put_in_order_or_divided(options, tmp_path):
    table = pa.table({"x": list(range(20))})
    pq.write_table(table, tmp_path / "p.parquet", row_group_size=6)
    path, options = str(tmp_path / "p.parquet"), options | {"batch_size": 3, "uneven": "allow"}
    sources = [path, table, table.to_pandas(), pq.ParquetFile(path), [table, table.slice(20)]]
    for one, other in [(path, source) for source in sources] + [(table, path)]:
        loader = Loader(one, **options)
        epoch = iter(loader)
        first, state = next(epoch), loader.state_dict()
        rest = [batch["x"].tolist() for batch in epoch]
        del first
        again = Loader(other, **options)
        again.load_state_dict(state)
        if options.keys() & {"shuffle", "rank"} and (one is path) != (other is path):
            with pytest.raises(ValueError, match="other row groups, or in none"):
                list(again)
        else:
            assert [batch["x"].tolist() for batch in again] == rest


def chunked(table, *sizes):
    """The table in chunks of these sizes, and one of the rest."""
    ends = np.cumsum([0, *sizes, len(table) - sum(sizes)]).tolist()
    return pa.concat_tables([
        table.slice(start, stop - start) for start, stop in pairwise(ends)
    ])  # fmt: skip


NUMBERS = pa.table({"x": range(20), "w": pa.array(list("abcd") * 5).dictionary_encode()})
OF_CHUNKS = {
    "in order": {},
    "ahead": {"prefetch": 2},
    "transformed": {"prefetch": 2, "transform": dict},
    "codes": {"physical": True},
    "filtered": {"filter": pc.field("x") != 7},
    "a rank": {"rank": 1, "world_size": 2, "uneven": "allow"},
    "a rank, filtered": {
        "rank": 0, "world_size": 2, "uneven": "allow", "filter": pc.field("x") != 7
    },
}  # fmt: skip


def values_of(batch):
    return {name: part.tolist() for name, part in batch.items()}


@pytest.mark.parametrize("name", OF_CHUNKS)
def test_without_a_batch_size_the_same_chunks_go_on_and_no_others(name, tmp_path):
    options = {"columns": ["x"], "framework": "numpy", **OF_CHUNKS[name]}
    if name == "codes":
        options["columns"] = ["x", "w"]
    source = chunked(NUMBERS, 6, 0, 5, 2, 3)
    loader = Loader(source, **options)
    epoch = iter(loader)
    states, batches = [loader.state_dict()], []
    for batch in epoch:
        batches.append(values_of(batch))
        states.append(json.loads(json.dumps(loader.state_dict())))
    assert states[1]["batch"] == 1
    assert len(batches) == (5 if "rank" not in options else 2 + (options["rank"] == 0))
    pq.write_table(NUMBERS, tmp_path / "p.parquet")
    others = [
        chunked(NUMBERS, 6, 3, 4, 3), chunked(NUMBERS, 3, 3, 5), chunked(NUMBERS, 1, 10, 2),
        NUMBERS, [NUMBERS.slice(0, 9), NUMBERS.slice(9)], NUMBERS.to_pandas(),
        str(tmp_path / "p.parquet"),
    ]  # fmt: skip
    for at, state in enumerate(states[:-1]):
        resumed = Loader(source, **options)
        resumed.load_state_dict(state)
        again = iter(resumed)
        for number in range(at, len(batches)):
            assert values_of(next(again)) == batches[number]
            assert resumed.state_dict() == states[number + 1]
        assert next(again, None) is None
        seen = [x for batch in batches[:at] for x in batch["x"]]
        for other in others if at > 0 else []:
            resumed = Loader(other, **{**options, "columns": ["x"]})
            resumed.load_state_dict(state)
            rest = None
            with suppress(OtherDataError):
                rest = [x for batch in resumed for x in values_of(batch)["x"]]
            if rest is None:
                assert resumed.state_dict() == state
            else:
                # Of ranks the chunks until then are the same, and all of them divide the rest.
                whole = Loader(other, **{**options, "columns": ["x"]})
                assert seen + rest == [x for batch in whole for x in values_of(batch)["x"]]


@pytest.mark.parametrize("other", [(3, 4, 3, 2), (3, 2, 4), (3, 1, 1, 4)])
def test_ranks_without_a_batch_size_see_chunks_that_others_had(other):
    """Their own lengths do not tell where they began."""
    options = {"columns": ["x"], "world_size": 2, "uneven": "allow", "framework": "numpy"}
    for rank in 0, 1:
        loader = Loader(chunked(NUMBERS, 3, 3, 3, 3), rank=rank, **options)
        epoch = iter(loader)
        next(epoch), next(epoch)
        resumed = Loader(chunked(NUMBERS, *other), rank=rank, **options)
        resumed.load_state_dict(loader.state_dict())
        with pytest.raises(ValueError, match="the state is of other chunks|fewer batches"):
            next(iter(resumed))


def test_workers_without_a_batch_size_go_on():
    def stateful(source):
        context = {"multiprocessing_context": CONTEXT}
        dataset = BatchDataset(source, columns=["x"])
        return StatefulDataLoader(dataset, batch_size=None, num_workers=2, **context)

    source = chunked(NUMBERS, 6, 5, 2, 3)
    loader = stateful(source)
    epoch = iter(loader)
    for _ in range(3):
        next(epoch)
    state = loader.state_dict()
    rest = [batch["x"].tolist() for batch in epoch]
    resumed = stateful(source)
    resumed.load_state_dict(state)
    assert [batch["x"].tolist() for batch in resumed] == rest


def test_a_column_without_a_batch_size_goes_on():
    column = pa.chunked_array([[0, 1], [2], [3, 4]])
    for options in {}, {"rank": 0, "world_size": 2, "uneven": "allow"}:
        loader = Loader(column, format="matrix", framework="numpy", **options)
        epoch = iter(loader)
        next(epoch)
        state, rest = loader.state_dict(), [batch.tolist() for batch in epoch]
        resumed = Loader(column, format="matrix", framework="numpy", **options)
        resumed.load_state_dict(state)
        if options:
            with pytest.raises((TypeError, ValueError)):
                list(resumed)
        else:
            assert [batch.tolist() for batch in resumed] == rest


@pytest.mark.parametrize("batch", [7, 2**40, 2**63 - 1])
@pytest.mark.parametrize("source", [TABLE, [TABLE], Mix([(TABLE, 1)])])
def test_no_state_has_more_batches_than_rows(source, batch):
    """Without a batch_size the rows say where the epoch goes on, and each batch has one or more."""
    state = {"epoch": 0, "batch": batch, "chunks": 6}
    loader = Loader(source, columns=["y"])
    next(iter(loader))
    loader.load_state_dict({**loader.state_dict(), **state})
    with pytest.raises(ValueError, match="fewer batches"):
        next(iter(loader))


GROUPS = pa.table({"id": range(100), "l": [[1] * (at * 7 % 29 + 1) for at in range(100)]})
OTHERS = pa.table({"id": range(1000, 1040), "l": [[1]] * 40})
#: Loaders of the same rows, of which one makes other batches than the other.
OTHER_BATCHES = {
    "one source of a Mix with row groups": (
        lambda: Loader(Mix([("a.parquet", 1), (OTHERS, 1)]), batch_size=7, shuffle=20, seed=3),
        lambda: Loader(Mix([("a.parquet", 1), ("b.parquet", 1)]), batch_size=7, shuffle=20, seed=3),
        "row groups",
    ),
    "physical": (
        lambda: Loader("a.parquet", batch_size=7, shuffle=20, seed=3, columns=["id"]),
        lambda: Loader(
            "a.parquet", batch_size=7, shuffle=20, seed=3, columns=["id"], physical=True
        ),
        "physical=",
    ),
    "the width of rows that are counted by items": (
        lambda: Loader(GROUPS, batch_size=ByTokens(64, "l"), columns=["id", "l"]),
        lambda: Loader(
            GROUPS, batch_size=ByTokens(64, "l"), columns={"id": None, "l": Pad(0, max_length=30)}
        ),
        "max_length=",
    ),
    "a filter of the same text": (
        lambda: Loader(GROUPS, batch_size=7, filter=pc.field("id") < np.float32(50.1)),
        lambda: Loader(GROUPS, batch_size=7, filter=pc.field("id") < float(np.float32(50.1))),
        "filter=",
    ),
}


@pytest.mark.parametrize("of", OTHER_BATCHES)
@pytest.mark.parametrize("turn", [1, -1])
def test_a_state_of_the_same_rows_in_other_batches_is_refused(of, turn, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pq.write_table(GROUPS, "a.parquet", row_group_size=10)
    pq.write_table(OTHERS, "b.parquet")
    *loaders, words = OTHER_BATCHES[of]
    one, other = loaders[::turn]
    saved = one()
    begun = iter(saved)
    next(begun)
    state = json.loads(json.dumps(saved.state_dict()))

    def resumed(loader):
        loader.load_state_dict(state)
        return list(loader)

    with pytest.raises(ValueError, match=words):
        resumed(other())
    assert len(resumed(one())) == len(list(begun))


@pytest.mark.parametrize("options", [{}, {"shuffle": 20, "seed": 3, "physical": True}], ids=str)
def test_row_groups_of_a_mix_do_not_matter_where_none_are_put_in_order(options, tmp_path):
    pq.write_table(GROUPS, tmp_path / "one.parquet")
    pq.write_table(GROUPS, tmp_path / "ten.parquet", row_group_size=10)
    one, ten = (str(tmp_path / f"{of}.parquet") for of in ("one", "ten"))
    options = {"batch_size": 8, "columns": ["id"], **options}
    sources = [[GROUPS, ten, GROUPS], [one, ten, GROUPS]]

    def loader(parts):
        return Loader(Mix([(part, 1) for part in parts]), **options)

    for some in sources, [parts[::-1] for parts in sources]:
        for parts in some:
            saved = loader(parts)
            begun = iter(saved)
            next(begun)
            state, left = saved.state_dict(), [batch["id"].tolist() for batch in begun]
            for others in map(loader, some):
                others.load_state_dict(state)
                assert [batch["id"].tolist() for batch in others] == left


@pytest.mark.parametrize("source", ["table", "file"])
def test_a_state_of_a_part_is_of_no_share_of_the_whole(source, tmp_path):
    data = GROUPS
    if source == "file":
        data = str(tmp_path / "a.parquet")
        pq.write_table(GROUPS, data)
    options = {"batch_size": 7, "columns": ["id"], "rank": 1, "world_size": 2, "uneven": "allow"}
    kinds = [lambda _index, _count: data, data]
    for one, two in kinds, kinds[::-1]:
        saved, other = Loader(one, **options), Loader(two, **options)
        begun = iter(saved)
        next(begun)
        state = json.loads(json.dumps(saved.state_dict()))
        other.load_state_dict(state)
        with pytest.raises(ValueError, match="its batches were .*, and these are "):
            list(other)
        saved.load_state_dict(state)
        assert len(list(saved)) == len(list(begun))


def test_a_state_of_another_number_of_ranks_says_how_to_go_on():
    saved = Loader(GROUPS, batch_size=5, columns=["id"], rank=0, world_size=4)
    saved.set_epoch(3)
    next(iter(saved))
    loader = Loader(GROUPS, batch_size=5, columns=["id"], rank=0, world_size=2)
    loader.load_state_dict(saved.state_dict())
    ways = r"set_epoch\(4\) begins the next epoch, and set_epoch\(3\) of a Loader without a state"
    with pytest.raises(ValueError, match=ways):
        list(loader)
    loader.set_epoch(4)
    assert len(list(loader)) == 10


def test_tables_in_a_mix_go_on_as_files_of_one_row_group(tmp_path):
    """No order of row groups is drawn of either."""
    path = tmp_path / "b.parquet"
    pq.write_table(OTHERS, path)
    options = {"batch_size": 7, "shuffle": 20, "seed": 3, "columns": ["id"]}
    saved = Loader(Mix([(OTHERS, 1), (str(path), 1)]), **options)
    begun = iter(saved)
    next(begun)
    loader = Loader(Mix([(str(path), 1), (str(path), 1)]), **options)
    loader.load_state_dict(saved.state_dict())
    found, expected = ([batch["id"].tolist() for batch in rest] for rest in (loader, begun))
    assert found == expected


def test_a_state_goes_through_a_distributed_checkpoint_as_text(tmp_path):
    def loader():
        return Loader(pa.table({"x": [0, 1, 2, 3, 4]}), batch_size=2, shuffle=5, seed=1)

    trained = loader()
    epoch = iter(trained)
    next(epoch)
    saved = {"loader": json.dumps(trained.state_dict()), "weights": torch.ones(2)}
    checkpoint.save(saved, checkpoint_id=tmp_path, no_dist=True)
    found = {"loader": "", "weights": torch.zeros(2)}
    checkpoint.load(found, checkpoint_id=tmp_path, no_dist=True)
    resumed = loader()
    resumed.load_state_dict(json.loads(found["loader"]))
    rest = [batch["x"].tolist() for batch in epoch]
    assert [batch["x"].tolist() for batch in resumed] == rest
    assert len(rest) == 2
