"""The types of the keywords that ``iter_batches`` and ``Loader`` have in common."""

from typing import Any, TypedDict

from ..typing import Dtype


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
