"""Arrow sources: real libraries, streams that fail, and C structures that cannot be true."""

import ctypes
from ctypes import POINTER, c_void_p
from dataclasses import replace
from types import SimpleNamespace

import hostile
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from arrow_dlpack import (
    Array,
    Categories,
    Loader,
    Mix,
    _core,
    asdlpack,
    explain,
    ragged,
    to_tensor,
    to_tensor_dict,
)
from dlpack_conformance.abi.capsule import PyCapsule_GetPointer
from hostile_arrow import (
    GET,
    NULL_RELEASE,
    ArrayStruct,
    EmptyStream,
    FailingStream,
    Schema,
    Source,
    Stream,
)
from hostile_trees import NO_TEXT, NO_WORDS, Node, TreeStream


def test_every_kind_of_source_is_carried_whole():
    sources = [
        pa.array([1, None, 3]),
        pa.array(["a", None, "bc"]).slice(1),
        pa.array([[1, 2], None, []]),
        pa.array([{"a": 1, "b": "x"}, None]),
        pa.array(["a", "b", "a"]).dictionary_encode(),
        pa.array([b"abc", None], pa.binary_view()),
        pa.array([1.5, None], pa.float16()),
        pa.nulls(3),
        pa.array([[1, 2], [3, 4]], pa.list_(pa.int8(), 2)),
        pa.RunEndEncodedArray.from_arrays([2, 3], ["a", "b"]),
        pa.UnionArray.from_sparse(
            pa.array([0, 1], pa.int8()), [pa.array([1, 2]), pa.array(["a", "b"])]
        ),
    ]
    for source in sources:
        array = Array(source)
        assert len(array) == len(source)
        assert array.null_count == source.null_count
        assert pa.array(array).equals(source)
        assert array.type in repr(array)


def test_batches_and_tables_are_struct_arrays():
    table = pa.table({"a": [1, 2], "b": ["x", "y"]})
    assert pa.array(Array(table)).to_pylist() == table.to_pylist()
    assert pa.array(Array(table.to_batches()[0])).to_pylist() == table.to_pylist()
    frame = pl.DataFrame({"a": [1, 2]})
    assert pa.array(Array(frame)).to_pylist() == [{"a": 1}, {"a": 2}]


def test_field_metadata_survives():
    field = pa.field("x", pa.int32(), nullable=False, metadata={"unit": "m"})
    schema = pa.schema([field]).field(0)

    class Column:
        def __arrow_c_array__(self, requested_schema=None):
            return schema.__arrow_c_schema__(), pa.array([1], pa.int32()).__arrow_c_array__()[1]

    assert pa.field(Array(Column())).equals(field, check_metadata=True)


def test_a_requested_schema_is_followed_where_that_is_possible():
    array = Array(pa.array([1, 2], pa.int8()))
    assert pa.array(array, type=pa.int64()).type == pa.int64()
    words = pa.array(["a", None, "longer than a view"])
    for views, plain in [(pa.string_view(), pa.string()), (pa.binary_view(), pa.binary())]:
        array = Array(words.cast(plain).cast(views))
        assert pa.array(array, type=plain).equals(words.cast(plain))
    codes = Array(pa.array([7, 8, 7]).dictionary_encode())
    assert pa.array(codes, type=pa.int64()).to_pylist() == [7, 8, 7]
    with pytest.raises(TypeError, match="arrow_schema"):
        array.__arrow_c_array__(hostile.Producer().capsule())


def test_instants_are_the_same_in_every_zone():
    there = pa.timestamp("ms", "Europe/Paris")
    array = pa.array(Array(pa.array([0, 1], pa.timestamp("ms", "UTC"))), type=there)
    assert array.type == there
    assert array.cast(pa.int64()).to_pylist() == [0, 1]


def test_a_column_of_nulls_is_no_obstacle_to_the_others():
    """Polars gives it a buffer, which the C interface does not have."""
    frame = pl.DataFrame({"x": [1.5, 2.5], "nothing": [None, None]})
    assert pa.record_batch(Array(frame)).to_pydict() == frame.to_dict(as_series=False)
    assert np.asarray(to_tensor(frame, columns=["x"])).tolist() == [[1.5], [2.5]]


@pytest.mark.parametrize(
    ("source", "requested"),
    [
        (pa.array([300]), pa.int8()),
        (pa.array([-1]), pa.uint8()),
        (pa.array([1.7]), pa.int32()),
        (pa.array([float("nan")]), pa.int32()),
        (pa.array([1e300]), pa.float32()),
        (pa.array([(1 << 53) + 1]), pa.float64()),
        (pa.array(["no number"]), pa.int32()),
        (pa.array([1 << 40], pa.time64("us")), pa.time32("s")),
    ],
)
def test_a_requested_schema_never_changes_a_value(source, requested):
    with pytest.raises(ValueError, match="cannot be handed out as"):
        pa.array(Array(source), type=requested)


