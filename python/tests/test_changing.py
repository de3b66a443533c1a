"""What is written to after it was taken: values are the writer's, but no offset, size, view, code,
run end or type id is followed out of bounds. There are errors then, or what was there before.

In a process of its own: reading out of bounds would end it. Bogus addresses are as far as they go.
"""

import subprocess
import sys
from pathlib import Path

import arrow_dlpack as ad
import numpy as np
import pyarrow as pa
import pytest

PROGRAM = """
import pickle
import arrow_dlpack as ad, numpy as np, pyarrow as pa

ROWS, FAR = 20, (1 << 30) - 7
TEXTS = np.frombuffer(b"abcde" * 4 * ROWS, "uint8").copy()

def rising(kind):
    return np.arange(ROWS + 1, dtype=kind) * 4

def made(kind, buffers, children=(), rows=ROWS):
    buffers = [None if part is None else pa.py_buffer(part) for part in buffers]
    return pa.Array.from_buffers(kind, rows, buffers, children=list(children))

numbers = pa.array(np.arange(4.0 * ROWS))
words = pa.array(["one", "two", "a word of more than twelve bytes"] * 30)
starts = {bits: np.arange(ROWS, dtype=f"int{bits}") for bits in (32, 64)}
sizes = {bits: np.full(ROWS, 3, f"int{bits}") for bits in (32, 64)}
views = np.zeros((ROWS, 4), "int32")
views[:, 0], views[:, 3] = 30, np.arange(ROWS)
views[:, 1] = [np.frombuffer(TEXTS[row : row + 4], "int32")[0] for row in range(ROWS)]
codes = np.zeros(ROWS, "int32")
ends = np.arange(1, ROWS + 1, dtype="int64")
ids, places = np.zeros(ROWS, "int8"), np.arange(ROWS, dtype="int32")
o32, o64, oz, ob = rising("int32"), rising("int64"), rising("int32"), rising("int64")
l32, l64, m32 = rising("int32"), rising("int64"), rising("int32")
map_kind = pa.map_(pa.float64(), pa.float64())
fields = [map_kind.key_field, map_kind.item_field]
entries = pa.StructArray.from_arrays([numbers, numbers], fields=fields)
runs = pa.RunEndEncodedArray.from_arrays(pa.array(ends), words[:ROWS])

# An array, what of it is written to, and types that it is asked for as.
LAYOUTS = {
    "string": (made(pa.string(), [None, o32, TEXTS]), [o32], [pa.large_string(), pa.binary(4)]),
    "large_string": (made(pa.large_string(), [None, o64, TEXTS]), [o64], [pa.string()]),
    "binary": (made(pa.binary(), [None, oz, TEXTS]), [oz], [pa.large_binary(), pa.binary(4)]),
    "large_binary": (made(pa.large_binary(), [None, ob, TEXTS]), [ob], [pa.binary_view()]),
    "list": (made(pa.list_(pa.float64()), [None, l32], [numbers]), [l32],
             [pa.list_(pa.float64(), 4), pa.large_list(pa.float32())]),
    "large_list": (made(pa.large_list(pa.float64()), [None, l64], [numbers]), [l64],
                   [pa.list_(pa.float64())]),
    "map": (made(map_kind, [None, m32], [entries]), [m32], [pa.map_(pa.float32(), pa.float64())]),
    "list_view": (made(pa.list_view(pa.float64()), [None, starts[32], sizes[32]], [numbers]),
                  [starts[32], sizes[32]], [pa.list_(pa.float64())]),
    "large_list_view": (
        made(pa.large_list_view(pa.float64()), [None, starts[64], sizes[64]], [numbers]),
        [starts[64], sizes[64]], [pa.list_(pa.float64())]),
    "string_view": (made(pa.string_view(), [None, views, TEXTS]), [views[:, 2:]], [pa.string()]),
    "dictionary": (pa.DictionaryArray.from_arrays(pa.array(codes), words), [codes],
                   [pa.string(), pa.dictionary("int64", pa.large_string())]),
    "run_end_encoded": (runs, [ends], [pa.string()]),
    "dense_union": (pa.UnionArray.from_dense(pa.array(ids), pa.array(places), [numbers, words]),
                    [places, ids], [pa.float64()]),
    "texts": (made(pa.string(), [None, rising("int32"), TEXTS]), [TEXTS],
              [pa.int64(), pa.float64(), pa.timestamp("s"), pa.dictionary("int8", pa.string())]),
}
LAYOUTS["list of string"] = (
    made(pa.list_(pa.string()), [None, np.arange(ROWS + 1, dtype="int32")], [LAYOUTS["string"][0]]),
    [o32], [pa.list_(pa.large_string())])

LAYOUTS["dictionary of string"] = (
    pa.DictionaryArray.from_arrays(pa.array(np.zeros(ROWS, "int32")), LAYOUTS["string"][0]),
    [o32], [pa.string(), pa.dictionary("int8", pa.large_string())])

def shuffled(source):
    for batch in ad.iter_batches(source, batch_size=4, shuffle=8, physical=True):
        pass

PATHS = {
    "repr": lambda source, array: repr(array),
    "row": lambda source, array: [array.row(row) for row in range(len(array))],
    "last row": lambda source, array: array.row(-1),
    "ragged": lambda source, array: ad.ragged(array),
    "ragged, wide": lambda source, array: ad.ragged(array, offset_type="int64"),
    "ragged, copy": lambda source, array: ad.ragged(array, copy=True),
    "padded": lambda source, array: ad.to_tensor(array, pad=0, max_length=4),
    "padded, mask": lambda source, array: ad.to_tensor(array, pad=0, nulls="mask", max_length=4),
    "filled": lambda source, array: array.to_tensor(nulls=0),
    "ragged, mask": lambda source, array: ad.ragged(array, nulls="mask"),
    "explain": lambda source, array: ad.explain(array, physical=True),
    "pickle": lambda source, array: pickle.dumps(array),
    "to_tensor": lambda source, array: ad.to_tensor(array, physical=True),
    "copy": lambda source, array: ad.to_tensor(array, physical=True, copy=True),
}

def tried(work):
    try:
        work()
    except (BufferError, TypeError, ValueError, MemoryError, LookupError, pa.ArrowException):
        return "refused"
    return "done"

class Chunks:
    '''A stream whose second chunk comes when the first has been written to.'''

    def __init__(self, array, write):
        self.array, self.write = array, write

    def __arrow_c_stream__(self, requested_schema=None):
        schema = pa.schema([("x", self.array.type)])
        def batches():
            for number in range(3):
                yield pa.record_batch([self.array], schema=schema)
                self.write()
        return pa.RecordBatchReader.from_batches(schema, batches()).__arrow_c_stream__()

def say(*words):
    print(*words, flush=True)

def check(name, array, written, casts):
    before = [part.copy() for part in written]
    # 0xFF in a text is no UTF-8, and 0xF0 the first of four bytes that are not there.
    bogus = [0xF0, 0xFF] if name == "texts" else [FAR, -1, -FAR, 100, 79]

    def write(value):
        for part in written:
            part[...] = np.array(value).astype(part.dtype)

    def restore():
        for part, values in zip(written, before):
            part[...] = values

    for value in bogus:
        for path, work in PATHS.items():
            taken = ad.Array(array)
            write(value)
            say(name, value, path, tried(lambda: work(array, taken)))
            restore()
        for kind in casts:
            taken = ad.Array(array)
            write(value)
            schema = kind.__arrow_c_schema__()
            say(name, value, kind, tried(lambda: taken.__arrow_c_array__(schema)))
            restore()
        for path, work in {
            "Array": lambda source: repr(ad.Array(source)),
            "to_tensor": lambda source: ad.to_tensor(source, physical=True),
            "to_tensor_dict": lambda source: ad.to_tensor_dict(source, physical=True),
            "shuffled": shuffled,
        }.items():
            source = Chunks(array, lambda: write(value))
            say(name, value, "stream", path, tried(lambda: work(source)))
            restore()
        copied = ad.Array(array, copy=True)
        text = pa.array(array).to_pylist()
        write(value)
        assert pa.array(copied).to_pylist() == text, "a copy is a copy"
        restore()

for name, layout in LAYOUTS.items():
    check(name, *layout)
print("done")
"""


