"""Sums and densities of the shapes in a box: polynomials against the curves themselves and against dense matrices."""

import numpy as np
import pytest

from ablations.fit.engine import shape_density
from ablations.fit.engine.anchor import anchors
from ablations.fit.engine.family import FAMILIES, SIGMOID
from ablations.fit.engine.noise import noise_grid
from ablations.fit.engine.shape_density import Cells, CurveModel, density_of_box

SHAPE = (61, 41)
X = np.log(np.arange(1, 201) / 200)
AROUND = {"power law": (-1.0, 0.5), "logistic in compute": (0.2, 1.6)}
"""p and q of families whose parameters are others than those of eq. 1."""


def model(family, sd=0.01, num=200, A=0.65):
    x = np.log(np.arange(1, num + 1) / num)
    curve = 0.3 + (A - 0.3) * SIGMOID.basis(x, np.array(-1.4), np.array(0.6))
    y = curve + sd * np.random.default_rng(3).standard_normal(num)
    noise = noise_grid(num, sampling_variance=4e-5, residual_variance=sd**2)
    return CurveModel(family=family, x=x, y=y, noise=noise, anchors=anchors(0.3, 4e-5, "anchored"))


def small_box(family):
    p, q = AROUND.get(family.name, (-1.4, 0.6))
    has_q = family.box(X)[1][0] < family.box(X)[1][1]
    return (p - 0.1, p + 0.1), ((q - 0.15, q + 0.15) if has_q else (0.0, 0.0))


def cells():
    """Draws of all noises in order, and the p and q of each, up to half a cell beyond the box."""
    rng = np.random.default_rng(4)
    rho, s = np.unravel_index(np.sort(rng.integers(0, 50, 300)), (5, 10))
    return Cells(rho=rho, s=s, anchor=rng.integers(0, 2, 300), node=rng.integers(0, 1681, 300))


@pytest.mark.parametrize("A", [0.65, 0.99])  # near 1 the density bends at the wall
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_polynomials_give_what_the_curves_give(family, A, monkeypatch):
    of, box = model(family, A=A), small_box(family)
    found, sums = density_of_box(of, box, SHAPE)
    monkeypatch.setattr(shape_density, "ENOUGH_FOR_POLYNOMIALS", np.inf)
    expected, sums_of_curves = density_of_box(of, box, SHAPE)
    assert sums.__qualname__ != sums_of_curves.__qualname__
    likely = expected > expected.max() - 50
    assert found[likely] - expected[likely] == pytest.approx(0, abs=1e-7)
    some = cells()
    p, q = (np.random.default_rng(n).uniform(*box[n], 300) for n in (0, 1))
    for name, values in vars(sums_of_curves(p, q, some)).items():
        assert vars(sums(p, q, some))[name] == pytest.approx(values, rel=1e-11), name


def test_sums_are_those_of_dense_matrices():
    of, box, some = model(SIGMOID), small_box(SIGMOID), cells()
    p, q = np.linspace(*box[0], 300), np.linspace(*box[1], 300)[::-1]
    sums = density_of_box(of, box, SHAPE)[1](p, q, some)
    lags = np.abs(np.subtract.outer(np.arange(200), np.arange(200)))
    for draw in (0, 50, 299):
        rho, s = some.rho[draw], some.s[draw]
        inverse = np.linalg.inv(4e-5 * np.eye(200) + of.noise.run_variances[s] * of.noise.rhos[rho] ** lags)
        g = 1 / (1 + np.exp(np.exp(q[draw]) * (p[draw] - of.x)))
        of_draw = {name: values[draw] for name, values in vars(sums).items()}
        pairs = {"u_u": (1 - g, 1 - g), "u_g": (1 - g, g), "g_g": (g, g)}
        pairs |= {"u_y": (1 - g, of.y), "g_y": (g, of.y), "y_y": (of.y, of.y)}
        assert of_draw == pytest.approx({name: a @ inverse @ b for name, (a, b) in pairs.items()}, rel=1e-9)


@pytest.mark.parametrize(("box", "num"), [(SIGMOID.box(X), 200), (small_box(SIGMOID), 60)], ids=["wide", "few"])
def test_over_a_wide_box_and_for_few_readings_the_curves_are_summed(box, num):
    of = model(SIGMOID, num=num)
    assert density_of_box(of, box, SHAPE)[1].__qualname__.startswith("_sums_of_curves")
