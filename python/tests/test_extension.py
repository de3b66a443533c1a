"""Another extension built on feature `pyo3` (examples/extension.rs) exchanges these objects."""

import importlib.machinery
import importlib.util
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
import torch
from arrow_dlpack import Array, Tensor, from_dlpack

EXAMPLES = Path(__file__).parents[2] / "target" / "debug" / "examples"


@pytest.fixture(scope="module")
def extension():
    built = [path for path in EXAMPLES.glob("libextension.*") if path.suffix in {".so", ".dylib"}]
    assert built, "build it first: `make test-python` does"
    loader = importlib.machinery.ExtensionFileLoader("extension", str(built[0]))
    spec = importlib.util.spec_from_loader("extension", loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


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
def test_it_takes_and_returns_anything(extension, name):
    source = SOURCES[name]
    doubled = extension.doubled(source)
    assert pa.array(doubled).to_pylist() == [2, 4]
    assert pl.Series(doubled).to_list() == [2, 4]
    assert torch.from_dlpack(doubled).tolist() == [2, 4]
    assert np.from_dlpack(extension.as_tensor(source)).tolist() == [1, 2]
    assert extension.size(source) == 2


def test_its_objects_are_ours_too(extension):
    source = pa.array([1.0, 2.0])
    array = from_dlpack(extension.as_tensor(source))
    assert pa.array(array).buffers()[1].address == source.buffers()[1].address
    assert pa.array(extension.doubled(Array(source))).to_pylist() == [2, 4]


def test_its_refusals_are_ours(extension):
    with pytest.raises(BufferError, match="1 null in 2 values") as error:
        extension.as_tensor(pa.array([1.0, None]))
    assert isinstance(error.value, TypeError)
    with pytest.raises(TypeError, match="expected Float64, got Int64"):
        extension.doubled(pa.array([1]))
    with pytest.raises(TypeError, match="__dlpack__"):
        extension.size([1.0])
