from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple, Never, TypeVar, final, overload

from typing_extensions import Buffer, CapsuleType, disjoint_base

from ._frameworks import Framework
from .typing import (
    ArrowType,
    Device,
    Dtype,
    Nulls,
    SupportsArrayInterface,
    SupportsArrowArray,
    SupportsArrowStream,
    SupportsCudaArrayInterface,
    SupportsDLPack,
)

_OutT = TypeVar("_OutT", bound=SupportsDLPack | Buffer)

__all__ = [
    "Array",
    "Field",
    "LeftPadded",
    "MaskedLeftPadded",
    "MaskedPadded",
    "MaskedRagged",
    "MissingProtocolError",
    "Padded",
    "Plan",
    "Ragged",
    "Step",
    "StreamError",
    "Tensor",
    "UnsupportedError",
    "_Batches",
    "_BusyError",
    "_Categories",
    "_Encoder",
    "_Reading",
    "__version__",
    "_categories",
    "_check_names",
    "_check_nulls",
    "_check_objects",
    "_dtype_name",
    "_index_columns",
    "_index_steps",
    "_is_read_once",
    "_live",
    "_members",
    "_numbers",
    "_open_batches",
    "_order",
    "_recorded_stream",
    "_resume_shuffle",
    "_schema_of",
    "_seed_of_epoch",
    "_seed_of_part",
    "_stop_batches",
    "_take",
    "_unpickle_array",
    "_unpickle_tensor",
    "_way_to_table",
    "_words",
    "asdlpack",
    "explain",
    "from_dlpack",
    "from_padded",
    "from_ragged",
    "ragged",
    "record_batch",
    "to_tensor",
    "to_tensor_dict",
]

__version__: str

class MissingProtocolError(TypeError, AttributeError):
    """This object is no tensor: it has no __dlpack__, and is no DLPack capsule. The message names what makes one of it, if that is known."""

class UnsupportedError(BufferError, TypeError):
    """This data has no form on the other side as it was asked for: its type, its rank or its nulls are refused. The message names the keyword or the function that helps, if there is one."""

class StreamError(ValueError):
    """The source of an Arrow stream failed while it was read: the message is what it said."""

