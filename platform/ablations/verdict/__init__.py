"""Variants against the reference. A map of the room:

task_curves    the curve of a task in a run log
interval       an estimate with its 95 % interval
run_reading    what a run log says, kept beside the run
readings_together  those of many runs, fitted on all cores
reading_worker  the process that does so
fitted_run     a run with its curve and fit, or why it has none
variance_components  what seeds share and the rest: the likelihood of two variances
run_to_run     how far runs of one recipe lie apart, from the seeds of all variants
level          the pass rate at equal compute, without any law
one_law        ceilings of several runs under one law, whichever it is
differences    ceilings and compute of a variant against the reference, with their intervals
rules          what an interval says: up, down, no difference seen, or cannot tell
compare        all of that for every variant
repeated_runs  what other sweeps of the home say of how far runs of one recipe lie apart
hours          where the hours of a run or a variant went
results        the same for one sweep, as data
together       several sweeps against one reference
elsewhere      the same for curves that other trainers have left
order          the same in another order, and as a CSV sheet
sheet          CSV that spreadsheets do not compute
words          the same in words
"""
