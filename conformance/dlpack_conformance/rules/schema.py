"""AR1xx: ArrowSchema, what a type is."""

import re
import struct
from ctypes import c_int32
from typing import Any

from dlpack_conformance.abi.arrow import DICTIONARY_ORDERED, MAP_KEYS_SORTED, NULLABLE
from dlpack_conformance.kit.arrow_cases import KEY_VALUE, LISTED, arrow_cases
from dlpack_conformance.kit.arrow_consumer import ArrowExported
from dlpack_conformance.kit.arrow_field import Field, struct_of
from dlpack_conformance.kit.arrow_judge import (
    arrow_attempt,
    arrow_exports,
    arrow_refused,
    arrow_right_or_refused,
    field_again,
    reported_of_consumer,
    tree,
)
from dlpack_conformance.kit.arrow_layout import type_ids
from dlpack_conformance.kit.arrow_producer import ArrowProducer
from dlpack_conformance.kit.judge import either, equal
from dlpack_conformance.kit.memory import before_guard_page
from dlpack_conformance.library import Library
from dlpack_conformance.rule import Broken, NotApplicable, Report, rule

# What stands before the parameters.
FORMATS = "n b c C s S i I l L e f g z Z vz u U vu d w tdD tdm tts ttm ttu ttn tss tsm tsu tsn"
FORMATS += " tDs tDm tDu tDn tiM tiD tin +l +L +vl +vL +w +s +m +ud +us +r"

PARAMETERS = {"w": r":\d+", "d": r":\d+,-?\d+(,(32|64|128|256))?", "+w": r":\d+"}
PARAMETERS |= dict.fromkeys(("+ud", "+us"), r":(\d+(,\d+)*)?")
PARAMETERS |= dict.fromkeys(("tss", "tsm", "tsu", "tsn"), r"(:.*)?")  # the colon is AR103

ITEM = Field("i", "item")
PAIRS = ((b"a\0key", b""), (b"key", b"a\0value"))


@rule("AR101", "must", "CDataInterface, ArrowSchema.format", "p")
def format_text(lib: Library) -> None:
    """`format` is a NUL-terminated UTF-8 string that is in the tables."""
    for field, _, exported in arrow_exports(lib):
        for schema in tree(exported.schema):
            form = "NULL" if schema.format is None else schema.format.decode()
            if form.split(":")[0] not in FORMATS.split():
                raise Broken("a format of the tables", f"{form!r} (asked for {field.format})")


@rule("AR102", "must", "CDataInterface, Data type description", "pc")
def format_parameters(lib: Library) -> None:
    """Parameters follow the colon as `w:42`, `d:19,10`, `d:19,10,256`, `+w:3`, `+ud:0,1`."""
    either(lib, parameters_written, parameters_read)


def parameters_written(lib: Library) -> None:
    for _, _, exported in arrow_exports(lib):
        for schema in tree(exported.schema):
            form = schema.format.decode()
            expected = PARAMETERS.get(form.split(":")[0], "")
            if not re.fullmatch(expected, form[len(form.split(":")[0]) :]):
                raise Broken(f"{form.split(':')[0]}{expected}", form)


def parameters_read(lib: Library) -> None:
    kinds = ("w", "d", "+w", "+ud", "+us")
    refusals = []
    cases = [case for case in arrow_cases() if case[0].format.split(":")[0] in kinds]
    for field, values in cases:
        seen, refusal = arrow_attempt(lib, ArrowProducer(field, values))
        if refusal is None and seen != values:
            raise Broken(f"of format {field.format}: {values}", seen)
        refusals += [refusal] if refusal is not None else []
    if len(refusals) == len(cases):
        raise NotApplicable(f"takes no type with parameters: {refusals[0]}")


@rule("AR103", "must", "CDataInterface, Data type description, note 1", "pc")
def timestamp_colon(lib: Library) -> None:
    """The colon of a timestamp is there even when its time zone is empty."""
    either(lib, colon_written, colon_read)