@disjoint_base
class Array:
    """An Arrow array that also speaks DLPack.

    Array(obj) takes any object with __arrow_c_array__ or __arrow_c_stream__ (pyarrow, polars, DuckDB,
    nanoarrow, ...) without copying, with two exceptions: the chunks of a stream are concatenated if
    there are several, and buffers of values that are not aligned are moved. copy=False refuses those.
    copy=True copies everything, values, offsets and texts, and checks the copy: for data that other code might
    still write to.
    Array.from_dlpack(x) takes a tensor.
    Tensors are exchanged by the C exchange API of DLPack 1.3 where the other library supports it, without calls
    of Python methods.

    >>> import numpy as np, pyarrow as pa
    >>> import arrow_dlpack
    >>> array = arrow_dlpack.Array(pa.array([1.5, 2.5, 3.5]))
    >>> array
    <arrow_dlpack.Array Float64, 3 values: [1.5, 2.5, 3.5]>
    >>> np.from_dlpack(array)
    array([1.5, 2.5, 3.5])
    >>> pa.array(arrow_dlpack.from_dlpack(np.arange(3)))
    <pyarrow.lib.Int64Array object at ...>
    [
      0,
      1,
      2
    ]"""

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
        mask: SupportsDLPack | CapsuleType | SupportsArrowArray | SupportsArrowStream | None = None,
    ) -> Array:
        """An Arrow array from any object with __dlpack__, or from a DLPack capsule.

        Memory is shared if it is contiguous, aligned and readable by the CPU, and gathered into a new
        buffer if not. The producer of a tensor on another device is asked to copy it to the CPU. The producer
        can still write to shared memory; copy=True prevents that.

        A tensor of more than one axis becomes arrow.fixed_shape_tensor, row-major, with each row as a value. Rows whose
        axes lie in another order in memory, such as those of channels-last images, are copied.

        device: "cpu" or the standard's (1, 0), which is what None means too: an Arrow array is on the CPU.
        copy: False to fail rather than copy, True to copy always.
        type: which of the Arrow types that can hold the tensor. "bool8" keeps booleans in a byte each,
        zero-copy; "opaque" keeps bfloat16, the floats of 8 bits and less, complex numbers and integers of
        under 8 bits as they are; "fixed_size_list" makes plain lists of more axes; "permuted" shares rows whose axes lie
        in another order, by a permutation in the type, which other readers ignore or get wrong. Any Arrow type or field
        that holds the same bytes is taken too, such as the field of the array that the tensor came from; lists of any
        length, as pa.list_(pa.float32()), share the values of a matrix as those of fixed size do.
        For decimals, times of a day and date64 each number is read, because some are no values of them: those are a
        ValueError.
        mask: a tensor of booleans, False where a value is null, as nulls="mask" gives them: one for each row,
        or one for each element, for nulls within the rows; of elements that cannot be null, such as the bytes of
        pa.binary(n), it hides all of a value or none. It is copied, to bits. An Arrow array of booleans works too.

        >>> import arrow_dlpack, numpy as np, pyarrow as pa
        >>> pa.array(arrow_dlpack.Array.from_dlpack(np.zeros((2, 3), "float32"))).type
        FixedShapeTensorType(extension<arrow.fixed_shape_tensor[value_type=float, shape=[3]]>)
        >>> days = np.array([0, 1], "int32")
        >>> arrow_dlpack.Array.from_dlpack(days, type=pa.date32())
        <arrow_dlpack.Array Date32, 2 values: [1970-01-01, 1970-01-02]>"""
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
    ) -> Tensor:
        """The array as a Tensor; the options are those of the function to_tensor, which has pad and max_length too."""
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
    ) -> Tensor:
        """One row as a Tensor, without the axis of rows: a list's values, a text's bytes, the
        tensor of an arrow.fixed_shape_tensor or arrow.variable_shape_tensor.

        A negative index counts from the end. A null row of a type whose rows differ in length or shape is
        refused, whatever nulls says. A loop over an Array yields row(i) for each row.

        >>> import arrow_dlpack, pyarrow as pa
        >>> array = arrow_dlpack.Array(pa.array([[1.0, 2.0], [], [3.0]]))
        >>> array.row(0)
        <arrow_dlpack.Tensor float64, shape (2,), strides (1,), cpu, read-only>"""
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
    def field(self) -> Field:
        """The array's name, type and metadata."""
    @property
    def type(self) -> str:
        r"""The Arrow type, in arrow-rs's words: "Int32", "Float64", "Timestamp(ms, \"UTC\")"."""
    @property
    def null_count(self) -> int:
        """How many values are null."""
    def __copy__(self) -> Array: ...
    def __deepcopy__(self, _memo: Any, /) -> Array: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Tensor]: ...
    def __contains__(self, _value: Never, /) -> bool: ...
    def __array__(self, dtype: Any | None = None, *, copy: bool | None = None) -> Any: ...
    def __jax_array__(self) -> Any: ...
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
    """A DLPack tensor of any rank, strides, dtype and device. Its memory is not read or written unless asked for.

    Tensor.from_dlpack(x) takes one from any framework; other frameworks take it with their from_dlpack. The C
    exchange API of DLPack 1.3 is used where the other library supports it.
    On the CPU it also has the buffer protocol, so that memoryview(tensor) and np.asarray(tensor) work.
    It computes nothing: == is true of the same object alone, and np.asarray(tensor) == 3 compares elements.

    >>> import numpy as np
    >>> from arrow_dlpack import Tensor
    >>> tensor = Tensor.from_dlpack(np.zeros((2, 3), dtype=np.float32).T)
    >>> tensor
    <arrow_dlpack.Tensor float32, shape (3, 2), strides (1, 3), cpu>
    >>> np.from_dlpack(tensor).shape
    (3, 2)"""

    __dlpack_c_exchange_api__: ClassVar[CapsuleType]
    @staticmethod
    def from_dlpack(
        x: SupportsDLPack | CapsuleType,
        /,
        *,
        device: Device | None = None,
        copy: bool | None = None,
    ) -> Tensor:
        """A tensor from any object with __dlpack__, or from a DLPack capsule.

        device: "cpu", "cuda:0", a device of PyTorch's or JAX's, or a (device_type, device_id) tuple of DLPack;
        None for where it is.
        copy: True for a copy; False to fail where the producer, or moving to that device,
        would copy; None copies only to get to the device."""
    @staticmethod
    def from_pointer(address: int, *, versioned: bool = True) -> Tensor:
        """A tensor from the address of a DLManagedTensorVersioned, or of a legacy DLManagedTensor if
        versioned is False, such as a C function called through ctypes returns.

        The address is not checked: it must be that of a tensor that the caller owns, and its
        descriptor must be true, or the process may crash. Its deleter is called once, when the last reference
        is dropped, or at once if the tensor is refused."""
    def to_arrow(self, *, copy: bool | None = None, type: ArrowType | None = None) -> Array:
        """The tensor as an Arrow Array: memory shared if it is contiguous, aligned and readable by the
        CPU, else gathered; copy=False fails rather than copy, copy=True copies always. type is that of
        Array.from_dlpack. Shared memory changes with the tensor: copy it if something may still write to that."""
    @property
    def shape(self) -> tuple[int, ...]:
        """Extents, in elements."""
    @property
    def strides(self) -> tuple[int, ...]:
        """Strides, in elements (not bytes)."""
    @property
    def dtype(self) -> str:
        """The element type's name, as NumPy or ml_dtypes has it: "float32", "bool", "bfloat16"."""
    @property
    def device(self) -> str:
        """Where the memory is: "cpu", "cuda:0"."""
    @property
    def ndim(self) -> int:
        """Number of axes."""
    @property
    def size(self) -> int:
        """Number of elements."""
    @property
    def nbytes(self) -> int:
        """Size of the elements in bytes, without the gaps that strides leave."""
    @property
    def readonly(self) -> bool:
        """Whether the memory must not be written to. True if the producer says so, and for legacy tensors, which
        have no such flag."""
    @property
    def is_contiguous(self) -> bool:
        """Whether the elements lie one behind the other in row-major order."""
    @property
    def field(self) -> Field | None:
        """The Arrow column that the tensor was made of, with its unit, zone and extension type; None for
        tensors from elsewhere, and for matrices."""
    @property
    def dictionary(self) -> Array | None:
        """The values that the elements are codes of, as an Array; None if they are no codes, and for matrices, whose
        columns have each their own.

        The dictionaries of a stream's batches begin with the same values: each has all those of the one
        before it, and maybe more behind them."""
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
    def __contains__(self, _value: Never, /) -> bool: ...
    def tolist(self) -> Any:
        """The elements as lists within lists, and Python's own numbers; without axes, the number."""
    def item(self) -> bool | int | float | complex:
        """The one element as a number of Python's."""
    def __bool__(self) -> bool: ...
    def __int__(self) -> int: ...
    def __float__(self) -> float: ...
    def __complex__(self) -> complex: ...
    def __index__(self) -> int: ...
    def __copy__(self) -> Tensor: ...
    def __deepcopy__(self, _memo: Any, /) -> Tensor: ...
    def __jax_array__(self) -> Any: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

