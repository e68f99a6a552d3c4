"""Comparisons with numbers worked out by hand or by SciPy."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import combine_pvalues, norm, t, ttest_ind

from ablations.answers.compare import compare
from ablations.answers.differences import is_bounded
from ablations.errors import AblationsError
from ablations.fit.alternatives import Alternative, Alternatives
from ablations.fit.ceiling import Ceiling
from ablations.fit.curve import Curve
from ablations.fit.engine.family import FAMILIES, SIGMOID, Family
from ablations.fit.engine.posterior import Draws
from ablations.fit.fitting import fit_curve
from ablations.fit.law_fit import CurveSet
from ablations.fit.result import Fit

COMPUTE = np.arange(0, 8001, 200.0)


def exact_fit(A=0.61, B=1.92, C_mid=2542.0, R_0=0.3, compute=COMPUTE) -> Fit:
    score = np.append(R_0, R_0 + (A - R_0) / (1 + (C_mid / compute[1:]) ** B))
    return fit_curve(Curve(name="exact", compute=compute, score=score))


EXACT = exact_fit()
APART = (-0.004, 0.001, 0.003)
"""Three seeds about their mean; a variance of .000013."""
POWER_LAW, WEIBULL = (next(one for one in FAMILIES if one.name == name) for name in ("power law", "Weibull"))


def with_ceiling(A: float, A_lo: float, A_hi: float | None, *, reached: float = 0.5792) -> Fit:
    """A fit whose posterior of A is normal with this 95 % interval; unbounded, flat up to 1 for curves that have all
    reached one level. With 20,000 draws the quantiles are known to about 3 parts in 1,000.
    """
    rng = np.random.default_rng(int(1e6 * (A + A_lo)))
    if A_hi is not None:
        draws = A + (A_hi - A_lo) / 3.92 * rng.permutation(norm.ppf((np.arange(20_000) + 0.5) / 20_000))
        C_mid = np.full(draws.size, 2542.0)
    else:
        draws = rng.permutation(np.linspace(A_lo, 1, 20_000))
        C_mid = 8000 * ((draws - 0.3) / (reached - 0.3) - 1) ** (1 / 1.92)
    deviances = dict.fromkeys(EXACT.alternatives.deviance_of_1, math.inf if A_hi is not None else 0.0)
    curves = CurveSet(A=draws, B=np.full(draws.size, 1.92), C_mid=C_mid, R_0=np.full(draws.size, 0.3))
    return replace(
        EXACT,
        eq1_A=A,
        eq1_lo=A_lo,
        eq1_hi=A_hi,
        ceiling=Ceiling(estimate=A, lo=A_lo, hi=A_hi, draws=draws),
        alternatives=replace(EXACT.alternatives, deviance_of_1=deviances),
        verdict="roughly known" if A_hi else "lower bound only",
        draws=curves,
    )


def seeds(A: float, *, apart=APART, hi: bool = True, **given) -> list[Fit]:
    """Seeds about a ceiling, each known to 1e-5."""
    return [with_ceiling(A + one, A + one - 2e-5, A + one + 2e-5 if hi else None, **given) for one in apart]


def open_alone(deviance: float) -> list[Fit]:
    """Seeds without an upper end of their own, each with this deviance of a ceiling of 1."""
    deviances = dict.fromkeys(EXACT.alternatives.deviance_of_1, deviance)
    return [
        replace(one, alternatives=replace(one.alternatives, deviance_of_1=deviances)) for one in seeds(0.65, hi=False)
    ]


def values(fits: list[Fit]) -> list[float]:
    return [fit.eq1_A for fit in fits]


def with_two_laws(A: float, other: float, weight: float, family: Family = WEIBULL) -> Fit:
    """A fit that eq. 1 gives A and another family, of this weight, the other ceiling, both to 1e-5."""
    fit = with_ceiling(A, A - 2e-5, A + 2e-5)
    draws = fit.ceiling.draws.copy()
    rows = slice(round((1 - weight) * draws.size), draws.size)
    draws[rows] += other - A
    lo, hi = (float(end) for end in np.quantile(draws, (0.025, 0.975)))
    none = np.zeros(rows.stop - rows.start)
    of_family = Draws(draws[rows], *[none] * (len(Draws._fields) - 1))
    found = Alternatives(
        weights={**dict.fromkeys((each.name for each in FAMILIES), 0.0), SIGMOID.name: 1 - weight, family.name: weight},
        others=(Alternative(family=family.name, rows=rows, draws=of_family),),
        deviance_of_1={SIGMOID.name: math.inf, family.name: math.inf},
    )
    return replace(fit, ceiling=Ceiling(estimate=A, lo=lo, hi=hi, draws=draws), alternatives=found)


def compared(variant: list[Fit], reference: list[Fit]):
    comparison = compare({"ref": reference, "new": variant}, {"ref": 100.0, "new": 90.0}, "ref")
    return comparison.variants[1]


def two_laws(A: float, other: float, weight: float, family: Family = WEIBULL) -> list[Fit]:
    """Three seeds of a variant that eq. 1 gives one ceiling and another family another."""
    return [with_two_laws(A + one, other + one, weight, family) for one in APART]


def test_one_seed_whose_spread_nobody_has_measured_is_provisional():
    row = compared([with_ceiling(0.65, 0.63, 0.67)], [with_ceiling(0.60, 0.59, 0.61)])
    for answer in row.answers.values():
        assert (answer.lo, answer.hi, answer.joint_lo, answer.joint_hi) == (None,) * 4
        assert (answer.verdict, answer.joint_verdict, answer.differs) == ("one seed: provisional",) * 2 + (False,)
    assert row.answers["ceiling"].estimate == pytest.approx(0.05)
    assert (row.asymptote.lo, row.asymptote.hi) == (0.63, 0.67)
    assert (row.num_seeds, row.cost) == (1, 90.0)


def test_runs_of_unknown_spread_have_the_mean_of_their_intervals_around_their_mean():
    # Both have collapsed, so that their difference is no run-to-run spread.
    both = [replace(with_ceiling(A, A - 0.01, A + 0.02), verdict="collapsed") for A in (0.60, 0.66)]
    row = compared(both, [with_ceiling(0.60, 0.59, 0.61)])
    for shown in (row.asymptote, row.asymptote_under_eq1):
        assert (shown.lo, shown.A, shown.hi) == pytest.approx((0.62, 0.63, 0.65))


def test_three_seeds_of_two_variants_have_the_interval_of_a_t_test():
    variant, reference = seeds(0.65), seeds(0.60, apart=(0.004, -0.001, 0.002))
    row = compared(variant, reference)
    expected = ttest_ind(values(variant), values(reference)).confidence_interval()
    answer = row.answers["ceiling"]
    assert (answer.lo, answer.hi) == pytest.approx((expected.low, expected.high), abs=1e-5)
    assert answer.verdict == "ceiling up"


def test_the_seeds_of_all_variants_say_how_far_runs_lie_apart():
    fits = {name: seeds(A) for name, A in (("ref", 0.6), ("new", 0.649), ("third", 0.51))}
    comparison = compare(fits, dict.fromkeys(fits, 1.0), "ref")
    row = comparison.variants[1]
    # All variances are alike, so three degrees of freedom of all change none: 2 * (3 + 2) by Satterthwaite, 6 at most.
    margin = t(6).ppf(0.975) * np.sqrt(2 / 3 * np.var(APART, ddof=1))
    assert row.answers["ceiling"].lo == pytest.approx(0.049 - margin, abs=1e-4)
    assert row.answers["ceiling"].hi == pytest.approx(0.049 + margin, abs=1e-4)
    assert comparison.run_to_run_json()["ceiling"]["degrees_of_freedom"] == 6
    own = t(5).ppf(0.975) * np.sqrt(np.var(APART, ddof=1) / 3)
    assert row.asymptote.hi == pytest.approx(0.649 + own, abs=1e-4)


def test_no_interval_of_a_ceiling_ends_above_the_known_one():
    variant = [replace(fit, settings=replace(fit.settings, ceiling=0.653)) for fit in seeds(0.649)]
    fits = {"ref": seeds(0.6), "new": variant, "third": seeds(0.51)}
    row = compare(fits, dict.fromkeys(fits, 1.0), "ref").variants[1]
    # By Student's t alone they would end at 0.6543, see above.
    assert 0.649 + t(5).ppf(0.975) * np.sqrt(np.var(APART, ddof=1) / 3) > 0.654
    assert (row.asymptote.hi, row.asymptote_under_eq1.hi) == (0.653, 0.653)


def test_no_difference_of_ceilings_goes_beyond_the_known_one():
    def known(A: float) -> list[Fit]:
        return [replace(fit, settings=replace(fit.settings, ceiling=0.653)) for fit in seeds(A)]

    fits = {"ref": known(0.6), "new": known(0.6525), "third": known(0.51)}
    answer = compare(fits, dict.fromkeys(fits, 1.0), "ref").variants[1].answers["ceiling"]
    spread = np.sqrt(np.var(APART, ddof=1) / 3)
    plain = 0.0525 + t(6).ppf(0.975) * np.sqrt(2) * spread
    most = 0.653 - (0.6 - t(5).ppf(0.9875) * spread)  # A of the reference at its lower end, half the tail
    assert most < plain
    assert answer.hi == pytest.approx(most, abs=1e-4)
    assert answer.lo == pytest.approx(0.105 - plain, abs=1e-4)


def test_a_difference_is_taken_under_one_law():
    # Each ceiling is .60 or .66, but under the same law both are alike: only the runs differ.
    row = compared(two_laws(0.60, 0.66, 0.3), two_laws(0.60, 0.66, 0.3))
    margin = t(4).ppf(0.975) * np.sqrt(2 / 3 * np.var(APART, ddof=1))
    assert row.asymptote.hi > 0.66
    assert row.answers["ceiling"].lo == pytest.approx(-margin, abs=1e-4)
    assert row.answers["ceiling"].hi == pytest.approx(margin, abs=1e-4)


def test_a_family_weighs_what_it_does_on_average():
    # Under the other family, of weight (.1 + .7) / 2 = .4, the variant ends .06 higher, under eq. 1 at .60 too.
    row = compared(two_laws(0.60, 0.66, 0.1), two_laws(0.60, 0.60, 0.7))
    sd = np.sqrt(2 / 3 * np.var(APART, ddof=1))
    # P(x < lo) = .6 T(lo / sd) + .4 T((lo - .06) / sd), and so for the upper end.
    for end, tail in ((row.answers["ceiling"].lo, 0.025), (row.answers["ceiling"].hi, 0.975)):
        found = brentq(lambda x, at=tail: 0.6 * t(4).cdf(x / sd) + 0.4 * t(4).cdf((x - 0.06) / sd) - at, -0.2, 0.3)
        assert end == pytest.approx(found, abs=1e-4)


def test_seeds_that_together_rule_out_a_ceiling_of_1_bound_it():
    """Three deviances of 3 are 9, beyond chi-squared's 7.81 of three degrees of freedom; one of 3 is below 3.84."""
    assert not is_bounded(open_alone(3.0)[:1])
    assert is_bounded(open_alone(3.0))
    assert not is_bounded(open_alone(2.5))


