"""Refusals whose hint leads somewhere: by the type, and by the function that was called."""

import pathlib
import re
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute
import pytest
import system
from arrow_dlpack import (
    Array,
    Dense,
    Loader,
    Mix,
    Pad,
    Tensor,
    UnsupportedError,
    asdlpack,
    explain,
    from_dlpack,
    from_padded,
    from_ragged,
    iter_batches,
    ragged,
    record_batch,
    to_tensor,
    to_tensor_dict,
)


def refusal(kind, call, *arguments, **options):
    with pytest.raises(kind) as refused:
        call(*arguments, **options)
    return str(refused.value)


NUMBERS = pa.array([1, 2])
#: Columns without offsets, what is said in place of them, and the same as an argument of to_tensor.
FLAT = {
    "numbers": (NUMBERS, {}),
    "booleans": (pa.array([True, False]), {}),
    "fixed-size lists": (pa.array([[1, 2]], pa.list_(pa.int64(), 2)), {}),
    "fixed-size binaries": (pa.array([b"ab"], pa.binary(2)), {}),
    "times": (pa.array([1], pa.timestamp("s")), {"physical": True}),
    "decimals": (pa.array([1], pa.decimal128(5, 2)), {"dtype": "float64"}),
}


def named(options):
    quoted = ", ".join(f"{name}={value!r}".replace("'", '"') for name, value in options.items())
    return quoted


@pytest.mark.parametrize("name", FLAT)
def test_what_is_not_ragged_is_refused_with_the_call_that_takes_it(name):
    column, options = FLAT[name]
    for call in (ragged, lambda x: explain(x, ragged=True)):
        words = refusal(UnsupportedError, call, column)
        assert (
            "is not ragged, as lists, texts and binaries are: use to_tensor"
            + ", with " * bool(options)
            in words
        )
        assert named(options) in words
    for call in (to_tensor, explain):
        words = refusal(UnsupportedError, call, column, pad=0)
        assert "leave out pad=" in words
        assert "to_tensor" not in words
        assert named(options) in words
    words = refusal(UnsupportedError, iter_batches, pa.table({"c": column}), columns={"c": Pad(0)})
    assert "leave out Pad()" in words
    assert named(options) in words
    assert to_tensor(column, **options).size > 0


def test_of_a_type_without_a_tensor_no_hint_names_a_call_that_refuses_it_too():
    for column in (
        pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
        pa.array([(1, 2, 3)], pa.month_day_nano_interval()),
        pa.RunEndEncodedArray.from_arrays([2], [1]),
        pa.nulls(2),
        pa.array(["a"]).dictionary_encode(),
    ):
        for call in (ragged, lambda x: to_tensor(x, pad=0)):
            words = refusal(UnsupportedError, call, column)
            assert "is not ragged" in words
            assert "to_tensor" not in words
            assert "pad=" not in words


def extension(storage):
    metadata = {"ARROW:extension:name": "daft.super_extension", "ARROW:extension:metadata": ""}
    return pa.table([storage], pa.schema([pa.field("c", storage.type, metadata=metadata)]))


