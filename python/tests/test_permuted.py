"""Images whose channels lie last in memory: what they are in Arrow, and what others make of it."""

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from arrow_dlpack import (
    Array,
    AsArrow,
    Cast,
    Dense,
    Loader,
    Mix,
    Tensor,
    explain,
    from_dlpack,
    from_padded,
    from_ragged,
    record_batch,
    tensor_udf,
    to_tensor,
)
from arrow_dlpack.udf import Input, Output
from frameworks import DTYPES

SHAPES = [(64, 3, 32, 32), (64, 4, 8, 16), (2, 4, 5, 3)]
REASON = "the axes of its rows lie in another order than row-major"
WAY = 'type="permuted", or a fixed_shape_tensor type with a permutation'


def channels_last(shape=(2, 4, 5, 3), dtype="float32"):
    """Images (rows, channels, height, width) whose channels lie last in memory."""
    rows, channels, height, width = shape
    memory = np.arange(np.prod(shape)).astype(dtype).reshape(rows, height, width, channels)
    return memory.transpose(0, 3, 1, 2)


def permuted_type(images, dtype=None):
    _, channels, height, width = images.shape
    dtype = dtype or pa.from_numpy_dtype(images.dtype)
    return pa.fixed_shape_tensor(dtype, [height, width, channels], permutation=[2, 0, 1])


def flat_rows(column):
    """What the readers without tensors make of a column: a flat list a row."""
    table = pa.table({"x": column})
    file = pa.BufferOutputStream()
    pq.write_table(table, file)
    stored = pq.read_table(pa.BufferReader(file.getvalue()))
    assert stored.schema.field("x").type == column.type
    yield column.to_pylist()
    yield stored["x"].to_pylist()
    yield [row.tolist() for row in table.to_pandas()["x"]]
    yield [row.tolist() for row in stored.to_pandas()["x"]]
    yield pl.from_arrow(table)["x"].ext.storage().to_list()
    with duckdb.connect() as connection:
        connection.register("images", table)
        [described] = connection.sql("DESCRIBE SELECT x FROM images").fetchall()
        assert described[1].startswith("FLOAT[")
        yield [list(row) for (row,) in connection.sql("SELECT x FROM images").fetchall()]


@pytest.mark.parametrize("shape", SHAPES)
def test_every_reader_gets_the_images_of_a_column_by_default(shape):
    images = channels_last(shape)
    column = pa.array(from_dlpack(images))
    assert column.type == pa.fixed_shape_tensor(pa.float32(), shape[1:])
    np.testing.assert_array_equal(column.to_numpy_ndarray(), images)
    np.testing.assert_array_equal(column[1].to_numpy(), images[1])
    np.testing.assert_array_equal(to_tensor(column, copy=False), images)
    for rows in flat_rows(column):
        np.testing.assert_array_equal(np.reshape(rows, shape), images)


@pytest.mark.parametrize("shape", SHAPES)
def test_other_readers_see_a_permuted_column_in_the_order_of_memory(shape):
    images = channels_last(shape)
    column = pa.array(from_dlpack(images, type="permuted", copy=False))
    assert column.type == permuted_type(images)
    memory = images.transpose(0, 2, 3, 1)
    for rows in flat_rows(column):
        np.testing.assert_array_equal(np.reshape(rows, memory.shape), memory)


def test_pyarrow_reads_a_permuted_column_wrongly_unless_axes_are_swapped():
    images = channels_last((64, 4, 8, 16))
    column = pa.array(from_dlpack(images, type="permuted"))
    wrong = column.to_numpy_ndarray()
    assert wrong.shape == images.shape
    assert not np.array_equal(wrong, images)
    assert not np.array_equal(column.to_tensor().to_numpy(), images)
    for shape in SHAPES[::2]:
        column = pa.array(from_dlpack(channels_last(shape), type="permuted"))
        for read in (column.to_numpy_ndarray, column.to_tensor, column[0].to_numpy):
            with pytest.raises(pa.ArrowInvalid, match="strides must not involve buffer over run"):
                read()
    swapped = np.arange(24.0).reshape(2, 3, 4).transpose(0, 2, 1)
    column = pa.array(from_dlpack(swapped, type="permuted"))
    np.testing.assert_array_equal(column.to_numpy_ndarray(), swapped)


