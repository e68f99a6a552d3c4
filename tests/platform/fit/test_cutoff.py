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
from ablations.fit.cutoff import automatic_cutoff, check_block, normal_equivalent, num_early, sensitivity
from ablations.fit.doubt import cutoff_table
from ablations.fit.fitting import fit_curve

CURVES = DATA / "curves"

EARLY_GPU_HOURS = 1500.0
LAST_EARLY_READING = 1491.0
"""Of those every 213 GPU-hours."""


def simulated(seed, *, step=0.0, fade=0.0, rho=0.0, end=8000.0, every=213.0):
    """Readings that lie `step` off the law up to 1.5k GPU-hours, or `fade` at first and less and less up to there."""
    compute = readings(every, end)
    early = (compute > 0) & (compute < EARLY_GPU_HOURS)
    law = eq1(compute) + early * (step + fade * (1 - compute / EARLY_GPU_HOURS))
    return curve_of(law, seed, compute, rho=rho)


def cutoff_of(curve):
    return automatic_cutoff(curve, fit=lambda fit_from: fit_curve(curve, fit_from=fit_from))


@pytest.mark.parametrize("rho", [0.0, 0.7])
def test_a_run_on_the_law_from_the_start_is_fitted_from_the_start(rho):
    for seed in range(3):
        cutoff = cutoff_of(simulated(seed, rho=rho))
        assert cutoff.fit_from <= 4 * 213
        if cutoff.fit_from == 0:
            assert cutoff.off_the_law is None
            assert cutoff.fit.points == 37


@pytest.mark.parametrize("step", [0.05, -0.05])
@pytest.mark.parametrize("rho", [0.0, 0.7])
def test_a_transient_is_left_out_with_little_else(step, rho):
    cutoffs = [cutoff_of(simulated(10 + seed, step=step, rho=rho)) for seed in range(5)]
    # No reading of the transient is fitted, and of those after it mostly no more than one block is lost.
    assert all(cutoff.fit_from >= LAST_EARLY_READING for cutoff in cutoffs)
    assert np.median([cutoff.fit_from for cutoff in cutoffs]) <= LAST_EARLY_READING + 4 * 213
    for cutoff in cutoffs:
        assert cutoff.off_the_law is not None
        assert cutoff.off_the_law.compute[1] == cutoff.fit_from
        assert cutoff.off_the_law.standard_errors > 3


def test_of_a_fading_transient_most_is_left_out():
    cutoffs = [cutoff_of(simulated(20 + seed, fade=0.1, end=16_000)).fit_from for seed in range(2)]
    # From 1,278 GPU-hours on the transient is .015 or less, against noise of .006 a reading.
    assert cutoffs == [1278.0] * 2


def test_the_table_shows_what_hangs_on_the_cutoff():
    curve = simulated(30, step=0.05)
    fit = fit_curve(curve, fit_from="auto")
    rows = cutoff_table(fit)
    starts = [row.fit_from for row in rows]
    assert starts == sorted(set(starts))
    assert starts[0] == 0
    assert starts[-1] == 14 * 213
    assert [row.points for row in rows] == [37 - round(start / 213) for start in starts]
    chosen = rows[[row.points for row in rows].index(fit.points)]
    assert chosen.fit_from == cutoff_of(curve).fit_from
    assert (chosen.A, chosen.A_lo, chosen.verdict) == (fit.A, fit.A_lo, fit.verdict)
    # The transient takes the curve at half the budget for one that rises on: A is over .65 with it.
    assert fit_curve(curve, fit_from=0).ceiling.estimate > 0.65
    assert abs(fit.ceiling.estimate - 0.61) < 0.03


def test_sensitivity_is_the_fits_at_the_cutoffs_asked_for():
    curve = simulated(31)
    rows = sensitivity([2000.0, 0.0], fit=lambda fit_from: fit_curve(curve, fit_from=fit_from))
    fit = fit_curve(curve, fit_from=2000)
    assert [row.fit_from for row in rows] == [0.0, 2000.0]
    assert (rows[1].points, rows[1].A, rows[1].A_lo, rows[1].A_hi) == (
        fit.points,
        fit.ceiling.estimate,
        fit.ceiling.lo,
        fit.ceiling.hi,
    )


