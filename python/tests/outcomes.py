"""What comes of each exchange with each neighbour, measured. compatibility.py records it.

An outcome is a text: "zero-copy", "copy", "refused: why", "wrong: what", or "none: why" where a
library cannot make what it would have to hand out.
"""

import contextlib
import gc
import re
from collections.abc import Callable
from typing import NamedTuple

import hostile
import numpy as np
import pyarrow as pa
import torch
from arrow_dlpack import Array, Tensor, from_dlpack
from arrow_dlpack._neighbours import (
    ARROW_LIBRARIES,
    TENSOR_LIBRARIES,
    ArrowLibrary,
    TensorLibrary,
    arrow_address,
    numpy_address,
)
from conftest import open_tensors
from frameworks import DTYPES, arrow_type, freeze

freeze([*TENSOR_LIBRARIES.values(), *ARROW_LIBRARIES.values()])

F4 = np.arange(24, dtype="f4")
MATRIX = F4.reshape(4, 6)

# Foreign memory that a consumer may hold on to for ever: paddle does.
HELD: list[hostile.Producer] = []


class Case(NamedTuple):
    """What is handed over, what must arrive, and where it lies."""

    given: object
    expected: np.ndarray
    address: int


def aligned(values) -> np.ndarray:
    """A copy that begins on a boundary of 64 bytes, as Arrow's own memory does."""
    values = np.array(values, order="C")
    memory = np.frombuffer(pa.allocate_buffer(values.nbytes), values.dtype)
    memory[:] = values.ravel()
    return memory.reshape(values.shape)


def numbers(dtype: str, count: int = 24) -> pa.Array:
    memory = pa.py_buffer(aligned(np.arange(count).astype(dtype)))
    return pa.Array.from_buffers(arrow_type(dtype), count, [None, memory])