def test_nulls_are_handed_out_as_any_type():
    assert pa.array(Array(pa.nulls(3)), type=pa.int32()).null_count == 3


def test_nulls_that_no_memory_holds_are_refused():
    wide = pa.list_(pa.list_(pa.int64(), (1 << 31) - 1), (1 << 31) - 1)
    for array, requested in [
        (pa.Array.from_buffers(pa.null(), 1 << 50, [None]), pa.int64()),
        (pa.nulls(3), wide),
        (pa.nulls(3), pa.struct([("x", wide)])),
        (pa.nulls(1 << 20), pa.binary((1 << 31) - 1)),
    ]:
        with pytest.raises(ValueError, match="do not fit memory"):
            pa.array(Array(array), type=requested)


def test_the_nulls_of_polars_are_nulls():
    array = Array(pl.Series([None, None]))
    assert (len(array), array.null_count) == (2, 2)
    assert pa.array(array).equals(pa.nulls(2))


def test_fields_go_by_name_and_not_by_place():
    array = Array(pa.array([{"a": 1, "b": 2}]))
    other = pa.struct([("b", pa.int64()), ("c", pa.int64())])
    with pytest.raises(ValueError, match="other names"):
        pa.array(array, type=other)
    same = pa.struct([("a", pa.int32()), ("b", pa.int64())])
    assert pa.array(array, type=same).to_pylist() == [{"a": 1, "b": 2}]


def test_an_extension_type_stays_only_if_it_was_asked_for():
    uuids = Array(pa.array([b"0" * 16], pa.uuid()))
    binary = pa.field(Wrapped(uuids.__arrow_c_array__(pa.large_binary().__arrow_c_schema__())))
    assert binary.type == pa.large_binary()
    storage = pa.field(Wrapped(uuids.__arrow_c_array__(pa.binary(16).__arrow_c_schema__())))
    assert storage.type == pa.binary(16)


class Wrapped:
    """A schema on its own."""

    def __init__(self, capsules):
        self.capsules = capsules

    def __arrow_c_schema__(self):
        return self.capsules[0]


def test_an_empty_chunk_costs_no_copy():
    chunk = pa.array([1.0, 2.0])
    array = Array(pa.chunked_array([chunk.slice(0, 0), chunk, chunk.slice(2)]))
    assert pa.array(array).buffers()[1].address == chunk.buffers()[1].address


def test_a_source_whose_array_does_not_work_has_its_stream_read():
    class Chunked:
        def __arrow_c_array__(self, requested_schema=None):
            raise ValueError("several chunks")

        def __arrow_c_stream__(self, requested_schema=None):
            return pa.chunked_array([[1], [2]]).__arrow_c_stream__()

    assert pa.array(Array(Chunked())).to_pylist() == [1, 2]
    Chunked.__arrow_c_stream__ = lambda self: 1
    with pytest.raises(TypeError, match="not a capsule") as error:
        Array(Chunked())
    assert "several chunks" in str(error.value.__cause__)
    Chunked.__arrow_c_stream__ = None
    with pytest.raises(ValueError, match="several chunks"):
        Array(Chunked())


def test_where_the_class_has_a_stream_only_the_object_is_not_asked_for_more():
    class Stream:
        __slots__ = ()

        def __getattr__(self, name):
            pytest.fail(f"asked for {name}")

        def __arrow_c_stream__(self, requested_schema=None):
            return pa.chunked_array([[1], [2]]).__arrow_c_stream__()

    assert pa.array(Array(Stream())).to_pylist() == [1, 2]
    assert not explain(Stream()).zero_copy


def test_what_only_the_object_has_is_found_too():
    class Forwarding:
        """As proxies do it; and a class may say that it has none of what its parent had."""

        __arrow_c_stream__ = None

        def __getattr__(self, name):
            return getattr(pa.array([1, 2]), name)

    assert pa.array(Array(Forwarding())).to_pylist() == [1, 2]
    assert explain(Forwarding()).zero_copy
    forwarding = Forwarding()
    forwarding.__arrow_c_stream__ = pa.chunked_array([[3], [4]]).__arrow_c_stream__
    assert pa.array(Array(forwarding)).to_pylist() == [3, 4]
    plain = SimpleNamespace(__arrow_c_stream__=forwarding.__arrow_c_stream__)
    assert pa.array(Array(plain)).to_pylist() == [3, 4]


