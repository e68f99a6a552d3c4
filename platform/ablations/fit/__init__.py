"""Fits of ScaleRL eq. 1 to curves, with intervals that hold under autocorrelated noise. A map of the room:

    fitting.py     fit_curve: a curve in, a fit out
    window.py      which readings count; nothing beyond a collapse, never fewer than six
    family.py      r + a g(C; p, q): what the engine must know of a family of curves; eq. 1
    projection.py  the engine: (r, a) in closed form on a dense grid over (p, q), then Gauss-Newton
    noise.py       sampling noise and autocorrelated run noise, averaged over what the residuals allow
    region.py      every curve that the readings do not speak against
    result.py      Fit: parameters, intervals, predictions, verdict

An interval is a profile likelihood interval. Its likelihood is averaged over the noise, whose level and autocorrelation
30 readings say little about; `benchmarks/fit_coverage.py` measures that it holds.
"""

from ablations.fit.fitting import fit_curve
from ablations.fit.result import Fit, R0Mode, Verdict, asymptote_text, ceiling_verdict

__all__ = ["Fit", "R0Mode", "Verdict", "asymptote_text", "ceiling_verdict", "fit_curve"]
