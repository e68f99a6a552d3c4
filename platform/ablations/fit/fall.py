"""Finds a fall: the last readings lie below the highest ones before them, on curves of four readings and more.

Readings are the held-out scores from the one before RL on. With w = 3 (2 for fewer than 7 readings) a curve has fallen
if

    max over w neighbours before the last w (mean) - mean of the last w  >  limit sd
    sd^2 = 2 (sampling / w + wander (sum over i, j <= w of rho^|i - j|) / w^2),        rho = 0.5

and each of the last w lies nearer to their own mean than to the peak, so that neither a curve that has recovered nor
one failed evaluation counts. If the last three of 7 to 15 readings have not fallen, the last two are tested in the same
way; of more readings, two are few enough to be those of a failed evaluator. `sampling` is the binomial variance if
samples are counted. `wander` is what second differences show beyond it, with or without those that span the largest
step, since neither a trend nor one step is noise; it is at least LEAST_WANDER^2, for few readings cannot show that a
run wanders less. From sixteen readings on, means of neighbours, 8 to 15 of them, are tested in the same way, and single
readings with a higher limit.

`collapse` finds the onset of a decline after a rise, and needs eight readings. This test says only that a curve ended
below where it has been. `benchmarks/fall_detection.py` measures false alarms and what is found.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ablations.fit.collapse import ASSUMED_AUTOCORRELATION
from ablations.fit.curve import Curve

SHORTEST_FALL = 4
"""Minimum number of readings, including the one before RL: two before the fall and two after it."""
LEAST_FOR_THREE = 7
"""Minimum number of readings for comparing the last three; with fewer, the last two are compared."""
LEAST_BLOCKS = 8
"""Minimum number of means of neighbours in a curve that has at least twice as many readings."""
LEAST_WANDER = 0.01
"""Smallest standard deviation assumed for readings of a run without the noise of finite samples."""
LEAST_FALL_IF_COUNTED, LEAST_FALL_SE = 2.75, 4.0
"""Standard errors beyond which a curve has fallen: with counted samples, and if only the readings show their noise."""
LEAST_LATE_FALL_IF_COUNTED = 3.4
"""With counted samples, if only the last two of 7 to 15 readings have fallen: a second look at the same
readings, which at 2.75 would double the false alarms."""


@dataclass(frozen=True, kw_only=True)
class Fall:
    """The readings between which a curve fell: `Fall(peak=0, last=10)`, indices into the curve."""

    peak: int
    """The highest of the readings that the last ones are compared with."""
    last: int
    """The last reading up to the end of the window."""


def find_fall(curve: Curve, fit_to: float = np.inf) -> Fall | None:
    """The fall of a curve up to `fit_to`; None if it has not fallen, has recovered, or is too short to tell."""
    if (found := _readings(curve, fit_to)) is None:
        return None
    score, samples = found
    each = score.size // LEAST_BLOCKS
    at = _peak_of_a_fall(score, samples, is_long=each > 1)
    if at is None and LEAST_FOR_THREE <= score.size < 2 * LEAST_BLOCKS:
        at = _peak_of_a_fall(score, samples, is_late=True)
    if at is None and each > 1:
        skipped = score.size % each
        of_means = _peak_of_a_fall(
            score[skipped:].reshape(-1, each).mean(1), None if samples is None else samples * each
        )
        at = None if of_means is None else slice(skipped + of_means.start * each, skipped + of_means.stop * each)
    return None if at is None else Fall(peak=at.start + int(np.argmax(score[at])), last=score.size - 1)


def _readings(curve: Curve, fit_to: float) -> tuple[np.ndarray, float | None] | None:
    """The readings up to `fit_to`, with the mean number of samples behind each if counted; None if they are too few."""
    inside = curve.compute <= fit_to
    if np.count_nonzero(inside) < SHORTEST_FALL:
        return None
    return curve.score[inside], None if curve.samples is None else float(np.mean(curve.samples[inside]))


def _peak_of_a_fall(
    y: np.ndarray, samples: float | None, *, is_long: bool = False, is_late: bool = False
) -> slice | None:
    """The readings that the last ones have fallen from, only the last two if it `is_late`; `samples` are those behind
    each reading, if counted."""
    w = 2 if is_late or y.size < LEAST_FOR_THREE else 3
    means = np.convolve(y, np.full(w, 1 / w), mode="valid")
    peak, end = int(np.argmax(means[: y.size - 2 * w + 1])), float(means[-1])
    fall = float(means[peak]) - end
    if fall <= 0 or max(y[-w:]) >= end + fall / 2:
        return None
    for differences in (np.diff(y, 2), _beside_the_largest_step(y)):
        num, is_enough = differences.size, samples is not None and not is_long
        if num == 0 and not is_enough:
            continue
        if_counted = LEAST_LATE_FALL_IF_COUNTED if is_late else LEAST_FALL_IF_COUNTED
        limit = if_counted if is_enough else LEAST_FALL_SE * (1 + 2 / num**2)
        sampling, wander = _noise(differences, end + fall / 2, samples, 2 * w)
        if fall > limit * (2 * (sampling / w + wander * _share_left(w))) ** 0.5:
            return slice(peak, peak + w)
    return None


def _beside_the_largest_step(y: np.ndarray) -> np.ndarray:
    """The second differences without those that span the largest step between neighbours."""
    step = int(np.argmax(np.abs(np.diff(y))))
    differences = np.diff(y, 2)
    return np.delete(differences, [at for at in (step - 1, step) if 0 <= at < differences.size])


@dataclass(frozen=True, kw_only=True)
class Change:
    """The last third of the readings against the first: `Change(start=0.91, end=0.79, variance=0.0009, limit=2.75)`."""

    start: float
    end: float
    variance: float
    """Variance of end - start."""
    limit: float
    """Standard errors beyond which the change is not noise."""


def change_of(curve: Curve, fit_to: float = np.inf) -> Change | None:
    """The change of a curve since its first reading, up to `fit_to`; None if it has fewer than SHORTEST_FALL."""
    if (found := _readings(curve, fit_to)) is None:
        return None
    y, samples = found
    w = max(y.size // 3, 2)
    differences = _beside_the_largest_step(y) if samples is not None else np.diff(y, 2)
    sampling, wander = _noise(differences, float(y.mean()), samples, y.size)
    of_end = sampling / w + wander * _share_left(w)
    return Change(
        start=float(y[0]),
        end=float(y[-w:].mean()),
        variance=sampling + wander + of_end,
        limit=LEAST_FALL_IF_COUNTED if samples is not None else LEAST_FALL_SE * (1 + 2 / differences.size**2),
    )


def end_below_their_start(changes: Sequence[Change]) -> bool:
    """True if the runs of a variant end below their first reading on average, by more than noise, and none above it."""
    if not changes or any(one.end >= one.start for one in changes):
        return False
    fall = sum(one.start - one.end for one in changes)
    return fall > max(one.limit for one in changes) * sum(one.variance for one in changes) ** 0.5


def _noise(differences: np.ndarray, p: float, samples: float | None, num_readings: int) -> tuple[float, float]:
    """Variance of a reading due to its finite samples, 0 if they are not counted, and the rest of it."""
    sampling = 0.0
    if samples is not None:
        all_samples = num_readings * samples
        p = (all_samples * p + 1) / (all_samples + 2)  # 0 and 1 have noise too (Laplace's rule of succession)
        sampling = p * (1 - p) / samples
    rho = ASSUMED_AUTOCORRELATION
    seen = float(np.mean(differences**2)) / (6 - 8 * rho + 2 * rho**2) if differences.size else 0.0
    return sampling, max(seen - sampling, LEAST_WANDER**2)


def _share_left(w: int) -> float:
    """Variance of a mean of w neighbours over that of one reading: sum over i, j <= w of rho^|i - j|, over w^2."""
    lags = np.arange(1, w)  # pairs by their distance: those of a long run would fill the memory
    return float(w + 2 * np.sum((w - lags) * ASSUMED_AUTOCORRELATION**lags)) / w**2
