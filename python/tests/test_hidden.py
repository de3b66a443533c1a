"""What an object keeps beside its elements is not dropped: a mask, a unit, a sign."""

import numpy as np
import pyarrow as pa
import pytest
import torch
from arrow_dlpack import (
    Array,
    Tensor,
    UnsupportedError,
    asdlpack,
    explain,
    from_dlpack,
    from_ragged,
    record_batch,
)

DOORS = {
    "from_dlpack": from_dlpack,
    "from_dlpack, a copy": lambda x: from_dlpack(x, copy=True),
    "Array.from_dlpack": Array.from_dlpack,
    "Tensor.from_dlpack": Tensor.from_dlpack,
    "on the CPU": lambda x: Tensor.from_dlpack(x, device="cpu"),
    "asdlpack": asdlpack,
    "explain": explain,
    "record_batch": lambda x: record_batch({"x": x}),
    "from_ragged": lambda x: from_ragged(x, np.array([0, 1])),
}
every_door = pytest.mark.parametrize("door", DOORS.values(), ids=DOORS.keys())


@every_door
def test_a_mask_is_not_dropped(door):
    with pytest.raises(UnsupportedError, match="MaskedArray has a mask.*getmaskarray"):
        door(np.ma.masked_array([1.0, -999.0], mask=[False, True]))


@every_door
def test_a_mask_that_hides_nothing_today_is_none_the_less_a_mask(door):
    with pytest.raises(UnsupportedError, match="has a mask"):
        door(np.ma.masked_array([1.0, 2.0]))


@pytest.mark.filterwarnings("ignore:The PyTorch API of MaskedTensors")
@every_door
def test_a_mask_of_pytorch_is_not_dropped(door):
    values, mask = torch.tensor([1.0, 2.0]), torch.tensor([True, False])
    with pytest.raises(UnsupportedError, match="MaskedTensor has a mask.*get_data"):
        door(torch.masked.masked_tensor(values, mask))


class Quantity(np.ndarray):
    """As NumPy's manual has them, and astropy, unyt and pint."""

    unit = "km"


@every_door
def test_a_unit_is_not_dropped(door):
    with pytest.raises(UnsupportedError, match='Quantity has the unit "km".*x.value'):
        door(np.array([1.0, 2.0]).view(Quantity))


class Ratio(Quantity):
    unit = "dimensionless"


class Column(Quantity):
    unit = None


class Named(np.ndarray):
    def mask(self):
        raise AssertionError("it is no mask")


@pytest.mark.parametrize("kind", [Ratio, Column, Named, np.matrix, np.memmap])
def test_other_kinds_of_arrays_are_their_elements(kind):
    x = np.array([[1.0], [2.0]]).view(kind)
    assert np.asarray(Tensor.from_dlpack(x)).tolist() == [[1], [2]]
    assert len(from_dlpack(x)) == 2


def negated():
    x = torch.tensor([1 + 2j, 3 - 4j])
    conjugate = x.conj().imag
    yield conjugate
    yield conjugate[:1]
    yield torch.stack([x, x]).conj().imag[1]
    yield torch._neg_view(torch.tensor([1.0, 2.0]))
    yield torch._neg_view(torch.tensor([1, 2]))
    yield torch.nn.Parameter(conjugate, requires_grad=False)


@every_door
def test_a_sign_that_is_yet_to_be_changed_is_not_dropped(door):
    for view in negated():
        assert view.is_neg()
        with pytest.raises(UnsupportedError, match=r"resolve_neg\(\)"):
            door(view)
        if view.dtype == torch.float32 and len(view) == 2:
            door(view.resolve_neg())


def test_resolved_signs_are_right():
    for view in negated():
        assert pa.array(from_dlpack(view.resolve_neg())).to_pylist() == view.tolist()


@every_door
def test_zeros_without_memory_are_refused(door):
    with pytest.raises(BufferError, match="NULL"):
        door(torch._efficientzerotensor(3))
