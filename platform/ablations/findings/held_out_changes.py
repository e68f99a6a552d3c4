"""Remarks on runs whose held-out set seems to change in the middle: the score jumps and stays, or the number of answers
changes.

A score jumps between two evaluations if it rises by more than 0.05 and by five times as much as between any two of the
four evaluations before and the four after.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from ablations.findings.remark import Remark, by_variant, remark_on, seeds_said
from ablations.fit.curve import Curve
from ablations.readings.fitted_run import FittedRun
from ablations.text import compute_text

AROUND = 4
"""Number of changes before and after a jump that it is compared with."""
SMALLEST_JUMP, TIMES_AROUND = 0.05, 5.0
OTHER_SIZE = 1.5
"""Ratio of the numbers of held-out answers above which they are no longer those of one set."""


def remarks_on_held_out_changes(runs: Sequence[FittedRun], compute_name: str) -> Iterator[Remark]:
    """A remark for each variant with such runs, with the evaluations before and after the change."""
    said = {run.name: text for run in runs if run.curve is not None and (text := _change(run.curve, compute_name))}
    for name, some, number in by_variant(runs, lambda run: run.name in said):
        listed = "; ".join(f"seed {run.seed}: {said[run.name]}" for run in some)
        clause = f"the held-out set of {seeds_said(some, number)} may have changed during the run ({listed})"
        after = " Scores before and after another set, its prompts or its judge are not of one curve."
        yield remark_on("held-out change", name, some, number, clause, after, weight="warning")


def _change(curve: Curve, compute_name: str) -> str:
    """Words on the first change of the held-out set of a curve; empty without one."""
    place, why = _other_size(curve)
    if not place:
        place = _jump(curve.score)
        why = f"from {curve.score[place - 1]:.3f} to {curve.score[place]:.3f}"
    if not place:
        return ""
    before, after = map(compute_text, curve.compute[place - 1 : place + 1])
    return f"{why} between {before} and {after} {compute_name}"


def _other_size(curve: Curve) -> tuple[int, str]:
    """The first evaluation with another number of answers than the one before, and both numbers."""
    if curve.samples is None:
        return 0, ""
    ratio = curve.samples[1:] / curve.samples[:-1]
    places = np.flatnonzero((ratio > OTHER_SIZE) | (ratio < 1 / OTHER_SIZE)) + 1
    if not places.size:
        return 0, ""
    place = int(places[0])
    return place, f"from {curve.samples[place - 1]:,.0f} to {curve.samples[place]:,.0f} answers"


def _jump(score: np.ndarray) -> int:
    """The first evaluation after a jump; 0 without one."""
    changes = np.diff(score)
    for place in range(AROUND, changes.size - AROUND):
        around = np.abs(np.delete(changes[place - AROUND : place + AROUND + 1], AROUND))
        if changes[place] > max(SMALLEST_JUMP, TIMES_AROUND * float(around.max())) and around.max() > 0:
            return place + 1
    return 0
