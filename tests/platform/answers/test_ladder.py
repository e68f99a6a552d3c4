"""Differences over scales: the line, its intervals and the words, against sums by hand and another library."""

import math

import numpy as np
import pytest
from scipy.stats import t

from ablations.answers.answer import Answer
from ablations.answers.ladder import Ladder, Rung, rung_of
from ablations.answers.questions import COMPUTE, LEVEL
from ablations.answers.student import Student


def ladder(*differences, sd=0.01, sds=None, freedom=8.0, question=LEVEL, x=None):
    sds = [sd] * len(differences) if sds is None else sds
    places = range(len(differences)) if x is None else x
    return Ladder(
        question=question,
        rungs=tuple(
            Rung(scale=f"s{place}", x=float(place), difference=Student(estimate=y, variance=one_sd**2, freedom=freedom))
            for place, y, one_sd in zip(places, differences, sds, strict=True)
        ),
    )


def test_the_line_is_that_of_weighted_least_squares():
    x, y, sd = [0.0, 0.6, 1.3, 2.0], [-0.05, -0.03, -0.045, -0.01], [0.01, 0.02, 0.005, 0.012]
    found = ladder(*y, sds=sd, x=x)
    variances = np.array(sd) ** 2
    w = 1 / (variances + variances.mean())
    slope, at_0 = np.polyfit(x, y, 1, w=np.sqrt(w))
    assert found.trend.estimate == pytest.approx(slope)
    # (X' W X)^-1 X' W V W X (X' W X)^-1, as weights are not the inverse of the variances.
    X = np.stack([np.ones(4), x], axis=1)
    pseudo = np.linalg.inv(X.T @ (w[:, None] * X)) @ (X.T * w)
    covariance = pseudo @ np.diag(variances) @ pseudo.T
    assert found.trend.variance == pytest.approx(covariance[1, 1])
    inside = found.forecast(1.0)
    variance = np.array([1, 1]) @ covariance @ np.array([1, 1])
    assert inside.estimate == pytest.approx(at_0 + slope)
    assert (inside.hi - inside.lo) / 2 > 1.96 * math.sqrt(variance)  # of t, which is wider


def test_degrees_of_freedom_and_intervals_are_satterthwaites_by_hand():
    # Two scales with equal variances: the slope has twice the variance and twice the degrees of freedom.
    found = ladder(0.05, 0.01, sd=0.01, freedom=8.0)
    assert found.trend.estimate == pytest.approx(-0.04)
    assert found.trend.variance == pytest.approx(2e-4)
    assert found.trend.freedom == pytest.approx(16.0)
    # One step beyond: -0.03, with variance 1^2 v + 2^2 v, and half of the slope as doubt.
    beyond = found.forecast(2.0)
    doubt = 0.5 * math.hypot(0.04, math.sqrt(2e-4))
    freedom = (1e-4 + 4e-4) ** 2 / (1e-4**2 / 8 + 4e-4**2 / 8)
    half = t.ppf(0.975, freedom) * math.sqrt(5e-4 + doubt**2)
    assert beyond.estimate == pytest.approx(-0.03)
    assert beyond.hi == pytest.approx(-0.03 + half)
    assert beyond.lo == pytest.approx(-0.03 - half)


@pytest.mark.parametrize(
    ("differences", "word"),
    [
        ((0.05, 0.05, 0.05), "carries"),
        ((0.06, 0.03, 0.0), "fades"),
        ((0.05, 0.0, -0.05), "flips"),
        ((-0.05, 0.05), "flips"),
        ((0.0, 0.0, 0.0), "cannot tell"),
        ((0.03, 0.02, 0.015), "cannot tell"),
        ((0.06, 0.02, -0.02), "fades"),
        ((0.05, 0.02, -0.02), "fades"),
    ],
)
def test_words_are_those_of_the_definition(differences, word):
    assert ladder(*differences).word == word


def test_a_forecast_of_compute_is_a_ratio():
    found = ladder(math.log(2), math.log(2), math.log(2), question=COMPUTE)
    forecast = found.forecast(3.0)
    assert forecast.estimate == pytest.approx(2)
    assert forecast.lo * forecast.hi == pytest.approx(4)  # symmetric in ln


def test_a_rung_has_the_interval_of_its_answer():
    answer = Answer.written(LEVEL, estimate=-0.05, lo=-0.07, hi=-0.03)
    rung = rung_of("bench", 1.0, answer, 6.0)
    assert rung.difference.estimate == pytest.approx(-0.05)
    assert t.ppf(0.975, 6) * math.sqrt(rung.difference.variance) == pytest.approx(0.02)
    assert rung_of("bench", 1.0, Answer.written(LEVEL, estimate=-0.05, lo=None, hi=-0.03), 6.0) is None
    ratio = rung_of("bench", 1.0, Answer.written(COMPUTE, estimate=2.0, lo=1.0, hi=4.0), 6.0)
    assert ratio.difference.estimate == pytest.approx(math.log(2))
