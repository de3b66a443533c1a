"""Arguments of `Loader` and `iter_batches` that are refused with what was probably meant."""

from functools import partial, wraps

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet
import pytest
from arrow_dlpack import (
    Cast,
    Categories,
    Dense,
    Loader,
    Pad,
    UnsupportedError,
    iter_batches,
)

TABLE = pa.table({"x": [1.0, 2.0, 3.0], "y": [0, 1, 0], "s": ["a", "b", "c"]})


def test_what_is_no_argument_is_refused_with_what_was_meant():
    for options, words in [
        ({"columns": {"x": "float32"}}, 'did you mean Cast("float32")?'),
        ({"columns": {"x": np.float32}}, 'did you mean Cast("float32")?'),
        ({"columns": {"x": pa.float32()}}, 'did you mean Cast("float32")?'),
        ({"columns": {"x": float}}, 'did you mean Cast("float64")?'),
        ({"columns": {"x": Categories}}, "did you mean Categories(...)?"),
        ({"columns": {"s": ["a", "b"]}}, "did you mean Categories([...])"),
        ({"columns": {"s": "category"}}, "or Categories.scan()?"),
        ({"columns": ["x"], "label": {"y": "int64"}}, 'did you mean Cast("int64")?'),
        ({"columns": "x"}, "did you mean ['x']?"),
        ({"batch_size": 2, "shuffle": True}, "the number of rows of the source shuffles all"),
        ({"batch_size": 2, "prefetch": True}, "how many batches are made ahead"),
        ({"filter": "y == 1"}, "did you mean pyarrow.compute.field('y') == 1?"),
        ({"filter": "y >= 1 and x < 2"}, "filter must be an expression of pyarrow"),
        ({"filter": "y == None"}, "got str: pyarrow.compute.field(name) == value is one, and &"),
        ({"filter": "y == 1;import os"}, "got str: pyarrow.compute.field(name) == value"),
        ({"filter": ("y", "==", 1)}, "pyarrow.parquet.filters_to_expression([x])"),
        ({"filter": [True, False]}, "a mask is of a table, whose own filter"),
        ({"filter": [("y", "==", 1)]}, "pyarrow.parquet.filters_to_expression(x)"),
        ({"filter": [[("y", "==", 1)]]}, "pyarrow.parquet.filters_to_expression(x)"),
        ({"filter": (pc.field("y") == 1,)}, "pass the expression itself, and & puts several"),
        ({"filter": [pc.field("y") == 1] * 2}, "pass the expression itself, and & puts several"),
        ({"filter": [[pc.field("y") == 1]]}, "pass the expression itself, and & puts several"),
        ({"filter": [("x", ">", 1), pc.field("y") == 1]}, "pass the expression itself, and &"),
        ({"filter": [pl.col("y") == 1]}, "of a LazyFrame, call its own filter(...)"),
        ({"filter": TABLE["y"]}, "whose own filter(...) takes it"),
        ({"filter": np.array([True])}, "whose own filter(...) takes it"),
        ({"filter": {"y": 1}}, "pyarrow.compute.field(name) == value"),
        ({"filter": lambda row: row}, "pyarrow.compute.field(name) is a column"),
        ({"transform": "x"}, "transform must be a function of a batch, got 'x'"),
        ({"transform": {}}, "transform must be a function of a batch, got {}"),
        ({"dtype": {"x": "float32"}}, 'did you mean columns={"x": Cast("float32")}?'),
        ({"nulls": {"x": 0}}, 'columns={"x": Cast("float32", nulls=0)}, is of it alone'),
        ({"columns": {"s": Categories.scan}}, "did you mean Categories.scan()?"),
        ({"columns": Cast}, 'a dict says what each becomes, as {"x": Cast("float32")}'),
        ({"columns": Cast("float32")}, 'a dict says what each becomes, as {"x": Cast("float32")}'),
        ({"columns": np.float32}, "columns must be a list of names, got <class"),
    ]:
        for make in (Loader, iter_batches):
            with pytest.raises(TypeError) as refused:
                make(TABLE, **options)
            assert words in str(refused.value), options
    kept = pyarrow.parquet.filters_to_expression([("y", "==", 1)])
    assert len(list(Loader(TABLE, columns=["x"], filter=kept, batch_size=1))) == 1


def no_arguments():
    return TABLE


def one_argument(index):
    return TABLE


