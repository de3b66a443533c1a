"""A consumer of Arrow's structures: it reads any layout as Python's values.

None, bool, int, float, str, bytes, Decimal, lists, dicts for structs, lists of pairs for maps.
Times are ints; intervals of more than one number are tuples.
"""

import ctypes
import struct
from typing import Any

from dlpack_conformance.abi.arrow import (
    ARROW_ARRAY,
    ARROW_ARRAY_STREAM,
    ARROW_SCHEMA,
    GET,
    ArrowArray,
    ArrowArrayStream,
    ArrowSchema,
)
from dlpack_conformance.abi.capsule import PyCapsule_GetPointer
from dlpack_conformance.kit.arrow_field import Field
from dlpack_conformance.kit.arrow_layout import (
    BINARIES,
    LIST_VIEWS,
    LISTS,
    VIEWS,
    text_of,
    type_ids,
    unpack_element,
    width_of,
)

# With the GIL: whether a callback can do without it is silent.
RELEASE_WITH_GIL = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)


def schema_in(capsule: Any) -> ArrowSchema:
    """The structure within the capsule, which owns it."""
    return ArrowSchema.from_address(PyCapsule_GetPointer(capsule, ARROW_SCHEMA))


def array_in(capsule: Any) -> ArrowArray:
    return ArrowArray.from_address(PyCapsule_GetPointer(capsule, ARROW_ARRAY))


def child(structure: Any, index: int) -> Any:
    """One of the children, of the same kind."""
    return type(structure).from_address(structure.children[index])


def dictionary_of(structure: Any) -> Any:
    """None without one."""
    return structure.dictionary and type(structure).from_address(structure.dictionary)


def move(structure: Any) -> Any:
    """What it holds, at another address; the source is marked released."""
    moved = type(structure).from_buffer_copy(structure)
    structure.release = None
    return moved


def release(structure: Any) -> None:
    """Calls the base structure's callback, if it is live."""
    if structure.release:
        RELEASE_WITH_GIL(structure.release)(ctypes.addressof(structure))


class ArrowExported:
    """What an object exports, for a rule to look at: by `__arrow_c_array__`, where the capsules own
    it, or the first chunk of its `__arrow_c_stream__`, which is the caller's."""

    def __init__(self, x: Any) -> None:
        self.base: Any = None  # keeps what `schema` and `array` are children of
        if hasattr(x, "__arrow_c_array__"):
            self.capsules = x.__arrow_c_array__()
            self.schema, self.array = schema_in(self.capsules[0]), array_in(self.capsules[1])
        else:
            self.capsules = (x.__arrow_c_stream__(),)
            address = PyCapsule_GetPointer(self.capsules[0], ARROW_ARRAY_STREAM)
            stream = ArrowArrayStream.from_address(address)
            self.schema, self.array = ArrowSchema(), ArrowArray()
            for get, structure in (
                (stream.get_schema, self.schema),
                (stream.get_next, self.array),
            ):
                error = GET(get)(address, ctypes.addressof(structure))
                if error:
                    raise OSError(error, "of a callback of the stream")

    @property
    def field(self) -> Field:
        return read_field(self.schema)

    def to_list(self) -> list[Any]:
        """Empty where there is no chunk."""
        return read_values(self.field, self.array) if self.array.release else []


def read_field(schema: ArrowSchema) -> Field:
    """The type, its name and what else the structure says."""
    dictionary = dictionary_of(schema)
    return Field(
        schema.format.decode(),
        (schema.name or b"").decode(),
        tuple(read_field(child(schema, i)) for i in range(schema.n_children)),
        None if dictionary is None else read_field(dictionary),
        schema.flags,
        read_metadata(schema.metadata),
    )


def read_metadata(address: int | None) -> tuple[tuple[bytes, bytes], ...]:
    """The pairs of keys and values; an impossible count or length is a ValueError."""
    if not address:
        return ()
    texts, place = [], address + 4
    count = ctypes.c_int32.from_address(address).value
    if count < 0:
        raise ValueError(f"metadata of {count} pairs")
    for _ in range(2 * count):
        length = ctypes.c_int32.from_address(place).value
        if length < 0:
            raise ValueError(f"metadata with a text of {length} bytes")
        texts.append(ctypes.string_at(place + 4, length))
        place += 4 + length
    return tuple(zip(texts[::2], texts[1::2], strict=True))


