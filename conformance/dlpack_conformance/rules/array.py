"""AR2xx: ArrowArray, its layout, release and moving."""

import contextlib
import ctypes
import gc
import struct
import threading
from collections.abc import Iterator
from typing import Any

from dlpack_conformance.abi.arrow import RELEASE
from dlpack_conformance.kit.arrow_buffers import (
    alignment_of,
    buffer_contents,
    buffer_names,
    buffer_sizes,
    least_lengths,
)
from dlpack_conformance.kit.arrow_cases import LISTED
from dlpack_conformance.kit.arrow_consumer import (
    RELEASE_WITH_GIL,
    ArrowExported,
    bit,
    child,
    dictionary_of,
    move,
    number,
    read_field,
    read_values,
    release,
)
from dlpack_conformance.kit.arrow_field import Field, struct_of
from dlpack_conformance.kit.arrow_judge import (
    arrays_in,
    arrow_accepted,
    arrow_attempt,
    arrow_export,
    arrow_exports,
    arrow_refused,
    arrow_right_or_refused,
    arrow_taken,
    cases_of,
    exported_arrays,
    fatal_formats,
    made_of,
    parts_of,
    reported_of_consumer,
    tree,
)
from dlpack_conformance.kit.arrow_layout import VIEWS
from dlpack_conformance.kit.arrow_producer import ARROW_PRODUCERS, ArrowProducer
from dlpack_conformance.kit.judge import either, equal
from dlpack_conformance.kit.memory import aligned, before_guard_page, unreadable
from dlpack_conformance.library import Library
from dlpack_conformance.rule import Broken, NotApplicable, Report, rule

INTS = Field("i")
ITEM = Field("i", "item")
ROW = Field("+s", children=(Field("i", "x"), Field("u", "y")))
ROWS: list[Any] = [{"x": 1, "y": "a"}, {"x": 2, "y": None}, {"x": 3, "y": "ccc"}]
LONG = ["a", "a text of more than twelve bytes"]
CODED = Field("i", dictionary=Field("u"))


@rule("AR201", "must", "CDataInterface, ArrowArray.length", "p")
def length(lib: Library) -> Report:
    """`length` is the number of items, not negative."""
    x = ArrowProducer(INTS, [1, 2, 3])
    x.array.fields["length"] = -1
    return reported_of_consumer(lib, lengths_counted, x)


def lengths_counted(lib: Library) -> None:
    for field, values, exported in arrow_exports(lib):
        equal(f"length of format {field.format}", len(values), exported.array.length)
        for array in tree(exported.array):
            if array.length < 0:
                raise Broken("a length", array.length)


@rule("AR202", "must", "CDataInterface, ArrowArray.null_count", "pc")
def null_count(lib: Library) -> None:
    """`null_count` is the number of nulls, or -1, which a consumer takes."""
    either(lib, nulls_counted, unknown_null_count_taken)


def nulls_counted(lib: Library) -> None:
    exports = list(arrow_exports(lib))
    with contextlib.suppress(NotApplicable):
        part = lib.arrow_slice(lib.arrow_array(INTS, [None, 1, None, 3]), 1, 2)
        exports.append((INTS, [1, None], ArrowExported(part)))
    for field, array in [a for _, _, e in exports for a in arrays_in(e.field, e.array)]:
        items = range(array.offset, array.offset + array.length)
        if field.format == "n":
            expected = array.length
        elif "validity" in buffer_names(field, array) and array.buffers[0]:
            expected = sum(not bit(array.buffers[0], i) for i in items)
        else:
            expected = 0  # the children of unions and run-ends have the nulls
        if array.null_count not in (-1, expected):
            raise Broken(f"null_count -1 or {expected} (format {field.format})", array.null_count)


def unknown_null_count_taken(lib: Library) -> None:
    for field, values in ((INTS, [1, None, 3]), (INTS, [1, 2, 3]), (Field("u"), ["a", None])):
        x = ArrowProducer(field, values)
        # Without a bitmap the number is known to be 0.
        x.array.buffers[0] = x.array.buffers[0] or b"\7"
        x.array.fields["null_count"] = -1
        arrow_accepted(lib, x)


