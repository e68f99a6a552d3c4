"""From a run folder to a fitted run. A map of the room:

task_curves        the curve of a task in a run log
hours              device time of a run or a variant by role and activity
kept               results kept in files that are named by everything behind them
run_reading        the reading of one run log, kept beside the run
wanted             a run to read or a curve to fit, here or by a worker
readings_together  the readings of many runs, fitted on all cores
reading_worker     the worker process that reads and fits
fitted_run         a run with its curve and fit, or the reason why it has none
"""
