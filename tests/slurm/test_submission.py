"""What is given to Slurm, and when: agreed to, once, with the code of that moment, whatever is killed meanwhile."""

import json
import signal
import time
from dataclasses import replace

import pytest
from slurm.study import LIMIT_S

from ablations.home.home import Home
from ablations.slurm import commands
from ablations.slurm.hold import hold_after_failure
from ablations.slurm.submissions import Submission, new_submission
from scalerl.run.status import RunStatus

RUNS = ("81d2f0a95c3b", "3f0c9a1b2d4e", "5a0c9a1b2d41")


@pytest.fixture
def study(programs):
    return programs


def sleeper(cluster, *options: str) -> str:
    """A job of nobody's."""
    command = ("sbatch", "--parsable", "--output=/dev/null", "--mem=10", *options, "--wrap", "sleep 100")
    return cluster.run(*command).stdout.strip()


def record(home: Home, job: str | None) -> Submission:
    """A submission as a sweep writes it down."""
    one = replace(new_submission("small", RUNS, 8.0, home.path / "snapshots", {}), job=job)
    one.write(home)
    return one


def files(home):
    """Every file of the sweep with its content, but for locks."""
    paths = [path for path in (home / "sweeps").rglob("*") if path.is_file() and "lock" not in path.name]
    return {path: path.read_bytes() for path in paths}


def test_a_cost_that_nobody_agreed_to_changes_nothing(study):
    study.write(resources="confirm_above_device_hours: 0.1")
    sweep = ("sweep", str(study.file), "--executor", "slurm")
    assert "--yes" in study.platform(*sweep, code=2)
    assert study.queued() == []
    assert files(study.home) == {}

    study.submit("--hold")
    assert "processor-hours" not in study.platform(*sweep)  # nothing is asked where nothing is submitted
    study.platform("cancel", "small", "--variant", "rate=0.2")
    study.until_states({"rate=0.2": "cancelled", "settings": "queued"})
    before = files(study.home)
    assert "3 jobs" in study.platform(*sweep, "--budget", "600", code=2)
    assert files(study.home) == before
    assert "1 job on" in study.platform(*sweep, code=2)
    assert study.states()["rate=0.2"] == "cancelled"
    assert len(study.queued()) == 2


def test_a_job_asks_for_what_the_sweep_says_wherever_the_command_is_started(study):
    study.write(resources="at_once: 1")
    of_a_job = {"SLURM_JOB_ID": "7", "SLURM_NTASKS": "2", "SLURM_MEM_PER_NODE": "700", "SBATCH_PARTITION": "high"}
    study.platform("sweep", str(study.file), "--executor", "slurm", "--yes", "--hold", **of_a_job)
    (submission,) = study.submissions()
    shown = study.cluster.run("scontrol", "show", "job", str(submission.job)).stdout
    assert {"Partition=low", "NumCPUs=1", "NumTasks=1", "ArrayTaskThrottle=1", "MinMemoryNode=1G"} <= set(shown.split())


def test_a_dependency_is_given_to_slurm_unless_slurm_would_take_it_as_fulfilled(study):
    for job, words in (
        ("abc", "--after abc: not a job id; write a number"),
        ("17,afterok:18", "--after 17,afterok:18: not a job id"),
        ("999999", "--after 999999: neither Slurm's queue nor its accounting knows this job, so nothing would be"),
    ):
        assert words in " ".join(study.submit("--after", job, code=2).split())
        assert files(study.home) == {}
    assert study.submissions() == []
    study.submit("--after", sleeper(study.cluster, "--hold"))
    rows = study.until(lambda rows: "Dependency" in rows["settings"]["message"])
    assert rows["settings"]["state"] == "queued"
    (submission,) = study.submissions()
    (script,) = study.home.glob(f"sweeps/small/submitit/{submission.name}/{submission.job}_submission.sh")
    assert "wckey" not in script.read_text()


def test_prune_and_cancel_end_what_they_name_and_nothing_else(study):
    study.submit("--hold")
    study.write(axes="{rate: [0.2]}")
    assert "cancelled 1 job of runs that left the sweep file" in study.submit("--prune", "--hold")
    (submission,) = study.submissions()
    assert study.queued() == [submission.name] * 2
    study.platform("cancel", "small", "--variant", "rate=0.2")
    assert study.queued() == [submission.name]
    study.until_states({"rate=0.2": "cancelled", "settings": "queued"})
    study.platform("cancel", "small")
    assert study.queued() == []


def test_a_larger_budget_extends_runs_that_have_a_job_already(study):
    study.submit("--hold")
    study.submit()
    (first,) = study.submissions()
    assert "trains 3 runs" in study.submit("--budget", "600")
    second = study.submissions()[-1]
    waits = study.cluster.run("squeue", "--noheader", f"--jobs={second.job}", "--format=%E").stdout
    assert f"afterany:{first.job}" in waits


