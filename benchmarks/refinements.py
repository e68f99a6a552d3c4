"""What each refinement of the run-to-run deviation does: coverage and width of differences without it.

    PYTHONPATH=platform:trainer:benchmarks python benchmarks/refinements.py [SWEEPS]       # two minutes on one core

Numbers of runs are drawn, not curves: y = u_start + e + error of the evaluations, sd .012 between runs, of which .6 is
of the start, errors of half that sd. Every variant is equal to the reference. Each method sees the same draws, so a
change of coverage is known better than coverage itself; its standard error is over sweeps. Width is the mean width of
the 95 % interval over that with all refinements. Writes `results/refinements.json`.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
from record import write_record
from scipy.special import stdtrit

from ablations.answers import repeats, run_to_run
from ablations.answers.repeats import CommonSpread, Repeats
from ablations.answers.run_to_run import RunToRun
from ablations.answers.student import Student

SEED, NUM_SWEEPS = 47, 250
SD, SHARED, ERROR = 0.012, 0.6, 0.006
Study = tuple[list[Repeats], list[Repeats]]
"""The variants of a sweep, the reference first, and repeated recipes of other sweeps."""


def drawn(
    rng: np.random.Generator,
    seeds: Sequence[int],
    *,
    sd: float = SD,
    errors: Sequence[float] = (ERROR,),
    stated: float = 1.0,
    noisy: float = 1.0,
    low: float = 0.0,
) -> list[Repeats]:
    """Variants with these numbers of seeds and errors of evaluations, which are stated `stated` times as large.

    The reference is `noisy` times as noisy; the last variant has one run that is `low` standard deviations low.
    """
    start = np.sqrt(SHARED) * sd * rng.standard_normal(max(seeds))
    found = []
    for v, m in enumerate(seeds):
        error = errors[v % len(errors)]
        own = np.sqrt(1 - SHARED) * sd * rng.standard_normal(m)
        y = start[:m] + (noisy if v == 0 else 1.0) * own + error * rng.standard_normal(m)
        y[0] -= low * sd if v == len(seeds) - 1 else 0.0
        found.append(Repeats.of(y.tolist(), [(stated * error) ** 2] * m, [str(b) for b in range(m)]))
    return found


def others(rng: np.random.Generator) -> list[Repeats]:
    """Four recipes of other sweeps with three seeds each."""
    return [replace(one, starts=tuple(f"{v} {b}" for b in one.starts)) for v, one in enumerate(drawn(rng, [3] * 4))]


STUDIES: dict[str, Callable[[np.random.Generator], Study]] = {
    "9 variants, 3 seeds": lambda rng: (drawn(rng, [3] * 9), []),
    "errors 1 to 6": lambda rng: (drawn(rng, [3] * 9, errors=[ERROR * n / 2 for n in range(1, 7)]), []),
    "errors too large": lambda rng: (drawn(rng, [3] * 9, sd=0.002, stated=1.5), []),
    "one run 4 sd low": lambda rng: (drawn(rng, [3] * 9, low=4.0), []),
    "reference twice as noisy": lambda rng: (drawn(rng, [3] * 9, noisy=2.0), []),
    "1 seed of 3 variants": lambda rng: (drawn(rng, [3, 3, 3, 1, 1, 1]), []),
    "2 variants, 2 seeds, others": lambda rng: (drawn(rng, [2, 2]), others(rng)),
    "2 variants, 5 seeds": lambda rng: (drawn(rng, [5, 5]), []),
}


def common_variance(self: RunToRun, runs: Repeats, pool: CommonSpread) -> tuple[float, float]:
    """The variance of all variants, for each of them."""
    return pool.scale * runs.weighed(pool.tau).variance, pool.freedom


def pooled_freedom(contrast: Callable[..., Student]) -> Callable[..., Student]:
    """A contrast with the degrees of freedom of the pool, whatever shares of it are shared."""

    def found(self: RunToRun, sides: Sequence[tuple[float, Repeats]]) -> Student:
        return replace(contrast(self, sides), freedom=(self.paired or self.within).freedom)

    return found


REFINEMENTS: dict[str, Callable[[], Any]] = {
    "effects of starts": lambda: patch.object(run_to_run, "pays_to_pair", lambda freedom, unpaired: False),
    "scale below 1": lambda: patch.object(repeats, "LEAST_SCALE", 1.0),
    "variance of each variant": lambda: patch.object(RunToRun, "_moderated", common_variance),
    "outliers leave the pool": lambda: patch.object(run_to_run, "_that_agree", lambda every, num_variants: list(every)),
    "Satterthwaite's freedom": lambda: patch.object(RunToRun, "of_contrast", pooled_freedom(RunToRun.of_contrast)),
}
IN_DATA: dict[str, Callable[[Study], Study]] = {
    "errors of evaluations": lambda study: (
        [replace(v, own_variances=(0.0,) * len(v.values)) for v in study[0]],
        study[1],
    ),
    "other sweeps": lambda study: (study[0], []),
}


def main() -> None:
    num_sweeps = int(sys.argv[1]) if len(sys.argv) > 1 else NUM_SWEEPS
    rows = [row for name in STUDIES for row in rows_of(name, num_sweeps)]
    write_record("refinements", {"sweeps": num_sweeps, "seed": SEED, "rows": rows})


def rows_of(name: str, num_sweeps: int) -> Iterator[dict[str, Any]]:
    """Coverage and width in one study with all refinements, and the changes without each."""
    place = list(STUDIES).index(name)
    studies = [STUDIES[name](np.random.default_rng([SEED, place, number])) for number in range(num_sweeps)]
    covered, width = measured(studies)
    yield say({"study": name, "without": "", "coverage": covered.mean(), "width": width.mean() / SD})
    for without in (*REFINEMENTS, *IN_DATA):
        changed = IN_DATA.get(without, lambda study: study)
        with REFINEMENTS[without]() if without in REFINEMENTS else nothing():
            theirs, wide = measured([changed(study) for study in studies])
        change = (theirs - covered).mean(axis=1)
        yield say(
            {
                "study": name,
                "without": without,
                "coverage": change.mean(),
                "error": change.std(ddof=1) / np.sqrt(num_sweeps),
                "width": wide.mean() / width.mean() - 1,
            }
        )


@contextmanager
def nothing() -> Iterator[None]:
    yield


def say(row: dict[str, Any]) -> dict[str, Any]:
    row = {name: value if isinstance(value, str) else round(float(value), 4) for name, value in row.items()}
    print(*row.values(), sep="\t", flush=True)
    return row


def measured(studies: Sequence[Study]) -> tuple[np.ndarray, np.ndarray]:
    """Whether each interval holds 0, and its width; shape (num_sweeps, num_differences)."""
    covered, width = [], []
    for variants, elsewhere in studies:
        spread = run_to_run.run_to_run(variants, elsewhere)
        found = [spread.of_difference(one, variants[0]) for one in variants[1:]]
        half = np.array([stdtrit(one.freedom, 0.975) * one.variance**0.5 for one in found])
        covered.append(np.abs([one.estimate for one in found]) <= half)
        width.append(2 * half)
    return np.array(covered, dtype=float), np.array(width)


if __name__ == "__main__":
    main()
