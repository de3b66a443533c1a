"""DL1xx: the descriptor, what a tensor says of itself."""

from dlpack_conformance.abi.dlpack import MAJOR, MINOR
from dlpack_conformance.kit.consumer import exported
from dlpack_conformance.kit.judge import attempt, equal, refused, right_or_refused
from dlpack_conformance.kit.producer import Producer
from dlpack_conformance.library import Library
from dlpack_conformance.rule import Broken, NotApplicable, Report, rule


@rule("DL101", "must", "dlpack.h, DLManagedTensorVersioned.version", "p")
def version_filled(lib: Library) -> None:
    """A versioned tensor says in `version` which DLPack it was made by."""
    view = exported(lib.make([1.0, 2.0]))
    if view.version is None:
        raise NotApplicable("no versioned export")
    if view.version[0] != MAJOR or view.version[1] > MINOR:
        raise Broken(f"version {MAJOR}.0 to {MAJOR}.{MINOR}", view.version)


@rule("DL103", "must", "dlpack.h, DLPackVersion", "c")
def major_mismatch_deletes(lib: Library) -> None:
    """A consumer that meets another major version calls the deleter, once."""
    x = Producer(legacy=False)
    x.version = (2, 0)
    refused(lib, x)
    equal("calls of the deleter", 1, x.deletions())


@rule("DL107", "must", "dlpack.h, DLPackVersion (interpret all fields)", "c")
def unknown_code_refused(lib: Library) -> None:
    """A dtype code that the consumer does not know is refused."""
    x = Producer()
    x.tensor.dtype.code = 200
    refused(lib, x)


@rule("DL110", "silent", "dlpack.h, DLManagedTensorVersioned.flags", "c")
def unknown_flags(lib: Library) -> Report:
    """What a consumer does with flag bits that are not defined."""
    x = Producer(legacy=False)
    x.flags = 1 << 40
    _, refusal = attempt(lib, x)
    return Report(refusal or "accepted")


@rule("DL142", "must", "dlpack.h, DLTensor.byte_offset", "c")
def byte_offset_added(lib: Library) -> None:
    """The first element is at `data + byte_offset`."""
    x = Producer([0.0, 0.0, 1.0, 2.0], shape=[2], offset=2)
    x.tensor.data, x.tensor.byte_offset = x.address, 8
    right_or_refused(lib, x)
