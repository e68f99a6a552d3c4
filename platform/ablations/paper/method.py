"""The paper's method on curves whose truth is known: simulations of the fits in its table 1 (arXiv 2510.13786).

    law        a power law finds another ceiling in every window, the sigmoid the same one (section A.4)
    cutoff     the sigmoid finds the same ceiling wherever the fit begins and ends (section A.7)
    forecast   the first half of a run foretells its end (section 4)
    margin     three runs of one recipe end within +-0.015 of each other (section A.5)

A simulated run has 75 readings of 1,000 prompts x 16 samples, and its own noise of sd 0.0045. The paper had one
run of each; here there are `NUM_RUNS`, so that a number has a range.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.optimize import least_squares

from ablations.fit.curve import Curve
from ablations.paper.grid import EARLY_CUTOFF_GPU_HOURS, paper_fit
from ablations.paper.published import PublishedFit, published

Method = Literal["law", "cutoff", "forecast", "margin"]
NUM_RUNS = 20
NUM_READINGS = 75
NUM_SAMPLES = 16_000
"""1,000 held-out prompts, 16 generations of each (ScaleRL A.5)."""
RUN_NOISE_SD = 0.0045
R_0 = 0.3
"""The paper publishes no R_0; its figures begin near this."""
RUN_TO_RUN_SD = 0.0075
"""Of A between runs of one recipe: three of them then lie within +-0.015 (ScaleRL A.5)."""
METHOD_SEED = 251013786
BUDGETS = {"ScaleRL": 16_000.0, "ScaleRL-bs2048": 100_000.0}
"""GPU-hours of the runs whose fits are simulated; the second is the paper's run of 100k."""


@dataclass(frozen=True, kw_only=True)
class MethodLine:
    """One number of the paper beside the same number here.

    MethodLine(what="A, sigmoid on 1.5k to 50k", published="0.645", median=0.646, lo=0.640, hi=0.655)
    """

    what: str
    published: str
    median: float
    lo: float
    """The fifth percentile of the simulated runs, `hi` the ninety-fifth."""
    hi: float


def reproduced(method: Method) -> list[MethodLine]:
    """The lines of one part of the method; takes a few seconds."""
    return list(METHODS[method]())


def power_law_ceiling(curve: Curve, fit_from: float, fit_to: float) -> float:
    """A of R = A - D / C^b with the least squared error on (fit_from, fit_to], A in [0, 1], b and D > 0 (ScaleRL A.4).

    The best of SciPy's `least_squares` from five values of b.
    """
    fitted = (curve.compute > fit_from) & (curve.compute <= fit_to)
    C, R = curve.compute[fitted] / fit_to, curve.score[fitted]

    def residuals(parameters: np.ndarray) -> np.ndarray:
        A, log_D, log_b = parameters
        return A - np.exp(log_D) * C ** -np.exp(log_b) - R

    starts = [(min(R.max() + 0.1, 1.0), np.log(0.1), np.log(b)) for b in (0.05, 0.2, 0.5, 1.0, 2.0)]
    bounds = ([0.0, -np.inf, np.log(1e-3)], [1.0, np.inf, np.log(10.0)])
    found = [least_squares(residuals, start, bounds=bounds) for start in starts]
    return float(min(found, key=lambda one: one.cost).x[0])


def simulated_runs(fit: PublishedFit, budget: float, *, A_sd: float = 0.0) -> Iterator[Curve]:
    """Runs that follow the published fit (ScaleRL eq. 1), each with its own noise; A_sd is the sd of A between them."""
    assert fit.A is not None
    assert fit.B is not None
    assert fit.C_mid is not None
    compute = np.linspace(0, budget, NUM_READINGS + 1)
    rng = np.random.default_rng([METHOD_SEED, round(budget), round(1e6 * A_sd)])
    while True:
        A = fit.A + A_sd * rng.standard_normal()
        law = np.append(R_0, R_0 + (A - R_0) / (1 + (fit.C_mid / compute[1:]) ** fit.B))
        rates = np.clip(law + RUN_NOISE_SD * rng.standard_normal(compute.size), 0, 1)
        yield Curve(name=fit.run, compute=compute, score=rng.binomial(NUM_SAMPLES, rates) / NUM_SAMPLES)


