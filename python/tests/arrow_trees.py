"""Arrow arrays of all types drawn by hypothesis, as the C structures have them, and with something
in them that is not so."""

import random
import struct

from hostile_trees import Node
from hypothesis import strategies as st

# Formats of one buffer of values, and how wide these are.
PLAIN = dict.fromkeys("cC", 1) | dict.fromkeys("sSe", 2) | dict.fromkeys("iIf", 4)
PLAIN |= dict.fromkeys("lLg", 8) | dict.fromkeys(["tdD", "tts", "ttm", "d:9,2,32"], 4)
PLAIN |= dict.fromkeys(["tdm", "ttu", "ttn", "tss:", "tsm:UTC", "tDn", "d:18,4,64"], 8)
PLAIN |= {"d:20,3": 16, "d:50,3,256": 32, "tin": 16, "w:0": 0, "w:1": 1, "w:5": 5}
TEXTS = {"u": 4, "z": 4, "U": 8, "Z": 8}
LISTS = {"+l": 4, "+L": 8, "+vl": 4, "+vL": 8}
WIDTHS = {4: "i", 8: "q"}
FORMATS = ["n", "b", *PLAIN, *TEXTS, "vu", "vz", *LISTS, "+w:0", "+w:1", "+w:3", "+s", "+m"]
FORMATS += ["+us", "+ud", "+r", "dictionary"]


def numbers(width, values):
    return struct.pack(f"<{len(values)}{WIDTHS[width]}", *values)


