"""The fit exactly as in the ScaleRL paper: a grid of asymptotes and midpoints, and the best B for each pair.

The paper calls SciPy's `curve_fit` for all 7,100 pairs. Nearly all pairs are far from the best. Eq. 1 is linear in A -
R_0, so three sums over the readings give the squared error of any A at a given (C_mid, B). These sums on a grid of B
show which pairs can be best; only for those is B refined. The best pair equals that of the literal procedure
(`benchmarks/paper_grid.py`).

For reproduction only: the grid is coarse, caps A, and trusts the one reading before RL. `fit_curve` does none of this.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ablations.errors import AblationsError
from ablations.fit.curve import Curve

PaperGrid = Literal["stated", "finer"]

EARLY_CUTOFF_GPU_HOURS = 1500.0
"""Readings up to this compute are left out: early learning is nearly linear and noisy (ScaleRL §2.1, A.6)."""
PAPER_BUDGET_GPU_HOURS = 16_000.0
"""Budget of a run in the paper's ablations; cut-off and midpoints are in proportion to it."""
LEAST_C_MID, LARGEST_C_MID = 1 / 160, 2.5
"""Limits of the C_mid grid as multiples of the budget: 100 and 40,000 GPU-hours for a budget of 16,000 (ScaleRL
A.5)."""
STATED_A = np.arange(450, 801, 5) / 1000
NUM_STATED_C_MID, NUM_FINER_C_MID = 100, 400
FINER_STEPS_OF_A = 1000
LEAST_B, LARGEST_B = 0.05, 12.0
"""Limits of B; the paper requires B > 0 only, and its table 1 has 1.09 to 2.44."""
PAPER_MIN_READINGS = 5
"""Minimum number of readings: two more than the parameters A, B and C_mid."""

B_NODES = np.geomspace(LEAST_B, LARGEST_B, 61)
LARGEST_EXPONENT = 700.0
LEAST_SUM = 1e-300
"""Lower bound of a divisor, for a g that vanishes at every reading."""
RESIDUAL_ROUNDING = 1e-12
"""Relative rounding error of sums that nearly cancel if a curve goes through its readings exactly."""
MAX_NEWTON_STEPS = 40


@dataclass(frozen=True, kw_only=True, eq=False)
class PaperFit:
    """Eq. 1 as the paper fits it: a point of its grid, without an interval of its own.

        PaperFit(curve=..., A=0.610, B=1.94, C_mid=2518.2, R_0=0.31, grid="stated", edges=(), ...)

    The paper takes +-0.02 as the uncertainty of every A (ScaleRL §4, A.5).
    """

    curve: Curve
    A: float
    B: float
    C_mid: float
    R_0: float
    """The reading at compute 0."""
    grid: PaperGrid
    edges: tuple[str, ...]
    """Parameters among A, B and C_mid at an end of their search range, so that the grid decides, not the readings."""
    window: tuple[float, float]
    """Compute of the first and of the last fitted reading."""
    residuals: np.ndarray

    @property
    def points(self) -> int:
        """Number of fitted readings."""
        return self.residuals.size

    @property
    def sse(self) -> float:
        """Sum of squared residuals, which the grid search minimises."""
        return float(self.residuals @ self.residuals)

    def predict(self, compute: np.ndarray | float) -> np.ndarray:
        """R_C = R_0 + (A - R_0) / (1 + (C_mid / C)^B) (ScaleRL eq. 1, arXiv 2510.13786) at each compute."""
        with np.errstate(divide="ignore"):
            log_ratio = np.log(self.C_mid) - np.log(np.atleast_1d(compute))
        return self.R_0 + (self.A - self.R_0) * _gain_share(log_ratio, self.B)

    def to_json(self) -> dict[str, Any]:
        """The fit as plain data, without its residuals."""
        names = ("A", "B", "C_mid", "R_0", "grid", "edges", "points", "window", "sse")
        return {"curve": self.curve.name} | {name: getattr(self, name) for name in names}


@dataclass(frozen=True, kw_only=True, eq=False)
class PaperReadings:
    """The fitted readings: compute, pass rate minus R_0, and R_0."""

    compute: np.ndarray
    gained: np.ndarray
    R_0: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Pairs:
    """Candidate pairs (A, C_mid), one per entry, with ln B of the best node."""

    A: np.ndarray
    C_mid: np.ndarray
    log_B: np.ndarray


