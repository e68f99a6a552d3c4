"""PipelineRL-k and PPO-off-policy-k on the virtual cluster: lag, conservation of groups, and the clock by hand."""

import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trainer.tiny import fixed_policy, make_cluster, tiny_recipe

from scalerl.model.build import new_policy
from scalerl.run.warm_start import load_or_train
from scalerl.schedules import SCHEDULES
from scalerl.tasks import make_task
from scalerl.tokens import SymbolTokenizer

SPEEDS = {
    # memory bandwidth sets the pace of a decode step, FLOPs that of training, the link that of a weight push
    "balanced": {"memory_gb_per_s": 100.0, "tflops": 30.0, "link_gb_per_s": 50.0},
    "slow generators": {"memory_gb_per_s": 1.0, "tflops": 1e4, "link_gb_per_s": 1e3},
    "slow trainers": {"memory_gb_per_s": 1e5, "tflops": 1.0, "link_gb_per_s": 1e3},
    "slow link": {"memory_gb_per_s": 100.0, "tflops": 30.0, "link_gb_per_s": 0.005},
}


def recipe_of(schedule, k, speed, **changes):
    settings = {
        "off_policy": {"type": schedule, "k": k},
        "zero_variance": "keep",
        "curriculum": {"type": "uniform"},
        "generation": {"thinking": 6, "answer": 3},
        "cluster": {"generators": 8, "trainers": 2, "slots": 3, "device": SPEEDS[speed]},
    }
    return tiny_recipe(**(settings | changes))


@dataclass
class Trace:
    """What a schedule did: its steps, the trainer's clock after each, and the generators' clock at every decode."""

    cluster: Any
    steps: list = field(default_factory=list)
    trainer_free: list = field(default_factory=list)
    generators_now: list = field(default_factory=list)
    drawn: list = field(default_factory=list)
    finished: dict = field(default_factory=dict)
    """Time at which each prompt's group was complete."""


WARM = {}


def run(recipe, num_steps, seed=0):
    """`num_steps` optimiser steps from a short warm start, so that answers have uneven lengths and some are right."""
    policy = new_policy(recipe)
    if not WARM:
        with tempfile.TemporaryDirectory() as folder:
            load_or_train(policy, make_task(recipe.tasks[0], SymbolTokenizer()), recipe, 0, Path(folder))
        WARM.update(policy.state_dict())
    policy.load_state_dict(WARM)
    cluster = make_cluster(recipe, policy, seed)
    trace = Trace(cluster)
    decode, draw = cluster.decode, cluster.pool.draw

    def watched_decode():
        decode()
        for _, group in cluster.ready:
            trace.finished.setdefault(group.prompt.id, cluster.clock.now)
        trace.generators_now.append(cluster.clock.now)

    def watched_draw():
        prompt = draw()
        trace.drawn.append(prompt.id)
        return prompt

    cluster.decode, cluster.pool.draw = watched_decode, watched_draw
    for _ in range(num_steps):
        trace.steps.append(SCHEDULES[recipe.off_policy.type](cluster))
        trace.trainer_free.append(cluster.clock.trainer_free)
    return trace


def rollouts_of(step):
    return [rollout for group in step.groups for rollout in group.rollouts]


def lag_of(step):
    """Largest consumed version minus version of a token."""
    return step.version - min(int(rollout.versions.min()) for rollout in rollouts_of(step))


# --- PipelineRL-k ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("k", "speed"), [(1, "balanced"), (2, "slow generators"), (8, "slow trainers"), (2, "slow link")]
)
def test_no_token_is_ever_more_than_k_steps_old_and_no_group_is_lost_or_used_twice(k, speed):
    trace = run(recipe_of("pipeline", k, speed), num_steps=40)
    cluster = trace.cluster
    assert [step.version for step in trace.steps] == list(range(40))
    assert max(lag_of(step) for step in trace.steps) <= k

    assert len(trace.drawn) == len(set(trace.drawn)) == cluster.next_group
    consumed = [group.prompt.id for step in trace.steps for group in step.groups]
    inside = [group.prompt.id for _, group in cluster.ready] + [a.prompt.id for a in cluster.assembling.values()]
    assert Counter(consumed + inside) == Counter(trace.drawn)
    assert all(len(step.groups) == 4 for step in trace.steps)
    assert all(len(group.rollouts) == 4 for step in trace.steps for group in step.groups)


