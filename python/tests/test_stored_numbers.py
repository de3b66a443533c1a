"""Types with fewer values than the integers that store them, asked for by type=: what the full
validation of pyarrow refuses is refused with its row, and the memory of all others is shared.
"""

import numpy as np
import pyarrow as pa
import pytest
from arrow_dlpack import (
    Array,
    explain,
    from_dlpack,
    from_padded,
    from_ragged,
    record_batch,
    to_tensor,
)

DAY = 24 * 60 * 60
#: The first and the last number of each, and how far apart two are.
TYPES = {
    pa.decimal32(1, 0): (-9, 9, 1),
    pa.decimal32(9, 4): (1 - 10**9, 10**9 - 1, 1),
    pa.decimal64(5, 2): (-99999, 99999, 1),
    pa.decimal64(18, 0): (1 - 10**18, 10**18 - 1, 1),
    pa.time32("s"): (0, DAY - 1, 1),
    pa.time32("ms"): (0, DAY * 10**3 - 1, 1),
    pa.time64("us"): (0, DAY * 10**6 - 1, 1),
    pa.time64("ns"): (0, DAY * 10**9 - 1, 1),
    pa.date64(): (-DAY * 10**3, DAY * 10**5, DAY * 10**3),
}


def stored(numbers, kind):
    return np.array(numbers, f"int{kind.bit_width}")


def is_valid(array):
    try:
        pa.array(array).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_a_number_that_is_no_value_is_refused_with_its_row(kind):
    first, last, step = TYPES[kind]
    good = stored([first, first + step, last], kind)
    array = from_dlpack(good, type=kind)
    assert is_valid(array)
    assert np.asarray(to_tensor(array, physical=True)).ctypes.data == good.ctypes.data
    outside = [first - 1, last + 1] if step == 1 else [first + 1, last - 1]
    for number in outside:
        bad = stored([first, last, number], kind)
        assert not is_valid(pa.array(bad).view(kind))
        with pytest.raises(ValueError, match=f"the number {number} of row 2 is no value of"):
            from_dlpack(bad, type=kind)
        assert explain(bad, type=kind).bytes_copied == 0
        with pytest.raises(ValueError, match=f'column "x": the number {number} of row 2'):
            record_batch({"x": bad}, type={"x": kind})


@pytest.mark.parametrize("kind", [kind for kind in TYPES if not pa.types.is_decimal(kind)], ids=str)
def test_a_requested_schema_takes_numbers_for_the_values_that_they_store(kind):
    """pyarrow's own cast takes all."""
    first, last, step = TYPES[kind]
    numbers = pa.array([first, None, last], pa.int64()).cast(f"int{kind.bit_width}")
    assert pa.array(Array(numbers), type=kind).equals(numbers.view(kind))
    for number in [first - 1, last + 1] if step == 1 else [first + 1]:
        bad = pa.array([first, None, number], numbers.type)
        for source in Array(bad), to_tensor(bad.fill_null(first)):
            with pytest.raises(ValueError, match=f"the number {number} of row 2 is no value of"):
                pa.array(source, type=kind)
        rows = record_batch({"x": bad})
        with pytest.raises(ValueError, match=f'in field "x".* the number {number} of row 2'):
            pa.table(rows, schema=pa.schema([("x", kind)]))


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_numbers_that_no_row_has_may_be_any(kind):
    first, last, _ = TYPES[kind]
    numbers = stored([last + 1, first, last, last + 1], kind)
    assert is_valid(from_dlpack(numbers[1:3], type=kind))
    mask = np.array([False, True, True, False])
    assert pa.array(from_dlpack(numbers, type=kind, mask=mask)).null_count == 2
    with pytest.raises(ValueError, match="of row 3"):
        from_dlpack(numbers, type=kind, mask=~np.array([True, False, False, False]))
    lists = pa.list_(kind)
    rows = pa.array(from_ragged(numbers, np.array([1, 2, 3], "int32"), type=lists))
    assert is_valid(rows.flatten())
    with pytest.raises(ValueError, match="of row 1"):
        from_ragged(numbers, np.array([1, 2, 4], "int32"), type=lists)
    rows = numbers.reshape(2, 2)[:, ::-1].copy()
    assert is_valid(from_padded(rows, np.array([1, 0]), type=lists))
    with pytest.raises(ValueError, match="of row 1"):
        from_padded(rows[::-1].copy(), np.array([0, 2]), type=lists)


def test_columns_of_a_matrix_and_items_of_lists_are_looked_at():
    kind = pa.decimal64(3, 1)
    matrix = np.array([[1, 2], [3, 4000]])
    with pytest.raises(ValueError, match='column "y": the number 4000 of row 1'):
        record_batch(matrix, names=["x", "y"], type=kind)
    for lists in pa.list_(kind, 2), pa.list_(kind):
        with pytest.raises(ValueError, match=r"the number 4000 of row 1 .* -999 to 999"):
            from_dlpack(matrix, type=lists)
    columns = np.asfortranarray(np.array([[1, 4000], [3, 4000]]))[:, :1]
    assert pa.record_batch(record_batch(columns, names=["x"], type=kind))["x"].type == kind
