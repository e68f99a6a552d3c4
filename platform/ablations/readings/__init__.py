"""From a run folder to a fitted run. A map of the room:

task_curves        the curve of a task in a run log
hours              device time of a run or a variant by role and activity
kept               results kept in files that are named by everything behind them
run_reading        the reading of one run log, kept beside the run
readings_together  the readings of many runs, fitted on all cores by worker processes
fitted_run         a run with its curve and fit, or the reason why it has none; of every run of a sweep or file
"""
