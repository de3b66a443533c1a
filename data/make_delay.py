"""The small model of the query examples: the arrival delay from distance, hour and month.

    uv run data/make_delay.py

Trains it on flights.parquet, and writes it twice: delay.onnx for ONNX Runtime, delay.json (weights
and biases, layer by layer) for a computation by hand.
"""

# /// script
# dependencies = ["numpy==2.4.6", "onnx==1.23.2", "pyarrow==26.0.1"]
# ///

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import pyarrow.parquet as pq
from onnx import TensorProto, helper, numpy_helper

DATA = Path(__file__).parent
FEATURES = ["distance", "hour", "month"]
HIDDEN = 32
STEPS, BATCH, RATE = 3_000, 512, 3e-3


def main() -> None:
    table = pq.read_table(DATA / "flights.parquet", columns=[*FEATURES, "arr_delay"]).drop_null()
    inputs = np.column_stack([table[name].to_numpy() for name in FEATURES]).astype("float32")
    delays = table["arr_delay"].to_numpy().astype("float32")
    layers = train(inputs, delays)
    error = np.abs(forward(layers, inputs)[-1][:, 0] - delays).mean()
    print(f"{delays.mean():.1f} minutes on average, predicted to {error:.1f}")

    numbers = [[weights.tolist(), bias.tolist()] for weights, bias in layers]
    (DATA / "delay.json").write_text(json.dumps(numbers) + "\n")
    onnx.save(to_onnx(layers), DATA / "delay.onnx")


def train(inputs: np.ndarray, delays: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Three layers by Adam, for inputs as they are: their scaling ends up in the first layer."""
    random = np.random.default_rng(0)
    mean, spread = inputs.mean(0), inputs.std(0)
    scaled = (inputs - mean) / spread

    def layer(before: int, after: int) -> list[np.ndarray]:
        weights = random.normal(0, (2 / before) ** 0.5, (before, after))
        return [weights.astype("float32"), np.zeros(after, "float32")]

    layers = [layer(*widths) for widths in pairwise([len(FEATURES), HIDDEN, HIDDEN, 1])]
    first = [[np.zeros_like(p) for p in layer] for layer in layers]
    second = [[np.zeros_like(p) for p in layer] for layer in layers]
    for step in range(1, STEPS + 1):
        rows = random.integers(0, len(scaled), BATCH)
        values = forward(layers, scaled[rows])
        error = (values[-1][:, 0] - delays[rows])[:, None] * (2 / BATCH)
        rate = RATE * (1 - step / STEPS)
        for index in reversed(range(len(layers))):
            gradients = [values[index].T @ error, error.sum(0)]
            error = (error @ layers[index][0].T) * (values[index] > 0)
            for place, gradient in enumerate(gradients):
                m = first[index][place] = 0.9 * first[index][place] + 0.1 * gradient
                v = second[index][place] = 0.999 * second[index][place] + 0.001 * gradient**2
                scale = (1 - 0.999**step) ** 0.5 / (1 - 0.9**step)
                layers[index][place] -= rate * scale * m / (np.sqrt(v) + 1e-8)
    weights, bias = layers[0]
    layers[0] = [weights / spread[:, None], bias - (mean / spread) @ weights]
    return [(w.astype("float32"), b.astype("float32")) for w, b in layers]


def forward(layers: list, inputs: np.ndarray) -> list[np.ndarray]:
    """What goes into each layer, and what comes out of the last."""
    values = [inputs]
    for index, (weights, bias) in enumerate(layers):
        after = values[-1] @ weights + bias
        values.append(np.maximum(after, 0) if index + 1 < len(layers) else after)
    return values


def to_onnx(layers: list[tuple[np.ndarray, np.ndarray]]) -> onnx.ModelProto:
    nodes, weights, name = [], [], "features"
    for index, (weight, bias) in enumerate(layers):
        last = index + 1 == len(layers)
        weights.append(numpy_helper.from_array(weight, f"w{index}"))
        weights.append(numpy_helper.from_array(bias, f"b{index}"))
        after = "delay" if last else f"layer{index}"
        nodes.append(helper.make_node("Gemm", [name, f"w{index}", f"b{index}"], [after]))
        if not last:
            nodes.append(helper.make_node("Relu", [after], [f"relu{index}"]))
        name = f"relu{index}"
    features = helper.make_tensor_value_info("features", TensorProto.FLOAT, ["rows", len(FEATURES)])
    delay = helper.make_tensor_value_info("delay", TensorProto.FLOAT, ["rows", 1])
    graph = helper.make_graph(nodes, "delay", [features], [delay], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.checker.check_model(model)
    return model


if __name__ == "__main__":
    main()
