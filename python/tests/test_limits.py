"""Hostile sizes and depths: an error, and never an abort for want of memory or stack."""

import threading
from functools import partial

import exchange
import hostile
import numpy as np
import pyarrow as pa
import pytest
from arrow_dlpack import (
    Array,
    AsArrow,
    Categories,
    Encoder,
    Loader,
    Tensor,
    UnsupportedError,
    _core,
    asdlpack,
    explain,
    from_dlpack,
    from_ragged,
    ragged,
    record_batch,
    to_tensor,
)
from dlpack_conformance.abi.dlpack import BOOL
from dlpack_conformance.abi.exchange import SET_ERROR
from hostile import Producer

HUGE = 1 << 62
UNTOLD = 1 << 57  # bytes that can be counted, and that no machine has

DTYPES = {
    "float32": {},
    "bool": {"code": BOOL, "bits": 8},
    "bfloat16": {"code": 4, "bits": 16},
    "complex64": {"code": 5, "bits": 64},
    "float4": {"code": 17, "bits": 4},
}
ENTRIES = {
    "from_dlpack": from_dlpack,
    "from_dlpack, opaque": lambda x: from_dlpack(x, type="opaque"),
    "from_dlpack, lists": lambda x: from_dlpack(x, type="fixed_size_list"),
    "from_dlpack, copy": lambda x: from_dlpack(x, copy=True),
    "from_ragged, values": lambda x: from_ragged(x, np.array([0, 1])),
    "from_ragged, offsets": lambda x: from_ragged(np.array([0, 1]), x),
    "record_batch, dict": lambda x: record_batch({"x": x}),
    "record_batch, matrix": lambda x: record_batch(x, names=["a", "b"]),
    "Tensor, copy": lambda x: Tensor.from_dlpack(x, copy=True),
    "asdlpack, copy": lambda x: asdlpack(x, copy=True),
}


