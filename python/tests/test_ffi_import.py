"""Tables from Arrow's C structures: each column by itself, and where it is."""

import gc
import subprocess
import sys
import threading
from ctypes import c_int32
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from arrow_dlpack import Array, AsArrow, Loader, explain, to_tensor, to_tensor_dict
from hostile_trees import Node, Tree, TreeStream

NUMBERS = Node("i", 8, [None, np.arange(8, dtype="int32").tobytes()], name="numbers")
NULLS = Node("g", 8, [b"\x0f", np.arange(8.0).tobytes()], name="nulls")
TEXTS = Node("u", 8, [None, np.arange(9, dtype="int32").tobytes(), b"abcdefgh"], name="texts")
ASTRAY = replace(TEXTS, buffers=[None, np.arange(9, 0, -1, dtype="int32").tobytes(), b"abc"])


def struct(*children, length=8, validity=None, **said):
    return Node("+s", length, [validity], children=list(children), **said)


def settle(tree):
    gc.collect()
    tree.given = dict.fromkeys(tree.given, 1)
    tree.settle()


@pytest.mark.parametrize("kept", ["numbers", "texts"])
def test_a_column_keeps_all_of_the_structure(kept):
    tree = Tree(struct(NUMBERS, TEXTS))
    array = Array(tree)
    column = pa.array(array).field(kept)
    before = column.to_pylist()
    del array
    gc.collect()
    assert 0 in tree.released.values(), "the array keeps it"
    assert column.to_pylist() == before
    del column
    settle(tree)


def test_tensors_of_a_dict_are_where_the_columns_are():
    columns = {
        "x": pa.array([1.5, 2.5, 3.5]),
        "y": pa.array([1, 2, 3]),
        "text": pa.array(["a"] * 3),
    }
    batch = pa.record_batch(columns)
    for source, start in ((batch, 0), (batch[1:], 1)):
        tensors = to_tensor_dict(source, columns=["x", "y"])
        for name, tensor in tensors.items():
            address = columns[name].buffers()[1].address + 8 * start
            assert np.asarray(tensor).ctypes.data == address
    (text,) = pa.array(Array(batch)).flatten()[2:]
    assert text.buffers()[2].address == columns["text"].buffers()[2].address


@pytest.mark.parametrize("offset", [0, 1, 5])
@pytest.mark.parametrize("validity", [None, b"\xff", b"\x5a", b"\0"])
def test_offsets_add_up_from_struct_to_struct(offset, validity):
    inner = struct(NUMBERS, NULLS, TEXTS, length=7, offset=1, validity=validity, name="inner")
    inner = replace(inner, buffers=[validity])
    node = struct(inner, replace(NUMBERS, name="beside"), length=7 - offset, offset=offset)
    ours, theirs = Tree(node), Tree(node)
    found, expected = pa.array(Array(ours)), pa.array(theirs)
    assert found.to_pylist() == expected.to_pylist()
    found.validate(full=True)
    del found, expected
    settle(ours)
    settle(theirs)


def test_only_the_column_that_is_not_aligned_is_moved():
    askew = replace(NUMBERS, name="askew", said_of_array={"buffers": {1: 1}})
    tree = Tree(struct(NUMBERS, askew, TEXTS))
    assert explain(tree, columns=["numbers", "askew"], order="F").bytes_copied == 4 * 8 + 2 * 4 * 8
    tree = Tree(struct(NUMBERS, askew, TEXTS))
    assert explain(tree, columns=["numbers"]).zero_copy
    tree = Tree(struct(NUMBERS, askew, TEXTS))
    tensors = to_tensor_dict(tree, columns=["numbers", "askew"])
    assert np.asarray(tensors["numbers"]).tolist() == list(range(8))
    shifted = np.arange(8, dtype="int32").tobytes()[1:] + b"\0"
    assert np.asarray(tensors["askew"]).tolist() == np.frombuffer(shifted, "int32").tolist()
    del tensors
    settle(tree)


@pytest.mark.parametrize("order", [1, -1])
def test_a_column_that_is_refused_takes_the_others_with_it(order):
    tree = Tree(struct(*[NUMBERS, ASTRAY][::order]))
    with pytest.raises(ValueError, match="offset"):
        Array(tree)
    settle(tree)


