import numpy as np
import pytest

from ablations.fit.engine.anchor import Anchor
from ablations.fit.engine.family import SIGMOID
from ablations.fit.engine.grid_density import log_density_of_shapes
from ablations.fit.engine.projection import Prior, best_nodes, box_nodes, least_deviances
from ablations.fit.engine.sums import weighted_sums

X = np.log(np.linspace(0.1, 1, 10))
ANCHOR = Anchor(value=0.3, own_variance=4e-4, probability=0.7)
NODES = box_nodes(SIGMOID, X, SIGMOID.box(X), (21, 11))


@pytest.mark.parametrize("A", [0.5, 0.6])
def test_the_density_of_a_shape_is_that_of_readings_drawn_with_a_gaussian_r_and_a_flat_a(A):
    y = 0.3 + (A - 0.3) * SIGMOID.basis(X, np.log(0.3), np.log(1.8)) + 0.02 * np.sin(5 * np.arange(10))
    variance, node = 0.02**2, 115
    sums = weighted_sums(NODES.g.T, y, np.ones(10), np.full((1, 10), 1 / variance))
    log_precision = np.full((1, 1), -10 * np.log(variance))
    found = log_density_of_shapes(sums, log_precision, np.zeros((1, 1)), [ANCHOR])[0, 0, node]
    # By summing over (r, A) directly, with A far from 0 and 1 and r far from both 0 and A: walls change nothing.
    r, A_of = np.meshgrid(np.linspace(0.1, 0.5, 801), np.linspace(-3, 4, 7001), indexing="ij")
    g = NODES.g[node]
    square = sum((y_i - r - (A_of - r) * g_i) ** 2 for y_i, g_i in zip(y, g, strict=True))
    log_terms = -0.5 * (square / variance + (r - 0.3) ** 2 / 4e-4) - 5 * np.log(variance) - 0.5 * np.log(4e-4)
    inside = (A_of >= 0) & (A_of <= 1)
    top = log_terms.max()
    direct = top + np.log((np.exp(log_terms - top) * inside).sum() * (0.4 / 800) * 1e-3 / (2 * np.pi)) + np.log(0.7)
    assert found == pytest.approx(direct, abs=2e-2)


@pytest.mark.parametrize("level", [0.0, 0.05, 0.5, 0.95, 1.0])
def test_passing_nodes_over_finds_the_same_best_node(level):
    for seed in range(20):
        y = np.clip(level + 0.3 * np.random.default_rng(seed).standard_normal(10), 0, 1)
        given = {"variance": 1e-3, "priors": [Prior(value=0.2, variance=1e-2), Prior()]}
        r, every = least_deviances([NODES], y, **given, within=np.inf)
        best = every.argmin(axis=1)
        for found, expected in zip(
            best_nodes([NODES, NODES], y, **given), (best, r[[0, 1], best], every.min(1)), strict=True
        ):
            assert np.array_equal(found, np.stack([expected, expected], axis=1))
