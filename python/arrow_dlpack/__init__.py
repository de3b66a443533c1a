"""Arrow arrays to DLPack tensors and back, without copying where the memory allows it.

>>> import numpy as np, pyarrow as pa
>>> import arrow_dlpack

Any Arrow array becomes a tensor of any framework that has ``from_dlpack``:

>>> np.from_dlpack(arrow_dlpack.Array(pa.array([1, 2, 3])))
array([1, 2, 3])

Any tensor becomes an array of any Arrow library:

>>> pa.array(arrow_dlpack.from_dlpack(np.array([0.5, 1.5]))).to_pylist()
[0.5, 1.5]

Nulls and types without a tensor form are refused, in words that help:

>>> np.from_dlpack(arrow_dlpack.Array(pa.array([1, None])))
Traceback (most recent call last):
arrow_dlpack.UnsupportedError: Int64 array has 1 null in 2 values, and a tensor cannot ...
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._core import (
    Array,
    Field,
    LeftPadded,
    MaskedLeftPadded,
    MaskedPadded,
    MaskedRagged,
    MissingProtocolError,
    Padded,
    Plan,
    Ragged,
    Step,
    StreamError,
    Tensor,
    UnsupportedError,
    __version__,
    asdlpack,
    explain,
    from_dlpack,
    from_padded,
    from_ragged,
    ragged,
    record_batch,
    to_tensor,
    to_tensor_dict,
)
from .udf import tensor_udf

if TYPE_CHECKING:
    from ._loader.columns import AsArrow, ByLength, ByTokens, Cast, Categories, Dense, Pad
    from ._loader.encoder import Encoder
    from ._loader.epoch import Batches
    from ._loader.iter_batches import iter_batches
    from ._loader.loader import Loader
    from ._loader.mix import Mix

__all__ = [
    "Array",
    "AsArrow",
    "Batches",
    "ByLength",
    "ByTokens",
    "Cast",
    "Categories",
    "Dense",
    "Encoder",
    "Field",
    "LeftPadded",
    "Loader",
    "MaskedLeftPadded",
    "MaskedPadded",
    "MaskedRagged",
    "MissingProtocolError",
    "Mix",
    "Pad",
    "Padded",
    "Plan",
    "Ragged",
    "Step",
    "StreamError",
    "Tensor",
    "UnsupportedError",
    "__version__",
    "asdlpack",
    "explain",
    "from_dlpack",
    "from_padded",
    "from_ragged",
    "iter_batches",
    "ragged",
    "record_batch",
    "tensor_udf",
    "to_tensor",
    "to_tensor_dict",
]

#: Names whose modules are imported when they are used, because they take as long as all the others.
_LATER = {
    "Batches": "._loader.epoch",
    "Encoder": "._loader.encoder",
    "Loader": "._loader.loader",
    "Mix": "._loader.mix",
    "iter_batches": "._loader.iter_batches",
    **dict.fromkeys(
        ["AsArrow", "ByLength", "ByTokens", "Cast", "Categories", "Dense", "Pad"],
        "._loader.columns",
    ),
}


def _repr_html_(self: Array | Tensor | Plan) -> str:
    """The object as HTML, for notebooks."""
    html: str = import_module("._html", __name__).html(self)
    return html


for _shown in (Array, Tensor, Plan):
    _shown._repr_html_ = _repr_html_  # type: ignore[union-attr]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_LATER[name], __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
