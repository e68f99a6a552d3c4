"""Remarks on runs that do not begin as the others: with another score before training, or late.

Starts are the scores at step 0, or at compute 0 if steps are unknown. Two variants begin apart if their mean starts
differ by more than 0.05 and by more than six standard errors, from the spread of starts within variants and the noise
of the evaluations.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from ablations.findings.remark import MOST_NAMED, Remark, by_variant, remark_on, seeds_said
from ablations.readings.fitted_run import FittedRun
from ablations.text import counted

LEAST_APART, STANDARD_ERRORS = 0.05, 6.0
MOST_SPACINGS = 1.5
"""Number of usual distances between evaluations within which a run may begin."""


def remarks_on_starts(reference: str, runs: Sequence[FittedRun]) -> Iterator[Remark]:
    """A remark on the variants that begin elsewhere than the reference, with their scores, and one on each variant with
    runs that begin late."""
    yield from _late(runs)
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


def _late(runs: Sequence[FittedRun]) -> Iterator[Remark]:
    """A remark on each variant with runs that begin after 0, further than their evaluations lie apart, if most runs
    begin at 0."""
    known = [run for run in runs if run.curve is not None]
    if 2 * sum(map(_has_start, known)) <= len(known):
        return
    for name, some, number in by_variant(known, _begins_late):
        firsts = "; ".join(f"seed {run.seed} at {_first(run)}" for run in some)
        said = f"the evaluations of {seeds_said(some, number)} begin late ({firsts}), those of most runs at 0"
        after = " A run that begins with a checkpoint of another is no run of its own."
        yield remark_on("starts apart", name, some, number, said, after, weight="warning")


def _begins_late(run: FittedRun) -> bool:
    counter = _counter(run)
    return counter.size > 1 and bool(counter[0] > MOST_SPACINGS * np.median(np.diff(counter)))


def _first(run: FittedRun) -> str:
    assert run.curve is not None
    return f"{'compute' if run.curve.step is None else 'step'} {_counter(run)[0]:g}"


def _counter(run: FittedRun) -> np.ndarray:
    """The steps of a run's evaluations, or their compute if steps are unknown."""
    if run.curve is None:
        return np.zeros(0)
    return run.curve.compute if run.curve.step is None else run.curve.step


def _has_start(run: FittedRun) -> bool:
    """True if the first evaluation came before training: at step 0, or at compute 0 if steps are unknown."""
    counter = _counter(run)
    return bool(counter.size and counter[0] == 0)


def _spread(starts: Sequence[np.ndarray], runs: Sequence[FittedRun]) -> float:
    """Standard deviation of one start: that within variants, and at least the noise of one evaluation."""
    freedom = sum(found.size - 1 for found in starts)
    squares = sum(float(np.sum((found - found.mean()) ** 2)) for found in starts)
    noise = [run.fit.noise_sd for run in runs if run.fit is not None]
    return max(math.sqrt(squares / freedom) if freedom else 0.0, float(np.median(noise)) if noise else 0.0)