def test_the_doubt_of_several_seeds_is_one_p_value():
    p_values = [0.04, 0.3, 0.11]
    fits = [replace(EXACT, eq1_p=p) for p in p_values]
    row = compared(fits, [EXACT])
    assert row.eq1_p == pytest.approx(combine_pvalues(p_values, method="fisher").pvalue, rel=1e-9)
    assert row.doubts_eq1 == (row.eq1_p < 0.05)


def test_a_lower_bound_above_the_reference_is_a_ceiling_up():
    row = compared(seeds(0.9, hi=False, reached=0.70), seeds(0.60))
    assert (row.asymptote.hi, row.fit_verdict) == (None, "lower bound only")
    # All three have reached .70; the reference's seeds scatter as in `APART`, and with it the spread of all.
    assert row.answers["ceiling"].estimate is None
    assert 0.085 < row.answers["ceiling"].lo < 0.10
    assert row.answers["ceiling"].hi is None
    assert row.answers["ceiling"].verdict == "ceiling up"
    assert row.paper_rule == "cannot tell"


def test_an_unbounded_ceiling_is_no_lower_than_the_level_that_all_seeds_have_reached():
    """One seed's fit allows .20; the three have reached .70, and runs lie .0036 apart: t(4) at 1.25 % is 3.5."""
    first, *others = seeds(0.9, hi=False, reached=0.70)
    fallen = replace(first, ceiling=replace(first.ceiling, lo=0.20))
    row = compared([fallen, *others], seeds(0.60))
    assert row.asymptote.hi is None
    assert row.asymptote.lo == pytest.approx(0.70 - t(4).ppf(0.9875) * np.std(APART, ddof=1) / np.sqrt(3), abs=2e-3)
    assert row.asymptote.lo < 0.70


