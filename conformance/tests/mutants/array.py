"""AR2xx, the array: its members, its release, and what consumers do with it."""

import ctypes
from ctypes import c_void_p

from dlpack_conformance.abi.arrow import ArrowArray
from dlpack_conformance.kit import arrow_producer, reference_arrow
from dlpack_conformance.kit.arrow_consumer import (
    RELEASE_WITH_GIL,
    child,
    move,
    release,
)
from dlpack_conformance.kit.arrow_field import Field
from dlpack_conformance.kit.arrow_layout import width_of
from dlpack_conformance.kit.memory import before_guard_page

from mutants import (
    alike,
    arrays,
    arrow_checks,
    arrow_makes,
    arrow_reads,
    columns,
    crash,
    drops,
    mutant,
)

# Lengths and offsets


@arrays("AR201")
def length_of_the_dictionary_is_negative(part, field):
    if field.dictionary is not None:
        part.dictionary.fields["length"] = -1


@arrays("AR204", AR202="of more items")
def length_counts_the_offset(part, field):
    part.fields["length"] += part.fields["offset"]


@arrays("AR202")
def nulls_are_not_counted(part, field):
    part.fields["null_count"] = 0


@arrays("AR202")
def nulls_before_the_offset_are_counted(part, field):
    if part.fields["offset"] and part.buffers and field.format[:2] not in ("+u", "+r"):
        items = range(part.fields["offset"] + part.fields["length"])
        part.fields["null_count"] = sum(not part.buffers[0][i // 8] >> i % 8 & 1 for i in items)


def on_validity(consumer, change):
    is_null = consumer.is_null

    def planted(field, array, index):
        return change(is_null(field, array, index), field, array)

    consumer.is_null = planted


@arrow_reads("AR202")
def nulls_not_counted_are_values(consumer):
    on_validity(consumer, lambda null, field, array: null and array.null_count >= 0)


@columns("AR202")
def nulls_not_counted_are_refused(taken):
    if taken.array.null_count < 0:
        raise ValueError("the nulls are not counted")


@arrays("AR204", AR202="of other items")
def offset_counts_bytes(part, field):
    part.fields["offset"] *= width_of(field.format) or 1


@columns("AR205")
def offset_is_read_as_bytes(taken):
    taken.array.offset //= width_of(taken.field.format) or 1


@columns("AR205", **alike("AR235", "of structs too"))
def offset_is_ignored(taken):
    taken.array.offset = 0


@arrow_reads("AR205")
def offset_of_children_is_ignored(consumer):
    def item_of(field, array, item):
        one = ArrowArray.from_buffer_copy(array)
        one.offset, one.length = item, 1
        return consumer.read_values(field, one)[0]

    consumer.item_of = item_of


@arrow_reads("AR205")
def offset_of_bools_counts_from_a_byte(consumer):
    read_item = consumer.read_item

    def planted(field, array, i):
        if field.format == "b":
            i -= array.offset % 8
        return read_item(field, array, i)

    consumer.read_item = planted


# Buffers


@arrays("AR206")
def ints_have_one_buffer(part, field):
    if field.format == "i" and field.dictionary is None:
        part.fields["n_buffers"] = 1


@arrays("AR206")
def unions_have_a_bitmap(part, field):
    if field.format.startswith("+us:"):
        part.buffers.append(None)


@arrays("AR207")
def lengths_of_a_view_are_missing(part, field):
    if field.format == "vz":
        part.buffers.pop()


@arrays("AR207")
def lengths_of_a_view_are_zero(part, field):
    if field.format in ("vz", "vu"):
        part.buffers[-1] = bytes(8)


@arrays("AR208")
def buffers_of_no_items_are_null(part, field):
    if not part.fields["length"]:
        part.fields["n_buffers"], part.fields["buffers"] = len(part.buffers), None


@arrays("AR208", **alike("AR111 AR202 AR209 AR211 AR212", "its buffers are read"))
def buffers_are_null(part, field):
    if field.format == "tDn":
        part.fields["n_buffers"], part.fields["buffers"] = len(part.buffers), None


@arrays("AR209")
def data_of_nulls_alone_are_null(part, field):
    if part.fields["null_count"] == part.fields["length"] and width_of(field.format):
        part.buffers[1] = None


@arrays("AR209", **alike("AR111", "they are read"))
def data_are_null(part, field):
    if field.format == "tDn":
        part.buffers[1] = None


@arrays("AR209", **alike("AR202", "the nulls are none"))
def bitmap_is_null(part, field):
    if field.format == "tDn":
        part.buffers[0] = None


def refuse_null_buffers(checks):
    check_array = checks.check_array

    def planted(field, array):
        if any(not array.buffers[i] for i in range(1, array.n_buffers)):
            raise ValueError("a buffer is NULL")
        check_array(field, array)

    checks.check_array = planted


@arrow_checks("AR210")
def null_buffers_are_refused(checks):
    refuse_null_buffers(checks)


@columns("AR210")
def null_buffers_crash(taken):
    array = taken.array
    if any(not array.buffers[i] for i in range(1, array.n_buffers)):
        crash()


def short(part, index, missing):
    part.buffers[index] = before_guard_page(part.buffers[index][:-missing])


@arrays("AR211", **alike("AR111", "it is read"))
def last_element_is_missing(part, field):
    if field.format == "tDn" and part.fields["length"]:
        short(part, 1, 8)


@arrays("AR211")
def last_element_of_a_child_is_missing(part, field):
    if field.format.startswith("+us:") and part.children[0].buffers[1]:
        short(part.children[0], 1, 4)


@arrays("AR211", **alike("AR111 AR209", "it is read"))
def last_offset_is_missing(part, field):
    if field.format == "Z" and part.fields["length"]:
        short(part, 1, 8)


def make_at(past):
    """Places memory this many bytes beyond what is aligned."""

    def change(producer):
        def own(made, content):
            memory = ctypes.create_string_buffer(len(content) + 128)
            made.memory.append(memory)
            address = -(-ctypes.addressof(memory) // 64) * 64 + past
            ctypes.memmove(address, content, len(content))
            made.owned.append((address, content))
            return address

        producer.Made.own = own

    return change


@arrow_makes("AR212")
def buffers_are_not_aligned(producer):
    make_at(1)(producer)


@arrow_makes("AR212")
def buffers_are_aligned_to_half(producer):
    make_at(4)(producer)


@columns("AR213")
def addresses_are_rounded(taken):
    buffers = [taken.array.buffers[i] for i in range(taken.array.n_buffers)]
    taken.rounded = (c_void_p * len(buffers))(*[at and at & ~3 for at in buffers])
    taken.array.buffers = taken.rounded


@columns("AR213")
def unaligned_memory_traps(taken):
    buffers = [taken.array.buffers[i] for i in range(taken.array.n_buffers)]
    if any((at or 0) & 3 for at in buffers):
        crash()


# Children and dictionary


@arrays("AR214")
def list_has_two_children(part, field):
    if field.format == "+L":
        part.children.append(arrow_producer.array_part(Field("n"), []))


@arrays("AR214")
def struct_has_a_child_more_than_its_schema(part, field):
    if field.format == "+s":
        part.children.append(part.children[0])


@arrays("AR215")
def child_has_one_item_for_each_list(part, field):
    if field.format.startswith("+w:"):
        part.children[0].fields["length"] = part.fields["length"]
        part.children[0].fields["null_count"] = -1


@arrays("AR215", **alike("AR224", "the child is read"))
def child_of_a_struct_lacks_an_item(part, field):
    if field.format == "+s" and part.fields["length"]:
        for its in part.children:
            its.fields["length"] -= 1
            its.fields["null_count"] = -1 if its.buffers[0] else 0


@arrays("AR216")
def dictionary_of_what_has_none(part, field):
    if field.format == "tDn":
        part.dictionary = arrow_producer.array_part(Field("u"), ["a"])


@arrays(
    "AR216",
    **alike("AR111 AR114 AR202 AR206 AR208 AR209 AR211 AR212 AR215 AR223 AR236", "it is read"),
)
def dictionary_is_missing(part, field):
    part.dictionary = None


def check_no_codes(checks, do):
    check_offsets = checks.check_offsets

    def planted(field, array):
        try:
            check_offsets(field, array)
        except ValueError as error:
            if "code" not in str(error):
                raise
            do()

    checks.check_offsets = planted


@arrow_checks("AR217")
def code_without_a_word_crashes(checks):
    check_no_codes(checks, crash)


@mutant("AR217")
def code_without_a_word_is_null():
    fill, to_list = reference_arrow.Taken.__init__, reference_arrow.Taken.to_list

    def take(taken, field, array):
        taken.wrong = False
        try:
            fill(taken, field, array)
        except ValueError as error:
            if "code" not in str(error):
                raise
            taken.wrong = True

    def values(taken):
        return [None] * taken.array.length if taken.wrong else to_list(taken)

    reference_arrow.Taken.__init__, reference_arrow.Taken.to_list = take, values


def check_no_offsets(checks, do):
    check_offsets = checks.check_offsets

    def planted(field, array):
        try:
            check_offsets(field, array)
        except ValueError as error:
            if "offsets" not in str(error):
                raise
            do()

    checks.check_offsets = planted


@arrow_checks("AR218")
def falling_offsets_crash(checks):
    check_no_offsets(checks, crash)


@arrow_checks("AR218")
def falling_offsets_are_read(checks):
    check_no_offsets(checks, lambda: None)


# Release, producers


def on_base(change):
    """The function changes the structure after it is made."""
    make = reference_arrow.make_array

    def planted(field, values, offset, out):
        make(field, values, offset, out)
        change(out)

    reference_arrow.make_array = planted


@mutant("AR219", **alike("AR114 AR204 AR221 AR222", "it counts as released"))
def array_has_no_release():
    def without(array):
        array.release = None

    on_base(without)


@arrays("AR219")
def children_have_no_release(part, field):
    for its in part.children:
        its.fields["release"] = None


@arrow_makes("AR220", **alike("AR223 AR224", "of those that moved too"))
def release_is_left(producer):
    def planted(made, address):
        callback = ArrowArray.from_address(address).release
        released(made, address)
        if made.target.__class__ is ArrowArray:
            ArrowArray.from_address(address).release = callback

    released = producer.Made.release
    producer.Made.release = planted


@arrow_makes("AR221")
def children_are_not_released(producer):
    def end(made):
        for address, content in made.owned:
            producer.poison(address, len(content))
        made.owned, made.memory = [], []

    producer.Made.end = end


@arrow_makes("AR221")
def dictionary_is_not_released(producer):
    producer.Made.parts = lambda made: made.children


@mutant("AR222")
def buffers_are_not_freed():
    made = reference_arrow.Made
    reference_arrow.Made = lambda part, out, base, frees: made(part, out, base)


@arrow_makes("AR223", **alike("AR224", "of children too"))
def release_marks_where_it_was_made(producer):
    def planted(made, address):
        released(made, ctypes.addressof(made.target))

    released = producer.Made.release
    producer.Made.release = planted


@arrow_makes("AR224")
def moved_child_is_freed_with_its_parent(producer):
    def planted(made):
        for part in made.children:
            if not part.target.release:
                part.end()
        end(made)

    end = producer.Made.end
    producer.Made.end = planted


@arrow_makes("AR225", AR223="it moved", AR224="it moved")
def what_is_released_is_looked_up_by_address(producer):
    at = {}

    class Noted(producer.Made):
        def set_fields(self, part):
            super().set_fields(part)
            at[ctypes.addressof(self.target)] = self

        def release(self, address):
            if address in at:
                producer_release(at[address], address)

    producer_release = producer.Made.release
    producer.Made = Noted


# Consumers


@drops("AR226")
def addresses_of_buffers_are_erased(taken):
    for i in range(taken.array.n_buffers if taken.array.buffers else 0):
        taken.array.buffers[i] = None


@drops("AR226")
def children_are_changed(taken):
    for i in range(taken.array.n_children):
        child(taken.array, i).length = 0


@columns(
    "AR227",
    **alike(
        "AR205 AR210 AR226 AR229 AR230 AR231 AR232 AR233 AR234 AR235", "all structures have them"
    ),
)
def private_data_are_read(taken):
    if taken.array.private_data and taken.field.format == "+s":
        ctypes.string_at(taken.array.private_data, 1)


@mutant("AR228")
def released_array_is_read():
    live = reference_arrow.live

    def planted(kind, capsule, name):
        try:
            return live(kind, capsule, name)
        except ValueError:
            return kind.from_address(reference_arrow.PyCapsule_GetPointer(capsule, name))

    reference_arrow.live = planted


@mutant("AR229", **alike("AR104", "refused ones too"))
def array_is_not_released():
    reference_arrow.Taken.__del__ = lambda taken: None


@mutant("AR229", **alike("AR104", "of refused types too"))
def schema_is_not_released():
    let_go = reference_arrow.release

    def planted(structure):
        if isinstance(structure, ArrowArray):
            let_go(structure)

    reference_arrow.release = planted


@mutant("AR229")
def refused_array_is_not_released():
    fill = reference_arrow.Taken.__init__

    def planted(taken, field, array):
        try:
            fill(taken, field, array)
        except ValueError:
            array.release = None
            raise

    reference_arrow.Taken.__init__ = planted


@drops("AR229", **alike("AR104 AR226 AR234", "its memory is poisoned, and counted"))
def array_is_released_twice(taken):
    again = ArrowArray.from_buffer_copy(taken.array)
    release(again)


@drops("AR230")
def children_are_released_first(taken):
    for i in range(taken.array.n_children):
        release(child(taken.array, i))


@drops("AR230")
def children_are_released_where_there_are_some(taken):
    for i in range(taken.array.n_children):
        its = child(taken.array, i)
        RELEASE_WITH_GIL(its.release)(ctypes.addressof(its))


@mutant("AR231", **alike("AR202 AR205 AR210", "texts are read"))
def texts_are_read_after_the_release():
    to_list = reference_arrow.Taken.to_list

    def planted(taken):
        if taken.field.format == "u":
            release(taken.array)
        return to_list(taken)

    reference_arrow.Taken.to_list = planted


@mutant("AR232", **alike("AR104 AR229", "released again"))
def source_is_left():
    def planted(structure):
        return type(structure).from_buffer_copy(structure)

    reference_arrow.move = planted


@mutant("AR233")
def parent_is_kept_for_its_children():
    fill, drop = reference_arrow.Taken.__init__, reference_arrow.Taken.__del__

    def take(taken, field, array):
        taken.parts = []
        fill(taken, field, array)
        taken.parts = [move(child(array, i)) for i in range(array.n_children)]

    def planted(taken):
        for part in taken.parts:
            release(part)
        drop(taken)

    reference_arrow.Taken.__init__, reference_arrow.Taken.__del__ = take, planted


@drops("AR234")
def buffers_are_written(taken):
    if taken.field.format in "ilu" and taken.array.length and taken.array.buffers[1]:
        ctypes.memset(taken.array.buffers[1], 0xFF, 4)


def on_structs(consumer, change):
    read_values = consumer.read_values

    def planted(field, array):
        if field.format == "+s":
            array = ArrowArray.from_buffer_copy(array)
            change(array)
        return read_values(field, array)

    consumer.read_values = planted


NONE_NULL = (c_void_p * 1)(None)


@arrow_reads("AR235")
def rows_are_never_null(consumer):
    def change(array):
        array.buffers = NONE_NULL

    on_structs(consumer, change)


@columns("AR235", AR205="of structs too")
def offset_of_rows_is_ignored(taken):
    if taken.field.format == "+s":
        taken.array.offset = 0


@mutant("AR236")
def schema_owns_the_array():
    shared_owner(0, 1)


@mutant("AR236", **alike("AR221", "its children are gone"))
def array_owns_the_schema():
    shared_owner(1, 0)


def shared_owner(first, second):
    """The release of one of (schema, array) of an export ends the other."""
    export, made = reference_arrow.Data.__arrow_c_array__, []

    class Noted(reference_arrow.Made):
        def __init__(self, *arguments, **keywords):
            super().__init__(*arguments, **keywords)
            made.append(self)

    reference_arrow.Made = Noted

    def planted(self, requested_schema=None):
        capsules = export(self, requested_schema)
        array, schema = made[-2:]
        both = (schema, array)
        both[first].on_release = both[second].end
        return capsules

    reference_arrow.Data.__arrow_c_array__ = planted
