"""A generator whose products have BF16 factors, beside a trainer in FP32."""

import numpy as np
import pytest
import torch
from trainer.run.test_head_parts import mismatch
from trainer.tiny import random_policy, tiny_recipe

from scalerl.model.kv_cache import Prefill

WIDTH, HEADS, SIZE, LAYERS = 16, 2, 8, 2
RECIPE = tiny_recipe(model={"hidden": WIDTH, "layers": LAYERS, "heads": HEADS, "mlp": 24})
PROMPT, OWN = [5, 9, 7, 12], [8, 6, 11]


def rounded(x):
    return torch.as_tensor(np.asarray(x)).float().bfloat16().double().numpy()


def exact(x):
    return np.asarray(x, dtype=np.float64)


def norm(x, weight):
    return x / np.sqrt((x**2).mean() + 1e-6) * weight


def loop(policy, tokens, factor):
    """Logits of the last token, in float64, one number after the other where order matters."""
    weights = {name: exact(value.detach()) for name, value in policy.state_dict().items()}
    states = [weights["embedding"][token] for token in tokens]
    frequency = 10000.0 ** (-np.arange(0, SIZE, 2) / SIZE)
    for layer in range(LAYERS):
        of = {name.split(".", 2)[2]: w for name, w in weights.items() if name.startswith(f"blocks.{layer}.")}
        keys, values, after = [], [], []
        for position, x in enumerate(states):
            qkv = factor(of["qkv"]) @ factor(norm(x, of["attention_norm"]))
            turn = np.exp(1j * position * frequency)
            attended = []
            q, k, v = qkv.reshape(HEADS, 3, SIZE).transpose(1, 0, 2)
            turned = [(part[:, ::2] + 1j * part[:, 1::2]) * turn for part in (q, k)]
            q, k = (np.stack((part.real, part.imag), -1).reshape(HEADS, SIZE) for part in turned)
            keys.append(factor(k))
            values.append(factor(v))
            for head in range(HEADS):
                score = np.array([factor(q)[head] @ key[head] for key in keys]) / SIZE**0.5
                weight = np.exp(score - score.max())
                attended += list(factor(weight) @ np.array([value[head] for value in values]) / weight.sum())
            x = x + factor(of["out"]) @ factor(attended)
            gate, up = np.split(factor(of["gate_up"]) @ factor(norm(x, of["mlp_norm"])), 2)
            after.append(x + factor(of["down"]) @ factor(gate / (1 + np.exp(-gate)) * up))
        states = after
    return weights["head"] @ norm(states[-1], weights["norm"])


@torch.inference_mode()
def decoded(policy):
    """Logits after each of the row's own tokens, of the cache."""
    cache, found = policy.new_cache(slots=3, positions=12), []
    prefill = Prefill(tokens=torch.tensor([PROMPT]), rows=torch.tensor([0, 1]), prompts=torch.tensor([0, 0]))
    for step, token in enumerate(OWN):
        tokens, position = torch.tensor([4, token]), torch.full((2,), len(PROMPT) + step)
        found.append(cache.logits(tokens, position, *([prefill] if step == 0 else []))[1].numpy())
    return found


def rounding_policy():
    policy = random_policy(RECIPE)
    policy.precision = type(policy.precision)(weights=torch.float32, products=torch.bfloat16, head=torch.float32)
    policy.rounds_factors_only = True
    return policy


@pytest.mark.parametrize("factor", [exact, rounded])
def test_logits_are_those_of_a_loop_that_rounds_each_factor(factor):
    policy = random_policy(RECIPE) if factor is exact else rounding_policy()
    wanted = [loop(policy, PROMPT + OWN[: n + 1], factor) for n in range(len(OWN))]
    other = [loop(policy, PROMPT + OWN[: n + 1], exact if factor is rounded else rounded) for n in range(len(OWN))]
    gap = np.abs(np.array(decoded(policy)) - wanted)
    between = np.abs(np.array(other) - wanted).mean()
    # A factor next to the middle between two numbers of BF16 may be rounded to the other one in float64.
    assert gap.mean() < between / (1000 if factor is exact else 5)


def test_keys_and_values_take_two_bytes():
    policy = rounding_policy()
    assert all(layer.dtype == torch.bfloat16 for layer in policy.new_cache(slots=3, positions=12).kv)


def test_generator_and_trainer_differ_as_two_engines_do(tmp_path):
    settings = {"type": "torch", "products": "bfloat16"}
    assert mismatch(tmp_path / "fp32") < 1e-6
    assert 5e-4 < mismatch(tmp_path / "bf16", generator=settings) < 5e-2


def test_a_rounding_generator_is_another_run_and_its_absence_the_run_that_was():
    before = tiny_recipe().identity(0)
    assert tiny_recipe(generator={"type": "torch", "products": "float32"}).identity(0) == before
    assert tiny_recipe(generator={"type": "torch", "products": "bfloat16"}).identity(0) != before


@pytest.mark.parametrize("parameters", ["mixed", "bf16", "fp16"])
def test_a_trainer_that_rounds_too_is_refused(parameters):
    with pytest.raises(ValueError, match=rf"products 'bfloat16' .* parameters '{parameters}'"):
        tiny_recipe(generator={"type": "torch", "products": "bfloat16"}, parameters=parameters)
