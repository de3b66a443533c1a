"""The way back: what tensors of every dtype, shape and strides are in Arrow.

A tensor is what its descriptor says: dtype, shape, strides in elements, and the memory, in which
the first element is `offset` elements from the start.
"""

import numpy as np
import pyarrow as pa
from case_columns import EXOTIC, INTS, bits_of
from case_values import dtype_of, plain

NUMBERS = [*INTS, "float16", "float32", "float64"]
ITEM = pa.field("item", pa.float32())


def memory(dtype: str, count: int, packed: bool = False) -> np.ndarray:
    """So many elements that are not all alike; those of under 8 bits as bytes, or packed."""
    if dtype in EXOTIC:
        bits = bits_of(dtype)
        last = (1 << bits) - 1
        patterns = np.array([(place * 0x4321 + 0x3F82) & last for place in range(count)])
        if packed:
            each = (patterns[:, None] >> np.arange(bits)) & 1
            return np.packbits(each.astype(np.uint8).ravel(), bitorder="little")
        return patterns.astype(f"u{max(bits, 8) // 8}")
    if dtype == "bool":
        return np.array([place % 3 == 0 for place in range(count)])
    if dtype.startswith("complex"):
        return np.array([complex(place, 0 - place / 2) for place in range(count)], dtype)
    return np.array([place * 3 + 1 for place in range(count)], dtype)


def elements(dtype: str, count: int) -> np.ndarray:
    array = memory(dtype, count)
    return array.view(dtype_of(dtype)) if dtype in EXOTIC else array


def stored(array: np.ndarray) -> list:
    """A value a row, or a list of all that are in it, in the order of memory."""
    if array.dtype.kind == "c":
        array = array[..., None].view(f"f{array.itemsize // 2}")
    if array.ndim > 1:
        array = array.reshape(len(array), int(np.prod(array.shape[1:])))
    return plain(array.tolist())


def back(
    dtype: str,
    shape: tuple[int, ...],
    type_: pa.DataType,
    *,
    copied: int,
    strides: tuple[int, ...] | None = None,
    offset: int = 0,
    count: int | None = None,
    physical: tuple[int, ...] | None = None,
    result: str | None = None,
    packed: bool = False,
    **options: object,
) -> dict:
    """`physical` is the order of axes in which Arrow has the values, `result` their dtype if not
    the tensor's."""
    if strides is None:
        strides = tuple(int(np.prod(shape[axis + 1 :])) for axis in range(len(shape)))
    count = count if count is not None else max(int(np.prod(shape)), 0)
    found = {"dtype": dtype, "shape": shape, "strides": strides, "offset": offset}
    if packed:
        found["packed"] = True
    found["memory"] = memory(dtype, count, packed).tobytes().hex()
    if options:
        found["options"] = options
    values = elements(dtype, count)
    places = np.full(shape, offset)
    for axis, stride in enumerate(strides):
        places += np.arange(shape[axis]).reshape(-1, *[1] * (len(shape) - axis - 1)) * stride
    values = values[places].reshape(shape or (1,))
    values = values.transpose(physical or range(values.ndim))
    if result:
        values = values.astype(result)
    elif dtype in EXOTIC:
        values = values.view(f"u{values.itemsize}")
    found["expect"] = {"type": str(type_), "copied_bytes": copied, "values": stored(values)}
    return found


def refused(
    dtype: str, kind: str, phrase: str, shape=(3,), strides=(1,), **options: object
) -> dict:
    found = {"dtype": dtype, "shape": shape, "strides": strides, "offset": 0}
    found["memory"] = memory(dtype, 8).tobytes().hex()
    if options:
        found["options"] = options
    return found | {"error": {"kind": kind, "phrase": phrase}}


def arrow(dtype: str) -> pa.DataType:
    return pa.from_numpy_dtype(np.dtype(dtype))


def tensor(shape: list[int], value: pa.DataType = ITEM.type, **options: object) -> pa.DataType:
    return pa.fixed_shape_tensor(value, shape, **options)


def number_cases() -> list[dict]:
    found = []
    for dtype in NUMBERS:
        size = np.dtype(dtype).itemsize
        found.append(back(dtype, (3,), arrow(dtype), copied=0))
        found.append(back(dtype, (3,), arrow(dtype), strides=(2,), count=6, copied=3 * size))
    f4, f8 = pa.float32(), pa.float64()
    return [
        *found,
        back("float32", (), f4, copied=0),
        back("float32", (0,), f4, copied=0),
        back("float32", (3,), f4, strides=(-1,), offset=2, count=3, copied=12),
        back("float32", (3,), f4, strides=(0,), count=1, copied=12),
        back("float32", (1,), f4, strides=(99,), count=1, copied=0),
        back("float64", (3,), f8, offset=2, count=5, copied=0),
        back("float64", (3,), f8, copied=24, copy=True),
        back("float64", (3,), f8, copied=0, copy=False),
        refused("float64", "buffer", "stride of axis 0 is 2", strides=(2,), copy=False),
    ]


