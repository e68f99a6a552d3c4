"""Right or wrong of a program the policy wrote, by tests that are Python text themselves: run as they are written.

    tests, in a sandbox --requests--> program, in another sandbox
                        <--answers---

Where the tests use a name of the program, its own sandbox is asked; everything else, comparisons above all, is computed
beside the tests (`python_test_processes`). So the program cannot reach what judges it: it never sees the tests, nor
anything they compare with, and it can answer with plain values only. Arguments cross by value.

    right       the tests ran to their end
    wrong       they did not; or the program failed, was ended by a limit, or wrote among its answers
    timed_out   one of the sandboxes could not be started in time
    crashed     a sandbox itself failed, or what runs in it before the program's first line
"""

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scalerl.sandbox import Limits, ProgramEnd, Sandbox, SandboxError, SandboxTimedOut

if TYPE_CHECKING:  # batch loads torch
    from scalerl.rollout import Outcome

PROCESSES_TEXT = "\n\n".join(
    Path(__file__).with_name(f"python_test_{part}.py").read_text(encoding="utf-8") for part in ("wire", "processes")
)
WAIT_S = 60.0
"""How much longer than the program its tests may wait: a machine may take half of this to start the program."""


@dataclass(frozen=True, kw_only=True)
class PythonTest:
    """Test code: `PythonTest(code="assert abs(half(1) - 0.5) < 1e-6", names=("half",))`."""

    code: str
    names: tuple[str, ...]
    """What it takes from the program."""
    before: str = ""
    """Runs before the tests and before the program, on both sides: what both may use without writing it."""
    in_place: bool = False
    """Whether the tests see what the program leaves of lists, dicts and sets that it is called with."""


def judge_python(program: str, test: PythonTest, *, sandbox: Sandbox, limits: Limits) -> "Outcome":
    """The outcome of `program`, which has `limits` for all of the test; the test has as much for itself."""
    max_bytes = limits.output_kb << 10
    tests = _text(
        "run_tests", tests=test.code, before=test.before, names=test.names, in_place=test.in_place, max_bytes=max_bytes
    )
    serving = _text("serve_program", program=program, before=test.before, max_bytes=max_bytes)
    patient = limits.model_copy(update={"wall_s": limits.wall_s + WAIT_S})
    requests, answers = os.pipe(), os.pipe()
    try:
        with ThreadPoolExecutor(max_workers=1) as thread:
            served = thread.submit(_run, sandbox, serving, limits, requests[0], answers[1])
            examined = _run(sandbox, tests, patient, answers[0], requests[1])
        return _outcome(examined, served.result())
    except SandboxTimedOut:
        return "timed_out"
    except SandboxError:
        return "crashed"


def _text(function: str, **arguments: Any) -> str:
    """One side: a call of `function` after all that is defined there."""
    return f"{PROCESSES_TEXT}\n\n{function}(**json.loads({json.dumps(arguments)!r}))\n"


def _run(sandbox: Sandbox, text: str, limits: Limits, stdin: int, stdout: int) -> ProgramEnd:
    with _told(stdin, stdout):
        return sandbox.run(text, stdin=stdin, stdout=stdout, limits=limits)


@contextmanager
def _told(stdin: int, stdout: int) -> Iterator[None]:
    """Once one side is gone the other reads an empty line, and both descriptors are closed.

    Closing alone goes unnoticed while a process that this one forked meanwhile holds the pipe too.
    """
    try:
        yield
    finally:
        os.close(stdin)
        os.set_blocking(stdout, False)
        with suppress(BrokenPipeError, BlockingIOError):
            os.write(stdout, b"\n")
        os.close(stdout)


def _outcome(examined: ProgramEnd, served: ProgramEnd) -> "Outcome":
    ready, verdict, *_ = [*examined.stderr.splitlines(), "", ""]
    if ready != "ready" or verdict == "lost":
        late = {examined.limit, served.limit} & {"wall", "cpu"}
        return "timed_out" if late else "crashed"
    return "right" if verdict == "right" and examined.limit is None and served.limit is None else "wrong"
