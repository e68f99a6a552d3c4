"""Fits ScaleRL eq. 1 to curves, with a posterior that accounts for autocorrelated noise. A map of the room:

    curve.py       Curve: pass rate against compute, the input of every fit
    prompt_noise.py  variance of a pass rate, from the right answers to each prompt
    curve_file.py  the curves of a CSV file; settings_text.py: how its study fits them
    table_file.py  tables in text files, of whatever delimiter and encoding
    wide_table.py  tables with a column for each run
    bins.py        averages neighbours if a curve has thousands of readings
    options.py     fit settings of a sweep file
    fitting.py     fit_curve: turns a curve into a fit; A against the cut-off
    window.py      selects the readings to fit: none after a collapse, never fewer than six
    reach.py       checks that compute counts from the start of training
    fall.py        tells whether the last readings lie below the highest before them, on curves of any length
    collapse.py    finds the reading after which the score declines for good
    cutoff.py      finds the compute from which the readings follow the law
    readings.py    the readings in a fit
    huber.py       outliers among them made harmless
    ends.py        ends of an interval, from draws and the estimate that it includes
    asymptote.py   A with its interval, in all displayed forms; meanings of the verdicts
    alternatives.py  the other families on the same readings: draws; family_weights.py: their weights
    ceiling.py     A averaged over the families that fit
    law_fit.py     LawFit: eq. 1's draws for the fitted readings, without verdict or ceiling
    result.py      Fit: parameters, intervals, predictions, verdict
    oddities.py    sentences about readings that look wrong
    words.py       a fit in one paragraph
    engine/        the mathematics: families, projection, noise, posterior, lack of fit

`docs/statistics.md` explains the model, what was measured of it, and when not to trust it.
"""
