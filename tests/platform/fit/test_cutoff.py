"""Cut-offs of simulated runs whose early phase is on the law or a known way off it."""

from statistics import NormalDist
from types import SimpleNamespace

import numpy as np
import pytest
from curves import curve_of, eq1, readings
from places import DATA

from ablations.errors import AblationsError
from ablations.fit.curve import Curve
from ablations.fit.curve_file import read_curves
from ablations.fit.cutoff import errors_off, num_early
from ablations.fit.fitting import fit_curve, fits_by_cutoff

CURVES = DATA / "curves"

EARLY_GPU_HOURS = 1500.0
LAST_EARLY_READING = 1491.0
"""Of those every 213 GPU-hours."""


def simulated(seed, *, step=0.0, rho=0.0, end=8000.0, every=213.0):
    """Readings that lie `step` off the law up to 1.5k GPU-hours."""
    compute = readings(every, end)
    early = (compute > 0) & (compute < EARLY_GPU_HOURS)
    law = eq1(compute) + early * step
    return curve_of(law, seed, compute, rho=rho)


def cutoff_of(curve) -> float:
    found = fit_curve(curve, fit_from="auto").settings.fit_from
    assert isinstance(found, float)
    return found


@pytest.mark.parametrize("rho", [0.0, 0.7])
def test_a_run_on_the_law_from_the_start_is_fitted_from_the_start(rho):
    assert all(cutoff_of(simulated(seed, rho=rho)) <= 4 * 213 for seed in range(2))


@pytest.mark.parametrize(("step", "rho"), [(0.05, 0.7), (-0.05, 0.0)])
def test_a_transient_is_left_out_with_little_else(step, rho):
    cutoffs = [cutoff_of(simulated(10 + seed, step=step, rho=rho)) for seed in range(5)]
    # No reading of the transient is fitted, and of those after it mostly no more than one block is lost.
    assert min(cutoffs) >= LAST_EARLY_READING
    assert np.median(cutoffs) <= LAST_EARLY_READING + 4 * 213


def test_the_table_shows_what_hangs_on_the_cutoff():
    curve = simulated(30, step=0.05)
    fit = fit_curve(curve, fit_from="auto")
    fits = fits_by_cutoff(fit)
    starts = list(fits)
    assert starts == sorted(starts)
    assert starts[0] == 0
    assert starts[-1] == 14 * 213
    assert [one.points for one in fits.values()] == [37 - round(start / 213) for start in starts]
    chosen = fits[cutoff_of(curve)]
    assert chosen.points == fit.points
    assert (chosen.A, chosen.A_lo, chosen.verdict) == (fit.A, fit.A_lo, fit.verdict)
    # The transient takes the curve at half the budget for one that rises on: A is over .65 with it.
    assert fit_curve(curve, fit_from=0).ceiling.estimate > 0.65
    assert abs(fit.ceiling.estimate - 0.61) < 0.03


def test_too_few_readings_are_refused_with_the_number_needed():
    nine = simulated(34, end=8000, every=850.0)
    assert nine.compute.size == 10
    with pytest.raises(AblationsError, match=r"9 evaluations beyond step 0; an automatic cut-off needs at least 10"):
        cutoff_of(nine)
    ten = simulated(34, end=8000, every=800.0)
    assert num_early(10) == 4
    assert [one.points for one in fits_by_cutoff(fit_curve(ten, fit_from="auto")).values()][-1] == 6


def test_a_block_is_judged_by_all_of_its_readings_together():
    fit = SimpleNamespace(
        predict_draws=lambda compute: np.array([[0.4, 0.4], [0.6, 0.6]]), noise_sd=0.1, autocorrelation=0.0
    )
    compute = np.array([1.0, 2.0])
    together = errors_off(fit, compute, np.array([0.6, 0.6]))  # pyright: ignore[reportArgumentType]
    apart = errors_off(fit, compute, np.array([0.6, 0.4]))  # pyright: ignore[reportArgumentType]
    # Covariance ((.03, .02), (.02, .03)): errors (.1, .1) give d^2 = .4 and (.1, -.1) give 2; P = exp(-d^2 / 2).
    assert together == pytest.approx(-NormalDist().inv_cdf(np.exp(-0.2) / 2), rel=1e-6)
    assert apart == pytest.approx(-NormalDist().inv_cdf(np.exp(-1.0) / 2), rel=1e-6)


def test_the_table_of_a_collapsed_curve_ends_where_its_fit_does():
    # From other starts the collapse of this curve would be seen so early that five readings were left.
    (curve,) = read_curves(CURVES / "collapse_seen_elsewhere.csv")
    fit = fit_curve(curve)
    fits = fits_by_cutoff(fit)
    assert fit.verdict == "collapsed"
    assert fits[0.0].points == fit.points
    assert len(fits) >= 2


def test_a_collapse_that_leaves_too_few_readings_to_choose_from_leaves_all_of_them():
    score = [0.2, 0.3, 0.38, 0.44, 0.48, 0.51, 0.53, 0.54, 0.54, 0.3, 0.2, 0.1, 0.1, 0.1, 0.1]
    curve = Curve(name="early", compute=np.arange(15.0), score=np.array(score))
    fit = fit_curve(curve, fit_from="auto")
    assert fit.verdict == "collapsed"
    assert fit.window[0] == 1
