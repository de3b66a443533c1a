"""Another extension built on feature `pyo3` (examples/extension) exchanges these objects."""

from pathlib import Path

import extension
import jax.numpy as jnp
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
import torch
from arrow_dlpack import Array, Tensor, from_dlpack

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


def test_its_refusals_are_ours():
    with pytest.raises(BufferError, match="1 null in 2 values") as error:
        extension.as_tensor(pa.array([1.0, None]))
    assert isinstance(error.value, TypeError)
    with pytest.raises(TypeError, match="expected Float64, got Int64"):
        extension.doubled(pa.array([1]))
    with pytest.raises(TypeError, match="__dlpack__"):
        extension.size([1.0])


def test_the_documentation_shows_it():
    source = (ROOT / "examples/extension/src/lib.rs").read_text()
    assert f"```ignore\n{source}```\n" in (ROOT / "src/python/extension.md").read_text()
