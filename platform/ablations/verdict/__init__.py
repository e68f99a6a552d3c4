"""Variants against the reference. A map of the room:

task_curves  the curve of a task in a run log
compare      ceilings and compute of variants against the reference: the rule for "cannot tell"
results      all of that for one sweep, as data
words        the same in words
"""
