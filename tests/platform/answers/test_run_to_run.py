"""The spread between runs of one recipe, against Student's t and against integrals by SciPy."""

from itertools import pairwise

import numpy as np
import pytest
from fixtures_spread import quantile_of_offset
from scipy.stats import norm, t

from ablations.answers.run_to_run import UNKNOWN, Repeats, run_to_run


@pytest.mark.parametrize(
    "groups", [[[0.60, 0.61]], [[0.60, 0.65, 0.58], [0.5, 0.52, 0.51]], [[0.6, 0.601, 0.602, 0.6]] * 9]
)
def test_exact_numbers_give_the_posterior_under_a_half_cauchy_prior(groups):
    repeats = [Repeats.of(group, [0.0] * len(group)) for group in groups]
    spread = run_to_run(repeats)
    shares = [0.025, 0.1, 0.9, 0.975]
    found = np.quantile(spread.differences([UNKNOWN] * 2, [UNKNOWN] * 3, 200_000), shares)
    expected = [quantile_of_offset(share, repeats, np.sqrt(1 / 2 + 1 / 3)) for share in shares]
    assert found == pytest.approx(expected, rel=0.03)
    assert spread.freedom == sum(len(group) - 1 for group in groups)


def test_the_prior_is_flat_where_runs_lie_close_so_offsets_are_student_s_t():
    """A flat prior of tau leaves a t of one degree of freedom less (Gelman 2006, section 3)."""
    groups = [[0.6, 0.601, 0.602, 0.6]] * 9
    squares = sum(float(np.var(group)) * len(group) for group in groups)
    spread = run_to_run([Repeats.of(group, [0.0] * 4) for group in groups])
    expected = t(26, scale=np.sqrt(squares / 26)).ppf([0.025, 0.1, 0.9, 0.975])
    assert np.quantile(spread.offsets(200_000, 0), [0.025, 0.1, 0.9, 0.975]) == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("tau", [0.0075, 0.015, 0.03])
def test_intervals_hold_whatever_the_spread_is_from_nine_degrees_of_freedom(tau):
    """Two seeds of nine variants: 6.5 % of the intervals of a difference leave out the truth, no more."""
    rng = np.random.default_rng(11)
    called = []
    for squares in tau**2 * rng.chisquare(9, 400):
        spread = run_to_run([Repeats(squares=squares, freedom=9, own_variance=0.0)])
        margin = np.quantile(spread.differences([UNKNOWN] * 2, [UNKNOWN] * 2, 4000), 0.975)
        called.append(2 * norm.sf(margin / tau))  # the difference has a standard deviation of tau
    assert np.mean(called) < 0.065


@pytest.mark.parametrize("own", [2e-5, 4e-4])
def test_what_the_readings_explain_is_not_counted_as_a_difference_between_runs(own):
    repeats = [Repeats.of([0.60, 0.63, 0.61], [own] * 3), Repeats.of([0.5, 0.52], [own / 2] * 2)]
    found = np.quantile(run_to_run(repeats).offsets(200_000, 4), [0.025, 0.9, 0.975])
    expected = [quantile_of_offset(share, repeats) for share in (0.025, 0.9, 0.975)]
    assert found == pytest.approx(expected, rel=0.03)


def test_without_a_second_seed_the_sd_is_assumed():
    spread = run_to_run([])
    assert str(spread) == "0.0075, assumed"
    assert np.quantile(spread.differences([UNKNOWN] * 1, [UNKNOWN] * 1, 100_000), 0.975) == pytest.approx(
        1.96 * 0.0075 * np.sqrt(2), rel=0.01
    )


@pytest.mark.parametrize("tau", [0.003, 0.0075, 0.015, 0.03])
def test_the_median_follows_the_seeds_of_nine_variants(tau):
    rng = np.random.default_rng(7)
    medians = [
        run_to_run([Repeats.of(0.6 + tau * rng.standard_normal(3), [0.0] * 3) for _ in range(9)]).sd for _ in range(200)
    ]
    # sqrt(median of chi^2(18) / median of chi^2(17)) = 1.03 where the prior is flat, .97 where it falls as 1 / tau^2.
    assert np.median(medians) == pytest.approx(tau, rel=0.06)


def test_the_interval_of_a_difference_does_not_widen_with_more_seeds():
    rng = np.random.default_rng(8)
    widths = []
    for num_seeds in (1, 2, 3, 5):
        margins = []
        for _ in range(200):
            groups = [0.6 + 0.015 * rng.standard_normal(num_seeds) for _ in range(9)] if num_seeds > 1 else []
            spread = run_to_run([Repeats.of(group, [0.0] * num_seeds) for group in groups])
            margins.append(np.quantile(spread.differences([UNKNOWN] * num_seeds, [UNKNOWN] * num_seeds, 2000), 0.975))
        widths.append(float(np.median(margins)))
    # One seed assumes half of the true sd, so only those from two seeds on are compared.
    assert all(more < fewer for fewer, more in pairwise(widths[1:]))
