"""The KL of an evaluation to what the run started from."""

import math
from functools import partial

import pytest
import torch
from trainer.learner_cases import random_groups
from trainer.tiny import PolicySampler, generator_of, random_policy, tiny_recipe

from scalerl.evaluation.drift import generator_drift, policy_drift
from scalerl.evaluation.held_out import HeldOutEvaluator
from scalerl.tasks import make_task
from scalerl.tokens import make_tokenizer


def evaluator_of(recipe, start):
    task = make_task(recipe.tasks[0], make_tokenizer(recipe.model))
    return HeldOutEvaluator(recipe=recipe, task=task, seed=0, drift=partial(policy_drift, start=start))


def test_the_kl_to_the_start_is_0_at_the_start_and_grows_with_the_distance():
    recipe = tiny_recipe()
    start, moved = random_policy(recipe), random_policy(recipe)
    evaluator, found = evaluator_of(recipe, start), []
    sampler = PolicySampler(recipe, evaluator.task, moved)
    for step in (0.0, 0.01, 0.03):
        with torch.no_grad():
            moved.head.add_(torch.randn(moved.head.shape, generator=torch.Generator().manual_seed(1)), alpha=step)
        found.append(evaluator.measure(sampler, 0)[-1]["kl_start"])
    assert found[0] == pytest.approx(0, abs=1e-9)
    assert 1e-6 < found[1] < found[2]


@pytest.mark.parametrize("micro_batch_tokens", [1, 40, 10**6])
def test_the_kl_to_the_start_is_the_mean_of_k3_over_own_tokens(micro_batch_tokens):
    # r - 1 - log r with r = pi_start / pi_gen, one unpadded sequence and one token at a time.
    recipe = tiny_recipe(generation={"temperature": 0.8}, optimiser={"micro_batch_tokens": micro_batch_tokens})
    start = random_policy(recipe)
    rollouts = [rollout for group in random_groups(start) for rollout in group.rollouts]
    estimates = []
    for rollout in rollouts:
        size = len(rollout.prompt.tokens)
        tokens = torch.tensor([[*rollout.prompt.tokens, *rollout.tokens.tolist()]])
        logits = start.logits(start.hidden(tokens))[0].detach().double() / 0.8
        for t, token in enumerate(rollout.tokens.tolist()):
            if not rollout.forced[t]:
                log_r = float(logits[size + t - 1].log_softmax(-1)[token]) - float(rollout.logprobs[t])
                estimates.append(math.exp(log_r) - 1 - log_r)
    assert sum(rollout.forced.sum() for rollout in rollouts) > 0
    result = evaluator_of(recipe, start).drift(rollouts, recipe)
    assert result == pytest.approx(math.fsum(estimates) / len(estimates), rel=1e-5)


def test_a_generator_with_the_start_s_weights_finds_the_kl_that_a_policy_finds():
    recipe = tiny_recipe()
    start, moved = random_policy(recipe), random_policy(recipe, seed=1)
    rollouts = [rollout for group in random_groups(moved) for rollout in group.rollouts]
    task = make_task(recipe.tasks[0], make_tokenizer(recipe.model))
    generator = generator_of(recipe, task, moved, slots=4)
    found = generator_drift(rollouts, recipe, generator=generator, start=start.exported_weights)
    assert found == pytest.approx(policy_drift(rollouts, recipe, start=start), rel=1e-5)
    assert found > 0.01
    cold = tiny_recipe(generation={"temperature": 0.8})
    assert generator_drift(rollouts, cold, generator=generator, start=start.exported_weights) is None
