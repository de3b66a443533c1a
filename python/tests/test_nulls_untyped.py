"""Columns of nulls without a type: those of whatever dtype, or wish, is asked for."""

import numpy as np
import pyarrow as pa
import pytest
from arrow_dlpack import (
    ByLength,
    ByTokens,
    Cast,
    Categories,
    Dense,
    Loader,
    Mix,
    Pad,
    UnsupportedError,
    explain,
    ragged,
    to_tensor,
)

NOTHING = pa.table({"n": pa.nulls(3), "i": pa.array([None] * 3, pa.int64())})


@pytest.mark.parametrize(
    "options",
    [
        {"nulls": "nan", "dtype": "float32"},
        {"nulls": 0, "dtype": "int64"},
        {"nulls": "mask", "dtype": "int16"},
        {"nulls": -1, "dtype": "float64", "copy": True},
        {"nulls": "nan", "dtype": "float16"},
    ],
)
def test_nulls_without_a_type_are_those_of_the_dtype(options):
    def values(made):
        made = made if isinstance(made, tuple) else (made,)
        return [(str(one.dtype), np.asarray(one).tolist()) for one in made]

    for of in (lambda column: column, lambda column: column.slice(1, 1), lambda column: column[:0]):
        made = [values(to_tensor(of(NOTHING[name]), **options)) for name in "ni"]
        if options["nulls"] == "mask":  # values under False are arbitrary
            made = [[one[0][0], one[1]] for one in made]
        assert str(made[0]) == str(made[1])
    matrix = to_tensor(NOTHING, **options)
    matrix = matrix[0] if isinstance(matrix, tuple) else matrix
    assert matrix.shape == (3, 2)
    lists = pa.array([[None, None], []], pa.list_(pa.null()))
    if options["nulls"] != "mask":
        assert ragged(lists, **options).values.dtype == options["dtype"]


@pytest.mark.parametrize("dtype", ["float64", "float16", "int8", "bool", "bfloat16"])
@pytest.mark.parametrize(
    "source",
    [
        pa.nulls(1000),
        pa.nulls(1000)[10:20],
        pa.nulls(0),
        pa.chunked_array([pa.nulls(4), pa.nulls(6)]),
        pa.chunked_array([pa.nulls(0), pa.nulls(6)]),
        pa.table({"a": pa.nulls(10)}),
        pa.table({"a": pa.nulls(10), "b": pa.nulls(10)}),
        pa.FixedSizeListArray.from_arrays(pa.nulls(10), 2),
    ],
)
@pytest.mark.parametrize("copy", [None, True])
def test_values_made_beside_a_mask_are_explained(source, dtype, copy):
    options = {"dtype": dtype, "nulls": "mask", "copy": copy}
    values, mask = to_tensor(source, **options)
    plan = explain(source, **options)
    if values.size:
        assert [step.nbytes for step in plan.steps] == [values.nbytes, mask.nbytes]
        assert f"{values.size} nulls are replaced" in plan.steps[0].reasons
        assert not values.readonly
        with pytest.raises(BufferError, match="nulls are replaced"):
            to_tensor(source, **options | {"copy": False})
    assert plan.bytes_copied == values.nbytes + mask.nbytes


def test_codes_of_a_dictionary_of_nulls_are_shared_beside_their_mask():
    words = pa.DictionaryArray.from_arrays(pa.array([0, None], "int8"), pa.nulls(1))
    plan = explain(words, physical=True, nulls="mask")
    assert [step.nbytes for step in plan.steps] == [2]
    values, mask = to_tensor(words, physical=True, nulls="mask")
    assert values.readonly
    assert mask.tolist() == [False, False]


def test_in_loaders_they_are_nulls_of_whatever_is_asked_for():
    wishes = [
        Cast("float64", nulls="nan"),
        Cast("int32", nulls=7),
        Cast("float32", nulls="mask"),
        Categories([1, 2], nulls=-1),
        Categories([1, 2], nulls="mask"),
        Categories([1], nulls=-1, unknown=0),
        Categories.scan(nulls=-1),
    ]
    for wish in wishes:
        for more in ({}, {"batch_size": 2}, {"batch_size": 2, "shuffle": 3, "seed": 0}):
            for source in (NOTHING, [NOTHING, NOTHING], NOTHING.to_reader, Mix([(NOTHING, 1.0)])):
                data = source if not callable(source) else source()
                if wish == Categories.scan(nulls=-1) and callable(source):
                    continue
                wanted = {"n": wish, "i": wish}
                for batch in Loader(data, columns=wanted, framework="numpy", **more):
                    ours, theirs = (
                        one if isinstance(one, tuple) else (one,) for one in batch.values()
                    )
                    assert [str(one) for one in ours[-1:]] == [str(one) for one in theirs[-1:]]
                    assert ours[0].dtype == theirs[0].dtype


