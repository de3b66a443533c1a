"""A producer of Arrow's structures that say what they are told."""

import ctypes
import struct
from collections.abc import Callable, Sequence
from typing import Any

from dlpack_conformance.abi.arrow import (
    ARROW_ARRAY,
    ARROW_SCHEMA,
    RELEASE,
    ArrowArray,
    ArrowSchema,
)
from dlpack_conformance.abi.capsule import (
    PyCapsule_New,
    take_exception_away,
)
from dlpack_conformance.kit.arrow_field import Field, encode_metadata
from dlpack_conformance.kit.arrow_layout import (
    BINARIES,
    LIST_VIEWS,
    LISTS,
    VIEWS,
    fits,
    pack_element,
    type_ids,
    width_of,
)
from dlpack_conformance.kit.memory import unreadable

ARROW_PRODUCERS: list[Any] = []  # for the life of the process: callbacks may be called at its end
ARROW_POISON = 0xDB

Buffers = list[bytes | int | None]


class Part:
    """A structure to be, of a schema or an array: correct until a rule changes it.

    `fields` are the structure's, by name; what is set there goes before what would be. `buffers`
    (of an array) are bytes, which each export copies to new memory, or an address, or None.
    """

    def __init__(
        self,
        kind: Any,
        children: Sequence["Part"] = (),
        dictionary: "Part | None" = None,
        buffers: Sequence[bytes | int | None] = (),
        **fields: Any,
    ) -> None:
        self.kind, self.children, self.dictionary = kind, list(children), dictionary
        self.buffers, self.fields = list(buffers), fields


