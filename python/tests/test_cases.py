"""Every type, layout and option does what data/cases.json says, which others have computed."""

import ctypes
from dataclasses import dataclass

import arrow_dlpack
import case_table
import cases
import make_cases
import numpy as np
import pyarrow as pa
import pytest
import system
from case_columns import EXOTIC, bits_of
from case_values import dtype_of, plain
from dlpack_conformance.abi.dlpack import (
    READ_ONLY,
    SUBBYTE_PADDED,
)
from hostile import Producer, header

RECORD = cases.read()
COLUMNS = cases.columns()
TO_TENSOR = list(cases.each(RECORD["to_tensor"]))
TO_ARROW = RECORD["to_arrow"]
ERRORS = {"type": arrow_dlpack.UnsupportedError, "buffer": BufferError, "value": ValueError}
CODES = ["int", "uint", "float", "opaque", "bfloat", "complex", "bool"]
EXOTIC_CODES = [
    *("float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz"),
    *("float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float6_e2m3fn", "float6_e3m2fn"),
    "float4_e2m1fn",
]
PADDED = ("int2", "int4", "uint2", "uint4", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn")
ADVICE = "run `make cases`, and look at what it changes before you commit it"


def name_of(case: dict) -> str:
    words = [case[key] for key in ("column", "dtype", "layout", "door", "shape") if key in case]
    words += [f"{key}={value}" for key, value in case.get("options", {}).items()]
    return " ".join(map(str, words))


# --- the doors: the only calls of arrow_dlpack in here --------------------------------------------


def convert(source: object, case: dict) -> tuple:
    """All tensors that come of a case."""
    options = dict(case.get("options", {}))
    match case.get("door", "tensor"):
        case "tensor":
            found = arrow_dlpack.to_tensor(source, **options)
            assert isinstance(found, tuple) == (options.get("nulls") == "mask")
            return found if isinstance(found, tuple) else (found,)
        case "ragged":
            found = arrow_dlpack.ragged(source, **options)
            assert found.values is found[0]
            assert found.offsets is found[1]
            assert len(found) == (3 if options.get("nulls") == "mask" else 2)
            return tuple(found)
        case "row":
            index = options.pop("row")
            return (arrow_dlpack.Array(source).row(index, **options),)


def bytes_copied(source: object, options: dict) -> int:
    plan = arrow_dlpack.explain(source, **options)
    assert plan.bytes_copied == sum(step.nbytes for step in plan.steps)
    assert plan.zero_copy == (len(plan.steps) == 0)
    assert all(step.reasons for step in plan.steps)
    return plan.bytes_copied


# --- looking at a tensor --------------------------------------------------------------------------


@dataclass
class Seen:
    """What a C consumer finds."""

    dtype: str
    values: np.ndarray
    strides: list[int]
    read_only: bool
    padded: bool
    address: int


def seen(tensor: arrow_dlpack.Tensor) -> Seen:
    capsule = tensor.__dlpack__(max_version=(1, 3))
    managed = header(capsule)
    inner = managed.dl_tensor
    shape, strides = inner.shape[: inner.ndim], inner.strides[: inner.ndim]
    assert (tensor.shape, tensor.strides) == (tuple(shape), tuple(strides))
    assert tensor.readonly == bool(managed.flags & READ_ONLY)
    dtype = dtype_of(tensor.dtype)
    address = (inner.data or 0) + inner.byte_offset
    if 0 in shape:
        values = np.empty(shape, dtype)
    else:
        span = 1 + sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True))
        memory = (ctypes.c_uint8 * (span * dtype.itemsize)).from_address(address)
        items = np.frombuffer(memory, f"V{dtype.itemsize}")
        steps = [stride * dtype.itemsize for stride in strides]
        values = np.lib.stride_tricks.as_strided(items, shape, steps).copy().view(dtype)
    padded = bool(managed.flags & SUBBYTE_PADDED)
    return Seen(tensor.dtype, values, strides, tensor.readonly, padded, address)


def buffers(source: pa.Array | pa.ChunkedArray) -> list[pa.Buffer]:
    if isinstance(source, pa.ChunkedArray):
        return [buffer for chunk in source.chunks for buffer in buffers(chunk)]
    if isinstance(source.type, pa.BaseExtensionType):
        source = source.storage
    return [buffer for buffer in source.buffers() if buffer is not None]


