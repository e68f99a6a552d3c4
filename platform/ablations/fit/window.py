"""Selects the readings to fit: a range of compute without step 0, and nothing after a collapse."""

from dataclasses import dataclass

import numpy as np

from ablations.errors import AblationsError
from ablations.fit.collapse import find_collapse
from ablations.fit.curve import Curve
from ablations.fit.fall import find_fall
from ablations.fit.options import MIN_READINGS
from ablations.fit.reach import refuse_a_late_start
from ablations.text import counted


@dataclass(frozen=True, kw_only=True, eq=False)
class Window:
    """The readings with compute in (fit_from, fit_to], and the reading before RL if there is one."""

    compute: np.ndarray
    score: np.ndarray
    sampling_variance: np.ndarray | None
    start_score: float | None
    start_variance: float
    """Variance of the reading before RL due to its finite number of answers; 0 if unknown."""
    collapsed: bool
    fell: bool
    """True if the readings fell; none of them is left out."""


def select_window(curve: Curve, fit_from: float, fit_to: float, *, through_collapse: bool = False) -> Window:
    """The readings to fit; those after the peak of a collapsed curve are left out, if MIN_READINGS remain.

    Raises AblationsError if there are fewer, or if compute apparently does not count from the start of training.
    """
    if not 0 <= fit_from < fit_to:
        raise AblationsError(
            f"curve {curve.name!r}: found fit_from {fit_from:g} and fit_to {fit_to:g}; must be 0 <= fit_from < fit_to"
        )
    chosen = (curve.compute > fit_from) & (curve.compute <= fit_to)
    compute, score = curve.compute[chosen], curve.score[chosen]
    before_rl = curve.compute[0] == 0
    start_score = float(curve.score[0]) if before_rl else None
    if compute.size < MIN_READINGS:
        found = f"{counted(compute.size, 'evaluation')} with compute in ({fit_from:g}, {fit_to:g}]"
        fall = find_fall(curve, fit_to)
        fell = "" if fall is None else f", which fell from {curve.score[fall.peak]:.3f} to {curve.score[fall.last]:.3f}"
        raise AblationsError(f"curve {curve.name!r}: {found}{fell}; a fit needs at least {MIN_READINGS} beyond step 0")
    refuse_a_late_start(curve, compute, score)
    known = curve.sampling_variance
    variance = None if known is None else known[chosen]
    end, fell = None, False
    if not through_collapse:
        floor = 0.0 if variance is None else float(variance.mean())
        collapse = find_collapse(compute, score, start_score=start_score, sampling_variance=floor)
        if collapse is not None and collapse.index + 1 >= MIN_READINGS:
            end = collapse.index + 1
        else:
            fell = collapse is not None or find_fall(curve, fit_to) is not None
    return Window(
        compute=compute[:end],
        score=score[:end],
        sampling_variance=None if variance is None else variance[:end],
        start_score=start_score,
        start_variance=float(known[0]) if before_rl and known is not None else 0.0,
        collapsed=end is not None,
        fell=fell,
    )
