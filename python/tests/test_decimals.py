"""Decimals as floats: numbers, rounded once, in whatever they are nested."""

import random
from decimal import Decimal, localcontext
from fractions import Fraction
from math import inf

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
import torch
from arrow_dlpack import (
    Array,
    Cast,
    Dense,
    Loader,
    Pad,
    explain,
    iter_batches,
    ragged,
    to_tensor,
    to_tensor_dict,
)

# The bits of a float's digits, and its exponents.
FLOATS = {
    "float64": (53, -1022, 1023),
    "float32": (24, -126, 127),
    "float16": (11, -14, 15),
    "bfloat16": (8, -126, 127),
}
WIDTHS = {pa.decimal32: 9, pa.decimal64: 18, pa.decimal128: 38, pa.decimal256: 76}
PRICES = [Decimal("1.5"), None, Decimal("-2.25")]


def nearest(number: Fraction, digits: int, least: int, most: int) -> float:
    """The float of so many digits, ties to even."""
    if number == 0:
        return 0.0
    exponent = abs(number).numerator.bit_length() - number.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > abs(number)
    unit = Fraction(2) ** (max(exponent, least) - digits + 1)
    rounded = round(number / unit) * unit
    if abs(rounded) >= Fraction(2) ** (most + 1):
        return float("inf") if rounded > 0 else -float("inf")
    return float(rounded)


def drawn(draw: random.Random, precision: int, scale: int) -> list[int]:
    """Digits of all lengths, and some next to what lies between two floats."""
    found = [0, 10**precision - 1, 1 - 10**precision]
    for _ in range(30):
        found.append(draw.randrange(10 ** draw.randint(0, precision)) * draw.choice([1, -1]))
        bits = draw.choice([9, 12, 25, 54])
        between = Fraction(draw.randrange(2**bits), 2 ** draw.randint(0, bits + 10))
        beside = int(between * Fraction(10) ** scale) + draw.choice([0, 0, 1, -1])
        found.append(beside % 10**precision)
    return found


def stored(digits: list[int], dtype: pa.DataType) -> pa.Array:
    """As Arrow stores them, which pyarrow does not do with all of Python's."""
    items = [number.to_bytes(dtype.byte_width, "little", signed=True) for number in digits]
    return pa.Array.from_buffers(dtype, len(digits), [None, pa.py_buffer(b"".join(items))])


@pytest.mark.parametrize("make", WIDTHS, ids=lambda make: make.__name__)
def test_floats_are_the_nearest_to_the_decimal(make):
    draw = random.Random(make.__name__)
    for _ in range(40):
        precision = draw.randint(1, WIDTHS[make])
        scale = draw.randint(-20, precision)
        digits = drawn(draw, precision, scale)
        array = stored(digits, make(precision, scale))
        exact = [Fraction(number) / Fraction(10) ** scale for number in digits]
        for dtype, bounds in FLOATS.items():
            expected = [nearest(number, *bounds) for number in exact]
            if inf in map(abs, expected):
                with pytest.raises(ValueError, match=f"does not fit {dtype}"):
                    to_tensor(array, dtype=dtype)
                continue
            tensor = torch.from_dlpack(to_tensor(array, dtype=dtype, copy=True))
            assert tensor.double().tolist() == expected, (array.type, dtype)
            if dtype == "float64":
                with localcontext(prec=200):
                    decimals = [Decimal(number).scaleb(-scale) for number in digits]
                assert expected == [float(number) for number in decimals]


def test_a_matrix_has_numbers_beside_decimals_and_times():
    table = pa.table(
        {
            "price": pa.array([Decimal("1.5"), Decimal("-2.25")], pa.decimal128(5, 2)),
            "count": pa.array([3, 4], "int8"),
            "day": pa.array([10, 20], pa.date32()),
        }
    )
    matrix = to_tensor(table, dtype="float32", columns=["price", "count"])
    assert np.asarray(matrix).tolist() == [[1.5, 3.0], [-2.25, 4.0]]
    # `physical` is for the times: a float dtype makes numbers of decimals with it too.
    both = to_tensor(pa.concat_tables([table, table]), dtype="float64", physical=True, order="F")
    assert np.asarray(both).tolist() == [[1.5, 3.0, 10.0], [-2.25, 4.0, 20.0]] * 2
    tensors = to_tensor_dict(table, dtype="float64", physical=True)
    assert [np.asarray(tensor).tolist() for tensor in tensors.values()] == [
        [1.5, -2.25],
        [3.0, 4.0],
        [10.0, 20.0],
    ]
    with pytest.raises(TypeError, match=r'column "price".*dtype="float64"'):
        to_tensor(table, columns=["price", "count"])


