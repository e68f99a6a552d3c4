"""Sequences without padding give what padded ones give, and share nothing but the pass."""

from typing import Any

import pytest
import torch
from trainer.learner_cases import assert_same_gradients, gradients, random_groups
from trainer.tiny import random_policy, tiny_recipe

from scalerl.learner.batch import make_batch
from scalerl.learner.torch_learner import TorchLearner
from scalerl.model.build import new_policy
from scalerl.model.packing import Packing, packed_micro_batches, shared_micro_batches

MODELS = {
    "llama": {"hidden": 24, "layers": 2, "heads": 3, "mlp": 24},
    "moe": {
        "type": "moe", "hidden": 24, "layers": 2, "heads": 3, "mlp": 16, "experts": 4, "experts_per_token": 2,
        "router_loss": 0.1,
    },
}  # fmt: skip
LENGTHS = torch.tensor([7, 1, 4, 5])
TOKENS = torch.arange(28).view(4, 7) % 36 + 4


def policy_of(recipe):
    if recipe.model.type == "llama":
        return random_policy(recipe)
    policy = new_policy(recipe)
    policy.init_weights(torch.Generator().manual_seed(0))
    return policy


def recipe_of(model, **optimiser):
    base = tiny_recipe(optimiser=optimiser)
    return base.model_validate({**base.model_dump(mode="json"), "model": MODELS[model]})


