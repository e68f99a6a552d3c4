"""Eighty generators under the real coordinator: two are killed, one is slow, one is late, and nothing is lost."""

import re
import threading
import time
from collections import Counter
from functools import partial

import pytest
from trainer.cluster.test_other_engines import ANSWERS, parts_of
from trainer.engines import ListGenerator, SlowGenerator, ThreadLauncher
from trainer.tiny import random_policy
from trainer.wall import assert_no_group_is_lost_or_used_twice, versions_of, wall_recipe, watched_draws

from scalerl.processes import process_cluster
from scalerl.processes.generator_process import GeneratorWork
from scalerl.processes.launch import local_units
from scalerl.processes.process_cluster import WallCluster
from scalerl.schedules import SCHEDULES
from scalerl.weights.shared_memory import SharedMemoryStore

UNITS, SLOW, LATE, KILLED = 80, 7, 11, (23, 29)
"""The killed are among the first 32, as many as a batch has groups: of idle generators, the first get them."""


def test_of_eighty_units_two_are_killed_one_is_slow_one_is_late_and_no_group_is_lost_or_doubled(monkeypatch):
    monkeypatch.setattr(process_cluster, "LATE_S", 0.5)
    settings = {"zero_variance": "keep", "batch": {"prompts": 32}, "length_control": {"type": "none"}}
    recipe = wall_recipe(UNITS, 8, off_policy={"type": "pipeline", "k": 8}, **settings)
    policy = random_policy(recipe)
    parts = parts_of(recipe, policy)
    store, late = SharedMemoryStore(policy.exported_weights()), threading.Event()
    generators = [(SlowGenerator if number in (SLOW, *KILLED) else ListGenerator)(ANSWERS) for number in range(UNITS)]
    launcher = ThreadLauncher(generators, store, {LATE: late})
    work = GeneratorWork(maker=partial(ListGenerator, ANSWERS), store=store, threads=1)
    units = local_units(recipe)
    cluster = WallCluster(launcher=launcher, units=units, work=work, off_clock=ListGenerator(ANSWERS), **parts)
    drawn = watched_draws(cluster)
    finished = Counter()
    collect = cluster._collect

    def count(one):
        finished[one.request.group, one.request.index] += 1
        collect(one)

    cluster._collect = count
    try:
        cluster.start()
        steps = [SCHEDULES["pipeline"](cluster) for _ in range(4)]
        assert cluster.records[LATE].stage == "starting"
        for number in KILLED:
            while not cluster.records[number].groups:
                steps.append(SCHEDULES["pipeline"](cluster))
            launcher.bodies[number][0].kill()
        late.set()
        killed = time.monotonic()
        while len(cluster.news) < len(KILLED):
            cluster.catch_up()
            assert time.monotonic() - killed < 10
        assert all(" died (signal 9). " in line for line in cluster.news), cluster.news
        lost = sum(int(count) for line in cluster.news for count in re.findall(r"Its (\d+) unfinished", line))
        while any(record.stage != "at work" for record in cluster.records) or len(steps) < 16:
            steps.append(SCHEDULES["pipeline"](cluster))
        with cluster.paused():
            cluster.catch_up()
            spent, elapsed = cluster.device_seconds(), cluster.clock.trainer_free
    finally:
        cluster.close()
    assert sorted(line.split(".")[0] for line in cluster.news) == [
        f"generator {number} died (signal 9)" for number in KILLED
    ]
    assert_no_group_is_lost_or_used_twice(cluster, steps, drawn)
    trained, inside = [group for step in steps for group in step.groups], [group for _, group in cluster.ready]
    assert {len(group.rollouts) for group in trained + inside} == {recipe.batch.generations}
    # What came in twice came in again after a death.
    twice = {group for (group, _), count in finished.items() if count > 1}
    assert len(twice) <= lost
    assert max(finished.values()) <= 2
    assert all(step.version - min(versions_of(step)) <= 8 for step in steps)
    assert set(versions_of(steps[-1])) != {0}
    assert sum(spent["generator"].values()) == pytest.approx(UNITS * elapsed, rel=0.01)
    assert sum(spent["trainer"].values()) == pytest.approx(elapsed, rel=0.01)
    assert spent["generator"]["dead"] > 0
    # The slow one was given less and held nobody up; the late one was given work.
    assert cluster.records[LATE].taken > 0
    for bodies in launcher.bodies.values():
        for body in bodies:
            body.thread.join(10)
            assert not body.thread.is_alive()
