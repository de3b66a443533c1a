"""Where a `Loader` stands, what a state holds of that, and where the next epoch goes on.

1. `Progress.state` makes a state; identity.py tells what it holds of the data.
2. `Progress.load` refuses a state of a loader with other options.
3. Where the next epoch begins, `Progress.next_start` refuses a state of another rank or worker, or
   of other data (other_data.py), and says at which batch it begins.
4. The batches before it are left out: epoch.py plans it, row groups are not read again without
   need, and chunks.py compares the chunks of sources without a batch_size.
5. When its batches are open, `Progress.begin` counts the epoch; one that failed before is tried
   again, but not by one of several workers.

With workers of PyTorch's, torch.py hands states over to them, and takes one back that none used.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .. import _core
from . import identity as _identity
from .bucketing import width_of
from .columns import integer
from .mix import Mix, Turns
from .options import LoaderOptions
from .other_data import Comparison, refusal
from .sharding import Share

Identity = dict[str, Any]


@dataclass
class Position:
    """How far an epoch has been handed out."""

    epoch: int
    batch: int = 0
    seed: int | None = None
    #: The share of the source's batches: all of them, where a function opened the part.
    reads: Share = field(default_factory=Share)
    #: The number of the rank and worker, and how many there are.
    part: tuple[int, int] = (0, 1)
    #: Without a batch_size, what tells the chunks that were handed out, see chunks.py.
    chunks: int | str | None = None
    is_over: bool = False
    #: The state that the epoch went on from, and whether an error ended it before another batch.
    resumed: Mapping[str, Any] | None = None
    has_failed: bool = False
    #: Whether copies of the loader made its batches, in other processes, until a loop left it.
    is_elsewhere: bool = False

    @property
    def seed_of_groups(self) -> int:
        """The seed that orders row groups, which is none by which rows are drawn."""
        return _core._seed_of_part(self.seed or 0, 2**64 - 1)

    @property
    def seed_of_part(self) -> int:
        """The seed by which this rank and worker draws."""
        return _core._seed_of_part(self.seed or 0, self.part[0])


class Start(NamedTuple):
    """Where an epoch begins, and of which data."""

    position: Position
    #: Tells what a state holds of the data, None where nothing is known of it.
    identify: Callable[[], Identity] | None
    #: What it told, if a state was compared with it.
    identity: Identity | None


class Progress:
    """The epochs of one `Loader`: the current one, and the next."""

    def __init__(self) -> None:
        #: The state from which the next epoch goes on.
        self.loaded: dict[str, Any] | None = None
        self._has_loaded = False
        self._next_epoch = 0
        self._position: Position | None = None
        #: What tells the data of the current epoch, and what it told, once it has been asked.
        self._identify: Callable[[], Identity] | None = None
        self._identity: Identity | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_position": None, "_identify": None}

    def upcoming(self) -> int:
        """The number of the next epoch."""
        return self._next_epoch if self.loaded is None else int(self.loaded["epoch"])

    def set_epoch(self, epoch: int) -> None:
        """Says which epoch is next; a loaded state of another one is dropped."""
        self._next_epoch, self._position = integer("epoch", epoch, 0), None
        if self.loaded is not None and self.loaded["epoch"] != self._next_epoch:
            self.loaded = None

    def advance(self, epoch: int) -> None:
        """Counts an epoch that copies of the loader make in other processes, or that failed."""
        self._next_epoch, self.loaded, self._position = epoch + 1, None, None

    def leave(self, epoch: int) -> None:
        """Leaves an epoch to copies of the loader, if it is the last one: they have its states."""
        if self._next_epoch == epoch + 1 and self._position is None:
            self._position = Position(epoch, is_elsewhere=True)

    def end(self, epoch: int) -> None:
        """Ends an epoch that was left to copies of the loader."""
        at = self._position
        if at is not None and at.is_elsewhere and at.epoch == epoch:
            self._position = None

    def load(self, state: Any, options: Mapping[str, Any]) -> None:
        """Takes a state of a loader with these options, as `options_of` tells them."""
        if not _is_state(state):
            way = ": json.loads(x) makes one of its text" if isinstance(state, (str, bytes)) else ""
            raise ValueError(f"this is no state of a Loader, got {state!r:.80}{way}")
        saved = state["options"]
        for name in {**options, **saved}:
            if saved.get(name) != options.get(name):
                is_in = name == "filter" and "is_in(" in str(saved.get(name))
                hint = " (isin(sorted(x)) of a set x is one filter in any process)" if is_in else ""
                raise ValueError(
                    f"the state is of a loader with {name}={saved.get(name)!r}, and this one has "
                    f"{name}={options.get(name)!r}: its batches would be others{hint}: "
                    "begin another epoch by set_epoch(), or load no state"
                )
        self.loaded, self._has_loaded = _copied(state), True

    def state(self, options: Mapping[str, Any], *, of_part: bool = False) -> dict[str, Any]:
        """Where the current epoch stands, or the next one where none has begun, for JSON.

        of_part: of one of several workers, which stays at the end of its part of the epoch until
        the others are there too.
        """
        self.reload()
        if self.loaded is not None:
            loaded: dict[str, Any] = _copied(self.loaded)
            return loaded
        at = self._position
        if at is not None and at.is_elsewhere:
            raise TypeError(
                "workers make the batches of an epoch that has not ended, or was left early, and "
                "each has a state, which torchdata's StatefulDataLoader asks for; after "
                "set_epoch(n), state_dict() is where epoch n begins"
            )
        if at is None or (at.is_over and not of_part):
            at = Position(self._next_epoch)
        return {
            "version": 1,
            "epoch": at.epoch,
            "batch": at.batch,
            "seed": at.seed,
            "part": list(at.part) if at.batch else None,
            "reads": [at.reads.index, at.reads.count] if at.batch else None,
            "chunks": at.chunks if at.batch else None,
            "options": options,
            "source": _copied(self._of_source()),
        }

    def reload(self) -> None:
        """Takes the state again from which the last epoch failed to go on."""
        at = self._position
        if self.loaded is not None or at is None or at.resumed is None or not at.has_failed:
            return
        if at.batch == at.resumed["batch"]:
            self.loaded = dict(at.resumed)

    def check_workers(self, rank: int, world: int, workers: int) -> None:
        """Refuses a state that is not for all workers of a rank."""
        for worker in range(workers):
            self.check_part(Share(rank, world, worker, workers))

    def check_part(self, share: Share) -> None:
        """Refuses a state within an epoch that is of another rank or worker."""
        loaded, part = self.loaded, (share.index, share.count)
        if loaded is not None and loaded["batch"] and tuple(loaded["part"]) != part:
            epoch = loaded["epoch"]
            raise ValueError(
                f"the state is that of part {loaded['part'][0]} of {loaded['part'][1]}, and "
                f"this is part {part[0]} of {part[1]}: each rank and worker has its own. For "
                f"another number of them, set_epoch({epoch + 1}) begins the next epoch, and "
                f"set_epoch({epoch}) of a Loader without a state begins this one anew"
            )

    def next_start(
        self,
        options: LoaderOptions,
        share: Share,
        reads: Share,
        identify: Callable[[], Identity] | None,
        draw: Callable[[int, bool], int | None],
    ) -> Start:
        """Where the next epoch begins: behind what has been handed out, if a state is loaded.

        reads: the share of the source's batches, which is all of them where the source is a part.
        draw: returns the seed that orders the rows of an epoch, of a loader that has taken a state
            or has not.
        """
        identity = self._check_data(identify, options, reads)
        self.check_part(share)
        loaded, epoch, part = self.loaded, self.upcoming(), (share.index, share.count)
        self._check_reads(reads)
        batch, seed, chunks = 0, None, None
        if loaded is not None:
            batch, seed, chunks = loaded["batch"], loaded["seed"], loaded["chunks"]
        seed = draw(epoch, self._has_loaded) if seed is None else seed
        # One of several workers does not try again: the others have made batches, and go on.
        resumed = loaded if share.workers == 1 else None
        position = Position(epoch, batch, seed, reads, part, chunks, resumed=resumed)
        return Start(position, identify, identity)

    def _check_data(
        self, identify: Callable[[], Identity] | None, options: LoaderOptions, reads: Share
    ) -> Identity | None:
        """Refuses a loaded state that is of other data; returns what was told of this data."""
        if self.loaded is None or identify is None:
            return None
        ours, reads_groups = identify(), options.reads_groups(reads.count)
        comparison = Comparison(
            is_ordered=options.matrix,
            is_shuffled=reads_groups and options.shuffle is not None,
            is_shared=reads_groups and reads.count > 1,
            is_begun=self.loaded["batch"] > 0,
            is_physical=options.physical,
        )
        comparison.check(self.loaded.get("source"), ours)
        return ours

    def _check_reads(self, reads: Share) -> None:
        """Refuses a state of a part that a function opened where a source is divided, and back."""
        saved = None if self.loaded is None else self.loaded["reads"]
        if saved is None or tuple(saved) == (reads.index, reads.count):
            return
        part, whole = "all batches of a part that a function opened", "a share of the source's"
        one, other = (part, whole) if reads.count > 1 else (whole, part)
        raise refusal(f"its batches were {one}, and these are {other}")

    def begin(self, start: Start) -> None:
        """The epoch has begun: its `Batches` count in the same `Position` what they hand out."""
        self._next_epoch, self.loaded = start.position.epoch + 1, None
        self._position, self._identify, self._identity = start

    def drop(self) -> None:
        """Goes on from no state."""
        self.loaded = None

    def restart(self) -> None:
        """Goes on with the epoch of the loaded state, from its start: others went on from it."""
        epoch = self.upcoming()
        self.drop()
        self.set_epoch(epoch)

    def take_back(self, state: dict[str, Any] | None) -> None:
        """Takes a state again from which other processes went on, and made no batch."""
        if self.loaded is None:
            self.loaded = state

    def _of_source(self) -> Identity | None:
        """What is known of the data of the current epoch; None before the first one."""
        if self._identify is not None and not _identity.is_known(self._identity):
            self._identity = self._identify()
        if self._identity is not None:
            self._identity = _identity.settled(self._identity)
        return self._identity


def options_of(data: Any, options: LoaderOptions) -> dict[str, Any]:
    """What decides which rows are in a batch, but the data."""
    mix = {}
    if isinstance(data, Mix):
        mix["mix"] = repr(Turns(data).weights)
        mix["stopping_strategy"] = data.stopping_strategy
    return mix | {
        "batch_size": options.rows or repr(options.batch_size),
        "max_length": width_of(options.batch_size, options.query),
        "physical": options.physical,
        "shuffle": options.shuffle,
        "seed": options.seed,
        "drop_last": options.drop_last,
        "filter": None if options.filter is None else _identity.of_filter(options.filter),
        "uneven": options.uneven,
    }


def _copied(value: Any) -> Any:
    """What a state holds, in dicts and lists that no one else has."""
    if isinstance(value, Mapping):
        return {name: _copied(own) for name, own in value.items()}
    return list(map(_copied, value)) if isinstance(value, (list, tuple)) else value


def _is_state(state: Any) -> bool:
    if not isinstance(state, Mapping):
        return False

    def is_number(value: Any, below: int) -> bool:
        return type(value) is int and 0 <= value < below

    try:
        version, batch, seed, part = (state[of] for of in ("version", "batch", "seed", "part"))
        epoch, chunks, options = state["epoch"], state["chunks"], state["options"]
        source, reads = state["source"], state["reads"]
    except KeyError:
        return False
    if not (is_number(version, 2) and version == 1 and isinstance(options, Mapping)):
        return False

    def is_pair(value: Any) -> bool:
        return isinstance(value, (list, tuple)) and [type(of) for of in value] == [int, int]

    has_part = is_pair(part)
    is_begun = is_number(batch, 2**63) and batch > 0
    return (
        is_number(epoch, 2**63)
        and is_number(batch, 2**63)
        and (is_number(seed, 2**64) or (seed is None and not (is_begun and options.get("shuffle"))))
        and (has_part or not is_begun)
        and (reads is None or is_pair(reads))
        and (chunks is None or isinstance(chunks, str) or is_number(chunks, 2**63))
        and (isinstance(source, Mapping) or (source is None and not is_begun))
    )
