"""What goes wrong around the submission: it is killed, comes twice, from inside a job, or its surroundings change."""

import json
import signal
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from mlflow_server import mlflow_server
from slurm.study import LIMIT_S, SlurmStudy
from waiting import wait_until


def test_a_sweep_killed_between_submission_and_its_own_record_leaves_no_orphan_and_no_double(study, submitting):
    submitting.send_signal(signal.SIGKILL)
    submitting.communicate()
    assert len(study.queued()) == 3
    said = study.submit()
    assert "was interrupted; cancelled any job it had started" in said
    (submission,) = study.submissions()
    assert set(study.queued()) <= {submission.name}
    rows = study.until_done()
    assert [row["attempt"] for row in rows.values()] == [1, 1, 1]


def test_two_sweeps_at_the_same_moment_submit_every_run_once(study):
    both = [study.start("sweep", str(study.file), "--executor", "slurm", "--yes") for _ in range(2)]
    printed = ["".join(process.communicate(timeout=LIMIT_S)) for process in both]
    assert sorted(process.returncode for process in both) in ([0, 0], [0, 2]), printed
    assert sum(len(one.runs) for one in study.submissions()) == 3
    rows = study.until_done()
    assert [row["attempt"] for row in rows.values()] == [1, 1, 1]


def test_two_different_sweeps_train_the_reference_they_share_once(study):
    other = study.file.with_name("other.yaml")
    other.write_text(study.file.read_text().replace("name: small", "name: other"))
    both = [study.start("sweep", str(file), "--executor", "slurm", "--yes") for file in (study.file, other)]
    printed = [process.communicate(timeout=LIMIT_S) for process in both]
    assert [process.returncode for process in both] == [0, 0], printed
    records = list(study.home.glob("sweeps/*/submissions/*.json"))
    runs = [run for record in records for run in json.loads(record.read_text())["runs"]]
    assert len(runs) == len(set(runs)) == 3
    study.until_done()


def test_jobs_that_wait_run_the_code_of_their_submission(study, source):
    study.platform("sweep", str(study.file), "--executor", "slurm", "--yes", "--hold", PYTHONPATH=str(source))
    broken = "raise RuntimeError('edited while jobs wait')\n"
    for path in (source / "scalerl" / "run" / "train.py", source / "ablations" / "slurm" / "job.py"):
        path.write_text(broken)
    (submission,) = study.submissions()
    study.cluster.run("scontrol", "release", str(submission.job))
    study.until_done()
    (snapshot,) = (study.home / "snapshots").iterdir()
    assert broken not in (snapshot / "scalerl" / "run" / "train.py").read_text()


def test_a_sweep_started_inside_a_job_submits_as_from_outside(study, tmp_path):
    output = tmp_path / "out"
    command = f"{sys.executable} -m ablations.cli sweep {study.file} --executor slurm --yes --home {study.home}"
    study.cluster.run(
        *("sbatch", "--output", str(output), "--ntasks=2", "--mem=700M", "--partition=high", "--wrap", command)
    )
    wait_until((study.home / "sweeps" / "small" / "plan.json").exists, "plan.json", limit_s=LIMIT_S)
    study.until_done()
    assert "job" in output.read_text()
    (submission,) = study.submissions()
    jobs = study.cluster.run("squeue", "--noheader", "--states=all", f"--name={submission.name}", "--format=%P %C")
    assert set(jobs.stdout.splitlines()) <= {"low 1"}


def fill(disk: Path) -> Path:
    """A file that takes what others leave, however much they write meanwhile."""
    filler = disk / "filler"
    with suppress(OSError), filler.open("wb", buffering=0) as file:
        while file.write(b"x" * 4096):
            pass
    return filler


@pytest.mark.studies
def test_a_full_home_folder_costs_what_was_not_saved_and_nothing_else(empty, small_disk, tmp_path):
    study = SlurmStudy(cluster=empty, folder=tmp_path / "study", budget=4.0, home=small_disk / "home")
    study.submit()
    study.until_trains("scalerl", steps=20)
    filler = fill(small_disk)
    # Every job ends, because it cannot write.
    wait_until(lambda: not study.queued(), "the end of every job", limit_s=LIMIT_S, every_s=1.0)
    # Not the words: of a lost run they end with those of its job, perhaps half a traceback on a full disk.
    states = {run["state"] for run in json.loads(study.platform("status", "--json", code=None))["runs"]}
    assert states <= {"failed", "lost", "pending"}
    refused = study.submit(code=2)
    assert "No space left on device" in refused
    filler.unlink()
    study.until(lambda rows: {row["state"] for row in rows.values()} <= {"failed", "lost", "done"})
    study.submit()
    study.until_done()
    assert study.metrics() == study.undisturbed()


@pytest.mark.studies
def test_a_tracking_server_that_is_down_throughout_and_back_at_the_end_gets_everything(study, tmp_path, empty_store):
    with mlflow_server(tmp_path, empty_store) as server:
        study.submit("--tracking-uri", server.uri)
        watch = study.start("sync", "small", "--watch", "--every", "2", "--tracking-uri", server.uri)
        study.until_done()
        server.start()
        said, _ = watch.communicate(timeout=LIMIT_S)
        assert watch.returncode == 0, said
        assert "rows are left, because" in said
        assert said.rstrip().endswith("MLflow has everything")
        assert "is up to date" in study.platform("sync", "--tracking-uri", server.uri)