def paper_fit(
    curve: Curve,
    *,
    fit_from: float = EARLY_CUTOFF_GPU_HOURS,
    fit_to: float = float("inf"),
    grid: PaperGrid = "stated",
    budget: float = PAPER_BUDGET_GPU_HOURS,
    A: float | None = None,
) -> PaperFit:
    """The grid pair (A, C_mid) whose best B gives the smallest squared error over (fit_from, fit_to].

    "stated" is the paper's grid (ScaleRL A.5): A in {0.450, 0.455, ..., 0.800}, C_mid in 100 evenly spaced values.
    "finer" has A from R_0 to 1 in steps of 0.001 and C_mid in 400 values evenly spaced in ln C_mid. The midpoints reach
    from budget / 160 to 2.5 budget, in the unit of the curve: 100 to 40,000 with the paper's 16,000 GPU-hours. With `A`
    given, A is fixed, and C_mid and B are fitted.

    Raises AblationsError if there is no reading at compute 0, which is R_0, or fewer than PAPER_MIN_READINGS to fit.
    """
    readings = _readings(curve, fit_from, fit_to)
    A_nodes = _asymptotes(grid, readings.R_0) if A is None else np.array([A])
    C_mid_nodes = _midpoints(grid, budget)
    pairs = _screen(readings, A_nodes, C_mid_nodes)
    log_B, errors = _polish(pairs, readings)
    best = int(np.argmin(errors))
    A_best, C_mid, B = float(pairs.A[best]), float(pairs.C_mid[best]), float(np.exp(log_B[best]))
    on_edge = {
        "A": A is None and A_best in (A_nodes[0], A_nodes[-1]),
        "B": bool(np.isclose(B, [LEAST_B, LARGEST_B]).any()),
        "C_mid": C_mid in (C_mid_nodes[0], C_mid_nodes[-1]),
    }
    share = _gain_share(np.log(C_mid / readings.compute), B)
    return PaperFit(
        curve=curve,
        A=A_best,
        B=B,
        C_mid=C_mid,
        R_0=readings.R_0,
        grid=grid,
        edges=tuple(name for name, on in on_edge.items() if on),
        window=(float(readings.compute[0]), float(readings.compute[-1])),
        residuals=readings.gained - (A_best - readings.R_0) * share,
    )


def _readings(curve: Curve, fit_from: float, fit_to: float) -> PaperReadings:
    if curve.compute[0] != 0:
        raise AblationsError(
            f"curve {curve.name!r}: the first evaluation is at compute {curve.compute[0]:g}; the paper's fit takes R_0 "
            "from an evaluation at compute 0"
        )
    chosen = (curve.compute > max(fit_from, 0)) & (curve.compute <= fit_to)
    if (found := int(chosen.sum())) < PAPER_MIN_READINGS:
        counted = "1 evaluation" if found == 1 else f"{found} evaluations"
        raise AblationsError(
            f"curve {curve.name!r}: {counted} with compute in ({fit_from:g}, {fit_to:g}]; "
            f"the paper's fit needs at least {PAPER_MIN_READINGS}"
        )
    R_0 = float(curve.score[0])
    return PaperReadings(compute=curve.compute[chosen], gained=curve.score[chosen] - R_0, R_0=R_0)


def _asymptotes(grid: PaperGrid, R_0: float) -> np.ndarray:
    if grid == "stated":
        return STATED_A
    return np.arange(np.ceil(R_0 * FINER_STEPS_OF_A), FINER_STEPS_OF_A + 1) / FINER_STEPS_OF_A


def _midpoints(grid: PaperGrid, budget: float) -> np.ndarray:
    if grid == "stated":
        return np.linspace(LEAST_C_MID * budget, LARGEST_C_MID * budget, NUM_STATED_C_MID)
    return np.geomspace(LEAST_C_MID * budget, LARGEST_C_MID * budget, NUM_FINER_C_MID)


def _gain_share(log_ratio: np.ndarray, B: np.ndarray | float) -> np.ndarray:
    """g = 1 / (1 + (C_mid / C)^B), `log_ratio` = ln(C_mid / C)."""
    return 1 / (1 + np.exp(np.minimum(B * log_ratio, LARGEST_EXPONENT)))