def test_a_sweep_killed_between_submission_and_its_own_record_leaves_no_orphan_and_no_double(study, submitting):
    submitting.send_signal(signal.SIGKILL)
    submitting.communicate()
    assert len(study.queued()) == 3
    said = study.submit("--hold")
    assert "was interrupted; cancelled any job it had started" in said
    (submission,) = study.submissions()
    assert study.queued() == [submission.name] * 3


def test_what_is_cancelled_while_sbatch_answers_is_cancelled(study, submitting):
    study.platform("cancel", "small", "--variant", "rate=0.2")
    submitting.sbatch_answers()
    submitting.communicate(timeout=LIMIT_S)
    assert len(study.queued()) == 2


def test_a_sweep_interrupted_while_sbatch_answers_leaves_no_jobs(study, submitting):
    submitting.send_signal(signal.SIGINT)
    submitting.communicate(timeout=LIMIT_S)
    assert submitting.returncode == 3
    assert study.queued() == []
    assert study.submissions() == []


def test_sweeps_at_the_same_moment_submit_every_run_once(study):
    other = study.file.with_name("other.yaml")
    other.write_text(study.file.read_text().replace("name: small", "name: other"))
    sweeps = [study.start("sweep", str(file), "--executor", "slurm", "--yes", "--hold") for file in (study.file, other)]
    printed = [process.communicate(timeout=LIMIT_S) for process in sweeps]
    assert [process.returncode for process in sweeps] == [0, 0], printed
    records = study.home.glob("sweeps/*/submissions/*.json")
    runs = [run for record in records for run in json.loads(record.read_text())["runs"]]
    assert len(runs) == len(set(runs)) == len(study.queued()) == 3


def test_retry_undoes_a_submission_that_was_killed_before_its_own_record(study):
    study.submit("--hold")
    orphan = record(Home(study.home), None)
    sleeper(study.cluster, "--hold", f"--job-name={orphan.name}")
    said = study.platform("retry")
    assert f"submission {orphan.name} was interrupted" in said
    assert orphan.name not in study.queued()
    assert len(study.queued()) == 3


def test_jobs_that_wait_run_the_code_of_their_submission(study, source):
    sweep = ("sweep", str(study.file), "--executor", "slurm", "--yes", "--hold")
    study.apart(*sweep, code=0, PYTHONPATH=str(source))
    broken = "raise RuntimeError('edited while jobs wait')\n"
    for path in (source / "scalerl" / "run" / "train.py", source / "ablations" / "slurm" / "job.py"):
        path.write_text(broken)
    (submission,) = study.submissions()
    study.cluster.run("scontrol", "release", str(submission.job))
    study.finish()
    (snapshot,) = (study.home / "snapshots").iterdir()
    assert broken not in (snapshot / "scalerl" / "run" / "train.py").read_text()


def test_a_hold_takes_what_waits_and_neither_ended_jobs_nor_those_of_others(study):
    home = Home(study.home)
    record(home, sleeper(study.cluster, "--begin=now+1hour"))  # its id is another's since
    waiting = record(home, None)
    job = sleeper(study.cluster, "--begin=now+1hour", f"--job-name={waiting.name}", "--array=0-2")
    replace(waiting, job=job).write(home)
    for run in RUNS:
        home.run(run).path.mkdir(parents=True)
        home.run(run).write_status(RunStatus(state="failed", message="RuntimeError: no", heartbeat=time.time()))
    with study.asked():
        hold = hold_after_failure(home, "small")
        reasons = {one.name: one.reason for one in commands.queue()}
    assert hold is not None
    assert hold.submissions == (waiting.name,)
    assert reasons[waiting.name].startswith("JobHeld")
    assert reasons["wrap"] == "BeginTime"


def test_a_controller_that_is_away_changes_no_state_and_is_called_silent(study, tmp_path):
    study.submit("--hold")
    study.until_states({"settings": "queued"})
    impatient = tmp_path / "slurm.conf"
    impatient.write_text((study.cluster.folder / "slurm.conf").read_text() + "MessageTimeout=2\n")
    study.cluster.kill_controller()
    try:
        time.sleep(study.ask_every_s)
        shown = " ".join(study.platform("status", code=None, SLURM_CONF=str(impatient)).split())
        with study.asked(SLURM_CONF=str(impatient)), pytest.raises(commands.SlurmSilent):
            commands.requeue("1")
    finally:
        study.cluster.start_controller()
    assert "3 queued" in shown
    assert "Slurm did not answer at" in shown
