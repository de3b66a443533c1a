"""Devices with streams, of libraries that have one."""

from typing import Any

from dlpack_conformance.rule import NotApplicable


def current_stream(lib: Any, kind: int, default: bool) -> int:
    try:
        return int(lib.use_stream(kind, default))
    except NotApplicable as reason:
        raise NotApplicable(f"not run here: {reason}") from None
