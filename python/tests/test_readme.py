"""The README's tables and links are true; so is the code on the crate's page."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import arrow_dlpack
import mlx.core
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
import torch
from arrow_dlpack import Array, explain, from_dlpack, to_tensor

# pyarrow's of types that it then refuses.
pytestmark = pytest.mark.filterwarnings("ignore:Exporting an unversioned:DeprecationWarning")

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
CARGO = tomllib.loads((ROOT / "Cargo.toml").read_text("utf-8"))


def rows_of(heading: str) -> dict[str, list[str]]:
    """The first table below a heading: the first cell of each row, and the others."""
    lines = README.split(f"\n## {heading}\n")[1].partition("\n|")[2].partition("\n\n")[0]
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines.splitlines()[2:]]
    return {first: rest for first, *rest in cells}


# --- what is zero-copy ----------------------------------------------------------------------------

MATRICES = np.arange(12.0).reshape(2, 2, 3)
BFLOATS = from_dlpack(torch.ones(3, dtype=torch.bfloat16), type="opaque")
LISTS = pa.array([[1, 2], [3]])
CHUNKS = pa.chunked_array([[1], [2]])
TABLE = pa.table({"a": [1.5, None], "b": [1.0, 2.0]})

PLANS = {
    "integers and floats, also sliced": [explain(pa.array([1, 2])[1:])],
    "fixed-size lists, `fixed_shape_tensor` (images, embeddings)": [
        explain(pa.FixedShapeTensorArray.from_numpy_ndarray(MATRICES)),
        explain(pa.array([[1, 2]], pa.list_(pa.int8(), 2))),
    ],
    "bfloat16, float8 and such, kept as `arrow.opaque`": [explain(BFLOATS)],
    "dates, times, decimals of 64 bits, with `physical=True`": [
        explain(pa.array([0], kind), physical=True)
        for kind in (pa.date32(), pa.time64("us"), pa.timestamp("s"), pa.decimal64(3))
    ],
    "lists and texts, by `ragged`": [
        arrow_dlpack.ragged(column, copy=False) and explain(column.flatten())
        for column in (LISTS, LISTS.cast(pa.large_list(pa.int64())))
    ],
    "lists and texts, by `to_tensor(pad=)`": [explain(LISTS, pad=0)],
    "booleans, which Arrow keeps as bits": [explain(pa.array([True]))],
    "several chunks; nulls that are replaced": [
        explain(CHUNKS),
        explain(pa.array([1, None]), nulls=0),
    ],
    "tables and record batches": [explain(TABLE.select(["b"]).append_column("c", TABLE["b"]))],
    "strided, reversed or broadcast tensors, to Arrow": [
        explain(np.arange(6)[::2]),
        explain(np.arange(6)[::-1]),
        explain(np.broadcast_to(1.0, (3,))),
    ],
}


def test_what_is_zero_copy_is_so():
    found = rows_of("What is zero-copy")
    assert list(found) == list(PLANS)
    for row, plans in PLANS.items():
        expected = found[row][-1] == "zero-copy"
        assert [plan.zero_copy for plan in plans] == [expected] * len(plans), row


# --- how it differs -------------------------------------------------------------------------------

NUMBERS = pa.array([1.5, 2.5, 4.0])
STRIDED = np.arange(6)[::2]
BOOLS = pa.array([True, False])
WHEN = pa.array([0, 1], pa.timestamp("us"))
SIXTEEN = torch.ones(3, dtype=torch.bfloat16)
VALUES = np.arange(3.0)
FROM_MLX = mlx.core.arange(3.0)


def address(x) -> int:
    """Of the first value."""
    if isinstance(x, pl.DataFrame):
        x = x.to_series().to_arrow()
    if hasattr(x, "__arrow_c_array__") and not hasattr(x, "__dlpack__"):
        x = pa.array(x)
    if isinstance(x, pa.ExtensionArray):
        x = x.storage
    if isinstance(x, pa.FixedSizeListArray):
        x = x.flatten()
    if isinstance(x, pa.Array):
        return x.buffers()[1].address
    if isinstance(x, torch.Tensor):
        return x.data_ptr()
    return np.from_dlpack(x).ctypes.data


MATRIX = pa.FixedShapeTensorArray.from_numpy_ndarray(MATRICES)
ROWS = pl.Series(MATRICES.reshape(2, -1), dtype=pl.Array(pl.Float64, 6))
BATCH = TABLE.to_batches()[0]

# What goes in, and what arrow_dlpack, pyarrow and polars make of it.
DIFFERENCES = {
    "a column of numbers to a tensor": (
        NUMBERS,
        lambda: np.from_dlpack(Array(NUMBERS)),
        lambda: np.from_dlpack(NUMBERS),
        lambda: pl.Series(NUMBERS).to_torch(),
    ),
    "a tensor to a column": (
        VALUES,
        lambda: pa.array(from_dlpack(VALUES)),
        lambda: pa.Array.from_dlpack(VALUES),
        lambda: pl.from_torch(torch.from_numpy(VALUES)),
    ),
    "a strided tensor to a column": (
        STRIDED,
        lambda: pa.array(from_dlpack(STRIDED)),
        lambda: pa.Array.from_dlpack(STRIDED),
        lambda: pl.from_torch(torch.from_numpy(STRIDED)),
    ),
    "a column of matrices to a tensor": (
        MATRIX,
        lambda: np.from_dlpack(Array(MATRIX)),
        lambda: np.from_dlpack(MATRIX.to_tensor()),
        ROWS.to_torch,
    ),
    "a table to a matrix, nulls as NaN": (
        TABLE["b"].chunk(0),
        lambda: np.from_dlpack(to_tensor(TABLE, nulls="nan")),
        lambda: np.from_dlpack(BATCH.to_tensor(null_to_nan=True)),
        lambda: pl.DataFrame(TABLE).to_torch(),
    ),
    # pyarrow and polars have no function for these.
    "nulls as a value, or with a mask": (
        TABLE["a"].chunk(0),
        lambda: np.from_dlpack(to_tensor(TABLE["a"], nulls=0)),
        None,
        None,
    ),
    "booleans": (
        BOOLS,
        lambda: np.from_dlpack(Array(BOOLS)),
        lambda: np.from_dlpack(BOOLS),
        lambda: pl.Series(BOOLS).to_torch(),
    ),
    "dates and times": (
        WHEN,
        lambda: np.from_dlpack(to_tensor(WHEN, physical=True)),
        lambda: np.from_dlpack(WHEN),
        lambda: pl.Series(WHEN).to_torch(),
    ),
    "lists and texts": (
        LISTS.flatten(),
        lambda: np.from_dlpack(arrow_dlpack.ragged(LISTS).values),
        lambda: np.from_dlpack(LISTS),
        lambda: pl.Series(LISTS).to_torch(),
    ),
    "bfloat16 to a column": (
        SIXTEEN,
        lambda: pa.array(from_dlpack(SIXTEEN, type="opaque")),
        lambda: pa.Array.from_dlpack(SIXTEEN),
        lambda: pl.from_torch(SIXTEEN),
    ),
    "tensors of the legacy protocol (MLX)": (
        FROM_MLX,
        lambda: pa.array(from_dlpack(FROM_MLX)),
        lambda: pa.Array.from_dlpack(FROM_MLX),
        None,
    ),
}


def outcome(source, convert) -> str:
    if convert is None:
        return "-"
    try:
        made = convert()
    except (TypeError, ValueError, pa.ArrowException, BufferError):
        return "-"
    return "zero-copy" if address(made) == address(source) else "copy"


@pytest.mark.parametrize("row", DIFFERENCES)
def test_it_differs_as_it_says(row):
    source, *converts = DIFFERENCES[row]
    # The last column is dlpark's: tests/neighbours and benches/rust have its code.
    assert rows_of("How it differs")[row][:-1] == [outcome(source, make) for make in converts]


def test_every_difference_was_measured():
    assert list(rows_of("How it differs")) == list(DIFFERENCES)


# --- links ----------------------------------------------------------------------------------------

REPOSITORY = CARGO["workspace"]["package"].get("repository")


def leading_nowhere(readme: str, repository: str) -> list[str]:
    """The links that registries cannot follow to a file of the repository."""
    ours = [link for link in links_of(readme) if link.startswith(repository) or "://" not in link]
    assert len(ours) > 25
    nowhere = []
    for link in ours:
        begin = f"{repository}/{'raw' if link.endswith('svg') else 'blob'}/HEAD/"
        if not (link.startswith(begin) and (ROOT / link.removeprefix(begin)).exists()):
            nowhere.append(link)
    return nowhere


def links_of(readme: str) -> list[str]:
    return re.findall(r"\]\((\S+?)\)", readme)


def test_links_lead_to_the_repository(tmp_path):
    """Its address is not known yet: until `.ci/address.py` writes it, this does so on a copy."""
    if REPOSITORY is not None:
        assert leading_nowhere(README, REPOSITORY) == []
        return
    files = [link for link in links_of(README) if "://" not in link]
    assert [link for link in files if not (ROOT / link).exists()] == []

    manifests = ["Cargo.toml", "python/Cargo.toml", "datafusion/Cargo.toml"]
    for file in ["README.md", "mkdocs.yml", *manifests]:
        (tmp_path / file).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / file, tmp_path / file)
    address = "https://example.org/a/b"
    command = [sys.executable, ROOT / ".ci/address.py", address + "/", tmp_path]
    subprocess.run(command, check=True)

    assert leading_nowhere((tmp_path / "README.md").read_text("utf-8"), address) == []
    root, *members = (tomllib.loads((tmp_path / file).read_text("utf-8")) for file in manifests)
    assert root["workspace"]["package"]["repository"] == address
    for manifest in [root, *members]:
        assert manifest["package"]["repository"] == {"workspace": True}
    assert f"link: {address}}}\n" in (tmp_path / "mkdocs.yml").read_text("utf-8")

    again = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (again.returncode, again.stderr) == (1, "Cargo.toml has a repository already\n")


def test_it_is_short():
    lines = README.count("\n")
    assert lines < 145, "what takes longer to say belongs into docs/"


# --- the crate's page -----------------------------------------------------------------------------


def test_code_on_the_crates_page_that_is_not_a_doctest_is_from_an_example():
    """Other tests build and run the examples."""
    page = re.sub(r"^//! ?", "", (ROOT / "src/lib.rs").read_text("utf-8"), flags=re.M)
    sources = [
        (ROOT / "examples" / name).read_text("utf-8")
        for name in ("candle/src/main.rs", "extension/src/lib.rs")
    ]
    blocks = re.findall(r"^```ignore\n(.*?)^```$", page, re.M | re.S)
    assert len(blocks) == len(sources)
    for block, source in zip(blocks, sources, strict=True):
        assert block in source


def test_functions_in_the_guide_to_extensions_are_from_the_example():
    guide = (ROOT / "docs/guides/extensions.md").read_text("utf-8")
    source = (ROOT / "examples/extension/src/lib.rs").read_text("utf-8")
    (block,) = re.findall(r"^```rust,ignore\n(.*?)^```$", guide, re.M | re.S)
    _uses, *functions = block.split("\n\n")
    assert len(functions) == 2
    for function in functions:
        assert function.strip() in source
