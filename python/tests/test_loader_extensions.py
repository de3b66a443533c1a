"""Extension types of a source's parts: which are one type, and what tells two of them apart."""

import itertools
import re
from functools import partial

import numpy as np
import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from arrow_dlpack import AsArrow, Cast, Categories, Loader, Mix


def write(folder, tables):
    for at, table in enumerate(tables):
        pq.write_table(table, folder / f"{at}.parquet")
    return str(folder)


KINDS = {
    "list": lambda folder, tables: tables,
    "files": write,
    "mix": lambda folder, tables: Mix([(table, 1) for table in tables]),
    "stream": lambda folder, tables: iter(tables),
}


def test_extension_types_of_one_name_are_told_apart_by_their_storage():
    class Named(pa.ExtensionType):
        def __init__(self, storage):
            super().__init__(storage, "arrow_dlpack.tests.named")

        def __arrow_ext_serialize__(self):
            return b""

        @classmethod
        def __arrow_ext_deserialize__(cls, storage, serialized):
            return cls(storage)

    parts = [
        pa.table({"x": Named(kind).wrap_array(pa.array([1], kind))})
        for kind in (pa.int8(), pa.int16())
    ]
    told = r"named> of int8 in .* and .*named> of int16 in"
    with pytest.raises(TypeError, match=told):
        list(Loader(parts, columns={"x": AsArrow()}))


@pytest.mark.parametrize("kind", ["list", "files", "mix"])
@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda of: pandas.interval_range(0, 2, closed=of), ["left", "right"]),
        (lambda of: pandas.period_range("2020", periods=2, freq=of), ["D", "M"]),
    ],
)
def test_extension_types_of_one_name_are_told_apart_by_their_metadata(tmp_path, make, told, kind):
    tables = [pa.table({"x": pa.array(make(of)), "y": [0, 1]}) for of in told]
    source, wish = KINDS[kind](tmp_path, tables), {"x": AsArrow()}
    each = "a Loader for each of them reads both, or columns= leaves it out"
    match = 'column "x" is {} with .*"{}".* in .* and {} with .*"{}".* in .*: '.format(
        *(
            part
            for of in told
            for part in (f"extension<{tables[0]['x'].type.extension_name}>.*", of)
        )
    )
    for columns in wish, None:
        with pytest.raises(TypeError, match=f"{match}{each}$"):
            list(Loader(source, columns=columns))
    parts = [tmp_path / f"{at}.parquet" for at in range(2)] if kind == "files" else tables
    for part, table in zip(parts, tables, strict=True):
        (batch,) = Loader(part, columns=wish, batch_size=9)
        assert pa.array(batch["x"]).equals(table["x"].chunk(0))
    assert sum(len(batch["y"]) for batch in Loader(source, columns=["y"])) == 4


PERIODS = [pandas.period_range("1970-01-01", periods=3, freq=of) for of in "MD"]


@pytest.mark.parametrize("kind", ["list", "files", "mix"])
@pytest.mark.parametrize("wish", [Categories.scan(), Categories([0, 1, 2])], ids=["scan", "words"])
def test_one_number_of_two_extension_types_is_no_word(tmp_path, kind, wish):
    """The first month of pandas's periods and the first day are both stored as 0."""
    source = KINDS[kind](tmp_path, [pa.table({"x": pa.array(own)}) for own in PERIODS])
    each = "a Loader for each of them reads both, or columns= leaves it out"
    with pytest.raises(TypeError, match=f'column "x" is .*"[MD]".* in .*"[MD]".* in .*: {each}'):
        list(Loader(source, columns={"x": wish}))
    frames = [pandas.DataFrame({"x": own}) for own in PERIODS]
    encoder = Loader(frames[0], columns={"x": wish}).encoder()
    assert np.asarray(encoder(frames[0])["x"]).tolist() == [0, 1, 2]
    with pytest.raises(TypeError, match='"D".*"M".* in training'):
        encoder(frames[1])
    with pytest.raises(TypeError, match='column "x" is .*"M".* in one part and .*"D".*: '):
        list(Loader(frames[1], encoder=encoder))


