"""The reference frameworks of the laws in these tests, from the table of all neighbours."""

import numpy as np
import polars as pl
import pyarrow as pa
from arrow_dlpack._doctor import libraries as _neighbours

DTYPES = [
    *("int8", "int16", "int32", "int64"),
    *("uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64"),
]

arrow_address = _neighbours.arrow_address


def arrow_type(dtype: str) -> pa.DataType:
    return pa.from_numpy_dtype(np.dtype(dtype))


# These take and make every dtype; what all the others do is in test_neighbours.py.
FRAMEWORKS = [_neighbours.TENSOR_LIBRARIES[name] for name in ("numpy", "torch", "jax", "tvm-ffi")]

# Arrow libraries: from pyarrow to their own object, their own object from anything, and to pyarrow.
ARROW_LIBRARIES = {
    "pyarrow": (lambda x: x, pa.array, lambda x: x),
    "polars": (pl.Series, pl.Series, lambda x: x.to_arrow()),
}
