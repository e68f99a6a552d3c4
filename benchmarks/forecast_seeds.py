"""How good forecasts of recipes with one to three seeds are at twice the fitted range, over studies with known truth.

    OMP_NUM_THREADS=1 python benchmarks/forecast_seeds.py        # two minutes of processor time

A study has a reference that follows ScaleRL's fit (`simulation.py`), a variant equal to it, one with a ceiling .03
lower and one with .01 higher; three seeds each, of which the first one, two or three count. Readings every 213
GPU-hours to 8,000, white noise. Ceilings of one recipe lie `run_to_run_sd` apart, and runs with one seed share an
effect of `shared_sd`. Forecasts are of differences from the reference, of pass rates and of the best variant at 16,000.
Baseline: Student's t per variant, or .0075 under three seeds, in docs/log.md. Writes `results/forecast_seeds.json`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from record import write_record
from simulation import FIT_FROM_GPU_HOURS, NUM_SAMPLES, simulate

from ablations.answers.forecasts import difference_at, leaderboard, predict
from ablations.answers.pass_rate_at import pass_rate_at
from ablations.answers.questions import LEVEL
from ablations.fit.curve import Curve
from ablations.fit.fitting import fit_curve
from ablations.fit.result import Fit

SDS = [(0.003, 0.0), (0.0075, 0.0), (0.015, 0.0), (0.0075, 0.02)]
NUM_STUDIES = 10
SEED = 20261125
CEILINGS = {"reference": 0.61, "equal": 0.61, "lower": 0.58, "higher": 0.62}
BEST = "higher"
B, C_MID, R_0 = 1.92, 2542.0, 0.3
FORECAST = 16_000.0
TRUTH = {name: R_0 + (A - R_0) / (1 + (C_MID / FORECAST) ** B) for name, A in CEILINGS.items()}


def main() -> None:
    results = []
    for number, (run_to_run_sd, shared_sd) in enumerate(SDS):
        studies = [study([SEED, number, index], run_to_run_sd, shared_sd) for index in range(NUM_STUDIES)]
        for num_seeds in (1, 2, 3):
            some = [{name: fits[:num_seeds] for name, fits in one.items()} for one in studies]
            found = {"run_to_run_sd": run_to_run_sd, "shared_sd": shared_sd, "seeds": num_seeds} | scores(some)
            print(found, flush=True)
            results.append(found)
    write_record("forecast_seeds", {"settings": {"studies": NUM_STUDIES, "seed": SEED}, "results": results})


def study(seed: Sequence[int], run_to_run_sd: float, shared_sd: float) -> dict[str, list[Fit]]:
    """Fits of three seeds of every variant."""
    rng = np.random.default_rng(seed)
    shared = shared_sd * rng.standard_normal(3)
    compute = np.arange(0, FORECAST / 2 + 1, 213.0)
    fits: dict[str, list[Fit]] = {}
    for name, A in CEILINGS.items():
        for number, of_seed in enumerate(shared):
            own = A + of_seed + run_to_run_sd * rng.standard_normal()
            score = simulate(compute, A=own, B=B, C_mid=C_MID, R_0=R_0, rho=0.0, rng=rng)
            samples = np.full(compute.size, float(NUM_SAMPLES))
            curve = Curve(name=name, compute=compute, score=score, samples=samples, start=f"s{number}")
            fits.setdefault(name, []).append(fit_curve(curve, fit_from=FIT_FROM_GPU_HOURS))
    return fits


def scores(studies: Sequence[Mapping[str, Sequence[Fit]]]) -> dict[str, Any]:
    """Shares of 95 % intervals that hold the truth, their median widths, and the Brier score of the chances to win."""
    differences, predictions, brier = [], [], []
    for groups in studies:
        reference = groups["reference"]
        spread = LEVEL.spread_of(groups.values(), reference)
        at_forecast = pass_rate_at(FORECAST).spread_of(groups.values(), reference)
        for name, fits in groups.items():
            found = predict(fits, FORECAST, at_forecast)
            predictions.append((found.lo <= TRUTH[name] <= found.hi, found.hi - found.lo))
            if name != "reference":
                less = difference_at(fits, reference, FORECAST, at_forecast)
                assert less.lo is not None
                assert less.hi is not None
                differences.append((less.lo <= TRUTH[name] - TRUTH["reference"] <= less.hi, less.hi - less.lo))
        chances = leaderboard(groups, FORECAST, spread)
        brier.append(sum((one.wins - (one.variant == BEST)) ** 2 for one in chances))
    return {
        "differences_held": share([held for held, _ in differences]),
        "difference_width": round(float(np.median([width for _, width in differences])), 4),
        "predictions_held": share([held for held, _ in predictions]),
        "prediction_width": round(float(np.median([width for _, width in predictions])), 4),
        "brier_score_of_wins": round(float(np.mean(brier)), 3),
    }


def share(held: Sequence[bool]) -> float:
    return round(float(np.mean(held)), 3)


if __name__ == "__main__":
    main()
