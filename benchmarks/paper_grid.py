"""The paper's fit by the screen against SciPy's `curve_fit` at every pair of its grid, and what its rules are worth.

    OMP_NUM_THREADS=1 PYTHONPATH=platform:trainer python benchmarks/paper_grid.py        # three minutes on one core

Curves are simulated as in `simulation.py`. The literal fit (ScaleRL A.5, arXiv 2510.13786) is timed in two ways:
unbounded (Levenberg and Marquardt) and, on every fifth curve, bounded (B from 0.05 to 12, SciPy's trust region). Times
are those of the processor, so that other work on the machine hardly counts; run it with OMP_NUM_THREADS=1.
Equal pairs are two runs of one recipe: ScaleRL of table 1, A drawn with the sd of 0.0075 between runs.
Writes `results/paper_grid.json`.
"""

import json
import math
import time
import warnings
from collections.abc import Callable
from itertools import cycle, islice, product
from typing import Any

import numpy as np
from record import write_record
from scipy.optimize import curve_fit
from simulation import (
    FIT_FROM_GPU_HOURS,
    FIT_TO_SHARE_OF_BUDGET,
    NOISES,
    SEED,
    START_LEVELS,
    TRUTHS,
    simulate,
)

from ablations.answers.paper_grid import LARGEST_B, LEAST_B, PaperFit, paper_fit
from ablations.answers.paper_rule import paper_rule
from ablations.answers.run_to_run import ASSUMED_SD
from ablations.fit.curve import Curve
from ablations.fit.engine.family import SIGMOID
from ablations.fit.engine.projection import Prior, solve

NUM_CURVES = 50
BOUNDED_EVERY = 5
"""The bounded literal fit takes ten times as long as the unbounded one; it is done on every fifth curve."""
NUM_REPEATS = 20
NUM_PAIRS = 400
PAIR_START = 0.3
BUDGETS_OF_PAIRS = (8_000, 16_000)
"""GPU-hours up to which the curves of an equal pair are fitted."""
PUBLISHED_B_DIFFERENCE = 0.24
"""B of CISPO less B of DAPO at a common A (ScaleRL §4): 2.01 - 1.77."""
CEILINGS = np.arange(450, 801, 5) / 1000
MIDPOINTS = np.linspace(100, 40_000, 100)


def main() -> None:
    report = {
        "settings": {
            "num_curves": NUM_CURVES,
            "noises": NOISES,
            "fit_from_gpu_hours": FIT_FROM_GPU_HOURS,
            "fit_to_share_of_budget": FIT_TO_SHARE_OF_BUDGET,
            "start_of_B": 1.5,
            "bounds_of_B": [LEAST_B, LARGEST_B],
            "num_equal_pairs": NUM_PAIRS,
            "run_to_run_sd_of_A": ASSUMED_SD,
            "published_B_difference": PUBLISHED_B_DIFFERENCE,
            "seed": SEED,
        },
        "grid": measure_grid(),
        "equal_pairs": [
            {"noise": noise, "fit_to_gpu_hours": budget, **measure_equal_pairs(rho, budget)}
            for noise, rho in NOISES.items()
            for budget in BUDGETS_OF_PAIRS
        ],
    }
    print(json.dumps(report, indent=2))
    write_record("paper_grid", report)


def measure_grid() -> dict[str, Any]:
    """Whether the screen finds the literal argmin on each curve, and the time that each way takes."""
    rng = np.random.default_rng(SEED)
    seconds: dict[str, list[float]] = {"bounded": [], "unbounded": [], "stated": [], "finer": [], "point_fit": []}
    same: dict[str, list[bool]] = {"bounded": [], "unbounded": []}
    largest_excess = 0.0
    settings = islice(cycle(product(TRUTHS, START_LEVELS)), NUM_CURVES)
    for (name, C_mid, B, A, every, budget), R_0 in settings:
        rho = list(NOISES.values())[len(seconds["stated"]) % len(NOISES)]
        compute = np.arange(0, FIT_TO_SHARE_OF_BUDGET * budget + 1, every, dtype=float)
        score = simulate(compute, A=A, B=B, C_mid=C_mid, R_0=R_0, rho=rho, rng=rng)
        curve = Curve(name=name, compute=compute, score=score)
        fit = paper_fit(curve, fit_from=FIT_FROM_GPU_HOURS)
        is_chosen = {"unbounded": True, "bounded": len(seconds["stated"]) % BOUNDED_EVERY == 0}
        for method in filter(is_chosen.get, same):
            started = time.process_time()
            error, *pair = literal_fit(curve, is_bounded=method == "bounded")
            seconds[method].append(time.process_time() - started)
            same[method].append(bool(np.allclose(pair, (fit.A, fit.C_mid), rtol=1e-9, atol=0)))
            largest_excess = max(largest_excess, fit.sse / error - 1)
        seconds["stated"].append(warm_seconds(lambda curve=curve: paper_fit(curve, fit_from=FIT_FROM_GPU_HOURS)))
        seconds["finer"].append(
            warm_seconds(lambda curve=curve: paper_fit(curve, fit_from=FIT_FROM_GPU_HOURS, grid="finer"))
        )
        seconds["point_fit"].append(warm_seconds(point_fit(curve)))
        print(f"{name} from {R_0}: {'same' if same['unbounded'][-1] else 'DIFFERENT'} pair", flush=True)
    median = {name: float(np.median(values)) for name, values in seconds.items()}
    return {
        "num_curves": NUM_CURVES,
        "same_argmin_as_unbounded": sum(same["unbounded"]),
        "num_curves_bounded": len(same["bounded"]),
        "same_argmin_as_bounded": sum(same["bounded"]),
        "largest_relative_excess_of_squared_error": largest_excess,
        "literal_bounded_s": round(median["bounded"], 3),
        "literal_unbounded_s": round(median["unbounded"], 3),
        "screen_stated_ms": round(1e3 * median["stated"], 3),
        "screen_finer_ms": round(1e3 * median["finer"], 3),
        "point_fit_ms": round(1e3 * median["point_fit"], 3),
        "ratio_bounded_to_screen": round(ratio(seconds["bounded"], seconds["stated"][::BOUNDED_EVERY])),
        "ratio_unbounded_to_screen": round(ratio(seconds["unbounded"], seconds["stated"])),
        "ratio_bounded_to_point_fit": round(ratio(seconds["bounded"], seconds["point_fit"][::BOUNDED_EVERY])),
        "ratio_unbounded_to_point_fit": round(ratio(seconds["unbounded"], seconds["point_fit"])),
    }


