"""Results and batches as tensors of a framework."""

import sys
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from typing import Any, Literal, TypeAlias

from ._core import MaskedRagged, Ragged, Tensor

#: Whose tensors a batch has: ours, those of a framework, or what a function makes of ours.
Framework: TypeAlias = Literal["torch", "jax", "numpy"] | Callable[[Tensor], Any]

#: The frameworks that are called by name.
NAMES = ("torch", "jax", "numpy")

#: Functions that lose a part of our tensors, and the framework: what 32 bits do not hold, or the
#: shape.
_LOSING: tuple[tuple[str, str, Literal["jax", "mlx", "torch"]], ...] = (
    ("jax.dlpack", "from_dlpack", "jax"),
    ("jax.numpy", "from_dlpack", "jax"),
    ("mlx.core", "array", "mlx"),
    ("mlx.core", "asarray", "mlx"),
    ("mlx.core", "from_dlpack", "mlx"),
    ("torch", "asarray", "torch"),
)

#: Dtypes of which JAX makes narrower ones, unless `jax_enable_x64` is set.
_WIDE = ("int64", "uint64", "float64", "complex128")

#: The dtypes that MLX makes of others, unless it is asked for one.
_OF_MLX = {"float64": "float32", "complex128": "complex64"}

#: Dtypes that JAX has, and takes by no DLPack, of which NumPy's arrays are those of ml_dtypes.
_PARTS_OF_BYTES = ("int2", "int4", "uint2", "uint4", "float4_e2m1fn")


def check(framework: Framework | None) -> None:
    """An error for a framework that is not known."""
    known = framework in NAMES if isinstance(framework, str) else callable(framework)
    kind = f"{type(framework).__module__}.{type(framework).__name__}"
    if kind in ("torch._C._TensorMeta", "torch.tensortype"):
        # Its constructors make float32, or another dtype, of all numbers.
        raise ValueError(f'framework={framework!r} makes other numbers: did you mean "torch"?')
    if framework is not None and not known:
        name = getattr(framework, "__name__", framework)
        package = name.partition(".")[0] if isinstance(name, str) else ""
        close = [package] if package in NAMES else get_close_matches(package, NAMES, 1, 0.7)
        meant = "".join(f': did you mean "{one}"?' for one in close)
        raise ValueError(
            f'framework must be "torch", "jax", "numpy" or a function, got {framework!r}{meant}'
        )


def copying(
    framework: Framework | None, writable: bool | None = None, copy: bool | None = None
) -> bool | None:
    """``copy=`` for tensors of this framework, which are writable or need not be: by default they
    are where the framework does not respect read-only.
    """
    if writable is None:
        writable = framework not in (None, "numpy")
    if writable and copy is not None and not copy:
        raise TypeError("copy=False shares the source's memory: say writable=False as well")
    return True if writable else copy


def asked(
    framework: Framework | None, writable: bool | None, copy: bool | None
) -> tuple[Callable[[Tensor], Any] | None, bool | None]:
    """What makes the framework's tensors, and ``copy=`` for those that it takes."""
    check(framework)
    take = None if framework is None else taker(framework)
    return take, copying(framework, writable, copy)


def taker(framework: Framework) -> Callable[[Tensor], Any]:
    """What makes the framework's tensor of ours."""
    if not isinstance(framework, str):
        return _losing_nothing(framework)
    if framework == "jax":
        return to_jax
    if framework == "numpy":
        return to_numpy()
    torch = sys.modules.get("torch") or import_module("torch")
    return torch.from_dlpack  # type: ignore[no-any-return]


def _losing_nothing(function: Callable[[Tensor], Any]) -> Callable[[Tensor], Any]:
    """The function itself, unless it is a framework's own one that loses something."""
    inner: Any = function
    has_dtype = False
    while isinstance(inner, partial):
        has_dtype |= inner.keywords.get("dtype") is not None
        inner = inner.func
    for module, name, framework in _LOSING:
        if getattr(sys.modules.get(module), name, None) is not inner:
            continue
        if framework == "mlx":
            return function if has_dtype else partial(_to_mlx, function)
        take = taker(framework)
        if inner is function:
            return take
        # The arguments of a partial, such as a device, are for tensors of the framework as well.
        if framework == "jax":
            return partial(to_jax, then=function)
        return lambda tensor: function(take(tensor))
    return function


def _tells(take: Callable[[Tensor], Any]) -> bool:
    """Whether this refuses values that the framework would change, and tells where they are."""
    return getattr(take, "func", take) in (to_jax, _to_mlx)


def to_numpy() -> Callable[[Tensor], Any]:
    """What makes the `numpy.ndarray` of a tensor."""
    np = import_module("numpy")
    from_dlpack, asarray = np.from_dlpack, np.asarray

    def take(tensor: Tensor) -> Any:
        try:
            return from_dlpack(tensor)
        except (BufferError, RuntimeError):
            # NumPy's DLPack has no dtypes of ml_dtypes, such as bfloat16, but those that are
            # registered with it. It is a BufferError since NumPy 2.5.
            return asarray(tensor)

    return take


def mapped(batch: Any, take: Callable[..., Any], column: str | None = None) -> Any:
    """The same structure of other tensors; Arrow arrays stay as they are.

    A plain tuple is a tensor and the mask of its values.
    """
    if isinstance(batch, Tensor):
        try:
            return take(batch, None, column) if _tells(take) else take(batch)
        except StopIteration as error:
            # Or it would end the loop that this is called in, such as that of `map`.
            raise RuntimeError("framework raised StopIteration") from error
    if isinstance(batch, dict):
        return {name: mapped(part, take, name) for name, part in batch.items()}
    if not isinstance(batch, tuple):
        return batch
    if hasattr(batch, "_make"):
        values, *others = batch
        if _tells(take) and isinstance(batch, (MaskedRagged, Ragged)):
            first = take(values, None, column, batch.offsets)
        else:
            first = mapped(values, take, column)
        return batch._make([first, *(mapped(part, take, column) for part in others)])
    if _tells(take) and len(batch) == 2:
        values, valid = batch
        return take(values, valid, column), take(valid)
    return tuple(mapped(part, take, column) for part in batch)


