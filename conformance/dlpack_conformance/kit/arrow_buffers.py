"""The buffers of an array: how large its length and offset make them."""

import ctypes
from typing import Any

from dlpack_conformance.kit.arrow_consumer import number
from dlpack_conformance.kit.arrow_field import Field
from dlpack_conformance.kit.arrow_layout import BINARIES, LIST_VIEWS, layout_of, width_of


def buffer_names(field: Field, array: Any) -> list[str]:
    """Of each buffer there is; too few of a view's are given as they should be."""
    names = layout_of(field.format)
    if "variadic" not in names:
        return names
    return ["validity", "views", *["variadic"] * (array.n_buffers - 3), "lengths"]


def buffer_sizes(field: Field, array: Any) -> list[int]:
    """The bytes of each for `length + offset` items. Offsets of no items are none: the format
    lets writers leave out the one zero."""
    total = array.length + array.offset
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
