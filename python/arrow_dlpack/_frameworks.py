"""Results and batches as tensors of a framework."""

from collections.abc import Callable
from importlib import import_module
from typing import Any, Literal, TypeAlias

from ._core import Tensor

#: Whose tensors a batch has: ours, those of a framework, or what a function makes of ours.
Framework: TypeAlias = Literal["torch", "jax", "numpy"] | Callable[[Tensor], Any]

#: Where the function is that takes a tensor over.
_FROM_DLPACK = {"torch": "torch", "jax": "jax.dlpack", "numpy": "numpy"}


def check(framework: Framework | None) -> None:
    """An error for a framework that is not known."""
    known = framework in _FROM_DLPACK if isinstance(framework, str) else callable(framework)
    if framework is not None and not known:
        raise ValueError(
            f'framework must be "torch", "jax", "numpy" or a function, got {framework!r}'
        )


def is_writable(framework: Framework | None, writable: bool | None) -> bool:
    """Whether tensors get memory of their own: by default where read-only is not respected."""
    return framework not in (None, "numpy") if writable is None else writable


def copying(writable: bool, copy: bool | None) -> bool | None:
    """``copy=`` for tensors that are writable or need not be."""
    if writable and copy is not None and not copy:
        raise TypeError("copy=False shares the source's memory: say writable=False as well")
    return True if writable else copy


def asked(
    framework: Framework | None, writable: bool | None, copy: bool | None
) -> tuple[Callable[[Tensor], Any] | None, bool | None]:
    """What makes the framework's tensors, and ``copy=`` for those that it takes."""
    check(framework)
    take = None if framework is None else taker(framework)
    return take, copying(is_writable(framework, writable), copy)


def taker(framework: Framework) -> Callable[[Tensor], Any]:
    """What makes the framework's tensor of ours."""
    if not isinstance(framework, str):
        return framework
    return import_module(_FROM_DLPACK[framework]).from_dlpack  # type: ignore[no-any-return]


def mapped(batch: Any, take: Callable[[Tensor], Any]) -> Any:
    """The same structure of other tensors; Arrow arrays stay as they are."""
    if isinstance(batch, Tensor):
        return take(batch)
    if isinstance(batch, dict):
        return {name: mapped(part, take) for name, part in batch.items()}
    if not isinstance(batch, tuple):
        return batch
    parts = [mapped(part, take) for part in batch]
    return batch._make(parts) if hasattr(batch, "_make") else tuple(parts)