class Maker:
    """Makes arrays of one run of random numbers: hypothesis draws that, the type and the length."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def bits(self, count):
        return self.random.randbytes((count + 7) // 8)

    def rising(self, count, last):
        """Offsets: so many from 0 or more to at most `last`."""
        return sorted(self.random.randint(0, last) for _ in range(count))

    def text(self):
        return "".join(self.random.choices("ab\u00e9\u6f22", k=self.random.randint(0, 9))).encode()

    def array(self, format, length, depth, nulls=True, name="x"):
        offset = self.random.choice([0, 0, 1, 3])
        node = Node(format, length, [], offset=offset, name=name)
        total = offset + length
        if length == 0 and format.startswith("v"):
            node.offset = total = 0  # pyarrow takes no views at an offset for too few
        if format in ("n", "+r") or format.startswith("+u"):
            node.null_count = length if format == "n" else 0
        else:
            node.buffers.append(self.bits(total) if nulls and self.random.random() < 0.5 else None)
            if not nulls or node.buffers[0] is None:
                node.null_count = self.random.choice([0, -1])
        self.fill(node, total, depth)
        return node

    def fill(self, node, total, depth):  # noqa: PLR0912 (a branch for each family)
        format, rng = node.format, self.random
        if format == "b":
            node.buffers.append(self.bits(total))
        elif format in PLAIN:
            width = PLAIN[format]
            step = 86_400_000 if format == "tdm" else 1
            small = [step * rng.randint(0, 99) for _ in range(total if width else 0)]
            small = [value.to_bytes(width, "little") for value in small]
            node.buffers.append(b"".join(small))
        elif format in TEXTS:
            texts = [self.text() for _ in range(total)]
            ends = [sum(map(len, texts[:i])) for i in range(total + 1)]
            node.buffers += [numbers(TEXTS[format], ends), b"".join(texts)]
        elif format in ("vu", "vz"):
            self.fill_views(node, total)
        elif format in LISTS:
            child = self.child(depth, rng.randint(0, 6))
            node.children = [child]
            width = LISTS[format]
            if "v" in format:
                starts = [rng.randint(0, child.length) for _ in range(total)]
                sizes = [rng.randint(0, child.length - start) for start in starts]
                node.buffers += [numbers(width, starts), numbers(width, sizes)]
            else:
                node.buffers.append(numbers(width, self.rising(total + 1, child.length)))
        elif format.startswith("+w:"):
            node.children = [self.child(depth, total * int(format[3:]))]
        elif format == "+s":
            node.children = [
                self.child(depth, total, name=str(i)) for i in range(rng.randint(0, 2))
            ]
        elif format == "+m":
            self.fill_map(node, total, depth)
        elif format in ("+us", "+ud"):
            self.fill_union(node, total, depth)
        elif format == "+r":
            self.fill_runs(node, total, depth)
        elif format == "dictionary":
            node.format = "c"
            node.dictionary = self.child(depth, rng.randint(1, 4))
            codes = [rng.randrange(node.dictionary.length) for _ in range(total)]
            node.buffers.append(bytes(codes))

    def child(self, depth, length, **options):
        leaves = ["c", "g", "u", "b", "i", "vu", "z"]
        format = self.random.choice(leaves if depth <= 0 else FORMATS)
        return self.array(format, length, depth - 1, **options)

    def fill_views(self, node, total):
        data, views = b"", b""
        for _ in range(total):
            text = self.text()
            if len(text) <= 12:
                views += struct.pack("<i12s", len(text), text)
            else:
                views += struct.pack("<i4sii", len(text), text[:4], 0, len(data))
                data += text
        node.buffers += [views, data, numbers(8, [len(data)])]

    def fill_map(self, node, total, depth):
        count = self.random.randint(0, 5)
        entries = self.array("+s", count, 0, nulls=False, name="entries")
        # pyarrow ignores the offset of a map's entries.
        entries.flags = entries.offset = 0
        key = self.array("u", count, 0, nulls=False, name="key")
        key.flags = 0
        entries.children = [key, self.child(depth, count, name="value")]
        node.children = [entries]
        node.buffers.append(numbers(4, self.rising(total + 1, entries.length)))

    def fill_union(self, node, total, depth):
        kinds = [self.random.randrange(2) for _ in range(total)]
        node.buffers.append(bytes(kinds))
        lengths = [total] * 2
        if node.format == "+ud":
            lengths = [self.random.randint(1, 4) for _ in range(2)]
            places = sorted(self.random.randrange(min(lengths)) for _ in kinds)
            node.buffers.append(numbers(4, places))
        node.format += ":0,1"
        node.children = [self.child(depth, length, name=str(i)) for i, length in enumerate(lengths)]

    def fill_runs(self, node, total, depth):
        ends = sorted(self.random.sample(range(1, total + 4), self.random.randint(0, 2)))
        ends = [end for end in ends if end < total] + [total + self.random.randint(0, 2)] * (
            total > 0
        )
        ends_node = Node(
            "i", len(ends), [None, numbers(4, ends)], name="run_ends", null_count=0, flags=0
        )
        # At the bottom, for pyarrow has no runs of runs.
        node.children = [ends_node, self.child(0, len(ends), name="values")]


valid = st.builds(
    lambda seed, format, length, depth: Maker(seed).array(format, length, depth),
    st.integers(0, (1 << 32) - 1),
    st.sampled_from(FORMATS),
    st.integers(0, 5),
    st.integers(0, 2),
)


I64 = 1 << 63
# It cannot be proved that 1 << 62 bytes are not there.
EXTREME = st.sampled_from([-1, -2, -I64, I64 - 1])
COUNTS = st.integers(-1, 7) | st.just(I64 - 1)
ABSENT = st.none() | st.sets(st.integers(0, 1), min_size=1)
GARBAGE = [
    "",
    "?",
    "+",
    "+w:",
    "+w:x",
    "+w:-1",
    "w:",
    "w:-1",
    "w:99999999999",
    "d:",
    "d:5",
    "d:0,0",
]
GARBAGE += ["d:99,2", "d:5,2,99", "d:300,300", "d:5,-300", "ts", "tss", "tdX", "t", "+us:", "+us:0"]
GARBAGE += [
    "+us:0,0",
    "+us:0,1,2",
    "+us:-1,5",
    "+ud:999,0",
    "+ud:a",
    "+ux:0,1",
    "+v",
    "+w:2147483648",
]
# Not those whose last offset says how much memory there is, nor wide ones, which cannot be judged.
OTHERS = [format for format in FORMATS if format not in ("U", "Z", "dictionary")]
FORMAT = st.sampled_from(GARBAGE + OTHERS) | st.text("+wvlLsmudrcCtDTn:,0123-", max_size=6).filter(
    lambda text: not text.startswith("w:") and "U" not in text and "Z" not in text
)


def metadata(numbers):
    return struct.pack(f"<{len(numbers)}i", *numbers) + bytes(64)


SAID_OF_ARRAY = {
    "length": EXTREME | st.integers(0, 100),
    "offset": EXTREME | st.integers(0, 100),
    "null_count": EXTREME | st.integers(0, 9),
    "n_buffers": COUNTS,
    "n_children": COUNTS,
    "buffers": st.none()
    | st.dictionaries(st.integers(0, 3), st.none() | st.integers(1, 7), min_size=1),
    "children": ABSENT,
    "dictionary": st.none(),
    "release": st.none(),
}
SAID_OF_TYPE = {
    "format": FORMAT.map(str.encode) | st.none() | st.just(b"\xff"),
    "name": st.none() | st.binary(max_size=4),
    "metadata": st.lists(st.sampled_from([-2, -1, 0, 4]), min_size=1, max_size=4).map(metadata),
    "flags": st.integers(-I64, I64 - 1),
    "n_children": COUNTS,
    "children": ABSENT,
    "dictionary": st.none(),
    "release": st.none(),
}


@st.composite
def spoiled(draw):
    """A valid one, of which one or two things are said that are not so."""
    root = draw(valid)
    for _ in range(draw(st.integers(1, 2))):
        node = draw(st.sampled_from(root.family))
        kind = draw(st.sampled_from(["array", "array", "array", "type", "contents"]))
        if kind == "array":
            name = draw(st.sampled_from(list(SAID_OF_ARRAY)))
            values = SAID_OF_ARRAY[name]
            if name in ("length", "offset"):
                # Above all such as are just too many.
                truth = getattr(node, name)
                values = st.integers(truth - 2, truth + 2) | values
            node.said_of_array[name] = draw(values)
            if node.format == "w:0":
                # There may be any number of these, but not of the bits of their validity.
                node.buffers[0] = None
        elif kind == "type":
            name = draw(st.sampled_from(list(SAID_OF_TYPE)))
            node.said_of_type[name] = draw(SAID_OF_TYPE[name])
        else:
            spoil_contents(node, random.Random(draw(st.integers(0, (1 << 32) - 1))))
    return root


def spoil_contents(node, rng):
    """Offsets, sizes, codes, views or texts that are any."""
    count = node.offset + node.length
    if node.format in TEXTS:
        # The last one says how much memory there is, so that much there must be.
        offsets = [rng.choice([-1, 0, 1, 5, 99, 1 << 30, -(1 << 31)]) for _ in range(count)]
        offsets.append(rng.choice([-1, 0, 3, 40, 4000]))
        node.buffers[1] = numbers(TEXTS[node.format], offsets)
        node.buffers[2] = rng.choice([node.buffers[2], rng.randbytes(50)])
    elif node.format in ("vu", "vz"):
        node.buffers[1] = b"".join(
            struct.pack("<4i", *(rng.choice(CHOICES) for _ in range(4))) for _ in range(count)
        )
        node.buffers[3] = numbers(8, [rng.choice([-1, 0, 5, 4000])])
    elif node.format in LISTS:
        width = LISTS[node.format]
        for index in range(1, len(node.buffers)):
            node.buffers[index] = numbers(width, [rng.choice(CHOICES) for _ in range(count + 1)])
    elif node.format == "+m":
        node.buffers[1] = numbers(4, [rng.choice(CHOICES) for _ in range(count + 1)])
    elif node.format.startswith("+u"):
        node.buffers[0] = bytes(rng.choice([0, 1, 2, 127, 128, 255]) for _ in range(count))
        if node.format.startswith("+ud"):
            node.buffers[1] = numbers(4, [rng.choice(CHOICES) for _ in range(count)])
    elif node.format == "+r":
        ends = node.children[0]
        ends.buffers[1] = numbers(
            4, [rng.choice(CHOICES) for _ in range(ends.length + ends.offset)]
        )
    elif node.dictionary:
        node.buffers[1] = bytes(rng.choice([0, 1, 5, 127, 128, 255]) for _ in range(count))


CHOICES = [0, 0, 1, 1, 2, 3, 5, 12, 13, 99, -1, -5, (1 << 31) - 1, -(1 << 31)]
