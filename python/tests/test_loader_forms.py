"""Wishes that the engine carries out: padded, dense and ragged lists, Arrow arrays, dtypes."""

import numpy as np
import pyarrow as pa
import pytest
import torch
from arrow_dlpack import Array, AsArrow, Cast, Categories, Dense, Encoder, Loader, Pad

TABLE = pa.table(
    {
        "tokens": [[1, 2, 3], [4], [], [5, 6]],
        "pair": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]],
        "text": ["a", "b", None, "d"],
        "price": [1.5, None, 2.5, 3.5],
        "word": ["cat", "dog", "cat", "dog"],
        "x": [1, 2, 3, 4],
    }
)
WISHES = {
    "tokens": Pad(0, max_length=2),
    "pair": Dense(),
    "text": AsArrow(),
    "price": Cast("float32", nulls="nan"),
    "word": Categories(["cat", "dog"]),
    "x": None,
}


@pytest.mark.parametrize("prefetch", [0, 2])
def test_each_column_becomes_what_was_wished(prefetch):
    loader = Loader(TABLE, batch_size=3, columns=WISHES, framework="torch", prefetch=prefetch)
    batch = next(iter(loader))
    assert list(batch) == list(WISHES)
    values, lengths = batch["tokens"]
    assert values.tolist() == [[1, 2], [4, 0], [0, 0]]
    assert lengths.tolist() == [2, 1, 0]
    assert batch["pair"].tolist() == [[1, 2], [3, 4], [5, 6]]
    assert isinstance(batch["text"], Array)
    assert pa.array(batch["text"]).to_pylist() == ["a", "b", None]
    assert batch["price"].dtype == torch.float32
    np.testing.assert_array_equal(batch["price"], [1.5, np.nan, 2.5])
    assert batch["word"].tolist() == [0, 1, 0]
    assert batch["x"].tolist() == [1, 2, 3]


def test_a_label_may_be_padded():
    _, label = next(
        iter(Loader(TABLE, columns=["x"], label={"tokens": Pad(-1)}, framework="numpy"))
    )
    assert label.values.tolist() == [[1, 2, 3], [4, -1, -1], [-1, -1, -1], [5, 6, -1]]
    features, labels = next(
        iter(Loader(TABLE, columns={"x": None}, label={"pair": Dense(), "word": WISHES["word"]}))
    )
    assert (list(features), list(labels)) == (["x"], ["pair", "word"])


def test_lists_without_a_wish_are_ragged():
    batch = next(iter(Loader(TABLE, columns=["tokens"], batch_size=2, framework="numpy")))
    assert batch["tokens"].values.tolist() == [1, 2, 3, 4]
    assert batch["tokens"].offsets.tolist() == [0, 3, 4]


@pytest.mark.parametrize("options", [{"shuffle": 4, "seed": 1}, {"rank": 0, "world_size": 1}])
def test_forms_go_with_shuffles_and_ranks(options):
    loader = Loader(TABLE, batch_size=1, columns=WISHES, framework="numpy", **options)
    found = sorted((batch["x"].tolist(), batch["tokens"].lengths.tolist()) for batch in loader)
    assert found == [([1], [2]), ([2], [1]), ([3], [0]), ([4], [2])]


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("wish", [Dense(), Dense(2)])
def test_codes_in_lists_are_refused_in_a_matrix_too(wish, large):
    kind, offsets = (pa.LargeListArray, pa.int64()) if large else (pa.ListArray, pa.int32())

    def lists(words):
        codes = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), pa.array(words))
        return kind.from_arrays(pa.array([0, 2], offsets), codes)

    table = pa.table({"c": pa.chunked_array([lists(["x", "y"]), lists(["y", "x"])])})
    options = {"format": "matrix", "columns": {"c": wish}, "physical": True}
    for size in (1, 2):
        with pytest.raises(TypeError, match='column "c": .*other values in the next batch'):
            list(Loader(table, batch_size=size, **options))


def _runs(kind):
    return pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], kind), pa.array([7, 9]))


