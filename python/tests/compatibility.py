"""Measures every exchange with every neighbour, and writes docs/reference/compatibility.md of it.

    python python/tests/compatibility.py

The record is neighbours/, with a file for each Python that has other versions. This writes the
file of the Python that runs it, and the page of all. test_neighbours.py fails when a neighbour does
something else.
"""

import gc
import json
import os
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

# Before anyone imports them, as in conftest.py.
os.environ["JAX_ENABLE_X64"] = "1"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

from arrow_dlpack._doctor.libraries import ARROW_LIBRARIES, TENSOR_LIBRARIES
from arrow_libraries import of_arrow_library
from consumers import asks, of_consumer
from frameworks import DTYPES
from producers import hands_out, of_producer

RECORDS = Path(__file__).with_name("neighbours")
ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "compatibility.md"
README = ROOT / "README.md"


# --- the record -----------------------------------------------------------------------------------


def consumer(name: str) -> dict:
    library = TENSOR_LIBRARIES[name]
    return {
        "version": library.version(),
        "asks for": asks(library),
        "outcomes": of_consumer(library),
    }


def producer(name: str) -> dict:
    library = TENSOR_LIBRARIES[name]
    forms = hands_out(library)
    return {"version": library.version(), "hands out": forms, "outcomes": of_producer(library)}


def arrow(name: str) -> dict:
    library = ARROW_LIBRARIES[name]
    return {"version": library.version(), **of_arrow_library(library)}


SECTIONS = {
    "consumers": (consumer, TENSOR_LIBRARIES),
    "producers": (producer, TENSOR_LIBRARIES),
    "arrow": (arrow, ARROW_LIBRARIES),
}


def measure() -> dict:
    return {
        section: {name: of(name) for name in names} for section, (of, names) in SECTIONS.items()
    }


def grouped(outcomes: dict[str, str]) -> dict[str, list[str]]:
    """The cases of each outcome."""
    cases = {}
    for case, outcome in outcomes.items():
        cases.setdefault(outcome, []).append(case)
    return cases


def of_outcomes(node: object, do) -> object:
    """The record with `do` done to its innermost dictionaries, which hold nothing but texts."""
    if not isinstance(node, dict):
        return node
    if all(isinstance(value, str) for value in node.values()):
        return do(node)
    return {key: of_outcomes(value, do) for key, value in node.items()}


def write(record: dict) -> None:
    """In the file each outcome stands once, with its cases: shorter, and easier to read."""
    lines = of_outcomes(
        record, lambda node: {key: ", ".join(cases) for key, cases in grouped(node).items()}
    )
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    text = json.dumps(lines, indent=2, ensure_ascii=False)
    (RECORDS / f"{python}.json").write_text(text + "\n", "utf-8")


def read() -> dict[str, dict]:
    """The record of each Python, the oldest first."""
    paths = sorted(RECORDS.glob("*.json"), key=lambda path: int(path.stem.partition(".")[2]))
    return {
        path.stem: of_outcomes(
            json.loads(path.read_text("utf-8")),
            lambda node: {case: key for key, cases in node.items() for case in cases.split(", ")},
        )
        for path in paths
    }


def of_this_stack(records: dict[str, dict]) -> dict:
    """The record with the NumPy that is here: 3.14t has the versions of 3.11."""
    here = TENSOR_LIBRARIES["numpy"].version()
    for record in records.values():
        if record["consumers"]["numpy"]["version"] == here:
            return record
    raise SystemExit(f"no record has NumPy {here}: `make compatibility PYTHON=...` makes one")


# --- the page ------------------------------------------------------------------------------------

# The first word of an outcome, as a cell says it.
CELLS = {
    "zero-copy": "zc",
    "copy": "copy",
    "refused": "no",
    "none": "-",
    "wrong": "**wrong**",
    "kept": "kept",
    "lost": "**lost**",
    "flagged": "yes",
    "not flagged": "no",
}

