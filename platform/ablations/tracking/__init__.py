"""MLflow, made from the run folders at any time. A map of the room:

synchroniser       sweeps, variants and runs to MLflow
mlflow_experiment  what a synchroniser asks of MLflow's client
batches            run logs as batches of metrics, thinned
scalars            one row as metrics
descriptions       tags, params and data sets of a variant and of its runs, in a form that MLflow accepts
sortable           the numbers and verdicts of a fit, so that every variant has its place in a sorted table
fit_page           a fit as a small page that needs nothing else
ledger             what MLflow already has
experiment         the curves of an MLflow experiment, whoever made it
beside_a_sweep     a synchroniser while a sweep runs
watch              one that stays on a login node
"""
