"""Runs on a Slurm cluster. A map of the room:

commands      Slurm's own commands, the only file that runs them
resources     what a job asks for: the `resources:` block
asked         that of a sweep over that of its scale, with the place of every key
limits        whether this cluster has it
cost          what a submission may cost at most
submissions   what was given to Slurm, on disk before sbatch is asked
snapshot      the code that jobs run
batch_script  what stands at the top of a batch script
pool          runs become job arrays, through submitit
reconcile     what left the file or is held is cancelled; retry: runs submitted once more
job           what runs in a job: one run, its checkpoint on Slurm's signals
job_logs      what Slurm wrote of it
hold          what waits is held after three equal failures
queue_cache   what Slurm said of the jobs, asked at most once in ten seconds
states        what a run is doing, from its own files and from Slurm
doctor/       whether the cluster is fit for all this; probe: what its job looks at on a node
"""