# What a consumer does to tensors from elsewhere; those from here never give it the occasion.
FAULTS = {
    ("foreign byte offset", "wrong"): "ignores `byte_offset` (here it is always 0)",
    ("foreign byte offset", "refused"): "refuses any `byte_offset` but 0 (here it is always 0)",
    ("foreign deleter", "never called"): "never calls the deleter of a tensor whose `manager_ctx` "
    "is NULL (here it never is)",
    ("foreign capsule", "not renamed"): "does not rename the capsule that it has used",
}

CONSUMER_COLUMNS = {
    "column": DTYPES,
    **{name: [name] for name in ("slice", "2-D", "column-major", "strided", "reversed", "0-d")},
    **{name: [name] for name in ("bool", "bfloat16", "read-only")},
}
PRODUCER_COLUMNS = {
    "column": DTYPES,
    **{name: [name] for name in ("2-D", "transposed", "every other", "0-d", "bool", "bfloat16")},
    **{name: [name] for name in ("bare capsule", "read-only")},
}
ARROW_COLUMNS = [
    *("from array", "from chunked", "from table", "from column"),
    *("to array", "to chunked", "to table"),
]


def kind(outcome: str) -> str:
    return outcome.partition(":")[0]


# What a note says of the cases that come to less than the others of their cell.
LESS = {"copy": "copies", "refused": "refuses", "none": "does not make"}


class Notes:
    """The numbered notes below a table."""

    def __init__(self) -> None:
        self.texts = []

    def marks(self, texts: list[str]) -> str:
        """Adds the notes that are new; what a cell shows of them all."""
        self.texts += [text for text in texts if text not in self.texts]
        numbers = ", ".join(str(self.texts.index(text) + 1) for text in texts)
        return f"<sup>{numbers}</sup>" if texts else ""

    def lines(self) -> list[str]:
        return [f"{number}. {text}" for number, text in enumerate(self.texts, 1)]


def cell(name: str, outcomes: dict[str, str], cases: list[str], notes: Notes) -> str:
    """What most of the cases come to, best first, and notes of those that come to less."""
    kinds = grouped({case: kind(outcomes[case]) for case in cases if case in outcomes})
    if not kinds:
        return CELLS["none"]
    works = {key: kinds[key] for key in ("zero-copy", "copy") if key in kinds} or kinds
    best = max(works, key=lambda key: len(works[key]))
    texts = []
    for key, those in kinds.items():
        what = outcomes[those[0]].partition(": ")[2]
        if key == "wrong":
            texts.append(f"{name}, {', '.join(those)}: {what}")
        elif key == "lost":
            texts.append(f"{name} {what}")
        elif key != best:
            texts.append(f"{name} {LESS[key]} {', '.join(those)}")
    return CELLS[best] + notes.marks(texts)


def faults(name: str, outcomes: dict[str, str], notes: Notes) -> str:
    return notes.marks(
        [
            f"{name} {text}"
            for (case, outcome), text in FAULTS.items()
            if kind(outcomes.get(case, "")) == outcome
        ]
    )


