"""What a library can do since one of its versions; a test says what the version here does."""

import subprocess
import sys
import warnings
from importlib.metadata import version

import hostile
import numpy as np
import pyarrow as pa
import pytest
import torch
from arrow_dlpack import Tensor, from_dlpack
from frameworks import arrow_address


def has(distribution: str, *oldest: int) -> bool:
    """Whether the version that is here is that one or a later one."""
    return tuple(map(int, version(distribution).split(".")[: len(oldest)])) >= oldest


# In a process that ends with it: what is registered stays, and other tests want it not to be.
REGISTERED = """
import ml_dtypes, numpy as np
from arrow_dlpack import Tensor

CODES = ["float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz",
    "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"]
for name, code in [("bfloat16", (4, 16)), *((name, (at, 8)) for at, name in enumerate(CODES, 7))]:
    own = np.array([0.5, 2, 4], getattr(ml_dtypes, name))
    try:
        Tensor.from_dlpack(own)
    except BufferError as error:
        assert "DLPack only supports" in str(error), error
    else:
        raise AssertionError(f"{name} is exported before it is registered")
    np.dtypes.register_dlpack_dtype(code, own.dtype)
    tensor = Tensor.from_dlpack(own)
    assert tensor.dtype == name, tensor
    back = np.from_dlpack(tensor)
    assert (back.dtype, back.tolist()) == (own.dtype, [0.5, 2, 4])
    assert back.ctypes.data == own.ctypes.data
"""


def test_numpy_exchanges_the_dtypes_that_are_registered():
    """Since 2.5; ml_dtypes 0.6 does not register its own."""
    assert hasattr(np.dtypes, "register_dlpack_dtype") == has("numpy", 2, 5)
    if has("numpy", 2, 5):
        subprocess.run([sys.executable, "-c", REGISTERED], check=True)


def test_pytorch_hands_out_tensors_as_read_only(live):
    """Since 2.15: by its wrapper, in a capsule or by the exchange API, and by a keyword."""
    tensor = torch.arange(4.0)
    wrapper = torch.utils.dlpack.ReadOnlyTensorWrapper(tensor)
    for given in (
        wrapper,
        wrapper.__dlpack__(),
        tensor.__dlpack__(max_version=(1, 3), read_only=True),
    ):
        taken = Tensor.from_dlpack(given)
        assert (taken.readonly, np.from_dlpack(taken).ctypes.data) == (True, tensor.data_ptr())
    assert not Tensor.from_dlpack(tensor).readonly
    array = pa.array(from_dlpack(wrapper))
    assert (array.to_pylist(), arrow_address(array)) == ([0, 1, 2, 3], tensor.data_ptr())


def test_pyarrow_has_nothing_to_warn_of():
    """Since 26 it warns who asks it for a capsule without a version; so nothing here may ask."""
    array = pa.array([1.5, 2.5])
    with pytest.warns(DeprecationWarning, match="Exporting an unversioned"):
        array.__dlpack__()
    with warnings.catch_warnings(action="error"):
        for given in (array, pa.Tensor.from_numpy(np.arange(2.0))):
            assert Tensor.from_dlpack(given).tolist() == [*given.to_numpy()]
            assert len(from_dlpack(given)) == 2


@pytest.mark.parametrize("code", [19, 20, 21])
def test_a_device_that_dlpack_1_3_does_not_know_is_refused_by_its_number(code, live):
    """The main branch of DLPack has three device types beyond 18, which is the last of 1.3."""
    producer = hostile.Producer(device_type=code)
    with pytest.raises(BufferError, match=rf"device\({code}\):0"):
        from_dlpack(producer)
    assert producer.deleted == producer.given > 0
    assert live() == (0, 0)
