"""The types of the keywords of ``iter_batches``, ``Loader`` and ``BatchDataset``."""

from collections.abc import Sequence
from typing import Any, Literal, TypedDict

from .._frameworks import Framework
from ..typing import Dtype
from .columns import ByLength, ByTokens, Columns
from .sharding import Uneven


class Options(TypedDict, total=False):
    """What decides nothing about what is in a batch."""

    dtype: Dtype | None
    filter: Any
    drop_last: bool
    shuffle: int | None
    seed: int | None
    prefetch: int
    physical: bool
    copy: bool | None


class SharedOptions(Options, total=False):
    """What decides nothing about what is in a batch."""

    batch_size: int | ByLength | ByTokens | None
    rank: int | Literal["auto"] | None
    world_size: int | None
    uneven: Uneven
    writable: bool | None


class LoaderOptions(SharedOptions, total=False):
    """Columns without wishes; the batches are of our tensors."""

    columns: Sequence[str] | None
    framework: None
    transform: None
    progress: bool


class AnyOptions(SharedOptions, total=False):
    """Whatever a batch may be."""

    columns: Columns | None
    framework: Framework | None
    progress: bool
