"""Answers from curves alone: fits of variants in, differences with intervals and verdicts out. A map of the room:

interval        an estimate with its 95 % interval, and with the joint one of several comparisons
answer          a question, its rule and its words; an answer to it
questions       the questions that are asked: level, ceiling, compute
level           the pass rate at equal compute, without any law
differences     ceilings and compute of a variant against the reference
one_law         ceilings of several runs under one law, whichever it is
variance_components  what seeds share and the rest: the likelihood of two variances
run_to_run      the spread of runs of one recipe, from the seeds of all variants; everything that needs it asks here
compare         every variant against the reference
paper_rule      the paper's rule for ceilings; paper_grid: the grid of its fit
forecasts       pass rate at any compute, compute to a score, crossings, the cost of a point, who leads
known           what is known of a scale: its law, noise, spread of runs and speed
simulated_runs  runs of the reference and of a variant that is slower or ends lower, simulated and fitted
half_widths     the half-widths that the intervals of a study would have, and the differences that it would see

Nothing here knows a home folder, a sweep or a recipe.
"""
