"""What columns become before the engine sees them, and batches of similar lengths."""

import collections
import pickle
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import torch
from arrow_dlpack import (
    AsArrow,
    ByLength,
    ByTokens,
    Cast,
    Categories,
    Dense,
    Loader,
    Mix,
    Pad,
    UnsupportedError,
    from_dlpack,
    iter_batches,
)
from arrow_dlpack._loader.columns import wanted

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
    with pytest.raises(ValueError, match='column "w": "dog" and 1 more, which is not among the 1'):
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


def test_codes_and_labels_keep_their_type_where_nulls_become_nan():
    table = pa.table({"x": [0.5, None], "w": ["a", "b"], "y": [1, 0], "ok": [True, False]})
    options = {"nulls": "nan", "framework": "numpy"}
    features, label = next(
        iter(Loader(table, columns={"x": None, "w": Categories()}, label="y", **options))
    )
    assert np.isnan(features["x"][1])
    assert (features["w"].dtype, label.dtype) == ("int32", "int64")
    _, label = next(iter(Loader(table, columns=["x"], label="ok", **options)))
    assert label.dtype == "bool"
    _, label = next(iter(Loader(table, columns=["y"], label="x", **options)))
    assert np.isnan(label[1])
    (matrix, label) = next(iter(Loader(table, columns=["x", "y"], label="y", format="matrix",
                                       **options)))  # fmt: skip
    assert (matrix.dtype, label.dtype) == ("float64", "int64")
    batch = next(iter(Loader(table, columns={"w": Categories(), "x": None}, dtype="f4", **options)))
    assert (batch["w"].dtype, batch["x"].dtype) == ("int32", "float32")


def test_a_column_has_nulls_of_its_own():
    table = pa.table({"w": ["a", None], "list": [[1], None], "x": [0.5, None]})
    columns = {"w": Categories(["a"], nulls=-1), "list": Pad(0, nulls="mask"), "x": None}
    for nulls in "nan", 7.0:
        batch = next(iter(Loader(table, columns=columns, nulls=nulls, framework="numpy")))
        assert batch["w"].tolist() == [0, -1]
        assert batch["list"].values.tolist() == [[1], [0]]
        assert batch["list"].mask.tolist() == [True, False]
    masked = next(iter(Loader(table, columns={"w": Categories(nulls="mask")}, framework="numpy")))
    assert masked["w"][1].tolist() == [True, False]
    for refused in Categories(["a"]), Categories(["a"], nulls="error"):
        with pytest.raises(BufferError, match='column "w": .* has 1 null'):
            next(iter(Loader(table, columns={"w": refused}, nulls="nan")))
    with pytest.raises(TypeError, match='nulls must be a code, "error" or "mask"'):
        Categories(["a"], nulls="nan")
    with pytest.raises(TypeError, match="nulls must be an integer .*, got <NA>"):
        Categories(["a"], nulls=pd.NA)


@pytest.mark.parametrize("nulls", [0, "nan", "mask"])
def test_nulls_of_a_loop_are_not_those_of_a_cast(nulls):
    table = pa.table({"x": [0.5, None], "y": [0.5, None]})
    refused = Loader(table, columns={"x": Cast("float32"), "y": None}, nulls=nulls)
    with pytest.raises(BufferError, match='^column "x": .* by nulls= of Cast') as raised:
        list(refused)
    assert '"y"' not in str(raised.value)
    with pytest.raises(BufferError, match='column "x": .* by nulls= of Cast'):
        refused.encoder()([{"x": None, "y": None}])
    own = {"x": Cast("float32", nulls=-1), "y": None}
    loader = Loader(table, columns=own, nulls=nulls, framework="numpy")
    (batch,) = loader
    assert batch["x"].tolist() == [0.5, -1]
    assert loader.encoder()([{"x": None, "y": 0.5}])["x"].tolist() == [-1]


def test_codes_and_items_have_the_dtypes_that_torch_takes():
    """Indices of an Embedding may not be uint8, labels of cross_entropy not int32."""
    table = pa.table({
        "tokens": pa.array([[1, 2], [3], None], pa.list_(pa.uint8())),
        "pixels": pa.array([[7, 8]] * 3, pa.list_(pa.uint8())),
        "w": ["b", "?", None],
    })  # fmt: skip
    columns = {
        "tokens": Pad(0, nulls=0, dtype="int64"),
        "pixels": Dense(dtype="float16"),
    }
    wish = Categories(["a", "b"], unknown=0, nulls=1, dtype="int64")
    for dtype in None, "float32":
        loader = Loader(table, columns=columns, label={"w": wish}, dtype=dtype, framework="torch")
        features, label = next(iter(loader))
        embedded = torch.nn.EmbeddingBag(4, 2)(features["tokens"].values)
        assert torch.nn.functional.cross_entropy(embedded, label) > 0
        assert features["pixels"].dtype == torch.float16
        assert label.tolist() == [1, 0, 1]
    words = table.slice(0, 1).select(["w"])
    for options in {"format": "matrix"}, {"copy": False}:
        wish = Categories(["a", "b"], dtype="int64")
        (codes,) = iter_batches(words, columns={"w": wish}, **options)
        codes = codes if options.get("format") else codes["w"]
        assert np.asarray(codes).dtype == "int64"
    assert wish == Categories(["a", "b"], dtype="int64") != Categories(["a", "b"])
    (batch,) = Loader(pa.table({"w": ["a", "b"]}), columns={"w": wish}, nulls="nan")
    assert np.asarray(batch["w"]).dtype == "int64"
    assert Categories.scan(dtype="int64").dtype == "int64"
    with pytest.raises(ValueError, match="dtype must be 'int32' or 'int64', got 'float32'"):
        Categories(["a"], dtype="float32")


