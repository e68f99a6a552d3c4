"""A state comes back from its parts as it was, and every tensor is kept once."""

import json
import math

import numpy as np
import pytest
import torch
from trainer.tiny import make_group, make_prompt

from scalerl.cluster.cluster import Assembly
from scalerl.generator.request import Request
from scalerl.run.encoding import decode, encode


def back(state, prompts=()):
    """Through the text that is written, not only through the tree."""
    encoded = encode(state)
    encoded.tree = json.loads(json.dumps(encoded.tree))
    return decode(encoded, prompts)


@pytest.mark.parametrize(
    "value",
    [
        None, True, False, 0, -3, 2**127 + 1, 0.1, 1e-320, math.inf, "", "$tensor", [], [1, "a"], (), (0.9, (0.95,)),
        {}, {"a": {"b": [1]}}, {1: "a", (2, "b"): [3]}, {"$tuple": 1}, {("k_smallest", "3:k9a2"): (1.5, 2)},
    ],
)  # fmt: skip
def test_plain_values_come_back_with_their_types(value):
    again = back({"value": value})["value"]
    assert again == value
    assert type(again) is type(value)


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.int64, torch.uint8, torch.bool]
)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3, 4)])
def test_tensors_come_back_to_the_bit(dtype, shape):
    tensor = (torch.randn(shape, generator=torch.Generator().manual_seed(0)) * 9).to(dtype)
    again = back([tensor])[0]
    assert again.dtype == dtype
    assert torch.equal(again, tensor)


@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.int32, np.bool_, np.uint64])
def test_arrays_come_back_one_after_the_other(dtype):
    arrays = [np.arange(6).reshape(2, 3).astype(dtype), np.zeros((0, 4), dtype), np.array(1, dtype), np.ones(2, dtype)]
    again = back({"rows": arrays})["rows"]
    for one, other in zip(arrays, again, strict=True):
        assert other.dtype == one.dtype
        assert other.shape == one.shape
        assert (other == one).all()


def test_tensors_of_one_content_are_kept_once_and_come_back_apart():
    weights = torch.arange(12.0).reshape(3, 4)
    state = {
        "learner": {"policy": weights, "rows": weights[1:2]},
        "generator": weights.clone(),
        "other_shape": weights.reshape(4, 3),
        "other_type": weights.double(),
    }
    encoded = encode(state)
    assert list(encoded.tensors) == ["learner/policy", "learner/rows", "other_shape", "other_type"]
    storages = {tensor.untyped_storage().data_ptr() for tensor in encoded.tensors.values()}
    again = decode(encoded, ())
    again["generator"] += 1  # as an optimiser does with the steps that it counts
    assert torch.equal(again["learner"]["policy"], weights)
    assert torch.equal(again["learner"]["rows"], weights[1:2])
    assert storages


def test_what_is_in_flight_comes_back_with_the_prompts_of_the_task():
    group = make_group("3:k9a2", [[5, 9], [7]], [[-0.5, -0.1], [-2.0]], [1.0, -1.0])
    prompt = group.prompt
    assembly = Assembly(prompt=prompt, start_version=3, rollouts=[None, group.rollouts[0]])
    request = Request(prompt=prompt, group=17, index=3, seed=2**64 - 1, cut=12)
    encoded = encode({"assembling": {17: assembly}, "ready": [(16, group)], "waiting": [request]})
    text = json.dumps(encoded.tree)
    assert text.count('{"$prompt": ["k_smallest", "3:k9a2"]}') == 1 + 1 + 1 + 2 + 1
    same_name = make_prompt("3:k9a2")
    again = decode(encoded, [same_name, make_prompt("another")])
    assert again["waiting"] == [request]
    number, ready = again["ready"][0]
    assert (number, ready.rewards, ready.outcomes) == (16, (1.0, -1.0), ("right", "wrong"))
    for ours, theirs in zip(ready.rollouts, group.rollouts, strict=True):
        assert ours.prompt is same_name
        for name in ("tokens", "logprobs", "versions", "forced"):
            one, other = getattr(ours, name), getattr(theirs, name)
            assert one.dtype == other.dtype
            assert (one == other).all()
    assert again["assembling"][17].rollouts[0] is None
    assert again["assembling"][17].start_version == 3


def test_a_prompt_that_the_task_does_not_have_is_named():
    encoded = encode([make_prompt("3:k9a2")])
    with pytest.raises(ValueError, match="task 'k_smallest' has no training prompt '3:k9a2'"):
        decode(encoded, [make_prompt("another")])


def test_a_value_without_a_form_is_named_by_its_place():
    with pytest.raises(TypeError, match=r"cannot store <class 'set'>, found at /pool/retired"):
        encode({"pool": {"retired": {1}}})


def test_weights_of_earlier_steps_come_back_to_the_bit_from_half_their_bytes():
    generator = torch.Generator().manual_seed(0)
    policy = {"up": torch.randn(300, 40, generator=generator) * 0.05, "norm": torch.ones(40)}
    older = {name: tensor - 2e-6 * torch.randn(tensor.shape, generator=generator) for name, tensor in policy.items()}
    # NaN, infinity, both zeros, a change of sign, the smallest number: the bits of each are far from the policy's.
    strange = torch.tensor([math.nan, -math.inf, 0.0, -0.0, -0.05, 1e-45])
    older["up"].view(-1)[:6] = strange
    policy["up"].view(-1)[:6] = torch.tensor([0.1, 0.1, -0.0, 0.0, 0.05, -1e-45])
    state = {"learner": {"policy": policy}, "generator": {"weights": older}, "pushes": [(0.5, 3, dict(older))]}
    encoded = encode(state, near=policy)
    again = decode(encoded, ())
    for found in (again["generator"]["weights"], again["pushes"][0][2]):
        assert all(torch.equal(found[name].view(torch.int32), older[name].view(torch.int32)) for name in older)
        found["up"].zero_()  # each is in its own memory
    assert again["learner"]["policy"]["up"].ne(0).any()
    whole = sum(tensor.nbytes for tensor in policy.values())
    assert sum(tensor.nbytes for tensor in encoded.tensors.values()) < 1.55 * whole


def test_weights_of_another_kind_or_far_away_are_kept_whole():
    policy = {"a": torch.randn(64), "b": torch.randn(64), "c": torch.randn(64)}
    others = {"a": torch.randn(64), "b": policy["b"].to(torch.bfloat16), "c": policy["c"].view(8, 8).clone()}
    encoded = encode({"policy": policy, "generator": others}, near=policy)
    again = decode(encoded, ())["generator"]
    assert all(torch.equal(again[name], others[name]) for name in others)
    assert encoded.tree["generator"]["a"] == {"$tensor": "generator/a"}


def test_equal_tensors_near_different_ones_come_back_to_the_bit():
    policy = {"norm": torch.full((8,), 1.001), "other": torch.full((8,), 0.999)}
    ones = {name: torch.ones(8) for name in policy}
    state = {"policy": policy, "generator": ones}
    again = decode(encode(state, near=policy), ())
    assert all(torch.equal(again["generator"][name], ones[name]) for name in ones)
