"""When the thread of ``prefetch=`` starts, which in all other tests is at once."""

import threading
import time

import numpy as np
import pytest
from arrow_dlpack import Loader, _core, iter_batches
from batch_sources import Source
from test_batches_ends import run

#: What a batch takes in a slow source, or a slow loop.
LONG = 0.001
BATCHES = 10


@pytest.fixture(autouse=True)
def as_users_have_it(monkeypatch):
    monkeypatch.setattr(_core, "_open_batches", _core._open_batches.func)


def work():
    end = time.perf_counter() + LONG
    while time.perf_counter() < end:
        pass


def threads_of(opened, pauses, **options):
    """The threads that make batches of a slow source, with a pause after some of them."""
    # A processor that slept would be slow at the loop's next step.
    source, batches = Source(chunks=BATCHES, before=lambda _: work()), []
    for number, batch in enumerate(opened(source, batch_size=10, prefetch=2, **options)):
        batches.append(batch)
        if number in pauses:
            time.sleep(LONG)
    found = [x for batch in batches for x in np.from_dlpack(batch["x"]).tolist()]
    assert sorted(found) == list(range(BATCHES * 10))
    assert options or found == sorted(found)
    assert source.is_released()
    return source.threads


def in_some_run(opened, pauses):
    """Whether there is no other thread: in some run, because others may take the processor."""
    return any(threads_of(opened, pauses) == {threading.get_ident()} for _ in range(10))


OPENED = pytest.mark.parametrize("opened", [iter_batches, Loader])


@OPENED
@pytest.mark.parametrize("options", [{}, {"shuffle": 20, "seed": 1}], ids=["in order", "shuffled"])
def test_a_loop_that_takes_time_has_one(opened, options):
    threads = threads_of(opened, range(BATCHES), **options)
    assert len(threads) == 2
    assert threading.get_ident() in threads


@OPENED
def test_a_loop_that_only_takes_batches_has_none(opened):
    assert in_some_run(opened, ())


@OPENED
def test_one_slow_step_is_not_enough(opened):
    assert in_some_run(opened, [0])
    assert len(threads_of(opened, [0, 1])) == 2


def test_once_the_interpreter_is_ending_none_starts():
    out = run(
        """
        import time
        from arrow_dlpack import _core
        from batch_sources import Source
        _core._open_batches = _core._open_batches.func
        source = Source(before=lambda _: time.sleep(0.001))
        batches = iter_batches(source, prefetch=2)
        _core._stop_batches()  # what atexit calls
        taken = 0
        try:
            for batch in batches:
                taken += 1
                time.sleep(0.001)
        except RuntimeError as error:
            print(taken, error)
        batches.close()
        print(source.released.is_set())
        """
    )
    assert out == "2 nothing is read ahead: the interpreter is ending\nTrue\n"
