"""Streams as batches of tensors: which rows, in which batch, shared or copied."""

import datetime
import itertools

import numpy as np
import pyarrow as pa
import pytest
from arrow_dlpack import Array, Tensor, UnsupportedError, iter_batches, record_batch, to_tensor
from descriptions import described, leaf_address
from hypothesis import given, settings
from hypothesis import strategies as st

NUMBERS = pa.table({"x": np.arange(10.0), "y": np.arange(10) * 10, "z": np.arange(10) % 3})


def rows_of(batches):
    """The values of each batch, whatever it is made of."""
    return [plain(batch) for batch in batches]


def plain(batch):
    if isinstance(batch, Tensor):
        return np.from_dlpack(batch).tolist()
    if isinstance(batch, dict):
        return {name: plain(part) for name, part in batch.items()}
    return tuple(plain(part) for part in batch)


def in_chunks(table, ends):
    """The same table, with edges behind these rows."""
    edges = [0, *sorted(end % (len(table) + 1) for end in ends), len(table)]
    parts = [table.slice(a, b - a) for a, b in itertools.pairwise(edges)]
    batches = [batch for part in parts for batch in part.combine_chunks().to_batches()]
    return pa.RecordBatchReader.from_batches(table.schema, batches)


ENDS = st.lists(st.integers(0, 60), max_size=6)


@settings(max_examples=200)
@given(
    rows=st.integers(0, 50),
    ends=ENDS,
    size=st.integers(1, 60),
    drop_last=st.booleans(),
    form=st.sampled_from(["dict", "matrix"]),
    label=st.booleans(),
    prefetch=st.integers(0, 3),
)
def test_batches_are_the_rows_in_order_whatever_the_chunks(
    *, rows, ends, size, drop_last, form, label, prefetch
):
    table = pa.table(
        {
            "x": np.arange(rows, dtype="float32"),
            "pair": pa.FixedSizeListArray.from_arrays(pa.array(np.arange(2.0 * rows)), 2),
            "y": np.arange(rows),
        }
    )
    if form == "matrix":
        table = table.drop("pair")
    found = list(
        iter_batches(
            in_chunks(table, ends),
            batch_size=size,
            drop_last=drop_last,
            format=form,
            label="y" if label else None,
            prefetch=prefetch,
        )
    )
    whole, rest = divmod(rows, size)
    expected = [table.slice(i * size, size) for i in range(whole + (rest > 0 and not drop_last))]
    assert len(found) == len(expected)
    for batch, part in zip(found, expected, strict=True):
        features, target = batch if label else (batch, None)
        columns = [name for name in table.column_names if not (label and name == "y")]
        if form == "dict":
            assert plain(features) == {name: part[name].to_pylist() for name in columns}
        else:
            assert plain(features) == np.stack([part[name] for name in columns], axis=1).tolist()
        if label:
            assert plain(target) == part["y"].to_pylist()
            assert target.dtype == "int64"


def test_rows_within_a_chunk_are_shared_and_those_across_an_edge_are_copied():
    chunks = [pa.array(np.arange(6.0)), pa.array(np.arange(6.0, 10.0))]
    table = pa.table({"x": pa.chunked_array(chunks)})
    batches = [batch["x"] for batch in iter_batches(table, batch_size=4)]
    addresses = [described(batch).address for batch in batches]
    assert addresses[0] == leaf_address(chunks[0])
    assert addresses[2] == leaf_address(chunks[1]) + 2 * 8
    assert [batch.readonly for batch in batches] == [True, False, True]
    ends = [leaf_address(chunk) + 8 * i for chunk in chunks for i in range(len(chunk))]
    assert addresses[1] not in ends


def test_without_a_size_batches_are_those_of_the_source():
    parts = [NUMBERS.slice(0, 3), NUMBERS.slice(0, 0), NUMBERS.slice(3, 7)]
    batches = [part.combine_chunks().to_batches() for part in parts]
    empty = pa.record_batch([pa.array([], f.type) for f in NUMBERS.schema], schema=NUMBERS.schema)
    source = pa.RecordBatchReader.from_batches(NUMBERS.schema, [*batches[0], empty, *batches[2]])
    found = [batch["y"] for batch in iter_batches(source)]
    assert rows_of(found) == [[0, 10, 20], [30, 40, 50, 60, 70, 80, 90]]
    assert described(found[1]).address == leaf_address(batches[2][0]["y"])


