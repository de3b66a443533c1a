"""What the array API standard says about __dlpack__ and from_dlpack, keyword by keyword."""

import ctypes

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from arrow_dlpack import Array, MissingProtocolError, Tensor, UnsupportedError, from_dlpack
from dlpack_conformance.abi.capsule import PyCapsule_GetName
from dlpack_conformance.abi.dlpack import (
    CPU,
    CUDA,
    FLOAT,
    IS_COPIED,
    LEGACY,
    READ_ONLY,
    SUBBYTE_PADDED,
    UINT,
    VERSIONED,
)
from hostile import Producer, device_of, dtype_of, header


def array():
    return Array(pa.array([1.0, 2.0, 3.0]))


def tensor():
    return array().to_tensor()


@pytest.mark.parametrize("exporter", [array, tensor])
@pytest.mark.parametrize(
    ("max_version", "version"),
    [
        (None, None),
        ((0, 8), None),
        ((1, 0), (1, 0)),
        ((1, 2), (1, 2)),
        ((1, 3), (1, 3)),
        ((1, 9), (1, 3)),
        ((2, 0), (1, 3)),
    ],
)
def test_the_capsule_is_the_one_that_max_version_asks_for(exporter, max_version, version):
    capsule = exporter().__dlpack__(max_version=max_version)
    managed = header(capsule)
    if version is None:
        assert PyCapsule_GetName(capsule) == LEGACY
    else:
        assert (managed.version.major, managed.version.minor) == version
        assert managed.flags == READ_ONLY
    assert managed.manager_ctx, "paddle never deletes a tensor without it"
    assert managed.deleter
    assert managed.dl_tensor.ndim == 1
    assert managed.dl_tensor.shape[0] == 3
    assert managed.dl_tensor.strides[0] == 1
    assert managed.dl_tensor.byte_offset == 0
    assert device_of(managed.dl_tensor) == (CPU, 0)
    assert dtype_of(managed.dl_tensor) == (
        FLOAT,
        64,
        1,
    )


def test_no_keyword_at_all_is_legacy():
    assert PyCapsule_GetName(array().__dlpack__()) == LEGACY


def test_data_is_null_where_there_is_none():
    capsule = Array(pa.array([], pa.int32())).__dlpack__(max_version=(1, 0))
    assert header(capsule).dl_tensor.data is None
    assert header(capsule).dl_tensor.strides[0] == 1


@pytest.mark.parametrize("exporter", [array, tensor])
def test_flags_tell_shares_from_copies(exporter):
    shared = exporter().__dlpack__(max_version=(1, 0))
    copied = exporter().__dlpack__(max_version=(1, 0), copy=True)
    assert (header(shared).flags, header(copied).flags) == (READ_ONLY, IS_COPIED)
    assert header(shared).dl_tensor.data != header(copied).dl_tensor.data
    assert header(copied).dl_tensor.data % 64 == 0
    legacy = exporter().__dlpack__(copy=True)
    assert header(legacy).dl_tensor.data != header(shared).dl_tensor.data


def test_a_received_tensor_hands_on_read_only_and_padding_but_never_is_copied():
    flags = READ_ONLY | IS_COPIED | SUBBYTE_PADDED
    producer = Producer([1, 2], ctypes.c_uint8, code=UINT, bits=4, flags=flags)
    received = Tensor.from_dlpack(producer)
    assert received.readonly
    assert header(received.__dlpack__(max_version=(1, 3))).flags == READ_ONLY | SUBBYTE_PADDED
    with pytest.raises(BufferError, match="legacy ABI has no flag for padded uint4"):
        received.__dlpack__()
    copy = Tensor.from_dlpack(received, copy=True)
    assert header(copy.__dlpack__(max_version=(1, 3))).flags == SUBBYTE_PADDED
    del received, copy
    assert producer.deleted == 1


@pytest.mark.parametrize("exporter", [array, tensor])
def test_the_cpu_is_asked_for_by_name_too(exporter):
    for device in ("cpu", (1, 0)):
        capsule = exporter().__dlpack__(max_version=(1, 3), dl_device=device)
        assert Tensor.from_dlpack(capsule).device == "cpu"