class SelfSource:
    def __arrow_c_array__(self, requested_schema=None):
        return Array(self).__arrow_c_array__()

    def __arrow_c_stream__(self, requested_schema=None):
        return Array(self).__arrow_c_stream__()


def test_a_source_that_recurses_is_an_error():
    with pytest.raises(RecursionError):
        Array(SelfSource())


def test_lengths_types_and_texts():
    array = Array(pa.array([1, None, 3], pa.uint8()))
    assert (len(array), array.type, array.null_count) == (3, "UInt8", 1)
    assert repr(array) == "<arrow_dlpack.Array UInt8, 3 values, 1 null: [1, null, 3]>"
    assert repr(Array(pa.array(range(9)))).endswith("9 values: [0, 1, 2, 3, 4, 5, ...]>")
    assert repr(Array(pa.array(["x" * 99]))).endswith("1 value: [" + "x" * 39 + "…]>")
    assert repr(Array(pa.array([[1]]))).startswith("<arrow_dlpack.Array List(")
    assert repr(Array(pa.array([True, None, False]))).endswith("[true, null, false]>")
    words = pa.array(["a", None, "b"])
    for key in ("int8", "uint16", "int32", "uint64"):
        codes = words.dictionary_encode().cast(pa.dictionary(key, pa.string()))
        assert repr(Array(codes)).endswith("1 null: [a, null, b]>")
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], "int16"), words[:2])
    assert repr(Array(runs)).endswith(": [a, a, null]>")
    uuids = pa.array([b"0" * 16], pa.uuid())
    assert Array(uuids).type == "arrow.uuid[FixedSizeBinary(16)]"


def test_an_error_in_a_stream_arrives():
    def batches():
        yield pa.record_batch({"a": [1]})
        raise ValueError("the source broke")

    reader = pa.RecordBatchReader.from_batches(pa.schema({"a": pa.int64()}), batches())
    with pytest.raises(ValueError, match="the source broke"):
        Array(reader)


def test_a_stream_is_read_once():
    reader = pa.table({"a": [1]}).to_reader()
    capsule = reader.__arrow_c_stream__()

    class Once:
        def __arrow_c_stream__(self, requested_schema=None):
            return capsule

    assert len(Array(Once())) == 1
    with pytest.raises(ValueError, match="stream has been released"):
        Array(Once())


def test_a_source_by_hand_is_carried_and_released_once():
    source = Source(null_count=-1)
    tensor = np.from_dlpack(Array(source))
    assert tensor.tolist() == [0] * 8
    assert source.released == 0
    del tensor
    assert source.released == 1
    with pytest.raises(ValueError, match="released already"):
        Array(source)


