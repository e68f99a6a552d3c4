"""Log-probabilities and entropy computed some tokens at a time, against a loop in float64 and against all at once."""

import math
from typing import Any

import pytest
import torch
from trainer.learner_cases import gradients, random_groups
from trainer.tiny import random_policy, tiny_recipe
from trainer.tiny_transformers import CONFIGS

from scalerl.learner.batch import make_batch
from scalerl.learner.torch_learner import TorchLearner
from scalerl.model import exact_product
from scalerl.model import head as heads
from scalerl.model.head import Head, InChunks, token_scores
from scalerl.model.size import LOGITS_AT_ONCE
from scalerl.model.transformers_load import empty

TOKENS, HIDDEN, VOCABULARY = 23, 7, 31
TEMPERATURE = 0.8


def inputs(seed=0, with_bias=True) -> tuple[Any, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    hidden = torch.randn(TOKENS, HIDDEN, generator=generator)
    weight = torch.randn(VOCABULARY, HIDDEN, generator=generator)
    bias = torch.randn(VOCABULARY, generator=generator) if with_bias else None
    tokens = torch.randint(VOCABULARY, (TOKENS,), generator=generator)
    return [None if one is None else one.requires_grad_() for one in (hidden, weight, bias)], tokens


def weights_of_loss(seed=1):
    return torch.randn(2, TOKENS, generator=torch.Generator().manual_seed(seed))


def loop(parameters, tokens):
    """Log-probabilities and entropies, one token and one word at a time in float64."""
    hidden, weight, bias = (one.tolist() for one in parameters)
    chosen, uncertainty = [], []
    for h, token in zip(hidden, tokens.tolist(), strict=True):
        z = [
            (sum(a * b for a, b in zip(h, w, strict=True)) + c) / TEMPERATURE for w, c in zip(weight, bias, strict=True)
        ]
        normaliser = math.log(math.fsum(math.exp(one) for one in z))
        chosen.append(z[token] - normaliser)
        uncertainty.append(-math.fsum(math.exp(one - normaliser) * (one - normaliser) for one in z))
    return chosen, uncertainty


@pytest.fixture(params=[1, 5, 22])
def tokens_at_once(request, monkeypatch):
    """1 and 5 do not divide 23 tokens alike; 22 leaves one for the last chunk."""
    monkeypatch.setitem(LOGITS_AT_ONCE, "cpu", request.param * VOCABULARY)
    return request.param


def test_values_equal_a_loop_in_float64(tokens_at_once):
    parameters, tokens = inputs()
    head = Head(weight=parameters[1], bias=parameters[2], dtype=torch.float32)
    found = token_scores(head, parameters[0], tokens, temperature=TEMPERATURE, entropy_gradient=False)
    for ours, expected in zip(found, loop(parameters, tokens), strict=True):
        torch.testing.assert_close(ours.double(), torch.tensor(expected, dtype=torch.float64), atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("entropy_gradient", [False, True])
def test_gradients_equal_differences_of_the_loop(tokens_at_once, entropy_gradient):
    parameters, tokens = inputs()
    head = Head(weight=parameters[1], bias=parameters[2], dtype=torch.float32)
    factors = weights_of_loss()
    chosen, uncertainty = token_scores(
        head, parameters[0], tokens, temperature=TEMPERATURE, entropy_gradient=entropy_gradient
    )
    assert uncertainty.requires_grad == entropy_gradient
    loss = (chosen * factors[0]).sum() + ((uncertainty * factors[1]).sum() if entropy_gradient else 0)
    ours = torch.autograd.grad(loss, parameters)

    def value(exact):
        rows = loop(exact, tokens)
        used = rows if entropy_gradient else rows[:1]
        return math.fsum(
            float(f) * x for factor, row in zip(factors, used, strict=False) for f, x in zip(factor, row, strict=True)
        )

    for number, gradient in enumerate(ours):
        assert gradient.abs().max() > 0.1
        for place in range(0, gradient.numel(), max(1, gradient.numel() // 5)):
            ends = []
            for step in (1e-5, -1e-5):
                exact = [one.detach().double() for one in parameters]
                exact[number].view(-1)[place] += step
                ends.append(value(exact))
            slope = (ends[0] - ends[1]) / 2e-5
            assert float(gradient.view(-1)[place]) == pytest.approx(slope, rel=1e-5, abs=2e-6)


@pytest.mark.parametrize("words_at_once", [1, 4, 31])
@pytest.mark.parametrize("entropy_gradient", [False, True])
def test_a_matrix_in_parts_as_on_a_gpu_changes_nothing(tokens_at_once, entropy_gradient, words_at_once, monkeypatch):
    def found():
        parameters, tokens = inputs()
        head = Head(weight=parameters[1], bias=parameters[2], dtype=torch.float32)
        scores = token_scores(head, parameters[0], tokens, temperature=TEMPERATURE, entropy_gradient=entropy_gradient)
        factors = weights_of_loss()
        loss = (scores[0] * factors[0]).sum() + (scores[1] * factors[1]).sum()
        return [*scores, *torch.autograd.grad(loss, parameters)]

    whole = found()
    for module in (heads, exact_product):
        monkeypatch.setattr(module, "is_split", lambda x: x.dtype == torch.float32)
    monkeypatch.setattr(heads, "SPLIT_AT_ONCE", words_at_once * HIDDEN)
    assert len(list(heads.word_slices(torch.zeros(VOCABULARY, HIDDEN)))) == math.ceil(VOCABULARY / words_at_once)
    for ours, theirs in zip(found(), whole, strict=True):
        torch.testing.assert_close(ours, theirs, atol=3e-6 * max(1.0, float(theirs.detach().abs().max())), rtol=1e-6)


def test_a_head_in_bf16_rounds_what_all_at_once_rounds(tokens_at_once, monkeypatch):
    def found():
        parameters, tokens = inputs()
        head = Head(weight=parameters[1], bias=parameters[2], dtype=torch.bfloat16)
        chosen, _ = token_scores(head, parameters[0], tokens, temperature=TEMPERATURE, entropy_gradient=False)
        return [chosen, *torch.autograd.grad((chosen * weights_of_loss()[0]).sum(), parameters)]

    chunked = found()
    monkeypatch.setitem(LOGITS_AT_ONCE, "cpu", 2**24)
    whole = found()
    torch.testing.assert_close(chunked[0], whole[0], atol=2e-6, rtol=1e-6)
    for ours, theirs in zip(chunked[1:], whole[1:], strict=True):
        # Theirs is summed over tokens and then rounded; one BF16 step of the largest number.
        torch.testing.assert_close(ours, theirs, atol=float(theirs.abs().max()) * 2**-8, rtol=2**-7)


AXES = {
    "kl": {"kl": {"coefficient": 0.3, "estimator": "k3"}},
    "entropy bonus": {"entropy_bonus": 0.1},
    "shared prompts": {"optimiser": {"packing": "prompts"}},
    "recomputed": {"optimiser": {"gradient_checkpointing": True}},
    "sequences in bf16": {"optimiser": {"packing": "sequences"}, "logits": "bf16"},
}


@pytest.mark.parametrize("name", [*AXES, "tied", "mixture, recomputed"])
def test_a_batch_has_the_gradient_of_all_logits_at_once(name, monkeypatch):
    recipe = tiny_recipe(**AXES.get(name, {}))
    policy: Any = random_policy(recipe)
    groups = random_groups(policy)
    if name not in AXES:
        policy = empty(CONFIGS["qwen2" if name == "tied" else "mixtral"], torch.device("cpu"))
        policy.init_weights(torch.Generator().manual_seed(0))
        policy.recompute = name != "tied"
    learner = TorchLearner(policy, recipe)
    found = []
    calls: list[int] = []
    apply: Any = InChunks.forward
    monkeypatch.setattr(InChunks, "forward", staticmethod(lambda *given: calls.append(1) or apply(*given)))
    for limit in (2**24, 7 * policy.head_weights()[0].shape[0]):
        monkeypatch.setitem(LOGITS_AT_ONCE, "cpu", limit)
        policy.zero_grad()
        batch = learner.with_scores(make_batch(groups))
        columns = learner.accumulate(batch, learner.advantages(groups, batch))
        found.append((columns, gradients(policy)))
        assert bool(calls) == (limit < 2**24)
    (whole, whole_gradients), (ours, our_gradients) = found
    assert ours == pytest.approx(whole, rel=1e-5, abs=1e-6)
    for key, gradient in whole_gradients.items():
        step = 2**-7 if recipe.logits == "bf16" else 1e-5
        torch.testing.assert_close(
            our_gradients[key], gradient, rtol=step, atol=step * float(gradient.abs().max()) + 1e-7
        )


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_a_sum_in_parts_rounds_each_part_and_each_sum(parts):
    (hidden, weight, bias), _ = inputs()
    head = Head(weight=weight, bias=bias, dtype=torch.bfloat16, parts=parts)

    def rounded(number):
        return torch.tensor(number, dtype=torch.float64).to(torch.bfloat16).double().item()

    size = -(-hidden.shape[-1] // parts)
    found = head.logits(hidden[:3])
    for h, row in zip(hidden[:3].bfloat16().tolist(), found.tolist(), strict=True):
        for w, b, logit in zip(weight.bfloat16().tolist(), bias.bfloat16().tolist(), row, strict=True):
            products = [math.fsum(x * y for x, y in zip(h[at : at + size], w[at : at + size], strict=True))
                        for at in range(0, len(h), size)]  # fmt: skip
            total = rounded(products[0] + b)
            for product in products[1:]:
                total = rounded(total + rounded(product))
            # One step of BF16: the kernel may sum in an order that rounds a tie the other way.
            assert logit == pytest.approx(total, rel=2**-7, abs=2**-9)
    whole = Head(weight=weight, bias=bias, dtype=torch.bfloat16).logits(hidden)
    assert torch.equal(head.logits(hidden), whole) == (parts == 1)