def generator():
    yield TABLE


@pytest.mark.parametrize("function", [no_arguments, one_argument, generator, lambda: TABLE])
def test_a_function_that_cannot_be_called_is_refused_when_the_loader_is_made(function):
    with pytest.raises(TypeError, match=r"calls a function with \(index, count\)") as refused:
        Loader(function, columns=["x"])
    assert function.__qualname__ in str(refused.value)
    assert "pass what it returns" in str(refused.value)


def two_arguments(features, label):
    return features, label


@wraps(two_arguments)
def one_pair(batch):
    return two_arguments(*batch)


@wraps(no_arguments)
def any_part(index, count):
    return no_arguments()


@pytest.mark.parametrize("name", ["transform", "framework"])
def test_a_function_of_batches_that_cannot_be_called_is_refused_then_too(name):
    for function in no_arguments, two_arguments, lambda *, batch: batch:
        with pytest.raises(TypeError, match=f"^{name} is called with one ") as refused:
            Loader(TABLE, columns=["x"], label="y", **{name: function})
        assert f"and {function.__qualname__}(" in str(refused.value)
        assert ("a pair of features and label" in str(refused.value)) == (name == "transform")
    for function in dict, len, partial(two_arguments, 0), lambda *any: any, [].append:
        Loader(TABLE, columns=["x"], **{name: function})


def test_of_a_decorated_function_the_decorator_takes_the_arguments():
    loader = Loader(any_part, columns=["x"], label="y", transform=one_pair)
    ((features, label),) = loader
    assert (features["x"].tolist(), label.tolist()) == ([1, 2, 3], [0, 1, 0])


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"x": [1.0]}, "got dict: pyarrow.table(x) makes a table of it"),
        ({"x": np.ones(2)}, "got dict: record_batch(x) makes a table of it"),
        ([{"x": 1}], "got list: pyarrow.table(pyarrow.array(x)) makes a table of it"),
        ({"a": TABLE, "b": TABLE}, "got dict: pass one of these tables, as x['a'], or a Mix"),
        ({"a.parquet": 0.5}, "got dict: Mix(x) reads several sources"),
        ([(TABLE, 0.5)], "got list: Mix(x) reads several sources"),
        ((TABLE, 0.5), "got tuple: Mix(x) reads several sources"),
        (np.ones(2), 'got ndarray: arrow_dlpack.record_batch({"x": x}) makes a table of it'),
    ],
)
def test_what_is_no_source_is_refused_with_one_way_out(data, words):
    for make in (Loader, iter_batches):
        with pytest.raises(TypeError) as refused:
            make(data)
        assert str(refused.value).endswith(words) or words in str(refused.value)
        assert str(refused.value).count("makes a table") <= 1


def test_a_loader_has_no_rows_to_ask_for():
    torch = pytest.importorskip("torch")
    loader = Loader(TABLE, columns=["x"], batch_size=2)
    for ask in (
        lambda: loader[0],
        lambda: next(iter(torch.utils.data.DataLoader(loader))),
        lambda: next(iter(torch.utils.data.DataLoader(loader, shuffle=True))),
    ):
        with pytest.raises(
            TypeError, match=r"loop over it, or use loader\.torch\(num_workers=\.\.\.\)"
        ):
            ask()
    with pytest.raises(TypeError, match=r"loader\.torch\(\)"):
        next(iter(torch.utils.data.DataLoader(Loader(TABLE, columns=["x"]))))


@pytest.mark.parametrize("words", [5, Cast("float32"), pa.int32(), "ab"])
def test_words_are_a_list(words):
    with pytest.raises(TypeError, match="^words must be a list of words, got "):
        Categories(words)


@pytest.mark.parametrize("dtype", [pd.CategoricalDtype(["b", "a"]), pl.Enum(["b", "a"])], ids=repr)
def test_dtypes_of_categories_have_the_words(dtype):
    with pytest.raises(TypeError, match="^words must be a list of words, .*: pass x.categories$"):
        Categories(dtype)
    assert Categories(dtype.categories).words == ("b", "a")


def test_names_of_dtypes_are_judged_without_a_schema():
    meant = '"float33" is not the name of a dtype: did you mean "float32"'
    for make in Cast, lambda dtype: Pad(0, dtype=dtype), lambda dtype: Dense(dtype=dtype):
        with pytest.raises(ValueError, match=meant):
            make("float33")
    for source in iter([TABLE]), lambda index, count: TABLE:
        with pytest.raises(ValueError, match=meant):
            Loader(source, dtype="float33")


