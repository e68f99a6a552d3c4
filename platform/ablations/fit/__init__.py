"""Fits of ScaleRL eq. 1 to curves, with a posterior that holds under autocorrelated noise. A map of the room:

    curve.py       Curve: pass rate against compute, the thing every fit starts from
    prompt_noise.py  what a pass rate errs by, from the right answers to each prompt
    curve_file.py  the curves of a CSV file
    bins.py        means of neighbours where a curve has thousands of readings
    options.py     how curves are fitted, as a sweep file says it
    fitting.py     fit_curve: a curve in, a fit out
    window.py      which readings count; nothing beyond a collapse, never fewer than six
    reach.py       whether compute counts from the start of training
    collapse.py    whether the score declines for good, and from where on
    cutoff.py      from which compute on the readings follow the law
    readings.py    what of a curve enters the fit; outliers made harmless
    asymptote.py   A with its interval, in the forms in which it may be shown; what each verdict means
    alternatives.py  the other families on the same readings: weights and draws
    ceiling.py     A averaged over the families that fit
    result.py      Fit: parameters, intervals, predictions, verdict
    oddities.py    readings that look wrong, in words
    words.py       a fit in one paragraph
    doubt.py       A against the cut-off
    averaging.py   model error beyond the fitted range: curves of all families
    engine/        the mathematics below: families, projection, noise, posterior, lack of fit

`docs/statistics.md` says what the model is, what was measured of it and when not to believe it.
"""