def power_law_pitfall() -> Iterator[MethodLine]:
    """Ceilings of the 100k run by a power law and by the sigmoid, in two windows (ScaleRL A.4)."""
    curves = _runs_of("ScaleRL-bs2048", NUM_RUNS)
    for fit_from, said in ((1500.0, "1.0"), (5000.0, "0.74")):
        values = [power_law_ceiling(curve, fit_from, 50_000) for curve in curves]
        yield _line(f"A, power law on {_thousands(fit_from)} to 50k", said, values)
    for fit_from in (1500.0, 5000.0):
        yield _line(f"A, sigmoid on {_thousands(fit_from)} to 50k", "0.645", _ceilings(curves, fit_from, 50_000))


def other_cutoffs() -> Iterator[MethodLine]:
    """Ceilings and exponents of the 100k run by the sigmoid, in four windows (ScaleRL A.7)."""
    curves = _runs_of("ScaleRL-bs2048", NUM_RUNS)
    windows = (
        (1500.0, 50_000.0, "0.645", "1.70"),
        (0.0, 100_000.0, "0.655", "1.56"),
        (0.0, 50_000.0, "0.645", "1.70"),
        (5000.0, 50_000.0, "0.645", "1.67"),
    )
    for fit_from, fit_to, A, B in windows:
        fits = [paper_fit(curve, fit_from=fit_from, fit_to=fit_to) for curve in curves]
        window = f"{_thousands(fit_from)} to {_thousands(fit_to)}"
        yield _line(f"A on {window}", A, [fit.A for fit in fits])
        yield _line(f"B on {window}", B, [fit.B for fit in fits])


def forecast_from_half() -> Iterator[MethodLine]:
    """The pass rate at the end of the budget, foretold from its first half, less what the run has there (section 4)."""
    for run, budget in BUDGETS.items():
        errors = []
        for curve in _runs_of(run, NUM_RUNS):
            fit = paper_fit(curve, fit_from=EARLY_CUTOFF_GPU_HOURS, fit_to=budget / 2)
            errors.append(float(fit.predict(budget)[0] - curve.score[-1]))
        yield _line(f"forecast less reading at {_thousands(budget)}, {run}", "within 0.02", errors)


def margin_of_seeds() -> Iterator[MethodLine]:
    """How far apart the ceilings of three runs of ScaleRL are fitted (ScaleRL A.5)."""
    curves = _runs_of("ScaleRL", 3 * NUM_RUNS, A_sd=RUN_TO_RUN_SD)
    ceilings = np.reshape(_ceilings(curves, EARLY_CUTOFF_GPU_HOURS, BUDGETS["ScaleRL"]), (NUM_RUNS, 3))
    yield _line("largest less smallest A of three runs", "within 0.03", np.ptp(ceilings, axis=1).tolist())


METHODS: dict[Method, Callable[[], Iterator[MethodLine]]] = {
    "law": power_law_pitfall,
    "cutoff": other_cutoffs,
    "forecast": forecast_from_half,
    "margin": margin_of_seeds,
}


def _runs_of(run: str, number: int, *, A_sd: float = 0.0) -> list[Curve]:
    runs = simulated_runs(published()[run], BUDGETS[run], A_sd=A_sd)
    return [next(runs) for _ in range(number)]


def _ceilings(curves: Sequence[Curve], fit_from: float, fit_to: float) -> list[float]:
    return [paper_fit(curve, fit_from=fit_from, fit_to=fit_to).A for curve in curves]


def _line(what: str, said: str, values: Sequence[float]) -> MethodLine:
    lo, median, hi = np.quantile(values, (0.05, 0.5, 0.95))
    return MethodLine(what=what, published=said, median=float(median), lo=float(lo), hi=float(hi))


def _thousands(compute: float) -> str:
    return f"{compute / 1000:g}k" if compute else "0"