def test_a_packed_row_by_hand():
    packing = Packing.of(torch.tensor([2, 3]))
    assert packing.sequence_N.tolist() == [0, 0, 1, 1, 1]
    assert packing.position_N.tolist() == [0, 1, 0, 1, 2]
    assert packing.may_attend().int().tolist() == [
        [1, 0, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [0, 0, 1, 0, 0],
        [0, 0, 1, 1, 0],
        [0, 0, 1, 1, 1],
    ]
    padded = torch.tensor([[10, 11, 0], [12, 13, 14]])
    assert packing.packed(padded).tolist() == [10, 11, 12, 13, 14]
    assert packing.padded(packing.packed(padded))[0, :2].tolist() == [10, 11]
    assert packing.padded(packing.packed(padded))[1].tolist() == [12, 13, 14]
    assert packing.before(packing.packed(padded)).tolist() == [10, 12, 13]
    assert packing.laid_out(torch.tensor([1, 2, 3])).tolist() == [[0, 1, 0], [0, 2, 3]]


def test_a_shared_prompt_by_hand():
    # Answers of one and of two tokens to a prompt of two tokens; then an answer of one to a prompt of one.
    packing = Packing.with_shared_prompts(torch.tensor([3, 4, 2]), torch.tensor([2, 2, 1]), torch.tensor([5, 5, 6]))
    assert packing.sequence_N.tolist() == [0, 0, 0, 1, 1, 2, 2]
    assert packing.position_N.tolist() == [0, 1, 2, 2, 3, 0, 1]
    assert packing.may_attend().int().tolist() == [
        [1, 0, 0, 0, 0, 0, 0],
        [1, 1, 0, 0, 0, 0, 0],
        [1, 1, 1, 0, 0, 0, 0],
        [1, 1, 0, 1, 0, 0, 0],
        [1, 1, 0, 1, 1, 0, 0],
        [0, 0, 0, 0, 0, 1, 0],
        [0, 0, 0, 0, 0, 1, 1],
    ]
    padded = torch.tensor([[10, 11, 12, 0], [10, 11, 13, 14], [15, 16, 0, 0]])
    assert packing.packed(padded).tolist() == [10, 11, 12, 13, 14, 15, 16]
    back = packing.padded(packing.packed(padded))
    assert [row[:n].tolist() for row, n in zip(back, (3, 4, 2), strict=True)] == [
        [10, 11, 12],
        [10, 11, 13, 14],
        [15, 16],
    ]
    assert packing.before(packing.packed(padded)).tolist() == [11, 11, 13, 15]
    assert packing.laid_out(torch.tensor([1, 2, 3, 4])).tolist() == [[0, 0, 1, 0], [0, 0, 2, 3], [0, 4, 0, 0]]


def test_shared_prompts_count_once_in_a_pass():
    # Group 0: a prompt of 4 and answers of 3, 3, 1 make 11; group 1: a prompt of 2 and answers of 2, 2 make 6.
    length, prompt = torch.tensor([7, 7, 5, 4, 4]), torch.tensor([4, 4, 4, 2, 2])
    group = torch.tensor([0, 0, 0, 1, 1])

    def batches(max_tokens):
        return [rows.tolist() for rows in shared_micro_batches(length, prompt, group, max_tokens)]

    assert batches(17) == [[0, 1, 2, 3, 4]]
    assert batches(16) == [[0, 1, 2], [3, 4]]
    assert batches(10) == [[0, 1], [3, 4], [2]]
    assert batches(1) == [[0], [1], [2], [3], [4]]


def test_first_fit_decreasing_by_hand():
    # 9, 7, 6, 4, 3, 1 into rows of 10: 9 + 1, 7 + 3, 6 + 4.
    batches = packed_micro_batches(torch.tensor([4, 9, 3, 1, 7, 6]), max_tokens=10)
    assert [rows.tolist() for rows in batches] == [[1, 3], [4, 2], [5, 0]]


def test_a_sequence_longer_than_a_pass_has_one_of_its_own():
    batches = packed_micro_batches(torch.tensor([3, 25, 4]), max_tokens=10)
    assert [rows.tolist() for rows in batches] == [[1], [2, 0]]


@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize("model", list(MODELS))
def test_packed_and_padded_micro_batches_and_the_whole_batch_give_one_gradient(model, checkpointing):
    policy = policy_of(recipe_of(model))
    groups = random_groups(policy)
    results = []
    kinds = ["sequences", *(["prompts"] if model == "llama" else [])]
    cases = [("none", 10**6), ("none", 40), *((kind, size) for kind in kinds for size in (10**6, 40, 1))]
    for packing, micro_batch_tokens in cases:
        recipe = recipe_of(
            model, packing=packing, micro_batch_tokens=micro_batch_tokens, gradient_checkpointing=checkpointing
        )
        policy.recompute = recipe.optimiser.gradient_checkpointing
        learner = TorchLearner(policy, recipe)
        batch = make_batch(groups)
        policy.zero_grad(set_to_none=True)
        metrics = learner.accumulate(batch, learner.advantages(groups, batch))
        num_passes = len(batch.micro_batches(recipe.packing, recipe.optimiser.micro_batch_tokens))
        results.append((num_passes, metrics, gradients(policy)))
    (one, whole_metrics, whole), *split = results
    assert one == 1
    padded, *packed = (num for num, _, _ in split)
    assert padded > 2
    for whole_pass, small, single in zip(packed[::3], packed[1::3], packed[2::3], strict=True):
        assert whole_pass == 1
        assert 2 <= small <= padded
        assert single == len(make_batch(groups).length_B)
    for _, metrics, ours in split:
        assert metrics == pytest.approx(whole_metrics, rel=1e-5, abs=1e-6)
        assert_same_gradients(ours, whole)


def test_the_built_in_policy_recomputes_its_blocks_and_keeps_less(monkeypatch):
    policy: Any = policy_of(recipe_of("llama"))
    counted, results = [], []
    block = type(policy.blocks[0])
    project = block.project
    monkeypatch.setattr(type(policy), "is_plain", False)  # compiled kernels do not recompute, and call no block
    monkeypatch.setattr(block, "project", lambda *args: counted.append(1) or project(*args))
    for recompute in (False, True):
        policy.recompute = recompute
        policy.zero_grad(set_to_none=True)
        kept, calls = [], len(counted)
        with torch.autograd.graph.saved_tensors_hooks(lambda t, k=kept: k.append(t.numel()) or t, lambda t: t):
            loss = policy.score(TOKENS, 1.0, length_B=LENGTHS).logprobs_BT.sum()
        loss.backward()
        results.append((len(counted) - calls, sum(kept), gradients(policy)))
    (once, all_kept, expected), (twice, few_kept, ours) = results
    assert (once, twice) == (2, 4)
    assert few_kept < all_kept / 2
    for name, gradient in expected.items():
        torch.testing.assert_close(ours[name], gradient, rtol=1e-6, atol=1e-6)
