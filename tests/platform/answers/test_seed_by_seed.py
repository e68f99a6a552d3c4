"""Comparisons seed by seed: against dense normal densities by SciPy, two-way tables by hand, and simulation."""

from itertools import product

import numpy as np
import pytest
from fixtures_design import study_of, trained_home
from scipy.linalg import null_space
from scipy.stats import halfcauchy, multivariate_normal, norm

from ablations.answers.level import Level, level_difference, level_repeats
from ablations.answers.run_to_run import NO_EFFECT, PRIOR_SCALE, Repeats, run_to_run
from ablations.answers.variance_components import log_spike_and_slab, restricted_log_likelihood
from ablations.findings.results import read_results
from ablations.home.started_sweep import read_sweep

SEEDS = [f"seed {number}" for number in range(5)]


def two_way(rng, num_variants, num_seeds, tau, omega):
    return omega * rng.standard_normal(num_seeds) + tau * rng.standard_normal((num_variants, num_seeds))


def repeats_of(values, starts=SEEDS):
    return [Repeats.of(row, [0.0] * len(row), starts[: len(row)]) for row in values]


def groups_of(values):
    return [list(zip(SEEDS, row, strict=False)) for row in values]


@pytest.mark.parametrize("own", [0.0, 3e-4])
def test_the_restricted_likelihood_is_that_of_the_contrasts(own):
    """Unbalanced: one variant lacks a seed, another has a seed that no other has, a third has its seeds twice."""
    rng = np.random.default_rng(3)
    starts = [["a", "b", "c"], ["b", "c"], ["a", "c", "d"], ["a", "a", "b"]]
    groups = [[(start, rng.normal(0.6, 0.02)) for start in of_one] for of_one in starts]
    flat = [(number, start, y) for number, group in enumerate(groups) for start, y in group]
    of_group = np.array([[number == one for one in range(len(groups))] for number, _, _ in flat], float)
    of_start = np.array([[start == one for one in "abcd"] for _, start, _ in flat], float)
    contrasts = null_space(of_group.T).T
    y = contrasts @ np.array([y for _, _, y in flat])

    def dense(tau, omega):
        covariance = (tau**2 + own) * np.eye(len(flat)) + omega**2 * of_start @ of_start.T
        return multivariate_normal(cov=contrasts @ covariance @ contrasts.T).logpdf(y)

    points = list(product([0.004, 0.02, 0.07], [0.0, 0.01, 0.05]))
    found = np.array([float(restricted_log_likelihood(groups, np.array(t), np.array(o), own)) for t, o in points])
    expected = np.array([dense(*point) for point in points])
    assert found - found[0] == pytest.approx(expected - expected[0], abs=1e-8)


def test_where_every_variant_has_every_seed_it_is_a_two_way_table():
    values = two_way(np.random.default_rng(4), 6, 4, 0.02, 0.03)
    of_seeds = 6 * float(np.sum((values.mean(0) - values.mean()) ** 2))
    rest = float(np.sum((values - values.mean(0) - values.mean(1, keepdims=True) + values.mean()) ** 2))
    points = [(0.01, 0.0), (0.02, 0.03), (0.05, 0.01)]

    def by_hand(tau, omega):
        between = tau**2 + 6 * omega**2
        return -0.5 * (15 * np.log(tau**2) + rest / tau**2 + 3 * np.log(between) + of_seeds / between)

    found = [float(restricted_log_likelihood(groups_of(values), np.array(t), np.array(o), 0.0)) for t, o in points]
    expected = [by_hand(*point) for point in points]
    assert np.diff(found) == pytest.approx(np.diff(expected), rel=1e-9)


def test_the_prior_of_omega_is_half_at_zero_and_half_a_half_cauchy():
    grid = np.concatenate([[0.0], np.geomspace(1e-4, 1.0, 4001)])
    weights = np.exp(log_spike_and_slab(grid, PRIOR_SCALE, NO_EFFECT))
    assert weights.sum() == pytest.approx(1.0)
    assert weights[0] == pytest.approx(NO_EFFECT)
    slab = halfcauchy(scale=PRIOR_SCALE)
    expected = (slab.cdf(0.02) - slab.cdf(1e-4)) / (slab.cdf(1.0) - slab.cdf(1e-4))
    assert weights[1:][grid[1:] <= 0.02].sum() / NO_EFFECT == pytest.approx(expected, rel=0.01)


