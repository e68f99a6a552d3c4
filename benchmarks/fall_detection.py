"""How often a run that rises or stays is said to have fallen, and how many falls are found, on short and long curves.

    PYTHONPATH=platform:trainer python benchmarks/fall_detection.py            # four minutes on one core

Readings are binomial, of 20 to 8,000 answers, around laws from starts between 0 and .96; the run itself wanders by up
to a standard deviation of .01, AR(1) of .5. Samples are counted, or the readings alone tell their noise, as in most
logs of other trainers. Curves that fall do so from their start on, at once in the middle, or after a rise. Writes
`results/fall_detection.json`.
"""

import json
from collections.abc import Iterator
from itertools import product

import numpy as np
from record import write_record

from ablations.answers.simulated_runs import autoregressive
from ablations.fit.curve import Curve
from ablations.fit.fall import find_fall

NUM_READINGS = (4, 5, 6, 7, 9, 11, 15, 21, 41, 101)
"""With the one before RL."""
NUM_ANSWERS = (20, 100, 500, 8000)
STARTS = (0.0, 0.02, 0.3, 0.6, 0.88, 0.96)
WANDERS = (0.0, 0.0045, 0.01)
RHO = 0.5
NUM_RUNS = 250
"""Of each condition."""
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
    write_record("fall_detection", {"settings": settings, "results": results})


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


def share_found(law: np.ndarray, answers: int, wander: float, *, is_counted: bool, rng: np.random.Generator) -> float:
    """The share of runs of this law that are said to have fallen."""
    found = 0
    samples = np.full(law.size, float(answers)) if is_counted else None
    for _ in range(NUM_RUNS):
        p = np.clip(law + wander * autoregressive(rng.standard_normal(law.size), RHO), 0, 1)
        score = rng.binomial(answers, p) / answers
        curve = Curve(name="run", compute=np.arange(float(law.size)), score=score, samples=samples)
        found += find_fall(curve) is not None
    return round(found / NUM_RUNS, 4)


if __name__ == "__main__":
    main()
