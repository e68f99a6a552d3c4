"""Episodes on the wall clock: generators decode while environments answer, and no episode is lost or counted twice."""

import copy
import os
import signal
import time

import numpy as np
import pytest
from trainer.own_games import own_task
from trainer.processes.agents import children_of, is_alive
from trainer.tiny import maker_of, random_policy
from trainer.wall import assert_no_group_is_lost_or_used_twice, schedule_recipe, take_steps, wall_cluster
from waiting import wait_until

from scalerl.generator.episode_generator import LOOK_FOR_REPLIES_S
from scalerl.generator.request import Request
from scalerl.model.build import new_policy
from scalerl.tasks import make_task
from scalerl.tokens import make_tokenizer
from scalerl.weights.shared_memory import SharedMemoryStore


def recipe_of(folder, game="Rounds", *, generators=1, slots=12, k=3, **settings):
    settings = {"settings": settings, "turns": 9, "context_tokens": 70, "train": 60, "validation": 2}
    task = own_task(folder, game, time_limit_s=100, **settings)
    recipe = schedule_recipe(
        "pipeline",
        k,
        generators,
        model={"hidden": 16, "layers": 1, "heads": 2, "mlp": 16, "tokenizer": "characters"},
        tasks=[task.model_dump()],
        generation={"thinking": "none", "answer": 4},
        length_control={"type": "none"},
    )
    return recipe.model_copy(update={"cluster": recipe.cluster.model_copy(update={"slots": slots})})


def running(recipe, policy=None, **settings):
    policy = policy or random_policy(recipe)
    return wall_cluster(recipe, policy, SharedMemoryStore(policy.exported_weights()), **settings)


def test_a_generator_decodes_other_episodes_while_an_environment_answers(tmp_path):
    recipe = recipe_of(tmp_path, "Gate", slots=1, path=str(tmp_path / "open"))
    task = make_task(recipe.tasks[0], make_tokenizer(recipe.model, thinks=False))
    generator = maker_of(recipe, task, random_policy(recipe))()
    generator.submit([Request(prompt=task.train[0], group=i, index=0, seed=i) for i in range(2)])
    steps, work = 0, []
    try:
        while not generator.awaits_environment:
            finished, done = generator.step()
            assert not finished  # a step that waits for an answer returns when the environment's time is over
            work.append(done)
            steps += 1
        # One slot decoded both first turns, of one to four tokens, one after the other, and nobody answered meanwhile.
        assert sum(one.sequences for one in work) == steps
        assert 2 <= steps <= 8
        assert generator.busy
        assert generator.has_room
        began = time.monotonic()
        for _ in range(3):
            finished, done = generator.step()
            assert (finished, done.sequences) == ([], 0)
        assert time.monotonic() - began > 0.1  # the process sleeps, with a look at orders in between
        assert LOOK_FOR_REPLIES_S < 1
        (tmp_path / "open").touch()
        wait_until(lambda: generator.step()[1].sequences == 1, "the second turn")
        assert not generator.awaits_environment
    finally:
        generator.close()


def test_the_time_in_which_all_rollouts_wait_is_booked_to_their_environments(tmp_path):
    recipe = recipe_of(tmp_path, k=1, path=str(tmp_path / "open"))
    with running(recipe) as cluster:
        (account,) = cluster.accounts.generators
        cluster.admit()
        wait_until(lambda: cluster.catch_up() or account.doing == "wait_environment", "rollouts that all wait")
        began = time.monotonic()
        wait_until(lambda: time.monotonic() - began > 1, "a while in which nothing is decoded")
        waited = time.monotonic() - began
        (tmp_path / "open").touch()
        steps = take_steps(cluster, 4)
        spent = cluster.device_seconds()["generator"]
        assert sum(spent.values()) == pytest.approx(cluster.clock.trainer_free, rel=0.01)
        assert waited <= spent["wait_environment"] < cluster.clock.trainer_free
        assert spent["decode"] > 0
        assert {len(one.episode.turns) for step in steps for group in step.groups for one in group.rollouts} == {3}
        assert_no_group_is_lost_or_used_twice(cluster, steps, cluster.drawn)
        children = [child for process in cluster.fleet.process_ids for child in children_of(process)]
        assert len(children) == 1
    wait_until(lambda: not any(map(is_alive, children)), "the end of the environments")


@pytest.mark.slow
def test_a_cluster_that_takes_over_a_state_plays_every_episode_in_flight_to_its_end_once(tmp_path):
    recipe = recipe_of(tmp_path, seconds=0.005)
    with running(recipe) as cluster:
        steps = take_steps(cluster, 3)
        while True:
            with cluster.paused():
                state = copy.deepcopy(cluster.state_dict())
            if any(one.taken for one in state["generators"][0]["episodes"]):
                break  # else nothing could be lost: its generator had played all that it may while this process waited
            steps += take_steps(cluster, 1)
        drawn = cluster.drawn
    with running(recipe, new_policy(recipe), state=state) as again:
        steps += take_steps(again, 4)
        assert [step.version for step in steps] == list(range(len(steps)))
        assert_no_group_is_lost_or_used_twice(again, steps, drawn + again.drawn)
    rollouts = [one for step in steps for group in step.groups for one in group.rollouts]
    assert {(len(one.episode.turns), one.episode.end) for one in rollouts} == {(3, "won")}
    assert all(np.diff([turn.start for turn in one.episode.turns]).min() > 2 for one in rollouts)


@pytest.mark.slow
def test_the_episodes_of_a_killed_generator_are_played_again_and_its_environments_end_with_it(tmp_path):
    recipe = recipe_of(tmp_path, generators=2, seconds=0.005, k=8)
    with running(recipe) as cluster:
        steps = take_steps(cluster, 3)
        process = cluster.fleet.process_ids[-1]
        wait_until(lambda: children_of(process), "its environments")
        children = children_of(process)
        os.kill(process, signal.SIGKILL)
        wait_until(lambda: not any(map(is_alive, children)), "the end of its environments")
        steps += take_steps(cluster, 12)
        assert cluster.news[0].startswith("generator 1 died (signal 9). Restarting (attempt 1 of 3)")
        assert_no_group_is_lost_or_used_twice(cluster, steps, cluster.drawn)
        assert all(len(group.rollouts) == 4 for step in steps for group in step.groups)
