"""Serves a model over HTTP, in a process that never saw the data of its training.

    python examples/service.py            trains, saves, serves, asks, and compares
    python examples/service.py FOLDER     serves what a training left in FOLDER

The rows of a request are what they were in training, or the answer says which value is not.
"""

import json
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt
from arrow_dlpack import Cast, Categories, Encoder, Loader

THREADS, REQUESTS = 16, 50
Weights = npt.NDArray[np.float32]


def trained(folder: Path) -> list[dict[str, Any]]:
    """Trains a line through a Parquet file, saves it, and returns some rows of the file."""
    import pyarrow as pa  # noqa: PLC0415  # the service needs neither
    import pyarrow.parquet as pq  # noqa: PLC0415

    random = np.random.default_rng(0)
    ports = np.array(["C", "Q", "S"])[random.integers(3, size=5000)]
    age = random.uniform(1, 80, 5000).round(1)
    table = pa.table(
        {
            "age": pa.array(age, mask=random.random(5000) < 0.1),
            "port": ports,
            "fare": age * 0.5 + 10 * (ports == "S") + random.normal(0, 1, 5000),
        }
    )
    pq.write_table(table, folder / "fares.parquet")
    loader = Loader(
        folder / "fares.parquet",
        batch_size=256,
        columns={"age": Cast("float32", nulls=40), "port": Categories.scan(unknown=-1)},
        label={"fare": Cast("float32")},
        framework="numpy",
        shuffle=5000,
        seed=0,
    )
    weights = np.zeros(4, "float32")
    for _ in range(60):
        for features, label in loader:
            inputs = inputs_of(features)
            weights -= 0.3 / len(label) * inputs.T @ (inputs @ weights - label)
    np.save(folder / "weights.npy", weights)
    (folder / "encoder.json").write_text(loader.encoder().to_json())
    rows: list[dict[str, Any]] = table.slice(0, 32).to_pylist()
    return rows


def inputs_of(features: dict[str, npt.NDArray[Any]]) -> Weights:
    """The age in units of 40 years, and one column for each port."""
    ports = features["port"][:, None] == np.arange(3)
    return np.column_stack([features["age"] / 40, ports]).astype("float32")


def predicted(features: dict[str, npt.NDArray[Any]], weights: Weights) -> list[float]:
    """The fares. Each is of its row alone, to the last bit, whatever rows are beside it."""
    fares: list[float] = (inputs_of(features) * weights).sum(axis=1).tolist()
    return fares


class Service(ThreadingHTTPServer):
    """Answers ``POST /`` with a list of rows by a list of predictions."""

    request_queue_size = 128  # or some of many clients at once are turned away

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.encoder = Encoder.from_json((folder / "encoder.json").read_text())
        self.weights: Weights = np.load(folder / "weights.npy")


class Handler(BaseHTTPRequestHandler):
    """One request, on a thread that shares the encoder."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # which holds the answer back for some 40 ms
    server: Service

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            features = self.server.encoder(json.loads(body))
        except (KeyError, TypeError, ValueError) as error:
            self.answer(400, {"error": error.args[0]})  # which row, which column
            return
        self.answer(200, predicted(features, self.server.weights))

    def answer(self, status: int, content: object) -> None:
        """Sends it as JSON."""
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing, for each request."""


def serve(folder: Path) -> None:
    """Serves until the standard input is closed; its first line of output is the port."""
    with Service(folder) as service:
        print(service.server_port, flush=True)
        threading.Thread(target=service.serve_forever, daemon=True).start()
        sys.stdin.read()
        service.shutdown()


def asked(port: int, rows: list[Any], times: int = 1) -> tuple[int, Any, float]:
    """The status and the content of the last answer, and the median of the milliseconds."""
    connection, taken = HTTPConnection("127.0.0.1", port), []
    for _ in range(times):
        start = time.perf_counter()
        connection.request("POST", "/", json.dumps(rows))
        response = connection.getresponse()
        content = json.loads(response.read())
        taken.append(1000 * (time.perf_counter() - start))
    connection.close()
    return response.status, content, median(taken)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = trained(folder)
        # What training itself makes of these rows.
        encoder = Encoder.from_json((folder / "encoder.json").read_text())
        expected = predicted(encoder(rows), np.load(folder / "weights.npy"))
        (folder / "fares.parquet").unlink()
        command = [sys.executable, __file__, name]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            port = int(process.stdout.readline())
            with ThreadPoolExecutor(THREADS) as pool:
                answers = list(pool.map(lambda row: asked(port, [row])[:2], rows))
            assert [status for status, _ in answers] == [200] * len(rows)
            assert [one for _, (one,) in answers] == expected
            status, wrong, _ = asked(port, [rows[0], {"age": "old", "port": "S"}])
            assert status == 400
            assert wrong["error"].startswith("row 1, column \"age\": 'old'"), wrong
            for count in 1, 32:
                _, _, alone = asked(port, rows[:count], REQUESTS)
                with ThreadPoolExecutor(THREADS) as pool:
                    some = [(port, rows[:count], REQUESTS)] * THREADS
                    together = median(
                        one for _, _, one in pool.map(lambda args: asked(*args), some)
                    )
                print(
                    f"{count} rows: {alone:.1f} ms, by {THREADS} threads at once {together:.1f} ms"
                )
            process.stdin.close()
    print(f"a second process served {len(rows)} rows as training has them, and refused a wrong one")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        serve(Path(sys.argv[1]))
    else:
        main()
