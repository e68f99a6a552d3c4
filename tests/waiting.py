"""Waiting for what another process or thread brings about: for a condition, never for a clock."""

import subprocess
import time
from collections.abc import Callable
from typing import TypeVar

import pytest

T = TypeVar("T")


def wait_until(
    condition: Callable[[], T],
    what: str,
    *,
    limit_s: float = 250.0,
    every_s: float = 0.05,
    process: subprocess.Popen | None = None,
    shown: Callable[[], object] | None = None,
) -> T:
    """What `condition` returns as soon as that is true; the test fails after `limit_s`, or when `process` ends before.

    `wait_until(path.exists, "plan.json")` fails with "waited 250 s for plan.json; saw False". With `shown`, the failure
    shows what that returns (a log, say) instead of the condition's last value.
    """
    __tracebackhide__ = True
    start = time.monotonic()
    while True:
        has_ended = process is not None and process.poll() is not None
        waited = time.monotonic() - start
        if seen := condition():
            return seen
        if has_ended or waited > limit_s:
            why = f"; the process ended with code {process.returncode}" if has_ended and process else ""
            pytest.fail(f"waited {waited:.3g} s for {what}{why}; saw {shown() if shown else repr(seen)}")
        time.sleep(every_s)