@pytest.mark.parametrize("legacy", [False, True], ids=["versioned", "legacy"])
@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("shape", [(HUGE,), (HUGE, 2), (1 << 31, 1 << 31, 16)])
def test_a_shape_that_nothing_has_is_refused(shape, entry, legacy):
    producer = Producer(shape=shape, strides=(0,) * len(shape), legacy=legacy)
    with pytest.raises(BufferError, match="overflows"):
        ENTRIES[entry](producer.capsule())
    assert producer.deleted == 1


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("shape", [(UNTOLD,), (UNTOLD // 2, 2)])
def test_elements_that_share_a_few_bytes_are_too_many_to_be_copied(shape, entry, dtype):
    """A stride of 0: the shape is true, and its copy is beyond all memory."""
    producer = Producer(shape=shape, strides=(0,) * len(shape), **DTYPES[dtype])
    with pytest.raises((BufferError, MemoryError)):
        ENTRIES[entry](producer.capsule())
    assert producer.deleted == 1


def test_what_cannot_be_copied_can_be_explained_and_looked_at():
    producer = Producer(shape=(UNTOLD,), strides=(0,))
    assert explain(producer.capsule()).bytes_copied == 4 * UNTOLD
    tensor = Tensor.from_dlpack(producer.capsule())
    assert (tensor.size, memoryview(tensor).nbytes) == (UNTOLD, 4 * UNTOLD)
    for copy in (
        lambda: tensor.__dlpack__(copy=True),
        tensor.to_arrow,
        lambda: from_dlpack(tensor),
    ):
        with pytest.raises(MemoryError):
            copy()


def test_a_column_that_cannot_be_copied_is_out_of_memory_too():
    with pytest.raises(MemoryError, match='column "x"'):
        record_batch({"x": Producer(shape=(UNTOLD,), strides=(0,)).capsule()})


@pytest.mark.parametrize("strides", [None, (0,), (8,)])
@pytest.mark.parametrize("extent", [HUGE, UNTOLD])
def test_an_array_interface_of_a_shape_that_nothing_has_is_refused(extent, strides):
    memory = bytearray(8)

    class Described:
        __array_interface__ = {  # noqa: RUF012
            "version": 3,
            "typestr": "<f8",
            "shape": (extent,),
            "strides": strides,
            "data": memory,
        }

    expected = (BufferError, MemoryError)
    if strides == (0,) and extent == UNTOLD:
        assert asdlpack(Described()).size == UNTOLD
        with pytest.raises(expected):
            asdlpack(Described(), copy=True)
    else:
        with pytest.raises(expected):
            asdlpack(Described())


@pytest.mark.parametrize("shape", [(HUGE,), (UNTOLD,), (1 << 40, 1 << 17)])
def test_the_allocator_of_the_exchange_api_says_no(shape):
    prototype = Producer(shape=shape).managed.dl_tensor
    out, said = exchange.Out(), []
    set_error = SET_ERROR(lambda _context, kind, message: said.append((kind, message)))
    allocate = exchange.table_of(Tensor).allocate
    address = hostile.ctypes.addressof(prototype)
    assert allocate(address, out.at, None, exchange.address_of(set_error)) == -1
    assert said[0][0] in (b"BufferError", b"MemoryError")
    assert out.value is None


def test_rows_of_no_size_can_be_any_number_until_they_cannot_be_counted():
    empty = pa.array([], pa.int8())
    lists = pa.Array.from_buffers(pa.list_(pa.int8(), 0), HUGE, [None], children=[empty])
    binaries = pa.Array.from_buffers(pa.binary(0), HUGE, [None, pa.py_buffer(b"")])
    for array in (lists, binaries):
        assert len(Array(array)) == HUGE
        for options in ({}, {"nulls": 0}, {"copy": True}):
            assert to_tensor(array, **options).shape == (HUGE, 0)
        assert len(from_dlpack(to_tensor(array))) == HUGE
        for count in (2, 4):
            chunks = pa.chunked_array([array] * count)
            for convert in (Array, to_tensor, explain, lambda x: to_tensor(x, nulls="mask")):
                with pytest.raises(BufferError, match="overflows"):
                    convert(chunks)


def test_chunks_that_are_one_and_the_same_are_too_many_to_be_put_together():
    numbers = pa.chunked_array([pa.array(np.zeros(10**7))] * 10**5)
    binaries = pa.chunked_array([pa.array([b"x" * 10**8])] * 10**5)
    wide = {"offset_type": "int64"}
    plan = explain(binaries, ragged=True, **wide)
    assert plan.bytes_copied == 10**13 + 8 * (10**5 + 1)
    with pytest.raises(ValueError, match='offset_type="int64"'):
        ragged(binaries)
    for chunks, conversions in (
        (numbers, (Array, to_tensor)),
        (binaries, (Array, partial(ragged, **wide))),
    ):
        for convert in conversions:
            with pytest.raises(MemoryError):
                convert(chunks)


def test_words_that_are_nulls_of_a_claimed_number_are_asked_for_first():
    words = pa.Array.from_buffers(pa.null(), 1 << 50, [None])
    coded = pa.DictionaryArray.from_arrays(pa.array([0, None], pa.int64()), words)
    lists = pa.FixedSizeListArray.from_arrays(coded, 2)
    coded, lists = pa.table({"x": coded}), pa.table({"x": lists})
    codes = {"x": Categories(["a"], nulls=-1)}
    for read in (
        lambda: list(Loader(coded, columns=codes)),
        lambda: list(Loader(coded, columns={"x": Categories(["a"], nulls="mask")})),
        lambda: Encoder(columns=codes).fit(pa.table({"x": ["a"]}))(coded),
        lambda: list(Loader(lists, columns={"x": AsArrow()}, batch_size=1, shuffle=2)),
        lambda: _core._take(lists, pa.array([0], "uint64")),
    ):
        with pytest.raises(MemoryError):
            read()


def test_chunks_that_share_a_dictionary_or_their_texts_are_put_together():
    """What many chunks share counts once."""
    words = pa.array(["x" * 10**7, "y"])
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 1], "int32"), words)
    assert len(Array(pa.chunked_array([coded] * 100))) == 200
    views = pa.array(["x" * 10**7, "y"], pa.string_view())
    assert len(Array(pa.chunked_array([views] * 100))) == 200


