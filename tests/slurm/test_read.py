"""`status`, `status -w` and `logs` of runs that are jobs: what they show while jobs wait, train, and die."""

import json

import pytest
from slurm.study import LIMIT_S, SlurmStudy


@pytest.fixture
def study(cluster, tmp_path):
    yield SlurmStudy(cluster=cluster, folder=tmp_path / "study")
    cluster.cancel_all()


def test_jobs_that_die_before_training_are_one_failure_with_what_they_printed(study):
    study.write(resources="setup: ['echo no module here >&2', 'exit 3']")
    study.submit()
    rows = study.until(lambda rows: {row["state"] for row in rows.values()} == {"failed"})
    shown = study.platform("status", code=1)
    assert shown.count("no module here") == 1
    assert shown.count("see 1 below") == 3
    assert "3 runs failed: scalerl-s0, loo-loss-s0, loo-off_policy-s0" in shown
    (failure,) = json.loads(study.platform("status", "--json", code=1))["failures"]
    assert failure["runs"] == [row["id"] for row in rows.values()]
    assert "no module here" in failure["trace"]
    printed = study.platform("logs", "loo-loss")
    assert "its last job ended before training began" in printed
    assert "no module here" in printed
    study.write()
    study.submit()
    study.until_done()
    assert "pass rate" in study.platform("logs", "loo-loss")


@pytest.mark.studies
def test_the_watch_and_a_followed_log_go_on_while_jobs_wait_and_end_with_them(study):
    study.write(resources="at_once: 1")
    study.submit()
    watch, log = study.start("status", "-w"), study.start("logs", "loo-off_policy", "-f")
    watched, complained = watch.communicate(timeout=LIMIT_S)
    assert watch.returncode == 0, watched + complained
    printed, said = log.communicate(timeout=LIMIT_S)
    assert log.returncode == 0, printed + said
    assert "queued" in watched.splitlines()[0]
    assert "3 done; 100% of the compute" in watched
    assert "waiting for its first line" in said
    assert printed.count("pass rate") >= 10