HUGE = (1 << 63) - 1
# Reading it crashes.
NOWHERE = ctypes.cast(8, ctypes.POINTER(ctypes.POINTER(Schema)))
IMPOSSIBLE = {
    "negative length": ({"length": -1}, "length -1"),
    "negative offset": ({"offset": -8}, "offset -8"),
    "length and offset overflow": ({"length": HUGE, "offset": HUGE}, "address space"),
    "bytes overflow": ({"length": 1 << 62}, "address space"),
    "negative null count": ({"null_count": -2}, "null_count -2"),
    "more nulls than values": ({"null_count": 9}, "null_count 9 of length 8"),
    "too few buffers": ({"buffers": [None]}, "1 buffers where 2 are expected"),
    "too many buffers": ({"buffers": [None, None, None]}, "3 buffers where 2"),
    "negative buffer count": ({"n_buffers": -1}, "-1 buffers"),
    "no buffers": ({"buffers": None, "n_buffers": 2}, "no pointer to its buffers"),
    "NULL buffer": ({"buffers": [None, None]}, "null"),
    "children of a number": ({"n_children": 1}, "1 children"),
    "negative child count": ({"n_children": -1}, "-1 children"),
    "dictionary of a number": ({"dictionary": ctypes.pointer(ArrayStruct())}, "dictionary"),
    "released array": ({"release": NULL_RELEASE}, "released already"),
    "released schema": ({"schema": {"release": NULL_RELEASE}}, "released already"),
    "no format": ({"schema": {"format": None}}, "not a text"),
    "format not UTF-8": ({"schema": {"format": b"\xff"}}, "not a text"),
    "name not UTF-8": ({"schema": {"name": b"\xff"}}, "not a text"),
    "unknown format": ({"schema": {"format": b"?"}}, r"\?"),
    "negative schema children": ({"schema": {"n_children": -1}}, "-1 children"),
    "schema children without number": (
        {"schema": {"n_children": 1 << 40, "children": NOWHERE}},
        "more than 1048576 fields",
    ),
    "children without number": ({"n_children": 1 << 40}, "1099511627776 children"),
    "schema children missing": ({"schema": {"n_children": 2}}, "2 children, but no pointer"),
    "negative size": ({"schema": {"format": b"w:-1"}}, "negative size"),
    "negative list size": ({"schema": {"format": b"+w:-1"}}, "negative size"),
    "a list of nothing": ({"schema": {"format": b"+l"}}, "schema has 0 children"),
    "runs of nothing": ({"schema": {"format": b"+r"}}, "schema has 0 children"),
    "a union of nothing": ({"schema": {"format": b"+us:0,1"}}, "same number"),
    "metadata of negative size": ({"schema": {"metadata": b"\xff" * 4}}, ".+"),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_impossible_structures_are_refused_and_released_once(name):
    fields, words = IMPOSSIBLE[name]
    source = Source(**fields)
    with pytest.raises(ValueError, match=words):
        Array(source)
    # A schema that is wrong leaves the array in its capsule, which releases it in real life.
    assert source.released == (0 if "schema" in fields or "release" in fields else 1)


def test_metadata_takes_no_more_memory_than_it_has_texts():
    """arrow-rs would allocate for all of them, and abort the process if that fails."""
    entries = ((1 << 31) - 1).to_bytes(4, "little")
    source = Source(schema={"metadata": entries + b"\0\0\0\0" + b"\xff" * 4})
    with pytest.raises(ValueError, match="metadata has a text of length -1"):
        Array(source)


@pytest.mark.parametrize("count", [-1, 0, 2, 1 << 40, 1 << 60, HUGE])
def test_views_have_no_more_buffers_than_there_are_addresses(count):
    source = Source(schema={"format": b"vu"}, buffers=[None, None, None], n_buffers=count)
    with pytest.raises(ValueError, match=f"{count} buffers where 2 are expected"):
        Array(source)
    assert source.released == 1


@pytest.mark.parametrize("format", [b"+s", b"+w:1", b"+l"])
def test_a_child_that_has_been_released_is_refused(format):
    inner = Source(release=NULL_RELEASE)
    source = Source({"format": format}, [inner.schema], [inner.array], length=1, buffers=[None])
    if format == b"+l":
        source = Source({"format": format}, [inner.schema], [inner.array], length=1)
    with pytest.raises(ValueError, match="child that has been released already"):
        Array(source)
    assert source.released == 1


@pytest.mark.parametrize("bits", [0b11111111, 0b11111110, 0b10101010, 0])
@pytest.mark.parametrize("said", [1, 8, -1])
def test_nulls_are_counted_and_their_number_is_not_believed(said, bits):
    nulls = 8 - bits.bit_count()
    validity = (ctypes.c_uint8 * 1)(bits)
    source = Source(null_count=said)
    source.array.buffers[0] = ctypes.addressof(validity)
    array = Array(source)
    assert array.null_count == nulls
    assert pa.array(array).null_count == nulls
    values, mask = array.to_tensor(nulls="mask")
    assert np.asarray(mask).sum() == 8 - nulls
    assert values.shape == (8,)


def test_a_requested_schema_may_be_hostile():
    source = Source(schema={"format": b"w:-3"})
    with pytest.raises(ValueError, match="negative size"):
        Array(pa.nulls(2)).__arrow_c_array__(source.__arrow_c_array__()[0])


def nested(levels, child=None):
    keep = Source(schema={"format": b"i"})
    schema = keep.schema
    for _ in range(levels):
        outer = Source(schema={"format": b"+l"}, children=[schema])
        outer.inner = keep
        keep, schema = outer, outer.schema
    return keep


def test_excessive_depth_is_refused():
    with pytest.raises(ValueError, match="more than 64 levels"):
        Array(nested(5000))


def test_children_that_are_one_and_the_same_are_not_followed_for_ever():
    keep = Source(schema={"format": b"i"})
    for _ in range(60):
        outer = Source(schema={"format": b"+s"}, children=[keep.schema] * 2)
        outer.inner = keep
        keep = outer
    with pytest.raises(ValueError, match="more than 1048576 fields"):
        Array(keep)


def test_the_last_of_too_many_fields_is_refused():
    """As many children as may be, of which one has a dictionary."""
    leaf, codes, outer = Source(), Source(), Source(schema={"format": b"+l"})
    codes.schema.dictionary = ctypes.pointer(leaf.schema)
    children = np.full((1 << 20) - 1, ctypes.addressof(leaf.schema), "uintp")
    children[0] = ctypes.addressof(codes.schema)
    outer.schema.n_children = len(children)
    outer.schema.children = ctypes.cast(children.ctypes.data, type(outer.schema.children))
    with pytest.raises(ValueError, match="more than 1048576 fields"):
        Array(outer)


def test_children_that_are_too_short_or_missing_are_refused():
    for format, length, words in [
        (b"+s", 7, "length 7 is too short"),
        (b"+w:3", 23, "length 23 is too short"),
        (b"+w:3", -1, "too short"),
    ]:
        inner = Source(length=length)
        source = Source(
            schema={"format": format},
            children=[inner.schema],
            child_arrays=[inner.array],
            buffers=[None],
        )
        with pytest.raises(ValueError, match=words):
            Array(source)
        assert source.released == 1
    source = Source(schema={"format": b"+s"}, children=[inner.schema], buffers=[None])
    source.array.n_children = 1
    source.array.children = (POINTER(ArrayStruct) * 1)()
    with pytest.raises(ValueError, match="not there"):
        Array(source)


@pytest.mark.parametrize(
    "offsets", [[0, 2, 1, 3], [0, 1, 2, -1], [0, 1 << 30, 2, 3], [-5, 0, 1, 2], [3, 2, 1, 0]]
)
@pytest.mark.parametrize("format", [b"u", b"z"])
def test_offsets_that_lead_astray_are_refused(offsets, format):
    values = (ctypes.c_int32 * 4)(*offsets)
    text = ctypes.create_string_buffer(b"abcdefgh")
    buffers = [None, ctypes.addressof(values), ctypes.addressof(text)]
    source = Source(schema={"format": format}, length=3, buffers=buffers)
    with pytest.raises(ValueError, match=r".+"):
        Array(source)
    assert source.released == 1


@pytest.mark.parametrize("format", [b"u", b"z", b"U", b"Z"])
def test_offsets_of_no_texts_lead_nowhere(format):
    offsets = (ctypes.c_int64 * 4)(-1, -1, -1, -1)
    text = ctypes.create_string_buffer(b"abcdefgh")
    buffers = [None, ctypes.addressof(offsets), ctypes.addressof(text)]
    source = Source(schema={"format": format}, length=0, offset=1, buffers=buffers)
    assert len(Array(source)) == 0
    assert source.released == 1


@pytest.mark.parametrize(
    "answer", [None, (1, 2), lambda: hostile.Producer().capsule(), ("a",), [1, 2, 3]]
)
def test_nonsense_from_a_source_is_a_type_error(answer):
    class Nonsense:
        def __arrow_c_array__(self, requested_schema=None):
            return (answer(), answer()) if callable(answer) else answer

    class NonsenseStream:
        def __arrow_c_stream__(self, requested_schema=None):
            return answer() if callable(answer) else answer

    for source in (Nonsense(), NonsenseStream()):
        with pytest.raises(TypeError, match="capsule"):
            Array(source)


@pytest.mark.parametrize("missing", ["get_schema", "get_next"])
def test_a_stream_without_callbacks_is_refused(missing):
    source = FailingStream(**{missing: GET()})
    with pytest.raises(ValueError, match="no get_schema or no get_next"):
        Array(source)
    assert source.released == 1


def test_a_stream_that_fails_without_a_word_is_an_error():
    source = FailingStream()
    with pytest.raises(ValueError, match=r"stream failed: no message \(code 5\)"):
        Array(source)
    assert source.released == 1


def test_a_schema_that_a_stream_has_released_is_not_followed():
    fields = {"format": b"+s", "n_children": 1, "children": NOWHERE}
    for read in (Array, lambda source: to_tensor(source, columns=["a"])):
        source = EmptyStream(schema=fields | {"release": NULL_RELEASE})
        with pytest.raises(ValueError, match="the Arrow schema has been released already"):
            read(source)


def test_a_stream_is_asked_for_its_error_only_after_a_failure():
    asked = []
    words = ctypes.c_char_p(b"out of luck")

    def last_error(_stream):
        asked.append(True)
        return ctypes.cast(words, c_void_p).value

    def recorded(source):
        source.stream.get_last_error = type(source.stream.get_last_error)(last_error)
        capsule = _core._recorded_stream(source)
        return capsule, Stream.from_address(PyCapsule_GetPointer(capsule, b"arrow_array_stream"))

    _kept, stream = recorded(empty := EmptyStream())
    assert stream.get_next(stream, ctypes.byref(ArrayStruct())) == 0
    assert stream.get_last_error(stream) is None
    assert not asked
    assert empty.released == 0
    _kept, stream = recorded(FailingStream())
    assert stream.get_next(stream, ctypes.byref(ArrayStruct())) == 5
    assert ctypes.string_at(stream.get_last_error(stream)) == b"out of luck"
    assert asked == [True]
    _kept, stream = recorded(FailingStream())
    assert stream.get_schema(stream, ctypes.byref(Schema())) == 5
    assert ctypes.string_at(stream.get_last_error(stream)) == b"out of luck"
    assert asked == [True, True]


INTEGERS = Node("i", 2, [None, bytes(8)])
TEXTS = Node("u", 1, [None, bytes(8), b""])


@pytest.mark.parametrize(
    ("words", "heard"),
    [
        (b"out of luck", "out of luck"),
        (b"", r"failed:  \(code"),
        (b"caf\xe9", "caf\ufffd"),
        (b"x" * 10**5, "x" * 99),
        (NO_TEXT, "no message"),
        (NO_WORDS, "no message"),
    ],
)
@pytest.mark.parametrize("when", [{"fails_at_type": True}, {"fails_after": 0}, {"fails_after": 1}])
def test_a_stream_that_fails_is_heard_as_far_as_it_can_be_understood(words, heard, when):
    source = TreeStream(INTEGERS, [INTEGERS] * 2, words=words, code=22, **when)
    with pytest.raises(ValueError, match=heard) as refusal:
        Array(source)
    assert str(refusal.value).endswith("(code 22)")
    source.settle()


@pytest.mark.parametrize(
    "chunks", [[TEXTS], [INTEGERS, TEXTS], [INTEGERS, replace(INTEGERS, length=-1)]]
)
def test_a_stream_that_changes_its_mind_about_its_type_is_refused(chunks):
    source = TreeStream(INTEGERS, chunks)
    with pytest.raises(ValueError, match="Int32 is malformed"):
        Array(source)
    source.settle()


@pytest.mark.parametrize("place", [0, 99])
def test_a_chunk_without_values_is_refused_among_many(place):
    chunks = [Node("i", 1, [None, bytes(4)]) for _ in range(100)]
    chunks[place] = Node("i", 1, [None, None])
    source = TreeStream(Node("i", 1, [None, bytes(4)]), chunks)
    with pytest.raises(ValueError, match="null"):
        Array(source)
    assert source.released == 1


def test_a_stream_whose_type_has_been_released_is_refused():
    source = TreeStream(replace(INTEGERS, said_of_type={"release": None}), [INTEGERS])
    with pytest.raises(ValueError, match="schema has been released"):
        Array(source)
    source.settle()


def test_an_exception_in_flight_survives_the_release_of_an_arrow_array():
    """Python code, like the deleters of test_capsules.py."""
    for hold in (Array, to_tensor, lambda x: [np.asarray(to_tensor(x))]):
        source = Source(null_count=0)
        with pytest.raises(TypeError, match="bad operand type for abs"):
            abs(hold(source))
        assert source.released == 1


def test_an_exception_in_flight_survives_the_release_of_an_unread_stream():
    source = EmptyStream()
    with pytest.raises(TypeError, match="bad operand type for abs"):
        abs(_core._recorded_stream(source))
    assert source.released == 1


IMPOSSIBLE_TYPES = {
    "a map of numbers": {"schema": {"format": b"+m"}, "children": [Source().schema]},
    "runs that end in texts": {
        "schema": {"format": b"+r"},
        "children": [Source({"format": b"u", "name": b""}).schema, Source().schema],
    },
    "codes that are texts": {
        "schema": {"format": b"u", "dictionary": ctypes.pointer(Source().schema)}
    },
}


@pytest.mark.parametrize("name", IMPOSSIBLE_TYPES)
@pytest.mark.parametrize("convert", [Array, asdlpack, explain, ragged, to_tensor, to_tensor_dict])
def test_a_type_that_cannot_be_is_an_error_where_there_are_no_arrays_either(convert, name):
    with pytest.raises(ValueError, match="there is no array of type"):
        convert(EmptyStream(**IMPOSSIBLE_TYPES[name]))


@pytest.mark.parametrize("make", [Source, EmptyStream])
def test_a_loop_refuses_a_number_of_children_that_no_schema_has(make):
    """pyarrow, which reads it for a list, a Mix or a filter, ends the process."""

    def lying():
        return make(schema={"format": b"+s", "n_children": -1})

    for loop in (
        lambda: Loader(lying()),
        lambda: Loader([lying()]),
        lambda: Loader(iter([lying()])),
        lambda: Loader(Mix([(lying(), 1)])),
        lambda: Loader(lying(), filter=pc.field("x") > 1),
        lambda: Loader(lying(), columns={"x": Categories.scan()}),
    ):
        with pytest.raises((TypeError, ValueError), match="the Arrow schema has -1 children"):
            list(loop())


def test_a_stream_without_arrays_is_an_empty_array():
    assert to_tensor(EmptyStream()).shape == (0,)


def test_each_value_has_one_code_in_all_chunks():
    chunks = [
        pa.DictionaryArray.from_arrays(
            pa.array([1, 0, None], pa.int8()), pa.array(["a", "b", "z"])
        ),
        pa.DictionaryArray.from_arrays(pa.array([0, 1, 1], pa.int8()), pa.array(["c", "b"])),
        pa.DictionaryArray.from_arrays(pa.array([1, 0], pa.int8()), pa.array(["x", "a"])).slice(1),
    ]
    column = pa.chunked_array(chunks)
    table = pa.table({"one": column, "two": range(len(column))})
    for codes in (
        to_tensor(column, physical=True, nulls=-1),
        to_tensor_dict(table, physical=True, nulls=-1)["one"],
    ):
        # In the order of pyarrow's unify_dictionaries, those that no code stands for included.
        expected = column.unify_dictionaries()
        assert pa.array(codes.dictionary).equals(expected.chunk(0).dictionary)
        expected = [code for chunk in expected.chunks for code in chunk.indices.to_pylist()]
        expected[2] = -1
        assert np.asarray(codes).tolist() == expected
        assert codes.dtype == "int8"


def test_a_null_in_a_dictionary_is_a_null():
    first = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["a", None]))
    second = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["a", "b"]))
    codes = to_tensor(pa.chunked_array([first, second]), physical=True, nulls=-1)
    decoded = [
        None if code < 0 else pa.array(codes.dictionary)[code].as_py() for code in np.asarray(codes)
    ]
    assert decoded == ["a", None, "a", "b"]


