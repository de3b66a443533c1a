"""Another extension built on feature `pyo3` (examples/extension) exchanges these objects."""

import copy
import ctypes
import pickle
import sys
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import extension
import jax.numpy as jnp
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
import torch
from arrow_dlpack import Array, Tensor, from_dlpack
from dlpack_conformance.abi.dlpack import CUDA, IS_COPIED
from hostile import Producer

ROOT = Path(__file__).parents[2]

SOURCES = {
    "pyarrow": pa.array([1.0, 2.0]),
    "chunked": pa.chunked_array([[1.0], [2.0]]),
    "polars": pl.Series([1.0, 2.0]),
    "numpy": np.array([1.0, 2.0]),
    "torch": torch.tensor([1.0, 2.0], dtype=torch.float64),
    "jax": jnp.array([1.0, 2.0], dtype="float64"),
    "Array": Array(pa.array([1.0, 2.0])),
    "Tensor": Tensor.from_dlpack(np.array([1.0, 2.0])),
}


@pytest.mark.parametrize("name", SOURCES)
def test_it_takes_and_returns_anything(name):
    source = SOURCES[name]
    doubled = extension.doubled(source)
    assert pa.array(doubled).to_pylist() == [2, 4]
    assert pl.Series(doubled).to_list() == [2, 4]
    assert torch.from_dlpack(doubled).tolist() == [2, 4]
    assert np.from_dlpack(extension.as_tensor(source)).tolist() == [1, 2]
    assert extension.size(source) == 2


def test_its_objects_are_ours_too():
    source = pa.array([1.0, 2.0])
    array = from_dlpack(extension.as_tensor(source))
    assert pa.array(array).buffers()[1].address == source.buffers()[1].address
    assert pa.array(extension.doubled(Array(source))).to_pylist() == [2, 4]
    assert pa.array(extension.doubled(extension.doubled(source))).to_pylist() == [4, 8]


@pytest.mark.parametrize("make", [np.asarray, torch.tensor, Tensor.from_dlpack])
def test_rust_sees_what_python_writes_in_cells_only(make):
    memory = np.array([1.0, 1.0])
    source = memory if make is np.asarray else make(memory)
    written = np.from_dlpack(source)
    written = written if written.flags.writeable else memory

    def change():
        written[:] = 9

    assert extension.before_and_after(source, change) == ([1, 1], [9, 9])


def test_values_of_any_layout_are_copied_and_cells_are_of_one():
    strided = np.arange(12.0).reshape(3, 4)[::-2, ::2]
    assert extension.total(strided) == strided.sum()
    assert extension.total(np.ones((0, 3))) == 0
    with pytest.raises(BufferError, match="stride of axis 1 is 2 .* 32 bytes"):
        extension.before_and_after(strided, lambda: None)
    assert extension.before_and_after(np.ones((0, 3)), lambda: None) == ([], [])
    for source in [np.ones(2, "float32"), np.ones((2, 2), "int64").T, pa.array([1, 2])]:
        for read in [extension.total, lambda x: extension.before_and_after(x, lambda: None)]:
            with pytest.raises(BufferError, match="float64"):
                read(source)


def test_a_tensor_where_arrow_is_expected_is_copied():
    """Arrow data counts as immutable in Rust, and DLPack's does not."""
    for source in [np.ones(2), torch.ones(2, dtype=torch.float64), jnp.ones(2, "float64")]:
        shared = np.from_dlpack(Tensor.from_dlpack(source))
        assert not np.shares_memory(np.from_dlpack(extension.as_tensor(source)), shared)
    column = pa.array([1.0, 2.0])
    assert np.shares_memory(np.from_dlpack(extension.as_tensor(column)), column.to_numpy())


def test_a_tensor_without_other_holders_is_consumed():
    for flags in [0, IS_COPIED]:
        producer = Producer([1.0, 2.0, 3.0], flags=flags)
        array = extension.consumed(producer)
        assert pa.array(array).to_pylist() == [1, 2, 3]
        shares = pa.array(array).buffers()[1].address == ctypes.addressof(producer.memory)
        assert shares == bool(flags)
        assert producer.deleted == (0 if flags else 1)
        del array
        assert producer.deleted == 1
    ours = Array(pa.array([1.0, 2.0])).to_tensor(copy=True)
    assert pa.array(extension.consumed(ours)).to_pylist() == [1, 2]
    assert ours.tolist() == [1, 2], "Python has it still"
    capsule = Array(pa.array([1.0, 2.0])).__dlpack__(copy=True, max_version=(1, 3))
    assert pa.array(extension.consumed(capsule)).to_pylist() == [1, 2]


TABLE = pa.table({"x": [1.0, 2.0, 3.0], "y": [4.0, 5.0, 6.0]})


