"""What each value of the axis `parameters` rounds, on both sides alike, and how FP16 keeps its gradients."""

import io
from typing import Any

import numpy as np
import pytest
import torch
from trainer.generator.test_torch_generator import RECIPE as SHAPE
from trainer.generator.test_torch_generator import forward_logprobs, many_requests, run
from trainer.learner_cases import gradients, random_groups
from trainer.tiny import random_policy, tiny_recipe

from scalerl.errors import Diverged
from scalerl.generator.torch_generator import TorchGenerator
from scalerl.learner.batch import make_batch
from scalerl.learner.loss_scale import GOOD_STEPS, INITIAL_SCALE, LossScale
from scalerl.learner.torch_learner import MAX_BAD_STEPS, TorchLearner
from scalerl.model.build import new_policy
from scalerl.recipe import Generation
from scalerl.tokens.symbols import END_THINK_ID, EOS_ID, SymbolTokenizer

MODEL = SHAPE.model.model_dump()
REDUCED = ["mixed", "bf16", "fp16"]
TOKENS = torch.from_numpy(np.random.default_rng(0).integers(4, 40, size=(6, 19)))


def recipe_of(parameters, **changes):
    return tiny_recipe(model=MODEL, parameters=parameters, **changes)


def rollouts_of(policy, recipe):
    generator = TorchGenerator(
        new_policy(recipe),
        Generation(thinking=12, answer=5),
        SymbolTokenizer(),
        slots=7,
        max_prompt=9,
        phrase=(END_THINK_ID,),
    )
    generator.set_weights(policy.exported_weights(), version=0)
    return [one.rollout for one in run(generator, many_requests(30))]


@pytest.mark.parametrize("parameters", REDUCED)
def test_generator_and_trainer_round_alike(parameters):
    policy, exact = random_policy(recipe_of(parameters)), random_policy(recipe_of("fp32"))
    gap, rounding = [], []
    for rollout in rollouts_of(policy, recipe_of(parameters)):
        ours = forward_logprobs(policy, rollout)
        gap += np.abs(rollout.logprobs - ours).tolist()
        rounding += np.abs(forward_logprobs(exact, rollout) - ours).tolist()
    # What is left is a number whose last bit differs and so falls on the other side of a rounding step; the rows of
    # training and the one query of decoding are summed in another order.
    assert np.mean(rounding) > (5e-4 if parameters == "fp16" else 5e-3)
    assert np.mean(gap) < np.mean(rounding) * (0.8 if parameters == "fp16" else 0.5)


@pytest.mark.parametrize(("parameters", "dtype"), [("mixed", torch.bfloat16), ("fp16", torch.float16)])
def test_products_are_rounded_as_transformers_under_autocast(tmp_path, parameters, dtype):
    from transformers import LlamaForCausalLM

    policy, exact = random_policy(recipe_of(parameters)), random_policy(recipe_of("fp32"))
    exact.save(tmp_path, eos_token_id=EOS_ID)
    llama = LlamaForCausalLM.from_pretrained(tmp_path, dtype=torch.float32).eval()
    with torch.no_grad():
        with torch.autocast("cpu", dtype=dtype):
            theirs = llama.model(TOKENS).last_hidden_state
        ours, unrounded = policy.hidden(TOKENS), exact.hidden(TOKENS)
    assert ours.dtype == theirs.dtype == torch.float32
    assert (ours - theirs).abs().mean() < (ours - unrounded).abs().mean() / 2
    assert (ours - unrounded).abs().max() < (0.02 if dtype == torch.float16 else 0.2)


@pytest.mark.parametrize("parameters", ["fp32", *REDUCED])
def test_weights_gradients_and_moments_have_the_precision_that_is_promised(parameters):
    recipe = recipe_of(parameters, optimiser={"warmup_steps": 0})
    learner = TorchLearner(random_policy(recipe), recipe)
    groups = random_groups(random_policy(recipe_of("fp32")))
    before = [parameter.detach().clone() for parameter in learner.policy.parameters()]
    metrics = learner.step(groups).metrics
    assert not metrics["skipped"]
    expected = torch.bfloat16 if parameters == "bf16" else torch.float32
    changed = []
    for parameter, old in zip(learner.policy.parameters(), before, strict=True):
        moments = learner.engine.adam.state[parameter]
        assert {parameter.dtype, parameter.grad.dtype, moments["exp_avg"].dtype} == {expected}
        changed.append(not torch.equal(parameter, old))
    # A step of 1e-3 on a norm of 1, whose next number is 0.004 away, is lost: there is no FP32 copy.
    assert all(changed) == (parameters != "bf16")
    assert sum(changed) > len(changed) / 2
    assert ("loss_scale" in metrics) == (parameters == "fp16")