def test_more_values_than_codes_are_refused():
    chunks = [
        pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), pa.array([str(value)]))
        for value in range(200)
    ]
    with pytest.raises(ValueError, match="key"):
        to_tensor(pa.chunked_array(chunks), physical=True)
    # Lists cannot be compared.
    codes = pa.array(range(100), pa.int8())
    lists = [pa.array([[value] for value in range(first, first + 100)]) for first in (0, 100)]
    chunks = [pa.DictionaryArray.from_arrays(codes, values) for values in lists]
    with pytest.raises(ValueError, match="key"):
        Array(pa.chunked_array(chunks))


@pytest.mark.parametrize("key", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64"])
@pytest.mark.parametrize("count", [2, 300])
def test_words_in_lists_of_many_chunks_have_a_code_each(count, key):
    """More codes than there are, unless equal words are merged."""
    words = pa.dictionary(key, pa.string())
    chunks = [
        pa.ListArray.from_arrays(
            [0, 1, 3], pa.array(["a", "b", str(i % 3)]).dictionary_encode().cast(words)
        )
        for i in range(count)
    ]
    column = pa.chunked_array([chunk[1:] for chunk in chunks], pa.list_(words))
    assert pa.array(Array(column)).to_pylist() == column.to_pylist()
    rows = pa.chunked_array([pa.StructArray.from_arrays([chunk], ["x"]) for chunk in chunks])
    assert pa.array(Array(rows)).to_pylist() == rows.to_pylist()


def test_what_is_put_together_can_be_too_much_for_its_type():
    one = pa.ListArray.from_arrays(pa.array([0, 1 << 30], "int32"), pa.nulls(1 << 30))
    view = pa.ListViewArray.from_arrays(
        pa.array([0], "int32"), pa.array([1 << 30], "int32"), pa.nulls(1 << 30)
    )
    for chunk in one, view:
        assert len(Array(pa.chunked_array([chunk]))) == 1
        with pytest.raises(ValueError, match="overflow"):
            Array(pa.chunked_array([chunk, chunk]))
    words = [
        pa.DictionaryArray.from_arrays(pa.array([0], "int8"), pa.array([str(word)]))
        for word in range(200)
    ]
    lists = [pa.ListArray.from_arrays([0, 1], word) for word in words]
    with pytest.raises(ValueError, match="[Kk]ey"):
        Array(pa.chunked_array(lists))


def runs(values):
    return pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], "int32"), values)


