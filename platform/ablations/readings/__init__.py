"""From a run folder to a fitted run. A map of the room:

task_curves        the curve of a task in a run log
hours              where the hours of a run or a variant went
run_reading        what a run log says, kept beside the run
readings_together  those of many runs, fitted on all cores
reading_worker     the process that does so
fitted_run         a run with its curve and fit, or why it has none
"""
