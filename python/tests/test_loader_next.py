"""What users of `Loader` do next, as two of them who had only the docs found it."""

import gc
import subprocess
import sys
import threading

import polars as pl
import pyarrow as pa
import pytest
from arrow_dlpack import (
    AsArrow,
    ByTokens,
    Cast,
    Categories,
    Dense,
    Loader,
    Pad,
    _core,
    iter_batches,
)

ROWS = pa.table({"x": list(range(20)), "tokens": [[row] * (row % 7) for row in range(20)]})


def xs(batches):
    return [batch["x"].tolist() for batch in batches]


@pytest.mark.parametrize("epoch", [0, 3])
def test_set_epoch_of_the_epoch_of_a_state_goes_on_where_it_stood(epoch):
    """As in a loop that calls it at the start of each epoch."""

    def loader():
        return Loader(ROWS, batch_size=3, columns=["x"], shuffle=8, seed=1)

    first = loader()
    first.set_epoch(epoch)
    batches = iter(first)
    had = xs(next(batches) for _ in range(2))
    state = first.state_dict()
    rest = xs(batches)
    resumed = loader()
    resumed.load_state_dict(state)
    resumed.set_epoch(state["epoch"])
    assert xs(resumed) == rest

    other = loader()
    other.load_state_dict(state)
    other.set_epoch(epoch + 1)
    fresh = loader()
    fresh.set_epoch(epoch + 1)
    assert xs(other) == xs(fresh) != had + rest


def test_the_seed_of_a_state_is_a_number_that_any_reader_of_json_holds():
    loader = Loader(ROWS, batch_size=3, columns=["x"], shuffle=8)
    next(iter(loader))
    assert 0 <= loader.state_dict()["seed"] < 2**53


@pytest.mark.parametrize("width", [1, 3, 9])
def test_rows_count_as_long_as_they_are_padded(width):
    """Rows that are cut fit a budget, and short rows that are padded do not exceed it."""
    budget = 20
    columns = {"tokens": Pad(0, max_length=width)}
    batches = list(Loader(ROWS, batch_size=ByTokens(budget, "tokens"), columns=columns))
    sizes = [batch["tokens"].values.shape for batch in batches]
    assert sum(rows for rows, _ in sizes) == len(ROWS)
    assert all(rows * length <= budget for rows, length in sizes)
    assert all(rows == budget // width for rows, _ in sizes[:-1])


def test_a_row_above_the_budget_names_the_ways_out():
    loader = Loader(ROWS, batch_size=ByTokens(5, "tokens"), columns={"tokens": Pad(0)})
    with pytest.raises(ValueError, match=r"has 6 items.*Pad\(max_length=\).*filter="):
        list(loader)


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        (AsArrow(), r'column "tokens" cannot be AsArrow\(\) in a matrix.*format="dict"'),
        (Pad(0), r'column "tokens" cannot be Pad\(\) in a matrix'),
        (Cast("float32"), 'column "tokens": a matrix has one dtype= and one nulls='),
        (Dense(2, nulls=0), 'column "tokens": a matrix has one dtype= and one nulls='),
        (Dense(dtype="float32"), 'column "tokens": a matrix has one dtype= and one nulls='),
        (Categories(["a"], nulls=0), 'column "tokens": a matrix has one dtype= and one nulls='),
    ],
)
def test_a_matrix_refuses_wishes_that_it_cannot_meet_by_the_columns_name(wish, words):
    with pytest.raises(ValueError, match=words):
        Loader(ROWS, columns={"tokens": wish, "x": None}, format="matrix")
    if not isinstance(wish, Categories):  # which takes no lists
        Loader(ROWS, columns=["x"], label={"tokens": wish}, format="matrix")


@pytest.mark.parametrize("format", ["dict", "matrix"])
def test_dense_lists_with_nulls_have_the_same_shape_wherever_a_loop_begins(format):
    lists = pa.array([[1, 2], None, None, [3, 4]], pa.list_(pa.int64()))
    table = pa.table({"x": lists})
    options = {"batch_size": 1, "nulls": 0, "format": format}

    def values(batches):
        return [(b["x"] if format == "dict" else b).tolist() for b in batches]

    loader = Loader(table, columns={"x": Dense(2)}, **options)
    expected = [[[1, 2]], [[0, 0]], [[0, 0]], [[3, 4]]]
    for count in range(4):
        batches = iter(loader)
        had = values(next(batches) for _ in range(count))
        resumed = Loader(table, columns={"x": Dense(2)}, **options)
        resumed.load_state_dict(loader.state_dict())
        assert had + values(resumed) == expected
        loader.set_epoch(0)
    with pytest.raises(ValueError, match=r'column "x": null rows get the length.*Dense\(384\)'):
        iter(Loader(table, columns={"x": Dense()}, **options))