def test_a_curve_with_twice_the_c_mid_needs_twice_the_compute():
    mids, others = [2400.0, 2500, 2300], [1200.0, 1150, 1250]
    row = compared([exact_fit(C_mid=C) for C in mids], [exact_fit(C_mid=C) for C in others])
    # Curves of one A and B reach any level at compute in proportion to C_mid.
    expected = ttest_ind(np.log(mids), np.log(others)).confidence_interval()
    assert np.log(row.answers["compute"].estimate or np.nan) == pytest.approx(
        np.log(mids).mean() - np.log(others).mean(), abs=1e-4
    )
    assert np.log(row.answers["compute"].lo or np.nan) == pytest.approx(expected.low, abs=1e-3)
    assert np.log(row.answers["compute"].hi or np.nan) == pytest.approx(expected.high, abs=1e-3)
    assert row.answers["compute"].verdict == "more compute"


def test_the_target_is_four_fifths_of_the_way_to_the_lower_final_level():
    slow, fast = exact_fit(A=0.55, C_mid=2000), exact_fit(A=0.65, C_mid=1500)
    final = 0.3 + 0.25 / (1 + (2000 / 8000) ** 1.92)
    target = 0.3 + 0.8 * (final - 0.3)
    needed = [C * ((target - 0.3) / (A - target)) ** (1 / 1.92) for A, C in ((0.55, 2000), (0.65, 1500))]
    assert compared([slow], [fast]).answers["compute"].estimate == pytest.approx(needed[0] / needed[1], rel=1e-5)


