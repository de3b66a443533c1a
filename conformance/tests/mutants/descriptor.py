"""DL1xx, the descriptor."""

from dlpack_conformance.abi.dlpack import READ_ONLY
from dlpack_conformance.kit import reference

from mutants import exports, flags, mutant


@exports("DL101", DL102="no version has the content")
def version_left_zero(export):
    if isinstance(export.managed, reference.DLManagedTensorVersioned):
        export.managed.version.major = export.managed.version.minor = 0


@exports("DL102")
def float8_of_version_1_0(export):
    if isinstance(export.managed, reference.DLManagedTensorVersioned):
        if export.managed.dl_tensor.dtype.code >= 7:
            export.managed.version.minor = 0


@mutant("DL103")
def major_mismatch_is_not_deleted():
    read = reference.read

    def planted(imported, owner):
        if imported.versioned and imported.managed.version.major != reference.MAJOR:
            imported.taken = False
        return read(imported, owner)

    reference.read = planted


@flags("DL111")
def readonly_is_not_said(flags, array):
    return flags & ~READ_ONLY
