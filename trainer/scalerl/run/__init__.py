"""One run, from a resolved recipe to a curve. A map of the room:

assemble      builds the parts of a run; the place to plug in another engine
train         one attempt: the run's lock, its signals, its outcome
program       one attempt of a program of the user's own; command_line: its arguments and environment
error_line    why a program failed, from what it printed
preload       what every run loads, for a process that forks runs
loop          the training loop, evaluations, checkpoints, the final model
warm_start    the supervised start, shared by all runs of a scale and seed
run_folder    the files of a run
checkpoint    the run's state, in parts, and when to save it; encoding: the contents of the parts
run_log       the run log, and whether it is unchanged; does not load torch
status        the state of a run; sealed_json: a file with its own SHA-256; neither loads torch
status_file   keeps the status current while the run trains
meter         the parts of an evaluator process, if there is one
pending       evaluations due but not in the log yet, if there is an evaluator
train_row     the log row of a step
rollout_rows  sample rollouts of each evaluation, for people to read
health        warnings drawn from the last steps; idle_steps: about steps that trained on nothing
episode_rules warnings about episodes
"""
