"""Arguments that are not what they seem: lying lengths, dicts that change while read."""

import numpy as np
import pyarrow as pa
import pytest
from arrow_dlpack import record_batch, to_tensor

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