def test_what_is_not_nullable_may_be_null_where_its_struct_is():
    column = replace(NULLS, flags=0)
    for validity, valid in ((b"\x0f", True), (b"\x07", True), (b"\x1f", False), (None, False)):
        tree = Tree(struct(column, validity=validity))
        if valid:
            count = validity[0].bit_count()
            assert pa.array(Array(tree)).to_pylist()[count:] == [None] * (8 - count)
        else:
            with pytest.raises(ValueError, match='nulls for non-nullable .* "nulls"'):
                Array(tree)
        settle(tree)


@pytest.mark.parametrize("children", [(), (NUMBERS,)])
def test_structs_without_rows_or_columns(children):
    for length in (0, 8):
        tree = Tree(struct(*children, length=length))
        array = Array(tree)
        assert len(array) == length
        assert len(pa.array(array)) == length
        del array
        settle(tree)


UNITS = ("s", "ms", "us", "ns")
PRIMITIVES = [
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    *("float16", "float32", "float64", "date32", "date64", "month_day_nano_interval"),
    *(f"{name}[{unit}]" for name in ("timestamp", "duration") for unit in UNITS),
    *("time32[s]", "time32[ms]", "time64[us]", "time64[ns]"),
    pa.timestamp("us", "Europe/Vienna"),
    *(kind(3, 1) for kind in (pa.decimal32, pa.decimal64, pa.decimal128, pa.decimal256)),
]


@pytest.mark.parametrize("kind", PRIMITIVES, ids=str)
def test_every_primitive_type_is_taken_over_as_it_is(kind):
    kind = pa.type_for_alias(kind) if isinstance(kind, str) else kind
    width = kind.bit_width // 8
    values = b"".join(number.to_bytes(width, "little") for number in (1, 2, 3))
    column = pa.Array.from_buffers(kind, 3, [pa.py_buffer(b"\x05"), pa.py_buffer(values)])
    batch = pa.record_batch({"x": column})
    for source in (column, column[1:], batch, batch[2:]):
        found = pa.array(Array(source))
        expected = pa.array(source)
        assert found.equals(expected)
        assert start(found) == start(expected)


def start(array):
    """Where the values of a column, or of a struct's only one, begin."""
    if pa.types.is_struct(array.type):
        (array,) = array.flatten()
    return array.buffers()[1].address + array.offset * array.type.bit_width // 8


def column(kind="g", dtype="float64", rows=24, **said):
    values = (np.arange(32) + len(said)).astype(dtype).tobytes()
    return Node(kind, rows, said.pop("buffers", [None, values]), **said)


def table(*columns, length=16, **said):
    named = [replace(column, name=f"c{index}") for index, column in enumerate(columns)]
    return struct(*named, length=length, **said)


def array_of(**said):
    return column(said_of_array=said)


def type_of(**said):
    return column(said_of_type=said)


