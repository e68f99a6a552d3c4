"""Runs of other trainers, from what they log, as a study to compare. A map of the room:

study               logs on disk, each read once and kept
mlflow_experiments  the runs of an MLflow experiment
naming              the variant and seed of a run
meaning             which columns are step, score and compute, and the curve that follows
presets             the names that other trainers use, with their sources
expression          arithmetic over columns
sources             what wrote a file or folder
json_logs           JSON lines, and a `trainer_state.json`; tables: CSV and Parquet
tensorboard_events  event files; wandb_offline: offline runs of W&B; trackio_database: projects of Trackio
rows                rows as columns; log: the log of one run, and its values by step
extras              libraries that only some logs need
"""
