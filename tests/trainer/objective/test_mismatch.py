"""How far trainer and generator are apart: against plain loops, and against KL divergences known in closed form."""

import math
import random
import statistics

import pytest
import torch

from scalerl.objective.mismatch import by_label, of_sequences, of_tokens


def test_measures_of_tokens_equal_the_loops():
    rng = random.Random(0)
    gaps = [rng.gauss(0, 0.5) for _ in range(350)]
    found = {name: float(value) for name, value in of_tokens(torch.tensor(gaps, dtype=torch.float64)).items()}
    ratios = [math.exp(gap) for gap in gaps]
    ranked = sorted(map(abs, gaps))
    assert found == pytest.approx(
        {
            "mismatch_k1": -statistics.fmean(gaps),
            "mismatch_k3": statistics.fmean(r - 1 - math.log(r) for r in ratios),
            "mismatch_reverse_k1": statistics.fmean(r * math.log(r) for r in ratios),
            "mismatch_reverse_k3": statistics.fmean(r * math.log(r) - (r - 1) for r in ratios),
            "mismatch_p99": ranked[346],  # 347 of 350 are at most this: the first share of at least 0.99
            "mismatch_max": ranked[-1],
            "mismatch_far": sum(r < 0.5 or r > 2 for r in ratios) / 350,
        },
        rel=1e-12,
    )


def test_the_estimates_have_the_divergences_as_their_means():
    # Tokens in exactly the shares in which the generator draws them, so that a mean is an expectation.
    generator, trainer = [5, 3, 2], [0.4, 0.5, 0.1]
    gaps = [math.log(p / (n / 10)) for n, p in zip(generator, trainer, strict=True) for _ in range(n)]
    found = of_tokens(torch.tensor(gaps, dtype=torch.float64))
    there = math.fsum(n / 10 * math.log(n / 10 / p) for n, p in zip(generator, trainer, strict=True))
    back = math.fsum(p * math.log(p / (n / 10)) for n, p in zip(generator, trainer, strict=True))
    for name, expected in (("k1", there), ("k3", there), ("reverse_k1", back), ("reverse_k3", back)):
        assert float(found[f"mismatch_{name}"]) == pytest.approx(expected, rel=1e-12), name


def test_sequences_are_weighed_by_the_product_of_their_ratios():
    log_r = torch.tensor([[math.log(2), math.log(3), 0.0], [math.log(0.5), 0.0, 0.0]])
    found = of_sequences(log_r)
    assert float(found["mismatch_chi_square"]) == pytest.approx((36 + 0.25) / 2 - 1, rel=1e-6)
    assert float(found["ess_sequences"]) == pytest.approx(6.5**2 / (2 * 36.25), rel=1e-6)


def test_an_impossible_token_leaves_numbers_for_the_log():
    measured = [*of_tokens(torch.tensor([2000.0, -2000.0])).values(), *of_sequences(torch.tensor([[2000.0]])).values()]
    assert all(value.isfinite() for value in measured)


def test_means_by_label():
    found = by_label(torch.tensor([1.0, 2.0, 4.0, 8.0]), torch.tensor([1, 0, 1, 1]), 2)
    assert found.tolist() == [2.0, pytest.approx(13 / 3)]
