"""What comes of taking a library's own tensors."""

import contextlib
from collections.abc import Callable
from typing import NamedTuple

import hostile
import numpy as np
import pyarrow as pa
import torch
from arrow_dlpack import Tensor, from_dlpack
from arrow_dlpack._doctor.libraries import TensorLibrary, arrow_address, numpy_address
from frameworks import DTYPES
from outcomes import (
    F4,
    MATRIX,
    aligned,
    as_bfloat16,
    bfloat16,
    difference,
    judged,
    reason,
    without_leak,
)


def as_array(tensor: object) -> tuple[np.ndarray, int]:
    array = pa.array(from_dlpack(tensor))
    return array.to_numpy(), arrow_address(array)


def as_tensor(tensor: object) -> tuple[np.ndarray, int]:
    view = np.asarray(Tensor.from_dlpack(tensor))
    return view, numpy_address(view)


class Produced(NamedTuple):
    """What a library makes, from the aligned values if by `produce`, and how it is taken here."""

    expected: np.ndarray
    make: Callable[[TensorLibrary], object] | None = None
    take: Callable[[object], tuple[np.ndarray, int]] = as_tensor


PRODUCED = {
    **{dtype: Produced(F4.astype(dtype), take=as_array) for dtype in DTYPES},
    "empty": Produced(F4[:0], take=as_array),
    "2-D": Produced(MATRIX),
    "transposed": Produced(MATRIX.T, lambda library: library.produce(aligned(MATRIX)).T),
    "every other": Produced(F4[::2], lambda library: library.produce(aligned(F4))[::2]),
    "0-d": Produced(F4[7:8].reshape(())),
    "bool": Produced(np.array([True, False, True])),
    "bfloat16": Produced(F4, lambda library: library.consume(bfloat16(F4)), as_bfloat16),
}


def produced(library: TensorLibrary, case: Produced) -> str:
    """What comes of taking a tensor of the library."""
    expected, make, take = case
    try:
        tensor = make(library) if make else library.produce(aligned(expected))
        if take is as_bfloat16:
            address = torch.from_dlpack(tensor).data_ptr()
        elif what := difference(library.to_numpy(tensor), expected):
            return f"none: {what}"
        else:
            address = library.address(tensor)
    except Exception as error:
        return f"none: {reason(error)}"
    try:
        values, at = take(tensor)
    except Exception as error:
        return f"refused: {reason(error)}"
    return judged(values, expected, at == address)


def hands_out(library: TensorLibrary) -> str:
    """The forms of the protocol that a producer knows."""
    tensor = library.produce(aligned(F4))
    forms = ["exchange API"] if hasattr(type(tensor), "__dlpack_c_exchange_api__") else []
    for keywords in ({"max_version": (1, 3)}, {}):
        with contextlib.suppress(TypeError):  # it does not know the keyword
            capsule = tensor.__dlpack__(**keywords)
            forms.append(hostile.version_of(capsule) or "legacy")
    return ", ".join(dict.fromkeys(forms))


def flags_read_only(library: TensorLibrary) -> str:
    tensor = Tensor.from_dlpack(library.produce(aligned(F4)))
    return "flagged" if tensor.readonly else "not flagged"


def bare_capsule(library: TensorLibrary) -> str:
    """What comes of taking a capsule without the tensor around it."""
    tensor = library.produce(aligned(F4))
    values, at = as_array(library.to_capsule(tensor))
    return judged(values, F4, at == library.address(tensor))


def of_producer(library: TensorLibrary) -> dict[str, str]:
    outcomes = {name: lambda case=case: produced(library, case) for name, case in PRODUCED.items()}
    outcomes["read-only"] = lambda: flags_read_only(library)
    outcomes["bare capsule"] = lambda: bare_capsule(library)
    return {name: without_leak(exchange) for name, exchange in outcomes.items()}
