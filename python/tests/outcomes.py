"""How outcomes are reported: what the measurements of all exchanges have in common.

An outcome is a text: "zero-copy", "copy", "refused: why", "wrong: what", or "none: why" where a
library cannot make what it would have to hand out. consumers.py, producers.py and
arrow_libraries.py measure them, compatibility.py records them.
"""

import re
import warnings
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import torch
from arrow_dlpack import Tensor
from arrow_dlpack._doctor.libraries import ARROW_LIBRARIES, TENSOR_LIBRARIES
from conftest import open_tensors
from frameworks import arrow_type

with warnings.catch_warnings(action="ignore"):  # paddle misses a compiler cache
    for library in (*TENSOR_LIBRARIES.values(), *ARROW_LIBRARIES.values()):
        library.load()

F4 = np.arange(24, dtype="f4")
MATRIX = F4.reshape(4, 6)


def aligned(values) -> np.ndarray:
    """A copy that begins on a boundary of 64 bytes, as Arrow's own memory does."""
    values = np.array(values, order="C")
    memory = np.frombuffer(pa.allocate_buffer(values.nbytes), values.dtype)
    memory[:] = values.ravel()
    return memory.reshape(values.shape)


def numbers(dtype: str, count: int = 24) -> pa.Array:
    memory = pa.py_buffer(aligned(np.arange(count).astype(dtype)))
    return pa.Array.from_buffers(arrow_type(dtype), count, [None, memory])


def bfloat16(values: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(aligned(values)).to(torch.bfloat16)


def reason(error: Exception) -> str:
    """Its first line, less the place in a C++ source that onnxruntime begins with."""
    text = re.sub(r"^/\S+\.cc:\d+ .*?\)( .*? was false\.)? ", "", str(error).strip()).split("\n")[0]
    return f"{type(error).__name__}: {text if len(text) <= 100 else text[:99] + '…'}"


def difference(values: np.ndarray, expected: np.ndarray) -> str | None:
    for name in ("dtype", "shape"):
        got, wanted = getattr(values, name), getattr(expected, name)
        if got != wanted:
            return f"{got} instead of {wanted}"
    if values.tolist() != expected.tolist():
        return f"{values.tolist()} instead of {expected.tolist()}"
    return None


def judged(values: np.ndarray, expected: np.ndarray, shared: bool) -> str:
    if what := difference(values, expected):
        return f"wrong: {what}"
    return "zero-copy" if shared or expected.size == 0 else "copy"


def without_leak(exchange: Callable[[], str]) -> str:
    before = open_tensors()
    outcome = exchange()
    return outcome if open_tensors(before) == before else f"wrong: leaks, {outcome}"


def as_bfloat16(tensor: object) -> tuple[np.ndarray, int]:
    """The values and the address of what NumPy has no dtype for."""
    view = torch.from_dlpack(Tensor.from_dlpack(tensor))
    return view.float().numpy(), view.data_ptr()
