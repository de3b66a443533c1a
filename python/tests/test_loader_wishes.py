"""What columns become before the engine sees them, and batches of similar lengths."""

import collections

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from arrow_dlpack import (
    AsArrow,
    ByLength,
    ByTokens,
    Cast,
    Categories,
    Dense,
    Loader,
    Pad,
    iter_batches,
)
from arrow_dlpack._wishes import wanted

WORDS = ["cat", "dog", None, "cat", "emu"]
KINDS = {
    "texts": pa.array(WORDS),
    "large": pa.array(WORDS, pa.large_string()),
    "views": pa.array(WORDS, pa.string_view()),
    "dictionary": pa.array(WORDS).dictionary_encode(),
    "views in a dictionary": pa.array(WORDS, pa.string_view()).dictionary_encode(),
}


def columns_of(batches):
    found = collections.defaultdict(list)
    for batch in batches:
        for name, values in batch.items():
            found[name] += np.asarray(values).tolist()
    return dict(found)


@pytest.mark.parametrize("kind", KINDS)
def test_categories_are_positions_among_the_words(kind):
    table = pa.table({"w": KINDS[kind], "x": range(5)})
    options = {
        "batch_size": 2,
        "nulls": -7,
        "columns": {"x": None, "w": Categories(["emu", "cat", "dog"])},
    }
    for batches in Loader(table, **options), iter_batches(table, **options):
        assert columns_of(batches) == {"x": [0, 1, 2, 3, 4], "w": [1, 2, -7, 1, 0]}
    parts = [Loader(table.slice(at, 2), **options) for at in (0, 2, 4)]
    assert [columns_of(part)["w"] for part in parts] == [[1, 2], [-7, 1], [0]]


def test_an_unknown_word_is_refused_unless_it_has_a_code():
    table = pa.table({"w": WORDS})
    with pytest.raises(
        ValueError, match="column \"w\" has 'dog' and 1 more, which is not among its 1"
    ):
        list(Loader(table, columns={"w": Categories(["cat"])}))
    found = columns_of(Loader(table, nulls=-7, columns={"w": Categories(["cat"], unknown=1)}))
    assert found == {"w": [0, 1, -7, 0, 1]}


def test_a_scan_numbers_the_words_in_their_order():
    table = pa.table({"w": WORDS, "n": [3, 1, 2, 3, 1]})
    wishes = {"w": Categories.scan(), "n": Categories()}
    loader = Loader(table, nulls=-1, batch_size=2, columns=wishes)
    for _ in range(2):
        assert columns_of(loader) == {"w": [0, 1, -1, 0, 2], "n": [2, 0, 1, 2, 0]}
    assert columns_of(iter_batches(pl.DataFrame(table), nulls=-1, columns=wishes)) == columns_of(
        loader
    )
    with pytest.raises(TypeError, match="can be read only once: pass the words"):
        list(Loader(table.to_reader(), columns=wishes))


def test_a_label_may_have_categories():
    table = pa.table({"x": [0.5, 1.5], "w": ["b", "a"]})
    features, label = next(
        iter(Loader(table, format="matrix", label={"w": Categories(["a", "b"])}, framework="numpy"))
    )
    assert (features.tolist(), label.tolist()) == ([[0.5], [1.5]], [1, 0])


LENGTHS = [5, 1, 3, 2, 9, 0, 4, 1, 8, 2, 6, 7, 3]
LISTS = pa.table(
    {"row": range(13), "list": [[0] * n for n in LENGTHS], "text": ["é" * n for n in LENGTHS]}
)
LISTS = LISTS.append_column("view", LISTS["text"].cast(pa.string_view()))


@pytest.mark.parametrize("column", ["list", "text", "view"])
@pytest.mark.parametrize("prefetch", [0, 2])
def test_rows_of_similar_lengths_are_together(column, prefetch):
    options = {"columns": ["row"], "prefetch": prefetch, "framework": "numpy"}
    loader = Loader(LISTS, batch_size=ByLength(4, column), **options)
    found = [[LENGTHS[row] for row in batch["row"]] for batch in loader]
    assert found == [[0, 1, 1, 2], [2, 3, 3, 4], [5, 6, 7, 8], [9]]
    loader = Loader(LISTS, batch_size=ByLength(4, column), drop_last=True, **options)
    assert [len(batch["row"]) for batch in loader] == [4, 4, 4]
    shuffled = Loader(LISTS, batch_size=ByLength(4, column), shuffle=8, seed=1, **options)
    epochs = [[batch["row"].tolist() for batch in shuffled] for _ in range(2)]
    assert epochs[0] != epochs[1]
    for epoch in epochs:
        assert sorted(row for batch in epoch for row in batch) == list(range(13))
        assert [len(batch) for batch in epoch] == [4, 4, 4, 1]


def test_a_budget_of_items_counts_the_padding():
    loader = Loader(LISTS, batch_size=ByTokens(12, "list"), columns=["row"], framework="numpy")
    found = [[LENGTHS[row] for row in batch["row"]] for batch in loader]
    assert all(len(batch) * max(batch) <= 12 for batch in found)
    assert sorted(length for batch in found for length in batch) == sorted(LENGTHS)
    assert found[0] == [0, 1, 1, 2, 2]
    with pytest.raises(
        ValueError, match='a row of "list" has 9 items, and the budget of a batch is 8'
    ):
        list(Loader(LISTS, batch_size=ByTokens(8, "list"), columns=["row"]))
    with pytest.raises(KeyError, match='no column "tokens"'):
        list(Loader(LISTS, batch_size=ByTokens(8, "tokens"), columns=["row"]))


def test_wishes_are_values():
    assert Pad(0, max_length=8) == Pad(0, 8)
    assert Categories(["a"]) == Categories(("a",)) != Categories(["b"])
    assert len({Dense(), Dense(), AsArrow(), Cast("float32"), Categories(["a"])}) == 4
    for wrong, words in [
        (lambda: Pad(0, side="up"), "side must be"),
        (lambda: Pad(0, longer="drop"), "longer must be"),
        (lambda: Pad(0, max_length=-1), "max_length must be"),
        (lambda: Categories(["a", "a"]), "words must differ"),
        (lambda: ByLength(0, "x"), "batch_size must be"),
        (lambda: ByTokens(0, "x"), "budget must be"),
    ]:
        with pytest.raises(ValueError, match=words):
            wrong()


def test_the_engine_is_told_the_forms():
    wishes = {
        "a": Pad(0, 8, "left", "error"),
        "b": Dense(),
        "c": AsArrow(),
        "d": Cast("f4", "nan"),
        "e": None,
    }
    assert wanted(wishes, {"f": Categories(["x"])}).forms == {
        "a": ("pad", 0, 8, "left", "error", None, None),
        "b": ("dense", None, None),
        "c": ("arrow",),
        "d": ("tensor", "f4", "nan"),
    }


def test_words_of_a_file_are_encoded_where_it_is_read(tmp_path):
    file = tmp_path / "words.parquet"
    pq.write_table(pa.table({"w": WORDS * 20}), file, row_group_size=7)
    options = {"columns": {"w": Categories.scan()}, "nulls": -1, "batch_size": 10}
    found = [columns_of(Loader(str(file), rank=rank, world_size=2, **options)) for rank in range(2)]
    assert found[0]["w"] + found[1]["w"] == [0, 1, -1, 0, 2] * 20