TABLES = {
    "of each type": [table(column(*kind), column(*kind)) for kind in (
        ("c", "int8"), ("C", "uint8"), ("s", "int16"), ("S", "uint16"), ("i", "int32"),
        ("I", "uint32"), ("l", "int64"), ("L", "uint64"), ("e", "float16"), ("f", "float32"),
        ("g", "float64"),
    )],
    "wide": [table(*[column(offset=index % 3) for index in range(200)])],
    "a slice": [table(column(), column(offset=3), offset=2)],
    "none null": [
        table(column(buffers=[b"\xff" * 4, bytes(256)]), column(), validity=b"\xff\xff"),
        table(column(null_count=0), column(null_count=0), null_count=0),
    ],
    "nulls": [
        table(column(buffers=[b"\x7f" * 4, bytes(256)]), column()),
        table(column(), column(), validity=b"\x01"),
    ],
    "not of one type": [table(column(), column("f", "float32")), table(column(), NULLS, length=8)],
    "no numbers": [table(TEXTS, TEXTS, length=4), table(column("b"), column("b"))],
    "one column": [table(column())],
    "no column": [table()],
    "no row": [table(column(), column(), length=0)],
    "not aligned": [table(array_of(buffers={1: shift}), column()) for shift in (1, 4)],
    "with metadata": [table(type_of(metadata=b"\0" * 4), column())],
    "in wrong types": [
        table(type_of(name=b"\xff"), column()),
        table(type_of(format=None), column()),
        table(type_of(format=b"x"), column()),
        table(type_of(n_children=1), column()),
        table(type_of(n_children=-1), column()),
        table(column(), column(), said_of_type={"children": {1}}),
        table(column(), column(), said_of_type={"n_children": -2}),
    ],
    "in wrong arrays": [
        *(table(column(), array_of(length=length)) for length in (-1, 0, 15, 1 << 62)),
        *(table(column(), array_of(offset=offset)) for offset in (-1, 1 << 62)),
        *(table(column(), array_of(null_count=count)) for count in (-2, 25)),
        *(table(column(), array_of(n_buffers=count)) for count in (-1, 0, 1, 3)),
        *(table(column(), array_of(n_children=count)) for count in (-1, 1)),
        table(column(), array_of(buffers=None)),
        table(column(), array_of(buffers={1: None})),
        table(column(), column(), said_of_array={"children": {0}}),
        table(column(), column(), said_of_array={"children": None}),
        *(table(column(), column(), said_of_array={"n_children": count}) for count in (-1, 1, 3)),
        *(table(column(), column(), said_of_array={"n_buffers": count}) for count in (-1, 0, 2)),
        table(column(), column(), said_of_array={"buffers": None}),
        *(table(column(), column(), said_of_array={"null_count": count}) for count in (-2, 17)),
        *(table(column(), column(), length=length) for length in (-1, 25, 1 << 62)),
        *(table(column(), column(), offset=offset) for offset in (-1, 9, 1 << 62, (1 << 63) - 1)),
    ],
}  # fmt: skip


def outcome(node, **options):
    tree = Tree(node)
    try:
        tensor = to_tensor(tree, **options)
    except (BufferError, TypeError, ValueError) as error:
        found = type(error), str(error)
    else:
        found = tensor.dtype, tensor.shape, tensor.strides, tensor.readonly, tensor.tolist()
        del tensor
    gc.collect()
    tree.settle()
    return found


@pytest.mark.parametrize("nodes", TABLES.values(), ids=TABLES)
def test_a_matrix_straight_from_the_structures_is_the_one_by_way_of_arrays(nodes):
    for node in nodes:
        # Of numbers it says nothing, but it is an option, and with options there are arrays.
        assert outcome(node) == outcome(node, physical=True)


def texts(*values, length=None, **said):
    ends = np.cumsum([0, *map(len, values)], dtype="int32").tobytes()
    count = len(values) if length is None else length
    return Node("u", count, [None, ends, b"".join(values)], **said)


def lists(child, *offsets, length=None, **said):
    count = len(offsets) - 1 if length is None else length
    offsets = np.array(offsets, dtype="int32").tobytes()
    return Node("+l", count, [None, offsets], children=[child], **said)


def codes(values, *codes):
    return Node("c", len(codes), [None, bytes(codes)], dictionary=values)


GOOD, BAD = texts(b"a", b"bc", b"d"), texts(b"a", b"\xff", b"d")


def test_a_slice_of_texts_is_checked_from_its_first_to_its_last():
    for row, found in (0, ["a"]), (2, ["d"]), (1, None):
        tree = Tree(replace(BAD, length=1, offset=row))
        if found:
            assert pa.array(Array(tree)).to_pylist() == found
        else:
            with pytest.raises(ValueError, match="Invalid UTF8"):
                Array(tree)
        settle(tree)
    split = texts("\u00e9".encode(), b"b")
    split.buffers[1] = np.array([0, 1, 3], dtype="int32").tobytes()
    tree = Tree(replace(split, length=1, offset=1))
    with pytest.raises(ValueError, match=r"(?i)utf-?8"):
        Array(tree)
    settle(tree)


