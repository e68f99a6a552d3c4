"""The spread between runs of one recipe: against SciPy's t tests, analysis of variance by hand, and simulation."""

import numpy as np
import pytest
from scipy.stats import norm, t, ttest_ind, ttest_rel

from ablations.answers.repeats import UNKNOWN, CommonSpread, Repeats
from ablations.answers.run_to_run import PRIOR_FREEDOM, run_to_run
from ablations.answers.student import Student, interval_of, mass_below, quantile

SEEDS = [f"seed {number}" for number in range(6)]


def repeats_of(values, starts=SEEDS, own=0.0):
    return [Repeats.of(row, [own] * len(row), starts[: len(row)]) for row in values]


def two_way(rng, num_variants, num_seeds, tau, omega):
    return omega * rng.standard_normal(num_seeds) + tau * rng.standard_normal((num_variants, num_seeds))


def ends_of(runs, baseline, spread):
    found = spread.of_difference(runs, baseline)
    interval = interval_of([found], found.estimate)
    return interval.lo, interval.hi


def test_the_estimate_of_a_law_of_little_weight_lies_in_the_interval_of_all():
    near, far = (
        Student(estimate=estimate, variance=1e-4, freedom=1e6, weight=weight)
        for estimate, weight in ((0.0, 0.99), (0.2, 0.01))
    )
    found = interval_of([near, far], far.estimate, comparisons=2)
    # The upper tail of .025 holds the .01 of the far law: P(z > x / .01) = .015 / .99 for the near one.
    assert found.lo == pytest.approx(-0.01 * norm.isf(0.025 / 0.99), abs=1e-5)
    assert interval_of([near, far], 0.0).hi == pytest.approx(0.01 * norm.isf(0.015 / 0.99), abs=1e-5)
    assert (found.estimate, found.hi) == (0.2, 0.2)
    assert found.joint_hi >= 0.2


def test_two_variants_of_three_seeds_are_compared_by_student_s_t():
    values = [[0.60, 0.63, 0.615], [0.65, 0.64, 0.668]]
    runs = repeats_of(values)
    expected = ttest_ind(values[1], values[0]).confidence_interval()
    assert ends_of(runs[1], runs[0], run_to_run(runs)) == pytest.approx((expected.low, expected.high), rel=1e-9)


def test_two_variants_of_five_seeds_are_compared_pair_by_pair():
    values = [[0.60, 0.63, 0.615, 0.58, 0.64], [0.62, 0.64, 0.64, 0.59, 0.668]]
    runs = repeats_of(values)
    expected = ttest_rel(values[1], values[0]).confidence_interval()
    assert ends_of(runs[1], runs[0], run_to_run(runs)) == pytest.approx((expected.low, expected.high), rel=1e-9)


def test_nine_variants_are_a_two_way_table_and_each_has_three_degrees_of_freedom_of_all():
    values = two_way(np.random.default_rng(4), 9, 3, 0.01, 0.03) + 0.6
    rest = values - values.mean(0) - values.mean(1, keepdims=True) + values.mean()
    mean_square = np.sum(rest**2) / 16
    sides, own = [], 2 * (1 - 1 / 9)
    for row in rest[:2]:
        sides.append((PRIOR_FREEDOM * mean_square + np.sum(row**2)) / (PRIOR_FREEDOM + own) / 3)
    freedom = sum(sides) ** 2 / sum(side**2 / (PRIOR_FREEDOM + own) for side in sides)
    half = t(freedom).ppf(0.975) * np.sqrt(sum(sides))
    runs = repeats_of(values)
    spread = run_to_run(runs)
    assert spread.paired is not None
    assert spread.paired.sd == pytest.approx(np.sqrt(mean_square))
    assert spread.sd == pytest.approx(np.sqrt(np.sum(values.var(1, ddof=1)) / 9))
    lo, hi = ends_of(runs[1], runs[0], spread)
    assert (hi - lo) / 2 == pytest.approx(half, rel=1e-9)


def test_the_mean_square_of_an_unbalanced_table_is_that_of_least_squares():
    """One variant lacks a seed, another has a seed that no other has."""
    rng = np.random.default_rng(3)
    starts = [["a", "b", "c"], ["b", "c"], ["a", "c", "d"], ["a", "b", "c"], ["a", "b", "c"]]
    values = [[float(rng.normal(0.6, 0.02)) for _ in of_one] for of_one in starts]
    rows = [
        (number, start, y) for number, some in enumerate(starts) for start, y in zip(some, values[number], strict=True)
    ]
    design = np.array(
        [[number == one for one in range(5)] + [start == one for one in "abcd"] for number, start, _ in rows]
    )
    _, _, rank, _ = np.linalg.lstsq(design.astype(float), np.array([y for *_, y in rows]), rcond=None)
    y = np.array([y for *_, y in rows])
    rest = y - design @ np.linalg.lstsq(design.astype(float), y, rcond=None)[0]
    spread = run_to_run([Repeats.of(v, [0.0] * len(v), s) for v, s in zip(values, starts, strict=True)])
    assert spread.paired is not None
    assert spread.paired.freedom == pytest.approx(len(rows) - rank)
    assert spread.paired.sd == pytest.approx(np.sqrt(rest @ rest / (len(rows) - rank)), rel=1e-6)


