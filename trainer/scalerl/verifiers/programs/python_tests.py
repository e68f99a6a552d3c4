"""Judges a program written by the policy with Python tests, which run as written.

    tests, in a sandbox --requests--> program, in another sandbox
                        <--answers---

When the tests use a name of the program, they ask its sandbox; everything else, above all comparisons, runs in the
tests' sandbox (`python_test_processes`). So the program cannot reach its judge: it never sees the tests or the values
they compare with, and can only answer with plain values. Arguments are passed by value; the program's changes to lists,
dicts and sets show after the statement of the tests that called it.

    right       the tests ran to their end
    wrong       they did not, or the program failed, exceeded a limit, or wrote to the channel
    timed_out   one of the sandboxes could not be started in time
    crashed     a sandbox failed, or its code failed before the program's first line
"""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scalerl.rollout import Outcome
from scalerl.sandbox import Limits, ProgramEnd, Sandbox, SandboxFailed, SandboxTimedOut
from scalerl.verifiers.programs.code_tests import CallTest, judge_code
from scalerl.verifiers.programs.given_names import imports_for

PROCESSES_TEXT = "\n\n".join(
    Path(__file__).with_name(f"python_test_{part}.py").read_text(encoding="utf-8")
    for part in ("wire", "processes", "program")
)
WAIT_S = 60.0
"""Extra time that the tests may wait beyond the program's limit; a machine may need half of it to start the program."""


@dataclass(frozen=True, kw_only=True)
class PythonTest:
    """A test: `PythonTest(code="assert abs(half(1) - 0.5) < 1e-6", names=("half",))`."""

    code: str
    names: tuple[str, ...]
    """Names used from the program."""
    before: str = ""
    """Text that runs before the tests and before the program, so that both may use its definitions."""
    gives_names: bool = False
    """True if tests and program may use the names of `given_names` without importing them."""
    calls: tuple[CallTest, ...] = ()
    """All that the code asserts, if it only compares calls with literals; then one sandbox is enough."""


def judge_python(program: str, test: PythonTest, *, sandbox: Sandbox, limits: Limits) -> Outcome:
    """Outcome of `program`, whose `limits` apply to the whole test; the test has the same limits for itself."""
    if test.calls:
        more = {"before": test.before, "gives_names": test.gives_names}
        return judge_code(program, test.calls, sandbox=sandbox, limits=limits, **more)
    max_bytes = limits.output_kb << 10
    given = [imports_for(f"{test.before}\n{text}") if test.gives_names else "" for text in (test.code, program)]
    more = {"before": test.before, "max_bytes": max_bytes}
    tests = _text("run_tests", tests=test.code, names=test.names, given=given[0], **more)
    serving = _text("serve_program", program=program, given=given[1], **more)
    patient = limits.model_copy(update={"wall_s": limits.wall_s + WAIT_S})
    requests, answers = os.pipe(), os.pipe()
    try:
        with ThreadPoolExecutor(max_workers=1) as thread:
            served = thread.submit(_run, sandbox, serving, limits, requests[0], answers[1])
            examined = _run(sandbox, tests, patient, answers[0], requests[1])
        return _outcome(examined, served.result())
    except SandboxTimedOut:
        return "timed_out"
    except SandboxFailed:
        return "crashed"


def _text(function: str, **arguments: Any) -> str:
    """Text of one side: its definitions, then a call of `function`."""
    return f"{PROCESSES_TEXT}\n\n{function}(**json.loads({json.dumps(arguments)!r}))\n"


def _run(sandbox: Sandbox, text: str, limits: Limits, stdin: int, stdout: int) -> ProgramEnd:
    """Run one side; when it has gone, send the other an empty line and close both descriptors.

    Closing alone goes unnoticed while a process forked meanwhile also holds the pipe.
    """
    try:
        return sandbox.run(text, stdin=stdin, stdout=stdout, limits=limits)
    finally:
        os.close(stdin)
        os.set_blocking(stdout, False)
        with suppress(BrokenPipeError, BlockingIOError):
            os.write(stdout, b"\n")
        os.close(stdout)


def _outcome(examined: ProgramEnd, served: ProgramEnd) -> Outcome:
    ready, verdict, *_ = [*examined.stderr.splitlines(), "", ""]
    if ready != "ready" or verdict == "lost":
        late = {examined.limit, served.limit} & {"wall", "cpu"}
        return "timed_out" if late else "crashed"
    return "right" if verdict == "right" and examined.limit is None and served.limit is None else "wrong"
