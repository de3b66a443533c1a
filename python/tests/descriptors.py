"""DLPack descriptors drawn by hypothesis, judged and read by the letter of dlpack.h.

Python's integers do not overflow and its slices cannot leave their memory: here everything is said
in the simplest way, so that the library has something to be compared with.
"""

import ctypes
import itertools
import math
import random
from dataclasses import dataclass, field, replace

import hostile
from dlpack_conformance.abi.dlpack import (
    BFLOAT,
    BOOL,
    COMPLEX,
    FLOAT,
    INT,
    OPAQUE_HANDLE,
    READ_ONLY,
    SUBBYTE_PADDED,
    UINT,
)
from hypothesis import strategies as st

MEMORY = bytes((13 * i + i // 256) % 256 for i in range(1 << 15))
ORIGIN = len(MEMORY) // 2
READABLE = {1: "cpu", 3: "cuda_host", 11: "rocm_host", 13: "cuda_managed"}
FOUR = {16, 32, 64, 128}
BITS = {INT: {1, 2, 4, 8} | FOUR, UINT: {1, 2, 4, 8} | FOUR, FLOAT: FOUR, BFLOAT: {16}}
BITS |= {COMPLEX: {32, 64, 128}, BOOL: {8}, 15: {6}, 16: {6}, 17: {4}}
BITS |= {code: {8} for code in range(7, 15)}
NUMPY = {(INT, bits): f"i{bits // 8}" for bits in (8, 16, 32, 64)}
NUMPY |= {(UINT, bits): f"u{bits // 8}" for bits in (8, 16, 32, 64)}
NUMPY |= {(FLOAT, bits): f"f{bits // 8}" for bits in (16, 32, 64)}
NUMPY |= {(BOOL, 8): "?"}

I32, I64, U64 = 1 << 31, 1 << 63, 1 << 64
FARTHEST = 1 << 56  # that two bytes of a program can be apart
MOST_AXES = 256
EXTREME = [0, 1, 2, 3, 1 << 50, 1 << 58, 1 << 31, 1 << 32, (1 << 32) + 1, 1 << 61, 1 << 62, I64 - 1]
EXTREME += [-value for value in EXTREME if value] + [-I64]


@dataclass(frozen=True)
class Descriptor:
    legacy: bool = False
    major: int = 1
    minor: int = 3
    flags: int = 0
    device_type: int = 1
    device_id: int = 0
    ndim: int = 0
    code: int = FLOAT
    bits: int = 32
    lanes: int = 1
    shape: tuple | None = ()
    strides: tuple | None = None
    misaligned: frozenset = field(default_factory=frozenset)
    data: int | None = 0  # from the origin
    byte_offset: int = 0

    @property
    def padded(self):
        return not self.legacy and bool(self.flags & SUBBYTE_PADDED)

    @property
    def packed(self):
        """Whether several elements share a byte."""
        return self.bits < 8 and not self.padded

    @property
    def item(self):
        """Bits from one element to the next."""
        return self.lanes * (self.bits if self.packed else (self.bits + 7) // 8 * 8)

    @property
    def extents(self):
        return self.shape[: self.ndim] if self.ndim else ()

    @property
    def size(self):
        return math.prod(self.extents)

    @property
    def steps(self):
        """Of each axis, in elements; like NumPy's where there are none."""
        if self.strides is not None:
            return self.strides[: self.ndim]
        rows = [max(extent, 1) for extent in self.extents]
        return tuple(math.prod(rows[axis + 1 :]) for axis in range(self.ndim))

    @property
    def span(self):
        """The positions of the lowest and of the highest element."""
        ways = [(extent - 1) * step for extent, step in zip(self.extents, self.steps, strict=True)]
        return sum(way for way in ways if way < 0), sum(way for way in ways if way > 0)

    def ends(self, address):
        """Where the lowest element begins and the highest ends, with MEMORY at this address."""
        lowest, highest = self.span
        first = address + ORIGIN + self.data + self.byte_offset
        return first + lowest * self.item // 8, first + (highest * self.item + self.item + 7) // 8

    def wrong(self, address):  # noqa: PLR0911 (there are as many ways)
        """What the descriptor itself proves to be impossible; None if it proves nothing."""
        if not self.legacy and self.major != 1:
            return "major version"
        if self.bits not in BITS.get(self.code, {self.bits}) or self.bits * self.lanes == 0:
            return "dtype"
        if not 0 <= self.ndim <= MOST_AXES:
            return "ndim"
        if self.ndim and self.shape is None:
            return "no shape"
        if self.ndim and any(getattr(self, name) is not None for name in self.misaligned):
            return "alignment"
        if any(extent < 0 for extent in self.extents):
            return "extent"
        if self.size >= I64 or (self.size * self.item + 7) // 8 >= I64:
            return "size"
        if self.size == 0:
            return None
        lowest, highest = (position * self.item // 8 for position in self.span)
        if max(-lowest, highest + self.item // 8) >= I64:
            return "span"
        if self.device_type not in READABLE:
            return None
        if self.data is None:
            return "no data"
        start, end = self.ends(address)
        return "address" if start <= 0 or end >= U64 or end - start > FARTHEST else None

    def is_there(self):
        """Whether all its elements are in MEMORY, so that they may be read."""
        if self.size == 0 or self.device_type not in READABLE:
            return True
        start, end = self.ends(0)
        return start >= 0 and end <= len(MEMORY)

    def elements(self):
        """The bytes of all elements in row-major order, each in whole bytes."""
        item = self.item // 8
        first = ORIGIN + self.data + self.byte_offset
        places = [
            first + item * sum(i * step for i, step in zip(index, self.steps, strict=True))
            for index in itertools.product(*map(range, self.extents))
        ]
        return b"".join(MEMORY[place : place + item] for place in places)

    def producer(self):
        fields = {name: value for name, value in vars(self).items() if name != "misaligned"}
        data, byte_offset = fields.pop("data"), fields["byte_offset"]
        producer = hostile.Producer(MEMORY, ctypes.c_uint8, destructor=True, **fields)
        if data is None:
            producer.managed.dl_tensor.data = None
        else:
            producer.managed.dl_tensor.data = (producer.address + ORIGIN + data) % U64
        producer.managed.dl_tensor.byte_offset = byte_offset % U64
        for name in self.misaligned:
            pointer = getattr(producer.managed.dl_tensor, name)
            if pointer:
                address = ctypes.cast(pointer, ctypes.c_void_p).value + 4
                pointer = ctypes.cast(address, ctypes.POINTER(ctypes.c_int64))
                setattr(producer.managed.dl_tensor, name, pointer)
        return producer


def read(managed):
    """The bytes of all elements of a versioned structure, by its own shape and strides."""
    tensor, dtype = managed.dl_tensor, managed.dl_tensor.dtype
    packed = dtype.bits < 8 and not managed.flags & SUBBYTE_PADDED
    item = dtype.lanes * (dtype.bits if packed else (dtype.bits + 7) // 8 * 8) // 8
    axes = range(tensor.ndim)
    first = (tensor.data or 0) + tensor.byte_offset
    places = [
        first + item * sum(i * tensor.strides[axis] for axis, i in enumerate(index))
        for index in itertools.product(*(range(tensor.shape[axis]) for axis in axes))
    ]
    return b"".join(ctypes.string_at(place, item) for place in places)


DTYPES = [(code, bits) for code, several in BITS.items() for bits in sorted(several)]
DTYPES += [(OPAQUE_HANDLE, 64)]


def possible(seed, dtypes=DTYPES, lanes=(1, 1, 1, 1, 1, 2, 3)):
    """One whose elements are all in MEMORY."""
    rng = random.Random(seed)
    ndim = rng.choice([0, 1, 1, 1, 2, 2, 3, 4])
    (code, bits), lanes = rng.choice(dtypes), rng.choice(lanes)
    shape = tuple(rng.randint(0, 4) for _ in range(ndim))
    item = lanes * bits // 8
    return Descriptor(
        legacy=rng.random() < 0.4,
        minor=rng.randint(0, 4),
        flags=rng.choice([0, 0, READ_ONLY, SUBBYTE_PADDED, 1 << 40]),
        device_type=rng.choice([1, 1, 1, 1, *READABLE]),
        device_id=rng.choice([0, 0, -1, 7]),
        ndim=ndim,
        code=code,
        bits=bits,
        lanes=lanes,
        shape=rng.choice([shape, shape or None]),
        strides=rng.choice([None, tuple(rng.randint(-5, 5) for _ in range(ndim))]),
        # By elements and not: both what is aligned and what is not.
        data=rng.choice([item * rng.randint(-8, 8), rng.randint(-20, 20)]),
        byte_offset=rng.choice([0, item * rng.randint(0, 32)]),
    )


# hypothesis draws what is spoiled, and the seed of what is not: that is many times as fast.
SEEDS = st.integers(0, (1 << 32) - 1)
VALID = SEEDS.map(possible)


U32 = st.integers(0, (1 << 32) - 1)
SPOILED = {
    "major": st.sampled_from([0, 2, 3, (1 << 32) - 1]) | U32,
    "minor": U32,
    "flags": st.sampled_from([2, 3, 5, 7]) | st.integers(0, U64 - 1),
    "device_type": st.integers(-2, 19) | st.integers(-I32, I32 - 1),
    "device_id": st.integers(-I32, I32 - 1),
    "ndim": st.sampled_from([-1, -I32, 0, 1, 2, MOST_AXES + 1, I32 - 1]),
    "code": st.integers(0, 255),
    "bits": st.integers(0, 255),
    "lanes": st.sampled_from([0, 2, 255, (1 << 16) - 1]),
    "shape": st.none() | st.lists(st.sampled_from(EXTREME), max_size=5).map(tuple),
    "strides": st.none() | st.lists(st.sampled_from(EXTREME), max_size=5).map(tuple),
    "misaligned": st.sets(st.sampled_from(["shape", "strides"]), min_size=1).map(frozenset),
    "data": st.none() | st.sampled_from([0, 1, 3]),
    "byte_offset": st.sampled_from([1, 3, U64 - 8, U64 - 1, I64, I64 - 1]) | st.integers(0, 64),
}


@st.composite
def spoiled(draw):
    """A valid one with one or two fields that are something else."""
    names = draw(st.lists(st.sampled_from(list(SPOILED)), min_size=1, max_size=2, unique=True))
    return fitted(replace(draw(VALID), **{name: draw(SPOILED[name]) for name in names}))


def fitted(descriptor):
    """With as many extents and strides as axes: it cannot be proved that there are fewer."""
    ndim = descriptor.ndim if 0 <= descriptor.ndim <= MOST_AXES else 0
    if descriptor.misaligned:
        ndim += 1
    arrays = {}
    for name in ("shape", "strides"):
        values = getattr(descriptor, name)
        if values is not None and len(values) < ndim:
            arrays[name] = values + (2,) * (ndim - len(values))
    return replace(descriptor, **arrays)


ANYTHING = st.builds(Descriptor, legacy=st.booleans(), **SPOILED).map(fitted)