def test_words_that_were_read_are_for_other_loaders():
    table = pa.table({"w": ["b", "a"], "x": [1, 2]})
    loader = Loader(table, columns={"w": Categories(), "x": None})
    assert loader.categories == {"w": ("a", "b")}
    assert pickle.loads(pickle.dumps(loader)).categories == loader.categories
    wish = Categories(loader.categories["w"], unknown=-1)
    assert columns_of(Loader(pa.table({"w": ["b", "c"]}), columns={"w": wish})) == {"w": [1, -1]}
    wish = Categories(["<unk>", "b"], unknown=0)
    assert columns_of(Loader(table, columns={"w": wish})) == {"w": [1, 0]}


def opened(index, count):
    table = pa.table({"w": ["d", "c", "b", "a"]})
    return table.slice(index * 4 // count, 4 // count).to_reader()


def test_words_of_what_a_function_opens_are_those_of_all_parts():
    loader = Loader(opened, batch_size=2, columns={"w": Categories()})
    for _ in range(2):
        assert columns_of(loader) == {"w": [3, 2, 1, 0]}
    options = {"columns": {"w": Categories()}, "world_size": 2, "uneven": "allow"}
    parts = [columns_of(Loader(opened, rank=rank, **options))["w"] for rank in range(2)]
    assert parts == [[3, 2], [1, 0]]


INNER = pa.StructArray.from_arrays(
    [pa.array([1, 2, 3]), pa.array([["b"], [], ["a", "c"]])],
    names=["n", "words"],
    mask=pa.array([False, True, False]),
)
NESTED = pa.table(
    {
        "s": pa.StructArray.from_arrays([INNER, pa.array(["x", "y", "x"])], names=["in", "w"]),
        "s.w": [7, 8, 9],
        "y": [0, 1, 0],
    }
)


@pytest.mark.parametrize("of", ["table", "file", "polars", "lazy", "batches"])
def test_paths_reach_into_structs(of, tmp_path):
    pq.write_table(NESTED, tmp_path / "nested.parquet", row_group_size=2)
    source = {
        "table": lambda: NESTED,
        "file": lambda: tmp_path / "nested.parquet",
        "polars": lambda: pl.DataFrame(NESTED),
        "lazy": lambda: pl.scan_parquet(tmp_path / "nested.parquet"),
        "batches": NESTED.to_batches,
    }[of]()
    options = {"nulls": -1, "framework": "numpy", "batch_size": 3}
    for where in None, pc.field("y") < 5:
        loader = Loader(source, columns=["s.in.n", "s.w"], label="y", filter=where, **options)
        features, label = next(iter(loader))
        # A column's own name goes first, and nulls of a struct are nulls of its fields.
        assert features["s.in.n"].tolist() == [1, -1, 3]
        assert features["s.w"].tolist() == [7, 8, 9]
        assert label.tolist() == [0, 1, 0]
    (_, label) = next(iter(Loader(source, columns=["y"], label="s.in.n", **options)))
    assert label.tolist() == [1, -1, 3]
    by = ByLength(3, "s.in.words")
    (batch,) = Loader(source, columns=["y"], shuffle=None, **(options | {"batch_size": by}))
    assert batch["y"].tolist() == [1, 0, 0]
    for path in "s.x", "s.in.n.x", "a.b":
        # polars's own error, for a frame that has not been read.
        with pytest.raises((KeyError, pl.exceptions.ColumnNotFoundError), match=path):
            next(iter(Loader(source, columns=[path], **options)))


def test_texts_within_structs_have_categories():
    table = NESTED.drop(["s.w"])
    options = {"columns": {"s.w": Categories.scan()}, "label": "y"}
    features, _ = next(iter(Loader(table, **options)))
    assert np.asarray(features["s.w"]).tolist() == [0, 1, 0]
    features, _ = next(iter(iter_batches(table, **options)))
    assert np.asarray(features["s.w"]).tolist() == [0, 1, 0]
    with pytest.raises(BufferError, match='column "s": .*name its fields in columns='):
        next(iter_batches(table, label="s.w"))
    with pytest.raises(UnsupportedError, match=r'column "s\.w": Utf8 has no tensor form'):
        Loader(table, label="s.w")


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
    epochs = [[batch["row"].tolist() for batch in shuffled] for _ in range(6)]
    assert any(epoch != epochs[0] for epoch in epochs), "there are few orders"
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
    nulls = pa.table({"x": [1, 2], "none": [None, None]})
    assert len(list(Loader(nulls, columns=["x"], batch_size=ByTokens(8, "none")))) == 1
    with pytest.raises(TypeError, match='ByTokens needs a column of lists.*"row" is int64'):
        iter(Loader(LISTS, batch_size=ByTokens(8, "row"), columns=["row"]))
    with pytest.raises(KeyError, match='no column "tokens"'):
        list(Loader(LISTS, batch_size=ByTokens(8, "tokens"), columns=["row"]))


@pytest.mark.parametrize("of", [ByLength, ByTokens])
@pytest.mark.parametrize("column", [["list"], None, 3, b"list", range(2**62)], ids=repr)
def test_similar_lengths_are_those_of_one_column(of, column):
    # A search of the range for a point, as in "a.b", would never end.
    with pytest.raises(TypeError, match="^column must be the name of one column, got "):
        of(8, column)


def test_wishes_are_values():
    assert Pad(0, max_length=8) == Pad(0, 8)
    assert Categories(["a"]) == Categories(("a",)) != Categories(["b"])
    assert len({Dense(), Dense(), AsArrow(), Cast("float32"), Categories(["a"])}) == 4
    for wrong, words in [
        (lambda: Pad(0, side="up"), "side must be"),
        (lambda: Pad(0, longer="drop"), "longer must be"),
        (lambda: Pad(0, max_length=-1), "max_length must be"),
        (lambda: Categories(["a", "b", "a"]), "words must differ, and 'a' is there twice"),
        (lambda: Categories([None, None]), "a null is no word: nulls= says"),
        (lambda: Categories(["a", pd.NA]), "a null is no word: nulls= says"),
        (lambda: Categories([pd.NaT]), "a null is no word: nulls= says"),
        (lambda: Categories(["a"], unknown=2**31), "unknown must be a code of 32 bits"),
        (lambda: Categories.scan(nulls=2**31), "nulls must be a code of 32 bits"),
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
        "b": ("dense", None, None, None),
        "c": ("arrow",),
        "d": ("tensor", "f4", "nan"),
        "f": ("tensor", "int32", None),
    }


def test_words_of_a_file_are_encoded_where_it_is_read(tmp_path):
    file = tmp_path / "words.parquet"
    pq.write_table(pa.table({"w": WORDS * 20}), file, row_group_size=7)
    options = {"columns": {"w": Categories.scan()}, "nulls": -1, "batch_size": 10}
    found = [columns_of(Loader(str(file), rank=rank, world_size=2, **options)) for rank in range(2)]
    assert found[0]["w"] + found[1]["w"] == [0, 1, -1, 0, 2] * 20


@pytest.mark.parametrize("other", [{"z": ["a"]}, {"w": [1]}])
@pytest.mark.parametrize("name", ["q", "x.q"])
def test_a_filled_column_that_no_part_has_is_an_error_that_names_a_part(tmp_path, name, other):
    tables = pa.table({"x": [1], "z": [1]}), pa.table({"x": [1], **other})
    paths = [str(tmp_path / f"{at}.parquet") for at in range(2)]
    for table, path in zip(tables, paths, strict=True):
        pq.write_table(table, path)
    for part, source in {
        "part 0": list(tables),
        "source 0 of the Mix": Mix([(table, 1) for table in tables]),
        f"source 0 of the Mix ({paths[0]})": Mix(dict.fromkeys(paths, 1)),
    }.items():
        told = f"{part} has ['x', 'z']"
        if name == "x.q":
            told = f'"x" is no struct, but int64 in {part}'
            told = f'"x" of {part} has no such field' if part == "part 0" else told
        words = f'no column "{name}": {told}'
        with pytest.raises(KeyError, match=re.escape(words.replace("'", "\\'"))):
            iter(Loader(source, columns={"x": None, name: Cast("float32", nulls=0)}))


@pytest.mark.parametrize("wish", [Cast("float32", nulls=0), Dense(2, nulls=0, dtype="float32")])
@pytest.mark.parametrize("form", [None, "fixed_size_list"])
def test_what_null_rows_of_a_part_hide_may_be_any_values(form, wish):
    mask = np.array([True, False])
    hiding = from_dlpack(np.array([[1.0, 2.0], [1e300, 5.0]]), mask=mask, type=form)
    parts = [pa.table({"x": hiding}), pa.table({"x": from_dlpack(np.array([[3, 4]]), type=form)})]
    for start in 0, 1:
        batches = Loader([parts[0].slice(start), parts[1]], columns={"x": wish})
        rows = [row for batch in batches for row in batch["x"].tolist()]
        assert rows == [[1, 2], [0, 0], [3, 4]][start:]
