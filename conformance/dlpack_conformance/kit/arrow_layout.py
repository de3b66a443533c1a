"""What Arrow's format strings say of an array's buffers and children."""

import struct
from decimal import Decimal
from typing import Any

from dlpack_conformance.kit.arrow_field import Field

# Of struct: an element's bytes. Times are ints; the three intervals are one, two or three ints.
ELEMENTS = {"c": "b", "C": "B", "s": "h", "S": "H", "i": "i", "I": "I", "l": "q", "L": "Q"}
ELEMENTS |= {"e": "e", "f": "f", "g": "d", "tdD": "i", "tdm": "q", "tts": "i", "ttm": "i"}
ELEMENTS |= {"ttu": "q", "ttn": "q", "tDs": "q", "tDm": "q", "tDu": "q", "tDn": "q"}
ELEMENTS |= {"tiM": "i", "tiD": "2i", "tin": "2iq"}

BINARIES = {"z": "i", "Z": "q", "u": "i", "U": "q"}  # each with its offsets
VIEWS = ("vz", "vu")
LISTS = {"+l": "i", "+L": "q", "+m": "i"}
LIST_VIEWS = {"+vl": "i", "+vL": "q"}


LAYOUTS: dict[str, str] = {"n": "", "+r": "", "+s": "validity", "+w": "validity"}
LAYOUTS |= {"+us": "types", "+ud": "types offsets"}
LAYOUTS |= dict.fromkeys(BINARIES, "validity offsets data")
LAYOUTS |= dict.fromkeys(VIEWS, "validity views variadic lengths")
LAYOUTS |= dict.fromkeys(LISTS, "validity offsets")
LAYOUTS |= dict.fromkeys(LIST_VIEWS, "validity offsets sizes")


def layout_of(form: str) -> list[str]:
    """The buffers by their names; views have any number of "variadic" before the last."""
    return LAYOUTS.get(form.split(":", maxsplit=1)[0], "validity data").split()


def element_of(form: str) -> str | None:
    """The struct format of a fixed-width element; None for those that are not (bool too)."""
    return "q" if form.startswith("ts") else ELEMENTS.get(form)


def width_of(form: str) -> int | None:
    """The bytes of an element with a fixed number of them."""
    element = element_of(form)
    if element is not None:
        return struct.calcsize("=" + element)
    if form.startswith("w:"):
        return int(form[2:])
    if form.startswith("d:"):
        return decimal_of(form)[1] // 8
    return None


def decimal_of(form: str) -> tuple[int, int]:
    """(scale, bits) of `d:precision,scale[,bits]`."""
    parameters = [int(number) for number in form[2:].split(",")]
    return parameters[1], (parameters[2:] or [128])[0]


def pack_element(form: str, value: Any) -> bytes:
    """Of a fixed width."""
    element = element_of(form)
    if element is not None:
        return struct.pack("=" + element, *(value if isinstance(value, tuple) else (value,)))
    if form.startswith("d:"):
        scale, bits = decimal_of(form)
        return int(Decimal(value).scaleb(scale)).to_bytes(bits // 8, "little", signed=True)
    return bytes(value)


def unpack_element(form: str, content: bytes) -> Any:
    element = element_of(form)
    if element is not None:
        parts = struct.unpack("=" + element, content)
        return parts if len(parts) > 1 else parts[0]
    if form.startswith("d:"):
        number = int.from_bytes(content, "little", signed=True)
        return Decimal(number).scaleb(-decimal_of(form)[0])
    return content


def type_ids(form: str) -> list[int]:
    """Of a union."""
    return [int(number) for number in form[4:].split(",") if number]


def text_of(form: str, content: bytes) -> Any:
    return content.decode() if form in ("u", "U", "vu") else content


FITTING = {bool: "b", int: "cCsSiIlL", float: "efg", str: "uUvu", bytes: "zZvz"}


def fits(field: Field, value: Any) -> bool:
    """Whether a child of a union is one for this value; the first is for None."""
    return value is None or field.format in FITTING.get(type(value), "")