class Made:
    """A structure that was filled from a part, and what it owns, until its release is called. Then
    its memory is poisoned, or with `frees` freed."""

    def __init__(self, part: Part, target: Any, base: bool, frees: bool = False) -> None:
        self.target, self.base, self.frees = target, base, frees
        self.memory: list[Any] = []
        self.by_parent = False  # who calls its release
        self.calls: list[int] = []  # what each call of its release got
        self.interrupted: list[str] = []  # exceptions that were set when it was called
        self.owned: list[tuple[int, bytes]] = []  # memory, with what is in it
        self.buffers: list[int] = []  # addresses of buffers in it
        self.changes: list[str] = []  # what held something else when it was released
        self.on_release: Callable[[], object] = lambda: None  # runs within it
        self.callback = RELEASE(self.release)
        self.children = [Made(child, child.kind(), False, frees) for child in part.children]
        words = part.dictionary
        self.dictionary = words and Made(words, words.kind(), False, frees)
        self.set_fields(part)

    def set_fields(self, part: Part) -> None:
        target = self.target
        ctypes.memset(ctypes.addressof(target), 0, ctypes.sizeof(target))
        target.n_children = len(self.children)
        target.children = self.pointers([ctypes.addressof(c.target) for c in self.children])
        target.dictionary = self.dictionary and ctypes.addressof(self.dictionary.target)
        if part.kind is ArrowArray:
            places = [self.own(b) if isinstance(b, bytes) else b for b in part.buffers]
            self.buffers = [address for address, _ in self.owned]
            target.n_buffers, target.buffers = len(places), self.pointers(places)
        target.release = ctypes.cast(self.callback, ctypes.c_void_p).value
        # To follow it ends the process.
        target.private_data = unreadable()
        for name, value in part.fields.items():
            if name in ("format", "name", "metadata") and isinstance(value, bytes):
                value = self.own(value if name == "metadata" else value + b"\0")  # noqa: PLW2901
                place = ctypes.addressof(target) + getattr(part.kind, name).offset
                ctypes.c_void_p.from_address(place).value = value
            else:
                setattr(target, name, value)
        self.content = bytes(target)

    def own(self, content: bytes) -> int:
        memory = ctypes.create_string_buffer(len(content) + 64)
        self.memory.append(memory)
        address = -(-ctypes.addressof(memory) // 64) * 64
        ctypes.memmove(address, content, len(content))
        self.owned.append((address, content))
        return address

    def pointers(self, places: Sequence[int | None]) -> Any:
        """None without any."""
        if not places:
            return None
        address = self.own(bytes((ctypes.c_void_p * len(places))(*places)))
        return ctypes.cast(address, ctypes.POINTER(ctypes.c_void_p))

    def release(self, address: int) -> None:
        interrupted = take_exception_away()
        self.interrupted += [] if interrupted is None else [interrupted]
        if not self.by_parent:
            self.calls.append(address)
        self.on_release()
        self.end()
        ctypes.c_void_p.from_address(address + type(self.target).release.offset).value = None

    def end(self) -> None:
        """Who reads of it from now on reads wrong things, but for a child that was moved out."""
        self.changes += self.changed()
        for part in self.parts():
            if part.target.release:
                if bytes(part.target) != part.content:
                    self.changes.append("structure")
                part.by_parent = True
                RELEASE(part.target.release)(ctypes.addressof(part.target))
                self.changes += part.changes
                poison(ctypes.addressof(part.target), ctypes.sizeof(part.target))
                part.target.release = None
        for address, content in self.owned:
            poison(address, len(content))
        if self.frees:
            self.owned, self.memory = [], []

    def changed(self) -> list[str]:
        """What of the memory that it owns does not hold what it held: "buffer", or "member"."""
        return [
            "buffer" if address in self.buffers else "member"
            for address, content in self.owned
            if ctypes.string_at(address, len(content)) != content
        ]

    def parts(self) -> list["Made"]:
        return self.children + ([self.dictionary] if self.dictionary else [])

    def all_parts(self) -> list["Made"]:
        """Of all levels, without itself."""
        return [each for part in self.parts() for each in [part, *part.all_parts()]]

    def releases(self) -> int:
        """Calls of release, with the one of the capsule's destructor if it was left to that."""
        return len(self.calls) + bool(self.target.release)


def poison(address: int, size: int) -> None:
    ctypes.memset(address, ARROW_POISON, size)


class ArrowProducer:
    """An object with `__arrow_c_array__` and `__arrow_c_schema__`.

    `schema` and `array` are parts. Each export fills new structures from them; `schemas` and
    `arrays` are what was exported. The capsules have no destructor and are kept, so that their
    structures can be read afterwards; `releases` counts what their destructors would do too.
    """

    def __init__(
        self, field: Field, values: Sequence[Any], offset: int = 0, inner: int = 0
    ) -> None:
        self.field, self.values = field, list(values)
        self.schema, self.array = schema_part(field), array_part(field, values, offset, inner)
        self.schemas: list[Made] = []
        self.arrays: list[Made] = []
        self.capsules: list[Any] = []
        self.requests: list[Any] = []
        ARROW_PRODUCERS.append(self)

    def export_schema(self) -> Any:
        made = Made(self.schema, ArrowSchema(), True)
        self.schemas.append(made)
        return self.capsule(made, ARROW_SCHEMA)

    def export_array(self) -> Any:
        made = Made(self.array, ArrowArray(), True)
        self.arrays.append(made)
        return self.capsule(made, ARROW_ARRAY)

    def capsule(self, made: Made, name: bytes) -> Any:
        capsule = PyCapsule_New(ctypes.addressof(made.target), name, None)
        self.capsules.append(capsule)
        return capsule

    def __arrow_c_schema__(self) -> Any:
        return self.export_schema()

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
        self.requests.append(requested_schema)
        return self.export_schema(), self.export_array()

    @property
    def interrupted(self) -> list[str]:
        """Exceptions that were set when a release was called, and are lost."""
        return [each for made in self.schemas + self.arrays for each in made.interrupted]

    def releases(self) -> list[int]:
        """Of each structure exported: 1 if all went well."""
        return [made.releases() for made in self.schemas + self.arrays]


def schema_part(field: Field) -> Part:
    return Part(
        ArrowSchema,
        [schema_part(child) for child in field.children],
        None if field.dictionary is None else schema_part(field.dictionary),
        format=field.format.encode(),
        name=field.name.encode(),
        metadata=encode_metadata(field.metadata),
        flags=field.flags,
    )


def array_part(field: Field, values: Sequence[Any], offset: int = 0, inner: int = 0) -> Part:
    """`offset` items lie before the values, and `inner` before those of each child."""
    items = [*(list(values[-1:]) or [None]) * offset, *values]
    dictionary = None
    children: list[Part] = []
    if field.dictionary is not None:
        words = list(dict.fromkeys(item for item in items if item is not None))
        dictionary = array_part(field.dictionary, words, inner, inner)
        codes = [None if item is None else words.index(item) for item in items]
        buffers: Buffers = [bitmap(codes), fixed(field.format, codes)]
    elif field.format.startswith("+"):
        children, buffers = nested_layout(field, items, inner)
    else:
        buffers = flat_layout(field.format, items)
    valid = field.format == "+r" or field.format.startswith("+u")
    null_count = 0 if valid else sum(value is None for value in values)
    if null_count == 0 and buffers and not valid and not offset:
        buffers[0] = None
    return Part(
        ArrowArray,
        children,
        dictionary,
        buffers,
        length=len(values),
        null_count=null_count,
        offset=offset,
    )


def bitmap(items: Sequence[Any]) -> bytes:
    return bits([item is not None for item in items])


def bits(items: Sequence[Any]) -> bytes:
    total = sum(1 << i for i, item in enumerate(items) if item)
    return total.to_bytes(-(-len(items) // 8), "little")


def fixed(form: str, items: Sequence[Any]) -> bytes:
    """Elements of a fixed width, zero bytes for nulls."""
    empty = bytes(width_of(form) or 0)
    return b"".join(empty if item is None else pack_element(form, item) for item in items)


def flat_layout(form: str, items: Sequence[Any]) -> Buffers:
    if form == "n":
        return []
    if form == "b":
        return [bitmap(items), bits(items)]
    if form in BINARIES:
        texts = [as_bytes(item) for item in items]
        return [bitmap(items), offsets(BINARIES[form], map(len, texts)), b"".join(texts)]
    if form in VIEWS:
        texts = [as_bytes(item) for item in items]
        data = b"".join(text for text in texts if len(text) > 12)
        views = b"".join(view(text, data.find(text)) for text in texts)
        return [bitmap(items), views, data, struct.pack("q", len(data))]
    return [bitmap(items), fixed(form, items)]


def as_bytes(item: Any) -> bytes:
    return b"" if item is None else item.encode() if isinstance(item, str) else item


def view(text: bytes, start: int) -> bytes:
    if len(text) <= 12:
        return struct.pack("=i12s", len(text), text)
    return struct.pack("=i4s2i", len(text), text[:4], 0, start)


def offsets(form: str, lengths: Any) -> bytes:
    """Of variable-size items, one more than there are."""
    ends = [0]
    for length in lengths:
        ends.append(ends[-1] + length)
    return struct.pack(f"={len(ends)}{form}", *ends)


def nested_layout(field: Field, items: Sequence[Any], inner: int) -> tuple[list[Part], Buffers]:
    form, children = field.format, field.children
    if form == "+s":
        columns = [[item and item[child.name] for item in items] for child in children]
        parts = [array_part(c, v, inner, inner) for c, v in zip(children, columns, strict=True)]
        return parts, [bitmap(items)]
    if form == "+r":
        ends = [i + 1 for i in range(len(items)) if items[i + 1 : i + 2] != [items[i]]]
        values = [items[end - 1] for end in ends]
        # The format forbids nulls in run ends, and lets them have an offset.
        return [array_part(children[0], ends), array_part(children[1], values, inner, inner)], []
    if form.startswith("+u"):
        return union_layout(field, items, inner)
    size = int(form[3:]) if form.startswith("+w:") else 0
    lists = [[None] * size if item is None else list(item) for item in items]
    inside: list[Any] = [element for each in lists for element in each]
    if form == "+m":
        names = [child.name for child in children[0].children]
        inside = [{names[0]: key, names[1]: value} for key, value in inside]
    lengths = [len(each) for each in lists]
    parts = [array_part(children[0], inside, inner, inner)]
    if form in LISTS:
        return parts, [bitmap(items), offsets(LISTS[form], lengths)]
    if form in LIST_VIEWS:
        code = LIST_VIEWS[form]
        starts = offsets(code, lengths)[: len(items) * struct.calcsize("=" + code)]
        return parts, [bitmap(items), starts, struct.pack(f"={len(lengths)}{code}", *lengths)]
    return parts, [bitmap(items)]


def union_layout(field: Field, items: Sequence[Any], inner: int) -> tuple[list[Part], Buffers]:
    children, ids = field.children, type_ids(field.format)
    which = [next(n for n, c in enumerate(children) if fits(c, item)) for item in items]
    buffers: Buffers = [struct.pack(f"={len(items)}b", *[ids[n] for n in which])]
    dense = field.format.startswith("+ud:")
    parts = []
    for n, its in enumerate(children):
        column = [
            item if w == n else None
            for item, w in zip(items, which, strict=True)
            if w == n or not dense
        ]
        parts.append(array_part(its, column, inner, inner))
    if dense:
        places = [which[:i].count(n) for i, n in enumerate(which)]
        buffers.append(struct.pack(f"={len(items)}i", *places))
    return parts, buffers
