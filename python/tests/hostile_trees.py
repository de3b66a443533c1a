"""Arrow arrays of any nesting, and streams of them, as C structures that may say anything."""

import ctypes
from ctypes import POINTER, c_void_p
from dataclasses import dataclass, field

import hostile
from dlpack_conformance.abi.capsule import CAPSULE_DESTRUCTOR, PyCapsule_New, dying_capsule_is_valid
from hostile_arrow import GET, ArrayStruct, FailingStream, Schema, Stream

CAPACITY = 1 << 13  # of every buffer, so that arrays of up to 100 values fit it
POINTERS = 8  # of every array, most of them NULL: it cannot be proved to be shorter


@dataclass
class Node:
    """An array of a type, and what is said of it that is not so: fields of the two structures."""

    format: str
    length: int
    buffers: list
    children: list = field(default_factory=list)
    dictionary: "Node | None" = None
    offset: int = 0
    null_count: int = -1
    name: str = "x"
    flags: int = 2
    said_of_type: dict = field(default_factory=dict)
    said_of_array: dict = field(default_factory=dict)

    @property
    def family(self):
        """Itself and all below it."""
        below = [*self.children, *([self.dictionary] if self.dictionary else [])]
        return [self, *(node for child in below for node in child.family)]


def mark_released(pointer):
    pointer[0].release = type(pointer[0].release)()


RELEASE_SCHEMA = dict(Schema._fields_)["release"]
RELEASE_ARRAY = dict(ArrayStruct._fields_)["release"]
OF_A_CHILD = {
    Schema: RELEASE_SCHEMA(mark_released),
    ArrayStruct: RELEASE_ARRAY(mark_released),
}


class Tree:
    """The structures of a node, as `__arrow_c_array__` hands them out; counts their releases."""

    def __init__(self, node):
        self.canaries = hostile.Canaries()
        self.released = {Schema: 0, ArrayStruct: 0}
        self.keep = []
        self.schema, self.array = self.schema_of(node), self.array_of(node)
        for struct in (self.schema, self.array):
            if struct.release:
                struct.release = self.counting(type(struct))
        self.given = {Schema: 0, ArrayStruct: 0}
        self.destructor = CAPSULE_DESTRUCTOR(self.destroy)

    def counting(self, kind):
        def release(pointer):
            self.released[kind] += 1
            mark_released(pointer)

        self.keep.append(type(OF_A_CHILD[kind])(release))
        return self.keep[-1]

    def pointers(self, structs, said):
        """An array of pointers to them; `said` is None, or has None for what is not there."""
        if said is None or not structs:
            return None
        array = self.canaries.place(POINTER(type(structs[0])) * max(len(structs), POINTERS))
        for index, struct in enumerate(structs):
            if index not in said:
                array[index] = ctypes.pointer(struct)
        return array

    def schema_of(self, node):
        children = [self.schema_of(child) for child in node.children]
        dictionary = node.dictionary and ctypes.pointer(self.schema_of(node.dictionary))
        said = dict(node.said_of_type)
        fields = {
            "format": node.format.encode(),
            "name": node.name.encode(),
            "flags": node.flags,
            "n_children": len(children),
            "children": self.pointers(children, said.pop("children", {})),
            "dictionary": dictionary,
            "release": OF_A_CHILD[Schema],
        }
        return self.filled(Schema, fields | said, children)

    def array_of(self, node):
        children = [self.array_of(child) for child in node.children]
        dictionary = node.dictionary and ctypes.pointer(self.array_of(node.dictionary))
        said = dict(node.said_of_array)
        buffers = said.pop("buffers", {})
        fields = {
            "length": node.length,
            "null_count": node.null_count,
            "offset": node.offset,
            "n_buffers": len(node.buffers),
            "n_children": len(children),
            "buffers": None if buffers is None else self.addresses(node.buffers, buffers),
            "children": self.pointers(children, said.pop("children", {})),
            "dictionary": dictionary,
            "release": OF_A_CHILD[ArrayStruct],
        }
        return self.filled(ArrayStruct, fields | said, children)

    def addresses(self, buffers, said):
        """Of new buffers with these bytes; `said` has None or how far off the address is."""
        array = self.canaries.place(c_void_p * max(len(buffers), POINTERS))
        for index, content in enumerate(buffers):
            shift = said.get(index, 0)
            if content is not None and shift is not None:
                placed = self.canaries.place(
                    ctypes.c_char * CAPACITY, content.ljust(CAPACITY, b"\0")
                )
                array[index] = ctypes.addressof(placed) + shift
        return array

    def filled(self, kind, fields, children):
        struct = self.canaries.place(kind)
        self.keep.append((struct, children))
        for name, value in fields.items():
            if value is not None:
                setattr(struct, name, value)
        return struct

    def destroy(self, capsule):
        for struct, name in (self.schema, b"arrow_schema"), (self.array, b"arrow_array"):
            if dying_capsule_is_valid(capsule, name) and struct.release:
                struct.release(ctypes.pointer(struct))

    def capsule(self, struct, name):
        self.given[type(struct)] = bool(self.released[type(struct)] or struct.release)
        destructor = ctypes.cast(self.destructor, c_void_p)
        return PyCapsule_New(ctypes.addressof(struct), name, destructor)

    def move(self, struct, out):
        """As streams hand structures out."""
        self.given[type(struct)] = bool(struct.release)
        ctypes.memmove(out, ctypes.addressof(struct), ctypes.sizeof(struct))
        mark_released(ctypes.pointer(struct))

    def __arrow_c_schema__(self):
        return self.capsule(self.schema, b"arrow_schema")

    def __arrow_c_array__(self, requested_schema=None):
        return self.__arrow_c_schema__(), self.capsule(self.array, b"arrow_array")

    def settle(self):
        """Everybody has let go."""
        assert self.released == self.given
        self.canaries.check()


NO_WORDS, NO_TEXT = object(), object()


class TreeStream(FailingStream):
    """A stream of chunks, whose types may be others than it says. It fails with `code` where it
    says its type, or after so many chunks; `words` are what it has to say about it."""

    def __init__(
        self, schema, chunks, *, code=5, fails_at_type=False, fails_after=None, words=NO_WORDS
    ):
        self.tree, self.chunks = Tree(schema), [Tree(chunk) for chunk in chunks]
        self.code, self.fails_at_type, self.fails_after = code, fails_at_type, fails_after
        self.words = ctypes.create_string_buffer(words) if isinstance(words, bytes) else None
        self.position = 0
        super().__init__(get_schema=GET(self.fill_schema), get_next=GET(self.fill_array))
        if words is not NO_WORDS:
            self.get_words = dict(Stream._fields_)["get_last_error"](self.last_error)
            self.stream.get_last_error = self.get_words

    def last_error(self, _stream):
        return ctypes.addressof(self.words) if self.words is not None else None

    def fill_schema(self, _stream, out):
        if self.fails_at_type:
            return self.code
        self.tree.move(self.tree.schema, out)
        return 0

    def fill_array(self, _stream, out):
        if self.position == self.fails_after:
            return self.code
        if self.position == len(self.chunks):
            ctypes.memset(out, 0, ctypes.sizeof(ArrayStruct))
        else:
            chunk = self.chunks[self.position]
            chunk.move(chunk.array, out)
            self.position += 1
        return 0

    def settle(self):
        """Everybody has let go."""
        assert self.released == 1
        for tree in (self.tree, *self.chunks):
            tree.settle()
