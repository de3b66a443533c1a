"""Arrow C structures that say anything: what can be true is what pyarrow reads in it, what cannot
is an error and never a panic, and either way everything is released once and not written to."""

import ctypes
import gc
import os

import pyarrow as pa
from arrow_dlpack import Array, asdlpack, explain, ragged, to_tensor, to_tensor_dict
from arrow_trees import spoiled, valid
from hostile_trees import NO_TEXT, NO_WORDS, Tree, TreeStream
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

# More of them: EXAMPLES=100000 pytest ... test_hostile_arrow.py
EXAMPLES = int(os.environ.get("EXAMPLES", "300"))
MANY = settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))

# Anything else is a bug, a panic above all.
REFUSALS = (BufferError, TypeError, ValueError, MemoryError, LookupError)

CONVERTERS = {
    "Array": Array,
    "repr": lambda x: repr(Array(x)),
    "null_count": lambda x: Array(x).null_count,
    "out again": lambda x: Array(x).__arrow_c_array__(),
    "as texts": lambda x: Array(x).__arrow_c_array__(pa.string().__arrow_c_schema__()),
    "a row": lambda x: Array(x).row(0),
    "__dlpack__": lambda x: Array(x).__dlpack__(),
    "a copy": lambda x: Array(x).__dlpack__(copy=True, max_version=(1, 3)),
    "asdlpack": asdlpack,
    "explain": explain,
    "explain with nulls": lambda x: explain(x, nulls=0, physical=True),
    "to_tensor": to_tensor,
    "to_tensor as it is stored": lambda x: to_tensor(x, physical=True),
    "to_tensor with a mask": lambda x: to_tensor(x, nulls="mask", physical=True),
    "to_tensor with NaN": lambda x: to_tensor(x, nulls="nan", order="F"),
    "to_tensor with zeros": lambda x: to_tensor(x, nulls=0, dtype="float32"),
    "to_tensor_dict": lambda x: to_tensor_dict(x, nulls=0, physical=True),
    "ragged": ragged,
    "ragged with a mask": lambda x: ragged(x, nulls="mask", physical=True),
    "ragged, wide": lambda x: ragged(x, nulls=0, offset_type="int64"),
}


def address(struct):
    return ctypes.addressof(struct)


def settle(*sources):
    gc.collect(0)
    for source in sources:
        source.settle()


@MANY
@given(valid)
def test_what_can_be_true_is_what_pyarrow_reads(node):
    ours, theirs = Tree(node), Tree(node)
    for tree in (ours, theirs):
        tree.given = dict.fromkeys(tree.given, 1)
    found = pa.array(Array(ours))
    expected = pa.Array._import_from_c(address(theirs.array), address(theirs.schema))
    expected.validate(full=True)
    assert found.type == expected.type
    assert repr(found.to_pylist()) == repr(expected.to_pylist()), "NaN is not equal to itself"
    del found, expected
    settle(ours, theirs)


@MANY
@given(valid, st.sampled_from(list(CONVERTERS)))
def test_what_can_be_true_is_converted_or_refused_in_words(node, converter):
    judge(Tree(node), converter)


@MANY
@given(spoiled(), st.sampled_from(list(CONVERTERS)))
def test_what_cannot_be_true_is_refused_and_released_once(node, converter):
    judge(Tree(node), converter)


def judge(source, converter):
    """Converts it; returns what came of it, or None for an error of the right kind."""
    try:
        result = CONVERTERS[converter](source)
    except REFUSALS as error:
        event(f"{converter}: {type(error).__name__}")
        result = None
    else:
        event(f"{converter}: done")
    if converter == "Array" and result is not None and len(result) < 1000:
        check(pa.array(result))
    del result
    settle(source)


def check(arrow):
    """pyarrow finds nothing wrong with it but numbers, by which no code indexes."""
    try:
        arrow.validate(full=True)
    except pa.ArrowInvalid as error:
        numbers = ("number of days", "acceptable range", "precision")
        if not any(words in str(error) for words in numbers):
            raise


@MANY
@given(
    schema=valid,
    chunks=st.lists(valid | spoiled(), max_size=3),
    fails_at_type=st.sampled_from([False] * 5 + [True]),
    fails_after=st.sampled_from([None, None, None, 0, 1, 2]),
    words=st.sampled_from([NO_WORDS, NO_TEXT, b"", b"out of luck", b"\xff\xfe", b"x" * 5000]),
    code=st.sampled_from([1, 5, -1, (1 << 31) - 1]),
    same=st.booleans(),
    converter=st.sampled_from(list(CONVERTERS)),
)
def test_streams_may_change_their_mind(schema, chunks, same, converter, **failure):
    source = TreeStream(schema, [schema for _ in chunks] if same else chunks, **failure)
    judge(source, converter)
