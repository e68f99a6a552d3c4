"""Programs of the user's own on a real Ray cluster of two nodes: whatever is killed, they go on; nothing is left."""

import os
import signal

import pytest
from own_programs import HELD, write_study
from ray_cluster.cluster import RayCluster, command_line
from ray_cluster.study import LIMIT_S, RayStudy

from scalerl.run.run_log import read_rows


@pytest.fixture
def study(cluster, tmp_path):
    return RayStudy(cluster=cluster, folder=tmp_path)


def write(study: RayStudy, script: str, **keys: str) -> None:
    """Replace the study's file by one whose program is `script`."""
    given = {"name": "small", "seeds": "[0]", "budget": "{compute: 300}", "resources": "{mem_gb: 1}"}
    write_study(study.file.parent, script, **given | keys).rename(study.file)


def at_20(rows, *, besides=()):
    """The rows, if each run stands at its 20th step, in a process other than these."""
    standing = [row["state"] == "running" and row["step"] == 20 and row["pid"] not in besides for row in rows.values()]
    return rows if standing and all(standing) else None


def test_a_program_goes_on_whatever_is_killed_or_cancelled(cluster, study):
    finish = study.folder / "finish"
    write(study, HELD.format(finish=str(finish), last=30))
    command = study.begin()
    study.until(at_20, "both programs", command)
    assert "2 of 2 runs to train, 2 at a time on Ray at" in study.said
    cluster.kill_node(cluster.second)
    study.until_said("worker on it, is gone", command)
    cluster.second = cluster.add_node(1)
    rows = study.until(lambda rows: at_20(rows) and attempts(rows) == [1, 2] and rows, "both programs anew", command)
    before = {row["pid"] for row in rows.values()}
    (driver,) = [process for process in cluster.ours() if "ablations.ray.driver" in command_line(process)]
    os.kill(driver, signal.SIGKILL)
    study.until_said("Ray's driver has ended", command)
    study.until(lambda rows: at_20(rows, besides=before) and attempts(rows) == [2, 3], "another driver", command)
    study.platform("cancel", "--variant", "rate=0.2")
    study.until(lambda rows: rows["rate=0.2"]["state"] == "cancelled", "the end of one program", command)
    command.kill()
    command.wait()
    study.until_nothing_is_left()
    assert {row["state"] for row in study.rows().values()} == {"cancelled"}

    finish.touch()
    command = study.begin()
    assert command.wait(LIMIT_S) == 0, study.said
    study.until_nothing_is_left()
    logs = [[row["step"] for row in read_rows(path)] for path in study.home.glob("runs/*/metrics.jsonl")]
    assert logs == [list(range(31))] * 2


@pytest.mark.studies
def test_when_the_head_node_is_gone_nothing_is_left_and_the_command_says_so(ray_is_there, tmp_path):
    with RayCluster(cpus=1) as own:
        own.add_node(1)
        study = RayStudy(cluster=own, folder=tmp_path)
        write(study, HELD.format(finish=str(tmp_path / "finish"), last=30))
        command = study.begin()
        study.until(at_20, "both programs", command)
        own.kill_node(0)
        assert command.wait(LIMIT_S) == 2, study.said
        assert "error: no Ray cluster to train on" in study.said
        study.until_nothing_is_left()
        # A run waits again if its loss is noticed before that of the cluster; either goes on by the same command.
        assert {row["state"] for row in study.rows().values()} <= {"stale", "pending"}


def attempts(rows):
    """The attempts of the runs, in order."""
    return sorted(row["attempt"] for row in rows.values())


def test_a_run_that_fits_no_node_and_a_cluster_that_is_not_there_are_refused_with_what_there_is(cluster, study):
    write(study, "go_on(3)", resources="{mem_gb: 1, cpus: 64}")
    sweep = ("sweep", str(study.file), "--executor", "ray")
    refused = " ".join(study.platform(*sweep, code=2).split())
    assert "a run needs 1 node with 64 CPUs and 1 GB, and of 2 nodes of the Ray cluster none can hold that" in refused
    refused = " ".join(study.platform(*sweep, code=2, RAY_ADDRESS="127.0.0.1:1").split())
    assert "no Ray cluster to train on (RAY_ADDRESS is 127.0.0.1:1): [Errno 111] Connection refused" in refused
