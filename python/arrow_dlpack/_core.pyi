from collections.abc import Iterator, Mapping, Sequence
from types import GenericAlias, TracebackType
from typing import Any, ClassVar, Literal, NamedTuple, Self, TypeVar, final, overload

from typing_extensions import Buffer, CapsuleType, disjoint_base

from .typing import (
    ArrowType,
    Device,
    Dtype,
    Nulls,
    SupportsArrayInterface,
    SupportsArrowArray,
    SupportsArrowSchema,
    SupportsArrowStream,
    SupportsCudaArrayInterface,
    SupportsDLPack,
)

__all__ = [
    "Array",
    "Batches",
    "Field",
    "MaskedRagged",
    "Plan",
    "Ragged",
    "Step",
    "Tensor",
    "UnsupportedError",
    "__version__",
    "_check_names",
    "_dtype_name",
    "_index_columns",
    "_live",
    "_open_batches",
    "_stop_batches",
    "asdlpack",
    "explain",
    "from_dlpack",
    "from_ragged",
    "ragged",
    "record_batch",
    "to_tensor",
    "to_tensor_dict",
]

__version__: str

class UnsupportedError(BufferError, TypeError): ...

@disjoint_base
class Array:
    __dlpack_c_exchange_api__: ClassVar[CapsuleType]
    def __new__(
        cls, obj: SupportsArrowArray | SupportsArrowStream, /, *, copy: bool | None = None
    ) -> Array: ...
    @staticmethod
    def from_dlpack(
        x: SupportsDLPack | CapsuleType,
        /,
        *,
        device: Device | None = None,
        copy: bool | None = None,
        type: ArrowType | None = None,
        mask: SupportsDLPack | CapsuleType | None = None,
    ) -> Array: ...
    @overload
    def to_tensor(
        self,
        *,
        dtype: Dtype | None = None,
        nulls: Nulls = "error",
        order: Literal["C", "F"] = "C",
        copy: bool | None = None,
        columns: Sequence[str] | None = None,
        physical: bool = False,
    ) -> Tensor: ...
    @overload
    def to_tensor(
        self,
        *,
        dtype: Dtype | None = None,
        nulls: Literal["mask"] = ...,
        order: Literal["C", "F"] = "C",
        copy: bool | None = None,
        columns: Sequence[str] | None = None,
        physical: bool = False,
    ) -> tuple[Tensor, Tensor]: ...
    @overload
    def row(
        self,
        index: int,
        /,
        *,
        dtype: Dtype | None = None,
        nulls: Nulls = "error",
        copy: bool | None = None,
        physical: bool = False,
    ) -> Tensor: ...
    @overload
    def row(
        self,
        index: int,
        /,
        *,
        dtype: Dtype | None = None,
        nulls: Literal["mask"] = ...,
        copy: bool | None = None,
        physical: bool = False,
    ) -> tuple[Tensor, Tensor]: ...
    @property
    def field(self) -> Field: ...
    @property
    def type(self) -> str: ...
    @property
    def null_count(self) -> int: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Tensor]: ...
    def __array__(self, dtype: Any | None = None, *, copy: bool | None = None) -> Any: ...
    def __dlpack__(
        self,
        *,
        stream: None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> CapsuleType: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __arrow_c_array__(
        self, requested_schema: object | None = None
    ) -> tuple[CapsuleType, CapsuleType]: ...
    def __arrow_c_schema__(self) -> CapsuleType: ...

@final
class Tensor:
    __dlpack_c_exchange_api__: ClassVar[CapsuleType]
    @staticmethod
    def from_dlpack(
        x: SupportsDLPack | CapsuleType,
        /,
        *,
        device: Device | None = None,
        copy: bool | None = None,
    ) -> Tensor: ...
    @staticmethod
    def from_pointer(address: int, *, versioned: bool = True) -> Tensor: ...
    def to_arrow(self, *, copy: bool | None = None, type: ArrowType | None = None) -> Array: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def strides(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> str: ...
    @property
    def device(self) -> str: ...
    @property
    def ndim(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def readonly(self) -> bool: ...
    @property
    def is_contiguous(self) -> bool: ...
    @property
    def field(self) -> Field | None: ...
    @property
    def dictionary(self) -> Array | None: ...
    def __dlpack__(
        self,
        *,
        stream: Any | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> CapsuleType: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __array__(self, dtype: Any | None = None, *, copy: bool | None = None) -> Any: ...
    def __arrow_array__(self, type: Any | None = None) -> Any: ...
    def __getitem__(self, index: Any, /) -> Tensor: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Tensor]: ...
    def tolist(self) -> Any: ...
    def item(self) -> bool | int | float | complex: ...
    def __bool__(self) -> bool: ...
    def __int__(self) -> int: ...
    def __float__(self) -> float: ...
    def __complex__(self) -> complex: ...
    def __index__(self) -> int: ...
    def __jax_array__(self) -> Any: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

def from_dlpack(
    x: SupportsDLPack | CapsuleType,
    /,
    *,
    device: Device | None = None,
    copy: bool | None = None,
    type: ArrowType | None = None,
    mask: SupportsDLPack | CapsuleType | None = None,
) -> Array: ...
@overload
def record_batch(
    data: Mapping[str, SupportsDLPack | tuple[SupportsDLPack, SupportsDLPack]],
    /,
    names: None = None,
    *,
    copy: bool | None = None,
    type: ArrowType | None = None,
) -> Array: ...
@overload
def record_batch(
    data: SupportsDLPack,
    /,
    names: Sequence[str],
    *,
    copy: bool | None = None,
    type: ArrowType | None = None,
) -> Array: ...
def from_ragged(
    values: SupportsDLPack | CapsuleType,
    offsets: SupportsDLPack | CapsuleType,
    /,
    *,
    type: ArrowType | None = None,
    copy: bool | None = None,
    mask: SupportsDLPack | CapsuleType | None = None,
) -> Array: ...
@overload
def to_tensor(
    obj: SupportsArrowArray | SupportsArrowStream,
    /,
    *,
    dtype: Dtype | None = None,
    nulls: Nulls = "error",
    order: Literal["C", "F"] = "C",
    copy: bool | None = None,
    columns: Sequence[str] | None = None,
    physical: bool = False,
) -> Tensor: ...
@overload
def to_tensor(
    obj: SupportsArrowArray | SupportsArrowStream,
    /,
    *,
    dtype: Dtype | None = None,
    nulls: Literal["mask"] = ...,
    order: Literal["C", "F"] = "C",
    copy: bool | None = None,
    columns: Sequence[str] | None = None,
    physical: bool = False,
) -> tuple[Tensor, Tensor]: ...
@overload
def to_tensor_dict(
    obj: SupportsArrowArray | SupportsArrowStream,
    /,
    *,
    dtype: Dtype | None = None,
    nulls: Nulls = "error",
    copy: bool | None = None,
    columns: Sequence[str] | None = None,
    physical: bool = False,
) -> dict[str, Tensor]: ...
@overload
def to_tensor_dict(
    obj: SupportsArrowArray | SupportsArrowStream,
    /,
    *,
    dtype: Dtype | None = None,
    nulls: Literal["mask"] = ...,
    copy: bool | None = None,
    columns: Sequence[str] | None = None,
    physical: bool = False,
) -> dict[str, tuple[Tensor, Tensor]]: ...
@overload
def ragged(
    obj: SupportsArrowArray | SupportsArrowStream,
    /,
    *,
    dtype: Dtype | None = None,
    nulls: Nulls = "error",
    offset_type: Dtype | None = None,
    copy: bool | None = None,
    physical: bool = False,
) -> Ragged: ...
@overload
def ragged(
    obj: SupportsArrowArray | SupportsArrowStream,
    /,
    *,
    dtype: Dtype | None = None,
    nulls: Literal["mask"] = ...,
    offset_type: Dtype | None = None,
    copy: bool | None = None,
    physical: bool = False,
) -> MaskedRagged: ...
@overload
def explain(
    obj: SupportsDLPack | CapsuleType,
    /,
    *,
    copy: bool | None = None,
    type: ArrowType | None = None,
    device: Device | None = None,
    mask: SupportsDLPack | CapsuleType | None = None,
) -> Plan: ...
@overload
def explain(
    obj: SupportsArrowArray | SupportsArrowStream,
    /,
    *,
    dtype: Dtype | None = None,
    nulls: Nulls | Literal["mask"] = "error",
    order: Literal["C", "F"] = "C",
    copy: bool | None = None,
    columns: Sequence[str] | None = None,
    physical: bool = False,
    ragged: bool = False,
    offset_type: Dtype | None = None,
) -> Plan: ...
def asdlpack(
    obj: SupportsDLPack
    | SupportsArrayInterface
    | SupportsArrowArray
    | SupportsArrowStream
    | SupportsCudaArrayInterface
    | Buffer
    | CapsuleType,
    /,
    *,
    copy: bool | None = None,
) -> Tensor: ...
def _dtype_name(dtype: Dtype, /) -> str: ...
def _live() -> tuple[int, int]: ...
def _open_batches(
    source: Any,
    /,
    *,
    columns: Sequence[str] | None,
    label: str | None,
    as_matrix: bool,
    dtype: Dtype | None,
    nulls: Nulls | Literal["mask"],
    copy: bool | None,
    physical: bool,
    batch_size: int | None,
    drop_last: bool,
    shuffle: tuple[int, int] | None,
    shard: tuple[int, int],
    prefetch: int,
    progress: Any,
) -> Batches[Any]: ...
def _stop_batches() -> None: ...
def _check_names(schema: SupportsArrowSchema, names: list[str], /) -> None: ...
def _index_columns(schema: SupportsArrowSchema, /) -> list[str]: ...

_Batch_co = TypeVar("_Batch_co", covariant=True)

@final
class Batches(Iterator[_Batch_co]):
    @classmethod
    def __class_getitem__(cls, key: Any) -> GenericAlias: ...
    @property
    def dictionaries(self) -> dict[str, Array]: ...
    def __next__(self) -> _Batch_co: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        _type: type[BaseException] | None = None,
        _value: BaseException | None = None,
        _traceback: TracebackType | None = None,
    ) -> None: ...
    def close(self) -> None: ...

class Ragged(NamedTuple):
    values: Tensor
    offsets: Tensor

class MaskedRagged(NamedTuple):
    values: Tensor
    offsets: Tensor
    mask: Tensor

@final
class Field:
    @property
    def name(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def nullable(self) -> bool: ...
    @property
    def metadata(self) -> dict[str, str]: ...
    def __arrow_c_schema__(self) -> CapsuleType: ...

@final
class Plan:
    @property
    def zero_copy(self) -> bool: ...
    @property
    def bytes_copied(self) -> int: ...
    @property
    def steps(self) -> list[Step]: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class Step:
    @property
    def nbytes(self) -> int: ...
    @property
    def reasons(self) -> list[str]: ...
    def __eq__(self, other: object, /) -> bool: ...
