"""Pushes beside a sweep: none in a short sweep, at most one a minute in a long one, none without a run that ended."""

import sys
from dataclasses import dataclass

import pytest
from fixtures_home import make_home
from waiting import wait_until

from ablations.home.state import RunState, State
from ablations.tracking import beside_a_sweep
from ablations.tracking.beside_a_sweep import Tracker


@dataclass
class Clock:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def pushes(tmp_path, monkeypatch):
    """A function that counts the pushes; each adds a line to a file."""
    lines = tmp_path / "pushes"
    program = f"open({str(lines)!r}, 'a').write('push\\n')"
    monkeypatch.setattr(beside_a_sweep, "sync_command", lambda _: [sys.executable, "-c", program])
    return lambda: len(lines.read_text().splitlines()) if lines.exists() else 0


def states(num_done: int) -> list[RunState]:
    return [RunState(state=State.DONE)] * num_done + [RunState(state=State.RUNNING)] * (6 - num_done)


def test_a_push_begins_once_a_run_has_ended_and_a_minute_has_passed(tmp_path, pushes):
    clock = Clock()
    tracker = Tracker(make_home(tmp_path / "home", state="running"), None, clock)

    def looked(seconds: float, num_done: int) -> None:
        clock.now = 1000.0 + seconds
        tracker.look(states(num_done))

    for seconds, num_done in ((0.0, 0), (25.0, 2), (59.9, 4)):
        looked(seconds, num_done)
    assert tracker._process is None
    looked(60.0, 4)
    wait_until(lambda: pushes() == 1, "the first push")
    assert tracker._process is not None
    assert tracker._process.wait() == 0
    for seconds, num_done in ((100.0, 5), (119.9, 5), (200.0, 4), (300.0, 4)):
        looked(seconds, num_done)  # a run that goes on again is no news
    assert pushes() == 1
    looked(301.0, 5)
    wait_until(lambda: pushes() == 2, "the second push")
    tracker._process.communicate()
