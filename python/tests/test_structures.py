"""Arrow's C structures as pyarrow fills them, with one address in them changed or misread, and
what is handed on of their flags.
"""

import pickle
from contextlib import contextmanager
from ctypes import c_int64, c_void_p

import pyarrow as pa
import pytest
from arrow_dlpack import Array, AsArrow, ByTokens, Categories, Loader, Mix, Pad, _core, to_tensor
from dlpack_conformance.abi.capsule import PyCapsule_GetPointer, PyCapsule_New

# Words of ArrowSchema and ArrowArray before the pointer to what they have many of.
SCHEMA_CHILDREN, ARRAY_BUFFERS = 5, 5


class Source:
    def __init__(self, source):
        self.schema, self.array = source.__arrow_c_array__()

    def __arrow_c_array__(self, requested_schema=None):
        return self.schema, self.array


@contextmanager
def changed(structure, name, word, index, change):
    """One of the pointers that word of a structure points to, until it is released."""
    pointers = c_void_p.from_address(PyCapsule_GetPointer(structure, name) + 8 * word).value
    pointer = c_int64.from_address(pointers + 8 * index)
    before, pointer.value = pointer.value, change(pointer.value)
    yield
    pointer.value = before


def test_a_child_of_a_type_that_is_not_there_is_refused():
    source = Source(pa.array([{"x": 1}]))
    with (
        changed(source.schema, b"arrow_schema", SCHEMA_CHILDREN, 0, lambda _: 0),
        pytest.raises(ValueError, match="a child that is not there"),
    ):
        Array(source)


@pytest.mark.parametrize("change", [lambda _: 0, lambda address: address + 1])
def test_sizes_of_buffers_that_are_not_there_are_refused(change):
    source = Source(pa.array(["longer than twelve bytes"], pa.string_view()))
    with (
        changed(source.array, b"arrow_array", ARRAY_BUFFERS, 3, change),
        pytest.raises(ValueError, match="buffer sizes are missing or misaligned"),
    ):
        Array(source)


@pytest.mark.parametrize("kind", ["string", "large_string", "binary", "large_binary"])
def test_texts_of_bytes_at_any_address_are_read(kind):
    """As Arrow Flight hands them out, and files in memory behind a header."""
    values = ["ab", None, "", "\u00e9"]
    texts = pa.array(values, pa.string()).cast(getattr(pa, kind)())
    codes = pa.DictionaryArray.from_arrays([1, 2, 0], texts.drop_null())
    table = pa.table({"x": texts, "s": pa.StructArray.from_arrays([texts], ["a"])})
    for whole in table, pa.table({"x": codes}):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, whole.schema) as writer:
            writer.write_table(whole)
        for header in range(8):
            moved = pa.py_buffer(bytes(header) + sink.getvalue().to_pybytes()).slice(header)
            read = pa.ipc.open_stream(moved).read_all()
            for name in whole.column_names:
                for start in 0, 1:
                    array = Array(read[name].chunk(0).slice(start))
                    assert pa.array(array).equals(whole[name].chunk(0).slice(start))
            (batch,) = Loader(read, columns={"x": AsArrow()}, batch_size=9)
            assert pa.array(batch["x"]).to_pylist() == whole["x"].to_pylist()


def test_offsets_that_are_not_there_are_refused():
    source = Source(pa.array(["a"]))
    with (
        changed(source.array, b"arrow_array", ARRAY_BUFFERS, 1, lambda _: 0),
        pytest.raises(ValueError, match="its offsets are missing"),
    ):
        Array(source)


UNREADABLE = {
    "texts": pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(bytes(4) + b"\1\0\0\0"), pa.py_buffer(b"\xff")]
    ),
    "codes": pa.DictionaryArray.from_arrays(pa.array([5]), pa.array(["a"]), safe=False),
}


@pytest.mark.parametrize("of", list(UNREADABLE))
def test_values_that_cannot_be_read_are_told_with_their_column(of):
    values = UNREADABLE[of]
    told = {"texts": "Invalid UTF8 sequence", "codes": "out of bounds: 5"}[of]
    struct = pa.StructArray.from_arrays([pa.array([1]), values], ["n", "t"])
    for column, path in (values, r'"c": '), (struct, r'"c": "t": '):
        table = pa.table({"x": [1], "c": column})
        for call in (to_tensor, lambda table: list(Loader(table, columns={"c": AsArrow()}))):
            with pytest.raises(ValueError, match=f": {path}.*{told}"):
                call(table)
    with pytest.raises((IndexError, ValueError), match='column "c"'):
        list(Loader(pa.table({"c": values}), columns={"c": Categories.scan()}))


