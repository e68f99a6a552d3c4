"""A run over nodes of this machine: whatever dies is noticed, the run goes on or resumes, and nothing is lost."""

import json
import os
import signal
import time
from contextlib import ExitStack, closing

import pytest
from trainer.processes.agents import agents, children_of, is_alive, parent_of, place
from trainer.runs import PROCESSES
from trainer.tiny import random_policy, tiny_recipe
from trainer.wall import (
    assert_no_group_is_lost_or_used_twice,
    schedule_recipe,
    take_steps,
    wall_cluster,
    wall_recipe,
)
from waiting import wait_until

from scalerl.processes.coordinator import Coordinator
from scalerl.processes.launch import units_of
from scalerl.run.run_folder import RunFolder
from scalerl.run.run_log import read_rows
from scalerl.run.train import train
from scalerl.weights.broadcast import BroadcastStore

NODES = 4
NOTICED_S = 10.0


def test_an_agent_and_a_process_are_killed_and_no_group_is_lost_or_doubled(tmp_path, monkeypatch):
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    recipe = schedule_recipe("pipeline", 8, generators=NODES - 1, length_control={"type": "none"})
    policy = random_policy(recipe)
    with ExitStack() as stack:
        coordinator = stack.enter_context(closing(Coordinator(tmp_path, place(0, NODES), listen="127.0.0.1")))
        processes = stack.enter_context(agents(tmp_path, NODES))
        coordinator.await_agents()
        units = units_of(recipe, [0, *coordinator.devices])
        assert [(unit.name, unit.node) for unit in units] == [
            ("trainer 0", 0),
            ("generator 0", 1),
            ("generator 1", 2),
            ("generator 2", 3),
        ]
        store = BroadcastStore(
            policy.exported_weights(), coordinator, tmp_path / "weights", ranks=[0], readers=range(1, NODES)
        )
        cluster = stack.enter_context(wall_cluster(recipe, policy, store, launcher=coordinator, units=units))
        steps = take_steps(cluster, 3)
        assert [(unit.unit, unit.node, unit.state) for unit in cluster.units()] == [
            ("trainer 0", "fake0", "at work"),
            ("generator 0", "fake1", "at work"),
            ("generator 1", "fake2", "at work"),
            ("generator 2", "fake3", "at work"),
        ]
        first = cluster.fleet.process_ids
        assert all(map(is_alive, first))
        steps += busy(cluster, 0)
        processes[0].kill()
        noticed(cluster, 1)
        wait_until(lambda: not is_alive(first[0]), "the end of what the agent had started", limit_s=NOTICED_S)
        said = "generator 0 died (its process or its node is gone). Not restarting: its node is gone"
        assert cluster.news[0].startswith(said)
        steps += busy(cluster, 1)
        os.kill(first[1], signal.SIGKILL)
        noticed(cluster, 2)
        assert cluster.news[1].startswith("generator 1 died (signal 9). Restarting (attempt 1 of 3)")
        while cluster.records[1].stage != "at work" or len(steps) < 12:
            steps += take_steps(cluster, 1)
        assert parent_of(cluster.fleet.process_ids[1]) == processes[1].pid, "on its own node"
        steps += take_steps(cluster, 3)
        assert [(unit.state, unit.deaths) for unit in cluster.units()[1:]] == [
            ("gone", 1),
            ("at work", 1),
            ("at work", 0),
        ]
        with cluster.paused():
            cluster.catch_up()
            spent, elapsed = cluster.device_seconds(), cluster.clock.trainer_free
            assert_no_group_is_lost_or_used_twice(cluster, steps, cluster.drawn)
        last = [*first, *cluster.fleet.process_ids]
        cluster.close()
        assert not any(map(is_alive, last))
        coordinator.close()
        assert [process.wait(NOTICED_S) for process in processes] == [-9, 0, 0]
    assert sum(spent["generator"].values()) == pytest.approx((NODES - 1) * elapsed, rel=0.01)
    assert sum(spent["trainer"].values()) == pytest.approx(elapsed, rel=0.01)
    assert spent["generator"]["dead"] > 0
    assert {len(group.rollouts) for step in steps for group in step.groups} == {recipe.batch.generations}
    assert not (tmp_path / "weights").exists()


def busy(cluster, number):
    """Steps until a generator has groups to lose."""
    steps = []
    while not cluster.records[number].groups:
        steps += take_steps(cluster, 1)
    return steps


def noticed(cluster, count):
    """The cluster has said so much, without a step, in time."""
    killed = time.monotonic()
    while len(cluster.news) < count:
        cluster.catch_up()
        time.sleep(0.01)
        assert time.monotonic() - killed < NOTICED_S


def over_nodes(folder, budget, warm_starts, allocation, nodes):
    """What the first node of a job does."""
    train(folder, budget_gpu_hours=budget, warm_starts=warm_starts, place=place(0, nodes, allocation))


RESUMED_ON = 3
"""Nodes of the run that is killed and resumes: more than two generators would show nothing else."""
BUDGET = 0.006
"""Of three devices: some seconds."""


