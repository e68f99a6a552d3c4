"""The only way in for runs of other trainers, which become run folders and a plan. A map of the room:

orders        what a command line names, as sources to import
import_runs   writes run folders and the plan, again for what has changed
found_run     a run that a source has, and what is remembered of it; numbering: seeds for runs without one
from_logs     logs on disk; from_curves: a table of curves; from_scripts: runs of `ablations.start`
from_mlflow   an experiment of MLflow; from_archive: a sweep that `platform export` has written
"""
