"""A fit in words, and A against the cut-off."""

import json

import numpy as np
import pytest
from places import REPOSITORY

from ablations.fit.curve import Curve
from ablations.fit.fitting import fit_curve
from ablations.fit.words import in_words, least_reach

COMPUTE = np.arange(0, 8001, 213.0)


def curve(*, end=8000.0, transient=0.0, flat=False, seed=1):
    """ScaleRL's curve with white noise of sd .003; a transient lifts the readings before 1,500."""
    compute = COMPUTE[end >= COMPUTE]
    rng = np.random.default_rng(seed)
    law = np.append(0.3, 0.3 + 0.31 / (1 + (2542 / compute[1:]) ** 1.92))
    law = np.full(compute.size, 0.4) if flat else law + transient * ((compute > 0) & (compute < 1500))
    return Curve(name="c", compute=compute, score=law + 0.003 * rng.standard_normal(compute.size))


def test_the_words_name_every_number_of_the_fit():
    fit = fit_curve(curve(), fit_from=1500)
    said = in_words(fit, " GPU-hours")
    assert (
        f"Eq. 1 on 30 evaluations from 1,704 to 7,881 GPU-hours: A {fit.eq1_A:.3f} [{fit.eq1_lo:.3f}, {fit.eq1_hi:.3f}]"
        in said
    )
    assert f"half of the gain at C_mid {fit.C_mid:,.0f} GPU-hours, B {fit.B:.2f} [" in said
    ceiling, weight = fit.ceiling, fit.alternatives.weights["sigmoid"]
    averaged = f"A {ceiling.estimate:.3f} [{ceiling.lo:.3f}, {ceiling.hi:.3f}]"
    assert f"Averaged over all families that fit, with a weight of {weight:.2f} for eq. 1: {averaged}." in said
    assert f"at {7881 / fit.C_mid:.1f} C_mid; twice the compute would add +0.0" in said
    assert f"a standard deviation of {fit.noise_sd:.4f}; lag-1 autocorrelation {fit.autocorrelation:.2f}" in said
    assert "The step-0 evaluation lies on the law" in said


@pytest.mark.parametrize(
    ("of", "said"),
    [
        ({"end": 2000.0}, "only the lower bound is meaningful"),
        ({"flat": True}, "do not rise: a flat line explains them"),
        ({"transient": 0.08}, "The early phase is off the law"),
    ],
)
def test_what_limits_a_fit_is_said(of, said):
    assert said in in_words(fit_curve(curve(**of), fit_from=0.0))


def test_the_reach_needed_is_the_one_that_was_measured():
    record = json.loads((REPOSITORY / "benchmarks" / "results" / "least_reach.json").read_text())
    needed = {row["B"]: row["reach_needed"] for row in record["results"]}
    assert len(needed) >= 5
    assert [least_reach(B) for B in needed] == pytest.approx([*needed.values()])
    # Half-way between in B it is the geometric mean; beyond what was measured, the nearest.
    assert least_reach(1.7) == pytest.approx((needed[1.5] * needed[1.9]) ** 0.5)
    assert (least_reach(0.4), least_reach(5.0)) == (pytest.approx(needed[0.8]), pytest.approx(needed[2.4]))