def test_a_pool_of_unequal_errors_has_the_squares_that_it_expects():
    groups = [
        Repeats.of([0.60, 0.63, 0.58], [2e-4, 1e-4, 3e-5]),
        Repeats.of([0.50, 0.51, 0.48, 0.53], [5e-5] * 4),
        Repeats.of([0.70, 0.704], [1e-6, 1e-6]),
    ]

    def chi_squared(tau: float) -> float:
        """sum (y - weighted mean)^2 / (tau^2 + s^2), as loops."""
        total = 0.0
        for group in groups:
            weights = [1 / (tau**2 + s) for s in group.own_variances]
            mean = sum(w * y for w, y in zip(weights, group.values, strict=True)) / sum(weights)
            total += sum(w * (y - mean) ** 2 for w, y in zip(weights, group.values, strict=True))
        return total

    pool = CommonSpread.of(groups)
    assert pool.tau > 0
    assert chi_squared(pool.tau) == pytest.approx(6)
    noisier = [Repeats.of(group.values, [20 * s for s in group.own_variances]) for group in groups]
    assert (CommonSpread.of(noisier).tau, CommonSpread.of(noisier).scale) == (
        0.0,
        pytest.approx(chi_squared(0.0) / 20 / 6, rel=1e-6),
    )
    noisier = [Repeats.of(group.values, [100 * s for s in group.own_variances]) for group in groups]
    assert CommonSpread.of(noisier).scale == 0.25  # closer together than chance allows


@pytest.mark.parametrize(
    ("num_variants", "num_seeds", "effect"), [(2, 2, 0.0), (2, 5, 1.2), (9, 2, 1.2), (9, 3, 0.0), (9, 3, 1.2)]
)
def test_equal_variants_are_called_different_in_one_of_twenty(num_variants, num_seeds, effect):
    rng = np.random.default_rng([num_variants, num_seeds, round(10 * effect)])
    called = []
    for _ in range(300):
        runs = repeats_of(two_way(rng, num_variants, num_seeds, 0.01, effect * 0.01))
        lo, hi = ends_of(runs[1], runs[0], run_to_run(runs))
        called.append(lo > 0 or hi < 0)
    assert np.mean(called) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 300)


def test_a_variant_that_stands_out_is_found_and_leaves_the_common_spread():
    values = two_way(np.random.default_rng(11), 9, 3, 0.01, 0.0) + 0.6
    quiet = run_to_run(repeats_of(values))
    values[4] += [0.0, 0.0, -0.3]
    loud = run_to_run(repeats_of(values))
    assert loud.sd < 1.3 * quiet.sd
    assert loud.stands_out(repeats_of(values)[4]) > 10
    assert [loud.stands_out(one) for number, one in enumerate(repeats_of(values)) if number != 4] == [0.0] * 8


def test_runs_of_other_sweeps_tell_the_spread_of_single_seeds():
    values = [0.6, 0.62, 0.59, 0.61, 0.6, 0.63]
    spread = run_to_run([Repeats.of([0.5], [0.0])], [Repeats.of(values, [0.0] * 6)])
    found = spread.of_difference(Repeats.of([0.5], [0.0]), Repeats.of([0.6], [0.0]))
    assert found.variance == pytest.approx(2 * np.var(values, ddof=1))
    assert found.freedom == 5
    assert str(spread).endswith("from 6 repeated runs, 6 of them from other sweeps")


def test_variants_with_the_same_starts_differ_by_tau_alone_and_others_by_omega_too():
    values = two_way(np.random.default_rng(5), 60, 6, 0.01, 0.04)
    spread = run_to_run(repeats_of(values))
    omega = np.sqrt(spread.tau**2 - spread.paired_tau**2)
    assert spread.paired_sd == pytest.approx(0.01, rel=0.1)
    same = spread.differences(SEEDS[:3], SEEDS[:3], 100_000)
    assert same.std() == pytest.approx(0.01 * np.sqrt(2 / 3), rel=0.1)
    other = spread.differences(["x", "y"], SEEDS[:3], 100_000)
    assert other.std() == pytest.approx(np.sqrt((0.01**2 + omega**2) * (1 / 2 + 1 / 3)), rel=0.05)
    part = spread.differences(SEEDS[:2], SEEDS[:3], 100_000)
    of_starts = 2 * (1 / 2 - 1 / 3) ** 2 + 1 / 3**2
    assert part.std() == pytest.approx(np.sqrt(0.01**2 * (1 / 2 + 1 / 3) + omega**2 * of_starts), rel=0.05)
    (one, two), (three,) = spread.run_offsets([[UNKNOWN, "a"], ["a"]], 20_000)
    assert np.corrcoef(two, three)[0, 1] > 0.8
    assert abs(np.corrcoef(one, two)[0, 1]) < 0.05


def test_quantiles_and_probabilities_of_a_mixture_are_those_of_its_draws():
    parts = [
        Student(estimate=0.01, variance=1e-4, freedom=4.0, weight=0.7),
        Student(estimate=0.05, variance=4e-4, freedom=9.0, weight=0.3),
    ]
    rng = np.random.default_rng(2)
    drawn = np.concatenate(
        [one.estimate + np.sqrt(one.variance) * rng.standard_t(one.freedom, round(1e6 * one.weight)) for one in parts]
    )
    for share in (0.025, 0.5, 0.9):
        assert quantile(parts, share) == pytest.approx(np.quantile(drawn, share), abs=2e-4)
    for x in (0.0, 0.02):
        assert mass_below(parts, x) == pytest.approx(np.mean(drawn < x), abs=2e-3)
    assert interval_of(parts, 0.02).p_lower == mass_below(parts, 0.0)
