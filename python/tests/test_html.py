"""What notebooks show of the classes: escaped, short, and made without other devices' memory."""

import re
from html.parser import HTMLParser

import arrow_dlpack
import numpy as np
import pyarrow as pa
import pytest
import torch
from arrow_dlpack import Array, Tensor, asdlpack, explain, ragged, to_tensor

HOSTILE = "</b><script>alert('&')</script>" + '"' * 3


class Tags(HTMLParser):
    """The tags and the text of a piece of HTML, whose tags must all be closed, in order."""

    def __init__(self, thing):
        super().__init__()
        self.open, self.tags, self.text = [], set(), ""
        self.html = thing._repr_html_()
        self.feed(self.html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        assert {name for name, _ in attrs} <= {"style"}
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def hostile_arrays():
    schema = pa.schema([pa.field(HOSTILE, pa.int8(), metadata={"ARROW:extension:name": HOSTILE})])
    yield Array(pa.array([HOSTILE, HOSTILE]))
    yield Array(pa.table([pa.array([1], pa.int8())], schema=schema))
    yield Array(pa.array([[{HOSTILE: 1}]]))
    yield Array(pa.array([HOSTILE]).dictionary_encode())


@pytest.mark.parametrize("index", range(4))
def test_names_types_and_values_are_escaped(index):
    shown = Tags(list(hostile_arrays())[index])
    assert shown.tags <= {"div", "b", "i"}
    assert "script" in shown.text


def test_an_array_shows_type_length_nulls_and_first_values():
    shown = Tags(Array(pa.array([1.5, None, 4.0])))
    assert shown.text == "Array Float64 · 3 values · 1 null[1.5, null, 4.0]"
    assert "1,000,000 values" in Tags(Array(pa.array(np.zeros(1_000_000)))).text
    when = Tags(Array(pa.array([0], pa.timestamp("s"))))
    assert when.text == "Array Timestamp(s) · 1 value[1970-01-01T00:00:00]"


def test_a_type_of_many_fields_is_cut():
    fields = pa.struct([(f"x{i}", pa.int8()) for i in range(100_000)])
    assert len(Tags(Array(pa.array([], pa.list_(fields)))).html) < 1000


@pytest.mark.parametrize(
    ("values", "cells"),
    [
        (np.array(2.5), ["2.5"]),
        (np.array([1, 2]), ["1", "2"]),
        (np.arange(100), ["0", "1", "2", "3", "4", "5", "…"]),
        (np.array([[1 / 3, np.nan]]), ["0.333333", "nan"]),
        (np.zeros((2, 2, 1, 1)), ["0"]),
        (np.zeros((0, 5)), []),
        (np.zeros((5, 0)), []),
        (np.broadcast_to(np.int8(7), (1 << 40, 1)), ["7"] * 5 + ["…"]),
        (np.broadcast_to(np.int8(7), (1, 1 << 40)), ["7"] * 6 + ["…"]),
        (torch.ones(2, dtype=torch.bfloat16), ["1", "1"]),
    ],
)
def test_a_tensor_shows_its_first_numbers(values, cells):
    shown = Tags(Tensor.from_dlpack(values))
    assert re.findall("<td[^>]*>([^<]*)</td>", shown.html) == cells
    assert f"shape {tuple(values.shape)}" in shown.text


def test_a_million_columns_show_six():
    matrix = Tensor.from_dlpack(np.zeros((2, 1_000_000), "int8"))
    assert len(Tags(matrix).html) < 3000


def test_memory_of_another_device_is_not_touched():
    class Gpu:
        @property
        def __cuda_array_interface__(self):
            data = (0xDEAD0000, False)
            return {"shape": (2,), "typestr": "<f4", "data": data, "version": 3}

    shown = Tags(asdlpack(Gpu()))
    assert "cuda:0" in shown.text
    assert "td" not in shown.tags


def test_a_tensor_shows_strides_and_whether_it_may_be_written_to():
    column = pa.array([0, 1], pa.timestamp("s", "UTC"))
    assert "Timestamp(s" in Tags(to_tensor(column, physical=True)).text
    transposed = Tags(Tensor.from_dlpack(np.zeros((2, 3)).T)).text
    assert "strides (1, 3)" in transposed
    assert "writable" in transposed
    assert "read-only" in Tags(ragged(pa.array([[1], [2]])).values).text


def test_a_plan_shows_what_is_shared_and_what_is_copied():
    shared = Tags(explain(pa.array([1, 2]))).text
    assert "zero-copy" in shared
    assert "0 bytes are copied" in shared
    copied = Tags(explain(pa.array([True, False]))).text
    assert "2 bytes are written" in copied
    assert "Arrow stores booleans as bits" in copied
    table = pa.table({"a": np.zeros(1_000_000), "b": np.zeros(1_000_000)})
    assert "7.6 MiB (8,000,000 bytes)" in Tags(explain(table, dtype="float32")).text


def test_a_plan_of_hostile_columns_is_escaped_and_short():
    names = [f"{HOSTILE}{i}" for i in range(1000)]
    chunks = pa.table({name: pa.chunked_array([[1], [None]], pa.int8()) for name in names})
    shown = Tags(explain(chunks, nulls=0, dtype="float32"))
    assert shown.tags <= {"div", "b", "br"}
    assert len(shown.html) < 10_000


def test_subclasses_show_themselves():
    class Mine(Array):
        pass

    assert Tags(Mine(pa.array([1]))).text.startswith("Mine Int64")
    assert arrow_dlpack.Plan._repr_html_.__doc__
