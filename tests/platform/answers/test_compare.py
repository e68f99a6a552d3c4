"""Comparisons with numbers worked out by hand or by SciPy."""

import json
from dataclasses import replace

import numpy as np
import pytest
from fixtures_spread import exact_margin, quantile_of_offset
from scipy.optimize import brentq
from scipy.stats import combine_pvalues, norm

from ablations.answers.compare import compare
from ablations.answers.differences import compute_ratio
from ablations.answers.one_law import ceilings_under_one_law
from ablations.answers.run_to_run import Repeats, run_to_run
from ablations.errors import AblationsError
from ablations.fit.alternatives import Alternative, Alternatives
from ablations.fit.ceiling import Ceiling
from ablations.fit.curve import Curve
from ablations.fit.engine.family import FAMILIES, SIGMOID, Family
from ablations.fit.engine.posterior import Draws
from ablations.fit.fitting import fit_curve
from ablations.fit.result import CurveSet, Fit

COMPUTE = np.arange(0, 8001, 200.0)


def exact_fit(A=0.61, B=1.92, C_mid=2542.0, R_0=0.3, compute=COMPUTE) -> Fit:
    score = np.append(R_0, R_0 + (A - R_0) / (1 + (C_mid / compute[1:]) ** B))
    return fit_curve(Curve(name="exact", compute=compute, score=score))


EXACT = exact_fit()
ASSUMED = run_to_run([])
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
    curves = CurveSet(A=draws, B=np.full(draws.size, 1.92), C_mid=C_mid, R_0=np.full(draws.size, 0.3))
    return replace(
        EXACT,
        A=A,
        A_lo=A_lo,
        A_hi=A_hi,
        ceiling=Ceiling(A=A, lo=A_lo, hi=A_hi, draws=draws),
        verdict="weak" if A_hi else "lower bound only",
        draws=curves,
    )


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
        others=(Alternative(family=family, rows=rows, draws=of_family, is_open=False),),
    )
    return replace(fit, ceiling=Ceiling(A=A, lo=lo, hi=hi, draws=draws), alternatives=found)


def compared(variant: list[Fit], reference: list[Fit]):
    comparison = compare({"ref": reference, "new": variant}, {"ref": 100.0, "new": 90.0}, "ref")
    return comparison.variants[1]


def test_one_seed_adds_the_assumed_run_to_run_sd_to_the_intervals_of_the_fits():
    row = compared([with_ceiling(0.65, 0.63, 0.67)], [with_ceiling(0.60, 0.59, 0.61)])
    # Margin: sqrt(.02^2 + .01^2 + m^2) with m = 1.96 x .0075 x sqrt(2) = .020789.
    assert row.answers["ceiling"].estimate == pytest.approx(0.05)
    assert row.answers["ceiling"].lo == pytest.approx(0.05 - 0.030532, abs=1e-3)
    assert row.answers["ceiling"].hi == pytest.approx(0.05 + 0.030532, abs=1e-3)
    assert row.answers["ceiling"].verdict == "ceiling up"
    assert (row.num_seeds, row.cost) == (1, 90.0)


def test_seeds_of_all_variants_say_how_far_runs_lie_apart():
    # The fits are exact to 1e-5, so what differs between seeds is between runs.
    groups = {"ref": [0.600, 0.612, 0.604], "new": [0.640, 0.652, 0.655], "third": [0.5, 0.53, 0.5]}
    fits = {name: [with_ceiling(A, A - 2e-5, A + 2e-5) for A in group] for name, group in groups.items()}
    comparison = compare(fits, dict.fromkeys(fits, 1.0), "ref")
    row = comparison.variants[1]
    margin = exact_margin(list(groups.values())) * np.sqrt(2 / 3)
    assert row.answers["ceiling"].estimate == pytest.approx(0.649 - 0.605333, abs=1e-5)
    assert row.answers["ceiling"].lo == pytest.approx(row.answers["ceiling"].estimate - margin, abs=0.03 * margin)
    assert row.answers["ceiling"].hi == pytest.approx(row.answers["ceiling"].estimate + margin, abs=0.03 * margin)
    assert comparison.spreads["ceiling"].freedom == 6
    assert comparison.to_json()["run_to_run"]["ceiling"]["degrees_of_freedom"] == 6
    own = exact_margin(list(groups.values())) / np.sqrt(3)
    assert row.asymptote.hi == pytest.approx(0.649 + own, abs=0.03 * own)


