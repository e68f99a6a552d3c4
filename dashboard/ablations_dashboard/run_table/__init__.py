"""The table of all runs of a sweep, as plain data.

rows        a row per run: its state, its settings, its numbers
condition   the rows that a reader asks for: `failed learning_rate>0.0001`
importance  the share of the differences that goes with each setting
groups      the mean of each group of runs, with its interval
"""
