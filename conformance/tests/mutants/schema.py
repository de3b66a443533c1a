"""AR1xx, the schema."""

from dataclasses import replace

from dlpack_conformance.abi.arrow import DICTIONARY_ORDERED, MAP_KEYS_SORTED, NULLABLE
from dlpack_conformance.kit import arrow_producer, reference_arrow
from dlpack_conformance.kit.arrow_field import Field

from mutants import alike, arrow_reads, crash, mutant, schemas, types

EXTENSION = b"ARROW:extension:"


# Format


@schemas(
    "AR101",
    **alike(
        "AR102 AR111 AR112 AR114 AR202 AR206 AR208 AR209 AR211 AR212 AR215", "all types are read"
    ),
)
def format_is_null(part, field):
    if field.format == "tDn":
        part.fields["format"] = None


@schemas("AR101", **alike("AR102", "none has such parameters"))
def unit_of_time_is_unknown(part, field):
    if field.format == "tsn:":
        part.fields["format"] = b"tsN:"


@schemas(
    "AR101",
    **alike(
        "AR102 AR111 AR112 AR114 AR202 AR206 AR208 AR209 AR211 AR212 AR215", "all types are read"
    ),
)
def format_is_latin_1(part, field):
    if field.format == "tsu:UTC":
        part.fields["format"] = b"tsu:\xff"


@schemas("AR102", **alike("AR111 AR209 AR211 AR212", "it is read"))
def scale_is_dropped(part, field):
    if field.format == "d:19,2":
        part.fields["format"] = b"d:19"


@schemas("AR102", **alike("AR115", "of such a storage too"))
def width_has_a_blank(part, field):
    if field.format.startswith("+w:"):
        part.fields["format"] = field.format.replace(":", ": ").encode()


@schemas("AR103")
def colon_is_left_out_without_a_time_zone(part, field):
    if field.format in ("tss:", "tsm:", "tsu:", "tsn:"):
        part.fields["format"] = field.format[:-1].encode()


@arrow_reads("AR104")
def unknown_format_is_read_as_null(consumer):
    read_nested = consumer.read_nested

    def planted(field, array, i):
        return read_nested(field, array, i) if field.format.startswith("+") else None

    consumer.read_nested = planted


@types("AR104", **alike("AR229", "such a format too"))
def unknown_format_crashes(field):
    if field.format == "Q!":
        crash()
    return field


# Name and metadata


def on_no_name(do):
    def change(consumer):
        read_field = consumer.read_field

        def planted(schema):
            if schema.name is None:
                do()
            return read_field(schema)

        consumer.read_field = planted

    return change


@arrow_reads("AR105")
def no_name_crashes(consumer):
    on_no_name(crash)(consumer)


@schemas("AR106")
def no_metadata_are_empty(part, field):
    if not field.metadata:
        part.fields["metadata"] = b""


def until_nul(text):
    return text.split(b"\0")[0]


def pairs_until_nul(pairs):
    return tuple((until_nul(key), until_nul(value)) for key, value in pairs)


@schemas("AR107")
def metadata_are_texts(part, field):
    if field.metadata:
        part.fields["metadata"] = arrow_producer.encode_metadata(pairs_until_nul(field.metadata))


@schemas("AR107", **alike("AR115 AR117", "all metadata"))
def metadata_are_big_endian(part, field):
    if field.metadata:
        texts = [text for pair in field.metadata for text in pair]
        part.fields["metadata"] = len(field.metadata).to_bytes(4, "big") + b"".join(
            len(text).to_bytes(4, "big") + text for text in texts
        )


@schemas("AR107", **alike("AR115 AR117", "all metadata"))
def metadata_end_with_nul(part, field):
    if field.metadata:
        texts = [text for pair in field.metadata for text in pair]
        part.fields["metadata"] = len(field.metadata).to_bytes(4, "little") + b"".join(
            text + b"\0" for text in texts
        )


@types("AR107")
def metadata_are_read_as_texts(field):
    return replace(field, metadata=pairs_until_nul(field.metadata))


@arrow_reads("AR108")
def metadata_are_read_beyond(consumer):
    read_metadata = consumer.read_metadata

    def planted(address):
        try:
            return read_metadata(address)
        except ValueError:
            crash()

    consumer.read_metadata = planted