def test_offsets_beyond_the_last_one_are_refused_where_a_struct_has_fewer_rows():
    far = replace(GOOD, buffers=[None, np.array([0, 1 << 30, 3, 4], "int32").tobytes(), b"abcd"])
    tree = Tree(struct(far, length=1))
    with pytest.raises(ValueError, match="larger than values length"):
        Array(tree)
    settle(tree)


def test_what_no_row_refers_to_is_checked_too_because_conversions_read_it():
    for node in (
        lists(BAD, 2, 3),
        lists(BAD, 0, 1),
        codes(BAD, 0),
        lists(struct(BAD, length=3), 0, 1),
    ):
        tree = Tree(node)
        with pytest.raises(ValueError, match="Invalid UTF8"):
            Array(tree)
        settle(tree)


@pytest.mark.parametrize("of", [lists, codes])
@pytest.mark.parametrize("same", [False, True])
def test_a_chunk_whose_child_is_elsewhere_is_checked_again(of, same):
    stream = TreeStream(of(GOOD, 0, 1), [of(GOOD, 0, 1), of(GOOD if same else BAD, 0, 1)])
    if same:
        assert len(Array(stream)) == 2 * len(pa.array(Tree(of(GOOD, 0, 1))))
    else:
        with pytest.raises(ValueError, match="Invalid UTF8"):
            Array(stream)
    gc.collect()
    stream.settle()


RUNS = [0, 2, 5, 9]  # where each begins, and the end


def runs(values, length, offset, ends=RUNS[1:]):
    ends = np.array(ends, "int32").tobytes()
    ends = Node("i", 3, [None, ends], name="run_ends", flags=0, null_count=0)
    return Node("+r", length, [], children=[ends, values], offset=offset, null_count=0)


@pytest.mark.parametrize("ends", ["int16", "int32", "int64"])
def test_runs_of_any_width_are_those_of_a_slice(ends):
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3, 7], ends), pa.array(["a", "b", "c"]))
    for start in range(8):
        assert pa.array(Array(runs.slice(start, 3))).equals(runs.slice(start, 3))


@pytest.mark.parametrize("offset", range(9))
def test_a_slice_of_runs_has_the_runs_that_it_is_in(offset):
    for length in range(1, 10 - offset):
        tree = Tree(runs(GOOD, length, offset))
        expected = ["a", "a", "bc", "bc", "bc", *"dddd"][offset : offset + length]
        assert pa.array(Array(tree)).to_pylist() == expected
        settle(tree)
        tree = Tree(runs(BAD, length, offset))
        if offset < 5 and offset + length > 2:
            with pytest.raises(ValueError, match="Invalid UTF8"):
                Array(tree)
        else:
            assert pa.array(Array(tree)).to_pylist() == expected
        settle(tree)


@pytest.mark.parametrize("ends", [(2, 5, 8), (0, 5, 9), (5, 2, 9), (-1, 5, 9), (5, 5, 9)])
def test_runs_that_do_not_cover_the_rows_are_refused(ends):
    tree = Tree(runs(GOOD, 9, 0, ends))
    with pytest.raises(ValueError, match="run_ends"):
        Array(tree)
    settle(tree)


@pytest.mark.parametrize("format", ["d:0,0", "d:10,2,32", "d:0,0,64", "d:39,2", "d:77,0,256"])
@pytest.mark.parametrize("within", [False, True])
def test_decimals_of_no_digits_or_too_many_are_refused(format, within):
    node = Node(format, 1, [None, bytes(32)])
    tree = Tree(struct(node, length=1) if within else node)
    with pytest.raises(ValueError, match=r"there is no array of type Decimal"):
        Array(tree)
    settle(tree)


DENSE_UNION = """
import threading
import arrow_dlpack as ad, numpy as np, pyarrow as pa

ROWS = 1 << 16
ids, places = np.zeros(ROWS, "int8"), np.zeros(ROWS, "int32")
union = pa.UnionArray.from_dense(pa.array(ids), pa.array(places), [pa.array([1.0])])
done = threading.Event()

def write():
    while not done.is_set():
        ids[:] = 3
        ids[:] = 0

writer = threading.Thread(target=write)
writer.start()
for _ in range(2000):
    try:
        ad.Array(union)
    except ValueError:
        pass
done.set()
writer.join()
"""


