"""Learns shapes from PNG files that lie as bytes in a column of a Parquet file.

    python examples/train_images.py

The loader hands the images of a batch over as an Arrow array; `decoded` makes pixels of them, in
the thread that makes batches ahead of the model.
"""

import io
import random
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import torch
from arrow_dlpack import AsArrow, Categories, Loader
from PIL import Image, ImageDraw

SHAPES = ["circle", "square", "triangle"]
IMAGES, SIDE, EPOCHS = 2000, 32, 4


def png(shape: str, draw: random.Random) -> bytes:
    """A shape somewhere, of any size, in any two colours."""
    colors = [tuple(draw.randrange(256) for _ in "rgb") for _ in range(2)]
    image = Image.new("RGB", (SIDE, SIDE), colors[0])
    radius = draw.randint(6, 12)
    x, y = (draw.randint(radius, SIDE - radius) for _ in "xy")
    sides = {"square": 4, "triangle": 3}.get(shape)
    pen = ImageDraw.Draw(image)
    if sides is None:
        pen.circle((x, y), radius, colors[1])
    else:
        pen.regular_polygon((x, y, radius), sides, fill=colors[1])
    file = io.BytesIO()
    image.save(file, "png")
    return file.getvalue()


def write_images(file: Path) -> None:
    draw = random.Random(0)
    shapes = [draw.choice(SHAPES) for _ in range(IMAGES)]
    table = pa.table({
        "png": [png(shape, draw) for shape in shapes],
        "shape": shapes,
        "is_test": [row % 5 == 0 for row in range(IMAGES)],
    })  # fmt: skip
    pq.write_table(table, file, row_group_size=500)


def decoded(batch: tuple) -> tuple[torch.Tensor, torch.Tensor]:
    """Pixels from -1 to 1, (images, colours, rows, columns), and what is to be seen."""
    features, labels = batch
    files = pa.array(features["png"])
    pixels = np.stack([np.asarray(Image.open(io.BytesIO(one.as_py()))) for one in files])
    return torch.from_numpy(pixels).permute(0, 3, 1, 2) / 127.5 - 1, labels


def loader(file: Path, is_test: bool) -> Loader:
    return Loader(
        file,
        batch_size=64,
        columns={"png": AsArrow()},
        label={"shape": Categories(SHAPES, dtype="int64")},
        filter=pc.field("is_test") == is_test,
        framework="torch",
        transform=decoded,
        prefetch=4,
        **({} if is_test else {"shuffle": 1000, "seed": 1}),
    )


def block(inputs: int, outputs: int) -> list[torch.nn.Module]:
    convolution = torch.nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
    return [convolution, torch.nn.BatchNorm2d(outputs), torch.nn.ReLU(), torch.nn.MaxPool2d(2)]


def main() -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        *block(3, 16), *block(16, 32), *block(32, 32), torch.nn.Flatten(), torch.nn.LazyLinear(3)
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "images.parquet")
        write_images(file)
        batches = loader(file, is_test=False)
        model(next(iter(batches))[0])  # the last layer sees how wide it is
        batches.set_epoch(0)
        optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
        for epoch in range(EPOCHS):
            for pixels, labels in batches:
                loss = torch.nn.functional.cross_entropy(model(pixels), labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            print(f"epoch {epoch}: the last loss {loss.item():.3f}")
        model.eval()
        with torch.no_grad():
            right = [
                model(pixels).argmax(1) == labels for pixels, labels in loader(file, is_test=True)
            ]
    share = torch.cat(right).float().mean().item()
    print(f"shapes told apart: {share:.1%} of images that it has not seen, a third by chance")
    assert share > 0.8, share


if __name__ == "__main__":
    main()
