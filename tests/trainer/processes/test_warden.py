"""What hangs does not outlive the process that started it, even one that is killed, nor its killed warden."""

import os
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path

from waiting import wait_until

from scalerl.warden import Warden


def is_alive(process):
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def wardens_of(process):
    """Children of a process that are wardens."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == process and b"scalerl.warden" in (path / "cmdline").read_bytes():
                found.append(int(path.name))
    return found


@contextmanager
def hanging(*arguments):
    """A coordinator, and the processes that hang below it."""
    coordinator = subprocess.Popen(
        [sys.executable, "-m", "trainer.processes.hanging", *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    below = []
    try:
        below = [int(word) for word in coordinator.stdout.readline().split()]
        assert len(below) == 2
        yield coordinator, below
    finally:
        coordinator.kill()
        coordinator.wait()
        coordinator.stdout.close()
        for process in below:
            with suppress(ProcessLookupError):
                os.kill(process, 9)


def test_a_killed_warden_is_missed_and_followed_by_another():
    with hanging() as (coordinator, below):
        (first,) = wait_until(lambda: wardens_of(coordinator.pid), "a warden")
        os.kill(first, 9)
        assert coordinator.stdout.readline() == "the warden of this run's processes was killed; another is started\n"
        (second,) = wait_until(lambda: set(wardens_of(coordinator.pid)) - {first}, "another")
        assert second != first
        coordinator.kill()
        wait_until(lambda: not any(map(is_alive, below)), "the end of both")


def test_a_warden_ends_with_the_last_unit():
    with hanging("bury") as (coordinator, below):
        assert coordinator.stdout.readline() == "-9\n"
        wait_until(lambda: not wardens_of(coordinator.pid), "the warden's end")
        assert not any(map(is_alive, below))
        assert coordinator.poll() is None


def test_a_machine_without_room_for_a_warden_trains_on_and_says_so(monkeypatch, capsys):
    def no_room(*_, **__):
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(subprocess, "Popen", no_room)
    alone = Warden()
    alone.guard(4711)
    alone.release(4711)
    said = "no warden can be started (Resource temporarily unavailable); processes of this run that hang may outlive"
    assert capsys.readouterr().out.startswith(said)


def test_signals_to_everything_leave_the_warden_which_ends_what_hangs_when_the_coordinator_is_killed():
    with hanging() as (coordinator, below):
        (one,) = wait_until(lambda: wardens_of(coordinator.pid), "a warden")
        for number in ("TERM", "INT", "HUP", "USR2"):
            subprocess.run(["kill", f"-{number}", str(one)], check=True)
        assert all(map(is_alive, below))
        coordinator.kill()
        wait_until(lambda: not any(map(is_alive, below)), "the end of both")
