"""Arrow arrays to DLPack tensors and back, without copying where the memory allows it.

>>> import numpy as np, pyarrow as pa
>>> import arrow_dlpack

Any Arrow array becomes a tensor for any framework with ``from_dlpack``:

>>> np.from_dlpack(arrow_dlpack.Array(pa.array([1, 2, 3])))
array([1, 2, 3])

Any tensor becomes an array for any Arrow library:

>>> pa.array(arrow_dlpack.from_dlpack(np.array([0.5, 1.5]))).to_pylist()
[0.5, 1.5]
"""

from ._core import Array, Tensor, UnsupportedError, __version__, _live, from_dlpack

__all__ = ["Array", "Tensor", "UnsupportedError", "__version__", "from_dlpack"]