def shares(tensor: Seen, source: pa.Array | pa.ChunkedArray) -> bool:
    """Whether a tensor begins in the memory of an array."""
    return any(
        buffer.address <= tensor.address < buffer.address + buffer.size
        for buffer in buffers(source)
    )


def as_json(array: np.ndarray) -> list:
    if array.dtype.name in EXOTIC:
        array = array.astype(np.float32 if "float" in array.dtype.name else np.int8)
    return plain(array.tolist())


# --- Arrow to tensors -----------------------------------------------------------------------------


def forms(source: pa.Array | pa.ChunkedArray) -> list:
    """A slice of a fixed_size_list has an offset of its own, or its values have one."""
    if isinstance(source, pa.ChunkedArray) or not isinstance(source.type, pa.FixedSizeListType):
        return [source]
    size, start = source.type.list_size, source.offset
    if source.null_count > 0 or size == 0:
        return [source]
    values = source.values.slice(start * size, len(source) * size)
    return [source, pa.FixedSizeListArray.from_arrays(values, type=source.type)]


@pytest.mark.parametrize("case", TO_TENSOR, ids=name_of)
def test_arrow_to_tensor(case):
    source = cases.laid_out(COLUMNS[case["column"]], case["layout"])
    for form in forms(source):
        if "error" in case:
            check_error(lambda form=form: convert(form, case), case["error"])
        else:
            check(form, case)


def check_error(run, error: dict) -> None:
    with pytest.raises(ERRORS[error["kind"]]) as raised:
        run()
    assert error["phrase"] in str(raised.value)
    assert isinstance(raised.value, TypeError) == (error["kind"] == "type")


def check(source: pa.Array | pa.ChunkedArray, case: dict) -> None:
    expect, options = case["expect"], case.get("options", {})
    values, *others = map(seen, convert(source, case))
    assert values.dtype == expect["dtype"]
    assert list(values.values.shape) == expect["shape"]
    if "mask" in expect:
        mask = others.pop()
        valid = np.array(expect["mask"], bool)
        assert mask.dtype == "bool"
        assert np.array_equal(mask.values, valid.reshape(mask.values.shape))
        assert not mask.read_only or mask.values.size == 0
    if "mask" in expect and "offsets" not in expect:
        # Values under nulls are arbitrary.
        assert as_json(values.values[valid]) == np.array(expect["values"], object)[valid].tolist()
    else:
        assert as_json(values.values) == expect["values"]
        if "bits" in expect:
            stored = values.values.view(f"u{values.values.itemsize}")
            assert stored.tolist() == expect["bits"]
    if values.values.size:
        assert values.strides == expect["strides"]
        # Chunks of lists are put together first, and that is then shared.
        assert values.read_only == expect.get("read_only", values.read_only)
        assert shares(values, source) == expect.get("read_only", False)
        assert values.padded == (values.dtype in PADDED)
    if "offsets" in expect:
        offsets, wanted = others.pop(), expect["offsets"]
        assert (offsets.dtype, offsets.values.tolist()) == (wanted["dtype"], wanted["values"])
        assert offsets.read_only == wanted.get("read_only", offsets.read_only)
        assert shares(offsets, source) == wanted.get("read_only", False)
    assert not others
    if explains(case):
        if case.get("door") == "ragged":
            options = options | {"ragged": True}
        assert bytes_copied(source, options) == expect["copied_bytes"]


def explains(case: dict) -> bool:
    """Rows have no plan. Chunks of lists are put together with all that they have, and slices
    without rows may come with offsets of their own."""
    door = case.get("door", "tensor")
    return door == "tensor" or (door == "ragged" and case["layout"] not in ("empty", "chunked"))


# --- tensors to Arrow -----------------------------------------------------------------------------


def producer(case: dict) -> Producer:
    memory = bytes.fromhex(case["memory"])
    dtype = dtype_of(case["dtype"])
    code, bits = code_and_bits(case["dtype"])
    made = Producer(
        list(memory) or [0],
        ctypes.c_uint8,
        code=code,
        bits=bits,
        shape=tuple(case["shape"]),
        strides=tuple(case["strides"]),
        flags=SUBBYTE_PADDED if bits < 8 and not case.get("packed") else 0,
    )
    made.managed.dl_tensor.data = made.address + case["offset"] * dtype.itemsize
    return made


