"""What a run's own word and Slurm's mean together; that Slurm really says so is tests/slurm."""

import json
import time
from dataclasses import replace

import pytest

from ablations.errors import AblationsError
from ablations.home.cancellation import Cancellation
from ablations.home.home import Home
from ablations.home.state import RunState, State
from ablations.slurm.commands import Job
from ablations.slurm.hold import read_hold
from ablations.slurm.limits import check_home_path
from ablations.slurm.queue_cache import GONE
from ablations.slurm.states import SlurmStates, in_slurm
from ablations.slurm.submissions import new_submission, read_submissions


@pytest.mark.parametrize(
    ("own", "has_begun", "slurm", "expected"),
    [
        ("pending", False, "PENDING", "queued"),
        ("cancelled", False, "PENDING", "queued"),  # the word of an earlier job
        ("requeued", True, "PENDING", "requeued"),
        ("running", True, "PENDING", "requeued"),  # its node failed before it could say anything
        ("pending", False, "RUNNING", "running"),
        ("failed", False, "RUNNING", "running"),  # the failure was of an earlier job
        ("failed", True, "RUNNING", "failed"),  # its job is about to end
        ("preempted", True, "RUNNING", "preempted"),
        ("stale", True, "RUNNING", "stale"),
        ("cancelled", True, "COMPLETING", "cancelled"),
        ("failed", True, "FAILED", "failed"),
        ("pending", False, "FAILED", "failed"),
        ("failed", False, "CANCELLED", "cancelled"),
        ("running", True, "FAILED", "lost"),
        ("stale", True, "COMPLETED", "lost"),
        ("running", True, "COMPLETED", "running"),  # another process has the run
        ("pending", True, "COMPLETED", "pending"),  # done, with less than what is wanted since
        ("running", True, "TIMEOUT", "timed out"),
        ("running", True, "OUT_OF_MEMORY", "out of memory"),
        ("running", True, "NODE_FAIL", "node failed"),
        ("preempted", True, "PREEMPTED", "preempted"),
        ("requeued", True, GONE, "lost"),
        ("running", True, GONE, "lost"),
        ("pending", False, GONE, "lost"),
        ("cancelled", True, GONE, "cancelled"),
    ],
)
def test_a_run_is_what_it_says_and_else_what_slurm_says(own, has_begun, slurm, expected):
    state = RunState(state=State(own), message="its own")
    found = in_slurm(state, Job(id="17_3", name="loo.1f0c9ad2", state=slurm, reason="Priority"), has_begun=has_begun)
    assert found.state == expected
    assert "17_3" in found.message or found.message == "its own"


@pytest.mark.parametrize(
    ("own", "after_s", "expected"),
    [
        ("running", 3.0, "running"),
        ("failed", 3.0, "failed"),
        ("preempted", 3.0, "preempted"),
        ("preempted", -3.0, "requeued"),
        ("failed", -30.0, "queued"),
    ],
)
def test_a_run_that_spoke_after_slurm_was_asked_no_longer_waits(tmp_path, own, after_s, expected):
    home, asked = Home(tmp_path), time.time()
    submission = replace(new_submission("loo", ("81d2f0a95c3b",), 1.0, tmp_path, {}), submitted=asked - 20.0, job="17")
    submission.write(home)
    job = {"id": "17", "name": submission.name, "state": "PENDING", "reason": "Priority"}
    (tmp_path / "slurm.json").write_text(json.dumps({"asked": asked, "problem": "", "jobs": [job]}))
    state = RunState(state=State(own), heartbeat=asked + after_s)
    assert SlurmStates(home).state("81d2f0a95c3b", state).state == expected


@pytest.mark.parametrize(
    ("file", "content", "read"),
    [
        ("submissions/loo.1f0c9ad2.json", '{"name": "lo', lambda home: read_submissions(home, "loo")),
        ("hold.json", "[]", lambda home: read_hold(home, "loo")),
        ("cancelled", '["81d2', lambda home: Cancellation(home.sweep("loo") / "cancelled").is_whole),
    ],
)
def test_a_torn_record_is_named_with_what_to_do(tmp_path, file, content, read):
    path = tmp_path / "sweeps" / "loo" / file
    path.parent.mkdir(parents=True)
    path.write_text(content)
    with pytest.raises(AblationsError, match="delete") as torn:
        read(Home(tmp_path))
    assert str(path) in str(torn.value)


@pytest.mark.parametrize(("name", "character"), [("100%j", "'%'"), ("a:b", "':'")])
def test_a_home_folder_that_slurm_or_python_would_misread_is_refused(tmp_path, name, character):
    with pytest.raises(AblationsError, match=character):
        check_home_path(tmp_path / name)


def test_a_sweep_is_cancelled_in_parts_or_as_a_whole_until_that_is_lifted(tmp_path):
    cancelled = Cancellation(tmp_path / "cancelled")
    cancelled.add(["81d2f0a95c3b"])
    cancelled.add(["3f0c9a1b2d4e"])
    assert "81d2f0a95c3b" in cancelled
    assert "3f0c9a1b2d4e" in cancelled
    assert "000000000000" not in cancelled
    assert not cancelled.is_whole
    cancelled.add(None)
    cancelled.add(["81d2f0a95c3b"])
    assert cancelled.is_whole
    assert "000000000000" in cancelled
    cancelled.lift()
    assert "81d2f0a95c3b" not in cancelled