def from_dlpack(
    x: SupportsDLPack | CapsuleType,
    /,
    *,
    device: Device | None = None,
    copy: bool | None = None,
    type: ArrowType | None = None,
    mask: SupportsDLPack | CapsuleType | SupportsArrowArray | SupportsArrowStream | None = None,
) -> Array:
    """The same as Array.from_dlpack: an Arrow array from any object with __dlpack__, or from a DLPack
    capsule. With mask= it is the way back from nulls="mask":

    >>> import arrow_dlpack, pyarrow as pa
    >>> values, mask = arrow_dlpack.to_tensor(pa.array([1, None, 3]), nulls="mask")
    >>> pa.array(arrow_dlpack.from_dlpack(values, mask=mask)).to_pylist()
    [1, None, 3]"""

@overload
def record_batch(
    data: Mapping[
        str,
        SupportsDLPack
        | SupportsArrowArray
        | SupportsArrowStream
        | list[Any]
        | tuple[SupportsDLPack, SupportsDLPack | SupportsArrowArray | SupportsArrowStream]
        | Ragged
        | MaskedRagged
        | Padded
        | MaskedPadded
        | LeftPadded
        | MaskedLeftPadded,
    ],
    /,
    names: None = None,
    *,
    copy: bool | None = None,
    type: ArrowType | Mapping[str, ArrowType] | None = None,
) -> Array:
    """Tensors, and Arrow data beside them, as the columns of a table: an Array of structs, which Arrow libraries take as a
    record batch.

    data: a dict from names to columns, or with names, a matrix, each column of which is one of the table. A column is a
    tensor whose rows lie along its first axis; a pair (values, mask), as to_tensor_dict gives them for nulls="mask";
    Ragged, Padded or LeftPadded; a list of tensors, whose lengths may differ, as from_ragged takes it; or an Arrow
    array or series of any type, such as the ids that the results belong to. A matrix in column-major order is shared,
    others are copied once.
    copy: that of Array.from_dlpack, for each column.
    type: that of Array.from_dlpack, for the columns that are no Arrow data; of a dict of columns also a dict from names to
    types.

    >>> import arrow_dlpack, numpy as np, pyarrow as pa
    >>> columns = {"id": pa.array(["a", "b"]), "score": np.array([0.5, 0.25]), "image": np.zeros((2, 8, 8), "uint8")}
    >>> pa.record_batch(arrow_dlpack.record_batch(columns)).schema.names
    ['id', 'score', 'image']
    >>> matrix = np.asfortranarray([[1.0, 2.0], [3.0, 4.0]])
    >>> pa.record_batch(arrow_dlpack.record_batch(matrix, names=["a", "b"])).to_pydict()
    {'a': [1.0, 3.0], 'b': [2.0, 4.0]}"""

