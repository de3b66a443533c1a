"""What a state holds of its data: other data is refused, and the same data goes on."""

import datetime
import json

import numpy as np
import pandas
import polars
import pyarrow as pa
import pytest
from arrow_dlpack import AsArrow, Loader


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