@pytest.mark.parametrize("make", WIDTHS, ids=lambda make: make.__name__)
def test_decimals_in_lists(make):
    item = make(5, 2)
    pairs = pa.array([PRICES[:2], None, PRICES[1:]], pa.list_(item, 2))
    filled = [[1.5, 9.0], [9.0, 9.0], [9.0, -2.25]]
    assert np.asarray(to_tensor(pairs, dtype="float64", nulls=9)).tolist() == filled
    lists = pairs.cast(pa.list_(item))
    assert np.asarray(to_tensor(lists, dtype="float64", nulls=9)).tolist() == filled
    values, mask = to_tensor(lists, dtype="float32", nulls="mask")
    assert np.asarray(mask).tolist() == [[True, False], [False, False], [False, True]]
    assert np.asarray(values)[np.asarray(mask)].tolist() == [1.5, -2.25]
    rows = pa.array([PRICES[:1], [], PRICES[2:] * 2], pa.list_(item))
    values, offsets = ragged(rows[1:], dtype="float32")
    assert np.asarray(values).tolist() == [-2.25, -2.25]
    assert np.asarray(offsets).tolist() == [0, 0, 2]
    padded = to_tensor(rows, dtype="float64", pad=0.5)
    assert np.asarray(padded.values).tolist() == [[1.5, 0.5], [0.5, 0.5], [-2.25, -2.25]]
    assert np.asarray(Array(rows).row(2, dtype="float64")).tolist() == [-2.25, -2.25]
    chunks = pa.chunked_array([rows[2:], rows[:1]])
    assert np.asarray(ragged(chunks, dtype="float64").values).tolist() == [-2.25, -2.25, 1.5]


def test_the_plan_names_the_copy():
    array = pa.array(PRICES, pa.decimal256(40, 2))
    plan = explain(array, dtype="float32", nulls="nan")
    assert plan.bytes_copied == 12
    assert plan.steps[0].reasons == ["1 null is replaced", "decimals become float32"]
    with pytest.raises(BufferError, match="decimals become float64: 24 bytes"):
        to_tensor(array.drop_null().take([0, 1, 0]), dtype="float64", copy=False)
    masked = explain(array, dtype="float64", nulls="mask")
    assert [step.nbytes for step in masked.steps] == [24, 3]
    lists = pa.array([PRICES], pa.list_(pa.decimal128(5, 2)))
    assert explain(lists, dtype="float64", nulls=0).bytes_copied == 24
    assert explain(lists[:0], dtype="float64").zero_copy
    assert to_tensor(array[:0], dtype="float64", copy=False).shape == (0,)


def test_integers_of_decimals_are_asked_for():
    array = pa.array([Decimal("1.50")], pa.decimal64(5, 2))
    assert np.asarray(to_tensor(array, physical=True)).tolist() == [150]
    assert np.asarray(to_tensor(array, physical=True, dtype="int16")).tolist() == [150]
    for options in ({}, {"dtype": "int64"}, {"nulls": "nan"}):
        with pytest.raises(TypeError, match=r'physical=True for its int64.* dtype="float64"'):
            to_tensor(array, **options)
    with pytest.raises(ValueError, match="complex64"):
        to_tensor(array, physical=True, dtype="complex64")
    with pytest.raises(TypeError, match='dtype="float64"'):
        to_tensor(array.cast(pa.decimal128(5, 2)), physical=True, dtype="int64")
    with pytest.raises(TypeError, match="physical=True"):
        to_tensor(pa.array([1], pa.timestamp("s")), dtype="float64")


def test_loops_take_decimals():
    table = pa.table(
        {
            "price": pa.array(PRICES, pa.decimal128(5, 2)),
            "tokens": pa.array([PRICES[:1], [], PRICES[2:] * 2], pa.list_(pa.decimal64(5, 2))),
            "pair": pa.array([PRICES[::2]] * 3, pa.list_(pa.decimal32(5, 2))),
        }
    )
    (batch,) = iter_batches(table, batch_size=3, columns=["price"], dtype="float32", nulls="nan")
    assert np.asarray(batch["price"]).tolist()[::2] == [1.5, -2.25]
    wishes = {"price": Cast("float64", nulls=0), "tokens": Pad(0), "pair": Dense()}
    loader = Loader(table, batch_size=2, columns=wishes, dtype="float32", shuffle=3, seed=1)
    batches = list(loader)
    prices = [price for batch in batches for price in np.asarray(batch["price"]).tolist()]
    assert sorted(prices) == [-2.25, 0.0, 1.5]
    assert {np.asarray(batch["pair"]).tolist()[0][1] for batch in batches} == {-2.25}
    with pytest.raises(TypeError, match=r'column "price".*Cast\("float64"\).* label'):
        next(iter(Loader(table, columns=["pair"], label="price", dtype="float32")))
    label = {"price": Cast("float32", nulls=0)}
    _, prices = next(iter(Loader(table, columns={"pair": Dense()}, label=label, dtype="float32")))
    assert np.asarray(prices).tolist() == [1.5, 0.0, -2.25]
    (matrix,) = iter_batches(
        table, batch_size=3, columns=["price"], format="matrix", dtype="float64", nulls=1
    )
    assert np.asarray(matrix).tolist() == [[1.5], [1.0], [-2.25]]


def test_decimals_of_polars_and_duckdb():
    frame = pl.DataFrame({"x": [Decimal("1.5"), Decimal("-2.25")]}, {"x": pl.Decimal(10, 2)})
    relation = duckdb.sql("select * from (values (1.5::decimal(9,2)), (-2.25)) as t(x)")
    for source in (frame, relation):
        tensor = to_tensor(source, columns=["x"], dtype="float32")
        assert np.asarray(tensor).tolist() == [[1.5], [-2.25]]
