"""Streams of very many chunks: every row once, in order, whatever they are like; and Ctrl-C."""

import itertools
import signal
import threading

import arrow_dlpack
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
import system

CHUNKS = 100_000


def chunked(array: pa.Array, sizes: np.ndarray) -> pa.ChunkedArray:
    """The array in chunks of these sizes, again and again."""
    edges = np.concatenate([[0], np.cumsum(np.resize(sizes, len(array)))])
    edges = edges[: np.searchsorted(edges, len(array)) + 1]
    pairs = itertools.pairwise(edges)
    return pa.chunked_array([array.slice(a, b - a) for a, b in pairs], array.type)


def test_a_hundred_thousand_chunks_are_one_tensor():
    numbers = np.arange(2 * CHUNKS, dtype="float32")
    column = chunked(pa.array(numbers), np.array([1, 3, 2]))
    assert column.num_chunks >= CHUNKS
    tensor = arrow_dlpack.to_tensor(column)
    result = np.from_dlpack(tensor)
    np.testing.assert_array_equal(result, numbers)
    assert result.flags.writeable
    np.testing.assert_array_equal(np.from_dlpack(arrow_dlpack.Array(column)), numbers)


def test_a_hundred_thousand_chunks_of_a_table_are_one_matrix():
    x = pa.array(np.arange(CHUNKS))
    column = chunked(x, np.array([1]))
    table = pa.table({"x": column, "y": column})
    expected = np.stack([x.to_numpy()] * 2, axis=1)
    np.testing.assert_array_equal(np.from_dlpack(arrow_dlpack.to_tensor(table)), expected)
    columns = arrow_dlpack.to_tensor_dict(table)
    np.testing.assert_array_equal(np.from_dlpack(columns["y"]), x.to_numpy())


