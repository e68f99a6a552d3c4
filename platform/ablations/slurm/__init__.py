"""Trains runs on a Slurm cluster. A map of the room:

commands                    Slurm's own commands, which no other file runs
limits                      checks that this cluster has what a job requests
cost                        the maximum cost of a submission
submissions                 records of submissions, written before sbatch is called, and what their jobs printed
submission_lock             one command at a time submits from a home folder
interrupted_submissions     undoes submissions that failed or were interrupted
batch_script                the options and first lines of a batch script
pool                        decides which runs get a new job, and turns them into job arrays, through submitit
job                         trains one run inside a job; saves a checkpoint when Slurm wants the node back
requeue                     when a job goes back to the queue, and the signal before its time limit
hold, hold_trap.sh          hold the waiting jobs after three equal failures
queue_cache                 Slurm's answers about jobs, refreshed at most once in ten seconds
states                      the state of a run, from its own files and from Slurm
doctor/                     checks whether a cluster can run sweeps
"""
