"""Files of Arrow IPC in each format, folders of Hugging Face, and files that are not read."""

import subprocess
import sys

import fsspec
import numpy as np
import pandas
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.feather
import pyarrow.parquet
import pytest
from arrow_dlpack import AsArrow, Cast, Categories, Loader, Mix, iter_batches

pytestmark = pytest.mark.filterwarnings("ignore:.*Feather.*")

TABLE = pa.table({"x": range(10), "y": [str(at % 3) for at in range(10)]})


def written(path, table=TABLE, form="stream", rows=4):
    path.parent.mkdir(exist_ok=True, parents=True)
    if form == "feather1":
        pyarrow.feather.write_feather(table, path, version=1)
        return path
    opened = {"stream": pa.ipc.new_stream, "file": pa.ipc.new_file}[form]
    with opened(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=rows)
    return path


def values(loader):
    return np.concatenate([batch["x"] for batch in loader]).tolist()


@pytest.mark.parametrize("form", ["stream", "file", "feather1"])
@pytest.mark.parametrize("end", [".arrow", ".arrows", ".feather", ".ipc", ".ARROW", ".bin", ""])
def test_every_format_of_arrow_ipc_is_read_whatever_its_name(tmp_path, form, end):
    path = written(tmp_path / f"part-0{end}", form=form)
    loader = Loader(path, columns=["x"], batch_size=4, framework="numpy")
    assert [values(loader), values(loader), len(loader)] == [list(range(10))] * 2 + [3]
    kept = Loader(path, columns=["x"], filter=pc.field("y") == "1", batch_size=2, framework="numpy")
    assert (values(kept), len(kept)) == ([1, 4, 7], 2)
    shuffled = Loader(path, columns=["x"], batch_size=3, shuffle=10, seed=0, framework="numpy")
    assert sorted(values(shuffled)) == list(range(10))


@pytest.mark.parametrize("forms", [["stream", "file"], ["file", "stream"], ["stream", "stream"]])
def test_several_files_may_be_of_any_of_them_and_have_one_schema(tmp_path, forms):
    wide = TABLE.set_column(0, "x", TABLE["x"].cast(pa.int32()))
    for at, (form, table) in enumerate(zip(forms, [TABLE, wide], strict=True)):
        written(tmp_path / f"fold={at}" / "a.arrow", table, form)
    loader = Loader(
        tmp_path, columns={"x": None, "fold": None, "y": Categories.scan()}, framework="numpy"
    )
    assert values(loader) == [*range(10), *range(10)]
    assert loader.categories == {"y": ("0", "1", "2")}
    assert np.concatenate([one["fold"] for one in loader]).tolist() == [0] * 10 + [1] * 10
    assert {one["x"].dtype for one in loader} == {np.dtype("int64")}
    texts = TABLE.set_column(0, "x", TABLE["x"].cast(pa.string()))
    written(tmp_path / "fold=2" / "a.arrow", texts, forms[1])
    with pytest.raises(TypeError, match=r'column "x" is .*int64 in .*fold=0.* and .*fold=2'):
        list(Loader(tmp_path, columns=["x"]))


def test_streams_resume_are_divided_among_ranks_and_mixed(tmp_path):
    path = written(tmp_path / "a.arrows")
    loader = Loader(path, columns=["x"], batch_size=3, framework="numpy")
    next(iter(loader))
    other = Loader(path, columns=["x"], batch_size=3, framework="numpy")
    other.load_state_dict(loader.state_dict())
    assert values(other) == list(range(3, 10))
    parts = [
        values(Loader(path, columns=["x"], batch_size=5, rank=at, world_size=2, framework="numpy"))
        for at in range(2)
    ]
    assert parts == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
    mix = Mix([(path, 0.5), (TABLE, 0.5)])
    assert sorted(values(Loader(mix, columns=["x"], framework="numpy"))) == sorted([*range(10)] * 2)


def test_a_state_of_another_stream_is_refused(tmp_path):
    loader = Loader(written(tmp_path / "a.arrows"), columns=["x"], batch_size=3)
    next(iter(loader))
    other = Loader(written(tmp_path / "b.arrows", TABLE.slice(1)), columns=["x"], batch_size=3)
    other.load_state_dict(loader.state_dict())
    with pytest.raises(ValueError, match="the state is of other data"):
        iter(other)


def test_a_stream_that_was_replaced_is_read_anew(tmp_path):
    path = written(tmp_path / "a.arrows")
    loader = Loader(path, columns=["x"], batch_size=5, framework="numpy")
    assert (values(loader), len(loader)) == (list(range(10)), 2)
    written(path, TABLE.slice(0, 3), "file")
    assert values(loader) == [0, 1, 2]
    assert len(loader) == 1


