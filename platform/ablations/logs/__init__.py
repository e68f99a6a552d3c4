"""Logs of other trainers, as curves. A map of the room:

rows_of_run         a program's own log as rows of the run log; training_rows: its training metrics by our names
naming              the variant and seed of a run
meaning             which columns are step, score and compute, and the curve that follows
presets             the names that other trainers use
trainer_defaults    the settings of other trainers that checks read, with their defaults
expression          arithmetic over columns
counters            compute of each step, or so far; gpu_count: the GPUs that a log's own throughput implies
filled_forward      scores that a table repeats until the next evaluation
several_runs        the runs of one table
sources             what wrote a file or folder
trainer_states      which `trainer_state.json` of a folder of checkpoints has the whole history
json_logs           JSON lines, and a `trainer_state.json`; tables: CSV and Parquet; console: printed lines
trial_settings      the settings of a trial of Ray Tune, which may change
tensorboard_events  event files; tensorboard_page: what TensorBoard's page hides of them
wandb_offline       offline runs of W&B; trackio_database: projects of Trackio
rows                rows, added one by one, as columns; packed: the values of a column in little memory
row_values          the values of a row; step_columns: values that come one by one, as rows
log                 the log of one run; steps: one value for each step of it
step_axes           metrics with steps of their own
attempts            the attempts of a run that was resumed, and the rows that count; steps_back: where steps go back
"""
