"""The paper's method on curves whose truth is known: simulations of the fits in its table 1 (arXiv 2510.13786).

    python benchmarks/paper_method.py    # half a minute

    law        a power law finds another ceiling in every window, the sigmoid the same one (section A.4)
    cutoff     the sigmoid finds the same ceiling wherever the fit begins and ends (section A.7)
    forecast   the first half of a run foretells its end (section 4)
    margin     three runs of one recipe end within +-0.015 of each other (section A.5)

A simulated run has 75 readings of 1,000 prompts x 16 samples, and its own noise of sd 0.0045. The paper had one
run of each; here there are `NUM_RUNS`, so that a number has a range. Writes `results/paper_method.json`: each number
of the paper beside the median of the simulated runs and their fifth and ninety-fifth percentiles.
"""

import csv
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from record import write_record
from scipy.optimize import least_squares
from simulation import RUN_NOISE_SD, SEED, simulate

from ablations.answers.paper_grid import EARLY_CUTOFF_GPU_HOURS, paper_fit
from ablations.fit.curve import Curve

NUM_RUNS = 20
NUM_READINGS = 75
R_0 = 0.3
"""The paper publishes no R_0; its figures begin near this."""
RUN_TO_RUN_SD = 0.0075
"""Of A between runs of one recipe: three of them then lie within +-0.015 (ScaleRL A.5)."""
BUDGETS = {"ScaleRL": 16_000.0, "ScaleRL-bs2048": 100_000.0}
"""GPU-hours of the runs whose fits are simulated; the second is the paper's run of 100k."""


def main() -> None:
    found = {}
    for part in (law, cutoff, forecast, margin):
        found[part.__name__] = list(part())
        print("\n".join(map(json.dumps, found[part.__name__])), flush=True)
    settings = {"runs": NUM_RUNS, "readings": NUM_READINGS, "R_0": R_0, "run_noise_sd": RUN_NOISE_SD, "seed": SEED}
    write_record("paper_method", {"settings": settings, "results": found})


def law() -> Iterator[dict[str, Any]]:
    """Ceilings of the 100k run by a power law and by the sigmoid, in two windows (ScaleRL A.4)."""
    curves = runs_of("ScaleRL-bs2048", NUM_RUNS)
    for fit_from, said in ((1500.0, "1.0"), (5000.0, "0.74")):
        values = [power_law_ceiling(curve, fit_from, 50_000) for curve in curves]
        yield line(f"A, power law on {thousands(fit_from)} to 50k", said, values)
    for fit_from in (1500.0, 5000.0):
        yield line(f"A, sigmoid on {thousands(fit_from)} to 50k", "0.645", ceilings(curves, fit_from, 50_000))


def cutoff() -> Iterator[dict[str, Any]]:
    """Ceilings and exponents of the 100k run by the sigmoid, in four windows (ScaleRL A.7)."""
    curves = runs_of("ScaleRL-bs2048", NUM_RUNS)
    windows = (
        (1500.0, 50_000.0, "0.645", "1.70"),
        (0.0, 100_000.0, "0.655", "1.56"),
        (0.0, 50_000.0, "0.645", "1.70"),
        (5000.0, 50_000.0, "0.645", "1.67"),
    )
    for fit_from, fit_to, A, B in windows:
        fits = [paper_fit(curve, fit_from=fit_from, fit_to=fit_to) for curve in curves]
        window = f"{thousands(fit_from)} to {thousands(fit_to)}"
        yield line(f"A on {window}", A, [fit.A for fit in fits])
        yield line(f"B on {window}", B, [fit.B for fit in fits])


def forecast() -> Iterator[dict[str, Any]]:
    """The pass rate at the end of the budget, foretold from its first half, less what the run has there (section 4)."""
    for run, budget in BUDGETS.items():
        errors = []
        for curve in runs_of(run, NUM_RUNS):
            fit = paper_fit(curve, fit_from=EARLY_CUTOFF_GPU_HOURS, fit_to=budget / 2)
            errors.append(float(fit.predict(budget)[0] - curve.score[-1]))
        yield line(f"forecast less reading at {thousands(budget)}, {run}", "within 0.02", errors)


def margin() -> Iterator[dict[str, Any]]:
    """How far apart the ceilings of three runs of ScaleRL are fitted (ScaleRL A.5)."""
    curves = runs_of("ScaleRL", 3 * NUM_RUNS, A_sd=RUN_TO_RUN_SD)
    fitted = np.reshape(ceilings(curves, EARLY_CUTOFF_GPU_HOURS, BUDGETS["ScaleRL"]), (NUM_RUNS, 3))
    yield line("largest less smallest A of three runs", "within 0.03", np.ptp(fitted, axis=1).tolist())


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


def published(run: str) -> tuple[float, float, float]:
    """A, B and C_mid in GPU-hours of a fit that the paper publishes; `published.csv` has their sources."""
    with Path(__file__).with_name("published.csv").open() as file:
        (row,) = (row for row in csv.DictReader(file) if row["run"] == run)
    return float(row["A"]), float(row["B"]), float(row["C_mid"])


def runs_of(run: str, number: int, *, A_sd: float = 0.0) -> list[Curve]:
    """Runs that follow the published fit, each with its own noise; A_sd is the sd of A between them."""
    (A, B, C_mid), budget = published(run), BUDGETS[run]
    compute = np.linspace(0, budget, NUM_READINGS + 1)
    rng = np.random.default_rng([SEED, round(budget), round(1e6 * A_sd)])
    curves = []
    for _ in range(number):
        own_A = A + A_sd * rng.standard_normal()
        score = simulate(compute, A=own_A, B=B, C_mid=C_mid, R_0=R_0, rho=0.0, rng=rng)
        curves.append(Curve(name=run, compute=compute, score=score))
    return curves


def ceilings(curves: Sequence[Curve], fit_from: float, fit_to: float) -> list[float]:
    return [paper_fit(curve, fit_from=fit_from, fit_to=fit_to).A for curve in curves]


def line(what: str, said: str, values: Sequence[float]) -> dict[str, Any]:
    lo, median, hi = (float(value) for value in np.quantile(values, (0.05, 0.5, 0.95)))
    return {"what": what, "published": said, "median": median, "lo": lo, "hi": hi}


def thousands(compute: float) -> str:
    return f"{compute / 1000:g}k" if compute else "0"


if __name__ == "__main__":
    main()