def test_columns_are_features_in_their_order_and_the_label_is_none_of_them():
    found = next(iter_batches(NUMBERS, batch_size=2, columns=["y", "x"], label="z"))
    assert list(found[0]) == ["y", "x"]
    assert plain(found) == ({"y": [0, 10], "x": [0, 1]}, [0, 1])
    with_label = next(iter_batches(NUMBERS, batch_size=2, columns=["z", "y", "x"], label="z"))
    assert plain(with_label) == plain(found)
    found = next(iter_batches(NUMBERS, batch_size=2, format="matrix", columns=["y", "x"]))
    assert plain(found) == [[0, 0], [10, 1]]


def test_the_dtype_is_that_of_the_features():
    features, label = next(iter_batches(NUMBERS, dtype="float32", label="z", format="matrix"))
    assert (features.dtype, label.dtype) == ("float32", "int64")
    features, label = next(iter_batches(NUMBERS, dtype="int16", label="z"))
    assert [tensor.dtype for tensor in features.values()] == ["int16", "int16"]


@pytest.mark.parametrize("prefetch", [0, 2])
def test_nulls_are_what_is_said(prefetch):
    table = pa.table({"x": [1, 2, None, 4], "y": [0.5, None, 1.5, 2.5]})
    every = {"batch_size": 3, "prefetch": prefetch}
    assert rows_of(iter_batches(table, nulls=-1, **every)) == [
        {"x": [1, 2, -1], "y": [0.5, -1, 1.5]},
        {"x": [4], "y": [2.5]},
    ]
    (first, label), _ = iter_batches(table, nulls="nan", label="y", **every)
    np.testing.assert_array_equal(np.from_dlpack(first["x"]), [1, 2, np.nan])
    np.testing.assert_array_equal(np.from_dlpack(label), [0.5, np.nan, 1.5])
    (features, (values, mask)), _ = iter_batches(table, nulls="mask", label="y", **every)
    assert plain(features["x"][1]) == [True, True, False]
    assert plain(mask) == [True, False, True]
    assert plain(values)[::2] == [0.5, 1.5]
    (values, mask), _ = iter_batches(table, nulls="mask", format="matrix", **every)
    assert plain(mask) == [[True, True], [True, False], [False, True]]
    assert plain(values)[0] == [1, 0.5]


@pytest.mark.parametrize("prefetch", [0, 2])
def test_a_null_is_an_error_in_the_place_of_its_batch_and_the_end(prefetch):
    table = pa.table({"x": [1, 2, 3, None, 5, 6]})
    batches = iter_batches(table, batch_size=2, prefetch=prefetch)
    assert plain(next(batches)) == {"x": [1, 2]}
    with pytest.raises(UnsupportedError, match='column "x": .*1 null in 2 values'):
        next(batches)
    assert list(batches) == []


def test_a_null_row_is_null_in_all_its_columns():
    rows = pa.StructArray.from_arrays(
        [pa.array([1, 2, 3])], ["x"], mask=pa.array([False, True, False])
    )
    assert rows_of(iter_batches(Array(rows), nulls=0, batch_size=2)) == [{"x": [1, 0]}, {"x": [3]}]


