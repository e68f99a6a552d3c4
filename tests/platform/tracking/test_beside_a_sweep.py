"""Pushes beside a sweep: none in a short sweep, at most one a minute in a long one, none without a run that ended."""

import sys
from dataclasses import dataclass
from io import StringIO

import pytest
from fixtures_home import make_home
from rich.console import Console
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
    program = f"open({str(lines)!r}, 'a').write('push\\n'); print('pushed')"
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


@pytest.fixture
def said():
    """A console whose text the test reads."""
    return Console(file=StringIO(), width=200)


def test_the_last_push_runs_while_results_are_read_and_is_the_only_one(tmp_path, pushes, said):
    tracker = Tracker(make_home(tmp_path / "home"), None)
    tracker.begin_last()
    wait_until(lambda: pushes() == 1, "the last push")
    tracker.finish(said)
    assert said.file.getvalue().splitlines()[-1] == "pushed"
    assert pushes() == 1


def test_a_push_that_began_before_the_end_is_followed_by_another(tmp_path, pushes, said):
    clock = Clock()
    tracker = Tracker(make_home(tmp_path / "home"), None, clock)
    tracker.look(states(0))
    clock.now += 60.0
    running = [sys.executable, "-c", "input(); print('the first')"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(beside_a_sweep, "sync_command", lambda _: running)
        patch.setattr(beside_a_sweep.subprocess, "DEVNULL", beside_a_sweep.subprocess.PIPE)
        tracker.look(states(1))
    tracker.begin_last()
    assert pushes() == 0
    tracker.finish(said)  # closes the input of the first, which then ends
    assert pushes() == 1
    assert said.file.getvalue().splitlines()[-1] == "pushed"


def test_without_a_last_push_there_is_nothing_to_wait_for(tmp_path, pushes, said):
    Tracker(make_home(tmp_path / "home"), None).finish(said)
    assert (pushes(), said.file.getvalue()) == (0, "")
