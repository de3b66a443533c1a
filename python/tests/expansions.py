"""Arrays of few bytes, at random, that would be more than there is as other types or put together;
and those types.

As a program it tries them, in a process that may have 6 GB: `python expansions.py SEED COUNT`. Its
last line tells where it ended, if it did not come to an end.
"""

import faulthandler
import os
import random
import resource
import sys

import arrow_dlpack as ad
import numpy as np
import pyarrow as pa

REFUSALS = (BufferError, TypeError, ValueError, MemoryError, LookupError)
MANY = 1 << 40
LEAVES = [pa.int8(), pa.int64(), pa.float16(), pa.float64(), pa.bool_(), pa.string(), pa.binary()]
LEAVES += [pa.large_string(), pa.large_binary(), pa.string_view(), pa.binary_view(), pa.date32()]
LEAVES += [pa.decimal128(38, 2), pa.decimal256(76, 40), pa.timestamp("ns"), pa.duration("s")]
LEAVES += [pa.timestamp("us", "Europe/Oslo"), pa.month_day_nano_interval(), pa.binary(1)]
HUGE = [pa.binary((1 << 31) - 1), pa.binary(1 << 20), pa.list_(pa.int8(), (1 << 31) - 1)]
HUGE += [pa.list_(pa.list_(pa.binary(1 << 20), 1 << 20), 1 << 20), pa.list_(pa.int64(), 1 << 24)]


def leaf(rng):
    text = "x" * rng.choice([0, 1, 5, 20, 10**5, 10**6])
    return rng.choice(
        [
            lambda: pa.array(["1", "2", None]),
            lambda: pa.array([text, "7"], rng.choice([pa.string(), pa.large_string()])),
            lambda: pa.array([text.encode(), b"7"], rng.choice([pa.binary(), pa.binary_view()])),
            lambda: pa.array([text, None, "7"], pa.string_view()),
            lambda: pa.array([b"a"] * 3, pa.binary(1)),
            lambda: pa.array([1, 2, None], rng.choice([pa.int8(), pa.int64(), pa.float64()])),
            lambda: pa.array([1, 2], rng.choice([pa.timestamp("s", "UTC"), pa.date32()])),
            lambda: pa.array([1, 2, None], pa.decimal256(70, 3)),
            lambda: pa.array([True, None, False]),
            lambda: pa.array(np.zeros(10**5)),
            lambda: pa.Array.from_buffers(pa.null(), rng.choice([3, MANY]), [None]),
            lambda: of_nothing(rng.choice([3, 1 << 20, MANY])),
        ]
    )()


def of_nothing(rows):
    """Lists of no items, as many as one likes."""
    return pa.Array.from_buffers(
        pa.list_(pa.int8(), 0), rows, [None], children=[pa.array([], "int8")]
    )


def array(rng, depth):  # noqa: PLR0911 (a family each)
    if depth == 0 or rng.random() < 0.2:
        return leaf(rng)
    child = array(rng, depth - 1)
    few = len(child) < 1 << 31
    kind = rng.choice(
        ["list", "view", "fixed", "struct", "dictionary", "runs", "map", "union", "cut"]
    )
    rows = rng.choice([1, 2, 10, 10**5])
    if kind == "list" and few:
        return pa.ListArray.from_arrays([0, len(child), len(child)], child)
    if kind == "list":
        return pa.LargeListArray.from_arrays([0, len(child), len(child)], child)
    if kind == "view" and few:
        starts, sizes = np.zeros(rows, "int32"), np.full(rows, len(child), "int32")
        cls = pa.ListViewArray
        return cls.from_arrays(starts, sizes, child)
    if kind == "fixed" and few:
        size = rng.choice([1, len(child), max(1, len(child) // 3)])
        rows = len(child) // size if size else 0
        child = child.slice(0, rows * size)
        return pa.Array.from_buffers(pa.list_(child.type, size), rows, [None], children=[child])
    if kind == "struct":
        return pa.StructArray.from_arrays([child, child], ["a", "b"])
    if kind == "dictionary" and few and len(child):
        return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, "int32")), child)
    if kind == "runs" and 0 < len(child) < 1000 and not pa.types.is_run_end_encoded(child.type):
        step = rng.choice([1, 10**5, MANY])
        ends = pa.array(np.arange(1, len(child) + 1) * step, "int64")
        return pa.RunEndEncodedArray.from_arrays(ends, child)
    if kind == "map" and few and len(child):
        keys = pa.array(np.arange(len(child), dtype="int32")) if len(child) < 10**6 else None
        if keys is not None:
            return pa.MapArray.from_arrays([0, len(child)], keys, child)
    if kind == "union" and 0 < len(child) < 1 << 31:
        ids, offsets = pa.array(np.zeros(rows, "int8")), pa.array(np.zeros(rows, "int32"))
        return pa.UnionArray.from_dense(ids, offsets, [child, pa.array([1])])
    return child.slice(rng.randrange(2), rng.choice([0, 1, 2, len(child)]))


