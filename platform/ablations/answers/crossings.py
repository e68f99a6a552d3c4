"""Where the curves of two variants cross for the last time, and who leads beyond it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ablations.answers.differences import starts_of
from ablations.answers.forecasts import OUTER, drawn_interval, is_by_eq1, joint_draws, root, search_grid
from ablations.answers.run_to_run import RunToRun
from ablations.fit.result import Fit

UNTOLD = (0.1, 0.9)
"""Limits of a leader's share of the draws between which the leader of two curves is undecided."""


@dataclass(frozen=True, kw_only=True)
class Crossing:
    """The last crossing of two curves, and the leader beyond it.

    Crossing(compute=5200.0, lo=3900.0, hi=11000.0, probability=0.83, leads_after=0.97)

    The search runs from the start of the windows to 100 times the largest fitted compute.
    """

    compute: float | None
    """Median over the draws that cross; None if no draw does."""
    lo: float | None
    """Lower end of the 95 % interval of those draws, or of eq. 1's own crossing draws if that reaches further."""
    hi: float | None
    probability: float
    """Probability that the curves cross: the share of draws that do."""
    leads_after: float
    """Share of the crossing draws in which the first variant leads beyond the crossing; share of all draws if none
    crosses."""

    @property
    def leads(self) -> bool | None:
        """True if the first variant leads beyond the crossing; None if undecided."""
        least, most = UNTOLD
        return None if least < self.leads_after < most else self.leads_after >= most


def crossing(fits: Sequence[Fit], other: Sequence[Fit], spread: RunToRun) -> Crossing:
    """The last crossing of the curves of two variants, and its probability.

    If a variant has one seed, the crossing describes only these runs, without run-to-run differences.
    """
    return _crossing(tuple(fits), tuple(other), spread)


@lru_cache(maxsize=64)  # the same at every budget that a page asks for
def _crossing(fits: tuple[Fit, ...], other: tuple[Fit, ...], spread: RunToRun) -> Crossing:
    grid = search_grid((*fits, *other), start=1.0)
    ours, others = (_draws_along(one, tuple(grid.tolist())) for one in (fits, other))
    averaged, of_eq1 = (own - theirs for own, theirs in zip(ours, others, strict=True))
    if min(len(fits), len(other)) > 1:
        apart = spread.differences(starts_of(fits), starts_of(other), len(averaged))[:, None]
        averaged, of_eq1 = averaged + apart, of_eq1 + apart
    at, at_eq1 = _last_crossings(averaged, grid), _last_crossings(of_eq1, grid)
    crosses = np.isfinite(at)
    if not crosses.any():
        leads = float(np.mean((averaged > 0).any(axis=1)))
        return Crossing(compute=None, lo=None, hi=None, probability=0.0, leads_after=leads)
    at, at_eq1, ahead = at[crosses], at_eq1[np.isfinite(at_eq1)], averaged[crosses]
    # If the families disagree on the leader, curves change sides while the law changes, and their crossings gather
    # there: the averaged band may be narrower than that of eq. 1.
    lo, hi = np.quantile(at, OUTER)
    if at_eq1.size:
        lo, hi = min(lo, np.quantile(at_eq1, OUTER[0])), max(hi, np.quantile(at_eq1, OUTER[1]))
    is_eq1s = at_eq1.size > 0 and is_by_eq1(fits) and is_by_eq1(other)
    return Crossing(
        compute=drawn_interval(at_eq1 if is_eq1s else at, at).estimate,
        lo=float(lo),
        hi=float(hi),
        probability=float(crosses.mean()),
        leads_after=float(np.mean(_last_sign(ahead) > 0)),
    )


@lru_cache(maxsize=2)  # the reference's draws serve every variant that is compared with it
def _draws_along(fits: tuple[Fit, ...], grid: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Draws of a variant by all families, and by eq. 1 alone, each of shape (num_draws, num_compute)."""
    return joint_draws(fits, np.array(grid)), joint_draws(fits, np.array(grid), eq1_alone=True)


def _last_crossings(ahead: np.ndarray, grid: np.ndarray) -> np.ndarray:
    """Compute at which each row changes sign for the last time; infinite if it never does."""
    changes = np.sign(ahead[:, 1:]) * np.sign(ahead[:, :-1]) < 0
    node = changes.shape[1] - np.argmax(changes[:, ::-1], axis=1)
    at = root(ahead, grid, node)
    at[~changes.any(axis=1)] = np.inf
    return at


def _last_sign(ahead: np.ndarray) -> np.ndarray:
    """The last nonzero sign of each row, since curves that end at 1 together are level there."""
    signs = np.sign(ahead)
    last = signs.shape[1] - 1 - np.argmax(signs[:, ::-1] != 0, axis=1)
    return signs[np.arange(last.size), last]