def codes(values):
    return pa.DictionaryArray.from_arrays(pa.array([1, None, 0], "int8"), pa.array(values))


WORDS = pa.array(["a", "b", "c", "a"]).dictionary_encode(), pa.array(["b", "d"]).dictionary_encode()
JOINED = {
    "large list views": [
        pa.array(x, pa.large_list_view(pa.int8())) for x in ([[1], None], [[2, 3]])
    ],
    "runs": [runs([1.5, None]), runs([None, 2.5])],
    "codes of lists": [codes([[1], [2]]), codes([[3], [4, None]])],
    "codes of nulls": [codes([None, None]), codes([None, None, None])],
    "codes in lists": [pa.FixedSizeListArray.from_arrays(words, 2) for words in WORDS],
    "the same codes in lists": [pa.FixedSizeListArray.from_arrays(WORDS[0], 2)] * 2,
}


@pytest.mark.parametrize("name", JOINED)
def test_chunks_of_any_type_are_put_together(name):
    column = pa.chunked_array(JOINED[name])
    joined = pa.array(Array(column))
    joined.validate(full=True)
    assert joined.type == column.type
    assert joined.to_pylist() == column.to_pylist()


def test_nulls_of_some_chunks_stay_where_they_are():
    lists = pa.chunked_array([[[1], [2]], [[3], None], [[], [4]]], pa.list_(pa.int8()))
    rows = pa.chunked_array([[{"x": 1}], [None], [{"x": 2}]])
    for column in lists, rows:
        assert pa.array(Array(column)).to_pylist() == column.to_pylist()