def test_two_seeds_average_the_intervals_of_their_fits():
    variant = [with_ceiling(0.55, 0.51, 0.59), with_ceiling(0.57, 0.53, 0.61)]
    row = compared(variant, [with_ceiling(0.60, 0.59, 0.61)])
    assert pytest.approx(0.56) == row.asymptote.A
    # The fits explain how the seeds differ, .02 with an sd of .0204 each; of the spread they say little.
    own = 0.0204**2
    spread = quantile_of_offset(0.975, [Repeats(squares=0.0002, freedom=1, own_variance=own)], np.sqrt(1 / 2 + 1))
    assert row.answers["ceiling"].hi == pytest.approx(-0.04 + np.sqrt(0.04**2 / 2 + 0.01**2 + spread**2), abs=0.006)


def test_one_seed_of_the_reference_borrows_what_the_seeds_of_others_say():
    fits = {"ref": [with_ceiling(0.60, 0.59998, 0.60002)]}
    fits |= {f"v{n}": [with_ceiling(A, A - 2e-5, A + 2e-5) for A in (0.598, 0.600, 0.602)] for n in range(8)}
    row = compare(fits, dict.fromkeys(fits, 1.0), "ref").variants[1]
    margin = exact_margin([[0.598, 0.600, 0.602]] * 8) * np.sqrt(1 + 1 / 3)
    assert row.answers["ceiling"].hi == pytest.approx(margin, rel=0.05)
    assert margin < 1.96 * 0.0075 * np.sqrt(1 + 1 / 3)


@pytest.mark.parametrize("num_seeds", [1, 5])
def test_more_seeds_leave_the_doubt_about_the_law_as_wide_as_it_is(num_seeds):
    row = compared([with_two_laws(0.60, 0.66, 0.3)] * num_seeds, [with_two_laws(0.50, 0.50, 0.3)])
    # Under either law the seeds lie together: .60 with probability .7, .66 with .3, and the assumed sd about both.
    sd = 0.0075 * np.sqrt(1 + 1 / num_seeds)
    if num_seeds == 1:
        assert row.answers["ceiling"].lo == pytest.approx(0.10 + sd * norm.ppf(0.025 / 0.7), abs=2e-3)
        assert row.answers["ceiling"].hi == pytest.approx(0.16 + sd * norm.ppf(1 - 0.025 / 0.3), abs=2e-3)
    assert row.answers["ceiling"].hi is not None
    assert row.answers["ceiling"].lo is not None
    assert row.answers["ceiling"].hi - row.answers["ceiling"].lo > 0.06
    assert pytest.approx(0.60, abs=1e-9) == row.asymptote_under_eq1.A
    assert row.asymptote_under_eq1.hi is not None
    assert row.asymptote_under_eq1.hi < 0.63


def test_a_difference_is_taken_under_one_law():
    # Each ceiling is .60 or .66, but under the same law both are alike: only the runs differ.
    row = compared([with_two_laws(0.60, 0.66, 0.3)], [with_two_laws(0.60, 0.66, 0.3)])
    assert row.asymptote.hi == pytest.approx(0.66, abs=1e-3)
    margin = 1.96 * 0.0075 * np.sqrt(2)
    assert row.answers["ceiling"].lo == pytest.approx(-margin, abs=1e-3)
    assert row.answers["ceiling"].hi == pytest.approx(margin, abs=1e-3)


def test_runs_that_know_less_of_the_law_are_not_compared_under_another_one():
    """Both end at .60 by eq. 1 and at .66 by the other family. The variant's readings refuse neither, the reference's
    nearly refuse eq. 1: by weights of their own the median difference would be -.06.
    """
    row = compared([with_two_laws(0.60, 0.66, 0.2)], [with_two_laws(0.60, 0.66, 0.9)])
    margin = 1.96 * 0.0075 * np.sqrt(2)
    assert row.answers["ceiling"].estimate == pytest.approx(0.0, abs=1e-4)
    assert row.answers["ceiling"].lo == pytest.approx(-margin, abs=1e-3)
    assert row.answers["ceiling"].hi == pytest.approx(margin, abs=1e-3)
    assert row.answers["ceiling"].verdict == "no difference seen"


