"""Owners that hold each other in a chain: to let go of them all goes no deeper than of a few.

Each group is tried in a process of its own, on threads with so little stack that a short chain
would overflow it.
"""

import ctypes
import importlib
import subprocess
import sys
import threading
from pathlib import Path

import hostile
import numpy as np
import pyarrow as pa
import pytest
import system
from arrow_dlpack import Array, Tensor, asdlpack, from_dlpack, iter_batches, to_tensor
from arrow_dlpack._core import _live, _recorded_stream
from conftest import LEFT_OUT, environment
from dlpack_conformance.abi.capsule import PyCapsule_GetPointer, PyCapsule_SetName
from dlpack_conformance.abi.dlpack import CUDA, VERSIONED, DLManagedTensorVersioned

STACK = 128 << 10
LONG = 1000


class Pair:
    """Lends the capsules of another object: nothing but Arrow's structures is between them."""

    def __init__(self, array):
        self.pair = array.__arrow_c_array__()

    def __arrow_c_array__(self, requested_schema=None):
        return self.pair


class Producer:
    """Asks another one."""

    def __init__(self, tensor, device=(1, 0)):
        self.tensor = tensor
        self.device = device

    def __dlpack__(self, **keywords):
        return self.tensor.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self.device


class Interface:
    def __init__(self, tensor):
        self.array = np.asarray(tensor)
        self.__array_interface__ = self.array.__array_interface__


def reader(array):
    batch = pa.record_batch(array)
    return pa.RecordBatchReader.from_batches(batch.schema, [batch])


def one_batch(array):
    tensor = next(iter_batches(array, batch_size=None, columns=["x"]))["x"]
    return Array(pa.record_batch({"x": pa.array(tensor.to_arrow())}))


def module(name):
    """Imported where it is needed: each takes a process a while."""
    return importlib.import_module(name)


NUMBERS = lambda: Array(pa.array([1, 2, 3]))  # noqa: E731
TEXTS = lambda: Array(pa.array(["a", "b"]))  # noqa: E731
TABLE = lambda: Array(pa.table({"x": [1, 2], "y": ["a", "b"]}))  # noqa: E731
TENSOR = lambda: Tensor.from_dlpack(np.arange(3.0))  # noqa: E731

GROUPS = {
    "arrow": {
        "pyarrow": (NUMBERS, lambda a: Array(pa.array(a))),
        "pyarrow, texts": (TEXTS, lambda a: Array(pa.array(a))),
        "pyarrow, chunks": (TEXTS, lambda a: Array(pa.chunked_array([pa.array(a)]))),
        "pyarrow, batches": (TABLE, lambda a: Array(pa.record_batch(a))),
        "pyarrow, readers": (TABLE, lambda a: Array(reader(a))),
        "batches": (TABLE, one_batch),
        "capsules": (TEXTS, lambda a: Array(Pair(a))),
        "polars": (TEXTS, lambda a: Array(module("polars").Series(a))),
        "nanoarrow": (TEXTS, lambda a: Array(module("nanoarrow").Array(a))),
        "arro3": (TEXTS, lambda a: Array(module("arro3.core").Array(a))),
    },
    "tensors": {
        "numpy": (TENSOR, lambda t: Tensor.from_dlpack(np.from_dlpack(t))),
        "capsules": (TENSOR, lambda t: Tensor.from_dlpack(t.__dlpack__(max_version=(1, 3)))),
        "legacy capsules": (TENSOR, lambda t: Tensor.from_dlpack(t.__dlpack__())),
        "producers": (TENSOR, lambda t: Tensor.from_dlpack(Producer(t))),
        "buffers": (TENSOR, lambda t: asdlpack(memoryview(t))),
        "interfaces": (TENSOR, lambda t: asdlpack(Interface(t))),
        "arrays": (TENSOR, lambda t: to_tensor(from_dlpack(t))),
        "columns": (TENSOR, lambda t: to_tensor(pa.array(from_dlpack(t)))),
    },
    "frameworks": {
        "torch": (TENSOR, lambda t: Tensor.from_dlpack(module("torch").from_dlpack(t))),
        "tvm_ffi": (TENSOR, lambda t: Tensor.from_dlpack(module("tvm_ffi").from_dlpack(t))),
    },
}


def chains(group):
    return {name: steps for name, steps in GROUPS[group].items() if name not in LEFT_OUT}


def chain(start, step):
    last = start()
    for _ in range(LONG):
        last = step(last)
    return [last]


def on_a_small_stack(work, held):
    problems = []

    def run():
        try:
            work(held)
        except BaseException as error:
            problems.append(error)

    threading.stack_size(STACK)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if problems:
        raise problems[0]


def with_an_exception_in_flight(held):
    def refuse(_):
        raise KeyError("in flight")

    with pytest.raises(KeyError, match="in flight"):
        refuse(held.pop())


def on_a_thread_that_python_has_never_seen(held):
    """What C would call: the deleter of a tensor, the release of an array."""
    last = held.pop()
    if isinstance(last, Tensor):
        capsule = last.__dlpack__(max_version=(1, 3))
        address = PyCapsule_GetPointer(capsule, VERSIONED)
        PyCapsule_SetName(capsule, b"used_dltensor_versioned")
        callback = DLManagedTensorVersioned.from_address(address).deleter
    else:
        _, capsule = last.__arrow_c_array__()
        address = PyCapsule_GetPointer(capsule, b"arrow_array")
        # The ninth field of struct ArrowArray.
        callback = ctypes.c_void_p.from_address(address + 8 * 8).value
    del last
    system.call_on_a_thread_of_c(callback, address, STACK)


