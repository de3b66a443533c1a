"""Labels, one or several: they are none of the features, and keep their types."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from arrow_dlpack import (
    Cast,
    Categories,
    Dense,
    Loader,
    Pad,
    Tensor,
    UnsupportedError,
    iter_batches,
)

TABLE = pa.table(
    {
        "x": [1, 2, None, 4],
        "class": pa.array([3, 1, 0, 2], pa.int64()),
        "price": [0.5, None, 1.5, 2.5],
        "word": ["a", "b", "a", None],
    }
)


def first(**options):
    return next(iter_batches(TABLE, batch_size=4, **options))


@pytest.mark.parametrize("form", ["dict", "matrix"])
def test_several_labels_keep_their_types_where_nulls_become_nan(form):
    options = {"columns": ["x"], "nulls": "nan", "format": form}
    features, labels = first(label=["class", "price"], **options)
    x = features if form == "matrix" else features["x"]
    assert x.dtype == "float64"
    assert {name: label.dtype for name, label in labels.items()} == {
        "class": "int64",
        "price": "float64",
    }
    np.testing.assert_array_equal(np.asarray(labels["price"]), [0.5, np.nan, 1.5, 2.5])
    # As each of them does alone.
    for name, label in labels.items():
        _, alone = first(label=name, **options)
        assert alone.dtype == label.dtype
        np.testing.assert_array_equal(np.asarray(alone), np.asarray(label))


def test_nulls_of_several_labels_are_refused_unless_the_column_says_otherwise():
    with pytest.raises(UnsupportedError, match='column "x": .*nulls= of Cast or Categories'):
        first(columns=["price"], label=["class", "x"], nulls="nan")
    lists = [pa.array([[1, 2], None]), pa.array([[1, 2], None], pa.list_(pa.int64(), 2))]
    for column in lists:
        loader = Loader(pa.table({"x": [1, 2], "y": column}), columns=["x"], label="y")
        with pytest.raises(UnsupportedError, match="nulls= of Cast, Dense or Pad"):
            list(loader)
        label = {"y": Dense(2, nulls="mask")}
        (batch,) = Loader(pa.table({"x": [1, 2], "y": column}), columns=["x"], label=label)
        assert batch[1][0].tolist()[0] == [1, 2]
        assert batch[1][1].tolist()[1] in (False, [False, False])
    words = {"class": None, "word": Categories(["a", "b"])}
    with pytest.raises(UnsupportedError, match='column "word": .*nulls= of Cast or Categories'):
        first(columns=["price"], label=words, nulls="nan")
    wishes = {
        "x": Cast("float32", nulls="nan"),
        "word": Categories(["a", "b"], nulls=-1, dtype="int64"),
    }
    _, labels = first(columns=["price"], label=wishes, nulls="nan")
    np.testing.assert_array_equal(np.asarray(labels["x"]), [1, 2, np.nan, 4])
    assert labels["x"].dtype == "float32"
    assert np.asarray(labels["word"]).tolist() == [0, 1, 0, -1]


def test_the_dtype_is_that_of_the_features_beside_several_labels_too():
    features, labels = first(
        columns=["x"], label=["class", "price"], dtype="float32", nulls=0, format="matrix"
    )
    assert features.dtype == "float32"
    assert [label.dtype for label in labels.values()] == ["int64", "float64"]


def test_several_labels_come_in_the_order_in_which_they_are_named():
    for names in ["price", "class"], ["class", "price"]:
        for columns in ["x"], ["price", "x", "class"]:
            features, labels = first(columns=columns, label=names, nulls=0)
            assert (list(features), list(labels)) == (["x"], names)


def test_labels_alone_leave_no_features():
    for table in TABLE, TABLE.select(["class", "price"]):
        ((features, labels),) = iter_batches(
            table, columns=[], label=["class", "price"], nulls="mask"
        )
        assert features == {}
        assert [type(part) for part in labels["price"]] == [Tensor, Tensor]


def test_labels_may_be_an_index_of_pandas():
    frame = pd.DataFrame({"x": [1.5, 2.5], "y": [0, 1]}, index=pd.Index([7, 8], name="row"))
    table = pa.Table.from_pandas(frame)
    ((features, label),) = iter_batches(table, label="row")
    assert (list(features), np.asarray(label).tolist()) == (["x", "y"], [7, 8])
    ((features, labels),) = iter_batches(table, label=["row", "y"])
    assert list(features) == ["x"]
    assert np.asarray(labels["row"]).tolist() == [7, 8]


def test_labels_are_fields_of_structs_lists_and_of_a_framework():
    table = pa.table(
        {
            "x": [1.0, 2.0],
            "meta": [{"n": 1, "m": 2}, {"n": 3, "m": 4}],
            "tokens": [[1], [2, 3]],
        }
    )
    label = {"meta.n": None, "meta.m": None, "tokens": Pad(0)}
    options = {"columns": ["x"], "label": label, "framework": "numpy", "nulls": "nan"}
    ((_, labels),) = Loader(table, **options)
    assert labels["meta.n"].tolist() == [1, 3]
    assert labels["meta.m"].dtype == np.int64
    assert labels["tokens"].values.tolist() == [[1, 0], [2, 3]]


def test_a_label_is_named_once():
    with pytest.raises(KeyError, match='label= names "class" twice'):
        first(label=["class", "class"])
    with pytest.raises(KeyError, match='no column "z"'):
        first(label=["class", "z"])
