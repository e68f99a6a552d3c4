"""One run: a resolved recipe to a curve. A map of the room:

assemble      the parts of a run, put together; another engine is put in here
train         one attempt: the run's lock, signals, how it ended
loop          the loop, evaluations, checkpoints
warm_start    the supervised start, shared by all runs of a scale and seed
run_folder    the files of a run; errors: why one ends that is not at fault
checkpoint    its state in parts; encoding: what they hold
model_folder  the policy at the end, with the files that `transformers` needs
metrics       its log; log_fault: whether it is as it was written; none loads torch
status        what the run is doing; sealed_json: a file with its own SHA-256; neither loads torch
status_file   keeps the status current while the run trains
save_interval when the next checkpoint is due
meter         what an evaluator's process measures with, if there is one
pending       evaluations that are due and not in the log yet, where there is one
train_row     what the log says of a step
rollout_rows  some rollouts of each evaluation, for people to read
health        what the last steps foretell, as warnings
"""