@pytest.mark.parametrize("format", ["dict", "matrix"])
def test_a_list_of_another_length_is_named_by_its_row_in_the_batch(format):
    """Also where the rows of a batch come from several chunks."""
    chunks = pa.chunked_array([[[1, 2], [3, 4]], [[5, 6], [7]]])
    columns = {"x": Dense()}
    loader = Loader(pa.table({"x": chunks}), columns=columns, batch_size=4, format=format)
    with pytest.raises(BufferError, match='column "x": row 3 of a batch has 1 values where 2 are'):
        list(loader)


def test_a_transform_that_cannot_be_pickled_names_the_way_out():
    pytest.importorskip("torch")
    loader = Loader(ROWS, columns=["x"], transform=lambda batch: batch)
    with pytest.raises(TypeError, match="transform of this Loader.*def, at the top of a module"):
        list(loader.torch(num_workers=1))


@pytest.mark.parametrize("option", ["shuffle", "sampler", "drop_last"])
def test_pytorchs_ways_to_order_rows_are_the_loaders(option):
    pytest.importorskip("torch")
    with pytest.raises(TypeError, match=f"give it shuffle= and drop_last=, not .*{option}"):
        Loader(ROWS, batch_size=2, columns=["x"]).torch(**{option: True})


def test_a_filter_of_polars_names_pyarrows():
    with pytest.raises(TypeError, match=r"expression of pyarrow.*LazyFrame"):
        Loader(ROWS, filter=pl.col("x") > 6)


def test_batches_whose_transform_holds_them_are_let_go_of(live):
    class Trainer:
        def __init__(self):
            self.batches = iter_batches(
                ROWS, batch_size=2, columns=["x"], prefetch=2, transform=self.seen
            )

        def seen(self, batch):
            return batch

    before = threading.active_count()
    for _ in range(3):
        trainer = Trainer()
        next(trainer.batches)
        del trainer
    gc.collect()  # ends the threads, which may have held something until now
    gc.collect()
    assert threading.active_count() == before
    assert live() == (0, 0)


def test_an_order_is_the_one_that_is_written_down():
    """The values are those of src/batches/epoch.rs."""
    epochs = [_core._seed_of_epoch(42, epoch) for epoch in range(3)]
    assert epochs == [42, 6_679_422_623_415_661, 1_440_344_771_546_334]
    parts = [_core._seed_of_part(42, part) for part in range(3)]
    assert parts == [42, 279_565_198_475_132_803, 15_618_775_350_480_714_937]
    assert memoryview(_core._order(8, 42)).tolist() == [4, 3, 2, 0, 7, 6, 1, 5]
    assert memoryview(_core._order(0, 42)).tolist() == []
    assert _core._numbers(10, (3, 4, 0, 1), "repeat", False) == ((9, 10, 1), (0, 2, 1))


def test_any_seed_and_epoch_have_an_order():
    def rows(seed, epoch):
        loader = Loader(ROWS, batch_size=3, columns=["x"], shuffle=8, seed=seed)
        loader.set_epoch(epoch)
        return xs(loader)

    for number in (2**53, 2**63, 2**64 - 1, 2**64, 2**200):
        epoch = min(number, 2**64 - 1)  # more are refused
        found = rows(number, epoch)
        assert sorted(row for batch in found for row in batch) == list(range(20))
        assert found == rows(number, epoch)


def test_more_than_there_can_be_is_refused_in_words():
    with pytest.raises(OverflowError, match="claims 18446744073709551616 batches"):
        _core._numbers(2**64, (0, 1, 0, 1), "drop", False)
    with pytest.raises(MemoryError):
        _core._order(2**60, 1)


def test_threads_open_sources_while_one_of_them_imports_a_library():
    """A module that is being imported has none of its classes yet."""
    program = """
import threading
import pyarrow as pa
from arrow_dlpack import Loader
table, barrier, failed = pa.table({"x": [1, 2, 3]}), threading.Barrier(9), []
def read():
    barrier.wait()
    try:
        for _ in range(20):
            list(Loader(table, batch_size=2))
    except Exception as error:
        failed.append(error)
def load():
    barrier.wait()
    import polars, pyarrow.dataset, torch
threads = [threading.Thread(target=read) for _ in range(8)] + [threading.Thread(target=load)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert not failed, failed
"""
    subprocess.run([sys.executable, "-c", program], check=True)
