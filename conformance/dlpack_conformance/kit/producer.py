"""A producer of tensors that say what they are told."""

import ctypes
import gc
from collections.abc import Callable, Sequence
from ctypes import c_int64
from typing import Any

from dlpack_conformance.abi.capsule import (
    Py_IncRef,
    PyCapsule_GetName,
    PyCapsule_New,
    capsule_destructor,
    take_exception_away,
)
from dlpack_conformance.abi.dlpack import (
    CPU,
    DELETER,
    DTYPES,
    LEGACY,
    VERSIONED,
    DLDataType,
    DLDevice,
    DLManagedTensor,
    DLManagedTensorVersioned,
    DLTensor,
)
from dlpack_conformance.kit.memory import aligned
from dlpack_conformance.kit.values import nested, pack, row_major

PRODUCERS: list[Any] = []  # for the life of the process: deleters may be called at its end
POISON = 0xDB
# Of C, as the destructor: it harms no capsule, and can be called with an exception set.
NO_DESTRUCTOR = ctypes.cast(Py_IncRef, ctypes.c_void_p)


class Producer:
    """An object with the two methods, correct until a rule changes `tensor`, `flags` or another.

    `values` are the elements in the order of memory, `strides` and `offset` count elements. Each
    call of `__dlpack__` makes a managed tensor: a legacy one if none of 1.0 is asked for, unless
    `legacy` says which. The capsules are kept, so that their names can be read afterwards, and
    their destructors do nothing: `deletions` counts what they would do too.
    """

    def __init__(
        self,
        values: Sequence[Any] = (1.0, 2.0, 3.0),
        dtype: str = "float32",
        shape: Sequence[int] | None = None,
        strides: Sequence[int] | None = None,
        offset: int = 0,
        *,
        legacy: bool | None = None,
    ) -> None:
        self.values, self.offset, self.legacy = values, offset, legacy
        self.shape = (len(values),) if shape is None else tuple(shape)
        self.strides = row_major(self.shape) if strides is None else tuple(strides)
        self.content = pack(values, dtype)
        self.address = aligned(self.content)
        self.tensor = DLTensor()
        self.tensor.data = self.address + DTYPES[dtype][1] * offset // 8
        self.tensor.device = DLDevice(CPU, 0)
        self.tensor.ndim = len(self.shape)
        self.tensor.dtype = DLDataType(*DTYPES[dtype], 1)
        self.tensor.shape = (c_int64 * len(self.shape))(*self.shape)
        self.tensor.strides = (c_int64 * len(self.shape))(*self.strides)
        self.version, self.flags = (1, 3), 0
        self.manager_ctx: int | None = None
        self.deleter: Any = DELETER(self.delete)
        self.deleted: list[int] = []  # what each call of the deleter got
        self.interrupted: list[str] = []  # exceptions that were set when it was called
        self.on_delete: Callable[[], object] = lambda: None  # runs within it
        self.calls: list[dict[str, Any]] = []  # the keywords of each __dlpack__
        self.managed: list[Any] = []
        self.capsules: list[Any] = []
        PRODUCERS.append(self)

    def delete(self, managed: int) -> None:
        interrupted = take_exception_away()
        if interrupted is not None:
            self.interrupted.append(interrupted)
        self.deleted.append(managed)
        self.on_delete()
        # Who reads the elements from now on reads wrong ones.
        ctypes.memset(self.address, POISON, len(self.content))

    def manage(self, versioned: bool) -> Any:
        """A managed tensor of the tensor as it is now."""
        managed = DLManagedTensorVersioned() if versioned else DLManagedTensor()
        managed.dl_tensor = self.tensor
        managed.manager_ctx = self.manager_ctx
        managed.deleter = ctypes.cast(self.deleter, ctypes.c_void_p) if self.deleter else None
        if isinstance(managed, DLManagedTensorVersioned):
            managed.version.major, managed.version.minor = self.version
            managed.flags = self.flags
        self.managed.append(managed)
        return managed

    def place(self, managed: Any) -> int:
        """The address of the managed tensor: a rule may move it."""
        return ctypes.addressof(managed)

    def __dlpack__(self, **keywords: Any) -> Any:
        self.calls.append(keywords)
        asked = (keywords.get("max_version") or (0, 0))[0] >= 1
        versioned = asked if self.legacy is None else not self.legacy
        address = self.place(self.manage(versioned))
        capsule = PyCapsule_New(address, VERSIONED if versioned else LEGACY, NO_DESTRUCTOR)
        self.capsules.append(capsule)
        return capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.tensor.device.device_type, self.tensor.device.device_id

    def to_list(self) -> Any:
        """The elements as nested lists."""
        return nested(lambda i: self.values[self.offset + i], self.shape, self.strides)

    def untaken(self) -> int:
        """Capsules that were left with their first name and their destructor, which calls the
        deleter."""
        left = [capsule for capsule in self.capsules if capsule_destructor(capsule)]
        return sum(PyCapsule_GetName(capsule) in (LEGACY, VERSIONED) for capsule in left)

    def deletions(self) -> int:
        """Calls of the deleter, with those that the capsules' destructors make."""
        gc.collect()  # arrays that an exception's frames keep in a cycle
        return len(self.deleted) + self.untaken()