@pytest.mark.parametrize(("schedule", "speed"), [("pipeline", "slow link"), ("ppo_off_policy", "balanced")])
def test_clocks_never_run_backwards_and_compute_is_devices_times_time(schedule, speed):
    trace = run(recipe_of(schedule, 2, speed), num_steps=12)
    assert all(np.diff(trace.trainer_free) > 0)
    assert all(np.diff(trace.generators_now) > 0)
    assert trace.cluster.compute_gpu_hours == pytest.approx((8 + 2) * trace.trainer_free[-1] / 3600, rel=1e-12)
    spent = trace.cluster.device_seconds()
    assert min(seconds for role in spent.values() for seconds in role.values()) >= 0
    assert sum(spent["generator"].values()) == pytest.approx(8 * trace.trainer_free[-1], rel=1e-12)
    assert sum(spent["trainer"].values()) == pytest.approx(2 * trace.trainer_free[-1], rel=1e-12)
    assert spent["trainer"]["forward_backward"] == pytest.approx(trace.cluster.clock.trainer_busy, rel=1e-9)
    generator_idle, trainer_idle = trace.cluster.idle_shares()
    assert 0 <= generator_idle < 1
    assert 0 <= trainer_idle < 1


def test_either_side_can_be_the_bottleneck():
    generator_idle, trainer_idle = run(recipe_of("pipeline", 2, "slow generators"), 20).cluster.idle_shares()
    assert trainer_idle > 0.9
    assert generator_idle < 0.5
    generator_idle, trainer_idle = run(recipe_of("pipeline", 2, "slow trainers"), 20).cluster.idle_shares()
    assert generator_idle > 0.9
    assert trainer_idle < 0.1


def test_weights_arrive_in_the_middle_of_sequences():
    trace = run(recipe_of("pipeline", 8, "balanced"), num_steps=40)
    num_versions = [len(set(rollout.versions.tolist())) for step in trace.steps for rollout in rollouts_of(step)]
    assert max(num_versions) >= 3
    assert np.mean([n > 1 for n in num_versions]) > 0.2
    for step in trace.steps:
        assert all((np.diff(rollout.versions) >= 0).all() for rollout in rollouts_of(step))


def test_the_trainer_reaches_the_lag_it_is_allowed_when_generators_are_slow_to_hear_of_it():
    lags = {k: max(lag_of(step) for step in run(recipe_of("pipeline", k, "slow link"), 40).steps) for k in (1, 2, 8)}
    assert lags == {1: 1, 2: 2, 8: 8}


def test_groups_begun_under_the_oldest_weights_are_trained_on_first():
    trace = run(recipe_of("pipeline", 8, "slow trainers"), num_steps=0)
    compared = 0
    for _ in range(40):
        step = SCHEDULES["pipeline"](trace.cluster)
        for _, group in trace.cluster.ready:
            # Groups that were finished in the decode step during which the trainer started came too late for it.
            if trace.finished[group.prompt.id] <= step_start(trace.cluster, step):
                compared += 1
                assert group.start_version >= max(taken.start_version for taken in step.groups)
    assert compared > 50


def step_start(cluster, step):
    """When the optimiser step that was just taken began."""
    return cluster.clock.trainer_free - cluster.cost.train_token_s * step.update.trained_tokens / 2


@pytest.mark.parametrize(("schedule", "speed"), [("pipeline", "slow trainers"), ("ppo_off_policy", "balanced")])
def test_a_group_is_trained_on_only_after_it_is_finished(schedule, speed):
    trace = run(recipe_of(schedule, 8, speed), num_steps=0)
    for _ in range(40):
        step = SCHEDULES[schedule](trace.cluster)
        last = max(trace.finished[group.prompt.id] for group in step.groups)
        assert last <= step_start(trace.cluster, step) * (1 + 1e-12)


@pytest.mark.parametrize("schedule", list(SCHEDULES))
def test_one_seed_gives_one_history(schedule):
    first, again, other = (run(recipe_of(schedule, 2, "balanced"), 8, seed=seed) for seed in (0, 0, 1))
    assert first.trainer_free == again.trainer_free
    assert [s.update.metrics for s in first.steps] == [s.update.metrics for s in again.steps]
    assert first.trainer_free != other.trainer_free


