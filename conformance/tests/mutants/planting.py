"""How faults are planted into the reference library's Arrow half."""

from dlpack_conformance.hooks import kit_reference as hooks
from dlpack_conformance.kit import reference_arrow

from mutants import decorator


def around(owner, name):
    """The function stands for this one of a module or class, which it gets first."""

    @decorator
    def how(change):
        right = getattr(owner, name)
        setattr(owner, name, lambda *args, **keywords: change(right, *args, **keywords))

    return how


def instead_of(owner, name):
    """The class or function stands for this one, of which it may be a subclass."""

    @decorator
    def how(change):
        setattr(owner, name, change)

    return how


# Libraries' arrays and streams, by the class that makes them; what the rules' own producers and
# readers are made of stays as it is.
arrays = instead_of(hooks, "arrow_array")
device_arrays = instead_of(hooks, "arrow_device_array")
streams = instead_of(hooks, "Chunks")
device_streams = instead_of(hooks, "DeviceChunks")
readers = instead_of(reference_arrow, "Reader")
taken = instead_of(reference_arrow, "Taken")
