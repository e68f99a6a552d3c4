"""A over all families: its interval from the draws of each, and what it holds where eq. 1 is not the law."""

from types import SimpleNamespace

import numpy as np
import pytest
from curves import curve_of, eq1, readings

from ablations.fit.alternatives import Alternatives
from ablations.fit.ceiling import averaged_ceiling
from ablations.fit.engine.family import FAMILIES
from ablations.fit.fitting import fit_curve

EQ1_DRAWS = np.linspace(0.60, 0.62, 1000)


def averaged(weights: dict[str, float], ceilings: dict[str, np.ndarray], *, is_open=(), eq1_ends=(0.5, 0.7)):
    """The ceiling of families with these draws; those in `is_open` allow a ceiling of 1."""
    others, start = [], round(1000 * weights["sigmoid"])
    for family in FAMILIES[1:]:
        if family.name in ceilings:
            rows = slice(start, start + ceilings[family.name].size)
            others.append(SimpleNamespace(family=family, rows=rows, ceilings=ceilings[family.name]))
            start = rows.stop
    assert start == 1000
    opened = {*is_open, *(["sigmoid"] if eq1_ends[1] is None else [])}
    deviance_of_1 = {name: 0.0 if name in opened else 20.0 for name in weights}
    found = Alternatives(weights=weights, others=tuple(others), deviance_of_1=deviance_of_1)
    return averaged_ceiling(0.611, eq1_ends, EQ1_DRAWS, found)


def test_the_interval_is_that_of_all_families_by_their_weights():
    found = averaged({"sigmoid": 0.8, "Weibull": 0.2}, {"Weibull": np.linspace(0.50, 0.52, 200)})
    # A fifth of the draws lies evenly between .50 and .52, an eighth of it, .025 in all, below .5025; the rest are
    # eq. 1's lowest 800 of 1,000, evenly up to .616, of which .025 / .8 lie above .6155.
    assert found.lo == pytest.approx(0.5025, abs=1e-4)
    assert found.hi == pytest.approx(0.6155, abs=1e-4)
    assert np.array_equal(found.draws[:800], EQ1_DRAWS[:800])


@pytest.mark.parametrize(("weight", "estimate"), [(0.5, 0.611), (0.4, 0.5097)])
def test_eq_1_gives_the_estimate_from_a_weight_of_one_half_on(weight, estimate):
    num = round(1000 * (1 - weight))
    found = averaged({"sigmoid": weight, "Weibull": 1 - weight}, {"Weibull": np.linspace(0.50, 0.5116, num)})
    # The median of 400 draws of eq. 1 and 600 below them is the 500th of the 600.
    assert pytest.approx(estimate, abs=1e-4) == found.estimate


@pytest.mark.parametrize(("weight", "is_bounded"), [(0.02, True), (0.03, False)])
def test_families_that_allow_a_ceiling_of_1_leave_a_bounded_while_they_weigh_little(weight, is_bounded):
    ceilings = {"power law": np.linspace(0.6, 1, round(1000 * weight))}
    found = averaged({"sigmoid": 1 - weight, "power law": weight}, ceilings, is_open=["power law"])
    assert (found.hi is not None) == is_bounded


def test_a_lower_bound_that_stands_alone_is_no_higher_than_that_of_eq_1():
    found = averaged({"sigmoid": 0.9, "Weibull": 0.1}, {"Weibull": np.full(100, 0.61)}, eq1_ends=(0.5, None))
    assert (found.lo, found.hi) == (0.5, None)


@pytest.mark.parametrize(
    ("law", "A"),
    [
        (lambda C: 0.3 - 0.4 * np.expm1(-((C / 3500) ** 1.5)), 0.7),  # Weibull
        (lambda C: 0.3 - 0.4 * np.expm1(-C / 3000), 0.7),
    ],
    ids=["Weibull", "exponential"],
)
def test_where_the_law_is_another_the_averaged_interval_holds_a_and_that_of_eq_1_does_not(law, A):
    fits = [fit_curve(curve_of(law(readings(end=16_000)), seed, readings(end=16_000), sd=0.004)) for seed in range(3)]
    alone = [fit.eq1_lo <= A and (fit.eq1_hi is None or fit.eq1_hi >= A) for fit in fits]
    together = [fit.ceiling.lo <= A and (fit.ceiling.hi is None or fit.ceiling.hi >= A) for fit in fits]
    assert (sum(alone), sum(together)) == (0, 3)


def test_where_eq_1_is_the_law_the_averaged_interval_is_hardly_wider():
    compute = readings(end=16_000)
    fits = [fit_curve(curve_of(eq1(compute), seed, compute, sd=0.004)) for seed in range(10)]
    ratios = [
        (fit.ceiling.hi - fit.ceiling.lo) / (fit.eq1_hi - fit.eq1_lo) for fit in fits if fit.ceiling.hi and fit.eq1_hi
    ]
    assert len(ratios) == 10
    assert 0.95 < np.median(ratios) < 1.5
    # A 95 % interval holds 8 of 10 or more in all but one case in 100.
    assert sum(fit.ceiling.lo <= 0.61 <= fit.ceiling.hi for fit in fits if fit.ceiling.hi) >= 8
