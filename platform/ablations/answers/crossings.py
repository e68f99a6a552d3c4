"""Where the curves of two variants cross for the last time, and who leads beyond it."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ablations.answers.differences import starts_of
from ablations.answers.forecasts import VariantFits, drawn_interval, root, search_grid
from ablations.answers.run_to_run import RunToRun

UNTOLD = (0.1, 0.9)
"""Shares of the draws between which neither of two curves counts as the leader."""


@dataclass(frozen=True, kw_only=True)
class Crossing:
    """The last crossing of two curves, and the leader beyond it.

    Crossing(compute=5200.0, lo=3900.0, hi=11000.0, probability=0.83, leads_after=0.97)

    The search runs from the start of the windows to 100 times the largest fitted compute.
    """

    compute: float | None
    """Median over the draws that cross; None if no draw does."""
    lo: float | None
    """Lower end of the 95 % interval of those draws."""
    hi: float | None
    probability: float
    """Probability that the curves cross: the share of draws that do."""
    leads_after: float
    """Share of the draws in which the first variant leads at the end of the search, beyond any crossing."""

    @property
    def leads(self) -> bool | None:
        """True if the first variant leads beyond the crossing; None if undecided."""
        least, most = UNTOLD
        return None if least < self.leads_after < most else self.leads_after >= most


def crossing(prospect: VariantFits, other: VariantFits, spread: RunToRun) -> Crossing:
    """The last crossing of the curves of two variants, and its probability.

    If a variant has one seed, the crossing describes only these runs, without run-to-run differences.
    """
    return _crossing(prospect, other, spread)


@lru_cache(maxsize=64)  # the same at every budget that a page asks for
def _crossing(prospect: VariantFits, other: VariantFits, spread: RunToRun) -> Crossing:
    grid = search_grid((*prospect.fits, *other.fits), start=1.0)
    ahead = prospect.draws(grid) - _draws_along(other, tuple(grid.tolist()))
    if min(len(prospect.fits), len(other.fits)) > 1:
        ahead = ahead + spread.differences(starts_of(prospect.fits), starts_of(other.fits), len(ahead))[:, None]
    signs = np.sign(ahead)
    at = _last_crossings(ahead, signs, grid)
    crosses, leads = np.isfinite(at), float(np.mean(_last_sign(signs) > 0))
    if not crosses.any():
        return Crossing(compute=None, lo=None, hi=None, probability=0.0, leads_after=leads)
    found = drawn_interval(at[crosses])
    return Crossing(
        compute=found.estimate, lo=found.lo, hi=found.hi, probability=float(crosses.mean()), leads_after=leads
    )


@lru_cache(maxsize=2)  # the reference's draws serve every variant that is compared with it
def _draws_along(prospect: VariantFits, grid: tuple[float, ...]) -> np.ndarray:
    return prospect.draws(np.array(grid))


def _last_crossings(ahead: np.ndarray, signs: np.ndarray, grid: np.ndarray) -> np.ndarray:
    """Compute at which each row changes sign for the last time; infinite if it never does."""
    changes = signs[:, 1:] * signs[:, :-1] < 0
    node = changes.shape[1] - np.argmax(changes[:, ::-1], axis=1)
    at = root(ahead, grid, node)
    at[~changes.any(axis=1)] = np.inf
    return at


def _last_sign(signs: np.ndarray) -> np.ndarray:
    """The last nonzero sign of each row, since curves that end at 1 together are level there."""
    last = signs.shape[1] - 1 - np.argmax(signs[:, ::-1] != 0, axis=1)
    return signs[np.arange(last.size), last]