def test_there_is_no_ratio_where_the_target_is_not_reached_in_the_window():
    started_late = exact_fit(C_mid=500, compute=np.append(0, np.arange(4000, 8001, 200.0)))
    answer = compared([EXACT], [started_late]).answers["compute"]
    assert (answer.estimate, answer.verdict) == (None, "cannot tell")


def test_a_missing_reference_fit_or_cost_is_refused():
    with pytest.raises(AblationsError, match="reference 'ref' has no fit; variants: new"):
        compare({"new": [EXACT]}, {"new": 1.0}, "ref")
    with pytest.raises(AblationsError, match="variant 'new' has no fit"):
        compare({"ref": [EXACT], "new": []}, {"ref": 1.0, "new": 1.0}, "ref")
    with pytest.raises(AblationsError, match="variant 'new' has no cost; costs are given for: ref"):
        compare({"ref": [EXACT], "new": [EXACT]}, {"ref": 1.0}, "ref")


def test_what_an_unbounded_fit_claims_beyond_its_readings_makes_no_verdict():
    # Its curves have reached .5792; that A is .605 at least is extrapolation.
    row = compared(seeds(0.61, hi=False), seeds(0.575))
    assert row.answers["ceiling"].lo < 0
    assert row.answers["ceiling"].hi is None
    assert row.answers["ceiling"].verdict == "cannot tell"
    assert compared(seeds(0.60), seeds(0.9, hi=False)).answers["ceiling"].lo is None


