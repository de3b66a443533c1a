"""Tensors and arrays by value: pickle, copy, other processes."""

import copy
import ctypes
import multiprocessing
import pickle

import conftest  # noqa: F401 (the other process has to know what was left out, too)
import numpy as np
import pyarrow as pa
import pytest
import torch
from arrow_dlpack import Array, Tensor, _core, from_dlpack, to_tensor
from dlpack_conformance.abi.dlpack import CUDA, SUBBYTE_PADDED
from hostile import Producer

TENSORS = {
    "vector": np.arange(5),
    "strided": np.arange(24.0).reshape(4, 6)[::2, ::-1],
    "column-major": np.asfortranarray(np.arange(6, dtype="int8").reshape(2, 3)),
    "without axes": np.array(2.5),
    "without elements": np.zeros((2, 0, 3), "float16"),
    "bfloat16": torch.tensor([1.5, -2], dtype=torch.bfloat16),
    "complex": np.array([1 + 2j]),
    "bool": np.array([True, False]),
}
ARRAYS = [
    pa.array([1, None, 3]),
    pa.array([], pa.string()),
    pa.array(["a", None, "bcd"] * 3),
    pa.array(["long enough to be apart"] * 3, pa.string_view()),
    pa.array([True, None]),
    pa.array([[1, 2], None, []]),
    pa.array([[1, 2], [3, None]], pa.list_(pa.int16(), 2)),
    pa.array([{"x": 1, "y": "a"}, None]),
    pa.array(["a", "b", "a"]).dictionary_encode(),
    pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
    pa.array([0, 1], pa.timestamp("ms", "Europe/Paris")),
    pa.array([None, None]),
    pa.RunEndEncodedArray.from_arrays([2, 5], [1.5, 2.5]),
    pa.UnionArray.from_sparse(
        pa.array([0, 1], pa.int8()), [pa.array([1, 2]), pa.array(["a", "b"])]
    ),
    pa.FixedShapeTensorArray.from_numpy_ndarray(np.arange(6).reshape(3, 2)),
]
PROTOCOLS = range(2, pickle.HIGHEST_PROTOCOL + 1)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("source", TENSORS.values(), ids=TENSORS.keys())
def test_a_tensor_comes_back(source, protocol):
    tensor = Tensor.from_dlpack(source)
    back = pickle.loads(pickle.dumps(tensor, protocol))
    assert (back.dtype, back.shape, back.tolist()) == (tensor.dtype, tensor.shape, tensor.tolist())
    assert back.is_contiguous


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: str(array.type))
def test_an_array_comes_back(array, protocol):
    for part in (array, array[1:]):
        back = pa.array(pickle.loads(pickle.dumps(Array(part), protocol)))
        assert back.equals(part)
        back.validate(full=True)


def test_metadata_comes_back():
    field = pa.field("x", pa.int32(), nullable=False, metadata={"unit": "km", "": "empty"})
    array = from_dlpack(np.arange(3, dtype="int32"), type=field)
    back = pickle.loads(pickle.dumps(array)).field
    assert pa.field(back).equals(field, check_metadata=True)


def test_a_slice_is_not_the_whole():
    words = pa.array([str(number) for number in range(100_000)])
    assert len(pickle.dumps(Array(words[5:10]))) < 2000
    numbers = Tensor.from_dlpack(np.arange(100_000))
    assert len(pickle.dumps(numbers[5:10])) < 2000


def test_buffers_stay_where_they_are_out_of_band():
    source = np.arange(1000)
    buffers = []
    data = pickle.dumps(Tensor.from_dlpack(source), 5, buffer_callback=buffers.append)
    assert len(data) < 500
    back = pickle.loads(data, buffers=buffers)
    assert np.shares_memory(np.from_dlpack(back), source)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_copies_have_memory_of_their_own(copied):
    source = np.arange(6).reshape(2, 3)[:, ::-1]
    source.flags.writeable = False
    twin = np.from_dlpack(copied(Tensor.from_dlpack(source)))
    twin[0] = 9
    assert source.tolist() == [[2, 1, 0], [5, 4, 3]]
    numbers = np.arange(3)
    array = copied(from_dlpack(numbers))
    numbers[:] = 9
    assert pa.array(array).to_pylist() == [0, 1, 2]
    days = to_tensor(pa.array([1], pa.date32()), physical=True)
    assert pa.array(copied(days).to_arrow(type=copied(days).field)).type == pa.date32()


