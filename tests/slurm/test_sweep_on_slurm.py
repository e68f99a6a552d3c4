"""A sweep through a real Slurm, from its file to its table, and all that its user may do to it on the way."""

import json

import pytest
from slurm.study import SlurmStudy
from waiting import wait_until


@pytest.mark.studies
def test_the_table_is_that_of_the_local_executor(study):
    study.write(resources="at_once: 2")
    study.submit()
    study.until_done()
    here = SlurmStudy(cluster=study.cluster, folder=study.folder.with_name("here"))
    here.platform("sweep", str(here.file))
    assert study.metrics() == here.metrics()
    tables = [json.loads(one.platform("compare", "--json")) for one in (study, here)]
    assert tables[0]["variants"] == tables[1]["variants"]
    said = study.submit()  # nothing is left: the same command concludes, as it does here
    assert "report" in said
    assert "0 left" in said or "is up to date" in said
    assert len(study.submissions()) == 1


def test_at_most_as_many_runs_train_at_once_as_the_sweep_says(study):
    study.write(resources="at_once: 1")
    study.submit()
    (submission,) = study.submissions()
    shown = study.cluster.run("scontrol", "show", "job", str(submission.job)).stdout
    assert "ArrayTaskThrottle=1" in shown
    study.until_done()


def test_a_second_sweep_submits_nothing_that_has_a_job_and_a_larger_budget_extends(study):
    study.submit("--hold")
    assert len(study.submissions()) == 1
    study.submit()
    assert len(study.submissions()) == 1
    (first,) = study.submissions()
    said = study.submit("--budget", "2.0")
    assert "trains 3 runs" in said
    second = study.submissions()[-1]
    waits = study.cluster.run("squeue", "--noheader", f"--jobs={second.job}", "--format=%E").stdout
    assert f"afterany:{first.job}" in waits
    study.cluster.run("scontrol", "release", str(first.job))
    rows = study.until_done()
    assert {row["compute_gpu_hours"] >= 16.0 for row in rows.values()} == {True}
    assert {row["attempt"] for row in rows.values()} == {2}


def test_prune_cancels_what_left_the_file_and_nothing_else(study):
    study.submit("--hold")
    text = study.file.read_text()
    study.file.write_text(text.replace("    loss:\n", ""))
    said = study.submit("--prune", "--hold")
    assert "cancelled 1 job of runs that left the sweep file" in said
    (submission,) = study.submissions()
    assert len(study.queued()) == 2
    assert set(study.queued()) == {submission.name}


def test_cancel_stops_the_variants_that_are_named(study):
    study.submit("--hold")
    study.platform("cancel", "small", "--variant", "loo-loss")
    assert len(study.queued()) == 2
    study.until_states(loo_loss="cancelled", scalerl="queued")
    study.platform("cancel", "small")
    assert study.queued() == []
    study.submit()
    study.until_done()


def test_a_dependency_and_a_hold_are_given_to_slurm(study):
    other = study.cluster.run("sbatch", "--parsable", "--hold", "--output=/dev/null", "--wrap", "true").stdout.strip()
    study.submit("--after", other)
    rows = study.until(lambda rows: "Dependency" in rows["scalerl"]["message"])
    assert rows["scalerl"]["state"] == "queued"
    study.cluster.run("scontrol", "release", other)
    study.until_done()


@pytest.mark.studies
def test_after_three_equal_failures_the_rest_is_held_until_it_is_retried(study, source, hook):
    path = source / "scalerl" / "run" / "loop.py"
    whole = path.read_text()
    healthy = "status.beat(threads=self.recipe.threads)"
    assert healthy in whole
    path.write_text(whole.replace(healthy, 'raise RuntimeError(f"device {id(self)} of {folder.path.name} fails")'))
    study.write(resources="at_once: 1", seeds="[0, 1]", notify="{url: $HOOK}")
    environment = {"PYTHONPATH": str(source)}
    study.platform("sweep", str(study.file), "--executor", "slurm", "--yes", **environment)

    def count(state):
        return [row["state"] for row in study.runs()].count(state)

    study.until(lambda rows: count("failed") == 3 and count("queued") == 3 and "held because" in str(rows))
    said = study.platform("status", code=None)
    assert "3 runs in a row failed" in said
    path.write_text(whole)
    said = study.platform("retry", **environment)
    assert "cancelled 3 held jobs" in said
    assert "trains 6 runs" in said
    study.until(lambda _: count("done") == 6)
    wait_until(lambda: "done" in hook.kinds, "the last job tells of the end")
    assert sorted(hook.kinds) == ["done", "failed", "failed", "failed", "held"]


@pytest.mark.studies
def test_jobs_that_die_before_any_python_are_held_too(study):
    study.write(resources="at_once: 1, setup: ['echo no such module >&2; exit 3']", seeds="[0, 1]")
    study.submit()
    rows = study.until(lambda rows: "held" in rows["loo-off_policy"]["message"])
    assert rows["loo-off_policy"]["state"] == "queued"
    assert "ended before training began" in rows["scalerl"]["message"]
    assert "no such module" in study.platform("logs", "scalerl", code=None)
    study.write(resources="at_once: 3")
    study.submit()
    study.until_done()