def test_arguments_may_be_tables():
    chunked = pa.concat_tables([TABLE.slice(0, 1), TABLE.slice(1)])
    for table in [TABLE, chunked, pl.DataFrame(TABLE), TABLE.to_batches()[0], chunked.to_reader()]:
        matrix = np.from_dlpack(extension.matrix(table))
        assert matrix.tolist() == [[1, 4], [2, 5], [3, 6]]
    assert np.from_dlpack(extension.matrix(TABLE.slice(3))).shape == (0, 2)
    with pytest.raises(TypeError, match="expected a table, got Int64"):
        extension.matrix(pa.array([1]))
    with pytest.raises(TypeError, match="expected an Arrow array or table"):
        extension.matrix([1])
    with pytest.raises(BufferError, match='column "x": .*1 null'):
        extension.matrix(pa.table({"x": [1.0, None]}))


def test_arguments_may_be_chunks():
    assert extension.lengths(pa.chunked_array([[1.0], [], [2.0, 3.0]])) == [1, 2]
    assert extension.lengths(pa.chunked_array([], pa.int8())) == [0]
    assert extension.lengths(pa.array(["a", None])) == [2]
    assert extension.lengths(Array(pa.array([1]))) == [1]
    assert extension.lengths(np.ones((3, 2))) == [3]
    with pytest.raises(TypeError, match="expected Arrow data"):
        extension.lengths([1.0])


def test_it_speaks_pyo3_arrow_too():
    chunked = pa.concat_tables([TABLE.slice(0, 1), TABLE.slice(1)])
    assert pa.record_batch(extension.last_batch(chunked)).to_pydict() == {"x": [2, 3], "y": [5, 6]}
    assert pa.record_batch(extension.last_batch(TABLE.schema.empty_table())).num_rows == 0
    column = pa.array([1.0, None])
    for through in [extension.between, lambda x: extension.between(extension.chunked(x).chunk(0))]:
        array = pa.array(through(column))
        assert array.equals(column)
        assert array.buffers()[1].address == column.buffers()[1].address
    chunks = pa.chunked_array([[1.0], [2.0]])
    assert pa.chunked_array(extension.chunked(chunks)).equals(chunks)
    uuids = pa.array([b"0" * 16], pa.uuid())
    assert pa.array(extension.between(uuids)).type == pa.uuid()


def loaded():
    """The other module of the same library: what the example does not need."""
    library = getattr(extension, "extension", extension).__file__
    loader = ExtensionFileLoader("rest", library)
    module = module_from_spec(spec_from_loader("rest", loader))
    loader.exec_module(module)
    return module


REST = loaded()


def test_a_tensor_is_described():
    tensor = extension.as_tensor(extension.doubled(pa.array([1.0, 2.0, 3.0])))
    address = np.asarray(tensor).ctypes.data
    assert REST.described(tensor) == ([3], [1], "float64", (1, 0), address, "doubled")
    matrix = np.ones((2, 3), "int16").T
    described = REST.described(matrix)
    assert described == ([3, 2], [1, 3], "int16", (1, 0), matrix.ctypes.data, None)
    assert REST.described(Producer(device_type=CUDA, device_id=1))[3] == (CUDA, 1)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "int64"])
def test_cells_are_shown_as_the_numbers_in_them(dtype):
    numbers = np.array([1, 2], dtype)
    assert REST.cells(numbers) == str(numbers.tolist())


def test_cells_of_any_strides_are_a_view():
    whole = np.arange(12, dtype="float32").reshape(3, 4)
    for matrix in [
        whole,
        whole.T,
        whole[::-2, ::2],
        whole[:, ::-1],
        np.broadcast_to(whole[0], (2, 4)),
    ]:
        assert REST.rows(matrix) == matrix.tolist()
    assert REST.rows(np.empty((0, 3), "float32")) == []
    assert REST.rows(torch.from_numpy(whole)[:, 1].reshape(3, 1)) == [[1], [5], [9]]
    for wrong in [
        whole[0],
        whole.astype("float64"),
        Producer(device_type=CUDA, shape=(1, 1)),
    ]:
        with pytest.raises(BufferError):
            REST.rows(wrong)


def test_what_rust_promises_not_to_write_to_is_read_where_it_is():
    assert REST.sum_in_place(np.arange(4.0)) == 6
    assert REST.sum_in_place(np.arange(4.0)[::2]) is None
    assert REST.sum_in_place(np.arange(4)) is None


def test_what_rust_could_be_reading_python_cannot_write_to():
    own, shared = REST.own_and_shared()
    assert (own.readonly, shared.readonly) == (False, True)
    np.from_dlpack(own)[0] = 9
    assert (own.tolist(), shared.tolist()) == ([9, 2], [1, 2])
    came, viewed = REST.came_and_viewed()
    assert (came.readonly, viewed.readonly) == (False, True)
    assert (came.tolist(), viewed.tolist()) == ([1, 2], [[1], [2]])


def test_chunks_are_a_source():
    column = pa.chunked_array([[1.0], [], [2.0, 3.0]])
    assert REST.put_together(column).tolist() == [1, 2, 3]


