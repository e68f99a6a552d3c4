"""How long fits take on one core: point fit, profile of A, whole fit, search for a collapse, 100 curves compared.

    PYTHONPATH=platform:trainer python benchmarks/fit_speed.py        # half a minute

Medians over curves simulated as in `simulation.py` (38 readings, AR(1) rho 0.7), each timed warm by the processor time
of this thread, with one thread of BLAS: other work may run beside it, in this process too. The same times as multiples
of SciPy's `curve_fit` of eq. 1 from one start, taken in turns with it on the same readings: `tests/benchmarks` holds
these ratios to limits. `paper_grid.py` compares the point fit with the literal grid of the paper in one run. Writes
`results/fit_speed.json`.
"""

import json
import time
from collections.abc import Callable

import numpy as np
from record import write_record
from scipy.optimize import curve_fit
from simulation import FIT_FROM_GPU_HOURS, NUM_SAMPLES, SEED, TRUTHS, simulate

from ablations.answers.compare import compare
from ablations.fit.collapse import find_collapse
from ablations.fit.curve import Curve
from ablations.fit.engine.ceiling_profile import ceiling_profile
from ablations.fit.engine.family import SIGMOID
from ablations.fit.engine.noise import AR1, one_blas_thread
from ablations.fit.engine.projection import Prior, solve
from ablations.fit.fitting import fit_curve

NUM_CURVES = 100
PROFILE_POINTS = 33
BASELINE = "curve_fit"


def main() -> None:
    curves = simulated_curves(NUM_CURVES)
    started = time.thread_time()
    fits = {curve.name: [fit_curve(curve, fit_from=FIT_FROM_GPU_HOURS)] for curve in curves}
    compare(fits, dict.fromkeys(fits, 1.0), "0")
    compared_s = time.thread_time() - started

    times = typical_ms(curves[:30])
    report = {
        "point_fit_ms": round(times["point_fit"], 3),
        f"profile_of_{PROFILE_POINTS}_ceilings_ms": round(times["profile"], 2),
        "fit_with_posterior_ms": round(times["fit_with_posterior"], 2),
        "find_collapse_ms": round(times["find_collapse"], 2),
        "curve_fit_ms": round(times[BASELINE], 3),
        "over_curve_fit": {name: round(ratio, 2) for name, ratio in ratios(times).items()},
        "100_curves_fitted_and_compared_s": round(compared_s, 2),
    }
    print(json.dumps(report, indent=2))
    write_record("fit_speed", report)


def simulated_curves(number: int) -> list[Curve]:
    """The first half of runs that follow the published fits in turn."""
    rng = np.random.default_rng(SEED)
    curves = []
    for i in range(number):
        _, C_mid, B, A, every, budget = TRUTHS[i % len(TRUTHS)]
        compute = np.arange(0, 0.5 * budget + 1, every, dtype=float)
        score = simulate(compute, A=A, B=B, C_mid=C_mid, R_0=0.3, rho=0.7, rng=rng)
        curves.append(Curve(name=str(i), compute=compute, score=score, samples=np.full(compute.size, NUM_SAMPLES)))
    return curves


@one_blas_thread  # threads that wait for each other would be timed on a busy machine
def typical_ms(curves: list[Curve]) -> dict[str, float]:
    """The median over curves of what each kind of work takes, and of the baseline.

    Of the search for a collapse the mean, as half of the curves need no fit for it: a median lies between the halves.
    """
    times = [{name: warm_ms(function) for name, function in work_on(curve).items()} for curve in curves]
    return {
        name: float((np.mean if name == "find_collapse" else np.median)([one[name] for one in times]))
        for name in times[0]
    }


def ratios(times: dict[str, float]) -> dict[str, float]:
    """Times as multiples of the baseline's."""
    return {name: ms / times[BASELINE] for name, ms in times.items() if name != BASELINE}


def work_on(curve: Curve) -> dict[str, Callable[[], object]]:
    """What is timed, by name."""
    late = curve.compute > FIT_FROM_GPU_HOURS
    x, y, start = np.log(curve.compute[late] / curve.compute[-1]), curve.score[late], float(curve.score[0])
    prior = Prior(value=start, variance=4e-5)
    noise = AR1(y.size, sampling_variance=1.5e-5, run_variance=2e-5, rho=0.7)
    ceilings = np.linspace(0.5, 1, PROFILE_POINTS)

    def eq1(x: np.ndarray, A: float, B: float, x_mid: float) -> np.ndarray:
        return start + (A - start) / (1 + np.exp(B * (x_mid - x)))

    return {
        BASELINE: lambda: curve_fit(eq1, x, y, p0=(float(y.max()), 1.5, float(x.mean()))),
        "point_fit": lambda: solve(SIGMOID, x, y, variance=4e-5, prior=prior),
        "profile": lambda: ceiling_profile(SIGMOID, x, y, ceilings, noise=noise, prior=prior),
        "fit_with_posterior": lambda: fit_curve(curve, fit_from=FIT_FROM_GPU_HOURS),
        "find_collapse": lambda: find_collapse(curve.compute[1:], curve.score[1:], start_score=start),
    }


def warm_ms(function: Callable[[], object]) -> float:
    """Median of five runs after a first one."""
    function()
    seconds = []
    for _ in range(5):
        started = time.thread_time()
        function()
        seconds.append(time.thread_time() - started)
    return 1e3 * float(np.median(seconds))


if __name__ == "__main__":
    main()