@overload
def record_batch(
    data: SupportsDLPack,
    /,
    names: Sequence[str],
    *,
    copy: bool | None = None,
    type: ArrowType | None = None,
) -> Array: ...
@overload
def from_ragged(
    values: SupportsDLPack | CapsuleType,
    offsets: SupportsDLPack | CapsuleType,
    /,
    *,
    type: ArrowType | None = None,
    copy: bool | None = None,
    mask: SupportsDLPack | CapsuleType | SupportsArrowArray | SupportsArrowStream | None = None,
) -> Array:
    """Lists, texts or binaries from two tensors: row i is values[offsets[i]:offsets[i + 1]]. Or, without offsets, from a list
    of tensors, of which each is a row and None a null one; their values are copied, one row after the other.

    type: an Arrow type of the rows, such as pa.list_(pa.int64()), or pa.string() for values of uint8. Or "bool8",
    "opaque", "fixed_size_list" or "permuted", as in Array.from_dlpack, for the items of the lists. None for lists of what
    Array.from_dlpack makes of the values.
    copy: as in Array.from_dlpack. Offsets and texts are copied and then checked, because the producer could
    change them after the check; they are not copied if the producer flags them as a copy.
    mask: a tensor of booleans, False for the rows that are null.

    Raises BufferError for offsets that are no offsets of the values, for tensors of a list that differ in dtype or in an
    extent after the first, and for bytes that are no UTF-8.

    >>> import arrow_dlpack, numpy as np, pyarrow as pa
    >>> values, offsets = np.array([1, 2, 3]), np.array([0, 2, 2, 3], "int32")
    >>> pa.array(arrow_dlpack.from_ragged(values, offsets)).to_pylist()
    [[1, 2], [], [3]]
    >>> pa.array(arrow_dlpack.from_ragged([np.array([1, 2]), None, np.array([3])])).to_pylist()
    [[1, 2], None, [3]]"""

@overload
def from_ragged(
    values: list[Any] | tuple[Any, ...],
    offsets: None = None,
    /,
    *,
    type: ArrowType | None = None,
    copy: bool | None = None,
) -> Array: ...
@overload
def from_padded(
    values: SupportsDLPack | CapsuleType,
    lengths: SupportsDLPack | CapsuleType,
    /,
    *,
    type: ArrowType | None = None,
    mask: SupportsDLPack | CapsuleType | SupportsArrowArray | SupportsArrowStream | None = None,
    side: Literal["right", "left"] | None = None,
) -> Array:
    """Lists from a tensor (rows, length, ...) whose rows are padded, and a tensor of the rows' lengths: row i is
    values[i, :lengths[i]]. The way back from to_tensor with pad=. The values are copied. Or, without lengths, from what
    to_tensor and Loader make of padded rows, which knows its side and its mask: from_padded(*x) would not.

    type, mask: those of from_ragged.
    side: where the padding is, "right", which None stands for, or "left"; there row i is its last lengths[i] values.

    Raises BufferError for lengths that are not of the rows, or are longer than they.

    >>> import arrow_dlpack, numpy as np, pyarrow as pa
    >>> values = np.array([[1, 2], [0, 0], [3, 0]])
    >>> pa.array(arrow_dlpack.from_padded(values, np.array([2, 0, 1]))).to_pylist()
    [[1, 2], [], [3]]"""

