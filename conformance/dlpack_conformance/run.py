"""One check in one process, so that a crash, a hang or an exit is the outcome of one rule.

A fork of this process has the library imported already, and not yet used: libraries start their
threads at the first use, which a fork would not survive. Rules on threads and on the end of a
process, and libraries whose hooks say `survives_fork = False`, get a fresh one.
"""

import contextlib
import dataclasses
import faulthandler
import gc
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from dataclasses import dataclass
from typing import IO, Any, NoReturn

from dlpack_conformance.library import Library, load
from dlpack_conformance.rule import RULES, Broken, NotApplicable, Report, Rule, all_rules

TIME_LIMIT = 30.0  # seconds; the first use of a library may take some
PASS, FAIL, NOT_APPLICABLE, CRASHED, SILENT = "pass", "fail", "not applicable", "crashed", "silent"
MARK = "dlpack-conformance: "  # before the result, in what a fresh process prints


@dataclass(frozen=True)
class Result:
    outcome: str
    expected: str = ""
    seen: str = ""  # or why it is not applicable, or what a library does where the texts are silent

    @property
    def broken(self) -> bool:
        return self.outcome in (FAIL, CRASHED)


def run(rule: Rule, lib: Library, hooks: str | None = None, limit: float = TIME_LIMIT) -> Result:
    """The outcome, whatever the check does to its process. `hooks` is the file, if it is one."""
    if sys.platform == "emscripten":
        return judge(rule, lib)  # there is one process, and a crash ends all
    fresh = rule.fresh or not getattr(lib.hooks, "survives_fork", True)
    with tempfile.TemporaryFile("w+", errors="replace") as said:
        if fresh or not hasattr(os, "fork"):
            return in_fresh_process(rule, lib, hooks, limit, said)
        return in_fork(rule, lib, limit, said)


def judge(rule: Rule, lib: Any) -> Result:
    """Runs the check here."""
    try:
        if rule.id in getattr(lib, "not_asked", ()):
            raise NotApplicable("the hooks do this in the library's place")
        outcome = rule.check(lib)
        # What the check made dies within its process: a deleter that crashes is the rule's crash.
        gc.collect()
    except NotApplicable as why:
        return Result(NOT_APPLICABLE, seen=str(why))
    except Exception as error:
        if not rule.judged:  # nor can it be broken, unless the process ends
            return Result(SILENT, seen=one_line(error))
        if isinstance(error, Broken):
            return Result(FAIL, error.expected, error.seen)
        # The check calls the library without a net where the rule says that it works.
        lines = [frame.line for frame in traceback.extract_tb(error.__traceback__) if frame.line]
        return Result(FAIL, rule.sentence, f"{one_line(error)} (at {lines[-1]})")
    if isinstance(outcome, Report):
        return Result(PASS if rule.judged else SILENT, seen=outcome)
    return Result(PASS)


def one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:300]}" if text else type(error).__name__


def in_fork(rule: Rule, lib: Library, limit: float, said: IO[str]) -> Result:
    sys.stdout.flush()
    sys.stderr.flush()
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        # JAX and Python 3.12 warn of forks beside threads.
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        answer(rule, lib, writer, said)
    os.close(writer)
    with open(reader, "rb", buffering=0) as pipe:
        if not select.select([pipe], [], [], limit)[0]:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return hung(rule, limit)
        # All of it comes at once, or nothing: the child writes when the check is over.
        content = pipe.readall()
    _, status = os.waitpid(child, 0)
    if content:
        return Result(**json.loads(content))
    return ended(rule, os.waitstatus_to_exitcode(status), said)


def answer(rule: Rule, lib: Library, writer: int, said: IO[str]) -> NoReturn:
    """In the fork: judges, and ends without the parent's clean-up."""
    try:
        faulthandler.disable()
        no_core_dump()
        for stream in (1, 2):
            os.dup2(said.fileno(), stream)
        # Under pytest they lead elsewhere.
        sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
        gc.freeze()  # checks collect often, and what the library has imported is much
        result = json.dumps(dataclasses.asdict(judge(rule, lib)))
        os.write(writer, result.encode())
        status = 0
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        status = 1
    os._exit(status)


def no_core_dump() -> None:
    with contextlib.suppress(ImportError):
        import resource  # noqa: PLC0415 (not on Windows)

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def in_fresh_process(
    rule: Rule, lib: Library, hooks: str | None, limit: float, said: IO[str]
) -> Result:
    code = f"from dlpack_conformance.run import fresh; fresh({rule.id!r}, {lib.name!r}, {hooks!r})"
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=said, stderr=said, stdin=subprocess.DEVNULL) as child:
        try:
            status = child.wait(limit)
        except subprocess.TimeoutExpired:
            child.kill()
            return hung(rule, limit)
    said.seek(0)
    results = [line for line in said if line.startswith(MARK)]
    # The end of the process is part of such a rule.
    if status == 0 and results:
        return Result(**json.loads(results[-1].removeprefix(MARK)))
    return ended(rule, status, said)


def fresh(rule: str, name: str, hooks: str | None) -> None:
    """In the fresh process."""
    no_core_dump()
    lib = load(name, hooks)
    all_rules()
    gc.freeze()
    print(MARK + json.dumps(dataclasses.asdict(judge(RULES[rule], lib))), flush=True)


def hung(rule: Rule, limit: float) -> Result:
    return Result(CRASHED, rule.sentence, f"a hang: no end within {limit:g} s")


def ended(rule: Rule, status: int, said: IO[str]) -> Result:
    """A process that ended before the check did."""
    seen = signal.Signals(-status).name if status < 0 else f"an exit with status {status}"
    said.seek(0)
    lines = [line.strip() for line in said if line.strip()]
    return Result(CRASHED, rule.sentence, f"{seen} ({lines[-1][:200]})" if lines else seen)


def run_all(
    rules: list[Rule], lib: Library, hooks: str | None = None, limit: float = TIME_LIMIT
) -> Any:
    """(rule, result, seconds) one after the other."""
    for rule in rules:
        start = time.monotonic()
        yield rule, run(rule, lib, hooks, limit), time.monotonic() - start