def test_variants_with_the_same_starts_differ_by_tau_alone_and_others_by_omega_too():
    values = two_way(np.random.default_rng(5), 40, 5, 0.01, 0.04)
    spread = run_to_run(repeats_of(values))
    assert spread.has_shared
    assert spread.paired_sd == pytest.approx(0.01, rel=0.1)
    omega = float(np.sqrt(np.sum(spread.weights * spread.shared**2)))
    same = spread.differences(SEEDS[:3], SEEDS[:3], 100_000)
    assert same.std() == pytest.approx(0.01 * np.sqrt(2 / 3), rel=0.1)
    other = spread.differences(["x", "y"], SEEDS[:3], 100_000)
    assert other.std() == pytest.approx(np.sqrt((0.01**2 + omega**2) * (1 / 2 + 1 / 3)), rel=0.05)
    part = spread.differences(SEEDS[:2], SEEDS[:3], 100_000)
    of_starts = 2 * (1 / 2 - 1 / 3) ** 2 + 1 / 3**2
    assert part.std() == pytest.approx(np.sqrt(0.01**2 * (1 / 2 + 1 / 3) + omega**2 * of_starts), rel=0.05)
    unknown = spread.differences([""], [""], 100_000)
    assert unknown.std() == pytest.approx(np.sqrt(2 * (0.01**2 + omega**2)), rel=0.05)
    assert spread.mean_offsets(SEEDS[:1], 100_000).std() == pytest.approx(np.hypot(0.01, omega), rel=0.05)


def test_runs_with_one_start_share_their_offset_and_others_do_not():
    spread = run_to_run(repeats_of(two_way(np.random.default_rng(6), 40, 5, 0.005, 0.04)))
    one, alike, other = (spread.offsets(20_000, seed, start) for seed, start in ((0, 7), (1, 7), (2, None)))
    assert np.corrcoef(one, alike)[0, 1] > 0.95
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.05
    assert (one - alike).std() == pytest.approx(0.005 * np.sqrt(2), rel=0.1)


@pytest.mark.parametrize(("num_variants", "tau"), [(2, 0.0075), (2, 0.015), (9, 0.0075), (9, 0.03)])
@pytest.mark.parametrize("effect", [0.0, 1.0, 2.0])
def test_intervals_hold_whether_seeds_have_an_effect_or_none(num_variants, tau, effect):
    rng = np.random.default_rng(round(1e5 * tau) + num_variants)
    called, widths = [], []
    for _ in range(200):
        values = two_way(rng, num_variants, 3, tau, effect * tau)
        spread = run_to_run(repeats_of(values))
        margin = np.quantile(spread.differences(SEEDS[:3], SEEDS[:3], 2000), 0.975)
        called.append(2 * norm.sf(margin / (tau * np.sqrt(2 / 3))))  # the difference has this standard deviation
        unpaired = run_to_run([Repeats.of(row, [0.0] * 3) for row in values])
        widths.append(margin / np.quantile(unpaired.differences([""] * 3, [""] * 3, 2000), 0.975))
    assert np.mean(called) < 0.065
    assert np.median(widths) < {0.0: 1.1, 1.0: 1.0, 2.0: 0.9 if num_variants == 2 else 0.65}[effect]


def test_what_has_never_acted_says_nothing_of_tau():
    """A variant whose runs are those of another, to the bit, counts once."""
    values = two_way(np.random.default_rng(9), 4, 3, 0.02, 0.03)
    once, twice = (run_to_run(repeats_of(rows)) for rows in (values, [*values, values[1], values[1]]))
    assert twice.paired_sd == pytest.approx(once.paired_sd, rel=1e-12)


def test_without_known_or_shared_starts_a_comparison_is_as_it_was():
    values = two_way(np.random.default_rng(10), 4, 3, 0.02, 0.03)
    plain = run_to_run([Repeats.of(row, [0.0] * 3) for row in values])
    apart = run_to_run(
        [Repeats.of(row, [0.0] * 3, [f"{number} {seed}" for seed in range(3)]) for number, row in enumerate(values)]
    )
    assert not plain.has_shared
    assert (plain.sd, plain.paired_sd) == (apart.sd, apart.paired_sd)
    assert plain.sd == plain.paired_sd


def test_seeds_that_all_variants_share_leave_the_difference_of_levels():
    """Three seeds that end .05 apart, whatever the variant, and a variant that ends .02 higher."""

    def levels(shift, noise):
        return [
            Level(value=0.5 + 0.05 * number + shift + error, variance=0.0, start=SEEDS[number])
            for number, error in enumerate(noise)
        ]

    variants = [
        levels(0.0, (0.002, -0.001, 0.0)),
        levels(0.02, (0.0, 0.001, -0.002)),
        levels(0, (0.001, 0.001, -0.002)),
    ]
    spread = run_to_run([level_repeats(one) for one in variants])
    found = level_difference(variants[1], variants[0], spread)
    assert found.lo is not None
    assert 0.01 < found.lo < found.estimate == pytest.approx(0.02, abs=0.001)
    assert f"({spread.paired_sd:.4f} where they begin alike)" in str(spread)


def test_a_start_is_read_again_once_the_recipe_is_whole_again(tmp_path):
    home = trained_home(tmp_path / "home", study_of(tmp_path))
    sweep = read_sweep(home, "before")
    starts = [run.curve.start for run in read_results(sweep).runs]
    assert len(set(starts)) == 3  # one for each seed, whatever the variant
    assert starts[:3] == starts[3:]
    path = home.run(sweep.plan.runs[0].id).path / "recipe.json"
    whole = path.read_bytes()
    path.write_bytes(b"{")
    assert [run.curve.start for run in read_results(sweep).runs] == ["", *starts[1:]]
    path.write_bytes(whole)
    assert [run.curve.start for run in read_results(sweep).runs] == starts
