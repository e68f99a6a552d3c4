"""A ceiling that is known from the task bounds A from above."""

import numpy as np
import pytest
from curves import curve_of, eq1, noisy, readings

from ablations.answers.one_law import ceiling_under
from ablations.errors import AblationsError
from ablations.fit.fitting import fit_curve

PARAMETERS = ("A", "A_lo", "A_hi", "B", "C_mid", "R_0", "R_0_lo", "R_0_hi", "noise_sd", "autocorrelation", "r0_slack")


def early(seed: int):
    """Readings that end before C_mid."""
    return noisy(seed, readings(every=80, end=2400))


def test_a_ceiling_far_above_changes_little_and_one_of_1_nothing():
    fit, same, far = (fit_curve(noisy(1, readings(end=16_000)), ceiling=ceiling) for ceiling in (None, 1.0, 0.9))
    for name in PARAMETERS:
        assert getattr(same, name) == pytest.approx(getattr(fit, name), rel=1e-9), name
        assert getattr(far, name) == pytest.approx(getattr(fit, name), rel=0.1, abs=0.02), name
    assert far.ceiling.lo == pytest.approx(fit.ceiling.lo, abs=0.004)
    assert far.predict(8000.0) == pytest.approx(fit.predict(8000.0), abs=5e-4)
    assert far.residuals == pytest.approx(fit.residuals, abs=2e-3)
    assert np.array_equal(far.readings.score, fit.readings.score)


@pytest.mark.parametrize("seed", range(2))
def test_a_curve_that_has_a_lower_bound_only_gets_an_upper_end(seed):
    open_ended, known = fit_curve(early(seed)), fit_curve(early(seed), ceiling=0.65)
    assert open_ended.verdict == "lower bound only"
    assert known.verdict == "roughly known"
    assert known.ceiling.lo <= 0.61 <= known.ceiling.hi <= 0.65
    assert known.eq1_hi is not None
    assert known.eq1_A <= 0.65
    assert known.eq1_hi <= 0.65
    assert known.draws.A.max() <= 0.65
    assert known.ceiling.draws.max() <= 0.65


def test_a_law_without_a_ceiling_ends_at_the_known_one():
    compute = np.geomspace(100, 2000, 12)
    fit = fit_curve(curve_of(0.1 + 0.13 * np.log(compute / 100), 0, compute, sd=0.004), ceiling=0.65)
    assert fit.alternatives.weights["log-linear"] > 0.1
    assert ceiling_under(fit, "log-linear") == pytest.approx((0.65, 0.0))


def test_the_verdict_is_of_the_width_in_pass_rate():
    # In units of the ceiling every width is twice as much.
    curve = curve_of(eq1(readings(end=10_000), A=0.48), 2, readings(end=10_000), sd=0.004)
    fit = fit_curve(curve, ceiling=0.5)
    assert fit.ceiling.hi is not None
    assert 0.02 < fit.ceiling.hi - fit.ceiling.lo <= 0.04
    assert fit.verdict == "resolved"


def test_a_ceiling_below_the_readings_is_refused():
    with pytest.raises(
        AblationsError, match=r"the last 12 evaluations have a mean of 0\.5\d\d, above the ceiling 0\.5"
    ):
        fit_curve(noisy(3), ceiling=0.5)
    with pytest.raises(AblationsError, match=r"ceiling 1\.2; a ceiling must lie in \(0, 1\]"):
        fit_curve(noisy(3), ceiling=1.2)