@pytest.mark.parametrize("exporter", [array, tensor])
@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"stream": 1}, "stream must be None.*got 1"),
        ({"stream": -1}, "stream must be None"),
        ({"dl_device": (CUDA, 0)}, "cannot export to cuda:0: the memory is on cpu"),
        ({"dl_device": (99, 0)}, r"device\(99\):0"),
    ],
)
def test_what_keywords_ask_for_in_vain_is_a_buffer_error_and_no_type_error(
    exporter, keywords, words
):
    """Consumers answer a TypeError by asking again without keywords: copy=False would be lost."""
    with pytest.raises(BufferError, match=words) as error:
        exporter().__dlpack__(max_version=(1, 3), **keywords)
    assert not isinstance(error.value, TypeError)


@pytest.mark.parametrize("exporter", [array, tensor])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_version", "1.0"),
        ("max_version", (1,)),
        ("max_version", (-1, 0)),
        ("max_version", (1 << 40, 0)),
        ("dl_device", "cuda"),
        ("dl_device", (1, "0")),
        ("dl_device", (1 << 40, 0)),
        ("copy", "yes"),
    ],
)
def test_a_wrong_argument_is_a_type_error_that_names_it(exporter, name, value):
    with pytest.raises(TypeError) as error:
        exporter().__dlpack__(**{name: value})
    assert str(error.value).startswith(f"{name.removeprefix('dl_')} must be ")


def test_positional_and_unknown_arguments_are_type_errors():
    with pytest.raises(TypeError):
        array().__dlpack__(None)
    with pytest.raises(TypeError, match="steam"):
        array().__dlpack__(steam=None)
    for function in (from_dlpack, Array.from_dlpack, Tensor.from_dlpack):
        with pytest.raises(TypeError, match="__dlpack__ or a DLPack capsule, got list"):
            function([1, 2])
        with pytest.raises(TypeError, match="^device must be .*cuda:0"):
            function(np.zeros(1), device="there")
        with pytest.raises(TypeError, match="^copy must be True, False or None"):
            function(np.zeros(1), copy=[])
    with pytest.raises(TypeError, match="got Series: it is Arrow data: use to_tensor, or Array"):
        from_dlpack(pl.Series([1]))
    with pytest.raises(TypeError, match="expected an Arrow array.*got ndarray.*from_dlpack"):
        Array(np.zeros(1))


def test_the_device_is_the_cpu():
    assert array().__dlpack_device__() == (1, 0)
    assert tensor().__dlpack_device__() == (1, 0)
    assert np.from_dlpack(array(), device="cpu").tolist() == [1, 2, 3]
    for number in (0, 1, -1):  # of which there is one, whatever its number
        array().__dlpack__(dl_device=(CPU, number), copy=False)
        tensor().__dlpack__(dl_device=(CPU, number), copy=False)
    for device in ("cpu", (1, 0), None):
        assert pa.array(from_dlpack(np.arange(2), device=device)).to_pylist() == [0, 1]


def test_refusals_that_no_keyword_can_change_are_type_errors_too():
    """As pyarrow raises them; code written for pyarrow keeps working."""
    nulls = Array(pa.array([1, None, None]))
    text = Array(pa.array(["a"]))
    for keywords in ({}, {"copy": True}, {"copy": False}):
        with pytest.raises(UnsupportedError, match="Int64 array has 2 nulls in 3 values.*fill"):
            nulls.__dlpack__(**keywords)
        with pytest.raises(UnsupportedError, match="Utf8 has no tensor form: .*ragged"):
            text.__dlpack__(**keywords)
    assert issubclass(UnsupportedError, BufferError)
    assert issubclass(UnsupportedError, TypeError)


