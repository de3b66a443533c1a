"""Arrays whose rows differ in length, for hypothesis."""

import numpy as np
import pyarrow as pa
from frameworks import DTYPES, arrow_type
from hypothesis import strategies as st

LISTS = [pa.list_, pa.large_list, pa.list_view, pa.large_list_view]
TEXTS = [pa.string(), pa.large_string(), pa.string_view()]
BYTES = [pa.binary(), pa.large_binary(), pa.binary_view()]

items = st.sampled_from([*map(arrow_type, DTYPES), pa.bool_(), pa.list_(pa.int16(), 2)])
types = st.builds(lambda make, item: make(item), st.sampled_from(LISTS), items)
types |= st.sampled_from([*TEXTS, *BYTES])


def rows_of(data_type):
    """Python's values of one row."""
    if data_type in TEXTS:
        return st.text("aé→🏹", max_size=20)
    if data_type in BYTES:
        return st.binary(max_size=20)
    if pa.types.is_boolean(data_type.value_type):
        return st.lists(st.booleans(), max_size=20)
    if pa.types.is_fixed_size_list(data_type.value_type):
        return st.lists(st.lists(st.integers(0, 99), min_size=2, max_size=2), max_size=5)
    return st.lists(st.integers(0, 99), max_size=20)


@st.composite
def ragged_arrays(draw, data_types=types):
    """Slices of arrays whose nulls, if there are any, hide values."""
    data_type = draw(data_types)
    rows = draw(st.lists(rows_of(data_type), max_size=12))
    array = pa.array(rows, data_type)
    if draw(st.booleans()):
        valid = draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
        bits = pa.py_buffer(np.packbits(np.array(valid, bool), bitorder="little").tobytes())
        has_child = pa.types.is_nested(data_type)
        buffers = [bits, *array.buffers()[1 : array.type.num_buffers]]
        if not has_child:
            buffers = [bits, *array.buffers()[1:]]
        children = [array.values] if has_child else None
        array = pa.Array.from_buffers(data_type, len(rows), buffers, children=children)
    start = draw(st.integers(0, len(array)))
    return array[start : draw(st.integers(start, len(array)))]