@pytest.mark.parametrize("protocol", range(6))
def test_a_tensor_still_knows_its_column(protocol):
    def back(column):
        return pickle.loads(pickle.dumps(to_tensor(column, physical=True), protocol))

    words = back(pa.array(["b", "a", None, "b"]).dictionary_encode().drop_null())
    assert (words.tolist(), pa.array(words.dictionary).to_pylist()) == ([0, 1, 0], ["b", "a"])
    hours = pa.array([3600], pa.timestamp("s", "UTC"))
    assert pa.array(back(hours).to_arrow(type=back(hours).field)) == hours


def test_a_tensor_of_more_axes_than_numpy_has_comes_back():
    deep = Tensor.from_dlpack(np.arange(2.0))[(None,) * 99]
    back = pickle.loads(pickle.dumps(deep))
    assert (back.shape, back[(0,) * 99].tolist()) == ((1,) * 99 + (2,), [0, 1])


@pytest.mark.parametrize("flags", [0, SUBBYTE_PADDED])
def test_elements_of_under_a_byte_come_back(flags):
    data = b"\x21" if flags == 0 else b"\x01\x02"
    given = Producer(data, ctypes.c_uint8, shape=(2,), code=1, bits=4, flags=flags)
    back = pickle.loads(pickle.dumps(Tensor.from_dlpack(given)))
    assert (back.dtype, back.tolist()) == ("uint4", [1, 2])


def test_memory_of_a_device_stays_there():
    given = Producer(data=0xDEAD0000, device_type=CUDA)
    tensor = Tensor.from_dlpack(given)
    for take in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(BufferError, match="cuda:0, which the CPU cannot read"):
            take(tensor)


def test_a_field_that_is_not_the_tensors_own_is_found_when_it_is_asked_for():
    text = ("u", "", 2, {}, [], None)
    tensor = _core._unpickle_tensor((0, 64, 1), False, (1,), bytes(8), text)
    with pytest.raises((BufferError, TypeError, ValueError)):
        from_dlpack(tensor, type=tensor.field)


@pytest.mark.parametrize(
    "state",
    [
        ((0, 64, 1), False, (2,), b"short"),
        ((0, 64, 1), False, (-1,), b""),
        ((0, 64, 1), False, (2**62, 2**62), b""),
        ((0, 0, 1), False, (1,), b"\0"),
        ((0, 64, 0), False, (1,), bytes(8)),
        ((0, 64, 1), False, (1,) * 1000, bytes(8)),
        ((0, 64, 1), False, (1,), None),
        ((0, 999, 1), False, (1,), b""),
        ((0, 64, 1), False, (1,), bytes(8), ("no format", "", 0, {}, [], None)),
        ((0, 64, 1), False, (1,), bytes(8), ()),
        ((0, 64, 1), False, (1,), bytes(8), None, [1]),
    ],
)
def test_a_tensor_that_cannot_be_is_refused(state, live):
    with pytest.raises((BufferError, TypeError, ValueError, OverflowError)):
        _core._unpickle_tensor(*state)
    assert live() == (0, 0)


def plain(format, *children, **changed):
    named = {"name": "", "flags": 2, "metadata": {}, "children": list(children), "dictionary": None}
    return (format, *(named | changed).values())


