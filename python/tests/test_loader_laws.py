"""Each row once, over ranks, workers, prefetch, shuffles and resuming."""

import json
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from arrow_dlpack import ByLength, ByTokens, Loader
from arrow_dlpack._loader import loader as _loader
from arrow_dlpack._loader.sharding import Share
from hypothesis import given, settings
from hypothesis import strategies as st


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return tmp_path_factory.mktemp("laws")


@st.composite
def options(draw):
    """What batches are made of, and of how many rows."""
    drawn = {
        "batch_size": draw(st.integers(1, 40)),
        "prefetch": draw(st.integers(0, 2)),
        "drop_last": draw(st.booleans()),
        "transform": draw(st.sampled_from([None, dict])),
    }
    if draw(st.booleans()):
        drawn |= {"shuffle": draw(st.integers(1, 60)), "seed": draw(st.integers(0, 2**64))}
    if draw(st.integers(0, 3)) == 0:
        size = drawn["batch_size"]
        by = draw(st.sampled_from([ByLength(size, "list"), ByTokens(size + 10, "list")]))
        drawn["batch_size"] = by
        drawn["drop_last"] &= isinstance(by, ByLength)
    return drawn


def source_of(files, rows, group, form):
    table = pa.table({"y": np.arange(rows), "list": [[0] * (row * 7 % 10) for row in range(rows)]})
    if form == "table":
        return table
    file = files / f"{rows}-{group}.parquet"
    if not file.exists():
        pq.write_table(table, file, row_group_size=group)
    return str(file)


def read(loader, share):
    """The batches that a worker makes, in this process."""
    with mock.patch.object(_loader, "share_of", return_value=share):
        return [np.asarray(batch["y"]).tolist() for batch in loader]


@pytest.mark.filterwarnings("ignore:.*leaves no batch")
@settings(max_examples=150)
@given(
    rows=st.integers(0, 150),
    group=st.integers(1, 60),
    form=st.sampled_from(["table", "file"]),
    options=options(),
    world=st.integers(1, 4),
    workers=st.integers(1, 3),
    uneven=st.sampled_from(["drop", "repeat", "allow"]),
)
def test_each_row_is_there_once_less_what_is_said(
    files, *, rows, group, form, options, world, workers, uneven
):
    source = source_of(files, rows, group, form)
    ranks = []
    for rank in range(world):
        loader = Loader(
            source, columns=["y"], rank=rank, world_size=world, uneven=uneven, **options
        )
        parts = [read(loader_of(loader), Share(rank, world, at, workers)) for at in range(workers)]
        ranks.append([batch for part in parts for batch in part])
        if isinstance(options["batch_size"], int):
            assert len(loader) == len(ranks[-1])
    found = [row for batches in ranks for batch in batches for row in batch]
    if uneven != "repeat":
        assert len(set(found)) == len(found)
    if uneven != "drop" and not options["drop_last"]:
        assert set(found) == set(range(rows))
    if uneven != "allow":
        assert len({len(batches) for batches in ranks}) == 1
    if isinstance(options["batch_size"], int):
        size = options["batch_size"]
        total = rows // size if options["drop_last"] else -(-rows // size)
        expected = {
            "allow": total,
            "drop": total // world * world,
            "repeat": -(-total // world) * world,
        }
        assert sum(map(len, ranks)) == expected[uneven]
        if options["drop_last"]:
            assert all(len(batch) == size for batches in ranks for batch in batches)


def loader_of(loader):
    """The same epoch for each worker, each of which has a copy."""
    loader.set_epoch(0)
    return loader


@settings(max_examples=150)
@given(
    rows=st.integers(0, 150),
    group=st.integers(1, 60),
    form=st.sampled_from(["table", "file"]),
    options=options(),
    world=st.integers(1, 3),
    epoch=st.integers(0, 3),
    stop=st.integers(0, 40),
    data=st.data(),
)
def test_after_any_batch_the_rest_is_the_same(
    files, *, rows, group, form, options, world, epoch, stop, data
):
    source = source_of(files, rows, group, form)
    share = {"rank": data.draw(st.integers(0, world - 1)), "world_size": world, "uneven": "repeat"}

    def loader():
        return Loader(source, columns=["y"], **share, **options)

    def rest(batches):
        return [np.asarray(batch["y"]).tolist() for batch in batches]

    whole = loader()
    whole.set_epoch(epoch)
    batches = iter(whole)
    for _, _batch in zip(range(stop), batches, strict=False):
        pass
    state = json.loads(json.dumps(whole.state_dict()))
    resumed = loader()
    resumed.load_state_dict(state)
    if stop <= state["batch"]:
        assert rest(resumed) == rest(batches)
    assert rest(resumed) == rest(whole)
