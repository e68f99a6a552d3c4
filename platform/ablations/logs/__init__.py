"""Logs of other trainers, as curves. A map of the room:

rows_of_run         a program's own log as rows of the run log
naming              the variant and seed of a run
meaning             which columns are step, score and compute, and the curve that follows
presets             the names that other trainers use
expression          arithmetic over columns
several_runs        the runs of one table
sources             what wrote a file or folder
json_logs           JSON lines, and a `trainer_state.json`; tables: CSV and Parquet; console: printed lines
tensorboard_events  event files; wandb_offline: offline runs of W&B; trackio_database: projects of Trackio
rows                rows as columns; log: the log of one run; steps: one value for each step of it
"""
