import ctypes
import gc

import pytest
from dlpack_conformance.abi.capsule import PyCapsule_New, PyCapsule_SetDestructor
from dlpack_conformance.abi.dlpack import DTYPES, VERSIONED
from dlpack_conformance.kit.consumer import Imported, exported
from dlpack_conformance.kit.judge import attempt
from dlpack_conformance.kit.producer import POISON, Producer
from dlpack_conformance.kit.reference import from_dlpack
from dlpack_conformance.kit.values import pack, read_one

LOST = "ValueError: invalid literal for int() with base 10: 'lost'"


def test_deleter_remembers_the_exception_that_it_interrupts():
    x = Producer()
    capsule = PyCapsule_New(1, b"any", ctypes.cast(x.deleter, ctypes.c_void_p))
    dropped, address = [capsule], id(capsule)
    del capsule
    with pytest.raises(SystemError):
        # C code drops the keys after one of them has failed, with the exception set.
        sorted([1, 2], key=lambda i: dropped.pop() if i == 1 else int("lost"))
    assert (x.deleted, x.interrupted) == ([address], [LOST])


class Careless:
    """A library that calls the deleter with its exception set."""

    def take(self, x):
        capsule = PyCapsule_New(1, b"any", ctypes.cast(x.deleter, ctypes.c_void_p))
        dropped = [capsule]
        del capsule
        sorted([1, 2], key=lambda i: dropped.pop() if i == 1 else int("lost"))


def test_exception_that_the_deleter_interrupts_is_a_refusal():
    assert attempt(Careless(), Producer()) == (None, LOST)


def test_producer_counts_and_poisons():
    x = Producer([1.0, 2.0])
    taken = Imported(x.__dlpack__(max_version=(1, 0)))
    assert (x.untaken(), x.deletions()) == (1, 1)
    taken.take()
    assert (x.untaken(), x.deletions()) == (0, 0)
    taken.delete()
    taken.delete()
    assert x.deleted == [taken.managed_address]
    assert ctypes.string_at(x.address, 8) == bytes([POISON]) * 8


def test_capsule_without_its_destructor_deletes_nothing():
    """As MLX leaves it, which does not rename it."""
    x = Producer()
    PyCapsule_SetDestructor(x.__dlpack__(), None)
    assert (x.untaken(), x.deletions()) == (0, 0)


def test_producer_gives_what_is_asked_for():
    assert Imported(Producer().__dlpack__()).version is None
    assert Imported(Producer().__dlpack__(max_version=(1, 0))).version == (1, 3)
    assert Imported(Producer(legacy=True).__dlpack__(max_version=(1, 0))).version is None
    assert Imported(Producer(legacy=False).__dlpack__()).name == VERSIONED


@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_survive_bytes(dtype):
    values = [True, False] if dtype == "bool" else [1, 2, 3]
    content = ctypes.create_string_buffer(pack(values, dtype))
    read = [read_one(ctypes.addressof(content), i, dtype) for i in range(len(values))]
    assert read == values


def test_reference_deletes_once_when_the_last_array_is_gone():
    x = Producer([1.0, 2.0], shape=(1, 2))
    array = from_dlpack(x)
    again = from_dlpack(array)
    del array
    gc.collect()
    assert x.deleted == []
    assert again.to_list() == [[1.0, 2.0]]
    del again
    gc.collect()
    assert len(x.deleted) == 1


def test_strides_and_offset_count_elements():
    x = Producer([0, 1, 2, 3, 4, 5], "int16", shape=(2, 2), strides=(-3, 1), offset=4)
    assert x.to_list() == [[4, 5], [1, 2]]
    assert from_dlpack(x).to_list() == [[4, 5], [1, 2]]
    assert exported(from_dlpack(x)).strides == (-3, 1)
