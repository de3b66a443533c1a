"""A consumer: it reads what a producer's capsule holds."""

from typing import Any

from dlpack_conformance.abi.capsule import (
    PyCapsule_GetName,
    PyCapsule_GetPointer,
    PyCapsule_SetName,
)
from dlpack_conformance.abi.dlpack import (
    DELETER,
    DTYPES,
    LEGACY,
    MAJOR,
    MINOR,
    USED_LEGACY,
    USED_VERSIONED,
    VERSIONED,
    DLManagedTensor,
    DLManagedTensorVersioned,
)
from dlpack_conformance.kit.values import nested, read_one, row_major

KINDS: dict[bytes, Any] = {LEGACY: DLManagedTensor, VERSIONED: DLManagedTensorVersioned}
USED = {LEGACY: USED_LEGACY, VERSIONED: USED_VERSIONED}


class Imported:
    """What a capsule holds. Until `take` it is the capsule's, which deletes it when it dies."""

    def __init__(self, capsule: Any) -> None:
        self.capsule, self.taken = capsule, False
        self.name = PyCapsule_GetName(capsule)
        if self.name not in KINDS:
            raise BufferError(f"a capsule named {self.name!r} holds no tensor")
        self.managed_address = PyCapsule_GetPointer(capsule, self.name)
        self.managed = KINDS[self.name].from_address(self.managed_address)
        self.versioned = self.name == VERSIONED
        self.tensor = self.managed.dl_tensor

    def take(self) -> None:
        """After this the deleter is called by `delete` alone."""
        PyCapsule_SetName(self.capsule, USED[self.name])
        self.taken = True

    def delete(self) -> None:
        """Calls the deleter, once; nothing of the tensor is there afterwards."""
        taken, self.taken = self.taken, False
        deleter = self.managed.deleter
        if taken and deleter:
            DELETER(deleter)(self.managed_address)

    @property
    def version(self) -> tuple[int, int] | None:
        """(major, minor), None for a legacy tensor."""
        return (self.managed.version.major, self.managed.version.minor) if self.versioned else None

    @property
    def flags(self) -> int:
        return int(self.managed.flags) if self.versioned else 0

    @property
    def device(self) -> tuple[int, int]:
        return self.tensor.device.device_type, self.tensor.device.device_id

    @property
    def dtype(self) -> tuple[int, int, int]:
        return self.tensor.dtype.code, self.tensor.dtype.bits, self.tensor.dtype.lanes

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.tensor.shape[: self.tensor.ndim]) if self.tensor.ndim else ()

    @property
    def strides(self) -> tuple[int, ...]:
        """Those of a row-major tensor where there are none."""
        if not self.tensor.strides:
            return row_major(self.shape)
        return tuple(self.tensor.strides[: self.tensor.ndim])

    @property
    def address(self) -> int:
        """Of the first element; 0 if it is NULL."""
        return (self.tensor.data or 0) + int(self.tensor.byte_offset)

    def to_list(self) -> Any:
        """The elements as nested lists."""
        dtype = dtype_name(*self.dtype)
        return nested(lambda i: read_one(self.address, i, dtype), self.shape, self.strides)


def dtype_name(code: int, bits: int, lanes: int) -> str:
    """As in DTYPES."""
    for name, known in DTYPES.items():
        if (*known, 1) == (code, bits, lanes):
            return name
    raise BufferError(f"code {code} with {bits} bits and {lanes} lanes is no dtype")


def exported(array: Any, **keywords: Any) -> Imported:
    """What the array exports to a consumer of this major version, for a rule to look at."""
    try:
        return Imported(array.__dlpack__(max_version=(MAJOR, MINOR), **keywords))
    except TypeError:
        # A producer of before 2023.12.
        if keywords:
            raise
        return Imported(array.__dlpack__())