def test_what_no_rows_can_be_is_refused_before_any_is_read():
    def never():
        raise AssertionError
        yield

    def source(**columns):
        schema = pa.schema(columns)
        return pa.RecordBatchReader.from_batches(schema, never())

    with pytest.raises(UnsupportedError, match='column "text": .*leave it out'):
        iter_batches(source(x=pa.int8(), text=pa.string()))
    with pytest.raises(UnsupportedError, match='column "text": .*make codes of it'):
        iter_batches(source(x=pa.int8(), text=pa.string()), label="text")
    permuted = pa.fixed_shape_tensor(pa.int8(), [2, 3], permutation=[1, 0])
    with pytest.raises(BufferError, match="axes are permuted"):
        iter_batches(source(x=permuted), format="matrix")
    with pytest.raises(UnsupportedError, match="physical=True"):
        iter_batches(source(day=pa.date32()), prefetch=2)
    with pytest.raises(ValueError, match="float32 cannot become bool"):
        iter_batches(source(x=pa.float32()), dtype="bool")
    with pytest.raises(KeyError, match='no column "y" among'):
        iter_batches(source(x=pa.int8()), columns=["y"])
    with pytest.raises(KeyError, match='no column "y" among'):
        iter_batches(source(x=pa.int8()), label="y")
    with pytest.raises(BufferError, match="^no features are left beside the label$"):
        iter_batches(source(x=pa.int8()), label="x", format="matrix")


def test_names_tell_the_columns_of_a_dict_apart():
    twice = pa.table([[1], [2], [3]], ["a", "a", "b"])
    with pytest.raises(KeyError, match='2 columns are called "a"'):
        iter_batches(twice)
    assert rows_of(iter_batches(twice, format="matrix")) == [[[1, 2, 3]]]
    assert rows_of(iter_batches(twice, columns=["b"])) == [{"b": [3]}]
    with pytest.raises(KeyError, match='columns= names "b" twice'):
        iter_batches(twice, columns=["b", "b"])


def test_what_is_only_a_label_leaves_no_features():
    table = pa.table({"y": [1, 2]})
    assert rows_of(iter_batches(table, label="y")) == [({}, [1, 2])]


def test_one_column_is_a_tensor():
    column = pa.chunked_array([[[1, 2], [3, 4]], [[5, 6]]], pa.list_(pa.int8(), 2))
    for prefetch in 0, 1:
        found = iter_batches(column, format="matrix", batch_size=3, prefetch=prefetch)
        assert rows_of(found) == [[[1, 2], [3, 4], [5, 6]]]
    for wrong in {"format": "dict"}, {"columns": ["x"]}, {"label": "x"}:
        with pytest.raises(TypeError, match="is for tables|are for tables"):
            iter_batches(column, **{"format": "matrix"} | wrong)


def test_images_and_labels_are_batches():
    images = np.arange(5 * 2 * 3, dtype="uint8").reshape(5, 2, 3)
    table = record_batch({"image": images, "digit": np.arange(5)})
    found = list(iter_batches(table, batch_size=2, label="digit"))
    assert [batch[0]["image"].shape for batch in found] == [(2, 2, 3), (2, 2, 3), (1, 2, 3)]
    assert plain(found[1][0]["image"]) == images[2:4].tolist()


def test_physical_values_are_taken_when_asked_for():
    days = [datetime.date(1970, 1, 1 + day) for day in range(3)]
    table = pa.table({"day": days})
    found = next(iter_batches(table, batch_size=2, physical=True))["day"]
    assert plain(found) == [0, 1]
    assert pa.field(found.field).type == pa.date32()


def test_codes_in_one_batch_are_of_one_dictionary():
    chunks = [pa.array(["a", "b", "a"]), pa.array(["c", "b", "b"])]
    column = pa.chunked_array([chunk.dictionary_encode() for chunk in chunks])
    words = [*chunks[0].to_pylist(), *chunks[1].to_pylist()]
    for shuffle in {}, {"shuffle": 4, "seed": 1}:
        found = []
        for batch in iter_batches(pa.table({"w": column}), batch_size=2, physical=True, **shuffle):
            dictionary = pa.array(batch["w"].dictionary).to_pylist()
            found += [dictionary[code] for code in plain(batch["w"])]
        assert found == words if not shuffle else sorted(found) == sorted(words)


def test_batches_outlive_their_source():
    def found():
        table = pa.table({"x": pa.chunked_array([np.arange(5), np.arange(5)])})
        return list(iter_batches(table, batch_size=3))

    assert rows_of(found()) == [{"x": [0, 1, 2]}, {"x": [3, 4, 0]}, {"x": [1, 2, 3]}, {"x": [4]}]


