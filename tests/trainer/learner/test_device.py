"""Every tensor is made on the device that its policy or its arguments are on, and none on PyTorch's default device."""

from contextlib import contextmanager
from functools import partial

import pytest
import torch
from trainer.learner_cases import MOE, policy_of, random_groups
from trainer.tiny import generator_of, random_policy, tiny_recipe
from trainer.tiny_transformers import CONFIGS, CPU

from scalerl.evaluation.drift import policy_drift
from scalerl.evaluation.held_out import HeldOutEvaluator
from scalerl.generator.generator import decode_all
from scalerl.generator.request import Request
from scalerl.model.build import new_policy
from scalerl.model.device import device_of
from scalerl.model.kv_cache import Prefill
from scalerl.model.transformers_load import empty
from scalerl.tasks import make_task
from scalerl.tokens import make_tokenizer


@contextmanager
def nothing_on_the_default_device():
    """Inside, a tensor made without a device holds no numbers, and meeting one that does is an error."""
    torch.set_default_device("meta")
    try:
        yield
    finally:
        torch.set_default_device(None)


def test_the_guard_finds_a_tensor_made_without_a_device():
    here = torch.zeros(3, device=CPU)
    with nothing_on_the_default_device(), pytest.raises(RuntimeError, match="meta"):
        torch.add(here, torch.arange(3))


def test_a_device_left_out_is_found_and_one_that_is_not_there_is_refused(monkeypatch):
    for has_gpu, found in ((False, "cpu"), (True, "cuda")):
        monkeypatch.setattr(torch.cuda, "is_available", lambda has_gpu=has_gpu: has_gpu)
        assert device_of(tiny_recipe()).type == found
        assert device_of(tiny_recipe(device="cpu")) == CPU
    assert device_of(tiny_recipe(device="cuda")).type == "cuda"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match="sees no GPU on this machine; write device: cpu, or omit device"):
        device_of(tiny_recipe(device="cuda"))


@pytest.mark.parametrize("model", [{}, MOE])
def test_a_policy_is_built_and_filled_on_the_recipes_device(model):
    recipe = tiny_recipe(model=model)
    expected = policy_of(recipe).state_dict() if model else None
    with nothing_on_the_default_device():
        policy = new_policy(recipe)
        policy.init_weights(torch.Generator().manual_seed(0))
    assert {tensor.device for tensor in (*policy.parameters(), *policy.buffers())} == {policy.device} == {CPU}
    if expected is not None:
        assert all(torch.equal(tensor, expected[name]) for name, tensor in policy.state_dict().items())


@pytest.mark.parametrize("name", ["built in", "built in, 16 bits", "qwen2", "mistral windowed", "mixtral"])
def test_decoding_makes_no_tensor_on_the_default_device(name):
    if name.startswith("built in"):
        policy = random_policy(tiny_recipe(parameters="mixed" if name.endswith("bits") else "fp32"))
    else:
        policy = empty(CONFIGS[name], CPU)
        policy.init_weights(torch.Generator().manual_seed(0))
    tokens, position = torch.tensor([3, 14, 15]), torch.tensor([2, 2, 0])
    prefill = {"tokens": torch.tensor([[9, 2]]), "rows": torch.tensor([0, 1]), "prompts": torch.tensor([0, 0])}

    @torch.no_grad()
    def decoded():
        cache = policy.new_cache(slots=4, positions=8)
        first = cache.logits(tokens, position, Prefill(**prefill))
        return torch.cat((first, cache.logits(tokens, position + 1)))

    expected = decoded()
    with nothing_on_the_default_device():
        assert torch.equal(decoded(), expected)


def test_a_generator_makes_no_tensor_on_the_default_device():
    recipe = tiny_recipe()
    policy, task = random_policy(recipe), make_task(recipe.tasks[0], make_tokenizer(recipe.model))

    def tokens():
        generator = generator_of(recipe, task, policy, slots=3)
        requests = [Request(prompt=prompt, group=i, index=0, seed=i) for i, prompt in enumerate(task.train[:7])]
        return {one.request.group: one.rollout.tokens.tolist() for one in decode_all(generator, requests)}

    expected = tokens()
    with nothing_on_the_default_device():
        assert tokens() == expected


def test_the_kl_to_the_start_makes_no_tensor_on_the_default_device():
    recipe = tiny_recipe()
    start = random_policy(recipe)
    task = make_task(recipe.tasks[0], make_tokenizer(recipe.model))
    evaluator = HeldOutEvaluator(recipe=recipe, task=task, seed=0, drift=partial(policy_drift, start=start))
    rollouts = [rollout for group in random_groups(random_policy(recipe, seed=1)) for rollout in group.rollouts]
    expected = evaluator.drift(rollouts, recipe)
    with nothing_on_the_default_device():
        assert evaluator.drift(rollouts, recipe) == expected