def test_type_ids_that_change_during_the_import_are_an_error_without_a_panic():
    command = [sys.executable, "-c", DENSE_UNION]
    run = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")


def views_with_garbage(kind: pa.DataType, garbage: np.ndarray, null: int) -> pa.Array:
    words = pa.array(["one", "two", "a text of more than twelve bytes", "four"], kind)
    views = np.frombuffer(words.buffers()[1], "u1").copy().reshape(-1, 16)
    views[null] = garbage
    validity = pa.py_buffer(bytes([0b1111 & ~(1 << null)]))
    buffers = [validity, pa.py_buffer(views), *words.buffers()[2:]]
    return pa.Array.from_buffers(kind, 4, buffers)


@pytest.mark.parametrize("kind", [pa.string_view(), pa.binary_view()], ids=str)
@pytest.mark.parametrize("first", [255, 0, 5, 12], ids="length {}".format)
@pytest.mark.parametrize("null", range(4))
def test_under_a_null_a_view_may_be_anything(kind, first, null):
    garbage = np.full(16, 255, "u1")
    garbage[:4] = np.frombuffer(np.int32(first).tobytes(), "u1") if first < 255 else 255
    words = views_with_garbage(kind, garbage, null)
    words.validate(full=True)
    expected = words.to_pylist()
    assert pa.array(Array(words)).to_pylist() == expected
    assert pa.array(Array(words.slice(1))).to_pylist() == expected[1:]
    nested = pa.StructArray.from_arrays([words], ["x"])
    assert pa.array(Array(nested)).to_pylist() == [{"x": word} for word in expected]
    lists = pa.ListArray.from_arrays([0, 3, 4], words)
    assert pa.array(Array(lists)).to_pylist() == [expected[:3], expected[3:]]
    [batch] = Loader(pa.table({"x": words}), batch_size=4, columns={"x": AsArrow()})
    assert pa.array(batch["x"]).to_pylist() == expected
    assert expected[null] is None


def test_a_view_that_is_not_null_points_somewhere():
    garbage = np.full(16, 255, "u1")
    words = views_with_garbage(pa.string_view(), garbage, 2)
    words = pa.Array.from_buffers(words.type, 4, [pa.py_buffer(b"\x0e"), *words.buffers()[1:]])
    with pytest.raises(ValueError, match="buffer index"):
        Array(words)


ITEM = Node("i", 0, [None, None], name="item")
ENTRIES = Node(
    "+s",
    0,
    [None],
    children=[Node("u", 0, [None] * 3, name="key", flags=0), replace(ITEM, name="value")],
    name="entries",
    flags=0,
)
#: Arrays without rows, whose buffers are at no address.
EMPTY = {
    "list": Node("+l", 0, [None] * 2, children=[ITEM]),
    "large list": Node("+L", 0, [None] * 2, children=[ITEM]),
    "map": Node("+m", 0, [None] * 2, children=[ENTRIES]),
    "list view": Node("+vl", 0, [None] * 3, children=[ITEM]),
    "large list view": Node("+vL", 0, [None] * 3, children=[ITEM]),
    "fixed-size list": Node("+w:3", 0, [None], children=[ITEM]),
    "text": Node("u", 0, [None] * 3),
    "large binary": Node("Z", 0, [None] * 3),
    "text view": Node("vu", 0, [None] * 5),
    "boolean": Node("b", 0, [None] * 2),
    "number": Node("g", 0, [None] * 2),
    "time": Node("tsu:UTC", 0, [None] * 2),
    "fixed-size binary": Node("w:5", 0, [None] * 2),
    "codes": Node("c", 0, [None] * 2, dictionary=Node("u", 0, [None] * 3)),
    "dense union": Node("+ud:0", 0, [None] * 2, children=[ITEM]),
    "sparse union": Node("+us:0", 0, [None], children=[ITEM]),
    "runs": Node("+r", 0, [], children=[replace(ITEM, name="run_ends", flags=0), ITEM]),
}


