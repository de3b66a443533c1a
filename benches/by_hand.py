"""What one writes without this package to serve a model: a request as NumPy arrays, as in training.

14 numbers as float32, of which a null is NaN; 4 texts as codes, -1 for an unknown one; a boolean;
and a list of tokens, padded to a length. The cases of `encoder` are measured against these.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

NUMBERS = [f"x{at}" for at in range(14)]
WORDS = {f"c{at}": [f"word {at} {word}" for word in range(20)] for at in range(4)}
LENGTH = 16

Array = npt.NDArray[Any]
_CODES = {name: {word: code for code, word in enumerate(words)} for name, words in WORDS.items()}
_SETS = {name: pa.array(words) for name, words in WORDS.items()}


def of_batch(batch: pa.RecordBatch) -> dict[str, Array]:
    """Of a record batch, by pyarrow's kernels."""
    made: dict[str, Array] = {}
    for name in NUMBERS:
        made[name] = batch.column(name).to_numpy(zero_copy_only=False).astype("float32")
    for name, words in _SETS.items():
        codes = pc.index_in(batch.column(name), value_set=words)
        made[name] = codes.fill_null(-1).to_numpy()
    made["paid"] = batch.column("paid").to_numpy(zero_copy_only=False)
    lists = batch.column("tokens")
    offsets, values = lists.offsets.to_numpy(), lists.values.to_numpy()
    lengths = np.minimum(np.diff(offsets), LENGTH)
    tokens = np.zeros((len(lists), LENGTH), "int64")
    for row, (start, length) in enumerate(zip(offsets, lengths, strict=False)):
        tokens[row, :length] = values[start : start + length]
    return made | {"tokens": tokens, "lengths": lengths}


def of_rows(rows: Sequence[Mapping[str, Any]]) -> dict[str, Array]:
    """Of dicts, as a request in JSON has them."""
    made: dict[str, Array] = {}
    for name in NUMBERS:
        made[name] = np.array([row[name] for row in rows], "float32")
    for name, codes in _CODES.items():
        made[name] = np.array([codes.get(row[name], -1) for row in rows], "int32")
    made["paid"] = np.array([row["paid"] for row in rows], "bool")
    tokens, lengths = np.zeros((len(rows), LENGTH), "int64"), []
    for at, row in enumerate(rows):
        own = row["tokens"][:LENGTH]
        tokens[at, : len(own)] = own
        lengths.append(len(own))
    return made | {"tokens": tokens, "lengths": np.array(lengths)}


def request(rows: int) -> list[dict[str, Any]]:
    """Rows as a client sends them."""
    random = np.random.default_rng(rows)
    return [
        {name: float(random.random()) for name in NUMBERS}
        | {name: words[int(random.integers(len(words)))] for name, words in WORDS.items()}
        | {"paid": bool(random.integers(2)), "tokens": random.integers(0, 9, 12).tolist()}
        for _ in range(rows)
    ]
