"""What docs/guides/training.md says of other loaders is so, as far as the tests install them."""

import importlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

ROWS = [100, 50, 30]


@pytest.fixture
def files(tmp_path):
    paths = []
    for number, rows in enumerate(ROWS):
        columns = {
            "row": pa.array(range(100 * number, 100 * number + rows)),
            "tokens": [list(range(row % 7 + 1)) for row in range(rows)],
            "word": pa.array(["ab"[row % 2] for row in range(rows)]).dictionary_encode(),
        }
        paths.append(str(tmp_path / f"{number}.parquet"))
        pq.write_table(pa.table(columns), paths[-1], row_group_size=20)
    return paths


@pytest.fixture
def rows(files, tmp_path):
    """A streamed dataset of Hugging Face."""
    datasets = importlib.import_module("datasets")
    return datasets.IterableDataset.from_parquet(files, cache_dir=str(tmp_path / "cache"))


def numbers(rows):
    return [row["row"] for row in rows]


def resumed(make):
    """Whether the rows before and after a state are those without a stop."""
    whole, one, other = numbers(make()), make(), make()
    epoch = iter(one)
    first = [next(epoch)["row"] for _ in range(30)]
    other.load_state_dict(one.state_dict())
    return whole == first + numbers(other)


@pytest.mark.library("datasets")
def test_hugging_face_has_no_padding_and_texts_for_codes(rows):
    batch = next(iter(rows.with_format("torch").iter(batch_size=8)))
    assert isinstance(batch["tokens"], list)
    assert batch["word"][:2] == ["a", "b"]


@pytest.mark.library("datasets")
def test_hugging_face_resumes_unless_rows_are_in_the_buffer(rows):
    assert resumed(lambda: rows.skip(0))
    assert not resumed(lambda: rows.shuffle(seed=1, buffer_size=40))


@pytest.mark.library("datasets")
def test_hugging_face_gives_ranks_whole_files_where_their_number_allows_it(rows):
    split = importlib.import_module("datasets.distributed").split_dataset_by_node
    assert [len(numbers(split(rows, rank, 3))) for rank in range(3)] == ROWS


@pytest.mark.library("datasets")
def test_hugging_face_shares_memory_as_arrow_and_copies_for_torch():
    data = importlib.import_module("datasets").Dataset.from_dict({"x": np.arange(100.0)})
    address = data.data.table["x"].chunk(0).buffers()[1].address
    assert data.with_format("arrow")[:50]["x"].chunk(0).buffers()[1].address == address
    assert data.with_format("torch")[:50]["x"].data_ptr() != address


def test_pytorch_has_no_state_no_padding_and_repeats_rows_for_even_ranks():
    data = torch.utils.data
    lists = [torch.arange(rows) for rows in (1, 2)]
    assert not hasattr(data.DataLoader(lists), "state_dict")
    with pytest.raises(RuntimeError, match="equal size"):
        next(iter(data.DataLoader(lists, batch_size=2)))
    ranks = [data.DistributedSampler(range(10), 3, rank, shuffle=False) for rank in range(3)]
    assert sorted(row for rank in ranks for row in rank) == [0, 0, 1, 1, *range(2, 10)]


@pytest.mark.library("torchdata")
def test_torchdata_resumes_a_shuffled_epoch():
    module = importlib.import_module("torchdata.stateful_dataloader")

    def make():
        draw = torch.Generator().manual_seed(1)
        options = {"batch_size": 16, "shuffle": True, "generator": draw}
        return module.StatefulDataLoader(range(100), **options)

    loader, again = make(), make()
    epoch = iter(loader)
    next(epoch)
    again.load_state_dict(loader.state_dict())
    assert [batch.tolist() for batch in epoch] == [batch.tolist() for batch in again]


@pytest.mark.library("lance")
def test_lance_has_numbers_without_a_copy_and_ranks_by_fragment(files, tmp_path):
    lance = importlib.import_module("lance")
    module = importlib.import_module("lance.torch.data")
    table = pa.concat_tables(map(pq.read_table, files))
    dataset = lance.write_dataset(table, str(tmp_path / "lance"), max_rows_per_file=50)
    batch = pa.record_batch({"x": pa.array([1.0, 2.0])})
    assert module._to_tensor(batch).data_ptr() == batch["x"].buffers()[1].address
    for column in ("tokens", "word"):
        with pytest.raises(ValueError, match="Only support"):
            next(iter(module.LanceDataset(dataset, 8, columns=[column])))
    assert not hasattr(module.LanceDataset, "state_dict")
    lengths = []
    for rank in range(3):
        sampler = lance.sampler.ShardedFragmentSampler(rank, 3)
        part = module.LanceDataset(dataset, 16, columns=["row"], sampler=sampler)
        lengths.append(sum(len(batch) for batch in part))
    assert lengths == [80, 50, 50]