@rule("AR203", "silent", "CDataInterface, ArrowArray.null_count", "c")
def null_count_lie(lib: Library) -> Report:
    """What a consumer makes of `null_count` 0 where the bitmap has a null."""
    x = ArrowProducer(INTS, [1, None, 3])
    x.array.fields["null_count"] = 0
    values, refusal = arrow_attempt(lib, x)
    return Report(refusal or f"values {values}")


@rule("AR204", "must", "CDataInterface, ArrowArray.offset", "p")
def offset(lib: Library) -> Report:
    """`offset` counts items and is not negative."""
    x = ArrowProducer(INTS, [1, 2, 3])
    x.array.fields["offset"] = -1
    return reported_of_consumer(lib, slices_exported, x)


def slices_exported(lib: Library) -> None:
    for field, values in ((INTS, list(range(20))), (Field("b"), [True, False, True, True] * 5)):
        exported = ArrowExported(lib.arrow_slice(lib.arrow_array(field, values), 11, 5))
        if exported.array.offset < 0:
            raise Broken("an offset", exported.array.offset)
        equal("items 11 to 15", values[11:16], exported.to_list())


@rule("AR205", "should", "CDataInterface, ArrowArray.offset", "c")
def offset_honoured(lib: Library) -> None:
    """A consumer honours an offset, of children too, or refuses it."""
    takes, misread = 0, list[str]()
    for field, values in cases_of(lib):
        try:
            for outer, inner in ((3, 0), (0, 5), (5, 3)):
                x = ArrowProducer(field, values, outer, inner)
                takes += arrow_right_or_refused(lib, x) is None
        except Broken as broken:
            misread.append(f"{broken.expected}, with an offset {broken.seen}")
    if misread:
        raise Broken("the same values with an offset", "; ".join(misread))
    if not takes:
        raise NotApplicable("takes none of the types")


@rule("AR206", "must", "CDataInterface, ArrowArray.n_buffers", "p")
def n_buffers(lib: Library) -> Report:
    """`n_buffers` is that of the type's layout, one more for views."""
    fewer = [ArrowProducer(INTS, [1, 2, 3]), ArrowProducer(Field("u"), ["a", "b"])]
    for x in fewer:
        x.array.buffers.pop()
    return reported_of_consumer(lib, buffers_counted, *fewer)


def buffers_counted(lib: Library) -> None:
    for field, array in exported_arrays(lib):
        expected = len(buffer_names(field, array))
        if field.format in VIEWS:
            # At least: the variadic ones are as many as there are.
            expected = max(array.n_buffers, 3)
        equal(f"buffers of format {field.format}", expected, array.n_buffers)


@rule("AR207", "must", "CDataInterface, Binary view arrays", "p")
def view_lengths_buffer(lib: Library) -> Report:
    """The last buffer of views has the int64 lengths of the variadic ones."""
    x = ArrowProducer(Field("vu"), LONG)
    x.array.buffers.pop()
    # What is now the last buffer says 0 bytes, if it is taken for lengths.
    x.array.buffers[2] = bytes(64)
    return reported_of_consumer(lib, view_lengths_exported, x)


def view_lengths_exported(lib: Library) -> None:
    seen = 0
    texts = [LONG[1] * n for n in (1, 2, 3)]
    cases: list[tuple[Field, list[Any]]] = [(Field("vu"), texts)]
    cases += [(Field("vz"), [t.encode() for t in texts])]
    for field, array in exported_arrays(lib, cases):
        if field.format not in VIEWS:
            continue
        seen += 1
        count = array.n_buffers - 3
        sizes = [number(array.buffers[array.n_buffers - 1], "q", i) for i in range(count)]
        for i in range(array.offset, array.offset + array.length):
            content = ctypes.string_at(array.buffers[1] + 16 * i, 16)
            size, buffer, start = struct.unpack("=i4x2i", content)
            if size > 12 and not (0 <= buffer < count and start + size <= sizes[buffer]):
                raise Broken(f"buffer {buffer} of {start + size} bytes or more", f"sizes {sizes}")
    if not seen:
        raise NotApplicable("exports no views")


