"""Types of polars that Arrow has not: Python's objects, and integers of 128 bits."""

from decimal import Decimal

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from arrow_dlpack import (
    Array,
    AsArrow,
    Cast,
    Categories,
    Loader,
    Mix,
    explain,
    ragged,
    to_tensor,
    to_tensor_dict,
)

OBJECTS = pl.DataFrame({"x": [1.0, 2.0], "o": pl.Series([object(), object()], dtype=pl.Object)})
WIDE = pl.DataFrame({"x": [1.0, 2.0], "i": pl.Series([1, 2**70], dtype=pl.Int128)})


POLARS_TYPES = [
    pl.Boolean,
    pl.Binary,
    pl.String,
    pl.Categorical,
    pl.Enum(["a"]),
    pl.Date,
    pl.Time,
    pl.Datetime("ns", "UTC"),
    pl.Duration,
    pl.Decimal(38, 0),
    pl.Float16,
    pl.UInt64,
    pl.Null,
    pl.Array(pl.UInt8, 8),
    pl.List(pl.Binary),
    pl.Struct({"b": pl.Binary}),
]


class _Own(pl.DataFrame):
    """A user's class."""


DOORS = {
    "to_tensor": to_tensor,
    "a series": lambda frame: to_tensor(frame[frame.columns[1]]),
    "ragged": lambda frame: ragged(frame[frame.columns[1]]),
    "to_tensor_dict": to_tensor_dict,
    "explain": explain,
    "Array": Array,
    "a table's Array": lambda frame: Array(frame[frame.columns[1]]),
    "Loader": lambda frame: list(Loader(frame)),
    "matrix": lambda frame: list(Loader(frame, format="matrix")),
    "AsArrow": lambda frame: list(Loader(frame, columns={frame.columns[1]: AsArrow()})),
}
SOURCES = {
    "frame": lambda frame: frame,
    "list": lambda frame: [frame, frame],
    "iterator": lambda frame: iter([frame, frame]),
    "lazy": lambda frame: frame.lazy(),
    "batches": lambda frame: frame.lazy().collect_batches(),
    "list of batches": lambda frame: [frame.lazy().collect_batches()],
    "iterator of batches": lambda frame: iter([frame.lazy().collect_batches()]),
    "function": lambda frame: lambda index, count: frame.lazy().collect_batches(),
    "mix of batches": lambda frame: Mix([(frame.lazy().collect_batches(), 1)]),
    "own class": lambda frame: [_Own(frame)],
    "mix": lambda frame: Mix([(frame, 1), (frame, 1)]),
}


class Extended(pl.BaseExtension):
    """A type of a user's, which stores another one."""

    def __init__(self, storage):
        super().__init__("tests.extended", storage, None)

    @classmethod
    def ext_from_params(cls, name, storage, metadata):
        return cls(storage)


@pytest.mark.parametrize("door", DOORS)
def test_objects_in_extension_types_are_no_features_but_addresses(door):
    pl.register_extension_type("tests.extended", Extended)
    try:
        objects = OBJECTS["o"].ext.to(Extended(pl.Object()))
        with pytest.raises(
            TypeError, match="""column "o" has Python's objects.*addresses: leave"""
        ):
            DOORS[door](OBJECTS.with_columns(objects))
    finally:
        pl.unregister_extension_type("tests.extended")


@pytest.mark.parametrize("door", DOORS)
def test_objects_are_no_features_but_addresses(door):
    with pytest.raises(TypeError, match="""column "o" has Python's objects.*addresses: leave"""):
        DOORS[door](OBJECTS)


@pytest.mark.parametrize("door", [to_tensor, to_tensor_dict, ragged, Array])
def test_objects_of_a_query_that_gives_batches(door):
    """Their stream tells no dtypes; no other type of polars' is exported as bytes of one length."""
    for kind in POLARS_TYPES:
        exported = pa.table(pl.DataFrame(schema={"x": kind})).schema.field("x").type
        assert not pa.types.is_fixed_size_binary(exported)
    with pytest.raises(TypeError, match="""column "o" has Python's objects.*addresses: leave"""):
        door(OBJECTS.lazy().collect_batches())
    (batch,) = Loader(OBJECTS.lazy().collect_batches(), columns=["x"])
    assert batch["x"].tolist() == [1, 2]