@pytest.fixture
def folder(tmp_path):
    made = RunFolder(tmp_path / "run")
    made.create(wall_recipe(generators=RESUMED_ON - 1, checkpoint_every_s=0.5, compute_unit_gpu_hours=0.002), 0)
    return made


def begin(folder, allocation, budget=BUDGET, nodes=RESUMED_ON):
    arguments = (folder.path, budget, folder.path.parent / "w", allocation, nodes)
    process = PROCESSES.Process(target=over_nodes, args=arguments)
    process.start()
    return process


def trained(folder, steps):
    """The units' processes once the run has taken so many steps, by what the status says."""
    return wait_until(lambda: folder.read_status().step >= steps and folder.read_status(), "some steps")


def test_when_the_coordinator_is_killed_nothing_is_left_and_the_run_resumes_over_the_nodes(folder):
    with agents(folder.path, RESUMED_ON, allocation="5.0") as processes:
        coordinator = begin(folder, "5.0", budget=1.0)
        before = trained(folder, 6)
        started = [child for agent in processes for child in children_of(agent.pid)]
        assert len(started) == 2 * (RESUMED_ON - 1)  # each a generator and its warden
        assert {unit.node for unit in before.units} == {f"fake{node}" for node in range(RESUMED_ON)}
        assert list(folder.weights.iterdir()) == [], "weights go from memory to memory"
        assert coordinator.pid is not None
        os.kill(coordinator.pid, signal.SIGKILL)
        killed = time.monotonic()
        coordinator.join(60)
        assert [agent.wait(NOTICED_S) for agent in processes] == [0] * (RESUMED_ON - 1)
        assert time.monotonic() - killed < NOTICED_S
        wait_until(lambda: not any(map(is_alive, started)), "the wardens' end")
    with agents(folder.path, RESUMED_ON, allocation="5.1") as processes:
        reached = folder.read_status().compute_gpu_hours
        again = begin(folder, "5.1", budget=reached + BUDGET / 2)
        again.join(120)
        assert again.exitcode == 0
        assert [agent.wait(NOTICED_S) for agent in processes] == [0] * (RESUMED_ON - 1)
    assert_whole(folder, attempt=2)
    assert not folder.weights.exists()
    assert json.loads((folder.path / "meeting.json").read_bytes()) == {"allocation": "5.1", "ended": True}


@pytest.mark.engines
def test_the_node_of_a_trainer_rank_is_gone_and_the_attempt_ends_behind_its_checkpoint(tmp_path):
    folder = RunFolder(tmp_path / "run")
    shape = {"learner": {"type": "fsdp", "ranks": 2}, "checkpoint_every_s": 0.5, "compute_unit_gpu_hours": 0.002}
    folder.create(wall_recipe(generators=2, **shape), 0)
    with agents(folder.path, NODES, allocation="6.0") as processes:
        coordinator = begin(folder, "6.0", budget=1.0, nodes=NODES)
        before = trained(folder, 4)
        assert {unit.unit: unit.node for unit in before.units} == {
            "trainer 0": "fake0",
            "trainer 1": "fake1",
            "generator 0": "fake2",
            "generator 1": "fake3",
        }
        started = [child for agent in processes for child in children_of(agent.pid)]
        wait_until(lambda: (folder.checkpoint / "manifest.json").exists(), "a checkpoint")
        processes[0].kill()
        killed = time.monotonic()
        status = wait_until(lambda: folder.read_status().state == "failed" and folder.read_status(), "the end")
        assert time.monotonic() - killed < NOTICED_S
        assert status.message == "rank 1 of the learner's 2 died (its process or its node is gone)"
        coordinator.join(60)
        assert [agent.wait(NOTICED_S) for agent in processes[1:]] == [0, 0]
        wait_until(lambda: not any(map(is_alive, started)), "the end of what agents had started", limit_s=NOTICED_S)
    with agents(folder.path, NODES, allocation="6.1"):
        reached = folder.read_status().compute_gpu_hours
        again = begin(folder, "6.1", budget=reached + BUDGET / 2, nodes=NODES)
        again.join(120)
        assert again.exitcode == 0
    assert_whole(folder, attempt=2)


def assert_whole(folder, *, attempt):
    """The run is done with every step once and every device-second booked."""
    status = folder.read_status()
    assert (status.state, status.attempt) == ("done", attempt)
    rows = list(read_rows(folder.metrics, kind="train"))
    assert [row["step"] for row in rows] == list(range(1, len(rows) + 1)), "each step once"
    for row in rows:
        spent = sum(seconds for role in row["device_s"].values() for seconds in role.values())
        assert spent == pytest.approx(3600 * row["compute_gpu_hours"], rel=0.01)


def test_a_virtual_cluster_is_refused_on_several_nodes(tmp_path):
    folder = RunFolder(tmp_path / "run")
    folder.create(tiny_recipe(), 0)
    with pytest.raises(ValueError, match="a virtual cluster runs in one process, but the job has 4 nodes"):
        train(folder.path, budget_gpu_hours=1.0, warm_starts=tmp_path, place=place(0, NODES))
    assert folder.read_status().state == "failed"