def test_booleans_beside_an_extension_type_of_numbers_are_not_scanned():
    parts = [pa.table({"x": [True]}), pa.table({"x": pa.array(PERIODS[0])})]
    with pytest.raises(TypeError, match="to Python True is 1: a Loader for each of them"):
        Loader(parts, columns={"x": Categories.scan()}).encoder()


def in_structs(table):
    return pa.table({"x": pa.StructArray.from_arrays([table["x"].chunk(0)], ["p"])})


def in_maps(table):
    column = table["x"].chunk(0)
    offsets = pa.array(range(len(column) + 1), "int32")
    keys = pa.array(["k"] * len(column))
    return pa.table({"x": pa.MapArray.from_arrays(offsets, keys, column)})


def categorical(table):
    """As pandas has it, whose frames are Arrow data of their own making."""
    return table.to_pandas().astype("category")


@pytest.mark.parametrize("make", [lambda table: table, in_structs, in_maps, categorical])
def test_a_state_is_of_one_extension_type(make):
    tables = [make(pa.table({"x": pa.array(own)})) for own in PERIODS]
    options = {"columns": {"x": AsArrow()}, "batch_size": 2}
    saved = Loader(tables[0], **options)
    next(iter(saved))
    for table, is_same in (tables[0], True), (tables[1], False):
        loader = Loader(table, **options)
        loader.load_state_dict(saved.state_dict())
        if is_same:
            assert [len(batch["x"]) for batch in loader] == [1]
            continue
        with pytest.raises(ValueError, match='column "x" was .*"M".*, and is .*"D"'):
            list(loader)


def of_type(values, name="tests.own", text="m"):
    metadata = {"ARROW:extension:name": name, "ARROW:extension:metadata": text}
    return pa.table([values], pa.schema([pa.field("x", values.type, metadata=metadata)]))


def unregistered(table, name="tests.period"):
    """What a process reads that has not registered the extension type of the column."""
    column = table["x"].chunk(0)
    return of_type(column.storage, name, column.type.__arrow_ext_serialize__().decode())


def in_lists(table):
    """The column in lists of one value."""
    field, column = table.schema.field("x"), table["x"].chunk(0)
    offsets = pa.array(range(len(column) + 1), "int32")
    made = pa.ListArray.from_arrays(offsets, column, pa.list_(field.with_name("item")))
    return pa.table({"x": made})


def in_a_dictionary(table, codes="int8"):
    column = table["x"].chunk(0)
    codes = pa.array(range(len(column)), codes)
    return pa.table({"x": pa.DictionaryArray.from_arrays(codes, column)})


WORDS = Categories([0, 1, 2])
MAKES = {
    "unregistered": (unregistered, [WORDS, Categories.scan(), AsArrow()]),
    "unregistered in lists": (lambda table: in_lists(unregistered(table)), [AsArrow()]),
    "dictionary": (in_a_dictionary, [WORDS, Categories.scan(), AsArrow()]),
}


@pytest.mark.parametrize(
    ("kind", "of", "wish"),
    # pyarrow writes no dictionaries of extension types, and no stream is read for its words.
    [
        (kind, of, wish)
        for kind in KINDS
        for of, (_, wishes) in MAKES.items()
        for wish in wishes
        if (kind, of) != ("files", "dictionary") and (kind != "stream" or wish != Categories.scan())
    ],
    ids=str,
)
def test_extension_types_are_told_apart_wherever_they_are(tmp_path, kind, of, wish):
    """pyarrow calls fields equal that their metadata tells apart, and dictionaries of periods."""
    make, _ = MAKES[of]
    months, days = (make(pa.table({"x": pa.array(own)})) for own in PERIODS)
    for tables in [months, days], [days, months]:
        source = KINDS[kind](tmp_path, tables)
        with pytest.raises(TypeError, match='column "x" is .*"[MD]".* in .* and .*"[MD]".* in .*'):
            list(Loader(source, columns={"x": wish}))
    same = KINDS[kind](tmp_path, [months, months])
    assert sum(len(batch["x"]) for batch in Loader(same, columns={"x": wish})) == 6


