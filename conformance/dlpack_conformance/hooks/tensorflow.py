"""TensorFlow, whose `from_dlpack` takes capsules."""

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy
import tensorflow

from dlpack_conformance.rule import NotApplicable

# `take` asks the producer, TensorFlow does not.
not_asked = [f"DL{number}" for number in (401, 403, 404, 405, 414, 416, 417, 418, 423, 434)]


def dtypes() -> list[str]:
    names = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
    names += ["bool", "float16", "float32", "float64", "bfloat16", "complex64", "complex128"]
    return names


def make(
    values: Sequence[Any],
    dtype: str = "float32",
    shape: Sequence[int] | None = None,
    *,
    strides: Sequence[int] | None = None,
    offset: int = 0,
    readonly: bool = False,
) -> Any:
    if strides is not None or offset:
        raise NotApplicable("no strides")
    its = numpy.array(values, ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    return tensorflow.constant(its.reshape((len(values),) if shape is None else tuple(shape)))


def take(x: Any) -> Any:
    capsule = x.__dlpack__() if hasattr(x, "__dlpack__") else x
    return tensorflow.experimental.dlpack.from_dlpack(capsule)


def to_list(array: Any) -> Any:
    return array.numpy().tolist()


def dtype_of(array: Any) -> str:
    return str(array.dtype.name)


def shape_of(array: Any) -> tuple[int, ...]:
    return tuple(array.shape)
