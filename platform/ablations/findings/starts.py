"""Remarks on variants whose score before training is not that of the reference, so that levels differ without training.

Starts are the scores at step 0, or at compute 0 if steps are unknown. Two variants begin apart if their mean starts
differ by more than 0.05 and by more than six standard errors, from the spread of starts within variants and the noise
of the evaluations.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from ablations.findings.remark import MOST_NAMED, Remark, by_variant
from ablations.readings.fitted_run import FittedRun
from ablations.text import counted

LEAST_APART, STANDARD_ERRORS = 0.05, 6.0


def remarks_on_starts(reference: str, runs: Sequence[FittedRun]) -> Iterator[Remark]:
    """A remark on the variants that begin elsewhere than the reference, with their scores."""
    starts = {
        name: (some, np.array([float(run.curve.score[0]) for run in some if run.curve is not None]))
        for name, some, _ in by_variant(runs, _has_start)
    }
    if reference not in starts:
        return
    sd = _spread([found for _, found in starts.values()], runs)
    own = starts[reference][1]
    elsewhere = [
        name
        for name, (_, found) in starts.items()
        if abs(found.mean() - own.mean())
        > max(LEAST_APART, STANDARD_ERRORS * sd * math.sqrt(1 / found.size + 1 / own.size))
    ]
    if not elsewhere:
        return
    said = ", ".join(f"{name} {starts[name][1].mean():.3f}" for name in elsewhere[:MOST_NAMED])
    more = f" and {counted(len(elsewhere) - MOST_NAMED, 'more variant')}" if len(elsewhere) > MOST_NAMED else ""
    yield Remark(
        kind="starts apart",
        weight="warning",
        text=f"The scores before training differ from that of {reference}, {own.mean():.3f}: {said}{more}. Look for "
        "another unit, model, set of prompts or way to sample; levels differ by that much without training.",
        variants=tuple(elsewhere),
        runs=tuple(run.name for name in elsewhere for run in starts[name][0]),
        num_runs=len(runs),
    )


def _has_start(run: FittedRun) -> bool:
    """True if the first evaluation came before training: at step 0, or at compute 0 if steps are unknown."""
    if run.curve is None:
        return False
    counter = run.curve.compute if run.curve.step is None else run.curve.step
    return bool(counter[0] == 0)


def _spread(starts: Sequence[np.ndarray], runs: Sequence[FittedRun]) -> float:
    """Standard deviation of one start: that within variants, and at least the noise of one evaluation."""
    freedom = sum(found.size - 1 for found in starts)
    squares = sum(float(np.sum((found - found.mean()) ** 2)) for found in starts)
    noise = [run.fit.noise_sd for run in runs if run.fit is not None]
    return max(math.sqrt(squares / freedom) if freedom else 0.0, float(np.median(noise)) if noise else 0.0)
