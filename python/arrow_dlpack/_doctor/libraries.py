"""The libraries on either side: how each takes data, hands it out, and says where it lies.

One table for the tests, docs/reference/compatibility.md and ``python -m arrow_dlpack``.
``import arrow_dlpack`` does not read it, and a library is imported when one of its functions is
first called.
"""

# ruff: noqa: PLW0108 (the lambdas are what puts the imports off)

import importlib
import importlib.metadata
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any


class _Later:
    """Stands for a module until something of it is used, which puts the module in its place."""

    def __init__(self, name: str, module: str | None = None) -> None:
        self._name, self._module = name, module or name

    def __getattr__(self, attribute: str) -> Any:
        module = globals()[self._name] = importlib.import_module(self._module)
        return getattr(module, attribute)


arro3 = _Later("arro3", "arro3.core")
datafusion = _Later("datafusion")
duckdb = _Later("duckdb")
jax = _Later("jax")
minarrow = _Later("minarrow")
mlx = _Later("mlx", "mlx.core")
nanoarrow = _Later("nanoarrow")
nanoarrow_buffers = _Later("nanoarrow_buffers", "nanoarrow.c_buffer")
numpy = _Later("numpy")
onnxruntime = _Later("onnxruntime")
paddle = _Later("paddle")
pandas = _Later("pandas")
polars = _Later("polars")
pyarrow = _Later("pyarrow")
tensorflow = _Later("tensorflow")
torch = _Later("torch")
tvm_ffi = _Later("tvm_ffi")


@dataclass(frozen=True, kw_only=True)
class Library:
    """What is on PyPI as `distribution` and imported as `module`."""

    name: str
    module: str
    distribution: str

    def __repr__(self) -> str:
        return self.name

    @property
    def short(self) -> str:
        """The name of the package, where `name` says more."""
        return self.name.partition(" ")[0]

    def load(self) -> ModuleType:
        return importlib.import_module(self.module)

    def version(self) -> str:
        try:
            return importlib.metadata.version(self.distribution)
        except importlib.metadata.PackageNotFoundError:  # a build under another name
            return str(getattr(self.load(), "__version__", "unknown"))


@dataclass(frozen=True, kw_only=True, repr=False)
class TensorLibrary(Library):
    """A library that takes DLPack tensors, and hands its own out again."""

    consume: Callable[[Any], Any]
    """From whatever has `__dlpack__` to a tensor of the library."""
    produce: Callable[[Any], Any]
    """From a NumPy array to a tensor of the library."""
    to_numpy: Callable[[Any], Any]
    address: Callable[[Any], int]
    write: Callable[[Any], Any] | None = None
    """Puts 9 in the tensor's first place, by any public door; None if there is no such door."""
    to_capsule: Callable[[Any], Any] = lambda x: x.__dlpack__()
    """The library's function that returns a bare capsule, where it has one."""
    from_capsule: Callable[[Any], Any] | None = None
    """The library's function that takes a bare capsule; None if there is none."""
    needs_alignment: int = 1
    """In bytes; what begins elsewhere is copied."""


@dataclass(frozen=True, kw_only=True, repr=False)
class ArrowLibrary(Library):
    """A library that takes Arrow data and hands its own out; each function where it has one."""

    make: Callable[[list[float]], Any]
    """Its own column of float32."""
    array: Callable[[Any], Any] | None = None
    """From an Arrow array to a column of the library."""
    chunked: Callable[[Any], Any] | None = None
    """From a stream of Arrow arrays to a column of the library."""
    table: Callable[[Any], Any] | None = None
    """From an Arrow table, or an array of structs, to a table of the library."""
    column: Callable[[Any], Any] | None = None
    """The column `x` of such a table."""


def numpy_address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


def _buffer_address(buffer: Any) -> int:
    return numpy_address(numpy.asarray(memoryview(buffer)))


