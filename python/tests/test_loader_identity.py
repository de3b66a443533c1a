"""What a state holds of its data: other data is refused, and the same data goes on."""

import datetime
import json
import os

import numpy as np
import pandas
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from arrow_dlpack import AsArrow, Loader, Mix


def state_of(source, batches=1, **options):
    """The state behind some batches, as a file of JSON has it."""
    loader = Loader(source, **{"batch_size": 2, "framework": "numpy", **options})
    epoch = iter(loader)
    for _ in range(batches):
        next(epoch)
    state = json.loads(json.dumps(loader.state_dict()))
    epoch.close()
    return state


def rest_of(source, state, **options):
    """The batches after the state."""
    loader = Loader(source, **{"batch_size": 2, "framework": "numpy", **options})
    loader.load_state_dict(state)
    return list(loader)


DURATIONS = [datetime.timedelta(seconds=at - 2, microseconds=7 * at) for at in range(6)]


@pytest.mark.parametrize("unit", ["us", "ns"])
def test_durations_are_the_same_in_any_unit_and_library(unit):
    table = pa.table({"x": pa.array(DURATIONS, pa.duration(unit))})
    options = {"columns": {"x": AsArrow()}}
    state = state_of(table, **options)
    others = [
        pa.table({"x": pa.array(DURATIONS, pa.duration("us"))}),
        pa.table({"x": pa.array(DURATIONS, pa.duration("ns"))}),
        pandas.DataFrame({"x": np.array(DURATIONS, "timedelta64[ns]")}),
        polars.DataFrame({"x": DURATIONS}),
    ]
    for other in others:
        assert len(rest_of(other, state, **options)) == 2
    moved = pa.array([*DURATIONS[:5], datetime.timedelta(9)], pa.duration("ns"))
    with pytest.raises(ValueError, match="some rows had other values"):
        rest_of(pa.table({"x": moved}), state, **options)


def written(table, path):
    """A file of the format of its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    end = path.suffix
    if end == ".parquet":
        pq.write_table(table, path)
    elif end == ".csv":
        pyarrow.csv.write_csv(table, path)
    else:
        opened = pa.ipc.new_stream if end == ".arrows" else pa.ipc.new_file
        # As a writer does that readers may be at: the file that they read stays as it is.
        with opened(f"{path}.tmp", table.schema) as writer:
            writer.write_table(table)
        os.replace(f"{path}.tmp", path)
    return str(path)


@pytest.mark.parametrize("end", ["parquet", "arrow", "arrows", "csv"])
@pytest.mark.parametrize("of", ["path", "dataset", "dataset with a filter"])
def test_other_keys_of_folders_are_other_data(end, of, tmp_path):
    if of != "path" and end == "arrows":
        pytest.skip("pyarrow's datasets read no streams")
    for fold in 0, 1:
        written(pa.table({"x": range(4)}), tmp_path / f"fold={fold}" / f"p.{end}")

    def source():
        if of == "path":
            return str(tmp_path)
        form = "ipc" if end == "arrow" else end
        whole = ds.dataset(str(tmp_path), format=form, partitioning="hive")
        return whole if of == "dataset" else whole.filter(pc.field("x") < 9)

    state, unread = state_of(source()), state_of(source(), columns=["x"])
    assert len(rest_of(source(), state)) == 3
    if of == "dataset":
        assert len(rest_of(str(tmp_path), state)) == 3
    os.rename(tmp_path / "fold=1", tmp_path / "fold=7")
    with pytest.raises(ValueError, match="other data: folders had other keys"):
        rest_of(source(), state)
    assert len(rest_of(source(), unread, columns=["x"])) == 3


@pytest.mark.parametrize("end", ["parquet", "arrow", "arrows"])
def test_a_key_of_a_column_that_the_file_has_itself_is_none_of_the_state(end, tmp_path):
    path = written(pa.table({"fold": range(4)}), tmp_path / "fold=0" / f"p.{end}")
    state = state_of(str(tmp_path))
    os.rename(tmp_path / "fold=0", tmp_path / "fold=7")
    assert len(rest_of(str(tmp_path), state)) == 1
    assert len(rest_of(path.replace("fold=0", "fold=7"), state)) == 1


FORMS = {
    "parquet": lambda path: path,
    "arrow": lambda path: path,
    "arrows": lambda path: path,
    "csv": lambda path: path,
    "arrow, dataset": lambda path: ds.dataset(path, format="ipc"),
    "csv, dataset": lambda path: ds.dataset(path, format="csv"),
    "arrow, mix": lambda path: Mix([(path, 1)]),
    "parquet, mix": lambda path: Mix([(path, 1), (pa.table({"x": [1]}), 1)]),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_state_is_of_the_file_that_its_epoch_reads(form, tmp_path):
    """A state of the epoch before, or a file in its place, is another matter."""
    path = tmp_path / f"p.{form.partition(',')[0]}"
    old, new = pa.table({"x": range(10)}), pa.table({"x": range(100, 120)})
    written(old, path)
    loader = Loader(FORMS[form](str(path)), batch_size=2, framework="numpy")
    epoch = iter(loader)
    next(epoch)
    before = loader.state_dict()
    list(epoch)
    written(new, path)
    epoch = iter(loader)
    next(epoch)
    len(loader)
    state = loader.state_dict()
    epoch.close()
    assert len(rest_of(FORMS[form](str(path)), state)) > 8
    with pytest.raises(ValueError, match="the state is of other data"):
        rest_of(FORMS[form](str(path)), before)
    written(old, path)
    with pytest.raises(ValueError, match="the state is of other data"):
        rest_of(FORMS[form](str(path)), state)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("asked", [False, True])
def test_a_file_that_is_replaced_in_an_epoch_is_none_of_its_state(form, asked, tmp_path):
    path = tmp_path / f"p.{form.partition(',')[0]}"
    written(pa.table({"x": range(8)}), path)
    loader = Loader(FORMS[form](str(path)), batch_size=2, framework="numpy")
    epoch = iter(loader)
    next(epoch)
    if asked:
        loader.state_dict()
    os.rename(path, tmp_path / "old")
    written(pa.table({"x": range(100, 108)}), path)
    len(loader)
    state = loader.state_dict()
    with pytest.raises(ValueError, match="the state is of other data"):
        rest_of(FORMS[form](str(path)), state)
    os.replace(tmp_path / "old", path)
    if asked or "parquet" in form:
        rest_of(FORMS[form](str(path)), state)
    else:
        with pytest.raises(ValueError, match="a file was replaced while the epoch read it"):
            rest_of(FORMS[form](str(path)), state)


def test_a_frame_that_is_changed_between_epochs_has_another_state():
    frame = pandas.DataFrame({"x": np.arange(10)})
    for source in frame, [frame], Mix([(frame, 1)]):
        loader = Loader(source, batch_size=2, framework="numpy")
        next(iter(loader))
        before = loader.state_dict()
        frame.loc[0, "x"] += 50
        next(iter(loader))
        assert len(rest_of(source, loader.state_dict())) == 4
        with pytest.raises(ValueError, match="some rows had other values"):
            rest_of(source, before)
