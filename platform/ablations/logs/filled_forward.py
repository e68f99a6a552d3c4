"""Scores that a table repeats until the next evaluation, as pandas' `ffill` does, or from the end of a run on.

    step     10   11   12   13   14   15   16       rows
    score   .31  .31  .31  .38  .38  .38  .37       of evaluations at steps 10, 13 and 16

Repeated scores are no evaluations: they look like little noise and delay each rise. Coarse scores repeat by chance, but
not at even distances.
"""

import numpy as np

from ablations.fit.curve import FIELDS_OF_READINGS, Curve
from ablations.text import counted

FEWEST_KEPT = 6
"""Minimum number of evaluations between the first and the last whose repeats show even distances."""
EVEN, MOST_EVEN = 0.2, 0.7
"""Deviation from the median distance that counts as even, and the share of distances that must be."""
FEWEST_AT_END, BY_CHANCE_AT_END = 4, 1e-6
"""Number of equal last scores from which the end may be filled, and the probability below which that is no chance."""


def without_repeats(curve: Curve) -> tuple[Curve, str]:
    """The curve with the first of equal scores that follow each other, if they repeat at even distances, and a note."""
    starts = np.flatnonzero(np.append(True, np.diff(curve.score) != 0))
    distances = np.diff(starts)[1:]
    if distances.size >= FEWEST_KEPT and distances.min() >= 2:
        usual = float(np.median(distances))
        is_even = np.abs(distances - usual) <= EVEN * usual
        if distances.min() >= (1 - EVEN) * usual and is_even.mean() >= MOST_EVEN:
            note = (
                f"each score stands {usual:g} times in a row, as in a table that was filled forward; the first of each "
                f"counts, and {curve.score.size - starts.size} of {counted(curve.score.size, 'score')} are left out"
            )
            return _readings(curve, starts), note
    return curve, _filled_end(curve.score)


def _readings(curve: Curve, places: np.ndarray) -> Curve:
    known = {name: values[places] for name in FIELDS_OF_READINGS if (values := getattr(curve, name)) is not None}
    return Curve(name=curve.name, start=curve.start, **known)


def _filled_end(score: np.ndarray) -> str:
    """A note if the last scores are equal, but others seldom; ends at 0 and 1 are those of runs."""
    changes = np.flatnonzero(np.diff(score) != 0)
    if not changes.size or score[-1] in (0, 1):
        return ""
    first = int(changes[-1]) + 1
    number, repeats = score.size - first, int(np.sum(np.diff(score[:first]) == 0))
    chance = (repeats + 1) / (first + 1)
    if number < FEWEST_AT_END or chance ** (number - 1) >= BY_CHANCE_AT_END:
        return ""
    return (
        f"the last {number} scores are all {score[-1]:g}, while those before seldom repeat: the table may have been "
        "filled forward after the run had ended; if so, delete these rows"
    )
