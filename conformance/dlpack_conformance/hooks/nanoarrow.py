"""nanoarrow."""

from collections.abc import Sequence
from typing import Any

import nanoarrow
import nanoarrow.device

from dlpack_conformance.kit.arrow_field import Field, Typed
from dlpack_conformance.kit.arrow_producer import ArrowProducer

# 0.9.0 writes out of bounds when it exports or takes views with four buffers: AR207 shows it.
arrow_fatal = ("vu", "vz")


def arrow_array(field: Field, values: Sequence[Any]) -> Any:
    try:
        if field.format in ("vu", "vz"):
            raise NotImplementedError("0.9.0 writes out of bounds when it builds views")
        return nanoarrow.c_array(values, nanoarrow.c_schema(Typed(field)))
    except (NotImplementedError, ValueError):
        # It builds no nested ones of Python's values, and hands on what it takes.
        return nanoarrow.c_array(ArrowProducer(field, values))


def arrow_stream(field: Field, chunks: Sequence[Sequence[Any]], once: bool = False) -> Any:
    arrays = [arrow_array(field, chunk) for chunk in chunks]
    # With a schema it asks its own arrays for it, which answer no requests.
    schema = None if arrays else nanoarrow.c_schema(Typed(field))
    array = nanoarrow.Array.from_chunks(arrays, schema)
    return nanoarrow.ArrayStream(array) if once else array


def arrow_device_array(field: Field, values: Sequence[Any]) -> Any:
    return nanoarrow.device.c_device_array(arrow_array(field, values))


def arrow_slice(array: Any, start: int, length: int) -> Any:
    return array[start : start + length]


def arrow_to_list(array: Any) -> Any:
    return nanoarrow.Array(array).to_pylist()


def arrow_take(x: Any) -> Any:
    return nanoarrow.c_array(x)


def arrow_take_stream(x: Any) -> Any:
    return nanoarrow.ArrayStream(x).read_all()


def arrow_take_schema(x: Any) -> Any:
    return nanoarrow.c_schema(x)


def arrow_take_device(x: Any) -> Any:
    return nanoarrow.device.c_device_array(x)
