"""Several interpreters in one process: the package is for the main one, and no other harms it.

Each CPython that is at hand is tried: they differ in how sub-interpreters come and go.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import arrow_dlpack
import pytest
from conftest import environment

PROGRAM = '''
import array, sys
import importlib.util

def in_a_sub_interpreter(code):
    """As mod_wsgi has them: one lock for all, and whatever C code there is may be imported."""
    if sys.version_info < (3, 13):
        import _xxsubinterpreters as interpreters

        made = interpreters.create(isolated=False)
        interpreters.run_string(made, code)
    else:
        import _interpreters as interpreters

        made = interpreters.create("legacy")
        assert interpreters.exec(made, code) is None
    interpreters.destroy(made)

REFUSED = """
import sys
for _ in range(2):
    try:
        import arrow_dlpack
    except ImportError as error:
        assert "main interpreter only" in str(error) and "GLOBAL" in str(error), error
    else:
        raise AssertionError("it was imported")
assert "arrow_dlpack" not in sys.modules
"""

def main():
    import arrow_dlpack

    tensor = arrow_dlpack.asdlpack(array.array("f", [1.0, 2.0] * 200_000), copy=True)
    column = arrow_dlpack.from_dlpack(tensor)
    batches = arrow_dlpack.iter_batches(column, batch_size=300_000, format="matrix", prefetch=2)
    assert [batch.shape[0] for batch in batches] == [300_000, 100_000]

in_a_sub_interpreter(REFUSED)
main()
in_a_sub_interpreter(REFUSED)
main()
print("done")
'''


AT_THE_END = """
import threading, time
import numpy as np, pyarrow as pa
from arrow_dlpack import Array, from_dlpack

class Slow:
    def __init__(self, data):
        self.data = data

    def __dlpack__(self, **keywords):
        time.sleep(0.001)  # lets go of the interpreter, and wants it again
        return self.data.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return (1, 0)

    def __arrow_c_array__(self, requested_schema=None):
        time.sleep(0.001)
        return self.data.__arrow_c_array__()

def work(take, data):
    while True:
        take(Slow(data))

for take, data in [(from_dlpack, np.zeros(3)), (Array, pa.array([1, 2]))]:
    threading.Thread(target=work, args=(take, data), daemon=True).start()
time.sleep(0.05)
print("done")
"""


def test_a_daemon_thread_in_a_call_survives_the_end_of_the_interpreter():
    done = subprocess.run(
        [sys.executable, "-c", AT_THE_END], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


CALLED_BACK = """
import threading, time
from arrow_dlpack import Array, from_dlpack
from hostile import Producer
from hostile_arrow import EmptyStream, Source

class SlowStream(EmptyStream):
    def fill_nothing(self, stream, out):
        time.sleep(0.001)  # lets go of the interpreter, and wants it again
        return super().fill_nothing(stream, out)

class SlowSource(Source):
    def release_array(self, pointer):
        time.sleep(0.001)
        super().release_array(pointer)

class SlowProducer(Producer):
    def _delete(self, pointer):
        time.sleep(0.001)
        super()._delete(pointer)

def work(take, source):
    while True:
        kept = source()
        take(kept)

for take, source in [(Array, SlowStream), (Array, SlowSource), (from_dlpack, SlowProducer)]:
    threading.Thread(target=work, args=(take, source), daemon=True).start()
time.sleep(0.05)
print("done")
"""


def test_a_daemon_thread_in_a_callback_survives_the_end_of_the_interpreter():
    done = subprocess.run(
        [sys.executable, "-c", CALLED_BACK],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=Path(__file__).parent,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def interpreter(version):
    """The command for a CPython, and what it needs in its environment."""
    if sys.version_info[:2] == version:
        return sys.executable
    name = f"python{version[0]}.{version[1]}"
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = sorted(pyenv.glob(f"{version[0]}.{version[1]}.*/bin/{name}"))
    return str(found[0]) if found else shutil.which(name)


@pytest.mark.parametrize("version", [(3, 11), (3, 12), (3, 13)])
def test_a_sub_interpreter_is_refused_and_leaves_the_main_one_as_it_was(version):
    python = interpreter(version)
    if python is None:
        pytest.skip(f"NOT TRIED: there is no CPython {version[0]}.{version[1]} here")
    if "abi3" not in arrow_dlpack._core.__file__:
        pytest.skip("NOT TRIED: this build is for one interpreter")
    done = subprocess.run(
        [python, "-c", PROGRAM],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=environment(Path(arrow_dlpack.__file__).parents[1]),
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
