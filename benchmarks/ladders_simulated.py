"""How often a ladder of scales says the wrong word, and how often its forecast misses, where the truth is known.

    OMP_NUM_THREADS=1 PYTHONPATH=platform:trainer python benchmarks/ladders_simulated.py [NUM_STUDIES]

A study has a reference and a variant (or seven, one of them looked at) with three seeds at each of three scales, one
step of size apart. A level is its recipe's plus a deviation with a standard deviation of .012. In half of the cells
as much again is shared by the runs of one seed, which are known to begin alike. The true differences:

    constant    .05, .05, .05       right: carries
    fading      .05, .025, 0        right: fades
    flipping    .05, 0, -.05        right: flips
    none        0, 0, 0             right: cannot tell
    curved      .05, .025, .0125    right: fades or carries; forecasts alone are of interest
    noisy       .05 thrice, at a deviation of .05: every word but carries and cannot tell is wrong

Each study ends in the interval of the comparison at each scale and in the word of `ablations.answers.ladder`. "Cannot
tell" is never wrong. A forecast, from the two smaller scales, covers if its 95 % interval holds the true difference at
the largest. Writes `results/ladders_simulated.json`.
"""

import json
import sys
from collections import Counter
from typing import Any

import numpy as np
from record import write_record
from simulation import SEED

from ablations.answers.answer import Answer
from ablations.answers.interval import Interval
from ablations.answers.ladder import Ladder, rung_of
from ablations.answers.questions import LEVEL
from ablations.answers.repeats import Repeats
from ablations.answers.run_to_run import run_to_run
from ablations.answers.student import interval_of

SD, NOISY_SD = 0.012, 0.05
NUM_SEEDS, NUM_STUDIES = 3, 2000
TRUTHS = {
    "constant": ((0.05, 0.05, 0.05), {"carries"}),
    "fading": ((0.05, 0.025, 0.0), {"fades"}),
    "flipping": ((0.05, 0.0, -0.05), {"flips"}),
    "none": ((0.0, 0.0, 0.0), {"cannot tell"}),
    "curved": ((0.05, 0.025, 0.0125), {"fades", "carries"}),
    "noisy": ((0.05, 0.05, 0.05), {"carries"}),
}
OTHER_VARIANTS = (0, 6)


def main() -> None:
    num_studies = int(sys.argv[1]) if len(sys.argv) > 1 else NUM_STUDIES
    cells = [
        measure(name, others, shared_sd, num_studies)
        for name in TRUTHS
        for others in OTHER_VARIANTS
        for shared_sd in (0.0, SD)
    ]
    print(json.dumps(cells, indent=1))
    if num_studies == NUM_STUDIES:
        settings = {"num_studies": num_studies, "num_seeds": NUM_SEEDS, "sd": SD, "seed": SEED}
        write_record("ladders_simulated", {"settings": settings, "results": cells})


def measure(name: str, others: int, shared_sd: float, num_studies: int) -> dict[str, Any]:
    """Shares of right and wrong words, and of forecasts that cover, in one cell."""
    rng = np.random.default_rng([SEED, list(TRUTHS).index(name), others, round(1e6 * shared_sd)])
    (truth, right), sd = TRUTHS[name], NOISY_SD if name == "noisy" else SD
    found = [simulated_ladder(rng, truth, others=others, sd=sd, shared_sd=shared_sd) for _ in range(num_studies)]
    words = Counter(ladder.word for ladder in found)
    covered = [covers(left, truth[-1]) for ladder in found if (left := ladder.left_out) is not None]
    wrong = {word for word in words if word not in right and word != "cannot tell"}
    return {
        "truth": name,
        "variants": 2 + others,
        "shared_sd": shared_sd,
        "right": sum(words[word] for word in right) / num_studies,
        "wrong": sum(words[word] for word in wrong) / num_studies,
        "words": dict(words),
        "forecast_covers": sum(covered) / num_studies,
    }


def covers(interval: Interval, truth: float) -> bool:
    """True if a bounded interval holds the truth."""
    assert interval.lo is not None
    assert interval.hi is not None
    return interval.lo <= truth <= interval.hi


def simulated_ladder(
    rng: np.random.Generator, truth: tuple[float, ...], *, others: int, sd: float, shared_sd: float
) -> Ladder:
    """The ladder of one variant, from the levels of all runs at each scale."""
    rungs = []
    for place, difference in enumerate(truth):
        starts = [f"{place} {seed}" for seed in range(NUM_SEEDS)]
        shared = rng.normal(0, shared_sd, NUM_SEEDS) if shared_sd else np.zeros(NUM_SEEDS)
        means = [0.5, 0.5 + difference, *([0.5] * others)]
        runs = [
            Repeats.of((mean + shared + rng.normal(0, sd, NUM_SEEDS)).tolist(), [0.0] * NUM_SEEDS, starts)
            for mean in means
        ]
        spread = run_to_run(runs)
        difference = spread.of_difference(runs[1], runs[0])
        answer = Answer.of(LEVEL, interval_of([difference], difference.estimate))
        freedom = spread.paired.freedom if spread.paired else spread.within.freedom
        rungs.append(rung_of(str(place), float(place), answer, freedom))
    known = tuple(rung for rung in rungs if rung is not None)
    assert len(known) == len(truth)
    return Ladder(question=LEVEL, rungs=known)


if __name__ == "__main__":
    main()