def test_polars_keeps_the_metadata_of_a_permuted_column():
    column = pa.array(from_dlpack(channels_last(), type="permuted"))
    dtype = pl.from_arrow(pa.table({"x": column})).schema["x"]
    assert "permutation" in str(dtype)
    back = pl.from_arrow(pa.table({"x": column}))["x"]
    np.testing.assert_array_equal(to_tensor(back), channels_last())


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (64, 4, 8, 16), (3, 5, 2, 7)])
def test_what_pyarrow_writes_is_mended_by_the_inverse(shape):
    for rows in (
        np.arange(np.prod(shape)).reshape(shape).transpose(0, 2, 3, 1),
        channels_last(shape),
    ):
        column = pa.FixedShapeTensorArray.from_numpy_ndarray(rows)
        kind = column.type
        assert to_tensor(column).shape != rows.shape
        order = np.argsort(kind.permutation).tolist()
        right = pa.fixed_shape_tensor(kind.value_type, kind.shape, permutation=order)
        mended = pa.ExtensionArray.from_storage(right, column.storage)
        np.testing.assert_array_equal(to_tensor(mended, copy=False), rows)
        # It is the type that we write.
        assert pa.array(from_dlpack(rows, type="permuted")).equals(mended)


def test_the_axes_that_pyarrow_writes_come_out_in_another_order():
    rows = np.arange(120).reshape(2, 3, 4, 5).transpose(0, 2, 3, 1)
    assert rows.shape == (2, 4, 5, 3)
    assert to_tensor(pa.FixedShapeTensorArray.from_numpy_ndarray(rows)).shape == (2, 5, 3, 4)


@pytest.mark.parametrize("dtype", [*DTYPES, "complex64"])
def test_the_copy_is_explained_with_its_bytes_and_its_reason(dtype):
    images = channels_last(dtype=dtype)
    plan = explain(images)
    assert plan.bytes_copied == images.nbytes
    assert plan.steps[0].reasons == [REASON]
    assert explain(images, type="permuted").zero_copy
    assert explain(images[:0]).zero_copy
    assert explain(images[:, :1]).zero_copy == (images[:, :1].flags.c_contiguous)


COLUMNS = {
    "from_dlpack": from_dlpack,
    "the type by name": lambda x, **options: from_dlpack(
        x, **{"type": "fixed_shape_tensor"} | options
    ),
    "to_arrow": lambda x, **options: Tensor.from_dlpack(x).to_arrow(**options),
    "record_batch": lambda x, **options: record_batch({"x": x, "n": np.arange(2)}, **options),
    "from_ragged": lambda x, **options: from_ragged(x, np.array([0, 1, 2], "int32"), **options),
    "PyTorch's": lambda x, **options: from_dlpack(torch.from_numpy(x), **options),
}


def innermost(array):
    found = pa.array(array)
    if pa.types.is_struct(found.type):
        found = found.field("x")
    return found.values if pa.types.is_list(found.type) else found


@pytest.mark.parametrize("entry", COLUMNS)
def test_a_copy_that_is_forbidden_names_the_permuted_type(entry):
    images, make = channels_last(), COLUMNS[entry]
    assert innermost(make(images)).type == pa.fixed_shape_tensor(pa.float32(), images.shape[1:])
    assert innermost(make(images, copy=True)).type.permutation is None
    with pytest.raises(BufferError, match=f"{REASON}: 480 bytes .*; {WAY}") as caught:
        make(images, copy=False)
    assert not isinstance(caught.value, TypeError)
    shared = innermost(make(images, type="permuted"))
    assert shared.type == permuted_type(images)
    assert shared.storage.values.buffers()[1].address == images.__array_interface__["data"][0]
    np.testing.assert_array_equal(to_tensor(shared), images)