@pytest.mark.parametrize("parameters", REDUCED)
def test_gradients_stay_close_to_those_of_fp32_and_loss_scaling_cancels(parameters):
    results = []
    for name in ("fp32", parameters):
        recipe = recipe_of(name)
        learner = TorchLearner(random_policy(recipe), recipe)
        batch = make_batch(groups := random_groups(random_policy(recipe_of("fp32"))))
        learner.accumulate(batch, learner.advantages(groups, batch))
        learner.loss_scale.unscale(learner.policy.parameters())
        results.append(torch.cat([g.float().flatten() for g in gradients(learner.policy).values()]))
    exact, rounded = results
    assert 0 < (rounded - exact).norm() / exact.norm() < (0.01 if parameters == "fp16" else 0.05)


# --- the loss scale -------------------------------------------------------------------------------------------------


def test_the_scale_halves_on_overflow_and_doubles_after_two_thousand_good_steps():
    scale = LossScale(value=8.0)
    for _ in range(GOOD_STEPS - 1):
        scale = scale.after(overflow=False)
    assert scale == LossScale(value=8.0, good_steps=1999)
    assert scale.after(overflow=False) == LossScale(value=16.0)
    assert scale.after(overflow=True) == LossScale(value=4.0)
    assert LossScale(value=1.0, good_steps=5).after(overflow=True) == LossScale(value=1.0)


def overflowing(recipe, scale):
    learner = TorchLearner(random_policy(recipe), recipe)
    learner.loss_scale = LossScale(value=scale)
    accumulate = learner.accumulate

    def infinite(batch, advantage):
        metrics = accumulate(batch, advantage)
        policy: Any = learner.policy
        policy.head.grad[0, 0] = float("inf")
        return metrics

    learner.accumulate = infinite
    return learner


def test_an_overflow_skips_the_step_and_is_no_bad_step_while_the_scale_can_fall():
    recipe = recipe_of("fp16")
    learner = overflowing(recipe, scale=2.0**8)
    groups = random_groups(random_policy(recipe_of("fp32")))
    before = {name: tensor.clone() for name, tensor in learner.policy.state_dict().items()}
    scales = [learner.step(groups).metrics["loss_scale"] for _ in range(8)]
    assert scales == [2.0**n for n in range(8, 0, -1)]
    assert learner.bad_steps == 0
    assert all(torch.equal(tensor, before[name]) for name, tensor in learner.policy.state_dict().items())
    assert learner.version == 8
    for _ in range(MAX_BAD_STEPS - 1):
        assert learner.step(groups).metrics["skipped"]
    with pytest.raises(Diverged):
        learner.step(groups)


def test_the_scale_is_part_of_the_checkpoint():
    recipe = recipe_of("fp16", optimiser={"warmup_steps": 0})
    groups = random_groups(random_policy(recipe_of("fp32")))
    learner = overflowing(recipe, scale=64.0)
    learner.step(groups)
    del learner.accumulate
    learner.step(groups)
    file = io.BytesIO()
    torch.save(learner.state_dict(), file)
    file.seek(0)
    again = TorchLearner(random_policy(recipe, seed=3), recipe)
    again.load_state_dict(torch.load(file))
    assert again.loss_scale == learner.loss_scale == LossScale(value=32.0, good_steps=1)
    assert again.step(groups).metrics == learner.step(groups).metrics


def test_small_gradients_survive_fp16_only_because_the_loss_is_scaled():
    recipe = recipe_of("fp16", kl={"coefficient": 0.0})
    learner = TorchLearner(random_policy(recipe), recipe)
    batch = make_batch(groups := random_groups(random_policy(recipe_of("fp32"))))
    advantage = learner.advantages(groups, batch) * 1e-7
    norms = []
    for scale in (INITIAL_SCALE, 1.0):
        learner.loss_scale = LossScale(value=scale)
        learner.policy.zero_grad(set_to_none=True)
        learner.accumulate(batch, advantage)
        learner.loss_scale.unscale(learner.policy.parameters())
        policy: Any = learner.policy
        norms.append(float(next(policy.layers()).qkv.grad.norm()))
    assert norms[0] > 0
    assert abs(norms[1] / norms[0] - 1) > 0.1