def other(rng, kind):  # noqa: PLR0911
    """Another type for it: somewhere in it something is different."""
    draw = rng.random()
    if draw < 0.12:
        return rng.choice(LEAVES + HUGE)
    if draw < 0.16:
        return pa.run_end_encoded(pa.int64(), rng.choice(LEAVES + HUGE))
    if draw < 0.2:
        return pa.dictionary(pa.int32(), rng.choice(LEAVES + HUGE[:2]))
    if draw < 0.24:
        return pa.list_(kind, rng.choice([1, 3, 1 << 24]))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, other(rng, field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, other(rng, kind.item_type))
    if pa.types.is_dictionary(kind):
        item = other(rng, kind.value_type)
        return rng.choice([pa.dictionary(pa.int64(), item), item])
    if pa.types.is_run_end_encoded(kind):
        item = other(rng, kind.value_type)
        return (
            item
            if pa.types.is_run_end_encoded(item)
            else rng.choice([pa.run_end_encoded(pa.int64(), item), item])
        )
    if is_list(kind):
        item = other(rng, kind.value_type)
        makers = [pa.list_, pa.large_list, pa.list_view, pa.large_list_view]
        makers += [lambda item: pa.list_(item, rng.choice([0, 1, 3, 10**5, (1 << 31) - 1]))]
        if pa.types.is_fixed_size_list(kind):
            makers += [lambda item: pa.list_(item, kind.list_size)] * 4
        return rng.choice(makers)(item)
    if pa.types.is_union(kind):
        return rng.choice(LEAVES)
    return rng.choice(LEAVES + HUGE)


def is_list(kind):
    names = ("list", "large_list", "list_view", "large_list_view", "fixed_size_list")
    return any(getattr(pa.types, f"is_{name}")(kind) for name in names)


def shuffled(array):
    stream = pa.table({"x": pa.chunked_array([array, array])})
    for _ in zip(range(2), ad.iter_batches(stream, batch_size=2, shuffle=4), strict=False):
        pass


def twice(array):
    return pa.chunked_array([array, array])


CONVERSIONS = {
    "repr": lambda array: repr(ad.Array(array)),
    "row": lambda array: ad.Array(array).row(0),
    "joined": lambda array: repr(ad.Array(twice(array))),
    "ragged": lambda array: ad.ragged(twice(array)),
    "to_tensor": lambda array: ad.to_tensor(twice(array), physical=True),
    "with nulls": lambda array: ad.to_tensor(array, physical=True, nulls="mask"),
    "explain": lambda array: ad.explain(twice(array), physical=True),
    "dict": lambda array: ad.to_tensor_dict(pa.table({"x": twice(array)}), physical=True),
    "shuffled": shuffled,
}


def attempt(name, work):
    try:
        return work()
    except REFUSALS:
        return None
    except pa.ArrowException:
        return None


def main(seed, count):
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
    rng = random.Random(seed)
    given = 0
    for number in range(count):
        # A few bytes that take longer than that would take for ever.
        faulthandler.dump_traceback_later(120, exit=True)
        source = attempt("source", lambda: array(rng, rng.randrange(4)))
        if source is None:
            continue
        wanted = other(rng, source.type)
        print(number, source.type, len(source), "->", wanted, flush=True)
        schema = attempt("type", wanted.__arrow_c_schema__)
        if schema is not None:
            cast = attempt("cast", lambda s=source, w=schema: ad.Array(s).__arrow_c_array__(w))
            given += cast is not None
            del cast
        for name in rng.sample(list(CONVERSIONS), 3):
            print(number, name, flush=True)
            attempt(name, lambda n=name, s=source: CONVERSIONS[n](s))
    print("done", given, flush=True)
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
