"""What comes of handing tensors to a library, and what it does with tensors from elsewhere."""

import contextlib
import gc
from collections.abc import Callable
from typing import NamedTuple

import hostile
import numpy as np
import pyarrow as pa
from arrow_dlpack import Array, Tensor
from arrow_dlpack._doctor.libraries import TensorLibrary, arrow_address, numpy_address
from dlpack_conformance.abi.capsule import PyCapsule_GetName
from frameworks import DTYPES
from outcomes import (
    F4,
    MATRIX,
    aligned,
    as_bfloat16,
    bfloat16,
    judged,
    numbers,
    reason,
    without_leak,
)

# Foreign memory that a consumer may hold on to for ever: paddle does.
HELD: list[hostile.Producer] = []


class Case(NamedTuple):
    """What is handed over, what must arrive, and where it lies."""

    given: object
    expected: np.ndarray
    address: int


def of_array(source: pa.Array) -> Case:
    return Case(Array(source), source.to_numpy(), arrow_address(source))


def of_tensor(source: np.ndarray) -> Case:
    return Case(Tensor.from_dlpack(source), source, numpy_address(source))


def of_bfloat16() -> Case:
    source = bfloat16(F4)
    return Case(Tensor.from_dlpack(source), F4, source.data_ptr())


def of_byte_offset() -> Case:
    producer = hostile.Producer(byte_offset=4, shape=(2,))
    HELD.append(producer)
    return Case(Tensor.from_dlpack(producer), np.float32([2, 3]), producer.address + 4)


CONSUMED: dict[str, Callable[[], Case]] = {
    **{dtype: lambda dtype=dtype: of_array(numbers(dtype)) for dtype in DTYPES},
    "slice": lambda: of_array(numbers("float32").slice(1)),
    "empty": lambda: of_array(numbers("float32").slice(3, 0)),
    "2-D": lambda: of_tensor(aligned(MATRIX)),
    "column-major": lambda: of_tensor(aligned(MATRIX).T),
    "strided": lambda: of_tensor(aligned(MATRIX)[:, ::2]),
    "reversed": lambda: of_tensor(aligned(F4)[::-1]),
    "broadcast": lambda: of_tensor(np.broadcast_to(aligned(F4), (2, 24))),
    "0-d": lambda: of_tensor(aligned(F4[:1]).reshape(())),
    "bool": lambda: of_tensor(aligned([True, False, True])),
    "bfloat16": of_bfloat16,
    "complex64": lambda: of_tensor(aligned(np.complex64([1 + 2j, 3]))),
    "byte offset": of_byte_offset,
}


def consumed(library: TensorLibrary, case: Case) -> str:
    """What comes of handing a case to a library."""
    try:
        tensor = library.consume(case.given)
    except Exception as error:
        return f"refused: {reason(error)}"
    try:
        if getattr(case.given, "dtype", None) == "bfloat16":
            values, at = as_bfloat16(tensor)
        else:
            values, at = library.to_numpy(tensor), library.address(tensor)
        return judged(values, case.expected, at == case.address)
    except Exception as error:
        return f"wrong: taken, then {reason(error)}"


class Watched(hostile.Producer):
    """A tensor of foreign make, which remembers what was asked of it and what it gave."""

    def __init__(self, **fields):
        super().__init__(**fields)
        HELD.append(self)

    def __getattr__(self, name):
        if name == "__dlpack_c_exchange_api__":
            self.calls.append("exchange API")
        raise AttributeError(name)

    def __dlpack__(self, **keywords):
        version = keywords.get("max_version")
        self.calls.append(".".join(map(str, version)) if version else "legacy")
        self.given = self.capsule()
        return self.given


def asks(library: TensorLibrary) -> str:
    """The forms of the protocol that a consumer asks for, in its order."""
    watched = Watched(legacy=True)
    with contextlib.suppress(ValueError):  # pyarrow wants a versioned answer
        library.consume(watched)
    return ", else ".join(watched.calls)


def watched_by(library: TensorLibrary, **fields) -> Watched:
    """A tensor in the form that the library asks for."""
    return Watched(legacy=asks(library).endswith("legacy"), **fields)


def is_used(capsule: object) -> bool:
    return PyCapsule_GetName(capsule).startswith(b"used_")


def read_only(library: TensorLibrary) -> str:
    """What comes of writing to a tensor over an Arrow array."""
    source = numbers("float32")
    tensor = library.consume(Array(source))
    if library.write is None:
        return "kept: nothing to write with"
    try:
        library.write(tensor)
    except Exception as error:
        return f"kept: {reason(error)}"
    if source[0].as_py() != 9:
        return "kept: a copy is written"
    if asks(library).endswith("legacy"):
        return "lost: asks for legacy, which cannot say read-only, and writes through"
    return "lost: ignores the read-only flag, and writes through"


def foreign_byte_offset(library: TensorLibrary) -> str:
    """What the library makes of a byte offset, which what arrow_dlpack hands out never has."""
    watched = watched_by(library, byte_offset=4, shape=(2,))
    return consumed(library, Case(watched, np.float32([2, 3]), watched.address + 4))


def foreign_capsule(library: TensorLibrary) -> str:
    watched = watched_by(library)
    library.consume(watched)
    return "renamed" if is_used(watched.given) else "not renamed"


def foreign_deleter(library: TensorLibrary) -> str:
    """Whether a deleter is called whose tensor has no manager_ctx."""
    watched = watched_by(library)
    library.consume(watched)
    gc.collect()
    if not (watched.deleted or is_used(watched.given)):
        return "left to the capsule"
    return "called" if watched.deleted else "never called"


def takes_capsule(library: TensorLibrary) -> str:
    """What comes of handing over a capsule without the array around it."""
    if library.from_capsule is None:
        return "none: no function takes one"
    source = numbers("float32")
    tensor = library.from_capsule(Array(source).__dlpack__())
    shared = library.address(tensor) == arrow_address(source)
    return judged(library.to_numpy(tensor), source.to_numpy(), shared)


WAYS = {
    "read-only": read_only,
    "bare capsule": takes_capsule,
    "foreign byte offset": foreign_byte_offset,
    "foreign capsule": foreign_capsule,
    "foreign deleter": foreign_deleter,
}


def of_consumer(library: TensorLibrary) -> dict[str, str]:
    """What comes of each case, and the library's own ways."""
    outcomes = {
        name: lambda make=make: consumed(library, make()) for name, make in CONSUMED.items()
    }
    outcomes |= {name: lambda way=way: way(library) for name, way in WAYS.items()}
    return {name: without_leak(exchange) for name, exchange in outcomes.items()}