def taken(batch: Any, take: Callable[[Tensor], Any], labels: Sequence[str]) -> Any:
    """`mapped` for a batch of a loop: with labels it is a pair, features and labels."""
    if not labels:
        return mapped(batch, take)
    features, label = batch
    return mapped(features, take), mapped(label, take, labels[0])


def to_jax(
    tensor: Tensor,
    mask: Tensor | None = None,
    column: str | None = None,
    offsets: Any = None,
    *,
    then: Callable[[Any], Any] | None = None,
) -> Any:
    """The `jax.Array` of a tensor, whose values it has: JAX itself wraps what does not fit.

    mask: which values count. then: what is called with the array.
    """
    if then is not None:
        return then(to_jax(tensor, mask, column, offsets))
    if tensor.dtype in _PARTS_OF_BYTES:
        return import_module("jax.numpy").asarray(import_module("numpy").asarray(tensor))
    narrowed = check_jax(tensor, mask, column, offsets)
    if narrowed is None:
        return import_module("jax.dlpack").from_dlpack(tensor)
    # XLA makes 0 of what is below the least normal number of float32, and NumPy does not.
    return import_module("jax.numpy").asarray(narrowed)


def with_setting(work: Callable[..., None]) -> Callable[..., None]:
    """The work, for another thread: whether JAX has 64 bits may be a setting of this one alone."""
    jax: Any = sys.modules.get("jax")
    config = getattr(jax, "config", None)  # another thread may be importing it
    if config is None:
        return work
    is_wide = config.jax_enable_x64
    holder = jax if hasattr(jax, "enable_x64") else import_module("jax.experimental")
    setting = holder.enable_x64

    def worked(*args: Any) -> None:
        with setting(is_wide):
            work(*args)

    return worked


def check_jax_array(array: Any) -> None:
    """`check_jax` for ``__jax_array__``, which JAX calls without the dtype that it is asked for."""
    try:
        check_jax(array)
    except ValueError as error:
        raise ValueError(
            f"{error}, and jax.numpy.asarray(numpy.asarray(x, dtype)) makes another dtype of them"
        ) from None


def narrow_of(dtype: str) -> Any:
    """The dtype that JAX makes of one."""
    return import_module("jax").dtypes.canonicalize_dtype(dtype)


def check_jax(
    tensor: Any, mask: Tensor | None = None, column: str | None = None, offsets: Any = None
) -> Any:
    """An error if JAX would make other values of some: wrapped integers, or infinity.

    Returns floats that JAX would narrow, narrowed by NumPy; None for any other tensor.
    """
    if tensor.dtype not in _WIDE:
        return None
    narrow = narrow_of(tensor.dtype)
    if narrow == tensor.dtype:
        return None
    made = f"which JAX makes of {tensor.dtype}"
    way = 'jax.config.update("jax_enable_x64", True) lets it keep them'
    return _narrowed(tensor, narrow, f"{made}: {way}", mask=mask, column=column, offsets=offsets)


def _to_mlx(
    function: Callable[[Tensor], Any],
    tensor: Tensor,
    mask: Tensor | None = None,
    column: str | None = None,
    offsets: Any = None,
) -> Any:
    """What a function of MLX makes of a tensor, if it has its values."""
    narrow = _OF_MLX.get(tensor.dtype)
    if narrow is not None:
        told = f"which MLX makes of {tensor.dtype}"
        if tensor.dtype == "float64":
            keeping = "functools.partial(mlx.core.array, dtype=mlx.core.float64)"
            told += f": framework={keeping} keeps them, for the CPU"
        dtype = import_module("numpy").dtype(narrow)
        _narrowed(tensor, dtype, told, mask=mask, column=column, offsets=offsets)
    return function(tensor)


def _narrowed(
    tensor: Any,
    narrow: Any,
    told: str,
    *,
    mask: Tensor | None,
    column: str | None,
    offsets: Any,
) -> Any:
    """Floats, narrowed, or None for integers; an error for a value that the narrow dtype has not.

    told: what the error says of the dtype. offsets: where rows of different lengths begin, for it.
    """
    np = import_module("numpy")
    values, narrowed = np.asarray(tensor), None
    if narrow.kind in "iu":
        ends = np.iinfo(narrow)
        if values.size == 0 or (ends.min <= values.min() and values.max() <= ends.max):
            return None
        wrong = (values < ends.min) | (values > ends.max)
    else:
        with np.errstate(over="ignore"):
            narrowed = values.astype(narrow)
        wrong = np.isinf(narrowed.real) & ~np.isinf(values.real)
        if narrow.kind == "c":
            wrong |= np.isinf(narrowed.imag) & ~np.isinf(values.imag)
    if mask is not None:
        valid = np.asarray(mask)
        wrong = wrong & valid.reshape(valid.shape + (1,) * (values.ndim - valid.ndim))
    if not wrong.any():
        return narrowed
    at = np.unravel_index(wrong.argmax(), wrong.shape)
    where = "" if column is None else f'column "{column}": '
    first = at[0] if at else None
    if offsets is not None:
        first = np.searchsorted(np.asarray(offsets), first, side="right") - 1
    row = "" if first is None else f" in row {first}"
    if column is None and len(at) == 2:
        row += f", column {at[1]},"
    raise ValueError(f"{where}value {values[at]}{row} does not fit {narrow}, {told}")
