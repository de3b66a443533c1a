"""A producer of tensors on the accelerator that is not there."""

import struct
from collections.abc import Sequence
from typing import Any

from dlpack_conformance.abi.dlpack import CUDA, DLDevice
from dlpack_conformance.kit.accelerator import Accelerator
from dlpack_conformance.kit.arrow_far import PRODUCERS_STREAM
from dlpack_conformance.kit.producer import Producer

DEFAULT_STREAM = 1  # what None means


class FarTensor(Producer):
    """Int32, still under way."""

    def __init__(self, device: Accelerator, values: Sequence[int]) -> None:
        super().__init__(values, "int32")
        self.device = device
        self.tensor.data = device.upload(struct.pack(f"{len(values)}i", *values), PRODUCERS_STREAM)
        self.tensor.device = DLDevice(CUDA, 0)

    def __dlpack__(self, **keywords: Any) -> Any:
        stream = keywords.get("stream")
        if stream != -1:
            event = self.device.create_event()
            self.device.record(event, PRODUCERS_STREAM)
            self.device.wait_for(DEFAULT_STREAM if stream is None else stream, event)
            self.device.destroy_event(event)
        return super().__dlpack__(**keywords)
