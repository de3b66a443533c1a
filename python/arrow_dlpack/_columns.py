"""What a function of `udf` gets of Arrow columns, and the column that it returns, by pyarrow."""

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from . import _core
from ._arrow_types import has_matrices, is_list, items_of
from ._core import Array, Tensor, from_dlpack, to_tensor
from ._frames import check_objects, listed
from ._frameworks import copying, mapped, narrow_of, taker

if TYPE_CHECKING:
    from .udf import Input, TensorUdf


def arrow_type(dtype: str, shape: Sequence[int], kind: str) -> Any:
    """The type of a column whose rows have this shape."""
    arrow = pa.type_for_alias(dtype)
    if shape and kind == "fixed_shape_tensor":
        return pa.fixed_shape_tensor(arrow, shape)
    for extent in reversed(shape):
        arrow = pa.list_(arrow, extent)
    return arrow


def judge(udf: "TensorUdf") -> None:
    """Fails where no rows would: for a fill value that an input cannot hold, say."""
    for input in udf.inputs:
        empty = pa.array([], arrow_type(input.accepts, input.row, "fixed_size_list"))
        rows = pa.RecordBatch.from_arrays([empty] * len(input.arguments), input.arguments)
        tensors(udf, input, rows)


def results(udf: "TensorUdf", columns: Sequence[Any], kind: str) -> Any:
    """The results for columns of any library."""
    if len(columns) != len(udf.arguments):
        takes = f"{len(udf.arguments)} arguments ({', '.join(udf.arguments)})"
        raise TypeError(f"{udf.name} takes {takes}, not {len(columns)}")
    output = arrow_type(udf.output.dtype, udf.output.shape, kind)
    rows = pa.RecordBatch.from_arrays(arrays(udf, columns), udf.arguments)
    complete = complete_rows(rows) if udf.nulls == "propagate" else None
    given = rows if complete is None else kept(rows, complete)
    # A batch without rows does not reach the function.
    step = max(min(udf.batch_rows or len(given), len(given)), 1)
    slices = [given.slice(start, step) for start in range(0, len(given), step)]
    try:
        found = [storage(result(udf, slice, output)) for slice in slices]
    except ValueError:
        # An error of a value has the row among all of them.
        for input in udf.inputs:
            tensors(udf, input, rows, 0 if udf.nulls == "propagate" else udf.nulls)
        raise
    if not found:
        array = pa.nulls(len(rows), getattr(output, "storage_type", output))
    else:
        array = found[0] if len(found) == 1 else pa.concat_arrays(found)
        array = array if complete is None else put_back(array, complete)
    extended = isinstance(output, pa.BaseExtensionType)
    return pa.ExtensionArray.from_storage(output, array) if extended else array


def result(udf: "TensorUdf", rows: Any, output: Any) -> Any:
    """What the function returns for some rows, as a column, if it is what was declared."""
    arguments = [udf.state.get()] if udf.state else []
    for input in udf.inputs:
        given = tensors(udf, input, rows)
        try:
            made = mapped(given, taker(udf.framework), input.name)
        except ValueError as error:
            if udf.framework != "jax":
                raise
            raise ValueError(f"{udf.name}: {error}") from error
        arguments.append(made if udf.nulls == "mask" else made[0])
    returned = udf.function(*arguments)
    try:
        found = Tensor.from_dlpack(returned, device="cpu")
    except (BufferError, TypeError) as error:
        raise type(error)(
            f"{udf.name}: its result must be one tensor, without nulls: {error}"
        ) from error
    expected = (len(rows), *udf.output.shape)
    if (found.dtype, found.shape) != (udf.output.dtype, expected):
        what, declared = f"{found.dtype} {found.shape}", f"{udf.output.dtype} {expected}"
        if udf.framework == "jax" and narrow_of(udf.output.dtype) == found.dtype:
            declared += ', of which JAX makes it unless jax.config.update("jax_enable_x64", True)'
        raise ValueError(f"{udf.name} returned {what}, not {declared}")
    return pa.array(found.to_arrow(type=output))


def tensors(udf: "TensorUdf", input: "Input", rows: Any, nulls: Any = None) -> tuple[Tensor, ...]:
    """An input's tensor for some rows, and the mask if there is one; nulls: of the function."""
    source = rows.select(input.columns) if input.columns else rows.column(input.name)
    if nulls is None:
        nulls = "error" if udf.nulls == "propagate" else udf.nulls
    try:
        # PyTorch writes to what is read-only, and the memory is that of the caller's table.
        made = to_tensor(source, dtype=input.dtype, nulls=nulls, copy=copying(udf.framework))
    except (BufferError, ValueError) as error:
        fact, physical, _ = str(error).partition("pass physical=True")
        # The keyword is of to_tensor.
        told = fact + cast_of(rows.select(input.arguments).schema.types) if physical else fact
        raise type(error)(f'{udf.name}: "{input.name}": {told}') from error
    pair = made if isinstance(made, tuple) else (made,)
    if (shape := pair[0].shape[1:]) != input.shape:
        has = f"its rows have shape {shape}, not {input.shape}"
        raise ValueError(f'{udf.name}: "{input.name}": {has}')
    return pair


