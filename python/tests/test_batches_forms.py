"""The forms that columns have in batches."""

from contextlib import closing

import numpy as np
import pyarrow as pa
import pytest
from arrow_dlpack import Array, LeftPadded, MaskedPadded, Padded, Ragged, _core
from hypothesis import given, settings
from hypothesis import strategies as st


def opened(source, **options):
    of_columns = {
        "columns": None, "labels": [], "as_matrix": False, "dtype": None, "nulls": "error",
        "copy": None, "physical": False, "forms": None,
    }  # fmt: skip
    of_columns |= {name: options.pop(name) for name in of_columns if name in options}
    of_rows = {
        "batch_size": None, "drop_last": False, "shuffle": None, "shard": (0, 1), "prefetch": 0,
        "progress": None,
    }  # fmt: skip
    return _core._open_batches(source, of_columns, **(of_rows | options))


def rows_table(lengths, chunk):
    """Row i is called i, has `lengths[i]` tokens i, and a pair of them."""
    count = len(lengths)
    tokens = [[at] * length for at, length in enumerate(lengths)]
    columns = {
        "x": pa.array(range(count), pa.int64()),
        "tokens": pa.array(tokens, pa.list_(pa.int32())),
        "views": pa.array(tokens, pa.list_view(pa.int8())),
        "cut": pa.array(tokens, pa.list_(pa.int64())),
        "pair": pa.array([[at, at] for at in range(count)], pa.large_list(pa.int64())),
        "name": pa.array([str(at) for at in range(count)], pa.string()),
    }  # fmt: skip
    batches = pa.table(columns).to_batches(max_chunksize=chunk)
    return pa.Table.from_batches(batches, pa.table(columns).schema)


FORMS = {
    "views": ("pad", -1, None, "left", "error", "float32", None),
    "cut": ("pad", 7, 2, "right", "cut", None, None),
    "pair": ("dense", None, None, None),
    "name": ("arrow",),
    "x": ("tensor", "int64", None),
}


def check(batch, lengths):
    x = np.from_dlpack(batch["x"]).tolist()
    own = [lengths[at] for at in x]
    rows = [[at] * length for at, length in zip(x, own, strict=True)]
    assert isinstance(batch["tokens"], Ragged)
    values, offsets = map(np.from_dlpack, batch["tokens"])
    assert offsets.tolist() == np.cumsum([0, *own]).tolist()
    assert values.tolist() == [token for row in rows for token in row]
    assert isinstance(batch["views"], LeftPadded)
    views, found = map(np.from_dlpack, batch["views"])
    assert views.shape == (len(x), max(own, default=0))
    assert views.dtype == np.float32
    assert found.tolist() == own
    assert [
        row[len(row) - length :].tolist() for row, length in zip(views, own, strict=True)
    ] == rows
    cut, found = batch["cut"]
    assert cut.shape == (len(x), 2)
    assert found.tolist() == [min(length, 2) for length in own]
    assert cut.tolist() == [[*row, 7, 7][:2] for row in rows]
    assert batch["pair"].tolist() == [[at, at] for at in x]
    assert isinstance(batch["name"], Array)
    assert pa.array(batch["name"]).to_pylist() == [str(at) for at in x]
    return x


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 6), max_size=20),
    st.integers(1, 9),
    st.integers(1, 25),
    st.none() | st.integers(1, 30),
    st.sampled_from([0, 2]),
)
def test_every_form_has_each_row_once(lengths, chunk, size, buffer, prefetch):
    shuffle = None if buffer is None else (buffer, 7)
    source = rows_table(lengths, chunk)
    options = {"batch_size": size, "shuffle": shuffle, "prefetch": prefetch, "forms": FORMS}
    with closing(opened(source, **options)) as batches:
        found = [row for batch in batches for row in check(batch, lengths)]
    assert (found if shuffle is None else sorted(found)) == list(range(len(lengths)))


def test_a_label_has_a_form_beside_a_matrix_too():
    source = rows_table([0, 1, 2], 2)
    forms = {"tokens": ("pad", 0, 4, "right", "cut", None, None)}
    options = {"columns": ["x"], "labels": ["tokens"], "as_matrix": True, "forms": forms}
    ((features, label),) = opened(source, batch_size=3, **options)
    assert features.tolist() == [[0], [1], [2]]
    assert isinstance(label, Padded)
    assert label.values.tolist() == [[0] * 4, [1, 0, 0, 0], [2, 2, 0, 0]]
    with pytest.raises(ValueError, match="matrix"):
        opened(source, columns=["x"], as_matrix=True, forms={"x": ("arrow",)})


def test_a_mask_of_rows_is_of_one_column():
    source = pa.table({"x": [1, 2], "tokens": pa.array([[1], None])})
    forms = {"tokens": ("pad", 0, None, "right", "cut", None, "mask")}
    (batch,) = opened(source, forms=forms)
    assert isinstance(batch["tokens"], MaskedPadded)
    assert batch["tokens"].mask.tolist() == [True, False]
    assert batch["tokens"].values.field.name == "tokens"


def test_what_has_no_form_is_refused_in_words_that_help():
    source = rows_table([1, 2], 2)
    for name, options, error, words in [
        ("name", {}, TypeError, r'column "name".*AsArrow\(\)'),
        ("pair", {"as_matrix": True}, TypeError, 'column "pair"'),
        ("x", {"forms": {"pair": ("dense", None, None, None)}}, KeyError, "pair"),
        ("x", {"forms": {"x": ("ragged", None, None)}}, TypeError, "is not ragged, as lists"),
        ("x", {"forms": {"x": ("round",)}}, TypeError, "a form must be a tuple"),
        ("x", {"forms": {"x": ()}}, (TypeError, IndexError), None),
        ("x", {"forms": ["x"]}, TypeError, "forms must be a dict"),
        ("cut", {"forms": {"cut": ("pad", 0, 2, "up", "cut", None, None)}}, ValueError, "side"),
        ("cut", {"forms": {"cut": ("pad", 0, 2, "left", "no", None, None)}}, ValueError, "longer"),
    ]:  # fmt: skip
        with pytest.raises(error, match=words):
            opened(source, columns=[name], **options)
    for form, words in [
        (
            ("dense", None, None, None),
            r"row 1 of a batch has 2 values where 1 are.*Pad\(\)",
        ),
        (("pad", 0, 1, "right", "error", None, None), "row 1 has 2 values, more than the 1"),
    ]:
        batches = opened(source, columns=["cut"], forms={"cut": form})
        with pytest.raises((BufferError, ValueError), match=words):
            next(batches)
    lists = pa.table({"x": pa.array([["a"]])})
    with pytest.raises(TypeError, match=r"Utf8.*AsArrow\(\)"):
        opened(lists)