@overload
def from_padded(
    values: tuple[Any, ...],
    lengths: None = None,
    /,
    *,
    type: ArrowType | None = None,
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
    pad: None = None,
    max_length: None = None,
    threads: int | None = None,
    framework: None = None,
    writable: bool | None = None,
    out: None = None,
) -> Tensor:
    """Arrow data as one Tensor: an array, concatenated chunks, or a table as a matrix (rows,
    columns), where a column of fixed-size lists is as many columns as a list has values.

    obj: any object with __arrow_c_array__ or __arrow_c_stream__. Lists whose rows have one length become a tensor
    (rows, length), without a copy; for other lists there are pad and ragged.
    dtype: of the result; by default that of the values. A name, NumPy's code such as "f4", or a dtype of NumPy,
    PyTorch, JAX, Arrow, polars or Python (float is "float64"). A table takes the smallest that all its columns go
    into, as pyarrow's RecordBatch.to_tensor does: int64 with float64 becomes float64, and is rounded above 2**53.
    Floats are rounded to a smaller dtype. A finite value that would become infinite in it is an error: 65519.9 goes
    into float16, 65520 does not. So is an integer that does not fit the dtype, and a float with a fraction if the
    dtype is an integer. Infinite values stay.
    Decimals become numbers, each the nearest to it, if the dtype is a float, and are refused without one.
    nulls: "error"; a number that replaces them, and that the dtype has to hold, whether there are nulls or not;
    "nan", for which integers become floats; or "mask" for a pair (values, mask), where the mask is True where a
    value is valid. NaN in a column of pandas's is a null, as pandas hands it over; in one of pyarrow's or polars'
    it is a number.
    order: "C" for a row-major matrix, "F" for a column-major one, which the columns of record_batch(matrix) may
    be already. Columns of another library are copied, because its interface does not say that they are one allocation.
    copy: False to fail rather than copy, True for a writable copy.
    columns: names of a table's columns, in the order of the result; None for all but an index of pandas's,
    which is not a feature. Other columns may have any type.
    physical: True to convert times, decimals of up to 64 bits and dictionary codes as the integers that store
    them, or with a float dtype the times as floats of those, and extension types as their storage; Tensor.field
    and Tensor.dictionary say what they mean. Codes are of the source's own type, which may be unsigned: for
    nulls=-1 pass dtype="int64".
    pad: for a column of lists, texts or binaries, a number that fills each row after its values. The result is a
    named tuple (values, lengths) of tensors: (rows, length), and how many values each row has. Null rows become
    padding unless nulls is "error", and with nulls="mask" a mask of the rows is the third tensor.
    max_length: with pad, the length of all rows, of which longer ones lose their last values; None for that of
    the longest row.
    threads: how many threads may share the work of a copy, which pays from a few megabytes on; None for as many as
    the machine runs at once, or as OMP_NUM_THREADS allows, and one in a process that multiprocessing has started,
    such as a DataLoader's worker.
    framework: "torch", "jax", "numpy", or a function that takes a Tensor and returns another library's, for such tensors
    in place of Tensor.
    writable: True copies, so that the tensors may be written to. False shares the source's memory where it can; do not
    write to such tensors. None copies for PyTorch, for JAX and for a function, and shares for NumPy and without
    framework.
    out: a tensor with __dlpack__ or a buffer, writable and contiguous (a matrix may be column-major), of the shape of the
    result: the values are written there, and out is returned. Its dtype is the one asked for, and its order the
    result's. It must not share memory with obj. A producer that speaks only the ABI before DLPack 1.0 cannot say that its
    memory may be written to, and is refused. After an error out is as it was, unless a note of the error says that some
    of it was written.

    Ctrl-C ends a long conversion with KeyboardInterrupt.

    >>> import arrow_dlpack, numpy as np, pyarrow as pa
    >>> table = pa.table({"x": [1.5, None, 2.5], "y": [1, 2, 3]})
    >>> np.asarray(arrow_dlpack.to_tensor(table, nulls=0))
    array([[1.5, 1. ],
           [0. , 2. ],
           [2.5, 3. ]])
    >>> np.asarray(arrow_dlpack.to_tensor(pa.array([[1, 2], [], [3]]), pad=-1).values)
    array([[ 1,  2],
           [-1, -1],
           [ 3, -1]])
    >>> matrix = np.empty((3, 2), "float32")
    >>> arrow_dlpack.to_tensor(table, nulls=0, out=matrix) is matrix
    True"""

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
    pad: None = None,
    max_length: None = None,
    threads: int | None = None,
    framework: None = None,
    writable: bool | None = None,
    out: None = None,
) -> tuple[Tensor, Tensor]: ...
@overload
def to_tensor(
    obj: SupportsArrowArray | SupportsArrowStream,
    /,
    *,
    dtype: Dtype | None = None,
    nulls: Nulls = "error",
    order: Literal["C"] = "C",
    copy: bool | None = None,
    columns: None = None,
    physical: bool = False,
    pad: float,
    max_length: int | None = None,
    threads: int | None = None,
    framework: None = None,
    writable: bool | None = None,
    out: None = None,
) -> Padded: ...
@overload
def to_tensor(
    obj: SupportsArrowArray | SupportsArrowStream,
    /,
    *,
    dtype: Dtype | None = None,
    nulls: Literal["mask"] = ...,
    order: Literal["C"] = "C",
    copy: bool | None = None,
    columns: None = None,
    physical: bool = False,
    pad: float,
    max_length: int | None = None,
    threads: int | None = None,
    framework: None = None,
    writable: bool | None = None,
    out: None = None,
) -> MaskedPadded: ...
@overload
def to_tensor(
    obj: SupportsArrowArray | SupportsArrowStream,
    /,
    *,
    dtype: Dtype | None = None,
    nulls: Nulls | Literal["mask"] = "error",
    order: Literal["C", "F"] = "C",
    copy: bool | None = None,
    columns: Sequence[str] | None = None,
    physical: bool = False,
    pad: float | None = None,
    max_length: int | None = None,
    threads: int | None = None,
    framework: Framework,
    writable: bool | None = None,
    out: None = None,
) -> Any: ...
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
    pad: None = None,
    max_length: None = None,
    threads: int | None = None,
    framework: None = None,
    writable: None = None,
    out: _OutT,
) -> _OutT: ...
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
    threads: int | None = None,
    framework: None = None,
    writable: bool | None = None,
) -> dict[str, Tensor]:
    """A table as a dict of tensors, one for each column, zero-copy where to_tensor of the column is.

    The options are those of to_tensor, for each column; with nulls="mask" each value is a pair (values, mask).
    Columns of lists are refused, even if their rows have one length, because what a column becomes follows from its
    type: pass them to to_tensor or ragged, or all columns to Loader, where Dense and Pad say what lists become.

    >>> import arrow_dlpack, pyarrow as pa
    >>> table = pa.table({"x": [1.5, 2.5], "y": [1, 2]})
    >>> {name: tensor.dtype for name, tensor in arrow_dlpack.to_tensor_dict(table).items()}
    {'x': 'float64', 'y': 'int64'}"""

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
    threads: int | None = None,
    framework: None = None,
    writable: bool | None = None,
) -> dict[str, tuple[Tensor, Tensor]]: ...
@overload
def to_tensor_dict(
    obj: SupportsArrowArray | SupportsArrowStream,
    /,
    *,
    dtype: Dtype | None = None,
    nulls: Nulls | Literal["mask"] = "error",
    copy: bool | None = None,
    columns: Sequence[str] | None = None,
    physical: bool = False,
    threads: int | None = None,
    framework: Framework,
    writable: bool | None = None,
) -> dict[str, Any]: ...
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
    framework: None = None,
    writable: bool | None = None,
) -> Ragged:
    """Lists, texts or binaries as a named tuple (values, offsets) of tensors: row i is
    values[offsets[i]:offsets[i + 1]]. A text's values are its UTF-8 bytes.

    nulls: "error"; a number that null values become, or "nan", as in to_tensor; or "mask" for a mask of the
    rows, True where they are valid, as a third tensor. Null rows become empty ones unless it is "error"; nulls
    inside of rows need the number or "nan", whatever the mask says of rows.
    offset_type: "int32" or "int64", if not the array's own; offsets that do not fit are an error.
    copy: False to fail rather than copy. Values share the array's memory, except those of views; offsets share it
    unless the array is a slice.
    framework, writable: as in to_tensor.

    >>> import arrow_dlpack, pyarrow as pa
    >>> values, offsets = arrow_dlpack.ragged(pa.array([[1, 2], [], [3]]))
    >>> memoryview(values).tolist(), memoryview(offsets).tolist()
    ([1, 2, 3], [0, 2, 2, 3])"""

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
    framework: None = None,
    writable: bool | None = None,
) -> MaskedRagged: ...
@overload
def ragged(
    obj: SupportsArrowArray | SupportsArrowStream,
    /,
    *,
    dtype: Dtype | None = None,
    nulls: Nulls | Literal["mask"] = "error",
    offset_type: Dtype | None = None,
    copy: bool | None = None,
    physical: bool = False,
    framework: Framework,
    writable: bool | None = None,
) -> Any: ...
@overload
def explain(
    obj: SupportsDLPack | CapsuleType,
    /,
    *,
    copy: bool | None = None,
    type: ArrowType | None = None,
    device: Device | None = None,
    mask: SupportsDLPack | CapsuleType | SupportsArrowArray | SupportsArrowStream | None = None,
) -> Plan:
    """What a conversion would copy with these options, and why: a Plan. For Arrow data the conversion is to_tensor,
    with pad and max_length too, or ragged with ragged=True, which takes offset_type; for tensors it is from_dlpack,
    with copy, type, device and mask. The result is a Tensor: there are no framework, writable and threads. A conversion
    with framework="torch" or "jax" copies everything, unless writable=False; copy=True explains that copy.

    It raises what the conversion would raise, except errors for values that do not fit the dtype, and for nulls of a
    mask in a field that is not nullable, or in some bytes of a binary. An object that can be read only once, such as a reader, is refused, because
    explain would consume it; a capsule is used up.
    Copies that the other library makes while it exports, as polars does for categoricals, are not counted.

    >>> import arrow_dlpack, pyarrow as pa
    >>> plan = arrow_dlpack.explain(pa.table({"x": [1.5, 2.5], "y": [1, 2]}))
    >>> plan.zero_copy, plan.bytes_copied
    (False, 32)
    >>> plan.steps[0].reasons
    ['int64 becomes float64', '2 columns are put side by side']"""

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
    pad: float | None = None,
    max_length: int | None = None,
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
) -> Tensor:
    """A Tensor of any object that exposes its memory, which the tensor shares and keeps alive. It has the object's
    shape, strides and dtype, and is read-only if the object is.

    >>> import array
    >>> from arrow_dlpack import asdlpack
    >>> asdlpack(array.array("f", [1.0, 2.0, 3.0]))
    <arrow_dlpack.Tensor float32, shape (3,), strides (1,), cpu>
    >>> asdlpack(memoryview(b"abcdef")[::-2])
    <arrow_dlpack.Tensor uint8, shape (3,), strides (-2,), cpu, read-only>

    The protocols are tried in this order:

    - __arrow_c_array__ or __arrow_c_stream__: as to_tensor, with only the option copy. Objects that have
      __array_interface__ too are skipped here: as Arrow data, Pillow's images are columns without height and
      width;
    - __dlpack__, or a DLPack capsule: as Tensor.from_dlpack;
    - __array_interface__;
    - __cuda_array_interface__: the memory is not read. The interface does not name the device, so device 0
      is assumed. Its stream must be None;
    - the buffer protocol: bytes, bytearray, array.array, mmap, memoryview, ctypes. While the tensor
      lives the buffer is in use: a bytearray cannot be resized, a mmap not closed.

    Later writes to the object's memory show in the tensor. copy=True copies it;
    copy=False fails where the object says that it would have to copy.

    Raises TypeError for an object that has none of these, UnsupportedError for elements that are not
    plain numbers in the machine's byte order, BufferError for impossible or unsupported descriptions. An
    exception of the object's own method is passed on: NumPy's __dlpack__ raises BufferError for structured
    arrays, texts and the other byte order."""