@pytest.mark.parametrize("is_remote", [False, True])
@pytest.mark.parametrize("prefetch", [0, 2])
@pytest.mark.parametrize(
    "other", [{"x": [0.5]}, {"z": [1]}, {"x": ["a"]}, {"x": [1], "z": [2]}], ids=str
)
def test_a_stream_that_is_replaced_in_an_epoch_is_named(tmp_path, other, prefetch, is_remote):
    memory = fsspec.filesystem("memory")

    def put(name, table):
        path = written(tmp_path / name, table)
        memory.pipe(f"/replaced/{name}", path.read_bytes())
        return f"memory://replaced/{name}" if is_remote else path

    own = TABLE.select(["x"])
    paths = [put(f"{at}.arrows", own) for at in range(40)]
    loader = Loader(paths, batch_size=2, prefetch=prefetch)
    epoch = iter(loader)
    next(epoch)
    put("39.arrows", pa.table(other))
    with pytest.raises(OSError, match=r"39\.arrows was replaced .*: the next one reads it anew"):
        list(epoch)
    put("39.arrows", own.slice(8))
    assert len(list(loader)) == 39 * 5 + 1
    put("39.arrows", own.slice(5))  # a file of one type may have other rows
    assert len(list(loader)) == 39 * 5 + 3


def test_a_state_has_the_type_that_a_filter_sees_in_all_streams(tmp_path):
    parts = pa.table({"c": [True]}), pa.table({"c": [2.5, 1.0]})
    files = [written(tmp_path / f"{at}.arrows", one) for at, one in enumerate(parts)]
    columns = {"c": Cast("float32")}
    loader = Loader(files, columns=columns, filter=pc.field("c") == 1.0, batch_size=1)
    epoch = iter(loader)
    next(epoch)
    state, rest = loader.state_dict(), [batch["c"].tolist() for batch in epoch]
    resumed = Loader(files, columns=columns, filter=pc.field("c") == 1.0, batch_size=1)
    resumed.load_state_dict(state)
    assert [batch["c"].tolist() for batch in resumed] == rest == [[1.0]]


@pytest.mark.parametrize("form", ["stream", "file"])
def test_words_are_those_of_files_that_replaced_others_before_the_epoch(tmp_path, form):
    path = tmp_path / "words.arrow"
    written(path, pa.table({"t": ["a", "b"]}), form)
    loader = Loader(str(path), batch_size=4, columns={"t": Categories.scan()})
    assert len(loader) == 1
    written(path, pa.table({"t": ["c", "d", "c", "d", "c"]}), form)
    assert [batch["t"].tolist() for batch in loader] == [[0, 1, 0, 1], [0]]
    assert loader.categories == {"t": ("c", "d")}


def test_a_stream_that_is_broken_is_named(tmp_path):
    path = written(tmp_path / "a.arrow")
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises((OSError, ValueError), match=r"a\.arrow"):
        list(iter_batches(path, columns=["x"]))


def test_folders_of_hugging_face_are_their_rows_in_order(tmp_path):
    datasets = pytest.importorskip("datasets")
    rows = datasets.Dataset(TABLE)
    rows.save_to_disk(tmp_path / "one", num_shards=3)
    loader = Loader(tmp_path / "one", columns=["x"], batch_size=4, framework="numpy")
    assert (values(loader), len(loader)) == (list(range(10)), 3)
    datasets.DatasetDict(train=rows, test=rows.select([1])).save_to_disk(tmp_path / "two")
    with pytest.raises(TypeError, match=r"several sources \(train, test\): pass .*two/train"):
        list(iter_batches(tmp_path / "two", columns=["x"]))
    assert values(Loader(tmp_path / "two" / "test", columns=["x"], framework="numpy")) == [1]
    both = Loader([tmp_path / "two" / "test", tmp_path / "one"], columns=["x"], framework="numpy")
    assert values(both) == [1, *range(10)]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("a.json", 'dataset(path, format="json")'),
        ("a.jsonl", 'dataset(path, format="json")'),
        ("a.orc", 'dataset(path, format="orc")'),
        ("a.tsv", "CsvFileFormat"),
        ("a.npy", "dataset of pyarrow"),
        ("a", "dataset of pyarrow"),
    ],
)
def test_a_file_of_another_format_names_those_that_are_read(tmp_path, name, words):
    (tmp_path / name).write_text("x\n1\n")
    for source in (tmp_path / name, [tmp_path / name], str(tmp_path / name[0]) + "*"):
        with pytest.raises(ValueError, match=r"Parquet \(\.parquet\), Arrow IPC") as refused:
            list(iter_batches(source, columns=["x"]))
        assert ".arrow, .arrows, .feather, .ipc) and CSV (.csv, .csv.gz)" in str(refused.value)
        assert name in str(refused.value)
        assert words in str(refused.value)


