"""Runs on a Slurm cluster. A map of the room:

commands                    Slurm's own commands; no other file runs them
limits                      whether this cluster has what a job asks for
cost                        what a submission may cost at most
submissions                 what was given to Slurm, on disk before sbatch is asked
snapshot                    the code that jobs run
placed                      which processes of a run each node of its job would have
batch_script                the options and first lines of a batch script
whether_to_submit           which runs get a new job
pool                        runs become job arrays, through submitit
job                         what runs in a job: one run, and its checkpoint when Slurm wants the node back
requeue_before_time_limit   a job that reaches its time limit sends itself back to the queue
hold, hold_trap.sh          three equal failures keep the waiting jobs from starting
first_node                  a job whose first node is gone goes back to the queue
node_of_job                 which of a job's nodes a task is on
job_logs                    what Slurm wrote about a job
queue_cache                 what Slurm said about the jobs; asked at most once in ten seconds
states                      what a run is doing, from its own files and from Slurm
doctor/                     whether a cluster can run sweeps
"""