def test_a_family_weighs_what_it_does_on_average():
    # Under the other family, of weight (.1 + .7) / 2 = .4, the variant ends .06 higher, under eq. 1 at .60 too.
    row = compared([with_two_laws(0.60, 0.66, 0.1)], [with_two_laws(0.60, 0.60, 0.7)])
    sd = 0.0075 * np.sqrt(2)
    # P(x < lo) = .6 Phi(lo / sd) + .4 Phi((lo - .06) / sd), and so for the upper end.
    for end, tail in ((row.answers["ceiling"].lo, 0.025), (row.answers["ceiling"].hi, 0.975)):
        found = brentq(lambda x, t=tail: 0.6 * norm.cdf(x / sd) + 0.4 * norm.cdf((x - 0.06) / sd) - t, -0.1, 0.2)
        assert end == pytest.approx(found, abs=2e-3)


def test_a_run_that_refuses_a_family_ends_by_eq_1_there():
    variant, reference = with_two_laws(0.60, 0.66, 0.5), with_two_laws(0.60, 0.70, 0.5, family=POWER_LAW)
    (a, b) = ceilings_under_one_law([variant, reference])
    quarters = [slice(5000 * i, 5000 * (i + 1)) for i in range(4)]  # eq. 1, the reference's family, the variant's
    assert [float(np.median(a[one])) for one in quarters] == pytest.approx([0.60, 0.60, 0.60, 0.66], abs=1e-4)
    assert [float(np.median(b[one])) for one in quarters] == pytest.approx([0.60, 0.60, 0.70, 0.60], abs=1e-4)


def test_the_doubt_of_several_seeds_is_one_p_value():
    p_values = [0.04, 0.3, 0.11]
    fits = [replace(EXACT, eq1_p=p) for p in p_values]
    row = compared(fits, [EXACT])
    assert row.eq1_p == pytest.approx(combine_pvalues(p_values, method="fisher").pvalue, rel=1e-9)
    assert row.doubts_eq1 == (row.eq1_p < 0.05)


def test_three_seeds_with_an_unbounded_one_are_not_averaged_as_if_it_were_known():
    bounded = with_ceiling(0.65, 0.64, 0.66)
    row = compared([bounded, bounded, with_ceiling(0.9, 0.64, None)], [bounded] * 3)
    assert (row.asymptote.hi, row.answers["ceiling"].estimate, row.answers["ceiling"].hi) == (None, None, None)
    assert row.verdict == "lower bound only"
    assert str(row.asymptote).startswith("A >= 0.")
    assert row.answers["ceiling"].verdict == "cannot tell"


def test_a_lower_bound_above_the_reference_is_a_ceiling_up():
    row = compared([with_ceiling(0.9, 0.72, None, reached=0.70)], [with_ceiling(0.60, 0.59, 0.61)])
    assert row.answers["ceiling"].estimate is None
    assert row.answers["ceiling"].lo == pytest.approx(0.70 - 0.60 - np.sqrt(0.01**2 + 0.020789**2), abs=1e-3)
    assert row.answers["ceiling"].hi is None
    assert row.answers["ceiling"].verdict == "ceiling up"


def test_an_unbounded_reference_leaves_no_lower_end():
    row = compared([with_ceiling(0.60, 0.59, 0.61)], [with_ceiling(0.9, 0.58, None)])
    assert row.answers["ceiling"].lo is None
    assert row.answers["ceiling"].verdict == "cannot tell"


def test_a_curve_with_twice_the_c_mid_needs_twice_the_compute():
    row = compared([exact_fit(C_mid=2 * 1200)], [exact_fit(C_mid=1200)])
    assert row.answers["compute"].estimate == pytest.approx(2, rel=1e-5)
    # d ln C / dR = (A - R_0) / (B (R - R_0) (A - R)), for two runs that are off by .0075 each.
    final = 0.3 + 0.31 / (1 + (2400 / 8000) ** 1.92)
    target = 0.3 + 0.8 * (final - 0.3)
    margin = 1.96 * np.sqrt(2) * 0.0075 * 0.31 / (1.92 * (target - 0.3) * (0.61 - target))
    assert np.log(row.answers["compute"].lo or np.nan) == pytest.approx(np.log(2) - margin, abs=0.1 * margin)
    assert np.log(row.answers["compute"].hi or np.nan) == pytest.approx(np.log(2) + margin, abs=0.1 * margin)


