"""Conversions in processes that may have a few megabytes more than they have.

python little_memory.py prints a line for each: its name, and how it ended with each number of them.
"""

import os
import pickle
import resource
import signal
from contextlib import suppress

import arrow_dlpack as ad
import numpy as np
import pyarrow as pa
from arrow_dlpack import _core

ROWS = 400_000
#: Megabytes. With less, what is small does not fit either, and ends the process as all Rust does.
MORE = (6, 16, 40, 512)
MADE, REFUSED, OTHER = 0, 3, 4


def columns():
    numbers = pa.array(np.arange(ROWS))
    texts = pa.array([f"text number {number:012d}" for number in range(ROWS)])
    ends = pa.array(np.arange(0, ROWS + 1, 4, "int32"))
    ids, half = pa.array(np.arange(ROWS) % 2, "int8"), pa.array(np.arange(ROWS) // 2, "int32")
    runs = pa.array(np.arange(1, ROWS + 1, dtype="int32"))
    return {
        "texts": texts,
        "large texts": texts.cast("large_string"),
        "views": texts.cast("string_view"),
        "lists": pa.ListArray.from_arrays(ends, numbers),
        "lists of texts": pa.ListArray.from_arrays(ends, texts),
        "list views": pa.ListViewArray.from_arrays(
            ends[:-1], pa.array([4] * (ROWS // 4), "int32"), numbers
        ),
        "list views with gaps": pa.ListViewArray.from_arrays(
            ends[:-1], pa.array([3] * (ROWS // 4), "int32"), numbers
        ),
        "fixed-size lists": pa.FixedSizeListArray.from_arrays(texts, 4),
        "maps": pa.MapArray.from_arrays(ends, texts, numbers),
        "structs": pa.StructArray.from_arrays([numbers, texts], ["numbers", "texts"]),
        "codes": texts.dictionary_encode(),
        "runs": pa.RunEndEncodedArray.from_arrays(runs, texts),
        "dense unions": pa.UnionArray.from_dense(ids, half, [numbers, texts]),
        "sparse unions": pa.UnionArray.from_sparse(ids, [numbers, texts]),
        "decimals": numbers.cast(pa.decimal128(20)),
        "bytes": pa.array([b"0123456789abcdef"] * ROWS, pa.binary(16)),
    }


def read(loader):
    for _ in loader:
        pass


def of_column(name, column):
    """What reads or makes a whole column, without a tensor."""
    count = len(column)
    chunks = pa.chunked_array([column.slice(0, count // 3), column.slice(count // 3)])
    backwards = pa.array(np.arange(count)[::-1].copy(), "uint64")
    array = ad.Array(column)
    pickled = pickle.dumps(array)
    yield f"chunks of {name}", lambda: ad.Array(chunks)
    yield f"a copy of {name}", lambda: ad.Array(column, copy=True)
    yield f"a pickle of {name}", lambda: pickle.dumps(array)
    yield f"a pickle read of {name}", lambda: pickle.loads(pickled)
    yield f"a gather of {name}", lambda: _core._take(pa.table({"x": column}), backwards)
    yield f"a gather of chunks of {name}", lambda: _core._take(pa.table({"x": chunks}), backwards)
    if "unions" not in name:
        options = {"batch_size": count // 2, "shuffle": count // 2, "columns": {"x": ad.AsArrow()}}
        yield f"a shuffle of {name}", lambda: read(ad.Loader(pa.table({"x": chunks}), **options))


CASTS = {
    "texts": pa.string_view(),
    "views": pa.string(),
    "codes": pa.string(),
}


def requests():
    """Columns of requests: name, column of training, wish, what is sent."""
    lists, pairs = pa.array([[1]]), pa.array([[1, 2]], pa.list_(pa.int64(), 2))
    nested, words = pa.array([[[1, 2]]], pa.list_(pairs.type)), ad.Categories(["a"], unknown=-1)
    tensors = pa.array(ad.from_dlpack(np.ones((1, 2, 2))))
    yield "lists of Python's", lists, ad.Pad(0), [[1, 2]] * ROWS
    yield "rows of NumPy's", lists, ad.Pad(0), [np.ones(2, "int64")] * ROWS
    yield "lists of lists", nested, ad.Pad(0), [[[1, 2]]] * ROWS
    yield "lists of one length", pairs, None, [[1, 2]] * ROWS
    yield "nested lists", tensors, None, [[[1, 2], [3, 4]]] * ROWS
    yield "texts of Python's", pa.array(["a"]), words, ["a"] * (4 * ROWS)
    integers = np.arange(4 * ROWS, dtype="int32")
    yield "narrow integers", pa.array([1]), ad.Cast("float32"), pa.array(integers)
    yield "narrow floats", pa.array([1.0]), None, pa.array(integers.astype("float32"))
    yield "views", pa.array(["a"]), words, pa.array(["a"] * ROWS, pa.string_view())
    run = pa.RunEndEncodedArray.from_arrays(pa.array([4 * ROWS], "int32"), pa.array([1.0]))
    yield "runs", pa.array([1.0]), None, run


def conversions():
    every = columns()
    for name, column in every.items():
        yield from of_column(name, column)
    for name, wanted in CASTS.items():
        array = ad.Array(every[name])
        schema = wanted.__arrow_c_schema__()
        yield (
            f"a cast of {name}",
            lambda array=array, schema=schema: array.__arrow_c_array__(schema),
        )
    numbers = np.arange(ROWS, dtype="float64")
    for name, values in {
        "floats": numbers,
        "integers": numbers.astype("int64"),
        "rows": numbers.reshape(-1, 2, 2),
        "steps": numbers[::-2],
        "complex": numbers.astype("complex64"),
        "halves": numbers[:60_000].astype("float16"),
    }.items():
        tensor = ad.asdlpack(values)
        yield f"a list of {name}", tensor.tolist
        yield f"a pickle of a tensor of {name}", lambda tensor=tensor: pickle.dumps(tensor, 4)
    offsets = np.frombuffer(every["texts"].buffers()[1], "int32")
    texts = np.frombuffer(every["texts"].buffers()[2], "uint8")
    rows = [np.ones(1)] * ROWS
    yield "rows of from_ragged", lambda: ad.from_ragged(rows)
    table = pa.table({"x": every["texts"].slice(0, ROWS // 4), "y": numbers[: ROWS // 4]})
    wishes = {"x": ad.Categories(["a"], unknown=-1), "y": ad.Cast("float32")}
    encoder = ad.Loader(table, columns=wishes).encoder()
    yield "a table by an encoder", lambda: encoder(table)
    yield from codings(every)
    records = table.to_pylist()
    yield "dicts by an encoder", lambda: encoder(records)
    for name, trained, wish, rows in requests():
        encoder = ad.Encoder(columns={"x": wish}).fit(pa.table({"x": trained}))
        yield f"{name} by an encoder", lambda encoder=encoder, rows=rows: encoder({"x": rows})
    yield "texts of from_ragged", lambda: ad.from_ragged(texts, offsets, type=pa.string())


def refused(loader):
    with suppress(ValueError):
        read(loader)


def codings(every):
    """What gives values codes."""
    few = pa.array(["a", "b"] * ROWS * 2).dictionary_encode()
    for name, column in {"few": few, "many": every["codes"]}.items():
        wish = ad.Categories(["a", "b"], unknown=-1)
        loader = ad.Loader(pa.table({"x": column}), columns={"x": wish})
        yield f"categories of {name} values", lambda loader=loader: read(loader)
    numbers = pa.table({"x": np.arange(4 * ROWS)})
    strict = ad.Loader(numbers, columns={"x": ad.Categories([-1])})
    yield "categories that lack all values", lambda: refused(strict)
    union = pa.UnionArray.from_sparse(pa.array(np.zeros(4 * ROWS, "i1")), [numbers["x"].chunk(0)])
    mask = pa.array(np.arange(4 * ROWS) % 3 == 0)
    structs = pa.StructArray.from_arrays([union], ["x"], mask=mask)
    loader = ad.Loader(structs, columns={"x": ad.AsArrow()}, batch_size=ROWS)
    yield "unions under null structs", lambda: read(loader)
    count = 3 * ROWS // 8
    views = pa.array([f"{number:020d}" for number in range(2 * count)]).cast("string_view")
    codes, halves = np.arange(count, dtype="int32"), [views.slice(0, count), views.slice(count)]
    chunks = pa.chunked_array([pa.DictionaryArray.from_arrays(codes, half) for half in halves])
    yield "chunks of codes of views", lambda: ad.to_tensor(chunks, physical=True)


def limited(more):
    """Leaves so many bytes that may be allocated. Holds what allocators have not given back."""
    with suppress(MemoryError):
        # Freed results that are kept for later ones go where memory runs out.
        _core._resume_shuffle(1 << 40, 1, (1 << 40, 1), 1 << 39)
    with open("/proc/self/statm") as statm:
        had = int(statm.read().split()[0]) * resource.getpagesize()
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (had, most))
    held, size = [], 64 << 20
    while size >= 1 << 16:
        try:
            held.append(bytearray(size))
        except MemoryError:
            size //= 2
    resource.setrlimit(resource.RLIMIT_AS, (had + more, most))
    return held


def outcome(work, more):
    """How it ends in a process that may have so many bytes more than this one has."""
    child = os.fork()
    if child == 0:
        code = OTHER
        try:
            signal.alarm(100)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # backtraces
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            held = limited(more)
            work()
            del held
            code = MADE
        except MemoryError:
            code = REFUSED
        except ValueError as error:
            # The word of arrow's interface for casts, of which there is none for want of memory.
            code = REFUSED if "cannot be handed out as" in str(error) else OTHER
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    for name, work in conversions():
        ends = []
        for more in MORE:
            ends.append(outcome(work, more << 20))
            if ends[-1] == MADE and MADE in ends[:-1]:
                break
        print(name, *ends, sep="\t", flush=True)
