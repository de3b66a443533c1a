"""What `columns=` leaves out does not matter: not its values, its memory, nor its type."""

import struct
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow.compute as pc
import pytest
from arrow_dlpack import (
    Categories,
    Loader,
    Mix,
    explain,
    iter_batches,
    to_tensor,
    to_tensor_dict,
)
from arrow_dlpack.torch import BatchDataset
from hostile_trees import Node, Tree, TreeStream

FRAME = pl.DataFrame(
    {"x": [1.0, 2.0, 3.0], "big": pl.Series([1, 2, 3], dtype=pl.Int128), "y": [7, 8, 9]}
)
DOORS = {
    "to_tensor": lambda source: to_tensor(source, columns=["x"]),
    "to_tensor_dict": lambda source: to_tensor_dict(source, columns=["x"])["x"],
    "dict batches": lambda source: one(iter_batches(source, columns=["x"]))["x"],
    "matrix batches": lambda source: one(iter_batches(source, columns=["x"], format="matrix")),
    "label": lambda source: one(iter_batches(source, columns=[], label="x"))[1],
}


def one(batches):
    (batch,) = batches
    return batch


def flat(tensor):
    return np.asarray(tensor).ravel().tolist()


# Of polars's own frames, whose 128-bit integers Arrow has no type for.


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_an_unknown_type_does_not_affect_other_columns(door):
    assert flat(door(FRAME)) == [1.0, 2.0, 3.0]


def test_of_a_frame_the_order_is_that_of_the_names():
    assert to_tensor(FRAME, columns=["y", "x"], dtype="float64").shape == (3, 2)
    assert flat(to_tensor(FRAME, columns=["y", "x"], dtype="float64")) == [7, 1, 8, 2, 9, 3]
    assert list(to_tensor_dict(FRAME, columns=["y", "x"])) == ["y", "x"]
    assert flat(to_tensor(FRAME, columns=["y", "y"])) == [7, 7, 8, 8, 9, 9]
    with pytest.raises(KeyError, match='columns= names "y" twice'):
        to_tensor_dict(FRAME, columns=["y", "y"])
    assert explain(FRAME, columns=["x"]).zero_copy


def test_a_column_without_a_name_is_not_in_the_way():
    numbers = Node("i", 2, [None, struct.pack("2i", 7, 8)])
    nameless = replace(numbers, said_of_type={"name": None})
    source = Tree(Node("+s", 2, [None], [nameless, numbers]))
    assert flat(to_tensor_dict(source, columns=["x"])["x"]) == [7, 8]
    with pytest.raises(KeyError, match='no column "y" among \\["", "x"\\]'):
        to_tensor_dict(Tree(Node("+s", 2, [None], [nameless, numbers])), columns=["y"])


def test_labels_and_features_are_all_that_is_read_of_batches():
    options = {"columns": ["y", "x"], "label": "x", "batch_size": 2}
    for batches in (iter_batches(FRAME, **options), BatchDataset(FRAME, **options)):
        (features, label), (last, _) = batches
        assert list(features) == list(last) == ["y"]
        assert flat(features["y"]) == [7, 8]
        assert flat(label) == [1.0, 2.0]


@pytest.mark.parametrize(
    "convert", [to_tensor, to_tensor_dict, explain, iter_batches], ids=lambda f: f.__name__
)
def test_names_are_judged_by_all_that_there_are(convert):
    names = 'there are no columns "a", "b" among .*"x", "big", "y"'
    with pytest.raises(KeyError, match=names):
        convert(FRAME, columns=["a", "x", "b"])
    # A loop reads them as decimals.
    for options in {}, {"columns": ["x", "big"]}:
        with pytest.raises((ValueError, TypeError), match='"big".* (i128|Decimal128)'):
            convert(FRAME, **options)


def test_with_columns_labels_are_named_with_the_others():
    with pytest.raises(KeyError, match='no columns "a", "b" among .*"x", "big", "y"'):
        iter_batches(FRAME, columns=["a", "x"], label="b")


def test_many_chunks_are_read_as_one():
    frame = pl.concat([FRAME] * 200, rechunk=False)
    expected = [1.0, 2.0, 3.0] * 200
    assert flat(to_tensor(frame, columns=["x"])) == expected
    batches = iter_batches(frame, columns=["x"], batch_size=600)
    assert flat(one(batches)["x"]) == expected
    assert sum(batch["x"].shape[0] for batch in iter_batches(frame, columns=["x"])) == 600
    assert to_tensor(frame.clear(), columns=["x"]).shape == (0, 1)


# Of Arrow's C structures, which say anything.

X = Node("g", 8, [None, np.arange(8.0).tobytes()], name="x")
Y = Node("i", 8, [None, np.arange(8, dtype="int32").tobytes()], name="y")