WRONG = [
    ({"batch_size": 0}, ValueError, "batch_size must be an integer of at least 1, got 0"),
    ({"batch_size": 2.0}, TypeError, "batch_size must be an integer of at least 1, got 2.0"),
    ({"batch_size": True}, TypeError, "batch_size must be an integer"),
    ({"batch_size": 1 << 70}, ValueError, "batch_size must be an integer below"),
    ({"prefetch": -1}, ValueError, "prefetch must be an integer of at least 0"),
    ({"prefetch": None}, TypeError, "prefetch must be an integer of at least 0"),
    ({"format": "list"}, ValueError, 'format must be "dict" or "matrix", got \'list\''),
    ({"label": 3}, TypeError, "label must be the name of a column, or several, got 3"),
    ({"shard": (0, 2)}, TypeError, "iter_batches() got an unexpected keyword argument 'shard'"),
    ({"rank": 1, "world_size": 1}, ValueError, "rank must be below world_size, got 1 of 1"),
    ({"rank": 0, "world_size": 0}, ValueError, "world_size must be an integer of at least 1"),
    ({"rank": -1, "world_size": 2}, ValueError, "rank must be an integer of at least 0"),
    ({"rank": 0}, TypeError, "rank and world_size belong together"),
    ({"uneven": "shard"}, ValueError, 'uneven must be "drop", "repeat" or "allow"'),
    ({"framework": "keras"}, ValueError, 'framework must be "torch", "jax", "numpy"'),
    ({"label": ["x", "x"]}, KeyError, 'label= names "x" twice'),
    ({"columns": "x"}, TypeError, "columns must be a list of names"),
    ({"nulls": "none"}, ValueError, 'nulls must be "error", "nan", "mask" or a number'),
    ({"dtype": "float33"}, ValueError, "float33"),
    ({"drop_last": True}, TypeError, "drop_last needs a batch_size"),
    ({"shuffle": 9}, TypeError, "shuffle needs a batch_size"),
    (
        {"shuffle": 9, "drop_last": True},
        TypeError,
        "drop_last and shuffle need a batch_size",
    ),
    ({"columns": [], "format": "matrix"}, ValueError, "columns= is empty: "),
    ({"seed": 1}, TypeError, "seed is for shuffle"),
    ({"batch_size": 1, "shuffle": 0}, ValueError, "at least 1"),
    (
        {"batch_size": 1, "shuffle": 5, "seed": -1},
        ValueError,
        "seed must be an integer of at least 0",
    ),
]


@pytest.mark.parametrize(("options", "kind", "words"), WRONG)
def test_wrong_arguments_are_named(options, kind, words):
    with pytest.raises(kind) as caught:
        iter_batches(NUMBERS, **options)
    assert words in str(caught.value)
    if "needs" in words:
        assert str(caught.value) == words


def test_numbers_may_be_numpys():
    assert len(list(iter_batches(NUMBERS, batch_size=np.int64(4), prefetch=np.uint8(1)))) == 3


@pytest.mark.parametrize("source", [None, 3, [1, 2], {"x": [1]}, np.arange(3)])
def test_what_is_no_source_is_refused(source):
    with pytest.raises(TypeError, match="takes a path, a table, a frame, a dataset"):
        iter_batches(source)


@given(
    rows=st.integers(0, 60),
    ends=ENDS,
    size=st.integers(1, 20),
    count=st.integers(1, 4),
    shuffled=st.booleans(),
)
def test_ranks_have_each_row_once_in_batches_of_exactly_so_many(rows, ends, size, count, shuffled):
    options = {"world_size": count, "uneven": "allow"}
    options |= {"shuffle": 10, "seed": 3} if shuffled else {}
    found = []
    for index in range(count):
        source = in_chunks(pa.table({"x": np.arange(rows)}), ends)
        batches = iter_batches(source, batch_size=size, rank=index, **options)
        found.append([batch["x"] for batch in rows_of(batches)])
    everything = [batch for part in found for batch in part]
    assert sorted(row for batch in everything for row in batch) == list(range(rows))
    assert sum(len(batch) != size for batch in everything) == (rows % size > 0)
    if not shuffled:
        expected = [list(range(at, min(at + size, rows))) for at in range(0, rows, size)]
        assert found == [expected[index::count] for index in range(count)]


