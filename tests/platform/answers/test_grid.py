"""The paper's fit against the paper's own procedure, SciPy's `curve_fit` at every pair of the grid."""

import math

import curves
import numpy as np
import pytest
from curves import eq1, readings
from scipy.optimize import curve_fit

from ablations.answers.paper_grid import paper_fit
from ablations.errors import AblationsError
from ablations.fit.curve import Curve

CEILINGS = [0.45 + 0.005 * i for i in range(71)]
MIDPOINTS = [100 + (40_000 - 100) / 99 * i for i in range(100)]
"""ScaleRL A.5: A in {0.450, 0.455, ..., 0.800}, C_mid in 100 linearly spaced values in [100, 40000]."""
SEVENTH = MIDPOINTS[6]
"""2518.18 GPU-hours, next to ScaleRL's own C_mid of 2542 (table 1)."""


def exact(A=0.61, B=1.92, C_mid=SEVENTH, unit=1.0) -> Curve:
    compute = readings()
    return Curve(name="exact", compute=unit * compute, score=eq1(compute, A, B, C_mid))


def noisy(seed: int) -> Curve:
    """With run noise of rho 0.7."""
    return curves.noisy(seed, rho=0.7)


def literal_error(curve: Curve, A: float, C_mid: float) -> float:
    """Squared error of the best B for one pair by `curve_fit`, infinite where it finds none."""
    chosen = curve.compute > 1500
    C, R, start = curve.compute[chosen], curve.score[chosen], curve.score[0]
    try:
        (B,), _ = curve_fit(lambda C, B: eq1(C, A, B, C_mid, start), C, R, p0=(1.5,))
    except RuntimeError:
        return math.inf
    return float(np.sum((R - eq1(C, A, B, C_mid, start)) ** 2)) if B > 0 else math.inf


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # a step of curve_fit to B < 0 overflows
@pytest.mark.filterwarnings("ignore:Covariance of the parameters")
def test_finds_the_pair_that_curve_fit_at_all_7100_pairs_finds():
    curve = noisy(1)
    error, A, C_mid = min((literal_error(curve, A, C_mid), A, C_mid) for A in CEILINGS for C_mid in MIDPOINTS)
    fit = paper_fit(curve)
    assert pytest.approx(A, abs=1e-12) == fit.A
    assert fit.C_mid == pytest.approx(C_mid, rel=1e-12)
    assert fit.sse == pytest.approx(error, rel=1e-8)
    assert fit.edges == ()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.filterwarnings("ignore:Covariance of the parameters")
def test_no_pair_of_the_finer_grid_is_better_than_the_one_it_finds():
    curve = noisy(3)
    fit = paper_fit(curve, grid="finer")
    start, midpoints = curve.score[0], 100 * 400 ** (np.arange(400) / 399)
    nearest = int(np.argmin(np.abs(midpoints - fit.C_mid)))
    assert fit.C_mid == pytest.approx(midpoints[nearest], rel=1e-12)
    assert pytest.approx(round(1000 * fit.A), abs=1e-9) == 1000 * fit.A
    beside = [(fit.A + i / 1000, midpoints[nearest + k]) for i in range(-8, 9) for k in range(-8, 9)]
    far = [(A, C_mid) for A in np.arange(math.ceil(1000 * start), 1001, 25) / 1000 for C_mid in midpoints[::10]]
    errors = [literal_error(curve, A, C_mid) for A, C_mid in beside + far]
    assert min(errors) == pytest.approx(fit.sse, rel=1e-8)
    assert fit.sse < paper_fit(curve).sse


@pytest.mark.parametrize(("A", "B"), [(0.45, 0.6), (0.61, 1.92), (0.795, 5.0)])
def test_recovers_a_curve_whose_pair_is_on_the_grid(A, B):
    fit = paper_fit(exact(A, B))
    assert pytest.approx(A, abs=1e-12) == fit.A
    assert fit.C_mid == pytest.approx(SEVENTH, rel=1e-12)
    assert pytest.approx(B, rel=1e-7) == fit.B
    assert fit.sse < 1e-20


def test_the_reading_at_the_cut_off_is_left_out_and_the_one_at_the_end_is_fitted():
    fit = paper_fit(exact(), fit_from=2130, fit_to=4260)
    assert (fit.window, fit.points) == ((2343.0, 4260.0), 10)


def test_a_ceiling_over_0_8_is_at_the_end_of_the_stated_grid_and_inside_the_finer():
    curve = exact(A=0.9)
    assert (paper_fit(curve).A, paper_fit(curve).edges) == (0.8, ("A",))
    finer = paper_fit(curve, grid="finer")
    # The finer C_mid are 1.5 % apart.
    assert pytest.approx(0.9, abs=0.003) == finer.A
    assert finer.edges == ()


def test_with_a_fixed_ceiling_only_midpoint_and_exponent_are_fitted():
    curve = noisy(5)
    chosen = curve.compute > 1500
    C, R, start = curve.compute[chosen], curve.score[chosen], curve.score[0]

    def refit(C_mid):
        (B,), _ = curve_fit(lambda C, B: eq1(C, 0.603, B, C_mid, start), C, R, p0=(1.5,), bounds=(0.05, 12))
        return np.sum((R - eq1(C, 0.603, B, C_mid, start)) ** 2), C_mid, B

    error, C_mid, B = min(map(refit, MIDPOINTS))
    fit = paper_fit(curve, A=0.603)
    assert fit.A == 0.603
    assert fit.C_mid == pytest.approx(C_mid, rel=1e-12)
    assert pytest.approx(B, rel=1e-5) == fit.B
    assert fit.sse == pytest.approx(error, rel=1e-9)


@pytest.mark.parametrize(
    "score", [np.full(38, 0.3), np.full(38, 1.0), np.linspace(0.6, 0.2, 38), np.tile([0.0, 1.0], 19)]
)
def test_curves_that_eq_1_does_not_describe_still_have_a_best_pair(score):
    curve = Curve(name="odd", compute=213.0 * np.arange(38), score=score)
    fit = paper_fit(curve, grid="finer")
    assert all(map(math.isfinite, (fit.A, fit.B, fit.C_mid, fit.sse)))
    assert fit.sse <= float(np.sum((score[8:] - score[0]) ** 2)) + 1e-12


def test_a_curve_without_a_reading_before_rl_is_refused():
    with pytest.raises(
        AblationsError, match=r"'late': the first evaluation is at compute 100; .* from an evaluation at"
    ):
        paper_fit(Curve(name="late", compute=np.arange(100.0, 9000, 100), score=np.full(89, 0.4)))


def test_too_few_readings_beyond_the_cut_off_are_refused_with_the_number_needed():
    with pytest.raises(AblationsError, match=r"4 evaluations with compute in \(1500, 2343\]; .* at least 5"):
        paper_fit(exact(), fit_to=2343)
