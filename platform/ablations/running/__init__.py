"""One `platform sweep` from plan to end, and commands on the sweeps of a home folder. A map of the room:

make_plan        turns a study into its plan
run_sweep        writes the plan and run folders, and trains the runs
executor         the protocol of the two places where runs train
on_this_machine  a sweep's runs as processes on this machine
on_slurm         a sweep's runs as Slurm jobs
train_missing    runs trained while the command watches, steers and informs MLflow
reconcile        jobs that left the file or are held are cancelled
retry            runs submitted once more
delete           a sweep taken from its home folder, with the runs that no other sweep has
rename           a sweep under another name
archive          a sweep with its runs in one file
unpack           such a file brought into another home folder
ending           whether anything is left to do
"""