def test_all_of_pyo3_arrow_goes_both_ways():
    column = pa.array([1.0, None])
    assert pa.array(REST.their_array(column)).equals(column)
    chunks = pa.chunked_array([column, pa.array([2.0])])
    assert pa.chunked_array(REST.through_chunks(chunks)).equals(chunks)
    assert pa.table(REST.their_table(TABLE)).equals(TABLE)
    batch = TABLE.to_batches()[0]
    assert pa.table(REST.table_of_batch(batch)).equals(TABLE)
    assert pa.record_batch(REST.only_batch(TABLE)).equals(batch)
    with pytest.raises(BufferError, match="2 chunks"):
        REST.only_batch(pa.concat_tables([TABLE.slice(0, 1), TABLE.slice(1)]))


def test_what_rust_keeps_python_cannot_write_to():
    primes = extension.primes()
    assert primes.readonly
    with pytest.raises(ValueError, match="read-only"):
        np.from_dlpack(primes)[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(primes)[0] = 1
    mine = np.from_dlpack(primes, copy=True)
    mine[0] = 1
    assert np.from_dlpack(extension.primes()).tolist() == [2, 3, 5, 7]


def test_its_refusals_are_ours():
    with pytest.raises(BufferError, match="1 null in 2 values") as error:
        extension.as_tensor(pa.array([1.0, None]))
    assert isinstance(error.value, TypeError)
    with pytest.raises(TypeError, match="expected Float64, got Int64"):
        extension.doubled(pa.array([1]))
    with pytest.raises(TypeError, match=r"expected Arrow data.*__dlpack__.*pyarrow\.array\(x\)"):
        extension.size([1.0])
    with pytest.raises(TypeError, match=r"expected Arrow data.*pyarrow\.dataset"):
        extension.size("a.parquet")


@pytest.mark.parametrize(
    ("column", "told"),
    [
        (pa.array([1.0, None]), "drop them, or fill them"),
        (
            pa.array([[1.0], [1.0, 2.0]]),
            "cut or pad them",
        ),
        (pa.array(["a"]), "its rows differ in length"),
        (pa.nulls(2), "cast it to the type you mean"),
        (pa.array([1], pa.date32()), "convert it first"),
        (pa.array([{"a": {"b": 1}}]), "pass its fields one by one"),
        (pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int8())), "convert its keys and its items"),
    ],
)
def test_its_refusals_name_no_function_that_it_has_not(column, told):
    array = extension.between(column)
    for refused in [lambda: extension.as_tensor(column), array.__dlpack__]:
        with pytest.raises(BufferError) as error:
            refused()
        assert told in str(error.value)
        ours = ["to_tensor", "ragged", "nulls=", "dtype=", "physical", "pad=", "Options", "::"]
        assert not [word for word in ours if word in str(error.value)]
    with pytest.raises(BufferError, match=r"to_tensor|ragged|dtype=|physical|concat_arrays"):
        Array(column).__dlpack__()


def test_lists_in_a_table_are_refused_without_a_function_of_ours():
    with pytest.raises(
        BufferError, match=r"column \"x\": .*: cast it to a fixed-size list, if its"
    ):
        extension.matrix(pa.table({"x": [[1.0], [1.0, 2.0]]}))


def test_errors_of_rust_are_exceptions():
    with pytest.raises(ValueError, match="the disk is gone$"):
        REST.fail(True)
    with pytest.raises(KeyError, match="columns are called .*: rename all but one"):
        REST.fail(False)


def test_what_breaks_the_package_is_raised(monkeypatch):
    class Breaks:
        def find_spec(self, name, _path, _target=None):
            if name == "arrow_dlpack._core":
                raise OSError("the disk is gone")

    monkeypatch.delitem(sys.modules, "arrow_dlpack._core")
    monkeypatch.setattr(sys, "meta_path", [Breaks(), *sys.meta_path])
    with pytest.raises(OSError, match="the disk is gone"):
        pickle.dumps(extension.between(pa.array([1.0])))


def test_its_objects_are_copied_without_the_package(monkeypatch):
    column = pa.array([[1.0], None, [2.0, 3.0]])[1:]
    array, tensor = extension.between(column), extension.as_tensor(pa.array([1.0, 2.0]))
    assert pa.array(pickle.loads(pickle.dumps(array))).equals(column)
    for name in "arrow_dlpack", "arrow_dlpack._core":
        monkeypatch.setitem(sys.modules, name, None)
    for copied in copy.copy(array), copy.deepcopy(array):
        assert type(copied) is type(array)
        assert pa.array(copied).equals(column)
        assert pa.array(copied).values.buffers()[1].address != column.values.buffers()[1].address
    for copied in copy.copy(tensor), copy.deepcopy(tensor):
        assert (copied.tolist(), copied.readonly) == ([1, 2], False)
    for one in array, tensor:
        with pytest.raises(TypeError, match="cannot be pickled where the package arrow_dlpack"):
            pickle.dumps(one)


def test_the_documentation_shows_it():
    source = (ROOT / "examples/extension/src/lib.rs").read_text("utf-8")
    assert f"```ignore\n{source}```\n" in (ROOT / "src/python/extension.md").read_text("utf-8")