@rule("AR208", "must", "CDataInterface, ArrowArray.buffers", "p")
def buffers_pointers(lib: Library) -> Report:
    """`buffers` has `n_buffers` pointers."""
    x = ArrowProducer(INTS, [1, 2, 3])
    x.array.fields["buffers"] = None
    return reported_of_consumer(lib, buffers_set, x)


def buffers_set(lib: Library) -> None:
    cases = cases_of(lib)
    for field, array in exported_arrays(lib, cases + [(field, []) for field, _ in cases]):
        if array.n_buffers and not array.buffers:
            raise Broken(f"{array.n_buffers} pointers (format {field.format})", "NULL")


@rule("AR209", "must", "CDataInterface, ArrowArray.buffers", "p")
def null_buffers(lib: Library) -> None:
    """A buffer is NULL only if it is the bitmap and `null_count` is 0, or if it has no bytes."""
    nulls: list[tuple[Field, list[Any]]] = [(INTS, [None, None]), (Field("g"), [None])]
    for field, array in exported_arrays(lib, cases_of(lib) + nulls):
        sizes = buffer_sizes(field, array)
        for i, name in enumerate(buffer_names(field, array)):
            if array.buffers[i] or not sizes[i] or (name == "validity" and array.null_count == 0):
                continue
            seen = f"NULL, null_count {array.null_count}"
            raise Broken(f"{name} of {sizes[i]} bytes (format {field.format})", seen)


@rule("AR210", "derived", "CDataInterface, ArrowArray.buffers", "c")
def null_buffers_accepted(lib: Library) -> None:
    """A consumer takes NULL for buffers without bytes: all of an array of length 0 but offsets,
    which are one more than its items, the data of empty texts, and bitmaps without nulls."""
    producers = [ArrowProducer(field, []) for field, _ in cases_of(lib)]
    for x in producers:
        for part in parts_of(x.array):
            # Views without variadic buffers.
            part.buffers = [b if b == bytes(4) or b == bytes(8) else None for b in part.buffers[:3]]
    empty: dict[str, Any] = {"u": "", "z": b"", "U": "", "vu": ""}
    for form in sorted(empty.keys() - set(fatal_formats(lib))):
        x = ArrowProducer(Field(form), [empty[form]] * 2)
        x.array.buffers[2] = None
        producers.append(x)
    for x in producers:
        arrow_accepted(lib, x)


@rule("AR211", "must", "CDataInterface, ArrowArray.buffers", "p")
def buffer_size(lib: Library) -> None:
    """Each buffer is large enough for `length + offset` items: all of them can be read. (A short
    one is found out where an unreadable page or a sanitizer follows it.)"""
    for field, array in exported_arrays(lib):
        buffer_contents(field, array)


@rule("AR212", "should", "CDataInterface, ArrowArray.buffers", "p")
def alignment(lib: Library) -> None:
    """Buffers are aligned to the type of what they hold."""
    for field, array in exported_arrays(lib):
        for i, name in enumerate(buffer_names(field, array)):
            wanted = alignment_of(field.format, name)
            if (array.buffers[i] or 0) % wanted:
                seen = f"{array.buffers[i]:#x}"
                raise Broken(f"{name} of {field.format} at a multiple of {wanted}", seen)


@rule("AR213", "derived", "CDataInterface, ArrowArray.buffers", "c")
def unaligned(lib: Library) -> None:
    """A consumer that does not refuse memory that is not aligned reads it right."""
    for field, values in ((Field("l"), [1, None, 1 << 40]), (Field("g"), [1.5, None, 2.5])):
        x = ArrowProducer(field, values)
        content = x.array.buffers[1]
        x.array.buffers[1] = aligned(content, past=1) if isinstance(content, bytes) else None
        arrow_right_or_refused(lib, x)


@rule("AR214", "must", "CDataInterface, ArrowArray.n_children", "p")
def n_children(lib: Library) -> Report:
    """An array has as many children as its schema."""
    fewer = [ArrowProducer(ROW, ROWS), ArrowProducer(Field("+l", children=(ITEM,)), LISTED)]
    for x in fewer:
        x.array.children.pop()
    return reported_of_consumer(lib, children_agree, *fewer)