def _check_nulls(nulls: Nulls | Literal["mask"], /) -> None: ...
def _dtype_name(dtype: Dtype, /) -> str: ...
def _live() -> tuple[int, int]: ...
def _unpickle_array(schema: Any, data: Any) -> Array: ...
def _unpickle_tensor(
    dtype: tuple[int, int, int],
    is_padded: bool,
    shape: Sequence[int],
    data: Buffer,
    field: tuple[Any, ...] | None = None,
    dictionary: Array | None = None,
) -> Tensor: ...
def _open_batches(
    source: Any,
    options: dict[str, Any],
    /,
    *,
    batch_size: int | None,
    drop_last: bool,
    shuffle: tuple[int, int] | None,
    shard: tuple[int, int],
    prefetch: int,
    progress: Any,
    skip: int = 0,
    resume: tuple[int, int, int] | None = None,
) -> _Batches:
    """options: what columns become, as LoaderOptions.for_engine says."""

def _resume_shuffle(
    rows: int, batch_size: int, shuffle: tuple[int, int], batches: int
) -> tuple[Tensor, int, tuple[int, int, int]] | None: ...

@final
class _Categories:
    """Words, by whose positions values are coded."""

    def codes(self, column: Any, name: str, /) -> Array:
        """The code of each value of a column of this name, null where the value is."""