# Flags


@schemas("AR109", **alike("AR110", "handed on so"))
def flags_are_garbage(part, field):
    part.fields["flags"] |= 1 << 17


@types("AR110")
def flags_are_lost(field):
    return replace(field, flags=NULLABLE)


@types("AR110")
def nullable_is_lost(field):
    return replace(field, flags=field.flags | NULLABLE)


@types("AR110")
def order_of_the_dictionary_is_lost(field):
    return replace(field, flags=field.flags & ~DICTIONARY_ORDERED)


@types("AR110")
def order_of_the_keys_is_lost(field):
    return replace(field, flags=field.flags & ~MAP_KEYS_SORTED)


@schemas("AR111", **alike("AR110", "handed on so"))
def nothing_is_nullable(part, field):
    part.fields["flags"] &= ~NULLABLE


# Children and dictionary


def no_child():
    return arrow_producer.schema_part(Field("n"))


@schemas(
    "AR112", **alike("AR202 AR206 AR208 AR209 AR211 AR212 AR214 AR215 AR216", "unlike the array")
)
def list_has_two_children(part, field):
    if field.format == "+L":
        part.children.append(no_child())


@schemas("AR112", **alike("AR111 AR214", "unlike the array"))
def list_has_no_children(part, field):
    if field.format == "+L":
        part.fields["n_children"] = 0


@schemas(
    "AR112",
    **alike("AR111 AR202 AR206 AR208 AR209 AR211 AR212 AR214 AR215 AR216", "unlike the array"),
)
def entries_of_a_map_have_three_children(part, field):
    if field.format == "+m":
        part.children[0].children.append(no_child())


# Of schemas, and of arrays that have as many children.
READ_BY = "AR101 AR102 AR106 AR109 AR111 AR112 AR114 AR116"
READ_BY += " AR202 AR206 AR208 AR209 AR211 AR212 AR214 AR215 AR216"


@schemas("AR113", **alike(READ_BY, "all children are read"))
def child_is_null(part, field):
    if field.format == "+L":
        part.fields["children"] = (arrow_producer.ctypes.c_void_p * 1)(None)


@schemas("AR113", **alike(READ_BY, "all children are read"))
def children_are_null(part, field):
    if field.format == "+L":
        part.fields["children"] = None


@schemas("AR114", **alike("AR111 AR206 AR223 AR236", "its values are read"))
def format_is_that_of_the_words(part, field):
    if field.dictionary is not None:
        part.fields["format"] = field.dictionary.format.encode()


@schemas("AR114")
def index_is_a_date(part, field):
    if field.dictionary is not None and field.format == "i":
        part.fields["format"] = b"tdD"


@schemas("AR114", **alike("AR216 AR223 AR236", "unlike the array"))
def dictionary_is_not_said(part, field):
    part.dictionary = None


@schemas(
    "AR114", **alike("AR111 AR202 AR206 AR208 AR209 AR211 AR212 AR215 AR216", "unlike the array")
)
def dictionary_is_said_of_what_has_none(part, field):
    if field.format == "tDn":
        part.dictionary = arrow_producer.schema_part(Field("u"))


def is_extension(field):
    return any(key.startswith(EXTENSION) for key, _ in field.metadata)


@schemas("AR115")
def format_is_the_name_of_the_extension(part, field):
    if is_extension(field):
        part.fields["format"] = dict(field.metadata)[EXTENSION + b"name"]


@types("AR115")
def parameters_of_the_extension_are_lost(field):
    kept = tuple(pair for pair in field.metadata if pair[0] != EXTENSION + b"metadata")
    return replace(field, metadata=kept)


# The base structure


def schemas_are_made(change):
    """The function changes each structure of a schema after it is made."""
    make = reference_arrow.make_schema

    def planted(field, out):
        make(field, out)
        change(out)

    reference_arrow.make_schema = planted


@mutant("AR116", **alike("AR221", "its children stay"))
def schema_has_no_release():
    def without(schema):
        schema.release = None

    schemas_are_made(without)


@schemas("AR117")
def metadata_of_the_batch_are_dropped(part, field):
    if field.format == "+s":
        part.fields["metadata"] = None
