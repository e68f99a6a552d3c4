"""MLflow, made from the run folders at any time. A map of the room:

synchroniser    sweeps, variants and runs to MLflow
batches         run logs as batches of metrics
scalars         one row as metrics
ledger          what MLflow already has
experiment      the curves of an MLflow experiment, whoever made it
beside_a_sweep  a synchroniser while a sweep runs
watch           one that stays on a login node
"""