def boolean_cases() -> list[dict]:
    bits, bytes_ = pa.bool_(), pa.bool8()
    return [
        back("bool", (11,), bits, copied=2),
        back("bool", (3,), bits, strides=(-2,), offset=4, count=5, copied=1),
        back("bool", (0,), bits, copied=0),
        back("bool", (3,), bytes_, copied=0, result="int8", type="bool8"),
        back("bool", (3,), bytes_, strides=(2,), count=6, copied=3, result="int8", type="bool8"),
        refused("bool", "buffer", "bits", copy=False),
    ]


def shape_cases() -> list[dict]:
    cube, permuted = (2, 3, 4), tensor([4, 3], permutation=[1, 0])
    swapped = {"strides": (12, 1, 3), "count": 24}
    channels_last = {"strides": (12, 1, 4, 2), "count": 24}
    return [
        back("float32", (2, 3), tensor([3]), copied=0),
        back("float32", cube, tensor([3, 4]), copied=0),
        back("float32", cube, tensor([3, 4]), copied=96, **swapped),
        back("float32", cube, permuted, copied=0, physical=(0, 2, 1), type="permuted", **swapped),
        back("int16", (2, 2, 3, 2), tensor([2, 3, 2], pa.int16()), copied=48, **channels_last),
        back(
            "int16",
            (2, 2, 3, 2),
            tensor([3, 2, 2], pa.int16(), permutation=[2, 0, 1]),
            copied=0,
            physical=(0, 2, 3, 1),
            type="permuted",
            **channels_last,
        ),
        refused("float32", "buffer", "another order", (2, 2, 2), (4, 1, 2), copy=False),
        back("float32", (0, 3), tensor([3]), copied=0),
        back("float32", (2, 0), tensor([0]), copied=0),
        # Rows that do not lie one behind the other.
        back("float32", (3, 2), tensor([2]), strides=(1, 3), count=6, copied=24),
        back("float32", (2, 3), tensor([3]), strides=(4, 1), count=8, copied=24),
        back("float32", (2, 3), tensor([3]), strides=(0, 1), count=3, copied=24),
        back("float32", (2, 3), pa.list_(ITEM, 3), copied=0, type="fixed_size_list"),
        back("bool", (2, 3), tensor([3], pa.bool_()), copied=1),
        back("bfloat16", (2, 3), tensor([3]), copied=24, result="float32"),
        refused("float32", "buffer", "stride of axis 1 is 3", (3, 2), (1, 3), copy=False),
    ]


def exotic_cases() -> list[dict]:
    found = []
    for dtype in EXOTIC:
        storage = pa.uint16() if dtype == "bfloat16" else pa.uint8()
        opaque, size = pa.opaque(storage, dtype, "dlpack"), storage.bit_width // 8
        wide = "float32" if "float" in dtype else dtype.rstrip("24") + "8"
        wide_size = np.dtype(wide).itemsize
        found += [
            back(dtype, (5,), arrow(wide), copied=5 * wide_size, result=wide),
            back(dtype, (5,), opaque, copied=0, type="opaque"),
            back(dtype, (3,), opaque, strides=(2,), count=6, copied=3 * size, type="opaque"),
        ]
        if bits_of(dtype) < 8:
            found += [
                back(dtype, (8,), arrow(wide), copied=8 * wide_size, result=wide, packed=True),
                back(dtype, (8,), opaque, copied=8, type="opaque", packed=True),
            ]
    for dtype, part in (("complex64", pa.float32()), ("complex128", pa.float64())):
        pairs = pa.list_(pa.field("item", part), 2)
        size = np.dtype(dtype).itemsize
        found += [
            back(dtype, (3,), pairs, copied=0),
            back(dtype, (3,), pairs, strides=(-1,), offset=2, count=3, copied=3 * size),
            back(dtype, (3,), pa.opaque(pairs, dtype, "dlpack"), copied=0, type="opaque"),
        ]
    return [
        *found,
        refused("bfloat16", "buffer", "bfloat16 becomes float32", copy=False),
        refused("int8", "buffer", "opaque", type="opaque"),
        refused("float32", "value", "nonsense", type="nonsense"),
    ]


def back_cases() -> list[dict]:
    return [*number_cases(), *boolean_cases(), *shape_cases(), *exotic_cases()]
