"""The one pass of ``iter_batches``."""

from random import SystemRandom
from typing import Any

from ._core import Batches
from ._encode import encoded, scanned
from ._mix import source_of
from ._settings import bar_of, checked, seed_of
from ._wishes import integer


def opened(
    source: Any,
    *,
    batch_size: Any,
    label: Any,
    filter: Any,
    shuffle: Any,
    shard: tuple[int, int],
    progress: bool,
    **options: Any,
) -> Batches[Any]:
    """The batches, with the arguments of ``iter_batches``."""
    index, count = (integer("each of shard", number, 0) for number in shard)
    if index >= count:
        raise ValueError(f"shard must be (index, count) with index < count, got {shard!r}")
    if label is not None and not isinstance(label, str):
        raise TypeError(
            f"label must be the name of a column, got {label!r}: names are texts, and pandas' 0 is "
            'called "0" in Arrow; Loader takes several'
        )
    batch_size = None if batch_size is None else integer("batch_size", batch_size, 1)
    settings = checked(
        batch_size=batch_size, label=label, filter=filter, shuffle=shuffle, **options
    )
    data = source_of(source)
    categories = scanned(data, settings.wanted.categories, filter)
    stream = encoded(data.read(settings.read, filter), categories)
    drawn = SystemRandom().getrandbits(64) if settings.seed is None else settings.seed
    return settings.open(
        stream,
        seed=None if shuffle is None else seed_of(drawn, index),
        shard=(index, count),
        progress=bar_of(data.rows()) if progress else None,
    )
