"""One `platform sweep` from plan to end. A map of the room:

make_plan        a study made into its plan
run_sweep        plan and run folders written, runs trained
executor         where: the protocol of the next two
on_this_machine  a sweep's runs as processes on this machine
on_slurm         a sweep's runs as Slurm jobs
train_missing    runs trained while the command watches, steers and informs MLflow
reconcile        jobs that left the file or are held are cancelled
retry            runs submitted once more
ending           whether anything is left to do
free_attention   runs of a home folder from the time when attention was free
"""
