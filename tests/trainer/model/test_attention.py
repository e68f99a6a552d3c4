"""Attention by blocks sees what the whole mask sees, and gives what attention by the whole mask gives."""

import numpy as np
import pytest
import torch
from trainer.tiny_transformers import CONFIGS, CPU

from scalerl.model.attention import BLOCK, BY_BLOCKS, BY_ROWS, attend_by_groups, block_mask, seen_blocks
from scalerl.model.packing import Packing
from scalerl.model.transformers_load import attention_of, empty


def packings():
    """Rows of several blocks: of one sequence, of many short ones, and with prompts in common."""
    rng = np.random.default_rng(0)
    many = torch.from_numpy(rng.integers(1, 60, size=30))
    group, prompt = torch.arange(12) // 4, torch.tensor([5, 5, 5, 5, 90, 90, 90, 90, 1, 1, 1, 1])
    answers = torch.from_numpy(rng.integers(1, 80, size=12))
    return {
        "one": Packing.of(torch.tensor([3 * BLOCK + 7])),
        "a part of a block": Packing.of(torch.tensor([5, 3])),
        "many": Packing.of(many),
        "shared": Packing.with_shared_prompts(prompt + answers, prompt, group),
    }


@pytest.mark.parametrize("window", [None, 1, 20, 200])
@pytest.mark.parametrize("name", packings())
def test_every_token_sees_what_the_whole_mask_lets_it_see(name, window):
    packing = packings()[name]
    position = packing.position_N
    expected = packing.may_attend()
    if window is not None:
        expected &= position[:, None] - position < window
    mask, (some, every) = block_mask(packing, window), seen_blocks(packing, window)
    token = torch.arange(len(position))
    inside = mask.mask_mod(torch.tensor(0), torch.tensor(0), token[:, None], token[None])
    assert torch.equal(inside, expected)
    # No block is computed for nothing, and no pair is looked at if all of a block are seen.
    pairs = torch.zeros(some.shape, dtype=torch.int64)
    pairs.index_put_((token[:, None] // BLOCK, token[None] // BLOCK), expected.long(), accumulate=True)
    assert torch.equal(pairs > 0, torch.from_numpy(some))
    size = torch.bincount(token // BLOCK)
    assert torch.equal(pairs == size[:, None] * BLOCK, torch.from_numpy(every))
    for row in range(len(some)):
        partly = mask.kv_indices[0, 0, row, : mask.kv_num_blocks[0, 0, row]]
        wholly = mask.full_kv_indices[0, 0, row, : mask.full_kv_num_blocks[0, 0, row]]
        assert partly.tolist() == np.flatnonzero(some[row] & ~every[row]).tolist()
        assert wholly.tolist() == np.flatnonzero(every[row]).tolist()


@pytest.mark.parametrize("name", ["llama", "qwen2", "mistral windowed", "gemma3", "mixtral"])
@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile:UserWarning")  # as a CPU runs it
@torch.no_grad()
@pytest.mark.parametrize("way", [BY_BLOCKS, BY_ROWS])
def test_a_policy_that_attends_by_blocks_or_rows_says_what_it_says_by_whole_masks(name, way, monkeypatch):
    policy = empty(CONFIGS[name], CPU)
    policy.init_weights(torch.Generator().manual_seed(0))
    policy.model.set_attn_implementation("sdpa")
    length, prompt, group = torch.tensor([70, 64, 90, 31]), torch.tensor([60, 60, 4, 4]), torch.tensor([0, 0, 1, 1])
    tokens = torch.from_numpy(np.random.default_rng(1).integers(4, 40, size=(4, 90)))
    ways = [None, Packing.of(length), Packing.with_shared_prompts(length, prompt, group)]
    expected = [policy.score(tokens, 0.9, packing=packing) for packing in ways]
    policy.model.set_attn_implementation(way)
    monkeypatch.setattr(Packing, "may_attend", lambda self: pytest.fail("a mask of every token by every token"))
    for packing, whole in zip(ways, expected, strict=True):
        found = policy.score(tokens, 0.9, packing=packing)
        torch.testing.assert_close(found.logprobs_BT, whole.logprobs_BT, rtol=0, atol=1e-5)
        torch.testing.assert_close(found.entropy_BT, whole.entropy_BT, rtol=0, atol=1e-5)


def test_attention_goes_by_blocks_on_a_gpu_and_by_rows_on_a_cpu():
    assert attention_of(CONFIGS["qwen2"], CPU) == BY_ROWS
    assert attention_of(CONFIGS["qwen2"], torch.device("cuda")) == BY_BLOCKS
    assert attention_of(CONFIGS["gemma2 capped"], torch.device("cuda")) == "eager"


def test_one_token_a_row_attends_to_shared_keys_as_to_copies_of_them():
    random = torch.Generator().manual_seed(0)
    query, key, value = (
        torch.randn(5, heads, length, 8, generator=random) for heads, length in ((6, 1), (2, 7), (2, 7))
    )
    seen = torch.arange(7) <= torch.tensor([0, 3, 6, 2, 5])[:, None, None, None]
    found = attend_by_groups(query, key, value, seen, 0.3)
    expected = torch.zeros(5, 1, 6, 8, dtype=torch.float64)
    for row in range(5):
        for head in range(6):
            scores = 0.3 * (key[row, head // 3].double() @ query[row, head, 0].double())
            scores[~seen[row, 0, 0]] = -torch.inf
            expected[row, 0, head] = scores.softmax(0) @ value[row, head // 3].double()
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=1e-6)


def test_gradients_by_rows_are_those_of_the_whole_mask():
    length, prompt, group = torch.tensor([70, 64, 90, 31]), torch.tensor([60, 60, 4, 4]), torch.tensor([0, 0, 1, 1])
    tokens = torch.from_numpy(np.random.default_rng(1).integers(4, 40, size=(4, 90)))
    packing = Packing.with_shared_prompts(length, prompt, group)
    policy = empty(CONFIGS["mistral windowed"], CPU)
    policy.init_weights(torch.Generator().manual_seed(0))
    gradients = {}
    for way in ("sdpa", BY_ROWS):
        policy.model.set_attn_implementation(way)
        policy.zero_grad()
        policy.score(tokens, 0.9, packing=packing).logprobs_BT.square().sum().backward()
        gradients[way] = {name: one.grad.clone() for name, one in policy.named_parameters()}
    for name, expected in gradients["sdpa"].items():
        torch.testing.assert_close(gradients[BY_ROWS][name], expected, rtol=1e-4, atol=1e-4)
