"""Where the steps of a log go back for good, as they do when a run is resumed."""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise

import numpy as np

MANY, MOST_STEPS, OFTEN = 3, 0.5, 0.25
"""Number of steps back from which writers may run side by side, and shares of these and of steps."""
USUAL_QUANTILE = 0.25
"""Quantile of the distances between steps that is the usual distance; at some, a value may be missing."""
MOST_OF_BACK = 0.9
"""Quantile of the steps back that counts as the distance between writers that run side by side."""
SHARE_OF_MIXED = 0.25
"""Share of steps lower than the previous one, above which the steps count as unordered."""


def places_of_resumes(at: np.ndarray, begins: Collection[int], *, may_stay: bool) -> list[int]:
    """The places in `at`, steps in the order of logging, at which an attempt begins again at an earlier step.

    `begins` are places at which another process begins to write. No attempt begins where a step is logged late, or
    where several writers log each step. With `may_stay`, an attempt may begin at the last step of the previous one.
    """
    firsts = np.flatnonzero(np.diff(at, prepend=np.nan) != 0)
    if not may_stay or firsts.size <= MOST_STEPS * at.size:  # several rows of each step
        return [int(firsts[place]) for place in _of_ascending(at[firsts], {*np.searchsorted(firsts, [*begins])})]
    return _of_ascending(at, {*begins})


def _of_ascending(at: np.ndarray, begins: Collection[int]) -> list[int]:
    """The places in steps of which most are higher than the one before."""
    runs = [0, *(np.flatnonzero(at[1:] <= at[:-1]) + 1).tolist(), at.size]
    if len(runs) == 2:
        return []
    is_mixed = len(runs) - 2 > SHARE_OF_MIXED * at.size
    apart = np.diff(np.unique(at)) if is_mixed else np.diff(at)[np.diff(at) > 0]
    usual = float(np.quantile(apart, USUAL_QUANTILE)) if apart.size else 1.0
    found = [*_steps_back(at.tolist(), runs, begins, usual, late=-1.0)]
    num_rows = np.unique(at, return_counts=True)[1]
    if _are_side_by_side(found, num_rows):
        late = 2 * max(usual, float(np.quantile([depth for _, depth, _ in found], MOST_OF_BACK)))
        found = [*_steps_back(at.tolist(), runs, begins, usual, late=late)]
    places = [place for place, _, _ in found]
    is_of_each = num_rows.min() == num_rows.max() > 1  # of a resumed run, some steps are logged once
    return [] if is_of_each and len({*at[places].tolist()}) >= MANY else places


def _are_side_by_side(found: Sequence[tuple[int, float, bool]], num_rows: np.ndarray) -> bool:
    """True if so many steps go back that they are of writers that run side by side; `num_rows` has those of each step.

    Attempts log each step again, and are few for their steps.
    """
    often = max(MANY, OFTEN * num_rows.size)
    is_often = len(found) >= often and np.mean(num_rows > 1) >= MOST_STEPS
    stays = sum(depth == 0 for _, depth, _ in found)
    has_gaps = sum(gaps for *_, gaps in found)
    return bool(is_often) or stays >= often or has_gaps >= max(MANY, MOST_STEPS * len(found))


def _steps_back(
    at: Sequence[float], runs: Sequence[int], begins: Collection[int], usual: float, late: float
) -> Iterator[tuple[int, float, bool]]:
    """Each place at which an attempt begins, how far it goes back, and if it skips steps that the one before has.

    `runs` are the places at which ascending runs begin. A run that only brings steps that were left out, in the `usual`
    distance, or that goes back no further than `late`, is late.
    """
    so_far = [*at[: runs[1]]]
    for begin, end in pairwise(runs[1:]):
        run = at[begin:end]
        place = bisect_left(so_far, run[0])
        tail = so_far[place:]
        if not tail:
            so_far += run
            continue
        low = run[: bisect_right(run, tail[-1])]
        again = {*low} & {*tail}
        is_over = run[0] == tail[-1] and end == len(at) and len(run) == 1
        is_new = run[0] in again or not _fills([one for one in low if one not in again], so_far, place, usual)
        if begin not in begins and (is_over or not is_new or tail[-1] - run[0] <= late):
            so_far[place:] = sorted({*tail, *run})
            continue
        yield begin, tail[-1] - run[0], bool(again) and any(one not in again for one in tail if one <= run[-1])
        so_far[place:] = run


def _fills(low: Sequence[float], so_far: Sequence[float], place: int, usual: float) -> bool:
    """True if steps are as far from their neighbours as steps usually are."""
    before = so_far[place - 1] if place else -np.inf
    near = sorted([before, *so_far[place:], *low])
    return all(after - one >= usual for one, after in pairwise(near) if one in low or after in low)