def test_unregistered_types_are_not_their_numbers():
    period = unregistered(pa.table({"x": pa.array(PERIODS[0])}))
    plain = pa.table({"x": [0, 1, 2]})
    for tables in [period, plain], [plain, period]:
        with pytest.raises(TypeError, match=r"extension<tests\.period> of int64 with .*\"M\".* in"):
            list(Loader(tables, physical=True))


def test_metadata_of_one_meaning_in_other_texts_is_one_type():
    table = partial(of_type, pa.array([1]), "tests.own")
    tables = [table('{"a":1, "b":2}'), table('{"b": 2, "a": 1}')]
    (batch,) = Loader(tables, physical=True, batch_size=2)
    assert batch["x"].tolist() == [1, 1]
    saved = Loader([tables[0]] * 2, physical=True, batch_size=1)
    next(iter(saved))
    for own, rows in (tables[1], 1), (table('{"a": 1}'), None):
        resumed = Loader([own] * 2, physical=True, batch_size=1)
        resumed.load_state_dict(saved.state_dict())
        if rows is None:
            with pytest.raises(ValueError, match='column "x" was .*"b": 2.*, and is '):
                list(resumed)
        else:
            assert len(list(resumed)) == rows


@pytest.mark.parametrize("nested", [False, True])
def test_a_state_is_one_where_the_type_is_registered_and_where_not(nested):
    """pandas registers periods when the first one is made."""
    registered = pa.table({"x": pa.array(PERIODS[0])})
    tables = [registered, unregistered(registered, "pandas.period")]
    if nested:
        tables = list(map(in_lists, tables))
    options = {"columns": {"x": AsArrow()}, "batch_size": 2}
    for one, other in itertools.product(tables, repeat=2):
        saved, resumed = Loader(one, **options), Loader(other, **options)
        next(iter(saved))
        resumed.load_state_dict(saved.state_dict())
        assert [len(batch["x"]) for batch in resumed] == [1]


def test_a_loop_of_an_encoder_tells_unregistered_types_apart():
    months, days = (unregistered(pa.table({"x": pa.array(own)})) for own in PERIODS)
    for wish, first in (WORDS, "one part"), (AsArrow(), "the encoder"):
        encoder = Loader(months, columns={"x": wish}).encoder()
        assert len(next(iter(Loader(months, encoder=encoder)))["x"]) == 3
        with pytest.raises(TypeError, match=f'"x" is .*"M".* in {first} and .*"D".* in .*'):
            list(Loader(days, encoder=encoder))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("make", [lambda table: table, in_lists], ids=["column", "in lists"])
def test_nulls_beside_an_unregistered_type_are_of_it(tmp_path, kind, make):
    """Where the first part has nulls alone, its metadata does not say what the numbers are."""
    table = pa.table({"x": pa.array(PERIODS[0])})
    period, nulls = make(unregistered(table)), make(pa.table({"x": pa.nulls(3)}))
    narrow = make(of_type(pa.array([1], "int32"), "tests.period", '{"freq": "M"}'))
    # A stream has one width.
    more = [] if kind == "stream" else [[nulls, narrow, period], [period, nulls, narrow]]
    for tables in [nulls, period], [period, nulls], *more:
        source = KINDS[kind](tmp_path, tables)
        batches = list(Loader(source, columns={"x": AsArrow()}, batch_size=3))
        assert sum(len(batch["x"]) for batch in batches) == sum(map(len, tables))
        for batch in batches:
            found = pa.field(batch["x"])
            found = found.type.value_field if pa.types.is_list(found.type) else found
            assert found.metadata[b"ARROW:extension:name"] == b"tests.period"


def opaque(name):
    return pa.ExtensionArray.from_storage(pa.opaque(pa.int64(), name, "v"), pa.array([0, 1]))


def tensors(*shape):
    return pa.FixedShapeTensorArray.from_numpy_ndarray(np.arange(12).reshape(shape))