def deep(levels=70):
    node = replace(Y, name="x")
    for _ in range(levels):
        node = Node("+s", 8, [None], children=[node])
    return replace(node, name="other")


OTHER = replace(Y, name="other")
BROKEN = struct.pack("=ii", 1, -5)
UNLIKELY = {
    "an unknown type": replace(OTHER, format="zz"),
    "no type": replace(OTHER, said_of_type={"format": None}),
    "a type that is no text": replace(OTHER, said_of_type={"format": b"\xff"}),
    "a negative size": replace(OTHER, format="w:-1"),
    "a list without a child": replace(OTHER, format="+l"),
    "children that are not there": replace(OTHER, said_of_type={"n_children": 3}),
    "more children than can be": replace(OTHER, said_of_type={"n_children": 1 << 40}),
    "too deep": deep(),
    "broken metadata": replace(OTHER, said_of_type={"metadata": BROKEN}),
    "a name that is no text": replace(OTHER, said_of_type={"name": b"\xff"}),
    "no name": replace(OTHER, said_of_type={"name": b""}),
    "a negative length": replace(OTHER, said_of_array={"length": -1}),
    "too short": replace(OTHER, length=7),
    "no buffers": replace(OTHER, said_of_array={"buffers": None}),
    "a misaligned buffer": replace(OTHER, said_of_array={"buffers": {1: 1}}),
    "a released array": replace(OTHER, said_of_array={"release": None}),
    "an array's children": replace(OTHER, said_of_array={"n_children": -1}),
    "texts that go back": replace(
        OTHER, format="u", buffers=[None, np.arange(9, 0, -1, dtype="int32").tobytes(), b"abc"]
    ),
}


def table(*children, length=8, **said):
    return Node("+s", length, said.pop("buffers", [None]), children=list(children), **said)


def settle(source):
    if isinstance(source, Tree):
        assert set(source.released.values()) == {1}
    source.settle()


@pytest.mark.parametrize("at", [0, 1])
@pytest.mark.parametrize("kind", ["array", "stream"])
@pytest.mark.parametrize("other", UNLIKELY.values(), ids=UNLIKELY)
def test_whatever_another_column_is_it_is_left_alone_and_released(other, kind, at):
    node = table(*([other, X] if at else [X, other]))
    for door in DOORS.values():
        source = Tree(node) if kind == "array" else TreeStream(node, [node])
        tensor = door(source)
        assert flat(tensor) == list(range(8))
        if kind == "array":
            assert 0 in source.released.values(), "the array keeps it"
        del tensor
        settle(source)


@pytest.mark.parametrize("what", sorted(UNLIKELY.keys() - {"a misaligned buffer", "no name"}))
def test_where_it_is_asked_for_it_is_refused_and_released(what):
    for names in (None, ["x", "other"]):
        source = Tree(table(X, UNLIKELY[what]))
        with pytest.raises(KeyError if names and "name" in what else ValueError):
            to_tensor(source, columns=names)
        settle(source)


def test_copies_that_only_another_column_takes_are_no_copies():
    source = Tree(table(UNLIKELY["a misaligned buffer"], X))
    assert flat(to_tensor(source, columns=["x"], copy=False)) == list(range(8))
    settle(source)
    source = Tree(table(UNLIKELY["a misaligned buffer"], X))
    with pytest.raises(BufferError, match="align"):
        to_tensor_dict(source, copy=False)
    settle(source)


@pytest.mark.parametrize("kind", ["array", "stream"])
def test_rows_are_those_of_the_table(kind):
    outer = table(
        UNLIKELY["an unknown type"], X, Y, length=3, offset=2, buffers=[b"\b"], null_count=2
    )
    source = Tree(outer) if kind == "array" else TreeStream(outer, [outer])
    values, mask = to_tensor(source, columns=["y"], nulls="mask")
    assert np.asarray(mask).ravel().tolist() == [False, True, False], "the others are null"
    assert flat(values)[1] == 3
    del values
    settle(source)
    source = Tree(replace(outer, buffers=[None], null_count=0))
    assert flat(to_tensor(source, columns=["y", "x"], dtype="float64")) == [2, 2, 3, 3, 4, 4]
    settle(source)


def test_repeated_names_do_not_affect_other_columns():
    twice = [UNLIKELY["an unknown type"], X, UNLIKELY["too deep"]]
    assert flat(to_tensor(Tree(table(*twice)), columns=["x"])) == list(range(8))
    source = Tree(table(*twice))
    with pytest.raises(KeyError, match='2 columns are called "other"'):
        to_tensor(source, columns=["x", "other"])
    settle(source)
    source = Tree(table(*twice))
    with pytest.raises(KeyError, match='no column "z" among .*"other", "x", "other"'):
        to_tensor(source, columns=["x", "z"])
    settle(source)