def test_rows_that_share_their_values_still_do_so_in_many_chunks():
    values = pa.array(np.arange(100_000))
    offsets, sizes = pa.array([0, 5] * 500, pa.int32()), pa.array([99_990] * 1000, pa.int32())
    views = pa.ListViewArray.from_arrays(offsets, sizes, values)
    joined = pa.array(Array(pa.chunked_array([views, views[7:]])))
    assert joined.equals(pa.concat_arrays([views, views[7:]]))
    assert joined.get_total_buffer_size() < 4 * values.nbytes


@pytest.mark.parametrize("values", [[[1], [2]], [{"a": 1}, {"a": 2}]])
def test_dictionaries_of_nested_values_are_refused(values):
    chunks = [pa.DictionaryArray.from_arrays(pa.array([0]), pa.array([value])) for value in values]
    with pytest.raises(BufferError, match="different dictionaries: decode each chunk"):
        to_tensor(pa.chunked_array(chunks), physical=True)


@pytest.mark.parametrize("format", [pa.string(), pa.large_string(), pa.binary()])
def test_the_only_offset_of_no_texts_may_be_any(format):
    # As arrow-rs slices them: without an offset of the array's own.
    offset = np.array([2], "int64" if format == pa.large_string() else "int32")
    buffers = [None, pa.py_buffer(offset), pa.py_buffer(b"abc")]
    none = pa.Array.from_buffers(format, 0, buffers)
    assert len(Array(none)) == 0
    assert np.asarray(ragged(none).offsets).tolist() == [0]
    table = pa.record_batch({"text": none, "number": pa.array([], pa.int8())})
    assert to_tensor(table, columns=["number"]).shape == (0, 1)
    offsets = pa.py_buffer(np.array([0, 0], "int32"))
    lists = pa.Array.from_buffers(pa.list_(format), 1, [None, offsets], children=[none])
    assert pa.array(Array(lists)).to_pylist() == [[]]