def colon_written(lib: Library) -> None:
    cases = [(Field(f"ts{unit}:"), [1000000000, None]) for unit in "smun"]
    for _, _, exported in arrow_exports(lib, cases):
        form = exported.schema.format.decode()
        if form.startswith("ts") and ":" not in form:
            raise Broken("tsu:", form)


def colon_read(lib: Library) -> None:
    zoned, refusal = arrow_attempt(lib, ArrowProducer(Field("tsu:UTC"), [0, None]))
    if refusal is not None:
        raise NotApplicable(f"takes no timestamps: {refusal}")
    seen, refusal = arrow_attempt(lib, ArrowProducer(Field("tsu:"), [0, None]))
    if refusal is not None:
        raise Broken("timestamps without a zone, as those with one", refusal)
    equal("nulls", [value is None for value in zoned], [value is None for value in seen])


@rule("AR104", "should", "CDataInterface, ArrowSchema.format", "c")
def unknown_format_refused(lib: Library) -> None:
    """A consumer need not know all types: a format that it does not know is refused."""
    x = ArrowProducer(Field("i"), [1, 2, 3])
    x.schema.fields["format"] = b"Q!"
    arrow_refused(lib, x)
    equal("releases of each structure", {1}, set(x.releases()))


@rule("AR105", "may", "CDataInterface, ArrowSchema.name", "c")
def name_optional(lib: Library) -> Report:
    """A producer may leave `name` NULL, at the top and in children: what a consumer makes of it."""
    said = []
    for field, values in ((Field("i"), [1, None]), (Field("+l", children=(ITEM,)), LISTED)):
        x = ArrowProducer(field, values)
        for part in (x.schema, *x.schema.children):
            part.fields["name"] = None
        refusal = arrow_right_or_refused(lib, x)
        said.append(f"{field.format} {'taken' if refusal is None else f'refused ({refusal})'}")
    return Report("; ".join(said))


@rule("AR106", "must", "CDataInterface, ArrowSchema.metadata", "p")
def metadata_null(lib: Library) -> None:
    """Without metadata the pointer is NULL, and not to an empty string."""
    for field, _, exported in arrow_exports(lib):
        for schema in tree(exported.schema):
            if schema.metadata and c_int32.from_address(schema.metadata).value < 1:
                raise Broken("NULL", f"metadata of no pairs (format {field.format})")


@rule("AR107", "must", "CDataInterface, ArrowSchema.metadata", "pc")
def metadata_encoding(lib: Library) -> None:
    """Metadata are an int32 count, then an int32 length and the bytes of each key and value."""
    field = struct_of(Field("i", "x", metadata=PAIRS))
    (x,) = field_again(lib, field, [{"x": 1}]).children
    if not x.metadata:
        raise NotApplicable("keeps no metadata")
    equal("metadata", dict(PAIRS), {key: value for key, value in x.metadata if key in dict(PAIRS)})


@rule("AR108", "should", "CDataInterface, ArrowSchema.metadata; Security", "c")
def metadata_hostile(lib: Library) -> None:
    """Counts and lengths below zero are refused, or the metadata are ignored. (Too large ones
    cannot be told, since metadata have no size.)"""
    one = struct.pack("=i", 1)
    key = struct.pack("=i3s", 3, b"key")
    for content in (
        struct.pack("=i", -1),
        one + struct.pack("=i", -1),
        one + key + struct.pack("=i", -1),
        one + struct.pack("=i", -(2**31)),
    ):
        x = ArrowProducer(Field("+s", children=(Field("i", "x"),)), [{"x": 1}, {"x": 2}])
        x.schema.children[0].fields["metadata"] = before_guard_page(content)
        values, refusal = arrow_attempt(lib, x)
        if refusal is None:
            equal("values", [{"x": 1}, {"x": 2}], values)


@rule("AR109", "must", "CDataInterface, ArrowSchema.flags", "p")
def flags_zero(lib: Library) -> None:
    """`flags` has no bits but the three that are defined."""
    for field, _, exported in arrow_exports(lib):
        for schema in tree(exported.schema):
            if schema.flags & ~(DICTIONARY_ORDERED | NULLABLE | MAP_KEYS_SORTED):
                raise Broken("the three flags", f"{schema.flags:#x} (format {field.format})")