@pytest.mark.parametrize(
    ("schema", "data"),
    [
        (plain("l"), (1000, None, [bytes(8)], [])),
        (plain("l"), (2**62, None, [bytes(8)], [])),
        (plain("l"), (1, None, [], [])),
        (plain("l"), (1, None, [bytes(8)], [(0, None, [], [])])),
        (plain("l"), (9, b"", [bytes(72)], [])),
        (plain("nonsense"), (1, None, [bytes(8)], [])),
        (plain("u"), (1, None, [np.array([0, 9], "int32"), b"a"], [])),
        (plain("u"), (1, None, [np.array([0, 9], "int32").tobytes(), b"a"], [])),
        (plain("u"), (1, None, [np.array([0, 1], "int32").tobytes(), b"\xff"], [])),
        (plain("u"), (1, None, [np.array([1, 0], "int32").tobytes(), b"a"], [])),
        (plain("+l"), (0, None, [bytes(4)], [])),
        (plain("+w:-1", plain("l")), (0, None, [], [(0, None, [bytes(8)], [])])),
        (plain("+w:2", plain("l")), (2**61, None, [], [(1, None, [bytes(8)], [])])),
        (plain("+w:8", plain("l")), (2**61, None, [], [(1, None, [bytes(8)], [])])),
        (plain("+s", plain("l")), (2, None, [], [(1, None, [bytes(8)], [])])),
        (plain("d:0,0"), (1, None, [bytes(16)], [])),
        (plain("c", dictionary=plain("u")), (1, None, [b"\x05"], [(0, None, [bytes(4), b""], [])])),
        (plain("+r", plain("i"), plain("l")), (9, None, [], [(0, None, [b""], [])] * 2)),
        (plain("vu"), (1, None, [b"\xff" * 16], [])),
        *[
            (plain(format), (rows, None, [bytes(size), *more], []))
            for format, size, more in [
                ("vu", 13, [b""]), ("vz", 17, []), ("u", 9, [b""]), ("Z", 12, [b""]), ("l", 12, []),
                ("d:38,0", 17, []), ("d:76,0,256", 33, []), ("tin", 17, []), ("w:3", 4, []),
            ]
            for rows in (0, 1)
        ],
        *[
            (plain(format, plain("c")), (0, None, buffers, [(0, None, [b""], [])]))
            for format, *buffers in [
                ("+l", bytes(7)), ("+L", bytes(12)), ("+vl", bytes(3), b""), ("+vL", b"", bytes(9)),
                ("+ud:0", b"", bytes(2)),
            ]
        ],
        (plain("s", dictionary=plain("u")), (0, None, [bytes(3)], [(0, None, [b"", b""], [])])),
        ((1, 2), 3),
        (plain("l"), (-1, None, [], [])),
    ],
)  # fmt: skip
def test_an_array_that_cannot_be_is_refused(schema, data, live, capfd):
    with pytest.raises((BufferError, TypeError, ValueError, OverflowError)):
        _core._unpickle_array(schema, data)
    assert "panicked" not in capfd.readouterr().err
    assert live() == (0, 0)


def test_a_type_without_a_bottom_is_refused():
    schema = plain("l")
    for _ in range(100_000):
        schema = plain("+l", schema)
    with pytest.raises(BufferError, match="levels deep"):
        _core._unpickle_array(schema, (0, None, [], []))


def total(pair):
    tensor, array = pair
    return sum(tensor.tolist()), len(array)


def test_another_process_gets_them():
    pair = Tensor.from_dlpack(np.arange(4)), Array(pa.array(["a", None]))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(total, [pair]) == [(6, 2)]


BOOLS = pa.array([True, False, False])[1:]
RUNS = pa.RunEndEncodedArray.from_arrays(pa.array([1, 2, 3], "int32"), [10, 20, 30])[1:]


@pytest.mark.parametrize("values", [BOOLS, RUNS], ids=["bool", "run_end_encoded"])
def test_a_dictionary_of_sliced_values_keeps_its_values(values):
    codes = pa.DictionaryArray.from_arrays(pa.array([0, 1], "int8"), values)
    nested = pa.StructArray.from_arrays([codes, pa.array([1, 2])], ["codes", "numbers"])
    for array in codes, nested, pa.ListArray.from_arrays([0, 1, 2], codes):
        ours = Array(array)
        for again in pickle.loads(pickle.dumps(ours)), copy.copy(ours), copy.deepcopy(ours):
            assert pa.array(again).to_pylist() == array.to_pylist()


def test_a_writable_tensor_is_writable_after_protocol_5():
    """As NumPy's arrays are, in band and out of band."""
    tensor, buffers = Tensor.from_dlpack(np.arange(3.0)), []
    assert not pickle.loads(pickle.dumps(tensor, 5)).readonly
    data = pickle.dumps(tensor, 5, buffer_callback=buffers.append)
    copies = [bytearray(memoryview(buffer)) for buffer in buffers]
    restored = pickle.loads(data, buffers=copies)
    np.asarray(restored)[1] = 7
    assert np.frombuffer(copies[0]).tolist() == [0, 7, 2]


def test_a_type_with_a_nul_is_an_error():
    make, (state, data) = Array(pa.array([1])).__reduce_ex__(5)
    for broken in (("l\0", *state[1:]), (state[0], "x\0", *state[2:])):
        with pytest.raises(ValueError, match="has a NUL"):
            make(broken, data)


@pytest.mark.parametrize("kind", [pa.string_view(), pa.binary_view()], ids=str)
@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: pa.StructArray.from_arrays([x], ["x"])])
def test_a_pickle_of_some_views_has_their_texts_alone(kind, wrap):
    texts = pa.array([f"a text that no view has in itself, {number}" for number in range(1000)])
    some = wrap(texts.cast(kind).slice(500, 3))
    pickled = pickle.dumps(Array(some))
    assert len(pickled) < 1000
    assert b"itself, 501" in pickled
    assert b"itself, 1" not in pickled
    assert pa.array(pickle.loads(pickled)).to_pylist() == some.to_pylist()