REFUSED = [
    (pa.array([None]), "Null.*cast"),
    (pa.array([b"a"]), "Binary.*ragged"),
    (pa.array([[1], [1, 2]]), "row 1 has 2 values.*ragged"),
    (pa.array([{"a": 1}]), "Struct.*to_tensor_dict"),
    (pa.array([1], pa.timestamp("ms")), "Timestamp.*physical=True.*int64"),
    (pa.array([1], pa.date32()), "Date32.*physical=True.*int32"),
    (pa.array([1], pa.decimal128(5, 2)), "Decimal128.*float64"),
    (pa.array(["a"]).dictionary_encode(), "Dictionary.*physical=True"),
    (pa.array(["a"], pa.string_view()), "Utf8View.*ragged"),
    (pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int8())), "Map"),
    (pa.array([b"0" * 16], pa.uuid()), 'extension type "arrow.uuid".*storage'),
]


@pytest.mark.parametrize(("source", "words"), REFUSED, ids=lambda x: str(getattr(x, "type", "")))
def test_types_without_a_tensor_are_refused_with_a_way_out_and_still_carried(source, words):
    with pytest.raises(UnsupportedError, match=words):
        np.from_dlpack(Array(source))
    assert pa.array(Array(source)).equals(source)
    assert pa.array(Array(source)).type == source.type


class Legacy:
    """A producer from before the keywords, as MLX is today."""

    def __init__(self, values):
        self.producer = Producer(values, legacy=True)

    def __dlpack__(self):
        return self.producer.capsule()


def test_producers_without_keywords_are_asked_again_without():
    old = Legacy([1.0, 2.0])
    assert pa.array(from_dlpack(old)).to_pylist() == [1, 2]
    assert pa.array(from_dlpack(old, device="cpu")).to_pylist() == [1, 2]
    assert old.producer.deleted == 2
    copy = Tensor.from_dlpack(old, copy=True)
    assert np.asarray(copy).tolist() == [1, 2]
    assert np.asarray(copy).__array_interface__["data"][0] != old.producer.address
    with pytest.raises(BufferError, match="takes no copy=False") as error:
        from_dlpack(old, copy=False)
    assert not isinstance(error.value, TypeError)
    # That capsule was never opened: its own destructor, which this one has not, deletes the tensor.
    assert old.producer.deleted == 3
    with pytest.raises(BufferError, match="asked for on cuda:0, and is on cpu"):
        Tensor.from_dlpack(old, device=(CUDA, 0))
    assert old.producer.deleted == 4


def test_the_producer_gets_the_arguments():
    producer = Producer()
    from_dlpack(producer)
    from_dlpack(producer, device="cpu", copy=False)
    assert producer.calls == [
        {"max_version": (1, 3)},
        {"max_version": (1, 3), "dl_device": (1, 0), "copy": False},
    ]
    assert producer.deleted == 2


def test_a_copy_behind_the_callers_back_is_refused():
    producer = Producer(flags=IS_COPIED)
    with pytest.raises(BufferError, match="made a copy although copy=False"):
        from_dlpack(producer, copy=False)
    assert producer.deleted == 1


def test_a_copy_that_the_producer_made_is_not_made_again():
    producer = Producer(flags=IS_COPIED)
    arrow = pa.array(from_dlpack(producer, copy=True))
    assert arrow.buffers()[1].address == producer.address
    del arrow
    assert producer.deleted == 1


class NoMethod:
    __dlpack__ = None


def test_a_method_that_is_none_is_no_method():
    with pytest.raises(MissingProtocolError, match="expected an object with __dlpack__"):
        from_dlpack(NoMethod())


@pytest.mark.parametrize("answer", [None, 1, "dltensor", (1, 2)])
def test_nonsense_from_a_producer_is_an_error(answer):
    class Nonsense:
        def __dlpack__(self, **_):
            return answer

    with pytest.raises(TypeError, match="Nonsense.__dlpack__ returned .* not a capsule"):
        from_dlpack(Nonsense())


