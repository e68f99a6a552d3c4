"""Variants against the reference. A map of the room:

task_curves  the curve of a task in a run log
interval     an estimate with its 95 % interval
run_to_run   how far runs of one recipe lie apart, from the seeds of all variants
level        the pass rate at equal compute, without any law
differences  ceilings and compute of a variant against the reference, with their intervals
rules        what an interval says: up, down, no difference seen, or cannot tell
compare      all of that for every variant
hours        where the hours of a run or a variant went
results      the same for one sweep, as data
elsewhere    the same for curves that other trainers have left
words        the same in words
"""