def children_agree(lib: Library) -> None:
    for field, _, exported in arrow_exports(lib):
        pending = [(exported.schema, exported.array)]
        for schema, array in pending:
            expected = schema.n_children
            equal(f"children of an array of {field.format}", expected, array.n_children)
            pending += [(child(schema, i), child(array, i)) for i in range(expected)]


@rule("AR215", "must", "CDataInterface, ArrowArray.buffers; Columnar format", "p")
def child_lengths(lib: Library) -> Report:
    """Children have the items that their parent's length, offset and offsets reach."""
    sized = Field("+w:2", children=(ITEM,))
    listed = Field("+l", children=(ITEM,))
    producers = [ArrowProducer(struct_of(Field("i", "x")), [{"x": 1}, {"x": 2}, {"x": 3}])]
    producers += [ArrowProducer(sized, [[1, 2], [3, 4]]), ArrowProducer(listed, [[1], [2, 3]])]
    for x in producers:
        short = x.array.children[0]
        short.fields["length"] = 1
        # Nothing can be read behind the one item.
        short.buffers[1] = before_guard_page(struct.pack("=i", 1))
    return reported_of_consumer(lib, children_long_enough, *producers)


def children_long_enough(lib: Library) -> None:
    for field, array in exported_arrays(lib):
        for i, least in enumerate(least_lengths(field, array)):
            if child(array, i).length < least:
                seen = child(array, i).length
                raise Broken(f"{least} items in child {i} of {field.format}", seen)


@rule("AR216", "must", "CDataInterface, ArrowArray.dictionary", "p")
def array_dictionary_iff(lib: Library) -> Report:
    """An array has a dictionary if and only if its schema has one."""
    x = ArrowProducer(CODED, ["x", "y"])
    x.array.dictionary = None
    return reported_of_consumer(lib, dictionaries_agree, x)


def dictionaries_agree(lib: Library) -> None:
    for field, _, exported in arrow_exports(lib):
        pending = [(exported.schema, exported.array)]
        for schema, array in pending:
            what = f"dictionary in an array of format {field.format}"
            equal(what, bool(schema.dictionary), bool(array.dictionary))
            pending += [(child(schema, i), child(array, i)) for i in range(schema.n_children)]


# A consumer may trust its producer, says the text, and is recommended to look all the same.
@rule("AR217", "should", "Columnar format, Dictionary-encoded Layout; Security", "c")
def codes_in_range(lib: Library) -> None:
    """Codes of valid rows lie in the dictionary: others are an exception, at once or when read."""
    for code in (99, -1):
        x = ArrowProducer(CODED, ["x", "y", "z"])
        x.array.buffers[1] = struct.pack("=3i", 0, code, 2)
        arrow_refused(lib, x)


@rule("AR218", "should", "Columnar format, Variable-size Binary Layout; Security", "c")
def offsets_monotone(lib: Library) -> None:
    """Offsets rise: falling ones are an exception, at once or when read."""
    for field, values in (
        (Field("u"), ["ab", "cd", "ef"]),
        (Field("+l", children=(ITEM,)), [[1, 2], [3, 4], [5, 6]]),
    ):
        x = ArrowProducer(field, values)
        x.array.buffers[1] = struct.pack("=4i", 0, 4, 2, 6)
        arrow_refused(lib, x)


@rule("AR219", "must", "CDataInterface, ArrowArray.release", "p")
def array_release_set(lib: Library) -> None:
    """`release` is set in a live array, in its children too."""
    for field, _, exported in arrow_exports(lib):
        for array in tree(exported.array):
            if not array.release:
                raise Broken("a callback", f"NULL (format {field.format})")


def base_exports(lib: Library) -> Iterator[tuple[list[Any], ArrowExported]]:
    """A struct and a dictionary-encoded array, whose base structures are the rule's to release."""
    for field, values in ((ROW, ROWS), (CODED, ["x", None, "y"])):
        exported = arrow_export(lib, field, values)
        if exported.base is None:
            yield values, exported