@rule("AR110", "should", "CDataInterface, ArrowSchema.flags", "c")
def flags_kept(lib: Library) -> None:
    """A consumer hands on the flags, those too that it ignores."""
    words = Field("i", "words", dictionary=Field("u"), flags=DICTIONARY_ORDERED | NULLABLE)
    pairs = Field("+m", "pairs", (KEY_VALUE,), flags=MAP_KEYS_SORTED | NULLABLE)
    row: dict[str, Any] = {"must": 1, "may": 2, "words": "a", "pairs": [("a", 1)]}
    refusals = []
    for field in (Field("i", "must", flags=0), Field("i", "may"), words, pairs):
        try:
            (seen,) = field_again(lib, struct_of(field), [{field.name: row[field.name]}]).children
        except NotApplicable:
            raise
        except Exception as refusal:
            refusals.append(refusal)
            continue
        # A type that became another one has no such flag.
        if bool(seen.dictionary) == bool(field.dictionary) and (
            seen.format == field.format or field.dictionary
        ):
            equal(f"flags of {field.name}", field.flags, seen.flags)
    if len(refusals) == 4:
        raise NotApplicable(f"takes none: {refusals[0]}")


@rule("AR111", "derived", "CDataInterface, ArrowSchema.flags", "p")
def nullable_true_to_data(lib: Library) -> None:
    """A field without NULLABLE has no nulls."""
    for _, _, exported in arrow_exports(lib):
        field = exported.field
        if null_without_flag(field, exported.to_list()):
            raise Broken("no nulls", f"{exported.to_list()} of {field}")


def null_without_flag(field: Field, values: list[Any]) -> bool:
    """Whether a valid parent has a null that its type excludes."""
    valid = [value for value in values if value is not None]
    if len(valid) < len(values) and not field.flags & NULLABLE and field.format != "n":
        return True
    if field.format == "+s":
        columns = [[row[child.name] for row in valid] for child in field.children]
        return any(map(null_without_flag, field.children, columns))
    if field.format in ("+l", "+L", "+vl", "+vL") or field.format.startswith("+w:"):
        return null_without_flag(field.children[0], [item for items in valid for item in items])
    return False


@rule("AR112", "must", "CDataInterface, ArrowSchema.n_children", "p")
def children_count(lib: Library) -> Report:
    """`n_children` fits the type: one of a list, two of run-ends, those of a struct or union, and
    of a map one struct of two."""
    return reported_of_consumer(lib, children_counted, *wrong_counts())


def children_counted(lib: Library) -> None:
    for field, _, exported in arrow_exports(lib):
        for schema in tree(exported.schema):
            form = schema.format.decode()
            if form == "+s":
                continue
            if form.startswith("+u"):
                expected = len(type_ids(form))
            else:
                expected = {"+": 1}.get(form[0], 0) + (form == "+r")
            equal(f"children of {form}", expected, schema.n_children)
            if form == "+m":
                (entries,) = exported_children(schema)
                seen = entries.format.decode(), entries.n_children
                equal("format and children of a map's child", ("+s", 2), seen)
        if field.format == exported.field.format == "+s":
            names = [child.name for child in exported.field.children]
            equal("names of children", [child.name for child in field.children], names)


def exported_children(schema: Any) -> list[Any]:
    return [type(schema).from_address(schema.children[i]) for i in range(schema.n_children)]


def wrong_counts() -> list[ArrowProducer]:
    cases = [case for case in arrow_cases() if case[0].format[0] == "+" and case[0].format != "+s"]
    producers = [ArrowProducer(*case) for case in cases]
    for x in producers:
        entries = x.field.format == "+m"
        for part in (x.schema, x.array):
            (part.children[0] if entries else part).children.pop()
    return producers