ROWS = 3000
NUMBERS = pa.array([None if n % 7 == 0 else n for n in range(ROWS)], pa.int32())
COLUMNS = {
    "numbers without nulls": pa.array(range(ROWS), pa.int16()),
    "numbers with nulls": NUMBERS,
    "nulls that come late": pa.array([*range(ROWS - 1), None], pa.float64()),
    "booleans": pa.array([None if n % 5 == 0 else n % 3 == 0 for n in range(ROWS)]),
    "times": NUMBERS.cast(pa.int64()).cast(pa.timestamp("ms", "UTC")),
    "decimals": pa.array(range(ROWS)).cast(pa.decimal128(19)),
    "lists of one size": pa.FixedSizeListArray.from_arrays(pa.array(range(2 * ROWS)), 2),
    "lists of booleans": pa.array(
        [None if n % 4 == 0 else [n % 2 == 0, None] for n in range(ROWS)], pa.list_(pa.bool_(), 2)
    ),
    "structs": pa.StructArray.from_arrays(
        [NUMBERS, pa.array(range(ROWS))],
        ["x", "y"],
        mask=pa.array([n % 11 == 0 for n in range(ROWS)]),
    ),
    "texts": pa.array([str(n) for n in range(ROWS)]),
    "lists": pa.array([[n] * (n % 3) for n in range(ROWS)]),
    "lists of texts": pa.array([[str(n)] * (n % 3) for n in range(ROWS)]),
    "maps": pa.array([{str(n): n} for n in range(ROWS)], pa.map_(pa.string(), pa.int64())),
    "codes": pa.array([str(n % 50) for n in range(ROWS)]).dictionary_encode(),
    "runs": pc.run_end_encode(pa.array([str(n // 3) for n in range(ROWS)])),
    "lists of texts of one size": pa.FixedSizeListArray.from_arrays(
        pa.array([str(n) for n in range(2 * ROWS)]), 2
    ),
    "structs of lists and codes": pa.StructArray.from_arrays(
        [pa.array([[str(n)] for n in range(ROWS)]), pa.array(["x"] * ROWS).dictionary_encode()],
        ["lists", "codes"],
    ),
}
SIZES = {
    "one": [1],
    "some": [1, 0, 5, 2, 8, 0],
    "large ones between": [1] * 70 + [900, 1, 1, 1],
}


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("sizes", SIZES)
def test_the_values_do_not_depend_on_the_chunks(column, sizes):
    # From a row in the middle of a byte on, so that nothing begins where its buffer does.
    whole = COLUMNS[column].slice(3)
    parts = chunked(whole, np.array(SIZES[sizes]))
    again = pa.array(arrow_dlpack.Array(parts))
    again.validate(full=True)
    assert again.to_pylist() == whole.to_pylist()


DTYPES = [*(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)), "halffloat"]
ALIGNED = {
    **{
        dtype: pa.array(np.arange(ROWS) % 100).cast(dtype) for dtype in [*DTYPES, "float", "double"]
    },
    **{
        name: COLUMNS[name]
        for name in (
            "numbers with nulls",
            "booleans",
            "times",
            "lists of one size",
            "lists of booleans",
            "texts",
            "lists",
            "codes",
        )
    },
    "large lists": COLUMNS["lists"].cast(pa.large_list(pa.int64())),
    "list views": pa.array(COLUMNS["lists"].to_pylist(), pa.list_view(pa.int64())),
    "views": COLUMNS["texts"].cast(pa.string_view()),
}


@pytest.mark.parametrize("column", ALIGNED)
@pytest.mark.parametrize("sizes", [*SIZES.values(), [1301]], ids=[*SIZES, "large ones"])
def test_tensors_of_several_chunks_lie_where_jax_takes_them_without_a_copy(column, sizes):
    """At multiples of 64 bytes, whether the chunks become a tensor at once or an array first."""
    chunks = chunked(ALIGNED[column].slice(3), np.array(sizes))
    table, array = pa.table({"x": chunks, "y": chunks}), arrow_dlpack.Array(chunks)
    nulls = {"nulls": 0, "physical": True}
    if column.removeprefix("large ") in ("texts", "lists", "list views", "views"):
        tensors = [*arrow_dlpack.ragged(chunks), *arrow_dlpack.ragged(array)]
        for source in (chunks, array):
            tensors += arrow_dlpack.to_tensor(source, pad=0)
    else:
        tensors = [arrow_dlpack.to_tensor(source, **nulls) for source in (chunks, array)]
        tensors += arrow_dlpack.to_tensor(chunks, nulls="mask", physical=True)
        tensors += arrow_dlpack.to_tensor_dict(table, **nulls).values()
        if not array.null_count:
            tensors.append(arrow_dlpack.to_tensor(array, physical=True))
    for tensor in tensors:
        assert np.from_dlpack(tensor).ctypes.data % 64 == 0, tensor


def test_the_plan_counts_what_was_put_together_on_the_way():
    column = chunked(pa.array(np.arange(ROWS, dtype="float32")), np.array([1]))
    plan = str(arrow_dlpack.explain(column))
    assert f"{ROWS - 64} chunks" in plan, plan
    with pytest.raises(BufferError, match=f"{ROWS - 64} chunks"):
        arrow_dlpack.to_tensor(column, copy=False)


def test_a_chunk_that_is_wrong_is_refused_among_many():
    schema = pa.schema([pa.field("x", pa.int32(), nullable=False)])
    good, bad = (pa.record_batch([pa.array([x], pa.int32())], schema=schema) for x in (1, None))
    for place in (0, 1000, 1999):
        batches = [good] * 2000
        batches[place] = bad
        with pytest.raises(ValueError, match="null"):
            arrow_dlpack.to_tensor(pa.Table.from_batches(batches))


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_ends_a_long_import():
    """The source is read no further, so that there are rows left in it."""
    table = pa.table({"x": pa.chunked_array([pa.array([1.0])] * 1_000_000)})
    reader = table.to_reader()
    timer = threading.Timer(0.05, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        arrow_dlpack.to_tensor(reader)
    timer.join()
    assert reader.read_next_batch().num_rows == 1


WORDS = pa.array([f"word {n}" for n in range(100)]).dictionary_encode()
CODES = pa.DictionaryArray.from_arrays(pa.array(range(100), "int8"), WORDS.dictionary)
PAIRS = pa.StructArray.from_arrays([CODES], ["word"])
NUMBERS = pa.array(range(100))
NESTED = [
    pa.MapArray.from_arrays(range(0, 101, 2), NUMBERS, CODES),
    pa.FixedSizeListArray.from_arrays(PAIRS, 2),
    pa.UnionArray.from_sparse(pa.array([0, 1] * 50, "int8"), [CODES, NUMBERS]),
    pa.UnionArray.from_dense(
        pa.array([0, 1] * 50, "int8"),
        pa.array([n // 2 for n in range(100)], "int32"),
        [CODES, NUMBERS],
    ),
    pa.ListViewArray.from_arrays(range(100), [1] * 100, CODES),
]


@pytest.mark.parametrize("copy", [None, True])
@pytest.mark.parametrize("column", NESTED, ids=lambda column: str(column.type)[:20])
def test_slices_of_a_column_with_a_dictionary_within_are_joined(column, copy):
    chunks = pa.chunked_array([column.slice(at, 5) for at in range(0, len(column), 5)])
    joined = pa.array(arrow_dlpack.Array(chunks, copy=copy))
    joined.validate(full=True)
    assert joined.to_pylist() == column.to_pylist()
    assert joined.nbytes < 2 * column.nbytes


# So many that to check them takes longer than the calls for their slices.
MANY_TEXTS = pa.array([f"t\u00e9xt {n}" for n in range(160_000)])
EVERY_FOURTH = pa.array(np.arange(0, len(MANY_TEXTS) + 1, 4, dtype="int32"))
ZEROS, EACH = (pa.array(np.arange(len(MANY_TEXTS)) * factor) for factor in (0, 1))
LARGE = {
    "texts": MANY_TEXTS,
    "lists": pa.ListArray.from_arrays(EVERY_FOURTH, MANY_TEXTS),
    "maps": pa.MapArray.from_arrays(EVERY_FOURTH, MANY_TEXTS, MANY_TEXTS),
    "lists of structs": pa.ListArray.from_arrays(
        EVERY_FOURTH, pa.StructArray.from_arrays([MANY_TEXTS], ["text"])
    ),
    "codes": pa.DictionaryArray.from_arrays(EACH, MANY_TEXTS),
    "runs": pa.RunEndEncodedArray.from_arrays(
        pa.array(np.arange(2, 2 * len(MANY_TEXTS) + 1, 2)), MANY_TEXTS
    ),
    "lists of one size": pa.FixedSizeListArray.from_arrays(MANY_TEXTS, 4),
    "sparse union": pa.UnionArray.from_sparse(ZEROS.cast("int8"), [MANY_TEXTS]),
    "dense union": pa.UnionArray.from_dense(ZEROS.cast("int8"), EACH.cast("int32"), [MANY_TEXTS]),
}


def seconds(source):
    begin = system.cpu_seconds()
    arrow_dlpack.Array(source)
    return system.cpu_seconds() - begin


@pytest.mark.parametrize("column", LARGE)
@pytest.mark.parametrize("within", [False, True], ids=["alone", "in a struct"])
def test_a_stream_of_slices_is_checked_once(column, within):
    whole = LARGE[column]
    if within:
        whole = pa.StructArray.from_arrays([pa.nulls(len(whole)), whole], ["other", "it"])
    slices = chunked(whole, np.array([len(whole) // 300]))
    # Each slice checking all that it refers to would take 150 to 300 times as long.
    assert min(seconds(slices) for _ in range(3)) < 40 * max(seconds(whole) for _ in range(3))