def let_go(group):
    """Every chain of a group, in two ways; its name comes before its crash."""
    for name, (start, step) in chains(group).items():
        print(name, flush=True)
        on_a_small_stack(with_an_exception_in_flight, chain(start, step))
        assert _live() == (0, 0), name
        on_a_thread_that_python_has_never_seen(chain(start, step))
        assert _live() == (0, 0), name
    print("done")


@pytest.mark.parametrize("group", GROUPS)
def test_chains_of_owners_are_let_go_on_any_stack(group):
    done = subprocess.run(
        [sys.executable, "-c", f"import test_letting_go; test_letting_go.let_go({group!r})"],
        capture_output=True,
        text=True,
        check=False,
        env=environment(Path(__file__).parent),
    )
    assert (done.returncode, done.stdout.splitlines()) == (0, [*chains(group), "done"]), done.stderr


class Streams:
    """An object whose stream is the one in a capsule."""

    def __init__(self, capsule):
        self.capsule = capsule

    def __arrow_c_stream__(self, requested_schema=None):
        return self.capsule


def let_streams_go():
    streams = chain(
        lambda: pa.table({"x": [1]}).__arrow_c_stream__(),
        lambda capsule: _recorded_stream(Streams(capsule)),
    )
    on_a_small_stack(list.clear, streams)
    print("done")


def test_a_chain_of_recorded_streams_is_let_go_on_any_stack():
    done = subprocess.run(
        [sys.executable, "-c", "import test_letting_go; test_letting_go.let_streams_go()"],
        capture_output=True,
        text=True,
        check=False,
        env=environment(Path(__file__).parent),
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


class Gpu:
    """A tensor on a device that is not here; each consumer gets another share of it."""

    def __init__(self):
        self.memory = hostile.Producer(device_type=CUDA)

    def __dlpack__(self, **keywords):
        return self.memory.capsule()

    def __dlpack_device__(self):
        return (CUDA, 0)


def test_what_is_ours_is_shared_and_not_wrapped_again(live):
    """However often: nothing new holds the memory, so there is nothing to let go of."""
    for start, step in [
        (NUMBERS, Array),
        (TEXTS, Array),
        (TABLE, Array),
        (TENSOR, Tensor.from_dlpack),
        (TENSOR, asdlpack),
        (TENSOR, lambda t: Tensor.from_dlpack(t, device="cpu", copy=False)),
        (lambda: Tensor.from_dlpack(Gpu()), Tensor.from_dlpack),
    ]:
        last = start()
        before = live()
        for _ in range(30_000):
            last = step(last)
        assert live() == before


def test_a_column_keeps_its_field_when_it_is_shared():
    dates = pa.array([1, 2], pa.date32())
    tensor = to_tensor(dates, physical=True)
    assert Tensor.from_dlpack(tensor).field.type == tensor.field.type == "Date32"
    assert Array(Array(pa.array([{"x": 1}]))).field.type == 'Struct("x": Int64)'


def test_a_subclass_hands_out_what_it_says():
    class Same(Array):
        pass

    class Doubled(Array):
        def __arrow_c_array__(self, requested_schema=None):
            doubled = np.from_dlpack(self) * 2
            return pa.array(doubled).__arrow_c_array__()

    numbers = pa.array([1, 2])
    assert pa.array(Array(Doubled(numbers))).to_pylist() == [2, 4]
    assert memoryview(to_tensor(Doubled(numbers))).tolist() == [2, 4]
    assert pa.array(Array(Same(numbers))).to_pylist() == [1, 2]
    assert type(Same(Same(numbers))) is Same


#: What other libraries let go of without the GIL, below a call of ours.
BELOW = {
    "the owner of an array is a tensor of PyTorch's": """
import torch
array = from_dlpack(torch.from_dlpack(asdlpack(owner)))
del array
""",
    "a request": """
import torch
encoder = Encoder(columns={"x": None}).fit(pa.table({"x": [1.0]}))
answer = encoder({"x": torch.from_dlpack(asdlpack(memoryview(owner).cast("d")))})
del answer
""",
    "in a generator that a Loader reads": """
import torch
def part(index, count):
    for _ in range(3):
        tensor = torch.from_dlpack(asdlpack(owner))
        del tensor
        yield pa.table({"x": [1.0]})
assert len(list(Loader(part, batch_size=1))) == 3
""",
    "by a reader of pyarrow's": """
def part(index, count):
    reader = pa.table({"x": pa.array(from_dlpack(asdlpack(owner)))}).to_reader()
    for batch in reader:
        del batch
    del reader
    yield pa.table({"x": [1.0]})
assert len(list(Loader(part, batch_size=1))) == 1
""",
}


@pytest.mark.parametrize("code", BELOW.values(), ids=BELOW)
def test_memory_of_python_is_let_go_of_by_code_that_has_detached(code):
    if "import torch" in code:
        pytest.importorskip("torch")
    code = f"""
import pyarrow as pa
from arrow_dlpack import Encoder, Loader, asdlpack, from_dlpack
owner = bytearray(8)
{code}
owner.append(1)  # which it refuses as long as its memory is lent
"""
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", code],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
