"""Interruption at a 24-token limit (ScaleRL A.10): answers end inside the budget, what was forced teaches nothing."""

import numpy as np
import pytest
import torch
from recipe_files import read_scale

from scalerl.generator.make import draw_cuts, make_generator
from scalerl.generator.request import Request
from scalerl.learner.batch import make_batch
from scalerl.learner.torch_learner import TorchLearner
from scalerl.model.build import Policy, new_policy
from scalerl.recipe import ResolvedRecipe
from scalerl.rollout import Group
from scalerl.run.warm_start import load_or_train
from scalerl.tasks import make_task
from scalerl.tasks.lengths import longest_prompt
from scalerl.tokens import make_tokenizer

SMOKE = read_scale("smoke")
GENERATIONS = 8


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory):
    """A warm-started policy and 320 groups of its rollouts; a short thinking budget, so that many are interrupted."""
    recipe = ResolvedRecipe.model_validate(
        {
            **SMOKE,
            "generation": {"thinking": 5, "answer": 18},  # and the end of thinking: 24
            "warm_start": {**SMOKE["warm_start"], "steps": 150},
            "length_control": {"type": "interruption"},
        }
    )
    task, policy = make_task(recipe.tasks[0], make_tokenizer(recipe.model)), new_policy(recipe)
    load_or_train(policy, task, recipe, 0, tmp_path_factory.mktemp("warm_starts"))
    generator = make_generator(recipe, policy, slots=512, max_prompt=longest_prompt(task))
    rng = np.random.default_rng(0)
    rollouts: dict[int, list] = {}
    for number, prompt in enumerate(task.train[:320]):
        cuts = draw_cuts(recipe, rng, GENERATIONS)
        generator.submit(
            [
                Request(prompt=prompt, group=number, index=i, seed=GENERATIONS * number + i, cut=cuts[i])
                for i in range(GENERATIONS)
            ]
        )
    while generator.busy:
        for finished in generator.step()[0]:
            rollouts.setdefault(finished.request.group, []).append(finished.rollout)
    groups = [
        Group(
            prompt=rows[0].prompt,
            rollouts=tuple(rows),
            rewards=(1.0, -1.0) * (GENERATIONS // 2),
            outcomes=("right", "wrong") * (GENERATIONS // 2),
        )
        for rows in rollouts.values()
    ]
    return recipe, policy, groups


def test_99_percent_of_answers_end_inside_a_budget_of_24_tokens(interrupted):
    recipe, _, groups = interrupted
    rollouts = [rollout for group in groups for rollout in group.rollouts]
    cut = [rollout for rollout in rollouts if rollout.forced.any()]
    assert recipe.generation.max_tokens == 24
    assert len(rollouts) == 2560
    assert max(len(rollout.tokens) for rollout in rollouts) <= 24
    assert len(cut) > 500
    for some in (rollouts, cut):
        assert sum(rollout.truncated for rollout in some) <= 0.01 * len(some)


@pytest.mark.parametrize("loss", ["cispo", "grpo", "dapo", "gspo"])
def test_no_forced_token_has_a_gradient(interrupted, loss, monkeypatch):
    recipe, policy, groups = interrupted
    logprobs = []
    original = Policy.score

    def kept(self, *args, **options):
        scores = original(self, *args, **options)
        scores.logprobs_BT.retain_grad()
        logprobs.append(scores.logprobs_BT)
        return scores

    monkeypatch.setattr(Policy, "score", kept)
    changes = {
        "loss": {"type": loss},
        "optimiser": {**SMOKE["optimiser"], "micro_batch_tokens": 10**6, "packing": "none"},
    }
    batch = make_batch(groups[:40])
    advantage = torch.tensor([reward for group in groups[:40] for reward in group.rewards]).unsqueeze(1)
    TorchLearner(policy, ResolvedRecipe.model_validate({**recipe.model_dump(), **changes})).accumulate(batch, advantage)

    (own,) = logprobs  # rows in the order of the micro-batch: longest first
    order = torch.argsort(batch.length_B, descending=True, stable=True)
    forced = torch.zeros_like(batch.mask_BT)
    for row, rollout in enumerate(rollout for group in groups[:40] for rollout in group.rollouts):
        start = len(rollout.prompt.tokens)
        forced[row, start : start + len(rollout.tokens)] = torch.from_numpy(rollout.forced)
    assert forced.sum() > 50
    assert (own.grad[forced[order]] == 0).all()
    assert (own.grad[batch.mask_BT[order]] != 0).all()
