"""Types for annotations: what this package takes.

>>> from arrow_dlpack.typing import SupportsDLPack
>>> def rows(tensor: SupportsDLPack) -> int: ...
"""

from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

__all__ = [
    "ArrowType",
    "Device",
    "Dtype",
    "JaxDevice",
    "Nulls",
    "SupportsArrayInterface",
    "SupportsArrowArray",
    "SupportsArrowSchema",
    "SupportsArrowStream",
    "SupportsCudaArrayInterface",
    "SupportsDLPack",
    "SupportsReader",
    "SupportsScanner",
    "TorchDevice",
]

#: A name, such as "float32" or "bfloat16", NumPy's code for it, such as "f4", or a dtype of NumPy,
#: PyTorch, JAX, Arrow or polars; or Python's float (of 64 bits), int (of 64) or bool.
Dtype: TypeAlias = Any

#: What becomes of nulls, where the result is one tensor: an error, NaN, or a number. "mask" is not
#: in it, because its result is another type, a pair (values, mask): functions that take it have an
#: overload for ``Literal["mask"]``.
Nulls: TypeAlias = Literal["error", "nan"] | float | bool


@runtime_checkable
class SupportsDLPack(Protocol):
    """Has ``__dlpack__``: the arrays of NumPy, PyTorch, JAX, TVM and others, and ours.

    Producers differ in the keywords they take (the oldest take none), so none is asked for here.
    """

    @property
    def __dlpack__(self) -> Any:
        """The method that makes a DLPack capsule."""


@runtime_checkable
class SupportsArrayInterface(Protocol):
    """Has ``__array_interface__``: Pillow's images, NumPy's scalars, wrappers of C arrays."""

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """Where the array is, and what it is like."""


@runtime_checkable
class SupportsCudaArrayInterface(Protocol):
    """Has ``__cuda_array_interface__``: the arrays of Numba and others, in the memory of a GPU."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Where the array is, and what it is like."""


@runtime_checkable
class SupportsArrowArray(Protocol):
    """Has ``__arrow_c_array__``: the arrays and record batches of Arrow libraries, and ours."""

    def __arrow_c_array__(self, requested_schema: object | None = None, /) -> tuple[object, object]:
        """A pair of Arrow C capsules, schema and array."""


@runtime_checkable
class SupportsArrowStream(Protocol):
    """Has ``__arrow_c_stream__``: chunked arrays, series, tables and readers."""

    def __arrow_c_stream__(self, requested_schema: object | None = None, /) -> object:
        """An Arrow C stream capsule."""


@runtime_checkable
class SupportsArrowSchema(Protocol):
    """Has ``__arrow_c_schema__``: the types, fields and schemas of Arrow libraries, and ours."""

    def __arrow_c_schema__(self) -> object:
        """An Arrow C schema capsule."""


@runtime_checkable
class SupportsScanner(Protocol):
    """Has ``scanner``: the datasets of pyarrow."""

    @property
    def scanner(self) -> Any:
        """The method that reads some of the columns."""


@runtime_checkable
class SupportsReader(Protocol):
    """Has ``to_reader``: the scanners of pyarrow."""

    @property
    def to_reader(self) -> Any:
        """The method that makes a stream."""


class TorchDevice(Protocol):
    """Has ``type`` and ``index``: the devices of PyTorch."""

    @property
    def type(self) -> str:
        """What kind of device."""

    @property
    def index(self) -> int | None:
        """Which one of its kind."""


class JaxDevice(Protocol):
    """Has ``platform`` and ``id``: the devices of JAX."""

    @property
    def platform(self) -> str:
        """What kind of device."""

    @property
    def id(self) -> int:
        """Which one of its kind."""


#: "cpu", "cuda:0" and the like, a device of PyTorch or JAX, or a (device_type, device_id) pair of
#: DLPack.
Device: TypeAlias = str | tuple[int, int] | TorchDevice | JaxDevice

#: Which of the Arrow types that can hold a tensor it becomes: a name, or any Arrow type or field.
ArrowType: TypeAlias = (
    Literal[
        "bool", "bool8", "float32", "opaque", "fixed_size_list", "fixed_shape_tensor", "permuted"
    ]
    | SupportsArrowSchema
)