def test_the_seeds_of_the_ratio_lie_apart_by_their_slope_at_the_target():
    mids, others = [1000.0, 1150, 1080], [1500.0, 1700, 1550]
    row = compared([exact_fit(C_mid=C) for C in mids], [exact_fit(C_mid=C) for C in others])
    # Curves of one A and B reach any level at compute in proportion to C_mid, and all slopes there are alike:
    # dR / d ln C = B (R - R_0) (A - R) / (A - R_0).
    final = 0.3 + 0.31 / (1 + (1700 / 8000) ** 1.92)
    target = 0.3 + 0.8 * (final - 0.3)
    slope = 1.92 * (target - 0.3) * (0.61 - target) / 0.31
    margin = exact_margin([(slope * np.log(group)).tolist() for group in (mids, others)]) / slope * np.sqrt(2 / 3)
    estimate = float(np.mean(np.log(mids)) - np.mean(np.log(others)))
    assert np.log(row.answers["compute"].estimate or np.nan) == pytest.approx(estimate, abs=1e-4)
    assert np.log(row.answers["compute"].lo or np.nan) == pytest.approx(estimate - margin, abs=0.12 * margin)
    assert np.log(row.answers["compute"].hi or np.nan) == pytest.approx(estimate + margin, abs=0.12 * margin)


def test_the_target_is_four_fifths_of_the_way_to_the_lower_final_level():
    slow, fast = exact_fit(A=0.55, C_mid=2000), exact_fit(A=0.65, C_mid=1500)
    final = 0.3 + 0.25 / (1 + (2000 / 8000) ** 1.92)
    target = 0.3 + 0.8 * (final - 0.3)
    needed = [C * ((target - 0.3) / (A - target)) ** (1 / 1.92) for A, C in ((0.55, 2000), (0.65, 1500))]
    ratio = compute_ratio([slow], [fast], ASSUMED)
    assert ratio is not None
    assert ratio.estimate == pytest.approx(needed[0] / needed[1], rel=1e-5)


def test_seeds_enter_the_ratio_by_their_geometric_mean():
    ratio = compute_ratio([exact_fit(C_mid=800), exact_fit(C_mid=1800)], [exact_fit(C_mid=1200)], ASSUMED)
    assert ratio is not None
    # sqrt(800 x 1800) = 1200.
    assert ratio.estimate == pytest.approx(1, rel=1e-5)


def test_there_is_no_ratio_where_the_target_is_not_reached_in_the_window():
    started_late = exact_fit(C_mid=500, compute=np.append(0, np.arange(4000, 8001, 200.0)))
    assert compute_ratio([EXACT], [started_late], ASSUMED) is None


def test_a_curve_that_does_not_rise_has_neither_ratio_nor_c_mid():
    flat = fit_curve(Curve(name="flat", compute=COMPUTE, score=np.full(COMPUTE.size, 0.3)))
    row = compared([flat], [EXACT])
    assert row.verdict == "no rise"
    assert str(row.asymptote) == "no rise"
    assert (row.B, row.C_mid, row.answers["compute"].estimate) == (None, None, None)


def test_the_reference_is_compared_with_nothing():
    comparison = compare({"ref": [EXACT]}, {"ref": 1.0}, "ref")
    (row,) = comparison.variants
    assert (
        row.answers["ceiling"].estimate,
        row.answers["ceiling"].lo,
        row.answers["ceiling"].hi,
        row.answers["compute"].estimate,
    ) == (0, 0, 0, 1)
    assert (row.answers["level"].estimate, row.answers["level"].verdict) == (0, "reference")
    assert row.answers["ceiling"].verdict == "reference"


def test_the_worst_seed_gives_the_verdict():
    collapsed = replace(EXACT, verdict="collapsed")
    assert compared([EXACT, EXACT, collapsed], [EXACT]).verdict == "collapsed"
    assert compared([EXACT, EXACT], [EXACT]).verdict == "resolved"


