"""One `platform sweep` from plan to end. A map of the room:

make_plan        a study made into its plan
run_sweep        run folders, jobs, MLflow beside them
on_this_machine  a sweep's runs as processes on this machine
on_slurm         a sweep's runs as Slurm jobs
reconcile        what left the file or is held is cancelled
retry            runs submitted once more
ending           whether anything is left to do
"""