def test_what_a_loader_of_all_columns_can_tell_when_it_is_made():
    for options in {}, {"columns": ["x"]}, {"format": "matrix"}:
        with pytest.raises(UnsupportedError, match='column "s": Utf8 has no tensor form'):
            Loader(TABLE, label="s", **options)
    words = 'filter= names column "z", and there is none among'
    with pytest.raises(KeyError, match=words):
        Loader(TABLE, filter=pc.field("z") > 1)
    with pytest.raises(TypeError, match="filter must be true or false of each row, and add_check"):
        Loader(TABLE, filter=pc.field("y") + 1)
    with pytest.raises(KeyError, match=words):
        list(Loader(iter([TABLE]), columns=["x"], filter=pc.field("z") > 1))
    # Of several parts the types of all of them count.
    parts = [pa.table({"x": [1]}), pa.table({"x": [0.75, 0.25]})]
    loader = Loader(parts, columns={"x": Cast("float64")}, filter=pc.field("x") > 0.5)
    assert [x for batch in loader for x in batch["x"].tolist()] == [1.0, 0.75]


@pytest.mark.parametrize("number", [2**64, 10**30])
@pytest.mark.parametrize(
    "options",
    [{"batch_size": 0}, {"batch_size": 1, "shuffle": 0}, {"prefetch": 0}],
    ids=lambda options: list(options)[-1],
)
def test_a_number_that_no_machine_counts_to_is_refused_in_words(number, options):
    name = list(options)[-1]
    for call in (Loader, iter_batches):
        with pytest.raises(ValueError, match=f"{name} must be an integer below {2**64}, got"):
            call(TABLE, columns=["x"], **{**options, name: number})
    assert len(Loader(TABLE, columns=["x"], batch_size=2**64 - 1)) == 1
    # A seed may have any length.
    assert len(list(Loader(TABLE, columns=["x"], batch_size=1, shuffle=3, seed=number))) == 3


@pytest.mark.parametrize(
    ("options", "refusal", "words"),
    [
        ({"nulls": "zero"}, ValueError, "nulls must be"),
        ({"nulls": None}, TypeError, "nulls must be"),
        ({"columns": ["x", "x"]}, KeyError, 'columns= names "x" twice'),
    ],
)
def test_arguments_are_checked_before_any_file_is_opened(tmp_path, options, refusal, words):
    for source in tmp_path, "s3://nowhere/*.parquet", lambda index, count: None:
        with pytest.raises(refusal, match=words):
            Loader(source, **options)
    for wish in (
        Cast,
        lambda dtype, nulls: Dense(3, nulls, dtype),
        lambda _, nulls: Pad(0, nulls=nulls),
    ):
        with pytest.raises(ValueError, match='got "mean"'):
            wish("float32", nulls="mean")


@pytest.mark.parametrize(
    "part",
    [pa.table({"y": [0, 1]}), ds.dataset(pa.table({"y": [0, 1]})), [pa.table({"y": [0, 1]})]],
)
def test_a_filter_of_text_is_refused_of_what_a_function_returns(part):
    with pytest.raises(TypeError, match=r"did you mean pyarrow.compute.field\('y'\) == 1\?"):
        list(Loader(lambda index, count: part, filter="y == 1"))


def test_options_are_said_when_a_loader_is_made_alone():
    """As a cell of a notebook might set them, for nothing."""
    loader = Loader(pa.table({"x": [1.0, 2.0]}), batch_size=1)
    for one in loader, loader.encoder():
        for name, value in {"batch_size": 2, "framework": "torch", "columns": []}.items():
            with pytest.raises(AttributeError, match=f"{name}= is said when .* make another one"):
                setattr(one, name, value)
        one.name = "of a user"
    assert [len(batch["x"]) for batch in loader] == [1, 1]


def test_a_class_below_a_loader_has_attributes_of_its_own():
    class Own(Loader):
        def __init__(self, table, columns):
            self.columns = columns
            super().__init__(table, batch_size=1, columns=columns)
            self.seed = 7

    loader = Own(pa.table({"x": [1.0, 2.0]}), ["x"])
    assert [len(batch["x"]) for batch in loader] == [1, 1]
    assert (loader.columns, loader.seed) == (["x"], 7)