def arrow_address(array: Any) -> int:
    """Of the first value of a pyarrow array, whatever its slice."""
    return int(array.buffers()[1].address + array.offset * (array.type.bit_width // 8))


# In this order they can all be imported: paddle after tensorflow crashes the interpreter.
_TENSOR_LIBRARIES = [
    TensorLibrary(
        name="numpy",
        module="numpy",
        distribution="numpy",
        consume=lambda x: numpy.from_dlpack(x),
        produce=lambda x: x,
        to_numpy=lambda x: x,
        address=numpy_address,
        write=lambda x: x.fill(9),
    ),
    TensorLibrary(
        name="torch",
        module="torch",
        distribution="torch",
        consume=lambda x: torch.from_dlpack(x),
        produce=lambda x: torch.from_numpy(x),
        to_numpy=lambda x: x.numpy(),
        address=lambda x: x.data_ptr(),
        write=lambda x: x.fill_(9),
        to_capsule=lambda x: torch.utils.dlpack.to_dlpack(x),
        from_capsule=lambda x: torch.utils.dlpack.from_dlpack(x),
    ),
    TensorLibrary(
        name="jax",
        module="jax",
        distribution="jax",
        consume=lambda x: jax.dlpack.from_dlpack(x),
        produce=lambda x: jax.numpy.asarray(x),
        to_numpy=lambda x: numpy.asarray(x),
        address=lambda x: x.unsafe_buffer_pointer(),
        needs_alignment=64,
    ),
    TensorLibrary(
        name="paddle",
        module="paddle",
        distribution="paddlepaddle",
        consume=lambda x: paddle.from_dlpack(x),
        produce=lambda x: paddle.to_tensor(x),
        # numpy() of bfloat16 is its bits, as uint16
        to_numpy=lambda x: (x.float() if x.dtype == paddle.bfloat16 else x).numpy(),
        address=lambda x: x.data_ptr(),
        write=lambda x: x.fill_(9),
        to_capsule=lambda x: paddle.utils.dlpack.to_dlpack(x),
        from_capsule=lambda x: paddle.utils.dlpack.from_dlpack(x),
    ),
    TensorLibrary(
        name="tensorflow",
        module="tensorflow",
        distribution="tensorflow-cpu",
        consume=lambda x: tensorflow.experimental.dlpack.from_dlpack(x.__dlpack__()),
        produce=lambda x: tensorflow.constant(x),
        to_numpy=lambda x: x.numpy(),
        address=_buffer_address,  # numpy() copies
        to_capsule=lambda x: tensorflow.experimental.dlpack.to_dlpack(x),
        from_capsule=lambda x: tensorflow.experimental.dlpack.from_dlpack(x),
    ),
    TensorLibrary(
        name="mlx",
        module="mlx.core",
        distribution="mlx",
        consume=lambda x: mlx.from_dlpack(x),
        produce=lambda x: mlx.array(x),
        to_numpy=lambda x: numpy.asarray(x),
        address=_buffer_address,
        write=lambda x: x.__setitem__(0, 9),
        from_capsule=lambda x: mlx.from_dlpack(x),
    ),
    TensorLibrary(
        name="tvm-ffi",
        module="tvm_ffi",
        distribution="apache-tvm-ffi",
        consume=lambda x: tvm_ffi.from_dlpack(x),
        produce=lambda x: tvm_ffi.from_dlpack(x),
        to_numpy=lambda x: numpy.from_dlpack(x),
        address=lambda x: x.data_ptr(),
        write=lambda x: numpy.from_dlpack(x).fill(9),
        from_capsule=lambda x: tvm_ffi.from_dlpack(x),
    ),
    TensorLibrary(
        name="onnxruntime",
        module="onnxruntime",
        distribution="onnxruntime",
        consume=lambda x: onnxruntime.OrtValue.from_dlpack(x),
        produce=lambda x: onnxruntime.OrtValue.ortvalue_from_numpy(x),
        to_numpy=lambda x: x.numpy(),
        address=lambda x: x.data_ptr(),
        write=lambda x: x.update_inplace(numpy.full_like(x.numpy(), 9)),
        from_capsule=lambda x: onnxruntime.OrtValue.from_dlpack(x),
    ),
    TensorLibrary(
        name="minarrow",
        module="minarrow",
        distribution="minarrow",
        consume=lambda x: minarrow.NdArray.from_dlpack(x),
        produce=lambda x: minarrow.NdArray(x.ravel("F"), shape=x.shape, dtype=x.dtype.name),
        to_numpy=lambda x: x.to_numpy(),
        address=lambda x: numpy_address(numpy.from_dlpack(x)),
        write=lambda x: x.to_numpy().fill(9),
        from_capsule=lambda x: minarrow.NdArray.from_dlpack(x),
        needs_alignment=64,
    ),
    TensorLibrary(
        # c_buffer() itself prefers the buffer protocol where there is one.
        name="nanoarrow",
        module="nanoarrow",
        distribution="nanoarrow",
        consume=lambda x: nanoarrow_buffers.CBuffer.from_dlpack(x).view(),
        produce=lambda x: nanoarrow.c_buffer(x).view(),
        to_numpy=lambda x: numpy.asarray(memoryview(x)),
        address=_buffer_address,
        write=lambda x: memoryview(x).__setitem__(0, 9),
    ),
    TensorLibrary(
        name="pyarrow Array",
        module="pyarrow",
        distribution="pyarrow",
        consume=lambda x: pyarrow.Array.from_dlpack(x),
        produce=lambda x: pyarrow.array(x),
        to_numpy=lambda x: x.to_numpy(zero_copy_only=False),
        address=arrow_address,
    ),
    TensorLibrary(
        name="pyarrow Tensor",
        module="pyarrow",
        distribution="pyarrow",
        consume=lambda x: pyarrow.Tensor.from_dlpack(x),
        produce=lambda x: pyarrow.Tensor.from_numpy(x),
        to_numpy=lambda x: x.to_numpy(),
        address=_buffer_address,
        write=lambda x: x.to_numpy().fill(9),
    ),
]

_ARROW_LIBRARIES = [
    ArrowLibrary(
        name="pyarrow",
        module="pyarrow",
        distribution="pyarrow",
        make=lambda values: pyarrow.array(values, "float32"),
        array=lambda x: pyarrow.array(x),
        chunked=lambda x: pyarrow.chunked_array(x),
        table=lambda x: pyarrow.table(x),
        column=lambda table: table["x"],
    ),
    ArrowLibrary(
        name="polars",
        module="polars",
        distribution="polars",
        make=lambda values: polars.Series(values, dtype=polars.Float32),
        array=lambda x: polars.Series(x),
        chunked=lambda x: polars.from_arrow(x, rechunk=False),
        table=lambda x: polars.DataFrame(x),
        column=lambda table: table["x"],
    ),
    ArrowLibrary(
        name="duckdb",
        module="duckdb",
        distribution="duckdb",
        make=lambda values: duckdb.sql(
            "SELECT unnest($1)::FLOAT AS x", params=[values]
        ).to_arrow_table()["x"],
        table=lambda x: duckdb.from_arrow(x),
        column=lambda table: table.to_arrow_table()["x"],
    ),
    ArrowLibrary(
        name="pandas",
        module="pandas",
        distribution="pandas",
        make=lambda values: pandas.Series(values, dtype="float32"),
        array=lambda x: pandas.Series.from_arrow(x),
        chunked=lambda x: pandas.Series.from_arrow(x),
        table=lambda x: pandas.DataFrame.from_arrow(x),
        column=lambda table: table["x"],
    ),
    ArrowLibrary(
        name="nanoarrow",
        module="nanoarrow",
        distribution="nanoarrow",
        make=lambda values: nanoarrow.Array(values, nanoarrow.float32()),
        array=lambda x: nanoarrow.Array(x),
        chunked=lambda x: nanoarrow.Array(x),
        table=lambda x: nanoarrow.Array(x),
        column=lambda table: table.child(0),
    ),
    ArrowLibrary(
        name="arro3",
        module="arro3.core",
        distribution="arro3-core",
        make=lambda values: arro3.Array(values, arro3.DataType.float32()),
        array=lambda x: arro3.Array.from_arrow(x),
        chunked=lambda x: arro3.ChunkedArray.from_arrow(x),
        table=lambda x: arro3.Table.from_arrow(x),
        column=lambda table: table["x"],
    ),
    ArrowLibrary(
        name="datafusion",
        module="datafusion",
        distribution="datafusion",
        make=lambda values: (
            datafusion.SessionContext()
            .from_pydict({"x": values})
            .select(datafusion.col("x").cast(pyarrow.float32()).alias("x"))
            .collect_column("x")
        ),
        table=lambda x: datafusion.SessionContext().from_arrow(x),
        column=lambda table: table.collect_column("x"),
    ),
    ArrowLibrary(
        name="minarrow",
        module="minarrow",
        distribution="minarrow",
        make=lambda values: minarrow.Array(values, dtype="float32"),
        array=lambda x: minarrow.Array.from_arrow(x),
        chunked=lambda x: minarrow.ChunkedArray.from_arrow(x),
        table=lambda x: minarrow.Table.from_arrow(x),
        column=lambda table: table["x"],
    ),
]

TENSOR_LIBRARIES = {library.name: library for library in _TENSOR_LIBRARIES}
ARROW_LIBRARIES = {library.name: library for library in _ARROW_LIBRARIES}