NUMBERS = pa.StructArray.from_arrays([pa.array(range(20))], ["x"])
SLICED = {
    "a struct of structs": pa.StructArray.from_arrays([NUMBERS], ["inner"])[2:7],
    "a struct of slices of structs": pa.StructArray.from_arrays([NUMBERS[3:]], ["inner"])[2:7],
    "lists of structs": pa.FixedSizeListArray.from_arrays(NUMBERS, 2)[2:7],
    "lists of a slice of structs": pa.FixedSizeListArray.from_arrays(NUMBERS[4:], 2),
    "a slice of lists of a slice of structs": pa.FixedSizeListArray.from_arrays(NUMBERS[4:], 2)[1:],
    "lists of nothing": pa.FixedSizeListArray.from_arrays(NUMBERS, 2)[3:3],
    "a union of structs": pa.UnionArray.from_sparse(
        pa.array([0, 1] * 10, pa.int8()), [NUMBERS, pa.array(range(20))]
    )[3:9],
    "a union of a slice of structs": pa.UnionArray.from_sparse(
        pa.array([0, 1] * 8, pa.int8()), [NUMBERS[4:], pa.array(range(16))]
    )[3:9],
    "lists of any length of structs": pa.ListArray.from_arrays([0, 2, 5, 9], NUMBERS[4:])[1:],
}


@pytest.mark.parametrize("name", SLICED)
def test_structs_may_be_slices_wherever_they_are(name):
    source = SLICED[name]
    assert pa.array(Array(source)).to_pylist() == source.to_pylist()
    numbers = pa.array(range(len(source)), pa.int64())
    batch = pa.record_batch({"structs": source, "number": numbers})
    assert pa.array(Array(batch)).to_pylist() == batch.to_pylist()
    assert to_tensor(batch, columns=["number"]).shape == (len(source), 1)
