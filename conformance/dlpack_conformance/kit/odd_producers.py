"""Producers that are older, further away or less obliging than Producer."""

from typing import Any

from dlpack_conformance.abi.dlpack import CPU, IS_COPIED, ONE_API, DLDevice
from dlpack_conformance.kit.memory import aligned, unreadable
from dlpack_conformance.kit.producer import Producer


class Duck:
    """The two methods and nothing else."""

    def __init__(self, x: Any) -> None:
        self.x = x

    def __dlpack__(self, **keywords: Any) -> Any:
        return self.x.__dlpack__(**keywords)

    def __dlpack_device__(self) -> Any:
        return self.x.__dlpack_device__()


class Old(Producer):
    """One of before 2023.12, which knows `stream` alone."""

    def __dlpack__(self, **keywords: Any) -> Any:
        if keywords.keys() - {"stream"}:
            self.calls.append(keywords)
            raise TypeError("__dlpack__() takes stream only")
        return super().__dlpack__(**keywords)


class Raising(Producer):
    """`__dlpack__` raises this exception at every call."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error

    def __dlpack__(self, **keywords: Any) -> Any:
        self.calls.append(keywords)
        raise self.error


class RaisingDevice(Producer):
    """`__dlpack_device__` raises this exception at every call."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error, self.asked = error, 0

    def __dlpack_device__(self) -> tuple[int, int]:
        self.asked += 1
        raise self.error


class Returning(Producer):
    """`__dlpack__` returns this object."""

    def __init__(self, result: Any) -> None:
        super().__init__()
        self.result = result

    def __dlpack__(self, **keywords: Any) -> Any:
        self.calls.append(keywords)
        return self.result


class Copying(Producer):
    """It copies when it is asked to; `copies` are the addresses."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.copies: list[int] = []

    def __dlpack__(self, **keywords: Any) -> Any:
        if not keywords.get("copy"):
            return super().__dlpack__(**keywords)
        source = self.tensor.data
        self.copies.append(aligned(self.content))
        self.tensor.data, self.flags = self.copies[-1], IS_COPIED
        try:
            return super().__dlpack__(**keywords)
        finally:
            self.tensor.data, self.flags = source, 0


class Remote(Producer):
    """On a device whose memory the CPU cannot read; it copies to the CPU when it is asked to."""

    def __init__(self, kind: int = ONE_API, number: int = 0) -> None:
        super().__init__()
        self.remote = kind, number
        self.tensor.device, self.tensor.data = DLDevice(kind, number), unreadable()

    def __dlpack__(self, **keywords: Any) -> Any:
        if tuple(keywords.get("dl_device") or ()) != (CPU, 0):
            return super().__dlpack__(**keywords)
        if keywords.get("copy") is False:
            self.calls.append(keywords)
            raise BufferError("the device's memory cannot be read from the CPU without a copy")
        remote = self.tensor.data
        self.tensor.device, self.tensor.data, self.flags = DLDevice(CPU, 0), self.address, IS_COPIED
        try:
            return super().__dlpack__(**keywords)
        finally:
            self.tensor.device, self.tensor.data, self.flags = DLDevice(*self.remote), remote, 0


class Recording(Producer):
    """It records the order in which its methods are called."""

    def __init__(self) -> None:
        super().__init__()
        self.order: list[str] = []

    def __dlpack__(self, **keywords: Any) -> Any:
        self.order.append("__dlpack__")
        return super().__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        self.order.append("__dlpack_device__")
        return super().__dlpack_device__()
