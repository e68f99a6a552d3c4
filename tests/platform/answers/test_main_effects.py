"""Main effects of a grid: by hand, against an analysis of variance, and their coverage in simulated studies."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from curves import noisy
from scipy.stats import t

from ablations.answers.compare import compare
from ablations.answers.main_effects import main_effects
from ablations.answers.questions import BY_NAME
from ablations.answers.repeats import Repeats
from ablations.answers.run_to_run import PRIOR_FREEDOM, RunToRun, run_to_run
from ablations.answers.student import interval_of
from ablations.fit.fitting import fit_curve

AXES = {"loss": ("cispo", "dapo"), "batch": ("16", "32")}
BASES = {"loss": "cispo", "batch": "16"}


def contrast_of(values: dict[tuple[str, str], list[float]], spread: RunToRun, weights: dict[tuple[str, str], float]):
    found = spread.of_contrast([(weights[cell], Repeats.of(some, [0.0] * len(some))) for cell, some in values.items()])
    return found, interval_of([found], found.estimate)


def test_an_effect_is_the_mean_of_the_differences_with_the_spread_of_all_cells():
    # Means .60, .62, .55, .59: (.55 - .60 + .59 - .62) / 2 = -.04. Squares about the means: .0002 in each of the four.
    values = {
        ("cispo", "16"): [0.59, 0.61],
        ("cispo", "32"): [0.61, 0.63],
        ("dapo", "16"): [0.54, 0.56],
        ("dapo", "32"): [0.58, 0.60],
    }
    spread = run_to_run([Repeats.of(some, [0.0, 0.0]) for some in values.values()])
    weights = {cell: (0.5 if cell[0] == "dapo" else -0.5) for cell in values}
    found, interval = contrast_of(values, spread, weights)
    # Pool: .0008 / 4 = .0002. Each cell: (3 x .0002 + .0002) / 4 = .0002; four times .25 x .0002 / 2 is .0001.
    assert PRIOR_FREEDOM == 3
    assert found.estimate == pytest.approx(-0.04)
    assert found.variance == pytest.approx(0.0001)
    # Satterthwaite's are 16, of which the pool of four knows no more than four.
    assert found.freedom == 4
    half = t(4).ppf(0.975) * 0.01
    assert (interval.lo, interval.hi) == pytest.approx((-0.04 - half, -0.04 + half))


def test_ninety_five_percent_intervals_hold_in_ninety_five_percent_of_studies():
    """A grid of 2 x 3 with three seeds, which share .03, three times the rest; 2,000 studies give the share to .005."""
    rng, held, num_studies = np.random.default_rng(7), 0, 2000
    starts = ["a", "b", "c"]
    for _ in range(num_studies):
        table = 0.03 * rng.standard_normal(3) + 0.01 * rng.standard_normal((2, 3, 3))
        groups = [[Repeats.of(row.tolist(), [0.0] * 3, starts) for row in side] for side in table]
        spread = run_to_run([one for side in groups for one in side])
        found = spread.of_contrast(
            [(sign / 3, one) for sign, side in zip((1, -1), groups, strict=True) for one in side]
        )
        interval = interval_of([found], found.estimate)
        held += interval.lo <= 0 <= interval.hi
    assert held / num_studies == pytest.approx(0.95, abs=0.015)


@pytest.fixture(scope="module")
def grid():
    """Fits of known curves: dapo has a ceiling .05 lower and twice the compute; the batch changes nothing."""
    law: dict[str, dict[str, Any]] = {"cispo": {"A": 0.61, "C_mid": 1500.0}, "dapo": {"A": 0.56, "C_mid": 3000.0}}
    cells = list(product(*AXES.values()))
    return {
        cell: [fit_curve(noisy(10 * place + seed, **law[cell[0]])) for seed in range(2)]
        for place, cell in enumerate(cells)
    }


def effects_of(grid):
    named = {",".join(cell): fits for cell, fits in grid.items()}
    comparison = compare(named, dict.fromkeys(named, 1.0), "cispo,16")
    return {(one.axis, one.value): one for one in main_effects(grid, AXES, BASES, comparison.spreads)}


def test_known_effects_are_found_on_the_axis_that_has_them(grid):
    effects = effects_of(grid)
    loss, batch = effects["loss", "dapo"], effects["batch", "32"]
    assert [loss.answers[name].verdict for name in BY_NAME] == ["level down", "ceiling down", "more compute"]
    assert loss.answers["ceiling"].lo <= -0.05 <= loss.answers["ceiling"].hi
    assert not any(batch.answers[name].differs for name in BY_NAME)
    assert loss.answers["level"].joint_lo < loss.answers["level"].lo
    assert (loss.num_pairs, loss.against, batch.against) == (2, "cispo", "16")


def test_a_missing_cell_leaves_out_its_pair_and_a_value_without_a_pair_has_no_effect(grid):
    three = {cell: fits for cell, fits in grid.items() if cell != ("dapo", "32")}
    effects = effects_of(three)
    assert effects["loss", "dapo"].num_pairs == effects["batch", "32"].num_pairs == 1
    two = {cell: grid[cell] for cell in (("cispo", "16"), ("dapo", "32"))}
    assert effects_of(two) == {}
