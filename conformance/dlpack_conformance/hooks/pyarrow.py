"""pyarrow: tensors for DLPack, arrays and readers for Arrow."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy
import pyarrow

from dlpack_conformance.kit.arrow_field import Field, Typed, schema_capsule
from dlpack_conformance.rule import NotApplicable


def dtypes() -> list[str]:
    reals = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
    return [*reals, "float16", "float32", "float64"]


def make(
    values: Sequence[Any],
    dtype: str = "float32",
    shape: Sequence[int] | None = None,
    *,
    strides: Sequence[int] | None = None,
    offset: int = 0,
    readonly: bool = False,
) -> Any:
    if min(strides or [0]) < 0:
        raise NotApplicable("no negative strides")
    array = numpy.array(values, dtype)[offset:]
    shape = (len(values),) if shape is None else shape
    if strides is None:
        array = array.reshape(shape)
    else:
        steps = [stride * array.itemsize for stride in strides]
        array = numpy.lib.stride_tricks.as_strided(array, shape, steps)
    if readonly:
        array.flags.writeable = False
    return pyarrow.Tensor.from_numpy(array)


def take(x: Any, **keywords: Any) -> Any:
    return pyarrow.Tensor.from_dlpack(x, **keywords)


def views(array: Any) -> list[Any]:
    return [pyarrow.Tensor.from_numpy(array.to_numpy())]


def cpu() -> tuple[int, int]:
    return (1, 0)


def to_list(array: Any) -> Any:
    return array.to_numpy().tolist()


def dtype_of(array: Any) -> str:
    return {"halffloat": "float16", "float": "float32", "double": "float64"}.get(
        str(array.type), str(array.type)
    )


def shape_of(array: Any) -> tuple[int, ...]:
    return tuple(array.shape)


def address(array: Any) -> int:
    return int(array.to_numpy().ctypes.data)


def write(array: Any, value: Any) -> None:
    view = array.to_numpy()
    view[(0,) * view.ndim] = value


def odd(what: str) -> Any:
    if what == "text":
        return pyarrow.array(["a", "b"])
    if what == "datetime":
        return pyarrow.array([0], pyarrow.timestamp("s"))
    if what == "layout":
        return pyarrow.array([True, False])  # of bits
    raise NotApplicable(f"no {what} arrays")


def arrow_type(field: Field) -> Any:
    # pyarrow.field takes structs only.
    return pyarrow.Field._import_from_c_capsule(schema_capsule(field)).type


def arrow_array(field: Field, values: Sequence[Any]) -> Any:
    kind = arrow_type(field)
    if isinstance(kind, pyarrow.ExtensionType):
        return kind.wrap_array(pyarrow.array(values, kind.storage_type))
    return pyarrow.array(values, kind)


def arrow_stream(field: Field, chunks: Sequence[Sequence[Any]], once: bool = False) -> Any:
    arrays = [arrow_array(field, chunk) for chunk in chunks]
    if field.format != "+s":
        chunked = pyarrow.chunked_array(arrays, arrow_type(field))
        if once:
            raise NotApplicable("readers are of record batches")
        return chunked
    schema = pyarrow.schema(Typed(field))
    batches = [pyarrow.RecordBatch.from_struct_array(array) for array in arrays]
    if once:
        return pyarrow.RecordBatchReader.from_batches(schema, batches)
    return pyarrow.Table.from_batches(batches, schema)


def arrow_failing_stream(field: Field, chunks: Sequence[Sequence[Any]], message: str) -> Any:
    def batches() -> Iterator[Any]:
        for chunk in chunks:
            yield pyarrow.RecordBatch.from_struct_array(arrow_array(field, chunk))
        raise OSError(message)

    return pyarrow.RecordBatchReader.from_batches(pyarrow.schema(Typed(field)), batches())


def arrow_device_array(field: Field, values: Sequence[Any]) -> Any:
    return arrow_array(field, values)


def arrow_slice(array: Any, start: int, length: int) -> Any:
    return array.slice(start, length)


def arrow_to_list(array: Any) -> Any:
    if isinstance(array, pyarrow.RecordBatchReader):
        array = array.read_all()
    return array.to_pylist()


def arrow_take(x: Any) -> Any:
    return pyarrow.array(x)


def arrow_take_stream(x: Any) -> Any:
    return pyarrow.chunked_array(x)


def arrow_iterate(x: Any) -> Iterator[Any]:
    return iter(pyarrow.RecordBatchReader.from_stream(x))


def arrow_take_schema(x: Any) -> Any:
    return pyarrow.Field._import_from_c_capsule(x.__arrow_c_schema__())


class OfDevice:
    """Only the device method of an object."""

    def __init__(self, x: Any) -> None:
        self.x = x

    def __arrow_c_device_array__(self, requested_schema: Any = None, **keywords: Any) -> Any:
        return self.x.__arrow_c_device_array__(requested_schema, **keywords)


def arrow_take_device(x: Any) -> Any:
    return pyarrow.array(OfDevice(x))


def arrow_requests() -> list[tuple[Field, Field, list[Any]]]:
    return [
        (Field("i"), Field("l"), [1, None, 3]),
        (Field("u"), Field("U"), ["a", None, "c"]),
        (Field("u"), Field("vu"), ["a", None, "c"]),
    ]


def bridge_tensor(x: Any) -> Any:
    return pyarrow.array(x)


def bridge_array(x: Any) -> Any:
    return pyarrow.Array.from_dlpack(x)
