"""Selects the readings to fit: a range of compute without step 0, and nothing after a collapse."""

from dataclasses import dataclass

import numpy as np

from ablations.errors import AblationsError
from ablations.fit.collapse import find_collapse
from ablations.fit.curve import Curve
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


def select_window(curve: Curve, fit_from: float, fit_to: float, *, through_collapse: bool = False) -> Window:
    """The readings to fit; those after the peak of a collapsed curve are left out.

    Raises AblationsError if fewer than MIN_READINGS remain, or if compute apparently does not count from the start of
    training.
    """
    if not 0 <= fit_from < fit_to:
        raise AblationsError(
            f"curve {curve.name!r}: found fit_from {fit_from:g} and fit_to {fit_to:g}; must be 0 <= fit_from < fit_to"
        )
    chosen = (curve.compute > fit_from) & (curve.compute <= fit_to)
    compute, score = curve.compute[chosen], curve.score[chosen]
    before_rl = curve.compute[0] == 0
    start_score = float(curve.score[0]) if before_rl else None
    _require_points(
        curve, compute.size, f"{counted(compute.size, 'evaluation')} with compute in ({fit_from:g}, {fit_to:g}]"
    )
    refuse_a_late_start(curve, compute, score)
    known = curve.sampling_variance
    variance = None if known is None else known[chosen]
    collapse = None
    if not through_collapse:
        floor = 0.0 if variance is None else float(variance.mean())
        collapse = find_collapse(compute, score, start_score=start_score, sampling_variance=floor)
    end = None if collapse is None else collapse.index + 1
    if end is not None:
        _require_points(
            curve, end, f"the score falls after compute {compute[end - 1]:g} and {end} evaluations come before"
        )
    return Window(
        compute=compute[:end],
        score=score[:end],
        sampling_variance=None if variance is None else variance[:end],
        start_score=start_score,
        start_variance=float(known[0]) if before_rl and known is not None else 0.0,
        collapsed=collapse is not None,
    )


def _require_points(curve: Curve, num_points: int, found: str) -> None:
    if num_points < MIN_READINGS:
        raise AblationsError(f"curve {curve.name!r}: {found}; a fit needs at least {MIN_READINGS} beyond step 0")
