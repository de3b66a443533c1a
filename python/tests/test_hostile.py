"""Descriptors that say anything, judged by their words alone: what can be true is read as it
stands, what cannot is refused, and either way the deleter runs once and nothing is written to."""

import ctypes
import gc
import os

import numpy as np
import pyarrow as pa
import pytest
from arrow_dlpack import (
    Tensor,
    asdlpack,
    explain,
    from_dlpack,
    from_ragged,
    record_batch,
    to_tensor,
)
from descriptors import ANYTHING, MEMORY, NUMPY, SEEDS, VALID, possible, read, spoiled
from dlpack_conformance.abi.dlpack import BOOL
from hostile import header
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

# More of them: EXAMPLES=100000 pytest ... test_hostile.py
EXAMPLES = int(os.environ.get("EXAMPLES", "300"))
MANY = settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))

# What has been asked for and cannot be had. Anything else is a bug, a panic above all.
REFUSALS = (BufferError, TypeError, ValueError, MemoryError)
OFFSETS, VALUES = np.array([0, 1]), np.zeros(1 << 13)

TAKERS = {
    "from_dlpack": from_dlpack,
    "with a copy": lambda x: from_dlpack(x, copy=True),
    "without a copy": lambda x: from_dlpack(x, copy=False),
    "on the CPU": lambda x: from_dlpack(x, device="cpu"),
    "as lists": lambda x: from_dlpack(x, type="fixed_size_list"),
    "as permuted": lambda x: from_dlpack(x, type="permuted"),
    "as opaque": lambda x: from_dlpack(x, type="opaque"),
    "explain": explain,
    "asdlpack": asdlpack,
    "record_batch": lambda x: record_batch({"x": x, "y": x}),
    "record_batch with names": lambda x: record_batch(x, names=["x", "y"]),
    "from_ragged": lambda x: from_ragged(x, OFFSETS),
    "texts of from_ragged": lambda x: from_ragged(x, OFFSETS, type=pa.string()),
    "offsets of from_ragged": lambda x: from_ragged(VALUES, x),
    "to_tensor": lambda x: to_tensor(from_dlpack(x)),
    "Tensor": Tensor.from_dlpack,
    "Tensor with a copy": lambda x: Tensor.from_dlpack(x, copy=True),
    "a capsule": lambda x: Tensor.from_dlpack(held(x)),
    "an address": lambda x: Tensor.from_pointer(given_up(x), versioned=not x.legacy),
}


def given_up(producer):
    """The address of its tensor, which its deleter must be called for, as for a capsule's."""
    producer.given += 1
    return ctypes.addressof(producer.managed)


def held(producer):
    """A capsule that does not die while an exception is in flight: its destructor is Python code,
    and puts none aside."""
    producer.held = producer.__dlpack__()
    return producer.held


def outcome(taker, producer):
    """What comes of it, or the refusal's words."""
    try:
        return TAKERS[taker](producer), None
    except REFUSALS as error:
        return None, (type(error), str(error))


def settle(producer):
    """Everybody has let go."""
    producer.held = None
    if producer.given != producer.deleted:
        gc.collect()
    assert producer.deleted == producer.given, "deleted, given"
    assert bytes(producer.memory) == MEMORY, "a write to shared memory"
    producer.canaries.check()


def can_be_taken(descriptor):
    """Whether its memory is there, and a copy of it is small, or too large for any machine."""
    nbytes = descriptor.size * descriptor.item // 8
    return descriptor.is_there() and not 1 << 16 < nbytes < 1 << 50


def judge(descriptor, taker):
    """The laws for any descriptor. Returns whether it was there to be taken."""
    producer = descriptor.producer()
    wrong = descriptor.wrong(producer.address)
    if wrong is None and not can_be_taken(descriptor):
        event("not there")
        producer.canaries.check()
        return
    event(f"{taker}: {wrong or 'possible'}")
    taken, refusal = outcome(taker, producer)
    if wrong:
        assert taken is None, f"{wrong} was not seen"
        assert issubclass(refusal[0], BufferError), refusal
    elif taker == "Tensor":
        assert refusal is None, refusal
    del taken
    settle(producer)


