"""One `platform sweep` from plan to end. A map of the room:

make_plan        a study made into its plan
run_sweep        plan and run folders written, runs trained
executor         where: the protocol of the next two
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
