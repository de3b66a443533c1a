"""Every neighbour does what the record says of it, and the documents say what the record says."""

import subprocess
import sys
import tomllib
from pathlib import Path

import compatibility
import numpy as np
import pyarrow as pa
import pytest
from arrow_dlpack import Array, from_dlpack
from arrow_dlpack._doctor.libraries import ARROW_LIBRARIES, TENSOR_LIBRARIES
from arrow_libraries import FORMS, begins, source
from compatibility import SECTIONS, kind
from conftest import LEFT_OUT, open_tensors
from consumers import Case, consumed
from frameworks import DTYPES
from outcomes import aligned, numbers
from packaging.requirements import Requirement

# pyarrow, of the legacy capsules that are asked for here to see what it does.
pytestmark = pytest.mark.filterwarnings("ignore:Exporting an unversioned:DeprecationWarning")

ROOT = Path(__file__).parents[2]
RECORDS = compatibility.read()
RECORD = compatibility.of_this_stack(RECORDS)
WORKS = ("zero-copy", "copy")
ADVICE = """
A neighbour does something else than python/tests/neighbours/ says. If that is right, run
`make compatibility PYTHON=...`, and look at what it changes there and in the documents before you
commit."""


@pytest.mark.parametrize(
    ("section", "name"),
    [(section, name) for section, (_, names) in SECTIONS.items() for name in names],
)
def test_a_neighbour_does_what_is_recorded(section, name):
    measure, _ = SECTIONS[section]
    assert measure(name) == RECORD[section][name], ADVICE


def test_the_page_has_the_record():
    assert compatibility.PAGE.read_text("utf-8") == compatibility.page(RECORDS), ADVICE
    newest = [*RECORDS.values()][-1]
    assert compatibility.grid(newest) in compatibility.README.read_text("utf-8"), ADVICE


def test_there_are_neighbours_enough():
    assert len(RECORD["consumers"]) >= 10
    assert len(RECORD["arrow"]) >= 7


def test_the_versions_are_those_that_are_pinned():
    project = tomllib.loads((ROOT / "python" / "pyproject.toml").read_text("utf-8"))
    groups = project["dependency-groups"]
    lines = groups["demo"] + groups["neighbours"] + groups["heavy"]
    pins = [Requirement(line) for line in lines if isinstance(line, str)]
    here = {pin.name: pin.specifier for pin in pins if not pin.marker or pin.marker.evaluate()}
    for library in (*ARROW_LIBRARIES.values(), *TENSOR_LIBRARIES.values()):
        if library.module not in LEFT_OUT:
            assert str(here[library.distribution]) == f"=={library.version()}"


@pytest.mark.parametrize("name", TENSOR_LIBRARIES)
def test_whatever_goes_wrong_is_not_of_our_making(name):
    """A consumer may refuse, but what it takes from here it has right, byte offsets included."""
    outcomes = RECORD["consumers"][name]["outcomes"]
    assert kind(outcomes["byte offset"]) in WORKS
    assert kind(outcomes["slice"]) in WORKS
    assert outcomes["empty"] == "zero-copy"
    assert not [case for case, outcome in outcomes.items() if "leaks" in outcome]


@pytest.mark.parametrize("name", ARROW_LIBRARIES)
def test_array_takes_whatever_an_arrow_library_has(name):
    for form in FORMS:
        outcomes = RECORD["arrow"][name].get(f"from {form}", {})
        assert "refused" not in map(kind, outcomes.values()), form


def has(name: str, form: str, case: str) -> bool:
    """Whether an Arrow library has such a column to hand out."""
    return kind(RECORD["arrow"][name].get(f"from {form}", {}).get(case, "none")) in WORKS


# Each form in which an Arrow library has a column, with each dtype that it can hold.
SOURCES = [
    (name, form, dtype)
    for name in ARROW_LIBRARIES
    for form in ("array", "chunked", "column")
    for dtype in DTYPES
    if has(name, form, dtype)
]
INSTALLED = {
    name: library for name, library in TENSOR_LIBRARIES.items() if library.module not in LEFT_OUT
}
LAYOUTS = {"whole": (0, None), "slice": (1, None), "empty": (3, 0)}


def recorded(consumer: str, dtype: str, values: np.ndarray, address: int) -> str:
    """What the record says of a column of this dtype that begins at this address."""
    outcomes = RECORD["consumers"][consumer]["outcomes"]
    if kind(outcomes[dtype]) not in WORKS:
        return outcomes[dtype]
    if values.size == 0:
        return outcomes["empty"]
    return outcomes[dtype if address % 64 == 0 else "slice"]


@pytest.mark.parametrize(("name", "form", "dtype"), SOURCES)
def test_every_source_reaches_every_consumer(name, form, dtype):
    expected, outcomes = {}, {}
    for layout, (offset, length) in LAYOUTS.items():
        if layout == "empty" and not has(name, form, "empty"):
            continue
        values = numbers(dtype).slice(offset, length)
        array = Array(source(ARROW_LIBRARIES[name], form, values))
        address = begins(pa.array(array))
        for consumer, library in INSTALLED.items():
            case = Case(array, values.to_numpy(), address)
            expected[consumer, layout] = recorded(consumer, dtype, case.expected, address)
            outcomes[consumer, layout] = consumed(library, case)
        assert array.to_tensor().readonly
    assert outcomes == expected


@pytest.mark.parametrize("consumer", TENSOR_LIBRARIES)
@pytest.mark.parametrize("name", ARROW_LIBRARIES)
def test_a_tensor_outlives_the_column_it_came_from(name, consumer):
    library = TENSOR_LIBRARIES[consumer]
    before = open_tensors()
    column = ARROW_LIBRARIES[name].make([0.5, 1.5, 2.5])
    array = Array(column)
    tensor = library.consume(array)
    shared = library.address(tensor) == begins(pa.array(array))
    del column, array
    assert open_tensors() == (before[0] + shared, before[1]), "freed too early"
    assert library.to_numpy(tensor).tolist() == [0.5, 1.5, 2.5]
    del tensor
    assert open_tensors(before) == before, "not freed with the last holder"


@pytest.mark.parametrize("name", TENSOR_LIBRARIES)
def test_an_array_outlives_the_tensor_it_came_from(name):
    before = open_tensors()
    tensor = TENSOR_LIBRARIES[name].produce(aligned(np.float32([0.5, 1.5, 2.5])))
    array = pa.array(from_dlpack(tensor))
    del tensor
    last = array.slice(2)
    del array
    assert open_tensors() == (before[0], before[1] + 1), "freed too early"
    assert last.to_pylist() == [2.5]
    del last
    assert open_tensors(before) == before, "not freed with the last slice"


def test_the_table_imports_nothing():
    """Nor does the package read the table."""
    code = """
import sys, arrow_dlpack
assert "arrow_dlpack._doctor.libraries" not in sys.modules
from arrow_dlpack._doctor.libraries import ARROW_LIBRARIES, TENSOR_LIBRARIES
for library in [*ARROW_LIBRARIES.values(), *TENSOR_LIBRARIES.values()]:
    assert library.module.partition(".")[0] not in sys.modules, library
"""
    subprocess.run([sys.executable, "-c", code], check=True)
