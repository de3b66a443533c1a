"""The cases of a model in service: small inputs, every option, results beside their ids."""

from typing import Any

import arrow_dlpack
import by_hand
import numpy as np
import pandas as pd
import pyarrow as pa
import torch
from arrow_dlpack import Cast, Categories, Encoder, Pad
from cases import Made, call

COLUMNS = 20
SIZES = (1, 32)


def numbers(rows: int) -> dict[str, Any]:
    """A small batch of float64, the same with nulls, and of several types."""
    random = np.random.default_rng(rows)
    columns = {f"x{at}": random.random(rows) for at in range(COLUMNS)}
    kinds = ["int16", "int32", "float32", "float64"]
    mixed = {name: own.astype(kinds[at % 4]) for at, (name, own) in enumerate(columns.items())}
    return {
        "batch": pa.record_batch(columns),
        "names": list(columns),
        "mixed": pa.record_batch(mixed),
        "frame": pd.DataFrame(columns),
        "columns": columns,
        "wide": [own.tolist() for own in columns.values()],
    }


def small(rows: int) -> None:
    """The cases of a batch with this number of rows."""
    exported = "batch.__arrow_c_array__()"
    ours = {
        "dtype=": "arrow_dlpack.to_tensor(batch, dtype='float32')",
        "columns=": "arrow_dlpack.to_tensor(batch, columns=names)",
        "nulls=": "arrow_dlpack.to_tensor(batch, nulls='nan')",
        "mixed types": "arrow_dlpack.to_tensor(mixed)",
        "dict": "arrow_dlpack.to_tensor_dict(batch)",
    }

    @call(f"small: {rows} rows", export=1.4)
    def _() -> Made:
        return numbers(rows), {"ours": "arrow_dlpack.to_tensor(batch)", "export": exported}

    for name, statement in ours.items():

        @call(f"small: {rows} rows, {name}", export=1.9)
        def _(statement: str = statement) -> Made:
            return numbers(rows), {"ours": statement, "export": exported}

    @call(f"small: {rows} rows, framework=", plain=1.2)
    def _() -> Made:
        return numbers(rows), {
            "ours": "arrow_dlpack.to_tensor(batch, framework='torch')",
            "plain": "torch.from_dlpack(arrow_dlpack.to_tensor(batch))",
        }

    @call(f"small: {rows} rows, dict for PyTorch", hand=1)
    def _() -> Made:
        hand = "{name: torch.from_numpy(batch[name].to_numpy().copy()) for name in names}"
        return numbers(rows), {
            "ours": "arrow_dlpack.to_tensor_dict(batch, framework='torch')",
            "hand": hand,
        }

    @call(f"small: {rows} rows of pandas", pandas=25)
    def _() -> Made:
        return numbers(rows), {
            "ours": "arrow_dlpack.to_tensor(frame)",
            "pandas": "frame.to_numpy()",
        }


for _rows in SIZES:
    small(_rows)


@call("small: a Boolean", pyarrow=2)
def _() -> Made:
    return {"bits": pa.array([True])}, {
        "ours": "arrow_dlpack.to_tensor(bits)",
        "pyarrow": "bits.to_numpy(zero_copy_only=False)",
    }


def encoder() -> Encoder:
    """That of `by_hand`."""
    wishes: dict[str, Any] = {name: Cast("float32", nulls="nan") for name in by_hand.NUMBERS}
    wishes |= {name: Categories(words, unknown=-1) for name, words in by_hand.WORDS.items()}
    wishes |= {"paid": None, "tokens": Pad(0, max_length=by_hand.LENGTH)}
    trained = pa.RecordBatch.from_pylist(by_hand.request(100))
    return Encoder(columns=wishes, framework="numpy").fit(trained)


for _rows in SIZES:

    @call(f"encoder: a batch of {_rows}", hand=2)
    def _(rows: int = _rows) -> Made:
        batch = pa.RecordBatch.from_pylist(by_hand.request(rows))
        names = {"encoder": encoder(), "batch": batch, "by_hand": by_hand}
        return names, {"ours": "encoder(batch)", "hand": "by_hand.of_batch(batch)"}

    @call(f"encoder: {_rows} dicts", hand=4)
    def _(rows: int = _rows) -> Made:
        names = {"encoder": encoder(), "rows": by_hand.request(rows), "by_hand": by_hand}
        return names, {"ours": "encoder(rows)", "hand": "by_hand.of_rows(rows)"}


@call("first batch of iter_batches")
def _() -> Made:
    names = numbers(1000) | {"by_hand": by_hand}
    return names, {
        "ours": "next(arrow_dlpack.iter_batches(batch, batch_size=32))",
        "hand": "[batch.slice(0, 32)[name].to_numpy() for name in names]",
    }


def parts() -> dict[str, Any]:
    """4,000 batches of 50 rows."""
    part = pa.record_batch({f"x{at}": np.random.default_rng(at).random(50) for at in range(4)})
    return {"some": [part] * 4000, "schema": part.schema, "every": every, "hand": hand}


def every(source: Any) -> int:
    """How many batches a loop over a source has."""
    return sum(1 for _ in arrow_dlpack.iter_batches(source, batch_size=50))


def hand(batches: Any) -> int:
    """The same loop by hand."""
    return sum(1 for batch in batches if [column.to_numpy() for column in batch.columns])


@call("4,000 batches of a reader", hand=2.5)
def _() -> Made:
    reader = "pa.RecordBatchReader.from_batches(schema, some)"
    return parts(), {"ours": f"every({reader})", "hand": f"hand({reader})"}


@call("4,000 batches of a generator", hand=8)
def _() -> Made:
    return parts(), {"ours": "every(one for one in some)", "hand": "hand(one for one in some)"}


@call("results beside their ids")
def _() -> Made:
    random = np.random.default_rng(0)
    names = {"ids": pa.array([f"id {at}" for at in range(32)]), "y": random.random(32, "float32")}
    return names, {
        "ours": "pa.record_batch(arrow_dlpack.record_batch({'id': ids, 'y': y}))",
        "pyarrow": "pa.record_batch({'id': ids, 'y': pa.array(y)})",
    }


@call("from_ragged: 32 tensors")
def _() -> Made:
    rows = [torch.arange(at % 7) for at in range(32)]
    return {"rows": rows}, {
        "ours": "arrow_dlpack.from_ragged(rows)",
        "pyarrow": "pa.array([row.numpy() for row in rows])",
    }


@call("a matrix as lists")
def _() -> Made:
    names = {"matrix": np.zeros((32, 384), "float32"), "of": pa.list_(pa.float32())}
    offsets = "pa.array(range(0, 32 * 384 + 1, 384), 'int32')"
    return names, {
        "ours": "arrow_dlpack.from_dlpack(matrix, type=of)",
        "pyarrow": f"pa.ListArray.from_arrays({offsets}, pa.array(matrix.reshape(-1)))",
    }