OTHERS = (UNLIKELY["an unknown type"], UNLIKELY["too deep"])
LIES = {
    "fewer children": {"n_children": 2},
    "more children": {"n_children": 4},
    "none": {"n_children": 0},
    "less than none": {"n_children": -3},
    "far too many": {"n_children": 1 << 62},
    "no pointer to them": {"children": None},
    "not the one": {"children": {1: None}},
}


@pytest.mark.parametrize("columns", [["x"], []], ids=str)
@pytest.mark.parametrize("kind", ["array", "stream"])
@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_lies_about_the_children_are_found_out(lie, kind, columns):
    node = table(OTHERS[0], X, OTHERS[1])
    of_array = replace(node, said_of_array=lie)
    source = Tree(of_array) if kind == "array" else TreeStream(node, [of_array])
    if columns == [] and lie == LIES["not the one"]:
        assert to_tensor_dict(source, columns=columns) == {}
    else:
        with pytest.raises(ValueError, match="child"):
            to_tensor_dict(source, columns=columns)
    settle(source)


OF_A_TYPE = ("less than none", "far too many", "no pointer to them", "not the one")


@pytest.mark.parametrize("lie", OF_A_TYPE)
def test_those_about_the_children_of_a_type_too(lie):
    source = Tree(table(OTHERS[0], X, OTHERS[1], said_of_type=LIES[lie]))
    with pytest.raises(ValueError, match="child|fields"):
        to_tensor(source, columns=["x"])
    settle(source)


@pytest.mark.parametrize("said", [{"release": None}, {"children": {0: None}}], ids=str)
def test_children_of_a_type_that_are_gone_have_no_names(said):
    other = replace(OTHER, said_of_type=said if "release" in said else {})
    source = Tree(table(other, X, said_of_type={} if "release" in said else said))
    with pytest.raises(ValueError, match="released already|not there"):
        to_tensor(source, columns=["x"])
    settle(source)


EXTENSION = struct.pack("=ii", 1, 20) + b"ARROW:extension:name" + struct.pack("=i", 3) + b"own"


def test_what_is_no_table_is_read_whole():
    for said in ({"metadata": EXTENSION}, {"format": b"+us:0,1"}, {"metadata": BROKEN}):
        source = Tree(table(UNLIKELY["an unknown type"], X, said_of_type=said))
        with pytest.raises(ValueError, match='"zz"|length -5'):
            to_tensor(source, columns=["x"])
        settle(source)
    source = Tree(X)
    with pytest.raises(TypeError, match="columns is for tables"):
        to_tensor(source, columns=["x"])
    settle(source)


def test_a_stream_that_ends_or_fails_lets_go_of_all_that_it_gave():
    node = table(OTHERS[0], X)
    empty = replace(node, length=0)
    for fails_after in (None, 2):
        source = TreeStream(node, [empty, node, node], fails_after=fails_after)
        source.chunks = source.chunks[: fails_after or 3]
        if fails_after:
            with pytest.raises(ValueError, match="code 5"):
                to_tensor(source, columns=["x"])
        else:
            assert to_tensor(source, columns=["x"]).shape == (16, 1)
        settle(source)
    source = TreeStream(node, [])
    assert to_tensor(source, columns=["x"]).shape == (0, 1)
    settle(source)


def test_small_chunks_that_are_put_together_are_released_whole():
    node = table(OTHERS[0], X)
    source = TreeStream(node, [node] * 100)
    assert flat(to_tensor(source, columns=["x"])) == list(range(8)) * 100
    settle(source)


def test_integers_beyond_64_bits_are_left_out():
    frame = pd.DataFrame({"id": pd.Series([2**70, 1], dtype=object), "x": [1, 2]})
    assert to_tensor(frame, columns=["x"]).tolist() == [[1], [2]]
    for source in (frame, [frame]):
        (batch,) = Loader(source, columns=["x"])
        assert batch["x"].tolist() == [1, 2]


def test_objects_of_polars_that_nobody_reads_are_left_out():
    objects = pl.Series([object()] * 2, dtype=pl.Object)
    frame = pl.DataFrame({"x": [1.0, 2.0], "s": ["a", "b"], "o": objects})
    for source in (frame, [frame], Mix([(frame, 1)])):
        loader = Loader(source, columns=["x"], batch_size=1, filter=pc.field("x") > 0)
        epoch = iter(loader)
        assert next(epoch)["x"].tolist() == [1]
        assert loader.state_dict()
        (batch,) = Loader(source, columns={"s": Categories(["a", "b"])}, batch_size=2)
        assert batch["s"].tolist() == [0, 1]