def test_so_does_one_that_lies_beside_files_that_are_read(tmp_path):
    pa.parquet.write_table(TABLE, tmp_path / "a.parquet")
    (tmp_path / "README.md").write_text("rows")
    with pytest.raises(ValueError, match=r"README\.md is none of the files that a Loader reads"):
        list(iter_batches(tmp_path, columns=["x"]))


@pytest.mark.parametrize("end", [".pq", ".parq", "", ".0"])
def test_what_begins_as_parquet_is_parquet_whatever_its_name(tmp_path, end):
    pa.parquet.write_table(TABLE, tmp_path / f"a{end}")
    loader = Loader(tmp_path / f"a{end}", columns=["x"], framework="numpy")
    assert values(loader) == list(range(10))


@pytest.mark.parametrize("source", ["folder", "union", "schema", "fragments"])
def test_arrow_files_may_be_left_early(tmp_path, source):
    """pyarrow 26 ends the process if several threads read some of their columns."""
    table = pa.table({"x": np.arange(200_000), "y": np.ones(200_000)})
    for part in "ab":
        written(tmp_path / f"{part}.arrow", table, "file", 10_000)
    of = "ds.dataset({}, format='ipc')".format
    made = {
        "folder": "folder",
        "union": f"ds.dataset([{of('path')} for path in pathlib.Path(folder).iterdir()])",
        "schema": f"{of('folder')}.replace_schema(pa.schema([('x', 'int64')]))",
        "fragments": f"list({of('folder')}.get_fragments())",
    }
    program = f"""
import pathlib, pyarrow as pa, pyarrow.dataset as ds
from arrow_dlpack import Loader
folder = {str(tmp_path)!r}
for order in [{{}}, {{"shuffle": 100}}] * 100:
    assert next(iter(Loader({made[source]}, batch_size=32, columns=["x"], **order)))
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("rest", [None, b"x", b"\n"])
def test_what_follows_the_end_of_a_stream_is_not_left_out(tmp_path, rest):
    """pyarrow reads the first stream alone."""
    path = written(tmp_path / "a.arrows")
    whole = path.read_bytes()
    path.write_bytes(whole + (whole if rest is None else rest))
    fsspec.filesystem("memory").pipe("/behind/a.arrows", path.read_bytes())
    loader = Loader(path, columns=["x"], batch_size=4)
    for read in (
        lambda: list(loader),
        lambda: len(loader),
        lambda: list(Loader([str(path), str(path)], columns=["x"], shuffle=4, batch_size=2)),
        lambda: list(Loader("memory://behind/a.arrows", columns=["x"])),
    ):
        with pytest.raises(ValueError, match=r"a\.arrows has more behind the end of its stream"):
            read()
    # The rows of the first stream come before the error.
    batches = iter(loader)
    assert [next(batches)["x"].tolist() for _ in range(2)] == [[0, 1, 2, 3], [4, 5, 6, 7]]


@pytest.mark.parametrize("rest", [b"\xff\xff\xff\xff\0\0\0\0", b"\0" * 70_000])
def test_marks_and_padding_behind_the_end_of_a_stream_have_no_rows(tmp_path, rest):
    path = written(tmp_path / "a.arrows")
    path.write_bytes(path.read_bytes() + rest)
    loader = Loader(path, columns=["x"], batch_size=4)
    assert (values(loader), len(loader)) == (list(range(10)), 3)


@pytest.mark.parametrize("form", ["arrow", "arrows"])
def test_arrays_that_are_shorter_than_the_file_says_are_refused(form, tmp_path):
    """pyarrow 26 writes a dictionary of an extension type as its codes, and reads no such file."""
    months = pa.array(pandas.period_range("1970", periods=100, freq="M"))
    codes = pa.DictionaryArray.from_arrays(pa.array(range(100), "int8"), months)
    table, path = pa.table({"x": codes}), tmp_path / f"a.{form}"
    make = pa.ipc.new_file if form == "arrow" else pa.ipc.new_stream
    with make(str(path), table.schema) as file:
        file.write_table(table)
    for source in path, tmp_path, [path], Mix([(path, 1)]):
        for where in None, pc.field("x").is_valid():
            with pytest.raises(ValueError, match=rf"a\.{form}: .*Buffer #1 too small"):
                list(Loader(source, columns={"x": AsArrow()}, filter=where))
