"""Runs on a file system that fails now and then, or is full: status is not worth a run, and a reason is never lost."""

import errno
import os
import random
from collections import Counter
from pathlib import Path

import pytest
from trainer.runs import new_run, rows_of, trained
from trainer.tiny import tiny_recipe

from scalerl import durable
from scalerl.run.run_log import MetricsLog
from scalerl.run.train import train

BUDGET = 1.0


def recipe():
    return tiny_recipe(evaluation={"every": 0.25, "samples": 2}, checkpoint_every_s=0.0)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr(durable, "PAUSES_S", (0.0,) * len(durable.PAUSES_S))
    monkeypatch.setattr("scalerl.run.status_file.HEARTBEAT_EVERY_S", 0.0)


@pytest.fixture
def undisturbed(tmp_path, warm_starts):
    return rows_of(trained(tmp_path / "whole", recipe(), warm_starts, [BUDGET]))


def broken(monkeypatch, fails):
    """Let renames fail whose target `fails`."""
    replace = Path.replace

    def renamed(self, target):
        if fails(Path(target)):
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", renamed)


@pytest.mark.parametrize("share", [0.1, 0.3])
def test_a_run_survives_renames_that_fail_now_and_then(tmp_path, warm_starts, undisturbed, monkeypatch, share):
    draw, in_a_row = random.Random(0), Counter[Path]()

    def fails(target):  # never more often in a row than a write is tried
        is_first = target not in in_a_row and target.name == "status.json"
        has_bad_luck = draw.random() < share and in_a_row[target] < 4
        in_a_row[target] = in_a_row[target] + 1 if is_first or has_bad_luck else 0
        return in_a_row[target] > 0

    broken(monkeypatch, fails)
    folder = trained(tmp_path / "run", recipe(), warm_starts, [BUDGET])
    assert rows_of(folder) == undisturbed
    status = folder.read_status()
    assert status.state == "done"
    assert any("status.json could not be written" in text and "Stale file handle" in text for text in status.warnings)


def test_a_status_that_can_never_be_renamed_costs_no_run_and_its_end_is_told(
    tmp_path, warm_starts, undisturbed, monkeypatch
):
    folder = new_run(tmp_path / "run", recipe())
    (folder.path / "status.json").touch()
    broken(monkeypatch, lambda target: target.name == "status.json")
    train(folder.path, budget_gpu_hours=BUDGET, warm_starts=warm_starts)
    assert rows_of(folder) == undisturbed
    assert folder.read_status().state == "done"


def test_a_full_disk_is_the_reason_that_the_status_gives(tmp_path, warm_starts, monkeypatch):
    folder = new_run(tmp_path / "run", recipe())

    def full(self, row):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))

    train(folder.path, budget_gpu_hours=0.25, warm_starts=warm_starts)
    monkeypatch.setattr(MetricsLog, "write", full)
    broken(monkeypatch, lambda target: True)
    with pytest.raises(OSError, match="No space left on device"):
        train(folder.path, budget_gpu_hours=BUDGET, warm_starts=warm_starts)
    status = folder.read_status()
    assert (status.state, status.message) == ("failed", f"{folder.metrics}: No space left on device")