@pytest.mark.parametrize("words", [["a", "b"], [1], [], None])
@pytest.mark.parametrize("nulls", [-1, "mask", None])
def test_a_dictionary_of_nulls_has_no_word_and_refuses_none(words, nulls):
    wish = Categories.scan(nulls=nulls) if words is None else Categories(words, nulls=nulls)

    def codes(column):
        table = pa.table({"c": column, "x": [1, 2]})
        found = []
        for source in table, table.slice(1), table[:0], [table, table], Mix([(table, 1.0)]):
            try:
                batches = Loader(source, columns={"c": wish, "x": None}, framework="numpy")
                found += [str(batch["c"]) for batch in batches]
            except UnsupportedError as error:
                found.append(str(error))
        return found

    for index, values in ([0, None], pa.nulls(1)), ([None, None], pa.nulls(0)):
        column = pa.DictionaryArray.from_arrays(pa.array(index, pa.int8()), values)
        assert codes(column) == codes(pa.nulls(2))


@pytest.mark.parametrize("values", [pa.nulls(1), pa.nulls(1, pa.string())])
def test_other_parts_have_the_words_that_a_dictionary_of_nulls_lacks(values):
    nulls = pa.DictionaryArray.from_arrays(pa.array([0, None], pa.int8()), values)
    parts = [pa.table({"c": column}) for column in (nulls, ["b", "a"])]
    for source in parts, parts[::-1], Mix([(part, 1) for part in parts]):
        for wish in Categories(["a", "b"], nulls=-1), Categories.scan(nulls=-1):
            batches = Loader(source, columns={"c": wish})
            assert sorted(at for one in batches for at in one["c"].tolist()) == [-1, -1, 0, 1]


LISTS = [Pad(0), Pad(0, max_length=2, nulls=0, dtype="float32"), Dense(), Dense(2)]
LISTS += [Dense(nulls=0, dtype="float32"), Dense(2, nulls=0, dtype="float32"), Dense(2, nulls=0)]


@pytest.mark.parametrize("wish", LISTS, ids=repr)
def test_of_lists_they_are_cast_as_the_refusal_says(wish):
    def made(source, **more):
        try:
            wished = {"n": wish}
            return str(list(Loader(source, columns=wished, framework="numpy", **more)))
        except (UnsupportedError, ValueError) as error:
            return str(error)

    lists = NOTHING.set_column(0, "n", NOTHING["n"].cast(pa.list_(pa.int64())))
    for more in ({}, {"batch_size": 2}):
        for source in (NOTHING, NOTHING[:0], [NOTHING, NOTHING], Mix([(NOTHING, 1.0)])):
            with pytest.raises((UnsupportedError, ValueError), match="lists.*: cast") as error:
                iter(Loader(source, columns={"n": wish}, **more))
            assert 'column "n"' in str(error.value)
        # Of one type with the lists of another part.
        for part in ([NOTHING, lists], [lists, NOTHING]):
            assert made(part, **more) == made([lists, lists], **more)
        of_mix = Mix([(NOTHING, 1.0), (lists, 1.0)])
        assert made(of_mix, **more) == made(Mix([(lists, 1.0)] * 2), **more)


@pytest.mark.parametrize("by", [ByTokens(4, "n"), ByLength(2, "n")])
def test_their_rows_have_no_length(by):
    (batch,) = Loader(NOTHING[:2], batch_size=by, columns={"i": Cast("int64", nulls=0)})
    assert batch["i"].tolist() == [0, 0]
    nothing = NOTHING.set_column(1, "i", pa.array([1, 2, 3]))
    lists = pa.table({"n": [[1], [1, 2]], "i": [4, 5]})
    for source in [nothing, lists], Mix([(nothing, 1), (lists, 1)]):
        batches = Loader(source, batch_size=by, columns=["i"])
        assert sorted(at for one in batches for at in one["i"].tolist()) == [1, 2, 3, 4, 5]


def test_a_null_in_a_union_of_words_is_a_null():
    values, kinds = [pa.array([7, None]), pa.array(["a"])], pa.array([0, 1, 0], "int8")
    words = pa.UnionArray.from_dense(kinds, pa.array([0, 0, 1], "int32"), values)
    codes = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None], "int32"), words)
    options = {"physical": True, "nulls": -1}
    assert to_tensor(codes, **options).tolist() == [0, 1, -1, -1]
    for column in codes, pa.chunked_array([codes.slice(0, 2), codes.slice(2)]):
        (batch,) = Loader(pa.table({"x": column}), batch_size=4, **options)
        assert batch["x"].tolist() == [0, 1, -1, -1]