def code_and_bits(name: str) -> tuple[int, int]:
    """As dlpack.h has them."""
    if name in EXOTIC_CODES:
        return EXOTIC_CODES.index(name) + 7, bits_of(name)
    family = name.rstrip("0123456789")
    bits = 8 if name == "bool" else int(name[len(family) :])
    return CODES.index(family), bits


@pytest.mark.parametrize("case", TO_ARROW, ids=name_of)
def test_tensor_to_arrow(case):
    options = case.get("options", {})
    made = producer(case)
    if "error" in case:
        check_error(lambda: arrow_dlpack.from_dlpack(made, **options), case["error"])
        assert made.deleted == len(made.calls)
        return
    expect = case["expect"]
    copied = expect["copied_bytes"]
    assert bytes_copied(producer(case), options) == copied
    array = pa.array(arrow_dlpack.from_dlpack(made, **options))
    array.validate(full=True)
    assert str(array.type) == expect["type"]
    storage = array.storage if isinstance(array.type, pa.BaseExtensionType) else array
    assert plain(storage.to_pylist()) == expect["values"]
    if 0 not in case["shape"]:
        assert made.deleted == (copied > 0)
        assert (address(storage) == made.managed.dl_tensor.data) == (copied == 0)
    del array, storage
    assert made.deleted == 1


def address(array: pa.Array) -> int:
    while isinstance(array.type, pa.FixedSizeListType):
        array = array.values
    return array.buffers()[1].address


# --- the record -----------------------------------------------------------------------------------


def test_the_record_is_what_pyarrow_and_numpy_say():
    assert make_cases.written(make_cases.make()) == cases.CASES.read_text("utf-8"), ADVICE


def test_the_columns_are_those_that_are_made():
    recorded = cases.COLUMNS.read_bytes()
    if system.WINDOWS:
        # Name and text of an extension type are in the order of a hash table of the C++ library.
        file = pa.ipc.open_file(recorded)
        recorded = make_cases.file_of(
            [file.get_batch(index) for index in range(file.num_record_batches)]
        )
    assert make_cases.file_of_columns() == recorded, ADVICE


def kind(dtype: pa.DataType) -> object:
    return dtype.extension_name if isinstance(dtype, pa.BaseExtensionType) else dtype.id


def test_every_kind_of_type_is_whole_sliced_empty_chunked_and_has_nulls():
    without_nulls = ["null", "dense_union", "sparse_union", "run_end_encoded"]
    layouts, nullable = {}, {kind(COLUMNS[name][0].type) for name in without_nulls}
    for case in TO_TENSOR:
        chunks = COLUMNS[case["column"]]
        layouts.setdefault(kind(chunks[0].type), set()).add(case["layout"])
        if chunks[0].null_count > 0:
            nullable.add(kind(chunks[0].type))
    for name, chunks in COLUMNS.items():
        missing = {"whole", "sliced", "empty", "chunked"} - layouts.get(kind(chunks[0].type), set())
        assert not missing, name
        assert kind(chunks[0].type) in nullable, name


def test_the_page_of_types_is_that_of_the_cases():
    assert case_table.PAGE.read_text("utf-8") == case_table.page(RECORD), ADVICE


PAIRS = [[1.0, 2.0], [3.0, 4.0]]
LISTS, ROWS = pa.array(PAIRS), pa.table({"x": [1.0, 2.0], "y": [1, 2]})
TABLES = [ROWS, ROWS.to_batches()[0], ROWS.to_struct_array()]
PLANS = [
    [(LISTS, {}), (LISTS[1:], {}), (pa.array(PAIRS, pa.list_view(pa.float64())), {})],
    [(column, {"pad": 0}) for column in (LISTS, pa.array(["a", "bc"]), pa.array([b"a"]))],
    [(table, {}) for table in TABLES],
    [(ROWS.select(["x"]), {}), (ROWS.select(["x"]).to_struct_array(), {})],
]


@pytest.mark.parametrize(("row", "plans"), list(zip(case_table.MORE, PLANS, strict=False)))
def test_what_depends_on_more_than_a_type_is_what_the_page_says(row, plans):
    copied = row[-1] == "copied"
    assert [arrow_dlpack.explain(data, **options).zero_copy for data, options in plans] == [
        not copied
    ] * len(plans)


def test_columns_of_a_table_are_shared_one_by_one():
    tensors = arrow_dlpack.to_tensor_dict(ROWS, copy=False)
    assert [tensor.dtype for tensor in tensors.values()] == ["float64", "int64"]