@pytest.mark.parametrize("which", ["schema", "array"])
def test_a_structure_at_no_address_of_one_is_refused(which):
    source, name = Source(pa.array([1])), f"arrow_{which}".encode()
    whole = getattr(source, which)
    setattr(source, which, PyCapsule_New(PyCapsule_GetPointer(whole, name) + 1, name, None))
    with pytest.raises(ValueError, match="structure is misaligned"):
        Array(source)
    setattr(source, which, whole)
    assert len(Array(source)) == 1


def requested(source, field):
    """What becomes of it where a field is asked for."""

    class Requested:
        def __arrow_c_array__(self, requested_schema=None):
            return Array(source).__arrow_c_array__(field.__arrow_c_schema__())

    return pa.array(Requested())


def test_an_extension_type_that_is_asked_for_keeps_its_own_parameters():
    matrix, vector = (pa.fixed_shape_tensor(pa.float32(), shape) for shape in ([2, 2], [4]))
    stored = pa.array([[1, 2, 3, 4]], matrix.storage_type)
    source = pa.ExtensionArray.from_storage(matrix, stored)
    assert requested(source, pa.field("", matrix)).type == matrix
    with pytest.raises(ValueError, match="its rows have another shape"):
        requested(source, pa.field("", vector))


def test_nulls_become_nulls_of_any_type():
    union = pa.sparse_union([pa.field("a", pa.int8()), pa.field("b", pa.string())])
    for kind in union, pa.struct([("a", pa.int8())]), pa.list_(pa.int8(), 3), pa.string():
        assert requested(pa.nulls(3), pa.field("", kind)).to_pylist() == [None] * 3


SORTED = pa.map_(pa.string(), pa.int8(), keys_sorted=True)


@pytest.mark.parametrize(
    "type",
    [
        SORTED,
        pa.map_(pa.int8(), SORTED),
        pa.list_(SORTED),
        pa.list_(SORTED, 2),
        pa.struct([("a", SORTED), ("b", pa.int8())]),
        pa.dense_union([pa.field("a", SORTED), pa.field("b", pa.int8())]),
        pa.run_end_encoded(pa.int32(), SORTED),
    ],
    ids=str,
)
def test_maps_of_sorted_keys_stay_sorted(type):
    """arrow-rs reads the flag, and writes a schema without it."""
    array = Array(pa.nulls(2, type))
    field = pa.field("x", type, nullable=False, metadata={"a": "b"})
    for handed_on in array, pickle.loads(pickle.dumps(array)):
        assert pa.array(handed_on).type.equals(type)
    table = pa.Table.from_batches([], pa.schema([field]))
    batch = pa.record_batch(_core._take(table, pa.array([], pa.uint64())))
    assert batch.schema.equals(table.schema, check_metadata=True)


def test_a_mix_takes_maps_of_sorted_keys():
    table = pa.table({"m": pa.array([[("a", 1)]] * 4, SORTED), "l": [[1], [2], [3], [4]]})
    columns = {"m": AsArrow(), "l": Pad(0)}
    for source, by in (Mix([(table, 1)]), 2), (table, ByTokens(4, "l")):
        found = [pa.array(batch["m"]) for batch in Loader(source, columns=columns, batch_size=by)]
        assert pa.concat_arrays(found).equals(table["m"].combine_chunks())
        assert all(array.type.equals(SORTED) for array in found)


def test_a_stream_whose_later_maps_are_not_sorted_says_of_none_that_they_are():
    plain = pa.map_(pa.string(), pa.int8())
    makes = pa.list_, pa.large_list, pa.list_view, pa.large_list_view, lambda of: pa.list_(of, 1)
    names = [str(at) for at in range(len(makes))]
    types = [
        pa.struct([(name, make(kind)) for name, make in zip(names, makes, strict=True)])
        for kind in (SORTED, plain)
    ]
    rows = [[("a", 1), ("b", 2)]], [[("b", 2), ("a", 1)]]
    parts = [
        pa.table({"m": pa.array(own, kind), "s": pa.array([dict.fromkeys(names, own)], nested)})
        for own, kind, nested in zip(rows, (SORTED, plain), types, strict=True)
    ]
    (batch,) = Loader(iter(parts), columns={"m": AsArrow(), "s": AsArrow()}, batch_size=2)
    assert pa.array(batch["m"]).type.equals(plain)
    assert pa.array(batch["s"]).type.equals(types[1])
    assert pa.array(batch["m"]).to_pylist() == [rows[0][0], rows[1][0]]