def _categories(words: Any, /, unknown: int | None) -> _Categories | tuple[int, int]:
    """Words in the order of their codes, and the code of other values; or the positions of two words that are one value."""

@final
class _Encoder:
    """Makes of rows what a batch of the same options is."""
    def __new__(
        cls,
        schema: Any,
        options: dict[str, Any],
        /,
        may_lack: list[str],
    ) -> _Encoder:
        """schema: of the columns in training. options: what they become. may_lack: names of those that requests may lack."""
    def encode(self, rows: Any, label: bool) -> Any:
        """What a batch of these rows is; with `label` the pair of features and labels."""
    @property
    def schema(self) -> Field:
        """The columns that are read, with their types in training; the labels are the last ones."""

def _words(words: list[Any], schema: Any, name: str, /) -> Array:
    """Words, which are Python's objects, as an array of the type of a column's values. Binaries of another width than the type
    has are null."""

def _members(schema: Any, /) -> dict[str, Any]:
    """The members of a schema's structure, as dicts, lists, texts and numbers. Of the metadata it has extension types."""

def _schema_of(members: Any, /) -> Field:
    """The schema with these members, which are hostile."""

def _seed_of_epoch(seed: int, epoch: int) -> int: ...
def _seed_of_part(seed: int, part: int) -> int: ...
def _order(count: int, seed: int) -> Tensor: ...
def _numbers(
    total: int, share: tuple[int, int, int, int], uneven: str, in_turns: bool
) -> tuple[tuple[int, int, int], tuple[int, int, int]]: ...
def _is_read_once(source: Any, /) -> bool: ...
def _recorded_stream(source: Any, /) -> CapsuleType | None: ...
def _stop_batches() -> None: ...
def _check_objects(values: Any, /, *, nan_is_null: bool) -> None: ...
def _take(table: Any, positions: Any) -> Array: ...
def _way_to_table(data: Any, /) -> str | None: ...
def _check_names(names: list[str], wanted: list[str], /) -> None: ...
def _index_columns(names: list[str], metadata: bytes, /) -> list[int]: ...
def _index_steps(metadata: bytes, /) -> list[str]: ...

