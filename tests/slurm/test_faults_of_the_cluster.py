"""What a cluster does to jobs: a node that dies or is drained, a controller that is restarted or forgets everything."""

import time

import pytest
from slurm.study import LIMIT_S, SlurmStudy
from waiting import wait_until


def start(study: SlurmStudy, budget: float) -> None:
    study.budget = budget
    study.write()
    study.submit()
    study.until_trains("scalerl")


@pytest.mark.studies
def test_a_restarted_controller_changes_no_state_while_it_is_away(broken_study):
    study = broken_study
    start(study, 20.0)
    study.cluster.kill_controller()
    wait_until(
        lambda: "Slurm did not answer" in " ".join(study.platform("status", code=None).split()),
        "a status that asked Slurm in vain",
        limit_s=LIMIT_S,
    )
    assert study.states()["scalerl"] in ("running", "done")
    study.cluster.start_controller()
    study.until_done()
    assert [row["attempt"] for row in study.rows().values()] == [1, 1, 1]


@pytest.mark.studies
def test_a_killed_node_daemon_loses_no_run(broken_study):
    study = broken_study
    start(study, 4.0)
    study.cluster.kill_node()
    time.sleep(3)
    study.cluster.start_node()
    rows = study.until_done()
    assert {row["attempt"] for row in rows.values()} <= {1, 2}
    assert study.metrics() == study.undisturbed()


def test_jobs_of_a_drained_node_wait_with_its_reason(broken_study):
    study = broken_study
    node = study.cluster.run("sinfo", "-h", "-o", "%n").stdout.strip()
    study.cluster.run("scontrol", "update", f"NodeName={node}", "State=DRAIN", "Reason=test")
    study.submit()
    row = study.until(
        lambda rows: "DOWN" in rows["scalerl"]["message"] or "drain" in rows["scalerl"]["message"].lower()
    )
    assert row["scalerl"]["state"] == "queued"
    study.cluster.run("scontrol", "update", f"NodeName={node}", "State=RESUME")
    study.until_done()


@pytest.mark.studies
def test_a_controller_that_forgot_everything_leaves_runs_that_are_lost_and_its_ids_confuse_nobody(broken_study):
    study = broken_study
    start(study, 4.0)
    first = {one.name: one.job for one in study.submissions()}
    study.cluster.kill_controller()
    study.cluster.start_controller(forget=True)
    # Somebody else's jobs take the ids that ours had; held, since the node would not start an id that still runs there.
    held = ("sbatch", "--parsable", "--hold", "--output=/dev/null", "--wrap", "true")
    others = {study.cluster.run(*held).stdout.strip() for _ in range(6)}
    assert others >= set(first.values())
    rows = study.until(lambda rows: {row["state"] for row in rows.values()} <= {"lost", "done"})
    assert "lost" in {row["state"] for row in rows.values()}
    study.platform("retry")
    study.until_done()
    assert study.metrics() == study.undisturbed()