@pytest.mark.parametrize("kind", ["list", "mix", "stream"])
@pytest.mark.parametrize(
    "pair",
    [
        [pa.table({"x": own}) for own in (opaque("a"), opaque("b"))],
        [pa.table({"x": own}) for own in (tensors(2, 2, 3), tensors(2, 3, 2))],
    ],
    ids=["opaque", "tensors"],
)
@pytest.mark.parametrize("make", [lambda table: table, in_a_dictionary, in_lists])
def test_dictionaries_of_types_of_arrow_are_told_apart(tmp_path, kind, pair, make):
    source, wish = KINDS[kind](tmp_path, list(map(make, pair))), {"x": AsArrow()}
    told = [re.escape(str(table["x"].type)) for table in pair]
    apart = 'leave "x" out' if kind == "stream" else "a Loader for each of them"
    with pytest.raises(
        TypeError, match=f'"x" is .*{told[0]}.* in .*{told[1]}.* in .*: '
    ) as refused:
        list(Loader(source, columns=wish))
    assert apart in str(refused.value)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("make", [in_lists, in_structs, in_maps])
def test_extension_types_within_others_are_told_by_their_metadata(tmp_path, kind, make):
    months, days = (make(pa.table({"x": pa.array(own)})) for own in PERIODS)
    source = KINDS[kind](tmp_path, [months, days])
    told = r'pandas.period> of int64 with {"freq": "%s"}.* in .*'
    with pytest.raises(TypeError, match=told % "M" + told % "D") as refused:
        list(Loader(source, columns={"x": AsArrow()}))
    # pyarrow casts no extension type to another one.
    assert "cast" not in str(refused.value)


NESTED = [lambda table: table, in_lists, in_structs]


@pytest.mark.parametrize("kind", ["list", "mix", "stream"])
@pytest.mark.parametrize("codes", list(itertools.permutations(["int8", "int16", "uint8"], 2)))
@pytest.mark.parametrize("nesting", list(itertools.product(NESTED, repeat=2)))
@pytest.mark.parametrize("values", [pandas.period_range("1970", periods=9), opaque("a")], ids=type)
def test_codes_of_an_extension_type_are_read_as_wide_as_they_are(
    tmp_path, kind, codes, nesting, values
):
    """To pyarrow dictionaries of extension types are one type, of codes of any width."""
    make, words = nesting
    table = words(pa.table({"x": pa.array(values)}))
    tables = [make(in_a_dictionary(table, one)) for one in codes]
    source = KINDS[kind](tmp_path, tables)
    made = [pa.array(batch["x"]) for batch in Loader(source, columns={"x": AsArrow()})]

    def stored(value):
        while isinstance(value, (dict, list)):
            (value,) = value.values() if isinstance(value, dict) else value
        return getattr(value, "ordinal", value)

    found = [stored(row) for batch in made for row in batch.to_pylist()]
    expected = [stored(row) for own in tables for row in own["x"].to_pylist()]
    if kind == "mix":  # which takes rows by turns
        found, expected = sorted(found), sorted(expected)
    assert found == expected


def test_states_and_encoders_tell_extension_types_within_dictionaries_apart():
    months, days = (in_structs(pa.table({"x": pa.array(own)})) for own in PERIODS)
    options = {"columns": {"x": AsArrow()}, "batch_size": 2}
    for make in (in_a_dictionary, lambda table: in_structs(in_a_dictionary(table))):
        saved, resumed = (Loader(make(own), **options) for own in (months, days))
        next(iter(saved))
        resumed.load_state_dict(saved.state_dict())
        with pytest.raises(ValueError, match='column "x" was .*"M".*, and is .*"D"'):
            list(resumed)
        with pytest.raises(TypeError, match=r'"x" is .*not told .*: (frame|columns=)'):
            saved.encoder()


@pytest.mark.parametrize("kind", ["list", "mix", "stream"])
@pytest.mark.parametrize("make", NESTED)
def test_runs_of_one_extension_type_of_several_widths_are_told_apart(tmp_path, kind, make):
    """To pyarrow runs of extension types are one type, of values of any width."""

    def table(width):
        column = pa.array([1, 2, 3], width)
        own = pa.ExtensionArray.from_storage(pa.opaque(width, "a", "b"), column)
        return make(pa.table({"x": pa.RunEndEncodedArray.from_arrays(pa.array([2, 4, 6]), own)}))

    source = KINDS[kind](tmp_path, [table(pa.int64()), table(pa.int8())])
    with pytest.raises(TypeError, match='column "x" is .*int64.* in .* and .*int8.* in '):
        list(Loader(source, columns={"x": AsArrow()}))
    source = KINDS[kind](tmp_path, [table(pa.int8())] * 2)
    made = [pa.array(batch["x"]) for batch in Loader(source, columns={"x": AsArrow()})]
    assert sum(map(len, made)) == 2 * len(table(pa.int8()))


