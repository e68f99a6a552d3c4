"""Readings that look wrong are named, with what would put it right, and sound ones are not."""

import numpy as np
import pytest

from ablations.fit.curve import Curve
from ablations.fit.fitting import fit_curve

COMPUTE = np.arange(0, 8001, 213.0)
LAW = np.append(0.3, 0.3 + 0.31 / (1 + (2542 / COMPUTE[1:]) ** 1.92))


def noise(sd, seed=1):
    return sd * np.random.default_rng(seed).standard_normal(COMPUTE.size)


def fitted(score, *, samples=None, **settings):
    counts = None if samples is None else np.full(score.size, samples)
    return fit_curve(Curve(name="c", compute=COMPUTE[: score.size], score=score, samples=counts), **settings)


def test_two_zeros_of_a_crashed_evaluator_are_named_and_hubers_loss_mends_them():
    score = LAW + noise(0.0045)
    score[-2:] = 0
    broken = fitted(score)
    assert broken.verdict == "too noisy to tell"
    (said,) = [text for text in broken.doubts if "far from" in text]
    assert said == (
        "2 evaluations lie far from the others (0.000 at 7,668, 0.000 at 7,881): "
        "delete these evaluations if the evaluation failed, or fit with loss: huber (--loss huber)"
    )
    mended = fitted(score, loss="huber")
    assert mended.eq1_lo < 0.61 < mended.eq1_hi
    score[-2] = LAW[-2]
    (said,) = [text for text in fitted(score).doubts if "far from" in text]
    assert said.startswith(
        "1 evaluation lies far from the others (0.000 at 7,881): delete that evaluation if the evaluation failed"
    )


@pytest.mark.parametrize("rho", [0.0, 0.7])
def test_sound_readings_have_nothing_odd(rho):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        run = noise(0.004, seed)
        for index in range(1, run.size):
            run[index] = rho * run[index - 1] + np.sqrt(1 - rho**2) * run[index]
        score = rng.binomial(16_000, LAW + run) / 16_000
        assert fitted(score, samples=16_000).oddities == []


def test_samples_that_would_scatter_more_than_the_readings_do_are_doubted():
    # Sixteen samples a reading would scatter by .12; these do by .004.
    (said,) = fitted(LAW + noise(0.004), samples=16).oddities
    assert said.startswith("the evaluations scatter by 0.00")
    assert "less than the 0.12" in said
    assert "samples is too low, or every evaluation uses the same prompts" in said


def test_a_falling_curve_is_said_to_fall_and_a_flat_one_is_not():
    falling = fitted(0.5 - 0.1 * COMPUTE / COMPUTE[-1] + noise(0.004))
    assert falling.verdict == "fell"
    (said,) = falling.oddities
    assert said.startswith("the score falls from 0.48")
    assert "to 0.41" in said
    flat = fitted(0.5 + noise(0.004))
    assert (flat.verdict, flat.oddities) == ("no rise", [])
