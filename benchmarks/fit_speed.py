"""How long fits take on one core: point fit, profile of A, whole fit with its posterior, 100 curves compared.

    OMP_NUM_THREADS=1 PYTHONPATH=platform:trainer python benchmarks/fit_speed.py        # half a minute

Medians over curves simulated as in `simulation.py` (38 readings, AR(1) rho 0.7), each timed warm by processor time, as
other work may run beside it. `paper_grid.py` compares the point fit with the literal grid of the paper in one run.
Writes `results/fit_speed.json`.
"""

import json
import time
from collections.abc import Callable

import numpy as np
from record import write_record
from simulation import FIT_FROM_GPU_HOURS, NUM_SAMPLES, SEED, TRUTHS, simulate

from ablations.fit.curve import Curve
from ablations.fit.engine.ceiling_profile import ceiling_profile
from ablations.fit.engine.family import SIGMOID
from ablations.fit.engine.noise import AR1
from ablations.fit.engine.projection import Prior, solve
from ablations.fit.fitting import fit_curve
from ablations.verdict.compare import compare

NUM_CURVES = 100
PROFILE_POINTS = 33


def main() -> None:
    rng = np.random.default_rng(SEED)
    curves = []
    for number in range(NUM_CURVES):
        _, C_mid, B, A, every, budget = TRUTHS[number % len(TRUTHS)]
        compute = np.arange(0, 0.5 * budget + 1, every, dtype=float)
        score = simulate(compute, A=A, B=B, C_mid=C_mid, R_0=0.3, rho=0.7, rng=rng)
        samples = np.full(compute.size, NUM_SAMPLES)
        curves.append(Curve(name=str(number), compute=compute, score=score, samples=samples))

    started = time.process_time()
    fits = {curve.name: [fit_curve(curve, fit_from=FIT_FROM_GPU_HOURS)] for curve in curves}
    compare(fits, dict.fromkeys(fits, 1.0), "0")
    compared_s = time.process_time() - started

    ceilings = np.linspace(0.5, 1, PROFILE_POINTS)
    point, profile, whole = [], [], []
    for curve in curves[:30]:
        late = curve.compute > FIT_FROM_GPU_HOURS
        x, y = np.log(curve.compute[late] / curve.compute[-1]), curve.score[late]
        prior = Prior(value=float(curve.score[0]), variance=4e-5)
        noise = AR1(y.size, sampling_variance=1.5e-5, run_variance=2e-5, rho=0.7)
        point.append(warm_ms(lambda x=x, y=y, prior=prior: solve(SIGMOID, x, y, variance=4e-5, prior=prior)))
        profile.append(
            warm_ms(
                lambda x=x, y=y, prior=prior, noise=noise: ceiling_profile(
                    SIGMOID, x, y, ceilings, noise=noise, prior=prior
                )
            )
        )
        whole.append(warm_ms(lambda curve=curve: fit_curve(curve, fit_from=FIT_FROM_GPU_HOURS)))
    report = {
        "point_fit_ms": round(float(np.median(point)), 3),
        f"profile_of_{PROFILE_POINTS}_ceilings_ms": round(float(np.median(profile)), 2),
        "fit_with_posterior_ms": round(float(np.median(whole)), 2),
        "100_curves_fitted_and_compared_s": round(compared_s, 2),
    }
    print(json.dumps(report, indent=2))
    write_record("fit_speed", report)


def warm_ms(function: Callable[[], object]) -> float:
    """Median of five runs after a first one."""
    function()
    seconds = []
    for _ in range(5):
        started = time.process_time()
        function()
        seconds.append(time.process_time() - started)
    return 1e3 * float(np.median(seconds))


if __name__ == "__main__":
    main()
