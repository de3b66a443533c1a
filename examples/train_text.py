"""Tells Rust, Python and English apart by their bytes, and goes on where it was stopped.

    python examples/train_text.py

The texts are this repository's. Each is a list of tokens in a Parquet file, and the loader pads
the lists of a batch. Training stops within an epoch and resumes from a checkpoint: the model is
then the same, number by number, as that of a training that never stopped.
"""

import random
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import torch
from arrow_dlpack import Categories, Loader, Pad

ROOT = Path(__file__).parent.parent
LANGUAGES = {"rust": "src/**/*.rs", "python": "python/**/*.py", "english": "docs/**/*.md"}
EPOCHS, STOPPED_AT = 3, 100


def write_texts(file: Path) -> None:
    """Pieces of 80 bytes, two in three as long as that, with their language."""
    texts = {
        language: b"\n".join(path.read_bytes() for path in sorted(ROOT.glob(pattern)))[:200_000]
        for language, pattern in LANGUAGES.items()
    }
    draw = random.Random(0)
    rows = [
        (np.frombuffer(text[start : start + draw.choice((40, 80, 80))], "uint8"), language)
        for language, text in texts.items()
        for start in range(0, len(text) - 80, 80)
    ]
    draw.shuffle(rows)
    tokens, languages = zip(*rows, strict=True)
    table = pa.table({"tokens": pa.array(tokens, pa.list_(pa.uint8())), "language": languages})
    is_test = pa.array([row % 5 == 0 for row in range(len(rows))])
    pq.write_table(table.append_column("is_test", is_test), file, row_group_size=1000)


def loader(file: Path, is_test: bool) -> Loader:
    return Loader(
        file,
        batch_size=64,
        columns={"tokens": Pad(0, max_length=80, dtype="int64")},
        label={"language": Categories(list(LANGUAGES), dtype="int64")},
        filter=pc.field("is_test") == is_test,
        framework="torch",
        **({} if is_test else {"shuffle": 2000, "seed": 1}),
    )


class Classifier(torch.nn.Module):
    """The strongest answer of each filter anywhere in the text."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(256, 16, padding_idx=0)
        self.filters = torch.nn.Conv1d(16, 48, 5, padding=2)
        self.languages = torch.nn.Linear(48, len(LANGUAGES))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        found = self.filters(self.embedding(tokens).transpose(1, 2))
        return self.languages(torch.relu(found).amax(2))


def train(file: Path, checkpoint: Path, stop: int | None = None) -> Classifier:
    """From the checkpoint on, if there is one; after `stop` steps it writes one and ends."""
    torch.manual_seed(0)
    model, batches = Classifier(), loader(file, is_test=False)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    first = 0
    if checkpoint.exists():
        saved = torch.load(checkpoint)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        batches.load_state_dict(saved["loader"])
        first = saved["loader"]["epoch"]
    step = 0
    for epoch in range(first, EPOCHS):
        for features, labels in batches:
            scores = model(features["tokens"].values)
            loss = torch.nn.functional.cross_entropy(scores, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step == stop:
                parts = {"model": model, "optimizer": optimizer, "loader": batches}
                torch.save({name: of.state_dict() for name, of in parts.items()}, checkpoint)
                return model
        print(f"epoch {epoch}: {step} steps in this process, the last loss {loss.item():.3f}")
    return model


@torch.no_grad()
def accuracy(model: Classifier, file: Path) -> float:
    right = [
        model(features["tokens"].values).argmax(1) == labels
        for features, labels in loader(file, is_test=True)
    ]
    return torch.cat(right).float().mean().item()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        file, checkpoint = Path(folder, "texts.parquet"), Path(folder, "checkpoint.pt")
        write_texts(file)
        whole = train(file, checkpoint)
        train(file, checkpoint, stop=STOPPED_AT)
        print(f"stopped after {STOPPED_AT} steps")
        resumed = train(file, checkpoint)
        share = accuracy(resumed, file)
    print(f"languages told apart: {share:.1%} of texts that it has not seen, a third by chance")
    assert share > 0.8, share
    pairs = zip(whole.parameters(), resumed.parameters(), strict=True)
    assert all(torch.equal(one, other) for one, other in pairs)
    print("the model that was stopped and resumed is the same as the one that was not")


if __name__ == "__main__":
    main()
