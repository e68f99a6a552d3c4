"""MLflow, filled from the run folders at any time. A map of the room:

push_missing       pushes what MLflow lacks: sweeps, variants and runs to MLflow
mean_curve         the mean curve of a variant over its seeds
mlflow_experiment  the requests of a synchroniser to MLflow's client
sqlite_points      numbers written straight into an SQLite store of MLflow
mlflow_metrics     run logs as batches of metrics, thinned, and one row as metrics
descriptions       tags, params and data sets of a variant and of its runs, in a form that MLflow accepts
sortable           numbers and verdicts of a fit that give every variant a place in a sorted table
runs_page          the URL, columns and chart of MLflow's page of runs
sync_note          what a sweep has for MLflow, and the note of what MLflow had of it
beside_a_sweep     a synchroniser while a sweep runs, and one that stays on a login node
"""