@rule("AR113", "must", "CDataInterface, ArrowSchema.children", "p")
def children_pointers(lib: Library) -> Report:
    """`children` has `n_children` pointers, and is NULL only if there are none."""
    x = ArrowProducer(Field("+l", children=(ITEM,)), LISTED)
    x.schema.fields["children"] = None
    return reported_of_consumer(lib, pointers_set, x)


def pointers_set(lib: Library) -> None:
    for field, _, exported in arrow_exports(lib):
        pending = [exported.schema]
        for schema in pending:
            if not schema.n_children:
                continue
            if not schema.children or not all(schema.children[: schema.n_children]):
                raise Broken(f"{schema.n_children} pointers to children of {field.format}", "NULL")
            pending += exported_children(schema)


@rule("AR114", "must", "CDataInterface, ArrowSchema.dictionary", "p")
def dictionary_iff(lib: Library) -> Report:
    """`dictionary` is set for dictionary-encoded types alone, whose `format` is the index's."""
    x = ArrowProducer(Field("i", dictionary=Field("u")), ["x", None, "y"])
    x.schema.fields["format"] = b"f"
    return reported_of_consumer(lib, dictionary_written, x)


def dictionary_written(lib: Library) -> None:
    for field, values, exported in arrow_exports(lib):
        for schema in tree(exported.schema):
            form = schema.format.decode()
            if schema.dictionary and form not in [*"cCsSiIlL"]:
                raise Broken("the format of an index", f"{form} with a dictionary")
        if field.dictionary is not None:
            equal("values", values, exported.to_list())
        elif field.format == exported.schema.format.decode() and exported.schema.dictionary:
            raise Broken(f"{field.format} without a dictionary", "one")


@rule("AR115", "must", "CDataInterface, Extension arrays", "pc")
def extension_storage(lib: Library) -> None:
    """Of an extension type `format` is the storage's, and the metadata have its name."""
    name, parameters = b"ARROW:extension:name", b"ARROW:extension:metadata"
    shape = ((name, b"arrow.fixed_shape_tensor"), (parameters, b'{"shape":[2]}'))
    eight = ((name, b"arrow.bool8"), (parameters, b""))
    tensors = Field("+w:2", "x", (ITEM,), metadata=shape)
    kept = 0
    for field, value in ((Field("c", "x", metadata=eight), 1), (tensors, [1, 2])):
        try:
            (seen,) = field_again(lib, struct_of(field), [{"x": value}]).children
        except NotApplicable:
            raise
        except Exception:
            continue
        # A consumer may ignore metadata, and has the storage then.
        if name in dict(seen.metadata):
            kept += 1
            equal("name", field.metadata[0][1], dict(seen.metadata)[name])
            equal("format", field.format, seen.format)
            # Which may be written in another way.
            said = bool(dict(field.metadata)[parameters])
            equal("parameters", said, said and bool(dict(seen.metadata).get(parameters)))
    if not kept:
        raise NotApplicable("keeps no extension types")


@rule("AR116", "must", "CDataInterface, ArrowSchema.release", "p")
def release_set(lib: Library) -> None:
    """`release` is set in a live schema, in its children too."""
    for field, _, exported in arrow_exports(lib):
        for schema in tree(exported.schema):
            if not schema.release:
                raise Broken("a callback", f"NULL (format {field.format})")


@rule("AR117", "should", "CDataInterface, Record batches", "pc")
def record_batch_metadata(lib: Library) -> None:
    """A record batch's metadata are those of the top-level struct."""
    metadata = ((b"a key", b"value"),)
    child = Field("i", "x", metadata=metadata)
    field = Field("+s", children=(child,), flags=0, metadata=metadata)
    try:
        seen = ArrowExported(lib.arrow_stream(field, [[{"x": 1}]])).field
    except NotApplicable:
        seen = field_again(lib, field, [{"x": 1}])
    if metadata[0] not in seen.children[0].metadata + seen.metadata:
        raise NotApplicable("keeps no metadata")
    equal("pair of metadata", True, metadata[0] in seen.metadata)
