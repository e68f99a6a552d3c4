"""Curves whose compute does not count from the start of training, and the same curves moved to where it does."""

import numpy as np
import pytest

from ablations.errors import AblationsError
from ablations.fit.curve import Curve
from ablations.fit.fitting import fit_curve, fit_with
from ablations.fit.options import FitSettings
from ablations.fit.reach import refuse_a_late_start

NOISE = 0.005


def rising(compute, *, A=0.66):
    """R_0 = 0.2, B = 1.2, C_mid = 280, noise of a pass rate of 9,000 answers."""
    noise = np.random.default_rng(1).normal(0, NOISE, compute.size)
    with np.errstate(divide="ignore"):
        return 0.2 + (A - 0.2) / (1 + (280 / compute) ** 1.2) + noise


def curve_of(compute, score):
    return Curve(name="c", compute=compute, score=score)


def from_start(num):
    return np.linspace(0, 3000, num)


@pytest.mark.parametrize(("shift", "num"), [(3e3, 31), (1e5, 7), (1e6, 9), (1e12, 31)])
def test_a_curve_that_follows_eq_1_from_its_first_reading_alone_is_refused_with_the_likely_cause(shift, num):
    curve = curve_of(from_start(num) + shift, rising(from_start(num)))
    with pytest.raises(
        AblationsError, match=r"^curve 'c': compute runs from .*; subtract from compute its value at the start"
    ):
        fit_curve(curve)


def test_a_curve_from_a_million_to_1_1_million_is_refused_also_within_a_window():
    curve = curve_of(np.linspace(1e6, 1.1e6, 31), rising(from_start(31)))
    for window in (FitSettings(), FitSettings(fit_from=1.002e6), FitSettings(fit_to=1.05e6)):
        with pytest.raises(AblationsError, match=r"compute runs from 1,000,000 to"):
            fit_with(curve, window)


@pytest.mark.parametrize("scale", [1e12, 1e-6])
def test_the_unit_of_compute_changes_neither_verdict_nor_asymptote(scale):
    plain, scaled = (fit_curve(curve_of(from_start(31) * one, rising(from_start(31)))) for one in (1.0, scale))
    assert plain.verdict == "roughly known"
    assert scaled.verdict == plain.verdict
    assert pytest.approx(plain.eq1_A, abs=1e-6) == scaled.eq1_A


def test_readings_of_eq_1_itself_are_hardly_ever_refused_for_starting_late():
    rng, refused = np.random.default_rng(5), 0
    for _ in range(100):
        first = rng.uniform(300, 9000)
        compute = np.linspace(first, first * rng.uniform(1.05, 3), int(rng.integers(6, 40)))
        law = 0.2 + 0.5 / (1 + (1000 * 10 ** rng.uniform(-1, 1) / compute) ** rng.uniform(0.8, 3))
        try:
            refuse_a_late_start(curve_of(compute, law), compute, law + rng.normal(0, 0.02, compute.size))
        except AblationsError:
            refused += 1
    assert refused == 0
