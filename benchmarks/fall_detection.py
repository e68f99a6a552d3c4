"""How often a run that rises or stays is said to have fallen, and how many falls are found, on short and long curves.

    PYTHONPATH=platform:trainer python benchmarks/fall_detection.py            # five minutes on one core

Readings are binomial, of 20 to 8,000 answers, around laws from starts between 0 and .96; the run itself wanders by up
to a standard deviation of .01, AR(1) of .5. Samples are counted, or the readings alone tell their noise, as in most
logs of other trainers. Curves that fall do so from their start on, at once in the middle, or after a rise. Beside
these: runs that wander far and for long, and healthy variants that are said to end below their start. Writes
`results/fall_detection.json`.
"""

import json
from collections.abc import Iterator
from itertools import product

import numpy as np
from record import write_record

from ablations.answers.simulated_runs import autoregressive
from ablations.fit.curve import Curve
from ablations.fit.fall import change_of, end_below_their_start, find_fall

NUM_READINGS = (4, 5, 6, 7, 9, 11, 15, 21, 41, 101)
"""With the one before RL."""
NUM_ANSWERS = (20, 100, 500, 8000)
STARTS = (0.0, 0.02, 0.3, 0.6, 0.88, 0.96)
WANDERS = (0.0, 0.0045, 0.01)
RHO = 0.5
FAR, FAR_RHO, FAR_READINGS = 0.03, 0.7, 11
"""Standard deviation and autocorrelation of runs that wander far and for long, and their readings."""
NUM_RUNS = 250
"""Of each condition."""
NUM_SEEDS, NUM_VARIANTS, VARIANT_READINGS = (1, 3, 5), 25, (4, 6, 11, 41)
"""Healthy variants: their seeds, how many of each condition, and their readings."""
FALLS = (0.1, 0.2, 0.4)
FROM = 0.6
SEED = 46


def main() -> None:
    results = []
    for is_counted, num in product((True, False), NUM_READINGS):
        rng = np.random.default_rng(SEED)
        alarms = [
            share_found(law, answers, wander, is_counted=is_counted, rng=rng)
            for law, answers, wander in product(healthy(num), NUM_ANSWERS, WANDERS)
        ]
        found = {
            f"{kind}, {answers} answers": [
                share_found(law, answers, 0.0045, is_counted=is_counted, rng=rng) for law in falls
            ]
            for kind, falls in falling(num).items()
            for answers in NUM_ANSWERS
        }
        results.append(
            {
                "readings": num,
                "samples_counted": is_counted,
                "false_alarms": {"mean": round(float(np.mean(alarms)), 4), "worst_condition": max(alarms)},
                "found": found,
            }
        )
        print(json.dumps(results[-1]))
    settings = {"starts": STARTS, "wanders": WANDERS, "rho": RHO, "runs": NUM_RUNS, "falls": FALLS, "seed": SEED}
    far = {"wander": FAR, "rho": FAR_RHO, "readings": FAR_READINGS, "alarms": [*map(alarms_of_far, (True, False))]}
    below = [
        {"seeds": seeds, "readings": num, "samples_counted": is_counted, "share": below_start(num, seeds, is_counted)}
        for is_counted, seeds, num in product((True, False), NUM_SEEDS, VARIANT_READINGS)
    ]
    record = {"settings": settings, "results": results, "wander far": far, "below their start": below}
    write_record("fall_detection", record)


def alarms_of_far(is_counted: bool) -> dict[str, float | bool]:
    """The share of healthy runs that wander far and for long and are said to have fallen."""
    rng = np.random.default_rng(SEED)
    conditions = product(healthy(FAR_READINGS), NUM_ANSWERS)
    shares = [share_found(*each, FAR, is_counted=is_counted, rng=rng, rho=FAR_RHO) for each in conditions]
    return {"samples_counted": is_counted, "mean": round(float(np.mean(shares)), 4), "worst_condition": max(shares)}


def below_start(num: int, seeds: int, is_counted: bool) -> float:
    """The share of healthy variants of this many seeds that are said to end below their start."""
    rng, found = np.random.default_rng(SEED), []
    for law, answers, wander in product(healthy(num), NUM_ANSWERS, WANDERS):
        for _ in range(NUM_VARIANTS):
            curves = [drawn(law, answers, wander, RHO, is_counted=is_counted, rng=rng) for _ in range(seeds)]
            changes = [change for curve in curves if (change := change_of(curve)) is not None]
            found.append(bool(changes) and end_below_their_start(changes))
    return round(float(np.mean(found)), 5)


def healthy(num: int) -> Iterator[np.ndarray]:
    """Laws that stay at their start, or rise from it early or late, by .3 or to just below 1."""
    share = np.arange(num) / (num - 1)
    for start in STARTS:
        yield np.full(num, start)
        for middle in (0.03, 0.4):
            ceiling = min(start + 0.3, 0.995)
            yield start + (ceiling - start) / (1 + (middle / np.maximum(share, 1e-9)) ** 1.9)


def falling(num: int) -> dict[str, list[np.ndarray]]:
    """Laws that fall by each of FALLS, by the kind of the fall; a rise of .2 over the first two fifths comes first."""
    share = np.arange(num) / (num - 1)
    return {
        "from the start": [FROM - fall * share for fall in FALLS],
        "at once": [FROM - fall * (share > 0.5) for fall in FALLS],
        "after a rise": [
            FROM - 0.2 + 0.2 * np.minimum(share / 0.4, 1) - fall * np.maximum(share - 0.4, 0) / 0.6 for fall in FALLS
        ],
    }


def share_found(
    law: np.ndarray, answers: int, wander: float, *, is_counted: bool, rng: np.random.Generator, rho: float = RHO
) -> float:
    """The share of runs of this law that are said to have fallen."""
    curves = (drawn(law, answers, wander, rho, is_counted=is_counted, rng=rng) for _ in range(NUM_RUNS))
    return round(sum(find_fall(curve) is not None for curve in curves) / NUM_RUNS, 4)


def drawn(
    law: np.ndarray, answers: int, wander: float, rho: float, *, is_counted: bool, rng: np.random.Generator
) -> Curve:
    """A run of this law: it wanders, and every reading is of so many answers."""
    p = np.clip(law + wander * autoregressive(rng.standard_normal(law.size), rho), 0, 1)
    score, samples = rng.binomial(answers, p) / answers, np.full(law.size, float(answers)) if is_counted else None
    return Curve(name="run", compute=np.arange(float(law.size)), score=score, samples=samples)


if __name__ == "__main__":
    main()
