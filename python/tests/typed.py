"""Typed code as a user would write it; checked by `mypy --strict`, not run."""

from typing import Any, Literal, assert_type

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import torch
from arrow_dlpack import (
    Array,
    Batches,
    ByLength,
    Categories,
    Loader,
    Mix,
    Pad,
    Tensor,
    UnsupportedError,
    asdlpack,
    from_dlpack,
    iter_batches,
    ragged,
    to_tensor,
    to_tensor_dict,
)
from arrow_dlpack.torch import BatchDataset
from arrow_dlpack.typing import SupportsArrayInterface, SupportsArrowArray, SupportsDLPack


def column_to_tensor(column: SupportsArrowArray) -> Tensor:
    return Array(column).to_tensor(copy=False)


def anything(x: SupportsDLPack) -> list[int]:
    array = from_dlpack(x, device="cpu", copy=None)
    assert_type(array, Array)
    assert_type(array.to_tensor().shape, tuple[int, ...])
    return [len(array), array.null_count, len(memoryview(array.to_tensor()))]


def ours_are_among_them(array: Array, tensor: Tensor) -> None:
    anything(array)
    anything(tensor)
    anything(np.zeros(3))
    anything(Tensor.from_dlpack(array.__dlpack__(max_version=(1, 3)), device=(1, 0)))
    column_to_tensor(array)
    np.from_dlpack(array)
    np.asarray(tensor)


def tensors_of_frameworks(table: pa.Table) -> None:
    assert_type(to_tensor(table), Tensor)
    assert_type(to_tensor(table, nulls="mask", writable=True), tuple[Tensor, Tensor])
    assert_type(to_tensor(table, framework="torch", writable=False), Any)
    assert_type(to_tensor_dict(table, framework="numpy", nulls="mask"), dict[str, Any])
    assert_type(ragged(table, framework="jax"), Any)
    to_tensor(table, framework="tensorflow")  # type: ignore[call-overload]


def anything_at_all(array: Array, x: SupportsDLPack, image: SupportsArrayInterface) -> list[Tensor]:
    things = [asdlpack(array), asdlpack(x, copy=True), asdlpack(image), asdlpack(b"bytes")]
    return [*things, asdlpack(memoryview(bytearray(3))), asdlpack(np.float32(1))]


def trained(table: pa.Table) -> int:
    with iter_batches(table, batch_size=10, format="matrix", nulls="mask") as batches:
        assert_type(batches, Batches[tuple[Tensor, Tensor]])
        return sum(1 for _ in batches)


def batches_are_what_was_asked_for(
    table: pa.Table, form: Literal["dict", "matrix"], name: str | None
) -> None:
    for columns in iter_batches(table, batch_size=10, prefetch=2, copy=True):
        assert_type(columns, dict[str, Tensor])
    for features, label in iter_batches(table, format="matrix", label="y", nulls="nan"):
        assert_type(features, Tensor)
        assert_type(label, Tensor)
    for masked, (values, mask) in iter_batches(table, label="y", nulls="mask"):
        assert_type(masked, dict[str, tuple[Tensor, Tensor]])
        assert_type((values, mask), tuple[Tensor, Tensor])
    assert_type(iter_batches(table, format=form, label=name), Batches[Any])
    assert_type(iter_batches(table, framework="torch"), Batches[Any])
    assert_type(
        iter_batches(table, framework=None, rank=0, world_size=2, uneven="allow"),
        Batches[dict[str, Tensor]],
    )
    assert_type(iter_batches(table, transform=len, framework="numpy"), Batches[int])
    assert_type(iter_batches(table, label=["y", "z"], batch_size=ByLength(8, "x")), Batches[Any])
    assert_type(iter_batches(Mix({"a": 1.0}), columns={"x": Pad(0)}), Batches[Any])
    assert_type(iter(Loader(table, format="matrix")), Batches[Tensor])
    assert_type(
        BatchDataset(table, label="y"), BatchDataset[tuple[dict[str, torch.Tensor], torch.Tensor]]
    )
    assert_type(BatchDataset(table, format="matrix", writable=False), BatchDataset[torch.Tensor])


def loaders_are_typed(path: str, size: int) -> None:
    assert_type(Loader(path, batch_size=size, shuffle=9), Loader[dict[str, Tensor]])
    assert_type(Loader(path, format="matrix", label="y"), Loader[tuple[Tensor, Tensor]])
    assert_type(Loader(path, batch_size=ByLength(8, "x"), columns={"x": Pad(0)}), Loader[Any])
    assert_type(Loader(path, framework="torch", rank="auto", uneven="drop"), Loader[Any])
    mixed = Loader(Mix({path: 0.7, "b.parquet": 0.3}, "first_exhausted"), batch_size=size)
    assert_type(mixed, Loader[dict[str, Tensor]])
    assert_type(mixed.categories, dict[str, tuple[Any, ...]])
    Categories(mixed.categories["w"], unknown=-1, nulls="mask")
    for rows in Loader(path, transform=len):
        assert_type(rows, int)


def refused(column: pa.Array) -> str:
    try:
        return Array(column).type
    except UnsupportedError as error:
        return str(error)


# What must not pass: each line is an error that mypy must report (warn_unused_ignores).
Array([1, 2])  # type: ignore[arg-type]
asdlpack([1, 2])  # type: ignore[arg-type]
asdlpack(b"", copy=1)  # type: ignore[arg-type]
iter_batches([1, 2])  # type: ignore[arg-type]
iter_batches(Array(b""), format="list")  # type: ignore[arg-type, call-overload]
iter_batches(Array(b""), size=3)  # type: ignore[arg-type, call-overload]
iter_batches("", shard=(0, 2))  # type: ignore[call-overload]
Loader("", local_shuffle_buffer_size=3)  # type: ignore[call-overload]
Loader("", uneven="pad")  # type: ignore[call-overload]
Loader("", columns={"x": "pad"})  # type: ignore[dict-item]
Mix({"a": 1.0}, "never")  # type: ignore[arg-type]
Categories(nulls="nan")  # type: ignore[arg-type]
BatchDataset(Array(b""), progress=True)  # type: ignore[arg-type, call-overload]
from_dlpack([1, 2])  # type: ignore[arg-type]
from_dlpack(np.zeros(3), device=0)  # type: ignore[arg-type]
Tensor.from_pointer("0")  # type: ignore[arg-type]
