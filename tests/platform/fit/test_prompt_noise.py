"""The noise of a pass rate from counts by prompt: against enumeration of all answers, and what a fit makes of it."""

from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import comb

import numpy as np
import pytest
from curves import eq1, readings

from ablations.fit.curve import Curve
from ablations.fit.fitting import fit_curve
from ablations.fit.prompt_noise import answer_variance, prompt_variance


def chances(p, k):
    """Of 0 to k right answers among k."""
    return [comb(k, c) * p**c * (1 - p) ** (k - c) for c in range(k + 1)]


@pytest.mark.parametrize(
    ("p", "k"),
    [
        ([Fraction(1, 10), Fraction(3, 5), Fraction(1)], [2, 2, 2]),
        ([Fraction(1, 3), Fraction(0), Fraction(1, 2)], [4, 2, 3]),
        ([Fraction(7, 8)], [5]),
    ],
)
def test_the_variance_given_the_prompts_is_without_bias_over_all_answers_that_can_be(p, k):
    expected = mean = square = Fraction(0)
    for counts in product(*(range(each + 1) for each in k)):
        chance = Fraction(1)
        for p_i, k_i, c_i in zip(p, k, counts, strict=True):
            chance *= chances(p_i, k_i)[c_i]
        rate = Fraction(sum(counts), sum(k))
        expected += chance * Fraction(float(answer_variance(np.array(counts), np.array(k))))
        mean, square = mean + chance * rate, square + chance * rate**2
    assert float(expected) == pytest.approx(float(square - mean**2), rel=1e-12)


def test_one_answer_to_each_prompt_counts_as_if_prompts_were_drawn_anew():
    right = np.array([1, 0, 1, 1])
    assert answer_variance(right, np.ones(4, dtype=int)) == pytest.approx(0.75 * 0.25 / 4)
    # Of three prompts with 2, 1 and 0 judged answers: (2 * 1/2 + 1 * 2/9) / 9, p = 2/3.
    assert answer_variance(np.array([1, 1, 0]), np.array([2, 1, 0])) == pytest.approx((2 * 0.5 + 2 / 9) / 9)
    assert np.isnan(prompt_variance(right, np.ones(4, dtype=int)))
    assert np.isnan(prompt_variance(np.array([1, 1, 0]), np.array([2, 1, 0])))


def test_the_variance_over_draws_of_prompts_is_that_of_their_pass_rates():
    # Half of all prompts are hard, p = .1, half easy, p = .8: Var(p_i) = .35^2 of single prompts.
    rng, found = np.random.default_rng(0), []
    for _ in range(4000):
        right = rng.binomial(4, rng.choice([0.1, 0.8], size=50))
        found.append(prompt_variance(right, np.full(50, 4)))
    error = float(np.std(found)) / np.sqrt(len(found))
    assert np.mean(found) == pytest.approx(0.35**2 / 50, abs=4 * error)
    assert error < 0.005 * 0.35**2 / 50
    assert prompt_variance(np.array([2, 2, 2]), np.array([4, 4, 4])) == 0.0


COMPUTE = readings()
LAW = eq1(COMPUTE)


def curve_of_answers(seed, *, num_prompts=256, samples=8, run_sd=0.002):
    """A law measured by answers to the same prompts at every reading, most of them always or never right."""
    rng = np.random.default_rng(seed)
    score, answers, prompts = [], [], []
    for rate in LAW + run_sd * rng.standard_normal(LAW.size):
        # One prompt in eight is of two minds; the others are solved one after the other.
        torn = num_prompts // 8
        p = np.append(np.full(torn, 0.5), np.clip(rate * num_prompts - torn / 2 - np.arange(num_prompts - torn), 0, 1))
        right, judged = rng.binomial(samples, p), np.full(num_prompts, samples)
        score.append(right.sum() / judged.sum())
        answers.append(answer_variance(right, judged))
        prompts.append(prompt_variance(right, judged))
    return Curve(
        name="c",
        compute=COMPUTE,
        score=np.array(score),
        samples=np.full(LAW.size, num_prompts * samples),
        prompts=np.full(LAW.size, num_prompts),
        answer_variance=np.array(answers),
        prompt_variance=np.array(prompts),
    )


def uncounted(curve):
    return replace(curve, answer_variance=None, prompt_variance=None)


def test_a_fit_takes_the_variance_given_the_prompts_and_no_longer_doubts_the_samples():
    for seed in range(2):
        curve = curve_of_answers(seed, run_sd=0.0)
        counted, as_samples = fit_curve(curve), fit_curve(uncounted(curve))
        assert counted.readings.sampling_variance == pytest.approx(curve.answer_variance[1:].mean())
        assert as_samples.readings.sampling_variance > 4 * counted.readings.sampling_variance
        assert counted.oddities == []
        assert any("than the 0.01" in text for text in as_samples.oddities)
        assert counted.eq1_hi is not None
        assert as_samples.eq1_hi is None or counted.eq1_hi - counted.eq1_lo < as_samples.eq1_hi - as_samples.eq1_lo
