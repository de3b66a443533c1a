"""Which columns are wanted, and what is wrong with those that cannot be had: all of it."""

import datetime
import re

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from arrow_dlpack import Array, UnsupportedError, explain, iter_batches, to_tensor, to_tensor_dict

DAY = datetime.date(2026, 1, 1)
FLIGHTS = pa.table(
    {
        "carrier": ["a", "b", "a"],
        "day": [DAY, DAY, None],
        "distance": [1.0, 2.0, 3.0],
        "delay": [1, None, 3],
        "tail": pa.array(["x", "y", "x"]).dictionary_encode(),
        "nothing": pa.nulls(3),
        "hour": [1, 2, 3],
    }
)
BAD = {
    "carrier": "pass this column alone to ragged",
    "day": "physical=True",
    "delay": "1 null in 3 values",
    "tail": "physical=True",
    "nothing": "cast it",
}


def consumed(**options):
    return lambda source: list(iter_batches(source, **options))


DOORS = {
    "to_tensor": to_tensor,
    "to_tensor_dict": to_tensor_dict,
    "explain": explain,
    "Array.to_tensor": lambda source: Array(source).to_tensor(),
    "in chunks": lambda source: to_tensor(pa.concat_tables([source, source])),
    "a dict of chunks": lambda source: to_tensor_dict(pa.concat_tables([source, source])),
}
AT_ONCE = {
    "dict": consumed(),
    "matrix": consumed(format="matrix"),
    "a label": consumed(label="carrier"),
    "a label of a matrix": consumed(format="matrix", label="carrier"),
    "of a dataset": lambda source: list(iter_batches(ds.dataset(source))),
}


@pytest.mark.parametrize("name", DOORS)
def test_all_bad_columns_are_named_at_once(name):
    with pytest.raises(UnsupportedError) as refused:
        DOORS[name](FLIGHTS)
    first, *lines = str(refused.value).splitlines()
    assert first == f"{len(BAD)} columns are refused:"
    for line, (column, words) in zip(lines, BAD.items(), strict=True):
        assert line.startswith(f'  column "{column}": ')
        assert words.replace("in 3", "in 6").replace("1 null", "2 nulls") in line or words in line


@pytest.mark.parametrize("name", AT_ONCE)
def test_of_batches_they_are_named_when_they_are_opened(name):
    bad = {column for column in BAD if column != "delay"}  # nulls are in rows
    with pytest.raises(UnsupportedError) as refused:
        AT_ONCE[name](FLIGHTS)
    found = {line.split('"')[1] for line in str(refused.value).splitlines()[1:]}
    assert found == bad


def test_nulls_of_several_columns_are_one_error():
    table = pa.table({"a": [1, None], "b": [None, 2.0], "c": [1, 2]})
    for convert in (*DOORS.values(), consumed(), consumed(format="matrix"), consumed(label="a")):
        with pytest.raises(UnsupportedError, match="2 columns are refused") as refused:
            convert(table)
        assert sorted(re.findall(r'column "(.)": .* nulls? in', str(refused.value))) == ["a", "b"]


def test_a_dtype_is_refused_for_all_columns_that_it_is_not_for():
    for convert in (to_tensor, to_tensor_dict, explain):
        with pytest.raises(ValueError, match=r'(?s)2 columns .*"distance".* bool.*"hour"'):
            convert(FLIGHTS.select(["distance", "hour"]), dtype="bool")


def test_refusals_of_several_kinds_are_no_type_errors_unless_all_are():
    table = pa.table({"a": ["x"], "b": [1]})
    with pytest.raises(BufferError) as refused:
        to_tensor_dict(table, dtype="bool")
    assert not isinstance(refused.value, TypeError)


def test_one_bad_column_is_an_error_of_one_line():
    with pytest.raises(UnsupportedError, match='^column "carrier": .*$'):
        to_tensor(FLIGHTS.select(["carrier", "hour"]))


def test_error_messages_have_a_limit():
    many = pa.table({f"{'x' * 1000}{number}": ["a"] for number in range(3000)})
    for convert in (to_tensor, to_tensor_dict):
        with pytest.raises(UnsupportedError, match="(?s)3000 columns.*and 2980 more$") as refused:
            convert(many)
        assert len(str(refused.value)) < 10_000
    wanted = [f"{'y' * 1000}{number}" for number in range(3000)]
    with pytest.raises(KeyError, match="and 2970 more") as refused:
        to_tensor(many, columns=wanted)
    assert len(str(refused.value)) < 20_000


@pytest.mark.parametrize("convert", [to_tensor, to_tensor_dict, explain, iter_batches])
def test_all_unknown_names_are_named_at_once(convert):
    with pytest.raises(KeyError, match='there are no columns "x", "y" among .*"carrier"'):
        convert(FLIGHTS, columns=["hour", "x", "distance", "y"])
    with pytest.raises(KeyError, match='there is no column "x" among .*"carrier"'):
        convert(FLIGHTS, columns=["hour", "x"])


@pytest.mark.parametrize("source", [FLIGHTS, ds.dataset(FLIGHTS)], ids=["table", "dataset"])
def test_an_unknown_label_is_named_with_the_unknown_columns(source):
    with pytest.raises(KeyError, match='no columns "x", "y", "z" among .*"carrier"'):
        iter_batches(source, columns=["hour", "x", "y"], label="z")


def test_of_a_dataset_the_types_of_other_columns_do_not_matter():
    deep = pa.array([1])
    for _ in range(70):
        deep = pa.StructArray.from_arrays([deep], ["x"])
    source = ds.dataset(pa.table({"deep": deep, "hour": [1]}))
    ((label,),) = ([batch["hour"] for batch in iter_batches(source, columns=["hour"])],)
    assert label.shape == (1,)
