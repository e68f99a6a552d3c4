"""Fits of ScaleRL eq. 1 to curves, with a posterior that holds under autocorrelated noise. A map of the room:

    fitting.py     fit_curve: a curve in, a fit out
    window.py      which readings count; nothing beyond a collapse, never fewer than six
    collapse.py    whether the score declines for good, and from where on
    cutoff.py      from which compute on the readings follow the law
    readings.py    what of a curve enters the fit; outliers made harmless
    family.py      r + a g(C; p, q): what the engine must know of a family of curves; eq. 1 and five others
    projection.py  the engine: (r, a) in closed form on a dense grid over (p, q), then Gauss-Newton
    anchor.py      what the reading before RL says of R_0
    noise.py       sampling noise and autocorrelated run noise
    sums.py        the sums over readings that judge a curve, in the axes of the noise
    posterior.py   draws of everything, given the readings
    ceiling_profile.py  how badly a given ceiling fits, whatever the prior says
    result.py      Fit: parameters, intervals, predictions, verdict
    words.py       a fit in one paragraph
    doubt.py       A against the cut-off
    averaging.py   the other families, weighed: model error beyond twice the fitted range
    paper.py       the grid of the paper, for reproduction

`docs/statistics.md` says what the model is, what was measured of it and when not to believe it.
"""

from ablations.fit.fitting import fit_curve, fit_with
from ablations.fit.result import Fit, Verdict, asymptote_text, ceiling_verdict

__all__ = ["Fit", "Verdict", "asymptote_text", "ceiling_verdict", "fit_curve", "fit_with"]