def test_an_extension_type_beside_its_runs_is_named_as_it_is_encoded():
    months = pa.array(PERIODS[0])
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([1, 2, 3]), months)
    with pytest.raises(TypeError, match='"x" is run_end.* in part 0 and extension') as refused:
        list(Loader([pa.table({"x": one}) for one in (runs, months)], columns={"x": AsArrow()}))
    assert "cast" not in str(refused.value)


@pytest.mark.parametrize("wish", [Categories.scan(), AsArrow()], ids=type)
def test_an_encoder_refuses_what_it_does_not_tell_from_others(wish):
    frame = pandas.DataFrame({"x": pandas.Categorical(PERIODS[0])})
    with pytest.raises(TypeError, match='column "x" is dictionary.*period') as refused:
        Loader(frame, columns={"x": wish}).encoder()
    ways = re.findall(r"(?:frame|pyarrow)\.\S*\(.*?\)(?= has|$)", str(refused.value))
    assert len(ways) == 2
    more = pandas.DataFrame({"x": pandas.Categorical(PERIODS[0][:2])})
    for way in ways:
        table = pa.concat_tables([pa.table(frame), pa.table(more)])
        made = eval(way, {"frame": frame, "table": table, "pyarrow": pa})
        source = made if isinstance(made, pandas.DataFrame) else pa.table({"x": made})
        encoder = Loader(source, columns={"x": wish}).encoder()
        assert len(encoder(source)["x"]) == len(source)
        with pytest.raises(TypeError, match='"freq": "D".*"freq": "M"'):
            encoder(pandas.DataFrame({"x": PERIODS[1]}))


def test_name_and_metadata_are_compared_each():
    values = pa.array([1])
    tables = [of_type(values, "a", "b c"), of_type(values, "a b", "c")]
    with pytest.raises(TypeError, match=r"extension<a> of int64 with b c .*extension<a b> of"):
        list(Loader(tables, physical=True))
    long = [of_type(values, text=f'{{"crs": "{"x" * 4000}{last}"}}') for last in "yz"]
    with pytest.raises(TypeError, match='"x" is list<item: extension<tests.own> of') as refused:
        list(Loader(list(map(in_lists, long)), columns={"x": AsArrow()}))
    assert len(str(refused.value)) < 600


def test_one_unregistered_type_of_several_widths_is_one():
    narrow, wide = of_type(pa.array([1], "int32")), of_type(pa.array([2]))
    for wish, expected in (Cast("float32"), [1, 2]), (Categories([1, 2]), [0, 1]):
        (batch,) = Loader([narrow, wide], columns={"x": wish}, physical=True, batch_size=2)
        assert np.asarray(batch["x"]).tolist() == expected
    floats = of_type(pa.array([0.5], "float32"))
    (batch,) = Loader([wide, floats], dtype="float32", physical=True, batch_size=2)
    assert np.asarray(batch["x"]).tolist() == [2, 0.5]
    other = of_type(pa.array([1], "int32"), text="n")
    with pytest.raises(TypeError, match="own> of int32 with n in .*own> of int64 with m in"):
        list(Loader([other, wide], dtype="float32", physical=True))


def test_a_loop_of_an_encoder_takes_the_storage_as_the_encoder_does():
    plain = pa.table({"x": [1, 2]})
    encoder = Loader(of_type(pa.array([1, 2])), physical=True).encoder()
    (batch,) = Loader(plain, encoder=encoder)
    assert np.asarray(batch["x"]).tolist() == np.asarray(encoder(plain)["x"]).tolist() == [1, 2]
    lists, wish = in_lists(of_type(pa.array([1, 2]))), {"x": AsArrow()}
    encoder = Loader(lists, columns=wish).encoder()
    plain = pa.table({"x": [[3], [4]]})
    (batch,) = Loader(plain, encoder=encoder)
    for made in batch["x"], encoder(plain)["x"]:
        assert pa.array(made).to_pylist() == [[3], [4]]
