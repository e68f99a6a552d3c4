"""Shows how much a fit depends on its cut-off."""

from dataclasses import dataclass, replace

import numpy as np

from ablations.fit.asymptote import WITHOUT_RISE, AsymptoteEstimate, Verdict
from ablations.fit.cutoff import cutoff_before, num_early
from ablations.fit.fitting import fit_with
from ablations.fit.options import MIN_READINGS
from ablations.fit.result import Fit

NUM_CUTOFFS = 6


@dataclass(frozen=True, kw_only=True)
class CutoffRow:
    """A under a fit that starts at one cut-off.

    CutoffRow(fit_from=1491.0, points=30, A=0.612, A_lo=0.590, A_hi=0.633, verdict="weak")
    """

    fit_from: float
    points: int
    A: float | None
    """None without an upper end, like A_hi."""
    A_lo: float
    A_hi: float | None
    verdict: Verdict

    @property
    def asymptote(self) -> AsymptoteEstimate:
        """A with its interval, for display."""
        return AsymptoteEstimate(A=self.A, lo=self.A_lo, hi=self.A_hi, rises=self.verdict not in WITHOUT_RISE)


def cutoff_table(fit: Fit) -> tuple[CutoffRow, ...]:
    """A against the cut-off: without one, with the fit's own, and with others up to the last 60 % of the readings."""
    compute = fit.curve.compute[(fit.curve.compute > 0) & (fit.curve.compute <= fit.window[1])]
    latest = min(num_early(compute.size), compute.size - MIN_READINGS)
    firsts = {round(index) for index in np.linspace(0, latest, NUM_CUTOFFS)}
    firsts.add(int(np.searchsorted(compute, fit.window[0])))
    # Keep the fit's own end: from another start a collapse may be found elsewhere, or not at all.
    settings = replace(fit.settings, fit_to=fit.window[1])
    rows = []
    for fit_from in sorted({cutoff_before(compute, first) for first in firsts}):
        one = fit_with(fit.curve, replace(settings, fit_from=fit_from), through_collapse=True)
        ends = {"A": one.A, "A_lo": one.A_lo, "A_hi": one.A_hi}
        rows.append(CutoffRow(fit_from=fit_from, points=one.points, **ends, verdict=one.verdict))
    return tuple(rows)