def _screen(readings: PaperReadings, A_nodes: np.ndarray, C_mid_nodes: np.ndarray) -> Pairs:
    """The pairs that can be best: no B brings the squared error of the others down to the smallest at a node.

    With y' = R - R_0 and h = A - R_0 the squared error at (C_mid, B) is sum y'^2 - 2 h sum g y' + h^2 sum g^2, smallest
    at h = sum g y' / sum g^2.
    """
    sum_gy = np.empty((C_mid_nodes.size, B_NODES.size))
    sum_gg = np.empty_like(sum_gy)
    for k, C_mid in enumerate(C_mid_nodes):  # one by one, since g of all would take gigabytes for 10,000 readings
        g = _gain_share(np.log(C_mid / readings.compute), B_NODES[:, None])
        # einsum, since BLAS would wake all its threads for this.
        sum_gy[k] = np.einsum("bi,i->b", g, readings.gained)
        sum_gg[k] = np.maximum(np.einsum("bi,bi->b", g, g), LEAST_SUM)
    sum_yy, gains = float(readings.gained @ readings.gained), A_nodes - readings.R_0

    # h is unrestricted here, so this is a lower bound for every node of the grid of A.
    _, least = _least_over_B(sum_yy - sum_gy**2 / sum_gg)
    nearest = gains[np.searchsorted((gains[1:] + gains[:-1]) / 2, sum_gy / sum_gg)]
    best_node = float(np.min(sum_yy + nearest * (nearest * sum_gg - 2 * sum_gy))) + RESIDUAL_ROUNDING * sum_yy
    rows = np.flatnonzero(least <= best_node)

    h = gains[:, None, None]
    node, least = _least_over_B(sum_yy + h * (h * sum_gg[rows] - 2 * sum_gy[rows]))
    a, k = np.nonzero(least <= best_node)
    return Pairs(A=A_nodes[a], C_mid=C_mid_nodes[rows[k]], log_B=np.log(B_NODES[node[a, k]]))


def _least_over_B(errors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The best node of B on the last axis, and a lower bound for the error between the nodes around it.

    A parabola through three nodes lies below the middle one, if that is the best, by an eighth of their second
    difference at most. The bound allows for twice as much.
    """
    node = np.argmin(errors, axis=-1)
    middle = np.clip(node, 1, errors.shape[-1] - 2)

    def at(nodes: np.ndarray) -> np.ndarray:
        return np.take_along_axis(errors, nodes[..., None], axis=-1)[..., 0]

    second_difference = at(middle - 1) - 2 * at(middle) + at(middle + 1)
    return node, at(node) - np.abs(second_difference) / 4


def _polish(pairs: Pairs, readings: PaperReadings) -> tuple[np.ndarray, np.ndarray]:
    """ln B of smallest squared error for each pair, between the nodes beside its best one, and that error.

    Newton's method inside a bracket that the sign of the slope narrows, since residuals may be too large for
    Gauss-Newton. With u = B ln(C_mid / C): dg / d ln B = -u g (1 - g), and its derivative is u (u (1 - 2 g) - 1) g (1 -
    g).
    """
    log_ratio = np.log(pairs.C_mid[:, None] / readings.compute)
    gain, step_of_nodes = pairs.A[:, None] - readings.R_0, np.log(B_NODES[1] / B_NODES[0])
    lo = np.maximum(pairs.log_B - step_of_nodes, np.log(LEAST_B))
    hi = np.minimum(pairs.log_B + step_of_nodes, np.log(LARGEST_B))
    log_B = pairs.log_B
    for _ in range(MAX_NEWTON_STEPS):
        u = np.exp(log_B)[:, None] * log_ratio
        g = 1 / (1 + np.exp(np.minimum(u, LARGEST_EXPONENT)))
        spread = gain * u * g * (1 - g)
        residual = readings.gained - gain * g
        slope = np.einsum("ij,ij->i", residual, spread)
        curvature = np.einsum("ij,ij->i", spread, spread - residual * (u * (1 - 2 * g) - 1))
        lo, hi = np.where(slope < 0, log_B, lo), np.where(slope > 0, log_B, hi)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            newton = log_B - slope / curvature
        # Rounding makes the solution either end of the bracket, so a step there must stay allowed.
        inside = (curvature > 0) & (lo <= newton) & (newton <= hi)
        step = np.where(inside, newton, (lo + hi) / 2) - log_B
        step[slope == 0] = 0
        log_B = log_B + step
        if np.max(np.abs(step)) < 1e-8:
            break
    residual = readings.gained - gain * _gain_share(log_ratio, np.exp(log_B)[:, None])
    return log_B, np.einsum("ij,ij->i", residual, residual)