def cast_of(types: Sequence[Any]) -> str:
    """What makes numbers of the first column that is not just numbers."""
    for type in types:
        if isinstance(type, pa.BaseExtensionType):
            return "pass its storage, in pyarrow pyarrow.array(x).storage"
        if pa.types.is_dictionary(type):
            values = ", or its values, pyarrow.array(x).dictionary_decode()"
            values *= pa.types.is_primitive(type.value_type)
            return f"pass its codes, in pyarrow pyarrow.array(x).indices{values}"
        if pa.types.is_decimal(type):
            return 'cast it in the query, or before the call, in pyarrow x.cast("float64")'
        if pa.types.is_temporal(type):
            dtype = f"int{type.bit_width}"
            return f'cast it in the query, or before the call, in pyarrow x.cast("{dtype}")'
    return "make numbers of its values before the call"


def arrays(udf: "TensorUdf", columns: Sequence[Any]) -> list[Any]:
    """Columns of one length, each in one piece."""
    found = []
    for name, column in zip(udf.arguments, columns, strict=True):
        try:
            found.append(one_array(column))
        except (NotImplementedError, TypeError, ValueError) as error:
            kind = ValueError if isinstance(error, ValueError) else TypeError
            told = str(error)
            if isinstance(error, NotImplementedError) or hasattr(column, "__dlpack__"):
                way = _way_of_tensor(column) or _core._way_to_table(column)
                told = f"{told}: {way}" if way else told
            raise kind(f'{udf.name}: "{name}" must be a column: {told}') from error
    lengths = [len(array) for array in found]
    if len(set(lengths)) > 1:
        named = zip(udf.arguments, lengths, strict=True)
        told = ", ".join(f'"{name}" has {length}' for name, length in named)
        raise ValueError(f"{udf.name}: its arguments differ in their rows: {told}")
    return found


def _way_of_tensor(column: Any) -> str | None:
    """What makes a column of a tensor, if anything does."""
    with suppress(Exception):
        from_dlpack(column)
        return "arrow_dlpack.from_dlpack(x) makes one of a tensor"
    return None


def one_array(column: Any) -> Any:
    """A column in one piece."""
    if isinstance(column, pa.Array):
        return column
    if not isinstance(column, pa.ChunkedArray):
        # Which refuses what pyarrow misreads, such as objects of polars.
        is_arrow = hasattr(column, "__arrow_c_stream__") or hasattr(column, "__arrow_c_array__")
        if is_arrow:
            return pa.array(Array(column))
        check_objects(column := listed(column))
        return pa.array(column)
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def storage(array: Any) -> Any:
    return getattr(array, "storage", array)


def complete_rows(rows: Any) -> Any:
    """Which rows have no null anywhere, as an array; None if all."""
    columns = [column for column in map(storage, rows.columns) if has_nulls(column)]
    found = None
    for complete in map(complete_in, columns):
        found = complete if found is None else pc.and_(found, complete)
    return found


def has_nulls(array: Any) -> bool:
    if array.null_count or not is_list(array.type):
        return bool(array.null_count)
    return has_nulls(storage(items_of(array)))


def complete_in(array: Any) -> Any:
    """Which rows have no null in them: of a row of a list, all bytes of the mask are ones."""
    if not is_list(array.type) or array.null_count == len(array):
        return array.is_valid()
    try:
        _, mask = to_tensor(array, nulls="mask")
    except (BufferError, ValueError):
        return array.is_valid()  # its input is refused by name
    row = pa.binary(mask.size // len(array))
    masks = pa.Array.from_buffers(row, len(array), [None, pa.py_buffer(mask)])
    return pc.equal(masks, pa.scalar(b"\1" * row.byte_width, row))


def kept(rows: Any, complete: Any) -> Any:
    """The complete rows."""
    if not any(map(has_matrices, rows.schema.types)):
        return rows.filter(complete)
    return pa.record_batch(_core._take(rows, pc.indices_nonzero(complete)))


def put_back(results: Any, complete: Any) -> Any:
    """The results of complete rows, with nulls where the other rows were."""
    places = pc.subtract(pc.cumulative_sum(complete.cast(pa.int64())), 1)
    return results.take(pc.if_else(complete, places, pa.scalar(None, pa.int64())))