def test_an_unbounded_fit_gives_the_reference_no_law_that_its_readings_refuse():
    """It has reached .70 and may end at 1; the reference ends at .60 by all that fits it."""
    nearly_open = with_two_laws(0.60, 1.0, 0.9, family=FAMILIES[-1]).alternatives
    opened = replace(nearly_open, deviance_of_1=dict.fromkeys(nearly_open.deviance_of_1, 0.0))
    higher = [replace(one, alternatives=opened) for one in seeds(0.9, hi=False, reached=0.70)]
    row = compared(higher, seeds(0.60))
    assert 0.085 < row.answers["ceiling"].lo < 0.10
    assert row.answers["ceiling"].verdict == "ceiling up"


def test_the_level_is_compared_at_the_compute_that_both_have_spent():
    short = exact_fit(C_mid=1500, compute=COMPUTE[COMPUTE <= 6000])
    row = compared([EXACT] * 2, [short] * 2)
    grid = np.linspace(4000, 6000, 2001)
    levels = [0.3 + 0.31 / (1 + (C_mid / grid) ** 1.92) for C_mid in (2542, 1500)]
    expected = [np.trapezoid(level, grid) / 2000 for level in levels]
    assert row.level == pytest.approx(expected[0], abs=1e-4)  # a line between readings lies under the curve
    assert row.answers["level"].estimate == pytest.approx(expected[0] - expected[1], abs=1e-4)
    assert row.answers["level"].verdict == "level down"


def test_corrected_intervals_are_wider_by_as_much_as_eight_comparisons_need():
    fits = {f"v{n}": seeds(0.60) for n in range(9)}
    rows = compare(fits, dict.fromkeys(fits, 1.0), "v0").variants
    # Two sides of three own degrees of freedom and two of the seeds: ten; tails of .025 and of .025 / 8.
    sd = np.sqrt(2 / 3 * np.var(APART, ddof=1))
    assert rows[1].answers["ceiling"].hi == pytest.approx(t(10).isf(0.025) * sd, rel=1e-3)
    assert rows[1].answers["ceiling"].joint_hi == pytest.approx(t(10).isf(0.025 / 8) * sd, rel=1e-3)
    assert rows[1].answers["ceiling"].joint_lo == pytest.approx(-rows[1].answers["ceiling"].joint_hi, abs=1e-6)
    assert (rows[0].answers["ceiling"].joint_lo, rows[0].answers["ceiling"].joint_hi) == (0.0, 0.0)


def test_a_run_and_a_variant_unlike_their_siblings_are_found():
    fits = {f"v{n}": [exact_fit(A=0.6 + one) for one in APART] for n in range(8)}
    assert compare(fits, dict.fromkeys(fits, 1.0), "v0").unlike == ()
    low = exact_fit(A=0.6)
    score = low.curve.score - 0.1 * (low.curve.compute > 3000)
    late = fit_curve(replace(low.curve, name="v3-s2", score=score))
    fits["v3"] = [*fits["v3"][:2], late]
    fits["v5"] = [*fits["v5"][:2], replace(fits["v5"][2], verdict="collapsed")]
    comparison = compare(fits, dict.fromkeys(fits, 1.0), "v0")
    far, fallen = comparison.unlike
    assert (far.variant, far.run, far.since) == ("v3", "v3-s2", 3200.0)
    assert far.apart == pytest.approx(-0.1, abs=0.01)
    assert far.ratio > 5
    assert (fallen.variant, fallen.collapsed, fallen.num_seeds) == ("v5", ("exact",), 3)
    # The other variants are compared as if the odd run were not there.
    widths = [one.answers["level"].hi - one.answers["level"].lo for one in comparison.variants[1:3]]
    assert max(widths) < 0.02