def bfloat16(values: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(aligned(values)).to(torch.bfloat16)


def reason(error: Exception) -> str:
    """Its first line, less the place in a C++ source that onnxruntime begins with."""
    text = re.sub(r"^/\S+\.cc:\d+ .*?\)( .*? was false\.)? ", "", str(error).strip()).split("\n")[0]
    return f"{type(error).__name__}: {text if len(text) <= 100 else text[:99] + '…'}"


def difference(values: np.ndarray, expected: np.ndarray) -> str | None:
    for name in ("dtype", "shape"):
        got, wanted = getattr(values, name), getattr(expected, name)
        if got != wanted:
            return f"{got} instead of {wanted}"
    if values.tolist() != expected.tolist():
        return f"{values.tolist()} instead of {expected.tolist()}"
    return None


def judged(values: np.ndarray, expected: np.ndarray, shared: bool) -> str:
    if what := difference(values, expected):
        return f"wrong: {what}"
    return "zero-copy" if shared or expected.size == 0 else "copy"


def without_leak(exchange: Callable[[], str]) -> str:
    before = open_tensors()
    outcome = exchange()
    return outcome if open_tensors(before) == before else f"wrong: leaks, {outcome}"


# --- consumers ------------------------------------------------------------------------------------


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
        if getattr(case.given, "dtype", None) == "bfloat16":  # which NumPy has not
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
    return hostile.capsule_name(capsule).startswith(b"used_")


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


# --- producers ------------------------------------------------------------------------------------


def as_array(tensor: object) -> tuple[np.ndarray, int]:
    array = pa.array(from_dlpack(tensor))
    return array.to_numpy(), arrow_address(array)


def as_tensor(tensor: object) -> tuple[np.ndarray, int]:
    view = np.asarray(Tensor.from_dlpack(tensor))
    return view, numpy_address(view)


def as_bfloat16(tensor: object) -> tuple[np.ndarray, int]:
    view = torch.from_dlpack(Tensor.from_dlpack(tensor))
    return view.float().numpy(), view.data_ptr()


class Produced(NamedTuple):
    """What a library makes, from the aligned values if by `produce`, and how it is taken here."""

    expected: np.ndarray
    make: Callable[[TensorLibrary], object] | None = None
    take: Callable[[object], tuple[np.ndarray, int]] = as_tensor


PRODUCED = {
    **{dtype: Produced(F4.astype(dtype), take=as_array) for dtype in DTYPES},
    "empty": Produced(F4[:0], take=as_array),
    "2-D": Produced(MATRIX),
    "transposed": Produced(MATRIX.T, lambda library: library.produce(aligned(MATRIX)).T),
    "every other": Produced(F4[::2], lambda library: library.produce(aligned(F4))[::2]),
    "0-d": Produced(F4[7:8].reshape(())),
    "bool": Produced(np.array([True, False, True])),
    "bfloat16": Produced(F4, lambda library: library.consume(bfloat16(F4)), as_bfloat16),
}


def produced(library: TensorLibrary, case: Produced) -> str:
    """What comes of taking a tensor of the library."""
    expected, make, take = case
    try:
        tensor = make(library) if make else library.produce(aligned(expected))
        if take is as_bfloat16:  # which NumPy has not
            address = torch.from_dlpack(tensor).data_ptr()
        elif what := difference(library.to_numpy(tensor), expected):
            return f"none: {what}"
        else:
            address = library.address(tensor)
    except Exception as error:
        return f"none: {reason(error)}"
    try:
        values, at = take(tensor)
    except Exception as error:
        return f"refused: {reason(error)}"
    return judged(values, expected, at == address)


def hands_out(library: TensorLibrary) -> str:
    """The forms of the protocol that a producer knows."""
    tensor = library.produce(aligned(F4))
    forms = ["exchange API"] if hasattr(type(tensor), "__dlpack_c_exchange_api__") else []
    for keywords in ({"max_version": (1, 3)}, {}):
        with contextlib.suppress(TypeError):  # it does not know the keyword
            capsule = tensor.__dlpack__(**keywords)
            forms.append(hostile.version_of(capsule) or "legacy")
    return ", ".join(dict.fromkeys(forms))


def flags_read_only(library: TensorLibrary) -> str:
    tensor = Tensor.from_dlpack(library.produce(aligned(F4)))
    return "flagged" if tensor.readonly else "not flagged"


def bare_capsule(library: TensorLibrary) -> str:
    """What comes of taking a capsule without the tensor around it."""
    tensor = library.produce(aligned(F4))
    values, at = as_array(library.to_capsule(tensor))
    return judged(values, F4, at == library.address(tensor))


def of_producer(library: TensorLibrary) -> dict[str, str]:
    outcomes = {name: lambda case=case: produced(library, case) for name, case in PRODUCED.items()}
    outcomes["read-only"] = lambda: flags_read_only(library)
    outcomes["bare capsule"] = lambda: bare_capsule(library)
    return {name: without_leak(exchange) for name, exchange in outcomes.items()}


# --- Arrow libraries ------------------------------------------------------------------------------

FORMS = ("array", "chunked", "table", "column")


def source(library: ArrowLibrary, form: str, array: pa.Array) -> object:
    """These values in one form of the library; `chunked` in two chunks."""
    if form == "array":
        return library.array(array)
    if form == "chunked":
        return library.chunked(pa.chunked_array([array.slice(0, 1), array.slice(1)]))
    table = library.table(pa.table({"x": array}))
    return table if form == "table" else library.column(table)


def first_column(arrow: pa.Array | pa.ChunkedArray | pa.Table) -> pa.Array:
    """The only column, in its only chunk."""
    if isinstance(arrow, pa.Table):
        arrow = arrow.column(0)
    if isinstance(arrow, pa.ChunkedArray):
        [arrow] = arrow.chunks or [pa.nulls(0).cast(arrow.type)]
    return arrow.field(0) if pa.types.is_struct(arrow.type) else arrow


def begins(column: pa.Array) -> int:
    return arrow_address(column) if len(column) else 0


def into_array(library: ArrowLibrary, form: str, array: pa.Array) -> str:
    """What comes of `Array` taking it; shared is what has the same address every time."""
    try:
        given = source(library, form, array)
    except Exception as error:
        return f"none: {reason(error)}"
    try:
        both = [pa.array(Array(given)) for _ in range(2)]
    except Exception as error:
        return f"refused: {reason(error)}"
    try:
        first, second = map(first_column, both)
    except Exception as error:
        return f"wrong: {reason(error)}"
    return judged(first.to_numpy(), array.to_numpy(), begins(first) == begins(second))


def out_of_array(library: ArrowLibrary, form: str, array: pa.Array) -> str:
    """What comes of the library taking an `Array`."""
    try:
        given = pa.table({"x": array}) if form == "table" else array
        taken = getattr(library, form)(Array(given))
    except Exception as error:
        return f"refused: {reason(error)}"
    streams = hasattr(taken, "__arrow_c_stream__")
    back = (pa.table if form == "table" else pa.chunked_array if streams else pa.array)(taken)
    column = first_column(back)
    return judged(column.to_numpy(), array.to_numpy(), begins(column) == begins(array))


def of_arrow_library(library: ArrowLibrary) -> dict[str, dict[str, str]]:
    """What comes of each form and dtype, both ways."""
    ways = {"from": into_array, "to": out_of_array}
    cases = {dtype: numbers(dtype) for dtype in DTYPES}
    cases["empty"] = numbers("float32").slice(3, 0)
    return {
        f"{way} {form}": {name: exchange(library, form, case) for name, case in cases.items()}
        for way, exchange in ways.items()
        for form in FORMS
        if getattr(library, form) and (way, form) != ("to", "column")
    }
