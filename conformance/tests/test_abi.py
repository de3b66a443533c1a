import ctypes

import pytest
from dlpack_conformance.abi import arrow, dlpack, exchange
from dlpack_conformance.abi.layout import layout

SIZES = {  # with pointers of 8 and of 4 bytes
    dlpack.DLTensor: (48, 40),
    dlpack.DLManagedTensor: (64, 48),
    dlpack.DLManagedTensorVersioned: (80, 64),
    exchange.DLPackExchangeAPI: (56, 32),
    arrow.ArrowSchema: (72, 48),
    arrow.ArrowArray: (80, 64),
    arrow.ArrowArrayStream: (40, 20),
    arrow.ArrowDeviceArray: (128, 104),
    arrow.ArrowDeviceArrayStream: (48, 24),
}


@pytest.mark.parametrize("kind", SIZES, ids=lambda kind: kind.__name__)
def test_layout_is_that_of_ctypes(kind):
    offsets, size = layout(kind)
    assert size == ctypes.sizeof(kind)
    assert offsets == {name: getattr(kind, name).offset for name, *_ in kind._fields_}


@pytest.mark.parametrize("kind", SIZES, ids=lambda kind: kind.__name__)
def test_sizes(kind):
    assert (layout(kind, 8)[1], layout(kind, 4)[1]) == SIZES[kind]


def test_deleter_is_found_in_all_versions():
    """What the header promises: everything until `flags` stays where it is."""
    offsets, _ = layout(dlpack.DLManagedTensorVersioned, 8)
    assert [*offsets.items()] == [
        ("version", 0),
        ("manager_ctx", 8),
        ("deleter", 16),
        ("flags", 24),
        ("dl_tensor", 32),
    ]
