"""KL estimators against sums over a whole vocabulary."""

import math

import pytest
import torch

from scalerl.objective.kl import ESTIMATORS, token_kl

PI = [0.5, 0.3, 0.15, 0.05]
REF = [0.25, 0.25, 0.3, 0.2]
KL = math.fsum(p * math.log(p / q) for p, q in zip(PI, REF, strict=True))
REVERSE = math.fsum(q * math.log(q / p) for p, q in zip(PI, REF, strict=True))
# With respect to the logits of PI: d KL(pi || ref) = p (log(p / q) - KL), d KL(ref || pi) = p - q.
KL_SLOPE = [p * (math.log(p / q) - KL) for p, q in zip(PI, REF, strict=True)]
REVERSE_SLOPE = [p - q for p, q in zip(PI, REF, strict=True)]


def each_token(estimator, logits):
    """The estimate at every token of the vocabulary, as one row."""
    logprobs = logits.log_softmax(-1).unsqueeze(0)
    reference = torch.tensor([REF], dtype=torch.float64).log()
    return token_kl(estimator, logprobs, reference, torch.ones(1, len(PI), dtype=torch.bool))[0]


@pytest.mark.parametrize(("estimator", "mean"), [("k1", KL), ("k3", KL)])
def test_the_mean_over_tokens_of_the_policy_is_the_kl(estimator, mean):
    pi = torch.tensor(PI, dtype=torch.float64)
    assert float((pi * each_token(estimator, pi.log())).sum()) == pytest.approx(mean, rel=1e-12)


def test_k2_is_half_the_squared_log_ratio():
    result = each_token("k2", torch.tensor(PI, dtype=torch.float64).log())
    assert result.tolist() == pytest.approx([math.log(q / p) ** 2 / 2 for p, q in zip(PI, REF, strict=True)], rel=1e-12)


@pytest.mark.parametrize(
    ("estimator", "slope"), [("k1", [0.0] * 4), ("k2", KL_SLOPE), ("k3", REVERSE_SLOPE)], ids=["k1", "k2", "k3"]
)
def test_the_mean_gradient_in_the_loss_is_the_one_the_recipe_promises(estimator, slope):
    # arXiv 2506.09477: nothing for k1, the gradient of KL(pi || ref) for k2, that of KL(ref || pi) for k3.
    logits = torch.tensor(PI, dtype=torch.float64).log().requires_grad_()
    (torch.tensor(PI, dtype=torch.float64) * each_token(estimator, logits)).sum().backward()
    assert logits.grad.tolist() == pytest.approx(slope, rel=1e-9, abs=1e-12)
    assert pytest.approx(REVERSE, rel=0.05) != KL


@pytest.mark.parametrize("estimator", list(ESTIMATORS))
@pytest.mark.parametrize("rubbish", [0.0, math.nan, math.inf, -math.inf])
def test_garbage_off_the_mask_reaches_neither_value_nor_gradient(estimator, rubbish):
    reference = torch.tensor([[-1.3, rubbish]])
    logprobs = torch.tensor([[-0.9, rubbish]], requires_grad=True)
    result = token_kl(estimator, logprobs, reference, torch.tensor([[True, False]]))
    result.sum().backward()
    assert result[0, 1] == 0
    assert logprobs.grad[0, 1] == 0
    assert result[0, 0].isfinite()


def test_k3_near_the_reference_keeps_its_digits():
    # r - 1 - log r = d^2 / 2 + d^3 / 6 + ... with d = log r; in float32 r - 1 alone would leave none of them.
    d = 1e-4
    result = ESTIMATORS["k3"](torch.tensor([d], dtype=torch.float64))
    assert result.item() == pytest.approx(d**2 / 2 + d**3 / 6 + d**4 / 24, rel=1e-7)
