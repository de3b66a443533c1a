"""What checks say again and again."""

from typing import Any

from dlpack_conformance.kit.producer import Producer
from dlpack_conformance.rule import Broken, NotApplicable


def equal(what: str, expected: object, seen: object) -> None:
    if seen != expected:
        raise Broken(f"{what}: {expected}", seen)


def attempt(lib: Any, x: Producer, **keywords: Any) -> tuple[Any, str | None]:
    """(array, None), or (None, text of the exception) if the library refuses the tensor."""
    try:
        return lib.take(x, **keywords), None
    except SystemError:
        raise  # a call that forgot its exception, or kept it in spite of its result
    except Exception as error:
        if x.legacy is False and not any(call.get("max_version") for call in x.calls):
            raise NotApplicable("asks for legacy tensors only") from None
        return None, f"{type(error).__name__}: {str(error)[:200]}"


def refused(lib: Any, x: Producer, **keywords: Any) -> str:
    """The text of the exception, of any type, by which the library refuses the tensor."""
    array, refusal = attempt(lib, x, **keywords)
    if refusal is None:
        raise Broken("an exception", f"an array of {lib.dtype_of(array)}, {lib.shape_of(array)}")
    return refusal


def right_or_refused(lib: Any, x: Producer, **keywords: Any) -> str | None:
    """The text of the refusal; what is taken has the producer's elements."""
    array, refusal = attempt(lib, x, **keywords)
    if refusal is None:
        equal("elements", x.to_list(), lib.to_list(array))
    return refusal