def literal_fit(curve: Curve, *, is_bounded: bool) -> tuple[float, float, float]:
    """Squared error, A and C_mid of the best pair, B by `curve_fit` at each."""
    chosen = curve.compute > FIT_FROM_GPU_HOURS
    C, R, R_0 = curve.compute[chosen], curve.score[chosen], curve.score[0]
    bounds = (LEAST_B, LARGEST_B) if is_bounded else (-np.inf, np.inf)
    best = (np.inf, np.nan, np.nan)
    with warnings.catch_warnings():
        # Pairs that no B fits: unbounded, B runs off to where powers overflow.
        warnings.simplefilter("ignore")
        for A in CEILINGS:
            for C_mid in MIDPOINTS:

                def law(C: np.ndarray, B: float, A: float = A, C_mid: float = C_mid) -> np.ndarray:
                    return R_0 + (A - R_0) / (1 + (C_mid / C) ** B)

                try:
                    (B,), _ = curve_fit(law, C, R, p0=(1.5,), bounds=bounds)
                except RuntimeError:
                    continue
                if B > 0:
                    best = min(best, (float(np.sum((R - law(C, B)) ** 2)), float(A), float(C_mid)))
    return best


def point_fit(curve: Curve) -> Callable[[], Any]:
    """The platform's own least-squares fit of A, B, C_mid and R_0 to the same readings, as a call without arguments."""
    chosen = curve.compute > FIT_FROM_GPU_HOURS
    x, y = np.log(curve.compute[chosen] / curve.compute[-1]), curve.score[chosen]
    prior = Prior(value=float(curve.score[0]), variance=0.005**2)
    return lambda: solve(SIGMOID, x, y, variance=0.005**2, prior=prior)


def warm_seconds(call: Callable[[], Any]) -> float:
    """Median time of a call after a first one."""
    call()
    seconds = []
    for _ in range(NUM_REPEATS):
        started = time.process_time()
        call()
        seconds.append(time.process_time() - started)
    return float(np.median(seconds))


def ratio(slow: list[float], fast: list[float]) -> float:
    """Median over curves of the ratio of times."""
    return float(np.median(np.array(slow) / np.array(fast)))


def measure_equal_pairs(rho: float, fit_to: float) -> dict[str, float]:
    """How often the paper's rules see a difference between two runs of one recipe."""
    rng = np.random.default_rng(SEED)
    _, C_mid, B, A, every, _ = TRUTHS[0]
    compute = np.arange(0, fit_to + 1, every, dtype=float)
    delta_A, delta_B, z = [], [], []
    for _ in range(NUM_PAIRS):
        curves = []
        for _ in range(2):
            truth = {"A": A + ASSUMED_SD * rng.standard_normal(), "B": B, "C_mid": C_mid, "R_0": PAIR_START}
            curves.append(Curve(name="run", compute=compute, score=simulate(compute, **truth, rho=rho, rng=rng)))
        one, other = (paper_fit(curve, fit_from=FIT_FROM_GPU_HOURS).A for curve in curves)
        delta_A.append(abs(one - other))
        refits = [paper_fit(curve, fit_from=FIT_FROM_GPU_HOURS, A=(one + other) / 2) for curve in curves]
        delta_B.append(abs(refits[0].B - refits[1].B))
        z.append(delta_B[-1] / math.hypot(*map(wald_error_of_B, refits)))
    equal = np.array([paper_rule(round(delta, 9)) == "no difference seen" for delta in delta_A])
    return {
        "share_with_A_further_apart_than_0.02": share(~equal),
        "B_at_common_A_differs_by_1.96_wald_errors": share(np.array(z) > 1.96),
        "same_where_A_are_within_0.02": share(np.array(z)[equal] > 1.96),
        "B_at_common_A_differs_by_0.24": share(np.array(delta_B) > PUBLISHED_B_DIFFERENCE),
        "median_difference_of_B_at_common_A": round(float(np.median(delta_B)), 3),
    }


def share(values: np.ndarray) -> float:
    return round(float(np.mean(values)), 3)


def wald_error_of_B(fit: PaperFit) -> float:
    """Standard error of B from the covariance (J' J)^-1 s^2 over (B, C_mid), A being fixed."""
    C = fit.curve.compute[(fit.window[0] <= fit.curve.compute) & (fit.curve.compute <= fit.window[1])]
    log_ratio = np.log(fit.C_mid / C)
    g = 1 / (1 + np.exp(fit.B * log_ratio))
    slope = -(fit.A - fit.R_0) * g * (1 - g)
    jacobian = np.stack([slope * log_ratio, slope * fit.B / fit.C_mid], axis=1)
    return float(np.sqrt(np.linalg.inv(jacobian.T @ jacobian)[0, 0] * fit.sse / (fit.points - 2)))


if __name__ == "__main__":
    main()