@rule("AR220", "must", "CDataInterface, Release callback semantics (producers)", "p")
def release_marks(lib: Library) -> None:
    """`release` sets the structure's own `release` to NULL, of a schema as of an array."""
    for _, exported in base_exports(lib):
        for what, structure in (("array", exported.array), ("schema", exported.schema)):
            release(structure)
            left, structure.release = structure.release, None
            equal(f"release of the {what} afterwards", None, left)


@rule("AR221", "must", "CDataInterface, Release callback semantics (producers)", "p")
def release_children(lib: Library) -> None:
    """`release` calls the children's and the dictionary's `release`."""
    for _, exported in base_exports(lib):
        for what, structure in (("array", exported.array), ("schema", exported.schema)):
            parts = [child(structure, i) for i in range(structure.n_children)]
            parts += [dictionary_of(structure)] if structure.dictionary else []
            called: list[int] = []
            callbacks = [watched(part, called) for part in parts]
            release(structure)
            equal(f"calls of release of parts of a {what}", len(callbacks), len(called))


def watched(part: Any, called: list[int]) -> Any:
    """Puts a callback before that of the structure, and gives what must live as long."""
    original = part.release

    def noted(address: int) -> None:
        called.append(address)
        its = type(part).from_address(address)
        its.release = original
        RELEASE_WITH_GIL(original)(address)

    callback = RELEASE(noted)
    part.release = ctypes.cast(callback, ctypes.c_void_p)
    return callback


@rule("AR222", "must", "CDataInterface, Release callback semantics (producers)", "p")
def release_frees(lib: Library) -> None:
    """`release` frees what the structure owns: memory does not grow with arrays released."""
    size, rounds, ours = 200_000, 400, len(ARROW_PRODUCERS)
    for _ in range(50):
        export_and_release(lib, size)
    if len(ARROW_PRODUCERS) > ours:
        raise NotApplicable("its hooks have arrays made by the kit, which keeps them")
    before = resident()
    for _ in range(rounds):
        export_and_release(lib, size)
    grown = resident() - before
    if grown > size * rounds // 2:
        raise Broken(
            f"less than half of the {size * rounds} bytes released", f"{grown} more in use"
        )


def export_and_release(lib: Library, size: int) -> None:
    exported = arrow_export(lib, Field("z"), [bytes(size)])
    for structure in exported.base or (exported.array, exported.schema):
        release(structure)


def resident() -> int:
    """Bytes of memory in use."""
    try:
        with open("/proc/self/statm") as status:
            return int(status.read().split()[1]) * 4096
    except OSError:
        raise NotApplicable("not run here: no /proc") from None


@rule("AR223", "must", "CDataInterface, Release callback semantics (producers), Moving", "p")
def release_moved(lib: Library) -> None:
    """A structure works from another address: nothing points into it, and nothing to it."""
    for values, exported in base_exports(lib):
        array, schema = moved_away(exported.array), moved_away(exported.schema)
        equal("values", values, read_values(read_field(schema), array))
        for structure in (array, schema):
            release(structure)
            left, structure.release = structure.release, None
            equal("release at the new address", None, left)


def moved_away(structure: Any) -> Any:
    """Moved, and where it was are other bytes, but that it is released."""
    moved = move(structure)
    ctypes.memset(ctypes.addressof(structure), 0xDB, ctypes.sizeof(structure))
    structure.release = None
    return moved


@rule("AR224", "must", "CDataInterface, Moving child arrays", "pc")
def moved_child(lib: Library) -> None:
    """A child that was moved out of its parent survives the parent's release."""
    exported = arrow_export(lib, ROW, ROWS)
    if exported.base is not None:
        raise NotApplicable("makes no structs")
    field = exported.field.children[1]
    moved = move(child(exported.array, 1))
    release(exported.array)
    gc.collect()
    equal("values of the child", [row["y"] for row in ROWS], read_values(field, moved))
    release(moved)
    left, moved.release = moved.release, None
    equal("release of the child afterwards", None, left)


