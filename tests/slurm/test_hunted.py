"""Faults found by hunting for them: what sbatch refuses, records that are torn, and jobs that no record names."""

import json
import os
import signal
import time
from pathlib import Path
from unittest import mock

import pytest
from slurm.study import LIMIT_S, SlurmStudy
from waiting import wait_until

from ablations.home.home import Home
from ablations.slurm import commands
from ablations.slurm.hold import hold_after_failure
from ablations.slurm.submissions import Submission, new_submission
from scalerl.run.status import RunStatus


def sleeper(cluster, *options: str) -> str:
    """A job of nobody's."""
    command = ("sbatch", "--parsable", "--output=/dev/null", "--mem=10", *options, "--wrap", "sleep 100")
    return cluster.run(*command).stdout.strip()


def record(home: Home, job: str | None, *, runs: tuple[str, ...] = ("81d2f0a95c3b",)) -> Submission:
    """A submission as a sweep writes it down."""
    one = new_submission("small", runs, 8.0, home.path / "snapshots", {})
    one = one if job is None else one.given(job)
    one.write(home)
    return one


def test_what_sbatch_refuses_is_said_in_its_words_and_leaves_nothing_behind(study):
    refused = study.submit("--after", "abc", code=2)
    assert "sbatch rejected the job of 3 runs: Batch job submission failed: Job dependency problem" in refused
    assert "--after abc" in refused
    assert study.submissions() == []
    study.submit("--hold")
    assert len(study.queued()) == 3
    (submission,) = study.submissions()
    (script,) = study.home.glob(f"sweeps/small/submitit/{submission.name}/{submission.job}_submission.sh")
    assert "wckey" not in script.read_text()


def test_jobs_train_and_are_held_in_a_home_folder_whose_name_a_shell_would_take_apart(empty, tmp_path):
    home = tmp_path / "o'brien & $HOME folder"
    study = SlurmStudy(cluster=empty, folder=tmp_path / "study", home=home)
    study.write(resources="at_once: 1, setup: ['exit 3']", seeds="[0, 1]")
    study.submit()
    study.until(lambda rows: "held" in rows["loo-off_policy"]["message"])
    study.write(seeds="[0]")
    study.submit()
    pid = study.until_trains("scalerl")["pid"]
    (snapshot,) = (home / "snapshots").iterdir()
    assert f"PYTHONPATH={snapshot}" in Path(f"/proc/{pid}/environ").read_text()


def test_a_home_folder_that_slurm_or_python_would_misread_is_refused(study):
    for name, character in (("100%j", "'%'"), ("a:b", "':'")):
        study.home = study.folder / name
        assert character in study.submit(code=2)
        assert not study.home.exists()


def test_a_run_that_trains_while_its_next_job_waits_is_running_and_cancel_ends_both(empty, tmp_path):
    study = SlurmStudy(cluster=empty, folder=tmp_path / "study", budget=20.0)
    study.submit()
    study.until_trains("scalerl")
    study.submit("--budget", "40")
    study.until_trains("scalerl")
    assert study.states()["scalerl"] == "running"
    study.platform("cancel", "small", "--variant", "scalerl")
    run = study.rows()["scalerl"]["id"]
    squeue = ("squeue", "--noheader", f"--jobs={','.join(one.task_ids()[run] for one in study.submissions())}")
    wait_until(lambda: not study.cluster.run(*squeue, check=False).stdout, "the end of both jobs", limit_s=LIMIT_S)
    assert len(set(study.queued())) == 2  # the other runs have theirs


def test_a_run_whose_cancelled_job_is_still_ending_gets_a_new_job(empty, tmp_path):
    study = SlurmStudy(cluster=empty, folder=tmp_path / "study", budget=10.0)
    study.write(resources="""setup: ["trap '' TERM; trap 'sleep 4' EXIT"]""")
    study.submit()
    study.until_trains("scalerl")
    study.cluster.run("scancel", study.job("scalerl"))
    study.until(lambda rows: rows["scalerl"]["state"] == "cancelled")
    assert "trains 1 run\n" in study.submit()
    assert len(study.submissions()) == 2


def test_what_is_cancelled_while_sbatch_answers_is_cancelled(study, submitting):
    study.platform("cancel", "small", "--variant", "loo-loss")
    submitting.communicate(timeout=LIMIT_S)
    assert len(study.queued()) == 2


def test_a_sweep_interrupted_while_sbatch_answers_leaves_no_jobs(study, submitting):
    submitting.send_signal(signal.SIGINT)
    submitting.communicate(timeout=LIMIT_S)
    assert submitting.returncode == 3
    assert study.queued() == []
    assert study.submissions() == []


def test_retry_undoes_a_submission_that_was_killed_before_its_own_record(study):
    study.submit("--hold")
    orphan = record(Home(study.home), None)
    sleeper(study.cluster, "--hold", f"--job-name={orphan.name}")
    said = study.platform("retry")
    assert f"submission {orphan.name} was interrupted" in said
    assert orphan.name not in study.queued()
    assert len(study.queued()) == 3


def test_a_hold_takes_what_waits_and_neither_ended_jobs_nor_those_of_others(empty, tmp_path):
    home = Home(tmp_path / "home")
    runs = ("81d2f0a95c3b", "3f0c9a1b2d4e", "5a0c9a1b2d41")
    record(home, sleeper(empty, "--begin=now+1hour"), runs=runs)  # its id is another's since
    waiting = record(home, None, runs=runs)
    job = sleeper(empty, "--begin=now+1hour", f"--job-name={waiting.name}", "--array=0-2")
    waiting.given(job).write(home)
    for run in runs:
        home.run(run).path.mkdir(parents=True)
        home.run(run).write_status(RunStatus(state="failed", message="RuntimeError: no", heartbeat=time.time()))
    with mock.patch.dict(os.environ, empty.environment):
        hold = hold_after_failure(home, "small")
        reasons = {one.name: one.reason for one in commands.queue()}
    assert hold is not None
    assert hold.submissions == (waiting.name,)
    assert reasons[waiting.name].startswith("JobHeld")
    assert reasons["wrap"] == "BeginTime"


@pytest.mark.parametrize(
    ("file", "content"),
    [("submissions/small.1f0c9ad2.json", '{"name": "sm'), ("hold.json", "[]"), ("cancelled", '["81d2')],
)
def test_a_torn_record_is_named_with_what_to_do(study, file, content):
    study.submit("--hold")
    path = Path(study.home, "sweeps", "small", file)
    path.write_text(content)
    refused = study.platform("cancel", "small", "--variant", "loo-loss", code=2)
    assert str(path) in refused
    assert "delete" in refused
    assert json.loads(study.home.joinpath("sweeps", "small", "plan.json").read_text())


def test_an_absent_controller_is_silent_whatever_its_commands_call_it(own_cluster):
    job = sleeper(own_cluster, "--hold")
    own_cluster.kill_controller()
    with mock.patch.dict(os.environ, own_cluster.environment), pytest.raises(commands.SlurmSilent):
        commands.requeue(job)
