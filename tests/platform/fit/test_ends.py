"""An interval includes the estimate that it is shown with, and is that of the draws otherwise."""

import numpy as np
import pytest
from curves import eq1

from ablations.fit.curve import Curve
from ablations.fit.ends import ends_around
from ablations.fit.fitting import fit_curve
from ablations.fit.words import in_words

HUNDRED = np.arange(101.0)


@pytest.mark.parametrize(
    ("estimate", "share", "ends"),
    [
        (50.0, 0.95, (2.5, 97.5)),
        (99.0, 0.95, (2.5, 99.0)),
        (-1.0, 0.95, (-1.0, 97.5)),
        (50.0, 0.8, (10.0, 90.0)),
        (95.0, 0.8, (10.0, 95.0)),
    ],
)
def test_the_ends_are_quantiles_unless_the_estimate_lies_beyond(estimate, share, ends):
    assert ends_around(estimate, HUNDRED, share) == pytest.approx(ends)


def test_each_column_of_draws_has_its_own_ends_and_never_is_an_end_too():
    lo, hi = ends_around(np.array([99.0, -1.0]), np.stack([HUNDRED, HUNDRED], axis=1))
    assert lo == pytest.approx([2.5, -1.0])
    assert hi == pytest.approx([99.0, 97.5])
    reached = np.append(np.full(99, 7.0), [np.inf, np.inf])
    assert ends_around(np.inf, reached, method="closest_observation") == (7.0, np.inf)


def test_an_r_0_at_zero_is_the_lower_end_of_its_interval():
    compute = np.arange(1.0, 21.0)
    law = eq1(compute, A=0.5, B=2.5, C_mid=6.0, R_0=0.0)
    fit = fit_curve(Curve(name="c", compute=compute, score=law))
    assert fit.R_0 == 0.0
    assert np.quantile(fit.draws.R_0, 0.025) > 0  # every draw lies above
    assert (fit.R_0_lo, fit.summary()["R_0"]["lo_80"]) == (0.0, 0.0)


@pytest.mark.parametrize("seed", [0, 3])
def test_an_a_at_the_ceiling_of_the_task_is_the_upper_end_of_all_its_intervals(seed):
    compute = np.arange(21) * 31.25
    law = eq1(compute, A=0.73, B=1.5, C_mid=300.0, R_0=0.2)
    score = np.random.default_rng(seed).binomial(800, law) / 800
    fit = fit_curve(Curve(name="c", compute=compute, score=score, samples=np.full(21, 800.0)), ceiling=0.73)
    assert fit.draws.A.max() < 0.73
    of_A = fit.summary()["A"]
    assert [of_A["hi_80"], of_A["hi_95"]] == pytest.approx([0.73, 0.73], abs=1e-6)
    assert (of_A["lo_95"], of_A["hi_95"]) == (fit.A_eq1_lo, fit.A_eq1_hi)


def test_the_curve_and_its_gain_lie_in_their_intervals_where_the_best_b_is_at_its_bound():
    compute = np.linspace(0, 189, 20)
    score = eq1(compute, A=0.7, B=1.9, C_mid=0.8, R_0=0.2) + 0.003 * np.random.default_rng(0).standard_normal(20)
    fit = fit_curve(Curve(name="early", compute=compute, score=score))
    at = np.array([1.0, 5.0, 20.0, 189.0, 378.0])
    own, (lo, hi) = fit.predict(at), fit.predict_interval(at)
    of_draws = np.quantile(fit.predict_draws(at), (0.025, 0.975), axis=0)
    assert np.any((own < of_draws[0]) | (own > of_draws[1]))
    assert np.all((lo <= own) & (own <= hi))
    assert np.all((lo <= of_draws[0]) & (hi >= of_draws[1]))
    assert "twice the compute would add +0.000 [+0.000, +0.0" in in_words(fit)
    # The best B is the end of its search range, so that nothing bounds it from above, nor at 80 %.
    assert (fit.B, fit.B_hi, fit.summary()["B"]["hi_80"]) == (pytest.approx(6.0), None, None)
