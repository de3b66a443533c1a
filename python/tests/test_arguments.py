"""Arguments: every spelling that is taken, what is refused, and what is not what it seems."""

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
import torch
from arrow_dlpack import (
    Array,
    Categories,
    Loader,
    Tensor,
    explain,
    from_dlpack,
    record_batch,
    to_tensor,
    to_tensor_dict,
)

TABLE = pa.table({"a": [1, 2], "b": [3, 4]})


class Boastful(list):
    def __len__(self):
        return 1 << 62


def test_names_are_counted_and_not_believed():
    assert to_tensor(TABLE, columns=Boastful(["b"])).shape == (2, 1)
    columns = record_batch(np.zeros((2, 2)), names=Boastful(["a", "b"]))
    assert pa.record_batch(columns).schema.names == ["a", "b"]


@pytest.mark.parametrize(
    "names", [["b"], ("b",), np.array(["b"]), pa.table({"b": [0]}).schema.names]
)
def test_names_come_in_any_sequence(names):
    assert np.asarray(to_tensor(TABLE, columns=names)).tolist() == [[3], [4]]


@pytest.mark.parametrize("names", ["b", b"b", {"b"}, {"b": 0}, [b"b"], [1], 5, iter(["b"])])
def test_what_is_no_sequence_of_names_is_a_type_error(names):
    with pytest.raises(TypeError, match="columns must be a list of names"):
        to_tensor(TABLE, columns=names)


@pytest.mark.parametrize("change", ["add", "clear"])
def test_columns_are_those_that_a_dict_has_when_it_is_passed(change):
    class Meddler:
        def __dlpack__(self, **keywords):
            if change == "clear":
                columns.clear()
            else:
                columns[f"another {len(columns)}"] = np.arange(3)
            return np.arange(3).__dlpack__(**keywords)

        def __dlpack_device__(self):
            return 1, 0

    columns = {"x": Meddler(), "y": Meddler()}
    batch = pa.record_batch(record_batch(columns))
    assert batch.to_pydict() == {"x": [0, 1, 2], "y": [0, 1, 2]}


@pytest.mark.parametrize(
    "dtype", ["int16", np.int16, np.dtype("int16"), np.dtype("=i2"), torch.int16]
)
def test_a_dtype_is_whatever_has_its_name(dtype):
    assert to_tensor(TABLE, dtype=dtype).dtype == "int16"


@pytest.mark.parametrize(
    ("keywords", "error", "words"),
    [
        ({"dtype": np.dtype(">i2")}, TypeError, "the machine's byte order"),
        ({"dtype": "int17"}, ValueError, "int17"),
        ({"nulls": "no"}, ValueError, 'nulls must be .* got "no"'),
        ({"nulls": 2**200}, ValueError, "nulls must be .* no dtype holds"),
        ({"nulls": object()}, TypeError, "nulls must be"),
        ({"nulls": np.datetime64(0, "s")}, TypeError, "nulls must be"),
        # Their items are numbers.
        ({"nulls": np.datetime64(0, "ns")}, TypeError, "nulls must be"),
        ({"nulls": np.timedelta64(3)}, TypeError, "nulls must be"),
        ({"nulls": [1, 2]}, TypeError, r"nulls must be .*, got \[1, 2\]: it is one value"),
        ({"nulls": np.array([1, 2])}, TypeError, r"got array\(\[1, 2\]\): it is one value"),
        ({"nulls": torch.zeros(2)}, TypeError, "nulls must be .*: it is one value"),
        ({"nulls": {"x": 0}}, TypeError, "nulls must be .*: it is one value"),
        ({"pad": np.array([1, 2])}, TypeError, "pad must be .*: it is one value"),
        ({"order": "K"}, ValueError, 'order must be .* got "K"'),
        ({"order": 1}, TypeError, "order must be"),
    ],
)
def test_other_values_of_keywords_are_refused_by_name(keywords, error, words):
    with pytest.raises(error, match=words):
        to_tensor(TABLE, **keywords)


def test_a_code_of_nulls_is_one_integer():
    for nulls in [1, 2], np.array([1, 2]):
        with pytest.raises(TypeError, match="nulls must be an integer of at least"):
            Categories(["a"], nulls=nulls)
    (batch,) = Loader(pa.table({"x": ["a", None]}), columns={"x": Categories(["a"], nulls=-1)})
    assert batch["x"].tolist() == [0, -1]