def test_padded_rows_of_images_are_row_major():
    images = channels_last()
    lists = pa.array(from_padded(images.reshape(1, *images.shape), np.array([2])))
    assert lists.values.type == pa.fixed_shape_tensor(pa.float32(), images.shape[1:])
    np.testing.assert_array_equal(to_tensor(lists.values), images)


@pytest.mark.parametrize("kind", ["bool8", "opaque"])
def test_bytes_that_are_kept_are_row_major_too(kind):
    images = channels_last()
    images = torch.from_numpy(images % 2 == 0 if kind == "bool8" else images)
    images = images if kind == "bool8" else images.to(torch.bfloat16)
    column = from_dlpack(images, type=kind)
    assert "permutation" not in column.field.metadata["ARROW:extension:metadata"]
    assert torch.equal(torch.from_dlpack(column), images)
    with pytest.raises(BufferError, match=f"{REASON}: .*{WAY}"):
        from_dlpack(images, type=kind, copy=False)


def test_a_permuted_type_is_shared_if_rows_lie_in_its_order():
    images = channels_last()
    column = pa.array(from_dlpack(images, type=permuted_type(images), copy=False))
    assert column.type == permuted_type(images)
    # Through a tensor and back.
    again = pa.array(from_dlpack(to_tensor(column), type=column.type, copy=False))
    assert again.equals(column)
    bools = images % 2 == 0
    kept = Array(pa.array(from_dlpack(bools, type=permuted_type(images, pa.bool8()), copy=False)))
    np.testing.assert_array_equal(np.from_dlpack(kept), bools)
    with pytest.raises(BufferError, match="copying was forbidden"):
        from_dlpack(np.ascontiguousarray(images), type=column.type, copy=False)


def test_a_function_of_tensors_returns_row_major_rows():
    @tensor_udf([Input("x", shape=[5, 3, 4])], Output(shape=[4, 5, 3]))
    def channels_first(x):
        return x.transpose(0, 3, 1, 2)

    images = channels_last()
    column = channels_first(pa.array(from_dlpack(images.transpose(0, 2, 3, 1))))
    assert column.type == pa.fixed_shape_tensor(pa.float32(), [4, 5, 3])
    np.testing.assert_array_equal(column.to_numpy_ndarray(), images)


def test_a_request_for_another_order_of_axes_is_refused():
    """The storage of a permuted column under a row-major type would be other values."""
    images = channels_last()
    permuted = pa.array(from_dlpack(images, type="permuted"))
    row_major = pa.fixed_shape_tensor(pa.float32(), images.shape[1:])
    assert permuted.type != row_major
    table = Array(pa.record_batch({"i": permuted}))
    with pytest.raises(ValueError, match="the axes of its rows lie in another order"):
        pa.table(table, schema=pa.schema([("i", row_major)]))
    same = pa.table(table, schema=pa.schema([("i", permuted.type)]))
    assert np.array_equal(np.asarray(to_tensor(same["i"])), images)


def read(source, **options):
    (batch,) = Loader(source, batch_size=100, **options)
    return batch["i"]