@pytest.mark.parametrize("source", SOURCES)
def test_objects_that_a_filter_names(source):
    named = pc.field("o") == pa.scalar(b"12345678", pa.binary(8))
    with pytest.raises(TypeError, match="""column "o" has Python's objects.*addresses"""):
        list(Loader(SOURCES[source](OBJECTS), columns=["x"], filter=named))
    batches = list(Loader(SOURCES[source](OBJECTS), columns=["x"], filter=pc.field("x") > 1))
    assert {value for batch in batches for value in batch["x"].tolist()} == {2}


@pytest.mark.parametrize("source", SOURCES)
def test_objects_in_every_source(source):
    wishes = [None, ["x", "o"], {"o": Categories([])}]
    for columns in wishes:
        with pytest.raises(TypeError, match="""column "o" has Python's objects.*addresses"""):
            list(Loader(SOURCES[source](OBJECTS), columns=columns))


@pytest.mark.parametrize("source", ["frame", "list", "mix", "own class"])
@pytest.mark.parametrize("words", [(), ["x"]])
def test_codes_of_objects_are_refused_when_the_loader_is_made(source, words):
    wish = Categories(words) if words else Categories()
    for options in {"columns": {"o": wish}}, {"label": {"o": wish}}:
        with pytest.raises(TypeError, match="""column "o" has Python's objects.*addresses"""):
            Loader(SOURCES[source](OBJECTS), **options)
    (batch,) = Loader(SOURCES[source](OBJECTS.drop("o")), batch_size=4)
    assert set(batch["x"].tolist()) == {1, 2}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("is_field", [False, True])
def test_objects_in_arrays_are_no_features_but_addresses(door, is_field):
    cells = pl.Series([np.array([1, "a"], object), np.array(["b", 2], object)])
    assert cells.dtype == pl.Array(pl.Object, 2)
    column = cells.to_frame("o").to_struct() if is_field else cells
    with pytest.raises(TypeError, match="""column "o" has Python's objects.*addresses"""):
        DOORS[door](pl.DataFrame({"x": [1.0, 2.0], "o": column}))


@pytest.mark.parametrize("source", SOURCES)
def test_objects_in_arrays_in_every_source(source):
    cells = pl.Series([np.array([1, "a"], object), np.array(["b", 2], object)])
    frame = pl.DataFrame({"x": [1.0, 2.0], "o": cells})
    with pytest.raises(TypeError, match="""column "o" has Python's objects.*addresses"""):
        list(Loader(SOURCES[source](frame)))


def test_other_columns_of_a_frame_with_objects():
    assert to_tensor(OBJECTS, columns=["x"]).shape == (2, 1)
    assert len(list(Loader(OBJECTS, columns=["x"]))) == 1
    assert len(list(Loader(OBJECTS.lazy(), columns=["x"]))) == 1
    assert len(list(Loader(OBJECTS, columns=["x"], filter=pc.field("x") > 1))) == 1


@pytest.mark.parametrize("door", [name for name in DOORS if name not in ("Loader", "AsArrow")])
def test_wide_integers_are_refused_with_a_way_out(door):
    words = r"column \".*\" is of a type of polars' own, i128.*cast it to polars.Int64"
    if door == "matrix":
        words = r"Decimal128\(38, 0\) has no tensor form: .*float64"
    with pytest.raises((ValueError, TypeError), match=words):
        DOORS[door](WIDE)
    DOORS["to_tensor"](WIDE.cast({"i": pl.Float64}))


@pytest.mark.parametrize("kind", [pl.Int128, pl.List(pl.Int128), pl.Struct({"b": pl.UInt128})])
def test_wide_integers_in_structs_are_refused_by_the_name_of_their_column(kind):
    value = {"b": 1} if kind == pl.Struct else 1 if kind == pl.Int128 else [1]
    struct = pl.Series("s", [{"a": value}], pl.Struct({"a": kind}))
    for call in to_tensor, to_tensor_dict:
        with pytest.raises(ValueError, match='^column "s" is of a type of polars'):
            call(pl.DataFrame([struct, pl.Series("y", [1])]))


@pytest.mark.parametrize("kind", [pl.List(pl.Int128), pl.Array(pl.Int128, 1)])
def test_wide_integers_in_lists_are_refused_by_the_name_of_their_column(kind):
    frame = pl.DataFrame({"i": pl.Series([[1]], dtype=kind)})
    for source in frame, frame["i"]:
        with pytest.raises(ValueError, match='^column "i" is of a type of polars'):
            to_tensor(source)
    assert to_tensor(frame.cast({"i": pl.List(pl.Int64)})["i"]).tolist() == [[1]]