def test_json_is_plain_and_has_none_for_what_is_unbounded():
    fits = {"ref": [with_ceiling(0.61, 0.60, 0.62)], "new": [with_ceiling(0.9, 0.6, None)]}
    comparison = compare(fits, {"ref": 100.0, "new": 90.0}, "ref")
    read = json.loads(json.dumps(comparison.to_json(), allow_nan=False))
    assert read["reference"] == "ref"
    new = read["variants"][1]
    assert new["curve"] == "new"
    assert new["A_hi"] is None
    assert new["delta_A_hi"] is None
    assert new["asymptote"] == "A >= 0.60"
    assert new["window"] == [200.0, 8000.0]
    assert new["num_seeds"] == 1


def test_a_missing_reference_fit_or_cost_is_refused():
    with pytest.raises(AblationsError, match="reference 'ref' has no fit; variants: new"):
        compare({"new": [EXACT]}, {"new": 1.0}, "ref")
    with pytest.raises(AblationsError, match="variant 'new' has no fit"):
        compare({"ref": [EXACT], "new": []}, {"ref": 1.0, "new": 1.0}, "ref")
    with pytest.raises(AblationsError, match="variant 'new' has no cost; costs are given for: ref"):
        compare({"ref": [EXACT], "new": [EXACT]}, {"ref": 1.0}, "ref")


def test_what_an_unbounded_fit_claims_beyond_its_readings_makes_no_verdict():
    # Its curves have reached .5792; that A is .605 at least is extrapolation.
    row = compared([with_ceiling(0.61, 0.605, None)], [with_ceiling(0.575, 0.57, 0.58)])
    # Margin: sqrt(.005^2 + .020789^2) = .02138; counted from .605 the end would be .0086 and say "ceiling up".
    assert row.answers["ceiling"].lo == pytest.approx(0.5792 - 0.575 - 0.02138, abs=1e-3)
    assert row.answers["ceiling"].hi is None
    assert row.answers["ceiling"].verdict == "cannot tell"


def test_an_unbounded_fit_gives_the_reference_no_law_that_its_readings_refuse():
    """It has reached .70 and may end at 1; the reference ends at .60 by all that fits it."""
    higher = with_ceiling(0.9, 0.72, None, reached=0.70)
    nearly_open = with_two_laws(0.60, 1.0, 0.9, family=FAMILIES[-1]).alternatives
    row = compared([replace(higher, alternatives=nearly_open)], [with_ceiling(0.60, 0.59, 0.61)])
    assert row.answers["ceiling"].lo == pytest.approx(0.70 - 0.60 - np.sqrt(0.01**2 + 0.020789**2), abs=1e-3)
    assert row.answers["ceiling"].verdict == "ceiling up"


def test_an_unbounded_fit_whose_readings_lie_above_the_reference_is_up():
    row = compared([with_ceiling(0.61, 0.605, None)], [with_ceiling(0.50, 0.49, 0.51)])
    assert row.answers["ceiling"].verdict == "ceiling up"


def test_curves_that_may_never_reach_the_target_leave_a_ratio_with_an_open_end():
    never = with_ceiling(0.61, 0.60, 0.62)
    draws = replace(never.draws, A=np.where(np.arange(20_000) % 2, 0.61, 0.31), C_mid=np.full(20_000, 2542.0))
    row = compared([replace(never, draws=draws)], [replace(never, draws=draws)])
    assert row.answers["compute"].estimate == pytest.approx(1)
    assert (row.answers["compute"].lo, row.answers["compute"].hi) == (None, None)
    assert row.answers["compute"].verdict == "cannot tell"


def test_an_open_ceiling_has_no_verdict_by_the_rule_of_the_paper():
    row = compared([with_ceiling(0.9, 0.72, None, reached=0.70)], [with_ceiling(0.60, 0.59, 0.61)])
    assert row.paper_rule == "cannot tell"


