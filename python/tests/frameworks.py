"""The libraries on either side: what to call, and where an object's memory is."""

import gc
from collections.abc import Callable
from dataclasses import dataclass

import jax
import numpy as np
import polars as pl
import pyarrow as pa
import torch
import tvm_ffi

DTYPES = [
    *("int8", "int16", "int32", "int64"),
    *("uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64"),
]


def arrow_type(dtype: str) -> pa.DataType:
    return pa.from_numpy_dtype(np.dtype(dtype))


@dataclass(frozen=True)
class Framework:
    """A tensor library: from a producer to its object, from NumPy to its object, and back."""

    name: str
    consume: Callable
    produce: Callable[[np.ndarray], object]
    to_numpy: Callable[[object], np.ndarray]
    address: Callable[[object], int]
    # JAX copies what does not begin on a 64-byte boundary.
    needs_alignment: int = 1

    def __repr__(self) -> str:
        return self.name


def _numpy_address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


FRAMEWORKS = [
    Framework("numpy", np.from_dlpack, lambda x: x, np.asarray, _numpy_address),
    Framework(
        "torch", torch.from_dlpack, torch.from_numpy, lambda x: x.numpy(), lambda x: x.data_ptr()
    ),
    Framework(
        "jax",
        jax.dlpack.from_dlpack,
        jax.numpy.asarray,
        np.asarray,
        lambda x: x.unsafe_buffer_pointer(),
        needs_alignment=64,
    ),
    Framework(
        "tvm_ffi",
        tvm_ffi.from_dlpack,
        tvm_ffi.from_dlpack,
        np.from_dlpack,
        lambda x: _numpy_address(np.from_dlpack(x)),
    ),
]

# Arrow libraries: from pyarrow to their own object, their own object from anything, and to pyarrow.
ARROW_LIBRARIES = {
    "pyarrow": (lambda x: x, pa.array, lambda x: x),
    "polars": (pl.Series, pl.Series, lambda x: x.to_arrow()),
}


def arrow_address(array: pa.Array) -> int:
    """The address of the first value, whatever the slice."""
    return array.buffers()[1].address + array.offset * (array.type.bit_width // 8)


# The frameworks' own million objects need not be looked at in each of the tests' collections.
gc.collect()
gc.freeze()
