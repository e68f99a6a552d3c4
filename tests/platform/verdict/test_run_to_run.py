"""The spread between runs of one recipe, against Student's t and against integrals by SciPy."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import invgamma, norm, t

from ablations.verdict.run_to_run import PRIOR_FREEDOM, PRIOR_SD, Repeats, run_to_run


def quantile_of_offset(share: float, repeats: list[Repeats], scale: float = 1.0) -> float:
    """Of N(0, scale^2 tau^2), tau^2 given the seeds, by quadrature over ln tau."""
    prior = invgamma(PRIOR_FREEDOM / 2, scale=PRIOR_FREEDOM * PRIOR_SD**2 / 2)

    def density(log_tau: float) -> float:
        variance = np.exp(2 * log_tau)
        found = prior.pdf(variance) * variance
        for one in repeats:
            total = variance + one.own_variance
            found *= (total / 1e-4) ** (-one.freedom / 2) * np.exp(-one.squares / (2 * total))
        return found

    ends = (np.log(1e-4), np.log(1.0))
    whole = quad(density, *ends, limit=400)[0]

    def below(x: float) -> float:
        return quad(lambda u: density(u) * norm.cdf(x / (scale * np.exp(u))), *ends, limit=400)[0] / whole - share

    return float(brentq(below, -1, 1))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "groups", [[[0.60, 0.61]], [[0.60, 0.65, 0.58], [0.5, 0.52, 0.51]], [[0.6, 0.601, 0.602, 0.6]] * 9]
)
def test_exact_numbers_give_student_s_t_of_the_pooled_variance(groups):
    spread = run_to_run([Repeats.of(group, [0.0] * len(group)) for group in groups])
    squares = sum(float(np.var(group)) * len(group) for group in groups)
    freedom = PRIOR_FREEDOM + sum(len(group) - 1 for group in groups)
    pooled = np.sqrt((PRIOR_FREEDOM * PRIOR_SD**2 + squares) / freedom)
    found = np.quantile(spread.differences(2, 3, 200_000), [0.025, 0.1, 0.9, 0.975])
    expected = t(freedom, scale=pooled * np.sqrt(1 / 2 + 1 / 3)).ppf([0.025, 0.1, 0.9, 0.975])
    assert found == pytest.approx(expected, rel=0.03)
    assert spread.freedom == freedom - PRIOR_FREEDOM


@pytest.mark.parametrize("own", [2e-5, 4e-4])
def test_what_the_readings_explain_is_not_counted_as_a_difference_between_runs(own):
    repeats = [Repeats.of([0.60, 0.63, 0.61], [own] * 3), Repeats.of([0.5, 0.52], [own / 2] * 2)]
    found = np.quantile(run_to_run(repeats).offsets(200_000, 4), [0.025, 0.9, 0.975])
    expected = [quantile_of_offset(share, repeats) for share in (0.025, 0.9, 0.975)]
    assert found == pytest.approx(expected, rel=0.03)


def test_without_a_second_seed_the_sd_is_assumed():
    spread = run_to_run([])
    assert str(spread) == "0.0075, assumed"
    assert np.quantile(spread.differences(1, 1, 100_000), 0.975) == pytest.approx(1.96 * 0.0075 * np.sqrt(2), rel=0.01)


@pytest.mark.parametrize("tau", [0.003, 0.0075, 0.015, 0.03])
def test_the_median_follows_the_seeds_of_nine_variants(tau):
    rng = np.random.default_rng(7)
    medians = [
        run_to_run([Repeats.of(0.6 + tau * rng.standard_normal(3), [0.0] * 3) for _ in range(9)]).sd for _ in range(200)
    ]
    # Pooled with the prior: sqrt((3 x .0075^2 + 18 tau^2) / 21).
    expected = np.sqrt((PRIOR_FREEDOM * PRIOR_SD**2 + 18 * tau**2) / (PRIOR_FREEDOM + 18))
    assert np.median(medians) == pytest.approx(expected, rel=0.05)


def test_the_interval_of_a_difference_does_not_widen_with_more_seeds():
    rng = np.random.default_rng(8)
    widths = []
    for num_seeds in (1, 2, 3, 5):
        margins = []
        for _ in range(200):
            groups = [0.6 + 0.015 * rng.standard_normal(num_seeds) for _ in range(9)] if num_seeds > 1 else []
            spread = run_to_run([Repeats.of(group, [0.0] * num_seeds) for group in groups])
            margins.append(np.quantile(spread.differences(num_seeds, num_seeds, 2000), 0.975))
        widths.append(float(np.median(margins)))
    # One seed assumes half of the true sd, so only those from two seeds on are compared.
    assert all(more < fewer for fewer, more in pairwise(widths[1:]))