@rule("AR225", "must", "CDataInterface, Release callback semantics (producers)", "p")
def bookkeeping_in_private(lib: Library) -> None:
    """What release needs is found by `private_data`: two arrays may change places."""
    one, two = arrow_export(lib, ROW, ROWS), arrow_export(lib, ROW, ROWS[::-1])
    if one.base is not None:
        raise NotApplicable("makes no structs")
    field = one.field
    content = bytes(one.array)
    ctypes.memmove(ctypes.addressof(one.array), bytes(two.array), len(content))
    ctypes.memmove(ctypes.addressof(two.array), content, len(content))
    release(one.array)
    gc.collect()
    equal("values of the other", ROWS, read_values(field, two.array))
    release(two.array)


@rule("AR226", "must", "CDataInterface, Member allocation", "c")
def members_are_the_producers(lib: Library) -> None:
    """A consumer frees and changes none of the members: pointers, texts, children."""
    equal("members changed", [], [what for what in changes(lib) if what != "buffer"])


def changes(lib: Library) -> list[str]:
    """What the consumer changed of what it took, read and let go."""
    changed = []
    taken = 0
    for field, values in ((INTS, [1, None, 3]), (ROW, ROWS), (CODED, ["x", None, "y"])):
        x = ArrowProducer(field, values)
        taken += arrow_attempt(lib, x)[1] is None
        gc.collect()
        for made in x.schemas + x.arrays:
            changed += made.changes if made.calls else made.changed()
    if not taken:
        raise NotApplicable("takes none of the types")
    return changed


@rule("AR227", "must", "CDataInterface, ArrowArray.private_data", "c")
def private_data_untouched(lib: Library) -> None:
    """A consumer does not follow `private_data`, which here points to memory that ends it."""
    arrow_taken(lib, ArrowProducer(ROW, ROWS))


@rule("AR228", "should", "CDataInterface, Released structure", "c")
def released_is_refused(lib: Library) -> None:
    """A structure whose `release` is NULL is not read: its other pointers end who follows them."""
    nowhere = ctypes.cast(unreadable(), ctypes.POINTER(ctypes.c_void_p))
    x = ArrowProducer(ROW, ROWS)
    x.array.fields |= {"release": None, "buffers": nowhere, "children": nowhere}
    arrow_refused(lib, x)
    x = ArrowProducer(ROW, ROWS)
    x.schema.fields |= {"release": None, "format": unreadable(), "children": nowhere}
    arrow_refused(lib, x)


@rule("AR229", "must", "CDataInterface, Release callback semantics (consumers)", "c")
def release_once(lib: Library) -> None:
    """A consumer calls the base structure's release once, when it is done or refuses."""
    taken = ((INTS, [1, None, 3]), (ROW, ROWS), (CODED, ["x", None]), (Field("b"), [True, None]))
    producers = [ArrowProducer(field, values) for field, values in taken]
    for form in (b"Q!", b"d:x", b"+w:"):
        x = ArrowProducer(INTS, [1, 2, 3])
        x.schema.fields["format"] = form
        producers.append(x)
    for x in producers:
        _, refusal = arrow_attempt(lib, x)
        gc.collect()
        what = refusal or f"taken, format {x.field.format}"
        if set(x.releases()) - {1}:
            raise Broken(f"1 call of release of each structure ({what})", x.releases())


@rule("AR230", "must", "CDataInterface, Release callback semantics (consumers)", "c")
def release_only_base(lib: Library) -> None:
    """A consumer calls no child's release, nor the dictionary's, but of those it moved out."""
    for field, values in ((ROW, ROWS), (CODED, ["x", None, "y"])):
        x = ArrowProducer(field, values)
        arrow_taken(lib, x)
        for made in made_of(x):
            if not made.base and ctypes.addressof(made.target) in made.calls:
                raise Broken("no call of a child's release", f"{len(made.calls)}")