# --- PPO-off-policy-k -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 8])
def test_k_steps_are_taken_on_what_one_frozen_policy_generated(k):
    trace = run(recipe_of("ppo_off_policy", k, "balanced"), num_steps=3 * k)
    assert len(trace.drawn) == 3 * k * 4
    for number, step in enumerate(trace.steps):
        versions = {int(v) for rollout in rollouts_of(step) for v in rollout.versions}
        assert versions == {number // k * k}
        assert lag_of(step) == number % k
    consumed = [group.prompt.id for step in trace.steps for group in step.groups]
    assert consumed == trace.drawn


# --- the clock by hand ----------------------------------------------------------------------------------------------


def hand_recipe(schedule, **batch):
    """Costs of round numbers: a decode step takes 1 + 0.1 n seconds, prefill 0.1, training 0.3, a push 5.

    Attention is free unless the cluster says otherwise.
    """
    generation = {"thinking": 2, "answer": 1}  # with the end of thinking, four tokens
    num_parameters = 2 * 48 * 16 + 4 * 16 * 16 + 3 * 16 * 16 + 2 * 16 + 16
    device = {
        "memory_gb_per_s": 2 * num_parameters / 1e9,
        "tflops": 20 * num_parameters / 1e12,
        "utilisation": 1.0,
        "link_gb_per_s": 2 * num_parameters / 5 / 1e9,
    }
    cluster = {
        "parameters_stand_for": 1.0,
        "tokens_stand_for": 1.0,
        "device": device,
        "attention": {"type": "free"},
        **batch.pop("cluster"),
    }
    return tiny_recipe(
        off_policy={"type": schedule, "k": 2},
        tasks=[
            {
                "type": "k_smallest",
                "symbols": 8,
                "min_length": 2,
                "max_length": 2,
                "train_prompts": 60,
                "validation_prompts": 8,
            }
        ],
        zero_variance="keep",
        length_control={"type": "none"},
        curriculum={"type": "uniform"},
        generation=generation,
        cluster=cluster,
        batch=batch,
    )


def ppo_by_hand(num_steps, **attention):
    """The cluster after some steps, and the time at the end of each."""
    cluster = {"generators": 2, "trainers": 1, "slots": 1, **attention}
    recipe = hand_recipe("ppo_off_policy", prompts=1, generations=2, cluster=cluster)
    cluster, ends = make_cluster(recipe, fixed_policy(recipe, {5: 0.0})), []
    for _ in range(num_steps):
        SCHEDULES["ppo_off_policy"](cluster)
        ends.append(cluster.clock.trainer_free)
    return cluster, ends


def assert_spent(cluster, expected):
    spent = cluster.device_seconds()
    assert spent.keys() == expected.keys()
    for role, seconds in expected.items():
        assert spent[role] == pytest.approx(seconds, rel=1e-9)


def test_ppo_by_hand():
    # Two groups of two rollouts on two generators with one slot each: one group after the other. A group takes four
    # decode steps of 1 + 0.1 and the prefill of its prompt's five tokens, 0.1 x 5 / 2: 4.65 s, both 9.3 s.
    # A step trains 2 x (5 + 4) tokens: 5.4 s.
    cluster, _ = ppo_by_hand(1)
    # In the middle of the first phase the generators wait since 9.3, and the step ends at 14.7.
    assert_spent(
        cluster,
        {
            "generator": {"decode": 18.6, "wait_weights": 2 * 5.4},
            "trainer": {"wait_rollouts": 9.3, "forward_backward": 5.4},
        },
    )
    n = 2 * 48 * 16 + 4 * 16 * 16 + 3 * 16 * 16 + 2 * 16 + 16
    # Decoding: 2 groups x (8 + 5 prompt) tokens at 2 N; each token of a rollout attends to 5, 6, 7, 8 positions, each
    # worth 4 x 1 layer x 16. Training, three times a forward pass: 18 tokens that attend to 1..9 positions, twice.
    decode = 2 * n * 2 * 13 + 64 * 4 * (5 + 6 + 7 + 8)
    assert cluster.clock.flops == decode + 3 * (2 * n * 18 + 64 * 2 * 45)

    cluster, ends = ppo_by_hand(4)
    # The second phase starts when the weights arrive, 5 s after 20.1.
    assert ends == pytest.approx([14.7, 20.1, 25.1 + 9.3 + 5.4, 25.1 + 9.3 + 2 * 5.4])
    assert cluster.clock.now == pytest.approx(25.1 + 9.3)
    assert cluster.compute_gpu_hours == pytest.approx(3 * 45.2 / 3600)
    assert cluster.clock.tokens == 2 * 2 * 2 * 4
    # Generators: per phase 8 steps of both devices, 16 x 1.1, and 10 prompt tokens, 1.0: 18.6 of 2 x 45.2 in all.
    assert cluster.clock.generator_busy == pytest.approx(2 * 18.6)
    assert cluster.idle_shares() == pytest.approx((1 - 37.2 / 90.4, 1 - 4 * 5.4 / 45.2))
    # Two generators wait for two steps of each phase, and all stand still for one push of 5 s.
    assert_spent(
        cluster,
        {
            "generator": {"decode": 2 * 18.6, "wait_weights": 2 * 4 * 5.4, "sync": 2 * 5.0},
            "trainer": {"wait_rollouts": 2 * 9.3, "forward_backward": 4 * 5.4, "sync": 5.0},
        },
    )
    assert cluster.tokens_per_s == pytest.approx(32 / 45.2)
    # The peak is 20 N FLOPs a second. Four steps train 18 tokens of 6 N; 32 tokens and 20 of prompts are 2 N each.
    assert cluster.model_flops_utilisation() == pytest.approx(
        {"generator": 2 * 52 / (2 * 20 * 45.2), "trainer": 6 * 4 * 18 / (20 * 45.2)}
    )


def test_pipeline_clock_by_hand():
    recipe = hand_recipe("pipeline", prompts=1, generations=2, cluster={"generators": 2, "trainers": 1, "slots": 2})
    cluster = make_cluster(recipe, fixed_policy(recipe, {5: 0.0}))
    # Four slots, two groups a and b at once: four steps of 1 + 0.1 x 2 and the prefill of ten tokens, 0.5, end at 5.3.
    # Step 1 trains on a from 5.3 to 10.7; its weights arrive at 15.7.
    # With k = 2 at most 3 - lag groups may be in the system. At 5.3 the generators do not lag yet: one group, c, joins
    # a and b; decoded alone it takes 1.1 x 4 + 0.25 = 4.65 s, to 9.95.
    # Step 2 trains on b, 10.7 to 16.1 (b is one step old); weights at 21.1.
    # At 15.7 the first weights arrive, the lag falls to 1, and d is begun under version 1: to 20.35.
    # Step 3 trains on c, 16.1 to 21.5 (c is of version 0: two steps old, the most allowed).
    # At 21.1 version 2 arrives and e is begun, to 25.75. Step 4 trains on d, 21.5 to 26.9 (version 3 - 1).
    # At 26.5 version 3 arrives, f to 31.15; step 5 on e, 26.9 to 32.3; at 31.9 version 4; step 6 on f, 32.3 to 37.7.
    ends, lags = [], []
    for _ in range(6):
        step = SCHEDULES["pipeline"](cluster)
        ends.append(cluster.clock.trainer_free)
        lags.append(lag_of(step))
    assert ends == pytest.approx([10.7, 16.1, 21.5, 26.9, 32.3, 37.7])
    assert lags == [0, 1, 2, 2, 2, 2]
    # Step 6 begins inside the first decode step of g, which was begun at 31.9 and takes 1.1 + 0.25.
    assert cluster.clock.now == pytest.approx(31.9 + 1.35)
    # Generators stand still from 9.95 to 10.7, when the trainer takes its next batch, and then for the weights: to 15.7
    # and .75 s before each of e, f and g. After 33.25 they have g to decode, which the next step plays.
    decoded = 2 * (4 * 1.2 + 0.5) + 4 * 2 * (4 * 1.1 + 0.25) + 2 * 1.35
    assert_spent(
        cluster,
        {
            "generator": {
                "decode": decoded,
                "wait_prompts": 2 * 0.75,
                "wait_weights": 2 * (5 + 3 * 0.75),
                "unplayed": 2 * (37.7 - 33.25),
            },
            "trainer": {"wait_rollouts": 5.3, "forward_backward": 6 * 5.4},
        },
    )


def hand_attention():
    """Reading a cached position takes 0.01 s, attending to one in prefill and training 0.002 s."""
    num_parameters = 2 * 48 * 16 + 4 * 16 * 16 + 3 * 16 * 16 + 2 * 16 + 16
    # 2 bytes x 32 numbers over 2 N bytes/s, and 4 FLOPs x 16 over 20 N FLOP/s, each with its factor.
    return {"cache_stands_for": 0.01 * num_parameters / 32, "width_stands_for": 0.002 * 20 * num_parameters / 64}


def test_ppo_by_hand_with_attention():
    # As in `test_ppo_by_hand`, and: each group's sequences read 5, 6, 7 and 8 positions, 0.26 s; the prompt's tokens
    # attend to 15, 0.03 / 2 s. Training attends to 2 x 45 positions, three times: 0.54 s.
    group, step = 4.65 + 0.26 + 0.015, 5.4 + 0.54
    cluster, ends = ppo_by_hand(4, attention=hand_attention())
    second = 2 * group + 2 * step + 5 + 2 * group
    assert ends == pytest.approx([2 * group + step, 2 * group + 2 * step, second + step, second + 2 * step])
    busy = 2 * (18.6 + 2 * 2 * 0.26 + 2 * 0.03)
    assert cluster.clock.generator_busy == pytest.approx(busy)
    assert cluster.idle_shares() == pytest.approx((1 - busy / 2 / ends[-1], 1 - 4 * step / ends[-1]))
