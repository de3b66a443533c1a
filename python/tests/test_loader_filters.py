"""A filter reads what it names: of parts that differ, of views, and of any kind of source."""

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from arrow_dlpack import Loader, Mix


def rows_of(source, **options):
    """The rows, in the order of "x"."""
    return sorted(
        row for batch in Loader(source, columns=["x"], **options) for row in batch["x"].tolist()
    )


def written(folder, tables):
    folder.mkdir()
    for at, table in enumerate(tables):
        pq.write_table(table, folder / f"{at}.parquet", row_group_size=2)
    return str(folder)


PARTS = {
    "list": lambda folder, tables: tables,
    "files": lambda folder, tables: written(folder / "all", tables),
    "mix": lambda folder, tables: Mix([(one, 1) for one in tables]),
    "mix of files": lambda folder, tables: Mix(
        [(written(folder / "first", tables), 1), (tables[0].slice(0, 0), 1)]
    ),
    "mix of lists": lambda folder, tables: Mix([(tables[:1], 1), (tables[1:], 1)]),
}

BY_NAME = pc.field("m", "a") > 1
AT_PLACE = pc.struct_field(pc.field("m"), [1]) > 1


def structs(start, kind, rows):
    return pa.table({"x": range(start, start + len(rows)), "m": pa.array(rows, kind)})


FIRST = structs(
    0,
    pa.struct({"b": pa.bool_(), "a": pa.int64(), "in": pa.struct({"a": pa.int8()})}),
    [{"b": True, "a": 1, "in": {"a": 1}}, None, {"b": None, "a": 5, "in": {"a": 9}}],
)
TEXTS = structs(
    3,
    pa.struct({"in": pa.struct({"a": pa.int64(), "b": pa.int8()}), "a": pa.int8(), "b": pa.utf8()}),
    [{"in": {"a": 9}, "a": 2, "b": "t"}, None, {"in": {"a": 0}, "a": 0, "b": None}],
)
LACKS = structs(
    6, pa.struct({"a": pa.int64(), "in": pa.struct({"a": pa.int64()})}), [{"a": 7}, None]
)


@pytest.mark.parametrize("form", PARTS)
@pytest.mark.parametrize(
    ("where", "later", "kept"),
    [
        (BY_NAME, [TEXTS, LACKS], [2, 3, 6]),
        (AT_PLACE, [TEXTS], [2, 3]),
        (pc.field("m", "in", "a") > 1, [TEXTS, LACKS], [2, 3]),
        (pc.field("m").is_null(), [LACKS, TEXTS], [1, 4, 7]),
        (pc.field("m", "b").is_null(), [TEXTS], [1, 2, 4, 5]),
    ],
)
def test_a_filter_of_a_field_reads_no_other_field(form, where, later, kept, tmp_path):
    source = PARTS[form](tmp_path, [FIRST, *later])
    assert rows_of(source, filter=where) == kept
    assert rows_of(source, filter=where, shuffle=4, seed=1, batch_size=2) == kept
    loader = Loader(source, columns=["x"], filter=where, batch_size=1)
    assert len(loader) == len(kept)
    first = next(iter(loader))
    assert first["x"].tolist()[0] in kept
    again = Loader(source, columns=["x"], filter=where, batch_size=1)
    again.load_state_dict(loader.state_dict())
    assert len(list(again)) == len(kept) - 1


@pytest.mark.parametrize("form", PARTS)
@pytest.mark.parametrize("later", [TEXTS, LACKS])
def test_a_filter_of_a_field_without_a_type_of_all_parts_is_refused_by_name(form, later, tmp_path):
    source = PARTS[form](tmp_path, [FIRST, later])
    with pytest.raises(TypeError, match='column "m" is struct<b.* and struct<'):
        rows_of(source, filter=pc.field("m", "b") == pc.scalar(True))


@pytest.mark.parametrize("form", ["list", "files"])
def test_a_filter_sees_floats_of_a_field_whose_wish_says_so(form, tmp_path):
    floats = structs(3, pa.struct({"a": pa.float64()}), [{"a": 2.5}, {"a": 0.5}])
    source = PARTS[form](tmp_path, [FIRST, floats])
    loader = Loader(source, columns=["m.a"], dtype="float32", filter=BY_NAME, nulls="nan")
    assert [batch["m.a"].tolist() for batch in loader] == [[5.0], [2.5]]
