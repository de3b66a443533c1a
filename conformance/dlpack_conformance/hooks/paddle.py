"""PaddlePaddle."""

from collections.abc import Sequence
from typing import Any

import numpy
import paddle

from dlpack_conformance.rule import NotApplicable

paddle.set_device("cpu")


def dtypes() -> list[str]:
    names = ["bool", "int8", "int16", "int32", "int64", "uint8", "float16", "bfloat16"]
    return [*names, "float32", "float64", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2"]


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
        tensor = paddle.to_tensor(numpy.array(values, "uint8")).view(dtype)
    elif dtype == "bfloat16":
        tensor = paddle.to_tensor(numpy.array(values, "float32")).astype(dtype)
    else:
        tensor = paddle.to_tensor(numpy.array(values, dtype))
    shape = [len(values)] if shape is None else list(shape)
    if strides is None:
        return tensor[offset:].reshape(shape)
    return tensor.as_strided(shape, list(strides), offset * tensor.element_size())


def take(x: Any, **keywords: Any) -> Any:
    return paddle.from_dlpack(x, **keywords)


def views(array: Any) -> list[Any]:
    return [array[1:], array.reshape([1, -1])]


def cpu() -> Any:
    return "cpu"


def to_list(array: Any) -> Any:
    if dtype_of(array).startswith("float8"):
        return array.view("uint8").tolist()
    return (array.astype("float32") if dtype_of(array) == "bfloat16" else array).tolist()


def dtype_of(array: Any) -> str:
    return str(array.dtype).removeprefix("paddle.")


def shape_of(array: Any) -> tuple[int, ...]:
    return tuple(array.shape)


def address(array: Any) -> int:
    return int(array.data_ptr())


def write(array: Any, value: Any) -> None:
    array[(0,) * array.ndim] = value


def odd(what: str) -> Any:
    if what == "sparse":
        return paddle.eye(2).to_sparse_coo(2)
    raise NotApplicable(f"no {what} tensors")
