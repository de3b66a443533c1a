"""Types of polars that Arrow has not: Python's objects, and integers of 128 bits."""

import polars as pl
import pyarrow.compute as pc
import pytest
from arrow_dlpack import (
    Array,
    AsArrow,
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
    "mix": lambda frame: Mix([(frame, 1), (frame, 1)]),
}


@pytest.mark.parametrize("door", DOORS)
def test_objects_are_no_features_but_addresses(door):
    with pytest.raises(TypeError, match="""column "o" has Python's objects.*addresses: leave"""):
        DOORS[door](OBJECTS)


@pytest.mark.parametrize("source", SOURCES)
def test_objects_in_every_source(source):
    wishes = [None, ["x", "o"], {"o": Categories([])}]
    for columns in wishes:
        with pytest.raises(TypeError, match="""column "o" has Python's objects.*addresses"""):
            list(Loader(SOURCES[source](OBJECTS), columns=columns))


def test_other_columns_of_a_frame_with_objects():
    assert to_tensor(OBJECTS, columns=["x"]).shape == (2, 1)
    assert len(list(Loader(OBJECTS, columns=["x"]))) == 1
    assert len(list(Loader(OBJECTS.lazy(), columns=["x"]))) == 1
    # pyarrow, which filters, would read all columns.
    with pytest.raises(TypeError, match=r'frame.drop\("o"\) leaves it out'):
        list(Loader(OBJECTS, columns=["x"], filter=pc.field("x") > 1))


@pytest.mark.parametrize("door", DOORS)
def test_wide_integers_are_refused_with_a_way_out(door):
    with pytest.raises(ValueError, match=r'column "i" is of a type of polars\' own, i128.*cast it'):
        DOORS[door](WIDE)
    DOORS["to_tensor"](WIDE.cast({"i": pl.Float64}))


@pytest.mark.parametrize("source", SOURCES)
def test_wide_integers_leave_other_columns_alone(source):
    make = SOURCES[source]
    for options in {}, {"filter": pc.field("x") > 0}:
        batches = list(Loader(make(WIDE), columns=["x"], batch_size=1, **options))
        assert sorted({value for batch in batches for value in batch["x"].tolist()}) == [1, 2]
    if source != "frame":
        # As decimals they are read too.
        made = list(Loader(make(WIDE), columns=["i"], dtype="float64", batch_size=1))
        assert made[0]["i"].tolist() == [1.0]