def astray(array):
    """All buffers, and those below, at an address that is not mapped."""
    for index in range(array.n_buffers):
        array.buffers[index] = 64
    below = [array.children[index][0] for index in range(array.n_children)]
    for child in [*below, *([array.dictionary[0]] if array.dictionary else [])]:
        astray(child)


# Their children are as long as the end of their parent: they have rows where that has an offset.
PARALLEL = ("fixed-size list", "sparse union")


@pytest.mark.parametrize("is_astray", [False, True])
@pytest.mark.parametrize("within", ["alone", "a struct", "a list", "a stream"])
@pytest.mark.parametrize(
    ("kind", "offset"),
    [(kind, offset) for kind in EMPTY for offset in (0, 3) if not (offset and kind in PARALLEL)],
)
def test_of_an_array_without_rows_no_buffer_is_looked_at(kind, offset, within, is_astray):
    empty = replace(EMPTY[kind], offset=offset)
    trees = {
        "alone": lambda: Tree(empty),
        "a struct": lambda: Tree(struct(empty, length=0)),
        "a list": lambda: Tree(Node("+l", 2, [None, bytes(12)], children=[empty])),
        "a stream": lambda: TreeStream(empty, [empty, empty]),
    }
    tree = trees[within]()
    if is_astray:
        of = tree.array if within != "a stream" else tree.chunks[0].array
        astray(of if within in ("alone", "a stream") else of.children[0][0])
    array = Array(tree)
    assert len(array) == (2 if within == "a list" else 0)
    expected = [[], []] if within == "a list" else []
    assert pa.array(array).to_pylist() == expected
    del array


def test_a_null_word_is_a_null_of_a_column_that_has_none():
    """Codes of a dictionary without nulls, of which one stands for a value that is null."""
    words = Node("u", 2, [b"\x01", np.array([0, 1, 1], "int32").tobytes(), b"a"], name="words")
    for codes, valid in ((b"\0\0", True), (b"\0\1", False)):
        column = Node("c", 2, [None, codes], dictionary=words, name="word", flags=0)
        tree = Tree(struct(column, length=2))
        if valid:
            assert pa.array(Array(tree)).to_pylist() == [{"word": "a"}] * 2
        else:
            with pytest.raises(ValueError, match='nulls for non-nullable .* "word"'):
                Array(tree)
        settle(tree)


def test_offsets_of_a_dense_union_may_be_misaligned():
    numbers = Node("i", 3, [None, np.array([5, 6, 7], "int32").tobytes()], name="number")
    offsets = b"\0" + np.array([2, 0], "int32").tobytes()
    union = Node(
        "+ud:0", 2, [b"\0\0", offsets], children=[numbers], said_of_array={"buffers": {1: 1}}
    )
    tree = Tree(union)
    assert pa.array(Array(tree)).to_pylist() == [7, 5]
    settle(tree)


@pytest.mark.parametrize("kind", ["text", "text view"])
def test_a_size_that_another_thread_changes_is_read_once(kind):
    """What was checked is what is used: never a buffer of -1 bytes."""
    sizes = np.array([0, 8], "int32") if kind == "text" else np.array([20])
    source = (
        pa.array(["abcdefgh"])
        if kind == "text"
        else pa.array(["abcdefghijklmnopqrst"]).cast(pa.string_view())
    )
    buffers = [buffer and buffer.to_pybytes() for buffer in source.buffers()]
    node = Node("u" if kind == "text" else "vu", 1, [None, *buffers[1:]])
    if kind != "text":
        node.buffers.append(sizes.tobytes())
    trees = [Tree(node) for _ in range(300)]
    place = 1 if kind == "text" else 3
    said = [
        c_int32.from_address(tree.array.buffers[place] + 4 * (kind == "text")) for tree in trees
    ]
    is_done = threading.Event()

    def change():
        while not is_done.is_set():
            for size in said:
                size.value = -1
                size.value = sizes[-1]

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for tree in trees:
            try:
                shown = repr(Array(tree))
            except ValueError as error:
                assert "malformed" in str(error) or "a buffer of" in str(error)  # noqa: PT017
            else:
                assert "1 value" in shown
    finally:
        is_done.set()
        thread.join()