def read_values(field: Field, array: ArrowArray) -> list[Any]:
    """The items from `offset` on, without the nulls' bytes."""
    items = range(array.offset, array.offset + array.length)
    if field.format == "+r":
        return read_runs(field, array)
    return [None if is_null(field, array, i) else read_item(field, array, i) for i in items]


def is_null(field: Field, array: ArrowArray, index: int) -> bool:
    """By the bitmap; `index` counts from the start of the buffers."""
    if field.format == "n":
        return True
    if field.format.startswith("+u") or not array.buffers[0]:
        return False
    return not bit(array.buffers[0], index)


def bit(address: int, index: int) -> bool:
    return bool(ctypes.string_at(address + index // 8, 1)[0] >> index % 8 & 1)


def number(address: int, form: str, index: int) -> int:
    """An int of an array of them."""
    size = struct.calcsize("=" + form)
    return int(struct.unpack("=" + form, ctypes.string_at(address + size * index, size))[0])


def item_of(field: Field, array: ArrowArray, item: int) -> Any:
    """One item, counted from the array's offset: what its parent's offsets mean."""
    one = ArrowArray.from_buffer_copy(array)
    one.offset, one.length = array.offset + item, 1
    return read_values(field, one)[0]


def items_of(field: Field, array: ArrowArray, start: int, length: int) -> list[Any]:
    some = ArrowArray.from_buffer_copy(array)
    some.offset, some.length = array.offset + start, length
    return read_values(field, some)


def read_item(field: Field, array: ArrowArray, i: int) -> Any:
    """A valid item of any layout but run-ends."""
    form, buffers = field.format, array.buffers
    width = width_of(form)
    if field.dictionary is not None:
        code = unpack_element(form, ctypes.string_at(buffers[1] + (width or 0) * i, width or 0))
        return item_of(field.dictionary, dictionary_of(array), code)
    if form == "b":
        return bit(buffers[1], i)
    if width is not None:
        return unpack_element(form, ctypes.string_at((buffers[1] or 0) + width * i, width))
    if form in BINARIES:
        start, end = (number(buffers[1], BINARIES[form], i + j) for j in (0, 1))
        return text_of(
            form, ctypes.string_at(buffers[2] + start, end - start) if end > start else b""
        )
    if form in VIEWS:
        return text_of(form, read_view(array, i))
    return read_nested(field, array, i)


def read_view(array: ArrowArray, i: int) -> bytes:
    view = ctypes.string_at(array.buffers[1] + 16 * i, 16)
    length, buffer, start = struct.unpack("=i4x2i", view)
    if length <= 12:
        return view[4 : 4 + length]
    return ctypes.string_at(array.buffers[2 + buffer] + start, length)


def read_nested(field: Field, array: ArrowArray, i: int) -> Any:
    form, buffers = field.format, array.buffers
    if form == "+s":
        values = [item_of(f, child(array, n), i) for n, f in enumerate(field.children)]
        return dict(zip([f.name for f in field.children], values, strict=True))
    if form.startswith("+u"):
        which = type_ids(form).index(number(buffers[0], "b", i))
        item = number(buffers[1], "i", i) if form.startswith("+ud:") else i
        return item_of(field.children[which], child(array, which), item)
    if form.startswith("+w:"):
        size = int(form[3:])
        start, end = size * i, size * (i + 1)
    elif form in LISTS:
        start, end = (number(buffers[1], LISTS[form], i + j) for j in (0, 1))
    elif form in LIST_VIEWS:
        start = number(buffers[1], LIST_VIEWS[form], i)
        end = start + number(buffers[2], LIST_VIEWS[form], i)
    else:
        raise ValueError(f"format {form!r} is not known")
    items = items_of(field.children[0], child(array, 0), start, end - start)
    return [tuple(item.values()) for item in items] if form == "+m" else items


def read_runs(field: Field, array: ArrowArray) -> list[Any]:
    ends = read_values(field.children[0], child(array, 0))
    values: list[Any] = []
    for run, end in enumerate(ends):
        first = max(array.offset, ends[run - 1] if run else 0)
        length = min(end, array.offset + array.length) - first
        if length > 0:
            values += [item_of(field.children[1], child(array, 1), run)] * length
    return values