def expansions():
    """Arrays of few bytes, and types in which they would have more than there are."""
    texts = pa.array(["x" * 10**7, "y"])
    keys = pa.array(np.zeros(10**6, "int32"))
    coded = pa.DictionaryArray.from_arrays(keys, texts)
    binaries = pa.DictionaryArray.from_arrays(keys, texts.cast("binary"))
    return {
        "a dictionary of texts": (coded, pa.large_string()),
        "a dictionary of binaries": (binaries, pa.large_binary()),
        "a dictionary to views": (coded, pa.string_view()),
        "a dictionary in a struct": (
            pa.StructArray.from_arrays([coded], ["x"]),
            pa.struct([("x", pa.large_string())]),
        ),
    }


@pytest.mark.parametrize("name", list(expansions()))
def test_what_does_not_fit_memory_as_another_type_is_not_handed_out_so(name):
    array, requested = expansions()[name]
    with pytest.raises(ValueError, match="do not fit memory"):
        Array(array).__arrow_c_array__(requested.__arrow_c_schema__())


def test_what_fits_memory_as_another_type_is_handed_out_so():
    coded = pa.array(["a", "bc", None]).dictionary_encode()
    large = pa.array(["a", None, "bc"], pa.large_string()).dictionary_encode()
    for array, requested in (
        (coded, pa.string()),
        (large, pa.string()),
        (large.cast(pa.dictionary("int32", pa.large_binary())), pa.binary()),
        (pa.DictionaryArray.from_arrays(pa.array([], "int8"), pa.array([], "string")), pa.string()),
        (pa.array(["a", None], pa.string_view()), pa.string()),
    ):
        given = pa.array(Array(array), type=requested)
        assert given.type == requested
        assert given.to_pylist() == array.to_pylist()


def on_a_small_stack(work):
    """Runs `work` in a thread with 2 MiB of stack: a debug build takes one of them."""
    raised = []

    def run():
        try:
            work()
        except BaseException as error:
            raised.append(error)

    before = threading.stack_size(2 << 20)
    try:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    if raised:
        raise raised[0]


def test_a_tensor_of_many_axes_is_no_deep_type():
    def work():
        axes = 256  # the most that a tensor may have
        producer = Producer(shape=(1,) * axes, strides=(1,) * axes)
        with pytest.raises(UnsupportedError, match="more than 64 levels"):
            from_dlpack(producer.capsule(), type="fixed_size_list")
        array = from_dlpack(producer.capsule())
        assert Tensor.from_dlpack(array).ndim == axes
        assert explain(array).zero_copy
        with pytest.raises(BufferError, match="more than the 64"):
            memoryview(Tensor.from_dlpack(array))

    on_a_small_stack(work)


def test_64_levels_of_lists_go_through_a_small_stack_both_ways():
    def work():
        producer = Producer(values=(7.0,), shape=(1,) * 64, strides=(1,) * 64)
        array = from_dlpack(producer.capsule(), type="fixed_size_list")
        assert Tensor.from_dlpack(array).ndim == 64
        assert Array(pa.array(array)).type == array.type
        assert explain(pa.array(array)).zero_copy
        with pytest.raises(UnsupportedError, match="more than 64 levels"):
            record_batch({"x": producer.capsule()}, type="fixed_size_list")

    on_a_small_stack(work)


def deep(levels):
    kind = pa.int8()
    for _ in range(levels):
        kind = pa.list_(kind, 1)
    return kind


def test_types_that_are_asked_for_are_not_deep_either():
    def work():
        for levels in (64, 1000):
            requested = deep(levels).__arrow_c_schema__()

            class Kind:
                def __arrow_c_schema__(self, requested=requested):
                    return requested

            with pytest.raises(ValueError, match="more than 64 levels"):
                from_dlpack(np.zeros(3), type=Kind())
            with pytest.raises(ValueError, match="more than 64 levels"):
                from_ragged(np.zeros(3), np.array([0, 1]), type=Kind())
            with pytest.raises(ValueError, match="more than 64 levels"):
                Array(pa.array([1])).__arrow_c_array__(requested)

    on_a_small_stack(work)
