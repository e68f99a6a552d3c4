"""Shows how much a fit depends on its cut-off."""

from dataclasses import replace

import numpy as np

from ablations.fit.cutoff import cutoff_before, num_early
from ablations.fit.fitting import fit_with
from ablations.fit.options import MIN_READINGS
from ablations.fit.result import Fit

NUM_CUTOFFS = 6


def fits_by_cutoff(fit: Fit) -> dict[float, Fit]:
    """The fit from each cut-off: none, the fit's own, and others up to the last 60 % of the readings."""
    compute = fit.curve.compute[(fit.curve.compute > 0) & (fit.curve.compute <= fit.window[1])]
    latest = min(num_early(compute.size), compute.size - MIN_READINGS)
    firsts = {round(index) for index in np.linspace(0, latest, NUM_CUTOFFS)}
    firsts.add(int(np.searchsorted(compute, fit.window[0])))
    # Keep the fit's own end: from another start a collapse may be found elsewhere, or not at all.
    settings = replace(fit.settings, fit_to=fit.window[1])
    return {
        fit_from: fit_with(fit.curve, replace(settings, fit_from=fit_from), through_collapse=True)
        for fit_from in sorted({cutoff_before(compute, first) for first in firsts})
    }