@settings(max_examples=100)
@given(
    rows=st.integers(0, 200),
    ends=ENDS,
    size=st.integers(1, 60),
    buffer=st.integers(1, 100),
    drop_last=st.booleans(),
    prefetch=st.integers(0, 2),
    seed=st.integers(0, 2**64),
)
def test_shuffled_rows_are_each_there_once_and_whole(
    *, rows, ends, size, buffer, drop_last, prefetch, seed
):
    table = pa.table(
        {
            "x": np.arange(rows),
            "pair": pa.FixedSizeListArray.from_arrays(pa.array(np.arange(2 * rows)), 2),
            "y": pa.array(np.arange(rows) * 3, mask=np.arange(rows) % 4 == 1),
        }
    )
    batches = list(
        iter_batches(
            in_chunks(table, ends),
            batch_size=size,
            label="y",
            nulls=-1,
            drop_last=drop_last,
            shuffle=buffer,
            seed=seed,
            prefetch=prefetch,
        )
    )
    sizes = [label.shape[0] for _, label in batches]
    whole, rest = divmod(rows, size)
    assert sizes == [size] * whole + [rest] * (rest > 0 and not drop_last)
    if not batches:
        return
    x = np.concatenate([np.from_dlpack(features["x"]) for features, _ in batches])
    pairs = np.concatenate([np.from_dlpack(features["pair"]) for features, _ in batches])
    y = np.concatenate([np.from_dlpack(label) for _, label in batches])
    assert len(set(x.tolist())) == len(x)
    np.testing.assert_array_equal(pairs, np.stack([2 * x, 2 * x + 1], axis=1))
    np.testing.assert_array_equal(y, np.where(x % 4 == 1, -1, x * 3))
    # A row cannot come before it has been read, and no more are read than the buffer takes.
    assert (x <= np.arange(len(x)) + 2 * max(buffer, size)).all()


@given(ends=ENDS, prefetch=st.integers(0, 2))
def test_the_seed_alone_decides_the_order(ends, prefetch):
    def order(seed, ends=ends):
        batches = iter_batches(
            in_chunks(NUMBERS, ends),
            batch_size=3,
            shuffle=4,
            seed=seed,
            prefetch=prefetch,
        )
        return rows_of(batches)

    assert order(7) == order(7, ends=[])
    assert any(order(7) != order(seed) for seed in range(3))


def test_without_a_seed_each_order_is_another():
    table = pa.table({"x": np.arange(100)})
    options = {"batch_size": 100, "shuffle": 100}
    first, second = (rows_of(iter_batches(table, **options)) for _ in range(2))
    assert first != second


def test_every_order_is_as_likely_as_the_others():
    table = pa.table({"x": np.arange(3)})
    orders = {}
    for seed in range(3000):
        batches = iter_batches(table, batch_size=3, shuffle=3, seed=seed)
        order = tuple(plain(next(batches))["x"])
        orders[order] = orders.get(order, 0) + 1
    assert len(orders) == 6
    # 500 each, give or take six standard deviations.
    assert all(abs(count - 500) < 6 * (3000 * 5 / 36) ** 0.5 for count in orders.values())


def test_the_buffer_mixes_rows_that_are_far_apart():
    rows, buffer = 10_000, 1000
    table = pa.table({"x": np.arange(rows)})
    options = {"batch_size": 100, "shuffle": buffer, "seed": 3}
    batches = list(iter_batches(table, **options))
    x = np.concatenate([np.from_dlpack(batch["x"]) for batch in batches])
    assert np.abs(x - np.arange(rows)).mean() > buffer / 4
    first = np.from_dlpack(batches[0]["x"])
    assert first.max() > buffer
    assert first.min() < buffer


def test_a_matrix_is_that_of_to_tensor():
    table = pa.table({"i": np.arange(5, dtype="int8"), "f": np.arange(5, dtype="float32")})
    found = next(iter_batches(table, format="matrix"))
    expected = to_tensor(table)
    assert (found.dtype, found.strides) == (expected.dtype, expected.strides)
    np.testing.assert_array_equal(np.from_dlpack(found), np.from_dlpack(expected))