@pytest.mark.parametrize("source", SOURCES)
def test_wide_integers_are_decimals_in_a_loop(source):
    make = SOURCES[source]
    for options in {}, {"filter": pc.field("x") > 0}:
        batches = list(Loader(make(WIDE), columns=["x"], batch_size=1, **options))
        assert {value for batch in batches for value in batch["x"].tolist()} == {1, 2}
    made = list(Loader(make(WIDE), columns={"i": Cast("float64")}, batch_size=1))
    assert {value for batch in made for value in batch["i"].tolist()} == {1, 2.0**70}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(
    "kind", [pl.List(pl.Int128), pl.Array(pl.UInt128, 1), pl.Struct({"f": pl.Int128})]
)
def test_an_unread_column_of_them_is_in_nobodys_way(kind, source):
    value = {"f": 1} if isinstance(kind, pl.Struct) else [1]
    frame = pl.DataFrame({"y": [1.0], "s": pl.Series([value], dtype=kind)})
    for options in {}, {"filter": pc.field("y") > 0}:
        batches = list(Loader(SOURCES[source](frame), columns=["y"], **options))
        assert batches[0]["y"].tolist()[0] == 1.0


def test_eight_bytes_of_others_are_eight_bytes():
    """Only polars' own frames are asked, and only for their dtypes."""
    table = pa.table({"o": pa.array([b"12345678"], pa.binary(8)), "x": [1.0]})
    assert to_tensor(table, columns=["o"]).shape == (1, 8)
    assert to_tensor_dict(table)["o"].shape == (1, 8)
    assert len(Array(table)) == 1
    (batch,) = Loader(table.to_reader())
    assert batch["o"].shape == (1, 8)


@pytest.mark.parametrize("source", SOURCES)
def test_integers_that_no_decimal_holds_are_in_nobodys_way_but_their_own(source):
    frame = pl.DataFrame({"x": [1.0], "v": pl.Series([10**38], dtype=pl.Int128)})
    make = SOURCES[source]
    for options in {}, {"filter": pc.field("x") > 0}:
        batches = list(Loader(make(frame), columns=["x"], **options))
        assert {value for batch in batches for value in batch["x"].tolist()} == {1}
    words = r'column "v" has integers of 128 bits.*cast it to polars.Float64 .*frame.drop'
    refused = pytest.raises(TypeError, match=words)
    with refused:
        list(Loader(make(frame), columns=["v"], dtype="float64"))
    with refused:
        list(Loader(make(frame), columns=["x"], filter=pc.field("v") > pa.scalar(Decimal(1))))
    batches = list(Loader(make(frame.cast({"v": pl.Float64})), columns=["v"]))
    assert {value for batch in batches for value in batch["v"].tolist()} == {1e38}


@pytest.mark.parametrize("nest", [pl.List, lambda kind: pl.Array(kind, 1)])
def test_lists_of_integers_that_no_decimal_holds_are_cast_to_lists_of_floats(nest):
    frame = pl.DataFrame({"v": pl.Series([[10**38]], dtype=nest(pl.Int128))})
    with pytest.raises(TypeError, match="lists of it to polars.List of that"):
        list(Loader(frame))
    (batch,) = Loader(frame.cast({"v": pl.List(pl.Float64)}))
    assert batch["v"].values.tolist() == [1e38]


@pytest.mark.parametrize(
    "column",
    [
        pl.Series([[0.5] * 128], dtype=pl.Array(pl.Float32, 128)),
        pl.Series(["128"], dtype=pl.Enum(["128"])),
        pl.Series([{"x128": 1}]),
    ],
    ids=["array", "enum", "struct"],
)
def test_a_type_whose_text_has_128_in_it_is_not_cast(column, monkeypatch):
    def cast(*_, **__):
        raise pl.exceptions.InvalidOperationError

    frame = pl.DataFrame({"v": column})
    monkeypatch.setattr(pl.DataFrame, "cast", cast)
    (batch,) = Loader(frame, columns={"v": AsArrow()})
    assert pa.array(batch["v"]).to_pylist() == column.to_list()


@pytest.mark.parametrize("source", SOURCES)
def test_a_filter_names_wide_integers_that_are_not_read(source):
    above = pc.field("i") > pa.scalar(Decimal(2), pa.decimal128(38, 0))
    batches = list(Loader(SOURCES[source](WIDE), columns=["x"], filter=above))
    assert {value for batch in batches for value in batch["x"].tolist()} == {2}