def test_the_level_is_compared_at_the_compute_that_both_have_spent():
    short = exact_fit(C_mid=1500, compute=COMPUTE[COMPUTE <= 6000])
    row = compared([EXACT], [short])
    grid = np.linspace(4000, 6000, 2001)
    levels = [0.3 + 0.31 / (1 + (C_mid / grid) ** 1.92) for C_mid in (2542, 1500)]
    expected = [np.trapezoid(level, grid) / 2000 for level in levels]
    assert row.level == pytest.approx(expected[0], abs=1e-4)  # a line between readings lies under the curve
    assert row.answers["level"].estimate == pytest.approx(expected[0] - expected[1], abs=1e-4)
    assert row.answers["level"].lo == pytest.approx(
        row.answers["level"].estimate - 1.96 * 0.0075 * np.sqrt(2), abs=3e-4
    )
    assert row.answers["level"].verdict == "level down"


def test_readings_that_begin_too_late_have_no_level_and_no_verdict_on_it():
    compute = np.arange(6000, 8001, 200.0)
    late = fit_curve(Curve(name="late", compute=compute, score=0.3 + 0.31 / (1 + (2542 / compute) ** 1.92)))
    row = compared([late], [EXACT])
    assert (row.level, row.answers["level"].estimate, row.answers["level"].lo, row.answers["level"].verdict) == (
        None,
        None,
        None,
        "cannot tell",
    )


def test_corrected_intervals_are_wider_by_as_much_as_eight_comparisons_need():
    fits = {f"v{n}": [with_ceiling(0.60, 0.59999, 0.60001)] for n in range(9)}
    rows = compare(fits, dict.fromkeys(fits, 1.0), "v0").variants
    # One seed: 1.96 and 2.7344 (0.025 / 8 in each tail) times the assumed .0075 sqrt(2).
    assert rows[1].answers["ceiling"].hi == pytest.approx(1.95996 * 0.0075 * np.sqrt(2), rel=0.02)
    assert rows[1].answers["ceiling"].joint_hi == pytest.approx(norm.isf(0.025 / 8) * 0.0075 * np.sqrt(2), rel=0.03)
    assert rows[1].answers["ceiling"].joint_lo == pytest.approx(-rows[1].answers["ceiling"].joint_hi, rel=0.05)
    assert rows[1].answers["level"].joint_hi > rows[1].answers["level"].hi
    assert (rows[0].answers["ceiling"].joint_lo, rows[0].answers["ceiling"].joint_hi) == (0.0, 0.0)


def test_a_difference_between_the_two_intervals_is_called_and_does_not_hold_for_all():
    """Half-widths of .0208 and .029."""
    fits = {f"v{n}": [with_ceiling(0.60, 0.59999, 0.60001)] for n in range(9)}
    fits["v1"] = [with_ceiling(0.625, 0.62499, 0.62501)]
    fits["v2"] = [with_ceiling(0.64, 0.63999, 0.64001)]
    _, near, far, *rest = compare(fits, dict.fromkeys(fits, 1.0), "v0").variants
    assert (near.answers["ceiling"].verdict, near.answers["ceiling"].joint_verdict) == (
        "ceiling up",
        "no difference seen",
    )
    assert (far.answers["ceiling"].verdict, far.answers["ceiling"].joint_verdict) == ("ceiling up", "ceiling up")
    assert not near.answers["ceiling"].is_held
    assert far.answers["ceiling"].is_held
    assert not any(answer.is_held for row in rest for answer in row.answers.values())


def test_one_comparison_needs_no_correction():
    row = compared([with_ceiling(0.65, 0.63, 0.67)], [with_ceiling(0.60, 0.59, 0.61)])
    assert (row.answers["ceiling"].joint_lo, row.answers["ceiling"].joint_hi) == (
        row.answers["ceiling"].lo,
        row.answers["ceiling"].hi,
    )
    assert (row.answers["compute"].joint_lo, row.answers["compute"].joint_hi) == (
        row.answers["compute"].lo,
        row.answers["compute"].hi,
    )
    assert row.answers["ceiling"].joint_verdict == row.answers["ceiling"].verdict


def test_a_missing_end_is_missing_in_both_intervals():
    fits = {"ref": [with_ceiling(0.60, 0.59, 0.61)], "open": [with_ceiling(0.65, 0.63, None)]}
    fits["third"] = fits["ref"]
    row = compare(fits, dict.fromkeys(fits, 1.0), "ref").variants[1]
    assert (row.answers["ceiling"].hi, row.answers["ceiling"].joint_hi) == (None, None)
    assert row.answers["ceiling"].joint_lo < row.answers["ceiling"].lo