def table(header: list[str], rows: list[list[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in (header, ["---"] * len(header), *rows)]


def refusals(entries: dict[str, dict[str, str]], cases: Iterable[str]) -> list[str]:
    """Each library's reasons in its own words, once for those that differ only in their numbers."""
    reasons = {}
    for name, outcomes in entries.items():
        for case in cases:
            if kind(outcomes.get(case, "")) == "refused":
                reason = outcomes[case].removeprefix("refused: ")
                found = reasons.setdefault((name, re.sub(r"\d+", "", reason)), (reason, []))
                found[1].append(case)
    lines = [
        f"- {name}, {'every dtype' if cases == DTYPES else ', '.join(cases)}: `{reason}`"
        for (name, _), (reason, cases) in reasons.items()
    ]
    return ["<details><summary>Why not, in their own words</summary>", "", *lines, "", "</details>"]


class Variant(NamedTuple):
    """A library on those Pythons on which it does the same, with its version on each."""

    name: str
    label: str
    versions: dict[str, str]
    entry: dict

    def cells(self, records: dict[str, dict], notes: str = "") -> list[str]:
        return [self.name + notes, *(self.versions.get(python, "") for python in records)]


def variants(records: dict[str, dict], section: str, trait: Callable) -> list[Variant]:
    """Each library once, or several times where a version differs from another in this trait."""
    found = []
    for name in dict.fromkeys(name for record in records.values() for name in record[section]):
        of_trait = {}
        for python, record in records.items():
            entry = record[section][name]
            label = f"{name} {entry['version']}"
            key = json.dumps(trait(entry), sort_keys=True)
            of_trait.setdefault(key, Variant(name, label, {}, entry))
            of_trait[key].versions[python] = entry["version"]
        several = len(of_trait) > 1
        found += [way if several else way._replace(label=name) for way in of_trait.values()]
    return found


def in_the_table(entry: dict) -> object:
    """Not how it words its errors."""
    kinds = of_outcomes(entry, lambda node: {case: kind(text) for case, text in node.items()})
    return {key: value for key, value in kinds.items() if key != "version"}


def in_words(entry: dict) -> object:
    """Not which form of the protocol it has."""
    return {key: value for key, value in entry.items() if isinstance(value, dict)}


def header(title: str, records: dict[str, dict], *columns: str) -> list[str]:
    return [title, *(f"Python {python}" for python in records), *columns]


def tensor_table(
    records: dict[str, dict], section: str, title: str, protocol: str, columns: dict
) -> list[str]:
    notes, rows = Notes(), []
    for library in variants(records, section, in_the_table):
        outcomes = library.entry["outcomes"]
        first = library.cells(records, faults(library.label, outcomes, notes))
        cells = [cell(library.label, outcomes, cases, notes) for cases in columns.values()]
        rows.append([*first, library.entry[protocol], *cells])
    worded = variants(records, section, in_words)
    why = refusals(
        {library.label: library.entry["outcomes"] for library in worded},
        [case for cases in columns.values() for case in cases],
    )
    head = header(title, records, protocol, *columns)
    return [*table(head, rows), "", *notes.lines(), "", *why]


def arrow_table(records: dict[str, dict]) -> list[str]:
    notes, rows = Notes(), []
    for library in variants(records, "arrow", in_the_table):
        forms = [library.entry.get(form, {}) for form in ARROW_COLUMNS]
        cells = [cell(library.label, dtypes, DTYPES, notes) for dtypes in forms]
        rows.append([*library.cells(records), *cells])
    outcomes = {
        f"{library.label} {form}": library.entry.get(form, {})
        for library in variants(records, "arrow", in_words)
        for form in ARROW_COLUMNS
    }
    why = refusals(outcomes, DTYPES)
    head = header("Arrow library", records, *ARROW_COLUMNS)
    return [*table(head, rows), "", *notes.lines(), "", *why]


TEXT = """\
<!-- made by `make compatibility` from python/tests/neighbours -->

# Compatibility

Measured with two sets of versions: those of the oldest Python that the package takes, and newer
ones, of which NumPy and JAX need a newer Python. `make test` does all of this again with the first,
`make test PYTHON=python3.13` with the second, for paddle and tensorflow `make test-neighbours` and
`make test-newer`, and fails where a cell is not true. A library has two rows where its versions
differ in what they do.

| cell | it means |
| --- | --- |
| `zc` | zero-copy: the result has the same address |
| `copy` | the values lie elsewhere |
| `no` | refused, with an error |
| `-` | the library has nothing of the kind |
| **wrong** | taken, but the result is wrong, or an error comes later: see the note |
| kept, **lost** | whether the library keeps to the read-only flag |

Bold cells need care. A note says which dtypes a cell does not hold for.

## Arrow to tensors

A column is an `Array` of each of the eleven numeric types, a slice one that does not begin on 64
bytes; the others are of a `Tensor`, of which a 0-d one has no axes, only one number. "Asks for" is
the version of the DLPack capsule that the library asks for: a number, legacy (a capsule without
version and flags), or the exchange API, C functions of DLPack 1.3 that need no capsule. Read-only
says what happens when the library writes to what it made of Arrow's memory.

{consumers}

From 2.5 on, NumPy takes and hands out bfloat16 and float8 too, zero-copy, once they are registered
with `numpy.dtypes.register_dlpack_dtype`, which ml_dtypes 0.6 does not do.

## Tensors to Arrow

A column becomes an Arrow array, the others a `Tensor`. "Every other" is a view of every second
element. A bare capsule is passed alone, as `from_dlpack(x.__dlpack__())`. Read-only says whether
the library's own tensors arrive as read-only.

{producers}

## Arrow libraries

`Array(x)` from what they have, and what they make of an `Array`. Chunked is two chunks, which
`Array` puts together.

{arrow}
"""


def page(records: dict[str, dict]) -> str:
    tables = {
        "consumers": tensor_table(records, "consumers", "taken by", "asks for", CONSUMER_COLUMNS),
        "producers": tensor_table(records, "producers", "made by", "hands out", PRODUCER_COLUMNS),
        "arrow": arrow_table(records),
    }
    return TEXT.format_map({key: "\n".join(lines) for key, lines in tables.items()})


# --- the README's grid ----------------------------------------------------------------------------

BEGIN = "<!-- made by `make compatibility` -->\n"
END = "<!-- until here -->\n"
TICKS = {"zero-copy": "✓", "kept": "✓", "copy": "copy", "lost": "lost", "none": ""}
GRID = ["column", "2-D", "strided", "bool", "bfloat16", "read-only"]
FLOATS = {"float16", "float32", "float64"}


def tick(outcomes: dict[str, str], case: str) -> str:
    """What a numeric column, or another case, comes to; best first, and of which dtypes."""
    cases = DTYPES if case == "column" else [case]
    kinds = grouped({name: kind(outcomes.get(name, "none")) for name in cases})
    text = next((text for outcome, text in TICKS.items() if outcome in kinds), "-")
    taken = {*kinds.get("zero-copy", []), *kinds.get("copy", [])}
    if not taken or len(taken) == len(cases):
        return text
    if taken <= FLOATS:
        return f"{text} floats"
    return f"{text} most" if len(taken) > len(cases) / 2 else f"{text} some"


def best(ticks: Iterable[str]) -> str:
    return max(ticks, key=lambda text: (text.partition(" ")[0], " " not in text))


def grid(record: dict) -> str:
    """The most important columns of the tables, as ticks: a column for each library."""
    consumers, arrow = record["consumers"], record["arrow"]
    rows = [[case, *(tick(to["outcomes"], case) for to in consumers.values())] for case in GRID]
    back = [tick(record["producers"][name]["outcomes"], "column") for name in consumers]
    ways = {
        "its column becomes an `Array`": ["from column"],
        "it takes an `Array`": ["to array", "to table"],
    }
    cells = [
        [way, *(best(tick(of.get(form, {}), "column") for form in forms) for of in arrow.values())]
        for way, forms in ways.items()
    ]
    lines = table(["it takes as a tensor", *consumers], [*rows, ["and back", *back]])
    return "\n".join([BEGIN, *lines, "", *table(["", *arrow], cells), "", END])


def write_grid() -> None:
    text = README.read_text("utf-8")
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    README.write_text(before + grid([*read().values()][-1]) + after, "utf-8")


def main() -> None:
    gc.freeze()  # or looking for leaks takes minutes
    write(measure())
    gc.unfreeze()
    PAGE.write_text(page(read()), "utf-8")
    write_grid()


if __name__ == "__main__":
    main()