@pytest.mark.parametrize("name", [b"used_dltensor_versioned", b"dltensor_v2", b"arrow_array"])
def test_a_producers_capsule_of_another_name_is_left_alone(name):
    class Odd(Producer):
        def __dlpack__(self, **_):
            self.held = self.capsule(name)
            return self.held

    odd = Odd()
    words = "used already" if name.startswith(b"used") else "not a DLPack capsule"
    with pytest.raises(BufferError, match=words):
        from_dlpack(odd)
    assert PyCapsule_GetName(odd.held) == name
    assert odd.deleted == 0


def test_a_producer_that_hands_out_one_capsule_twice_is_asked_for_another():
    class Mean(Producer):
        def __dlpack__(self, **_):
            self.held = getattr(self, "held", None) or self.capsule()
            return self.held

    mean = Mean()
    first = from_dlpack(mean)
    with pytest.raises(BufferError, match="used already"):
        from_dlpack(mean)
    assert pa.array(first).to_pylist() == [1, 2, 3]
    del first
    assert mean.deleted == 1


def test_a_producer_that_raises_halfway_keeps_what_it_made():
    class Halfway(Producer):
        def __dlpack__(self, **_):
            self.held = self.capsule()
            raise RuntimeError("halfway")

    halfway = Halfway()
    for take in (from_dlpack, Tensor.from_dlpack):
        with pytest.raises(RuntimeError, match="halfway"):
            take(halfway)
        assert PyCapsule_GetName(halfway.held) == VERSIONED
    assert halfway.deleted == 0


PADDED_INTEGERS = Producer([1, 2], ctypes.c_uint8, code=UINT, bits=4, flags=SUBBYTE_PADDED)
ELSEWHERE = Producer(device_type=CUDA, data=0xDEAD0000)
EXPORTS = {
    "nulls": (lambda: Array(pa.array([1, None])), {}),
    "no tensor form": (lambda: Array(pa.array(["a"])), {}),
    "a stream": (array, {"stream": 1}),
    "another device": (tensor, {"dl_device": (CUDA, 0)}),
    "a copy forbidden": (lambda: Array(pa.array([True])), {"copy": False}),
    "padding that legacy cannot say": (lambda: Tensor.from_dlpack(PADDED_INTEGERS), {}),
    "a copy of memory elsewhere": (
        lambda: Tensor.from_dlpack(ELSEWHERE.capsule()),
        {"copy": True},
    ),
}


@pytest.mark.parametrize("name", EXPORTS)
def test_a_refused_export_leaves_nothing_behind(name, live):
    make, keywords = EXPORTS[name]
    exporter = make()
    before = live()
    for _ in range(3):
        with pytest.raises(BufferError):
            exporter.__dlpack__(**keywords)
        assert live() == before
    del exporter
    assert live() == (0, 0)


def test_padding_in_the_legacy_abi_is_refused_with_advice():
    words = (
        r"legacy ABI has no flag for padded uint4 elements: ask for max_version=\(1, 1\) or later$"
    )
    with pytest.raises(BufferError, match=words):
        Tensor.from_dlpack(PADDED_INTEGERS).__dlpack__()


@pytest.mark.parametrize("table", [None, 1, "table", np.zeros(1).__dlpack__()])
def test_a_broken_exchange_api_is_not_in_the_way(table):
    class Odd(Producer):
        __dlpack_c_exchange_api__ = table

    odd = Odd()
    assert pa.array(from_dlpack(odd)).to_pylist() == [1, 2, 3]
    assert odd.deleted == 1


def test_a_producer_that_raises_is_heard():
    class Broken:
        def __dlpack__(self, **_):
            raise RuntimeError("halfway")

    with pytest.raises(RuntimeError, match="halfway"):
        from_dlpack(Broken())


def test_a_producer_that_recurses_is_an_error():
    class Loop:
        def __dlpack__(self, **_):
            return from_dlpack(self).__dlpack__()

    with pytest.raises(RecursionError):
        from_dlpack(Loop())


def test_subclasses_keep_working():
    class Column(Array):
        unit = "minutes"

    column = Column(pa.array([1, 2]))
    assert np.from_dlpack(column).tolist() == [1, 2]
    assert repr(column).startswith(
        "<arrow_dlpack.test_subclasses_keep_working.<locals>.Column Int64"
    )
