"""PyTorch."""

from collections.abc import Sequence
from typing import Any

import torch

from dlpack_conformance.rule import NotApplicable


def dtypes() -> list[str]:
    names = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
    names += ["float16", "float32", "float64", "bfloat16", "complex64", "complex128"]
    return [*names, "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"]


def make(
    values: Sequence[Any],
    dtype: str = "float32",
    shape: Sequence[int] | None = None,
    *,
    strides: Sequence[int] | None = None,
    offset: int = 0,
    readonly: bool = False,
) -> Any:
    if readonly:
        raise NotApplicable("no read-only tensors")
    if min(strides or [0]) < 0:
        raise NotApplicable("no negative strides")
    if dtype.startswith("float8"):
        tensor = torch.tensor(values, dtype=torch.uint8).view(getattr(torch, dtype))
    else:
        tensor = torch.tensor(values, dtype=getattr(torch, dtype))
    shape = (len(values),) if shape is None else shape
    if strides is None:
        return tensor[offset:].reshape(tuple(shape))
    return tensor.as_strided(tuple(shape), tuple(strides), offset)


def take(x: Any, **keywords: Any) -> Any:
    return torch.from_dlpack(x, **keywords)


def views(array: Any) -> list[Any]:
    return [array[:], array[1:], array.reshape(1, -1)]


def to_list(array: Any) -> Any:
    if array.dtype.itemsize == 1 and array.dtype.is_floating_point:
        return array.view(torch.uint8).tolist()
    return array.tolist()


def dtype_of(array: Any) -> str:
    return str(array.dtype).removeprefix("torch.")


def shape_of(array: Any) -> tuple[int, ...]:
    return tuple(array.shape)


def address(array: Any) -> int:
    return int(array.data_ptr())


def write(array: Any, value: Any) -> None:
    array[(0,) * array.ndim] = value


def odd(what: str) -> Any:
    if what == "unshared":
        return torch.tensor([1j]).conj()
    if what == "sparse":
        return torch.eye(2).to_sparse()
    if what == "meta":
        return torch.zeros(2, device="meta")
    raise NotApplicable(f"no {what} tensors")