@pytest.mark.parametrize("of", ["managed", "memory"])
def test_writes_outside_of_shared_memory_are_detected(of):
    """Else the laws below would say nothing of it."""
    for where in (-1, None):
        producer = possible(0).producer()
        exported = getattr(producer, of)
        at = ctypes.addressof(exported) + (ctypes.sizeof(exported) if where is None else where)
        settle(producer)
        ctypes.memset(at, 0, 1)
        with pytest.raises(AssertionError, match="a write"):
            settle(producer)
    producer.memory[7] ^= 1
    with pytest.raises(AssertionError, match="shared memory"):
        settle(producer)


@MANY
@given(VALID, st.sampled_from(list(TAKERS)))
def test_what_can_be_true_is_taken_and_deleted_once(descriptor, taker):
    judge(descriptor, taker)


@MANY
@given(spoiled(), st.sampled_from(list(TAKERS)))
def test_what_cannot_be_true_is_refused_and_deleted_once(descriptor, taker):
    judge(descriptor, taker)


@MANY
@given(ANYTHING, st.sampled_from(list(TAKERS)))
def test_whatever_is_said_is_judged_by_what_it_says(descriptor, taker):
    judge(descriptor, taker)


def structure(capsule):
    """Of a versioned capsule."""
    return header(capsule)


@MANY
@given(VALID)
def test_a_tensor_says_and_holds_what_its_producer_did(descriptor):
    assert descriptor.is_there()
    producer = descriptor.producer()
    tensor = Tensor.from_dlpack(producer)
    assert (tensor.shape, tensor.strides) == (descriptor.extents, descriptor.steps)
    assert (tensor.ndim, tensor.size) == (descriptor.ndim, descriptor.size)
    assert tensor.__dlpack_device__() == (descriptor.device_type, descriptor.device_id)
    assert tensor.readonly == (descriptor.legacy or bool(descriptor.flags & 1))
    if descriptor.item % 8 == 0:
        expected = descriptor.elements()
        assert tensor.nbytes == len(expected)
        # Of a bare capsule, so that the producer is not called.
        shared = Tensor.from_dlpack(producer.capsule()).__dlpack__(max_version=(1, 3))
        assert read(structure(shared)) == expected
        try:
            copy = Tensor.from_dlpack(producer, copy=True).__dlpack__(max_version=(1, 3))
        except BufferError as error:
            assert descriptor.packed, error  # noqa: PT017
        else:
            assert read(structure(copy)) == expected
            del copy
        del shared
    assert producer.deleted < producer.given, "deleted too early"
    del tensor
    settle(producer)


@MANY
@given(SEEDS)
def test_numbers_are_those_that_numpy_reads(seed):
    descriptor = possible(seed, dtypes=list(NUMPY), lanes=[1])
    producer = descriptor.producer()
    expected = np.frombuffer(descriptor.elements(), NUMPY[descriptor.code, descriptor.bits])
    expected = expected.reshape(descriptor.extents)
    arrow = pa.array(from_dlpack(producer))
    assert producer.given - producer.deleted in (0, 1)
    found = numbers(arrow, expected)
    if descriptor.code == BOOL:
        expected = expected.view("u1") != 0
    assert found.shape == expected.shape
    assert found.astype(expected.dtype).tobytes() == expected.tobytes()
    del arrow, found
    settle(producer)


def numbers(arrow, like):
    """The values of an Arrow array, by what the specification says of its shape and permutation."""
    if not isinstance(arrow, pa.ExtensionArray):
        return arrow.to_numpy(zero_copy_only=False).reshape(like.shape)
    values = arrow.storage.flatten().to_numpy(zero_copy_only=False)
    stored = values.reshape(len(arrow), *arrow.type.shape)
    order = arrow.type.permutation or range(len(arrow.type.shape))
    return stored.transpose(0, *(axis + 1 for axis in order))