@rule("AR231", "must", "CDataInterface, Release callback semantics (consumers)", "c")
def nothing_after_release(lib: Library) -> None:
    """After release nothing of the structure is accessed: it has other bytes then."""
    for field, values in ((INTS, [1, None, 3]), (ROW, ROWS), (Field("u"), LONG)):
        x = ArrowProducer(field, values)
        seen, refusal = arrow_attempt(lib, x)
        if refusal is None:
            equal("values", values, seen)


@rule("AR232", "must", "CDataInterface, Moving an array", "c")
def moving_marks_source(lib: Library) -> None:
    """Who moves a structure sets the source's `release` to NULL without calling it."""
    x = ArrowProducer(ROW, ROWS)
    arrow_taken(lib, x)
    for made in x.schemas + x.arrays:
        moved = [place for place in made.calls if place != ctypes.addressof(made.target)]
        if moved and made.target.release:
            raise Broken("NULL in the structure that was moved", "its release")


@rule("AR233", "must", "CDataInterface, Moving child arrays", "c")
def moved_child_parent(lib: Library) -> None:
    """Who moves children out releases the parent at once. (Checked where a library does so when it
    takes a struct.)"""
    x = ArrowProducer(ROW, ROWS)
    taken = lib.arrow_take(x)
    for made in x.arrays:
        gone = [part for part in made.parts() if not part.target.release]
        if gone and not made.calls:
            raise Broken("the parent released", f"{len(gone)} of its children moved out")
    equal("values", ROWS, lib.arrow_to_list(taken))


@rule("AR234", "should", "CDataInterface, Mutability", "pc")
def immutable(lib: Library) -> None:
    """Neither side changes the data."""
    either(lib, producer_changes_nothing, consumer_changes_nothing)


def producer_changes_nothing(lib: Library) -> None:
    for field, values in ((INTS, [1, None, 3]), (Field("u"), LONG), (ROW, ROWS)):
        array = lib.arrow_array(field, values)
        exported = ArrowExported(array)
        before = [buffer_contents(*each) for each in arrays_in(exported.field, exported.array)]
        lib.arrow_to_list(array)
        again = ArrowExported(array)
        release(again.array)
        after = [buffer_contents(*each) for each in arrays_in(exported.field, exported.array)]
        equal("buffers", before, after)


def consumer_changes_nothing(lib: Library) -> None:
    equal("buffers changed", 0, changes(lib).count("buffer"))


@rule("AR235", "should", "CDataInterface, Record batches", "pc")
def record_batch_struct(lib: Library) -> None:
    """A record batch is a struct array: the struct's nulls and offset hold, or are refused."""
    rows = [{"x": 1}, None, {"x": 3}]
    for offset in (0, 3):
        x = ArrowProducer(Field("+s", children=(Field("i", "x"),)), rows, offset)
        # Under a null the child has another item.
        x.array.children[0].buffers = [None, struct.pack(f"={3 + offset}i", *[9] * offset, 1, 2, 3)]
        x.array.children[0].fields["null_count"] = 0
        seen, refusal = arrow_attempt(lib, x)
        if refusal is None and seen not in (rows, [{"x": 1}, {"x": None}, {"x": 3}]):
            raise Broken(rows, seen)


@rule("AR236", "derived", "CDataInterface, Semantics (separate base structures)", "pc")
def schema_apart(lib: Library) -> None:
    """The schema may be released before the array, and the array before the schema."""
    for values, exported in base_exports(lib):
        field = exported.field
        release(exported.schema)
        gc.collect()
        equal("values without the schema", values, read_values(field, exported.array))
    for _, exported in base_exports(lib):
        field = exported.field
        release(exported.array)
        gc.collect()
        equal("schema without the array", field, read_field(exported.schema))


@rule("AR237", "silent", "CDataInterface, Release callback semantics", "p")
def release_any_thread(lib: Library) -> Report:
    """Whether release works on another thread that holds no GIL."""
    exported = arrow_export(lib, ROW, ROWS)
    array = move(exported.array) if exported.base is None else exported.base[1]
    call = RELEASE(array.release)  # of ctypes, which gives the GIL away
    thread = threading.Thread(target=call, args=(ctypes.addressof(array),))
    thread.start()
    thread.join()
    return Report("works" if not array.release else "leaves the structure live")
