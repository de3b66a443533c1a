"""The measuring half of ``python -m arrow_dlpack``: its own process, because imports can crash.

Its arguments are the libraries that are known to crash, as a JSON object of their states, and the
names of those to try. It writes a line of JSON for each step: ``{"at": "tensorflow"}`` before
whatever that library could crash, at last ``{"libraries": {...}, "exchanges": [...]}``.
"""

import ctypes
import json
import os
import sys
from collections.abc import Callable, Generator
from functools import partial
from timeit import timeit
from typing import Any, TypeVar

from .. import Array, Tensor, from_dlpack
from .libraries import ARROW_LIBRARIES, TENSOR_LIBRARIES, Library

VALUES = [0.5, 1.5, 2.5, 3.5] * 16

Result = dict[str, str | float | None]
Step = dict[str, Any]
AnyLibrary = TypeVar("AnyLibrary", bound=Library)


def reason(error: BaseException) -> str:
    """The error's type and the first of its lines."""
    return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0][:120]}"


def state(library: Library) -> Result:
    """Whether a library is "installed", "missing" or "broken": it is imported."""
    try:
        library.load()
        return {"state": "installed", "version": library.version(), "problem": None}
    except ModuleNotFoundError as error:
        if error.name in (library.module, library.module.partition(".")[0]):
            return {"state": "missing", "version": None, "problem": None}
        return {"state": "broken", "version": None, "problem": reason(error)}
    except (Exception, SystemExit) as error:
        return {"state": "broken", "version": None, "problem": reason(error)}


def address(x: Any) -> int | None:
    """Where a tensor begins: the first field of what its legacy capsule points to."""
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    capsule = Tensor.from_dlpack(x).__dlpack__()
    return ctypes.c_void_p.from_address(get_pointer(capsule, b"dltensor")).value


def to_tensor(take: Callable[[Array], Any], column: Any) -> Any:
    return take(Array(column))


def to_arrow(take: Callable[[Array], Any], tensor: Any) -> Any:
    return take(from_dlpack(tensor))


def nanoseconds(exchange: Callable[[], object]) -> float:
    """The best of five runs of about two milliseconds each."""
    number = min(2000, int(0.002 / timeit(exchange, number=1)) + 1)
    return min(timeit(exchange, number=number) for _ in range(5)) / number * 1e9


def exchanged(exchange: Callable[[], Any], given: Any) -> Result:
    """What comes of an exchange that shall make what has the values and the memory of `given`."""
    try:
        taken = exchange()
    except Exception as error:
        return {"outcome": "refused", "problem": reason(error), "nanoseconds": None}
    try:
        taken = taken if hasattr(taken, "__dlpack__") else Array(taken)
        values = memoryview(Tensor.from_dlpack(taken)).tolist()
        if values != VALUES:
            raise ValueError(f"{values[:4]} instead of {VALUES[:4]}")
        outcome = "zero-copy" if address(taken) == address(given) else "copy"
        return {"outcome": outcome, "problem": None, "nanoseconds": round(nanoseconds(exchange), 1)}
    except Exception as error:
        return {"outcome": "wrong", "problem": reason(error), "nanoseconds": None}


def installed(
    table: dict[str, AnyLibrary], names: list[str], states: dict[str, Result]
) -> Generator[Step, None, list[AnyLibrary]]:
    """The named libraries that can be imported; if there are none, the first that can."""
    named = [library for library in table.values() if library.short in names]
    found: list[AnyLibrary] = []
    for library in (*named, *table.values()):
        if found and library not in named:
            break
        if library.short not in states:
            yield {"at": library.short}
            states[library.short] = state(library)
        if states[library.short]["state"] == "installed" and library not in found:
            found.append(library)
    return found


def probe(states: dict[str, Result], names: list[str]) -> Generator[Step, None, None]:
    """All of the steps; what has a state already is not imported."""
    exchanges: list[Result] = []
    made: dict[str, Any] = {}
    tensors = yield from installed(TENSOR_LIBRARIES, names, states)
    arrows = yield from installed(ARROW_LIBRARIES, names, states)
    for arrow in arrows:
        yield {"at": arrow.short}
        try:
            column = arrow.make(VALUES)
            array = Array(column)
        except Exception as error:
            states[arrow.short] |= {"state": "broken", "problem": reason(error)}
            continue
        for library in tensors:
            yield {"at": library.short}
            result = exchanged(partial(to_tensor, library.consume, column), array)
            exchanges.append(
                {"way": "Arrow to tensor", "from": arrow.name, "to": library.name, **result}
            )
            if library.name not in made and result["nanoseconds"]:
                made[library.name] = library.consume(array)
    for name, tensor in made.items():
        for arrow in arrows:
            if arrow.array and states[arrow.short]["state"] == "installed":
                yield {"at": arrow.short}
                result = exchanged(partial(to_arrow, arrow.array, tensor), tensor)
                exchanges.append(
                    {"way": "tensor to Arrow", "from": name, "to": arrow.name, **result}
                )
    yield {"libraries": states, "exchanges": exchanges}


def main() -> None:
    # What libraries print goes elsewhere.
    with os.fdopen(os.dup(1), "w") as answer:
        os.dup2(2, 1)
        for step in probe(json.loads(sys.argv[1]), sys.argv[2:]):
            print(json.dumps(step), file=answer, flush=True)


if __name__ == "__main__":
    main()