WITHOUT_VALIDITY = {
    "runs": _runs("int32"),
    "runs of lists": pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], "int16"), [[7], [9]]),
    "sparse union": pa.UnionArray.from_sparse(
        pa.array([0, 1, 0], "int8"), [pa.array([7, 8, 9]), pa.array(["a", "b", "c"])]
    ),
    "dense union": pa.UnionArray.from_dense(
        pa.array([0, 1, 0], "int8"),
        pa.array([0, 0, 1], "int32"),
        [pa.array([7, 9]), pa.array(["b"])],
    ),
}


@pytest.mark.parametrize("kind", WITHOUT_VALIDITY)
def test_fields_without_validity_are_null_where_their_struct_is(kind):
    """pyarrow 26 gives the values under the null, or ends the process."""
    values = WITHOUT_VALIDITY[kind]
    mask = pa.array([False, True, False])
    structs = pa.StructArray.from_arrays([pa.array([1, 2, 3]), values], ["a", "b"], mask=mask)
    first, _, last = values.to_pylist()
    for source, name, expected in [
        (structs, "b", [first, None, last]),
        (structs.slice(1), "b", [None, last]),
        (pa.table({"m": structs}), "m.b", [first, None, last]),
        (pa.table({"m": structs}).slice(1), "m.b", [None, last]),
        (pa.table({"m": structs}).slice(2), "m.b", [last]),
        (iter(pa.table({"m": structs}).to_batches()), "m.b", [first, None, last]),
    ]:
        (batch,) = Loader(source, columns={name: AsArrow()})
        assert pa.array(batch[name]).to_pylist() == expected
    if kind == "runs":
        plain = pa.table({"a": [{"b": 1}]})
        encoder = Encoder(columns={"a.b": Cast("int64", nulls=-1)}).fit(plain)
        assert encoder({"a": structs})["a.b"].tolist() == [7, -1, 9]


SHUFFLED = {
    "runs": pa.RunEndEncodedArray.from_arrays(pa.array([2, 3, 7], "int64"), ["a", "b", "c"]),
    "views of pairs": pa.array(
        [[[1, 2]] * length for length in range(7)], pa.list_view(pa.list_(pa.int64(), 2))
    ),
    "views of pairs of texts": pa.array(
        [[["a", "b" * length]] * length for length in range(7)],
        pa.list_view(pa.list_(pa.string(), 2)),
    ),
    "many texts": pa.array([str(row) * 40 for row in range(20_000)]),
    "many lists": pa.array([[row] * 40 for row in range(20_000)]),
    "many structs": pa.array([{"a": str(row) * 40} for row in range(20_000)]),
}


@pytest.mark.parametrize("name", SHUFFLED)
def test_rows_of_any_layout_are_shuffled_whole(name):
    values = SHUFFLED[name]
    rows = len(values)
    table = pa.table({"x": values, "row": range(rows)})
    wishes = {"x": AsArrow(), "row": None}
    (batch,) = Loader(table, columns=wishes, batch_size=rows, shuffle=rows, seed=0)
    order = batch["row"].tolist()
    assert order != sorted(order)
    assert pa.array(batch["x"]).to_pylist() == [values[row].as_py() for row in order]


def test_a_field_that_is_null_where_its_struct_is_says_so():
    own = pa.field("s", pa.int64(), nullable=False)
    structs = pa.StructArray.from_arrays(
        [pa.array([1, 2])], fields=[own], mask=pa.array([False, True])
    )
    (batch,) = Loader(pa.table({"m": structs}), columns={"m.s": AsArrow()})
    assert pa.field(batch["m.s"]).nullable
    assert pa.array(batch["m.s"]).to_pylist() == [1, None]


def test_booleans_of_structs_that_are_sliced_are_null_where_their_struct_is():
    """Their bits begin within a byte, and those of both validities elsewhere."""
    structs = pa.array([{"b": True}, {"b": None}, None] * 3, pa.struct({"b": pa.bool_()}))
    for start in range(9):
        some = structs.slice(start)
        (batch,) = Loader(some, columns={"b": Cast("bool", nulls="mask")})
        expected = [None if row is None else row["b"] for row in some.to_pylist()]
        values, mask = batch["b"]
        assert mask.tolist() == [value is not None for value in expected]
        assert [v for v, m in zip(values.tolist(), mask.tolist(), strict=True) if m] == [
            value for value in expected if value is not None
        ]
