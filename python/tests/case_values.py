"""What pyarrow, NumPy and ml_dtypes say that the values of a column are."""

import math
from dataclasses import dataclass, replace

import ml_dtypes
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

LIST_VIEWS = (pa.ListViewType, pa.LargeListViewType)
OFFSETS = {pa.ListType: "int32", pa.LargeListType: "int64", pa.ListViewType: "int32"}
OFFSETS |= {pa.LargeListViewType: "int64"}
LARGE_TEXTS = (pa.large_string(), pa.large_binary())
VIEWED_TEXTS = (pa.string_view(), pa.binary_view())


@dataclass(frozen=True)
class Cells:
    """The values of a column as an array, whatever stands where there is a null."""

    values: np.ndarray
    valid: np.ndarray
    # Whether Arrow has these very bytes in this order.
    stored: bool = True

    @property
    def nulls(self) -> int:
        """Cells of null rows, and nulls in rows."""
        return int(np.count_nonzero(~self.valid))

    def transposed(self, axes: list[int]) -> "Cells":
        return replace(self, values=self.values.transpose(axes), valid=self.valid.transpose(axes))


def dtype_of(name: str) -> np.dtype:
    """NumPy's or ml_dtypes'."""
    return np.dtype(getattr(ml_dtypes, name, name))


def plain(value: object) -> object:
    """As JSON has it."""
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, complex):
        return [plain(value.real), plain(value.imag)]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def cells(array: pa.Array, as_floats: bool = False) -> Cells:
    """Of any column whose rows all have the same shape; temporal ones as the integers they are."""
    dtype = array.type
    if isinstance(dtype, pa.BaseExtensionType):
        return extension_cells(array)
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    if isinstance(dtype, pa.FixedSizeListType):
        inner = cells(values_of(array))
        shape = (len(array), dtype.list_size)
        rows = [part.reshape(*shape, *part.shape[1:]) for part in (inner.values, inner.valid)]
        whole = valid.reshape(-1, *[1] * (rows[1].ndim - 1))
        return Cells(rows[0], whole & rows[1], inner.stored)
    if isinstance(dtype, pa.DictionaryType):
        return cells(array.indices)
    if isinstance(dtype, pa.FixedSizeBinaryType) and not pa.types.is_decimal(dtype):
        width = dtype.byte_width
        rows = [list(row if row is not None else bytes(width)) for row in array.to_pylist()]
        values = np.array(rows, np.uint8).reshape(len(array), width)
        return Cells(values, np.broadcast_to(valid[:, None], values.shape))
    if as_floats and pa.types.is_decimal(dtype):
        numbers = [float(number or 0) for number in array.to_pylist()]
        return Cells(np.array(numbers), valid, stored=False)
    if pa.types.is_temporal(dtype) or pa.types.is_decimal(dtype):
        array = array.view(pa.int32() if dtype.bit_width == 32 else pa.int64())
    values = array.fill_null(pa.scalar(0).cast(array.type)).to_numpy(zero_copy_only=False)
    return Cells(values, valid, stored=not pa.types.is_boolean(dtype))


def extension_cells(array: pa.ExtensionArray) -> Cells:
    dtype, storage = array.type, array.storage
    found = cells(storage)
    if isinstance(dtype, pa.Bool8Type):
        stored = bool(np.isin(found.values, (0, 1)).all())
        return replace(found, values=found.values != 0, stored=stored)
    if isinstance(dtype, pa.OpaqueType) and dtype.vendor_name == "dlpack":
        values = found.values.view(dtype_of(dtype.type_name))
        if values.ndim == 2:  # a complex number is two
            return Cells(values[:, 0], found.valid[:, 0])
        return replace(found, values=values)
    if isinstance(dtype, pa.FixedShapeTensorType):
        shape = (len(array), *dtype.shape)
        found = replace(found, values=found.values.reshape(shape), valid=found.valid.reshape(shape))
        order = dtype.permutation or range(len(dtype.shape))
        found = found.transposed([0, *(axis + 1 for axis in order)])
        involution = all(order[order[axis]] == axis for axis in order)
        if found.stored and found.nulls == 0 and len(array) and involution:
            # pyarrow's own opinion, of layout and values. Of other permutations it has none that
            # could be true: pyarrow 26 gives their rows strides that overlap.
            theirs = array.to_tensor()
            assert theirs.strides == found.values.strides
            assert np.array_equal(theirs.to_numpy(), found.values)
    return found


def values_of(array: pa.Array) -> pa.Array:
    """All values of a fixed_size_list's rows, those of null rows too."""
    size = array.type.list_size
    return array.values.slice(array.offset * size, len(array) * size)


def with_nan(found: Cells) -> np.ndarray:
    """NaN for null, in the dtype that pyarrow promotes to."""
    values = found.values
    if values.dtype.kind in "b":  # which pyarrow does not take
        values = values.astype(np.float32)
    if values.dtype.kind not in "iuf":  # which pyarrow does not know
        return np.where(found.valid, values, np.array(math.nan, values.dtype))
    column = pa.array(values.ravel(), mask=~found.valid.ravel())
    matrix = pa.record_batch({"x": column}).to_tensor(null_to_nan=True)
    return matrix.to_numpy().reshape(values.shape)


@dataclass(frozen=True)
class Rows:
    """Rows of different lengths."""

    values: Cells
    offsets: np.ndarray
    valid: np.ndarray
    # Whether Arrow has these very values and offsets in this order.
    values_stored: bool
    offsets_stored: bool


def rows(array: pa.Array) -> Rows:
    """Of lists, texts and binaries; a null row is an empty one."""
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    dtype, valid = array.type, array.is_valid().to_numpy(zero_copy_only=False)
    if isinstance(dtype, tuple(OFFSETS)):
        lengths = pc.list_value_length(array).fill_null(0)
        values = cells(array.flatten())
        if isinstance(dtype, LIST_VIEWS):
            starts, sizes = array.offsets.to_numpy(), array.sizes.to_numpy()
            stored, kept = consecutive(starts[valid], sizes[valid]), False
        else:
            starts = array.offsets.to_numpy()
            stored, kept = as_stored(starts, valid)
        kind = OFFSETS[type(dtype)]
    else:
        texts = [row.encode() if isinstance(row, str) else row or b"" for row in array.to_pylist()]
        lengths = pa.array([len(text) for text in texts], pa.int64())
        joined = np.frombuffer(b"".join(texts), np.uint8)
        values = Cells(joined, np.ones(len(joined), bool))
        kind = "int64" if dtype in (*LARGE_TEXTS, *VIEWED_TEXTS) else "int32"
        if dtype in VIEWED_TEXTS:
            stored = kept = False
        else:
            starts = np.frombuffer(array.buffers()[1], kind)[array.offset :][: len(array) + 1]
            stored, kept = as_stored(starts, valid)
    ends = np.cumsum(lengths.to_numpy(zero_copy_only=False), dtype=kind)
    offsets = np.concatenate([np.zeros(1, kind), ends])
    return Rows(values, offsets, valid, stored and values.stored, kept)


def as_stored(starts: np.ndarray, valid: np.ndarray) -> tuple[bool, bool]:
    """Whether values and offsets can stay where they are: values of null rows go."""
    sizes = np.diff(starts)
    kept = not sizes[~valid].any() and starts[0] == 0
    return consecutive(starts[:-1][valid], sizes[valid]), bool(kept)


def consecutive(starts: np.ndarray, sizes: np.ndarray) -> bool:
    starts, sizes = starts[sizes > 0], sizes[sizes > 0]
    return bool(np.array_equal(starts[1:], (starts + sizes)[:-1]))
