"""The buffers of an array: how large its length and offset make them."""

import ctypes
import itertools
import struct
from typing import Any

from dlpack_conformance.kit.arrow_consumer import child, dictionary_of, is_null, number
from dlpack_conformance.kit.arrow_field import Field
from dlpack_conformance.kit.arrow_layout import (
    BINARIES,
    LIST_VIEWS,
    LISTS,
    VIEWS,
    layout_of,
    type_ids,
    unpack_element,
    width_of,
)


def buffer_names(field: Field, array: Any) -> list[str]:
    """Of each buffer there is; too few of a view's are given as they should be."""
    names = layout_of(field.format)
    if "variadic" not in names:
        return names
    return ["validity", "views", *["variadic"] * (array.n_buffers - 3), "lengths"]


def buffer_sizes(field: Field, array: Any) -> list[int]:
    """The bytes of each for `length + offset` items. Offsets of no items are none: the format
    lets writers leave out the one zero."""
    total = max(array.length + array.offset, 0)  # a negative length is another rule's
    bits = -(-total // 8)
    offset = 8 if field.format in ("Z", "U", "+L", "+vL") else 4
    past = 0 if field.format in LIST_VIEWS or field.format.startswith("+u") or not total else 1
    simple = {
        "validity": bits,
        "types": total,
        "offsets": offset * (total + past),
        "sizes": offset * total,
        "views": 16 * total,
        "lengths": 8 * (array.n_buffers - 3),
        "data": bits if field.format == "b" else (width_of(field.format) or 0) * total,
    }
    sizes = []
    for i, name in enumerate(buffer_names(field, array)):
        if name == "variadic":
            sizes.append(number(array.buffers[array.n_buffers - 1], "q", i - 2))
        elif name == "data" and field.format in BINARIES:
            code = BINARIES[field.format]
            sizes.append(number(array.buffers[1], code, total) if total else 0)
        else:
            sizes.append(simple[name])
    return sizes


def buffer_contents(field: Field, array: Any) -> list[bytes]:
    """All bytes of each, by which a short one may be found out."""
    sizes = buffer_sizes(field, array)
    return [
        ctypes.string_at(array.buffers[i], size) if size and array.buffers[i] else b""
        for i, size in enumerate(sizes)
    ]


def alignment_of(form: str, name: str) -> int:
    """Of the ints or floats in a buffer."""
    if name in ("offsets", "sizes"):
        return 8 if form in ("Z", "U", "+L", "+vL") else 4
    if name == "data" and form[:2] in ("ti", "d:"):
        return {"tiM": 4, "tiD": 4, "tin": 8}.get(form, min(width_of(form) or 8, 8))
    if name == "data" and form not in BINARIES and not form.startswith("w:"):
        return width_of(form) or 1
    return {"views": 4, "lengths": 8}.get(name, 1)


def least_lengths(field: Field, array: Any) -> list[int]:
    """Of the children: the items that the parent reaches."""
    form, buffers, total = field.format, array.buffers, array.length + array.offset
    items = range(total)
    least = [0] * len(field.children)
    if form == "+s" or form.startswith("+us:"):
        least = [total] * len(field.children)
    elif form.startswith("+w:"):
        least = [int(form[3:]) * total]
    elif form in LISTS and total:
        least = [number(buffers[1], LISTS[form], total)]
    elif form in LIST_VIEWS and total:
        code = LIST_VIEWS[form]
        least = [max(number(buffers[1], code, i) + number(buffers[2], code, i) for i in items)]
    elif form.startswith("+ud:"):
        places = [(number(buffers[0], "b", i), number(buffers[1], "i", i)) for i in items]
        least = [max([p + 1 for t, p in places if t == n], default=0) for n in type_ids(form)]
    return least


def check_array(field: Field, array: Any) -> None:
    """A ValueError where the structure cannot be of this type, or reaches out of its memory."""
    if array.length < 0 or array.offset < 0:
        raise ValueError(f"{array.length} items from {array.offset}")
    if array.n_children != len(field.children) or (array.n_children and not array.children):
        raise ValueError(f"{array.n_children} children of {field.format}")
    if bool(array.dictionary) != (field.dictionary is not None):
        raise ValueError("a dictionary in one of schema and array")
    least = 3 if field.format in VIEWS else len(layout_of(field.format))
    if array.n_buffers < least or (least and not array.buffers):
        raise ValueError(f"{array.n_buffers} buffers of {field.format}")
    for i, size in enumerate(buffer_sizes(field, array)):
        if size and not array.buffers[i] and (i or buffer_names(field, array)[0] != "validity"):
            raise ValueError(f"buffer {i} of {size} bytes is NULL")
    check_offsets(field, array)
    for i, (its, items) in enumerate(zip(field.children, least_lengths(field, array), strict=True)):
        if child(array, i).length < items:
            raise ValueError(f"a child of less than {items} items")
        check_array(its, child(array, i))
    if field.dictionary is not None:
        check_array(field.dictionary, dictionary_of(array))


def check_offsets(field: Field, array: Any) -> None:
    form, total = field.format, array.length + array.offset
    valid = [i for i in range(array.offset, total) if not is_null(field, array, i)]
    code = (BINARIES | LISTS).get(form)
    if code and total:
        ends = [number(array.buffers[1], code, i) for i in range(total + 1)]
        if ends[0] < 0 or any(end < start for start, end in itertools.pairwise(ends)):
            raise ValueError("offsets that fall")
    if form in VIEWS:
        sizes = buffer_sizes(field, array)[2:-1]
        for i in valid:
            content = ctypes.string_at(array.buffers[1] + 16 * i, 16)
            length, buffer, start = struct.unpack("=i4x2i", content)
            inside = 0 <= buffer < len(sizes) and 0 <= start <= sizes[buffer] - length
            if length < 0 or (length > 12 and not inside):
                raise ValueError("a view beyond its buffer")
    if field.dictionary is not None:
        width = width_of(form) or 0
        words = dictionary_of(array).length
        for i in valid:
            code_of = unpack_element(form, ctypes.string_at(array.buffers[1] + width * i, width))
            if not 0 <= code_of < words:
                raise ValueError(f"code {code_of} of {words} words")
