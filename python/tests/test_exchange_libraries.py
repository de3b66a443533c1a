"""The C exchange API between us and those who have one: PyTorch, Paddle, tvm-ffi."""

import ctypes
import gc

import numpy as np
import paddle  # before anything that brings another protobuf
import pyarrow as pa
import pytest
import torch
import tvm_ffi
from arrow_dlpack import Array, Tensor, UnsupportedError, from_dlpack
from exchange import Out, description, export, table_of
from test_exchange import OURS, Errors, MyArray, array, lend, raise_


def both_ways(x):
    """What from_dlpack does with an object, and with one that has nothing but its __dlpack__."""

    class MethodOnly:
        def __dlpack__(self, **keywords):
            return x.__dlpack__(**keywords)

        def __dlpack_device__(self):
            return x.__dlpack_device__()

    def outcome(x):
        try:
            tensor = Tensor.from_dlpack(x)
        except Exception as error:
            return type(error), str(error)
        address = Out()
        address = export(tensor)
        described = description(address.tensor().dl_tensor)
        address.delete()
        return tensor.dtype, tensor.device, tensor.readonly, described

    return outcome(x), outcome(MethodOnly())


class Plain(torch.Tensor):
    pass


class Intervenes(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if function is torch.Tensor.__dlpack__:
            raise BufferError("not this way")
        return super().__torch_function__(function, types, args, kwargs or {})


class Dispatches(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        raise NotImplementedError


TORCH = {
    "plain": lambda: torch.arange(6.0).reshape(2, 3),
    "0-D": lambda: torch.tensor(1.5),
    "empty": lambda: torch.zeros(0, 3),
    "strided": lambda: torch.arange(12).reshape(3, 4).T[::2],
    "broadcast": lambda: torch.arange(3.0).expand(2, 3),
    "bool": lambda: torch.tensor([True, False]),
    "bfloat16": lambda: torch.ones(3, dtype=torch.bfloat16),
    "float8": lambda: torch.ones(3).to(torch.float8_e4m3fn),
    "float4": lambda: torch.zeros(3, dtype=torch.uint8).view(torch.float4_e2m1fn_x2),
    "complex": lambda: torch.ones(3, dtype=torch.complex64),
    "offset": lambda: torch.arange(6.0)[3:],
    "requires_grad": lambda: torch.zeros(3, requires_grad=True),
    "result of grad": lambda: torch.zeros(3, requires_grad=True) * 2,
    "parameter": lambda: torch.nn.Parameter(torch.zeros(3)),
    "frozen parameter": lambda: torch.nn.Parameter(torch.zeros(3), requires_grad=False),
    "uninitialised": torch.nn.UninitializedParameter,
    "conj": lambda: torch.tensor([1 + 2j]).conj(),
    "conj resolved": lambda: torch.tensor([1 + 2j]).conj().resolve_conj(),
    "sparse": lambda: torch.eye(3).to_sparse(),
    "csr": lambda: torch.eye(3).to_sparse_csr(),
    "mkldnn": lambda: torch.zeros(3).to_mkldnn(),
    "meta": lambda: torch.zeros(3, device="meta"),
    "quantized": lambda: torch.quantize_per_tensor(torch.zeros(3), 0.1, 0, torch.quint8),
    "zero tensor": lambda: torch._efficientzerotensor((3,)),
    "inference": lambda: torch.inference_mode()(torch.zeros)(3),
    "subclass": lambda: torch.zeros(3).as_subclass(Plain),
    "torch_function": lambda: torch.zeros(3).as_subclass(Intervenes),
    "torch_dispatch": lambda: Dispatches(torch.zeros(3)),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", TORCH)
def test_torch_by_table_is_torch_by_method(case, live):
    x = TORCH[case]()
    by_table, by_method = both_ways(x)
    assert by_table == by_method


@pytest.mark.filterwarnings("ignore")
def test_torch_inside_of_its_transforms_is_torch_by_method():
    seen = []

    def look(x):
        seen.append(both_ways(x))
        return x.sum()

    torch.func.functionalize(look)(torch.zeros(3))
    torch.func.vmap(look)(torch.zeros(2, 3))
    # What torch.func.grad does, which itself imports what cannot be in one process with tensorflow.
    inside, x = torch._C._functorch, torch.zeros(3)
    level = inside._grad_increment_nesting()
    try:
        look(inside._wrap_for_grad(x, level))
    finally:
        gc.collect()  # what is of this level must be gone when it ends
        inside._grad_decrement_nesting()
    assert len(seen) == 3
    for by_table, by_method in seen:
        assert by_table == by_method


PADDLE = {
    "plain": lambda: paddle.arange(6).reshape([2, 3]),
    "0-D": lambda: paddle.to_tensor(1.5),
    "empty": lambda: paddle.zeros([0, 3]),
    "strided": lambda: paddle.arange(12).reshape([3, 4]).T[::2],
    "bool": lambda: paddle.to_tensor([True, False]),
    "bfloat16": lambda: paddle.ones([3], dtype="bfloat16"),
    "complex": lambda: paddle.ones([3], dtype="complex64"),
    "grad": lambda: paddle.to_tensor([1.0], stop_gradient=False),
    "parameter": lambda: paddle.create_parameter([2], "float32"),
    "sparse": lambda: paddle.sparse.sparse_coo_tensor([[0], [1]], [1.0], [2, 2]),
    "csr": lambda: paddle.sparse.sparse_csr_tensor([0, 1], [0], [1.0], [1, 1]),
    "nothing": paddle.Tensor,
}


@pytest.mark.library("paddle")
@pytest.mark.parametrize("case", PADDLE)
def test_paddle_by_table_is_paddle_by_method(case, live):
    by_table, by_method = both_ways(PADDLE[case]())
    assert by_table == by_method


# For real.


@pytest.mark.parametrize(
    ("make", "address"),
    [
        (lambda: torch.arange(6.0).reshape(2, 3), lambda x: x.data_ptr()),
        (lambda: paddle.arange(6, dtype="float32").reshape([2, 3]), lambda x: x.data_ptr()),
    ],
    ids=["torch", "paddle"],
)
def test_their_memory_is_shared_and_kept(make, address, live, monkeypatch):
    x = make()
    monkeypatch.setattr(type(x), "__dlpack__", lambda *_, **__: raise_(AssertionError("asked")))
    where = address(x)
    tensor, column = Tensor.from_dlpack(x), from_dlpack(x)
    assert (tensor.shape, tensor.dtype, tensor.readonly) == ((2, 3), "float32", False)
    assert np.asarray(tensor).__array_interface__["data"][0] == where
    assert pa.array(column).storage.flatten().buffers()[1].address == where
    assert live() == (0, 2)
    del x
    gc.collect()
    assert np.asarray(tensor).tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("kind", [Array, MyArray])
def test_tvm_ffi_takes_arrays_by_our_table(kind, live):
    column = pa.array([1.0, 2.0, 3.0], "float32")
    taken = tvm_ffi.from_dlpack(kind(column))
    assert (tuple(taken.shape), str(taken.dtype)) == ((3,), "float32")
    assert live() == (1, 0)
    back = Tensor.from_dlpack(taken)
    address = column.buffers()[1].address
    assert np.from_dlpack(back).__array_interface__["data"][0] == address
    del taken, back
    assert live() == (0, 0)


def test_tvm_ffi_takes_tensors_by_our_table(live):
    matrix = np.arange(6.0).reshape(2, 3)[:, ::-1]
    taken = tvm_ffi.from_dlpack(Tensor.from_dlpack(matrix))
    assert np.from_dlpack(taken).tolist() == matrix.tolist()
    del taken
    assert live() == (0, 0)


def test_tvm_ffi_deletes_what_it_refuses_and_asks_again(live):
    transposed = Tensor.from_dlpack(np.zeros((2, 3)).T)
    with pytest.raises(Exception, match="(?i)contiguous|convert"):
        tvm_ffi.from_dlpack(transposed, require_contiguous=True)
    assert live() == (0, 1)


def test_tvm_ffi_reports_our_refusals(live):
    with pytest.raises(UnsupportedError, match="1 null"):
        tvm_ffi.from_dlpack(array([1, None], "int32"))


def test_tvm_ffi_functions_take_our_objects_as_arguments(live):
    seen = []

    @tvm_ffi.convert
    def look(x):
        seen.append((tuple(x.shape), np.from_dlpack(x).tolist()))

    kept = array()
    look(kept)
    look(Tensor.from_dlpack(np.array([[1, 2]])))
    assert seen == [((3,), [1.0, 2.0, 3.0]), ((1, 2), [[1, 2]])]
    del kept
    gc.collect()
    assert live() == (0, 0)


@pytest.mark.parametrize("kind", [torch.Tensor, paddle.Tensor], ids=["torch", "paddle"])
def test_their_to_object_takes_ours(kind, live):
    table = table_of(kind)
    out = export(array([1.0, 2.0], "float32"))
    where, taken = out.tensor().dl_tensor.data, Out()
    assert table.to_object(out.value, taken.at) == 0
    theirs = taken.object()
    assert (theirs.data_ptr(), theirs.tolist()) == (where, [1.0, 2.0])
    assert live() == (1, 0)
    del theirs
    assert live() == (0, 0)


@pytest.mark.parametrize(
    "make", [lambda: torch.ones(3), lambda: paddle.ones([3])], ids=["torch", "paddle"]
)
def test_our_to_object_takes_theirs(make, live):
    theirs = make()
    out, taken = export(theirs), Out()
    where = theirs.data_ptr()
    del theirs
    assert OURS.to_object(out.value, taken.at) == 0
    tensor = taken.object()
    assert np.asarray(tensor).__array_interface__["data"][0] == where
    assert (tensor.readonly, np.asarray(tensor).tolist()) == (False, [1, 1, 1])


@pytest.mark.parametrize("kind", [torch.Tensor, paddle.Tensor], ids=["torch", "paddle"])
def test_our_prototypes_are_good_for_their_allocators(kind, live):
    errors, out = Errors(), Out()
    wanted = lend(array())
    allocator = table_of(kind).allocate
    assert allocator(ctypes.addressof(wanted), out.at, None, errors.at) == 0, errors.seen
    assert description(out.tensor().dl_tensor)[0] == (3,)
    taken = Out()
    assert OURS.to_object(out.value, taken.at) == 0
    assert taken.object().shape == (3,)