def test_what_changes_after_the_check_is_not_followed():
    command = [sys.executable, "-c", PROGRAM]
    here = Path(__file__).parent
    done = subprocess.run(command, cwd=here, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-300:] + done.stderr[-2000:]
    assert done.stdout.endswith("done\n")


def test_a_copy_of_an_array_shares_nothing():
    values, offsets = np.frombuffer(b"abcdef", "uint8").copy(), np.array([0, 2, 4, 6], "int32")
    source = pa.StringArray.from_buffers(3, pa.py_buffer(offsets), pa.py_buffer(values))
    shared, copied = ad.Array(source), ad.Array(source, copy=True)
    values[:] = ord("x")
    assert pa.array(shared).to_pylist() == ["xx", "xx", "xx"]
    assert pa.array(copied).to_pylist() == ["ab", "cd", "ef"]
    numbers = np.arange(3)
    copied = ad.Array(pa.array(numbers), copy=True)
    numbers[:] = 9
    assert pa.array(copied).to_pylist() == [0, 1, 2]
    nested = pa.array([{"a": [None, "x"]}, None])
    assert pa.array(ad.Array(nested[1:], copy=True)).to_pylist() == [None]
    chunks = pa.chunked_array([[1, None], [3]])
    assert pa.array(ad.Array(chunks, copy=True)).to_pylist() == [1, None, 3]


def test_an_array_that_may_not_be_copied_is_one_chunk():
    assert len(ad.Array(pa.chunked_array([[1, 2]]), copy=False)) == 2
    with pytest.raises(BufferError, match="2 chunks"):
        ad.Array(pa.chunked_array([[1, 2], [3]]), copy=False)
    misaligned = [None, pa.py_buffer(bytes(9)).slice(1)]
    with pytest.raises(BufferError, match="not aligned to their values: 8 bytes"):
        ad.Array(pa.Array.from_buffers(pa.int32(), 2, misaligned), copy=False)


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ([0, 2, 1, 6], "offset 2 is 1, .* 2"),
        ([4, 4, 5, 2], "offset 3 is 2, .* 4"),
    ],
)
def test_offsets_that_fall_once_they_have_been_checked_are_refused(written, words):
    offsets = np.array([0, 2, 4, 6], "int32")
    buffers = pa.py_buffer(offsets), pa.py_buffer(b"abcdef")
    taken = ad.Array(pa.StringArray.from_buffers(3, *buffers))
    offsets[:] = written
    with pytest.raises((BufferError, ValueError), match=words):
        ad.ragged(taken, copy=True)


def test_chunks_that_share_a_dictionary_share_it_when_they_are_joined():
    words = pa.array(["cat", "dog"])
    chunk = pa.DictionaryArray.from_arrays(pa.array([0, 1], "int8"), words)
    joined = pa.array(ad.Array(pa.chunked_array([chunk] * 200)))
    assert len(joined.dictionary) == 2, "400 would be too many for int8"
    assert joined.to_pylist() == ["cat", "dog"] * 200
