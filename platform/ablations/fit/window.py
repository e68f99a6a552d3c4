"""Which readings of a curve are fitted: a range of compute, step 0 apart, and nothing beyond a collapse."""

from dataclasses import dataclass

import numpy as np

from ablations.curve import Curve
from ablations.errors import AblationsError

MIN_POINTS = 6
"""Two more than eq. 1 has parameters, so that something is left over to judge the noise by."""
MIN_COLLAPSE_DROP = 0.03
COLLAPSE_NOISE_FACTOR = 6.0
SMOOTHED_READINGS = 3


@dataclass(frozen=True, kw_only=True, eq=False)
class Window:
    """The readings with compute in (fit_from, fit_to], and the reading before RL if there is one."""

    compute: np.ndarray
    score: np.ndarray
    samples: np.ndarray | None
    start_score: float | None
    start_samples: float | None
    collapsed: bool


def select_window(curve: Curve, fit_from: float, fit_to: float) -> Window:
    """The readings to fit; those after the peak of a curve that collapses are left out.

    Raises AblationsError when fewer than MIN_POINTS remain.
    """
    if not 0 <= fit_from < fit_to:
        raise AblationsError(
            f"curve {curve.name!r}: fit_from {fit_from:g} and fit_to {fit_to:g}; needed 0 <= fit_from < fit_to"
        )
    chosen = (curve.compute > fit_from) & (curve.compute <= fit_to)
    compute, score = curve.compute[chosen], curve.score[chosen]
    before_rl = curve.compute[0] == 0
    start_score = float(curve.score[0]) if before_rl else None
    _require_points(curve, compute.size, f"{compute.size} readings with compute in ({fit_from:g}, {fit_to:g}]")
    peak = collapse_after(score, start_score)
    if peak is not None:
        _require_points(
            curve, peak + 1, f"the score falls after compute {compute[peak]:g} and {peak + 1} readings come before"
        )
    end = None if peak is None else peak + 1
    return Window(
        compute=compute[:end],
        score=score[:end],
        samples=None if curve.samples is None else curve.samples[chosen][:end],
        start_score=start_score,
        start_samples=float(curve.samples[0]) if before_rl and curve.samples is not None else None,
        collapsed=peak is not None,
    )


def collapse_after(score: np.ndarray, start_score: float | None) -> int | None:
    """Index of the last reading before a collapse, or None.

    A curve has collapsed when the mean of its last three readings lies below its highest mean of three by more than
    0.03 and more than six times the noise of a reading, after a rise of as much. The noise is taken from second
    differences, which a smooth trend leaves alone: 1.4826 median |y_(i-1) - 2 y_i + y_(i+1)| / sqrt(6).
    """
    means = np.convolve(score, np.full(SMOOTHED_READINGS, 1 / SMOOTHED_READINGS), mode="valid")
    noise = 1.4826 * float(np.median(np.abs(np.diff(score, 2)))) / np.sqrt(6)
    least_change = max(MIN_COLLAPSE_DROP, COLLAPSE_NOISE_FACTOR * noise)
    peak = int(np.argmax(means))
    start = means[0] if start_score is None else min(means[0], start_score)
    if means[peak] - means[-1] > least_change and means[peak] - start > least_change:
        return peak + SMOOTHED_READINGS - 1
    return None


def _require_points(curve: Curve, num_points: int, found: str) -> None:
    if num_points < MIN_POINTS:
        raise AblationsError(f"curve {curve.name!r}: {found}; a fit needs at least {MIN_POINTS} beyond step 0")