OPTIONS = {
    "as they are": {},
    "dtype=": {"dtype": "float64"},
    "Cast": {"columns": {"i": Cast("float32")}},
    "Dense": {"columns": {"i": Dense()}},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_permuted_and_row_major_parts_are_one_column(options, tmp_path):
    """Of one column, of files that were written before and after the default changed."""
    images = channels_last()
    permuted, row_major = (
        pa.table({"i": pa.array(from_dlpack(images, type=kind))}) for kind in ("permuted", None)
    )
    assert permuted.schema != row_major.schema
    for at, part in enumerate([permuted, row_major]):
        pq.write_table(part, tmp_path / f"{at}.parquet")
    twice = np.concatenate([images, images])
    for parts in [permuted, row_major], [row_major, permuted], tmp_path:
        found = read(parts, **options)
        assert np.array_equal(np.asarray(found), twice)
        assert found.dtype == options.get("dtype", "float32")
    found = read(Mix([(permuted, 1), (row_major, 1)]), **options)
    assert np.array_equal(np.asarray(found), np.repeat(images, 2, axis=0))


def test_permuted_rows_are_moved_with_their_nulls_and_widened():
    kind = pa.fixed_shape_tensor(
        pa.int32(), [5, 3, 4], permutation=[2, 0, 1], dim_names=["H", "W", "C"]
    )
    numbers = pa.array([None if at % 7 == 0 else at for at in range(180)], pa.int32())
    mask = pa.array([False, True, False])
    storage = pa.FixedSizeListArray.from_arrays(numbers, 60, mask=mask)
    permuted = kind.wrap_array(storage).slice(1)
    as_longs = pa.fixed_shape_tensor(pa.int64(), [4, 5, 3], dim_names=["C", "H", "W"])
    of_longs = as_longs.wrap_array(pa.FixedSizeListArray.from_arrays(range(120), 60))
    parts = [pa.table({"i": permuted}), pa.table({"i": of_longs})]
    expected, valid = map(np.asarray, to_tensor(permuted, nulls="mask"))
    found = np.asarray(read(parts, nulls=-1))
    assert found.dtype == "int64"
    assert np.array_equal(found[:2], np.where(valid, expected, -1))
    assert found[2:].ravel().tolist() == list(range(120))
    assert pa.array(read(parts, columns={"i": AsArrow()})).type == as_longs
    with pytest.raises(TypeError, match="a stream has one schema: .*pass a list of them"):
        list(Loader(iter(parts), nulls=-1))


def test_tensors_of_other_shapes_are_no_parts_of_one_column():
    one, other = (pa.array(from_dlpack(np.ones((2, *shape)))) for shape in ([2, 3], [3, 2]))
    for kind in other, one.storage:
        with pytest.raises(TypeError, match="in part 1: a Loader for each of them reads both"):
            Loader([pa.table({"i": one}), pa.table({"i": kind})])


BFLOAT16 = torch.zeros((2, 3, 4), dtype=torch.bfloat16)
BOOLS = np.zeros((2, 3, 4), bool)
OPAQUE = pa.opaque(pa.uint16(), "bfloat16", "dlpack")
ELEMENTS = {
    "bool": (BOOLS, BOOLS.transpose(0, 2, 1), "bool8", pa.bool8()),
    "bfloat16": (BFLOAT16, BFLOAT16.permute(0, 2, 1), "opaque", OPAQUE),
}


@pytest.mark.parametrize("name", ELEMENTS)
def test_a_type_keeps_the_elements_that_arrow_stores_in_another_way(name):
    straight, permuted, kept, element = ELEMENTS[name]
    for tensor in (straight, permuted):
        for of in (None, "permuted"):
            assert not explain(tensor, type=of).zero_copy
            with pytest.raises(BufferError, match=f'type="{kept}" keeps'):
                from_dlpack(tensor, type=of, copy=False)
    assert explain(straight, type=kept).zero_copy
    from_dlpack(straight, type=kept, copy=False)
    with pytest.raises(BufferError, match=r"with a permutation \(of arrow.bool8 or arrow.opaque"):
        from_dlpack(permuted, type=kept, copy=False)
    of = pa.fixed_shape_tensor(element, [3, 4], permutation=[1, 0])
    assert explain(permuted, type=of).zero_copy
    from_dlpack(permuted, type=of, copy=False)


def test_a_mask_and_an_export_name_no_type_that_would_not_help():
    for call in (
        lambda: from_dlpack(np.zeros(2), mask=np.ones(2, bool), copy=False),
        lambda: to_tensor(pa.array([True]), copy=False),
    ):
        with pytest.raises(BufferError, match="booleans as bits") as refused:
            call()
        assert "type=" not in str(refused.value)