def test_a_change_of_unit_changes_the_unit_only():
    curve = simulated(32, step=0.05)
    in_seconds = Curve(name="s", compute=3600 * curve.compute, score=curve.score, samples=curve.samples)
    hours, seconds = cutoff_of(curve), cutoff_of(in_seconds)
    assert seconds.fit_from == pytest.approx(3600 * hours.fit_from)
    assert hours.off_the_law is not None
    assert seconds.off_the_law is not None
    assert seconds.off_the_law.standard_errors == pytest.approx(hours.off_the_law.standard_errors, rel=1e-3)
    assert pytest.approx(hours.fit.eq1_A, abs=1e-5) == seconds.fit.eq1_A


def test_nothing_beyond_a_collapse_is_counted():
    curve = simulated(33, end=16_000)
    score = np.where(curve.compute > 9000, curve.score - 0.3 * (curve.compute - 9000) / 7000, curve.score)
    cutoff = cutoff_of(Curve(name="collapsing", compute=curve.compute, score=score, samples=curve.samples))
    assert cutoff.fit.verdict == "collapsed"
    assert cutoff.fit.window[1] < 11_000
    assert cutoff.fit_from < 0.4 * 11_000


def test_too_few_readings_are_refused_with_the_number_needed():
    nine = simulated(34, end=8000, every=850.0)
    assert nine.compute.size == 10
    with pytest.raises(AblationsError, match=r"9 evaluations beyond step 0; an automatic cut-off needs at least 10"):
        cutoff_of(nine)
    ten = simulated(34, end=8000, every=800.0)
    assert num_early(10) == 4
    assert cutoff_table(cutoff_of(ten).fit)[-1].points == 6


def test_a_block_is_judged_by_all_of_its_readings_together():
    fit = SimpleNamespace(
        predict_draws=lambda compute: np.array([[0.4, 0.4], [0.6, 0.6]]), noise_sd=0.1, autocorrelation=0.0
    )
    compute = np.array([1.0, 2.0])
    together = check_block(fit, compute, np.array([0.6, 0.6]))  # pyright: ignore[reportArgumentType]
    apart = check_block(fit, compute, np.array([0.6, 0.4]))  # pyright: ignore[reportArgumentType]
    # Covariance ((.03, .02), (.02, .03)): errors (.1, .1) give d^2 = .4 and (.1, -.1) give 2; P = exp(-d^2 / 2).
    assert together.standard_errors == pytest.approx(-NormalDist().inv_cdf(np.exp(-0.2) / 2), rel=1e-6)
    assert apart.standard_errors == pytest.approx(-NormalDist().inv_cdf(np.exp(-1.0) / 2), rel=1e-6)
    assert (apart.score, apart.predicted) == pytest.approx((0.5, 0.5))


def test_standard_errors_are_those_of_a_normal_with_the_same_tail():
    assert normal_equivalent(9.0, 1) == pytest.approx(3.0, abs=1e-9)
    # Chi-squared tables: 13.277 leaves 1 % with four degrees of freedom, and 2.5758 leaves it of a normal.
    assert normal_equivalent(13.277, 4) == pytest.approx(2.5758, abs=1e-3)
    assert np.isfinite(normal_equivalent(1e6, 4))


def test_the_table_of_a_collapsed_curve_ends_where_its_fit_does():
    # From other starts the collapse of this curve would be seen so early that five readings were left.
    (curve,) = read_curves(CURVES / "collapse_seen_elsewhere.csv")
    fit = fit_curve(curve)
    rows = cutoff_table(fit)
    assert fit.verdict == "collapsed"
    assert rows[0].points == fit.points
    assert len(rows) >= 2


def test_a_collapse_that_leaves_too_few_readings_to_choose_from_leaves_all_of_them():
    score = [0.2, 0.3, 0.38, 0.44, 0.48, 0.51, 0.53, 0.54, 0.54, 0.3, 0.2, 0.1, 0.1, 0.1, 0.1]
    curve = Curve(name="early", compute=np.arange(15.0), score=np.array(score))
    fit = fit_curve(curve, fit_from="auto")
    assert fit.verdict == "collapsed"
    assert fit.window[0] == 1
