"""Ranks and workers: which of the batches of a source each of them makes.

Batches are numbered over the whole source. With `count` shares, share `index` makes either every
count-th batch, or a range of numbers where the rows of a range can be read alone. Which these are,
and the order that a seed gives, is decided in src/batches/epoch.rs; `Share.index` numbers the
workers of all ranks as `Share::index` there does.
"""

import os
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar

from .. import _core
from .columns import integer

_Thing = TypeVar("_Thing")
Uneven: TypeAlias = Literal["drop", "repeat", "allow"] | None


@dataclass(frozen=True)
class Share:
    """A rank among `world`, and in it a worker among `workers`."""

    rank: int = 0
    world: int = 1
    worker: int = 0
    workers: int = 1

    @property
    def index(self) -> int:
        """Ranks take turns: a rank's batches are in the same order for any number of workers."""
        return self.worker * self.world + self.rank

    @property
    def count(self) -> int:
        """Ranks times workers."""
        return self.world * self.workers

    def batch_ranges(
        self, total: int, uneven: Uneven, *, in_turns: bool = False
    ) -> tuple[range, range]:
        """The batches, of `total`, that it makes once, and those that it makes again after them.

        in_turns: every count-th one, in place of batches that follow each other.
        """
        check_even(total, self.world, uneven)
        share = self.rank, self.world, self.worker, self.workers
        once, again = _core._numbers(total, share, uneven or "allow", in_turns)
        return range(*once), range(*again)

    def of_rank(self, total: int, uneven: Uneven) -> int:
        """How many of `total` batches the rank makes."""
        return sum(map(len, Share(self.rank, self.world).batch_ranges(total, uneven)))


def check_even(total: int, world: int, uneven: Uneven) -> None:
    """An error for unequal numbers of batches for ranks, if uneven= does not say what to do."""
    rest = total % world
    if uneven == "drop" and 0 < total < world:
        warnings.warn(
            f'uneven="drop" leaves no batch at all: there are {total} for {world} ranks; make '
            'smaller ones, or say uneven="repeat"',
            stacklevel=2,
        )
    if uneven is None and rest > 0:
        raise ValueError(
            f"{total} batches are not the same number for each of {world} ranks, and ranks that "
            'wait for each other would hang: say uneven="drop" to leave out the last '
            f'{rest}, uneven="repeat" to make {world - rest} again, or uneven="allow"'
        )


def shuffled(things: Sequence[_Thing], seed: int) -> list[_Thing]:
    """Them in the order of a seed."""
    return [things[at] for at in memoryview(_core._order(len(things), seed)).tolist()]


def resolved(rank: int | Literal["auto"] | None, world_size: int | None) -> tuple[int, int]:
    """The rank and the number of ranks; "auto" asks torch.distributed, then its environment."""
    if rank == "auto":
        if world_size is not None:
            raise TypeError('rank="auto" knows the number of ranks: leave world_size out')
        return _of_torch()
    if (rank is None) != (world_size is None):
        raise TypeError('rank and world_size belong together, or rank="auto" alone')
    if rank is None or world_size is None:
        return 0, 1
    rank, world_size = integer("rank", rank, 0), integer("world_size", world_size, 1)
    if rank >= world_size:
        raise ValueError(f"rank must be below world_size, got {rank} of {world_size}")
    return rank, world_size


def _of_torch() -> tuple[int, int]:
    distributed: Any = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    # What torchrun sets for each process that it starts.
    rank, world = (os.environ.get(name) for name in ("RANK", "WORLD_SIZE"))
    try:
        numbers = int(rank or "0"), int(world or "1")
    except ValueError:
        numbers = -1, -1
    if not 0 <= numbers[0] < numbers[1] or (rank is None and numbers[1] > 1):
        raise ValueError(
            'rank="auto" reads the environment variables RANK and WORLD_SIZE, a number below '
            f"another one, and they are {rank!r} and {world!r}"
        )
    return numbers


def worker_info() -> Any:
    """What PyTorch tells a worker of its DataLoader; None elsewhere."""
    # Another thread may be importing it.
    info = getattr(sys.modules.get("torch.utils.data"), "get_worker_info", None)
    return None if info is None else info()


def share_of(rank: int, world: int) -> Share:
    """That of this process: a worker of PyTorch's DataLoader, or all of its rank."""
    worker = worker_info()
    if worker is None:
        return Share(rank, world)
    return Share(rank, world, worker.id, worker.num_workers)
