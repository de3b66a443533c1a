"""What checks say again and again."""

import contextlib
import ctypes
from collections.abc import Callable
from typing import Any

from dlpack_conformance.kit.consumer import Imported, exported
from dlpack_conformance.kit.producer import Producer
from dlpack_conformance.rule import Broken, NotApplicable


def equal(what: str, expected: object, seen: object) -> None:
    if seen != expected:
        raise Broken(f"{what}: {expected}", seen)


def text(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


def attempt(lib: Any, x: Producer, **keywords: Any) -> tuple[Any, str | None]:
    """(array, None), or (None, text of the exception) if the library refuses the tensor."""
    try:
        return lib.take(x, **keywords), None
    except NotApplicable:
        raise
    except Exception as error:
        if isinstance(error, SystemError):
            # Of C code that returned neither a result nor an exception, or both: unless the
            # exception was lost by our deleter.
            if not x.interrupted:
                raise
            return None, x.interrupted[-1]
        if x.legacy is False and not any(call.get("max_version") for call in x.calls):
            raise NotApplicable("asks for legacy tensors only") from None
        return None, text(error)


def refused(lib: Any, x: Producer, **keywords: Any) -> str:
    """The text of the exception, of any type, by which the library refuses the tensor."""
    array, refusal = attempt(lib, x, **keywords)
    if refusal is None:
        raise Broken("an exception", f"an array of {lib.dtype_of(array)}, {lib.shape_of(array)}")
    return refusal


def elements_or_refusal(lib: Any, x: Producer) -> tuple[Any, str | None]:
    """(elements, None), or (None, text of the exception) if the library refuses the tensor, at once
    or when its elements are asked for: who hands it on need not know what they are."""
    array, refusal = attempt(lib, x)
    if refusal is not None:
        return None, refusal
    try:
        return lib.to_list(array), None
    except NotApplicable:
        raise
    except Exception as error:
        return None, text(error)


def unread(lib: Any, x: Producer) -> None:
    """The library refuses the tensor, at once or when its elements are asked for."""
    elements, refusal = elements_or_refusal(lib, x)
    if refusal is None:
        raise Broken("an exception", f"elements {elements}")


def accepted(lib: Any, x: Producer, **keywords: Any) -> Any:
    """The array, with the producer's elements."""
    array, refusal = attempt(lib, x, **keywords)
    if refusal is not None:
        raise Broken("an array", refusal)
    equal("elements", x.to_list(), lib.to_list(array))
    return array


def right_or_refused(lib: Any, x: Producer, **keywords: Any) -> str | None:
    """The text of the refusal; what is taken has the producer's elements."""
    array, refusal = attempt(lib, x, **keywords)
    if refusal is None:
        equal("elements", x.to_list(), lib.to_list(array))
    return refusal


def takes(lib: Any, x: Producer) -> None:
    """Not applicable if the library refuses this tensor, which has nothing odd but what the rule
    is not about."""
    refusal = attempt(lib, x)[1]
    if refusal is not None:
        raise NotApplicable(f"takes none of the kind: {refusal}")


def exported_versioned(array: Any, **keywords: Any) -> Imported:
    """Not applicable for a producer of legacy tensors."""
    view = exported(array, **keywords)
    if not view.versioned:
        raise NotApplicable("exports legacy tensors only")
    return view


def exported_dtypes(lib: Any) -> dict[str, Imported]:
    """Two elements of every dtype that the library exports; how it refuses others is for another
    rule.

    Checks keep them in a variable, beyond the exception that ends the check: a destructor that runs
    while it is under way may lose it.
    """
    views = {}
    for dtype in lib.dtypes():
        with contextlib.suppress(Exception):
            views[dtype] = exported(lib.make([0, 1], dtype))
    if not views:
        raise NotApplicable("exports no dtype")
    return views


def either(lib: Any, *checks: Callable[[Any], None]) -> None:
    """For rules of producers and consumers: not applicable if each of the checks is not."""
    reasons = []
    for check in checks:
        try:
            check(lib)
        except NotApplicable as reason:
            reasons.append(str(reason))
    if len(reasons) == len(checks):
        raise NotApplicable("; ".join(dict.fromkeys(reasons)))


def poke(address: int, content: bytes) -> None:
    """Writes to memory."""
    ctypes.memmove(address, content, len(content))
