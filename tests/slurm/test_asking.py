"""The controller is everybody's: what the platform asks of it does not grow with runs, users or impatience."""

import shutil
import threading
import time
from itertools import pairwise

import pytest

from ablations.slurm.queue_cache import ASK_EVERY_S

ASKED = ("squeue", "sacct")


@pytest.fixture
def study(study):
    """The study asks Slurm as often as its user does."""
    study.ask_every_s = ASK_EVERY_S
    return study


@pytest.fixture
def counted(study, tmp_path):
    """The study with commands that write down when they are called, and the times so far."""
    folder, times = tmp_path / "counted", tmp_path / "times"
    folder.mkdir()
    times.touch()
    for name in ASKED:
        script = folder / name
        script.write_text(f'#!/bin/sh\ndate +%s.%N >> {times}\nexec {shutil.which(name)} "$@"\n')
        script.chmod(0o755)
    path = f"{folder}:{study.cluster.environment['PATH']}"
    return study, path, lambda: [float(line) for line in times.read_text().split()]


def test_slurm_is_asked_once_in_ten_seconds_whoever_asks(counted):
    study, path, times = counted
    study.submit("--hold")
    deadline = time.monotonic() + 24

    def impatient():
        while time.monotonic() < deadline:
            study.platform("status", code=None, PATH=path)
            time.sleep(0.5)

    users = [threading.Thread(target=impatient) for _ in range(2)]
    for user in users:
        user.start()
    for user in users:
        user.join()
    asked = times()
    assert 2 <= len(asked) <= 3
    assert all(later - earlier >= 9.9 for earlier, later in pairwise(asked))


def test_a_change_is_seen_within_ten_seconds(study):
    study.submit("--hold")
    study.until_states(scalerl="queued")
    study.cluster.run("scancel", study.job("scalerl"))
    cancelled = time.monotonic()
    study.until_states(scalerl="cancelled")
    assert time.monotonic() - cancelled < 10 + 20  # the rest is for a busy machine
