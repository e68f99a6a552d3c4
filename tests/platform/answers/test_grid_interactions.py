"""Interactions of a grid: from the levels of its cells by hand, and only where there is one."""

from itertools import product

import numpy as np
import pytest
from curves import noisy

from ablations.answers.compare import compare
from ablations.answers.grid_interactions import grid_interactions
from ablations.fit.fitting import fit_curve

AXES = {"loss": ("cispo", "dapo"), "batch": ("16", "32"), "seedless": ("x", "y")}
BASES = {"loss": "cispo", "batch": "16", "seedless": "x"}


@pytest.fixture(scope="module")
def grid():
    """Fits of known curves: dapo loses .10 of ceiling at batch 32 only; the third axis changes nothing."""
    cells = list(product(*AXES.values()))
    return {
        cell: [
            fit_curve(noisy(10 * place + seed, A=0.51 if cell[:2] == ("dapo", "32") else 0.61, C_mid=1500.0))
            for seed in range(2)
        ]
        for place, cell in enumerate(cells)
    }


def interactions_of(cells, axes):
    named = {",".join(cell): fits for cell, fits in cells.items()}
    comparison = compare(named, dict.fromkeys(named, 1.0), next(iter(named)))
    return comparison, grid_interactions(cells, axes, BASES, comparison.spreads, comparison.footing.compute)


def test_the_only_interaction_is_found_and_is_the_difference_of_differences(grid):
    comparison, found = interactions_of(grid, AXES)
    level = {tuple(line.name.split(",")): line.level for line in comparison.variants}
    assert [(one.first, one.second) for one in found] == [
        (("loss", "dapo"), ("batch", "32")),
        (("loss", "dapo"), ("seedless", "y")),
        (("batch", "32"), ("seedless", "y")),
    ]
    one, *others = found
    by_hand = np.mean(
        [
            level["dapo", "32", c] - level["cispo", "32", c] - (level["dapo", "16", c] - level["cispo", "16", c])
            for c in ("x", "y")
        ]
    )
    assert one.answers["level"].estimate == pytest.approx(by_hand)
    assert one.answers["level"].verdict == "level down"
    assert one.answers["ceiling"].verdict == "ceiling down"
    assert one.answers["ceiling"].lo <= -0.1 <= one.answers["ceiling"].hi
    assert one.answers["level"].joint_lo < one.answers["level"].lo
    assert not any(other.answers[name].differs for other in others for name in ("level", "ceiling"))


def test_its_variance_is_that_of_four_cells(grid):
    """Of two cells a difference has half the variance of an interaction's four, all of as many runs."""
    plane = {cell[:2]: fits for cell, fits in grid.items() if cell[2] == "x"}
    comparison, (one,) = interactions_of(plane, {name: AXES[name] for name in ("loss", "batch")})
    answer = comparison.variants[1].answers["level"]
    widths = [(each.hi - each.lo) / 2 for each in (one.answers["level"], answer)]
    assert widths[0] / widths[1] == pytest.approx(np.sqrt(2), rel=0.25)  # the variants' own squares differ a little


def test_without_all_four_cells_there_is_none(grid):
    plane = {cell[:2]: fits for cell, fits in grid.items() if cell[2] == "x" and cell[:2] != ("cispo", "32")}
    assert interactions_of(plane, {name: AXES[name] for name in ("loss", "batch")})[1] == []
