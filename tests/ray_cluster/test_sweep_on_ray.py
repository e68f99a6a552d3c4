"""Training on a real Ray cluster of two nodes: the numbers of this machine, whatever is killed; and a run over both."""

import os
import signal

import pytest
from integration.conftest import SCALE, read_metrics
from ray_cluster.cluster import command_line
from ray_cluster.study import LIMIT_S, RayStudy, all_train
from waiting import wait_until

from scalerl.run.run_folder import RunFolder
from scalerl.run.run_log import read_rows

ONE_SIZE = ("cluster", "  attention", "evaluation", "compute_unit", "model", "warm_start", "optimiser", "batch")
WALL = [line for line in SCALE.splitlines() if not line.startswith(ONE_SIZE)]
WALL += """
model: {hidden: 64, layers: 2, heads: 2, mlp: 128}
warm_start: {steps: 60, batch: 64, learning_rate: 2.5e-3, noise: 0.25}
optimiser: {learning_rate: 3.0e-4, warmup_steps: 4, micro_batch_tokens: 1024}
batch: {prompts: 16, generations: 8}
cluster: {type: wall, generators: 1, slots: 64}
evaluation: {every: 1.5, samples: 2}
compute_unit_gpu_hours: 0.002
threads: 1
checkpoint_every_s: 1
""".splitlines()
"""The first node trains, the second generates."""
OVER_TWO = """
name: small
reference: scalerl
seeds: [0]
scale: seconds
variants: {ppo: {off_policy: {type: ppo_off_policy, k: 4}}}
budget: {compute: 10.0}
resources: {nodes: 2, cpus: 1, mem_gb: 1}
"""


@pytest.mark.studies
def test_a_killed_node_a_killed_driver_and_a_killed_command_change_no_digit(cluster, tmp_path):
    study = RayStudy(cluster=cluster, folder=tmp_path)
    command = study.begin()
    first = stopped(study.until(lambda rows: all_train(rows, steps=10) and rows, "both runs to train", command))
    cluster.kill_node(cluster.second)
    cluster.second = cluster.add_node(1)
    study.until_said("worker on it, is gone", command)
    second = stopped(study.until(lambda rows: goes_on(rows, first, runs=1), "the run to go on", command))
    (driver,) = [process for process in cluster.ours() if "ablations.ray.driver" in command_line(process)]
    os.kill(driver, signal.SIGKILL)
    study.until_said("driver has ended", command)
    stopped(study.until(lambda rows: goes_on(rows, second, runs=2), "both runs to go on", command))
    command.kill()
    command.wait()
    for process in cluster.ours():
        os.kill(process, signal.SIGCONT)
    study.until_nothing_is_left()
    assert {row["state"] for row in study.rows().values()} == {"cancelled"}  # each has saved its checkpoint

    command = study.begin()
    assert command.wait(LIMIT_S) == 0, study.said
    assert {row["state"] for row in study.rows().values()} == {"done"}
    study.until_nothing_is_left()
    assert read_metrics(study.home) == study.undisturbed()


@pytest.mark.studies
def test_a_run_over_two_nodes_learns_loses_its_second_node_and_learns_on(cluster, tmp_path):
    study = RayStudy(cluster=cluster, folder=tmp_path, sweep=OVER_TWO, scale="\n".join(WALL))
    command = study.begin()
    rows = study.until(lambda rows: trains(rows, attempt=1) and rows, "the run to train", command)
    assert ", 1 at a time on Ray" in study.said
    run = RunFolder(study.home / "runs" / rows["scalerl"]["id"])
    assert "met the coordinator" in run.log(1, node=1).read_text()
    (agent,) = [process for process in cluster.ours() if is_node(process, 1)]
    assert os.getpriority(os.PRIO_PROCESS, agent) == os.getpriority(os.PRIO_PROCESS, 0)
    first = [process for process in cluster.ours() if is_node(process, 0)]
    cluster.kill_node(cluster.second)
    wait_until(lambda: not command_line(agent), "the end of the agent", limit_s=LIMIT_S)
    cluster.second = cluster.add_node(1)
    study.until(lambda rows: trains(rows, attempt=2), "the run to train with another node", command)
    assert not any(map(command_line, first))
    study.until(lambda rows: rows["scalerl"]["state"] == "done", "the end of the run", command)
    study.interrupt(command)  # which is at the second variant
    study.until_nothing_is_left()
    rates = [row["pass_rate"] for row in read_rows(run.metrics, kind="eval")]
    assert rates[-1] > rates[0] + 0.1, rates


def trains(rows, *, attempt):
    """Whether the reference has taken some steps in this attempt."""
    row = rows.get("scalerl", {"state": ""})
    return row["state"] == "running" and row["attempt"] == attempt and row["step"] >= 5


def is_node(process, number):
    """Whether a process is that of this node of a run."""
    words = command_line(process).split()
    return "ablations.ray.job" in words and words[words.index("ablations.ray.job") + 2] == str(number)


def stopped(rows):
    """The rows, once their processes stand still, so that no run ends before the test is done with it."""
    for row in rows.values():
        os.kill(row["pid"], signal.SIGSTOP)
    return rows


def goes_on(rows, before, *, runs):
    """The rows, if so many runs train in another process than before."""
    others = [row for name, row in rows.items() if row["pid"] not in (None, before[name]["pid"])]
    return rows if len(others) == runs and all_train(rows, steps=0) else None
