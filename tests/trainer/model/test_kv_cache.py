"""A cache that grows with what is decoded, against one that has all of its rows and positions from the start."""

from math import prod
from typing import Any

import pytest
import torch
from trainer.tiny import random_policy, tiny_recipe
from trainer.tiny_transformers import CONFIGS

from scalerl.model import kv_cache
from scalerl.model.build import precision_of
from scalerl.model.kv_cache import Prefill, room
from scalerl.model.transformers_load import empty

CPU = torch.device("cpu")
LLAMA = {"hidden": 24, "layers": 2, "heads": 3, "mlp": 24}


def policy_of(kind, parameters="fp32"):
    recipe = tiny_recipe(model=LLAMA, parameters=parameters)
    if kind == "built in":
        return random_policy(recipe)
    policy = empty(CONFIGS[kind], CPU, precision_of(recipe))
    policy.init_weights(torch.Generator().manual_seed(0))
    return policy


@torch.inference_mode()
def decoded(policy, *, slots=40, positions=128):
    """Logits of rows that start at different times; prompts of two and five tokens, shared by several rows."""
    cache, found = policy.new_cache(slots=slots, positions=positions), []
    position = torch.empty(0, dtype=torch.int64)
    for step in range(24):
        prefills = []
        if step % 8 == 0:  # ten more rows
            tokens = torch.tensor([[5 + step, 6, 7, 8], [9, 0, 0, 0]])
            rows = torch.arange(len(position), len(position) + 10)
            prefills = [Prefill(tokens=tokens, rows=rows, prompts=torch.tensor([0, 1] * 5))]
            position = torch.cat((position, torch.tensor([4, 1] * 5)))
        found.append(cache.logits((position * 7 + step) % 30, position, *prefills))
        position = position + 1
        if step == 12:
            cache.move([0, 3], [8, 9])
            position[[0, 3]] = position[[8, 9]]
    return found, cache


def memory(cache):
    return sum(layer.nbytes for layer in cache.kv)


@pytest.mark.parametrize("kind", ["built in", "qwen2", "mistral windowed"])
def test_a_cache_that_grows_gives_the_logits_of_one_made_in_one_piece(kind, monkeypatch):
    policy = policy_of(kind)
    whole, large = decoded(policy)
    monkeypatch.setattr(kv_cache, "SMALL_CACHE_BYTES", 0)
    monkeypatch.setattr(kv_cache, "ROWS", 4)
    monkeypatch.setattr(kv_cache, "POSITIONS", 8)
    grown, small = decoded(policy)
    assert all(torch.equal(a, b) for a, b in zip(whole, grown, strict=True))
    # 30 rows of up to 28 positions; 32 rows and 32 positions of 40 and 128
    assert [tuple(layer.shape[i] for i in (0, 3)) for layer in small.kv] == [small.in_memory(32, 32)] * 2
    assert memory(small) * prod(large.in_memory(40, 128)) == memory(large) * prod(small.in_memory(32, 32))


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [("built in", "mixed"), ("built in", "bf16"), ("built in", "fp16"), ("qwen2", "mixed"), ("qwen2", "bf16"),
     ("qwen2", "fp16"), ("mixtral", "bf16")],
)  # fmt: skip
def test_keys_and_values_take_two_bytes_in_half_precision_and_no_logit_changes(kind, parameters, monkeypatch):
    policy = policy_of(kind, parameters)
    half, small = decoded(policy)
    assert all(layer.dtype == policy.precision.products for layer in small.kv)
    # The products that read them round them to 16 bits anyway.
    made: Any = kv_cache.KVCache.__init__
    monkeypatch.setattr(
        kv_cache.KVCache, "__init__", lambda self, **given: made(self, **(given | {"dtype": torch.float32}))
    )
    full, large = decoded(policy)
    assert all(layer.dtype == torch.float32 for layer in large.kv)
    assert memory(small) == memory(large) / 2
    assert all(torch.equal(a, b) for a, b in zip(half, full, strict=True))


def test_prompts_prefilled_in_parts_give_the_same_logits(monkeypatch):
    policy = policy_of("qwen2")
    whole, _ = decoded(policy)
    monkeypatch.setattr("scalerl.model.transformers_policy.PREFILL_TOKENS", 5)
    parts, _ = decoded(policy)
    for a, b in zip(whole, parts, strict=True):
        torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-5)


def test_what_is_taken_is_put_back():
    policy = policy_of("built in")
    _, cache = decoded(policy)
    taken = cache.taken(7, 9)
    other = policy.new_cache(slots=40, positions=128)
    other.put(taken)
    assert torch.equal(other.taken(7, 9), taken)
    assert taken.abs().sum() > 0
    cache.release()
    assert memory(cache) == 0


def test_room_grows_by_whole_blocks_and_at_least_a_quarter():
    assert room(1, 0, block=16, most=512) == 16
    assert room(17, 16, block=16, most=512) == 32
    assert room(101, 100, block=16, most=512) == 128  # a quarter more is 125
    assert room(500, 400, block=64, most=505) == 505
    assert room(3, 8, block=16, most=512) == 8