class _BusyError(ValueError): ...

@final
class _Reading:
    """One reading of a source, which says what rows it takes. A source that can be read many times is not recorded."""
    def __new__(cls, source: Any, /) -> _Reading: ...
    @property
    def is_taken(self) -> bool:
        """Whether rows were taken from the source, by this reading or another one."""
    def took(self, rows: int, /) -> None:
        """Records rows that have been taken from the source."""
    def end(self) -> None:
        """Refuses a source at whose end this reading had no rows, and an earlier one had some."""

@final
class _Batches(Iterator[Any]):
    """The engine's batches. They are read once.

    close() stops the reader, and returns when the source has been released. Dropping them waits at most a second."""
    @property
    def dictionaries(self) -> dict[str, Array]:
        """The dictionary of each dictionary column, by the column's name: an Array of all values read so far. Later
        values are appended."""
    @property
    def _whole(self) -> int | None:
        """How many of these batches a source that does not fail has too, once one was made that an error cut."""
    def __next__(self) -> Any: ...
    def close(self) -> None:
        """Stops the reader and releases the source; there are no more batches."""
    def _stop(self) -> None: ...

class Ragged(NamedTuple):
    """Rows of different lengths: row i is values[offsets[i]:offsets[i + 1]]."""

    values: Tensor
    offsets: Tensor

class MaskedRagged(NamedTuple):
    """Rows of different lengths: row i is values[offsets[i]:offsets[i + 1]]. The mask is True for the rows that are valid."""

    values: Tensor
    offsets: Tensor
    mask: Tensor

class Padded(NamedTuple):
    """Rows padded to one length: values is (rows, length, ...), and row i has lengths[i] values that are not padding."""

    values: Tensor
    lengths: Tensor

class MaskedPadded(NamedTuple):
    """Rows padded to one length: values is (rows, length, ...), and row i has lengths[i] values that are not padding. The mask is True for the rows that are valid."""

    values: Tensor
    lengths: Tensor
    mask: Tensor

class LeftPadded(NamedTuple):
    """Rows padded to one length on the left: values is (rows, length, ...), and the last lengths[i] values of row i are not padding."""

    values: Tensor
    lengths: Tensor

class MaskedLeftPadded(NamedTuple):
    """Rows padded to one length on the left: values is (rows, length, ...), and the last lengths[i] values of row i are not padding. The mask is True for the rows that are valid."""

    values: Tensor
    lengths: Tensor
    mask: Tensor

@final
class Field:
    """The name, type and metadata of an Arrow array; Arrow libraries take it by __arrow_c_schema__.

    >>> import arrow_dlpack, pyarrow as pa
    >>> tensor = arrow_dlpack.to_tensor(pa.array([0, 1], pa.timestamp("ms", "UTC")), physical=True)
    >>> tensor.dtype, pa.field(tensor.field).type
    ('int64', TimestampType(timestamp[ms, tz=UTC]))"""
    @property
    def name(self) -> str:
        """The name; that of an array is empty."""
    @property
    def type(self) -> str:
        r"""The Arrow type, in arrow-rs's words: "Int32", "Timestamp(ms, \"UTC\")"."""
    @property
    def nullable(self) -> bool:
        """Whether there may be nulls."""
    @property
    def metadata(self) -> dict[str, str]:
        """Metadata, as texts; an extension type is under "ARROW:extension:name"."""
    def __arrow_c_schema__(self) -> CapsuleType: ...

@final
class Plan:
    """What a conversion would copy, and why; explain(obj) makes it.

    >>> import arrow_dlpack, pyarrow as pa
    >>> arrow_dlpack.explain(pa.array([1, 2, 3]))
    <arrow_dlpack.Plan zero-copy>
    >>> arrow_dlpack.explain(pa.array([True, False]))
    <arrow_dlpack.Plan copies 2 bytes: Arrow stores booleans as bits>"""
    @property
    def zero_copy(self) -> bool:
        """Whether the result would share the existing memory."""
    @property
    def bytes_copied(self) -> int:
        """Bytes that would be written."""
    @property
    def steps(self) -> list[Step]:
        """The allocations that would be made, in order: a list of Step."""
    def __eq__(self, other: object, /) -> bool: ...

@final
class Step:
    """One allocation that a conversion would make and fill."""
    @property
    def nbytes(self) -> int:
        """Its size in bytes."""
    @property
    def reasons(self) -> list[str]:
        """Why the existing memory cannot be used: a list of at least one text."""
    def __eq__(self, other: object, /) -> bool: ...
