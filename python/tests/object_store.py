"""A store with S3's interface on this machine, by moto: it can be slow, it counts, it can fail.

As a program it serves until its input ends; its first line of output is its address.
"""

import argparse
import contextlib
import importlib
import os
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass

import moto.server
import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq

BUCKET = "rows"
KEYS = {"access_key": "test", "secret_key": "test"}
REGION = "us-east-1"
# A Parquet file ends with the length of its footer and four letters.
TAIL = 8


@dataclass(frozen=True)
class Request:
    """What was asked for, and what of it came: bytes `start` to before `stop` of `size`."""

    method: str
    key: str
    start: int = 0
    stop: int = 0
    size: int = 0

    @property
    def has_footer(self):
        return self.method == "GET" and self.start <= self.size - TAIL < self.stop


class Store:
    """A server in threads of this process; each request waits `delay` seconds for its answer."""

    def __init__(self, delay=0.0):
        self.delay = delay
        self.requests = []
        self.most_at_once, self._at_once = 0, 0
        self._failing = None
        self._lock = threading.Lock()
        self._moto = moto.server.DomainDispatcherApplication(moto.server.create_backend_app)
        self._server = server_of(self._answer)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.address = f"127.0.0.1:{self._server.server_port}"

    def close(self):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def fail(self, key, after=0):
        """Refuses what is asked for of objects whose key has this in it, but the first few GETs."""
        self._failing = (key, after)

    def recover(self):
        self._failing = None

    def forget(self):
        """Counts from here on."""
        self.requests.clear()
        self.most_at_once = 0

    def counted(self, method="GET"):
        """How many requests there were of each object."""
        return Counter(one.key for one in self.requests if one.method == method)

    def footers(self):
        """How many requests there were of the end of each object, where a file has its footer."""
        return Counter(
            one.key for one in self.requests if one.has_footer and one.key.endswith(".parquet")
        )

    def _answer(self, environ, start_response):
        method, key = environ["REQUEST_METHOD"], environ["PATH_INFO"].removeprefix(f"/{BUCKET}/")
        is_refused = method == "GET" and self._refuses(key)
        with self._lock:
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        time.sleep(self.delay)
        with self._lock:
            self._at_once -= 1
        if is_refused:
            self.requests.append(Request(method, key))
            start_response("403 Forbidden", [("Content-Length", "0")])
            return [b""]

        def counted(status, headers, *error):
            lower = {name.lower(): value for name, value in headers}
            size = int(lower.get("content-length", 0))
            part = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+)", lower.get("content-range", ""))
            start, last, size = map(int, part.groups()) if part else (0, size - 1, size)
            self.requests.append(Request(method, key, start, last + 1, size))
            return start_response(status, headers, *error)

        return self._moto(environ, counted)

    def _refuses(self, key):
        with self._lock:
            if self._failing is None or self._failing[0] not in key:
                return False
            part, after = self._failing
            self._failing = (part, after - 1)
            return after <= 0


def server_of(answer):
    """A thread for each connection, which is kept."""
    # Of moto, and so not there where moto was left out.
    serving = importlib.import_module("werkzeug.serving")

    class Silent(serving.WSGIRequestHandler):
        protocol_version = "HTTP/1.1"
        # Or a small answer waits for the client's acknowledgement, some 40 ms.
        disable_nagle_algorithm = True

        def log(self, *_):
            pass

    server = serving.make_server("127.0.0.1", 0, answer, request_handler=Silent, threaded=True)
    server.daemon_threads = True
    return server


def filesystem(address):
    """pyarrow's own client."""
    return pa.fs.S3FileSystem(
        **KEYS,
        region=REGION,
        scheme="http",
        endpoint_override=address,
        allow_bucket_creation=True,
    )


def variables(address):
    """Environment variables, by which fsspec reads s3:// paths from this store."""
    return {
        "AWS_ACCESS_KEY_ID": KEYS["access_key"],
        "AWS_SECRET_ACCESS_KEY": KEYS["secret_key"],
        "AWS_DEFAULT_REGION": REGION,
        "AWS_ENDPOINT_URL": f"http://{address}",
        "AWS_EC2_METADATA_DISABLED": "true",
        "NO_PROXY": "127.0.0.1",
    }


def put(system, key, rows, groups=2):
    """Writes a Parquet file of `groups` row groups, and returns its path for pyarrow."""
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, row_group_size=-(-len(rows) // groups))
    path = f"{BUCKET}/{key}"
    with system.open_output_stream(path) as file:
        file.write(sink.getvalue())
    return path


def fill(system, rows, files, folder="many"):
    """Writes the rows in several files, in their order, and returns the paths."""
    system.create_dir(BUCKET)
    each = len(rows) // files
    return [
        put(system, f"{folder}/{at:05}.parquet", rows.slice(at * each, each)) for at in range(files)
    ]


@contextlib.contextmanager
def in_process_of_its_own(delay):
    """The address of a store, whose threads take no time of ours."""
    command = [sys.executable, __file__, "--delay", str(delay)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, env=os.environ, text=True, **pipes) as process:
        yield process.stdout.readline().strip()
        process.stdin.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before each answer")
    store = Store(parser.parse_args().delay)
    print(store.address, flush=True)
    sys.stdin.read()
    store.close()


if __name__ == "__main__":
    main()
