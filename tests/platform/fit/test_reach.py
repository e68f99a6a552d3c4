"""Curves whose compute does not count from the start of training, and the same curves moved to where it does."""

import numpy as np
import pytest

from ablations.errors import AblationsError
from ablations.fit.curve import Curve
from ablations.fit.fitting import fit_curve
from ablations.fit.reach import possible_share


def rising(compute):
    """R_0 = 0.2, A = 0.6, B = 1.5, C_mid = 800, with noise of a pass rate of 500 answers."""
    noise = np.random.default_rng(0).normal(0, 0.02, compute.size)
    return 0.2 + 0.4 / (1 + (800 / compute) ** 1.5) + noise


def curve_of(compute, score):
    return Curve(name="c", compute=compute, score=score)


COMPUTE = np.linspace(100.0, 3000.0, 30)


@pytest.mark.parametrize("shift", [100_000.0, 1_000_000.0])
def test_a_rise_that_eq_1_cannot_follow_is_refused_with_the_likely_cause(shift):
    curve = curve_of(COMPUTE + shift, rising(COMPUTE))
    with pytest.raises(AblationsError, match=r"curve 'c': .* let compute count from the start of training"):
        fit_curve(curve)


def test_a_curve_from_a_million_to_1_1_million_is_refused():
    with pytest.raises(
        AblationsError, match=r"from 1,000,000 to 1,100,000, and eq\. 1 can rise by at most 0\.14 there"
    ):
        fit_curve(curve_of(np.linspace(1e6, 1.1e6, 30), rising(COMPUTE)))


@pytest.mark.parametrize("scale", [1e6, 1e-6])
def test_the_unit_of_compute_changes_neither_verdict_nor_asymptote(scale):
    plain, scaled = (fit_curve(curve_of(COMPUTE * one, rising(COMPUTE))) for one in (1.0, scale))
    assert plain.verdict != "no rise"
    assert scaled.verdict == plain.verdict
    assert pytest.approx(plain.A, abs=1e-6) == scaled.A


def test_a_flat_curve_far_from_0_is_flat_and_not_refused():
    score = 0.4 + np.random.default_rng(1).normal(0, 0.02, 30)
    assert fit_curve(curve_of(np.linspace(1e6, 1.1e6, 30), score)).verdict == "no rise"


def test_the_largest_share_is_that_of_the_steepest_curve_centred_in_the_window():
    first, last = 40.0, 90.0
    middle = np.sqrt(first * last)
    gain = [1 / (1 + (middle / c) ** 6.0) for c in (first, last)]
    assert possible_share(first, last) == pytest.approx(gain[1] - gain[0], abs=1e-12)