class Column:
    """A column alone, with its extension type."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_array__(self, requested_schema=None):
        column = self.table.column(0).combine_chunks()
        _, array = column.__arrow_c_array__()
        return self.table.schema.field(0).__arrow_c_schema__(), array


def test_an_extension_type_is_refused_with_what_its_storage_becomes():
    texts, lists = extension(pa.array(["a", "bc"])), extension(pa.array([[1], [2, 3]]))
    numbers, structs = extension(NUMBERS), extension(pa.array([{"a": 1}]))
    own = 'extension type "daft.super_extension" (stored as '
    words = refusal(UnsupportedError, to_tensor, Column(texts))
    assert (
        words == f"{own}Utf8) has no tensor form of its own: "
        "use ragged, with physical=True, for its storage"
    )
    assert ragged(Column(texts), physical=True).values.size == 3
    for call in (ragged, lambda x: to_tensor(x, pad=0)):
        assert refusal(UnsupportedError, call, Column(lists)).endswith(
            "pass physical=True for its storage"
        )
        assert call(Column(texts), physical=True) if call is ragged else True
    assert refusal(UnsupportedError, ragged, Column(numbers)).endswith(
        "use to_tensor, with physical=True"
    )
    assert refusal(UnsupportedError, to_tensor, Column(numbers)).endswith(
        "pass physical=True for its storage"
    )
    assert "ragged, with physical=True" in refusal(UnsupportedError, to_tensor_dict, lists)
    words = refusal(UnsupportedError, iter_batches, texts)
    assert (
        "make codes of it with Categories([...]), or hand it on as Arrow data with AsArrow()"
        in words
    )
    words = refusal(UnsupportedError, to_tensor_dict, structs)
    assert "x itself where pyarrow does not know the type: then flatten it first" in words
    assert to_tensor_dict(structs["c"])["a"].tolist() == [1]
    assert "or hand it on as Arrow data with AsArrow()" in refusal(
        UnsupportedError, iter_batches, structs
    )


def test_what_is_no_dict_of_columns_is_named_or_taken_apart():
    rows = ragged(pa.array([[1], [2, 3]]))
    padded = to_tensor(pa.array([[1], [2, 3]]), pad=0)
    for call in (from_dlpack, to_tensor, record_batch):
        assert "from_ragged(x) makes a column of lists" in refusal(TypeError, call, rows)
        assert "from_padded(x) makes a column of lists" in refusal(TypeError, call, padded)
    masked = ragged(pa.array([[1], None]), nulls="mask")
    assert "from_ragged(x) makes a column" in refusal(TypeError, from_dlpack, masked)
    assert pa.array(from_ragged(masked)).to_pylist() == [[1], None]
    assert pa.table({"a": from_ragged(rows)})["a"].to_pylist() == [[1], [2, 3]]
    assert pa.table({"a": from_padded(padded)})["a"].to_pylist() == [[1], [2, 3]]

    lists = from_ragged(*rows)
    assert 'pyarrow.table({"x": x}) makes a table' in refusal(TypeError, record_batch, lists)
    assert "pyarrow.table(x) takes it" in refusal(TypeError, record_batch, pa.table({"a": [1]}))
    assert 'as {"x": x[0]}' in refusal(TypeError, record_batch, [np.ones(2)])


@pytest.mark.parametrize("other", [2, 3])
def test_what_is_said_of_a_list_of_arrays_does_not_depend_on_their_lengths(other):
    words = refusal(TypeError, from_dlpack, [np.arange(2), np.arange(other)])
    assert "numpy.stack(x) is a tensor of rows of one length, and from_ragged(x)" in words
    for words in (
        refusal(TypeError, from_dlpack, [[1, 2], [1] * other]),
        refusal(TypeError, record_batch, {"a": [[1, 2], [1] * other]}),
    ):
        assert "numpy.stack(x) is a tensor of rows of one length, and pyarrow.array(x)" in words
    assert "texts are no tensor: pyarrow.array(x)" in refusal(TypeError, record_batch, {"a": ["x"]})


NUMPYS = {
    "times": (
        np.array(["2020-01-01"], "M8[D]"),
        "pyarrow.array(x) makes Arrow data of datetime64[D]",
    ),
    "spans": (np.array([1], "m8[s]"), 'x.view("int64") has its numbers as a tensor'),
    "texts": (np.array(["a"]), "pyarrow.array(x) makes Arrow data of <U1"),
    "bytes": (np.array([b"a"]), "pyarrow.array(x) makes Arrow data of |S1"),
    "objects": (np.array(["a"], object), "pyarrow.array(x) makes an array of values"),
    "strings": (np.array(["a"], np.dtypes.StringDType()), "pyarrow.array(x.tolist())"),
    "fields": (np.zeros(2, "i4,f4"), "pyarrow.table({name: x[name] for name in x.dtype.names})"),
    "other order": (np.zeros(2, ">i4"), 'x.astype(x.dtype.newbyteorder("="))'),
    "long double": (np.zeros(2, "g"), 'x.astype("float64") is a tensor'),
}


@pytest.mark.parametrize("name", system.marked(NUMPYS))
def test_arrays_of_numpys_own_dtypes_are_refused_with_what_takes_them(name):
    values, words = NUMPYS[name]
    for call in (to_tensor, Array, ragged):
        assert words in refusal(TypeError, call, values)
    for call in (
        from_dlpack,
        asdlpack,
        Tensor.from_dlpack,
        explain,
        lambda x: record_batch({"a": x}),
    ):
        with pytest.raises(BufferError) as refused:
            call(values)
        assert words in refused.value.__notes__[0]


UNITS = ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as", "25s"]
SHAPES = [(2,), (2, 1), ()]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "dtype", [f"{kind}8[{unit}]" for kind in "Mm" for unit in UNITS] + ["M8", "m8", "U1", "S1", "O"]
)
def test_the_way_of_an_array_that_pyarrow_does_not_take_leads_there(dtype, shape):
    values = np.zeros(shape, dtype)
    words = refusal(TypeError, to_tensor, values)
    if dtype == "O" and values.ndim == 2:
        assert words.endswith(": pandas.DataFrame(x) makes a frame of its columns")
        assert to_tensor(pd.DataFrame(values)).tolist() == [[0], [0]]
        return
    (way,) = re.findall(
        r"(pyarrow\.array\(x.*\)) makes (?:Arrow data of|an array of values)", words
    )
    made = eval(way, {"pyarrow": pa, "x": values})
    assert len(made) == values.size
    with pytest.raises(BufferError) as refused:
        from_dlpack(values)
    assert way in refused.value.__notes__[0]


def test_multiples_of_a_unit_keep_their_length():
    values = np.array([2], "m8[25s]")
    (way,) = re.findall(r"(pyarrow\.array\(x.*\)) makes", refusal(TypeError, to_tensor, values))
    assert eval(way, {"pyarrow": pa, "x": values}).cast("int64").to_pylist() == [50]


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("other", [None, "a.parquet", 1, [1, 2]])
def test_of_a_list_with_arrow_data_the_other_item_is_named(other, place):
    table = pa.table({"x": [1.0]})
    several = [table, table]
    several.insert(place, other)
    for call in to_tensor, Array, to_tensor_dict, from_dlpack:
        words = refusal((TypeError, BufferError), call, several)
        named = f"item {place} is {type(other).__name__}, and others are Arrow data"
        assert named in words
        assert "concat_tables" not in words


def test_those_ways_lead_there():
    assert len(pa.array(NUMPYS["times"][0])) == len(pa.array(NUMPYS["texts"][0])) == 1
    fields, swapped = NUMPYS["fields"][0], NUMPYS["other order"][0]
    assert len(record_batch({name: fields[name] for name in fields.dtype.names})) == 2
    assert from_dlpack(swapped.astype(swapped.dtype.newbyteorder("="))).type == "Int32"
    assert from_dlpack(NUMPYS["long double"][0].astype("float64")).type == "Float64"
    assert pa.array(NUMPYS["strings"][0].tolist()).to_pylist() == ["a"]


def test_elements_that_share_a_byte_are_refused_with_their_bytes():
    torch = pytest.importorskip("torch")
    halves = torch.zeros(2, dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
    for call in (from_dlpack, lambda x: record_batch({"a": x})):
        assert "x.view(torch.uint8)" in refusal(UnsupportedError, call, halves)
    assert from_dlpack(halves.view(torch.uint8)).type == "UInt8"
    tensor = asdlpack(halves)
    for call in (tensor.tolist, tensor[0].item):
        words = refusal(UnsupportedError, call)
        assert "torch.from_dlpack(x).view(torch.uint8) has the bytes" in words
    assert torch.from_dlpack(tensor).view(torch.uint8).tolist() == [0, 0]


def test_tensors_without_strides_have_a_way_out():
    torch = pytest.importorskip("torch")
    rows = [torch.ones(2), torch.zeros(3)]
    jagged = torch.nested.nested_tensor(rows, layout=torch.jagged)
    with warnings.catch_warnings(action="ignore"):  # of a prototype, once in a process
        nested = torch.nested.nested_tensor(rows)
        quantized = torch.quantize_per_tensor(torch.ones(2), 0.5, 0, torch.qint8)
    ways = {
        "from_ragged(list(x.detach().unbind()))": jagged,
        "x.to_padded_tensor(0)": nested,
        "x.to_dense()": torch.eye(2).to_sparse(),
        "x.dequantize()": quantized,
        "x.int_repr()": quantized,
    }
    for way, x in ways.items():
        for call in (from_dlpack, asdlpack, lambda x: record_batch({"a": x})):
            with pytest.raises((BufferError, RuntimeError)) as error:
                call(x)
            assert any(way in note for note in error.value.__notes__)
    narrow = torch.nested.narrow(
        torch.arange(12.0, requires_grad=True).reshape(3, 4),
        1,
        torch.tensor([0, 1, 0]),
        torch.tensor([2, 2, 3]),
        layout=torch.jagged,
    )
    for x, expected in (
        (jagged, [[1, 1], [0, 0, 0]]),
        (narrow, [[0, 1], [5, 6], [8, 9, 10]]),  # whose values() has more than the rows
    ):
        made = from_ragged(list(x.detach().unbind()))
        assert pa.array(made).to_pylist() == expected
    assert len(from_dlpack(nested.to_padded_tensor(0))) == 2
    assert len(from_dlpack(ways["x.to_dense()"].to_dense())) == 2
    assert asdlpack(quantized.dequantize()).tolist() == [1, 1]
    assert asdlpack(quantized.int_repr()).tolist() == [2, 2]


@pytest.mark.parametrize("values", [pa.array([7, 8]), pa.array([0.5, 1.5])])
def test_a_dictionary_of_numbers_has_its_values_too(values):
    coded = values.dictionary_encode()
    words = refusal(UnsupportedError, to_tensor, coded)
    assert "pass physical=True for its int32 values" in words
    assert "pyarrow.array(x).dictionary_decode()" in words
    assert to_tensor(pa.array(coded).dictionary_decode()).tolist() == values.to_pylist()
    table = pa.table({"x": coded})
    words = refusal(UnsupportedError, Loader, table, columns=["x"])
    assert "cast this column alone to the type of its values" in words
    assert "decode" not in refusal(UnsupportedError, to_tensor, pa.array(["a"]).dictionary_encode())


def test_a_loader_its_batches_and_a_mix_are_no_data():
    loader = Loader(pa.table({"x": [1]}))
    for call in (to_tensor, Array, ragged, from_dlpack, explain, record_batch):
        assert "a Loader makes batches of tensors: loop over it" in refusal(TypeError, call, loader)
        assert "loop over Loader(x)" in refusal(TypeError, call, Mix([(pa.table({"x": [1]}), 1)]))
    with iter(loader) as batches:
        assert "batches of tensors already: loop over them" in refusal(
            TypeError, to_tensor, batches
        )


def test_names_that_are_one_text_are_a_list_that_was_meant():
    table = pa.table({"ab": [1], "a": [2]})
    for call in (to_tensor, to_tensor_dict, explain):
        assert 'did you mean ["ab"]?' in refusal(TypeError, call, table, columns="ab")
    assert 'did you mean ["ab"]?' in refusal(TypeError, record_batch, np.ones((2, 1)), "ab")


@pytest.mark.parametrize("names", [["a"], ["a", "b", "c"]])
def test_another_number_of_names_than_columns_is_a_wrong_value(names):
    words = refusal(ValueError, record_batch, np.ones((2, 2)), names)
    assert words == f"there are {len(names)} names for 2 columns"


NOTHING = pa.table({"n": pa.nulls(3)})


def test_nulls_without_a_type_are_refused_with_what_gives_them_one():
    assert 'dtype="float32" and nulls="nan"' in refusal(UnsupportedError, to_tensor, NOTHING["n"])
    assert "3 nulls in 3 values" in refusal(UnsupportedError, to_tensor, NOTHING["n"], dtype="int8")
    words = refusal(UnsupportedError, iter_batches, NOTHING, columns=["n"])
    assert 'Cast("float32", nulls="nan") or Categories([...], nulls=-1)' in words
    assert "Dense" in refusal(ValueError, iter_batches, NOTHING, columns={"n": Dense(3)})


TEXTS = [
    pa.array([["a"], ["b", "c"]]),
    pa.array([["a", "b"]], pa.list_(pa.string(), 2)),
    pa.array([[["a"]], [["b"], ["c"]]], pa.list_(pa.list_(pa.string(), 1))),
]


@pytest.mark.parametrize("column", TEXTS)
def test_texts_in_lists_lead_to_what_takes_them(column):
    """Not in a circle: neither to_tensor nor ragged takes these lists."""
    for call in to_tensor, ragged:
        words = refusal(UnsupportedError, call, column)
        assert "flatten the lists first" in words
    words = refusal(UnsupportedError, Loader, pa.table({"x": column}), columns=["x"])
    assert "Categories" not in words
    assert "AsArrow()" in words
    while pa.types.is_nested(column.type):
        column = pyarrow.compute.list_flatten(column)
    assert ragged(column).offsets.size == len(column) + 1


def test_lists_of_lists_and_structs_of_any_length_lead_to_flattening():
    for rows, words in [
        ([[[1], [2, 3]], [[4]]], "are lists themselves: flatten one level first"),
        ([[{"a": 1}], [{"a": 1}, {"a": 2}]], "are structs: flatten one level first"),
    ]:
        for x in pa.array(rows), pd.Series(rows):
            told = refusal(UnsupportedError, to_tensor, x)
            assert words in told
            assert "of a Series, after x = pyarrow.array(x)" in told
        items = pa.array(rows).flatten()
        assert pa.compute.list_flatten(pa.array(pd.Series(rows))) == items
    way = "pyarrow.array(x).cast(pyarrow.list_(pyarrow.list_(type, 2), 3))"
    for kind, row in (pa.int64(), [1, 2]), (pa.float32(), [0.5, 2.5]), (pa.bool_(), [True, False]):
        x = pa.array([[row] * 3], pa.list_(pa.list_(kind)))
        for call in to_tensor, lambda x: list(Loader(pa.table({"x": x}))):
            assert way in refusal(UnsupportedError, call, x)
        for same in x, pa.chunked_array([x]), pd.Series(x.to_pylist()):
            shaped = eval(way, {"pyarrow": pa, "type": kind, "x": same})
            assert to_tensor(shaped).tolist() == [[row] * 3]
    assert "use ragged" in refusal(UnsupportedError, to_tensor, pa.array([[1], [2, 3]]))
    nulls = pa.table({"x": pa.array([[None]], pa.list_(pa.null()))})
    words = refusal(UnsupportedError, Loader, nulls, columns=["x"])
    assert "cast it to lists of the type you mean" in words
    assert "Categories" not in words
    (batch,) = Loader(nulls.cast(pa.schema({"x": pa.list_(pa.int8())})), nulls=0)
    assert batch["x"].values.tolist() == [0]
    prices = pa.table({"x": pa.array([[Decimal("1.5")]])})
    for options in {"columns": {"x": Pad(0)}}, {"columns": ["x"]}:
        words = refusal(UnsupportedError, Loader, prices, **options)
        assert (
            'or Cast("float64") for it alone, or hand it on as Arrow data with AsArrow()' in words
        )
        assert len(list(Loader(prices, dtype="float64", **options))) == 1


def test_what_is_no_dict_of_tensors_says_how_to_make_one():
    for path in "rows.parquet", pathlib.Path("rows"):
        assert "pyarrow.dataset.dataset(x)" in refusal(TypeError, record_batch, path)
    assert "numpy.load(x)" in refusal(TypeError, record_batch, "rows.npy")
    rows = np.zeros(2, dtype=[("a", "i4"), ("b", "f4")])
    assert "{name: x[name] for name in x.dtype.names}" in refusal(TypeError, record_batch, rows)
    assert len(pa.record_batch(record_batch({name: rows[name] for name in rows.dtype.names}))) == 2
    (batch,) = Loader(pa.table({"a": [1.0], "y": [0]}), label="y")
    assert '{**x[0], "y": x[1]}' in refusal(TypeError, record_batch, batch)
    features, label = batch
    assert pa.record_batch(record_batch({**features, "y": label})).to_pydict() == {
        "a": [1],
        "y": [0],
    }
    words = refusal(TypeError, record_batch, np.zeros((1, 2)), "ab")
    assert words == 'names must be a list of names, got "ab": did you mean ["ab"]?'