NARROW = ["float8_e4m3fn", "float6_e2m3fn", "float4_e2m1fn", "float8_e8m0fnu", "int4", "complex64"]


def test_dtypes_that_numbers_become_are_those_that_the_changelog_names():
    numbers = pa.array([1.0, 2.0])
    signed = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
    for dtype in [*signed, "float16", "float32", "float64", "bfloat16"]:
        assert to_tensor(numbers, dtype=dtype).dtype == dtype
    for dtype in NARROW:
        with pytest.raises(ValueError, match=f"float64 cannot become {dtype}: "):
            to_tensor(numbers, dtype=dtype)
    rounded = torch.from_dlpack(to_tensor(numbers, dtype="float32", copy=True))
    assert rounded.to(torch.float8_e5m2).float().tolist() == [1, 2]


def test_what_is_the_default_can_be_said():
    assert explain(TABLE, nulls="error", order="C") == explain(TABLE)


@pytest.mark.parametrize("fill", [0, True, np.int8(0), np.float32(0), np.bool_(True)])
def test_nulls_become_numbers_of_python_and_of_numpy(fill):
    for column in pa.array([5, None]), pa.array([5.0, None]), pa.array([5, None], pa.uint8()):
        values = to_tensor(column, nulls=fill)
        assert np.from_dlpack(values).tolist() == [5, int(fill)]


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        (np.ones(2, "bool"), "bool", pa.bool_()),
        (np.ones((2, 3), "bool"), "bool", None),
        (torch.ones(2).bfloat16(), "float32", pa.float32()),
        (np.ones((2, 3)), "fixed_shape_tensor", pa.fixed_shape_tensor(pa.float64(), [3])),
    ],
)
def test_a_type_by_name_is_that_type(values, kind, expected):
    assert expected in (None, pa.array(from_dlpack(values, type=kind)).type)


@pytest.mark.parametrize(
    ("kind", "error", "words"),
    [
        ("bool", ValueError, 'does not become "bool", but Float64'),
        ("fixed_shape_tensor", ValueError, 'does not become "fixed_shape_tensor"'),
        ("bool9", ValueError, "type must be"),
        (9, TypeError, "type must be"),
    ],
)
def test_a_type_that_it_does_not_become_is_refused(kind, error, words):
    with pytest.raises(error, match=words):
        from_dlpack(np.ones(2), type=kind)


@pytest.mark.parametrize("version", [(2**70, 0), (1, 2**70), (2**40, 0), (1.0, 0), (-1, 0)])
def test_a_version_is_two_numbers_of_32_bits(version):
    with pytest.raises(TypeError, match="max_version must be a tuple"):
        Array(pa.array([1])).__dlpack__(max_version=version)


def test_a_dict_of_tensors_takes_a_table():
    with pytest.raises(TypeError, match="to_tensor_dict takes a table: use to_tensor"):
        to_tensor_dict(pa.array([1]))


def test_long_objects_are_named_by_their_type():
    with pytest.raises(TypeError, match="got str"):
        Tensor.from_dlpack("x" * 61)


def test_fields_and_plans_say_what_they_are():
    field = pa.field("when", pa.timestamp("ms", "UTC"), nullable=False, metadata={"unit": "m"})
    array = Array(pl.Series("n", [1], pl.Int8))
    assert repr(array.field) == '<arrow_dlpack.Field "n": Int8>'
    assert (array.field.name, array.field.type, array.field.metadata) == ("n", "Int8", {})
    column = pa.record_batch([pa.array([1], field.type)], pa.schema([field]))
    ours = to_tensor_dict(column, physical=True)["when"].field
    assert (ours.name, ours.type, ours.nullable) == ("when", 'Timestamp(ms, "UTC")', False)
    assert ours.metadata == {"unit": "m"}
    plan = explain(pa.array([True]))
    assert repr(plan) == "<arrow_dlpack.Plan copies 1 byte: Arrow stores booleans as bits>"
    assert repr(plan.steps[0]) == "<arrow_dlpack.Step copies 1 byte: Arrow stores booleans as bits>"
